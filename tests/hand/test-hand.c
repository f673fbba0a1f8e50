/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine hand without an engine: what a task may have, what an engine's documents are taken
 * for, and logs whose writer is killed anywhere.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"
#include "tests/lib/test.h"

#define ALLOC "12345678-aaaa-bbbb-cccc-0123456789ab"

static struct engine_policy engine;
static struct policy policy = {.alloc_dir = "/data/alloc"};
static struct hand hand = {.policy = &policy, .engine = &engine, .allocs = -1};

/* Directories of an allocation, with what a task may have left in them. */
static const char *
tree(void *ctx)
{
    char *dir = mem_strdup(ctx, "/tmp/paddock-hand-XXXXXX");
    static const char *const made[] = {"",           "/alloc", "/alloc/logs", "/web",
                                       "/web/local", "/other", "/other/local"};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        ck_assert_int_eq(mkdir(mem_printf(ctx, "%s/" ALLOC "%s", dir, made[i]), 0755), 0);
    ck_assert_int_eq(symlink("/etc", mem_printf(ctx, "%s/" ALLOC "/web/local/link", dir)), 0);
    hand.allocs = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(hand.allocs, 0);
    return dir;
}

static void
tree_gone(const char *dir)
{
    fd_close(&hand.allocs);
    struct err e = ERR_INIT;
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, &e), 0);
}

static const char *
made(void *ctx, const char *task, const char *json, struct err *e)
{
    void *t = NULL;
    struct str_list sources;
    err_clear(e);
    if (json_decode_strict(ctx, &type_hand_task, SLICE(json, strlen(json)), BUDGET(1 << 20), &t, e) < 0 ||
        allow_task(&hand, ALLOC, task, t, e) < 0 ||
        places_find(ctx, &hand, mem_printf(ctx, "%s/%s", ALLOC, task), t, &sources, e) < 0)
        return NULL;
    struct value *doc = document_make(ctx, &hand, ALLOC, task, t, &sources);
    struct buf b = BUF_INIT(1 << 20);
    json_encode_value(&b, doc, 0);
    const char *text = mem_strdup(ctx, buf_str(&b));
    buf_done(&b);
    return text;
}

#define TASK(more) "{\"Image\":\"a\"," more "}"
#define MOUNT(type, source, target)                                                                \
    TASK("\"Mounts\":[{\"Type\":\"" type "\",\"Source\":\"" source "\",\"Target\":\"" target       \
         "\",\"Make\":true}]")
#define BIND(source) MOUNT("bind", source, "/x")

