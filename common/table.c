/* SPDX-License-Identifier: Apache-2.0
 *
 * common/table.h over LMDB. The only file that includes <lmdb.h>. In this order: its codes as ours,
 * the environment and its file, space in use and free, tables, transactions, rows, scans.
 *
 * A full disk must be an error, never a SIGBUS: the lock file is reserved before it is mapped, and
 * a new file gets its name only when it is whole.
 */
#include "common/table.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"

enum { LOCK_BYTES = (TABLE_READERS_MAX + 64) * 64 };

struct table_env {
    MDB_env *env;
    unsigned flags;
    size_t reserved; /* offset up to which the file has blocks */
    MDB_dbi dbi[TABLE_TABLES_MAX]; /* only for documentation of order; handles are dbi values */
    unsigned n;
};

struct table_txn {
    MDB_txn *txn;
    bool write;
};

struct scan_impl {
    struct table_scan pub;
    MDB_cursor *cur;
    bool started;
    bool back;
    size_t n_prefix;
    size_t n_from;
    uint8_t key[TABLE_KEY_MAX * 2]; /* prefix, then the key to start from */
};

static int
code_of(int rc)
{
    switch (rc) {
    case 0:
        return 0;
    case MDB_NOTFOUND:
        return -ERR_NOT_FOUND;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
        return -ERR_LIMIT;
    case MDB_READERS_FULL:
        return -ERR_BUSY;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PANIC: /* a meta page could not be written */
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
        return -ERR_CORRUPT;
    case MDB_BAD_VALSIZE:
        return -EINVAL;
    default:
        return rc > 0 ? -rc : -ERR_INTERNAL;
    }
}

static int
env_fail(struct err *e, int rc, const char *what, const char *path)
{
    return err_set(e, code_of(rc), "%s '%s': %s", what, path, mdb_strerror(rc));
}

/* LMDB writes to its lock file through a map: where a page of it has no block and the disk is full,
 * that is SIGBUS. All of it is reserved before it is mapped; what is beyond the readers we ask for
 * makes room for some more. */
static int
lock_reserve(const char *path, struct err *e)
{
    auto_mem void *tmp = mem_ctx("lock");
    const char *lock = mem_printf(tmp, "%s-lock", path);
    auto_fd int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int rc = fd < 0 ? errno : posix_fallocate(fd, 0, LOCK_BYTES);
    return rc != 0 ? err_errno(e, rc, "reserve '%s'", lock) : 0;
}

static int
env_make(const char *path, size_t map_bytes, unsigned flags, MDB_env **ret, struct err *e)
{
    MDB_env *env = NULL;
    int rc = (flags & TABLE_READ_ONLY) == 0 ? lock_reserve(path, e) : 0;
    if (rc < 0)
        return rc;
    rc = mdb_env_create(&env);
    if (rc != 0)
        return env_fail(e, rc, "make a table environment for", path);
    rc = mdb_env_set_mapsize(env, map_bytes);
    if (rc == 0)
        rc = mdb_env_set_maxdbs(env, TABLE_TABLES_MAX);
    if (rc == 0)
        rc = mdb_env_set_maxreaders(env, TABLE_READERS_MAX);
    unsigned f = MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD;
    if (flags & TABLE_NOSYNC)
        f |= MDB_NOSYNC | MDB_NOMETASYNC;
    if (flags & TABLE_READ_ONLY)
        f |= MDB_RDONLY;
    if (rc == 0)
        rc = mdb_env_open(env, path, f, 0600);
    int dead;
    if (rc == 0 && (flags & TABLE_READ_ONLY) == 0)
        rc = mdb_reader_check(env, &dead);
    if (rc != 0) {
        mdb_env_close(env);
        return env_fail(e, rc, "open the table file", path);
    }
    *ret = env;
    return 0;
}

