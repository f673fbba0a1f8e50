/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/identity.h"

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"

struct node_claims { /* a talloc context */
    struct ground *g;
    struct node_identity *now; /* NULL: none yet */
    int64_t renew_ns;          /* clock_civil_ns() from which it is signed anew */
};

struct claims_wish { /* a talloc context */
    struct node_claims *n;
    client_identity_done *done;
    void *arg;
    struct err e;
};

struct node_claims *
node_claims_new(struct ground *g)
{
    struct node_claims *n = mem_new(g, struct node_claims);
    n->g = g;
    return n;
}

static int64_t
claims_number(const struct value *claims, const char *name)
{
    const struct value *v = value_get(claims, name);
    return v != NULL && v->kind == VALUE_INT ? v->i : 0;
}

static void
claims_take(struct node_claims *n, const struct node_identity *resp)
{
    int64_t from = claims_number(resp->claims, "iat"), to = claims_number(resp->claims, "exp");
    mem_free(n->now);
    n->now = codec_clone(n, &type_node_identity, resp);
    n->renew_ns = (to - (to - from) / 3) * NS_PER_S;
}

static void
claims_on_answer(void *arg, const struct err *e, const void *resp)
{
    struct claims_wish *w = arg;
    struct node_claims *n = w->n;
    if (e == NULL && !n->g->stopping)
        claims_take(n, resp);
    w->done(w->arg, e, n->now);
    hold_release(&n->g->hold);
    talloc_free(w);
}

/* Tells of what is there, never from inside the call that asked. */
static void
claims_on_turn(void *arg)
{
    struct claims_wish *w = arg;
    struct node_claims *n = w->n;
    w->done(w->arg, NULL, n->now);
    hold_release(&n->g->hold);
    talloc_free(w);
}

void
node_claims_get(struct node_claims *n, bool renew, client_identity_done *done, void *arg)
{
    struct ground *g = n->g;
    struct claims_wish *w = mem_new(NULL, struct claims_wish);
    struct rpc_envelope env = ground_proof(g);
    struct empty none = {0};
    *w = (struct claims_wish){.n = n, .done = done, .arg = arg};
    hold_take(&g->hold);
    if (n->now != NULL && !renew && clock_civil_ns() < n->renew_ns) {
        loop_post(g->loop, claims_on_turn, w);
        return;
    }
    const struct rpc_request r = {.id = RPC_NODE_SIGN_IDENTITY, .req = &none, .env = &env};
    (void)rpc_send(g->rpc, &r, claims_on_answer, w);
}
