/* SPDX-License-Identifier: Apache-2.0
 *
 * Images from registries, or from an archive in the task's directory: the engine pulls, or is sent
 * it, and tells how it goes, one document a line; what goes wrong is told in such a line too, under
 * a status of 200.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "codec/base64.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "hand/hand.h"

struct pull {
    struct hand *h;
    struct engine_call *call;
    struct timer *idle, *tell;
    const struct pull_events *up;
    void *arg;
    struct layers *layers;
    const char *image;
    int file;              /* an archive of it; -1: from a registry */
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

static void
pull_free(struct pull *p)
{
    timer_stop(p->idle);
    timer_stop(p->tell);
    buf_done(&p->line);
    fd_close(&p->file);
    talloc_free(p);
}

static void
finish(struct pull *p, const char *why, bool moment)
{
    auto_mem void *tmp = mem_ctx("why");
    const char *text =
        why ? mem_printf(tmp, "Failed to %s `%s`: %s", p->file == -1 ? "pull" : "load", p->image, why)
            : NULL;
    const struct pull_events *up = p->up;
    void *arg = p->arg;
    pull_free(p);
    up->done(arg, text, moment);
}

static void
on_idle(void *arg)
{
    struct pull *p = arg;
    p->idle = NULL;
    engine_cancel(TAKE(p->call));
    finish(p, "the engine says nothing about it any more", true);
}

static void
rearm(struct pull *p)
{
    timer_stop(p->idle);
    p->idle = timer_start(p->h->loop, HAND_PULL_IDLE_MS, on_idle, p);
}

static void
on_tell(void *arg)
{
    struct pull *p = arg;
    auto_mem void *tmp = mem_ctx("tell");
    p->tell = timer_start(p->h->loop, HAND_PULL_TELL_MS, on_tell, p);
    p->up->said(p->arg, layers_text(tmp, p->layers));
}

static void
take_line(struct pull *p)
{
    auto_mem void *tmp = mem_ctx("line");
    struct value *doc = NULL;
    struct err e = ERR_INIT;
    if (p->line.len == 0 || json_decode_value(tmp, (const char *)p->line.data, p->line.len,
                                              BUDGET(HAND_DOCUMENT_MAX), &doc, &e) < 0)
        return;
    layers_take(p->layers, doc);
    const char *error = document_text(doc, "error");
    if (*error && !p->error)
        p->error = mem_strndup(p, error, 512);
}

static bool
on_body(void *arg, const struct http_resp *r, const void *bytes, size_t n)
{
    struct pull *p = arg;
    (void)r;
    rearm(p);
    for (const char *s = bytes, *end = s + n; s < end;) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        buf_put(&p->line, s, (size_t)((nl ? nl : end) - s));
        if (buf_error(&p->line))
            return false;
        if (!nl)
            break;
        take_line(p);
        buf_reset(&p->line);
        s = nl + 1;
    }
    return true;
}

/* What the next try will be told too. */
static bool
lasting(const char *error)
{
    static const char *const words[] = {"not found", "unknown",       "unauthorized",
                                        "denied",    "no basic auth", "does not exist"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strstr(error, words[i]))
            return true;
    return false;
}

/* What is here now, and was not before, is ours. */
static void
on_after(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct pull *p = arg;
    const char *id = document_text(doc, "Id");
    p->call = NULL;
    if (!e && status == 200)
        images_pulled(p->h->images, p->image, p->before, id);
    finish(p, NULL, false);
}

static struct engine_call *
look(struct pull *p,
     void (*done)(void *arg, int status, const struct value *doc, const struct err *e))
{
    auto_mem void *tmp = mem_ctx("target");
    return engine_ask(p->h,
                      &(struct engine_ask){.method = "GET",
                                           .target = mem_printf(tmp, "/images/%s/json", p->image),
                                           .timeout_ms = HAND_ASK_MS,
                                           .done = done,
                                           .arg = p});
}

