/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of drivers and the check of a task's config. Pure. In this order: the table; the check
 * of a config against the options of its driver, with the nearest name for one that is unknown; and
 * the readers, with which a driver takes its options once they are checked.
 */
#include "drivers/driver.h"

#include <string.h>

#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

const struct driver *const drivers[DRIVERS_N] = {
#define X(id, ...) &driver_##id,
    DRIVERS(X)
#undef X
};

static const struct driver *extra;

void
driver_add(const struct driver *d)
{
    extra = d;
}

const struct driver *
driver_find(const char *name)
{
    for (size_t i = 0; i < DRIVERS_N; i++)
        if (str_eq(drivers[i]->can->name, name))
            return drivers[i];
    return extra && str_eq(extra->can->name, name) ? extra : NULL;
}

const struct driver *
driver_extra(void)
{
    return extra;
}

/* --- checks --- */

static const char *
driver_wanted(enum driver_option_kind k)
{
    switch (k) {
    case DRIVER_STRING:
        return "a string";
    case DRIVER_STRINGS:
        return "a list of strings";
    case DRIVER_WORDS:
        return "a string, or a list of strings";
    case DRIVER_INT:
        return "a whole number";
    case DRIVER_BOOL:
        return "true or false";
    case DRIVER_DURATION:
        return "a duration such as \"5s\"";
    case DRIVER_MAP:
        return "one block, or map, of names and texts";
    case DRIVER_BLOCKS:
        return "blocks, or a list of maps";
    }
    return "?";
}

static bool
scalar_string(const struct value *v)
{
    return v->kind == VALUE_STRING || v->kind == VALUE_INT || v->kind == VALUE_BOOL;
}

/* A block of a job file is a list of maps. */
static const struct value *
one_map(const struct value *v)
{
    if (v && v->kind == VALUE_LIST && v->list.n == 1)
        v = v->list.v[0];
    return v && v->kind == VALUE_MAP ? v : NULL;
}

static bool
fits_map(const struct value *v)
{
    const struct value *map = one_map(v);
    for (size_t i = 0; map && i < map->map.n; i++)
        if (!map->map.v[i].v || !scalar_string(map->map.v[i].v))
            return false;
    return map || (v->kind == VALUE_LIST && v->list.n == 0);
}

static bool
fits_blocks(const struct value *v)
{
    if (v->kind == VALUE_MAP)
        return true;
    for (size_t i = 0; v->kind == VALUE_LIST && i < v->list.n; i++)
        if (v->list.v[i]->kind != VALUE_MAP)
            return false;
    return v->kind == VALUE_LIST;
}

static bool
driver_fits(enum driver_option_kind k, const struct value *v)
{
    int64_t n;
    bool b;
    switch (k) {
    case DRIVER_STRING:
        return v->kind == VALUE_STRING;
    case DRIVER_WORDS:
    case DRIVER_STRINGS:
        if (k == DRIVER_WORDS && v->kind == VALUE_STRING)
            return true;
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
    case DRIVER_MAP:
        return fits_map(v);
    case DRIVER_BLOCKS:
        return fits_blocks(v);
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
    const char *names[80];
    size_t n = 0;
    for (size_t i = 0; i < d->n_options && n < ARRAY_LEN(names); i++)
        names[n++] = d->options[i].name;
    const char *near = str_nearest(key, names, n);
    if (near)
        return err_set(e, -ERR_INVALID,
                       "driver \"%s\" has no option \"%.100s\": did you mean \"%s\"?", d->can->name,
                       key, near);
    return err_set(e, -ERR_INVALID, "driver \"%s\" has no option \"%.100s\"", d->can->name, key);
}

static int
check_inner(const struct driver *d, const struct driver_option *o, const struct value *config,
            struct err *e)
{
    const struct value *block;
    for (size_t i = 0; o->keys && (block = driver_block(config, o->name, i)) != NULL; i++)
        for (size_t k = 0; k < block->map.n; k++) {
            size_t n = 0;
            while (o->keys[n] && !str_eq(o->keys[n], block->map.v[k].k))
                n++;
            if (!o->keys[n])
                return err_set(e, -ERR_INVALID,
                               "option \"%s\" of driver \"%s\" has no key \"%.100s\"", o->name,
                               d->can->name, block->map.v[k].k);
        }
    return 0;
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
                       d->can->name);
    if (o->why)
        return err_set(e, -ERR_UNSUPPORTED, "option \"%s\" of driver \"%s\" is not supported: %s",
                       key, d->can->name, o->why);
    if (!driver_fits(o->kind, v))
        return err_set(e, -ERR_INVALID, "option \"%s\" of driver \"%s\" is a %s, it must be %s",
                       key, d->can->name, value_kind_name(v->kind), driver_wanted(o->kind));
    return 0;
}

