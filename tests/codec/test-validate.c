/* SPDX-License-Identifier: Apache-2.0
 *
 * Canonical form and validation of jobs: defaults by type, inheritance, every error collected.
 */
#include <stdio.h>
#include <string.h>

#include "api/canonical.h"
#include "api/limits.h"
#include "api/validate.h"
#include "api/validate_launch.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/test.h"

static struct job *
parse(const void *ctx, const char *json)
{
    void *obj;
    struct err e = ERR_INIT;
    int r = json_decode_strict(ctx, &type_job, SLICE(json, strlen(json)), BUDGET(1 << 20), &obj, &e);
    ck_assert_msg(r == 0, "%s", e.text);
    job_canonicalize(ctx, obj);
    return obj;
}

static const char small[] = "{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":"
                            "[{\"Name\":\"t\",\"Driver\":\"exec\"}]}]}";

START_TEST(defaults_of_a_service)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = parse(ctx, small);
    struct task_group *g = j->task_groups.v[0];
    struct task *t = g->tasks.v[0];
    ck_assert_str_eq(j->name, "j");
    ck_assert_str_eq(j->type, "service");
    ck_assert_str_eq(j->datacenters.v[0], "*");
    ck_assert_int_eq(j->priority.v, 50);
    ck_assert_int_eq(g->count.v, 1);
    ck_assert_int_eq(g->restart_policy->attempts.v, 2);
    ck_assert(g->reschedule_policy->unlimited.v);
    ck_assert_str_eq(g->reschedule_policy->delay_function, "exponential");
    ck_assert_int_eq(g->update->max_parallel.v, 1);
    ck_assert_int_eq(g->ephemeral_disk->size_mb.v, 300);
    ck_assert_int_eq(t->resources->cpu.v, 100);
    ck_assert_int_eq(t->resources->memory_mb.v, 300);
    ck_assert_int_eq(t->kill_timeout.v, 5 * NS_PER_S);
    struct job *again = codec_clone(ctx, &type_job, j);
    job_canonicalize(ctx, again);
    ck_assert(codec_equal(&type_job, j, again, 0));
    struct str_list errors = {0}, warnings = {0};
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), 0);
    ck_assert_uint_eq(warnings.n, 0);
}
END_TEST

/* The block is as Nomad prints it: the pace is the job's, the rest 0 and the groups'. */
START_TEST(what_a_job_leaves_out_of_update_is_zero)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = parse(ctx, "{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\"}]}");
    for (size_t again = 0; again < 2; again++) {
        const struct update_strategy *u = j->update; /* made anew each time */
        ck_assert(u->min_healthy_time.set && u->min_healthy_time.v == 0);
        ck_assert(u->healthy_deadline.set && u->healthy_deadline.v == 0);
        ck_assert(u->progress_deadline.set && u->progress_deadline.v == 0);
        ck_assert_int_eq(j->task_groups.v[0]->update->progress_deadline.v, 600 * NS_PER_S);
        job_canonicalize(ctx, j);
    }
}
END_TEST

START_TEST(batch_and_inheritance)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = parse(
        ctx, "{\"ID\":\"j\",\"Type\":\"batch\",\"TaskGroups\":[{\"Name\":\"g\","
             "\"RestartPolicy\":{\"Attempts\":7},\"Tasks\":[{\"Name\":\"t\",\"Driver\":\"exec\","
             "\"RestartPolicy\":{\"Mode\":\"delay\"},\"KillSignal\":\"SIGHUP\"}]}]}");
    struct task_group *g = j->task_groups.v[0];
    ck_assert_int_eq(g->restart_policy->interval.v, 86400 * NS_PER_S);
    ck_assert_ptr_null(g->update);
    ck_assert_ptr_null(g->migrate);
    ck_assert_int_eq(g->reschedule_policy->attempts.v, 1);
    ck_assert_int_eq(g->tasks.v[0]->restart_policy->attempts.v, 7);
    ck_assert_str_eq(g->tasks.v[0]->restart_policy->mode, "delay");
    job_imply_constraints(ctx, j);
    job_imply_constraints(ctx, j);
    ck_assert_uint_eq(g->constraints.n, 1);
    ck_assert_str_eq(g->constraints.v[0]->r_target, "SIGHUP");
}
END_TEST

