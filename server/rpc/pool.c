/* SPDX-License-Identifier: Apache-2.0
 *
 * NodePool.*: the table of node pools. What lists the nodes and the jobs of a pool stands where all
 * nodes and jobs are listed (node.c, job_read.c).
 */
#include <openssl/evp.h>

#include "api/pool.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/call/method.h"

/* --- reads --- */

/* The first entry of a leader makes the built-in pools. */
int
endpoint_pools_there(struct state_txn *t, struct err *e)
{
    if (state_has_pools(t))
        return 0;
    return err_set(e, -ERR_UNAVAILABLE, "no leader has made the built-in node pools yet: retry");
}

static int
list_run(struct read *r, struct state_txn *t, struct err *e)
{
    return endpoint_pools_there(t, e) < 0 ? e->code : read_list(r, t, e);
}

const struct read_row read_node_pool_list = {.tables = STATE_BIT(STATE_NODE_POOLS),
                                             .run = list_run};

static int
get_run(struct read *r, struct state_txn *t, struct err *e)
{
    return endpoint_pools_there(t, e) < 0 ? e->code : read_one(r, t, e);
}

const struct read_row read_node_pool_get_node_pool = {
    .tables = STATE_BIT(STATE_NODE_POOLS), .about = WATCH_NODE_POOL, .run = get_run};

/* --- writes --- */

enum { HASH_BYTES = 32 };

/* Of what people have said of it: equal pools have equal hashes, in every region. */
static void
set_hash(const void *ctx, struct node_pool *p)
{
    auto_buf struct buf b = BUF_INIT(RPC_FRAME_MAX);
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    mp_encode(&b, &type_node_pool, p);
    ASSERT(buf_error(&b) == 0 && EVP_Digest(b.data, b.len, hash, &n, EVP_sha256(), NULL) == 1);
    ASSERT(n == HASH_BYTES);
    p->hash = (struct bytes){mem_dup(ctx, hash, n), n};
}

static int
prepare_upsert(struct write *w, struct state_txn *t, struct err *e)
{
    const struct node_pool_upsert_request *req = w->req;
    struct intent_node_pool_upsert *in = mem_new(w->ctx, struct intent_node_pool_upsert);

    (void)t;
    if (req->node_pools.n == 0)
        return err_set(e, -ERR_INVALID, "must specify at least one node pool");
    if (codec_check(&type_node_pool_upsert_request, req, e) < 0)
        return e->code;
    for (size_t i = 0; i < req->node_pools.n; i++) {
        struct node_pool *p = codec_clone(w->ctx, &type_node_pool, req->node_pools.v[i]);
        codec_defaults(p, &type_node_pool, p);
        p->create_index = p->modify_index = 0;
        p->hash = (struct bytes){NULL, 0};
        if (pool_check(p, e) < 0)
            return e->code;
        set_hash(p, p);
        list_add(w->ctx, in->node_pools, p);
    }
    w->in.node_pool_upsert = in;
    return 0;
}

const struct write_row write_node_pool_upsert_node_pools = {prepare_upsert, write_reply_index,
                                                            .here = true};

static int
prepare_delete(struct write *w, struct state_txn *t, struct err *e)
{
    const struct node_pool_delete_request *req = w->req;
    struct intent_node_pool_delete *in = mem_new(w->ctx, struct intent_node_pool_delete);
    struct err bad = ERR_INIT;

    (void)t;
    if (req->names.n == 0)
        return err_set(e, -ERR_INVALID, "must specify at least one node pool to delete");
    if (codec_check(&type_node_pool_delete_request, req, e) < 0)
        return e->code;
    for (size_t i = 0; i < req->names.n; i++)
        if (pool_check_name(req->names.v[i], &bad) < 0) /* none can have it */
            return err_set(e, -ERR_NOT_FOUND, "node pool \"%.128s\" not found", req->names.v[i]);
    *in = (struct intent_node_pool_delete){.names = req->names, .region = server_cfg(w->s)->region};
    w->in.node_pool_delete = in;
    return 0;
}

const struct write_row write_node_pool_delete_node_pools = {prepare_delete, write_reply_index,
                                                            .here = true};
