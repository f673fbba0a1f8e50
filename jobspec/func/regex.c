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

static size_t
next_char(const char *s, size_t n, size_t at)
{
    do
        at++;
    while (at < n && ((unsigned char)s[at] & 0xc0) == 0x80);
    return at;
}

static bool
is_name(char ch)
{
    return (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
           ch == '_';
}

/* $name takes as many letters and digits as there are, so $1x is a group of that name, which no
 * group has; a "$" before anything else is itself. */
static const char *
template_of(struct call *c, const char *with)
{
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX);
    for (const char *s = with; *s != '\0'; s++) {
        bool brace = s[0] == '$' && s[1] == '{';
        size_t n = 0;
        while (*s == '$' && is_name(s[1 + brace + n]))
            n++;
        if (*s != '$') {
            buf_putc(&b, *s);
        } else if (s[1] == '$') {
            buf_puts(&b, "$$");
            s++;
        } else if (n == 0 || (brace && s[2 + n] != '}')) {
            buf_puts(&b, "$$");
        } else {
            const char *name = s + 1 + brace;
            if (*name > '9' || strspn(name, "0123456789") >= n)
                buf_printf(&b, "${%.*s}", (int)n, name);
            s += n + 2 * brace;
        }
    }
    return mem_strdup(c->ev->ctx, buf_str(&b));
}

/* `s` with each match replaced by `with`, into `out`. Each match is charged for the work that it
 * may have been. */
static bool
replace_all(struct call *c, struct regex *rx, size_t cost, struct buf *out)
{
    const char *s = arg_str(c, 0), *with = template_of(c, arg_str(c, 2));
    size_t n = arg_len(c, 0), done = 0, at = 0, last = SIZE_MAX, from = 0, to = 0;
    struct err e = ERR_INIT;
    int r = 0;
    while (at <= n) {
        if (!call_charge(c, cost, 0))
            return false;
        r = regex_find(rx, SLICE(s, n), at, &from, &to, &e);
        if (r <= 0)
            break;
        /* no empty match right behind another match, Go's rule */
        if (!(from == to && from == last)) {
            buf_put(out, s + done, from - done);
            r = regex_expand(rx, with, out, &e);
            if (r < 0)
                break;
            done = to;
        }
        last = to;
        at = to > from ? to : next_char(s, n, to);
    }
    if (r < 0)
        return arg_error(c, r == -ERR_LIMIT ? 0 : 1, "%s", e.text) != NULL;
    buf_put(out, s + done, n - done);
    return buf_error(out) == 0 || arg_error(c, 0, "the result is too large") != NULL;
}

static struct value *
regex_substitute(struct call *c, const char *pattern, size_t pattern_n)
{
    struct err e = ERR_INIT;
    if (c->failed || !call_charge(c, 20 + pattern_n, pattern_n * 64 + arg_len(c, 0)))
        return NULL;
    auto_mem void *tmp = mem_ctx("regex");
    size_t steps = HCL_REGEX_STEPS_MAX + 4 * arg_len(c, 0);
    struct regex *rx = regex_new(tmp, pattern, pattern_n, steps, &e);
    if (rx == NULL)
        return arg_error(c, 1, "%s", e.text);
    auto_buf struct buf out = BUF_INIT(HCL_BYTES_MAX / 4);
    if (!replace_all(c, rx, 1 + steps / LIMIT_PER_STEP, &out))
        return NULL;
    return ret_strn(c, out.len > 0 ? (const char *)out.data : "", out.len);
}

static struct value *
fn_regex_replace(struct call *c)
{
    const char *p = arg_str(c, 1);
    return c->failed ? NULL : regex_substitute(c, p, strlen(p));
}

static struct value *
fn_replace(struct call *c)
{
    const char *s = arg_str(c, 0), *from = arg_str(c, 1), *to = arg_str(c, 2);
    size_t n = strlen(from), len = arg_len(c, 0), done = 0;
    if (c->failed || !call_charge(c, 1 + len / 16, 0))
        return NULL;
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX / 4);
    if (n == 0) { /* before each character, and at the end */
        for (size_t at = 0; at < len; at = done) {
            buf_puts(&b, to);
            done = next_char(s, len, at);
            buf_put(&b, s + at, done - at);
        }
        buf_puts(&b, to);
    }
    for (const char *q; n > 0 && (q = strstr(s, from)) != NULL; s = q + n) {
        buf_put(&b, s, (size_t)(q - s));
        buf_puts(&b, to);
    }
    if (n > 0)
        buf_puts(&b, s);
    if (buf_error(&b) != 0)
        return arg_error(c, 0, "the result is too large");
    return ret_strn(c, b.len > 0 ? (const char *)b.data : "", b.len);
}

const struct func func_regex[] = {{"regex_replace", 3, 3, fn_regex_replace, false},
                                  {"replace", 3, 3, fn_replace, false},
                                  {NULL, 0, 0, NULL, false}};
