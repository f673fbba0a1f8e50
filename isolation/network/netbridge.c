/* SPDX-License-Identifier: Apache-2.0
 *
 * The bridge and what ties an allocation to it, by netlink: see netbridge.h. From the inside out:
 * links; addresses, routes and neighbours; the bridge itself with its mark and its sysctls; one
 * allocation, attached and detached; and ports of the bridge that no record knows, which an earlier
 * worker left.
 */
#include "isolation/network/netbridge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/network/netlink.h"
#include "isolation/network/netns.h"

#ifndef IFLA_BRPORT_LOCKED
#define IFLA_BRPORT_LOCKED 39 /* Linux 5.18; older kernels pass over it */
#endif
#define PORT_PREFIX "pd"
enum { ALIAS_MAX = 255 };

void
netbridge_port(char out[NET_NAME_MAX], uint32_t addr)
{
    int n = snprintf(out, NET_NAME_MAX, PORT_PREFIX "%08x", addr);
    ASSERT(n > 0 && n < NET_NAME_MAX);
}

void
netbridge_mac(uint8_t out[6], uint32_t addr)
{
    const uint8_t mac[6] = {
        0x02,         0x70, (uint8_t)(addr >> 24), (uint8_t)(addr >> 16), (uint8_t)(addr >> 8),
        (uint8_t)addr};
    memcpy(out, mac, sizeof(mac));
}

static void
put_flag(struct nlmsghdr *h, uint16_t type, bool value)
{
    mnl_attr_put_u8(h, type, value);
}

/* --- links --- */

struct link {
    int index;
    int master;
    char name[NET_NAME_MAX];
    char alias[ALIAS_MAX + 1];
    uint8_t mac[6];
};

static int
take_attr(const struct nlattr *a, void *arg)
{
    struct link *l = arg;
    uint16_t type = mnl_attr_get_type(a);
    if (type == IFLA_IFNAME && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0)
        (void)str_copy(l->name, sizeof(l->name), mnl_attr_get_str(a));
    else if (type == IFLA_IFALIAS && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0)
        (void)str_copy(l->alias, sizeof(l->alias), mnl_attr_get_str(a));
    else if (type == IFLA_MASTER && mnl_attr_validate(a, MNL_TYPE_U32) == 0)
        l->master = (int)mnl_attr_get_u32(a);
    else if (type == IFLA_ADDRESS && mnl_attr_get_payload_len(a) == sizeof(l->mac))
        memcpy(l->mac, mnl_attr_get_payload(a), sizeof(l->mac));
    return MNL_CB_OK;
}

static bool
parse_link(const struct nlmsghdr *m, struct link *l)
{
    const struct ifinfomsg *i = mnl_nlmsg_get_payload(m);
    *l = (struct link){0};
    if (m->nlmsg_type != RTM_NEWLINK || mnl_nlmsg_get_payload_len(m) < sizeof(*i))
        return false;
    l->index = i->ifi_index;
    return mnl_attr_parse(m, sizeof(*i), take_attr, l) >= 0;
}

static int
take_link(const struct nlmsghdr *m, void *arg)
{
    return parse_link(m, arg) ? 0 : -EPROTO;
}

static int
find_link(struct netlink *n, const char *name, struct link *ret)
{
    char buf[NETLINK_BUFFER];
    void *extra;
    struct nlmsghdr *h = netlink_begin(buf, RTM_GETLINK, 0, sizeof(struct ifinfomsg), &extra);
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    return netlink_each(n, h, take_link, ret);
}

static int
del_link(struct netlink *n, const char *name)
{
    char buf[NETLINK_BUFFER];
    void *extra;
    struct nlmsghdr *h = netlink_begin(buf, RTM_DELLINK, 0, sizeof(struct ifinfomsg), &extra);
    mnl_attr_put_strz(h, IFLA_IFNAME, name);
    int r = netlink_ack(n, h);
    return r == -ENODEV ? 0 : r;
}

/* --- addresses, routes, neighbours --- */

