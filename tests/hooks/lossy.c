/* SPDX-License-Identifier: Apache-2.0
 *
 * Links between servers that tests make worse (see lossy.h).
 */
#include "server/peer/lossy.h"

#include <pthread.h>
#include <string.h>

#include "common/str.h"
#include "server/limits.h"

enum { LINKS_MAX = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct lossy {
    char addr[CONSENSUS_ADDR_MAX + 1]; /* "": free */
    double drop, dup;
    int64_t least_ms, most_ms, last_ms; /* last: when the newest message leaves */
    bool reorder, no_in, no_out;
} links[LINKS_MAX];

static bool
lossy_happens(const struct env *env, double part)
{
    return (double)(env_random(env) >> 11) / (double)(UINT64_C(1) << 53) < part;
}

static struct lossy *
lossy_find(const char *addr)
{
    for (size_t i = 0; i < LINKS_MAX; i++)
        if (str_eq(links[i].addr, addr))
            return &links[i];
    return NULL;
}

struct test_way
test_hook_out(const char *addr, const struct env *env)
{
    struct test_way w = {0};
    int64_t now_ms = env_mono_ms(env);

    pthread_mutex_lock(&mutex);
    struct lossy *l = lossy_find(addr);
    if (l != NULL && (l->no_out || lossy_happens(env, l->drop))) {
        w.lost = true;
    } else if (l != NULL) {
        int64_t range = l->most_ms - l->least_ms + 1;
        int64_t at = now_ms + l->least_ms + (int64_t)(env_random(env) % (uint64_t)range);
        if (!l->reorder && at < l->last_ms)
            at = l->last_ms;
        l->last_ms = at;
        w = (struct test_way){.twice = lossy_happens(env, l->dup), .delay_ms = at - now_ms};
    }
    pthread_mutex_unlock(&mutex);
    return w;
}

bool
test_hook_in(const char *addr)
{
    pthread_mutex_lock(&mutex);
    const struct lossy *l = lossy_find(addr);
    bool lost = l != NULL && l->no_in;
    pthread_mutex_unlock(&mutex);
    return lost;
}

static double
lossy_part(const struct value *v)
{
    return v == NULL ? 0 : v->kind == VALUE_FLOAT ? v->f : v->kind == VALUE_INT ? (double)v->i : 0;
}

static int64_t
lossy_whole(const struct value *v)
{
    return v != NULL && v->kind == VALUE_INT && v->i > 0 ? v->i : 0;
}

void
test_hook_lossy(const char *addr, const struct value *body)
{
    const struct value *delay = value_get(body, "delay_ms"), *cut = value_get(body, "cut");
    const struct value *reorder = value_get(body, "reorder");
    const char *how = cut != NULL && cut->kind == VALUE_STRING ? cut->str.s : "";
    bool two = delay != NULL && delay->kind == VALUE_LIST && delay->list.n == 2;

    pthread_mutex_lock(&mutex);
    struct lossy *l = lossy_find(addr);
    l = l != NULL ? l : lossy_find("");
    if (l != NULL) {
        int64_t last = l->last_ms;
        *l = (struct lossy){.drop = lossy_part(value_get(body, "drop")),
                            .dup = lossy_part(value_get(body, "dup"))};
        l->last_ms = last;
        l->least_ms = lossy_whole(two ? delay->list.v[0] : delay);
        l->most_ms = two ? lossy_whole(delay->list.v[1]) : l->least_ms;
        if (l->most_ms < l->least_ms)
            l->most_ms = l->least_ms;
        l->reorder = reorder != NULL && reorder->kind == VALUE_BOOL && reorder->b;
        l->no_in = str_eq(how, "in") || str_eq(how, "both");
        l->no_out = str_eq(how, "out") || str_eq(how, "both");
        (void)str_copy(l->addr, sizeof(l->addr), addr);
    }
    pthread_mutex_unlock(&mutex);
}
