/* SPDX-License-Identifier: Apache-2.0
 *
 * The state: opening, transactions and indexes. See state.h; rows are read in read.c, written in
 * write.c, and described in tables.h.
 *
 * The file is a cache of the log for this boot of the machine: files of other boots or formats are
 * removed when it is opened, and a file that cannot be trusted is dropped and the process ends, for
 * its next start can make another. A state is closed when its last transaction ends, so a second
 * file can take its place under readers.
 */
#include "server/state/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/state/state_int.h"
#include "server/state/write.h"

/* LMDB's, beside the file. */
static char *
lock_path(const void *ctx, const struct state *s)
{
    return mem_printf(ctx, "%s-lock", s->path);
}

static void
drop_file(const struct state *s)
{
    auto_mem void *tmp = mem_ctx("drop");
    (void)unlink(s->path);
    (void)unlink(lock_path(tmp, s));
}

void
state_fatal(const struct state *s, const char *what, int code)
{
    const char *why =
        "the state file cannot be used: it is dropped, and the next start rebuilds it from "
        "the Raft snapshot and log";
    if (code == -ERR_LIMIT)
        why = "the state file is full: raise state_max_mb of the server, purge jobs";
    else if (code == -ERR_BUSY)
        why = "the state has too many readers";
    else
        drop_file(s);
    log_error("state", why, "file", s->path, "at", what, "error", err_name(code), NULL);
    log_fatal_exit();
}

const char *
row_name(struct slice key, char out[ROW_NAME])
{
    const char *p = key.p;
    size_t n = 0;

    for (; n < key.n && n + 1 < ROW_NAME; n++)
        out[n] = p[n] >= ' ' && p[n] < 0x7f ? p[n] : ' ';
    out[n] = '\0';
    return out;
}

void
row_fatal(const struct state *s, unsigned table, struct slice key, const char *why)
{
    char name[ROW_NAME];

    log_error("state", "a row cannot be read", "table", table_rows[table].name, "key",
              row_name(key, name), "error", why, NULL);
    state_fatal(s, table_rows[table].name, -ERR_CORRUPT);
}

/* --- opening --- */

#define MAP_SPARE ((size_t)1 << 30)

static int
read_boot_id(char out[64], struct err *e)
{
    auto_mem void *tmp = mem_ctx("boot id");
    char *s = NULL;
    size_t n = 0;
    int rc = file_read(tmp, AT_FDCWD, "/proc/sys/kernel/random/boot_id", 63, &s, &n);
    if (rc < 0)
        return err_errno(e, -rc, "read /proc/sys/kernel/random/boot_id");
    while (n > 0 && (s[n - 1] == '\n' || s[n - 1] == ' '))
        s[--n] = '\0';
    str_copy(out, 64, s);
    return 0;
}

/* Files of other boots hold what the disk may have lost, those of other formats what we cannot use.
 */
static int
remove_others(const char *dir, const char *keep, struct err *e)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return err_errno(e, errno, "open the directory '%s'", dir);
    struct dirent *ent;
    while ((ent = readdir(d)) != NULL) {
        if (!str_prefix(ent->d_name, "state-") || str_prefix(ent->d_name, keep))
            continue;
        if (unlinkat(dirfd(d), ent->d_name, 0) != 0 && errno != ENOENT) {
            int rc =
                err_errno(e, errno, "remove the outdated state file '%s/%s'", dir, ent->d_name);
            closedir(d);
            return rc;
        }
    }
    closedir(d);
    return 0;
}

/* Address space costs nothing, and a file that were full could not be made smaller: far more is
 * mapped than may be used, and than the file has; less where there is not so much. */
static int
open_env(struct state *s, struct err *e)
{
    struct stat st;
    size_t most = s->max_bytes;

    if (stat(s->path, &st) == 0 && (size_t)st.st_size > most)
        most = (size_t)st.st_size;
    for (size_t map = most * 4 + MAP_SPARE;; map /= 2) {
        int rc = table_env_open(s->path, map & ~(size_t)0xffff, TABLE_NOSYNC, &s->env, e);
        if (rc != -ENOMEM || map / 2 < most)
            return rc;
        err_clear(e);
    }
}

static const char *
table_name(unsigned i)
{
    return i < T_META       ? table_rows[i].name
           : i == T_META    ? "meta"
           : i >= T_INDEXES ? index_rows[i - T_INDEXES].name
                            : "variables_bytes";
}

static int
open_tables(struct state *s, struct err *e)
{
    int rc = open_env(s, e);
    for (unsigned i = 0; rc == 0 && i < T_ALL; i++) {
        rc = table_open(s->env, table_name(i), &s->t[i], e);
    }
    if (rc < 0)
        table_env_close(TAKE(s->env));
    return rc;
}

