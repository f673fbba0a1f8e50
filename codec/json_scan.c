/* SPDX-License-Identifier: Apache-2.0
 *
 * Lexical half of the JSON reader (RFC 8259). Positions are worked out only when something fails.
 *
 * In this order: errors with path, line and column; white space; strings, which are taken as they
 * are while nothing in them is escaped; numbers; brackets, commas and keys. `p` never passes `end`,
 * and the text needs no NUL behind it.
 */
#include "codec/json_scan.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

static int
fail_at(struct json_reader *r, int code, const char *at, const char *text)
{
    size_t line = 1;
    const char *start = r->s;
    for (const char *q = r->s; q < at; q++) {
        if (*q == '\n') {
            line++;
            start = q + 1;
        }
    }
    char path[256];
    decoder_path(&r->d, path, sizeof(path));
    return err_set(r->d.e, code, "json: %s (line %zu, column %zu): %s", path, line,
                   (size_t)(at - start) + 1, text);
}

int
json_fail(struct json_reader *r, const char *at, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return fail_at(r, -ERR_INVALID, at, text);
}

int
json_no_memory(struct json_reader *r)
{
    char text[200];
    snprintf(
        text, sizeof(text),
        "the document needs more memory than one may take: %zu KiB for %zu bytes; it has too many "
        "small objects",
        r->d.a.allowed >> 10, (size_t)(r->end - r->s));
    return fail_at(r, -ERR_LIMIT, r->p, text);
}

int
json_expected(struct json_reader *r, const char *what)
{
    const char *found = NULL;
    if (r->p >= r->end)
        return json_fail(r, r->p, "expected %s, found the end of the document", what);
    char c = *r->p;
    if (c == '"')
        found = "a string";
    else if (c == '{')
        found = "an object";
    else if (c == '[')
        found = "a list";
    else if (c == '-' || (c >= '0' && c <= '9'))
        found = "a number";
    else if (c == 't' || c == 'f')
        found = "a boolean";
    else if (c == 'n')
        found = "null";
    if (found)
        return json_fail(r, r->p, "expected %s, found %s", what, found);
    if (c >= 0x20 && c < 0x7f)
        return json_fail(r, r->p, "expected %s, found '%c'", what, c);
    return json_fail(r, r->p, "expected %s, found byte 0x%02x", what, (unsigned char)c);
}

