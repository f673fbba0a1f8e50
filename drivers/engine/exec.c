/* SPDX-License-Identifier: Apache-2.0
 *
 * A command in a task of an engine, by way of the engine hand: a tunnel of frames (hand/exec.c has
 * them).
 */
#include <string.h>

#include "common/frame.h"
#include "common/mem.h"
#include "drivers/engine/hand_client.h"
#include "net/http/http.h"

enum {
    MESSAGE_MAX = 1 << 20,
    INPUT = 0,
    INPUT_END = 1,
    SIZE = 2,
    OUT = 1,
    ERR = 2,
    CODE = 3,
    WHY = 4
};

struct hand_command {
    struct task_exec base;
    const struct task_exec_events *up;
    void *arg;
    struct http_client *http;
    struct buf in;
    int code;
    struct err e;  /* why there is no code */
    bool over;     /* there is a code, or it is known why not */
    bool busy;     /* in an event */
    bool closed;   /* ... in which its owner has had enough */
    bool released; /* what ends now is ours */
};

static struct hand_command *
exec_of(struct task_exec *x)
{
    return (struct hand_command *)x;
}

static void
exec_release(struct hand_command *x)
{
    x->released = true;
    http_client_close(x->http);
    buf_done(&x->in);
    talloc_free(x);
}

static void
close_it(struct task_exec *base)
{
    struct hand_command *x = exec_of(base);
    x->closed = true; /* an event returns to on_done() */
    if (!x->busy)
        exec_release(x);
}

/* --- what comes --- */

static int
on_frame(void *arg, uint8_t type, const uint8_t *p, size_t n)
{
    struct hand_command *x = arg;
    if (x->over || x->closed)
        return x->closed ? 1 : -ERR_CORRUPT;
    if (type == OUT || type == ERR) {
        x->up->output(x->arg, type, p, n);
        return x->closed ? 1 : 0;
    }
    if (type == CODE && n == 4)
        x->code = (int)(uint32_t)big_endian(p, n);
    else if (type == WHY)
        err_set(&x->e, -ERR_UNAVAILABLE, "%.*s", (int)n, (const char *)p);
    else
        return -ERR_CORRUPT;
    x->over = true;
    return 0;
}

static bool
on_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct hand_command *x = arg;
    if (r->status != 101)
        return false;
    x->busy = true;
    int code = frame_feed(&x->in, p, n, on_frame, x);
    x->busy = false;
    if (code < 0 && !x->over) {
        err_set(&x->e, -ERR_CORRUPT, "the engine hand sent no frames of a command");
        x->over = true;
    }
    return code == 0;
}

static bool
on_tunnel(void *arg, const struct http_resp *r)
{
    struct hand_command *x = arg;
    (void)r;
    x->busy = true;
    x->up->opened(x->arg);
    x->busy = false;
    return !x->closed;
}

static void
on_drain(void *arg)
{
    struct hand_command *x = arg;
    if (!x->closed)
        x->up->drained(x->arg);
}

static void
on_done(void *arg, const struct err *e, const struct http_resp *r)
{
    struct hand_command *x = arg;
    if (x->closed && !x->released)
        exec_release(x);
    if (x->closed)
        return;
    if (!x->over && e)
        x->e = *e;
    else if (!x->over && r->status == 101)
        err_set(&x->e, -ERR_CLOSED, "the engine hand went away, and the command is lost");
    else if (!x->over)
        err_set(&x->e,
                r->status == 404   ? -ERR_NOT_FOUND
                : r->status == 409 ? -ERR_CONFLICT
                : r->status == 403 ? -ERR_POLICY
                : r->status < 500  ? -ERR_INVALID
                                   : -ERR_UNAVAILABLE,
                "%s", r->body);
    x->up->ended(x->arg, x->code, 0, x->e.code ? &x->e : NULL);
}

/* --- what is asked of it --- */

static void
send_frame(struct task_exec *x, uint8_t type, const void *p, size_t n)
{
    struct buf b = BUF_INIT(SIZE_MAX);
    frame_put(&b, type, p, n);
    http_client_write(exec_of(x)->http, &b);
}

static void
write_it(struct task_exec *x, const void *p, size_t n)
{
    send_frame(x, INPUT, p, n);
}

static size_t
exec_queued(const struct task_exec *x)
{
    return http_client_queued(((const struct hand_command *)x)->http);
}

static void
end_input(struct task_exec *x)
{
    send_frame(x, INPUT_END, NULL, 0);
}

static void
exec_resize(struct task_exec *x, uint16_t rows, uint16_t columns)
{
    const uint8_t size[] = {(uint8_t)(rows >> 8), (uint8_t)rows, (uint8_t)(columns >> 8),
                            (uint8_t)columns};
    send_frame(x, SIZE, size, sizeof(size));
}

static void
read_it(struct task_exec *x, bool on)
{
    http_client_read(exec_of(x)->http, on);
}

static const struct task_exec_verbs verbs = {.write = write_it,
                                             .queued = exec_queued,
                                             .end_input = end_input,
                                             .resize = exec_resize,
                                             .read = read_it,
                                             .close = close_it};

struct task_exec *
hand_exec(struct engine_task *t, const struct hand_exec *spec, const struct task_exec_events *up,
          void *arg)
{
    struct hand_command *x = mem_new(NULL, struct hand_command);
    const struct engine_place *p = hand_place(t);
    auto_buf struct buf target = BUF_INIT(4096), body = BUF_INIT(HTTP_BODY_MAX);
    const struct http_pair headers[] = {{"Connection", "Upgrade"}, {"Upgrade", "paddock-exec"}};
    *x = (struct hand_command){.base = {&verbs}, .up = up, .arg = arg, .http = hand_client(p)};
    buf_init(&x->in, 2 * MESSAGE_MAX);
    hand_target(&target, p, "/exec");
    json_encode(&body, &type_hand_exec, spec, 0);
    http_send(x->http, &(struct http_ask){.method = "POST",
                                          .target = buf_str(&target),
                                          .headers = headers,
                                          .n_headers = ARRAY_LEN(headers),
                                          .body = body.data,
                                          .body_len = body.len,
                                          .content_type = "application/json",
                                          .on_body = on_body,
                                          .on_tunnel = on_tunnel,
                                          .on_drain = on_drain,
                                          .done = on_done,
                                          .arg = x});
    return &x->base;
}
