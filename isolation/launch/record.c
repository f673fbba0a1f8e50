/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/launch/record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "common/mem.h"
#include "isolation/confine/seccomp.h"
#include "isolation/launch/plan.h"

int
record_read_raw(int fd, struct record *ret)
{
    struct record r = {0};
    ssize_t n = pread(fd, &r, sizeof(r), 0);
    if (n < 0)
        return -errno;
    if ((size_t)n < offsetof(struct record, run) || r.magic != RECORD_MAGIC || r.version == 0 ||
        memchr(r.alloc_id, 0, sizeof(r.alloc_id)) == NULL ||
        memchr(r.task, 0, sizeof(r.task)) == NULL ||
        memchr(r.boot_id, 0, sizeof(r.boot_id)) == NULL)
        return -ERR_CORRUPT;
    if (r.version != SHIM_VERSION)
        r.run = (struct record_run){.state = RECORD_RUNNING, .flags = RECORD_FOREIGN};
    else if ((size_t)n != sizeof(r) || r.run.state > RECORD_FINISHED)
        return -ERR_CORRUPT;
    *ret = r;
    return 0;
}

bool
record_settle(struct record *r, int64_t now_ns)
{
    if (r->run.state == RECORD_FINISHED)
        return false;
    r->version = SHIM_VERSION;
    r->run.state = RECORD_FINISHED;
    r->run.flags |= RECORD_LOST;
    r->run.finished_ns = now_ns;
    r->run.signal = SIGKILL;
    return true;
}

pid_t
record_shim_pid(int fd)
{
    /* a read lock conflicts with a write lock alone, for which only the shim has a descriptor */
    struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK && l.l_pid > 0 ? l.l_pid : 0;
}

static const char *
lost_how(const struct record *r)
{
    if ((r->run.flags & RECORD_REBOOT) != 0)
        return "the machine was restarted while the task ran: no record of its end";
    if ((r->run.flags & RECORD_ENDING) != 0)
        return "paddock-tasks.service was ending, and the task was killed with it";
    if ((r->run.flags & RECORD_FOREIGN) != 0)
        return "the task ended; its record is of another version of paddock-shim and says nothing "
               "to this one";
    return "the task's shim was killed, and the task with it: no record of its end";
}

static void
add_denied(struct task_record *t, const char *name, uint64_t times)
{
    struct denied_call *d = mem_new(t, struct denied_call);
    d->name = mem_strdup(d, name);
    d->times = times < INT64_MAX ? (int64_t)times : INT64_MAX;
    list_add(t, t->denied, d);
}

static void
export_denied(struct task_record *t, const struct record_run *run)
{
    char name[SECCOMP_CALL_TEXT];
    for (size_t i = 0; i < RECORD_CALLS_MAX && run->denied[i].times > 0; i++) {
        seccomp_call_name(run->denied[i].nr, name);
        add_denied(t, name, run->denied[i].times);
    }
    if (run->denied_more > 0)
        add_denied(t, "others", run->denied_more);
}

const char *
record_denied(const void *ctx, const struct task_record *t)
{
    const char *out = NULL;
    for (size_t i = 0; i < t->denied.n; i++) {
        const struct denied_call *d = t->denied.v[i];
        const char *one = d->times == 1
                              ? mem_printf(ctx, "%s once", d->name)
                              : mem_printf(ctx, "%s %lld times", d->name, (long long)d->times);
        out = out != NULL ? mem_printf(ctx, "%s, %s", out, one) : one;
    }
    return out;
}

struct task_record *
record_export(const void *ctx, const struct record *r)
{
    struct task_record *t = type_new(ctx, &type_task_record);
    t->alloc_id = mem_strdup(t, r->alloc_id);
    t->task_name = mem_strdup(t, r->task);
    t->boot_id = mem_strdup(t, r->boot_id);
    t->shim_pid = r->shim_pid;
    t->cgroup_id = r->cgroup_id;
    t->uid = r->uid;
    t->started_at = r->run.started_ns;
    t->finished_at = r->run.state == RECORD_FINISHED ? r->run.finished_ns : 0;
    t->exit_code = r->run.exit_code;
    t->signal = r->run.signal;
    t->oom_killed = (r->run.flags & RECORD_OOM) != 0;
    t->lost = (r->run.flags & RECORD_LOST) != 0;
    t->with_machine = (r->run.flags & (RECORD_REBOOT | RECORD_ENDING)) != 0;
    t->log_errors = (int64_t)r->run.log_errors;
    export_denied(t, &r->run);
    if (t->lost)
        t->error = lost_how(r);
    else if (t->with_machine)
        t->error = "the machine or paddock-tasks.service was ending, and the task with it";
    return t;
}

int
record_read(const void *ctx, int fd, struct task_record **ret)
{
    struct record r;
    int rc = record_read_raw(fd, &r);
    if (rc == 0)
        *ret = record_export(ctx, &r);
    return rc;
}