/* One that may be emulated as well goes anywhere. */
START_TEST(a_machine_goes_where_its_accelerator_is)
{
    static const struct {
        const char *driver, *accelerator;
        size_t n;
    } rows[] = {{"qemu", "kvm", 1}, {"qemu", "kvm:tcg", 0}, {"qemu", "tcg", 0}, {"exec", "kvm", 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct job *j = parse(
            ctx,
            mem_printf(ctx,
                       "{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"t\","
                       "\"Driver\":\"%s\",\"Config\":{\"accelerator\":\"%s\"}}]}]}",
                       rows[i].driver, rows[i].accelerator));
        const struct task *t = j->task_groups.v[0]->tasks.v[0];
        job_imply_constraints(ctx, j);
        job_imply_constraints(ctx, j);
        ck_assert_uint_eq(t->constraints.n, rows[i].n);
        ck_assert(t->constraints.n == 0 ||
                  (str_eq(t->constraints.v[0]->l_target, "${attr.driver.qemu.kvm}") &&
                   str_eq(t->constraints.v[0]->operand, "is_set")));
    }
}
END_TEST

/* The output of `nomad job inspect` for a plain job is a job without anything that is not there
 * yet. */
START_TEST(of_nomad)
{
    static const char task[] =
        "{\"Name\":\"t\",\"Driver\":\"exec\",\"Config\":{\"command\":\"/bin/"
        "x\"},\"Env\":null,\"Services\":null,"
        "\"Vault\":null,\"Secrets\":null,\"Consul\":null,\"Templates\":null,\"Constraints\":null,"
        "\"Affinities\":null,\"Resources\":{\"CPU\":100,\"Cores\":0,\"MemoryMB\":300,"
        "\"MemoryMaxMB\":0,"
        "\"DiskMB\":0,\"IOPS\":0,\"Networks\":null,\"Devices\":null,\"NUMA\":null,\"SecretsMB\":0},"
        "\"RestartPolicy\":{\"Attempts\":3,\"Interval\":86400000000000,\"Delay\":15000000000,"
        "\"Mode\":"
        "\"fail\",\"RenderTemplates\":false},\"DispatchPayload\":null,\"Lifecycle\":null,\"Meta\":"
        "null,"
        "\"KillTimeout\":5000000000,\"LogConfig\":{\"MaxFiles\":10,\"MaxFileSizeMB\":10,"
        "\"Disabled\":false},"
        "\"Artifacts\":null,\"Leader\":false,\"ShutdownDelay\":0,\"VolumeMounts\":null,"
        "\"ScalingPolicies\":"
        "null,\"KillSignal\":\"\",\"Kind\":\"\",\"CSIPluginConfig\":null,\"Identity\":{\"Name\":"
        "\"default\","
        "\"Audience\":[\"nomadproject.io\"],\"ChangeMode\":\"\",\"Env\":false,\"File\":false,"
        "\"ServiceName\":\"\",\"TTL\":0},\"Identities\":null,\"Actions\":null,\"Schedule\":null}";
    static const char group[] =
        "\"Name\":\"g\",\"Count\":1,\"Update\":null,\"Migrate\":null,\"Constraints\":null,"
        "\"Scaling\":null,"
        "\"Disconnect\":null,\"EphemeralDisk\":{\"Sticky\":false,\"SizeMB\":300,\"Migrate\":false},"
        "\"Spreads\":null,\"Networks\":[{\"Mode\":\"\",\"Device\":\"\",\"CIDR\":\"\",\"IP\":\"\","
        "\"MBits\":0,"
        "\"DNS\":null,\"ReservedPorts\":null,\"DynamicPorts\":[{\"Label\":\"a\",\"Value\":0,\"To\":"
        "0,"
        "\"HostNetwork\":\"default\",\"IgnoreCollision\":false}],\"CNI\":null}],\"Consul\":{"
        "\"Namespace\":"
        "\"\",\"Cluster\":\"default\",\"Partition\":\"\"},\"Services\":null,\"Volumes\":null,"
        "\"ShutdownDelay\":null,\"MaxRunDuration\":null,\"StopAfterClientDisconnect\":null,"
        "\"MaxClientDisconnect\":null,\"PreventRescheduleOnLost\":false";
    static const char update[] =
        "{\"Stagger\":%s,\"MaxParallel\":%d,\"HealthCheck\":\"\",\"MinHealthyTime\":0,"
        "\"HealthyDeadline\":0,"
        "\"ProgressDeadline\":0,\"AutoRevert\":false,\"AutoPromote\":false,\"Canary\":0}";
    static const char *const types[] = {"batch", "service"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct str_list errors = {0}, warnings = {0};
        char u[sizeof(update) + 20];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(u, sizeof(u), update, i == 0 ? "0" : "30000000000", (int)i);
#pragma GCC diagnostic pop
        struct job *j = parse(
            ctx, mem_printf(ctx,
                            "{\"ID\":\"j\",\"Type\":\"%s\",\"Priority\":50,\"AllAtOnce\":false,"
                            "\"Multiregion\":null,\"Periodic\":null,\"ParameterizedJob\":null,"
                            "\"Update\":%s,\"TaskGroups\":[{%s,\"Tasks\":[%s]}]}",
                            types[i], u, group, task));
        job_validate(ctx, j, NULL, &errors, &warnings);
        ck_assert_msg(errors.n == 0, "%s", job_errors_text(ctx, &errors));
        job_unsupported(ctx, j, &errors);
        ck_assert_msg(errors.n == 0, "%s", job_errors_text(ctx, &errors));
        ck_assert_uint_eq(warnings.n, 0);
    }
}
END_TEST

START_TEST(empty_is_null)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *a = parse(ctx, small);
    struct job *b =
        parse(ctx, "{\"ID\":\"j\",\"Priority\":0,\"Datacenters\":[],\"Meta\":{},\"Constraints\":[],"
                   "\"TaskGroups\":[{\"Name\":\"g\",\"Meta\":{},\"Networks\":[],\"Tasks\":"
                   "[{\"Name\":\"t\",\"Driver\":\"exec\",\"Env\":{},\"Constraints\":[]}]}]}");
    ck_assert(codec_equal(&type_job, a, b, 0));
    ck_assert_int_eq(b->priority.v, 50);
}
END_TEST

#define TASK "\"Name\":\"t\",\"Driver\":\"e\""
#define GROUP(x) "{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\"," x "}]}"

