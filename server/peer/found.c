/* SPDX-License-Identifier: Apache-2.0
 *
 * Founding a cluster: see found.h. Order to read: what is kept, who is known, consents, joining,
 * rounds.
 *
 * A `struct known` is an address that may be a server's, with the hello that came from there last;
 * where several are of one server the first speaks for it. Everything happens in rounds of
 * questions and at their answers.
 */
#include "server/peer/found.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/terms.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/uuid.h"
#include "net/addr.h"
#include "net/rpc.h"
#include "server/env.h"
#include "server/limits.h"
#include "server/peer/grow.h"

enum {
    ROUND_MS = 500,        /* while there is no cluster */
    ROUND_LATER_MS = 5000, /* then, */
    ROUND_SOON_MS = 1000,  /* and while the members change */
    CALL_MS = 2000,
    TELL_MS = 60000,
    GOSSIP_PORT = 4648, /* where none is said */
    KNOWN_MAX = 2 * CONSENSUS_PEERS_MAX,
};

/* A server, or an address at which there may be one. */
struct known {
    struct known *next;
    struct found *f;
    char *addr; /* asked at */
    struct rpc_client *client;
    struct server_hello *hello; /* its last; NULL: never */
    int64_t heard_ms;
    bool asked, consented;
    int64_t gone_ms; /* since when it is known to have left; 0: it has not */
    bool gossips, there; /* known to gossip, and said to be there */
    bool ours; /* it is this server itself */
};

struct found {
    struct found_opts o;
    char *path;
    char cluster[UUID_TEXT]; /* "": none */
    uint64_t founder;        /* who has our consent; 0: nobody */
    struct known *known;
    size_t n_known;
    struct timer *round;
    int64_t told_ms;
    const char *told; /* then */
    bool is_ready, leaves;
    bool soon; /* the next round is */
};

/* The same once a minute. */
static void
found_tell(struct found *f, const char *what, const char *name)
{
    int64_t now = env_mono_ms(f->o.env);
    if (f->told == what && now - f->told_ms < TELL_MS)
        return;
    f->told_ms = now;
    f->told = what;
    log_warn("found", what, "server", name, "file", f->path, NULL);
}

static void
found_ready(struct found *f)
{
    ASSERT(f->cluster[0] != '\0'); /* ready() is told its id */
    f->is_ready = true;
    f->o.ready(f->o.arg, f->cluster);
}

/* --- what is kept --- */

static int
found_keep(struct found *f, const char *cluster, uint64_t founder, struct err *e)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "%s %" PRIu64 "\n", cluster, founder);
    ASSERT(uuid_valid(cluster) && n > 0 && (size_t)n < sizeof(text));
    int rc = file_write_atomic(AT_FDCWD, f->path, text, (size_t)n, 0600);
    if (rc < 0)
        return err_errno(e, -rc, "write '%s'", f->path);
    (void)str_copy(f->cluster, sizeof(f->cluster), cluster);
    f->founder = founder;
    return 0;
}

static int
read_kept(struct found *f, struct err *e)
{
    auto_mem void *tmp = mem_ctx("founder");
    char *text = NULL, cluster[UUID_TEXT];
    size_t n = 0;
    int rc = file_read(tmp, AT_FDCWD, f->path, 256, &text, &n);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return err_errno(e, -rc, "read '%s'", f->path);
    char *space = strchr(text, ' '), *line = strchr(text, '\n');
    if (space != NULL && line != NULL) {
        *space = *line = '\0';
        if (str_copy(cluster, sizeof(cluster), text) && uuid_valid(cluster) &&
            num_parse_u64(space + 1, &f->founder) == 0) {
            (void)str_copy(f->cluster, sizeof(f->cluster), cluster);
            return 0;
        }
    }
    return err_set(e, -ERR_CORRUPT,
                   "'%s' holds no cluster and founder: restore it; or, when no cluster was founded "
                   "yet, remove it",
                   f->path);
}

