/* SPDX-License-Identifier: Apache-2.0
 *
 * Service.*, and what is asked of the services of a job or an allocation: registrations are written
 * by nodes, and read by all who look for an address.
 */
#include <ctype.h>
#include <string.h>

#include "api/service/service.h"
#include "api/terms.h"
#include "common/hash.h"
#include "common/mem.h"
#include "server/call/method.h"

/* --- reads --- */

/* An instance whose node is not heard is not handed out. */
static bool
services_takes(const struct read *r, const void *whole)
{
    (void)r;
    return !((const struct service_registration *)whole)->away;
}

static bool
instance_works(const struct service_registration *s)
{
    return str_empty(s->health) || str_eq(s->health, SERVICE_PASSING);
}

/* A program that asks for a name sends its users where it is told: not to what does not work. */
static bool
instances_takes(const struct read *r, const void *whole)
{
    const struct service_registration *s = whole;
    bool all = !((const struct id_request *)r->req)->healthy;

    return !s->away && (all || instance_works(s));
}

#define SERVICE_ROWS .tables = STATE_BIT(STATE_SERVICES), .run = read_list, .needs = "Away Health"

const struct read_row read_service_get = {SERVICE_ROWS, .takes = instances_takes,
                                          .about = WATCH_SERVICE, .by = STATE_SERVICES_BY_NAME};
/* ... by a node, for its DNS. */
const struct read_row read_service_find = {SERVICE_ROWS, .takes = instances_takes,
                                           .about = WATCH_SERVICE, .by = STATE_SERVICES_BY_NAME};
const struct read_row read_job_services = {SERVICE_ROWS, .takes = services_takes,
                                           .about = WATCH_JOB_SERVICES,
                                           .by = STATE_SERVICES_BY_JOB};
const struct read_row read_alloc_services = {SERVICE_ROWS, .takes = services_takes,
                                             .about = WATCH_ALLOC_SERVICES,
                                             .by = STATE_SERVICES_BY_ALLOC};

/* Gives the name its entry; they come in the order of the index. */
static struct service_stub *
stub_of(struct service_list_response *resp, const struct service_registration *s)
{
    struct services_of_namespace *of =
        resp->services.n > 0 ? resp->services.v[resp->services.n - 1] : NULL;

    if (of == NULL || !str_eq(of->namespace, s->namespace)) {
        of = type_new(resp, &type_services_of_namespace);
        of->namespace = mem_strdup(of, s->namespace);
        list_add(resp, resp->services, of);
    }
    struct service_stub *stub = of->services.n > 0 ? of->services.v[of->services.n - 1] : NULL;
    if (stub == NULL || !str_eq(stub->service_name, s->service_name)) {
        stub = type_new(of, &type_service_stub);
        stub->service_name = mem_strdup(stub, s->service_name);
        list_add(of, of->services, stub);
    }
    return stub;
}

static void
stub_add(struct service_list_response *resp, const struct service_registration *s)
{
    struct service_stub *stub = stub_of(resp, s);

    for (size_t i = 0; i < s->tags.n; i++)
        if (!str_list_has(&stub->tags, s->tags.v[i]))
            list_add(stub, stub->tags, mem_strdup(stub, s->tags.v[i]));
}

