/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/bpf_read.h"

#include <errno.h>
#include <linux/types.h>
#include <sys/mman.h>

#include "isolation/bpf/layout.h"
#include "isolation/bpf_net.h"

int
bpf_read_open(struct bpf_read *b, int fd)
{
    struct bpf_net_header h;
    bpf_read_close(b);
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
    *b = (struct bpf_read){.rows = p, .n_rows = h.rows, .shards = h.shards};
    return 0;
}

void
bpf_read_close(struct bpf_read *b)
{
    if (b->rows != NULL)
        (void)munmap((void *)(uintptr_t)b->rows, b->n_rows * sizeof(*b->rows));
    *b = (struct bpf_read){0};
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
