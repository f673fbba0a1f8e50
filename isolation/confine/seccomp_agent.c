/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's filter: the tasks' default without what starts, traces or signals processes, changes
 * users or modes of processes, or makes devices and IPC objects. Threads may still be made: the
 * resolver's and the pool's come late. The filter of helpers, which is made of the same.
 */
#include <linux/netlink.h>
#include <linux/sched.h>
#include <sys/socket.h>

#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/seccomp.h"

static const char *const without[] = {
    "clone", /* below */
    "execve",
    "execveat",
    "fork",
    "vfork",
    "kill",
    "tkill",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "pidfd_send_signal",
    "process_madvise",
    "process_mrelease",
    "wait4",
    "waitpid",
    "setpgid",
    "setsid",
    "setuid",
    "setuid32",
    "setgid",
    "setgid32",
    "setreuid",
    "setreuid32",
    "setregid",
    "setregid32",
    "setresuid",
    "setresuid32",
    "setresgid",
    "setresgid32",
    "setfsuid",
    "setfsuid32",
    "setfsgid",
    "setfsgid32",
    "setgroups",
    "setgroups32",
    "capset",
    "personality",
    "mknod",
    "mknodat",
    "chown",
    "chown32",
    "fchown",
    "fchown32",
    "fchownat",
    "lchown",
    "lchown32",
    "ioprio_set",
    "memfd_secret",
    "fanotify_mark",
    "ipc",
    "mq_getsetattr",
    "mq_notify",
    "mq_open",
    "mq_timedreceive",
    "mq_timedreceive_time64",
    "mq_timedsend",
    "mq_timedsend_time64",
    "mq_unlink",
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "semtimedop_time64",
    "shmat",
    "shmctl",
    "shmdt",
    "shmget",
    "adjtimex",
    "clock_adjtime",
    "clock_adjtime64",
    "io_setup",
    "io_submit",
    "remap_file_pages",
    "pkey_mprotect",
};

static const struct seccomp_cond threads_only[] = {
    {.arg = 0, .low32 = true, .mask = CLONE_THREAD | CLONE_VM, .value = CLONE_THREAD | CLONE_VM},
};

static bool
left_out(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(without); i++)
        if (str_eq(without[i], name))
            return true;
    return false;
}

/* No name of a file or of the abstract kind leads to another process of the host. */
static const struct seccomp_cond internet_only[] = {
    {.arg = 0, .low32 = true, .mask = UINT32_MAX, .value = AF_INET},
    {.arg = 0, .low32 = true, .mask = UINT32_MAX, .value = AF_INET6},
    /* the resolver asks which addresses there are */
    {.arg = 0, .low32 = true, .more = true, .mask = UINT32_MAX, .value = AF_NETLINK},
    {.arg = 2, .low32 = true, .mask = UINT32_MAX, .value = NETLINK_ROUTE},
};

/* Connected, and for ever to each other: libraries wake their threads by them. */
static const struct seccomp_cond stream_pairs[] = {
    {.arg = 0, .low32 = true, .more = true, .mask = UINT32_MAX, .value = AF_UNIX},
    {.arg = 1, .low32 = true, .mask = 0xf, .value = SOCK_STREAM},
};

static bool
helper_rule(const char *name, bool programs)
{
    static const char *const own[] = {"socket", "socketpair"};
    static const char *const served[] = {"bind", "listen", "accept", "accept4"};
    static const char *const started[] = {"clone", "execve",  "fork",    "vfork", "kill",
                                          "wait4", "waitpid", "setpgid", "setsid"};
    if (str_eq(name, "execveat"))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (str_eq(own[i], name))
            return false;
    for (size_t i = 0; i < ARRAY_LEN(served); i++)
        if (str_eq(served[i], name))
            return programs;
    for (size_t i = 0; i < ARRAY_LEN(started); i++)
        if (str_eq(started[i], name))
            return programs;
    return !left_out(name);
}

int
seccomp_compile_helper(const void *ctx, bool programs, struct seccomp_program *ret, struct err *e)
{
    const struct seccomp_profile *p = seccomp_profile_default();
    auto_mem void *tmp = mem_ctx("seccomp");
    struct seccomp_rule *rules = mem_array(tmp, struct seccomp_rule, p->n_rules + 3);
    size_t n = 0;
    for (size_t i = 0; i < p->n_rules; i++)
        if (helper_rule(p->rules[i].name, programs))
            rules[n++] = p->rules[i];
    if (!programs)
        rules[n++] = (struct seccomp_rule){.name = "clone",
                                           .verdict = SECCOMP_V_ALLOW,
                                           .conds = threads_only,
                                           .n_conds = ARRAY_LEN(threads_only)};
    rules[n++] = (struct seccomp_rule){.name = "socket",
                                       .verdict = SECCOMP_V_ALLOW,
                                       .conds = internet_only,
                                       .n_conds = ARRAY_LEN(internet_only)};
    rules[n++] = (struct seccomp_rule){.name = "socketpair",
                                       .verdict = SECCOMP_V_ALLOW,
                                       .conds = stream_pairs,
                                       .n_conds = ARRAY_LEN(stream_pairs)};
    const struct seccomp_profile own = {.name = "helper", .rules = rules, .n_rules = n};
    return seccomp_compile(ctx, &own, ret, e);
}

int
seccomp_compile_agent(const void *ctx, struct seccomp_program *ret, struct err *e)
{
    const struct seccomp_profile *p = seccomp_profile_default();
    auto_mem void *tmp = mem_ctx("seccomp");
    struct seccomp_rule *rules = mem_array(tmp, struct seccomp_rule, p->n_rules + 1);
    size_t n = 0;
    for (size_t i = 0; i < p->n_rules; i++)
        if (!left_out(p->rules[i].name))
            rules[n++] = p->rules[i];
    rules[n++] = (struct seccomp_rule){.name = "clone",
                                       .verdict = SECCOMP_V_ALLOW,
                                       .conds = threads_only,
                                       .n_conds = ARRAY_LEN(threads_only)};
    const struct seccomp_profile own = {.name = "agent", .rules = rules, .n_rules = n};
    return seccomp_compile(ctx, &own, ret, e);
}
