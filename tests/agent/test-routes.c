/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP API over fakes: methods, parameters, headers, errors, lists, blocking, bodies.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "agent/api/api.h"
#include "agent/limits.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "tests/agent/fakes.h"
#include "tests/lib/test.h"

static struct loop *loop;
static struct http_server *http;
static struct http_client *client;
static struct api api;
static char addr[64];

static void
setup(void)
{
    struct err e = ERR_INIT;
    loop = loop_new();
    api = (struct api){
        .loop = loop,
        .servers = rpc_local(loop, fake_services, fake_services_n, NULL),
        .client = (struct client *)&api, /* the fakes do not look */
        .server = (struct server *)&api,
        .region = "global",
        .name = "n",
        .version = "0.1.0",
    };
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
    rpc_client_close(api.servers);
    loop_free(loop);
}

struct answer {
    bool done;
    int status;
    char body[16384];
    char index[32], next[64], type[64], leader[8], location[64], cors[64];
};

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
    if (e) {
        a->status = e->code;
        return;
    }
    a->status = r->status;
    snprintf(a->body, sizeof(a->body), "%s", r->body);
    keep(a->index, sizeof(a->index), r, "x-nomad-index");
    keep(a->next, sizeof(a->next), r, "x-nomad-nexttoken");
    keep(a->leader, sizeof(a->leader), r, "x-nomad-knownleader");
    keep(a->type, sizeof(a->type), r, "content-type");
    keep(a->location, sizeof(a->location), r, "location");
    keep(a->cors, sizeof(a->cors), r, "access-control-allow-origin");
}

static struct answer got;

static struct answer *
ask_n(const char *method, const char *target, const void *body, size_t n)
{
    struct http_ask a = {.method = method, .target = target, .body = body, .body_len = n,
                         .timeout_ms = 60000, .done = answered, .arg = &got};
    memset(&got, 0, sizeof(got));
    http_send(client, &a);
    ck_assert(loop_run_until(loop, &got.done, 60000));
    return &got;
}

static struct answer *
ask(const char *method, const char *target, const char *body)
{
    return ask_n(method, target, body, body ? strlen(body) : 0);
}

static int
status(const char *method, const char *target, const char *body)
{
    return ask(method, target, body)->status;
}

/* One request as it stands, on a connection of its own; its status, and got.body with the head. */
static int
raw(const char *text)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(http_server_port(http))};
    bool never = false;
    size_t n = 0;
    ssize_t r = -1;

    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    memset(&got, 0, sizeof(got));
    for (int i = 0; i < 2000 && r != 0 && n < sizeof(got.body) - 1; i++) {
        loop_run_until(loop, &never, 1);
        r = recv(fd, got.body + n, sizeof(got.body) - 1 - n, MSG_DONTWAIT);
        n += r > 0 ? (size_t)r : 0;
    }
    ck_assert_msg(n > 12 && memcmp(got.body, "HTTP/1.", 7) == 0, "%s", got.body);
    int64_t code = 0;
    got.body[12] = '\0'; /* "HTTP/1.1 200" */
    ck_assert_int_eq(num_parse_i64(got.body + 9, &code), 0);
    got.body[12] = ' ';
    return got.status = (int)code;
}

START_TEST(paths_and_methods)
{
    ck_assert_int_eq(status("GET", "/v1/jobs", NULL), 200);
    ck_assert_int_eq(status("GET", "/v1/jobs/", NULL), 404);
    ck_assert_int_eq(status("GET", "/v1/nope", NULL), 404);
    ck_assert_str_eq(got.body, "there is no endpoint \"/v1/nope\"");
    ck_assert_int_eq(status("DELETE", "/v1/jobs", NULL), 405);
    ck_assert_str_eq(got.body, "Invalid method");
    ck_assert_int_eq(status("GET", "/v1/job/x/plan", NULL), 405);
    ck_assert_int_eq(status("PATCH", "/v1/jobs", NULL), 405);
    ck_assert_int_eq(status("POST", "/v1/system/gc", NULL), 405);
    ck_assert_int_eq(status("PUT", "/v1/system/gc", NULL), 200);
    ck_assert_str_eq(got.index, "33");
    ck_assert_int_eq(status("GET", "//v1//jobs?a=//", NULL), 307);
    ck_assert_str_eq(got.location, "/v1/jobs?a=//");
    ck_assert_int_eq(status("GET", "/?x=1", NULL), 307);
    ck_assert_int_eq(status("GET", "/v1/operator/license", NULL), 501);
    ck_assert_str_eq(got.body, "Nomad Enterprise only endpoint");
}
END_TEST

START_TEST(ids_may_hold_slashes)
{
    ck_assert_int_eq(status("GET", "/v1/job/a%2Fb%20c", NULL), 200);
    ck_assert_ptr_nonnull(strstr(got.body, "\"ID\":\"a/b c\""));
    ck_assert_ptr_nonnull(strstr(got.body, "\"SubmitTime\":1234567890123456789"));
    ck_assert_str_eq(got.index, "42");
    ck_assert_str_eq(got.leader, "true");
    ck_assert_str_eq(got.type, "application/json");
}
END_TEST

START_TEST(errors)
{
    ck_assert_int_eq(status("GET", "/v1/job/missing", NULL), 404);
    ck_assert_str_eq(got.body, "job not found");
    ck_assert_str_eq(got.type, "text/plain; charset=utf-8");
    ck_assert_str_eq(got.index, "42");
    ck_assert_int_eq(status("GET", "/v1/job/boom", NULL), 500);
    ck_assert_str_eq(got.body, "No cluster leader");
    ck_assert_int_eq(status("GET", "/v1/job/busy", NULL), 429);
}
END_TEST

