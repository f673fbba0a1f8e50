/* SPDX-License-Identifier: Apache-2.0
 *
 * Filter expressions over a job and a node.
 */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/filter/filter.h"
#include "common/mem.h"
#include "tests/lib/test.h"

static void *ctx;
static struct job *job;
static struct node *node;

static void
setup(void)
{
    ctx = mem_ctx("filter");
    job = mem_new(ctx, struct job);
    job->id = "web";
    job->status = "running";
    job->priority = (struct opt_i64){true, 50};
    job->stop = false;
    job->create_index = 7;
    str_map_set(ctx, &job->meta, "team", "a");
    str_map_set(ctx, &job->meta, "the key", "b");
    list_add(ctx, job->datacenters, "dc1");
    list_add(ctx, job->datacenters, "dc2");
    job->periodic = mem_new(ctx, struct periodic_config);
    job->periodic->spec = "* * * * *";
    for (int i = 0; i < 2; i++) {
        struct task_group *tg = mem_new(ctx, struct task_group);
        tg->name = i == 0 ? "web" : "db";
        tg->count = (struct opt_i64){true, i + 1};
        str_map_set(ctx, &tg->meta, "tier", i == 0 ? "front" : "back");
        list_add(ctx, job->task_groups, tg);
    }
    node = mem_new(ctx, struct node);
    node->name = "n1";
    str_map_set(ctx, &node->attributes, "kernel.name", "linux");
    struct driver_info *d = mem_new(ctx, struct driver_info);
    d->detected = true;
    map_put(ctx, node->drivers, "exec")->v = d;
}

static void
teardown(void)
{
    talloc_free(ctx);
}

static const struct {
    const char *text;
    bool match;
} on_job[] = {
    {"Status == running", true},
    {"Status == \"running\"", true},
    {"Status == `running`", true},
    {"Status != \"running\"", false},
    {"Status == dead or ID == web", true},
    {"Status == dead or ID == web and Priority == 51", false},
    {"not Status == dead", true},
    {"not (Status == running and ID == web)", false},
    {"Priority == 50", true},
    {"Priority != 50", false},
    {"CreateIndex == 7", true},
    {"Stop == false", true},
    {"Stop != false", false},
    {"Meta.team == a", true},
    {"Meta.team != a", false},
    {"Meta[\"the key\"] == \"b\"", true},
    {"Meta.absent == a", false},
    {"Meta.absent != a", true},
    {"Meta contains team", true},
    {"team in Meta", true},
    {"\"dc2\" in Datacenters", true},
    {"dc3 in Datacenters", false},
    {"dc3 not in Datacenters", true},
    {"Datacenters contains dc1", true},
    {"Datacenters not contains dc1", false},
    {"ID contains \"e\"", true},
    {"ID matches \"^w.b$\"", true},
    {"ID not matches \"^w.b$\"", false},
    {"ID matches \"(a+)+$\"", false},
    {"Meta is empty", false},
    {"Meta is not empty", true},
    {"Constraints is empty", true},
    {"ParentID is empty", true},
    {"  (((ID==web)))  ", true},
    {"ID == x or ID == y or ID == z or ID == web", true},
    {"Periodic is not nil", true},
    {"Periodic is nil", false},
    {"ParameterizedJob is nil", true},
    {"ParentID == \"\" and ParameterizedJob is not nil", false},
    {"ParameterizedJob.Payload == \"\"", false},
    {"Periodic.Spec contains \"*\"", true},
    {"Constraints is nil", true},
    {"TaskGroups is not empty", true},
    {"TaskGroups is not nil", true},
    {"Version == 0", true},
    {"TaskGroups.0.Name == web", true},
    {"TaskGroups[\"1\"].Name == db", true},
    {"TaskGroups.2.Name == db", false},
    {"TaskGroups.1.Meta.tier == back", true},
    {"any Datacenters as d { d == \"dc1\" }", true},
    {"any Datacenters as d { d == \"dc3\" }", false},
    {"all Datacenters as d { d != \"x\" }", true},
    {"all Datacenters as d { d matches \"1$\" }", false},
    {"any Datacenters as i, d { i == 1 and d == dc2 }", true},
    {"any Datacenters as i, _ { i == 2 }", false},
    {"any Meta as k { k == team }", true},
    {"any Meta as k, v { k == team and v == b }", false},
    {"any Meta as _, v { v == b }", true},
    {"all Constraints as c { c.Operand == x }", true},
    {"any Constraints as c { c.Operand == x }", false},
    {"any TaskGroups as g { g.Count == 2 and any g.Meta as k, v { v == back and k == tier } }", true},
    {"any TaskGroups as g { any Datacenters as g { g == dc2 } and g.Name == db }", true},
    {"not any TaskGroups as g { g.Name == cache }", true},
    {"any TaskGroups as g { g.Tasks is not empty } or ID == web", true},
};

START_TEST(matches)
{
    for (size_t i = 0; i < ARRAY_LEN(on_job); i++) {
        struct err e = ERR_INIT;
        struct filter *f = filter_compile(ctx, &type_job, on_job[i].text, &e);
        ck_assert_msg(f != NULL, "%s: %s", on_job[i].text, e.text);
        ck_assert_msg(filter_match(f, job) == on_job[i].match, "%s", on_job[i].text);
    }
}
END_TEST

