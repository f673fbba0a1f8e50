/* SPDX-License-Identifier: Apache-2.0 */
#include "client/dns/lookup.h"

#include <string.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/mem.h"
#include "common/str.h"

enum {
    LOOK_MS = 10 * 1000,       /* between two looks for names to forget */
    KEEP_MS = 10 * 60 * 1000,  /* that nobody asks for any more */
    KEEP_NONE_MS = 30 * 1000,  /* ... without instances */
    WATCH_MS = 5 * 60 * 1000,  /* a blocking query */
    WATCH_LATE_MS = 30 * 1000
};

enum { NAME_KEY = 2 * DNS_LABEL_MAX + 2 };

struct name { /* a talloc context */
    UT_hash_handle hh;
    struct lookup *in;
    char key[NAME_KEY]; /* "web.default" */
    const char *name, *namespace;
    uint64_t index; /* 0: nothing was answered yet */
    struct zone_set *set;
    uint64_t call;
    struct timer *again;
    int64_t backoff_ms;
    int64_t asked_ms;
    struct lookup_wait *waits;
    bool gone; /* freed when its call ends */
};

struct lookup {
    struct ground *g;
    struct name *all;
    size_t waits;
    struct timer *look;
    int64_t second; /* in which `made` names were new */
    unsigned made;
    bool stopped;
};

static void name_ask(struct name *n);

/* --- waiting --- */

void
lookup_unwait(struct lookup_wait *w)
{
    struct name *n = TAKE(w->of);
    if (!n)
        return;
    DL_DELETE(n->waits, w);
    n->in->waits--;
}

static void
name_tell(struct name *n)
{
    struct lookup_wait *w;
    while ((w = n->waits) != NULL) {
        lookup_unwait(w);
        w->found(w, n->set);
    }
}

/* --- what the servers say --- */

static void
name_forget(struct name *n)
{
    HASH_DEL(n->in->all, n);
    n->gone = true;
    name_tell(n);
    timer_stop(n->again);
    if (n->call)
        rpc_cancel(n->in->g->rpc, n->call);
    else
        talloc_free(n);
}

static void
on_again(void *arg)
{
    struct name *n = arg;
    n->again = NULL;
    name_ask(n);
}

static void
on_named(void *arg, const struct err *e, const void *resp)
{
    struct name *n = arg;
    struct ground *g = n->in->g;
    const struct services_response *r = resp;
    n->call = 0;
    if (n->gone) {
        talloc_free(n);
    } else if (e) {
        n->again = timer_start(g->loop, backoff_next(&n->backoff_ms), on_again, n);
        name_tell(n);
    } else {
        n->backoff_ms = 0;
        n->index = r->meta && r->meta->index > 0 ? r->meta->index : 1;
        mem_free(n->set);
        n->set = zone_set_new(n, &r->services);
        n->again = timer_start(g->loop, 0, on_again, n); /* not from inside of what is told */
        name_tell(n);
    }
    hold_release(&g->hold);
}

static void
name_ask(struct name *n)
{
    struct ground *g = n->in->g;
    struct id_request req = {.id = n->name, .healthy = true};
    struct rpc_envelope env = ground_proof(g);
    int64_t timeout = n->set ? WATCH_MS + WATCH_LATE_MS : LOOKUP_WAIT_MS;
    env.namespace = n->namespace;
    env.stale = true;
    env.min_index = n->index;
    env.wait = WATCH_MS * NS_PER_MS;
    struct rpc_request r = {RPC_SERVICE_FIND, &req, &env, timeout};
    hold_take(&g->hold);
    n->call = rpc_send(g->rpc, &r, on_named, n);
}

/* --- which are kept --- */

static bool
name_is_old(const struct name *n, int64_t now)
{
    bool none = !n->set || n->set->n == 0;
    return !n->waits && now - n->asked_ms > (none ? KEEP_NONE_MS : KEEP_MS);
}

static void
on_look(void *arg)
{
    struct lookup *ns = arg;
    struct name *n, *next;
    int64_t now = loop_now_ms(ns->g->loop);
    ns->look = NULL;
    HASH_ITER (hh, ns->all, n, next)
        if (name_is_old(n, now))
            name_forget(n);
    if (ns->all)
        ns->look = timer_start(ns->g->loop, LOOK_MS, on_look, ns);
}

/* Makes room for another one: the oldest goes, of those without instances first. False: all are
 * waited for. */
static bool
lookup_make_room(struct lookup *ns)
{
    struct name *oldest = NULL;
    bool oldest_none = false;
    if (HASH_COUNT(ns->all) < LOOKUP_MAX)
        return true;
    for (struct name *n = ns->all; n; n = n->hh.next) {
        bool none = !n->set || n->set->n == 0;
        if (n->waits)
            continue;
        if (!oldest || (none && !oldest_none) ||
            (none == oldest_none && n->asked_ms < oldest->asked_ms)) {
            oldest = n;
            oldest_none = none;
        }
    }
    if (oldest)
        name_forget(oldest);
    return oldest != NULL;
}

/* False: too many new ones in this second. */
static bool
lookup_may_make(struct lookup *ns)
{
    int64_t second = loop_now_ms(ns->g->loop) / 1000;
    if (second != ns->second) {
        ns->second = second;
        ns->made = 0;
    }
    return ns->made++ < LOOKUP_NEW_MAX;
}

static struct name *
lookup_make(struct lookup *ns, const struct zone_service *s, const char *key)
{
    if (!lookup_make_room(ns))
        return NULL;
    struct name *n = mem_new(ns, struct name);
    *n = (struct name){.in = ns,
                       .name = mem_strdup(n, s->name),
                       .namespace = mem_strdup(n, s->namespace)};
    str_copy(n->key, sizeof(n->key), key);
    HASH_ADD_STR(ns->all, key, n);
    name_ask(n);
    if (!ns->look)
        ns->look = timer_start(ns->g->loop, LOOK_MS, on_look, ns);
    return n;
}

/* --- asking --- */

static struct name *
lookup_find(struct lookup *ns, const struct zone_service *s, char key[NAME_KEY])
{
    struct name *n;
    snprintf(key, NAME_KEY, "%s.%s", s->name, s->namespace);
    HASH_FIND_STR(ns->all, key, n);
    return n;
}

bool
lookup_get(struct lookup *ns, const struct zone_service *s, const struct zone_set **ret)
{
    char key[NAME_KEY];
    struct name *n = ns->stopped ? NULL : lookup_find(ns, s, key);
    *ret = NULL;
    if (!n && !ns->stopped && lookup_may_make(ns))
        n = lookup_make(ns, s, key);
    if (!n)
        return true;
    n->asked_ms = loop_now_ms(ns->g->loop);
    *ret = n->set;
    /* `again`: no server answered just now */
    return n->set || n->again || ns->waits >= LOOKUP_WAITS_MAX;
}

void
lookup_wait(struct lookup *ns, const struct zone_service *s, struct lookup_wait *w)
{
    char key[NAME_KEY];
    w->of = lookup_find(ns, s, key);
    ASSERT(w->of != NULL);
    DL_APPEND(w->of->waits, w);
    ns->waits++;
}

struct lookup *
lookup_new(struct ground *g)
{
    struct lookup *ns = mem_new(g, struct lookup);
    ns->g = g;
    return ns;
}

void
lookup_stop(struct lookup *ns)
{
    struct name *n, *next;
    ns->stopped = true;
    timer_stop(TAKE(ns->look));
    HASH_ITER (hh, ns->all, n, next)
        name_forget(n);
}
