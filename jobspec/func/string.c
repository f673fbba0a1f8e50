/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on strings. Lengths and offsets count grapheme clusters. Case changes ASCII and the
 * Latin-1, Greek and Cyrillic letters whose two cases are a constant distance apart. In this order:
 * case; cutting; characters; joining; formats.
 */
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/regex.h"
#include "common/str.h"
#include "jobspec/func/json.h"

/* --- code points --- */

/* Values are valid UTF-8, as sources are. */
static size_t
char_len(const char *s)
{
    unsigned char ch = (unsigned char)*s;
    return ch < 0x80 ? 1 : ch >= 0xf0 ? 4 : ch >= 0xe0 ? 3 : 2;
}

static size_t
count_chars(const char *s, size_t n)
{
    size_t chars = 0;
    for (size_t i = 0; i < n; i++)
        chars += ((unsigned char)s[i] & 0xc0) != 0x80;
    return chars;
}

static struct value *
ret_buf(struct call *c, struct buf *b)
{
    if (buf_error(b) != 0)
        return arg_error(c, 0, "the result is too large");
    return ret_strn(c, b->len > 0 ? (const char *)b->data : "", b->len);
}

/* Letters of two bytes that have the other case at distance `d`. */
static int
two_byte_case(uint32_t u, bool upper)
{
    static const struct {
        uint32_t from, to; /* upper case */
        int d;
    } ranges[] = {{0xc0, 0xd6, 32},   {0xd8, 0xde, 32},   {0x391, 0x3a1, 32},
                  {0x3a3, 0x3a9, 32}, {0x410, 0x42f, 32}, {0x400, 0x40f, 80}};
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        uint32_t d = (uint32_t)ranges[i].d;
        if (upper && u >= ranges[i].from + d && u <= ranges[i].to + d && u != 0x3c2)
            return -ranges[i].d;
        if (!upper && u >= ranges[i].from && u <= ranges[i].to)
            return ranges[i].d;
    }
    return 0;
}

static void
put_case(struct buf *b, const char *s, size_t len, bool upper)
{
    if (len == 1) {
        char ch = *s;
        if (upper && ch >= 'a' && ch <= 'z')
            ch = (char)(ch - 32);
        else if (!upper && ch >= 'A' && ch <= 'Z')
            ch = (char)(ch + 32);
        buf_putc(b, ch);
    } else if (len == 2) {
        uint32_t u = ((uint32_t)s[0] & 0x1f) << 6 | ((uint32_t)s[1] & 0x3f);
        u = (uint32_t)((int)u + two_byte_case(u, upper));
        buf_putc(b, (char)(0xc0 | u >> 6));
        buf_putc(b, (char)(0x80 | (u & 0x3f)));
    } else {
        buf_put(b, s, len);
    }
}

static struct value *
change_case(struct call *c, bool upper)
{
    const char *s = arg_str(c, 0);
    size_t n = arg_len(c, 0);
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX);
    for (size_t i = 0; i < n; i += char_len(s + i))
        put_case(&b, s + i, char_len(s + i), upper);
    return ret_buf(c, &b);
}

static struct value *
fn_lower(struct call *c)
{
    return change_case(c, false);
}

static struct value *
fn_upper(struct call *c)
{
    return change_case(c, true);
}

/* Between words: blanks, and what is neither letter, digit nor "_" of ASCII. */
static bool
is_separator(const char *s)
{
    unsigned char ch = (unsigned char)*s;
    return ch < 0x80 && ch != '_' && !(ch >= '0' && ch <= '9') && !(ch >= 'a' && ch <= 'z') &&
           !(ch >= 'A' && ch <= 'Z');
}

static struct value *
fn_title(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t n = arg_len(c, 0);
    bool start = true;
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX);
    for (size_t i = 0; i < n; i += char_len(s + i)) {
        if (start)
            put_case(&b, s + i, char_len(s + i), true);
        else
            buf_put(&b, s + i, char_len(s + i));
        start = is_separator(s + i);
    }
    return ret_buf(c, &b);
}

/* --- cutting --- */

static struct value *
fn_chomp(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t n = arg_len(c, 0);
    while (n > 0 && (s[n - 1] == '\n' || s[n - 1] == '\r'))
        n--;
    return ret_strn(c, s, n);
}

