/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiled programs of isolation/bpf, loaded. What bpftool generates is seen by bpf/skel.c
 * alone. Loading needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN; -ENOSYS in a build without BPF.
 */
#ifndef PADDOCK_ISOLATION_BPF_SKEL_H
#define PADDOCK_ISOLATION_BPF_SKEL_H

#include <stdint.h>

enum bpf_net_prog {
    BPF_NET_CONNECT4,
    BPF_NET_CONNECT6,
    BPF_NET_SENDMSG4,
    BPF_NET_SENDMSG6,
    BPF_NET_BIND4,
    BPF_NET_BIND6,
    BPF_NET_EGRESS,
    BPF_NET_INGRESS,
    BPF_NET_DEVICE,
    BPF_NET_PROGS
};

struct bpf_skel_net {
    uint64_t root_id; /* in: id of the cgroup that is the parent of all tasks */
    uint32_t shards;
    uint32_t leaf_max, rows_max, rules_max, dev_max;
    int leaf, net, rules, dev; /* out: maps; the caller closes */
    int progs[BPF_NET_PROGS];
};
int bpf_skel_net(struct bpf_skel_net *s);

enum { BPF_LINKS_MAX = 3 };

struct bpf_skel_rows {
    uint32_t slots_max, rows_max; /* in */
    int slots, map;               /* out: maps; the caller closes */
    int links[BPF_LINKS_MAX]; /* out: the programs are attached as long as one fd is open; -1: no
                                 more */
};
int bpf_skel_run(struct bpf_skel_rows *s);
int bpf_skel_block(struct bpf_skel_rows *s);

/* Changes whenever a program does. */
uint64_t bpf_skel_net_build(void);
uint64_t bpf_skel_run_build(void);
uint64_t bpf_skel_block_build(void);

#endif
