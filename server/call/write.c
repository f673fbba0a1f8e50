/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes: a row says what is written, on a snapshot, and what is answered (see method.h). A worker
 * makes the intent and proposes it; the answer of the log may overtake the worker's return to the
 * loop. What a worker made of a large job, a worker frees.
 */
#include "common/duration.h"
#include "common/mem.h"
#include "common/uuid.h"
#include "server/hook.h"
#include "server/call/call_int.h"

#define HEAVY_NS (NS_PER_MS / 2)

enum { WRITE_WAIT_MS = 10000 };

static void write_written(void *arg, const struct err *e, uint64_t index, struct fsm_result *res);

/* --- preparing --- */

static void
propose_now(void *arg)
{
    struct call *c = arg;

    server_propose(c->s, &c->writing.w.in, HOME_LOOP, write_written, c);
}

static void
write_propose(struct call *c)
{
    const struct test_go go = {c->s, false, propose_now, c};

    c->writing.proposed = true;
    if (!test_hook_hold(c->method->name, "propose", &type_intent, &c->writing.w.in, &go))
        propose_now(c);
}

static void
write_refuse(struct call *c, const struct err *e)
{
    c->err = mem_dup(c->writing.w.ctx, e, sizeof(*e));
}

static void
refuse_stopping(struct call *c)
{
    struct err e = ERR_INIT;

    err_set(&e, -ERR_UNAVAILABLE, "the server is stopping");
    write_refuse(c, &e);
}

/* On a worker, or on the loop. Proposing comes last: the answer of the log may be there at once. */
static void
write_prepare(struct call *c)
{
    struct writing *x = &c->writing;
    struct err e = ERR_INIT;
    const struct env *env = server_env(c->s);
    int64_t begin = env_mono_ns(env);
    struct state_txn *t = server_read_begin(c->s, x->w.ctx);
    int rc = prove_node(c, t, x->w.ctx, &x->w.node, &e);

    x->seen = state_applied(t);
    if (rc == 0)
        rc = x->row->prepare(&x->w, t, &e);

    state_read_end(t);
    x->heavy |= env_mono_ns(env) - begin > HEAVY_NS;
    ASSERT((rc < 0) == (e.code != 0));
    if (rc == 0 && x->w.resp == NULL && atomic_load(&c->cancelled))
        rc = err_set(&e, -ERR_CANCELED, "canceled");
    if (rc < 0)
        write_refuse(c, &e);
    else if (x->w.resp == NULL)
        write_propose(c);
}

static void
prepare_work(void *arg)
{
    struct call *c = arg;
    struct gate *g = c->gate;

    if (!gate_enter(g)) {
        refuse_stopping(c);
        return;
    }
    write_prepare(c); /* once it is proposed it is the loop's */
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
    struct call *c = arg;
    struct writing x = c->writing; /* `c` goes with the answer */
    const struct err *err = c->err;
    bool closed = gate_is_closed(c->gate); /* then the server may be gone */
    const struct env *env = x.heavy && !closed ? server_env(c->s) : NULL;
    struct rpc_call *rpc = call_leave(c);

    if (err != NULL)
        rpc_fail(rpc, err);
    else if (x.w.resp != NULL)
        rpc_reply(rpc, x.w.resp);
    else
        x.row->reply(&x.w, x.index, x.res);
    if (env != NULL)
        env_work(env, free_work, free_done, x.w.ctx);
    else
        talloc_free(x.w.ctx);
}

static void write_begin(struct call *c);

/* --- waiting for what a write lacks --- */

static void
write_woken(void *arg, enum wake_reason why)
{
    struct call *c = arg;

    c->writing.watch = NULL;
    if (why == WAKE_SHUTDOWN)
        refuse_stopping(c);
    if (why == WAKE_SHUTDOWN || why == WAKE_TIMEOUT) {
        write_end(c);
        return;
    }
    talloc_free(c->writing.w.ctx);
    c->err = NULL;
    call_again(c);
}

void
write_give_up(struct call *c)
{
    struct err e = ERR_INIT;

    server_watch_cancel(TAKE(c->writing.watch));
    err_set(&e, -ERR_CANCELED, "canceled");
    write_refuse(c, &e);
    write_end(c);
}

/* False: the write ends now. */
static bool
write_waits(struct call *c)
{
    struct writing *x = &c->writing;
    const struct watch_on on = {
        .tables = x->w.awaits, .seen = x->seen, .timeout_ms = WRITE_WAIT_MS};

    if (c->err == NULL || x->w.awaits == 0 || x->proposed || atomic_load(&c->cancelled) ||
        gate_is_closed(c->gate))
        return false;
    x->watch = server_watch(c->s, &on, write_woken, c);
    if (x->watch != NULL)
        call_enter(c, CALL_HELD);
    return x->watch != NULL;
}

/* Ends a write, which is written, or refused, or answered without a write. */
static void
write_done(struct call *c)
{
    struct writing *x = &c->writing;
    const struct test_go go = {c->s, false, write_end, c};
    bool again = c->err == NULL && x->w.resp == NULL && x->row->again != NULL &&
                 x->row->again(&x->w);

    if (again && gate_is_closed(c->gate)) {
        refuse_stopping(c);
        write_end(c);
    } else if (again) {
        x->w.barrier = x->index;
        x->w.in = (struct intent){0};
        write_begin(c);
    } else if (x->res == NULL || c->err != NULL ||
               !test_hook_hold(c->method->name, "reply", &type_intent, &x->w.in, &go)) {
        write_end(c);
    }
}

/* Back on the loop. */
static void
write_prepared(void *arg)
{
    struct call *c = arg;

    if (c->writing.proposed)
        call_enter(c, CALL_PROPOSED);
    if ((!c->writing.proposed || c->writing.written) && !write_waits(c))
        write_done(c);
}

static void
write_written(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct call *c = arg;

    if (e != NULL)
        write_refuse(c, e);
    c->writing.written = true;
    c->writing.index = index;
    c->writing.res = talloc_steal(c->writing.w.ctx, res);
    if (c->state == CALL_PROPOSED)
        write_done(c);
}

static void
write_begin(struct call *c)
{
    c->writing.proposed = c->writing.written = false;
    call_enter(c, CALL_WORKING);
    const struct write_row *row = c->writing.row;
    if (row->here || (row->small != NULL && row->small(c->req))) {
        write_prepare(c);
        write_prepared(c);
    } else {
        env_work(server_env(c->s), prepare_work, write_prepared, c);
    }
}

void
write_start(struct call *c, const struct write_row *row)
{
    c->writing = (struct writing){.row = row};
    c->writing.w = (struct write){.s = c->s,
                                  .of = c,
                                  .call = c->rpc,
                                  .req = c->req,
                                  .ns = c->ns,
                                  .env = c->env,
                                  .ctx = mem_ctx("write")};
    write_begin(c);
}

/* --- what rows use --- */

const char *
write_new_id(struct write *w)
{
    char id[UUID_TEXT];

    return mem_strdup(w->ctx, env_id(server_env(w->s), id));
}

const struct caller *
write_caller(const struct write *w)
{
    return w->of->caller;
}

void
write_reply_index(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct write_response resp = {.index = index};

    (void)res;
    rpc_reply(w->call, &resp);
}
