/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/mounts_apply.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "isolation/raw.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
enum { DETACH = 2 /* MNT_DETACH, whose header conflicts with linux/mount.h */ };

struct apply {
    const struct mounts_plan *plan;
    const struct mounts_op *op;
    const char *what;
    long root;   /* O_PATH fd of the new root */
    bool legacy; /* the new mount API is not here: mount(2) */
};

/* Names the step that failed; passes the result through. */
static long
step(struct apply *a, const char *what, long r)
{
    if (r < 0)
        a->what = what;
    return r;
}

static long
open_at(long dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return RAW(SYS_openat2, dirfd, path, &how, sizeof(how));
}

/* --- targets --------------------------------------------------------------------------------- */

/* Opens the directory of the last component, making what is missing on the way, and points *name at
 * that component. */
static long
make_parents(struct apply *a, const char *path, const char **name)
{
    long dir = step(a, "dup", RAW(SYS_fcntl, a->root, F_DUPFD_CLOEXEC, 0));
    while (dir >= 0) {
        const char *slash = strchr(path, '/');
        if (slash == NULL) {
            *name = path;
            return dir;
        }
        char part[256];
        size_t n = (size_t)(slash - path);
        if (n >= sizeof(part)) {
            raw_close(dir);
            return step(a, "target", -ENAMETOOLONG);
        }
        memcpy(part, path, n);
        part[n] = 0;
        long r = RAW(SYS_mkdirat, dir, part, 0755);
        if (r == -EEXIST || r == -EROFS)
            r = 0;
        if (r == 0)
            r = open_at(dir, part, O_PATH | O_DIRECTORY, RESOLVE_BENEATH);
        raw_close(dir);
        dir = step(a, "make target directory", r);
        path = slash + 1;
    }
    return dir;
}

static long
make_target(struct apply *a, const char *path)
{
    const char *name;
    long dir = make_parents(a, path, &name);
    if (dir < 0)
        return dir;
    long r;
    if (a->op->flags & MOUNTS_F_FILE) {
        r = RAW(SYS_openat, dir, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0644);
        raw_close(r);
    } else {
        r = RAW(SYS_mkdirat, dir, name, 0755);
    }
    r = step(a, "make target", r == -EEXIST ? 0 : r);
    if (r >= 0)
        r = step(a, "open target", open_at(dir, name, O_PATH, RESOLVE_BENEATH));
    raw_close(dir);
    return r;
}

static long
open_target(struct apply *a, bool make)
{
    const char *path = mounts_str(a->plan, a->op->target);
    long fd = open_at(a->root, path, O_PATH, RESOLVE_BENEATH);
    if (fd == -ENOENT && make)
        return make_target(a, path);
    return step(a, "open target", fd);
}

/* A path below /proc or /sys may only be covered when it really is there: a raced symbolic link at
 * this point was an escape in another runtime. */
static long
open_kernel_target(struct apply *a)
{
    long fd = open_target(a, false);
    if (fd < 0)
        return fd;
    struct statfs s;
    long r = step(a, "statfs", RAW(SYS_fstatfs, fd, &s));
    if (r == 0 && s.f_type != PROC_SUPER_MAGIC && s.f_type != SYSFS_MAGIC)
        r = step(a, "target is not on procfs or sysfs", -EXDEV);
    if (r == 0)
        return fd;
    raw_close(fd);
    return r;
}

/* --- text without a libc --------------------------------------------------------------------- */

static char *
put_text(char *p, const char *s)
{
    size_t n = strlen(s);
    memcpy(p, s, n + 1);
    return p + n;
}

static char *
put_number(char *p, const char *name, uint64_t v, unsigned base)
{
    char digits[24];
    unsigned n = 0;
    do {
        digits[n++] = (char)('0' + v % base);
        v /= base;
    } while (v > 0);
    p = put_text(p, name);
    while (n > 0)
        *p++ = digits[--n];
    *p = 0;
    return p;
}

/* --- mounts
 * --------------------------------------------------------------------------------------- */

static uint64_t
attributes(uint32_t flags)
{
    uint64_t set = MOUNT_ATTR_NOSUID;
    if (!(flags & MOUNTS_F_DEVICES))
        set |= MOUNT_ATTR_NODEV;
    if (flags & MOUNTS_F_READONLY)
        set |= MOUNT_ATTR_RDONLY;
    if (flags & MOUNTS_F_NOEXEC)
        set |= MOUNT_ATTR_NOEXEC;
    return set;
}

/* A private copy of the mount that `fd` is in, starting at `path` under it, with attributes `set`.
 */
