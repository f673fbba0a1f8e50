/* SPDX-License-Identifier: Apache-2.0
 *
 * Network namespaces of allocations, with real wardens and tasks. Each case has a network of its
 * own: the machine's is not touched.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/policy.h"
#include "tests/isolation/network/netrig.h"
#include "tests/lib/test.h"

#define SHOW "readlink /proc/self/ns/net"

static const char *
own_ns(struct rig *r)
{
    char text[64] = "";
    ck_assert_int_gt(readlink("/proc/self/ns/net", text, sizeof(text) - 1), 0);
    return mem_printf(r->ctx, "%s\nend\n", text);
}

START_TEST(a_namespace_for_each_allocation)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    netrig_start(&r);
    struct got g;
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, SHOW);
    s->share_net = false;
    rig_launch(&r, s, &g);
    ck_assert_msg(g.err.code == -ERR_NOT_FOUND && strstr(g.err.text, "network"), "%s", g.err.text);
    got_free(&g);
    ck_assert_ptr_null(netrig_make(&r, rig_id, "none"));
    ck_assert_ptr_null(netrig_make(&r, rig_id, "none")); /* again */
    ck_assert_ptr_null(netrig_make(&r, netrig_other, "none"));
    const char *web = netrig_launch(&r, rig_id, "web", SHOW);
    ck_assert_str_ne(web, own_ns(&r));
    ck_assert_str_eq(netrig_launch(&r, rig_id, "aside", SHOW), web);
    ck_assert_str_ne(netrig_launch(&r, netrig_other, "web", SHOW), web);
    netrig_destroy(&r, rig_id, "aside");
    ck_assert_str_eq(netrig_launch(&r, rig_id, "aside",
                                   "grep -c : /proc/net/dev; "
                                   "python3 -c 'import socket as s\n"
                                   "a=s.create_server((\"127.0.0.1\",80))\n"
                                   "s.create_connection((\"127.0.0.1\",80)); print(\"low port\")'"),
                     "1\nlow port\nend\n");
    const char *why = netrig_remove(&r, rig_id);
    ck_assert_msg(why && strstr(why, "still runs"), "%s", why);
    netrig_destroy(&r, rig_id, "aside");
    netrig_destroy(&r, rig_id, "web");
    ck_assert_ptr_null(netrig_remove(&r, rig_id));
    ck_assert_ptr_null(netrig_remove(&r, rig_id));
    ck_assert(!netrig_has_record(&r, rig_id) && netrig_has_record(&r, netrig_other));
    rig_stop(&r);
}
END_TEST

START_TEST(a_killed_warden_loses_nothing)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    netrig_start(&r);
    ck_assert_ptr_null(netrig_make(&r, rig_id, "none"));
    ck_assert_ptr_null(netrig_make(&r, netrig_other, "none"));
    const char *web = netrig_launch(&r, rig_id, "web", SHOW);
    netrig_respawn(&r);
    ck_assert_str_eq(netrig_launch(&r, rig_id, "aside", SHOW), web);
    /* nobody was in that one: another, without asking */
    ck_assert_str_ne(netrig_launch(&r, netrig_other, "web", SHOW), own_ns(&r));
    ck_assert_ptr_null(netrig_make(&r, netrig_other, "none"));
    netrig_destroy(&r, rig_id, "aside");
    netrig_destroy(&r, rig_id, "web");
    ck_assert_ptr_null(netrig_remove(&r, rig_id));
    netrig_respawn(&r);
    ck_assert(!netrig_has_record(&r, rig_id) && netrig_has_record(&r, netrig_other));
    /* with its directory it goes as well */
    netrig_destroy(&r, netrig_other, "web");
    struct got g = {0};
    warden_alloc_remove(r.client, netrig_other, rig_got, &g);
    rig_wait(&r, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    got_free(&g);
    ck_assert(!netrig_has_record(&r, netrig_other));
    rig_stop(&r);
}
END_TEST

enum odd { PROPER, NO_DIRECTORY, A_LINK, ANOTHERS, THE_HOSTS };

