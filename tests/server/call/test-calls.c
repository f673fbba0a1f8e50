/* SPDX-License-Identifier: Apache-2.0
 *
 * A call in every state (server/call/call_int.h), and all that may happen to it there: its caller hears one
 * answer, and the machine ends. The server is a real one, alone; what it asks of its surroundings (who leads,
 * who is of another region, the log, its workers) is answered by the test, which may hold it.
 */
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/str.h"
#include "net/stream.h"
#include "server/call/endpoint.h"
#include "server/host_int.h"
#include "server/state/watch.h"
#include "tests/server/served.h"
#include "tests/server/util.h"

enum place {
    WAITING,
    FORWARDED_READ,
    FORWARDED_WRITE,
    ABROAD,
    ABROAD_STREAM, /* the same, of a call whose bytes go on */
    AT_NODE,
    READING,
    NEWS, /* as READING, but what was read is no news to its caller */
    PREPARING,
    PREPARED, /* the log has answered, the worker has not returned yet */
    BARRIER,  /* as PREPARED, and to be prepared once more */
    AGAIN,    /* prepared once more, behind the barrier */
    PARKED,
    PROPOSED,
    STATES
};
enum event {
    ANSWERED,  /* by who has it */
    REFUSED,   /* the same */
    GIVEN_UP,  /* its caller cancels */
    LATE,      /* its caller's time is over; of one that waits for news: the time in which it does */
    CUT,       /* its caller's connection is gone */
    LEADS,     /* this server, from now on */
    ANOTHER,   /* leads from now on */
    NONE,      /* leads */
    PEER_GONE, /* who has it is gone */
    STOPPED,   /* this server */
    EVENTS
};
static const char *const state_names[] = {
    "waiting", "forwarded read", "forwarded write", "abroad", "abroad stream", "at node", "reading",
    "news",    "preparing",      "prepared",        "barrier", "again",        "parked",  "proposed"};
static const char *const event_names[] = {"answered", "refused", "given up", "late",      "cut",
                                          "leads",    "another", "none",     "peer gone", "stopped"};
enum { OK, NEVER, SILENT };

/* NEVER: there is no such thing. SILENT: its caller, who has closed it, hears nothing. */
static const int expected[STATES][EVENTS] = {
    [WAITING] = {NEVER, NEVER, -ERR_CANCELED, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, -ERR_NO_LEADER, NEVER,
                 -ERR_NO_LEADER},
    [FORWARDED_READ] = {OK, -ERR_CONFLICT, -ERR_CANCELED, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, OK,
                        -ERR_TIMEOUT, -ERR_CANCELED},
    [FORWARDED_WRITE] = {OK, -ERR_CONFLICT, -ERR_CANCELED, -ERR_TIMEOUT, -ERR_CANCELED, -ERR_NOT_LEADER,
                         -ERR_NOT_LEADER, OK, -ERR_CLOSED, -ERR_CANCELED},
    [ABROAD] = {OK, -ERR_CONFLICT, -ERR_CANCELED, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, OK, -ERR_CLOSED,
                -ERR_CANCELED},
    [ABROAD_STREAM] = {OK, -ERR_CONFLICT, SILENT, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, OK, -ERR_CLOSED,
                       -ERR_CANCELED},
    [AT_NODE] = {OK, -ERR_CONFLICT, SILENT, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, OK, -ERR_CLOSED,
                 -ERR_CLOSED},
    [READING] = {OK, NEVER, -ERR_CANCELED, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, OK, NEVER, -ERR_UNAVAILABLE},
    [NEWS] = {OK, NEVER, -ERR_CANCELED, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, -ERR_NO_LEADER, NEVER,
              -ERR_UNAVAILABLE},
    [PREPARING] = {OK, -ERR_INVALID, -ERR_CANCELED, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, OK, NEVER,
                   -ERR_UNAVAILABLE},
    [PREPARED] = {OK, NEVER, -ERR_CANCELED, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, OK, NEVER, OK},
    [BARRIER] = {OK, NEVER, -ERR_CANCELED, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, OK, NEVER,
                 -ERR_UNAVAILABLE},
    [AGAIN] = {OK, NEVER, -ERR_CANCELED, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, OK, NEVER,
               -ERR_UNAVAILABLE},
    [PARKED] = {OK, NEVER, -ERR_CANCELED, OK, -ERR_CANCELED, OK, OK, -ERR_NO_LEADER, NEVER,
                -ERR_UNAVAILABLE},
    [PROPOSED] = {OK, -ERR_CONFLICT, -ERR_CANCELED, -ERR_TIMEOUT, -ERR_CANCELED, OK, OK, OK, NEVER,
                  -ERR_CANCELED},
};

