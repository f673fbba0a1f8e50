/* SPDX-License-Identifier: Apache-2.0
 *
 * Validation of a job. job_validate() at the end goes through the job, its groups and their tasks;
 * the functions before it check a block each and validate_complain() of all that is wrong, with
 * group and task in front. Larger blocks have files of their own: services and templates
 * (validate_blocks.c), isolation, and what would be too large for a launch (validate_launch.c).
 */
#include "api/validate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "api/children.h"
#include "api/drivers.h"
#include "api/limits.h"
#include "api/operators.h"
#include "api/plain.h"
#include "api/terms.h"
#include "api/validate_blocks.h"
#include "api/validate_isolation.h"
#include "api/validate_launch.h"
#include "api/validate_refs.h"
#include "api/validate_secret.h"
#include "api/validate_service.h"
#include "common/buf.h"
#include "common/netrule.h"
#include "common/num.h"

#define SECOND INT64_C(1000000000)

enum { PORT_MAX = 65535 };
/* Sums of resources and of times must not overflow, wherever they are made. */
#define AMOUNT_MAX INT64_C(2147483647)
#define DURATION_MAX (INT64_C(3650) * 86400 * SECOND)

/* The place where texts go, and the part that is being looked at. */
struct check {
    const void *ctx;
    const struct job *job;
    struct str_list *errors, *warnings;
    const char *group, *task; /* names, or NULL */
    struct launch_load load;  /* of the job; while a group is looked at, with the group's */
};

__attribute__((format(printf, 2, 3))) static void
validate_complain(struct check *c, const char *fmt, ...)
{
    if (c->errors->n >= JOB_ERRORS_MAX)
        return;
    va_list ap;
    va_start(ap, fmt);
    char *text = mem_vprintf(c->ctx, fmt, ap);
    va_end(ap);
    if (c->task)
        text = mem_printf(c->ctx, "task group \"%s\": task \"%s\": %s", c->group, c->task, text);
    else if (c->group)
        text = mem_printf(c->ctx, "task group \"%s\": %s", c->group, text);
    list_add(c->ctx, *c->errors, text);
}

/* --- constraints --- */

/* Complains of a target that no node can be asked for: it would hold on no node, or on all of
 * them. */
static void
validate_attribute(struct check *c, const char *target)
{
    if (*target != '$')
        return;
    size_t n = strlen(target);
    if (target[1] != '{' || target[n - 1] != '}')
        validate_complain(c, "constraint: attribute \"%s\" is not of the form ${name}", target);
    else if (!STR_ONE_OF(target, "${node.unique.id}", "${node.datacenter}", "${node.unique.name}",
                         "${node.class}", "${node.pool}") &&
             !str_prefix(target, "${attr.") && !str_prefix(target, "${meta."))
        validate_complain(
            c,
            "constraint: unsupported attribute \"%s\": it is ${attr.NAME}, ${meta.NAME}, "
            "${node.class}, ${node.datacenter}, ${node.pool}, ${node.unique.id} or "
            "${node.unique.name}",
            target);
}

static void
validate_constraint(struct check *c, const struct constraint *k)
{
    const char *op = k->operand;
    if (str_empty(op)) {
        validate_complain(c, "constraint: the operator is missing");
        return;
    }
    const struct operator* o = operator_find(op);
    if (!o) {
        validate_complain(c, "constraint: unknown operator \"%s\"", op);
        return;
    }
    bool on;
    uint64_t count;
    if (o->takes == TAKES_SWITCH) {
        if (!str_empty(k->r_target) && num_parse_bool(k->r_target, &on) < 0)
            validate_complain(c, "constraint: %s is true or false, not \"%s\"", op, k->r_target);
        return;
    }
    if (o->takes == TAKES_COUNT && !str_empty(k->r_target) &&
        (num_parse_u64(k->r_target, &count) < 0 || count < 1))
        validate_complain(c, "constraint: %s allows at least 1 per value, not \"%s\"", op,
                          k->r_target);
    if (str_empty(k->l_target))
        validate_complain(c, "constraint: operator \"%s\" needs an attribute", op);
    else
        validate_attribute(c, k->l_target);
    if (o->takes == TAKES_NOTHING && !str_empty(k->r_target))
        validate_complain(c, "constraint: operator \"%s\" takes no value", op);
    if (o->takes == TAKES_VALUE && str_empty(k->r_target))
        validate_complain(c, "constraint: operator \"%s\" needs a value", op);
}

