/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden, its shim and its client, with real processes.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/proc.h"
#include "isolation/proto.h"
#include "isolation/record.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

enum { NOBODY = 65534 };

static void
expect_code(struct rig *r, struct got *g, int code, const char *text)
{
    rig_wait(r, g);
    ck_assert_msg(g->err.code == -code, "expected %d (%s), got %d: %s", code, err_name(code),
                  g->err.code, g->err.text);
    ck_assert_msg(text == NULL || strstr(g->err.text, text) != NULL, "\"%s\" not in: %s", text,
                  g->err.text);
    got_free(g);
}

static void
run_to_end(struct rig *r, bool isolated, const char *script, int exit_code)
{
    struct got g, d = {0};
    rig_launch(r, rig_spec(r, rig_id, "web", isolated, script), &g);
    struct task_record *t = rig_end(r, &g);
    ck_assert_int_gt(t->finished_at, 0);
    ck_assert_msg(t->exit_code == exit_code && t->signal == 0, "exit code %d signal %d; stderr: %s",
                  (int)t->exit_code, (int)t->signal, rig_file(r, rig_id, "alloc/logs/web.stderr.0"));
    got_free(&g);
    warden_destroy(r->client, rig_id, "web", rig_got, &d);
    expect_code(r, &d, 0, NULL);
}

static void
raw(uid_t uid)
{
    struct rig r;
    rig_start(&r, uid);
    rig_alloc(&r, rig_id, "web", "raw_exec");
    run_to_end(&r, false, "echo out; echo err >&2; id -u; pwd; exit 3", 3);
    char *want = mem_printf(r.ctx, "out\n%d\n%s/%s/web\n", NOBODY, r.policy.alloc_dir, rig_id);
    ck_assert_str_eq(rig_file(&r, rig_id, "alloc/logs/web.stdout.0"), want);
    ck_assert_str_eq(rig_file(&r, rig_id, "alloc/logs/web.stderr.0"), "err\n");
    rig_stop(&r);
}

START_TEST(runs_raw_exec)
{
    TEST_NEED("root");
    raw(0);
}
END_TEST

START_TEST(runs_raw_exec_rootless)
{
    TEST_NEED("root");
    raw(NOBODY);
}
END_TEST

START_TEST(runs_exec)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    run_to_end(&r, true, "id -u; pwd; echo $$; hostname; cat /proc/self/cgroup | tail -1; touch here; "
                         "grep CapEff /proc/self/status; ls /proc/self/fd | wc -l; exit 7", 7);
    char *out = rig_file(&r, rig_id, "alloc/logs/web.stdout.0");
    ck_assert_msg(strstr(out, "65534\n/\n2\n") == out, "%s", out);
    ck_assert_msg(strstr(out, "0::/\n") != NULL, "%s", out);
    ck_assert_msg(strstr(out, "CapEff:\t0000000000000000\n") != NULL, "%s", out);
    rig_stop(&r);
}
END_TEST

TEST_SUITE_TIMEOUT("warden", 60, runs_raw_exec, runs_raw_exec_rootless, runs_exec)
