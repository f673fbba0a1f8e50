/* SPDX-License-Identifier: Apache-2.0
 *
 * The network of a group, with an engine that answers by a script: what it is asked for, in what
 * order, and what the agent is told.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"
#include "tests/lib/test.h"

#define ALLOC "12345678-aaaa-bbbb-cccc-0123456789ab"
#define AT "/containers/paddock-network-" ALLOC "/json"
#define CREATE "/containers/create?name=paddock-network-" ALLOC
#define MESSAGE(text) "{\"message\":\"" text "\"}"
#define STATE(running)                                                                             \
    "{\"Id\":\"abc\",\"Image\":\"i1\",\"State\":{\"Running\":" running                             \
    "},\"Config\":{\"Labels\":{\"paddock.owner\":\"/data/alloc\",\"paddock.network\":\"1\","       \
    "\"com.hashicorp.nomad.alloc_id\":\"" ALLOC                                                    \
    "\"}},\"NetworkSettings\":{\"Networks\":{\"bridge\":{\"IPAddress\":\"10.1.2.3\"}}}}"
#define GONE 404, MESSAGE("No such container")
enum { WAIT_MS = 20000 };

struct line { /* of a script: what is to come, and its answer */
    const char *method, *target;
    int status;
    const char *answer;
};

static struct {
    struct loop *loop;
    const struct line *script;
    size_t at, n;
    char dir[64];
    struct http_client *agent;
    bool done;
    int status;
    char body[512];
} t;

static struct engine_policy engine = {.name = "docker"};
static struct policy policy = {.alloc_dir = "/data/alloc"};
static struct hand hand = {.policy = &policy, .engine = &engine, .allocs = -1};
static struct hands hands = {&hand, 1};

static void
engine_serve(void *arg, struct http_req *r)
{
    (void)arg;
    ck_assert_msg(t.at < t.n, "one more: %s %s", http_method_name(r->method), r->target);
    const struct line *l = &t.script[t.at++];
    ck_assert_msg(str_eq(http_method_name(r->method), l->method) && str_eq(r->target, l->target),
                  "%zu: %s %s", t.at, http_method_name(r->method), r->target);
    http_reply(r, l->status, "application/json", l->answer, strlen(l->answer));
}

static void
clean(void)
{
    (void)dir_remove(AT_FDCWD, t.dir, NULL);
}

