/* SPDX-License-Identifier: Apache-2.0
 *
 * The strict check of HTTP header bytes: RFC 9112 sections 2.2, 3, 5 and 6. Pure; it runs before
 * llhttp sees a byte, and refuses what two parsers could read in two ways: bare line ends, folded
 * lines, blanks before the colon, several lengths. In this order: where the head ends, its lines,
 * the head as a whole, the target and its query.
 */
#include "net/http/scan_int.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/num.h"
#include "common/str.h"

int
http_bad_set(struct http_bad *bad, int status, const char *why)
{
    bad->status = status;
    bad->why = why;
    return -1;
}

int
http_head_find(const uint8_t *p, size_t n, size_t *pos, struct http_bad *bad)
{
    size_t i = *pos;

    for (; i < n && i < HTTP_HEADER_BYTES_MAX; i++) {
        if (p[i] == '\n') {
            if (i == 0 || p[i - 1] != '\r')
                return http_bad_set(bad, 400, "line ends with a bare line feed");
            if (i >= 3 && p[i - 2] == '\n') {
                *pos = i + 1;
                return 1;
            }
        } else if (i > 0 && p[i - 1] == '\r') {
            return http_bad_set(bad, 400, "carriage return without line feed");
        } else if (p[i] == 0) {
            return http_bad_set(bad, 400, "NUL byte in the header");
        }
    }
    *pos = i;
    if (i >= HTTP_HEADER_BYTES_MAX)
        return http_bad_set(bad, 431, "header is larger than 32 KiB");
    return 0;
}

static bool
is_token(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

bool
http_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_token((unsigned char)s[i]))
            return false;
    return n > 0;
}

int
http_line_refuse(const char *line, struct http_bad *bad)
{
    const char *v = strrchr(line, ' ');
    unsigned major, minor;
    char rest;

    if (v && strlen(v) == 9 && sscanf(v, " HTTP/%1u.%1u%c", &major, &minor, &rest) == 2)
        return http_bad_set(bad, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    return http_bad_set(bad, 400, "malformed request line");
}

/* One header line, NUL-terminated. */
static int
split_line(char *s, struct http_pair *out, struct http_bad *bad)
{
    char *p = s;

    if (*s == ' ' || *s == '\t')
        return http_bad_set(bad, 400, "folded header line");
    for (; is_token((unsigned char)*p); p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    if (p > s && (*p == ' ' || *p == '\t'))
        return http_bad_set(bad, 400, "blank before the colon of a header");
    if (p == s || *p != ':')
        return http_bad_set(bad, 400, "malformed header name");
    *p++ = 0;
    while (*p == ' ' || *p == '\t')
        p++;
    size_t n = strlen(p);
    while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        p[--n] = 0;
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)p[i] < ' ' && p[i] != '\t') || p[i] == 0x7f)
            return http_bad_set(bad, 400, "control character in a header value");
    out->k = s;
    out->v = p;
    return 0;
}

int
http_head_split(char *p, size_t n, const char **line, struct http_pair *pairs, size_t *n_pairs,
                struct http_bad *bad)
{
    char *end = p + n;

    *n_pairs = 0;
    *line = NULL;
    while (p < end) {
        char *eol = memchr(p, '\r', (size_t)(end - p));
        if (!eol || eol == p)
            break;
        *eol = 0;
        if (!*line) {
            *line = p;
        } else {
            if (*n_pairs == HTTP_HEADERS_MAX)
                return http_bad_set(bad, 431, "more than 100 headers");
            if (split_line(p, &pairs[*n_pairs], bad) < 0)
                return -1;
            ++*n_pairs;
        }
        p = eol + 2;
    }
    return *line ? 0 : http_bad_set(bad, 400, "empty request");
}

static bool
host_ok(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || strchr(",/@\\?#<>\"", *s))
            return false;
    return true;
}

static int
check_length(const char *v, struct http_framing *f, struct http_bad *bad)
{
    if (f->has_length)
        return http_bad_set(bad, 400, "more than one Content-Length");
    f->has_length = true;
    if (!*v || strspn(v, "0123456789") != strlen(v) || num_parse_u64(v, &f->length) < 0)
        return http_bad_set(bad, 400, "malformed Content-Length");
    return 0;
}

int
http_head_check(const struct http_pair *pairs, size_t n, bool http10, struct http_framing *ret,
                struct http_bad *bad)
{
    struct http_framing f = {0};
    unsigned hosts = 0;

