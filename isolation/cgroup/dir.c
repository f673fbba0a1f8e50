/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/cgroup/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"

int
cgroup_read(int dirfd, const char *name, char *buf, size_t size)
{
    auto_fd int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = fd_read_full(fd, buf, size - 1);
    if (n < 0)
        return (int)n;
    buf[n] = 0;
    return 0;
}

int
cgroup_open_dir(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

void
cgroup_dirs(const void *ctx, int dirfd, struct str_list *ret)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        fd_close(&fd);
        return;
    }
    for (struct dirent *d; (d = readdir(dir)) != NULL;)
        if (d->d_type == DT_DIR && !str_eq(d->d_name, ".") && !str_eq(d->d_name, ".."))
            list_add(ctx, *ret, mem_strdup(ctx, d->d_name));
    (void)closedir(dir);
}