START_TEST(a_job_is_refused_with_the_status_that_nomad_has)
{
    ck_assert_int_eq(status("POST", "/v1/jobs", "{\"Job\":{\"ID\":\"invalid\"}}"), 500);
    ck_assert_ptr_nonnull(strstr(got.body, "Missing job task groups"));
    ck_assert_int_eq(status("PUT", "/v1/jobs", "{\"Job\":{\"ID\":\"x\"},\"EvalPriority\":101}"), 400);
    ck_assert_int_eq(status("PUT", "/v1/job/x/plan", "{\"Job\":{}}"), 400);
    ck_assert_int_eq(status("PUT", "/v1/validate/job", "{\"Job\":{}}"), 200);
    ck_assert_ptr_nonnull(strstr(got.body, "the job has no ID"));
}
END_TEST

START_TEST(objects_come_as_the_server_wrote_them)
{
    ck_assert_int_eq(status("GET", "/v1/node/n1", NULL), 200);
    ck_assert_ptr_nonnull(strstr(got.body, "\"SecretID\":\"\""));
    ck_assert_ptr_null(strstr(got.body, "do not tell"));
    ck_assert_str_eq(got.body + strlen(got.body) - 17, ",\"ModifyIndex\":0}");
    ck_assert_int_eq(status("GET", "/v1/node/n1?pretty", NULL), 200);
    ck_assert_str_eq(got.body + strlen(got.body) - 25, ",\n    \"ModifyIndex\": 0\n}\n");
}
END_TEST

START_TEST(a_node_has_the_allocations_of_all_namespaces)
{
    ck_assert_int_eq(status("GET", "/v1/node/n1/allocations?namespace=nope", NULL), 200);
    ck_assert_str_eq(fake_text, ""); /* a node is of no namespace */
}
END_TEST

START_TEST(draining)
{
    ck_assert_int_eq(status("PUT", "/v1/node/n1/drain",
                            "{\"NodeID\":\"n1\",\"DrainSpec\":{\"Deadline\":3600000000000,"
                            "\"IgnoreSystemJobs\":true},\"Meta\":{\"message\":\"why\"}}"),
                     200);
    ck_assert_str_eq(fake_text, "n1 3600000000000 1 0 why");
    ck_assert_str_eq(got.index, "42");
    ck_assert_ptr_nonnull(strstr(got.body, "\"NodeModifyIndex\":42"));
    ck_assert_int_eq(status("POST", "/v1/node/n1/drain", "{\"DrainSpec\":null,\"MarkEligible\":true}"),
                     200);
    ck_assert_str_eq(fake_text, "n1 -99 0 1 ");
    ck_assert_int_eq(status("PUT", "/v1/node/n1/drain", "{\"NodeID\":\"n2\"}"), 400);
    ck_assert_int_eq(status("PUT", "/v1/node/n1/drain", NULL), 400);
    ck_assert_int_eq(status("PUT", "/v1/node/n1/drain", "{\"DrainSpec\":{\"Deadline\":[]}}"), 400);
}
END_TEST

START_TEST(node_metadata)
{
    static const char want[] = "{\"Meta\":{\"a\":\"1\"},\"Dynamic\":null,\"Static\":{}}";
    ck_assert_int_eq(status("GET", "/v1/client/metadata", NULL), 200);
    ck_assert_str_eq(got.body, want);
    ck_assert_int_eq(status("POST", "/v1/client/metadata",
                            "{\"NodeID\":\"node-1\",\"Meta\":{\"b\":null}}"),
                     200);
    ck_assert_str_eq(got.body, want);
    ck_assert_str_eq(fake_text, "null");
    ck_assert_int_eq(status("POST", "/v1/client/metadata", "{\"NodeID\":"), 400);
    /* another node's is asked for there, over the connection that it made to a server */
    ck_assert_int_eq(status("GET", "/v1/client/metadata?node_id=n2", NULL), 404);
    ck_assert_str_eq(got.body, "No path to node");
}
END_TEST

START_TEST(parameters)
{
    ck_assert_int_eq(status("GET", "/v1/allocations?prefix=ab&resources=true", NULL), 200);
    ck_assert_str_eq(fake_text, "task_states=1 resources=1 ab"); /* a default, and what is said */
    ck_assert_int_eq(status("GET", "/v1/allocations?task_states=maybe", NULL), 400);
    ck_assert_int_eq(status("GET", "/v1/jobs?index=x", NULL), 400);
    ck_assert_str_eq(got.body, "Invalid index");
    ck_assert_int_eq(status("GET", "/v1/jobs?index=-1", NULL), 400);
    ck_assert_int_eq(status("GET", "/v1/jobs?wait=5", NULL), 400);
    ck_assert_str_eq(got.body, "Invalid wait time");
    ck_assert_int_eq(status("GET", "/v1/jobs?stale=maybe", NULL), 400);
    ck_assert_int_eq(status("GET", "/v1/jobs?per_page=x", NULL), 400);
    ck_assert_int_eq(status("GET", "/v1/jobs?per_page=-1", NULL), 400);
    ck_assert_int_eq(status("GET", "/v1/jobs?stale", NULL), 200);
    ck_assert(fake_env.stale);
    ck_assert_int_eq(status("GET", "/v1/jobs?stale=true&namespace=*&index=0&wait=5s", NULL), 200);
    ck_assert_str_eq(fake_text, "*");
    ck_assert_int_eq(fake_env.wait, 0);
    ck_assert_int_eq(status("GET", "/v1/jobs?index=7&wait=16s", NULL), 200);
    ck_assert_uint_eq(fake_env.min_index, 7);
    ck_assert_int_ge(fake_env.wait, 16000000000);
    ck_assert_int_le(fake_env.wait, 17000000000);
    ck_assert_int_eq(status("GET", "/v1/jobs?index=7&wait=9h", NULL), 200);
    ck_assert_int_le(fake_env.wait, 320000000000);
    ck_assert_int_eq(status("DELETE", "/v1/job/x?eval_priority=101", NULL), 400);
    ck_assert_int_eq(status("DELETE", "/v1/job/x?purge=perhaps", NULL), 400);
    ck_assert_int_eq(status("GET", "/v1/job/x/versions?diffs=maybe", NULL), 400);
    ck_assert_int_eq(status("DELETE", "/v1/job/x?purge=true", NULL), 200);
    ck_assert_str_eq(fake_text, "x purge=1");
}
END_TEST

