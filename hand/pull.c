/* SPDX-License-Identifier: Apache-2.0
 *
 * Images from registries, or from an archive in the task's directory: the engine pulls, or is sent
 * the archive, and tells how it goes, one document a line; what goes wrong is told in such a line
 * too, under a status of 200.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <utlist.h>

#include "codec/base64.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"

struct pull { /* who waits for an image */
    struct pull *prev, *next;
    struct hand *h;
    struct transfer *of; /* NULL: it is still asked in whose name */
    struct credentials_ask *asking;
    struct timer *deadline, *tell, *refused;
    const struct pull_events *up;
    void *arg;
    const char *image, *why; /* `why`: it is not asked for at all */
    bool insecure, soft;
    int file; /* an archive of it; -1: from a registry */
};

/* An image on its way, for all who want it in the same name: whose word counts is the engine's and
 * the registry's, for those credentials alone. */
struct transfer {
    struct transfer *prev, *next;
    struct hand *h;
    struct engine_call *call;
    struct timer *idle;
    struct pull *waits;
    struct layers *layers;
    const char *image;
    int file;
    char *before;          /* its id, when it was here already */
    struct engine_ask ask; /* of the pull itself; strings are ours */
    struct buf line;
    char *error; /* the engine's own; NULL: none */
};

/* [HOST[:PORT]/]PATH[:TAG][@DIGEST]: the tag, or the digest, which counts more; "latest" where
 * there is neither. */
static const char *
tag_of(const void *ctx, const char *image, const char **ret_name)
{
    const char *at = strchr(image, '@'), *end = at ? at : image + strlen(image);
    const char *colon = end;
    while (colon > image && *colon != ':' && *colon != '/')
        colon--;
    bool tag = *colon == ':' && colon > image;
    *ret_name = mem_strndup(ctx, image, (size_t)((tag ? colon : end) - image));
    if (at)
        return mem_strdup(ctx, at + 1);
    return tag ? mem_strndup(ctx, colon + 1, (size_t)(end - colon - 1)) : "latest";
}

bool
pull_first(const struct hand_task *t)
{
    auto_mem void *tmp = mem_ctx("image");
    const char *name;
    return t->force_pull || !str_empty(t->load) || str_eq(tag_of(tmp, t->image, &name), "latest");
}

/* --- who waits --- */

static void
pull_free(struct pull *p)
{
    timer_stop(p->deadline);
    timer_stop(p->tell);
    timer_stop(p->refused);
    credentials_cancel(p->asking);
    fd_close(&p->file);
    talloc_free(p);
}

static void
pull_finish(struct pull *p, const char *why, bool moment)
{
    auto_mem void *tmp = mem_ctx("why");
    const char *text = why ? mem_printf(tmp, "Failed to %s `%s`: %s",
                                        p->file == -1 ? "pull" : "load", p->image, why)
                           : NULL;
    const struct pull_events *up = p->up;
    void *arg = p->arg;
    pull_free(p);
    up->done(arg, text, moment);
}

static void
on_tell(void *arg)
{
    struct pull *p = arg;
    auto_mem void *tmp = mem_ctx("tell");
    p->tell = timer_start(p->h->loop, HAND_PULL_TELL_MS, on_tell, p);
    if (p->of)
        p->up->said(p->arg, layers_text(tmp, p->of->layers));
}

/* --- the transfer --- */

static void
transfer_free(struct transfer *t)
{
    DL_DELETE(t->h->transfers, t);
    engine_cancel(t->call);
    timer_stop(t->idle);
    buf_done(&t->line);
    talloc_free(t);
}

static void
pull_over(struct transfer *t, const char *why, bool moment)
{
    auto_mem void *tmp = mem_ctx("why");
    const char *text = why ? mem_strdup(tmp, why) : NULL;
    struct pull *all = t->waits;
    transfer_free(t);
    while (all) {
        struct pull *p = all;
        DL_DELETE(all, p);
        p->of = NULL;
        pull_finish(p, text, moment);
    }
}

static void
on_idle(void *arg)
{
    struct transfer *t = arg;
    t->idle = NULL;
    pull_over(t, "the engine says nothing about it any more", true);
}

static void
pull_rearm(struct transfer *t)
{
    int64_t ns = t->h->engine->pull_idle;
    timer_stop(t->idle);
    t->idle = timer_start(t->h->loop, ns > 0 ? ns / NS_PER_MS : HAND_PULL_IDLE_MS, on_idle, t);
}

/* The last one takes it along. */
static void
pull_leave(struct pull *p)
{
    struct transfer *t = TAKE(p->of);
    if (!t)
        return;
    DL_DELETE(t->waits, p);
    if (!t->waits)
        transfer_free(t);
}

