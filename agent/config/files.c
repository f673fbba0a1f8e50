/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the configuration: where -config leads, read whole. Root reads them for an agent
 * that may not, and leaves them as one file in the run directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config/config.h"
#include "agent/config/config_int.h"
#include "agent/limits.h"
#include "codec/codec.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "jobspec/limits.h"

#define INSTALLED "config" /* in the run directory */

static bool
files_wanted(const char *name)
{
    size_t n = strlen(name);
    if (str_prefix(name, ".#") || str_suffix(name, "~") ||
        (n > 1 && name[0] == '#' && name[n - 1] == '#'))
        return false; /* left behind by editors */
    return str_suffix(name, ".hcl") || str_suffix(name, ".json");
}

static int
list_dir(const void *ctx, const char *path, struct str_list *ret, struct err *e)
{
    DIR *d = opendir(path);
    if (!d)
        return err_errno(e, errno, "read configuration directory \"%s\"", path);
    struct str_list names = {NULL, 0};
    for (struct dirent *x; (x = readdir(d)) && names.n < CONFIG_FILES_MAX;)
        if (files_wanted(x->d_name))
            list_add(ctx, names, mem_strdup(ctx, x->d_name));
    closedir(d);
    if (names.n == CONFIG_FILES_MAX)
        return err_set(e, -ERR_LIMIT, "configuration directory \"%s\" holds more than %d files",
                       path, CONFIG_FILES_MAX - 1);
    if (names.n > 0)
        qsort(names.v, names.n, sizeof(*names.v), str_cmp_qsort);
    for (size_t i = 0; i < names.n; i++)
        list_add(ctx, *ret, mem_printf(ctx, "%s/%s", path, names.v[i]));
    return 0;
}

static int
list_files(const void *ctx, const struct opt_list *paths, struct str_list *ret, struct err *e)
{
    for (size_t i = 0; i < paths->n; i++) {
        struct stat st;
        if (stat(paths->v[i], &st) < 0)
            return err_errno(e, errno, "configuration \"%s\"", paths->v[i]);
        if (!S_ISDIR(st.st_mode)) {
            list_add(ctx, *ret, mem_strdup(ctx, paths->v[i]));
            continue;
        }
        int r = list_dir(ctx, paths->v[i], ret, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int
read_file(const void *ctx, const char *path, struct config_files *ret, size_t *left, struct err *e)
{
    struct config_file *f = mem_new(ctx, struct config_file);
    char *text;
    size_t n;
    int r = file_read(ctx, AT_FDCWD, path, HCL_SOURCE_MAX, &text, &n);
    if (r < 0)
        return err_set(e, r, "read configuration \"%s\": %s", path, err_name(r));
    if (memchr(text, '\0', n) != NULL)
        return err_set(e, -ERR_INVALID, "configuration \"%s\" is no text: it holds a zero byte",
                       path);
    if (n > *left)
        return err_set(e, -ERR_LIMIT,
                       "the files of the configuration have more than %d MiB together",
                       CONFIG_BYTES_MAX >> 20);
    *left -= n;
    f->path = mem_strdup(ctx, path);
    f->text = text;
    list_add(ctx, ret->files, f);
    return 0;
}

static int
read_paths(const void *ctx, const struct opt_list *given, struct config_files **ret, struct err *e)
{
    struct config_files *files = mem_new(ctx, struct config_files);
    struct str_list paths = {NULL, 0};
    size_t left = CONFIG_BYTES_MAX;
    int r = list_files(ctx, given, &paths, e);
    for (size_t i = 0; i < paths.n && r == 0; i++)
        r = read_file(ctx, paths.v[i], files, &left, e);
    if (r == 0)
        *ret = files;
    return r;
}

/* Room for the paths and the framing beside the texts. */
enum { INSTALLED_MAX = CONFIG_BYTES_MAX + (8 << 20) };

static int
read_installed(const void *ctx, const char *run_dir, struct config_files **ret, struct err *e)
{
    char *data;
    size_t n;
    void *obj = NULL;
    const char *path = mem_printf(ctx, "%s/" INSTALLED, run_dir);
    int r = file_read(ctx, AT_FDCWD, path, INSTALLED_MAX, &data, &n);
    if (r < 0)
        return err_set(e, r, "read \"%s\", which root leaves for the agent: %s", path, err_name(r));
    r = mp_decode(ctx, &type_config_files, SLICE(data, n), BUDGET(2 * (size_t)INSTALLED_MAX), &obj,
                  e);
    if (r == 0)
        *ret = obj;
    else
        err_prefix(e, "\"%s\"", path);
    return r;
}

int
config_files_read(const void *ctx, const struct config_flags *f, struct config_files **ret,
                  struct err *e)
{
    return str_empty(f->run_dir) ? read_paths(ctx, &f->config, ret, e)
                                 : read_installed(ctx, f->run_dir, ret, e);
}

/* Adds the files that the configuration names. Whoever reads the configuration says what is wrong
 * with one, and so this goes on. */
static void
read_named(const void *ctx, const struct policy *p, struct config_files *ret)
{
    for (size_t i = 0; i < p->agent_files.n; i++) {
        struct config_file *f = mem_new(ctx, struct config_file);
        char *text;
        size_t n;
        int r = file_read(ctx, AT_FDCWD, p->agent_files.v[i], CONFIG_NAMED_MAX, &text, &n);
        f->path = p->agent_files.v[i];
        if (r == -ERR_LIMIT)
            f->error = "larger than 1 MiB";
        else if (r < 0)
            f->error = mem_strdup(ctx, err_name(r));
        else if (n == 0)
            f->error = "empty";
        else if (memchr(text, '\0', n) != NULL)
            f->error = "no text: it holds a zero byte";
        else
            f->text = text;
        list_add(ctx, ret->named, f);
    }
}

int
config_files_install(const struct config_flags *f, const struct policy *p, struct err *e)
{
    auto_mem void *ctx = mem_ctx("config");
    auto_buf struct buf b = BUF_INIT(INSTALLED_MAX);
    struct config_files *files;
    int r = read_paths(ctx, &f->config, &files, e);
    if (r < 0)
        return r;
    read_named(ctx, p, files);
    mp_encode(&b, &type_config_files, files);
    const char *path = mem_printf(ctx, "%s/" INSTALLED, p->run_dir);
    const char *made = mem_printf(ctx, "%s.new", path);
    r = buf_error(&b);
    if (r == 0)
        r = file_write_atomic(AT_FDCWD, made, b.data, b.len, 0640);
    if (r == 0 && geteuid() == 0 && chown(made, 0, (gid_t)p->agent_gid) < 0)
        r = -errno;
    if (r == 0 && rename(made, path) < 0)
        r = -errno;
    return r < 0 ? err_errno(e, -r, "leave the configuration for the agent in \"%s\"", path) : 0;
}
