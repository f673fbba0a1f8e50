/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions whose values the caller of the template has: the environment, files, variables,
 * services, the time. A question has a name, as Nomad calls it; the text of its argument is taken
 * apart here. Behind them what belongs to one run: scratch, executeTemplate, and what is always
 * disabled.
 */
#include <string.h>

#include "common/mem.h"
#include "template/fmt.h"
#include "template/func/gotime.h"
#include "template/func/nomad.h"
#include "template/func/strs.h"
#include "template/funcs.h"
#include "template/limits.h"

/* --- questions --- */

static void
record_ask(struct run *r, struct template_asks *l, size_t *cap, const struct template_ask *a)
{
    run_step(r, l->n / 16);
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].kind == a->kind && strcmp(l->v[i].name, a->name) == 0)
            return;
    if (l->n >= TEMPLATE_ASKS_MAX)
        run_abort(r, -ERR_LIMIT, "template: asks for more than %d things", TEMPLATE_ASKS_MAX);
    if (l->n == *cap) {
        *cap = 2 * *cap + 8;
        l->v = (struct template_ask *)mem_realloc(r->res_ctx, l->v, sizeof(*l->v), *cap, "asks");
    }
    l->v[l->n] = (struct template_ask){.kind = a->kind,
                                       .key = mem_strdup(r->res_ctx, a->key),
                                       .ns = mem_strdup(r->res_ctx, a->ns),
                                       .region = mem_strdup(r->res_ctx, a->region),
                                       .tag = mem_strdup(r->res_ctx, a->tag),
                                       .count = a->count,
                                       .hash = mem_strdup(r->res_ctx, a->hash),
                                       .name = mem_strdup(r->res_ctx, a->name)};
    l->n++;
}

static void
record_missing(struct run *r, const struct template_ask *a)
{
    record_ask(r, &r->res->missing, &r->cap_missing, a);
}

/* NULL: missing, which is not recorded yet. */
static const struct value *
ask_caller(struct run *r, const struct template_ask *a)
{
    const struct value *v = NULL;
    struct err e = ERR_INIT;
    enum template_answer answer = TEMPLATE_MISSING;
    run_step(r, 16);
    if (a->kind != TEMPLATE_ENV)
        record_ask(r, &r->res->used, &r->cap_used, a);
    if (r->env && r->env->ask)
        answer = r->env->ask(r->env->data, a, &v, &e);
    if (answer == TEMPLATE_ERROR)
        run_fail(r, "%s: %s", a->name, e.text);
    return answer == TEMPLATE_VALUE ? v : NULL;
}

static struct template_ask
make_ask(enum template_kind kind)
{
    return (struct template_ask){kind, "", "", "", "", 0, "", ""};
}

/* --- the environment --- */

/* The value, and whether there is one. */
static bool
ask_env(struct run *r, struct gv name, struct gv *ret)
{
    struct template_ask a = make_ask(TEMPLATE_ENV);
    a.key = a.name = run_dup(r, name.s, name.n);
    const struct value *v = ask_caller(r, &a);
    *ret = v && v->kind == VALUE_STRING ? text_copy(r, v->str.s, v->str.n) : GV_LIT("");
    return v != NULL;
}

static struct gv
fn_env(struct run *r, struct gv *a, size_t n)
{
    struct gv v;
    (void)n;
    ask_env(r, a[0], &v);
    return v;
}

static struct gv
fn_env_or_default(struct run *r, struct gv *a, size_t n)
{
    struct gv v;
    (void)n;
    return ask_env(r, a[0], &v) ? v : a[1];
}

static struct gv
fn_must_env(struct run *r, struct gv *a, size_t n)
{
    struct gv v = fn_env(r, a, n);
    if (v.n == 0)
        run_fail(r, "required environment variable %.*s is empty", (int)a[0].n, a[0].s);
    return v;
}

static struct gv
fn_file(struct run *r, struct gv *a, size_t n)
{
    struct template_ask q = make_ask(TEMPLATE_FILE);
    struct text name = {NULL, 0, 0};
    (void)n;
    if (a[0].n == 0)
        return a[0];
    struct gv path = strs_trim_space(a[0]);
    if (path.n == 0)
        run_fail(r, "file: invalid format: \"\"");
    q.key = run_dup(r, path.s, path.n);
    text_printf(r, &name, "file(%s)", q.key);
    q.name = text_str(r, &name);
    const struct value *v = ask_caller(r, &q);
    if (v && v->kind == VALUE_STRING)
        return text_copy(r, v->str.s, v->str.n);
    record_missing(r, &q);
    return GV_LIT("");
}