    for (size_t i = 0; i < n; i++) {
        const char *k = pairs[i].k, *v = pairs[i].v;
        if (strcmp(k, "host") == 0) {
            hosts++;
            if (!host_ok(v))
                return http_bad_set(bad, 400, "malformed Host header");
        } else if (strcmp(k, "content-length") == 0) {
            if (check_length(v, &f, bad) < 0)
                return -1;
        } else if (strcmp(k, "transfer-encoding") == 0) {
            if (f.chunked)
                return http_bad_set(bad, 400, "more than one Transfer-Encoding");
            if (strcasecmp(v, "chunked") != 0)
                return http_bad_set(bad, 501, "only the chunked Transfer-Encoding is known");
            f.chunked = true;
        } else if (strcmp(k, "expect") == 0) {
            if (strcasecmp(v, "100-continue") != 0)
                return http_bad_set(bad, 417, "unknown expectation");
            f.expect_continue = !http10;
        }
    }
    if (hosts > 1)
        return http_bad_set(bad, 400, "more than one Host header");
    if (hosts == 0 && !http10)
        return http_bad_set(bad, 400, "missing Host header");
    if (f.chunked && f.has_length)
        return http_bad_set(bad, 400, "Content-Length together with Transfer-Encoding");
    if (f.chunked && http10)
        return http_bad_set(bad, 400, "Transfer-Encoding in HTTP/1.0");
    *ret = f;
    return 0;
}

static int
scan_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Decodes s[0..n) to `out` (n + 1 bytes are enough) and returns the byte behind its NUL; NULL when
 * an escape is malformed or the result is no text. */
static char *
scan_decode(char *out, const char *s, size_t n, bool plus)
{
    size_t o = 0;

    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == '%') {
            int hi = n - i > 2 ? scan_hex(s[i + 1]) : -1;
            int lo = n - i > 2 ? scan_hex(s[i + 2]) : -1;
            if (hi < 0 || lo < 0)
                return NULL;
            c = (char)(hi << 4 | lo);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c == 0)
            return NULL;
        out[o++] = c;
    }
    out[o] = 0;
    return utf8_valid(out, o) ? out + o + 1 : NULL;
}

size_t
http_query_max(const char *p, size_t n)
{
    size_t pairs = 1;

    for (size_t i = 0; i < n; i++)
        pairs += p[i] == '&';
    return pairs;
}

/* `to` has room for the whole query and a NUL per name and value. */
static int
parse_query(const char *q, char *to, struct http_req *r, struct http_bad *bad)
{
    if (http_query_max(q, strlen(q)) > HTTP_QUERY_PARAMS_MAX)
        return http_bad_set(bad, 400, "more than 256 query parameters");
    while (*q) {
        size_t len = strcspn(q, "&");
        const char *eq = memchr(q, '=', len);
        size_t klen = eq ? (size_t)(eq - q) : len;
        if (len > 0) {
            struct http_pair *p = &r->query[r->n_query++];
            p->k = to;
            to = scan_decode(to, q, klen, true);
            p->v = eq && to ? to : "";
            if (eq && to)
                to = scan_decode(to, eq + 1, len - klen - 1, true);
            if (!to)
                return http_bad_set(bad, 400, "malformed query parameter");
        }
        q += len;
        q += *q == '&';
    }
    return 0;
}

int
http_target_parse(struct http_req *r, char *text, struct http_bad *bad)
{
    const char *t = r->target;

    /* the absolute form, which servers must take (RFC 9112, 3.2.2) */
    if (strncasecmp(t, "http://", 7) == 0) {
        t = strchr(t + 7, '/');
        if (!t)
            t = "/";
    }
    if (*t != '/')
        return http_bad_set(bad, 400, "request target is not a path");
    for (const char *p = t; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '#')
            return http_bad_set(bad, 400, "malformed request target");
    size_t len = strcspn(t, "?");
    /* each byte of the target is at most one of the result, and '?', '=' and '&' leave room for the
     * NULs of what is before them */
    r->path = text;
    text = scan_decode(text, t, len, false);
    if (!text)
        return http_bad_set(bad, 400, "malformed request path");
    return t[len] == '?' ? parse_query(t + len + 1, text, r, bad) : 0;
}

bool
http_list_has(const char *list, const char *token)
{
    size_t want = strlen(token);

    while (list && *list) {
        list += strspn(list, " \t,");
        size_t len = strcspn(list, ",");
        size_t name = strcspn(list, " \t;,");
        if (name == want && strncasecmp(list, token, want) == 0) {
            const char *q = memchr(list, '=', len);
            return !q || strspn(q + 1, "0.") < len - (size_t)(q + 1 - list);
        }
        list += len;
    }
    return false;
}
