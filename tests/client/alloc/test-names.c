/* SPDX-License-Identifier: Apache-2.0
 *
 * Under which names a client tells its allocations: when they come, when they go, and that the
 * latest set reaches the servers.
 */
#include <string.h>
#include <unistd.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/client/world.h"
#include "tests/lib/test.h"

#define SLEEPS "{\"command\":\"/bin/sleep\",\"args\":[\"1000\"]}"
#define GROUP_SERVICE                                                                              \
    ",\"RestartPolicy\":{\"Attempts\":0,\"Mode\":\"fail\"},\"Services\":[{\"Name\":\"web\","       \
    "\"Provider\":\"nomad\",\"PortLabel\":\"8080\",\"Tags\":[\"old\"]}]"

static struct task_group *
group_of(struct world_alloc *x)
{
    return x->a->job->task_groups.v[0];
}

static void
add_task_service(struct world *w, struct world_alloc *x)
{
    struct service *s = mem_new(w->ctx, struct service);
    *s = (struct service){.name = "db", .provider = "nomad", .port_label = "5432"};
    struct service_list l = {0};
    list_add(w->ctx, l, s);
    group_of(x)->tasks.v[0]->services = l;
}

static bool
has_name(const struct world_alloc *x, const char *name)
{
    for (size_t i = 0; x->names && i < x->names->services.n; i++)
        if (str_eq(x->names->services.v[i]->service_name, name))
            return true;
    return false;
}

static bool
has_names(const struct world_alloc *x, size_t n)
{
    return x->names && x->names->services.n == n;
}

START_TEST(names_come_with_the_tasks_and_go_before_them)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_add(&w, "service", "raw_exec", SLEEPS, GROUP_SERVICE);
    add_task_service(&w, x);
    group_of(x)->shutdown_delay = (struct opt_i64){true, 60 * NS_PER_S};
    x->fewest = SIZE_MAX;
    world_client(&w);
    world_until(&w, has_names(x, 2));
    ck_assert(has_name(x, "web") && has_name(x, "db"));
    ck_assert_uint_eq(x->fewest, 1); /* the group's came first */
    ck_assert(str_prefix(x->names->services.v[0]->id, "_nomad-task-"));
    ck_assert_int_eq(x->names->services.v[0]->port, 8080);
    x->a->desired_status = "stop";
    world_changed(&w, x);
    world_until(&w, has_names(x, 0));
    world_until(&w, world_event(x, "Waiting for shutdown delay") != NULL);
    ck_assert_ptr_null(world_event(x, "Terminated"));
    world_stop(&w);
}
END_TEST

START_TEST(the_latest_set_is_told_until_it_is_taken)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_add(&w, "service", "raw_exec", SLEEPS, GROUP_SERVICE);
    add_task_service(&w, x);
    w.fail_names[0] = -ERR_NO_LEADER;
    w.fail_names[1] = -ERR_TIMEOUT;
    world_client(&w);
    world_until(&w, has_names(x, 2));
    ck_assert_uint_ge(w.asked_names, 3);
    world_stop(&w);
}
END_TEST

START_TEST(what_is_refused_for_good_is_not_sent_again)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_add(&w, "service", "raw_exec", SLEEPS, GROUP_SERVICE);
    w.fail_names[0] = -ERR_INVALID;
    world_client(&w);
    world_until(&w, world_status(x, "running") && world_event(x, "Task hook failed") != NULL);
    ck_assert_str_eq(world_event(x, "Task hook failed")->display_message,
                     "services are not registered: not now");
    bool never = false;
    loop_run_until(w.loop, &never, 2000); /* others are told again after half a second */
    ck_assert_uint_eq(w.asked_names, 1);
    add_task_service(&w, x); /* another set, which may be a better one */
    world_changed(&w, x);
    x->a->job->job_modify_index = w.index;
    world_until(&w, has_names(x, 2));
    world_stop(&w);
}
END_TEST

/* An agent that was away tells the same set, and none that has less. */
START_TEST(an_agent_that_is_back_tells_the_same)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_add(&w, "service", "raw_exec", SLEEPS, GROUP_SERVICE);
    add_task_service(&w, x);
    world_client(&w);
    world_until(&w, has_names(x, 2) && world_status(x, "running"));
    auto_mem void *tmp = mem_ctx("t");
    const struct service_set_request *was =
        codec_clone(tmp, &type_service_set_request, x->names);
    world_client_stop(&w);
    ck_assert(has_names(x, 2));
    x->fewest = SIZE_MAX;
    unsigned told = x->told;
    world_client(&w);
    world_until(&w, x->told > told);
    ck_assert(codec_equal(&type_service_set_request, was, x->names, 0));
    ck_assert_uint_eq(x->fewest, 2);
    world_stop(&w);
}
END_TEST

