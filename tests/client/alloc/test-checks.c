/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of services: what covers their ids, what health comes of them; and, with real tasks and a
 * service that this test is, that they are looked at, told, and restart what is ill.
 */
#include <string.h>
#include <unistd.h>

#include "api/service/service.h"
#include "api/terms.h"
#include "client/alloc/checks.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/http/http.h"
#include "tests/client/world.h"
#include "tests/lib/test.h"

/* --- pure --- */

struct block {
    struct allocation alloc;
    struct task_group tg;
    struct task task;
    struct node node;
    struct service service;
    struct service_check check;
    struct service_registration registration;
    struct check_restart restart;
};

static struct check_plan *
block_plan(void *ctx, struct block *b, bool of_task)
{
    struct check_plans l = {0};
    struct services_in in = {.alloc = &b->alloc, .group = &b->tg, .node = &b->node,
                             .task = of_task ? &b->task : NULL};
    b->service.checks = (struct service_check_list){0};
    list_add(ctx, b->service.checks, &b->check);
    checks_add(ctx, &in, &(struct service_made){&b->registration, &b->service}, &l);
    ck_assert_uint_eq(l.n, 1);
    return l.v[0];
}

static struct block
block_new(void)
{
    return (struct block){
        .alloc = {.id = "12345678-aaaa-bbbb-cccc-0123456789ab", .name = "web.g[0]"},
        .tg = {.name = "g"},
        .task = {.name = "t"},
        .service = {.name = "web", .port_label = "8080"},
        .check = {.type = "http", .path = "/", .interval = NS_PER_S, .timeout = NS_PER_S},
        .registration = {.id = "r", .service_name = "web"},
    };
}

START_TEST(an_id_covers_everything)
{
    auto_mem void *ctx = mem_ctx("t");
    enum { KINDS = 12 };
    const char *ids[KINDS + 1];
    struct str_list values = {0};
    list_add(ctx, values, "v");
    for (int k = 0; k <= KINDS; k++) {
        struct block b = block_new();
        switch (k) {
        case 1:
            b.alloc.id = "22345678-aaaa-bbbb-cccc-0123456789ab";
            break;
        case 2:
            b.service.name = "web2";
            break;
        case 3:
            b.service.port_label = "8081";
            break;
        case 4:
            b.check.body = "x";
            break;
        case 5:
            map_put(ctx, b.check.header, "h")->v = values;
            break;
        case 6:
            b.check.tls_skip_verify = true;
            break;
        case 7:
            b.check.timeout++;
            break;
        case 8:
            b.service.on_update = "ignore";
            break;
        case 9:
            b.check.path = "/x";
            break;
        case 10:
            b.check.method = "PUT";
            break;
        case 11:
            b.check.type = "tcp";
            break;
        default:
            break;
        }
        ids[k] = block_plan(ctx, &b, k == KINDS)->id;
        ck_assert_uint_eq(strlen(ids[k]), 64);
        for (int i = 0; i < k; i++)
            ck_assert_msg(!str_eq(ids[i], ids[k]), "%d is as %d", k, i);
    }
    struct block b = block_new();
    str_map_set(ctx, &b.node.attributes, "unique.network.ip-address", "10.0.0.9");
    ck_assert_str_eq(block_plan(ctx, &b, false)->id, ids[0]); /* but for the address */
}
END_TEST

START_TEST(where_a_check_looks)
{
    auto_mem void *ctx = mem_ctx("t");
    struct block b = block_new();
    str_map_set(ctx, &b.node.attributes, "unique.network.ip-address", "10.0.0.9");
    struct check_plan *p = block_plan(ctx, &b, false);
    ck_assert_str_eq(p->address, "10.0.0.9");
    ck_assert_int_eq(p->port, 8080);
    ck_assert_str_eq(p->name, "service: \"web\" check");
    ck_assert_ptr_null(p->restarts);
    b.check.port_label = "9000";
    b.check.task_name = "side";
    p = block_plan(ctx, &b, false);
    ck_assert_int_eq(p->port, 9000);
    ck_assert_str_eq(p->restarts, "side");
    b.service.address = "a.example";
    p = block_plan(ctx, &b, true);
    ck_assert_str_eq(p->address, "a.example");
    ck_assert_str_eq(p->restarts, "t");
    b.check.address_mode = "host"; /* not where others find it */
    ck_assert_str_eq(block_plan(ctx, &b, true)->address, "10.0.0.9");
    b.check.address_mode = "alloc";
    ck_assert_str_eq(block_plan(ctx, &b, true)->error,
                     "cannot use address_mode=\"alloc\": no allocation network status reported");
}
END_TEST

