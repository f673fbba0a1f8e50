/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of drivers, the check of a task's config, and what process drivers have in common.
 * Pure.
 */
#include "drivers/driver.h"

#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "drivers/process/process.h"

const struct driver *const drivers[] = {&driver_exec, &driver_raw_exec};
const size_t drivers_n = ARRAY_LEN(drivers);

static const struct driver *extra;

void
driver_add(const struct driver *d)
{
    extra = d;
}

const struct driver *
driver_find(const char *name)
{
    for (size_t i = 0; i < drivers_n; i++)
        if (str_eq(drivers[i]->name, name))
            return drivers[i];
    return extra && str_eq(extra->name, name) ? extra : NULL;
}

const struct driver *
driver_extra(void)
{
    return extra;
}

/* ---- checks -----------------------------------------------------------------------------------
 */

static const char *
wanted(enum driver_option_kind k)
{
    switch (k) {
    case DRIVER_STRING:
        return "a string";
    case DRIVER_STRINGS:
        return "a list of strings";
    case DRIVER_INT:
        return "a whole number";
    case DRIVER_BOOL:
        return "true or false";
    case DRIVER_DURATION:
        return "a duration such as \"5s\"";
    }
    return "?";
}

static bool
scalar_string(const struct value *v)
{
    return v->kind == VALUE_STRING || v->kind == VALUE_INT || v->kind == VALUE_BOOL;
}

static bool
fits(enum driver_option_kind k, const struct value *v)
{
    int64_t n;
    bool b;
    switch (k) {
    case DRIVER_STRING:
        return v->kind == VALUE_STRING;
    case DRIVER_STRINGS:
        if (v->kind != VALUE_LIST)
            return false;
        for (size_t i = 0; i < v->list.n; i++)
            if (!scalar_string(v->list.v[i]))
                return false;
        return true;
    case DRIVER_INT:
        return v->kind == VALUE_INT ||
               (v->kind == VALUE_STRING && num_parse_i64(v->str.s, &n) == 0);
    case DRIVER_BOOL:
        return v->kind == VALUE_BOOL ||
               (v->kind == VALUE_STRING && num_parse_bool(v->str.s, &b) == 0);
    case DRIVER_DURATION:
        return v->kind == VALUE_INT ||
               (v->kind == VALUE_STRING && duration_parse(v->str.s, &n) == 0);
    }
    return false;
}

static const struct driver_option *
option_find(const struct driver *d, const char *name)
{
    for (size_t i = 0; i < d->n_options; i++)
        if (strcmp(d->options[i].name, name) == 0)
            return &d->options[i];
    return NULL;
}

static int
unknown_key(const struct driver *d, const char *key, struct err *e)
{
    const char *names[32];
    size_t n = 0;
    for (size_t i = 0; i < d->n_options && n < ARRAY_LEN(names); i++)
        names[n++] = d->options[i].name;
    const char *near = str_nearest(key, names, n);
    if (near)
        return err_set(e, -ERR_INVALID,
                       "driver \"%s\" has no option \"%.100s\": did you mean \"%s\"?", d->name, key,
                       near);
    return err_set(e, -ERR_INVALID, "driver \"%s\" has no option \"%.100s\"", d->name, key);
}

static int
check_key(const struct driver *d, const char *key, const struct value *v, struct err *e)
{
    const struct driver_option *o = option_find(d, key);
    if (!o)
        return unknown_key(d, key, e);
    if (!v || v->kind == VALUE_NULL)
        return 0;
    if (o->later)
        return err_set(e, -ERR_UNSUPPORTED,
                       "option \"%s\" of driver \"%s\" has no effect yet: take it out", key,
                       d->name);
    if (!fits(o->kind, v))
        return err_set(e, -ERR_INVALID, "option \"%s\" of driver \"%s\" is a %s, it must be %s",
                       key, d->name, value_kind_name(v->kind), wanted(o->kind));
    return 0;
}

