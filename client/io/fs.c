/* SPDX-License-Identifier: Apache-2.0 */
#include "client/io/fs.h"

#include <string.h>

#include "api/limits.h"
#include "api/plain.h"
#include "client/alloc/alloc_runner.h"
#include "client/limits.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"

/* Every component is checked; "." and empty ones vanish, ".." is refused. Nothing gets by that the
 * warden would take for an attack, since it closes the connection, which is not the reader's alone.
 */
int
fs_check_path(const void *ctx, const char *path, const char **ret, struct err *e)
{
    if (strlen(path) > FS_PATH_MAX)
        return err_set(e, -ERR_INVALID, "the path is longer than %d bytes", FS_PATH_MAX);
    char *copy = mem_strdup(ctx, path);
    char *out = mem_strdup(ctx, "");
    char *save = NULL;
    size_t depth = 0;
    for (char *w = strtok_r(copy, "/", &save); w; w = strtok_r(NULL, "/", &save)) {
        if (strcmp(w, ".") == 0)
            continue;
        if (strcmp(w, "..") == 0)
            return err_set(e, -ERR_FORBIDDEN, "path \"%.200s\" leaves the allocation directory",
                           path);
        if (depth == 1 && (strcmp(w, "secrets") == 0 || strcmp(w, "private") == 0))
            return err_set(e, -ERR_FORBIDDEN,
                           "reading \"%.200s\" is not allowed: secrets are not served", path);
        out = mem_printf(ctx, "%s%s%s", out, depth ? "/" : "", w);
        depth++;
    }
    if (!plain_path(out))
        return err_set(
            e, -ERR_INVALID,
            "path \"%.200s\" holds control characters, a name of more than 255 bytes or more than "
            "%d of them, or is longer than %d bytes",
            path, JOB_PATH_DEPTH_MAX, JOB_PATH_MAX);
    *ret = out;
    return 0;
}

struct files_op { /* a talloc context */
    struct ground *g;
    char id[UUID_TEXT];
    const char *path;
    bool stat;
    struct alloc_files files;
    client_files_done *done;
    void *arg;
    struct err e;
};

static void
files_finish(struct files_op *op)
{
    op->done(op->arg, op->e.code ? &op->e : NULL, op->e.code ? NULL : &op->files);
    struct ground *g = op->g;
    talloc_free(op);
    hold_release(&g->hold);
}

static void
files_posted(void *arg)
{
    files_finish(arg);
}

static void files_ask(struct files_op *op, int64_t offset);

static void
on_files(void *arg, const struct err *e, struct warden_reply *r)
{
    struct files_op *op = arg;
    if (e) {
        err_set(&op->e, e->code, "%s", e->text);
        files_finish(op);
        return;
    }
    if (!op->stat && r->msg->files.n > FS_FILES_MAX - op->files.files.n) {
        err_set(&op->e, -ERR_LIMIT,
                "\"%.200s\" has more than %d entries: ask for a file in it by its name",
                op->path[0] ? op->path : "/", FS_FILES_MAX);
        files_finish(op);
        return;
    }
    for (size_t i = 0; i < r->msg->files.n; i++) {
        struct alloc_file_info *f = codec_clone(op, &type_alloc_file_info, r->msg->files.v[i]);
        list_add(op, op->files.files, f);
    }
    if (!op->stat && r->msg->next > 0)
        files_ask(op, r->msg->next);
    else
        files_finish(op);
}

static void
files_ask(struct files_op *op, int64_t offset)
{
    if (op->stat)
        warden_stat(op->g->warden, op->id, op->path, on_files, op);
    else
        warden_readdir(op->g->warden, op->id, op->path, offset, on_files, op);
}

void
fs_list(struct allocs *allocs, const char *alloc_id, const char *path, bool stat,
        client_files_done *done, void *arg)
{
    struct ground *g = allocs->g;
    struct files_op *op = mem_new(NULL, struct files_op);
    *op = (struct files_op){.g = g, .stat = stat, .done = done, .arg = arg};
    hold_take(&g->hold);
    if (!alloc_runner_find(allocs, alloc_id))
        err_set(&op->e, -ERR_NOT_FOUND, "allocation \"%.40s\" is not on this node", alloc_id);
    else if (!g->warden)
        err_set(&op->e, -ERR_UNAVAILABLE, "the warden is not running: files cannot be read");
    else
        fs_check_path(op, str_or(path, "/"), &op->path, &op->e);
    if (op->e.code) {
        loop_post(g->loop, files_posted, op);
        return;
    }
    str_copy(op->id, sizeof(op->id), alloc_id);
    files_ask(op, 0);
}
