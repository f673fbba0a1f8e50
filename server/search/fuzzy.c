/* SPDX-License-Identifier: Apache-2.0
 *
 * Search.FuzzySearch: what has a text in its name, whatever the case, by kind: the nearest to the
 * beginning first, of those the shortest. Jobs are searched for groups, tasks, services and what
 * tasks run as well. Kinds without names are found by the beginning of their ids.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "server/search/kinds.h"

struct fuzzy {
    struct read *r;
    const char *text;
    struct fuzzy_search_response *resp;
};

/* --- the best of a kind --- */

static struct fuzzy_match_list *
fuzzy_list(struct fuzzy *z, const char *kind)
{
    return type_member(&type_fuzzy_matches, z->resp->matches, kind);
}

static int
fuzzy_order(const struct fuzzy *z, const struct fuzzy_match *a, const struct fuzzy_match *b)
{
    ptrdiff_t at = strcasestr(a->id, z->text) - a->id, bt = strcasestr(b->id, z->text) - b->id;
    size_t an = strlen(a->id), bn = strlen(b->id);

    if (at != bt)
        return at < bt ? -1 : 1;
    return an != bn ? (an < bn ? -1 : 1) : strcmp(a->id, b->id);
}

/* Keeps the best, in order; of equals those that came first. */
static void
fuzzy_put(struct fuzzy *z, const char *kind, struct fuzzy_match *m)
{
    struct fuzzy_match_list *l = fuzzy_list(z, kind);
    size_t at = l->n;

    while (at > 0 && fuzzy_order(z, m, l->v[at - 1]) < 0)
        at--;
    if (l->n == FUZZY_MATCHES_MAX) {
        map_put(z->resp, z->resp->truncations, kind)->v = true;
        struct fuzzy_match *last = at < l->n ? TAKE(l->v[l->n - 1]) : m;
        mem_free(last);
        if (at == l->n)
            return;
        l->n--;
    }
    list_add(z->resp, *l, m);
    memmove(&l->v[at + 1], &l->v[at], (l->n - 1 - at) * sizeof(*l->v));
    l->v[at] = m;
}

