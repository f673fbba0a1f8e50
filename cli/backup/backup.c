/* SPDX-License-Identifier: Apache-2.0
 *
 * operator snapshot save, restore, inspect and state: backups of the servers' state. A file is read
 * to its end before it is kept, sent or shown, so what is damaged is known here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/limits.h"
#include "cli/api.h"
#include "cli/format.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/uuid.h"
#include "server/raft/snapshot.h"
#include "server/state/state.h"

enum { PART = 8 * RESTORE_PIECE, TABLES_MAX = 128 };

/* --- a file --- */

struct backup {
    const uint8_t *p;
    size_t n;
    bool read;
    struct consensus_snapshot head;
};

static int
next_piece(void *arg, struct slice *ret)
{
    struct backup *b = arg;
    if (b->read)
        return 0;
    b->read = true;
    *ret = SLICE(b->p, b->n);
    return 1;
}

static int
pass_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    (void)arg, (void)table, (void)key, (void)val;
    return 0;
}

static bool
backup_scan(struct cmd *c, struct backup *b, const char *path, snapshot_row_fn *fn, void *arg)
{
    b->read = false;
    int rc = snapshot_scan(next_piece, b, c, &b->head, fn, arg);
    if (rc < 0)
        cmd_fail(c, "Error reading snapshot: \"%s\" is damaged, or is no snapshot of Paddock's",
                 path);
    return rc == 0;
}

/* False: said. */
static bool
backup_map(struct cmd *c, const char *path, struct backup *b)
{
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    *b = (struct backup){.p = NULL};
    if (fd < 0 || fstat(fd, &st) != 0) {
        cmd_fail(c, "Error opening snapshot file: %s: %s", path, err_name(-errno));
        return false;
    }
    b->n = (size_t)st.st_size;
    void *p = b->n > 0 ? mmap(NULL, b->n, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (p == MAP_FAILED) {
        cmd_fail(c, "Error opening snapshot file: \"%s\" is empty, or no file", path);
        return false;
    }
    b->p = p;
    return true;
}

static void
backup_unmap(struct backup *b)
{
    (void)munmap((void *)(uintptr_t)b->p, b->n);
}

/* --- save --- */

static bool
save_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    (void)r;
    return fd_write_full(*(const int *)arg, p, n) == 0;
}

static int
save_to(struct cmd *c, int fd, const char *stale)
{
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;
    struct http_ask *ask =
        api_ask(c, "GET", api_target(c, "/v1/operator/snapshot", "stale", stale, NULL));
    ask->on_body = save_body;
    ask->arg = &fd;
    if (c->fetch(c, c->address, ask, &r, &e) < 0)
        return cmd_fail(c, "Failed to get snapshot file: %s", e.text);
    if (r->status >= 300)
        return cmd_fail(c, "Failed to get snapshot file: Unexpected response code: %d (%.*s)",
                        r->status, (int)r->body_len, r->body);
    return fsync(fd) == 0 ? 0 : cmd_fail(c, "Error writing snapshot file: %s", err_name(-errno));
}

