/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands in tasks over a WebSocket: what is refused before it, the messages of both sides, pressure
 * both ways, every end. The task is a fake that the test drives by hand.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/api/api.h"
#include "common/mem.h"
#include "net/http/ws.h"
#include "tests/agent/fakes.h"
#include "tests/lib/test.h"

#define PATH "/v1/client/allocation/" FAKE_ALLOC "/exec"
#define SH "command=%5B%22sh%22%2C%22-c%22%2C%22ls%20%C3%A4%22%5D" /* ["sh","-c","ls ä"] */
#define GOOD PATH "?task=web&" SH

static struct loop *loop;
static struct http_server *http;
static struct api api;
static char addr[64];

static struct peer {
    struct ws *ws;
    bool opened, over;
    unsigned code;
    char why[512];
    struct buf got; /* messages, a line each */
} peer;

static void
peer_open(void *arg)
{
    (void)arg;
    peer.opened = true;
}

static void
peer_message(void *arg, const void *p, size_t n)
{
    (void)arg;
    buf_put(&peer.got, p, n);
    buf_putc(&peer.got, '\n');
}

static void
peer_drain(void *arg)
{
    (void)arg;
}

static void
peer_close(void *arg, unsigned code, const char *why)
{
    (void)arg;
    peer.over = true;
    peer.code = code;
    snprintf(peer.why, sizeof(peer.why), "%s", why);
}

static const struct ws_ops peer_ops = {
    .on_open = peer_open, .on_message = peer_message, .on_drain = peer_drain, .on_close = peer_close};

static void
setup(void)
{
    struct err e = ERR_INIT;
    loop = loop_new();
    api = (struct api){
        .loop = loop,
        .servers = rpc_local(loop, fake_services, fake_services_n, NULL),
        .client = (struct client *)&api, /* the fakes do not look */
        .region = "global",
    };
    struct http_server_config cfg = {.handler = api_handle, .arg = &api, .body_max = api_body_max};
    http = api.http = http_server_new(loop, &cfg);
    ck_assert_int_eq(http_server_listen(http, "127.0.0.1", 0, &e), 0);
    snprintf(addr, sizeof(addr), "127.0.0.1:%u", http_server_port(http));
    buf_init(&peer.got, 64 << 20);
}

static void
teardown(void)
{
    if (!peer.over)
        ws_close(peer.ws, WS_NORMAL, "");
    http_server_close(http);
    rpc_client_close(api.servers);
    loop_free(loop);
    ck_assert_ptr_null(fake_exec.x); /* whatever was opened has been freed */
    buf_done(&peer.got);
    buf_done(&fake_exec.in);
}

static void
turns(int n)
{
    bool never = false;
    while (n-- > 0)
        loop_run_until(loop, &never, 2);
}

static void
dial(const char *target)
{
    struct err e = ERR_INIT;
    struct http_ask ask = {.target = target};
    buf_reset(&peer.got);
    peer.opened = peer.over = false;
    peer.ws = ws_connect(loop, addr, &ask, &peer_ops, NULL, &e);
    ck_assert_ptr_nonnull(peer.ws);
}

static void
open_session(const char *target)
{
    dial(target);
    ck_assert_msg(loop_run_until(loop, &peer.opened, 5000), "%s", peer.why);
    turns(3);
}

static void
say(const char *text)
{
    ws_send(peer.ws, text, strlen(text));
    turns(5);
}

/* Until what has come ends with `want`. */
static void
heard(const char *want)
{
    size_t n = strlen(want);
    for (int i = 0; i < 1000; i++) {
        if (peer.got.len >= n && memcmp(peer.got.data + peer.got.len - n, want, n) == 0)
            return;
        turns(1);
    }
    ck_abort_msg("%s came, not %s", buf_str(&peer.got), want);
}

static void
ended(unsigned code, const char *why)
{
    ck_assert(loop_run_until(loop, &peer.over, 5000));
    ck_assert_uint_eq(peer.code, code);
    ck_assert_str_eq(peer.why, why);
    turns(3);
    ck_assert_ptr_null(fake_exec.x);
}

static const struct {
    const char *target, *why;
} refused[] = {
    {PATH "?" SH, "400 (must provide task name)"},
    {PATH "?task=web", "400 (must provide command, a JSON list of strings)"},
    {PATH "?task=web&command=ls", "400 (Failed to unmarshal command: "},
    {PATH "?task=web&command=%5B%5D", "400 (command must be a JSON list of strings"},
    {PATH "?task=web&command=%5B%22%22%5D", "400 (command must be a JSON list of strings"},
    {PATH "?task=web&command=%5B1%5D", "400 (command must be a JSON list of strings"},
    {PATH "?task=web&command=%22ls%22", "400 (command must be a JSON list of strings"},
    {PATH "?task=web&command=%5B%22a%5Cu0000b%22%5D", "400 ("},
    {GOOD "&tty=maybe", "400 (Failed to parse value of \"tty\""},
    {GOOD "&ws_handshake=x", "400 (Failed to parse value of \"ws_handshake\""},
};