static long
clone_tree(struct apply *a, long fd, const char *path, uint64_t set)
{
    unsigned deep = a->op->flags & MOUNTS_F_RECURSIVE ? AT_RECURSIVE : 0;
    long tree = step(
        a, "open_tree",
        RAW(SYS_open_tree, fd, path, AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | deep));
    if (tree < 0 || set == 0)
        return tree;
    struct mount_attr attr = {.attr_set = set};
    long r = step(a, "mount_setattr",
                  RAW(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | deep, &attr, sizeof(attr)));
    if (r == 0)
        return tree;
    raw_close(tree);
    return r;
}

static long
attach(struct apply *a, long tree, long target)
{
    return step(a, "move_mount",
                RAW(SYS_move_mount, tree, "", target, "",
                    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

/* "/proc/self/fd/N": how mount(2) is given exactly the file that was opened. The old root's /proc
 * is there until the pivot. */
static const char *
fd_path(char buf[static 32], long fd)
{
    (void)put_number(buf, "/proc/self/fd/", (uint64_t)fd, 10);
    return buf;
}

/* Kernels before 5.12, or a seccomp filter around us that does not know the new calls. mount(2)
 * sets attributes on the topmost mount only, so a tree that needs any is bound without its
 * submounts. The attributes go to what is mounted at `target` afterwards: `top` finds it. */
static long
bind_legacy(struct apply *a, long source, long target, uint64_t set, long (*top)(struct apply *))
{
    char from[32], to[32];
    unsigned long deep = (a->op->flags & MOUNTS_F_RECURSIVE) && set == 0 ? MS_REC : 0;
    long r = step(
        a, "mount (bind)",
        RAW(SYS_mount, fd_path(from, source), fd_path(to, target), NULL, MS_BIND | deep, NULL));
    if (r < 0 || set == 0)
        return r;
    unsigned long flags = MS_REMOUNT | MS_BIND;
    flags |= set & MOUNT_ATTR_RDONLY ? MS_RDONLY : 0;
    flags |= set & MOUNT_ATTR_NOSUID ? MS_NOSUID : 0;
    flags |= set & MOUNT_ATTR_NODEV ? MS_NODEV : 0;
    flags |= set & MOUNT_ATTR_NOEXEC ? MS_NOEXEC : 0;
    long fd = top(a);
    if (fd < 0)
        return fd;
    r = step(a, "mount (remount)", RAW(SYS_mount, NULL, fd_path(to, fd), NULL, flags, NULL));
    raw_close(fd);
    return r;
}

/* Puts the tree at `source` on `target`. */
static long
bind_tree(struct apply *a, long source, long target, uint64_t set, long (*top)(struct apply *))
{
    long tree = a->legacy ? -ENOSYS : clone_tree(a, source, "", set);
    long r = tree < 0 ? tree : attach(a, tree, target);
    raw_close(tree);
    if (r != -ENOSYS)
        return r;
    a->legacy = true;
    return bind_legacy(a, source, target, set, top);
}

/* The source of a bind; templates of the warden are reached by a path that is ours alone. */
static long
open_source(struct apply *a)
{
    const char *path = mounts_str(a->plan, a->op->source);
    return step(a, "open source", open_at(AT_FDCWD, path, O_PATH, 0));
}

static uint64_t
source_attributes(const struct apply *a)
{
    return a->op->flags & MOUNTS_F_KEEP ? 0 : attributes(a->op->flags);
}

static long
open_root_point(struct apply *a)
{
    return step(a, "open root mount point",
                open_at(AT_FDCWD, mounts_str(a->plan, a->op->target), O_PATH | O_DIRECTORY, 0));
}

static long
do_root(struct apply *a)
{
    long source = open_source(a);
    long at = source < 0 ? source : open_root_point(a);
    long r = at < 0 ? at : bind_tree(a, source, at, source_attributes(a), open_root_point);
    raw_close(at);
    raw_close(source);
    if (r == 0) /* again: now the mount that is on it */
        r = a->root = open_root_point(a);
    return r < 0 ? r : 0;
}

static long
open_existing(struct apply *a)
{
    return open_target(a, false);
}

static long
do_bind(struct apply *a)
{
    long source = open_source(a);
    if (source == -ENOENT && (a->op->flags & MOUNTS_F_OPTIONAL))
        return 0;
    long target = source < 0 ? source : open_target(a, true);
    long r =
        target < 0 ? target : bind_tree(a, source, target, source_attributes(a), open_existing);
    raw_close(target);
    raw_close(source);
    return r;
}

/* All of it, because mount(2) replaces attributes where mount_setattr adds. */
#define PROC_READ_ONLY                                                                             \
    (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static long
do_mask(struct apply *a)
{
    long target = open_kernel_target(a);
    if (target == -ENOENT && (a->op->flags & MOUNTS_F_OPTIONAL))
        return 0;
    if (target < 0)
        return target;
    bool mask = a->op->kind == MOUNTS_MASK;
    long source = mask ? open_source(a) : target;
    long r = source < 0 ? source
                        : bind_tree(a, source, target, mask ? 0 : PROC_READ_ONLY, open_existing);
    if (mask)
        raw_close(source);
    raw_close(target);
    return r;
}

/* Mounts a file system on exactly the directory that was opened: as the working directory, "."
 * cannot be exchanged. One call instead of fsopen's five. */
static long
mount_here(struct apply *a, const char *type, unsigned long flags, const char *options)
{
    long target = open_target(a, true);
    if (target < 0)
        return target;
    long r = step(a, "fchdir", RAW(SYS_fchdir, target));
    if (r == 0)
        r = step(a, "mount", RAW(SYS_mount, type, ".", type, flags, options));
    raw_close(target);
    return r;
}

static long
do_tmpfs(struct apply *a)
{
    const struct mounts_op *op = a->op;
    char options[160];
    char *p = put_number(options, "size=", op->size, 10);
    p = put_number(p, ",mode=0", op->mode, 8);
    p = put_number(p, ",uid=", op->uid, 10);
    p = put_number(p, ",gid=", op->gid, 10);
    char *end = p;
    if (op->flags & MOUNTS_F_NOSWAP)
        (void)put_text(p, ",noswap");
    unsigned long flags = MS_NOSUID | MS_NODEV | (op->flags & MOUNTS_F_NOEXEC ? MS_NOEXEC : 0);
    long r = mount_here(a, "tmpfs", flags, options);
    if (r == -EINVAL && *end != 0) { /* before 6.4, or not the initial user namespace */
        *end = 0;
        r = mount_here(a, "tmpfs", flags, options);
    }
    return r;
}

static long
do_link(struct apply *a)
{
    const char *name;
    long dir = make_parents(a, mounts_str(a->plan, a->op->target), &name);
    if (dir < 0)
        return dir;
    long r = RAW(SYS_symlinkat, mounts_str(a->plan, a->op->source), dir, name);
    raw_close(dir);
    return step(a, "symlink", r == -EEXIST ? 0 : r);
}

/* The old root ends up under the new one at the same place, and one detach takes all of it. */
static long
do_pivot(struct apply *a)
{
    long r = step(a, "fchdir", RAW(SYS_fchdir, a->root));
    if (r == 0)
        r = step(a, "pivot_root", RAW(SYS_pivot_root, ".", "."));
    if (r == 0)
        r = step(a, "umount", RAW(SYS_umount2, ".", DETACH));
    if (r == 0)
        r = step(a, "chdir", RAW(SYS_chdir, "/"));
    return r;
}

static long
do_op(struct apply *a)
{
    if (a->root < 0 && a->op->kind != MOUNTS_ROOT)
        return step(a, "plan without root", -EINVAL);
    switch (a->op->kind) {
    case MOUNTS_ROOT:
        return do_root(a);
    case MOUNTS_BIND:
        return do_bind(a);
    case MOUNTS_TMPFS:
        return do_tmpfs(a);
    case MOUNTS_PROC:
        return mount_here(a, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    case MOUNTS_DEVPTS:
        return mount_here(a, "devpts", MS_NOSUID | MS_NOEXEC,
                          "newinstance,ptmxmode=0666,mode=0620,gid=5");
    case MOUNTS_LINK:
        return do_link(a);
    case MOUNTS_MASK:
    case MOUNTS_READONLY:
        return do_mask(a);
    case MOUNTS_PIVOT:
        return do_pivot(a);
    default:
        return step(a, "unknown operation", -EINVAL);
    }
}

int
mounts_apply(const struct mounts_plan *plan, struct mounts_fail *fail)
{
    struct apply a = {.plan = plan, .root = -1};
    long r = 0;
    for (uint32_t i = 0; i < plan->n_ops && r >= 0; i++) {
        a.op = &plan->ops[i];
        r = do_op(&a);
        if (r < 0) {
            fail->op = i;
            fail->what = a.what;
        }
    }
    raw_close(a.root);
    return r < 0 ? (int)r : 0;
}

int
mounts_check(const void *p, uint32_t bytes)
{
    const struct mounts_plan *plan = p;
    if (bytes < sizeof(*plan) || bytes > MOUNTS_BYTES_MAX || plan->bytes != bytes ||
        plan->n_ops > MOUNTS_OPS_MAX)
        return -EINVAL;
    uint64_t strings = sizeof(*plan) + (uint64_t)plan->n_ops * sizeof(plan->ops[0]);
    if (strings > bytes || ((const char *)p)[bytes - 1] != 0)
        return -EINVAL;
    for (uint32_t i = 0; i < plan->n_ops; i++) {
        const struct mounts_op *op = &plan->ops[i];
        if ((op->source != 0 && (op->source < strings || op->source >= bytes)) ||
            (op->target != 0 && (op->target < strings || op->target >= bytes)))
            return -EINVAL;
    }
    return 0;
}
