/* SPDX-License-Identifier: Apache-2.0
 *
 * Project quotas, see quota.h. In this order: the size of a quota; the kernel's calls; projects,
 * free and taken; trees that change theirs; the probe.
 */
#include "isolation/root/quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/raw.h"

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef PRJQUOTA
#define PRJQUOTA 2
#endif
/* QCMD() shifts into the sign */
#define CALL(cmd) ((uint32_t)(cmd) << SUBCMDSHIFT | PRJQUOTA)
#define PROBE_DIR ".paddock-quota-probe"
enum { PROBE_MB = 1, UNIT = 1024 /* of dqb_bhardlimit */ };

struct quota_size
quota_size(int64_t mb, uint64_t fs_bytes, uint64_t fs_inodes)
{
    ASSERT(mb >= 0 && mb <= QUOTA_MB_MAX);
    struct quota_size s = {.bytes = (uint64_t)mb << 20};
    if (fs_bytes == 0 || fs_inodes == 0)
        return s;
    unsigned __int128 part = (unsigned __int128)s.bytes * fs_inodes / fs_bytes;
    s.inodes = part > fs_inodes ? fs_inodes : (uint64_t)part;
    if (s.inodes < QUOTA_INODES_MIN)
        s.inodes = QUOTA_INODES_MIN;
    return s;
}

/* --- the kernel's calls --- */

static int
get_attr(int fd, struct fsxattr *ret)
{
    return ioctl(fd, FS_IOC_FSGETXATTR, ret) < 0 ? -errno : 0;
}

static int
set_project(int fd, uint32_t id)
{
    struct fsxattr a;
    int r = get_attr(fd, &a);
    if (r < 0)
        return r;
    a.fsx_projid = id;
    a.fsx_xflags = id != 0 ? a.fsx_xflags | FS_XFLAG_PROJINHERIT
                           : a.fsx_xflags & ~(uint32_t)FS_XFLAG_PROJINHERIT;
    return ioctl(fd, FS_IOC_FSSETXATTR, &a) < 0 ? -errno : 0;
}

static bool
is_ours(uint32_t id)
{
    return id - QUOTA_BASE < QUOTA_PROJECTS_MAX; /* below it: a huge number */
}

/* A project that was never used is one without anything; ESRCH is a disk whose quotas were turned
 * off. */
static int
get_quota(int fd, uint32_t id, struct if_dqblk *ret)
{
    *ret = (struct if_dqblk){0};
    long r = RAW(SYS_quotactl_fd, fd, CALL(Q_GETQUOTA), id, ret);
    return r == -ENOENT ? 0 : (int)r;
}

static int
set_quota(int fd, uint32_t id, struct quota_size s)
{
    const struct if_dqblk q = {
        .dqb_bhardlimit = s.bytes / UNIT, .dqb_ihardlimit = s.inodes, .dqb_valid = QIF_LIMITS};
    return (int)RAW(SYS_quotactl_fd, fd, CALL(Q_SETQUOTA), id, &q);
}

/* --- projects --- */

uint32_t
quota_project(int fd)
{
    struct fsxattr a;
    return get_attr(fd, &a) == 0 && is_ours(a.fsx_projid) ? a.fsx_projid : 0;
}

/* Makes the empty directory one that nothing else is of: also not of a warden that looked for one
 * in the same moment, when both let go. */
static int
take_project(int fd, uint32_t *next, uint32_t *ret)
{
    for (uint32_t i = 0; i < QUOTA_PROJECTS_MAX; i++) {
        uint32_t id = QUOTA_BASE + (*next)++ % QUOTA_PROJECTS_MAX;
        struct if_dqblk q;
        int r = get_quota(fd, id, &q);
        if (r == 0 && (q.dqb_curinodes != 0 || q.dqb_curspace != 0))
            continue;
        if (r == 0)
            r = set_project(fd, id);
        if (r == 0)
            r = get_quota(fd, id, &q);
        if (r == 0 && q.dqb_curinodes == 1) {
            *ret = id;
            return 0;
        }
        (void)set_project(fd, 0);
        if (r < 0)
            return r;
    }
    return -EUSERS;
}

/* 1: yes. */
static int
is_empty(int fd)
{
    int dup = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = dup < 0 ? NULL : fdopendir(dup);
    if (d == NULL) {
        int r = -errno;
        fd_close(&dup);
        return r;
    }
    bool empty = true;
    for (struct dirent *de; empty && (de = readdir(d)) != NULL;)
        empty = str_eq(de->d_name, ".") || str_eq(de->d_name, "..");
    closedir(d);
    return empty;
}

static int
project_of(int fd, uint32_t *next, uint32_t *ret, struct err *e)
{
    struct fsxattr a;
    int r = get_attr(fd, &a);
    if (r < 0)
        return err_errno(e, -r, "read the project of the directory");
    if (is_ours(a.fsx_projid)) {
        *ret = a.fsx_projid;
        return 0;
    }
    r = is_empty(fd);
    if (r == 0)
        return err_set(e, -ERR_CONFLICT,
                       "its directory was made before there were limits: a new one gets one");
    r = r < 0 ? r : take_project(fd, next, ret);
    if (r == -EUSERS)
        return err_set(e, -ERR_LIMIT, "all %d projects are taken", QUOTA_PROJECTS_MAX);
    return r < 0 ? err_errno(e, -r, "make the directory a project") : 0;
}

