/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that join a hostile task (A1, A5, A7): it lies in wait for each of them (stalk.c), and
 * gets none before it is a program of the task's own; nor then, when the program may not be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/plan.h"
#include "tests/attempts/watch.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

/* A kind of task. Landlock alone keeps a task from looking into what joins it, so there is a kind
 * without. */
struct profile {
    const char *user, *userns;
    bool landlock;
};

enum { JOINS = 500, SCRIPTS = 200, AGENT = 65533 };

/* A task that lies in wait. `quiet` is a program that nobody may read, not even its owner: what
 * runs it cannot be looked into by those of its user either, so each success is one against what
 * joins. */
static void
begin(struct rig *r, const struct profile *p, struct got *task)
{
    static const char *somebody[] = {"daemon"};
    rig_start(r, 0);
    if (!p->landlock)
        r->denied[r->n_denied++] = (struct rig_denied){SYS_landlock_create_ruleset, ENOSYS};
    r->policy.denied_users = (struct str_list){somebody, 1};
    r->policy.agent_uid = r->policy.agent_gid = AGENT;
    r->policy.userns = p->userns;
    rig_change_policy(r);
    rig_alloc_as(r, rig_id, "web", "exec", p->user);
    rig_plant(r, "stalk", "stalk", 0755);
    rig_plant(r, "stalk", "quiet", 0111);
    for (int i = 0; i < 2; i++) {
        static const char *const first[] = {"/proc/self/exe", "/proc/thread-self/exe"};
        const char *to =
            mem_printf(r->ctx, "%s/%s/web/local/script%d", r->policy.alloc_dir, rig_id, i);
        const char *text = mem_printf(r->ctx, "#!%s\n", first[i]);
        ck_assert_int_eq(file_write_atomic(AT_FDCWD, to, text, strlen(text), 0755), 0);
    }
    struct launch_spec *s = rig_spec(r, rig_id, "web", true, "exec /local/stalk");
    s->user = p->user;
    rig_launch(r, s, task);
    ck_assert_msg(task->err.code == 0, "%s", task->err.text);
    rig_await(r, "web", "waiting");
}

static void
ask(struct rig *r, const char *program, const char *arg, bool tty, struct got *g)
{
    const char *argv[] = {program, arg};
    const struct exec_request x = {.command = {argv, 2}, .tty = tty};
    memset(g, 0, sizeof(*g));
    warden_exec(r->client, rig_id, "web", &x, rig_got, g);
    rig_wait(r, g);
}

static int
end(struct got *g)
{
    struct exec_exit x = {-1, -1};
    struct pollfd p = {.fd = g->exit, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 15000), 1);
    ck_assert_int_eq(recv(g->exit, &x, sizeof(x), 0), sizeof(x));
    return x.signal == 0 ? x.code : -x.signal;
}

static void
join(struct rig *r, const char *program, const char *arg)
{
    struct got g;
    ask(r, program, arg, false, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    ck_assert_int_eq(end(&g), 0);
    got_free(&g);
}

/* Returns the loot of the task, which has ended then. */
static char *
loot(struct rig *r, struct got *task, unsigned long *seen, unsigned long *stolen)
{
    struct got g = {0};
    warden_signal(r->client, rig_id, "web", SIGTERM, rig_got, &g);
    rig_wait(r, &g);
    got_free(&g);
    (void)rig_end(r, task);
    got_free(task);
    char *out = rig_file(r, rig_id, "alloc/logs/web.stdout.0");
    const char *line = strstr(out, "seen ");
    ck_assert_msg(line != NULL && sscanf(line, "seen %lu tries %*u stolen %lu", seen, stolen) == 2,
                  "%s", out);
    return out;
}

static void
joined_by_many(const struct profile *p)
{
    struct rig r;
    struct watch w;
    struct got task, g;
    unsigned long seen = 0, stolen = 0;
    begin(&r, p, &task);
    watch_begin(&w, r.dir);
    for (int i = 0; i < JOINS; i++)
        join(&r, "/local/quiet", "nothing");
    int scripts = p->landlock ? SCRIPTS : 0;
    for (int i = 0; i < scripts; i++) { /* whose interpreter is what executes it */
        ask(&r, i % 2 ? "/local/script1" : "/local/script0", "x", false, &g);
        ck_assert_msg(g.err.code != 0, "the joiner was the interpreter");
        got_free(&g);
    }
    char *out = loot(&r, &task, &seen, &stolen);
    ck_assert_msg(stolen == 0, "%s", out);
    ck_assert_msg(seen > JOINS / 2, "it saw only %lu", seen);
    watch_end(&w, out);
    printf("# A1 A5 %s, userns %s, %s Landlock: %lu of %d joins seen, none caught\n",
           p->user[0] ? p->user : "nobody", p->userns, p->landlock ? "with" : "without", seen,
           JOINS + scripts);
    rig_stop(&r);
}

START_TEST(joins_are_not_caught)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    TEST_NEED("userns");
    joined_by_many(&(struct profile){"", "required", false});
}
END_TEST

START_TEST(joins_are_not_caught_by_root)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    joined_by_many(&(struct profile){"root", "off", true});
}
END_TEST

/* So that the tests above can fail: a program that may be read is in reach of its user. */
START_TEST(what_may_be_read_is_caught)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got task;
    unsigned long seen = 0, stolen = 0;
    begin(&r, &(struct profile){"", "auto", false}, &task);
    for (int i = 0; i < 20; i++)
        join(&r, "/bin/sleep", "0.02");
    char *out = loot(&r, &task, &seen, &stolen);
    ck_assert_msg(stolen > 0, "%s", out);
    rig_stop(&r);
}
END_TEST

START_TEST(terminals_take_no_injection)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got task, g;
    char text[4096] = "";
    begin(&r, &(struct profile){"", "auto", true}, &task);
    ask(&r, "/local/stalk", "inject", true, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    for (size_t n = 0;;) {
        struct pollfd p = {.fd = g.exec[1], .events = POLLIN};
        ck_assert_int_eq(poll(&p, 1, 15000), 1);
        ssize_t k = read(g.exec[1], text + n, sizeof(text) - 1 - n);
        if (k <= 0)
            break;
        n += (size_t)k;
    }
    ck_assert_int_eq(end(&g), 0);
    int denied = 0;
    for (const char *p = text; (p = strstr(p, "EPERM\r\n")) != NULL; p++)
        denied++;
    ck_assert_msg(denied == 14 && strstr(text, "INJECTED") == NULL, "%s", text);
    ck_assert_msg(strstr(text, "own session: yes") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "waits: nothing") != NULL, "%s", text);
    printf("# A7 %d calls denied, nothing injected\n", denied);
    got_free(&g);
    got_free(&task);
    rig_stop(&r);
}
END_TEST

TEST_SUITE_TIMEOUT("joining", 120, joins_are_not_caught, joins_are_not_caught_by_root,
                   what_may_be_read_is_caught, terminals_take_no_injection)
