/* SPDX-License-Identifier: Apache-2.0
 *
 * See lookup.h. A question is asked as long as somebody uses it: a call waits for news, and the
 * next one comes ASK_AGAIN_MS later. So an answer which always changes is got so often, not more.
 */
#include "client/lookup.h"

#include "api/terms.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

enum {
    ASK_AGAIN_MS = 20,
    ASK_WAIT_MS = 300000,                                /* for news */
    ASK_NEWS_MS = ASK_WAIT_MS + ASK_WAIT_MS / 16 + 10000 /* the answer is here then */
};

struct lookups {
    struct ground *g;
    struct question *all; /* hash by id */
    bool stopped;
};

struct question { /* a talloc context, below lookups */
    UT_hash_handle hh;
    char *id; /* its members, one behind the other */
    struct lookups *f;
    struct lookup_key key;
    struct lookup *uses; /* a list */
    uint64_t call;       /* 0: none */
    bool dropped;        /* it was given up, since there was no use of it */
    uint64_t index;
    struct timer *timer;
    int64_t backoff_ms;
    struct value *value; /* NULL: not known */
    char *refusal;       /* NULL: none */
};

struct lookup {
    struct question *q;
    struct lookup *next;
    const struct alloc_core *a;
    lookup_told *told;
    void *arg;
};

static void question_ask(struct question *q);

static void
question_end(struct question *q)
{
    HASH_DEL(q->f->all, q);
    timer_stop(TAKE(q->timer));
    talloc_free(q);
}

/* --- answers --- */

static struct value *
value_text(const void *ctx, const char *s)
{
    return value_str(ctx, str_or(s, ""));
}

static struct value *
value_texts(const void *ctx, const struct str_list *l)
{
    struct value *v = value_list(ctx);
    for (size_t i = 0; i < l->n; i++)
        value_list_add(v, value_text(v, l->v[i]));
    return v;
}

/* Makes the members that an answer of the HTTP API has. */
static struct value *
value_service(const void *ctx, const struct service_registration *s)
{
    struct value *v = value_map(ctx);
    value_map_set(v, "ID", value_text(v, s->id));
    value_map_set(v, "ServiceName", value_text(v, s->service_name));
    value_map_set(v, "Namespace", value_text(v, s->namespace));
    value_map_set(v, "NodeID", value_text(v, s->node_id));
    value_map_set(v, "Datacenter", value_text(v, s->datacenter));
    value_map_set(v, "JobID", value_text(v, s->job_id));
    value_map_set(v, "AllocID", value_text(v, s->alloc_id));
    value_map_set(v, "Tags", value_texts(v, &s->tags));
    value_map_set(v, "Address", value_text(v, s->address));
    value_map_set(v, "Port", value_int(v, s->port));
    return v;
}

static struct value *
value_services(const void *ctx, const void *p)
{
    const struct alloc_find_response *resp = p;
    struct value *v = value_list(ctx);
    for (size_t i = 0; i < resp->services.n; i++)
        value_list_add(v, value_service(v, resp->services.v[i]));
    for (size_t i = 0; i < resp->names.n; i++) {
        struct value *name = value_map(v);
        value_map_set(name, "ServiceName", value_text(name, resp->names.v[i]->service_name));
        value_map_set(name, "Tags", value_texts(name, &resp->names.v[i]->tags));
        value_list_add(v, name);
    }
    return v;
}

static struct value *
value_metadata(const void *ctx, const struct variable_metadata *m)
{
    struct value *v = value_map(ctx);
    value_map_set(v, "Namespace", value_text(v, m->namespace));
    value_map_set(v, "Path", value_text(v, m->path));
    value_map_set(v, "CreateIndex", value_int(v, (int64_t)m->create_index));
    value_map_set(v, "ModifyIndex", value_int(v, (int64_t)m->modify_index));
    value_map_set(v, "CreateTime", value_int(v, m->create_time));
    value_map_set(v, "ModifyTime", value_int(v, m->modify_time));
    return v;
}

