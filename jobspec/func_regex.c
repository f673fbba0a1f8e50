/* SPDX-License-Identifier: Apache-2.0
 *
 * replace() and regex_replace(). Patterns are PCRE2 in the subset that RE2 shares, with limits on
 * the work of a match.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "jobspec/func.h"

enum { MATCH_LIMIT = 1000000, DEPTH_LIMIT = 5000, HEAP_KIB = 16384 };

static struct value *
substitute(struct call *c, const char *pattern, size_t pattern_n)
{
    const char *s = arg_str(c, 0), *with = arg_str(c, 2);
    size_t n = arg_len(c, 0), at;
    int code;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, pattern_n,
                                   PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
    PCRE2_UCHAR text[120];
    if (re == NULL) {
        pcre2_get_error_message(code, text, sizeof(text));
        return arg_error(c, 1, "invalid regular expression at byte %zu: %s", at, (char *)text);
    }
    pcre2_match_context *mc = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(mc, MATCH_LIMIT);
    pcre2_set_depth_limit(mc, DEPTH_LIMIT);
    pcre2_set_heap_limit(mc, HEAP_KIB);
    PCRE2_SIZE size = n * 2 + 1024;
    struct value *ret = NULL;
    for (int pass = 0; pass < 2; pass++) {
        PCRE2_SIZE len = size;
        if (!call_charge(c, 10 + n / 8, size))
            break;
        PCRE2_UCHAR *out = mem_zalloc_array(NULL, 1, size, "text");
        int r = pcre2_substitute(re, (PCRE2_SPTR)s, n, 0,
                                 PCRE2_SUBSTITUTE_GLOBAL | PCRE2_SUBSTITUTE_UNSET_EMPTY |
                                     PCRE2_SUBSTITUTE_OVERFLOW_LENGTH,
                                 NULL, mc, (PCRE2_SPTR)with, strlen(with), out, &len);
        if (r >= 0)
            ret = ret_strn(c, (const char *)out, len);
        mem_free(out);
        if (r == PCRE2_ERROR_NOMEMORY && pass == 0) {
            size = len;
            continue;
        }
        if (r < 0) {
            pcre2_get_error_message(r, text, sizeof(text));
            arg_error(c, 1, "%s", (char *)text);
        }
        break;
    }
    pcre2_match_context_free(mc);
    pcre2_code_free(re);
    return ret;
}

static struct value *
fn_regex_replace(struct call *c)
{
    const char *p = arg_str(c, 1);
    return substitute(c, p, strlen(p));
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
