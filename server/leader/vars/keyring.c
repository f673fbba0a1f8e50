/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader's care for the key ring: makes the first root key, and later ones in time; activates
 * those that were published; seals variables anew, a part at a time; removes keys without use.
 * A worker looks for the next thing to do and makes an entry; when the log has the entry, it looks
 * again, else when the ring changes, and every root_key_gc_interval.
 */
#include "api/vars/vars.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/uuid.h"
#include "server/keys/keys.h"
#include "server/leader/leader_int.h"

enum {
    RETRY_MS = 5000,
    INTERVAL_MIN_MS = 1000,
    REKEY_ROWS = 256,      /* of an entry */
    REKEY_BYTES = 1 << 20, /* at which it ends */
};

struct keyring {
    struct leader *l;
    uint64_t gen; /* counts leaderships: looks of an older one are dropped */
    struct timer *timer;
    bool looking, again; /* ... once more when it is done */
};

struct look {
    struct keyring *r;
    struct gate *gate;
    uint64_t gen;
    int64_t now;
    char id[UUID_TEXT]; /* of a key that is made */
    struct intent in;   /* nothing is set: there is nothing to do, */
    int64_t next;       /* but at that time; 0: at none */
    struct err e;
};

/* --- what there is to do; on a worker --- */

static bool
look_makes(struct look *x, struct state_txn *t, bool first, int64_t publish)
{
    struct keyring *r = x->r;
    struct intent_root_key_upsert *up = mem_new(x, struct intent_root_key_upsert);

    up->first = first;
    up->key = keys_make(x, server_keys(r->l->s), t, x->id, &x->e);
    if (up->key == NULL)
        return true;
    if (publish != 0) {
        up->key->state = KEY_PREPUBLISHED;
        up->key->publish_time = publish;
    }
    x->in.root_key_upsert = up;
    return true;
}

/* Seals the next variables of a key that is to seal none. */
static bool
look_rekeys(struct look *x, struct state_txn *t, const struct root_key *old)
{
    struct keys *keys = server_keys(x->r->l->s);
    struct key *from = keys_get(keys, t, old->key_id, &x->e);
    struct key *to = from != NULL ? keys_active(keys, t, &x->e) : NULL;
    struct intent_variables_rekey *in = mem_new(x, struct intent_variables_rekey);
    struct state_iter *it = state_by(t, x, VARIABLES_BY_KEY, old->key_id);
    size_t bytes = 0;

    in->key_id = old->key_id;
    for (struct sealed_variable *v;
         to != NULL && in->variables.n < REKEY_ROWS && bytes < REKEY_BYTES &&
         (v = state_next(it, x)) != NULL && keys_reseal(x, from, to, v, &x->e) == 0;) {
        list_add(x, in->variables, v);
        bytes += v->sealed.n;
    }
    key_unref(from);
    key_unref(to);
    x->in.variables_rekey = in;
    return true;
}

static bool
look_publishes(struct look *x, const struct root_key *k)
{
    struct intent_root_key_upsert *up = mem_new(x, struct intent_root_key_upsert);

    up->key = codec_clone(x, &type_root_key, k);
    up->key->state = KEY_ACTIVE;
    x->in.root_key_upsert = up;
    return true;
}

static bool
look_removes(struct look *x, const struct root_key *k)
{
    struct intent_root_key_delete *del = mem_new(x, struct intent_root_key_delete);

    del->key_id = k->key_id;
    x->in.root_key_delete = del;
    return true;
}

static bool
look_at_key(struct look *x, struct state_txn *t, const struct root_key *k)
{
    const struct agent_server *a = server_cfg(x->r->l->s)->agent;
    int64_t kept = a->root_key_rotation_threshold + a->root_key_gc_threshold;

    if (str_eq(k->state, KEY_PREPUBLISHED)) {
        x->next = x->next == 0 || k->publish_time < x->next ? k->publish_time : x->next;
        return k->publish_time <= x->now && look_publishes(x, k);
    }
    if (str_eq(k->state, KEY_REKEYING))
        return look_rekeys(x, t, k);
    return str_eq(k->state, KEY_INACTIVE) && x->now - k->create_time > kept &&
           !state_any_key(t, STATE_VARIABLES_BY_KEY, k->key_id) && look_removes(x, k);
}

