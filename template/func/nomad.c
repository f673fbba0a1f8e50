/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables and services, as consul-template gives them to a template. First the classes, with
 * their methods; then how they are made of the API's answers.
 */
#include "template/func/nomad.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/mem.h"
#include "template/convert.h"
#include "template/func/gotime.h"

static const struct gv_type item_type, meta_type, variable_type;

/* --- metadata of variables --- */

enum { META_NAMESPACE, META_PATH, META_FIELDS = 6, VARIABLE_ITEMS = META_FIELDS };

static const char *const meta_fields[] = {"Namespace",  "Path",       "CreateIndex", "ModifyIndex",
                                          "CreateTime", "ModifyTime", NULL};
static const char *const variable_fields[] = {
    "Namespace", "Path", "CreateIndex", "ModifyIndex", "CreateTime", "ModifyTime", "Items", NULL};

static struct gv_struct *
make_struct(struct run *r, size_t fields)
{
    return run_alloc(r, sizeof(struct gv_struct) + fields * sizeof(struct gv));
}

static struct gv
meta_string(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return a[0].obj->f[META_PATH];
}

static struct gv
variable_metadata(struct run *r, struct gv *a, size_t n)
{
    struct gv meta = {.t = &meta_type, .obj = make_struct(r, META_FIELDS)};
    (void)n;
    memcpy(meta.obj->f, a[0].obj->f, META_FIELDS * sizeof(struct gv));
    return meta;
}

static const struct gv_method meta_methods[] = {{"String", meta_string, "", &gv_string}};
static const struct gv_class meta_class = {meta_fields, meta_methods, ARRAY_LEN(meta_methods),
                                           true};
static const struct gv_type meta_type = {GV_STRUCT,   0,   "*dependency.NomadVarMeta", NULL, NULL,
                                         &meta_class, true};
const struct gv_type nomad_metas = {GV_LIST, 0,    "[]*dependency.NomadVarMeta", &meta_type, NULL,
                                    NULL,    false};

static const struct gv_method variable_methods[] = {
    {"Metadata", variable_metadata, "", &meta_type}};
static const struct gv_class variable_class = {variable_fields, variable_methods,
                                               ARRAY_LEN(variable_methods), false};
static const struct gv_type variable_type = {
    GV_STRUCT, 0, "*dependency.NomadVariable", NULL, NULL, &variable_class, true};

/* --- items --- */

enum { ITEM_KEY, ITEM_VALUE, ITEM_FIELDS };
static const char *const item_fields[] = {"Key", "Value", NULL};

static struct gv
item_parent(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    if (!a[0].obj)
        run_fail(r, "runtime error: invalid memory address or nil pointer dereference");
    return *(const struct gv *)a[0].obj->data;
}

static struct gv
item_string(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return a[0].obj ? a[0].obj->f[ITEM_VALUE] : GV_LIT("");
}

static struct gv
item_metadata(struct run *r, struct gv *a, size_t n)
{
    struct gv parent = item_parent(r, a, n);
    return variable_metadata(r, &parent, 1);
}

static const struct gv_method item_methods[] = {
    {"String", item_string, "", &gv_string},
    {"Metadata", item_metadata, "", &meta_type},
    {"Parent", item_parent, "", &variable_type},
};
static const struct gv_class item_class = {item_fields, item_methods, ARRAY_LEN(item_methods),
                                           true};
static const struct gv_type item_type = {GV_STRUCT,   0,    "dependency.NomadVarItem", NULL, NULL,
                                         &item_class, false};

static struct gv
items_keys(struct run *r, struct gv *a, size_t n)
{
    struct gv list = gv_list_new(r, &gv_strings, gv_len(a[0]));
    (void)n;
    for (size_t i = 0; i < gv_len(a[0]); i++)
        gv_list_add(r, list.list, a[0].map->v[i].k);
    return list;
}

static struct gv
items_values(struct run *r, struct gv *a, size_t n)
{
    struct gv list = gv_list_new(r, &gv_strings, gv_len(a[0]));
    (void)n;
    for (size_t i = 0; i < gv_len(a[0]); i++)
        gv_list_add(r, list.list, a[0].map->v[i].v.obj->f[ITEM_VALUE]);
    return list;
}

static const char *const tuple_fields[] = {"K", "V", NULL};
static const struct gv_class tuple_class = {tuple_fields, NULL, 0, false};
static const struct gv_type tuple_type = {
    GV_STRUCT, 0, "struct { K string; V string }", NULL, NULL, &tuple_class, false};
static const struct gv_type tuples_type = {
    GV_LIST, 0, "[]struct { K string; V string }", &tuple_type, NULL, NULL, false};

static struct gv
items_tuples(struct run *r, struct gv *a, size_t n)
{
    struct gv list = gv_list_new(r, &tuples_type, gv_len(a[0]));
    (void)n;
    for (size_t i = 0; i < gv_len(a[0]); i++) {
        struct gv t = {.t = &tuple_type, .obj = make_struct(r, 2)};
        t.obj->f[0] = a[0].map->v[i].k;
        t.obj->f[1] = a[0].map->v[i].v.obj->f[ITEM_VALUE];
        gv_list_add(r, list.list, t);
    }
    return list;
}