static const struct {
    const char *json, *why; /* NULL: it may */
} wishes[] = {
    {"{\"Image\":\"a\"}", NULL},
    {"{\"Image\":\"a\",\"CapAdd\":[\"CAP_CHOWN\",\"net_raw\"]}", NULL},
    {"{\"Image\":\"a\",\"CapAdd\":[\"sys_admin\"]}", "\"sys_admin\" is not allowed"},
    {"{\"Image\":\"a\",\"CapAdd\":[\"all\"]}", "\"all\" is not allowed"},
    {"{\"Image\":\"a\",\"CapAdd\":[\"CAP_all\"]}", "is not allowed"},
    {"{\"Image\":\"a\",\"Privileged\":true}", "privileged is not allowed"},
    {"{\"Image\":\"a\",\"NetworkMode\":\"container:x\"}", "not the name of a network"},
    {"{\"Image\":\"a\",\"NetworkMode\":\"/proc/1/ns/net\"}", "not the name of a network"},
    {"{\"Image\":\"a\",\"NetworkMode\":\"host\"}", "\"host\" is not allowed"},
    {"{\"Image\":\"a\",\"NetworkMode\":\"mine\"}", NULL},
    {"{\"Image\":\"a\",\"Ports\":[{\"Port\":80,\"HostPort\":70000}]}", "a port is not"},
    {"{\"Image\":\"a\",\"HostConfig\":{\"Privileged\":true}}", "HostConfig"},
    {"{}", "no name of an image"},
    {"{\"Image\":\"a b\"}", "no name of an image"},
    {"{\"Image\":\"a?tag=x&fromSrc=y\"}", "no name of an image"},
    {"{\"Image\":\"r:5000/a/b:1@sha256:00\"}", NULL},
    {BIND("/"), "that path of the host is not allowed"},
    {BIND("/srv/dataset"), "that path of the host is not allowed"},
    {BIND("/srv/../etc"), "that path of the host is not allowed"},
    {BIND("/tmp/../etc"), "that path of the host is not allowed"},
    {BIND("/tmp/below"), "that path of the host is not allowed"},
    {BIND("/tmp"), NULL},
    {BIND("local"), NULL},
    {BIND("../alloc"), "the shared directory is /alloc"},
    {BIND("../alloc/x"), "the shared directory is /alloc"},
    {BIND("local/a/b/../c"), NULL},
    {BIND("../other/local"), "in the task's local/"},
    {BIND("."), "in the task's local/"},
    {BIND("../other"), "in the task's local/"},
    {BIND(".."), "in the task's local/"},
    {BIND("../../x"), "in the task's local/"},
    {BIND("../../../etc"), "in the task's local/"},
    {BIND("local/link"), "symbolic link"},
    {BIND("local/link/passwd"), "symbolic link"},
    {BIND("local/link/../x"), NULL}, /* by its name: there is no link on that way */
    {BIND(""), "needs its source"},
    {MOUNT("bind", "local", "relative"), "is not absolute"},
    {MOUNT("volume", "data", "/x"), "volumes of the engine are not allowed"},
    {MOUNT("volume", "", "/x"), NULL},
    {MOUNT("tmpfs", "", "/x"), NULL},
    {MOUNT("tmpfs", "/etc", "/x"), "a tmpfs has no source"},
    {MOUNT("npipe", "a", "/x"), "none of bind"},
    {TASK("\"Mounts\":[{\"Type\":\"volume\",\"Target\":\"/x\",\"DriverOptions\":{\"device\":"
          "\"/etc\",\"o\":\"bind\"}}]"),
     "volumes of the engine are not allowed"},
    {TASK("\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"local\",\"Target\":\"/x\","
          "\"Propagation\":\"rshared\"}]"),
     "\"rshared\" is not allowed"},
    {TASK("\"Devices\":[{\"HostPath\":\"/dev/sda\"}]"), "\"/dev/sda\" is not allowed"},
    {TASK("\"Devices\":[{\"HostPath\":\"/dev/fuse\",\"Permissions\":\"rwx\"}]"), "not of r, w, m"},
    {TASK("\"Devices\":[{\"HostPath\":\"/dev/fuse\"}]"), NULL},
    {TASK("\"PidMode\":\"host\""), "pid_mode \"host\" is not allowed"},
    {TASK("\"PidMode\":\"container:x\""), "namespaces of other containers"},
    {TASK("\"IpcMode\":\"host\""), "ipc_mode \"host\" is not allowed"},
    {TASK("\"IpcMode\":\"private\""), NULL},
    {TASK("\"UtsMode\":\"host\""), NULL}, /* by the policy */
    {TASK("\"UsernsMode\":\"host\""), "userns_mode \"host\" is not allowed"},
    {TASK("\"CgroupnsMode\":\"none\""), "neither private nor host"},
    {TASK("\"SecurityOpt\":[\"no-new-privileges\"]"), NULL},
    {TASK("\"SecurityOpt\":[\"seccomp=unconfined\"]"), "is not allowed"},
    {TASK("\"SecurityOpt\":[\"seccomp=/etc/x.json\"]"), "not read from a file"},
    {TASK("\"SecurityOpt\":[\"apparmor=unconfined\"]"), "is not allowed"},
    {TASK("\"SecurityOpt\":[\"apparmor=mine\"]"), NULL},
    {TASK("\"SecurityOpt\":[\"\",\"a\"]"), "is not allowed"},
    {TASK("\"Runtime\":\"runc\""), NULL},
    {TASK("\"Runtime\":\"evil\""), "runtime \"evil\" is not allowed"},
    {TASK("\"OomScoreAdj\":-1"), "negative one is not allowed"},
    {TASK("\"OomScoreAdj\":500"), NULL},
    {TASK("\"PidsMax\":101"), "may be at most 100"},
    {TASK("\"LogDriver\":\"syslog\""), "driver \"syslog\" is not allowed"},
    {TASK("\"LogDriver\":\"local\",\"LogOptions\":{\"max-size\":\"1m\"}"), NULL},
    {TASK("\"LogOptions\":{\"syslog-address\":\"unix:///x\"}"), "is not supported"},
    {TASK("\"NetworkAliases\":[\"a\"]"), "are for a network of the engine"},
    {TASK("\"GroupNetwork\":true"), NULL},
    {TASK("\"IOWeight\":1001"), "io_weight not from 10 to 1000"},
    {TASK("\"IOWeight\":5"), "io_weight not from 10 to 1000"},
    {TASK("\"Swap\":-1"), "swap is negative"},
    {TASK("\"Swap\":1024,\"IOWeight\":10"), NULL},
    {TASK("\"GroupNetwork\":true,\"Hostname\":\"x\""), "those of the group's network block"},
    {TASK("\"GroupNetwork\":true,\"NetworkMode\":\"none\""), "those of the group's network block"},
    {TASK("\"CPUPeriod\":1"), "cpu_cfs_period"},
    {TASK("\"Ulimits\":[{\"Name\":\"nofile\",\"Soft\":-2}]"), "is not a limit"},
};

