/* SPDX-License-Identifier: Apache-2.0 */
#include "client/task/hooks.h"

#include "common/mem.h"

#define ROW(name) &task_hook_##name,
static const struct task_hook *const rows[] = {TASK_HOOKS(ROW)};

bool
task_hooks_prestart(struct task_runner *tr)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i]->prestart && !rows[i]->prestart(tr))
            return false;
    return true;
}

void
task_hooks_poststart(struct task_runner *tr)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i]->poststart)
            rows[i]->poststart(tr);
}

void
task_hooks_exited(struct task_runner *tr, const struct task_exit *x)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i]->exited)
            rows[i]->exited(tr, x);
}

void
task_hooks_stop(struct task_runner *tr)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i]->stop)
            rows[i]->stop(tr);
}
