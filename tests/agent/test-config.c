/* SPDX-License-Identifier: Apache-2.0
 *
 * Agent configuration: files and directories, both syntaxes, merging, flags, -dev, refusals.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/config/config.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/str.h"
#include "tests/lib/test.h"

static char dir[64];

static void
setup(void)
{
    ck_assert(str_copy(dir, sizeof(dir), "/tmp/paddock-config-XXXXXX"));
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static const char *
file(const void *ctx, const char *name, const char *text)
{
    const char *path = mem_printf(ctx, "%s/%s", dir, name);
    ck_assert_int_eq(file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600), 0);
    return path;
}

static int
load(const void *ctx, const char *path, struct agent_config **ret, struct err *e)
{
    struct config_flags f = {0};
    if (path)
        list_add(ctx, f.config, path);
    return config_load(ctx, &f, ret, NULL, NULL, e);
}

static const char base[] = "data_dir = \"/var/lib/paddock\"\n"
                           "server { enabled = true\n bootstrap_expect = 1 }\n"
                           "client { enabled = true\n servers = [\"127.0.0.1:1\"]\n"
                           "  meta { a = \"1\" } }\n";

static int
load_installed(const void *ctx, struct agent_config **ret, struct err *e)
{
    struct config_flags f = {.run_dir = dir};
    return config_load(ctx, &f, ret, NULL, NULL, e);
}

/* Root reads the files of the tls block with those that name them; what it could not read is told
 * by the agent, and what is in one that changed is a change of its key. */
START_TEST(files_of_the_tls_block_come_with_it)
{
    auto_mem void *ctx = mem_ctx("test");
    struct agent_config *c = NULL, *again = NULL;
    struct str_list keys = {NULL, 0};
    struct err e = ERR_INIT;
    setup();
    const char *text = mem_printf(
        ctx, "%stls { ca_file = \"%s/ca\"\n cert_file = \"%s/both\"\n key_file = \"%s/both\" }\n",
        base, dir, dir, dir);
    struct config_flags f = {0};
    list_add(ctx, f.config, file(ctx, "a.hcl", text));
    struct policy p = {.run_dir = dir, .agent_gid = getgid()};
    file(ctx, "both", "two");
    ck_assert_int_eq(load(ctx, f.config.v[0], &c, &e), 0);
    p.agent_files = config_tls_files(ctx, c);
    ck_assert_uint_eq(p.agent_files.n, 2);
    ck_assert_int_eq(config_files_install(&f, &p, &e), 0);
    ck_assert_int_lt(load_installed(ctx, &c, &e), 0);
    ck_assert_msg(strstr(e.text, "/ca\": No such file or directory") != NULL, "%s", e.text);
    err_clear(&e);
    file(ctx, "ca", "one");
    ck_assert_int_eq(config_files_install(&f, &p, &e), 0);
    ck_assert_msg(load_installed(ctx, &c, &e) == 0, "%s", e.text);
    ck_assert_str_eq(config_tls_text(c, c->tls_config->ca_file), "one");
    ck_assert_str_eq(config_tls_text(c, c->tls_config->key_file), "two");
    file(ctx, "both", "three");
    ck_assert_int_eq(config_files_install(&f, &p, &e), 0);
    ck_assert_int_eq(load_installed(ctx, &again, &e), 0);
    config_changes(ctx, c, again, &keys);
    ck_assert_uint_eq(keys.n, 2);
    ck_assert_str_eq(keys.v[0], "tls.cert_file");
    ck_assert_str_eq(keys.v[1], "tls.key_file");
    /* nobody is shown what is in them */
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode_value(&b, config_value(ctx, again), 0);
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "/both"));
    ck_assert_ptr_null(strstr(buf_str(&b), "three"));
    p.agent_files.n = 1; /* the configuration names one that was not asked for */
    ck_assert_int_eq(config_files_install(&f, &p, &e), 0);
    ck_assert_int_lt(load_installed(ctx, &again, &e), 0);
    ck_assert_msg(strstr(e.text, "nobody has read it") != NULL, "%s", e.text);
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}
END_TEST

