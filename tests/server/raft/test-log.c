/* SPDX-License-Identifier: Apache-2.0
 *
 * The durable log: appending and replaying, truncation, compaction, torn writes against corruption,
 * term and vote, snapshots files, and a writer that is killed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/raft/log.h"
#include "server/raft/snapshot.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

static atomic_uint_fast64_t durable;
static atomic_uint syncs;

static void
on_durable(void *arg, uint64_t index)
{
    (void)arg;
    atomic_store(&durable, index);
    atomic_fetch_add(&syncs, 1);
}

static struct raft_log *
open_log(const char *dir, struct err *e)
{
    struct raft_log_opts o = {.segment_bytes = 4096, .on_durable = on_durable};
    struct raft_log *l = NULL;
    return raft_log_open(dir, &o, &l, e) == 0 ? l : NULL;
}

static void
append(struct raft_log *l, uint64_t index, size_t n)
{
    char data[8192];
    ASSERT(n <= sizeof(data));
    memset(data, (int)('a' + index % 26), n);
    struct record r = {.index = index, .term = 1 + index / 100, .type = RECORD_COMMAND, .data = data, .n = n};
    raft_log_append(l, &r);
}

struct seen {
    uint64_t next;
    uint64_t n;
    bool odd;
};

static int
see(void *arg, const struct record *r)
{
    struct seen *s = arg;
    if (r->type == RECORD_TRUNCATE) {
        s->next = r->index;
        return 0;
    }
    s->odd |= s->next != 0 && r->index != s->next;
    for (size_t i = 0; i < r->n; i++)
        s->odd |= ((const char *)r->data)[i] != (char)('a' + r->index % 26);
    s->next = r->index + 1;
    s->n++;
    return 0;
}

static struct seen
replay(struct raft_log *l)
{
    struct seen s = {0};
    struct err e = ERR_INIT;
    ck_assert_int_eq(raft_log_replay(l, 1, see, &s, &e), 0);
    ck_assert(!s.odd);
    return s;
}

START_TEST(appended_is_replayed)
{
    const char *dir = tmp_dir();
    struct err e = ERR_INIT;
    struct raft_log *l = open_log(dir, &e);
    ck_assert_uint_eq(raft_log_first(l), 1);
    ck_assert_uint_eq(raft_log_last(l), 0);
    for (uint64_t i = 1; i <= 500; i++) {
        append(l, i, i % 100);
        if (i % 37 == 0)
            raft_log_flush(l);
    }
    append(l, 501, 8192); /* larger than a segment */
    raft_log_sync(l);
    ck_assert_uint_eq(atomic_load(&durable), 501);
    raft_log_close(l);
    l = open_log(dir, &e);
    ck_assert_uint_eq(raft_log_last(l), 501);
    ck_assert_uint_eq(replay(l).n, 501);
    append(l, 502, 3);
    raft_log_close(l);
    l = open_log(dir, &e);
    ck_assert_uint_eq(replay(l).n, 502);
    raft_log_close(l);
}
END_TEST

START_TEST(term_and_vote_survive)
{
    const char *dir = tmp_dir();
    struct err e = ERR_INIT;
    struct raft_log *l = open_log(dir, &e);
    for (uint64_t t = 1; t <= 7; t++)
        raft_log_set_hard(l, t, t * 3);
    raft_log_close(l);
    l = open_log(dir, &e);
    ck_assert_uint_eq(raft_log_term(l), 7);
    ck_assert_uint_eq(raft_log_vote(l), 21);
    raft_log_close(l);
    /* A torn write of the newer slot leaves the older one. */
    auto_mem void *tmp = mem_ctx("test");
    const char *path = mem_printf(tmp, "%s/hard-state", dir);
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(fd_pwrite_full(fd, "garbage", 7, 4096 + 10), 0);
    l = open_log(dir, &e);
    ck_assert_uint_eq(raft_log_term(l), 6);
    raft_log_close(l);
    ck_assert_int_eq(fd_pwrite_full(fd, "garbage", 7, 10), 0);
    close(fd);
    ck_assert_ptr_null(open_log(dir, &e));
    ck_assert_int_eq(e.code, -ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(e.text, "could vote twice"));
}
END_TEST