static const char *
ids_of(const char *target)
{
    static char ids[32];
    const char *p = ask("GET", target, NULL)->body;
    size_t n = 0;
    ck_assert_int_eq(got.status, 200);
    while ((p = strstr(p, "\"ID\":\"")) && n < sizeof(ids) - 1) {
        ids[n++] = p[6];
        p += 6;
    }
    ids[n] = 0;
    return ids;
}

START_TEST(lists)
{
    ck_assert_str_eq(ids_of("/v1/jobs"), "abcde");
    ck_assert_str_eq(got.index, "42");
    ck_assert_str_eq(ids_of("/v1/jobs?reverse=true"), "edcba");
    ck_assert_str_eq(ids_of("/v1/jobs?per_page=2"), "ab");
    ck_assert_str_eq(got.next, "default.c");
    ck_assert_str_eq(ids_of("/v1/jobs?per_page=2&next_token=default.c"), "cd");
    ck_assert_str_eq(got.next, "default.e");
    ck_assert_str_eq(ids_of("/v1/jobs?per_page=2&next_token=default.e"), "e");
    ck_assert_str_eq(got.next, "");
    ck_assert_str_eq(ids_of("/v1/jobs?reverse=true&per_page=2&next_token=default.c"), "cb");
    ck_assert_str_eq(ids_of("/v1/jobs?filter=Status%20%3D%3D%20running"), "ab");
    ck_assert_str_eq(ids_of("/v1/jobs?filter=Status+%3D%3D+running+and+ID+!%3D+a&per_page=5"), "b");
    ck_assert_str_eq(ids_of("/v1/jobs?filter=Status+!%3D+running&per_page=2"), "cd");
    ck_assert_str_eq(got.next, "default.e");
    ck_assert_str_eq(ids_of("/v1/jobs?filter=Version+%3D%3D+7+and+Periodic+is+nil"), "abcde");
    ck_assert_int_eq(status("GET", "/v1/jobs?pretty", NULL), 200);
    ck_assert(strncmp(got.body, "[\n    {\n        \"", 17) == 0);
    ck_assert_str_eq(got.body + strlen(got.body) - 9, "\n    }\n]\n");
    ck_assert_int_eq(status("GET", "/v1/jobs?filter=Nope+%3D%3D+1", NULL), 400);
    ck_assert_ptr_nonnull(strstr(got.body, "failed to read filter expression"));
    ck_assert_int_eq(status("GET", "/v1/jobs?prefix=none", NULL), 200);
    ck_assert_str_eq(got.body, "[]");
    ck_assert_int_eq(status("GET", "/v1/evaluations?status=x&filter=ID+%3D%3D+a", NULL), 400);
}
END_TEST

struct taken {
    struct answer answer;
    size_t bytes, stop_at;
    char first, last;
};

static bool
take(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct taken *t = arg;
    (void)r;
    if (t->bytes == 0)
        t->first = *(const char *)p;
    t->bytes += n;
    t->last = ((const char *)p)[n - 1];
    return t->stop_at == 0 || t->bytes < t->stop_at;
}

static void
take_allocations(struct taken *t)
{
    struct http_ask a = {.method = "GET", .target = "/v1/allocations", .timeout_ms = 60000,
                         .on_body = take, .done = answered, .arg = t};
    http_send(client, &a);
    ck_assert(loop_run_until(loop, &t->answer.done, 60000));
}

/* No list is too long: it is not collected before it is sent. */
START_TEST(a_list_of_any_length_is_streamed)
{
    auto_buf struct buf row = BUF_INIT(4096);
    json_encode_row(&row, &type_alloc_list_stub, &(struct alloc_list_stub){.name = "a"}, 0);
    ck_assert_uint_gt(row.len * FAKE_ALLOCS, API_ANSWER_MAX);
    struct taken t = {0};
    take_allocations(&t);
    ck_assert_int_eq(t.answer.status, 200);
    ck_assert_str_eq(t.answer.index, "42");
    ck_assert_str_eq(t.answer.next, "");
    ck_assert(t.first == '[' && t.last == ']');
    ck_assert_uint_eq(t.bytes, row.len * FAKE_ALLOCS + 1);
    /* a server that goes meanwhile, a reader that has enough */
    fake_fails_at = FAKE_ALLOCS / 2;
    t = (struct taken){0};
    take_allocations(&t);
    ck_assert_int_lt(t.answer.status, 0);
    ck_assert_uint_gt(t.bytes, 0);
    fake_fails_at = 0;
    t = (struct taken){.stop_at = 5 << 20};
    take_allocations(&t);
    ck_assert_int_eq(t.answer.status, -ERR_CANCELED);
    /* a page is collected: its token is in the head */
    ck_assert_int_eq(status("GET", "/v1/allocations?per_page=200000", NULL), 413);
}
END_TEST