static struct gv
items_parent(struct run *r, struct gv *a, size_t n)
{
    if (gv_len(a[0]) == 0)
        return gv_zero(&variable_type);
    return item_parent(r, &a[0].map->v[0].v, n);
}

static struct gv
items_metadata(struct run *r, struct gv *a, size_t n)
{
    if (gv_len(a[0]) == 0)
        return gv_zero(&meta_type);
    return item_metadata(r, &a[0].map->v[0].v, n);
}

static struct gv
items_map(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    if (gv_len(a[0]) == 0)
        return gv_zero(&gv_map_any);
    struct gv map = gv_map_new(r, &gv_map_any);
    for (size_t i = 0; i < gv_len(a[0]); i++)
        gv_map_put(r, map.map, a[0].map->v[i].k, a[0].map->v[i].v.obj->f[ITEM_VALUE]);
    return map;
}

static const struct gv_method items_methods[] = {
    {"Keys", items_keys, "", &gv_strings},        {"Values", items_values, "", &gv_strings},
    {"Tuples", items_tuples, "", &tuples_type},   {"Parent", items_parent, "", &variable_type},
    {"Metadata", items_metadata, "", &meta_type}, {"ItemsMap", items_map, "", &gv_map_any},
};
static const struct gv_class items_class = {NULL, items_methods, ARRAY_LEN(items_methods), false};
const struct gv_type nomad_items = {
    GV_MAP, 0, "*dependency.NomadVarItems", &item_type, &gv_string, &items_class, true};

/* --- services --- */

enum {
    SERVICE_ID,
    SERVICE_NAME,
    SERVICE_NODE,
    SERVICE_ADDRESS,
    SERVICE_PORT,
    SERVICE_DATACENTER,
    SERVICE_TAGS,
    SERVICE_JOB,
    SERVICE_ALLOC,
    SERVICE_FIELDS
};
enum { SNIPPET_NAME, SNIPPET_TAGS, SNIPPET_FIELDS };

static const char *const service_fields[] = {"ID",         "Name", "Node",  "Address", "Port",
                                             "Datacenter", "Tags", "JobID", "AllocID", NULL};
static const char *const service_keys[] = {"ID",         "ServiceName", "NodeID", "Address", "Port",
                                           "Datacenter", "Tags",        "JobID",  "AllocID"};
static const struct gv_type tags_type = {GV_LIST, 0,    "dependency.ServiceTags", &gv_string, NULL,
                                         NULL,    false};
static const struct gv_class service_class = {service_fields, NULL, 0, false};
static const struct gv_type service_type = {
    GV_STRUCT, 0, "*dependency.NomadService", NULL, NULL, &service_class, true};
const struct gv_type nomad_services = {
    GV_LIST, 0, "[]*dependency.NomadService", &service_type, NULL, NULL, false};

static const char *const snippet_fields[] = {"Name", "Tags", NULL};
static const struct gv_class snippet_class = {snippet_fields, NULL, 0, false};
static const struct gv_type snippet_type = {
    GV_STRUCT, 0, "*dependency.NomadServicesSnippet", NULL, NULL, &snippet_class, true};
const struct gv_type nomad_snippets = {
    GV_LIST, 0, "[]*dependency.NomadServicesSnippet", &snippet_type, NULL, NULL, false};

struct gv
nomad_tags(struct gv service)
{
    return service.obj->f[service.t == &service_type ? SERVICE_TAGS : SNIPPET_TAGS];
}

struct gv
nomad_port(struct gv service)
{
    return service.obj->f[SERVICE_PORT];
}

/* --- from the API's answers --- */

static struct gv
member_text(struct run *r, const struct value *v, const char *key)
{
    const struct value *m = value_get(v, key);
    return m && m->kind == VALUE_STRING ? GV_TEXT(run_dup(r, m->str.s, m->str.n), m->str.n)
                                        : GV_LIT("");
}

static int64_t
member_int(const struct value *v, const char *key)
{
    const struct value *m = value_get(v, key);
    return m && m->kind == VALUE_INT ? m->i : 0;
}

static void
fill_meta(struct run *r, struct gv_struct *s, const struct value *v)
{
    s->f[META_NAMESPACE] = member_text(r, v, "Namespace");
    s->f[META_PATH] = member_text(r, v, "Path");
    for (size_t i = 2; i < META_FIELDS; i++)
        s->f[i] = (struct gv){.t = i < 4 ? &gv_uint64 : &gotime_nanos,
                              .i = member_int(v, meta_fields[i])};
}

