/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's side of the warden, see client.h. A request is a struct pending from client_submit()
 * to its completion: queued, sent by client_flush(), answered by client_answer() or told its
 * failure by tell_failures(). What was lost with a connection more than once may be what ended the
 * warden: it is a suspect, and goes alone. The stubs, one for each row of ops.def, are at the end.
 */
#include "isolation/launch/client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/proto.h"
#include "isolation/limits.h"
#include "isolation/packet.h"

#define ALIVE (UINT64_C(1) << 63) /* in the seq of a greeting behind a suspect */

/* A request from the call that made it until its completion. */
struct pending {
    struct pending *next;
    uint64_t seq;
    warden_done *done;
    void *arg;
    uint8_t *packet; /* not sent yet; owned */
    size_t n;
    uint64_t key; /* the same whoever makes the request again; 0: it may be lost as often as it
                     likes */
    bool alone;   /* a connection was lost with one of this key */
    int failed;   /* code of a local failure that waits to be told; 0: none */
    char *why;    /* owned */
};

/* A request that was lost with a connection: the request may have ended the warden. From then on it
 * goes only when no other such one is before the warden, so the next loss tells them apart. */
struct suspect {
    uint64_t key;
    unsigned losses;
    int64_t last_ns;
};

struct warden_client {
    char *path;
    int fd;
    uint64_t seq;
    struct pending *head;
    struct pending **tail;
    size_t outstanding;
    uint64_t heard; /* packets */
    size_t n_failed; /* of them */
    size_t unsent;   /* bytes */
    size_t held;     /* of them, behind `alone` */
    uint64_t alone;  /* seq of the suspect that the warden may not have read yet; 0: none */
    struct suspect *suspects;
    size_t n_suspects;
    uint8_t *in;   /* PROTO_PACKET_MAX, while connected */
    const char *lost; /* why the last connection ended; static */
    void (*changed)(void *arg);
    void *changed_arg;
};

static int
client_destroy(struct warden_client *c)
{
    fd_close(&c->fd);
    return 0;
}

struct warden_client *
warden_client_new(const void *ctx, const char *socket_path)
{
    struct warden_client *c = mem_new(ctx, struct warden_client);
    c->path = mem_strdup(c, socket_path);
    c->fd = -1;
    c->tail = &c->head;
    talloc_set_destructor(c, client_destroy);
    return c;
}

void
warden_client_free(struct warden_client *c)
{
    mem_free(c);
}

bool
warden_client_connected(const struct warden_client *c)
{
    return c->fd >= 0;
}

int
warden_client_fd(const struct warden_client *c)
{
    return c->fd;
}

short
warden_client_events(const struct warden_client *c)
{
    return c->unsent > c->held || c->n_failed > 0 ? POLLIN | POLLOUT : POLLIN;
}

bool
warden_client_pending(const struct warden_client *c)
{
    return c->n_failed > 0;
}

void
warden_client_on_change(struct warden_client *c, void (*fn)(void *arg), void *arg)
{
    c->changed = fn;
    c->changed_arg = arg;
}

/* Takes `p` out of the list; the caller frees it. */
static void
unlink_pending(struct warden_client *c, struct pending *p)
{
    struct pending **at = &c->head;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    if (c->tail == &p->next)
        c->tail = at;
    ASSERT(c->outstanding > 0 && c->n_failed >= (p->failed != 0));
    c->outstanding--;
    c->n_failed -= p->failed != 0;
    ASSERT(p->packet == NULL || c->unsent >= p->n);
    if (p->packet != NULL)
        c->unsent -= p->n;
}

/* Completions may make new requests, so the list is read again after each. */
static void
tell_failures(struct warden_client *c)
{
    uint64_t last = c->seq; /* what is made from inside waits for the next turn */
    for (;;) {
        struct pending *p = c->head;
        while (p != NULL && (p->failed == 0 || p->seq > last))
            p = p->next;
        if (p == NULL)
            return;
        unlink_pending(c, p);
        struct err e = ERR_INIT;
        err_set(&e, p->failed, "%s", p->why);
        p->done(p->arg, &e, NULL);
        mem_free(p);
    }
}

