/* SPDX-License-Identifier: Apache-2.0
 *
 * NAME.List, .Get, .Upsert and .Delete of the objects with a name (`object` in api/schema). The
 * nodes and jobs of a pool are listed where all nodes and jobs are (node.c, job_read.c).
 */
#include "api/object.h"

#include <openssl/evp.h>
#include <string.h>

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

enum {
    HASH_BYTES = 32,
    DELETE_REASONS_MAX = 512,
    DELETE_ASK_MS = 5000,
    EXPORT_PART_BYTES = 1 << 20, /* of rows, in an answer */
};

/* Hashes what people have said of it, so equal objects hash equally in every region. */
void
endpoint_set_hash(const void *ctx, const struct type *t, void *obj)
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

/* Sets the hashes of the parts that have one: the usage of a quota names its limits by them. */
static void
set_part_hashes(const void *ctx, const struct type *t, void *obj)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        const struct object_list *l = (const void *)((const char *)obj + f->offset);
        if (f->type != FT_STRUCT || f->shape != FS_LIST ||
            type_field(f->sub, "Hash", strlen("Hash")) == NULL)
            continue;
        for (size_t k = 0; k < l->n; k++)
            endpoint_set_hash(ctx, f->sub, l->v[k]);
    }
}

static void
set_intent(struct write *w, void *in)
{
    switch ((int)rpc_call_method(w->call)->id) {
#define OBJECT(TABLE, type, TYPE, ...)                                                             \
    case RPC_##TYPE##_UPSERT:                                                                      \
        w->in.type##_upsert = in;                                                                  \
        break;
        API_COMMON_OBJECTS(OBJECT)
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
    if (asked->n == 0)
        return err_set(e, -ERR_INVALID, "must specify at least one %s", k->words);
    if (codec_check(m->req, w->req, e) < 0)
        return e->code;
    for (size_t i = 0; i < asked->n; i++) {
        void *obj = codec_clone(w->ctx, k->type, asked->v[i]);
        codec_defaults(obj, k->type, obj);
        *(uint64_t *)type_member(k->type, obj, "CreateIndex") = 0;
        *(uint64_t *)type_member(k->type, obj, "ModifyIndex") = 0;
        if (k->check(obj, false, e) < 0)
            return e->code;
        set_part_hashes(obj, k->type, obj);
        endpoint_set_hash(obj, k->type, obj);
        list_add(w->ctx, *put, obj);
    }
    set_intent(w, put);
    return 0;
}

/* --- deletions --- */

/* A deletion asks the other regions first who uses the objects there; what they say goes into the
 * entry, so that a refusal names all reasons at once. */
struct deletion {
    struct server *s;
    struct gate *gate;
    struct rpc_call *call;
    const struct object_kind *kind;
    struct object_delete *in;
    size_t asked;   /* regions that have not answered */
    struct err err; /* one that does not answer; code 0: all have */
};

static void
deletion_end(struct deletion *d, const struct err *e, uint64_t index)
{
    struct rpc_call *call = d->call;
    struct err why = e != NULL ? *e : (struct err)ERR_INIT;

    gate_unref(d->gate); /* *d is memory of the call */
    if (e != NULL)
        rpc_fail(call, &why);
    else
        rpc_reply(call, &(struct write_response){.index = index});
}

static void
deletion_written(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    (void)res;
    deletion_end(arg, e, index);
}

static void
set_delete_intent(struct intent *in, enum rpc_id id, struct object_delete *req)
{
    switch ((int)id) {
#define OBJECT(TABLE, type, TYPE, ...)                                                             \
    case RPC_##TYPE##_DELETE:                                                                      \
        in->type##_delete = req;                                                                   \
        break;
        API_COMMON_OBJECTS(OBJECT)
#undef OBJECT
    default:
        ASSERT(false);
    }
}

static void
deletion_propose(struct deletion *d)
{
    struct intent in = {0};
    struct err e = ERR_INIT;

    if (gate_is_closed(d->gate))
        err_set(&e, -ERR_UNAVAILABLE, "the server is stopping");
    else if (d->err.code != 0)
        e = d->err;
    if (e.code != 0) {
        deletion_end(d, &e, 0);
        return;
    }
    set_delete_intent(&in, rpc_call_method(d->call)->id, d->in);
    server_propose(d->s, &in, HOME_LOOP, deletion_written, d);
}

static void
region_has_answered(void *arg, const struct err *e, const void *resp)
{
    struct deletion *d = arg;
    const struct object_uses_response *r = resp;

    if (e != NULL)
        err_set(&d->err, e->code,
                "another region does not say whether the %s is used there: %.300s", d->kind->words,
                e->text);
    for (size_t i = 0; e == NULL && i < r->uses.n && d->in->elsewhere.n < DELETE_REASONS_MAX; i++)
        list_add(d->in, d->in->elsewhere, mem_strdup(d->in, r->uses.v[i]));
    if (--d->asked == 0)
        deletion_propose(d);
}

static void
ask_regions(struct deletion *d)
{
    const char *ours = server_cfg(d->s)->region;
    const struct object_uses_request req = {d->kind->table, d->in->names};
    struct str_list regions = server_regions(d->s, d->in);

    d->asked = 1;
    for (size_t i = 0; i < regions.n; i++) {
        if (str_eq(regions.v[i], ours))
            continue;
        struct rpc_envelope env = {.region = regions.v[i], .hops = 1};
        struct rpc_request q = {RPC_OBJECT_USES, &req, &env, DELETE_ASK_MS, NULL};
        struct rpc_client *there = server_region_client(d->s, regions.v[i], &d->err);
        if (there == NULL) {
            (void)err_prefix(&d->err, "region \"%s\"", regions.v[i]);
            continue;
        }
        d->asked++;
        rpc_send(there, &q, region_has_answered, d);
    }
    if (--d->asked == 0)
        deletion_propose(d);
}

static void
delete_objects(void *arg, struct rpc_call *call, const void *p)
{
    const struct object_delete *req = p;
    struct deletion *d = mem_new(rpc_call_ctx(call), struct deletion);
    struct err e = ERR_INIT;

    *d = (struct deletion){.s = arg, .call = call, .err = ERR_INIT};
    d->kind = object_kind_of(rpc_call_method(call)->id);
    d->in = mem_new(d, struct object_delete);
    *d->in = (struct object_delete){.names = req->names, .region = server_cfg(d->s)->region};
    if (req->names.n == 0)
        err_set(&e, -ERR_INVALID, "must specify at least one %s to delete", d->kind->words);
    else
        (void)codec_check(&type_object_delete, req, &e);
    for (size_t i = 0; e.code == 0 && i < req->names.n; i++) {
        void *named = type_new(d, d->kind->type);
        *(const char **)type_member(d->kind->type, named, d->kind->key) = req->names.v[i];
        (void)d->kind->check(named, true, &e);
    }
    if (e.code != 0) {
        rpc_fail(call, &e);
        return;
    }
    d->gate = gate_ref(server_gate(d->s));
    ask_regions(d);
}

static int
uses_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct object_uses_request *req = r->req;
    struct object_uses_response *resp = read_resp(r);
    enum state_table table = STATE_TABLES;

#define OBJECT(TABLE, type, TYPE, name, ...)                                                       \
    if (str_eq(req->table, name))                                                                  \
        table = STATE_##TABLE;
    API_COMMON_OBJECTS(OBJECT)
#undef OBJECT
    if (table == STATE_TABLES)
        return err_set(e, -ERR_UNSUPPORTED, "this region knows no \"%.64s\"",
                       str_or(req->table, ""));
    for (size_t i = 0; i < req->names.n; i++)
        fsm_object_uses(t, resp, table, req->names.v[i], server_cfg(r->s)->region, &resp->uses);
    r->index = state_applied(t);
    return 0;
}