int
driver_check(const struct driver *d, const struct value *config, struct err *e)
{
    if (config && config->kind != VALUE_MAP && config->kind != VALUE_NULL)
        return err_set(e, -ERR_INVALID, "config of driver \"%s\" must be a block", d->can->name);
    if (config && config->kind == VALUE_MAP)
        for (size_t i = 0; i < config->map.n; i++) {
            int r = check_key(d, config->map.v[i].k, config->map.v[i].v, e);
            if (r < 0)
                return r;
        }
    for (size_t i = 0; i < d->n_options; i++) {
        int r = check_inner(d, &d->options[i], config, e);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < d->n_options; i++) {
        const struct driver_option *o = &d->options[i];
        const struct value *v = value_get(config, o->name);
        if (o->required &&
            (!v || v->kind == VALUE_NULL || (v->kind == VALUE_STRING && v->str.n == 0)))
            return err_set(e, -ERR_INVALID, "driver \"%s\" needs the option \"%s\" in config",
                           d->can->name, o->name);
    }
    return d->check ? d->check(config, e) : 0;
}

void
driver_found(const void *ctx, const struct driver_host *host, const char *missing,
             struct driver_info *ret)
{
    if (!ret->detected)
        return;
    if (!host->runtime) {
        ret->detected = ret->healthy = false;
        ret->health_description = missing;
        return;
    }
    for (size_t i = 0; i < host->runtime->n; i++)
        str_map_set(ctx, &ret->attributes, host->runtime->v[i].k, host->runtime->v[i].v);
}

/* --- readers --- */

const char *
driver_string(const struct value *config, const char *name, const char *dflt)
{
    const struct value *v = value_get(config, name);
    return v && v->kind == VALUE_STRING ? v->str.s : dflt;
}

bool
driver_refers(const struct value *v)
{
    bool found = v && v->kind == VALUE_STRING && strstr(v->str.s, "${");
    for (size_t i = 0; v && v->kind == VALUE_LIST && !found && i < v->list.n; i++)
        found = driver_refers(v->list.v[i]);
    for (size_t i = 0; v && v->kind == VALUE_MAP && !found && i < v->map.n; i++)
        found = driver_refers(v->map.v[i].v);
    return found;
}

const struct driver_port *
driver_find_port(const struct driver_input *in, const char *label)
{
    for (size_t i = 0; i < in->n_ports; i++)
        if (str_eq(in->ports[i].label, label))
            return &in->ports[i];
    return NULL;
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

const struct value *
driver_map(const struct value *config, const char *name)
{
    return one_map(value_get(config, name));
}

const struct value *
driver_block(const struct value *config, const char *name, size_t i)
{
    const struct value *v = value_get(config, name);
    if (v && v->kind == VALUE_MAP)
        return i == 0 ? v : NULL;
    return v && v->kind == VALUE_LIST && i < v->list.n && v->list.v[i]->kind == VALUE_MAP
               ? v->list.v[i]
               : NULL;
}

void
driver_strings(const void *ctx, const struct value *config, const char *name, struct str_list *ret)
{
    *ret = (struct str_list){0};
    const struct value *v = value_get(config, name);
    if (v && v->kind == VALUE_STRING) /* DRIVER_WORDS */
        list_add(ctx, *ret, mem_strdup(ctx, v->str.s));
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
