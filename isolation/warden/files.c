/* SPDX-License-Identifier: Apache-2.0
 *
 * Directories and files of allocations. Every path is opened beneath the allocation's directory
 * with no symbolic link followed, whatever a task has put there.
 *
 *   ALLOC_DIR/ID              root 0700; 0711 from the first task without a sandbox on
 *     alloc/                  1777: shared by the tasks; data/ and tmp/ likewise
 *     alloc/logs/             root 0755: only shims write here
 *     TASK/                   the task's user 0755: its "/" (exec) or start directory (raw_exec)
 *     TASK/local/ TASK/tmp/   0755, 1777
 *     TASK/secrets/           the task's user 0700; never readable through the API
 */
#include "isolation/warden/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/drivers.h"
#include "api/limits.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/random.h"
#include "common/str.h"
#include "common/uuid.h"
#include "isolation/confine/users.h"
#include "isolation/root/base.h"
#include "isolation/root/quota.h"
#include "isolation/root/verity.h"
#include "isolation/warden/handlers.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/net.h"
#include "isolation/warden/secrets.h"
#include "isolation/warden/task.h"
#include "isolation/warden/user.h"
#include "isolation/warden/userns.h"

#define ROOM "warden"
#define LOGS_DIR "alloc/logs"
#define TRASH ".trash-"
#define SOCKET_NAME ".socket"
enum { NO_ID = -1, LOG_ENTRIES_MAX = 200000, SOCKET_BACKLOG = 16 };

static int
open_alloc(struct warden *w, const char *alloc, struct err *e)
{
    int fd = fd_open_beneath(w->alloc_dir, alloc, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, false);
    if (fd == -ENOENT)
        return err_set(e, -ERR_NOT_FOUND, "allocation \"%s\" has no directory here", alloc);
    return fd < 0 ? err_errno(e, -fd, "open the directory of allocation \"%s\"", alloc) : fd;
}

