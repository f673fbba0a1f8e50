/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on strings. Lengths and offsets count code points. Case changes ASCII and the Latin-1,
 * Greek and Cyrillic letters whose two cases are a constant distance apart.
 */
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
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
        start = strchr(" \t\n\r", s[i]) != NULL;
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
space(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

static struct value *
fn_trimspace(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t n = arg_len(c, 0);
    while (n > 0 && space(s[n - 1]))
        n--;
    while (n > 0 && space(*s)) {
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

static struct value *
fn_substr(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t bytes = arg_len(c, 0), chars = count_chars(s, bytes);
    int64_t at = arg_int(c, 1), n = arg_int(c, 2);
    if (at < 0)
        at = at + (int64_t)chars < 0 ? 0 : at + (int64_t)chars;
    if (n < -1)
        return arg_error(c, 2, "a length is -1 (to the end) or more");
    if (at > (int64_t)chars)
        at = (int64_t)chars;
    if (n == -1 || n > (int64_t)chars - at)
        n = (int64_t)chars - at;
    size_t from = 0;
    for (int64_t i = 0; i < at; i++)
        from += char_len(s + from);
    size_t to = from;
    for (int64_t i = 0; i < n; i++)
        to += char_len(s + to);
    return ret_strn(c, s + from, to - from);
}

static struct value *
fn_strlen(struct call *c)
{
    const char *s = arg_str(c, 0);
    return ret_int(c, (int64_t)count_chars(s, arg_len(c, 0)));
}

static struct value *
fn_strrev(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t n = arg_len(c, 0);
    if (!call_charge(c, 1 + n / 64, n))
        return NULL;
    char *out = mem_zalloc_array(c->ev->ctx, 1, n + 1, "text");
    for (size_t i = 0; i < n; i += char_len(s + i))
        memcpy(out + n - i - char_len(s + i), s + i, char_len(s + i));
    return ret_strn(c, out, n);
}

/* --- joining --- */

static struct value *
fn_join(struct call *c)
{
    const char *sep = arg_str(c, 0);
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX);
    bool first = true;
    for (size_t i = 1; i < c->n; i++) {
        const struct value *l = arg_list(c, i);
        for (size_t k = 0; k < l->list.n; k++) {
            const char *s = value_text(c->ev->ctx, l->list.v[k]);
            if (s == NULL)
                return arg_error(c, i, "element %zu is not a string", k);
            if (!first)
                buf_puts(&b, sep);
            buf_puts(&b, s);
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
    if (n < 0 || n > 1000)
        return arg_error(c, 0, "the indentation must be between 0 and 1000");
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX / 4);
    for (; *s != '\0'; s++) {
        buf_putc(&b, *s);
        for (int64_t i = 0; *s == '\n' && i < n; i++)
            buf_putc(&b, ' ');
    }
    return ret_buf(c, &b);
}

/* --- format --- */

struct spec {
    char flags[6];
    int width, precision; /* -1: none */
    char verb;
};

/* After "%": the length of the verb, 0 when it is none. */
static size_t
read_spec(const char *s, struct spec *sp)
{
    size_t i = 0, nf = 0;
    memset(sp, 0, sizeof(*sp));
    sp->width = sp->precision = -1;
    while (s[i] != '\0' && strchr("-+ #0", s[i]) != NULL && nf < 5)
        sp->flags[nf++] = s[i++];
    for (int part = 0; part < 2; part++) {
        if (part == 1 && s[i] != '.')
            break;
        i += part == 1;
        int *dst = part == 0 ? &sp->width : &sp->precision, v = 0;
        size_t from = i;
        while (s[i] >= '0' && s[i] <= '9' && v < 1000)
            v = v * 10 + (s[i++] - '0');
        if (v >= 1000)
            return 0;
        if (i > from || part == 1)
            *dst = v;
    }
    sp->verb = s[i];
    return s[i] != '\0' ? i + 1 : 0;
}

static void
put_padded(struct buf *b, const struct spec *sp, const char *s, size_t n)
{
    if (sp->precision >= 0) {
        size_t cut = 0;
        for (int k = 0; k < sp->precision && cut < n; k++)
            cut += char_len(s + cut);
        n = cut;
    }
    size_t chars = count_chars(s, n), width = sp->width > 0 ? (size_t)sp->width : 0;
    bool left = strchr(sp->flags, '-') != NULL;
    for (size_t i = chars; !left && i < width; i++)
        buf_putc(b, ' ');
    buf_put(b, s, n);
    for (size_t i = chars; left && i < width; i++)
        buf_putc(b, ' ');
}

static bool
put_number(struct call *c, struct buf *b, const struct spec *sp, size_t arg)
{
    const struct value *v = arg_number(c, arg);
    const char *whole = strchr("bodxX", sp->verb);
    if (c->failed)
        return false;
    if (whole != NULL && number_compare(v, number_floor(c->ev->ctx, v)) != 0) {
        arg_error(c, arg, "unsupported value for \"%%%c\": an integer is required", sp->verb);
        return false;
    }
    number_format(b, v, sp->flags, sp->width, sp->precision, sp->verb);
    return true;
}

/* One verb with its argument. False after a diagnostic. */
static bool
put_verb(struct call *c, struct buf *b, const struct spec *sp, size_t arg)
{
    const struct value *v = c->args[arg];
    auto_buf struct buf json = BUF_INIT(HCL_BYTES_MAX / 4);
    const char *s = value_text(c->ev->ctx, v);
    switch (sp->verb) {
    case 'd':
    case 'x':
    case 'X':
    case 'o':
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G':
    case 'b':
        return put_number(c, b, sp, arg);
    case 's':
        if (s == NULL) {
            arg_error(c, arg, "a %s cannot be formatted with %%s", value_kind_name(v->kind));
            return false;
        }
        put_padded(b, sp, s, strlen(s));
        return true;
    case 'q':
        json_put_safe(&json, s != NULL ? s : "", s != NULL ? strlen(s) : 0);
        put_padded(b, sp, buf_str(&json), json.len);
        return true;
    case 't':
        if (v->kind != VALUE_BOOL) {
            arg_error(c, arg, "a bool is needed for %%t");
            return false;
        }
        put_padded(b, sp, s, strlen(s));
        return true;
    case 'v':
        if (s != NULL && strchr(sp->flags, '#') == NULL) {
            put_padded(b, sp, s, strlen(s));
            return true;
        }
        json_put_value(c->ev->ctx, &json, v);
        put_padded(b, sp, buf_str(&json), json.len);
        return true;
    default:
        arg_error(c, 0, "\"%%%c\" is not known in a format", sp->verb);
        return false;
    }
}

static struct value *
format(struct call *c)
{
    const char *s = arg_str(c, 0);
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX / 4);
    size_t arg = 1;
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
        size_t n = read_spec(s + 1, &sp);
        if (n == 0)
            return arg_error(c, 0, "the format ends within a verb, or has a huge width");
        if (arg >= c->n)
            return arg_error(c, 0, "not enough arguments for the format");
        if (!put_verb(c, &b, &sp, arg++))
            return NULL;
        s += n;
    }
    if (arg < c->n)
        return arg_error(c, arg, "more arguments than the format uses");
    return ret_buf(c, &b);
}

static struct value *
fn_format(struct call *c)
{
    return format(c);
}

/* format() over lists in step; what is not a list is the same every time. */
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
        out->list.v[k] = format(&in);
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
                                   {"join", 1, -1, fn_join, false},
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
