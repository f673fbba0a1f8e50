/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults under file I/O: rules, and the calls of libc that obey them. See faults.h.
 */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include "tests/lib/faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/faults_int.h"

#define REAL(name)                                                 \
    ({                                                             \
        static __typeof__(&(name)) real_;                          \
        if (real_ == NULL)                                         \
            real_ = (__typeof__(&(name)))dlsym(RTLD_NEXT, #name);  \
        real_;                                                     \
    })

enum { RULES_MAX = 16, TEXT_MAX = 4096, PATH_TEXT = 2 * PATH_MAX, LOOK_AGAIN_NS = 2000000 };
static const char BOOT_ID[] = "/proc/sys/kernel/random/boot_id";
enum class {
    F_WRITE = 1,
    F_SYNC = 2,
    F_RENAME = 4,
    F_TRUNC = 8,
    F_OPEN = 16,
    F_UNLINK = 32,
    F_MKDIR = 64,
    F_ALL = 127,
    F_ACCEPT = 128,
    F_SOCKET = 256
};
enum action { PASS, FAIL, SHORT, TEAR, EXIT, WAIT, CUT };

static const struct {
    const char *name;
    int value;
} class_names[] = {{"write", F_WRITE},   {"sync", F_SYNC},     {"rename", F_RENAME},
                   {"trunc", F_TRUNC},   {"open", F_OPEN},     {"unlink", F_UNLINK},
                   {"mkdir", F_MKDIR},   {"all", F_ALL},       {"accept", F_ACCEPT},
                   {"socket", F_SOCKET}, {NULL, 0}},
  action_names[] = {{"fail", FAIL}, {"short", SHORT}, {"tear", TEAR},
                    {"exit", EXIT}, {"wait", WAIT},   {"cut", CUT},
                    {NULL, 0}},
  error_names[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EMFILE", EMFILE},
                   {"ENFILE", ENFILE}, {"EROFS", EROFS},   {"EINTR", EINTR},   {NULL, 0}};

struct rule {
    int classes;
    char pattern[256];
    uint64_t k;
    bool on; /* and all after the k-th */
    enum action action;
    int error;
    uint64_t seed;
    uint64_t calls;
    bool after_short;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t replaced = PTHREAD_COND_INITIALIZER; /* the rules */
static atomic_bool active; /* there are rules, or a file that may hold some */
static struct rule rules[RULES_MAX];
static size_t n_rules;
static uint64_t made;
static uint64_t parsed; /* how often */
static char disk_dir[256]; /* of these rules; or empty */
static const char *file; /* PADDOCK_FAULTS */
static struct stat file_was;

/* --- rules --- */

static _Noreturn void
misread(const char *line)
{
    fprintf(stderr, "faults: cannot read the rule: %s\n", line);
    abort();
}

static uint64_t
number(const char *text, const char *line)
{
    unsigned long long v;
    if (sscanf(text, "%llu", &v) != 1)
        misread(line);
    return v;
}

#define lookup(table, word, line)                                    \
    ({                                                               \
        size_t i_ = 0;                                               \
        while (table[i_].name && strcmp(table[i_].name, (word)) != 0) \
            i_++;                                                    \
        if (table[i_].name == NULL)                                  \
            misread(line);                                           \
        table[i_].value;                                             \
    })

static void
parse_line(const char *line)
{
    char classes[128], pattern[256], k[32], action[16] = "", arg[32] = "";
    if (sscanf(line, "disk %255s", disk_dir) == 1)
        return;
    int n = sscanf(line, "%127s %255s %31s %15s %31s", classes, pattern, k, action, arg);
    if (n < 3 || n_rules == RULES_MAX)
        misread(line);
    struct rule *r = &rules[n_rules++];
    *r = (struct rule){.on = strchr(k, '+') != NULL, .k = number(k, line)};
    snprintf(r->pattern, sizeof(r->pattern), "%s", pattern);
    char *save = NULL;
    for (char *w = strtok_r(classes, ",", &save); w; w = strtok_r(NULL, ",", &save))
        r->classes |= lookup(class_names, w, line);
    if (n == 3 && r->k == 0)
        return;
    r->action = (enum action)lookup(action_names, action, line);
    if (r->action == CUT)
        r->seed = number(arg, line);
    else if (r->action != EXIT && r->action != WAIT)
        r->error = lookup(error_names, arg, line);
}

static void
parse(const char *text)
{
    char copy[TEXT_MAX];
    n_rules = 0;
    made = 0;
    parsed++;
    disk_dir[0] = '\0';
    snprintf(copy, sizeof(copy), "%s", text != NULL ? text : "");
    char *save = NULL;
    for (char *l = strtok_r(copy, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        if (l[strspn(l, " \t")] != '\0' && l[0] != '#')
            parse_line(l);
    disk_model(disk_dir[0] != '\0' ? disk_dir : NULL);
    active = n_rules > 0 || disk_dir[0] != '\0' || file != NULL;
}

void
faults_set(const char *text)
{
    pthread_mutex_lock(&lock);
    parse(text);
    pthread_cond_broadcast(&replaced);
    pthread_mutex_unlock(&lock);
}

uint64_t
faults_calls(size_t i)
{
    pthread_mutex_lock(&lock);
    uint64_t n = i < n_rules ? rules[i].calls : 0;
    pthread_mutex_unlock(&lock);
    return n;
}

uint64_t
faults_made(void)
{
    pthread_mutex_lock(&lock);
    uint64_t n = made;
    pthread_mutex_unlock(&lock);
    return n;
}

static __attribute__((constructor)) void
begin(void)
{
    file = getenv("PADDOCK_FAULTS");
    active = file != NULL;
}

/* The file of rules may have been replaced. */
static void
look_again(void)
{
    struct stat st;
    if (file == NULL || stat(file, &st) < 0)
        return;
    if (st.st_ino == file_was.st_ino && st.st_mtim.tv_sec == file_was.st_mtim.tv_sec &&
        st.st_mtim.tv_nsec == file_was.st_mtim.tv_nsec)
        return;
    file_was = st;
    char text[TEXT_MAX] = "";
    int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && syscall(SYS_read, fd, text, sizeof(text) - 1) >= 0)
        parse(text);
    close(fd);
}

/* For the test that watches a whole program: one line per fault beside the file of rules. */
static void
tell(const struct rule *r, const char *path)
{
    char name[PATH_MAX], line[PATH_MAX];
    if (file == NULL)
        return;
    snprintf(name, sizeof(name), "%s.made", file);
    int n = snprintf(line, sizeof(line), "%d %s %llu %s\n", getpid(), r->pattern,
                     (unsigned long long)r->calls, path);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0) {
        syscall(SYS_write, fd, line, n);
        close(fd);
    }
}

/* With the lock held, which others get meanwhile. */
static void
wait_for_rules(void)
{
    for (uint64_t was = parsed; was == parsed;) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_AGAIN_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&replaced, &lock, &until);
        look_again();
    }
}

