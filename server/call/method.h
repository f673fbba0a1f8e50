/* SPDX-License-Identifier: Apache-2.0
 *
 * What methods are made of. A call comes to endpoint_call() (endpoint.c), which does what all need
 * by the flags of their lines in api/schema/rpc.schema; then
 *
 *   read                   its row read_NAME is run: on a worker thread of the loop, with its own
 *                          snapshot; one small object as JSON where the call came, if nobody waits
 *                          for news
 *   write, prepare         its row write_NAME is run: prepared on a worker with a snapshot,
 *                          proposed, answered on the loop thread
 *   call, local            its function call_NAME: on the loop thread
 *   client                 nothing: it is passed on to the node (node.c)
 *
 * A method whose row or function is missing does not link.
 */
#ifndef PADDOCK_SERVER_CALL_METHOD_H
#define PADDOCK_SERVER_CALL_METHOD_H

#include "codec/codec.h"
#include "common/buf.h"
#include "net/rpc.h"
#include "server/eval.h"
#include "server/fsm/fsm.h"
#include "server/gate.h"
#include "server/host.h"
#include "server/limits.h"
#include "server/state/state.h"

/* --- reads --- */
struct read;
/* Worker thread: answers from the snapshot. Sets r->resp and r->index; a negative return fails the
 * call with *e. What it allocates goes under r->ctx, which lives until the answer is encoded. */
typedef int read_fn(struct read *r, struct state_txn *t, struct err *e);

/* How the rows of a list are ordered, and so what their token is. */
enum row_order {
    ORDER_ID,    /* "id" */
    ORDER_NS,    /* "ns.id" */
    ORDER_CREATE /* "create_index.id"; by id among those of a prefix */
};

struct read_row {
    unsigned tables; /* what it depends on; the first one has what is read */
    /* Narrows them to the rows of the object that the request names: by id, and by namespace where
     * the object is a job. 0: what key() says, or without a key() any row. */
    enum state_watch_kind about;
    uint64_t (*key)(const struct read *r);
    read_fn *run; /* read_one, read_list, or one of its own */
    /* read_one: the object, NULL when there is none. The index is that of its last change. Without
     * this function the row of the table that the request names. */
    void *(*get)(struct read *r, struct state_txn *t);
    /* ... and as JSON: a member beside those of its type, its name and *value. NULL: none. */
    const char *(*more)(const void *obj, const char **value);
    /* read_list: of what the method lists (`of`, which filters see) rows are projections. */
    enum row_order order;
    bool hex; /* its prefix is one of an id of hex digits */
    bool no_prefix; /* a prefix is refused: it could be one of several names */
    /* The index whose entries that belong to the object of the request are the rows. Where it names
     * none: all of the index by creation, or of the table those whose id has the prefix. */
    enum state_by by;
    struct state_iter *(*rows)(struct read *r, struct state_txn *t); /* NULL: these */
    bool (*takes)(const struct read *r, const void *whole); /* NULL: all */
    /* Fills in what is no projection; new memory goes under `whole`. NULL: nothing. */
    void (*finish)(struct read *r, struct state_txn *t, void *whole, void *row);
    /* Answers in JSON are made lean (codec.h): all members of an object that the functions above
     * look at, beside those of every table, and all that `finish` makes. NULL: it is decoded whole,
     * ... */
    const char *needs, *makes;
    bool (*whole)(const struct read *r); /* ... and so when a request asks for more */
    /* True for a question to the scheduler (explanations, simulations), which takes a processor for
     * a while: one at a time, others are told to come again, and none waits for news. */
    bool query;
};

struct read {
    struct server *s;
    struct call *call; /* the read's own */
    const struct rpc_method *method;
    const struct read_row *row;
    const void *req;
    const struct rpc_envelope *env;
    const struct list_options *list; /* of the request; never NULL */
    uint64_t key;
    /* given to run */
    uint64_t seen; /* the index of the snapshot */
    void *ctx;
    const struct node *node; /* that asks and has proved itself: what a heartbeat needs of it */
    struct query_meta *meta; /* index is filled in afterwards */
    struct lean *lean;       /* how objects are read; NULL: whole */
    const struct job *job;   /* the row's own */
    /* set by it */
    void *resp;
    uint64_t index;
    bool news; /* answer although the index is not above env->min_index */
    uint64_t print; /* of the rows of a list; 0: it does not say */
    bool here, too_large; /* run on the loop; what is asked for is too large for that */
};

read_fn read_one, read_list;
/* Reads the object that the request names, from the table of the row, lean where the answer is. */
void *read_object(struct read *r, struct state_txn *t);
struct state_iter *read_rows(struct read *r, struct state_txn *t);
/* Memory of the answer. */
struct buf *read_buf(struct read *r, size_t max, size_t guess);
/* How the objects of an answer in JSON are read. */
struct lean *read_lean(struct read *r, const struct type *dst, const struct type *src);
/* A response of the method's type with its Meta. */
void *read_resp(struct read *r);
/* Notes, for a list, what its answer depends on beside its rows. Its index is that of its tables,
 * which deletions move as well; a waiting caller is answered when what it saw has changed, not for
 * others. */
