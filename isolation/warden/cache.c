/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/warden/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/duration.h"
#include "common/err.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/root/quota.h"

#define ROOM "warden"
#define DIRECTORY ".artifacts"

struct kept {
    char name[WARDEN_CACHE_KEY + 1];
    int64_t bytes;
    int64_t used_ns;
};

bool
cache_key_is_good(const char *key)
{
    return strlen(key) == WARDEN_CACHE_KEY && strspn(key, "0123456789abcdef") == WARDEN_CACHE_KEY;
}

static int
cache_directory(const struct warden *w, bool make)
{
    if (make && mkdirat(w->alloc_dir, DIRECTORY, 0700) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(w->alloc_dir, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int
cache_open(const struct warden *w, const char *key)
{
    if (w->policy->artifact_cache <= 0)
        return -ENOENT;
    auto_fd int dir = cache_directory(w, false);
    int fd = dir < 0 ? -1 : openat(dir, key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -ENOENT;
    (void)futimens(fd, NULL); /* the order in which they go */
    return fd;
}

/* --- its limit --- */

static int
by_use(const void *x, const void *y)
{
    const struct kept *a = x, *b = y;
    return a->used_ns < b->used_ns ? -1 : a->used_ns > b->used_ns;
}

/* Removes the least used, until `more` bytes and a file have room. */
static void
cache_make_room(int dir, int64_t max, int64_t more)
{
    auto_mem void *tmp = mem_ctx("cache");
    struct kept *all = NULL;
    size_t n = 0;
    int64_t sum = more;
    int copy = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (d == NULL) {
        fd_close(&copy);
        return;
    }
    rewinddir(d);
    for (struct dirent *de; (de = readdir(d)) != NULL;) {
        struct stat st;
        if (str_eq(de->d_name, ".") || str_eq(de->d_name, ".."))
            continue;
        if (!cache_key_is_good(de->d_name) || n >= 2 * WARDEN_CACHE_FILES ||
            fstatat(dir, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode)) {
            (void)unlinkat(dir, de->d_name, 0); /* nobody else puts anything here */
            continue;
        }
        mem_resize(tmp, all, struct kept, n + 1);
        all[n] = (struct kept){.bytes = st.st_size,
                               .used_ns = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec};
        (void)str_copy(all[n++].name, sizeof(all[0].name), de->d_name);
        sum += st.st_size;
    }
    (void)closedir(d);
    if (n > 0)
        qsort(all, n, sizeof(*all), by_use);
    for (size_t i = 0; i < n && (sum > max || n - i >= WARDEN_CACHE_FILES); i++) {
        (void)unlinkat(dir, all[i].name, 0);
        sum -= all[i].bytes;
    }
}

void
cache_trim(const struct warden *w)
{
    auto_fd int dir = cache_directory(w, false);
    if (dir >= 0)
        cache_make_room(dir, w->policy->artifact_cache, 0);
}

/* --- what comes into it --- */

/* Makes the file root's, to be read by root alone. */
static int
cache_own(const struct warden *w, int scratch, int dir, int fd)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 ||
        st.st_size > w->policy->artifact_cache)
        return -EINVAL;
    if (quota_project(scratch) != 0 && quota_give_file(fd, dir) < 0)
        return -EXDEV; /* it would count as the allocation's still */
    if ((w->root && fchown(fd, 0, 0) < 0) || fchmod(fd, 0400) < 0)
        return -errno;
    cache_make_room(dir, w->policy->artifact_cache, st.st_size);
    return 0;
}

/* Says whether the name is that of the file: the helper's user might have changed it. */
static bool
cache_is(int dir, const char *name, int fd)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && fstatat(dir, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void
cache_take(struct warden *w, int scratch, const char *key)
{
    if (w->policy->artifact_cache <= 0)
        return;
    auto_fd int fd =
        openat(scratch, WARDEN_CACHE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) /* it kept nothing */
        return;
    auto_fd int dir = cache_directory(w, true);
    int r = dir < 0 ? dir : cache_own(w, scratch, dir, fd);
    if (r == 0 && renameat(scratch, WARDEN_CACHE_NAME, dir, key) < 0)
        r = -errno;
    if (r == 0 && !cache_is(dir, key, fd)) {
        (void)unlinkat(dir, key, 0);
        r = -ESTALE;
    }
    if (r < 0)
        log_warn(ROOM, "a download is not kept for others", "error", err_name(r), NULL);
}
