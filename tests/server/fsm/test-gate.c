/* SPDX-License-Identifier: Apache-2.0
 *
 * Exhaustion: the functions of the state machine, driven through every order of what can happen to
 * one node with two allocations, and another one that goes together with it: registrations (the
 * same, another one, with another secret), heartbeats, reports (of both, of one, of a failure, of
 * somebody else's), the timer, its miss (now, later, never since the leader has changed), the
 * scheduler, at once or with a plan that comes to the log later, the end of lost_after, and a node
 * pool that is not there yet. States are told apart by what the rules look at; from each one
 * everything is tried, until there are no new ones. Before and behind each entry all rules of
 * doc/reconnect.md 1.13 that bind the state machine are held against it, as they are written there
 * and not as the code has them.
 *
 * `make mutants` breaks the code in a line, one at a time, and this test has to say so.
 */
#include <stdio.h>
#include <string.h>

#include "api/away.h"
#include "common/hash.h"
#include "common/str.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

enum { PATH_MAX_LEN = 48, STATES_MAX = 1000000 };
#define LOST_AFTER (60 * NS_PER_S) /* of patient_job() */

enum event {
    RG,         /* registers as it was */
    RG_OTHER,   /* with other metadata each time */
    RG_POOL,    /* into another pool, in a region that does not make pools */
    RG_THIEF,   /* with another secret: refused */
    HB,         /* a heartbeat */
    HB_INIT,    /* that asks to be initializing */
    UA_BOTH,    /* reports both as running */
    UA_A,       /* one */
    UA_P,       /* the other */
    UA_FAILED,  /* a has failed */
    UA_FOREIGN, /* names one of another node: refused */
    EXPIRE,     /* the timer runs out: the leader has decided that it is missed */
    MISS,       /* that comes to the log */
    MISS_BOTH,  /* with that of another node, which went together with it */
    LEADER,     /* it does not: another server leads */
    EV,         /* the scheduler does what is pending */
    PLAN,       /* it plans */
    LET_GO,     /* what it planned comes to the log */
    TIME,       /* lost_after goes by */
    HB_OTHER,   /* the other node heartbeats */
    POOL_MADE,  /* the one that RG_POOL names */
    EVENTS
};
static const char *const names[] = {
    "RG",  "RG'",    "RG(pool)",  "RG!",  "HB",        "HB-init", "UA", "UA(a)", "UA(p)", "UA(a failed)",
    "UA!", "expire", "MISS", "MISS both", "leader",  "EV", "plan", "let go", "time",  "HB2", "pool made"};

/* The part of the state that the rules look at. */
struct view {
    char status[16];
    uint64_t lmh, lau;
    bool eligible;
    struct {
        bool there, wanted, unknown, pending, running, ended;
        bool recorded;  /* its last record is "unknown" */
        int64_t since;  /* of that */
        size_t records;
        uint64_t server_index, written;
    } al[2]; /* a, p */
    uint64_t node_written;
    size_t evals[2];   /* pending, not delayed; of the job of a, of p */
    size_t of_node[2]; /* of these because of the node */
    char other[16];    /* the status of the other node, on which nothing lives */
    size_t delayed;  /* of the job of a */
    bool waits; /* the pool of the node is not there */
    uint64_t hash;   /* of all rows */
};

/* The part that is not in the state: the leader's and the world's. */
struct world {
    struct fx *f;
    struct state_txn *t;
    void *ctx;
    uint64_t index;
    int64_t now;
    uint64_t missed_at; /* the index when the timer ran out; 0: it has not */
    bool heard;         /* since then */
    bool heard_other;
    unsigned times;
    struct planned {
        struct intent *plan, *up; /* NULL: nothing is planned */
        const char *client;       /* what the plan makes of it; ALLOC_RUNNING: its return is settled */
        int64_t since;            /* of the silence that the plan knew of */
    } planned[2]; /* for a, p */
    struct fsm_result *res;
    const char *rule; /* that was broken; NULL: none */
    bool changed;     /* a row, by the last step */
};

struct known {
    char key[256];
    uint8_t path[PATH_MAX_LEN];
    uint8_t len;
    UT_hash_handle hh;
};

/* --- reading --- */

