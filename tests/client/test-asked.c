/* SPDX-License-Identifier: Apache-2.0
 *
 * The client with a warden that says it is busy, or takes its time: what is asked again, and what becomes
 * of who is stopped meanwhile.
 */
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/client/world.h"
#include "tests/lib/test.h"

/* The linker puts these between the client and the warden (--wrap). */
static struct refusal {
    int code;       /* of the next answers */
    unsigned times; /* so many of them */
    unsigned asked;
} of_net, of_launch;

void __real_warden_net_make(struct warden_client *c, const char *alloc_id,
                            const struct net_request *net, warden_done *done, void *arg);
void __wrap_warden_net_make(struct warden_client *c, const char *alloc_id,
                            const struct net_request *net, warden_done *done, void *arg);
void __real_warden_launch(struct warden_client *c, const struct launch_spec *spec,
                          warden_done *done, void *arg);
void __wrap_warden_launch(struct warden_client *c, const struct launch_spec *spec,
                          warden_done *done, void *arg);

struct refused {
    warden_done *done;
    void *arg;
    int code;
};

static void
refuse(void *arg, const struct err *e, struct warden_reply *r)
{
    struct refused *x = arg;
    struct err refused = ERR_INIT;
    (void)e;
    (void)r;
    err_set(&refused, x->code, "the warden says so");
    x->done(x->arg, &refused, NULL);
    talloc_free(x);
}

static bool
refused(struct refusal *by, struct warden_client *c, warden_done *done, void *arg)
{
    if (by->asked++ >= by->times)
        return false;
    struct refused *x = mem_new(NULL, struct refused);
    *x = (struct refused){done, arg, by->code};
    warden_info(c, refuse, x); /* an answer that comes later, as all do */
    return true;
}

void
__wrap_warden_net_make(struct warden_client *c, const char *alloc_id, const struct net_request *net,
                       warden_done *done, void *arg)
{
    if (!refused(&of_net, c, done, arg))
        __real_warden_net_make(c, alloc_id, net, done, arg);
}

/* A launch that is under way until the test lets it go; then its answer warns. */
static struct held {
    bool on;
    struct warden_client *c;
    struct launch_spec *spec;
    warden_done *done;
    void *arg;
} held;

static void
warned(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)arg;
    if (!e) {
        __auto_type m = *r->msg;
        m.warning = "a limit is missing";
        r->msg = &m;
        held.done(held.arg, NULL, r);
    } else {
        held.done(held.arg, e, r);
    }
}

void
__wrap_warden_launch(struct warden_client *c, const struct launch_spec *spec, warden_done *done,
                     void *arg)
{
    if (held.on && !held.spec)
        held = (struct held){true, c, codec_clone(NULL, &type_launch_spec, spec), done, arg};
    else if (!refused(&of_launch, c, done, arg))
        __real_warden_launch(c, spec, done, arg);
}

static struct world_alloc *
refused_job(struct world *w, struct refusal *by, int code, unsigned times)
{
    world_start(w, 0);
    *by = (struct refusal){code, times, 0};
    struct world_alloc *x = world_add(w, "batch", "exec", "{\"command\":\"/bin/true\"}",
                                      ",\"Networks\":[{\"Mode\":\"none\"}],\"RestartPolicy\":{"
                                      "\"Attempts\":0,\"Mode\":\"fail\"}");
    world_client(w);
    return x;
}

static void
busy_is_asked_again(struct refusal *by)
{
    struct world w;
    struct world_alloc *x = refused_job(&w, by, -ERR_BUSY, 2);
    world_until(&w, world_status(x, "complete") || world_status(x, "failed"));
    ck_assert(world_status(x, "complete"));
    ck_assert_uint_eq(by->asked, 3);
    ck_assert_uint_eq(world_task(x)->restarts, 0);
    world_stop(&w);
}

static void
busy_can_be_stopped(struct refusal *by)
{
    struct world w;
    struct world_alloc *x = refused_job(&w, by, -ERR_BUSY, UINT_MAX);
    world_until(&w, by->asked > 1);
    ck_assert(!world_status(x, "failed"));
    x->a->desired_status = "stop";
    world_changed(&w, x);
    world_until(&w, world_status(x, "complete"));
    unsigned asked = by->asked;
    world_stop(&w);
    ck_assert_uint_eq(by->asked, asked);
}

START_TEST(a_busy_warden_is_asked_again)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    busy_is_asked_again(&of_net);
}
END_TEST

START_TEST(a_launch_that_is_busy_is_asked_again)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    busy_is_asked_again(&of_launch);
}
END_TEST

START_TEST(who_waits_for_a_busy_warden_can_be_stopped)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    busy_can_be_stopped(&of_net);
}
END_TEST

START_TEST(who_waits_for_a_launch_can_be_stopped)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    busy_can_be_stopped(&of_launch);
}
END_TEST

/* Stopped while the warden starts it, and told of a warning with the start. */
START_TEST(who_is_being_launched_is_ended_when_it_runs)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_script(&w, "service", "exec sleep 1000");
    held = (struct held){.on = true};
    world_client(&w);
    world_until(&w, held.spec != NULL && w.parked != NULL);
    x->a->desired_status = "stop";
    unsigned gets = w.gets;
    world_changed(&w, x);
    world_until(&w, w.gets > gets && w.parked != NULL);
    warden_launch(held.c, held.spec, warned, NULL);
    world_until(&w, world_status(x, "complete"));
    ck_assert_ptr_nonnull(world_event(x, "Started"));
    ck_assert_ptr_nonnull(world_event(x, "Terminated")); /* else its process runs on */
    ck_assert_int_eq(world_event(x, "Terminated")->signal, SIGINT);
    ck_assert_ptr_nonnull(world_event(x, "Driver"));
    mem_free(held.spec);
    world_stop(&w);
}
END_TEST

START_TEST(what_is_used_up_fails_the_allocation)
{
    struct world w;
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct world_alloc *x = refused_job(&w, &of_net, -ERR_LIMIT, UINT_MAX);
    world_until(&w, world_status(x, "failed"));
    ck_assert_uint_eq(of_net.asked, 1);
    world_stop(&w);
}
END_TEST

TEST_SUITE_TIMEOUT("asked", 60, a_busy_warden_is_asked_again, a_launch_that_is_busy_is_asked_again,
                   who_waits_for_a_busy_warden_can_be_stopped,
                   who_waits_for_a_launch_can_be_stopped,
                   who_is_being_launched_is_ended_when_it_runs, what_is_used_up_fails_the_allocation)