static bool
string_space(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

static struct value *
fn_trimspace(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t n = arg_len(c, 0);
    while (n > 0 && string_space(s[n - 1]))
        n--;
    while (n > 0 && string_space(*s)) {
        s++;
        n--;
    }
    return ret_strn(c, s, n);
}

static bool
has_char(const char *set, const char *ch, size_t len)
{
    for (; *set != '\0'; set += char_len(set))
        if (char_len(set) == len && memcmp(set, ch, len) == 0)
            return true;
    return false;
}

static struct value *
fn_trim(struct call *c)
{
    const char *s = arg_str(c, 0), *set = arg_str(c, 1);
    size_t n = arg_len(c, 0), len;
    if (!call_charge(c, 1 + n / 16 * (1 + arg_len(c, 1) / 16), 0))
        return NULL;
    while (n > 0 && has_char(set, s, len = char_len(s))) {
        s += len;
        n -= len;
    }
    while (n > 0) {
        for (len = 1; len < n && ((unsigned char)s[n - len] & 0xc0) == 0x80; len++)
            ;
        if (!has_char(set, s + n - len, len))
            break;
        n -= len;
    }
    return ret_strn(c, s, n);
}

static struct value *
fn_trimprefix(struct call *c)
{
    const char *s = arg_str(c, 0), *p = arg_str(c, 1);
    return ret_str(c, str_prefix(s, p) ? s + strlen(p) : s);
}

static struct value *
fn_trimsuffix(struct call *c)
{
    const char *s = arg_str(c, 0), *p = arg_str(c, 1);
    return ret_strn(c, s, arg_len(c, 0) - (str_suffix(s, p) ? strlen(p) : 0));
}

/* --- characters as people see them --- */

static size_t
cluster_len(struct call *c, const char *s, size_t n)
{
    /* two bytes of ASCII never belong together, but for the end of a line */
    if ((unsigned char)s[0] < 0x80 && (n == 1 || (unsigned char)s[1] < 0x80) &&
        (s[0] != '\r' || n == 1 || s[1] != '\n'))
        return 1;
    if (c->clusters == NULL)
        c->clusters = regex_new_clusters(c->ev->ctx);
    return regex_cluster(c->clusters, s, n);
}

static size_t
count_clusters(struct call *c, const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i += cluster_len(c, s + i, n - i))
        count++;
    return count;
}

/* The bytes of the first `count` of them; all, where there are fewer. */
static size_t
clusters_bytes(struct call *c, const char *s, size_t n, int64_t count)
{
    size_t i = 0;
    for (; i < n && count > 0; count--)
        i += cluster_len(c, s + i, n - i);
    return i;
}

/* An offset below 0 counts from the end, and then a length of 0 is none. */
static struct value *
fn_substr(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t n = arg_len(c, 0);
    int64_t at = arg_int(c, 1), length = arg_int(c, 2);
    if (c->failed || !call_charge(c, 1 + n / 4, 0))
        return NULL;
    if (at >= 0 && length == 0)
        return ret_str(c, "");
    if (at < 0)
        at += (int64_t)count_clusters(c, s, n);
    size_t from = clusters_bytes(c, s, n, at);
    bool rest = length <= 0;
    size_t take = rest ? n - from : clusters_bytes(c, s + from, n - from, length);
    return ret_strn(c, s + from, take);
}

static struct value *
fn_strlen(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t n = arg_len(c, 0);
    return call_charge(c, 1 + n / 4, 0) ? ret_int(c, (int64_t)count_clusters(c, s, n)) : NULL;
}

static struct value *
fn_strrev(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t n = arg_len(c, 0);
    if (!call_charge(c, 1 + n / 4, n))
        return NULL;
    char *out = mem_zalloc_array(c->ev->ctx, 1, n + 1, "text");
    for (size_t i = 0, len; i < n; i += len) {
        len = cluster_len(c, s + i, n - i);
        memcpy(out + n - i - len, s + i, len);
    }
    return ret_strn(c, out, n);
}

/* --- joining --- */

static struct value *
fn_join(struct call *c)
{
    const char *sep = arg_str(c, 0);
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX);
    bool first = true;
    for (size_t i = 1; i < c->n && !c->failed; i++) {
        const struct value *l = arg_strings(c, i);
        for (size_t k = 0; k < l->list.n; k++) {
            if (l->list.v[k]->kind == VALUE_NULL)
                return arg_error(c, i, "element %zu is null; cannot concatenate null values", k);
            if (!first)
                buf_puts(&b, sep);
            buf_put(&b, l->list.v[k]->str.s, l->list.v[k]->str.n);
            first = false;
        }
        if (!call_charge(c, l->list.n, 0))
            return NULL;
    }
    return ret_buf(c, &b);
}