static void
look(struct world *w, struct view *v)
{
    static const char *const ids[] = {"a", "p"}, *const jobs[] = {"web", "api"};
    const struct node *n = state_node(w->t, w->ctx, "n1");
    memset(v, 0, sizeof(*v));
    ck_assert(str_copy(v->status, sizeof(v->status), n->status));
    ck_assert(str_copy(v->other, sizeof(v->other), state_node(w->t, w->ctx, "n2")->status));
    v->lmh = n->last_missed_heartbeat_index;
    v->lau = n->last_alloc_update_index;
    v->eligible = str_eq(n->scheduling_eligibility, NODE_ELIGIBLE);
    v->node_written = n->modify_index;
    v->waits = state_node_pool(w->t, w->ctx, n->node_pool) == NULL;
    for (int i = 0; i < 2; i++) {
        const struct allocation *a = state_alloc(w->t, w->ctx, ids[i]);
        v->al[i].there = a != NULL;
        v->al[i].wanted = str_eq(a->desired_status, ALLOC_DESIRED_RUN);
        v->al[i].unknown = str_eq(a->client_status, ALLOC_UNKNOWN);
        v->al[i].pending = str_eq(a->client_status, ALLOC_PENDING);
        v->al[i].running = str_eq(a->client_status, ALLOC_RUNNING);
        v->al[i].ended = alloc_client_terminal(a);
        v->al[i].records = a->alloc_states.n;
        v->al[i].server_index = a->alloc_modify_index;
        v->al[i].written = a->modify_index;
        if (a->alloc_states.n > 0) {
            const struct alloc_state *s = a->alloc_states.v[a->alloc_states.n - 1];
            v->al[i].recorded = str_eq(s->value, ALLOC_UNKNOWN);
            v->al[i].since = s->time;
        }
        struct state_iter *it = state_evals_by_job(w->t, w->ctx, "default", jobs[i]);
        for (struct evaluation *e; (e = state_next(it, w->ctx)) != NULL;) {
            bool pending = str_eq(e->status, EVAL_PENDING), later = e->wait_until > w->now;
            v->evals[i] += pending && !later;
            v->of_node[i] +=
                pending && str_eq(e->triggered_by, TRIGGER_NODE_UPDATE) && str_eq(e->node_id, "n1");
            v->delayed += pending && str_eq(e->triggered_by, TRIGGER_MAX_DISCONNECT);
        }
    }
    v->hash = hash_state(w->t);
}

static bool
live(const struct view *v, int i)
{
    return v->al[i].wanted && !v->al[i].ended;
}

static bool
responsive(const struct view *v)
{
    return str_eq(v->status, NODE_READY) || str_eq(v->status, NODE_INIT);
}

/* 1.8: an allocation that is to run, whose group has lost_after, and whose time is not over. */
static bool
waits(const struct view *v, int64_t now)
{
    if (!live(v, 0))
        return false;
    return !v->al[0].unknown || (v->al[0].recorded && now - v->al[0].since < LOST_AFTER);
}

static bool
gate_open(const struct view *v)
{
    if (!live(v, 0) && !live(v, 1))
        return true;
    bool unknown = (live(v, 0) && v->al[0].unknown) || (live(v, 1) && v->al[1].unknown);
    return v->lau > v->lmh && !unknown;
}

/* --- what happens --- */

static struct fsm_result *
enter(struct world *w, struct intent *in)
{
    in->time = ++w->now; /* no two entries are of one moment */
    w->res = fsm_apply(w->ctx, w->t, ++w->index, in);
    state_set_applied(w->t, w->index, 1);
    return w->res;
}

static struct str_list
one_id(struct world *w)
{
    return strs(w->ctx, mem_printf(w->ctx, "ev-%llu", (unsigned long long)w->index), NULL);
}

static void
say_status_of(struct world *w, const char *node, const char *status, bool heard)
{
    struct intent *in = intent_new(w->ctx, 0);
    in->node_status = type_new(in, &type_intent_node_status);
    *in->node_status = (struct intent_node_status){
        .node_id = node, .status = status, .eval_ids = one_id(w), .heard = heard};
    enter(w, in);
}

/* Tells what the leader has missed. */
static void
say_missed(struct world *w, bool both)
{
    struct intent *in = intent_new(w->ctx, 0);
    in->node_status = type_new(in, &type_intent_node_status);
    *in->node_status = (struct intent_node_status){
        .node_id = "n1", .status = NODE_DOWN, .eval_ids = one_id(w), .seen_index = w->missed_at};
    if (both)
        in->node_status->node_ids = strs(in, "n2", "nobody");
    enter(w, in);
}

