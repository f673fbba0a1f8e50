/* SPDX-License-Identifier: Apache-2.0
 *
 * RPC over TCP and in process: replies, errors, deadlines, cancellation, reconnect, hostile bytes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "net/rpc.h"
#include "net/rpc_link_int.h"
#include "tests/lib/filter.h"
#include "tests/lib/test.h"

static struct loop *loop;
static struct rpc_call *parked;
static bool canceled, served;
static char svc[] = "svc";

static void
on_cancel(void *arg)
{
    struct rpc_call *c = arg;
    canceled = true;
    rpc_failf(c, -ERR_CANCELED, "gone");
}

/* Refuses a call and works on it, as some handlers do. */
static void
refuse_and_go_on(void *arg, struct rpc_call *call, const void *req)
{
    (void)arg;
    (void)req;
    rpc_failf(call, -ERR_NOT_FOUND, "refused");
    ck_assert_str_eq(mem_strdup(rpc_call_ctx(call), "still here"), "still here");
}

/* Job.GetJob: answers by id. */
static void
get_job(void *arg, struct rpc_call *call, const void *req)
{
    const struct id_request *r = req;
    served = true;
    ck_assert_ptr_eq(arg, svc);
    if (strcmp(r->id, "park") == 0) {
        parked = call;
        rpc_call_on_cancel(call, on_cancel, call);
        return;
    }
    if (strcmp(r->id, "within") == 0) {
        ck_assert(!rpc_call_handle(call, refuse_and_go_on, NULL, r));
        ck_assert_str_eq(r->id, "within"); /* it is there until the first handler returns */
        return;
    }
    if (strcmp(r->id, "missing") == 0) {
        rpc_failf(call, -ERR_NOT_FOUND, "job '%s' not found", r->id);
        return;
    }
    struct job *j = mem_new(rpc_call_ctx(call), struct job);
    const struct rpc_envelope *env = rpc_call_envelope(call);
    j->id = r->id;
    if (strcmp(r->id, "envelope") == 0)
        j->id = mem_printf(j, "%s %s %s %d %d %d %d", env->region, env->namespace, env->auth_token,
                           (int)env->hops, env->stale, (int)env->min_index, (int)env->wait);
    struct query_meta *m = mem_new(rpc_call_ctx(call), struct query_meta);
    m->index = 42;
    struct job_response *resp = mem_new(rpc_call_ctx(call), struct job_response);
    resp->job = j;
    resp->meta = m;
    rpc_reply(call, resp);
}

/* Alloc.GetAllocs: answers how many were asked for. */
static void
get_allocs(void *arg, struct rpc_call *call, const void *req)
{
    const struct alloc_get_allocs_request *r = req;
    struct alloc_get_allocs_response resp = {.handled = r->alloc_ids.n};
    ck_assert_ptr_eq(arg, svc);
    ck_assert_ptr_nonnull(rpc_call_encoded(call));
    rpc_reply(call, &resp);
}

static const struct rpc_service services[] = {{RPC_JOB_GET_JOB, get_job}, {RPC_ALLOC_GET_ALLOCS, get_allocs}};

struct got {
    bool done;
    int code, n;
    uint64_t index;
    char id[64], text[ERR_TEXT_MAX];
};

static void
got_job(void *arg, const struct err *e, const void *resp)
{
    struct got *g = arg;
    const struct job_response *r = resp;
    g->done = true;
    g->n++;
    if (e) {
        g->code = e->code;
        snprintf(g->text, sizeof(g->text), "%s", e->text);
        return;
    }
    g->index = r->meta->index;
    snprintf(g->id, sizeof(g->id), "%s", r->job->id);
}

static uint64_t
call(struct rpc_client *c, const char *id, int64_t timeout_ms, struct got *g)
{
    struct id_request req = {.id = id};
    uint64_t n = rpc_send(c, &(struct rpc_request){RPC_JOB_GET_JOB, &req, NULL, timeout_ms}, got_job, g);
    ck_assert(!g->done);
    return n;
}

#define SERVER "server.global.nomad"
static struct rpc_server *server, *second;