START_TEST(versions_come_one_by_one)
{
    ck_assert_int_eq(status("GET", "/v1/job/a/versions", NULL), 200);
    const char *one = strstr(got.body, "\"Version\":1,"), *none = strstr(got.body, "\"Version\":0,");
    ck_assert(one && none && one < none);
    ck_assert_ptr_nonnull(strstr(got.body, "\"Diffs\":null,\"Index\":42,"));
    ck_assert_int_eq(status("GET", "/v1/job/a/versions?diffs=true", NULL), 200);
    const char *diffs = strstr(got.body, "],\"Diffs\":[{");
    ck_assert(diffs && strstr(diffs, "\"Type\":\"Edited\"") && strstr(got.body, "\"Version\":0,"));
    ck_assert_int_eq(status("GET", "/v1/job/a/versions?pretty", NULL), 200);
    ck_assert_int_eq(status("GET", "/v1/job/missing/versions", NULL), 404);
    ck_assert_int_eq(status("GET", "/v1/job/a/versions?diffs=true&diff_version=0", NULL), 501);
}
END_TEST

START_TEST(pretty)
{
    ask("GET", "/v1/job/a?pretty", NULL);
    ck_assert_ptr_nonnull(strstr(got.body, "\n    \"ID\": \"a\""));
    ck_assert_int_eq(got.body[strlen(got.body) - 1], '\n');
    ask("GET", "/v1/job/a?pretty=0", NULL);
    ck_assert_ptr_null(strchr(got.body, '\n'));
}
END_TEST

START_TEST(a_blocking_query_is_canceled_with_its_client)
{
    struct err e = ERR_INIT;
    struct answer a = {0};
    struct http_client *c = http_client_new(&(struct dialer){.loop = loop}, addr, &e);
    struct http_ask q = {.method = "GET", .target = "/v1/job/x?index=100", .done = answered, .arg = &a};
    http_send(c, &q);
    ck_assert(loop_run_until(loop, &fake_parked, 5000));
    ck_assert(!a.done);
    http_client_close(c);
    ck_assert(loop_run_until(loop, &fake_canceled, 5000));
}
END_TEST

START_TEST(bodies)
{
    ck_assert_int_eq(status("POST", "/v1/jobs", NULL), 400);
    ck_assert_str_eq(got.body, "Request body is empty");
    ck_assert_int_eq(status("POST", "/v1/jobs", "{\"Job\":"), 400);
    ck_assert_int_eq(status("POST", "/v1/jobs", "{}"), 400);
    ck_assert_int_eq(status("POST", "/v1/jobs", "{\"Job\":{}}"), 400);
    ck_assert_int_eq(status("POST", "/v1/jobs", "[1]"), 400);
    ck_assert_int_eq(status("PUT", "/v1/jobs", "{\"Unknown\":[{}],\"Job\":{\"ID\":\"x\",\"Nope\":1}}"), 200);
    ck_assert_str_eq(got.index, "18");
    ck_assert_str_eq(fake_text, "default//global");
    ck_assert_ptr_nonnull(strstr(got.body, "\"EvalID\":\"e1\""));
    ck_assert_int_eq(status("PUT", "/v1/jobs", "{\"job\":{\"id\":\"x\",\"namespace\":\"ns\"}}"), 200);
    ck_assert_str_eq(fake_text, "ns/ns/global");
    ck_assert_int_eq(status("PUT", "/v1/jobs?namespace=q",
                            "{\"Job\":{\"ID\":\"x\",\"Namespace\":\"ns\"}}"), 200);
    ck_assert_str_eq(fake_text, "q/q/global");
    ck_assert_int_eq(status("POST", "/v1/job/y", "{\"Job\":{\"ID\":\"x\"}}"), 400);
    size_t n = 1 << 20;
    char *garbage = malloc(n);
    for (size_t i = 0; i < n; i++)
        garbage[i] = (char)(i * 2654435761u >> 13);
    ck_assert_int_eq(ask_n("POST", "/v1/jobs", garbage, n)->status, 400);
    memset(garbage, '[', n);
    ck_assert_int_eq(ask_n("POST", "/v1/jobs", garbage, n)->status, 400);
    free(garbage);
    ck_assert_int_eq(status("POST", "/v1/jobs/parse",
                            "{\"JobHCL\":\"job x {}\",\"Canonicalize\":true}"), 200);
    ck_assert_ptr_nonnull(strstr(got.body, "\"Name\":\"parsed\""));
    ck_assert_int_eq(status("POST", "/v1/jobs/parse", "{\"JobHCL\":\"!\"}"), 400);
    ck_assert_ptr_nonnull(strstr(got.body, "input.hcl:1,1"));
    ck_assert_int_eq(status("POST", "/v1/jobs/parse", "{}"), 400);
}
END_TEST

