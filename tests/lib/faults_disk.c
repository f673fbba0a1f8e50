/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk with a volatile cache, for power cuts: see faults.h. Everything is done to the real file
 * system at once; remembered is how to undo it. Removed and replaced files wait under other names in
 * DIR.lost until the process ends.
 */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include "tests/lib/faults_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SECTOR = 512, INODES_MAX = 512, THREADS_MAX = 256 };
/* With this one libc tells its threads that the user changes; sigfillset() leaves it out, so that no
 * thread blocks it. */
enum { STOP_SIGNAL = 33, SA_RESTORER_FLAG = 0x04000000 };

/* An open copy of every file that was written to. */
struct inode {
    dev_t dev;
    ino_t ino;
    int fd;
    off_t durable; /* size as of the last sync */
};

struct change { /* of bytes, newest first */
    struct change *older;
    struct inode *inode;
    off_t at;
    size_t n;
    size_t had; /* bytes that were there before */
    uint8_t before[];
};

enum kind { MADE, MADE_DIR, RENAMED, REMOVED };

struct naming { /* of a name, newest first */
    struct naming *older;
    enum kind kind;
    dev_t dev; /* of the directories that must be synced */
    ino_t ino, ino2;
    char *path;
    char *to;   /* RENAMED */
    char *kept; /* what was removed or replaced; NULL: nothing */
};

static char root[PATH_MAX];
static char lost[PATH_MAX + 8];
static struct inode inodes[INODES_MAX];
static size_t n_inodes;
static struct change *changes;
static struct naming *namings;
static unsigned n_kept;
static uint64_t rng;
static bool all_goes;

static uint64_t
roll(uint64_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (rng >> 11) % n;
}

static void
die(const char *what)
{
    dprintf(2, "faults: %s: %s\n", what, strerror(errno));
    abort();
}

static void *
need(void *p)
{
    if (p == NULL)
        die("out of memory");
    return p;
}

void
disk_model(const char *dir)
{
    size_t n = dir != NULL ? strlen(dir) : 0;
    if (n > 0 && strncmp(root, dir, n) == 0 && strcmp(root + n, "/") == 0)
        return;
    while (changes != NULL) {
        struct change *c = changes;
        changes = c->older;
        free(c);
    }
    while (namings != NULL) {
        struct naming *m = namings;
        namings = m->older;
        if (m->kept != NULL)
            (void)syscall(SYS_unlinkat, AT_FDCWD, m->kept, 0);
        free(m->path);
        free(m->to);
        free(m->kept);
        free(m);
    }
    while (n_inodes > 0)
        close(inodes[--n_inodes].fd);
    if (root[0] != '\0')
        (void)syscall(SYS_unlinkat, AT_FDCWD, lost, AT_REMOVEDIR);
    root[0] = '\0';
    if (dir == NULL)
        return;
    snprintf(root, sizeof(root), "%s/", dir);
    snprintf(lost, sizeof(lost), "%s.lost", dir);
    if (syscall(SYS_mkdirat, AT_FDCWD, lost, 0700) < 0 && errno != EEXIST)
        die(lost);
}

bool
disk_covers(const char *path)
{
    return root[0] != '\0' && strncmp(path, root, strlen(root)) == 0;
}

bool
disk_is_modelled(void)
{
    return root[0] != '\0';
}

/* --- bytes --- */

static struct inode *
inode_of(int fd, bool make)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return NULL;
    for (size_t i = 0; i < n_inodes; i++)
        if (inodes[i].dev == st.st_dev && inodes[i].ino == st.st_ino)
            return &inodes[i];
    if (!make)
        return NULL;
    if (n_inodes == INODES_MAX)
        die("too many files");
    char self[40];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    int own = (int)syscall(SYS_openat, AT_FDCWD, self, O_RDWR | O_CLOEXEC);
    if (own < 0)
        die("open a file once more");
    inodes[n_inodes] = (struct inode){st.st_dev, st.st_ino, own, st.st_size};
    return &inodes[n_inodes++];
}

