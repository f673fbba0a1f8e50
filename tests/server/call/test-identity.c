/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that only servers may make: a caller is what its certificate says.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "server/server.h"
#include "tests/lib/test.h"
#include "tests/lib/tls.h"
#include "tests/server/served.h"
#include "tests/server/util.h"

static struct world *w;
static struct rpc_server *listening;
static struct tls *own;
static struct test_pem ca;
static void *ctx;

static struct tls *
tls_of(const char *names)
{
    struct err e = ERR_INIT;
    struct test_pem p = test_cert(ctx, ca, names, 0, 10);
    struct tls *t = tls_new(&(struct tls_config){.ca = ca.cert,
                                                 .cert = p.cert,
                                                 .key = p.key,
                                                 .verify_server_hostname = true},
                            &e);
    ck_assert_msg(t != NULL, "%s", e.text);
    return t;
}

static void
setup(void)
{
    struct err e = ERR_INIT;
    size_t n;

    ctx = mem_ctx("test");
    ca = test_ca(ctx, "One CA");
    own = tls_of("server.global.nomad");
    world_verify_servers = true;
    w = world_open(tmp_dir());
    const struct rpc_service *v = server_services(w->server, &n);
    listening = rpc_listen(w->loop, &(struct addr){.host = "127.0.0.1"}, v, n, w->server, &e);
    ck_assert_msg(listening != NULL, "%s", e.text);
    rpc_server_secure(listening, tls_rpc(own), true);
}

static void
teardown(void)
{
    rpc_server_close(listening);
    world_close(w);
    tls_unref(own);
    talloc_free(ctx);
}

static struct rpc_client *
dial(const struct rpc_server *to, struct tls *t, bool falls_back)
{
    char addr[64];
    const char *v[] = {addr};
    struct err e = ERR_INIT;
    const struct dialer d = {.loop = w->loop,
                             .filter = tls_rpc(t),
                             .falls_back = falls_back,
                             .name = "server.global.nomad"};

    snprintf(addr, sizeof(addr), "127.0.0.1:%u", rpc_server_port(to));
    struct rpc_client *c = rpc_dial(&d, &(struct str_list){v, 1}, &e);
    ck_assert_msg(c != NULL, "%s", e.text);
    return c;
}

static struct err
ask_with(struct rpc_client *c, enum rpc_id id, const void *req, const struct rpc_envelope *env)
{
    struct answer *a = mem_new(w, struct answer);

    a->w = w;
    rpc_send(c, &(struct rpc_request){id, req, env, 15000}, answered, a);
    ck_assert(loop_run_until(w->loop, &a->done, 15000));
    return a->err;
}

static struct err
ask(struct rpc_client *c, enum rpc_id id, const void *req)
{
    return ask_with(c, id, req, NULL);
}

START_TEST(only_servers_ask_what_servers_ask)
{
    static const struct {
        const char *names; /* NULL: plain */
        bool may;
    } callers[] = {{"server.global.nomad", true},
                   {"server.eu.nomad", true},
                   {"client.global.nomad", false},
                   {"cli.global.nomad,localhost", false},
                   {NULL, false}};
    for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
        struct err e = ERR_INIT;
        struct tls *t = callers[i].names != NULL ? tls_of(callers[i].names) : NULL;
        struct rpc_client *c = dial(listening, t, false);
        ck_assert_int_eq(ask(c, RPC_STATUS_LEADER, &(struct empty){0}).code, 0);
        e = ask(c, RPC_SERVER_HELLO, &(struct server_hello){.name = "another"});
        ck_assert_msg(e.code == (callers[i].may ? -ERR_UNAVAILABLE : -ERR_FORBIDDEN), "%zu: %s", i,
                      e.text);
        ck_assert(callers[i].may || strstr(e.text, "Server.Hello is for servers") != NULL);
        e = ask(c, RPC_SERVER_CONSENT, &(struct server_consent_request){0});
        ck_assert_msg((e.code == -ERR_FORBIDDEN) == !callers[i].may, "%zu: %s", i, e.text);
        /* nor by another server, which would be taken for the one who asks */
        e = ask_with(c, RPC_SERVER_HELLO, &(struct server_hello){.name = "another"},
                     &(struct rpc_envelope){.region = "eu"});
        ck_assert_int_eq(e.code, callers[i].may ? -ERR_NO_REGION : -ERR_FORBIDDEN);
        rpc_client_close(c);
        tls_unref(t);
    }
    ck_assert_int_eq(ask(w->rpc, RPC_SERVER_HELLO, &(struct server_hello){.name = "x"}).code,
                     -ERR_UNAVAILABLE); /* this process itself */
}
END_TEST

/* A heartbeat of the node, which has registered. */
static struct err
beat(struct rpc_client *c, const char *names)
{
    struct rpc_envelope env = as_node;
    env.node_names = names;
    return ask_with(c, RPC_NODE_UPDATE_STATUS,
                    &(struct node_update_status_request){.status = "ready"}, &env);
}

