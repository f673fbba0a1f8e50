/* SPDX-License-Identifier: Apache-2.0
 *
 * Older entries, read back from the segments while the log is written to. Index and term name an
 * entry: what another term had at an index, before it was truncated, is passed over. The end of the
 * last segment may be half written: its reader stops there, and nothing is asked for that is not
 * durable.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/mem.h"
#include "server/raft/log_int.h"

struct wanted {
    const void *ctx;
    struct record *v;
    size_t n, found;
    size_t bytes, max;
};

static int
log_read_take(void *arg, const struct record *r)
{
    struct wanted *w = arg;
    if (w->found == w->n || w->bytes >= w->max)
        return -ERR_CANCELED; /* enough */
    struct record *x = &w->v[w->found];
    if (r->type == RECORD_TRUNCATE || r->index != x->index || r->term != x->term)
        return 0;
    x->type = r->type;
    x->n = r->n;
    x->data = r->n > 0 ? mem_dup(w->ctx, r->data, r->n) : NULL;
    w->found++;
    w->bytes += r->n;
    return 0;
}

/* False: the file is gone, it was not needed any more. */
static bool
read_one_file(int dirfd, uint64_t seq, struct wanted *w)
{
    char name[40];
    struct segment_end end;
    struct err ignored = ERR_INIT;
    struct stat st;
    segment_name(name, seq);
    auto_fd int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0 || st.st_size > SEGMENT_BYTES_MAX)
        return false;
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return false;
    (void)segment_scan(map, (size_t)st.st_size, log_read_take, w, &end, &ignored);
    munmap(map, (size_t)st.st_size);
    return true;
}

size_t
raft_log_read(struct raft_log *l, const void *ctx, struct record *v, size_t n, size_t bytes)
{
    struct wanted w = {ctx, v, n, 0, 0, bytes};
    auto_mem void *tmp = mem_ctx("log read");
    uint64_t *seq = NULL;
    int dirfd = -1;
    size_t files = n > 0 ? raft_log_files(l, tmp, v[0].index, &seq, &dirfd) : 0;
    for (size_t i = 0; i < files && w.found < n && w.bytes < bytes; i++)
        if (!read_one_file(dirfd, seq[i], &w))
            break;
    ASSERT(w.found <= n && (w.found == 0 || v[w.found - 1].index == v[0].index + w.found - 1));
    return w.found;
}
