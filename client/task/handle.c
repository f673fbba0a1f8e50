/* SPDX-License-Identifier: Apache-2.0 */
#include "client/task/handle.h"

const struct task_handle *
handle_of(const struct driver *d)
{
    return d && !d->can->launch ? &handle_engine : &handle_process;
}
