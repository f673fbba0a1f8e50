/* SPDX-License-Identifier: Apache-2.0
 *
 * The default profile with what one job adds and takes away.
 */
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "codec/codec.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/seccomp.h"

enum { NUMBERS_MAX = 1024 };

static bool
has(const struct str_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i], name))
            return true;
    return false;
}

/* Calls that this machine has by another number only, such as those of 32 bit, are known too. */
static int
unknown(const char *name, struct err *e)
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
            return unknown(str_or(names->v[i], ""), e);
    return 0;
}

int
seccomp_check_task(const struct task_seccomp *t, struct err *e)
{
    int r = seccomp_check_names(&t->allow, e);
    if (r == 0)
        r = seccomp_check_names(&t->deny, e);
    if (r == 0 && has(&t->deny, "execve"))
        r = err_set(e, -ERR_INVALID, "seccomp: without \"execve\" no task can start");
    return r;
}

bool
seccomp_allows(const struct seccomp_profile *p, const char *name)
{
    for (size_t i = 0; i < p->n_rules; i++)
        if (strcmp(p->rules[i].name, name) == 0)
            return p->rules[i].verdict == SECCOMP_V_ALLOW && p->rules[i].n_conds == 0;
    return false;
}

int
seccomp_compile_task(const void *ctx, const struct seccomp_profile *p, const struct task_seccomp *t,
                     struct seccomp_program *ret, struct err *e)
{
    int r = seccomp_check_task(t, e);
    if (r < 0)
        return r;
    auto_mem void *tmp = mem_ctx("seccomp");
    struct seccomp_rule *rules = mem_array(tmp, struct seccomp_rule, p->n_rules + t->allow.n);
    size_t n = 0;
    for (size_t i = 0; i < p->n_rules; i++)
        if (!has(&t->allow, p->rules[i].name) && !has(&t->deny, p->rules[i].name))
            rules[n++] = p->rules[i];
    for (size_t i = 0; i < t->allow.n; i++) {
        const char *name = t->allow.v[i];
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again = again || str_eq(t->allow.v[k], name);
        if (!again && !has(&t->deny, name))
            rules[n++] = (struct seccomp_rule){.name = name, .verdict = SECCOMP_V_ALLOW};
    }
    struct seccomp_profile own = {
        .name = "task", .rules = rules, .n_rules = n, .log = str_eq(t->mode, "log")};
    return seccomp_compile(ctx, &own, ret, e);
}