static struct state *
state_new(const char *dir, size_t max_bytes)
{
    struct state *s = mem_new(NULL, struct state);
    atomic_init(&s->refs, 1);
    s->dir = mem_strdup(s, dir);
    s->max_bytes = max_bytes;
    return s;
}

int
state_open(const char *dir, const char *boot_id, size_t max_bytes, struct state **ret,
           bool *ret_fresh, struct err *e)
{
    char boot[64];
    if (boot_id != NULL)
        str_copy(boot, sizeof(boot), boot_id);
    else if (read_boot_id(boot, e) < 0)
        return e != NULL ? e->code : -EIO;
    struct state *s = state_new(dir, max_bytes);
    char *name = mem_printf(s, "state-%s-%d.mdb", boot, STATE_FORMAT);
    s->path = mem_printf(s, "%s/%s", dir, name);
    struct err why = ERR_INIT;
    int rc = remove_others(dir, name, e);
    if (rc == 0)
        rc = open_tables(s, &why);
    if (why.code == -ERR_CORRUPT || why.code == -EINVAL) {
        log_warn("state", "the state file is damaged: it is rebuilt from the Raft snapshot and log",
                 "file", s->path, "error", why.text, NULL);
        drop_file(s);
        err_clear(&why);
        rc = open_tables(s, &why);
    }
    if (rc < 0) {
        state_close(s);
        return why.code != 0 ? err_set(e, rc, "%s", why.text) : rc;
    }
    struct state_txn *t = state_read_begin(s, s);
    *ret_fresh = state_applied(t) == 0;
    state_read_end(t);
    *ret = s;
    return 0;
}

int
state_open_next(const struct state *s, struct state **ret, struct err *e)
{
    struct state *next = state_new(s->dir, s->max_bytes);
    next->path = mem_printf(next, "%s/state-next.mdb", s->dir); /* what a start removes */
    drop_file(next);
    int rc = open_tables(next, e);
    if (rc < 0) {
        state_close(next);
        return rc;
    }
    *ret = next;
    return 0;
}

/* A start that finds the file without its lock, or with the lock of the other, makes a new one. */
int
state_replace(struct state *s, struct state *next)
{
    auto_mem void *tmp = mem_ctx("replace");
    char *path = mem_strdup(next, s->path);
    if (rename(next->path, path) != 0)
        return -errno;
    (void)rename(lock_path(tmp, next), lock_path(tmp, s));
    next->path = path;
    return 0;
}