static void
refused(const char *json, const char *text)
{
    auto_mem void *ctx = mem_ctx("test");
    struct str_list errors = {0}, warnings = {0};
    struct job *j = parse(ctx, json);
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), -ERR_INVALID);
    const char *all = job_errors_text(ctx, &errors);
    ck_assert_msg(strstr(all, text) != NULL, "%s", all);
}

START_TEST(bounds)
{
    static const struct {
        const char *json, *text;
    } rows[] = {
        {GROUP("\"Networks\":[{\"ReservedPorts\":[{\"Label\":\"a\",\"Value\":80},{\"Label\":\"b\","
               "\"Value\":80}]}]"),
         "ports \"a\" and \"b\" are both static = 80"},
        {GROUP("\"Networks\":[{\"ReservedPorts\":[{\"Label\":\"a\",\"Value\":80}],\"DynamicPorts\":"
               "[{\"Label\":\"a\"}]}]"),
         "\"a\" is used twice"},
        {GROUP("\"Tasks\":[{" TASK ",\"Resources\":{\"CPU\":9223372036854775807}}]"),
         "larger than any machine"},
        {GROUP("\"Tasks\":[{" TASK ",\"KillTimeout\":9223372036854775807}]"),
         "Task.KillTimeout is longer than ten years"},
        {GROUP("\"Tasks\":[{" TASK ",\"KillSignal\":\"HUP\"}]"), "kill_signal \"HUP\""},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"Userns\":\"none\"}}]"), "not \"host\""},
        {GROUP("\"Tasks\":[{\"Name\":\"t\",\"Driver\":\"raw_exec\",\"Isolation\":{\"Userns\":"
               "\"host\"}}]"),
         "does not isolate"},
        {GROUP(
             "\"Tasks\":[{\"Name\":\"t\",\"Driver\":\"docker\",\"Isolation\":{\"CPUIdle\":true}}]"),
         "has no such limit"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"Nofile\":9999999}}]"), "nofile"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"Swap\":-1}}]"), "swap must be between"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"MemoryHigh\":300}}]"),
         "memory_high of 300 MiB is without effect"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"MemoryLow\":301}}]"),
         "memory_low may be resources.memory at most, 300"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"MemoryMin\":301}}]"), "memory_min may be"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"Zswap\":1}}]"), "has no swap"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"CPUBurst\":20000000}}]"),
         "no cpu_hard_limit"},
        {GROUP("\"Tasks\":[{" TASK
               ",\"Resources\":{\"Cores\":1},\"Isolation\":{\"CPUIdle\":true}}]"),
         "cpu_idle is against"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"IOWeight\":10001}}]"), "io_weight"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"Landlock\":{\"Bind\":[70000]}}}]"),
         "70000 is no port"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"Proc\":\"all\"}}]"), "is not \"pid\""},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"Pressure\":{\"IO\":2000000000}}}]"),
         "between 1ms and 1s"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"IO\":[{\"Device\":\"/dev/sda\"}]}}]"),
         "limits nothing"},
        {GROUP("\"Tasks\":[{" TASK
               ",\"Isolation\":{\"IO\":[{\"Device\":\"/etc\",\"ReadBps\":1}]}}]"),
         "not below /dev"},
        {GROUP("\"Tasks\":[{" TASK ",\"Isolation\":{\"IO\":[{\"ReadBps\":1},{\"WriteIops\":5}]}}]"),
         "has two blocks"},
        {GROUP("\"Constraints\":[{\"Operand\":\"distinct_hosts\",\"RTarget\":\"x\"}]"),
         "not \"x\""},
        {GROUP("\"Constraints\":[{\"Operand\":\"distinct_property\",\"LTarget\":\"a\",\"RTarget\":"
               "\"0\"}]"),
         "at least 1"},
        {GROUP("\"EphemeralDisk\":{\"SizeMB\":9223372036854775807}"), "ephemeral_disk"},
        {GROUP("\"Tasks\":[{" TASK ",\"Secrets\":[{\"Name\":\"a-b\"}]}]"),
         "secret \"a-b\": a name is"},
        {GROUP("\"Tasks\":[{" TASK ",\"Secrets\":[{\"Name\":\"a\"}]}]"),
         "provider and path are needed"},
        {GROUP("\"Tasks\":[{" TASK
               ",\"Secrets\":[{\"Name\":\"a\",\"Provider\":\"nomad\",\"Path\":\"a{b\"}]}]"),
         "secret \"a\": invalid path"},
        {GROUP("\"Tasks\":[{" TASK
               ",\"Secrets\":[{\"Name\":\"a\",\"Provider\":\"nomad\",\"Path\":\"p\","
               "\"Config\":{\"engine\":\"kv\"}}]}]"),
         "config has the namespace"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        refused(rows[i].json, rows[i].text);
}
END_TEST

START_TEST(names_and_cores_are_bounded_as_paddock_limits_says)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = parse(ctx, small);
    struct task_group *g = j->task_groups.v[0];
    struct str_list errors = {0}, warnings = {0};
    char name[1026];
    memset(name, 'x', sizeof(name) - 1);
    name[1024] = 0;
    g->name = j->id = name;
    g->tasks.v[0]->resources->cores.v = 1024;
    g->tasks.v[0]->resources->cpu.v = 0;
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), 0);
    name[1024] = 'x';
    name[1025] = 0;
    g->tasks.v[0]->resources->cores.v = 1025;
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), -ERR_INVALID);
    const char *all = job_errors_text(ctx, &errors);
    ck_assert_msg(strstr(all, "the job's ID is longer than 1024 bytes") != NULL, "%s", all);
    ck_assert_msg(strstr(all, "the group's name is longer than 1024 bytes") != NULL, "%s", all);
    ck_assert_msg(strstr(all, "resources: more than 1024 cores") != NULL, "%s", all);
}
END_TEST

