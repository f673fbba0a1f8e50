/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands of objects with a name (see object.h). `info` prints an object by its fields, unless the
 * kind has a function for that.
 */
#include "cli/object/object.h"

#include <unistd.h>

#include "api/object.h"
#include "cli/api.h"
#include "cli/jobfile.h"
#include "cli/views.h"
#include "common/duration.h"
#include "jobspec/hcl.h"

struct kind {
    const struct type *type, *file; /* file NULL: it is the object's members */
    const char *words, *list, *put, *one;
};

#define OBJECT(TABLE, type, TYPE, table, words, list, put, one, file)                              \
    {&type_##type, file, words, list, put, one "%"},
static const struct kind kinds[] = {API_COMMON_OBJECTS(OBJECT)};
#undef OBJECT

static const struct kind *
kind_of(const struct type *t)
{
    const struct kind *k = kinds;

    while (k->type != t)
        k++;
    return k;
}

static const char *
object_name(const struct kind *k, const void *obj)
{
    return *(const char *const *)type_member(k->type, obj, "Name");
}

/* --- lists --- */

char *
object_list_target(struct cmd *c, const char *path, const char *name, const struct list_opts *o)
{
    const char *per_page = o->per_page ? fmt_i64(c, o->per_page) : NULL;

    return name ? api_target(c, path, name, "filter", o->filter, "per_page", per_page, "next_token",
                             o->page_token, NULL)
                : api_target(c, path, "filter", o->filter, "per_page", per_page, "next_token",
                             o->page_token, NULL);
}

static void
print_objects(struct cmd *c, const struct kind *k, const struct object_list *l)
{
    struct table t;

    table_init(&t, c, 2);
    table_row(&t, "Name", "Description");
    for (size_t i = 0; i < l->n; i++) {
        const char *const *text = type_member(k->type, l->v[i], "Description");
        table_row(&t, object_name(k, l->v[i]), text ? *text : NULL);
    }
    table_print(&t);
}

static int
object_list(struct cmd *c, const struct kind *k)
{
    struct list_opts o = {.filter = NULL};
    const struct opt opts[] = {LIST_OPTS(o, "objects"), {0}};
    struct object_list l;
    struct api_meta meta = {0};
    struct err e = ERR_INIT;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (api_list(c, object_list_target(c, k->list, NULL, &o), k->type, &l, &meta, &e))
        return cmd_fail(c, "Error querying %ss: %s", k->words, e.text);
    if (output_list(c, &o.out, k->type, &l, &rc))
        return rc;
    print_objects(c, k, &l);
    view_next_page(c, meta.next_token);
    return 0;
}

/* --- one --- */

const void *
object_find(struct cmd *c, const struct type *t, const char *prefix)
{
    const struct kind *k = kind_of(t);
    const char *failed = mem_printf(c, "Error retrieving %s", k->words);
    struct object_list l;

    if (!api_read_list(c, api_target(c, k->list, "prefix", prefix, NULL), t, &l, failed))
        return NULL;
    for (size_t i = 0; i < l.n; i++)
        if (l.n == 1 || str_eq(object_name(k, l.v[i]), prefix))
            return l.v[i];
    if (l.n == 0) {
        cmd_fail(c, "%s: No %s with prefix \"%s\" found", failed, k->words, prefix);
        return NULL;
    }
    FILE *out = c->out;
    cmd_warn(c, "Prefix matched multiple %ss\n", k->words);
    c->out = c->err;
    print_objects(c, k, &l);
    c->out = out;
    return NULL;
}

/* "NodeIdentityTTL": "Node Identity TTL". */
static const char *
title_of(struct cmd *c, const char *wire)
{
    char *text = mem_array(c, char, 2 * strlen(wire) + 1), *s = text;

    for (const char *w = wire; *w != '\0'; w++) {
        bool upper = *w >= 'A' && *w <= 'Z', follows_lower = w > wire && w[-1] >= 'a';
        bool begins = w > wire && w[1] >= 'a' && w[-1] < 'a';
        if (upper && (follows_lower || begins))
            *s++ = ' ';
        *s++ = *w;
    }
    return text;
}

static const char *
lower_title(struct cmd *c, const char *title)
{
    char *text = mem_strdup(c, title);

    for (char *s = text; *s != '\0'; s++)
        *s = (char)(*s | 0x20);
    return text;
}

static const char *
value_text(struct cmd *c, const struct field *f, const void *p)
{
    char ttl[DURATION_TEXT];

    switch (f->type) {
    case FT_BOOL:
        return fmt_bool((f->flags & F_OPT) ? ((const struct opt_bool *)p)->v : *(const bool *)p);
    case FT_INT:
        return fmt_i64(c, *(const int64_t *)p);
    case FT_DURATION:
        return mem_strdup(c, duration_format(*(const int64_t *)p, ttl));
    case FT_STRING:
        return *(const char *const *)p;
    default:
        return NULL;
    }
}

static bool
is_plain(const struct field *f)
{
    return f->shape == FS_ONE && f->type != FT_STRUCT && f->type != FT_BYTES &&
           f->type != FT_UINT && f->type != FT_VALUE;
}

/* Prints the plain members, but for those that are not set and are no text of the object. */
static void
print_plain(struct cmd *c, const struct type *type, const void *obj, bool all)
{
    struct table t;

    table_init(&t, c, 2);
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct field *f = &type->fields[i];
        if (is_plain(f) && (!codec_field_empty(f, obj) || (all && f->type == FT_STRING)))
            table_row(&t, title_of(c, f->wire), value_text(c, f, (const char *)obj + f->offset));
    }
    table_print_kv(&t);
}

