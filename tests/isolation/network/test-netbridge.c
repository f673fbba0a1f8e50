/* SPDX-License-Identifier: Apache-2.0
 *
 * The bridge of allocations, with real wardens and tasks: who reaches whom, mapped ports, what is
 * left behind. Each case has a network of its own: the machine's is not touched.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/uuid.h"
#include "isolation/bpf/read.h"
#include "isolation/launch/policy.h"
#include "isolation/network/netbridge.h"
#include "isolation/network/netlink.h"
#include "isolation/network/netmap.h"
#include "isolation/network/netns.h"
#include "tests/isolation/network/netrig.h"
#include "tests/lib/test.h"

#define PUBLIC "10.1.1.1"
#define FOREIGN "192.0.2.1"

static bool
need_bridge(struct rig *r)
{
    return netrig_need(r, "bridge");
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

/* Counts the elements of a set of our table; -errno where it is not there. */
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

/* The same once it is so: a warden that has begun again writes its sets while it is asked already, and a
 * listing that such a transaction cuts is short. */
static long
elements_become(const char *set, long want)
{
    long n = elements(set);
    for (int i = 0; i < 1000 && n != want; i++) {
        (void)poll(NULL, 0, 10);
        n = elements(set);
    }
    return n;
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

/* The line that a server behind that address of ours sends, once it listens; "" where none does. */
static const char *
ask(struct rig *r, const char *host, int port)
{
    char text[64] = "";
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    ck_assert_int_eq(inet_pton(AF_INET, host, &sa.sin_addr), 1);
    int64_t end = clock_mono_ns() + 30 * NS_PER_S; /* Python begins slowly where all is emulated */
    while (text[0] == '\0' && clock_mono_ns() < end) {
        auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (void *)&sa, sizeof(sa)) == 0)
            (void)!read(fd, text, sizeof(text) - 1);
        if (text[0] == '\0')
            rig_pause(20);
    }
    return mem_strdup(r->ctx, text);
}

/* Removes all rules, as `nft flush ruleset` does. */
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
    netrig_start(&r);
    if (!need_bridge(&r))
        return;
    const char *web = NULL, *other = NULL;
    ck_assert_uint_eq(interfaces(), 0);
    const char *why = netrig_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, &web);
    ck_assert_msg(why == NULL, "%s", why);
    ck_assert_ptr_null(netrig_ports(&r, netrig_other, "bridge", NULL, &other));
    ck_assert_str_ne(web, other);
    ck_assert_uint_eq(interfaces(), 3);
    ck_assert_int_eq(elements("ports"), 2);
    ck_assert_int_eq(elements("members"), 2);
    (void)netrig_launch(&r, rig_id, "web", SERVE);
    /* published: by the host's loopback; not published: by the host alone */
    ck_assert_str_eq(ask(&r, "127.0.0.1", 20080), "172.26.64.1\n");
    ck_assert_str_eq(ask(&r, web, 81), "172.26.64.1\n");
    const char *script =
        mem_printf(r.ctx,
                   "cat /proc/net/dev | grep -c eth0; " TRY("%s", "80") "; " TRY(
                       "%s", "81") "; " TRY("172.26.64.1", "20080") "; " TRY("127.0.0.1", "20080"),
                   web, web);
    ck_assert_str_eq(netrig_launch(&r, netrig_other, "web", script), "1\nno\nno\nno\nno\nend\n");
    netrig_destroy(&r, netrig_other, "web");
    netrig_destroy(&r, rig_id, "web");
    ck_assert_ptr_null(netrig_remove(&r, rig_id));
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
    netrig_start_here(&r);
    if (!need_bridge(&r))
        return;
    add_public();
    netrig_ports_ip = PUBLIC;
    ck_assert_ptr_null(netrig_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, NULL));
    ck_assert_ptr_null(netrig_make(&r, netrig_other, "bridge"));
    (void)netrig_launch(&r, rig_id, "web", SERVE);
    ck_assert_str_eq(ask(&r, PUBLIC, 20080), PUBLIC "\n"); /* the host itself */
    /* another allocation, and itself */
    ck_assert_str_eq(netrig_launch(&r, netrig_other, "web", TRY(PUBLIC, "20080")),
                     "ok 172.26.64.1\nend\n");
    ck_assert_str_eq(netrig_launch(&r, rig_id, "aside", TRY(PUBLIC, "20080")),
                     "ok 172.26.64.1\nend\n");
    /* a warden that is killed disturbs nobody, and the next one knows all */
    rig_kill(&r, SIGKILL);
    ck_assert_str_eq(ask(&r, PUBLIC, 20080), PUBLIC "\n");
    rig_spawn(&r);
    netrig_reconnect(&r);
    ck_assert_str_eq(ask(&r, PUBLIC, 20080), PUBLIC "\n");
    ck_assert_int_eq(elements_become("ports", 2), 2);
    ck_assert_int_eq(elements_become("members", 2), 2);
    /* nor does one that finds rules and ports of allocations missing that nobody is in */
    netrig_destroy(&r, netrig_other, "web");
    rig_kill(&r, SIGKILL);
    flush_rules();
    rig_spawn(&r);
    netrig_reconnect(&r);
    ck_assert_str_eq(ask(&r, PUBLIC, 20080), PUBLIC "\n");
    ck_assert_str_eq(netrig_launch(&r, netrig_other, "web", TRY(PUBLIC, "20080")),
                     "ok 172.26.64.1\nend\n");
    rig_stop(&r);
    ck_assert_uint_eq(interfaces(), 0);
}