/* --- names of variables and services --- */

static bool
only_word(struct gv s, const char *more)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.s[i];
        bool word = c < 0x80 && (rune_letter(c) || rune_digit(c) || c == '_' || c == '-');
        if (!word && (c == 0 || !strchr(more, c)))
            return false;
    }
    return s.n > 0;
}

static struct gv
text_from(struct gv s, size_t at)
{
    return GV_TEXT(s.s + at, s.n - at);
}

static const char *
text_dup(struct run *r, struct gv s)
{
    return run_dup(r, s.s, s.n);
}

static _Noreturn void
bad_format(struct run *r, const char *what, struct gv s)
{
    struct text t = {NULL, 0, 0};
    text_quote(r, &t, s.s, s.n);
    run_fail(r, "%s: invalid format: %s", what, text_str(r, &t));
}

static const char *
default_ns(const struct run *r)
{
    return r->env && r->env->ns && *r->env->ns ? r->env->ns : "default";
}

static const char *
default_region(const struct run *r)
{
    return r->env && r->env->region && *r->env->region ? r->env->region : "global";
}

/* "path[@ns][.region]": false if it is not that. */
static bool
parse_path(struct run *r, struct gv s, struct template_ask *q)
{
    size_t at = strs_index(s, GV_LIT("@"));
    struct gv path = GV_TEXT(s.s, at == SIZE_MAX ? s.n : at);
    if (path.n > 0 && path.s[0] == '/' && (path.n > 1 || q->kind == TEMPLATE_VARIABLES))
        path = text_from(path, 1);
    q->key = text_dup(r, path);
    if (at == SIZE_MAX)
        return path.n > 0 || q->kind == TEMPLATE_VARIABLES;
    struct gv ns = text_from(s, at + 1), region = GV_LIT("");
    at = strs_index(ns, GV_LIT("."));
    if (at != SIZE_MAX) {
        region = text_from(ns, at + 1);
        ns.n = at;
        if (!only_word(region, ""))
            return false;
    }
    q->ns = text_dup(r, ns);
    q->region = text_dup(r, region);
    bool star = q->kind == TEMPLATE_VARIABLES && ns.n == 1 && *ns.s == '*';
    return (star || only_word(ns, "")) && (path.n > 0 || q->kind == TEMPLATE_VARIABLES);
}

static void
name_path(struct run *r, struct template_ask *q, const char *what)
{
    struct text t = {NULL, 0, 0};
    text_printf(r, &t, "nomad.var.%s(%s@%s.%s)", what, q->key, *q->ns ? q->ns : default_ns(r),
                *q->region ? q->region : default_region(r));
    q->name = text_str(r, &t);
}

static void
parse_variable_path(struct run *r, struct gv s, struct template_ask *q)
{
    s = strs_trim(r, strs_trim_space(s), GV_LIT("/"), STRS_LEFT | STRS_RIGHT);
    if (s.n > 0 && !parse_path(r, s, q))
        bad_format(r, "nomad.var.get", s);
    name_path(r, q, q->kind == TEMPLATE_VARIABLE ? "block" : "get");
}

/* --- variables --- */

static struct gv
fn_nomad_var(struct run *r, struct gv *a, size_t n)
{
    struct template_ask q = make_ask(TEMPLATE_VARIABLE);
    (void)n;
    if (a[0].n == 0)
        return gv_zero(&nomad_items);
    parse_variable_path(r, a[0], &q);
    const struct value *v = ask_caller(r, &q);
    if (v)
        return nomad_make_items(r, v);
    record_missing(r, &q);
    return gv_zero(&nomad_items);
}

static struct gv
fn_nomad_var_exists(struct run *r, struct gv *a, size_t n)
{
    struct template_ask q = make_ask(TEMPLATE_VARIABLE_EXISTS);
    (void)n;
    if (a[0].n == 0)
        return GV_TRUE(false);
    parse_variable_path(r, a[0], &q);
    const struct value *v = ask_caller(r, &q);
    if (!v)
        record_missing(r, &q);
    return GV_TRUE(v && v->kind == VALUE_BOOL && v->b);
}

