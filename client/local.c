/* SPDX-License-Identifier: Apache-2.0
 *
 * The local state; see state.h. Rows are msgpack by schema: "alloc" by allocation id, "task" by
 * allocation id + '/' + task name.
 */
#include "client/local.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/limits.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/table.h"
#include "common/uuid.h"
#include "net/limits.h"

enum { STATE_RETRY_MS = 500 }; /* while the disk is full */

struct op {
    bool task;
    bool del;
    const char *key;
    const void *val;
    size_t n;
};

struct waiter {
    state_synced *fn;
    void *arg;
};

struct batch { /* a talloc context */
    struct local *state;
    struct op *ops;
    size_t n, cap;
    struct waiter *waiters;
    size_t n_waiters;
    int code;
};

struct local {
    struct loop *loop;
    struct table_env *env;
    size_t map_bytes;
    unsigned allocs;
    unsigned tasks;
    const char *dir;
    int dirfd;
    struct batch *next;   /* being filled */
    struct batch *flight; /* on the worker */
    bool posted;          /* commit_soon is to come */
    struct timer *retry;  /* the disk was full: try again */
    bool full;            /* told once */
    bool stopping;        /* what does not get to the disk now never will */
};

static void commit_post(struct local *s);

/* --- open --- */

int
local_open(struct loop *loop, const char *dir, size_t map_bytes, struct local **ret, struct err *e)
{
    int r = dir_make(AT_FDCWD, dir, 0700);
    if (r < 0)
        return err_errno(e, -r, "make the client's state directory \"%s\"", dir);
    auto_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, errno, "open the client's state directory \"%s\"", dir);
    struct local *s = mem_new(NULL, struct local);
    s->loop = loop;
    s->dirfd = -1;
    s->map_bytes = map_bytes;
    s->dir = mem_strdup(s, dir);
    char *path = mem_printf(s, "%s/state.db", dir);
    r = table_env_open(path, map_bytes, 0, &s->env, e);
    if (r == 0)
        r = table_open(s->env, "alloc", &s->allocs, e);
    if (r == 0)
        r = table_open(s->env, "task", &s->tasks, e);
    if (r == -ERR_CORRUPT)
        err_prefix(e,
                   "the client's local state is damaged; remove \"%s\" and what this node runs is "
                   "forgotten and started anew",
                   path);
    if (r < 0) {
        table_env_close(s->env);
        talloc_free(s);
        return r;
    }
    s->dirfd = TAKE_FD(fd);
    *ret = s;
    return 0;
}

void
local_stop(struct local *s)
{
    s->stopping = true;
    if (!s->retry)
        return;
    timer_stop(TAKE(s->retry));
    commit_post(s);
}

bool
local_busy(const struct local *s)
{
    return s->flight != NULL || s->posted;
}

void
local_close(struct local *s)
{
    if (!s)
        return;
    ASSERT(!local_busy(s));
    mem_free(s->next);
    table_env_close(s->env);
    fd_close(&s->dirfd);
    talloc_free(s);
}

static int
id_file(struct local *s, const char *name, char out[UUID_TEXT], struct err *e)
{
    auto_mem void *tmp = mem_ctx("id");
    char *text = NULL;
    size_t n = 0;
    int r = file_read(tmp, s->dirfd, name, 256, &text, &n);
    if (r == 0) {
        while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
            text[--n] = 0;
        if (!uuid_valid(text))
            return err_set(e, -ERR_CORRUPT,
                           "\"%s\" in the client's state directory is not a UUID: remove it to "
                           "register as a new node",
                           name);
        str_copy(out, UUID_TEXT, text);
        return 0;
    }
    if (r != -ENOENT)
        return err_errno(e, r == -ERR_LIMIT ? EFBIG : -r,
                         "read \"%s\" in the client's state directory", name);
    uuid_make(out);
    r = file_write_atomic(s->dirfd, name, out, strlen(out), 0600);
    return r < 0 ? err_errno(e, -r, "write \"%s\" in the client's state directory", name) : 0;
}

int
local_node_ids(struct local *s, char id[UUID_TEXT], char secret[UUID_TEXT], struct err *e)
{
    int r = id_file(s, "client-id", id, e);
    return r < 0 ? r : id_file(s, "secret-id", secret, e);
}

enum { RUN_BITS = 32 }; /* reports of a run */

