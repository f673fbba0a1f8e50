/* SPDX-License-Identifier: Apache-2.0
 *
 * A seeded simulation of a cluster on the consensus facade: virtual time; links that delay, lose
 * and duplicate; partitions; crashes that lose what was not synced; slow disks; local snapshots and
 * their installation; servers that are added, promoted, demoted and made spare, and transfers. A
 * configuration leaves only when it is durable (guard 11 of consensus.h, which is the transport's).
 * Checked after every event: one leader per term, and no two servers ever apply different entries
 * at an index. After healing, the voters must agree and make progress.
 *
 * usage: test-sim [--seed N | --seeds N | --eager N]     one seed (replays), that many, or one
 *        without guard 11
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/raft/consensus.h"

enum { SERVERS_MAX = 5, LOG_MAX = 4096, MSGS_MAX = 4096, OPS_MAX = 4096, TERMS_MAX = 4096 };
enum { CONFS_MAX = 2048, CHAOS_MS = 20000, HEAL_MS = 20000, SEEDS = 300, SEEDS_LONG = 30000 };

/* The seeds that fail without guard 10, 9, 13 of consensus.h; and with --eager, without 11. */
static const uint64_t named[] = {57, 422, 11400, 2872};

/* Configurations that were seen; an entry's value is its place here, from 1. */
static struct {
    struct peer_list l;
    void *data;
    size_t n;
} confs[CONFS_MAX];
static size_t n_confs;
static const char *const addrs[] = {"s1", "s2", "s3", "s4", "s5"};
static uint64_t changes, transfers;
static bool eager;

struct ent {
    uint64_t term;
    uint64_t value;
    enum record_type type;
};

struct op {
    bool truncate;
    uint64_t index;
    struct ent e;
};

struct msg {
    int64_t at;
    unsigned to;
    struct peer_msg m;
    struct record *entries; /* owned */
    uint64_t *values;
};

struct server {
    struct consensus *c; /* NULL: down */
    uint64_t id;
    /* disk */
    uint64_t term, vote;
    struct ent log[LOG_MAX]; /* durable */
    uint64_t first, last;
    struct consensus_snapshot snap;
    struct op ops[OPS_MAX]; /* not durable yet */
    size_t n_ops, flush_ops;
    int64_t flush_at; /* 0: none */
    /* memory */
    struct ent mem[LOG_MAX];
    uint64_t mem_last, stored, applied, commit;
    int64_t timeout, restart_at, install_at;
    uint64_t install_index, install_term;
    enum consensus_role role;
    uint64_t conf, conf_index; /* as of `applied`; 0: none */
    uint64_t install_conf, install_conf_index;
};

