/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests ask of a leader (server/hook.h): steps of the scheduler, timers that fire, what the
 * broker has. Compiled with --enable-fault-injection only.
 */
#include <stdio.h>

#include "common/duration.h"
#include "common/mem.h"
#include "server/leader/leader_int.h"
#include "server/state/write.h"

enum { ANSWER_MAX = 16 << 20 };

/* One question: asked on the loop, answered there. */
struct question {
    struct question *next; /* among the steps that run */
    struct leader *l;
    const char *job;
    const char *eval; /* a step's */
    int status;
    struct buf json;
    test_answer_fn *done;
    void *arg;
    uint64_t index; /* of the state; how many timers there are */
};

static struct question *steps; /* apply thread */

static int
question_free(struct question *q)
{
    buf_done(&q->json);
    return 0;
}

static struct question *
question_new(struct leader *l, test_answer_fn *done, void *arg)
{
    struct question *q = mem_new(NULL, struct question);

    *q = (struct question){.l = l, .status = 200, .done = done, .arg = arg};
    buf_init(&q->json, ANSWER_MAX);
    talloc_set_destructor(q, question_free);
    return q;
}

static void
answer_loop(void *arg)
{
    struct question *q = arg;

    q->done(q->arg, q->status, q->json.len > 0 ? buf_str(&q->json) : "null");
    talloc_free(q);
}

static void
hooked_answer(struct question *q)
{
    env_post(q->l->env, answer_loop, q);
}

static void
hooked_ask(struct question *q, void (*fn)(void *arg))
{
    if (server_post_apply(q->l->s, fn, q))
        return;
    q->status = 503;
    hooked_answer(q);
}

/* --- steps --- */

static void
step_begin(void *arg)
{
    struct question *q = arg;
    struct leader *l = q->l;
    uint64_t token = 0;
    int64_t now = env_mono_ms(l->env);
    const struct evaluation *e = NULL;

    if (l->leading) {
        broker_tick(l->broker, now);
        e = test_hook_dequeue(l->broker, q->job, now, &token);
    }
    if (e == NULL) {
        hooked_answer(q); /* null: there is nothing to do */
        return;
    }
    q->eval = mem_strdup(q, e->id);
    q->next = steps;
    steps = q;
    run_start(l, e, token);
}

void
test_hook_ran(struct leader *l, const char *eval_id)
{
    for (struct question **at = &steps; *at != NULL;) {
        struct question *q = *at;
        if (q->l != l || !str_eq(q->eval, eval_id)) {
            at = &q->next;
            continue;
        }
        *at = q->next;
        struct state_txn *t = server_read_begin(l->s, q);
        const struct evaluation *e = state_eval(t, q, eval_id);
        if (e != NULL)
            json_encode(&q->json, &type_evaluation, e, 0);
        state_read_end(t);
        hooked_answer(q);
    }
}

/* --- the broker --- */

static void
put_ids(struct value *map, const char *name, const struct str_list *ids)
{
    struct value *l = value_list(map);

    for (size_t i = 0; i < ids->n; i++)
        value_list_add(l, value_str(map, ids->v[i]));
    value_map_set(map, name, l);
}

static void
broker_ask(void *arg)
{
    static const char *const names[] = {"Ready", "Pending", "Delayed", "Out"};
    struct question *q = arg;
    struct str_list lists[4] = {{0}}, blocked = {0};
    struct value *map = value_map(q);

    leader_work(q->l);
    test_hook_list(q->l->broker, map, lists);
    test_hook_blocked(q->l->blocked, map, &blocked);
    for (size_t i = 0; i < 4; i++)
        put_ids(map, names[i], &lists[i]);
    put_ids(map, "Blocked", &blocked);
    value_map_set(map, "Timers", value_int(map, (int64_t)q->index));
    value_map_set(map, "Running", value_int(map, (int64_t)q->l->n_running));
    json_encode_value(&q->json, map, 0);
    hooked_answer(q);
}

