/* SPDX-License-Identifier: Apache-2.0
 *
 * The page's files over HTTP: addresses, types, compression, tags, the policy of content.
 */
#include <stdio.h>
#include <string.h>

#include "agent/api/api.h"
#include "agent/config/config.h"
#include "agent/web/web.h"
#include "tests/agent/fakes.h"
#include "tests/lib/test.h"

static struct loop *loop;
static struct http_server *http;
static struct http_client *client;
static struct api api;

static void
setup(void)
{
    struct err e = ERR_INIT;
    char addr[64];

    loop = loop_new();
    api = (struct api){.loop = loop, .region = "global", .name = "n", .version = "0.1.0"};
    struct http_server_config cfg = {.handler = api_handle, .arg = &api, .body_max = api_body_max};
    http = api.http = http_server_new(loop, &cfg);
    ck_assert_int_eq(http_server_listen(http, "127.0.0.1", 0, &e), 0);
    snprintf(addr, sizeof(addr), "127.0.0.1:%u", http_server_port(http));
    client = http_client_new(&(struct dialer){.loop = loop}, addr, &e);
}

static void
teardown(void)
{
    http_client_close(client);
    http_server_close(http);
    loop_free(loop);
}

static struct answer {
    bool done;
    int status;
    size_t len;
    char body[512], type[64], etag[64], packed[16], policy[512], location[64];
} got;

static void
keep(char *dst, size_t size, const struct http_resp *r, const char *name)
{
    const char *v = http_resp_header(r, name);
    snprintf(dst, size, "%s", v ? v : "");
}

static void
answered(void *arg, const struct err *e, const struct http_resp *r)
{
    struct answer *a = arg;

    a->done = true;
    ck_assert_msg(e == NULL, "%s", e ? e->text : "");
    a->status = r->status;
    a->len = r->body_len;
    snprintf(a->body, sizeof(a->body), "%s", r->body);
    keep(a->type, sizeof(a->type), r, "content-type");
    keep(a->etag, sizeof(a->etag), r, "etag");
    keep(a->packed, sizeof(a->packed), r, "content-encoding");
    keep(a->policy, sizeof(a->policy), r, "content-security-policy");
    keep(a->location, sizeof(a->location), r, "location");
}

static int
ask(const char *method, const char *target, const char *name, const char *value)
{
    struct http_pair header = {name, value};
    struct http_ask a = {.method = method,
                         .target = target,
                         .headers = &header,
                         .n_headers = name != NULL,
                         .timeout_ms = 60000,
                         .done = answered,
                         .arg = &got};

    memset(&got, 0, sizeof(got));
    http_send(client, &a);
    ck_assert(loop_run_until(loop, &got.done, 60000));
    return got.status;
}

static int
get(const char *target)
{
    return ask("GET", target, NULL, NULL);
}

START_TEST(each_file_is_there_and_other_paths_are_addresses_of_the_page)
{
    size_t all = 0;

    for (const struct web_file *f = web_files; f->name != NULL; f++) {
        char target[128];
        snprintf(target, sizeof(target), "/ui/%s", f->name);
        ck_assert_int_eq(get(target), 200);
        ck_assert_str_eq(got.type, f->type);
        ck_assert_uint_eq(got.len, f->plain_len);
        all += strncmp(f->name, "term.", 5) == 0 ? 0 : f->plain_len;
    }
    ck_assert_uint_le(all, 100 << 10);
    ck_assert_int_eq(get("/"), 307);
    ck_assert_str_eq(got.location, "/ui/");
    ck_assert_int_eq(get("/ui"), 307);
    ck_assert_int_eq(get("/ui/jobs/a%2Fb@ns/versions?x=1"), 200);
    ck_assert_str_eq(got.type, "text/html; charset=utf-8");
    ck_assert_ptr_nonnull(strstr(got.body, "/ui/main.js"));
    ck_assert_int_eq(ask("PUT", "/ui/", NULL, NULL), 405);
}
END_TEST

START_TEST(a_file_is_sent_once_and_compressed)
{
    ck_assert_int_eq(ask("GET", "/ui/page.css", "accept-encoding", "br, gzip"), 200);
    ck_assert_str_eq(got.packed, "gzip");
    size_t packed = got.len;
    ck_assert_int_eq(get("/ui/page.css"), 200);
    ck_assert_str_eq(got.packed, "");
    ck_assert_uint_gt(got.len, 2 * packed);
    char tag[64];
    snprintf(tag, sizeof(tag), "%s", got.etag);
    ck_assert_int_eq(ask("GET", "/ui/page.css", "if-none-match", tag), 304);
    ck_assert_uint_eq(got.len, 0);
    ck_assert_int_eq(ask("GET", "/ui/main.js", "if-none-match", tag), 200);
}
END_TEST

START_TEST(the_policy_lets_nothing_in_but_what_the_configuration_says)
{
    struct agent_csp csp = {.connect_src = {.v = (const char *[]){"'self'", "https://x"}, .n = 2}};
    struct agent_ui ui = {.content_security_policy = &csp};
    struct agent_config cfg = {.ui = &ui};

    ck_assert_int_eq(get("/ui/"), 200);
    ck_assert_ptr_nonnull(strstr(got.policy, "default-src 'none'; script-src 'self'; "));
    ck_assert_ptr_nonnull(strstr(got.policy, "require-trusted-types-for 'script'"));
    ck_assert_ptr_null(strstr(got.policy, "unsafe"));
    api.cfg = &cfg;
    ck_assert_int_eq(get("/ui/"), 200);
    ck_assert_ptr_nonnull(strstr(got.policy, "; connect-src 'self' https://x; img-src 'self'; "));
    ui.enabled = (struct opt_bool){.set = true, .v = false};
    ck_assert_int_eq(get("/ui/"), 404);
    ck_assert_int_eq(get("/ui/main.js"), 404);
    ck_assert_int_eq(get("/"), 404);
}
END_TEST

TEST_SUITE_FIXTURE("web", 30, setup, teardown,
                   each_file_is_there_and_other_paths_are_addresses_of_the_page,
                   a_file_is_sent_once_and_compressed,
                   the_policy_lets_nothing_in_but_what_the_configuration_says)
