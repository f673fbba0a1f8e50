/* SPDX-License-Identifier: Apache-2.0
 *
 * The state is replaced under its readers (server/core/install.c): threads read without a pause
 * while one state after another takes the place of the one before. Each reader sees one state,
 * whole, to the end of its transaction; none sees an older one than before; the files of those
 * that went are closed, and one is left on disk.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "server/core/core_int.h"
#include "server/raft/snapshot.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

enum { READERS = 4, STATES = 60, BASE = 1000 };

static struct {
    struct core *core;
    atomic_bool end, follows;
    atomic_uint reads, told;
} w;

/* --- states of leaders: number i has i jobs, at index BASE + i --- */

static int
dump(void *t, snapshot_row_fn *row, void *arg)
{
    return state_dump(t, row, arg);
}

static void
state_grow(struct state *s, uint64_t i)
{
    auto_mem void *tmp = mem_ctx("grow");
    struct state_txn *t = state_write_begin(s, tmp);
    state_put(t, BASE + i, JOBS, make_job(tmp, mem_printf(tmp, "j-%lu", (unsigned long)i), 1));
    state_set_applied(t, BASE + i, 5);
    ck_assert_int_eq(state_commit(t), 0);
}

static void
state_send(struct state *s, const char *raft_dir, const struct consensus_snapshot *meta)
{
    auto_mem void *tmp = mem_ctx("send");
    struct err e = ERR_INIT;
    struct state_txn *t = state_read_begin(s, tmp);
    ck_assert_msg(snapshot_write(raft_dir, meta, dump, t, &e) == 0, "%s", e.text);
    state_read_end(t);
}

/* --- readers --- */

static uint64_t
count_jobs(struct state_txn *t)
{
    auto_mem void *tmp = mem_ctx("count");
    struct state_iter *it = state_jobs(t, tmp, NULL, NULL);
    uint64_t n = 0;
    while (state_next(it, tmp) != NULL)
        n++;
    return n;
}

static void *
reader(void *arg)
{
    (void)arg;
    uint64_t last = 0;
    while (!w.end) {
        auto_mem void *tmp = mem_ctx("reader");
        struct state_txn *t = core_read_begin(w.core, tmp);
        uint64_t at = state_applied(t), jobs = count_jobs(t);
        ck_assert_uint_ge(at, last);
        ck_assert_uint_eq(jobs, at > BASE ? at - BASE : 0);
        ck_assert_uint_eq(count_jobs(t), jobs);
        state_read_end(t);
        last = at;
        w.reads++;
    }
    return NULL;
}

static void
changed(void *arg, uint64_t index, const struct state_change *v, size_t n)
{
    (void)arg;
    (void)n;
    w.told += v == NULL && index > BASE;
}

/* Makes the core follow, as that of a server that is behind. */
static void
follow(void *arg)
{
    (void)arg;
    w.core->apply.leading = false;
    w.follows = true;
}

static unsigned
state_files(const char *dir)
{
    auto_mem void *tmp = mem_ctx("files");
    DIR *d = opendir(mem_printf(tmp, "%s/state", dir));
    unsigned n = 0;
    ck_assert_ptr_nonnull(d);
    for (struct dirent *x; (x = readdir(d)) != NULL;)
        n += strstr(x->d_name, ".mdb") != NULL && strstr(x->d_name, "-lock") == NULL;
    closedir(d);
    return n;
}

START_TEST(readers_see_one_state_each)
{
    auto_mem void *tmp = mem_ctx("test");
    const char *dir = mem_strdup(tmp, tmp_dir()), *raft = mem_printf(tmp, "%s/raft", dir);
    struct bench *b = bench_open_opts((struct core_opts){.dir = dir,
                                                         .addr = "127.0.0.1:4647",
                                                         .boot_id = "boot",
                                                         .state_max = 256 << 20,
                                                         .segment_bytes = 64 << 10,
                                                         .snapshot_entries = 1000,
                                                         .snapshot_bytes = 1 << 20,
                                                         .on_changes = changed});
    struct peer peer = {1, "s1:1", PEER_VOTER};
    struct state *s;
    struct state_txn *first;
    pthread_t threads[READERS];
    struct err e = ERR_INIT;
    bool fresh;
    w.core = b->core;
    ck_assert_int_eq(state_open(tmp_dir(), "boot", 64 << 20, &s, &fresh, &e), 0);
    first = core_read_begin(w.core, tmp);
    for (size_t i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, reader, NULL), 0);
    ck_assert(core_post(w.core, follow, NULL));
    while (!w.follows)
        sched_yield();
    for (uint64_t i = 1; i <= STATES; i++) {
        struct consensus_snapshot *meta = mem_new(NULL, struct consensus_snapshot);
        *meta = (struct consensus_snapshot){
            .index = BASE + i, .term = 5, .conf = {&peer, 1}, .conf_index = 1};
        state_grow(s, i);
        state_send(s, raft, meta);
        core_hand_install(w.core, meta);
        while (w.told < i || w.reads < i * 8)
            sched_yield();
    }
    w.end = true;
    for (size_t i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(count_jobs(first), 0); /* it was open all the time */
    state_read_end(first);
    ck_assert_uint_eq(state_files(dir), 1);
    printf("# %u reads beside %d states\n", w.reads, STATES);
    bench_close(b);
    state_close(s);
}
END_TEST

TEST_SUITE("install", readers_see_one_state_each)
