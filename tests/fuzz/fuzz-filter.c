/* SPDX-License-Identifier: Apache-2.0
 *
 * Filter expressions: any text over jobs and nodes. Oracles: nothing crashes or leaks; an expression
 * and its negation never agree.
 */
#include <stdint.h>
#include <string.h>

#include "api/api.h"
#include "api/filter/filter.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void *
sample(const void *ctx, const struct type *t)
{
    struct err e = ERR_INIT;
    void *obj = NULL;
    static const char job[] =
        "{\"ID\":\"web\",\"Status\":\"running\",\"Priority\":50,\"Meta\":{\"a\":\"b\"},"
        "\"Datacenters\":[\"dc1\"],\"TaskGroups\":[{\"Name\":\"g\"}],\"Update\":{\"MaxParallel\":2}}";
    static const char node[] =
        "{\"ID\":\"n\",\"Attributes\":{\"kernel.name\":\"linux\"},\"Drivers\":{\"exec\":"
        "{\"Detected\":true}},\"Links\":null,\"NodeResources\":{\"Cpu\":{\"CpuShares\":9}}}";
    const char *text = t == &type_job ? job : node;
    ASSERT(json_decode(ctx, t, SLICE(text, strlen(text)), BUDGET(1 << 20), &obj, &e) == 0);
    return obj;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static void *objs[2];
    static const struct type *const types[] = {&type_job, &type_node};
    auto_mem void *ctx = mem_ctx("fuzz");

    if (n < 1 || n > 2000 || memchr(data, 0, n))
        return 0;
    unsigned k = data[0] & 1;
    if (!objs[k])
        objs[k] = sample(NULL, types[k]);
    char *text = mem_strndup(ctx, (const char *)data + 1, n - 1);
    char *not = mem_printf(ctx, "not (%s)", text);
    struct err e = ERR_INIT, e2 = ERR_INIT;
    struct filter *f = filter_compile(ctx, types[k], text, &e);
    ASSERT(f || e.code < 0);
    if (!f)
        return 0;
    bool match = filter_match(f, objs[k]);
    struct filter *g = filter_compile(ctx, types[k], not, &e2);
    ASSERT(!g || filter_match(g, objs[k]) != match);
    return 0;
}
