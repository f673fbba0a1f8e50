/* SPDX-License-Identifier: Apache-2.0
 *
 * The lifecycle of an allocation: order of starts and stops, by traces over real task machines.
 */
#include <string.h>

#include "client/alloc/alloc_sm.h"
#include "common/duration.h"
#include "common/mem.h"
#include "tests/lib/test.h"

#define T0 (INT64_C(1700000000) * NS_PER_S)

enum { MAX = 8 };

struct world {
    void *ctx;
    struct task_sm sm[MAX];
    const struct task_sm *list[MAX];
    size_t n;
    enum alloc_end end;
};

static void
add(struct world *w, const char *name, enum task_role role, bool sidecar, bool leader)
{
    struct task_sm *m = &w->sm[w->n];
    *m = (struct task_sm){.cfg = {.role = role, .sidecar = sidecar, .leader = leader, .batch = true}};
    m->t = task_sm_new_record(w->ctx, name, T0);
    w->list[w->n++] = m;
}

/* Applies the verdicts once; "+a" starts, "-b" kills. */
static const char *
step(struct world *w)
{
    struct alloc_verdict v[MAX];
    char *s = mem_strdup(w->ctx, "");
    alloc_sm_step(w->list, w->n, w->end, v);
    for (size_t i = 0; i < w->n; i++) {
        if (v[i].start && task_sm_start(&w->sm[i], T0))
            s = mem_printf(w->ctx, "%s+%s", s, w->sm[i].t->name);
        if (v[i].kill && task_sm_kill(&w->sm[i], T0, v[i].why, v[i].sibling, false))
            s = mem_printf(w->ctx, "%s-%s", s, w->sm[i].t->name);
    }
    return s;
}

static struct task_sm *
find(struct world *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->sm[i].t->name, name) == 0)
            return &w->sm[i];
    ck_abort_msg("no task %s", name);
    return NULL;
}

static void
up(struct world *w, const char *name)
{
    task_sm_started(find(w, name), T0, T0);
}

static void
down(struct world *w, const char *name, int code)
{
    struct task_exit x = {.code = code};
    task_sm_exited(find(w, name), T0 + 1, 0, &x);
}

static bool
all_dead(const struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (task_sm_live(w->list[i]->t))
            return false;
    return true;
}

static const char *
status(struct world *w)
{
    const char *text;
    return alloc_sm_status(w->list, w->n, &text);
}

START_TEST(single_batch_task)
{
    auto_mem void *ctx = mem_ctx("t");
    struct world w = {.ctx = ctx};
    add(&w, "a", ROLE_MAIN, false, false);
    ck_assert_str_eq(status(&w), "pending");
    ck_assert_str_eq(step(&w), "+a");
    ck_assert_str_eq(step(&w), "");
    up(&w, "a");
    ck_assert_str_eq(status(&w), "running");
    down(&w, "a", 0);
    ck_assert_str_eq(step(&w), "");
    ck_assert(all_dead(&w));
    ck_assert_str_eq(status(&w), "complete");
}
END_TEST

START_TEST(order_of_starts)
{
    auto_mem void *ctx = mem_ctx("t");
    struct world w = {.ctx = ctx};
    add(&w, "main", ROLE_MAIN, false, false);
    add(&w, "pre", ROLE_PRESTART, false, false);
    add(&w, "side", ROLE_PRESTART, true, false);
    add(&w, "post", ROLE_POSTSTART, false, false);
    add(&w, "stop", ROLE_POSTSTOP, false, false);
    ck_assert_str_eq(step(&w), "+pre+side");
    up(&w, "pre");
    ck_assert_str_eq(step(&w), "");
    down(&w, "pre", 0);
    ck_assert_str_eq(step(&w), ""); /* the sidecar is not up yet */
    up(&w, "side");
    ck_assert_str_eq(step(&w), "+main");
    ck_assert_str_eq(step(&w), "");
    up(&w, "main");
    ck_assert_str_eq(step(&w), "+post");
    up(&w, "post");
    down(&w, "post", 0);
    ck_assert_str_eq(step(&w), "");
    down(&w, "main", 0);
    ck_assert_str_eq(step(&w), "-side"); /* only the sidecar is left */
    ck_assert_str_eq(step(&w), "");
    down(&w, "side", 0);
    ck_assert_str_eq(step(&w), "+stop");
    up(&w, "stop");
    down(&w, "stop", 0);
    ck_assert(all_dead(&w));
    ck_assert_str_eq(status(&w), "complete");
}
END_TEST

static void
rewind_all(struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        task_sm_rewind(&w->sm[i], T0, "operator");
}

