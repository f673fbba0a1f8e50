/* SPDX-License-Identifier: Apache-2.0
 *
 * The events that rows become: see event.h. First the table of topics, of which most here is a
 * matter of rows, and the types that entries give; then heads, batches and payloads.
 */
#include "server/events/event.h"

#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"

/* A topic of rows of a table. Its types: those of the entry (types_by) or, without one there, and
 * of rows that were deleted, its own. */
static const struct topic {
    struct event_topic t;
    enum state_table table;
    const struct type *type;
    const char *payload; /* member of the payload that has the row */
    const char *key, *keys[2];
    const char *stored, *deleted; /* types */
    bool by_entry;
} topics[] = {
    {{"Job", "read-job"},
     STATE_JOBS,
     &type_job,
     "Job",
     "ID",
     {NULL},
     "JobRegistered",
     "JobDeregistered",
     true},
    {{"Evaluation", "read-job"},
     STATE_EVALS,
     &type_evaluation,
     "Evaluation",
     "ID",
     {"JobID", "DeploymentID"},
     "EvaluationUpdated",
     "EvaluationDeleted",
     true},
    {{"Allocation", "read-job"},
     STATE_ALLOCS,
     &type_allocation,
     "Allocation",
     "ID",
     {"JobID", "DeploymentID"},
     "AllocationUpdated",
     "AllocationDeleted",
     true},
    {{"Deployment", "read-job"},
     STATE_DEPLOYMENTS,
     &type_deployment,
     "Deployment",
     "ID",
     {"JobID"},
     "DeploymentStatusUpdate",
     "DeploymentDeleted",
     true},
    {{"Node", "node:read"},
     STATE_NODES,
     &type_node,
     "Node",
     "ID",
     {NULL},
     "NodeRegistration",
     "NodeDeregistration",
     true},
    {{"NodePool", "management"},
     STATE_NODE_POOLS,
     &type_node_pool,
     "NodePool",
     "Name",
     {NULL},
     "NodePoolUpserted",
     "NodePoolDeleted",
     false},
    {{"Namespace", "management"},
     STATE_NAMESPACES,
     &type_namespace,
     "Namespace",
     "Name",
     {NULL},
     "NamespaceUpserted",
     "NamespaceDeleted",
     false},
    {{"Service", "read-job"},
     STATE_SERVICES,
     &type_service_registration,
     "Service",
     "ID",
     {"JobID", "ServiceName"},
     "ServiceRegistration",
     "ServiceDeregistration",
     false},
    {{"Variable", "variable:list"},
     STATE_VARIABLES,
     &type_sealed_variable,
     "Metadata",
     "Path",
     {NULL},
     "VariableUpdated",
     "VariableUpdated",
     false},
    {{"ACLToken", "management"},
     STATE_ACL_TOKENS,
     &type_acl_token,
     "ACLToken",
     "AccessorID",
     {NULL},
     "ACLTokenUpserted",
     "ACLTokenDeleted",
     false},
    {{"ACLPolicy", "management"},
     STATE_ACL_POLICIES,
     &type_acl_policy,
     "ACLPolicy",
     "Name",
     {NULL},
     "ACLPolicyUpserted",
     "ACLPolicyDeleted",
     false},
    {{"ACLRole", "management"},
     STATE_ACL_ROLES,
     &type_acl_role,
     "ACLRole",
     "ID",
     {"Name"},
     "ACLRoleUpserted",
     "ACLRoleDeleted",
     false},
    {{"ACLAuthMethod", "management"},
     STATE_ACL_AUTH_METHODS,
     &type_acl_auth_method,
     "AuthMethod",
     "Name",
     {NULL},
     "ACLAuthMethodUpserted",
     "ACLAuthMethodDeleted",
     false},
    {{"ACLBindingRule", "management"},
     STATE_ACL_BINDING_RULES,
     &type_acl_binding_rule,
     "ACLBindingRule",
     "ID",
     {"AuthMethod"},
     "ACLBindingRuleUpserted",
     "ACLBindingRuleDeleted",
     false},
};

