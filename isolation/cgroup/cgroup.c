/* SPDX-License-Identifier: Apache-2.0
 *
 * Control groups: see cgroup.h. In this order: finding cgroup2 and its controllers; the tree
 * (handing controllers down, making leaves, applying a plan of limits, resizing, removal, walking
 * over what is there); and the state of a leaf (killing, freezing, emptiness, pressure).
 *
 * Directories are opened once and used by descriptor, and names have a single component, so that no
 * path can lead out of the tree. What a limit is called and worth is in plan.c.
 */
#include "isolation/cgroup/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/host/mounts.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/uuid.h"
#include "isolation/cgroup/dir.h"
#include "isolation/cgroup/levels_int.h"
#include "isolation/cgroup/numa.h"
#include "isolation/limits.h"

#define OWNER_XATTR "trusted.paddock.owner"
#define LOCKED_FILE "cgroup.procs"

/* The controllers that tasks use; the others stay where they are. */
static const uint32_t wanted = CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS | CGROUP_IO | CGROUP_CPUSET;

static uint32_t
read_controllers(int dirfd, const char *file)
{
    auto_mem void *tmp = mem_ctx("read_controllers");
    char *text;
    if (file_read(tmp, dirfd, file, CGROUP_TEXT_MAX, &text, NULL) < 0)
        return 0;
    return cgroup_parse_controllers(text);
}

