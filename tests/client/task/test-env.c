/* SPDX-License-Identifier: Apache-2.0
 *
 * NOMAD_* variables, their layers, and ${...}.
 */
#include <string.h>

#include "api/limits.h"
#include "api/validate_launch.h"
#include "client/io/stats.h"
#include "client/task/task_int.h"
#include "client/io/log_index.h"
#include "client/task/env.h"
#include "client/task/resolv.h"
#include "common/duration.h"
#include "common/mem.h"
#include "tests/lib/test.h"

struct fixture {
    struct env_input in;
    struct node node;
    struct allocation alloc;
    struct job job;
    struct task_group tg;
    struct task task;
    struct allocated_task_resources res;
    struct allocated_cpu_resources cpu;
    struct allocated_memory_resources mem;
};

static struct fixture *
fixture(void *ctx)
{
    static const char *const host[] = {"PATH=/usr/bin", "NOMAD_TOKEN=secret", "NOMAD_DC=evil", "a b=c", NULL};
    static const char *const deny[] = {"NOMAD_TOKEN", NULL};
    struct fixture *f = mem_new(ctx, struct fixture);
    f->node = (struct node){.id = "n1", .name = "host1", .datacenter = "dc9", .node_class = "big"};
    str_map_set(f, &f->node.attributes, "kernel.name", "linux");
    str_map_set(f, &f->node.meta, "rack", "r7");
    f->job = (struct job){.id = "web", .name = "web"};
    str_map_set(f, &f->job.meta, "owner-x", "ops");
    str_map_set(f, &f->job.meta, "level", "job");
    str_map_set(f, &f->tg.meta, "level", "group");
    f->tg.name = "front";
    f->task.name = "srv";
    f->alloc = (struct allocation){.id = "12345678-aaaa-bbbb-cccc-0123456789ab",
                                   .name = "web.front[3]",
                                   .job = &f->job,
                                   .namespace = "default"};
    f->cpu.cpu_shares = 500;
    for (int64_t i = 0; i < 4; i++)
        list_add(f, f->cpu.reserved_cores, i < 3 ? i : 7);
    f->mem.memory_mb = 256;
    f->res.cpu = &f->cpu;
    f->res.memory = &f->mem;
    f->in = (struct env_input){.node = &f->node, .region = "global", .alloc = &f->alloc,
                               .group = &f->tg, .task = &f->task, .resources = &f->res,
                               .alloc_dir = "/alloc", .task_dir = "/local",
                               .secrets_dir = "/secrets", .host_env = host, .host_deny = deny};
    return f;
}

static void
add_port(struct fixture *f, const char *label, int64_t value, int64_t to)
{
    struct allocated_port_mapping *p = mem_new(f, struct allocated_port_mapping);
    *p = (struct allocated_port_mapping){
        .label = label, .value = value, .to = to, .host_ip = "10.0.0.5"};
    if (!f->alloc.allocated_resources) {
        f->alloc.allocated_resources = mem_new(f, struct allocated_resources);
        f->alloc.allocated_resources->shared = mem_new(f, struct allocated_shared_resources);
    }
    list_add(f, f->alloc.allocated_resources->shared->ports, p);
}

#define IS(env, name, value) ck_assert_pstr_eq(env_get((env), (name)), (value))

START_TEST(ids_and_limits)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    struct env *e = env_build(ctx, &f->in);
    IS(e, "NOMAD_ALLOC_ID", "12345678-aaaa-bbbb-cccc-0123456789ab");
    IS(e, "NOMAD_SHORT_ALLOC_ID", "12345678");
    IS(e, "NOMAD_ALLOC_INDEX", "3");
    IS(e, "a b", NULL); /* no launch would take it */
    IS(e, "NOMAD_ALLOC_NAME", "web.front[3]");
    IS(e, "NOMAD_TASK_NAME", "srv");
    IS(e, "NOMAD_GROUP_NAME", "front");
    IS(e, "NOMAD_DC", "dc9"); /* the host's does not override */
    IS(e, "NOMAD_REGION", "global");
    IS(e, "NOMAD_CPU_LIMIT", "500");
    IS(e, "NOMAD_CPU_CORES", "0-2,7");
    IS(e, "NOMAD_MEMORY_LIMIT", "256");
    IS(e, "NOMAD_MEMORY_MAX_LIMIT", NULL);
    IS(e, "NOMAD_TASK_DIR", "/local");
    IS(e, "NOMAD_JOB_PARENT_ID", NULL);
    IS(e, "PATH", "/usr/bin");
    IS(e, "NOMAD_TOKEN", NULL);
}
END_TEST