void
disk_before_write(int fd, size_t n, off_t at)
{
    struct inode *i = inode_of(fd, true);
    if (i == NULL)
        return;
    struct stat st;
    if (fstat(i->fd, &st) < 0)
        die("fstat");
    if (n == 0) { /* cut off or prolonged */
        n = st.st_size > at ? (size_t)(st.st_size - at) : 0;
        if (n == 0)
            return; /* the size alone: `durable` knows */
    }
    struct change *c = need(calloc(1, sizeof(*c) + n));
    *c = (struct change){.older = changes, .inode = i, .at = at, .n = n};
    ssize_t had = real_pread(i->fd, c->before, n, at);
    c->had = had > 0 ? (size_t)had : 0;
    changes = c;
}

static void
bytes_synced(struct inode *i)
{
    struct stat st;
    if (fstat(i->fd, &st) == 0)
        i->durable = st.st_size;
    for (struct change **at = &changes; *at != NULL;) {
        struct change *c = *at;
        if (c->inode != i) {
            at = &c->older;
            continue;
        }
        *at = c->older;
        free(c);
    }
}

/* Puts back what was there, in whole sectors of the file. */
static void
bytes_lose(const struct change *c)
{
    uint64_t mode = all_goes ? 0 : roll(4); /* 0: all is lost, 1: nothing, else some sectors */
    for (size_t o = 0; o < c->n && mode != 1;) {
        size_t end = (size_t)(((uint64_t)c->at + o) / SECTOR + 1) * SECTOR - (size_t)c->at;
        if (end > c->n)
            end = c->n;
        if (mode == 0 || roll(2) == 0)
            (void)real_pwrite(c->inode->fd, c->before + o, end - o, c->at + (off_t)o);
        o = end;
    }
}

/* --- names --- */

static void
parent(const char *path, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s", path);
    char *slash = strrchr(out, '/');
    if (slash != NULL)
        slash[slash == out] = '\0';
}

static struct naming *
naming_new(enum kind kind, const char *path, const char *to)
{
    char dir[PATH_MAX];
    struct stat st = {0};
    struct naming *m = need(calloc(1, sizeof(*m)));
    parent(path, dir);
    (void)stat(dir, &st);
    *m = (struct naming){.older = namings, .kind = kind, .dev = st.st_dev, .ino = st.st_ino};
    m->path = need(strdup(path));
    if (to != NULL) {
        parent(to, dir);
        (void)stat(dir, &st);
        m->ino2 = st.st_ino;
        m->to = need(strdup(to));
    }
    namings = m;
    return m;
}

/* A second name for what is about to lose its own. */
static char *
keep(const char *path)
{
    char name[PATH_MAX + 32];
    snprintf(name, sizeof(name), "%s/%d-%u", lost, getpid(), n_kept++);
    if (link(path, name) < 0)
        return NULL;
    return need(strdup(name));
}

void
disk_made(const char *path, bool dir)
{
    naming_new(dir ? MADE_DIR : MADE, path, NULL);
}

void
disk_before_rename(const char *from, const char *to)
{
    char *kept = keep(to);
    naming_new(RENAMED, from, to)->kept = kept;
}

void
disk_before_unlink(const char *path)
{
    char *kept = keep(path);
    if (kept != NULL)
        naming_new(REMOVED, path, NULL)->kept = kept;
}

void
disk_synced(int fd)
{
    struct inode *i = inode_of(fd, false);
    if (i != NULL)
        bytes_synced(i);
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
        return;
    for (struct naming **at = &namings; *at != NULL;) {
        struct naming *m = *at;
        bool durable = m->dev == st.st_dev && (m->ino == st.st_ino || m->ino2 == st.st_ino);
        if (!durable) {
            at = &m->older;
            continue;
        }
        *at = m->older;
        if (m->kept != NULL)
            (void)syscall(SYS_unlinkat, AT_FDCWD, m->kept, 0);
        free(m->path);
        free(m->to);
        free(m->kept);
        free(m);
    }
}

