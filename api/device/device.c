/* SPDX-License-Identifier: Apache-2.0 */
#include "api/device/device.h"

#include <string.h>

#include "api/limits.h"
#include "api/plain.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

/* Splits "vendor/type/name". */
static bool
device_split(const void *ctx, const char *name, const char *ret[3])
{
    for (int i = 0; i < 3; i++) {
        size_t n = strcspn(name, "/");
        if (n == 0 || (i < 2 && name[n] != '/') || (i == 2 && name[n] != '\0'))
            return false;
        ret[i] = mem_strndup(ctx, name, n);
        name += n + 1;
    }
    return true;
}

static int
check_ids(const struct agent_device *d, const char *name, struct err *e)
{
    for (size_t i = 0; i < d->ids.n; i++) {
        const char *id = str_or(d->ids.v[i], "");
        if (*id == '\0' || strlen(id) > DEVICE_ID_MAX || strpbrk(id, "/, ") != NULL)
            return err_set(e, -ERR_INVALID,
                           "client.device \"%s\": id \"%.64s\": 1 to %d characters without \"/\", "
                           "\",\" and spaces",
                           name, id, DEVICE_ID_MAX);
        for (size_t k = 0; k < i; k++)
            if (str_eq(d->ids.v[k], id))
                return err_set(e, -ERR_INVALID, "client.device \"%s\": id \"%s\" is there twice",
                               name, id);
    }
    return 0;
}

int
device_check(const struct agent_device *d, struct err *e)
{
    auto_mem void *tmp = mem_ctx("device");
    const char *name = str_or(d->name, ""), *parts[3];

    if (!device_split(tmp, name, parts))
        return err_set(e, -ERR_INVALID, "client.device \"%.128s\": the name is vendor/type/name",
                       name);
    if (d->ids.n == 0 || d->ids.n > DEVICE_IDS_MAX)
        return err_set(e, -ERR_INVALID, "client.device \"%s\": ids has 1 to %d elements", name,
                       DEVICE_IDS_MAX);
    for (size_t i = 0; i < d->paths.n; i++) {
        const char *path = str_or(d->paths.v[i], "");
        if (!str_prefix(path, "/dev/") || !plain_path(path + 1))
            return err_set(e, -ERR_INVALID,
                           "client.device \"%s\": path \"%.200s\" is no plain path below /dev",
                           name, path);
    }
    if (d->paths.n > DEVICE_PATHS_MAX)
        return err_set(e, -ERR_INVALID, "client.device \"%s\": more than %d paths", name,
                       DEVICE_PATHS_MAX);
    if (!str_empty(d->env) && !plain_env_name(d->env, strlen(d->env)))
        return err_set(e, -ERR_INVALID,
                       "client.device \"%s\": env \"%.64s\" is no name of a variable", name,
                       d->env);
    return check_ids(d, name, e);
}

/* "16 GiB" is a number with a unit, "true" a bool, anything else a text. */
static struct device_attribute *
device_value(const void *ctx, const char *text)
{
    struct device_attribute *a = mem_new(ctx, struct device_attribute);
    size_t n = strspn(text, "0123456789");
    const char *unit = text + n + strspn(text + n, " ");
    bool on;

    if (n > 0 && n < 19 && strspn(unit, "0123456789.,:") == 0) {
        a->int_.set = num_parse_i64(mem_strndup(a, text, n), &a->int_.v) == 0;
        a->unit = mem_strdup(a, unit);
    } else if (STR_ONE_OF(text, "true", "false") && num_parse_bool(text, &on) == 0) {
        a->bool_ = (struct opt_bool){true, on};
    } else {
        a->string = mem_strdup(a, text);
    }
    return a;
}

struct node_device_resource *
device_group(const void *ctx, const struct agent_device *d)
{
    struct node_device_resource *g = mem_new(ctx, struct node_device_resource);
    const char *parts[3] = {"", "", ""};

    (void)device_split(g, str_or(d->name, ""), parts);
    *g = (struct node_device_resource){.vendor = parts[0], .type = parts[1], .name = parts[2]};
    for (size_t i = 0; i < d->attributes.n; i++)
        map_put(g, g->attributes, mem_strdup(g, d->attributes.v[i].k))->v =
            device_value(g, str_or(d->attributes.v[i].v, ""));
    return g;
}

void
device_paths(const void *ctx, const struct agent_device *d, const char *id, struct str_list *ret)
{
    for (size_t i = 0; i < d->paths.n; i++) {
        const char *path = d->paths.v[i], *at = strchr(path, '%');
        if (at != NULL)
            path = mem_printf(ctx, "%.*s%s%s", (int)(at - path), path, id, at + 1);
        if (!str_list_has(ret, path))
            list_add(ctx, *ret, path);
    }
}

const struct agent_device *
device_find(const struct agent_device_list *l, const struct allocated_device_resource *of)
{
    auto_mem void *tmp = mem_ctx("device");
    const char *name = mem_printf(tmp, "%s/%s/%s", str_or(of->vendor, ""), str_or(of->type, ""),
                                  str_or(of->name, ""));

    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i]->name, name))
            return l->v[i];
    return NULL;
}