START_TEST(meta_layers)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    struct env *e = env_build(ctx, &f->in);
    IS(e, "NOMAD_META_level", "group");
    IS(e, "NOMAD_META_LEVEL", "group");
    IS(e, "NOMAD_META_owner_x", "ops");
    IS(e, "NOMAD_META_OWNER_X", "ops");
}
END_TEST

/* Registration leaves room for as many. */
START_TEST(ports_and_meta_make_as_many_variables_as_registration_counts)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    struct str_list before, after;
    f->job.meta = f->tg.meta = (struct str_map){0};
    env_list(ctx, env_build(ctx, &f->in), &before);
    ck_assert_uint_le(before.n, 4096 - JOB_ENV_MAX);
    str_map_set(f, &f->job.meta, "a", "x");
    env_list(ctx, env_build(ctx, &f->in), &after);
    ck_assert_uint_eq(after.n, before.n + LAUNCH_META_VARS);
    f->job.meta.n = 0;
    add_port(f, "a-b", 80, 0);
    env_list(ctx, env_build(ctx, &f->in), &after);
    ck_assert_uint_eq(after.n, before.n + LAUNCH_PORT_VARS);
    struct str_map hooks = {0};
    str_map_set(f, &hooks, "NOMAD_ALLOC_IP_a-b", "10.1.2.3");
    f->in.hooks = &hooks;
    IS(env_build(ctx, &f->in), "NOMAD_ALLOC_IP_a-b", "10.1.2.3");
}
END_TEST

START_TEST(ports)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    add_port(f, "http-in", 21000, 8080);
    add_port(f, "db", 6379, 0);
    struct env *e = env_build(ctx, &f->in);
    IS(e, "NOMAD_PORT_http_in", "8080");
    IS(e, "NOMAD_ALLOC_PORT_http-in", "8080");
    IS(e, "NOMAD_HOST_PORT_http_in", "21000");
    IS(e, "NOMAD_ADDR_http_in", "10.0.0.5:21000");
    IS(e, "NOMAD_IP_http_in", "10.0.0.5");
    IS(e, "NOMAD_HOST_ADDR_http-in", "10.0.0.5:21000");
    IS(e, "NOMAD_PORT_db", "6379");
}
END_TEST

START_TEST(what_a_driver_maps_is_the_port_of_the_task)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    struct value *map = value_map(ctx);
    add_port(f, "db", 29756, 0);
    add_port(f, "w-b", 29757, 0);
    str_map_set(f, &f->task.env, "TOLD", "${NOMAD_PORT_db}");
    struct env *e = env_build(ctx, &f->in);
    value_map_set(map, "db", value_int(ctx, 6379));
    value_map_set(map, "w-b", value_str(ctx, "80"));
    env_map_ports(e, map);
    IS(e, "NOMAD_PORT_db", "6379");
    IS(e, "NOMAD_PORT_w_b", "80");
    IS(e, "NOMAD_HOST_PORT_db", "29756");
    IS(e, "NOMAD_ADDR_db", "10.0.0.5:29756");
    IS(e, "TOLD", "29756"); /* as in Nomad: what a job file refers to is the host's */
    env_map_ports(e, NULL);
}
END_TEST

START_TEST(own_variables_are_resolved)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    add_port(f, "db", 6379, 0);
    str_map_set(f, &f->task.env, "URL", "redis://${NOMAD_ADDR_db}/${meta.rack}");
    str_map_set(f, &f->task.env, "PATH", "/opt:${env.PATH}");
    str_map_set(f, &f->task.env, "OTHER", "${URL}");
    struct env *e = env_build(ctx, &f->in);
    IS(e, "URL", "redis://10.0.0.5:6379/r7");
    IS(e, "PATH", "/opt:/usr/bin");
    IS(e, "OTHER", "${URL}");
    struct str_list l;
    env_list(ctx, e, &l);
    for (size_t i = 1; i < l.n; i++)
        ck_assert_int_lt(strcmp(l.v[i - 1], l.v[i]), 0);
}
END_TEST

