/* SPDX-License-Identifier: Apache-2.0 */
#include "api/isolation.h"

const struct task_isolation *
isolation_of(const struct task_isolation *i)
{
    static const struct task_isolation none;
    return i ? i : &none;
}

const char *
isolation_box(const struct task_isolation *i, size_t *at)
{
    while (*at < type_task_isolation.n_fields) {
        const struct field *f = &type_task_isolation.fields[(*at)++];
        if ((f->flags & F_BOX) && !codec_field_empty(f, i))
            return f->hcl;
    }
    return NULL;
}

bool
isolation_ports(const struct task_isolation *i)
{
    return i->landlock && (i->landlock->bind.n > 0 || i->landlock->connect.n > 0);
}
