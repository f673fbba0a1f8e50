/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: JSON into every described type and into values. What decodes must encode, and decode
 * again to the same object and the same text.
 */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "tests/codec/filler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool ok)
{
    if (!ok)
        abort();
}

static void
fuzz_value(const void *ctx, const char *s, size_t n)
{
    struct value *v = NULL, *again = NULL;
    struct err e = ERR_INIT;
    auto_buf struct buf b = BUF_INIT(64 << 20);
    if (json_decode_value(ctx, SLICE(s, n), BUDGET(8 << 20), &v, &e)) {
        must(e.text[0] != 0);
        return;
    }
    json_encode_value(&b, v, 0);
    must(buf_error(&b) == 0);
    must(json_decode_value(ctx, SLICE(b.data, b.len), BUDGET(64 << 20), &again, &e) == 0);
    must(value_equal(v, again));
}

static void
fuzz_type(const void *ctx, const struct type *t, const char *s, size_t n)
{
    void *obj = NULL, *again = NULL;
    struct err e = ERR_INIT;
    auto_buf struct buf b = BUF_INIT(64 << 20), b2 = BUF_INIT(64 << 20);
    if (json_decode(ctx, t, SLICE(s, n), BUDGET(8 << 20), &obj, &e)) {
        must(e.text[0] != 0);
        return;
    }
    json_encode(&b, t, obj, 0);
    must(buf_error(&b) == 0);
    must(json_decode_strict(ctx, t, SLICE(b.data, b.len), BUDGET(64 << 20), &again, &e) == 0);
    must(codec_equal(t, obj, again, 0));
    json_encode(&b2, t, again, 0);
    must(b.len == b2.len && memcmp(b.data, b2.data, b.len) == 0);
}

/* A random object, encoded, with the bytes that follow the seed laid over it at random places: gets
 * the fuzzer past the structure at once. */
static void
fuzz_mutated(const void *ctx, const struct type *t, const uint8_t *p, size_t n)
{
    struct filler f = {.depth_max = 3, .list_max = 2, .empty_percent = 70};
    auto_buf struct buf b = BUF_INIT(64 << 20);
    memcpy(&f.state, p, sizeof(f.state));
    void *obj = filler_object(ctx, &f, t);
    json_encode(&b, t, obj, 0);
    for (size_t i = sizeof(f.state); i < n && b.len; i++)
        b.data[filler_u64(&f) % b.len] = p[i];
    fuzz_type(ctx, t, (const char *)mem_dup(ctx, b.data, b.len), b.len);
}

/* Two bytes choose the type (filler_type_key), the third what is done with the rest. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    void *ctx = mem_ctx("fuzz");
    const struct type *t = filler_type(data);
    size_t n = size - 3;
    /* a copy of the exact size, so that the sanitizer sees a read too far */
    char *s = mem_dup(ctx, data + 3, n);
    if (data[2] == 'v')
        fuzz_value(ctx, s, n);
    else if (data[2] == 'm' && n > 8)
        fuzz_mutated(ctx, t, data + 3, n);
    else
        fuzz_type(ctx, t, s, n);
    talloc_free(ctx);
    return 0;
}
