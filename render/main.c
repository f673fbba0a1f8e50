/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock-render: one request (struct render_request) comes, one report (struct render_report)
 * goes. What a template asks for and the request has no answer to is told; the agent asks the
 * servers, and starts the program again with more. Files are read and written as the task's user,
 * beneath the task's two directories.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "api/artifact/artifact.h"
#include "common/buf.h"
#include "common/fd.h"
#include "common/hash.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/helper.h"
#include "isolation/launch/helper_talk.h"
#include "render/digest.h"
#include "render/envfile.h"
#include "render/output.h"
#include "template/limits.h"
#include "template/template.h"

enum {
    REPORT_ROOM = 8 * 1024,
    SOURCE_MAX = 4 << 20, /* bytes of a template, and of what `file` reads */
    ASKED_MAX = 256,
    OUTPUT_MAX = 32 << 20, /* bytes of a file */
};

struct render {
    void *ctx;
    const struct render_request *q;
    struct render_report report;
    const char **denied;              /* NULL at the end */
    const struct render_template *at; /* is being rendered */
};

/* --- answers to its questions --- */

static int
read_beneath(struct render *r, const struct artifact_place *at, struct slice *ret, struct err *e)
{
    const char *path = at->path;
    struct stat st;
    auto_fd int fd = fd_open_beneath(at->shared ? HELPER_FD_SHARED : HELPER_FD_TASK, path,
                                     O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0, true);
    if (fd < 0)
        return err_errno(e, -fd, "open \"%.200s\"", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, -ERR_INVALID, "\"%.200s\" is no file", path);
    if (st.st_size > SOURCE_MAX)
        return err_set(e, -ERR_LIMIT, "\"%.200s\" is larger than %d bytes", path, SOURCE_MAX);
    char *p = mem_array(r->ctx, char, SOURCE_MAX);
    ssize_t k = fd_read_full(fd, p, SOURCE_MAX);
    if (k < 0)
        return err_errno(e, (int)-k, "read \"%.200s\"", path);
    *ret = SLICE(p, (size_t)k);
    return 0;
}

/* Reads what the template names as the task would: a relative path begins in its directory. */
static enum template_answer
answer_file(struct render *r, const char *name, const struct value **ret, struct err *e)
{
    const struct artifact_dirs dirs = {r->q->alloc_dir, r->q->task_dir, r->q->secrets_dir};
    struct artifact_place at;
    struct slice text;
    if (artifact_path(r->ctx, name, &dirs, &at, e) < 0) {
        (void)artifact_prefix(e, "file");
        return TEMPLATE_ERROR;
    }
    if (read_beneath(r, &at, &text, e) < 0)
        return TEMPLATE_ERROR;
    *ret = value_strn(r->ctx, text.p, text.n);
    return TEMPLATE_VALUE;
}

static enum template_answer
answer_datum(struct render *r, enum template_kind kind, const struct template_ask *a,
             const struct value **ret, struct err *e)
{
    for (size_t i = 0; i < r->q->data.n; i++) {
        const struct render_datum *d = r->q->data.v[i];
        if (d->kind != (int64_t)kind || !str_eq(str_or(d->key, ""), a->key) ||
            !str_eq(str_or(d->namespace, ""), a->ns) || !str_eq(str_or(d->region, ""), a->region))
            continue;
        if (!str_empty(d->error)) {
            (void)err_set(e, -ERR_FORBIDDEN, "%s", d->error);
            return TEMPLATE_ERROR;
        }
        *ret = d->value;
        return TEMPLATE_VALUE;
    }
    return TEMPLATE_MISSING;
}

static enum template_answer
answer_ask(void *data, const struct template_ask *a, const struct value **ret, struct err *e)
{
    struct render *r = data;
    const char *text;
    enum template_answer how;
    switch (a->kind) {
    case TEMPLATE_ENV:
        text = str_map_get(&r->q->env, a->key);
        *ret = text != NULL ? value_str(r->ctx, text) : NULL;
        return text != NULL ? TEMPLATE_VALUE : TEMPLATE_MISSING;
    case TEMPLATE_FILE:
        return answer_file(r, a->key, ret, e);
    case TEMPLATE_VARIABLE:
        how = answer_datum(r, a->kind, a, ret, e);
        if (how == TEMPLATE_VALUE && (*ret == NULL || (*ret)->kind == VALUE_NULL))
            how = TEMPLATE_MISSING;
        return how;
    case TEMPLATE_VARIABLE_EXISTS:
        how = answer_datum(r, TEMPLATE_VARIABLE, a, ret, e);
        if (how == TEMPLATE_VALUE)
            *ret = value_bool(r->ctx, *ret != NULL && (*ret)->kind != VALUE_NULL);
        return how;
    default:
        return answer_datum(r, a->kind, a, ret, e);
    }
}

/* --- one template --- */

static int
take_env(struct render *r, struct slice text, struct err *e)
{
    if (!r->at->env || envfile_parse(r->ctx, text, &r->report.env, e) == 0)
        return 0;
    return err_prefix(e,
                      "Template failed to read environment variables: error parsing env "
                      "template \"%.200s\"",
                      r->at->path);
}

/* Takes the file of an earlier run, where it may stand in. */
static bool
keep_file(struct render *r, struct render_result *x, struct err *e)
{
    const struct render_template *t = r->at;
    const struct artifact_place at = {.shared = t->shared, .path = t->path};
    struct slice text;
    struct err none = ERR_INIT;
    x->kept = read_beneath(r, &at, &text, &none) == 0;
    if (x->kept)
        (void)take_env(r, text, e);
    return x->kept;
}

static bool
is_among(const struct template_asks *l, const struct template_ask *a)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i].name, a->name))
            return true;
    return false;
}

