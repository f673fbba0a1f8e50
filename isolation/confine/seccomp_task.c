/* SPDX-License-Identifier: Apache-2.0
 *
 * The default profile with what one job adds and takes away.
 */
#include <fcntl.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/api.h"
#include "api/validate_isolation.h"
#include "codec/codec.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/seccomp.h"

enum { NUMBERS_MAX = 1024 };

/* Calls that this machine has by another number only, such as those of 32 bit, are known too. */
static int
seccomp_task_unknown(const char *name, struct err *e)
{
    const char *names[NUMBERS_MAX];
    char *owned[NUMBERS_MAX];
    size_t n = 0;
    for (int nr = 0; nr < NUMBERS_MAX; nr++) {
        char *s = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
        if (s != NULL) {
            owned[n] = s;
            names[n++] = s;
        }
    }
    const char *near = str_nearest(name, names, n);
    if (near != NULL)
        err_set(e, -ERR_INVALID, "seccomp: there is no system call \"%.64s\": did you mean \"%s\"?",
                name, near);
    else
        err_set(e, -ERR_INVALID, "seccomp: there is no system call \"%.64s\"", name);
    for (size_t i = 0; i < n; i++)
        free(owned[i]);
    return -ERR_INVALID;
}

int
seccomp_check_names(const struct str_list *names, struct err *e)
{
    for (size_t i = 0; i < names->n; i++)
        if (str_empty(names->v[i]) || seccomp_syscall_resolve_name(names->v[i]) == __NR_SCMP_ERROR)
            return seccomp_task_unknown(str_or(names->v[i], ""), e);
    return 0;
}

int
seccomp_check_task(const struct task_seccomp *t, struct err *e)
{
    int r = seccomp_check_names(&t->allow, e);
    if (r == 0)
        r = seccomp_check_names(&t->deny, e);
    if (r == 0 && str_list_has(&t->deny, "execve"))
        r = err_set(e, -ERR_INVALID, "seccomp: without \"execve\" no task can start");
    for (const char *const *call = audit_cannot_deny; *call && r == 0 && seccomp_audits(t); call++)
        if (str_list_has(&t->deny, *call))
            r = err_set(e, -ERR_INVALID,
                        "seccomp: mode \"audit\" cannot deny \"%s\", which the start of the task "
                        "needs",
                        *call);
    return r;
}

bool
seccomp_audits(const struct task_seccomp *t)
{
    return t != NULL && str_eq(t->mode, "audit");
}

void
seccomp_call_name(uint32_t nr, char out[SECCOMP_CALL_TEXT])
{
    char *name =
        nr < NUMBERS_MAX ? seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)nr) : NULL;
    if (name != NULL)
        (void)str_copy(out, SECCOMP_CALL_TEXT, name);
    else
        (void)snprintf(out, SECCOMP_CALL_TEXT, "call %u", nr);
    free(name);
}

bool
seccomp_allows(const struct seccomp_profile *p, const char *name)
{
    for (size_t i = 0; i < p->n_rules; i++)
        if (strcmp(p->rules[i].name, name) == 0)
            return p->rules[i].verdict == SECCOMP_V_ALLOW && p->rules[i].n_conds == 0;
    return false;
}

/* A filter has one listener. The kernel refuses a task that would add its own, which the filter
 * makes sure of: of two, that of the newer filter would be asked, and could let a call through. */
static const struct seccomp_cond no_listener[] = {
    {.arg = 1, .low32 = true, .mask = SECCOMP_FILTER_FLAG_NEW_LISTENER}};
static const struct seccomp_rule seccomp_audited = {
    .name = "seccomp", .verdict = SECCOMP_V_ALLOW, .conds = no_listener, .n_conds = 1};

/* Calls that give a file its mode. The mode of open(2) counts where it makes a file; openat2(2) has
 * it behind a pointer, out of a filter's sight, and a libc falls back. A directory gets no such
 * bits from mkdir(2). */
