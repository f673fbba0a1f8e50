/* SPDX-License-Identifier: Apache-2.0
 *
 * Network namespaces of allocations, with real wardens and tasks. Each case has a network of its
 * own: the machine's is not touched.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/policy.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

static const char other_id[] = "0000002b-89ab-cdef-0123-456789abcdef";
#define SHOW "readlink /proc/self/ns/net"

static void
start(struct rig *r)
{
    ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
    rig_start(r, 0);
    rig_alloc(r, rig_id, "web", "exec");
    rig_alloc(r, rig_id, "aside", "exec");
    rig_alloc(r, other_id, "web", "exec");
}

/* NULL, or the error. */
static const char *
net_make(struct rig *r, const char *id, const char *mode)
{
    struct net_request q = {.mode = mode};
    struct got g = {0};
    warden_net_make(r->client, id, &q, rig_got, &g);
    rig_wait(r, &g);
    const char *why = g.err.code != 0 ? mem_strdup(r->ctx, g.err.text) : NULL;
    got_free(&g);
    return why;
}

static const char *
net_remove(struct rig *r, const char *id)
{
    struct got g = {0};
    warden_net_remove(r->client, id, rig_got, &g);
    rig_wait(r, &g);
    const char *why = g.err.code != 0 ? mem_strdup(r->ctx, g.err.text) : NULL;
    got_free(&g);
    return why;
}

static void
destroy(struct rig *r, const char *id, const char *task)
{
    struct got d = {0};
    warden_kill(r->client, id, task, rig_got, &d);
    rig_wait(r, &d);
    got_free(&d);
    d = (struct got){0};
    warden_destroy(r->client, id, task, rig_got, &d);
    rig_wait(r, &d);
    got_free(&d);
}

/* What it says before it goes on for ever. */
static const char *
launch(struct rig *r, const char *id, const char *task, const char *script)
{
    struct got g;
    struct launch_spec *s =
        rig_spec(r, id, task, true, mem_printf(r->ctx, "%s; echo end; exec sleep 1000", script));
    s->share_net = false;
    const char *out = mem_printf(r->ctx, "alloc/logs/%s.stdout.0", task);
    struct stat st = {0}; /* the log goes on where the last run of the task ended */
    (void)stat(mem_printf(r->ctx, "%s/%s/%s", r->policy.alloc_dir, id, out), &st);
    rig_launch(r, s, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    got_free(&g);
    for (int i = 0; i < 2000; i++) {
        char *text = rig_file(r, id, out) + st.st_size;
        if (str_suffix(text, "end\n"))
            return text;
        rig_pause(5);
    }
    ck_abort_msg("task %s says nothing: %s", task,
                 rig_file(r, id, mem_printf(r->ctx, "alloc/logs/%s.stderr.0", task)));
    return NULL;
}

static bool
has_record(struct rig *r, const char *id)
{
    return access(mem_printf(r->ctx, "%s/networks/%s", r->policy.data_dir, id), F_OK) == 0;
}

static const char *
own_ns(struct rig *r)
{
    char text[64] = "";
    ck_assert_int_gt(readlink("/proc/self/ns/net", text, sizeof(text) - 1), 0);
    return mem_printf(r->ctx, "%s\nend\n", text);
}

static void
respawn(struct rig *r)
{
    rig_kill(r, SIGKILL);
    rig_spawn(r);
    warden_client_free(r->client);
    r->client = warden_client_new(r->ctx, r->socket);
    rig_connect(r);
}

START_TEST(a_namespace_for_each_allocation)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    struct got g;
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, SHOW);
    s->share_net = false;
    rig_launch(&r, s, &g);
    ck_assert_msg(g.err.code == -ERR_NOT_FOUND && strstr(g.err.text, "network"), "%s", g.err.text);
    got_free(&g);
    ck_assert_ptr_null(net_make(&r, rig_id, "none"));
    ck_assert_ptr_null(net_make(&r, rig_id, "none")); /* again */
    ck_assert_ptr_null(net_make(&r, other_id, "none"));
    const char *web = launch(&r, rig_id, "web", SHOW);
    ck_assert_str_ne(web, own_ns(&r));
    ck_assert_str_eq(launch(&r, rig_id, "aside", SHOW), web);
    ck_assert_str_ne(launch(&r, other_id, "web", SHOW), web);
    destroy(&r, rig_id, "aside");
    ck_assert_str_eq(launch(&r, rig_id, "aside",
                            "grep -c : /proc/net/dev; "
                            "python3 -c 'import socket as s\n"
                            "a=s.create_server((\"127.0.0.1\",80))\n"
                            "s.create_connection((\"127.0.0.1\",80)); print(\"low port\")'"),
                     "1\nlow port\nend\n");
    const char *why = net_remove(&r, rig_id);
    ck_assert_msg(why && strstr(why, "still runs"), "%s", why);
    destroy(&r, rig_id, "aside");
    destroy(&r, rig_id, "web");
    ck_assert_ptr_null(net_remove(&r, rig_id));
    ck_assert_ptr_null(net_remove(&r, rig_id));
    ck_assert(!has_record(&r, rig_id) && has_record(&r, other_id));
    rig_stop(&r);
}
END_TEST