int
local_run(struct local *s, uint64_t *ret, struct err *e)
{
    static const char name[] = "run";
    auto_mem void *tmp = mem_ctx("run");
    char *text = NULL;
    size_t n = 0;
    uint64_t last = 0, run = (uint64_t)(clock_wall_ns() / NS_PER_S);
    int r = file_read(tmp, s->dirfd, name, 256, &text, &n);

    if (r < 0 && r != -ENOENT)
        return err_errno(e, r == -ERR_LIMIT ? EFBIG : -r,
                         "read \"%s\" in the client's state directory", name);
    if (r == 0 && (num_parse_u64(text, &last) < 0 || last >= UINT32_MAX))
        return err_set(e, -ERR_CORRUPT,
                       "\"%s\" in the client's state directory is no number: remove it", name);
    run = run > last ? run : last + 1;
    text = mem_printf(tmp, "%llu", (unsigned long long)run);
    r = file_write_atomic(s->dirfd, name, text, strlen(text), 0600);
    *ret = run << RUN_BITS;
    if (r < 0 && errno_is_shortage(-r)) /* by the clock it is greater all the same */
        return 0;
    return r < 0 ? err_errno(e, -r, "write \"%s\" in the client's state directory", name) : 0;
}

/* --- writing --- */

static struct batch *
batch_of(struct local *s)
{
    if (!s->next) {
        s->next = mem_new(s, struct batch);
        s->next->state = s;
    }
    return s->next;
}

static void commit_soon(void *arg);

/* In a later turn, so that all of a turn is one commit. */
static void
commit_post(struct local *s)
{
    if (s->posted || s->flight || s->retry)
        return;
    s->posted = true;
    loop_post(s->loop, commit_soon, s);
}

static void
local_queue(struct local *s, struct op op)
{
    struct batch *b = batch_of(s);
    if (b->n == b->cap) {
        b->cap = b->cap ? b->cap * 2 : 1;
        mem_resize(b, b->ops, struct op, b->cap);
    }
    b->ops[b->n++] = op;
}

static void
queue_put(struct local *s, bool task, const char *key, const struct type *t, const void *obj)
{
    auto_buf struct buf out = BUF_INIT(CLIENT_ROW_MAX);
    mp_encode(&out, t, obj);
    if (buf_error(&out)) {
        log_error("client", "record is too large for the local state", "key", key, NULL);
        return;
    }
    struct batch *b = batch_of(s);
    local_queue(s, (struct op){.task = task,
                               .key = mem_strdup(b, key),
                               .val = mem_dup(b, out.data, out.len),
                               .n = out.len});
}

void
local_put_alloc(struct local *s, const struct client_alloc *a)
{
    queue_put(s, false, a->alloc->id, &type_client_alloc, a);
    commit_post(s);
}

void
local_put_ack(struct local *s, const struct client_alloc *a)
{
    queue_put(s, false, a->alloc->id, &type_client_alloc, a);
}

static const char *
task_key(const void *ctx, const char *alloc_id, const char *task)
{
    return mem_printf(ctx, "%s/%.*s", alloc_id, CLIENT_KEY_MAX, task);
}

void
local_put_task(struct local *s, const char *alloc_id, const struct client_task *t)
{
    auto_mem void *tmp = mem_ctx("key");
    queue_put(s, true, task_key(tmp, alloc_id, t->name), &type_client_task, t);
    commit_post(s);
}

static void
queue_del(struct local *s, bool task, const char *key)
{
    struct batch *b = batch_of(s);
    local_queue(s, (struct op){.task = task, .del = true, .key = mem_strdup(b, key)});
}

void
local_del_alloc(struct local *s, const char *alloc_id)
{
    auto_mem void *tmp = mem_ctx("key");
    queue_del(s, false, alloc_id);
    queue_del(s, true, mem_printf(tmp, "%s/", alloc_id)); /* all with this prefix */
    commit_post(s);
}

/* --- committing --- */

static int
del_prefix(struct table_txn *t, unsigned table, const char *prefix)
{
    struct table_scan *scan = table_scan(t, table, SLICE(prefix, strlen(prefix)));
    int r = 0;
    while (r == 0 && table_next(scan))
        r = table_scan_del(scan);
    if (r == 0)
        r = scan->error;
    table_scan_end(scan);
    return r;
}

static int
local_apply(struct local *s, struct table_txn *t, const struct op *op)
{
    struct slice key = SLICE(op->key, strlen(op->key));
    if (op->del && op->task)
        return del_prefix(t, s->tasks, op->key);
    unsigned table = op->task ? s->tasks : s->allocs;
    if (op->del) {
        int r = table_del(t, table, key);
        return r == -ERR_NOT_FOUND ? 0 : r;
    }
    return table_put(t, table, key, SLICE(op->val, op->n));
}

