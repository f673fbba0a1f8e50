/* SPDX-License-Identifier: Apache-2.0
 *
 * The network of a group whose tasks are containers of one engine: an idle container has it and its
 * ports, and those of the tasks join it. Its image is a file of ours, which an engine without the
 * image is sent; nothing is pulled.
 *
 *   PUT    /v1/ENGINE/network/ALLOC    HandNetwork -> HandNetworkState; made already is fine
 *   DELETE /v1/ENGINE/network/ALLOC    whether it is there or not
 *
 * 409: a port is taken. What the engine starts again by itself (a restart of its own) has another
 * namespace, into which tasks come when they are started again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"

enum { TRIES_MAX = 6, WAITS_MAX = 40, PROGRAM_MAX = 1 << 20, BLOCK = 512 };

struct making {
    struct hand *h;
    struct http_req *req;
    struct engine_call *call;
    const char *alloc, *name;
    const char *id, *image;    /* of the container */
    struct hand_network *spec; /* NULL: it is to go */
    int tries, waits;
    int status; /* of its failure, which is told when what was made has gone */
    const char *why;
    bool imported;
    bool taken; /* the name has somebody */
    bool swept; /* ... who was not to be seen, and was removed by that name */
};

static void network_look(struct making *m);

/* --- the image --- */

static void
header_of(char b[static BLOCK], size_t size)
{
    unsigned sum = 0;
    memset(b, 0, BLOCK);
    (void)snprintf(b, 100, "pause");
    (void)snprintf(b + 100, 8, "0000755");
    (void)snprintf(b + 108, 8, "0000000");
    (void)snprintf(b + 116, 8, "0000000");
    (void)snprintf(b + 124, 12, "%011zo", size);
    (void)snprintf(b + 136, 12, "00000000000");
    memset(b + 148, ' ', 8);
    b[156] = '0';
    memcpy(b + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)b[i];
    (void)snprintf(b + 148, 8, "%06o", sum);
}

int
network_image(const char *program, size_t *ret_len, struct err *e)
{
    auto_mem void *tmp = mem_ctx("pause");
    static const char zeros[2 * BLOCK];
    char head[BLOCK], *bytes = NULL;
    size_t n = 0;
    int r = file_read(tmp, AT_FDCWD, program, PROGRAM_MAX, &bytes, &n);
    if (r < 0)
        return err_set(e, r, "read \"%s\": %s", program, err_name(r));
    auto_fd int fd = memfd_create("pause.tar", MFD_CLOEXEC);
    if (fd < 0)
        return err_errno(e, errno, "make the image of a group's network");
    size_t rest = (BLOCK - n % BLOCK) % BLOCK + (size_t)2 * BLOCK;
    header_of(head, n);
    if (fd_write_full(fd, head, BLOCK) < 0 || fd_write_full(fd, bytes, n) < 0 ||
        fd_write_full(fd, zeros, rest - BLOCK) < 0 || fd_write_full(fd, zeros, BLOCK) < 0)
        return err_errno(e, ENOSPC, "make the image of a group's network");
    *ret_len = BLOCK + n + rest;
    return TAKE_FD(fd);
}

/* --- answers --- */

static void
network_end(struct making *m, int status, const char *type, struct buf *b)
{
    struct http_req *req = m->req;
    req->user = NULL;
    talloc_free(m);
    http_reply_buf(req, status, type, b);
}

static void
network_fail(struct making *m, int status, const char *what, const char *why)
{
    struct buf b = BUF_INIT(8192);
    buf_printf(&b, "%s%.900s", what, why);
    network_end(m, status, "text/plain", &b);
}

static bool
port_taken(const struct value *doc)
{
    const char *said = engine_said(doc);
    return strstr(said, "already allocated") || strstr(said, "address already in use");
}