START_TEST(what_a_task_may_have)
{
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    static const char *caps[] = {"chown", "CAP_NET_RAW"}, *modes[] = {"bridge"};
    static const char *binds[] = {"/tmp"}, *devices[] = {"/dev/fuse"}, *runtimes[] = {"runc"},
                      *uts[] = {"host"}, *profiles[] = {"mine"};
    const char *dir = tree(ctx);
    engine.devices = (struct str_list){devices, 1};
    engine.runtimes = (struct str_list){runtimes, 1};
    engine.uts_modes = (struct str_list){uts, 1};
    engine.pids_max = 100;
    policy.bind_allowed = (struct str_list){binds, 1};
    policy.apparmor_allowed = (struct str_list){profiles, 1};
    engine.caps = (struct str_list){caps, 2};
    policy.network_modes = (struct str_list){modes, 1};
    for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
        const char *doc = made(ctx, "web", wishes[i].json, &e);
        ck_assert_msg((doc == NULL) == (wishes[i].why != NULL), "row %zu: %s", i, e.text);
        ck_assert_msg(!wishes[i].why || strstr(e.text, wishes[i].why), "row %zu: %s", i, e.text);
    }
    ck_assert_ptr_null(made(ctx, "../x", TASK("\"Tty\":true"), &e));
    ck_assert_ptr_null(made(ctx, "a/b", TASK("\"Tty\":true"), &e));
    policy.network_modes = (struct str_list){0};
    tree_gone(dir);
}
END_TEST

START_TEST(what_an_engine_is_asked_for)
{
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    const char *dir = tree(ctx);
    static const char *caps[] = {"chown", "CAP_NET_RAW"};
    engine.pids_max = 100;
    engine.caps = (struct str_list){caps, 2};
    const char *doc = made(ctx, "web",
                           "{\"Image\":\"a\",\"Labels\":{\"paddock.owner\":\"evil\",\"mine\":\"1\"}"
                           ",\"MemoryMax\":1024,"
                           "\"Ports\":[{\"Port\":80,\"HostPort\":8080,\"HostIP\":\"10.0.0.1\"},{"
                           "\"Port\":80,\"HostPort\":8081}]}",
                           &e);
    ck_assert_ptr_nonnull(doc);
    ck_assert_ptr_null(strstr(doc, "evil"));
    static const char *const has[] = {
        "\"mine\":\"1\"",
        "\"paddock.owner\":\"/data/alloc\"",
        "\"Source\":\"/data/alloc/" ALLOC "/web/local\",\"Target\":\"/local\",\"ReadOnly\":false",
        "\"Target\":\"/alloc/logs\",\"ReadOnly\":true",
        "\"PidsLimit\":100",
        "\"MemorySwap\":1024",
        "\"80/udp\":[{\"HostIp\":\"10.0.0.1\",\"HostPort\":\"8080\"},{\"HostPort\":\"8081\"}]",
        "\"Privileged\":false",
    };
    for (size_t i = 0; i < ARRAY_LEN(has); i++)
        ck_assert_msg(strstr(doc, has[i]), "%s is not in %s", has[i], doc);
    /* chown and net_raw are allowed: what else the engine gives is taken away, once */
    doc = made(ctx, "web", TASK("\"CapDrop\":[\"CHOWN\"]"), &e);
    ck_assert(doc && strstr(doc, "\"CapDrop\":[\"CHOWN\",\"audit_write\",\"dac_override\","));
    ck_assert(!strstr(doc, "net_raw") && !strstr(doc, "CapAdd"));
    /* the operator's plugin block speaks where the job does not */
    static const char *globs[] = {"job_*", "task_name"}, *servers[] = {"10.0.0.53"};
    engine.extra_labels = (struct str_list){globs, 2};
    engine.dns_servers = (struct str_list){servers, 1};
    engine.oom_score_adj = 5;
    engine.log_driver = "local";
    doc = made(
        ctx, "web",
        TASK(
            "\"Names\":{\"job_id\":\"j\",\"task_name\":\"web\",\"node_id\":\"n\",\"job_x\":\"x\"}"),
        &e);
    ck_assert(doc && strstr(doc, "\"com.hashicorp.nomad.job_id\":\"j\"") &&
              strstr(doc, "nomad.task_name\":\"web\""));
    ck_assert(!strstr(doc, "node_id") && !strstr(doc, "job_x"));
    ck_assert(strstr(doc, "\"OomScoreAdj\":5") && strstr(doc, "\"Dns\":[\"10.0.0.53\"]") &&
              strstr(doc, "\"Type\":\"local\""));
    doc = made(ctx, "web",
               TASK("\"OomScoreAdj\":9,\"LogDriver\":\"json-file\",\"NetworkMode\":\"host2\","
                    "\"LogsOff\":true"),
               &e);
    ck_assert(doc && strstr(doc, "\"OomScoreAdj\":9") && !strstr(doc, "\"Dns\"") &&
              strstr(doc, "\"Type\":\"json-file\""));
    ck_assert_ptr_nonnull(strstr(doc, "\"paddock.logs\":\"0:0:off\""));
    engine.extra_labels = engine.dns_servers = (struct str_list){0};
    engine.oom_score_adj = 0;
    engine.log_driver = NULL;
    const struct hand_task limits = {.memory_max = 1024, .swap = 24, .memory_low = 7, .shm_bytes = 9};
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode_value(&b, document_limits(ctx, &hand, &limits), 0);
    ck_assert_str_eq(buf_str(&b), "{\"CpuShares\":2,\"Memory\":1024,\"MemorySwap\":1048,"
                                  "\"MemoryReservation\":7,\"PidsLimit\":100}");
    engine.privileged = true;
    ck_assert_ptr_nonnull(made(ctx, "web", "{\"Image\":\"a\",\"Privileged\":true}", &e));
    ck_assert_ptr_nonnull(made(ctx, "web", TASK("\"SecurityOpt\":[\"seccomp=unconfined\"]"), &e));
    engine.privileged = false;
    engine.volumes = true;
    doc = made(ctx, "web", BIND("/etc"), &e);
    ck_assert(doc && strstr(doc, "\"Source\":\"/etc\""));
    engine.volumes = false;
    tree_gone(dir);
}
END_TEST

