// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counts the requests of tasks to disks that ended: bytes, failures, and how long each request
 * took, from its making (so with its wait in the disk's queue, without what io.max held back
 * before) to its end.
 *
 * A request is the cgroup's that its data is: past the cache the writer's, and where the kernel
 * writes back later the owner's of the pages. That is so on cgroup version 2 with the controller
 * io; elsewhere a request bears the id of a cgroup of another hierarchy, and this must not be
 * attached. Requests of two cgroups are never joined. What moves no data (flushes, discards)
 * is not counted.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "isolation/bpf/bucket.h"
#include "isolation/bpf/layout.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define OP_MASK 0xff
#define OP_READ 0
#define OP_WRITE 1
#define OP_DISCARD 3
#define OP_SECURE_ERASE 5

/* The few fields that are used, found by name in the running kernel. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct kernfs_node {
    __u64 id;
};
struct cgroup {
    struct kernfs_node *kn;
};
struct cgroup_subsys_state {
    struct cgroup *cgroup;
};
struct blkcg {
    struct cgroup_subsys_state css;
};
struct blkcg_gq {
    struct blkcg *blkcg;
};
struct bio {
    struct blkcg_gq *bi_blkg;
};
struct request {
    unsigned int cmd_flags;
    unsigned int __data_len;
    struct bio *bio;
    __u64 start_time_ns;
};
#pragma clang attribute pop

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1);
    __type(key, __u64);
    __type(value, __u32);
} pd1_blk_slots SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct bpf_block_row);
} pd1_blk SEC(".maps");

static __always_inline struct bpf_block_row *
row_of(struct request *rq)
{
    __u64 id = rq->bio->bi_blkg->blkcg->css.cgroup->kn->id;
    __u32 *slot = bpf_map_lookup_elem(&pd1_blk_slots, &id);
    if (!slot)
        return NULL;
    __u32 i = *slot;
    return bpf_map_lookup_elem(&pd1_blk, &i);
}

/* Before the kernel looks at what has ended: `rq` still has all that was left of it. Of a request
 * that ends in parts the last part ends it. One with a flush before or after it comes again, empty.
 */
SEC("tp_btf/block_rq_complete")
int
BPF_PROG(pd1_blk_done, struct request *rq, int error, unsigned int bytes)
{
    __u32 op = rq->cmd_flags & OP_MASK;
    if (!rq->bio || !bytes || op == OP_DISCARD || op == OP_SECURE_ERASE)
        return 0;
    struct bpf_block_row *row = row_of(rq);
    if (!row)
        return 0;
    if (!error)
        __sync_fetch_and_add(op & OP_WRITE ? &row->write_bytes : &row->read_bytes, bytes);
    if (bytes < rq->__data_len)
        return 0;
    __sync_fetch_and_add(error ? &row->errors : op & OP_WRITE ? &row->writes : &row->reads, 1);
    __u64 start = rq->start_time_ns, now = bpf_ktime_get_ns();
    if (!start || now < start) /* the disk's queue keeps no times (queue/iostats) */
        return 0;
    __u32 i = bpf_bucket(now - start, BPF_BLOCK_BUCKETS);
    if (i < BPF_BLOCK_BUCKETS)
        __sync_fetch_and_add(&row->times[i], 1);
    __sync_fetch_and_add(&row->time_ns, now - start);
    return 0;
}
