/* SPDX-License-Identifier: Apache-2.0
 *
 * The client with a real warden and pretended servers: runs, ends, restarts, adoption, kill -9 at
 * any instant.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/terms.h"
#include "client/limits.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "tests/lib/mock.h"
#include "tests/client/world.h"
#include "tests/lib/test.h"

START_TEST(registers)
{
    struct world w;
    world_start(&w, geteuid());
    world_client(&w);
    world_until(&w, w.heartbeats > 0);
    ck_assert_uint_eq(w.registrations, 1);
    ck_assert_str_eq(w.node->name, "node1");
    ck_assert_str_eq(w.node->id, client_node_id(w.client));
    ck_assert_ptr_null(w.node->secret_id); /* it is in the envelope */
    ck_assert_str_eq(str_map_get(&w.node->attributes, "driver.raw_exec"), "1");
    ck_assert(map_get(w.node->drivers, "raw_exec")->v->healthy);
    char id[UUID_TEXT];
    str_copy(id, sizeof(id), client_node_id(w.client));
    world_client_stop(&w);
    world_client(&w);
    ck_assert_str_eq(client_node_id(w.client), id);
    world_until(&w, w.registrations == 2);
    world_stop(&w);
}
END_TEST

START_TEST(registers_again_when_unknown)
{
    struct world w;
    world_start(&w, geteuid());
    w.fail_heartbeat = -ERR_NOT_FOUND;
    world_client(&w);
    world_until(&w, w.registrations == 2 && w.heartbeats == 2);
    world_stop(&w);
}
END_TEST

START_TEST(batch_task_completes)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x =
        world_script(&w, "batch", "echo out; echo err >&2; test $NOMAD_TASK_NAME = t");
    world_client(&w);
    world_until(&w, world_status(x, "complete"));
    const struct task_state *s = world_task(x);
    ck_assert_str_eq(s->state, "dead");
    ck_assert(!s->failed);
    ck_assert_ptr_nonnull(world_event(x, "Received"));
    ck_assert_ptr_nonnull(world_event(x, "Started"));
    ck_assert_str_eq(world_event(x, "Terminated")->display_message, "Exit Code: 0");
    struct client_stream_request req = {.kind = CLIENT_STREAM_LOGS,
                                        .alloc_id = x->a->id,
                                        .task = "t",
                                        .log_type = "stdout",
                                        .plain = true};
    ck_assert_str_eq(world_read(&w, &req), "out\n");
    req.log_type = "stderr";
    req.follow = true;
    ck_assert_str_eq(world_read(&w, &req), "err\n");
    req.log_type = "stdfoo";
    ck_assert(str_prefix(world_read(&w, &req), "error"));
    world_stop(&w);
}
END_TEST

START_TEST(failure_has_its_exit_code)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_script(&w, "batch", "exit 7");
    struct world_alloc *y = world_script(&w, "batch", "kill -TERM $$");
    struct world_alloc *z = world_add(&w, "batch", "raw_exec", "{\"command\":\"/no/such\"}", "");
    struct world_alloc *k = world_add(&w, "batch", "raw_exec", "{\"comand\":\"/bin/true\"}", "");
    world_client(&w);
    world_until(&w, world_status(x, "failed") && world_status(y, "failed") &&
                        world_status(z, "failed") && world_status(k, "failed"));
    ck_assert_int_eq(world_event(x, "Terminated")->exit_code, 7);
    ck_assert_str_eq(world_event(x, "Not Restarting")->restart_reason, "Policy allows no restarts");
    ck_assert_int_eq(world_event(y, "Terminated")->signal, SIGTERM);
    ck_assert_int_eq(world_event(y, "Terminated")->exit_code, 128 + SIGTERM);
    ck_assert(!world_event(z, "Driver Failure")->fails_task); /* the last one says so */
    ck_assert(world_event(z, "Not Restarting")->fails_task);
    ck_assert_ptr_nonnull(
        strstr(world_event(k, "Failed Validation")->display_message, "did you mean \"command\""));
    world_stop(&w);
}
END_TEST