const struct read_row read_object_uses = {.tables = STATE_BIT(STATE_JOBS), .run = uses_run};

/* --- what other regions follow --- */

/* A part of what is replicated: the names of all rows, and rows behind `after` until
 * EXPORT_PART_BYTES are full, so that neither an answer nor an entry made of it is too large. */
struct export {
    const struct objects_export_request *req;
    struct objects_export *resp;
    bool reached; /* rows from here on are behind `after` */
    size_t bytes;
    const char *last; /* row of this part */
};

static void
export_row(struct export *x, struct object_list *rows, void *obj, const char *name, size_t bytes)
{
    bool full = x->bytes > 0 && x->bytes + bytes > EXPORT_PART_BYTES;

    if (full && x->resp->next == NULL)
        x->resp->next = x->last;
    if (x->resp->next != NULL) {
        talloc_free(obj);
        return;
    }
    list_add(x->resp, *rows, obj);
    x->bytes += bytes;
    x->last = name;
}

static void
export_table(struct export *x, const struct read *r, struct state_txn *t, enum state_table table,
             struct object_list *rows)
{
    const struct type *type = state_type(table);
    const struct object_kind *k = object_kind(type);
    const char *after = str_or(x->req->after, "");
    bool begins_here = str_prefix(after, mem_printf(r->ctx, "%s/", type->name));
    struct state_iter *it = state_ids(t, r->ctx, table, NULL);

