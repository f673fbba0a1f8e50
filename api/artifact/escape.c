/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "api/artifact/artifact.h"
#include "common/mem.h"

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *
artifact_unescape(const void *ctx, const char *s, size_t n, bool plus)
{
    char *out = mem_zalloc(ctx, n + 1, "unescaped"), *p = out;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '%') {
            int high = i + 2 < n ? hex_digit(s[i + 1]) : -1;
            int low = i + 2 < n ? hex_digit(s[i + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0)
                return NULL;
            *p++ = (char)(high << 4 | low);
            i += 2;
        } else {
            *p++ = plus && s[i] == '+' ? ' ' : s[i];
        }
    }
    return out;
}

char *
artifact_escape(const void *ctx, const char *s, const char *kept)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = mem_zalloc(ctx, 3 * strlen(s) + 1, "escaped"), *p = out;
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if (isalnum(c) || strchr("-._~", c) != NULL || strchr(kept, c) != NULL) {
            *p++ = *s;
            continue;
        }
        *p++ = '%';
        *p++ = digits[c >> 4];
        *p++ = digits[c & 15];
    }
    return out;
}
