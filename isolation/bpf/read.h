/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the counters of tasks, without privilege and without a system call: the warden hands out
 * an fd of the map, which is mapped once, read-only.
 */
#ifndef PADDOCK_ISOLATION_BPF_READ_H
#define PADDOCK_ISOLATION_BPF_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_net_row;

struct bpf_read {
    const struct bpf_net_row *rows; /* NULL: nothing to read */
    size_t n_rows, shards;
    struct bpf_read_rows {
        const uint8_t *v; /* the same */
        size_t n, size;
    } runs, blocks;
};

enum { BPF_WAIT_BUCKETS = 16 };
struct bpf_run_counts {
    uint64_t execs, exits, ooms, oom_pid, wait_ns;
    uint64_t waits[BPF_WAIT_BUCKETS]; /* up to 1, 2, 4 ... 16384 microseconds, and above */
    char oom_comm[16];
};

enum { BPF_TIME_BUCKETS = 24 };
struct bpf_block_counts {
    uint64_t reads, writes, read_bytes, write_bytes, errors, time_ns;
    uint64_t times[BPF_TIME_BUCKETS]; /* up to 1, 2, 4 ... 4194304 microseconds, and above */
};

struct bpf_net_counts {
    uint64_t rx_bytes, rx_packets, tx_bytes, tx_packets;
    uint64_t tx_denied, connect_denied, bind_denied;
};

/* Maps what `fd` (borrowed) is a map of; replaces what was mapped. 0 or -errno. */
int bpf_read_open(struct bpf_read *b, int fd);
int bpf_read_open_runs(struct bpf_read *b, int fd);
int bpf_read_open_blocks(struct bpf_read *b, int fd);
void bpf_read_close(struct bpf_read *b);
/* Read the counters of the task whose leaf has `cgroup_id`; false: it is not counted. `hint` is
 * kept by the caller per task, 0 at first: where it was the last time. */
bool bpf_read_net(const struct bpf_read *b, uint64_t cgroup_id, size_t *hint,
                  struct bpf_net_counts *ret);

bool bpf_read_run(const struct bpf_read *b, uint64_t cgroup_id, size_t *hint,
                  struct bpf_run_counts *ret);
bool bpf_read_block(const struct bpf_read *b, uint64_t cgroup_id, size_t *hint,
                    struct bpf_block_counts *ret);

#endif