static void
say_register(struct world *w, const char *meta, const char *secret, const char *pool)
{
    struct intent *in = intent_new(w->ctx, 0);
    in->node_register = type_new(in, &type_intent_node_register);
    struct node *n = make_node(in, "n1");
    n->secret_id = secret != NULL ? secret : n->secret_id;
    n->node_pool = pool;
    if (meta != NULL)
        str_map_set(n, &n->meta, "v", meta);
    n->status = NODE_READY; /* whatever it claims */
    n->last_alloc_update_index = 1 << 20;
    *in->node_register = (struct intent_node_register){
        .node = n, .eval_ids = one_id(w), .pool_elsewhere = true};
    enter(w, in);
}

static void
say_pool(struct world *w)
{
    struct intent *in = intent_new(w->ctx, 0);
    struct node_pool *p = type_new(in, &type_node_pool);
    p->name = state_node(w->t, w->ctx, "n1")->node_pool;
    in->node_pool_upsert = type_new(in, &type_node_pool_upsert);
    list_add(in, in->node_pool_upsert->node_pools, p);
    enter(w, in);
}

static void
say_allocs(struct world *w, const char *x, const char *y, const char *status)
{
    struct intent *in = intent_new(w->ctx, 0);
    in->alloc_update = type_new(in, &type_intent_alloc_update);
    in->alloc_update->node_id = "n1";
    in->alloc_update->eval_ids = one_id(w);
    for (int i = 0; i < 2; i++) {
        const char *id = i == 0 ? x : y;
        const struct allocation *old = id != NULL ? state_alloc(w->t, w->ctx, id) : NULL;
        if (old == NULL)
            continue;
        struct allocation *a = type_new(in, &type_allocation);
        a->id = id;
        /* an end stays one, on a client too */
        a->client_status = str_eq(old->client_status, ALLOC_FAILED) ? ALLOC_FAILED : status;
        list_add(in, in->alloc_update->allocs, a);
    }
    enter(w, in);
}

static struct allocation *
row(struct world *w, const struct allocation *a, const char *desired, const char *client)
{
    struct allocation *s = type_new(w->ctx, &type_allocation);
    struct alloc_state *seen = type_new(s, &type_alloc_state);
    s->id = a->id;
    s->namespace = a->namespace;
    s->job_id = a->job_id;
    s->node_id = a->node_id;
    s->name = a->name;
    s->task_group = a->task_group;
    s->desired_status = desired;
    s->client_status = client;
    seen->field = "ClientStatus";
    seen->value = a->client_status;
    seen->time = alloc_recorded(a, ALLOC_UNKNOWN);
    list_add(s, s->alloc_states, seen);
    return s;
}

static const char *
timeout_eval(struct world *w, const struct allocation *a)
{
    const struct job *j = state_job(w->t, w->ctx, "default", a->job_id);
    struct evaluation *e =
        make_eval(w->ctx, j, mem_printf(w->ctx, "timeout-%llu", (unsigned long long)w->index));
    e->triggered_by = TRIGGER_MAX_DISCONNECT;
    e->wait_until = w->now + LOST_AFTER;
    struct intent *in = intent_new(w->ctx, 0);
    in->eval_update = type_new(in, &type_intent_eval_update);
    list_add(in, in->eval_update->evals, e);
    enter(w, in);
    return e->id;
}

/* Plans as the scheduler does for one allocation: stops or marks it, or settles a return. */
static void
schedule(struct world *w, const struct view *v, int i, struct plan_result *p)
{
    const struct allocation *a = state_alloc(w->t, w->ctx, i == 0 ? "a" : "p");
    bool silent = !responsive(v), down = str_eq(v->status, NODE_DOWN);
    if (!live(v, i))
        return;
    bool expired = i == 0 && v->al[0].unknown && v->al[0].recorded && w->now - v->al[0].since >= LOST_AFTER;
    if (i == 0 && v->al[0].running && str_eq(v->status, NODE_DISCONNECTED)) {
        list_add(w->ctx, p->stopped, row(w, a, NULL, ALLOC_UNKNOWN));
        p->stopped.v[0]->followup_eval_id = timeout_eval(w, a);
    } else if (expired || down || (silent && !(i == 0 && v->al[0].unknown && v->al[0].recorded))) {
        list_add(w->ctx, p->stopped, row(w, a, ALLOC_DESIRED_STOP, ALLOC_LOST));
    } else if (v->al[i].running && v->al[i].recorded) {
        list_add(w->ctx, p->placed, row(w, a, NULL, ALLOC_RUNNING));
    }
}