static void
note_error(struct making *m, const char *what, int status, const struct value *doc,
           const struct err *e)
{
    m->status = e ? 502 : port_taken(doc) ? 409 : status >= 500 ? 503 : 422;
    m->why = mem_printf(m, "%s%.900s",
                        e                 ? "the engine does not answer: "
                        : port_taken(doc) ? "a port of the group is taken: "
                                          : what,
                        e ? e->text : engine_said(doc));
}

static void
fail_engine(struct making *m, const char *what, int status, const struct value *doc,
            const struct err *e)
{
    note_error(m, what, status, doc, e);
    network_fail(m, m->status, "", m->why);
}

static void
network_ask(struct making *m, const char *method, const char *target, const struct value *body,
            void (*done)(void *arg, int status, const struct value *doc, const struct err *e))
{
    m->call = engine_ask(m->h, &(struct engine_ask){.method = method,
                                                    .target = target,
                                                    .body = body,
                                                    .timeout_ms = HAND_ASK_MS,
                                                    .done = done,
                                                    .arg = m});
}

/* --- its making --- */

static void
on_undone(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct making *m = arg;
    (void)doc;
    m->call = NULL;
    if (e || (status != 204 && status != 404))
        leftover_drop(m->h, m->id);
    network_fail(m, m->status, "", m->why);
}

static void network_create(struct making *m);

static void
on_reset(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct making *m = arg;
    m->call = NULL;
    if (e || (status != 204 && status != 404))
        fail_engine(m, "remove what was left of the network of the group: ", status, doc, e);
    else
        network_create(m);
}

static void
on_started(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct making *m = arg;
    m->call = NULL;
    if (!e && (status == 204 || status == 304) && m->tries++ < TRIES_MAX)
        network_look(m);
    else if (!e && status >= 400 && !port_taken(doc) && m->tries++ < TRIES_MAX)
        /* an engine that was killed in a start never starts the container: another container, then
         */
        network_ask(m, "DELETE", mem_printf(m, "/containers/%s?force=1&v=1", m->id), NULL,
                    on_reset);
    else if (e)
        fail_engine(m, "", status, doc, e);
    else {
        note_error(m, "start the network of the group: ", status, doc, e);
        network_ask(m, "DELETE", mem_printf(m, "/containers/%s?force=1&v=1", m->id), NULL,
                    on_undone);
    }
}

/* Passes over the lines of an import: what failed in it is seen when the image is missing. */
static bool
on_line(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    (void)arg;
    (void)r;
    (void)p;
    (void)n;
    return true;
}

/* Nothing but networks uses it: it goes as images go that were pulled. */
static void
on_image(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct making *m = arg;
    m->call = NULL;
    if (!e && status == 200)
        images_pulled(m->h->images, NETWORK_IMAGE, NULL, document_text(doc, "Id"));
    network_create(m);
}

static void
on_imported(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct making *m = arg;
    m->call = NULL;
    if (e || status != 200)
        fail_engine(m, "make the image of a group's network: ", status, doc, e);
    else
        network_ask(m, "GET", "/images/" NETWORK_IMAGE "/json", NULL, on_image);
}

static void
network_import(struct making *m)
{
    m->imported = true;
    m->call = engine_ask(
        m->h, &(struct engine_ask){.method = "POST",
                                   .target = "/images/create?fromSrc=-&repo=" NETWORK_IMAGE_REPO,
                                   .file = m->h->pause_tar,
                                   .file_len = m->h->pause_len,
                                   .timeout_ms = HAND_ASK_MS,
                                   .on_body = on_line,
                                   .done = on_imported,
                                   .arg = m});
}

static void
on_created(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct making *m = arg;
    m->call = NULL;
    if (!e && status == 404 && !m->imported)
        network_import(m);
    else if (!e && (status == 201 || status == 409) && m->tries++ < TRIES_MAX) {
        m->taken = status == 409;
        network_look(m); /* who has the name is found out */
    } else
        fail_engine(m, "make the network of the group: ", status, doc, e);
}

