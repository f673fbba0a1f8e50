/* SPDX-License-Identifier: Apache-2.0
 *
 * The secrets of a task: variables that are read before its first start, for ${secret.NAME.KEY}.
 * They are kept in memory alone, and for its later starts as well. After a restart of the agent
 * they are read again, and templates wait for that: their environment has them.
 */
#include <string.h>

#include "client/lookup.h"
#include "client/task/handle.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"

enum { MISSING_QUIET_MS = 3000 }; /* before an event tells what is missing */

struct secret_hook { /* a talloc context */
    struct task_runner *tr;
    struct lookup **lookups; /* one of each; NULL: all is there */
    size_t n;
    struct timer *look;    /* at what has come: a use is not ended while its question tells */
    struct timer *tell;    /* until an event tells what is missing */
    struct str_map values; /* by "NAME.KEY" */
    bool ready;
};

/* --- what there is --- */

bool
secrets_ready(const struct task_runner *tr)
{
    return tr->task->secrets.n == 0 || (tr->hook.secret != NULL && tr->hook.secret->ready);
}

const struct str_map *
secrets_values(const struct task_runner *tr)
{
    return tr->hook.secret != NULL ? &tr->hook.secret->values : NULL;
}

static void
secret_unfollow(struct secret_hook *h)
{
    timer_stop(TAKE(h->look));
    timer_stop(TAKE(h->tell));
    for (size_t i = 0; h->lookups != NULL && i < h->n; i++)
        lookup_end(h->lookups[i]);
    mem_free(h->lookups);
    h->lookups = NULL;
}

static void
secret_take(struct secret_hook *h, const struct secret *s, const struct value *variable)
{
    const struct value *items = value_get(variable, "Items");
    for (size_t i = 0; items != NULL && i < items->map.n; i++)
        str_map_set(h, &h->values, mem_printf(h, "%s.%s", s->name, items->map.v[i].k),
                    mem_strdup(h, items->map.v[i].v->str.s));
}

/* --- what is missing --- */

static bool
secret_missing(const struct secret_hook *h, size_t i)
{
    const struct value *v = lookup_value(h->lookups[i]);
    return v == NULL || v->kind == VALUE_NULL;
}

static void
on_tell(void *arg)
{
    struct secret_hook *h = arg;
    struct task_runner *tr = h->tr;
    auto_mem void *tmp = mem_ctx("missing");
    const char *text = NULL;
    h->tell = NULL;
    for (size_t i = 0; i < h->n && text == NULL; i++)
        if (secret_missing(h, i))
            text = mem_printf(tmp, "Missing: the variable \"%.200s\" of secret \"%.128s\"",
                              tr->task->secrets.v[i]->path, tr->task->secrets.v[i]->name);
    if (text != NULL && tr->launching)
        tr->act(tr, task_sm_note(&tr->sm, clock_civil_ns(), TASK_EVENT_TEMPLATE, text));
}

/* Says whether all is there, and has taken it then. A refusal fails a task that is to start. */
static bool
secret_look(struct secret_hook *h)
{
    struct task_runner *tr = h->tr;
    const struct secret_list *all = &tr->task->secrets;
    for (size_t i = 0; i < h->n; i++) {
        const char *why = lookup_refusal(h->lookups[i]);
        if (why != NULL && tr->launching) {
            auto_mem void *tmp = mem_ctx("refused");
            const char *text = mem_printf(tmp, "Secret \"%.128s\": %.600s", all->v[i]->name, why);
            tr->act(tr, task_sm_fail(&tr->sm, clock_civil_ns(), text));
            return false;
        }
    }
    for (size_t i = 0; i < h->n; i++)
        if (secret_missing(h, i))
            return false;
    for (size_t i = 0; i < h->n; i++)
        secret_take(h, all->v[i], lookup_value(h->lookups[i]));
    h->ready = true;
    secret_unfollow(h);
    return true;
}

static void
on_look(void *arg)
{
    struct secret_hook *h = arg;
    struct task_runner *tr = h->tr;
    h->look = NULL;
    if (tr->ar->stopped || !secret_look(h))
        return;
    if (tr->launching)
        tr->up->go_on(tr);
    else
        tr->poststart(tr); /* of templates, which have waited */
}

static void
on_looked_up(void *arg)
{
    struct secret_hook *h = arg;
    if (h->look == NULL)
        h->look = timer_start(h->tr->ar->g->loop, 0, on_look, h);
}

/* --- the hook --- */

static struct secret_hook *
secret_begin(struct task_runner *tr)
{
    const struct secret_list *all = &tr->task->secrets;
    struct secret_hook *h = tr->hook.secret = mem_new(tr->ar, struct secret_hook);
    h->tr = tr;
    h->n = all->n;
    h->lookups = mem_array(h, struct lookup *, h->n);
    for (size_t i = 0; i < h->n; i++) {
        const struct value *ns = value_get(all->v[i]->config, "namespace");
        const char *path = all->v[i]->path;
        const struct lookup_key k = {
            .kind = LOOKUP_VARIABLE,
            .task = tr->sm.t->name,
            .ns = ns != NULL && ns->kind == VALUE_STRING ? ns->str.s : "",
            .region = "",
            .key = path + strspn(path, "/"),
        };
        h->lookups[i] = lookup_begin(tr->ar->g->lookups, tr->ar, &k, on_looked_up, h);
    }
    return h;
}

static bool
hook_secret_prestart(struct task_runner *tr)
{
    if (secrets_ready(tr))
        return true;
    struct secret_hook *h = tr->hook.secret;
    h = h != NULL ? h : secret_begin(tr);
    if (secret_look(h))
        return true;
    if (tr->hook.secret == h && h->tell == NULL) /* it was not refused */
        h->tell = timer_start(tr->ar->g->loop, MISSING_QUIET_MS, on_tell, h);
    return false;
}

static void
hook_secret_poststart(struct task_runner *tr)
{
    if (tr->sm.t->phase == TASK_RUNNING && !secrets_ready(tr) && tr->hook.secret == NULL)
        (void)secret_look(secret_begin(tr));
}

static void
hook_secret_stop(struct task_runner *tr)
{
    struct secret_hook *h = tr->hook.secret;
    if (h == NULL)
        return;
    secret_unfollow(h);
    if (h->ready && !tr->ar->stopped && tr->sm.t->phase != TASK_DEAD)
        return;
    tr->hook.secret = NULL;
    talloc_free(h);
}

const struct task_hook task_hook_secret = {
    .prestart = hook_secret_prestart, .poststart = hook_secret_poststart, .stop = hook_secret_stop};