/* Keys are told as files spell them, those that are gone too; what is said otherwise is the same. */
START_TEST(changes_are_told_by_key)
{
    static const struct {
        const char *a, *b, *want;
    } rows[] = {
        {"", "", ""},
        {"log_level = \"DEBUG\"", "", "log_level"},
        {"log_level = \"INFO\"", "", ""}, /* its default */
        {"client { meta { b = \"2\" } }", "client { meta { b = \"3\" } }", "client.meta"},
        {"client { reserved { cpu = 5 \n memory = 6 } }", "",
         "client.reserved.cpu client.reserved.memory"},
        {"", "tls { ca_file = \"\" }", ""},
        {"plugin \"docker\" { config { enabled = true } }", "", "plugin.docker"},
        {"plugin \"exec\" { config { no_pivot_root = false } }\nplugin \"java\" { config { } }",
         "plugin \"exec\" { config { } }\nplugin \"raw_exec\" { config { } }",
         "plugin.exec plugin.java plugin.raw_exec"},
        {"isolation { denied_users = [\"a\"] }", "", "isolation.denied_users"},
        {"ports { http = 1 }", "ports { rpc = 2 }", "ports.http ports.rpc"},
        {"server { encrypt = \"x\" }", "", "server.encrypt"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        auto_buf struct buf got = BUF_INIT(4096);
        struct agent_config *a = NULL, *b = NULL;
        struct str_list keys = {NULL, 0};
        struct err e = ERR_INIT;
        setup();
        ck_assert_msg(load(ctx, file(ctx, "a.hcl", mem_printf(ctx, "%s%s", base, rows[i].a)), &a,
                           &e) == 0, "%s", e.text);
        ck_assert_msg(load(ctx, file(ctx, "a.hcl", mem_printf(ctx, "%s%s", base, rows[i].b)), &b,
                           &e) == 0, "%s", e.text);
        config_changes(ctx, a, b, &keys);
        for (size_t k = 0; k < keys.n; k++)
            buf_printf(&got, "%s%s", k ? " " : "", keys.v[k]);
        ck_assert_msg(str_eq(buf_str(&got), rows[i].want), "%zu: \"%s\" want \"%s\"", i,
                      buf_str(&got), rows[i].want);
        ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
    }
}
END_TEST

START_TEST(an_empty_list_is_not_none)
{
    static const char *const texts[] = {"", "isolation { }\n", "isolation { denied_users = [] }\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct agent_config *c = NULL;
        struct err e = ERR_INIT;
        setup();
        const char *path = file(ctx, "a.hcl", mem_printf(ctx, "%s%s", base, texts[i]));
        ck_assert_msg(load(ctx, path, &c, &e) == 0, "%s", e.text);
        ck_assert_int_eq(c->isolation != NULL && c->isolation->denied_users.v != NULL, i == 2);
        ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
    }
}
END_TEST

START_TEST(both_syntaxes)
{
    auto_mem void *ctx = mem_ctx("test");
    struct agent_config *c;
    struct err e = ERR_INIT;
    setup();
    ck_assert_msg(load(ctx, file(ctx, "a.hcl", base), &c, &e) == 0, "%s", e.text);
    ck_assert(c->server->enabled && c->client->enabled);
    ck_assert_int_eq(c->ports->http, 4646);
    ck_assert_str_eq(c->region, "global");
    ck_assert_str_eq(str_map_get(&c->client->meta, "a"), "1");
    ck_assert_str_eq(config_http_addr(c), "0.0.0.0:4646");
    static const char json[] =
        "{\"data_dir\":\"/d\",\"ports\":{\"http\":20001},\"server\":{\"enabled\":true,"
        "\"bootstrap_expect\":1},\"log_level\":\"WARN\"}";
    ck_assert_msg(load(ctx, file(ctx, "b.json", json), &c, &e) == 0, "%s", e.text);
    ck_assert_int_eq(c->ports->http, 20001);
    static const char quoted[] = "\"data_dir\" = \"/d\"\n\"server\" = { \"enabled\" = true, "
                                 "\"bootstrap_expect\" = 1 }\n";
    ck_assert_msg(load(ctx, file(ctx, "c.hcl", quoted), &c, &e) == 0, "%s", e.text);
    ck_assert(c->server->enabled);
}
END_TEST

START_TEST(directory_merges_in_order)
{
    auto_mem void *ctx = mem_ctx("test");
    struct agent_config *c;
    struct err e = ERR_INIT;
    setup();
    file(ctx, "10.hcl", base);
    file(ctx, "20.json",
         "{\"datacenter\":\"dc2\",\"client\":{\"servers\":[\"127.0.0.1:2\"],"
         "\"meta\":{\"b\":\"2\"}}}");
    file(ctx, "30.hcl", "datacenter = \"dc3\"\nlog_level = \"\"\n");
    file(ctx, "40.hcl~", "nonsense {{{");
    file(ctx, "readme.txt", "nonsense");
    ck_assert_msg(load(ctx, dir, &c, &e) == 0, "%s", e.text);
    ck_assert_str_eq(c->datacenter, "dc3");
    ck_assert_uint_eq(c->client->servers.n, 2);
    ck_assert_str_eq(str_map_get(&c->client->meta, "a"), "1");
    ck_assert_str_eq(str_map_get(&c->client->meta, "b"), "2");
    ck_assert_str_eq(c->log_level, "INFO");
    ck_assert_uint_eq(c->files.n, 3);
}
END_TEST

START_TEST(flags_and_dev)
{
    auto_mem void *ctx = mem_ctx("test");
    struct config_flags f = {0};
    struct agent_config *c;
    struct err e = ERR_INIT;
    const struct opt *tables[] = {config_options(ctx, &f), NULL};
    const char *argv[] = {"agent", "-dev", "-node=n1", "-meta", "rack=7", "-bind", "127.0.0.2"};
    struct opt_list args;
    ck_assert_int_eq(opt_parse(ctx, tables, ARRAY_LEN(argv), (char **)argv, &args, &e), 0);
    ck_assert_msg(config_load(ctx, &f, &c, NULL, NULL, &e) == 0, "%s", e.text);
    ck_assert(c->dev_mode && c->server->enabled && c->client->enabled);
    ck_assert_str_eq(c->node_name, "n1");
    ck_assert_str_eq(c->bind_addr, "127.0.0.2");
    ck_assert_str_eq(str_map_get(&c->client->meta, "rack"), "7");
    ck_assert_uint_eq(c->plugins.n, 1);
    struct config_flags g = {0};
    const struct opt *again[] = {config_options(ctx, &g), NULL};
    const char *bad[] = {"agent", "-dev", "-vault-enabled"};
    ck_assert_int_eq(opt_parse(ctx, again, ARRAY_LEN(bad), (char **)bad, &args, &e), 0);
    ck_assert_int_eq(config_load(ctx, &g, &c, NULL, NULL, &e), -ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(e.text, "-vault-enabled"));
}
END_TEST

START_TEST(drain_on_shutdown)
{
    static const char head[] = "data_dir = \"/d\"\nclient { enabled = true\n max_kill_timeout = \"5s\"\n";
    static const struct {
        const char *block;
        bool drains;
        int64_t deadline_s, stop_s;
    } rows[] = {
        {"", false, 0, 0},
        {"drain_on_shutdown {}", true, 3600, 3620},
        {"drain_on_shutdown { deadline = \"1m\"\n ignore_system_jobs = true }", true, 60, 80},
        {"drain_on_shutdown { deadline = \"0s\" }", true, 0, -1},
        {"drain_on_shutdown { force = true }", true, -1, 20},
    };
    setup();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct agent_config *c;
        struct drain_spec d = {0};
        struct err e = ERR_INIT;
        const char *text = mem_printf(ctx, "%s%s\n}\n", head, rows[i].block);
        ck_assert_msg(load(ctx, file(ctx, "x.hcl", text), &c, &e) == 0, "%s", e.text);
        ck_assert_int_eq(config_drain(c, &d), rows[i].drains);
        ck_assert_int_eq(d.deadline, rows[i].deadline_s < 0 ? -1 : rows[i].deadline_s * NS_PER_S);
        ck_assert_int_eq(d.ignore_system_jobs, i == 2);
        ck_assert_int_eq(config_drain_ns(c),
                         rows[i].stop_s < 0 ? INT64_MAX : rows[i].stop_s * NS_PER_S);
        c->dev_mode = true;
        ck_assert(!config_drain(c, &d));
    }
}
END_TEST