START_TEST(a_killed_warden_loses_nothing)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    ck_assert_ptr_null(net_make(&r, rig_id, "none"));
    ck_assert_ptr_null(net_make(&r, other_id, "none"));
    const char *web = launch(&r, rig_id, "web", SHOW);
    respawn(&r);
    ck_assert_str_eq(launch(&r, rig_id, "aside", SHOW), web);
    /* nobody was in that one: another, without asking */
    ck_assert_str_ne(launch(&r, other_id, "web", SHOW), own_ns(&r));
    ck_assert_ptr_null(net_make(&r, other_id, "none"));
    destroy(&r, rig_id, "aside");
    destroy(&r, rig_id, "web");
    ck_assert_ptr_null(net_remove(&r, rig_id));
    respawn(&r);
    ck_assert(!has_record(&r, rig_id) && has_record(&r, other_id));
    /* with its directory it goes as well */
    destroy(&r, other_id, "web");
    struct got g = {0};
    warden_alloc_remove(r.client, other_id, rig_got, &g);
    rig_wait(&r, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    got_free(&g);
    ck_assert(!has_record(&r, other_id));
    rig_stop(&r);
}
END_TEST

START_TEST(what_the_policy_says)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct err e = ERR_INIT;
    start(&r);
    list_add(r.ctx, r.policy.network_modes, "bridge");
    rig_kill(&r, SIGUSR1);
    ck_assert_msg(policy_compile(&r.policy, r.policy_path, &e) == 0, "%s", e.text);
    rig_spawn(&r);
    warden_client_free(r.client);
    r.client = warden_client_new(r.ctx, r.socket);
    rig_connect(&r);
    const char *why = net_make(&r, rig_id, "none");
    ck_assert_msg(why && strstr(why, "not allowed"), "%s", why);
    struct got g;
    rig_launch(&r, rig_spec(&r, rig_id, "web", true, SHOW), &g);
    ck_assert_msg(g.err.code == -ERR_POLICY && strstr(g.err.text, "host"), "%s", g.err.text);
    got_free(&g);
    rig_stop(&r);
}
END_TEST

START_TEST(bad_policies)
{
    struct err e = ERR_INIT;
    struct policy p = {.data_dir = "/d", .alloc_dir = "/d/a", .run_dir = "/r"};
    static const char *const subnets[] = {"10.0.0.0/30", "10.0.0.0/7", "::1/64",
                                          "10.0.0.0",    "x",          "*"};
    static const char *const names[] = {"a/b", "a b", "0123456789abcdef", ".."};
    for (size_t i = 0; i < ARRAY_LEN(subnets); i++) {
        p.bridge_subnet = subnets[i];
        ck_assert_msg(policy_check(&p, &e) < 0, "%s", subnets[i]);
    }
    p.bridge_subnet = "10.9.0.0/16";
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        p.bridge_name = names[i];
        ck_assert_msg(policy_check(&p, &e) < 0, "%s", names[i]);
    }
    p.bridge_name = "br0";
    ck_assert_int_eq(policy_check(&p, NULL), 0);
    struct net_conf c;
    policy_bridge(&p, &c);
    ck_assert_uint_eq(net_gateway(&c), 0x0a090001);
    ck_assert_str_eq(c.bridge, "br0");
}
END_TEST

TEST_SUITE_TIMEOUT("netns", 60, a_namespace_for_each_allocation, a_killed_warden_loses_nothing,
                   what_the_policy_says, bad_policies)