/* For the evaluations of a job that are pending and due. */
static void
plan_job(struct world *w, const struct view *v, int i)
{
    const char *job = i == 0 ? "web" : "api";
    struct planned *k = &w->planned[i];
    struct intent *plan = intent_new(w->ctx, 0), *up = intent_new(w->ctx, 0);
    struct plan_result *p = plan->plan_result = type_new(plan, &type_plan_result);
    struct state_iter *it = state_evals_by_job(w->t, w->ctx, "default", job);

    up->eval_update = type_new(up, &type_intent_eval_update);
    p->snapshot_index = w->index;
    for (struct evaluation *e; (e = state_next(it, w->ctx)) != NULL;)
        if (str_eq(e->status, EVAL_PENDING) && e->wait_until <= w->now) {
            p->eval_id = e->id;
            e->status = EVAL_COMPLETE;
            list_add(up, up->eval_update->evals, e);
        }
    p->job = state_job(w->t, w->ctx, "default", job);
    *k = (struct planned){plan, up, NULL, v->al[i].recorded ? v->al[i].since : 0};
    schedule(w, v, i, p);
    if (p->stopped.n + p->placed.n > 0)
        k->client = p->stopped.n > 0 ? p->stopped.v[0]->client_status : ALLOC_RUNNING;
}

static void
let_go(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        struct planned k = w->planned[i];
        w->planned[i] = (struct planned){0};
        if (k.client != NULL)
            enter(w, k.plan);
        if (k.up != NULL)
            enter(w, k.up);
    }
}

/* Every evaluation that is pending and due. */
static void
plan_all(struct world *w)
{
    struct view v;
    look(w, &v);
    for (int i = 0; i < 2; i++)
        if (v.evals[i] > 0)
            plan_job(w, &v, i);
}

static bool
plans(const struct world *w)
{
    return w->planned[0].plan != NULL || w->planned[1].plan != NULL;
}

static bool
possible(const struct world *w, const struct view *v, enum event e)
{
    if (plans(w) && e != HB && e != UA_BOTH && e != UA_A && e != EXPIRE && e != MISS && e != LET_GO)
        return false; /* fewer states: what comes between is that the node is back, or away */
    switch (e) {
    case EXPIRE: /* who is down has no timer; the other one comes back first: fewer states */
        return w->missed_at == 0 && !str_eq(v->status, NODE_DOWN) && str_eq(v->other, NODE_READY);
    case MISS:
    case LEADER: return w->missed_at != 0;
    case MISS_BOTH: return w->missed_at != 0 && w->times == 0 && !v->waits; /* fewer states */
    case HB_OTHER:
        return (w->missed_at != 0 && w->times == 0 && !w->heard_other && !v->waits) ||
               !str_eq(v->other, NODE_READY);
    case EV: return v->evals[0] + v->evals[1] > 0;
    case PLAN: /* fewer states */
        return v->evals[0] + v->evals[1] > 0 && str_eq(v->other, NODE_READY) && !v->waits && !v->al[0].ended;
    case LET_GO: return plans(w);
    case TIME: return w->times < 2 && str_eq(v->other, NODE_READY) && !v->waits;
    case RG_POOL: /* fewer states */
        return w->times == 0 && w->missed_at == 0 && str_eq(v->other, NODE_READY);
    case POOL_MADE: return v->waits;
    default: return true;
    }
}

