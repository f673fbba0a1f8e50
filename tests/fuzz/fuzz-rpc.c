/* SPDX-License-Identifier: Apache-2.0
 *
 * RPC frames: any bytes to a connection, in two pieces, which has one stream open and takes more. Oracles:
 * nothing crashes or leaks; every frame that is sent is whole and well-formed; an answer is for a call that
 * was made; no more bytes of streams go out than were granted; a frame that is parsed encodes to the same
 * head.
 */
#include <stdint.h>
#include <string.h>

#include "common/mem.h"
#include "net/rpc_link_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct loop *loop;
static struct rpc_link *conn;
static unsigned calls, answers;
static uint64_t granted, sent;

/* --- an owner of streams: by the first byte it stops to read, or ends; else it sends back what comes --- */

struct owned {
    struct stream *st;
    struct owned *next;
};
static struct owned *streams;
static unsigned open_streams;
static bool none_open;

static void
on_data(void *arg, const uint8_t *p, size_t n)
{
    struct owned *o = arg;
    struct buf b = BUF_INIT(SIZE_MAX);

    if (p[0] == 0xff) {
        stream_close(o->st);
    } else if (p[0] == 0xfe) {
        stream_read(o->st, false);
    } else if (p[0] == 0xfd) {
        stream_finish(o->st, 0);
    } else {
        buf_put(&b, p, n);
        stream_write(o->st, &b, 1);
    }
}

static void
on_eof(void *arg)
{
    stream_read(((struct owned *)arg)->st, false);
}

static void
on_close(void *arg, int code)
{
    struct owned *o = arg;

    (void)code;
    o->st = NULL;
    none_open = --open_streams == 0;
}

static const struct stream_ops stream_ops = {
    .on_data = on_data, .on_eof = on_eof, .on_close = on_close};

static void
own(struct stream *st)
{
    struct owned *o = mem_new(NULL, struct owned);

    o->st = st;
    o->next = streams;
    streams = o;
    open_streams++;
    granted += RPC_STREAM_WINDOW;
    stream_accept(st, &stream_ops, o);
}

/* --- methods --- */

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

static void
client_http(void *arg, struct rpc_call *call, const void *req)
{
    const struct client_http_request *r = req;
    struct empty resp = {0};

    (void)arg;
    if (r->node_id != NULL && r->node_id[0] == 'n') {
        rpc_failf(call, -ERR_NOT_FOUND, "no");
        return;
    }
    own(rpc_call_stream(call, r->peer));
    rpc_reply(call, &resp);
}

static const struct rpc_service services[] = {{RPC_JOB_GET_JOB, get_job},
                                              {RPC_JOB_REGISTER, job_register},
                                              {RPC_CLIENT_HTTP, client_http}};

static void
opened(void *arg, const struct err *e, const void *resp)
{
    (void)arg;
    ASSERT((e == NULL) == (resp != NULL));
}

/* --- frames --- */

static void
on_send(void *carrier, struct buf *frame, size_t n)
{
    struct rpc_head h;
    (void)carrier;
    for (size_t i = 1; i < n; i++) {
        frame->max = SIZE_MAX;
        buf_put(frame, frame[i].data, frame[i].len);
        buf_done(&frame[i]);
    }
    ASSERT(frame->len >= RPC_HEAD && rpc_head_parse(frame->data, &h) == 0);
    ASSERT(h.len + (size_t)RPC_HEAD == frame->len);
    answers += h.kind == RPC_KIND_REPLY || h.kind == RPC_KIND_ERROR;
    if (h.kind == RPC_KIND_DATA || h.kind == RPC_KIND_BACK_DATA) {
        ASSERT(h.len > 0 && h.len <= RPC_STREAM_FRAME);
        sent += h.len;
        ASSERT(sent <= granted);
    }
    buf_done(frame);
}

static size_t
on_queued(void *carrier)
{
    (void)carrier;
    return 0;
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
    if ((h->kind == RPC_KIND_GRANT || h->kind == RPC_KIND_BACK_GRANT) && h->len == 4)
        granted += big_endian(body, 4);
    return rpc_link_frame(conn, h, body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct client_http_request http = {.node_id = "x"};
    struct rpc_reader reader;
    bool never = false;

    if (n < 1)
        return 0;
    if (!loop)
        loop = loop_new();
    calls = answers = 0;
    granted = sent = 0;
    conn = rpc_link_new(&(struct rpc_link_config){.loop = loop,
                                                  .services = services,
                                                  .n = ARRAY_LEN(services),
                                                  .peer = "fuzz",
                                                  .local = true, /* no timers */
                                                  .send = on_send,
                                                  .queued = on_queued});
    own(rpc_link_open(conn, &(struct rpc_request){RPC_CLIENT_HTTP, &http, NULL, 0}, opened, NULL));
    rpc_reader_init(&reader, on_frame, NULL);
    size_t cut = 1 + (n - 1) * data[0] / 256;
    if (rpc_reader_feed(&reader, data + 1, cut - 1) == 0) {
        loop_run_until(loop, &never, 0);
        (void)rpc_reader_feed(&reader, data + cut, n - cut);
    }
    /* a stream that ends in the middle is told so, beside its call */
    ASSERT(answers <= 2 * calls);
    rpc_reader_done(&reader);
    for (struct owned *o = streams; o; o = o->next)
        if (o->st)
            stream_close(o->st);
    rpc_link_close(conn, -ERR_CLOSED, "over");
    none_open = open_streams == 0;
    ASSERT(loop_run_until(loop, &none_open, 10000));
    for (struct owned *o = TAKE(streams), *next; o; o = next) {
        next = o->next;
        talloc_free(o);
    }
    return 0;
}