static struct rpc_client *
client_new(bool local)
{
    struct err e = ERR_INIT;
    if (local)
        return rpc_local(loop, services, ARRAY_LEN(services), svc);
    server = rpc_listen(loop, &(struct addr){.host = "127.0.0.1"}, services, ARRAY_LEN(services), svc, &e);
    rpc_server_secure(server, TEST_FILTER, true);
    ck_assert_msg(server != NULL, "%s", e.text);
    char addr[64];
    snprintf(addr, sizeof(addr), "127.0.0.1:%u", rpc_server_port(server));
    const char *v[] = {addr};
    struct str_list l = {v, 1};
    const struct dialer dialer = {.loop = loop, .filter = TEST_FILTER, .name = SERVER};
    struct rpc_client *c = rpc_dial(&dialer, &l, &e);
    ck_assert_ptr_nonnull(c);
    return c;
}

static void
setup(void)
{
    loop = loop_new();
}

static void
teardown(void)
{
    rpc_server_close(server);
    rpc_server_close(second);
    loop_free(loop);
}

/* Each case runs over TCP (0) and in process (1). */
START_TEST(replies_and_errors)
{
    struct rpc_client *c = client_new(_i);
    struct got a = {0}, b = {0}, d = {0};
    call(c, "web", 0, &a);
    call(c, "missing", 0, &b);
    struct id_request req = {.id = "x"};
    rpc_send(c, &(struct rpc_request){RPC_NODE_GET_NODE, &req, NULL, 0}, got_job, &d);
    ck_assert(loop_run_until(loop, &d.done, 5000));
    ck_assert(a.done && b.done);
    ck_assert_int_eq(a.code, 0);
    ck_assert_str_eq(a.id, "web");
    ck_assert_uint_eq(a.index, 42);
    ck_assert_int_eq(b.code, -ERR_NOT_FOUND);
    ck_assert_str_eq(b.text, "job 'missing' not found");
    ck_assert_int_eq(d.code, -ERR_METHOD);
    rpc_client_close(c);
}
END_TEST

START_TEST(deadline_passes_on_both_sides)
{
    struct rpc_client *c = client_new(_i);
    struct got g = {0};
    call(c, "park", 50, &g);
    ck_assert(loop_run_until(loop, &g.done, 5000));
    ck_assert_int_eq(g.code, -ERR_TIMEOUT);
    ck_assert(loop_run_until(loop, &canceled, 5000));
    rpc_client_close(c);
    ck_assert_int_eq(g.n, 1);
}
END_TEST