struct seen {
    UT_hash_handle hh;
    const char *key;
};

static bool
seen_key(struct seen *set, const char *key, size_t n)
{
    struct seen *x = NULL;
    HASH_FIND(hh, set, key, n, x);
    return x != NULL;
}

/* Replaced by a later write of the row, or removed with all rows of its allocation. */
static bool
local_superseded(struct seen *set, const struct op *op)
{
    const char *slash = strchr(op->key, '/'); /* only keys of tasks have one */
    return seen_key(set, op->key, strlen(op->key)) ||
           (slash && seen_key(set, op->key, (size_t)(slash - op->key) + 1));
}

/* Keeps of each row the last word only, in order. */
static void
last_words(struct batch *b)
{
    struct op *v = mem_array(b, struct op, b->n);
    struct seen *set = NULL, *rows = mem_array(NULL, struct seen, b->n);
    size_t n = b->n;
    for (size_t i = b->n; i-- > 0;) { /* newest first */
        const struct op *op = &b->ops[i];
        if (local_superseded(set, op))
            continue;
        rows[i].key = op->key;
        HASH_ADD_KEYPTR(hh, set, op->key, strlen(op->key), &rows[i]);
        v[--n] = *op;
    }
    HASH_CLEAR(hh, set);
    mem_free(rows);
    memmove(v, v + n, (b->n - n) * sizeof(*v));
    mem_free(b->ops);
    b->ops = v;
    b->n = b->cap = b->n - n;
}

/* To remove takes pages as well: rows leave some free. */
static bool
has_room(struct local *s, const struct op *ops, size_t n)
{
    size_t room = s->map_bytes - s->map_bytes / 16, want = 0;
    for (size_t i = 0; i < n; i++)
        want += ops[i].n;
    return want == 0 || (want < room && table_env_usage(s->env, room - want) <= room - want);
}

static int
commit_ops(struct local *s, const struct op *ops, size_t n)
{
    int code = 0;
    if (!has_room(s, ops, n))
        return -ERR_LIMIT;
    struct table_txn *t = table_write_begin(s->env, &code);
    if (!t)
        return code;
    code = 0;
    for (size_t i = 0; code == 0 && i < n; i++)
        code = local_apply(s, t, &ops[i]);
    if (code == 0)
        return table_commit(t);
    table_end(t);
    return code;
}

/* The map is full: what is removed makes room for the others, in later transactions. Of rows that
 * differ the order does not matter, and nobody was told yet that they are durable. */
static int
commit_full(struct local *s, struct batch *b)
{
    last_words(b);
    size_t dels = 0;
    struct op *v = mem_array(b, struct op, b->n);
    for (size_t i = 0; i < b->n; i++)
        if (b->ops[i].del)
            v[dels++] = b->ops[i];
    for (size_t i = 0, n = dels; i < b->n; i++)
        if (!b->ops[i].del)
            v[n++] = b->ops[i];
    mem_free(b->ops);
    b->ops = v;
    b->cap = b->n;
    size_t done = 0;
    int code = commit_ops(s, v, dels);
    if (code == 0)
        done = dels;
    while (code == 0 && done < b->n) {
        code = commit_ops(s, v + done, 1);
        done += code == 0;
    }
    b->n -= done;
    memmove(v, v + done, b->n * sizeof(*v));
    return code;
}

static void
commit_work(void *arg)
{
    struct batch *b = arg;
    struct local *s = b->state;
    table_env_reserve(s->env, CLIENT_RESERVE, NULL);
    b->code = commit_ops(s, b->ops, b->n);
    if (b->code == -ERR_LIMIT)
        b->code = commit_full(s, b);
}

static void commit_next(struct local *s);

static void
on_retry(void *arg)
{
    struct local *s = arg;
    s->retry = NULL;
    commit_next(s);
}

/* Puts the rows that could not be written before those queued meanwhile; of each row only the last
 * word, so that a disk that stays full costs no more memory than there are rows. */
static void
carry_over(struct local *s, struct batch *failed)
{
    struct batch *b = batch_of(s);
    size_t n = failed->n + b->n;
    struct op *v = mem_array(b, struct op, n);
    for (size_t i = 0; i < n; i++)
        v[i] = i < failed->n ? failed->ops[i] : b->ops[i - failed->n];
    mem_free(b->ops);
    b->ops = v;
    b->n = b->cap = n;
    last_words(b);
    for (size_t i = 0; i < b->n; i++) {
        b->ops[i].key = talloc_steal(b, b->ops[i].key);
        b->ops[i].val = b->ops[i].val ? talloc_steal(b, b->ops[i].val) : NULL;
    }
}