static void
setup(void)
{
    struct err e = ERR_INIT;
    (void)str_copy(t.dir, sizeof(t.dir), "/tmp/test-network.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(t.dir));
    ck_assert_int_eq(atexit(clean), 0);
    t.loop = hand.loop = loop_new();
    struct http_server *s =
        http_server_new(t.loop, &(struct http_server_config){.handler = engine_serve});
    engine.endpoint = mem_printf(t.loop, "unix://%s/engine", t.dir);
    ck_assert_int_eq(http_server_listen(s, engine.endpoint, 0, &e), 0);
    s = http_server_new(t.loop, &(struct http_server_config){.handler = hand_serve, .arg = &hands});
    const char *at = mem_printf(t.loop, "unix://%s/hand", t.dir);
    ck_assert_int_eq(http_server_listen(s, at, 0, &e), 0);
    t.agent = http_client_new(&(struct dialer){.loop = t.loop}, at, &e);
    hand.images = images_new(NULL, &hand, open(t.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    hand.pause_tar = network_image("/proc/self/exe", &hand.pause_len, &e);
    if (hand.pause_tar < 0) { /* the test itself is too large with a sanitizer */
        const char *small = mem_printf(t.loop, "%s/pause", t.dir);
        ck_assert_int_eq(file_write_atomic(AT_FDCWD, small, "x", 1, 0755), 0);
        err_clear(&e);
        hand.pause_tar = network_image(small, &hand.pause_len, &e);
    }
    ck_assert_msg(hand.pause_tar >= 0 && hand.pause_len % 512 == 0, "%s", e.text);
}

static void
on_done(void *arg, const struct err *e, const struct http_resp *r)
{
    (void)arg;
    ck_assert_msg(!e, "%s", e ? e->text : "");
    t.status = r->status;
    (void)snprintf(t.body, sizeof(t.body), "%s", r->body);
    t.done = true;
}

static void
play(const char *method, const char *body, const struct line *script, size_t n, int status)
{
    t.script = script;
    t.at = 0;
    t.n = n;
    t.done = false;
    http_send(t.agent,
              &(struct http_ask){.method = method,
                                 .target = mem_printf(t.loop, "/v1/%s/network/" ALLOC, engine.name),
                                 .body = body,
                                 .body_len = body ? strlen(body) : 0,
                                 .timeout_ms = WAIT_MS,
                                 .done = on_done});
    ck_assert(loop_run_until(t.loop, &t.done, WAIT_MS));
    ck_assert_msg(t.status == status && t.at == n, "%d after %zu of %zu: %s", t.status, t.at, n,
                  t.body);
}

#define MAKE(script, status) play("PUT", "{\"Mode\":\"bridge\"}", script, ARRAY_LEN(script), status)
#define REMOVE(script, status) play("DELETE", NULL, script, ARRAY_LEN(script), status)

START_TEST(made_and_removed)
{
    static const struct line first[] = {
        {"GET", AT, GONE},
        {"POST", CREATE, 404, MESSAGE("No such image")},
        {"POST", "/images/create?fromSrc=-&repo=localhost/paddock-pause-1", 200,
         "{\"status\":\"sha256:i1\"}"},
        {"GET", "/images/localhost/paddock-pause-1:latest/json", 200, "{\"Id\":\"sha256:i1\"}"},
        {"POST", CREATE, 201, "{\"Id\":\"abc\"}"},
        {"GET", AT, 200, STATE("false")},
        {"POST", "/containers/abc/start", 204, ""},
        {"GET", AT, 200, STATE("true")},
    };
    static const struct line again[] = {{"GET", AT, 200, STATE("true")}};
    static const struct line gone[] = {{"GET", AT, 200, STATE("true")},
                                       {"DELETE", "/containers/abc?force=1&v=1", 204, ""}};
    static const struct line none[] = {{"GET", AT, GONE}};
    setup();
    MAKE(first, 200);
    ck_assert_msg(strstr(t.body, "\"10.1.2.3\""), "%s", t.body);
    MAKE(again, 200);
    REMOVE(gone, 200);
    REMOVE(none, 200);
}
END_TEST

/* A container that a killed engine left can never be started: another one is made. */
START_TEST(what_does_not_start)
{
    static const struct line left[] = {
        {"GET", AT, 200, STATE("false")},
        {"POST", "/containers/abc/start", 500, MESSAGE("task abc: already exists")},
        {"DELETE", "/containers/abc?force=1&v=1", 204, ""},
        {"POST", CREATE, 201, "{\"Id\":\"abc\"}"},
        {"GET", AT, 200, STATE("false")},
        {"POST", "/containers/abc/start", 204, ""},
        {"GET", AT, 200, STATE("true")},
    };
    static const struct line taken[] = {
        {"GET", AT, 200, STATE("false")},
        {"POST", "/containers/abc/start", 500, MESSAGE("Bind: port is already allocated")},
        {"DELETE", "/containers/abc?force=1&v=1", 204, ""},
    };
    static const struct line foreign[] = {
        {"GET", AT, GONE},
        {"POST", CREATE, 409, MESSAGE("the name is in use")},
        {"GET", AT, 200, "{\"Id\":\"abc\",\"Config\":{\"Labels\":{}}}"},
    };
    static const struct line sick[] = {{"GET", AT, 500, MESSAGE("a bad day")}};
    setup();
    MAKE(left, 200);
    MAKE(taken, 409);
    MAKE(foreign, 422);
    MAKE(sick, 503);
    play("PUT", "{\"Mode\":\"host\"}", NULL, 0, 400);
    play("GET", NULL, NULL, 0, 405);
}
END_TEST

/* Podman, killed while it made one, has its name and no container. */
START_TEST(a_name_without_a_container)
{
    static const char by_name[] = "/containers/paddock-network-" ALLOC "?force=1&v=1";
    static const struct line left[] = {
        {"GET", AT, GONE},
        {"POST", CREATE, 500, MESSAGE("the container name is already in use by de3f")},
        {"GET", AT, 500, MESSAGE("no such container")},
        {"DELETE", by_name, 204, ""},
        {"POST", CREATE, 201, "{\"Id\":\"abc\"}"},
        {"GET", AT, 200, STATE("true")},
    };
    static const struct line gone[] = {{"GET", AT, GONE}, {"DELETE", by_name, 204, ""}};
    setup();
    engine.name = "podman";
    MAKE(left, 200);
    REMOVE(gone, 200);
}
END_TEST

TEST_SUITE("hand/network", made_and_removed, what_does_not_start, a_name_without_a_container)
