/* SPDX-License-Identifier: Apache-2.0
 *
 * The service manager's notification protocol (sd_notify(3), "Notify socket protocol"): one
 * datagram per message to the socket that $NOTIFY_SOCKET names. Written here, because the warden
 * links nothing but libc. Without a service manager every call does nothing.
 */
#ifndef PADDOCK_COMMON_HOST_NOTIFY_H
#define PADDOCK_COMMON_HOST_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* A service manager waits for messages. */
bool notify_active(void);
/* "READY=1", "RELOADING=1", "STOPPING=1", "STATUS=...", "WATCHDOG=1"; several are joined by
 * newlines. 0, also when nobody listens, or -errno. Never blocks for long: a full socket loses the
 * message. */
int notify_send(const char *text);
/* Begins a start of a service, before anything else. After the fourth failure in a row and each
 * later one a pause is made, twice as long each time: 2 s (with the second of the unit), at most
 * `max_s`. Units that are ordered behind wait as well. systemd before 254 has nothing like it
 * (RestartSteps=), and later ones count the crashes of a service that starts well too. The count is
 * in the service manager's store of descriptors (FDSTORE=1), and goes with a stop of the unit. A
 * start without notify_ready() has failed, however it ended. False: a pause was cut short by a
 * signal to end. */
bool notify_begin(unsigned max_s);
/* The start has succeeded. */
void notify_ready(const char *status);
/* Says as the unit's status why the program does not start, now and during the next pause. */
void notify_status_failed(const char *text);
/* Prints on standard error why the program does not start, as lines of priority "error" where the
 * journal reads them (sd-daemon(3)), and does notify_status_failed(). `text` may have several
 * lines. */
void notify_failure(const char *text);
/* How often the service manager wants WATCHDOG=1 at the latest ($WATCHDOG_USEC); 0: never. */
int64_t notify_watchdog_ns(void);

#endif
