/* SPDX-License-Identifier: Apache-2.0
 *
 * Help for the tests of server/: see util.h.
 */
#include "tests/server/util.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"

static char tmp_path[64];
static pid_t tmp_owner;

static void
tmp_remove(void)
{
    if (getpid() == tmp_owner)
        dir_remove(AT_FDCWD, tmp_path, NULL);
}

const char *
tmp_dir(void)
{
    snprintf(tmp_path, sizeof(tmp_path), "/tmp/paddock-test-XXXXXX");
    ASSERT(mkdtemp(tmp_path) != NULL);
    tmp_owner = getpid();
    atexit(tmp_remove);
    return tmp_path;
}

struct posted {
    struct posted *next;
    void (*fn)(void *x);
    void *x;
};

struct impl {
    struct env env;
    pthread_mutex_t m;
    pthread_cond_t c;
    struct posted *first;
    struct posted **last;
    uint64_t open;
    uint64_t ok;
};

static void
impl_post(void *arg, void (*fn)(void *x), void *x)
{
    struct impl *p = arg;
    struct posted *q = mem_new(NULL, struct posted);
    q->fn = fn;
    q->x = x;
    pthread_mutex_lock(&p->m);
    *p->last = q;
    p->last = &q->next;
    pthread_cond_signal(&p->c);
    pthread_mutex_unlock(&p->m);
}

/* Runs one posted function, waiting for it. */
static void
impl_run(struct impl *p, bool wait)
{
    pthread_mutex_lock(&p->m);
    while (wait && p->first == NULL)
        pthread_cond_wait(&p->c, &p->m);
    struct posted *q = p->first;
    if (q != NULL) {
        p->first = q->next;
        if (p->first == NULL)
            p->last = &p->first;
    }
    pthread_mutex_unlock(&p->m);
    if (q == NULL)
        return;
    q->fn(q->x);
    mem_free(q);
}

static void
on_leader(void *arg, struct state_txn *t)
{
    (void)t;
    struct impl *p = arg;
    impl_post(p, (void (*)(void *))free, NULL);
}

struct bench *
bench_open_opts(struct core_opts o)
{
    struct bench *b = mem_new(NULL, struct bench);
    struct impl *p = mem_new(b, struct impl);
    p->last = &p->first;
    pthread_mutex_init(&p->m, NULL);
    pthread_cond_init(&p->c, NULL);
    b->impl = p;
    env_of_loop(&p->env, NULL);
    p->env.post = impl_post;
    p->env.arg = p;
    o.env = &p->env;
    b->opts = o;
    struct err e = ERR_INIT;
    if (core_open(&o, &b->core, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        mem_free(b);
        return NULL;
    }
    static const struct log_listener h = {.on_leader = on_leader};
    core_add_listener(b->core, &h, p);
    ASSERT(core_start(b->core, &e) == 0);
    impl_run(p, true);
    return b;
}

struct bench *
bench_open(const char *dir, const char *boot_id)
{
    return bench_open_opts((struct core_opts){.dir = dir,
                                              .addr = "127.0.0.1:4647",
                                              .boot_id = boot_id,
                                              .state_max = 256 << 20,
                                              .segment_bytes = 64 << 10,
                                              .snapshot_entries = 1000,
                                              .snapshot_bytes = 1 << 20});
}

void
bench_close(struct bench *b)
{
    struct impl *p = b->impl;
    core_stop(b->core);
    while (p->first != NULL)
        impl_run(p, false);
    core_free(b->core);
    mem_free(b);
}

struct answer {
    const void *ctx;
    struct fsm_result *res;
    struct err e;
    bool done;
};

static void
got(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct answer *a = arg;
    (void)index;
    if (e != NULL)
        a->e = *e;
    a->res = res != NULL ? talloc_steal(a->ctx, res) : NULL;
    a->done = true;
}

struct fsm_result *
bench_apply(struct bench *b, const void *ctx, struct intent *in, struct err *e)
{
    struct answer a = {.ctx = ctx};
    core_propose(b->core, in, HOME_LOOP, got, &a);
    while (!a.done)
        impl_run(b->impl, true);
    *e = a.e;
    return a.res;
}

static void
counted(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct impl *p = arg;
    (void)index;
    (void)res;
    p->open--;
    p->ok += e == NULL;
}

void
bench_send(struct bench *b, struct intent *in)
{
    struct impl *p = b->impl;
    p->open++;
    core_propose(b->core, in, HOME_LOOP, counted, p);
}

uint64_t
bench_wait(struct bench *b)
{
    struct impl *p = b->impl;
    while (p->open > 0)
        impl_run(p, true);
    return p->ok;
}

/* --- things --- */

struct intent *
intent_new(const void *ctx, int64_t time)
{
    struct intent *in = type_new(ctx, &type_intent);
    in->time = time;
    return in;
}

struct str_list
strs(const void *ctx, const char *a, const char *b)
{
    struct str_list l = {NULL, 0};
    list_add(ctx, l, a);
    if (b != NULL)
        list_add(ctx, l, b);
    return l;
}

struct job *
make_job(const void *ctx, const char *id, int64_t count)
{
    struct job *j = type_new(ctx, &type_job);
    j->namespace = "default";
    j->id = mem_strdup(j, id);
    j->name = j->id;
    j->type = JOB_SERVICE;
    j->priority = (struct opt_i64){true, 50};
    struct task_group *tg = type_new(j, &type_task_group);
    tg->name = "g";
    tg->count = (struct opt_i64){true, count};
    tg->reschedule_policy = type_new(j, &type_reschedule_policy);
    tg->reschedule_policy->unlimited = (struct opt_bool){true, true};
    struct task *t = type_new(j, &type_task);
    t->name = "t";
    t->driver = "raw_exec";
    list_add(j, tg->tasks, t);
    list_add(j, j->task_groups, tg);
    return j;
}

struct node *
make_node(const void *ctx, const char *id)
{
    struct node *n = type_new(ctx, &type_node);
    n->id = mem_strdup(n, id);
    n->secret_id = "secret";
    n->name = n->id;
    n->datacenter = "dc1";
    n->node_pool = "default";
    return n;
}

struct allocation *
make_alloc(const void *ctx, const struct job *j, const char *id, const char *node_id)
{
    struct allocation *a = type_new(ctx, &type_allocation);
    a->id = mem_strdup(a, id);
    a->namespace = j->namespace;
    a->job_id = j->id;
    a->task_group = "g";
    a->name = mem_printf(a, "%s.g[%s]", j->id, id); /* as different as the ids */
    a->node_id = node_id;
    a->eval_id = "eval-1";
    a->desired_status = ALLOC_DESIRED_RUN;
    a->client_status = ALLOC_PENDING;
    return a;
}

struct evaluation *
make_eval(const void *ctx, const struct job *j, const char *id)
{
    struct evaluation *ev = type_new(ctx, &type_evaluation);
    ev->id = mem_strdup(ev, id);
    ev->namespace = j->namespace;
    ev->job_id = j->id;
    ev->type = j->type;
    ev->priority = 50;
    ev->status = EVAL_PENDING;
    ev->triggered_by = TRIGGER_JOB_REGISTER;
    return ev;
}
