/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's side of the launch pad. At most one request is under way: each pad_request() that
 * did not fail is followed by pad_take() before the next.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_PAD_H
#define PADDOCK_ISOLATION_WARDEN_PAD_H

#include "isolation/warden/warden.h"

int pad_start(struct warden *w, struct err *e);
/* Returns when the pad has ended: until it is ready it makes directories below the run directory.
 * Without effect when there is none. */
void pad_stop(struct warden *w);
/* The status socket: pair[0] is ours. */
int pad_socket(int pair[2], struct err *e);
/* An isolated shim will be requested. */
void pad_wake(struct warden *w);
/* A shim or joiner is to be made. `status` is its end of the status socket; `leaf` -1: without
 * cgroups. */
int pad_request(struct warden *w, const struct pad_request *q, int status, int leaf, struct err *e);
/* Takes the shim's pid, or the error; once after each pad_request() that did not fail, before the
 * next. */
int pad_take(struct warden *w, int *ret_pidfd, struct err *e);
/* Sends the shim its descriptors, over our end of that socket: `fds` (borrowed) by enum shim_fd. */
int pad_work(int status, const int fds[SHIM_FD_END], const int *trees, uint32_t n_trees,
             struct err *e);
/* Reads a report of a shim or joiner (`who`): false, nothing yet; else `e` says why its program
 * does not run, or it does, and `ret` has the `want` descriptors of the report. The caller closes
 * them in either case. */
struct pad_fds {
    int v[PACKET_FDS_MAX];
    size_t n;
};
bool pad_report(int socket, const char *who, const void *plan, size_t want, struct pad_fds *ret,
                struct err *e);

#endif
