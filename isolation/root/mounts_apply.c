/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes a mount plan, in the shim: see mounts_apply.h. Free-standing. In this order: targets,
 * which are made and opened component by component beneath the root and never through a symbolic
 * link; text without a libc; one function per kind of operation; and the loop over the plan, which
 * stops at the first that fails.
 *
 * A mount goes on the directory that was opened, by descriptor or as the working directory, never
 * on a path that a task could exchange.
 */
#include "isolation/root/mounts_apply.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/vfs.h>

#include "isolation/confine/raw.h"

struct apply {
    const struct mounts_plan *plan;
    const struct mounts_op *op;
    const char *what;
    const int *trees; /* what is left of them */
    uint32_t n_trees;
    long root;    /* the tree of the new root */
    bool in_proc; /* the working directory is the task's procfs */
};

/* Names the step that failed; passes the result through. */
static long
mounts_apply_step(struct apply *a, const char *what, long r)
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

/* --- targets --- */

/* Opens the directory of the last component, making what is missing on the way, and points *name at
 * that component. */
static long
make_parents(struct apply *a, const char *path, const char **name)
{
    long dir = mounts_apply_step(a, "dup", RAW(SYS_fcntl, a->root, F_DUPFD_CLOEXEC, 0));
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
            return mounts_apply_step(a, "target", -ENAMETOOLONG);
        }
        memcpy(part, path, n);
        part[n] = 0;
        long r = RAW(SYS_mkdirat, dir, part, 0755);
        if (r == -EEXIST || r == -EROFS)
            r = 0;
        if (r == 0)
            r = open_at(dir, part, O_PATH | O_DIRECTORY, RESOLVE_BENEATH);
        raw_close(dir);
        dir = mounts_apply_step(a, "make target directory", r);
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
    r = mounts_apply_step(a, "make target", r == -EEXIST ? 0 : r);
    if (r >= 0)
        r = mounts_apply_step(a, "open target", open_at(dir, name, O_PATH, RESOLVE_BENEATH));
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
    return mounts_apply_step(a, "open target", fd);
}

/* Enters the task's /proc. A mount below it may only be made when it really is procfs: a raced
 * symbolic link at this point was an escape in another runtime. From the root of a checked procfs,
 * names that the kernel made lead nowhere else, so the calls that follow can go by name. */
static long
enter_proc(struct apply *a)
{
    if (a->in_proc)
        return 0;
    long fd = mounts_apply_step(a, "open /proc", open_at(a->root, "proc", O_PATH, RESOLVE_BENEATH));
    if (fd < 0)
        return fd;
    struct statfs s;
    long r = mounts_apply_step(a, "statfs", RAW(SYS_fstatfs, fd, &s));
    if (r == 0 && s.f_type != PROC_SUPER_MAGIC)
        r = mounts_apply_step(a, "target is not on procfs", -EXDEV);
    if (r == 0)
        r = mounts_apply_step(a, "fchdir", RAW(SYS_fchdir, fd));
    raw_close(fd);
    a->in_proc = r == 0;
    return r;
}

/* --- text without a libc --- */

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

/* --- mounts --- */

static long
take_tree(struct apply *a)
{
    if (a->n_trees == 0)
        return mounts_apply_step(a, "no tree for it", -EBADF);
    a->n_trees--;
    return *a->trees++;
}

static long
do_root(struct apply *a)
{
    long tree = take_tree(a);
    if (tree < 0)
        return tree;
    a->root = tree;
    return mounts_apply_step(a, "move_mount",
                             RAW(SYS_move_mount, tree, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH));
}

/* Our copy of the namespace has a copy of each template: it is moved, not copied again. A name
 * without a slash cannot be led astray (the last component is not followed); others are opened
 * first. */
static long
move_template(struct apply *a)
{
    const char *from = mounts_str(a->plan, a->op->source), *to = mounts_str(a->plan, a->op->target);
    long r = -ENOENT;
    if (strchr(to, '/') == NULL)
        r = mounts_apply_step(a, "move_mount", RAW(SYS_move_mount, AT_FDCWD, from, a->root, to, 0));
    if (r == 0)
        return r;
    long target = open_target(a, true); /* which also says what is wrong with it */
    if (target < 0)
        return target;
    r = mounts_apply_step(a, "move_mount",
                          RAW(SYS_move_mount, AT_FDCWD, from, target, "", MOVE_MOUNT_T_EMPTY_PATH));
    raw_close(target);
    return r;
}

