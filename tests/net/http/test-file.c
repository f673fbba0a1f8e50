/* SPDX-License-Identifier: Apache-2.0
 *
 * Bodies of requests that are files: whole, and shorter than was said.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "net/http/http.h"
#include "tests/lib/test.h"

enum { LINES = 100000, LINE = 10 };

static size_t seen;
static bool same;

static void
handler(void *arg, struct http_req *r)
{
    char line[32];
    (void)arg;
    seen = r->body_len;
    same = true;
    for (size_t i = 0; i < r->body_len / LINE; i++) {
        snprintf(line, sizeof(line), "%09zu\n", i);
        same &= memcmp(r->body + i * LINE, line, LINE) == 0;
    }
    http_reply(r, 200, "text/plain", "", 0);
}

struct got {
    bool done;
    int code;
};

static void
on_done(void *arg, const struct err *e, const struct http_resp *r)
{
    struct got *g = arg;
    (void)r;
    g->done = true;
    g->code = e ? e->code : 0;
}

START_TEST(a_file_is_sent)
{
    struct loop *loop = loop_new();
    struct err e = ERR_INIT;
    const struct http_server_config cfg = {.handler = handler};
    struct http_server *s = http_server_new(loop, &cfg);
    char addr[64];
    ck_assert_int_eq(http_server_listen(s, "127.0.0.1", 0, &e), 0);
    snprintf(addr, sizeof(addr), "http://127.0.0.1:%u", http_server_port(s));
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < LINES; i++)
        ck_assert_int_eq(fprintf(file, "%09d\n", i), LINE);
    ck_assert_int_eq(fflush(file), 0);
    struct http_client *c = http_client_new(&(struct dialer){.loop = loop}, addr, &e);
    struct got whole = {0}, shorter = {0};
    struct http_ask a = {.method = "POST",
                         .target = "/",
                         .body_fd = fileno(file),
                         .body_len = (size_t)LINES * LINE,
                         .done = on_done,
                         .arg = &whole,
                         .timeout_ms = 20000};
    http_send(c, &a);
    ck_assert(loop_run_until(loop, &whole.done, 20000));
    ck_assert_int_eq(whole.code, 0);
    ck_assert_uint_eq(seen, (size_t)LINES * LINE);
    ck_assert(same);
    a.body_len++; /* than the file has */
    a.arg = &shorter;
    http_send(c, &a);
    ck_assert(loop_run_until(loop, &shorter.done, 20000));
    ck_assert_int_eq(shorter.code, -ERR_CLOSED);
    http_client_close(c);
    http_server_close(s);
    loop_free(loop);
    fclose(file);
}
END_TEST

TEST_SUITE("file", a_file_is_sent)
