/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of services in jobs, in this order: ports, checks, a service, all services of a group,
 * and providers that are not there. Each rule complains in Nomad's words and goes on.
 */
#include "api/validate_service.h"

#include <stdarg.h>
#include <string.h>

#include "api/limits.h"
#include "api/service/service.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

struct check {
    const void *ctx;
    const struct task_group *group;
    const struct task *task; /* NULL: services of the group */
    struct str_list *errors;
};

__attribute__((format(printf, 2, 3))) static void
service_complain(const struct check *c, const char *fmt, ...)
{
    if (c->errors->n >= JOB_ERRORS_MAX)
        return;
    va_list ap;
    va_start(ap, fmt);
    list_add(c->ctx, *c->errors, mem_vprintf(c->ctx, fmt, ap));
    va_end(ap);
}

/* Says whether the text is interpolated where it runs, and cannot be looked at. */
static bool
is_interpolated(const char *s)
{
    return strstr(str_or(s, ""), "${") != NULL;
}

static bool
of_nomad(const struct service *s)
{
    return str_eq(s->provider, "nomad");
}

/* --- ports --- */

static bool
has_label(const struct network_resource_list *l, const char *label)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct port_list *lists[] = {&l->v[i]->reserved_ports, &l->v[i]->dynamic_ports};
        for (size_t k = 0; k < ARRAY_LEN(lists); k++)
            for (size_t p = 0; p < lists[k]->n; p++)
                if (str_eq(lists[k]->v[p]->label, label))
                    return true;
    }
    return false;
}

static bool
has_port(const struct check *c, const struct task *t, const char *label)
{
    return has_label(&c->group->networks, label) ||
           (t != NULL && t->resources != NULL && has_label(&t->resources->networks, label));
}

/* A label must be a port's, of the group or of the service's task; a number is taken as it is. */
static void
service_port(const struct check *c, const struct service *s, const char *label, const char *of)
{
    uint64_t port;

    if (str_empty(label) || is_interpolated(label))
        return;
    if (num_parse_u64(label, &port) == 0) {
        if (port == 0 || port > 65535)
            service_complain(c, "service \"%s\"%s: port %.20s is not between 1 and 65535", s->name,
                             of, label);
        return;
    }
    const struct task *t = c->task;
    for (size_t i = 0; t == NULL && i < c->group->tasks.n; i++)
        if (str_eq(c->group->tasks.v[i]->name, s->task_name))
            t = c->group->tasks.v[i];
    if (!has_port(c, t, label))
        service_complain(c, "service \"%s\"%s: port label \"%s\" does not exist", s->name, of,
                         label);
}

/* --- checks --- */

/* The task of the group in which a script check runs. */
static const char *
task_of_check(const struct service *s, const struct service_check *k)
{
    return str_or(k->task_name, str_or(s->task_name, ""));
}

static bool
has_task(const struct task_group *g, const char *name)
{
    for (size_t i = 0; i < g->tasks.n; i++)
        if (str_eq(g->tasks.v[i]->name, name))
            return true;
    return false;
}

