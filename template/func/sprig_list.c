/* SPDX-License-Identifier: Apache-2.0
 *
 * Sprig's functions of lists and of dicts. A function and its twin with "must" differ in Go by how
 * they fail, which a template does not see: both names are rows of one function.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "template/fmt.h"
#include "template/func/cast.h"
#include "template/funcs.h"

/* --- lists --- */

#define NIL_PANIC "runtime error: invalid memory address or nil pointer dereference"

static void
need_list(struct run *r, struct gv v, const char *words)
{
    if (gv_none(v))
        run_fail(r, NIL_PANIC);
    if (gv_kind(v) != GV_LIST)
        run_fail(r, "%s %s", words, cast_kind(v));
}

static struct gv
part_of(struct run *r, struct gv list, size_t from, size_t to)
{
    struct gv ret = gv_list_new(r, &gv_anys, to - from);
    for (size_t i = from; i < to; i++)
        gv_list_add(r, ret.list, list.list->v[i]);
    return ret;
}

static struct gv
fn_list(struct run *r, struct gv *a, size_t n)
{
    struct gv list = gv_list_new(r, &gv_anys, n);
    for (size_t i = 0; i < n; i++)
        gv_list_add(r, list.list, gv_none(a[i]) ? GV_NULL : a[i]);
    return list;
}

static struct gv
fn_push(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    need_list(r, a[0], "Cannot push on type");
    struct gv list = part_of(r, a[0], 0, gv_len(a[0]));
    gv_list_add(r, list.list, gv_none(a[1]) ? GV_NULL : a[1]);
    return list;
}

static struct gv
fn_prepend(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    need_list(r, a[0], "Cannot prepend on type");
    struct gv list = gv_list_new(r, &gv_anys, gv_len(a[0]) + 1);
    gv_list_add(r, list.list, gv_none(a[1]) ? GV_NULL : a[1]);
    for (size_t i = 0; i < gv_len(a[0]); i++)
        gv_list_add(r, list.list, a[0].list->v[i]);
    return list;
}

static struct gv
fn_chunk(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    need_list(r, a[1], "Cannot chunk type");
    double count = floor(((double)gv_len(a[1]) - 1) / (double)a[0].i) + 1;
    struct gv ret = gv_list_new(r, &gv_lists, 0);
    if (a[0].i == 0 || count < 0)
        run_fail(r, "runtime error: makeslice: len out of range");
    size_t len = gv_len(a[1]);
    for (size_t i = 0; i < (size_t)count; i++) {
        size_t size = a[0].u;
        if (i + 1 == (size_t)count) {
            size = (size_t)fmod((double)len, (double)a[0].i);
            size = size ? size : a[0].u;
        }
        if ((int64_t)size < 0)
            run_fail(r, "runtime error: makeslice: len out of range");
        gv_list_add(r, ret.list, part_of(r, a[1], i * a[0].u, i * a[0].u + size));
    }
    return ret;
}

static struct gv
fn_first(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    need_list(r, a[0], "Cannot find first on type");
    return gv_box(gv_len(a[0]) ? a[0].list->v[0] : GV_NULL, &gv_any);
}

static struct gv
fn_last(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    need_list(r, a[0], "Cannot find last on type");
    return gv_box(gv_len(a[0]) ? a[0].list->v[gv_len(a[0]) - 1] : GV_NULL, &gv_any);
}

static struct gv
fn_rest(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    need_list(r, a[0], "Cannot find rest on type");
    return gv_len(a[0]) ? part_of(r, a[0], 1, gv_len(a[0])) : gv_zero(&gv_anys);
}

static struct gv
fn_initial(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    need_list(r, a[0], "Cannot find initial on type");
    return gv_len(a[0]) ? part_of(r, a[0], 0, gv_len(a[0]) - 1) : gv_zero(&gv_anys);
}

static struct gv
fn_reverse(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    need_list(r, a[0], "Cannot find reverse on type");
    struct gv list = gv_list_new(r, &gv_anys, gv_len(a[0]));
    for (size_t i = gv_len(a[0]); i > 0; i--)
        gv_list_add(r, list.list, a[0].list->v[i - 1]);
    return list;
}

static struct gv
fn_compact(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    need_list(r, a[0], "Cannot compact on type");
    struct gv list = gv_list_new(r, &gv_anys, 0);
    for (size_t i = 0; i < gv_len(a[0]); i++)
        if (!cast_empty(a[0].list->v[i]))
            gv_list_add(r, list.list, a[0].list->v[i]);
    return list;
}

