/* SPDX-License-Identifier: Apache-2.0
 *
 * The core without its thread: the test is the thread, the clock and the loop.
 */
#include "tests/lib/test.h"

#include "api/terms.h"
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
    uint64_t stored; /* index of the write that is done */
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
stored(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    (void)res;
    ck_assert(e == NULL);
    ((struct shell *)arg)->stored = index;
}

/* One turn; what it posted is run, as the loop would. */
static void
turn(struct shell *s, const struct core_input *in)
{
    core_step(s->core, s->mono_ns / NS_PER_MS, in);
    for (size_t i = 0; i < s->n; i++)
        s->posted[i].fn(s->posted[i].x);
    s->n = 0;
}

START_TEST(a_step_waits_for_nothing_and_asks_no_clock)
{
    static const struct leader_hooks hooks = {.on_leader = on_leader};
    struct shell s = {.env = {.mono_ns = mono_ns, .wall_ns = wall_ns, .random = same_number, .post = post},
                      .mono_ns = NS_PER_S};
    struct core_opts o = {.dir = tmp_dir(),
                          .env = &s.env,
                          .addr = "a:1",
                          .boot_id = "boot",
                          .state_max = 64 << 20,
                          .snapshot_entries = 1000,
                          .snapshot_bytes = 1 << 20};
    auto_mem void *tmp = mem_ctx("test");
    struct err e = ERR_INIT;
    struct core_input in = {0};

    s.env.arg = &s;
    ck_assert_msg(core_open(&o, &s.core, &e) == 0, "%s", e.text);
    core_set_hooks(s.core, &hooks, &s);
    core_begin(s.core, s.mono_ns / NS_PER_MS);
    turn(&s, &in);
    while (!s.leads && core_wait(s.core, &in)) /* for the disk */
        turn(&s, &in);
    struct intent *job = intent_new(tmp, 0);
    job->job_register = type_new(job, &type_intent_job_register);
    job->job_register->job = make_job(job, "j", 1);
    core_propose(s.core, job, stored, &s);
    ck_assert_uint_eq(s.stored, 0);
    ck_assert(core_wait(s.core, &in));
    turn(&s, &in);
    while (s.stored == 0 && core_wait(s.core, &in))
        turn(&s, &in);
    struct state_txn *t = state_read_begin(core_state(s.core), tmp);
    ck_assert(state_job(t, tmp, "default", "j") != NULL);
    ck_assert_uint_eq(state_applied(t), s.stored);
    state_read_end(t);
    ck_assert_int_eq(job->time, WALL);
    core_stop(s.core);
    core_free(s.core);
}
END_TEST

TEST_SUITE("step", a_step_waits_for_nothing_and_asks_no_clock)