int
cgroup_find(const void *ctx, struct cgroup_info *ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("cgroup_find");
    char *text;
    int r = file_read(tmp, AT_FDCWD, MOUNTS_FILE, MOUNT_TABLE_MAX, &text, NULL);
    if (r < 0)
        return err_set(e, r, "cannot read %s: %s", MOUNTS_FILE, err_name(r));
    for (struct mount_line m; mounts_next(&text, &m);) {
        if (strcmp(m.type, "cgroup2") != 0)
            continue;
        auto_fd int fd = open(m.point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            continue;
        ret->mount = mem_strdup(ctx, m.point);
        ret->controllers = read_controllers(fd, "cgroup.controllers");
        return 0;
    }
    return err_set(e, -ERR_NOT_FOUND,
                   "no cgroup2 file system is mounted: isolation needs one (mount -t cgroup2)");
}

/* --- tree --- */
/* Hands controllers down to the children of `dirfd`, in one go where that works: each write makes
 * the kernel look at everything below. Else one by one: what cannot be had is left out. */
static void
enable_controllers(int dirfd, uint32_t which)
{
    uint32_t have = read_controllers(dirfd, "cgroup.controllers") & which;
    uint32_t done = have ? read_controllers(dirfd, "cgroup.subtree_control") : 0;
    char all[96] = "", one[16];
    for (size_t i = 0; i < CGROUP_CONTROLLERS_N; i++) {
        size_t n = strlen(all);
        if (have & ~done & cgroup_controllers[i].bit)
            (void)snprintf(all + n, sizeof(all) - n, "%s+%s", n ? " " : "",
                           cgroup_controllers[i].name);
    }
    if (all[0] == '\0' || file_put(dirfd, "cgroup.subtree_control", all) == 0)
        return;
    for (size_t i = 0; i < CGROUP_CONTROLLERS_N; i++) {
        if (!(have & ~done & cgroup_controllers[i].bit))
            continue;
        (void)snprintf(one, sizeof(one), "+%s", cgroup_controllers[i].name);
        (void)file_put(dirfd, "cgroup.subtree_control", one);
    }
}

/* A cgroup below the first level with processes of its own hands down nothing: cpu and pids it
 * could, but the cgroups below would be of threads then, and no process could be born there. */
static void
enable_if_empty(int dirfd, uint32_t which)
{
    char first[2];
    if (faccessat(dirfd, "cgroup.type", F_OK, 0) < 0 ||
        (cgroup_read(dirfd, "cgroup.procs", first, sizeof(first)) == 0 && first[0] == '\0'))
        enable_controllers(dirfd, which);
}

/* Into the parent, as far as that has them; huge pages, which systemd neither knows nor takes away,
 * from the top on. */
static void
enable_above(int dirfd, uint32_t which)
{
    auto_fd int up = openat(dirfd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (up < 0 || faccessat(up, "cgroup.procs", F_OK, 0) < 0)
        return;
    enable_above(up, which & CGROUP_HUGETLB); /* as deep as the path is long */
    enable_if_empty(up, which);
}

/* Some of the machine's memory is, or may become, huge pages. */
static bool
has_huge_pages(void)
{
    static const char *const files[] = {"nr_hugepages", "nr_overcommit_hugepages"};
    auto_mem void *tmp = mem_ctx("huge pages");
    auto_fd int dir = open("/sys/kernel/mm/hugepages", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct str_list sizes = {0};
    if (dir >= 0)
        cgroup_dirs(tmp, dir, &sizes);
    for (size_t i = 0; i < sizes.n * ARRAY_LEN(files); i++) {
        char text[32];
        const char *path =
            mem_printf(tmp, "%s/%s", sizes.v[i / ARRAY_LEN(files)], files[i % ARRAY_LEN(files)]);
        if (cgroup_read(dir, path, text, sizeof(text)) == 0 && text[0] >= '1' && text[0] <= '9')
            return true;
    }
    return false;
}

/* The sizes of this kernel, from the files that it shows: hugetlb.2MB.max */
static void
find_huge(int dirfd, struct cgroup_root *r)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    r->huge.n = 0;
    if (dir == NULL || !(r->controllers & CGROUP_HUGETLB)) {
        if (dir == NULL)
            fd_close(&fd);
        else
            (void)closedir(dir);
        return;
    }
    for (struct dirent *d; (d = readdir(dir)) != NULL && r->huge.n < CGROUP_HUGE_MAX;) {
        size_t n = str_prefix(d->d_name, "hugetlb.") ? strcspn(d->d_name + 8, ".") : 0;
        if (n == 0 || n >= sizeof(r->huge.size[0]) || !str_eq(d->d_name + 8 + n, ".max"))
            continue;
        memcpy(r->huge.size[r->huge.n], d->d_name + 8, n);
        r->huge.size[r->huge.n++][n] = 0;
    }
    ASSERT(r->huge.n <= ARRAY_LEN(r->huge.size));
    (void)closedir(dir);
}

static int
open_root(const char *path, int *ret_fd, struct err *e)
{
    auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, errno, "cannot open the cgroup \"%s\"", path);
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
        return err_set(e, -ERR_INVALID, "\"%s\" is not a cgroup (version 2)", path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Makes and opens the cgroup with a shared lock, on a file that only root may open for writing:
 * nobody else can hold up a warden. Its remover has the lock exclusively for that moment, so the
 * cgroup may be gone before we have the lock: then another one is made. */
static int
make_root(const char *path, int *ret_fd, int *ret_lock, struct err *e)
{
    for (int tries = 0; tries < WARDEN_LOCK_TRIES_MAX; tries++) {
        auto_fd int fd = -1;
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return err_errno(e, errno, "cannot make the cgroup \"%s\"", path);
        int r = open_root(path, &fd, e);
        if (r < 0 && r != -ENOENT)
            return r;
        if (r < 0)
            err_clear(e);
        auto_fd int lock = fd >= 0 ? openat(fd, LOCKED_FILE, O_WRONLY | O_CLOEXEC) : -1;
        if (lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
            (void)poll(NULL, 0, WARDEN_RETRY_MS);
        } else if (fd >= 0 && faccessat(fd, LOCKED_FILE, F_OK, 0) == 0) {
            *ret_fd = TAKE_FD(fd);
            *ret_lock = TAKE_FD(lock);
            return 0;
        }
    }
    return err_set(e, -EBUSY, "somebody removes the cgroup \"%s\" again and again", path);
}

int
cgroup_root_open(struct cgroup_root *ret, const char *path, bool make, struct err *e)
{
    auto_fd int fd = -1;
    auto_fd int lock = -1;
    int r = make ? make_root(path, &fd, &lock, e) : open_root(path, &fd, e);
    if (r < 0)
        return r;
    uint32_t which = wanted | (ret->hugetlb || has_huge_pages() ? CGROUP_HUGETLB : 0);
    if (make)
        enable_above(fd, which);
    enable_if_empty(fd, which);
    ret->top = faccessat(fd, "../cgroup.type", F_OK, 0) < 0; /* which only the first level lacks */
    ret->controllers = read_controllers(fd, "cgroup.subtree_control") & which;
    find_huge(fd, ret);
    ret->fd = TAKE_FD(fd);
    ret->lock = TAKE_FD(lock);
    ret->cores = false;
    levels_share_cores(ret);
    return 0;
}

bool
cgroup_root_gone(const struct cgroup_root *r)
{
    return faccessat(r->fd, "cgroup.procs", F_OK, 0) < 0;
}

void
cgroup_root_close(struct cgroup_root *r)
{
    fd_close(&r->fd);
    fd_close(&r->lock);
}

void
cgroup_root_remove(struct cgroup_root *r, const char *path)
{
    if (r->lock >= 0 && flock(r->lock, LOCK_EX | LOCK_NB) == 0)
        (void)rmdir(path); /* fails while tasks of a warden that is away are in it */
    cgroup_root_close(r);
}

static bool
is_component(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n < 256 && strcmp(s, ".") != 0 && strcmp(s, "..") != 0 && !strchr(s, '/') &&
           !strchr(s, '\n');
}

static int
check_names(const char *alloc, const char *task, struct err *e)
{
    if (is_component(alloc) && is_component(task))
        return 0;
    return err_set(e, -ERR_INVALID, "\"%.64s/%.64s\" cannot be the name of a cgroup", alloc, task);
}

/* A directory for inner nodes, with controllers handed down where there are any. */
static int
make_inner(int dirfd, const char *name, uint32_t which, const char *owner)
{
    bool made = mkdirat(dirfd, name, 0755) == 0;
    if (!made && errno != EEXIST)
        return -errno;
    int fd = cgroup_open_dir(dirfd, name);
    if (fd >= 0 && which != 0)
        enable_controllers(fd, which);
    if (fd >= 0 && made &&
        owner != NULL) /* not everywhere possible; then nothing counts as stray */
        (void)fsetxattr(fd, OWNER_XATTR, owner, strlen(owner), 0);
    return fd;
}

/* A leaf as new: an empty one of an earlier run would still have its limits and counters. */
static int
make_leaf(int dirfd, const char *name)
{
    if (mkdirat(dirfd, name, 0755) < 0) {
        if (errno != EEXIST)
            return -errno;
        if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0 || mkdirat(dirfd, name, 0755) < 0)
            return -errno;
    }
    return cgroup_open_dir(dirfd, name);
}

static int
cannot_make(struct cgroup_root *r, const char *alloc, const char *task, int code, struct err *e)
{
    if (code != -EBUSY)
        (void)cgroup_task_remove(r, alloc, task, NULL);
    return err_set(e, code, "cannot make the cgroup of task \"%s\" in \"%s\": %s", task, alloc,
                   code == -EBUSY     ? "processes of an earlier run are still in it"
                   : code == -ENOTDIR ? "the kernel has a file of that name there: rename the task"
                                      : err_name(code));
}

static int
refuse_absent(const struct cgroup_file *f, bool known, struct err *e)
{
    return err_set(e, -ERR_POLICY,
                   "the limit \"%s\" cannot be set here, and this client requires limits: its "
                   "cgroups have no such %s",
                   f->name, known ? "controller" : "file");
}

/* Refuses a strict plan before anything is changed, if something of it cannot be had here. */
static int
check_required(int taskfd, int leaf, const struct cgroup_plan *plan, struct err *e)
{
    for (size_t i = 0; i < plan->n && plan->strict; i++) {
        const struct cgroup_file *f = &plan->files[i];
        if (f->need != CGROUP_HINT &&
            (f->absent || (faccessat(f->above ? taskfd : leaf, f->name, F_OK, 0) < 0 &&
                           errno == ENOENT)))
            return refuse_absent(f, f->absent, e);
    }
    return 0;
}

/* One limit. What is no hint has to be there where the policy is strict. */
static int
apply_file(int taskfd, int leaf, struct cgroup_file *f, bool strict, struct err *e)
{
    int r = f->absent ? -ENOENT : file_put(f->above ? taskfd : leaf, f->name, f->value);
    if (r == 0 || f->need == CGROUP_HINT)
        return 0;
    bool known = f->absent;
    f->absent = r == -ENOENT;
    if (f->absent && strict)
        return refuse_absent(f, known, e);
    if (f->absent && (known || f->need == CGROUP_ASKED))
        return 0;
    return err_set(e, r, "cannot write \"%s\" to the cgroup file \"%s\": %s", f->value, f->name,
                   err_name(r));
}

/* Cores of its own, or what others leave. */
static int
apply_cores(const struct cgroup_root *r, int taskfd, int leaf, const struct cgroup_plan *plan,
            struct err *e)
{
    char text[CGROUP_CPUS_TEXT_MAX];
    if (!(r->controllers & CGROUP_CPUSET))
        return 0;
    if (!plan->has_cores) {
        if (r->cores)
            (void)file_put(taskfd, "cpuset.cpus", cgroup_cpus_text(&r->shared, text));
        return 0;
    }
    (void)file_put(taskfd, "cpuset.cpus", "\n"); /* an earlier run may have shared */
    int k = file_put(leaf, "cpuset.cpus", cgroup_cpus_text(&plan->cores, text));
    if (k < 0)
        return err_set(e, k, "cannot reserve the cores %.64s: %s", text, err_name(k));
    struct numa_nodes numa;
    struct cgroup_cpus near;
    numa_read(NUMA_DIR, &numa);
    if (numa_near(&numa, &plan->cores, &near)) /* a hint: a cgroup above may have other nodes */
        (void)file_put(leaf, "cpuset.mems", cgroup_cpus_text(&near, text));
    return 0;
}

static int
apply_plan(const struct cgroup_root *r, int taskfd, int leaf, struct cgroup_plan *plan,
           struct err *e)
{
    int k = 0;
    for (size_t i = 0; i < plan->n && k == 0; i++)
        k = apply_file(taskfd, leaf, &plan->files[i], plan->strict, e);
    return k == 0 ? apply_cores(r, taskfd, leaf, plan, e) : k;
}

int
cgroup_shim_make(struct cgroup_root *r, const char *alloc, const char *task,
                 struct cgroup_task *ret, struct err *e)
{
    *ret = (struct cgroup_task){-1, -1, 0};
    int k = check_names(alloc, task, e);
    if (k < 0)
        return k;
    auto_fd int afd = make_inner(r->fd, alloc, r->controllers, r->owner);
    auto_fd int tfd = afd < 0 ? afd : make_inner(afd, task, r->controllers, NULL);
    int shim = tfd < 0 ? tfd : make_leaf(tfd, "shim");
    if (shim < 0)
        return cannot_make(r, alloc, task, shim, e);
    ret->shim_fd = shim;
    return 0;
}

int
cgroup_task_make(struct cgroup_root *r, const char *alloc, const char *task, struct cgroup_task *t,
                 struct err *e)
{
    auto_fd int afd = cgroup_open_dir(r->fd, alloc);
    auto_fd int tfd = afd < 0 ? afd : cgroup_open_dir(afd, task);
    auto_fd int leaf = tfd < 0 ? tfd : make_leaf(tfd, "task");
    struct stat st;
    if (leaf < 0 || fstat(leaf, &st) < 0)
        return cannot_make(r, alloc, task, leaf < 0 ? leaf : -errno, e);
    t->id = st.st_ino;
    t->task_fd = TAKE_FD(leaf);
    return 0;
}

int
cgroup_task_limit(struct cgroup_root *r, const char *alloc, const char *task,
                  struct cgroup_plan *plan, const struct cgroup_task *t, struct err *e)
{
    auto_fd int afd = cgroup_open_dir(r->fd, alloc);
    auto_fd int tfd = afd < 0 ? afd : cgroup_open_dir(afd, task);
    if (tfd < 0)
        return err_set(e, tfd, "cannot open the cgroup of task \"%s\" in \"%s\": %s", task, alloc,
                       err_name(tfd));
    int k = apply_plan(r, tfd, t->task_fd, plan, e);
    if (k == 0)
        levels_update(r, afd, plan->keeps_memory);
    if (k == 0 && plan->has_cores)
        levels_share_cores(r);
    return k;
}

int
cgroup_task_open(const struct cgroup_root *r, const char *alloc, const char *task,
                 struct cgroup_task *ret, struct err *e)
{
    int k = check_names(alloc, task, e);
    if (k < 0)
        return k;
    auto_fd int afd = cgroup_open_dir(r->fd, alloc);
    auto_fd int tfd = afd < 0 ? afd : cgroup_open_dir(afd, task);
    auto_fd int shim = tfd < 0 ? tfd : cgroup_open_dir(tfd, "shim");
    auto_fd int leaf = shim < 0 ? shim : cgroup_open_dir(tfd, "task");
    struct stat st = {0};
    if (shim < 0 || (leaf < 0 && leaf != -ENOENT) || (leaf >= 0 && fstat(leaf, &st) < 0)) {
        int code = shim < 0 ? shim : leaf < 0 ? leaf : -errno;
        return err_set(e, code, "cannot open the cgroup of task \"%s\" in \"%s\": %s", task, alloc,
                       err_name(code));
    }
    *ret = (struct cgroup_task){.shim_fd = TAKE_FD(shim), .task_fd = -1, .id = st.st_ino};
    if (leaf >= 0)
        ret->task_fd = TAKE_FD(leaf);
    return 0;
}

void
cgroup_task_close(struct cgroup_task *t)
{
    fd_close(&t->shim_fd);
    fd_close(&t->task_fd);
}

/* Resets what a plan may leave unsaid, as if it had never been limited. Before the plan, because a
 * burst is bounded by the quota and an idle group has no weight. */
static void
cgroup_reset(int taskfd, int leaf)
{
    static const struct {
        const char *name, *value;
        bool above;
    } files[] = {
        {"cpu.max.burst", "0", false},
        {"cpu.max", "max 100000", false},
        {"cpu.idle", "0", true},
        {"memory.high", "max", false},
        {"memory.low", "0", false},
        {"memory.low", "0", true},
        {"memory.min", "0", false},
        {"memory.min", "0", true},
        {"memory.zswap.max", "max", false},
        {"io.weight", "100", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        (void)file_put(files[i].above ? taskfd : leaf, files[i].name, files[i].value);
    auto_mem void *tmp = mem_ctx("io.max");
    char *text, *save = NULL;
    if (file_read(tmp, leaf, "io.max", CGROUP_TEXT_MAX, &text, NULL) < 0)
        return;
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        (void)file_put(
            leaf, "io.max",
            mem_printf(tmp, "%.*s rbps=max wbps=max riops=max wiops=max", (int)strcspn(l, " "), l));
}

int
cgroup_task_resize(struct cgroup_root *r, const char *alloc, const char *task,
                   struct cgroup_plan *plan, struct err *e)
{
    int k = check_names(alloc, task, e);
    if (k < 0)
        return k;
    auto_fd int afd = cgroup_open_dir(r->fd, alloc);
    auto_fd int tfd = afd < 0 ? afd : cgroup_open_dir(afd, task);
    auto_fd int leaf = tfd < 0 ? tfd : cgroup_open_dir(tfd, "task");
    if (leaf < 0)
        return err_set(e, leaf, "cannot open the cgroup of task \"%s\" in \"%s\": %s", task, alloc,
                       err_name(leaf));
    k = check_required(tfd, leaf, plan, e);
    if (k < 0)
        return k;
    cgroup_reset(tfd, leaf);
    for (size_t i = 0; i < plan->n; i++) { /* all: what is left out now has no limit any more */
        int one = apply_file(tfd, leaf, &plan->files[i], plan->strict, k == 0 ? e : NULL);
        k = k < 0 ? k : one;
    }
    levels_update(r, afd, true);
    if (k < 0)
        err_prefix(e, "limits may be changed in part");
    return k;
}

/* 0 when the directory is gone afterwards. */
static int
remove_dir(int dirfd, const char *name)
{
    if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return -errno;
    return 0;
}

int
cgroup_task_remove(struct cgroup_root *r, const char *alloc, const char *task, struct err *e)
{
    int k = check_names(alloc, task, e);
    if (k < 0)
        return k;
    auto_fd int afd = cgroup_open_dir(r->fd, alloc);
    if (afd < 0)
        return afd == -ENOENT ? 0 : err_set(e, afd, "cannot open the cgroup of \"%s\"", alloc);
    auto_fd int tfd = cgroup_open_dir(afd, task);
    bool cores = tfd >= 0 && r->cores && levels_has_cores(tfd);
    if (tfd >= 0) {
        k = remove_dir(tfd, "task");
        if (k == 0 && cores) /* now: the next call, for what is left, does not see them */
            levels_share_cores(r);
        int s = remove_dir(tfd, "shim");
        k = k < 0 ? k : s;
    }
    if (k == 0)
        k = remove_dir(afd, task);
    if (k < 0 && k != -ENOTDIR) /* a file of the kernel's: no task could have that name */
        return err_set(e, k, "cannot remove the cgroup of task \"%s\" in \"%s\": %s", task, alloc,
                       k == -EBUSY ? "processes are still in it" : err_name(k));
    bool last = remove_dir(r->fd, alloc) == 0;
    if (!last || (r->controllers & CGROUP_MEMORY)) /* the sums are of what is left */
        levels_update(r, last ? -1 : afd, false);
    return 0;
}

static bool
is_ours(const struct cgroup_root *r, int fd, bool *ret_marked)
{
    char owner[PATH_MAX];
    ssize_t n = r->owner == NULL ? -1 : fgetxattr(fd, OWNER_XATTR, owner, sizeof(owner));
    *ret_marked = n >= 0;
    return n >= 0 && (size_t)n == strlen(r->owner) && memcmp(owner, r->owner, (size_t)n) == 0;
}

void
cgroup_each_task(const struct cgroup_root *r,
                 void (*fn)(void *arg, const char *alloc, const char *task), void *arg)
{
    auto_mem void *ctx = mem_ctx("cgroups");
    struct str_list allocs = {0};
    cgroup_dirs(ctx, r->fd, &allocs);
    for (size_t i = 0; i < allocs.n; i++) {
        auto_fd int afd = cgroup_open_dir(r->fd, allocs.v[i]);
        struct str_list tasks = {0};
        bool marked = false, ours = afd >= 0 && is_ours(r, afd, &marked);
        if (!ours && !marked &&
            uuid_valid(allocs.v[i])) /* its maker was killed before it put a mark */
            /* which fails if there is anything in it */
            (void)unlinkat(r->fd, allocs.v[i], AT_REMOVEDIR);
        if (!ours)
            continue;
        cgroup_dirs(ctx, afd, &tasks);
        for (size_t k = 0; k < tasks.n; k++)
            fn(arg, allocs.v[i], tasks.v[k]);
        if (tasks.n == 0) /* made, and nothing below it yet */
            (void)unlinkat(r->fd, allocs.v[i], AT_REMOVEDIR);
    }
}

/* --- state --- */
/* Kills one by one, for kernels without cgroup.kill: frozen first, so that nothing can fork
 * away. */
static int
kill_each(int dirfd)
{
    (void)cgroup_freeze(dirfd, true);
    int r = -EAGAIN;
    for (int round = 0; round < CGROUP_KILL_ROUNDS_MAX && r == -EAGAIN; round++) {
        auto_mem void *tmp = mem_ctx("kill_each");
        char *text, *save = NULL;
        int k = file_read(tmp, dirfd, "cgroup.procs", CGROUP_PROCS_MAX, &text, NULL);
        if (k < 0)
            return k;
        r = 0;
        for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
            int64_t pid;
            if (num_parse_i64(p, &pid) == 0 && pid > 0 && kill((pid_t)pid, SIGKILL) == 0 &&
                round == 0)
                r = -EAGAIN; /* look once more for what was forked meanwhile */
        }
    }
    (void)cgroup_freeze(dirfd, false);
    return r;
}

int
cgroup_kill(int dirfd)
{
    int r = file_put(dirfd, "cgroup.kill", "1");
    if (r == -ENOENT && cgroup_populated(dirfd) >= 0)
        return kill_each(dirfd);
    return r;
}

int
cgroup_freeze(int dirfd, bool freeze)
{
    return file_put(dirfd, "cgroup.freeze", freeze ? "1" : "0");
}

int
cgroup_populated(int dirfd)
{
    char text[256];
    int r = cgroup_read(dirfd, "cgroup.events", text, sizeof(text));
    if (r < 0)
        return r;
    int64_t v;
    return cgroup_parse_flat(text, "populated", &v) ? v != 0 : -EPROTO;
}

int
cgroup_events_open(int dirfd)
{
    int fd = openat(dirfd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int
cgroup_wait_empty(int dirfd, int timeout_ms)
{
    auto_fd int fd = cgroup_events_open(dirfd);
    if (fd < 0)
        return fd == -ENOENT || fd == -ENODEV ? 0 : fd;
    int64_t end = clock_mono_ns() + timeout_ms * NS_PER_MS;
    for (;;) {
        char text[256];
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
        if (n < 0)
            return errno == ENODEV ? 0 : -errno;
        text[n] = 0;
        int64_t v, left = (end - clock_mono_ns()) / NS_PER_MS;
        if (cgroup_parse_flat(text, "populated", &v) && v == 0)
            return 0;
        if (left <= 0)
            return -ETIMEDOUT;
        struct pollfd p = {.fd = fd, .events = POLLPRI};
        if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
            return -errno;
    }
}

int
cgroup_disk(const char *path, unsigned *ret_major, unsigned *ret_minor)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    dev_t dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
    char dir[64], text[32];
    (void)snprintf(dir, sizeof(dir), "/sys/dev/block/%u:%u", major(dev), minor(dev));
    auto_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ENOTBLK : -errno;
    if (faccessat(fd, "partition", F_OK, 0) == 0) {
        int r = cgroup_read(fd, "../dev", text, sizeof(text));
        return r < 0 ? r : sscanf(text, "%u:%u", ret_major, ret_minor) == 2 ? 0 : -EPROTO;
    }
    *ret_major = major(dev);
    *ret_minor = minor(dev);
    return 0;
}

int
cgroup_pressure_open(int dirfd, enum cgroup_pressure what, int64_t us)
{
    static const char *const files[] = {"cpu.pressure", "memory.pressure", "io.pressure"};
    auto_fd int fd = openat(dirfd, files[what], O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    /* other windows are for CAP_SYS_RESOURCE, which containers often withhold */
    char text[48];
    int n = snprintf(text, sizeof(text), "some %lld 2000000", 2 * (long long)us);
    if (write(fd, text, (size_t)n + 1) < 0)
        return -errno;
    return TAKE_FD(fd);
}
