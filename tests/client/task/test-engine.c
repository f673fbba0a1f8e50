/* SPDX-License-Identifier: Apache-2.0
 *
 * Every verb of struct engine, asked by the client of a task of mock_driver, which has them all.
 */
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "drivers/driver.h"
#include "tests/lib/mock.h"
#include "tests/client/world.h"
#include "tests/lib/test.h"

static struct world_alloc *
begin(struct world *w, const char *config)
{
    world_start(w, geteuid());
    driver_add(&driver_mock);
    struct world_alloc *x = world_add(w, "service", "mock_driver", config,
                                      ",\"RestartPolicy\":{\"Attempts\":0,\"Mode\":\"fail\"}");
    world_client(w);
    world_until(w, world_status(x, "running"));
    return x;
}

static struct err
signal_it(struct world *w, const struct world_alloc *x, const char *sig)
{
    struct world_done d = {0};
    client_alloc_signal(w->client, x->a->id, "", sig, world_on_done, &d);
    world_until(w, d.done);
    return d.e;
}

static struct err
pause_it(struct world *w, const struct world_alloc *x, bool on)
{
    struct world_done d = {0};
    client_alloc_pause(w->client, x->a->id, "", on, world_on_done, &d);
    world_until(w, d.done);
    return d.e;
}

/* --- the engine alone --- */

struct alone {
    struct engine_task *t;
    bool over, answered;
};

static void
alone_answered(void *arg, const struct err *e)
{
    struct alone *a = arg;
    ck_assert_ptr_null(e);
    a->answered = true;
}

static void
alone_started(void *arg, int64_t started_ns)
{
    struct alone *a = arg;
    ck_assert_int_gt(started_ns, 0);
    driver_mock.engine->pause(a->t, true, alone_answered, a);
}

static void
alone_exited(void *arg, const struct engine_exit *x)
{
    struct alone *a = arg;
    ck_assert_int_eq(x->code, 3);
    a->over = true;
}

/* It is paused as it starts, and does not end until it goes on. */
START_TEST(paused_time_does_not_count)
{
    static const struct engine_events up = {.started = alone_started, .exited = alone_exited};
    const char config[] = "{\"run_for\":\"20ms\",\"exit_code\":3}";
    void *ctx = mem_ctx("test");
    struct value *value = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(json_decode_value(ctx, SLICE(config, strlen(config)), BUDGET(1 << 20), &value, &e), 0);
    const struct driver_input in = {.config = value};
    struct loop *loop = loop_new();
    const struct engine_place p = {.loop = loop};
    struct alone a = {0};
    a.t = driver_mock.engine->start(&p, &in, &up, &a, &e);
    ck_assert(loop_run_until(loop, &a.answered, 10000));
    ck_assert(!loop_run_until(loop, &a.over, 100));
    a.answered = false;
    driver_mock.engine->pause(a.t, false, alone_answered, &a);
    ck_assert(loop_run_until(loop, &a.over, 10000));
    ck_assert(a.answered);
    driver_mock.engine->close(a.t);
    loop_free(loop);
    talloc_free(ctx);
}
END_TEST

/* --- by the client --- */

START_TEST(signals)
{
    struct world w;
    struct world_alloc *x = begin(&w, "{\"run_for\":\"1h\"}");
    ck_assert_int_eq(signal_it(&w, x, "SIGUSR1").code, 0);
    world_until(&w, world_event(x, "Signaling") != NULL);
    world_stop(&w);
}
END_TEST

START_TEST(a_signal_may_be_refused)
{
    struct world w;
    struct world_alloc *x = begin(&w, "{\"run_for\":\"1h\",\"signal_error\":\"deaf\"}");
    ck_assert_str_eq(signal_it(&w, x, "SIGUSR1").text, "deaf");
    world_stop(&w);
}
END_TEST

/* A second word changes nothing. */
START_TEST(pauses_and_goes_on)
{
    struct world w;
    struct world_alloc *x = begin(&w, "{\"run_for\":\"1h\"}");
    ck_assert_int_eq(pause_it(&w, x, true).code, 0);
    ck_assert_int_eq(pause_it(&w, x, true).code, 0);
    world_until(&w, world_event(x, "Paused") != NULL);
    ck_assert_str_eq(world_task(x)->paused, "pause");
    ck_assert_int_eq(pause_it(&w, x, false).code, 0);
    world_until(&w, world_event(x, "Resumed") != NULL);
    ck_assert(str_empty(world_task(x)->paused));
    world_stop(&w);
}
END_TEST

