/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeds of fuzz-isolation that are no text: a policy and a task record.
 */
#include <string.h>

#include "api/api.h"
#include "isolation/launch/record.h"
#include "tests/fuzz/corpus.h"

static const char id[] = "12345678-aaaa-4bbb-8ccc-0123456789ab";

void
corpus_isolation(void)
{
    auto_buf struct buf b = BUF_INIT(1 << 16);
    static const char *drivers[] = {"exec", "raw_exec"}, *denied[] = {"root"}, *caps[] = {"chown"};
    struct policy p = {.drivers = {drivers, 2},
                       .denied_users = {denied, 1},
                       .allowed_caps = {caps, 1},
                       .data_dir = "/var/lib/p",
                       .alloc_dir = "/var/lib/p/alloc",
                       .run_dir = "/run/p",
                       .agent_user = "paddock",
                       .agent_uid = 999,
                       .agent_gid = 999,
                       .seccomp = true};
    buf_put_u8(&b, 4);
    mp_encode(&b, &type_policy, &p);
    seed("fuzz-isolation", "policy", b.data, b.len);
    struct record r = {
        .boot_id = "b", .task = "web", .run = {.state = RECORD_FINISHED, .exit_code = 3}};
    memcpy(r.alloc_id, id, sizeof(id));
    buf_reset(&b);
    buf_put_u8(&b, 5);
    buf_put(&b, (const char *)&r + 8, sizeof(r) - 8);
    seed("fuzz-isolation", "record", b.data, b.len);
}