START_TEST(truncation_is_a_record)
{
    const char *dir = tmp_dir();
    struct err e = ERR_INIT;
    struct raft_log *l = open_log(dir, &e);
    for (int round = 0; round < 30; round++) {
        uint64_t from = raft_log_last(l) > 20 ? raft_log_last(l) - 20 : raft_log_last(l) + 1;
        raft_log_truncate(l, from);
        for (uint64_t i = from; i < from + 25; i++)
            append(l, i, 40);
        if (round % 3 == 0)
            raft_log_sync(l);
    }
    uint64_t last = raft_log_last(l);
    raft_log_sync(l);
    ck_assert_uint_eq(atomic_load(&durable), last);
    raft_log_close(l);
    l = open_log(dir, &e);
    ck_assert_msg(l != NULL, "%s", e.text);
    ck_assert_uint_eq(raft_log_last(l), last);
    ck_assert_uint_eq(replay(l).next, last + 1);
    raft_log_close(l);
}
END_TEST

static size_t
segments(const char *dir, char last[300])
{
    size_t n = 0;
    DIR *d = opendir(dir);
    struct dirent *ent;
    last[0] = '\0';
    while ((ent = readdir(d)) != NULL) {
        char path[300];
        if (!str_prefix(ent->d_name, "log-"))
            continue;
        n++;
        snprintf(path, sizeof(path), "%s/%s", dir, ent->d_name);
        if (strcmp(path, last) > 0)
            strcpy(last, path);
    }
    closedir(d);
    return n;
}

START_TEST(compaction_removes_old_segments)
{
    const char *dir = tmp_dir();
    char last[300];
    struct err e = ERR_INIT;
    struct raft_log *l = open_log(dir, &e);
    for (uint64_t i = 1; i <= 1000; i++) {
        append(l, i, 50);
        if (i % 100 == 0)
            raft_log_sync(l);
    }
    size_t before = segments(dir, last);
    raft_log_compact(l, 900);
    ck_assert_uint_gt(raft_log_first(l), 1);
    ck_assert_uint_le(raft_log_first(l), 901);
    uint64_t first = raft_log_first(l);
    raft_log_close(l);
    ck_assert_uint_lt(segments(dir, last), before / 2);
    l = open_log(dir, &e);
    ck_assert_uint_eq(raft_log_first(l), first);
    ck_assert_uint_eq(replay(l).n, 1000 - first + 1);
    raft_log_reset(l, 5000);
    ck_assert_uint_eq(raft_log_first(l), 5001);
    append(l, 5001, 5);
    raft_log_close(l);
    l = open_log(dir, &e);
    ck_assert_uint_eq(raft_log_first(l), 5001);
    ck_assert_uint_eq(raft_log_last(l), 5001);
    raft_log_close(l);
}
END_TEST

/* A truncation reaches behind the head of the segment that it is in, and that becomes the oldest one. */
START_TEST(first_entry_is_known_after_a_truncation_and_a_compaction)
{
    const char *dir = tmp_dir();
    struct err e = ERR_INIT;
    struct raft_log *l = open_log(dir, &e);
    for (uint64_t i = 1; i <= 200; i++)
        append(l, i, 50);
    raft_log_sync(l);
    raft_log_truncate(l, 120);
    for (uint64_t i = 120; i <= 400; i++)
        append(l, i, 50);
    raft_log_sync(l);
    for (uint64_t to = 130; to < 400; to += 5) {
        raft_log_compact(l, to);
        raft_log_close(l);
        l = open_log(dir, &e);
        ck_assert_msg(l != NULL, "%s", e.text);
        uint64_t first = raft_log_first(l);
        ck_assert_uint_le(first, to + 1);
        ck_assert_uint_eq(raft_log_last(l), 400);
        struct seen s = replay(l); /* with what was truncated meanwhile */
        ck_assert_uint_eq(s.next, 401);
        ck_assert_uint_ge(s.n, 400 - first + 1);
        struct record r = {.index = first, .term = 1 + first / 100};
        ck_assert_uint_eq(raft_log_read(l, NULL, &r, 1, SIZE_MAX), 1);
        talloc_free((void *)(uintptr_t)r.data);
        if (first > 120 && first <= 200)
            ck_assert_uint_eq(s.n, 400 - first + 1);
    }
    raft_log_close(l);
}
END_TEST

/* One segment: 20 writes of one record, then one write of three. */
static size_t
make_small(const char *dir, char path[300])
{
    struct err e = ERR_INIT;
    struct raft_log *l = open_log(dir, &e);
    ASSERT(l != NULL);
    for (uint64_t i = 1; i <= 20; i++) {
        append(l, i, 24);
        raft_log_sync(l);
    }
    for (uint64_t i = 21; i <= 23; i++)
        append(l, i, 24);
    raft_log_close(l);
    ASSERT(segments(dir, path) == 1);
    return SEGMENT_HEAD + 23 * record_size(24);
}