/* A paused task that is to stop goes on first: it ends by its kill signal, and not by force. */
START_TEST(what_is_paused_can_stop)
{
    struct world w;
    struct world_alloc *x = begin(&w, "{\"run_for\":\"1h\"}");
    ck_assert_int_eq(pause_it(&w, x, true).code, 0);
    x->a->desired_status = "stop";
    world_changed(&w, x);
    world_until(&w, world_status(x, "complete"));
    ck_assert_ptr_nonnull(world_event(x, "Resumed"));
    world_stop(&w);
}
END_TEST

/* --- commands --- */

struct session {
    struct client_exec *x;
    struct buf out[2];
    int closed, code, signal;
    bool over;
    struct err e;
};

static void
on_output(void *arg, int stream, const void *p, size_t n)
{
    struct session *s = arg;
    buf_put(&s->out[stream - 1], p, n);
}

static void
on_closed(void *arg, int stream)
{
    struct session *s = arg;
    s->closed += stream;
}

static void
on_writable(void *arg)
{
    (void)arg;
}

static void
on_exited(void *arg, int code, int signal)
{
    struct session *s = arg;
    s->code = code;
    s->signal = signal;
    s->over = true;
}

static void
on_failed(void *arg, const struct err *e)
{
    struct session *s = arg;
    s->e = *e;
    s->over = true;
}

static void
session_open(struct world *w, const struct world_alloc *x, const char *command, struct session *s)
{
    static const struct client_exec_events events = {on_output, on_closed, on_writable, on_exited,
                                                     on_failed};
    const char *words[] = {command};
    const struct client_exec_request req = {.command = {words, 1}};
    *s = (struct session){.out = {BUF_INIT(1 << 20), BUF_INIT(1 << 20)}};
    s->x = client_exec_open(w->client, x->a->id, &req, &events, s);
}

static void
session_done(struct world *w, struct session *s)
{
    world_until(w, s->over);
    client_exec_free(s->x);
}

static void
session_free(struct session *s)
{
    buf_done(&s->out[0]);
    buf_done(&s->out[1]);
}

START_TEST(a_command_answers_by_its_config)
{
    struct world w;
    struct session s;
    struct world_alloc *x =
        begin(&w, "{\"run_for\":\"1h\",\"exec_command\":{\"run_for\":\"1ms\",\"exit_code\":7,"
                  "\"stdout_string\":\"ab\",\"stdout_repeat\":2,\"stdout_repeat_duration\":\"5ms\","
                  "\"stderr_string\":\"no\"}}");
    session_open(&w, x, "/bin/any", &s);
    session_done(&w, &s);
    ck_assert_int_eq(s.e.code, 0);
    ck_assert_int_eq(s.code, 7);
    ck_assert_int_eq(s.closed, 3); /* both */
    ck_assert_str_eq(buf_str(&s.out[0]), "ababab");
    ck_assert_str_eq(buf_str(&s.out[1]), "no");
    session_free(&s);
    session_open(&w, x, "showinput", &s);
    ck_assert_int_eq(client_exec_write(s.x, "one ", 4), 0); /* before it runs */
    world_turn(&w);
    ck_assert_int_eq(client_exec_write(s.x, "two", 3), 0);
    client_exec_close_input(s.x);
    session_done(&w, &s);
    ck_assert_str_eq(buf_str(&s.out[0]), "TTY: false\nStdin:\none two\n");
    session_free(&s);
    session_open(&w, x, "showinput", &s); /* who leaves */
    client_exec_free(s.x);
    session_free(&s);
    world_stop(&w);
}
END_TEST

START_TEST(without_a_config_there_is_no_command)
{
    struct world w;
    struct session s;
    struct world_alloc *x = begin(&w, "{\"run_for\":\"1h\"}");
    session_open(&w, x, "/bin/any", &s);
    session_done(&w, &s);
    ck_assert_str_eq(s.e.text, "no exec command is configured");
    session_free(&s);
    world_stop(&w);
}
END_TEST

/* --- what it uses and writes --- */

