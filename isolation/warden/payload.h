/* SPDX-License-Identifier: Apache-2.0
 *
 * The payload of a task that this warden did not launch, or has not seen start: the child of its
 * shim that the record names.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_PAYLOAD_H
#define PADDOCK_ISOLATION_WARDEN_PAYLOAD_H

#include "isolation/warden/warden.h"

/* Sets `pid` and `payload` of the task, which has its shim's pid, where it lives. */
void payload_find(struct wtask *t);

#endif
