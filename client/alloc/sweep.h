/* SPDX-License-Identifier: Apache-2.0
 *
 * What nobody here owns: tasks whose allocation is not in the local state (it was lost, or a crash
 * came between the first request and the write) and directories of such allocations. Looked for
 * each time the warden is there anew: first the tasks, in pages, then, when these have ended, the
 * directories.
 *
 * An allocation is in the client's table before anything of it is asked of the warden, and requests
 * are carried out in order, so what is not in the table when an answer comes may be removed.
 */
#ifndef PADDOCK_CLIENT_ALLOC_SWEEP_H
#define PADDOCK_CLIENT_ALLOC_SWEEP_H

#include "client/alloc/alloc_runner.h"

void sweep_start(struct allocs *allocs);

#endif