static struct value *
value_variable(const void *ctx, const void *p)
{
    const struct variable_response *resp = p;
    const struct variable *x = resp->variable;
    if (x == NULL)
        return value_null(ctx);
    const struct variable_metadata m = {.namespace = x->namespace,
                                        .path = x->path,
                                        .create_index = x->create_index,
                                        .modify_index = x->modify_index,
                                        .create_time = x->create_time,
                                        .modify_time = x->modify_time};
    struct value *v = value_metadata(ctx, &m), *items = value_map(v);
    for (size_t i = 0; i < x->items.n; i++)
        value_map_set(items, mem_strdup(items, x->items.v[i].k),
                      value_text(items, x->items.v[i].v));
    value_map_set(v, "Items", items);
    return v;
}

static struct value *
value_variables(const void *ctx, const void *p)
{
    const struct variable_list_response *resp = p;
    struct value *v = value_list(ctx);
    for (size_t i = 0; i < resp->variables.n; i++)
        value_list_add(v, value_metadata(v, resp->variables.v[i]));
    return v;
}

/* --- requests --- */

static const void *
ask_services(const void *ctx, const struct question *q)
{
    struct alloc_find_request *r = mem_new(ctx, struct alloc_find_request);
    *r = (struct alloc_find_request){
        .alloc_id = q->uses->a->id, .namespace = q->key.ns, .service_name = q->key.key};
    return r;
}

static const void *
ask_variable(const void *ctx, const struct question *q)
{
    struct alloc_variable_request *r = mem_new(ctx, struct alloc_variable_request);
    *r = (struct alloc_variable_request){.alloc_id = q->uses->a->id,
                                         .task = q->key.task,
                                         .path = q->key.key,
                                         .namespace = q->key.ns};
    return r;
}

static const void *
ask_variables(const void *ctx, const struct question *q)
{
    struct alloc_variables_request *r = mem_new(ctx, struct alloc_variables_request);
    *r = (struct alloc_variables_request){.alloc_id = q->uses->a->id,
                                          .task = q->key.task,
                                          .prefix = q->key.key,
                                          .namespace = q->key.ns};
    return r;
}

static const struct {
    enum rpc_id method;
    const void *(*ask)(const void *ctx, const struct question *q);
    struct value *(*value)(const void *ctx, const void *resp);
    bool by_task; /* whoever asks sees what others do not */
} kinds[] = {
    [LOOKUP_SERVICE] = {RPC_ALLOC_FIND_SERVICES, ask_services, value_services, false},
    [LOOKUP_SERVICES] = {RPC_ALLOC_FIND_SERVICES, ask_services, value_services, false},
    [LOOKUP_VARIABLE] = {RPC_ALLOC_GET_VARIABLE, ask_variable, value_variable, true},
    [LOOKUP_VARIABLES] = {RPC_ALLOC_LIST_VARIABLES, ask_variables, value_variables, true},
};

/* --- questions --- */

static void
question_tell(struct question *q)
{
    for (struct lookup *u = q->uses, *next; u; u = next) {
        next = u->next;
        u->told(u->arg);
    }
}

static void
on_timer(void *arg)
{
    struct question *q = arg;
    q->timer = NULL;
    question_ask(q);
}

/* Another allocation asks the next time: the first may have ended. */
static void
question_failed(struct question *q, const struct err *e)
{
    int64_t ms = backoff_next(&q->backoff_ms);
    bool refused = e->code == -ERR_FORBIDDEN || e->code == -ERR_INVALID;
    struct lookup *first = q->uses;
    log_warn("client", "what a task asked for cannot be had", "key", q->key.key, "error", e->text,
             "retry_in", LOG_DUR(ms * NS_PER_MS), NULL);
    if (first->next != NULL) {
        struct lookup **last = &q->uses;
        q->uses = first->next;
        while (*last != NULL)
            last = &(*last)->next;
        *last = first;
        first->next = NULL;
    }
    q->timer = timer_start(q->f->g->loop, ms, on_timer, q);
    if (refused && q->refusal == NULL) {
        q->refusal = mem_strdup(q, e->text);
        question_tell(q);
    }
}

static void
question_take(struct question *q, const void *resp)
{
    const struct rpc_method *m = rpc_method_by_id(kinds[q->key.kind].method);
    const struct query_meta *const *meta = type_member(m->resp, resp, "Meta");
    struct value *old = q->value, *now = kinds[q->key.kind].value(q, resp);
    bool same = old != NULL && value_equal(old, now) && q->refusal == NULL;
    q->value = now;
    mem_free(q->refusal);
    q->backoff_ms = 0;
    q->index = meta != NULL && *meta != NULL ? (*meta)->index : 0;
    q->timer = timer_start(q->f->g->loop, ASK_AGAIN_MS, on_timer, q);
    if (!same)
        question_tell(q);
    mem_free(old);
}

