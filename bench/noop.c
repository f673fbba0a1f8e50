/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest program: exits 0. What both sides of bench/launch start.
 */
#include "isolation/confine/raw.h"

_Noreturn void _start(void);
_Noreturn void
_start(void)
{
    for (;;)
        (void)RAW(SYS_exit_group, 0);
}
