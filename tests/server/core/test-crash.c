/* SPDX-License-Identifier: Apache-2.0
 *
 * Every file operation of a server failed, torn and cut in turn (raft log, term and vote, server id,
 * snapshots, state): the server starts again, and what it acknowledged is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/state/state.h"
#include "tests/lib/crash.h"
#include "tests/lib/faults.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

enum { JOBS = 40 };

static struct bench *
open_small(const char *dir, const char *boot)
{
    return bench_open_opts((struct core_opts){.dir = dir,
                                              .addr = "127.0.0.1:4647",
                                              .boot_id = boot,
                                              .state_max = 64 << 20,
                                              .segment_bytes = 4096,
                                              .snapshot_entries = 12,
                                              .snapshot_bytes = 1 << 20});
}

static int
put_job(struct bench *b, uint64_t i)
{
    auto_mem void *tmp = mem_ctx("put");
    struct intent *in = intent_new(tmp, 0);
    in->job_register = type_new(in, &type_intent_job_register);
    in->job_register->job = make_job(in, mem_printf(tmp, "job-%d", (int)i), 1);
    struct err e = ERR_INIT;
    bench_apply(b, tmp, in, &e);
    return e.code;
}

static void
serve(const char *dir)
{
    log_set_level(LOG_OFF);
    uint64_t next = 1;
    for (int run = 0; run < 2; run++) {
        struct bench *b = open_small(dir, "boot-1");
        if (b == NULL)
            continue;
        for (int i = 0; i < JOBS / 2 && put_job(b, next) == 0; i++)
            acknowledged(next++);
        bench_close(b);
    }
}

static void
all_there(const char *dir, uint64_t n, bool power)
{
    log_set_level(LOG_ERROR);
    for (int run = 0; run < 2; run++) {
        struct bench *b = open_small(dir, power ? "boot-2" : "boot-1");
        ck_assert_ptr_nonnull(b);
        auto_mem void *tmp = mem_ctx("read");
        struct state_txn *t = core_read_begin(b->core, tmp);
        for (uint64_t i = 1; i <= n; i++)
            ck_assert_msg(state_job(t, tmp, "default", mem_printf(tmp, "job-%d", (int)i)) != NULL,
                          "job %d is lost", (int)i);
        state_read_end(t);
        for (uint64_t i = 0; i < 30; i++) /* some segments and a snapshot more */
            ck_assert_int_eq(put_job(b, 1000 + i), 0);
        bench_close(b);
    }
}

static void
loop(const char *classes, const char *pattern, const char *action, unsigned least)
{
    struct crash c = {.classes = classes,
                      .pattern = pattern,
                      .action = action,
                      .work = serve,
                      .check = all_there,
                      .fatal = LOG_FATAL_STATUS,
                      .step = 7,
                      .seeds = strcmp(action, "cut") != 0 ? 1 : crash_long() ? 8 : 2};
    unsigned n = crash_run(&c);
    ck_assert_msg(n >= (crash_long() ? least : least / 7), "%u calls of %s", n, classes);
}

START_TEST(writes_fail)
{
    loop("write", "raft/*", "fail EIO", JOBS);
    loop("write", "state/*", "fail EIO", JOBS);
}
END_TEST

START_TEST(writes_are_torn)
{
    loop("write", "raft/*", "tear EIO", JOBS);
    loop("write", "state/*", "tear EIO", JOBS);
}
END_TEST

START_TEST(writes_are_short_of_space)
{
    loop("write", "*", "fail ENOSPC", JOBS);
    loop("write", "*", "short ENOSPC", JOBS);
}
END_TEST

START_TEST(syncs_fail)
{
    loop("sync", "*", "fail EIO", JOBS);
}
END_TEST

START_TEST(files_cannot_be_made)
{
    loop("open,mkdir,trunc", "*", "fail ENOSPC", 14);
    loop("open,mkdir", "*", "fail EMFILE", 14);
    loop("rename,unlink", "*", "fail EIO", 3);
}
END_TEST

START_TEST(process_ends_at_any_call)
{
    loop("all", "*", "exit", 3 * JOBS);
}
END_TEST

START_TEST(power_is_cut_at_any_call)
{
    loop("all", "*", "cut", 3 * JOBS);
}
END_TEST

TEST_SUITE_TIMEOUT("crash", crash_long() ? 1800 : 60, writes_fail, writes_are_torn,
                   writes_are_short_of_space, syncs_fail, files_cannot_be_made,
                   process_ends_at_any_call, power_is_cut_at_any_call)
