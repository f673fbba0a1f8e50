/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's memory over its own death: node id and secret (files), allocations and the records
 * of their tasks (a table file, synced). Writes of one turn of the loop are committed together on a
 * worker thread; `local_sync` tells when what was queued before it is on disk. Reading happens
 * once, at start.
 *
 * All functions on the loop thread.
 */
#ifndef PADDOCK_CLIENT_LOCAL_H
#define PADDOCK_CLIENT_LOCAL_H

#include "api/api.h"
#include "common/err.h"
#include "common/uuid.h"
#include "net/loop.h"

struct local;

/* Makes the directory (0700) where it is missing. Rows take at most map_bytes: at that, as on a
 * full disk. */
int local_open(struct loop *loop, const char *dir, size_t map_bytes, struct local **ret,
               struct err *e);
/* From here on a full disk is not waited for: what cannot be written is lost. */
void local_stop(struct local *s);
/* Closes the state. Rows that were queued and not synced may be lost. */
void local_close(struct local *s);
/* True while a commit is to come or on the worker thread: do not close. */
bool local_busy(const struct local *s);

/* Reads DIR/client-id and DIR/secret-id, making them (0600, durable) where they are missing. */
int local_node_ids(struct local *s, char id[UUID_TEXT], char secret[UUID_TEXT], struct err *e);

/* Numbers of this run's reports begin above it; above those of the runs before, also of a restored
 * copy. */
int local_run(struct local *s, uint64_t *ret, struct err *e);

/* Encoded before the call returns. */
void local_put_alloc(struct local *s, const struct client_alloc *a);
/* Goes to disk with the next commit: what is lost with it is reported once more. */
void local_put_ack(struct local *s, const struct client_alloc *a);
void local_put_task(struct local *s, const char *alloc_id, const struct client_task *t);
/* The allocation and its tasks. */
void local_del_alloc(struct local *s, const char *alloc_id);

/* `code` 0: everything queued before is durable; -ENOSPC and the like: not yet, the disk is full
 * (it is tried again without being asked; ask again to be told). Any other failure of the disk ends
 * the process. Never from inside the call. */
typedef void state_synced(void *arg, int code);
void local_sync(struct local *s, state_synced *fn, void *arg);

/* One call per allocation, with its tasks in the order of names; objects are owned by ctx. Rows
 * that do not decode are logged and left out. */
typedef void state_row(void *arg, struct client_alloc *a, struct client_task **tasks, size_t n);
int local_load(struct local *s, const void *ctx, state_row *row, void *arg, struct err *e);

#endif