static void
on_deadline(void *arg)
{
    struct pull *p = arg;
    p->deadline = NULL;
    pull_leave(p);
    pull_finish(p, "it took longer than image_pull_timeout", true);
}

static void
take_line(struct transfer *t)
{
    auto_mem void *tmp = mem_ctx("line");
    struct value *doc = NULL;
    struct err e = ERR_INIT;
    if (t->line.len == 0 || json_decode_value(tmp, SLICE(t->line.data, t->line.len),
                                              BUDGET(HAND_DOCUMENT_MAX), &doc, &e) < 0)
        return;
    layers_take(t->layers, doc);
    const char *error = document_text(doc, "error");
    if (*error && !t->error)
        t->error = mem_strndup(t, error, 512);
}

static bool
on_body(void *arg, const struct http_resp *r, const void *bytes, size_t n)
{
    struct transfer *t = arg;
    (void)r;
    pull_rearm(t);
    for (const char *s = bytes, *end = s + n; s < end;) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        buf_put(&t->line, s, (size_t)((nl ? nl : end) - s));
        if (buf_error(&t->line))
            return false;
        if (!nl)
            break;
        take_line(t);
        buf_reset(&t->line);
        s = nl + 1;
    }
    return true;
}

/* Says whether the next try will get the same answer. */
static bool
pull_lasting(const char *error)
{
    static const char *const words[] = {"not found", "unknown",       "unauthorized",
                                        "denied",    "no basic auth", "does not exist"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strstr(error, words[i]))
            return true;
    return false;
}

/* Notes the image as ours when it is here now and was not before. */
static void
on_after(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct transfer *t = arg;
    const char *id = document_text(doc, "Id");
    t->call = NULL;
    if (!e && status == 200)
        images_pulled(t->h->images, t->image, t->before, id);
    pull_over(t, NULL, false);
}

static struct engine_call *
pull_look(struct transfer *t,
          void (*done)(void *arg, int status, const struct value *doc, const struct err *e))
{
    auto_mem void *tmp = mem_ctx("target");
    return engine_ask(t->h,
                      &(struct engine_ask){.method = "GET",
                                           .target = mem_printf(tmp, "/images/%s/json", t->image),
                                           .timeout_ms = HAND_ASK_MS,
                                           .done = done,
                                           .arg = t});
}

static void
on_done(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct transfer *t = arg;
    auto_mem void *tmp = mem_ctx("error");
    t->call = NULL;
    take_line(t);
    const char *error = t->error ? mem_strdup(tmp, t->error) : NULL;
    if (e)
        pull_over(t, e->text, true);
    else if (status != 200)
        pull_over(t, engine_said(doc), status >= 500 && !pull_lasting(engine_said(doc)));
    else if (error)
        pull_over(t, error, !pull_lasting(error));
    else
        t->call = pull_look(t, on_after);
}

/* Base64 for URLs of a document. NULL: there is nothing to tell. */
static const char *
auth_header(const void *ctx, const struct hand_auth *a)
{
    if (!a || (str_empty(a->username) && str_empty(a->password) && str_empty(a->identity_token)))
        return NULL;
    struct value *v = value_map(ctx);
    struct buf b = BUF_INIT(65536), out = BUF_INIT(131072);
    if (str_empty(a->identity_token)) {
        value_map_set(v, "username", value_str(v, str_or(a->username, "")));
        value_map_set(v, "password", value_str(v, str_or(a->password, "")));
    } else {
        value_map_set(v, "identitytoken", value_str(v, a->identity_token));
    }
    value_map_set(v, "serveraddress", value_str(v, str_or(a->server_address, "")));
    json_encode_value(&b, v, 0);
    base64_encode(&out, b.data, b.len);
    char *text = mem_strdup(ctx, buf_str(&out));
    for (char *c = text; *c; c++)
        *c = (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c);
    buf_done(&b);
    buf_done(&out);
    return text;
}