START_TEST(stop_kills_and_purge_removes)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_script(&w, "service", "exec sleep 1000");
    struct world_alloc *y =
        world_script(&w, "service", "trap '' INT; echo up; while :; do sleep 0.05; done");
    world_client(&w);
    world_until(&w, world_status(x, "running") && world_status(y, "running"));
    world_until(&w, world_lines(&w, y, "alloc/logs/t.stdout.0") == 1);
    x->a->desired_status = "stop";
    world_changed(&w, x);
    world_until(&w, world_status(x, "complete"));
    ck_assert_ptr_nonnull(world_event(x, "Killed"));
    ck_assert_int_eq(world_event(x, "Terminated")->signal, SIGINT);
    ck_assert_int_ge(world_lines(&w, x, "alloc/logs/t.stdout.0"), 0);
    /* Both are purged; one must be killed by force first. */
    x->listed = y->listed = false;
    world_changed(&w, x);
    world_until(&w, !client_has_alloc(w.client, x->a->id));
    ck_assert_int_eq(world_lines(&w, x, "alloc/logs/t.stdout.0"), -1);
    world_until(&w, !client_has_alloc(w.client, y->a->id));
    world_stop(&w);
}
END_TEST

/* A deletion does not raise the index: the list is the same, but shorter. */
START_TEST(deletion_without_an_index)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_script(&w, "batch", "true");
    struct world_alloc *y = world_script(&w, "service", "exec sleep 1000");
    world_client(&w);
    world_until(&w, world_status(x, "complete") && world_status(y, "running") && w.parked);
    x->listed = false;
    world_wake(&w);
    world_until(&w, !client_has_alloc(w.client, x->a->id) && w.parked);
    ck_assert(client_has_alloc(w.client, y->a->id));
    world_stop(&w);
}
END_TEST

START_TEST(restart_and_signal)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_script(
        &w, "service", "trap 'echo hup' HUP; echo start; while :; do sleep 0.05; done");
    world_client(&w);
    world_until(&w, world_status(x, "running") && world_lines(&w, x, "alloc/logs/t.stdout.0") == 1);
    struct world_done d = {0};
    client_alloc_signal(w.client, x->a->id, NULL, "SIGHUP", world_on_done, &d);
    world_until(&w, d.done);
    ck_assert_msg(d.e.code == 0, "%s", d.e.text);
    world_until(&w, world_lines(&w, x, "alloc/logs/t.stdout.0") == 2);
    memset(&d, 0, sizeof(d));
    client_alloc_restart(w.client, x->a->id, "t", false, world_on_done, &d);
    world_until(&w, d.done && world_lines(&w, x, "alloc/logs/t.stdout.0") == 3);
    world_until(&w, world_status(x, "running") && world_task(x)->restarts == 1);
    ck_assert_ptr_nonnull(world_event(x, "Restart Signaled"));
    memset(&d, 0, sizeof(d));
    client_alloc_signal(w.client, x->a->id, "nope", "SIGHUP", world_on_done, &d);
    world_until(&w, d.done);
    ck_assert_int_eq(d.e.code, -ERR_NOT_FOUND);
    memset(&d, 0, sizeof(d));
    client_alloc_gc(w.client, x->a->id, world_on_done, &d);
    world_until(&w, d.done);
    ck_assert_int_eq(d.e.code, -ERR_CONFLICT);
    struct alloc_resource_usage *u = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(client_alloc_stats(w.client, w.ctx, x->a->id, NULL, &u, &e), 0);
    ck_assert_uint_gt(u->resource_usage->memory_stats->rss, 0);
    ck_assert_uint_eq(u->tasks.n, 1);
    world_stop(&w);
}
END_TEST