START_TEST(a_call_stays_until_its_handler_returns)
{
    struct rpc_client *c = client_new(_i);
    struct got later = {0}, within = {0};
    call(c, "park", 60000, &later);
    call(c, "within", 60000, &within);
    ck_assert(loop_run_until(loop, &within.done, 5000));
    ck_assert_int_eq(within.code, -ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(parked);
    rpc_call_on_cancel(parked, NULL, NULL);
    ck_assert(!rpc_call_handle(parked, refuse_and_go_on, NULL, NULL));
    ck_assert(loop_run_until(loop, &later.done, 5000));
    ck_assert_int_eq(later.code, -ERR_NOT_FOUND);
    rpc_client_close(c);
}
END_TEST

START_TEST(cancel_reaches_the_handler)
{
    struct rpc_client *c = client_new(_i);
    struct got g = {0};
    uint64_t id = call(c, "park", 0, &g);
    while (!served) {
        bool never = false;
        loop_run_until(loop, &never, 1);
    }
    rpc_cancel(c, id);
    rpc_cancel(c, 12345);
    ck_assert(!g.done);
    ck_assert(loop_run_until(loop, &g.done, 5000));
    ck_assert_int_eq(g.code, -ERR_CANCELED);
    ck_assert(loop_run_until(loop, &canceled, 5000));
    rpc_client_close(c);
}
END_TEST

enum { IDS = 4000, LARGE = 3 * RPC_LARGE };

static void
got_allocs(void *arg, const struct err *e, const void *resp)
{
    struct got *g = arg;
    g->done = true;
    g->n++;
    g->code = e != NULL ? e->code : 0;
    g->index = e == NULL ? ((const struct alloc_get_allocs_response *)resp)->handled : 0;
}

static uint64_t
call_large(struct rpc_client *c, const struct buf *encoded, struct got *g)
{
    struct rpc_request q = {.id = RPC_ALLOC_GET_ALLOCS, .encoded = encoded};
    return rpc_send(c, &q, got_allocs, g);
}

/* They are given up and their connections close while a worker has them. */
START_TEST(large_requests_are_decoded_by_a_worker)
{
    auto_mem void *tmp = mem_ctx("large");
    struct rpc_client *c = client_new(_i);
    struct alloc_get_allocs_request req = {0};
    struct got right = {0}, wrong = {0}, small = {0}, left = {0}, cut = {0};
    struct buf good, bad = BUF_INIT(LARGE);
    for (int i = 0; i < IDS; i++)
        list_add(tmp, req.alloc_ids, "11111111-1111-4111-8111-111111111111");
    rpc_encode(&good, RPC_ALLOC_GET_ALLOCS, &req);
    ck_assert_uint_gt(good.len, RPC_LARGE);
    memset(buf_reserve(&bad, LARGE), 0xc1, LARGE); /* no byte of msgpack */
    bad.len = LARGE;
    call_large(c, &good, &right);
    call_large(c, &bad, &wrong);
    call(c, "web", 0, &small);
    rpc_cancel(c, call_large(c, &good, &left));
    ck_assert(loop_run_until(loop, &right.done, 5000) && loop_run_until(loop, &wrong.done, 5000));
    ck_assert(loop_run_until(loop, &left.done, 5000) && loop_run_until(loop, &small.done, 5000));
    ck_assert_int_eq(right.code, 0);
    ck_assert_uint_eq(right.index, IDS);
    ck_assert_int_eq(wrong.code, -ERR_INVALID);
    ck_assert_str_eq(small.id, "web");
    ck_assert_int_eq(left.code, -ERR_CANCELED);
    call_large(c, &good, &cut);
    rpc_client_close(c);
    ck_assert(cut.n == 1 && cut.code == -ERR_CANCELED);
    ck_assert(right.n == 1 && wrong.n == 1 && small.n == 1 && left.n == 1);
    buf_done(&good);
    buf_done(&bad);
}
END_TEST

START_TEST(closing_the_client_ends_everything)
{
    struct rpc_client *c = client_new(_i);
    struct got g = {0};
    call(c, "park", 0, &g);
    while (!served) {
        bool never = false;
        loop_run_until(loop, &never, 1);
    }
    rpc_client_close(c);
    ck_assert_int_eq(g.n, 1);
    ck_assert_int_eq(g.code, -ERR_CANCELED);
    ck_assert(loop_run_until(loop, &canceled, 5000));
}
END_TEST

START_TEST(many_calls_at_once)
{
    struct rpc_client *c = client_new(_i);
    static struct got g[RPC_INFLIGHT_MAX + 1];
    for (int i = 0; i <= RPC_INFLIGHT_MAX; i++)
        call(c, "web", 0, &g[i]);
    for (int i = 0; i < RPC_INFLIGHT_MAX; i++)
        ck_assert(loop_run_until(loop, &g[i].done, 10000));
    ck_assert(loop_run_until(loop, &g[RPC_INFLIGHT_MAX].done, 10000));
    ck_assert_int_eq(g[0].code, 0);
    ck_assert_int_eq(g[RPC_INFLIGHT_MAX - 1].code, 0);
    ck_assert_int_eq(g[RPC_INFLIGHT_MAX].code, _i ? 0 : -ERR_BUSY);
    rpc_client_close(c);
}
END_TEST

START_TEST(reconnects_when_the_server_returns)
{
    struct rpc_client *c = client_new(false);
    struct err e = ERR_INIT;
    uint16_t port = rpc_server_port(server);
    struct got a = {0}, b = {0}, d = {0};
    call(c, "park", 0, &a);
    while (!served) {
        bool never = false;
        loop_run_until(loop, &never, 1);
    }
    rpc_server_close(server);
    server = NULL;
    ck_assert(loop_run_until(loop, &a.done, 5000));
    ck_assert_int_eq(a.code, -ERR_CLOSED); /* it was sent: not repeated */
    call(c, "web", 0, &b);
    bool never = false;
    loop_run_until(loop, &never, 60);
    ck_assert(!b.done);
    server = rpc_listen(loop, &(struct addr){.host = "127.0.0.1", .port = port}, services, 1, svc, &e);
    rpc_server_secure(server, TEST_FILTER, true);
    ck_assert_msg(server != NULL, "%s", e.text);
    ck_assert(loop_run_until(loop, &b.done, 10000));
    ck_assert_str_eq(b.id, "web");
    rpc_server_close(server);
    server = NULL;
    call(c, "web", 200, &d);
    ck_assert(loop_run_until(loop, &d.done, 5000));
    ck_assert(d.code == -ERR_UNAVAILABLE || d.code == -ERR_CLOSED);
    rpc_client_close(c);
}
END_TEST

/* --- several servers --- */

static const char *
listening(struct rpc_server **s, char addr[64])
{
    struct err e = ERR_INIT;
    *s = rpc_listen(loop, &(struct addr){.host = "127.0.0.1"}, services, 1, svc, &e);
    rpc_server_secure(*s, TEST_FILTER, true);
    ck_assert_msg(*s != NULL, "%s", e.text);
    snprintf(addr, 64, "127.0.0.1:%u", rpc_server_port(*s));
    return addr;
}

static struct rpc_client *
client_of(const char *addr)
{
    struct err e = ERR_INIT;
    struct str_list l = {&addr, 1};
    const struct dialer dialer = {.loop = loop, .filter = TEST_FILTER, .name = SERVER};
    struct rpc_client *c = rpc_dial(&dialer, &l, &e);
    ck_assert_ptr_nonnull(c);
    return c;
}

START_TEST(other_servers_are_learned_and_the_first_is_kept)
{
    char a[64], b[64];
    struct rpc_client *c = client_of(listening(&server, a));
    const char *both[] = {a, listening(&second, b)}, *bad[] = {b, "unix:///etc/x"}, *worse[] = {"a:99999"};
    struct err e = ERR_INIT, e2 = ERR_INIT;
    struct got g[4] = {0};
    auto_mem void *ctx = mem_ctx("test");

    ck_assert_int_eq(rpc_servers(c, ctx).n, 1);
    ck_assert_int_eq(rpc_set_servers(c, &(struct str_list){bad, 2}, &e), -ERR_INVALID);
    ck_assert_int_eq(rpc_set_servers(c, &(struct str_list){worse, 1}, &e2), -ERR_INVALID);
    ck_assert_int_eq(rpc_servers(c, ctx).n, 1);
    e = (struct err)ERR_INIT;
    ck_assert_int_eq(rpc_set_servers(c, &(struct str_list){both, 2}, &e), 1);
    ck_assert_int_eq(rpc_set_servers(c, &(struct str_list){both, 2}, &e), 0);
    ck_assert_int_eq(rpc_servers(c, ctx).n, 2);
    call(c, "web", 0, &g[0]);
    ck_assert(loop_run_until(loop, &g[0].done, 5000));
    ck_assert_int_eq(g[0].code, 0);
    uint16_t port = rpc_server_port(server);
    rpc_server_close(server); /* the one of the configuration */
    server = NULL;
    for (int i = 1; i < 3; i++) { /* the first may have been under way when the connection broke */
        call(c, "web", 0, &g[i]);
        ck_assert(loop_run_until(loop, &g[i].done, 5000));
    }
    ck_assert_int_eq(g[2].code, 0);
    /* the other one alone is told, and goes: the configuration's is asked again */
    const char *one[] = {b};
    ck_assert_int_eq(rpc_set_servers(c, &(struct str_list){one, 1}, &e), 1);
    server = rpc_listen(loop, &(struct addr){.host = "127.0.0.1", .port = port}, services, 1, svc, &e);
    rpc_server_secure(server, TEST_FILTER, true);
    ck_assert_msg(server != NULL, "%s", e.text);
    rpc_server_close(second);
    second = NULL;
    do {
        g[3] = (struct got){0};
        call(c, "web", 0, &g[3]);
        ck_assert(loop_run_until(loop, &g[3].done, 5000));
    } while (g[3].code == -ERR_CLOSED);
    ck_assert_int_eq(g[3].code, 0);
    rpc_client_close(c);
}
END_TEST

START_TEST(a_client_changes_servers_and_its_reads_go_on)
{
    char a[64], b[64];
    struct rpc_client *c = client_of(listening(&server, a));
    const char *one[] = {listening(&second, b)};
    struct err e = ERR_INIT;
    struct got g = {0}, h = {0};

    call(c, "park", 0, &g);
    bool never = false;
    while (!served)
        loop_run_until(loop, &never, 1);
    ck_assert_int_eq(rpc_set_servers(c, &(struct str_list){one, 1}, &e), 1);
    served = false;
    rpc_client_rebalance(c);
    while (!served || !canceled) /* it came again, over another connection */
        loop_run_until(loop, &never, 1);
    ck_assert(!g.done);
    rpc_call_on_cancel(parked, NULL, NULL);
    rpc_failf(parked, -ERR_NOT_FOUND, "asked again");
    ck_assert(loop_run_until(loop, &g.done, 5000));
    ck_assert_str_eq(g.text, "asked again");
    ck_assert_int_eq(g.n, 1);
    rpc_server_close(server);
    server = NULL;
    call(c, "web", 0, &h); /* nothing is left of the first one */
    ck_assert(loop_run_until(loop, &h.done, 5000));
    ck_assert_int_eq(h.code, 0);
    rpc_client_close(c);
}
END_TEST

/* Listens, and nobody accepts. */
static int
mute_listener(int backlog, struct sockaddr_in *sin, char addr[64])
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t n = sizeof(*sin);
    *sin = (struct sockaddr_in){.sin_family = AF_INET};
    sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)sin, n), 0);
    ck_assert_int_eq(listen(fd, backlog), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)sin, &n), 0);
    snprintf(addr, 64, "127.0.0.1:%u", ntohs(sin->sin_port));
    return fd;
}

