/* SPDX-License-Identifier: Apache-2.0
 *
 * From the agent's configuration to the launch policy.
 */
#include <string.h>
#include <unistd.h>

#include "agent/policy.h"
#include "codec/codec.h"
#include "common/buf.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/test.h"

static void *ctx;
static struct agent_config *cfg;

static void
setup(void)
{
    ctx = mem_ctx("policy");
    cfg = mem_new(ctx, struct agent_config);
    cfg->data_dir = "/var/lib/x";
    cfg->client = mem_new(ctx, struct agent_client);
    cfg->client->enabled = true;
    cfg->isolation = mem_new(ctx, struct agent_isolation);
    cfg->isolation->user = "nobody";
    cfg->addresses = mem_new(ctx, struct agent_addresses);
    cfg->ports = mem_new(ctx, struct agent_ports);
    *cfg->ports = (struct agent_ports){.http = 4646, .rpc = 4647};
    cfg->bind_addr = "192.0.2.1";
}

static void
teardown(void)
{
    talloc_free(ctx);
}

static struct policy *
policy(const char *data_dir)
{
    struct policy *p = NULL;
    struct err e = ERR_INIT;
    ck_assert_msg(agent_policy(ctx, cfg, data_dir, &p, &e) == 0, "%s", e.text);
    return p;
}

static const char *
refused(void)
{
    static char text[ERR_TEXT_MAX];
    struct policy *p = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_lt(agent_policy(ctx, cfg, NULL, &p, &e), 0);
    ck_assert_ptr_null(p);
    (void)str_copy(text, sizeof(text), e.text);
    return text;
}

/* The policy's file keeps the difference: unset denies root, an empty list nobody. */
START_TEST(an_empty_list_of_denied_users_is_not_none)
{
    static const char *none[1];
    for (int set = 0; set <= 1; set++) {
        struct err e = ERR_INIT;
        void *back = NULL;
        cfg->isolation->denied_users = (struct str_list){set ? none : NULL, 0};
        auto_buf struct buf b = BUF_INIT(1 << 20);
        mp_encode(&b, &type_policy, policy(NULL));
        ck_assert_int_eq(mp_decode(ctx, &type_policy, SLICE(b.data, b.len), BUDGET(1 << 20), &back, &e), 0);
        const struct policy *p = back;
        ck_assert_int_eq(p->denied_users.v != NULL, set);
        ck_assert_uint_eq(p->denied_users.n, 0);
    }
}
END_TEST

START_TEST(directories)
{
    struct policy *p = policy(NULL);
    ck_assert_str_eq(p->data_dir, "/var/lib/x");
    ck_assert_str_eq(p->alloc_dir, "/var/lib/x/alloc");
    ck_assert_str_eq(p->run_dir, geteuid() == 0 ? "/run/paddock" : "/var/lib/x/run");
    cfg->client->enabled = false; /* a server without tasks does not take the common directory */
    ck_assert_str_eq(policy(NULL)->run_dir, "/var/lib/x/run");
    cfg->client->enabled = true;
    cfg->client->alloc_dir = "/srv/alloc";
    cfg->isolation->run_dir = "/run/other";
    p = policy(NULL);
    ck_assert_str_eq(p->alloc_dir, "/srv/alloc");
    ck_assert_str_eq(p->run_dir, "/run/other");
    cfg->isolation->run_dir = NULL;
    cfg->dev_mode = true;
    cfg->data_dir = NULL;
    p = policy("/tmp/dev");
    ck_assert_str_eq(p->data_dir, "/tmp/dev");
    ck_assert_str_eq(p->run_dir, "/tmp/dev/run");
    ck_assert_ptr_nonnull(strstr(refused(), "data_dir is required"));
}
END_TEST