/* The table of connections is the machine's: full, it drops what the host sends to itself. */
START_TEST(a_task_does_not_fill_the_table_of_connections)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    netrig_start(&r);
    if (!netrig_need(&r, "bridge"))
        return;
    ck_assert_ptr_null(netrig_make(&r, rig_id, "bridge"));
    const char *out =
        netrig_launch(&r, rig_id, "web",
                      "python3 -c 'import socket as s\n"
                      "u=[s.socket(s.AF_INET,s.SOCK_DGRAM) for i in range(4)]\n"
                      "n=0\n"
                      "for p in range(1024,7024):\n"
                      "  for x in u:\n"
                      "    try: x.sendto(b\"x\",(\"172.26.64.1\",p)); n+=1\n"
                      "    except OSError: pass\n"
                      "print(n>0)'");
    ck_assert_msg(str_suffix(out, "end\n"), "%s", out);
    char *text = NULL;
    int64_t n = 0;
    ck_assert_int_eq(file_read(r.ctx, AT_FDCWD, "/proc/sys/net/netfilter/nf_conntrack_count", 32,
                               &text, NULL),
                     0);
    text[strcspn(text, "\n")] = '\0';
    ck_assert_int_eq(num_parse_i64(text, &n), 0);
    printf("# %lld connections are tracked\n", (long long)n);
    ck_assert_int_gt(n, 0);
    ck_assert_int_le(n, NET_CONNS_MAX + 64);
    rig_stop(&r);
}
END_TEST

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
    netrig_start(&r);
    if (!need_bridge(&r))
        return;
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(20080)};
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (void *)&sa, sizeof(sa)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    const char *why = netrig_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, NULL);
    ck_assert_msg(why && strstr(why, "program of the host"), "%s", why);
    fd_close(&fd);
    ck_assert_ptr_null(netrig_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, NULL));
    why = netrig_ports(&r, netrig_other, "bridge", (int[]){20080, 80, 0}, NULL);
    ck_assert_msg(why && strstr(why, rig_id), "%s", why);
    why = netrig_ports(&r, netrig_other, "bridge", (int[]){20081, 80, 20081, 81, 0}, NULL);
    ck_assert_msg(why && strstr(why, "twice"), "%s", why);
    why = netrig_ports(&r, rig_id, "bridge", (int[]){20081, 80, 0}, NULL);
    ck_assert_msg(why && strstr(why, "another network"), "%s", why);
    why = netrig_make(&r, rig_id, "none");
    ck_assert_msg(why && strstr(why, "another network"), "%s", why);
    ck_assert(!netrig_has_record(&r, netrig_other));
    ck_assert_int_eq(elements("ports"), 2);
    /* a second warden with the same bridge */
    struct rig s;
    rig_start(&s, 0);
    rig_alloc(&s, rig_id, "web", "exec");
    why = netrig_make(&s, rig_id, "bridge");
    ck_assert_msg(why && strstr(why, "bridge_network_name"), "%s", why);
    ck_assert(!netrig_has_record(&s, rig_id));
    rig_kill(&s, SIGUSR1);
    ck_assert_int_eq(elements("ports"), 2);
    rig_stop(&r);
    rig_stop(&s);
    ck_assert_uint_eq(interfaces(), 0);
}
END_TEST