/* alloc restart -all-tasks: what ran has ended before the first one starts, in whatever phase. */
START_TEST(what_begins_anew_keeps_its_order)
{
    auto_mem void *ctx = mem_ctx("t");
    struct world w = {.ctx = ctx};
    add(&w, "main", ROLE_MAIN, false, false);
    add(&w, "pre", ROLE_PRESTART, false, false);
    add(&w, "side", ROLE_PRESTART, true, false);
    add(&w, "post", ROLE_POSTSTART, false, false);
    add(&w, "stop", ROLE_POSTSTOP, false, false);
    ck_assert_str_eq(step(&w), "+pre+side");
    up(&w, "pre");
    down(&w, "pre", 0);
    up(&w, "side");
    ck_assert_str_eq(step(&w), "+main");
    rewind_all(&w); /* main is being launched */
    ck_assert_str_eq(step(&w), "");
    down(&w, "side", 1);
    ck_assert_str_eq(step(&w), "");
    ck_assert(task_sm_started(find(&w, "main"), T0, T0) & TASK_ACT_SIGNAL);
    ck_assert_str_eq(step(&w), "");
    down(&w, "main", 143);
    ck_assert_str_eq(status(&w), "pending");
    ck_assert_str_eq(step(&w), "+pre+side");
    up(&w, "side");
    up(&w, "pre");
    ck_assert_str_eq(step(&w), "");
    down(&w, "pre", 0);
    ck_assert_str_eq(step(&w), "+main");
    up(&w, "main");
    ck_assert_str_eq(step(&w), "+post");
    up(&w, "post");
    down(&w, "post", 0);
    rewind_all(&w); /* pre and post are dead */
    rewind_all(&w);
    down(&w, "main", 0);
    ck_assert_str_eq(step(&w), "");
    w.end = ALLOC_END_STOP; /* which wins */
    ck_assert_str_eq(step(&w), "-main-pre-post");
    ck_assert_str_eq(step(&w), "-side");
}
END_TEST

START_TEST(failed_prestart_ends_all)
{
    auto_mem void *ctx = mem_ctx("t");
    struct world w = {.ctx = ctx};
    add(&w, "main", ROLE_MAIN, false, false);
    add(&w, "pre", ROLE_PRESTART, false, false);
    ck_assert_str_eq(step(&w), "+pre");
    up(&w, "pre");
    down(&w, "pre", 1);
    ck_assert_int_eq(find(&w, "pre")->t->phase, TASK_DEAD);
    ck_assert_str_eq(step(&w), "-main");
    ck_assert(all_dead(&w));
    ck_assert_str_eq(status(&w), "failed");
    ck_assert(!find(&w, "main")->t->state->failed);
}
END_TEST

START_TEST(leader_takes_all_along)
{
    auto_mem void *ctx = mem_ctx("t");
    struct world w = {.ctx = ctx};
    add(&w, "a", ROLE_MAIN, false, true);
    add(&w, "b", ROLE_MAIN, false, false);
    step(&w);
    up(&w, "a");
    up(&w, "b");
    down(&w, "a", 0);
    ck_assert_str_eq(step(&w), "-b");
    ck_assert_str_eq(find(&w, "b")->t->state->events.v[3]->type, "Leader Task Dead");
    down(&w, "b", 0);
    ck_assert_str_eq(status(&w), "complete");
}
END_TEST

START_TEST(order_of_stops)
{
    auto_mem void *ctx = mem_ctx("t");
    struct world w = {.ctx = ctx};
    add(&w, "lead", ROLE_MAIN, false, true);
    add(&w, "b", ROLE_MAIN, false, false);
    add(&w, "side", ROLE_PRESTART, true, false);
    add(&w, "last", ROLE_POSTSTOP, false, false);
    step(&w);
    up(&w, "side");
    step(&w);
    up(&w, "lead");
    up(&w, "b");
    w.end = ALLOC_END_STOP;
    ck_assert_str_eq(step(&w), "-lead");
    ck_assert_str_eq(step(&w), "");
    down(&w, "lead", 0);
    ck_assert_str_eq(step(&w), "-b");
    down(&w, "b", 0);
    ck_assert_str_eq(step(&w), "-side");
    down(&w, "side", 0);
    ck_assert_str_eq(step(&w), "+last");
    up(&w, "last");
    ck_assert_str_eq(step(&w), ""); /* poststop runs on although the allocation is to stop */
    down(&w, "last", 0);
    ck_assert_str_eq(status(&w), "complete");
}
END_TEST

