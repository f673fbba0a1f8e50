/* SPDX-License-Identifier: Apache-2.0 */
#include "api/volume/volume.h"

#include <string.h>

#include "api/limits.h"
#include "api/operators.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/uuid.h"

#define MODE_FILES "file-system"
enum { MODE_DEFAULT = 0700, MODE_MAX = 0777, MIB_SHIFT = 20, SIZE_MAX_SHIFT = 50 };

static bool
volume_mode_octal(const char *s, int64_t *ret)
{
    size_t n = strspn(s, "01234567");
    *ret = 0;
    for (size_t i = 0; i < n && n <= 4; i++)
        *ret = *ret * 8 + (s[i] - '0');
    return n > 0 && n <= 4 && s[n] == '\0' && *ret <= MODE_MAX;
}

static bool
volume_number(const char *s, int64_t *ret)
{
    return num_parse_i64(s, ret) == 0 && *ret >= 0 && *ret < INT32_MAX;
}

/* Reads "10GiB", "500 MB": whole MiB, rounded up, for so the kernel counts. */
static bool
volume_size_mb(const char *s, int64_t *ret)
{
    int64_t bytes = 0;
    if (num_parse_size(s, &bytes) < 0 || bytes <= 0 || bytes > INT64_C(1) << SIZE_MAX_SHIFT)
        return false;
    *ret = (bytes + (1 << MIB_SHIFT) - 1) >> MIB_SHIFT;
    return true;
}

int
volume_dir_of(const struct str_map *parameters, struct volume_dir *ret, struct err *e)
{
    *ret = (struct volume_dir){.mode = MODE_DEFAULT};
    for (size_t i = 0; i < parameters->n; i++) {
        const char *k = parameters->v[i].k, *v = str_or(parameters->v[i].v, "");
        bool ok = str_eq(k, "mode")   ? volume_mode_octal(v, &ret->mode)
                  : str_eq(k, "uid")  ? volume_number(v, &ret->uid)
                  : str_eq(k, "gid")  ? volume_number(v, &ret->gid)
                  : str_eq(k, "size") ? volume_size_mb(v, &ret->size_mb)
                                      : false;
        if (!STR_ONE_OF(k, "mode", "uid", "gid", "size"))
            return err_set(e, -ERR_INVALID,
                           "plugin \"" VOLUME_PLUGIN "\" has no parameter \"%.64s\": it has mode, "
                           "uid, gid and size",
                           k);
        if (!ok)
            return err_set(e, -ERR_INVALID, "parameter %s: \"%.32s\" is no %s", k, v,
                           str_eq(k, "mode")   ? "octal mode up to 0777"
                           : str_eq(k, "size") ? "size like \"10GiB\", of at most 1 PiB"
                                               : "number of a user");
    }
    return 0;
}

void
volume_canonical(const void *ctx, struct host_volume *v)
{
    if (str_empty(v->plugin_id) || str_eq(v->plugin_id, "default"))
        v->plugin_id = VOLUME_PLUGIN;
    if (v->requested_capabilities.n > 0)
        return;
    struct host_volume_capability *c = mem_new(ctx, struct host_volume_capability);
    *c = (struct host_volume_capability){MODE_FILES, VOLUME_WRITER};
    list_add(ctx, v->requested_capabilities, c);
}

static int
check_capability(const struct host_volume_capability *c, struct err *e)
{
    if (c == NULL || !STR_ONE_OF(c->access_mode, VOLUME_READER, VOLUME_WRITER, VOLUME_SINGLE_WRITER,
                                 VOLUME_MULTI_WRITER))
        return err_set(e, -ERR_INVALID, "invalid access mode: \"%.64s\"",
                       c != NULL ? str_or(c->access_mode, "") : "");
    if (str_eq(c->attachment_mode, "block-device"))
        return err_set(e, -ERR_INVALID,
                       "attachment mode \"block-device\" is not in this release: use \"" MODE_FILES
                       "\"");
    return str_eq(c->attachment_mode, MODE_FILES)
               ? 0
               : err_set(e, -ERR_INVALID, "invalid attachment mode: \"%.64s\"",
                         str_or(c->attachment_mode, ""));
}

static int
check_constraint(const struct constraint *c, struct err *e)
{
    enum operator_code op = operator_code(c != NULL ? c->operand : NULL);
    if (op == OP_DISTINCT_HOSTS || op == OP_DISTINCT_PROPERTY)
        return err_set(e, -ERR_INVALID,
                       "invalid constraint %s: volumes of one name are on distinct nodes anyway",
                       c->operand);
    return 0;
}