START_TEST(agent_routes)
{
    ck_assert_int_eq(status("GET", "/v1/status/leader", NULL), 200);
    ck_assert_str_eq(got.body, "\"127.0.0.1:4647\"");
    ck_assert_int_eq(status("GET", "/v1/status/leader?pretty", NULL), 200);
    ck_assert_str_eq(got.body, "\"127.0.0.1:4647\"\n");
    ck_assert_int_eq(raw("GET http://127.0.0.1/v1/regions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                         "Connection: close\r\n\r\n"), 200);
    ck_assert_int_eq(status("GET", "/v1/status/peers", NULL), 200);
    ck_assert_str_eq(got.body, "[\"127.0.0.1:4647\"]");
    ck_assert_int_eq(status("GET", "/v1/regions", NULL), 200);
    ck_assert_str_eq(got.body, "[\"global\"]");
    ck_assert_int_eq(status("GET", "/v1/agent/health", NULL), 200);
    ck_assert_ptr_nonnull(strstr(got.body, "\"client\":{\"message\":\"ok\",\"ok\":true}"));
    ck_assert_int_eq(status("GET", "/v1/agent/self", NULL), 200);
    ck_assert_ptr_nonnull(strstr(got.body, "\"Version\":\"2.0.4\""));
    ck_assert_ptr_nonnull(strstr(got.body, "\"PaddockVersion\":\"0.1.0\""));
    ck_assert_ptr_nonnull(strstr(got.body, "\"num_peers\":\"0\"")); /* `nomad check` reads it */
    ck_assert_ptr_nonnull(strstr(got.body, "\"applied_index\":\"77\""));
    ck_assert_ptr_nonnull(strstr(got.body, "\"runtime\":{\"arch\":"));
    ck_assert_ptr_nonnull(strstr(got.body, "\"serf\":{"));
    ck_assert_int_eq(status("GET", "/v1/metrics", NULL), 200);
    ck_assert_ptr_nonnull(strstr(got.body, "\"nomad.client.allocations.running\",\"Value\":3"));
    ck_assert_int_eq(status("GET", "/v1/metrics?format=prometheus", NULL), 200);
    ck_assert_ptr_nonnull(strstr(got.body, "# HELP nomad_client_allocations_running nomad.client."
                                           "allocations.running\n"
                                           "# TYPE nomad_client_allocations_running gauge\n"
                                           "nomad_client_allocations_running{host=\"n\",node_id="
                                           "\"node-1\"} 3\n"));
    static const char *const tasks[] = {"tasks_running", "tasks_pending", "tasks_dead"};
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
        auto_mem void *tmp = mem_ctx("line");
        ck_assert_ptr_nonnull(strstr(got.body, mem_printf(tmp, "nomad_client_%s{host=\"n\",node_id="
                                                               "\"node-1\"} %zu\n", tasks[i], 4 + i)));
    }
    ck_assert_ptr_nonnull(strstr(got.body, "nomad_client_allocations_blocked{"));
    ck_assert_ptr_nonnull(
        strstr(got.body, "nomad_client_allocated_memory{host=\"n\",node_id=\"node-1\"} 30\n"));
    ck_assert_ptr_nonnull(strstr(got.body, "nomad_nomad_broker_total_ready{host=\"n\"} 4\n"));
    ck_assert_ptr_nonnull(strstr(got.body, "nomad_nomad_heartbeat_active{host=\"n\"} 5\n"));
    ck_assert_ptr_nonnull(strstr(got.body, "nomad_raft_appliedIndex{host=\"n\"} 77\n"));
    ck_assert_ptr_nonnull(strstr(got.body, "# TYPE nomad_raft_apply counter\n"
                                           "nomad_raft_apply{host=\"n\"} 12\n"));
    ck_assert_ptr_nonnull(strstr(got.body, "nomad_raft_state_follower{host=\"n\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(got.body, "# TYPE nomad_raft_commitTime summary\n"
                                           "nomad_raft_commitTime_sum{host=\"n\"} 5\n"
                                           "nomad_raft_commitTime_count{host=\"n\"} 2\n"));
    ck_assert_int_eq(status("GET", "/v1/metrics", NULL), 200);
    ck_assert_ptr_nonnull(
        strstr(got.body, "\"Counters\":[{\"Name\":\"nomad.raft.apply\",\"Count\":12,\"Rate\":"));
    ck_assert_ptr_nonnull(
        strstr(got.body, "\"Sum\":5,\"Min\":1,\"Max\":4,\"Mean\":2.5,\"Labels\":{\"host\":\"n\"}}"));
    ck_assert_int_eq(status("POST", "/v1/agent/reload", NULL), 501);
    /* asked of an agent that is a server itself */
    ck_assert_int_eq(status("PUT", "/v1/agent/servers?address=10.0.0.1", NULL), 200);
    ck_assert_int_eq(status("PUT", "/v1/agent/servers?address=unix:///x", NULL), 400);
    ck_assert_int_eq(status("PUT", "/v1/agent/servers", NULL), 400);
    ck_assert_str_eq(got.body, "missing server address");
}
END_TEST

/* The jobs come in parts, of which none is larger than an answer may be. */
START_TEST(metrics_of_any_number_of_jobs)
{
    ck_assert_int_eq(status("GET", "/v1/metrics", NULL), 200);
    ck_assert_str_eq(fake_text, "*");
    ck_assert_ptr_nonnull(strstr(got.body, "\"nomad.nomad.job_status.running\",\"Value\":2"));
    ck_assert_ptr_nonnull(strstr(got.body, "\"nomad.nomad.job_status.dead\",\"Value\":3"));
    ck_assert_ptr_nonnull(strstr(got.body, ",{\"Name\":\"nomad.nomad.job_summary.queued\",\"Value\":4,"
                                           "\"Labels\":{\"host\":\"n\",\"job\":\"e\",\"namespace\":"
                                           "\"default\",\"task_group\":\"g\"}},"));
    ck_assert_int_eq(status("GET", "/v1/metrics?format=prometheus", NULL), 200);
    ck_assert_ptr_nonnull(strstr(got.body, "\nnomad_nomad_job_status_dead{host=\"n\"} 3\n"));
    const char *queued = strstr(got.body, "# TYPE nomad_nomad_job_summary_queued gauge\n"
                                          "nomad_nomad_job_summary_queued{host=\"n\",job=\"a\",");
    ck_assert_ptr_nonnull(queued);
    ck_assert_ptr_nonnull(strstr(queued, "\nnomad_nomad_job_summary_queued{host=\"n\",job=\"e\","
                                         "namespace=\"default\",task_group=\"g\"} 4\n"));
}
END_TEST

START_TEST(client_routes)
{
    ck_assert_int_eq(status("GET", "/v1/client/stats", NULL), 200);
    ck_assert_ptr_nonnull(strstr(got.body, "\"Uptime\":5"));
    ck_assert_int_eq(status("GET", "/v1/client/fs/logs/" FAKE_ALLOC "?type=stdout", NULL), 400);
    ck_assert_int_eq(status("GET", "/v1/client/fs/logs/" FAKE_ALLOC "?task=t&type=x", NULL), 400);
    ck_assert_int_eq(
        status("GET", "/v1/client/fs/logs/" FAKE_ALLOC "?task=t&type=stdout&plain=true", NULL), 200);
    ck_assert_str_eq(got.body, "line\nline\nline\n");
    ck_assert_str_eq(got.type, "text/plain");
    ck_assert_str_eq(fake_text, "t stdout follow=0 plain=1");
    ck_assert_int_eq(status("GET", "/v1/client/fs/cat/" FAKE_ALLOC "?path=/a", NULL), 200);
    ck_assert_int_eq(status("GET", "/v1/client/fs/readat/" FAKE_ALLOC "?path=/a&limit=1", NULL), 400);
    ck_assert_int_eq(
        status("GET", "/v1/client/fs/readat/" FAKE_ALLOC "?path=/a&offset=0&limit=-1", NULL), 200);
    ck_assert_str_eq(got.type, "text/plain; charset=utf-8");
    ck_assert_int_eq(status("GET", "/v1/client/fs/cat/" FAKE_ALLOC, NULL), 400);
    ck_assert_str_eq(got.body, "must provide a file name");
    ck_assert_int_eq(status("GET", "/v1/client/fs/stat/" FAKE_ALLOC, NULL), 400);
    ck_assert_int_eq(status("GET", "/v1/client/fs/logs/" FAKE_ALLOC "?task=t&type=stdout", NULL), 200);
    ck_assert_str_eq(got.type, "application/json");
    ck_assert_int_eq(
        status("GET", "/v1/client/fs/stream/" FAKE_ALLOC "?path=/a&origin=middle", NULL), 400);
    ck_assert_int_eq(status("GET", "/v1/client/fs/ls/" FAKE_ALLOC "?path=x", NULL), 404);
    ck_assert_int_eq(status("GET", "/v1/client/fs/ls/", NULL), 400);
    ck_assert_int_eq(status("GET", "/v1/client/fs/ls/other", NULL), 404);
    ck_assert_str_eq(got.body, "Unknown allocation \"other\"");
    ck_assert_int_eq(status("PUT", "/v1/client/allocation/" FAKE_ALLOC "/restart", NULL), 200);
    ck_assert_str_eq(fake_text, "restart " FAKE_ALLOC "  0");
    ck_assert_str_eq(got.body, "{\"Index\":0}");
    ck_assert_int_eq(status("PUT", "/v1/client/allocation/" FAKE_ALLOC "/restart",
                            "{\"TaskName\":\"t\",\"AllTasks\":true}"), 400);
    ck_assert_int_eq(status("PUT", "/v1/client/allocation/" FAKE_ALLOC "/signal",
                            "{\"Signal\":\"SIGNOPE\"}"), 400);
    ck_assert_int_eq(status("GET", "/v1/client/allocation/" FAKE_ALLOC "/stats", NULL), 200);
    ck_assert_int_eq(status("GET", "/v1/client/allocation/" FAKE_ALLOC "/checks", NULL), 200);
    ck_assert_msg(strncmp(got.body, "{\"abc\":{\"ID\":\"abc\",", 18) == 0, "%s", got.body);
    ck_assert_int_eq(status("GET", "/v1/allocation/" FAKE_ALLOC "/checks", NULL), 200);
}
END_TEST

/* Sends what a page can make a browser send: text/plain, and no headers of its choice. */
static int
browser(const char *method, const char *target, const char *host, const char *name, const char *value)
{
    static const char body[] = "{\"Job\":{\"ID\":\"x\"}}";
    char text[1024];
    snprintf(text, sizeof(text),
             "%s %s HTTP/1.1\r\nHost: %s\r\n%s: %s\r\nContent-Type: text/plain\r\n"
             "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
             method, target, host, name ? name : "Accept", name ? value : "*/*", strlen(body), body);
    return raw(text);
}

#define EXEC "/v1/client/allocation/" FAKE_ALLOC "/exec?task=t&command=%5B%22x%22%5D"

START_TEST(a_page_of_another_origin_changes_nothing)
{
    static const char *const writes[][2] = {
        {"POST", "/v1/jobs"}, {"PUT", "/v1/job/x"}, {"DELETE", "/v1/job/x"}, {"PUT", "/v1/system/gc"},
        {"GET", "/v1/client/gc"}, {"GET", "/v1/client/allocation/" FAKE_ALLOC "/restart"},
        {"GET", "/v1/client/allocation/" FAKE_ALLOC "/gc"}, {"GET", EXEC}};
    static const char host[] = "127.0.0.1:4646";
    for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
        const char *m = writes[i][0], *t = writes[i][1];
        ck_assert_int_eq(browser(m, t, host, "Origin", "http://evil.example"), 403);
        ck_assert_ptr_nonnull(strstr(got.body, "another origin"));
        ck_assert_int_eq(browser(m, t, host, "Origin", "null"), 403);
        ck_assert_int_eq(browser(m, t, host, "Origin", "http://127.0.0.1:8080"), 403);
        ck_assert_int_eq(browser(m, t, host, "Sec-Fetch-Site", "cross-site"), 403);
        ck_assert_int_eq(browser(m, t, host, "Sec-Fetch-Site", "same-site"), 403);
        ck_assert_int_ne(browser(m, t, host, "Sec-Fetch-Site", "same-origin"), 403);
        ck_assert_int_ne(browser(m, t, host, "Sec-Fetch-Site", "none"), 403);
        ck_assert_int_ne(browser(m, t, host, "Origin", "http://127.0.0.1:4646"), 403);
        ck_assert_int_ne(browser(m, t, host, NULL, NULL), 403);
    }
    ck_assert_int_eq(browser("GET", "/v1/jobs", host, "Sec-Fetch-Site", "cross-site"), 200); /* a link */
}
END_TEST

