/* SPDX-License-Identifier: Apache-2.0
 *
 * Datagrams: a UDP socket on a loop. What is sent may be lost, also here when the kernel has no
 * room.
 */
#ifndef PADDOCK_NET_DATAGRAM_H
#define PADDOCK_NET_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "net/addr.h"
#include "net/loop.h"

struct datagram;

/* `from`: "10.0.0.7:4321"; all is valid during the call. An empty or a cut one does not come. */
typedef void datagram_fn(void *arg, const char *from, const uint8_t *p, size_t n);

/* Numeric address; port 0: any free one. -errno. */
int datagram_open(struct loop *l, const struct addr *at, datagram_fn *got, void *arg,
                  struct datagram **ret, struct err *e);
/* To a numeric "host:port"; false: it is none, or there was no room. */
bool datagram_send(struct datagram *d, const char *to, const uint8_t *p, size_t n);
/* NULL is fine. Nothing comes any more. */
void datagram_close(struct datagram *d);

#endif
