/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting and policing what tasks send: the warden's side of isolation/bpf/net.bpf.c.
 *
 * The programs are attached to the parent cgroup of all tasks and live as long as that cgroup. A
 * warden that starts finds them by name and goes on with their maps: nothing is counted twice or
 * missed while no warden runs, rules stay in force, and nothing is left behind when the cgroup is
 * removed. All state is in the maps, changed under a lock of the cgroup's directory, so that
 * wardens that share a parent cgroup do not disturb each other.
 */
#ifndef PADDOCK_ISOLATION_BPF_NET_H
#define PADDOCK_ISOLATION_BPF_NET_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "isolation/bpf/layout.h"
#include "isolation/bpf/netrules.h"
#include "isolation/limits.h"

enum { BPF_SHARDS_MAX = 4 };

struct bpf_net {
    int cgroup;        /* borrowed: the parent of all tasks */
    uint64_t root_id;  /* its id */
    int leaf, rules, dev; /* maps; -1: not here. Programs of an earlier build have no `dev` */
    /* The counters, for bpf/read.h. The agent gets this fd. The kernel maps no BPF map whose fd is
     * read-only, so it could write there: numbers that it reports itself, and nothing else. */
    int net;
    uint64_t key[2]; /* of the names of rules */
    struct bpf_net_row *rows; /* the counters, mapped */
    size_t n_rows, shards;
    bool foreign; /* the programs are of another build: they know no flag of a later one */
};

/* Finds or loads and attaches. On failure `b` is closed and everything else in this file refuses or
 * does nothing. */
int bpf_net_open(struct bpf_net *b, int cgroup, struct err *e);
/* Lets go; programs and counters stay. */
void bpf_net_close(struct bpf_net *b);
bool bpf_net_works(const struct bpf_net *b);
/* Is `cgroup` still what `b` was opened for? It may have been removed and made again. */
bool bpf_net_is_for(const struct bpf_net *b, int cgroup);

/* Devices that are a task's, beside those that are no hardware. */
struct bpf_devices {
    struct bpf_device {
        uint32_t major, minor;
        bool block;
    } * v;
    size_t n;
};

/* A task, before its first process: `id` of its leaf; NULL: no rules of that kind, or every device.
 * All or nothing; -ERR_UNSUPPORTED: the programs in the kernel know of no devices. */
int bpf_net_add(struct bpf_net *b, uint64_t id, const struct netrules *egress,
                const struct netrules *bind, const struct bpf_devices *devices, struct err *e);
bool bpf_net_has(const struct bpf_net *b, uint64_t id);
/* After its last process. Unknown: nothing. */
void bpf_net_remove(struct bpf_net *b, uint64_t id);

#endif
