/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes that nobody waits for: refused, tried again, called back; and those of a whole server.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/duration.h"
#include "common/str.h"
#include "server/fsm/fsm.h"
#include "server/leader/debts.h"
#include "server/server.h"
#include "server/state/state.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

enum { WAIT_MS = 30000 };

/* Has the place of the log: answers later, with `code`. */
struct log {
    struct loop *loop;
    struct debts *o;
    int code;
    unsigned tried, stored;
    bool enough;
    size_t evals_max;
    char last[32]; /* the nodes of the last miss */
};

struct attempt {
    struct log *log;
    propose_fn *done;
    void *arg;
    int code;
};

static void
answer(void *arg)
{
    struct attempt *a = arg;
    struct log *log = a->log;
    struct err e = ERR_INIT;

    if (a->code != 0)
        err_set(&e, a->code, "refused");
    else
        log->stored++;
    log->enough |= log->stored == 3;
    a->done(a->arg, a->code != 0 ? &e : NULL, a->code != 0 ? 0 : 7, NULL);
    mem_free(a);
}

static void
propose(void *arg, struct intent *in, propose_fn *done, void *done_arg)
{
    struct log *log = arg;
    struct attempt *a = mem_new(NULL, struct attempt);

    *a = (struct attempt){log, done, done_arg, log->code};
    if (in->eval_update != NULL && log->evals_max > 0 && in->eval_update->evals.n > log->evals_max)
        a->code = -ERR_LIMIT;
    if (in->node_status != NULL) {
        snprintf(log->last, sizeof(log->last), "%s ", in->node_status->node_id);
        for (size_t i = 0; i < in->node_status->node_ids.n; i++)
            snprintf(log->last + strlen(log->last), sizeof(log->last) - strlen(log->last), "%s ",
                     in->node_status->node_ids.v[i]);
    }
    log->tried++;
    if (log->tried == 3)
        log->code = 0;
    loop_post(log->loop, answer, a);
}

static struct log
log_new(int code)
{
    struct log log = {.loop = loop_new(), .code = code};
    return log;
}

static void
add(struct log *log, const char *key)
{
    struct intent_node_status st = {.node_id = str_or(key, "n"), .status = NODE_DOWN};
    struct intent in = {.time = 1, .node_status = &st};

    const struct str_list keys = {&key, 1};

    debts_add(log->o, codec_clone(NULL, &type_intent, &in), key != NULL ? &keys : NULL, NULL, NULL);
}

START_TEST(what_was_refused_is_tried_until_it_is_written)
{
    struct log log = log_new(-ENOSPC);
    struct env env;
    env_of_loop(&env, log.loop);
    log.o = debts_new(NULL, &env, propose, &log);
    debts_start(log.o);
    add(&log, NULL);
    add(&log, "a");
    add(&log, "b");
    ck_assert(loop_run_until(log.loop, &log.enough, WAIT_MS));
    debts_stop(log.o);
    mem_free(log.o);
    loop_free(log.loop);
    ck_assert_uint_eq(log.stored, 3);
}
END_TEST

START_TEST(what_is_called_back_is_not_written)
{
    struct log log = log_new(-ENOSPC);
    bool never = false;
    struct env env;
    env_of_loop(&env, log.loop);
    log.o = debts_new(NULL, &env, propose, &log);
    debts_start(log.o);
    add(&log, "a");
    ck_assert(!debts_cancel(log.o, "a")); /* on its way, and refused there */
    add(&log, "b");
    loop_run_until(log.loop, &never, 10);
    ck_assert(debts_cancel(log.o, "b")); /* waits */
    ck_assert(debts_cancel(log.o, "b")); /* is gone */
    loop_run_until(log.loop, &never, 2 * OWED_RETRY_MIN_MS);
    ck_assert_uint_eq(log.tried, 2);
    add(&log, "c");
    debts_stop(log.o); /* the leadership is over */
    loop_run_until(log.loop, &never, 2 * OWED_RETRY_MIN_MS);
    add(&log, "d");
    ck_assert_uint_le(log.tried, 3);
    loop_free(log.loop);
    mem_free(log.o);
}
END_TEST

