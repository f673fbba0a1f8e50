/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/artifact/artifact.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"

enum { DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

int
place_name(const void *ctx, const char *name, const char **ret, struct err *e)
{
    const char *out = "";
    unsigned depth = 0;
    for (const char *p = name; *p != '\0';) {
        size_t n = strcspn(p, "/");
        if (n == 2 && memcmp(p, "..", 2) == 0)
            return err_set(e, -ERR_INVALID, "entry contains '..': %.200s", name);
        if (n > ARTIFACT_NAME_MAX || depth > ARTIFACT_DEPTH_MAX)
            return err_set(e, -ERR_INVALID, "the name of an entry is too long or too deep: %.100s",
                           name);
        if (n > 0 && !(n == 1 && *p == '.')) {
            out = mem_printf(ctx, "%s%s%.*s", out, depth > 0 ? "/" : "", (int)n, p);
            depth++;
        }
        p += n;
        p += *p == '/';
    }
    *ret = out;
    return 0;
}

/* Opens the first `n` bytes of `path`. */
static int
place_walk(int dir, const char *path, size_t n, bool make, struct err *e)
{
    char part[ARTIFACT_NAME_MAX + 1];
    auto_fd int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    for (const char *p = path; at >= 0 && p < path + n;) {
        size_t k = strcspn(p, "/");
        ASSERT(k > 0 && k < sizeof(part));
        memcpy(part, p, k);
        part[k] = '\0';
        ASSERT(!str_eq(part, "..") && !str_eq(part, "."));
        if (make && mkdirat(at, part, 0755) < 0 && errno != EEXIST)
            return err_errno(e, errno, "make the directory \"%.200s\"", path);
        int next = openat(at, part, DIRECTORY);
        if (next < 0)
            return err_errno(e, errno, "open \"%s\" of \"%.200s\", which must be a directory", part,
                             path);
        fd_close(&at);
        at = next;
        p += k;
        p += *p == '/';
    }
    return at < 0 ? err_errno(e, errno, "open a directory") : TAKE_FD(at);
}

int
place_directory(int dir, const char *path, struct err *e)
{
    return place_walk(dir, path, strlen(path), true, e);
}

int
place_parents(int dir, const char *path, bool make, const char **name, struct err *e)
{
    const char *slash = strrchr(path, '/');
    *name = slash != NULL ? slash + 1 : path;
    if (**name == '\0')
        return err_set(e, -ERR_INVALID, "there is no name for the file");
    return place_walk(dir, path, slash != NULL ? (size_t)(slash - path) : 0, make, e);
}

int
place_remove(int dir, const char *path, const char *name, struct err *e)
{
    auto_fd int at = place_walk(dir, path, strlen(path), true, e);
    return at < 0 ? at : dir_remove(at, name, e);
}

int
place_file(int from, const char *name, int to, const char *path, struct err *e)
{
    const char *base = NULL;
    auto_fd int at = place_parents(to, path, true, &base, e);
    if (at < 0)
        return at;
    return renameat(from, name, at, base) < 0
               ? err_errno(e, errno, "put the file at \"%.200s\"", path)
               : 0;
}

int
place_only(const void *ctx, int dir, const char **name, struct err *e)
{
    struct stat st;
    size_t n = 0;
    int copy = openat(dir, ".", DIRECTORY);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (d == NULL) {
        fd_close(&copy);
        return err_errno(e, errno, "read a directory");
    }
    for (struct dirent *de; (de = readdir(d)) != NULL;)
        if (!str_eq(de->d_name, ".") && !str_eq(de->d_name, "..")) {
            *name = mem_strdup(ctx, de->d_name);
            n++;
        }
    (void)closedir(d);
    if (n != 1 || fstatat(dir, *name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, -ERR_INVALID, "expected a single file");
    return 0;
}

static int place_below(int from, int to, unsigned depth, struct err *e);

static int
place_one(int from, const char *name, int to, unsigned depth, struct err *e)
{
    struct stat st, old;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(e, errno, "look at \"%.200s\"", name);
    bool there = fstatat(to, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
    if (!S_ISDIR(st.st_mode) || !there) {
        return renameat(from, name, to, name) < 0
                   ? err_errno(e, errno, "put \"%.200s\" in its place", name)
                   : 0;
    }
    auto_fd int sub = openat(from, name, DIRECTORY);
    auto_fd int into = openat(to, name, DIRECTORY);
    if (sub < 0 || into < 0)
        return err_errno(e, errno, "open the directory \"%.200s\"", name);
    return place_below(sub, into, depth + 1, e);
}

static int
place_below(int from, int to, unsigned depth, struct err *e)
{
    if (depth > ARTIFACT_DEPTH_MAX + 1)
        return err_set(e, -ERR_LIMIT, "directories are deeper than %d", ARTIFACT_DEPTH_MAX);
    int copy = openat(from, ".", DIRECTORY);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (d == NULL) {
        fd_close(&copy);
        return err_errno(e, errno, "read a directory");
    }
    int r = 0;
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;)
        if (!str_eq(de->d_name, ".") && !str_eq(de->d_name, ".."))
            r = place_one(from, de->d_name, to, depth, e);
    (void)closedir(d);
    return r;
}

int
place_tree(int from, int to, struct err *e)
{
    return place_below(from, to, 0, e);
}
