/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/warden/payload.h"

#include <sys/types.h>

#include "common/fd.h"
#include "common/mem.h"
#include "isolation/launch/record.h"
#include "isolation/proc.h"

/* Whether `pid` is the payload of a task: the process that the shim calls `inner` and is parent of.
 * 0: the record does not say (a newer one): the oldest child, `best` being the oldest so far. */
static bool
is_payload(const struct wtask *t, pid_t pid, pid_t inner, uint64_t *best)
{
    struct proc_stat s;
    if (proc_stat(pid, &s) < 0 || s.parent != t->shim_pid)
        return false;
    if (inner != 0)
        return proc_inner_pid(pid) == inner;
    if (*best != 0 && s.start >= *best)
        return false;
    *best = s.start;
    return true;
}

static pid_t
find_payload(const struct wtask *t, pid_t inner)
{
    if (t->cgroup.task_fd < 0)
        return proc_parent(inner) == t->shim_pid ? inner : 0;
    auto_mem void *ctx = mem_ctx("procs");
    char *text = NULL;
    uint64_t best = 0;
    pid_t found = 0;
    if (file_read(ctx, t->cgroup.task_fd, "cgroup.procs", 1 << 20, &text, NULL) < 0)
        return 0;
    for (char *p = text; *p != '\0';) {
        pid_t pid = 0;
        for (; *p >= '0' && *p <= '9' && pid < INT32_MAX / 10; p++)
            pid = pid * 10 + (*p - '0');
        while (*p != '\0' && (*p < '0' || *p > '9'))
            p++;
        if (is_payload(t, pid, inner, &best))
            found = pid;
    }
    return found;
}

void
payload_find(struct wtask *t)
{
    struct record r;
    if (record_read_raw(t->record, &r) < 0)
        return;
    t->pid = find_payload(t, r.run.pid);
    if (t->pid <= 0)
        return;
    t->payload = pidfd_open_pid(t->pid);
    if (t->payload >= 0 && proc_parent(t->pid) != t->shim_pid)
        fd_close(&t->payload);
}
