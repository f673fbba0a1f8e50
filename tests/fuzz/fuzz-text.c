/* SPDX-License-Identifier: Apache-2.0
 *
 * Small texts: numbers, durations, sizes, times, ids, addresses, request targets, header lists,
 * base64, and what is printed of them. The first byte chooses. Oracle: what is read is printed and
 * read again as the same.
 */
#include <stdint.h>
#include <string.h>

#include "codec/base64.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/uuid.h"
#include "net/addr.h"
#include "net/http/scan_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
numbers(const void *ctx, const char *s)
{
    int64_t i, again;
    uint64_t u;
    double f;
    bool b;
    if (num_parse_i64(s, &i) == 0)
        ASSERT(num_parse_i64(mem_printf(ctx, "%lld", (long long)i), &again) == 0 && i == again);
    if (num_parse_u64(s, &u) == 0 && s[0] != '+')
        ASSERT(strspn(s, "0123456789") == strlen(s));
    (void)num_parse_f64(s, &f);
    (void)num_parse_bool(s, &b);
    (void)uuid_valid(s);
}

static void
amounts(const char *s)
{
    int64_t d, again, t;
    char text[128];
    if (duration_parse(s, &d) == 0)
        ASSERT(duration_parse(duration_format(d, text), &again) == 0 && d == again);
    (void)time_parse(s, strlen(s), &t);
}

static void
target(const void *ctx, const char *s)
{
    struct http_pair query[HTTP_QUERY_PARAMS_MAX];
    struct http_req r = {.target = s, .query = query};
    struct http_bad bad = {0, NULL};
    if (http_target_parse(&r, mem_array(ctx, char, strlen(s) + 2), &bad) < 0) {
        ASSERT(bad.status >= 400 && bad.why);
        return;
    }
    ASSERT(r.path[0] == '/' && utf8_valid(r.path, strlen(r.path)) &&
           r.n_query <= HTTP_QUERY_PARAMS_MAX);
    for (size_t i = 0; i < r.n_query; i++)
        ASSERT(utf8_valid(r.query[i].k, strlen(r.query[i].k)) &&
               utf8_valid(r.query[i].v, strlen(r.query[i].v)));
}

static void
address(const char *s)
{
    struct addr a, again;
    struct err e = ERR_INIT;
    char text[ADDR_TEXT];
    if (addr_parse(s, 4646, &a, &e) < 0) {
        ASSERT(e.text[0] != '\0');
        return;
    }
    if (!a.is_unix)
        ASSERT(addr_parse(addr_format(&a, text), 1, &again, &e) == 0 && again.port == a.port &&
               strcmp(again.host, a.host) == 0);
}

static void
tame(const void *ctx, const char *s)
{
    char *a = mem_strdup(ctx, s), *b;
    str_tame(a, false);
    ASSERT(utf8_valid(a, strlen(a)) && strlen(a) <= strlen(s) && strpbrk(a, "\n\t\033") == NULL);
    b = mem_strdup(ctx, a);
    str_tame(b, false);
    ASSERT(strcmp(a, b) == 0);
    (void)str_glob(a, s);
    (void)str_distance(a, s);
    (void)http_list_has(s, "gzip");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0 || n > 4096)
        return 0;
    auto_mem void *ctx = mem_ctx("fuzz");
    const char *s = mem_strndup(ctx, (const char *)data + 1, n - 1);
    switch (data[0] % 5) {
    case 0:
        numbers(ctx, s);
        break;
    case 1:
        amounts(s);
        break;
    case 2:
        target(ctx, s);
        break;
    case 3:
        address(s);
        break;
    default:
        tame(ctx, s);
        break;
    }
    return 0;
}
