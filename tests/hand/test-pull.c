/* SPDX-License-Identifier: Apache-2.0
 *
 * Images on their way, from an engine of the test's own: who shares a pull and who does not; and in
 * whose name they are pulled.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"
#include "tests/lib/test.h"

#define ALLOC "12345678-aaaa-bbbb-cccc-0123456789ab"
enum { PULLS_MAX = 8, WAIT_MS = 20000 };

/* --- an engine that pulls when it is told to --- */

static struct {
    struct loop *loop;
    struct http_server *server;
    char dir[64], auth[PULLS_MAX][256];
    struct http_req *open[PULLS_MAX]; /* pulls that have not ended; NULL: the hand has gone away */
    size_t pulls;
    bool seen; /* one more has come, or one has been given up */
} fake;

static void
on_gone(void *user)
{
    struct http_req **at = user;
    http_stream_end(*at);
    *at = NULL;
    fake.seen = true;
}

static void
serve(void *arg, struct http_req *r)
{
    (void)arg;
    if (r->method == METHOD_GET) {
        http_reply(r, 404, "application/json", "{}", 2);
        return;
    }
    ck_assert_uint_lt(fake.pulls, PULLS_MAX);
    size_t i = fake.pulls++;
    const char *auth = http_header(r, "x-registry-auth");
    (void)str_copy(fake.auth[i], sizeof(fake.auth[i]), auth ? auth : "");
    fake.open[i] = r;
    r->user = &fake.open[i];
    r->on_close = on_gone;
    http_stream_start(r, 200, "application/json", NULL);
    http_stream_write(r, "{\"status\":\"x\"}\n", 15);
    fake.seen = true;
}

static void
end_pull(size_t i)
{
    http_stream_end(TAKE(fake.open[i]));
}

static struct engine_policy engine = {.name = "docker"};
static struct policy policy = {.alloc_dir = "/data/alloc"};
static struct hand hand = {.policy = &policy, .engine = &engine, .allocs = -1};

static void
clean(void)
{
    (void)dir_remove(AT_FDCWD, fake.dir, NULL);
}

