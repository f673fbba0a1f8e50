/* SPDX-License-Identifier: Apache-2.0
 *
 * -t of the command line: a template, a zero byte, and the JSON it is applied to. Oracles: an error has
 * words, the same input gives the same text, the output is bounded.
 */
#include <stdint.h>
#include <string.h>

#include "codec/codec.h"
#include "codec/value.h"
#include "common/mem.h"
#include "template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *zero = n > 0 ? memchr(data, 0, n) : NULL;
    if (zero == NULL)
        return 0;
    auto_mem void *ctx = mem_ctx("fuzz");
    struct value *v = NULL;
    struct err e = ERR_INIT, e2 = ERR_INIT;
    char *text = mem_strndup(ctx, (const char *)data, (size_t)(zero - data));
    char *json = mem_dup(ctx, zero + 1, n - (size_t)(zero + 1 - data));
    if (json_decode_value(ctx, SLICE(json, n - (size_t)(zero + 1 - data)), BUDGET(4 << 20), &v, &e) < 0)
        return 0;
    auto_buf struct buf a = BUF_INIT(1 << 20), b = BUF_INIT(1 << 20);
    int r = template_render(&a, text, v, &e);
    ASSERT(r == 0 || e.text[0] != '\0');
    ASSERT(template_render(&b, text, v, &e2) == r && a.len == b.len);
    ASSERT(a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
    return 0;
}