START_TEST(signal_comes_before_its_end)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_script(
        &w, "batch", "trap 'exit 0' HUP; echo start; while :; do sleep 0.05; done");
    world_client(&w);
    world_until(&w, world_status(x, "running") && world_lines(&w, x, "alloc/logs/t.stdout.0") == 1);
    struct world_done d = {0};
    client_alloc_signal(w.client, x->a->id, NULL, "SIGHUP", world_on_done, &d);
    world_until(&w, d.done && world_status(x, "complete"));
    const struct task_event_list *l = &world_task(x)->events;
    ck_assert_uint_ge(l->n, 2);
    ck_assert_str_eq(l->v[l->n - 2]->type, "Signaling");
    ck_assert_str_eq(l->v[l->n - 1]->type, "Terminated");
    world_stop(&w);
}
END_TEST

START_TEST(a_signal_reaches_a_task_that_is_being_stopped)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_script(
        &w, "batch",
        "trap 'echo int' INT; trap 'exit 7' HUP; echo start; while :; do sleep 0.05; done");
    x->a->job->task_groups.v[0]->tasks.v[0]->kill_timeout.v = 30 * NS_PER_S;
    x->a->job->task_groups.v[0]->tasks.v[0]->kill_timeout.set = true;
    world_client(&w);
    world_until(&w, world_status(x, "running") && world_lines(&w, x, "alloc/logs/t.stdout.0") == 1);
    x->a->desired_status = "stop";
    world_changed(&w, x);
    world_until(&w, world_lines(&w, x, "alloc/logs/t.stdout.0") == 2);
    struct world_done d = {0};
    client_alloc_signal(w.client, x->a->id, "t", "SIGHUP", world_on_done, &d);
    world_until(&w, d.done);
    ck_assert_msg(d.e.code == 0, "%s", d.e.text);
    world_until(&w, world_status(x, "complete"));
    ck_assert_int_eq(world_event(x, "Terminated")->exit_code, 7);
    world_stop(&w);
}
END_TEST

static void
put_file(const struct world *w, const struct world_alloc *x, const char *path)
{
    auto_mem void *tmp = mem_ctx("put");
    auto_fd int fd = open(mem_printf(tmp, "%s/%s/%s", w->cfg.alloc_dir, x->a->id, path),
                          O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
}

START_TEST(tasks_are_adopted)
{
    struct world w;
    enum { N = 6 };
    struct world_alloc *x[N];
    int64_t started[N];
    world_start(&w, geteuid());
    for (int i = 0; i < N; i++)
        x[i] = world_script(&w, "service", "echo start; sleep 1000");
    struct world_alloc *y =
        world_script(&w, "batch", "while [ ! -e go ]; do sleep 0.05; done; echo >done; exit 9");
    world_client(&w);
    for (int i = 0; i < N; i++) {
        world_until(&w, world_status(x[i], "running"));
        started[i] = world_task(x[i])->started_at;
    }
    world_until(&w, world_status(y, "running"));
    world_client_stop(&w);
    rig_kill(&w.rig, SIGKILL); /* the warden as well */
    rig_spawn(&w.rig);
    /* y ends while nobody looks. */
    put_file(&w, y, "t/go");
    while (world_lines(&w, y, "t/done") < 1)
        (void)poll(NULL, 0, 5);
    world_client(&w);
    world_until(&w, world_status(y, "failed"));
    ck_assert_int_eq(world_event(y, "Terminated")->exit_code, 9);
    for (int i = 0; i < N; i++) {
        ck_assert(world_status(x[i], "running"));
        ck_assert_int_eq(world_task(x[i])->started_at, started[i]);
        ck_assert_uint_eq(world_task(x[i])->restarts, 0);
        ck_assert_int_eq(world_lines(&w, x[i], "alloc/logs/t.stdout.0"), 1);
    }
    /* And they still obey. */
    x[0]->a->desired_status = "stop";
    world_changed(&w, x[0]);
    world_until(&w, world_status(x[0], "complete"));
    world_stop(&w);
}
END_TEST

/* The agent as a process of its own that is killed. */
static pid_t
agent_process(struct world *w)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    log_set_level(LOG_OFF);
    world_client(w);
    for (;;)
        world_turn(w);
}