/* Refuses what Nomad's own provider does not take. */
static void
check_of_nomad(const struct check *c, const struct service *s, const struct service_check *k)
{
    static const char *const methods[] = {"",       "GET",     "HEAD",    "POST",  "PUT", "PATCH",
                                          "DELETE", "CONNECT", "OPTIONS", "TRACE", NULL};
    const struct {
        bool is;
        const char *what;
    } rows[] = {
        {k->expose, "expose"},
        {str_eq(k->on_update, "ignore_warnings"), "on_update = \"ignore_warnings\""},
        {k->success_before_passing > 0, "success_before_passing"},
        {k->failures_before_critical > 0, "failures_before_critical"},
        {k->failures_before_warning > 0, "failures_before_warning"},
        {!str_empty(k->tls_server_name), "tls_server_name"},
        {str_eq(k->address_mode, "driver"), "address_mode = \"driver\""},
        {k->check_restart != NULL && k->check_restart->ignore_warnings,
         "check_restart { ignore_warnings }"},
    };

    if (str_eq(k->type, "script") && c->task == NULL && !has_task(c->group, task_of_check(s, k)))
        service_complain(c,
                         "service \"%s\": check: a script check of a group runs in a task of it: "
                         "name that by task",
                         s->name);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].is)
            service_complain(
                c, "service \"%s\": check: %s may only be set for Consul service checks: remove it",
                s->name, rows[i].what);
    if (!str_is_one(k->method, methods))
        service_complain(c, "service \"%s\": check: method \"%s\" is none of HTTP", s->name,
                         k->method);
    if (!STR_ONE_OF(k->address_mode, "", "host", "driver", "alloc", "alloc_ipv6"))
        service_complain(c, "service \"%s\": check: address_mode \"%s\" is not host or alloc",
                         s->name, k->address_mode);
    if (!STR_ONE_OF(k->protocol, "", "http", "https"))
        service_complain(c, "service \"%s\": check: protocol \"%s\" is not http or https", s->name,
                         k->protocol);
}

static void
service_check(const struct check *c, const struct service *s, const struct service_check *k)
{
    bool script = str_eq(k->type, "script");

    if (!STR_ONE_OF(k->type, "http", "tcp", "script", "grpc"))
        service_complain(c, "service \"%s\": check: type \"%s\" is not http, tcp, script or grpc",
                         s->name, str_or(k->type, ""));
    else if (of_nomad(s))
        check_of_nomad(c, s, k);
    if (str_eq(k->type, "http") && str_empty(k->path))
        service_complain(c, "service \"%s\": check: an http check needs a path", s->name);
    else if (str_eq(k->type, "http") && strstr(k->path, "://"))
        service_complain(c, "service \"%s\": check: path \"%s\" must be relative", s->name,
                         k->path);
    if (script && str_empty(k->command))
        service_complain(c, "service \"%s\": check: a script check needs a command", s->name);
    if (k->interval < NS_PER_S || k->timeout < NS_PER_S)
        service_complain(c, "service \"%s\": check: interval and timeout must be at least 1s",
                         s->name);
    if (!script && str_empty(k->port_label) && str_empty(s->port_label))
        service_complain(
            c,
            "service \"%s\": check: a check requires a port, but neither check nor service has one",
            s->name);
    service_port(c, s, k->port_label, ": check");
    const struct check_restart *r = k->check_restart;
    if (r != NULL && (r->limit < 0 || r->grace.v < 0))
        service_complain(
            c, "service \"%s\": check: check_restart: limit and grace may not be negative",
            s->name);
    if (!STR_ONE_OF(k->on_update, "", "require_healthy", "ignore_warnings", "ignore"))
        service_complain(c,
                         "service \"%s\": check: on_update \"%s\" is not require_healthy, "
                         "ignore_warnings or ignore",
                         s->name, k->on_update);
    if (r != NULL && r->limit > 0 && str_eq(k->on_update, "ignore"))
        service_complain(c,
                         "service \"%s\": check: on_update value \"ignore\" is not compatible with "
                         "check_restart",
                         s->name);
}

/* --- a service --- */

