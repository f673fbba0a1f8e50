/* SPDX-License-Identifier: Apache-2.0
 *
 * Three cores, whole but for their threads, on one virtual clock: log and state on disk, messages
 * as bytes over links that delay, lose and cut; servers that end and come back; one that is away
 * for longer than the window of recent entries is. Checked: never two leaders of a term, every
 * acknowledged write is in every state after healing, and a write works then.
 *
 * usage: test-cluster [--seed N | --seeds N]     one seed (replays), or that many
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/core/core_int.h"
#include "tests/server/util.h"

enum { IDLE_MS = 20000, IDLE_LETTERS_S = 12 };
enum { N = 3, SEEDS = 6, CHAOS_MS = 8000, HEAL_MS = 8000, ACKED_MAX = 8192, TERMS_MAX = 4096 };

struct letter {
    struct letter *next;
    int64_t at;
    unsigned from, to;
    struct buf body;
};

struct posted {
    struct posted *next;
    env_fn *fn;
    void *x;
};

struct member {
    unsigned i;
    struct env env;
    struct core_net net;
    struct core *core; /* NULL: down */
    char *dir;
    int64_t back_at, still_until; /* it stands still: what it is sent waits, */
    int64_t deaf_at;              /* and from here on is lost; 0: nothing is */
    bool leads;
    uint64_t installed; /* index of the state that it was sent */
};

