/* SPDX-License-Identifier: Apache-2.0
 *
 * Bodies that a worker decodes: the answers are those of small ones, and who leaves meanwhile leaves nothing
 * behind.
 */
#include <stdio.h>
#include <string.h>

#include "agent/api/api.h"
#include "common/mem.h"
#include "tests/agent/fakes.h"
#include "tests/lib/test.h"

enum { BALLAST = 400000 };

static struct loop *loop;
static struct http_server *http;
static struct http_client *client;
static struct api api;
static struct {
    bool done;
    int status;
    char body[1024];
} got;

static size_t
body_max(void *arg, enum http_method m, const char *path)
{
    (void)arg;
    return api_body_max(&api, m, path);
}

static void
setup(void)
{
    struct err e = ERR_INIT;
    char addr[64];
    loop = loop_new();
    api = (struct api){.loop = loop,
                       .servers = rpc_local(loop, fake_services, fake_services_n, NULL),
                       .region = "global",
                       .name = "n"};
    http = http_server_new(
        loop, &(struct http_server_config){.handler = api_handle, .arg = &api, .body_max = body_max});
    ck_assert_int_eq(http_server_listen(http, "127.0.0.1", 0, &e), 0);
    snprintf(addr, sizeof(addr), "127.0.0.1:%u", http_server_port(http));
    client = http_client_new(&(struct dialer){.loop = loop}, addr, &e);
}

static void
teardown(void)
{
    http_client_close(client);
    http_server_close(http);
    rpc_client_close(api.servers);
    loop_free(loop);
}

static void
answered(void *arg, const struct err *e, const struct http_resp *r)
{
    (void)arg;
    got.done = true;
    got.status = e ? e->code : r->status;
    snprintf(got.body, sizeof(got.body), "%s", e ? e->text : r->body);
}

static int
put(const char *target, const char *body, int64_t timeout_ms)
{
    struct http_ask a = {.method = "PUT",
                         .target = target,
                         .body = body,
                         .body_len = strlen(body),
                         .timeout_ms = timeout_ms,
                         .done = answered};
    memset(&got, 0, sizeof(got));
    http_send(client, &a);
    ck_assert(loop_run_until(loop, &got.done, 20000));
    return got.status;
}

/* A job of that name, which may be none, with ballast. */
static const char *
job(void *ctx, const char *id)
{
    char *ballast = mem_array(ctx, char, BALLAST + 1);
    memset(ballast, 'x', BALLAST);
    return mem_printf(ctx, "{\"Job\":{%s\"Meta\":{\"k\":\"%s\"}}}", id, ballast);
}

START_TEST(a_large_body_is_answered_as_a_small_one)
{
    auto_mem void *ctx = mem_ctx("bodies");
    const char *named = job(ctx, "\"ID\":\"invalid\","), *nameless = job(ctx, "");

    ck_assert_int_eq(put("/v1/jobs", named, 10000), 500);
    ck_assert_ptr_nonnull(strstr(got.body, "Missing job task groups"));
    ck_assert_int_eq(put("/v1/jobs", mem_strndup(ctx, named, strlen(named) - 1), 10000), 400);
    ck_assert_int_eq(put("/v1/job/other", named, 10000), 400);
    ck_assert_int_eq(put("/v1/job/x/plan", nameless, 10000), 400);
    ck_assert_int_eq(put("/v1/validate/job", nameless, 10000), 200);
}
END_TEST

START_TEST(who_leaves_meanwhile_leaves_nothing_behind)
{
    auto_mem void *ctx = mem_ctx("bodies");
    const char *named = job(ctx, "\"ID\":\"invalid\",");

    for (int i = 0; i < 20; i++) /* the time-out closes the connection */
        ck_assert_int_ne(put("/v1/jobs", named, 1 + i), 0);
    ck_assert_int_eq(put("/v1/jobs", named, 10000), 500);
}
END_TEST

START_TEST(a_route_that_a_server_decides_on_names_its_method)
{
    static const struct route *const tables[] = {routes_schema, routes_object, routes_acl,
        routes_deployment, routes_job, routes_node, routes_alloc, routes_agent, routes_client};
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (const struct route *r = tables[t]; r->path; r++)
            ck_assert_msg(r->cap != BY_SERVER || rpc_method_by_id(r->rpc) != NULL, "%s", r->path);
}
END_TEST

TEST_SUITE_FIXTURE("bodies", 60, setup, teardown, a_large_body_is_answered_as_a_small_one,
                   who_leaves_meanwhile_leaves_nothing_behind,
                   a_route_that_a_server_decides_on_names_its_method)