/* Routes FOREIGN as if it were behind a router: out by lo, where nobody takes it. */
static void
route_foreign(void)
{
    struct netlink n;
    char buf[NETLINK_BUFFER];
    void *extra;
    struct in_addr in;
    ck_assert_int_eq(inet_pton(AF_INET, FOREIGN, &in), 1);
    ck_assert_int_eq(netlink_open(&n, NETLINK_ROUTE), 0);
    struct nlmsghdr *h =
        netlink_begin(buf, RTM_NEWROUTE, NLM_F_CREATE, sizeof(struct rtmsg), &extra);
    *(struct rtmsg *)extra = (struct rtmsg){.rtm_family = AF_INET,
                                            .rtm_dst_len = 32,
                                            .rtm_table = RT_TABLE_MAIN,
                                            .rtm_protocol = RTPROT_STATIC,
                                            .rtm_scope = RT_SCOPE_LINK,
                                            .rtm_type = RTN_UNICAST};
    mnl_attr_put_u32(h, RTA_DST, in.s_addr);
    mnl_attr_put_u32(h, RTA_OIF, 1);
    ck_assert_int_eq(netlink_ack(&n, h), 0);
    netlink_close(&n);
}

static bool
connects(const char *host, int port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct timeval half = {.tv_usec = 500000};
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(inet_pton(AF_INET, host, &sa.sin_addr), 1);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &half, sizeof(half)), 0);
    return connect(fd, (void *)&sa, sizeof(sa)) == 0;
}

START_TEST(addresses_of_others_stay_theirs)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    static const char *const not_ours[] = {FOREIGN, "224.0.0.1", "255.255.255.255",
                                           "127.255.255.255"};
    struct rig r;
    const char *web = NULL;
    netrig_start(&r);
    if (!need_bridge(&r))
        return;
    for (size_t i = 0; i < ARRAY_LEN(not_ours); i++) {
        netrig_ports_ip = not_ours[i];
        const char *why = netrig_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, NULL);
        ck_assert_msg(why && strstr(why, not_ours[i]), "%s: %s", not_ours[i], why);
    }
    ck_assert(!netrig_has_record(&r, rig_id));
    netrig_ports_ip = "0.0.0.0";
    ck_assert_ptr_null(netrig_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, NULL));
    ck_assert_ptr_null(netrig_remove(&r, rig_id));
    /* a host that lets everybody bind everything */
    ck_assert_int_eq(file_put(AT_FDCWD, "/proc/sys/net/ipv4/ip_nonlocal_bind", "1"), 0);
    route_foreign();
    netrig_ports_ip = FOREIGN;
    ck_assert_ptr_null(netrig_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, &web));
    ck_assert_ptr_null(netrig_make(&r, netrig_other, "bridge"));
    (void)netrig_launch(&r, rig_id, "web", SERVE);
    ck_assert_str_eq(ask(&r, web, 80), "172.26.64.1\n");
    ck_assert(!connects(FOREIGN, 20080));
    ck_assert_str_eq(netrig_launch(&r, netrig_other, "web", TRY(FOREIGN, "20080")), "no\nend\n");
    rig_stop(&r);
}
END_TEST

/* --- what a task with CAP_NET_RAW could send --- */

struct frame {
    uint8_t to[6], from[6];
    uint16_t type;
    struct iphdr ip;
    struct udphdr udp;
    char payload[18];
} __attribute__((packed));
enum { SPOOF_PORT = 5555 };