static void
happen(struct world *w, enum event e)
{
    w->res = NULL;
    switch (e) {
    case RG: say_register(w, NULL, NULL, POOL_DEFAULT); break;
    case RG_OTHER:
        say_register(w, mem_printf(w->ctx, "%llu", (unsigned long long)w->index), NULL, POOL_DEFAULT);
        break;
    case RG_POOL:
        say_register(w, NULL, NULL, mem_printf(w->ctx, "pool-%llu", (unsigned long long)w->index));
        break;
    case RG_THIEF: say_register(w, NULL, "stolen", POOL_DEFAULT); break;
    case HB: say_status_of(w, "n1", NODE_READY, w->missed_at != 0); break;
    case HB_INIT: say_status_of(w, "n1", NODE_INIT, w->missed_at != 0); break;
    case HB_OTHER: say_status_of(w, "n2", NODE_READY, w->missed_at != 0); break;
    case UA_BOTH: say_allocs(w, "a", "p", ALLOC_RUNNING); break;
    case UA_A: say_allocs(w, "a", NULL, ALLOC_RUNNING); break;
    case UA_P: say_allocs(w, NULL, "p", ALLOC_RUNNING); break;
    case UA_FAILED: say_allocs(w, "a", NULL, ALLOC_FAILED); break;
    case UA_FOREIGN: say_allocs(w, "a", "x", ALLOC_RUNNING); break;
    case EXPIRE: w->missed_at = w->index; break;
    case MISS:
    case MISS_BOTH: say_missed(w, e == MISS_BOTH); break;
    case LEADER: break;
    case EV:
        plan_all(w);
        let_go(w);
        break;
    case PLAN: plan_all(w); break;
    case LET_GO: let_go(w); break;
    case TIME:
        w->now += LOST_AFTER;
        w->times++;
        break;
    case POOL_MADE: say_pool(w); break;
    case EVENTS: break;
    }
}

/* --- the rules --- */

#define RULE(cond, text)     \
    do {                     \
        if (!(cond))         \
            return text;     \
    } while (0)

static bool
is(const struct view *v, const char *status)
{
    return str_eq(v->status, status);
}

/* S4, S18, secrets: what is refused changes nothing. */
static const char *
check_refusals(const struct world *w, const struct view *was, const struct view *now, enum event e)
{
    bool ua = e >= UA_BOTH && e <= UA_FOREIGN, refused = w->res->err.code != 0;
    RULE(!refused || was->hash == now->hash, "what was refused changed the state");
    RULE(e != RG_THIEF || refused, "S2: another secret was taken");
    RULE(e != UA_FOREIGN || refused, "S18: an allocation of another node was taken");
    RULE(!ua || e == UA_FOREIGN || refused == !responsive(was), "S4: reports are for responsive nodes alone");
    return NULL;
}

static const char *
check_indexes(const struct world *w, const struct view *was, const struct view *now, enum event e)
{
    bool stamped = responsive(was) && !responsive(now), ready = is(now, NODE_READY) && !is(was, NODE_READY);
    bool ua = e >= UA_BOTH && e <= UA_FAILED && w->res->err.code == 0;
    RULE(now->lmh == (stamped ? w->index : ready ? 0 : was->lmh), "S5: LastMissedHeartbeatIndex");
    RULE(now->lau == (ua ? w->index : was->lau), "S5: LastAllocUpdateIndex");
    RULE(e > RG_POOL || (str_eq(was->status, now->status) && now->eligible),
         "S2: a registration wrote status");
    return NULL;
}

/* The next status by the rules alone. */
static const char *
next_status(const struct world *w, const struct view *v, enum event e)
{
    bool any = live(v, 0) || live(v, 1);
    if ((e == MISS || e == MISS_BOTH) && !w->heard) /* S9, S12 */
        return is(v, NODE_DOWN) ? NODE_DOWN : waits(v, w->now) ? NODE_DISCONNECTED : NODE_DOWN;
    if (e == HB && is(v, NODE_INIT))
        return gate_open(v) && !v->waits ? NODE_READY : NODE_INIT; /* S6 */
    if (e == HB && is(v, NODE_DOWN) && !any)
        return v->waits ? NODE_INIT : NODE_READY; /* S10 */
    if ((e == HB && !is(v, NODE_READY)) || e == HB_INIT)
        return NODE_INIT;
    return v->status;
}

/* Nothing lives there. */
static const char *
other_status(const struct world *w, const struct view *v, enum event e)
{
    if (e == MISS_BOTH && !w->heard_other)
        return NODE_DOWN;
    return e == HB_OTHER ? NODE_READY : v->other;
}