START_TEST(refusals_come_before_the_upgrade)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        char want[256];
        snprintf(want, sizeof(want), "Unexpected response code: %s", refused[i].why);
        dial(refused[i].target);
        ck_assert(loop_run_until(loop, &peer.over, 5000));
        ck_assert_msg(strncmp(peer.why, want, strlen(want)) == 0, "%s: %s", refused[i].target, peer.why);
        ck_assert(!peer.opened);
    }
}
END_TEST

START_TEST(a_session)
{
    open_session(GOOD "&tty=true");
    ck_assert_str_eq(fake_text, FAKE_ALLOC " web tty=1 sh|-c|ls \xc3\xa4|");
    fake_exec.events->output(fake_exec.arg, 1, "hi\0\xff", 4);
    heard("{\"stdout\":{\"data\":\"aGkA/w==\"}}\n");
    fake_exec.events->output(fake_exec.arg, 2, "e", 1);
    heard("{\"stderr\":{\"data\":\"ZQ==\"}}\n");
    say("{}");
    say("{\"stdin\":{\"data\":\"AAEC\"},\"tty_size\":{\"height\":24,\"width\":80}}");
    ck_assert(fake_exec.in.len == 3 && memcmp(fake_exec.in.data, "\0\1\2", 3) == 0);
    ck_assert(fake_exec.rows == 24 && fake_exec.columns == 80);
    say("{\"tty_size\":{\"height\":0,\"width\":80}}");
    say("{\"tty_size\":{\"height\":99999999,\"width\":80}}");
    ck_assert(fake_exec.rows == 24); /* no size of a terminal */
    say("{\"stdin\":{\"data\":\"Aw==\",\"close\":true}}");
    ck_assert(fake_exec.in.len == 4 && fake_exec.input_closed);
    fake_exec.events->closed(fake_exec.arg, 1);
    heard("{\"stdout\":{\"close\":true}}\n");
    fake_exec.events->exited(fake_exec.arg, 0, 0);
    heard("{\"exited\":true,\"result\":{\"exit_code\":0}}\n");
    ended(WS_NORMAL, "");
    open_session(GOOD);
    fake_exec.events->exited(fake_exec.arg, 0, 9);
    heard("{\"exited\":true,\"result\":{\"exit_code\":137}}\n");
    ended(WS_NORMAL, "");
}
END_TEST

START_TEST(handshake_first)
{
    static char token[20000];

    open_session(GOOD "&ws_handshake=true");
    ck_assert_ptr_null(fake_exec.x); /* nobody has said who it is */
    say("{\"version\":1,\"auth_token\":\"secret\"}");
    ck_assert_ptr_nonnull(fake_exec.x);
    fake_exec.events->exited(fake_exec.arg, 3, 0);
    ended(WS_NORMAL, "");
    open_session(GOOD "&ws_handshake=true");
    say("{\"version\":2,\"auth_token\":\"\"}");
    ended(WS_POLICY, "unsupported version of the WebSocket handshake");
    open_session(GOOD "&ws_handshake=true");
    memset(token, 'x', sizeof(token) - 1);
    struct buf b = BUF_INIT(32 << 10);
    buf_printf(&b, "{\"version\":1,\"auth_token\":\"%s\"}", token);
    say(buf_str(&b));
    buf_done(&b);
    ck_assert(loop_run_until(loop, &peer.over, 5000));
    ck_assert_uint_eq(peer.code, WS_POLICY);
}
END_TEST

START_TEST(what_is_no_message_ends_the_session)
{
    static const char *const bad[] = {"", "hello", "[]", "null", "{\"stdin\":{\"data\":\"!\"}}",
                                      "{\"stdin\":7}", "{\"tty_size\":{\"height\":\"x\"}}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        open_session(GOOD);
        ws_send(peer.ws, bad[i], strlen(bad[i]));
        ck_assert_msg(loop_run_until(loop, &peer.over, 5000), "%s", bad[i]);
        ck_assert_uint_eq(peer.code, WS_POLICY);
        turns(2);
        ck_assert_ptr_null(fake_exec.x);
    }
}
END_TEST

START_TEST(failures_are_told_by_a_close_frame)
{
    struct err e = ERR_INIT;

    open_session(GOOD);
    err_set(&e, -ERR_NOT_FOUND, "no \"sh\" in the task's PATH");
    fake_exec.events->failed(fake_exec.arg, &e);
    ended(WS_POLICY, "no \"sh\" in the task's PATH");
    open_session(GOOD);
    err_clear(&e);
    err_set(&e, -ERR_INTERNAL, "the warden is gone");
    fake_exec.events->failed(fake_exec.arg, &e);
    ended(WS_INTERNAL, "the warden is gone");
    open_session(GOOD);
    fake_exec.write_rc = -ERR_LIMIT;
    say("{\"stdin\":{\"data\":\"AAEC\"}}");
    ended(WS_POLICY, "more input than the command reads");
    fake_exec.write_rc = 0;
}
END_TEST

/* A close frame has 123 bytes for words: the beginning and the cause, the rest comes as the
 * command's. */
