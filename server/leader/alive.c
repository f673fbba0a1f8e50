/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes are alive: their heartbeat timers (heartbeat.h) and what follows when one is missed.
 */
#include "api/terms.h"
#include "common/log.h"
#include "common/mem.h"
#include "server/leader/leader_int.h"

/* A node that is not down has a timer: one that is disconnected, or whose miss came to nothing. */
static void
miss_stored(void *arg, const struct fsm_result *res)
{
    struct leader *l = arg;

    if (res != NULL && res->node != NULL && !str_eq(res->node->status, NODE_DOWN))
        leader_heartbeat(l, res->node->id);
}

static void
beat_missed(void *arg, const char *node_id)
{
    struct leader *l = arg;
    auto_mem void *tmp = mem_ctx("beat_missed");
    char id[UUID_TEXT];
    const char *ids[] = {env_id(l->env, id)};
    struct state_txn *t = server_read_begin(l->s, tmp);
    struct intent_node_status st = {.node_id = node_id,
                                    .status = NODE_DOWN,
                                    .reason = "heartbeat missed",
                                    .eval_ids = {ids, 1},
                                    .seen_index = state_applied(t)};
    struct intent in = {.time = env_wall_ns(l->env), .node_status = &st};

    state_read_end(t);
    log_warn("heartbeat", "node missed its heartbeat", "node_id", node_id, NULL);
    owed_add(l->owed, codec_clone(NULL, &type_intent, &in), node_id, miss_stored, l);
}

bool
leader_node_heard(struct leader *l, const char *node_id)
{
    return owed_cancel(l->owed, node_id);
}

int64_t
leader_heartbeat(struct leader *l, const char *node_id)
{
    return l->on ? heartbeats_reset(l->beats, node_id) : 0;
}

void
leader_node_gone(struct leader *l, const char *node_id)
{
    heartbeats_remove(l->beats, node_id);
    owed_cancel(l->owed, node_id);
}

/* --- the row --- */

static void
row_init(struct leader *l)
{
    const struct server_config *c = server_cfg(l->s);
    struct heartbeat_config hc = {
        .min_ms = c->heartbeat_min_ms,
        .grace_ms = c->heartbeat_grace_ms,
        .failover_ms = c->failover_ttl_ms,
        .per_second = c->max_heartbeats_per_s,
    };

    l->beats = heartbeats_new(l, l->env, &hc, beat_missed, l);
}

struct known {
    struct leader *l;
    struct str_list nodes;
};

static void
known_loop(void *arg)
{
    struct known *k = arg;

    for (size_t i = 0; k->l->on && i < k->nodes.n; i++)
        heartbeats_failover(k->l->beats, k->nodes.v[i]);
    talloc_free(k);
}

static void
row_on_leader(struct leader *l, struct state_txn *t)
{
    struct known *k = mem_new(NULL, struct known);

    (void)t;
    k->l = l;
    for (size_t i = 0; i < l->live->nodes->n; i++) {
        const struct node_facts *f = l->live->nodes->facts[i];
        if (f != NULL && !str_eq(f->node->status, NODE_DOWN))
            list_add(k, k->nodes, mem_strdup(k, f->node->id));
    }
    env_post(l->env, known_loop, k);
}

static void
row_end(struct leader *l)
{
    heartbeats_clear(l->beats);
}

const struct controller alive_row = {.init = row_init, .on_leader = row_on_leader, .end = row_end};
