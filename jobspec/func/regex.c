/* SPDX-License-Identifier: Apache-2.0
 *
 * replace() and regex_replace(), with limits on the work of a match.
 */
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/regex.h"
#include "jobspec/func/func.h"
#include "jobspec/limits.h"

enum { LIMIT_PER_STEP = 100 };

struct replacing {
    struct call *c;
    pcre2_code *re;
    pcre2_match_data *md;
    pcre2_match_context *mc;
    const char *s, *with;
    size_t n;
    size_t limit; /* of the work of one match */
};

static bool
failed(struct call *c, int code)
{
    PCRE2_UCHAR text[120];
    pcre2_get_error_message(code, text, sizeof(text));
    arg_error(c, 1, "%s", (char *)text);
    return false;
}

/* What replaces the match that was just found. */
static bool
put_replacement(struct replacing *r, size_t at, struct buf *out)
{
    PCRE2_SIZE len = strlen(r->with) + 256;
    for (int pass = 0; pass < 2; pass++) {
        uint8_t *room = buf_reserve(out, len);
        if (room == NULL)
            return arg_error(r->c, 0, "the result is too large") != NULL;
        int code =
            pcre2_substitute(r->re, (PCRE2_SPTR)r->s, r->n, at,
                             PCRE2_SUBSTITUTE_MATCHED | PCRE2_SUBSTITUTE_REPLACEMENT_ONLY |
                                 PCRE2_SUBSTITUTE_UNSET_EMPTY | PCRE2_SUBSTITUTE_OVERFLOW_LENGTH,
                             r->md, r->mc, (PCRE2_SPTR)r->with, strlen(r->with), room, &len);
        if (code >= 0) {
            out->len += len;
            return true;
        }
        if (code != PCRE2_ERROR_NOMEMORY || pass > 0)
            return failed(r->c, code);
    }
    return false;
}

static size_t
next_char(const char *s, size_t n, size_t at)
{
    do
        at++;
    while (at < n && ((unsigned char)s[at] & 0xc0) == 0x80);
    return at;
}

/* Each match is charged for the work that it may have been. */
static bool
replace_all(struct replacing *r, struct buf *out)
{
    size_t done = 0, at = 0, last = SIZE_MAX;
    while (at <= r->n) {
        if (!call_charge(r->c, 1 + r->limit / LIMIT_PER_STEP, 0))
            return false;
        int code = pcre2_match(r->re, (PCRE2_SPTR)r->s, r->n, at, 0, r->md, r->mc);
        if (code == PCRE2_ERROR_NOMATCH)
            break;
        if (code < 0)
            return failed(r->c, code);
        const PCRE2_SIZE *o = pcre2_get_ovector_pointer(r->md);
        size_t from = o[0], to = o[1];
        /* as in Go, no empty match right behind another match */
        if (!(from == to && from == last)) {
            buf_put(out, r->s + done, from - done);
            if (!put_replacement(r, at, out))
                return false;
            done = to;
        }
        last = to;
        at = to > from ? to : next_char(r->s, r->n, to);
    }
    buf_put(out, r->s + done, r->n - done);
    return buf_error(out) == 0 || arg_error(r->c, 0, "the result is too large") != NULL;
}

static struct value *
substitute(struct call *c, const char *pattern, size_t pattern_n)
{
    struct err e = ERR_INIT;
    struct replacing r = {.c = c, .s = arg_str(c, 0), .with = arg_str(c, 2), .n = arg_len(c, 0)};
    if (c->failed || !call_charge(c, 20 + pattern_n, pattern_n * 64 + r.n))
        return NULL;
    r.re = regex_compile(pattern, pattern_n, &e);
    if (r.re == NULL)
        return arg_error(c, 1, "%s", e.text);
    r.limit = HCL_REGEX_STEPS_MAX + 4 * r.n;
    r.md = pcre2_match_data_create_from_pattern(r.re, NULL);
    r.mc = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(r.mc, (uint32_t)r.limit);
    pcre2_set_depth_limit(r.mc, HCL_REGEX_DEPTH_MAX);
    pcre2_set_heap_limit(r.mc, HCL_REGEX_HEAP_KIB);
    auto_buf struct buf out = BUF_INIT(HCL_BYTES_MAX / 4);
    struct value *ret = NULL;
    if (replace_all(&r, &out))
        ret = ret_strn(c, out.len > 0 ? (const char *)out.data : "", out.len);
    pcre2_match_context_free(r.mc);
    pcre2_match_data_free(r.md);
    pcre2_code_free(r.re);
    return ret;
}

static struct value *
fn_regex_replace(struct call *c)
{
    const char *p = arg_str(c, 1);
    return c->failed ? NULL : substitute(c, p, strlen(p));
}

/* A pattern between slashes is a regular expression. */
static struct value *
fn_replace(struct call *c)
{
    const char *s = arg_str(c, 0), *from = arg_str(c, 1), *to = arg_str(c, 2);
    size_t n = strlen(from);
    if (n > 1 && from[0] == '/' && from[n - 1] == '/')
        return substitute(c, from + 1, n - 2);
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX / 4);
    if (n == 0) {
        buf_puts(&b, s);
        s = "";
    }
    for (const char *q; n > 0 && (q = strstr(s, from)) != NULL; s = q + n) {
        buf_put(&b, s, (size_t)(q - s));
        buf_puts(&b, to);
    }
    buf_puts(&b, s);
    if (buf_error(&b) != 0)
        return arg_error(c, 0, "the result is too large");
    return ret_strn(c, b.len > 0 ? (const char *)b.data : "", b.len);
}

const struct func func_regex[] = {{"regex_replace", 3, 3, fn_regex_replace, false},
                                  {"replace", 3, 3, fn_replace, false},
                                  {NULL, 0, 0, NULL, false}};