/* More than wait to be accepted: what else connects is not answered. */
static void
fill_backlog(const struct sockaddr_in *sin, int fds[4])
{
    for (size_t i = 0; i < 4; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fds[i], (const struct sockaddr *)sin, sizeof(*sin));
    }
}

START_TEST(an_address_that_does_not_answer_is_asked_anew)
{
    struct sockaddr_in sin;
    char a[64];
    int fds[4], full = mute_listener(0, &sin, a);
    struct got g = {0};

    fill_backlog(&sin, fds);
    struct rpc_client *c = client_of(a);
    int64_t begin = clock_mono_ns();
    call(c, "web", 60000, &g);
    ck_assert(loop_run_until(loop, &g.done, 30000)); /* the kernel asks for two minutes */
    ck_assert_int_lt(g.code, 0);
    ck_assert_int_ge(clock_mono_ns() - begin, (RPC_CONNECT_MS - 100) * NS_PER_MS);
    rpc_client_close(c);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    close(full);
}
END_TEST

START_TEST(a_server_that_does_not_take_the_connection_is_left)
{
    struct sockaddr_in sin;
    char a[64], b[64];
    int fds[4], full = mute_listener(0, &sin, a);
    struct err e = ERR_INIT;
    struct got g = {0};

    fill_backlog(&sin, fds);
    struct rpc_client *c = client_of(listening(&server, b));
    const char *first[] = {a};
    ck_assert_int_eq(rpc_set_servers(c, &(struct str_list){first, 1}, &e), 1);
    int64_t begin = clock_mono_ns();
    call(c, "web", 9000, &g);
    ck_assert(loop_run_until(loop, &g.done, 10000));
    ck_assert_msg(g.code == 0, "%s", g.text);
    ck_assert_int_ge(clock_mono_ns() - begin, (RPC_CONNECT_MS - 100) * NS_PER_MS);
    rpc_client_close(c);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    close(full);
}
END_TEST

