/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rooms of server/ use of the server that they are part of (see host.h): below all of
 * them.
 */
#include "net/rpc.h"
#include "server/host_int.h"

#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/state/watch.h"

enum { SURE_MS = 2000 }; /* several heartbeats of a quiet cluster */

const struct server_config *
server_cfg(const struct server *s)
{
    return &s->cfg;
}

struct dialer
server_dialer(const struct server *s, const void *ctx, struct loop *l, const char *region)
{
    return (struct dialer){.loop = l,
                           .filter = s->cfg.filter,
                           .falls_back = s->cfg.falls_back,
                           .name = mem_printf(ctx, "server.%s.nomad", str_or(region, "global"))};
}

struct rpc_client *
server_dial(struct server *s, const void *ctx, const char *addr, struct err *e)
{
    const struct str_list one = {(const char *[]){addr}, 1};
    const struct dialer d = server_dialer(s, ctx, s->loop, s->cfg.region);

    return rpc_dial(&d, &one, e);
}

const struct env *
server_env(const struct server *s)
{
    return &s->env;
}

struct state_txn *
server_read_begin(const struct server *s, const void *ctx)
{
    return core_read_begin(s->core, ctx);
}

struct gate *
server_gate(const struct server *s)
{
    return s->gate;
}

struct leader *
server_leader(const struct server *s)
{
    return s->leader;
}

struct keys *
server_keys(const struct server *s)
{
    return s->keys;
}

struct ways *
server_ways(const struct server *s)
{
    return s->ways;
}

struct events *
server_events(const struct server *s)
{
    return s->events;
}

struct callers *
server_callers(const struct server *s)
{
    return s->callers;
}

struct jwks *
server_jwks(const struct server *s)
{
    return s->jwks;
}

struct forwards *
server_forwards(const struct server *s)
{
    return s->forwards;
}

struct regions *
server_abroad(const struct server *s)
{
    return s->abroad;
}

bool
server_query_begin(struct server *s)
{
    return !atomic_exchange(&s->querying, true);
}

void
server_query_end(struct server *s)
{
    atomic_store(&s->querying, false);
}

/* --- leadership --- */

int64_t
server_last_contact_ms(const struct server *s)
{
    return core_last_contact_ms(s->core);
}

bool
server_is_leader(const struct server *s)
{
    return core_is_leader(s->core);
}

bool
server_leads_surely(const struct server *s)
{
    int64_t failover = s->cfg.agent->failover_heartbeat_ttl / NS_PER_MS;

    return core_leads_surely(s->core, failover < SURE_MS ? failover : SURE_MS);
}

uint64_t
server_applied(struct server *s)
{
    auto_mem void *ctx = mem_ctx("applied");
    struct state_txn *t = server_read_begin(s, ctx);
    uint64_t index = state_applied(t);
    state_read_end(t);
    return index;
}

int
server_backup(struct server *s, struct state_txn *t, struct core_backup *ret, struct err *e)
{
    return core_backup(s->core, t, ret, e);
}

int
server_backup_read(struct server *s, uint64_t index, uint64_t offset, void *to, size_t n,
                   struct err *e)
{
    return core_backup_read(s->core, index, offset, to, n, e);
}

void
server_backup_drop(struct server *s, uint64_t index)
{
    core_backup_drop(s->core, index);
}

uint64_t
server_restore_max(const struct server *s)
{
    return core_restore_max(s->core);
}

bool
server_leader_addr(const struct server *s, char *out, size_t size)
{
    return core_leader_addr(s->core, out, size);
}

bool
server_leader_at(struct server *s, char *out, size_t size, uint64_t *ret_term)
{
    auto_mem void *tmp = mem_ctx("leader");
    struct core_status st;
    core_status(s->core, tmp, &st);
    *ret_term = st.term;
    for (size_t i = 0; i < st.conf.n; i++)
        if (st.leader != 0 && st.conf.v[i].id == st.leader)
            return str_copy(out, size, st.conf.v[i].addr);
    return false;
}

/* --- writes, waiting --- */

void
server_note_time(struct server_times *t, int64_t ns)
{
    t->min = t->n == 0 || ns < t->min ? ns : t->min;
    t->max = ns > t->max ? ns : t->max;
    t->sum += ns;
    t->n++;
}

struct timed {
    struct server *s;
    propose_fn *done;
    void *arg;
    int64_t begin_ns;
};

static void
timed_done(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct timed t = *(struct timed *)arg;
    talloc_free(arg);
    if (index != 0)
        server_note_time(&t.s->raft.commit, env_mono_ns(&t.s->env) - t.begin_ns);
    atomic_store_explicit(&t.s->raft.timing, false, memory_order_relaxed);
    t.done(t.arg, e, index, res);
}

/* One write of the loop at a time is timed: a crowd of them is not slowed by being watched. */
void
server_propose(struct server *s, struct intent *intent, enum home home, propose_fn *done, void *arg)
{
    atomic_fetch_add_explicit(&s->raft.writes, 1, memory_order_relaxed);
    if (home != HOME_LOOP ||
        atomic_exchange_explicit(&s->raft.timing, true, memory_order_relaxed)) {
        core_propose(s->core, intent, home, done, arg);
        return;
    }
    struct timed *t = mem_new(NULL, struct timed);
    *t = (struct timed){s, done, arg, env_mono_ns(&s->env)};
    core_propose(s->core, intent, home, timed_done, t);
}

uint64_t
server_rights_index(const struct server *s)
{
    return watches_rights_index(s->watches);
}

struct server_watch *
server_watch(struct server *s, const struct watch_on *on, wake_fn *fn, void *arg)
{
    return watches_park(s->watches, on, fn, arg);
}

bool
server_post_apply(struct server *s, void (*fn)(void *arg), void *arg)
{
    return core_post(s->core, fn, arg);
}
