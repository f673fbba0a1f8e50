/* SPDX-License-Identifier: Apache-2.0
 *
 * Every verb of struct engine, asked by the client of a task of mock_driver, which has them all.
 */
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "drivers/driver.h"
#include "drivers/mock.h"
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
    ck_assert_int_eq(json_decode_value(ctx, config, strlen(config), BUDGET(1 << 20), &value, &e), 0);
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

/* What is to stop goes on first: it ends by its kill signal, and not by force. */
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

TEST_SUITE_TIMEOUT("engine", 60, paused_time_does_not_count, signals,
                   a_signal_may_be_refused, pauses_and_goes_on,
                   what_is_paused_can_stop)