/* The log names another cluster, or its only witness. */
static int
check_log(struct found *f, struct err *e)
{
    if (f->o.known == NULL || str_eq(f->o.known, f->cluster))
        return 0;
    if (f->cluster[0] == '\0')
        return found_keep(f, f->o.known, f->o.self.id, e);
    return err_set(
        e, -ERR_CONFLICT,
        "'%s' names the cluster %s, but the log beside it is of %s: one of them was copied from "
        "another server; restore both, or start empty",
        f->path, f->cluster, f->o.known);
}

int
found_consent(struct found *f, const struct server_consent_request *r, struct err *e)
{
    const char *cluster = str_or(r->cluster, "");
    if (r->founder == 0 || !uuid_valid(cluster))
        return err_set(e, -ERR_INVALID, "a consent names a founder and a cluster");
    if (f->cluster[0] != '\0') {
        if (f->founder == r->founder && str_eq(f->cluster, cluster))
            return 0;
        return err_set(e, -ERR_CONFLICT, "this server is of the cluster %s already", f->cluster);
    }
    if (!core_is_new(f->o.core))
        return err_set(e, -ERR_CONFLICT, "this server has a log already");
    int rc = found_keep(f, cluster, r->founder, e);
    if (rc == 0 && r->founder != f->o.self.id)
        found_ready(f);
    return rc;
}

/* --- who is known --- */

static void found_ask_server(struct known *k);

static struct known *
known_at(struct found *f, const char *addr)
{
    for (struct known *k = f->known; k != NULL; k = k->next)
        if (str_eq(k->addr, addr))
            return k;
    if (f->n_known == KNOWN_MAX || str_empty(addr))
        return NULL;
    struct known *k = mem_new(f, struct known);
    k->f = f;
    k->addr = mem_strdup(k, addr);
    k->ours = str_eq(addr, f->o.self.serf);
    k->next = f->known;
    f->known = k;
    f->n_known++;
    return k;
}

/* With the port at which servers are asked. NULL: it is no address, or there are too many. */
static struct known *
found_join_cluster(struct found *f, const char *text, struct err *e)
{
    struct addr a;
    char full[ADDR_TEXT];
    if (addr_parse(text, GOSSIP_PORT, &a, e) < 0)
        return NULL;
    struct known *k = known_at(f, addr_format(&a, full));
    if (k == NULL)
        err_set(e, -ERR_LIMIT, "more than %d addresses of servers are known already", KNOWN_MAX);
    return k;
}

static bool
is_alive(const struct known *k)
{
    if (k->hello == NULL || k->gossips)
        return k->hello != NULL && k->there;
    return env_mono_ms(k->f->o.env) - k->heard_ms < 6 * ROUND_MS;
}

/* The first of several addresses of one server stands for it. */
static bool
is_first(const struct found *f, const struct known *k)
{
    for (const struct known *o = f->known; o != k; o = o->next)
        if (o->hello != NULL && o->hello->id == k->hello->id && is_alive(o))
            return false;
    return true;
}

static void
found_heard(struct known *k, const struct server_hello *h)
{
    struct found *f = k->f;
    k->ours = h->id == f->o.self.id;
    if (k->ours)
        return;
    mem_free(k->hello);
    if (!str_eq(h->region, f->o.self.region))
        return; /* it founds with others, and gossips */
    k->hello = codec_clone(k, &type_server_hello, h);
    k->heard_ms = env_mono_ms(f->o.env);
    if (!str_empty(h->cluster) && f->cluster[0] != '\0' && !str_eq(h->cluster, f->cluster))
        found_tell(f, "another server is of another cluster, and becomes no member of this one",
                   h->name);
    for (size_t i = 0; i < h->seen.n; i++)
        (void)known_at(f, str_or(h->seen.v[i]->serf, ""));
}

/* Says whether the cluster has a log, of which this server has some: from before, or sent
 * since this server began. */