static void
on_before(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct transfer *t = arg;
    struct stat st;
    t->call = NULL;
    if (t->file >= 0 && (fstat(t->file, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)) {
        pull_over(t, "it is no archive", true);
        return;
    }
    if (t->file >= 0) {
        t->ask.file = t->file;
        t->ask.file_len = (size_t)st.st_size;
    }
    if (!e && status == 200)
        t->before = mem_strndup(t, document_text(doc, "Id"), HAND_ID_MAX);
    t->call = engine_ask(t->h, &t->ask);
}

static const char *
target_of(const void *ctx, const struct pull *p)
{
    auto_mem void *tmp = mem_ctx("pull");
    auto_buf struct buf target = BUF_INIT(16384);
    const char *name, *tag = tag_of(tmp, p->image, &name);
    if (p->file >= 0) {
        buf_puts(&target, "/images/load?quiet=1");
    } else if (p->insecure) { /* podman's own interface alone can be told so */
        buf_puts(&target, "/v4.0.0/libpod/images/pull?tlsVerify=false&reference=");
        http_escape(&target, p->image, false);
    } else {
        buf_puts(&target, "/images/create?fromImage=");
        http_escape(&target, name, false);
        buf_puts(&target, "&tag=");
        http_escape(&target, tag, false);
    }
    return mem_strdup(ctx, buf_str(&target));
}

static struct transfer *
transfer_new(const struct pull *p, const char *target, const char *auth)
{
    struct transfer *t = mem_new(NULL, struct transfer);
    *t = (struct transfer){.h = p->h, .image = mem_strdup(t, p->image), .file = p->file};
    t->layers = layers_new(t);
    buf_init(&t->line, HAND_PULL_LINE_MAX);
    t->ask = (struct engine_ask){.method = "POST",
                                 .target = mem_strdup(t, target),
                                 .auth = auth ? mem_strdup(t, auth) : NULL,
                                 .on_body = on_body,
                                 .done = on_done,
                                 .arg = t};
    DL_APPEND(p->h->transfers, t);
    pull_rearm(t);
    t->call = pull_look(t, on_before);
    return t;
}

/* Joins a transfer of the same image in the same name, or starts one; an archive is its task's
 * own. */
static void
pull_join(struct pull *p, const struct hand_auth *a)
{
    auto_mem void *tmp = mem_ctx("join");
    const char *target = target_of(tmp, p), *auth = auth_header(tmp, a);
    struct transfer *t = NULL;
    if (p->file < 0)
        DL_FOREACH(p->h->transfers, t)
    if (t->file < 0 && str_eq(t->ask.target, target) &&
        str_eq(str_or(t->ask.auth, ""), str_or(auth, "")))
        break;
    if (!t)
        t = transfer_new(p, target, auth);
    DL_APPEND(t->waits, p);
    p->of = t;
}

static void
on_refused(void *arg)
{
    struct pull *p = arg;
    p->refused = NULL;
    pull_finish(p, p->why, true);
}

/* Never from inside of pull_start(). */
static void
pull_refuse(struct pull *p, const char *why)
{
    p->why = why;
    p->refused = timer_start(p->h->loop, 0, on_refused, p);
}

static void
on_credentials(void *arg, const struct hand_auth *auth, const char *why)
{
    struct pull *p = arg;
    auto_mem void *tmp = mem_ctx("why");
    p->asking = NULL;
    if (why && !p->soft)
        pull_finish(
            p, mem_printf(tmp, "Failed to find docker auth for repo \"%s\": %s", p->image, why),
            true);
    else
        pull_join(p, auth);
}

/* -1: none is asked for, or it is not there. */
static int
open_archive(const struct hand *h, const char *alloc, const char *task, const struct hand_task *t)
{
    auto_mem void *tmp = mem_ctx("archive");
    return str_empty(t->load)
               ? -1
               : fd_open_beneath(h->allocs, mem_printf(tmp, "%s/%s/local/%s", alloc, task, t->load),
                                 O_RDONLY | O_NONBLOCK, 0, false);
}

struct pull *
pull_start(struct hand *h, const char *alloc, const char *task, const struct hand_task *t,
           const struct pull_events *up, void *arg)
{
    struct pull *p = mem_new(NULL, struct pull);
    bool own = t->auth && (!str_empty(t->auth->username) || !str_empty(t->auth->password) ||
                           !str_empty(t->auth->server_address));
    *p = (struct pull){.h = h, .up = up, .arg = arg, .image = mem_strdup(p, t->image)};
    p->insecure = t->pull_insecure;
    p->soft = t->auth_soft_fail;
    p->file = open_archive(h, alloc, task, t);
    int64_t ns = t->pull_timeout > 0 ? t->pull_timeout : h->engine->pull_timeout;
    int64_t ms = ns > 0 ? ns / NS_PER_MS : HAND_PULL_MS;
    p->deadline = timer_start(h->loop, ms, on_deadline, p);
    p->tell = timer_start(h->loop, HAND_PULL_TELL_MS, on_tell, p);
    if (!str_empty(t->load) && p->file < 0) {
        p->file = -2; /* of a load */
        pull_refuse(p, "there is no such archive in the task's local/");
    } else if (own || !str_empty(t->load) || !h->credentials) {
        pull_join(p, t->auth);
    } else {
        p->asking = credentials_find(h->credentials, p->image, on_credentials, p);
    }
    return p;
}

void
pull_cancel(struct pull *p)
{
    if (!p)
        return;
    pull_leave(p);
    pull_free(p);
}
