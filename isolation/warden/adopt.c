/* SPDX-License-Identifier: Apache-2.0
 *
 * A new warden takes over the tasks of the warden before: the records say which tasks there
 * are, the lock on a record says whether its shim lives and which process that is. Launches and
 * removals that were under way are brought to their end; cgroups of ours without a record are
 * removed.
 */
#include "isolation/warden/adopt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "api/limits.h"
#include "api/plain.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "isolation/limits.h"
#include "isolation/proc.h"
#include "isolation/warden/bpf.h"
#include "isolation/warden/fence.h"
#include "isolation/warden/helper.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/task.h"
#include "isolation/warden/userns.h"

#define ROOM "warden"

/* --- processes --- */

/* A pidfd of the shim, or -1. Who holds the lock is asked again once the pidfd is there: a pid
 * that was used anew meanwhile does not. */
static int
open_shim(int record, pid_t *ret_pid)
{
    for (;;) {
        pid_t pid = record_shim_pid(record);
        if (pid <= 0)
            return -1;
        auto_fd int fd = pidfd_open_pid(pid);
        if (fd >= 0 && record_shim_pid(record) == pid) {
            *ret_pid = pid;
            return TAKE_FD(fd);
        }
    }
}

/* --- records --- */

static void
take_over(struct warden *w, struct wtask *t, const struct record *r)
{
    if (w->cgroup.fd >= 0)
        (void)cgroup_task_open(&w->cgroup, t->alloc, t->name, &t->cgroup, NULL);
    bool same_boot = str_eq(r->boot_id, w->boot_id);
    t->shim.fd = same_boot ? open_shim(t->record, &t->shim_pid) : -1;
    if (t->shim.fd < 0) {
        task_settle(w, t, same_boot ? 0 : RECORD_REBOOT);
        /* a shim that had not come to its lock yet: it has it now, or gives up */
        t->shim.fd = same_boot ? open_shim(t->record, &t->shim_pid) : -1;
        if (t->shim.fd >= 0)
            (void)pidfd_signal(t->shim.fd, SIGKILL);
        fd_close(&t->shim.fd);
        return;
    }
    if ((r->run.flags & RECORD_FOREIGN) != 0)
        log_error(ROOM,
                  "a running task has a record of another version of paddock-shim: it can be "
                  "stopped, but its exit status will not be known",
                  "alloc_id", t->alloc, "task", t->name, "version", LOG_U64(r->version), "known",
                  LOG_U64(SHIM_VERSION), NULL);
    bpf_adopt(w, t);
    t->state = TASK_LAUNCHING;
    t->launch_by_ns = clock_mono_ns() + WARDEN_LAUNCH_MS * NS_PER_MS;
    (void)task_await(w, t, clock_mono_ns());
    fence_task(w, t, fence_get(r->fence));
    if (loop_watch(w, &t->shim, EPOLLIN) < 0)
        log_error(ROOM, "cannot watch an adopted task", "alloc_id", t->alloc, "task", t->name,
                  NULL);
}

/* "ALLOC.TASK" of a record's file name. */
static bool
parse_name(const char *file, char alloc[UUID_TEXT], char name[JOB_TASK_NAME_MAX + 1])
{
    if (strlen(file) <= UUID_TEXT || file[UUID_TEXT - 1] != '.')
        return false;
    memcpy(alloc, file, UUID_TEXT - 1);
    alloc[UUID_TEXT - 1] = '\0';
    return str_copy(name, JOB_TASK_NAME_MAX + 1, file + UUID_TEXT) &&
           proto_check_alloc_id(alloc) == 0 && plain_task_name(name);
}

