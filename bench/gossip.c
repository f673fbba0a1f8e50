/* SPDX-License-Identifier: Apache-2.0
 *
 * Gossip in virtual time (tests/server/gossip/world.h): how soon a killed member is known to have
 * failed, and how often members that get the processor for moments only have healthy ones
 * condemned: with all that keeps them from that, without each part of it, and without any.
 *
 * usage: gossip [seeds]
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/num.h"
#include "tests/server/gossip/world.h"

enum {
    SEEDS = 50,
    STARVED_MS = 60000,
    USUAL_MAX = 7, /* servers of a cluster, for which there are bars: at the 99th part of 100, */
    FIRST_MAX_MS = 5000,
    ALL_MAX_MS = 5000,
};

static int bad;

static int
ms_cmp(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t
part(int64_t *v, size_t n, size_t of_1000)
{
    size_t i = n * of_1000 / 1000;
    return v[i < n ? i : n - 1];
}

/* --- a member is killed --- */

/* Until one knows, and until all do. */
static void
killed(uint64_t seed, size_t n, unsigned loss, int64_t *ret_first, int64_t *ret_all)
{
    struct world *w = world_joined(seed, n);
    w->delay_max = 2;
    world_run(w, 20000 + (int64_t)world_random(w, 2000));
    w->loss = loss;
    size_t victim = (size_t)world_random(w, n);
    int64_t at = w->t;
    w->v[victim].dead = true;
    *ret_first = INT64_MAX;
    *ret_all = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == victim)
            continue;
        ASSERT(world_until(w, i, victim, MEMBER_FAILED, 60000));
        int64_t took = w->v[i].failed_at[victim] - at;
        *ret_first = took < *ret_first ? took : *ret_first;
        *ret_all = took > *ret_all ? took : *ret_all;
    }
    world_free(w);
}

static void
detection(size_t n, unsigned loss, size_t seeds)
{
    auto_mem void *tmp = mem_ctx("detection");
    int64_t *first = mem_array(tmp, int64_t, seeds), *all = mem_array(tmp, int64_t, seeds);
    for (size_t i = 0; i < seeds; i++)
        killed(i + 1, n, loss, &first[i], &all[i]);
    qsort(first, seeds, sizeof(*first), ms_cmp);
    qsort(all, seeds, sizeof(*all), ms_cmp);
    bool fits = loss > 0 || n > USUAL_MAX ||
                (part(first, seeds, 990) <= FIRST_MAX_MS && part(all, seeds, 990) <= ALL_MAX_MS);
    static const size_t parts[] = {500, 990, 999};
    printf("%2zu members, %2u %% of packets lost: ms until one knows, until all do:", n, loss);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        printf("  %zu.%zu %% %lld, %lld", parts[i] / 10, parts[i] % 10,
               (long long)part(first, seeds, parts[i]), (long long)part(all, seeds, parts[i]));
    printf("%s\n", fits ? "" : "  MISSED");
    bad += !fits;
    fflush(stdout);
}

/* --- members are starved --- */

/* How often a healthy member was found failed: by anyone, and by a healthy one. */
struct wrong {
    unsigned by_all, by_healthy;
};

static void
starved(uint64_t seed, size_t n, size_t slow, unsigned without, struct wrong *sum)
{
    struct world *w = world_of(seed, n, without);
    int64_t turn[NODES_MAX];
    w->delay_max = 2;
    for (size_t i = 0; i < slow; i++)
        turn[i] = w->t + (int64_t)world_random(w, 1000);
    for (int64_t end = w->t + STARVED_MS; w->t < end; world_run(w, 1))
        for (size_t i = 0; i < slow; i++) {
            if (w->t < turn[i])
                continue;
            w->v[i].frozen = !w->v[i].frozen;
            turn[i] = w->t + (w->v[i].frozen ? 100 + (int64_t)world_random(w, 8000)
                                             : 1 + (int64_t)world_random(w, 100));
        }
    for (size_t i = 0; i < n; i++)
        for (size_t k = slow; k < n; k++) {
            sum->by_all += w->v[i].failed_n[k];
            sum->by_healthy += i >= slow ? w->v[i].failed_n[k] : 0;
        }
    world_free(w);
}

static void
verdicts(size_t n, size_t slow, size_t seeds)
{
    static const struct {
        unsigned without;
        const char *name;
    } kinds[] = {
        {0, "with all of it"},
        {SWIM_WITHOUT_STALLS, "without stalls"},
        {SWIM_WITHOUT_HEALTH, "without health"},
        {SWIM_WITHOUT_DYNAMIC, "without dynamic suspicion"},
        {SWIM_WITHOUT_BUDDY, "without telling suspects"},
        {SWIM_WITHOUT_HEALTH | SWIM_WITHOUT_DYNAMIC | SWIM_WITHOUT_BUDDY, "without Lifeguard"},
        {SWIM_WITHOUT_STALLS | SWIM_WITHOUT_HEALTH | SWIM_WITHOUT_DYNAMIC | SWIM_WITHOUT_BUDDY,
         "without any"}};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct wrong sum = {0};
        for (size_t seed = 1; seed <= seeds; seed++)
            starved(seed, n, slow, kinds[i].without, &sum);
        bool missed = kinds[i].without == 0 && sum.by_all > 0;
        printf("%zu of %zu starved a minute, %zu times, %-25s wrong verdicts %5u, of healthy ones "
               "%5u%s\n",
               slow, n, seeds, kinds[i].name, sum.by_all, sum.by_healthy, missed ? "  MISSED" : "");
        bad += missed;
        fflush(stdout);
    }
}

int
main(int argc, char **argv)
{
    uint64_t seeds = SEEDS;
    if (argc > 1 && (num_parse_u64(argv[1], &seeds) < 0 || seeds == 0 || seeds > 100000)) {
        fprintf(stderr, "usage: gossip [seeds]\n");
        return 2;
    }
    static const size_t sizes[] = {3, 5, 7, 16};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        detection(sizes[i], 0, (size_t)seeds);
    detection(5, 10, (size_t)seeds);
    verdicts(5, 1, (size_t)seeds);
    verdicts(16, 4, (size_t)seeds);
    return bad > 0;
}