START_TEST(killed_at_any_instant)
{
    struct world w;
    enum { N = 8 };
    struct world_alloc *x[N];
    world_start(&w, geteuid());
    for (int i = 0; i < N; i++)
        x[i] = world_script(&w, "service", "echo start; sleep 1000");
    for (int round = 0; round < 24; round++) {
        pid_t pid = agent_process(&w);
        (void)poll(NULL, 0, round * 3 / 2); /* the instant, not a wait */
        kill(pid, SIGKILL);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    }
    world_client(&w);
    for (int i = 0; i < N; i++) {
        world_until(&w, world_status(x[i], "running"));
        world_until(&w, world_lines(&w, x[i], "alloc/logs/t.stdout.0") >= 1);
        ck_assert_msg(world_lines(&w, x[i], "alloc/logs/t.stdout.0") == 1, "task %d started twice",
                      i);
        ck_assert_uint_eq(world_task(x[i])->restarts, 0);
    }
    world_stop(&w);
}
END_TEST

static uint64_t
resident(struct world *w, const char *alloc_id)
{
    struct alloc_resource_usage *u = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(client_alloc_stats(w->client, w->ctx, alloc_id, "t", &u, &e), 0);
    return u->resource_usage->memory_stats->rss;
}

START_TEST(works_without_root)
{
    struct world w;
    TEST_NEED("root"); /* to become somebody else */
    world_start(&w, 65534);
    struct world_alloc *x = world_script(&w, "service", "echo up; exec sleep 1000");
    struct allocated_task_resources *r = mem_new(w.ctx, struct allocated_task_resources);
    r->memory = mem_new(w.ctx, struct allocated_memory_resources);
    r->memory->memory_mb = 64;
    x->a->allocated_resources = mem_new(w.ctx, struct allocated_resources);
    map_put(w.ctx, x->a->allocated_resources->tasks, "t")->v = r;
    struct world_alloc *y = world_add(&w, "batch", "exec", "{\"command\":\"/bin/true\"}", "");
    world_client(&w);
    world_until(&w, world_status(x, "running") && world_status(y, "failed"));
    ck_assert(!map_get(w.node->drivers, "exec")->v->healthy);
    ck_assert_ptr_nonnull(strstr(map_get(w.node->drivers, "exec")->v->health_description, "root"));
    ck_assert_ptr_nonnull(x->last->network_status); /* without an address */
    ck_assert(str_empty(x->last->network_status->address));
    /* the last event is the start, not the note on the limits */
    ck_assert_ptr_nonnull(strstr(world_event(x, "Driver")->driver_message, "limits not enforced"));
    const struct task_event_list *all = &world_task(x)->events;
    ck_assert_str_eq(all->v[all->n - 1]->type, "Started");
    /* From /proc: there is no cgroup. A task that runs by its first instant has no memory yet. */
    world_until(&w, resident(&w, x->a->id) > 0);
    x->a->desired_status = "stop";
    world_changed(&w, x);
    world_until(&w, world_status(x, "complete"));
    world_stop(&w);
}
END_TEST

START_TEST(exec_in_the_box)
{
    struct world w;
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    world_start(&w, 0);
    struct world_alloc *x = world_add(&w, "batch", "exec",
                                      "{\"command\":\"sh\",\"args\":[\"-c\",\"id -u; hostname; "
                                      "echo $NOMAD_TASK_DIR; echo x >local/f; "
                                      "cat /local/f; pwd\"]}",
                                      "");
    world_client(&w);
    world_until(&w, world_status(x, "complete") || world_status(x, "failed"));
    struct client_stream_request req = {.kind = CLIENT_STREAM_LOGS,
                                        .alloc_id = x->a->id,
                                        .task = "t",
                                        .log_type = "stdout",
                                        .plain = true};
    char host[256] = "";
    ck_assert_int_eq(gethostname(host, sizeof(host) - 1), 0);
    ck_assert_str_eq(world_read(&w, &req), mem_printf(w.ctx, "65534\n%s\n/local\nx\n/\n", host));
    ck_assert(world_status(x, "complete"));
    world_stop(&w);
}
END_TEST

