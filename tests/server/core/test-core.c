/* SPDX-License-Identifier: Apache-2.0
 *
 * The core: propose -> durable -> applied -> readable; restart; crash; snapshots.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/str.h"
#include "server/limits.h"
#include "server/raft/log.h"
#include "server/state/state.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

static struct intent *
register_job(const void *ctx, const char *id, int64_t count)
{
    struct intent *in = intent_new(ctx, 0);
    in->job_register = type_new(in, &type_intent_job_register);
    in->job_register->job = make_job(in, id, count);
    return in;
}

static bool
has_job(struct bench *b, const char *id)
{
    auto_mem void *tmp = mem_ctx("read");
    struct state_txn *t = core_read_begin(b->core, tmp);
    bool yes = state_job(t, tmp, "default", id) != NULL;
    state_read_end(t);
    return yes;
}

START_TEST(proposed_is_readable)
{
    auto_mem void *tmp = mem_ctx("test");
    struct bench *b = bench_open(tmp_dir(), "boot");
    ck_assert(core_is_leader(b->core));
    struct err e = ERR_INIT;
    struct fsm_result *r = bench_apply(b, tmp, register_job(tmp, "web", 1), &e);
    ck_assert_int_eq(e.code, 0);
    ck_assert(r->job_changed);
    ck_assert_uint_eq(r->index, r->job->job_modify_index);
    ck_assert(has_job(b, "web"));
    ck_assert(!has_job(b, "we"));
    bench_close(b);
}
END_TEST

START_TEST(refusal_reaches_the_proposer)
{
    auto_mem void *tmp = mem_ctx("test");
    struct bench *b = bench_open(tmp_dir(), "boot");
    struct intent *in = intent_new(tmp, 0);
    in->job_deregister = type_new(in, &type_intent_job_deregister);
    in->job_deregister->namespace = "default";
    in->job_deregister->job_id = "nope";
    struct err e = ERR_INIT;
    struct fsm_result *r = bench_apply(b, tmp, in, &e);
    ck_assert_int_eq(e.code, -ERR_NOT_FOUND);
    ck_assert_str_eq(e.text, "job \"nope\" not found");
    ck_assert_uint_gt(r->index, 0);
    bench_close(b);
}
END_TEST

/* A child's id that is over the limit of an id: as all that a row cannot hold. Whatever comes before and
 * after it in the same batch is applied, and so it is after a restart, with the state and without. */
START_TEST(what_cannot_be_stored_has_no_effect)
{
    auto_mem void *tmp = mem_ctx("test");
    const char *dir = tmp_dir(), *eval = "eeeeeeee-0000-4000-8000-000000000001";
    char id[1025] = "";
    memset(id, 'L', 1024);
    struct bench *b = bench_open(dir, "boot-1");
    struct intent *long_id = register_job(tmp, id, 1);
    long_id->job_register->job->periodic = type_new(tmp, &type_periodic_config);
    long_id->job_register->job->periodic->enabled = (struct opt_bool){true, true};
    struct intent_periodic_launch pl = {
        .namespace = "default", .job_id = id, .launch = 5000000000, .eval_id = eval, .force = true};
    struct intent launch = {.time = 1, .periodic_launch = &pl};
    bench_send(b, long_id);
    bench_send(b, register_job(tmp, "before", 1));
    for (int i = 0; i < 3; i++) {
        pl.launch++;
        bench_send(b, &launch);
        bench_send(b, register_job(tmp, mem_printf(tmp, "between-%d", i), 1));
    }
    ck_assert_uint_eq(bench_wait(b), 5);
    struct err e = ERR_INIT;
    pl.launch++;
    struct fsm_result *r = bench_apply(b, tmp, &launch, &e);
    ck_assert_int_eq(e.code, -ERR_LIMIT);
    ck_assert_uint_gt(r->index, 0);
    ck_assert_msg(strstr(e.text, "cannot be stored: ID: 1044 bytes are more than the 1024 allowed") != NULL,
                  "%s", e.text);
    bench_close(b);
    static const char *const boots[] = {"boot-1", "boot-2"};
    for (size_t k = 0; k < ARRAY_LEN(boots); k++) {
        b = bench_open(dir, boots[k]);
        ck_assert(has_job(b, id) && has_job(b, "before"));
        for (int i = 0; i < 3; i++)
            ck_assert(has_job(b, mem_printf(tmp, "between-%d", i)));
        struct state_txn *t = core_read_begin(b->core, tmp);
        ck_assert_ptr_null(state_eval(t, tmp, eval));
        const struct periodic_launch *p = state_periodic_launch(t, tmp, "default", id);
        ck_assert(p == NULL || p->launch < 5000000000);
        state_read_end(t);
        bench_close(b);
    }
}
END_TEST

