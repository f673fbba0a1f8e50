/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API of a build with --enable-fault-injection: /v1/test/ (server/hook.h), for this machine
 * alone.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/api/api.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/hook.h"

/* The body as a value; NULL: answered. */
static struct value *
body_of(struct request *a)
{
    const char *peer = a->req->peer;
    struct err e = ERR_INIT;
    struct value *v = NULL;

    if (!str_prefix(peer, "127.") && !str_prefix(peer, "[::1]") && !str_prefix(peer, "::1") &&
        !str_eq(peer, "unix")) {
        reply_fail(a, 403, "/v1/test/ is for the machine of the agent alone");
        return NULL;
    }
    if (a->api->server == NULL) {
        reply_fail(a, 404, "/v1/test/ is for servers");
        return NULL;
    }
    if (a->req->body_len == 0)
        return value_map(a);
    if (json_decode_value(a, SLICE(a->req->body, a->req->body_len), BUDGET(1 << 20), &v, &e) < 0) {
        reply_fail(a, 400, "%s", e.text);
        return NULL;
    }
    if (v->kind == VALUE_MAP)
        return v;
    reply_fail(a, 400, "the body is no object");
    return NULL;
}

static void
routes_test_answered(void *arg, int status, const char *json)
{
    struct request *a = arg;

    http_reply(a->req, status, "application/json", json, strlen(json));
}

static void
ask_leader(struct request *a, const char *what)
{
    struct value *body = body_of(a);

    if (body != NULL)
        test_hook_ask(a->api->server, what, body, routes_test_answered, a);
}

static void
routes_test_step(struct request *a)
{
    ask_leader(a, "step");
}

static void
routes_test_scheduler(struct request *a)
{
    ask_leader(a, "scheduler");
}

static void
routes_test_broker(struct request *a)
{
    ask_leader(a, "broker");
}

static void
routes_test_ttl(struct request *a)
{
    ask_leader(a, "ttl");
}

static void
lossy_link(struct request *a)
{
    ask_leader(a, "link");
}

/* The rules of tests/lib/faults.h, under which the agent runs. */
static void
routes_test_disk(struct request *a)
{
    struct value *body = body_of(a);
    const struct value *rules = body != NULL ? value_get(body, "rules") : NULL;
    const char *text = rules != NULL && rules->kind == VALUE_STRING ? rules->str.s : "";
    const char *path = getenv("PADDOCK_FAULTS"), *slash = path != NULL ? strrchr(path, '/') : NULL;

    if (body == NULL)
        return;
    char *dir_name = slash != NULL ? mem_strndup(a, path, (size_t)(slash - path) + 1) : NULL;
    auto_fd int dir = dir_name != NULL ? open(dir_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir >= 0 && file_write_atomic(dir, slash + 1, text, strlen(text), 0600) == 0)
        reply_value(a, value_map(a));
    else
        reply_fail(a, 409,
                   "the agent does not run under tests/lib/faults.so with PADDOCK_FAULTS=FILE");
}

/* The process is gone, and with "lose_unsynced" what it wrote and did not sync: all of it, or by
 * "seed" a part. */
static void
routes_test_crash(struct request *a)
{
    struct value *body = body_of(a);
    const struct value *lose = body != NULL ? value_get(body, "lose_unsynced") : NULL;
    const struct value *seed = body != NULL ? value_get(body, "seed") : NULL;
    bool (*cut)(uint64_t seed) = (bool (*)(uint64_t))dlsym(RTLD_DEFAULT, "faults_cut");

    if (body == NULL)
        return;
    if (lose == NULL || lose->kind != VALUE_BOOL || !lose->b)
        (void)raise(SIGKILL);
    else if (cut == NULL || !cut(seed != NULL && seed->kind == VALUE_INT ? (uint64_t)seed->i : 0))
        reply_fail(a, 409,
                   "the agent does not run under tests/lib/faults.so with a disk in the rules of "
                   "PADDOCK_FAULTS");
}

static void
move_clock(struct request *a)
{
    ask_leader(a, "clock");
}

static void
state_hash(struct request *a)
{
    struct value *body = body_of(a);
    int64_t index = 0;

    if (body == NULL || !param_int(a, "index", &index))
        return;
    value_map_set(body, "index", value_int(body, index));
    test_hook_ask(a->api->server, "hash", body, routes_test_answered, a);
}

static void
routes_test_heard(struct request *a)
{
    ask_leader(a, "heard");
}

static void
routes_test_hold(struct request *a)
{
    struct value *body = body_of(a), *ret = value_map(a);

    if (body == NULL)
        return;
    const struct value *point = value_get(body, "point"), *count = value_get(body, "count");
    if (point == NULL || point->kind != VALUE_STRING || strchr(point->str.s, ':') == NULL) {
        reply_fail(a, 400,
                   "\"point\" is \"METHOD:propose\", \"METHOD:apply\", \"METHOD:reply\", "
                   "\"plan:verify\", \"plan:propose\" or \"eval:dequeue\"");
        return;
    }
    int64_t n = count != NULL && count->kind == VALUE_INT ? count->i : 1;
    uint64_t id = test_hook_rule(point->str.s, value_get(body, "match"), n);
    value_map_set(ret, "ID", value_int(ret, (int64_t)id));
    reply_value(a, ret);
}

static void
routes_test_release(struct request *a)
{
    struct value *body = body_of(a);

    if (body == NULL)
        return;
    const struct value *id = value_get(body, "ID");
    if (id == NULL || id->kind != VALUE_INT || !test_hook_release((uint64_t)id->i))
        reply_fail(a, 404, "there is no such hold");
    else
        reply_value(a, value_map(a));
}

static void
routes_test_held(struct request *a)
{
    if (body_of(a) != NULL)
        reply_value(a, test_hook_held(a));
}

const struct route routes_test[] = {
    {VERB_WRITE | VERB_HERE, "/v1/test/hold", NULL, routes_test_hold, 0, "management"},
    {VERB_WRITE | VERB_HERE, "/v1/test/release", NULL, routes_test_release, 0, "management"},
    {VERB_GET | VERB_HERE, "/v1/test/held", NULL, routes_test_held, 0, "management"},
    {VERB_WRITE | VERB_HERE, "/v1/test/scheduler", NULL, routes_test_scheduler, 0, "management"},
    {VERB_WRITE | VERB_HERE, "/v1/test/scheduler/step", NULL, routes_test_step, 0, "management"},
    {VERB_WRITE | VERB_HERE, "/v1/test/link", NULL, lossy_link, 0, "management"},
    {VERB_WRITE | VERB_HERE, "/v1/test/disk", NULL, routes_test_disk, 0, "management"},
    {VERB_WRITE | VERB_HERE, "/v1/test/crash", NULL, routes_test_crash, 0, "management"},
    {VERB_WRITE | VERB_HERE, "/v1/test/ttl", NULL, routes_test_ttl, 0, "management"},
    {VERB_WRITE | VERB_HERE, "/v1/test/clock", NULL, move_clock, 0, "management"},
    {VERB_GET | VERB_HERE, "/v1/test/hash", NULL, state_hash, 0, "management"},
    {VERB_GET | VERB_HERE, "/v1/test/heard", NULL, routes_test_heard, 0, "management"},
    {VERB_GET | VERB_HERE, "/v1/test/broker", NULL, routes_test_broker, 0, "management"},
    ROUTES_END,
};