START_TEST(updates_in_place)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x =
        world_script(&w, "service", "while [ ! -e go ]; do sleep 0.02; done; exit 3");
    world_client(&w);
    world_until(&w, world_status(x, "running"));
    /* One restart is allowed now; the task runs on. */
    struct restart_policy *p = x->a->job->task_groups.v[0]->restart_policy;
    p->attempts.v = 1;
    p->delay = (struct opt_i64){true, 10 * NS_PER_MS};
    x->a->job->job_modify_index++;
    world_changed(&w, x);
    world_until(&w, w.parked); /* taken, and waiting for more */
    ck_assert_uint_eq(world_task(x)->restarts, 0);
    put_file(&w, x, "t/go");
    world_until(&w, world_status(x, "failed"));
    ck_assert_uint_eq(world_task(x)->restarts, 1);
    world_stop(&w);
}
END_TEST

START_TEST(old_allocations_are_collected)
{
    struct world w;
    enum { N = 5 };
    struct world_alloc *x[N];
    world_start(&w, geteuid());
    w.agent.gc_max_allocs = 2;
    world_client(&w);
    for (int i = 0; i < N; i++) {
        x[i] = world_script(&w, "batch", "true");
        world_until(&w, world_status(x[i], "complete"));
    }
    world_until(&w, !client_has_alloc(w.client, x[N - 3]->a->id));
    ck_assert(client_has_alloc(w.client, x[N - 1]->a->id));
    char *said = client_gone_words(w.client, w.ctx, x[0]->a->id);
    ck_assert_ptr_nonnull(strstr(said, "its files were collected on node \""));
    ck_assert_msg(strstr(said, "Z (client gc_max_allocs = 2)") != NULL, "%s", said);
    said = client_gone_words(w.client, w.ctx, "nobodys");
    ck_assert_ptr_nonnull(strstr(said, "were collected before its agent started, or it never ran"));
    ck_assert_int_eq(world_lines(&w, x[0], "alloc/logs/t.stdout.0"), -1);
    /* Still listed by the servers, and not run again. */
    for (int i = 0; i < N; i++)
        x[i]->a->client_status = "complete";
    world_changed(&w, x[0]);
    world_until(&w, w.parked);
    ck_assert(!client_has_alloc(w.client, x[0]->a->id));
    world_stop(&w);
}
END_TEST

START_TEST(full_disk_is_relieved)
{
    struct world w;
    world_start(&w, geteuid());
    w.agent.gc_disk_usage_threshold = 0.000001; /* any disk is fuller */
    w.agent.gc_interval = 20 * NS_PER_MS;
    world_client(&w);
    struct world_alloc *stays = world_script(&w, "service", "sleep 1000");
    struct world_alloc *x = world_script(&w, "batch", "true"),
                       *y = world_script(&w, "batch", "true");
    world_until(&w, world_status(x, "complete") && world_status(y, "complete"));
    world_until(&w, !client_has_alloc(w.client, x->a->id) && !client_has_alloc(w.client, y->a->id));
    world_until(&w, world_status(stays, "running"));
    ck_assert_int_eq(world_lines(&w, x, "alloc/logs/t.stdout.0"), -1);
    world_stop(&w);
}
END_TEST

static size_t
alloc_dirs(const struct world *w)
{
    char path[256];
    snprintf(path, sizeof(path), "%s", w->rig.policy.alloc_dir);
    DIR *d = opendir(path);
    ck_assert_ptr_nonnull(d);
    size_t n = 0;
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        n += strlen(e->d_name) == 36; /* an allocation's id */
    closedir(d);
    return n;
}