START_TEST(raw_exec_is_off_unless_enabled)
{
    struct value *config = value_map(ctx), *list = value_list(ctx);
    struct agent_plugin *plugin = mem_new(ctx, struct agent_plugin);

    ck_assert(!policy(NULL)->raw_exec);
    size_t policy_drivers = policy(NULL)->drivers.n;
    plugin->name = "raw_exec";
    plugin->config = config;
    list_add(ctx, cfg->plugins, plugin);
    ck_assert(!policy(NULL)->raw_exec);
    value_map_set(config, "enabled", value_bool(ctx, false));
    ck_assert(!policy(NULL)->raw_exec);
    value_map_set(config, "enabled", value_bool(ctx, true));
    struct policy *p = policy(NULL);
    ck_assert(p->raw_exec);
    ck_assert_uint_eq(p->drivers.n, policy_drivers + 1);
    ck_assert(str_list_has(&p->drivers, "raw_exec") && !str_list_has(&p->drivers, "docker"));
    value_list_add(list, config);
    plugin->config = list;
    ck_assert(policy(NULL)->raw_exec);
    plugin->name = "exec";
    ck_assert(!policy(NULL)->raw_exec);
    cfg->dev_mode = true;
    ck_assert(policy(NULL)->raw_exec);
}
END_TEST

static const struct engine_policy *
policy_engine(const struct policy *p, const char *driver)
{
    for (size_t i = 0; i < p->engines.n; i++)
        if (str_eq(p->engines.v[i]->name, driver))
            return p->engines.v[i];
    return NULL;
}

START_TEST(an_engine_is_on_where_its_plugin_says_so)
{
    struct value *config = value_map(ctx), *caps = value_list(ctx);
    struct agent_plugin *plugin = mem_new(ctx, struct agent_plugin);

    cfg->dev_mode = true;
    ck_assert_ptr_null(policy_engine(policy("/tmp/dev"), "docker")); /* it is as good as root on the host */
    cfg->dev_mode = false;
    plugin->name = "docker";
    plugin->config = config;
    list_add(ctx, cfg->plugins, plugin);
    ck_assert_ptr_null(policy_engine(policy(NULL), "docker"));
    value_map_set(config, "enabled", value_bool(ctx, true));
    const struct engine_policy *e = policy_engine(policy(NULL), "docker");
    ck_assert_ptr_nonnull(e);
    ck_assert_str_eq(e->endpoint, "unix:///var/run/docker.sock");
    ck_assert(!e->privileged && e->caps.n == 13 && !str_list_has(&e->caps, "net_raw"));
    value_map_set(config, "endpoint", value_str(ctx, "unix:///x.sock"));
    value_map_set(config, "allow_privileged", value_bool(ctx, true));
    value_map_set(config, "allow_caps", caps);
    e = policy_engine(policy(NULL), "docker");
    ck_assert_str_eq(e->endpoint, "unix:///x.sock");
    ck_assert(e->privileged && e->caps.n == 0);
    value_list_add(caps, value_str(ctx, "net_raw"));
    ck_assert_uint_eq(policy_engine(policy(NULL), "docker")->caps.n, 1);
    ck_assert(!str_list_has(&policy(NULL)->drivers, "docker")); /* the warden starts none */
    ck_assert(!e->volumes && e->devices.n == 0 && e->pid_modes.n == 0 && e->pids_max == 0 &&
              str_list_has(&e->runtimes, "runc"));
    struct value *block = value_map(ctx), *modes = value_map(ctx), *blocks = value_list(ctx);
    value_map_set(block, "enabled", value_bool(ctx, true));
    value_list_add(blocks, block);
    value_map_set(config, "volumes", blocks);
    value_map_set(modes, "pid", caps);
    value_map_set(config, "allowed_modes", modes);
    value_map_set(config, "allow_devices", caps);
    value_map_set(config, "allow_runtimes", caps);
    value_map_set(config, "pids_limit", value_int(ctx, 50));
    e = policy_engine(policy(NULL), "docker");
    ck_assert(e->volumes && e->pids_max == 50 && e->ipc_modes.n == 0);
    struct value *paths = value_list(ctx), *log = value_map(ctx), *inside = value_map(ctx);
    value_list_add(paths, value_str(ctx, "/srv/images"));
    value_map_set(inside, "max-size", value_str(ctx, "2m"));
    value_map_set(log, "type", value_str(ctx, "local"));
    value_map_set(log, "config", inside);
    value_map_set(config, "logging", log);
    value_map_set(config, "extra_labels", caps);
    value_map_set(config, "image_pull_timeout", value_str(ctx, "10m"));
    value_map_set(config, "pull_activity_timeout", value_str(ctx, "1m"));
    value_map_set(config, "oom_score_adj", value_str(ctx, "7"));
    value_map_set(config, "disable_log_collection", value_bool(ctx, true));
    value_map_set(config, "image_paths", paths);
    e = policy_engine(policy(NULL), "docker");
    ck_assert(str_list_has(&e->extra_labels, "net_raw") && e->no_logs && e->oom_score_adj == 7);
    ck_assert(e->pull_timeout == 600 * NS_PER_S && e->pull_idle == 60 * NS_PER_S);
    ck_assert_str_eq(e->log_driver, "local");
    ck_assert_str_eq(str_map_get(&e->log_options, "max-size"), "2m");
    ck_assert_uint_eq(policy(NULL)->image_paths.n, 0);
    plugin->name = "qemu";
    ck_assert_uint_eq(policy(NULL)->image_paths.n, 1);
    plugin->name = "docker";
    ck_assert(str_list_has(&e->pid_modes, "net_raw") && str_list_has(&e->devices, "net_raw") &&
              !str_list_has(&e->runtimes, "runc"));
}
END_TEST

