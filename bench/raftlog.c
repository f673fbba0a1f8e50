/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes per second through the whole write path (encode, Raft, log, fsync, apply, completion)
 * against the floor: a bare pwrite + fdatasync of the same size into a preallocated file, one after
 * the other.
 *
 * usage: raftlog [directory]     (default: the current one; use a real disk)
 *
 * Bars: one write outstanding reaches a third of the floor; 64 outstanding, at least three times
 * the floor (group commit). Exits 1 when a bar is missed.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/terms.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "server/core/core.h"

enum { DATA_BYTES = 256, FLOOR_BYTES = 320 };
static const double SECONDS = 1.5;

struct q {
    struct q *next;
    void (*fn)(void *x);
    void *x;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static struct q *first;
static struct q **last = &first;

static void
post(void *arg, void (*fn)(void *x), void *x)
{
    (void)arg;
    struct q *q = mem_new(NULL, struct q);
    *q = (struct q){.fn = fn, .x = x};
    pthread_mutex_lock(&mutex);
    *last = q;
    last = &q->next;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
}

static void
run_one(void)
{
    pthread_mutex_lock(&mutex);
    while (first == NULL)
        pthread_cond_wait(&cond, &mutex);
    struct q *q = first;
    first = q->next;
    if (first == NULL)
        last = &first;
    pthread_mutex_unlock(&mutex);
    q->fn(q->x);
    mem_free(q);
}

static bool leads;

static void
set_leads(void *arg)
{
    (void)arg;
    leads = true;
}

static void
on_leader(void *arg, struct state_txn *t)
{
    (void)arg;
    (void)t;
    post(NULL, set_leads, NULL);
}

static unsigned open_writes;
static uint64_t written;

static void
done(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    (void)arg;
    (void)index;
    (void)res;
    if (e != NULL) {
        fprintf(stderr, "raftlog: %s\n", e->text);
        exit(1);
    }
    open_writes--;
    written++;
}

/* An evaluation of some 256 bytes: one row and one index row. */
static void
propose(struct core *c, uint64_t i)
{
    auto_mem void *tmp = mem_ctx("propose");
    struct intent *in = type_new(tmp, &type_intent);
    in->eval_update = type_new(in, &type_intent_eval_update);
    struct evaluation *ev = type_new(in, &type_evaluation);
    ev->id = mem_printf(in, "00000000-0000-0000-0000-%012lu", (unsigned long)(i % 10000));
    ev->namespace = "default";
    ev->job_id = ev->id;
    ev->type = JOB_SERVICE;
    ev->status = EVAL_PENDING;
    char text[DATA_BYTES - 120];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    ev->status_description = text;
    list_add(in, in->eval_update->evals, ev);
    open_writes++;
    core_propose(c, in, HOME_LOOP, done, NULL);
}

static double
path_rate(struct core *c, unsigned outstanding)
{
    written = 0;
    uint64_t i = 0;
    int64_t t0 = clock_mono_ns();
    while (clock_mono_ns() - t0 < (int64_t)(SECONDS * 1e9)) {
        while (open_writes < outstanding)
            propose(c, i++);
        run_one();
    }
    double s = (double)(clock_mono_ns() - t0) / 1e9;
    double r = (double)written / s;
    while (open_writes > 0)
        run_one();
    return r;
}

static double
floor_rate(const char *dir)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/floor", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, 8 << 20) != 0 || fsync(fd) != 0) {
        perror(path);
        exit(1);
    }
    char b[FLOOR_BYTES];
    memset(b, 'x', sizeof(b));
    uint64_t n = 0;
    int64_t t0 = clock_mono_ns();
    while (clock_mono_ns() - t0 < (int64_t)(SECONDS * 1e9)) {
        off_t at = (off_t)(n % 20000) * FLOOR_BYTES;
        if (fd_pwrite_full(fd, b, sizeof(b), at) < 0 || fdatasync(fd) != 0) {
            perror(path);
            exit(1);
        }
        n++;
    }
    double r = (double)n / ((double)(clock_mono_ns() - t0) / 1e9);
    close(fd);
    return r;
}

int
main(int argc, char **argv)
{
    char dir[400];
    log_set_level(LOG_WARN);
    snprintf(dir, sizeof(dir), "%s/bench-raftlog-XXXXXX", argc > 1 ? argv[1] : ".");
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    double base = floor_rate(dir);
    struct env env;
    env_of_loop(&env, NULL);
    env.post = post;
    struct core_opts o = {.dir = dir,
                          .addr = "127.0.0.1:4647",
                          .state_max = (size_t)1 << 30,
                          .snapshot_entries = 8192,
                          .snapshot_bytes = 64 << 20,
                          .env = &env};
    struct core *c = NULL;
    struct err e = ERR_INIT;
    if (core_open(&o, &c, &e) < 0) {
        fprintf(stderr, "raftlog: %s\n", e.text);
        return 1;
    }
    static const struct leader_hooks h = {.on_leader = on_leader};
    core_set_hooks(c, &h, NULL);
    if (core_start(c, &e) < 0)
        return 1;
    while (!leads)
        run_one();
    printf("floor: pwrite of %d B + fdatasync   %9.0f/s\n", FLOOR_BYTES, base);
    static const unsigned out[] = {1, 8, 64, 1024};
    bool ok = true;
    for (size_t i = 0; i < ARRAY_LEN(out); i++) {
        double r = path_rate(c, out[i]);
        double bar = out[i] == 1 ? 0.33 : out[i] == 64 ? 3.0 : 0;
        bool met = r >= bar * base;
        ok &= met;
        printf("write path, %4u outstanding        %9.0f/s   %6.2f x floor%s\n", out[i], r,
               r / base,
               bar == 0 ? ""
               : met    ? "   (bar met)"
                        : "   (BAR MISSED)");
    }
    core_stop(c);
    while (first != NULL)
        run_one();
    core_free(c);
    dir_remove(AT_FDCWD, dir, NULL);
    return ok ? 0 : 1;
}