static void
network_create(struct making *m)
{
    network_ask(m, "POST", mem_printf(m, "/containers/create?name=%s", m->name),
                document_network(m, m->h, m->alloc, m->spec), on_created);
}

/* --- its end --- */

static void
look_again(void *arg)
{
    network_look(arg);
}

static void
on_removed(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct making *m = arg;
    struct buf none = BUF_INIT(0);
    m->call = NULL;
    if (!e && status == 409 && m->tries++ < TRIES_MAX)
        network_look(m); /* somebody removes it already */
    else if (!e && strstr(engine_said(doc), "dependent containers") && m->waits++ < WAITS_MAX)
        /* podman's are about to be removed */
        (void)timer_start(m->h->loop, HAND_AGAIN_MS, look_again, m);
    else if (e || (status != 204 && status != 404))
        fail_engine(m, "remove the network of the group: ", status, doc, e);
    else {
        images_unused(m->h->images, str_or(m->image, ""));
        network_end(m, 200, "application/json", &none);
    }
}

/* --- what is there --- */

static void
on_looked(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct making *m = arg;
    struct hand_network_state s;
    bool running = false;
    m->call = NULL;
    if (e || (status != 200 && status != 404)) {
        fail_engine(m, "look at the network of the group: ", status, doc, e);
    } else if (status == 404 && engine_is_podman(m->h) && !m->swept && (!m->spec || m->taken)) {
        /* killed while making one, podman has the name and no container: a removal frees the name
         */
        m->swept = true;
        network_ask(m, "DELETE", mem_printf(m, "/containers/%s?force=1&v=1", m->name), NULL,
                    m->spec ? on_reset : on_removed);
    } else if (status == 404 && m->spec) {
        network_create(m);
    } else if (status == 404) {
        on_removed(m, 404, NULL, NULL);
    } else if (!document_network_state(m, m->h, m->alloc, doc, &s, &running)) {
        network_fail(m, 422, "somebody else has the container ", m->name);
    } else if (!m->spec) {
        m->image = mem_strndup(m, document_text(doc, "Image"), HAND_ID_MAX);
        network_ask(m, "DELETE", mem_printf(m, "/containers/%s?force=1&v=1", s.id), NULL,
                    on_removed);
    } else if (!running) {
        m->id = s.id;
        network_ask(m, "POST", mem_printf(m, "/containers/%s/start", s.id), NULL, on_started);
    } else {
        struct buf b = BUF_INIT(8192);
        json_encode(&b, &type_hand_network_state, &s, JSON_NO_OMIT);
        network_end(m, 200, "application/json", &b);
    }
}

static void
network_look(struct making *m)
{
    network_ask(m, "GET", mem_printf(m, "/containers/%s/json", m->name), NULL, on_looked);
}

const char *
network_name(const void *ctx, const char *alloc)
{
    return mem_printf(ctx, "paddock-network-%s", alloc);
}

void
network_serve(struct hand *h, struct http_req *req, const char *alloc)
{
    struct making *m = mem_new(req, struct making);
    struct err e = ERR_INIT;
    void *spec = NULL;
    *m = (struct making){.h = h, .req = req, .alloc = mem_strdup(m, alloc)};
    m->name = network_name(m, alloc);
    req->user = m;
    req->on_close = NULL; /* what has begun is brought to its end */
    if (req->method == METHOD_PUT &&
        (json_decode_strict(m, &type_hand_network, SLICE(req->body, req->body_len),
                            BUDGET(HAND_DOCUMENT_MAX), &spec, &e) < 0 ||
         allow_network(h, spec, &e) < 0)) {
        network_fail(m, e.code == -ERR_POLICY ? 403 : 400, "", e.text);
        return;
    }
    m->spec = spec;
    if (!m->spec && req->method != METHOD_DELETE)
        network_fail(m, 405, "there is no such request", "");
    else
        network_look(m);
}