static void
on_answer(void *arg, const struct err *e, const void *resp)
{
    struct question *q = arg;
    struct ground *g = q->f->g;
    bool dropped = q->dropped;
    q->call = 0;
    q->dropped = false;
    if (q->uses == NULL || q->f->stopped) {
        question_end(q);
    } else if (e && dropped) { /* there is a use of it again */
        question_ask(q);
    } else if (e) {
        question_failed(q, e);
    } else {
        question_take(q, resp);
    }
    hold_release(&g->hold);
}

static void
question_ask(struct question *q)
{
    struct ground *g = q->f->g;
    auto_mem void *tmp = mem_ctx("question");
    struct rpc_envelope env = ground_proof(g);
    env.region = q->key.region;
    env.min_index = q->index;
    env.wait = ASK_WAIT_MS * NS_PER_MS;
    if (q->f->stopped || g->stopping)
        return;
    const struct rpc_request r = {.id = kinds[q->key.kind].method,
                                  .req = kinds[q->key.kind].ask(tmp, q),
                                  .env = &env,
                                  .timeout_ms = q->index != 0 ? ASK_NEWS_MS : 0};
    hold_take(&g->hold);
    q->call = rpc_send(g->rpc, &r, on_answer, q);
}

static struct question *
question_find(struct lookups *f, const struct alloc_core *a, const struct lookup_key *k)
{
    struct question *q;
    auto_mem void *tmp = mem_ctx("question");
    const struct allocation *x = a->rec->alloc;
    const char *who = kinds[k->kind].by_task
                          ? mem_printf(tmp, "%s\n%s\n%s", x->job_id, x->task_group, k->task)
                          : "";
    char *id = mem_printf(tmp, "%d\n%s\n%s\n%s\n%s", (int)k->kind, k->ns, k->region, k->key, who);
    HASH_FIND_STR(f->all, id, q);
    if (q != NULL)
        return q;
    q = mem_new(f, struct question);
    *q = (struct question){.f = f, .id = mem_strdup(q, id)};
    q->key = (struct lookup_key){k->kind, mem_strdup(q, k->task), mem_strdup(q, k->ns),
                                 mem_strdup(q, k->region), mem_strdup(q, k->key)};
    HASH_ADD_KEYPTR(hh, f->all, q->id, strlen(q->id), q);
    return q;
}

struct lookup *
lookup_begin(struct lookups *f, const struct alloc_core *a, const struct lookup_key *key,
             lookup_told *told, void *arg)
{
    struct lookup_key k = *key;
    k.ns = str_empty(k.ns) ? str_or(a->rec->alloc->namespace, NS_DEFAULT) : k.ns;
    k.region = str_empty(k.region) ? f->g->cfg.region : k.region;
    struct question *q = question_find(f, a, &k);
    struct lookup *u = mem_new(NULL, struct lookup);
    *u = (struct lookup){q, q->uses, a, told, arg};
    q->uses = u;
    if (q->call == 0 && q->timer == NULL)
        question_ask(q);
    return u;
}

void
lookup_end(struct lookup *u)
{
    if (u == NULL)
        return;
    struct question *q = u->q;
    struct lookup **at = &q->uses;
    while (*at != u)
        at = &(*at)->next;
    *at = u->next;
    talloc_free(u);
    if (q->uses != NULL || q->f->stopped)
        return;
    if (q->call != 0) { /* its completion ends it, or a use that comes before */
        q->dropped = true;
        rpc_cancel(q->f->g->rpc, q->call);
    } else {
        question_end(q);
    }
}

const struct value *
lookup_value(const struct lookup *u)
{
    return u->q->value;
}

const char *
lookup_refusal(const struct lookup *u)
{
    return u->q->refusal;
}

struct lookups *
lookups_new(struct ground *g)
{
    struct lookups *f = mem_new(g, struct lookups);
    f->g = g;
    return f;
}

void
lookups_stop(struct lookups *f)
{
    f->stopped = true;
    for (struct question *q = f->all; q != NULL; q = q->hh.next) {
        timer_stop(TAKE(q->timer));
        if (q->call != 0)
            rpc_cancel(f->g->rpc, q->call);
    }
}