/* Up to ROW_SURE_BYTES a row is stored without being decoded first: the least that an object takes on
 * disk is a byte; in memory it takes its struct and a place in a list, which may be twice as long. */
START_TEST(a_small_row_needs_little_memory)
{
    for (size_t i = 0; i < api_types_n; i++)
        ck_assert_msg(api_types[i]->size + 2 * sizeof(void *) + 64 < ROW_BUDGET / ROW_SURE_BYTES,
                      "%s has %zu bytes", api_types[i]->name, (size_t)api_types[i]->size);
}
END_TEST

/* Same boot: the state is kept. Another boot: rebuilt. Neither loses anything. */
START_TEST(restart_keeps_everything)
{
    auto_mem void *tmp = mem_ctx("test");
    const char *dir = tmp_dir();
    struct bench *b = bench_open(dir, "boot-1");
    for (int i = 0; i < 300; i++)
        bench_send(b, register_job(tmp, mem_printf(tmp, "job-%d", i), 1));
    ck_assert_uint_eq(bench_wait(b), 300);
    bench_close(b);
    static const char *const boots[] = {"boot-1", "boot-2", "boot-2", "boot-3"};
    for (size_t k = 0; k < ARRAY_LEN(boots); k++) {
        b = bench_open(dir, boots[k]);
        ck_assert_ptr_nonnull(b);
        for (int i = 0; i < 300; i++)
            ck_assert(has_job(b, mem_printf(tmp, "job-%d", i)));
        struct err e = ERR_INIT;
        bench_apply(b, tmp, register_job(tmp, mem_printf(tmp, "new-%zu", k), 1), &e);
        ck_assert_int_eq(e.code, 0);
        for (size_t i = 0; i <= k; i++)
            ck_assert(has_job(b, mem_printf(tmp, "new-%zu", i)));
        bench_close(b);
    }
}
END_TEST

static size_t
count_files(const char *dir, const char *prefix)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    struct dirent *ent;
    while ((ent = readdir(d)) != NULL)
        n += str_prefix(ent->d_name, prefix);
    closedir(d);
    return n;
}

START_TEST(snapshots_keep_the_log_short)
{
    auto_mem void *tmp = mem_ctx("test");
    const char *dir = tmp_dir();
    struct bench *b = bench_open(dir, "boot-1");
    for (int i = 0; i < 5000; i++) {
        auto_mem void *one = mem_ctx("one");
        bench_send(b, register_job(one, mem_printf(one, "job-%d", i % 50), i + 1));
        if (i % 50 == 49)
            bench_wait(b);
    }
    ck_assert_uint_eq(bench_wait(b), 5000);
    bench_close(b);
    const char *raft = mem_printf(tmp, "%s/raft", dir);
    ck_assert_uint_eq(count_files(raft, "snapshot-"), 1);
    ck_assert_uint_le(count_files(raft, "log-"), 12); /* of some 30 segments of 64 KiB */
    b = bench_open(dir, "boot-2");
    for (int i = 0; i < 50; i++) {
        struct state_txn *t = core_read_begin(b->core, tmp);
        struct job *j = state_job(t, tmp, "default", mem_printf(tmp, "job-%d", i));
        ck_assert_ptr_nonnull(j);
        ck_assert_int_eq(j->task_groups.v[0]->count.v, 4950 + i + 1);
        ck_assert_uint_eq(j->version, 99);
        state_read_end(t);
    }
    bench_close(b);
}
END_TEST

