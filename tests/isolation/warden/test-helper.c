/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers, through a whole warden whose paddock-fetch does what the test says: what such a program
 * can reach, and that it is gone within its deadline and leaves nothing, whatever it does and
 * whoever ends first.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/launch/helper.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

enum { ANY_USER = 65533, LONG_MS = 600000, SHORT_MS = 500, PATIENCE_MS = 60000 };

static char programs[64]; /* directory of a warden's programs */

static void
copy_program(const char *top, const char *from, const char *to)
{
    char *data, path[128];
    size_t n;
    auto_mem void *ctx = mem_ctx("copy");
    ck_assert_int_eq(
        file_read(ctx, AT_FDCWD, mem_printf(ctx, "%s/%s", top, from), 512 << 20, &data, &n), 0);
    (void)snprintf(path, sizeof(path), "%s/%s", programs, to);
    ck_assert_int_eq(file_write_atomic(AT_FDCWD, path, data, n, 0755), 0);
}

static void
setup(void)
{
    const char *top = getenv("top_builddir");
    top = top != NULL ? top : ".";
    (void)snprintf(programs, sizeof(programs), "/tmp/rig-programs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(programs));
    ck_assert_int_eq(chmod(programs, 0755), 0);
    copy_program(top, "paddock-warden", "paddock-warden");
    copy_program(top, "paddock-shim", "paddock-shim");
    copy_program(top, "tests/isolation/warden/helper", "paddock-fetch");
    ck_assert_int_eq(setenv("top_builddir", programs, 1), 0);
}

static void
teardown(void)
{
    (void)dir_remove(AT_FDCWD, programs, NULL);
}

/* --- one helper --- */

static void
ask(struct rig *r, const struct helper_request *h, const char *driver, struct got *g)
{
    const struct warden_task task = {"web", NULL, driver};
    memset(g, 0, sizeof(*g));
    warden_helper(r->client, rig_id, &task, h, rig_got, g);
    rig_wait(r, g);
}

static void
start(struct rig *r, const char *order, int64_t deadline_ms, struct got *g)
{
    const struct helper_request h = {.program = "fetch",
                                     .network = true,
                                     .deadline_ms = deadline_ms,
                                     .memory_max = 64 << 20,
                                     .pids_max = 8,
                                     .file_max = 1 << 20};
    ask(r, &h, "exec", g);
    ck_assert_msg(g->err.code == 0, "%s", g->err.text);
    ck_assert_int_ge(g->helper, 0);
    ck_assert_int_ge(g->exit, 0);
    ck_assert_int_eq(send(g->helper, order, strlen(order), 0), (ssize_t)strlen(order));
}

static char *
hear(struct rig *r, struct got *g)
{
    char *text = mem_zalloc(r->ctx, 4096, "text");
    struct pollfd p = {.fd = g->helper, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, PATIENCE_MS), 1);
    ck_assert_int_gt(recv(g->helper, text, 4095, 0), 0);
    return text;
}

static struct helper_end
end(struct got *g)
{
    struct helper_end x = {.cause = -1};
    struct pollfd p = {.fd = g->exit, .events = POLLIN};
    ck_assert_msg(poll(&p, 1, PATIENCE_MS) == 1, "it does not end");
    ck_assert_int_eq(recv(g->exit, &x, sizeof(x), 0), sizeof(x));
    return x;
}

static bool
has_leavings(struct rig *r)
{
    auto_mem void *ctx = mem_ctx("leavings");
    bool any = r->policy.cgroup_root != NULL &&
               access(mem_printf(ctx, "%s/%s", r->policy.cgroup_root, rig_id), F_OK) == 0;
    DIR *d = opendir(mem_printf(ctx, "%s/%s", r->policy.alloc_dir, rig_id));
    ck_assert_ptr_nonnull(d);
    for (struct dirent *de; (de = readdir(d)) != NULL;)
        any = any || str_prefix(de->d_name, ".helper-");
    closedir(d);
    return any;
}

static void
expect_end(struct rig *r, struct got *g, int cause, int code, int sig)
{
    struct helper_end x = end(g);
    ck_assert_msg(x.cause == cause, "cause %d, not %d: %s: %s", x.cause, cause, x.step,
                  strerror(x.error));
    ck_assert_int_eq(x.code, code);
    ck_assert_int_eq(x.signal, sig);
    ck_assert(!has_leavings(r));
    got_free(g);
}

static void
begin(struct rig *r, uid_t uid)
{
    rig_start(r, uid);
    rig_alloc(r, rig_id, "web", uid == 0 ? "exec" : "raw_exec");
}

/* --- what it can reach --- */

static void
expect_line(const char *text, const char *line)
{
    ck_assert_msg(strstr(text, line) != NULL, "no \"%s\" in: %s", line, text);
}