static void
validate_constraints(struct check *c, const struct constraint_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        validate_constraint(c, l->v[i]);
}

static bool
constraint_distinct(const char *op)
{
    const struct operator* o = str_empty(op) ? NULL : operator_find(op);

    return o != NULL && (o->takes == TAKES_SWITCH || o->takes == TAKES_COUNT);
}

static void
validate_affinities(struct check *c, const struct affinity_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct affinity *a = l->v[i];
        struct constraint k = {
            .l_target = a->l_target, .r_target = a->r_target, .operand = a->operand};
        validate_constraint(c, &k);
        if (constraint_distinct(a->operand))
            validate_complain(c, "affinity: operator \"%s\" is one of constraints", a->operand);
        if (a->weight.v < -100 || a->weight.v > 100 || a->weight.v == 0)
            validate_complain(c, "affinity: weight must be within the range [-100, 100] and not 0");
    }
}

static void
validate_spreads(struct check *c, const struct spread_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct spread *s = l->v[i];
        uint64_t sum = 0;
        if (str_empty(s->attribute))
            validate_complain(c, "spread: the attribute is missing");
        else
            validate_attribute(c, s->attribute);
        if (s->weight.v < 1 || s->weight.v > 100)
            validate_complain(c, "spread: weight must be between 1 and 100");
        for (size_t t = 0; t < s->spread_target.n; t++) {
            const struct spread_target *x = s->spread_target.v[t];
            sum += x->percent <= 100 ? x->percent : 0;
            if (x->percent > 100)
                validate_complain(c, "spread: percent of target \"%s\" must be between 0 and 100",
                                  str_or(x->value, ""));
            for (size_t k = 0; k < t; k++)
                if (str_eq(s->spread_target.v[k]->value, x->value))
                    validate_complain(c, "spread: target \"%s\" is there twice",
                                      str_or(x->value, ""));
        }
        if (sum > 100)
            validate_complain(
                c, "spread: the percents of all targets sum to %llu, which is more than 100",
                (unsigned long long)sum);
    }
}

/* --- policies --- */

static void
validate_restart(struct check *c, const struct restart_policy *p)
{
    if (!STR_ONE_OF(p->mode, "fail", "delay"))
        validate_complain(c, "restart: mode \"%s\" is neither \"fail\" nor \"delay\"", p->mode);
    if (p->attempts.v < 0)
        validate_complain(c, "restart: attempts is negative");
    if (p->attempts.v == 0 && !str_eq(p->mode, "fail"))
        validate_complain(c, "restart: attempts = 0 needs mode \"fail\"");
    if (p->interval.v < 5 * SECOND)
        validate_complain(c, "restart: interval is shorter than 5s");
    if (p->delay.v < 0)
        validate_complain(c, "restart: delay is negative");
    int64_t total;
    if (p->attempts.v > 0 && p->delay.v > 0 &&
        (__builtin_mul_overflow(p->attempts.v, p->delay.v, &total) || total > p->interval.v))
        validate_complain(
            c, "restart: %" PRId64 " attempts with this delay do not fit into the interval",
            p->attempts.v);
}

static void
validate_reschedule(struct check *c, const struct reschedule_policy *p)
{
    if (!p || (!p->unlimited.v && p->attempts.v == 0))
        return;
    if (!STR_ONE_OF(p->delay_function, "constant", "exponential", "fibonacci"))
        validate_complain(
            c, "reschedule: delay_function \"%s\" is not constant, exponential or fibonacci",
            p->delay_function);
    if (p->unlimited.v && p->attempts.v > 0)
        validate_complain(c, "reschedule: attempts and unlimited exclude each other");
    if (!p->unlimited.v && p->interval.v < 15 * SECOND)
        validate_complain(c, "reschedule: interval is shorter than 15s");
    if (p->delay.v < 5 * SECOND)
        validate_complain(c, "reschedule: delay is shorter than 5s");
    if (!str_eq(p->delay_function, "constant") && p->max_delay.v < p->delay.v)
        validate_complain(c, "reschedule: max_delay is shorter than delay");
}