/* A child acknowledges writes through a pipe until it is killed at some moment. */
START_TEST(killed_loses_nothing_acknowledged)
{
    auto_mem void *tmp = mem_ctx("test");
    const char *dir = tmp_dir();
    int next = 0;
    for (int round = 0; round < 4; round++) {
        int p[2];
        ck_assert_int_eq(pipe(p), 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct bench *b = bench_open(dir, "boot-1");
            struct err e = ERR_INIT;
            for (int i = next;; i++) {
                auto_mem void *one = mem_ctx("one");
                bench_apply(b, one, register_job(one, mem_printf(one, "job-%d", i), 1), &e);
                if (e.code != 0 || write(p[1], &i, sizeof(i)) != (ssize_t)sizeof(i))
                    _exit(1);
            }
        }
        close(p[1]);
        int last = -1;
        for (int i = 0; i < 40 + 25 * round; i++)
            ck_assert_int_eq(fd_read_full(p[0], &last, sizeof(last)), sizeof(last));
        kill(pid, SIGKILL);
        while (fd_read_full(p[0], &last, sizeof(last)) == (ssize_t)sizeof(last))
            ;
        close(p[0]);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        struct bench *b = bench_open(dir, round % 2 == 0 ? "boot-1" : "boot-other");
        ck_assert_ptr_nonnull(b);
        for (int i = 0; i <= last; i++)
            ck_assert(has_job(b, mem_printf(tmp, "job-%d", i)));
        bench_close(b);
        next = last + 1;
    }
}
END_TEST

#ifdef __SANITIZE_THREAD__
enum { IDLE_WAKEUPS = 40 }; /* the sanitizer's own thread wakes ten times a second */
#else
enum { IDLE_WAKEUPS = 3 };
#endif

START_TEST(idle_core_sleeps)
{
    auto_mem void *tmp = mem_ctx("test");
    struct bench *b = bench_open(tmp_dir(), "boot");
    struct err e = ERR_INIT;
    bench_apply(b, tmp, register_job(tmp, "web", 1), &e);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    poll(NULL, 0, 700); /* not a wait for something: that nothing happens is the point */
    getrusage(RUSAGE_SELF, &after);
    ck_assert_int_le(after.ru_nvcsw - before.ru_nvcsw, IDLE_WAKEUPS);
    bench_close(b);
}
END_TEST

START_TEST(lost_term_and_vote_are_refused)
{
    auto_mem void *tmp = mem_ctx("test");
    const char *dir = tmp_dir();
    bench_close(bench_open(dir, "boot"));
    ck_assert_int_eq(unlink(mem_printf(tmp, "%s/raft/hard-state", dir)), 0);
    struct core_opts o = {.dir = dir, .addr = "a:1", .boot_id = "boot", .state_max = 64 << 20};
    struct core *c = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(core_open(&o, &c, &e), -ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(e.text, "could vote twice"));
}
END_TEST

/* The state says more than the log holds: entries were lost. */
START_TEST(shortened_log_is_refused)
{
    auto_mem void *tmp = mem_ctx("test");
    const char *dir = tmp_dir();
    struct bench *b = bench_open(dir, "boot");
    struct err e = ERR_INIT;
    for (int i = 0; i < 5; i++)
        bench_apply(b, tmp, register_job(tmp, mem_printf(tmp, "job-%d", i), 1), &e);
    bench_close(b);
    int fd = open(mem_printf(tmp, "%s/raft/log-%020d", dir, 0), O_RDWR);
    ck_assert_int_ge(fd, 0);
    char zeros[65536 - 400] = {0};
    ck_assert_int_eq(fd_pwrite_full(fd, zeros, sizeof(zeros), 400), 0);
    close(fd);
    struct core_opts o = {.dir = dir, .addr = "a:1", .boot_id = "boot", .state_max = 64 << 20};
    struct core *c = NULL;
    ck_assert_int_eq(core_open(&o, &c, &e), -ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(e.text, "part of it is missing"));
}
END_TEST

static void
durable(void *arg, uint64_t index)
{
    (void)arg;
    (void)index;
}

