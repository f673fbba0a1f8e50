/* SPDX-License-Identifier: Apache-2.0
 *
 * What servers say to each other about the log. The input behind a right checksum, and as it is.
 * Oracle: what decodes is encoded to the same bytes, but for a checksum; consensus refuses a
 * message or takes it.
 */
#include <stdint.h>
#include <string.h>

#include "common/crc.h"
#include "common/mem.h"
#include "server/raft/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
one(const uint8_t *p, size_t n)
{
    auto_mem void *tmp = mem_ctx("fuzz");
    struct err e = ERR_INIT;
    struct wire w;
    int rc = wire_get(tmp, p, n, &w, &e);
    ASSERT((rc == 0) == (e.code == 0));
    if (rc < 0)
        return;
    struct buf out = BUF_INIT(WIRE_BODY_MAX);
    wire_put(&out, &w);
    ASSERT(buf_error(&out) == 0 && out.len == n && memcmp(out.data, p, n) == 0);
    buf_done(&out);
    w.msg.peer = 2;
    w.msg.addr = "b:1";
    if (w.kind == WIRE_MSG)
        (void)consensus_msg_check(1, 7, &w.msg, &e);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    one(data, n);
    auto_mem uint8_t *p = mem_array(NULL, uint8_t, n + 4);
    uint32_t crc = crc32c(0, data, n);
    for (size_t i = 0; i < 4; i++)
        p[i] = (uint8_t)(crc >> (24 - 8 * i));
    if (n > 0)
        memcpy(p + 4, data, n);
    one(p, n + 4);
    return 0;
}
