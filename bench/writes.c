/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes to a server over RPC: each is an entry of its own in the log, on the disks of a majority
 * and applied when it is answered (Operator.SchedulerSet, the smallest there is).
 *
 * usage: writes ADDRESS CONNECTIONS WINDOW SECONDS      so many at a time on each connection
 * One line of JSON: writes, failed, seconds, and how long they took (p50, p99, max; us).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/num.h"
#include "net/loop.h"
#include "net/rpc.h"

enum { TIMES_MAX = 16 << 20, WARM_MS = 500 };

static struct loop *loop;
static uint32_t *times;
static uint64_t done, failed, open_calls;
static bool measured, over, drained;
static int64_t begin_ns, end_ns;

struct slot {
    struct rpc_client *c;
    int64_t sent_ns;
};

static void next(struct slot *s);

static void
answered(void *arg, const struct err *e, const void *resp)
{
    struct slot *s = arg;
    int64_t us = (clock_mono_ns() - s->sent_ns) / 1000;
    (void)resp;
    open_calls--;
    if (e != NULL) {
        failed++;
        if (failed == 1)
            fprintf(stderr, "writes: %s\n", e->text);
    } else if (measured && !over && done < TIMES_MAX) {
        times[done++] = (uint32_t)us;
    }
    drained = over && open_calls == 0;
    if (!over)
        next(s);
}

static void
next(struct slot *s)
{
    struct scheduler_configuration cfg = {.scheduler_algorithm = "binpack"};
    struct scheduler_set_request req = {.scheduler_config = &cfg};
    struct rpc_request r = {RPC_OPERATOR_SCHEDULER_SET, &req, NULL, 10000};
    s->sent_ns = clock_mono_ns();
    open_calls++;
    rpc_send(s->c, &r, answered, s);
}

static void
warm(void *arg)
{
    (void)arg;
    measured = true;
    begin_ns = clock_mono_ns();
}

static void
end(void *arg)
{
    (void)arg;
    over = true;
    end_ns = clock_mono_ns();
    drained = open_calls == 0;
}

static int
by_value(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static unsigned
number(const char *s)
{
    uint64_t v = 0;
    if (num_parse_u64(s, &v) < 0 || v == 0 || v > 100000) {
        fprintf(stderr, "writes: \"%s\" is not 1 to 100000\n", s);
        _Exit(2);
    }
    return (unsigned)v;
}

int
main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    if (argc != 5) {
        fprintf(stderr, "usage: writes ADDRESS CONNECTIONS WINDOW SECONDS\n");
        return 2;
    }
    unsigned conns = number(argv[2]), window = number(argv[3]), seconds = number(argv[4]);
    const char *addr = argv[1];
    struct str_list l = {&addr, 1};
    auto_mem void *ctx = mem_ctx("writes");
    struct rpc_client **c = mem_array(ctx, struct rpc_client *, conns);
    struct slot *slots = mem_array(ctx, struct slot, (size_t)conns * window);
    times = mem_array(ctx, uint32_t, TIMES_MAX);
    loop = loop_new();
    for (unsigned i = 0; i < conns; i++) {
        c[i] = rpc_dial(&(struct dialer){.loop = loop}, &l, &e);
        if (c[i] == NULL) {
            fprintf(stderr, "writes: %s\n", e.text);
            return 2;
        }
        for (unsigned k = 0; k < window; k++) {
            slots[i * window + k].c = c[i];
            next(&slots[i * window + k]);
        }
    }
    timer_start(loop, WARM_MS, warm, NULL);
    timer_start(loop, WARM_MS + seconds * 1000, end, NULL);
    bool ok = loop_run_until(loop, &drained, WARM_MS + seconds * 1000 + 15000);
    for (unsigned i = 0; i < conns; i++)
        rpc_client_close(c[i]);
    loop_free(loop);
    if (done == 0 || !ok) {
        fprintf(stderr, "writes: no write was acknowledged in time\n");
        return 1;
    }
    qsort(times, done, sizeof(*times), by_value);
    printf("{\"writes\": %llu, \"failed\": %llu, \"seconds\": %.3f, \"p50\": %u, \"p99\": %u, "
           "\"max\": %u}\n",
           (unsigned long long)done, (unsigned long long)failed, (double)(end_ns - begin_ns) / 1e9,
           times[done / 2], times[done * 99 / 100], times[done - 1]);
    return 0;
}