static bool
is_founded(const struct found *f)
{
    auto_mem void *tmp = mem_ctx("founded");
    struct core_status st;
    if (f->cluster[0] == '\0')
        return false;
    core_status(f->o.core, tmp, &st);
    return !core_is_new(f->o.core) || st.conf.n > 0;
}

/* A server that may found a cluster with others. */
static bool
found_founds(const struct server_hello *h)
{
    return !h->non_voting && h->expect != EXPECT_NONE;
}

struct server_hello *
found_hello(struct found *f, const void *ctx, const struct server_hello *from)
{
    struct server_hello *h = mem_new(ctx, struct server_hello);
    *h = f->o.self;
    h->cluster = mem_strdup(h, f->cluster);
    h->founded = is_founded(f);
    h->leaving = f->leaves;
    h->seen.v = NULL;
    h->seen.n = 0;
    if (from != NULL && from->id != f->o.self.id) {
        struct known *k = known_at(f, str_or(from->serf, ""));
        if (k != NULL && k->hello == NULL)
            found_ask_server(k); /* who is new is a member soon */
    }
    struct server_seen *s = mem_new(h, struct server_seen);
    *s = (struct server_seen){.id = h->id,
                              .name = h->name,
                              .addr = h->addr,
                              .serf = h->serf,
                              .non_voting = !found_founds(h)};
    list_add(h, h->seen, s);
    for (struct known *k = f->known; k != NULL; k = k->next) {
        if (k->ours || !is_alive(k) || !is_first(f, k))
            continue;
        s = mem_new(h, struct server_seen);
        *s = (struct server_seen){.id = k->hello->id,
                                  .name = mem_strdup(h, k->hello->name),
                                  .addr = mem_strdup(h, k->hello->addr),
                                  .serf = mem_strdup(h, k->hello->serf),
                                  .non_voting = !found_founds(k->hello)};
        list_add(h, h->seen, s);
    }
    return h;
}

int64_t
found_heard_ms(const struct found *f, uint64_t id)
{
    int64_t ms = 0;
    for (const struct known *k = f->known; k != NULL; k = k->next)
        if (k->hello != NULL && k->hello->id == id && k->heard_ms > ms)
            ms = k->heard_ms;
    return ms;
}

/* --- consents --- */

static bool
found_sees(const struct server_hello *h, uint64_t id)
{
    for (size_t i = 0; i < h->seen.n; i++)
        if (h->seen.v[i]->id == id)
            return true;
    return false;
}

static size_t
voters_seen(const struct server_hello *h)
{
    size_t n = 0;
    for (size_t i = 0; i < h->seen.n; i++)
        n += !h->seen.v[i]->non_voting;
    return n;
}

/* The servers that would found a cluster with this one: all others that are alive and are to vote,
 * and they are `expect`, and have heard each other. 0: not so (yet). */
static size_t
found_founders(struct found *f, struct known *v[KNOWN_MAX])
{
    size_t n = 0;
    for (struct known *k = f->known; k != NULL; k = k->next)
        if (!k->ours && is_alive(k) && is_first(f, k) && found_founds(k->hello))
            v[n++] = k;
    for (size_t i = 0; i < n; i++) {
        const struct server_hello *h = v[i]->hello;
        const char *wrong = NULL;
        if (!str_empty(h->cluster) && !str_eq(h->cluster, f->cluster))
            wrong =
                "another server is of a cluster already, and this one of none: it waits to join it";
        else if (h->expect != f->o.self.expect)
            wrong = "another server has a different bootstrap_expect: set the same one on all";
        else if (str_eq(h->name, f->o.self.name))
            wrong = "another server has the same name: set a different name for each";
        if (wrong != NULL) {
            found_tell(f, wrong, h->name);
            return 0;
        }
    }
    if (n + 1 > (size_t)f->o.self.expect)
        found_tell(f, "more servers were found than bootstrap_expect says: they wait",
                   v[0]->hello->name);
    if (n + 1 != (size_t)f->o.self.expect)
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (voters_seen(v[i]->hello) != n + 1 || !found_sees(v[i]->hello, f->o.self.id))
            return 0;
        for (size_t k = 0; k < n; k++)
            if (!found_sees(v[i]->hello, v[k]->hello->id))
                return 0;
    }
    return n;
}

