/* SPDX-License-Identifier: Apache-2.0
 *
 * The pure parts of the privilege boundary: names, paths, specs, policy, plan, record.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/limits.h"
#include "api/plain.h"
#include "codec/codec.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/launch/plan.h"
#include "isolation/launch/policy.h"
#include "isolation/launch/proto.h"
#include "isolation/launch/record.h"
#include "tests/lib/test.h"

#define ID "01234567-89ab-cdef-0123-456789abcdef"

START_TEST(checks_names_and_paths)
{
    static const char *const good_names[] = {"web", "a", "my task", "web-1_2.x", "t\xc3\xa4sk"};
    static const char *const bad_names[] = {"",     ".",    "..", "a/b",          "alloc",   "a\nb",
                                            "\x7f", ".web", "/",  "cgroup.procs", "cgroup.x"};
    for (size_t i = 0; i < ARRAY_LEN(good_names); i++)
        ck_assert_msg(plain_task_name(good_names[i]), "%s", good_names[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad_names); i++)
        ck_assert_msg(!plain_task_name(bad_names[i]), "%s", bad_names[i]);
    char name[200];
    memset(name, 'a', sizeof(name));
    name[JOB_TASK_NAME_MAX] = '\0';
    ck_assert(plain_task_name(name));
    name[JOB_TASK_NAME_MAX] = 'a';
    name[JOB_TASK_NAME_MAX + 1] = '\0';
    ck_assert(!plain_task_name(name));
    static const char *const good_paths[] = {"", "a", "web/local/x", "a/b c/...", "..a/b.."};
    static const char *const bad_paths[] = {"/",    "/a",   "a/",    "a//b", "..",
                                            "a/..", "../a", "a/./b", ".",    "a\tb"};
    for (size_t i = 0; i < ARRAY_LEN(good_paths); i++)
        ck_assert_msg(plain_path(good_paths[i]), "%s", good_paths[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad_paths); i++)
        ck_assert_msg(!plain_path(bad_paths[i]), "%s", bad_paths[i]);
    char deep[JOB_PATH_DEPTH_MAX * 2 + 4] = "";
    for (size_t i = 0; i <= JOB_PATH_DEPTH_MAX; i++)
        memcpy(deep + i * 2, "a/", 2);
    deep[JOB_PATH_DEPTH_MAX * 2 + 1] = '\0';
    ck_assert(!plain_path(deep));
    ck_assert_int_lt(proto_check_alloc_id("0123456789abcdef"), 0);
    ck_assert_int_lt(proto_check_alloc_id(NULL), 0);
}
END_TEST

static struct launch_spec *
spec(void *ctx)
{
    struct launch_spec *s = type_new(ctx, &type_launch_spec);
    s->alloc_id = ID;
    s->task_name = "web";
    s->driver = "raw_exec";
    s->command = "run";
    s->isolation = type_new(s, &type_task_isolation);
    return s;
}

START_TEST(checks_specs)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    struct launch_spec *s = spec(ctx);
    ck_assert_int_eq(proto_check_spec(s, &e), 0);
    static const char *const bad_env[] = {"", "A", "=x", "A B=x", "A\n=x", "\x01=x"};
    for (size_t i = 0; i < ARRAY_LEN(bad_env); i++) {
        s = spec(ctx);
        list_add(s, s->env, bad_env[i]);
        ck_assert_msg(proto_check_spec(s, &e) < 0, "%s", bad_env[i]);
        err_clear(&e);
    }
    s = spec(ctx);
    s->isolation->apparmor = "x"; /* of an isolated task alone */
    ck_assert_int_eq(proto_check_spec(s, &e), -ERR_INVALID);
    err_clear(&e);
    s->isolated = true;
    ck_assert_int_eq(proto_check_spec(s, &e), 0);
    s = spec(ctx);
    struct task_verity v = {.path = "local/x"};
    list_add(s, s->isolation->verity, &v);
    ck_assert_int_eq(proto_check_spec(s, &e), -ERR_INVALID); /* of an isolated task alone */
    err_clear(&e);
    s->isolated = true;
    ck_assert_int_eq(proto_check_spec(s, &e), 0);
    static const char *const bad_paths[] = {"", "/x", "../x", "a/../x", "a//x", "x/", "a\nx"};
    for (size_t i = 0; i < ARRAY_LEN(bad_paths); i++) {
        v.path = bad_paths[i];
        ck_assert_msg(proto_check_spec(s, &e) < 0, "%s", bad_paths[i]);
        err_clear(&e);
    }
    v = (struct task_verity){.path = "x", .digest = "sha256:0"};
    ck_assert_int_eq(proto_check_spec(s, &e), -ERR_INVALID);
    err_clear(&e);
    s = spec(ctx);
    list_add(s, s->env, "A=\n=x");
    ck_assert_int_eq(proto_check_spec(s, &e), 0);
    struct launch_limits l = {.memory_max = -1};
    s->limits = &l;
    ck_assert_int_lt(proto_check_spec(s, &e), 0);
    s->limits = NULL;
    s->isolation->nofile = 1 << 21;
    ck_assert_int_lt(proto_check_spec(s, &e), 0);
    s->isolation->nofile = 0;
    struct launch_logs g = {.dir = "../x"};
    s->logs = &g;
    ck_assert_int_lt(proto_check_spec(s, &e), 0);
    s->logs = NULL;
    struct launch_mount m = {.source = "/a/../etc", .target = "x"};
    list_add(s, s->mounts, &m);
    ck_assert_int_lt(proto_check_spec(s, &e), 0);
}
END_TEST

