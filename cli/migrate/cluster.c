/* SPDX-License-Identifier: Apache-2.0
 *
 * A running Nomad, by its API: its jobs as they are registered, and what of it is not in a job.
 */
#include "api/terms.h"
#include "cli/api.h"
#include "cli/migrate/migrate.h"
#include "drivers/driver.h"

/* A member of a member; NULL. */
static const struct value *
cluster_member(const struct value *v, const char *a, const char *b)
{
    const struct value *x = v && v->kind == VALUE_MAP ? value_get(v, a) : NULL;
    return x && x->kind == VALUE_MAP ? value_get(x, b) : NULL;
}

static bool
cluster_on(const struct value *v)
{
    return v && v->kind == VALUE_BOOL && v->b;
}

static void
check_agent(struct cmd *c, struct checked *k, const struct value *self)
{
    const struct value *config = self && self->kind == VALUE_MAP ? value_get(self, "config") : NULL;
    const struct {
        const char *block, *key, *text, *fix;
    } rows[] = {
        {"ACL", "Enabled",
         "access control is on, and is not in this release: everybody may do everything",
         "keep the API from those who must not use it"},
    };
    static const char *const tls[] = {"EnableHTTP", "EnableRPC"};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (cluster_on(cluster_member(config, rows[i].block, rows[i].key)))
            checked_add(c, k, MIGRATE_REFUSED, NULL, rows[i].text, rows[i].fix);
    for (size_t i = 0; i < ARRAY_LEN(tls); i++)
        if (cluster_on(cluster_member(config, "TLSConfig", tls[i])))
            checked_add(c, k, MIGRATE_UNCHANGED, NULL,
                        str_eq(tls[i], "EnableRPC") ? "TLS between agents is on" : "HTTPS is on",
                        "take the tls block and its files along; paths are absolute");
}

/* Drivers that nodes have and this release has not. */
static void
check_nodes(struct cmd *c, struct checked *k, const struct object_list *nodes)
{
    struct str_list told = {0};

    for (size_t i = 0; i < nodes->n; i++) {
        const struct node_list_stub *n = nodes->v[i];
        for (size_t j = 0; j < n->drivers.n; j++) {
            const char *name = n->drivers.v[j].k;
            if (!n->drivers.v[j].v->healthy || driver_find(name) || str_list_has(&told, name))
                continue;
            list_add(c, told, name);
            checked_add(
                c, k, MIGRATE_UNCHANGED, NULL,
                mem_printf(c, "nodes have the driver \"%s\", which is not in this release", name),
                "nothing, unless a job below uses it");
        }
    }
}

/* The names of a list of objects. */
static int
check_names(struct cmd *c, struct checked *k, const char *path, const char *what)
{
    struct value *v = NULL;
    struct err e = ERR_INIT;

    if (api_get_value(c, api_target(c, path, NULL), &v, &e) || !v || v->kind != VALUE_LIST)
        return 0; /* an agent that has none */
    for (size_t i = 0; i < v->list.n; i++) {
        const struct value *name =
            v->list.v[i]->kind == VALUE_MAP ? value_get(v->list.v[i], "Name") : NULL;
        if (name && name->kind == VALUE_STRING && !str_eq(name->str.s, NS_DEFAULT) &&
            !str_eq(name->str.s, POOL_ALL))
            checked_add(c, k, MIGRATE_DIFFERS, NULL,
                        mem_printf(c, "%s \"%s\" has to be made", what, name->str.s),
                        "make it before jobs that are in it run");
    }
    return 0;
}

static int
check_one(struct cmd *c, const struct job_list_stub *j, struct checked_list *l)
{
    struct err e = ERR_INIT;
    void *job = NULL;
    const char *ns = str_or(j->namespace, NS_DEFAULT);
    struct checked *k = checked_new(c, l, "job", mem_printf(c, "job \"%s\"", j->id));

    c->namespace = ns;
    if (api_get(c, api_target(c, "/v1/job/%", j->id, NULL), &type_job, &job, NULL, &e) || !job) {
        cmd_fail(c, "Error querying job \"%s\": %s", j->id, e.text);
        return -1;
    }
    k->name = j->id;
    check_job(c, k, job);
    return 0;
}

int
check_cluster(struct cmd *c, struct checked_list *l)
{
    struct object_list jobs = {0}, nodes = {0};
    struct checked *k = checked_new(c, l, "cluster", c->address);
    struct value *self = NULL;
    struct err e = ERR_INIT;

    if (api_get_value(c, api_target(c, "/v1/agent/self", NULL), &self, &e) ||
        api_list(c, api_target(c, "/v1/nodes", NULL), &type_node_list_stub, &nodes, NULL, &e)) {
        cmd_fail(c, "Error querying \"%s\": %s", c->address, e.text);
        return -1;
    }
    check_agent(c, k, self);
    check_nodes(c, k, &nodes);
    check_names(c, k, "/v1/namespaces", "namespace");
    check_names(c, k, "/v1/node/pools", "node pool");
    c->namespace = "*";
    if (!api_read_list(c, api_target(c, "/v1/jobs", NULL), &type_job_list_stub, &jobs,
                       "Error querying jobs"))
        return -1;
    for (size_t i = 0; i < jobs.n; i++) {
        const struct job_list_stub *j = jobs.v[i];
        if (str_empty(j->parent_id) && check_one(c, j, l))
            return -1;
    }
    return 0;
}