static uint64_t seed_now;
static struct {
    uint64_t rng;
    unsigned n;
    int64_t now;
    bool chaos;
    struct server s[SERVERS_MAX];
    struct msg *msgs[MSGS_MAX];
    size_t n_msgs;
    bool cut[SERVERS_MAX][SERVERS_MAX];
    struct ent committed[LOG_MAX];
    uint64_t n_committed;
    uint64_t leader_of[TERMS_MAX];
    uint64_t next_value, applied_total, crashes, installs;
} w;

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            printf("not ok - seed %lu at %ld ms: %s (line %d)\n", (unsigned long)seed_now,         \
                   (long)w.now, #cond, __LINE__);                                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static uint64_t
rnd(uint64_t n)
{
    w.rng ^= w.rng << 13;
    w.rng ^= w.rng >> 7;
    w.rng ^= w.rng << 17;
    return w.rng % n;
}

static uint64_t
conf_id(const void *data, size_t n)
{
    for (size_t i = 0; i < n_confs; i++)
        if (confs[i].n == n && memcmp(confs[i].data, data, n) == 0)
            return i + 1;
    CHECK(n_confs < CONFS_MAX);
    confs[n_confs].data = mem_dup(NULL, data, n);
    confs[n_confs].n = n;
    CHECK(consensus_conf_decode(NULL, data, n, &confs[n_confs].l) == 0);
    return ++n_confs;
}
static uint64_t
conf_add(const struct peer_list *l)
{
    void *data = NULL;
    size_t n = 0;
    CHECK(consensus_conf_encode(NULL, l, &data, &n) == 0);
    uint64_t id = conf_id(data, n);
    mem_free(data);
    return id;
}

/* --- network --- */

static void
msg_free(struct msg *m)
{
    mem_free(m);
}

static void
send_one(struct server *from, const struct peer_msg *m)
{
    unsigned to = (unsigned)m->peer - 1;
    if (w.n_msgs == MSGS_MAX || (w.chaos && rnd(100) < 5))
        return;
    struct msg *x = mem_new(NULL, struct msg);
    x->m = *m;
    x->to = to;
    x->m.peer = from->id;
    x->m.addr = addrs[from->id - 1];
    x->at = w.now + 1 + (int64_t)rnd(w.chaos && rnd(20) == 0 ? 400 : 15);
    if (m->type == MSG_APPEND && m->n > 0) {
        x->entries = mem_array(x, struct record, m->n);
        x->values = mem_array(x, uint64_t, m->n);
        for (size_t i = 0; i < m->n; i++) {
            uint64_t ix = m->index + 1 + i;
            CHECK(ix <= from->mem_last && ix >= from->first);
            const struct ent *e = &from->mem[ix];
            if (e->type == RECORD_CONFIG && ix > from->stored && !eager) {
                x->m.n = i;
                break;
            }
            x->values[i] = e->value;
            x->entries[i] = (struct record){
                .term = e->term, .type = e->type, .data = &x->values[i], .n = sizeof(uint64_t)};
            if (e->type == RECORD_CONFIG) {
                x->entries[i].data = confs[e->value - 1].data;
                x->entries[i].n = confs[e->value - 1].n;
            }
        }
        x->m.entries = x->entries;
    }
    if (m->type == MSG_SNAPSHOT) {
        CHECK(from->snap.index == m->index);
        x->m.conf = from->snap.conf;
        x->m.conf_index = from->snap.conf_index;
    }
    w.msgs[w.n_msgs++] = x;
}

/* --- what an update says --- */

static void
op_add(struct server *s, struct op o)
{
    CHECK(s->n_ops < OPS_MAX);
    s->ops[s->n_ops++] = o;
    if (s->flush_at == 0) {
        s->flush_ops = s->n_ops;
        s->flush_at = w.now + 1 + (int64_t)rnd(w.chaos && rnd(10) == 0 ? 200 : 8);
    }
}

static void
on_update(void *arg, const struct consensus_update *u)
{
    struct server *s = arg;
    if (u->hard) {
        CHECK(u->term >= s->term && (u->term > s->term || s->vote == 0 || s->vote == u->vote));
        s->term = u->term;
        s->vote = u->vote;
    }
    if (u->role == CONSENSUS_LEADER && s->role != CONSENSUS_LEADER) {
        CHECK(u->term < TERMS_MAX);
        CHECK(w.leader_of[u->term] == 0 || w.leader_of[u->term] == s->id);
        w.leader_of[u->term] = s->id;
    }
    s->role = u->role;
    if (u->first != 0 && u->first <= s->mem_last) {
        CHECK(u->first > s->applied);
        op_add(s, (struct op){.truncate = true, .index = u->first});
        s->mem_last = u->first - 1;
        s->stored = s->stored < s->mem_last ? s->stored : s->mem_last;
    }
    for (size_t i = 0; i < u->n; i++) {
        uint64_t ix = u->first + i;
        CHECK(ix == s->mem_last + 1 && ix < LOG_MAX);
        struct ent e = {.term = u->entries[i].term, .type = u->entries[i].type};
        if (e.type == RECORD_CONFIG) {
            e.value = conf_id(u->entries[i].data, u->entries[i].n);
        } else if (u->entries[i].n == sizeof(uint64_t))
            memcpy(&e.value, u->entries[i].data, sizeof(uint64_t));
        s->mem[ix] = e;
        s->mem_last = ix;
        op_add(s, (struct op){.index = ix, .e = e});
    }
    for (size_t i = 0; i < u->n_msgs; i++)
        send_one(s, &u->msgs[i]);
    if (u->install != NULL) {
        s->install_index = u->install->index;
        s->install_term = u->install->term;
        s->install_at = w.now + 5 + (int64_t)rnd(100);
        s->install_conf = conf_add(&u->install->conf);
        s->install_conf_index = u->install->conf_index;
    }
    s->commit = u->commit;
    s->timeout = u->timeout_ms;
}

static void
apply(struct server *s)
{
    uint64_t to = s->commit < s->stored ? s->commit : s->stored;
    if (s->install_at != 0)
        return;
    while (s->applied < to) {
        uint64_t ix = ++s->applied;
        const struct ent *e = &s->mem[ix];
        CHECK(ix <= w.n_committed + 1);
        if (ix > w.n_committed) {
            w.committed[ix] = *e;
            w.n_committed = ix;
        }
        CHECK(w.committed[ix].term == e->term && w.committed[ix].value == e->value &&
              w.committed[ix].type == e->type);
        w.applied_total++;
        if (e->type == RECORD_CONFIG) {
            s->conf = e->value;
            s->conf_index = ix;
            CHECK(consensus_config_applied(s->c, w.now, ix, confs[e->value - 1].data,
                                           confs[e->value - 1].n) == 0);
        }
    }
}

/* --- events --- */

static void
start_server(struct server *s)
{
    static struct record log[LOG_MAX];
    size_t n = 0;
    for (uint64_t i = s->first; i <= s->last; i++) {
        s->mem[i] = s->log[i];
        log[n++] = (struct record){
            .index = i,
            .term = s->log[i].term,
            .type = s->log[i].type,
            .data = s->log[i].type == RECORD_CONFIG ? confs[s->log[i].value - 1].data : "12345678",
            .n = s->log[i].type == RECORD_CONFIG ? confs[s->log[i].value - 1].n : 8};
    }
    s->mem_last = s->stored = s->last;
    s->applied = s->snap.index;
    s->commit = 0;
    s->role = CONSENSUS_FOLLOWER;
    s->restart_at = s->install_at = s->flush_at = 0;
    s->n_ops = 0;
    s->conf = s->snap.index ? conf_add(&s->snap.conf) : 0;
    s->conf_index = s->snap.conf_index;
    struct consensus_opts o = {.id = s->id,
                               .addr = addrs[s->id - 1],
                               .seed = (uint32_t)rnd(1 << 30),
                               .busy = {.election_ms = 1000, .heartbeat_ms = 100},
                               .quiet = {.election_ms = 1500, .heartbeat_ms = 1000},
                               .quiet_after_ms = 200};
    s->c = consensus_new(&o, on_update, s);
    struct consensus_start st = {.term = s->term,
                                 .vote = s->vote,
                                 .snapshot = s->snap.index != 0 ? &s->snap : NULL,
                                 .first = s->first,
                                 .entries = log,
                                 .n = n};
    CHECK(consensus_begin(s->c, w.now, &st) == 0);
    apply(s);
}

static void
disk_apply(struct server *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct op *o = &s->ops[i];
        if (o->truncate)
            s->last = o->index - 1;
        else
            s->log[s->last = o->index] = o->e;
    }
    memmove(s->ops, s->ops + n, (s->n_ops - n) * sizeof(*s->ops));
    s->n_ops -= n;
}