START_TEST(refusals_name_the_thing)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"data_dirr = \"/d\"\n", "data_dir"},
        {"server { enabled = true\n bootstrap_expect = 1 }\n", "data_dir is missing"},
        {"data_dir = \"d\"\nserver { enabled = true\n bootstrap_expect = 1 }\n", "absolute"},
        {"data_dir = \"/d\"\n", "neither server nor client"},
        {"data_dir = \"/d\"\nclient { enabled = true\n min_dynamic_port = 9\n max_dynamic_port = 8 "
         "}\n",
         "min_dynamic_port"},
        {"data_dir = \"/d\"\nbind_addr = \"{{ GetAllInterfaces | sort }}\"\nclient { enabled = "
         "true }\n",
         "{{ GetAllInterfaces | sort }} is not supported"},
        {"data_dir = \"/d\"\nbind_addr = \"{{ GetInterfaceIP \\\"nope0\\\" }}\"\nclient { enabled "
         "= true }\n",
         "interface \"nope0\""},
        {"data_dir = \"/d\"\nbind_addr = \"{{ x\"\nclient { enabled = true }\n",
         "address template"},
        {"data_dir = \"/d\"\nclient { enabled = true\n gc_interval = \"soon\" }\n", "gc_interval"},
        {"data_dir = \"/d\"\nclient { enabled = true\n gc_volumes_on_node_gc = true }\n",
         "Not supported yet"},
        {"data_dir = \"/d\"\nadvertise { rpc = \"10.0.0.1:99999\" }\nclient { enabled = true }\n",
         "advertise.rpc \"10.0.0.1:99999\""},
        {"data_dir = \"/d\"\nadvertise { http = \"[::1\" }\nclient { enabled = true }\n",
         "advertise.http"},
        {"data_dir = \"/d\"\nclient { enabled = true\n reserved { reserved_ports = \"22,x\" } }\n",
         "\"x\" is not a list of ports"},
        {"data_dir = \"/d\"\nclient { enabled = true\n reserved { memory = -1 } }\n", "negative"},
        {"data_dir = \"/d\"\nclient { enabled = true }\nplugin \"raw_exec\" { config { enable = 1 "
         "} }\n",
         "did you mean \"enabled\"?"},
        {"data_dir = \"/d\"\nclient { enabled = true }\nplugin \"nomad-driver-podman\" { config { "
         "socket_path = \"tcp://x\" } }\n",
         "plugin \"podman\": endpoint, or socket_path"},
        {"data_dir = \"/d\"\nclient { enabled = true\n drain_on_shutdown { force = true\n deadline "
         "= "
         "\"1m\" } }\n",
         "exclude each other"},
        {"data_dir = \"/d\"\nclient { enabled = true }\nhttp_api_hosts = [\"a.b\", \"*\"]\n",
         "http_api_hosts: \"*\""},
        {"data_dir = \"/d\"\nclient { enabled = true }\nhttp_api_hosts = [\"a.b:80\"]\n",
         "without a port"},
        {"data_dir = \"/d\"\nclient { enabled = true\n options { \"user.denylist\" = \"root\" } "
         "}\n",
         "\"user.denylist\" is unknown or not supported yet: set isolation.denied_users"},
        {"data_dir = \"/d\"\nclient { enabled = true\n options { \"driver.allowlists\" = \"exec\" "
         "} }\n",
         "did you mean \"driver.allowlist\"?"},
        {"data_dir = \"/d\"\nclient { enabled = true\n options { \"docker.volumes.enabled\" = "
         "\"1\" } }\n",
         "remove it"},
        {"log_level = \"LOUD\"\nclient { enabled = true }\n", "LOUD"},
    };
    setup();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct agent_config *c;
        struct err e = ERR_INIT;
        ck_assert_msg(load(ctx, file(ctx, "x.hcl", rows[i].text), &c, &e) < 0, "%s", rows[i].text);
        ck_assert_msg(strstr(e.text, rows[i].says) != NULL, "\"%s\" does not hold \"%s\"", e.text,
                      rows[i].says);
    }
    struct err e = ERR_INIT;
    struct agent_config *c;
    auto_mem void *ctx = mem_ctx("test");
    ck_assert_int_lt(load(ctx, "/nonexistent.hcl", &c, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "/nonexistent.hcl"));
}
END_TEST

