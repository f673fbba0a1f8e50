/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of task configs, launch specs, signal names.
 */
#include <signal.h>
#include <string.h>

#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "drivers/caps_text.h"
#include "drivers/driver.h"
#include "isolation/confine/caps.h"
#include "tests/lib/mock.h"
#include "tests/lib/test.h"

static struct value *
config(void *ctx, const char *json)
{
    struct value *v = NULL;
    struct err e = ERR_INIT;
    ck_assert_msg(json_decode_value(ctx, SLICE(json, strlen(json)), BUDGET(1 << 20), &v, &e) == 0, "%s",
                  e.text);
    return v;
}

START_TEST(checks)
{
    static const struct {
        const char *driver, *json, *error; /* NULL: fine */
    } rows[] = {
        {"exec", "{\"command\":\"/bin/ls\",\"args\":[\"-l\",1,true]}", NULL},
        {"exec", "{\"comand\":\"x\"}",
         "driver \"exec\" has no option \"comand\": did you mean \"command\"?"},
        {"exec", "{\"command\":\"x\",\"image\":\"y\"}", "driver \"exec\" has no option \"image\""},
        {"exec", "{}", "driver \"exec\" needs the option \"command\" in config"},
        {"exec", "{\"command\":\"\"}", "driver \"exec\" needs the option \"command\" in config"},
        {"exec", "{\"command\":[1]}",
         "option \"command\" of driver \"exec\" is a list, it must be a string"},
        {"exec", "{\"command\":\"x\",\"args\":\"y\"}",
         "option \"args\" of driver \"exec\" is a string, it must be a list of strings"},
        {"raw_exec", "{\"command\":\"x\",\"oom_score_adj\":5}",
         "option \"oom_score_adj\" of driver \"raw_exec\" has no effect yet: take it out"},
        {"raw_exec", "{\"command\":\"x\",\"args\":null}", NULL},
        {"java", "{\"jar_path\":\"a.jar\"}", NULL},
        {"java", "{\"class\":\"A\",\"jvm_options\":[\"-Xmx8m\"]}", NULL},
        {"java", "{\"args\":[\"a\"]}", "driver \"java\" needs \"jar_path\" or \"class\" in config"},
        {"java", "{\"jar_path\":\"\"}",
         "driver \"java\" needs \"jar_path\" or \"class\" in config"},
        {"java", "{\"command\":\"x\"}", "driver \"java\" has no option \"command\""},
        {"qemu", "{\"image_path\":\"a\",\"port_map\":[{\"ssh\":22}]}", NULL},
        {"qemu", "{\"image_path\":\"a\",\"emulator\":\"qemu-system-i386\"}", NULL},
        {"qemu", "{\"image_path\":\"a\",\"port_map\":{\"ssh\":\"22\"}}", NULL},
        {"qemu", "{\"image_path\":\"a\",\"port_map\":[]}", NULL},
        {"qemu", "{\"image_path\":\"a\",\"port_map\":[{\"ssh\":22},{}]}",
         "option \"port_map\" of driver \"qemu\" is a list, "
         "it must be one block, or map, of names and texts"},
        {"qemu", "{\"image_path\":\"a\",\"port_map\":{\"ssh\":[1]}}",
         "option \"port_map\" of driver \"qemu\" is a map, "
         "it must be one block, or map, of names and texts"},
        {"qemu", "{}", "driver \"qemu\" needs the option \"image_path\" in config"},
        {"qemu", "{\"image_path\":\"a\",\"emulator\":\"../../bin/sh\"}",
         "emulator \"../../bin/sh\" of driver \"qemu\" is not a name such as x86_64"},
        {"qemu", "{\"image_path\":\"a\",\"machine_type\":\"pc,accel=kvm\"}",
         "machine_type \"pc,accel=kvm\" of driver \"qemu\" is not a name such as pc"},
        {"qemu", "{\"image_path\":\"a\",\"accelerator\":\"xen\"}",
         "accelerator \"xen\" of driver \"qemu\" is none of tcg, kvm, kvm:tcg"},
        {"docker", "{\"image\":\"redis:7\",\"labels\":[{\"a\":\"b\"}],\"ports\":[\"db\"]}", NULL},
        {"docker", "{\"image\":\"x\",\"command\":\" sh\"}",
         "command \" sh\" begins or ends with a blank"},
        {"docker", "{\"image\":\"x\",\"volumes\":[\"/:/x\"]}", NULL}, /* the hand decides */
        {"docker", "{\"image\":\"x\",\"isolation\":\"hyperv\"}",
         "option \"isolation\" of driver \"docker\" is not supported: it is for Windows"},
        {"docker",
         "{\"image\":\"x\",\"mount\":[{\"type\":\"bind\",\"source\":\"local\",\"target\":\"/x\"},{"
         "\"type\":\"tmpfs\",\"target\":\"/y\",\"tmpfs_options\":[{\"size\":1}]}]}",
         NULL},
        {"docker", "{\"image\":\"x\",\"mount\":[{\"tpye\":\"bind\"}]}",
         "option \"mount\" of driver \"docker\" has no key \"tpye\""},
        {"docker", "{\"image\":\"x\",\"devices\":[\"/dev/fuse\"]}",
         "option \"devices\" of driver \"docker\" is a list, it must be blocks, or a list of maps"},
        {"podman", "{\"image\":\"x\",\"entrypoint\":\"a\",\"socket\":\"default\"}", NULL},
        {"docker", "{\"command\":\"sh\"}",
         "driver \"docker\" needs the option \"image\" in config"},
        {"raw_exec", "[]", "config of driver \"raw_exec\" must be a block"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("t");
        struct err e = ERR_INIT;
        int r = driver_check(driver_find(rows[i].driver), config(ctx, rows[i].json), &e);
        ck_assert_msg((r == 0) == (rows[i].error == NULL), "row %zu: %s", i, e.text);
        if (rows[i].error)
            ck_assert_str_eq(e.text, rows[i].error);
    }
    struct err e = ERR_INIT;
    ck_assert_int_lt(driver_check(driver_find("exec"), NULL, &e), 0);
    ck_assert_ptr_null(driver_find("lxc"));
    ck_assert_ptr_null(driver_find(NULL));
}
END_TEST

/* The table of rows and that of files are one. */
START_TEST(what_a_row_says_its_file_does)
{
    auto_mem void *ctx = mem_ctx("t");
    for (size_t i = 0; i < DRIVERS_N; i++) {
        const struct driver *d = drivers[i];
        ck_assert_ptr_eq(d->can, &drivers_can[i]);
        ck_assert_ptr_eq(driver_can(d->can->name), d->can);
        ck_assert_ptr_eq(driver_find(d->can->name), d);
        ck_assert_int_eq(driver_unboxed(d->can->name), !d->can->isolation);
        ck_assert(d->can->launch ? d->spec && !d->engine : d->engine && !d->spec);
        struct task task = {.name = "web"};
        struct str_list env = {0};
        struct allocated_memory_resources memory = {.memory_mb = 128};
        struct allocated_task_resources some = {.memory = &memory};
        struct driver_input in = {
            .alloc_id = "12345678-aaaa-bbbb-cccc-0123456789ab",
            .task = &task,
            .config = config(ctx, "{\"command\":\"x\",\"class\":\"x\",\"image_path\":\"x\"}"),
            .resources = &some,
            .env = &env};
        struct launch_spec *s = NULL;
        struct err e = ERR_INIT;
        ck_assert_int_eq(d->can->launch, d->spec != NULL);
        ck_assert_int_eq(driver_engine(d->can->name), d->engine != NULL);
        if (d->engine)
            continue;
        ck_assert_int_eq(d->spec(ctx, &in, &s, &e), 0);
        ck_assert_str_eq(s->driver, d->can->name);
        ck_assert_int_eq(s->isolated, d->can->isolation);
    }
    ck_assert_ptr_null(driver_can("lxc"));
    ck_assert(!driver_unboxed("lxc") && !driver_engine("lxc"));
}
END_TEST

static const char *host; /* name of the next spec's */

static int
spec(void *ctx, const char *driver, const char *json, struct task *task, struct launch_spec **ret,
     struct err *e)
{
    static struct allocated_cpu_resources cpu = {.cpu_shares = 250};
    static struct allocated_memory_resources mem = {.memory_mb = 64};
    static struct allocated_task_resources res = {.cpu = &cpu, .memory = &mem};
    struct str_list *env = mem_new(ctx, struct str_list);
    list_add(ctx, *env, "A=1");
    list_add(ctx, *env, "AWS_KEY=2");
    struct driver_input in = {.alloc_id = "12345678-aaaa-bbbb-cccc-0123456789ab",
                              .task = task,
                              .config = config(ctx, json),
                              .env = env,
                              .resources = &res,
                              .hostname = host,
                              .core_mhz = str_eq(task->name, "no-mhz") ? 0 : 1000};
    return driver_find(driver)->spec(ctx, &in, ret, e);
}

START_TEST(a_hostname_that_was_put_in_is_looked_at_again)
{
    auto_mem void *ctx = mem_ctx("t");
    struct launch_spec *s = NULL;
    struct task task = {.name = "web"};
    static const char *const bad[] = {"a b", "a\nb", "..", "-x", "${meta.none}", "x/y", "x..y"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = ERR_INIT;
        host = bad[i];
        ck_assert_int_lt(spec(ctx, "exec", "{\"command\":\"x\"}", &task, &s, &e), 0);
        ck_assert_ptr_nonnull(strstr(e.text, "hostname"));
    }
    struct err e = ERR_INIT;
    host = "web-1.example";
    ck_assert_int_eq(spec(ctx, "exec", "{\"command\":\"x\"}", &task, &s, &e), 0);
    ck_assert_str_eq(s->hostname, host);
    host = NULL;
}
END_TEST

START_TEST(exec_spec)
{
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    struct launch_spec *s = NULL;
    struct log_config logs = {.max_files = {true, 3}, .max_file_size_mb = {true, 2}};
    struct task task = {.name = "web", .kill_signal = "SIGTERM", .log_config = &logs};
    int r = spec(ctx, "exec",
                 "{\"command\":\"redis-server\",\"args\":[\"--port\",6379],\"ipc_mode\":\"host\"}",
                 &task, &s, &e);
    ck_assert_msg(r == 0, "%s", e.text);
    ck_assert(s->isolated);
    ck_assert(s->host_ipc);
    ck_assert(!s->host_pid);
    ck_assert_str_eq(s->command, "redis-server");
    ck_assert_uint_eq(s->args.n, 2);
    ck_assert_str_eq(s->args.v[1], "6379");
    ck_assert(str_empty(s->hostname)); /* the host's */
    ck_assert_int_eq(s->limits->memory_max, 64 << 20);
    ck_assert_int_eq(s->limits->cpu_shares, 250);
    ck_assert_int_eq(s->logs->max_files, 3);
    ck_assert_int_eq(s->logs->max_file_bytes, 2 << 20);
    ck_assert_int_eq(s->kill_signal, SIGTERM);
    ck_assert_uint_eq(s->env.n, 2);
    ck_assert_int_eq(s->limits->cpu_max, 0); /* a weight, unless it is asked for */
    r = spec(ctx, "exec", "{\"command\":\"x\",\"cpu_hard_limit\":true}", &task, &s, &e);
    ck_assert_msg(r == 0, "%s", e.text);
    ck_assert_int_eq(s->limits->cpu_max, 25000); /* 250 of 1000 MHz, of 100 ms */
    struct task_isolation own = {.userns = "host", .pids_max = 7, .nofile = 99};
    task.isolation = &own;
    r = spec(ctx, "exec", "{\"command\":\"x\"}", &task, &s, &e);
    ck_assert_msg(r == 0, "%s", e.text);
    ck_assert_str_eq(s->isolation->userns, "host");
    ck_assert_int_eq(s->isolation->pids_max, 7);
    ck_assert_int_eq(s->isolation->nofile, 99);
    struct task_io disk = {.device = "/dev/sda", .read_bps = 1000}, *disks[] = {&disk};
    own = (struct task_isolation){.memory_high = 48,
                                  .memory_min = 8,
                                  .swap = 4,
                                  .zswap = {.set = true},
                                  .hugetlb = 2,
                                  .cpu_burst = 10 * NS_PER_MS,
                                  .io_weight = 50,
                                  .io = {disks, 1}};
    r = spec(ctx, "exec", "{\"command\":\"x\",\"cpu_hard_limit\":true}", &task, &s, &e);
    ck_assert_msg(r == 0, "%s", e.text);
    ck_assert(codec_equal(&type_task_isolation, s->isolation, &own, 0)); /* as it is */
    ck_assert_ptr_ne(s->isolation->io.v[0], &disk);
    own.memory_low = 16;
    r = spec(ctx, "exec", "{\"command\":\"x\",\"cpu_hard_limit\":true}", &task, &s, &e);
    ck_assert_msg(r == 0, "%s", e.text);
    ck_assert_int_eq(s->limits->memory_low, 16 << 20);
    own.cpu_burst = 30 * NS_PER_MS; /* of 25 */
    ck_assert_int_lt(
        spec(ctx, "exec", "{\"command\":\"x\",\"cpu_hard_limit\":true}", &task, &s, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "more than the hard limit"));
}
END_TEST

static const char *
words(void *ctx, const struct launch_spec *s)
{
    const char *all = s->command;
    for (size_t i = 0; i < s->args.n; i++)
        all = mem_printf(ctx, "%s %s", all, s->args.v[i]);
    return all;
}

START_TEST(java_spec)
{
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    struct launch_spec *s = NULL;
    struct task task = {.name = "web"};
    static const struct {
        const char *config, *words;
    } rows[] = {
        {"{\"jar_path\":\"local/a.jar\",\"args\":[\"x\",1],\"jvm_options\":[\"-Xmx8m\",\"-ea\"]}",
         "/usr/bin/java -Xmx8m -ea -jar local/a.jar x 1"},
        {"{\"class\":\"com.A\",\"class_path\":\"a:b\"}", "/usr/bin/java -cp a:b com.A"},
        {"{\"class\":\"A\",\"jar_path\":\"j\",\"class_path\":\"c\",\"args\":[\"-jar\"]}",
         "/usr/bin/java -cp c -jar j A -jar"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ck_assert_msg(spec(ctx, "java", rows[i].config, &task, &s, &e) == 0, "%s", e.text);
        ck_assert_str_eq(words(ctx, s), rows[i].words);
        ck_assert(s->isolated);
        ck_assert_int_eq(s->limits->memory_max, 64 << 20);
    }
    ck_assert_int_lt(spec(ctx, "java", "{\"class\":\"A\",\"ipc_mode\":\"x\"}", &task, &s, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "ipc_mode of driver \"java\""));

    struct value *many = config(ctx, "{\"class\":\"A\",\"args\":[],\"jvm_options\":[\"-ea\"]}");
    struct value *args = NULL; /* args; what is ours and an option make 6 of 4096 */
    for (size_t i = 0; i < many->map.n; i++)
        if (str_eq(many->map.v[i].k, "args"))
            args = many->map.v[i].v;
    while (args->list.n < 4090)
        list_add(args, args->list, config(args, "\"a\""));
    err_clear(&e);
    ck_assert_msg(driver_check(driver_find("java"), many, &e) == 0, "%s", e.text);
    list_add(args, args->list, config(args, "\"a\""));
    ck_assert_int_lt(driver_check(driver_find("java"), many, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "4097 words: at most 4096"));
}
END_TEST

static struct launch_spec *
machine(void *ctx, const char *json, struct driver_input *in, struct err *e)
{
    static struct str_list env;
    static struct task task = {.name = "vm"};
    static struct allocated_memory_resources memory;
    static struct allocated_task_resources res = {.memory = &memory};
    static const struct driver_port ports[] = {{"ssh", "10.0.0.1", 2200, 0},
                                               {"six", "::1", 2201, 99}};
    memory = (struct allocated_memory_resources){.memory_mb = 256};
    in->alloc_id = "12345678-aaaa-bbbb-cccc-0123456789ab";
    in->task = &task;
    in->env = &env;
    in->resources = &res;
    in->ports = ports;
    in->n_ports = ARRAY_LEN(ports);
    in->config = config(ctx, json);
    struct launch_spec *s = NULL;
    return driver_find("qemu")->spec(ctx, in, &s, e) < 0 ? NULL : s;
}

START_TEST(qemu_spec)
{
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    struct driver_input in = {0};
    struct launch_spec *s =
        machine(ctx, "{\"image_path\":\"local/a,b.img\",\"args\":[\"-snapshot\"]}", &in, &e);
    ck_assert_msg(s, "%s", e.text);
    const char *w = words(ctx, s);
    ck_assert_str_eq(s->command, "/usr/bin/qemu-system-x86_64");
    ck_assert_ptr_nonnull(
        strstr(w, "-name a,,b.img -m 256M -drive file=local/a,,b.img,if=ide,id=image0 "));
    ck_assert_ptr_nonnull(strstr(w, " -sandbox on,"));
    ck_assert(strlen(w) > 10 && str_eq(w + strlen(w) - 10, " -snapshot"));
    ck_assert_int_eq(s->limits->memory_max, (256 + 192) << 20);
    ck_assert_uint_eq(s->mounts.n, 0);
    ck_assert(s->isolated);

    s = machine(ctx, "{\"image_path\":\"/srv/a.img\",\"port_map\":[{\"ssh\":22,\"six\":\"80\"}]}",
                &in, &e);
    ck_assert_msg(s, "%s", e.text);
    w = words(ctx, s);
    ck_assert_uint_eq(s->mounts.n, 1);
    ck_assert(s->mounts.v[0]->read_only);
    ck_assert_str_eq(s->mounts.v[0]->source, "/srv/a.img");
    ck_assert_ptr_nonnull(strstr(w, "id=image0,snapshot=on"));
    ck_assert_str_eq(s->env.v[0], "TMPDIR=/local");
    ck_assert_ptr_nonnull(strstr(w, "hostfwd=udp:10.0.0.1:2200-:22,hostfwd=tcp:10.0.0.1:2200-:22"));
    ck_assert_ptr_nonnull(strstr(w, "hostfwd=tcp::2201-:80"));

    in.own_network = true;
    s = machine(ctx, "{\"image_path\":\"a\",\"port_map\":{\"six\":80},\"graceful_shutdown\":true}",
                &in, &e);
    ck_assert_msg(s, "%s", e.text);
    ck_assert_str_eq(s->command, "/bin/sh");
    ck_assert_ptr_nonnull(strstr(words(ctx, s), "hostfwd=tcp::99-:80"));
    ck_assert_ptr_nonnull(strstr(words(ctx, s), "chardev=qmp,mode=control"));

    /* the host's processor: asked for, or where it is */
    for (int i = 0; i < 4; i++) {
        in.kvm = i & 1;
        s = machine(ctx,
                    i < 2 ? "{\"image_path\":\"a\",\"accelerator\":\"kvm\"}"
                          : "{\"image_path\":\"a\",\"accelerator\":\"kvm:tcg\"}",
                    &in, &e);
        ck_assert_msg(s, "%s", e.text);
        bool kvm = i < 2 || in.kvm;
        ck_assert(kvm == (strstr(words(ctx, s), "-accel kvm -cpu host") != NULL));
        ck_assert(kvm == (s->devices.n == 1 && str_eq(s->devices.v[0], "/dev/kvm")));
        ck_assert(kvm != (strstr(words(ctx, s), "-accel tcg,") != NULL));
    }
    in.plugin = config(ctx, "{\"args_allowlist\":[\"-rtc\"],\"emulators_allowlist\":[\"x86_64\"]}");
    static const struct {
        const char *json, *why;
    } bad[] = {
        {"{\"image_path\":\"a\",\"port_map\":{\"web\":80}}", "no port \"web\""},
        {"{\"image_path\":\"a\",\"port_map\":{\"ssh\":0}}", "not a port from 1"},
        {"{\"image_path\":\"a\",\"port_map\":{\"ssh\":65536}}", "not a port from 1"},
        {"{\"image_path\":\"a\",\"port_map\":{\"ssh\":\"x\"}}", "not a port from 1"},
        {"{\"image_path\":\"a\",\"accelerator\":\"xen\"}", "none of tcg, kvm, kvm:tcg"},
        {"{\"image_path\":\"a\",\"emulator\":\"arm\"}", "emulators_allowlist"},
        {"{\"image_path\":\"a\",\"args\":[\"-rtc\",\"base=utc\",\" -smp\"]}",
         "\" -smp\" is not in args_allowlist"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err_clear(&e);
        ck_assert_ptr_null(machine(ctx, bad[i].json, &in, &e));
        ck_assert_msg(strstr(e.text, bad[i].why), "%s", e.text);
    }
}
END_TEST

START_TEST(exec2_spec)
{
    auto_mem void *ctx = mem_ctx("t");
    struct err e = ERR_INIT;
    struct launch_spec *s = NULL;
    struct task task = {.name = "web"};
    int r =
        spec(ctx, "exec2",
             "{\"command\":\"x\",\"unveil\":[\"r:/etc/mime.types\",\"rwc:/local\",\"rx:/usr/bin\","
             "\"r:/srv/a:b\",\"rwxc:/opt/data\"]}",
             &task, &s, &e);
    ck_assert_int_lt(r, 0); /* the last colon ends the letters */
    ck_assert_ptr_nonnull(strstr(e.text, "r:/srv/a:b"));
    err_clear(&e);
    r = spec(ctx, "exec2",
             "{\"command\":\"x\",\"unveil\":[\"r:/etc/x\",\"rwc:/local\",\"r:/srv\",\"rwxc:/opt/"
             "data\"]}",
             &task, &s, &e);
    ck_assert_msg(r == 0, "%s", e.text);
    ck_assert_int_eq(s->limits->cpu_max, 25000); /* hard: 250 of 1000 MHz */
    ck_assert_uint_eq(s->mounts.n, 2);
    ck_assert_str_eq(s->mounts.v[0]->source, "/srv");
    ck_assert(s->mounts.v[0]->read_only && !s->mounts.v[1]->read_only && s->isolated);
    static const char *const bad[] = {"/etc",          "q:/x",     "r:x",   ":/x",
                                      "rw:/usr/share", "c:/etc/x", "r:/x:", ""};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err_clear(&e);
        ck_assert_msg(spec(ctx, "exec2",
                           mem_printf(ctx, "{\"command\":\"x\",\"unveil\":[\"%s\"]}", bad[i]),
                           &task, &s, &e) < 0,
                      "%s", bad[i]);
        ck_assert_ptr_nonnull(strstr(e.text, "unveil"));
    }
}
END_TEST

START_TEST(refused_specs)
{
    auto_mem void *ctx = mem_ctx("t");
    struct launch_spec *s = NULL;
    struct task task = {.name = "web"}, no_mhz = {.name = "no-mhz"};
    struct err e = ERR_INIT;
    ck_assert_int_lt(
        spec(ctx, "exec", "{\"command\":\"x\",\"cpu_hard_limit\":true}", &no_mhz, &s, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "set client.cpu_total_compute"));
    err_clear(&e);
    ck_assert_int_lt(spec(ctx, "exec", "{\"command\":\"x\",\"pid_mode\":\"both\"}", &task, &s, &e),
                     0);
    err_clear(&e);
    ck_assert_int_lt(spec(ctx, "exec", "{\"command\":\"x\",\"work_dir\":\"a\"}", &task, &s, &e), 0);
    err_clear(&e);
    task.kill_signal = "SIGNOPE";
    ck_assert_int_lt(spec(ctx, "raw_exec", "{\"command\":\"x\"}", &task, &s, &e), 0);
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(raw_exec_denies_variables)
{
    auto_mem void *ctx = mem_ctx("t");
    struct launch_spec *s = NULL;
    struct task task = {.name = "web"};
    struct err e = ERR_INIT;
    ck_assert_int_eq(
        spec(ctx, "raw_exec", "{\"command\":\"x\",\"denied_envvars\":[\"AWS_*\"]}", &task, &s, &e),
        0);
    ck_assert(!s->isolated);
    ck_assert_uint_eq(s->env.n, 1);
    ck_assert_str_eq(s->env.v[0], "A=1");
}
END_TEST

START_TEST(fingerprints)
{
    auto_mem void *ctx = mem_ctx("t");
    struct driver_host h = {.warden = true, .root = true, .cgroup2 = true, .raw_exec = true};
    struct driver_info i = {0};
    driver_find("exec")->fingerprint(ctx, &h, &i);
    ck_assert(i.detected && i.healthy);
    struct driver_info none = {0}, java = {0};
    driver_find("java")->fingerprint(ctx, &h, &none);
    ck_assert(!none.detected && !none.healthy);
    ck_assert_ptr_nonnull(strstr(none.health_description, "no JVM"));
    struct str_map found = {0};
    str_map_set(ctx, &found, "driver.java.version", "17.0.1");
    h.runtime = &found;
    driver_find("java")->fingerprint(ctx, &h, &java);
    ck_assert(java.detected && java.healthy);
    ck_assert_str_eq(str_map_get(&java.attributes, "driver.java.version"), "17.0.1");
    struct driver_info off = {0}, sick = {0}, well = {0};
    driver_find("docker")->fingerprint(ctx, &h, &off);
    ck_assert(!off.detected && !off.healthy && strstr(off.health_description, "enabled = true"));
    h.engine_on = true;
    driver_find("docker")->fingerprint(ctx, &h, &off);
    ck_assert(!off.detected && !off.healthy);
    ck_assert_str_eq(off.health_description, "docker is on, and has not said anything yet");
    struct hand_info engine = {.version = "20.10", .description = "gone"};
    str_map_set(ctx, &engine.attributes, "driver.docker.version", "20.10");
    h.engine = &engine;
    driver_find("docker")->fingerprint(ctx, &h, &sick);
    ck_assert(sick.detected && !sick.healthy && sick.attributes.n == 0);
    ck_assert_str_eq(sick.health_description, "gone");
    engine.healthy = true;
    driver_find("docker")->fingerprint(ctx, &h, &well);
    ck_assert(well.healthy);
    ck_assert_str_eq(str_map_get(&well.attributes, "driver.docker.version"), "20.10");
    h.missing = "openat2: not there";
    driver_find("java")->fingerprint(ctx, &h, &java);
    ck_assert(!java.detected);
    ck_assert_str_eq(java.health_description, "openat2: not there");
    driver_find("exec")->fingerprint(ctx, &h, &i);
    ck_assert(!i.detected);
    ck_assert_str_eq(i.health_description, "openat2: not there");
    h.raw_exec = false;
    driver_find("raw_exec")->fingerprint(ctx, &h, &i);
    ck_assert(!i.healthy);
}
END_TEST

START_TEST(signals)
{
    char b[16];
    ck_assert_int_eq(signal_parse("SIGUSR1"), SIGUSR1);
    ck_assert_int_eq(signal_parse("usr1"), SIGUSR1);
    ck_assert_int_eq(signal_parse("15"), SIGTERM);
    ck_assert_int_lt(signal_parse("0"), 0);
    ck_assert_int_lt(signal_parse("-1"), 0);
    ck_assert_int_lt(signal_parse("9999"), 0);
    ck_assert_int_lt(signal_parse("SIG"), 0);
    ck_assert_int_lt(signal_parse(""), 0);
    ck_assert_int_lt(signal_parse(NULL), 0);
    ck_assert_str_eq(signal_name(SIGABRT, b), "SIGABRT");
    ck_assert_str_eq(signal_name(61, b), "SIG61");
    ck_assert(strncmp(signal_names(), "SIGABRT,SIGALRM,", 16) == 0);
    ck_assert_ptr_nonnull(strstr(signal_names(), ",SIGXFSZ"));
}
END_TEST

START_TEST(mock)
{
    auto_mem void *ctx = mem_ctx("t");
    ck_assert_ptr_null(driver_find("mock_driver"));
    driver_add(&driver_mock);
    const struct driver *d = driver_find("mock_driver");
    ck_assert_ptr_nonnull(d);
    struct driver_input in = {.config = config(ctx, "{\"run_for\":\"3s\",\"exit_code\":4}")};
    struct err e = ERR_INIT;
    ck_assert_int_eq(driver_check(d, in.config, &e), 0);
    ck_assert_ptr_nonnull(d->engine); /* tests/client/test-client runs it */
    ck_assert(!d->can->launch && d->spec == NULL);
}
END_TEST

/* The library's names are those of the root processes' table. */
START_TEST(texts_of_capabilities)
{
    auto_mem void *ctx = mem_ctx("t");
    const char *some[] = {"NET_RAW", "cap_chown", "nonsense"}, *none[] = {"nonsense", ""};
    ck_assert_str_eq(caps_text_of(ctx, &(struct str_list){some, 3}), "cap_chown,cap_net_raw=ep");
    ck_assert_ptr_null(caps_text_of(ctx, &(struct str_list){none, 2}));
    ck_assert_ptr_null(caps_text_of(ctx, &(struct str_list){0}));
    static const char *const bad[] = {"", "cap_", "all", "net", "CAP_CAP_CHOWN", "chown ", "0",
                                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!caps_text_known(bad[i]), "%s", bad[i]);
    unsigned n = 0;
    for (; caps_name(n); n++)
        ck_assert_msg(caps_text_known(caps_name(n)), "%s", caps_name(n));
    ck_assert_uint_gt(n, 38);
}
END_TEST

TEST_SUITE("driver", checks, texts_of_capabilities, what_a_row_says_its_file_does,
           a_hostname_that_was_put_in_is_looked_at_again, exec_spec, exec2_spec, java_spec,
           qemu_spec, refused_specs, raw_exec_denies_variables, fingerprints, signals, mock)