/* --- the surroundings --- */

struct other { /* another server, or a node; it answers when it is told to */
    struct rpc_server *server;
    char addr[32];
    struct rpc_client *node;
    struct rpc_call *call; /* NULL: none */
    struct stream *stream; /* of a call that was answered; NULL: none */
    bool told;             /* that nobody waits for the answer */
};

static struct {
    struct world *w;
    struct other peers[2];
    const char *_Atomic leader; /* "": none; NULL: as it is */
    atomic_int open;            /* calls and others that hold the gate */
    int holds_work; /* the how many-th from now on; 0: none */
    bool keeps_done; /* the next work's return to the loop */
    atomic_bool holds_proposal;
    struct {
        env_fn *work, *done; /* work NULL: nothing is held */
        void *x;
    } work;
    bool logged;        /* the log has answered the write */
    propose_fn *on_log; /* ... and this is told */
    struct {
        atomic_bool held; /* of a worker: set when the others are */
        struct intent *in;
        propose_fn *done;
        void *arg;
    } proposal;
    struct stream *stream; /* the caller's; NULL: none */
    bool stopped;          /* the server */
    unsigned answers;
    int code;
} fx;

struct gate *__real_gate_ref(struct gate *g);
struct gate *__wrap_gate_ref(struct gate *g);
void __real_gate_unref(struct gate *g);
void __wrap_gate_unref(struct gate *g);
bool __real_server_is_leader(const struct server *s);
bool __wrap_server_is_leader(const struct server *s);
bool __real_server_leader_at(struct server *s, char *out, size_t size, uint64_t *ret_term);
bool __wrap_server_leader_at(struct server *s, char *out, size_t size, uint64_t *ret_term);
bool __real_server_leader_addr(const struct server *s, char *out, size_t size);
bool __wrap_server_leader_addr(const struct server *s, char *out, size_t size);
struct str_list __wrap_server_region(struct server *s, const void *ctx, const char *region);
void __real_server_propose(struct server *s, struct intent *in, enum home home, propose_fn *done, void *arg);
void __wrap_server_propose(struct server *s, struct intent *in, enum home home, propose_fn *done, void *arg);

struct gate *
__wrap_gate_ref(struct gate *g)
{
    atomic_fetch_add(&fx.open, 1);
    return __real_gate_ref(g);
}

void
__wrap_gate_unref(struct gate *g)
{
    atomic_fetch_sub(&fx.open, 1);
    __real_gate_unref(g);
}

bool
__wrap_server_is_leader(const struct server *s)
{
    return atomic_load(&fx.leader) == NULL && __real_server_is_leader(s);
}

bool
__wrap_server_leader_at(struct server *s, char *out, size_t size, uint64_t *ret_term)
{
    const char *leader = atomic_load(&fx.leader);

    if (leader == NULL)
        return __real_server_leader_at(s, out, size, ret_term);
    *ret_term = 7;
    str_copy(out, size, leader);
    return !str_empty(leader);
}

bool
__wrap_server_leader_addr(const struct server *s, char *out, size_t size)
{
    const char *leader = atomic_load(&fx.leader);

    if (leader == NULL)
        return __real_server_leader_addr(s, out, size);
    str_copy(out, size, leader);
    return !str_empty(leader);
}

struct str_list
__wrap_server_region(struct server *s, const void *ctx, const char *region)
{
    struct str_list l = {0};

    (void)s;
    (void)region;
    list_add(ctx, l, (const char *)fx.peers[0].addr);
    return l;
}