/* Each option of Nomad's drivers is taken, holds, or is refused with the line that replaces it. */
static const struct {
    const char *driver, *text, *says; /* NULL: it is taken */
} plugin_options[] = {
    {"docker", "endpoint = \"unix:///x\"", NULL},
    {"docker", "auth {\n config = \"/x\"\n helper = \"pass\"\n}", NULL},
    {"docker", "tls { cert = \"/x\" }", "tls: the engine is on this machine"},
    {"docker", "extra_labels = [\"job_name\", \"task_*\"]", NULL},
    {"docker", "extra_labels = \"job_name\"", "extra_labels must be a list of texts"},
    {"docker", "logging {\n type = \"json-file\"\n config {\n max-size = \"2m\"\n }\n}", NULL},
    {"docker", "logging { type = \"syslog\" }", "elsewhere: it is in the task's log"},
    {"docker",
     "gc {\n image = false\n image_delay = \"3m\"\n container = true\n dangling_containers {\n "
     "enabled = true\n dry_run = false\n period = \"5m\"\n creation_grace = \"5m\"\n }\n}",
     NULL},
    {"docker", "gc { container = false }", "a container is removed when its task has ended"},
    {"docker", "gc {\n dangling_containers { enabled = false }\n}", "take dangling_containers out"},
    {"docker", "gc {\n dangling_containers { dry_run = true }\n}",
     "dry_run of dangling_containers"},
    {"docker", "gc { image_delay = \"soon\" }", "image_delay of gc must be a duration"},
    {"docker", "gc { delay = \"3m\" }", "\"delay\" of gc is unknown"},
    {"docker", "volumes { enabled = true }", NULL},
    {"docker", "volumes { selinuxlabel = \"z\" }", "labels are the engine's"},
    {"docker", "volumes { selinuxlabel = \"\" }", NULL},
    {"docker", "allow_privileged = true", NULL},
    {"docker", "allow_caps = [\"chown\"]", NULL},
    {"docker", "allow_caps = \"chown\"", "allow_caps must be a list of texts"},
    {"docker", "nvidia_runtime = \"mine\"", "name it in allow_runtimes here"},
    {"docker", "allow_runtimes = [\"runc\"]", NULL},
    {"docker", "infra_image = \"a/pause:1\"\n infra_image_pull_timeout = \"5m\"", NULL},
    {"docker", "image_pull_timeout = \"10m\"\n pull_activity_timeout = \"2m\"", NULL},
    {"docker", "image_pull_timeout = 7", "image_pull_timeout must be a duration"},
    {"docker", "container_exists_attempts = 5", NULL},
    {"docker", "oom_score_adj = 1", NULL},
    {"docker", "oom_score_adj = -1", "not negative"},
    {"docker", "pids_limit = 100\n disable_log_collection = true", NULL},
    {"docker", "windows_allow_insecure_container_admin = true", "it is for Windows"},
    {"docker", "windows_allow_insecure_container_admin = false", NULL},
    {"docker", "allowed_modes {\n pid = [\"host\"]\n uts = []\n}", NULL},
    {"docker", "allow_cap = []", "did you mean \"allow_caps\"?"},
    {"exec",
     "no_pivot_root = false\n default_pid_mode = \"private\"\n default_ipc_mode = \"private\"",
     NULL},
    {"exec", "no_pivot_root = true", "a task has a root of its own"},
    {"exec", "default_pid_mode = \"host\"", "default_pid_mode must be \"private\""},
    {"exec", "allow_caps = [\"chown\", \"net_raw\"]",
     "isolation { allowed_caps = [\"chown\",\"net_raw\"] }"},
    {"exec", "denied_host_uids = \"7,100-200,9\"",
     "isolation { denied_users = [\"root\", \"7\", \"9\"] }"},
    {"java", "default_ipc_mode = \"private\"", NULL},
    {"java", "allow_caps = [\"all\"]", "isolation { allowed_caps = [\"all\"] }"},
    {"raw_exec", "enabled = true\n denied_envvars = [\"AWS_*\"]", NULL},
    {"raw_exec", "no_cgroups = true", "a task is ended by its cgroup"},
    {"raw_exec", "denied_host_gids = \"7\"", "isolation { denied_users = [...] }"},
    {"qemu",
     "image_paths = [\"/srv\"]\n args_allowlist = [\"-drive\"]\n emulators_allowlist = "
     "[\"x86_64\"]",
     NULL},
    {"qemu", "image_paths = [\"srv\"]", "image_paths must be a list of absolute paths"},
    {"qemu", "image_path = [\"/srv\"]", "did you mean \"image_paths\"?"},
    {"nomad-driver-podman",
     "socket_path = \"unix:///x\"\n recover_stopped = false\n client_http_timeout = \"60s\"\n "
     "dns_servers = [\"10.0.0.1\"]",
     NULL},
    {"podman",
     "logging {\n driver = \"nomad\"\n}\n extra_labels = [\"*\"]\n disable_log_collection = "
     "true",
     NULL},
    {"podman", "recover_stopped = true", "a container that has ended stays so"},
    {"podman", "socket {\n name = \"a\"\n socket_path = \"unix:///x\"\n}",
     "socket_path = \"unix:///PATH\""},
    {"podman", "networking { default_rootless_mode = \"pasta\" }", "the podman of another user"},
    {"exec2", "unveil_paths = [\"r:/x\"]", "said in the isolation block"},
};

