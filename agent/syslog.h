/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's log as messages of syslog (enable_syslog, syslog_facility), beside where it goes
 * anyway: datagrams of RFC 3164 to the socket of the machine's daemon. One that does not take them
 * loses lines; it never stops the agent.
 */
#ifndef PADDOCK_AGENT_SYSLOG_H
#define PADDOCK_AGENT_SYSLOG_H

#include "common/err.h"
#include "common/log.h"

#define SYSLOG_SOCKET "/dev/log"

/* Lines of `level` and above go to `socket`, for as long as the process lives. `facility`:
 * "LOCAL0", in any case. -ERR_INVALID: there is none of that name; -errno: nobody is there. */
int syslog_open(const char *socket, const char *facility, enum log_level level, struct err *e);

#endif
