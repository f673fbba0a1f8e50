/* SPDX-License-Identifier: Apache-2.0
 *
 * Parked blocking queries (server_watch() of server.h): an entry in a table on the loop, no thread.
 * The apply thread calls watches_changed() after each commit; the loop is only bothered when
 * somebody waits.
 */
#ifndef PADDOCK_SERVER_STATE_WATCH_H
#define PADDOCK_SERVER_STATE_WATCH_H

#include "server/env.h"
#include "server/propose.h"
#include "server/state/state.h"
#include "server/state/write.h"

struct watches;

struct watches *watches_new(const struct env *env);
/* Everybody parked is woken with WAKE_SHUTDOWN in a later turn; nobody can park any more. */
void watches_stop(struct watches *w);
/* After the last posted function of the core has run. */
void watches_free(struct watches *w);
/* Apply thread. `v` NULL: the state is another one, all of it may have changed. */
void watches_changed(void *w, uint64_t index, const struct state_change *v, size_t n);

struct server_watch *watches_park(struct watches *w, const struct watch_on *on, wake_fn *fn,
                                  void *arg);
/* Everybody is woken: this server does not lead any more. Loop thread. */
void watches_leader_lost(struct watches *w);
/* Returns the index of the last change of STATE_RIGHTS: the state has it. */
uint64_t watches_rights_index(const struct watches *w);
size_t watches_parked(const struct watches *w);

#endif