int
quota_set(int fd, int64_t mb, uint32_t *next, struct err *e)
{
    struct statvfs fs;
    uint32_t id = 0;
    int r = project_of(fd, next, &id, e);
    if (r < 0)
        return r;
    /* asked of the whole: the directory's own answer may be its limit */
    auto_fd int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 || fstatvfs(parent, &fs) < 0)
        return err_errno(e, errno, "ask for the size of the file system");
    struct quota_size s = quota_size(mb, (uint64_t)fs.f_blocks * fs.f_frsize, fs.f_files);
    r = set_quota(fd, id, s);
    return r < 0 ? err_errno(e, -r, "limit project %u to %lld MiB", id, (long long)mb) : 0;
}

int
quota_lift(int fd)
{
    uint32_t id = quota_project(fd);
    return id == 0 ? 0 : set_quota(fd, id, (struct quota_size){0});
}

/* --- from one to another --- */

/* The fd of an entry that a project can be set of; -1: of another kind. */
static int
open_entry(int dir, const char *name, mode_t *ret_type)
{
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    *ret_type = st.st_mode & S_IFMT;
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return -1;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int
give_file(int fd, uint32_t id)
{
    struct fsxattr a;
    int r = get_attr(fd, &a);
    if (r < 0)
        return r;
    a.fsx_projid = id; /* of a file, nothing inherits */
    return ioctl(fd, FS_IOC_FSSETXATTR, &a) < 0 ? -errno : 0;
}

static int
give_tree(int dir, const char *name, uint32_t id, int depth)
{
    mode_t type = 0;
    int fd = open_entry(dir, name, &type);
    if (fd < 0)
        return fd == -1 ? 0 : fd;
    int r = S_ISDIR(type) ? set_project(fd, id) : give_file(fd, id);
    DIR *d = r == 0 && S_ISDIR(type) ? fdopendir(fd) : NULL;
    if (d == NULL) {
        fd_close(&fd);
        return r;
    }
    if (depth == QUOTA_DEPTH_MAX)
        r = -ENAMETOOLONG;
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;)
        if (!str_eq(de->d_name, ".") && !str_eq(de->d_name, ".."))
            r = give_tree(dirfd(d), de->d_name, id, depth + 1);
    closedir(d);
    return r;
}

int
quota_give(int dir, const char *name, int to)
{
    auto_fd int top = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct fsxattr has, gets;
    if (top < 0)
        return -errno;
    int r = get_attr(to, &gets);
    if (r == -ENOTTY || r == -EOPNOTSUPP)
        return 0; /* a file system without projects */
    if (r == 0)
        r = get_attr(top, &has);
    if (r < 0 || has.fsx_projid == gets.fsx_projid)
        return r;
    return give_tree(dir, name, gets.fsx_projid, 0);
}

int
quota_give_file(int fd, int to)
{
    struct fsxattr gets;
    int r = get_attr(to, &gets);
    if (r == -ENOTTY || r == -EOPNOTSUPP)
        return 0;
    return r < 0 ? r : give_file(fd, gets.fsx_projid);
}

/* --- is it possible here? --- */

static int
check_mount(int dir, struct err *e)
{
    struct fs_quota_statv v = {.qs_version = FS_QSTATV_VERSION1};
    struct fsxattr a;
    if (RAW(SYS_quotactl_fd, -1, CALL(Q_XGETQSTATV), 0, &v) == -ENOSYS)
        return err_set(e, -ERR_UNSUPPORTED, "quotactl_fd: not in this kernel");
    long r = RAW(SYS_quotactl_fd, dir, CALL(Q_XGETQSTATV), 0, &v);
    if (r < 0 || (v.qs_flags & FS_QUOTA_PDQ_ENFD) == 0)
        return err_set(e, -ERR_UNSUPPORTED,
                       "the file system has no project quotas, or is mounted without (prjquota)");
    int k = get_attr(dir, &a);
    if (k < 0)
        return err_set(e, -ERR_UNSUPPORTED, "read the project of the directory: %s", strerror(-k));
    if (a.fsx_projid != 0 || (a.fsx_xflags & FS_XFLAG_PROJINHERIT) != 0)
        return err_set(e, -ERR_UNSUPPORTED, "the directory is in project %u itself", a.fsx_projid);
    return 0;
}

/* In our own directory, where one that an earlier try left may be. */
static int
try_it(int fd, struct err *e)
{
    struct stat st;
    struct if_dqblk q;
    uint32_t next = 0;
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid())
        return err_set(e, -ERR_UNSUPPORTED, PROBE_DIR " is not our own");
    int r = quota_set(fd, PROBE_MB, &next, e);
    if (r < 0)
        return r;
    r = get_quota(fd, quota_project(fd), &q);
    if (r == 0)
        r = quota_lift(fd);
    if (r < 0)
        return err_errno(e, -r, "read and lift a limit");
    if (q.dqb_bhardlimit != PROBE_MB << 20 >> 10)
        return err_set(e, -ERR_UNSUPPORTED, "the file system keeps no limit");
    return 0;
}

int
quota_probe(int dir, struct err *e)
{
    int r = check_mount(dir, e);
    if (r < 0)
        return r;
    if (mkdirat(dir, PROBE_DIR, 0700) < 0 && errno != EEXIST)
        return err_set(e, -ERR_UNSUPPORTED, "make a directory to try: %s", strerror(errno));
    auto_fd int fd = openat(dir, PROBE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r = fd < 0 ? err_errno(e, errno, "open a directory to try") : try_it(fd, e);
    (void)unlinkat(dir, PROBE_DIR, AT_REMOVEDIR);
    return r < 0 ? -ERR_UNSUPPORTED : 0;
}