static void
print_parts(struct cmd *c, const struct type *type, const void *obj)
{
    for (size_t i = 0; i < type->n_fields; i++) {
        const struct field *f = &type->fields[i];
        const void *p = (const char *)obj + f->offset;
        const char *title = str_eq(f->wire, "Meta") ? "Metadata" : title_of(c, f->wire);
        if ((f->type != FT_STRUCT || f->shape != FS_ONE) &&
            (f->shape != FS_MAP || f->type != FT_STRING))
            continue;
        bool map = f->shape == FS_MAP, none = codec_field_empty(f, obj);
        if (map && !none) {
            print_titled_map(c, title, p);
            continue;
        }
        cmd_heading(c, title);
        if (none)
            cmd_say(c, "No %s", lower_title(c, title));
        else
            print_plain(c, f->sub, *(const void *const *)p, false);
    }
}

static int
object_info(struct cmd *c, const struct kind *k)
{
    struct output out = {0};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const void *obj = object_find(c, k->type, c->args[0]);
    if (!obj)
        return 1;
    if (output_object(c, &out, k->type, obj, &rc))
        return rc;
    if (k->type == &type_namespace) {
        namespace_print(c, obj);
        return 0;
    }
    if (k->type == &type_quota)
        return quota_print(c, obj);
    print_plain(c, k->type, obj, true);
    print_parts(c, k->type, obj);
    return 0;
}

static int
object_inspect(struct cmd *c, const struct kind *k)
{
    struct output out = {0};
    const struct opt opts[] = {
        {"t", OPT_STRING, &out.tmpl, "<template>", "Format the JSON output by a Go template."},
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const void *obj = object_find(c, k->type, c->args[0]);
    if (!obj)
        return 1;
    out.json = out.tmpl == NULL;
    (void)output_object(c, &out, k->type, obj, &rc);
    return rc;
}

/* --- changes --- */

static int
parse_hcl(struct cmd *c, const struct kind *k, const char *name, struct slice text, void **ret)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_body *body;
    void *obj = NULL;

    if (hcl_parse(c, name, text, 0, &body, &d) < 0 ||
        hcl_decode(c, body, k->file ? k->file : k->type, 0, &obj, &d) < 0)
        return cmd_fail(c, "Failed to parse input content: %s", hcl_diags_text(c, &d, false));
    const struct object_list *l = obj; /* the only member of a file of blocks */
    if (k->file && l->n != 1)
        return cmd_fail(c, "Failed to parse input content: %s: one %s block is wanted, not %zu",
                        name, k->file->fields[0].hcl, l->n);
    *ret = k->file ? l->v[0] : obj;
    return 0;
}

