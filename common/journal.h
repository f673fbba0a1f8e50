/* SPDX-License-Identifier: Apache-2.0
 *
 * journald's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): one datagram per log line, with
 * fields that `journalctl FIELD=value` finds. Written here, because the warden links nothing but
 * libc. Used by log.c; thread-safe once opened.
 */
#ifndef PADDOCK_COMMON_JOURNAL_H
#define PADDOCK_COMMON_JOURNAL_H

#include <stdbool.h>

#include "common/buf.h"
#include "common/limits.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
/* Opens journald's socket if `fd` is a stream of journald's ($JOURNAL_STREAM names its inode):
 * connects to `socket` and keeps that until the next call, so that a later change of root or
 * namespace does not matter. The result is what journal_active() says from then on. fd -1
 * closes. */
bool journal_open(int fd, const char *socket);
bool journal_active(void);

/* Appends one field. `name` is lower or upper case letters, digits and '_'; it is written after
 * `prefix` and in upper case. The value may hold anything. */
void journal_field(struct buf *b, const char *prefix, const char *name, const char *value);
/* Sends what journal_field() collected: at most JOURNAL_BYTES_MAX, far below what the socket takes,
 * so that no memfd is needed. False when journald cannot be reached: say it elsewhere. Once
 * journald has taken nothing for JOURNAL_WAIT_MS lines are lost, until a line is taken again, which
 * then has PADDOCK_LOG_LOST with their number: logging must not stop the agent. */
bool journal_send(struct buf *b);

#endif