/* Makes a directory, which has its mode from the start, or opens the one that is there. */
static int
make_dir(struct warden *w, int at, const char *name, mode_t mode, int64_t uid, int64_t gid)
{
    mode_t old = umask(0);
    bool made = mkdirat(at, name, mode) == 0;
    int r = made || errno == EEXIST ? 0 : -errno;
    (void)umask(old);
    auto_fd int fd = r < 0 ? r : openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return r < 0 ? r : -errno;
    if (made && w->root && uid != NO_ID && fchown(fd, (uid_t)uid, (gid_t)gid) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* The same for a directory of a task's own: a directory that is still root's was made by a warden
 * that was killed before giving the directory away. */
static int
make_task_dir(struct warden *w, int at, const char *name, mode_t mode, const struct user *u)
{
    struct stat st;
    auto_fd int fd = make_dir(w, at, name, mode, u->uid, u->gid);
    if (fd >= 0 && w->root && fstat(fd, &st) == 0 && st.st_uid == 0 && u->uid != 0 &&
        fchown(fd, u->uid, u->gid) < 0)
        return -errno;
    return TAKE_FD(fd);
}

int
files_owner(struct warden *w, const struct warden_task *t, struct user *ret, struct err *e)
{
    const struct launch_spec as = {.user = t->user, .isolated = !driver_unboxed(t->driver)};
    int r = user_get(w, &as, as.isolated && userns_wanted(w), ret, e);
    if (r < 0)
        err_prefix(e, "task \"%s\"", t->name);
    return r;
}

static int
make_task_dirs(struct warden *w, int alloc, const struct warden_task *t, struct err *e)
{
    struct user user = {0};
    /* A container's users are its image's, and nobody here knows them: its directories are for all
     * of them, behind that of the allocation, which is for root alone. */
    bool all = driver_engine(t->driver);
    int r = w->root && !all ? files_owner(w, t, &user, e) : 0;
    if (r < 0)
        return r;
    auto_fd int task = make_task_dir(w, alloc, t->name, all ? 01777 : 0755, &user);
    auto_fd int local =
        task < 0 ? task : make_task_dir(w, task, "local", all ? 01777 : 0755, &user);
    auto_fd int secrets =
        local < 0 ? local : make_task_dir(w, task, "secrets", all ? 0777 : 0700, &user);
    auto_fd int tmp = secrets < 0 ? secrets : make_task_dir(w, task, "tmp", 01777, &user);
    return tmp < 0 ? err_errno(e, -tmp, "make the directories of task \"%s\"", t->name) : 0;
}

static int
make_shared(struct warden *w, int alloc, struct err *e)
{
    auto_fd int shared = make_dir(w, alloc, "alloc", 01777, NO_ID, NO_ID);
    auto_fd int data = shared < 0 ? shared : make_dir(w, shared, "data", 01777, NO_ID, NO_ID);
    auto_fd int logs = data < 0 ? data : make_dir(w, shared, "logs", 0755, NO_ID, NO_ID);
    auto_fd int tmp = logs < 0 ? logs : make_dir(w, shared, "tmp", 01777, NO_ID, NO_ID);
    return tmp < 0 ? err_errno(e, -tmp, "make the directories that its tasks share") : 0;
}

void
files_probe(struct warden *w)
{
    struct err quota = ERR_INIT, verity = ERR_INIT;
    if (!w->root) {
        err_set(&quota, -ERR_UNSUPPORTED, "paddock runs without root");
        verity = quota;
    } else {
        (void)quota_probe(w->alloc_dir, &quota);
        (void)verity_probe(w->alloc_dir, &verity);
    }
    fact_of(&w->can.quota, &quota);
    fact_of(&w->can.verity, &verity);
}

/* Before anything is in the directory: what is made in it counts from then on. */
static int
limit_disk(struct warden *w, int alloc, const struct warden_request *q, struct err *e)
{
    const char *mode = str_or(w->policy->disk_quota, "");
    bool required = str_eq(mode, "required");
    if (str_eq(mode, "off") || (!required && (q->disk_mb == 0 || !w->can.quota.ok)))
        return 0;
    int r = q->disk_mb == 0               ? err_set(e, -ERR_POLICY, "it names no size")
            : !w->can.quota.ok ? err_set(e, -ERR_POLICY, "%s", w->can.quota.why)
                                          : quota_set(alloc, q->disk_mb, &w->quota_next, e);
    if (r == -ERR_CONFLICT && !required) {
        log_warn(ROOM, "an allocation has no limit on disk", "alloc_id", q->alloc_id, "why",
                 e->text, NULL);
        err_clear(e);
        return 0;
    }
    if (r < 0)
        err_prefix(e, "limit what allocation \"%s\" has on disk (isolation.disk_quota)",
                   q->alloc_id);
    return r;
}

void
files_alloc_make(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    struct answer a = {0};
    /* Nobody of the host comes by: what tasks write there is theirs, and a file that root of a user
     * namespace makes setuid is setuid on the disk. Sandboxes get in by mounts. */
    auto_fd int alloc = make_dir(w, w->alloc_dir, q->alloc_id, 0700, NO_ID, NO_ID);
    int r = alloc < 0
                ? err_errno(&e, -alloc, "make the directory of allocation \"%s\"", q->alloc_id)
                : limit_disk(w, alloc, q, &e);
    if (r == 0)
        r = make_shared(w, alloc, &e);
    for (size_t i = 0; i < q->tasks.n && r == 0; i++)
        r = make_task_dirs(w, alloc, q->tasks.v[i], &e);
    if (r == 0 && userns_wanted(w)) { /* now, not in the way of the launch */
        const struct userns *u;
        struct err why = ERR_INIT;
        (void)userns_get(w, q->alloc_id, &u, &why); /* the launch tells */
    }
    const struct loop_work work = {"mount the memory of secrets", secrets_mount,
                                   (void *)(uintptr_t)q, NULL};
    bool later = r == 0 && secrets_wanted(w, q);
    if (later)
        r = loop_fork(w, to, &work, &e);
    if (r < 0)
        loop_refuse(w, to, &e);
    else if (!later)
        loop_answer(w, to, &a);
}

/* In a child. Our log says what stays and why; it is tried again later. */
static int
remove_tree(struct warden *w, void *arg)
{
    struct err e = ERR_INIT;
    auto_fd int fd = openat(w->alloc_dir, arg, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        (void)quota_lift(fd); /* or it is left to the next that the project is given to */
    fd_close(&fd);
    secrets_unmount(w, arg);
    int r = dir_remove(w->alloc_dir, arg, NULL);
    if (r < 0) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s/%s", w->policy->alloc_dir, (const char *)arg);
        base_detach_below(path);
        r = dir_remove(w->alloc_dir, arg, &e);
    }
    if (r < 0)
        log_error(ROOM, "an allocation's directory is not wholly removed; the rest is tried again",
                  "error", e.text, NULL);
    return r;
}

static void
trash_later(struct warden *w)
{
    w->trash_pause_ms = w->trash_pause_ms == 0 ? WARDEN_TRASH_MS : w->trash_pause_ms * 2;
    if (w->trash_pause_ms > WARDEN_TRASH_MAX_MS)
        w->trash_pause_ms = WARDEN_TRASH_MAX_MS;
    w->trash_ns = clock_mono_ns() + w->trash_pause_ms * NS_PER_MS;
}

/* A removal is over, of what is in the trash. */
static void
files_removed(struct warden *w, const struct err *e)
{
    if (e->code != 0) {
        log_warn(ROOM, "not everything was removed: tried again", "error", e->text, NULL);
        trash_later(w);
    } else if (w->trash_ns == 0) {
        w->trash_pause_ms = 0;
    }
}

void
files_alloc_remove(struct warden *w, struct waiter to, const struct warden_request *q)
{
    auto_mem void *ctx = mem_ctx("remove");
    struct err e = ERR_INIT;
    struct answer a = {0};
    char *trash = mem_printf(ctx, TRASH "%s-%016llx", q->alloc_id, (unsigned long long)rand_u64());
    if (task_alloc_busy(w, q->alloc_id)) {
        err_set(&e, -ERR_BUSY, "a task of allocation \"%s\" still runs", q->alloc_id);
    } else if (!loop_can_fork(w)) { /* before anything is moved: the agent asks again */
        err_set(&e, -ERR_BUSY, "more than %d removals at once", WARDEN_JOBS_MAX);
    } else if (net_forget(w, q->alloc_id, &e) < 0) {
        /* asked again */
    } else if (renameat(w->alloc_dir, q->alloc_id, w->alloc_dir, trash) < 0) {
        if (errno == ENOENT) {
            loop_answer(w, to, &a);
            return;
        }
        err_errno(&e, errno, "remove the directory of allocation \"%s\"", q->alloc_id);
    } else {
        userns_drop(w, q->alloc_id);
        const struct loop_work work = {"remove the allocation's directory", remove_tree, trash,
                                       files_removed};
        (void)loop_fork(w, to, &work, &e);
    }
    if (e.code != 0)
        loop_refuse(w, to, &e);
}

void
files_discard(struct warden *w, const char *alloc, const char *name)
{
    auto_mem void *ctx = mem_ctx("discard");
    auto_fd int fd =
        openat(w->alloc_dir, alloc, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const char *trash = mem_printf(ctx, TRASH "%s-%016llx", alloc, (unsigned long long)rand_u64());
    if (fd < 0 || unlinkat(fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return;
    if (renameat(fd, name, w->alloc_dir, trash) == 0)
        files_empty_trash(w);
}

/* In a child: the directories of helpers of an earlier warden, in that of an allocation. */
static int
remove_helpers(struct warden *w, const char *alloc)
{
    char own[32];
    int r = 0;
    (void)snprintf(own, sizeof(own), HELPER_NAME "%08x-", w->helper_stamp);
    auto_fd int fd = openat(w->alloc_dir, alloc, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (d == NULL) {
        fd_close(&copy);
        return 0;
    }
    for (struct dirent *de; (de = readdir(d)) != NULL;)
        if (str_prefix(de->d_name, HELPER_NAME) && !str_prefix(de->d_name, own)) {
            int x = dir_remove(fd, de->d_name, NULL);
            r = r != 0 ? r : x;
        }
    closedir(d);
    return r;
}

static int
empty_trash(struct warden *w, void *arg)
{
    (void)arg;
    int r = 0;
    int fd = openat(w->alloc_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL)
        return -errno;
    for (struct dirent *de; (de = readdir(d)) != NULL;) {
        int x = str_prefix(de->d_name, TRASH) ? remove_tree(w, de->d_name)
                : uuid_valid(de->d_name)      ? remove_helpers(w, de->d_name)
                                              : 0;
        r = r != 0 ? r : x;
    }
    closedir(d);
    return r;
}

void
files_empty_trash(struct warden *w)
{
    w->trash_ns = 0;
    const struct loop_work work = {"empty the trash", empty_trash, NULL, files_removed};
    if (loop_fork(w, (struct waiter){0}, &work, NULL) < 0)
        trash_later(w);
}

/* --- reading --- */

/* <task>/secrets and <task>/private, and what is below. */
static bool
is_secret(const char *path)
{
    const char *s = path != NULL ? strchr(path, '/') : NULL;
    if (s == NULL || str_prefix(path, "alloc/"))
        return false;
    size_t n = strcspn(++s, "/");
    return (n == 7 && (memcmp(s, "secrets", 7) == 0 || memcmp(s, "private", 7) == 0));
}

/* An O_PATH fd of a regular file or directory. */
static int
open_checked(struct warden *w, const struct warden_request *q, struct stat *st, struct err *e)
{
    const char *path = str_or(q->path, ".");
    if (is_secret(q->path))
        return err_set(e, -ERR_FORBIDDEN, "\"%s\" is not readable through the API", path);
    auto_fd int alloc = open_alloc(w, q->alloc_id, e);
    if (alloc < 0)
        return alloc;
    auto_fd int fd = fd_open_beneath(alloc, path, O_PATH | O_CLOEXEC, 0, false);
    if (fd == -ELOOP || fd == -EXDEV)
        return err_set(e, -ERR_FORBIDDEN, "\"%s\" goes through a symbolic link", path);
    if (fd == -ENOENT || fd == -ENOTDIR)
        return err_set(e, -ERR_NOT_FOUND, "\"%s\" does not exist in allocation \"%s\"", path,
                       q->alloc_id);
    if (fd < 0)
        return err_errno(e, -fd, "open \"%s\"", path);
    if (fstat(fd, st) < 0)
        return err_errno(e, errno, "look at \"%s\"", path);
    if (S_ISREG(st->st_mode) && st->st_nlink == 0)
        return err_set(e, -ERR_NOT_FOUND, "\"%s\" of allocation \"%s\" was just removed", path,
                       q->alloc_id);
    return TAKE_FD(fd);
}

/* Says whether a file with several links is of the owner of the task's directory, as it must be:
 * with fs.protected_hardlinks off, a task can link to a file that only we can read. */
static bool
link_is_own(struct warden *w, const struct warden_request *q, const struct stat *st)
{
    if (!w->root || !S_ISREG(st->st_mode) || st->st_nlink == 1)
        return true;
    char task[JOB_PATH_MAX + 1];
    struct stat dir;
    auto_fd int alloc = open_alloc(w, q->alloc_id, NULL);
    (void)str_copy(task, sizeof(task), str_or(q->path, "."));
    task[strcspn(task, "/")] = '\0';
    return alloc >= 0 && fstatat(alloc, task, &dir, AT_SYMLINK_NOFOLLOW) == 0 && dir.st_uid != 0 &&
           dir.st_uid == st->st_uid;
}

static int
open_readable(struct warden *w, const struct warden_request *q, struct err *e)
{
    struct stat st;
    auto_fd int fd = open_checked(w, q, &st, e);
    if (fd < 0)
        return fd;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(e, -ERR_INVALID, "\"%s\" is neither a file nor a directory",
                       str_or(q->path, "."));
    if (!link_is_own(w, q, &st))
        return err_set(e, -ERR_FORBIDDEN, "\"%s\" has several links and is not the task's own",
                       q->path);
    char self[40];
    (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    int out = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return out < 0 ? err_errno(e, errno, "open \"%s\"", str_or(q->path, ".")) : out;
}

void
files_open(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    auto_mem void *ctx = mem_ctx("open");
    auto_fd int fd = open_readable(w, q, &e);
    if (fd < 0) {
        loop_refuse(w, to, &e);
        return;
    }
    struct answer a = {0};
    loop_answer_fd(ctx, &a, WARDEN_FD_FILE, fd);
    loop_answer(w, to, &a);
}

/* Prints a mode as Go prints an os.FileMode: "drwxr-xr-x", "-rw-r--r--", "dtrwxrwxrwx",
 * "Lrwxrwxrwx". */
static const char *
mode_text(const void *ctx, mode_t m)
{
    char s[16];
    size_t n = 0;
    if (S_ISDIR(m))
        s[n++] = 'd';
    if (S_ISLNK(m))
        s[n++] = 'L';
    if (S_ISBLK(m) || S_ISCHR(m))
        s[n++] = 'D';
    if (S_ISFIFO(m))
        s[n++] = 'p';
    if (S_ISSOCK(m))
        s[n++] = 'S';
    if ((m & S_ISUID) != 0)
        s[n++] = 'u';
    if ((m & S_ISGID) != 0)
        s[n++] = 'g';
    if (S_ISCHR(m))
        s[n++] = 'c';
    if ((m & S_ISVTX) != 0)
        s[n++] = 't';
    if (n == 0)
        s[n++] = '-';
    for (int bit = 8; bit >= 0; bit--)
        s[n++] = (m >> bit & 1) != 0 ? "xwr"[bit % 3] : '-';
    return mem_strndup(ctx, s, n);
}

static struct alloc_file_info *
file_info(const void *ctx, const char *name, const struct stat *st)
{
    struct alloc_file_info *f = type_new(ctx, &type_alloc_file_info);
    f->name = mem_strdup(f, name);
    f->is_dir = S_ISDIR(st->st_mode);
    f->size = st->st_size;
    f->file_mode = mode_text(f, st->st_mode);
    f->mod_time = (int64_t)st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec;
    return f;
}

void
files_stat(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    struct stat st;
    auto_mem void *ctx = mem_ctx("stat");
    auto_fd int fd = open_checked(w, q, &st, &e);
    if (fd < 0) {
        loop_refuse(w, to, &e);
        return;
    }
    const char *slash = q->path != NULL ? strrchr(q->path, '/') : NULL;
    struct answer a = {0};
    list_add(ctx, a.msg.files,
             file_info(ctx, slash != NULL ? slash + 1 : str_or(q->path, "/"), &st));
    loop_answer(w, to, &a);
}

/* The offset is where the file system says that the next entry is: no page reads what is before it.
 */
void
files_readdir(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    auto_mem void *ctx = mem_ctx("readdir");
    auto_fd int fd =
        q->alloc_id == NULL ? fcntl(w->alloc_dir, F_DUPFD_CLOEXEC, 3) : open_readable(w, q, &e);
    int dup = fd < 0 ? -1 : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dup >= 0 && q->offset > 0 && lseek(dup, q->offset, SEEK_SET) < 0)
        fd_close(&dup);
    DIR *d = dup < 0 ? NULL : fdopendir(dup);
    if (d == NULL) {
        fd_close(&dup);
        if (e.code == 0)
            err_errno(&e, errno, "list \"%s\"", str_or(q->path, "."));
        loop_refuse(w, to, &e);
        return;
    }
    struct answer a = {0};
    int64_t last = 0;
    for (struct dirent *de; (de = readdir(d)) != NULL; last = de->d_off) {
        struct stat st;
        if (str_eq(de->d_name, ".") || str_eq(de->d_name, ".."))
            continue;
        if (a.msg.files.n == PROTO_READDIR_MAX) {
            a.msg.next = last;
            break;
        }
        if (fstatat(fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            list_add(ctx, a.msg.files, file_info(ctx, de->d_name, &st));
    }
    closedir(d);
    loop_answer(w, to, &a);
}

/* --- writing --- */

/* The directory of the last component, made where missing; *name is that component. */
static int
make_parents(struct warden *w, int top, const char *path, const struct stat *owner,
             const char **name)
{
    auto_fd int at = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char part[256];
    for (const char *slash; at >= 0 && (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        size_t n = (size_t)(slash - path);
        ASSERT(n < sizeof(part)); /* plain_path */
        memcpy(part, path, n);
        part[n] = '\0';
        int next = make_dir(w, at, part, 0755, owner->st_uid, owner->st_gid);
        fd_close(&at);
        at = next;
    }
    *name = path;
    return at < 0 ? at : TAKE_FD(at);
}

/* Fills a file that was just opened, which is the task's user's from then on. */
static int
fill_file(struct warden *w, int fd, const struct warden_request *q, const struct stat *owner)
{
    if (w->root && fchown(fd, owner->st_uid, owner->st_gid) < 0)
        return -errno;
    if (fchmod(fd, q->mode != 0 ? (mode_t)q->mode : 0644) < 0)
        return -errno;
    return fd_pwrite_full(fd, q->data.v, q->data.n, q->offset);
}

static int
put_file(struct warden *w, int dir, const char *name, const struct warden_request *q,
         const struct stat *owner)
{
    /* no O_TRUNC before it is known what this is */
    auto_fd int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return -EEXIST;
    /* cut last: a reader never finds it empty, but for a moment the new text with the old's end */
    int r = fill_file(w, fd, q, owner);
    return r == 0 && q->offset == 0 && ftruncate(fd, (off_t)q->data.n) < 0 ? -errno : r;
}

/* The directory is the task's: who changes the new file before the rename hurts only himself. */
static int
replace_file(struct warden *w, int dir, const char *name, const struct warden_request *q,
             const struct stat *owner)
{
    char next[NAME_MAX + 1];
    if (snprintf(next, sizeof(next), ".%s.new", name) >= (int)sizeof(next))
        return -ENAMETOOLONG;
    if (unlinkat(dir, next, 0) < 0 && errno != ENOENT)
        return -errno;
    auto_fd int fd = openat(dir, next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = fill_file(w, fd, q, owner);
    if (r == 0 && renameat(dir, next, dir, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(dir, next, 0);
    return r;
}

typedef int write_fn(struct warden *w, int dir, const char *name, const struct warden_request *q,
                     const struct stat *owner);

/* Opens the directory of the allocation, if the path is where the task may have files, and tells
 * whose they are. */
static int
files_place(struct warden *w, const struct warden_request *q, struct stat *owner, struct err *e)
{
    size_t n = strlen(q->task_name);
    bool own = str_prefix(q->path, q->task_name) && q->path[n] == '/';
    bool shared = str_prefix(q->path, "alloc/") && !str_prefix(q->path, LOGS_DIR);
    if (!own && !shared)
        return err_set(e, -ERR_FORBIDDEN, "\"%s\" is neither in the task's directory nor in alloc/",
                       q->path);
    auto_fd int alloc = open_alloc(w, q->alloc_id, e);
    if (alloc >= 0 && fstatat(alloc, q->task_name, owner, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(e, errno, "the directory of task \"%s\"", q->task_name);
    struct user user;
    if (alloc >= 0 && !str_empty(q->owner)) {
        int r = users_resolve(q->owner, NULL, 0, NULL, &user, e);
        if (r < 0)
            return r;
        owner->st_uid = user.uid;
        owner->st_gid = user.gid;
    }
    return TAKE_FD(alloc);
}

static void
files_write(struct warden *w, struct waiter to, const struct warden_request *q, write_fn *write)
{
    struct err e = ERR_INIT;
    struct answer a = {0};
    struct stat owner;
    auto_fd int alloc = files_place(w, q, &owner, &e);
    if (alloc >= 0) {
        const char *name;
        auto_fd int dir = make_parents(w, alloc, q->path, &owner, &name);
        int r = dir < 0 ? dir : write(w, dir, name, q, &owner);
        if (r < 0)
            err_errno(&e, -r, "write \"%s\"", q->path);
    }
    if (e.code != 0)
        loop_refuse(w, to, &e);
    else
        loop_answer(w, to, &a);
}

void
files_put(struct warden *w, struct waiter to, const struct warden_request *q)
{
    files_write(w, to, q, put_file);
}

void
files_replace(struct warden *w, struct waiter to, const struct warden_request *q)
{
    files_write(w, to, q, replace_file);
}

/* --- sockets --- */

/* Makes the socket in the allocation's directory, which is ours alone, and moves it to the task's
 * when it has its owner. Memory of secrets is another file system, with nothing in it but what is
 * the task's: there it is made in place. Its mode is that of its making: no name is followed. */
static int
make_socket(struct warden *w, int alloc, const struct warden_request *q, const struct stat *owner)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    mode_t mode = (q->mode != 0 ? (mode_t)q->mode : 0600) & 0777;
    struct stat here, there;
    const char *name;
    auto_fd int dir = make_parents(w, alloc, q->path, owner, &name);
    auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (dir < 0 || fd < 0 || fstat(alloc, &here) < 0 || fstat(dir, &there) < 0)
        return dir < 0 ? dir : -errno;
    int at = here.st_dev == there.st_dev ? alloc : dir;
    (void)snprintf(sun.sun_path, sizeof(sun.sun_path), "/proc/self/fd/%d/" SOCKET_NAME, at);
    if (unlinkat(at, SOCKET_NAME, 0) < 0 && errno != ENOENT)
        return -errno;
    mode_t old = umask(0777 & ~mode);
    int r = bind(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0 ? -errno : 0;
    (void)umask(old);
    if (r < 0)
        return r;
    if ((w->root &&
         fchownat(at, SOCKET_NAME, owner->st_uid, owner->st_gid, AT_SYMLINK_NOFOLLOW) < 0) ||
        listen(fd, SOCKET_BACKLOG) < 0 || renameat(at, SOCKET_NAME, dir, name) < 0) {
        r = -errno;
        (void)unlinkat(at, SOCKET_NAME, 0);
    }
    return r < 0 ? r : TAKE_FD(fd);
}

void
files_socket(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    auto_mem void *ctx = mem_ctx("socket");
    struct stat owner;
    auto_fd int alloc = files_place(w, q, &owner, &e);
    int fd = alloc < 0 ? -1 : make_socket(w, alloc, q, &owner);
    if (alloc >= 0 && fd < 0)
        err_errno(&e, -fd, "make the socket \"%s\"", q->path);
    if (fd < 0) {
        loop_refuse(w, to, &e);
        return;
    }
    struct answer a = {0};
    loop_answer_fd(ctx, &a, WARDEN_FD_FILE, fd);
    loop_answer(w, to, &a);
    fd_close(&fd);
}

/* --- logs --- */

/* "web.stdout.12" with prefix "web.stdout." is 12. */
static bool
log_number(const char *name, const char *prefix, uint32_t *ret)
{
    int64_t v;
    if (!str_prefix(name, prefix) || num_parse_i64(name + strlen(prefix), &v) < 0 || v < 0 ||
        v >= INT32_MAX)
        return false;
    *ret = (uint32_t)v;
    return true;
}

int
files_logs(struct warden *w, const struct launch_spec *s, int *ret_dir, uint32_t index[2],
           uint32_t first[2], struct err *e)
{
    auto_mem void *ctx = mem_ctx("logs");
    const char *path = mem_printf(ctx, "%s/" LOGS_DIR, s->alloc_id);
    auto_fd int fd =
        fd_open_beneath(w->alloc_dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, false);
    int dup = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    DIR *d = dup < 0 ? NULL : fdopendir(dup);
    if (d == NULL) {
        fd_close(&dup);
        return err_errno(e, fd < 0 ? -fd : errno, "open the log directory \"%s\"", path);
    }
    const char *prefix[2] = {mem_printf(ctx, "%s.stdout.", s->task_name),
                             mem_printf(ctx, "%s.stderr.", s->task_name)};
    bool any[2] = {false, false};
    size_t entries = 0;
    for (struct dirent *de; entries <= LOG_ENTRIES_MAX && (de = readdir(d)) != NULL; entries++) {
        for (int i = 0; i < 2; i++) {
            uint32_t n;
            if (!log_number(de->d_name, prefix[i], &n))
                continue;
            index[i] = any[i] && index[i] > n ? index[i] : n;
            first[i] = any[i] && first[i] < n ? first[i] : n;
            any[i] = true;
        }
    }
    closedir(d);
    if (entries > LOG_ENTRIES_MAX)
        return err_set(e, -ERR_LIMIT, "there are more than %d files in the log directory \"%s\"",
                       LOG_ENTRIES_MAX, path);
    /* root in a task may have made files there: what is far behind is none of a row of logs */
    for (int i = 0; i < 2; i++)
        if (index[i] - first[i] > JOB_LOG_FILES_MAX)
            first[i] = index[i] - JOB_LOG_FILES_MAX;
    *ret_dir = TAKE_FD(fd);
    return 0;
}