START_TEST(statistics_are_the_engines)
{
    struct world w;
    struct alloc_resource_usage *u = NULL;
    struct err e = ERR_INIT;
    world_start(&w, geteuid());
    driver_add(&driver_mock);
    struct world_alloc *x = world_add(&w, "service", "mock_driver", "{\"run_for\":\"1h\"}", "");
    struct allocated_resources *all = x->a->allocated_resources = mem_new(w.ctx, struct allocated_resources);
    struct allocated_task_resources *of = mem_new(all, struct allocated_task_resources);
    of->memory = mem_new(of, struct allocated_memory_resources);
    of->memory->memory_mb = 64;
    map_put(all, all->tasks, "t")->v = of;
    world_client(&w);
    world_until(&w, world_status(x, "running"));
    ck_assert_int_eq(client_alloc_stats(w.client, w.ctx, x->a->id, "", &u, &e), 0);
    const struct resource_usage *r = u->resource_usage;
    ck_assert_uint_eq(r->memory_stats->rss, 64 << 20);
    ck_assert_int_eq(u->tasks.n, 1);
    ck_assert_uint_gt(r->cpu_stats->measured.n, 0);
    world_stop(&w);
}
END_TEST

/* Also after the end, until the next start; and from where one wants. */
START_TEST(output_is_the_engines)
{
    struct world w;
    struct world_alloc *x =
        begin(&w, "{\"run_for\":\"1h\",\"stdout_string\":\"line\\n\",\"stdout_repeat\":3,"
                  "\"stdout_repeat_duration\":\"1ms\"}");
    struct client_stream_request req = {.kind = CLIENT_STREAM_LOGS,
                                        .alloc_id = x->a->id,
                                        .task = "t",
                                        .log_type = "stderr",
                                        .plain = true};
    ck_assert_ptr_nonnull(strstr(world_read(&w, &req), "has no stderr log yet"));
    req.log_type = "stdout";
    world_until(&w, strlen(world_read(&w, &req)) == 20);
    req.offset = 7;
    req.from_end = true;
    ck_assert_str_eq(world_read(&w, &req), "e\nline\n");
    req.from_end = false;
    ck_assert_str_eq(world_read(&w, &req), "ne\nline\nline\n");
    req.offset = 0;
    req.plain = false;
    ck_assert_ptr_nonnull(strstr(world_read(&w, &req), "\"File\":\"alloc/logs/t.stdout.0\""));
    x->a->desired_status = "stop";
    world_changed(&w, x);
    world_until(&w, world_status(x, "complete"));
    req.plain = req.follow = true;
    ck_assert_str_eq(world_read(&w, &req), "line\nline\nline\nline\n");
    world_stop(&w);
}
END_TEST

/* --- limits, adoption, networks, health, files --- */

START_TEST(limits_change_while_it_runs)
{
    struct world w;
    struct world_alloc *x = begin(&w, "{\"run_for\":\"1h\"}");
    struct task *t = x->a->job->task_groups.v[0]->tasks.v[0];
    t->isolation = mem_new(w.ctx, struct task_isolation);
    t->isolation->pids_max = 7;
    world_changed(&w, x);
    x->a->job->job_modify_index = w.index;
    world_until(&w, world_event(x, "Driver") != NULL);
    ck_assert_str_eq(world_event(x, "Driver")->display_message, "limits changed");
    world_stop(&w);
}
END_TEST

/* It has run on while no agent was there, and ends when it would have. */
START_TEST(it_is_adopted)
{
    struct world w;
    int64_t before = clock_mono_ns(); /* the wall clock may be slewed meanwhile */
    struct world_alloc *x = begin(&w, "{\"run_for\":\"1500ms\",\"exit_code\":4}");
    struct world_alloc *y = world_add(&w, "service", "mock_driver", "{\"run_for\":\"1h\"}", "");
    world_until(&w, world_status(y, "running"));
    int64_t began = world_task(x)->started_at;
    world_client_stop(&w);
    world_client(&w);
    world_until(&w, world_event(x, "Terminated") != NULL);
    ck_assert_int_ge(clock_mono_ns() - before, 1500 * NS_PER_MS);
    ck_assert_int_eq(world_event(x, "Terminated")->exit_code, 4);
    ck_assert_int_eq(world_task(x)->started_at, began);
    ck_assert_str_eq(world_task(y)->state, "running");
    ck_assert_int_eq(signal_it(&w, y, "SIGUSR1").code, 0);
    world_stop(&w);
}
END_TEST

