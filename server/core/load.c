/* SPDX-License-Identifier: Apache-2.0
 *
 * The core: a state from a snapshot.
 */
#include "common/fd.h"
#include "common/log.h"
#include "server/core/core_int.h"
#include "server/raft/snapshot.h"

enum { LOAD_BATCH = 10000 };

struct loader {
    struct state *s;
    struct state_txn *t;
    size_t n;
    unsigned table;
    size_t in_table;
};

static int
load_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    struct loader *l = arg;
    if (l->t == NULL)
        l->t = state_write_begin(l->s, NULL);
    int rc = state_load_row(l->t, table, key, val);
    l->n++;
    l->in_table = table == l->table ? l->in_table + 1 : 1;
    l->table = table;
    /* The last table says how far the state reaches: a few rows, which are never split. */
    if (rc == 0 && l->in_table % LOAD_BATCH == 0)
        rc = state_commit(TAKE(l->t));
    return rc;
}

int
core_load(struct core *c, struct state *s, uint64_t index, struct err *e)
{
    auto_mem void *tmp = mem_ctx("load");
    struct loader l = {.s = s};
    state_clear(s);
    int rc = snapshot_read(mem_printf(tmp, "%s/raft", c->o.dir), index, load_row, &l, e);
    if (l.t != NULL && rc == 0)
        rc = state_commit(TAKE(l.t));
    if (l.t != NULL)
        state_abort(l.t);
    /* the loaded part stays without the mark of the last rows, and is cleared first again */
    if (rc < 0)
        return err_set(e, rc, "rebuild the state below '%s': %s%s", c->o.dir, err_name(rc),
                       errno_is_shortage(-rc) ? ": free some space" : "");
    log_info("core", "rebuilt the state from a snapshot", "index", LOG_U64(index), "rows",
             LOG_U64(l.n), NULL);
    return 0;
}