static const char *
check_status(const struct world *w, const struct view *was, const struct view *now, enum event e)
{
    bool returns = !responsive(was) && is(now, NODE_INIT), leaves = responsive(was) && !responsive(now);
    RULE(str_eq(now->status, next_status(w, was, e)), "S1, S6, S9, S10, S12: the next status");
    RULE(e != MISS || !w->heard || was->hash == now->hash, "S12: a void miss changed the state");
    RULE(str_eq(now->other, other_status(w, was, e)),
         "S12: each of those that went together by itself");
    for (int i = 0; i < 2 && e == MISS_BOTH; i++)
        RULE(now->evals[i] <= was->evals[i] + 1,
             "a job has more than one evaluation for what went together");
    for (int i = 0; i < 2 && (e == HB || e == HB_INIT || e == HB_OTHER); i++)
        RULE(now->evals[i] > 0 || was->evals[i] == 0, "S12: nobody looks any more");
    for (int i = 0; i < 2 && returns; i++) {
        RULE(!live(was, i) || now->al[i].unknown, "S7: not everything is to be reported again");
        RULE(!live(was, i) || was->al[i].unknown || now->al[i].server_index == w->index,
             "S7: a client would not see it");
        RULE(i == 0 || now->al[i].records == was->al[i].records, "S7: a record without lost_after");
        RULE(i == 1 || !live(was, i) || was->al[i].unknown ||
                 (now->al[i].recorded && now->al[i].since == w->now),
             "S17: from when its time runs");
    }
    bool moved = leaves || (is(was, NODE_DISCONNECTED) && !is(now, NODE_DISCONNECTED)) ||
                 (is(now, NODE_READY) && !is(was, NODE_READY));
    for (int i = 0; i < 2 && moved && e != EV; i++)
        RULE(was->al[i].ended || now->evals[i] > 0, "S11: a change of status without its evaluations");
    return NULL;
}

static const char *
check_allocs(const struct world *w, const struct view *was, const struct view *now, enum event e)
{
    for (int i = 0; i < 2; i++) {
        RULE(now->al[i].records >= was->al[i].records, "2.2: a record went");
        RULE(!now->al[i].wanted || was->al[i].wanted, "an allocation that was stopped is wanted again");
        RULE(!(was->al[i].ended && !now->al[i].ended) || (e >= UA_BOTH && e <= UA_FAILED),
             "what ended lives");
        RULE(e == EV || e == LET_GO || (e >= UA_BOTH && e <= UA_FAILED) ||
                 was->al[i].wanted == now->al[i].wanted,
             "S1: nobody asked to stop it");
    }
    /* S19: nothing is left of an absence that is over */
    RULE((live(now, 0) && now->al[0].unknown) || now->delayed == 0 || plans(w),
         "S19: a delayed evaluation is left");
    return NULL;
}

/* S12: what a miss began and nobody has acted upon yet is cancelled by the heartbeat: of each job one
 * evaluation is left, that of the heartbeat. */
static const char *
check_cancelled(const struct view *was, const struct view *now, enum event e)
{
    bool returns = !responsive(was) && responsive(now);
    for (int i = 0; i < 2 && returns && (e == HB || e == HB_INIT); i++)
        RULE(now->of_node[i] <= 1, "S12: evaluations of the miss are left");
    return NULL;
}

/* S13: what has changed since the plan's snapshot is not marked, nor what is on a node that did; a
 * return is settled of the silence that was known; and what holds is done. */
static const char *
check_plan(const struct planned *k, const struct view *was, const struct view *now, int i)
{
    if (k->client == NULL)
        return NULL;
    uint64_t snapshot = k->plan->plan_result->snapshot_index;
    bool marks = !str_eq(k->client, ALLOC_RUNNING);
    bool newer = was->al[i].written > snapshot || (marks && was->node_written > snapshot);
    bool same = was->al[i].recorded && was->al[i].running && was->al[i].since == k->since &&
                responsive(was);
    RULE(!marks || !newer || now->al[i].written == was->al[i].written,
         "S13: an allocation is marked that changed after the plan's snapshot");
    RULE(marks || same || now->al[i].records == was->al[i].records,
         "S13: a return is settled that nobody has looked at");
    RULE(!marks || newer || now->al[i].written > was->al[i].written || now->evals[i] != was->evals[i],
         "S13: a mark was dropped for nothing");
    RULE(marks || !same || now->al[i].records > was->al[i].records || now->evals[i] == was->evals[i],
         "S13: a return is not settled");
    return NULL;
}

