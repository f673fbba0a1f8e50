/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc fs: files of an allocation, streamed from its node.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/alloc/alloc.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/limits.h"
#include "cli/stream.h"
#include "common/num.h"

/* --- listing --- */

struct fs_opts {
    bool bytes_only, verbose, job, stat, follow, tail;
    int64_t lines, bytes;
    const char *group;
};

static const char *
size_text(struct cmd *c, int64_t n, bool bytes_only)
{
    char t[SIZE_TEXT];
    if (bytes_only)
        return fmt_i64(c, n);
    return mem_strdup(c, size_format(n < 0 ? 0 : (uint64_t)n, t));
}

static int
name_cmp(const void *a, const void *b)
{
    const struct alloc_file_info *const *x = a, *const *y = b;
    return strcmp(str_or((*x)->name, ""), str_or((*y)->name, ""));
}

/* A directory ends in a slash; the top of the allocation is one. */
static const char *
shown_name(struct cmd *c, const struct alloc_file_info *f)
{
    const char *name = str_or(f->name, "");
    return f->is_dir && !str_suffix(name, "/") ? mem_printf(c, "%s/", name) : name;
}

static int
list_dir(struct cmd *c, const struct fs_opts *o, const char *alloc, const char *path)
{
    struct alloc_file_info_list l;
    if (!api_read_list(c, api_target(c, "/v1/client/fs/ls/%", alloc, "path", path, NULL),
                       &type_alloc_file_info, &l, "Error listing alloc dir"))
        return 1;
    if (l.n)
        qsort(l.v, l.n, sizeof(*l.v), name_cmp);
    struct table t;
    table_init(&t, c, 4);
    table_row(&t, "Mode", "Size", "Modified Time", "Name");
    for (size_t i = 0; i < l.n; i++) {
        const struct alloc_file_info *f = l.v[i];
        table_row(&t, f->file_mode, size_text(c, f->size, o->bytes_only), fmt_time(c, f->mod_time),
                  shown_name(c, f));
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
    table_row(&t, f->file_mode, size_text(c, f->size, o->bytes_only), fmt_time(c, f->mod_time),
              f->content_type, shown_name(c, f));
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
        if (json_decode(ctx, &type_stream_frame, SLICE(f->in.data, end), BUDGET(16 << 20), &ret,
                        &e)) {
            cmd_fail(f->c, "Error following file: %s", e.text);
            return false;
        }
        const struct stream_frame *frame = ret;
        if (!str_empty(frame->file_event))
            cmd_warn(f->c, "paddock: %s", frame->file_event);
        if (frame->data.n > 0)
            fwrite(frame->data.v, 1, frame->data.n, f->c->out);
        buf_consume(&f->in, end);
    }
    f->failed = fflush(f->c->out) != 0 || buf_error(&f->in) != 0;
    return !f->failed;
}

/* From byte `at` on. */
static int
follow_file(struct cmd *c, const char *alloc, const char *path, int64_t at)
{
    struct frames f = {.c = c};
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;
    buf_init(&f.in, 1 << 20);
    char *target = api_target(c, "/v1/client/fs/stream/%", alloc, "path", path, "follow", "true",
                              "origin", "start", "offset", fmt_i64(c, at), NULL);
    struct http_ask *ask = api_ask(c, "GET", target);
    ask->on_body = on_frames;
    ask->arg = &f;
    follow_until_interrupt();
    int rc = c->fetch(c, c->address, ask, &r, &e);
    buf_done(&f.in);
    if (rc < 0)
        return cmd_fail(c, "Error following file: %s", e.text);
    return r->status >= 300 ? stream_bad_status(c, "following file", r) : 0;
}

/* --- a file --- */

struct file {
    struct cmd *c;
    const char *alloc, *path;
    int64_t size;
};

static char *
read_target(const struct file *f, int64_t at)
{
    return api_target(f->c, "/v1/client/fs/readat/%", f->alloc, "path", f->path, "offset",
                      fmt_i64(f->c, at), "limit", fmt_i64(f->c, f->size - at), NULL);
}

static char *
window_target(void *arg, int64_t window)
{
    const struct file *f = arg;
    return read_target(f, f->size > window ? f->size - window : 0);
}

/* Prints the last lines of a file; following goes on from the byte where they began, so nothing is
 * lost or cut. */
static int
last_lines(struct file *f, int64_t lines, bool follow)
{
    struct sink s = {.to = f->c->out, .lines = lines};
    const struct tail t = {window_target, f, false};
    int64_t window = 0;
    size_t at = 0;
    int code = tail_read(f->c, "reading file", &t, &s, &window);
    if (!code && !follow)
        sink_end(&s);
    if (!code && follow && !tail_start(s.kept.data, s.kept.len, lines, &at))
        at = 0;
    int64_t begin = f->size - (int64_t)s.kept.len + (int64_t)at;
    buf_done(&s.kept);
    return code || !follow ? code : follow_file(f->c, f->alloc, f->path, begin < 0 ? 0 : begin);
}

static int
show_file(struct cmd *c, const struct fs_opts *o, const char *alloc,
          const struct alloc_file_info *i, const char *path)
{
    struct file f = {c, alloc, path, i->size};
    struct sink s = {.c = c, .to = c->out};
    int64_t at = o->bytes < 0 ? 0 : i->size > o->bytes ? i->size - o->bytes : 0;
    if (o->lines >= 0 && o->bytes >= 0)
        return cmd_fail(c, "Both -n and -c are not allowed");
    if ((o->tail || o->lines >= 0) && o->bytes < 0 && i->size > 0)
        return last_lines(&f, o->lines >= 0 ? o->lines : TAIL_LINES, o->follow);
    if (o->follow)
        return follow_file(c, alloc, path, at);
    if (o->bytes < 0)
        return stream_get(c, "reading file",
                          api_target(c, "/v1/client/fs/cat/%", alloc, "path", path, NULL), &s);
    return at < i->size ? stream_get(c, "reading file", read_target(&f, at), &s) : 0;
}

int
cmd_alloc_fs(struct cmd *c)
{
    struct fs_opts o = {.lines = -1, .bytes = -1};
    const struct opt opts[] = {
        {"H", OPT_BOOL, &o.bytes_only, NULL, "Sizes in bytes, for programs."},
        {"stat", OPT_BOOL, &o.stat, NULL, "Show what the path is instead of what is in it."},
        {"f", OPT_BOOL, &o.follow, NULL, "Follow: go on as the file grows."},
        {"tail", OPT_BOOL, &o.tail, NULL, "Start near the end (10 lines)."},
        {"n", OPT_INT, &o.lines, "<lines>", "Start so many lines before the end."},
        {"c", OPT_INT, &o.bytes, "<bytes>", "Start so many bytes before the end."},
        {"job", OPT_BOOL, &o.job, NULL, "The argument is a job; one of its allocations is used."},
        {"group", OPT_STRING, &o.group, "<group>", "With -job: the group."},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 2}, &rc))
        return rc;
    const struct allocation *a =
        o.job ? alloc_of_job(c, c->args[0], o.group) : alloc_find(c, c->args[0]);
    if (!a)
        return 1;
    const char *path = c->n_args > 1 ? c->args[1] : "/";
    const struct alloc_file_info *f =
        api_read(c, api_target(c, "/v1/client/fs/stat/%", a->id, "path", path, NULL),
                 &type_alloc_file_info, "Error reading file");
    if (!f)
        return 1;
    if (o.stat)
        return show_stat(c, &o, f);
    return f->is_dir ? list_dir(c, &o, a->id, path) : show_file(c, &o, a->id, f, path);
}
