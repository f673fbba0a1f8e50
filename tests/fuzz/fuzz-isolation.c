/* SPDX-License-Identifier: Apache-2.0
 *
 * What the warden reads besides its socket: cgroup and /proc files, mount tables, account files,
 * the policy, task records. The first byte chooses. Oracles: no read or write too far; what is
 * accepted is within its bounds and the same when read again.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/plain.h"
#include "common/fd.h"
#include "common/host/mounts.h"
#include "common/host/notify.h"
#include "common/mem.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/confine/users.h"
#include "isolation/launch/plan.h"
#include "isolation/launch/policy.h"
#include "isolation/launch/proto.h"
#include "isolation/launch/record.h"
#include "isolation/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char dir[] = "/dev/shm/paddock-fuzz-XXXXXX";

static const char *
file_of(const void *ctx, const char *name, const void *p, size_t n)
{
    static bool made;
    if (!made) {
        ASSERT(mkdtemp(dir) != NULL);
        made = true;
    }
    const char *path = mem_printf(ctx, "%s/%s", dir, name);
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT(fd >= 0 && fd_write_full(fd, p, n) == 0);
    return path;
}

static void
cgroup_files(const char *text)
{
    int64_t v;
    struct cgroup_psi psi;
    (void)cgroup_parse_controllers(text);
    (void)cgroup_parse_flat(text, "oom_kill", &v);
    (void)cgroup_parse_flat(text, "", &v);
    cgroup_parse_psi(text, &psi);
}

static void
proc_files(const char *text)
{
    struct proc_stat a, b;
    if (proc_parse_stat(text, &a) == 0)
        ASSERT(proc_parse_stat(text, &b) == 0 && a.start == b.start && a.parent == b.parent);
    ASSERT(proc_parse_inner(text) == proc_parse_inner(text));
}

static void
mounts(const void *ctx, const char *text)
{
    char *copy = mem_strdup(ctx, text), *at = copy;
    for (struct mount_line m; mounts_next(&at, &m);)
        ASSERT(m.device >= copy && m.type + strlen(m.type) <= copy + strlen(text));
}

/* spec NUL passwd NUL group */
static void
accounts(const void *ctx, const char *p, size_t n)
{
    static const char *const denied[] = {"root", "daemon"};
    const char *end = p + n, *a = memchr(p, 0, n);
    const char *b = a ? memchr(a + 1, 0, (size_t)(end - a - 1)) : NULL;
    if (b == NULL)
        return;
    struct users_files files = {
        .passwd = file_of(ctx, "passwd", a + 1, (size_t)(b - a - 1)),
        .group = file_of(ctx, "group", b + 1, (size_t)(end - b - 1)),
    };
    struct user u;
    struct err e = ERR_INIT;
    int r = users_resolve(p, denied, 2, &files, &u, &e);
    ASSERT((r == 0) == (e.code == 0));
    if (r < 0)
        return;
    ASSERT(u.uid != 0 && u.gid != 0 && u.n_groups <= USERS_GROUPS_MAX);
    for (size_t i = 0; i < u.n_groups; i++)
        ASSERT(u.groups[i] != 0);
    ASSERT(memchr(u.name, 0, sizeof(u.name)) && memchr(u.home, 0, sizeof(u.home)));
}

static void
policy(const void *ctx, const void *p, size_t n)
{
    struct policy *a = NULL, *b = NULL;
    struct err e = ERR_INIT;
    const char *path = file_of(ctx, "policy", p, n);
    if (policy_load(ctx, path, &a, &e) < 0) {
        ASSERT(e.text[0] != '\0');
        return;
    }
    ASSERT(policy_compile(a, path, &e) == 0 && policy_load(ctx, path, &b, &e) == 0);
    ASSERT(codec_equal(&type_policy, a, b, 0));
}

static void
task_record(const void *ctx, const void *p, size_t n)
{
    struct record r = {.magic = RECORD_MAGIC, .version = SHIM_VERSION};
    memcpy((char *)&r + 8, p, n < sizeof(r) - 8 ? n : sizeof(r) - 8);
    auto_fd int fd = memfd_create("record", MFD_CLOEXEC);
    struct task_record *t = NULL;
    ASSERT(fd >= 0 && fd_write_full(fd, &r, sizeof(r)) == 0);
    if (record_read(ctx, fd, &t) == 0)
        ASSERT(strlen(t->alloc_id) < 40 && strlen(t->task_name) < 136);
    (void)plain_task_name(t ? t->task_name : "");
}

static void
environment(const char *text)
{
    setenv("WATCHDOG_USEC", text, 1);
    unsetenv("WATCHDOG_PID");
    ASSERT(notify_watchdog_ns() >= 0);
    setenv("WATCHDOG_PID", text, 1);
    ASSERT(notify_watchdog_ns() >= 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    auto_mem void *ctx = mem_ctx("fuzz");
    const char *text = mem_strndup(ctx, (const char *)data + 1, n - 1);
    switch (data[0] % 7) {
    case 0:
        cgroup_files(text);
        break;
    case 1:
        proc_files(text);
        break;
    case 2:
        mounts(ctx, text);
        break;
    case 3:
        accounts(ctx, (const char *)data + 1, n - 1);
        break;
    case 4:
        policy(ctx, data + 1, n - 1);
        break;
    case 5:
        task_record(ctx, data + 1, n - 1);
        break;
    default:
        environment(text);
        break;
    }
    return 0;
}
