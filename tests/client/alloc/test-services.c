/* SPDX-License-Identifier: Apache-2.0
 *
 * The registrations of an allocation: addresses by mode, references, canaries, and what is refused.
 */
#include "client/alloc/services.h"
#include "client/task/env.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/test.h"

#define ALLOC_ID "12345678-aaaa-bbbb-cccc-0123456789ab"
#define PREFIX "_nomad-task-" ALLOC_ID

struct fixture {
    struct env_input ei;
    struct services_in in;
    struct node node;
    struct allocation alloc;
    struct job job;
    struct task_group tg;
    struct task task;
};

static void
fixture_port(struct fixture *f, const char *label, const char *ip, int64_t value, int64_t to)
{
    struct allocated_port_mapping *p = mem_new(f, struct allocated_port_mapping);
    *p = (struct allocated_port_mapping){.label = label, .value = value, .to = to, .host_ip = ip};
    list_add(f, f->alloc.allocated_resources->shared->ports, p);
}

/* An allocation with the ports "http" (which its network maps to 80) and "raw", and one network. */
static struct fixture *
fixture_new(void *ctx)
{
    struct fixture *f = mem_new(ctx, struct fixture);
    f->node = (struct node){.id = "n1", .name = "host1", .datacenter = "dc9"};
    str_map_set(f, &f->node.attributes, "unique.network.ip-address", "10.0.0.9");
    f->job = (struct job){.id = "web", .name = "web"};
    f->tg.name = "front";
    str_map_set(f, &f->tg.meta, "level", "gold");
    f->task.name = "srv";
    str_map_set(f, &f->task.env, "COLOR", "blue");
    f->alloc = (struct allocation){.id = ALLOC_ID,
                                   .name = "web.front[3]",
                                   .job = &f->job,
                                   .job_id = "web",
                                   .namespace = "prod"};
    f->alloc.allocated_resources = mem_new(f, struct allocated_resources);
    f->alloc.allocated_resources->shared = mem_new(f, struct allocated_shared_resources);
    struct network_resource *n = mem_new(f, struct network_resource);
    n->ip = "10.0.0.5";
    list_add(f, f->alloc.allocated_resources->shared->networks, n);
    fixture_port(f, "http", "10.0.0.5", 21000, 80);
    fixture_port(f, "raw", "10.0.0.5", 21001, 0);
    f->ei = (struct env_input){.node = &f->node, .region = "global", .alloc = &f->alloc,
                               .group = &f->tg};
    f->in = (struct services_in){.alloc = &f->alloc, .group = &f->tg, .node = &f->node};
    return f;
}

static void
fixture_address(struct fixture *f, const char *v4, const char *v6)
{
    f->alloc.network_status = mem_new(f, struct alloc_network_status);
    f->alloc.network_status->address = v4;
    f->alloc.network_status->address_ipv6 = v6;
}

static struct service *
fixture_service(struct fixture *f, bool of_task, const char *name, const char *port)
{
    struct service *s = mem_new(f, struct service);
    *s = (struct service){.name = name, .port_label = port, .provider = "nomad"};
    if (of_task)
        list_add(f, f->task.services, s);
    else
        list_add(f, f->tg.services, s);
    return s;
}

static int
fixture_make(struct fixture *f, bool of_task, struct services_made *ret, struct err *e)
{
    f->ei.task = f->in.task = of_task ? &f->task : NULL;
    f->in.env = env_build(f, &f->ei);
    return services_make(f, &f->in, ret, e);
}