static const char *
check(const struct world *w, const struct view *was, const struct view *now, enum event e)
{
    const char *rule = NULL;
    if (w->res == NULL) /* nothing came to the log */
        return NULL;
    if (e != EV && e != PLAN && e != LET_GO) {
        rule = check_refusals(w, was, now, e);
        rule = rule != NULL ? rule : check_indexes(w, was, now, e);
        rule = rule != NULL ? rule : check_status(w, was, now, e);
        rule = rule != NULL ? rule : check_cancelled(was, now, e);
    }
    return rule != NULL ? rule : check_allocs(w, was, now, e);
}

/* --- one event, with its judgement --- */

/* Notes what the leader knows of it afterwards. */
static void
note(struct world *w, enum event e)
{
    bool hb = e == HB || e == HB_INIT;
    if (w->missed_at != 0 && (hb || (e <= RG_POOL && w->res->err.code == 0)))
        w->heard = true;
    w->heard_other |= w->missed_at != 0 && e == HB_OTHER;
    if (e == MISS || e == MISS_BOTH || e == LEADER) {
        w->missed_at = 0;
        w->heard = w->heard_other = false;
    }
}

static void
step(struct world *w, enum event e, const struct view *was, struct view *ret_now)
{
    struct planned k[2];
    bool shut = fsm_gate_shut(w->t, w->ctx, "n1");
    memcpy(k, w->planned, sizeof(k));
    happen(w, e);
    look(w, ret_now);
    w->rule = check(w, was, ret_now, e);
    w->changed = was->hash != ret_now->hash;
    for (int i = 0; i < 2 && e == LET_GO && w->rule == NULL; i++)
        w->rule = check_plan(&k[i], was, ret_now, i);
    if (w->rule == NULL && e == HB && shut != (is(was, NODE_INIT) && is(ret_now, NODE_INIT)))
        w->rule = "a server would not write a heartbeat that matters, or write one that does not";
    note(w, e);
}

/* Writes the text that tells states apart. */
static void
told_apart(struct world *w, const struct view *v, char out[256])
{
    int n;
    n = snprintf(out, 256, "%s %s lmh%d lau%d m%d h%d%d t%u d%zu w%d", v->status, v->other, v->lmh != 0,
                 v->lau > v->lmh, w->missed_at != 0, w->heard, w->heard_other, w->times, v->delayed,
                 v->waits);
    for (int i = 0; i < 2; i++)
        n += snprintf(out + n, 256 - (size_t)n, " %d%d%d%d%d%d%d e%d", v->al[i].wanted, v->al[i].unknown,
                      v->al[i].pending, v->al[i].running, v->al[i].ended, v->al[i].recorded,
                      v->al[i].recorded && w->now - v->al[i].since >= LOST_AFTER, v->evals[i] > 0);
    for (int i = 0; i < 2; i++) {
        const struct planned *k = &w->planned[i];
        if (k->plan == NULL)
            continue;
        uint64_t snapshot = k->plan->plan_result->snapshot_index;
        const struct evaluation *ev = state_eval(w->t, w->ctx, k->plan->plan_result->eval_id);
        n += snprintf(out + n, 256 - (size_t)n, " %s%d%d%d%d", k->client != NULL ? k->client : "-",
                      v->al[i].written > snapshot, v->node_written > snapshot, v->al[i].since == k->since,
                      str_eq(ev->status, EVAL_PENDING));
    }
    ck_assert_int_lt(n, 256);
}

/* S7: with a healthy client the node is ready within three heartbeats. */
static void
check_return(struct world *w)
{
    struct view v;
    look(w, &v);
    if (v.waits)
        say_pool(w);
    for (int i = 0; i < 3; i++) {
        say_status_of(w, "n1", NODE_READY, true);
        say_allocs(w, "a", "p", ALLOC_RUNNING);
    }
    look(w, &v);
    if (!is(&v, NODE_READY))
        w->rule = "S7: three heartbeats and reports, and it is not ready";
}

static void
print_path(const struct known *k, enum event e, const char *rule)
{
    printf("# %s:", rule);
    for (size_t i = 0; i < k->len; i++)
        printf(" %s", names[k->path[i]]);
    printf(" %s\n", e < EVENTS ? names[e] : "(return)");
    fflush(stdout);
}