static struct {
    uint64_t seed, rng;
    int64_t now;
    bool chaos, cut[N][N];
    struct member v[N];
    struct letter *letters;
    FIFO(struct posted) posted;
    char acked[ACKED_MAX];
    unsigned n_writes;
    uint64_t leader_of[TERMS_MAX];
    int64_t elected_at[TERMS_MAX];
    unsigned restarts, sure, lost, open, sent, reads, installs;
} w;

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            printf("not ok - seed %lu at %ld ms: %s (line %d)\n", (unsigned long)w.seed,           \
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

/* --- the environment of a core --- */

static int64_t
mono_ns(void *arg)
{
    (void)arg;
    return w.now * NS_PER_MS;
}

static int64_t
wall_ns(void *arg) /* clocks that do not agree */
{
    return (INT64_C(1700000000000) + w.now - 700 * ((struct member *)arg)->i) * NS_PER_MS;
}

static uint64_t
chance(void *arg)
{
    (void)arg;
    return rnd(UINT64_MAX);
}

static void
post(void *arg, env_fn *fn, void *x)
{
    (void)arg;
    struct posted *p = mem_new(NULL, struct posted);
    p->fn = fn;
    p->x = x;
    fifo_add(&w.posted, p);
}

static void
run_posted(void)
{
    while (w.posted.first != NULL) {
        struct posted *p = fifo_take(&w.posted);
        p->fn(p->x);
        mem_free(p);
    }
}

static bool
net_send(void *arg, uint64_t to, const char *addr, struct buf *body)
{
    struct member *n = arg;
    CHECK(to >= 1 && to <= N && addr[0] == 's');
    if (w.chaos && rnd(100) < 3)
        return rnd(2) == 0; /* lost on the way, or refused here */
    struct letter *l = mem_new(NULL, struct letter);
    l->at = w.now + 1 + (int64_t)rnd(w.chaos && rnd(20) == 0 ? 200 : 4);
    l->from = n->i;
    l->to = (unsigned)to - 1;
    l->body = *body;
    buf_init(body, 0);
    l->next = w.letters;
    w.letters = l;
    w.sent++;
    return true;
}

static void
leader_changed(void *arg)
{
    struct member *n = arg;
    if (n->core == NULL)
        return;
    auto_mem void *tmp = mem_ctx("status");
    struct core_status s;
    core_status(n->core, tmp, &s);
    if (s.role != CONSENSUS_LEADER)
        return;
    CHECK(s.term < TERMS_MAX && (w.leader_of[s.term] == 0 || w.leader_of[s.term] == n->i + 1));
    if (w.leader_of[s.term] == 0)
        w.elected_at[s.term] = w.now;
    w.leader_of[s.term] = n->i + 1;
}

/* --- servers --- */

static void
on_leader(void *arg, struct state_txn *t)
{
    (void)t;
    ((struct member *)arg)->leads = true;
}

static void
on_lose(void *arg)
{
    ((struct member *)arg)->leads = false;
}

static void
begin_again(void *arg)
{
    (void)arg;
    CHECK(!"the state that was sent can be taken");
}

static void
start(struct member *n)
{
    static const struct log_listener listener = {.on_leader = on_leader, .on_lose = on_lose};
    struct err e = ERR_INIT;
    struct core_opts o = {.dir = n->dir,
                          .addr = (const char *[]){"s1:1", "s2:1", "s3:1"}[n->i],
                          .boot_id = "boot",
                          .id = n->i + 1,
                          .expect = N,
                          .state_max = 256 << 20,
                          .segment_bytes = 64 << 10,
                          .snapshot_entries = 150,
                          .snapshot_bytes = 1 << 20,
                          .trailing = w.seed % 2 == 0 ? 40 : 0, /* who is away is sent the state */
                          .net = &n->net,
                          .env = &n->env};
    n->env = (struct env){
        .mono_ns = mono_ns, .boot_ns = mono_ns, .wall_ns = wall_ns, .random = chance, .post = post, .arg = n};
    n->net = (struct core_net){net_send, leader_changed, begin_again, n};
    n->back_at = 0;
    n->leads = false;
    n->still_until = 0;
    n->installed = 0;
    int rc = core_open(&o, &n->core, &e);
    if (rc < 0)
        printf("# %s\n", e.text);
    CHECK(rc == 0 && core_id(n->core) == n->i + 1);
    core_add_listener(n->core, &listener, n);
    if (core_is_new(n->core) && n->i == 1) { /* it has the consent of all */
        struct peer v[N] = {
            {1, "s1:1", PEER_VOTER}, {2, "s2:1", PEER_VOTER}, {3, "s3:1", PEER_VOTER}};
        CHECK(core_found(n->core, &(struct peer_list){v, N}, &e) == 0);
    }
    core_begin(n->core, w.now);
}

/* A turn of each half, if there is something to do; the disk is done at once. */
static void
turn(struct member *n)
{
    struct core *c = n->core;
    __typeof__(c->raft_in) *in = &c->raft_in;
    if (in->proposals.first != NULL || in->durable_news || in->msgs.first != NULL ||
        in->snapshot != NULL || c->raft.todo.first != NULL || c->raft.timeout_ms <= w.now ||
        c->raft.role_new) {
        struct core_input ci;
        CHECK(core_wait(c, &ci));
        core_step(c, w.now, &ci);
        raft_log_sync(c->raft.log);
    }
    struct feed_read *x = w.chaos && rnd(3) > 0 ? NULL : feed_wanted(c, false);
    w.reads += x != NULL;
    if (x != NULL)
        feed_do(c, x);
    w.installs += c->raft.installed > n->installed;
    n->installed = c->raft.installed;
    if (w.chaos && c->apply_in.install != NULL && rnd(3) > 0)
        return; /* its thread is slow */
    if (c->apply_in.entries.first != NULL || c->apply_in.lost || c->apply_in.calls.first != NULL ||
        c->apply_in.install != NULL || c->apply.todo.first != NULL) {
        struct apply_input ai;
        CHECK(apply_wait(c, &ai));
        apply_step(c, w.now, &ai);
    }
    run_posted();
}

static void
stop(struct member *n, int64_t away_ms)
{
    /* the work of its threads: what was admitted is proposed, and a snapshot that was written is
     * told */
    while (n->core->raft_in.proposals.first != NULL || n->core->raft.todo.first != NULL ||
           n->core->apply.snapshotting)
        turn(n);
    struct core *c = TAKE(n->core);
    core_stop(c);
    run_posted();
    core_free(c);
    n->back_at = w.now + away_ms;
    w.restarts++;
}

/* --- writes --- */

static void
written(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    (void)res;
    CHECK((e == NULL) == (index > 0));
    w.open--;
    if (e == NULL)
        w.acked[(uintptr_t)arg] = 1;
    else
        w.lost++;
}

static void
write_some(struct member *n, size_t count)
{
    bool big = rnd(150) == 0 && count < 8;
    for (size_t k = 0; k < count && w.n_writes < ACKED_MAX; k++) {
        struct intent *in = intent_new(NULL, 0);
        in->job_register = type_new(in, &type_intent_job_register);
        in->job_register->job = make_job(in, mem_printf(in, "j-%u", w.n_writes), 1);
        if (rnd(150) == 0 || big) { /* several do not fit one message */
            char *text = mem_array(in, char, 400 << 10);
            memset(text, 'x', (400 << 10) - 1);
            str_map_set(in, &in->job_register->job->meta, "m", text);
        }
        w.open++;
        core_propose(n->core, in, HOME_LOOP, written, (void *)(uintptr_t)w.n_writes++);
        mem_free(in);
    }
}

static bool
has_job(struct member *n, unsigned i)
{
    auto_mem void *tmp = mem_ctx("read");
    struct state_txn *t = core_read_begin(n->core, tmp);
    bool yes = state_job(t, tmp, "default", mem_printf(tmp, "j-%u", i)) != NULL;
    state_read_end(t);
    return yes;
}

/* --- time --- */

static void
deliver(void)
{
    for (struct letter **at = &w.letters; *at != NULL;) {
        struct letter *l = *at;
        if (l->at > w.now) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        struct member *to = &w.v[l->to];
        struct err e = ERR_INIT;
        static const char *const addrs[] = {"s1:1", "s2:1", "s3:1"};
        bool deaf = to->still_until > w.now && to->deaf_at != 0 && to->deaf_at <= w.now;
        if (to->core != NULL && !w.cut[l->from][l->to] && !deaf)
            CHECK(core_receive(to->core, l->from + 1, addrs[l->from], l->body.data, l->body.len,
                               &e) == 0);
        buf_done(&l->body);
        mem_free(l);
    }
}

/* Whatever it has not learned yet. */
static void
who_is_sure_is_right(const struct member *n)
{
    static const int64_t within[] = {50, 500, 2000};
    auto_mem void *tmp = mem_ctx("sure");
    struct core_status s;
    core_status(n->core, tmp, &s);
    for (size_t i = 0; i < ARRAY_LEN(within); i++) {
        if (!core_is_leader(n->core) || !core_leads_surely(n->core, within[i]))
            continue;
        w.sure++;
        for (uint64_t t = s.term + 1; t < TERMS_MAX && t < s.term + 20; t++)
            CHECK(w.leader_of[t] == 0 || w.elected_at[t] >= w.now - within[i]);
    }
}

static void
faults(void)
{
    struct member *n = &w.v[rnd(N)];
    if (rnd(400) == 0 && n->core != NULL) {
        stop(n, 50 + (int64_t)rnd(rnd(4) == 0 ? 4000 : 800));
        if (rnd(2) == 0) /* who is connected to it learns that its process is gone */
            for (unsigned i = 0; i < N; i++)
                if (w.v[i].core != NULL)
                    core_gone(w.v[i].core, n->i + 1);
    }
    if (rnd(200) == 0) {
        n->still_until = w.now + (int64_t)rnd(rnd(2) == 0 ? 4000 : 800);
        n->deaf_at = rnd(2) == 0 ? w.now + (int64_t)rnd(20) : 0;
    }
    if (rnd(300) == 0)
        for (unsigned b = 0; b < N; b++)
            w.cut[n->i][b] = w.cut[b][n->i] = true;
    if (rnd(200) == 0)
        memset(w.cut, 0, sizeof(w.cut));
}

static void
tick(void)
{
    deliver();
    for (unsigned i = 0; i < N; i++) {
        struct member *n = &w.v[i];
        if (n->core == NULL && n->back_at <= w.now)
            start(n);
        if (n->core == NULL || n->still_until > w.now)
            continue;
        who_is_sure_is_right(n);
        turn(n);
        who_is_sure_is_right(n);
        if (n->leads && rnd(w.chaos ? 10 : 200) == 0)
            write_some(n, 1 + rnd(rnd(20) == 0 ? 120 : 3));
    }
    if (w.chaos)
        faults();
}

static uint64_t
term_of(const struct member *n)
{
    auto_mem void *tmp = mem_ctx("term");
    struct core_status st;
    core_status(n->core, tmp, &st);
    return st.term;
}

/* The leader stands still when answers to it are on their way, and nothing else reaches it: when it goes on
 * it believes that it leads, by old news. */
static void
old_answers_make_nobody_sure(void)
{
    struct member *lead = NULL;
    for (unsigned i = 0; i < N; i++)
        lead = w.v[i].leads ? &w.v[i] : lead;
    CHECK(core_leads_surely(lead->core, 2000));
    unsigned term = (unsigned)term_of(lead);
    write_some(lead, 1);
    turn(lead);
    lead->still_until = w.now + 3000;
    lead->deaf_at = w.now + 10;
    for (int64_t end = w.now + 3000; w.now < end; w.now++) {
        deliver();
        for (unsigned i = 0; i < N; i++)
            if (&w.v[i] != lead)
                turn(&w.v[i]);
    }
    CHECK(lead->core->raft_in.msgs.first != NULL && core_is_leader(lead->core));
    CHECK(term_of(lead) == term);
    bool another = false;
    for (unsigned t = term + 1; t < term + 20; t++)
        another |= w.leader_of[t] != 0;
    CHECK(another);
    who_is_sure_is_right(lead);
    turn(lead);
    who_is_sure_is_right(lead);
    for (unsigned i = 0; i < 500; i++, w.now++)
        tick();
}

/* Nobody writes and nothing fails. */
static void
run_idle(int64_t ms)
{
    for (int64_t end = w.now + ms; w.now < end; w.now++) {
        deliver();
        for (unsigned i = 0; i < N; i++)
            turn(&w.v[i]);
    }
}

/* A cluster with nothing to do says little, and keeps its leader when it falls silent. */
static void
stays_quiet(void)
{
    uint64_t term = term_of(&w.v[0]);
    run_idle(IDLE_MS / 2);
    unsigned before = w.sent;
    run_idle(IDLE_MS / 2);
    CHECK(w.sent - before <= IDLE_LETTERS_S * IDLE_MS / 2 / 1000 && w.sent > before);
    for (unsigned i = 0; i < N; i++) {
        CHECK(term_of(&w.v[i]) == term);
        CHECK(core_leads_surely(w.v[i].core, 2000) == w.v[i].leads);
    }
}

static void
run_seed(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    fifo_init(&w.posted);
    w.seed = seed;
    w.rng = seed * 0x9e3779b97f4a7c15U + 1;
    /* each step is made durable: thousands of times, which a disk need not learn */
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    for (unsigned i = 0; i < N; i++) {
        w.v[i].i = i;
        w.v[i].dir = mem_printf(NULL, "%s/paddock-cluster-%d-%u", base, (int)getpid(), i);
        CHECK(dir_make(AT_FDCWD, w.v[i].dir, 0700) == 0);
        w.now = 1000;
        start(&w.v[i]);
    }
    for (; w.now < 3000; w.now++)
        tick();
    CHECK(w.v[0].leads + w.v[1].leads + w.v[2].leads == 1);
    old_answers_make_nobody_sure();
    w.chaos = true;
    for (; w.now < CHAOS_MS; w.now++)
        tick();
    w.chaos = false;
    memset(w.cut, 0, sizeof(w.cut));
    for (; w.now < CHAOS_MS + HEAL_MS / 2; w.now++)
        tick();
    unsigned before = w.n_writes, acked = 0;
    for (; w.now < CHAOS_MS + HEAL_MS; w.now++)
        tick();
    run_idle(500);
    stays_quiet();
    for (unsigned i = 0; i < N; i++) {
        auto_mem void *tmp = mem_ctx("status");
        struct core_status st;
        core_status(w.v[i].core, tmp, &st);
        printf("# server %u: role %d term %lu leader %lu last %lu commit %lu heard %ld; leads %d, "
               "%u open\n",
               i + 1, (int)st.role, (unsigned long)st.term, (unsigned long)st.leader,
               (unsigned long)st.last, (unsigned long)st.commit, (long)st.heard_ms, w.v[i].leads,
               w.open);
    }
    CHECK(w.v[0].leads + w.v[1].leads + w.v[2].leads == 1 && w.open == 0);
    for (unsigned i = 0; i < w.n_writes; i++) {
        acked += (unsigned)w.acked[i];
        CHECK(i < before || w.acked[i]); /* all is well again */
        for (unsigned k = 0; k < N && w.acked[i]; k++)
            CHECK(has_job(&w.v[k], i));
        CHECK(has_job(&w.v[0], i) == has_job(&w.v[1], i) &&
              has_job(&w.v[1], i) == has_job(&w.v[2], i));
    }
    CHECK(w.n_writes > before);
    printf("# seed %lu: %u writes acknowledged, %u failed, %u restarts, %u reads, %u states sent, "
           "%u times sure\n",
           (unsigned long)seed, acked, w.lost, w.restarts, w.reads, w.installs, w.sure);
    for (unsigned i = 0; i < N; i++) {
        stop(&w.v[i], 0);
        CHECK(dir_remove(AT_FDCWD, w.v[i].dir, NULL) == 0);
        mem_free(w.v[i].dir);
    }
    while (w.letters != NULL) {
        struct letter *l = w.letters;
        w.letters = l->next;
        buf_done(&l->body);
        mem_free(l);
    }
}

int
main(int argc, char **argv)
{
    uint64_t n = SEEDS;
    if (argc != 1 && (argc != 3 || num_parse_u64(argv[2], &n) < 0))
        return 2;
    bool one = argc == 3 && !str_eq(argv[1], "--seeds");
    for (uint64_t i = one ? n : 1; i <= n; i++)
        run_seed(i);
    printf("ok 1 - cluster: one leader per term, nothing acknowledged is lost, progress after "
           "healing\n1..1\n");
    return 0;
}
