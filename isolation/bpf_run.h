/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for a processor, executions, ends and victims of the OOM killer, per task: the warden's side of
 * isolation/bpf/run.bpf.c.
 *
 * The programs hang on fds (links), which the warden holds and hands to the agent, which does nothing
 * with them: when either is restarted the other one keeps counting alive, and the new warden finds it.
 * When both are gone the kernel takes the programs away; nothing is pinned.
 */
#ifndef PADDOCK_ISOLATION_BPF_RUN_H
#define PADDOCK_ISOLATION_BPF_RUN_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "isolation/bpf/layout.h"
#include "isolation/bpf_skel.h"

struct bpf_run {
    int cgroup; /* borrowed: the parent of all tasks */
    uint64_t root_id;
    int slots; /* maps; -1: not here */
    int run;   /* also the agent's, for bpf_read.h */
    int links[BPF_RUN_LINKS];
    struct bpf_run_row *rows;
    size_t n_rows;
};
#define BPF_RUN_NONE ((struct bpf_run){.slots = -1, .run = -1, .links = {-1, -1, -1}})

/* Finds or loads and attaches. On failure `b` is closed, and the rest does nothing. */
int bpf_run_open(struct bpf_run *b, int cgroup, struct err *e);
void bpf_run_close(struct bpf_run *b);
/* A task, by the id of its leaf; false: it is not counted (too many). Adding twice is fine. */
bool bpf_run_add(struct bpf_run *b, uint64_t id);
void bpf_run_remove(struct bpf_run *b, uint64_t id);

#endif