void
state_close(struct state *s)
{
    if (s == NULL || atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    table_env_close(s->env);
    mem_free(s);
}

void
state_clear(struct state *s)
{
    int rc = 0;
    struct table_txn *t = table_write_begin(s->env, &rc);
    for (unsigned i = 0; t != NULL && i < T_ALL; i++) {
        struct table_scan *sc = table_scan(t, s->t[i], SLICE(NULL, 0));
        while (rc == 0 && table_next(sc))
            rc = table_scan_del(sc);
        if (rc == 0)
            rc = sc->error;
        table_scan_end(sc);
    }
    if (t != NULL && rc == 0)
        rc = table_commit(t);
    if (rc < 0)
        state_fatal(s, "clear", rc);
}

void
state_usage(struct state *s, size_t *ret_used, size_t *ret_max)
{
    *ret_used = table_env_usage(s->env, s->max_bytes / 2);
    *ret_max = s->max_bytes;
}

void
state_file(struct state *s, size_t *ret_used, size_t *ret_free)
{
    *ret_used = table_env_usage(s->env, 0);
    *ret_free = table_env_free(s->env);
}

bool
state_reserve(struct state *s)
{
    size_t left;
    table_env_reserve(s->env, DISK_RESERVE, &left);
    return left >= DISK_RESERVE / 2;
}

/* --- transactions --- */

static struct state_txn *
txn_new(struct state *s, const void *ctx, bool write)
{
    int rc = 0;
    struct state_txn *t = mem_new(NULL, struct state_txn);
    atomic_fetch_add(&s->refs, 1);
    t->s = s;
    t->ctx = ctx;
    t->write = write;
    buf_init(&t->row, ROW_MAX);
    t->t = write ? table_write_begin(s->env, &rc) : table_read_begin(s->env, &rc);
    if (t->t == NULL)
        state_fatal(s, write ? "begin a write" : "begin a read", rc);
    return t;
}

static void
txn_free(struct state_txn *t)
{
    buf_done(&t->row);
    state_close(t->s);
    mem_free(t);
}

struct state_txn *
state_read_begin(struct state *s, const void *ctx)
{
    return txn_new(s, ctx, false);
}

void
state_read_end(struct state_txn *t)
{
    if (t == NULL)
        return;
    ASSERT(!t->write);
    table_end(t->t);
    txn_free(t);
}

struct state_txn *
state_write_begin(struct state *s, const void *ctx)
{
    return txn_new(s, ctx, true);
}

bool
state_refused(const struct state_txn *t, struct err *e)
{
    if (t->refused.code != 0)
        *e = t->refused;
    return t->refused.code != 0;
}

int
state_commit(struct state_txn *t)
{
    ASSERT(t->write && t->refused.code == 0);
    int rc = table_commit(t->t);
    if (rc < 0 && !errno_is_shortage(-rc))
        state_fatal(t->s, "commit", rc);
    txn_free(t);
    return rc;
}

void
state_abort(struct state_txn *t)
{
    table_end(t->t);
    txn_free(t);
}

/* --- Raft indexes --- */

static const char applied_key[] = "applied", ahead_key[] = "ahead";

uint64_t
state_logged(const struct state_txn *t)
{
    struct slice v;
    int rc = table_get(t->t, t->s->t[T_META], SLICE(applied_key, sizeof(applied_key)), &v);
    return rc == 0 && v.n == 16 ? be64_get(v.p) : 0;
}

uint64_t
state_ahead(const struct state_txn *t)
{
    struct slice v;
    int rc = table_get(t->t, t->s->t[T_META], SLICE(ahead_key, sizeof(ahead_key)), &v);
    return rc == 0 && v.n == 8 ? be64_get(v.p) : 0;
}

uint64_t
state_applied(const struct state_txn *t)
{
    return state_logged(t) + state_ahead(t);
}

uint64_t
state_applied_term(struct state_txn *t)
{
    struct slice v;
    int rc = table_get(t->t, t->s->t[T_META], SLICE(applied_key, sizeof(applied_key)), &v);
    return rc == 0 && v.n == 16 ? be64_get((const uint8_t *)v.p + 8) : 0;
}

void
state_set_applied(struct state_txn *t, uint64_t index, uint64_t term)
{
    uint8_t v[16];
    ASSERT(t->write && index > state_logged(t) && term >= state_applied_term(t));
    be64_put(v, index);
    be64_put(v + 8, term);
    int rc = table_put(t->t, t->s->t[T_META], SLICE(applied_key, sizeof(applied_key)),
                       SLICE(v, sizeof(v)));
    if (rc < 0)
        state_fatal(t->s, "applied index", rc);
}

void
state_read_applied(unsigned table, struct slice key, struct slice val, uint64_t *applied)
{
    bool meta = table == STATE_ID_META;
    if (meta && val.n == 16 && key.n == sizeof(applied_key) &&
        memcmp(key.p, applied_key, key.n) == 0)
        *applied += be64_get(val.p);
    if (meta && val.n == 8 && key.n == sizeof(ahead_key) && memcmp(key.p, ahead_key, key.n) == 0)
        *applied += be64_get(val.p);
}

/* --- a restore --- */

static void
wipe_physical(struct state_txn *t, unsigned i)
{
    int rc = 0;
    struct table_scan *sc = table_scan(t->t, t->s->t[i], SLICE(NULL, 0));
    while (rc == 0 && table_next(sc))
        rc = table_scan_del(sc);
    if (rc == 0)
        rc = sc->error;
    table_scan_end(sc);
    if (rc < 0)
        state_fatal(t->s, "wipe", rc);
}

void
state_wipe(struct state_txn *t, enum state_table keep)
{
    ASSERT(t->write && t->follower == NULL);
    for (unsigned i = 0; i < T_ALL; i++)
        if (i != T_META && i != keep)
            wipe_physical(t, i);
    memset(t->jobs, 0, sizeof(t->jobs));
}

void
state_wipe_table(struct state_txn *t, enum state_table table)
{
    ASSERT(t->write);
    wipe_physical(t, table);
}

void
state_restored(struct state_txn *t, uint64_t index, uint64_t logged)
{
    uint8_t v[8];
    ASSERT(t->write && index >= logged);
    for (unsigned i = 0; i < STATE_TABLES; i++)
        state_touch(t, i, index);
    be64_put(v, index - logged);
    int rc =
        table_put(t->t, t->s->t[T_META], SLICE(ahead_key, sizeof(ahead_key)), SLICE(v, sizeof(v)));
    if (rc < 0)
        state_fatal(t->s, "restored index", rc);
}

uint64_t
state_index(struct state_txn *t, unsigned mask)
{
    uint64_t max = 0;
    for (unsigned i = 0; i < STATE_TABLES; i++) {
        if ((mask & STATE_BIT(i)) == 0)
            continue;
        uint8_t k[3] = {'i', 'x', (uint8_t)table_rows[i].id};
        struct slice v;
        if (table_get(t->t, t->s->t[T_META], SLICE(k, sizeof(k)), &v) == 0 && v.n == 8) {
            uint64_t ix = be64_get(v.p);
            max = ix > max ? ix : max;
        }
    }
    return max;
}
