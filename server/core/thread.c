/* SPDX-License-Identifier: Apache-2.0
 *
 * The core's threads: shells around core_step() and apply_step(), which wait for them.
 */
#include <sys/prctl.h>

#include "common/duration.h"
#include "common/mem.h"
#include "server/core/core_int.h"

static void
note_turn(struct core *c, size_t half, int64_t begin_ns)
{
    int64_t ns = env_mono_ns(c->env) - begin_ns;
    if (ns > atomic_load_explicit(&c->turn_ns[half], memory_order_relaxed))
        atomic_store_explicit(&c->turn_ns[half], ns, memory_order_relaxed);
}

static void *
raft_main(void *arg)
{
    struct core *c = arg;
    struct core_input in = {0};
    prctl(PR_SET_NAME, "raft");
    core_begin(c, env_mono_ms(c->env));
    do {
        int64_t now = env_mono_ns(c->env);
        core_step(c, now / NS_PER_MS, &in);
        note_turn(c, 0, now);
    } while (core_wait(c, &in));
    return NULL;
}

static void *
apply_main(void *arg)
{
    struct core *c = arg;
    struct apply_input in = {0};
    prctl(PR_SET_NAME, "apply");
    do {
        int64_t now = env_mono_ns(c->env);
        apply_step(c, now / NS_PER_MS, &in);
        note_turn(c, 1, now);
    } while (apply_wait(c, &in));
    return NULL;
}

static void *
read_main(void *arg)
{
    struct core *c = arg;
    prctl(PR_SET_NAME, "raft-read");
    for (struct feed_read *x; (x = feed_wanted(c, true)) != NULL;)
        feed_do(c, x);
    return NULL;
}

static void
end_thread(struct core *c, size_t half)
{
    if (c->started[half])
        pthread_join(c->threads[half], NULL);
    c->started[half] = false;
}

int
core_start(struct core *c, struct err *e)
{
    static void *(*const mains[])(void *arg) = {raft_main, apply_main, read_main};
    size_t n = c->o.expect > 1 || !c->raft.alone ? 3 : 2; /* one alone sends nobody old entries */
    for (size_t i = 0; i < n; i++) {
        int rc = pthread_create(&c->threads[i], NULL, mains[i], c);
        if (rc != 0)
            return err_errno(e, rc, "start a thread of the core");
        c->started[i] = true;
    }
    return 0;
}

void
core_stop(struct core *c)
{
    completions left;
    fifo_init(&left);
    core_close_door(c);
    end_thread(c, 0);
    core_nothing_comes(c);
    end_thread(c, 1);
    feed_end(c);
    end_thread(c, 2);
    core_join_snapshot(c);
    raft_log_close(
        TAKE(c->raft.log)); /* what was appended becomes durable, and is applied next time */
    fifo_join(&c->apply.todo, &c->apply_in.entries); /* of a half without a thread */
    static const char why[] = "the server is shutting down; the write may still be committed";
    core_disown(c, &c->apply.todo, &left, -ERR_CANCELED, why);
    core_disown(c, &c->raft.tail, &left, -ERR_CANCELED, why);
    completions_last(c, &left);
}
