/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes: a row says what is written, on a snapshot, and what is answered (see endpoint_int.h). A write is
 * in one of these states:
 *
 *   PREPARING   a worker has it: it makes the intent and proposes it
 *   PROPOSED    the log has it
 *   WRITTEN     it is in the state, or it was refused: the call is answered
 *
 * The answer of the log may overtake the worker's return to the loop. What a worker made of a large job, a
 * worker frees.
 */
#include <stdatomic.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/num.h"
#include "server/hook.h"
#include "server/rpc/endpoint_int.h"

#define HEAVY_NS (NS_PER_MS / 2)

enum write_state { WRITE_PREPARING, WRITE_PROPOSED, WRITE_WRITTEN };

/* The machine around what the rows see. */
struct writing {
    struct write w;
    const struct write_row *row;
    struct gate *gate;
    enum write_state state;
    bool worker;           /* has not returned to the loop */
    bool heavy;            /* preparing took a while, and so will freeing */
    atomic_bool cancelled; /* nobody waits for the answer any more */
    /* of preparing, or of the log */
    struct err *err; /* NULL: none */
    uint64_t index;
    struct fsm_result *res;
};

static void written(void *arg, const struct err *e, uint64_t index, struct fsm_result *res);

/* --- preparing --- */

static void
propose_now(void *arg)
{
    struct writing *x = arg;

    server_propose(x->w.s, &x->w.in, HOME_LOOP, written, x);
}

static void
propose(struct writing *x)
{
    const struct test_go go = {x->w.s, false, propose_now, x};

    x->state = WRITE_PROPOSED;
    if (!test_hook_hold(rpc_call_method(x->w.call)->name, "propose", &type_intent, &x->w.in, &go))
        propose_now(x);
}

static void
refuse(struct writing *x, const struct err *e)
{
    x->state = WRITE_WRITTEN;
    x->err = mem_dup(x->w.ctx, e, sizeof(*e));
}

/* On a worker, or on the loop. Proposing comes last: the answer of the log may be there at once. */
static void
prepare(struct writing *x)
{
    struct err e = ERR_INIT;
    const struct env *env = server_env(x->w.s);
    int64_t begin = env_mono_ns(env);
    struct state_txn *t = state_read_begin(server_state(x->w.s), x->w.ctx);
    int rc = x->row->prepare(&x->w, t, &e);

    state_read_end(t);
    x->heavy |= env_mono_ns(env) - begin > HEAVY_NS;
    ASSERT((rc < 0) == (e.code != 0));
    if (rc == 0 && x->w.resp == NULL && atomic_load(&x->cancelled))
        rc = err_set(&e, -ERR_CANCELED, "canceled");
    if (rc < 0)
        refuse(x, &e);
    else if (x->w.resp != NULL)
        x->state = WRITE_WRITTEN;
    else
        propose(x);
}

static void
prepare_work(void *arg)
{
    struct writing *x = arg;
    struct gate *g = x->gate;
    struct err e = ERR_INIT;

    if (!gate_enter(g)) {
        err_set(&e, -ERR_UNAVAILABLE, "the server is stopping");
        refuse(x, &e);
        return;
    }
    prepare(x); /* once it is proposed it is the loop's */
    gate_leave(g);
}

/* --- answering --- */

static void
free_work(void *arg)
{
    talloc_free(arg);
}

static void
free_done(void *arg)
{
    (void)arg;
}

static void
write_end(void *arg)
{
    struct writing *x = arg;
    void *ctx = x->w.ctx;
    bool closed = gate_is_closed(x->gate); /* then the server may be gone */
    const struct env *env = x->heavy && !closed ? server_env(x->w.s) : NULL;

    gate_unref(x->gate);
    rpc_call_on_cancel(x->w.call, NULL, NULL);
    /* `x` is memory of `ctx`, which the answer refers to */
    if (x->err != NULL)
        rpc_fail(x->w.call, x->err);
    else if (x->w.resp != NULL)
        rpc_reply(x->w.call, x->w.resp);
    else
        x->row->reply(&x->w, x->index, x->res);
    if (env != NULL)
        env_work(env, free_work, free_done, ctx);
    else
        talloc_free(ctx);
}

static void write_begin(struct writing *x);

/* On the loop, when something has come to an end. */
static void
write_step(struct writing *x)
{
    if (x->worker || x->state != WRITE_WRITTEN)
        return;
    if (x->err == NULL && x->w.resp == NULL && x->row->again != NULL && x->row->again(&x->w)) {
        x->w.barrier = x->index;
        x->w.in = (struct intent){0};
        write_begin(x);
        return;
    }
    const struct test_go go = {x->w.s, false, write_end, x};
    if (x->res == NULL || x->err != NULL ||
        !test_hook_hold(rpc_call_method(x->w.call)->name, "reply", &type_intent, &x->w.in, &go))
        write_end(x);
}

static void
prepared(void *arg)
{
    struct writing *x = arg;

    x->worker = false;
    write_step(x);
}

static void
written(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct writing *x = arg;

    ASSERT(x->state == WRITE_PROPOSED);
    if (e != NULL)
        refuse(x, e);
    x->state = WRITE_WRITTEN;
    x->index = index;
    x->res = talloc_steal(x->w.ctx, res);
    write_step(x);
}

/* What is under way is not called back: it is not begun, or answered to nobody. */
static void
cancelled(void *arg)
{
    struct writing *x = arg;
    atomic_store(&x->cancelled, true);
}

static void
write_begin(struct writing *x)
{
    x->state = WRITE_PREPARING;
    if (x->row->here) {
        prepare(x);
        write_step(x);
    } else {
        x->worker = true;
        env_work(server_env(x->w.s), prepare_work, prepared, x);
    }
}

void
write_start(struct server *s, struct rpc_call *call, const void *req, const struct write_row *row)
{
    void *ctx = mem_ctx("write");
    struct writing *x = mem_new(ctx, struct writing);

    x->w = (struct write){.s = s, .call = call, .req = req, .ctx = ctx};
    x->w.ns = str_or(rpc_call_envelope(call)->namespace, NS_DEFAULT);
    x->row = row;
    x->gate = gate_ref(server_gate(s));
    rpc_call_on_cancel(call, cancelled, x);
    write_begin(x);
}

/* --- what rows use --- */

const char *
write_new_id(struct write *w)
{
    char id[UUID_TEXT];

    return mem_strdup(w->ctx, env_id(server_env(w->s), id));
}

void
write_reply_index(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct write_response resp = {.index = index};

    (void)res;
    rpc_reply(w->call, &resp);
}