START_TEST(a_name_that_is_not_ours_is_refused)
{
    static const char *const own[] = {"node-1"}, *const hosts[] = {"nomad.example.com", "*.lan"};
    static const char *const bad[] = {"evil.example:4646", "127.0.0.1.evil.example", "xnomad.example.com",
                                      "lan", "[::1", "x:y:z", "localhost.evil.example"};
    static const char *const good[] = {"127.0.0.1", "10.0.0.7:4646", "[::1]:4646", "[fe80::1]", "localhost",
                                       "LocalHost:4646", "localhost."};
    static const char *const named[] = {"NODE-1:4646", "nomad.example.com", "a.lan:80", "a.b.lan"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ck_assert_int_eq(browser("GET", "/v1/jobs", bad[i], NULL, NULL), 403);
        ck_assert_ptr_nonnull(strstr(got.body, "http_api_hosts"));
        ck_assert_int_eq(browser("POST", "/v1/jobs", bad[i], NULL, NULL), 403);
        ck_assert_int_eq(browser("GET", EXEC, bad[i], NULL, NULL), 403);
    }
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        ck_assert_int_eq(browser("GET", "/v1/jobs", good[i], NULL, NULL), 200);
    /* an absolute target says who is meant, whatever Host says */
    ck_assert_int_eq(browser("GET", "http://evil.example/v1/jobs", "127.0.0.1:4646", NULL, NULL), 403);
    ck_assert_int_eq(browser("GET", "HTTP://evil.example?/v1/jobs", "127.0.0.1:4646", NULL, NULL), 403);
    ck_assert_int_eq(browser("GET", "http://127.0.0.1:4646/v1/jobs", "evil.example", NULL, NULL), 200);
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        ck_assert_int_eq(browser("GET", "/v1/jobs", named[i], NULL, NULL), 403);
    api.guard = (struct guard){.own = {(const char **)own, 1}, .hosts = {(const char **)hosts, 2}};
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        ck_assert_int_eq(browser("GET", "/v1/jobs", named[i], NULL, NULL), 200);
    /* behind a proxy that puts its own name for ours, or ours for its own */
    ck_assert_int_eq(
        browser("POST", "/v1/jobs", "nomad.example.com", "Origin", "https://nomad.example.com"), 200);
    ck_assert_int_eq(
        browser("POST", "/v1/jobs", "127.0.0.1:4646", "Origin", "https://nomad.example.com"), 200);
    ck_assert_int_eq(browser("POST", "/v1/jobs", "127.0.0.1:4646", "Origin", "http://node-1"), 403);
}
END_TEST