static void
damage(const char *path, size_t at, const char *bytes, size_t n)
{
    int fd = open(path, O_RDWR);
    ASSERT(fd_pwrite_full(fd, bytes, n, (off_t)at) == 0);
    close(fd);
}

START_TEST(torn_last_write_is_cut)
{
    const char *dir = tmp_dir();
    char path[300];
    size_t end = make_small(dir, path);
    /* The last write (21..23) lost its first record on the way to the disk: 22 and 23 are valid, but
     * nobody was told about any of them. */
    damage(path, end - 3 * record_size(24) + 45, "\xff\xff", 2);
    struct err e = ERR_INIT;
    struct raft_log *l = open_log(dir, &e);
    ck_assert_msg(l != NULL, "%s", e.text);
    ck_assert_uint_eq(raft_log_last(l), 20);
    for (uint64_t i = 21; i <= 40; i++)
        append(l, i, 10);
    raft_log_close(l);
    l = open_log(dir, &e);
    ck_assert_uint_eq(raft_log_last(l), 40);
    ck_assert_uint_eq(replay(l).n, 40);
    raft_log_close(l);
}
END_TEST

START_TEST(damage_to_acknowledged_data_is_refused)
{
    char path[300];
    size_t end = SEGMENT_HEAD + 20 * record_size(24); /* of what is followed by a later write */
    for (size_t at = 0; at < end; at += 5) {
        const char *dir = tmp_dir();
        make_small(dir, path);
        char b[1];
        int fd = open(path, O_RDWR);
        ASSERT(pread(fd, b, 1, (off_t)at) == 1);
        close(fd);
        b[0] ^= 0x10;
        damage(path, at, b, 1);
        struct err e = ERR_INIT;
        struct raft_log *l = open_log(dir, &e);
        ck_assert_msg(l == NULL, "one bit at %zu: not noticed", at);
        ck_assert_int_eq(e.code, -ERR_CORRUPT);
        ck_assert_ptr_nonnull(strstr(e.text, "start again empty"));
        dir_remove(AT_FDCWD, dir, NULL);
    }
}
END_TEST

START_TEST(cut_anywhere_never_crashes)
{
    char path[300];
    const char *dir = tmp_dir();
    size_t end = make_small(dir, path);
    for (size_t at = end + 8; at > 0; at -= 4) {
        ASSERT(truncate(path, (off_t)at) == 0);
        struct err e = ERR_INIT;
        struct raft_log *l = open_log(dir, &e);
        ck_assert_msg(l != NULL, "cut at %zu: %s", at, e.text);
        ck_assert_uint_le(raft_log_last(l), 23);
        raft_log_close(l);
        if (at < SEGMENT_HEAD + 4)
            break;
    }
}
END_TEST

START_TEST(missing_segment_is_refused)
{
    const char *dir = tmp_dir();
    char path[300];
    struct err e = ERR_INIT;
    struct raft_log *l = open_log(dir, &e);
    for (uint64_t i = 1; i <= 300; i++)
        append(l, i, 50);
    raft_log_close(l);
    ck_assert_uint_gt(segments(dir, path), 3);
    path[strlen(path) - 1]--; /* the last but one */
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_ptr_null(open_log(dir, &e));
    ck_assert_int_eq(e.code, -ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(e.text, "is missing"));
}
END_TEST

START_TEST(writes_that_wait_share_a_sync)
{
    const char *dir = tmp_dir();
    struct err e = ERR_INIT;
    struct raft_log_opts o = {.on_durable = on_durable};
    struct raft_log *l = NULL;
    ck_assert_int_eq(raft_log_open(dir, &o, &l, &e), 0);
    atomic_store(&syncs, 0);
    for (uint64_t i = 1; i <= 20000; i++) {
        append(l, i, 100);
        raft_log_flush(l);
    }
    raft_log_sync(l);
    ck_assert_uint_eq(atomic_load(&durable), 20000);
    ck_assert_uint_lt(atomic_load(&syncs), 10000);
    raft_log_close(l);
}
END_TEST

struct pipe_out {
    int fd;
};

static void
tell(void *arg, uint64_t index)
{
    struct pipe_out *p = arg;
    if (write(p->fd, &index, sizeof(index)) != (ssize_t)sizeof(index))
        _exit(1);
}