void
json_space(struct json_reader *r)
{
    const char *p = r->p;
    while (p < r->end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    r->p = p;
}

/* --- strings --- */

static int
json_scan_hex4(struct json_reader *r, const char *p, uint32_t *ret)
{
    uint32_t v = 0;
    if (r->end - p < 4)
        return json_fail(r, p, "\\u needs four hexadecimal digits");
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        uint32_t d;
        if (c >= '0' && c <= '9')
            d = (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            d = (uint32_t)((c | 32) - 'a' + 10);
        else
            return json_fail(r, p, "\\u needs four hexadecimal digits");
        v = v << 4 | d;
    }
    *ret = v;
    return 0;
}

static char *
put_utf8(char *w, uint32_t c)
{
    if (c < 0x80) {
        *w++ = (char)c;
    } else if (c < 0x800) {
        *w++ = (char)(0xc0 | c >> 6);
        *w++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *w++ = (char)(0xe0 | c >> 12);
        *w++ = (char)(0x80 | (c >> 6 & 63));
        *w++ = (char)(0x80 | (c & 63));
    } else {
        *w++ = (char)(0xf0 | c >> 18);
        *w++ = (char)(0x80 | (c >> 12 & 63));
        *w++ = (char)(0x80 | (c >> 6 & 63));
        *w++ = (char)(0x80 | (c & 63));
    }
    return w;
}

/* p is behind "\u"; returns how many input bytes were eaten, or fails. */
static int
unicode_escape(struct json_reader *r, const char *p, char **w)
{
    uint32_t c, low;
    int rc = json_scan_hex4(r, p, &c), eaten = 4;
    if (rc)
        return rc;
    if (c >= 0xdc00 && c <= 0xdfff)
        return json_fail(r, p - 2, "lone surrogate in string");
    if (c >= 0xd800 && c <= 0xdbff) {
        if (r->end - p < 10 || p[4] != '\\' || p[5] != 'u')
            return json_fail(r, p - 2, "lone surrogate in string");
        rc = json_scan_hex4(r, p + 6, &low);
        if (rc)
            return rc;
        if (low < 0xdc00 || low > 0xdfff)
            return json_fail(r, p - 2, "lone surrogate in string");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        eaten = 10;
    }
    if (c == 0)
        return json_fail(r, p - 2, "\\u0000 is not allowed in strings");
    *w = put_utf8(*w, c);
    return eaten;
}

static char
simple_escape(char c)
{
    static const char map[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    for (size_t i = 0; i < sizeof(map) - 1; i += 2)
        if (map[i] == c)
            return map[i + 1];
    return 0;
}

/* [s, end) holds escapes and is closed by a quote at end. */
static int
json_scan_unescape(struct json_reader *r, const char *s, const char *end, const char **ret,
                   size_t *ret_len)
{
    char *out = arena_bytes(&r->d.a, (size_t)(end - s) + 1), *w = out;
    if (!out)
        return json_no_memory(r);
    while (s < end) {
        const char *esc = memchr(s, '\\', (size_t)(end - s));
        size_t n = (size_t)((esc ? esc : end) - s);
        memcpy(w, s, n);
        w += n;
        if (!esc)
            break;
        s = esc + 2; /* the scan saw that a byte follows */
        char c = simple_escape(esc[1]);
        if (c) {
            *w++ = c;
        } else if (esc[1] == 'u') {
            int eaten = unicode_escape(r, s, &w);
            if (eaten < 0)
                return eaten;
            s += eaten;
        } else {
            return json_fail(r, esc, "unknown escape in string");
        }
    }
    *w = 0;
    *ret = out;
    *ret_len = (size_t)(w - out);
    return 0;
}

int
json_string(struct json_reader *r, const char **ret, size_t *ret_len)
{
    const char *start = r->p + 1, *p = start;
    bool escaped = false;
    signed char high = 0; /* negative when a byte beyond ASCII was seen */
    for (;; p++) {
        if (p >= r->end)
            return json_fail(r, r->p, "string is not closed");
        if (*p == '"')
            break;
        if ((unsigned char)*p < 0x20)
            return json_fail(r, p, "control character 0x%02x in string", (unsigned char)*p);
        high = (signed char)(high | (signed char)*p);
        if (*p == '\\') {
            escaped = true;
            if (++p >= r->end)
                return json_fail(r, r->p, "string is not closed");
            if ((unsigned char)*p < 0x20)
                return json_fail(r, p, "control character 0x%02x in string", (unsigned char)*p);
            high = (signed char)(high | (signed char)*p);
        }
    }
    size_t n = (size_t)(p - start);
    if (n > CODEC_STRING_MAX)
        return json_fail(r, r->p, "string of %zu bytes is longer than %d", n, CODEC_STRING_MAX);
    if (high < 0 && !utf8_valid(start, n))
        return json_fail(r, r->p, "string is not valid UTF-8");
    *ret = start;
    *ret_len = n;
    if (escaped) {
        int rc = json_scan_unescape(r, start, p, ret, ret_len);
        if (rc)
            return rc;
    }
    r->p = p + 1;
    return 0;
}

/* --- numbers --- */

static bool
is_digit(const struct json_reader *r, const char *p)
{
    return p < r->end && *p >= '0' && *p <= '9';
}

static int
json_scan_digits(struct json_reader *r, const char **p)
{
    if (!is_digit(r, *p))
        return json_fail(r, r->p, "not a number");
    while (is_digit(r, *p))
        ++*p;
    return 0;
}

int
json_scan_number(struct json_reader *r, struct json_number *ret)
{
    const char *p = r->p;
    struct json_number n = {.s = p, .integral = true};
    if (*p == '-') {
        n.neg = true;
        p++;
    }
    const char *first = p;
    for (; is_digit(r, p); p++) {
        uint64_t d = (uint64_t)(*p - '0');
        if (__builtin_mul_overflow(n.mag, UINT64_C(10), &n.mag) ||
            __builtin_add_overflow(n.mag, d, &n.mag))
            n.big = true;
    }
    if (p == first || (*first == '0' && p > first + 1))
        return json_fail(r, r->p, "not a number");
    if (p < r->end && *p == '.') {
        n.integral = false;
        p++;
        int rc = json_scan_digits(r, &p);
        if (rc)
            return rc;
    }
    if (p < r->end && (*p | 32) == 'e') {
        n.integral = false;
        p++;
        if (p < r->end && (*p == '+' || *p == '-'))
            p++;
        int rc = json_scan_digits(r, &p);
        if (rc)
            return rc;
    }
    n.n = (size_t)(p - n.s);
    if (n.n > 1024)
        return json_fail(r, r->p, "number of %zu digits is too long", n.n);
    r->p = p;
    *ret = n;
    return 0;
}

int
json_number_float(struct json_reader *r, const struct json_number *n, double *ret)
{
    if (n->integral && !n->big && n->mag <= UINT64_C(1) << 53 && n->mag) {
        *ret = n->neg ? -(double)n->mag : (double)n->mag;
        return 0;
    }
    char t[1025];
    ASSERT(n->n < sizeof(t));
    memcpy(t, n->s, n->n);
    t[n->n] = 0;
    if (num_parse_f64(t, ret))
        return json_fail(r, n->s, "number '%.40s' is out of range", t);
    return 0;
}

/* --- structure --- */

bool
json_take_word(struct json_reader *r, const char *word, size_t n)
{
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return true;
}

bool
json_take_null(struct json_reader *r)
{
    return r->p < r->end && *r->p == 'n' && json_take_word(r, "null", 4);
}

int
json_open(struct json_reader *r)
{
    if (r->d.depth >= CODEC_DEPTH_MAX)
        return json_fail(r, r->p, "nested deeper than %d levels", CODEC_DEPTH_MAX);
    r->p++;
    r->d.depth++;
    r->d.path[r->d.depth].kind = STEP_NONE;
    return 0;
}

int
json_next(struct json_reader *r, char close)
{
    json_space(r);
    if (r->p < r->end && *r->p == ',') {
        r->p++;
        json_space(r);
        if (r->p < r->end && *r->p == close)
            return json_fail(r, r->p, "comma before the closing '%c'", close);
        return 1;
    }
    if (r->p < r->end && *r->p == close) {
        ASSERT(r->d.depth > 0);
        r->p++;
        r->d.depth--;
        return 0;
    }
    return json_expected(r, close == '}' ? "',' or '}'" : "',' or ']'");
}

int
json_key(struct json_reader *r, const char **ret, size_t *ret_len)
{
    json_space(r);
    if (r->p >= r->end || *r->p != '"')
        return json_expected(r, "a quoted name");
    int rc = json_string(r, ret, ret_len);
    if (rc)
        return rc;
    json_space(r);
    if (r->p >= r->end || *r->p != ':')
        return json_expected(r, "':'");
    r->p++;
    json_space(r);
    return 0;
}

bool
json_empty(struct json_reader *r, char close)
{
    json_space(r);
    if (r->p >= r->end || *r->p != close)
        return false;
    ASSERT(r->d.depth > 0);
    r->p++;
    r->d.depth--;
    return true;
}