/* Their names have a "_" in place of what no variable's name has, and a config refers to those. */
START_TEST(ports_and_meta_have_the_names_of_the_job_in_values_of_variables)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    add_port(f, "web-ui", 8080, 80);
    str_map_set(f, &f->task.env, "A", "${NOMAD_PORT_web-ui} ${NOMAD_PORT_web_ui} ${NOMAD_HOST_PORT_web-ui}");
    str_map_set(f, &f->task.env, "B", "${NOMAD_META_owner-x} ${NOMAD_META_owner_x} ${NOMAD_META_no-such}");
    str_map_set(f, &f->task.meta, "c", "${NOMAD_ADDR_web-ui}");
    struct env *e = env_build(ctx, &f->in);
    IS(e, "A", "80 80 8080");
    IS(e, "B", "ops ops ${NOMAD_META_no-such}");
    IS(e, "NOMAD_META_c", "10.0.0.5:8080");
    ck_assert_str_eq(env_interpolate(ctx, e, "${NOMAD_PORT_web-ui}"), "${NOMAD_PORT_web-ui}");
}
END_TEST

START_TEST(interpolation)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    struct env *e = env_build(ctx, &f->in);
    static const char *const rows[][2] = {
        {"plain", "plain"},
        {"${node.unique.name}", "host1"},
        {"${node.class}-${attr.kernel.name}", "big-linux"},
        {"${node.datacenter}${node.region}", "dc9global"},
        {"${NOMAD_TASK_NAME}", "srv"},
        {"${unknown.thing}", "${unknown.thing}"},
        {"${", "${"},
        {"${}", "${}"},
        {"$${NOMAD_TASK_NAME}", "$srv"},
        {"${a b}", "${a b}"},
        {"x${NOMAD_TASK_NAME", "x${NOMAD_TASK_NAME"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ck_assert_str_eq(env_interpolate(ctx, e, rows[i][0]), rows[i][1]);
}
END_TEST

START_TEST(a_text_that_grows_too_long_is_told)
{
    auto_mem void *ctx = mem_ctx("t");
    struct err err = ERR_INIT;
    struct fixture *f = fixture(ctx);
    char *half = mem_array(ctx, char, ENV_VALUE_MAX / 2 + 1);
    memset(half, 'x', ENV_VALUE_MAX / 2);
    str_map_set(ctx, &f->task.meta, "half", half);
    struct env *e = env_build(ctx, &f->in);
    (void)env_interpolate(ctx, e, "${NOMAD_META_half}${NOMAD_META_half}");
    ck_assert_int_eq(env_check(e, &err), 0);
    (void)env_interpolate(ctx, e, "more: ${NOMAD_META_half}${NOMAD_META_half}");
    ck_assert_int_eq(env_check(e, &err), -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "\"more: ${NOMAD_META_half}"));

    str_map_set(ctx, &f->task.env, "GROWS", "${NOMAD_META_half}${NOMAD_META_half}.");
    ck_assert_int_eq(env_check(env_build(ctx, &f->in), &err), -ERR_INVALID);
}
END_TEST

START_TEST(values_at_any_depth)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    struct env *e = env_build(ctx, &f->in);
    struct value *v = value_map(ctx), *l = value_list(ctx), *top = v;
    value_list_add(l, value_str(ctx, "-n${NOMAD_ALLOC_INDEX}"));
    value_list_add(l, value_int(ctx, 4));
    value_map_set(v, "args", l);
    for (int i = 0; i < 500; i++) { /* deeper than is looked at: copied, no overflow */
        struct value *m = value_map(ctx);
        value_map_set(m, "m", top);
        top = m;
    }
    ck_assert_ptr_nonnull(env_interpolate_value(ctx, e, top));
    struct value *r = env_interpolate_value(ctx, e, v);
    ck_assert_str_eq(value_get(r, "args")->list.v[0]->str.s, "-n3");
    ck_assert_int_eq(value_get(r, "args")->list.v[1]->i, 4);
    ck_assert_ptr_null(env_interpolate_value(ctx, e, NULL));
}
END_TEST

START_TEST(keys_of_a_config_are_resolved)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    struct env *e = env_build(ctx, &f->in);
    struct value *v = value_map(ctx), *labels = value_map(ctx);
    value_map_set(labels, "idx.${NOMAD_ALLOC_INDEX}", value_str(ctx, "x"));
    value_map_set(v, "labels", labels);
    const struct value *r = value_get(env_interpolate_value(ctx, e, v), "labels");
    ck_assert_uint_eq(r->map.n, 1);
    ck_assert_str_eq(r->map.v[0].k, "idx.3");
    struct err why = ERR_INIT;
    ck_assert_int_eq(env_check(e, &why), 0);
}
END_TEST