START_TEST(the_network_of_a_group)
{
    auto_mem void *ctx = mem_ctx("t");
    static const struct {
        const char *json, *why;
    } rows[] = {
        {"{\"Mode\":\"bridge\",\"Ports\":[{\"Port\":80,\"HostPort\":8080}]}", NULL},
        {"{\"Mode\":\"none\",\"Hostname\":\"a\"}", NULL},
        {"{\"Mode\":\"none\",\"Ports\":[{\"Port\":80,\"HostPort\":8080}]}", "has no ports"},
        {"{\"Mode\":\"bridge\",\"Ports\":[{\"Port\":0,\"HostPort\":8080}]}", "a port is not"},
        {"{\"Mode\":\"host\"}", "neither bridge nor none"},
        {"{\"Mode\":\"container:x\"}", "neither bridge nor none"},
        {"{}", "neither bridge nor none"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        void *n = NULL;
        struct err e = ERR_INIT;
        ck_assert_int_eq(json_decode_strict(ctx, &type_hand_network,
                                            SLICE(rows[i].json, strlen(rows[i].json)), BUDGET(1 << 20), &n,
                                            &e),
                         0);
        ck_assert_msg((allow_network(&hand, n, &e) < 0) == (rows[i].why != NULL), "row %zu", i);
        ck_assert_msg(!rows[i].why || strstr(e.text, rows[i].why), "row %zu: %s", i, e.text);
        if (rows[i].why)
            continue;
        /* the network that was asked for is known again, and nobody else's is taken for it */
        struct hand_network_state s;
        bool running = true;
        struct value *asked = document_network(ctx, &hand, ALLOC, n), *doc = value_map(ctx);
        value_map_set(doc, "Config", asked);
        ck_assert(!document_network_state(ctx, &hand, ALLOC, doc, &s, &running));
        value_map_set(doc, "Id", value_str(ctx, "abc"));
        ck_assert(document_network_state(ctx, &hand, ALLOC, doc, &s, &running) && !running);
        ck_assert(str_eq(s.id, "abc") && str_eq(s.address, ""));
        ck_assert(!document_network_state(ctx, &hand, "22345678-aaaa-bbbb-cccc-0123456789ab", doc,
                                          &s, &running));
        ck_assert(!document_state(ctx, &hand, ALLOC, "", doc, &(struct hand_state){0}));
    }
    policy.network_modes = (struct str_list){(const char *[]){"none"}, 1};
    struct err e = ERR_INIT;
    const struct hand_network bridge = {.mode = "bridge"};
    ck_assert_int_eq(allow_network(&hand, &bridge, &e), -ERR_POLICY);
    policy.network_modes = (struct str_list){0};
}
END_TEST

START_TEST(which_images_are_asked_for_first)
{
    static const struct {
        struct hand_task task;
        bool first;
    } rows[] = {
        {{.image = "a"}, true},
        {{.image = "r:5000/a"}, true},
        {{.image = "a:latest"}, true},
        {{.image = "a:1"}, false},
        {{.image = "r:5000/a:1"}, false},
        {{.image = "a@sha256:00"}, false},
        {{.image = "a:latest@sha256:00"}, false},
        {{.image = "a:1", .force_pull = true}, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ck_assert_msg(pull_first(&rows[i].task) == rows[i].first, "row %zu", i);
}
END_TEST

START_TEST(names)
{
    auto_mem void *ctx = mem_ctx("t");
    ck_assert_str_eq(document_name(ctx, ALLOC, "web"), "web-" ALLOC);
    ck_assert_str_eq(document_name(ctx, ALLOC, "a b\xc3\xbc?x=&"), "a_b___x__-" ALLOC);
    ck_assert_str_eq(document_name(ctx, ALLOC, "-x"), "t_x-" ALLOC);
}
END_TEST

#define LABELS                                                                                     \
    "\"Config\":{\"Labels\":{\"paddock.owner\":\"/data/"                                           \
    "alloc\",\"paddock.task\":\"web\",\"com.hashicorp.nomad.alloc_id\":\"" ALLOC                   \
    "\",\"paddock.logs\":\"3:4096\"}}"

START_TEST(what_an_engine_says)
{
    auto_mem void *ctx = mem_ctx("t");
    static const struct {
        const char *json;
        bool ours;
    } rows[] = {
        {"{\"Id\":\"abc\",\"State\":{\"Running\":true,\"Pid\":7,\"StartedAt\":\"2026-11-24T22:00:"
         "00.5Z\",\"FinishedAt\":\"0001-01-01T00:00:00Z\"}," LABELS "}",
         true},
        {"{\"Id\":\"abc\",\"State\":{}," LABELS "}", true},
        {"{\"Id\":\"a/../b\\n\",\"State\":[]," LABELS "}", false},
        {"{\"Id\":\"abc\"," LABELS "}", false},
        {"{\"Id\":7,\"State\":{}," LABELS "}", false},
        {"{\"Id\":\"abc\",\"State\":{},\"Config\":{\"Labels\":{\"paddock.owner\":\"/other\"}}}",
         false},
        {"{\"Id\":\"abc\",\"State\":{},\"Config\":{\"Labels\":[]}}", false},
        {"{\"Id\":\"abc\",\"State\":{},\"Config\":7}", false},
        {"[]", false},
        {"null", false},
        {"7", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct value *doc = NULL;
        struct err e = ERR_INIT;
        struct hand_state s = {0};
        ck_assert_int_eq(
            json_decode_value(ctx, SLICE(rows[i].json, strlen(rows[i].json)), BUDGET(1 << 20), &doc, &e), 0);
        ck_assert_msg(document_state(ctx, &hand, ALLOC, "web", doc, &s) == rows[i].ours, "row %zu",
                      i);
        ck_assert(!document_state(ctx, &hand, ALLOC, "other", doc, &s));
        if (i == 0) {
            ck_assert(document_state(ctx, &hand, ALLOC, "web", doc, &s));
            ck_assert(s.running && s.pid == 7 && s.finished_at == 0 &&
                      s.started_at % NS_PER_S == 500000000);
            struct log_shape logs;
            document_logs(value_get(value_get(doc, "Config"), "Labels"), &logs);
            ck_assert(logs.files == 3 && logs.file_bytes == 4096 && !logs.tty);
        }
    }
}
END_TEST

START_TEST(what_the_machine_took_along)
{
    auto_mem void *ctx = mem_ctx("t");
    static const struct {
        const char *boot, *label, *state;
        bool taken;
    } rows[] = {
        {"now", "before", "\"ExitCode\":0,\"StartedAt\":\"2026-11-24T22:00:00Z\"", true},
        {"now", "now", "\"ExitCode\":0,\"StartedAt\":\"2026-11-24T22:00:00Z\"", false},
        {"now", "before", "\"Running\":true,\"StartedAt\":\"2026-11-24T22:00:00Z\"", false},
        {"now", "before", "\"StartedAt\":\"0001-01-01T00:00:00Z\"", false}, /* it never ran */
        {"now", "", "\"StartedAt\":\"2026-11-24T22:00:00Z\"", false}, /* of an earlier release */
        {"", "before", "\"StartedAt\":\"2026-11-24T22:00:00Z\"", false},
    };
    struct hand h = hand;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct value *doc = NULL;
        struct err e = ERR_INIT;
        struct hand_state s = {0};
        const char *json = mem_printf(
            ctx,
            "{\"Id\":\"abc\",\"State\":{%s},\"Config\":{\"Labels\":{\"paddock.owner\":\"/data/"
            "alloc\",\"paddock.task\":\"web\",\"com.hashicorp.nomad.alloc_id\":\"" ALLOC
            "\",\"paddock.boot\":\"%s\"}}}",
            rows[i].state, rows[i].label);
        (void)str_copy(h.boot, sizeof(h.boot), rows[i].boot);
        ck_assert_int_eq(
            json_decode_value(ctx, SLICE(json, strlen(json)), BUDGET(1 << 20), &doc, &e), 0);
        ck_assert(document_state(ctx, &h, ALLOC, "web", doc, &s));
        ck_assert_msg(str_empty(s.taken_by) != rows[i].taken, "row %zu", i);
    }
}
END_TEST

/* --- logs --- */

enum { MESSAGES = 300, FILE_BYTES = 1000 };

struct said {
    int stream;
    int64_t stamp;
    char text[64];
};

static void
put_message(struct buf *b, const struct said *m)
{
    char stamp[TIME_TEXT], line[160];
    int n = snprintf(line, sizeof(line), "%s %s", time_format(m->stamp, stamp), m->text);
    const uint8_t head[8] = {(uint8_t)(m->stream + 1), 0,         0, 0, 0, 0,
                             (uint8_t)(n >> 8),        (uint8_t)n};
    buf_put(b, head, sizeof(head));
    buf_put(b, line, (size_t)n);
}

/* Writes what an engine sends when it is asked for all since then. */
static void
send_since(struct buf *b, const struct said *all, size_t n, const char *since)
{
    long long s, ns;
    ck_assert_int_eq(sscanf(since, "%lld.%lld", &s, &ns), 2);
    buf_reset(b);
    for (size_t i = 0; i < n; i++)
        if (all[i].stamp >= s * NS_PER_S + ns)
            put_message(b, &all[i]);
}

static char *
whole(void *ctx, int dir, const char *stream)
{
    char *text = mem_strdup(ctx, "");
    for (int i = 0; i < 1000; i++) {
        char *more = NULL;
        if (file_read(ctx, dir, mem_printf(ctx, "web.%s.%d", stream, i), 1 << 20, &more, NULL) < 0)
            return text;
        text = mem_printf(ctx, "%s%s", text, more);
    }
    return text;
}

static int
make_logs(const char *dir)
{
    auto_mem void *ctx = mem_ctx("t");
    ck_assert_int_eq(dir_make(AT_FDCWD, mem_printf(ctx, "%s/" ALLOC "/alloc/logs", dir), 0755), 0);
    fd_close(&hand.allocs);
    hand.allocs = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return openat(hand.allocs, ALLOC "/alloc/logs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The writer is killed after any piece, and its notes may be those of an earlier message. */
static void
lives(unsigned seed)
{
    static struct said all[MESSAGES];
    char dir[] = "/tmp/test-hand.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    auto_fd int logs = make_logs(dir);
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    char *want[2] = {mem_strdup(ctx, "before\n"), mem_strdup(ctx, "")};
    int64_t stamp = INT64_C(1795558500) * NS_PER_S;
    for (int i = 0; i < MESSAGES; i++) {
        struct said *m = &all[i];
        m->stream = rand_r(&seed) % 3 == 0;
        stamp += rand_r(&seed) % 4 == 0 ? 0 : 1 + rand_r(&seed) % 1000;
        m->stamp = stamp; /* some have the time of others */
        snprintf(m->text, sizeof(m->text), "%d%.*s\n", i, rand_r(&seed) % 40,
                 "........................................");
        want[m->stream] = mem_printf(ctx, "%s%s", want[m->stream], m->text);
    }
    int fd = openat(logs, "web.stdout.0", O_WRONLY | O_CREAT | O_CLOEXEC,
                    0644); /* of an earlier container */
    ck_assert_int_eq(fd_write_full(fd, "before\n", 7), 0);
    fd_close(&fd);
    struct buf b = BUF_INIT(1 << 20);
    char *old = NULL;
    for (int life = 0; life < 40; life++) {
        char since[48];
        struct hand_log *l = log_open(ctx, &hand, ALLOC, "web", &e);
        ck_assert_msg(l, "%s", e.text);
        log_shape(l, &(struct log_shape){1000, FILE_BYTES, false});
        ck_assert_int_eq(log_of(l, "abc"), 0);
        send_since(&b, all, MESSAGES, log_since(l, since));
        size_t most = life == 39 ? b.len : (size_t)rand_r(&seed) % (b.len + 1), at = 0;
        most = life < 39 && most > 700 ? 700 : most;
        while (at < most) {
            size_t n = 1 + (size_t)rand_r(&seed) % 90;
            n = n < most - at ? n : most - at;
            ck_assert_int_eq(log_feed(l, b.data + at, n), 0);
            at += n;
            if (rand_r(&seed) % 5 == 0)
                ck_assert_int_eq(file_read(ctx, logs, ".web.hand", 4096, &old, NULL), 0);
        }
        log_close(l);
        if (old && rand_r(&seed) % 2 == 0)
            ck_assert_int_eq(file_write_atomic(logs, ".web.hand", old, strlen(old), 0600), 0);
    }
    for (int i = 0; i < 2; i++) { /* the first place where they differ */
        const char *got = whole(ctx, logs, i ? "stderr" : "stdout"), *p = want[i];
        for (; *p && *p == *got; p++)
            got++;
        ck_assert_msg(!*p && !*got, "seed %u: %.60s is not %.60s", seed, got, p);
    }
    struct stat st;
    ck_assert_int_eq(fstatat(logs, "web.stdout.0", &st, 0), 0);
    ck_assert_int_eq(st.st_size, FILE_BYTES);
    buf_done(&b);
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, &e), 0);
}

START_TEST(logs_whose_writer_is_killed)
{
    for (unsigned seed = 1; seed <= 20; seed++)
        lives(seed);
}
END_TEST

/* The engine has the newest message no more when it is asked again; and a stream that is behind is
 * left before it can jump. */
START_TEST(what_is_lost_is_said)
{
    char dir[] = "/tmp/test-hand.XXXXXX", since[48];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    auto_fd int logs = make_logs(dir);
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    const int64_t now = clock_wall_ns(), then = now - 60 * NS_PER_S;
    const struct said all[] = {{0, then, "one\n"},       {0, then + 5, "two\n"},
                               {1, then + 7, "error\n"}, {0, then + 9, "three\n"},
                               {0, then + 11, "four\n"}, {0, now, "five\n"}};
    struct hand_log *l = log_open(ctx, &hand, ALLOC, "web", &e);
    struct buf b = BUF_INIT(1 << 20);
    ck_assert_ptr_nonnull(l);
    ck_assert_int_eq(log_of(l, "abc"), 0);
    send_since(&b, all, 3, log_since(l, since));
    ck_assert_int_eq(log_feed(l, b.data, b.len), 0);
    ck_assert_int_eq(log_fresh(l), 14);
    /* known ones may be old, a new one not: nothing of it is taken */
    send_since(&b, all, 4, log_since(l, since));
    log_behind(l, NS_PER_S);
    ck_assert_int_eq(log_feed(l, b.data, b.len), -ERR_BUSY);
    ck_assert_int_eq(log_fresh(l), 0);
    log_close(l);
    for (int again = 0; again < 2; again++) { /* by another hand, twice */
        ck_assert_ptr_nonnull(l = log_open(ctx, &hand, ALLOC, "web", &e));
        ck_assert_int_eq(log_of(l, "abc"), 0);
        (void)log_since(l, since);
        buf_reset(&b);
        for (int i = 4 + again; i < 6; i++) /* "two" is not there, "three" neither */
            put_message(&b, &all[i]);
        ck_assert_int_eq(log_feed(l, b.data, b.len), 0);
        log_close(l);
    }
    char *text = NULL, from[TIME_TEXT], to[TIME_TEXT];
    ck_assert_int_eq(file_read(ctx, logs, "web.stdout.0", 4096, &text, NULL), 0);
    ck_assert_str_eq(text,
                     mem_printf(ctx,
                                "one\ntwo\npaddock: output is lost: of what was written from %s to "
                                "%s the engine had no more\nfour\nfive\n",
                                time_format(then + 5, from), time_format(then + 11, to)));
    ck_assert_int_eq(file_read(ctx, logs, "web.stderr.0", 4096, &text, NULL), 0);
    ck_assert_str_eq(text, "error\n");
    buf_done(&b);
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, &e), 0);
}
END_TEST

START_TEST(logs_turn_over_and_are_no_way_out)
{
    char dir[] = "/tmp/test-hand.XXXXXX", since[48];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    auto_fd int logs = make_logs(dir);
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    struct hand_log *l = log_open(ctx, &hand, ALLOC, "web", &e);
    ck_assert_ptr_nonnull(l);
    log_shape(l, &(struct log_shape){2, 10, false});
    ck_assert_int_eq(log_of(l, "abc"), 0);
    (void)log_since(l, since);
    struct said m = {.stamp = NS_PER_S, .text = "0123456789abcdefghijklmnopqrstuvwxyz"};
    struct buf b = BUF_INIT(1 << 20);
    put_message(&b, &m);
    ck_assert_int_eq(log_feed(l, b.data, b.len), 0);
    char *text = NULL;
    ck_assert_int_eq(file_read(ctx, logs, "web.stdout.3", 100, &text, NULL), 0);
    ck_assert_str_eq(text, "uvwxyz");
    ck_assert_int_eq(file_read(ctx, logs, "web.stdout.2", 100, &text, NULL), 0);
    ck_assert_str_eq(text, "klmnopqrst");
    ck_assert_int_lt(file_read(ctx, logs, "web.stdout.1", 100, &text, NULL), 0);
    /* a clock that goes back */
    static const int64_t stamps[] = {9, 5, 6, 5};
    for (size_t i = 0; i < ARRAY_LEN(stamps); i++) {
        struct said t = {.stream = 1, .stamp = stamps[i] * NS_PER_S};
        snprintf(t.text, sizeof(t.text), "%zu", i);
        buf_reset(&b);
        put_message(&b, &t);
        ck_assert_int_eq(log_feed(l, b.data, b.len), 0);
    }
    ck_assert_int_eq(file_read(ctx, logs, "web.stderr.0", 100, &text, NULL), 0);
    ck_assert_str_eq(text, "0123");
    /* a link in the place of the next file */
    ck_assert_int_eq(symlinkat("/etc/passwd", logs, "web.stdout.4"), 0);
    m.stamp++;
    buf_reset(&b);
    put_message(&b, &m);
    ck_assert_int_lt(log_feed(l, b.data, b.len), 0);
    log_close(l);
    static const struct {
        const char *bytes;
        size_t n;
    } hostile[] = {
        {"\3\0\0\0\0\0\0\1x", 9}, {"\1\0\0\1\0\0\0\1x", 9},     {"\1\0\0\0\377\377\377\377", 8},
        {"\1\0\0\0\0\0\0\0", 8},  {"\1\0\0\0\0\0\0\4nope", 12}, {"\1\0\0\0\0\0\0\5nope ", 13},
        {"HTTP/1.1 200 OK", 15},
    };
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        l = log_open(ctx, &hand, ALLOC, "bad", &e);
        ck_assert_ptr_nonnull(l);
        ck_assert_int_eq(log_of(l, "abc"), 0);
        (void)log_since(l, since);
        ck_assert_msg(log_feed(l, hostile[i].bytes, hostile[i].n) < 0, "row %zu", i);
        log_close(l);
    }
    ck_assert_ptr_null(log_open(ctx, &hand, "../" ALLOC, "web", &e));
    buf_done(&b);
    err_clear(&e);
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, &e), 0);
    fd_close(&hand.allocs);
}
END_TEST

