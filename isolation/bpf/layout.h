/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * What the programs in this directory and the rest of the house both see: keys and values of maps.
 * Maps outlive wardens: a change of a struct needs another BPF_LAYOUT, which is part of the names
 * of programs and maps. <linux/types.h> comes first.
 */
#ifndef PADDOCK_BPF_LAYOUT_H
#define PADDOCK_BPF_LAYOUT_H

#define BPF_LAYOUT 1

/* Below the parent of all tasks: ALLOC/TASK/task. */
#define BPF_LEAF_DEPTH 3
#define BPF_LEVELS_MAX 24 /* cgroups above a leaf */

/* One element per task, by the id of its cgroup leaf. */
struct bpf_leaf {
    __u32 slot;  /* of its counters; 0: none */
    __u32 flags; /* BPF_LEAF_* */
    __u64 rules; /* id of its rules; tasks with the same ones share them */
};
#define BPF_LEAF_EGRESS 1u /* rules apply to what it sends to */
#define BPF_LEAF_BIND 2u   /* rules apply to what it binds to */
#define BPF_LEAF_DEV 4u    /* opens nothing but the devices that are no hardware */
#define BPF_LEAF_GIVEN 16u /* ... and those with its id in the map of devices */

/* A device that a task was given. */
struct bpf_device_key {
    __u64 id;   /* of its leaf */
    __u32 type; /* BPF_DEVCG_DEV_* */
    __u32 major;
    __u32 minor;
    __u32 pad;
};

/* Counters: `shards` rows per slot, one cache line each, so that processors seldom meet. A row
 * belongs to the task whose id it has. Slot 0 is the header. */
struct bpf_net_row {
    __u64 id;
    __u64 rx_bytes; /* of IP packets, as on the wire */
    __u64 rx_packets;
    __u64 tx_bytes;
    __u64 tx_packets;
    __u64 tx_denied; /* packets */
    __u64 connect_denied;
    __u64 bind_denied;
};
struct bpf_net_header {
    __u64 magic;
    __u64 rows; /* in the map, this one included */
    __u64 shards;
    __u64 build; /* which programs count here */
    __u64 pad[4];
};
#define BPF_NET_MAGIC 0x314e4b434f444450ULL

/* In maps of one row per slot, slot 0 begins with this. */
struct bpf_rows_header {
    __u64 magic;
    __u64 rows; /* in the map, this one included */
    __u64 root_id;
    __u64 build; /* which programs count here */
};

/* The ends of a task's processes, and how long they waited for a processor. */
#define BPF_RUN_BUCKETS 16 /* up to 1, 2, 4 ... 16384 microseconds, and above */
struct bpf_run_row {
    __u64 id;
    __u64 execs;
    __u64 exits;
    __u64 ooms;    /* processes that the kernel ended for want of memory */
    __u64 oom_pid; /* the last of them, as the host sees it */
    char oom_comm[16];
    __u64 wait_ns;
    __u64 waits[BPF_RUN_BUCKETS];
};
#define BPF_RUN_MAGIC 0x314e55524f434450ULL

/* A task's requests to disks that ended, and how long each took. */
#define BPF_BLOCK_BUCKETS 24 /* up to 1, 2, 4 ... 4194304 microseconds, and above */
struct bpf_block_row {
    __u64 id;
    __u64 reads; /* requests that ended well */
    __u64 writes;
    __u64 read_bytes;
    __u64 write_bytes;
    __u64 errors;  /* requests that did not */
    __u64 time_ns; /* of those in the histogram, all together */
    __u64 pad;
    __u64 times[BPF_BLOCK_BUCKETS];
};
#define BPF_BLOCK_MAGIC 0x314b4c424f434450ULL

/* Rules, flattened: the longest prefix that an address has holds the whole verdict. */
struct bpf_rule_key {
    __u32 prefixlen; /* bits of what follows */
    __u32 kind;      /* BPF_RULE_* */
    __u64 id;
    __u8 addr[16];
};
#define BPF_RULE_FIXED_BITS 96 /* of prefixlen: kind and id */
#define BPF_RULE_V6 1u
#define BPF_RULE_BIND 2u
#define BPF_RULE_RANGES 16
#define BPF_RULE_TCP 1u
#define BPF_RULE_UDP 2u
#define BPF_RULE_OTHER 4u /* protocols and packets without ports */
struct bpf_rule_range {
    __u16 lo; /* host byte order */
    __u16 hi;
    __u16 protos; /* BPF_RULE_TCP | BPF_RULE_UDP */
};
struct bpf_rule {
    __u16 n;
    __u16 whole; /* BPF_RULE_*: protocols that are allowed on every port */
    struct bpf_rule_range ranges[BPF_RULE_RANGES]; /* allowed */
};

#endif
