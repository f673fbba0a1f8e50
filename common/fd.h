/* SPDX-License-Identifier: Apache-2.0
 *
 * File descriptors and files. Every fd is close-on-exec from birth. All functions return 0 (or a
 * count, or an fd) or -errno.
 */
#ifndef PADDOCK_COMMON_FD_H
#define PADDOCK_COMMON_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"

#define auto_fd __attribute__((cleanup(fd_cleanup)))
#define TAKE_FD(fd)     \
    ({                  \
        int _t = (fd);  \
        (fd) = -1;      \
        _t;             \
    })

void fd_cleanup(int *fd);
/* Closes if >= 0 and sets to -1; keeps errno. */
void fd_close(int *fd);

/* The kernel gives the lowest free number, so a new fd among the last `kept` below the limit of
 * open files (fewer where the limit is below 256) says that nearly all are taken. */
bool fd_near_limit(int fd, unsigned kept);
/* Until `n` bytes or end of file; returns what was read. */
ssize_t fd_read_full(int fd, void *p, size_t n);
int fd_write_full(int fd, const void *p, size_t n);
int fd_pwrite_full(int fd, const void *p, size_t n, off_t at);

/* The whole file, at most `max` bytes (-ERR_LIMIT beyond), NUL-terminated, owned by ctx. Works on
 * /proc and /sys files, whose size says nothing. `ret_len` may be NULL. */
int file_read(const void *ctx, int dirfd, const char *path, size_t max, char **ret,
              size_t *ret_len);
/* Replaces a file whole: temporary file beside it, fsync, rename, fsync of the directory. */
int file_write_atomic(int dirfd, const char *path, const void *p, size_t n, mode_t mode);
/* One write() to an existing file, as sysfs and cgroupfs want it. */
int file_put(int dirfd, const char *path, const char *text);
/* Syncs a directory, whose fd may be of O_PATH or AT_FDCWD. Needs no further fd where `dirfd` is
 * readable. */
int dir_fsync(int dirfd);
int dir_fsync_parent(int dirfd, const char *path); /* of the directory that holds the name */
/* The call failed for want of something that others may give back: disk space, fds, memory. */
bool errno_is_shortage(int errnum);
/* mkdir -p, durable; existing directories are fine. */
int dir_make(int dirfd, const char *path, mode_t mode);
/* rm -r of `path`, never following a symlink, never leaving the file system, whatever is in it: any
 * depth in bounded stack and fds, any number of entries, directories without permissions. Goes on
 * behind what cannot be removed; `e` (may be NULL) names the first of that. -ENOENT is 0. Safe to
 * be killed half-way and run again. */
int dir_remove(int dirfd, const char *path, struct err *e);

/* openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, plus RESOLVE_NO_SYMLINKS when asked: no
 * path that a task controls is opened in another way. -ENOSYS where the kernel is too old. */
int fd_open_beneath(int dirfd, const char *path, int flags, mode_t mode, bool follow_symlinks);

/* pidfd_open(2), pidfd_send_signal(2). */
int pidfd_open_pid(pid_t pid);
int pidfd_signal(int pidfd, int sig);

#endif