static void
write_first(struct found *f, struct known *const *v, size_t n)
{
    struct peer p[CONSENSUS_PEERS_MAX];
    struct err e = ERR_INIT;
    p[0] = (struct peer){f->o.self.id, f->o.self.addr, PEER_VOTER};
    for (size_t i = 0; i < n; i++)
        p[i + 1] = (struct peer){v[i]->hello->id, v[i]->hello->addr, PEER_VOTER};
    if (core_found(f->o.core, &(struct peer_list){p, n + 1}, &e) < 0) {
        found_tell(f, e.text, f->o.self.name);
        return;
    }
    log_info("found", "founded a cluster", "id", f->cluster, "servers", LOG_U64(n + 1), NULL);
    found_ready(f);
}

static void
found_consented(void *arg, const struct err *e, const void *resp)
{
    struct known *k = arg;
    (void)resp;
    k->asked = false;
    k->consented = e == NULL;
    if (e != NULL && e->code == -ERR_CONFLICT)
        found_tell(k->f, e->text, str_or(k->hello->name, "?"));
}

static void
try_found(struct found *f)
{
    struct known *v[KNOWN_MAX];
    struct err e = ERR_INIT;
    char id[UUID_TEXT];
    if (f->is_ready || !core_is_new(f->o.core) || !found_founds(&f->o.self) ||
        f->o.self.expect > CONSENSUS_PEERS_MAX)
        return;
    size_t n = found_founders(f, v), yes = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i]->hello->id < f->o.self.id)
            return;
    if (n == 0)
        return;
    /* our own first: from now on nobody else can be the founder */
    if (f->cluster[0] == '\0' && found_keep(f, env_id(f->o.env, id), f->o.self.id, &e) < 0) {
        found_tell(f, e.text, f->o.self.name);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct server_consent_request r = {.founder = f->o.self.id, .cluster = f->cluster};
        struct rpc_request q = {RPC_SERVER_CONSENT, &r, NULL, CALL_MS};
        yes += v[i]->consented;
        if (v[i]->consented || v[i]->asked)
            continue;
        v[i]->asked = true;
        rpc_send(v[i]->client, &q, found_consented, v[i]);
    }
    if (yes == n)
        write_first(f, v, n);
}

/* --- joining --- */

static void round_cb(void *arg);

static void
round_soon(struct found *f)
{
    if (!f->soon && f->round != NULL) {
        env_timer_stop(f->o.env, f->round);
        f->round = env_timer(f->o.env, ROUND_SOON_MS, round_cb, f);
    }
    f->soon = true;
}

/* A new server joins the cluster that it hears of: it takes the cluster's id as if it had consented
 * to its founder, and waits for the leader's entries. */
static void
try_join(struct found *f, const struct server_hello *h)
{
    struct err e = ERR_INIT;
    if (f->is_ready || f->cluster[0] != '\0' || !core_is_new(f->o.core) || !h->founded ||
        !uuid_valid(str_or(h->cluster, "")) || !str_eq(h->region, f->o.self.region))
        return;
    if (str_eq(h->name, f->o.self.name)) {
        found_tell(f, "another server has the same name: set a different name for each", h->name);
    } else if (found_keep(f, h->cluster, h->id, &e) < 0) {
        found_tell(f, e.text, f->o.self.name);
    } else {
        log_info("found", "joins a cluster", "id", f->cluster, "by", h->name, NULL);
        found_ready(f);
    }
}

