/* SPDX-License-Identifier: Apache-2.0
 *
 * The core without its threads: the test is both of them, the clock and the loop.
 */
#include "tests/lib/test.h"

#include "common/duration.h"
#include "server/core/core_int.h"
#include "server/state/state.h"
#include "tests/server/util.h"

enum { POSTED_MAX = 64 };

#define WALL INT64_C(1700000000000000000)

struct shell {
    struct env env;
    int64_t mono_ns;
    struct {
        env_fn *fn;
        void *x;
    } posted[POSTED_MAX];
    size_t n;
    struct core *core;
    bool leads;
    size_t answers;
    int code; /* of the last one */
    uint64_t stored;
};

static int64_t
mono_ns(void *arg)
{
    return ((struct shell *)arg)->mono_ns;
}

static int64_t
wall_ns(void *arg)
{
    (void)arg;
    return WALL;
}

static uint64_t
same_number(void *arg)
{
    (void)arg;
    return 42;
}

static void
post(void *arg, env_fn *fn, void *x)
{
    struct shell *s = arg;

    ck_assert_uint_lt(s->n, POSTED_MAX);
    s->posted[s->n].fn = fn;
    s->posted[s->n++].x = x;
}

static void
on_leader(void *arg, struct state_txn *t)
{
    (void)t;
    ((struct shell *)arg)->leads = true;
}

static void
on_lose(void *arg)
{
    ((struct shell *)arg)->leads = false;
}

static void
stored(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct shell *s = arg;

    (void)res;
    s->answers++;
    s->code = e != NULL ? e->code : 0;
    s->stored = index;
}

static void
run_posted(struct shell *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->posted[i].fn(s->posted[i].x);
    s->n = 0;
}

static void
raft_turn(struct shell *s)
{
    struct core_input in;

    ck_assert(core_wait(s->core, &in)); /* for the disk */
    core_step(s->core, s->mono_ns / NS_PER_MS, &in);
    run_posted(s);
}

static void
apply_turn(struct shell *s)
{
    struct apply_input in;

    ck_assert(apply_wait(s->core, &in));
    apply_step(s->core, s->mono_ns / NS_PER_MS, &in);
    run_posted(s);
}

/* Turns until something is committed, and one that applies it. */
static void
turn(struct shell *s)
{
    while (s->core->apply_in.entries.first == NULL)
        raft_turn(s);
    apply_turn(s);
}

static struct shell *
shell_open(const char *dir)
{
    static const struct log_listener listener = {.on_leader = on_leader, .on_lose = on_lose};
    struct shell *s = mem_new(NULL, struct shell);
    struct core_opts o = {.dir = dir,
                          .env = &s->env,
                          .addr = "a:1",
                          .boot_id = "boot",
                          .state_max = 64 << 20,
                          .snapshot_entries = 1000,
                          .snapshot_bytes = 1 << 20};
    struct err e = ERR_INIT;

    s->env = (struct env){
        .mono_ns = mono_ns, .boot_ns = mono_ns, .wall_ns = wall_ns,
        .random = same_number, .post = post, .arg = s};
    s->mono_ns = NS_PER_S;
    ck_assert_msg(core_open(&o, &s->core, &e) == 0, "%s", e.text);
    core_add_listener(s->core, &listener, s);
    core_begin(s->core, s->mono_ns / NS_PER_MS);
    while (!s->leads)
        turn(s);
    ck_assert(core_is_leader(s->core));
    return s;
}

static void
shell_close(struct shell *s)
{
    core_stop(s->core);
    run_posted(s);
    core_free(s->core);
    mem_free(s);
}

static struct intent *
propose_job(struct shell *s, const char *id)
{
    struct intent *in = intent_new(s, 0);

    in->job_register = type_new(in, &type_intent_job_register);
    in->job_register->job = make_job(in, id, 1);
    core_propose(s->core, in, HOME_LOOP, stored, s);
    return in;
}

