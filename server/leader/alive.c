/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes are alive: their heartbeat timers (heartbeat.h) and what follows when one is missed.
 */
#include "api/terms.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/uuid.h"
#include "server/leader/leader_int.h"

enum { MISSED_PER_ENTRY = 128 };

/* A node that is not down has a timer; who was heard meanwhile has one from then. */
static void
miss_stored(void *arg, const struct fsm_result *res)
{
    struct leader *l = arg;

    if (res == NULL)
        return;
    FSM_EACH(res, NODES, STORED, n)
        if (!str_eq(n->status, NODE_DOWN))
            leader_heartbeat(l, n->id);
}

/* One entry: jobs are looked at once, when all these nodes are gone. */
static void
miss_some(struct leader *l, uint64_t seen, const struct str_list *nodes)
{
    char id[UUID_TEXT];
    const char *ids[] = {env_id(l->env, id)};
    struct intent_node_status st = {.node_id = nodes->v[0],
                                    .status = NODE_DOWN,
                                    .reason = "heartbeat missed",
                                    .eval_ids = {ids, 1},
                                    .seen_index = seen,
                                    .node_ids = {nodes->v + 1, nodes->n - 1}};
    struct intent in = {.node_status = &st};

    for (size_t i = 0; i < nodes->n; i++)
        log_warn("heartbeat", "node missed its heartbeat", "node_id", nodes->v[i], NULL);
    debts_add(l->debts, codec_clone(NULL, &type_intent, &in), nodes, miss_stored, l);
}

static void
beats_missed(void *arg, const struct str_list *nodes)
{
    struct leader *l = arg;
    auto_mem void *tmp = mem_ctx("beats_missed");
    struct state_txn *t = server_read_begin(l->s, tmp);
    uint64_t seen = state_applied(t);

    state_read_end(t);
    for (size_t i = 0; i < nodes->n; i += MISSED_PER_ENTRY) {
        size_t n = nodes->n - i;
        struct str_list some = {nodes->v + i, n < MISSED_PER_ENTRY ? n : MISSED_PER_ENTRY};
        miss_some(l, seen, &some);
    }
}

bool
leader_node_heard(struct leader *l, const char *node_id)
{
    return debts_cancel(l->debts, node_id);
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
    debts_cancel(l->debts, node_id);
}

/* --- the row --- */

static void
row_init(struct leader *l)
{
    const struct agent_server *a = server_cfg(l->s)->agent;
    struct heartbeat_config hc = {
        .min_ms = a->min_heartbeat_ttl / NS_PER_MS,
        .grace_ms = a->heartbeat_grace / NS_PER_MS,
        .failover_ms = a->failover_heartbeat_ttl / NS_PER_MS,
        .per_second = (int64_t)a->max_heartbeats_per_second,
    };

    l->beats = heartbeats_new(l, l->env, &hc, beats_missed, l);
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
