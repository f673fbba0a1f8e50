/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/bpf/read.h"

#include <errno.h>
#include <linux/types.h>
#include <string.h>
#include <sys/mman.h>

#include "isolation/bpf/layout.h"
#include "isolation/bpf/net.h"

static void
close_net(struct bpf_read *b)
{
    if (b->rows != NULL)
        (void)munmap((void *)(uintptr_t)b->rows, b->n_rows * sizeof(*b->rows));
    b->rows = NULL;
}

static void
close_rows(struct bpf_read_rows *r)
{
    if (r->v != NULL)
        (void)munmap((void *)(uintptr_t)r->v, r->n * r->size);
    r->v = NULL;
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

static int
open_rows(struct bpf_read_rows *r, int fd, uint64_t magic, size_t size)
{
    struct bpf_rows_header h;
    close_rows(r);
    const void *p = mmap(NULL, sizeof(h), PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    h = *(const struct bpf_rows_header *)p;
    (void)munmap((void *)(uintptr_t)p, sizeof(h));
    if (h.magic != magic || h.rows > BPF_SLOTS_MAX + 1)
        return -EINVAL;
    p = mmap(NULL, h.rows * size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    *r = (struct bpf_read_rows){.v = p, .n = h.rows, .size = size};
    return 0;
}

int
bpf_read_open_runs(struct bpf_read *b, int fd)
{
    return open_rows(&b->runs, fd, BPF_RUN_MAGIC, sizeof(struct bpf_run_row));
}

int
bpf_read_open_blocks(struct bpf_read *b, int fd)
{
    return open_rows(&b->blocks, fd, BPF_BLOCK_MAGIC, sizeof(struct bpf_block_row));
}

void
bpf_read_close(struct bpf_read *b)
{
    close_net(b);
    close_rows(&b->runs);
    close_rows(&b->blocks);
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

static const void *
row_at(const struct bpf_read_rows *r, size_t at)
{
    return r->v + at * r->size;
}

/* A row begins with the id of its task. NULL: not there. */
static const void *
find_row(const struct bpf_read_rows *r, uint64_t id, size_t *hint)
{
    if (r->v == NULL || id == 0)
        return NULL;
    size_t at = *hint;
    if (at == 0 || at >= r->n ||
        __atomic_load_n((const uint64_t *)row_at(r, at), __ATOMIC_RELAXED) != id)
        for (at = 1; at < r->n; at++)
            if (__atomic_load_n((const uint64_t *)row_at(r, at), __ATOMIC_RELAXED) == id)
                break;
    if (at >= r->n)
        return NULL;
    *hint = at;
    return row_at(r, at);
}

bool
bpf_read_run(const struct bpf_read *b, uint64_t cgroup_id, size_t *hint,
             struct bpf_run_counts *ret)
{
    const struct bpf_run_row *r = find_row(&b->runs, cgroup_id, hint);
    if (r == NULL)
        return false;
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

bool
bpf_read_block(const struct bpf_read *b, uint64_t cgroup_id, size_t *hint,
               struct bpf_block_counts *ret)
{
    const struct bpf_block_row *r = find_row(&b->blocks, cgroup_id, hint);
    if (r == NULL)
        return false;
    *ret =
        (struct bpf_block_counts){.reads = __atomic_load_n(&r->reads, __ATOMIC_RELAXED),
                                  .writes = __atomic_load_n(&r->writes, __ATOMIC_RELAXED),
                                  .read_bytes = __atomic_load_n(&r->read_bytes, __ATOMIC_RELAXED),
                                  .write_bytes = __atomic_load_n(&r->write_bytes, __ATOMIC_RELAXED),
                                  .errors = __atomic_load_n(&r->errors, __ATOMIC_RELAXED),
                                  .time_ns = __atomic_load_n(&r->time_ns, __ATOMIC_RELAXED)};
    _Static_assert(BPF_TIME_BUCKETS == BPF_BLOCK_BUCKETS, "the same");
    for (size_t i = 0; i < BPF_TIME_BUCKETS; i++)
        ret->times[i] = __atomic_load_n(&r->times[i], __ATOMIC_RELAXED);
    return true;
}
