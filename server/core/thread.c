/* SPDX-License-Identifier: Apache-2.0
 *
 * The core's thread and its queue: the shell around core_step(), which waits for it.
 */
#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/mem.h"
#include "common/num.h"
#include "server/core/core_int.h"

/* --- the queue --- */

bool
core_enqueue(struct core *c, struct item *it)
{
    pthread_mutex_lock(&c->mutex);
    bool ok = !c->stopping;
    if (ok) {
        *c->queue_last = it;
        c->queue_last = &it->next;
        pthread_cond_signal(&c->wake);
    }
    pthread_mutex_unlock(&c->mutex);
    return ok;
}

bool
core_post(struct core *c, void (*fn)(void *arg), void *arg)
{
    struct item *it = mem_new(NULL, struct item);
    it->fn = fn;
    it->arg = arg;
    if (core_enqueue(c, it))
        return true;
    mem_free(it);
    return false;
}

void
core_durable(void *arg, uint64_t index)
{
    struct core *c = arg;
    pthread_mutex_lock(&c->mutex);
    c->durable = index;
    c->durable_news = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->mutex);
}

/* --- the thread --- */

/* Monotonic ms; CONSENSUS_NEVER: it has no timer. */
static int64_t
wakes_ms(const struct core *c)
{
    return c->space_ms != 0 && (c->timeout_ms == CONSENSUS_NEVER || c->space_ms < c->timeout_ms)
               ? c->space_ms
               : c->timeout_ms;
}

bool
core_wait(struct core *c, struct core_input *ret)
{
    int64_t end_ms = wakes_ms(c);
    pthread_mutex_lock(&c->mutex);
    /* while the state waits for space the queue stays where it is */
    while ((c->space_ms != 0 || c->queue == NULL) && !c->durable_news && !c->stopping) {
        if (end_ms == CONSENSUS_NEVER) {
            pthread_cond_wait(&c->wake, &c->mutex);
            continue;
        }
        struct timespec ts = {.tv_sec = end_ms / 1000, .tv_nsec = end_ms % 1000 * NS_PER_MS};
        if (pthread_cond_timedwait(&c->wake, &c->mutex, &ts) == ETIMEDOUT)
            break;
    }
    *ret = (struct core_input){.durable = c->durable_news ? c->durable : 0};
    c->durable_news = false;
    if (c->space_ms == 0 || c->stopping) {
        ret->items = c->queue;
        c->queue = NULL;
        c->queue_last = &c->queue;
    }
    bool end = c->stopping && ret->items == NULL && ret->durable == 0;
    pthread_mutex_unlock(&c->mutex);
    return !end;
}

static void *
core_main(void *arg)
{
    struct core *c = arg;
    struct core_input in = {0};
    prctl(PR_SET_NAME, "core");
    core_begin(c, env_mono_ms(c->env));
    do
        core_step(c, env_mono_ms(c->env), &in);
    while (core_wait(c, &in));
    return NULL;
}

int
core_start(struct core *c, struct err *e)
{
    int rc = pthread_create(&c->thread, NULL, core_main, c);
    if (rc != 0)
        return err_errno(e, rc, "start the core thread");
    c->started = true;
    return 0;
}

void
core_stop(struct core *c)
{
    pthread_mutex_lock(&c->mutex);
    c->stopping = true;
    atomic_store(&c->leader, false);
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->mutex);
    if (c->started)
        pthread_join(c->thread, NULL);
    c->started = false;
    core_join_snapshot(c);
    raft_log_close(TAKE(c->log)); /* what was appended becomes durable, and is applied next time */
    core_fail_entries(c, -ERR_CANCELED, "the server is shutting down; the write may still be committed");
}