#define SEALED(driver, files)                                                                      \
    GROUP("\"Tasks\":[{\"Name\":\"t\",\"Driver\":\"" driver "\",\"Isolation\":{\"Verity\":[" files \
          "]}}]")

START_TEST(sealed_files)
{
    static const struct {
        const char *json, *text;
    } rows[] = {
        {SEALED("exec", "{}"), "path \"\" is not the plain"},
        {SEALED("exec", "{\"Path\":\"/usr/bin/env\"}"), "is not relative to the task's root"},
        {SEALED("exec", "{\"Path\":\"../alloc/x\"}"), "has \"..\""},
        {SEALED("exec", "{\"Path\":\"local//x\"}"), "is not the plain name"},
        {SEALED("exec", "{\"Path\":\"local/x/\"}"), "is not the plain name"},
        {SEALED("exec", "{\"Path\":\"./x\"}"), "is not the plain name"},
        {SEALED("exec", "{\"Path\":\"x\",\"Digest\":\"sha256:12\"}"), "64 hexadecimal digits"},
        {SEALED("exec", "{\"Path\":\"x\"},{\"Path\":\"x\"}"), "\"x\" has two blocks"},
        {SEALED("raw_exec", "{\"Path\":\"x\"}"), "does not isolate"},
    };
    auto_mem void *ctx = mem_ctx("test");
    struct str_list errors = {0}, warnings = {0};
    struct job *j = parse(ctx, SEALED("exec", "{\"Path\":\"local/x\"},{\"Path\":\"alloc/..x\"}"));
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        refused(rows[i].json, rows[i].text);
}
END_TEST

static void
numbered(struct task *t, struct str_map *m, const char *prefix, size_t n, size_t bytes)
{
    char *value = mem_array(t, char, bytes + 1);
    memset(value, 'x', bytes);
    for (size_t i = 0; i < n; i++)
        str_map_set(t, m, mem_printf(t, "%s%zu", prefix, i), value);
}

static const char *
launch_errors(struct job *j)
{
    struct str_list errors = {0}, warnings = {0};
    int r = job_validate(j, j, NULL, &errors, &warnings);
    ck_assert_int_eq(r, errors.n > 0 ? -ERR_INVALID : 0);
    return errors.n > 0 ? job_errors_text(j, &errors) : "";
}

#define TELLS(j, text)                                                                             \
    do {                                                                                           \
        const char *told = launch_errors(j);                                                       \
        ck_assert_msg(*(text) ? strstr(told, text) != NULL : !*told, "%s", told);                  \
    } while (0)

/* A task that no node could start is not registered: its variables are counted as the client makes
 * them. */
START_TEST(an_environment_that_no_launch_takes_is_refused)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = parse(ctx, small);
    struct task_group *g = j->task_groups.v[0];
    struct task *t = g->tasks.v[0];
    numbered(t, &t->env, "e", JOB_ENV_MAX, 1);
    TELLS(j, "");
    str_map_set(t, &t->env, "more", "x");
    TELLS(j, "make 4001 environment variables: at most 4000");
    t->driver = "other"; /* it knows itself what it takes */
    TELLS(j, "");
    t->driver = "raw_exec";
    TELLS(j, "make 4001");
    t->env = (struct str_map){0};
    numbered(t, &t->meta, "m", 700, 1);
    numbered(t, &g->meta, "g", 700, 1);
    numbered(t, &j->meta, "j", 700, 1);
    TELLS(j, "make 4200");
    j->meta = (struct str_map){0};
    numbered(t, &j->meta, "J", 700, 1); /* of capitals there is one spelling */
    TELLS(j, "");
}
END_TEST

START_TEST(ports_count_with_every_variable_that_they_make)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = parse(ctx, small);
    struct task_group *g = j->task_groups.v[0];
    struct network_resource *n = mem_new(j, struct network_resource);
    n->mode = "host";
    list_add(j, g->networks, n);
    for (int i = 0; i < JOB_PORTS_MAX; i++) {
        struct port *p = mem_new(n, struct port);
        p->label = mem_printf(p, "p%d", i);
        list_add(n, n->dynamic_ports, p);
    }
    TELLS(j, "");
    n->mode = "bridge";
    TELLS(j, "make 5120 environment variables");
    n->dynamic_ports.n = JOB_ENV_MAX / (LAUNCH_PORT_VARS + LAUNCH_ALLOC_VARS);
    TELLS(j, "");
}
END_TEST

