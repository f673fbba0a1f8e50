/* SPDX-License-Identifier: Apache-2.0 */
#include "client/signing.h"

#include <utlist.h>

#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

enum {
    SIGNING_TOGETHER = 256, /* in a call, as many as a server takes */
    SIGNING_GATHER_MS = 5,
};

struct signings { /* a talloc context */
    struct ground *g;
    struct signing *all; /* a list: those of the call under way come first */
    size_t asked;        /* how many these are */
    bool out;            /* a call is under way */
    uint64_t call;
    struct timer *timer;
    int64_t backoff_ms;
    bool stopped;
};

struct signing { /* a talloc context, below signings */
    struct signing *prev, *next;
    struct signings *f;
    struct identity_request q;
    bool ended; /* nobody wants it any more, but it is asked for */
    signing_done *done;
    void *arg;
};

static void signings_ask(struct signings *f);

static void
signings_on_timer(void *arg)
{
    struct signings *f = arg;
    f->timer = NULL;
    signings_ask(f);
}

static void
signings_arm(struct signings *f, int64_t ms)
{
    if (f->all != NULL && f->timer == NULL && !f->out && !f->stopped)
        f->timer = timer_start(f->g->loop, ms, signings_on_timer, f);
}

static void
signing_free(struct signing *s)
{
    DL_DELETE(s->f->all, s);
    talloc_free(s);
}

/* --- answers --- */

static bool
signing_is(const struct signing *s, const char *alloc, const char *task, const char *identity)
{
    return str_eq(s->q.alloc_id, str_or(alloc, "")) && str_eq(s->q.task, str_or(task, "")) &&
           str_eq(s->q.identity, str_or(identity, ""));
}

/* The answer has what was asked in its order, signed or rejected. */
static void
signings_take(struct signings *f, const struct alloc_identities_response *resp)
{
    size_t signed_ = 0, rejected = 0;
    while (f->asked > 0) {
        struct signing *s = f->all;
        const struct signed_identity *id =
            signed_ < resp->signed_.n ? resp->signed_.v[signed_] : NULL;
        const struct rejected_identity *no =
            rejected < resp->rejected.n ? resp->rejected.v[rejected] : NULL;
        const char *why = "the servers did not answer";
        if (id != NULL && signing_is(s, id->alloc_id, id->task, id->identity)) {
            signed_++;
        } else {
            id = NULL;
            if (no != NULL && signing_is(s, no->alloc_id, no->task, no->identity)) {
                why = str_or(no->reason, "");
                rejected++;
            }
        }
        f->asked--;
        signing_done *done = s->ended ? NULL : s->done;
        void *arg = s->arg;
        signing_free(s);
        if (done != NULL)
            done(arg, id, why);
    }
}

static void
signings_failed(struct signings *f, const struct err *e)
{
    int64_t ms = backoff_next(&f->backoff_ms);
    log_warn("client", "identities of tasks were not signed", "identities", LOG_U64(f->asked),
             "error", e->text, "retry_in", LOG_DUR(ms * NS_PER_MS), NULL);
    for (struct signing *s = f->all, *next; f->asked > 0; f->asked--, s = next) {
        next = s->next;
        if (s->ended)
            signing_free(s);
    }
    signings_arm(f, ms);
}

static void
signings_on_answer(void *arg, const struct err *e, const void *resp)
{
    struct signings *f = arg;
    struct ground *g = f->g;
    f->out = false;
    f->call = 0;
    if (f->stopped) {
        /* nothing more is told */
    } else if (e != NULL) {
        signings_failed(f, e);
    } else {
        f->backoff_ms = 0;
        f->out = true; /* what is wished for meanwhile comes in the next call */
        signings_take(f, resp);
        f->out = false;
        signings_arm(f, 0);
    }
    hold_release(&g->hold);
}

static void
signings_ask(struct signings *f)
{
    struct ground *g = f->g;
    auto_mem void *tmp = mem_ctx("signings");
    struct alloc_identities_request req = {0};
    struct rpc_envelope env = ground_proof(g);
    if (f->stopped || g->stopping || f->all == NULL)
        return;
    for (struct signing *s = f->all; s != NULL && req.identities.n < SIGNING_TOGETHER; s = s->next)
        list_add(tmp, req.identities, &s->q);
    f->asked = req.identities.n;
    const struct rpc_request r = {.id = RPC_ALLOC_SIGN_IDENTITIES, .req = &req, .env = &env};
    f->out = true;
    hold_take(&g->hold);
    f->call = rpc_send(g->rpc, &r, signings_on_answer, f);
}

/* --- wishes --- */

struct signing *
signing_begin(struct signings *f, const struct identity_request *q, signing_done *done, void *arg)
{
    struct signing *s = mem_new(f, struct signing);
    *s = (struct signing){.f = f, .done = done, .arg = arg};
    s->q = (struct identity_request){mem_strdup(s, q->alloc_id), mem_strdup(s, q->task),
                                     mem_strdup(s, q->identity)};
    DL_APPEND(f->all, s);
    signings_arm(f, SIGNING_GATHER_MS);
    return s;
}

void
signing_end(struct signing *s)
{
    if (s == NULL)
        return;
    struct signings *f = s->f;
    size_t i = 0;
    for (struct signing *x = f->all; x != s && i < f->asked; x = x->next)
        i++;
    if (i < f->asked && f->out)
        s->ended = true;
    else
        signing_free(s);
}

struct signings *
signings_new(struct ground *g)
{
    struct signings *f = mem_new(g, struct signings);
    f->g = g;
    return f;
}

void
signings_stop(struct signings *f)
{
    f->stopped = true;
    timer_stop(TAKE(f->timer));
    if (f->call != 0)
        rpc_cancel(f->g->rpc, f->call);
}
