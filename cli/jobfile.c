/* SPDX-License-Identifier: Apache-2.0
 *
 * Job files, and other specifications, from disk. Names inside a job file are relative to the
 * file's directory.
 */
#include "cli/jobfile.h"
#include "cli/connect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/limits.h"
#include "common/fd.h"
#include "common/random.h"
#include "jobspec/jobspec.h"

extern char **environ;

/* --- what file functions may do --- */

struct files {
    int dir; /* of the job file */
};

static int
fs_read(void *arg, const void *ctx, const char *path, char **ret, size_t *ret_n, struct err *e)
{
    const struct files *f = arg;
    int rc = file_read(ctx, f->dir, path, JOBFILE_MAX, ret, ret_n);
    if (rc == -ERR_LIMIT)
        return err_set(e, rc, "\"%s\" is larger than %d bytes", path, JOBFILE_MAX);
    return rc < 0 ? err_errno(e, -rc, "reading \"%s\"", path) : 0;
}

static bool
fs_exists(void *arg, const char *path)
{
    const struct files *f = arg;
    struct stat st;
    return fstatat(f->dir, path, &st, 0) == 0 && S_ISREG(st.st_mode);
}

/* "**" followed by '/' matches any directories, '*' and '?' stay within one. */
static bool
jobfile_match(const char *p, const char *s)
{
    for (; *p; p++, s++) {
        if (p[0] == '*' && p[1] == '*' && p[2] == '/') {
            for (const char *q = s; q; q = strchr(q, '/') ? strchr(q, '/') + 1 : NULL)
                if (jobfile_match(p + 3, q))
                    return true;
            return false;
        }
        if (*p == '*') {
            while (p[1] == '*')
                p++;
            for (;; s++) {
                if (jobfile_match(p + 1, s))
                    return true;
                if (!*s || *s == '/')
                    return false;
            }
        }
        if (!*s || (*p == '?' ? *s == '/' : *p != *s))
            return false;
    }
    return !*s;
}

struct walk {
    const void *ctx;
    const char *pattern;
    struct str_list *out;
    size_t seen;
    struct err *e;
};

static int jobfile_walk(struct walk *w, int dirfd, const char *rel, int depth);

static int
walk_entry(struct walk *w, int dirfd, const char *rel, const struct dirent *d, int depth)
{
    struct stat st;
    if (str_eq(d->d_name, ".") || str_eq(d->d_name, ".."))
        return 0;
    if (++w->seen > JOBFILE_GLOB_MAX)
        return err_set(w->e, -ERR_LIMIT, "more than %d files below the directory",
                       JOBFILE_GLOB_MAX);
    char *path = mem_printf(w->ctx, "%s%s%s", rel, *rel ? "/" : "", d->d_name);
    if (fstatat(dirfd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISREG(st.st_mode) && jobfile_match(w->pattern, path))
        list_add(w->ctx, *w->out, path);
    if (!S_ISDIR(st.st_mode) || depth >= JOBFILE_GLOB_DEPTH_MAX)
        return 0;
    auto_fd int sub = openat(dirfd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return sub < 0 ? 0 : jobfile_walk(w, TAKE_FD(sub), path, depth + 1);
}

/* Takes dirfd. */
static int
jobfile_walk(struct walk *w, int dirfd, const char *rel, int depth)
{
    DIR *dir = fdopendir(dirfd);
    int rc = 0;
    if (!dir) {
        close(dirfd);
        return 0;
    }
    for (struct dirent *d; !rc && (d = readdir(dir));)
        rc = walk_entry(w, dirfd, rel, d, depth);
    closedir(dir);
    return rc;
}

static int
fs_glob(void *arg, const void *ctx, const char *dir, const char *pattern, struct str_list *ret,
        struct err *e)
{
    const struct files *f = arg;
    struct walk w = {.ctx = ctx, .pattern = pattern, .out = ret, .e = e};
    int fd = openat(f->dir, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, errno, "opening directory \"%s\"", dir);
    int rc = jobfile_walk(&w, fd, "", 0);
    if (!rc && ret->n)
        qsort(ret->v, ret->n, sizeof(*ret->v), str_cmp_qsort);
    return rc;
}

/* --- reading --- */

int
jobfile_read(struct cmd *c, const char *path, char **ret, size_t *ret_n, struct err *e)
{
    if (str_eq(path, "-")) {
        char *p = mem_array(c, char, JOBFILE_MAX + 1);
        size_t n = fread(p, 1, JOBFILE_MAX + 1, c->in);
        if (n > JOBFILE_MAX)
            return err_set(e, -ERR_LIMIT, "standard input is larger than %d bytes", JOBFILE_MAX);
        p[n] = 0;
        *ret = p;
        *ret_n = n;
        return 0;
    }
    if (strstr(path, "://") && access(path, F_OK) < 0)
        return err_set(e, -ERR_INVALID,
                       "URLs are not supported: fetch \"%s\" first, or pipe it in and give \"-\"",
                       path);
    int rc = file_read(c, AT_FDCWD, path, JOBFILE_MAX, ret, ret_n);
    if (rc == -ERR_LIMIT)
        return err_set(e, rc, "\"%s\" is larger than %d bytes", path, JOBFILE_MAX);
    return rc < 0 ? err_set(e, rc, "reading \"%s\": %s", path, strerror(-rc)) : 0;
}

int
jobfile_example(struct cmd *c, const char *what, const char *path, const char *text)
{
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc = fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));

    if (rc == -EEXIST)
        cmd_fail(c, "%s \"%s\" already exists", what, path);
    else if (rc < 0)
        cmd_fail(c, "Failed to write \"%s\": %s", path, strerror(-rc));
    return rc < 0 ? -1 : 0;
}

