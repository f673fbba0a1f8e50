/* SPDX-License-Identifier: Apache-2.0
 *
 * A command in the container of a task, with the user, the confinement and the environment that the
 * engine gives whatever runs there. The agent's connection and one to the engine become tunnels,
 * and bytes go between them no faster than they are taken. In frames (common/frame.h), from the
 * agent:
 *
 *   0  bytes of its input          1  the end of it           2  rows and columns, two bytes each
 *
 * and to the agent:
 *
 *   1, 2  output and errors; with a terminal all is 1         3  its exit code, four bytes; the
 * last 4  the last one instead: why there is no code
 *
 * A command whose agent goes away reads the end of its input, and goes on: engines end none.
 */
#include <string.h>

#include "api/plain.h"
#include "common/frame.h"
#include "common/mem.h"
#include "hand/hand.h"

enum {
    CODE_TRIES = 100,
    CODE_AGAIN_MS = 50,
    SIZE_TRIES = 50,
    SIZE_AGAIN_MS = 20,
    QUEUED_MAX = 256 << 10,
    SIZE_LEN = 4
};

struct session { /* goes with the request */
    struct hand *h;
    struct http_req *req;
    const char *alloc, *task;
    struct hand_exec *spec;
    const char *container, *id;
    struct engine_call *call, *tunnel, *size_call;
    struct timer *again, *size_again;
    struct buf in;
    int tries, size_tries;
    unsigned rows, columns;
    bool size_new; /* it is not asked for yet */
    bool open;     /* the agent's connection is a tunnel */
};

static void ask_code(void *arg);

static void
session_end(struct session *s)
{
    s->req->user = NULL;
    timer_stop(TAKE(s->again));
    timer_stop(TAKE(s->size_again));
    engine_cancel(TAKE(s->call));
    engine_cancel(TAKE(s->tunnel));
    engine_cancel(TAKE(s->size_call));
    buf_done(&s->in);
    s->req->on_close = NULL;
}

/* Nothing of the session is there afterwards. */
static void
exec_fail(struct session *s, int status, const char *what, const char *why)
{
    struct http_req *req = s->req;
    auto_mem void *tmp = mem_ctx("why");
    const char *text = mem_strndup(tmp, mem_printf(tmp, "%s%s", what, why), 900);
    session_end(s);
    if (s->open) {
        struct buf b = BUF_INIT(4096);
        frame_put(&b, 4, text, strlen(text));
        http_stream_write_buf(req, &b);
        http_stream_end(req);
    } else {
        http_fail(req, status, "%s", text);
    }
}

/* False: it was an error, and is told. */
static bool
went_well(struct session *s, const char *what, int status, int want, const struct value *doc,
          const struct err *e)
{
    if (e)
        exec_fail(s, 503, "the engine does not answer: ", e->text);
    else if (status != want)
        exec_fail(s,
                  status == 404 || status == 409 ? status
                  : status >= 500                ? 503
                                                 : 422,
                  what, engine_said(doc));
    return !e && status == want;
}

static void
exec_ask(struct session *s, const char *method, const char *target, const struct value *body,
         void (*done)(void *arg, int status, const struct value *doc, const struct err *e))
{
    s->call = engine_ask(s->h, &(struct engine_ask){.method = method,
                                                    .target = target,
                                                    .body = body,
                                                    .timeout_ms = HAND_ASK_MS,
                                                    .done = done,
                                                    .arg = s});
}

/* --- its end --- */

