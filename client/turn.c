/* SPDX-License-Identifier: Apache-2.0 */
#include "client/turn.h"

#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"

enum { TURN_LEAST_MS = 200, TURN_MOST_MS = 2000 }; /* between two questions, twice as long each */

struct turn { /* a talloc context */
    struct ground *g;
    struct alloc_turn_request q;
    turn_granted *granted;
    void *arg;
    struct timer *timer;
    int64_t wait_ms;
    uint64_t call; /* is under way; 0: none */
    bool held;
    bool ended; /* nobody wants it any more */
};

static void turn_send(struct turn *t);

static void
turn_free(struct turn *t)
{
    struct ground *g = t->g;
    timer_stop(TAKE(t->timer));
    talloc_free(t);
    hold_release(&g->hold);
}

static void
on_again(void *arg)
{
    struct turn *t = arg;
    t->timer = NULL;
    turn_send(t);
}

static void
on_answer(void *arg, const struct err *e, const void *p)
{
    struct turn *t = arg;
    const struct alloc_turn_response *r = p;
    t->call = 0;
    if (t->ended && t->held && !t->q.over && !t->g->stopping) {
        t->q.over = true; /* what was asked for may be granted by now */
        turn_send(t);
    } else if (t->ended) {
        turn_free(t);
    } else if (e == NULL && r->granted) {
        t->held = true;
        t->granted(t->arg);
    } else {
        if (e != NULL)
            log_warn("client", "the servers give no turn to restart for a template", "alloc_id",
                     t->q.alloc_id, "task", t->q.task, "error", e->text, NULL);
        int64_t ms = t->wait_ms;
        t->wait_ms = 2 * ms > TURN_MOST_MS ? TURN_MOST_MS : 2 * ms;
        t->timer = timer_start(t->g->loop, ms + (int64_t)(rand_u64() % (uint64_t)ms), on_again, t);
    }
}

static void
turn_send(struct turn *t)
{
    const struct rpc_envelope env = ground_proof(t->g);
    const struct rpc_request r = {.id = RPC_ALLOC_TAKE_TURN, .req = &t->q, .env = &env};
    t->call = rpc_send(t->g->rpc, &r, on_answer, t);
}

struct turn *
turn_ask(const struct alloc_core *a, const char *task, turn_granted *granted, void *arg)
{
    struct turn *t = mem_new(NULL, struct turn);
    *t = (struct turn){.g = a->g, .granted = granted, .arg = arg, .wait_ms = TURN_LEAST_MS};
    t->q.alloc_id = mem_strdup(t, a->id);
    t->q.task = mem_strdup(t, task);
    hold_take(&t->g->hold);
    turn_send(t);
    return t;
}

bool
turn_is_granted(const struct turn *t)
{
    return t != NULL && t->held;
}

void
turn_end(struct turn *t)
{
    if (t == NULL)
        return;
    bool asks = t->call != 0;
    t->ended = true;
    if (asks) {
        t->held = true; /* perhaps */
        rpc_cancel(t->g->rpc, t->call);
    } else if (t->held && !t->g->stopping) {
        t->q.over = true;
        turn_send(t);
    } else {
        turn_free(t);
    }
}