static void
set_failed(struct warden_client *c, struct pending *p, int code, const char *why)
{
    p->failed = code;
    p->why = mem_strdup(p, why);
    c->n_failed++;
}

/* --- requests that connections were lost with --- */

static uint64_t
request_key(const struct warden_request *q)
{
    if (!proto_suspect(q->op))
        return 0;
    const struct warden_request id = {.op = q->op,
                                      .alloc_id = q->spec != NULL ? q->spec->alloc_id : q->alloc_id,
                                      .task_name =
                                          q->spec != NULL ? q->spec->task_name : q->task_name};
    uint64_t key = codec_hash(&type_warden_request, &id, 0);
    return key != 0 ? key : 1;
}

static struct suspect *
suspect_of(struct warden_client *c, uint64_t key)
{
    int64_t now = key != 0 && c->n_suspects > 0 ? clock_mono_ns() : 0;
    for (size_t i = 0; now != 0 && i < c->n_suspects;) {
        struct suspect *s = &c->suspects[i];
        if (now - s->last_ns > WARDEN_SUSPECT_MS * NS_PER_MS)
            *s = c->suspects[--c->n_suspects];
        else if (s->key == key)
            return s;
        else
            i++;
    }
    return NULL;
}

static void
client_clear(struct warden_client *c, const struct pending *p)
{
    struct suspect *s = p->alone ? suspect_of(c, p->key) : NULL;
    if (s != NULL)
        *s = c->suspects[--c->n_suspects];
}

/* `p` was before the warden when the connection ended. */
static void
client_blame(struct warden_client *c, const struct pending *p)
{
    struct suspect *s = suspect_of(c, p->key);
    if (s == NULL) {
        if (c->n_suspects == WARDEN_OUTSTANDING_MAX)
            return;
        mem_resize(c, c->suspects, struct suspect, c->n_suspects + 1);
        s = &c->suspects[c->n_suspects++];
        *s = (struct suspect){.key = p->key};
    }
    s->losses = c->alone == p->seq ? WARDEN_LOSSES_MAX : s->losses + 1;
    s->last_ns = clock_mono_ns();
}

static int
client_lose(struct warden_client *c, const char *why)
{
    c->lost = why;
    fd_close(&c->fd);
    mem_free(c->in);
    for (struct pending *p = c->head; p != NULL; p = p->next) {
        if (p->failed != 0)
            continue;
        if (p->packet == NULL && p->key != 0)
            client_blame(c, p);
        set_failed(c, p, -ERR_UNAVAILABLE, why);
    }
    c->alone = 0;
    tell_failures(c);
    return -ERR_CLOSED;
}

size_t
warden_client_outstanding(const struct warden_client *c)
{
    return c->outstanding;
}

uint64_t
warden_client_heard(const struct warden_client *c)
{
    return c->heard;
}

const char *
warden_client_lost(const struct warden_client *c)
{
    return str_or(c->lost, "");
}

int
warden_client_connect(struct warden_client *c, struct err *e)
{
    tell_failures(c);
    if (c->fd >= 0)
        return 0;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (!str_copy(a.sun_path, sizeof(a.sun_path), c->path))
        return err_set(e, -ERR_INVALID, "the path of the warden's socket is too long: \"%s\"",
                       c->path);
    auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(e, errno, "make a socket");
    if (connect(fd, (const void *)&a, sizeof(a)) < 0)
        return err_errno(e, errno, "connect to the warden at \"%s\"", c->path);
    packet_buffers(fd);
    struct warden_request hello = {.op = WARDEN_INFO};
    auto_buf struct buf b = BUF_INIT(4096);
    mp_encode(&b, &type_warden_request, &hello);
    int r = packet_send(fd, b.data, b.len, NULL, 0);
    if (r < 0)
        return err_errno(e, -r, "greet the warden at \"%s\"", c->path);
    c->fd = TAKE_FD(fd);
    c->in = mem_array(c, uint8_t, PROTO_PACKET_MAX);
    return 0;
}