/* A selector in double quotes that begins with a slash is a JSON pointer (RFC 6901). */
START_TEST(json_pointers_select)
{
    static const struct {
        const char *text;
        bool match;
    } rows[] = {
        {"\"/Meta/a.b\" == \"x\"", true},
        {"\"/Meta/a.b\" != x", false},
        {"\"/Meta/c~1d~01\" == y", true},
        {"\"/Meta/absent\" == x", false},
        {"\"/Meta\" is not empty and not \"/Status\" is empty", true},
        {"\"/Status\" not matches \"^r\"", false},
        {"\"/TaskGroups/1/Name\" == db", true},
        {"dc2 in \"/Datacenters\"", true},
        {"\"dc3\" not in \"/Datacenters\"", true},
        {"any \"/Datacenters\" as d { \"/d\" == dc2 }", true},
        {"any TaskGroups as g { \"/g/Meta/tier\" == back }", true},
        {"\"/x\" in Meta", false}, /* a value before "in" */
        {"ID == \"/web\"", false},
    };
    static const char *const bad[] = {
        "`/Meta/a.b` == x", "\"Meta/a.b\" == x", "\"/\" == x",       "\"/Nope\" == x",
        "\"//Meta\" == x", "\"/Meta/a b\" == x", "\"/Meta/a.b\"", "\"/Meta/a.b\".c == x",
        "x in `/Meta`",    "\"/TaskGroups/x/Name\" == y",
    };
    str_map_set(ctx, &job->meta, "a.b", "x");
    str_map_set(ctx, &job->meta, "c/d~1", "y");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = ERR_INIT;
        struct filter *f = filter_compile(ctx, &type_job, rows[i].text, &e);
        ck_assert_msg(f != NULL, "%s: %s", rows[i].text, e.text);
        ck_assert_msg(filter_match(f, job) == rows[i].match, "%s", rows[i].text);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = ERR_INIT;
        ck_assert_msg(filter_compile(ctx, &type_job, bad[i], &e) == NULL && e.text[0], "%s", bad[i]);
    }
}
END_TEST

START_TEST(nested_selectors)
{
    struct err e = ERR_INIT;
    struct filter *f =
        filter_compile(ctx, &type_node, "Attributes[\"kernel.name\"] == linux and Name == n1", &e);
    ck_assert_msg(f != NULL, "%s", e.text);
    ck_assert(filter_match(f, node));
    f = filter_compile(ctx, &type_node, "Drivers.exec.Detected == true", &e);
    ck_assert_msg(f != NULL, "%s", e.text);
    ck_assert(filter_match(f, node));
    f = filter_compile(ctx, &type_node, "Drivers.java.Detected == true", &e);
    ck_assert(!filter_match(f, node));
}
END_TEST

static const char *const malformed[] = {
    "",
    "ID",
    "ID ==",
    "== a",
    "ID = a",
    "ID == \"a",
    "(ID == a",
    "ID == a)",
    "ID == a ID == b",
    "Nope == a",
    "ID.x == a",
    "Meta.a.b == c",
    "Priority == x",
    "Stop == maybe",
    "Datacenters == dc1",
    "Priority contains 5",
    "ID matches \"(\"",
    "ID matches \"(?=a)\"", /* not in RE2 */
    "ID matches \"(?<!a)b\"",
    "ID matches \"a++\"",
    "ID is full",
    "ID and Status",
    "not",
    "SecretID == x",
    "ID == a or",
    "((((((((((((((((((((((((((((((((((((((((ID == a))))))))))))))))))))))))))))))))))))))))",
    "ID @ a",
    "Meta[\"a\" == b",
    "ID is nil",
    "Version is nil",
    "Version is empty",
    "Periodic is empty",
    "status == running",
    "TaskGroups.x.Name == web",
    "TaskGroups.Name == web",
    "ID.x == web",
    "any ID as x { x == y }",
    "any Datacenters as x { y == a }",
    "any Datacenters as x { x.y == a }",
    "any Datacenters x { x == a }",
    "any Datacenters as { x == a }",
    "any Datacenters as x x == a",
    "any Datacenters as x { x == a",
    "any Datacenters as x, y, z { x == a }",
    "any Datacenters as x { x == a } and x == b",
    "any Datacenters as i, d { i == x }",
};

START_TEST(refuses_malformed_expressions)
{
    for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
        struct err e = ERR_INIT;
        const struct type *t = strstr(malformed[i], "SecretID") ? &type_node : &type_job;
        ck_assert_msg(filter_compile(ctx, t, malformed[i], &e) == NULL, "%s", malformed[i]);
        ck_assert(e.text[0]);
    }
    char *big = malloc(10000);
    struct err e = ERR_INIT;
    memset(big, 'a', 9999);
    big[9999] = 0;
    ck_assert_ptr_null(filter_compile(ctx, &type_job, big, &e));
    free(big);
}
END_TEST

/* Nothing that a filter says takes long: it does not match then. */
START_TEST(long_work_is_bounded)
{
    static const char text[] = "all Datacenters as a { all Datacenters as b { all Datacenters as c { "
                               "all Datacenters as d { all Datacenters as e { e != x } } } } }";
    struct err e = ERR_INIT;
    struct filter *f = filter_compile(ctx, &type_job, text, &e);
    ck_assert_msg(f != NULL, "%s", e.text);
    ck_assert(filter_match(f, job));
    for (int i = 0; i < 1000; i++)
        list_add(ctx, job->datacenters, "dc");
    ck_assert(!filter_match(f, job));
}
END_TEST

TEST_SUITE_FIXTURE("filter", 20, setup, teardown, matches, json_pointers_select, nested_selectors,
                   refuses_malformed_expressions, long_work_is_bounded)