static int
add_address(struct netlink *n, int index, uint32_t addr, uint32_t bits)
{
    char buf[NETLINK_BUFFER];
    void *extra;
    struct nlmsghdr *h = netlink_begin(buf, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE,
                                       sizeof(struct ifaddrmsg), &extra);
    struct ifaddrmsg *a = extra;
    *a = (struct ifaddrmsg){
        .ifa_family = AF_INET, .ifa_prefixlen = (uint8_t)bits, .ifa_index = (unsigned)index};
    mnl_attr_put_u32(h, IFA_LOCAL, htonl(addr));
    mnl_attr_put_u32(h, IFA_ADDRESS, htonl(addr));
    return netlink_ack(n, h);
}

/* `via` 0: `dst` itself is on the link. `dst` 0: everything. */
static int
add_route(struct netlink *n, int index, uint32_t dst, uint32_t via)
{
    char buf[NETLINK_BUFFER];
    void *extra;
    struct nlmsghdr *h = netlink_begin(buf, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE,
                                       sizeof(struct rtmsg), &extra);
    struct rtmsg *t = extra;
    *t = (struct rtmsg){.rtm_family = AF_INET,
                        .rtm_dst_len = dst != 0 ? 32 : 0,
                        .rtm_table = RT_TABLE_MAIN,
                        .rtm_protocol = RTPROT_STATIC,
                        .rtm_scope = via != 0 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
                        .rtm_type = RTN_UNICAST};
    mnl_attr_put_u32(h, RTA_OIF, (uint32_t)index);
    if (dst != 0)
        mnl_attr_put_u32(h, RTA_DST, htonl(dst));
    if (via != 0)
        mnl_attr_put_u32(h, RTA_GATEWAY, htonl(via));
    return netlink_ack(n, h);
}

/* Makes a lasting entry for the neighbour `addr`. `family` AF_BRIDGE: behind which port of the
 * bridge its hardware address is. */
static int
netbridge_neighbour(struct netlink *n, uint16_t type, uint8_t family, int index, uint32_t addr)
{
    char buf[NETLINK_BUFFER];
    void *extra;
    uint8_t mac[6];
    uint16_t flags = type == RTM_NEWNEIGH ? NLM_F_CREATE | NLM_F_REPLACE : 0;
    struct nlmsghdr *h = netlink_begin(buf, type, flags, sizeof(struct ndmsg), &extra);
    struct ndmsg *d = extra;
    *d = (struct ndmsg){.ndm_family = family, .ndm_ifindex = index, .ndm_state = NUD_PERMANENT};
    netbridge_mac(mac, addr);
    if (family == AF_BRIDGE) {
        d->ndm_state = NUD_NOARP; /* static: of a port, not of the bridge itself */
        d->ndm_flags = NTF_MASTER;
    } else {
        mnl_attr_put_u32(h, NDA_DST, htonl(addr));
    }
    mnl_attr_put(h, NDA_LLADDR, sizeof(mac), mac);
    return netlink_ack(n, h);
}

/* --- the bridge --- */

static int
make_bridge(struct netlink *n, const struct net_conf *c)
{
    char buf[NETLINK_BUFFER];
    void *extra;
    uint8_t mac[6];
    struct nlmsghdr *h = netlink_begin(buf, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL,
                                       sizeof(struct ifinfomsg), &extra);
    struct ifinfomsg *i = extra;
    i->ifi_flags = i->ifi_change = IFF_UP;
    netbridge_mac(mac, net_gateway(c));
    mnl_attr_put_strz(h, IFLA_IFNAME, c->bridge);
    mnl_attr_put(h, IFLA_ADDRESS, sizeof(mac), mac);
    struct nlattr *info = mnl_attr_nest_start(h, IFLA_LINKINFO);
    mnl_attr_put_strz(h, IFLA_INFO_KIND, "bridge");
    mnl_attr_nest_end(h, info);
    return netlink_ack(n, h);
}

/* Not taken when a link is made. */
static int
mark_bridge(struct netlink *n, const struct net_conf *c, int index)
{
    char buf[NETLINK_BUFFER];
    void *extra;
    struct nlmsghdr *h = netlink_begin(buf, RTM_SETLINK, 0, sizeof(struct ifinfomsg), &extra);
    struct ifinfomsg *i = extra;
    i->ifi_index = index;
    mnl_attr_put_strz(h, IFLA_IFALIAS, c->owner);
    return netlink_ack(n, h);
}

/* By its mark; or made by a warden that was killed before it could set its mark. */
static bool
is_ours(const struct net_conf *c, const struct link *l)
{
    uint8_t mac[6];
    netbridge_mac(mac, net_gateway(c));
    return str_eq(l->alias, c->owner) ||
           (l->alias[0] == '\0' && memcmp(mac, l->mac, sizeof(mac)) == 0);
}

