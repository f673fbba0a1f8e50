/* SPDX-License-Identifier: Apache-2.0
 *
 * NAME.List, .Get, .Upsert and .Delete of the objects with a name (`object` in api/schema). The
 * nodes and jobs of a pool are listed where all nodes and jobs are (node.c, job_read.c).
 */
#include "api/object.h"

#include <openssl/evp.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/call/method.h"

/* --- reads --- */

int
endpoint_objects_there(struct state_txn *t, struct err *e)
{
    if (state_has_built_ins(t))
        return 0;
    return err_set(e, -ERR_UNAVAILABLE,
                   "no leader has made the built-in node pools and namespaces yet: retry");
}

static int
list_objects(struct read *r, struct state_txn *t, struct err *e)
{
    return endpoint_objects_there(t, e) < 0 ? e->code : read_list(r, t, e);
}

static int
get_object(struct read *r, struct state_txn *t, struct err *e)
{
    return endpoint_objects_there(t, e) < 0 ? e->code : read_one(r, t, e);
}

/* --- writes --- */

enum { HASH_BYTES = 32 };

/* Hashes what people have said of it, so equal objects hash equally in every region. */
static void
set_hash(const void *ctx, const struct type *t, void *obj)
{
    auto_buf struct buf b = BUF_INIT(RPC_FRAME_MAX);
    struct bytes *to = type_member(t, obj, "Hash");
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    *to = (struct bytes){NULL, 0};
    mp_encode(&b, t, obj);
    ASSERT(buf_error(&b) == 0 && EVP_Digest(b.data, b.len, hash, &n, EVP_sha256(), NULL) == 1);
    ASSERT(n == HASH_BYTES);
    *to = (struct bytes){mem_dup(ctx, hash, n), n};
}

static int
check_request(struct write *w, const char *what, size_t n, struct err *e)
{
    const struct rpc_method *m = rpc_call_method(w->call);

    if (n == 0)
        return err_set(e, -ERR_INVALID, "must specify at least one %s%s",
                       object_kind_of(m->id)->words, what);
    return codec_check(m->req, w->req, e);
}

static void
set_intent(struct write *w, void *in)
{
    switch ((int)rpc_call_method(w->call)->id) {
#define OBJECT(TABLE, id, type, TYPE, ...)                                                         \
    case RPC_##TYPE##_UPSERT:                                                                      \
        w->in.type##_upsert = in;                                                                  \
        break;                                                                                     \
    case RPC_##TYPE##_DELETE:                                                                      \
        w->in.type##_delete = in;                                                                  \
        break;
        API_OBJECTS(OBJECT)
#undef OBJECT
    default:
        ASSERT(false);
    }
}

static int
prepare_upsert(struct write *w, struct state_txn *t, struct err *e)
{
    const struct rpc_method *m = rpc_call_method(w->call);
    const struct object_kind *k = object_kind_of(m->id);
    const struct object_list *asked = w->req;
    struct object_list *put = (struct object_list *)type_new(w->ctx, m->req);

    (void)t;
    if (check_request(w, "", asked->n, e) < 0)
        return e->code;
    for (size_t i = 0; i < asked->n; i++) {
        void *obj = codec_clone(w->ctx, k->type, asked->v[i]);
        codec_defaults(obj, k->type, obj);
        *(uint64_t *)type_member(k->type, obj, "CreateIndex") = 0;
        *(uint64_t *)type_member(k->type, obj, "ModifyIndex") = 0;
        if (k->check(obj, false, e) < 0)
            return e->code;
        set_hash(obj, k->type, obj);
        list_add(w->ctx, *put, obj);
    }
    set_intent(w, put);
    return 0;
}

static int
prepare_delete(struct write *w, struct state_txn *t, struct err *e)
{
    const struct object_kind *k = object_kind_of(rpc_call_method(w->call)->id);
    const struct object_delete *req = w->req;
    struct object_delete *in = mem_new(w->ctx, struct object_delete);

    (void)t;
    if (check_request(w, " to delete", req->names.n, e) < 0)
        return e->code;
    for (size_t i = 0; i < req->names.n; i++) {
        void *named = type_new(w->ctx, k->type);
        *(const char **)type_member(k->type, named, "Name") = req->names.v[i];
        if (k->check(named, true, e) < 0)
            return e->code;
    }
    *in = (struct object_delete){.names = req->names, .region = server_cfg(w->s)->region};
    set_intent(w, in);
    return 0;
}

/* --- the rows --- */

#define OBJECT(TABLE, id, type, TYPE, ...)                                                         \
    const struct read_row read_##type##_list = {.tables = STATE_BIT(STATE_##TABLE),                \
                                                .run = list_objects};                              \
    const struct read_row read_##type##_get = {                                                    \
        .tables = STATE_BIT(STATE_##TABLE), .about = WATCH_##TYPE, .run = get_object};             \
    const struct write_row write_##type##_upsert = {prepare_upsert, write_reply_index,             \
                                                    .here = true};                                 \
    const struct write_row write_##type##_delete = {prepare_delete, write_reply_index,             \
                                                    .here = true};
API_OBJECTS(OBJECT)
#undef OBJECT