START_TEST(the_old_option_of_raw_exec_is_read_in_all_spellings)
{
    str_map_set(ctx, &cfg->client->options, "driver.raw_exec.enable", "true");
    ck_assert(policy(NULL)->raw_exec);
    str_map_set(ctx, &cfg->client->options, "driver.raw_exec.enable", "1");
    ck_assert(policy(NULL)->raw_exec);
    str_map_set(ctx, &cfg->client->options, "driver.raw_exec.enable", "0");
    ck_assert(!policy(NULL)->raw_exec);
}
END_TEST

START_TEST(seccomp_is_on_unless_refused)
{
    ck_assert(policy(NULL)->seccomp);
    cfg->isolation->seccomp = (struct opt_bool){true, false};
    ck_assert(!policy(NULL)->seccomp);
    cfg->isolation = NULL;
    if (geteuid() != 0)
        ck_assert(policy(NULL)->seccomp);
}
END_TEST

START_TEST(the_agent_has_a_user_and_it_is_not_root)
{
    TEST_NEED("root");
    struct policy *p = policy(NULL);
    ck_assert_str_eq(p->agent_user, "nobody");
    ck_assert_int_ne(p->agent_uid, 0);
    cfg->isolation->user = "no-such-user-here";
    const char *text = refused();
    ck_assert_ptr_nonnull(strstr(text, "no-such-user-here"));
    ck_assert_ptr_nonnull(strstr(text, "useradd"));
    cfg->isolation->user = "root";
    ck_assert_ptr_nonnull(strstr(refused(), "must not be root"));
}
END_TEST

START_TEST(where_the_agent_listens_is_denied_to_tasks)
{
    struct policy *p = policy(NULL);
    ck_assert_uint_eq(p->agent_denied.n, 1);
    ck_assert_str_eq(p->agent_denied.v[0], "192.0.2.1:4646-4646/tcp");
    cfg->server = mem_new(ctx, struct agent_server);
    cfg->server->enabled = true;
    p = policy(NULL);
    ck_assert_uint_eq(p->agent_denied.n, 1);
    ck_assert_str_eq(p->agent_denied.v[0], "192.0.2.1:4646-4647/tcp");
    cfg->addresses->rpc = "2001:db8::1";
    p = policy(NULL);
    ck_assert_uint_eq(p->agent_denied.n, 2);
    ck_assert_str_eq(p->agent_denied.v[1], "[2001:db8::1]:4647-4647/tcp");
    cfg->addresses->rpc = NULL;
    cfg->bind_addr = "0.0.0.0";
    p = policy(NULL);
    ck_assert(str_list_has(&p->agent_denied, "127.0.0.0/8:4646-4647/tcp"));
    ck_assert(str_list_has(&p->agent_denied, "[::1]:4646-4647/tcp"));
    ck_assert(str_list_has(&p->agent_denied, "172.26.64.0/20:4646-4647/tcp"));
    cfg->isolation->agent_api = true;
    ck_assert_uint_eq(policy(NULL)->agent_denied.n, 0);
}
END_TEST

TEST_SUITE_FIXTURE("agent-policy", 20, setup, teardown, directories,
                   an_empty_list_of_denied_users_is_not_none,
                   where_the_agent_listens_is_denied_to_tasks,
                   raw_exec_is_off_unless_enabled, an_engine_is_on_where_its_plugin_says_so,
                   the_old_option_of_raw_exec_is_read_in_all_spellings,
                   seccomp_is_on_unless_refused,
                   the_agent_has_a_user_and_it_is_not_root)
