// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counts the bytes and packets that tasks send and receive, and enforces which addresses they may
 * reach and bind to. Attached once, to the parent cgroup of all tasks; a task is the leaf that its
 * socket (packets) or its process (calls) is in.
 *
 * The four address hooks give a call that is denied EPERM at once. The packet hook behind them sees
 * what has no address hook: raw sockets, source routes, and whatever a later kernel adds. It lets
 * a standing TCP connection pass: answers to peers that connected to the task are not egress. A
 * packet whose task is gone or was never known passes, except from a raw socket.
 */
#include <linux/bpf.h>
#include <linux/in.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "isolation/bpf/layout.h"

#define AF_INET 2
#define AF_INET6 10
#define SOCK_STREAM 1
#define SOCK_RAW 3
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86DD
#define PROTO_MPTCP 262
#define PROTO_HOP_OPTIONS 0
#define PROTO_ROUTE 43
#define PROTO_FRAGMENT 44
#define PROTO_AUTH 51
#define PROTO_OPTIONS 60
#define ANY_PROTO (BPF_RULE_TCP | BPF_RULE_UDP | BPF_RULE_OTHER) /* its ports are not to be seen */
#define MAYBE_UNUSED __attribute__((unused))
#define INLINE static __always_inline MAYBE_UNUSED

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u64 root_id = 0;  /* the parent of all tasks */
const volatile __u32 n_shards = 1; /* a power of two */
__u32 leaf_level = 0;              /* found out at the first packet or call; 0: not yet */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1);
    __type(key, __u64);
    __type(value, struct bpf_leaf);
} pd1_leaf SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct bpf_net_row);
} pd1_net SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1);
    __type(key, struct bpf_rule_key);
    __type(value, struct bpf_rule);
} pd1_rules SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1);
    __type(key, struct bpf_device_key);
    __type(value, __u32);
} pd1_dev SEC(".maps");

struct who {
    __u64 id;
    struct bpf_leaf *leaf; /* NULL: not one of our tasks */
};

/* The level of the parent is not told to user space inside a cgroup namespace: it is looked for. */
static __noinline __u32
level_by_skb(struct __sk_buff *skb)
{
#pragma clang loop unroll(disable)
    for (int i = 1; i < BPF_LEVELS_MAX; i++) {
        if (bpf_skb_ancestor_cgroup_id(skb, i) == root_id) {
            leaf_level = i + BPF_LEAF_DEPTH;
            break;
        }
    }
    return leaf_level;
}

static __noinline __u32
level_by_task(void)
{
#pragma clang loop unroll(disable)
    for (int i = 1; i < BPF_LEVELS_MAX; i++) {
        if (bpf_get_current_ancestor_cgroup_id(i) == root_id) {
            leaf_level = i + BPF_LEAF_DEPTH;
            break;
        }
    }
    return leaf_level;
}

INLINE struct who
who_sent(struct __sk_buff *skb)
{
    struct who w = {
        .id = bpf_skb_ancestor_cgroup_id(skb, leaf_level ? leaf_level : level_by_skb(skb))};
    __u64 id = w.id;
    w.leaf = bpf_map_lookup_elem(&pd1_leaf, &id);
    return w;
}

INLINE struct who
who_calls(void)
{
    struct who w = {
        .id = bpf_get_current_ancestor_cgroup_id(leaf_level ? leaf_level : level_by_task())};
    __u64 id = w.id;
    w.leaf = bpf_map_lookup_elem(&pd1_leaf, &id);
    return w;
}

INLINE struct bpf_net_row *
row_of(const struct bpf_leaf *leaf)
{
    __u32 slot = leaf->slot;
    if (slot == 0)
        return NULL;
    __u32 i = slot * n_shards + (bpf_get_smp_processor_id() & (n_shards - 1));
    return bpf_map_lookup_elem(&pd1_net, &i);
}

#define COUNT(leaf, field, n)                              \
    do {                                                   \
        struct bpf_net_row *row_ = row_of(leaf);           \
        if (row_)                                          \
            __sync_fetch_and_add(&row_->field, (__u64)(n)); \
    } while (0)

/* --- rules --- */

struct target {
    __u32 kind;
    __u32 proto; /* BPF_RULE_* */
    __u32 port;  /* host byte order */
    __u32 addr[4];
};

