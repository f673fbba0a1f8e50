/* SPDX-License-Identifier: Apache-2.0
 *
 * Local snapshots: see snapshot.h for the format. In this order: names in the directory; writing,
 * to a temporary file that gets its name when it is synced; reading, from a map of the file and
 * only after the hash of all of it was checked; and copies of files that a leader sent.
 */
#include "server/raft/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/buf.h"
#include "common/crc.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/table.h"

enum { WRITE_CHUNK = 256 << 10, HASH_BYTES = 16, TAIL_BYTES = 1 + 8 + HASH_BYTES };
enum { MP_NIL = 0xc0, MP_ARRAY3 = 0x93, MP_BIN32 = 0xc6 };
static const char snap_magic[8] = {'P', 'D', 'K', 'S', 'N', 'A', 'P', '1'};

static void
snap_name(char out[40], uint64_t index)
{
    snprintf(out, 40, "snapshot-%020" PRIu64, index);
}

/* The newest index in the directory, 0: none; removes those before `keep`; `clean`: and what an
 * unfinished write left, which nobody is at. */
static int
snapshot_list(int dirfd, const char *dir, uint64_t keep, bool clean, uint64_t *ret, struct err *e)
{
    int fd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (d == NULL)
        return err_errno(e, errno, "list '%s'", dir);
    rewinddir(d);
    struct dirent *ent;
    *ret = 0;
    while ((ent = readdir(d)) != NULL) {
        bool tmp = str_prefix(ent->d_name, "tmp-snapshot");
        if (!tmp && (!str_prefix(ent->d_name, "snapshot-") || strlen(ent->d_name) != 29))
            continue;
        uint64_t index = 0;
        const char *digits = ent->d_name + 9;
        while (!tmp && digits[0] == '0' && digits[1] != '\0')
            digits++;
        if (!tmp && num_parse_u64(digits, &index) < 0)
            continue;
        if (tmp ? clean : index < keep)
            unlinkat(dirfd, ent->d_name, 0);
        else if (!tmp && index > *ret)
            *ret = index;
    }
    closedir(d);
    return 0;
}

/* --- writing --- */

struct writer {
    int fd;
    struct buf out;
    XXH3_state_t *hash;
    uint64_t rows;
    int error; /* errno */
};

static void
snapshot_drain(struct writer *w)
{
    if (w->error == 0)
        w->error = -buf_error(&w->out);
    if (w->error == 0) {
        XXH3_128bits_update(w->hash, w->out.data, w->out.len);
        w->error = -fd_write_full(w->fd, w->out.data, w->out.len);
    }
    buf_reset(&w->out);
}

static int
write_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    struct writer *w = arg;
    if (val.n > SNAPSHOT_ROW_MAX)
        return -ERR_LIMIT;
    buf_put_u8(&w->out, MP_ARRAY3);
    buf_put_u8(&w->out, (uint8_t)table);
    buf_put_u8(&w->out, MP_BIN32);
    buf_put_u32(&w->out, (uint32_t)key.n);
    buf_put(&w->out, key.p, key.n);
    buf_put_u8(&w->out, MP_BIN32);
    buf_put_u32(&w->out, (uint32_t)val.n);
    buf_put(&w->out, val.p, val.n);
    w->rows++;
    if (w->out.len >= WRITE_CHUNK)
        snapshot_drain(w);
    return -w->error;
}

static int
write_head(struct writer *w, const struct consensus_snapshot *meta)
{
    auto_mem void *tmp = mem_ctx("snapshot head");
    void *conf = NULL;
    size_t n = 0;
    int rc = consensus_conf_encode(tmp, &meta->conf, &conf, &n);
    if (rc < 0)
        return rc;
    buf_put(&w->out, snap_magic, sizeof(snap_magic));
    buf_put_u64(&w->out, meta->index);
    buf_put_u64(&w->out, meta->term);
    buf_put_u64(&w->out, meta->conf_index);
    buf_put_u32(&w->out, (uint32_t)n);
    buf_put(&w->out, conf, n);
    buf_put_u32(&w->out, crc32c(0, w->out.data, w->out.len));
    return 0;
}