/* With the lock held. A machine that comes up again has another boot id. */
static _Noreturn void
power_cut(uint64_t seed)
{
    char name[PATH_MAX], id[40];
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (file != NULL) {
        snprintf(name, sizeof(name), "%s.boot", file);
        int n = snprintf(id, sizeof(id), "%08x-0000-4000-8000-%012llx\n", (unsigned)getpid(),
                         (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000);
        int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0 || syscall(SYS_write, fd, id, n) != n)
            abort();
    }
    disk_cut(seed);
    if (file != NULL)
        (void)raise(SIGKILL);
    syscall(SYS_exit_group, FAULTS_EXIT);
    abort();
}

bool
faults_cut(uint64_t seed)
{
    pthread_mutex_lock(&lock);
    look_again();
    if (disk_is_modelled())
        power_cut(seed);
    pthread_mutex_unlock(&lock);
    return false;
}

/* Decides what to do with this call; with the lock held. */
static enum action
decide(int class, const char *path, struct rule **ret)
{
    look_again();
    for (size_t i = 0; i < n_rules; i++) {
        struct rule *r = &rules[i];
        if ((r->classes & class) == 0 || fnmatch(r->pattern, path, 0) != 0)
            continue;
        r->calls++;
        *ret = r;
        bool hit = r->after_short || (r->k != 0 && (r->on ? r->calls >= r->k : r->calls == r->k));
        if (!hit)
            return PASS;
        enum action a = r->after_short ? FAIL : r->action;
        r->after_short = a == SHORT;
        made++;
        tell(r, path);
        if (a == EXIT)
            syscall(SYS_exit_group, FAULTS_EXIT);
        if (a == WAIT) {
            wait_for_rules();
            return decide(class, path, ret);
        }
        errno = r->error;
        return a == SHORT || a == TEAR ? (class == F_WRITE ? a : FAIL) : a;
    }
    return PASS;
}

