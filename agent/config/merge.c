/* SPDX-License-Identifier: Apache-2.0
 *
 * Merging of configurations by field table: what a later file sets wins, maps merge by key, plain
 * booleans only become true, lists of labelled blocks merge by label, a few lists append.
 */
#include "agent/config/config_int.h"

#include <string.h>

#include "common/str.h"

/* Lists that grow instead of being replaced. */
static const char *const appended[] = {"Servers", "StartJoin", "RetryJoin", "DataDogTags"};

static bool
merge_appends(const struct field *f)
{
    for (size_t i = 0; i < ARRAY_LEN(appended); i++)
        if (strcmp(f->wire, appended[i]) == 0)
            return true;
    return false;
}

static void merge_object(const void *ctx, const struct type *t, void *into, const void *from);

static const char *
label_of(const struct type *t, const void *obj)
{
    for (size_t i = 0; i < t->n_fields; i++)
        if ((t->fields[i].flags & F_LABEL) || strcmp(t->fields[i].wire, "Name") == 0)
            return *(const char *const *)((const char *)obj + t->fields[i].offset);
    return NULL;
}

static void
merge_blocks(const void *ctx, const struct type *t, struct object_list *into,
             const struct object_list *from)
{
    for (size_t i = 0; i < from->n; i++) {
        const char *label = label_of(t, from->v[i]);
        void *same = NULL;
        for (size_t k = 0; k < into->n && !same; k++)
            if (str_eq(label_of(t, into->v[k]), label))
                same = into->v[k];
        if (same)
            merge_object(ctx, t, same, from->v[i]);
        else
            list_add(ctx, *into, from->v[i]);
    }
}

static void
merge_list(const void *ctx, const struct field *f, void *into, const void *from)
{
    const struct str_list *src = from;
    if (src->n == 0 && (src->v == NULL || f->type == FT_STRUCT || merge_appends(f)))
        return; /* an empty list of words that is set says something */
    if (f->type == FT_STRUCT) {
        merge_blocks(ctx, f->sub, into, from);
    } else if (f->type == FT_STRING && merge_appends(f)) {
        struct str_list *dst = into;
        struct str_list both = {mem_array(ctx, const char *, dst->n + src->n), 0};
        for (size_t i = 0; i < dst->n; i++)
            both.v[both.n++] = dst->v[i];
        for (size_t i = 0; i < src->n; i++)
            both.v[both.n++] = src->v[i];
        *dst = both;
    } else {
        *(struct str_list *)into = *src;
    }
}

static void
merge_map(const void *ctx, const struct field *f, void *into, const void *from)
{
    ASSERT(f->type == FT_STRING); /* the only maps in a configuration */
    struct str_map *dst = into;
    const struct str_map *src = from;
    for (size_t i = 0; i < src->n; i++)
        str_map_set(ctx, dst, src->v[i].k, src->v[i].v);
}

static void
merge_one(const void *ctx, const struct field *f, void *into, const void *from)
{
    static const size_t sizes[] = {
        [FT_BOOL] = sizeof(bool),          [FT_INT] = sizeof(int64_t),
        [FT_UINT] = sizeof(uint64_t),      [FT_FLOAT] = sizeof(double),
        [FT_DURATION] = sizeof(int64_t),   [FT_TIME] = sizeof(int64_t),
        [FT_STRING] = sizeof(const char *), [FT_BYTES] = sizeof(struct bytes),
        [FT_VALUE] = sizeof(struct value *),
    };
    if (f->type == FT_STRUCT) {
        void **dst = into, *src = *(void *const *)from;
        if (src && *dst)
            merge_object(ctx, f->sub, *dst, src);
        else if (src)
            *dst = src;
        return;
    }
    size_t n = sizes[f->type];
    if (f->flags & F_OPT)
        n = f->type == FT_BOOL ? sizeof(struct opt_bool)
            : f->type == FT_FLOAT ? sizeof(struct opt_f64)
                                  : sizeof(struct opt_i64);
    memcpy(into, from, n);
}

static void
merge_object(const void *ctx, const struct type *t, void *into, const void *from)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        void *dst = (char *)into + f->offset;
        const void *src = (const char *)from + f->offset;
        bool list = f->shape == FS_LIST && ((const struct str_list *)src)->v != NULL;
        if (!list && codec_field_empty(f, from))
            continue;
        if (f->shape == FS_LIST)
            merge_list(ctx, f, dst, src);
        else if (f->shape == FS_MAP)
            merge_map(ctx, f, dst, src);
        else
            merge_one(ctx, f, dst, src);
    }
}

void
config_merge(const void *ctx, struct agent_config *into, const struct agent_config *from)
{
    merge_object(ctx, &type_agent_config, into, from);
}

#define NEED_BLOCK(parent, member, T)                        \
    do {                                                     \
        if (!(parent)->member)                               \
            (parent)->member = mem_new(ctx, struct T);       \
    } while (0)

void
config_blocks(const void *ctx, struct agent_config *c)
{
    NEED_BLOCK(c, ports, agent_ports);
    NEED_BLOCK(c, addresses, agent_addresses);
    NEED_BLOCK(c, advertise_addrs, agent_addresses);
    NEED_BLOCK(c, limits, agent_limits);
    NEED_BLOCK(c, tls_config, agent_tls);
    NEED_BLOCK(c, telemetry, agent_telemetry);
    NEED_BLOCK(c, acl, agent_acl);
    NEED_BLOCK(c, isolation, agent_isolation);
    NEED_BLOCK(c, client, agent_client);
    NEED_BLOCK(c->client, reserved, agent_reserved);
    NEED_BLOCK(c->client, server_join, agent_client_join);
    NEED_BLOCK(c, server, agent_server);
    NEED_BLOCK(c->server, server_join, agent_server_join);
    NEED_BLOCK(c->server, default_scheduler_config, agent_scheduler_config);
}