START_TEST(how_far_a_pull_is)
{
    auto_mem void *ctx = mem_ctx("t");
    struct layers *p = layers_new(ctx);
    static const char *const lines[] = {
        "{\"status\":\"Pulling from team/box\",\"id\":\"1\"}",
        "{\"status\":\"Already exists\",\"progressDetail\":{},\"id\":\"a\"}",
        "{\"status\":\"Pulling fs layer\",\"id\":\"b\"}",
        "{\"status\":\"Waiting\",\"id\":\"c\"}",
        "{\"status\":\"Downloading\",\"progressDetail\":{\"current\":1500000,\"total\":3000000},"
        "\"id\":"
        "\"b\"}",
        "{\"status\":\"Downloading\",\"progressDetail\":{\"current\":-5,\"total\":\"x\"},\"id\":\"d\"}",
        "{\"status\":\"Downloading\",\"id\":\"an id that is longer than that of any layer\"}",
        "{\"status\":7,\"id\":[]}",
        "{\"status\":\"Download complete\",\"id\":\"b\"}",
    };
    static const char *const texts[] = {"0/0 (0.0 MB/0.0 MB) layers: 0 waiting/0 pulling",
                                        "1/3 (1.5 MB/3.0 MB) layers: 1 waiting/1 pulling",
                                        "1/4 (3.0 MB/3.0 MB) layers: 1 waiting/2 pulling"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct value *doc = NULL;
        struct err e = ERR_INIT;
        ck_assert_int_eq(json_decode_value(ctx, SLICE(lines[i], strlen(lines[i])), BUDGET(1 << 20), &doc, &e),
                         0);
        layers_take(p, doc);
        const char *want = i == 0 ? texts[0] : i == 4 ? texts[1] : i == 8 ? texts[2] : NULL;
        ck_assert_msg(!want || strstr(layers_text(ctx, p), want), "%zu: %s", i,
                      layers_text(ctx, p));
    }
}
END_TEST