/* Waits for space, a want that ends without help, and leaves after any other error: nobody knows
 * what is on the disk. */
static void
commit_failed(struct local *s, struct batch *b)
{
    if (!errno_is_shortage(-b->code) && b->code != -ERR_LIMIT) {
        log_error("client", "the disk failed under the local state: leaving", "dir", s->dir,
                  "error", err_name(b->code), NULL);
        log_fatal_exit();
    }
    if (!s->full)
        log_error("client", "the local state waits for space: free some", "dir", s->dir, "error",
                  err_name(b->code), NULL);
    s->full = true;
    if (s->stopping)
        return;
    carry_over(s, b);
    s->retry = timer_start(s->loop, STATE_RETRY_MS, on_retry, s);
}

static void
commit_done(void *arg)
{
    struct batch *b = arg;
    struct local *s = b->state;
    s->flight = NULL;
    if (b->code < 0)
        commit_failed(s, b);
    else if (s->full)
        log_info("client", "the local state has space again", "dir", s->dir, NULL);
    s->full = b->code < 0;
    if (!s->retry)
        commit_next(s);
    for (size_t i = 0; i < b->n_waiters; i++)
        b->waiters[i].fn(b->waiters[i].arg, b->code);
    talloc_free(b);
}

static void
commit_next(struct local *s)
{
    if (s->flight || !s->next)
        return;
    s->flight = TAKE(s->next);
    loop_work(s->loop, commit_work, commit_done, s->flight);
}

static void
commit_soon(void *arg)
{
    struct local *s = arg;
    s->posted = false;
    commit_next(s);
}

void
local_sync(struct local *s, state_synced *fn, void *arg)
{
    struct batch *b = batch_of(s);
    mem_resize(b, b->waiters, struct waiter, b->n_waiters + 1);
    b->waiters[b->n_waiters++] = (struct waiter){fn, arg};
    commit_post(s);
}

/* --- reading --- */

static void *
local_decode(const void *ctx, const struct type *type, struct slice key, struct slice val)
{
    void *obj = NULL;
    struct err e = ERR_INIT;
    struct budget b = {.left = RPC_DECODE_MAX}; /* as it came */
    if (mp_decode(ctx, type, val, &b, &obj, &e) == 0)
        return obj;
    auto_mem void *tmp = mem_ctx("key");
    log_error("client", "row of the local state does not decode", "key",
              mem_strndup(tmp, key.p, key.n), "error", e.text, NULL);
    return NULL;
}

static bool
task_valid(const struct client_task *t)
{
    return t && t->state && !str_empty(t->name) && !str_empty(t->state->state) && t->phase >= 0 &&
           t->phase <= 7;
}

static void
load_tasks(struct local *s, struct table_txn *txn, const void *ctx, struct client_alloc *a,
           state_row *row, void *arg)
{
    auto_mem void *tmp = mem_ctx("load");
    const char *prefix = mem_printf(tmp, "%s/", a->alloc->id);
    struct client_task **tasks = NULL;
    size_t n = 0;
    struct table_scan *scan = table_scan(txn, s->tasks, SLICE(prefix, strlen(prefix)));
    while (table_next(scan)) {
        struct client_task *t = local_decode(ctx, &type_client_task, scan->key, scan->val);
        if (!task_valid(t))
            continue;
        mem_resize(tmp, tasks, struct client_task *, n + 1);
        tasks[n++] = t;
    }
    table_scan_end(scan);
    row(arg, a, tasks, n);
}

int
local_load(struct local *s, const void *ctx, state_row *row, void *arg, struct err *e)
{
    int code = 0;
    struct table_txn *txn = table_read_begin(s->env, &code);
    if (!txn)
        return err_set(e, code, "read the client's local state: %s", err_name(code));
    struct table_scan *scan = table_scan(txn, s->allocs, SLICE("", 0));
    while (table_next(scan)) {
        struct client_alloc *a = local_decode(ctx, &type_client_alloc, scan->key, scan->val);
        if (!a || !a->alloc || !a->alloc->id || !a->alloc->job) {
            mem_free(a);
            continue;
        }
        load_tasks(s, txn, ctx, a, row, arg);
    }
    int r = scan->error;
    table_scan_end(scan);
    table_end(txn);
    return r < 0 ? err_set(e, r, "read the client's local state: %s", err_name(r)) : 0;
}