static void
crash(struct server *s)
{
    disk_apply(s, s->n_ops > 0 ? rnd(s->n_ops + 1) : 0);
    consensus_free(s->c);
    s->c = NULL;
    s->n_ops = 0;
    s->flush_at = s->install_at = 0;
    s->restart_at = w.now + 50 + (int64_t)rnd(3000);
    w.crashes++;
}

static void
flush_done(struct server *s)
{
    disk_apply(s, s->flush_ops);
    /* Only what still holds: a truncation that is queued takes back what lies behind it. */
    uint64_t hold = s->last;
    for (size_t i = 0; i < s->n_ops; i++) {
        if (s->ops[i].truncate && s->ops[i].index <= hold)
            hold = s->ops[i].index - 1;
    }
    s->flush_at = 0;
    if (s->n_ops > 0) {
        s->flush_ops = s->n_ops;
        s->flush_at = w.now + 1 + (int64_t)rnd(8);
    }
    if (s->install_at != 0)
        return;
    s->stored = hold;
    CHECK(consensus_persisted(s->c, w.now, hold) == 0);
}

static void
install_done(struct server *s)
{
    s->install_at = 0;
    s->n_ops = 0;
    s->flush_at = 0;
    s->snap = (struct consensus_snapshot){.index = s->install_index,
                                          .term = s->install_term,
                                          .conf = confs[s->install_conf - 1].l,
                                          .conf_index = s->install_conf_index};
    s->conf = s->install_conf;
    s->conf_index = s->install_conf_index;
    s->first = s->install_index + 1;
    s->last = s->mem_last = s->stored = s->applied = s->install_index;
    CHECK(s->applied <= w.n_committed);
    CHECK(consensus_installed(s->c, w.now, &s->snap) == 0);
    w.installs++;
}

static void
take_snapshot(struct server *s)
{
    if (s->applied < s->snap.index + 5 || s->install_at != 0 || s->conf == 0)
        return;
    unsigned trailing = (unsigned)rnd(12);
    s->snap = (struct consensus_snapshot){.index = s->applied,
                                          .term = s->mem[s->applied].term,
                                          .conf = confs[s->conf - 1].l,
                                          .conf_index = s->conf_index};
    CHECK(consensus_snapshot_taken(s->c, w.now, &s->snap, trailing) == 0);
    if (s->applied > trailing && s->applied - trailing + 1 > s->first)
        s->first = s->applied - trailing + 1;
}