static struct gv
list_variables(struct run *r, struct gv *a, size_t n, bool safe)
{
    struct template_ask q = make_ask(TEMPLATE_VARIABLES);
    struct gv list = gv_list_new(r, &nomad_metas, 0);
    if (n > 1) {
        struct gv all = gv_list_new(r, &gv_strings, n);
        for (size_t i = 0; i < n; i++)
            gv_list_add(r, all.list, a[i]);
        run_fail(r,
                 "nomadVarList takes either a single \"prefix\" parameter or none for all "
                 "available variables; "
                 "got: %s",
                 fmt_words(r, all));
    }
    if (n == 1 && !parse_path(r, a[0], &q))
        bad_format(r, "nomad.var.list", a[0]);
    if (q.key[strspn(q.key, "/")] == 0)
        q.key = "";
    name_path(r, &q, "list");
    const struct value *v = ask_caller(r, &q);
    if (v)
        list = nomad_make_metas(r, v);
    if (!v || (safe && gv_len(list) == 0))
        record_missing(r, &q);
    return list;
}

static struct gv
fn_nomad_var_list(struct run *r, struct gv *a, size_t n)
{
    return list_variables(r, a, n, false);
}

static struct gv
fn_nomad_var_list_safe(struct run *r, struct gv *a, size_t n)
{
    return list_variables(r, a, n, true);
}

/* --- services --- */

/* "[tag.]name[@region]" */
static void
parse_service(struct run *r, struct gv s, struct template_ask *q)
{
    struct gv name = s, region = GV_LIT(""), tag = GV_LIT("");
    size_t at = strs_index(s, GV_LIT("@"));
    if (at != SIZE_MAX) {
        region = text_from(s, at + 1);
        name.n = at;
        if (!only_word(region, "."))
            bad_format(r, "nomad.service", s);
    }
    at = strs_last_index(name, GV_LIT("."));
    if (at != SIZE_MAX) {
        tag = GV_TEXT(name.s, at);
        name = text_from(name, at + 1);
        if (!only_word(tag, "=:."))
            bad_format(r, "nomad.service", s);
    }
    if (!only_word(name, ""))
        bad_format(r, "nomad.service", s);
    q->key = text_dup(r, name);
    q->tag = text_dup(r, tag);
    q->region = text_dup(r, region);
}

static void
name_service(struct run *r, struct template_ask *q)
{
    struct text t = {NULL, 0, 0};
    text_printf(r, &t, "nomad.service(%s%s%s%s%s", q->tag, *q->tag ? "." : "", q->key,
                *q->region ? "@" : "", q->region);
    if (q->count || *q->hash)
        text_printf(r, &t, ":%lld|%s", (long long)q->count, q->hash);
    text_putc(r, &t, ')');
    q->name = text_str(r, &t);
}

static struct gv
fn_nomad_service(struct run *r, struct gv *a, size_t n)
{
    struct template_ask q = make_ask(TEMPLATE_SERVICE);
    if (n != 1 && n != 3)
        run_fail(r, "expected arguments <service> or <count> <key> <service>");
    if (n == 3 && a[0].t != &gv_int)
        run_fail(r, "expected integer for <count> argument");
    if (n == 3 && a[1].t != &gv_string)
        run_fail(r, "expected string for <key> argument");
    if (a[n - 1].t != &gv_string)
        run_fail(r, "expected string for <service> argument");
    parse_service(r, a[n - 1], &q);
    if (n == 3) {
        q.count = a[0].i;
        q.hash = text_dup(r, a[1]);
    }
    name_service(r, &q);
    const struct value *v = ask_caller(r, &q);
    if (v) {
        struct gv all = nomad_make_services(r, v, q.tag);
        if (n == 3)
            nomad_choose(r, all, q.count, q.hash);
        return all;
    }
    record_missing(r, &q);
    return gv_zero(&nomad_services);
}