int
driver_check(const struct driver *d, const struct value *config, struct err *e)
{
    if (config && config->kind != VALUE_MAP && config->kind != VALUE_NULL)
        return err_set(e, -ERR_INVALID, "config of driver \"%s\" must be a block", d->name);
    if (config && config->kind == VALUE_MAP)
        for (size_t i = 0; i < config->map.n; i++) {
            int r = check_key(d, config->map.v[i].k, config->map.v[i].v, e);
            if (r < 0)
                return r;
        }
    for (size_t i = 0; i < d->n_options; i++) {
        const struct driver_option *o = &d->options[i];
        const struct value *v = value_get(config, o->name);
        if (o->required &&
            (!v || v->kind == VALUE_NULL || (v->kind == VALUE_STRING && v->str.n == 0)))
            return err_set(e, -ERR_INVALID, "driver \"%s\" needs the option \"%s\" in config",
                           d->name, o->name);
    }
    return 0;
}

/* ---- readers ----------------------------------------------------------------------------------
 */

const char *
driver_string(const struct value *config, const char *name, const char *dflt)
{
    const struct value *v = value_get(config, name);
    return v && v->kind == VALUE_STRING ? v->str.s : dflt;
}

int64_t
driver_int(const struct value *config, const char *name, int64_t dflt)
{
    const struct value *v = value_get(config, name);
    int64_t n;
    if (v && v->kind == VALUE_INT)
        return v->i;
    if (v && v->kind == VALUE_STRING && num_parse_i64(v->str.s, &n) == 0)
        return n;
    return dflt;
}

bool
driver_bool(const struct value *config, const char *name, bool dflt)
{
    const struct value *v = value_get(config, name);
    bool b;
    if (v && v->kind == VALUE_BOOL)
        return v->b;
    if (v && v->kind == VALUE_STRING && num_parse_bool(v->str.s, &b) == 0)
        return b;
    return dflt;
}

int64_t
driver_duration(const struct value *config, const char *name, int64_t dflt)
{
    const struct value *v = value_get(config, name);
    int64_t n;
    if (v && v->kind == VALUE_INT)
        return v->i;
    if (v && v->kind == VALUE_STRING && duration_parse(v->str.s, &n) == 0)
        return n;
    return dflt;
}

void
driver_strings(const void *ctx, const struct value *config, const char *name, struct str_list *ret)
{
    *ret = (struct str_list){0};
    const struct value *v = value_get(config, name);
    if (!v || v->kind != VALUE_LIST)
        return;
    ret->v = mem_array(ctx, const char *, v->list.n);
    for (size_t i = 0; i < v->list.n; i++) {
        const struct value *s = v->list.v[i];
        const char *text = s->kind == VALUE_STRING ? mem_strdup(ctx, s->str.s)
                           : s->kind == VALUE_INT  ? mem_printf(ctx, "%lld", (long long)s->i)
                                                   : (s->b ? "true" : "false");
        ret->v[ret->n++] = text;
    }
}

/* ---- processes --------------------------------------------------------------------------------
 */

#define MB (INT64_C(1) << 20)

static int64_t
mib(int64_t n)
{
    return n > 0 && n < INT64_MAX / MB ? n * MB : 0;
}

static void
isolation_limits(struct launch_limits *l, const struct task_isolation *iso)
{
    l->pids_max = iso->pids_max;
    l->nofile = iso->nofile;
    l->memory_high = mib(iso->memory_high);
    l->memory_low = mib(iso->memory_low);
    l->memory_min = mib(iso->memory_min);
    l->memory_swap_max = mib(iso->swap);
    if (iso->zswap.set)
        l->memory_zswap_max = (struct opt_i64){.set = true, .v = mib(iso->zswap.v)};
    l->hugetlb = mib(iso->hugetlb);
    l->cpu_burst = iso->cpu_burst / NS_PER_US;
    l->cpu_idle = iso->cpu_idle;
    l->io_weight = iso->io_weight;
    for (size_t i = 0; i < iso->io.n; i++)
        list_add(l, l->io, codec_clone(l, &type_task_io, iso->io.v[i]));
}