/* A new file gets its name when it is whole: LMDB refuses one whose first write was torn. */
static int
file_make(const char *path, size_t map_bytes, unsigned flags, struct err *e)
{
    if (access(path, F_OK) == 0 || (flags & TABLE_READ_ONLY) != 0)
        return 0;
    auto_mem void *tmp = mem_ctx("table file");
    const char *fresh = mem_printf(tmp, "%s.new", path);
    const char *lock = mem_printf(tmp, "%s.new-lock", path);
    MDB_env *env = NULL;
    (void)unlink(fresh);
    int rc = env_make(fresh, map_bytes, flags, &env, e);
    if (rc < 0)
        return rc;
    if ((flags & TABLE_NOSYNC) == 0)
        rc = mdb_env_sync(env, 1);
    mdb_env_close(env);
    (void)unlink(lock);
    if (rc == 0 && rename(fresh, path) != 0)
        rc = errno;
    if (rc == 0 && (flags & TABLE_NOSYNC) == 0)
        rc = -dir_fsync_parent(AT_FDCWD, path);
    return rc != 0 ? env_fail(e, rc, "make the table file", path) : 0;
}

int
table_env_open(const char *path, size_t map_bytes, unsigned flags, struct table_env **ret,
               struct err *e)
{
    MDB_env *env = NULL;
    int rc = file_make(path, map_bytes, flags, e);
    if (rc == 0)
        rc = env_make(path, map_bytes, flags, &env, e);
    if (rc < 0)
        return rc;
    struct table_env *t = mem_new(NULL, struct table_env);
    t->env = env;
    t->flags = flags;
    *ret = t;
    return 0;
}

void
table_env_close(struct table_env *env)
{
    if (env == NULL)
        return;
    mdb_env_close(env->env);
    mem_free(env);
}

/* Pages of the file that a writer will use again; dbi 0 holds them, as lists that begin with their
 * length. */
static size_t
free_pages(struct table_env *env)
{
    MDB_txn *txn = NULL;
    MDB_cursor *cur = NULL;
    MDB_val k, v;
    size_t n = 0;

    if (mdb_txn_begin(env->env, NULL, MDB_RDONLY, &txn) != 0)
        return 0;
    if (mdb_cursor_open(txn, 0, &cur) == 0) {
        while (mdb_cursor_get(cur, &k, &v, MDB_NEXT) == 0) {
            size_t some = 0;
            memcpy(&some, v.mv_data, v.mv_size < sizeof(some) ? v.mv_size : sizeof(some));
            n += some;
        }
        mdb_cursor_close(cur);
    }
    mdb_txn_abort(txn);
    return n;
}

size_t
table_env_usage(struct table_env *env, size_t exact_from)
{
    MDB_envinfo info;
    MDB_stat st;
    ASSERT(mdb_env_info(env->env, &info) == 0);
    ASSERT(mdb_env_stat(env->env, &st) == 0);
    size_t pages = info.me_last_pgno + 1;
    /* the file never shrinks: what was deleted is counted where it begins to matter */
    if (pages * st.ms_psize > exact_from) {
        size_t spare = free_pages(env);
        pages -= spare < pages ? spare : pages;
    }
    return pages * (size_t)st.ms_psize;
}

size_t
table_env_free(struct table_env *env)
{
    MDB_stat st;
    ASSERT(mdb_env_stat(env->env, &st) == 0);
    return free_pages(env) * (size_t)st.ms_psize;
}

void
table_env_reserve(struct table_env *env, size_t bytes, size_t *ret_left)
{
    MDB_envinfo info;
    MDB_stat st;
    int fd;
    ASSERT(mdb_env_info(env->env, &info) == 0);
    ASSERT(mdb_env_stat(env->env, &st) == 0);
    size_t used = (info.me_last_pgno + 1) * (size_t)st.ms_psize;
    if (env->reserved < used + bytes && mdb_env_get_fd(env->env, &fd) == 0) {
        /* Some more than asked for, so that not every commit comes here; on a full disk what an
         * earlier process may have left. */
        for (size_t want = 2 * bytes; want >= bytes / 2; want /= 2) {
            if (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)used, (off_t)want) == 0) {
                env->reserved = used + want;
                break;
            }
            if (errno != ENOSPC && errno != EDQUOT) { /* cannot be had here: do not ask again */
                env->reserved = SIZE_MAX / 2;
                break;
            }
        }
    }
    if (ret_left)
        *ret_left = env->reserved > used ? env->reserved - used : 0;
}