START_TEST(only_nodes_ask_what_nodes_ask)
{
    static const struct {
        const char *names; /* NULL: plain */
        bool may;
    } callers[] = {{"client.global.nomad", true},
                   {"server.global.nomad", true}, /* passes on what a node asked of it */
                   {"client.eu.nomad", false},
                   {"cli.global.nomad,localhost", false},
                   {"client.global.nomad.example.org", false},
                   {NULL, false}};
    node_up(w);
    for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
        struct tls *t = callers[i].names != NULL ? tls_of(callers[i].names) : NULL;
        struct rpc_client *c = dial(listening, t, false);
        struct err e = beat(c, NULL);
        ck_assert_msg(e.code == (callers[i].may ? 0 : -ERR_FORBIDDEN), "%zu: %s", i, e.text);
        ck_assert_msg(callers[i].may || strstr(e.text, "UpdateStatus is for clients of this region"),
                      "%zu: %s", i, e.text);
        ck_assert_int_eq(ask(c, RPC_JOB_LIST, &(struct list_request){0}).code, 0);
        rpc_client_close(c);
        tls_unref(t);
    }
}
END_TEST

/* The node is called "host". */
START_TEST(a_node_has_the_name_of_its_certificate)
{
    static const struct {
        const char *names, *claim; /* that it sends itself, in the place of a server */
        bool may;
    } callers[] = {{"client.global.nomad,localhost,HOST", NULL, true},
                   {"client.global.nomad,localhost,other,host", NULL, true},
                   {"client.global.nomad,localhost", NULL, false},
                   {"client.global.nomad,hos,host.example.org,xhost", NULL, false},
                   {"client.global.nomad,other", "host", false},
                   {"server.global.nomad", NULL, true}, /* an agent of both kinds */
                   {"server.global.nomad", "other,host", true},
                   {"server.global.nomad", "other", false}};
    auto_mem void *tmp = mem_ctx("t");
    teardown();
    world_bind_names = true;
    setup();
    node_up(w);
    for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
        struct tls *t = tls_of(callers[i].names);
        struct rpc_client *c = dial(listening, t, false);
        struct rpc_envelope env = as_node;
        struct err e = beat(c, callers[i].claim);
        ck_assert_msg(e.code == (callers[i].may ? 0 : -ERR_FORBIDDEN), "%zu: %s", i, e.text);
        ck_assert_msg(callers[i].may || strstr(e.text, "must bear the node's name") != NULL,
                      "%zu: %s", i, e.text);
        struct node_register_request reg = {.node = the_node(tmp)};
        reg.node->secret_id = node_secret;
        env.node_names = callers[i].claim;
        e = ask_with(c, RPC_NODE_REGISTER, &reg, &env);
        bool may = callers[i].may || strstr(callers[i].names, "server") != NULL; /* that one asked */
        ck_assert_msg(e.code == (may ? 0 : -ERR_FORBIDDEN), "%zu: %s", i, e.text);
        rpc_client_close(c);
        tls_unref(t);
    }
}
END_TEST

/* A server without TLS, and one that was given it since: as in a fleet that changes over. */
START_TEST(a_fleet_changes_over_to_tls)
{
    struct err e = ERR_INIT;
    size_t n;
    const struct rpc_service *v = server_services(w->server, &n);
    struct rpc_server *old =
        rpc_listen(w->loop, &(struct addr){.host = "127.0.0.1"}, v, n, w->server, &e);
    struct rpc_client *strict = dial(old, own, false), *c = dial(old, own, true);
    e = ask(strict, RPC_STATUS_LEADER, &(struct empty){0});
    ck_assert_int_eq(e.code, -ERR_UNAVAILABLE);
    ck_assert_msg(strstr(e.text, "during the handshake: has it tls { rpc = true }?") != NULL, "%s", e.text);
    ck_assert_int_eq(ask(c, RPC_STATUS_LEADER, &(struct empty){0}).code, 0);
    ck_assert_int_eq(ask(c, RPC_SERVER_HELLO, &(struct server_hello){0}).code, -ERR_FORBIDDEN);
    rpc_client_close(c);
    rpc_client_close(strict);
    c = dial(listening, own, true); /* it can: no plain text */
    ck_assert_int_eq(ask(c, RPC_SERVER_HELLO, &(struct server_hello){0}).code, -ERR_UNAVAILABLE);
    rpc_client_close(c);
    rpc_server_secure(listening, tls_rpc(own), false);
    c = dial(listening, NULL, false); /* changed over: nothing plain is taken */
    e = ask(c, RPC_STATUS_LEADER, &(struct empty){0});
    ck_assert_msg(strstr(e.text, "does it want TLS (tls.rpc)?") != NULL, "%s", e.text);
    rpc_client_close(c);
    rpc_server_close(old);
}
END_TEST

TEST_SUITE_FIXTURE("identity", 60, setup, teardown, only_servers_ask_what_servers_ask,
                   only_nodes_ask_what_nodes_ask, a_node_has_the_name_of_its_certificate,
                   a_fleet_changes_over_to_tls)