/* Heard, of this cluster, with a name of its own, and neither leaving nor removed. */
static bool
is_fit(struct found *f, const struct known *k)
{
    struct server_gone gone;
    const struct server_hello *h = k->hello;
    if (k->ours || h == NULL || !is_alive(k) || !is_first(f, k) || h->leaving ||
        !str_eq(h->cluster, f->cluster) || !str_eq(h->region, f->o.self.region))
        return false;
    if (f->o.is_gone(f->o.arg, h->id, &gone) && !gone.left) {
        found_tell(f,
                   "a server that was removed from the cluster still runs: stop it; with an empty "
                   "data_dir it may join again",
                   h->name);
        return false;
    }
    bool twice = str_eq(h->name, f->o.self.name);
    for (struct known *o = f->known; o != NULL; o = o->next)
        twice |= o->hello != NULL && !o->ours && o->hello->id != h->id && is_alive(o) &&
                 str_eq(o->hello->name, h->name);
    if (twice)
        found_tell(f, "two servers have the same name: the second one does not become a member",
                   h->name);
    return !twice;
}

/* A member, a server that has not left, or one heard since then: its earlier words may be from
 * before. */
static bool
is_back(struct found *f, struct known *k, const struct core_status *st)
{
    struct server_gone gone;
    bool member = false;
    for (size_t i = 0; i < st->conf.n; i++)
        member |= st->conf.v[i].id == k->hello->id;
    if (member || !f->o.is_gone(f->o.arg, k->hello->id, &gone)) {
        k->gone_ms = 0;
        return true;
    }
    if (k->gone_ms == 0)
        k->gone_ms = env_mono_ms(f->o.env);
    if (k->heard_ms <= k->gone_ms)
        found_ask_server(k);
    return k->heard_ms > k->gone_ms;
}

/* Changes the configuration by one server, if this server leads and one is to come or to go. */
static void
found_grow(struct found *f)
{
    auto_mem void *tmp = mem_ctx("grow");
    struct grow_server v[KNOWN_MAX];
    const struct grow_server *who = NULL;
    struct core_status st;
    struct peer_list conf;
    size_t n = 0;
    if (!f->is_ready || f->leaves || !core_is_leader(f->o.core))
        return;
    core_status(f->o.core, tmp, &st);
    if (f->o.self.non_voting) {
        /* it voted before it was started again: another one takes its vote */
        core_transfer(f->o.core, 0);
        return;
    }
    for (struct known *k = f->known; k != NULL; k = k->next) {
        if (is_fit(f, k) && is_back(f, k, &st))
            v[n++] = (struct grow_server){k->hello->id, k->hello->addr, k->hello->non_voting};
    }
    enum grow what = grow_next(tmp, &st, v, n, &conf, &who);
    static const char *const words[] = {
        [GROW_JOINS] = "a server joins, and has no vote until it has the log",
        [GROW_VOTES] = "a server has the log, and gets its vote",
        [GROW_REPLACES] = "a server has lost its data: the member at its "
                          "address is taken out, and it joins as a new one",
        [GROW_YIELDS] = "a server is not to vote, and has no vote any more",
        [GROW_MOVES] = "a server has another address"};
    if (what == GROW_NOTHING)
        return;
    log_info("found", words[what], "server", LOG_U64(who->id), "address", who->addr, NULL);
    core_change(f->o.core, &conf);
    round_soon(f);
}

void
found_leaves(struct found *f)
{
    f->leaves = true;
    f->o.news(f->o.arg);
}

/* --- rounds --- */

static void
found_answered(void *arg, const struct err *e, const void *resp)
{
    struct known *k = arg;
    k->asked = false;
    if (e != NULL)
        return;
    found_heard(k, resp);
    if (!k->ours)
        try_join(k->f, resp);
    try_found(k->f);
    found_grow(k->f);
}

static void
found_ask_server(struct known *k)
{
    struct found *f = k->f;
    struct err e = ERR_INIT;
    struct str_list one = {(const char *[]){k->addr}, 1};
    if (k->ours || k->asked)
        return;
    if (k->client == NULL)
        k->client = rpc_dial(&f->o.dialer, &one, &e);
    if (k->client == NULL)
        return;
    auto_mem void *tmp = mem_ctx("hello");
    struct rpc_request q = {RPC_SERVER_HELLO, found_hello(f, tmp, NULL), NULL, CALL_MS};
    k->asked = true;
    rpc_send(k->client, &q, found_answered, k);
}