static struct launch_limits *
limits_of(const void *ctx, const struct allocated_task_resources *r,
          const struct task_isolation *iso)
{
    struct launch_limits *l = mem_new(ctx, struct launch_limits);
    if (iso)
        isolation_limits(l, iso);
    if (r && r->cpu) {
        l->cpu_shares = r->cpu->cpu_shares;
        for (size_t i = 0; i < r->cpu->reserved_cores.n; i++)
            list_add(l, l->cores, r->cpu->reserved_cores.v[i]);
    }
    if (r && r->memory) {
        int64_t max = r->memory->memory_max_mb;
        int64_t mb = max > r->memory->memory_mb ? max : r->memory->memory_mb;
        if (max >= 0 && mb > 0 && mb < INT64_MAX / MB)
            l->memory_max = mb * MB;
        /* what it was scheduled for is kept for it, the rest only lent */
        if (l->memory_low == 0 && mb > r->memory->memory_mb)
            l->memory_low = mib(r->memory->memory_mb);
    }
    return l;
}

static struct launch_logs *
logs_of(const void *ctx, const struct log_config *c)
{
    struct launch_logs *l = mem_new(ctx, struct launch_logs);
    l->dir = "alloc/logs";
    l->max_files = c && c->max_files.set ? c->max_files.v : 10;
    int64_t mb = c && c->max_file_size_mb.set ? c->max_file_size_mb.v : 10;
    l->max_file_bytes = mb > 0 && mb < INT64_MAX / MB ? mb * MB : 10 * MB;
    l->disabled = c && c->disabled;
    return l;
}

struct launch_spec *
driver_base_spec(const void *ctx, const struct driver_input *in, const char *driver)
{
    struct launch_spec *s = mem_new(ctx, struct launch_spec);
    s->alloc_id = mem_strdup(s, in->alloc_id);
    s->task_name = mem_strdup(s, in->task->name);
    s->driver = driver;
    s->user = mem_strdup(s, str_or(in->user, ""));
    s->command = mem_strdup(s, driver_string(in->config, "command", ""));
    driver_strings(s, in->config, "args", &s->args);
    s->env.v = mem_array(s, const char *, in->env->n);
    for (size_t i = 0; i < in->env->n; i++)
        s->env.v[s->env.n++] = mem_strdup(s->env.v, in->env->v[i]);
    s->work_dir = mem_strdup(s, driver_string(in->config, "work_dir", ""));
    s->limits = limits_of(s, in->resources, in->task->isolation);
    s->logs = logs_of(s, in->task->log_config);
    s->secrets_mb = in->task->resources ? in->task->resources->secrets_mb : 0;
    int sig = str_empty(in->task->kill_signal) ? 0 : signal_parse(in->task->kill_signal);
    s->kill_signal = sig > 0 ? sig : 0;
    s->share_net = !in->own_network;
    s->egress = in->egress ? codec_clone(s, &type_net_policy, in->egress) : NULL;
    s->bind = in->bind ? codec_clone(s, &type_net_policy, in->bind) : NULL;
    return s;
}

int
driver_check_process(const struct driver_input *in, const char *driver, struct err *e)
{
    const char *dir = driver_string(in->config, "work_dir", "");
    if (*dir && *dir != '/')
        return err_set(e, -ERR_INVALID, "work_dir \"%.200s\" of driver \"%s\" must be absolute",
                       dir, driver);
    if (!str_empty(in->task->kill_signal) && signal_parse(in->task->kill_signal) < 0)
        return err_set(e, -ERR_INVALID, "kill_signal \"%.32s\" is not a signal",
                       in->task->kill_signal);
    return 0;
}