static void
on_done(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct pull *p = arg;
    auto_mem void *tmp = mem_ctx("error");
    p->call = NULL;
    take_line(p);
    const char *error = p->error ? mem_strdup(tmp, p->error) : NULL;
    if (e && e->code == -ERR_TIMEOUT)
        finish(p, "it took longer than image_pull_timeout", true);
    else if (e)
        finish(p, e->text, true);
    else if (status != 200)
        finish(p, engine_said(doc), status >= 500 && !lasting(engine_said(doc)));
    else if (error)
        finish(p, error, !lasting(error));
    else
        p->call = look(p, on_after);
}

/* Base64 for URLs of a document. NULL: there is nothing to tell. */
static const char *
auth_header(const void *ctx, const struct hand_auth *a)
{
    if (!a || (str_empty(a->username) && str_empty(a->password)))
        return NULL;
    struct value *v = value_map(ctx);
    struct buf b = BUF_INIT(65536), out = BUF_INIT(131072);
    value_map_set(v, "username", value_str(v, str_or(a->username, "")));
    value_map_set(v, "password", value_str(v, str_or(a->password, "")));
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
    struct pull *p = arg;
    struct stat st;
    p->call = NULL;
    if (p->file < -1 ||
        (p->file >= 0 && (fstat(p->file, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0))) {
        finish(p, "there is no such archive in the task's local/", true);
        return;
    }
    if (p->file >= 0) {
        p->ask.file = p->file;
        p->ask.file_len = (size_t)st.st_size;
    }
    if (!e && status == 200)
        p->before = mem_strndup(p, document_text(doc, "Id"), HAND_ID_MAX);
    p->call = engine_ask(p->h, &p->ask);
}

/* -1: none is asked for; else its descriptor, or what went wrong, below that. */
static int
open_archive(const struct hand *h, const char *alloc, const char *task, const struct hand_task *t)
{
    auto_mem void *tmp = mem_ctx("archive");
    if (str_empty(t->load))
        return -1;
    int fd = fd_open_beneath(h->allocs, mem_printf(tmp, "%s/%s/local/%s", alloc, task, t->load),
                             O_RDONLY | O_NONBLOCK, 0, false);
    return fd < 0 ? fd - 1 : fd;
}

struct pull *
pull_start(struct hand *h, const char *alloc, const char *task, const struct hand_task *t,
           const struct pull_events *up, void *arg)
{
    struct pull *p = mem_new(NULL, struct pull);
    auto_mem void *tmp = mem_ctx("pull");
    auto_buf struct buf target = BUF_INIT(16384);
    const char *name, *tag = tag_of(tmp, t->image, &name);
    *p = (struct pull){.h = h, .up = up, .arg = arg, .image = mem_strdup(p, t->image)};
    p->layers = layers_new(p);
    p->file = open_archive(h, alloc, task, t);
    buf_init(&p->line, HAND_PULL_LINE_MAX);
    if (!str_empty(t->load)) {
        buf_puts(&target, "/images/load?quiet=1");
    } else if (t->pull_insecure) { /* podman's own interface alone can be told so */
        buf_puts(&target, "/v4.0.0/libpod/images/pull?tlsVerify=false&reference=");
        http_escape(&target, t->image, false);
    } else {
        buf_puts(&target, "/images/create?fromImage=");
        http_escape(&target, name, false);
        buf_puts(&target, "&tag=");
        http_escape(&target, tag, false);
    }
    rearm(p);
    p->tell = timer_start(h->loop, HAND_PULL_TELL_MS, on_tell, p);
    p->ask = (struct engine_ask){.method = "POST",
                                 .target = mem_strdup(p, buf_str(&target)),
                                 .auth = auth_header(p, t->auth),
                                 .timeout_ms = t->pull_timeout > 0 ? t->pull_timeout / NS_PER_MS
                                                                   : HAND_PULL_MS,
                                 .on_body = on_body,
                                 .done = on_done,
                                 .arg = p};
    p->call = look(p, on_before);
    return p;
}

void
pull_cancel(struct pull *p)
{
    if (!p)
        return;
    engine_cancel(p->call);
    pull_free(p);
}
