/* SPDX-License-Identifier: Apache-2.0
 *
 * Templates. The first byte says which functions there are; then a template, a zero byte, and JSON:
 * of -t the data it is applied to, of a task's template the answers to what it asks for, by name.
 * Oracles: an error has words, the same input gives the same text, the limits hold.
 */
#include <stdint.h>
#include <string.h>

#include "codec/codec.h"
#include "codec/value.h"
#include "common/mem.h"
#include "template/digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static enum template_answer
answer_fuzz(void *world, const struct template_ask *a, const struct value **ret, struct err *e)
{
    (void)e;
    ASSERT(a->name && a->key && a->ns && a->region && a->tag && a->hash);
    *ret = value_get(world, a->kind == TEMPLATE_ENV ? a->key : a->name);
    return *ret ? TEMPLATE_VALUE : TEMPLATE_MISSING;
}

static int
carry_out(const struct template_grammar *g, struct slice text, struct value *v, struct buf *out,
          struct err *e)
{
    auto_mem void *ctx = mem_ctx("fuzz");
    struct template_tree *t;
    struct template_result res;
    struct template_env env = {
        .ask = answer_fuzz, .data = v, .digest = template_digest, .now_ns = 1795262395000000000};
    struct template_limits l = {
        .steps = 20000, .output = 1 << 20, .memory = 16 << 20, .depth = 100};
    int rc = template_parse(ctx, g, text, &t, e);
    if (rc)
        return rc;
    rc = template_exec(ctx,
                       &(struct template_input){t, g->table == TEMPLATE_CLI ? v : NULL, &env, &l},
                       out, &res, e);
    for (size_t i = 0; i < res.missing.n; i++)
        ASSERT(res.missing.v[i].name[0] && i < res.used.n);
    return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const uint8_t *zero = n > 1 ? memchr(data + 1, 0, n - 1) : NULL;
    if (zero == NULL)
        return 0;
    auto_mem void *ctx = mem_ctx("fuzz");
    struct template_grammar g = {.name = "f",
                                 .table = data[0] & 1 ? TEMPLATE_CLI : TEMPLATE_TASK,
                                 .left = data[0] & 2 ? "<" : NULL,
                                 .right = data[0] & 4 ? ">" : NULL};
    struct value *v = NULL;
    struct err e = ERR_INIT, e2 = ERR_INIT;
    struct slice text = SLICE(data + 1, (size_t)(zero - data) - 1);
    char *json = mem_dup(ctx, zero + 1, n - (size_t)(zero + 1 - data));
    if (json_decode_value(ctx, SLICE(json, n - (size_t)(zero + 1 - data)), BUDGET(4 << 20), &v,
                          &e) < 0)
        return 0;
    auto_buf struct buf a = BUF_INIT(2 << 20), b = BUF_INIT(2 << 20);
    int r = carry_out(&g, text, v, &a, &e);
    ASSERT(r == 0 || e.text[0] != '\0');
    ASSERT(a.len <= (1 << 20));
    ASSERT(carry_out(&g, text, v, &b, &e2) == r && a.len == b.len);
    ASSERT(a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
    return 0;
}
