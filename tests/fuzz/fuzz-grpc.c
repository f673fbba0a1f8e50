/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of HTTP/2 to a health check of gRPC: any bytes to the reader. Oracle: cut in pieces they
 * come to the same as at once, with the same reply. The first byte: the size of the pieces.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/probe/grpc.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
feed(struct grpc *g, struct buf *reply, const uint8_t *p, size_t n, size_t piece)
{
    for (size_t at = 0; at < n; at += piece) {
        size_t k = n - at < piece ? n - at : piece;
        uint8_t *exact = malloc(k);
        ASSERT(exact != NULL);
        memcpy(exact, p + at, k);
        enum grpc_state is = grpc_take(g, exact, k, reply);
        free(exact);
        if (is != GRPC_OPEN)
            break;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2 || n > GRPC_BYTES_MAX)
        return 0;
    auto_mem struct grpc *whole = mem_new(NULL, struct grpc), *cut = mem_new(NULL, struct grpc);
    auto_buf struct buf a = BUF_INIT(2 * GRPC_BYTES_MAX), b = BUF_INIT(2 * GRPC_BYTES_MAX);
    feed(whole, &a, data + 1, n - 1, n - 1);
    feed(cut, &b, data + 1, n - 1, data[0] == 0 ? 1 : data[0]);
    ASSERT(!buf_error(&a) && !buf_error(&b));
    ASSERT(whole->state == cut->state && strcmp(whole->why, cut->why) == 0);
    ASSERT(a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0));
    ASSERT((whole->state == GRPC_FAILED) == (whole->why[0] != '\0'));
    return 0;
}