static void
validate_update(struct check *c, const struct update_strategy *u, int64_t count)
{
    if (!u)
        return;
    if (STR_ONE_OF(c->job->type, JOB_BATCH, JOB_SYSBATCH)) {
        if (!c->job->update) /* which was said of the job */
            validate_complain(c, "a %s job has no update block", c->job->type);
        return;
    }
    if (!STR_ONE_OF(u->health_check, "checks", "task_states", "manual"))
        validate_complain(c, "update: health_check \"%s\" is not checks, task_states or manual",
                          u->health_check);
    if (u->max_parallel.v < 0 || u->canary < 0)
        validate_complain(c, "update: max_parallel and canary may not be negative");
    if (count >= 0 && u->canary > count && !str_eq(c->job->type, JOB_SYSTEM))
        validate_complain(c, "update: canary is larger than count");
    if (u->auto_promote && u->canary == 0)
        validate_complain(c, "update: auto_promote needs canary");
    if (u->min_healthy_time.v < 0 || u->min_healthy_time.v >= u->healthy_deadline.v)
        validate_complain(c, "update: min_healthy_time must be shorter than healthy_deadline");
    if (u->progress_deadline.v > 0 && u->healthy_deadline.v >= u->progress_deadline.v)
        validate_complain(c, "update: healthy_deadline must be shorter than progress_deadline");
}

static void
validate_migrate(struct check *c, const struct migrate_strategy *m)
{
    if (!m)
        return;
    if (!str_eq(c->job->type, JOB_SERVICE)) {
        validate_complain(c, "a %s job has no migrate block", c->job->type);
        return;
    }
    if (!STR_ONE_OF(m->health_check, "checks", "task_states"))
        validate_complain(c, "migrate: health_check \"%s\" is not checks or task_states",
                          m->health_check);
    if (m->max_parallel.v < 0)
        validate_complain(c, "migrate: max_parallel may not be negative");
    if (m->min_healthy_time.v < 0 || m->min_healthy_time.v >= m->healthy_deadline.v)
        validate_complain(c, "migrate: min_healthy_time must be shorter than healthy_deadline");
}

/* --- networks --- */

static bool
label_valid(const char *s)
{
    size_t n = str_empty(s) ? 0 : strlen(s);
    if (n == 0 || n > JOB_LABEL_MAX)
        return false;
    for (; *s; s++)
        if (!((*s >= '0' && *s <= '9') || ((*s | 0x20) >= 'a' && (*s | 0x20) <= 'z') || *s == '_' ||
              *s == '-'))
            return false;
    return true;
}

static void
validate_port(struct check *c, const struct port *p, bool fixed)
{
    if (!label_valid(p->label))
        validate_complain(c,
                          "network: port label \"%s\" is not made of letters, digits, '_' and '-'",
                          str_or(p->label, ""));
    if (fixed && (p->value < 1 || p->value > PORT_MAX))
        validate_complain(c, "network: port \"%s\": static = %" PRId64 " is not 1 to 65535",
                          p->label, p->value);
    if (p->to < -1 || p->to > PORT_MAX)
        validate_complain(c, "network: port \"%s\": to = %" PRId64 " is not -1 to 65535", p->label,
                          p->to);
    if (!fixed && p->ignore_collision)
        validate_complain(c, "network: port \"%s\": ignore_collision needs a static port",
                          p->label);
}

