/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening the wrapping key where it is sealed, and asking other servers for the key, one after the
 * other (see fetch.h).
 *
 *   WAITING  a timer          is it wanted? then OPENING, or ASKING
 *   OPENING  a worker         done: over; else ASKING
 *   ASKING   another server   its answer: KEEPING; its failure: WAITING
 *   KEEPING  a worker         done: over; a failure: WAITING
 */
#include "server/keys/fetch.h"

#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "net/rpc.h"
#include "server/gate.h"
#include "server/host.h"
#include "server/keys/keys.h"
#include "server/state/state.h"

enum { LOOK_MS = 2000, ANSWER_MS = 5000 };

struct keys_fetch {
    struct server *s;
    struct gate *gate;
    struct loop *loop;
    struct timer *timer;
    size_t next; /* of the members */
    struct rpc_client *client;
    uint8_t *key; /* that was answered; NULL */
    bool working, stopped;
    struct err e;
};

static void fetch_look(void *arg);

static void
fetch_free(struct keys_fetch *f)
{
    seal_free(f->key, SEAL_KEY);
    gate_unref(f->gate);
    talloc_free(f);
}

static void
fetch_later(struct keys_fetch *f)
{
    f->timer = env_timer(server_env(f->s), LOOK_MS, fetch_look, f);
}

/* --- keeping it --- */

static void
keep_work(void *arg)
{
    struct keys_fetch *f = arg;

    if (!gate_enter(f->gate))
        return;
    (void)keys_take_wrapping(server_keys(f->s), f->key, &f->e);
    gate_leave(f->gate);
}

static void
keep_done(void *arg)
{
    struct keys_fetch *f = arg;

    f->working = false;
    seal_free(TAKE(f->key), SEAL_KEY);
    if (f->stopped) {
        fetch_free(f);
    } else if (f->e.code != 0) {
        log_error("keys", "the wrapping key of another server is not kept", "error", f->e.text,
                  NULL);
        fetch_later(f);
    } else {
        log_info("keys", "has the wrapping key of the other servers now", NULL);
    }
}

/* Says whether a root key of the state is wrapped by that key. */
static bool
key_is_ours(const struct keys_fetch *f, const char *name)
{
    auto_mem void *tmp = mem_ctx("wrapping");
    struct state_txn *t = server_read_begin(f->s, tmp);
    struct state_iter *it = state_ids(t, tmp, STATE_ROOT_KEYS, NULL);
    bool ours = false;

    for (struct root_key *k; (k = state_next(it, tmp)) != NULL;)
        ours |= str_eq(k->wrapping, name);
    state_read_end(t);
    return ours;
}

static void
fetch_answered(void *arg, const struct err *e, const void *resp)
{
    struct keys_fetch *f = arg;
    const struct wrapping_key_response *r = resp;
    struct rpc_client *client = f->client;

    if (f->stopped)
        return; /* it is being closed */
    f->client = NULL;
    if (e != NULL || r->key.n != SEAL_KEY || !key_is_ours(f, r->name)) {
        log_debug("keys", "another server has not told the wrapping key", "error",
                  e != NULL ? e->text : "it has another one", NULL);
        fetch_later(f);
    } else {
        f->key = seal_alloc(SEAL_KEY);
        memcpy(f->key, r->key.v, SEAL_KEY);
        seal_wipe((uint8_t *)(uintptr_t)r->key.v, SEAL_KEY);
        f->working = true;
        env_work(server_env(f->s), keep_work, keep_done, f);
    }
    rpc_client_close(client);
}

/* --- asking --- */

/* Returns the next server that is there; NULL: there is no other. */
static const char *
next_member(struct keys_fetch *f, const void *ctx)
{
    size_t n = 0;
    const struct server_member *all = server_members(f->s, ctx, &n);

    for (size_t i = 0; i < n; i++) {
        const struct server_member *m = &all[f->next++ % n];
        if (m->alive && !str_empty(m->hello->addr) &&
            !str_eq(m->hello->addr, server_cfg(f->s)->rpc_addr))
            return m->hello->addr;
    }
    return NULL;
}