/* Numbers of the agent that become cgroup files, an index into a bitmap or a Landlock rule. */
START_TEST(checks_limits)
{
    auto_mem void *ctx = mem_ctx("test");
    static const char *const disks[] = {"8:0",        "",     "8",          ":",
                                        "8:0:0",      "a:b",  "-1:0",       "8:0\n",
                                        "99999999:0", "8: 0", "8:0 rbps=1", "+8:0"};
    for (size_t i = 0; i < ARRAY_LEN(disks); i++) {
        struct task_io io = {.device = disks[i], .read_bps = 1}, *v[] = {&io};
        struct launch_spec *s = spec(ctx);
        struct err e = ERR_INIT;
        s->isolation->io = (struct task_io_list){v, 1};
        ck_assert_msg((proto_check_spec(s, &e) == 0) == (i == 0), "\"%s\"", disks[i]);
    }
    int64_t core = 0, port = 0;
    struct task_pressure pressure = {0};
    struct task_landlock ports = {.bind = {&port, 1}};
    struct launch_limits l = {.cores = {&core, 1}};
    struct launch_spec *s = spec(ctx);
    struct task_isolation *i = s->isolation;
    i->pressure = &pressure;
    s->limits = &l;
    s->isolated = true;
    s->isolation->landlock = &ports;
    const struct {
        int64_t *what, bad;
    } rows[] = {{&core, -1},            {&core, CGROUP_CPUS_MAX}, {&port, -1},
                {&port, 65536},         {&pressure.memory, -1},   {&pressure.io, NS_PER_S + 1},
                {&i->io_weight, 10001}, {&i->memory_min, -1},     {&i->hugetlb, INT64_MIN},
                {&i->swap, INT64_MAX},  {&i->cpu_burst, -1},      {&l.memory_low, -1}};
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        struct err e = ERR_INIT;
        ck_assert_msg(proto_check_spec(s, &e) == 0, "%s", e.text);
        *rows[k].what = rows[k].bad;
        ck_assert_msg(proto_check_spec(s, &e) < 0, "row %zu", k);
        *rows[k].what = 0;
    }
    struct err many = ERR_INIT;
    struct task_io io = {.device = "8:0", .read_bps = 1};
    for (int n = 0; n <= JOB_DISKS_MAX; n++) {
        ck_assert_msg(proto_check_spec(s, &many) == 0, "%s", many.text);
        list_add(s, i->io, &io);
    }
    ck_assert_int_lt(proto_check_spec(s, &many), 0);
    i->io.n = 0;
    struct err e = ERR_INIT;
    s->isolation->proc = "all";
    ck_assert_int_lt(proto_check_spec(s, &e), 0);
    struct warden_request q = {.op = WARDEN_RESIZE, .alloc_id = ID, .task_name = "web"};
    err_clear(&e);
    ck_assert_int_lt(proto_check(&q, PROTO_READY, &e), 0); /* without limits */
    q.limits = &l;
    err_clear(&e);
    ck_assert_msg(proto_check(&q, PROTO_READY, &e) == 0, "%s", e.text);
    ck_assert_int_lt(proto_check(&q, PROTO_HELLO, &e), 0);
    q.op = WARDEN_PAUSE;
    err_clear(&e);
    ck_assert_int_lt(proto_check(&q, PROTO_READY, &e), 0); /* with limits */
}
END_TEST