START_TEST(options_of_nomads_drivers)
{
    setup();
    for (size_t i = 0; i < ARRAY_LEN(plugin_options); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct agent_config *c;
        struct err e = ERR_INIT;
        const char *text = mem_printf(ctx,
                                      "data_dir = \"/d\"\nclient { enabled = true }\nplugin \"%s\" "
                                      "{\n config {\n %s\n }\n}\n",
                                      plugin_options[i].driver, plugin_options[i].text);
        int r = load(ctx, file(ctx, "x.hcl", text), &c, &e);
        ck_assert_msg(plugin_options[i].says ? r < 0 && strstr(e.text, plugin_options[i].says)
                                             : r == 0,
                      "%s: %s", text, e.text);
    }
}
END_TEST

START_TEST(credentials_of_a_plugin)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"helper = \"../x\"", "docker-credential-pass"},
        {"config = \"x\"", "config.json"},
        {"user = \"x\"", "\"user\" of auth"},
        {"helper = \"pass\"", NULL},
    };
    setup();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct agent_config *c;
        struct err e = ERR_INIT;
        const char *text = mem_printf(ctx, "data_dir = \"/d\"\nclient { enabled = true }\nplugin \"docker\" "
                                           "{ config { auth { %s } } }\n", rows[i].text);
        int r = load(ctx, file(ctx, "x.hcl", text), &c, &e);
        ck_assert_msg(rows[i].says ? r < 0 && strstr(e.text, rows[i].says) : r == 0, "%s: %s", text, e.text);
    }
}
END_TEST