START_TEST(killed_writer_keeps_what_it_reported)
{
    const char *dir = tmp_dir();
    for (int round = 0; round < 5; round++) {
        int p[2];
        ck_assert_int_eq(pipe(p), 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct pipe_out out = {p[1]};
            struct raft_log_opts o = {.segment_bytes = 4096, .on_durable = tell, .arg = &out};
            struct raft_log *l = NULL;
            struct err e = ERR_INIT;
            if (raft_log_open(dir, &o, &l, &e) < 0)
                _exit(1);
            for (uint64_t i = raft_log_last(l) + 1;; i++) {
                append(l, i, 60);
                if (i % 3 == 0)
                    raft_log_flush(l);
                if (i % 64 == 0)
                    raft_log_sync(l);
            }
        }
        close(p[1]);
        uint64_t last = 0;
        for (int i = 0; i < 20; i++)
            ck_assert_int_eq(fd_read_full(p[0], &last, sizeof(last)), sizeof(last));
        kill(pid, SIGKILL);
        while (fd_read_full(p[0], &last, sizeof(last)) == (ssize_t)sizeof(last))
            ;
        close(p[0]);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        struct err e = ERR_INIT;
        struct raft_log *l = open_log(dir, &e);
        ck_assert_msg(l != NULL, "%s", e.text);
        ck_assert_uint_ge(raft_log_last(l), last);
        ck_assert_uint_eq(replay(l).n, raft_log_last(l));
        raft_log_close(l);
    }
}
END_TEST

/* --- snapshot files --- */

static int
three_rows(void *src, snapshot_row_fn *row, void *arg)
{
    (void)src;
    int rc = row(arg, 0, SLICE("a", 1), SLICE("one", 3));
    if (rc == 0)
        rc = row(arg, 0, SLICE("b", 1), SLICE("", 0));
    if (rc == 0)
        rc = row(arg, 5, SLICE("c", 1), SLICE("three", 5));
    return rc;
}

static int
count_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    size_t *n = arg;
    *n += 1 + table + key.n + val.n;
    return 0;
}

START_TEST(snapshot_round_trip_and_damage)
{
    auto_mem void *tmp = mem_ctx("test");
    const char *dir = tmp_dir();
    struct peer self = {.id = 7, .addr = "127.0.0.1:1", .role = PEER_VOTER};
    struct consensus_snapshot meta = {.index = 5, .term = 2, .conf = {&self, 1}, .conf_index = 1};
    struct consensus_snapshot got;
    struct err e = ERR_INIT;
    ck_assert_int_eq(snapshot_find(dir, tmp, &got, &e), 0);
    ck_assert_int_eq(snapshot_write(dir, &meta, three_rows, NULL, &e), 0);
    meta.index = 9;
    ck_assert_int_eq(snapshot_write(dir, &meta, three_rows, NULL, &e), 0);
    ck_assert_int_eq(snapshot_find(dir, tmp, &got, &e), 1);
    ck_assert_uint_eq(got.index, 9);
    ck_assert_uint_eq(got.conf.n, 1);
    ck_assert_str_eq(got.conf.v[0].addr, "127.0.0.1:1");
    size_t n = 0;
    ck_assert_int_eq(snapshot_read(dir, 9, count_row, &n, &e), 0);
    ck_assert_uint_eq(n, 3 + 5 + 3 + 8);
    const char *path = mem_printf(tmp, "%s/snapshot-%020d", dir, 9);
    char *bytes = NULL;
    size_t size = 0;
    ck_assert_int_ge(file_read(tmp, AT_FDCWD, path, 1 << 20, &bytes, &size), 0);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 1;
        ck_assert_int_eq(file_write_atomic(AT_FDCWD, path, bytes, size, 0600), 0);
        bytes[i] ^= 1;
        err_clear(&e);
        ck_assert_int_eq(snapshot_read(dir, 9, count_row, &n, &e), -ERR_CORRUPT);
    }
    for (size_t cut = 0; cut < size; cut++) {
        ck_assert_int_eq(file_write_atomic(AT_FDCWD, path, bytes, cut, 0600), 0);
        err_clear(&e);
        ck_assert_int_eq(snapshot_read(dir, 9, count_row, &n, &e), -ERR_CORRUPT);
    }
}
END_TEST

TEST_SUITE_TIMEOUT("log", 60, appended_is_replayed, term_and_vote_survive, truncation_is_a_record,
                   compaction_removes_old_segments,
                   first_entry_is_known_after_a_truncation_and_a_compaction, torn_last_write_is_cut,
                   damage_to_acknowledged_data_is_refused, cut_anywhere_never_crashes,
                   missing_segment_is_refused, writes_that_wait_share_a_sync,
                   killed_writer_keeps_what_it_reported, snapshot_round_trip_and_damage)
