/* SPDX-License-Identifier: Apache-2.0
 *
 * What is measured, and how it is printed.
 */
#include <string.h>
#include <unistd.h>

#include "bench/fleet/fleet.h"
#include "common/clock.h"
#include "common/mem.h"

/* --- histograms --- */

static size_t
bucket_of(uint64_t us)
{
    if (us < HIST_STEPS)
        return (size_t)us;
    unsigned top = 63u - (unsigned)__builtin_clzll(us); /* at least 4 */
    size_t b = (size_t)(top - 3) * HIST_STEPS + (size_t)(us >> (top - 4) & (HIST_STEPS - 1));
    return b < HIST_BUCKETS ? b : HIST_BUCKETS - 1;
}

static uint64_t
bucket_end(size_t b)
{
    if (b < HIST_STEPS)
        return b;
    size_t top = b / HIST_STEPS + 3;
    return ((HIST_STEPS + b % HIST_STEPS + 1) << (top - 4)) - 1;
}

void
hist_add(struct histogram *h, int64_t us)
{
    uint64_t v = us > 0 ? (uint64_t)us : 0;

    h->v[bucket_of(v)]++;
    h->n++;
    h->max = v > h->max ? v : h->max;
}

int64_t
hist_at(const struct histogram *h, double share)
{
    uint64_t want = (uint64_t)(share * (double)h->n), seen = 0;

    if (h->n == 0)
        return 0;
    for (size_t b = 0; b < HIST_BUCKETS; b++) {
        seen += h->v[b];
        if (seen > want)
            return (int64_t)(bucket_end(b) < h->max ? bucket_end(b) : h->max);
    }
    return (int64_t)h->max;
}

/* --- the process --- */

int64_t
rss_kb(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long size = 0, resident = 0;

    if (f != NULL) {
        if (fscanf(f, "%ld %ld", &size, &resident) != 2)
            resident = 0;
        fclose(f);
    }
    return (int64_t)resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* --- what counts --- */

void
stats_mark(struct fleet *f)
{
    uint64_t wrong = f->stats.wrong_down;

    f->stats = (struct stats){.wrong_down = wrong, .mark_ns = clock_wall_ns()};
}

void
stats_wrong_down(struct sim *s, const char *how)
{
    if (s->was_down)
        return;
    s->was_down = true;
    s->fleet->stats.wrong_down++;
    fprintf(stderr, "fleet: node %05u was kept alive and is down, by %s\n", s->number, how);
}

static void
print_json_hist(FILE *out, const char *name, const struct histogram *h)
{
    fprintf(out, ",\"%s\":{\"n\":%llu,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f}", name,
            (unsigned long long)h->n, (double)hist_at(h, 0.5) / 1e3, (double)hist_at(h, 0.99) / 1e3,
            (double)h->max / 1e3);
}

static double
since_mark_s(const struct fleet *f, int64_t wall_ns)
{
    return wall_ns > 0 && f->stats.mark_ns > 0 ? (double)(wall_ns - f->stats.mark_ns) / 1e9 : 0;
}

static double
per_client_kb(const struct fleet *f)
{
    return f->rss_joined_kb > 0
               ? (double)(f->rss_joined_kb - f->rss_before_kb) / (double)f->opt.nodes
               : 0;
}

static size_t
count_connected(const struct fleet *f)
{
    size_t n = 0;

    for (int64_t i = 0; i < f->opt.nodes; i++)
        n += f->conns[i] != NULL && rpc_client_up(f->conns[i]);
    return n;
}

static void
print_json(const struct fleet *f, FILE *out)
{
    const struct stats *s = &f->stats;
    uint64_t n, digest;

    events_digest(f, &n, &digest);
    fprintf(out, "{\"nodes\":%lld,\"alive\":%zu,\"joined\":%zu,\"allocs\":%zu,\"running\":%zu",
            (long long)f->opt.nodes, f->n_on, f->n_joined, f->n_allocs, f->n_running);
    const struct {
        const char *name;
        uint64_t v;
    } counts[] = {{"connected", count_connected(f)},
                  {"heartbeats", s->beats},
                  {"heartbeats_failed", s->beats_failed},
                  {"misses", s->misses},
                  {"wrong_down", s->wrong_down},
                  {"registrations", s->registered},
                  {"lists", s->lists},
                  {"received", s->received},
                  {"runs", s->runs},
                  {"ended", s->ended},
                  {"failed", s->failed},
                  {"reports", s->reports},
                  {"signed", s->signed_},
                  {"unsigned", s->unsigned_},
                  {"events", n}};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        fprintf(out, ",\"%s\":%llu", counts[i].name, (unsigned long long)counts[i].v);
    fprintf(out, ",\"digest\":\"%016llx\"", (unsigned long long)digest);
    print_json_hist(out, "heartbeat", &s->beat);
    print_json_hist(out, "own_lateness", &s->beat_own);
    print_json_hist(out, "placed_to_running", &s->placed);
    print_json_hist(out, "signing", &s->signing);
    fprintf(out,
            ",\"last_placed_s\":%.4f,\"last_running_s\":%.4f,\"client_kb\":%.2f,\"rss_kb\":%lld}\n",
            since_mark_s(f, s->last_created_ns), since_mark_s(f, s->last_running_ns),
            per_client_kb(f), (long long)rss_kb());
}

static void
print_hist(FILE *out, const char *name, const struct histogram *h)
{
    fprintf(out, "  %-22s p50 %9.2f ms  p99 %9.2f ms  max %9.2f ms  of %llu\n", name,
            (double)hist_at(h, 0.5) / 1e3, (double)hist_at(h, 0.99) / 1e3, (double)h->max / 1e3,
            (unsigned long long)h->n);
}

void
stats_print(struct fleet *f, FILE *out, bool json)
{
    const struct stats *s = &f->stats;
    uint64_t n, digest;

    if (json) {
        print_json(f, out);
        return;
    }
    events_digest(f, &n, &digest);
    fprintf(out, "fleet of %lld: %zu alive, %zu with heartbeats, %zu allocations, %zu running\n",
            (long long)f->opt.nodes, f->n_on, f->n_joined, f->n_allocs, f->n_running);
    print_hist(out, "heartbeat", &s->beat);
    print_hist(out, "own lateness", &s->beat_own);
    print_hist(out, "placed to running", &s->placed);
    fprintf(out,
            "  heartbeats failed %llu, late %llu; registrations %llu, lists %llu, reports %llu\n",
            (unsigned long long)s->beats_failed, (unsigned long long)s->misses,
            (unsigned long long)s->registered, (unsigned long long)s->lists,
            (unsigned long long)s->reports);
    fprintf(out, "  runs %llu, ended %llu, of these failed %llu\n", (unsigned long long)s->runs,
            (unsigned long long)s->ended, (unsigned long long)s->failed);
    fprintf(out, "  memory %.2f KiB per client, %lld KiB in all\n", per_client_kb(f),
            (long long)rss_kb());
    fprintf(out, "  events %llu, digest %016llx\n", (unsigned long long)n,
            (unsigned long long)digest);
    fprintf(out, "  wrong down: %llu\n", (unsigned long long)s->wrong_down);
}