static int
write_all(struct writer *w, const struct consensus_snapshot *meta, snapshot_source_fn *source,
          void *src)
{
    int rc = write_head(w, meta);
    if (rc < 0)
        return rc;
    rc = source(src, write_row, w);
    if (rc < 0)
        return rc;
    buf_put_u8(&w->out, MP_NIL);
    buf_put_u64(&w->out, w->rows);
    snapshot_drain(w);
    XXH128_canonical_t h;
    XXH128_canonicalFromHash(&h, XXH3_128bits_digest(w->hash));
    if (w->error == 0)
        w->error = -fd_write_full(w->fd, h.digest, sizeof(h.digest));
    if (w->error == 0 && fsync(w->fd) != 0)
        w->error = errno;
    return -w->error;
}

int
snapshot_write(const char *dir, const struct consensus_snapshot *meta, snapshot_source_fn *source,
               void *src, struct err *e)
{
    auto_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return err_errno(e, errno, "open the snapshot directory '%s'", dir);
    static const char tmp[] = "tmp-snapshot";
    auto_fd int fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, errno, "make '%s/%s'", dir, tmp);
    struct writer w = {.fd = fd, .hash = XXH3_createState()};
    ASSERT(w.hash != NULL);
    XXH3_128bits_reset(w.hash);
    buf_init(&w.out, (size_t)SNAPSHOT_ROW_MAX + 2 * WRITE_CHUNK);
    int rc = write_all(&w, meta, source, src);
    XXH3_freeState(w.hash);
    buf_done(&w.out);
    char name[40];
    snap_name(name, meta->index);
    if (rc == 0 && renameat(dirfd, tmp, dirfd, name) != 0)
        rc = -errno;
    if (rc == 0)
        rc = dir_fsync(dirfd);
    if (rc < 0) {
        unlinkat(dirfd, tmp, 0);
        return err_set(e, rc, "write the snapshot '%s/%s': %s", dir, name, err_name(rc));
    }
    uint64_t newest;
    return snapshot_list(dirfd, dir, meta->index, true, &newest, e);
}

/* --- reading --- */

/* The bytes of a snapshot, in pieces: those of a map are one. */
struct reader {
    struct slice piece;
    size_t at;              /* in the piece */
    snapshot_more_fn *more; /* NULL: there is no other piece */
    void *more_arg;
    struct buf joined;  /* what is of two pieces or more, until the next is taken */
    XXH3_state_t *hash; /* of what was taken; NULL: nobody asks */
    bool bad;
};

static const uint8_t *
take_joined(struct reader *r, size_t n)
{
    buf_reset(&r->joined);
    while (r->joined.len < n) {
        size_t left = r->piece.n - r->at, want = n - r->joined.len;
        size_t part = left < want ? left : want;
        buf_put(&r->joined, (const uint8_t *)r->piece.p + r->at, part);
        r->at += part;
        if (part == want)
            break;
        r->at = r->piece.n = 0;
        if (r->more == NULL || r->more(r->more_arg, &r->piece) <= 0 || buf_error(&r->joined) < 0)
            return NULL;
    }
    return buf_error(&r->joined) == 0 ? r->joined.data : NULL;
}

/* Returns the next n bytes, which stay until others are taken. */
static const uint8_t *
snapshot_take(struct reader *r, size_t n)
{
    const uint8_t *p = NULL;
    if (!r->bad && r->piece.n - r->at >= n) {
        p = (const uint8_t *)r->piece.p + r->at;
        r->at += n;
    } else if (!r->bad) {
        p = take_joined(r, n);
    }
    r->bad |= p == NULL;
    if (p != NULL && r->hash != NULL)
        XXH3_128bits_update(r->hash, p, n);
    return p;
}

