/* SPDX-License-Identifier: Apache-2.0
 *
 * The attributes are those of linux/netfilter/nf_tables.h; nft --debug=netlink shows the
 * expressions that rules are made of.
 */
#include "isolation/network/netmap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/network/netbridge.h"
#include "isolation/network/netlink.h"

/* Registers of four bytes. A key of three goes into the first ones, what it leads to into TO. */
enum { REG = NFT_REG32_00, TO = NFT_REG32_04 };
enum { IP_SADDR = 12, IP_DADDR = 16, ETH_SADDR = 6, PORT_DST = 2, LOOPBACK = 127 };
/* Types as nft(8) knows them, for those who look: it shows a concatenation by six bits each. */
enum { TYPE_IP = 7, TYPE_MAC = 9, TYPE_PROTO = 12, TYPE_PORT = 13, TYPE_BITS = 6 };
enum { CT_REPLY_STATES = 2 | 4, /* established, related */ CT_NEW_STATE = 8 };
enum { BATCH_SPARE = 65536, TABLE_PARTS = 16 };

struct batch {
    void *ctx;
    const struct net_conf *conf;
    char table[32];
    char *buf;
    size_t len, size;
    uint32_t first, seq;
};

/* A message: begun by netmap_begin(), its attributes put by the caller, ended by netmap_end(). */
struct msg {
    struct nlmsghdr *h;
    char buf[NETLINK_BUFFER];
};

static void
netmap_begin(struct batch *b, struct msg *m, uint16_t type, uint16_t flags)
{
    void *extra;
    m->h = netlink_begin(m->buf, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags,
                         sizeof(struct nfgenmsg), &extra);
    struct nfgenmsg *g = extra;
    g->nfgen_family = NFPROTO_IPV4;
    m->h->nlmsg_seq = ++b->seq;
}

static void
netmap_end(struct batch *b, const struct msg *m)
{
    ASSERT(m->h->nlmsg_len <= sizeof(m->buf));
    if (b->len + m->h->nlmsg_len > b->size) {
        b->size = (b->len + m->h->nlmsg_len) * 2 + BATCH_SPARE;
        mem_resize(b->ctx, b->buf, char, b->size);
    }
    memcpy(b->buf + b->len, m->buf, m->h->nlmsg_len);
    b->len += m->h->nlmsg_len;
}

/* The marks around the messages of a transaction. */
static void
netmap_mark(struct batch *b, uint16_t type)
{
    struct msg m;
    void *extra;
    m.h = netlink_begin(m.buf, type, 0, sizeof(struct nfgenmsg), &extra);
    struct nfgenmsg *g = extra;
    g->res_id = htons(NFNL_SUBSYS_NFTABLES);
    m.h->nlmsg_seq = ++b->seq;
    netmap_end(b, &m);
}

static void
batch_start(struct batch *b, void *ctx, const struct net_conf *c)
{
    *b = (struct batch){.ctx = ctx, .conf = c};
    (void)snprintf(b->table, sizeof(b->table), "paddock_%s", c->bridge);
    netmap_mark(b, NFNL_MSG_BATCH_BEGIN);
    b->first = b->seq;
}

/* The last message asks for the acknowledgement of all. */
static int
batch_send(struct batch *b, struct msg *last)
{
    struct netlink n;
    last->h->nlmsg_flags |= NLM_F_ACK;
    uint32_t seq = last->h->nlmsg_seq;
    netmap_end(b, last);
    netmap_mark(b, NFNL_MSG_BATCH_END);
    int r = netlink_open(&n, NETLINK_NETFILTER);
    if (r == 0)
        r = netlink_batch(&n, b->buf, b->len, b->first, seq);
    netlink_close(&n);
    return r;
}

static void
netmap_be32(struct msg *m, uint16_t type, uint32_t v)
{
    mnl_attr_put_u32(m->h, type, htonl(v));
}

static void
netmap_value(struct msg *m, uint16_t type, const void *p, size_t n)
{
    struct nlattr *a = mnl_attr_nest_start(m->h, type);
    mnl_attr_put(m->h, NFTA_DATA_VALUE, n, p);
    mnl_attr_nest_end(m->h, a);
}

/* --- expressions --- */

struct expr {
    struct nlattr *elem, *data;
};