#define AT "2026-11-24T22:00:00.00000000"

/* Lines, one of 40000 bytes that the engine cuts, one that looks like a time, and one without an
 * end. */
START_TEST(the_log_of_a_terminal)
{
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    const char *dir = tree(ctx);
    struct buf b = BUF_INIT(1 << 20), want = BUF_INIT(1 << 20);
    char since[48];
    buf_puts(&b, AT "1Z one\r\n" AT "2Z \r\n" AT "3Z ");
    buf_puts(&want, "one\r\n\r\n");
    for (int i = 0; i < 40000; i++) {
        buf_putc(&b, (char)('a' + i % 26));
        buf_putc(&want, (char)('a' + i % 26));
        if (i % 16384 == 16383)
            buf_puts(&b, AT "3Z ");
    }
    buf_puts(&b, "\r\n" AT "4Z " AT "5Z is no time\r\n" AT "6Z $ ");
    buf_puts(&want, "\r\n" AT "5Z is no time\r\n$ ");
    static const size_t pieces[] = {1, 7, 100, 16384, 1 << 20};
    for (size_t k = 0; k < ARRAY_LEN(pieces); k++) {
        const char *task = mem_printf(ctx, "tty%zu", k);
        struct hand_log *l = log_open(ctx, &hand, ALLOC, task, &e);
        ck_assert_ptr_nonnull(l);
        log_shape(l, &(struct log_shape){3, 1 << 20, true});
        ck_assert_int_eq(log_of(l, "abc"), 0);
        (void)log_since(l, since);
        for (size_t at = 0; at < b.len; at += pieces[k]) {
            size_t n = b.len - at < pieces[k] ? b.len - at : pieces[k];
            ck_assert_int_eq(log_feed(l, b.data + at, n), 0);
        }
        ck_assert_int_eq(log_end(l), 0);
        log_close(l);
        char *text = NULL;
        ck_assert_int_eq(file_read(ctx, hand.allocs,
                                   mem_printf(ctx, ALLOC "/alloc/logs/%s.stdout.0", task), 1 << 20,
                                   &text, NULL),
                         0);
        ck_assert_msg(str_eq(text, buf_str(&want)), "pieces of %zu", pieces[k]);
    }
    buf_done(&b);
    buf_done(&want);
    tree_gone(dir);
}
END_TEST

TEST_SUITE("hand", what_a_task_may_have, what_an_engine_is_asked_for, the_network_of_a_group,
           which_images_are_asked_for_first, names, what_an_engine_says,
           what_the_machine_took_along, how_far_a_pull_is,
           the_log_of_a_terminal, logs_whose_writer_is_killed, what_is_lost_is_said,
           logs_turn_over_and_are_no_way_out)
