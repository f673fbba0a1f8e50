/* SPDX-License-Identifier: Apache-2.0
 *
 * User namespaces: a range of 65536 host ids per allocation, so that root in a task, or a task that
 * got out of everything else, is nobody on the host and nobody in another allocation. The namespace
 * is made with the allocation's directories, off the path of a launch, by a process that is gone at
 * once: an fd keeps it. Files on disk keep the ids that the task sees: its directories are
 * id-mapped mounts with the same namespace.
 *
 * Whoever makes a namespace owns it, and the kernel counts its use (inotify, pending signals,
 * timers, locked memory) as the owner's too, with a limit for each user. So its maker is the first
 * id of the range, and what an allocation uses up is its own. An owner has all capabilities over
 * the namespace, where he is in the host's: nobody is, since no task may run as an id of the ranges
 * (policy_user), and the maker is gone at once.
 *
 * Which range an allocation has is nowhere written but in the records of its tasks (the payload's
 * uid on the host): nothing on disk depends on it. A new warden finds the namespace itself by a
 * running task, for the next task of the allocation and for commands that join.
 */
#include "isolation/warden/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/confine.h"
#include "isolation/confine/raw.h"
#include "isolation/launch/policy.h"
#include "isolation/proc.h"

#define ROOM "warden"

/* --- one namespace --- */

static int
write_map(pid_t pid, const char *file, uint32_t base)
{
    char path[64], text[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
    (void)snprintf(text, sizeof(text), "0 %u %u\n", base, POLICY_RANGE_IDS);
    auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

/* In the child. Root may set what unprivileged users may not make on some machines. */
static long
own_namespace(uint32_t base)
{
    long r = RAW(SYS_setresuid, -1, base, -1);
    if (r == 0)
        r = confine_use_cap(CAP_SYS_ADMIN, true);
    return r < 0 ? r : RAW(SYS_unshare, CLONE_NEWUSER);
}

/* Tells `ready` when it is in its namespace, or why not, and waits to be killed. */
_Noreturn static void
userns_maker(uint32_t base, int ready, pid_t parent)
{
    long r = own_namespace(base);
    (void)RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* other ids reset it */
    (void)RAW(SYS_write, ready, &r, sizeof(r));
    while (RAW(SYS_getppid) == parent) /* not killed before the lines above */
        (void)RAW(SYS_ppoll, NULL, 0, NULL, NULL, 8);
    for (;;)
        (void)RAW(SYS_exit, 0);
}

static int
map_and_open(pid_t pid, uint32_t base, const char **what)
{
    char path[64];
    *what = "write uid_map";
    int r = write_map(pid, "uid_map", base);
    if (r < 0)
        return r;
    *what = "write gid_map";
    r = write_map(pid, "gid_map", base);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    *what = "open the namespace";
    r = open(path, O_RDONLY | O_CLOEXEC);
    return r < 0 ? -errno : r;
}

/* The fd of a new user namespace, or -errno with *what. */
static int
make_namespace(uint32_t base, const char **what)
{
    auto_fd int ready = -1, told = -1, process = -1;
    int ends[2];
    long made = -EIO;
    pid_t parent = getpid();
    *what = "pipe2";
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    told = ends[0];
    ready = ends[1];
    pid_t pid = proc_fork_bare(0, ready, -1, &process);
    if (pid == 0)
        userns_maker(base, ready, parent);
    *what = "clone3";
    if (pid < 0)
        return pid;
    /* our end for writing stays open: the child takes its own copy of the table later */
    struct pollfd p[] = {{.fd = told, .events = POLLIN}, {.fd = process, .events = POLLIN}};
    *what = "unshare (CLONE_NEWUSER)";
    while (poll(p, ARRAY_LEN(p), -1) < 0 && errno == EINTR)
        ;
    if ((p[0].revents & POLLIN) == 0 || read(told, &made, sizeof(made)) != (ssize_t)sizeof(made))
        made = -EIO;
    int r = made < 0 ? (int)made : map_and_open(pid, base, what);
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}

/* --- is it possible here? --- */

void
userns_probe(struct warden *w)
{
    const char *what = "";
    fact_yes(&w->can.userns);
    if (!w->root || !w->can.exec.ok) {
        fact_no(&w->can.userns, "no driver here uses them");
        return;
    }
    auto_fd int ns = make_namespace(policy_range_base(w->policy), &what);
    if (ns < 0) {
        fact_no(&w->can.userns, "%s: %s", what, strerror(-ns));
        return;
    }
    auto_fd int tree = (int)RAW(SYS_open_tree, w->alloc_dir, "",
                                AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)(unsigned)ns};
    long r = tree < 0 ? tree : RAW(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr));
    if (r < 0)
        fact_no(&w->can.userns, "the file system of alloc_dir takes no id-mapped mount: %s",
                strerror((int)-r));
}