static void
fetch_ask(struct keys_fetch *f)
{
    static const struct empty none;
    auto_mem void *tmp = mem_ctx("ask");
    const char *addr = next_member(f, tmp);
    const struct server_config *cfg = server_cfg(f->s);
    const struct rpc_request q = {RPC_KEYRING_WRAPPING, &none, NULL, ANSWER_MS, NULL};
    struct err e = ERR_INIT;

    if (addr != NULL) {
        const struct dialer d = server_dialer(f->s, tmp, f->loop, cfg->region);
        const struct str_list one = {&addr, 1};
        f->client = rpc_dial(&d, &one, &e);
    }
    if (f->client != NULL)
        (void)rpc_send(f->client, &q, fetch_answered, f);
    else
        fetch_later(f);
}

/* Says whether it is here, and wraps a root key of the state. */
static bool
fetch_is_over(const struct keys_fetch *f)
{
    char name[KEYS_WRAPPING_NAME] = "";
    uint8_t *key = seal_alloc(SEAL_KEY);
    bool here = keys_wrapping(server_keys(f->s), name, key);

    seal_free(key, SEAL_KEY);
    return here && key_is_ours(f, name);
}

static void
open_work(void *arg)
{
    struct keys_fetch *f = arg;

    if (!gate_enter(f->gate))
        return;
    err_clear(&f->e);
    (void)keys_unseal(server_keys(f->s), &f->e);
    gate_leave(f->gate);
}

static void fetch_others(struct keys_fetch *f);

static void
open_done(void *arg)
{
    struct keys_fetch *f = arg;

    f->working = false;
    if (f->stopped) {
        fetch_free(f);
        return;
    }
    if (f->e.code != 0)
        log_warn("keys", "the key that wraps the key ring is not opened yet", "error", f->e.text,
                 NULL);
    else if (fetch_is_over(f))
        return;
    fetch_others(f);
}

static void
fetch_look(void *arg)
{
    struct keys_fetch *f = arg;

    f->timer = NULL;
    if (fetch_is_over(f))
        return;
    if (server_cfg(f->s)->transit == NULL) {
        fetch_others(f);
        return;
    }
    f->working = true;
    env_work(server_env(f->s), open_work, open_done, f);
}

static bool
others_tell(const struct server_config *cfg)
{
    return cfg->verify_servers && cfg->expect > 1 && str_empty(cfg->wrapping_key);
}

static void
fetch_others(struct keys_fetch *f)
{
    auto_mem void *tmp = mem_ctx("look");
    struct state_txn *t = server_read_begin(f->s, tmp);
    bool any = state_any_row(t, STATE_ROOT_KEYS);
    state_read_end(t);
    if (any && others_tell(server_cfg(f->s))) /* and this server cannot unwrap one of them */
        fetch_ask(f);
    else
        fetch_later(f);
}

struct keys_fetch *
keys_fetch_start(struct server *s, struct loop *l)
{
    const struct server_config *cfg = server_cfg(s);
    struct keys_fetch *f;

    if (cfg->transit == NULL && !others_tell(cfg))
        return NULL;
    f = mem_new(NULL, struct keys_fetch);
    f->s = s;
    f->loop = l;
    f->gate = gate_ref(server_gate(s));
    if (cfg->transit != NULL)
        f->timer = env_timer(server_env(s), 0, fetch_look, f);
    else
        fetch_later(f);
    return f;
}

void
keys_fetch_stop(struct keys_fetch *f)
{
    if (f == NULL)
        return;
    f->stopped = true;
    env_timer_stop(server_env(f->s), TAKE(f->timer));
    rpc_client_close(TAKE(f->client));
    if (!f->working)
        fetch_free(f);
}