/* Several servers. */
#define CLUSTER \
    "data_dir = \"/d\"\nserver { enabled = true\n bootstrap_expect = 3\n retry_join = [\"a\"]\n"
#define TLS "tls { rpc = true\n ca_file = \"/c\"\n cert_file = \"/d\"\n key_file = \"/e\"\n"

START_TEST(clusters_that_cannot_be_are_refused)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"data_dir = \"/d\"\nserver { enabled = true\n bootstrap_expect = 2 }\n", "1, 3, 5 or 7"},
        {"data_dir = \"/d\"\nserver { enabled = true\n bootstrap_expect = -1 }\n", "0, 1, 3, 5 or 7"},
        {"data_dir = \"/d\"\nserver { enabled = true\n bootstrap_expect = 3 }\n", "retry_join"},
        {"data_dir = \"/d\"\nserver { enabled = true\n bootstrap_expect = 3\n retry_join = [\"a\"] }\n",
         "plain_rpc"},
        {"data_dir = \"/d\"\nbind_addr = \"127.0.0.1\"\nadvertise { rpc = \"10.0.0.1\" }\nserver { enabled = "
         "true\n bootstrap_expect = 3\n retry_join = [\"a\"] }\n",
         "plain_rpc"},
        {CLUSTER " }\n" TLS " }\n", "server { encrypt"},
        {CLUSTER " encrypt = \"x\" }\n" TLS " rpc_upgrade_mode = true }\n", "upgrade_mode = true } takes"},
        {CLUSTER " encrypt = \"x\" }\ntls { rpc = true }\n", "tls { rpc = true } needs ca_file"},
        {CLUSTER " encrypt = \"x\" }\n" TLS " }\n", NULL},
        {CLUSTER " plain_rpc = true }\n" TLS " rpc_upgrade_mode = true }\n", NULL},
    };
    setup();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct agent_config *c;
        struct err e = ERR_INIT;
        int r = load(ctx, file(ctx, "x.hcl", rows[i].text), &c, &e);
        ck_assert_msg((r < 0) == (rows[i].says != NULL), "%s: %s", rows[i].text, e.text);
        if (r == 0)
            continue;
        ck_assert_msg(strstr(e.text, rows[i].says) != NULL, "\"%s\" does not hold \"%s\"", e.text,
                      rows[i].says);
    }
}
END_TEST