/* Written by a later release: it is not applied as nothing. */
START_TEST(an_unknown_intent_stops_the_server)
{
    auto_mem void *tmp = mem_ctx("test");
    const char *dir = tmp_dir();
    bench_close(bench_open(dir, "boot"));
    struct raft_log *log = NULL;
    struct err e = ERR_INIT;
    struct raft_log_opts lo = {.on_durable = durable};
    ck_assert_int_eq(raft_log_open(mem_printf(tmp, "%s/raft", dir), &lo, &log, &e), 0);
    struct record r = {.type = RECORD_COMMAND, .term = raft_log_term(log), .index = raft_log_last(log) + 1};
    r.data = "\x82\x01\x07\xcd\x03\xe7\x80"; /* Time 7, intent 999 */
    r.n = 7;
    raft_log_append(log, &r);
    raft_log_sync(log);
    raft_log_close(log);
    char *said = mem_printf(tmp, "%s/said", dir);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(said, O_WRONLY | O_CREAT, 0600);
        log_setup(LOG_ERROR, false, fd);
        bench_open(dir, "boot");
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), LOG_FATAL_STATUS);
    char *text = NULL;
    size_t n = 0;
    ck_assert_int_ge(file_read(tmp, AT_FDCWD, said, 4096, &text, &n), 0);
    ck_assert_msg(strstr(text, "upgrade this server") != NULL, "%s", text);
    ck_assert_msg(strstr(text, mem_printf(tmp, "index=%lu", (unsigned long)r.index)) != NULL, "%s", text);
    ck_assert_msg(strstr(text, "field 999") != NULL, "%s", text);
    /* and so does the next start: nothing was skipped */
    pid = fork();
    if (pid == 0) {
        bench_open(dir, "boot");
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), LOG_FATAL_STATUS);
}
END_TEST

START_TEST(two_processes_do_not_share_a_log)
{
    const char *dir = tmp_dir();
    struct bench *b = bench_open(dir, "boot");
    struct core_opts o = b->opts;
    struct core *c = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(core_open(&o, &c, &e), -ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(e.text, "in use by another process"));
    bench_close(b);
}
END_TEST

static struct intent *
big_job(const void *ctx, int n)
{
    struct intent *in = register_job(ctx, mem_printf(ctx, "big-%d", n), 1);
    char *text = mem_array(in, char, 300 << 10);
    memset(text, 'x', (300 << 10) - 1);
    str_map_set(in, &in->job_register->job->meta, "m", text);
    return in;
}

static struct intent *
purge_job(const void *ctx, int n)
{
    struct intent *in = intent_new(ctx, 0);
    in->job_deregister = type_new(in, &type_intent_job_deregister);
    in->job_deregister->namespace = "default";
    in->job_deregister->job_id = mem_printf(in, "big-%d", n);
    in->job_deregister->purge = true;
    return in;
}

/* The work that is on its way counts: a turn full of work does not fill the state. */
START_TEST(a_full_state_refuses_work_and_starts_again)
{
    const char *dir = tmp_dir();
    struct core_opts o = {.dir = dir,
                          .addr = "a:1",
                          .boot_id = "boot",
                          .state_max = 24 << 20,
                          .snapshot_entries = 1000,
                          .snapshot_bytes = 64 << 20};
    struct err e = ERR_INIT;
    for (int round = 0; round < 2; round++) {
        auto_mem void *tmp = mem_ctx("test");
        struct bench *b = bench_open_opts(o);
        ck_assert_ptr_nonnull(b);
        for (int i = 0; i < 96; i++)
            bench_send(b, big_job(tmp, i));
        ck_assert_uint_lt(bench_wait(b), 96);
        err_clear(&e);
        for (int i = 0; i < 96 && e.code == 0; i++)
            bench_apply(b, tmp, big_job(tmp, i), &e);
        ck_assert_int_eq(e.code, -ENOSPC);
        ck_assert_ptr_nonnull(strstr(e.text, "state_max_mb"));
        bench_close(b);
    }
    /* with a limit that it is far above, too */
    auto_mem void *tmp = mem_ctx("test");
    o.state_max = 16 << 20;
    struct bench *b = bench_open_opts(o);
    for (int i = 0; i < 96; i++)
        bench_apply(b, tmp, purge_job(tmp, i), &e);
    bench_apply(b, tmp, big_job(tmp, 0), &e);
    ck_assert_msg(e.code == 0, "%s", e.text);
    bench_close(b);
}
END_TEST