/* `scope` ends with NULL. */
static void
fuzzy_look(struct fuzzy *z, const char *kind, const char *name, const char *const *scope)
{
    if (str_empty(name) || strcasestr(name, z->text) == NULL)
        return;
    struct fuzzy_match *m = mem_new(z->resp, struct fuzzy_match);
    m->id = mem_strdup(m, name);
    for (size_t i = 0; scope[i] != NULL; i++)
        list_add(m, m->scope, mem_strdup(m, scope[i]));
    fuzzy_put(z, kind, m);
}
#define LOOK(z, kind, name, ...)                                                                   \
    fuzzy_look((z), (kind), (name), (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

/* --- jobs --- */

static void
fuzzy_task(struct fuzzy *z, const struct job *j, const char *group, const struct task *k)
{
    static const struct {
        const char *driver, *member, *kind;
    } runs[] = {{"docker", "image", "images"},       {"podman", "image", "images"},
                {"exec", "command", "commands"},     {"exec2", "command", "commands"},
                {"raw_exec", "command", "commands"}, {"java", "class", "classes"}};
    const char *ns = j->namespace, *job = j->id;

    LOOK(z, "tasks", k->name, ns, job, group);
    for (size_t i = 0; i < k->services.n; i++)
        LOOK(z, "services", k->services.v[i]->name, ns, job, group, str_or(k->name, ""));
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        bool has = k->config != NULL && k->config->kind == VALUE_MAP;
        const struct value *v =
            has && str_eq(k->driver, runs[i].driver) ? value_get(k->config, runs[i].member) : NULL;
        if (v != NULL && v->kind == VALUE_STRING)
            LOOK(z, runs[i].kind, v->str.s, ns, job, group, str_or(k->name, ""));
    }
}

static void
fuzzy_job(struct fuzzy *z, const struct job *j)
{
    LOOK(z, "jobs", j->name, j->namespace, j->id);
    for (size_t g = 0; g < j->task_groups.n; g++) {
        const struct task_group *tg = j->task_groups.v[g];
        const char *group = str_or(tg->name, "");
        LOOK(z, "groups", group, j->namespace, j->id);
        for (size_t i = 0; i < tg->services.n; i++)
            LOOK(z, "services", tg->services.v[i]->name, j->namespace, j->id, group);
        for (size_t i = 0; i < tg->tasks.n; i++)
            fuzzy_task(z, j, group, tg->tasks.v[i]);
    }
}

/* --- kinds --- */

static void
fuzzy_row(struct fuzzy *z, const struct search_kind *k, const void *obj)
{
    const char *ns = search_text(k->type, obj, "Namespace");
    const char *name = search_text(k->type, obj, "Name"), *id = search_id(k, obj);

    if (k->table == STATE_JOBS)
        fuzzy_job(z, obj);
    else if (k->table == STATE_NAMESPACES)
        LOOK(z, k->name, name);
    else if (ns != NULL)
        LOOK(z, k->name, str_or(name, id), ns, id);
    else
        LOOK(z, k->name, str_or(name, id), id);
}

/* Looks at FUZZY_ROWS_MAX rows at most. */
static void
fuzzy_names(struct fuzzy *z, struct state_txn *t, const struct search_kind *k)
{
    struct acl_need need = search_need(k);
    struct read *r = z->r;
    struct lean *lean = k->table != STATE_JOBS
                            ? lean_new(r->ctx, k->type, k->type, "ID Name Namespace Path", "")
                            : NULL;
    struct state_iter *it = search_rows(r, t, k, "");
    size_t seen = 0;

    map_put(z->resp, z->resp->truncations, k->name)->v = false;
    for (void *obj; (obj = state_next_lean(it, r->ctx, lean)) != NULL; talloc_free(obj)) {
        if (++seen > FUZZY_ROWS_MAX) {
            map_put(z->resp, z->resp->truncations, k->name)->v = true;
            talloc_free(obj);
            state_iter_end(it);
            return;
        }
        const char *ns = search_text(k->type, obj, "Namespace");
        if (search_may_row(r, &need, ns, search_id(k, obj)))
            fuzzy_row(z, k, obj);
    }
}

static void
fuzzy_ids(struct fuzzy *z, struct state_txn *t, const struct search_kind *k)
{
    struct str_list found = {0};

    map_put(z->resp, z->resp->truncations, k->name)->v = search_prefix(z->r, t, k, z->text, &found);
    for (size_t i = 0; i < found.n; i++) {
        struct fuzzy_match *m = mem_new(z->resp, struct fuzzy_match);
        m->id = found.v[i];
        list_add(z->resp, *fuzzy_list(z, k->name), m);
    }
}

/* Kinds that are found in jobs. */
static bool
in_jobs(const char *context)
{
    static const char *const of[] = {"groups", "tasks",    "services",
                                     "images", "commands", "classes"};

    for (size_t i = 0; i < ARRAY_LEN(of); i++)
        if (str_eq(of[i], context))
            return true;
    return false;
}

static int
fuzzy_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct fuzzy_search_request *req = r->req;
    struct fuzzy z = {.r = r, .text = str_or(req->text, ""), .resp = read_resp(r)};
    const char *context = in_jobs(req->context) ? "jobs" : req->context;
    bool all = str_eq(context, "all") || str_empty(context), known = all;
    size_t n = strlen(z.text);

    z.resp->matches = mem_new(z.resp, struct fuzzy_matches);
    for (size_t i = 0; i < search_kinds_n; i++) {
        const struct search_kind *k = &search_kinds[i];
        if (!all && !str_eq(context, k->name))
            continue;
        known = true;
        struct acl_need need = search_need(k);
        if (!search_may(r, k, &need) && !all && !str_eq(read_ns(r), "*"))
            return err_set(e, -ERR_FORBIDDEN, "Permission denied");
        if (n < FUZZY_TEXT_MIN || k->type == NULL || !search_may(r, k, &need))
            continue;
        if (k->hex && k->table != STATE_ALLOCS && k->table != STATE_NODES)
            fuzzy_ids(&z, t, k);
        else
            fuzzy_names(&z, t, k);
    }
    if (!known)
        return err_set(e, -ERR_INVALID, "there is no context \"%.64s\"", context);
    if (n < FUZZY_TEXT_MIN)
        return err_set(e, -ERR_INVALID,
                       "fuzzy search query must be at least %d characters, got %zu", FUZZY_TEXT_MIN,
                       n);
    r->index = state_index(t, r->row->tables);
    z.resp->index = r->index;
    z.resp->known_leader = true;
    return 0;
}

const struct read_row read_search_fuzzy_search = {.tables = SEARCH_TABLES, .run = fuzzy_run};