/* A node of those that were missed together is called back. */
START_TEST(one_of_several_is_called_back)
{
    struct log log = log_new(-ENOSPC);
    bool never = false;
    const char *others[] = {"a", "b", "c"};
    struct str_list keys = {others, 3};
    struct intent_node_status st = {
        .node_id = "a", .status = NODE_DOWN, .node_ids = {others + 1, 2}};
    struct intent in = {.time = 1, .node_status = &st};
    struct env env;

    env_of_loop(&env, log.loop);
    log.o = debts_new(NULL, &env, propose, &log);
    debts_start(log.o);
    add(&log, NULL);
    loop_run_until(log.loop, &never, 10); /* is refused: from here on all wait */
    debts_add(log.o, codec_clone(NULL, &type_intent, &in), &keys, NULL, NULL);
    ck_assert(debts_cancel(log.o, "a"));
    log.code = 0;
    while (log.stored < 2)
        loop_run_until(log.loop, &never, 10);
    ck_assert_str_eq(log.last, "b c ");
    log.code = -ENOSPC;
    debts_add(log.o, codec_clone(NULL, &type_intent, &in), &keys, NULL, NULL);
    ck_assert(!debts_cancel(log.o, "b")); /* on its way, and refused there */
    ck_assert_str_eq(log.last, "a b c ");
    loop_run_until(log.loop, &never, 10);
    log.code = 0;
    while (log.stored < 3)
        loop_run_until(log.loop, &never, 10);
    ck_assert_str_eq(log.last, "a c ");
    loop_free(log.loop);
    mem_free(log.o);
}
END_TEST

START_TEST(what_is_too_large_is_written_in_parts)
{
    auto_mem void *tmp = mem_ctx("test");
    struct log log = log_new(0);
    struct intent_eval_update up = {{NULL, 0}};
    struct intent in = {.time = 1, .eval_update = &up};
    log.evals_max = 3;
    struct env env;
    env_of_loop(&env, log.loop);
    log.o = debts_new(NULL, &env, propose, &log);
    debts_start(log.o);
    for (int i = 0; i < 7; i++)
        list_add(tmp, up.evals, make_eval(tmp, make_job(tmp, "j", 1), mem_printf(tmp, "e%d", i)));
    debts_add(log.o, codec_clone(NULL, &type_intent, &in), NULL, NULL, NULL);
    ck_assert(loop_run_until(log.loop, &log.enough, WAIT_MS));
    loop_free(log.loop);
    mem_free(log.o);
}
END_TEST

/* --- a whole server --- */

struct fx {
    struct loop *loop;
    struct server *s;
};

static void
fx_open(struct fx *f, const struct server_config *cfg)
{
    struct err e = ERR_INIT;
    bool never = false;
    f->loop = loop_new();
    ck_assert_msg(server_new(f->loop, cfg, &f->s, &e) == 0, "%s", e.text);
    ck_assert_msg(server_start(f->s, &e) == 0, "%s", e.text);
    for (int i = 0; i < 2000 && !server_is_leader(f->s); i++)
        loop_run_until(f->loop, &never, 5);
}

static void
set(void *arg)
{
    *(bool *)arg = true;
}

static void
fx_close(struct fx *f)
{
    bool done = false;
    server_stop(f->s, set, &done);
    ck_assert(loop_run_until(f->loop, &done, WAIT_MS));
    loop_free(f->loop);
}

struct written {
    bool done;
    int code;
};

static void
written(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct written *w = arg;
    (void)index;
    (void)res;
    w->code = e != NULL ? e->code : 0;
    w->done = true;
}

static int
put(struct fx *f, struct intent *in)
{
    struct written w = {0};
    server_propose(f->s, in, HOME_LOOP, written, &w);
    ck_assert(loop_run_until(f->loop, &w.done, WAIT_MS));
    return w.code;
}

static void
node_up(struct fx *f, const void *tmp)
{
    struct intent *in = intent_new(tmp, 0);
    in->node_register = type_new(in, &type_intent_node_register);
    in->node_register->node = make_node(in, "n1");
    ck_assert_int_eq(put(f, in), 0);
    in = intent_new(tmp, 0);
    in->node_status = type_new(in, &type_intent_node_status);
    in->node_status->node_id = "n1";
    in->node_status->status = NODE_READY;
    ck_assert_int_eq(put(f, in), 0);
}

static bool
node_is(struct fx *f, const char *status)
{
    auto_mem void *tmp = mem_ctx("node");
    struct state_txn *t = server_read_begin(f->s, tmp);
    bool is = str_eq(state_node(t, tmp, "n1")->status, status);
    state_read_end(t);
    return is;
}