static int
services_run(struct read *r, struct state_txn *t, struct err *e)
{
    struct service_list_response *resp = read_resp(r);
    const char *ns = str_eq(read_ns(r), NS_ALL) ? NULL : read_ns(r);
    struct state_iter *it = ns != NULL ? state_by(t, r->ctx, SERVICES_BY_NAME, ns)
                                       : state_by_rows(t, r->ctx, STATE_SERVICES_BY_NAME, NULL, 0);

    (void)e;
    for (struct service_registration *s; (s = state_next(it, r->ctx)) != NULL; talloc_free(s)) {
        if (!s->away && read_ns_matches(r, s->namespace))
            stub_add(resp, s);
    }
    r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_service_list = {.tables = STATE_BIT(STATE_SERVICES),
                                           .run = services_run};

/* --- a node looks for its tasks --- */

static uint64_t
find_key(const struct read *r)
{
    const struct alloc_find_request *req = r->req;

    return str_empty(req->service_name)
               ? 0
               : state_watch_key(WATCH_SERVICE, str_or(req->namespace, NS_DEFAULT),
                                 req->service_name);
}

/* Fails where the node has no allocation in that namespace that may ask. */
static int
find_allowed(struct read *r, struct state_txn *t, struct err *e)
{
    const struct alloc_find_request *req = r->req;
    const struct allocation *a = state_alloc(t, r->ctx, str_or(req->alloc_id, ""));

    if (a == NULL || alloc_terminal(a))
        return err_set(e, -ERR_NOT_FOUND, "allocation \"%.40s\" is not there, or has ended",
                       str_or(req->alloc_id, ""));
    if (!str_eq(a->node_id, r->node->id) ||
        !str_eq(str_or(a->namespace, NS_DEFAULT), str_or(req->namespace, NS_DEFAULT)))
        return err_set(e, -ERR_FORBIDDEN, "allocation %s is not of this node and namespace", a->id);
    return 0;
}

static void
find_names(struct read *r, struct state_txn *t, struct alloc_find_response *resp)
{
    const struct alloc_find_request *req = r->req;
    struct service_list_response *all = type_new(r->ctx, &type_service_list_response);
    struct state_iter *it =
        state_by(t, r->ctx, SERVICES_BY_NAME, str_or(req->namespace, NS_DEFAULT));

    for (struct service_registration *s; (s = state_next(it, r->ctx)) != NULL; talloc_free(s))
        if (!s->away)
            stub_add(all, s);
    if (all->services.n > 0)
        resp->names = all->services.v[0]->services;
    for (size_t i = 0; i < resp->names.n; i++) {
        const struct service_stub *stub = resp->names.v[i];
        uint64_t tags = HASH_START;
        for (size_t k = 0; k < stub->tags.n; k++)
            tags = hash_text(tags, stub->tags.v[k]);
        read_saw(r, stub->service_name, tags);
    }
}

static int
find_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct alloc_find_request *req = r->req;
    struct alloc_find_response *resp = read_resp(r);

    if (find_allowed(r, t, e) < 0)
        return e->code;
    r->index = state_index(t, r->row->tables);
    r->print = HASH_START;
    if (str_empty(req->service_name)) {
        find_names(r, t, resp);
        return 0;
    }
    struct state_iter *it =
        state_services_by_name(t, r->ctx, str_or(req->namespace, NS_DEFAULT), req->service_name);
    for (struct service_registration *s; (s = state_next(it, r->ctx)) != NULL;) {
        if (s->away || !instance_works(s))
            continue;
        list_add(r->ctx, resp->services, s);
        read_saw(r, s->id, s->modify_index);
    }
    return 0;
}

const struct read_row read_alloc_find_services = {
    .tables = STATE_BIT(STATE_SERVICES), .key = find_key, .run = find_run};

/* --- writes --- */

static int
check_registration(const struct service_registration *s, const char *alloc_id, struct err *e)
{
    static const char *const words[] = {"", SERVICE_PENDING, SERVICE_PASSING, SERVICE_FAILING};
    bool known = false;

    if (!service_id_is_of(s->id, alloc_id))
        return err_set(e, -ERR_INVALID, "registration \"%.200s\" is none of allocation \"%s\"",
                       str_or(s->id, ""), alloc_id);
    if (!service_name_valid(s->service_name))
        return err_set(
            e, -ERR_INVALID,
            "service \"%.80s\": a name has 1 to 63 letters, digits and hyphens, and none "
            "at its ends",
            str_or(s->service_name, ""));
    if (s->port < 0 || s->port > 65535 || strlen(str_or(s->address, "")) > SERVICE_ADDRESS_MAX)
        return err_set(e, -ERR_INVALID, "service \"%s\": its address or port is none",
                       s->service_name);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        known |= str_eq(str_or(s->health, ""), words[i]);
    return known ? codec_check(&type_service_registration, s, e)
                 : err_set(e, -ERR_INVALID,
                           "service \"%s\": health \"%.40s\" is not " SERVICE_PENDING
                           ", " SERVICE_PASSING " or " SERVICE_FAILING,
                           s->service_name, s->health);
}

static int
prepare_set(struct write *w, struct state_txn *t, struct err *e)
{
    const struct service_set_request *req = w->req;
    struct intent_services_set *in = mem_new(w->ctx, struct intent_services_set);
    const char *id = str_or(req->alloc_id, "");

    (void)t;
    if (codec_check(&type_service_set_request, req, e) < 0)
        return e->code;
    for (size_t i = 0; i < req->services.n; i++) {
        if (check_registration(req->services.v[i], id, e) < 0)
            return e->code;
        for (size_t k = 0; k < i; k++)
            if (str_eq(req->services.v[k]->id, req->services.v[i]->id))
                return err_set(e, -ERR_INVALID, "registration \"%.200s\" is there twice",
                               req->services.v[i]->id);
    }
    *in = (struct intent_services_set){w->node->id, id, req->services};
    w->in.services_set = in;
    return 0;
}

const struct write_row write_service_set = {prepare_set, write_reply_index, .here = true};

static int
prepare_delete(struct write *w, struct state_txn *t, struct err *e)
{
    const struct service_delete_request *req = w->req;
    struct intent_service_delete *in = mem_new(w->ctx, struct intent_service_delete);

    (void)t;
    if (str_empty(req->id) || str_empty(req->service_name))
        return err_set(e, -ERR_INVALID, "missing service name or registration ID");
    *in = (struct intent_service_delete){w->ns, req->service_name, req->id};
    w->in.service_delete = in;
    return 0;
}

const struct write_row write_service_delete = {prepare_delete, write_reply_index, .here = true};