static void
send_frame(int fd, const char *mac_of, const char *src, const char *dst, char mark)
{
    struct in_addr a;
    struct frame f = {.type = htons(ETH_P_IP)};
    ck_assert_int_eq(inet_pton(AF_INET, "172.26.64.1", &a), 1);
    netbridge_mac(f.to, ntohl(a.s_addr));
    ck_assert_int_eq(inet_pton(AF_INET, mac_of, &a), 1);
    netbridge_mac(f.from, ntohl(a.s_addr));
    f.ip = (struct iphdr){.version = 4, .ihl = 5, .ttl = 9, .protocol = IPPROTO_UDP};
    f.ip.tot_len = htons(sizeof(f) - offsetof(struct frame, ip));
    struct iphdr ip = f.ip;
    ck_assert_int_eq(inet_pton(AF_INET, src, &ip.saddr), 1);
    ck_assert_int_eq(inet_pton(AF_INET, dst, &ip.daddr), 1);
    uint16_t words[10];
    memcpy(words, &ip, sizeof(words));
    uint32_t sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        sum += words[i];
    sum = (sum & 0xffff) + (sum >> 16);
    ip.check = (uint16_t) ~(sum + (sum >> 16));
    f.ip = ip;
    f.udp.source = f.udp.dest = htons(SPOOF_PORT);
    f.udp.len = htons(sizeof(f.udp) + sizeof(f.payload));
    f.payload[0] = mark;
    ck_assert_int_eq(write(fd, &f, sizeof(f)), sizeof(f));
}

static void
enter_task(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    auto_fd int ns = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(netns_enter(ns), 0);
}

/* In the namespace of `pid`, whose address is `own`. */
static void
spoof(pid_t pid, const char *own, const char *other)
{
    auto_fd int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    enter_task(pid);
    auto_fd int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    struct sockaddr_ll to = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_IP),
                             .sll_ifindex = (int)if_nametoindex(NET_IFACE)};
    ck_assert_int_eq(bind(fd, (void *)&to, sizeof(to)), 0);
    send_frame(fd, own, other, PUBLIC, '1');
    send_frame(fd, other, other, PUBLIC, '2');
    send_frame(fd, own, own, "127.0.0.1", '3');
    send_frame(fd, other, own, PUBLIC, '4');
    send_frame(fd, own, PUBLIC, PUBLIC, '5');
    send_frame(fd, own, own, PUBLIC, '+');
    ck_assert_int_eq(netns_enter(home), 0);
}

START_TEST(nobody_is_somebody_else)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    static const char *const br_netfilter[] = {"0", "1"};
    for (size_t i = 0; i < ARRAY_LEN(br_netfilter); i++) {
        struct rig r;
        const char *web = NULL, *other = NULL;
        rig_own_network();
        (void)file_put(AT_FDCWD, "/proc/sys/net/bridge/bridge-nf-call-iptables", br_netfilter[i]);
        netrig_start_here(&r);
        if (!need_bridge(&r))
            return;
        add_public();
        ck_assert_ptr_null(netrig_ports(&r, rig_id, "bridge", NULL, &web));
        ck_assert_ptr_null(netrig_ports(&r, netrig_other, "bridge", NULL, &other));
        (void)netrig_launch(&r, rig_id, "web", "true");
        struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(SPOOF_PORT)};
        auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(fd, (void *)&sa, sizeof(sa)), 0);
        spoof(netrig_pid, web, other);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ck_assert_int_eq(poll(&p, 1, 5000), 1);
        char got = 0;
        (void)!read(fd, &got, 1);
        ck_assert_msg(got == '+', "packet %c got through", got);
        rig_stop(&r);
    }
}
END_TEST

/* --- with eBPF --- */

#define ERRNO_OF(host, port)                                                                       \
    "python3 -c 'import socket as s\n"                                                             \
    "try: s.create_connection((\"" host "\"," port "),0.5); print(0)\n"                            \
    "except OSError as e: print(e.errno)'"

START_TEST(policies_hold_on_the_bridge)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    netrig_start(&r);
    if (!need_bridge(&r) || !netrig_need(&r, "bpf_net"))
        return;
    add_public();
    netrig_ports_ip = PUBLIC;
    ck_assert_ptr_null(netrig_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, NULL));
    ck_assert_ptr_null(netrig_make(&r, netrig_other, "bridge"));
    (void)netrig_launch(&r, rig_id, "web", SERVE);
    ck_assert_str_ne(ask(&r, PUBLIC, 20080), "");
    struct net_policy deny = {0};
    list_add(r.ctx, deny.deny, PUBLIC);
    static const char script[] = ERRNO_OF(PUBLIC, "20080") "; " ERRNO_OF("169.254.169.254", "80");
    ck_assert_str_eq(netrig_launch_policed(&r, netrig_other, "web", script, &deny), "1\n1\nend\n");
    netrig_destroy(&r, netrig_other, "web");
    ck_assert_str_eq(netrig_launch(&r, netrig_other, "web", script), "0\n1\nend\n");
    rig_stop(&r);
}
END_TEST