bool
userns_wanted(const struct warden *w)
{
    return !str_eq(w->policy->userns, "off") && w->can.userns.ok;
}

/* --- ranges of allocations --- */

static struct userns *
userns_find(struct warden *w, const char *alloc)
{
    for (size_t i = 0; i < w->n_userns; i++)
        if (str_eq(w->userns[i].alloc, alloc))
            return &w->userns[i];
    return NULL;
}

static void
remove_at(struct warden *w, size_t i)
{
    fd_close(&w->userns[i].fd);
    w->userns[i] = w->userns[--w->n_userns];
}

void
userns_drop(struct warden *w, const char *alloc)
{
    struct userns *u = userns_find(w, alloc);
    if (u != NULL)
        remove_at(w, (size_t)(u - w->userns));
}

static bool
has_task(const struct warden *w, const char *alloc)
{
    for (size_t i = 0; i < w->n_tasks; i++)
        if (str_eq(w->tasks[i]->alloc, alloc))
            return true;
    return false;
}

static bool
userns_taken(const struct warden *w, uint32_t base)
{
    for (size_t i = 0; i < w->n_userns; i++)
        if (w->userns[i].base == base)
            return true;
    for (size_t i = 0; i < w->n_tasks; i++)
        if (w->tasks[i]->id_base == base)
            return true;
    return false;
}

/* The range of an older task of the allocation, of an earlier warden, else the next free one: a
 * range rests as long as can be before it is used again. 0: none is left. */
static uint32_t
userns_choose(struct warden *w, const char *alloc)
{
    for (size_t i = 0; i < w->n_tasks; i++)
        if (w->tasks[i]->id_base != 0 && str_eq(w->tasks[i]->alloc, alloc))
            return w->tasks[i]->id_base;
    uint32_t first = policy_range_base(w->policy), n = policy_range_count(w->policy);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t base = first + (w->userns_next++ % n) * POLICY_RANGE_IDS;
        if (!userns_taken(w, base))
            return base;
    }
    return 0;
}

uint32_t
userns_range_of(const struct warden *w, uint32_t uid)
{
    uint32_t base = uid - uid % POLICY_RANGE_IDS, first = policy_range_base(w->policy);
    return base >= first && (base - first) / POLICY_RANGE_IDS < policy_range_count(w->policy) ? base
                                                                                             : 0;
}

static bool
same_namespace(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

/* The user namespace of a running task of the allocation, which an earlier warden made; -1: none.
 * Not one that the task may have made itself: ours is in the host's, of the first id of the range.
 */
static int
adopt_namespace(const struct warden *w, const char *alloc, uint32_t base)
{
    auto_fd int host = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; host >= 0 && i < w->n_tasks; i++) {
        const struct wtask *t = w->tasks[i];
        if (t->id_base != base || t->payload < 0 || t->pid <= 0 || !str_eq(t->alloc, alloc))
            continue;
        char path[64];
        uid_t owner = (uid_t)-1;
        (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)t->pid);
        auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
        auto_fd int parent = fd < 0 ? -1 : ioctl(fd, NS_GET_PARENT);
        if (parent >= 0 && same_namespace(parent, host) &&
            ioctl(fd, NS_GET_OWNER_UID, &owner) == 0 && owner == base &&
            pidfd_signal(t->payload, 0) == 0) /* the number is still its own */
            return TAKE_FD(fd);
    }
    return -1;
}

int
userns_get(struct warden *w, const char *alloc, const struct userns **ret, struct err *e)
{
    struct userns *u = userns_find(w, alloc);
    if (u != NULL) {
        *ret = u;
        return 0;
    }
    uint32_t base = w->n_userns < WARDEN_USERNS_MAX ? userns_choose(w, alloc) : 0;
    for (size_t i = w->n_userns; i-- > 0 && base == 0;) {
        if (has_task(w, w->userns[i].alloc))
            continue;
        remove_at(w, i); /* made again should it be wanted */
        base = userns_choose(w, alloc);
    }
    if (base == 0)
        return err_set(e, -ERR_LIMIT, "no range of user ids is left for allocation \"%s\"", alloc);
    const char *what = "";
    int fd = adopt_namespace(w, alloc, base);
    if (fd < 0)
        fd = make_namespace(base, &what);
    if (fd < 0)
        return err_errno(e, -fd, "make a user namespace: %s", what);
    if ((w->n_userns & (w->n_userns - 1)) == 0)
        mem_resize(w, w->userns, struct userns, w->n_userns > 0 ? w->n_userns * 2 : 1);
    u = &w->userns[w->n_userns++];
    *u = (struct userns){.base = base, .fd = fd};
    str_copy(u->alloc, sizeof(u->alloc), alloc);
    *ret = u;
    return 0;
}
