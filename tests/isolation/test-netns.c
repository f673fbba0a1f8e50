/* SPDX-License-Identifier: Apache-2.0
 *
 * Network namespaces of allocations, with real wardens and tasks. Each case has a network of its
 * own: the machine's is not touched.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/netlink.h"
#include "isolation/netmap.h"
#include "isolation/policy.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

static const char other_id[] = "0000002b-89ab-cdef-0123-456789abcdef";
#define SHOW "readlink /proc/self/ns/net"

static void
start_here(struct rig *r)
{
    rig_start(r, 0);
    rig_alloc(r, rig_id, "web", "exec");
    rig_alloc(r, rig_id, "aside", "exec");
    rig_alloc(r, other_id, "web", "exec");
}

static void
start(struct rig *r)
{
    rig_own_network();
    start_here(r);
}

#define PUBLIC "10.1.1.1"
static const char *ports_ip = "127.0.0.1";

/* NULL, or the error. `ports`: pairs host port, port inside, 0 at the end; may be NULL. */
static const char *
net_ports(struct rig *r, const char *id, const char *mode, const int *ports,
          const char **ret_address)
{
    struct net_request q = {.mode = mode};
    struct got g = {0};
    for (; ports != NULL && ports[0] != 0; ports += 2) {
        struct net_request_port *p = mem_new(r->ctx, struct net_request_port);
        *p = (struct net_request_port){.host_ip = ports_ip, .host_port = ports[0], .to = ports[1]};
        list_add(r->ctx, q.ports, p);
    }
    warden_net_make(r->client, id, &q, rig_got, &g);
    rig_wait(r, &g);
    const char *why = g.err.code != 0 ? mem_strdup(r->ctx, g.err.text) : NULL;
    if (ret_address != NULL && why == NULL)
        *ret_address = mem_strdup(r->ctx, g.network->address);
    got_free(&g);
    return why;
}

static const char *
net_make(struct rig *r, const char *id, const char *mode)
{
    return net_ports(r, id, mode, NULL, NULL);
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
reconnect(struct rig *r)
{
    warden_client_free(r->client);
    r->client = warden_client_new(r->ctx, r->socket);
    rig_connect(r);
}

static void
respawn(struct rig *r)
{
    rig_kill(r, SIGKILL);
    rig_spawn(r);
    reconnect(r);
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
    reconnect(&r);
    const char *why = net_make(&r, rig_id, "none");
    ck_assert_msg(why && strstr(why, "not allowed"), "%s", why);
    struct got g;
    rig_launch(&r, rig_spec(&r, rig_id, "web", true, SHOW), &g);
    ck_assert_msg(g.err.code == -ERR_POLICY && strstr(g.err.text, "host"), "%s", g.err.text);
    got_free(&g);
    rig_stop(&r);
}
END_TEST

/* --- the bridge ------------------------------------------------------------------------------ */

static bool
need_bridge(struct rig *r)
{
    struct got g = {0};
    warden_info(r->client, rig_got, &g);
    rig_wait(r, &g);
    const char *v = str_map_get(&g.info->facts, "bridge");
    bool works = str_eq(v, "true");
    if (!works)
        printf("# SKIP bridge: %s\n", v);
    got_free(&g);
    if (!works)
        rig_stop(r);
    return works;
}

/* Interfaces but lo. */
static size_t
interfaces(void)
{
    struct if_nameindex *v = if_nameindex();
    size_t n = 0;
    while (v != NULL && v[n].if_index != 0)
        n++;
    if_freenameindex(v);
    return n - 1;
}

static int
count_elements(const struct nlmsghdr *m, void *arg)
{
    struct nlattr *a, *list = NULL;
    mnl_attr_for_each(a, m, sizeof(struct nfgenmsg)) if (mnl_attr_get_type(a) ==
                                                         NFTA_SET_ELEM_LIST_ELEMENTS) list = a;
    if (list != NULL)
        mnl_attr_for_each_nested(a, list)++ *(size_t *)arg;
    return 0;
}

/* Of a set of our table; -errno where it is not there. */
static long
elements(const char *set)
{
    struct netlink n;
    char buf[NETLINK_BUFFER];
    void *extra;
    size_t found = 0;
    ck_assert_int_eq(netlink_open(&n, NETLINK_NETFILTER), 0);
    struct nlmsghdr *h = netlink_begin(buf, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETSETELEM,
                                       NLM_F_DUMP, sizeof(struct nfgenmsg), &extra);
    ((struct nfgenmsg *)extra)->nfgen_family = NFPROTO_IPV4;
    mnl_attr_put_strz(h, NFTA_SET_ELEM_LIST_TABLE, "paddock_" POLICY_BRIDGE_NAME);
    mnl_attr_put_strz(h, NFTA_SET_ELEM_LIST_SET, set);
    int r = netlink_each(&n, h, count_elements, &found);
    netlink_close(&n);
    return r < 0 ? r : (long)found;
}

#define SERVE                                                                                      \
    "python3 -c 'import socket as s,threading\n"                                                   \
    "def serve(p):\n"                                                                              \
    "  l=s.create_server((\"0.0.0.0\",p))\n"                                                       \
    "  while True:\n"                                                                              \
    "    c,a=l.accept(); c.send((a[0]+\"\\n\").encode()); c.close()\n"                             \
    "for p in (80,81): threading.Thread(target=serve,args=(p,)).start()\n"                         \
    "' & echo ready"
/* "ok PEER" or "no": who a server there says that we are. */
#define TRY(host, port)                                                                            \
    "python3 -c 'import socket as s\n"                                                             \
    "try:\n"                                                                                       \
    "  c=s.create_connection((\"" host "\"," port                                                  \
    "),0.5); print(\"ok\",c.recv(99).decode().strip())\n"                                          \
    "except OSError: print(\"no\")'"

/* What a server behind that address of ours sends; "" where there is none. */
static const char *
ask(struct rig *r, const char *host, int port)
{
    char text[64] = "";
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    ck_assert_int_eq(inet_pton(AF_INET, host, &sa.sin_addr), 1);
    for (int i = 0; i < 100 && text[0] == '\0'; i++) { /* until it listens */
        auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (void *)&sa, sizeof(sa)) == 0)
            (void)!read(fd, text, sizeof(text) - 1);
        if (text[0] == '\0')
            rig_pause(20);
    }
    return mem_strdup(r->ctx, text);
}