struct gv
nomad_make_items(struct run *r, const struct value *v)
{
    struct gv *parent = run_alloc(r, sizeof(*parent)), map = gv_map_new(r, &nomad_items);
    const struct value *items = value_get(v, "Items");
    *parent = (struct gv){.t = &variable_type, .obj = make_struct(r, META_FIELDS + 1)};
    fill_meta(r, parent->obj, v);
    for (size_t i = 0; items && items->kind == VALUE_MAP && i < items->map.n; i++) {
        struct gv item = {.t = &item_type, .obj = make_struct(r, ITEM_FIELDS)};
        const char *key = items->map.v[i].k;
        item.obj->data = parent;
        item.obj->f[ITEM_KEY] = GV_TEXT(run_dup(r, key, strlen(key)), strlen(key));
        item.obj->f[ITEM_VALUE] = member_text(r, items, key);
        gv_map_put(r, map.map, item.obj->f[ITEM_KEY], item);
    }
    parent->obj->f[VARIABLE_ITEMS] = map;
    return map;
}

struct gv
nomad_make_metas(struct run *r, const struct value *list)
{
    struct gv ret = gv_list_new(r, &nomad_metas, 0);
    for (size_t i = 0; list->kind == VALUE_LIST && i < list->list.n; i++) {
        struct gv meta = {.t = &meta_type, .obj = make_struct(r, META_FIELDS)};
        fill_meta(r, meta.obj, list->list.v[i]);
        gv_list_add(r, ret.list, meta);
    }
    return ret;
}

static int
text_order(const void *a, const void *b)
{
    return gv_key_compare(*(const struct gv *)a, *(const struct gv *)b);
}

static struct gv
make_tags(struct run *r, const struct value *v)
{
    const struct value *tags = value_get(v, "Tags");
    struct gv list = gv_list_new(r, &tags_type, 0);
    for (size_t i = 0; tags && tags->kind == VALUE_LIST && i < tags->list.n; i++)
        if (tags->list.v[i]->kind == VALUE_STRING)
            gv_list_add(r, list.list, text_copy(r, tags->list.v[i]->str.s, tags->list.v[i]->str.n));
    if (list.list->n)
        qsort(list.list->v, list.list->n, sizeof(struct gv), text_order);
    return list;
}

static bool
has_tag(struct gv tags, const char *tag)
{
    for (size_t i = 0; i < gv_len(tags); i++)
        if (strlen(tag) == tags.list->v[i].n &&
            memcmp(tags.list->v[i].s, tag, tags.list->v[i].n) == 0)
            return true;
    return *tag == 0;
}

struct gv
nomad_make_services(struct run *r, const struct value *list, const char *tag)
{
    struct gv ret = gv_list_new(r, &nomad_services, 0);
    for (size_t i = 0; list->kind == VALUE_LIST && i < list->list.n; i++) {
        const struct value *v = list->list.v[i];
        struct gv s = {.t = &service_type, .obj = make_struct(r, SERVICE_FIELDS)};
        for (size_t f = 0; f < SERVICE_FIELDS; f++)
            s.obj->f[f] = member_text(r, v, service_keys[f]);
        s.obj->f[SERVICE_PORT] = GV_INTEGER(member_int(v, "Port"));
        s.obj->f[SERVICE_TAGS] = make_tags(r, v);
        if (has_tag(s.obj->f[SERVICE_TAGS], tag))
            gv_list_add(r, ret.list, s);
    }
    return ret;
}

struct ranked {
    uint64_t rank;
    struct gv service;
};

static int
rank_order(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return gv_key_compare(x->service.obj->f[SERVICE_ID], y->service.obj->f[SERVICE_ID]);
}

void
nomad_choose(struct run *r, struct gv services, int64_t count, const char *key)
{
    struct gv_list *l = services.list;
    struct ranked *all = run_alloc(r, (l->n + 1) * sizeof(*all));
    for (size_t i = 0; i < l->n; i++) {
        const struct gv *f = l->v[i].obj->f;
        struct gv address = f[SERVICE_ADDRESS];
        all[i] = (struct ranked){
            hash_rank(key, run_dup(r, address.s, address.n), f[SERVICE_PORT].i), l->v[i]};
    }
    if (l->n > 0)
        qsort(all, l->n, sizeof(*all), rank_order);
    l->n = count < (int64_t)l->n ? (size_t)(count > 0 ? count : 0) : l->n;
    for (size_t i = 0; i < l->n; i++)
        l->v[i] = all[i].service;
}

static int
snippet_order(const void *a, const void *b)
{
    return gv_key_compare(((const struct gv *)a)->obj->f[SNIPPET_NAME],
                          ((const struct gv *)b)->obj->f[SNIPPET_NAME]);
}

struct gv
nomad_make_snippets(struct run *r, const struct value *list)
{
    struct gv ret = gv_list_new(r, &nomad_snippets, 0);
    for (size_t i = 0; list->kind == VALUE_LIST && i < list->list.n; i++) {
        struct gv s = {.t = &snippet_type, .obj = make_struct(r, SNIPPET_FIELDS)};
        s.obj->f[SNIPPET_NAME] = member_text(r, list->list.v[i], "ServiceName");
        s.obj->f[SNIPPET_TAGS] = make_tags(r, list->list.v[i]);
        gv_list_add(r, ret.list, s);
    }
    if (ret.list->n)
        qsort(ret.list->v, ret.list->n, sizeof(struct gv), snippet_order);
    return ret;
}