static void
port_pair(struct check *c, const struct port *p, const struct port *o, bool fixed)
{
    if (str_eq(o->label, p->label))
        validate_complain(c, "network: port label \"%s\" is used twice", p->label);
    else if (fixed && o->value == p->value && str_eq(o->host_network, p->host_network) &&
             !p->ignore_collision && !o->ignore_collision)
        validate_complain(c, "network: ports \"%s\" and \"%s\" are both static = %" PRId64,
                          o->label, p->label, p->value);
}

static void
net_policy(struct check *c, const char *what, const struct net_policy *p)
{
    const struct str_list *lists[] = {p ? &p->allow : NULL, p ? &p->deny : NULL};
    for (size_t l = 0; p && l < ARRAY_LEN(lists); l++) {
        if (lists[l]->n > JOB_NET_RULES_MAX)
            validate_complain(c, "network: %s: more than %d rules in a list", what,
                              JOB_NET_RULES_MAX);
        for (size_t i = 0; i < lists[l]->n && i < JOB_NET_RULES_MAX; i++) {
            struct netrule r;
            struct err e = ERR_INIT;
            if (netrule_parse(lists[l]->v[i], &r, &e) < 0)
                validate_complain(c, "network: %s: %s", what, e.text);
        }
    }
    if (p && !str_empty(p->default_) && !STR_ONE_OF(p->default_, "allow", "deny"))
        validate_complain(c, "network: %s: default \"%s\" is not allow or deny", what, p->default_);
}

/* Says whether the text is interpolated: then only the client can look at it. */
static bool
validate_interpolated(const char *s)
{
    return strstr(s, "${") != NULL;
}

static void
validate_dns(struct check *c, const struct dns_config *d)
{
    const struct {
        const char *what;
        const struct str_list *list;
    } lists[] = {{"servers", &d->servers}, {"searches", &d->searches}, {"options", &d->options}};
    for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
        if (lists[l].list->n > JOB_DNS_MAX)
            validate_complain(c, "network: dns: more than %d %s", JOB_DNS_MAX, lists[l].what);
        for (size_t i = 0; i < lists[l].list->n && i < JOB_DNS_MAX; i++) {
            const char *s = lists[l].list->v[i];
            if (!plain_word(s))
                validate_complain(c, "network: dns: \"%s\" of %s is not one word", s,
                                  lists[l].what);
            else if (l == 0 && !validate_interpolated(s) && !plain_address(s))
                validate_complain(c, "network: dns: server \"%s\" is not an IP address", s);
        }
    }
}

static void
validate_hostname(struct check *c, const char *s)
{
    if (!validate_interpolated(s) && !plain_hostname(s))
        validate_complain(c, "network: hostname \"%s\" is not a DNS name of up to %d bytes", s,
                          JOB_HOSTNAME_MAX);
}

static void
validate_network(struct check *c, const struct network_resource *n)
{
    net_policy(c, "egress", n->egress);
    net_policy(c, "bind", n->bind);
    if (!str_empty(n->hostname))
        validate_hostname(c, n->hostname);
    if (n->dns)
        validate_dns(c, n->dns);
    if (n->reserved_ports.n + n->dynamic_ports.n > JOB_PORTS_MAX) {
        validate_complain(c, "network: more than %d ports", JOB_PORTS_MAX);
        return;
    }
    if (!STR_ONE_OF(n->mode, "host", "none", "bridge"))
        validate_complain(c, "network: mode \"%s\" is not host, none or bridge", n->mode);
    if (STR_ONE_OF(n->mode, "none") && n->reserved_ports.n + n->dynamic_ports.n > 0)
        validate_complain(c, "network: mode \"none\" has no ports: nothing can reach the group");
    const struct port_list *lists[] = {&n->reserved_ports, &n->dynamic_ports};
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        for (size_t i = 0; i < lists[l]->n; i++) {
            const struct port *p = lists[l]->v[i];
            validate_port(c, p, l == 0);
            for (size_t k = 0; k <= l; k++)
                for (size_t m = 0; m < (k == l ? i : lists[k]->n); m++)
                    port_pair(c, p, lists[k]->v[m], l == 0);
        }
}

/* --- task --- */