static bool
is_among(struct run *r, const struct gv *v, size_t n, struct gv x)
{
    run_step(r, n / 8);
    for (size_t i = 0; i < n; i++)
        if (gv_equal(r, v[i], x))
            return true;
    return false;
}

static struct gv
fn_uniq(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    need_list(r, a[0], "Cannot find uniq on type");
    struct gv list = gv_list_new(r, &gv_anys, 0);
    for (size_t i = 0; i < gv_len(a[0]); i++)
        if (!is_among(r, list.list->v, list.list->n, a[0].list->v[i]))
            gv_list_add(r, list.list, a[0].list->v[i]);
    return list;
}

static struct gv
fn_without(struct run *r, struct gv *a, size_t n)
{
    need_list(r, a[0], "Cannot find without on type");
    struct gv list = gv_list_new(r, &gv_anys, 0);
    for (size_t i = 0; i < gv_len(a[0]); i++)
        if (!is_among(r, a + 1, n - 1, a[0].list->v[i]))
            gv_list_add(r, list.list, a[0].list->v[i]);
    return list;
}

static struct gv
fn_has(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    if (gv_none(a[1]))
        return GV_TRUE(false);
    need_list(r, a[1], "Cannot find has on type");
    return GV_TRUE(gv_len(a[1]) && is_among(r, a[1].list->v, gv_len(a[1]), a[0]));
}

static struct gv
fn_slice(struct run *r, struct gv *a, size_t n)
{
    need_list(r, a[0], "list should be type of slice or array but");
    size_t len = gv_len(a[0]);
    if (len == 0)
        return GV_NULL;
    int64_t from = n > 1 ? cast_int(a[1]) : 0, to = n > 2 ? cast_int(a[2]) : (int64_t)len;
    if (from < 0 || to < from || to > (int64_t)len)
        run_fail(r, "reflect.Value.Slice: slice index out of bounds");
    struct gv ret = gv_list_new(r, a[0].t, (size_t)(to - from));
    for (int64_t i = from; i < to; i++)
        gv_list_add(r, ret.list, a[0].list->v[i]);
    return gv_box(ret, &gv_any);
}

static struct gv
fn_concat(struct run *r, struct gv *a, size_t n)
{
    struct gv list = gv_zero(&gv_anys);
    for (size_t i = 0; i < n; i++) {
        if (gv_none(a[i]))
            run_fail(r, NIL_PANIC);
        if (gv_kind(a[i]) != GV_LIST)
            run_fail(r, "Cannot concat type %s as list", cast_kind(a[i]));
        for (size_t k = 0; k < gv_len(a[i]); k++) {
            if (!list.list)
                list = gv_list_new(r, &gv_anys, 0);
            gv_list_add(r, list.list, a[i].list->v[k]);
        }
    }
    return gv_box(list, &gv_any);
}

static int
text_order(const void *a, const void *b)
{
    return gv_key_compare(*(const struct gv *)a, *(const struct gv *)b);
}

static struct gv
fn_sort_alpha(struct run *r, struct gv *a, size_t n)
{
    struct gv list = gv_list_new(r, &gv_strings, 1);
    (void)n;
    if (gv_kind(a[0]) != GV_LIST) {
        gv_list_add(r, list.list, cast_text(r, a[0]));
        return list;
    }
    list = cast_texts(r, a[0]);
    run_step(r, gv_len(list));
    if (gv_len(list))
        qsort(list.list->v, list.list->n, sizeof(struct gv), text_order);
    return list;
}

/* --- dicts --- */

static struct gv
fn_dict(struct run *r, struct gv *a, size_t n)
{
    struct gv map = gv_map_new(r, &gv_map_any);
    for (size_t i = 0; i < n; i += 2) {
        struct gv v = i + 1 < n ? a[i + 1] : GV_LIT("");
        gv_map_put(r, map.map, cast_text(r, a[i]), gv_none(v) ? GV_NULL : v);
    }
    return map;
}

static struct gv
fn_get(struct run *r, struct gv *a, size_t n)
{
    struct gv *v = gv_map_find(a[0].map, a[1]);
    (void)r, (void)n;
    return gv_box(v ? *v : GV_LIT(""), &gv_any);
}

static struct gv
fn_set(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    if (!a[0].map)
        run_fail(r, "assignment to entry in nil map");
    gv_map_put(r, a[0].map, a[1], gv_none(a[2]) ? GV_NULL : a[2]);
    return a[0];
}