START_TEST(health_is_the_worst_of_what_counts)
{
    static const struct {
        const char *checks; /* + success, - failure, ? pending; in capitals below: readiness */
        const char *health;
    } rows[] = {
        {"", ""},         {"+", SERVICE_PASSING},  {"+?", SERVICE_PENDING}, {"?+", SERVICE_PENDING},
        {"+?-", SERVICE_FAILING}, {"-+", SERVICE_FAILING}, {"r", ""}, {"+r", SERVICE_PASSING},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct check_result r[3];
        const struct check_result *v[3];
        size_t n = strlen(rows[i].checks);
        for (size_t k = 0; k < n; k++) {
            char c = rows[i].checks[k];
            r[k] = (struct check_result){
                .mode = c == 'r' ? CHECK_READINESS : CHECK_HEALTHINESS,
                .status = c == '+' ? CHECK_SUCCESS : c == '?' ? CHECK_PENDING : CHECK_FAILURE};
            v[k] = &r[k];
        }
        ck_assert_msg(str_eq(checks_health(v, n), rows[i].health), "row %zu", i);
    }
}
END_TEST

START_TEST(when_failures_restart)
{
    auto_mem void *ctx = mem_ctx("t");
    struct block b = block_new();
    ck_assert_ptr_null(block_plan(ctx, &b, false)->restart);
    b.service.check_restart = &b.restart;
    ck_assert_ptr_null(block_plan(ctx, &b, false)->restart); /* a limit of 0 */
    b.restart = (struct check_restart){.limit = 3, .grace = {true, 5 * NS_PER_S}};
    struct check_plan *p = block_plan(ctx, &b, false);
    ck_assert(!checks_restarts(p, 100 * NS_PER_S, 102 * NS_PER_S - 1));
    ck_assert(checks_restarts(p, 100 * NS_PER_S, 102 * NS_PER_S));
    ck_assert(!checks_counts(p, 100 * NS_PER_S, 105 * NS_PER_S - 1));
    ck_assert(checks_counts(p, 100 * NS_PER_S, 105 * NS_PER_S));
    ck_assert(checks_counts(p, 200 * NS_PER_S, 105 * NS_PER_S)); /* a clock that was set back */
    b.restart.limit = INT64_MAX;
    ck_assert(!checks_restarts(block_plan(ctx, &b, false), 100 * NS_PER_S, INT64_MAX - 1));
}
END_TEST

/* --- with tasks --- */

struct ill {
    struct world w;
    struct http_server *http;
    int status;
    unsigned asked;
};

static void
on_request(void *arg, struct http_req *r)
{
    struct ill *f = arg;
    f->asked++;
    http_reply(r, f->status, "text/plain", "so so", 5);
}

static void
ill_serve(struct ill *f, uint16_t port)
{
    struct err e = ERR_INIT;
    f->http = http_server_new(f->w.loop,
                              &(struct http_server_config){.handler = on_request, .arg = f});
    ck_assert_msg(http_server_listen(f->http, "127.0.0.1", port, &e) == 0, "%s", e.text);
}

/* A client, an allocation whose service is this test, and a check every 100 ms. `check`: members
 * more. The port is free until the client's loop is there. */
static struct world_alloc *
ill_start(struct ill *f, int status, const char *check, const char *group)
{
    struct world *w = &f->w;
    world_start(w, geteuid());
    f->status = status;
    struct world_alloc *x = world_add(
        w, "service", "raw_exec", "{\"command\":\"/bin/sleep\",\"args\":[\"1000\"]}",
        mem_printf(w->ctx,
                   ",\"RestartPolicy\":{\"Attempts\":3,\"Delay\":1,\"Interval\":3600000000000,"
                   "\"Mode\":\"fail\"},\"Services\":[{\"Name\":\"web\",\"Provider\":\"nomad\","
                   "\"AddressMode\":\"auto\",\"Address\":\"127.0.0.1\",\"PortLabel\":\"1\","
                   "\"Checks\":[{\"Name\":\"c\",\"Type\":\"http\",\"Path\":\"/\","
                   "\"Interval\":100000000,\"Timeout\":10000000000%s}]}]%s",
                   check, group));
    world_client(w);
    ill_serve(f, 0);
    x->a->job->task_groups.v[0]->services.v[0]->port_label =
        mem_printf(w->ctx, "%d", http_server_port(f->http));
    return x;
}

static void
on_stopped(void *arg)
{
    *(bool *)arg = true;
}

/* The agent goes before the service does, so that it sees no failure. */
static void
ill_agent_stop(struct ill *f)
{
    bool stopped = false;
    client_stop(f->w.client, on_stopped, &stopped);
    ck_assert(loop_run_until(f->w.loop, &stopped, 10000));
    http_server_close(f->http);
    world_client_free(&f->w);
}