static struct value *
fn_split(struct call *c)
{
    const char *sep = arg_str(c, 0), *s = arg_str(c, 1);
    size_t len = strlen(sep), n = len > 0 ? 1 : count_chars(s, strlen(s));
    for (const char *q = s; len > 0 && (q = strstr(q, sep)) != NULL; q += len)
        n++;
    struct value *out = ret_list(c, n);
    for (size_t i = 0; out != NULL && i < n; i++) {
        const char *q = len > 0 ? strstr(s, sep) : s + char_len(s);
        size_t take = q != NULL ? (size_t)(q - s) : strlen(s);
        if ((out->list.v[i] = ret_strn(c, s, take)) == NULL)
            return NULL;
        s += take + len;
    }
    return out;
}

static struct value *
fn_indent(struct call *c)
{
    int64_t n = arg_int(c, 0);
    const char *s = arg_str(c, 1);
    if (n < 0)
        return arg_error(c, 0, "the indentation is negative");
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX / 4);
    for (; *s != '\0'; s++) {
        buf_putc(&b, *s);
        for (int64_t i = 0; *s == '\n' && i < n && buf_error(&b) == 0; i++)
            buf_putc(&b, ' ');
    }
    return ret_buf(c, &b);
}

/* --- format --- */

struct spec {
    char flags[6];
    int width, precision; /* -1: none */
    size_t arg;           /* from 1: argument of the call */
    char verb;
};

enum { FORMAT_NUMBER_MAX = 10000 };

/* Digits from *s on; -1: too many. */
static int
read_number(const char **s)
{
    int n = 0;
    for (; **s >= '0' && **s <= '9'; (*s)++)
        if ((n = n * 10 + (**s - '0')) >= FORMAT_NUMBER_MAX)
            return -1;
    return n;
}

/* %[flags][width][.precision][[argument]]verb, after the "%"; the end, or NULL. */
static const char *
read_spec(const char *s, struct spec *sp, size_t next)
{
    size_t nf = 0;
    *sp = (struct spec){.width = -1, .precision = -1, .arg = next};
    for (; *s != '\0' && strchr("-+ #0", *s) != NULL; s++)
        if (strchr(sp->flags, *s) == NULL && nf < sizeof(sp->flags) - 1)
            sp->flags[nf++] = *s;
    if (*s >= '1' && *s <= '9' && (sp->width = read_number(&s)) < 0)
        return NULL;
    if (*s == '.') {
        s++;
        if ((sp->precision = read_number(&s)) < 0)
            return NULL;
    }
    if (*s == '[') {
        s++;
        int arg = *s >= '1' && *s <= '9' ? read_number(&s) : -1;
        if (arg < 0 || *s++ != ']')
            return NULL;
        sp->arg = (size_t)arg;
    }
    sp->verb = *s;
    return (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ? s + 1 : NULL;
}

static void
put_padded(struct call *c, struct buf *b, const struct spec *sp, const char *s, size_t n)
{
    size_t width = sp->width > 0 ? (size_t)sp->width : 0;
    size_t chars = width > 0 ? count_clusters(c, s, n) : 0;
    bool left = strchr(sp->flags, '-') != NULL;
    char pad = strchr(sp->flags, '0') != NULL ? '0' : ' ';
    for (size_t i = chars; !left && i < width; i++)
        buf_putc(b, pad);
    buf_put(b, s, n);
    for (size_t i = chars; left && i < width; i++)
        buf_putc(b, pad);
}

static void
put_number(struct call *c, struct buf *b, const struct spec *sp)
{
    const struct value *v = arg_number(c, sp->arg);
    bool whole = strchr("bodxX", sp->verb) != NULL;
    if (!c->failed && whole && number_compare(v, number_floor(c->ev->ctx, v)) != 0)
        arg_error(c, sp->arg, "unsupported value for \"%%%c\": an integer is required", sp->verb);
    if (!c->failed)
        number_format(b, v, sp->flags, sp->width, sp->precision, sp->verb);
}

static void
put_string(struct call *c, struct buf *b, const struct spec *sp)
{
    const char *s = arg_str(c, sp->arg);
    size_t n = arg_len(c, sp->arg);
    if (sp->precision > 0)
        n = clusters_bytes(c, s, n, sp->precision);
    if (sp->verb == 's') {
        put_padded(c, b, sp, s, n);
        return;
    }
    auto_buf struct buf json = BUF_INIT(HCL_BYTES_MAX / 4);
    json_put_safe(&json, s, n);
    put_padded(c, b, sp, buf_str(&json), json.len);
}

/* Prints a value as it is: text, the shortest form of a number, JSON of the rest and with "#". */
static void
put_any(struct call *c, struct buf *b, const struct spec *sp)
{
    const struct value *v = c->args[sp->arg];
    auto_buf struct buf out = BUF_INIT(HCL_BYTES_MAX / 4);
    bool json = strchr(sp->flags, '#') != NULL;
    if (!json && v->kind == VALUE_STRING)
        buf_put(&out, v->str.s, v->str.n);
    else if (!json && number_is(v))
        number_format(&out, v, "", -1, -1, 'g');
    else
        json_put_value(c->ev->ctx, &out, v);
    put_padded(c, b, sp, buf_str(&out), out.len);
}

/* One verb with its argument. False after a diagnostic. */
static bool
put_verb(struct call *c, struct buf *b, const struct spec *sp)
{
    bool truth = false;
    ASSERT(sp->arg < c->n);
    if (sp->verb != 'v' && arg_null(c, sp->arg))
        return false;
    switch (sp->verb) {
    case 'v':
        put_any(c, b, sp);
        break;
    case 't':
        if (!value_truth(c->args[sp->arg], &truth))
            arg_error(c, sp->arg, "a bool is needed for %%t");
        buf_puts(b, truth ? "true" : "false");
        break;
    case 's':
    case 'q':
        put_string(c, b, sp);
        break;
    default:
        if (strchr("bdoxXeEfgG", sp->verb) == NULL)
            arg_error(c, 0, "unsupported format verb \"%%%c\"", sp->verb);
        else
            put_number(c, b, sp);
    }
    return !c->failed;
}

static struct value *
string_format(struct call *c)
{
    const char *s = arg_str(c, 0);
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX / 4);
    size_t next = 1, highest = 0;
    for (; *s != '\0'; s++) {
        if (*s != '%') {
            buf_putc(&b, *s);
            continue;
        }
        if (s[1] == '%') {
            buf_putc(&b, '%');
            s++;
            continue;
        }
        struct spec sp;
        const char *end = read_spec(s + 1, &sp, next);
        if (end == NULL)
            return arg_error(c, 0, "this is no format: \"%.20s\"", s);
        if (sp.arg >= c->n)
            return arg_error(c, 0, "not enough arguments: need index %zu but have %zu total",
                             sp.arg, c->n - 1);
        if (!put_verb(c, &b, &sp))
            return NULL;
        highest = sp.arg > highest ? sp.arg : highest;
        next = sp.arg + 1;
        s = end - 1;
    }
    if (highest + 1 < c->n)
        return arg_error(c, highest + 1, "too many arguments; only %zu used by format string",
                         highest);
    return ret_buf(c, &b);
}

