/* SPDX-License-Identifier: Apache-2.0
 *
 * What the container of a group's network runs: nothing, so that the network stays. Free-standing,
 * since its image holds this file alone.
 */
#include "isolation/confine/raw.h"

_Noreturn void _start(void);

_Noreturn void
_start(void)
{
    for (;;)
        (void)RAW(SYS_ppoll, 0, 0, 0, 0, 0);
}
