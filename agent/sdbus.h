/* SPDX-License-Identifier: Apache-2.0
 *
 * sd-bus (sd-bus(3)), loaded when it is needed: by an agent that drains before a shutdown, and by a
 * supervisor on a machine with systemd but without our units. Not linked, since everybody else
 * would pay for it and the five libraries behind it (doc/dependencies.md), and an agent without
 * systemd needs none. The warden has nothing of this.
 */
#ifndef PADDOCK_AGENT_SDBUS_H
#define PADDOCK_AGENT_SDBUS_H

#include <systemd/sd-bus.h>

#include "common/err.h"

#define SDBUS_FUNCTIONS(X)       \
    X(open_system)               \
    X(close_unref)               \
    X(get_fd)                    \
    X(get_events)                \
    X(get_timeout)               \
    X(process)                   \
    X(wait)                      \
    X(call)                      \
    X(call_method)               \
    X(call_method_async)         \
    X(match_signal)              \
    X(match_signal_async)        \
    X(error_free)                \
    X(error_has_name)            \
    X(message_new_method_call)   \
    X(message_append)            \
    X(message_open_container)    \
    X(message_close_container)   \
    X(message_read)              \
    X(message_get_error)         \
    X(message_unref)

/* sdbus->call(...) is sd_bus_call(...) */
struct sdbus {
#define SDBUS_MEMBER(name) __typeof__(&sd_bus_##name) name;
    SDBUS_FUNCTIONS(SDBUS_MEMBER)
#undef SDBUS_MEMBER
};

/* NULL with an error where systemd does not run (sd_booted(3)) or the library is missing. Loaded
 * once and kept. Call it from one thread. */
const struct sdbus *sdbus_load(struct err *e);

#endif