/* A handshake that has no answer is no connection. */
#ifdef TEST_OVER_TLS
#define MUTE_CODE (-ERR_UNAVAILABLE)
#else
#define MUTE_CODE (-ERR_TIMEOUT)
#endif

START_TEST(a_server_that_says_nothing_is_left)
{
    struct sockaddr_in sin;
    char a[64], b[64];
    int mute = mute_listener(4, &sin, a);
    struct err e = ERR_INIT;
    struct got g = {0}, h = {0}, i = {0};

    struct rpc_client *c = client_of(a);
    call(c, "web", 200, &g);
    ck_assert(loop_run_until(loop, &g.done, 5000));
    ck_assert_int_eq(g.code, MUTE_CODE);
    call(c, "web", 200, &h); /* there is no other: it may be slow */
    const char *one[] = {listening(&server, b)};
    ck_assert_int_eq(rpc_set_servers(c, &(struct str_list){one, 1}, &e), 1);
    ck_assert(loop_run_until(loop, &h.done, 5000));
    ck_assert_int_eq(h.code, MUTE_CODE);
    call(c, "web", 5000, &i);
    ck_assert(loop_run_until(loop, &i.done, 6000));
    ck_assert_msg(i.code == 0, "%s", i.text);
    rpc_client_close(c);
    close(mute);
}
END_TEST