static int
parse_json(struct cmd *c, const struct kind *k, struct slice text, void **ret)
{
    struct err e = ERR_INIT;

    if (json_decode(c, k->type, text, BUDGET(CLI_ANSWER_MAX), ret, &e) < 0 || !*ret)
        return cmd_fail(c, "Failed to parse input content: %s",
                        e.code ? e.text : mem_printf(c, "no %s", k->words));
    return 0;
}

static int
read_file(struct cmd *c, const struct kind *k, bool json, void **ret)
{
    struct err e = ERR_INIT;
    char *s = NULL;
    size_t n = 0;

    if (jobfile_read(c, c->args[0], &s, &n, &e) < 0)
        return cmd_fail(c, "Failed to read input: %s", e.text);
    const char *name = str_eq(c->args[0], "-") ? "<stdin>" : c->args[0];
    return json ? parse_json(c, k, SLICE(s, n), ret) : parse_hcl(c, k, name, SLICE(s, n), ret);
}

/* Reads the object of that name, or makes a new one. */
static int
read_named(struct cmd *c, const struct kind *k, void **ret)
{
    struct object_list l;
    const char *failed = mem_printf(c, "Error looking up %s", k->words);

    if (!api_read_list(c, api_target(c, k->list, "prefix", c->args[0], NULL), k->type, &l, failed))
        return 1;
    for (size_t i = 0; i < l.n; i++)
        if (str_eq(object_name(k, l.v[i]), c->args[0])) {
            *ret = l.v[i];
            return 0;
        }
    *ret = type_new(c, k->type);
    *(const char **)type_member(k->type, *ret, "Name") = c->args[0];
    return 0;
}

static void
set_text(const struct kind *k, void *obj, const char *member, const char *text)
{
    if (text)
        *(const char **)type_member(k->type, obj, member) = text;
}

/* Takes a file, and of kinds whose file is no block also a name. */
static int
object_apply(struct cmd *c, const struct kind *k)
{
    bool json = false;
    const char *description = NULL, *quota = NULL;
    const struct opt of_files[] = {
        {"json", OPT_BOOL, &json, NULL, "The file is an object in the API's JSON."}, {0}};
    const struct opt of_names[] = {
        of_files[0],
        {"description", OPT_STRING, &description, "<text>", "Its description."},
        {"quota", OPT_STRING, &quota, "<name>", "The quota of its allocations."},
        {0}};
    void *obj = NULL;
    int rc;

    if (!cmd_parse(c, k->file ? of_files : of_names,
                   &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    bool named = !k->file && !str_eq(c->args[0], "-") && access(c->args[0], F_OK) < 0;
    if ((rc = named ? read_named(c, k, &obj) : read_file(c, k, json, &obj)) != 0)
        return rc;
    set_text(k, obj, "Description", description);
    set_text(k, obj, "Quota", quota);
    if (!api_change(c, &(struct change){.target = api_target(c, k->put, NULL),
                                        .body_type = k->type,
                                        .body = obj,
                                        .failed = mem_printf(c, "Error applying %s", k->words)}))
        return 1;
    cmd_say(c, "Successfully applied %s \"%s\"!", k->words, object_name(k, obj));
    return 0;
}

static int
object_delete(struct cmd *c, const struct kind *k)
{
    const struct opt opts[] = {{0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!api_change(c, &(struct change){.method = "DELETE",
                                        .target = api_target(c, k->one, c->args[0], NULL),
                                        .failed = mem_printf(c, "Error deleting %s", k->words)}))
        return 1;
    cmd_say(c, "Successfully deleted %s \"%s\"!", k->words, c->args[0]);
    return 0;
}

/* --- the commands --- */

#define VERB(type, verb)                                                                           \
    int cmd_##type##_##verb(struct cmd *c)                                                         \
    {                                                                                              \
        return object_##verb(c, kind_of(&type_##type));                                            \
    }
#define OBJECT(TABLE, type, ...)                                                                   \
    VERB(type, list) VERB(type, info) VERB(type, apply) VERB(type, delete)
API_COMMON_OBJECTS(OBJECT)
#undef OBJECT
VERB(namespace, inspect)
VERB(quota, inspect)