/* --- the state --- */

static uint64_t
hash_more(uint64_t h, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const uint8_t *)p)[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return h;
}

static int
hash_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    uint64_t *h = arg;

    *h = hash_more(*h, &table, sizeof(table));
    *h = hash_more(*h, key.p, key.n);
    *h = hash_more(*h, val.p, val.n);
    return 0;
}

static void
hash_ask(void *arg)
{
    struct question *q = arg;
    struct state_txn *t = server_read_begin(q->l->s, q);
    uint64_t applied = state_applied(t), hash = UINT64_C(0xcbf29ce484222325);

    if (q->index != 0 && q->index != applied)
        q->status = 409;
    else
        state_dump(t, hash_row, &hash);
    state_read_end(t);
    buf_printf(&q->json, "{\"Index\":%llu,\"Hash\":\"%016llx\"}", (unsigned long long)applied,
               (unsigned long long)hash);
    hooked_answer(q);
}

static void
heard_ask(void *arg)
{
    struct question *q = arg;
    struct state_txn *t = server_read_begin(q->l->s, q);

    json_encode_value(&q->json, test_hook_compare(q, t), 0);
    state_read_end(t);
    hooked_answer(q);
}

static void
work_again(void *arg)
{
    struct question *q = arg;

    test_hook_alarm(q->l);
    leader_work(q->l);
    buf_puts(&q->json, "{}");
    hooked_answer(q);
}

/* --- from HTTP --- */

static const char *
hooked_text(const struct value *body, const char *key)
{
    const struct value *v = body != NULL ? value_get(body, key) : NULL;

    return v != NULL && v->kind == VALUE_STRING ? v->str.s : "";
}

static int64_t
hooked_number(const struct value *body, const char *key)
{
    const struct value *v = body != NULL ? value_get(body, key) : NULL;

    return v != NULL && v->kind == VALUE_INT ? v->i : 0;
}

void
test_hook_ask(struct server *s, const char *what, const struct value *body, test_answer_fn *done,
              void *arg)
{
    struct question *q = question_new(server_leader(s), done, arg);

    if (str_eq(what, "step")) {
        q->job = mem_strdup(q, hooked_text(body, "job"));
        hooked_ask(q, step_begin);
    } else if (str_eq(what, "broker")) {
        q->index = heartbeats_count(q->l->beats);
        hooked_ask(q, broker_ask);
    } else if (str_eq(what, "hash")) {
        q->index = (uint64_t)hooked_number(body, "index");
        hooked_ask(q, hash_ask);
    } else if (str_eq(what, "heard")) {
        hooked_ask(q, heard_ask);
    } else if (str_eq(what, "link")) {
        q->status = body != NULL && test_hook_link(s, body) ? 200 : 404;
        hooked_answer(q);
    } else if (str_eq(what, "ttl")) {
        struct str_list ids = {0};
        const struct value *all = body != NULL ? value_get(body, "NodeIDs") : NULL;
        for (size_t i = 0; all != NULL && all->kind == VALUE_LIST && i < all->list.n; i++)
            if (all->list.v[i]->kind == VALUE_STRING)
                list_add(q, ids, all->list.v[i]->str.s);
        if (all == NULL)
            list_add(q, ids, hooked_text(body, "NodeID"));
        q->status = test_hook_beat(q->l->beats, &ids) ? 200 : 404;
        hooked_answer(q);
    } else if (str_eq(what, "scheduler")) {
        const struct value *v = body != NULL ? value_get(body, "paused") : NULL;
        test_hook_pause(v != NULL && v->kind == VALUE_BOOL && v->b);
        hooked_ask(q, work_again);
    } else {
        ASSERT(str_eq(what, "clock"));
        test_hook_clock(hooked_number(body, "mono_ms") * NS_PER_MS,
                        hooked_number(body, "wall_ms") * NS_PER_MS);
        hooked_ask(q, work_again);
    }
}
