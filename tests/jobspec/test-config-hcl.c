/* SPDX-License-Identifier: Apache-2.0
 *
 * The HCL1 habits and the JSON form of agent configuration.
 */
#include <string.h>

#include "common/str.h"
#include "tests/jobspec/help.h"

static struct agent_config *
load(const void *ctx, const char *text, bool json, const char **ret_text)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_body *body;
    void *obj = NULL;
    unsigned flags = HCL_LITERAL | (json ? HCL_JSON : HCL_LOOSE);
    int r = hcl_parse(ctx, "c", SLICE(text, strlen(text)), flags, &body, &d);
    if (r == 0)
        r = hcl_decode(ctx, body, &type_agent_config, flags, &obj, &d);
    const char *t = hcl_diags_text(ctx, &d, true);
    if (ret_text != NULL)
        *ret_text = mem_strndup(ctx, t, strcspn(t, "\n"));
    else
        ck_assert_msg(r == 0, "%s", t);
    return r == 0 ? obj : NULL;
}

static void
check(const void *ctx, const struct agent_config *c)
{
    ck_assert_str_eq(c->region, "eu");
    ck_assert_int_eq(c->ports->http, 1234);
    ck_assert(c->server->enabled);
    ck_assert_int_eq(c->server->heartbeat_grace, INT64_C(3600000000000));
    ck_assert_uint_eq(c->client->servers.n, 2);
    ck_assert_str_eq(str_map_get(&c->client->options, "driver.raw_exec.enable"), "1");
    ck_assert_str_eq(str_map_get(&c->client->meta, "rack"), "r1");
    ck_assert_uint_eq(c->plugins.n, 2);
    ck_assert_str_eq(c->plugins.v[0]->name, "raw_exec");
    ck_assert_str_eq(c->plugins.v[1]->name, "exec");
    auto_buf struct buf b = BUF_INIT(1 << 16);
    json_encode_value(&b, c->plugins.v[0]->config, 0);
    ck_assert_str_eq(buf_str(&b), "{\"enabled\":true}");
    (void)ctx;
}

static const char *const same[] = {
    /* plain */
    "region = \"eu\"\nports { http = 1234 }\n"
    "server {\n enabled = true\n heartbeat_grace = \"1h\"\n}\n"
    "client {\n servers = [\"a\", \"b\"]\n options { \"driver.raw_exec.enable\" = \"1\" }\n"
    " meta { rack = \"r1\" }\n"
    "}\n"
    "plugin \"raw_exec\" {\n config { enabled = true }\n}\n"
    "plugin \"exec\" { config { a = 1 } }\n",
    /* every habit */
    "\"region\" = \"eu\", ports = { \"http\" = \"1234\" },\n"
    "server = { enabled = \"true\", heartbeat_grace = 3600000000000 }\n"
    "client = {\n servers = [\"a\", \"b\"], options = { \"driver.raw_exec.enable\" = 1 },\n"
    " meta { \"rack\" = \"r1\" }\n"
    "}\n"
    "plugin = [ { raw_exec = { config = { enabled = true } } } ]\n"
    "\"plugin\" { exec { config { \"a\" = 1 } } }\n",
    /* one block in pieces */
    "region = \"eu\"\n ports { http = 1 } ports { http = 1234 }\n server { enabled = true }\n"
    "server { heartbeat_grace = \"60m\" }\n client { servers = [\"a\", \"b\"] }\n"
    "client { options { driver.raw_exec.enable = \"1\" } }",
};

START_TEST(habits)
{
    for (size_t i = 0; i < 2; i++) {
        auto_mem void *ctx = mem_ctx("row");
        check(ctx, load(ctx, same[i], false, NULL));
    }
    auto_mem void *ctx = mem_ctx("test");
    const char *text;
    /* a dot is no part of a bare name */
    ck_assert_ptr_null(load(ctx, same[2], false, &text));
    ck_assert_msg(str_prefix(text, "c:6,26-27: Invalid argument or block"), "%s", text);
    struct agent_config *c =
        load(ctx, "ports { http = 1 } ports { rpc = 2 }\nserver {} server { enabled = true }",
             false, NULL);
    ck_assert_int_eq(c->ports->http, 1);
    ck_assert_int_eq(c->ports->rpc, 2);
    ck_assert(c->server->enabled);
}
END_TEST

