/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc logs, alloc fs: files of an allocation, streamed from its node.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/alloc.h"
#include "cli/api.h"
#include "cli/format.h"
#include "codec/base64.h"
#include "common/num.h"

enum {
    TAIL_LINES = 10,
    BYTES_PER_LINE = 120, /* what Nomad's own clients assume */
    STREAMS_MAX = 2
};

/* --- streaming --- */

/* Raw bytes to a file; with `lines`, only the last so many of them, once the stream has ended. */
struct sink {
    struct cmd *c;
    FILE *to;
    bool keep; /* collect for the last lines */
    struct buf kept;
    bool failed;
};

static bool
on_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct sink *s = arg;
    (void)r;
    if (s->keep) {
        buf_put(&s->kept, p, n);
        return buf_error(&s->kept) == 0;
    }
    if (fwrite(p, 1, n, s->to) != n || fflush(s->to) != 0) {
        s->failed = true;
        return false;
    }
    return true;
}

static void
put_last_lines(struct sink *s, int64_t lines)
{
    const uint8_t *p = s->kept.data;
    size_t at = s->kept.len;
    if (at && p[at - 1] == '\n')
        at--;
    while (at > 0) {
        if (p[at - 1] == '\n' && --lines <= 0)
            break;
        at--;
    }
    fwrite(p + at, 1, s->kept.len - at, s->to);
}

static int
fail_status(struct cmd *c, const char *what, const struct http_resp *r)
{
    return cmd_fail(c, "Error %s: Unexpected response code: %d (%.*s)", what, r->status,
                    (int)(r->body_len < 900 ? r->body_len : 900), r->body);
}

/* One stream, to its end. */
static int
stream(struct cmd *c, const char *what, char *target, int64_t lines)
{
    struct sink s = {.c = c, .to = c->out, .keep = lines > 0};
    struct http_ask *ask = api_ask(c, "GET", target);
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;
    buf_init(&s.kept, 256 << 20);
    ask->on_body = on_body;
    ask->arg = &s;
    int rc = c->fetch(c, c->address, ask, &r, &e), code = 0;
    if (rc < 0)
        code = cmd_fail(c, "Error %s: %s", what, s.failed ? "writing the output failed" : e.text);
    else if (r->status >= 300)
        code = fail_status(c, what, r);
    else if (lines > 0)
        put_last_lines(&s, lines);
    buf_done(&s.kept);
    return code;
}

/* Several streams at once, for ever: until all have ended or one fails. */
struct follow {
    struct cmd *c;
    struct loop *loop;
    size_t open;
    int code;
    struct follow_one {
        struct follow *all;
        struct sink sink;
        struct http_client *client;
    } one[STREAMS_MAX];
};

static void
follow_done(void *arg, const struct err *e, const struct http_resp *r)
{
    /* the ask's argument is the sink, the first member but one: see follow_start */
    struct sink *s = arg;
    struct follow_one *o = (struct follow_one *)(void *)((char *)s - offsetof(struct follow_one, sink));
    if (e && !o->all->code)
        o->all->code = cmd_fail(o->all->c, "Error reading logs: %s", e->text);
    else if (r && r->status >= 300)
        o->all->code = fail_status(o->all->c, "reading logs", r);
    if (--o->all->open == 0 || o->all->code)
        loop_stop(o->all->loop);
}

static int
follow_start(struct follow *f, size_t i, char *target, FILE *to)
{
    struct err e = ERR_INIT;
    struct follow_one *o = &f->one[i];
    o->all = f;
    o->sink = (struct sink){.c = f->c, .to = to};
    o->client = http_client_new(f->loop, f->c->address, &e);
    if (!o->client)
        return cmd_fail(f->c, "Error reading logs: %s", e.text);
    struct http_ask *ask = api_ask(f->c, "GET", target);
    ask->on_body = on_body;
    ask->done = follow_done;
    ask->arg = &o->sink;
    f->open++;
    http_send(o->client, ask);
    return 0;
}

static int
follow_both(struct cmd *c, char *out, char *err)
{
    struct follow f = {.c = c, .loop = loop_new()};
    f.code = follow_start(&f, 0, out, c->out);
    if (!f.code)
        f.code = follow_start(&f, 1, err, c->err);
    if (!f.code)
        loop_run(f.loop);
    f.code = f.code ? f.code : 0;
    for (size_t i = 0; i < STREAMS_MAX; i++) {
        if (!f.one[i].client)
            continue;
        f.open += 1; /* what closing completes is no news */
        http_client_close(f.one[i].client);
    }
    loop_free(f.loop);
    return f.code;
}

/* --- logs --- */

struct log_opts {
    bool follow, tail, err, out, job, verbose;
    const char *task, *group;
    int64_t lines, bytes;
};

