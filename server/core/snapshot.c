/* SPDX-License-Identifier: Apache-2.0
 *
 * Local snapshots, which keep the log short: begun by the apply half between two batches, written
 * by a thread of their own from a read transaction of that moment; then the raft half cuts the log.
 */
#include <string.h>
#include <sys/prctl.h>

#include "common/log.h"
#include "common/mem.h"
#include "server/core/core_int.h"
#include "server/raft/snapshot.h"

struct snapshot_job {
    struct core *c;
    struct state_txn *t;
    struct consensus_snapshot *meta; /* a context of its own */
    int rc;
    struct err e;
};

static int
dump_source(void *src, snapshot_row_fn *row, void *arg)
{
    return state_dump(src, row, arg);
}

static void
snapshot_done(void *arg)
{
    struct snapshot_job *j = arg;
    struct core *c = j->c;
    core_join_snapshot(c);
    if (j->rc < 0) {
        log_warn("core", "could not write a snapshot; the log grows until the next try", "error",
                 j->e.text, NULL);
    } else {
        log_debug("core", "wrote a snapshot", "index", LOG_U64(j->meta->index), NULL);
        core_snapshot_stored(c, talloc_steal(NULL, TAKE(j->meta)));
    }
    mem_free(j);
}

static void *
snapshot_main(void *arg)
{
    struct snapshot_job *j = arg;
    prctl(PR_SET_NAME, "snapshot");
    auto_mem void *tmp = mem_ctx("snapshot");
    char *dir = mem_printf(tmp, "%s/raft", j->c->o.dir);
    j->rc = snapshot_write(dir, j->meta, dump_source, j->t, &j->e);
    state_read_end(TAKE(j->t));
    if (!core_post(j->c, snapshot_done, j))
        mem_free(j); /* shutting down; the file is there all the same */
    return NULL;
}

/* A snapshot is due before its time when the disk is nearly full and would have more room with it:
 * segments of the log, and the snapshot before it where the state has shrunk. Measured from the
 * last try, failed or not. */
static bool
snapshot_makes_room(struct core *c)
{
    struct apply_half *a = &c->apply;
    size_t used, spare;
    if (!c->disk_short || a->since_snapshot == 0)
        return false;
    state_file(c->state, &used, &spare);
    uint64_t gain = a->bytes_since_snapshot + (used < a->began_used ? a->began_used - used : 0);
    return gain >= CORE_SHORT_GAIN;
}

void
core_maybe_snapshot(struct core *c)
{
    struct apply_half *a = &c->apply;
    if (a->snapshotting || a->conf_index == 0 || c->stopping ||
        (a->since_snapshot < c->o.snapshot_entries &&
         a->bytes_since_snapshot < c->o.snapshot_bytes && !snapshot_makes_room(c)))
        return;
    ASSERT(a->applied > 0 && a->conf_index <= a->applied);
    a->since_snapshot = a->bytes_since_snapshot = 0;
    size_t spare;
    state_file(c->state, &a->began_used, &spare);
    struct snapshot_job *j = mem_new(NULL, struct snapshot_job);
    j->c = c;
    j->meta = mem_new(j, struct consensus_snapshot);
    *j->meta = (struct consensus_snapshot){
        .index = a->applied, .term = a->applied_term, .conf_index = a->conf_index};
    consensus_conf_copy(j->meta, &a->conf, &j->meta->conf);
    j->t = state_read_begin(c->state, j); /* here: the moment of `applied` */
    int rc = pthread_create(&a->snapshot_thread, NULL, snapshot_main, j);
    if (rc != 0) {
        log_warn("core", "cannot start the snapshot thread", "error", strerror(rc), NULL);
        state_read_end(j->t);
        mem_free(j);
        return;
    }
    a->snapshotting = true;
}

void
core_join_snapshot(struct core *c)
{
    if (!c->apply.snapshotting)
        return;
    pthread_join(c->apply.snapshot_thread, NULL);
    c->apply.snapshotting = false;
}
