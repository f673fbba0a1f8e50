/* SPDX-License-Identifier: Apache-2.0
 *
 * The cgroup of all tasks on a machine where systemd runs and we are started by hand: a service of
 * one process (isolation/pause.c) with a delegated cgroup, made by StartTransientUnit. Tasks are
 * then below a unit that systemd knows and leaves alone, and survive the end of whoever started the
 * agent. The installed unit, paddock-tasks.service, is started instead where it is meant: for
 * /run/paddock.
 *
 * A scope would not do: it cannot be made without a process, so every launch would migrate one; and
 * a delegated unit with live tasks below it cannot be restarted by systemd 252 (219/CGROUP). The
 * unit keeps tasks and limits through restart and kill -9 of the daemons, daemon-reload and
 * daemon-reexec.
 */
#ifndef PADDOCK_AGENT_PAUSE_H
#define PADDOCK_AGENT_PAUSE_H

#include "common/err.h"

/* Starts the unit of `run_dir`, or finds it running, and waits until it has said where its cgroup
 * is: *ret_cgroup, owned by ctx. Blocks for PAUSE_WAIT_MS at most. Root, before any thread. */
int pause_start(const void *ctx, const char *run_dir, const char **ret_cgroup, struct err *e);
/* Ends the unit and every task in it: -dev. */
int pause_stop(const char *run_dir, struct err *e);
enum { PAUSE_WAIT_MS = 30 * 1000 };

#endif