START_TEST(a_long_failure_is_told_in_full)
{
    struct err e = ERR_INIT;

    open_session(GOOD);
    err_set(&e, -ERR_NOT_FOUND, "execute \"nosuch\" (%0150d): No such file or directory", 0);
    fake_exec.events->failed(fake_exec.arg, &e);
    ck_assert(loop_run_until(loop, &peer.over, 5000));
    ck_assert_ptr_eq(strstr(peer.why, "execute \"nosuch\""), peer.why);
    ck_assert_ptr_nonnull(strstr(peer.why, ": No such file or directory"));
    ck_assert_ptr_nonnull(
        strstr(buf_str(&peer.got), "{\"stderr\":{\"data\":\"ZXhlY3V0ZSAibm9zdWNoI"));
    turns(3);
}
END_TEST

START_TEST(a_peer_that_does_not_read_holds_the_task)
{
    static char block[32 << 10];
    size_t n = 0;

    open_session(GOOD);
    ws_read(peer.ws, false);
    for (; !fake_exec.paused && n < 4096; n++) {
        fake_exec.events->output(fake_exec.arg, 1, block, sizeof(block));
        turns(1);
    }
    ck_assert_msg(fake_exec.paused, "%zu MiB are kept", n * sizeof(block) >> 20);
    ws_read(peer.ws, true);
    for (int i = 0; fake_exec.paused && i < 1000; i++)
        turns(1);
    ck_assert(!fake_exec.paused);
    fake_exec.events->exited(fake_exec.arg, 0, 0);
    ended(WS_NORMAL, "");
    size_t line = strlen("{\"stdout\":{\"data\":\"\"}}\n") + (sizeof(block) + 2) / 3 * 4;
    ck_assert_uint_eq(peer.got.len, n * line + strlen("{\"exited\":true,\"result\":{\"exit_code\":0}}\n"));
}
END_TEST

START_TEST(a_task_that_does_not_read_holds_the_peer)
{
    static const char text[] = "{\"stdin\":{\"data\":\"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5\"}}";
    enum { BYTES = 30 };
    size_t sent = 0;

    open_session(GOOD);
    fake_exec.write_rc = -EAGAIN;
    for (; ws_queued(peer.ws) < 1 << 20 && sent < 1 << 20; sent++) {
        ws_send(peer.ws, text, sizeof(text) - 1);
        if (sent % 100 == 0)
            turns(1);
    }
    turns(10);
    ck_assert_uint_lt(sent, 1 << 20);
    ck_assert_uint_eq(fake_exec.in.len, BYTES); /* taken, and then not one more */
    fake_exec.events->writable(fake_exec.arg);
    turns(10);
    ck_assert_uint_eq(fake_exec.in.len, 2 * BYTES);
    fake_exec.write_rc = 0;
    fake_exec.events->writable(fake_exec.arg);
    for (int i = 0; fake_exec.in.len < sent * BYTES && i < 5000; i++)
        turns(1);
    ck_assert_uint_eq(fake_exec.in.len, sent * BYTES);
    for (size_t i = 0; i < fake_exec.in.len; i++)
        ck_assert_int_eq(fake_exec.in.data[i], "0123456789"[i % 10]);
}
END_TEST

START_TEST(no_such_allocation_or_task_is_a_reason_to_close)
{
    open_session("/v1/client/allocation/no/exec?task=web&" SH);
    ended(WS_POLICY, "Unknown allocation \"no\"");
    open_session(PATH "?task=no&ws_handshake=true&" SH);
    ended(WS_POLICY, "Unknown task name \"no\"");
}
END_TEST

START_TEST(a_client_that_forbids_commands_runs_none)
{
    struct agent_client c = {.disable_remote_exec = true};
    struct agent_config cfg = {.client = &c};
    api.cfg = &cfg;
    open_session(GOOD);
    ended(WS_POLICY, "Permission denied");
    c.disable_remote_exec = false;
    open_session(GOOD);
    ck_assert_ptr_nonnull(fake_exec.x);
}
END_TEST

START_TEST(who_leaves_ends_the_command)
{
    open_session(GOOD);
    ck_assert_ptr_nonnull(fake_exec.x);
    ws_close(peer.ws, WS_NORMAL, "");
    peer.over = true;
    for (int i = 0; fake_exec.x && i < 1000; i++)
        turns(1);
    ck_assert_ptr_null(fake_exec.x);
    open_session(GOOD); /* and teardown closes the server under it */
    ck_assert_ptr_nonnull(fake_exec.x);
}
END_TEST

TEST_SUITE_FIXTURE("exec", 30, setup, teardown, refusals_come_before_the_upgrade, a_session,
                   handshake_first, what_is_no_message_ends_the_session,
                   failures_are_told_by_a_close_frame, a_long_failure_is_told_in_full,
                   a_peer_that_does_not_read_holds_the_task,
                   a_task_that_does_not_read_holds_the_peer,
                   no_such_allocation_or_task_is_a_reason_to_close,
                   a_client_that_forbids_commands_runs_none, who_leaves_ends_the_command)
