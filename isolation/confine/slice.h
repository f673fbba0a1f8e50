/* SPDX-License-Identifier: Apache-2.0
 *
 * How soon a process that wakes up gets a processor on which others compute. Since Linux 6.12 it
 * may ask for a shorter slice of time (sched_setattr(2)): then it is let in sooner, and has no more
 * of the processor for it. Older kernels take no notice.
 */
#ifndef PADDOCK_ISOLATION_CONFINE_SLICE_H
#define PADDOCK_ISOLATION_CONFINE_SLICE_H

#include <linux/sched/types.h>
#include <stdint.h>

#include "isolation/confine/raw.h"

enum { SLICE_SHORT_NS = 100 * 1000 }; /* the shortest there is */

/* Sets the slice of the calling thread and of what it starts from now on; 0: the kernel's default.
 * Another policy than SCHED_OTHER is the operator's, and stays. */
RAW_INLINE void
slice_set(uint64_t ns)
{
    struct sched_attr a = {0};
    if (RAW(SYS_sched_getattr, 0, &a, sizeof(a), 0) < 0 || a.sched_policy != 0)
        return;
    a.sched_runtime = ns;
    (void)RAW(SYS_sched_setattr, 0, &a, 0);
}

#endif
