/* SPDX-License-Identifier: Apache-2.0
 *
 * The shell of autopilot: see autopilot.h.
 */
#include "server/autopilot.h"

#include <inttypes.h>

#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/core/core.h"
#include "server/host_int.h"
#include "server/peer/pilot.h"

/* The things that are kept of a server from one look to the next. */
struct autopilot_seen {
    uint64_t id;
    bool well;
    int64_t since_ns; /* wall clock: well, or not, since then */
    int64_t dead_ms;  /* 0: it is alive */
};

struct autopilot {
    struct server *s;
    struct autopilot_seen seen[CONSENSUS_PEERS_MAX];
    size_t n;
    uint64_t term;   /* of which it is all */
    uint64_t taking; /* the server that is being taken out; 0: none */
};

/* A look at all servers: one of each in the configuration. */
struct autopilot_look {
    struct core_status st;
    struct pilot_rules rules;
    struct pilot_server v[CONSENSUS_PEERS_MAX];
    const struct server_member *members[CONSENSUS_PEERS_MAX]; /* NULL: gossip does not know it */
    struct autopilot_seen *seen[CONSENSUS_PEERS_MAX];
    size_t n, tolerance;
};

struct autopilot *
autopilot_new(struct server *s)
{
    struct autopilot *a = mem_new(s, struct autopilot);

    a->s = s;
    return a;
}

/* --- the configuration: that of the agent, until another one is set --- */

static int64_t
autopilot_ns(const char *text)
{
    int64_t ns = 0;

    return str_empty(text) || duration_parse(text, &ns) < 0 ? 0 : ns;
}

struct autopilot_configuration *
server_autopilot(const struct server *s, const void *ctx, struct state_txn *t)
{
    struct autopilot_configuration *c = state_autopilot(t, ctx);
    const struct agent_autopilot *from = s->cfg.autopilot;
    char text[DURATION_TEXT];

    if (c != NULL)
        return c;
    struct agent_autopilot *own = from != NULL ? codec_clone(ctx, &type_agent_autopilot, from)
                                               : type_new(ctx, &type_agent_autopilot);
    codec_defaults(ctx, &type_agent_autopilot, own);
    c = mem_new(ctx, struct autopilot_configuration);
    c->cleanup_dead_servers = own->cleanup_dead_servers.v;
    c->last_contact_threshold = mem_strdup(c, duration_format(own->last_contact_threshold, text));
    c->max_trailing_logs = own->max_trailing_logs > 0 ? (uint64_t)own->max_trailing_logs : 0;
    c->min_quorum = own->min_quorum > 0 ? (uint64_t)own->min_quorum : 0;
    c->server_stabilization_time =
        mem_strdup(c, duration_format(own->server_stabilization_time, text));
    return c;
}

static struct pilot_rules
autopilot_rules(struct server *s, const void *ctx)
{
    struct state_txn *t = server_read_begin(s, ctx);
    const struct autopilot_configuration *c = server_autopilot(s, ctx, t);
    struct pilot_rules r = {.cleanup = c->cleanup_dead_servers,
                            .contact_ms = autopilot_ns(c->last_contact_threshold) / NS_PER_MS,
                            .behind_max = c->max_trailing_logs,
                            .voters_min = c->min_quorum,
                            .dead_ms = autopilot_ns(c->server_stabilization_time) / NS_PER_MS};

    state_read_end(t);
    return r;
}

/* --- a look --- */

static struct autopilot_seen *
autopilot_known(struct autopilot *a, uint64_t id)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->seen[i].id == id)
            return &a->seen[i];
    ASSERT(a->n < CONSENSUS_PEERS_MAX);
    a->seen[a->n] = (struct autopilot_seen){.id = id};
    return &a->seen[a->n++];
}

/* Forgets who is no member any more, and all when another term has begun. */
static void
autopilot_forget(struct autopilot *a, const struct core_status *st)
{
    size_t kept = 0;

    if (a->term != st->term)
        a->n = a->taking = 0;
    a->term = st->term;
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < st->conf.n; k++)
            if (st->conf.v[k].id == a->seen[i].id) {
                a->seen[kept++] = a->seen[i];
                break;
            }
    a->n = kept;
}

static void
autopilot_see(struct autopilot *a, struct autopilot_look *x, size_t i,
              const struct server_member *m)
{
    const struct peer *p = &x->st.conf.v[i];
    struct pilot_server *v = &x->v[i];
    struct autopilot_seen *k = x->seen[i] = autopilot_known(a, p->id);
    int64_t now = env_mono_ms(&a->s->env), heard = core_peer_heard_ms(a->s->core, p->id);

    *v = (struct pilot_server){.id = p->id,
                               .voter = p->role == PEER_VOTER,
                               .leader = p->id == x->st.leader,
                               .alive = m != NULL && m->alive,
                               .silent_ms = heard == 0 ? INT64_MAX : now - heard,
                               .behind =
                                   x->st.last > x->st.match[i] ? x->st.last - x->st.match[i] : 0};
    if (v->alive || m == NULL) /* it is not known */
        k->dead_ms = 0;
    else if (k->dead_ms == 0)
        k->dead_ms = now;
    v->dead_ms = k->dead_ms != 0 ? now - k->dead_ms : 0;
    x->members[i] = m;
}