/* Makes what an engine's container of the allocation is to the warden: a process in a network of
 * its own, whose root has the shared directory. */
static pid_t
container(struct rig *r, enum odd odd)
{
    int ready[2];
    char c;
    const char *root = mem_printf(r->ctx, "%s/root%d", r->dir, odd);
    const char *at = mem_printf(r->ctx, "%s/alloc", root);
    const char *dir = mem_printf(r->ctx, "%s/%s/alloc", r->policy.alloc_dir,
                                 odd == ANOTHERS ? netrig_other : rig_id);
    ck_assert_int_eq(mkdir(root, 0755), 0);
    ck_assert_int_eq(odd == A_LINK ? symlink(dir, at) : mkdir(at, 0755), 0);
    ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        bool ok =
            unshare(CLONE_NEWNS | (odd == THE_HOSTS ? 0 : CLONE_NEWNET)) == 0 &&
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
            (odd == NO_DIRECTORY || odd == A_LINK || mount(dir, at, NULL, MS_BIND, NULL) == 0) &&
            chroot(root) == 0 && chdir("/") == 0 && write(ready[1], "x", 1) == 1;
        for (; ok;)
            pause();
        _exit(1);
    }
    fd_close(&ready[1]);
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    fd_close(&ready[0]);
    return pid;
}

static const char *
join(struct rig *r, pid_t pid)
{
    struct got g = {0};
    warden_net_make(r->client, rig_id, &(const struct net_request){.mode = "bridge", .pid = pid},
                    rig_got, &g);
    rig_wait(r, &g);
    const char *why = g.err.code != 0 ? mem_strdup(r->ctx, g.err.text) : NULL;
    got_free(&g);
    return why;
}

static void
end(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

START_TEST(the_namespace_of_a_container)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    char text[64] = "";
    netrig_start(&r);
    for (enum odd odd = NO_DIRECTORY; odd <= THE_HOSTS; odd++) {
        pid_t pid = container(&r, odd);
        const char *why = join(&r, pid);
        ck_assert_msg(why && strstr(why, "is none of a container of allocation"), "%d: %s", odd,
                      why);
        end(pid);
        why = join(&r, pid);
        ck_assert_msg(why && strstr(why, "has ended"), "%d: %s", odd, why);
    }
    ck_assert(!netrig_has_record(&r, rig_id));
    pid_t pid = container(&r, PROPER);
    ck_assert_ptr_null(join(&r, pid));
    ck_assert_int_gt(
        readlink(mem_printf(r.ctx, "/proc/%d/ns/net", (int)pid), text, sizeof(text) - 1), 0);
    const char *shown = mem_printf(r.ctx, "%s\nend\n", text);
    ck_assert_str_eq(netrig_launch(&r, rig_id, "web", SHOW), shown);
    end(pid);
    netrig_respawn(&r); /* a living task is in it */
    ck_assert_str_eq(netrig_launch(&r, rig_id, "aside", SHOW), shown);
    netrig_destroy(&r, rig_id, "aside");
    netrig_destroy(&r, rig_id, "web");
    netrig_respawn(&r); /* nobody is: none is made in its place */
    ck_assert(!netrig_has_record(&r, rig_id));
    struct got g;
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, SHOW);
    s->share_net = false;
    rig_launch(&r, s, &g);
    ck_assert_int_eq(g.err.code, -ERR_NOT_FOUND);
    got_free(&g);
    ck_assert_ptr_null(netrig_remove(&r, rig_id));
    rig_stop(&r);
}
END_TEST

START_TEST(what_the_policy_says)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct err e = ERR_INIT;
    netrig_start(&r);
    list_add(r.ctx, r.policy.network_modes, "bridge");
    rig_kill(&r, SIGUSR1);
    ck_assert_msg(policy_compile(&r.policy, r.policy_path, &e) == 0, "%s", e.text);
    rig_spawn(&r);
    netrig_reconnect(&r);
    const char *why = netrig_make(&r, rig_id, "none");
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
                   the_namespace_of_a_container, what_the_policy_says, bad_policies)
