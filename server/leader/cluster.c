/* SPDX-License-Identifier: Apache-2.0
 *
 * The first leader of a cluster of several servers writes into the log which cluster it is of, so
 * that no server starts with the log of one and the consent to another (server/peer/found.h).
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
}

const struct controller cluster_row = {.on_leader = cluster_on_leader};