static void
task_name(struct check *c, const struct task *t)
{
    size_t n = strlen(str_or(t->name, ""));
    if (n == 0 || n > JOB_TASK_NAME_MAX)
        validate_complain(c, "the task's name must be 1 to %d bytes long", JOB_TASK_NAME_MAX);
    else if (strchr(t->name, '/') || strchr(t->name, '\\'))
        validate_complain(c, "the task's name may not hold slashes");
    else if (STR_ONE_OF(t->name, "alloc", ".", ".."))
        validate_complain(c, "the task may not be called \"%s\"", t->name);
    else if (!plain_task_name(t->name))
        validate_complain(c,
                          "the task's name may not hold control characters or begin with \".\" or "
                          "\"cgroup.\": it is that of a directory and of a cgroup");
}

static void
validate_resources(struct check *c, const struct resources *r, const struct job_limits *limits)
{
    if (r->cores.v < 0)
        validate_complain(c, "resources: cores is negative");
    if (r->cores.v > 0 && r->cpu.v > 0)
        validate_complain(c, "resources: cpu and cores exclude each other");
    if (r->cores.v == 0 && r->cpu.v < 1)
        validate_complain(c, "resources: cpu must be at least 1 MHz");
    if (r->cpu.v > AMOUNT_MAX || r->memory_mb.v > AMOUNT_MAX || r->memory_max_mb > AMOUNT_MAX)
        validate_complain(c, "resources: a value is larger than any machine");
    if (r->cores.v > JOB_CORES_MAX)
        validate_complain(c, "resources: more than %d cores", JOB_CORES_MAX);
    if (r->memory_mb.v < 10)
        validate_complain(c, "resources: memory must be at least 10 MB");
    if (r->memory_max_mb != 0 && r->memory_max_mb != -1 && r->memory_max_mb < r->memory_mb.v)
        validate_complain(c, "resources: memory_max is less than memory");
    if (r->memory_max_mb != 0 && !(limits && limits->memory_oversubscription))
        list_add(c->ctx, *c->warnings,
                 mem_printf(c->ctx,
                            "task \"%s\": memory_max has no effect: memory oversubscription is off "
                            "(operator scheduler set-config -memory-oversubscription=true)",
                            c->task));
    if (r->secrets_mb < 0 || r->secrets_mb > r->memory_mb.v)
        validate_complain(c, "resources: secrets must be between 0 and memory");
    for (size_t i = 0; i < r->networks.n; i++) {
        validate_network(c, r->networks.v[i]);
        if (!STR_ONE_OF(r->networks.v[i]->mode, "host"))
            validate_complain(c, "network: mode \"%s\" is for the network block of a group",
                              r->networks.v[i]->mode);
        if (r->networks.v[i]->egress || r->networks.v[i]->bind)
            validate_complain(
                c, "resources: egress and bind belong to a network block of the task or group");
    }
}

static void
env_names(struct check *c, const struct str_map *env)
{
    for (size_t i = 0; i < env->n; i++)
        if (!plain_env_name(env->v[i].k, strlen(env->v[i].k)))
            validate_complain(c, "env: \"%s\" is no name of an environment variable", env->v[i].k);
}

static void
validate_lifecycle(struct check *c, const struct task_lifecycle_config *l)
{
    if (!l)
        return;
    if (!STR_ONE_OF(l->hook, "prestart", "poststart", "poststop"))
        validate_complain(c, "lifecycle: hook \"%s\" is not prestart, poststart or poststop",
                          str_or(l->hook, ""));
    if (l->sidecar && str_eq(l->hook, "poststop"))
        validate_complain(c, "lifecycle: a poststop task cannot be a sidecar");
}