static int
dial(uint16_t port)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
    return fd;
}

static bool
closes(struct rpc_server *s, const void *p, size_t n)
{
    int fd = dial(rpc_server_port(s));
    char c;
    ssize_t r = -1;
    ck_assert_int_eq(send(fd, p, n, MSG_NOSIGNAL), (ssize_t)n);
    for (int i = 0; i < 200 && r < 0; i++) {
        bool never = false;
        loop_run_until(loop, &never, 5);
        r = recv(fd, &c, 1, MSG_DONTWAIT);
        if (r < 0 && errno == ECONNRESET)
            r = 0;
    }
    close(fd);
    return r == 0;
}

/* The words with which a frame is refused, in a frame of `version`. */
static const char *
refused(const uint8_t *frame, size_t size, uint8_t version)
{
    static uint8_t back[1024];
    int fd = dial(rpc_server_port(server));
    ssize_t n = -1;
    memset(back, 0, sizeof(back));
    ck_assert_int_eq(send(fd, frame, size, 0), (ssize_t)size);
    while (n < 0) {
        bool never = false;
        loop_run_until(loop, &never, 5);
        n = recv(fd, back, sizeof(back) - 1, MSG_DONTWAIT);
    }
    ck_assert_int_ge(n, RPC_HEAD + 4);
    ck_assert_int_eq(back[4], RPC_KIND_ERROR);
    ck_assert_int_eq(back[5], version);
    close(fd);
    return (const char *)back + RPC_HEAD + 4;
}

START_TEST(hostile_bytes_close_the_connection)
{
    struct rpc_client *c = client_new(false);
    static const uint8_t wrong[] = "GET / HTTP/1.1\r\n\r\n";
    static const uint8_t huge[] = "P\xff\xff\xff\xff\x01\x02\x00\x0e\0\0\0\0\0\0\0\1\0\0\0\0";
    static const uint8_t kind[] = "P\0\0\0\0\x0a\x02\x00\x0e\0\0\0\0\0\0\0\1\0\0\0\0";
    static const uint8_t zero[] = "P\0\0\0\0\x01\x02\x00\x0e\0\0\0\0\0\0\0\0\0\0\0\0";
    static const uint8_t reply[] = "P\0\0\0\0\x02\x02\x00\x0e\0\0\0\0\0\0\0\1\0\0\0\0";
    ck_assert(closes(server, wrong, sizeof(wrong) - 1));
    ck_assert(closes(server, huge, sizeof(huge) - 1));
    ck_assert(closes(server, kind, sizeof(kind) - 1));
    ck_assert(closes(server, zero, sizeof(zero) - 1));
    ck_assert(closes(server, reply, sizeof(reply) - 1));
    static const uint8_t old_reply[] = "P\0\0\0\0\x02\x00\x00\x0e\0\0\0\0\0\0\0\1\0\0\0\0";
    ck_assert(closes(server, old_reply, sizeof(old_reply) - 1));
    /* a body that does not decode is an error of its call, not of the connection */
    static const struct {
        uint8_t n;
        uint8_t body[8];
        const char *why;
    } bad[] = {
        {3, {0, 0, 0xc1}, "rpc Job.GetJob"},       {0, {0}, "malformed envelope"},
        {1, {0}, "malformed envelope"},            {3, {0, 2, 0x80}, "malformed envelope"},
        {4, {0xff, 0xff, 0x80, 0x80}, "malformed envelope"},
        {4, {0, 1, 0xc1, 0x80}, "envelope"},       {2, {0, 0}, "rpc Job.GetJob"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint8_t frame[64] = "P\0\0\0\0\x01\x02\x00\x0e\0\0\0\0\0\0\0\1";
        frame[4] = bad[i].n;
        memcpy(frame + 1 + RPC_HEAD, bad[i].body, bad[i].n);
        ck_assert_ptr_nonnull(strstr(refused(frame, 1 + RPC_HEAD + bad[i].n, RPC_VERSION), bad[i].why));
    }
    rpc_client_close(c);
}
END_TEST

/* It is told so in a frame that it can read; nothing of its call is taken for what it is not. */
START_TEST(a_caller_of_another_version_is_refused_with_words)
{
    struct rpc_client *c = client_new(false);
    static const uint8_t versions[] = {0, 1, 3, 255};
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        /* a request of version 0: {1: "web"} */
        uint8_t frame[] = "P\0\0\0\6\x01\x00\x00\x0e\0\0\0\0\0\0\0\1\0\0\0\0\x81\1\xa3web";
        frame[6] = versions[i];
        const char *why = refused(frame, sizeof(frame) - 1, versions[i]);
        ck_assert_ptr_nonnull(strstr(why, "run the same release on both"));
    }
    ck_assert(!served);
    rpc_client_close(c);
}
END_TEST