static struct gv
fn_nomad_services(struct run *r, struct gv *a, size_t n)
{
    struct template_ask q = make_ask(TEMPLATE_SERVICES);
    struct text s = {NULL, 0, 0}, name = {NULL, 0, 0};
    for (size_t i = 0; i < n; i++)
        text_put(r, &s, a[i].s, a[i].n);
    struct gv region = text_gv(&s);
    if (region.n > 0 && (region.s[0] != '@' || !only_word(text_from(region, 1), ".")))
        bad_format(r, "nomad.services", region);
    q.region = region.n ? text_dup(r, text_from(region, 1)) : "";
    text_printf(r, &name, region.n ? "nomad.services(@%s)" : "nomad.services", q.region);
    q.name = text_str(r, &name);
    const struct value *v = ask_caller(r, &q);
    if (v)
        return nomad_make_snippets(r, v);
    record_missing(r, &q);
    return gv_zero(&nomad_snippets);
}

/* Adds a thing to the list under a key of a map of lists. */
static void
group_add(struct run *r, struct gv map, struct gv key, struct gv v)
{
    struct gv *list = gv_map_find(map.map, key), fresh;
    if (!list) {
        fresh = gv_list_new(r, &gv_anys, 0);
        gv_map_put(r, map.map, key, fresh);
        list = &fresh;
    }
    gv_list_add(r, list->list, v);
}

static struct gv
fn_by_tag(struct run *r, struct gv *a, size_t n)
{
    struct gv map = gv_map_new(r, &gv_map_anys);
    (void)n;
    if (gv_none(a[0]))
        return map;
    if (a[0].t != &nomad_services && a[0].t != &nomad_snippets)
        run_fail(r, "byTag: wrong argument type %s", gv_type_name(a[0]));
    for (size_t i = 0; i < gv_len(a[0]); i++) {
        struct gv tags = nomad_tags(a[0].list->v[i]);
        for (size_t k = 0; k < gv_len(tags); k++)
            group_add(r, map, tags.list->v[k], a[0].list->v[i]);
    }
    return map;
}

static struct gv
fn_by_port(struct run *r, struct gv *a, size_t n)
{
    struct gv map = gv_map_new(r, &gv_ports);
    (void)n;
    if (gv_none(a[0]))
        return map;
    if (a[0].t != &nomad_services)
        run_fail(r, "byPort: wrong argument type %s", gv_type_name(a[0]));
    for (size_t i = 0; i < gv_len(a[0]); i++)
        group_add(r, map, nomad_port(a[0].list->v[i]), a[0].list->v[i]);
    return map;
}

/* --- the time --- */

static struct gv
fn_timestamp(struct run *r, struct gv *a, size_t n)
{
    int64_t now = r->env ? r->env->now_ns : 0;
    struct text t = {NULL, 0, 0};
    if (n > 1)
        run_fail(r, "timestamp: wrong number of arguments, expected 0 or 1, but got %zu", n);
    if (n == 0)
        return gotime_format(r, now, GV_LIT("2006-01-02T15:04:05Z07:00"));
    if (a[0].n != 4 || memcmp(a[0].s, "unix", 4) != 0)
        return gotime_format(r, now, a[0]);
    text_printf(r, &t, "%lld", (long long)(now / 1000000000));
    return text_gv(&t);
}

/* --- scratch --- */

static struct gv_map *
scratch_map(struct run *r)
{
    if (!r->scratch.map)
        r->scratch = gv_map_new(r, &gv_map_any);
    return r->scratch.map;
}

static struct gv
scratch_key(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return GV_TRUE(gv_map_find(scratch_map(r), a[1]) != NULL);
}

static struct gv
scratch_get(struct run *r, struct gv *a, size_t n)
{
    struct gv *v = gv_map_find(scratch_map(r), a[1]);
    (void)n;
    return v ? *v : GV_NULL;
}

static struct gv
scratch_put(struct run *r, struct gv key, struct gv v, bool over)
{
    if (over || !gv_map_find(scratch_map(r), key))
        gv_map_put(r, scratch_map(r), key, v);
    return GV_LIT("");
}

static struct gv
scratch_set(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return scratch_put(r, a[1], a[2], true);
}

static struct gv
scratch_set_x(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return scratch_put(r, a[1], a[2], false);
}

static struct gv
scratch_put_in(struct run *r, struct gv *a, bool over)
{
    if (!gv_map_find(scratch_map(r), a[1]))
        gv_map_put(r, scratch_map(r), a[1], gv_map_new(r, &gv_map_any));
    struct gv map = *gv_map_find(scratch_map(r), a[1]);
    if (map.t != &gv_map_any) {
        struct text t = {NULL, 0, 0};
        text_quote(r, &t, a[1].s, a[1].n);
        run_fail(r, "%s is not a map", text_str(r, &t));
    }
    if (over || !gv_map_find(map.map, a[2]))
        gv_map_put(r, map.map, a[2], a[3]);
    return GV_LIT("");
}