/* As `nft flush ruleset` does. */
static void
flush_rules(void)
{
    struct net_conf c;
    const char *what;
    policy_bridge(&(struct policy){.data_dir = "/d"}, &c);
    ck_assert_int_eq(netmap_clear(&c, &what), 0);
}

START_TEST(a_bridge_with_ports)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    if (!need_bridge(&r))
        return;
    const char *web = NULL, *other = NULL;
    ck_assert_uint_eq(interfaces(), 0);
    const char *why = net_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, &web);
    ck_assert_msg(why == NULL, "%s", why);
    ck_assert_ptr_null(net_ports(&r, other_id, "bridge", NULL, &other));
    ck_assert_str_ne(web, other);
    ck_assert_uint_eq(interfaces(), 3);
    ck_assert_int_eq(elements("ports"), 2);
    ck_assert_int_eq(elements("members"), 2);
    (void)launch(&r, rig_id, "web", SERVE);
    /* published: by the host's loopback; not published: by the host alone */
    ck_assert_str_eq(ask(&r, "127.0.0.1", 20080), "172.26.64.1\n");
    ck_assert_str_eq(ask(&r, web, 81), "172.26.64.1\n");
    const char *script =
        mem_printf(r.ctx,
                   "cat /proc/net/dev | grep -c eth0; " TRY("%s", "80") "; " TRY(
                       "%s", "81") "; " TRY("172.26.64.1", "20080") "; " TRY("127.0.0.1", "20080"),
                   web, web);
    ck_assert_str_eq(launch(&r, other_id, "web", script), "1\nno\nno\nno\nno\nend\n");
    destroy(&r, other_id, "web");
    destroy(&r, rig_id, "web");
    ck_assert_ptr_null(net_remove(&r, rig_id));
    ck_assert_int_eq(elements("ports"), 0);
    ck_assert_int_eq(elements("members"), 1);
    ck_assert_uint_eq(interfaces(), 2);
    rig_stop(&r);
    ck_assert_uint_eq(interfaces(), 0);
    ck_assert_int_eq(elements("ports"), -ENOENT);
}
END_TEST

/* An address of the host beside that of lo and of the bridge. */
static void
add_public(void)
{
    struct netlink n;
    char buf[NETLINK_BUFFER];
    void *extra;
    struct in_addr in;
    ck_assert_int_eq(inet_pton(AF_INET, PUBLIC, &in), 1);
    ck_assert_int_eq(netlink_open(&n, NETLINK_ROUTE), 0);
    struct nlmsghdr *h =
        netlink_begin(buf, RTM_NEWADDR, NLM_F_CREATE, sizeof(struct ifaddrmsg), &extra);
    struct ifaddrmsg *a = extra;
    *a = (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1};
    mnl_attr_put_u32(h, IFA_LOCAL, in.s_addr);
    mnl_attr_put_u32(h, IFA_ADDRESS, in.s_addr);
    ck_assert_int_eq(netlink_ack(&n, h), 0);
    netlink_close(&n);
}

