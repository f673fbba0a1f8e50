/* SPDX-License-Identifier: Apache-2.0
 *
 * Identities of the tasks of simulated clients: signed when the control socket asks for it, all at
 * once, one of each allocation that runs, as client/task/hook_identity.c asks for those that are to
 * be renewed.
 */
#include "bench/fleet/fleet.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/uuid.h"

enum { IDENTITIES_MAX = 256 }; /* of a request */

/* A request that was sent. */
struct signing {
    struct fleet *fleet;
    int64_t sent_ns;
    size_t n;
};

static void
on_signed(void *arg, const struct err *e, const void *resp)
{
    struct signing *x = arg;
    const struct alloc_identities_response *r = resp;
    struct stats *s = &x->fleet->stats;
    size_t n = e == NULL ? r->signed_.n : 0;

    s->signed_ += n;
    s->unsigned_ += x->n - n;
    hist_add(&s->signing, (clock_mono_ns() - x->sent_ns) / NS_PER_US);
    talloc_free(x);
}

static void
identities_ask(struct sim *s, const struct alloc_identities_request *req)
{
    struct signing *x = mem_new(NULL, struct signing);
    char id[UUID_TEXT], secret[UUID_TEXT];
    struct rpc_envelope env = {.stale = true, .node_id = id, .node_secret = secret};
    struct rpc_request r = {.id = RPC_ALLOC_SIGN_IDENTITIES, .req = req, .env = &env};

    sim_id(s, id);
    sim_secret(s, secret);
    *x = (struct signing){s->fleet, clock_mono_ns(), req->identities.n};
    rpc_send(sim_conn(s), &r, on_signed, x);
}

/* Returns how many identities it asks for. */
static size_t
sim_identities(struct sim *s)
{
    auto_mem void *ctx = mem_ctx("identities");
    struct alloc_identities_request req = {.identities = {NULL, 0}};
    size_t n = 0;

    for (uint32_t i = 0; i < s->n_allocs; i++) {
        const struct sim_alloc *a = s->allocs[i];
        if (a->state != RUN_RUNNING || a->group->tasks.n == 0)
            continue;
        struct identity_request *q = mem_new(ctx, struct identity_request);
        char *id = mem_array(ctx, char, UUID_TEXT);
        alloc_uuid(a, id);
        *q = (struct identity_request){.alloc_id = id, .task = a->group->tasks.v[0]};
        list_add(ctx, req.identities, q);
        n++;
        if (req.identities.n == IDENTITIES_MAX) {
            identities_ask(s, &req);
            req.identities.n = 0;
        }
    }
    if (req.identities.n > 0)
        identities_ask(s, &req);
    return n;
}

size_t
fleet_identities(struct fleet *f)
{
    size_t n = 0;

    for (int64_t i = 0; i < f->opt.nodes; i++)
        if (f->sims[i].state == SIM_ON)
            n += sim_identities(&f->sims[i]);
    return n;
}