START_TEST(new_waits_for_removals)
{
    struct world w;
    enum { N = 100 };
    struct world_alloc *x[N];
    world_start(&w, geteuid());
    w.agent.gc_max_allocs = N + 1;
    world_client(&w);
    for (int i = 0; i < N; i++)
        x[i] = world_script(&w, "batch", "true");
    for (int i = 0; i < N; i++)
        world_until(&w, world_status(x[i], "complete"));
    world_until(&w, w.parked);
    /* All are removed while the warden takes its time; then one comes. */
    kill(w.rig.warden, SIGSTOP);
    for (int i = 0; i < N; i++)
        x[i]->listed = false;
    world_changed(&w, x[0]);
    world_until(&w, w.parked);
    struct world_alloc *y = world_script(&w, "service", "exec sleep 1000");
    world_until(&w, client_has_alloc(w.client, y->a->id));
    kill(w.rig.warden, SIGCONT);
    world_until(&w, world_lines(&w, y, "alloc/logs/t.stdout.0") >= 0);
    ck_assert_uint_le(alloc_dirs(&w), CLIENT_REMOVALS_MAX / 2 + 8);
    world_until(&w, world_status(y, "running") && alloc_dirs(&w) == 1);
    world_stop(&w);
}
END_TEST

START_TEST(dev_ends_its_tasks)
{
    struct world w;
    world_start(&w, geteuid());
    w.cfg.stop_tasks = true;
    struct world_alloc *x = world_script(&w, "service", "echo a; sleep 1000");
    world_client(&w);
    world_until(&w, world_status(x, "running"));
    world_client_stop(&w);
    ck_assert_int_eq(world_lines(&w, x, "alloc/logs/t.stdout.0"), -1);
    world_stop(&w);
}
END_TEST

START_TEST(reports_are_sent_again)
{
    struct world w;
    world_start(&w, geteuid());
    w.fail_update = -ERR_UNAVAILABLE;
    struct world_alloc *x = world_script(&w, "batch", "true");
    world_client(&w);
    world_until(&w, world_status(x, "complete"));
    ck_assert_uint_ge(w.updates, 2);
    world_stop(&w);
}
END_TEST

/* The answer that says so to the whole node may be lost: each allocation says it as well. */
START_TEST(what_is_unknown_is_reported_again)
{
    struct world w;
    world_start(&w, geteuid());
    struct world_alloc *x = world_script(&w, "service", "exec sleep 1000");
    world_client(&w);
    world_until(&w, world_status(x, "running") && w.parked);
    x->a->client_status = "unknown";
    for (int i = 0; i < 3; i++) { /* one report may be on its way anyhow */
        unsigned before = x->reports;
        world_changed(&w, x);
        world_until(&w, x->reports > before);
    }
    ck_assert(world_status(x, "running"));
    world_stop(&w);
}
END_TEST

/* Asked again until a server agrees, followed until it is over; a stop in between ends it. */
START_TEST(drains_its_node)
{
    const struct drain_spec spec = {.deadline = 60 * NS_PER_S};
    struct world_done d = {0};
    struct world w;

    world_start(&w, geteuid());
    world_client(&w);
    world_until(&w, w.heartbeats > 0);
    w.fail_drain = -ERR_UNAVAILABLE;
    client_drain(w.client, &spec, world_on_done, &d);
    world_until(&w, w.drain_watch != NULL);
    ck_assert_int_eq(w.drain_deadline, spec.deadline);
    ck_assert(!d.done);
    world_drained(&w);
    world_until(&w, d.done);
    ck_assert_int_eq(d.e.code, 0);
    d = (struct world_done){0};
    w.fail_drain = -ERR_FORBIDDEN;
    client_drain(w.client, &spec, world_on_done, &d);
    world_until(&w, d.done);
    ck_assert_int_eq(d.e.code, -ERR_FORBIDDEN);
    d = (struct world_done){0};
    client_drain(w.client, &spec, world_on_done, &d);
    world_until(&w, w.drain_watch != NULL);
    world_client_stop(&w);
    ck_assert(d.done);
    ck_assert_int_eq(d.e.code, -ERR_CANCELED);
    world_stop(&w);
}
END_TEST