START_TEST(where_a_service_is_reached_by_mode)
{
    static const struct {
        const char *mode, *label, *custom;
        bool own; /* the allocation has a network of its own */
        const char *address;
        int64_t port;
        const char *error;
    } rows[] = {
        {"auto", "http", NULL, true, "10.0.0.5", 21000, NULL},
        {NULL, "http", NULL, false, "10.0.0.5", 21000, NULL},
        {"host", "raw", NULL, false, "10.0.0.5", 21001, NULL},
        {"host", "8080", NULL, false, "10.0.0.9", 8080, NULL},
        {"host", NULL, NULL, false, "10.0.0.5", 0, NULL},
        {"host", "dns", NULL, false, "", 0, "invalid port \"dns\": port label not found"},
        {"host", "0", NULL, false, "", 0, "invalid port \"0\": port must be >0"},
        {"host", "-3", NULL, false, "", 0, "invalid port \"-3\": port must be >0"},
        {"host", "70000", NULL, false, "", 0, "invalid port \"70000\": port must be at most 65535"},
        {"host", "12345678901234567890", NULL, false, "", 0, "port label not found"},
        {"host", "http", "a.example", false, "", 0,
         "cannot use custom advertise address with \"host\" address mode"},
        {"auto", "http", "a.example", false, "a.example", 21000, NULL},
        {"auto", "443", "a.example", false, "a.example", 443, NULL},
        {"auto", NULL, "a.example", false, "a.example", 0, NULL},
        {"auto", "dns", "a.example", false, "", 0,
         "invalid port \"dns\": not a valid port mapping or numeric port"},
        {"alloc", "http", NULL, true, "172.26.64.7", 80, NULL},
        {"alloc", "raw", NULL, true, "172.26.64.7", 21001, NULL},
        {"alloc", "9000", NULL, true, "172.26.64.7", 9000, NULL},
        {"alloc", NULL, NULL, true, "172.26.64.7", 0, NULL},
        {"alloc", "dns", NULL, true, "", 0, "invalid port \"dns\": port label not found"},
        {"alloc", "http", NULL, false, "", 0,
         "cannot use address_mode=\"alloc\": no allocation network status reported"},
        {"alloc_ipv6", "http", NULL, true, "fd00::7", 80, NULL},
        {"alloc_ipv6", "http", NULL, false, "", 0,
         "cannot use address_mode=\"alloc_ipv6\": no allocation network status reported"},
        {"driver", "http", NULL, true, "", 0,
         "cannot use address_mode=\"driver\": no driver network exists"},
        {"other", "http", NULL, true, "", 0, "invalid address mode \"other\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("t");
        struct fixture *f = fixture_new(ctx);
        struct err e = ERR_INIT;
        const char *address = NULL;
        int64_t port = -1;
        if (rows[i].own)
            fixture_address(f, "172.26.64.7", "fd00::7");
        const struct services_place p = {rows[i].mode, rows[i].label, rows[i].custom};
        int r = services_place(f, &f->in, &p, &address, &port, &e);
        ck_assert_msg((r < 0) == (rows[i].error != NULL), "row %zu: %s", i, e.text);
        if (rows[i].error) {
            ck_assert_msg(strstr(e.text, rows[i].error) != NULL, "row %zu: %s", i, e.text);
            ck_assert_int_eq(port, -1);
        } else {
            ck_assert_msg(str_eq(address, rows[i].address) && port == rows[i].port,
                          "row %zu: %s:%lld", i, address, (long long)port);
        }
    }
}
END_TEST

/* A task's port of its own network block, from before groups had them. */
START_TEST(ports_of_the_task_alone)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture_new(ctx);
    struct services_made l = {0};
    struct err e = ERR_INIT;
    struct port *port = mem_new(f, struct port);
    *port = (struct port){.label = "db", .value = 22000};
    struct network_resource *n = mem_new(f, struct network_resource);
    n->ip = "10.0.0.6";
    list_add(f, n->dynamic_ports, port);
    struct allocated_task_resources *r = mem_new(f, struct allocated_task_resources);
    list_add(f, r->networks, n);
    map_put(f, f->alloc.allocated_resources->tasks, "srv")->v = r;
    fixture_service(f, true, "db", "db");
    ck_assert_msg(fixture_make(f, true, &l, &e) == 0, "%s", e.text);
    ck_assert_str_eq(l.v[0].registration->address, "10.0.0.6");
    ck_assert_int_eq(l.v[0].registration->port, 22000);
}
END_TEST