START_TEST(it_reaches_its_directories_alone)
{
    TEST_NEED("root");
    struct rig r;
    struct got g;
    begin(&r, 0);
    start(&r, "look", LONG_MS, &g);
    const char *seen = hear(&r, &g);
    expect_line(seen, "uid 65534\n");
    expect_line(seen, "task yes\n");
    expect_line(seen, "shared yes\n");
    expect_line(seen, "scratch yes\n");
    expect_line(seen, "move yes\n");
    expect_line(seen, "certificates yes\n");
    expect_line(seen, "internet yes\n");
    expect_line(seen, "above EACCES\n");
    expect_line(seen, "passwd EACCES\n");
#ifndef INSTRUMENTED /* the compiler's runtime reads its own maps */
    expect_line(seen, "proc EACCES\n");
#endif
    expect_line(seen, "tmp EACCES\n");
    expect_line(seen, "unix EPERM\n");
    expect_line(seen, "fork EPERM\n");
    expect_line(seen, "execute EACCES\n");
    expect_line(seen, "device EPERM\n");
    expect_line(seen, "free descriptor Bad file descriptor\n");
    expect_end(&r, &g, HELPER_ENDED, 0, 0);
    rig_stop(&r);
}
END_TEST

START_TEST(one_that_clones_starts_programs_of_the_host_alone)
{
    TEST_NEED("root");
    struct rig r;
    struct got g;
    begin(&r, 0);
    const struct helper_request h = {.program = "clone",
                                     .network = true,
                                     .deadline_ms = LONG_MS,
                                     .memory_max = 64 << 20,
                                     .pids_max = 8,
                                     .file_max = 1 << 20};
    ask(&r, &h, "exec", &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    ck_assert_int_eq(send(g.helper, "look", 4, 0), 4);
    const char *seen = hear(&r, &g);
    expect_line(seen, "uid 65534\n");
    expect_line(seen, "move yes\n");
    expect_line(seen, "fork yes\n");
    expect_line(seen, "tmp yes\n"); /* its own: the scratch directory */
    expect_line(seen, "execute EACCES\n");
    expect_line(seen, "above EACCES\n");
    expect_line(seen, "unix EPERM\n");
    expect_line(seen, "device EPERM\n");
    expect_end(&r, &g, HELPER_ENDED, 0, 0);
    rig_stop(&r);
}
END_TEST

START_TEST(its_end_is_told)
{
    TEST_NEED("root");
    struct rig r;
    struct got g;
    begin(&r, 0);
    start(&r, "fail", LONG_MS, &g);
    expect_end(&r, &g, HELPER_ENDED, 7, 0);
    start(&r, "crash", LONG_MS, &g);
    expect_end(&r, &g, HELPER_ENDED, 0, SIGILL);
    start(&r, "fill one", LONG_MS, &g);
    expect_end(&r, &g, HELPER_ENDED, 8, 0);
    rig_stop(&r);
}
END_TEST

START_TEST(a_helper_that_needs_more_memory_is_killed)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2:memory");
    struct rig r;
    struct got g;
    begin(&r, 0);
    start(&r, "eat", LONG_MS, &g);
    expect_end(&r, &g, HELPER_MEMORY, 0, SIGKILL);
    rig_stop(&r);
}
END_TEST

/* --- who does not end --- */