static void
deliver(struct msg *m, bool again)
{
    struct server *s = &w.s[m->to];
    unsigned from = (unsigned)m->m.peer - 1;
    if (s->c != NULL && !w.cut[from][m->to]) {
        struct err e = ERR_INIT;
        int rc = consensus_receive(s->c, w.now, &m->m, &e);
        if (rc != 0)
            printf("# seed %lu %s\n", (unsigned long)seed_now, e.text);
        CHECK(rc == 0 || rc == -ERR_INVALID);
        apply(s);
    }
    if (!again)
        msg_free(m);
}

static void
faults(void)
{
    struct server *s = &w.s[rnd(w.n)];
    if (rnd(300) == 0 && s->c != NULL)
        crash(s);
    if (rnd(200) == 0) {
        unsigned a = (unsigned)rnd(w.n);
        for (unsigned b = 0; b < w.n; b++)
            w.cut[a][b] = rnd(2) == 0;
        if (rnd(2) == 0)
            for (unsigned b = 0; b < w.n; b++)
                w.cut[b][a] = w.cut[a][b];
    }
    if (rnd(150) == 0)
        memset(w.cut, 0, sizeof(w.cut));
    if (rnd(100) == 0 && s->c != NULL)
        take_snapshot(s);
}

static void
propose(void)
{
    for (unsigned i = 0; i < w.n; i++) {
        struct server *s = &w.s[i];
        if (s->c == NULL || s->role != CONSENSUS_LEADER || s->mem_last + 8 > LOG_MAX - 200)
            continue;
        uint64_t v[4];
        struct record r[4];
        size_t n = 1 + rnd(4);
        for (size_t k = 0; k < n; k++) {
            v[k] = ++w.next_value;
            r[k] = (struct record){.type = RECORD_COMMAND, .data = &v[k], .n = sizeof(v[k])};
        }
        int rc = consensus_propose(s->c, w.now, r, n);
        CHECK(rc == 0 || rc == -ERR_NOT_LEADER);
    }
}

/* Returns the role that a server is asked to change to; its role as it is: it leaves. */
static int
role_next(int role)
{
    uint64_t what = rnd(3);
    if (what == 0)
        return role;
    switch (role) {
    case PEER_VOTER:
        return what == 1 ? PEER_STANDBY : PEER_SPARE;
    case PEER_STANDBY:
        return PEER_VOTER;
    default:
        return what == 1 ? PEER_STANDBY : PEER_VOTER;
    }
}

static void
change_one(struct server *s, uint64_t id)
{
    const struct peer_list *now = consensus_peers(s->c);
    struct peer v[SERVERS_MAX + 1];
    struct peer_list l = {v, 0};
    bool in = false;
    for (size_t k = 0; k < now->n; k++) {
        struct peer p = now->v[k];
        if (p.id == id) {
            in = true;
            int role = role_next(p.role);
            if (role == (int)p.role)
                continue;
            p.role = role;
        }
        v[l.n++] = p;
    }
    if (!in)
        v[l.n++] = (struct peer){.id = id,
                                 .addr = addrs[id - 1],
                                 .role = rnd(3) == 0 ? PEER_VOTER
                                         : rnd(2)    ? PEER_STANDBY
                                                     : PEER_SPARE};
    struct err e = ERR_INIT;
    int rc = consensus_change(s->c, w.now, &l, &e);
    CHECK(rc == 0 || rc == -ERR_BUSY || rc == -ERR_NOT_LEADER || rc == -ERR_CONFLICT ||
          rc == -ERR_INVALID);
    changes += rc == 0;
}

static void
membership(void)
{
    for (unsigned i = 0; i < w.n; i++) {
        struct server *s = &w.s[i];
        if (s->c == NULL || s->role != CONSENSUS_LEADER)
            continue;
        uint64_t id = rnd(w.n) + 1;
        if (id == s->id)
            continue;
        change_one(s, id);
        if (s->role == CONSENSUS_LEADER && rnd(4) == 0 &&
            consensus_transfer(s->c, w.now, 1 + rnd(w.n)) == 0)
            transfers++;
    }
}