static void
setup(void)
{
    struct err e = ERR_INIT;
    (void)str_copy(fake.dir, sizeof(fake.dir), "/tmp/test-pull.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(fake.dir));
    ck_assert_int_eq(atexit(clean), 0);
    fake.loop = loop_new();
    fake.server = http_server_new(fake.loop, &(struct http_server_config){.handler = serve});
    engine.endpoint = mem_printf(NULL, "unix://%s/socket", fake.dir);
    ck_assert_int_eq(http_server_listen(fake.server, engine.endpoint, 0, &e), 0);
    hand.loop = fake.loop;
    int dir = open(fake.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    hand.images = images_new(NULL, &hand, dir);
}

/* --- who waits --- */

struct want {
    struct pull *pull;
    bool done;
    char why[256];
};

static void
on_said(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

static void
on_done(void *arg, const char *why, bool moment)
{
    struct want *w = arg;
    (void)moment;
    ck_assert(!w->done);
    w->done = true;
    (void)str_copy(w->why, sizeof(w->why), why ? why : "");
}

static const struct pull_events events = {on_said, on_done};

static void
want(struct want *w, const char *image, const char *user, int64_t timeout_ms)
{
    struct hand_auth auth = {.username = user, .password = "p"};
    struct hand_task t = {.image = image, .auth = user ? &auth : NULL};
    t.pull_timeout = timeout_ms * NS_PER_MS;
    *w = (struct want){0};
    w->pull = pull_start(&hand, ALLOC, "web", &t, &events, w);
}

static void
wait_for(bool *flag)
{
    ck_assert(loop_run_until(fake.loop, flag, WAIT_MS));
}

static void
wait_pulls(size_t n)
{
    while (fake.pulls < n) {
        fake.seen = false;
        wait_for(&fake.seen);
    }
}

/* Everything before it has been seen: a pull of another image comes last. */
static void
settle_at(size_t n, struct want *last)
{
    want(last, "last:1", NULL, 0);
    wait_pulls(n + 1);
    ck_assert_uint_eq(fake.pulls, n + 1);
}

START_TEST(one_pull_for_the_same_name)
{
    struct want a, b, c, d, last;
    setup();
    want(&a, "r:5000/box:1", "one", 0);
    want(&b, "r:5000/box:1", "one", 0);
    want(&c, "r:5000/box:1", "two", 0);
    want(&d, "r:5000/box:1", NULL, 0);
    settle_at(3, &last); /* of one, two, nobody */
    ck_assert_str_ne(fake.auth[0], fake.auth[1]);
    ck_assert_str_eq(fake.auth[2], "");
    end_pull(0);
    wait_for(&b.done);
    ck_assert(a.done && !a.why[0] && !b.why[0] && !c.done && !d.done);
    http_stream_write(fake.open[1], "{\"error\":\"unauthorized: no\"}\n", 29);
    end_pull(1);
    wait_for(&c.done);
    ck_assert_msg(strstr(c.why, "unauthorized"), "%s", c.why);
    ck_assert(!d.done);
    end_pull(2);
    wait_for(&d.done);
    ck_assert_str_eq(d.why, "");
    want(&a, "r:5000/box:1", "one", 0); /* that one is over: it is asked for again */
    wait_pulls(5);
}
END_TEST

/* An engine without an end of a line, with documents of any depth, with errors that are none. */
START_TEST(an_engine_that_is_hostile)
{
    struct want a, b;
    setup();
    char *deep = mem_array(NULL, char, 60000);
    memset(deep, '[', 59999);
    deep[59999] = '\n';
    want(&a, "box:1", NULL, 0);
    wait_pulls(1);
    http_stream_write(fake.open[0], deep, 60000);
    http_stream_write(fake.open[0], "{\"error\":7,\"id\":[],\"progressDetail\":\"\"}\nnull\n", 46);
    end_pull(0);
    wait_for(&a.done);
    ck_assert_str_eq(a.why, ""); /* nothing of that is an error */
    want(&b, "box:2", NULL, 0);
    wait_pulls(2);
    for (size_t i = 0; i < 4 && fake.open[1]; i++)
        http_stream_write(fake.open[1], deep, 59999);
    wait_for(&b.done);
    ck_assert_msg(strstr(b.why, "Failed to pull `box:2`"), "%s", b.why);
    mem_free(deep);
}
END_TEST

START_TEST(the_last_one_takes_it_along)
{
    struct want a, b, c;
    setup();
    want(&a, "box:1", NULL, 0);
    want(&b, "box:1", NULL, 100); /* its job waits so long, the other's longer */
    want(&c, "box:1", NULL, 0);
    wait_pulls(1);
    pull_cancel(a.pull);
    wait_for(&b.done);
    ck_assert_msg(strstr(b.why, "image_pull_timeout"), "%s", b.why);
    ck_assert(fake.open[0] && !c.done);
    fake.seen = false;
    pull_cancel(c.pull);
    wait_for(&fake.seen);
    ck_assert(!fake.open[0] && !a.done && !c.done && !hand.transfers);
}
END_TEST

/* --- in whose name --- */

START_TEST(registries_of_images)
{
    auto_mem void *ctx = mem_ctx("t");
    static const char *const rows[][2] = {
        {"box:1", "https://index.docker.io/v1/"},
        {"team/box", "https://index.docker.io/v1/"},
        {"docker.io/team/box", "https://index.docker.io/v1/"},
        {"localhost/box", "localhost"},
        {"r:5000/box@sha256:00", "r:5000"},
        {"quay.io/a/b:1", "quay.io"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ck_assert_str_eq(registry_name(ctx, rows[i][0]), rows[i][1]);
}
END_TEST

static const struct value *
doc_of(void *ctx, const char *json)
{
    struct value *doc = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(json_decode_value(ctx, SLICE(json, strlen(json)), BUDGET(1 << 20), &doc, &e), 0);
    return doc;
}

START_TEST(what_the_file_says)
{
    auto_mem void *ctx = mem_ctx("t");
    static const struct {
        const char *json, *user, *password, *token, *helper; /* user NULL: nothing is said */
    } rows[] = {
        {"{}", NULL, "", "", ""},
        {"[]", NULL, "", "", ""},
        {"{\"auths\":7,\"credHelpers\":[],\"credsStore\":{}}", NULL, "", "", ""},
        {"{\"auths\":{\"r:5000\":{\"auth\":\"dTpwOnE=\"}}}", "u", "p:q", "", ""},
        {"{\"auths\":{\"https://r:5000/v1/\":{\"auth\":\"dTpw\"}}}", "u", "p", "", ""},
        {"{\"auths\":{\"r:5001\":{\"auth\":\"dTpw\"}}}", NULL, "", "", ""},
        {"{\"auths\":{\"r:5000\":{\"auth\":\"!!\"}},\"credsStore\":\"s\"}", NULL, "", "", "s"},
        {"{\"auths\":{\"r:5000\":{\"auth\":\"dQ==\"}}}", NULL, "", "", ""},
        {"{\"auths\":{\"r:5000\":{\"username\":\"a\",\"password\":\"b\"}}}", "a", "b", "", ""},
        {"{\"auths\":{\"r:5000\":{\"identitytoken\":\"t\"}}}", "", "", "t", ""},
        {"{\"auths\":{\"r:5000\":{}},\"credHelpers\":{\"r:5000\":\"h\"},\"credsStore\":\"s\"}",
         NULL, "", "", "h"},
        {"{\"credHelpers\":{\"other\":\"h\"},\"credsStore\":\"s\"}", NULL, "", "", "s"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *helper = NULL;
        const struct hand_auth *a =
            registry_in_file(ctx, doc_of(ctx, rows[i].json), "r:5000", &helper);
        ck_assert_msg((a != NULL) == (rows[i].user != NULL), "row %zu", i);
        ck_assert_msg(str_eq(helper, rows[i].helper), "row %zu: %s", i, helper);
        ck_assert_msg(!a || (str_eq(a->username, rows[i].user) &&
                             str_eq(a->password, rows[i].password) &&
                             str_eq(a->identity_token, rows[i].token)),
                      "row %zu", i);
    }
    const struct hand_auth *a =
        registry_of_helper(ctx, doc_of(ctx, "{\"Username\":\"<token>\",\"Secret\":\"t\"}"), "r");
    ck_assert(a && str_eq(a->identity_token, "t") && str_eq(a->username, ""));
    a = registry_of_helper(ctx, doc_of(ctx, "{\"Username\":\"u\",\"Secret\":\"s\"}"), "r");
    ck_assert(a && str_eq(a->username, "u") && str_eq(a->password, "s"));
    ck_assert(!registry_of_helper(ctx, doc_of(ctx, "{\"Username\":\"\",\"Secret\":\"\"}"), "r"));
    ck_assert(!registry_of_helper(ctx, doc_of(ctx, "[]"), "r"));
}
END_TEST

struct answer {
    bool done;
    char user[64], why[256];
};

static void
on_found(void *arg, const struct hand_auth *auth, const char *why)
{
    struct answer *a = arg;
    ck_assert(!a->done);
    a->done = true;
    (void)str_copy(a->user, sizeof(a->user), auth ? auth->username : "");
    (void)str_copy(a->why, sizeof(a->why), why ? why : "");
}

static void
write_config(const char *text)
{
    ck_assert_int_eq(file_write_atomic(AT_FDCWD, engine.auth_config, text, strlen(text), 0600), 0);
}

/* By the process beside, one after another. */
START_TEST(the_process_beside)
{
    struct err e = ERR_INIT;
    struct answer a[5] = {0};
    setup();
    engine.auth_config = mem_printf(NULL, "%s/config.json", fake.dir);
    write_config("{\"auths\":{\"r:5000\":{\"auth\":\"dTpw\"}},\"credHelpers\":"
                 "{\"h:1\":\"not-there-paddock\",\"h:2\":\"../../bin/sh\"}}");
    struct credentials *c = credentials_new(NULL, &hand, &e);
    ck_assert_msg(c, "%s", e.text);
    (void)credentials_find(c, "r:5000/a", on_found, &a[0]);
    (void)credentials_find(c, "h:1/a", on_found, &a[1]);
    credentials_cancel(credentials_find(c, "r:5000/a", on_found, &a[4]));
    (void)credentials_find(c, "h:2/a", on_found, &a[2]);
    (void)credentials_find(c, "other:1/a", on_found, &a[3]);
    wait_for(&a[3].done);
    ck_assert(!a[4].done);
    ck_assert_msg(str_eq(a[0].user, "u"), "%s", a[0].why);
    ck_assert_msg(strstr(a[1].why, "\"h:1\" failed with stderr: there is no such program"), "%s",
                  a[1].why);
    ck_assert_msg(strstr(a[2].why, "no name of a credential helper"), "%s", a[2].why);
    ck_assert(!a[3].user[0] && !a[3].why[0]);
    write_config("{{");
    a[0].done = a[1].done = false;
    (void)credentials_find(c, "r:5000/a", on_found, &a[0]);
    wait_for(&a[0].done);
    ck_assert_msg(strstr(a[0].why, "config.json"), "%s", a[0].why);
    ck_assert_int_eq(unlink(engine.auth_config), 0);
    (void)credentials_find(c, "r:5000/a", on_found, &a[1]);
    wait_for(&a[1].done);
    ck_assert_msg(strstr(a[1].why, "read \""), "%s", a[1].why);
}
END_TEST

TEST_SUITE("hand/pull", one_pull_for_the_same_name, an_engine_that_is_hostile,
           the_last_one_takes_it_along,
           registries_of_images, what_the_file_says, the_process_beside)