static uint64_t
take_uint(struct reader *r, size_t bytes)
{
    const uint8_t *p = snapshot_take(r, bytes);
    uint64_t v = 0;
    for (size_t i = 0; p != NULL && i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

static bool
read_head(struct reader *r, const void *ctx, struct consensus_snapshot *ret)
{
    enum { FIXED = sizeof(snap_magic) + 3 * 8 + 4 };
    const uint8_t *p = snapshot_take(r, FIXED);
    if (p == NULL || memcmp(p, snap_magic, sizeof(snap_magic)) != 0)
        return false;
    uint32_t crc = crc32c(0, p, FIXED);
    struct reader fixed = {.piece = SLICE(p, FIXED), .at = sizeof(snap_magic)};
    struct consensus_snapshot s = {.index = take_uint(&fixed, 8), .term = take_uint(&fixed, 8)};
    s.conf_index = take_uint(&fixed, 8);
    size_t n = (size_t)take_uint(&fixed, 4);
    const uint8_t *conf = n <= SNAPSHOT_CONF_MAX ? snapshot_take(r, n) : NULL;
    if (conf == NULL || s.index == 0 || s.term == 0 ||
        consensus_conf_decode(ctx, conf, n, &s.conf) < 0)
        return false;
    crc = crc32c(crc, conf, n);
    if (take_uint(r, 4) != crc || r->bad)
        return false;
    *ret = s;
    return true;
}

static int
map_file(int dirfd, const char *dir, const char *name, struct reader *r, struct err *e)
{
    auto_fd int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return err_errno(e, errno, "open the snapshot '%s/%s'", dir, name);
    *r = (struct reader){.piece = {.n = (size_t)st.st_size}};
    if (r->piece.n == 0)
        return 0;
    r->piece.p = mmap(NULL, r->piece.n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (r->piece.p == MAP_FAILED)
        return err_errno(e, errno, "map the snapshot '%s/%s'", dir, name);
    return 0;
}

/* All of it is as it was written. */
static bool
is_whole(struct reader *r)
{
    XXH128_canonical_t h;
    size_t n = r->piece.n;
    if (n <= TAIL_BYTES)
        return false;
    XXH128_canonicalFromHash(&h, XXH3_128bits(r->piece.p, n - HASH_BYTES));
    return memcmp(h.digest, (const uint8_t *)r->piece.p + n - HASH_BYTES, HASH_BYTES) == 0;
}

static void
snapshot_unmap(struct reader *r)
{
    if (r->piece.p != NULL)
        munmap((void *)(uintptr_t)r->piece.p, r->piece.n);
}

static int
snapshot_corrupt(const char *dir, uint64_t index, struct err *e)
{
    return err_set(
        e, -ERR_CORRUPT,
        "the snapshot '%s/snapshot-%020" PRIu64 "' is damaged. Restore it from a backup, "
        "or, when other servers hold the data (or it may be lost), remove '%s' and start "
        "again empty",
        dir, index, dir);
}

int
snapshot_find(const char *dir, const void *ctx, struct consensus_snapshot *ret, struct err *e)
{
    auto_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return err_errno(e, errno, "open the snapshot directory '%s'", dir);
    uint64_t index = 0;
    int rc = snapshot_list(dirfd, dir, 0, true, &index, e);
    if (rc < 0 || index == 0)
        return rc;
    struct reader r;
    char name[40];
    snap_name(name, index);
    rc = map_file(dirfd, dir, name, &r, e);
    if (rc < 0)
        return rc;
    bool ok = read_head(&r, ctx, ret) && ret->index == index;
    snapshot_unmap(&r);
    return ok ? 1 : snapshot_corrupt(dir, index, e);
}

/* Returns whether the hash is right and is the end. */
static bool
ends_well(struct reader *r)
{
    XXH128_canonical_t h;
    XXH3_state_t *hash = TAKE(r->hash);
    if (hash != NULL)
        XXH128_canonicalFromHash(&h, XXH3_128bits_digest(hash));
    const uint8_t *p = snapshot_take(r, HASH_BYTES);
    bool same = p != NULL && (hash == NULL || memcmp(h.digest, p, HASH_BYTES) == 0);
    return same && r->at == r->piece.n && (r->more == NULL || r->more(r->more_arg, &r->piece) == 0);
}

static int
read_rows(struct reader *r, snapshot_row_fn *fn, void *arg)
{
    uint64_t rows = 0;
    uint8_t key[TABLE_KEY_MAX];
    for (;;) {
        uint64_t tag = take_uint(r, 1);
        if (r->bad || tag == MP_NIL)
            break;
        unsigned table = (unsigned)take_uint(r, 1);
        r->bad |= tag != MP_ARRAY3 || table > 0x7f || take_uint(r, 1) != MP_BIN32;
        struct slice k = {.p = key, .n = (size_t)take_uint(r, 4)};
        r->bad |= k.n > sizeof(key);
        const uint8_t *p = snapshot_take(r, k.n);
        if (p != NULL)
            memcpy(key, p, k.n);
        r->bad |= take_uint(r, 1) != MP_BIN32;
        struct slice val = {.n = (size_t)take_uint(r, 4)};
        r->bad |= val.n > SNAPSHOT_ROW_MAX;
        val.p = snapshot_take(r, val.n);
        if (r->bad)
            break;
        rows++;
        int rc = fn(arg, table, k, val);
        if (rc < 0)
            return rc;
    }
    bool end = take_uint(r, 8) == rows && !r->bad && ends_well(r);
    return end ? 0 : -ERR_CORRUPT;
}

int
snapshot_scan(snapshot_more_fn *more, void *more_arg, const void *ctx,
              struct consensus_snapshot *ret, snapshot_row_fn *fn, void *arg)
{
    struct reader r = {.more = more, .more_arg = more_arg, .hash = XXH3_createState()};
    XXH3_state_t *hash = r.hash;
    ASSERT(hash != NULL);
    XXH3_128bits_reset(hash);
    buf_init(&r.joined, SNAPSHOT_ROW_MAX);
    int rc = read_head(&r, ctx, ret) ? read_rows(&r, fn, arg) : -ERR_CORRUPT;
    buf_done(&r.joined);
    XXH3_freeState(hash);
    return rc;
}

int
snapshot_read(const char *dir, uint64_t index, snapshot_row_fn *fn, void *arg, struct err *e)
{
    auto_mem void *tmp = mem_ctx("snapshot read");
    auto_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return err_errno(e, errno, "open the snapshot directory '%s'", dir);
    struct reader r;
    char name[40];
    snap_name(name, index);
    int rc = map_file(dirfd, dir, name, &r, e);
    if (rc < 0)
        return rc;
    struct consensus_snapshot meta;
    bool ok = is_whole(&r);
    ok = ok && read_head(&r, tmp, &meta) && meta.index == index;
    rc = ok ? read_rows(&r, fn, arg) : -ERR_CORRUPT;
    snapshot_unmap(&r);
    return rc == -ERR_CORRUPT ? snapshot_corrupt(dir, index, e) : rc;
}

/* --- copies --- */

int
snapshot_check(const char *dir, const char *name, const void *ctx, struct consensus_snapshot *ret,
               struct err *e)
{
    auto_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct reader r;
    if (dirfd < 0)
        return err_errno(e, errno, "open the snapshot directory '%s'", dir);
    int rc = map_file(dirfd, dir, name, &r, e);
    if (rc < 0)
        return rc;
    bool ok = is_whole(&r) && read_head(&r, ctx, ret);
    snapshot_unmap(&r);
    return ok ? 0
              : err_set(e, -ERR_CORRUPT, "the copy of a snapshot '%s/%s' is damaged", dir, name);
}

int
snapshot_open(const char *dir, uint64_t *index, uint64_t *size)
{
    auto_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err e = ERR_INIT;
    struct stat st;
    char name[40];
    if (dirfd < 0)
        return -errno;
    int rc = *index == 0 ? snapshot_list(dirfd, dir, 0, false, index, &e) : 0;
    if (rc < 0 || *index == 0)
        return rc < 0 ? rc : -ENOENT;
    snap_name(name, *index);
    int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        rc = -errno;
        fd_close(&fd);
        return rc;
    }
    *size = (uint64_t)st.st_size;
    return fd;
}

void
snapshot_remove(const char *dir, uint64_t index)
{
    auto_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[40];
    snap_name(name, index);
    if (dirfd >= 0)
        (void)unlinkat(dirfd, name, 0);
}

int
snapshot_adopt(const char *dir, const char *name, uint64_t index)
{
    auto_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char to[40];
    snap_name(to, index);
    if (dirfd < 0 || renameat(dirfd, name, dirfd, to) != 0)
        return -errno;
    return dir_fsync(dirfd);
}
