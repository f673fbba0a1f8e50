/* SPDX-License-Identifier: Apache-2.0
 *
 * The new file stands beside the old one under a name made of its own, until it takes its place: a
 * run that is killed leaves it to the next one.
 */
#include "render/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/plain.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "fetch/place.h"

enum { MODE_DEFAULT = 0644, MODE_BITS = 07777 };

/* Says whether the file has these bytes. */
static bool
output_same(int fd, off_t size, struct slice text)
{
    char part[16384];
    const char *p = text.p;
    if (size < 0 || (size_t)size != text.n)
        return false;
    for (size_t at = 0; at < text.n;) {
        ssize_t k = read(fd, part, sizeof(part));
        if (k <= 0 || (size_t)k > text.n - at || memcmp(part, p + at, (size_t)k) != 0)
            return false;
        at += (size_t)k;
    }
    return true;
}

/* Checks what only root could give away. */
static int
output_owner(const struct output_wish *w, struct err *e)
{
    if (w->uid >= 0 && w->uid != (int64_t)geteuid())
        return err_set(e, -ERR_INVALID,
                       "uid %lld: the file of a template belongs to the user of its task, which is "
                       "%u: leave uid out",
                       (long long)w->uid, geteuid());
    if (w->gid >= 0 && w->gid != (int64_t)getegid())
        return err_set(
            e, -ERR_INVALID,
            "gid %lld: the file of a template belongs to the group of its task, which is "
            "%u: leave gid out",
            (long long)w->gid, getegid());
    return 0;
}

static int
output_replace(int dir, const char *name, mode_t mode, struct slice text, struct err *e)
{
    char temporary[256];
    if (snprintf(temporary, sizeof(temporary), ".%.200s.paddock", name) < 0)
        return err_set(e, -ERR_INTERNAL, "name a file");
    if (unlinkat(dir, temporary, 0) < 0 && errno != ENOENT)
        return err_errno(e, errno, "remove \"%s\"", temporary);
    auto_fd int fd =
        openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, errno, "make \"%s\"", temporary);
    int r = fd_write_full(fd, text.p, text.n);
    if (r == 0 && fchmod(fd, mode) < 0)
        r = -errno;
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && renameat(dir, temporary, dir, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(dir, temporary, 0);
    return r < 0 ? err_errno(e, -r, "write \"%.200s\"", name) : 0;
}

int
output_write(const struct output_wish *w, struct slice text, bool *changed, struct err *e)
{
    const char *name = NULL;
    struct stat st = {0};
    *changed = true;
    if (!plain_path(w->path) || str_empty(w->path))
        return err_set(e, -ERR_INVALID, "template destination path escapes alloc directory");
    if (output_owner(w, e) < 0)
        return e->code;
    auto_fd int dir = place_parents(w->dir, w->path, true, &name, e);
    if (dir < 0)
        return dir;
    auto_fd int old = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool there = old >= 0 && fstat(old, &st) == 0 && S_ISREG(st.st_mode);
    mode_t mode = !str_empty(w->perms) ? (mode_t)strtoul(w->perms, NULL, 8) & MODE_BITS
                  : there              ? st.st_mode & MODE_BITS
                                       : MODE_DEFAULT;
    if (there && output_same(old, st.st_size, text)) {
        *changed = false;
        if ((st.st_mode & MODE_BITS) == mode)
            return 0;
        return fchmod(old, mode) < 0 ? err_errno(e, errno, "set the mode of \"%.200s\"", name) : 0;
    }
    return output_replace(dir, name, mode, text, e);
}
