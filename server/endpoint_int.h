/* SPDX-License-Identifier: Apache-2.0
 *
 * What the endpoints share: reads that may block, writes, checks. Handlers run on the loop thread;
 * a read's query runs on a worker thread of the loop with a snapshot of its own.
 */
#ifndef PADDOCK_SERVER_ENDPOINT_INT_H
#define PADDOCK_SERVER_ENDPOINT_INT_H

#include "net/rpc.h"
#include "server/endpoint.h"
#include "server/gate.h"
#include "server/limits.h"
#include "server/server.h"

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

/* Pages. Every row is offered in key order, with its key; page_end() then keeps one page of them, in
 * the order asked for, and sets meta->next_token to the first one beyond. Rows are dropped as early as
 * possible: without `reverse`, page_offer() refuses what is before the page or beyond it. */
struct page {
    const struct query_options *q;
    struct query_meta *meta;
    struct page_row {
        const char *token;
        void *row;
    } *v;
    size_t n;
    bool sought; /* rows before the page were not offered */
};
/* Goes to where the page begins, if its rows come in the order of their keys. `by_ns`: tokens are
 * "namespace.id". */
void page_seek(struct page *p, struct state_iter *it, bool by_ns);
bool page_full(const struct page *p); /* no further row is needed */
/* False: the row is not needed (the caller may free it). `row` is made by the caller on true. */
bool page_wants(struct page *p, const void *ctx, const char *token);
void page_add(struct page *p, const void *ctx, const char *token, void *row);
/* The rows of the page. */
void **page_end(struct page *p, const void *ctx, size_t *ret_n);

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

struct evaluation *endpoint_eval(const void *ctx, const struct job *job, const char *trigger,
                                 int64_t priority);
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