int
table_open(struct table_env *env, const char *name, unsigned *ret_table, struct err *e)
{
    MDB_txn *txn = NULL;
    MDB_dbi dbi;
    bool ro = (env->flags & TABLE_READ_ONLY) != 0;
    int rc = mdb_txn_begin(env->env, NULL, ro ? MDB_RDONLY : 0, &txn);
    if (rc == 0) {
        rc = mdb_dbi_open(txn, name, ro ? 0 : MDB_CREATE, &dbi);
        if (rc == 0)
            rc = mdb_txn_commit(txn);
        else
            mdb_txn_abort(txn);
    }
    if (rc != 0)
        return env_fail(e, rc, "open the table", name);
    env->dbi[env->n++ % TABLE_TABLES_MAX] = dbi;
    *ret_table = dbi;
    return 0;
}

static struct table_txn *
txn_begin(struct table_env *env, unsigned flags, int *ret_code)
{
    MDB_txn *txn = NULL;
    int rc = mdb_txn_begin(env->env, NULL, flags, &txn);
    *ret_code = code_of(rc);
    if (rc != 0)
        return NULL;
    struct table_txn *t = mem_new(NULL, struct table_txn);
    t->txn = txn;
    t->write = (flags & MDB_RDONLY) == 0;
    return t;
}

struct table_txn *
table_read_begin(struct table_env *env, int *ret_code)
{
    return txn_begin(env, MDB_RDONLY, ret_code);
}

struct table_txn *
table_write_begin(struct table_env *env, int *ret_code)
{
    return txn_begin(env, 0, ret_code);
}

void
table_end(struct table_txn *t)
{
    if (t == NULL)
        return;
    mdb_txn_abort(t->txn);
    mem_free(t);
}

int
table_commit(struct table_txn *t)
{
    ASSERT(t->write);
    int rc = mdb_txn_commit(t->txn);
    mem_free(t);
    return code_of(rc);
}

static MDB_val
val_of(struct slice s)
{
    return (MDB_val){.mv_size = s.n, .mv_data = (void *)(uintptr_t)s.p};
}

int
table_get(struct table_txn *t, unsigned table, struct slice key, struct slice *ret)
{
    if (key.n == 0 || key.n > TABLE_KEY_MAX)
        return -EINVAL;
    MDB_val k = val_of(key);
    MDB_val v;
    int rc = mdb_get(t->txn, table, &k, &v);
    if (rc == 0)
        *ret = SLICE(v.mv_data, v.mv_size);
    return code_of(rc);
}

int
table_put(struct table_txn *t, unsigned table, struct slice key, struct slice val)
{
    if (key.n == 0 || key.n > TABLE_KEY_MAX)
        return -EINVAL;
    MDB_val k = val_of(key);
    MDB_val v = val_of(val);
    return code_of(mdb_put(t->txn, table, &k, &v, 0));
}

int
table_del(struct table_txn *t, unsigned table, struct slice key)
{
    if (key.n == 0 || key.n > TABLE_KEY_MAX)
        return -EINVAL;
    MDB_val k = val_of(key);
    return code_of(mdb_del(t->txn, table, &k, NULL));
}

