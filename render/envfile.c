/* SPDX-License-Identifier: Apache-2.0 */
#include "render/envfile.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"

/* A line that is being read. */
struct line {
    const char *p, *end;
    struct buf *out; /* of its value */
};

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void
skip_blanks(struct line *l)
{
    while (l->p < l->end && is_blank(*l->p))
        l->p++;
}

static bool
is_key_char(char c, bool first)
{
    bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    return letter || (!first && ((c >= '0' && c <= '9') || c == '.' || c == '/'));
}

static int
read_key(const void *ctx, struct line *l, const char **ret, struct err *e)
{
    const char *eq = memchr(l->p, '=', (size_t)(l->end - l->p));
    if (eq == NULL)
        return err_set(e, -ERR_INVALID, "missing =");
    const char *end = eq;
    while (end > l->p && is_blank(end[-1]))
        end--;
    if (end == l->p)
        return err_set(e, -ERR_INVALID, "empty key");
    for (const char *c = l->p; c < end; c++)
        if (!is_key_char(*c, c == l->p))
            return c == l->p ? err_set(e, -ERR_INVALID,
                                       "key must start with [A-Za-z_] but found '%c'", *c)
                             : err_set(e, -ERR_INVALID,
                                       "key characters must be [A-Za-z0-9/_.] but found '%c'", *c);
    *ret = mem_strndup(ctx, l->p, (size_t)(end - l->p));
    l->p = eq + 1;
    return 0;
}

static int
read_hex(struct line *l, uint32_t *ret, struct err *e)
{
    uint32_t v = 0;
    if (l->end - l->p < 4)
        return err_set(e, -ERR_INVALID, "expected 4 hex digits behind \\u");
    for (int i = 0; i < 4; i++, l->p++) {
        char c = (char)tolower((unsigned char)*l->p);
        if (!isxdigit((unsigned char)c))
            return err_set(e, -ERR_INVALID, "expected 4 hex digits behind \\u");
        v = v * 16 + (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *ret = v;
    return 0;
}

static void
put_rune(struct buf *out, uint32_t c)
{
    char b[4];
    size_t n = 0;
    if (c < 0x80) {
        b[n++] = (char)c;
    } else if (c < 0x800) {
        b[n++] = (char)(0xc0 | c >> 6);
        b[n++] = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        b[n++] = (char)(0xe0 | c >> 12);
        b[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        b[n++] = (char)(0x80 | (c & 0x3f));
    } else {
        b[n++] = (char)(0xf0 | c >> 18);
        b[n++] = (char)(0x80 | (c >> 12 & 0x3f));
        b[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        b[n++] = (char)(0x80 | (c & 0x3f));
    }
    buf_put(out, b, n);
}

/* Behind "\u"; a half of a surrogate pair that is alone becomes U+FFFD. */
static int
read_unicode(struct line *l, struct err *e)
{
    uint32_t c, low;
    if (read_hex(l, &c, e) < 0)
        return e->code;
    if (c >= 0xd800 && c < 0xdc00 && l->end - l->p >= 6 && l->p[0] == '\\' && l->p[1] == 'u') {
        const char *back = l->p;
        l->p += 2;
        if (read_hex(l, &low, e) < 0)
            return e->code;
        if (low >= 0xdc00 && low < 0xe000)
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        else
            l->p = back;
    }
    if (c == 0)
        return err_set(e, -ERR_INVALID, "invalid char \\u0000");
    put_rune(l->out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
    return 0;
}

/* Behind the opening quote. */
static int
read_double(struct line *l, struct err *e)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    while (l->p < l->end && *l->p != '"') {
        char c = *l->p++;
        if (c != '\\') {
            buf_put(l->out, &c, 1);
            continue;
        }
        if (l->p == l->end)
            break;
        c = *l->p++;
        const char *known = strchr(from, c);
        if (c == 'u') {
            if (read_unicode(l, e) < 0)
                return e->code;
        } else if (known != NULL && c != '\0') {
            buf_put(l->out, &to[known - from], 1);
        } else {
            return err_set(e, -ERR_INVALID, "invalid escape '\\%c'",
                           isprint((unsigned char)c) ? c : '?');
        }
    }
    if (l->p == l->end)
        return err_set(e, -ERR_INVALID, "unmatched \"");
    l->p++;
    return 0;
}

static int
read_value(struct line *l, struct err *e)
{
    size_t keep = 0; /* of the value: what comes behind is blanks that may be outside */
    skip_blanks(l);
    while (l->p < l->end && *l->p != '#') {
        char c = *l->p++;
        if (c == '"') {
            if (read_double(l, e) < 0)
                return e->code;
            keep = l->out->len;
        } else if (c == '\'') {
            const char *close = memchr(l->p, '\'', (size_t)(l->end - l->p));
            if (close == NULL)
                return err_set(e, -ERR_INVALID, "unmatched '");
            buf_put(l->out, l->p, (size_t)(close - l->p));
            l->p = close + 1;
            keep = l->out->len;
        } else {
            buf_put(l->out, &c, 1);
            keep = is_blank(c) ? keep : l->out->len;
        }
    }
    l->out->len = keep;
    return 0;
}

static int
read_line(const void *ctx, struct slice s, struct str_map *ret, struct err *e)
{
    const char *text = (const char *)s.p, *key = NULL;
    struct line l = {text, text + s.n, NULL};
    auto_buf struct buf value = BUF_INIT(2 * ENVFILE_LINE_MAX);
    l.out = &value;
    if (s.n >= ENVFILE_LINE_MAX)
        return err_set(e, -ERR_LIMIT, "the line is longer than %d bytes", ENVFILE_LINE_MAX);
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)text[i] < 32 && !is_blank(text[i]))
            return err_set(e, -ERR_INVALID, "invalid char '\\x%02x'", (unsigned char)text[i]);
    skip_blanks(&l);
    if (l.p == l.end || *l.p == '#')
        return 0;
    if (l.end - l.p > 7 && memcmp(l.p, "export", 6) == 0 && is_blank(l.p[6])) {
        l.p += 7;
        skip_blanks(&l);
    }
    int r = read_key(ctx, &l, &key, e);
    if (r == 0)
        r = read_value(&l, e);
    if (r < 0)
        return r;
    str_map_set(ctx, ret, key,
                mem_strndup(ctx, value.len > 0 ? (char *)value.data : "", value.len));
    return 0;
}

int
envfile_parse(const void *ctx, struct slice text, struct str_map *ret, struct err *e)
{
    const uint8_t *p = text.p, *end = p + text.n;
    for (unsigned line = 1; p < end; line++) {
        const uint8_t *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((nl != NULL ? nl : end) - p);
        if (read_line(ctx, SLICE(p, n), ret, e) < 0) {
            char where[40];
            (void)snprintf(where, sizeof(where), "error on line %u", line);
            return err_prefix(e, "%s", where);
        }
        p += n + (nl != NULL);
    }
    return 0;
}