/* No rule for an address at all: a mistake of ours, which must not open anything. */
INLINE int
look_up(__u64 id, const struct target *t)
{
    struct bpf_rule_key k = {
        .prefixlen = BPF_RULE_FIXED_BITS + 128,
        .kind = t->kind,
        .id = id,
    };
    __builtin_memcpy(k.addr, t->addr, sizeof(k.addr));
    struct bpf_rule *r = bpf_map_lookup_elem(&pd1_rules, &k);
    if (!r)
        return 0;
    if ((r->whole & t->proto) == t->proto)
        return 1;
    if (t->proto == ANY_PROTO)
        return 0;
#pragma clang loop unroll(disable)
    for (int i = 0; i < BPF_RULE_RANGES; i++) {
        if (i >= r->n)
            break;
        if ((r->ranges[i].protos & t->proto) && t->port >= r->ranges[i].lo &&
            t->port <= r->ranges[i].hi)
            return 1;
    }
    return 0;
}

/* An IPv4 address within an IPv6 address is judged as what it leads to. */
static __noinline int
net_allowed(__u64 id, struct target *t)
{
    if (!t)
        return 0;
    if (t->kind & BPF_RULE_V6) {
        int nat64 = t->addr[0] == bpf_htonl(0x0064ff9b) && t->addr[1] == 0 && t->addr[2] == 0;
        int mapped = t->addr[0] == 0 && t->addr[1] == 0 && t->addr[2] == bpf_htonl(0xffff);
        if (nat64 && !look_up(id, t))
            return 0;
        if (nat64 || mapped) {
            t->kind &= ~BPF_RULE_V6;
            t->addr[0] = t->addr[3];
            t->addr[1] = t->addr[2] = t->addr[3] = 0;
        }
    }
    return look_up(id, t);
}

INLINE __u32
proto_bit(__u32 protocol, __u32 type)
{
    if (protocol == IPPROTO_TCP || protocol == PROTO_MPTCP)
        return BPF_RULE_TCP;
    if (protocol == IPPROTO_UDP || protocol == IPPROTO_UDPLITE)
        return BPF_RULE_UDP;
    if (protocol == 0 && type == SOCK_STREAM)
        return BPF_RULE_TCP;
    return BPF_RULE_OTHER;
}

/* --- calls --- */

INLINE void
target_v4(struct target *t, struct bpf_sock_addr *ctx)
{
    t->proto = proto_bit(ctx->protocol, ctx->type);
    t->port = bpf_ntohs((__u16)ctx->user_port);
    t->addr[0] = ctx->user_ip4;
}

INLINE void
target_v6(struct target *t, struct bpf_sock_addr *ctx)
{
    t->kind |= BPF_RULE_V6;
    t->proto = proto_bit(ctx->protocol, ctx->type);
    t->port = bpf_ntohs((__u16)ctx->user_port);
    t->addr[0] = ctx->user_ip6[0];
    t->addr[1] = ctx->user_ip6[1];
    t->addr[2] = ctx->user_ip6[2];
    t->addr[3] = ctx->user_ip6[3];
}

INLINE int
call_out(struct target *t)
{
    struct who w = who_calls();
    if (!w.leaf || !(w.leaf->flags & BPF_LEAF_EGRESS))
        return 1;
    if (net_allowed(w.leaf->rules, t))
        return 1;
    COUNT(w.leaf, connect_denied, 1);
    return 0;
}

/* Port 0 is the kernel's choice, which no peer waits for. */
INLINE int
call_bind(struct target *t)
{
    struct who w = who_calls();
    if (!w.leaf || !(w.leaf->flags & BPF_LEAF_BIND) || t->port == 0)
        return 1;
    t->kind |= BPF_RULE_BIND;
    if (net_allowed(w.leaf->rules, t))
        return 1;
    COUNT(w.leaf, bind_denied, 1);
    return 0;
}

SEC("cgroup/connect4")
int
pd1_connect4(struct bpf_sock_addr *ctx)
{
    struct target t = {0};
    target_v4(&t, ctx);
    return call_out(&t);
}

SEC("cgroup/connect6")
int
pd1_connect6(struct bpf_sock_addr *ctx)
{
    struct target t = {0};
    target_v6(&t, ctx);
    return call_out(&t);
}

SEC("cgroup/sendmsg4")
int
pd1_sendmsg4(struct bpf_sock_addr *ctx)
{
    struct target t = {0};
    target_v4(&t, ctx);
    return call_out(&t);
}