/* On a disk of its own, which jobs fill: purging them is enough, long before a snapshot is due. */
START_TEST(jobs_purged_from_a_full_disk_make_room)
{
    TEST_NEED("root");
    const char *dir = tmp_dir();
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    ck_assert_int_eq(mount("tmpfs", dir, "tmpfs", 0, "size=192m"), 0);
    struct bench *b = bench_open_opts((struct core_opts){.dir = dir,
                                                         .addr = "a:1",
                                                         .boot_id = "boot",
                                                         .state_max = 256 << 20,
                                                         .snapshot_entries = 8192,
                                                         .snapshot_bytes = 64 << 20});
    for (int round = 0; round < 2; round++) {
        auto_mem void *tmp = mem_ctx("test");
        struct err e = ERR_INIT;
        int n = 0;
        while (e.code == 0 && n < 500)
            bench_apply(b, tmp, big_job(tmp, n++), &e);
        ck_assert_int_eq(e.code, -ENOSPC);
        ck_assert_msg(strstr(e.text, "nearly full") != NULL, "%s", e.text);
        for (int i = 0; i < n - 1; i++) {
            err_clear(&e);
            bench_apply(b, tmp, purge_job(tmp, i), &e);
            ck_assert_msg(e.code == 0, "%s", e.text);
        }
        int64_t end = clock_mono_ns() + 10 * NS_PER_S;
        do {
            err_clear(&e);
            bench_apply(b, tmp, big_job(tmp, 0), &e);
        } while (e.code != 0 && clock_mono_ns() < end);
        ck_assert_msg(e.code == 0, "round %d: no room after the purge: %s", round, e.text);
    }
    auto_mem void *tmp = mem_ctx("test");
    const char *raft = mem_printf(tmp, "%s/raft", dir);
    /* each try may have met a disk that others filled meanwhile: the next one, when it is due, does not */
    int64_t end = clock_mono_ns() + 20 * NS_PER_S;
    while (count_files(raft, "snapshot-") == 0 && clock_mono_ns() < end) {
        auto_mem void *one = mem_ctx("one");
        struct err e = ERR_INIT;
        bench_apply(b, one, big_job(one, 0), &e);
        bench_apply(b, one, purge_job(one, 0), &e);
    }
    bench_close(b);
    ck_assert_uint_eq(count_files(raft, "snapshot-"), 1);
    ck_assert_int_eq(umount(dir), 0);
}
END_TEST

/* The bytes that it wrote before its last start count. */
START_TEST(a_server_that_starts_often_makes_snapshots)
{
    auto_mem void *tmp = mem_ctx("test");
    const char *dir = tmp_dir();
    for (int round = 0; round < 10; round++) {
        auto_mem void *one = mem_ctx("one");
        struct err e = ERR_INIT;
        struct bench *b = bench_open_opts((struct core_opts){.dir = dir,
                                                             .addr = "a:1",
                                                             .boot_id = "boot",
                                                             .state_max = 64 << 20,
                                                             .snapshot_entries = 8192,
                                                             .snapshot_bytes = 2 << 20});
        bench_apply(b, one, big_job(one, 0), &e);
        ck_assert_msg(e.code == 0, "%s", e.text);
        bench_close(b);
    }
    ck_assert_uint_eq(count_files(mem_printf(tmp, "%s/raft", dir), "snapshot-"), 1);
}
END_TEST

/* And not what it would use with the write that is refused. */
START_TEST(a_full_state_tells_what_it_uses)
{
    auto_mem void *tmp = mem_ctx("test");
    struct bench *b = bench_open_opts((struct core_opts){.dir = tmp_dir(),
                                                         .addr = "a:1",
                                                         .boot_id = "boot",
                                                         .state_max = 16 << 20,
                                                         .snapshot_entries = 1000,
                                                         .snapshot_bytes = 64 << 20});
    struct intent *in = register_job(tmp, "huge", 1);
    char *text = mem_array(in, char, 6 << 20);
    memset(text, 'x', (6 << 20) - 1);
    str_map_set(in, &in->job_register->job->meta, "m", text);
    struct err e = ERR_INIT;
    bench_apply(b, tmp, in, &e);
    ck_assert_int_eq(e.code, -ENOSPC);
    ck_assert_msg(strstr(e.text, "uses 0 of 16 MiB") != NULL, "%s", e.text);
    bench_close(b);
}
END_TEST

TEST_SUITE_TIMEOUT("core", 60, proposed_is_readable, refusal_reaches_the_proposer,
                   what_cannot_be_stored_has_no_effect, a_small_row_needs_little_memory,
                   a_full_state_refuses_work_and_starts_again,
                   jobs_purged_from_a_full_disk_make_room, a_full_state_tells_what_it_uses,
                   a_server_that_starts_often_makes_snapshots, restart_keeps_everything,
                   snapshots_keep_the_log_short, killed_loses_nothing_acknowledged,
                   idle_core_sleeps, lost_term_and_vote_are_refused, shortened_log_is_refused,
                   an_unknown_intent_stops_the_server, two_processes_do_not_share_a_log)
