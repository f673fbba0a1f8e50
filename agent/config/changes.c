/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing two configurations by their field tables: the keys, as a file spells them, that differ.
 */
#include <string.h>

#include "agent/config/config.h"
#include "common/mem.h"
#include "common/str.h"

struct comparing {
    const void *ctx;
    struct str_list *ret;
};

static void
compare_labelled(struct comparing *k, const char *key, const struct type *t,
                 const struct object_list *a, const struct object_list *b)
{
    /* a label, or a name, is the first member of all of them */
    for (size_t i = 0; i < a->n + b->n; i++) {
        const struct object_list *other = i < a->n ? b : a;
        const void *obj = i < a->n ? a->v[i] : b->v[i - a->n], *same = NULL;
        const char *label = *(const char *const *)obj;
        for (size_t n = 0; n < other->n; n++)
            if (str_eq(*(const char *const *)other->v[n], label))
                same = other->v[n];
        if (!same || (i < a->n && !codec_equal(t, obj, same, 0)))
            list_add(k->ctx, *k->ret, mem_printf(k->ctx, "%s.%s", key, str_or(label, "")));
    }
}

/* Returns a block that no file has: its keys are at their defaults. */
static const void *
compare_unsaid(struct comparing *k, const struct type *t)
{
    void *obj = type_new(k->ctx, t);
    codec_defaults(k->ctx, t, obj);
    return obj;
}

/* Two blocks, of which one may be missing. */
struct blocks {
    const void *a, *b;
};

static void compare_objects(struct comparing *k, const char *prefix, const struct type *t,
                            const void *a, const void *b);

static void
compare_blocks(struct comparing *k, const char *key, const struct type *t, struct blocks x)
{
    compare_objects(k, key, t, x.a ? x.a : compare_unsaid(k, t), x.b ? x.b : compare_unsaid(k, t));
}

static void
compare_objects(struct comparing *k, const char *prefix, const struct type *t, const void *a,
                const void *b)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        const void *p = (const char *)a + f->offset, *q = (const char *)b + f->offset;
        const struct type one = {.name = t->name, .size = t->size, .fields = f, .n_fields = 1};
        if (!f->hcl || codec_equal(&one, a, b, 0))
            continue;
        const char *key =
            prefix ? mem_printf(k->ctx, "%s.%s", prefix, f->hcl) : mem_strdup(k->ctx, f->hcl);
        if (f->type == FT_STRUCT && f->shape == FS_LIST && f->sub->fields[0].type == FT_STRING)
            compare_labelled(k, key, f->sub, p, q);
        else if (f->type == FT_STRUCT && f->shape == FS_ONE)
            compare_blocks(k, key, f->sub,
                           (struct blocks){*(const void *const *)p, *(const void *const *)q});
        else
            list_add(k->ctx, *k->ret, key);
    }
}

/* A file may be called as before and hold something else. */
static void
compare_files(struct comparing *k, const struct agent_config *a, const struct agent_config *b)
{
    const struct agent_tls *t = a->tls_config, *u = b->tls_config;
    const struct {
        const char *key, *path, *now;
    } files[] = {{"tls.ca_file", t->ca_file, u->ca_file},
                 {"tls.cert_file", t->cert_file, u->cert_file},
                 {"tls.key_file", t->key_file, u->key_file},
                 {"tls.crl_file", t->crl_file, u->crl_file}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (str_eq(files[i].path, files[i].now) &&
            !str_eq(config_tls_text(a, files[i].path), config_tls_text(b, files[i].now)))
            list_add(k->ctx, *k->ret, files[i].key);
}

void
config_changes(const void *ctx, const struct agent_config *a, const struct agent_config *b,
               struct str_list *ret)
{
    struct comparing k = {ctx, ret};
    compare_objects(&k, NULL, &type_agent_config, a, b);
    compare_files(&k, a, b);
}