/* A word that only denies what is not here is no promise. */
START_TEST(what_denies_what_is_not_here_holds)
{
    static const char text[] =
        "data_dir = \"/d\"\nclient {\n enabled = true\n cni_path = \"/opt/cni/bin\"\n "
        "cpu_disable_dmidecode = true\n"
        " options {\n  \"fingerprint.denylist\" = \"env_aws,env_gce,env_azure,env_digitalocean\"\n"
        "  \"test.tighten_network_timeouts\" = \"true\"\n"
        "  \"docker.privileged.enabled\" = \"false\"\n  \"fingerprint.allowlist\" = "
        "\"arch,bridge,cgroup, cpu,host,"
        "landlock,memory,network,nomad,signal,storage,vault\"\n }\n}\n"
        "plugin \"lxc\" {\n config {\n  recover_stopped = false\n }\n}\n"
        "consul {\n auto_advertise = false\n client_auto_join = false\n}\n"
        "telemetry {\n disable_hostname = true\n}\nacl {\n token_ttl = \"1m\"\n}\n"
        "server {\n root_key_gc_interval = \"1h\"\n search {\n  "
        "fuzzy_enabled = false\n }\n}\n";
    auto_mem void *ctx = mem_ctx("test");
    struct agent_config *c;
    struct err e = ERR_INIT;
    setup();
    ck_assert_msg(load(ctx, file(ctx, "x.hcl", text), &c, &e) == 0, "%s", e.text);
}
END_TEST

START_TEST(what_promises_what_is_not_here_is_refused)
{
    static const struct {
        const char *of_client, *of_top, *says;
    } rows[] = {
        {"options { \"fingerprint.denylist\" = \"env_aws, cpu\" }", "",
         "\"cpu\" is always detected: do not deny it"},
        {"options { \"fingerprint.allowlist\" = \"arch,cpu\" }", "",
         "\"bridge\" is always detected: name it"},
        {"", "plugin \"lxc\" { config { recover_stopped = true } }",
         "there is no such driver in this release, so \"recover_stopped\" is promised in vain"},
        {"", "tls { ca_file = \"ca.pem\" }", "tls.ca_file \"ca.pem\" is not an absolute path"},
        {"", "tls { tls_min_version = \"tls11\" }", "\"tls12\" and \"tls13\" are supported"},
        {"", "tls { verify_https_client = true }", "verify_https_client = true } needs ca_file"},
        {"", "server {\n enabled = true\n event_buffer_size = 0\n}",
         "server.event_buffer_size = 0 is not 1 to 4096"},
        {"", "server {\n enabled = true\n event_buffer_size = 4097\n}",
         "server.event_buffer_size = 4097 is not 1 to 4096"},
        {"", "tls { bind_node_name = true }",
         "bind_node_name = true } needs rpc and verify_server_hostname"},
    };
    setup();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct agent_config *c;
        struct err e = ERR_INIT;
        const char *text =
            mem_printf(ctx, "data_dir = \"/d\"\nclient {\n enabled = true\n %s\n}\n%s\n",
                       rows[i].of_client, rows[i].of_top);
        ck_assert_msg(load(ctx, file(ctx, "x.hcl", text), &c, &e) < 0, "%s", text);
        ck_assert_msg(strstr(e.text, rows[i].says) != NULL, "%s", e.text);
    }
}
END_TEST

START_TEST(address_templates)
{
    auto_mem void *ctx = mem_ctx("test");
    struct agent_config *c;
    struct err e = ERR_INIT;
    setup();
    const char *text = mem_printf(ctx,
                                  "%sbind_addr = \"{{ GetInterfaceIP \\\"lo\\\" }}\"\n"
                                  "advertise { http = \"{{GetInterfaceIP \\\"lo\\\"}}:99\" }\n",
                                  base);
    ck_assert_msg(load(ctx, file(ctx, "a.hcl", text), &c, &e) == 0, "%s", e.text);
    ck_assert_str_eq(c->bind_addr, "127.0.0.1");
    ck_assert_str_eq(c->advertise_addrs->http, "127.0.0.1:99");
}
END_TEST

START_TEST(what_a_keyring_cannot_be_is_refused)
{
    static const struct {
        const char *text, *says;
    } rows[] = {{"\"awskms\" { active = true }", "keyring \"awskms\" is not in this release"},
                {"\"transit\" { address = \"x\" }", "address"},
                {"\"aead\" { key_file = \"k\" }", "must be an absolute path"},
                {"\"aead\" { credential = \"a/b\" }", "without a slash"},
                {"\"aead\" { key_file = \"/k\"\n credential = \"c\" }", "are two places"},
                {"\"aead\" { active = false }", "one is active"}};
    setup();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct agent_config *c;
        struct err e = ERR_INIT;
        const char *text = mem_printf(
            ctx, "data_dir = \"/d\"\nclient { enabled = true }\nkeyring %s\n", rows[i].text);
        ck_assert_msg(load(ctx, file(ctx, "x.hcl", text), &c, &e) < 0, "%s", text);
        ck_assert_msg(strstr(e.text, rows[i].says) != NULL, "\"%s\" does not hold \"%s\"", e.text,
                      rows[i].says);
    }
}
END_TEST