static void
look_at_ring(struct look *x, struct state_txn *t)
{
    const struct server_config *cfg = server_cfg(x->r->l->s);
    int64_t age = cfg->agent->root_key_rotation_threshold;
    struct state_iter *it = state_ids(t, x, STATE_ROOT_KEYS, NULL);
    const struct root_key *active = NULL;
    bool next = false;

    if (!state_any_row(t, STATE_ROOT_KEYS)) {
        (void)(cfg->makes_keys && look_makes(x, t, true, 0));
        return;
    }
    for (struct root_key *k; (k = state_next(it, x)) != NULL;) {
        active = str_eq(k->state, KEY_ACTIVE) ? k : active;
        next |= str_eq(k->state, KEY_PREPUBLISHED);
        if (look_at_key(x, t, k)) {
            state_iter_end(it);
            return;
        }
    }
    if (active != NULL && !next && x->now - active->create_time > age / 2)
        (void)look_makes(x, t, false, active->create_time + age);
}

static void
look_work(void *arg)
{
    struct look *x = arg;

    if (!gate_enter(x->gate))
        return;
    struct state_txn *t = server_read_begin(x->r->l->s, x);
    look_at_ring(x, t);
    state_read_end(t);
    gate_leave(x->gate);
}

/* --- the loop --- */

static void keyring_look(void *arg);

/* False: the server stops, or leads no more. */
static bool
look_goes_on(const struct look *x)
{
    return !gate_is_closed(x->gate) && x->r->l->on && x->r->gen == x->gen;
}

static void
look_free(struct look *x)
{
    gate_unref(x->gate);
    talloc_free(x);
}

static void
look_ends(struct look *x, int64_t after_ms)
{
    struct keyring *r = x->r;

    if (look_goes_on(x)) {
        r->looking = false;
        env_timer_stop(r->l->env, r->timer);
        r->timer = env_timer(r->l->env, TAKE(r->again) ? 0 : after_ms, keyring_look, r);
    }
    look_free(x);
}

static void
look_written(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    (void)index;
    (void)res;
    look_ends(arg, e == NULL ? 0 : RETRY_MS);
}

/* Returns the time until the next look, which is sooner where a key is to be active before. */
static int64_t
look_interval_ms(const struct look *x)
{
    int64_t ms = server_cfg(x->r->l->s)->agent->root_key_gc_interval / NS_PER_MS;
    int64_t next = (x->next - x->now) / NS_PER_MS;

    ms = x->next != 0 && next < ms ? next : ms;
    return ms > INTERVAL_MIN_MS ? ms : INTERVAL_MIN_MS;
}

static void
look_done(void *arg)
{
    struct look *x = arg;
    bool any = codec_member(&type_intent, &x->in) != 0;

    if (!look_goes_on(x)) {
        look_free(x);
        return;
    }
    if (x->e.code != 0)
        log_error("keyring", "the key ring cannot be looked after", "error", x->e.text, NULL);
    if (x->e.code == 0 && any)
        server_propose(x->r->l->s, &x->in, HOME_LOOP, look_written, x);
    else
        look_ends(x, x->e.code != 0 ? RETRY_MS : look_interval_ms(x));
}

static void
keyring_look(void *arg)
{
    struct keyring *r = arg;
    struct look *x = mem_new(NULL, struct look);

    r->timer = NULL;
    r->looking = true;
    *x = (struct look){.r = r,
                       .gate = gate_ref(r->l->gate),
                       .gen = r->gen,
                       .now = env_wall_ns(r->l->env)};
    (void)env_id(r->l->env, x->id);
    env_work(r->l->env, look_work, look_done, x);
}

static void
keyring_wake(void *arg)
{
    struct keyring *r = arg;

    if (!r->l->on)
        return;
    r->again = r->looking;
    if (!r->looking) {
        env_timer_stop(r->l->env, r->timer);
        r->timer = env_timer(r->l->env, 0, keyring_look, r);
    }
}

/* --- the row --- */

static void
row_init(struct leader *l)
{
    l->keyring = mem_new(l, struct keyring);
    l->keyring->l = l;
}

static void
row_on_applied(struct leader *l, uint64_t index, const struct intent *in,
               const struct fsm_result *res)
{
    (void)index;
    (void)in;
    if (FSM_COUNT(res, ROOT_KEYS, STORED) > 0)
        env_post(l->env, keyring_wake, l->keyring);
}

static void
row_begin(struct leader *l)
{
    struct keyring *r = l->keyring;

    r->gen++;
    r->looking = r->again = false;
    if (server_cfg(l->s)->makes_keys)
        r->timer = env_timer(l->env, 0, keyring_look, r);
}

static void
row_end(struct leader *l)
{
    l->keyring->gen++;
    env_timer_stop(l->env, TAKE(l->keyring->timer));
}

const struct controller keyring_row = {
    .init = row_init, .on_applied = row_on_applied, .begin = row_begin, .end = row_end};