    for (void *obj; (obj = state_next(it, x->resp)) != NULL;) {
        if (!object_is_shared(k, obj)) {
            talloc_free(obj);
            continue;
        }
        struct state_key key = {.a = object_key(k, obj)};
        const char *name = mem_printf(x->resp, "%s/%s", type->name, key.a);
        list_add(x->resp, x->resp->names, name);
        x->reached = x->reached || (begins_here && strcmp(name, after) > 0);
        if (x->reached && *(const uint64_t *)type_member(type, obj, "ModifyIndex") >= x->req->since)
            export_row(x, rows, obj, name, state_row_bytes(t, table, key));
        else
            talloc_free(obj);
    }
    x->reached = x->reached || begins_here;
}

static int
export_run(struct read *r, struct state_txn *t, struct err *e)
{
    struct export x = {.req = r->req};

    if (endpoint_objects_there(t, e) < 0)
        return e->code;
    x.resp = read_resp(r);
    x.reached = str_empty(x.req->after);
    x.resp->rights = server_cfg(r->s)->acl_enabled;
#define OBJECT(TABLE, type, TYPE, member)                                                          \
    if ((STATE_BIT(STATE_##TABLE) & STATE_RIGHTS) == 0 || x.resp->rights)                          \
        export_table(&x, r, t, STATE_##TABLE, (struct object_list *)&x.resp->member);
    API_REPLICATED_OBJECTS(OBJECT)
#undef OBJECT
    r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_object_export = {.tables = 0
#define OBJECT(TABLE, ...) | STATE_BIT(STATE_##TABLE)
                                            API_REPLICATED_OBJECTS(OBJECT),
#undef OBJECT
                                            .run = export_run};

/* --- the rows --- */

#define OBJECT(TABLE, type, TYPE, ...)                                                             \
    const struct read_row read_##type##_list = {.tables = STATE_BIT(STATE_##TABLE),                \
                                                .run = list_objects};                              \
    const struct read_row read_##type##_get = {                                                    \
        .tables = STATE_BIT(STATE_##TABLE), .about = WATCH_##TYPE, .run = get_object};             \
    const struct write_row write_##type##_upsert = {prepare_upsert, write_reply_index,             \
                                                    .here = true};                                 \
    void call_##type##_delete(void *arg, struct rpc_call *call, const void *req)                   \
    {                                                                                              \
        delete_objects(arg, call, req);                                                            \
    }
API_COMMON_OBJECTS(OBJECT)
#undef OBJECT