SEC("cgroup/sendmsg6")
int
pd1_sendmsg6(struct bpf_sock_addr *ctx)
{
    struct target t = {0};
    target_v6(&t, ctx);
    return call_out(&t);
}

SEC("cgroup/bind4")
int
pd1_bind4(struct bpf_sock_addr *ctx)
{
    struct target t = {0};
    target_v4(&t, ctx);
    return call_bind(&t);
}

SEC("cgroup/bind6")
int
pd1_bind6(struct bpf_sock_addr *ctx)
{
    struct target t = {0};
    target_v6(&t, ctx);
    return call_bind(&t);
}

/* --- devices --- */

/* null, zero, full, random, urandom, tty, ptmx, pts. Behind nodev, read-only /dev and no mknod:
 * this is for a node that got in all the same. */
INLINE bool
harmless(__u32 major, __u32 minor)
{
    if (major == 1)
        return minor == 3 || minor == 5 || minor == 7 || minor == 8 || minor == 9;
    return (major == 5 && (minor == 0 || minor == 2)) || (major >= 136 && major <= 143);
}

INLINE bool
given(const struct who *w, __u32 type, __u32 major, __u32 minor)
{
    struct bpf_device_key k = {.id = w->id, .type = type, .major = major, .minor = minor};
    return (w->leaf->flags & BPF_LEAF_GIVEN) && bpf_map_lookup_elem(&pd1_dev, &k);
}

SEC("cgroup/dev")
int
pd1_device(struct bpf_cgroup_dev_ctx *ctx)
{
    struct who w = who_calls();
    if (!w.leaf || !(w.leaf->flags & BPF_LEAF_DEV))
        return 1;
    __u32 type = ctx->access_type & 0xffff, access = ctx->access_type >> 16;
    if (access & BPF_DEVCG_ACC_MKNOD)
        return 0;
    return (type == BPF_DEVCG_DEV_CHAR && harmless(ctx->major, ctx->minor)) ||
           given(&w, type, ctx->major, ctx->minor);
}

/* --- packets --- */

/* Ports, where the packet has them; a fragment but the first has none. */
INLINE void
read_ports(struct __sk_buff *skb, __u32 off, __u32 protocol, struct target *t)
{
    __u16 port = 0;
    t->proto = proto_bit(protocol, 0);
    if (t->proto == BPF_RULE_OTHER)
        return;
    if (bpf_skb_load_bytes(skb, off + 2, &port, sizeof(port)) < 0)
        t->proto = ANY_PROTO;
    t->port = bpf_ntohs(port);
}

INLINE int
parse_v4(struct __sk_buff *skb, struct target *t)
{
    struct {
        __u8 ihl, tos;
        __u16 len, id, frag;
        __u8 ttl, protocol;
        __u16 sum;
        __u32 src, dst;
    } h;
    if (bpf_skb_load_bytes(skb, 0, &h, sizeof(h)) < 0)
        return -1;
    t->addr[0] = h.dst;
    if (h.frag & bpf_htons(0x1fff))
        t->proto = ANY_PROTO;
    else
        read_ports(skb, (h.ihl & 15) * 4, h.protocol == 0 ? 255 : h.protocol, t);
    return 0;
}

INLINE bool
hides_another(__u8 next)
{
    return next == PROTO_HOP_OPTIONS || next == PROTO_ROUTE || next == PROTO_FRAGMENT ||
           next == PROTO_AUTH || next == PROTO_OPTIONS;
}

/* Behind extension headers ports are not looked for: only where every port is allowed do such pass.
 */
INLINE int
parse_v6(struct __sk_buff *skb, struct target *t)
{
    struct {
        __u32 flow;
        __u16 len;
        __u8 next, hops;
        __u32 src[4], dst[4];
    } h;
    if (bpf_skb_load_bytes(skb, 0, &h, sizeof(h)) < 0)
        return -1;
    t->kind |= BPF_RULE_V6;
    __builtin_memcpy(t->addr, h.dst, sizeof(t->addr));
    if (hides_another(h.next))
        t->proto = ANY_PROTO;
    else
        read_ports(skb, sizeof(h), h.next, t);
    return 0;
}

/* The header's words on a packet: its protocol, and whether it goes to the peer of its socket,
 * since options (a source route) may lead it elsewhere. The hop-by-hop options of a jumbo packet do
 * not. */
struct header {
    __u8 protocol;
    bool plain;
};