static const char *
string_at(const void *plan, uint64_t at)
{
    return (const char *)plan + at;
}

START_TEST(plans_commands)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    struct launch_spec *s = spec(ctx);
    list_add(s, s->args, "");
    list_add(s, s->args, "-x");
    list_add(s, s->env, "PATH=/bin::rel:/sbin");
    struct user u = {.uid = 7, .gid = 8, .n_groups = 1, .groups = {8}};
    struct plan_input in = {
        .spec = s, .user = &u, .task_dir = "/a/web", .apparmor = "aa", .log_index = {3, 0}};
    void *plan = NULL;
    size_t n = 0;
    ck_assert_int_eq(plan_make(ctx, &in, &plan, &n, &e), 0);
    ck_assert_int_eq(plan_check(plan, n), 0);
    const struct plan_header *h = plan;
    static const char *const want[] = {"/a/web/local/run", "/a/web/run", "/bin/run", "/sbin/run"};
    const uint64_t *v = (const uint64_t *)(const void *)((const char *)plan + h->paths.at);
    ck_assert_uint_eq(h->paths.n, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        ck_assert_str_eq(string_at(plan, v[i]), want[i]);
    v = (const uint64_t *)(const void *)((const char *)plan + h->args.at);
    ck_assert_uint_eq(h->args.n, 3);
    ck_assert_str_eq(string_at(plan, v[0]), "run");
    ck_assert_str_eq(string_at(plan, v[1]), "");
    ck_assert_str_eq(string_at(plan, v[2]), "-x");
    ck_assert_str_eq(string_at(plan, h->work_dir), "/a/web");
    ck_assert_str_eq(string_at(plan, h->apparmor), "aa");
    ck_assert_str_eq(string_at(plan, h->logs[1].name), "web.stderr.");
    ck_assert_uint_eq(h->logs[0].index, 3);
    const struct confine *c = (const void *)string_at(plan, h->confine);
    ck_assert_uint_eq(c->uid, 7);
    ck_assert_uint_eq(c->flags, CONFINE_IDS);
    ck_assert_uint_eq(h->flags, PLAN_SUBREAPER | PLAN_ROOT);
    /* cut or bent blocks are refused */
    for (size_t k = 0; k < n; k++)
        ck_assert_int_lt(plan_check(plan, k), 0);
    struct plan_header *bad = mem_dup(ctx, plan, n);
    bad->args.at = (uint32_t)n;
    ck_assert_int_lt(plan_check(bad, n), 0);
    bad = mem_dup(ctx, plan, n);
    bad->apparmor = (uint32_t)n;
    ck_assert_int_lt(plan_check(bad, n), 0);
    bad = mem_dup(ctx, plan, n);
    ((uint64_t *)(void *)((char *)bad + bad->env.at))[0] = n;
    ck_assert_int_lt(plan_check(bad, n), 0);
}
END_TEST

/* The program is a sealed file when a verity block names it, whatever the spelling; where it could
 * be but cannot be told, nothing is executed. */