START_TEST(follow_and_rotation)
{
    struct world w;
    world_start(&w, geteuid());
    driver_add(&driver_mock);
    struct world_alloc *x = world_add(
        &w, "batch", "raw_exec",
        "{\"command\":\"/bin/sh\",\"args\":[\"-c\",\"i=0; while [ $i -lt 30000 ]; do echo "
        "line-$i-"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; "
        "i=$((i+1)); done\"]}",
        "");
    struct task *t = x->a->job->task_groups.v[0]->tasks.v[0];
    t->log_config = mem_new(w.ctx, struct log_config);
    t->log_config->max_files.set = t->log_config->max_file_size_mb.set = true;
    t->log_config->max_files.v = 10;
    t->log_config->max_file_size_mb.v = 1;
    world_client(&w);
    world_until(&w, client_has_alloc(w.client, x->a->id));
    struct client_stream_request req = {.kind = CLIENT_STREAM_LOGS,
                                        .alloc_id = x->a->id,
                                        .task = "t",
                                        .log_type = "stdout",
                                        .plain = true,
                                        .follow = true};
    const char *all = world_read(&w, &req);
    size_t lines = 0;
    for (const char *p = all; (p = strchr(p, '\n')); p++)
        lines++;
    ck_assert_uint_eq(lines, 30000);
    ck_assert_ptr_nonnull(strstr(all, "line-29999-"));
    ck_assert_int_ge(world_lines(&w, x, "alloc/logs/t.stdout.1"), 1);
    req.from_end = true;
    req.follow = false;
    req.offset = 10;
    ck_assert_uint_eq(strlen(world_read(&w, &req)), 10);
    req.plain = false;
    ck_assert_ptr_nonnull(strstr(world_read(&w, &req), "\"File\":\"alloc/logs/t.stdout."));
    struct client_stream_request cat = {.kind = CLIENT_STREAM_FILE,
                                        .alloc_id = x->a->id,
                                        .path = "/alloc/logs/t.stdout.0",
                                        .limit = 6};
    ck_assert_str_eq(world_read(&w, &cat), "line-0");
    cat.path = "t/secrets/x";
    ck_assert_ptr_nonnull(strstr(world_read(&w, &cat), "secrets"));
    cat.path = "../../etc/passwd";
    ck_assert(str_prefix(world_read(&w, &cat), "error"));
    cat.path = "alloc/nothing";
    ck_assert(str_prefix(world_read(&w, &cat), "error"));
    world_stop(&w);
}
END_TEST

START_TEST(mock_restarts)
{
    struct world w;
    world_start(&w, geteuid());
    driver_add(&driver_mock);
    struct world_alloc *x =
        world_add(&w, "batch", "mock_driver", "{\"run_for\":\"10ms\",\"exit_code\":1}",
                  ",\"RestartPolicy\":{\"Attempts\":2,\"Interval\":60000000000,\"Delay\":20000000,"
                  "\"Mode\":\"fail\"}");
    struct world_alloc *y = world_add(&w, "batch", "mock_driver", "{\"start_error\":\"boom\"}", "");
    struct world_alloc *z = world_add(&w, "service", "mock_driver", "{\"run_for\":\"1h\"}", "");
    world_client(&w);
    world_until(&w, world_status(x, "failed") && world_status(y, "failed") &&
                        world_status(z, "running"));
    ck_assert_uint_eq(world_task(x)->restarts, 2);
    ck_assert_str_eq(world_event(y, "Driver Failure")->display_message, "boom");
    z->a->desired_status = "stop";
    world_changed(&w, z);
    world_until(&w, world_status(z, "complete"));
    struct world_done d = {0};
    client_gc(w.client, world_on_done, &d);
    world_until(&w, d.done && !client_has_alloc(w.client, x->a->id));
    ck_assert_msg(d.e.code == 0, "%s", d.e.text);
    world_stop(&w);
}
END_TEST