static void
log_answers(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    fx.logged = true;
    fx.on_log(arg, e, index, res);
}

void
__wrap_server_propose(struct server *s, struct intent *in, enum home home, propose_fn *done, void *arg)
{
    if (in->job_register == NULL || !atomic_exchange(&fx.holds_proposal, false)) {
        bool first = (in->job_register != NULL || in->noop != NULL) && fx.on_log == NULL;
        if (first)
            fx.on_log = done;
        __real_server_propose(s, in, home, first ? log_answers : done, arg);
        return;
    }
    fx.proposal.in = in;
    fx.proposal.arg = arg;
    fx.proposal.done = done;
    atomic_store(&fx.proposal.held, true);
}

static void (*loop_work_of)(void *arg, env_fn *work, env_fn *done, void *x);

static void
no_work(void *x)
{
    (void)x;
}

static void
keep_done(void *x)
{
    fx.work.work = no_work;
    fx.work.x = x;
}

static void
hold_work(void *arg, env_fn *work, env_fn *done, void *x)
{
    if (fx.keeps_done) {
        fx.keeps_done = false;
        fx.work.done = done;
        loop_work_of(arg, work, keep_done, x);
        return;
    }
    if (fx.holds_work == 0 || --fx.holds_work > 0) {
        loop_work_of(arg, work, done, x);
        return;
    }
    fx.work.work = work;
    fx.work.done = done;
    fx.work.x = x;
}

static void
release_work(void)
{
    env_fn *done = fx.work.done, *work = TAKE(fx.work.work);

    if (work == NULL)
        return;
    work(fx.work.x);
    done(fx.work.x);
}

static void
release_proposal(int code)
{
    struct err e = ERR_INIT;

    if (!atomic_exchange(&fx.proposal.held, false))
        return;
    propose_fn *done = fx.proposal.done;
    if (code == 0) {
        __real_server_propose(fx.w->server, fx.proposal.in, HOME_LOOP, done, fx.proposal.arg);
        return;
    }
    err_set(&e, code, "held");
    done(fx.proposal.arg, &e, 0, NULL);
}

static void
peer_told(void *arg)
{
    struct other *p = arg;

    p->told = true;
}

static void
peer_asked(void *arg, struct rpc_call *call, const void *req)
{
    struct other *p = arg;

    (void)req;
    ck_assert_ptr_null(p->call);
    p->call = call;
    rpc_call_on_cancel(call, peer_told, p);
}

/* --- bytes of calls that go on: none --- */

static void
on_data(void *arg, const uint8_t *p, size_t n)
{
    (void)arg;
    (void)p;
    (void)n;
}

static void
on_close(void *arg, int code)
{
    *(struct stream **)arg = NULL;
    (void)code;
}

static void
take_stream(struct stream **to, struct stream *st)
{
    static const struct stream_ops ops = {.on_data = on_data, .on_close = on_close};

    *to = st;
    stream_accept(st, &ops, to);
}

static void
close_stream(struct stream **st)
{
    if (*st != NULL)
        stream_close(*st);
}

static void
peer_answers(struct other *p, int code)
{
    struct rpc_call *call = TAKE(p->call);
    struct job_register_response resp = {.job_modify_index = 1};
    struct query_meta meta = {.index = 1};
    struct job_list_response list = {.meta = &meta};
    struct empty empty = {0};

    if (call == NULL)
        return;
    bool streams = rpc_call_method(call)->id == RPC_CLIENT_HTTP;
    if (code != 0 || (streams && p->told)) /* its stream has gone with its caller */
        rpc_failf(call, code != 0 ? code : -ERR_CANCELED, "refused by the peer");
    else if (streams) {
        take_stream(&p->stream, rpc_call_stream(call, NULL));
        rpc_reply(call, &empty);
    }
    else if (rpc_call_method(call)->id == RPC_JOB_LIST)
        rpc_reply(call, &list);
    else
        rpc_reply(call, &resp);
}