START_TEST(plans_sealed_files)
{
    auto_mem void *ctx = mem_ctx("test");
    static const char digest[] =
        "sha256:00000000000000000000000000000000000000000000000000000000000000ff";
    struct task_verity a = {.path = "local/a"}, b = {.path = "alloc/data/b", .digest = digest};
    struct user u = {.uid = 7, .gid = 8};
    struct mounts_plan mounts = {.bytes = sizeof(mounts)};
    static const struct {
        const char *command;
        int program; /* -1: refused */
    } rows[] = {
        {"/alloc/data/b", 2},
        {"//alloc/.//data/b", 2},
        {"alloc/data/b", 2},
        {"a", 1},
        {"/local/a", 1},
        {"./local/a", 1},
        {"/local/a/x", 0},
        {"/local", 0},
        {"/local/ab", 0},
        {"/usr/bin/a", 0},
        {"b", 0},
        {"/local/../local/a", -1},
        {"../b", -1},
        {"/local/..", -1},
        {"/local/..a", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct launch_spec *s = spec(ctx);
        struct err e = ERR_INIT;
        void *plan = NULL;
        size_t n = 0;
        s->isolated = true;
        s->command = rows[i].command;
        list_add(s, s->isolation->verity, &a);
        list_add(s, s->isolation->verity, &b);
        struct plan_input in = {.spec = s, .user = &u, .mounts = &mounts, .task_dir = "/a/web"};
        int r = plan_make(ctx, &in, &plan, &n, &e);
        ck_assert_msg((r < 0) == (rows[i].program < 0), "%s: %s", s->command, e.text);
        if (r < 0) {
            ck_assert_msg(strstr(e.text, "name it as its verity block does") != NULL, "%s", e.text);
            continue;
        }
        const struct plan_header *h = plan;
        ck_assert_msg((int)h->program == rows[i].program, "%s: %u", s->command, h->program);
        ck_assert_uint_eq(h->verity.n, 2);
        struct plan_verity *v = (void *)((char *)plan + h->verity.at);
        ck_assert_str_eq(string_at(plan, v[1].path), b.path);
        ck_assert(v[0].has_digest == 0 && v[1].has_digest && v[1].digest[31] == 0xff);
        struct shim_status st = {.stage = SHIM_VERITY, .op = 1, .error = EBADMSG, .what = "digest"};
        st.digest[0] = 0xab;
        plan_explain(plan, &st, &e);
        ck_assert_msg(strstr(e.text, "\"alloc/data/b\" is not the file") != NULL &&
                          strstr(e.text, "sha256:ab00") != NULL,
                      "%s", e.text);
        v[1].path = (uint32_t)n;
        ck_assert_int_lt(plan_check(plan, n), 0);
        v[1].path = v[0].path;
        ((struct plan_header *)plan)->program = 3;
        ck_assert_int_lt(plan_check(plan, n), 0);
    }
}
END_TEST

/* A joiner is confined as the task is: of the plan nothing differs but what it joins. */
START_TEST(joins_are_confined_alike)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    struct launch_spec *s = spec(ctx);
    s->isolated = true;
    struct user u = {.uid = 7, .gid = 8, .n_groups = 1, .groups = {8}};
    struct mounts_plan mounts = {.bytes = sizeof(mounts)};
    struct exec_request x = {.tty = true, .rows = 3, .columns = 4};
    struct plan_input in = {.spec = s,
                            .user = &u,
                            .mounts = &mounts,
                            .task_dir = "/a/web",
                            .caps = 5,
                            .userns = true,
                            .cgroup = true,
                            .logs = true,
                            .id_base = 65536,
                            .landlock_abi = 6};
    void *own = NULL, *joined = NULL;
    size_t n = 0;
    ck_assert_int_eq(plan_make(ctx, &in, &own, &n, &e), 0);
    in.mounts = NULL;
    in.logs = false;
    in.join = &x;
    ck_assert_int_eq(plan_make(ctx, &in, &joined, &n, &e), 0);
    ck_assert_int_eq(plan_check(joined, n), 0);
    const struct plan_header *a = own, *b = joined;
    ck_assert_uint_eq(b->flags, (a->flags & ~(uint32_t)PLAN_LOGS) | PLAN_JOIN | PLAN_TERMINAL);
    ck_assert_uint_eq(b->mounts, 0);
    ck_assert(b->rows == 3 && b->columns == 4 && b->id_base == a->id_base);
    struct confine c = *(const struct confine *)(const void *)string_at(own, a->confine);
    const struct confine *d = (const void *)string_at(joined, b->confine);
    ck_assert_uint_eq(d->flags, (c.flags & ~(uint32_t)CONFINE_HOSTNAME) | CONFINE_JOINS);
    c.flags = d->flags;
    ck_assert_mem_eq(&c, d, sizeof(c));
}
END_TEST

START_TEST(bounds_plans)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    struct launch_spec *s = spec(ctx);
    char *big = mem_array(ctx, char, PLAN_BYTES_MAX + 1);
    memset(big, 'x', PLAN_BYTES_MAX);
    list_add(s, s->args, big);
    struct plan_input in = {.spec = s, .task_dir = "/a/web"};
    void *plan = NULL;
    size_t n = 0;
    ck_assert_int_eq(plan_make(ctx, &in, &plan, &n, &e), -ERR_LIMIT);
    ck_assert_ptr_null(plan);
    ck_assert_msg(strstr(e.text, "web") != NULL, "%s", e.text);
}
END_TEST