static void
on_code(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct session *s = arg;
    const struct value *running = value_get(doc, "Running"), *code = value_get(doc, "ExitCode");
    struct http_req *req = s->req;
    s->call = NULL;
    if (!went_well(s, "ask for the exit code: ", status, 200, doc, e))
        return;
    bool over = running && running->kind == VALUE_BOOL && !running->b;
    if ((!over || !code || code->kind != VALUE_INT) && s->tries++ < CODE_TRIES) {
        s->again = timer_start(s->h->loop, CODE_AGAIN_MS, ask_code, s);
        return;
    }
    if (!code || code->kind != VALUE_INT) {
        exec_fail(s, 503, "the engine does not tell the exit code", "");
        return;
    }
    struct buf b = BUF_INIT(64), n = BUF_INIT(8);
    buf_put_u32(&n, (uint32_t)code->i);
    frame_put(&b, 3, n.data, n.len);
    buf_done(&n);
    http_stream_write_buf(req, &b);
    session_end(s);
    http_stream_end(req);
}

static void
ask_code(void *arg)
{
    struct session *s = arg;
    s->again = NULL;
    exec_ask(s, "GET", mem_printf(s, "/exec/%s/json", s->id), NULL, on_code);
}

static void
on_over(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct session *s = arg;
    s->tunnel = NULL;
    if (went_well(s, "start the command: ", status, 101, doc, e))
        ask_code(s);
}

/* --- bytes --- */

static bool
on_output(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct session *s = arg;
    struct buf b = BUF_INIT(SIZE_MAX);
    (void)r;
    if (!s->open) /* an answer where a tunnel is asked for */
        return false;
    if (s->spec->tty)
        frame_put(&b, 1, p, n);
    else
        buf_put(&b, p, n); /* the engine's frames are the agent's */
    http_stream_write_buf(s->req, &b);
    if (http_stream_queued(s->req) > QUEUED_MAX)
        engine_read(s->tunnel, false);
    return true;
}

static void
on_agent_drained(void *user)
{
    struct session *s = user;
    if (s && s->tunnel)
        engine_read(s->tunnel, true);
}

static void
on_engine_drained(void *arg)
{
    struct session *s = arg;
    http_tunnel_read(s->req, true);
}

static void ask_size(void *arg);

/* An engine refuses it for a command that is not quite started: it is asked again. */
static void
on_resized(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct session *s = arg;
    (void)doc;
    s->size_call = NULL;
    if (s->size_new)
        ask_size(s);
    else if (!e && status >= 300 && s->size_tries++ < SIZE_TRIES)
        s->size_again = timer_start(s->h->loop, SIZE_AGAIN_MS, ask_size, s);
}

static void
ask_size(void *arg)
{
    struct session *s = arg;
    auto_mem void *tmp = mem_ctx("size");
    const char *target = mem_printf(tmp, "/exec/%s/resize?h=%u&w=%u", s->id, s->rows, s->columns);
    s->size_again = NULL;
    s->size_new = false;
    s->size_call = engine_ask(s->h, &(struct engine_ask){.method = "POST",
                                                         .target = target,
                                                         .timeout_ms = HAND_ASK_MS,
                                                         .done = on_resized,
                                                         .arg = s});
}

static void
exec_resize(struct session *s, uint64_t rows, uint64_t columns)
{
    if (!s->spec->tty || rows == 0 || columns == 0)
        return;
    s->rows = (unsigned)rows;
    s->columns = (unsigned)columns;
    s->size_new = true;
    s->size_tries = 0;
    timer_stop(TAKE(s->size_again));
    if (!s->size_call)
        ask_size(s);
}

static int
on_frame(void *arg, uint8_t type, const uint8_t *p, size_t n)
{
    struct session *s = arg;
    if (type == 0 && s->tunnel) {
        engine_write(s->tunnel, p, n);
        if (engine_queued(s->tunnel) > QUEUED_MAX)
            http_tunnel_read(s->req, false);
    } else if (type == 1 && s->tunnel) {
        engine_end(s->tunnel);
    } else if (type == 2 && n == SIZE_LEN) {
        exec_resize(s, big_endian(p, 2), big_endian(p + 2, 2));
    } else if (type > 1) {
        return -ERR_CORRUPT;
    }
    return 0;
}

