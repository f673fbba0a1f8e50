/* SPDX-License-Identifier: Apache-2.0
 *
 * Constraint operators: one byte of operator, then left and right side apart by a zero byte. Oracles:
 * nothing crashes, leaks or takes for ever; what registration accepts is decided the same way twice;
 * an order is an order (not < and >= at once); a version range read as text is what it says.
 */
#include <stdint.h>
#include <string.h>

#include "common/mem.h"
#include "server/sched/compare/class.h"
#include "server/sched/compare/constraint.h"
#include "server/sched/resources.h"
#include "server/sched/compare/version.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
count(void *arg, int64_t v)
{
    ASSERT(v >= 0 && v <= 65535);
    ++*(uint64_t *)arg;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const ops[] = {"=", "!=", "<", "<=", ">", ">=", "regexp", "version", "semver",
                                      "set_contains", "set_contains_any", "is_set"};
    auto_mem void *ctx = mem_ctx("fuzz");
    const uint8_t *zero = n > 1 ? memchr(data + 1, 0, n - 1) : NULL;

    if (zero == NULL || n > 3000 || memchr(zero + 1, 0, n - (size_t)(zero + 1 - data)) != NULL)
        return 0;
    const char *op = ops[data[0] % ARRAY_LEN(ops)];
    char *l = mem_strndup(ctx, (const char *)data + 1, (size_t)(zero - data - 1));
    char *r = mem_strndup(ctx, (const char *)zero + 1, n - (size_t)(zero + 1 - data));
    struct regexes *rx = regexes_new(ctx);
    struct constraint c = {.l_target = l, .operand = op, .r_target = r};
    struct err e = ERR_INIT;

    bool ok = constraint_check(&c, &e) == 0;
    ASSERT(ok || (e.code < 0 && e.text[0] != '\0'));
    bool hit = constraint_compare(rx, op, l, r);
    ASSERT(hit == constraint_compare(rx, op, l, r));
    ASSERT(ok || !hit || strcmp(op, "regexp") != 0);
    ASSERT(constraint_compare(rx, "<", l, r) != constraint_compare(rx, ">=", l, r));
    if (version_matches(l, mem_printf(ctx, "= %s", l)))
        ASSERT(!version_matches(l, mem_printf(ctx, "!= %s", l)));
    struct node node = {.id = l, .name = r};
    const char *v;
    (void)target_resolve(&node, l, &v);
    uint64_t ports = 0;
    (void)resources_ranges(r, 65535, count, &ports);
    return 0;
}