static __noinline int
read_header(struct __sk_buff *skb, struct header *h)
{
    __u8 b[10];
    if (!h || bpf_skb_load_bytes(skb, 0, b, sizeof(b)) < 0)
        return -1;
    bool v4 = skb->protocol == bpf_htons(ETH_P_IP);
    h->protocol = v4 ? b[9] : b[6];
    if (!v4 && h->protocol == PROTO_HOP_OPTIONS && bpf_skb_load_bytes(skb, 40, &h->protocol, 1) < 0)
        return -1;
    h->plain = h->protocol == IPPROTO_TCP && (!v4 || b[0] == 0x45);
    return 0;
}

/* SCTP binds by itself, without the hook: who has rules for that sends none. */
INLINE bool
bound_elsewhere(const struct header *h)
{
    return h->protocol == IPPROTO_SCTP || hides_another(h->protocol);
}

/* Says whether the packet belongs to a standing TCP connection, or to one that a peer made. */
INLINE int
established(struct bpf_sock *sk, const struct header *h)
{
    return h->plain && sk && sk->type == SOCK_STREAM && sk->state != BPF_TCP_SYN_SENT &&
           (sk->protocol == IPPROTO_TCP || sk->protocol == (PROTO_MPTCP & 0xff));
}

static __noinline int
judge_packet(struct __sk_buff *skb, __u64 id)
{
    struct target t = {0};
    int r = -1;
    if (skb->protocol == bpf_htons(ETH_P_IP))
        r = parse_v4(skb, &t);
    else if (skb->protocol == bpf_htons(ETH_P_IPV6))
        r = parse_v6(skb, &t);
    return r == 0 && net_allowed(id, &t);
}

/* Bytes of the headers that each segment of a large packet carries. */
static __noinline __u32
header_bytes(struct __sk_buff *skb)
{
    __u8 first = 0, protocol = 0, doff = 0;
    __u32 n = 40;
    bool v4 = skb->protocol == bpf_htons(ETH_P_IP);
    (void)bpf_skb_load_bytes(skb, 0, &first, 1);
    (void)bpf_skb_load_bytes(skb, v4 ? 9 : 6, &protocol, 1);
    if (v4)
        n = (first & 15) * 4;
    if (protocol == IPPROTO_UDP)
        return n + 8;
    (void)bpf_skb_load_bytes(skb, n + 12, &doff, 1);
    return n + (doff >> 4) * 4;
}

/* Adds a packet as it is on the wire: what is cut into segments later, or was merged from some,
 * counts as these. */
INLINE void
count(struct __sk_buff *skb, __u64 *bytes, __u64 *packets)
{
    __u32 segments = skb->gso_segs, size = skb->gso_size;
    __u64 n = skb->len;
    if (segments == 0 && size > 0) /* some drivers leave it to who wants to know */
        segments = (skb->len - header_bytes(skb) + size - 1) / size;
    if (segments > 1)
        n += (__u64)(segments - 1) * header_bytes(skb);
    else
        segments = 1;
    __sync_fetch_and_add(bytes, n);
    __sync_fetch_and_add(packets, (__u64)segments);
}

SEC("cgroup_skb/egress")
int
pd1_egress(struct __sk_buff *skb)
{
    struct who w = who_sent(skb);
    struct bpf_sock *sk = skb->sk;
    if (sk)
        sk = bpf_sk_fullsock(sk);
    if (!w.leaf)
        return !(sk && sk->type == SOCK_RAW);
    if (w.leaf->flags & (BPF_LEAF_EGRESS | BPF_LEAF_BIND)) {
        struct header h = {0};
        bool pass = read_header(skb, &h) == 0;
        if (w.leaf->flags & BPF_LEAF_BIND)
            pass = pass && !bound_elsewhere(&h);
        if (w.leaf->flags & BPF_LEAF_EGRESS)
            pass = pass && (established(sk, &h) || judge_packet(skb, w.leaf->rules));
        if (!pass) {
            COUNT(w.leaf, tx_denied, 1);
            return 0;
        }
    }
    struct bpf_net_row *row = row_of(w.leaf);
    if (row)
        count(skb, &row->tx_bytes, &row->tx_packets);
    return 1;
}

SEC("cgroup_skb/ingress")
int
pd1_ingress(struct __sk_buff *skb)
{
    struct who w = who_sent(skb);
    if (!w.leaf)
        return 1;
    struct bpf_net_row *row = row_of(w.leaf);
    if (row)
        count(skb, &row->rx_bytes, &row->rx_packets);
    return 1;
}