/* Asks for a sign of life: the answer says that the warden has read what went before. */
static void
request_alive(struct warden_client *c)
{
    struct warden_request q = {.op = WARDEN_INFO, .seq = c->alone | ALIVE};
    auto_buf struct buf b = BUF_INIT(4096);
    mp_encode(&b, &type_warden_request, &q);
    (void)packet_send(c->fd, b.data, b.len, NULL, 0); /* else the suspect's own answer says it */
}

static int
client_flush(struct warden_client *c)
{
    c->held = 0;
    for (struct pending *p = c->head; p != NULL && c->unsent > c->held; p = p->next) {
        if (p->packet == NULL || p->failed != 0)
            continue;
        if (p->alone && c->alone != 0) {
            c->held += p->n;
            continue;
        }
        int r = packet_send(c->fd, p->packet, p->n, NULL, 0);
        if (r == -EAGAIN)
            return 0;
        if (r < 0 && r != -EMSGSIZE)
            return r;
        if (r == -EMSGSIZE)
            set_failed(c, p, -ERR_LIMIT, "the request is larger than the system's socket buffers");
        c->unsent -= p->n;
        mem_free(p->packet);
        if (r == 0 && p->alone) {
            c->alone = p->seq;
            request_alive(c);
        }
    }
    return 0;
}

_Static_assert(offsetof(struct warden_reply, helper) ==
                   offsetof(struct warden_reply, fds) + WARDEN_FD_HELPER * sizeof(int),
               "members of struct warden_reply are in the order of enum warden_fd");

static void
sort_fds(const struct warden_response *m, int *fds, size_t n, struct warden_reply *r)
{
    r->msg = m;
    for (size_t i = 0; i < WARDEN_FD_END; i++)
        r->fds[i] = -1;
    for (size_t i = 0; i < n; i++) {
        int64_t kind = i < m->fds.n ? m->fds.v[i] : 0;
        if (kind > 0 && kind < WARDEN_FD_END && r->fds[kind] < 0)
            r->fds[kind] = TAKE_FD(fds[i]);
        else
            fd_close(&fds[i]);
    }
}

static void
client_answer(struct warden_client *c, const struct warden_response *m, int *fds, size_t n)
{
    struct warden_reply r;
    sort_fds(m, fds, n, &r);
    c->heard++;
    struct pending *p = c->head;
    while (p != NULL && (p->seq != m->seq || p->packet != NULL || p->failed != 0))
        p = p->next;
    if (c->alone != 0 && (m->seq & ~ALIVE) == c->alone)
        c->alone = 0;
    if (p != NULL) { /* not the greeting's */
        unlink_pending(c, p);
        client_clear(c, p);
        struct err e = ERR_INIT;
        if (m->code != 0)
            err_set(&e, m->code > 0 && m->code < 20000 ? (int)-m->code : -ERR_INTERNAL, "%s",
                    str_or(m->error, "the warden refused"));
        p->done(p->arg, m->code != 0 ? &e : NULL, m->code != 0 ? NULL : &r);
        mem_free(p);
    }
    for (size_t i = 0; i < WARDEN_FD_END; i++)
        fd_close(&r.fds[i]);
}

int
warden_client_ready(struct warden_client *c)
{
    tell_failures(c);
    if (c->fd < 0)
        return -ERR_CLOSED;
    if (client_flush(c) < 0)
        return client_lose(c, "the connection to the warden broke");
    for (int i = 0; i < 64 && c->fd >= 0; i++) {
        int fds[PACKET_FDS_MAX];
        size_t n_fds = 0;
        long n = packet_recv(c->fd, c->in, PROTO_PACKET_MAX, fds, &n_fds);
        if (n == -EAGAIN)
            break;
        if (n == -ERR_LIMIT)
            return client_lose(c,
                               "an answer of the warden's came without its descriptors: a security "
                               "module may have kept them back, the kernel's log tells");
        if (n <= 0)
            return client_lose(c, "the warden closed the connection");
        auto_mem void *ctx = mem_ctx("warden reply");
        void *m = NULL;
        struct err e = ERR_INIT;
        if (mp_decode(ctx, &type_warden_response, SLICE(c->in, (size_t)n), BUDGET(PROTO_DECODE_MAX),
                      &m, &e) < 0) {
            for (size_t k = 0; k < n_fds; k++)
                fd_close(&fds[k]);
            return client_lose(c, "the warden's answer cannot be read");
        }
        client_answer(c, m, fds, n_fds);
    }
    if (c->fd >= 0 && client_flush(c) < 0) /* what was held back */
        return client_lose(c, "the connection to the warden broke");
    return c->fd >= 0 ? 0 : -ERR_CLOSED;
}