START_TEST(registrations_of_group_and_task)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture_new(ctx);
    struct services_made l = {0};
    struct err e = ERR_INIT;
    struct service *s = fixture_service(f, false, "web-${NOMAD_META_level}", "http");
    list_add(f, s->tags, "dc=${node.datacenter}");
    list_add(f, s->tags, "${NOMAD_TASK_NAME}"); /* a group's has none */
    fixture_service(f, false, "elsewhere", "http")->provider = "consul";
    fixture_service(f, true, "db-${COLOR}", "raw");
    ck_assert_msg(fixture_make(f, false, &l, &e) == 0, "%s", e.text);
    ck_assert_msg(fixture_make(f, true, &l, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(l.n, 2);
    const struct service_registration *r = l.v[0].registration;
    ck_assert_str_eq(r->id, PREFIX "-group-front-web-gold-http");
    ck_assert_str_eq(r->service_name, "web-gold");
    ck_assert_str_eq(r->namespace, "prod");
    ck_assert_str_eq(r->node_id, "n1");
    ck_assert_str_eq(r->datacenter, "dc9");
    ck_assert_str_eq(r->job_id, "web");
    ck_assert_str_eq(r->alloc_id, ALLOC_ID);
    ck_assert_str_eq(r->tags.v[0], "dc=dc9");
    ck_assert_str_eq(r->tags.v[1], "${NOMAD_TASK_NAME}");
    ck_assert_str_eq(r->address, "10.0.0.5");
    ck_assert_int_eq(r->port, 21000);
    ck_assert_str_eq(l.v[1].registration->id, PREFIX "-srv-db-blue-raw");
}
END_TEST

START_TEST(tags_of_a_canary_until_it_is_promoted)
{
    static const struct {
        bool canary, has;
        const char *tag;
    } rows[] = {{false, true, "live"}, {true, true, "new"}, {true, false, "live"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("t");
        struct fixture *f = fixture_new(ctx);
        struct services_made l = {0};
        struct err e = ERR_INIT;
        struct service *s = fixture_service(f, false, "web", "http");
        list_add(f, s->tags, "live");
        if (rows[i].has)
            list_add(f, s->canary_tags, "new");
        f->alloc.deployment_status = mem_new(f, struct alloc_deployment_status);
        f->alloc.deployment_status->canary = rows[i].canary;
        ck_assert_msg(fixture_make(f, false, &l, &e) == 0, "%s", e.text);
        ck_assert_uint_eq(l.v[0].registration->tags.n, 1);
        ck_assert_str_eq(l.v[0].registration->tags.v[0], rows[i].tag);
    }
}
END_TEST

START_TEST(what_cannot_be_registered)
{
    static const struct {
        const char *name, *port, *error;
    } rows[] = {
        {"", "http", "the name of service \"\" is \"\" here"},
        {"a b", "http", "must be of letters"},
        {"-web", "http", "must be of letters"},
        {"web-", "http", "must be of letters"},
        {"${NOMAD_META_none}", "http", "the name of service \"${NOMAD_META_none}\""},
        {"a234567890123456789012345678901234567890123456789012345678901234", "http", "63 at most"},
        {"web", "dns", "unable to get address for service \"web\": invalid port \"dns\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("t");
        struct fixture *f = fixture_new(ctx);
        struct services_made l = {0};
        struct err e = ERR_INIT;
        fixture_service(f, false, rows[i].name, rows[i].port);
        ck_assert_int_lt(fixture_make(f, false, &l, &e), 0);
        ck_assert_msg(strstr(e.text, rows[i].error) != NULL, "row %zu: %s", i, e.text);
        ck_assert_uint_eq(l.n, 0);
    }
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture_new(ctx);
    struct services_made l = {0};
    struct err e = ERR_INIT;
    fixture_service(f, false, "web", "http");
    fixture_service(f, false, "${NOMAD_JOB_ID}", "http");
    ck_assert_int_lt(fixture_make(f, false, &l, &e), 0);
    ck_assert_msg(strstr(e.text, "is there twice") != NULL, "%s", e.text);
}
END_TEST

START_TEST(checks_are_resolved_but_for_their_body)
{
    auto_mem void *ctx = mem_ctx("t");
    struct fixture *f = fixture_new(ctx);
    struct service *s = fixture_service(f, true, "web", "http");
    struct service_check *c = mem_new(f, struct service_check);
    *c = (struct service_check){.name = "${COLOR}", .path = "/${COLOR}", .body = "${COLOR}"};
    struct str_list values = {0};
    list_add(f, values, "${COLOR}");
    map_put(f, c->header, "X-${COLOR}")->v = values;
    list_add(f, s->checks, c);
    struct services_made l = {0};
    struct err e = ERR_INIT;
    ck_assert_msg(fixture_make(f, true, &l, &e) == 0, "%s", e.text);
    const struct service *r = l.v[0].block;
    ck_assert_str_eq(r->checks.v[0]->name, "blue");
    ck_assert_str_eq(r->checks.v[0]->path, "/blue");
    ck_assert_str_eq(r->checks.v[0]->body, "${COLOR}");
    ck_assert_str_eq(r->checks.v[0]->header.v[0].k, "X-blue");
    ck_assert_str_eq(r->checks.v[0]->header.v[0].v.v[0], "blue");
    ck_assert_str_eq(c->header.v[0].v.v[0], "${COLOR}"); /* the job's stays */
}
END_TEST

TEST_SUITE("services", where_a_service_is_reached_by_mode, ports_of_the_task_alone,
           registrations_of_group_and_task, tags_of_a_canary_until_it_is_promoted,
           what_cannot_be_registered, checks_are_resolved_but_for_their_body)