static const struct rpc_service peer_services[] = {
    {RPC_JOB_LIST, peer_asked}, {RPC_JOB_REGISTER, peer_asked}, {RPC_CLIENT_HTTP, peer_asked}};

static void
peer_open(struct other *p)
{
    struct err e = ERR_INIT;

    p->server = rpc_listen(fx.w->loop, &(struct addr){.host = "127.0.0.1"}, peer_services,
                           ARRAY_LEN(peer_services), p, &e);
    ck_assert_msg(p->server != NULL, "%s", e.text);
    snprintf(p->addr, sizeof(p->addr), "127.0.0.1:%u", rpc_server_port(p->server));
}

static void
peer_close(struct other *p)
{
    rpc_client_close(TAKE(p->node));
    if (p->server != NULL)
        rpc_server_close(TAKE(p->server));
    peer_answers(p, -ERR_CLOSED);
}

/* --- turns of the loop --- */

#define AWAIT(what)                                                             \
    do {                                                                        \
        bool never_ = false;                                                    \
        for (int64_t end_ = clock_mono_ns() + 20 * NS_PER_S; !(what);) {        \
            loop_run_until(fx.w->loop, &never_, 1);                             \
            ck_assert_msg(clock_mono_ns() < end_, "%s does not come", #what);   \
        }                                                                       \
    } while (0)

static void
heard(void *arg, const struct err *e, const void *resp)
{
    (void)arg;
    (void)resp;
    fx.answers++;
    fx.code = e != NULL ? e->code : 0;
}

static void
stopped(void *arg)
{
    *(bool *)arg = true;
}

/* The peer becomes a node, which is reached over the connection over which it registers. */
static void
peer_registers(struct other *p)
{
    const struct node_register_request req = {.node = the_node(fx.w)};
    struct answer *a = mem_new(fx.w, struct answer);
    size_t n;
    const struct rpc_service *v = server_services(fx.w->server, &n);

    a->w = fx.w;
    p->node = rpc_local(fx.w->loop, v, n, fx.w->server);
    rpc_serve(p->node, peer_services, ARRAY_LEN(peer_services), p);
    rpc_send(p->node, &(struct rpc_request){RPC_NODE_REGISTER, &req, &as_node, 15000}, answered, a);
    AWAIT(a->done);
    ck_assert_msg(a->err.code == 0, "%s", a->err.text);
}

/* --- a call is brought into a state --- */

static uint64_t
bring(enum place state, enum event event)
{
    static const struct rpc_envelope here = {0}, there = {.region = "eu"};
    struct world *w = fx.w;
    uint64_t seen = CALL(w, RPC_JOB_LIST, job_list_response, &(struct list_request){0})->meta->index;
    struct job_register_request *jr = mem_new(w, struct job_register_request);
    struct list_request *list = mem_new(w, struct list_request);
    struct rpc_envelope *news = mem_new(w, struct rpc_envelope);
    bool writes = state == FORWARDED_WRITE || state == PREPARING || state == PREPARED ||
                  state == PROPOSED;
    static const struct job_deregister_request nothing = {.job_id = "none"};
    bool abroad = state == ABROAD || state == ABROAD_STREAM;
    bool streams = state == ABROAD_STREAM || state == AT_NODE;
    const struct client_http_request http = {.node_id = node_id};
    struct rpc_request q = {RPC_JOB_LIST, list, abroad ? &there : &here, 60000};

    if (event == LATE)
        q.timeout_ms = 150;
    else if (event == PEER_GONE) /* a read is asked again until there is another leader */
        q.timeout_ms = 1500;
    *news = (struct rpc_envelope){.min_index = seen, .wait = event == LATE ? 100 * NS_PER_MS : 60 * NS_PER_S};
    jr->job = the_job(w, "one", 1);
    if (state == PREPARING && event == REFUSED)
        jr->job->type = "nonsense";
    if (writes)
        q = (struct rpc_request){RPC_JOB_REGISTER, jr, &here, q.timeout_ms};
    if (state == BARRIER || state == AGAIN)
        q = (struct rpc_request){RPC_JOB_DEREGISTER, &nothing, &here, q.timeout_ms};
    if (state == PARKED || state == NEWS)
        q.env = news;
    if (streams) {
        q.id = RPC_CLIENT_HTTP;
        q.req = &http;
    }
    if (state == AT_NODE)
        peer_registers(&fx.peers[0]);
    if (state == WAITING)
        atomic_store(&fx.leader, "");
    else if (state == FORWARDED_READ || state == FORWARDED_WRITE)
        atomic_store(&fx.leader, fx.peers[0].addr);
    if (state == READING || state == NEWS || state == PREPARING)
        fx.holds_work = 1;
    else if (state == AGAIN)
        fx.holds_work = 2;
    fx.keeps_done = state == PREPARED || state == BARRIER;
    atomic_store(&fx.holds_proposal, state == PROPOSED);
    if (!streams)
        return rpc_send(w->rpc, &q, heard, NULL);
    take_stream(&fx.stream, rpc_link_open(rpc_client_link(w->rpc), &q, heard, NULL));
    return 0;
}

static bool
is_there(enum place state)
{
    switch (state) {
    case WAITING:
        return atomic_load(&fx.open) > 0;
    case FORWARDED_READ:
    case FORWARDED_WRITE:
    case ABROAD:
    case ABROAD_STREAM:
    case AT_NODE:
        return fx.peers[0].call != NULL;
    case READING:
    case NEWS:
    case PREPARING:
    case AGAIN:
        return fx.work.work != NULL;
    case PREPARED:
    case BARRIER:
        return fx.work.work != NULL && fx.logged;
    case PARKED:
        return watches_parked(fx.w->server->watches) > 0;
    default:
        return atomic_load(&fx.proposal.held);
    }
}

/* --- what happens to it --- */

static void
write_something(void)
{
    struct job_register_request jr = {.job = the_job(fx.w, "other", 0)};

    ck_assert_ptr_nonnull(call(fx.w, RPC_JOB_REGISTER, &jr));
}

/* Has the call given back by whoever has it. */
static void
release(int code)
{
    for (size_t i = 0; i < ARRAY_LEN(fx.peers); i++)
        peer_answers(&fx.peers[i], code);
    release_work();
    release_proposal(code);
}

static void
lead(const char *who)
{
    atomic_store(&fx.leader, who);
    forwards_leader_changed(fx.w->server->forwards);
    if (who != NULL)
        watches_leader_lost(fx.w->server->watches);
}

static void
happens(enum place state, enum event event, uint64_t id)
{
    static const char *const nobody = "";

    if (event == GIVEN_UP && fx.stream != NULL)
        stream_close(fx.stream);
    else if (event == GIVEN_UP)
        rpc_cancel(fx.w->rpc, id);
    else if (event == CUT)
        rpc_client_close(TAKE(fx.w->rpc));
    else if (event == LEADS)
        lead(NULL);
    else if (event == ANOTHER)
        lead(fx.peers[1].addr);
    else if (event == NONE)
        lead(nobody);
    else if (event == PEER_GONE || (event == STOPPED && state == AT_NODE))
        peer_close(&fx.peers[0]); /* connections to a server are closed before it stops */
    if (event == STOPPED)
        server_stop(fx.w->server, stopped, &fx.stopped);
    if ((state == PARKED || state == NEWS) && (event == ANSWERED || event == LEADS))
        write_something();
}

/* Says whether whoever has the call keeps it, and gives it back in the end: a write that the leader
 * has when another one leads is not waited for. */
static bool
goes_on(enum place state, enum event event)
{
    bool moves = state == FORWARDED_READ || state == FORWARDED_WRITE;

    return event == ANSWERED || event == REFUSED || event == NONE || event == STOPPED ||
           ((event == LEADS || event == ANOTHER) && !moves);
}

static void
try(enum place state, enum event event)
{
    bool stops = event == STOPPED;
    const char *dir = tmp_dir();
    int code = event == REFUSED ? -ERR_CONFLICT : stops ? -ERR_CANCELED : 0;

    memset(&fx, 0, sizeof(fx));
    fx.w = world_open(dir);
    loop_work_of = fx.w->server->env.work;
    fx.w->server->env.work = hold_work;
    for (size_t i = 0; i < ARRAY_LEN(fx.peers); i++)
        peer_open(&fx.peers[i]);
    uint64_t id = bring(state, event);
    AWAIT(is_there(state) || (event == LATE && fx.answers > 0)); /* on a slow machine on its way there */
    ck_assert(fx.answers == 0 || event == LATE);
    happens(state, event, id);
    if (stops)
        AWAIT(fx.stopped || atomic_load(&fx.proposal.held));
    if (goes_on(state, event))
        release(code);
    while (fx.answers == 0 && expected[state][event] != SILENT) {
        AWAIT(fx.answers > 0 || fx.peers[1].call != NULL);
        peer_answers(&fx.peers[1], 0);
    }
    ck_assert_msg(fx.code == expected[state][event] || expected[state][event] == SILENT,
                  "%s, %s: %d, not %d", state_names[state], event_names[event], fx.code,
                  expected[state][event]);
    bool nobody_waits = event == GIVEN_UP || event == LATE || event == CUT;
    if (nobody_waits && fx.peers[0].call != NULL)
        AWAIT(fx.peers[0].told);
    else if (nobody_waits && (state == WAITING || state == PARKED))
        AWAIT(atomic_load(&fx.open) == 0);
    code = stops ? -ERR_CANCELED : 0;
    /* -1: the server's own, which it did not get by a ref */
    AWAIT((release(code), atomic_load(&fx.open) == (stops ? -1 : 0)));
    ck_assert_uint_eq(fx.answers, expected[state][event] != SILENT);
    close_stream(&fx.stream);
    AWAIT(fx.stream == NULL && fx.peers[0].stream == NULL);
    atomic_store(&fx.leader, NULL);
    for (size_t i = 0; i < ARRAY_LEN(fx.peers); i++)
        peer_close(&fx.peers[i]);
    if (!stops)
        server_stop(fx.w->server, stopped, &fx.stopped);
    AWAIT(fx.stopped);
    rpc_client_close(fx.w->rpc);
    loop_free(fx.w->loop);
    talloc_free(fx.w);
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}

static void
all_events(enum place state)
{
    for (enum event event = 0; event < EVENTS; event++)
        if (expected[state][event] != NEVER)
            try(state, event);
}

#define TEST(name, STATE)    \
    START_TEST(name)         \
    {                        \
        all_events(STATE);   \
    }                        \
    END_TEST

TEST(one_that_waits_for_a_leader, WAITING)
TEST(a_read_that_the_leader_has, FORWARDED_READ)
TEST(a_write_that_the_leader_has, FORWARDED_WRITE)
TEST(one_that_another_region_has, ABROAD)
TEST(one_that_streams_and_another_region_has, ABROAD_STREAM)
TEST(one_that_a_node_has, AT_NODE)
TEST(a_read_that_a_worker_has, READING)
TEST(a_read_without_news_that_a_worker_has, NEWS)
TEST(a_write_that_a_worker_has, PREPARING)
TEST(a_write_that_a_worker_has_longer_than_the_log, PREPARED)
TEST(a_barrier_that_a_worker_has_longer_than_the_log, BARRIER)
TEST(a_write_that_a_worker_has_once_more, AGAIN)
TEST(a_read_that_waits_for_news, PARKED)
TEST(a_write_that_the_log_has, PROPOSED)

TEST_SUITE_TIMEOUT("calls", 120, one_that_waits_for_a_leader, a_read_that_the_leader_has,
                   a_write_that_the_leader_has, one_that_another_region_has,
                   one_that_streams_and_another_region_has, one_that_a_node_has, a_read_that_a_worker_has,
                   a_read_without_news_that_a_worker_has, a_write_that_a_worker_has,
                   a_write_that_a_worker_has_longer_than_the_log,
                   a_barrier_that_a_worker_has_longer_than_the_log, a_write_that_a_worker_has_once_more,
                   a_read_that_waits_for_news, a_write_that_the_log_has)
