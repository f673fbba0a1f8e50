/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of ours that come back from a disk: a Raft snapshot (its hash is made right first, or
 * nothing behind it would be met), and the rows of the client's local state. The first byte
 * chooses. Oracles: a snapshot is read or damaged, twice the same; rows are given out complete or
 * left out.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "client/local.h"
#include "common/crc.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/table.h"
#include "server/raft/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char dir[] = "/dev/shm/paddock-fuzz-XXXXXX";

static int
count(void *arg, unsigned table, struct slice key, struct slice val)
{
    uint64_t *sum = arg;
    ASSERT(table <= 0x7f);
    for (size_t i = 0; i < key.n; i++)
        *sum += ((const uint8_t *)key.p)[i];
    for (size_t i = 0; i < val.n; i++)
        *sum += ((const uint8_t *)val.p)[i];
    return 0;
}

/* Bytes of the file without its hash, and how the CRC of the head is made right. */
static void
snapshot(const void *ctx, const uint8_t *p, size_t n)
{
    uint8_t *file = mem_array(ctx, uint8_t, n + 16);
    memcpy(file, p, n);
    if (n >= 36) { /* magic, index, term, configuration index and length, configuration, CRC */
        size_t conf =
            (size_t)file[32] << 24 | (size_t)file[33] << 16 | (size_t)file[34] << 8 | file[35];
        if (conf <= n - 36 && n - 36 - conf >= 4) {
            uint32_t crc = crc32c(0, file, 36 + conf);
            for (size_t i = 0; i < 4; i++)
                file[36 + conf + i] = (uint8_t)(crc >> (24 - 8 * i));
        }
    }
    XXH128_canonical_t h;
    XXH128_canonicalFromHash(&h, XXH3_128bits(file, n));
    memcpy(file + n, h.digest, sizeof(h.digest));
    uint64_t index = 0, a = 0, b = 0;
    for (size_t i = 8; i < 16 && n >= 16; i++)
        index = index << 8 | file[i];
    if (index == 0)
        return;
    char path[128];
    snprintf(path, sizeof(path), "%s/snapshot-%020llu", dir, (unsigned long long)index);
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT(fd >= 0 && fd_write_full(fd, file, n + 16) == 0);
    struct err e = ERR_INIT;
    struct consensus_snapshot meta;
    int found = snapshot_find(dir, ctx, &meta, &e);
    ASSERT(found == 1 ? meta.index == index : found < 0 && e.text[0] != '\0');
    err_clear(&e);
    int r = snapshot_read(dir, index, count, &a, &e);
    ASSERT(r == 0 || (r == -ERR_CORRUPT && e.text[0] != '\0'));
    ASSERT(snapshot_read(dir, index, count, &b, &e) == r && a == b);
    (void)unlink(path);
}

static void
row(void *arg, struct client_alloc *a, struct client_task **tasks, size_t n)
{
    (void)arg;
    ASSERT(a->alloc && a->alloc->id && a->alloc->job);
    for (size_t i = 0; i < n; i++)
        ASSERT(tasks[i]->state && tasks[i]->name[0]);
}

/* Rows: table, length of the key, two bytes of length of the value, key, value. */
static void
put_rows(const uint8_t *p, size_t n)
{
    struct table_env *env;
    struct err e = ERR_INIT;
    unsigned t[2];
    int code;
    char path[128];
    snprintf(path, sizeof(path), "%s/client", dir);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/client/state.db", dir);
    ASSERT(table_env_open(path, 16 << 20, TABLE_NOSYNC, &env, &e) == 0);
    ASSERT(table_open(env, "alloc", &t[0], &e) == 0 && table_open(env, "task", &t[1], &e) == 0);
    struct table_txn *w = table_write_begin(env, &code);
    for (size_t at = 0; at + 4 <= n;) {
        size_t k = p[at + 1], v = (size_t)p[at + 2] << 8 | p[at + 3];
        k = k < n - at - 4 ? k : n - at - 4;
        v = v < n - at - 4 - k ? v : n - at - 4 - k;
        if (k > 0)
            (void)table_put(w, t[p[at] & 1], SLICE(p + at + 4, k), SLICE(p + at + 4 + k, v));
        at += 4 + k + v;
    }
    ASSERT(table_commit(w) == 0);
    table_env_close(env);
}

static void
client_rows(const void *ctx, const uint8_t *p, size_t n)
{
    static struct loop *loop;
    struct local *s;
    struct err e = ERR_INIT;
    char path[128];
    if (!loop)
        loop = loop_new();
    put_rows(p, n);
    snprintf(path, sizeof(path), "%s/client", dir);
    ASSERT(local_open(loop, path, 1 << 30, &s, &e) == 0);
    ASSERT(local_load(s, ctx, row, NULL, &e) == 0);
    local_close(s);
    ASSERT(dir_remove(AT_FDCWD, path, &e) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static bool made;
    if (n == 0)
        return 0;
    if (!made) {
        ASSERT(mkdtemp(dir) != NULL);
        log_setup(LOG_OFF, false, 2);
        made = true;
    }
    auto_mem void *ctx = mem_ctx("fuzz");
    if (data[0] & 1)
        snapshot(ctx, data + 1, n - 1);
    else
        client_rows(ctx, data + 1, n - 1);
    return 0;
}