struct traffic {
    unsigned long long rx_bytes, rx_packets, tx_bytes, tx_packets;
};

/* Returns the counts of an interface of ours, without the Ethernet headers. */
static struct traffic
interface_counts(const char *name)
{
    auto_mem void *ctx = mem_ctx("dev");
    char *text = NULL;
    struct traffic t = {0};
    ck_assert_int_eq(file_read(ctx, AT_FDCWD, "/proc/self/net/dev", 1 << 20, &text, NULL), 0);
    const char *at = strstr(text, name);
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(at + strlen(name), ": %llu %llu %*u %*u %*u %*u %*u %*u %llu %llu",
                            &t.rx_bytes, &t.rx_packets, &t.tx_bytes, &t.tx_packets),
                     4);
    t.rx_bytes -= t.rx_packets * ETH_HLEN;
    t.tx_bytes -= t.tx_packets * ETH_HLEN;
    return t;
}

/* Segments are cut before they cross `iface`, so that it counts a header for each, as a wire would. */
static void
cut_segments(const char *iface)
{
    static const uint32_t commands[] = {ETHTOOL_STSO, ETHTOOL_SGSO};
    auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        struct ethtool_value off = {.cmd = commands[i]};
        struct ifreq q = {.ifr_data = (void *)&off};
        str_copy(q.ifr_name, sizeof(q.ifr_name), iface);
        ck_assert_int_eq(ioctl(fd, SIOCETHTOOL, &q), 0);
    }
}

static bool
within_a_percent(unsigned long long a, unsigned long long b)
{
    unsigned long long d = a > b ? a - b : b - a;
    fprintf(stderr, "# %llu and %llu bytes\n", a, b);
    return d * 100 <= b;
}

START_TEST(counters_agree)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    netrig_start(&r);
    if (!need_bridge(&r) || !netrig_need(&r, "bpf_net"))
        return;
    const char *web = NULL;
    char port[NET_NAME_MAX];
    struct in_addr in;
    ck_assert_ptr_null(netrig_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, &web));
    ck_assert_int_eq(inet_pton(AF_INET, web, &in), 1);
    netbridge_port(port, ntohl(in.s_addr));
    /* it listens before anybody calls: what is refused is the interface's, and no task's */
    (void)netrig_launch(&r, rig_id, "web",
                        "python3 -c 'import socket as s\n"
                        "l=s.create_server((\"0.0.0.0\",80)); open(\"/local/up\",\"w\"); c,a=l.accept()\n"
                        "n=8<<20; c.sendall(bytes(4*n))\n"
                        "while n: n-=len(c.recv(1<<16))\n"
                        "c.sendall(b\"x\"); c.recv(1)' & "
                        "until [ -e /local/up ]; do sleep 0.02; done");
    auto_fd int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    enter_task(netrig_pid);
    cut_segments(NET_IFACE);
    ck_assert_int_eq(netns_enter(home), 0);
    cut_segments(port);
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(20080)};
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (void *)&sa, sizeof(sa)), 0);
    /* each direction has much, beside which neighbours that look for each other are nothing */
    static char buf[1 << 16];
    size_t left = 32 << 20;
    for (ssize_t n; left > 0 && (n = read(fd, buf, sizeof(buf))) > 0;)
        left -= (size_t)n;
    ck_assert_uint_eq(left, 0);
    for (left = 8 << 20; left > 0; left -= sizeof(buf))
        ck_assert_int_eq(fd_write_full(fd, buf, sizeof(buf)), 0);
    ck_assert_int_eq(read(fd, buf, 1), 1); /* the task has all of it */
    struct got g = {0};
    struct bpf_read read = {0};
    struct bpf_net_counts c;
    size_t hint = 0;
    warden_info(r.client, rig_got, &g);
    rig_wait(&r, &g);
    ck_assert_int_eq(bpf_read_open(&read, g.counters), 0);
    got_free(&g);
    ck_assert(bpf_read_net(&read, netrig_leaf, &hint, &c));
    struct traffic t = interface_counts(port);
    ck_assert(within_a_percent(c.tx_bytes, t.rx_bytes));
    ck_assert(within_a_percent(c.rx_bytes, t.tx_bytes));
    bpf_read_close(&read);
    rig_stop(&r);
}
END_TEST