START_TEST(a_config_refers_to_nothing_that_is_not_there)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    struct env *e = env_build(ctx, &f->in);
    struct value *v = value_map(ctx), *args = value_list(ctx);
    static const char *const texts[] = {"${NOMAD_META_nope}", "${meta.nope} ${meta.rack} ${FOO}",
                                        "${attr.no.such}", "${NOMAD_PORT_x}", "${NOMAD_PORT_x}",
                                        "${NOMAD_TASK_NAME} $${x} ${a-b}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        value_list_add(args, value_str(ctx, texts[i]));
    value_map_set(v, "args", args);
    env_interpolate_value(ctx, e, v);
    struct err why = ERR_INIT;
    ck_assert_int_eq(env_check(e, &why), -ERR_INVALID);
    ck_assert_str_eq(why.text,
                     "the task refers to what has no value: ${NOMAD_META_nope}, ${meta.nope}, "
                     "${attr.no.such}, ${NOMAD_PORT_x}");
    struct env *other = env_build(ctx, &f->in);
    ck_assert_str_eq(env_interpolate(ctx, other, "${NOMAD_META_nope}"), "${NOMAD_META_nope}"); /* of env */
    struct err none = ERR_INIT;
    ck_assert_int_eq(env_check(other, &none), 0);
}
END_TEST

START_TEST(secrets_resolve_and_are_asked_for_by_name)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    struct str_map secrets = {0};
    str_map_set(ctx, &secrets, "db.password", "p${node.class}");
    f->in.secrets = &secrets;
    str_map_set(ctx, &f->task.env, "PASSWORD", "<${secret.db.password}>");
    struct env *e = env_build(ctx, &f->in);
    IS(e, "PASSWORD", "<p${node.class}>"); /* a value is no text of the job */
    ck_assert_ptr_null(env_get(e, "secret.db.password"));
    struct err none = ERR_INIT;
    ck_assert_int_eq(env_check(e, &none), 0);
    str_map_set(ctx, &f->task.env, "NONE", "${secret.db.none} ${secret.x.password}");
    struct err why = ERR_INIT;
    ck_assert_int_eq(env_check(env_build(ctx, &f->in), &why), -ERR_INVALID);
    ck_assert_str_eq(why.text, "the task refers to what has no value: ${secret.db.none}, "
                               "${secret.x.password}");
}
END_TEST