struct table_scan *
table_scan_from(struct table_txn *t, unsigned table, struct slice prefix, struct slice from)
{
    ASSERT(prefix.n <= TABLE_KEY_MAX && from.n <= TABLE_KEY_MAX);
    struct scan_impl *s = mem_new(NULL, struct scan_impl);
    s->n_prefix = prefix.n;
    s->n_from = from.n;
    if (prefix.n > 0)
        memcpy(s->key, prefix.p, prefix.n);
    if (from.n > 0)
        memcpy(s->key + TABLE_KEY_MAX, from.p, from.n);
    s->pub.error = code_of(mdb_cursor_open(t->txn, table, &s->cur));
    return &s->pub;
}

struct table_scan *
table_scan(struct table_txn *t, unsigned table, struct slice prefix)
{
    return table_scan_from(t, table, prefix, prefix);
}

struct table_scan *
table_scan_back(struct table_txn *t, unsigned table, struct slice prefix, struct slice from)
{
    struct table_scan *s = table_scan_from(t, table, prefix, from);
    ((struct scan_impl *)s)->back = true;
    return s;
}

/* The first key after all that have the prefix, in k (TABLE_KEY_MAX bytes). 0: there is none. */
static size_t
prefix_end(const struct scan_impl *s, uint8_t *k)
{
    size_t n = s->n_prefix;
    memcpy(k, s->key, n);
    while (n > 0 && k[n - 1] == UINT8_MAX)
        n--;
    if (n > 0)
        k[n - 1]++;
    return n;
}

static int
scan_last(struct scan_impl *s, MDB_val *k, MDB_val *v)
{
    uint8_t end[TABLE_KEY_MAX];
    struct slice at = SLICE(s->key + TABLE_KEY_MAX, s->n_from);
    if (s->n_from == 0)
        at = SLICE(end, prefix_end(s, end));
    if (at.n == 0)
        return mdb_cursor_get(s->cur, k, v, MDB_LAST);
    *k = val_of(at);
    int rc = mdb_cursor_get(s->cur, k, v, MDB_SET_RANGE);
    if (rc == MDB_NOTFOUND)
        return mdb_cursor_get(s->cur, k, v, MDB_LAST);
    bool there = s->n_from > 0 && k->mv_size == at.n && memcmp(k->mv_data, at.p, at.n) == 0;
    return rc != 0 || there ? rc : mdb_cursor_get(s->cur, k, v, MDB_PREV);
}

bool
table_next(struct table_scan *pub)
{
    struct scan_impl *s = (struct scan_impl *)pub;
    if (s->pub.error != 0)
        return false;
    MDB_val k;
    MDB_val v;
    int rc;
    if (s->back) {
        rc = s->started ? mdb_cursor_get(s->cur, &k, &v, MDB_PREV) : scan_last(s, &k, &v);
        s->started = true;
    } else if (!s->started) {
        k = val_of(SLICE(s->key + TABLE_KEY_MAX, s->n_from));
        rc = mdb_cursor_get(s->cur, &k, &v, s->n_from > 0 ? MDB_SET_RANGE : MDB_FIRST);
        s->started = true;
    } else {
        rc = mdb_cursor_get(s->cur, &k, &v, MDB_NEXT);
    }
    if (rc != 0) {
        s->pub.error = rc == MDB_NOTFOUND ? 0 : code_of(rc);
        return false;
    }
    if (k.mv_size < s->n_prefix || memcmp(k.mv_data, s->key, s->n_prefix) != 0)
        return false;
    s->pub.key = SLICE(k.mv_data, k.mv_size);
    s->pub.val = SLICE(v.mv_data, v.mv_size);
    return true;
}

int
table_scan_del(struct table_scan *pub)
{
    struct scan_impl *s = (struct scan_impl *)pub;
    return code_of(mdb_cursor_del(s->cur, 0));
}

void
table_scan_end(struct table_scan *pub)
{
    struct scan_impl *s = (struct scan_impl *)pub;
    if (s == NULL)
        return;
    if (s->cur != NULL)
        mdb_cursor_close(s->cur);
    mem_free(s);
}
