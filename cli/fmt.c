/* SPDX-License-Identifier: Apache-2.0
 *
 * fmt: files of jobs and configurations in their canonical layout. A file is written in place, so
 * that it keeps its owner and its links; its space is there before it is written.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "common/buf.h"
#include "common/fd.h"
#include "jobspec/hcl.h"

struct fmt {
    struct cmd *c;
    bool check, write, list, recursive;
    bool differs, failed;
};

static void
fmt_complain(struct fmt *f, const char *path, const char *what)
{
    if (str_prefix(what, path)) /* a diagnostic names its place */
        cmd_warn(f->c, "%s", what);
    else
        cmd_warn(f->c, "%s: %s", path, what);
    f->failed = true;
}

static int
put_back(int fd, const struct buf *b)
{
    int rc = posix_fallocate(fd, 0, b->len > 0 ? (off_t)b->len : 1);
    rc = rc == 0 || rc == EOPNOTSUPP || rc == EINVAL ? fd_pwrite_full(fd, b->data, b->len, 0) : -rc;
    return rc == 0 && ftruncate(fd, (off_t)b->len) != 0 ? -errno : rc;
}

static int
read_input(const void *ctx, FILE *in, char **ret, size_t *ret_n)
{
    *ret = mem_array(ctx, char, HCL_SOURCE_MAX + 1);
    *ret_n = fread(*ret, 1, HCL_SOURCE_MAX + 1, in);
    return ferror(in) ? -EIO : *ret_n > HCL_SOURCE_MAX ? -ERR_LIMIT : 0;
}

/* fd -1: standard input and output. */
static void
format_file(struct fmt *f, const char *path, int fd)
{
    auto_mem void *tmp = mem_ctx("fmt");
    auto_buf struct buf out = BUF_INIT(HCL_SOURCE_MAX * 4);
    struct hcl_diags d = HCL_DIAGS_INIT;
    char *s;
    size_t n;
    int rc = fd < 0 ? read_input(tmp, f->c->in, &s, &n)
                    : file_read(tmp, AT_FDCWD, path, HCL_SOURCE_MAX, &s, &n);
    if (rc < 0) {
        fmt_complain(f, path,
                     rc == -ERR_LIMIT ? "larger than a file may be (4 MiB)" : strerror(-rc));
        return;
    }
    if (hcl_format(tmp, path, s, n, &out, &d) < 0) {
        fmt_complain(f, path, d.n > 0 ? hcl_diags_text(tmp, &d, false) : "too large in its layout");
        return;
    }
    bool differs = out.len != n || (n > 0 && memcmp(out.data, s, n) != 0);
    f->differs |= differs;
    if (differs && f->list && fd >= 0)
        cmd_say(f->c, "%s", path);
    if (differs && f->write && !f->check && fd >= 0 && (rc = put_back(fd, &out)) < 0)
        fmt_complain(f, path, mem_printf(tmp, "writing it failed: %s", strerror(-rc)));
    if (out.len > 0 && (fd < 0 || (!f->list && (!f->write || f->check))))
        fwrite(out.data, 1, out.len, f->c->out);
}

static bool
is_ours(const char *path)
{
    return str_suffix(path, ".nomad") || str_suffix(path, ".hcl");
}

static void format_dir(struct fmt *f, const char *path);

/* `named`: by who typed the command, not by a directory. */
static void
format_path(struct fmt *f, const char *path, bool named)
{
    struct stat st;
    auto_fd int fd =
        open(path, O_CLOEXEC | O_NONBLOCK | (f->write && !f->check ? O_RDWR : O_RDONLY));
    if (fd < 0 && errno == EISDIR)
        fd = open(path, O_CLOEXEC | O_DIRECTORY | O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0)
        fmt_complain(f, path, strerror(errno));
    else if (S_ISDIR(st.st_mode) && (named || f->recursive))
        format_dir(f, path);
    else if (S_ISREG(st.st_mode) && is_ours(path))
        format_file(f, path, fd);
    else if (named)
        fmt_complain(f, path, "only files whose names end in .nomad or .hcl are formatted");
}

static int
fmt_seen(const struct dirent *e)
{
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
           (is_ours(e->d_name) || e->d_type == DT_DIR || e->d_type == DT_UNKNOWN);
}

static void
format_dir(struct fmt *f, const char *path)
{
    struct dirent **v = NULL;
    int n = scandir(path, &v, fmt_seen, alphasort);
    if (n < 0)
        fmt_complain(f, path, strerror(errno));
    for (int i = 0; i < n; i++) {
        bool here = strcmp(path, ".") == 0;
        char *sub = mem_printf(f->c, "%s%s%s", here ? "" : path, here ? "" : "/", v[i]->d_name);
        if (v[i]->d_type != DT_DIR || f->recursive)
            format_path(f, sub, false);
        free(v[i]);
    }
    free(v);
}

int
cmd_fmt(struct cmd *c)
{
    struct fmt f = {.c = c, .write = true, .list = true};
    const struct opt opts[] = {
        {"check", OPT_BOOL, &f.check, NULL, "Write nothing; exit code 1 when a file would be."},
        {"list", OPT_BOOL, &f.list, NULL,
         "Name the files that were not in this layout (the default)."},
        {"recursive", OPT_BOOL, &f.recursive, NULL, "Go into directories of directories."},
        {"write", OPT_BOOL, &f.write, NULL,
         "Write the files (the default). With -list=false -write=false they are printed."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.max = SIZE_MAX}, &rc))
        return rc;
    if (c->n_args > 0 && str_eq(c->args[0], "-"))
        format_file(&f, "standard input", -1);
    else if (c->n_args == 0)
        format_path(&f, ".", true);
    else
        for (size_t i = 0; i < c->n_args; i++)
            format_path(&f, c->args[i], true);
    return f.failed || (f.check && f.differs);
}