START_TEST(compiles_policies)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    char path[] = "/tmp/policy-XXXXXX";
    int fd = mkstemp(path);
    close(fd);
    static const char *drivers[] = {"exec"};
    struct policy p = {.drivers = {drivers, 1},
                       .data_dir = "/d",
                       .alloc_dir = "/d/alloc",
                       .run_dir = "/r",
                       .agent_uid = 5,
                       .seccomp = true};
    ck_assert_int_eq(policy_compile(&p, path, &e), 0);
    struct policy *back = NULL;
    ck_assert_msg(policy_load(ctx, path, &back, &e) == 0, "%s", e.text);
    ck_assert(codec_equal(&type_policy, &p, back, 0));
    static const char *names[] = {"ok", ""};
    p.apparmor_allowed = (struct str_list){names, 2};
    static const char *const bad_names[] = {"",      "a b", "a\nexec b", "&a",
                                            ":ns:a", "a\"", "\xc3\xa4"};
    for (size_t i = 0; i < ARRAY_LEN(bad_names); i++) {
        names[1] = bad_names[i];
        ck_assert_int_eq(policy_compile(&p, path, &e), -ERR_INVALID);
        err_clear(&e);
    }
    p.apparmor_allowed.n = 1;
    p.apparmor = "a b";
    ck_assert_int_eq(policy_compile(&p, path, &e), -ERR_INVALID);
    err_clear(&e);
    p.apparmor = NULL;
    p.disk_quota = "always";
    ck_assert_int_eq(policy_compile(&p, path, &e), -ERR_INVALID);
    ck_assert_msg(strstr(e.text, "disk_quota \"always\"") != NULL, "%s", e.text);
    err_clear(&e);
    p.disk_quota = "required";
    p.apparmor = "/usr/lib/x//hat";
    ck_assert_int_eq(policy_compile(&p, path, &e), 0);
    p.data_dir = "d/../x";
    ck_assert_int_eq(policy_compile(&p, path, &e), -ERR_INVALID);
    err_clear(&e);
    if (geteuid() == 0) {
        ck_assert_int_eq(chmod(path, 0666), 0);
        ck_assert_int_eq(policy_load(ctx, path, &back, &e), -ERR_FORBIDDEN);
        err_clear(&e);
    }
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(truncate(path, 3), 0);
    ck_assert_int_lt(policy_load(ctx, path, &back, &e), 0);
    unlink(path);
}
END_TEST

START_TEST(obeys_allowed_users)
{
    struct user u;
    struct err e = ERR_INIT;
    static const char *allowed[] = {"daemon", "65534"};
    struct policy p = {.allowed_users = {allowed, 2}, .agent_user = "bin"};
    struct launch_spec s = {.isolated = true};
    ck_assert_int_eq(policy_user(&p, &s, false, NULL, &u, &e), 0); /* nobody, by uid */
    s.user = "daemon";
    ck_assert_int_eq(policy_user(&p, &s, false, NULL, &u, &e), 0);
    s.user = "bin";
    ck_assert_int_eq(policy_user(&p, &s, false, NULL, &u, &e), -ERR_POLICY);
    err_clear(&e);
    s.user = NULL;
    s.isolated = false; /* raw_exec: nobody too */
    ck_assert_int_eq(policy_user(&p, &s, false, NULL, &u, &e), 0);
    s.user = "daemon";
    p.agent_uid = 1; /* which daemon is: it could talk to the warden */
    ck_assert_int_eq(policy_user(&p, &s, false, NULL, &u, &e), -ERR_POLICY);
    ck_assert_msg(strstr(e.text, "agent's own") != NULL, "%s", e.text);
    err_clear(&e);
    p.allowed_users.n = 0;
    s.user = "root"; /* denied although no list says so */
    ck_assert_int_eq(policy_user(&p, &s, false, NULL, &u, &e), -ERR_POLICY);
    err_clear(&e);
    s.user = NULL;
    ck_assert_int_eq(policy_user(&p, &s, false, NULL, &u, &e), 0);
    ck_assert_uint_eq(u.uid, 65534);
    static const char *denied[] = {"daemon"};
    p.denied_users = (struct str_list){denied, 1};
    ck_assert_int_eq(policy_user(&p, &s, false, NULL, &u, &e), 0);
    ck_assert_uint_eq(u.uid, 0); /* raw_exec with the policy's leave: as in Nomad */
    s.isolated = true;
    ck_assert_int_eq(policy_user(&p, &s, false, NULL, &u, &e), 0);
    ck_assert_uint_eq(u.uid, 65534);
}
END_TEST