static void
tick(void)
{
    for (unsigned i = 0; i < w.n; i++) {
        struct server *s = &w.s[i];
        if (s->c == NULL && s->restart_at <= w.now)
            start_server(s);
        if (s->c != NULL && s->flush_at != 0 && s->flush_at <= w.now)
            flush_done(s);
        if (s->c != NULL && s->install_at != 0 && s->install_at <= w.now)
            install_done(s);
        if (s->c != NULL && s->timeout <= w.now)
            CHECK(consensus_timeout(s->c, w.now) == 0);
        if (s->c != NULL)
            apply(s);
    }
    for (size_t i = 0; i < w.n_msgs;) {
        struct msg *m = w.msgs[i];
        if (m->at > w.now) {
            i++;
            continue;
        }
        w.msgs[i] = w.msgs[--w.n_msgs];
        bool again = w.chaos && rnd(50) == 0;
        deliver(m, again);
        if (again) {
            m->at = w.now + 1 + (int64_t)rnd(50);
            w.msgs[w.n_msgs++] = m;
        }
    }
    if (rnd(w.chaos ? 20 : 100) == 0)
        propose();
    if (w.chaos)
        faults();
    if (w.chaos && rnd(60) == 0)
        membership();
}

static void
forget_confs(void)
{
    for (size_t i = 0; i < n_confs; i++) {
        mem_free(confs[i].data);
        mem_free(confs[i].l.v);
    }
    n_confs = 0;
}

/* Five servers, three or all of which are members. */
static void
begin(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    seed_now = seed;
    w.rng = seed * 0x9e3779b97f4a7c15U + 1;
    for (int i = 0; i < 10; i++)
        rnd(2);
    w.n = SERVERS_MAX;
    unsigned members = rnd(2) == 0 ? 3 : 5;
    forget_confs();
    struct peer v[SERVERS_MAX];
    for (unsigned i = 0; i < members; i++)
        v[i] = (struct peer){i + 1, addrs[i], PEER_VOTER};
    uint64_t conf = conf_add(&(struct peer_list){v, members});
    for (unsigned i = 0; i < w.n; i++) {
        w.s[i].id = i + 1;
        w.s[i].first = 1;
        if (i >= members)
            continue;
        w.s[i].term = 1;
        w.s[i].last = 1;
        w.s[i].log[1] = (struct ent){.term = 1, .type = RECORD_CONFIG, .value = conf};
    }
    w.n_committed = 1;
    w.committed[1] = w.s[0].log[1];
}

static bool
is_voter(uint64_t id)
{
    uint64_t i = w.n_committed;
    while (w.committed[i].type != RECORD_CONFIG)
        i--;
    const struct peer_list *l = &confs[w.committed[i].value - 1].l;
    for (size_t k = 0; k < l->n; k++)
        if (l->v[k].id == id)
            return l->v[k].role == PEER_VOTER;
    return false;
}

static void
run_seed(uint64_t seed)
{
    begin(seed);
    w.chaos = true;
    for (w.now = 1; w.now < CHAOS_MS; w.now++)
        tick();
    w.chaos = false;
    memset(w.cut, 0, sizeof(w.cut));
    uint64_t before = w.n_committed;
    for (; w.now < CHAOS_MS + HEAL_MS; w.now++)
        tick();
    CHECK(w.n_committed > before); /* progress */
    unsigned leaders = 0;
    for (unsigned i = 0; i < w.n; i++) {
        CHECK(w.s[i].c != NULL);
        if (!is_voter(i + 1))
            continue;
        leaders += w.s[i].role == CONSENSUS_LEADER;
        CHECK(w.s[i].applied + 50 >= w.n_committed); /* nobody is left behind */
    }
    CHECK(leaders == 1);
    for (unsigned i = 0; i < w.n; i++)
        consensus_free(w.s[i].c);
    while (w.n_msgs > 0)
        msg_free(w.msgs[--w.n_msgs]);
}

int
main(int argc, char **argv)
{
    uint64_t n = getenv("PADDOCK_LONG") != NULL ? SEEDS_LONG : SEEDS, applied = 0, crashes = 0, installs = 0;
    if (argc != 1 && (argc != 3 || num_parse_u64(argv[2], &n) < 0))
        return 2;
    eager = argc == 3 && str_eq(argv[1], "--eager");
    bool one = argc == 3 && !str_eq(argv[1], "--seeds");
    for (size_t i = 0; argc == 1 && i < ARRAY_LEN(named); i++)
        run_seed(named[i]);
    for (uint64_t i = one ? n : 1; i <= n; i++) {
        run_seed(i);
        applied += w.applied_total;
        crashes += w.crashes;
        installs += w.installs;
    }
    forget_confs();
    printf(
        "# %lu changes, %lu transfers, %lu entries applied, %lu crashes, %lu snapshots installed\n",
        (unsigned long)changes, (unsigned long)transfers, (unsigned long)applied,
        (unsigned long)crashes, (unsigned long)installs);
    printf("ok 1 - raft-sim: one leader per term, one history, progress after healing\n1..1\n");
    return 0;
}
