/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc checks: what the node knows of the checks of an allocation's services.
 */
#include "cli/alloc/alloc.h"
#include "cli/api.h"
#include "cli/format.h"
#include "common/duration.h"

static const char *
text_of(struct cmd *c, const struct value *check, const char *key)
{
    const struct value *v = value_get(check, key);
    if (v && v->kind == VALUE_STRING)
        return v->str.s;
    return v && v->kind == VALUE_INT ? fmt_i64(c, v->i) : "";
}

static void
print_check(struct cmd *c, const struct value *check)
{
    static const char *const keys[] = {"ID", "Check", "Group", "Task", "Service", "Status"};
    static const char *const names[] = {"ID", "Name", "Group", "Task", "Service", "Status"};
    const struct value *code = value_get(check, "StatusCode"), *at = value_get(check, "Timestamp");
    struct table t;
    table_init(&t, c, 3);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *text = text_of(c, check, keys[i]);
        table_row(&t, names[i], "=", str_eq(keys[i], "Task") ? str_or(text, "(group)") : text);
    }
    if (code && code->kind == VALUE_INT && code->i > 0)
        table_row(&t, "StatusCode", "=", fmt_i64(c, code->i));
    table_row(&t, "Mode", "=", text_of(c, check, "Mode"));
    int64_t s = at && at->kind == VALUE_INT ? at->i : 0;
    bool known = s > 0 && s < INT64_MAX / NS_PER_S;
    table_row(&t, "Timestamp", "=", known ? fmt_time(c, s * NS_PER_S) : "N/A");
    table_row(&t, "Output", "=", text_of(c, check, "Output"));
    table_print(&t);
    cmd_say(c, "%s", "");
}

int
cmd_alloc_checks(struct cmd *c)
{
    bool verbose = false;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"verbose", OPT_BOOL, &verbose, NULL, "Taken and without effect, as Nomad's."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const struct allocation *a = alloc_find(c, c->args[0]);
    struct value *checks = NULL;
    struct err e = ERR_INIT;
    if (!a)
        return 1;
    if (api_get_value(c, api_target(c, "/v1/client/allocation/%/checks", a->id, NULL), &checks, &e))
        return cmd_fail(c, "Error querying allocation checks: %s", e.text);
    if (output_value(c, &out, checks, &rc))
        return rc;
    size_t n = checks->kind == VALUE_MAP ? checks->map.n : 0;
    cmd_say(c, "Status of %zu Nomad Service Checks\n", n);
    for (size_t i = 0; i < n; i++)
        print_check(c, checks->map.v[i].v);
    return 0;
}