static struct gv
scratch_map_set(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return scratch_put_in(r, a, true);
}

static struct gv
scratch_map_set_x(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return scratch_put_in(r, a, false);
}

static struct gv
scratch_map_values(struct run *r, struct gv *a, size_t n)
{
    struct gv *v = gv_map_find(scratch_map(r), a[1]);
    (void)n;
    if (!v || v->t != &gv_map_any)
        return gv_zero(&gv_anys);
    struct gv list = gv_list_new(r, &gv_anys, gv_len(*v));
    for (size_t i = 0; i < gv_len(*v); i++)
        gv_list_add(r, list.list, v->map->v[i].v);
    return list;
}

static const struct gv_method scratch_methods[] = {
    {"Key", scratch_key, "s", &gv_bool},
    {"Get", scratch_get, "s", &gv_any},
    {"Set", scratch_set, "sa", &gv_string},
    {"SetX", scratch_set_x, "sa", &gv_string},
    {"MapSet", scratch_map_set, "ssa", &gv_string},
    {"MapSetX", scratch_map_set_x, "ssa", &gv_string},
    {"MapValues", scratch_map_values, "s", &gv_anys},
};
static const char *const no_fields[] = {NULL};
static const struct gv_class scratch_class = {no_fields, scratch_methods,
                                              ARRAY_LEN(scratch_methods), false};
static const struct gv_type scratch_type = {GV_STRUCT,      0,   "*template.Scratch", NULL, NULL,
                                            &scratch_class, true};

static struct gv
fn_scratch(struct run *r, struct gv *a, size_t n)
{
    (void)a, (void)n;
    return (struct gv){.t = &scratch_type, .obj = run_alloc(r, sizeof(struct gv_struct))};
}

/* --- templates, and what is disabled --- */

static struct gv
fn_execute_template(struct run *r, struct gv *a, size_t n)
{
    if (n > 2)
        run_fail(r, "executeTemplate: wrong number of arguments, expected 1 or 2, but got %zu", n);
    struct gv data = n == 2 && !gv_none(a[1]) ? a[1] : GV_NONE;
    return r->carry_out(r, a[0].s, a[0].n, data);
}

static struct gv
fn_disabled(struct run *r, struct gv *a, size_t n)
{
    (void)a, (void)n;
    run_fail(r, "function is disabled");
}

const struct function functions_ask[] = {
    {"env", fn_env, "s", FUNCTION_PLAIN},
    {"envOrDefault", fn_env_or_default, "ss", FUNCTION_PLAIN},
    {"mustEnv", fn_must_env, "s", FUNCTION_PLAIN},
    {"file", fn_file, "s", FUNCTION_PLAIN},
    {"nomadVar", fn_nomad_var, "s", FUNCTION_PLAIN},
    {"nomadVarExists", fn_nomad_var_exists, "s", FUNCTION_PLAIN},
    {"nomadVarList", fn_nomad_var_list, "s.", FUNCTION_PLAIN},
    {"nomadVarListSafe", fn_nomad_var_list_safe, "s.", FUNCTION_PLAIN},
    {"nomadService", fn_nomad_service, "a.", FUNCTION_PLAIN},
    {"nomadServices", fn_nomad_services, "s.", FUNCTION_PLAIN},
    {"byTag", fn_by_tag, "a", FUNCTION_PLAIN},
    {"byPort", fn_by_port, "a", FUNCTION_PLAIN},
    {"timestamp", fn_timestamp, "s.", FUNCTION_PLAIN},
    {"scratch", fn_scratch, "", FUNCTION_PLAIN},
    {"executeTemplate", fn_execute_template, "sa.", FUNCTION_PLAIN},
    {"plugin", fn_disabled, "s.", FUNCTION_PLAIN},
    {"writeToFile", fn_disabled, "s.", FUNCTION_PLAIN},
    {NULL, NULL, NULL, FUNCTION_PLAIN},
};

const struct function function_disabled = {"", fn_disabled, "s.", FUNCTION_PLAIN};
