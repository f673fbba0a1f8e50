/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/bpf_read.h"

#include <errno.h>
#include <linux/types.h>
#include <string.h>
#include <sys/mman.h>

#include "isolation/bpf/layout.h"
#include "isolation/bpf_net.h"

static void
close_net(struct bpf_read *b)
{
    if (b->rows != NULL)
        (void)munmap((void *)(uintptr_t)b->rows, b->n_rows * sizeof(*b->rows));
    b->rows = NULL;
}

static void
close_runs(struct bpf_read *b)
{
    if (b->runs != NULL)
        (void)munmap((void *)(uintptr_t)b->runs, b->n_runs * sizeof(*b->runs));
    b->runs = NULL;
}

int
bpf_read_open(struct bpf_read *b, int fd)
{
    struct bpf_net_header h;
    close_net(b);
    const void *p = mmap(NULL, sizeof(h), PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    h = *(const struct bpf_net_header *)p;
    (void)munmap((void *)(uintptr_t)p, sizeof(h));
    if (h.magic != BPF_NET_MAGIC || h.shards == 0 || h.shards > BPF_SHARDS_MAX ||
        h.rows > (BPF_SLOTS_MAX + 1) * h.shards)
        return -EINVAL;
    p = mmap(NULL, h.rows * sizeof(*b->rows), PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    b->rows = p;
    b->n_rows = h.rows;
    b->shards = h.shards;
    return 0;
}

int
bpf_read_open_runs(struct bpf_read *b, int fd)
{
    struct bpf_run_header h;
    close_runs(b);
    const void *p = mmap(NULL, sizeof(h), PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    h = *(const struct bpf_run_header *)p;
    (void)munmap((void *)(uintptr_t)p, sizeof(h));
    if (h.magic != BPF_RUN_MAGIC || h.rows > BPF_SLOTS_MAX + 1)
        return -EINVAL;
    p = mmap(NULL, h.rows * sizeof(*b->runs), PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    b->runs = p;
    b->n_runs = h.rows;
    return 0;
}

void
bpf_read_close(struct bpf_read *b)
{
    close_net(b);
    close_runs(b);
}

static bool
is_at(const struct bpf_read *b, size_t at, uint64_t id)
{
    return at != 0 && at + b->shards <= b->n_rows &&
           __atomic_load_n(&b->rows[at].id, __ATOMIC_RELAXED) == id;
}

bool
bpf_read_net(const struct bpf_read *b, uint64_t cgroup_id, size_t *hint,
             struct bpf_net_counts *ret)
{
    if (b->rows == NULL || cgroup_id == 0)
        return false;
    if (!is_at(b, *hint, cgroup_id)) {
        *hint = 0;
        for (size_t at = b->shards; at + b->shards <= b->n_rows && *hint == 0; at += b->shards)
            if (is_at(b, at, cgroup_id))
                *hint = at;
        if (*hint == 0)
            return false;
    }
    *ret = (struct bpf_net_counts){0};
    for (size_t i = 0; i < b->shards; i++) {
        const struct bpf_net_row *r = &b->rows[*hint + i];
        ret->rx_bytes += __atomic_load_n(&r->rx_bytes, __ATOMIC_RELAXED);
        ret->rx_packets += __atomic_load_n(&r->rx_packets, __ATOMIC_RELAXED);
        ret->tx_bytes += __atomic_load_n(&r->tx_bytes, __ATOMIC_RELAXED);
        ret->tx_packets += __atomic_load_n(&r->tx_packets, __ATOMIC_RELAXED);
        ret->tx_denied += __atomic_load_n(&r->tx_denied, __ATOMIC_RELAXED);
        ret->connect_denied += __atomic_load_n(&r->connect_denied, __ATOMIC_RELAXED);
        ret->bind_denied += __atomic_load_n(&r->bind_denied, __ATOMIC_RELAXED);
    }
    return true;
}

bool
bpf_read_run(const struct bpf_read *b, uint64_t cgroup_id, size_t *hint,
             struct bpf_run_counts *ret)
{
    if (b->runs == NULL || cgroup_id == 0)
        return false;
    size_t at = *hint;
    if (at == 0 || at >= b->n_runs || __atomic_load_n(&b->runs[at].id, __ATOMIC_RELAXED) != cgroup_id)
        for (at = 1; at < b->n_runs; at++)
            if (__atomic_load_n(&b->runs[at].id, __ATOMIC_RELAXED) == cgroup_id)
                break;
    if (at >= b->n_runs)
        return false;
    *hint = at;
    const struct bpf_run_row *r = &b->runs[at];
    *ret = (struct bpf_run_counts){.execs = __atomic_load_n(&r->execs, __ATOMIC_RELAXED),
                                   .exits = __atomic_load_n(&r->exits, __ATOMIC_RELAXED),
                                   .ooms = __atomic_load_n(&r->ooms, __ATOMIC_RELAXED),
                                   .oom_pid = __atomic_load_n(&r->oom_pid, __ATOMIC_RELAXED),
                                   .wait_ns = __atomic_load_n(&r->wait_ns, __ATOMIC_RELAXED)};
    _Static_assert(BPF_WAIT_BUCKETS == BPF_RUN_BUCKETS, "the same");
    for (size_t i = 0; i < BPF_WAIT_BUCKETS; i++)
        ret->waits[i] = __atomic_load_n(&r->waits[i], __ATOMIC_RELAXED);
    memcpy(ret->oom_comm, r->oom_comm, sizeof(ret->oom_comm) - 1);
    return true;
}