START_TEST(a_launch_larger_than_the_message_is_refused)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = parse(ctx, small);
    struct task_group *g = j->task_groups.v[0];
    struct task *t = g->tasks.v[0];
    numbered(t, &t->env, "e", 30, 12 << 10);
    TELLS(j, "");
    numbered(t, &t->env, "f", 1, 9 << 10);
    TELLS(j, "at most 376832 are allowed");
    t->env = (struct str_map){0};
    numbered(t, &j->meta, "j", 2, 32 << 10);
    numbered(t, &g->meta, "g", 2, 32 << 10);
    TELLS(j, "");
    numbered(t, &t->meta, "t", 2, 32 << 10);
    TELLS(j, "meta of job, group and task counts, twice");
    g->meta.n = 0;
    TELLS(j, "");
    char *long_one = mem_array(t, char, 200 << 10);
    memset(long_one, 'x', (200 << 10) - 1);
    str_map_set(t, &t->env, "big", long_one);
    TELLS(j, "env \"big\" has more than 131071 bytes");
    t->env.n = 0;
    str_map_set(t, &j->meta, "big", long_one);
    TELLS(j, "meta \"big\" has more than 131071 bytes");
    j->meta.n = 0;
    t->config = value_map(t);
    struct value *args = value_list(t);
    value_list_add(args, value_str(t, "a"));
    value_list_add(args, value_str(t, long_one));
    value_map_set(t->config, "args", args);
    TELLS(j, "args[1] has more than 131071 bytes");
    memcpy(long_one, "${", 2); /* what the node puts there may be short */
    long_one[(200 << 10) - 2] = '}';
    args->list.v[1] = value_str(t, long_one);
    TELLS(j, "");
}
END_TEST

/* Names are compared in pairs: too many are refused before. */
START_TEST(many_groups)
{
    auto_mem void *ctx = mem_ctx("test");
    struct str_list errors = {0}, warnings = {0};
    struct job *j = parse(ctx, small);
    for (int i = 0; i < 100000; i++)
        list_add(j, j->task_groups, j->task_groups.v[0]);
    int64_t start = clock_mono_ns();
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(errors.v[errors.n - 1], "more than 1000 task groups"));
    ck_assert_int_lt(clock_mono_ns() - start, 2 * NS_PER_S);
}
END_TEST

START_TEST(at_once_is_bounded)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = parse(ctx, small);
    struct str_list errors = {0}, warnings = {0};
    j->task_groups.v[0]->count.v = JOB_AT_ONCE_MAX + 1;
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), 0);
    j->all_at_once = true;
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(errors.v[0], "remove all_at_once, or lower the counts"));
}
END_TEST

START_TEST(errors_are_collected)
{
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"{\"ID\":\"a b\",\"TaskGroups\":[]}", "blank"},
        {"{\"ID\":\"j\",\"Type\":\"_core\",\"TaskGroups\":[]}", "job type \"_core\""},
        {"{\"ID\":\"j\",\"Type\":\"system\",\"TaskGroups\":[{\"Name\":\"g\",\"Count\":2}]}",
         "1 per node"},
        {"{\"ID\":\"j\",\"Type\":\"sysbatch\",\"TaskGroups\":[{\"Name\":\"g\",\"ReschedulePolicy\":"
         "{}}]}",
         "not rescheduled"},
        {"{\"ID\":\"j\",\"Type\":\"batch\",\"TaskGroups\":[{\"Name\":\"g\",\"Update\":{}}]}",
         "no update block"},
        {"{\"ID\":\"j\",\"Type\":\"batch\",\"TaskGroups\":[{\"Name\":\"g\",\"Migrate\":{}}]}",
         "no migrate block"},
        {"{\"ID\":\"j\",\"Priority\":101}", "priority 101"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Count\":-1}]}", "count is negative"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"../"
         "x\",\"Driver\":\"e\"}]}]}",
         "may not hold slashes"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"alloc\",\"Driver\":"
         "\"e\"}]}]}",
         "may not be called"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"t\"}]}]}",
         "driver is missing"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Networks\":[{\"Mode\":\"cni/x\"}]}]}",
         "is not host, none or bridge"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Networks\":[{\"Mode\":\"none\","
         "\"ReservedPorts\":"
         "[{\"Label\":\"a\",\"Value\":70}]}]}]}",
         "nothing can reach"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Networks\":[{\"ReservedPorts\":"
         "[{\"Label\":\"a\",\"Value\":70000}]}]}]}",
         "70000"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"RestartPolicy\":{\"Attempts\":100,"
         "\"Interval\":"
         "\"10s\",\"Delay\":\"1s\"}}]}",
         "do not fit"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Networks\":[{\"Hostname\":\"-a\"}]}]}",
         "not a DNS name"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Networks\":[{\"Hostname\":\"a..b\"}]}]}",
         "not a DNS name"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Networks\":[{\"DNS\":{"
         "\"Servers\":[\"ns.example\"]}}]}]}",
         "server \"ns.example\" is not an IP"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Networks\":[{\"DNS\":{\"Searches\":[\"a "
         "b\"]}}]}]}",
         "\"a b\" of searches is not one word"},
        {"{\"ID\":\"j\",\"Constraints\":[{\"Operand\":\"like\"}]}", "unknown operator \"like\""},
        {"{\"ID\":\"j\",\"Constraints\":[{\"Operand\":\"distinct_property\",\"LTarget\":\"${meta.r}"
         "\","
         "\"RTarget\":\"0\"}]}",
         "distinct_property allows at least 1"},
        {"{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Count\":60000}]}", "50000"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        refused(rows[i].json, rows[i].text);
}
END_TEST