static struct expr
open_expr(struct msg *m, const char *name)
{
    struct expr e = {.elem = mnl_attr_nest_start(m->h, NFTA_LIST_ELEM)};
    mnl_attr_put_strz(m->h, NFTA_EXPR_NAME, name);
    e.data = mnl_attr_nest_start(m->h, NFTA_EXPR_DATA);
    return e;
}

static void
close_expr(struct msg *m, struct expr e)
{
    mnl_attr_nest_end(m->h, e.data);
    mnl_attr_nest_end(m->h, e.elem);
}

static void
load_meta(struct msg *m, uint32_t key, uint32_t reg)
{
    struct expr e = open_expr(m, "meta");
    netmap_be32(m, NFTA_META_KEY, key);
    netmap_be32(m, NFTA_META_DREG, reg);
    close_expr(m, e);
}

static void
load_packet(struct msg *m, uint32_t base, uint32_t at, uint32_t n, uint32_t reg)
{
    struct expr e = open_expr(m, "payload");
    netmap_be32(m, NFTA_PAYLOAD_DREG, reg);
    netmap_be32(m, NFTA_PAYLOAD_BASE, base);
    netmap_be32(m, NFTA_PAYLOAD_OFFSET, at);
    netmap_be32(m, NFTA_PAYLOAD_LEN, n);
    close_expr(m, e);
}

static void
netmap_compare(struct msg *m, uint32_t op, const void *p, size_t n)
{
    struct expr e = open_expr(m, "cmp");
    netmap_be32(m, NFTA_CMP_SREG, REG);
    netmap_be32(m, NFTA_CMP_OP, op);
    netmap_value(m, NFTA_CMP_DATA, p, n);
    close_expr(m, e);
}

/* `mask` in network order. */
static void
mask_reg(struct msg *m, uint32_t mask)
{
    const uint32_t zero = 0;
    struct expr e = open_expr(m, "bitwise");
    netmap_be32(m, NFTA_BITWISE_SREG, REG);
    netmap_be32(m, NFTA_BITWISE_DREG, REG);
    netmap_be32(m, NFTA_BITWISE_LEN, sizeof(mask));
    netmap_value(m, NFTA_BITWISE_MASK, &mask, sizeof(mask));
    netmap_value(m, NFTA_BITWISE_XOR, &zero, sizeof(zero));
    close_expr(m, e);
}

/* In the set, or with `absent` not in it; of a map, what it leads to. */
static void
look_up(struct msg *m, const char *set, bool map, bool absent)
{
    struct expr e = open_expr(m, "lookup");
    mnl_attr_put_strz(m->h, NFTA_LOOKUP_SET, set);
    netmap_be32(m, NFTA_LOOKUP_SREG, REG);
    if (map)
        netmap_be32(m, NFTA_LOOKUP_DREG, TO);
    if (absent)
        netmap_be32(m, NFTA_LOOKUP_FLAGS, NFT_LOOKUP_F_INV);
    close_expr(m, e);
}