/* --- paths --- */

static bool
path_of(int fd, char out[PATH_TEXT])
{
    char self[40];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(self, out, PATH_MAX - 1);
    if (n <= 0)
        return false;
    out[n] = '\0';
    return out[0] == '/';
}

static bool
path_at(int dirfd, const char *path, char out[PATH_TEXT])
{
    if (path[0] == '/') {
        snprintf(out, PATH_TEXT, "%s", path);
        return true;
    }
    char dir[PATH_TEXT];
    if (dirfd == AT_FDCWD ? getcwd(dir, PATH_MAX) == NULL : !path_of(dirfd, dir))
        return false;
    snprintf(out, PATH_TEXT, "%.*s/%s", PATH_MAX, dir, path);
    return true;
}

/* --- bytes --- */

ssize_t
real_pread(int fd, void *p, size_t n, off_t at)
{
    return REAL(pread)(fd, p, n, at);
}

ssize_t
real_pwrite(int fd, const void *p, size_t n, off_t at)
{
    return REAL(pwrite)(fd, p, n, at);
}

/* `at` < 0: where the file's offset is. */
static ssize_t
put(int fd, const void *p, size_t n, off_t at)
{
    return at < 0 ? REAL(write)(fd, p, n) : REAL(pwrite)(fd, p, n, at);
}

static off_t
offset(int fd, off_t at)
{
    if (at >= 0)
        return at;
    if (fcntl(fd, F_GETFL) & O_APPEND)
        return lseek(fd, 0, SEEK_END);
    return lseek(fd, 0, SEEK_CUR);
}

static ssize_t
write_locked(int fd, const void *p, size_t n, off_t at, const char *path)
{
    struct rule *r = NULL;
    enum action a = decide(F_WRITE, path, &r);
    bool disk = disk_covers(path) && (fcntl(fd, F_GETFL) & O_DSYNC) == 0;
    if (a == FAIL)
        return -1;
    if ((disk && a != CUT) || (a == CUT && disk_covers(path)))
        disk_before_write(fd, n, offset(fd, at));
    if (a == CUT) {
        (void)put(fd, p, n, at);
        power_cut(r->seed);
    }
    if (a == PASS)
        return put(fd, p, n, at);
    ssize_t w = put(fd, p, n > 1 ? n / 2 : n, at);
    if (a == SHORT)
        return w;
    errno = r->error;
    return -1;
}

static ssize_t
any_write(int fd, const void *p, size_t n, off_t at)
{
    char path[PATH_TEXT];
    if (!active || n == 0 || !path_of(fd, path))
        return put(fd, p, n, at);
    pthread_mutex_lock(&lock);
    ssize_t w = write_locked(fd, p, n, at, path);
    pthread_mutex_unlock(&lock);
    return w;
}

ssize_t
write(int fd, const void *p, size_t n)
{
    return any_write(fd, p, n, -1);
}

ssize_t
pwrite(int fd, const void *p, size_t n, off_t at)
{
    return any_write(fd, p, n, at);
}

ssize_t
pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    return any_write(fd, p, n, at);
}

static ssize_t
any_writev(int fd, const struct iovec *v, int n, off_t at)
{
    char path[PATH_TEXT];
    if (!active || !path_of(fd, path))
        return at < 0 ? REAL(writev)(fd, v, n) : REAL(pwritev)(fd, v, n, at);
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len += v[i].iov_len;
    char *all = malloc(len + 1);
    if (all == NULL)
        abort();
    len = 0;
    for (int i = 0; i < n; i++) {
        if (v[i].iov_len > 0)
            memcpy(all + len, v[i].iov_base, v[i].iov_len);
        len += v[i].iov_len;
    }
    ssize_t w = any_write(fd, all, len, at);
    free(all);
    return w;
}

ssize_t
writev(int fd, const struct iovec *v, int n)
{
    return any_writev(fd, v, n, -1);
}

ssize_t
pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    return any_writev(fd, v, n, at);
}

ssize_t
pwritev64(int fd, const struct iovec *v, int n, off64_t at)
{
    return any_writev(fd, v, n, at);
}