static void
service_one(const struct check *c, struct service *s)
{
    s->name = str_or(s->name, "");
    if (!is_interpolated(s->name) && !service_name_valid(s->name))
        service_complain(c,
                         "service \"%.80s\": a name has 1 to 63 letters, digits and hyphens, and "
                         "begins and ends with none of the last (RFC 1123)",
                         s->name);
    if (!STR_ONE_OF(s->provider, "consul", "nomad"))
        service_complain(c, "service \"%s\": provider \"%s\" is not consul or nomad", s->name,
                         s->provider);
    if (!STR_ONE_OF(s->address_mode, "auto", "host", "driver", "alloc", "alloc_ipv6"))
        service_complain(
            c, "service \"%s\": address_mode \"%s\" is not auto, host, driver, alloc or alloc_ipv6",
            s->name, s->address_mode);
    if (!str_empty(s->address) && !str_eq(s->address_mode, "auto"))
        service_complain(c, "service \"%s\": an address goes with address_mode \"auto\"", s->name);
    if (of_nomad(s) && str_eq(s->address_mode, "driver"))
        service_complain(
            c,
            "service \"%s\": address_mode \"driver\" is not in this release: no driver "
            "tells an address; write \"host\" or \"alloc\"",
            s->name);
    if (s->connect && of_nomad(s))
        service_complain(c, "service \"%s\": connect needs provider \"consul\"", s->name);
    if (s->identity && of_nomad(s))
        service_complain(c, "service \"%s\": an identity is for provider \"consul\": remove it",
                         s->name);
    if (s->tags.n > SERVICE_TAGS_MAX || s->canary_tags.n > SERVICE_TAGS_MAX)
        service_complain(c, "service \"%s\": at most %d tags are allowed", s->name,
                         SERVICE_TAGS_MAX);
    service_port(c, s, s->port_label, "");
    for (size_t i = 0; i < s->checks.n; i++)
        service_check(c, s, s->checks.v[i]);
}

/* Two of one name and port are one registration. */
static void
no_twins(const struct check *c, const struct service_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < i; k++)
            if (of_nomad(l->v[i]) && of_nomad(l->v[k]) && str_eq(l->v[i]->name, l->v[k]->name) &&
                str_eq(str_or(l->v[i]->port_label, ""), str_or(l->v[k]->port_label, "")))
                service_complain(c, "service \"%s\" is there twice with the same port",
                                 str_or(l->v[i]->name, ""));
}

/* All registrations of an allocation go in one call, and all checks of it run on its node. */
static void
service_counts(const struct check *c)
{
    size_t services = c->group->services.n, checks = 0;

    for (size_t i = 0; i < c->group->services.n; i++)
        checks += c->group->services.v[i]->checks.n;
    for (size_t k = 0; k < c->group->tasks.n; k++) {
        const struct task *t = c->group->tasks.v[k];
        services += t->services.n;
        for (size_t i = 0; i < t->services.n; i++)
            checks += t->services.v[i]->checks.n;
    }
    if (services > SERVICES_MAX || checks > SERVICE_CHECKS_MAX)
        service_complain(
            c,
            "%zu services and %zu checks in the group and its tasks: at most %d and %d "
            "are allowed",
            services, checks, SERVICES_MAX, SERVICE_CHECKS_MAX);
}

void
service_validate(const void *ctx, const struct task_group *g, const struct task *t,
                 struct str_list *errors)
{
    const struct check c = {ctx, g, t, errors};
    const struct service_list *l = t != NULL ? &t->services : &g->services;

    if (t == NULL)
        service_counts(&c);
    if (l->n > SERVICES_MAX) /* has been told */
        return;
    for (size_t i = 0; i < l->n; i++)
        service_one(&c, l->v[i]);
    no_twins(&c, l);
}

/* --- what is not there --- */

static void
unsupported_of(const void *ctx, const char *where, const struct service_list *l,
               struct str_list *errors)
{
    for (size_t i = 0; i < l->n && errors->n < JOB_ERRORS_MAX; i++) {
        const struct service *s = l->v[i];
        if (str_empty(s->provider) || str_eq(s->provider, "consul"))
            list_add(ctx, *errors,
                     mem_printf(ctx,
                                "%s: service \"%s\": provider \"consul\" is not in this release; "
                                "write provider = \"nomad\"",
                                where, str_or(s->name, "")));
    }
}

void
service_unsupported(const void *ctx, const struct job *job, struct str_list *errors)
{
    for (size_t i = 0; i < job->task_groups.n; i++) {
        const struct task_group *g = job->task_groups.v[i];
        const char *where = mem_printf(ctx, "group \"%s\"", str_or(g->name, ""));
        unsupported_of(ctx, where, &g->services, errors);
        for (size_t k = 0; k < g->tasks.n; k++)
            unsupported_of(
                ctx, mem_printf(ctx, "%s: task \"%s\"", where, str_or(g->tasks.v[k]->name, "")),
                &g->tasks.v[k]->services, errors);
    }
}