/* Topics of Nomad of which nothing happens here. */
static const struct event_topic others[] = {
    {"HostVolume", "host-volume-read"},
    {"CSIVolume", "csi-read-volume"},
    {"CSIPlugin", "read-job"},
    {"Operator", "operator:read"},
    {"*", "management"},
};

static const char *const types_by[] = {
    [INTENT_NODE_REGISTER] = "NodeRegistration",
    [INTENT_NODE_STATUS] = "NodeStreamEvent",
    [INTENT_NODE_ELIGIBILITY] = "NodeEligibility",
    [INTENT_NODE_DRAIN] = "NodeDrain",
    [INTENT_NODE_DRAINED] = "NodeDrain",
    [INTENT_NODE_PURGE] = "NodeDeregistration",
    [INTENT_JOB_REGISTER] = "JobRegistered",
    [INTENT_JOB_DISPATCH] = "JobRegistered",
    [INTENT_PERIODIC_LAUNCH] = "JobRegistered",
    [INTENT_JOB_DEREGISTER] = "JobDeregistered",
    [INTENT_EVAL_UPDATE] = "EvaluationUpdated",
    [INTENT_NODE_EVALUATE] = "EvaluationUpdated",
    [INTENT_PLAN_RESULT] = "PlanResult",
    [INTENT_ALLOC_UPDATE] = "AllocationUpdated",
    [INTENT_ALLOC_TRANSITION] = "AllocationUpdateDesiredStatus",
    [INTENT_DEPLOYMENT_UPDATE] = "DeploymentStatusUpdate",
    [INTENT_DEPLOYMENT_PROMOTE] = "DeploymentPromotion",
    [INTENT_DEPLOYMENT_HEALTH] = "DeploymentAllocHealth",
};

static const struct topic *
topic_of(const struct fsm_event *e)
{
    for (size_t i = 0; i < ARRAY_LEN(topics) && e->what != FSM_QUIET; i++)
        if (topics[i].table == e->table)
            return &topics[i];
    return NULL;
}

const struct event_topic *
event_topic(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(topics); i++)
        if (str_eq(topics[i].t.name, name))
            return &topics[i].t;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (str_eq(others[i].name, name))
            return &others[i];
    return NULL;
}

bool
event_any(const struct fsm_events *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        if (topic_of(&rows->v[i]) != NULL)
            return true;
    return false;
}

static const char *
member_text(const struct type *t, const void *row, const char *wire)
{
    const char *const *p = type_member(t, row, wire);

    return p != NULL ? str_or(*p, "") : "";
}

static const char *
type_of(const struct topic *t, const struct event_batch *b, enum fsm_what what)
{
    const char *by = b->by < ARRAY_LEN(types_by) ? types_by[b->by] : NULL;

    if (what == FSM_DELETED)
        return t->deleted;
    return t->by_entry ? str_or(by, t->stored) : t->stored;
}

const struct event_topic *
event_head(const void *ctx, const struct event_batch *b, size_t i, struct event_head *ret)
{
    const struct fsm_event *e = &b->rows->v[i];
    const struct topic *t = topic_of(e);

    if (t == NULL)
        return NULL;
    *ret = (struct event_head){.topic = t->t.name,
                               .type = type_of(t, b, e->what),
                               .key = member_text(t->type, e->row, t->key),
                               .namespace = member_text(t->type, e->row, "Namespace"),
                               .index = b->index};
    for (size_t k = 0; k < ARRAY_LEN(t->keys) && t->keys[k] != NULL; k++) {
        const char *key = member_text(t->type, e->row, t->keys[k]);
        if (!str_empty(key))
            list_add(ctx, ret->filter_keys, key);
    }
    return &t->t;
}

