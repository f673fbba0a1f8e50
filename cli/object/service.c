/* SPDX-License-Identifier: Apache-2.0
 *
 * service list, info, delete: what can be found by its name, and where it is.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/api.h"
#include "cli/format.h"
#include "cli/object/object.h"
#include "cli/views.h"

#define NO_SERVICES "No service registrations found"

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns "[a,b]", in order. */
static const char *
print_tags(struct cmd *c, const struct str_list *tags)
{
    struct str_list l = {0};

    for (size_t i = 0; i < tags->n; i++)
        list_add(c, l, str_or(tags->v[i], ""));
    if (l.n > 0)
        qsort(l.v, l.n, sizeof(*l.v), by_text);
    return mem_printf(c, "[%s]", str_or(fmt_join(c, &l, ","), ""));
}

/* --- list --- */

/* Keeps those of that name, where one was given. */
static void
keep_named(struct cmd *c, struct services_of_namespace_list *all, const char *name)
{
    struct services_of_namespace_list kept = {NULL, 0};

    for (size_t i = 0; i < all->n && !str_empty(name); i++) {
        struct services_of_namespace *of = all->v[i];
        struct service_stub_list l = {NULL, 0};
        for (size_t k = 0; k < of->services.n; k++)
            if (str_eq(of->services.v[k]->service_name, name))
                list_add(c, l, of->services.v[k]);
        of->services = l;
        if (l.n > 0)
            list_add(c, kept, of);
    }
    if (!str_empty(name))
        *all = kept;
}

int
cmd_service_list(struct cmd *c)
{
    const char *name = NULL;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"name", OPT_STRING, &name, "<name>", "Only the service of that name."},
        OUTPUT_OPTS(out),
        {0}};
    struct services_of_namespace_list l;
    struct table t;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (!api_read_list(c, api_target(c, "/v1/services", NULL), &type_services_of_namespace, &l,
                       "Error listing service registrations"))
        return 1;
    keep_named(c, &l, name);
    if (output_list(c, &out, &type_services_of_namespace, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, NO_SERVICES);
        return 0;
    }
    bool all = str_eq(c->namespace, "*");
    table_init(&t, c, all ? 3 : 2);
    if (all)
        table_row(&t, "Service Name", "Namespace", "Tags");
    else
        table_row(&t, "Service Name", "Tags");
    for (size_t i = 0; i < l.n; i++)
        for (size_t k = 0; k < l.v[i]->services.n; k++) {
            const struct service_stub *s = l.v[i]->services.v[k];
            const char *tags = print_tags(c, &s->tags);
            if (all)
                table_row(&t, s->service_name, l.v[i]->namespace, tags);
            else
                table_row(&t, s->service_name, tags);
        }
    table_print(&t);
    return 0;
}

/* --- info --- */

static const char *
print_address(struct cmd *c, const struct service_registration *s)
{
    const char *host = str_or(s->address, "");

    return mem_printf(c, strchr(host, ':') != NULL ? "[%s]:%lld" : "%s:%lld", host,
                      (long long)s->port);
}

static void
print_whole(struct cmd *c, const struct service_registration *s)
{
    struct table t;

    table_init(&t, c, 2);
    table_row(&t, "ID", s->id);
    table_row(&t, "Service Name", s->service_name);
    table_row(&t, "Namespace", s->namespace);
    table_row(&t, "Job ID", s->job_id);
    table_row(&t, "Alloc ID", s->alloc_id);
    table_row(&t, "Node ID", s->node_id);
    table_row(&t, "Datacenter", s->datacenter);
    table_row(&t, "Address", print_address(c, s));
    table_row(&t, "Tags", print_tags(c, &s->tags));
    if (!str_empty(s->health))
        table_row(&t, "Health", s->health);
    table_print_kv(&t);
}

/* The column of health is there where an instance has checks. */
static void
print_instances(struct cmd *c, const struct service_registration_list *l)
{
    struct table t;
    bool checked = false;

    for (size_t i = 0; i < l->n; i++)
        checked |= !str_empty(l->v[i]->health);
    table_init(&t, c, checked ? 6 : 5);
    const char *head[] = {"Job ID", "Address", "Tags", "Node ID", "Alloc ID", "Health"};
    table_cells(&t, head);
    for (size_t i = 0; i < l->n; i++) {
        const struct service_registration *s = l->v[i];
        const char *cells[] = {s->job_id,
                               print_address(c, s),
                               print_tags(c, &s->tags),
                               fmt_id(c, s->node_id, false),
                               fmt_id(c, s->alloc_id, false),
                               s->health};
        table_cells(&t, cells);
    }
    table_print(&t);
}

int
cmd_service_info(struct cmd *c)
{
    struct list_opts o = {.filter = NULL};
    bool verbose = false, healthy = false;
    const struct opt opts[] = {
        {"verbose", OPT_BOOL, &verbose, NULL, "Show all of each instance."},
        {"healthy", OPT_BOOL, &healthy, NULL, "Only instances whose checks do not fail."},
        LIST_OPTS(o, "instances"),
        {0}};
    struct service_registration_list l;
    struct api_meta meta = {0};
    struct err e = ERR_INIT;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    char *target = object_list_target(c, "/v1/service/%", c->args[0], &o);
    if (!healthy)
        target =
            mem_printf(c, "%s%chealthy=false", target, strchr(target, '?') != NULL ? '&' : '?');
    if (api_list(c, target, &type_service_registration, &l, &meta, &e))
        return cmd_fail(c, "Error listing service registrations: %s", e.text);
    if (output_list(c, &o.out, &type_service_registration, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, NO_SERVICES);
        return 0;
    }
    for (size_t i = 0; i < l.n && verbose; i++) {
        if (i > 0)
            cmd_say(c, "%s", "");
        print_whole(c, l.v[i]);
    }
    if (!verbose)
        print_instances(c, &l);
    view_next_page(c, meta.next_token);
    return 0;
}

/* --- delete --- */

int
cmd_service_delete(struct cmd *c)
{
    const struct opt opts[] = {{0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 2, .max = 2}, &rc))
        return rc;
    const struct change ch = {.method = "DELETE",
                              .target =
                                  api_target(c, "/v1/service/%/%", c->args[0], c->args[1], NULL),
                              .failed = "Error deleting service registration"};
    if (api_change(c, &ch) == NULL)
        return 1;
    cmd_say(c, "Successfully deleted service registration");
    return 0;
}
