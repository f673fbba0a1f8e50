/* SPDX-License-Identifier: Apache-2.0
 *
 * RPC frames: any bytes to the serving side of a connection, in two pieces. Oracles: nothing crashes
 * or leaks; every answer is a whole, well-formed frame for a call that was made; a frame that is
 * parsed encodes to the same head.
 */
#include <stdint.h>
#include <string.h>

#include "common/mem.h"
#include "net/rpc_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct loop *loop;
static struct rpc_session *session;
static unsigned calls, answers;

static void
get_job(void *arg, struct rpc_call *call, const void *req)
{
    const struct id_request *r = req;
    (void)arg;
    ASSERT(rpc_call_envelope(call) != NULL);
    if (r->all) {
        rpc_failf(call, -ERR_NOT_FOUND, "no");
        return;
    }
    struct job_response *resp = mem_new(rpc_call_ctx(call), struct job_response);
    resp->job = mem_new(resp, struct job);
    resp->job->id = r->id;
    rpc_reply(call, resp);
}

static void
job_register(void *arg, struct rpc_call *call, const void *req)
{
    const struct job_register_request *r = req;
    (void)arg;
    (void)r;
    rpc_reply(call, mem_new(rpc_call_ctx(call), struct job_register_response));
}

static const struct rpc_service services[] = {{RPC_JOB_GET_JOB, get_job},
                                              {RPC_JOB_REGISTER, job_register}};

static void
on_send(void *carrier, struct buf *frame)
{
    struct rpc_head h;
    (void)carrier;
    ASSERT(frame->len >= RPC_HEAD && rpc_head_parse(frame->data, &h) == 0);
    ASSERT(h.len + (size_t)RPC_HEAD == frame->len);
    ASSERT(h.kind == RPC_KIND_REPLY || h.kind == RPC_KIND_ERROR);
    answers++;
    buf_done(frame);
}

static bool
on_frame(void *arg, const struct rpc_head *h, const uint8_t *body)
{
    struct buf b = BUF_INIT(RPC_HEAD);
    (void)arg;
    size_t at = rpc_frame_begin(&b, h);
    rpc_frame_end(&b, at);
    struct rpc_head again;
    ASSERT(rpc_head_parse(b.data, &again) == 0);
    ASSERT(again.kind == h->kind && again.id == h->id && again.method == h->method &&
           again.version == h->version);
    buf_done(&b);
    calls += h->kind == RPC_KIND_CALL;
    return rpc_session_frame(session, h, body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct rpc_reader reader;

    if (n < 1)
        return 0;
    if (!loop)
        loop = loop_new();
    calls = answers = 0;
    session = rpc_session_new(&(struct rpc_session_config){
        .loop = loop, .services = services, .n = 2, .peer = "fuzz", .send = on_send});
    rpc_reader_init(&reader, on_frame, NULL);
    size_t cut = 1 + (n - 1) * data[0] / 256;
    if (rpc_reader_feed(&reader, data + 1, cut - 1) == 0)
        (void)rpc_reader_feed(&reader, data + cut, n - cut);
    ASSERT(answers <= calls);
    rpc_reader_done(&reader);
    rpc_session_free(session);
    return 0;
}
