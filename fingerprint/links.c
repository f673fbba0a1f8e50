/* SPDX-License-Identifier: Apache-2.0 */
#include "fingerprint/links.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "fingerprint/limits.h"

enum { TRIES = 5, MAC_BYTES = 8 };

struct reading {
    const void *ctx;
    struct links *l;
};

/* --- one message of an answer --- */

static void
put_mac(char ret[static 32], const struct nlattr *a)
{
    const unsigned char *p = a ? nla_data(a) : NULL;
    int n = a ? nla_len(a) : 0;
    ret[0] = 0;
    for (int i = 0; i < n && n <= MAC_BYTES; i++)
        (void)snprintf(ret + 3 * i, 4, i + 1 < n ? "%02x:" : "%02x", p[i]);
}

static bool
put_ip(char ret[static INET6_ADDRSTRLEN], int family, const struct nlattr *a)
{
    int n = family == AF_INET ? 4 : family == AF_INET6 ? 16 : -1;
    ret[0] = 0;
    return a && nla_len(a) == n && inet_ntop(family, nla_data(a), ret, INET6_ADDRSTRLEN) != NULL;
}

static void
take_link(struct reading *r, struct nlmsghdr *h)
{
    struct nlattr *at[IFLA_MAX + 1];
    const struct ifinfomsg *i = nlmsg_data(h);
    struct links *l = r->l;
    if (nlmsg_parse(h, sizeof(*i), at, IFLA_MAX, NULL) < 0 || !at[IFLA_IFNAME] ||
        l->n_links == FINGERPRINT_LINKS_MAX)
        return;
    mem_resize(r->ctx, l->links, struct link, l->n_links + 1);
    struct link *to = &l->links[l->n_links++];
    *to = (struct link){.index = i->ifi_index,
                        .up = (i->ifi_flags & IFF_UP) != 0,
                        .loopback = (i->ifi_flags & IFF_LOOPBACK) != 0};
    (void)nla_strlcpy(to->name, at[IFLA_IFNAME], sizeof(to->name));
    if (!to->loopback) /* which has zeros for one */
        put_mac(to->mac, at[IFLA_ADDRESS]);
}

static void
take_address(struct reading *r, struct nlmsghdr *h)
{
    struct nlattr *at[IFA_MAX + 1];
    const struct ifaddrmsg *i = nlmsg_data(h);
    struct links *l = r->l;
    struct link_address a = {0};
    if (nlmsg_parse(h, sizeof(*i), at, IFA_MAX, NULL) < 0 ||
        l->n_addresses == FINGERPRINT_LINKS_MAX)
        return;
    /* a link between two has the other end's address in IFA_ADDRESS */
    if (!put_ip(a.text, i->ifa_family, at[IFA_LOCAL] ? at[IFA_LOCAL] : at[IFA_ADDRESS]))
        return;
    a.index = (int)i->ifa_index;
    a.family = i->ifa_family;
    a.prefix = i->ifa_prefixlen;
    a.link_local = a.family == AF_INET6 && i->ifa_scope == RT_SCOPE_LINK;
    mem_resize(r->ctx, l->addresses, struct link_address, l->n_addresses + 1);
    l->addresses[l->n_addresses++] = a;
}

static void
take_route(struct reading *r, struct nlmsghdr *h)
{
    struct nlattr *at[RTA_MAX + 1];
    const struct rtmsg *i = nlmsg_data(h);
    struct link_route route = {0}, *best = &r->l->route;
    if (nlmsg_parse(h, sizeof(*i), at, RTA_MAX, NULL) < 0 || i->rtm_family != AF_INET ||
        i->rtm_dst_len != 0 || i->rtm_type != RTN_UNICAST || i->rtm_table != RT_TABLE_MAIN)
        return;
    const struct nlattr *multi = at[RTA_MULTIPATH];
    route.metric = at[RTA_PRIORITY] ? nla_get_u32(at[RTA_PRIORITY]) : 0;
    if (at[RTA_OIF])
        route.index = (int)nla_get_u32(at[RTA_OIF]);
    else if (multi && nla_len(multi) >= (int)sizeof(struct rtnexthop)) /* the first of several */
        route.index = ((const struct rtnexthop *)nla_data(multi))->rtnh_ifindex;
    (void)put_ip(route.gateway, AF_INET, at[RTA_GATEWAY]);
    if (route.index > 0 && (best->index == 0 || route.metric < best->metric))
        *best = route;
}

