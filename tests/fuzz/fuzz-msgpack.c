/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: msgpack into every described type. What decodes must encode, decode again to the same
 * object, and survive clone and hash.
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
fuzz_type(const void *ctx, const struct type *t, const uint8_t *p, size_t n)
{
    void *obj = NULL, *again = NULL;
    struct err e = ERR_INIT;
    auto_buf struct buf b = BUF_INIT(64 << 20), b2 = BUF_INIT(64 << 20);
    if (mp_decode(ctx, t, SLICE(p, n), BUDGET(8 << 20), &obj, &e)) {
        must(e.text[0] != 0);
        return;
    }
    mp_encode(&b, t, obj);
    must(buf_error(&b) == 0);
    must(mp_decode(ctx, t, SLICE(b.data, b.len), BUDGET(64 << 20), &again, &e) == 0);
    must(codec_equal(t, obj, again, 0));
    must(codec_hash(t, obj, 0) == codec_hash(t, again, 0));
    mp_encode(&b2, t, again);
    must(b.len == b2.len && memcmp(b.data, b2.data, b.len) == 0);
    must(codec_equal(t, obj, codec_clone(ctx, t, obj), 0));
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
    mp_encode(&b, t, obj);
    for (size_t i = sizeof(f.state); i < n && b.len; i++)
        b.data[filler_u64(&f) % b.len] = p[i];
    fuzz_type(ctx, t, mem_dup(ctx, b.data, b.len), b.len);
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
    const uint8_t *p = mem_dup(ctx, data + 3, n);
    if (data[2] == 'm' && n > 8)
        fuzz_mutated(ctx, t, p, n);
    else
        fuzz_type(ctx, t, p, n);
    talloc_free(ctx);
    return 0;
}
