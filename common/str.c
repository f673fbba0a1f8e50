/* SPDX-License-Identifier: Apache-2.0 */
#include "common/str.h"

#include <stdint.h>
#include <string.h>

bool
str_eq(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

bool
str_empty(const char *s)
{
    return !s || !*s;
}

const char *
str_or(const char *s, const char *dflt)
{
    return str_empty(s) ? dflt : s;
}

bool
str_prefix(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool
str_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool
str_copy(char *dst, size_t size, const char *src)
{
    size_t n = strnlen(src, size);
    if (n == size) {
        if (size > 0) {
            memcpy(dst, src, size - 1);
            dst[size - 1] = 0;
        }
        return false;
    }
    memcpy(dst, src, n + 1);
    return true;
}

/* The code point at `p` (n > 0 bytes left) and its length; 0: not UTF-8. */
static size_t
utf8_next(const uint8_t *p, size_t n, uint32_t *ret)
{
    uint32_t c = *p, min = 0;
    size_t len = 1;
    if ((c & 0xe0) == 0xc0)
        c &= 0x1f, len = 2, min = 0x80;
    else if ((c & 0xf0) == 0xe0)
        c &= 0x0f, len = 3, min = 0x800;
    else if ((c & 0xf8) == 0xf0)
        c &= 0x07, len = 4, min = 0x10000;
    else if (c >= 0x80)
        return 0;
    if (len > n)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < min || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret = c;
    return len;
}

size_t
utf8_cut(const char *s, size_t max)
{
    size_t n = strnlen(s, max);
    if (s[n] != '\0')
        while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
            n--;
    return n;
}

bool
utf8_valid(const char *s, size_t n)
{
    const uint8_t *p = (const uint8_t *)s;
    uint32_t c;
    for (size_t at = 0, len; at < n; at += len)
        if ((len = utf8_next(p + at, n - at, &c)) == 0)
            return false;
    return true;
}

void
str_tame(char *s, bool lines)
{
    const uint8_t *p = (const uint8_t *)s;
    size_t n = strlen(s), to = 0;
    for (size_t at = 0, len; at < n; at += len) {
        uint32_t c = 0;
        len = utf8_next(p + at, n - at, &c);
        bool bad = len == 0 || (c < 0x20 && !(lines && (c == '\n' || c == '\t'))) ||
                   (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f || c == 0x61c ||
                   (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
        len = len == 0 ? 1 : len;
        if (bad)
            s[to++] = '?';
        else
            memmove(s + to, s + at, len), to += len;
    }
    s[to] = '\0';
}

static bool
glob_matches(const char *pattern, const char *s, bool only_stars)
{
    /* Iterative with one backtrack point: linear in practice, quadratic at worst. */
    const char *star = NULL, *back = NULL;
    while (*s) {
        const char *p = pattern;
        if (*p == '*') {
            star = ++pattern;
            back = s;
            continue;
        }
        if (!only_stars && *p == '\\' && p[1])
            p++;
        else if (!only_stars && *p == '?') {
            pattern++, s++;
            continue;
        }
        if (*p && *p == *s) {
            pattern = p + 1;
            s++;
        } else if (star) {
            pattern = star;
            s = ++back;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}

bool
str_same_secret(const char *a, const char *b)
{
    size_t an = strlen(str_or(a, "")), bn = strlen(str_or(b, ""));
    unsigned diff = an != bn || an == 0;

    for (size_t i = 0; i < an && i < bn; i++)
        diff |= (unsigned char)a[i] ^ (unsigned char)b[i];
    return diff == 0;
}

bool
str_glob(const char *pattern, const char *s)
{
    return glob_matches(pattern, s, false);
}

bool
str_stars(const char *pattern, const char *s)
{
    return glob_matches(pattern, s, true);
}

bool
str_is_one(const char *s, const char *const *words)
{
    for (; *words; words++)
        if (str_eq(str_or(s, ""), *words))
            return true;
    return false;
}

size_t
str_distance(const char *a, const char *b)
{
    enum { CAP = 64 };
    size_t n = strlen(a), m = strlen(b);
    if (n > CAP || m > CAP)
        return CAP;
    size_t rows[3][CAP + 1]; /* the last two, and the one being made */
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best)
                best = up[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            /* two neighbours that changed places are one slip */
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                up2[j - 2] + 1 < best)
                best = up2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *
str_nearest(const char *s, const char *const *names, size_t n)
{
    /* a name that differs in more than each third letter was no slip of the finger */
    const char *best = NULL;
    size_t len = strlen(s), best_d = len < 5 ? 2 : len < 9 ? 3 : 4;
    for (size_t i = 0; i < n; i++) {
        size_t d = str_distance(s, names[i]);
        if (d < best_d) {
            best = names[i];
            best_d = d;
        }
    }
    return best;
}

int
str_cmp_qsort(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