static struct gv
fn_unset(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    if (a[0].map)
        gv_map_drop(a[0].map, a[1]);
    return a[0];
}

static struct gv
fn_has_key(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_TRUE(gv_map_find(a[0].map, a[1]) != NULL);
}

static struct gv
fn_pluck(struct run *r, struct gv *a, size_t n)
{
    struct gv list = gv_list_new(r, &gv_anys, 0);
    for (size_t i = 1; i < n; i++) {
        struct gv *v = gv_map_find(a[i].map, a[0]);
        if (v)
            gv_list_add(r, list.list, *v);
    }
    return list;
}

static struct gv
fn_keys(struct run *r, struct gv *a, size_t n)
{
    struct gv list = gv_list_new(r, &gv_strings, 0);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < gv_len(a[i]); k++)
            gv_list_add(r, list.list, a[i].map->v[k].k);
    return list;
}

static struct gv
fn_values(struct run *r, struct gv *a, size_t n)
{
    struct gv list = gv_list_new(r, &gv_anys, 0);
    (void)n;
    for (size_t k = 0; k < gv_len(a[0]); k++)
        gv_list_add(r, list.list, a[0].map->v[k].v);
    return list;
}

static struct gv
fn_pick(struct run *r, struct gv *a, size_t n)
{
    struct gv map = gv_map_new(r, &gv_map_any);
    for (size_t i = 1; i < n; i++) {
        struct gv *v = gv_map_find(a[0].map, a[i]);
        if (v)
            gv_map_put(r, map.map, a[i], *v);
    }
    return map;
}

static struct gv
fn_omit(struct run *r, struct gv *a, size_t n)
{
    struct gv map = gv_map_copy(r, a[0]);
    for (size_t i = 1; i < n; i++)
        gv_map_drop(map.map, a[i]);
    return map;
}

static struct gv
merge_dicts(struct run *r, struct gv *a, size_t n, bool over)
{
    for (size_t i = 1; i < n; i++)
        collect_merge(r, &a[0], a[i], over);
    return gv_box(a[0], &gv_any);
}

static struct gv
fn_merge(struct run *r, struct gv *a, size_t n)
{
    return merge_dicts(r, a, n, false);
}

static struct gv
fn_merge_overwrite(struct run *r, struct gv *a, size_t n)
{
    return merge_dicts(r, a, n, true);
}

static struct gv
copy_deep(struct run *r, struct gv v)
{
    struct gv ret = v;
    run_enter(r);
    if (gv_kind(v) == GV_LIST && v.list) {
        ret = gv_list_copy(r, v);
        for (size_t i = 0; i < gv_len(ret); i++)
            ret.list->v[i] = copy_deep(r, ret.list->v[i]);
    } else if (gv_kind(v) == GV_MAP && v.map && !v.t->pointer) {
        ret = gv_map_copy(r, v);
        for (size_t i = 0; i < gv_len(ret); i++)
            ret.map->v[i].v = copy_deep(r, ret.map->v[i].v);
    }
    run_leave(r);
    return ret;
}

static struct gv
fn_deep_copy(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    if (gv_none(a[0]))
        run_fail(r, "reflect: call of reflect.Value.Type on zero Value");
    return gv_box(copy_deep(r, a[0]), &gv_any);
}

static struct gv
fn_deep_equal(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return GV_TRUE(gv_equal(r, a[0], a[1]));
}

static struct gv
assert_type(struct run *r, struct gv v, const struct gv_type *type)
{
    if (v.t != type)
        run_fail(r, "interface conversion: interface {} is %s, not %s",
                 gv_none(v) ? "nil" : gv_type_name(v), type->name);
    return v;
}

static struct gv
fn_dig(struct run *r, struct gv *a, size_t n)
{
    if (n < 3)
        run_fail(r, "dig needs at least three arguments");
    struct gv map = assert_type(r, a[n - 1], &gv_map_any);
    for (size_t i = 0; i + 2 < n; i++)
        assert_type(r, a[i], &gv_string);
    for (size_t i = 0;; i++) {
        struct gv *v = gv_map_find(map.map, a[i]);
        if (!v)
            return gv_box(gv_none(a[n - 2]) ? GV_NULL : a[n - 2], &gv_any);
        if (i + 3 == n)
            return gv_box(*v, &gv_any);
        map = assert_type(r, *v, &gv_map_any);
    }
}

