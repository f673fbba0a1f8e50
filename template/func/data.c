/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of consul-template for data: JSON, YAML and TOML to values and back, maps into maps.
 */
#include <string.h>

#include "template/fmt.h"
#include "template/func/json.h"
#include "template/func/strs.h"
#include "template/func/toml.h"
#include "template/func/yaml.h"
#include "template/funcs.h"

/* --- JSON --- */

static struct gv
fn_parse_json(struct run *r, struct gv *a, size_t n)
{
    struct gv v;
    (void)n;
    if (a[0].n == 0)
        return gv_map_new(r, &gv_map_any);
    const char *bad = json_text_read(r, a[0], &v);
    if (bad)
        run_fail(r, "%s", bad);
    return gv_box(v, &gv_any);
}

static struct gv
write_json(struct run *r, struct gv v, const char *fn, struct json_style style)
{
    struct text t = {NULL, 0, 0};
    const char *bad = json_text_write(r, &t, v, &style);
    if (bad)
        run_fail(r, "%s: %s", fn, bad);
    return text_gv(&t);
}

static struct gv
fn_to_json(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return write_json(r, a[0], "toJSON", (struct json_style){true, NULL});
}

static struct gv
fn_to_json_pretty(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return write_json(r, a[0], "toJSONPretty", (struct json_style){true, "  "});
}

static struct gv
fn_to_unescaped_json(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return write_json(r, a[0], "toUnescapedJSON", (struct json_style){false, NULL});
}

static struct gv
fn_to_unescaped_json_pretty(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return write_json(r, a[0], "toUnescapedJSONPretty", (struct json_style){false, "  "});
}

/* --- YAML and TOML --- */

static struct gv
fn_parse_yaml(struct run *r, struct gv *a, size_t n)
{
    struct gv v;
    (void)n;
    if (a[0].n == 0)
        return gv_map_new(r, &gv_map_any);
    const char *bad = yaml_text_read(r, a[0], &v);
    if (bad)
        run_fail(r, "%s", bad);
    return gv_box(v, &gv_any);
}

static struct gv
fn_to_yaml(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    (void)n;
    yaml_text_write(r, &t, a[0]);
    return strs_trim_space(text_gv(&t));
}

static struct gv
fn_to_toml(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    (void)n;
    if (gv_none(a[0]))
        run_fail(r, "reflect: call of reflect.Value.Type on zero Value");
    const char *bad = toml_text_write(r, &t, a[0]);
    if (bad)
        run_fail(r, "toTOML: %s", bad);
    return strs_trim_space(text_gv(&t));
}

/* --- maps --- */

/* Puts v under "a/b/c", into maps that are made on the way. */
static void
explode_key(struct run *r, struct gv map, struct gv key, struct gv v)
{
    struct gv whole = key;
    for (;;) {
        size_t at = strs_index(key, GV_LIT("/"));
        if (at == SIZE_MAX)
            break;
        struct gv top = GV_TEXT(key.s, at);
        if (!gv_map_find(map.map, top))
            gv_map_put(r, map.map, top, gv_map_new(r, &gv_map_any));
        struct gv next = *gv_map_find(map.map, top);
        if (next.t != &gv_map_any) {
            struct text t = {NULL, 0, 0};
            fmt_printf(r, &t, GV_LIT("not a map: %q: %q already has value %q"),
                       (struct gv[]){whole, top, next}, 3);
            run_fail(r, "explodeMap: %s", text_str(r, &t));
        }
        map = next;
        whole = key;
        key = GV_TEXT(key.s + at + 1, key.n - at - 1);
    }
    if (key.n > 0)
        gv_map_put(r, map.map, key, v);
}

static struct gv
fn_explode_map(struct run *r, struct gv *a, size_t n)
{
    struct gv map = gv_map_new(r, &gv_map_any);
    (void)n;
    for (size_t i = 0; i < gv_len(a[0]); i++)
        explode_key(r, map, a[0].map->v[i].k, a[0].map->v[i].v);
    return map;
}

static struct gv
fn_merge_map(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    collect_merge(r, &a[0], a[1], false);
    return a[0];
}

static struct gv
fn_merge_map_over(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    collect_merge(r, &a[0], a[1], true);
    return a[0];
}

const struct function functions_data[] = {
    {"parseJSON", fn_parse_json, "s", FUNCTION_PLAIN},
    {"toJSON", fn_to_json, "a", FUNCTION_PLAIN},
    {"toJSONPretty", fn_to_json_pretty, "a", FUNCTION_PLAIN},
    {"toUnescapedJSON", fn_to_unescaped_json, "a", FUNCTION_PLAIN},
    {"toUnescapedJSONPretty", fn_to_unescaped_json_pretty, "a", FUNCTION_PLAIN},
    {"parseYAML", fn_parse_yaml, "s", FUNCTION_PLAIN},
    {"toYAML", fn_to_yaml, "a", FUNCTION_PLAIN},
    {"toTOML", fn_to_toml, "a", FUNCTION_PLAIN},
    {"explodeMap", fn_explode_map, "m", FUNCTION_PLAIN},
    {"mergeMap", fn_merge_map, "mmF.", FUNCTION_PLAIN},
    {"mergeMapWithOverride", fn_merge_map_over, "mm", FUNCTION_PLAIN},
    {NULL, NULL, NULL, FUNCTION_PLAIN},
};