static void
name_lose(const struct naming *m)
{
    char away[PATH_MAX + 32];
    snprintf(away, sizeof(away), "%s/%d-%u", lost, getpid(), n_kept++);
    switch (m->kind) {
    case MADE:
    case MADE_DIR:
        (void)syscall(SYS_renameat, AT_FDCWD, m->path, AT_FDCWD, away);
        break;
    case RENAMED:
        (void)syscall(SYS_renameat, AT_FDCWD, m->to, AT_FDCWD, m->path);
        if (m->kept != NULL)
            (void)syscall(SYS_renameat, AT_FDCWD, m->kept, AT_FDCWD, m->to);
        break;
    case REMOVED:
        (void)syscall(SYS_renameat, AT_FDCWD, m->kept, AT_FDCWD, m->path);
        break;
    }
}

/* --- the cut --- */

static atomic_uint still;

static void
stand_still(int sig)
{
    (void)sig;
    atomic_fetch_add(&still, 1);
    for (;;)
        pause();
}

/* Calls `on` for every thread but this one; how many there are. Without memory of libc: who was
 * stopped may hold its lock. */
static unsigned
other_threads(int task_dir, void (*on)(pid_t))
{
    struct entry { /* linux_dirent64 */
        uint64_t ino, off;
        unsigned short length;
        unsigned char type;
        char name[];
    };
    alignas(struct entry) char buf[4096];
    unsigned n = 0;
    (void)lseek(task_dir, 0, SEEK_SET);
    for (long got; (got = syscall(SYS_getdents64, task_dir, buf, sizeof(buf))) > 0;)
        for (long at = 0; at < got;) {
            const struct entry *e = (const void *)(buf + at);
            pid_t tid = 0;
            for (const char *c = e->name; *c >= '0' && *c <= '9'; c++)
                tid = tid * 10 + (*c - '0');
            at += e->length;
            if (tid == 0 || tid == gettid())
                continue;
            on(tid);
            n++;
        }
    return n;
}

static void
stop_once(pid_t tid)
{
    static pid_t told[THREADS_MAX];
    static unsigned n;
    for (unsigned i = 0; i < n; i++)
        if (told[i] == tid)
            return;
    if (n == THREADS_MAX)
        die("too many threads");
    told[n++] = tid;
    (void)syscall(SYS_tgkill, getpid(), tid, STOP_SIGNAL);
}

/* Other threads read files through maps: they must not see them change. One that ends takes no
 * signal, and one that starts is seen the next time. */
static void
stop_threads(void)
{
    const struct { /* what the kernel takes: libc refuses its own signal */
        void (*handler)(int sig);
        unsigned long flags;
        void (*restorer)(int sig); /* is asked for on some machines; the handler does not return */
        unsigned long mask;
    } a = {stand_still, SA_RESTORER_FLAG, stand_still, 0};
    if (syscall(SYS_rt_sigaction, STOP_SIGNAL, &a, NULL, sizeof(a.mask)) != 0)
        die("catch a signal");
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        die("open /proc/self/task");
    while (other_threads(fd, stop_once) > atomic_load(&still))
        sched_yield();
}

void
disk_cut(uint64_t seed)
{
    stop_threads();
    rng = seed * 0x9e3779b97f4a7c15u + 1;
    (void)roll(2);
    all_goes = seed == 0;
    for (const struct change *c = changes; c != NULL; c = c->older)
        bytes_lose(c);
    for (size_t i = 0; i < n_inodes; i++)
        if (all_goes || roll(2) == 0) /* a size of later than the last sync may be lost with the rest */
            (void)syscall(SYS_ftruncate, inodes[i].fd, inodes[i].durable);
    size_t n = 0;
    for (const struct naming *m = namings; m != NULL; m = m->older)
        n++;
    uint64_t undo = all_goes ? n : roll(n + 1);
    for (const struct naming *m = namings; m != NULL && undo-- > 0; m = m->older)
        name_lose(m);
}