START_TEST(an_update_of_a_batch_job_is_one_error)
{
    static const char *const jobs[] = {"{\"ID\":\"j\",\"Type\":\"batch\",%s\"TaskGroups\":[{"
                                       "\"Name\":\"g\",\"Tasks\":[{\"Name\":\"t\","
                                       "\"Driver\":\"exec\"}],\"Update\":{\"MaxParallel\":1}}]}",
                                       "{\"ID\":\"j\",\"Type\":\"sysbatch\",%s\"TaskGroups\":[{"
                                       "\"Name\":\"g\",\"Tasks\":[{\"Name\":\"t\","
                                       "\"Driver\":\"exec\"}],\"Migrate\":{\"MaxParallel\":1}}]}"};
    for (size_t i = 0; i < 2 * ARRAY_LEN(jobs); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct str_list errors = {0}, warnings = {0};
        const char *of_job = i == 2 ? "\"Update\":{\"MaxParallel\":1}," : "";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        struct job *j = parse(ctx, mem_printf(ctx, jobs[i % 2], of_job));
#pragma GCC diagnostic pop
        job_validate(ctx, j, NULL, &errors, &warnings);
        ck_assert_msg(errors.n == 1, "%s", job_errors_text(ctx, &errors));
        ck_assert_ptr_nonnull(strstr(errors.v[0], i % 2 ? "no migrate block" : "no update block"));
    }
}
END_TEST

START_TEST(the_allocations_directory_is_inside)
{
    static const char text[] =
        "{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"t\",\"Driver\":"
        "\"exec\","
        "\"Artifacts\":[{\"GetterSource\":\"http://x/y\",\"RelativeDest\":\"../alloc/go.mod\"}],"
        "\"Templates\":[{\"EmbeddedTmpl\":\"x\",\"DestPath\":\"${NOMAD_ALLOC_DIR}/x\"},"
        "{\"EmbeddedTmpl\":\"x\",\"DestPath\":\"local/../../alloc/x\"}]}]}]}";
    auto_mem void *ctx = mem_ctx("test");
    struct str_list errors = {0}, warnings = {0};
    job_validate(ctx, parse(ctx, text), NULL, &errors, &warnings);
    ck_assert_msg(errors.n == 0, "%s", job_errors_text(ctx, &errors));
}
END_TEST

START_TEST(a_mount_of_a_read_only_volume_need_not_say_so)
{
    static const char text[] =
        "{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Volumes\":{\"v\":{\"Name\":\"v\",\"Type\":"
        "\"csi\","
        "\"Source\":\"s\",\"ReadOnly\":true,\"AccessMode\":\"single-node-reader-only\","
        "\"AttachmentMode\":\"file-system\"}},\"Tasks\":[{\"Name\":\"t\",\"Driver\":\"exec\","
        "\"VolumeMounts\":[{\"Volume\":\"v\",\"Destination\":\"/v\",\"ReadOnly\":false}]}]}]}";
    auto_mem void *ctx = mem_ctx("test");
    struct str_list errors = {0}, warnings = {0};
    job_validate(ctx, parse(ctx, text), NULL, &errors, &warnings);
    ck_assert_msg(errors.n == 0, "%s", job_errors_text(ctx, &errors));
}
END_TEST