static char *
log_target(struct cmd *c, const struct log_opts *o, const char *alloc, const char *task,
           const char *type)
{
    bool from_end = o->tail || o->lines >= 0 || o->bytes >= 0;
    int64_t lines = o->lines >= 0 ? o->lines : TAIL_LINES;
    int64_t offset = o->bytes >= 0 ? o->bytes : lines * BYTES_PER_LINE;
    return api_target(c, "/v1/client/fs/logs/%", alloc, "task", task, "type", type, "follow",
                      o->follow ? "true" : "false", "plain", "true", "origin",
                      from_end ? "end" : "start", "offset", from_end ? fmt_i64(c, offset) : "0",
                      NULL);
}

static int
show_logs(struct cmd *c, const struct log_opts *o, const struct allocation *a, const char *task)
{
    bool both = o->follow && o->out == o->err;
    const char *type = o->err ? "stderr" : "stdout";
    char *target = log_target(c, o, a->id, task, type);
    if (both)
        return follow_both(c, log_target(c, o, a->id, task, "stdout"),
                           log_target(c, o, a->id, task, "stderr"));
    /* lines are cut exactly where the end is known */
    int64_t lines = 0;
    if (!o->follow && o->bytes < 0 && (o->tail || o->lines >= 0))
        lines = o->lines >= 0 ? o->lines : TAIL_LINES;
    if (!o->follow && o->out && o->err) {
        int code = stream(c, "reading logs", log_target(c, o, a->id, task, "stdout"), lines);
        return code ? code : stream(c, "reading logs", target, lines);
    }
    return stream(c, "reading logs", target, lines);
}

int
cmd_alloc_logs(struct cmd *c)
{
    struct log_opts o = {.lines = -1, .bytes = -1};
    const struct opt opts[] = {
        {"stdout", OPT_BOOL, &o.out, NULL, "Standard output (the default; with -f both).", NULL},
        {"stderr", OPT_BOOL, &o.err, NULL, "Standard error.", NULL},
        {"f", OPT_BOOL, &o.follow, NULL, "Follow: go on as the log grows.", NULL},
        {"tail", OPT_BOOL, &o.tail, NULL, "Start near the end (10 lines).", NULL},
        {"n", OPT_INT, &o.lines, "<lines>", "Start so many lines before the end.", NULL},
        {"c", OPT_INT, &o.bytes, "<bytes>", "Start so many bytes before the end.", NULL},
        {"task", OPT_STRING, &o.task, "<task>", "The task.", NULL},
        {"job", OPT_BOOL, &o.job, NULL, "The argument is a job; one of its allocations is used.",
         NULL},
        {"group", OPT_STRING, &o.group, "<group>", "With -job: the group.", NULL},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids.", NULL},
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 2}, &rc))
        return rc;
    const struct allocation *a =
        o.job ? alloc_of_job(c, c->args[0], o.group) : alloc_find(c, c->args[0]);
    if (!a)
        return 1;
    const char *task = alloc_task(c, a, c->n_args > 1 ? c->args[1] : o.task);
    return task ? show_logs(c, &o, a, task) : 1;
}

/* --- files --- */

struct fs_opts {
    bool human, verbose, job, stat, follow, tail;
    int64_t lines, bytes;
    const char *group;
};

static const char *
size_text(struct cmd *c, int64_t n, bool human)
{
    char t[SIZE_TEXT];
    if (!human)
        return fmt_i64(c, n);
    return mem_strdup(c, size_format(n < 0 ? 0 : (uint64_t)n, t));
}

static int
name_cmp(const void *a, const void *b)
{
    const struct alloc_file_info *const *x = a, *const *y = b;
    return strcmp(str_or((*x)->name, ""), str_or((*y)->name, ""));
}

static int
list_dir(struct cmd *c, const struct fs_opts *o, const char *alloc, const char *path)
{
    struct alloc_file_info_list l;
    struct err e = ERR_INIT;
    if (api_list(c, api_target(c, "/v1/client/fs/ls/%", alloc, "path", path, NULL),
                 &type_alloc_file_info, &l, NULL, &e))
        return cmd_fail(c, "Error listing alloc dir: %s", e.text);
    if (l.n)
        qsort(l.v, l.n, sizeof(*l.v), name_cmp);
    struct table t;
    table_init(&t, c, 4);
    table_row(&t, "Mode", "Size", "Modified Time", "Name");
    for (size_t i = 0; i < l.n; i++) {
        const struct alloc_file_info *f = l.v[i];
        table_row(&t, f->file_mode, size_text(c, f->size, o->human), fmt_time(c, f->mod_time),
                  f->is_dir ? mem_printf(c, "%s/", f->name) : f->name);
    }
    table_print(&t);
    return 0;
}

static int
show_stat(struct cmd *c, const struct fs_opts *o, const struct alloc_file_info *f)
{
    struct table t;
    table_init(&t, c, 5);
    table_row(&t, "Mode", "Size", "Modified Time", "Content Type", "Name");
    table_row(&t, f->file_mode, size_text(c, f->size, o->human), fmt_time(c, f->mod_time),
              f->content_type, f->is_dir ? mem_printf(c, "%s/", f->name) : f->name);
    table_print(&t);
    return 0;
}

/* Frames of the follow stream: {"Data": base64, ...}{...}; heartbeats are {}. */
struct frames {
    struct cmd *c;
    struct buf in;
    bool failed;
};

