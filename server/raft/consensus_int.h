/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of libraft 0.22.1 (<raft.h>, of which no other header of ours knows) in those of
 * consensus.h: errors, roles, configurations. For consensus.c alone.
 */
#ifndef PADDOCK_SERVER_RAFT_CONSENSUS_INT_H
#define PADDOCK_SERVER_RAFT_CONSENSUS_INT_H

#include <raft.h>

#include "server/raft/consensus.h"

#if RAFT_VERSION_NUMBER != 2201
#error "libraft 0.22.1 is needed: ownership and guards are written for exactly that version"
#endif

/* A negative code of common/err.h for one of libraft; 0 for 0. */
int library_code(int rv);
enum consensus_role library_role(unsigned short state);
/* -ERR_INVALID; else *ret is to be closed, or given to the library. */
int library_conf(const struct peer_list *l, struct raft_configuration *ret);
/* Reads a configuration of the library's; *ret is owned by ctx. */
void library_conf_read(const void *ctx, const struct raft_configuration *c, struct peer_list *ret);

#endif
