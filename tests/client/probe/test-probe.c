/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes of friendly and of hostile services: what counts as an answer, and that each is over in
 * its time with a bounded output.
 */
#include <string.h>

#include "client/probe/probe.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/stream.h"
#include "tests/lib/test.h"

enum { PROBE_MS = 20000 }; /* the time of those that answer */

struct fixture {
    struct loop *loop;
    struct http_server *http;
    struct prober *pr;
    void *ctx;
    int port;
    unsigned requests;
    char *seen; /* the last request: method, path, Host, X-Test, body */
    /* the answer */
    bool done, ok;
    int status;
    char *output;
};

static void
flood(void *user)
{
    struct http_req *r = user;
    static char block[64 << 10];
    memset(block, 'x', sizeof(block));
    if (http_closed(r))
        http_stream_end(r);
    else
        http_stream_write(r, block, sizeof(block));
}

static void
flood_closed(void *user)
{
    http_stream_end(user);
}

static void
answer(struct fixture *f, struct http_req *r, int status, const char *location, const char *body)
{
    (void)f;
    if (location)
        http_header_add(r, "Location", location);
    http_reply(r, status, "text/plain", body, strlen(body));
}

static void
handle(void *arg, struct http_req *r)
{
    struct fixture *f = arg;
    auto_mem void *tmp = mem_ctx("t");
    f->requests++;
    mem_free(f->seen);
    f->seen = mem_printf(f->ctx, "%s %s %s %s %s", http_method_name(r->method), r->target,
                         str_or(http_header(r, "host"), "-"), str_or(http_header(r, "x-test"), "-"),
                         r->body);
    int status = 0;
    if (sscanf(r->path, "/status/%d", &status) == 1)
        answer(f, r, status, NULL, "hello \x1b[31m\xff");
    else if (str_eq(r->path, "/once"))
        answer(f, r, 302, "status/200?a=1#top", "");
    else if (str_eq(r->path, "/full"))
        answer(f, r, 307, mem_printf(tmp, "http://127.0.0.1:%d/status/204", f->port), "");
    else if (str_eq(r->path, "/loop"))
        answer(f, r, 301, "/loop", "");
    else if (str_eq(r->path, "/away"))
        answer(f, r, 302, "http://169.254.169.254/latest/meta-data/", "secret");
    else if (str_eq(r->path, "/other"))
        answer(f, r, 302, mem_printf(tmp, "http://127.0.0.1:%d/", f->port + 1), "");
    else if (str_eq(r->path, "/file"))
        answer(f, r, 302, "file:///etc/passwd", "");
    else if (str_eq(r->path, "/flood") || str_eq(r->path, "/flood-fails")) {
        r->user = r;
        r->on_close = flood_closed;
        http_stream_start(r, str_eq(r->path, "/flood") ? 201 : 500, "text/plain", flood);
    } else if (str_eq(r->path, "/hang")) {
        r->user = r;
        r->on_close = flood_closed;
        http_stream_start(r, 200, "text/plain", NULL);
    } else {
        answer(f, r, 404, NULL, "nothing here");
    }
}

static void
fixture_start(struct fixture *f)
{
    struct err e = ERR_INIT;
    *f = (struct fixture){.loop = loop_new(), .ctx = mem_ctx("probe")};
    f->http = http_server_new(f->loop, &(struct http_server_config){.handler = handle, .arg = f});
    ck_assert_msg(http_server_listen(f->http, "127.0.0.1", 0, &e) == 0, "%s", e.text);
    f->port = http_server_port(f->http);
    f->pr = prober_new(f->loop);
}

static void
fixture_stop(struct fixture *f)
{
    prober_free(f->pr);
    http_server_close(f->http);
    loop_free(f->loop);
    talloc_free(f->ctx);
}

static void
on_probed(void *arg, const struct probe_answer *a)
{
    struct fixture *f = arg;
    ck_assert(!f->done);
    f->done = true;
    f->ok = a->ok;
    f->status = a->status;
    mem_free(f->output);
    f->output = mem_strdup(f->ctx, a->output);
}

static void
fixture_probe(struct fixture *f, const struct probe_ask *ask)
{
    struct probe_ask a = *ask;
    a.address = a.address ? a.address : "127.0.0.1";
    a.port = a.port ? a.port : f->port;
    a.timeout_ms = a.timeout_ms ? a.timeout_ms : PROBE_MS;
    f->done = false;
    ck_assert_ptr_nonnull(probe_start(f->pr, &a, on_probed, f));
    ck_assert(!f->done);
    ck_assert(loop_run_until(f->loop, &f->done, 2 * PROBE_MS));
}

START_TEST(answers_by_their_status)
{
    static const struct {
        const char *path;
        bool ok;
        int status;
        const char *output;
    } rows[] = {
        {"/status/200", true, 200, "nomad: http ok"},
        {"status/200", true, 200, "nomad: http ok"},
        {"/status/201", true, 201, "hello "},
        {"/status/399", true, 399, "hello "},
        {"/status/400", false, 400, "hello "},
        {"/status/503", false, 503, "hello "},
        {"/none", false, 404, "nothing here"},
        {"/once", true, 200, "nomad: http ok"},
        {"/full", true, 204, ""},
        {"/loop", false, 0, "nomad: stopped after 10 redirects"},
        {"/away", true, 302, "nomad: redirect to \"http://169.254.169.254/latest/meta-data/\" is"},
        {"/other", true, 302, "is not followed"},
        {"/file", true, 302, "nomad: redirect to \"file:///etc/passwd\" is not followed"},
        {"/with blank", false, 0, "nomad: its path has blanks or control characters"},
        {"/a\r\nX-Evil: 1", false, 0, "nomad: its path has blanks or control characters"},
    };
    struct fixture f;
    fixture_start(&f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        fixture_probe(&f, &(struct probe_ask){.http = true, .path = rows[i].path});
        ck_assert_msg(f.ok == rows[i].ok && f.status == rows[i].status &&
                          strstr(f.output, rows[i].output) != NULL,
                      "%s: %d %d %s", rows[i].path, f.ok, f.status, f.output);
        ck_assert(utf8_valid(f.output, strlen(f.output)) && !strchr(f.output, '\x1b'));
    }
    fixture_stop(&f);
}
END_TEST