static bool
has_job(struct shell *s, const char *id)
{
    struct state_txn *t = core_read_begin(s->core, s);
    bool yes = state_job(t, s, "default", id) != NULL;

    state_read_end(t);
    return yes;
}

START_TEST(a_step_waits_for_nothing_and_asks_no_clock)
{
    struct shell *s = shell_open(tmp_dir());
    struct intent *job = propose_job(s, "j");

    ck_assert_uint_eq(s->answers, 0);
    turn(s);
    ck_assert_uint_eq(s->answers, 1);
    ck_assert_int_eq(s->code, 0);
    ck_assert(has_job(s, "j"));
    ck_assert_int_eq(job->time, WALL);
    struct state_txn *t = core_read_begin(s->core, s);
    ck_assert_uint_eq(state_applied(t), s->stored);
    state_read_end(t);
    shell_close(s);
}
END_TEST

static void
role(struct shell *s, enum consensus_role r)
{
    core_update(s->core, &(struct consensus_update){.role_changed = true,
                                                    .role = r,
                                                    .commit = s->core->raft.commit,
                                                    .timeout_ms = CONSENSUS_NEVER});
    core_step(s->core, s->mono_ns / NS_PER_MS, &(struct core_input){0});
}

/* The entries that were handed over are applied all the same; who waits for it hears at once, and
 * once. */
START_TEST(a_loss_overtakes_what_is_not_applied)
{
    struct shell *s = shell_open(tmp_dir());

    propose_job(s, "inbox");
    while (s->core->apply_in.entries.first == NULL)
        raft_turn(s);
    role(s, CONSENSUS_FOLLOWER);
    run_posted(s);
    ck_assert(!core_is_leader(s->core));
    ck_assert_uint_eq(s->answers, 1);
    ck_assert_int_eq(s->code, -ERR_NOT_LEADER);
    ck_assert(s->leads); /* the other half has not heard of it */
    apply_turn(s);
    ck_assert(!s->leads);
    ck_assert(has_job(s, "inbox"));
    ck_assert_uint_eq(s->answers, 1);

    role(s, CONSENSUS_LEADER);
    turn(s); /* a barrier of its own */
    ck_assert(s->leads && core_is_leader(s->core));
    shell_close(s);
}
END_TEST

/* Lost before its barrier is applied: it never begins. */
START_TEST(a_barrier_of_a_lost_leadership_begins_nothing)
{
    struct shell *s = shell_open(tmp_dir());

    role(s, CONSENSUS_FOLLOWER);
    apply_turn(s);
    role(s, CONSENSUS_LEADER);
    while (s->core->apply_in.entries.first == NULL)
        raft_turn(s);
    role(s, CONSENSUS_FOLLOWER);
    apply_turn(s);
    ck_assert(!s->leads && !core_is_leader(s->core));
    ck_assert_uint_eq(s->core->apply.applied, s->core->raft.handed);
    shell_close(s);
}
END_TEST

/* More than a turn's part is proposed in several, in order. */
START_TEST(a_turn_proposes_a_bounded_part)
{
    struct shell *s = shell_open(tmp_dir());

    for (int i = 0; i < CORE_PROPOSE_N + 10; i++)
        propose_job(s, mem_printf(s, "j-%d", i));
    uint64_t last = raft_log_last(s->core->raft.log);
    raft_turn(s);
    ck_assert_uint_eq(raft_log_last(s->core->raft.log), last + CORE_PROPOSE_N);
    while (s->answers < CORE_PROPOSE_N + 10)
        turn(s);
    ck_assert(has_job(s, mem_printf(s, "j-%d", CORE_PROPOSE_N + 9)));
    ck_assert_uint_eq(s->core->unapplied, 0);
    shell_close(s);
}
END_TEST

TEST_SUITE("step", a_step_waits_for_nothing_and_asks_no_clock, a_loss_overtakes_what_is_not_applied,
           a_barrier_of_a_lost_leadership_begins_nothing, a_turn_proposes_a_bounded_part)
