/* SPDX-License-Identifier: Apache-2.0 */
#include "template/env_file.h"

#include <string.h>

#include "common/mem.h"
#include "template/rune.h"

enum { LINE_MAX_BYTES = 65536 };

struct env_line {
    const void *ctx;
    const char *s;
    size_t n, i;
    struct buf value;
    struct err *e;
};

static int
line_bad(struct env_line *l, const char *words)
{
    return err_set(l->e, -ERR_INVALID, "%s", words);
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool
starts_name(char c)
{
    return c == '_' || (c > 0 && rune_letter((uint8_t)c));
}

static int
take_name(struct env_line *l, size_t end, const char **ret)
{
    size_t from = l->i;
    while (end > from && is_space(l->s[end - 1]))
        end--;
    if (end - from > 7 && memcmp(l->s + from, "export ", 7) == 0)
        for (from += 7; from < end && is_space(l->s[from]);)
            from++;
    if (from == end)
        return line_bad(l, "empty key");
    for (size_t i = from; i < end; i++) {
        char c = l->s[i];
        bool fits = starts_name(c) || (c >= '0' && c <= '9') || c == '.' || c == '/';
        if (i == from && !starts_name(c))
            return err_set(l->e, -ERR_INVALID, "key must start with [A-Za-z_] but found '%c'", c);
        if (!fits)
            return err_set(l->e, -ERR_INVALID,
                           "key characters must be [A-Za-z0-9/_.] but found '%c'", c);
    }
    *ret = mem_strndup(l->ctx, l->s + from, end - from);
    return 0;
}

/* --- values --- */

static bool
take_hex(struct env_line *l, uint32_t *c)
{
    *c = 0;
    for (int k = 0; k < 4; k++, l->i++) {
        static const char digits[] = "0123456789abcdef";
        char d = l->i < l->n ? (char)(l->s[l->i] | 0x20) : 0;
        const char *p = l->i < l->n && d ? strchr(digits, l->s[l->i] < 'A' ? l->s[l->i] : d) : NULL;
        if (!p)
            return false;
        *c = *c << 4 | (uint32_t)(p - digits);
    }
    return true;
}

static int
take_unicode(struct env_line *l)
{
    uint32_t c, low;
    char utf8[4];
    if (!take_hex(l, &c))
        return line_bad(l, "invalid unicode escape");
    if (c >= 0xd800 && c < 0xdc00 && l->n - l->i >= 6 && l->s[l->i] == '\\' &&
        l->s[l->i + 1] == 'u') {
        l->i += 2;
        if (!take_hex(l, &low) || low < 0xdc00 || low >= 0xe000)
            return line_bad(l, "invalid unicode escape");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    buf_put(&l->value, utf8, rune_write(c, utf8));
    return 0;
}

/* Behind the opening quote. */
static int
take_double(struct env_line *l)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    while (l->i < l->n && l->s[l->i] != '"') {
        char c = l->s[l->i++];
        if ((uint8_t)c < ' ')
            return line_bad(l, "invalid character in a value");
        if (c != '\\') {
            buf_putc(&l->value, c);
            continue;
        }
        c = l->i < l->n ? l->s[l->i++] : 0;
        const char *k = c ? strchr(from, c) : NULL;
        if (k)
            buf_putc(&l->value, to[k - from]);
        else if (c != 'u')
            return line_bad(l, "invalid escape in a value");
        else if (take_unicode(l))
            return -ERR_INVALID;
    }
    if (l->i++ >= l->n)
        return line_bad(l, "unmatched quote");
    return 0;
}

static int
take_single(struct env_line *l)
{
    const char *end = memchr(l->s + l->i, '\'', l->n - l->i);
    if (!end)
        return line_bad(l, "unmatched quote");
    buf_put(&l->value, l->s + l->i, (size_t)(end - l->s) - l->i);
    l->i = (size_t)(end - l->s) + 1;
    return 0;
}

static int
take_value(struct env_line *l)
{
    size_t solid = 0; /* bytes that stay: blanks at the end do not */
    while (l->i < l->n && is_space(l->s[l->i]))
        l->i++;
    while (l->i < l->n) {
        char c = l->s[l->i++];
        int rc = 0;
        if (c == '#')
            break;
        if (c == '"' || c == '\'') {
            rc = c == '"' ? take_double(l) : take_single(l);
            solid = l->value.len;
        } else if ((uint8_t)c < ' ' && c != '\t' && c != '\r')
            rc = line_bad(l, "invalid character in a value");
        else {
            buf_putc(&l->value, c);
            solid = is_space(c) ? solid : l->value.len;
        }
        if (rc)
            return rc;
    }
    l->value.len = solid;
    return 0;
}

static int
take_pair(struct env_line *l, struct env_pairs *ret)
{
    const char *name = NULL, *equals = memchr(l->s + l->i, '=', l->n - l->i);
    if (!equals)
        return line_bad(l, "missing =");
    int rc = take_name(l, (size_t)(equals - l->s), &name);
    if (rc)
        return rc;
    l->i = (size_t)(equals - l->s) + 1;
    buf_init(&l->value, LINE_MAX_BYTES);
    rc = take_value(l);
    if (!rc) {
        ret->v =
            (struct env_pair *)mem_realloc(l->ctx, ret->v, sizeof(*ret->v), ret->n + 1, "pairs");
        ret->v[ret->n++] =
            (struct env_pair){name, mem_strndup(l->ctx, buf_str(&l->value), l->value.len)};
    }
    buf_done(&l->value);
    return rc;
}

int
env_file_parse(const void *ctx, struct slice text, struct env_pairs *ret, struct err *e)
{
    const char *s = text.p;
    *ret = (struct env_pairs){NULL, 0};
    for (size_t line = 1, from = 0; from < text.n; line++) {
        const char *end = memchr(s + from, '\n', text.n - from);
        size_t n = end ? (size_t)(end - s) - from : text.n - from;
        struct env_line l = {.ctx = ctx, .s = s + from, .n = n, .e = e};
        while (l.i < n && is_space(l.s[l.i]))
            l.i++;
        int rc = n > LINE_MAX_BYTES           ? line_bad(&l, "line is longer than 64 KiB")
                 : l.i < n && l.s[l.i] != '#' ? take_pair(&l, ret)
                                              : 0;
        if (rc) {
            err_prefix(e, "error on line %zu", line);
            return rc;
        }
        from += n + 1;
    }
    return 0;
}
