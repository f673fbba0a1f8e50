/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's local state with every file operation failed, torn and cut in turn: what was said to be
 * durable is there at the next start; and on a disk that fills and empties nothing is lost at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/terms.h"
#include "client/local.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "tests/lib/crash.h"
#include "tests/lib/faults.h"
#include "tests/lib/test.h"

enum { ROUNDS = 12, ALLOCS = 3 };

static const char *
alloc_id(const void *ctx, int i)
{
    return mem_printf(ctx, "%08d-0000-0000-0000-000000000000", i);
}

static struct client_alloc *
make_alloc(const void *ctx, int i, uint64_t index)
{
    struct client_alloc *a = mem_new(ctx, struct client_alloc);
    a->alloc = type_new(a, &type_allocation);
    a->alloc->id = alloc_id(a, i);
    a->alloc->job = type_new(a, &type_job);
    a->alloc->job->id = "job";
    a->server_index = index;
    return a;
}

static struct client_task *
make_task(const void *ctx, const char *name, uint64_t launches)
{
    struct client_task *t = type_new(ctx, &type_client_task);
    t->name = name;
    t->state = type_new(t, &type_task_state);
    t->state->state = "running";
    t->launches = (int64_t)launches;
    return t;
}

struct answer {
    bool done;
    int code;
};

static void
synced(void *arg, int code)
{
    struct answer *x = arg;
    x->code = code;
    x->done = true;
}

static int
sync_now(struct loop *loop, struct local *s)
{
    struct answer x = {0};
    local_sync(s, synced, &x);
    ck_assert(loop_run_until(loop, &x.done, 20000));
    return x.code;
}

/* Round n writes n everywhere, and moves to other allocations as it goes. */
static void
put_round(struct local *s, uint64_t n)
{
    auto_mem void *tmp = mem_ctx("round");
    for (int i = 0; i < ALLOCS; i++) {
        int k = (int)(n / 4) * ALLOCS + i;
        local_put_alloc(s, make_alloc(tmp, k, n));
        local_put_task(s, alloc_id(tmp, k), make_task(tmp, "one", n));
        local_put_task(s, alloc_id(tmp, k), make_task(tmp, "two", n));
        if (n % 4 == 0 && n > 0)
            local_del_alloc(s, alloc_id(tmp, k - ALLOCS));
    }
}

static void
work(const char *dir)
{
    auto_mem void *tmp = mem_ctx("work");
    char id[UUID_TEXT], secret[UUID_TEXT];
    log_set_level(LOG_OFF);
    struct loop *loop = loop_new();
    struct local *s = NULL;
    struct err e = ERR_INIT;
    const char *sub = mem_printf(tmp, "%s/client", dir);
    if (local_open(loop, sub, 1 << 30, &s, &e) < 0 || local_node_ids(s, id, secret, &e) < 0)
        return;
    for (uint64_t n = 1; n <= ROUNDS; n++) {
        put_round(s, n);
        for (int code = sync_now(loop, s); code != 0; code = sync_now(loop, s))
            ck_assert_int_eq(code, -ENOSPC);
        acknowledged(n);
    }
    local_stop(s);
    local_close(s);
    loop_free(loop);
}

struct found {
    uint64_t least; /* the oldest round of any row */
    size_t allocs, tasks;
};

static void
row(void *arg, struct client_alloc *a, struct client_task **tasks, size_t n)
{
    struct found *f = arg;
    f->allocs++;
    f->tasks += n;
    if (a->server_index < f->least)
        f->least = a->server_index;
    for (size_t i = 0; i < n; i++)
        if ((uint64_t)tasks[i]->launches < f->least)
            f->least = (uint64_t)tasks[i]->launches;
}

static void
look(const char *dir, uint64_t n, bool power)
{
    (void)power;
    auto_mem void *tmp = mem_ctx("look");
    char id[2][UUID_TEXT], secret[2][UUID_TEXT];
    const char *sub = mem_printf(tmp, "%s/client", dir);
    struct loop *loop = loop_new();
    for (int i = 0; i < 2; i++) {
        struct err e = ERR_INIT;
        struct local *s = NULL;
        ck_assert_msg(local_open(loop, sub, 1 << 30, &s, &e) == 0, "%s", e.text);
        ck_assert_msg(local_node_ids(s, id[i], secret[i], &e) == 0, "%s", e.text);
        struct found f = {.least = UINT64_MAX};
        ck_assert_msg(local_load(s, tmp, row, &f, &e) == 0, "%s", e.text);
        ck_assert_uint_eq(f.tasks, 2 * f.allocs); /* a round is one transaction: whole or not */
        ck_assert_uint_eq(f.allocs, n > 0 || f.allocs > 0 ? ALLOCS : 0);
        ck_assert_uint_ge(f.least, n);
        put_round(s, i == 0 ? n : n + 1);
        ck_assert_int_eq(sync_now(loop, s), 0);
        local_stop(s);
        local_close(s);
        n = i == 0 && f.least != UINT64_MAX && f.least > n ? n : n;
        if (n % 4 == 3)
            break; /* the next round would move on */
    }
    loop_free(loop);
}