START_TEST(json_form)
{
    static const char text[] = "{\"region\": \"eu\", \"ports\": {\"http\": 1234},\n"
                               " \"server\": [{\"enabled\": true, \"heartbeat_grace\": \"1h\"}],\n"
                               " \"client\": {\"servers\": [\"a\", \"b\"], \"options\": "
                               "{\"driver.raw_exec.enable\": \"1\"},\n"
                               "  \"meta\": [{\"rack\": \"r1\"}]},\n"
                               " \"plugin\": [{\"raw_exec\": {\"config\": {\"enabled\": true}}},\n"
                               "              {\"exec\": [{\"config\": [{\"a\": 1}]}]}],\n"
                               " \"tls\": null}";
    auto_mem void *ctx = mem_ctx("test");
    check(ctx, load(ctx, text, true, NULL));
}
END_TEST

static const struct {
    const char *text;
    bool json;
    const char *want;
} errors[] = {
    {"regoin = \"x\"", false,
     "c:1,1-7: Unsupported argument; An argument named \"regoin\" is not "
     "expected here. Did you mean \"region\"?"},
    {"clent {}", false,
     "c:1,1-6: Unsupported block type; Blocks of type \"clent\" are not expected "
     "here. Did you mean \"client\"?"},
    {"consul { address = \"10.0.0.1:8500\" }", false, "c:1,10-17: Not supported yet"},
    {"ports { http = \"x\" }", false, "c:1,16-19: Incorrect value type"},
    {"client { host_network \"x\" { cidr = \"x\" } }", false, "c:1,10-26: Not supported yet"},
    {"server { upgrade_version = \"x\" }", false, "c:1,10-25: Not supported yet"},
    {"region = upper(\"x\")", false, "c:1,10-15: Function calls not allowed"},
    {"region = eu", false, "c:1,10-12: Unquoted text"},
    {"client { options = [1] }", false, "c:1,20-23: Incorrect value type"},
    {"ports = 5", false, "c:1,9-10: Incorrect value type; \"ports\" is a block"},
    {"server { heartbeat_grace = \"soon\" }", false, "c:1,28-34: Invalid duration"},
    {"{\"regoin\": 1}", true,
     "c:1,2-10: Unsupported argument; An argument named \"regoin\" is not "
     "expected here. Did you mean \"region\"?"},
    {"{\"region\": {}}", true, "c:1,12-14: Incorrect value type"},
    {"{\"region\": \"x\",}", true, "c:1,16-17: Invalid JSON"},
    {"{\"region\": 'x'}", true, "c:1,12-13: Invalid JSON"},
    {"{\"region\": \"x\"} x", true, "c:1,17-18: Invalid JSON; Nothing may follow"},
    {"[]", true, "c:1,1-2: Invalid JSON; The file must hold one object"},
    {"", true, "c:1,1-2: Invalid JSON"},
    {"{\"a\": 1e99999}", true, "c:1,7-8: Invalid JSON"},
    {"{\"a\": \"\\ud800\"}", true, "c:1,"},
    {"{\"a\": \"\t\"}", true, "c:1,"},
};

START_TEST(refusals)
{
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        auto_mem void *ctx = mem_ctx("row");
        const char *text;
        ck_assert_msg(load(ctx, errors[i].text, errors[i].json, &text) == NULL, "row %zu", i);
        ck_assert_msg(str_prefix(text, errors[i].want), "row %zu: %s", i, text);
    }
}
END_TEST

/* An option that stays at its default is no claim. */
START_TEST(defaults_pass)
{
    auto_mem void *ctx = mem_ctx("test");
    load(
        ctx,
        "tls { http = false\n tls_min_version = \"tls12\" }\nacl { enabled = false }\n"
        "consul { address = \"127.0.0.1:8500\"\n auto_advertise = true }\n"
        "vault { enabled = false }\nlog_include_location = false\nrpc { dial_timeout = \"10s\" }\n",
        false, NULL);
}
END_TEST

/* No evaluation: what looks like a template is text. */
START_TEST(literal_text)
{
    auto_mem void *ctx = mem_ctx("test");
    struct agent_config *c = load(ctx,
                                  "region = \"${var.x} $${y} %{z\"\n"
                                  "datacenter = <<EOF\n${a\nEOF\n",
                                  false, NULL);
    ck_assert_str_eq(c->region, "${var.x} $${y} %{z");
    ck_assert_str_eq(c->datacenter, "${a\n");
}
END_TEST

TEST_SUITE("configuration", habits, json_form, refusals, defaults_pass, literal_text)
