/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor with a real warden and a stand-in for the agent (fake-agent.c).
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/proc.h"
#include "tests/lib/test.h"

enum { NOBODY = 65534 };

static char dir[64];
static void *ctx;
static char *cgroup;

static pid_t
launch(uid_t uid, const char *user, const char *how)
{
    const char *top = getenv("top_builddir");
    ctx = mem_ctx("test");
    char *exe = mem_printf(ctx, "%s/paddock-fake-agent", top != NULL ? top : ".");
    snprintf(dir, sizeof(dir), "/tmp/sup-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chmod(dir, 0777), 0);
    char *agents = mem_printf(ctx, "%s/agent", dir);
    ck_assert_int_eq(mkdir(agents, 0777), 0);
    ck_assert_int_eq(chmod(agents, 0777), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (uid != 0 && (setgid(uid) < 0 || setuid(uid) < 0))
            _exit(1);
        execl(exe, "agent", dir, user, how, (char *)NULL);
        _exit(127);
    }
    struct cgroup_info info;
    cgroup = cgroup_find(ctx, &info, NULL) == 0
                 ? mem_printf(ctx, "%s/paddock-sup-%d", info.mount, (int)pid)
                 : NULL;
    return pid;
}

/* Waits for an agent other than `old` to have written its file; returns its pid, text in *ret. */
static pid_t
await_agent(pid_t supervisor, pid_t old, char **ret)
{
    char *path = mem_printf(ctx, "%s/agent", dir);
    for (int i = 0; i < 2000; i++) {
        DIR *d = opendir(path);
        pid_t pid = 0;
        for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;) {
            int64_t p;
            if (num_parse_i64(de->d_name, &p) == 0 && p != old)
                pid = (pid_t)p;
        }
        if (d != NULL)
            closedir(d);
        if (pid > 0) {
            (void)file_read(ctx, AT_FDCWD, mem_printf(ctx, "%s/%d", path, (int)pid), 4096, ret,
                            NULL);
            return pid;
        }
        ck_assert_int_eq(waitpid(supervisor, NULL, WNOHANG), 0);
        (void)poll(NULL, 0, 5);
    }
    ck_abort_msg("no agent");
    return 0;
}

static pid_t
find_warden(pid_t supervisor, pid_t old)
{
    for (int i = 0; i < 2000; i++) {
        char *text = NULL;
        char *path = mem_printf(ctx, "/proc/%d/task/%d/children", (int)supervisor, (int)supervisor);
        ck_assert_int_eq(file_read(ctx, AT_FDCWD, path, 4096, &text, NULL), 0);
        for (char *p = strtok(text, " \n"); p != NULL; p = strtok(NULL, " \n")) {
            char *comm = NULL;
            int64_t pid;
            if (num_parse_i64(p, &pid) == 0 && pid != old &&
                file_read(ctx, AT_FDCWD, mem_printf(ctx, "/proc/%s/comm", p), 64, &comm, NULL) ==
                    0 &&
                str_prefix(comm, "paddock-warden"))
                return (pid_t)pid;
        }
        (void)poll(NULL, 0, 5);
    }
    ck_abort_msg("no warden");
    return 0;
}

static void
finish(pid_t supervisor, int sig, int exit_code)
{
    int status = 0;
    if (sig != 0)
        kill(supervisor, sig);
    ck_assert_int_eq(waitpid(supervisor, &status, 0), supervisor);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), exit_code);
    if (cgroup != NULL)
        (void)rmdir(cgroup);
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
    talloc_free(ctx);
}

START_TEST(drops_and_restarts)
{
    TEST_NEED("root");
    pid_t s = launch(0, "nobody", NULL);
    char *text = NULL;
    pid_t a = await_agent(s, 0, &text);
    ck_assert_str_eq(text, "uid 65534 gid 65534 warden 1 bnd 0000000000000000 nnp 1");
    pid_t w = find_warden(s, 0);
    kill(a, SIGKILL);
    pid_t b = await_agent(s, a, &text);
    ck_assert_msg(strstr(text, "warden 1") != NULL, "%s", text);
    kill(w, SIGKILL);
    pid_t w2 = find_warden(s, w);
    ck_assert_int_ne(w, w2);
    finish(s, SIGTERM, 0);
    ck_assert_int_eq(kill(b, 0), -1);
    ck_assert_int_eq(kill(w2, 0), -1);
}
END_TEST

static void
await_drain(void)
{
    char *path = mem_printf(ctx, "%s/agent/draining", dir);
    for (int i = 0; i < 2000 && access(path, F_OK) < 0; i++)
        (void)poll(NULL, 0, 5);
    ck_assert_int_eq(access(path, F_OK), 0);
}

/* A drain stops tasks, which only a warden can: one that dies comes back, at once and again after a
 * pause, as long as there is an agent. */
START_TEST(warden_comes_back_while_the_agent_drains)
{
    TEST_NEED("root");
    pid_t s = launch(0, "nobody", "drain");
    char *text = NULL;
    pid_t a = await_agent(s, 0, &text);
    pid_t w = find_warden(s, 0);
    kill(s, SIGTERM);
    await_drain();
    for (int i = 0; i < 2; i++) {
        kill(w, SIGKILL);
        w = find_warden(s, w);
    }
    kill(a, SIGTERM);
    finish(s, 0, 0);
    ck_assert_int_eq(kill(w, 0), -1);
}
END_TEST

START_TEST(works_without_root)
{
    TEST_NEED("root");
    pid_t s = launch(NOBODY, "paddock", NULL);
    char *text = NULL;
    (void)await_agent(s, 0, &text);
    ck_assert_msg(str_prefix(text, "uid 65534 gid 65534 warden 1"), "%s", text);
    finish(s, SIGTERM, 0);
}
END_TEST

START_TEST(refuses)
{
    TEST_NEED("root");
    finish(launch(0, "no-such-user-here", NULL), 0, 1);
    finish(launch(0, "root", NULL), 0, 1);
    finish(launch(0, "bad-config", NULL), 0, 1);
}
END_TEST

TEST_SUITE_TIMEOUT("supervisor", 60, drops_and_restarts, warden_comes_back_while_the_agent_drains,
                   works_without_root, refuses)