/* Every other call: judged first, then `call` done, with the lock held around both. */
#define JUDGED(class, have_path, path, before, call, after)        \
    ({                                                             \
        __typeof__(call) ret_ = -1;                                \
        pthread_mutex_lock(&lock);                                 \
        struct rule *r_ = NULL;                                    \
        enum action a_ = (have_path) ? decide(class, path, &r_) : PASS; \
        bool disk_ = (have_path) && disk_covers(path);             \
        if (a_ == PASS || a_ == CUT) {                             \
            if (disk_)                                             \
                before;                                            \
            if (a_ == PASS || class != F_SYNC)                     \
                ret_ = (call);                                     \
            int errno_ = errno;                                    \
            if (disk_ && ret_ >= 0 && (a_ == PASS || class != F_SYNC)) \
                after;                                             \
            errno = errno_;                                        \
        }                                                          \
        if (a_ == CUT)                                             \
            power_cut(r_->seed);                                   \
        pthread_mutex_unlock(&lock);                               \
        ret_;                                                      \
    })

/* A directory is called DIR/. here, so that what covers its files covers it. */
static bool
path_synced(int fd, char out[PATH_TEXT])
{
    struct stat st;
    bool have = path_of(fd, out);
    if (have && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        memcpy(out + strlen(out), "/.", 3);
    return have;
}

int
fsync(int fd)
{
    char path[PATH_TEXT];
    if (!active)
        return REAL(fsync)(fd);
    bool have = path_synced(fd, path);
    return JUDGED(F_SYNC, have, path, (void)0, REAL(fsync)(fd), disk_synced(fd));
}

int
fdatasync(int fd)
{
    char path[PATH_TEXT];
    if (!active)
        return REAL(fdatasync)(fd);
    bool have = path_synced(fd, path);
    return JUDGED(F_SYNC, have, path, (void)0, REAL(fdatasync)(fd), disk_synced(fd));
}

int
ftruncate(int fd, off_t n)
{
    char path[PATH_TEXT];
    if (!active)
        return REAL(ftruncate)(fd, n);
    bool have = path_of(fd, path);
    return JUDGED(F_TRUNC, have, path, disk_before_write(fd, 0, n), REAL(ftruncate)(fd, n), (void)0);
}

int
ftruncate64(int fd, off64_t n)
{
    return ftruncate(fd, n);
}

int
fallocate(int fd, int mode, off_t at, off_t n)
{
    char path[PATH_TEXT];
    if (!active)
        return REAL(fallocate)(fd, mode, at, n);
    bool have = path_of(fd, path);
    return JUDGED(F_TRUNC, have, path,
                  if ((mode & FALLOC_FL_KEEP_SIZE) == 0) disk_before_write(fd, (size_t)n, at),
                  REAL(fallocate)(fd, mode, at, n), (void)0);
}

int
fallocate64(int fd, int mode, off64_t at, off64_t n)
{
    return fallocate(fd, mode, at, n);
}

int
posix_fallocate(int fd, off_t at, off_t n)
{
    char path[PATH_TEXT];
    if (!active)
        return REAL(posix_fallocate)(fd, at, n);
    bool have = path_of(fd, path);
    int r = JUDGED(F_TRUNC, have, path, disk_before_write(fd, (size_t)n, at),
                   REAL(posix_fallocate)(fd, at, n), (void)0);
    return r < 0 ? errno : r;
}

int
posix_fallocate64(int fd, off64_t at, off64_t n)
{
    return posix_fallocate(fd, at, n);
}

/* --- names --- */

static int
any_open(int dirfd, const char *name, int flags, mode_t mode)
{
    char path[PATH_TEXT];
    if (!active)
        return REAL(openat)(dirfd, name, flags, mode);
    bool have = path_at(dirfd, name, path);
    if (have && file != NULL && strcmp(path, BOOT_ID) == 0) {
        snprintf(path, sizeof(path), "%s.boot", file);
        int fd = REAL(openat)(AT_FDCWD, path, flags, mode);
        return fd >= 0 ? fd : REAL(openat)(dirfd, name, flags, mode);
    }
    struct stat st;
    bool is_new = have && (flags & O_CREAT) != 0 && lstat(path, &st) < 0;
    return JUDGED(F_OPEN, have, path, (void)0, REAL(openat)(dirfd, name, flags, mode),
                  if (is_new) disk_made(path, false));
}

#define MODE_OF(flags, last)                             \
    ({                                                   \
        va_list ap_;                                     \
        mode_t mode_ = 0;                                \
        va_start(ap_, last);                             \
        if (((flags) & (O_CREAT | O_TMPFILE)) != 0)      \
            mode_ = va_arg(ap_, mode_t);                 \
        va_end(ap_);                                     \
        mode_;                                           \
    })

int
open(const char *name, int flags, ...)
{
    return any_open(AT_FDCWD, name, flags, MODE_OF(flags, flags));
}

int
open64(const char *name, int flags, ...)
{
    return any_open(AT_FDCWD, name, flags, MODE_OF(flags, flags));
}

int
openat(int dirfd, const char *name, int flags, ...)
{
    return any_open(dirfd, name, flags, MODE_OF(flags, flags));
}

int
openat64(int dirfd, const char *name, int flags, ...)
{
    return any_open(dirfd, name, flags, MODE_OF(flags, flags));
}

int
creat(const char *name, mode_t mode)
{
    return any_open(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* The names that _FORTIFY_SOURCE gives them. */
int __open_2(const char *name, int flags);
int __open64_2(const char *name, int flags);
int __openat_2(int dirfd, const char *name, int flags);
int __openat64_2(int dirfd, const char *name, int flags);

int
__open_2(const char *name, int flags)
{
    return any_open(AT_FDCWD, name, flags, 0);
}

int
__open64_2(const char *name, int flags)
{
    return any_open(AT_FDCWD, name, flags, 0);
}

int
__openat_2(int dirfd, const char *name, int flags)
{
    return any_open(dirfd, name, flags, 0);
}

int
__openat64_2(int dirfd, const char *name, int flags)
{
    return any_open(dirfd, name, flags, 0);
}

/* openat2(2) has no function of its own. */
long
syscall(long nr, ...)
{
    long a[6];
    va_list ap;
    va_start(ap, nr);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    char path[PATH_TEXT];
    if (!active || nr != SYS_openat2 || !path_at((int)a[0], (const char *)a[1], path))
        return REAL(syscall)(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    return JUDGED(F_OPEN, true, path, (void)0,
                  REAL(syscall)(nr, a[0], a[1], a[2], a[3], a[4], a[5]), (void)0);
}

int
renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    char a[PATH_TEXT], b[PATH_TEXT];
    if (!active)
        return REAL(renameat)(from_dir, from, to_dir, to);
    bool have = path_at(from_dir, from, a) && path_at(to_dir, to, b);
    return JUDGED(F_RENAME, have, b, disk_before_rename(a, b),
                  REAL(renameat)(from_dir, from, to_dir, to), (void)0);
}

int
rename(const char *from, const char *to)
{
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int
unlinkat(int dirfd, const char *name, int flags)
{
    char path[PATH_TEXT];
    if (!active)
        return REAL(unlinkat)(dirfd, name, flags);
    bool have = path_at(dirfd, name, path);
    return JUDGED(F_UNLINK, have, path, disk_before_unlink(path), REAL(unlinkat)(dirfd, name, flags),
                  (void)0);
}

int
unlink(const char *name)
{
    return unlinkat(AT_FDCWD, name, 0);
}

int
mkdirat(int dirfd, const char *name, mode_t mode)
{
    char path[PATH_TEXT];
    if (!active)
        return REAL(mkdirat)(dirfd, name, mode);
    bool have = path_at(dirfd, name, path);
    return JUDGED(F_MKDIR, have, path, (void)0, REAL(mkdirat)(dirfd, name, mode),
                  disk_made(path, true));
}

int
mkdir(const char *name, mode_t mode)
{
    return mkdirat(AT_FDCWD, name, mode);
}

/* --- sockets --- */

int
accept4(int fd, struct sockaddr *restrict a, socklen_t *restrict n, int flags)
{
    if (!active)
        return REAL(accept4)(fd, a, n, flags);
    pthread_mutex_lock(&lock);
    struct rule *r = NULL;
    enum action what = decide(F_ACCEPT, "-", &r);
    pthread_mutex_unlock(&lock); /* it may block */
    return what == PASS ? REAL(accept4)(fd, a, n, flags) : -1;
}

int
accept(int fd, struct sockaddr *restrict a, socklen_t *restrict n)
{
    return accept4(fd, a, n, 0);
}

int
socket(int domain, int type, int protocol)
{
    if (!active)
        return REAL(socket)(domain, type, protocol);
    return JUDGED(F_SOCKET, true, "-", (void)0, REAL(socket)(domain, type, protocol), (void)0);
}