static void
expect_deadline(uid_t uid, const char *order)
{
    struct rig r;
    struct got g;
    rig_start(&r, uid);
    rig_alloc(&r, rig_id, "web", "raw_exec");
    const struct helper_request h = {.program = "fetch",
                                     .deadline_ms = SHORT_MS,
                                     .memory_max = 64 << 20,
                                     .pids_max = 8,
                                     .file_max = 1 << 30};
    ask(&r, &h, "raw_exec", &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    ck_assert_int_eq(send(g.helper, order, strlen(order), 0), (ssize_t)strlen(order));
    expect_end(&r, &g, HELPER_DEADLINE, 0, SIGKILL);
    rig_stop(&r);
}

START_TEST(what_does_not_end_is_killed_at_its_deadline)
{
    TEST_NEED("root");
    expect_deadline(0, "spin");
    expect_deadline(0, "fill");
}
END_TEST

START_TEST(without_root_it_is_the_same)
{
    TEST_NEED("root");
    expect_deadline(ANY_USER, "spin");
    expect_deadline(ANY_USER, "fill");
}
END_TEST

/* Waits until no process has this number. */
static void
await_gone(int64_t pid)
{
    for (int64_t by = clock_mono_ns() + PATIENCE_MS * NS_PER_MS; kill((pid_t)pid, 0) == 0;) {
        ck_assert_msg(clock_mono_ns() < by, "process %lld lives", (long long)pid);
        rig_pause(5);
    }
    ck_assert_int_eq(errno, ESRCH);
}

static void
await_nothing(struct rig *r)
{
    for (int64_t by = clock_mono_ns() + PATIENCE_MS * NS_PER_MS; has_leavings(r);) {
        ck_assert_msg(clock_mono_ns() < by, "something is left");
        rig_pause(5);
    }
}

START_TEST(it_ends_with_the_agent)
{
    TEST_NEED("root");
    struct rig r;
    struct got g;
    begin(&r, 0);
    start(&r, "spin", LONG_MS, &g);
    ck_assert_str_eq(hear(&r, &g), "1"); /* of a namespace of its own */
    ck_assert(has_leavings(&r));
    fd_close(&g.exit);
    await_nothing(&r);
    got_free(&g);
    start(&r, "fill", LONG_MS, &g);
    (void)hear(&r, &g);
    warden_client_free(r.client);
    got_free(&g);
    await_nothing(&r);
    r.client = warden_client_new(r.ctx, r.socket);
    rig_connect(&r);
    rig_stop(&r);
}
END_TEST

START_TEST(it_ends_with_the_agent_without_root)
{
    TEST_NEED("root");
    struct rig r;
    struct got g;
    int64_t pid;
    begin(&r, ANY_USER);
    const struct helper_request h = {.program = "fetch",
                                     .deadline_ms = LONG_MS,
                                     .memory_max = 64 << 20,
                                     .pids_max = 8,
                                     .file_max = 1 << 20};
    ask(&r, &h, "raw_exec", &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    ck_assert_int_eq(send(g.helper, "look", 4, 0), 4);
    const char *seen = hear(&r, &g);
    expect_line(seen, "uid 65533\n");
    expect_line(seen, "above EACCES\n");
    expect_line(seen, "unix EPERM\n");
    expect_end(&r, &g, HELPER_ENDED, 0, 0);
    for (int i = 0; i < 2; i++) {
        ask(&r, &h, "raw_exec", &g);
        ck_assert_int_eq(send(g.helper, i == 0 ? "spin" : "fill", 4, 0), 4);
        (void)hear(&r, &g);
        fd_close(&g.exit);
        await_nothing(&r);
        got_free(&g);
    }
    /* with the warden: by the kernel's hand */
    ask(&r, &h, "raw_exec", &g);
    ck_assert_int_eq(send(g.helper, "spin", 4, 0), 4);
    ck_assert_int_eq(num_parse_i64(hear(&r, &g), &pid), 0);
    rig_kill(&r, SIGKILL);
    await_gone(pid);
    got_free(&g);
    rig_spawn(&r);
    rig_connect(&r);
    await_nothing(&r);
    rig_stop(&r);
}
END_TEST

START_TEST(it_ends_with_the_warden)
{
    TEST_NEED("root");
    struct rig r;
    struct got g;
    begin(&r, 0);
    start(&r, "spin", LONG_MS, &g);
    (void)hear(&r, &g);
    rig_kill(&r, SIGKILL);
    rig_spawn(&r);
    rig_connect(&r);
    await_nothing(&r);
    struct pollfd p = {.fd = g.helper, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, PATIENCE_MS), 1); /* the end of the file: nobody has it open */
    ck_assert_int_le(recv(g.helper, &p, sizeof(p), 0), 0);
    got_free(&g);
    start(&r, "fill", LONG_MS, &g);
    (void)hear(&r, &g);
    got_free(&g);
    rig_stop(&r); /* which looks for cgroups */
}
END_TEST

/* --- what is refused --- */

static void
expect_refused(struct rig *r, const char *program, const char *driver, const char *why)
{
    struct got g;
    const struct helper_request h = {
        .program = program, .deadline_ms = 1, .memory_max = 1, .pids_max = 1, .file_max = 1};
    ask(r, &h, driver, &g);
    ck_assert_msg(g.err.code != 0 && strstr(g.err.text, why) != NULL, "no \"%s\" in \"%s\"", why,
                  g.err.text);
    got_free(&g);
}

START_TEST(only_programs_and_drivers_of_the_list)
{
    TEST_NEED("root");
    struct rig r;
    begin(&r, 0);
    expect_refused(&r, "sh", "exec", "knows no helper \"sh\"");
    expect_refused(&r, "../sh", "exec", "knows no helper");
    expect_refused(&r, "fetch", "java", "not allowed on this client");
    ck_assert(!has_leavings(&r));
    rig_stop(&r);
}
END_TEST

START_TEST(their_number_is_bounded)
{
    TEST_NEED("root");
    struct rig r;
    struct got g[WARDEN_HELPERS_MAX];
    begin(&r, 0);
    const struct helper_request h = {.program = "fetch",
                                     .deadline_ms = LONG_MS,
                                     .memory_max = 64 << 20,
                                     .pids_max = 8,
                                     .file_max = 1 << 20};
    for (size_t i = 0; i < WARDEN_HELPERS_MAX; i++) {
        ask(&r, &h, "exec", &g[i]);
        ck_assert_msg(g[i].err.code == 0, "%s", g[i].err.text);
    }
    expect_refused(&r, "fetch", "exec", "work for tasks of this client already");
    for (size_t i = 0; i < WARDEN_HELPERS_MAX; i++)
        got_free(&g[i]);
    await_nothing(&r);
    rig_stop(&r);
}
END_TEST

TEST_SUITE_FIXTURE("helper", 120, setup, teardown, it_reaches_its_directories_alone,
                   one_that_clones_starts_programs_of_the_host_alone, its_end_is_told,
                   a_helper_that_needs_more_memory_is_killed,
                   what_does_not_end_is_killed_at_its_deadline, without_root_it_is_the_same,
                   it_ends_with_the_agent, it_ends_with_the_agent_without_root,
                   it_ends_with_the_warden, only_programs_and_drivers_of_the_list,
                   their_number_is_bounded)