/* Sets those settings of the host's network that mode bridge needs. */
static int
set_sysctls(const struct net_conf *c, const char **what)
{
    static const char *const rows[][2] = {
        {"ipv6/conf/%s/disable_ipv6", "1"},   /* first: no address of the link may be there */
        {"ipv4/conf/%s/route_localnet", "1"}, /* answers to what came from 127.0.0.1 */
        {"ipv4/conf/%s/send_redirects", "0"},
        {"ipv4/conf/%s/arp_ignore", "1"},
        {"ipv4/ip_forward", "1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char name[96], *at;
        *what = rows[i][0];
        at = strstr(rows[i][0], "%s");
        if (at != NULL)
            (void)snprintf(name, sizeof(name), "%.*s%s%s", (int)(at - rows[i][0]), rows[i][0],
                           c->bridge, at + 2);
        int r = netns_sysctl(at != NULL ? name : rows[i][0], rows[i][1]);
        if (r < 0 && !(i == 0 && r == -ENOENT)) /* a machine without IPv6 */
            return r;
    }
    return 0;
}

static int
open_bridge(struct netlink *n, const struct net_conf *c, int *ret_index, const char **what)
{
    struct link l = {0};
    *what = "look for the bridge";
    int r = find_link(n, c->bridge, &l);
    if (r == 0 && !is_ours(c, &l)) {
        *what = "an interface of the bridge's name is not ours (bridge_network_name)";
        return -EEXIST;
    }
    *ret_index = l.index;
    if (r == 0 && l.alias[0] != '\0')
        return 0;
    if (r == -ENODEV) {
        *what = "make the bridge";
        r = make_bridge(n, c);
        if (r == 0)
            r = find_link(n, c->bridge, &l);
        *ret_index = l.index;
    }
    if (r == 0)
        r = set_sysctls(c, what);
    if (r == 0) {
        *what = "give the bridge its address (bridge_network_subnet)";
        r = add_address(n, l.index, net_gateway(c), c->bits);
    }
    if (r == 0) { /* last: it is as it should be */
        *what = "mark the bridge";
        r = mark_bridge(n, c, l.index);
    }
    if (r < 0 && l.index != 0)
        (void)del_link(n, c->bridge);
    return r;
}

int
netbridge_open(const struct net_conf *c, int *ret_index, const char **what)
{
    struct netlink n;
    *what = "open netlink";
    int r = netlink_open(&n, NETLINK_ROUTE);
    if (r == 0)
        r = open_bridge(&n, c, ret_index, what);
    netlink_close(&n);
    return r;
}

bool
netbridge_is_ours(const struct net_conf *c)
{
    struct netlink n;
    struct link l;
    int r = netlink_open(&n, NETLINK_ROUTE);
    if (r == 0)
        r = find_link(&n, c->bridge, &l);
    netlink_close(&n);
    return r == 0 && is_ours(c, &l);
}

int
netbridge_remove(const struct net_conf *c, const char **what)
{
    struct netlink n;
    struct link l;
    *what = "remove the bridge";
    int r = netlink_open(&n, NETLINK_ROUTE);
    if (r == 0)
        r = find_link(&n, c->bridge, &l);
    if (r == 0 && is_ours(c, &l))
        r = del_link(&n, c->bridge);
    netlink_close(&n);
    return r == -ENODEV ? 0 : r;
}

/* --- one allocation --- */

/* Both ends at once: ours on the bridge and up, the other in its namespace. */
static int
make_pair(struct netlink *n, int bridge, int ns, uint32_t addr, const char *port)
{
    char buf[NETLINK_BUFFER];
    void *extra;
    uint8_t mac[6];
    struct nlmsghdr *h = netlink_begin(buf, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL,
                                       sizeof(struct ifinfomsg), &extra);
    struct ifinfomsg *i = extra;
    i->ifi_flags = i->ifi_change = IFF_UP;
    mnl_attr_put_strz(h, IFLA_IFNAME, port);
    mnl_attr_put_u32(h, IFLA_MASTER, (uint32_t)bridge);
    struct nlattr *info = mnl_attr_nest_start(h, IFLA_LINKINFO);
    mnl_attr_put_strz(h, IFLA_INFO_KIND, "veth");
    struct nlattr *data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
    struct nlattr *peer = mnl_attr_nest_start(h, VETH_INFO_PEER);
    (void)mnl_nlmsg_put_extra_header(h, sizeof(struct ifinfomsg));
    netbridge_mac(mac, addr);
    mnl_attr_put_strz(h, IFLA_IFNAME, NET_IFACE);
    mnl_attr_put(h, IFLA_ADDRESS, sizeof(mac), mac);
    mnl_attr_put_u32(h, IFLA_NET_NS_FD, (uint32_t)ns);
    mnl_attr_nest_end(h, peer);
    mnl_attr_nest_end(h, data);
    mnl_attr_nest_end(h, info);
    return netlink_ack(n, h);
}

/* br_netfilter passes what is bridged through the rules for what is routed, ours among them; and it
 * bridges, from port to port, what came by a mapped port of another allocation. So there the rules
 * separate the ports, and elsewhere the bridge itself does. */
static bool
rules_see_frames(void)
{
    auto_mem void *ctx = mem_ctx("sysctl");
    char *text = NULL;
    return file_read(ctx, AT_FDCWD, "/proc/sys/net/bridge/bridge-nf-call-iptables", 16, &text,
                     NULL) == 0 &&
           text[0] == '1';
}

static int
set_port(struct netlink *n, int index)
{
    char buf[NETLINK_BUFFER];
    void *extra;
    struct nlmsghdr *h = netlink_begin(buf, RTM_SETLINK, 0, sizeof(struct ifinfomsg), &extra);
    struct ifinfomsg *i = extra;
    i->ifi_family = AF_BRIDGE;
    i->ifi_index = index;
    struct nlattr *p = mnl_attr_nest_start(h, IFLA_PROTINFO);
    bool rules = rules_see_frames();
    put_flag(h, IFLA_BRPORT_ISOLATED, !rules);
    put_flag(h, IFLA_BRPORT_MODE, rules); /* "hairpin": an allocation's own mapped port */
    put_flag(h, IFLA_BRPORT_LEARNING, 0);
    put_flag(h, IFLA_BRPORT_LOCKED, 1);
    put_flag(h, IFLA_BRPORT_UNICAST_FLOOD, 0);
    put_flag(h, IFLA_BRPORT_MCAST_FLOOD, 0);
    put_flag(h, IFLA_BRPORT_BCAST_FLOOD, 0);
    mnl_attr_nest_end(h, p);
    return netlink_ack(n, h);
}

/* In the allocation's namespace. */
static int
set_inside(const struct net_conf *c, uint32_t addr, const char **what)
{
    struct netlink n;
    struct link l = {0};
    char buf[NETLINK_BUFFER];
    void *extra;
    *what = "find the interface inside";
    int r = netlink_open(&n, NETLINK_ROUTE);
    if (r == 0)
        r = find_link(&n, NET_IFACE, &l);
    if (r == 0) {
        struct nlmsghdr *h = netlink_begin(buf, RTM_SETLINK, 0, sizeof(struct ifinfomsg), &extra);
        struct ifinfomsg *i = extra;
        i->ifi_index = l.index;
        i->ifi_flags = i->ifi_change = IFF_UP;
        *what = "bring the interface up";
        r = netlink_ack(&n, h);
    }
    *what = r == 0 ? "give the address" : *what;
    r = r == 0 ? add_address(&n, l.index, addr, 32) : r;
    *what = r == 0 ? "tell who the gateway is" : *what;
    r = r == 0 ? netbridge_neighbour(&n, RTM_NEWNEIGH, AF_INET, l.index, net_gateway(c)) : r;
    *what = r == 0 ? "set the route to the gateway" : *what;
    r = r == 0 ? add_route(&n, l.index, net_gateway(c), 0) : r;
    *what = r == 0 ? "set the default route" : *what;
    r = r == 0 ? add_route(&n, l.index, 0, net_gateway(c)) : r;
    netlink_close(&n);
    return r;
}

static int
netbridge_attach_peer(struct netlink *n, const struct net_conf *c, int home, int ns, uint32_t addr,
                      const char **what)
{
    int bridge = 0;
    char port[NET_NAME_MAX];
    struct link l = {0};
    int r = open_bridge(n, c, &bridge, what);
    if (r < 0)
        return r;
    netbridge_port(port, addr);
    *what = "make the veth pair";
    r = make_pair(n, bridge, ns, addr, port);
    if (r == -EEXIST) { /* of a warden that was killed */
        r = del_link(n, port);
        r = r == 0 ? make_pair(n, bridge, ns, addr, port) : r;
    }
    if (r == 0)
        r = find_link(n, port, &l);
    *what = r == 0 ? "isolate the port of the bridge" : *what;
    r = r == 0 ? set_port(n, l.index) : r;
    *what = r == 0 ? "tell the bridge who is behind the port" : *what;
    r = r == 0 ? netbridge_neighbour(n, RTM_NEWNEIGH, AF_BRIDGE, l.index, addr) : r;
    *what = r == 0 ? "tell the host who has the address" : *what;
    r = r == 0 ? netbridge_neighbour(n, RTM_NEWNEIGH, AF_INET, bridge, addr) : r;
    if (r == 0) {
        *what = "enter the namespace";
        r = netns_enter(ns);
        if (r == 0) {
            r = set_inside(c, addr, what);
            if (netns_enter(home) < 0)
                abort(); /* whatever follows would be done in the wrong place */
        }
    }
    return r;
}

int
netbridge_attach(const struct net_conf *c, int home, int ns, uint32_t addr, const char **what)
{
    struct netlink n;
    const char *ignored;
    *what = "open netlink";
    int r = netlink_open(&n, NETLINK_ROUTE);
    if (r == 0)
        r = netbridge_attach_peer(&n, c, home, ns, addr, what);
    netlink_close(&n);
    if (r < 0)
        (void)netbridge_detach(c, addr, &ignored);
    return r;
}

int
netbridge_detach(const struct net_conf *c, uint32_t addr, const char **what)
{
    struct netlink n;
    struct link l = {0};
    char port[NET_NAME_MAX];
    netbridge_port(port, addr);
    *what = "remove the veth pair";
    int r = netlink_open(&n, NETLINK_ROUTE);
    r = r == 0 ? del_link(&n, port) : r;
    if (r == 0 && find_link(&n, c->bridge, &l) == 0)
        (void)netbridge_neighbour(&n, RTM_DELNEIGH, AF_INET, l.index, addr);
    netlink_close(&n);
    return r;
}

/* --- ports that nobody knows --- */

struct ports {
    void *ctx;
    int bridge;
    struct port {
        uint32_t addr;
        int index;
    } * v;
    size_t n;
};

static int
take_port(const struct nlmsghdr *m, void *arg)
{
    struct ports *p = arg;
    struct link l;
    uint32_t addr;
    char back[NET_NAME_MAX];
    if (!parse_link(m, &l) || l.master != p->bridge ||
        sscanf(l.name, PORT_PREFIX "%8x", &addr) != 1 || p->n >= WARDEN_NETS_MAX * 2)
        return 0;
    netbridge_port(back, addr);
    if (!str_eq(back, l.name))
        return 0;
    if ((p->n & (p->n - 1)) == 0)
        mem_resize(p->ctx, p->v, struct port, p->n > 0 ? p->n * 2 : 1);
    p->v[p->n++] = (struct port){addr, l.index};
    return 0;
}

int
netbridge_prune(const struct net_conf *c, bool (*keep)(uint32_t addr, void *arg), void *arg,
                const char **what)
{
    auto_mem void *ctx = mem_ctx("ports");
    struct netlink n;
    struct link l = {0};
    struct ports p = {.ctx = ctx};
    char buf[NETLINK_BUFFER];
    void *extra;
    *what = "list the ports of the bridge";
    int r = netlink_open(&n, NETLINK_ROUTE);
    if (r == 0)
        r = find_link(&n, c->bridge, &l);
    if (r == 0 && is_ours(c, &l)) {
        p.bridge = l.index;
        struct nlmsghdr *h =
            netlink_begin(buf, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg), &extra);
        r = netlink_each(&n, h, take_port, &p);
    }
    for (size_t i = 0; i < p.n && r == 0; i++) {
        bool kept = keep(p.v[i].addr, arg);
        r = kept ? set_port(&n, p.v[i].index) : netbridge_detach(c, p.v[i].addr, what);
    }
    netlink_close(&n);
    return r == -ENODEV ? 0 : r;
}
