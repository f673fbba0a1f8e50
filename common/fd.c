/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/err.h"
#include "common/mem.h"
#include "common/random.h"
#include "common/str.h"

void
fd_close(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    errno = saved;
}

void
fd_cleanup(int *fd)
{
    fd_close(fd);
}

bool
fd_near_limit(int fd, unsigned kept)
{
    struct rlimit rl;
    if (getrlimit(RLIMIT_NOFILE, &rl) < 0)
        return false;
    rlim_t keep = rl.rlim_cur * kept / 256 < kept ? rl.rlim_cur * kept / 256 : kept;
    return fd >= 0 && (rlim_t)fd >= rl.rlim_cur - keep;
}

ssize_t
fd_read_full(int fd, void *p, size_t n)
{
    size_t got = 0;
    while (got < n) {
        ssize_t r = read(fd, (char *)p + got, n - got);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        if (r == 0)
            break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

int
fd_write_full(int fd, const void *p, size_t n)
{
    const char *s = p;
    while (n > 0) {
        ssize_t r = write(fd, s, n);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        s += r;
        n -= (size_t)r;
    }
    return 0;
}

int
fd_pwrite_full(int fd, const void *p, size_t n, off_t at)
{
    const char *s = p;
    while (n > 0) {
        ssize_t r = pwrite(fd, s, n, at);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -errno;
        s += r;
        at += r;
        n -= (size_t)r;
    }
    return 0;
}

int
file_read(const void *ctx, int dirfd, const char *path, size_t max, char **ret, size_t *ret_len)
{
    auto_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    size_t cap = 4096, len = 0;
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((uint64_t)st.st_size > max)
            return -ERR_LIMIT;
        cap = (size_t)st.st_size + 1;
    }
    char *p = NULL;
    mem_resize(ctx, p, char, cap + 1);
    for (;;) {
        ssize_t r = fd_read_full(fd, p + len, cap - len);
        if (r < 0) {
            talloc_free(p);
            return (int)r;
        }
        len += (size_t)r;
        if (len > max) {
            talloc_free(p);
            return -ERR_LIMIT;
        }
        if (len < cap)
            break;
        cap *= 2;
        mem_resize(ctx, p, char, cap + 1);
    }
    p[len] = 0;
    *ret = p;
    if (ret_len)
        *ret_len = len;
    return 0;
}

int
dir_fsync(int dirfd)
{
    if (fsync(dirfd) == 0)
        return 0;
    if (errno != EBADF)
        return -errno;
    auto_fd int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return -errno;
    return 0;
}

bool
errno_is_shortage(int errnum)
{
    return errnum == ENOSPC || errnum == EDQUOT || errnum == EMFILE || errnum == ENFILE ||
           errnum == ENOMEM;
}

int
dir_fsync_parent(int dirfd, const char *path)
{
    char dir[4096];
    if (!str_copy(dir, sizeof(dir), path))
        return -ENAMETOOLONG;
    char *slash = strrchr(dir, '/');
    if (!slash)
        return dir_fsync(dirfd);
    slash[slash == dir ? 1 : 0] = 0;
    auto_fd int fd = openat(dirfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : dir_fsync(fd);
}

int
file_write_atomic(int dirfd, const char *path, const void *p, size_t n, mode_t mode)
{
    char tmp[4096];
    int len = snprintf(tmp, sizeof(tmp), "%s.tmp.%llx", path, (unsigned long long)rand_u64());
    if (len < 0 || (size_t)len >= sizeof(tmp))
        return -ENAMETOOLONG;
    auto_fd int fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return -errno;
    int r = fd_write_full(fd, p, n);
    if (r == 0 && fchmod(fd, mode) < 0)
        r = -errno;
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && renameat(dirfd, tmp, dirfd, path) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlinkat(dirfd, tmp, 0);
        return r;
    }
    return dir_fsync_parent(dirfd, path);
}

int
file_put(int dirfd, const char *path, const char *text)
{
    auto_fd int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t r;
    do
        r = write(fd, text, strlen(text));
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

int
dir_make(int dirfd, const char *path, mode_t mode)
{
    char tmp[4096];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof(tmp))
        return n ? -ENAMETOOLONG : -EINVAL;
    memcpy(tmp, path, n + 1);
    for (char *p = tmp + 1;; p++) {
        if (*p && *p != '/')
            continue;
        char c = *p;
        *p = 0;
        int r = 0;
        if (mkdirat(dirfd, tmp, mode) == 0)
            r = dir_fsync_parent(dirfd, tmp);
        else if (errno != EEXIST)
            return -errno;
        if (r < 0 && r != -EACCES && r != -EINVAL) /* of root alone; of a kernel's file system */
            return r;
        *p = c;
        if (!c)
            return 0;
    }
}

int
fd_open_beneath(int dirfd, const char *path, int flags, mode_t mode, bool follow_symlinks)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = flags & (O_CREAT | O_TMPFILE) ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS |
                   (follow_symlinks ? 0u : (uint64_t)RESOLVE_NO_SYMLINKS),
    };
    long fd;
    do
        fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
    while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    return fd < 0 ? -errno : (int)fd;
}

int
pidfd_open_pid(pid_t pid)
{
    long fd = syscall(SYS_pidfd_open, pid, 0);
    return fd < 0 ? -errno : (int)fd;
}

int
pidfd_signal(int pidfd, int sig)
{
    return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}