/* Signals the network worker. Among the warden's children it is the one that is not another
 * program, as the launch pad is. */
static void
signal_worker(struct rig *r, int sig)
{
    char *text = NULL;
    const char *path = mem_printf(r->ctx, "/proc/%d/task/%d/children", (int)r->warden, (int)r->warden);
    ck_assert_int_eq(file_read(r->ctx, AT_FDCWD, path, 4096, &text, NULL), 0);
    for (char *save = NULL, *w = strtok_r(text, " \n", &save); w;
         w = strtok_r(NULL, " \n", &save)) {
        uint64_t pid;
        char exe[128] = "";
        ck_assert_int_eq(num_parse_u64(w, &pid), 0);
        if (readlink(mem_printf(r->ctx, "/proc/%s/exe", w), exe, sizeof(exe) - 1) > 0 &&
            str_suffix(exe, "/paddock-warden"))
            ck_assert_int_eq(kill((pid_t)pid, sig), 0);
    }
}

START_TEST(a_worker_that_is_killed)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    netrig_start(&r);
    if (!need_bridge(&r))
        return;
    ck_assert_ptr_null(netrig_ports(&r, rig_id, "bridge", (int[]){20080, 80, 0}, NULL));
    (void)netrig_launch(&r, rig_id, "web", SERVE);
    signal_worker(&r, SIGKILL);
    int status;
    ck_assert_int_eq(waitpid(r.warden, &status, 0), r.warden); /* who started it starts it again */
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    rig_spawn(&r);
    netrig_reconnect(&r);
    ck_assert_str_eq(ask(&r, "127.0.0.1", 20080), "172.26.64.1\n");
    ck_assert_ptr_null(netrig_make(&r, netrig_other, "bridge"));
    rig_stop(&r);
    ck_assert_uint_eq(interfaces(), 0);
}
END_TEST

enum { BURST = 300 }; /* more than the worker's socket holds */

static void
burst(struct rig *r, const char (*ids)[UUID_TEXT], bool make)
{
    struct got *all = mem_array(r->ctx, struct got, BURST), info = {0};
    struct net_request q = {.mode = "bridge"};
    signal_worker(r, SIGSTOP);
    for (int i = 0; i < BURST && make; i++)
        warden_net_make(r->client, ids[i], &q, rig_got, &all[i]);
    for (int i = 0; i < BURST && !make; i++)
        warden_net_remove(r->client, ids[i], rig_got, &all[i]);
    warden_info(r->client, rig_got, &info); /* answered when the warden has read them all */
    while (!info.done) {
        struct pollfd p = {.fd = warden_client_fd(r->client),
                           .events = warden_client_events(r->client)};
        (void)poll(&p, 1, 1000);
        ck_assert_int_eq(warden_client_ready(r->client), 0);
    }
    got_free(&info);
    signal_worker(r, SIGCONT);
    ck_assert_int_eq(warden_client_drain(r->client, 60000), 0);
    for (int i = 0; i < BURST; i++) {
        ck_assert_msg(all[i].err.code == 0, "%d: %s", i, all[i].err.text);
        got_free(&all[i]);
    }
}

/* However many, and while the worker does nothing: they wait for their turn. */
START_TEST(a_burst_of_networks_is_made_and_removed)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    netrig_start(&r);
    if (!need_bridge(&r))
        return;
    static char ids[BURST][UUID_TEXT];
    for (unsigned i = 0; i < BURST; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "%08x-0000-4000-8000-000000000000", i);
        rig_alloc(&r, ids[i], "web", "exec");
    }
    burst(&r, ids, true);
    ck_assert_int_eq(elements("members"), BURST);
    burst(&r, ids, false);
    ck_assert_int_eq(elements("members"), 0);
    rig_stop(&r);
}
END_TEST

TEST_SUITE_TIMEOUT("netbridge", 60, a_bridge_with_ports,
                   a_task_does_not_fill_the_table_of_connections, published_ports_are_for_all,
                   what_is_taken_is_refused, addresses_of_others_stay_theirs,
                   nobody_is_somebody_else, policies_hold_on_the_bridge, counters_agree,
                   a_worker_that_is_killed, a_burst_of_networks_is_made_and_removed)
