/* SPDX-License-Identifier: Apache-2.0
 *
 * What the endpoints share: reads that may block, writes, checks. Handlers run on the loop thread;
 * a read's query runs on a worker thread of the loop with a snapshot of its own.
 */
#ifndef PADDOCK_SERVER_RPC_ENDPOINT_INT_H
#define PADDOCK_SERVER_RPC_ENDPOINT_INT_H

#include "codec/codec.h"
#include "common/buf.h"
#include "net/loop.h"
#include "net/rpc.h"
#include "server/eval.h"
#include "server/fsm/fsm.h"
#include "server/gate.h"
#include "server/host.h"
#include "server/limits.h"
#include "server/rpc/endpoint.h"
#include "server/rpc/filter.h"
#include "server/state/state.h"

enum {
    QUERY_TIME_DEFAULT_MS = 300000,
};

/* --- reads --- */
struct read;
/* Worker thread: answers from the snapshot. Sets r->resp and r->index; a negative return fails the
 * call with *e. What it allocates goes under `ctx`, which lives until the answer is encoded. */
typedef int read_fn(struct read *r, struct state_txn *t, void *ctx, struct err *e);

struct read {
    struct server *s;
    struct rpc_call *call;
    const void *req;
    const struct query_options *q; /* never NULL */
    unsigned tables;               /* what it depends on */
    uint64_t key;                  /* state_key_*(), 0: any row of the tables */
    read_fn *fn;
    /* given to fn */
    struct query_meta *meta;       /* index is filled in afterwards */
    /* set by fn */
    void *resp;
    uint64_t index;
    bool news; /* answer although the index is not above min_query_index */
    uint64_t print; /* of the rows of a list; 0: it does not say */
    /* ours */
    struct gate *gate; /* of the server: when it is closed, `s` is not touched any more */
    struct err *err; /* NULL: none; big, and a read that is parked has none */
    void *ctx;
    uint64_t seen;
    int64_t deadline_ms;
    struct server_watch *watch;
    uint64_t waits_for; /* the print of the answer that was not news: another one is */
    bool last, cancelled;
};

/* Runs `fn` now, and again each time the tables (or the row `key`) change while the index is not
 * above q->min_query_index, until its time is over. Answers the call. */
void endpoint_read(struct server *s, struct rpc_call *call, const void *req,
                   const struct query_options *q, unsigned tables, uint64_t key, read_fn *fn);

/* Of a list: read_saw() each row of the answer, then read_list(). Its index is that of its tables, which
 * deletions move as well; who waits for it is answered when its rows have changed, not those of others. */
void read_saw(struct read *r, const char *id, uint64_t modify_index);
void read_list(struct read *r, struct state_txn *t);

/* Namespace a query asks for: "default" when empty. */
const char *query_ns(const struct query_options *q);
bool query_ns_matches(const struct query_options *q, const char *ns);

/* --- lists ---
 * Rows come in order; each is seen, taken or not, and added. A list is answered in one of two forms:
 * its rows (what is asked within), or a part of it as JSON, which ends after LIST_PART_NS, _BYTES or
 * _ROWS of work: NextToken says where the next one begins. Each part is of its own snapshot: no row of
 * a later part is older than the index of the first.
 *
 *     for (x; (x = state_next(it, rows_ctx(&l))) != NULL && rows_see(&l, (struct row_key){...});)
 *         if (rows_take(&l, x))
 *             rows_add(&l, stub_of(x), x->modify_index);
 */
struct row_types {
    const struct type *whole; /* what filters see */
    const struct type *row;   /* what is answered */
};
struct row_key { /* its token: "create_index.id", "ns.id" or "id", by what is given */
    const char *id, *ns;
    uint64_t create_index;
};
struct rows {
    struct read *r;
    void *ctx, *row_ctx;
    const struct row_types *types;
    struct filter *filter; /* NULL: none */
    uint64_t max, seen;
    int64_t end_ns;
    struct row_key key; /* of the row that was seen last */
    bool over, too_large;
    struct buf json;
    struct object_list rows;
};

/* Fails when the filter is malformed; nothing is to be done then. */
int rows_begin(struct rows *l, struct read *r, void *ctx, const struct row_types *types, struct err *e);
void rows_seek(const struct rows *l, struct state_iter *it); /* to where the page begins */
void *rows_ctx(struct rows *l);                             /* for the next row, and what is made of it */
/* False: the part or page is over. */
bool rows_see(struct rows *l, struct row_key key);
bool rows_take(struct rows *l, const void *whole);
void rows_add(struct rows *l, const void *row, uint64_t modify_index);
/* Sets the index of the answer. *ret: the rows, unless they are JSON in r->meta. */
int rows_end(struct rows *l, struct state_txn *t, struct object_list *ret, struct err *e);
#define ROWS_END(l, t, list, e)                                                         \
    ({                                                                                  \
        struct object_list _ol;                                                         \
        int _r = rows_end((l), (t), &_ol, (e));                                         \
        if (_r == 0) {                                                                  \
            (list).v = (__typeof__((list).v))_ol.v;                                      \
            (list).n = _ol.n;                                                           \
        }                                                                               \
        _r;                                                                             \
    })

/* --- writes --- */
/* e is handled: `fn` comes for accepted entries only. `arg` is rpc_call_ctx memory. */
typedef void written_fn(struct server *s, struct rpc_call *call, void *arg, uint64_t index,
                        struct fsm_result *res);
void endpoint_write(struct server *s, struct rpc_call *call, struct intent *in, written_fn *fn,
                    void *arg);

/* --- checks: fail the call and return false --- */
bool endpoint_leads(struct server *s, struct rpc_call *call);
/* Prefix of ids: hex digits, an even number of them (hyphens aside). */
int endpoint_check_prefix(const char *prefix, struct err *e);
bool secret_equal(const char *a, const char *b);

/* Fills Resources, SharedResources and TaskResources from AllocatedResources. */
void endpoint_alloc_totals(void *ctx, struct allocation *a);
struct alloc_list_stub *endpoint_alloc_stub(const void *ctx, const struct allocation *a);

/* The handlers. */
rpc_handler job_register, job_deregister, job_plan, job_validate_rpc, job_get, job_list,
    job_allocations, job_evaluations, job_summary_rpc, job_evaluate, job_versions, node_register,
    node_update_status, node_update_eligibility, node_update_drain, node_purge, node_evaluate, node_get,
    node_list, node_allocs,
    node_client_allocs, node_update_alloc, alloc_list, alloc_get, alloc_get_many, alloc_stop,
    eval_list, eval_get, eval_allocations, status_leader, status_members, system_gc,
    operator_scheduler_get, operator_scheduler_set;

#endif