START_TEST(an_update_in_place_tells_other_names)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_add(&w, "service", "raw_exec", SLEEPS, GROUP_SERVICE);
    world_client(&w);
    world_until(&w, has_names(x, 1) && world_status(x, "running"));
    struct str_list tags = {0};
    list_add(w.ctx, tags, "new");
    group_of(x)->services.v[0]->tags = tags;
    add_task_service(&w, x);
    world_changed(&w, x);
    x->a->job->job_modify_index = w.index;
    world_until(&w, has_names(x, 2));
    ck_assert_str_eq(x->names->services.v[0]->tags.v[0], "new");
    group_of(x)->services.n = group_of(x)->tasks.v[0]->services.n = 0; /* all of them go */
    world_changed(&w, x);
    x->a->job->job_modify_index = w.index;
    world_until(&w, has_names(x, 0));
    world_stop(&w);
}
END_TEST

START_TEST(a_restart_takes_the_names_of_the_task_alone)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_add(&w, "service", "raw_exec", SLEEPS, GROUP_SERVICE);
    add_task_service(&w, x);
    world_client(&w);
    world_until(&w, has_names(x, 2) && world_status(x, "running"));
    x->fewest = SIZE_MAX;
    struct world_done d = {0};
    client_alloc_restart(w.client, x->a->id, "t", false, world_on_done, &d);
    world_until(&w, d.done && x->fewest == 1 && has_names(x, 2));
    ck_assert_int_eq(d.e.code, 0);
    x->fewest = SIZE_MAX;
    struct world_done all = {0};
    client_alloc_restart(w.client, x->a->id, NULL, true, world_on_done, &all);
    world_until(&w, all.done && x->fewest == 0 && has_names(x, 2));
    world_stop(&w);
}
END_TEST

START_TEST(a_group_whose_service_has_no_port_does_not_start)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_add(&w, "service", "raw_exec", SLEEPS, GROUP_SERVICE);
    group_of(x)->services.v[0]->port_label = "none";
    world_client(&w);
    world_until(&w, world_status(x, "failed"));
    const struct task_event *ev = world_event(x, "Setup Failure");
    ck_assert_ptr_nonnull(ev);
    ck_assert_msg(strstr(ev->display_message, "unable to get address for service \"web\": invalid "
                                              "port \"none\": port label not found") != NULL,
                  "%s", ev->display_message);
    ck_assert_uint_eq(w.asked_names, 0);
    world_stop(&w);
}
END_TEST

START_TEST(a_node_without_services_starts_no_group_that_has_some)
{
    struct world w;
    world_start(&w, geteuid());
    w.agent.nomad_service_discovery = (struct opt_bool){true, false};
    struct world_alloc *x = world_add(&w, "service", "raw_exec", SLEEPS, GROUP_SERVICE);
    struct world_alloc *y = world_script(&w, "batch", "exit 0");
    world_client(&w);
    world_until(&w, world_status(x, "failed") && world_status(y, "complete"));
    const struct task_event *ev = world_event(x, "Setup Failure");
    ck_assert_ptr_nonnull(ev);
    ck_assert_msg(strstr(ev->display_message,
                         "service registration provider \"nomad\" not enabled") != NULL,
                  "%s", ev->display_message);
    world_stop(&w);
}
END_TEST

/* The servers end the names with the allocation. */
START_TEST(of_an_end_by_itself_nothing_is_told)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_script(&w, "batch", "exit 0");
    add_task_service(&w, x);
    world_client(&w);
    world_until(&w, world_status(x, "complete"));
    x->fewest = SIZE_MAX;
    world_turn(&w);
    ck_assert_uint_ge(x->fewest, 1);
    world_stop(&w);
}
END_TEST

TEST_SUITE("names", names_come_with_the_tasks_and_go_before_them,
           the_latest_set_is_told_until_it_is_taken, what_is_refused_for_good_is_not_sent_again,
           an_agent_that_is_back_tells_the_same,
           an_update_in_place_tells_other_names, a_restart_takes_the_names_of_the_task_alone,
           a_group_whose_service_has_no_port_does_not_start,
           a_node_without_services_starts_no_group_that_has_some, of_an_end_by_itself_nothing_is_told)
