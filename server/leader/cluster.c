/* SPDX-License-Identifier: Apache-2.0
 *
 * What a leader writes into the log when the state does not have it yet: the id of a cluster of
 * several servers, so that no server starts with the log of one and the consent to another
 * (server/peer/found.h); and the built-in objects.
 */
#include "common/mem.h"
#include "server/leader/leader_int.h"

static void
cluster_on_leader(struct leader *l, struct state_txn *t)
{
    auto_mem void *tmp = mem_ctx("cluster");
    const char *id = server_cluster(l->s);
    struct cluster_metadata m = {.cluster_id = id};
    if (id[0] != '\0' && state_cluster(t, tmp) == NULL)
        leader_owe(l, &(struct intent){.cluster_metadata = &m});
    if (!state_has_built_ins(t))
        leader_owe(l, &(struct intent){.objects_init = &(struct empty){0}});
}

const struct controller cluster_row = {.on_leader = cluster_on_leader};
