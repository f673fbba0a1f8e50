/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks of allocations. A record is there before anything else of a network is and goes last;
 * the agent names mode and ports, the address is ours.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_NET_H
#define PADDOCK_ISOLATION_WARDEN_NET_H

#include "isolation/warden/warden.h"

int net_start(struct warden *w, struct err *e);   /* probes */
int net_recover(struct warden *w, struct err *e); /* living tasks are known; starts the worker */
/* The allocation goes: so does its network. ERR_BUSY: not now. */
int net_forget(struct warden *w, const char *alloc, struct err *e);
/* The fd of its namespace, borrowed, for a launch. */
int net_of(struct warden *w, const char *alloc, struct err *e);
void net_tick(struct warden *w); /* at w->nets_ns */
const char *net_bridge(const struct warden *w); /* its name; NULL without root */
/* At the end: where nothing uses them, or all tasks were ended, bridge and rules go too. */
void net_clear(struct warden *w);

#endif