static void
big_jobs(struct fx *f, int n, bool purge)
{
    for (int i = 0; i < n; i++) {
        struct intent *in = intent_new(NULL, 0);
        struct job *j = make_job(in, mem_printf(in, "big-%d", i), 0);
        if (purge) {
            in->job_deregister = type_new(in, &type_intent_job_deregister);
            *in->job_deregister = (struct intent_job_deregister){
                .namespace = "default", .job_id = j->id, .purge = true};
        } else {
            char *text = mem_array(in, char, 1 << 20);
            memset(text, 'x', (1 << 20) - 1);
            str_map_set(in, &j->meta, "m", text);
            in->job_register = type_new(in, &type_intent_job_register);
            in->job_register->job = j;
        }
        ck_assert_int_eq(put(f, in), 0);
        mem_free(in);
    }
}

/* The state is so full that nothing but removing is written while the node is missed. */
START_TEST(a_missed_heartbeat_that_was_refused_is_not_forgotten)
{
    auto_mem void *tmp = mem_ctx("test");
    struct server_config cfg = {
        .data_dir = tmp_dir(),
        .rpc_addr = "127.0.0.1:4647",
        .dev = true,
        .agent = &(const struct agent_server){.failover_heartbeat_ttl = 10 * NS_PER_MS}};
    struct fx f;
    bool never = false;
    fx_open(&f, &cfg);
    node_up(&f, tmp);
    big_jobs(&f, 8, false);
    fx_close(&f);
    cfg.state_max = 8 << 20;
    fx_open(&f, &cfg);
    loop_run_until(f.loop, &never, 1500); /* is missed after a second */
    ck_assert(node_is(&f, NODE_READY));
    big_jobs(&f, 8, true);
    for (int64_t ms = 0; !node_is(&f, NODE_DOWN) && ms < WAIT_MS; ms += 10)
        loop_run_until(f.loop, &never, 10);
    ck_assert(node_is(&f, NODE_DOWN));
    fx_close(&f);
}
END_TEST

/* An allocation that may be away for a while. */
static void
patient_alloc(struct fx *f, const void *tmp)
{
    struct intent *in = intent_new(tmp, 0);
    struct job *j = make_job(in, "patient", 1);
    j->task_groups.v[0]->disconnect = type_new(j, &type_disconnect_strategy);
    j->task_groups.v[0]->disconnect->lost_after = (struct opt_i64){true, 500 * NS_PER_MS};
    in->job_register = type_new(in, &type_intent_job_register);
    in->job_register->job = j;
    ck_assert_int_eq(put(f, in), 0);
    struct state_txn *t = server_read_begin(f->s, tmp);
    j = state_job(t, tmp, "default", "patient");
    state_read_end(t);
    in = intent_new(tmp, 0);
    in->plan_result = type_new(in, &type_plan_result);
    in->plan_result->job = j;
    list_add(in, in->plan_result->placed, make_alloc(in, j, "a1", "n1"));
    ck_assert_int_eq(put(f, in), 0);
}

START_TEST(a_disconnected_node_goes_down_when_its_time_is_over)
{
    auto_mem void *tmp = mem_ctx("test");
    struct server_config cfg = {
        .data_dir = tmp_dir(),
        .rpc_addr = "127.0.0.1:4647",
        .dev = true,
        .agent = &(const struct agent_server){.min_heartbeat_ttl = 50 * NS_PER_MS,
                                              .heartbeat_grace = 50 * NS_PER_MS,
                                              .failover_heartbeat_ttl = 10 * NS_PER_MS}};
    struct fx f;
    bool never = false;
    fx_open(&f, &cfg);
    node_up(&f, tmp);
    patient_alloc(&f, tmp);
    fx_close(&f);
    fx_open(&f, &cfg);
    for (int64_t ms = 0; !node_is(&f, NODE_DISCONNECTED) && ms < WAIT_MS; ms += 10)
        loop_run_until(f.loop, &never, 10);
    for (int64_t ms = 0; !node_is(&f, NODE_DOWN) && ms < WAIT_MS; ms += 10)
        loop_run_until(f.loop, &never, 10);
    ck_assert(node_is(&f, NODE_DOWN));
    fx_close(&f);
}
END_TEST

TEST_SUITE_TIMEOUT("debts", 90, what_was_refused_is_tried_until_it_is_written,
                   what_is_called_back_is_not_written, one_of_several_is_called_back,
                   what_is_too_large_is_written_in_parts,
                   a_missed_heartbeat_that_was_refused_is_not_forgotten,
                   a_disconnected_node_goes_down_when_its_time_is_over)