/* With and without br_netfilter, where this kernel has it: what is bridged goes other ways. */
static void
published_ports(const char *br_netfilter)
{
    struct rig r;
    rig_own_network();
    int set = file_put(AT_FDCWD, "/proc/sys/net/bridge/bridge-nf-call-iptables", br_netfilter);
    if (set < 0)
        printf("# SKIP br_netfilter: %s\n", strerror(-set));
    start_here(&r);
    if (!need_bridge(&r))
        return;
    add_public();
    ports_ip = PUBLIC;
    ck_assert_ptr_null(net_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, NULL));
    ck_assert_ptr_null(net_make(&r, other_id, "bridge"));
    (void)launch(&r, rig_id, "web", SERVE);
    ck_assert_str_eq(ask(&r, PUBLIC, 20080), PUBLIC "\n"); /* the host itself */
    /* another allocation, and itself */
    ck_assert_str_eq(launch(&r, other_id, "web", TRY(PUBLIC, "20080")), "ok 172.26.64.1\nend\n");
    ck_assert_str_eq(launch(&r, rig_id, "aside", TRY(PUBLIC, "20080")), "ok 172.26.64.1\nend\n");
    /* a warden that is killed disturbs nobody, and the next one knows all */
    rig_kill(&r, SIGKILL);
    ck_assert_str_eq(ask(&r, PUBLIC, 20080), PUBLIC "\n");
    rig_spawn(&r);
    reconnect(&r);
    ck_assert_str_eq(ask(&r, PUBLIC, 20080), PUBLIC "\n");
    ck_assert_int_eq(elements("ports"), 2);
    ck_assert_int_eq(elements("members"), 2);
    /* nor does one that finds rules and ports of allocations missing that nobody is in */
    destroy(&r, other_id, "web");
    rig_kill(&r, SIGKILL);
    flush_rules();
    rig_spawn(&r);
    reconnect(&r);
    ck_assert_str_eq(ask(&r, PUBLIC, 20080), PUBLIC "\n");
    ck_assert_str_eq(launch(&r, other_id, "web", TRY(PUBLIC, "20080")), "ok 172.26.64.1\nend\n");
    rig_stop(&r);
    ck_assert_uint_eq(interfaces(), 0);
}

START_TEST(published_ports_are_for_all)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    published_ports("0");
    published_ports("1");
}
END_TEST

START_TEST(what_is_taken_is_refused)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    if (!need_bridge(&r))
        return;
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(20080)};
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (void *)&sa, sizeof(sa)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    const char *why = net_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, NULL);
    ck_assert_msg(why && strstr(why, "program of the host"), "%s", why);
    fd_close(&fd);
    ck_assert_ptr_null(net_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, NULL));
    why = net_ports(&r, other_id, "bridge", (int[]){20080, 80, 0}, NULL);
    ck_assert_msg(why && strstr(why, rig_id), "%s", why);
    why = net_ports(&r, other_id, "bridge", (int[]){20081, 80, 20081, 81, 0}, NULL);
    ck_assert_msg(why && strstr(why, "twice"), "%s", why);
    why = net_ports(&r, rig_id, "bridge", (int[]){20081, 80, 0}, NULL);
    ck_assert_msg(why && strstr(why, "another network"), "%s", why);
    why = net_make(&r, rig_id, "none");
    ck_assert_msg(why && strstr(why, "another network"), "%s", why);
    ck_assert(!has_record(&r, other_id));
    ck_assert_int_eq(elements("ports"), 2);
    /* a second warden with the same bridge */
    struct rig s;
    rig_start(&s, 0);
    rig_alloc(&s, rig_id, "web", "exec");
    why = net_make(&s, rig_id, "bridge");
    ck_assert_msg(why && strstr(why, "bridge_network_name"), "%s", why);
    ck_assert(!has_record(&s, rig_id));
    rig_stop(&s);
    ck_assert_int_eq(elements("ports"), 2);
    rig_stop(&r);
    ck_assert_uint_eq(interfaces(), 0);
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
                   what_the_policy_says, a_bridge_with_ports, published_ports_are_for_all,
                   what_is_taken_is_refused, bad_policies)
