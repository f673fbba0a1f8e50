/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of a node at an agent that is another: over fakes, a server without a client role
 * and a node that it reaches by streams.
 */
#include <stdio.h>
#include <string.h>

#include "agent/api/api.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/agent/fakes.h"
#include "tests/lib/test.h"

static struct loop *loop;
static struct http_server *http;
static struct http_client *client;
static struct api api, node_api;

static void
setup(void)
{
    struct err e = ERR_INIT;
    char addr[64];
    loop = loop_new();
    api = (struct api){
        .loop = loop,
        .servers = rpc_local(loop, fake_services, fake_services_n, NULL),
        .region = "global",
        .name = "n",
    };
    node_api = api;
    node_api.client = (struct client *)&node_api; /* the fakes do not look */
    http = http_server_new(loop, &(struct http_server_config){.handler = api_handle, .arg = &api});
    fake_node = http_server_new(
        loop, &(struct http_server_config){.handler = api_handle_passed_on, .arg = &node_api});
    ck_assert_int_eq(http_server_listen(http, "127.0.0.1", 0, &e), 0);
    snprintf(addr, sizeof(addr), "127.0.0.1:%u", http_server_port(http));
    client = http_client_new(&(struct dialer){.loop = loop}, addr, &e);
}

static void
teardown(void)
{
    http_client_close(client);
    http_server_close(http);
    http_server_close(fake_node);
    rpc_client_close(api.servers);
    loop_free(loop);
}

static struct answer {
    bool done;
    int status;
    char body[8192], type[64];
} got;

static void
answered(void *arg, const struct err *e, const struct http_resp *r)
{
    struct answer *a = arg;
    a->done = true;
    a->status = e ? e->code : r->status;
    snprintf(a->body, sizeof(a->body), "%s", e ? e->text : r->body);
    snprintf(a->type, sizeof(a->type), "%s",
             e ? "" : str_or(http_resp_header(r, "content-type"), ""));
}

static int
status(const char *method, const char *target, const char *body)
{
    static const struct http_pair headers[] = {{"Authorization", "Bearer secret"}};
    struct http_ask a = {.method = method,
                         .target = target,
                         .headers = headers,
                         .n_headers = ARRAY_LEN(headers),
                         .body = body,
                         .body_len = body ? strlen(body) : 0,
                         .timeout_ms = 10000,
                         .done = answered,
                         .arg = &got};
    memset(&got, 0, sizeof(got));
    http_send(client, &a);
    ck_assert(loop_run_until(loop, &got.done, 10000));
    return got.status;
}

START_TEST(a_node_answers_what_is_passed_on_to_it)
{
    ck_assert_int_eq(
        status("GET", "/v1/client/fs/logs/" FAKE_ALLOC "?task=t&type=stdout&plain=true", NULL),
        200);
    ck_assert_str_eq(got.body, "line\nline\nline\n");
    ck_assert_str_eq(got.type, "text/plain");
    ck_assert_int_eq(status("PUT", "/v1/client/allocation/" FAKE_ALLOC "/restart",
                            "{\"TaskName\":\"t\"}"), 200);
    ck_assert_str_eq(fake_text, "restart " FAKE_ALLOC " t 0");
    ck_assert_int_eq(status("PUT", "/v1/client/allocation/" FAKE_ALLOC "/signal",
                            "{\"Signal\":\"SIGNOPE\"}"), 400);
    ck_assert_int_eq(status("GET", "/v1/client/fs/ls/" FAKE_ALLOC "?path=x", NULL), 404);
    ck_assert_int_eq(status("GET", "/v1/client/fs/ls/nobodys", NULL), 404);
    ck_assert_str_eq(got.body, "Unknown allocation \"nobodys\"");
    /* the node passes on to nobody what it does not have */
    ck_assert_int_eq(status("GET", "/v1/client/fs/ls/" FAKE_FAR, NULL), 404);
    ck_assert_str_eq(got.body, "Unknown allocation \"" FAKE_FAR "\": its files were collected");
    ck_assert_int_eq(status("GET", "/v1/client/stats?node_id=" FAKE_NODE, NULL), 404);
    ck_assert_str_eq(got.body, "Unknown node \"" FAKE_NODE "\"");
}
END_TEST

/* The node asks about the asker as well: the token goes on, in the envelope and in the request. */
START_TEST(what_is_passed_on_keeps_its_token)
{
    ck_assert_int_eq(status("GET", "/v1/client/fs/ls/" FAKE_FAR, NULL), 404);
    ck_assert_str_eq(fake_token, "secret");
}
END_TEST

TEST_SUITE_FIXTURE("other_node", 30, setup, teardown, a_node_answers_what_is_passed_on_to_it,
                   what_is_passed_on_keeps_its_token)
