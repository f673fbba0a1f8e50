/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters of tasks by programs that have no cgroup hook: the warden's side of
 * isolation/bpf/run.bpf.c (waits for a processor, executions, ends, victims of the OOM killer) and
 * of block.bpf.c (requests to disks).
 *
 * The programs hang on fds (links), which the warden holds and hands to the agent, which does
 * nothing with them: when either is restarted the other one keeps counting alive, and the new
 * warden finds it. When both are gone the kernel takes the programs away; nothing is pinned. A task
 * costs a slot of a map, not an attachment. Where the kernel refuses, the fingerprint says so and
 * the numbers are absent, not zero.
 */
#ifndef PADDOCK_ISOLATION_BPF_ROWS_H
#define PADDOCK_ISOLATION_BPF_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "isolation/bpf/skel.h"

/* One object of programs, and what its maps are called. */
struct bpf_rows_kind;
extern const struct bpf_rows_kind bpf_rows_run, bpf_rows_block;

struct bpf_rows {
    const struct bpf_rows_kind *kind;
    int cgroup; /* borrowed: the parent of all tasks */
    uint64_t root_id;
    int slots; /* maps; -1: not here */
    int map;   /* also the agent's, for bpf/read.h */
    int links[BPF_LINKS_MAX];
    uint8_t *rows; /* the map, mapped; NULL: nothing counts */
    size_t n_rows;
};
#define BPF_ROWS_NONE ((struct bpf_rows){.slots = -1, .map = -1, .links = {-1, -1, -1}})

/* Finds or loads and attaches. On failure `b` is closed, and the rest does nothing. */
int bpf_rows_open(struct bpf_rows *b, const struct bpf_rows_kind *kind, int cgroup, struct err *e);
void bpf_rows_close(struct bpf_rows *b);
/* A task, by the id of its leaf; false: it is not counted (too many). Adding twice is fine. */
bool bpf_rows_add(struct bpf_rows *b, uint64_t id);
void bpf_rows_remove(struct bpf_rows *b, uint64_t id);

#endif