/* Nomad's rules hold for blocks that have no effect yet. */
START_TEST(blocks_are_checked)
{
    static const struct {
        const char *group, *task, *text;
    } rows[] = {
        {"\"Disconnect\":{\"LostAfter\":1,\"StopOnClientAfter\":1}", "", "exclude each other"},
        {"\"Disconnect\":{\"Reconcile\":\"x\"}", "", "reconcile \"x\""},
        {"\"Scaling\":{\"Min\":3,\"Max\":2}", "", "max is less than min"},
        {"\"Count\":4,\"Scaling\":{\"Min\":1,\"Max\":2}", "", "count is more than max"},
        {"\"Count\":1,\"Scaling\":{\"Min\":2,\"Max\":3}", "", "count is less than min"},
        {"\"Volumes\":{\"v\":{\"Name\":\"v\",\"Type\":\"csi\",\"Source\":\"s\"}}", "",
         "needs an access_mode"},
        {"\"Volumes\":{\"v\":{\"Name\":\"v\",\"Type\":\"nfs\",\"Source\":\"s\"}}", "",
         "is not host or csi"},
        {"\"Services\":[{\"Provider\":\"x\"}]", "", "provider \"x\""},
        {"\"Services\":[{\"Checks\":[{\"Type\":\"http\",\"Path\":\"/\"}]}]", "", "at least 1s"},
        {"\"Services\":[{\"Provider\":\"nomad\",\"Checks\":[{\"Type\":\"ping\"}]}]", "",
         "is not http, tcp, script or grpc"},
        {"\"Services\":[{\"Provider\":\"nomad\",\"Checks\":[{\"Type\":\"script\",\"Command\":"
         "\"/bin/x\",\"TaskName\":\"other\"}]}]",
         "", "name that by task"},
        {"\"Services\":[{\"Name\":\"a_b\"}]", "", "RFC 1123"},
        {"\"Services\":[{\"Provider\":\"nomad\",\"AddressMode\":\"driver\"}]", "",
         "write \"host\" or"},
        {"\"Services\":[{\"PortLabel\":\"web\"}]", "", "port label \"web\" does not exist"},
        {"\"Services\":[{\"PortLabel\":\"65536\"}]", "", "between 1 and 65535"},
        {"\"Services\":[{\"Checks\":[{\"Type\":\"tcp\"}]}]", "", "a check requires a port"},
        {"\"Services\":[{\"Provider\":\"nomad\",\"Name\":\"a\"},{\"Provider\":\"nomad\",\"Name\":"
         "\"a\"}]",
         "", "twice with the same port"},
        {"\"Services\":[{\"Address\":\"x\",\"AddressMode\":\"host\"}]", "",
         "address_mode \"auto\""},
        {"\"Services\":[{\"Provider\":\"nomad\",\"Checks\":[{\"Type\":\"tcp\","
         "\"FailuresBeforeCritical\":2}]}]",
         "", "failures_before_critical may only be set for Consul"},
        {"\"Services\":[{\"Provider\":\"nomad\",\"Checks\":[{\"Type\":\"http\",\"Method\":"
         "\"FETCH\"}]}]",
         "", "none of HTTP"},
        {"\"Services\":[{\"Checks\":[{\"OnUpdate\":\"ignore\",\"CheckRestart\":{\"Limit\":1}}]}]",
         "", "is not compatible with check_restart"},
        {"", "\"Templates\":[{\"DestPath\":\"x\"}]", "one of source and data"},
        {"", "\"Templates\":[{\"EmbeddedTmpl\":\"x\",\"DestPath\":\"local/../../../x\"}]",
         "leaves the directory"},
        {"", "\"Templates\":[{\"EmbeddedTmpl\":\"x\",\"DestPath\":\"x\",\"Perms\":\"9\"}]",
         "octal"},
        {"", "\"Artifacts\":[{}]", "source is missing"},
        {"", "\"VolumeMounts\":[{\"Volume\":\"v\",\"Destination\":\"/v\"}]", "no volume \"v\""},
        {"", "\"Resources\":{\"Devices\":[{\"Name\":\"gpu\",\"Count\":0}]}",
         "count must be at least 1"},
        {"", "\"Resources\":{\"NUMA\":{\"Affinity\":\"require\"}}", "needs cores"},
        {"", "\"Identities\":[{\"Name\":\"x\",\"Audience\":[\"\"]}]", "may not be empty"},
        {"", "\"CSIPluginConfig\":{\"ID\":\"x\",\"Type\":\"y\"}", "controller, node or monolith"},
        {"\"Artifacts\":[{}]", "", "the source is missing"},
        {"\"Artifacts\":[{\"GetterSource\":\"/etc/passwd\"}]", "", "scheme 'file'"},
        {"\"Artifacts\":[{\"GetterSource\":\"http://x/y\",\"RelativeDest\":\"../t/local\"}]", "",
         "not in the directory that its tasks share"},
        {"\"Artifacts\":[{\"GetterSource\":\"http://x/y\",\"RelativeDest\":\"${NOMAD_TASK_DIR}\"}]",
         "", "variables of one task"},
        {"\"Artifacts\":[{\"GetterSource\":\"http://x/"
         "y\",\"GetterHeaders\":{\"A\":\"${secret.a.b}\"}}]",
         "", "variables of one task"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("row");
        const char *g = rows[i].group, *t = rows[i].task;
        refused(mem_printf(
                    ctx,
                    "{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\"%s%s,\"Tasks\":[{\"Name\":\"t\","
                    "\"Driver\":\"exec\"%s%s}]}]}",
                    *g ? "," : "", g, *t ? "," : "", t),
                rows[i].text);
    }
}
END_TEST

START_TEST(blocks_have_defaults)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = parse(
        ctx, "{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Scaling\":{\"Min\":3,\"Max\":5},"
             "\"Artifacts\":[{\"GetterSource\":\"http://x/y/z\",\"GetterMode\":\"file\"},"
             "{\"GetterSource\":\"http://x/a\"}],"
             "\"MaxClientDisconnect\":1,\"Disconnect\":{},\"Services\":[{\"CheckRestart\":"
             "{\"Limit\":2},\"Name\":\"${JOB}-${TASKGROUP}\",\"Checks\":[{\"Type\":\"tcp\","
             "\"PortLabel\":\"80\",\"Interval\":1000000000,\"Timeout\":"
             "1000000000}]}],\"Tasks\":[{\"Name\":\"t\",\"Driver\":\"exec\",\"Artifacts\":"
             "[{\"GetterSource\":\"http://x/y/z\",\"GetterMode\":\"file\"}],\"Templates\":"
             "[{\"EmbeddedTmpl\":\"x\",\"DestPath\":\"x\",\"ChangeMode\":\"signal\"}]}]}]}");
    const struct task_group *g = j->task_groups.v[0];
    const struct service *s = g->services.v[0];
    ck_assert_int_eq(g->count.v, 3);
    ck_assert_str_eq(g->disconnect->reconcile, "best_score");
    ck_assert(g->disconnect->replace.v);
    ck_assert_str_eq(s->name, "j-g");
    ck_assert_str_eq(s->checks.v[0]->name, "service: \"j-g\" check");
    ck_assert_str_eq(s->checks.v[0]->on_update, "require_healthy");
    ck_assert_int_eq(s->checks.v[0]->check_restart->limit, 2);
    ck_assert_int_eq(s->checks.v[0]->check_restart->grace.v, NS_PER_S);
    ck_assert_str_eq(g->tasks.v[0]->artifacts.v[0]->relative_dest, "local/z");
    ck_assert_str_eq(g->artifacts.v[0]->relative_dest, "data/z");
    ck_assert_str_eq(g->artifacts.v[1]->relative_dest, "data/");
    ck_assert_str_eq(g->tasks.v[0]->templates.v[0]->change_signal, "SIGHUP");
    struct str_list errors = {0}, warnings = {0};
    job_validate(ctx, j, NULL, &errors, &warnings);
    ck_assert_msg(errors.n == 0, "%s", job_errors_text(ctx, &errors));
    ck_assert_uint_eq(warnings.n, 1);
}
END_TEST