START_TEST(stop_before_anything_ran)
{
    auto_mem void *ctx = mem_ctx("t");
    struct world w = {.ctx = ctx, .end = ALLOC_END_STOP};
    add(&w, "a", ROLE_MAIN, false, false);
    add(&w, "last", ROLE_POSTSTOP, false, false);
    ck_assert_str_eq(step(&w), "-a");
    ck_assert_str_eq(step(&w), "-last");
    ck_assert(all_dead(&w));
    ck_assert_str_eq(status(&w), "complete");
}
END_TEST

START_TEST(poststart_that_never_came)
{
    auto_mem void *ctx = mem_ctx("t");
    struct world w = {.ctx = ctx};
    add(&w, "a", ROLE_MAIN, false, false);
    add(&w, "b", ROLE_MAIN, false, false);
    add(&w, "post", ROLE_POSTSTART, true, false);
    ck_assert_str_eq(step(&w), "+a+b");
    up(&w, "a");
    down(&w, "a", 0);
    ck_assert_str_eq(step(&w), "");
    task_sm_start_failed(find(&w, "b"), T0, 0, TASK_EVENT_DRIVER_FAILURE, "x", false);
    ck_assert_str_eq(step(&w), "-post");
    ck_assert(all_dead(&w));
    ck_assert_str_eq(status(&w), "failed");
}
END_TEST

START_TEST(failed_poststop_kills_nothing)
{
    auto_mem void *ctx = mem_ctx("t");
    struct world w = {.ctx = ctx};
    add(&w, "a", ROLE_MAIN, false, false);
    add(&w, "x", ROLE_POSTSTOP, false, false);
    add(&w, "y", ROLE_POSTSTOP, false, false);
    step(&w);
    up(&w, "a");
    down(&w, "a", 0);
    ck_assert_str_eq(step(&w), "+x+y");
    up(&w, "x");
    up(&w, "y");
    down(&w, "x", 1);
    ck_assert_str_eq(step(&w), "");
    down(&w, "y", 0);
    ck_assert(all_dead(&w));
}
END_TEST

/* --- random walks --- */

static uint64_t
next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void
random_world(struct world *w, uint64_t *seed)
{
    w->n = 0;
    add(w, "m0", ROLE_MAIN, false, next(seed) % 3 == 0);
    size_t more = next(seed) % (MAX - 1);
    for (size_t i = 0; i < more; i++) {
        enum task_role role = (enum task_role)(next(seed) % 4);
        bool sidecar = role != ROLE_MAIN && role != ROLE_POSTSTOP && next(seed) % 2;
        add(w, mem_printf(w->ctx, "x%zu", i), role, sidecar, false);
    }
    for (size_t i = 0; i < w->n; i++) {
        w->sm[i].cfg.attempts = (int64_t)(next(seed) % 3);
        w->sm[i].cfg.interval_ns = 60 * NS_PER_S;
        w->sm[i].cfg.delay_ns = NS_PER_S;
        w->sm[i].cfg.batch = next(seed) % 2;
    }
}

/* Something that may happen to a task in its phase. */
static void
happen(struct task_sm *m, uint64_t *seed, int64_t now)
{
    struct task_exit x = {.code = (int64_t)(next(seed) % 2)};
    uint64_t r = next(seed) % 8;
    switch ((enum task_phase)m->t->phase) {
    case TASK_LAUNCHING:
        if (r == 0)
            task_sm_start_failed(m, now, r, TASK_EVENT_SETUP_FAILURE, "x", next(seed) % 2);
        else if (r < 5)
            task_sm_started(m, now, now);
        else if (m->t->kill)
            task_sm_aborted(m, now);
        break;
    case TASK_RUNNING:
        if (r == 0)
            task_sm_exited(m, now, r, &x);
        else if (r == 1)
            task_sm_restart(m, now, "operator");
        else if (r == 2)
            task_sm_vanished(m, now);
        break;
    case TASK_DELAY:
    case TASK_GRACE:
        task_sm_timer(m, m->t->deadline);
        break;
    case TASK_STOPPING:
        if (r < 4)
            task_sm_exited(m, now, r, &x);
        else
            task_sm_timer(m, m->t->deadline);
        break;
    case TASK_FORCED:
        task_sm_exited(m, now, r, &x);
        break;
    default:
        break;
    }
}

