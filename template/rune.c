/* SPDX-License-Identifier: Apache-2.0 */
#include "template/rune.h"

#include <string.h>

#include "common/mem.h"
#include "template/unicode_int.h"

size_t
rune_take(const char *s, size_t n, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *p = (const uint8_t *)s;
    size_t len = p[0] < 0x80   ? 1
                 : p[0] < 0xc2 ? 0
                 : p[0] < 0xe0 ? 2
                 : p[0] < 0xf0 ? 3
                 : p[0] < 0xf5 ? 4
                               : 0;
    uint32_t v = len < 2 ? p[0] : p[0] & (0x7fu >> len);
    *c = RUNE_BAD;
    if (len == 0 || len > n)
        return 1;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 1;
        v = v << 6 | (p[i] & 0x3f);
    }
    if (v < least[len] || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
        return 1;
    *c = v;
    return len;
}

size_t
rune_take_last(const char *s, size_t n, uint32_t *c)
{
    for (size_t len = 1; len <= 4 && len <= n; len++)
        if (((uint8_t)s[n - len] & 0xc0) != 0x80)
            return rune_take(s + n - len, len, c) == len ? len : (*c = RUNE_BAD, 1);
    *c = RUNE_BAD;
    return 1;
}

size_t
rune_count(const char *s, size_t n)
{
    size_t count = 0;
    uint32_t c;
    for (size_t i = 0; i < n; count++)
        i += rune_take(s + i, n - i, &c);
    return count;
}

size_t
rune_write(uint32_t c, char to[4])
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        c = RUNE_BAD;
    size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    to[0] = (char)(first[len] | c);
    return len;
}

enum { LETTER = 1, DIGIT = 2, PRINT = 4, SPACE = 8 };

static bool
rune_is(uint32_t c, uint8_t class)
{
    size_t lo = 0, hi = ARRAY_LEN(rune_classes);
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (c > rune_classes[mid].last)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < ARRAY_LEN(rune_classes) && c >= rune_classes[lo].first &&
           (rune_classes[lo].class & class);
}

bool
rune_letter(uint32_t c)
{
    return c < 0x80 ? (c | 0x20) >= 'a' && (c | 0x20) <= 'z' : rune_is(c, LETTER);
}

bool
rune_digit(uint32_t c)
{
    return c < 0x80 ? c >= '0' && c <= '9' : rune_is(c, DIGIT);
}

bool
rune_print(uint32_t c)
{
    return c < 0x80 ? c >= ' ' && c < 0x7f : rune_is(c, PRINT);
}

bool
rune_space(uint32_t c)
{
    return c < 0x80 ? c == ' ' || (c >= '\t' && c <= '\r') : rune_is(c, SPACE);
}

uint32_t
rune_to(enum rune_form f, uint32_t c)
{
    if (c < 0x80 && f == RUNE_LOWER)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    if (c < 0x80)
        return c >= 'a' && c <= 'z' ? c - 32 : c;
    for (size_t i = 0; i < ARRAY_LEN(rune_cases) && rune_cases[i].first <= c; i++) {
        const struct rune_case *k = &rune_cases[i];
        if (c <= k->last && (c - k->first) % k->step == 0)
            return c + (uint32_t)(f == RUNE_UPPER   ? k->upper
                                  : f == RUNE_LOWER ? k->lower
                                                    : k->title);
    }
    return c;
}