static void
loop_all(const char *classes, const char *action, unsigned least)
{
    struct crash c = {.classes = classes,
                      .pattern = "*",
                      .action = action,
                      .work = work,
                      .check = look,
                      .fatal = LOG_FATAL_STATUS,
                      .step = 3,
                      .seeds = strcmp(action, "cut") != 0 ? 1 : crash_long() ? 20 : 3};
    unsigned n = crash_run(&c);
    ck_assert_msg(n >= (crash_long() ? least : least / 3), "%u calls of %s", n, classes);
}

START_TEST(writes_fail)
{
    loop_all("write", "fail EIO", ROUNDS);
    loop_all("write", "tear EIO", ROUNDS);
    loop_all("sync", "fail EIO", ROUNDS);
    loop_all("open,mkdir,rename,trunc", "fail EIO", 6);
}
END_TEST

START_TEST(writes_are_short_of_space)
{
    loop_all("write", "fail ENOSPC", ROUNDS);
    loop_all("write", "short ENOSPC", ROUNDS);
}
END_TEST

START_TEST(process_ends_at_any_call)
{
    loop_all("all", "exit", 3 * ROUNDS);
}
END_TEST

START_TEST(power_is_cut_at_any_call)
{
    loop_all("all", "cut", 3 * ROUNDS);
}
END_TEST

/* Whatever the clock says: each run's reports have greater numbers than those before. */
START_TEST(runs_are_counted)
{
    auto_mem void *tmp = mem_ctx("runs");
    char base[] = "/tmp/paddock-state-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(base));
    char *path = mem_printf(tmp, "%s/run", base);
    struct loop *loop = loop_new();
    struct local *s = NULL;
    struct err e = ERR_INIT;
    uint64_t run = 0, last = 0;
    ck_assert_int_eq(local_open(loop, base, 1 << 30, &s, &e), 0);
    for (int i = 0; i < 3; i++, last = run) {
        ck_assert_int_eq(local_run(s, &run, &e), 0);
        ck_assert_uint_ge(run, last + (UINT64_C(1) << 32));
    }
    auto_fd int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    ck_assert_int_eq(write(fd, "4000000000", 10), 10); /* of a clock that was ahead */
    ck_assert_int_eq(local_run(s, &run, &e), 0);
    ck_assert_uint_eq(run, UINT64_C(4000000001) << 32);
    faults_set("write *run* 1+ fail ENOSPC");
    ck_assert_int_eq(local_run(s, &run, &e), 0);
    faults_set(NULL);
    auto_fd int other = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC); /* another file by now */
    ck_assert_int_eq(write(other, "4e9", 3), 3);
    ck_assert_int_eq(local_run(s, &run, &e), -ERR_CORRUPT);
    local_close(s);
    loop_free(loop);
    dir_remove(AT_FDCWD, base, NULL);
}
END_TEST

/* The disk stays full over many rounds, and is empty again: the last word of every row is kept. */
START_TEST(full_disk_loses_nothing)
{
    auto_mem void *tmp = mem_ctx("full");
    char base[] = "/tmp/paddock-state-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(base));
    log_set_level(LOG_OFF);
    struct loop *loop = loop_new();
    struct local *s = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(local_open(loop, base, 1 << 30, &s, &e), 0);
    put_round(s, 0);
    ck_assert_int_eq(sync_now(loop, s), 0);
    faults_set("write */state.db 1+ fail ENOSPC");
    for (uint64_t n = 1; n <= ROUNDS; n++) {
        put_round(s, n);
        if (n % 5 == 1)
            ck_assert_int_eq(sync_now(loop, s), -ENOSPC);
    }
    faults_set(NULL);
    while (sync_now(loop, s) != 0)
        ;
    struct found f = {.least = UINT64_MAX};
    ck_assert_int_eq(local_load(s, tmp, row, &f, &e), 0);
    ck_assert_uint_eq(f.allocs, ALLOCS);
    ck_assert_uint_eq(f.tasks, 2 * ALLOCS);
    ck_assert_uint_eq(f.least, ROUNDS);
    local_stop(s);
    local_close(s);
    loop_free(loop);
    ck_assert_int_eq(dir_remove(AT_FDCWD, base, NULL), 0);
}
END_TEST