/* Asserts what holds after every event, whatever happened. */
static void
invariants(const struct world *w, uint64_t seed)
{
    bool pre_ok = true, others_dead = true;
    for (size_t i = 0; i < w->n; i++) {
        const struct task_sm *m = &w->sm[i];
        if (m->cfg.role == ROLE_PRESTART && !m->cfg.sidecar && m->t->phase != TASK_DEAD)
            pre_ok = false;
        if (m->cfg.role != ROLE_POSTSTOP && m->t->phase != TASK_DEAD)
            others_dead = false;
    }
    for (size_t i = 0; i < w->n; i++) {
        const struct task_sm *m = &w->sm[i];
        bool process = task_sm_process(m->t);
        ck_assert_msg(!(m->cfg.role == ROLE_MAIN && process && !task_sm_unwanted(m->t) && !pre_ok),
                      "main beside prestart, seed %llu",
                      (unsigned long long)seed);
        ck_assert_msg(!(m->cfg.role == ROLE_POSTSTOP && process && !others_dead),
                      "poststop too early, seed %llu", (unsigned long long)seed);
        ck_assert_msg((m->t->phase == TASK_DEAD) == (strcmp(m->t->state->state, "dead") == 0),
                      "state, seed %llu", (unsigned long long)seed);
        ck_assert_msg(m->t->phase != TASK_DEAD || m->t->deadline == 0, "timer of a dead task, seed %llu",
                      (unsigned long long)seed);
    }
}

static bool
is_ending(const struct world *w)
{
    bool killed = false, over = true;
    for (size_t i = 0; i < w->n; i++) {
        killed = killed || (w->sm[i].t->kill && task_sm_live(w->sm[i].t));
        over = over && (w->sm[i].cfg.role == ROLE_POSTSTOP || !task_sm_live(w->sm[i].t));
    }
    return killed || over;
}

START_TEST(overdue_leaves_no_time_to_clean_up)
{
    auto_mem void *ctx = mem_ctx("t");
    struct world w = {.ctx = ctx};
    add(&w, "m", ROLE_MAIN, false, false);
    add(&w, "after", ROLE_POSTSTOP, false, false);
    ck_assert_str_eq(step(&w), "+m");
    up(&w, "m");
    w.end = ALLOC_END_OVERDUE;
    ck_assert_str_eq(step(&w), "-m");
    const struct client_task *t = find(&w, "m")->t;
    const struct task_state *st = t->state;
    ck_assert_str_eq(st->events.v[st->events.n - 1]->display_message,
                     "allocation exceeded max_run_duration");
    down(&w, "m", 137);
    ck_assert_str_eq(step(&w), "-after");
    ck_assert(all_dead(&w));
    ck_assert_str_eq(status(&w), "complete");
    /* one that cleans up already */
    w = (struct world){.ctx = ctx};
    add(&w, "m", ROLE_MAIN, false, false);
    add(&w, "after", ROLE_POSTSTOP, false, false);
    step(&w);
    up(&w, "m");
    down(&w, "m", 0);
    ck_assert_str_eq(step(&w), "+after");
    up(&w, "after");
    w.end = ALLOC_END_OVERDUE;
    ck_assert_str_eq(step(&w), "-after");
}
END_TEST

START_TEST(random_walks_end)
{
    for (uint64_t s = 1; s <= 400; s++) {
        auto_mem void *ctx = mem_ctx("walk");
        uint64_t seed = s * 0x9e3779b97f4a7c15u;
        struct world w = {.ctx = ctx};
        random_world(&w, &seed);
        int64_t now = T0;
        for (int i = 0; i < 60; i++) {
            if (next(&seed) % 16 == 0 && w.end == ALLOC_END_NONE && !is_ending(&w))
                rewind_all(&w);
            step(&w);
            happen(&w.sm[next(&seed) % w.n], &seed, now += NS_PER_S / 4);
            invariants(&w, s);
        }
        w.end = s % 2 == 0 ? ALLOC_END_STOP : ALLOC_END_OVERDUE;
        for (int i = 0; i < 20000 && !all_dead(&w); i++) {
            step(&w);
            happen(&w.sm[(size_t)i % w.n], &seed, now += NS_PER_S / 4);
            invariants(&w, s);
        }
        ck_assert_msg(all_dead(&w), "never ended, seed %llu", (unsigned long long)s);
        const char *st = status(&w);
        ck_assert(strcmp(st, "complete") == 0 || strcmp(st, "failed") == 0);
    }
}
END_TEST

TEST_SUITE("alloc_sm", random_walks_end, overdue_leaves_no_time_to_clean_up, single_batch_task,
           order_of_starts, what_begins_anew_keeps_its_order, failed_prestart_ends_all,
           leader_takes_all_along, order_of_stops, stop_before_anything_ran,
           poststart_that_never_came, failed_poststop_kills_nothing)
