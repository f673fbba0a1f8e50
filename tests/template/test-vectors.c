/* SPDX-License-Identifier: Apache-2.0
 *
 * Templates beside what Go gives of them: tests/template/vectors, which gen/ makes where Go is.
 * PADDOCK_VECTORS names another file; with PADDOCK_VECTORS_SHOW=N the first N differences are printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "template/digest.h"
#include "tests/lib/test.h"

static struct value *world, *data;

static const char *
row_text(const struct value *row, const char *key)
{
    const struct value *v = value_get(row, key);
    return v ? v->str.s : NULL;
}

/* Everything is asked for by its name; names of the environment begin with "env.". */
static enum template_answer
ask_world(void *unused, const struct template_ask *a, const struct value **ret, struct err *e)
{
    char name[256];
    (void)unused, (void)e;
    snprintf(name, sizeof(name), "%s%s", a->kind == TEMPLATE_ENV ? "env." : "",
             a->kind == TEMPLATE_ENV ? a->key : a->name);
    *ret = value_get(world, name);
    return *ret ? TEMPLATE_VALUE : TEMPLATE_MISSING;
}

static int
name_order(const void *a, const void *b)
{
    return strcmp(((const struct template_ask *)a)->name, ((const struct template_ask *)b)->name);
}

/* Whether it waits for what the row says. */
static bool
waits_same(const struct value *row, struct template_result *res)
{
    const struct value *w = value_get(row, "w");
    if (res->missing.n)
        qsort(res->missing.v, res->missing.n, sizeof(*res->missing.v), name_order);
    if (res->missing.n != (w ? w->list.n : 0))
        return false;
    for (size_t i = 0; i < res->missing.n; i++)
        if (strcmp(res->missing.v[i].name, w->list.v[i]->str.s) != 0)
            return false;
    return true;
}

static bool
row_same(const struct value *row, bool show)
{
    auto_mem void *ctx = mem_ctx("row");
    bool task = strcmp(row_text(row, "m"), "task") == 0;
    struct template_grammar g = {.name = task ? "" : "format", .table = task ? TEMPLATE_TASK : TEMPLATE_CLI,
                                 .denied = (const char *const[]){"plugin", "writeToFile", NULL}};
    struct template_env env = {.ask = ask_world, .digest = template_digest};
    struct err e = ERR_INIT;
    struct template_tree *t;
    struct template_result res = {{NULL, 0}, {NULL, 0}};
    auto_buf struct buf b = BUF_INIT(1 << 20);
    const char *text = row_text(row, "t"), *want = row_text(row, "o"), *mistake = row_text(row, "e");
    int rc = template_parse(ctx, &g, SLICE(text, strlen(text)), &t, &e);
    if (!rc)
        rc = template_exec(ctx, &(struct template_input){t, task ? NULL : data, &env, NULL}, &b, &res, &e);
    bool same = rc ? mistake && strcmp(mistake, e.text) == 0
                   : want && strcmp(want, buf_str(&b)) == 0 && waits_same(row, &res);
    if (!same && show)
        printf("# template: %s\n#   Go:      %s%s\n#   Paddock: %s%s\n", text, mistake ? "ERROR " : "",
               mistake ? mistake : want, rc ? "ERROR " : "", rc ? e.text : buf_str(&b));
    return same;
}

START_TEST(are_as_gos)
{
    auto_mem void *ctx = mem_ctx("test");
    char path[512];
    struct err e = ERR_INIT;
    const char *other = getenv("PADDOCK_VECTORS"), *show = getenv("PADDOCK_VECTORS_SHOW");
    int64_t left = 20, rows = 0, bad = 0;
    snprintf(path, sizeof(path), "%s/tests/template/vectors", getenv("top_srcdir"));
    FILE *f = fopen(other ? other : path, "re");
    ck_assert_ptr_nonnull(f);
    if (show)
        ck_assert_int_eq(num_parse_i64(show, &left), 0);
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&line, &cap, f)) > 0; rows++) {
        struct value *row = NULL;
        ck_assert_int_eq(json_decode_value(ctx, SLICE(line, (size_t)n), BUDGET(1 << 20), &row, &e), 0);
        if (rows == 0) {
            const char *d = row_text(row, "data");
            world = value_get(row, "world") ? (struct value *)(uintptr_t)value_get(row, "world") : NULL;
            ck_assert_int_eq(json_decode_value(ctx, SLICE(d, strlen(d)), BUDGET(1 << 20), &data, &e), 0);
            continue;
        }
        if (!row_same(row, bad < left))
            bad++;
        mem_free(row);
    }
    free(line);
    fclose(f);
    printf("# %lld templates, %lld differ\n", (long long)rows - 1, (long long)bad);
    fflush(stdout);
    if (!other)
        ck_assert_int_gt(rows, 3000);
    ck_assert_int_eq(bad, 0);
}
END_TEST

TEST_SUITE("template vectors", are_as_gos)
