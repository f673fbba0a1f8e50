/* SPDX-License-Identifier: Apache-2.0 */
#include "api/isolation.h"

#include "common/mem.h"
#include "common/str.h"

const struct task_isolation *
isolation_of(const struct task_isolation *i)
{
    static const struct task_isolation none;
    return i ? i : &none;
}

size_t
isolation_box(const struct task_isolation *i, const char *names[ISOLATION_BOX_MAX])
{
    const struct {
        const char *name;
        bool asked;
    } rows[] = {
        {"userns", !str_empty(i->userns)},
        {"seccomp", i->seccomp != NULL},
        {"landlock", i->landlock != NULL},
        {"proc", !str_empty(i->proc)},
        {"core_sched", i->core_sched},
        {"apparmor", !str_empty(i->apparmor)},
        {"verity", i->verity.n > 0},
    };
    _Static_assert(ARRAY_LEN(rows) <= ISOLATION_BOX_MAX, "names has room");
    size_t n = 0;
    for (size_t k = 0; k < ARRAY_LEN(rows); k++)
        if (rows[k].asked)
            names[n++] = rows[k].name;
    return n;
}

bool
isolation_ports(const struct task_isolation *i)
{
    return i->landlock && (i->landlock->bind.n > 0 || i->landlock->connect.n > 0);
}