/* However many parts they come in, and later on: a stop does not bring it again. */
START_TEST(a_job_is_fetched_once)
{
    struct world w;
    world_start(&w, geteuid());
    driver_add(&driver_mock);
    w.per_get = 7;
    struct world_alloc *x = world_add(&w, "service", "mock_driver", "{\"run_for\":\"1h\"}", "");
    for (int i = 1; i < 50; i++)
        world_another(&w, x);
    world_client(&w);
    for (size_t i = 0; i < w.n; i++)
        world_until(&w, world_status(&w.allocs[i], "running"));
    ck_assert_uint_eq(w.jobs_sent, 1);
    ck_assert_uint_eq(w.gets, 8);
    x->a->desired_status = "stop";
    world_changed(&w, x);
    world_until(&w, world_status(x, "complete"));
    ck_assert_uint_eq(w.jobs_sent, 1);
    world_stop(&w);
}
END_TEST

/* It is told, and is asked for no more; those before and behind it run. */
START_TEST(one_that_cannot_be_fetched_fails_alone)
{
    struct world w;
    world_start(&w, geteuid());
    driver_add(&driver_mock);
    struct world_alloc *x = world_add(&w, "service", "mock_driver", "{\"run_for\":\"1h\"}", "");
    for (int i = 1; i < 9; i++)
        world_another(&w, x);
    w.allocs[4].too_large = true;
    w.fail_update = -ERR_UNAVAILABLE; /* the first report of it is lost */
    world_client(&w);
    world_until(&w, world_status(&w.allocs[4], "failed"));
    ck_assert_ptr_nonnull(strstr(w.allocs[4].last->client_description, "too large"));
    for (size_t i = 0; i < w.n; i++)
        world_until(&w, i == 4 || world_status(&w.allocs[i], "running"));
    unsigned gets = w.gets;
    struct world_alloc *y = world_another(&w, x);
    world_until(&w, world_status(y, "running"));
    ck_assert_uint_eq(w.gets, gets + 1);
    world_stop(&w);
}
END_TEST

/* The list came from a server that knows more than those that were just started. */
START_TEST(a_server_that_lags_behind_the_list_is_not_believed)
{
    for (int lag = NO_NODE; lag <= OLDER_ALLOC; lag++) {
        struct world w;
        world_start(&w, geteuid());
        struct world_alloc *x = world_script(&w, "service", "sleep 1000000");
        w.lag = lag;
        world_client(&w);
        world_until(&w, world_status(x, "running"));
        if (lag == NO_NODE) { /* a list is refused as well, which asks for no heartbeat */
            ck_assert_uint_le(w.heartbeats, 2);
            w.lag = UP_TO_DATE;
        }
        world_until(&w, w.parked != NULL);
        x->a->desired_status = ALLOC_DESIRED_STOP;
        world_changed(&w, x);
        world_until(&w, world_status(x, "complete"));
        world_stop(&w);
    }
}
END_TEST

TEST_SUITE_TIMEOUT("client", 60, registers, registers_again_when_unknown, batch_task_completes,
                   failure_has_its_exit_code, stop_kills_and_purge_removes,
                   deletion_without_an_index, restart_and_signal, signal_comes_before_its_end,
                   a_signal_reaches_a_task_that_is_being_stopped, tasks_are_adopted,
                   killed_at_any_instant, works_without_root, exec_in_the_box, updates_in_place,
                   old_allocations_are_collected, full_disk_is_relieved, new_waits_for_removals,
                   dev_ends_its_tasks, reports_are_sent_again, what_is_unknown_is_reported_again,
                   drains_its_node, follow_and_rotation,
                   mock_restarts, a_job_is_fetched_once, one_that_cannot_be_fetched_fails_alone,
                   a_server_that_lags_behind_the_list_is_not_believed)