const struct function functions_sprig_lists[] = {
    {"sprig_list", fn_list, "a.", FUNCTION_PLAIN},
    {"sprig_tuple", fn_list, "a.", FUNCTION_PLAIN},
    {"sprig_append", fn_push, "aa", FUNCTION_PLAIN},
    {"sprig_mustAppend", fn_push, "aa", FUNCTION_PLAIN},
    {"sprig_push", fn_push, "aa", FUNCTION_PLAIN},
    {"sprig_mustPush", fn_push, "aa", FUNCTION_PLAIN},
    {"sprig_prepend", fn_prepend, "aa", FUNCTION_PLAIN},
    {"sprig_mustPrepend", fn_prepend, "aa", FUNCTION_PLAIN},
    {"sprig_chunk", fn_chunk, "ia", FUNCTION_PLAIN},
    {"sprig_mustChunk", fn_chunk, "ia", FUNCTION_PLAIN},
    {"sprig_first", fn_first, "a", FUNCTION_PLAIN},
    {"sprig_mustFirst", fn_first, "a", FUNCTION_PLAIN},
    {"sprig_last", fn_last, "a", FUNCTION_PLAIN},
    {"sprig_mustLast", fn_last, "a", FUNCTION_PLAIN},
    {"sprig_rest", fn_rest, "a", FUNCTION_PLAIN},
    {"sprig_mustRest", fn_rest, "a", FUNCTION_PLAIN},
    {"sprig_initial", fn_initial, "a", FUNCTION_PLAIN},
    {"sprig_mustInitial", fn_initial, "a", FUNCTION_PLAIN},
    {"sprig_reverse", fn_reverse, "a", FUNCTION_PLAIN},
    {"sprig_mustReverse", fn_reverse, "a", FUNCTION_PLAIN},
    {"sprig_compact", fn_compact, "a", FUNCTION_PLAIN},
    {"sprig_mustCompact", fn_compact, "a", FUNCTION_PLAIN},
    {"sprig_uniq", fn_uniq, "a", FUNCTION_PLAIN},
    {"sprig_mustUniq", fn_uniq, "a", FUNCTION_PLAIN},
    {"sprig_without", fn_without, "aa.", FUNCTION_PLAIN},
    {"sprig_mustWithout", fn_without, "aa.", FUNCTION_PLAIN},
    {"sprig_has", fn_has, "aa", FUNCTION_PLAIN},
    {"sprig_mustHas", fn_has, "aa", FUNCTION_PLAIN},
    {"sprig_slice", fn_slice, "aa.", FUNCTION_PLAIN},
    {"sprig_mustSlice", fn_slice, "aa.", FUNCTION_PLAIN},
    {"sprig_concat", fn_concat, "a.", FUNCTION_PLAIN},
    {"sprig_sortAlpha", fn_sort_alpha, "a", FUNCTION_PLAIN},
    {"sprig_dict", fn_dict, "a.", FUNCTION_PLAIN},
    {"sprig_get", fn_get, "ms", FUNCTION_PLAIN},
    {"sprig_set", fn_set, "msa", FUNCTION_PLAIN},
    {"sprig_unset", fn_unset, "ms", FUNCTION_PLAIN},
    {"sprig_hasKey", fn_has_key, "ms", FUNCTION_PLAIN},
    {"sprig_pluck", fn_pluck, "sm.", FUNCTION_PLAIN},
    {"sprig_keys", fn_keys, "m.", FUNCTION_PLAIN},
    {"sprig_values", fn_values, "m", FUNCTION_PLAIN},
    {"sprig_pick", fn_pick, "ms.", FUNCTION_PLAIN},
    {"sprig_omit", fn_omit, "ms.", FUNCTION_PLAIN},
    {"sprig_merge", fn_merge, "mm.", FUNCTION_PLAIN},
    {"sprig_mustMerge", fn_merge, "mm.", FUNCTION_PLAIN},
    {"sprig_mergeOverwrite", fn_merge_overwrite, "mm.", FUNCTION_PLAIN},
    {"sprig_mustMergeOverwrite", fn_merge_overwrite, "mm.", FUNCTION_PLAIN},
    {"sprig_deepCopy", fn_deep_copy, "a", FUNCTION_PLAIN},
    {"sprig_mustDeepCopy", fn_deep_copy, "a", FUNCTION_PLAIN},
    {"sprig_deepEqual", fn_deep_equal, "aa", FUNCTION_PLAIN},
    {"sprig_dig", fn_dig, "a.", FUNCTION_PLAIN},
    {NULL, NULL, NULL, FUNCTION_PLAIN},
};