static long
do_bind(struct apply *a)
{
    if (a->op->flags & MOUNTS_F_KEEP)
        return move_template(a);
    long tree = take_tree(a);
    if (tree < 0)
        return tree;
    long target = open_target(a, true);
    long r = target < 0 ? target
                        : mounts_apply_step(a, "move_mount",
                                            RAW(SYS_move_mount, tree, "", target, "",
                                                MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
    raw_close(target);
    raw_close(tree);
    return r;
}

/* By name below the checked procfs: one call where opening everything takes eight. */
static long
do_mask(struct apply *a)
{
    static const char below[] = "proc/";
    const char *name = mounts_str(a->plan, a->op->target);
    if (memcmp(name, below, sizeof(below) - 1) != 0)
        return mounts_apply_step(a, "target is not below /proc", -EINVAL);
    name += sizeof(below) - 1;
    long r = enter_proc(a);
    if (r < 0)
        return r;
    bool mask = a->op->kind == MOUNTS_MASK;
    const char *from = mask ? mounts_str(a->plan, a->op->source) : name;
    r = mounts_apply_step(a, "mount (bind)", RAW(SYS_mount, from, name, NULL, MS_BIND, NULL));
    if (r == -ENOENT && (a->op->flags & MOUNTS_F_OPTIONAL))
        return 0;
    if (r == 0 && !mask) /* all of them: mount(2) replaces attributes */
        r = mounts_apply_step(
            a, "mount (remount)",
            RAW(SYS_mount, NULL, name, NULL,
                MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
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
    long r = mounts_apply_step(a, "fchdir", RAW(SYS_fchdir, target));
    a->in_proc = false;
    if (r == 0)
        r = mounts_apply_step(a, "mount", RAW(SYS_mount, type, ".", type, flags, options));
    raw_close(target);
    return r;
}

static long
do_tmpfs(struct apply *a)
{
    const struct mounts_op *op = a->op;
    char options[160];
    char *p = put_number(options, "size=", op->size, 10);
    /* not the default, half of the machine's memory in inodes: they are no part of the size */
    p = put_number(p, ",nr_inodes=", op->size / MOUNTS_BYTES_PER_INODE + 1, 10);
    p = put_number(p, ",mode=0", op->mode, 8);
    p = put_number(p, ",uid=", op->uid, 10);
    p = put_number(p, ",gid=", op->gid, 10);
    char *end = p;
    if (op->flags & MOUNTS_F_NOSWAP)
        (void)put_text(p, ",noswap");
    unsigned long flags = MS_NOSUID | MS_NODEV | (op->flags & MOUNTS_F_NOEXEC ? MS_NOEXEC : 0);
    long r = mount_here(a, "tmpfs", flags, options);
    if (r == -EINVAL && *end != 0) { /* not the initial user namespace */
        *end = 0;
        r = mount_here(a, "tmpfs", flags, options);
    }
    return r;
}

static long
do_devpts(struct apply *a)
{
    char options[80];
    char *p = put_number(options, "newinstance,ptmxmode=0666,mode=0620,gid=", a->op->gid, 10);
    (void)put_number(p, ",max=", MOUNTS_PTYS_MAX, 10);
    return mount_here(a, "devpts", MS_NOSUID | MS_NOEXEC, options);
}

static long
do_link(struct apply *a)
{
    const char *name = mounts_str(a->plan, a->op->target);
    long dir = strchr(name, '/') == NULL ? a->root : make_parents(a, name, &name);
    if (dir < 0)
        return dir;
    long r = RAW(SYS_symlinkat, mounts_str(a->plan, a->op->source), dir, name);
    if (dir != a->root)
        raw_close(dir);
    return mounts_apply_step(a, "symlink", r == -EEXIST ? 0 : r);
}

/* The task's root lies on that of the namespace, which is an empty read-only directory by now. */
static long
do_enter(struct apply *a)
{
    long r = mounts_apply_step(a, "fchdir", RAW(SYS_fchdir, a->root));
    if (r == 0)
        r = mounts_apply_step(a, "chroot", RAW(SYS_chroot, "."));
    return r;
}

static long
do_op(struct apply *a)
{
    if (a->root < 0 && a->op->kind != MOUNTS_ROOT)
        return mounts_apply_step(a, "plan without root", -EINVAL);
    switch (a->op->kind) {
    case MOUNTS_ROOT:
        return do_root(a);
    case MOUNTS_BIND:
        return do_bind(a);
    case MOUNTS_TMPFS:
        return do_tmpfs(a);
    case MOUNTS_PROC:
        return mount_here(a, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                          a->op->source != 0 ? mounts_str(a->plan, a->op->source) : NULL);
    case MOUNTS_DEVPTS:
        return do_devpts(a);
    case MOUNTS_LINK:
        return do_link(a);
    case MOUNTS_MASK:
    case MOUNTS_READONLY:
        return do_mask(a);
    case MOUNTS_ENTER:
        return do_enter(a);
    default:
        return mounts_apply_step(a, "unknown operation", -EINVAL);
    }
}

int
mounts_apply(const struct mounts_plan *plan, const int *trees, uint32_t n_trees,
             struct mounts_fail *fail)
{
    struct apply a = {.plan = plan, .trees = trees, .n_trees = n_trees, .root = -1};
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