void
found_ask(struct found *f, uint64_t id)
{
    for (struct known *k = f->known; k != NULL; k = k->next)
        if (k->hello != NULL && k->hello->id == id)
            found_ask_server(k);
}

size_t
found_join(struct found *f, const struct str_list *addrs, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < addrs->n; i++) {
        struct known *k = found_join_cluster(f, addrs->v[i], e);
        n += k != NULL;
        if (k != NULL)
            found_ask_server(k);
    }
    return n;
}

/* Before there is a cluster it is asked, since gossip does not say whom it has seen. */
void
found_hears(struct found *f, const struct server_hello *h, bool alive)
{
    struct known *k = h->id != f->o.self.id ? known_at(f, str_or(h->serf, "")) : NULL;
    if (k != NULL && !alive && k->there && k->hello != NULL && k->hello->id != h->id)
        return; /* who was at that address before */
    if (k != NULL && f->is_ready) {
        for (struct known *o = f->known; o != NULL; o = o->next)
            o->there &= o->hello == NULL || o->hello->id != h->id; /* it was at another address */
        k->gossips = true;
        k->there = alive;
        mem_free(k->hello);
        k->hello = codec_clone(k, &type_server_hello, h);
    } else if (k != NULL && alive) {
        found_ask_server(k);
        try_join(f, h);
    }
    found_grow(f);
}

static void
round_cb(void *arg)
{
    struct found *f = arg;
    f->round = NULL;
    f->soon = false;
    for (struct known *k = f->known; k != NULL && !f->is_ready; k = k->next)
        found_ask_server(k);
    try_found(f);
    found_grow(f);
    f->o.news(f->o.arg);
    if (!f->is_ready && f->founder != 0 && f->founder != f->o.self.id)
        found_tell(
            f,
            "waits for the founder of its cluster; if that is lost for good, remove the file on "
            "all",
            "?");
    else if (!f->is_ready && f->o.self.expect == EXPECT_NONE)
        found_tell(f, "waits for a cluster to join: bootstrap_expect is 0", f->o.self.name);
    f->round = env_timer(f->o.env,
                         !f->is_ready ? ROUND_MS
                         : f->soon    ? ROUND_SOON_MS
                                      : ROUND_LATER_MS,
                         round_cb, f);
}

int
found_new(const struct found_opts *o, struct found **ret, struct err *e)
{
    struct found *f = mem_new(NULL, struct found);
    f->o = *o;
    f->path = mem_printf(f, "%s/founder", o->dir);
    int rc = read_kept(f, e);
    if (rc == 0)
        rc = check_log(f, e);
    char id[UUID_TEXT];
    /* a server that began alone is a cluster of its own */
    if (rc == 0 && f->cluster[0] == '\0' && !core_is_new(o->core))
        rc = found_keep(f, env_id(o->env, id), o->self.id, e);
    if (rc < 0) {
        mem_free(f);
        return rc;
    }
    for (size_t i = 0; i < o->join.n; i++) {
        struct err wrong = ERR_INIT;
        if (found_join_cluster(f, o->join.v[i], &wrong) == NULL)
            log_warn("found", "an address to join is ignored", "address", o->join.v[i], "error",
                     wrong.text, NULL);
    }
    *ret = f;
    return 0;
}

void
found_start(struct found *f)
{
    if (f->cluster[0] != '\0' && (!core_is_new(f->o.core) || f->founder != f->o.self.id))
        found_ready(f);
    f->round = env_timer(f->o.env, 0, round_cb, f);
}

void
found_free(struct found *f)
{
    if (f == NULL)
        return;
    env_timer_stop(f->o.env, f->round);
    for (struct known *k = f->known; k != NULL; k = k->next)
        rpc_client_close(k->client);
    mem_free(f);
}