void read_saw(struct read *r, const char *id, uint64_t modify_index);

struct caller;
/* Returns who calls (server/call/caller.h). */
const struct caller *read_caller(const struct read *r);
const char *read_id(const struct read *r); /* of an IdRequest */
const char *read_ns(const struct read *r);
/* True if an object of the namespace belongs into the answer: the call asks for it, and its caller
 * may. */
bool read_ns_matches(const struct read *r, const char *ns);

/* --- writes --- */
/* The things that the functions of a row see. */
struct write {
    struct server *s;
    struct call *of;       /* the write's own */
    struct rpc_call *call; /* not touched by prepare() but for what is constant */
    const void *req;
    const char *ns; /* of the call */
    const struct rpc_envelope *env;
    void *ctx;      /* lives until the call was answered */
    const struct node *node; /* as of a read; for prepare() */
    /* set by prepare() */
    struct intent in;  /* is proposed */
    const void
        *resp; /* of the method's type: is answered, and nothing written. NULL: something is */
    const void *memo;  /* for reply() */
    /* ... with an error: mask of STATE_BIT. It is begun anew when these tables change, and fails
     * with the error if they do not within WRITE_WAIT_MS. */
    unsigned awaits;
    uint64_t barrier;  /* index of what was written in an earlier round; 0: there was none */
};

struct write_row {
    /* On a worker, with a snapshot: what is to be written. Changes nothing, allocates under w->ctx.
     * A negative return fails the call with *e. The snapshot gives the early answer: what must hold
     * when the entry is applied is decided then (fsm.h). */
    int (*prepare)(struct write *w, struct state_txn *t, struct err *e);
    /* Loop thread: the entry was accepted. Answers the call. */
    void (*reply)(struct write *w, uint64_t index, struct fsm_result *res);
    /* Loop thread: what was written was only the first round; prepare() comes once more. NULL:
     * never. */
    bool (*again)(const struct write *w);
    bool here; /* prepare() runs on the loop: it does not grow with job, fleet or state */
    bool (*small)(const void *req); /* the same of this request; NULL: of none */
};

/* The object of that id, owned by w->ctx; NULL: there is none where the caller may. */
#define write_object(w, t, TABLE, id)                                                              \
    ({                                                                                             \
        __auto_type _row = state_get((t), (w)->ctx, TABLE, str_or((id), ""));                      \
        _row != NULL &&call_may((w)->of, _row->namespace) ? _row : NULL;                           \
    })
const struct caller *write_caller(const struct write *w);
/* A new UUID. */
const char *write_new_id(struct write *w);
/* A reply() of methods that answer with the index alone. */
void write_reply_index(struct write *w, uint64_t index, struct fsm_result *res);

/* --- what several need --- */
/* The caller may see and change what is in the namespace, as the method does; of a method that is
 * of no namespace, read its jobs (needs.c). */
bool call_may(const struct call *c, const char *ns);
/* The same of an object with that name, where the method is of such; true of other methods. */
bool call_may_name(const struct call *c, const char *name);
/* The same of a variable, where the method is of variables. */
bool call_may_path(const struct call *c, const char *ns, const char *path);
/* The node has proved itself in this call: it is reached over the connection of that. Loop thread.
 */
void way_note(struct server *s, struct rpc_call *call, const char *node_id);
/* Fails as long as no leader has made the built-in objects. */
int endpoint_objects_there(struct state_txn *t, struct err *e);
/* Sets the Hash of an object, whose indexes are 0, to that of all its other members. */
void endpoint_set_hash(const void *ctx, const struct type *t, void *obj);
/* Fills Resources, SharedResources and TaskResources from AllocatedResources. */
void endpoint_alloc_totals(void *ctx, struct allocation *a);
/* Fills in what a projection to AllocListStub leaves open, in lists of allocations. */
void endpoint_alloc_row(struct read *r, struct state_txn *t, void *whole, void *row);
#define ALLOC_ROWS_LEAN                                                                            \
    .needs = "JobID DesiredTransition",                                                            \
    .makes = "JobType JobVersion AllocatedResources DesiredTransition"

/* --- the methods --- */
#define DECLARE_READ(id, name) extern const struct read_row read_##name;
#define DECLARE_WRITE(id, name) extern const struct write_row write_##name;
#define DECLARE_CALL(id, name) rpc_handler call_##name;
#define DECLARE_NODE(id, name)
RPC_METHODS(DECLARE_READ, DECLARE_WRITE, DECLARE_CALL, DECLARE_NODE)
#undef DECLARE_READ
#undef DECLARE_WRITE
#undef DECLARE_CALL
#undef DECLARE_NODE

#endif
