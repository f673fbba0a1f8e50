// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counts for each task the waits for a processor and their length, the programs executed, the
 * processes that ended, and those that the kernel ended for want of memory. Everything is written
 * to the task's row before the end of the process can be seen by anybody.
 *
 * The wait is read where the kernel has added it up (sched_info.run_delay), when the process leaves
 * the processor: one hook, and for a process that is not ours a failed look-up.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "isolation/bpf/bucket.h"
#include "isolation/bpf/layout.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The few fields that are used, found by name in the running kernel. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct kernfs_node {
    __u64 id;
};
struct cgroup {
    struct kernfs_node *kn;
};
struct css_set {
    struct cgroup *dfl_cgrp;
};
struct sched_info {
    unsigned long pcount;
    unsigned long long run_delay;
};
struct signal_struct {
    void *oom_mm;
};
struct task_struct {
    int pid;
    int tgid;
    char comm[16];
    struct signal_struct *signal;
    struct css_set *cgroups;
    struct sched_info sched_info;
};
#pragma clang attribute pop

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1);
    __type(key, __u64);
    __type(value, __u32);
} pd1_slots SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct bpf_run_row);
} pd1_run SEC(".maps");

/* The sum of waits that the last look at a thread saw. */
struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, __u64);
} pd1_seen SEC(".maps");

static __always_inline struct bpf_run_row *
row_of(struct task_struct *p)
{
    __u64 id = p->cgroups->dfl_cgrp->kn->id;
    __u32 *slot = bpf_map_lookup_elem(&pd1_slots, &id);
    if (!slot)
        return NULL;
    __u32 i = *slot;
    return bpf_map_lookup_elem(&pd1_run, &i);
}

SEC("tp_btf/sched_switch")
int
BPF_PROG(pd1_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
    (void)preempt;
    (void)next;
    if (prev->pid == 0)
        return 0;
    struct bpf_run_row *row = row_of(prev);
    if (!row)
        return 0;
    __u64 sum = prev->sched_info.run_delay;
    __u64 *seen = bpf_task_storage_get(&pd1_seen, prev, NULL, 0);
    if (!seen) {
        seen = bpf_task_storage_get(&pd1_seen, prev, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
        if (!seen)
            return 0;
        if (prev->sched_info.pcount > 1) /* it ran before anybody counted */
            *seen = sum;
    }
    __u64 wait = sum - *seen;
    *seen = sum;
    __u32 i = bpf_bucket(wait, BPF_RUN_BUCKETS);
    if (i < BPF_RUN_BUCKETS)
        __sync_fetch_and_add(&row->waits[i], 1);
    __sync_fetch_and_add(&row->wait_ns, wait);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int
BPF_PROG(pd1_exec, struct task_struct *p)
{
    struct bpf_run_row *row = row_of(p);
    if (row)
        __sync_fetch_and_add(&row->execs, 1);
    return 0;
}

/* Counts a process when the last of its threads ends. */
SEC("tp_btf/sched_process_exit")
int
BPF_PROG(pd1_exit, struct task_struct *p)
{
    struct bpf_run_row *row;
    if (p->pid != p->tgid)
        return 0;
    row = row_of(p);
    if (!row)
        return 0;
    __sync_fetch_and_add(&row->exits, 1);
    if (p->signal->oom_mm) {
        bpf_probe_read_kernel_str(row->oom_comm, sizeof(row->oom_comm), p->comm);
        row->oom_pid = (__u64)p->tgid;
        __sync_fetch_and_add(&row->ooms, 1);
    }
    return 0;
}