static void
autopilot_look_at(struct autopilot *a, const void *ctx, struct autopilot_look *x)
{
    size_t n = 0;
    const struct server_member *m = server_members(a->s, ctx, &n);
    int64_t now_ns = env_wall_ns(&a->s->env);

    core_status(a->s->core, ctx, &x->st);
    x->rules = autopilot_rules(a->s, ctx);
    x->n = x->st.conf.n;
    autopilot_forget(a, &x->st);
    for (size_t i = 0; i < x->n; i++) {
        const struct server_member *is = NULL;
        for (size_t k = 0; k < n; k++)
            if (m[k].hello->id == x->st.conf.v[i].id)
                is = &m[k];
        autopilot_see(a, x, i, is);
    }
    x->tolerance = pilot_judge(&x->rules, x->v, x->n);
    for (size_t i = 0; i < x->n; i++)
        if (x->seen[i]->since_ns == 0 || x->seen[i]->well != x->v[i].well) {
            x->seen[i]->since_ns = now_ns;
            x->seen[i]->well = x->v[i].well;
        }
}

/* --- taking out --- */

static void
autopilot_stored(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct autopilot *a = arg;
    uint64_t id = a->taking;
    struct err why = ERR_INIT;

    (void)index;
    (void)res;
    if (a->s->stopping || e != NULL || id == 0)
        return; /* the next round tries again */
    if (server_remove(a->s, id, &why) < 0)
        log_warn("autopilot", "a dead server stays a member", "server", LOG_U64(id), "error",
                 why.text, NULL);
}

/* First the log is told that the server has left, by which it may come back; then it goes. */
void
autopilot_round(struct autopilot *a)
{
    auto_mem void *tmp = mem_ctx("autopilot");
    struct autopilot_look *x = mem_new(tmp, struct autopilot_look);

    if (a->s->stopping || !server_is_leader(a->s))
        return;
    autopilot_look_at(a, tmp, x);
    const struct pilot_server *dead = pilot_dead(&x->rules, x->v, x->n);
    a->taking = dead != NULL ? dead->id : 0;
    if (dead == NULL)
        return;
    struct server_gone gone = {.id = dead->id, .left = true};
    struct intent in = {.server_gone = &gone};
    log_info("autopilot", "a server is dead, and is taken out: it may join again", "server",
             LOG_U64(dead->id), "dead_ms", LOG_I64(dead->dead_ms), NULL);
    server_propose(a->s, &in, HOME_LOOP, autopilot_stored, a);
}

/* --- for operators --- */

static const char *
autopilot_contact(const void *ctx, const struct pilot_server *v)
{
    char text[DURATION_TEXT];
    int64_t ms = v->leader ? 0 : v->silent_ms;

    if (ms == INT64_MAX)
        return "never";
    ms = ms > PILOT_BEAT_MS ? ms - PILOT_BEAT_MS : 0;
    return mem_strdup(ctx, duration_format(ms * NS_PER_MS, text));
}

static struct server_health *
autopilot_health(const void *ctx, const struct autopilot_look *x, size_t i)
{
    const struct pilot_server *v = &x->v[i];
    const struct server_member *m = x->members[i];
    struct server_health *h = mem_new(ctx, struct server_health);

    *h = (struct server_health){.id = mem_printf(h, "%" PRIu64, v->id),
                                .name = "(unknown)",
                                .address = mem_strdup(h, x->st.conf.v[i].addr),
                                .serf_status = "none",
                                .leader = v->leader,
                                .last_contact = autopilot_contact(h, v),
                                .last_term = x->st.term,
                                .last_index = v->leader ? x->st.last : x->st.match[i],
                                .healthy = v->well,
                                .voter = v->voter,
                                .stable_since = x->seen[i]->since_ns};
    if (m == NULL)
        return h;
    h->id = str_or(m->hello->node, h->id);
    h->name = m->hello->name;
    h->version = m->hello->build;
    h->serf_status = m->alive ? "alive" : m->left ? "left" : "failed";
    return h;
}

struct operator_health_reply *
server_health(struct server *s, const void *ctx)
{
    struct autopilot_look *x = mem_new(ctx, struct autopilot_look);
    struct operator_health_reply *r = mem_new(ctx, struct operator_health_reply);

    autopilot_look_at(s->autopilot, ctx, x);
    r->healthy = true;
    r->failure_tolerance = (int64_t)x->tolerance;
    for (size_t i = 0; i < x->n; i++) {
        struct server_health *h = autopilot_health(r, x, i);
        r->healthy &= h->healthy;
        list_add(r, r->servers, h);
        if (h->leader)
            r->leader = h->id;
        if (h->voter)
            list_add(r, r->voters, h->id);
    }
    return r;
}