/* Ends and removes a cgroup that is no task's and was none: nobody can be told of it. */
static void
remove_stray(struct warden *w, struct wtask *t)
{
    if (w->cgroup.fd >= 0 && t->cgroup.shim_fd < 0)
        (void)cgroup_task_open(&w->cgroup, t->alloc, t->name, &t->cgroup, NULL);
    if (t->record >= 0 && t->shim.fd < 0)
        t->shim.fd = open_shim(t->record, &t->shim_pid);
    if (t->shim.fd >= 0 && loop_watch(w, &t->shim, EPOLLIN) < 0)
        fd_close(&t->shim.fd);
    task_kill_now(w, t);
    if (t->shim.fd < 0)
        t->state = TASK_FINISHED;
    task_forget(w, t);
}

static void
recover_one(struct warden *w, const char *file)
{
    bool doomed = file[0] == RECORD_DOOMED;
    char alloc[UUID_TEXT], name[JOB_TASK_NAME_MAX + 1];
    if (!parse_name(file + doomed, alloc, name)) {
        log_warn(ROOM, "not a task record: removed", "file", file, NULL);
        (void)unlinkat(w->records, file, 0);
        return;
    }
    struct record r;
    struct wtask *t = task_add(w, alloc, name);
    t->record = openat(w->records, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    int rc = t->record < 0 ? -errno : record_read_raw(t->record, &r);
    if (rc == 0 && (!str_eq(r.alloc_id, alloc) || !str_eq(r.task, name)))
        rc = -ERR_CORRUPT;
    if (rc < 0 && !doomed)
        log_warn(ROOM, "a task record cannot be read: the task is ended and removed", "file", file,
                 "error", err_name(rc), NULL);
    if (rc < 0 || doomed) {
        t->forgotten = doomed;
        remove_stray(w, t);
        return;
    }
    t->id_base = userns_range_of(w, r.uid);
    take_over(w, t, &r);
    /* A launch that never reached the payload: nobody was told of it. */
    if (t->state == TASK_FINISHED && r.run.state == RECORD_LAUNCHING)
        task_forget(w, t);
}

/* Names first: a directory that changes while it is read may show an entry twice or not at all. */
static int
list_records(struct warden *w, void *ctx, struct str_list *ret, struct err *e)
{
    int fd = openat(w->records, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        int saved = errno;
        fd_close(&fd);
        return err_errno(e, saved, "read the task records");
    }
    for (struct dirent *de; (de = readdir(d)) != NULL && ret->n < WARDEN_RECORDS_MAX;)
        if (de->d_name[0] != '.')
            list_add(ctx, *ret, mem_strdup(ctx, de->d_name));
    closedir(d);
    return 0;
}

/* A cgroup without a record: the records were lost. */
static void
stray_cgroup(void *arg, const char *alloc, const char *name)
{
    struct warden *w = arg;
    if (proto_check_alloc_id(alloc) == 0 && str_prefix(name, HELPER_NAME)) {
        helper_stray(w, alloc, name);
        return;
    }
    if (proto_check_alloc_id(alloc) < 0 || !plain_task_name(name) ||
        task_find(w, alloc, name) != NULL || task_remains(w, alloc, name))
        return;
    log_warn(ROOM, "a cgroup of ours without a task record: ended and removed", "alloc_id", alloc,
             "task", name, NULL);
    struct wtask *t = task_add(w, alloc, name);
    t->forgotten = true;
    remove_stray(w, t);
}

int
adopt_all(struct warden *w, struct err *e)
{
    auto_mem void *ctx = mem_ctx("records");
    struct str_list files = {0};
    int r = list_records(w, ctx, &files, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < files.n; i++)
        recover_one(w, files.v[i]);
    if (w->cgroup.fd >= 0)
        cgroup_each_task(&w->cgroup, stray_cgroup, w);
    task_sweep(w);
    size_t living = 0;
    for (size_t i = 0; i < w->n_tasks; i++)
        living += w->tasks[i]->state != TASK_FINISHED;
    if (w->n_tasks > 0)
        log_info(ROOM, "tasks taken over", "running", LOG_U64(living), "finished",
                 LOG_U64(w->n_tasks - living), NULL);
    return 0;
}