START_TEST(its_group_has_a_network)
{
    struct world w;
    world_start(&w, geteuid());
    driver_add(&driver_mock);
    struct world_alloc *x = world_add(&w, "service", "mock_driver", "{\"run_for\":\"1h\"}",
                                      ",\"Networks\":[{\"Mode\":\"bridge\"}]");
    world_client(&w);
    world_until(&w, world_status(x, "running"));
    ck_assert_str_eq(x->last->network_status->address, MOCK_ADDRESS);
    x->a->desired_status = "stop";
    world_changed(&w, x);
    world_until(&w, world_status(x, "complete"));
    world_stop(&w);
}
END_TEST

/* An engine whose networks are made when the test says so. */
static engine_net_made *net_made;
static void *net_arg;
static unsigned net_removed;

static void
slow_make(const struct engine_place *p, const struct hand_network *n, engine_net_made *made, void *arg)
{
    (void)p, (void)n;
    net_made = made;
    net_arg = arg;
}

static void
count_remove(const struct engine_place *p, engine_done *done, void *arg)
{
    net_removed++;
    driver_mock.engine->net_remove(p, done, arg);
}

/* Its allocation is stopped while it is made: it is removed when it is there, and not before. */
START_TEST(a_network_that_comes_too_late_goes)
{
    struct world w;
    struct engine engine = *driver_mock.engine;
    struct driver driver = driver_mock;
    engine.net_make = slow_make;
    engine.net_remove = count_remove;
    driver.engine = &engine;
    world_start(&w, geteuid());
    driver_add(&driver);
    struct world_alloc *x = world_add(&w, "service", "mock_driver", "{\"run_for\":\"1h\"}",
                                      ",\"Networks\":[{\"Mode\":\"bridge\"}]");
    world_client(&w);
    world_until(&w, net_made != NULL);
    x->a->desired_status = "stop";
    world_changed(&w, x);
    world_until(&w, world_status(x, "complete"));
    ck_assert_uint_eq(net_removed, 0);
    net_made(net_arg, NULL, &(const struct hand_network_state){.address = MOCK_ADDRESS});
    ck_assert_uint_eq(net_removed, 1);
    world_stop(&w);
}
END_TEST

static const struct driver_info *
mock_of(const struct world *w)
{
    __auto_type row = w->node ? map_get(w->node->drivers, "mock_driver") : NULL;
    return row ? row->v : NULL;
}

/* The engine's words are registered. */
START_TEST(its_health_is_registered)
{
    struct world w;
    struct world_alloc *x = begin(&w, "{\"run_for\":\"1h\",\"fingerprint_error\":\"out of order\"}");
    world_until(&w, mock_of(&w) && str_eq(mock_of(&w)->health_description, "out of order"));
    ck_assert(!mock_of(&w)->healthy);
    x->a->desired_status = "stop";
    world_changed(&w, x);
    world_until(&w, mock_of(&w)->healthy);
    world_stop(&w);
}
END_TEST

/* It has no directories: a payload fails the task, and is not lost in silence. */
START_TEST(a_payload_has_no_place)
{
    struct world w;
    world_start(&w, geteuid());
    driver_add(&driver_mock);
    struct world_alloc *x = world_add(&w, "batch", "mock_driver", "{\"run_for\":\"1h\"}", "");
    struct task *t = x->a->job->task_groups.v[0]->tasks.v[0];
    t->dispatch_payload = mem_new(w.ctx, struct dispatch_payload_config);
    t->dispatch_payload->file = "in";
    x->a->job->payload = (struct bytes){(const uint8_t *)"x", 1};
    world_client(&w);
    world_until(&w, world_event(x, "Setup Failure") != NULL);
    ck_assert_ptr_nonnull(strstr(world_event(x, "Setup Failure")->display_message, "mock_driver"));
    world_stop(&w);
}
END_TEST

TEST_SUITE_TIMEOUT("engine", 60, paused_time_does_not_count, signals, a_signal_may_be_refused,
                   pauses_and_goes_on, what_is_paused_can_stop, a_command_answers_by_its_config,
                   without_a_config_there_is_no_command, statistics_are_the_engines,
                   output_is_the_engines, limits_change_while_it_runs, it_is_adopted,
                   its_group_has_a_network, a_network_that_comes_too_late_goes,
                   its_health_is_registered, a_payload_has_no_place)