static void
netmap_verdict(struct msg *m, uint32_t code)
{
    struct expr e = open_expr(m, "immediate");
    netmap_be32(m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    struct nlattr *d = mnl_attr_nest_start(m->h, NFTA_IMMEDIATE_DATA);
    struct nlattr *v = mnl_attr_nest_start(m->h, NFTA_DATA_VERDICT);
    netmap_be32(m, NFTA_VERDICT_CODE, code);
    mnl_attr_nest_end(m->h, v);
    mnl_attr_nest_end(m->h, d);
    close_expr(m, e);
}

static void
netmap_masquerade(struct msg *m)
{
    close_expr(m, open_expr(m, "masq"));
}

/* --- conditions --- */

static void
if_bridge(struct msg *m, const struct net_conf *c, uint32_t key, uint32_t op)
{
    char name[NET_NAME_MAX] = "";
    (void)str_copy(name, sizeof(name), c->bridge);
    load_meta(m, key, REG);
    netmap_compare(m, op, name, sizeof(name));
}

static void
if_address(struct msg *m, uint32_t at, uint32_t subnet, uint32_t bits)
{
    const uint32_t want = htonl(subnet);
    load_packet(m, NFT_PAYLOAD_NETWORK_HEADER, at, 4, REG);
    mask_reg(m, htonl(~(UINT32_MAX >> bits)));
    netmap_compare(m, NFT_CMP_EQ, &want, sizeof(want));
}

/* A bit of `bits` of what connection tracking knows, in host order, is set. */
static void
if_tracked(struct msg *m, uint32_t key, uint32_t bits)
{
    const uint32_t zero = 0;
    struct expr e = open_expr(m, "ct");
    netmap_be32(m, NFTA_CT_KEY, key);
    netmap_be32(m, NFTA_CT_DREG, REG);
    close_expr(m, e);
    mask_reg(m, bits);
    netmap_compare(m, NFT_CMP_NEQ, &zero, sizeof(zero));
}

/* Whoever REG names in the meter has more than `most` connections. */
static void
if_more(struct msg *m, const char *name, uint32_t most)
{
    struct expr e = open_expr(m, "dynset");
    mnl_attr_put_strz(m->h, NFTA_DYNSET_SET_NAME, name);
    netmap_be32(m, NFTA_DYNSET_OP, NFT_DYNSET_OP_ADD);
    netmap_be32(m, NFTA_DYNSET_SREG_KEY, REG);
    struct nlattr *count = mnl_attr_nest_start(m->h, NFTA_DYNSET_EXPR);
    mnl_attr_put_strz(m->h, NFTA_EXPR_NAME, "connlimit");
    struct nlattr *data = mnl_attr_nest_start(m->h, NFTA_EXPR_DATA);
    netmap_be32(m, NFTA_CONNLIMIT_COUNT, most);
    netmap_be32(m, NFTA_CONNLIMIT_FLAGS, NFT_CONNLIMIT_F_INV);
    mnl_attr_nest_end(m->h, data);
    mnl_attr_nest_end(m->h, count);
    close_expr(m, e);
}

/* To an address of this host. */
static void
if_local(struct msg *m)
{
    const uint32_t want = RTN_LOCAL;
    struct expr e = open_expr(m, "fib");
    netmap_be32(m, NFTA_FIB_DREG, REG);
    netmap_be32(m, NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
    netmap_be32(m, NFTA_FIB_FLAGS, NFTA_FIB_F_DADDR);
    close_expr(m, e);
    netmap_compare(m, NFT_CMP_EQ, &want, sizeof(want));
}

/* --- the table --- */

static void
netmap_table(struct batch *b, uint16_t type)
{
    struct msg m;
    netmap_begin(b, &m, type, type == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0);
    mnl_attr_put_strz(m.h, NFTA_TABLE_NAME, b->table);
    netmap_end(b, &m);
}

static void
netmap_chain(struct batch *b, const char *name, const char *type, uint32_t hook, int priority)
{
    struct msg m;
    netmap_begin(b, &m, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    mnl_attr_put_strz(m.h, NFTA_CHAIN_TABLE, b->table);
    mnl_attr_put_strz(m.h, NFTA_CHAIN_NAME, name);
    struct nlattr *a = mnl_attr_nest_start(m.h, NFTA_CHAIN_HOOK);
    netmap_be32(&m, NFTA_HOOK_HOOKNUM, hook);
    netmap_be32(&m, NFTA_HOOK_PRIORITY, (uint32_t)priority);
    mnl_attr_nest_end(m.h, a);
    netmap_be32(&m, NFTA_CHAIN_POLICY, NF_ACCEPT);
    mnl_attr_put_strz(m.h, NFTA_CHAIN_TYPE, type);
    netmap_end(b, &m);
}

static void
netmap_set(struct batch *b, const char *name, uint32_t key_type, uint32_t key_bytes, bool map)
{
    struct msg m;
    netmap_begin(b, &m, NFT_MSG_NEWSET, NLM_F_CREATE);
    mnl_attr_put_strz(m.h, NFTA_SET_TABLE, b->table);
    mnl_attr_put_strz(m.h, NFTA_SET_NAME, name);
    netmap_be32(&m, NFTA_SET_FLAGS, map ? NFT_SET_MAP : 0);
    netmap_be32(&m, NFTA_SET_KEY_TYPE, key_type);
    netmap_be32(&m, NFTA_SET_KEY_LEN, key_bytes);
    if (map) {
        netmap_be32(&m, NFTA_SET_DATA_TYPE, TYPE_IP << TYPE_BITS | TYPE_PORT);
        netmap_be32(&m, NFTA_SET_DATA_LEN, 8);
    }
    netmap_be32(&m, NFTA_SET_ID, b->seq);
    netmap_end(b, &m);
}

/* A set that the rule which counts fills. */
static void
netmap_meter(struct batch *b, const char *name)
{
    struct msg m;
    netmap_begin(b, &m, NFT_MSG_NEWSET, NLM_F_CREATE);
    mnl_attr_put_strz(m.h, NFTA_SET_TABLE, b->table);
    mnl_attr_put_strz(m.h, NFTA_SET_NAME, name);
    netmap_be32(&m, NFTA_SET_FLAGS, NFT_SET_EVAL);
    netmap_be32(&m, NFTA_SET_KEY_TYPE, TYPE_IP);
    netmap_be32(&m, NFTA_SET_KEY_LEN, 4);
    netmap_be32(&m, NFTA_SET_ID, b->seq);
    netmap_end(b, &m);
}

static struct nlattr *
netmap_rule(struct batch *b, struct msg *m, const char *chain_name)
{
    netmap_begin(b, m, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    mnl_attr_put_strz(m->h, NFTA_RULE_TABLE, b->table);
    mnl_attr_put_strz(m->h, NFTA_RULE_CHAIN, chain_name);
    return mnl_attr_nest_start(m->h, NFTA_RULE_EXPRESSIONS);
}

static void
end_rule(struct batch *b, struct msg *m, struct nlattr *exprs)
{
    mnl_attr_nest_end(m->h, exprs);
    netmap_end(b, m);
}

/* The host's loopback is reached from there alone, whatever route_localnet allows; and an address
 * is used by who has it. */
static void
netmap_guard(struct batch *b)
{
    struct msg m;
    struct nlattr *x = netmap_rule(b, &m, "guard");
    if_bridge(&m, b->conf, NFT_META_IIFNAME, NFT_CMP_EQ);
    if_address(&m, IP_DADDR, (uint32_t)LOOPBACK << 24, 8);
    netmap_verdict(&m, NF_DROP);
    end_rule(b, &m, x);
    x = netmap_rule(b, &m, "guard");
    if_bridge(&m, b->conf, NFT_META_IIFNAME, NFT_CMP_EQ);
    load_packet(&m, NFT_PAYLOAD_NETWORK_HEADER, IP_SADDR, 4, REG);
    load_packet(&m, NFT_PAYLOAD_LL_HEADER, ETH_SADDR, 6, REG + 1);
    look_up(&m, "members", false, true);
    netmap_verdict(&m, NF_DROP);
    end_rule(b, &m, x);
}

/* All of the machine share the table of connections: full, it drops packets of the host's own. */
static uint32_t
most_connections(void)
{
    auto_mem void *ctx = mem_ctx("sysctl");
    char *text = NULL;
    int64_t table = 0;
    if (file_read(ctx, AT_FDCWD, "/proc/sys/net/netfilter/nf_conntrack_max", 32, &text, NULL) < 0)
        return NET_CONNS_MAX;
    text[strcspn(text, "\n")] = '\0';
    if (num_parse_i64(text, &table) < 0 || table <= 0 || table / TABLE_PARTS > NET_CONNS_MAX)
        return NET_CONNS_MAX;
    return (uint32_t)(table / TABLE_PARTS) + 1;
}

/* A new connection of an address that has enough is no entry: it is dropped before. */
static void
netmap_limit(struct batch *b)
{
    struct msg m;
    struct nlattr *x = netmap_rule(b, &m, "limit");
    if_bridge(&m, b->conf, NFT_META_IIFNAME, NFT_CMP_EQ);
    if_tracked(&m, NFT_CT_STATE, CT_NEW_STATE);
    load_packet(&m, NFT_PAYLOAD_NETWORK_HEADER, IP_SADDR, 4, REG);
    if_more(&m, "connections", most_connections());
    netmap_verdict(&m, NF_DROP);
    end_rule(b, &m, x);
}

/* Whatever address a port was asked for: what goes to other hosts is not ours to lead away. */
static void
netmap_translate(struct batch *b, const char *chain_name)
{
    struct msg m;
    struct nlattr *x = netmap_rule(b, &m, chain_name);
    if_local(&m);
    load_packet(&m, NFT_PAYLOAD_NETWORK_HEADER, IP_DADDR, 4, REG);
    load_meta(&m, NFT_META_L4PROTO, REG + 1);
    load_packet(&m, NFT_PAYLOAD_TRANSPORT_HEADER, PORT_DST, 2, REG + 2);
    look_up(&m, "ports", true, false);
    struct expr e = open_expr(&m, "nat");
    netmap_be32(&m, NFTA_NAT_TYPE, NFT_NAT_DNAT);
    netmap_be32(&m, NFTA_NAT_FAMILY, NFPROTO_IPV4);
    netmap_be32(&m, NFTA_NAT_REG_ADDR_MIN, TO);
    netmap_be32(&m, NFTA_NAT_REG_PROTO_MIN, TO + 1);
    close_expr(&m, e);
    end_rule(b, &m, x);
}

/* From the host's loopback, and from the bridge's own network, to a mapped port: so that the answer
 * comes back this way. And everything that leaves it. */
static void
netmap_hide(struct batch *b)
{
    const struct net_conf *c = b->conf;
    struct msg m;
    struct nlattr *x = netmap_rule(b, &m, "hide");
    if_bridge(&m, c, NFT_META_OIFNAME, NFT_CMP_EQ);
    if_address(&m, IP_SADDR, (uint32_t)LOOPBACK << 24, 8);
    netmap_masquerade(&m);
    end_rule(b, &m, x);
    x = netmap_rule(b, &m, "hide");
    if_bridge(&m, c, NFT_META_OIFNAME, NFT_CMP_EQ);
    if_address(&m, IP_SADDR, c->subnet, c->bits);
    if_tracked(&m, NFT_CT_STATUS, IPS_DST_NAT);
    netmap_masquerade(&m);
    end_rule(b, &m, x);
    x = netmap_rule(b, &m, "hide");
    if_bridge(&m, c, NFT_META_OIFNAME, NFT_CMP_NEQ);
    if_address(&m, IP_SADDR, c->subnet, c->bits);
    netmap_masquerade(&m);
    end_rule(b, &m, x);
}

static void
netmap_filter(struct batch *b)
{
    const struct {
        uint32_t key, bits, code;
    } rows[] = {{NFT_CT_STATE, CT_REPLY_STATES, NF_ACCEPT},
                {NFT_CT_STATUS, IPS_DST_NAT, NF_ACCEPT},
                {0, 0, NF_DROP}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct msg m;
        struct nlattr *x = netmap_rule(b, &m, "filter");
        if_bridge(&m, b->conf, NFT_META_OIFNAME, NFT_CMP_EQ);
        if (rows[i].bits != 0)
            if_tracked(&m, rows[i].key, rows[i].bits);
        netmap_verdict(&m, rows[i].code);
        end_rule(b, &m, x);
    }
}

/* --- elements --- */

static void
netmap_element(struct batch *b, struct msg *m, uint16_t type, const char *set_name, const void *key,
               const void *data)
{
    netmap_begin(b, m, type, type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0);
    mnl_attr_put_strz(m->h, NFTA_SET_ELEM_LIST_TABLE, b->table);
    mnl_attr_put_strz(m->h, NFTA_SET_ELEM_LIST_SET, set_name);
    struct nlattr *list = mnl_attr_nest_start(m->h, NFTA_SET_ELEM_LIST_ELEMENTS);
    struct nlattr *e = mnl_attr_nest_start(m->h, NFTA_LIST_ELEM);
    netmap_value(m, NFTA_SET_ELEM_KEY, key, 12);
    if (data != NULL && type == NFT_MSG_NEWSETELEM)
        netmap_value(m, NFTA_SET_ELEM_DATA, data, 8);
    mnl_attr_nest_end(m->h, e);
    mnl_attr_nest_end(m->h, list);
}

/* Number `i` of the elements of a network, the last one of which is its own address. */
static size_t
netmap_count(const struct net_record *r)
{
    return (size_t)r->n_ports * 2 + 1;
}

static void
netmap_nth(struct batch *b, struct msg *m, uint16_t type, const struct net_record *r, size_t i)
{
    uint8_t key[12] = {0}, data[8] = {0};
    uint32_t addr = htonl(r->addr);
    if (i == (size_t)r->n_ports * 2) {
        memcpy(key, &addr, 4);
        netbridge_mac(key + 4, r->addr);
        netmap_element(b, m, type, "members", key, NULL);
        return;
    }
    const struct net_port *p = &r->ports[i / 2];
    uint32_t host = htonl(p->host_ip);
    uint16_t port = htons(p->port), to = htons(p->to);
    memcpy(key, &host, 4);
    key[4] = i % 2 == 0 ? IPPROTO_TCP : IPPROTO_UDP;
    memcpy(key + 8, &port, 2);
    memcpy(data, &addr, 4);
    memcpy(data + 4, &to, 2);
    netmap_element(b, m, type, "ports", key, data);
}

int
netmap_reset(const struct net_conf *c, const struct net_record *const *v, size_t n,
             const char **what)
{
    auto_mem void *ctx = mem_ctx("netmap");
    struct batch b;
    struct msg m;
    *what = "make the nftables table (with nft_connlimit, nft_ct, nft_fib_ipv4, nft_masq, nft_nat)";
    batch_start(&b, ctx, c);
    netmap_table(&b, NFT_MSG_NEWTABLE); /* so that there is one to delete */
    netmap_table(&b, NFT_MSG_DELTABLE);
    netmap_table(&b, NFT_MSG_NEWTABLE);
    netmap_set(&b, "ports", (TYPE_IP << TYPE_BITS | TYPE_PROTO) << TYPE_BITS | TYPE_PORT, 12, true);
    netmap_set(&b, "members", TYPE_IP << TYPE_BITS | TYPE_MAC, 12, false);
    netmap_chain(&b, "guard", "filter", NF_INET_PRE_ROUTING, -300);
    netmap_meter(&b, "connections");
    netmap_chain(&b, "limit", "filter", NF_INET_PRE_ROUTING, -150);
    netmap_chain(&b, "in", "nat", NF_INET_PRE_ROUTING, -100);
    netmap_chain(&b, "out", "nat", NF_INET_LOCAL_OUT, -100);
    netmap_chain(&b, "hide", "nat", NF_INET_POST_ROUTING, 100);
    netmap_chain(&b, "filter", "filter", NF_INET_FORWARD, 0);
    netmap_guard(&b);
    netmap_limit(&b);
    netmap_translate(&b, "in");
    netmap_translate(&b, "out");
    netmap_hide(&b);
    netmap_filter(&b);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < netmap_count(v[i]); k++) {
            netmap_nth(&b, &m, NFT_MSG_NEWSETELEM, v[i], k);
            netmap_end(&b, &m);
        }
    netmap_begin(&b, &m, NFT_MSG_NEWTABLE, 0); /* there already: something to be acknowledged */
    mnl_attr_put_strz(m.h, NFTA_TABLE_NAME, b.table);
    return batch_send(&b, &m);
}

static int
netmap_change(const struct net_conf *c, const struct net_record *r, uint16_t type, size_t from,
              size_t to)
{
    auto_mem void *ctx = mem_ctx("netmap");
    struct batch b;
    struct msg m;
    batch_start(&b, ctx, c);
    for (size_t i = from; i < to; i++) {
        netmap_nth(&b, &m, type, r, i);
        if (i + 1 < to)
            netmap_end(&b, &m);
    }
    return batch_send(&b, &m);
}

int
netmap_add(const struct net_conf *c, const struct net_record *r, const char **what)
{
    *what = "map the ports";
    return netmap_change(c, r, NFT_MSG_NEWSETELEM, 0, netmap_count(r));
}

int
netmap_remove(const struct net_conf *c, const struct net_record *r, const char **what)
{
    *what = "unmap the ports";
    int x = netmap_change(c, r, NFT_MSG_DELSETELEM, 0, netmap_count(r));
    for (size_t i = 0; x == -ENOENT && i < netmap_count(r);
         i++) { /* some are gone, which undid the rest */
        int y = netmap_change(c, r, NFT_MSG_DELSETELEM, i, i + 1);
        if (y < 0 && y != -ENOENT)
            return y;
    }
    return x == -ENOENT ? 0 : x;
}

int
netmap_clear(const struct net_conf *c, const char **what)
{
    auto_mem void *ctx = mem_ctx("netmap");
    struct batch b;
    struct msg m;
    *what = "remove the nftables table";
    batch_start(&b, ctx, c);
    netmap_begin(&b, &m, NFT_MSG_DELTABLE, 0);
    mnl_attr_put_strz(m.h, NFTA_TABLE_NAME, b.table);
    int r = batch_send(&b, &m);
    return r == -ENOENT ? 0 : r;
}