bool
event_matches(const struct event_head *h, const char *want)
{
    size_t n = strcspn(want, ":");
    const char *key = want[n] == ':' ? want + n + 1 : "*";
    bool any = n == 1 && *want == '*';

    if (!any && (strlen(h->topic) != n || memcmp(h->topic, want, n) != 0))
        return false;
    return str_eq(key, "*") || str_eq(key, h->key) || str_list_has(&h->filter_keys, key);
}

/* --- batches --- */

struct event_batch *
event_batch_new(uint64_t index, const struct intent *in, const struct fsm_result *res)
{
    struct event_batch *b = mem_new(NULL, struct event_batch);

    atomic_init(&b->refs, 1);
    b->index = index;
    b->by = codec_member(&type_intent, in);
    b->rows = fsm_events_ref(res->events);
    b->bytes = 2 * talloc_total_size(res->events); /* with the texts */
    pthread_mutex_init(&b->lock, NULL);
    return b;
}

struct event_batch *
event_batch_ref(struct event_batch *b)
{
    atomic_fetch_add(&b->refs, 1);
    return b;
}

void
event_batch_unref(struct event_batch *b)
{
    if (b == NULL || atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    for (size_t i = 0; b->texts != NULL && i < b->rows->n; i++)
        buf_done(&b->texts[i]);
    fsm_events_unref(b->rows);
    pthread_mutex_destroy(&b->lock);
    mem_free(b);
}

/* --- payloads --- */

/* Whether it was ended because it had run for max_run_duration. */
static bool
is_overdue(const struct allocation *a)
{
    return str_eq(a->client_status, ALLOC_COMPLETE) &&
           str_eq(str_or(a->client_description, ""), ALLOC_OVERDUE);
}

static void
payload_make(struct buf *out, const struct topic *t, const struct fsm_event *e)
{
    auto_mem void *tmp = mem_ctx("payload");
    const struct type *type = t->type;
    const void *row = e->row;

    if (type == &type_sealed_variable) {
        type = &type_variable_metadata;
        struct variable_metadata *m =
            codec_project(tmp, projection_new(tmp, type, t->type), e->row);
        m->lock = NULL; /* its id proves who holds the variable */
        row = m;
    }
    buf_printf(out, "{\"%s\":", t->payload);
    json_encode(out, type, row, JSON_HIDE_SECRETS);
    if (type == &type_node && buf_error(out) == 0) {
        out->len--; /* the last brace; a node says so wherever it is answered */
        buf_printf(out, ",\"Drain\":%s}",
                   ((const struct node *)row)->drain_strategy != NULL ? "true" : "false");
    }
    if (type == &type_allocation && is_overdue(row))
        buf_puts(out, ",\"Timeout\":true,\"TimeoutReason\":\"" ALLOC_OVERDUE "\"");
    buf_puts(out, e->what == FSM_DELETED ? ",\"Deleted\":true}" : "}");
}

/* Made once, for all who read. */
static const struct buf *
payload_of(struct event_batch *b, size_t i)
{
    const struct fsm_event *e = &b->rows->v[i];

    pthread_mutex_lock(&b->lock);
    if (b->texts == NULL) {
        b->texts = mem_array(b, struct buf, b->rows->n);
        for (size_t k = 0; k < b->rows->n; k++)
            buf_init(&b->texts[k], SIZE_MAX);
    }
    if (b->texts[i].len == 0)
        payload_make(&b->texts[i], topic_of(e), e);
    pthread_mutex_unlock(&b->lock);
    return &b->texts[i];
}

void
event_write(struct buf *out, struct event_batch *b, size_t i, const struct event_head *h,
            bool whole)
{
    json_encode(out, &type_event_head, h, 0);
    if (buf_error(out) != 0)
        return;
    out->len--; /* the last brace */
    buf_puts(out, ",\"Payload\":");
    if (whole) {
        const struct buf *p = payload_of(b, i);
        buf_put(out, p->data, p->len);
    } else {
        buf_puts(out, "null");
    }
    buf_putc(out, '}');
}