START_TEST(what_is_meant_for_another_region_is_not_done_here)
{
    static const char *const own[] = {"/v1/agent/self", "/v1/metrics", "/v1/regions", "/v1/agent/health"};
    static const char *const targets[][2] = {
        {"GET", "/v1/jobs?region=mars"}, {"DELETE", "/v1/job/x?region=mars&purge=true"},
        {"GET", "/v1/nodes?region=mars"}, {"PUT", "/v1/system/gc?region=mars"},
        {"GET", "/v1/client/stats?region=mars"}, {"GET", "/v1/status/leader?region=mars"}};
    char target[64];
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        ck_assert_int_eq(status(targets[i][0], targets[i][1], NULL), 500);
        ck_assert_str_eq(got.body, "No path to region");
    }
    fake_text[0] = '\0';
    ck_assert_int_eq(status("PUT", "/v1/jobs?region=mars", "{\"Job\":{\"ID\":\"x\"}}"), 500);
    static const char mars[] = "{\"Job\":{\"ID\":\"x\",\"Region\":\"mars\"}}";
    ck_assert_int_eq(status("PUT", "/v1/jobs", mars), 500);
    ck_assert_str_eq(got.body, "No path to region");
    ck_assert_int_eq(status("PUT", "/v1/job/x", mars), 500);
    ck_assert_int_eq(status("PUT", "/v1/job/x/plan", mars), 500);
    ck_assert_int_eq(status("PUT", "/v1/validate/job", mars), 500);
    ck_assert_str_eq(fake_text, ""); /* no server was asked */
    ck_assert_int_eq(status("PUT", "/v1/jobs?region=global", mars), 200); /* the query wins */
    ck_assert_str_eq(fake_text, "default//global");
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        snprintf(target, sizeof(target), "%s?region=mars", own[i]);
        ck_assert_int_eq(status("GET", target, NULL), 200);
    }
}
END_TEST

