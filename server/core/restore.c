/* SPDX-License-Identifier: Apache-2.0
 *
 * A restore: the rows of a backup take the place of the state, in the transaction of the entry that
 * ends its pieces, on every server at the same index. The pieces are read twice: nothing is changed
 * by a file that is damaged.
 *
 * Rows of a backup may have higher indexes than the log. So later rows, and callers who wait, have
 * indexes that are ahead of it (state_ahead()).
 */
#include <string.h>

#include "api/terms.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/core/core_int.h"
#include "server/raft/snapshot.h"

/* The highest index of a backup: later ones must not overflow. */
#define APPLIED_MAX (UINT64_C(1) << 62)

enum { TABLES_MAX = 128 };

struct restore {
    struct state_txn *t;
    struct restore_piece *piece; /* the one that is read */
    uint64_t at;
    uint64_t applied; /* of the backup, when it was made */
    char *cluster;    /* whose it is */
    bool ours;        /* a key that seals its secrets is one of ours */
    bool seen[TABLES_MAX];
    unsigned table; /* of the row before, */
    struct key_of_row {
        uint8_t b[TABLE_KEY_MAX];
        size_t n;
    } key; /* and its key */
};

static int
next_piece(void *arg, struct slice *ret)
{
    struct restore *x = arg;
    mem_free(x->piece);
    x->piece = state_get(x->t, NULL, RESTORE, .n = x->at);
    if (x->piece == NULL)
        return 0;
    *ret = SLICE(x->piece->data.v, x->piece->data.n);
    x->at += x->piece->data.n;
    return 1;
}

/* Says whether the rows come in order, each once, as a state has them: a second one of a key would
 * leave the first one's index entries behind. */
static bool
row_follows(struct restore *x, unsigned table, struct slice key)
{
    size_t n = key.n < x->key.n ? key.n : x->key.n;
    int order = memcmp(key.p, x->key.b, n);
    bool same = table < TABLES_MAX && x->seen[table];
    if (table >= TABLES_MAX || key.n > sizeof(x->key.b) ||
        (same && (table != x->table || order < 0 || (order == 0 && key.n <= x->key.n))))
        return false;
    x->seen[table] = true;
    x->table = table;
    memcpy(x->key.b, key.p, key.n);
    x->key.n = key.n;
    return true;
}

static int
check_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    struct restore *x = arg;
    if (!row_follows(x, table, key))
        return -ERR_CORRUPT;
    auto_mem void *tmp = mem_ctx("row");
    struct state_dumped row;
    state_read_applied(table, key, val, &x->applied);
    int rc = state_read_row(tmp, table, key, val, &row);
    if (rc == 0 && table == state_table_id(STATE_CLUSTER)) {
        const struct cluster_metadata *m = row.obj;
        x->cluster = mem_strdup(x, str_or(m->cluster_id, ""));
    }
    if (rc == 0 && table == state_table_id(STATE_ROOT_KEYS) && !x->ours)
        x->ours = state_root_key(x->t, tmp, ((struct root_key *)row.obj)->key_id) != NULL;
    return rc;
}

/* Rows that tell of the state itself are not taken, nor what was sent of another backup. */
static int
take_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    struct restore *x = arg;
    bool ours = table == STATE_ID_META || table == state_table_id(STATE_RESTORE);
    return ours ? 0 : state_load_row(x->t, table, key, val);
}

static int
scan_pieces(struct restore *x, snapshot_row_fn *fn)
{
    auto_mem void *tmp = mem_ctx("backup");
    struct consensus_snapshot meta;
    x->at = 0;
    int rc = snapshot_scan(next_piece, x, tmp, &meta, fn, x);
    mem_free(x->piece);
    return rc;
}

/* Refuses what would end the data of a cluster by those of another. */
static int
check_backup(struct restore *x, const struct intent_restore_end *in, struct err *e)
{
    auto_mem void *tmp = mem_ctx("check");
    int rc = scan_pieces(x, check_row);
    if (rc < 0 || x->at != in->size || x->applied == 0 || x->applied > APPLIED_MAX)
        return err_set(e, -ERR_INVALID,
                       "this is no whole backup of a state: nothing was restored (%s)",
                       rc == 0 ? "not all of it has come" : err_name(rc));
    const struct cluster_metadata *ours = state_cluster(x->t, tmp);
    bool empty = !state_any_row(x->t, STATE_JOBS) && !state_any_row(x->t, STATE_NODES);
    const char *id = ours != NULL ? ours->cluster_id : "";
    bool same = x->ours || (!str_empty(id) && str_eq(id, str_or(x->cluster, "")));
    if (!in->force && !empty && !same)
        return err_set(e, -ERR_INVALID,
                       "the backup is of another cluster: no root key of it is one of ours. Say "
                       "-force to put it in the place of all that is here");
    return 0;
}

void
core_restore(struct state_txn *t, const struct entry *en, int64_t now, struct fsm_result *res)
{
    auto_mem struct restore *x = mem_new(NULL, struct restore);
    x->t = t;
    if (check_backup(x, res->restore, &res->err) == 0) {
        uint64_t index = x->applied >= res->index ? x->applied + 1 : res->index;
        state_wipe(t, STATE_RESTORE);
        int rc = scan_pieces(x, take_row);
        ASSERT(rc == 0); /* it is what was checked */
        fsm_restored(t, index, now, res);
        state_restored(t, index, en->index);
        res->index = index;
        res->changed = true;
        log_info("core", "restored the state from a backup", "index", LOG_U64(en->index),
                 "cluster_id", str_or(x->cluster, ""), NULL);
    } else {
        res->restore = NULL;
    }
    state_wipe_table(t, STATE_RESTORE);
}

uint64_t
core_restore_max(const struct core *c)
{
    return c->o.state_max / 3;
}