static void
validate_task(struct check *c, const struct task_group *g, const struct task *t,
              const struct job_limits *limits)
{
    c->task = str_or(t->name, "");
    task_name(c, t);
    if (str_empty(t->driver))
        validate_complain(c, "a driver is missing");
    if (!str_empty(t->kill_signal) && !str_prefix(t->kill_signal, "SIG"))
        validate_complain(c, "kill_signal \"%s\" is no name such as SIGTERM", t->kill_signal);
    validate_resources(c, t->resources, limits);
    validate_constraints(c, &t->constraints);
    validate_affinities(c, &t->affinities);
    validate_restart(c, t->restart_policy);
    validate_lifecycle(c, t->lifecycle);
    env_names(c, &t->env);
    struct str_list found = {0};
    validate_isolation(c->ctx, t, &found);
    validate_launch(c->ctx, t, &c->load, &found);
    validate_task_blocks(c->ctx, g, t, &found);
    validate_refs(c->ctx, c->job, g, t, &found);
    for (size_t i = 0; i < found.n; i++)
        validate_complain(c, "%s", found.v[i]);
    if (t->network) {
        net_policy(c, "egress", t->network->egress);
        net_policy(c, "bind", t->network->bind);
    }
    if (t->kill_timeout.v < 0 || t->shutdown_delay < 0)
        validate_complain(c, "kill_timeout and shutdown_delay may not be negative");
    const struct log_config *l = t->log_config;
    int64_t total;
    if (l->max_files.v < 1 || l->max_file_size_mb.v < 1)
        validate_complain(c, "logs: max_files and max_file_size must be at least 1");
    else if (!l->disabled &&
             (__builtin_mul_overflow(l->max_files.v, l->max_file_size_mb.v, &total) ||
              total >= g->ephemeral_disk->size_mb.v))
        validate_complain(c,
                          "logs: %" PRId64 " files of %" PRId64
                          " MB do not fit into an ephemeral disk of "
                          "%" PRId64 " MB",
                          l->max_files.v, l->max_file_size_mb.v, g->ephemeral_disk->size_mb.v);
    c->task = NULL;
}

/* --- group and job --- */

static void
group_tasks(struct check *c, const struct task_group *g, const struct job_limits *limits)
{
    size_t leaders = 0, mains = 0;
    const struct task *engine = NULL;
    bool own = g->networks.n > 0 && !STR_ONE_OF(g->networks.v[0]->mode, "host");
    if (g->tasks.n > JOB_TASKS_MAX) {
        validate_complain(c, "more than %d tasks", JOB_TASKS_MAX);
        return;
    }
    for (size_t i = 0; i < g->tasks.n; i++) {
        const struct task *t = g->tasks.v[i];
        validate_task(c, g, t, limits);
        leaders += t->leader;
        mains += t->lifecycle == NULL;
        if (own && driver_engine(t->driver) && !engine)
            engine = t;
        else if (own && driver_engine(t->driver) && !str_eq(t->driver, engine->driver))
            validate_complain(
                c,
                "the containers of a group with a network of its own are of one engine: "
                "\"%s\" is of driver %s, \"%s\" of %s",
                engine->name, engine->driver, t->name, t->driver);
        for (size_t k = 0; k < i; k++)
            if (str_eq(g->tasks.v[k]->name, t->name))
                validate_complain(c, "two tasks are called \"%s\"", t->name);
    }
    if (mains == 0)
        validate_complain(c, "a group needs a task without lifecycle");
    if (leaders > 1)
        validate_complain(c, "only one task may be the leader");
}