/* A limit that is none of the sizes asked for is somebody's mistake. */
static int
volume_check_size(const struct host_volume *v, const struct volume_dir *dir, struct err *e)
{
    int64_t bytes = dir->size_mb << MIB_SHIFT, max = v->requested_capacity_max_bytes;
    if (dir->size_mb == 0 || max == 0 || (bytes >= v->requested_capacity_min_bytes && bytes <= max))
        return 0;
    return err_set(e, -ERR_INVALID,
                   "parameter size: %lld bytes are not between capacity_min (%lld) and "
                   "capacity_max (%lld)",
                   (long long)bytes, (long long)v->requested_capacity_min_bytes, (long long)max);
}

int
volume_check(const struct host_volume *v, struct err *e)
{
    struct volume_dir dir;

    if (!str_empty(v->id) && !uuid_valid(v->id))
        return err_set(e, -ERR_INVALID, "invalid ID \"%.64s\"", v->id);
    if (str_empty(v->name) || strlen(v->name) > HOST_VOLUME_NAME_MAX)
        return err_set(e, -ERR_INVALID, "missing name: it has 1 to %d characters",
                       HOST_VOLUME_NAME_MAX);
    if (!str_empty(v->plugin_id) && !STR_ONE_OF(v->plugin_id, VOLUME_PLUGIN, "default"))
        return err_set(e, -ERR_INVALID,
                       "plugin \"%.128s\" is not in this release: use \"" VOLUME_PLUGIN "\"",
                       v->plugin_id);
    if (v->requested_capacity_min_bytes < 0 || v->requested_capacity_max_bytes < 0 ||
        v->requested_capacity_max_bytes < v->requested_capacity_min_bytes)
        return err_set(
            e, -ERR_INVALID, "capacity_max (%lld) must be larger than capacity_min (%lld)",
            (long long)v->requested_capacity_max_bytes, (long long)v->requested_capacity_min_bytes);
    for (size_t i = 0; i < v->requested_capabilities.n; i++)
        if (check_capability(v->requested_capabilities.v[i], e) < 0)
            return e->code;
    for (size_t i = 0; i < v->constraints.n; i++)
        if (check_constraint(v->constraints.v[i], e) < 0)
            return e->code;
    if (!v->registered &&
        (volume_dir_of(&v->parameters, &dir, e) < 0 || volume_check_size(v, &dir, e) < 0))
        return e->code;
    return codec_check(&type_host_volume, v, e);
}

static const char *
volume_mode(const struct volume_request *want)
{
    return !str_empty(want->access_mode) ? want->access_mode
           : want->read_only             ? VOLUME_READER
                                         : VOLUME_WRITER;
}

bool
volume_offers(const struct host_volume_capability_list *l, const struct volume_request *want)
{
    const char *access = volume_mode(want), *how = str_or(want->attachment_mode, "");
    bool writes = STR_ONE_OF(access, VOLUME_WRITER);

    if (str_empty(how))
        how = MODE_FILES;
    if ((writes && want->read_only) || (str_eq(access, VOLUME_READER) && !want->read_only))
        return false;
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i]->access_mode, access) && str_eq(l->v[i]->attachment_mode, how))
            return true;
    return false;
}

const char *
volume_source(const void *ctx, const struct volume_request *want, const char *alloc_name)
{
    const char *source = str_or(want->source, "");
    const char *index = want->per_alloc && alloc_name != NULL ? strrchr(alloc_name, '[') : NULL;

    return index != NULL ? mem_printf(ctx, "%s%s", source, index) : source;
}

bool
volume_may_be(const struct volume_request *want, const char *name)
{
    const char *source = str_or(want->source, "");
    size_t n = strlen(source);

    return want->per_alloc ? str_prefix(name, source) && name[n] == '[' : str_eq(name, source);
}

bool
volume_written(const struct task_group *tg)
{
    for (size_t i = 0; i < tg->volumes.n; i++)
        if (!tg->volumes.v[i].v->read_only)
            return true;
    return false;
}

bool
volume_clash(const struct task_group *a, const char *a_name, const struct task_group *b,
             const char *b_name)
{
    auto_mem void *tmp = mem_ctx("writers");
    bool found = false;

    for (size_t i = 0; i < a->volumes.n && !found; i++)
        for (size_t k = 0; k < b->volumes.n && !found; k++) {
            const struct volume_request *v = a->volumes.v[i].v, *o = b->volumes.v[k].v;
            bool alone = str_eq(v->access_mode, VOLUME_SINGLE_WRITER) ||
                         str_eq(o->access_mode, VOLUME_SINGLE_WRITER);
            found = alone && !v->read_only && !o->read_only &&
                    str_eq(volume_source(tmp, v, a_name), volume_source(tmp, o, b_name));
        }
    return found;
}

bool
volume_claimed(const struct host_volume *v, const char *job_id, const char *alloc_name)
{
    for (size_t i = 0; i < v->claims.n; i++)
        if (str_eq(v->claims.v[i]->job_id, job_id) &&
            str_eq(v->claims.v[i]->alloc_name, alloc_name))
            return true;
    return false;
}