static int
read_text(struct cmd *c, const char *path, char **ret, size_t *ret_n)
{
    struct err e = ERR_INIT;
    if (jobfile_read(c, path, ret, ret_n, &e) == 0)
        return 0;
    cmd_fail(c, "Error getting job struct: %s", e.text);
    return -1;
}

/* NOMAD_VAR_x=v as {x: v}. */
static void
env_vars(struct cmd *c, struct str_map *m)
{
    for (char **p = environ; *p; p++) {
        const char *eq = strchr(*p, '=');
        if (!eq || !str_prefix(*p, "NOMAD_VAR_"))
            continue;
        const char *k = *p + strlen("NOMAD_VAR_");
        str_map_set(c, m, mem_strndup(c, k, (size_t)(eq - k)), eq + 1);
    }
}

static int
load_var_files(struct cmd *c, const struct opt_list *paths, struct jobspec_input *in,
               struct buf *all)
{
    struct jobspec_file *f = mem_array(c, struct jobspec_file, paths->n);
    for (size_t i = 0; i < paths->n; i++) {
        char *s;
        f[i].name = paths->v[i];
        if (read_text(c, paths->v[i], &s, &f[i].n))
            return -1;
        f[i].s = s;
        buf_puts(all, s);
        buf_putc(all, '\n');
    }
    in->var_files = f;
    in->n_var_files = paths->n;
    return 0;
}

static int
open_dir_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_mem char *dir = mem_strndup(NULL, path, (size_t)(slash - path) + 1);
    return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Parses as jobfile_parse() does; `vars` gets the text of the files of variables. */
static int
parse_text(struct cmd *c, const struct jobfile_opts *o, struct jobspec_input *in, struct buf *vars,
           struct job **ret, struct hcl_diags *d)
{
    struct str_map env = {NULL, 0};
    const struct str_list args = {o->vars.v, o->vars.n};
    bool in_stdin = str_eq(in->name, "-");
    auto_fd int dir = open_dir_of(in_stdin ? "" : in->name);
    struct files files = {dir};
    char cwd[4096];
    const struct jobspec_fs fs = {&files, getcwd(cwd, sizeof(cwd)), cmd_env("HOME"), fs_read,
                                  fs_exists, fs_glob};
    if (in_stdin)
        in->name = "<stdin>";
    in->env_vars = &env;
    in->vars = &args;
    in->lenient = !o->strict;
    in->fs = &fs;
    in->random = rand_bytes;
    env_vars(c, &env);
    if (load_var_files(c, &o->var_files, in, vars))
        return -1;
    (void)jobspec_parse(c, in, ret, d);
    return 0;
}

int
jobfile_parse(struct cmd *c, const struct jobfile_opts *o, const char *path, struct slice text,
              struct job **ret, struct hcl_diags *d)
{
    auto_buf struct buf vars = BUF_INIT(64 << 20);
    struct jobspec_input in = {.name = path, .s = text.p, .n = text.n};
    return parse_text(c, o, &in, &vars, ret, d);
}

static int
parse_hcl(struct cmd *c, const struct jobfile_opts *o, const char *path, const char *s, size_t n,
          struct jobfile *ret)
{
    auto_buf struct buf vars = BUF_INIT(64 << 20);
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct jobspec_input in = {.name = path, .s = s, .n = n};
    if (parse_text(c, o, &in, &vars, &ret->job, &d))
        return -1;
    const char *text = hcl_diags_text(c, &d, true);
    if (d.errors > 0) {
        cmd_fail(c, "Error getting job struct: %s", text);
        return -1;
    }
    if (*text)
        cmd_warn(c, "%s", text);
    ret->submission->source = s;
    ret->submission->format = s[strspn(s, " \t\r\n")] == '{' ? "json" : "hcl2";
    ret->submission->variables = mem_strdup(c, buf_str(&vars));
    for (size_t i = 0; i < o->vars.n; i++) {
        const char *eq = strchr(o->vars.v[i], '=');
        if (eq)
            str_map_set(c, &ret->submission->variable_flags,
                        mem_strndup(c, o->vars.v[i], (size_t)(eq - o->vars.v[i])), eq + 1);
    }
    return 0;
}

static int
parse_json(struct cmd *c, const char *s, size_t n, struct jobfile *ret)
{
    struct err e = ERR_INIT;
    if (jobspec_parse_json(c, s, n, &ret->job, &e)) {
        cmd_fail(c, "Error getting job struct: %s", e.text);
        return -1;
    }
    ret->submission->source = s;
    ret->submission->format = "json";
    return 0;
}

int
jobfile_load(struct cmd *c, const struct jobfile_opts *o, const char *path, struct jobfile *ret)
{
    char *s = NULL;
    size_t n = 0;
    ret->submission = type_new(c, &type_job_submission);
    if (read_text(c, path, &s, &n))
        return -1;
    if (o->json && (o->vars.n || o->var_files.n)) {
        cmd_fail(c, "Variables go with HCL files: leave out -var and -var-file, or -json");
        return -1;
    }
    int rc = o->json ? parse_json(c, s, n, ret) : parse_hcl(c, o, path, s, n, ret);
    if (rc)
        return rc;
    if (str_empty(ret->job->id)) {
        cmd_fail(c, "Error getting job struct: the job has no ID");
        return -1;
    }
    if (o->vault_namespace)
        ret->job->vault_namespace = o->vault_namespace;
    if (!str_empty(ret->job->namespace))
        c->namespace = ret->job->namespace;
    if (!str_empty(ret->job->region) && !str_eq(ret->job->region, "global"))
        c->region = ret->job->region;
    return 0;
}