START_TEST(what_would_end_a_header_is_no_source_of_the_page)
{
    static const char *const bad[] = {"'self'; script-src *", "a,b", "", "a b", "x\\ny"};
    setup();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct agent_config *c;
        struct err e = ERR_INIT;
        const char *text =
            mem_printf(ctx,
                       "data_dir = \"/d\"\nclient { enabled = true }\nui {\n "
                       "content_security_policy {\n script_src = [\"'self'\", \"%s\"]\n }\n}\n",
                       bad[i]);
        ck_assert_msg(load(ctx, file(ctx, "x.hcl", text), &c, &e) < 0, "%s", text);
        ck_assert_msg(strstr(e.text, "is no source of a content_security_policy") != NULL, "%s",
                      e.text);
    }
    auto_mem void *ctx = mem_ctx("test");
    struct agent_config *c;
    struct err e = ERR_INIT;
    const char *text =
        "data_dir = \"/d\"\nname = \"n\"\nclient { enabled = true }\nui {\n enabled = false\n "
        "label {\n "
        "text = \"prod\"\n }\n content_security_policy {\n img_src = [\"*\"]\n }\n}\n";
    ck_assert_msg(load(ctx, file(ctx, "y.hcl", text), &c, &e) == 0, "%s", e.text);
    ck_assert(c->ui->enabled.set && !c->ui->enabled.v);
    ck_assert_str_eq(c->ui->label->text, "prod");
    ck_assert_str_eq(c->ui->content_security_policy->img_src.v[0], "*");
}
END_TEST

START_TEST(what_an_audit_log_cannot_be_is_refused)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"sink \"a\" { }\nsink \"b\" { }", "audit: one sink is supported: leave out \"b\""},
        {"sink \"a\" { type = \"syslog\" }", "type \"syslog\" is not supported: \"file\", \"journal\""},
        {"sink \"a\" { format = \"log\" }", "format \"log\""},
        {"sink \"a\" { mode = \"0666\" }", "mode \"0666\""},
        {"sink \"a\" { delivery_guarantee = \"maybe\" }", "delivery_guarantee \"maybe\""},
        {"sink \"a\" { path = \"x.log\" }", "path \"x.log\" is not absolute"},
        {"sink \"a\" { rotate_bytes = 10 }", "rotate_bytes must be 4096 or more"},
        {"sink \"a\" { rotate_max_files = 1000 }", "rotate_max_files must be 1 to 100"},
        {"filter \"a\" { type = \"x\" }", "type of a filter \"x\""},
        {"filter \"a\" { type = \"HTTPEvent\"\n operations = [\"get\"] }", "operations \"get\""},
        {"filter \"a\" { type = \"HTTPEvent\"\n endpoints = [\"v1\"] }", "endpoints \"v1\""},
        {"filter \"a\" { type = \"HTTPEvent\"\n stages = [\"x\"] }", "stages \"x\""},
    };
    setup();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct agent_config *c;
        struct err e = ERR_INIT;
        const char *text = mem_printf(
            ctx, "data_dir = \"/d\"\nclient { enabled = true }\naudit {\n%s\n}\n", rows[i].text);
        ck_assert_msg(load(ctx, file(ctx, "x.hcl", text), &c, &e) < 0, "%s", text);
        ck_assert_msg(strstr(e.text, rows[i].says) != NULL, "\"%s\" does not hold \"%s\"", e.text,
                      rows[i].says);
    }
}
END_TEST

TEST_SUITE("config", address_templates, drain_on_shutdown, both_syntaxes, an_empty_list_is_not_none,
           changes_are_told_by_key, files_of_the_tls_block_come_with_it, directory_merges_in_order,
           flags_and_dev, refusals_name_the_thing, options_of_nomads_drivers,
           credentials_of_a_plugin, clusters_that_cannot_be_are_refused,
           what_denies_what_is_not_here_holds, what_promises_what_is_not_here_is_refused,
           what_would_end_a_header_is_no_source_of_the_page, what_an_audit_log_cannot_be_is_refused,
           what_a_keyring_cannot_be_is_refused)