START_TEST(requests_are_as_the_check_says)
{
    static const struct http_pair headers[] = {
        {"Host", "www.example"}, {"X-Test", "yes"}, {"Content-Length", "9"}};
    static const struct http_pair evil[] = {{"X-Test", "a\r\nX-Evil: 1"}};
    struct fixture f;
    fixture_start(&f);
    struct probe_ask a = {.http = true,
                          .method = "PUT",
                          .path = "/status/200?q=%20x",
                          .body = "ping",
                          .headers = headers,
                          .n_headers = ARRAY_LEN(headers)};
    fixture_probe(&f, &a);
    ck_assert_msg(f.ok, "%s", f.output);
    ck_assert_str_eq(f.seen, "PUT /status/200?q=%20x www.example yes ping");
    a.path = "/once"; /* a redirect of this kind makes it a GET */
    fixture_probe(&f, &a);
    ck_assert_str_eq(f.seen, "GET /status/200?a=1 www.example yes ");
    a.headers = evil;
    a.n_headers = 1;
    unsigned requests = f.requests;
    fixture_probe(&f, &a);
    ck_assert(!f.ok && f.requests == requests);
    ck_assert_str_eq(f.output, "nomad: one of its headers has control characters");
    fixture_stop(&f);
}
END_TEST

START_TEST(hostile_answers_are_bounded)
{
    struct fixture f;
    fixture_start(&f);
    fixture_probe(&f, &(struct probe_ask){.http = true, .path = "/flood"});
    ck_assert(f.ok && f.status == 201);
    ck_assert_uint_eq(strlen(f.output), PROBE_OUTPUT_MAX);
    fixture_probe(&f, &(struct probe_ask){.http = true, .path = "/flood-fails"});
    ck_assert(!f.ok && f.status == 500);
    ck_assert_uint_eq(strlen(f.output), PROBE_OUTPUT_MAX);
    fixture_probe(&f, &(struct probe_ask){.http = true, .path = "/hang", .timeout_ms = 50});
    ck_assert(!f.ok);
    ck_assert_str_eq(f.output, "nomad: no answer within 50ms");
    fixture_stop(&f);
}
END_TEST

START_TEST(connections_of_tcp)
{
    struct fixture f;
    fixture_start(&f);
    fixture_probe(&f, &(struct probe_ask){0});
    ck_assert(f.ok && f.status == 0);
    ck_assert_str_eq(f.output, "nomad: tcp ok");
    fixture_probe(&f, &(struct probe_ask){.address = "localhost"});
    ck_assert_msg(f.ok, "%s", f.output);
    fixture_probe(&f, &(struct probe_ask){.port = 1});
    ck_assert(!f.ok && str_prefix(f.output, "nomad: 127.0.0.1:1: "));
    fixture_probe(&f, &(struct probe_ask){.port = 70000});
    ck_assert_str_eq(f.output, "nomad: there is no port to look at");
    fixture_stop(&f);
}
END_TEST

START_TEST(metadata_services_are_not_looked_at)
{
    static const char *const refused[] = {"169.254.169.254", "::ffff:169.254.169.254", "fe80::1",
                                          "fd00:ec2::254"};
    struct fixture f;
    fixture_start(&f);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        fixture_probe(&f, &(struct probe_ask){.address = refused[i], .port = 80, .http = true});
        ck_assert(!f.ok);
        ck_assert_str_eq(f.output, "nomad: checks of addresses of links are refused");
    }
    /* in other words, which the resolver understands */
    fixture_probe(&f, &(struct probe_ask){.address = "0xa9fea9fe", .port = 80, .timeout_ms = 500});
    ck_assert(!f.ok);
    fixture_stop(&f);
}
END_TEST

START_TEST(a_probe_can_be_called_off_at_any_time)
{
    struct fixture f;
    fixture_start(&f);
    const struct probe_ask a = {.address = "127.0.0.1",
                                .port = f.port,
                                .timeout_ms = PROBE_MS,
                                .http = true,
                                .path = "/hang"};
    bool never = false;
    for (int ms = 0; ms < 12; ms += 3) {
        struct probe *p = probe_start(f.pr, &a, on_probed, &f);
        if (ms > 0)
            loop_run_until(f.loop, &never, ms);
        probe_cancel(p);
    }
    loop_run_until(f.loop, &never, 5);
    ck_assert(!f.done);
    fixture_stop(&f);
}
END_TEST

TEST_SUITE("probe", answers_by_their_status, requests_are_as_the_check_says,
           hostile_answers_are_bounded, connections_of_tcp, metadata_services_are_not_looked_at,
           a_probe_can_be_called_off_at_any_time)
