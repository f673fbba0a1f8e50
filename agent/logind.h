/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine's shutdown as logind announces it (org.freedesktop.login1(5)): a delay lock is held,
 * so that PrepareForShutdown comes before anything is stopped and the machine waits, for
 * InhibitDelayMaxSec of logind.conf(5) at most, until the lock is released.
 *
 * Asynchronous, on the loop's thread. Nothing here stops an agent: where there is no systemd, no
 * bus, or logind refuses (without polkit it refuses everybody but root), that is logged once. A bus
 * that goes is tried again, and the lock taken anew.
 */
#ifndef PADDOCK_AGENT_LOGIND_H
#define PADDOCK_AGENT_LOGIND_H

#include <stdint.h>

#include "net/loop.h"

struct logind;

/* `going_down` comes when a shutdown was announced, never from inside: call logind_release() when
 * ready for it. NULL where there is no systemd. Owned by ctx, but stop it before the loop ends.
 * `deadline_ns`: how long that may take; a warning is logged where logind waits less. */
struct logind *logind_start(const void *ctx, struct loop *loop, int64_t deadline_ns,
                            void (*going_down)(void *arg), void *arg);
void logind_release(struct logind *l); /* NULL is fine */
void logind_stop(struct logind *l);    /* NULL is fine; releases */

#endif