static void
on_agent(void *user, const void *p, size_t n)
{
    struct session *s = user;
    if (s && frame_feed(&s->in, p, n, on_frame, s) < 0)
        exec_fail(s, 400, "no frames of a command", "");
}

static void
on_close(void *user)
{
    struct session *s = user;
    if (s)
        exec_fail(s, 503, "nobody waits", "");
}

/* --- its start --- */

static bool
on_tunnel(void *arg)
{
    struct session *s = arg;
    s->open = true;
    http_header_add(s->req, "Connection", "Upgrade");
    http_header_add(s->req, "Upgrade", "paddock-exec");
    http_tunnel_start(s->req, on_agent, on_agent_drained);
    exec_resize(s, (uint64_t)s->spec->rows, (uint64_t)s->spec->columns);
    return true;
}

static void
on_made(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct session *s = arg;
    const char *id = document_text(doc, "Id");
    s->call = NULL;
    if (!went_well(s, "make the command: ", status, 201, doc, e))
        return;
    if (!*id || strlen(id) >= HAND_ID_MAX || !plain_word(id)) {
        exec_fail(s, 503, "the engine gave the command no id", "");
        return;
    }
    s->id = mem_strdup(s, id);
    struct value *body = value_map(s);
    value_map_set(body, "Detach", value_bool(body, false));
    value_map_set(body, "Tty", value_bool(body, s->spec->tty));
    s->tunnel = engine_ask(s->h, &(struct engine_ask){.method = "POST",
                                                      .target = mem_printf(s, "/exec/%s/start", id),
                                                      .body = body,
                                                      .on_tunnel = on_tunnel,
                                                      .on_body = on_output,
                                                      .on_drain = on_engine_drained,
                                                      .done = on_over,
                                                      .arg = s});
}

static void
on_inspected(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct session *s = arg;
    struct hand_state state;
    s->call = NULL;
    if (!went_well(s, "", status, 200, doc, e))
        return;
    if (!document_state(s, s->h, s->alloc, s->task, doc, &state)) {
        exec_fail(s, 404, "there is no such container", "");
        return;
    }
    if (!state.running) {
        exec_fail(s, 409, "the container does not run", "");
        return;
    }
    static const char *const attach[] = {"AttachStdin", "AttachStdout", "AttachStderr"};
    struct value *body = value_map(s), *command = value_list(body);
    for (size_t i = 0; i < s->spec->command.n; i++)
        value_list_add(command, value_str(body, s->spec->command.v[i]));
    value_map_set(body, "Cmd", command);
    value_map_set(body, "Tty", value_bool(body, s->spec->tty));
    for (size_t i = 0; i < ARRAY_LEN(attach); i++)
        value_map_set(body, attach[i], value_bool(body, true));
    exec_ask(s, "POST", mem_printf(s, "/containers/%s/exec", state.id), body, on_made);
}

void
exec_serve(struct hand *h, struct http_req *req, const char *alloc, const char *task)
{
    struct session *s = mem_new(req, struct session);
    struct err e = ERR_INIT;
    void *spec = NULL;
    *s = (struct session){
        .h = h, .req = req, .alloc = mem_strdup(s, alloc), .task = mem_strdup(s, task)};
    buf_init(&s->in, 2 * HAND_FRAME_MAX);
    req->user = s;
    req->on_close = on_close;
    if (json_decode_strict(s, &type_hand_exec, SLICE(req->body, req->body_len),
                           BUDGET(HAND_DOCUMENT_MAX), &spec, &e) < 0) {
        exec_fail(s, 400, e.text, "");
        return;
    }
    s->spec = spec;
    if (s->spec->command.n == 0 || s->spec->rows < 0 || s->spec->rows > UINT16_MAX ||
        s->spec->columns < 0 || s->spec->columns > UINT16_MAX)
        exec_fail(s, 400, "no command, or not the size of a terminal", "");
    else
        exec_ask(s, "GET", mem_printf(s, "/containers/%s/json", document_name(s, alloc, task)),
                 NULL, on_inspected);
}
