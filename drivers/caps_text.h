/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and texts of capabilities for agent and CLI, by libcap, so that they are those of
 * capsh(1) and of the manual pages. Root processes have a table of their own instead
 * (isolation/confine/caps.h), which costs them no library.
 */
#ifndef PADDOCK_DRIVERS_CAPS_TEXT_H
#define PADDOCK_DRIVERS_CAPS_TEXT_H

#include <stdbool.h>

#include "api/api.h"

/* "net_raw", "CAP_NET_RAW", in any case. */
bool caps_text_known(const char *name);
/* "cap_chown,cap_net_raw=ep": what a process that keeps these has; names that nobody knows are left
 * out. NULL: no capability. */
const char *caps_text_of(const void *ctx, const struct str_list *names);

#endif