static size_t
object_end(const struct buf *b)
{
    int depth = 0;
    bool text = false;
    for (size_t i = 0; i < b->len; i++) {
        char ch = (char)b->data[i];
        if (text && ch == '\\')
            i++;
        else if (ch == '"')
            text = !text;
        else if (!text && ch == '{')
            depth++;
        else if (!text && ch == '}' && --depth == 0)
            return i + 1;
    }
    return 0;
}

static bool
on_frames(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct frames *f = arg;
    (void)r;
    buf_put(&f->in, p, n);
    for (size_t end; (end = object_end(&f->in)) > 0;) {
        auto_mem void *ctx = mem_ctx("frame");
        struct err e = ERR_INIT;
        void *ret = NULL;
        if (json_decode(ctx, &type_stream_frame, (char *)f->in.data, end, 0, BUDGET(16 << 20), &ret,
                        &e)) {
            cmd_fail(f->c, "Error following file: %s", e.text);
            return false;
        }
        const struct stream_frame *frame = ret;
        if (!str_empty(frame->file_event))
            cmd_warn(f->c, "paddock: %s", frame->file_event);
        fwrite(frame->data.v, 1, frame->data.n, f->c->out);
        buf_consume(&f->in, end);
    }
    f->failed = fflush(f->c->out) != 0 || buf_error(&f->in) != 0;
    return !f->failed;
}

static int
follow_file(struct cmd *c, const char *alloc, const char *path, int64_t from_end)
{
    struct frames f = {.c = c};
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;
    buf_init(&f.in, 1 << 20);
    char *target = api_target(c, "/v1/client/fs/stream/%", alloc, "path", path, "follow", "true",
                              "origin", from_end >= 0 ? "end" : "start", "offset",
                              from_end >= 0 ? fmt_i64(c, from_end) : "0", NULL);
    struct http_ask *ask = api_ask(c, "GET", target);
    ask->on_body = on_frames;
    ask->arg = &f;
    int rc = c->fetch(c, c->address, ask, &r, &e);
    buf_done(&f.in);
    if (rc < 0)
        return cmd_fail(c, "Error following file: %s", e.text);
    return r->status >= 300 ? fail_status(c, "following file", r) : 0;
}

static int
show_file(struct cmd *c, const struct fs_opts *o, const char *alloc,
          const struct alloc_file_info *f, const char *path)
{
    int64_t lines = o->lines >= 0 ? o->lines : TAIL_LINES;
    int64_t bytes = o->bytes >= 0 ? o->bytes : lines * BYTES_PER_LINE;
    bool from_end = o->tail || o->lines >= 0 || o->bytes >= 0;
    if (o->follow)
        return follow_file(c, alloc, path, from_end ? bytes : -1);
    if (!from_end)
        return stream(c, "reading file", api_target(c, "/v1/client/fs/cat/%", alloc, "path", path,
                                                    NULL), 0);
    int64_t at = f->size > bytes ? f->size - bytes : 0;
    char *target = api_target(c, "/v1/client/fs/readat/%", alloc, "path", path, "offset",
                              fmt_i64(c, at), "limit", fmt_i64(c, f->size - at), NULL);
    return stream(c, "reading file", target, o->bytes >= 0 ? 0 : lines);
}

int
cmd_alloc_fs(struct cmd *c)
{
    struct fs_opts o = {.lines = -1, .bytes = -1};
    const struct opt opts[] = {
        {"H", OPT_BOOL, &o.human, NULL, "Sizes for people.", NULL},
        {"stat", OPT_BOOL, &o.stat, NULL, "Show what the path is instead of what is in it.", NULL},
        {"f", OPT_BOOL, &o.follow, NULL, "Follow: go on as the file grows.", NULL},
        {"tail", OPT_BOOL, &o.tail, NULL, "Start near the end (10 lines).", NULL},
        {"n", OPT_INT, &o.lines, "<lines>", "Start so many lines before the end.", NULL},
        {"c", OPT_INT, &o.bytes, "<bytes>", "Start so many bytes before the end.", NULL},
        {"job", OPT_BOOL, &o.job, NULL, "The argument is a job; one of its allocations is used.",
         NULL},
        {"group", OPT_STRING, &o.group, "<group>", "With -job: the group.", NULL},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids.", NULL},
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 2}, &rc))
        return rc;
    const struct allocation *a =
        o.job ? alloc_of_job(c, c->args[0], o.group) : alloc_find(c, c->args[0]);
    if (!a)
        return 1;
    const char *path = c->n_args > 1 ? c->args[1] : "/";
    struct err e = ERR_INIT;
    void *ret = NULL;
    if (api_get(c, api_target(c, "/v1/client/fs/stat/%", a->id, "path", path, NULL),
                &type_alloc_file_info, &ret, NULL, &e))
        return cmd_fail(c, "Error reading file: %s", e.text);
    const struct alloc_file_info *f = ret;
    if (o.stat)
        return show_stat(c, &o, f);
    return f->is_dir ? list_dir(c, &o, a->id, path) : show_file(c, &o, a->id, f, path);
}