/* Nobody's id is cut: the limit that the pages tell is the one that holds. */
START_TEST(an_id_is_as_long_as_the_pages_say)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = parse(ctx, small);
    char id[JOB_ID_MAX + 2] = "";
    struct str_list errors = {0}, warnings = {0};
    struct err e = ERR_INIT;
    memset(id, 'x', JOB_ID_MAX);
    j->id = j->name = id;
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), 0);
    ck_assert_int_eq(codec_check(&type_job, j, &e), 0);
    id[JOB_ID_MAX] = 'x';
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), -ERR_INVALID);
    ck_assert_int_lt(codec_check(&type_job, j, &e), 0);
}
END_TEST

START_TEST(a_config_refers_to_ports_and_meta_that_the_job_has)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = parse(
        ctx, "{\"ID\":\"j\",\"Type\":\"batch\",\"Meta\":{\"a.b\":\"1\",\"x-y\":\"2\"},"
             "\"ParameterizedJob\":{\"MetaRequired\":[\"in\"],\"MetaOptional\":[\"opt\"]},"
             "\"TaskGroups\":[{\"Name\":\"g\",\"Meta\":{\"of-group\":\"3\"},"
             "\"Networks\":[{\"DynamicPorts\":[{\"Label\":\"web-ui\"}]}],\"Tasks\":["
             "{\"Name\":\"t\",\"Driver\":\"exec\",\"Env\":{\"NOMAD_META_own\":\"x\"},"
             "\"Config\":{\"command\":\"/bin/x\",\"args\":["
             "\"${NOMAD_PORT_web_ui}${NOMAD_META_a.b} ${NOMAD_META_X_Y}\","
             "\"${NOMAD_ADDR_web_ui} ${NOMAD_META_in} ${NOMAD_META_opt} ${NOMAD_META_OF_GROUP}\","
             "\"${NOMAD_META_own} ${NOMAD_PORT_u_db} ${FOO} $${x} ${NOMAD_TASK_NAME} ${meta.nope}\"]}},"
             "{\"Name\":\"u\",\"Driver\":\"exec\",\"Resources\":{\"Networks\":[{\"DynamicPorts\":["
             "{\"Label\":\"db\"}]}]},\"Config\":{\"args\":[\"${NOMAD_PORT_db}\"]}}]}]}");
    struct str_list errors = {0}, warnings = {0};
    int r = job_validate(ctx, j, NULL, &errors, &warnings);
    ck_assert_msg(r == 0, "%s", errors.n ? errors.v[0] : "?");
    struct value *args = value_list(ctx), *labels = value_map(ctx), *config = value_map(ctx);
    static const char *const texts[] = {"${NOMAD_PORT_db} ${NOMAD_IP_x}",
                                        "a ${NOMAD_PORT_db} ${NOMAD_META_nope}",
                                        "${NOMAD_PORT_web-ui} ${NOMAD_META_x-y}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        value_list_add(args, value_str(ctx, texts[i]));
    value_map_set(labels, "k${NOMAD_META_A_B}${NOMAD_META_Nope}", value_str(ctx, "x"));
    value_map_set(config, "args", args);
    value_map_set(config, "labels", labels);
    j->task_groups.v[0]->tasks.v[0]->config = config;
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), -ERR_INVALID);
    static const char *const names[] = {"NOMAD_PORT_db",     "NOMAD_IP_x",     "NOMAD_META_nope",
                                        "NOMAD_PORT_web-ui", "NOMAD_META_x-y", "NOMAD_META_A_B",
                                        "NOMAD_META_Nope"};
    ck_assert_uint_eq(errors.n, ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        ck_assert_msg(strstr(errors.v[i], mem_printf(ctx, "${%s}, and ", names[i])) != NULL, "%s",
                      errors.v[i]);
    /* very many cost no time, and some are told */
    struct value *many = value_list(ctx), *large = value_map(ctx);
    for (int n = 0; n < 200000; n++)
        value_list_add(many, value_str(ctx, mem_printf(ctx, "${NOMAD_META_n%d}", n)));
    value_map_set(large, "args", many);
    j->task_groups.v[0]->tasks.v[0]->config = large;
    errors.n = 0;
    ck_assert_int_eq(job_validate(ctx, j, NULL, &errors, &warnings), -ERR_INVALID);
    ck_assert_uint_ge(errors.n, 64);
    ck_assert_uint_le(errors.n, 70);
}
END_TEST

TEST_SUITE("validate", a_config_refers_to_ports_and_meta_that_the_job_has, defaults_of_a_service,
           batch_and_inheritance,
           a_machine_goes_where_its_accelerator_is, of_nomad, empty_is_null, bounds, sealed_files,
           an_environment_that_no_launch_takes_is_refused,
           ports_count_with_every_variable_that_they_make,
           a_launch_larger_than_the_message_is_refused, many_groups, at_once_is_bounded,
           errors_are_collected, an_update_of_a_batch_job_is_one_error,
           the_allocations_directory_is_inside, a_mount_of_a_read_only_volume_need_not_say_so,
           what_a_job_leaves_out_of_update_is_zero, blocks_are_checked, blocks_have_defaults,
           an_id_is_as_long_as_the_pages_say, names_and_cores_are_bounded_as_paddock_limits_says)