/* The state behind a path, in a transaction that is given up afterwards. */
static void
replay(struct world *w, struct fx *f, const struct known *k)
{
    *w = (struct world){.f = f, .ctx = mem_ctx("gate"), .index = f->index, .now = f->now};
    w->t = state_write_begin(f->s, w->ctx);
    for (size_t i = 0; i < k->len; i++) { /* judged when it was found */
        happen(w, k->path[i]);
        note(w, k->path[i]);
    }
}

static void
forget(struct world *w)
{
    state_abort(w->t);
    mem_free(w->ctx);
}

/* Goes back to the world before a step: at once where no row has changed, else by the whole path. */
static void
go_back(struct world *w, const struct world *before, const struct known *k)
{
    uint64_t index = w->index; /* of what was refused: none comes twice */
    if (w->changed) {
        forget(w);
        replay(w, before->f, k);
    } else {
        *w = *before;
        w->index = index;
    }
}

static struct fx *
begin(void)
{
    struct fx *f = fx_new();
    make_pools(f);
    ready_node(f, "n1");
    ready_node(f, "n2");
    struct job *web = patient_job(f, "web"), *api = make_job(f, "api", 1);
    put_job(f, web, NULL);
    put_job(f, api, NULL);
    place(f, make_alloc(f, web, "a", "n1"), NULL);
    place(f, make_alloc(f, api, "p", "n1"), NULL);
    place(f, make_alloc(f, web, "x", "n2"), NULL);
    report(f, "n2", "x", ALLOC_FAILED); /* it plays no part */
    struct intent *done = intent_new(f, 0);
    done->eval_update = type_new(done, &type_intent_eval_update);
    struct state_txn *t = state_read_begin(f->s, f);
    struct state_iter *it = state_evals(t, f, NULL);
    for (struct evaluation *e; (e = state_next(it, done)) != NULL;) {
        e->status = EVAL_COMPLETE;
        list_add(done, done->eval_update->evals, e);
    }
    state_read_end(t);
    apply(f, done);
    return f;
}

START_TEST(every_order_keeps_every_rule)
{
    struct fx *f = begin();
    struct known *all = NULL, **todo = mem_array(f, struct known *, STATES_MAX);
    size_t n = 0, steps = 0, longest = 0;
    struct known *first = mem_new(f, struct known);
    struct world w, before;
    struct view was, now;
    replay(&w, f, first);
    look(&w, &was);
    told_apart(&w, &was, first->key);
    forget(&w);
    HASH_ADD_STR(all, key, first);
    todo[n++] = first;
    for (size_t at = 0; at < n; at++) {
        const struct known *k = todo[at];
        longest = k->len > longest ? k->len : longest;
        replay(&w, f, k);
        look(&w, &was);
        for (enum event e = 0; e <= EVENTS; e++) {
            if (e < EVENTS && !possible(&w, &was, e))
                continue;
            before = w;
            steps++;
            e < EVENTS ? step(&w, e, &was, &now) : check_return(&w);
            if (w.rule != NULL)
                print_path(k, e, w.rule);
            ck_assert_ptr_null(w.rule);
            if (e == EVENTS)
                break;
            struct known *next = mem_new(f, struct known), *old = NULL;
            told_apart(&w, &now, next->key);
            go_back(&w, &before, k);
            HASH_FIND_STR(all, next->key, old);
            if (old != NULL) {
                mem_free(next);
                continue;
            }
            ck_assert_uint_lt(k->len, PATH_MAX_LEN);
            ck_assert_uint_lt(n, STATES_MAX);
            memcpy(next->path, k->path, sizeof(next->path));
            next->len = (uint8_t)(k->len + 1);
            next->path[k->len] = (uint8_t)e;
            HASH_ADD_STR(all, key, next);
            todo[n++] = next;
        }
        forget(&w);
    }
    printf("# %zu states, %zu steps, the longest way has %zu\n", n, steps, longest);
    ck_assert_uint_gt(n, 500); /* else something is not reached any more */
    HASH_CLEAR(hh, all);
    fx_free(f);
}
END_TEST

TEST_SUITE_TIMEOUT("fsm-gate", 600, every_order_keeps_every_rule)