/* The caller's words on itself reach the handler as they were said, and are bounded. */
START_TEST(calls_bear_an_envelope)
{
    struct rpc_client *c = client_new(_i);
    struct rpc_envelope env = {.region = "mars", .namespace = "n", .auth_token = "t", .hops = 2,
                               .stale = true, .min_index = 7, .wait = 5};
    struct id_request req = {.id = "envelope"};
    struct got g = {0}, large = {0};
    rpc_send(c, &(struct rpc_request){RPC_JOB_GET_JOB, &req, &env, 0}, got_job, &g);
    ck_assert(loop_run_until(loop, &g.done, 5000));
    ck_assert_str_eq(g.id, "mars n t 2 1 7 5");
    char *token = mem_array(NULL, char, RPC_ENVELOPE_MAX + 1);
    memset(token, 'x', RPC_ENVELOPE_MAX);
    env.auth_token = token;
    rpc_send(c, &(struct rpc_request){RPC_JOB_GET_JOB, &req, &env, 0}, got_job, &large);
    ck_assert(loop_run_until(loop, &large.done, 5000));
    ck_assert_int_eq(large.code, -ERR_LIMIT);
    talloc_free(token);
    rpc_client_close(c);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("rpc");
    TCase *tc = tcase_create("rpc");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, replies_and_errors, 0, 2);
    tcase_add_loop_test(tc, deadline_passes_on_both_sides, 0, 2);
    tcase_add_loop_test(tc, a_call_stays_until_its_handler_returns, 0, 2);
    tcase_add_loop_test(tc, cancel_reaches_the_handler, 0, 2);
    tcase_add_loop_test(tc, large_requests_are_decoded_by_a_worker, 0, 2);
    tcase_add_loop_test(tc, closing_the_client_ends_everything, 0, 2);
    tcase_add_loop_test(tc, many_calls_at_once, 0, 2);
    tcase_add_test(tc, reconnects_when_the_server_returns);
    tcase_add_test(tc, other_servers_are_learned_and_the_first_is_kept);
    tcase_add_test(tc, a_client_changes_servers_and_its_reads_go_on);
    tcase_add_test(tc, an_address_that_does_not_answer_is_asked_anew);
    tcase_add_test(tc, a_server_that_does_not_take_the_connection_is_left);
    tcase_add_test(tc, a_server_that_says_nothing_is_left);
    tcase_add_test(tc, hostile_bytes_close_the_connection);
    tcase_add_test(tc, a_caller_of_another_version_is_refused_with_words);
    tcase_add_loop_test(tc, calls_bear_an_envelope, 0, 2);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