static void
validate_group(struct check *c, const struct task_group *g, const struct job_limits *limits)
{
    bool batch = STR_ONE_OF(c->job->type, JOB_BATCH, JOB_SYSBATCH);
    c->group = str_or(g->name, "");
    if (str_empty(g->name))
        validate_complain(c, "the group has no name");
    else if (!plain_text(g->name, JOB_ID_MAX))
        validate_complain(c,
                          "the group's name is longer than %d bytes, or holds a control character",
                          JOB_ID_MAX);
    if (g->count.v < 0)
        validate_complain(c, "count is negative");
    if (g->count.v > 1 && STR_ONE_OF(c->job->type, JOB_SYSTEM, JOB_SYSBATCH))
        validate_complain(c, "count of a %s job is 1 per node, or 0", c->job->type);
    if (g->reschedule_policy && STR_ONE_OF(c->job->type, JOB_SYSTEM, JOB_SYSBATCH))
        validate_complain(c, "a %s job is not rescheduled: remove reschedule", c->job->type);
    if (g->networks.n > 1)
        validate_complain(c, "only one network block is allowed");
    for (size_t i = 0; i < g->networks.n; i++)
        validate_network(c, g->networks.v[i]);
    validate_constraints(c, &g->constraints);
    validate_affinities(c, &g->affinities);
    validate_spreads(c, &g->spreads);
    validate_restart(c, g->restart_policy);
    validate_reschedule(c, g->reschedule_policy);
    validate_update(c, g->update, g->count.v);
    validate_migrate(c, g->migrate);
    if (g->ephemeral_disk->size_mb.v < 10 || g->ephemeral_disk->size_mb.v > AMOUNT_MAX)
        validate_complain(c, "ephemeral_disk: size must be at least 10 MB, and a size that exists");
    if (g->shutdown_delay.set && g->shutdown_delay.v < 0)
        validate_complain(c, "shutdown_delay is negative");
    if (g->max_run_duration.set && (!batch || g->max_run_duration.v <= 0))
        validate_complain(c, "max_run_duration must be positive, and is for batch jobs");
    struct str_list found = {0};
    validate_group_blocks(c->ctx, c->job, g, &found);
    validate_group_warnings(c->ctx, g, c->warnings);
    for (size_t i = 0; i < found.n; i++)
        validate_complain(c, "%s", found.v[i]);
    struct launch_load of_job = c->load;
    launch_load_group(&c->load, g);
    group_tasks(c, g, limits);
    c->load = of_job;
    c->group = NULL;
}

static void
job_id(struct check *c)
{
    const char *id = c->job->id;
    if (str_empty(id))
        validate_complain(c, "the job has no ID");
    else if (strlen(id) > children_id_max(c->job))
        validate_complain(c, "the job's ID is longer than %zu bytes%s", children_id_max(c->job),
                          job_is_parent(c->job) ? ", which leave room for the IDs of its children"
                                                : "");
    else if (!plain_job_id(id))
        validate_complain(c, "the job's ID holds a blank or a control character");
    if (!str_empty(c->job->name) && !plain_text(c->job->name, JOB_ID_MAX))
        validate_complain(c, "the job's name is longer than %d bytes, or holds a control character",
                          JOB_ID_MAX);
}

/* Every duration of the job, wherever it stands. */
static void
validate_durations(struct check *c, const struct type *t, const void *obj)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        const void *at = (const char *)obj + f->offset;
        if (f->type == FT_DURATION && f->shape == FS_ONE) {
            int64_t v =
                (f->flags & F_OPT) != 0 ? ((const struct opt_i64 *)at)->v : *(const int64_t *)at;
            if (v > DURATION_MAX || v < -DURATION_MAX)
                validate_complain(c, "%s.%s is longer than ten years", t->name, f->wire);
        } else if (f->type == FT_STRUCT && f->shape == FS_LIST) {
            const struct object_list *l = at;
            for (size_t k = 0; k < l->n; k++)
                validate_durations(c, f->sub, l->v[k]);
        } else if (f->type == FT_STRUCT && f->shape == FS_ONE && *(void *const *)at) {
            validate_durations(c, f->sub, *(void *const *)at);
        }
    }
}

static void
job_head(struct check *c, const struct job_limits *limits)
{
    const struct job *j = c->job;
    int64_t max = limits && limits->max_priority ? limits->max_priority : 100;
    job_id(c);
    if (!STR_ONE_OF(j->type, JOB_SERVICE, JOB_BATCH, JOB_SYSTEM, JOB_SYSBATCH))
        validate_complain(c, "job type \"%s\" is not service, batch, system or sysbatch", j->type);
    if (j->priority.v < 1 || j->priority.v > max)
        validate_complain(c, "priority %" PRId64 " is not 1 to %" PRId64, j->priority.v, max);
    for (size_t i = 0; i < j->datacenters.n; i++)
        if (str_empty(j->datacenters.v[i]))
            validate_complain(c, "datacenters holds an empty name");
    if (j->payload.n > 0)
        validate_complain(c, "a payload comes with a dispatch, not with a job");
    if (j->update && STR_ONE_OF(j->type, JOB_BATCH, JOB_SYSBATCH))
        validate_complain(c, "a %s job has no update block", j->type);
    validate_constraints(c, &j->constraints);
    validate_affinities(c, &j->affinities);
    validate_spreads(c, &j->spreads);
}

