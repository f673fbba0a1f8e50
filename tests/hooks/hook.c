/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds, the pause of the scheduler and moved clocks (see hook.h). One process has one of each,
 * whichever of its servers is asked.
 */
#include "server/hook.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "server/peer/lossy.h"

enum { JSON_ROOM = 16 << 20 };

struct held {
    struct held *next;
    struct value *what;
    struct test_go go; /* fn NULL: a thread waits for it */
    bool released;
};

struct rule {
    struct rule *next;
    uint64_t id;
    char *point;
    struct value *match;
    int64_t left; /* -1: without end */
    struct held *first, **last;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static struct rule *rules;
static uint64_t last_id;
static struct server *ended; /* stops, or has */
static atomic_int n_rules;
static atomic_bool paused;
static atomic_int_least64_t mono, wall;
static struct env machine; /* its clocks as they are */

bool
test_hook_paused(void)
{
    return atomic_load(&paused);
}

void
test_hook_pause(bool on)
{
    atomic_store(&paused, on);
}

static int64_t
moved_mono(void *arg)
{
    return machine.mono_ns(arg) + atomic_load(&mono);
}

static int64_t
moved_wall(void *arg)
{
    return machine.wall_ns(arg) + atomic_load(&wall);
}

void
test_hook_env(struct env *e, bool moves_mono)
{
    if (machine.mono_ns == NULL)
        machine = *e;
    e->wall_ns = moved_wall;
    if (moves_mono)
        e->mono_ns = moved_mono;
}

void
test_hook_clock(int64_t mono_ns, int64_t wall_ns)
{
    atomic_fetch_add(&mono, mono_ns);
    atomic_fetch_add(&wall, wall_ns);
}

/* --- what is meant --- */

static struct value *
as_value(const void *ctx, const struct type *t, const void *obj)
{
    struct buf b;
    struct value *v = NULL;
    struct err e = ERR_INIT;

    buf_init(&b, JSON_ROOM);
    json_encode(&b, t, obj, JSON_HIDE_SECRETS);
    if (buf_error(&b) != 0 ||
        json_decode_value(ctx, SLICE(b.data, b.len), BUDGET(SIZE_MAX), &v, &e) < 0)
        v = value_null(ctx);
    buf_done(&b);
    return v;
}

/* A list "NodeIDs" has what is a "NodeID". */
static bool
hook_lists(const struct value_pair *p, const char *key, const struct value *want)
{
    size_t n = strlen(key);

    if (p->v->kind != VALUE_LIST || strncmp(p->k, key, n) != 0 || !str_eq(p->k + n, "s"))
        return false;
    for (size_t i = 0; i < p->v->list.n; i++)
        if (value_equal(p->v->list.v[i], want))
            return true;
    return false;
}

/* "NodeID" is the ID of what a member "Node" holds, too. */
static bool
hook_named(const char *key, const char *parent, const char *member)
{
    size_t n = strlen(str_or(parent, ""));

    return str_eq(key, member) ||
           (n > 0 && str_eq(member, "ID") && strncmp(key, parent, n) == 0 && str_eq(key + n, "ID"));
}

static bool
hook_finds(const struct value *v, const char *parent, const char *key, const struct value *want)
{
    for (size_t i = 0; v->kind == VALUE_LIST && i < v->list.n; i++)
        if (hook_finds(v->list.v[i], parent, key, want))
            return true;
    for (size_t i = 0; v->kind == VALUE_MAP && i < v->map.n; i++) {
        const struct value_pair *p = &v->map.v[i];
        if ((hook_named(key, parent, p->k) && value_equal(p->v, want)) ||
            hook_lists(p, key, want) || hook_finds(p->v, p->k, key, want))
            return true;
    }
    return false;
}

static bool
hook_matches(const struct rule *r, const struct value *what)
{
    for (size_t i = 0; r->match != NULL && i < r->match->map.n; i++)
        if (!hook_finds(what, NULL, r->match->map.v[i].k, r->match->map.v[i].v))
            return false;
    return true;
}

static bool
is_point(const char *point, const char *what, const char *stage)
{
    size_t n = strlen(what);

    return strncmp(point, what, n) == 0 && point[n] == ':' && str_eq(point + n + 1, stage);
}

/* NULL: nobody holds it. With the mutex. */
static struct held *
hook_hold(const char *what, const char *stage, const struct type *t, const void *obj,
          const struct test_go *go)
{
    for (struct rule *r = ended != NULL && go->s == ended ? NULL : rules; r != NULL; r = r->next) {
        if (r->left == 0 || !is_point(r->point, what, stage))
            continue;
        struct held *h = mem_new(r, struct held);
        h->what = as_value(h, t, obj);
        if (!hook_matches(r, h->what)) {
            mem_free(h);
            continue;
        }
        r->left -= r->left > 0;
        h->go = *go;
        *r->last = h;
        r->last = &h->next;
        return h;
    }
    return NULL;
}

bool
test_hook_hold(const char *what, const char *stage, const struct type *t, const void *obj,
               const struct test_go *go)
{
    if (atomic_load(&n_rules) == 0)
        return false;
    pthread_mutex_lock(&mutex);
    bool held = hook_hold(what, stage, t, obj, go) != NULL;
    pthread_mutex_unlock(&mutex);
    return held;
}

/* The method whose write is this entry. */
static const char *
method_of(const struct intent *in)
{
    return in->node_status != NULL        ? "Node.UpdateStatus"
           : in->node_register != NULL    ? "Node.Register"
           : in->alloc_update != NULL     ? "Node.UpdateAlloc"
           : in->node_eligibility != NULL ? "Node.UpdateEligibility"
           : in->node_drain != NULL       ? "Node.UpdateDrain"
           : in->node_purge != NULL       ? "Node.Purge"
           : in->node_evaluate != NULL    ? "Node.Evaluate"
           : in->job_register != NULL     ? "Job.Register"
           : in->job_deregister != NULL   ? "Job.Deregister"
           : in->plan_result != NULL      ? "plan"
           : in->eval_update != NULL      ? "eval"
                                          : "other";
}

void
test_hook_apply(const struct intent *in)
{
    const struct test_go go = {0};

    if (atomic_load(&n_rules) == 0)
        return;
    pthread_mutex_lock(&mutex);
    struct held *h = hook_hold(method_of(in), "apply", &type_intent, in, &go);
    while (h != NULL && !h->released)
        pthread_cond_wait(&freed, &mutex);
    mem_free(h);
    pthread_mutex_unlock(&mutex);
}

/* --- rules --- */

uint64_t
test_hook_rule(const char *point, const struct value *match, int64_t count)
{
    struct rule *r = mem_new(NULL, struct rule), **at = &rules;

    pthread_mutex_lock(&mutex);
    r->id = ++last_id;
    r->point = mem_strdup(r, point);
    r->match = match != NULL && match->kind == VALUE_MAP ? value_clone(r, match) : NULL;
    r->left = count > 0 ? count : -1;
    r->last = &r->first;
    while (*at != NULL)
        at = &(*at)->next;
    *at = r;
    uint64_t id = r->id;
    atomic_fetch_add(&n_rules, 1);
    pthread_mutex_unlock(&mutex);
    return id;
}

/* With the mutex: what was held goes on; the rule is gone. */
static void
let_go(struct rule **at)
{
    struct rule *r = *at;

    *at = r->next;
    atomic_fetch_sub(&n_rules, 1);
    for (struct held *h = r->first, *next; h != NULL; h = next) {
        next = h->next;
        h->released = true;
        if (h->go.fn == NULL)
            talloc_steal(NULL, h); /* its thread frees it */
        else if (h->go.apply)
            (void)server_post_apply(h->go.s, h->go.fn, h->go.arg);
        else
            env_post(server_env(h->go.s), h->go.fn, h->go.arg);
    }
    pthread_cond_broadcast(&freed);
    mem_free(r);
}

bool
test_hook_release(uint64_t id)
{
    pthread_mutex_lock(&mutex);
    struct rule **at = &rules;
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    bool found = *at != NULL;
    if (found)
        let_go(at);
    pthread_mutex_unlock(&mutex);
    return found;
}

void
test_hook_end(struct server *s)
{
    pthread_mutex_lock(&mutex);
    ended = s;
    while (rules != NULL)
        let_go(&rules);
    pthread_mutex_unlock(&mutex);
}

struct value *
test_hook_held(const void *ctx)
{
    struct value *all = value_list(ctx);

    pthread_mutex_lock(&mutex);
    for (const struct rule *r = rules; r != NULL; r = r->next) {
        struct value *v = value_map(all), *held = value_list(all);
        for (const struct held *h = r->first; h != NULL; h = h->next)
            value_list_add(held, value_clone(all, h->what));
        value_map_set(v, "ID", value_int(all, (int64_t)r->id));
        value_map_set(v, "Point", value_str(all, r->point));
        value_map_set(v, "Count", value_int(all, r->left));
        value_map_set(v, "Held", held);
        value_list_add(all, v);
    }
    pthread_mutex_unlock(&mutex);
    return all;
}

/* --- links --- */

static bool
is_server(const struct server_hello *h, const char *name)
{
    size_t n = strlen(name);

    return str_eq(h->addr, name) || str_eq(h->name, name) ||
           (str_prefix(str_or(h->name, ""), name) && h->name[n] == '.');
}

bool
test_hook_link(struct server *s, const struct value *body)
{
    auto_mem void *tmp = mem_ctx("link");
    const struct value *peer = value_get(body, "peer");
    size_t n = 0;
    const struct server_member *m = server_members(s, tmp, &n);

    for (size_t i = 0; i < n && peer != NULL && peer->kind == VALUE_STRING; i++) {
        if (!is_server(m[i].hello, peer->str.s))
            continue;
        test_hook_lossy(m[i].hello->addr, body);
        return true;
    }
    return false;
}