enum { SETUID_BITS = S_ISUID | S_ISGID, TMPFILE_BIT = O_TMPFILE & ~O_DIRECTORY };
#define BITS(n, m)                                                                                 \
    {                                                                                              \
        .arg = (n), .low32 = true, .mask = (m), .value = 0                                         \
    }
#define SETS(call, list)                                                                           \
    {                                                                                              \
        .name = call, .verdict = SECCOMP_V_ALLOW, .conds = (list), .n_conds = ARRAY_LEN(list)      \
    }
static const struct seccomp_cond mode_1[] = {BITS(1, SETUID_BITS)};
static const struct seccomp_cond mode_2[] = {BITS(2, SETUID_BITS)};
static const struct seccomp_cond node_1[] = {BITS(1, SETUID_BITS | S_IFCHR)};
static const struct seccomp_cond node_2[] = {BITS(2, SETUID_BITS | S_IFCHR)};
static const struct seccomp_cond open_1[] = {BITS(1, O_CREAT | TMPFILE_BIT), BITS(2, SETUID_BITS)};
static const struct seccomp_cond open_2[] = {BITS(2, O_CREAT | TMPFILE_BIT), BITS(3, SETUID_BITS)};
static const struct seccomp_rule setuid_rules[] = {
    SETS("chmod", mode_1),
    SETS("fchmod", mode_1),
    SETS("fchmodat", mode_2),
    SETS("fchmodat2", mode_2),
    SETS("mknod", node_1),
    SETS("mknodat", node_2),
    SETS("creat", mode_1),
    SETS("open", open_1),
    SETS("openat", open_2),
    {.name = "openat2", .verdict = SECCOMP_V_ENOSYS},
};

/* Rules of which a task gets ours, whatever it asks for: it may only be denied the whole call. */
struct fixed {
    const struct seccomp_rule *v[ARRAY_LEN(setuid_rules) + 1];
    size_t n;
};

static bool
seccomp_task_has(const struct fixed *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (str_eq(f->v[i]->name, name))
            return true;
    return false;
}

int
seccomp_compile_task(const void *ctx, const struct seccomp_profile *p, const struct task_seccomp *t,
                     bool no_setuid, struct seccomp_program *ret, struct err *e)
{
    int r = seccomp_check_task(t, e);
    if (r < 0)
        return r;
    bool audit = seccomp_audits(t);
    struct fixed fixed = {0};
    if (audit)
        fixed.v[fixed.n++] = &seccomp_audited;
    for (size_t i = 0; i < ARRAY_LEN(setuid_rules) && no_setuid; i++)
        fixed.v[fixed.n++] = &setuid_rules[i];
    auto_mem void *tmp = mem_ctx("seccomp");
    struct seccomp_rule *rules =
        mem_array(tmp, struct seccomp_rule, p->n_rules + t->allow.n + fixed.n);
    size_t n = 0;
    for (size_t i = 0; i < p->n_rules; i++)
        if (!str_list_has(&t->allow, p->rules[i].name) &&
            !str_list_has(&t->deny, p->rules[i].name) &&
            !seccomp_task_has(&fixed, p->rules[i].name))
            rules[n++] = p->rules[i];
    for (size_t i = 0; i < t->allow.n; i++) {
        const char *name = t->allow.v[i];
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again = again || str_eq(t->allow.v[k], name);
        if (!again && !str_list_has(&t->deny, name) && !seccomp_task_has(&fixed, name))
            rules[n++] = (struct seccomp_rule){.name = name, .verdict = SECCOMP_V_ALLOW};
    }
    for (size_t i = 0; i < fixed.n; i++)
        if (!str_list_has(&t->deny, fixed.v[i]->name))
            rules[n++] = *fixed.v[i];
    struct seccomp_profile own = {.name = "task",
                                  .rules = rules,
                                  .n_rules = n,
                                  .denied = audit                    ? SECCOMP_D_NOTIFY
                                            : str_eq(t->mode, "log") ? SECCOMP_D_LOG
                                                                     : SECCOMP_D_EPERM};
    return seccomp_compile(ctx, &own, ret, e);
}