static const char *
state_name(unsigned state)
{
    static const struct {
        unsigned bit;
        const char *name;
    } rows[] = {{NUD_PERMANENT, "permanent"},  {NUD_REACHABLE, "reachable"}, {NUD_STALE, "stale"},
                {NUD_DELAY, "delay"},          {NUD_PROBE, "probe"},         {NUD_FAILED, "failed"},
                {NUD_INCOMPLETE, "incomplete"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (state & rows[i].bit)
            return rows[i].name;
    return "none";
}

static void
take_neighbour(struct reading *r, struct nlmsghdr *h)
{
    struct nlattr *at[NDA_MAX + 1];
    const struct ndmsg *i = nlmsg_data(h);
    struct links *l = r->l;
    struct link_neighbour n = {0};
    if (nlmsg_parse(h, sizeof(*i), at, NDA_MAX, NULL) < 0 || (i->ndm_state & NUD_NOARP) ||
        l->n_neighbours == FINGERPRINT_LINKS_MAX || !put_ip(n.text, i->ndm_family, at[NDA_DST]))
        return;
    n.index = i->ndm_ifindex;
    n.state = state_name(i->ndm_state);
    put_mac(n.mac, at[NDA_LLADDR]);
    mem_resize(r->ctx, l->neighbours, struct link_neighbour, l->n_neighbours + 1);
    l->neighbours[l->n_neighbours++] = n;
}

static int
on_message(struct nl_msg *msg, void *arg)
{
    struct nlmsghdr *h = nlmsg_hdr(msg);
    switch (h->nlmsg_type) {
    case RTM_NEWLINK:
        take_link(arg, h);
        break;
    case RTM_NEWADDR:
        take_address(arg, h);
        break;
    case RTM_NEWROUTE:
        take_route(arg, h);
        break;
    case RTM_NEWNEIGH:
        take_neighbour(arg, h);
        break;
    default:
        break;
    }
    return NL_OK;
}

/* --- asking --- */

/* Asks for everything; from the beginning again when something changed meanwhile. */
static int
links_dump(struct nl_sock *s, struct reading *r, unsigned what)
{
    struct links *l = r->l;
    const struct {
        unsigned what;
        int type;
        size_t *n;
    } rows[] = {{LINKS_LINKS, RTM_GETLINK, &l->n_links},
                {LINKS_ADDRESSES, RTM_GETADDR, &l->n_addresses},
                {LINKS_ROUTE, RTM_GETROUTE, NULL},
                {LINKS_NEIGHBOURS, RTM_GETNEIGH, &l->n_neighbours}};
    /* the largest of the headers that these requests have: zeros mean all of each */
    union {
        struct ifinfomsg link;
        struct ifaddrmsg address;
        struct rtmsg route;
        struct ndmsg neighbour;
    } head = {0};
    int code = 0;
    for (size_t i = 0; i < ARRAY_LEN(rows) && code >= 0; i++) {
        if (!(what & rows[i].what))
            continue;
        code = -NLE_DUMP_INTR;
        for (int tries = 0; tries < TRIES && code == -NLE_DUMP_INTR; tries++) {
            if (rows[i].n)
                *rows[i].n = 0;
            else
                l->route = (struct link_route){0};
            size_t size = rows[i].what == LINKS_ADDRESSES ? sizeof(head.address)
                          : rows[i].what == LINKS_ROUTE   ? sizeof(head.route)
                          : rows[i].what == LINKS_LINKS   ? sizeof(head.link)
                                                          : sizeof(head.neighbour);
            code = nl_send_simple(s, rows[i].type, NLM_F_DUMP, &head, size);
            if (code >= 0)
                code = nl_recvmsgs_default(s);
        }
    }
    return code;
}

int
links_read(const void *ctx, unsigned what, struct links *ret, struct err *e)
{
    struct links l = {0};
    struct reading r = {ctx, &l};
    struct nl_sock *s = nl_socket_alloc();
    int code = s ? nl_connect(s, NETLINK_ROUTE) : -NLE_NOMEM;
    if (code >= 0)
        code = nl_socket_modify_cb(s, NL_CB_VALID, NL_CB_CUSTOM, on_message, &r);
    if (code >= 0)
        code = links_dump(s, &r, what);
    nl_socket_free(s);
    if (code < 0)
        return err_set(e, -ERR_UNAVAILABLE, "ask the kernel for its network: %s",
                       nl_geterror(code));
    *ret = l;
    return 0;
}

const struct link *
links_by_name(const struct links *l, const char *name)
{
    for (size_t i = 0; i < l->n_links; i++)
        if (strcmp(l->links[i].name, name) == 0)
            return &l->links[i];
    return NULL;
}

const struct link *
links_by_index(const struct links *l, int index)
{
    for (size_t i = 0; i < l->n_links; i++)
        if (l->links[i].index == index)
            return &l->links[i];
    return NULL;
}