/* Every endpoint of Nomad 2.0 (command/agent/http.go and below) that is not built. */
START_TEST(what_is_not_built_says_so_and_not_that_something_is_missing)
{
    /* clang-format off */
    static const char *const gets[] = {
        "client/allocation/x/snapshot", "client/allocation/x/pause",
        "agent/monitor/export", "agent/host",
        "agent/pprof/cmdline",
        "volumes/external", "volumes/snapshot", "volumes/claims", "volume/csi/x",
        "plugins", "plugin/csi/x",
        "operator/upgrade-check/vault-workload-identity"};
    static const char *const puts[] = {
        "system/reconcile/summaries", "agent/schedulers/config",
        "volumes", "volume/csi/x/create", "acl/oidc/auth-url"};
    /* clang-format on */
    char target[64];
    for (size_t i = 0; i < ARRAY_LEN(gets) + ARRAY_LEN(puts); i++) {
        bool put = i >= ARRAY_LEN(gets);
        snprintf(target, sizeof(target), "/v1/%s", put ? puts[i - ARRAY_LEN(gets)] : gets[i]);
        ck_assert_msg(status(put ? "PUT" : "GET", target, put ? "{}" : NULL) == 501, "%s: %d", target,
                      got.status);
        ck_assert_msg(strstr(got.body, " is not in Paddock 0.1") != NULL, "%s: %s", target, got.body);
    }
    ck_assert_int_eq(status("DELETE", "/v1/evaluations", "{}"), 400);
    ck_assert_str_eq(got.body, "evals must be deleted by either ID or filter");
    ck_assert_int_eq(status("PUT", "/v1/client/allocation/" FAKE_ALLOC "/pause",
                            "{\"ScheduleState\":\"sideways\"}"), 400); /* that is built */
    ck_assert_int_eq(status("GET", "/v1/allocation/x/nope", NULL), 404);
    ck_assert_str_eq(got.body, "resource not found");
    ck_assert_int_eq(status("GET", "/v1/client/allocation/x/nope", NULL), 404);
    ck_assert_str_eq(got.body, "there is no endpoint \"/v1/client/allocation/x/nope\"");
}
END_TEST

START_TEST(a_token_comes_in_either_header_whatever_its_case)
{
    static const struct {
        const char *headers, *token;
    } rows[] = {{"X-Nomad-Token: a", "a"},          {"Authorization: Bearer b", "b"},
                {"Authorization: bearer  b", "b"},  {"X-Nomad-Token:\r\nAuthorization: BEARER b", "b"},
                {"Authorization: Basic b", ""},     {"X-Nomad-Token: a\r\nAuthorization: Bearer b", "a"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[256];
        snprintf(text, sizeof(text), "GET /v1/job/x HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n"
                                     "Connection: close\r\n\r\n", rows[i].headers);
        ck_assert_int_eq(raw(text), 200);
        ck_assert_str_eq(fake_token, rows[i].token);
    }
}
END_TEST

START_TEST(nothing_that_is_built_is_said_to_come_later)
{
    static const struct route *const tables[] = {routes_schema, routes_job, routes_node, routes_alloc,
                                                 routes_agent,  routes_client, routes_deployment};
    size_t n = 0;
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (const struct route *r = tables[t]; r->path; r++)
            for (unsigned verb = VERB_GET; verb <= VERB_DELETE; verb *= 2, n++) {
                struct http_req req = {0};
                struct request *a = mem_new(NULL, struct request);
                const char *what = "";
                req.path = mem_printf(a, "%s%s%s", r->path, r->suffix ? "x" : "", r->suffix ? r->suffix : "");
                a->req = &req;
                if (r->verbs & verb)
                    ck_assert_msg(!route_is_later(a, verb, &what), "%s: %s", req.path, what);
                talloc_free(a);
            }
    ck_assert_uint_gt(n, 150);
}
END_TEST

START_TEST(no_answer_is_open_to_all_origins)
{
    static const char *const targets[] = {
        "/v1/client/stats", "/v1/client/metadata", "/v1/client/fs/cat/" FAKE_ALLOC "?path=/a",
        "/v1/client/fs/logs/" FAKE_ALLOC "?task=t&type=stdout", "/v1/client/allocation/" FAKE_ALLOC "/stats"};
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        ck_assert_int_eq(status("GET", targets[i], NULL), 200);
        ck_assert_str_eq(got.cors, "");
    }
}
END_TEST

START_TEST(a_broken_body_is_refused_by_every_endpoint_that_takes_one)
{
    static const char *const targets[] = {
        "/v1/jobs", "/v1/jobs/parse", "/v1/validate/job", "/v1/job/y", "/v1/job/y/plan", "/v1/job/y/evaluate",
        "/v1/node/n1/drain", "/v1/node/n1/eligibility", "/v1/client/metadata",
        "/v1/operator/scheduler/configuration", "/v1/client/allocation/" FAKE_ALLOC "/restart",
        "/v1/client/allocation/" FAKE_ALLOC "/signal", "/v1/client/allocation/" FAKE_ALLOC "/pause"};
    static const char *const broken[] = {"{", "[1]", "{\"x\":", "{} {}", "null0"};
    for (size_t i = 0; i < ARRAY_LEN(targets); i++)
        for (size_t k = 0; k < ARRAY_LEN(broken); k++) {
            int code = status("PUT", targets[i], broken[k]);
            ck_assert_msg(code == 400, "%s %s: %d", targets[i], broken[k], code);
        }
}
END_TEST

TEST_SUITE_FIXTURE(
    "routes", 30, setup, teardown, paths_and_methods, ids_may_hold_slashes, errors,
    a_job_is_refused_with_the_status_that_nomad_has, objects_come_as_the_server_wrote_them,
    a_node_has_the_allocations_of_all_namespaces, draining, node_metadata, parameters, lists,
    a_list_of_any_length_is_streamed, pretty, versions_come_one_by_one,
    a_blocking_query_is_canceled_with_its_client, bodies, agent_routes,
    metrics_of_any_number_of_jobs, client_routes, a_page_of_another_origin_changes_nothing,
    a_name_that_is_not_ours_is_refused, what_is_meant_for_another_region_is_not_done_here,
    what_is_not_built_says_so_and_not_that_something_is_missing,
    nothing_that_is_built_is_said_to_come_later, a_token_comes_in_either_header_whatever_its_case,
    a_broken_body_is_refused_by_every_endpoint_that_takes_one, no_answer_is_open_to_all_origins)