/* A full map keeps new rows waiting, and keeps the rows that are there; when allocations are
 * removed, all that waited is written, in the same process. */
START_TEST(full_map_loses_nothing)
{
    enum { MAP = 4 << 20, BALLAST = 200000, MANY = 40 };
    auto_mem void *tmp = mem_ctx("full");
    char base[] = "/tmp/paddock-state-XXXXXX", id[UUID_TEXT];
    struct loop *loop = loop_new();
    struct local *s = NULL;
    struct err e = ERR_INIT;
    size_t kept = 0;
    ck_assert_ptr_nonnull(mkdtemp(base));
    log_set_level(LOG_OFF);
    ck_assert_int_eq(local_open(loop, base, MAP, &s, &e), 0);
    char *ballast = mem_array(tmp, char, BALLAST + 1);
    memset(ballast, 'x', BALLAST);
    struct job job = {.id = "j"};
    str_map_set(tmp, &job.meta, "ballast", ballast);
    for (int i = 0, code = 0; i < MANY; i++) {
        snprintf(id, sizeof(id), "%08d-0000-0000-0000-000000000000", i);
        struct allocation alloc = {.id = id, .job = &job};
        local_put_alloc(s, &(struct client_alloc){.alloc = &alloc});
        code = sync_now(loop, s);
        ck_assert(code == 0 || code == -ERR_LIMIT);
        kept += code == 0;
    }
    ck_assert(kept > 5 && kept < MANY);
    struct found f = {.least = UINT64_MAX};
    ck_assert_int_eq(local_load(s, tmp, row, &f, &e), 0);
    ck_assert_uint_eq(f.allocs, kept);
    for (int i = 0; i < MANY - 8; i++) {
        snprintf(id, sizeof(id), "%08d-0000-0000-0000-000000000000", i);
        local_del_alloc(s, id);
    }
    for (int i = 0; i < 100 && sync_now(loop, s) != 0; i++)
        ;
    ck_assert_int_eq(sync_now(loop, s), 0);
    f = (struct found){.least = UINT64_MAX};
    ck_assert_int_eq(local_load(s, tmp, row, &f, &e), 0);
    ck_assert_uint_eq(f.allocs, 8);
    local_stop(s);
    local_close(s);
    loop_free(loop);
    ck_assert_int_eq(dir_remove(AT_FDCWD, base, NULL), 0);
}
END_TEST

/* An allocation that just fits into an answer of the servers fits here too, with what the client
 * adds to it. */
START_TEST(large_allocation_is_found_again)
{
    enum { BALLAST = 9 << 20 };
    auto_mem void *tmp = mem_ctx("large");
    char base[] = "/tmp/paddock-state-XXXXXX";
    struct loop *loop = loop_new();
    struct local *s = NULL;
    struct err e = ERR_INIT;
    ck_assert_ptr_nonnull(mkdtemp(base));
    ck_assert_int_eq(local_open(loop, base, 1 << 30, &s, &e), 0);
    char *ballast = mem_array(tmp, char, BALLAST + 1);
    memset(ballast, 'x', BALLAST);
    struct job job = {.id = "j"};
    str_map_set(tmp, &job.meta, "one", ballast);
    str_map_set(tmp, &job.meta, "two", ballast);
    struct allocation alloc = {.id = "00000000-0000-0000-0000-000000000000", .job = &job};
    local_put_alloc(s, &(struct client_alloc){.alloc = &alloc});
    ck_assert_int_eq(sync_now(loop, s), 0);
    struct found f = {.least = UINT64_MAX};
    ck_assert_int_eq(local_load(s, tmp, row, &f, &e), 0);
    ck_assert_uint_eq(f.allocs, 1);
    local_stop(s);
    local_close(s);
    loop_free(loop);
    ck_assert_int_eq(dir_remove(AT_FDCWD, base, NULL), 0);
}
END_TEST

TEST_SUITE_TIMEOUT("state", crash_long() ? 1200 : 60, writes_fail, writes_are_short_of_space,
                   process_ends_at_any_call, power_is_cut_at_any_call, runs_are_counted,
                   full_disk_loses_nothing,
                   full_map_loses_nothing, large_allocation_is_found_again)