int
warden_client_drain(struct warden_client *c, int timeout_ms)
{
    int64_t end = clock_mono_ns() + timeout_ms * NS_PER_MS;
    while (c->outstanding > 0) {
        int64_t left = (end - clock_mono_ns()) / NS_PER_MS;
        if (left <= 0)
            return -ERR_TIMEOUT;
        if (c->fd >= 0 && !warden_client_pending(c)) {
            struct pollfd p = {.fd = c->fd, .events = warden_client_events(c)};
            (void)poll(&p, 1, (int)left);
        }
        (void)warden_client_ready(c); /* a lost connection completes everything too */
    }
    return 0;
}

/* The warden would close the connection, and with it end every other request. So it is looked at
 * with the warden's own eyes first: only the one request fails. */
static int
client_check(const struct warden_request *q, const struct buf *b, struct err *e)
{
    int r = proto_check(q, PROTO_READY, e);
    if (r == 0 && buf_error(b) < 0)
        r = err_set(e, -ERR_LIMIT, "the request is too large for the warden: more than %d KiB",
                    PROTO_PACKET_MAX / 1024);
    auto_mem void *ctx = mem_ctx("check");
    struct warden_request *read = NULL;
    return r == 0 ? proto_decode(ctx, b->data, b->len, PROTO_READY, &read, e) : r;
}

static void
client_submit(struct warden_client *c, struct warden_request *q, warden_done *done, void *arg)
{
    struct pending *p = mem_new(c, struct pending);
    struct err e = ERR_INIT;
    p->seq = q->seq = ++c->seq;
    p->done = done;
    p->arg = arg;
    p->key = request_key(q);
    *c->tail = p;
    c->tail = &p->next;
    c->outstanding++;
    auto_buf struct buf b = BUF_INIT(PROTO_PACKET_MAX);
    mp_encode(&b, &type_warden_request, q);
    const struct suspect *s = suspect_of(c, p->key);
    p->alone = s != NULL;
    if (client_check(q, &b, &e) < 0)
        set_failed(c, p, -ERR_INVALID, e.text);
    else if (c->fd < 0)
        set_failed(c, p, -ERR_UNAVAILABLE, "not connected to the warden");
    else if (s != NULL && s->losses >= WARDEN_LOSSES_MAX)
        set_failed(
            c, p, -ERR_INTERNAL,
            "the connection to the warden was lost with this request, more than once: it is not "
            "sent again for some minutes");
    else if (c->outstanding > WARDEN_OUTSTANDING_MAX || c->unsent + b.len > WARDEN_QUEUE_MAX)
        set_failed(c, p, -ERR_BUSY, "too many requests wait for the warden");
    if (p->failed == 0) {
        p->n = b.len;
        p->packet = mem_dup(p, b.data, b.len);
        c->unsent += p->n;
        (void)client_flush(c); /* trouble is seen by the next ready */
    }
    if (c->changed != NULL)
        c->changed(c->changed_arg);
}

/* --- the stubs --- */

static const char *
or_null(const char *s)
{
    return str_empty(s) ? NULL : s;
}

#define TASK .alloc_id = alloc_id, .task_name = task
#define OURS(p) ((void *)(uintptr_t)(p)) /* client_submit() only reads */
#define BARE(...) __VA_ARGS__
#define OP(nr, ID, name, must, may, phases, handler, stub, params, request)                        \
    void warden_##stub(struct warden_client *c, WARDEN_PARAMS params warden_done *done, void *arg) \
    {                                                                                              \
        client_submit(c, &(struct warden_request){.op = WARDEN_##ID, BARE request}, done, arg);    \
    }
#include "isolation/launch/ops.def"
