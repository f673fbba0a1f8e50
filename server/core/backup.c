/* SPDX-License-Identifier: Apache-2.0
 *
 * Backups that operators take: a snapshot of the state as the log's own are, in a directory of its
 * own, which is read piece by piece.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "server/core/core_int.h"
#include "server/raft/snapshot.h"

static char *
backup_dir(const void *ctx, const struct core *c)
{
    return mem_printf(ctx, "%s/backup", c->o.dir);
}

struct dump {
    struct state_txn *t;
    snapshot_row_fn *row;
    void *arg;
};

/* Pieces of another backup are no part of the state. */
static int
dump_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    struct dump *d = arg;
    return table == state_table_id(STATE_RESTORE) ? 0 : d->row(d->arg, table, key, val);
}

static int
dump_state(void *src, snapshot_row_fn *row, void *arg)
{
    struct dump d = {src, row, arg};
    return state_dump(src, dump_row, &d);
}

static int
digest_file(int fd, uint8_t ret[BACKUP_DIGEST])
{
    uint8_t block[64 << 10];
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    ssize_t n = 0;
    ASSERT(md != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1);
    while ((n = read(fd, block, sizeof(block))) > 0)
        ASSERT(EVP_DigestUpdate(md, block, (size_t)n) == 1);
    int rc = n < 0 ? -errno : 0;
    ASSERT(EVP_DigestFinal_ex(md, ret, NULL) == 1);
    EVP_MD_CTX_free(md);
    return rc;
}

int
core_backup(struct core *c, struct state_txn *t, struct core_backup *ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("backup");
    const char *dir = backup_dir(tmp, c);
    struct core_status st;
    core_status(c, tmp, &st);
    struct consensus_snapshot meta = {.index = state_logged(t),
                                      .term = state_applied_term(t),
                                      .conf_index = state_logged(t),
                                      .conf = st.conf};
    int rc = dir_make(AT_FDCWD, dir, 0700);
    if (rc < 0)
        return err_set(e, rc, "make the directory '%s': %s", dir, err_name(rc));
    rc = snapshot_write(dir, &meta, dump_state, t, e);
    if (rc < 0)
        return rc;
    *ret = (struct core_backup){.index = meta.index};
    auto_fd int fd = snapshot_open(dir, &ret->index, &ret->size);
    rc = fd < 0 ? fd : digest_file(fd, ret->digest);
    return rc < 0 ? err_set(e, rc, "read the backup below '%s': %s", dir, err_name(rc)) : 0;
}

int
core_backup_read(struct core *c, uint64_t index, uint64_t offset, void *to, size_t n, struct err *e)
{
    auto_mem void *tmp = mem_ctx("backup");
    const char *dir = backup_dir(tmp, c);
    uint64_t size = 0;
    auto_fd int fd = index > 0 ? snapshot_open(dir, &index, &size) : -ENOENT;
    ssize_t got = fd < 0 ? fd : pread(fd, to, n, (off_t)offset);
    if (fd >= 0 && got < 0)
        got = -errno;
    if (got == -ENOENT)
        return err_set(e, -ERR_NOT_FOUND,
                       "this server does not have the backup any more: another server leads, or "
                       "another backup was taken; take one again");
    if (got < 0)
        return err_set(e, (int)got, "read the backup below '%s': %s", dir, err_name((int)got));
    return (int)got;
}

void
core_backup_drop(struct core *c, uint64_t index)
{
    auto_mem void *tmp = mem_ctx("backup");
    snapshot_remove(backup_dir(tmp, c), index);
}