START_TEST(reads_records)
{
    auto_mem void *ctx = mem_ctx("test");
    char path[] = "/tmp/record-XXXXXX";
    auto_fd int fd = mkstemp(path);
    unlink(path);
    struct record r = {.magic = RECORD_MAGIC, .version = SHIM_VERSION, .shim_pid = 9};
    str_copy(r.alloc_id, sizeof(r.alloc_id), ID);
    str_copy(r.task, sizeof(r.task), "web");
    r.run = (struct record_run){.state = RECORD_RUNNING, .started_ns = 5, .finished_ns = 6};
    struct task_record *t = NULL;
    ck_assert_int_eq(record_read(ctx, fd, &t), -ERR_CORRUPT);
    ck_assert_int_eq(fd_pwrite_full(fd, &r, sizeof(r), 0), 0);
    ck_assert_int_eq(record_read(ctx, fd, &t), 0);
    ck_assert_int_eq(t->finished_at, 0); /* not before the state says so */
    ck_assert_str_eq(t->task_name, "web");
    r.run.state = RECORD_FINISHED;
    ck_assert_int_eq(fd_pwrite_full(fd, &r, sizeof(r), 0), 0);
    ck_assert_int_eq(record_read(ctx, fd, &t), 0);
    ck_assert_int_eq(t->finished_at, 6);
    /* a newer one: a task that runs, and no guess at what we cannot read */
    r.version = SHIM_VERSION + 1;
    ck_assert_int_eq(fd_pwrite_full(fd, &r, sizeof(r), 0), 0);
    ck_assert_int_eq(record_read(ctx, fd, &t), 0);
    ck_assert_str_eq(t->task_name, "web");
    ck_assert_int_eq(t->finished_at, 0);
    struct record raw;
    ck_assert_int_eq(record_read_raw(fd, &raw), 0);
    ck_assert(record_settle(&raw, 77));
    ck_assert(!record_settle(&raw, 78));
    t = record_export(ctx, &raw);
    ck_assert_int_eq(t->finished_at, 77);
    ck_assert(t->lost && strstr(t->error, "another version") != NULL);
    r.version = SHIM_VERSION;
    memset(r.task, 'x', sizeof(r.task));
    ck_assert_int_eq(fd_pwrite_full(fd, &r, sizeof(r), 0), 0);
    ck_assert_int_eq(record_read(ctx, fd, &t), -ERR_CORRUPT);
}
END_TEST

/* A policy is installed at each reload: if the supervisor took that for the agent's word, it would
 * reload for ever. */
START_TEST(installing_rings_no_bell)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    char dir[] = "/tmp/paddock-policy-XXXXXX", events[4096];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    struct policy *p = mem_new(ctx, struct policy);
    *p = (struct policy){.data_dir = mem_printf(ctx, "%s/data", dir),
                         .alloc_dir = mem_printf(ctx, "%s/data/alloc", dir),
                         .run_dir = mem_printf(ctx, "%s/run", dir),
                         .state_dir = mem_printf(ctx, "%s/data", dir),
                         .agent_uid = getuid(),
                         .agent_gid = getgid()};
    ck_assert_msg(policy_install(p, NULL, &e) == 0, "%s", e.text);
    const char *bell = mem_printf(ctx, "%s/" POLICY_RELOAD, p->run_dir);
    auto_fd int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    ck_assert_int_ge(inotify_add_watch(fd, bell, IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB), 0);
    ck_assert_msg(policy_install(p, NULL, &e) == 0, "%s", e.text);
    ck_assert_int_eq(read(fd, events, sizeof(events)), -1);
    ck_assert_int_eq(file_put(AT_FDCWD, bell, "reload\n"), 0);
    ck_assert_int_gt(read(fd, events, sizeof(events)), 0);
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, &e), 0);
}
END_TEST

TEST_SUITE("proto", checks_names_and_paths, checks_specs, checks_limits, plans_commands,
           plans_sealed_files, joins_are_confined_alike, bounds_plans, compiles_policies,
           obeys_allowed_users, reads_records, installing_rings_no_bell)