int
job_validate(const void *ctx, const struct job *job, const struct job_limits *limits,
             struct str_list *errors, struct str_list *warnings)
{
    struct check c = {.ctx = ctx, .job = job, .errors = errors, .warnings = warnings};
    size_t before = errors->n;
    struct err e = ERR_INIT;
    job_head(&c, limits);
    if (codec_check(&type_job, job, &e) < 0)
        validate_complain(&c, "%s", e.text);
    if (job->task_groups.n == 0)
        validate_complain(&c, "the job has no task group");
    if (job->task_groups.n > JOB_GROUPS_MAX) {
        validate_complain(&c, "the job has more than %d task groups", JOB_GROUPS_MAX);
        return -ERR_INVALID;
    }
    validate_durations(&c, &type_job, job);
    launch_load_job(&c.load, job);
    children_validate(ctx, job, errors, warnings);
    int64_t total = 0, max = limits && limits->max_count ? limits->max_count : 50000;
    for (size_t i = 0; i < job->task_groups.n; i++) {
        const struct task_group *g = job->task_groups.v[i];
        validate_group(&c, g, limits);
        for (size_t k = 0; k < i; k++)
            if (str_eq(job->task_groups.v[k]->name, g->name))
                validate_complain(&c, "two task groups are called \"%s\"", g->name);
        if (__builtin_add_overflow(total, g->count.v > 0 ? g->count.v : 0, &total))
            total = INT64_MAX;
    }
    if (max >= 0 && total > max)
        validate_complain(&c,
                          "the counts of all groups are %" PRId64 " together: at most %" PRId64
                          " are allowed (job_max_count of the server)",
                          total, max);
    if (job->all_at_once && total > JOB_AT_ONCE_MAX)
        validate_complain(&c,
                          "all_at_once places %" PRId64
                          " allocations in one step: at most %d are allowed; remove "
                          "all_at_once, or lower the counts",
                          total, JOB_AT_ONCE_MAX);
    return errors->n > before ? -ERR_INVALID : 0;
}

void
job_unsupported(const void *ctx, const struct job *job, struct str_list *ret)
{
    struct str_list places = {NULL, 0};
    codec_list_later(ctx, &type_job, job, &places);
    for (size_t i = 0; i < places.n; i++)
        list_add(ctx, *ret,
                 mem_printf(ctx, "%s: known, but without effect in this release; remove %s",
                            places.v[i], strstr(places.v[i], ", ") != NULL ? "them" : "it"));
    service_unsupported(ctx, job, ret);
    secret_unsupported(ctx, job, ret);
    volume_unsupported(ctx, job, ret);
}

static char *
validate_several(const void *ctx, const struct str_list *l, const char *noun)
{
    auto_buf struct buf b = BUF_INIT(JOB_ERRORS_TEXT_MAX);
    buf_printf(&b, "%zu %s%s occurred:\n", l->n, noun, l->n == 1 ? "" : "s");
    for (size_t i = 0; i < l->n; i++)
        buf_printf(&b, "\t* %s\n", l->v[i]);
    buf_putc(&b, '\n');
    b.error = 0; /* too many long texts: the first ones say enough */
    return mem_strdup(ctx, buf_str(&b));
}

char *
job_errors_text(const void *ctx, const struct str_list *errors)
{
    return validate_several(ctx, errors, "error");
}

char *
job_warnings_text(const void *ctx, const struct str_list *warnings)
{
    return warnings->n == 0 ? mem_strdup(ctx, "") : validate_several(ctx, warnings, "warning");
}
