/* SPDX-License-Identifier: Apache-2.0
 *
 * A hostile agent: bytes as a packet of the warden's socket. What decodes and passes the table must
 * encode to the same again, and a launch that the policy allows must make a plan that the shim
 * accepts.
 */
#include <stdint.h>
#include <string.h>

#include "codec/codec.h"
#include "common/mem.h"
#include "isolation/launch/plan.h"
#include "isolation/launch/policy.h"
#include "isolation/launch/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
try_plan(const void *ctx, const struct launch_spec *s)
{
    static const char *drivers[] = {"exec", "raw_exec"};
    static const char *roots[] = {"/srv"};
    const struct policy policy = {
        .drivers = {drivers, 2}, .bind_allowed = {roots, 1}, .raw_exec = true, .seccomp = true};
    struct err e = ERR_INIT;
    if (policy_check_launch(&policy, s, &e) < 0)
        return;
    uint64_t caps = 0;
    if (policy_caps(&policy, s, &caps, &e) < 0)
        return;
    ASSERT(caps == 0); /* none is allowed */
    struct user user = {.uid = 65534, .gid = 65534};
    struct sock_filter code[4];
    memset(code, 0, sizeof(code));
    struct seccomp_program filter = {.insns = code, .n = 4};
    struct mounts_plan mounts = {.bytes = sizeof(mounts)};
    struct plan_input in = {.spec = s,
                            .user = &user,
                            .mounts = s->isolated ? &mounts : NULL,
                            .task_filter = &filter,
                            .shim_filter = &filter,
                            .task_dir = "/alloc/x/web",
                            .logs = true};
    void *plan = NULL;
    size_t size = 0;
    if (plan_make(ctx, &in, &plan, &size, &e) == 0)
        ASSERT(plan_check(plan, size) == 0);
}

/* Tries a joiner: the command is the agent's, all else the task's. */
static void
try_join(const void *ctx, const struct exec_request *x)
{
    const struct launch_spec s = {.alloc_id = "x",
                                  .task_name = "web",
                                  .isolated = true,
                                  .command = x->command.v[0],
                                  .args = {x->command.v + 1, x->command.n - 1},
                                  .env = x->env,
                                  .work_dir = x->work_dir};
    struct user user = {.uid = 65534, .gid = 65534};
    struct plan_input in = {
        .spec = &s, .user = &user, .join = x, .task_dir = "/alloc/x/web", .userns = true};
    void *plan = NULL;
    size_t size = 0;
    struct err e = ERR_INIT;
    if (plan_make(ctx, &in, &plan, &size, &e) == 0)
        ASSERT(plan_check(plan, size) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    auto_mem void *ctx = mem_ctx("fuzz");
    struct warden_request *q = NULL, *again = NULL;
    struct err e = ERR_INIT;
    (void)plan_check(p, n);
    if (n > PROTO_PACKET_MAX || proto_decode(ctx, p, n, PROTO_READY, &q, &e) < 0)
        return 0;
    auto_buf struct buf b = BUF_INIT(PROTO_DECODE_MAX);
    mp_encode(&b, &type_warden_request, q);
    ASSERT(buf_error(&b) == 0);
    ASSERT(proto_decode(ctx, b.data, b.len, PROTO_READY, &again, &e) == 0);
    ASSERT(codec_equal(&type_warden_request, q, again, 0));
    if (q->op == WARDEN_LAUNCH)
        try_plan(ctx, q->spec);
    if (q->op == WARDEN_EXEC)
        try_join(ctx, q->exec);
    return 0;
}