static int
note_asked(struct render *r, const struct template_result *res, struct err *e)
{
    for (size_t i = 0; i < res->used.n; i++) {
        const struct template_ask *a = &res->used.v[i];
        if (a->kind == TEMPLATE_FILE)
            continue;
        if (r->report.asked.n == ASKED_MAX)
            return err_set(e, -ERR_LIMIT,
                           "the templates of the task ask for more than %d variables and services",
                           ASKED_MAX);
        struct render_asked *x = type_new(r->ctx, &type_render_asked);
        x->kind = a->kind == TEMPLATE_VARIABLE_EXISTS ? TEMPLATE_VARIABLE : a->kind;
        x->key = mem_strdup(x, a->key);
        x->namespace = mem_strdup(x, a->ns);
        x->region = mem_strdup(x, a->region);
        x->name = mem_strdup(x, a->name);
        x->index = r->at->index;
        x->missing = is_among(&res->missing, a);
        list_add(r->ctx, r->report.asked, x);
    }
    return 0;
}

static int
find_text(struct render *r, struct slice *text, struct err *e)
{
    const struct render_template *t = r->at;
    const struct artifact_place at = {.shared = t->source_shared, .path = t->source};
    *text = SLICE(str_or(t->text, ""), strlen(str_or(t->text, "")));
    if (str_empty(t->source))
        return 0;
    return read_beneath(r, &at, text, e);
}

static int
execute(struct render *r, struct buf *out, struct template_result *res, struct err *e)
{
    const struct render_template *t = r->at;
    const struct template_grammar g = {
        .left = t->left, .right = t->right, .table = TEMPLATE_TASK, .denied = r->denied};
    const struct template_env env = {.ask = answer_ask,
                                     .data = r,
                                     .digest = render_digest,
                                     .now_ns = r->q->now,
                                     .ns = r->q->namespace,
                                     .region = r->q->region,
                                     .error_on_missing_key = t->missing_key};
    const struct template_limits limits = {.output = OUTPUT_MAX};
    struct template_tree *tree = NULL;
    struct slice text;
    int rc = find_text(r, &text, e);
    if (rc == 0)
        rc = template_parse(r->ctx, &g, text, &tree, e);
    const struct template_input in = {.tree = tree, .env = &env, .limits = &limits};
    return rc == 0 ? template_exec(r->ctx, &in, out, res, e) : rc;
}

static int
render_one(struct render *r, struct err *e)
{
    const struct render_template *t = r->at;
    auto_buf struct buf out = BUF_INIT(OUTPUT_MAX);
    struct template_result res = {0};
    struct render_result *x = type_new(r->ctx, &type_render_result);
    x->index = t->index;
    list_add(r->ctx, r->report.results, x);
    if (t->keep == RENDER_KEEP_ALWAYS && keep_file(r, x, e))
        return e->code;
    int rc = execute(r, &out, &res, e);
    if (rc == -ERR_INVALID && res.missing.n > 0) { /* of what is nothing as yet */
        err_clear(e);
        rc = 0;
    }
    struct err more = ERR_INIT; /* also of a mistake: another answer may mend it */
    if (note_asked(r, &res, &more) < 0 && rc == 0) {
        *e = more;
        rc = more.code;
    }
    x->waits = res.missing.n > 0;
    if (x->waits && t->keep == RENDER_KEEP_WAITING)
        (void)keep_file(r, x, e);
    if (rc < 0 || x->waits)
        return rc < 0 ? rc : e->code;
    if (buf_error(&out) < 0)
        return err_set(e, -ERR_LIMIT, "the text is larger than %d bytes", OUTPUT_MAX);
    const struct output_wish w = {.dir = t->shared ? HELPER_FD_SHARED : HELPER_FD_TASK,
                                  .path = t->path,
                                  .perms = t->perms,
                                  .uid = t->uid.set ? t->uid.v : -1,
                                  .gid = t->gid.set ? t->gid.v : -1};
    rc = output_write(&w, SLICE(out.data, out.len), &x->changed, e);
    x->digest = rc == 0 ? (int64_t)(hash_bytes(out.data, out.len) | 1) : 0;
    return rc == 0 ? take_env(r, SLICE(out.data, out.len), e) : rc;
}

static int
send_report(struct render *r)
{
    auto_buf struct buf b = BUF_INIT(HELPER_REPORT_MAX);
    mp_encode(&b, &type_render_report, &r->report);
    if (buf_error(&b) < 0) {
        r->report =
            (struct render_report){.error = "its variables and what it asks for are too much"};
        buf_reset(&b);
        mp_encode(&b, &type_render_report, &r->report);
    }
    return helper_report(&b);
}

int
main(void)
{
    auto_mem void *ctx = mem_ctx("render");
    struct err e = ERR_INIT;
    void *q = NULL;
    struct render r = {.ctx = ctx};
    int rc = helper_receive(ctx, &type_render_request, &q, &e);
    if (rc == -ERR_CLOSED) {
        fprintf(stderr, "paddock-render is started by paddock-warden, not by hand\n");
        return 1;
    }
    (void)umask(022);
    r.q = q;
    r.denied = mem_array(ctx, const char *, rc == 0 ? r.q->denied.n + 1 : 1);
    for (size_t i = 0; rc == 0 && i < r.q->denied.n; i++)
        r.denied[i] = r.q->denied.v[i];
    bool understood = rc == 0;
    for (size_t i = 0; understood && i < r.q->templates.n; i++) {
        struct err own = ERR_INIT; /* the first one is told; others are rendered all the same */
        r.at = r.q->templates.v[i];
        if (render_one(&r, &own) < 0 && rc == 0) {
            rc = own.code;
            e = own;
        }
    }
    if (rc < 0) {
        str_tame(e.text, false);
        r.report.error = e.text;
    }
    return send_report(&r);
}