int
cmd_snapshot_save(struct cmd *c)
{
    bool stale = false;
    const struct opt opts[] = {
        {"stale", OPT_BOOL, &stale, NULL,
         "Any server makes it, also where none leads; the newest writes may be missing."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    const char *path =
        c->n_args > 0 ? c->args[0]
                      : mem_printf(c, "nomad-state-%lld.snap", (long long)cmd_now(c) / 1000000000);
    const char *tmp = mem_printf(c, "%s.part", path);
    auto_fd int fd = open(tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return cmd_fail(c, "Error writing snapshot file: %s: %s", tmp, err_name(-errno));
    struct backup b;
    rc = save_to(c, fd, stale ? "true" : NULL);
    if (rc == 0) {
        bool whole = backup_map(c, tmp, &b);
        rc = whole && backup_scan(c, &b, tmp, pass_row, NULL) ? 0 : 1;
        if (whole)
            backup_unmap(&b);
    }
    if (rc == 0 && rename(tmp, path) != 0)
        rc = cmd_fail(c, "Error writing snapshot file: %s: %s", path, err_name(-errno));
    if (rc != 0) {
        (void)unlink(tmp);
        return rc;
    }
    cmd_say(c, "State file written to %s", path);
    return 0;
}

/* --- restore --- */

static int
send_parts(struct cmd *c, const struct backup *b, bool force)
{
    char id[UUID_TEXT];
    uuid_make(id);
    for (size_t at = 0; at < b->n;) {
        struct http_resp *r = NULL;
        struct err e = ERR_INIT;
        size_t n = b->n - at < PART ? b->n - at : PART;
        bool more = at + n < b->n;
        struct http_ask *ask =
            api_ask(c, "PUT",
                    api_target(c, "/v1/operator/snapshot", "restore", id, "offset", fmt_u64(c, at),
                               "more", more ? "true" : NULL, "force", force ? "true" : NULL, NULL));
        ask->body = b->p + at;
        ask->body_len = n;
        ask->content_type = "application/octet-stream";
        if (c->fetch(c, c->address, ask, &r, &e) < 0)
            return cmd_fail(c, "Failed to restore snapshot: %s", e.text);
        if (r->status >= 300)
            return cmd_fail(c, "Failed to restore snapshot: Unexpected response code: %d (%.*s)",
                            r->status, (int)r->body_len, r->body);
        at += n;
    }
    return 0;
}

int
cmd_snapshot_restore(struct cmd *c)
{
    bool force = false;
    const struct opt opts[] = {
        {"force", OPT_BOOL, &force, NULL,
         "Also where the cluster has jobs or nodes and the snapshot is of another cluster."},
        {0}};
    struct backup b;
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!backup_map(c, c->args[0], &b))
        return 1;
    rc = backup_scan(c, &b, c->args[0], pass_row, NULL) ? send_parts(c, &b, force) : 1;
    backup_unmap(&b);
    if (rc == 0)
        cmd_say(c, "Snapshot Restored");
    return rc;
}

/* --- inspect, state --- */

struct counted {
    struct cmd *c;
    const char *name[TABLES_MAX];
    uint64_t rows[TABLES_MAX], bytes[TABLES_MAX];
    const char *cluster;
};

static int
count_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    struct counted *x = arg;
    auto_mem void *tmp = mem_ctx("row");
    struct state_dumped row;
    int rc = state_read_row(tmp, table, key, val, &row);
    if (rc < 0 || table >= TABLES_MAX)
        return -ERR_CORRUPT;
    if (table == state_table_id(STATE_CLUSTER))
        x->cluster = mem_strdup(x->c, ((struct cluster_metadata *)row.obj)->cluster_id);
    x->name[table] = row.name;
    x->rows[table]++;
    x->bytes[table] += key.n + val.n;
    return 0;
}

int
cmd_snapshot_inspect(struct cmd *c)
{
    struct backup b;
    struct counted x = {.c = c};
    int rc;
    if (!cmd_parse(c, NULL, &(struct cmd_args){.min = 1, .max = 1}, &rc))
        return rc;
    if (!backup_map(c, c->args[0], &b))
        return 1;
    bool ok = backup_scan(c, &b, c->args[0], count_row, &x);
    backup_unmap(&b);
    if (!ok)
        return 1;
    struct table t;
    table_init(&t, c, 2);
    table_row(&t, "Cluster ID", x.cluster);
    table_row(&t, "Size", fmt_u64(c, b.n));
    table_row(&t, "Index", fmt_u64(c, b.head.index));
    table_row(&t, "Term", fmt_u64(c, b.head.term));
    table_row(&t, "Servers", fmt_u64(c, b.head.conf.n));
    table_print_kv(&t);
    cmd_say(c, "%s", "");
    table_init(&t, c, 3);
    table_row(&t, "Table", "Rows", "Bytes");
    for (unsigned i = 0; i < TABLES_MAX; i++)
        if (x.name[i] != NULL)
            table_row(&t, x.name[i], fmt_u64(c, x.rows[i]), fmt_u64(c, x.bytes[i]));
    table_print(&t);
    return 0;
}

static int
print_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    struct cmd *c = arg;
    auto_mem void *tmp = mem_ctx("row");
    struct state_dumped row;
    struct buf b = BUF_INIT(SIZE_MAX);
    int rc = state_read_row(tmp, table, key, val, &row);
    if (rc < 0 || row.name == NULL)
        return rc;
    buf_printf(&b, "{\"Table\":\"%s\",\"Row\":", row.name);
    json_encode(&b, row.type, row.obj, JSON_HIDE_SECRETS);
    buf_puts(&b, "}\n");
    bool ok = fwrite(b.data, 1, b.len, c->out) == b.len;
    buf_done(&b);
    return ok ? 0 : -EIO;
}

int
cmd_snapshot_state(struct cmd *c)
{
    struct backup b;
    int rc;
    if (!cmd_parse(c, NULL, &(struct cmd_args){.min = 1, .max = 1}, &rc))
        return rc;
    if (!backup_map(c, c->args[0], &b))
        return 1;
    bool ok = backup_scan(c, &b, c->args[0], pass_row, NULL) &&
              backup_scan(c, &b, c->args[0], print_row, c);
    backup_unmap(&b);
    return ok ? 0 : 1;
}