static void
ill_stop(struct ill *f)
{
    world_client_stop(&f->w);
    world_stop(&f->w);
}

static bool
has_health(const struct world_alloc *x, const char *health)
{
    return x->names && x->names->services.n == 1 &&
           str_eq(x->names->services.v[0]->health, health);
}

static unsigned
restarts(const struct world_alloc *x)
{
    return world_task(x) ? (unsigned)world_task(x)->restarts : 0;
}

START_TEST(health_goes_with_the_answers)
{
    struct ill f = {0};
    struct world_alloc *x = ill_start(&f, 200, "", "");
    world_until(&f.w, has_health(x, SERVICE_PENDING));
    world_until(&f.w, has_health(x, SERVICE_PASSING));
    unsigned told = x->told;
    unsigned asked = f.asked;
    world_until(&f.w, f.asked > asked + 3);
    ck_assert_uint_eq(x->told, told); /* nothing new */
    f.status = 500;
    world_until(&f.w, has_health(x, SERVICE_FAILING));
    ck_assert_uint_eq(restarts(x), 0);
    f.status = 204;
    world_until(&f.w, has_health(x, SERVICE_PASSING));
    http_server_close(f.http);
    world_until(&f.w, has_health(x, SERVICE_FAILING));
    ill_stop(&f);
}
END_TEST

START_TEST(an_agent_that_is_back_knows_the_health)
{
    struct ill f = {0};
    struct world_alloc *x = ill_start(&f, 200, "", "");
    uint16_t port = http_server_port(f.http);
    world_until(&f.w, has_health(x, SERVICE_PASSING) && world_status(x, "running"));
    ill_agent_stop(&f);
    mem_free(x->names);
    unsigned told = x->told;
    world_client(&f.w);
    ill_serve(&f, port);
    world_until(&f.w, x->told > told);
    ck_assert(has_health(x, SERVICE_PASSING));
    unsigned asked = f.asked;
    world_until(&f.w, f.asked > asked + 1);
    ck_assert_uint_eq(x->told, told + 1);
    http_server_close(f.http);
    ill_stop(&f);
}
END_TEST

#define RESTART ",\"CheckRestart\":{\"Limit\":2,\"Grace\":200000000}"

START_TEST(what_stays_ill_is_restarted)
{
    struct ill f = {0};
    struct world_alloc *x = ill_start(&f, 500, RESTART, "");
    world_until(&f.w, restarts(x) >= 2);
    const struct task_event *ev = world_event(x, "Restart Signaled");
    ck_assert_ptr_nonnull(ev);
    ck_assert_str_eq(ev->display_message, "healthcheck: check \"c\" unhealthy");
    f.status = 200;
    world_until(&f.w, has_health(x, SERVICE_PASSING));
    world_until(&f.w, str_eq(world_task(x)->state, "running"));
    unsigned before = restarts(x), asked = f.asked;
    world_until(&f.w, f.asked > asked + 5);
    ck_assert_uint_eq(restarts(x), before);
    f.status = 500; /* until the policy ends it */
    world_until(&f.w, world_status(x, "failed"));
    ck_assert_uint_eq(restarts(x), 3);
    http_server_close(f.http);
    ill_stop(&f);
}
END_TEST

START_TEST(a_deployment_waits_for_checks)
{
    struct ill f = {0};
    struct world_alloc *x =
        ill_start(&f, 500, "",
                  ",\"Update\":{\"MaxParallel\":1,\"HealthCheck\":\"checks\","
                  "\"MinHealthyTime\":300000000,\"HealthyDeadline\":600000000000}");
    x->a->deployment_id = "one";
    world_until(&f.w, world_status(x, "running") && has_health(x, SERVICE_FAILING));
    unsigned asked = f.asked;
    world_until(&f.w, f.asked > asked + 5);
    ck_assert(!x->last->deployment_status || !x->last->deployment_status->healthy.set);
    f.status = 200;
    world_until(&f.w, x->last->deployment_status && x->last->deployment_status->healthy.set);
    ck_assert(x->last->deployment_status->healthy.v);
    http_server_close(f.http);
    ill_stop(&f);
}
END_TEST

TEST_SUITE_TIMEOUT("checks", 90, an_id_covers_everything, where_a_check_looks,
           health_is_the_worst_of_what_counts, when_failures_restart, health_goes_with_the_answers,
           an_agent_that_is_back_knows_the_health, what_stays_ill_is_restarted,
           a_deployment_waits_for_checks)