START_TEST(log_names)
{
    uint64_t n;
    ck_assert(log_index_parse("web.stdout.12", "web", "stdout", &n));
    ck_assert_uint_eq(n, 12);
    static const char *const bad[] = {"web.stdout.", "web.stdout.x", "web.stdout.1x", "web.stderr.1",
                                      "web2.stdout.1", "web.stdout.-1", "", ".web.stdout.fifo",
                                      "web.stdout.99999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!log_index_parse(bad[i], "web", "stdout", &n), "%s", bad[i]);
}
END_TEST

START_TEST(log_seek)
{
    auto_mem void *ctx = mem_ctx("t");
    struct log_set s = {0};
    uint64_t index;
    int64_t pos;
    ck_assert(!log_index_seek(&s, 0, false, &index, &pos));
    log_index_add(ctx, &s, 9, 30);
    log_index_add(ctx, &s, 5, 10);
    log_index_add(ctx, &s, 7, 20);
    log_index_add(ctx, &s, 7, 21);
    ck_assert_uint_eq(s.n, 3);
    static const struct {
        int64_t offset;
        bool end;
        uint64_t index;
        int64_t pos;
    } rows[] = {
        {0, false, 5, 0},   {10, false, 5, 10}, {11, false, 7, 1}, {1000, false, 9, 30},
        {0, true, 9, 0},    {1, true, 9, 29},  {30, true, 9, 0},   {31, true, 7, 20}, {51, true, 7, 0},
        {1000, true, 5, 0}, {-5, false, 5, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ck_assert(log_index_seek(&s, rows[i].offset, rows[i].end, &index, &pos));
        ck_assert_msg(index == rows[i].index && pos == rows[i].pos, "row %zu: %d %d", i, (int)index,
                      (int)pos);
    }
    ck_assert(log_index_next(&s, 5, &index));
    ck_assert_uint_eq(index, 7);
    ck_assert(!log_index_next(&s, 9, &index));
    log_index_remove(&s, 7);
    log_index_remove(&s, 8);
    ck_assert_uint_eq(s.n, 2);
    ck_assert(log_index_next(&s, 5, &index));
    ck_assert_uint_eq(index, 9);
    log_index_remove(&s, 9);
    ck_assert(!log_index_next(&s, 5, &index));
}
END_TEST

/* One who follows for long: what was rotated away makes room. */
START_TEST(log_followed)
{
    auto_mem void *ctx = mem_ctx("t");
    struct log_set s = {0};
    uint64_t index;
    for (uint64_t i = 0; i < 3 * LOG_INDEX_FILES_MAX; i++) {
        log_index_add(ctx, &s, i, 0);
        if (i >= 3)
            log_index_remove(&s, i - 3);
        ck_assert(i == 0 || (log_index_next(&s, i - 1, &index) && index == i));
    }
    ck_assert_uint_eq(s.n, 3);
}
END_TEST

START_TEST(resolv_of_a_group)
{
    auto_mem void *ctx = mem_ctx("t");
    struct env *e = env_build(ctx, &fixture(ctx)->in);
    static const char host[] =
        "# by hand\nsearch old\nnameserver 10.0.0.1\n\tnameserver\t10.0.0.2 \nsearch corp example\n"
        "options ndots:2\noptions rotate\n;nameserver 1.1.1.1\n";
    struct dns_config d = {0};
    ck_assert_str_eq(resolv_text(ctx, e, &d, host, NULL),
                     "search corp example\nnameserver 10.0.0.1\nnameserver 10.0.0.2\n"
                     "options ndots:2 rotate\n");
    ck_assert_str_eq(resolv_text(ctx, e, &d, NULL, NULL), "");
    list_add(ctx, d.servers, "192.0.2.1");
    list_add(ctx, d.servers, "2001:db8::1");
    list_add(ctx, d.searches, "${node.datacenter}.internal");
    ck_assert_str_eq(resolv_text(ctx, e, &d, host, NULL),
                     "search dc9.internal\nnameserver 192.0.2.1\nnameserver 2001:db8::1\n"
                     "options ndots:2 rotate\n");
}
END_TEST

static void
no_resolv(const char *server, const char *search, const char *why)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture(ctx);
    struct err err = ERR_INIT;
    struct dns_config d = {0};
    str_map_set(ctx, &f->node.meta, "evil", "192.0.2.1\noptions trust-ad");
    struct env *e = env_build(ctx, &f->in);
    if (server)
        list_add(ctx, d.servers, server);
    if (search)
        list_add(ctx, d.searches, search);
    ck_assert_ptr_null(resolv_text(ctx, e, &d, NULL, &err));
    ck_assert_msg(strstr(err.text, why) != NULL, "%s", err.text);
}

START_TEST(what_is_put_into_resolv_conf_is_looked_at_again)
{
    no_resolv("${meta.evil}", NULL, "not one word");
    no_resolv(NULL, "x.${meta.evil}", "not one word");
    no_resolv("${node.datacenter}", NULL, "not an IP address");
    no_resolv("${meta.none}", NULL, "not an IP address");
}
END_TEST

/* A clock that was set back would have the last rate stand until it has caught up. */
START_TEST(cpu_rate_when_the_clock_is_set_back)
{
    const int64_t t0 = INT64_C(1700000000) * NS_PER_S, back = t0 - 3600 * NS_PER_S;
    struct cpu_sample s = {0};
    cpu_sample_add(&s, t0 + NS_PER_S, t0, 500000, 250000);
    ck_assert(s.user_pct > 49.9 && s.user_pct < 50.1 && s.system_pct > 24.9 && s.system_pct < 25.1);
    cpu_sample_add(&s, back, t0, 600000, 250000); /* over a span that nobody knows */
    ck_assert(s.user_pct > 49.9 && s.user_pct < 50.1);
    cpu_sample_add(&s, back + 2 * NS_PER_S, t0, 800000, 250000);
    ck_assert_msg(s.user_pct > 9.9 && s.user_pct < 10.1 && s.system_pct == 0, "%f", s.user_pct);
    s = (struct cpu_sample){0}; /* set back before the first sample */
    cpu_sample_add(&s, back, t0, 500000, 0);
    ck_assert(s.user_pct == 0);
}
END_TEST

TEST_SUITE("env", ids_and_limits, meta_layers, ports, what_a_driver_maps_is_the_port_of_the_task,
           ports_and_meta_make_as_many_variables_as_registration_counts, own_variables_are_resolved,
           ports_and_meta_have_the_names_of_the_job_in_values_of_variables, interpolation,
           a_text_that_grows_too_long_is_told, values_at_any_depth, keys_of_a_config_are_resolved,
           a_config_refers_to_nothing_that_is_not_there, secrets_resolve_and_are_asked_for_by_name,
           resolv_of_a_group, what_is_put_into_resolv_conf_is_looked_at_again, log_names, log_seek,
           log_followed, cpu_rate_when_the_clock_is_set_back)