static struct value *
fn_format(struct call *c)
{
    return string_format(c);
}

/* string_format() over lists in step; what is not a list is the same every time. */
static struct value *
fn_formatlist(struct call *c)
{
    size_t n = SIZE_MAX;
    for (size_t i = 1; i < c->n; i++) {
        if (c->args[i]->kind != VALUE_LIST)
            continue;
        if (n != SIZE_MAX && n != c->args[i]->list.n)
            return arg_error(c, i, "this list has %zu elements, another one %zu",
                             c->args[i]->list.n, n);
        n = c->args[i]->list.n;
    }
    n = n == SIZE_MAX ? 1 : n;
    struct value *out = ret_list(c, n);
    if (out == NULL || !call_charge(c, n * c->n, c->n * sizeof(void *)))
        return NULL;
    struct value **args = mem_array(c->ev->ctx, struct value *, c->n);
    struct call in = *c;
    in.args = args;
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < c->n; i++)
            args[i] = i > 0 && c->args[i]->kind == VALUE_LIST ? c->args[i]->list.v[k] : c->args[i];
        out->list.v[k] = string_format(&in);
        if (in.failed || out->list.v[k] == NULL) {
            c->failed = true;
            return NULL;
        }
    }
    return out;
}

const struct func func_string[] = {{"chomp", 1, 1, fn_chomp, false},
                                   {"format", 1, -1, fn_format, false},
                                   {"formatlist", 1, -1, fn_formatlist, false},
                                   {"indent", 2, 2, fn_indent, false},
                                   {"join", 2, -1, fn_join, false},
                                   {"lower", 1, 1, fn_lower, false},
                                   {"reverse", 1, 1, fn_strrev, false},
                                   {"split", 2, 2, fn_split, false},
                                   {"strlen", 1, 1, fn_strlen, false},
                                   {"strrev", 1, 1, fn_strrev, false},
                                   {"substr", 3, 3, fn_substr, false},
                                   {"title", 1, 1, fn_title, false},
                                   {"trim", 2, 2, fn_trim, false},
                                   {"trimprefix", 2, 2, fn_trimprefix, false},
                                   {"trimspace", 1, 1, fn_trimspace, false},
                                   {"trimsuffix", 2, 2, fn_trimsuffix, false},
                                   {"upper", 1, 1, fn_upper, false},
                                   {NULL, 0, 0, NULL, false}};
