/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON form of a body: strict RFC 8259 into the same tree, with positions. Every member of an
 * object becomes an attribute; what is a block of it is the decoder's to know.
 */
#include <string.h>

#include "common/mem.h"
#include "jobspec/number.h"
#include "jobspec/parse.h"

struct json {
    struct parser p; /* its context, limits and diagnostics; the scanner is not used */
    struct hcl_pos at;
};

static struct expr *json_value(struct json *j);

static int
json_cur(const struct json *j)
{
    return j->at.byte < j->p.src->n ? (unsigned char)j->p.src->s[j->at.byte] : -1;
}

static void
json_step(struct json *j, size_t n)
{
    for (size_t i = 0; i < n && j->at.byte < j->p.src->n; i++) {
        unsigned char c = (unsigned char)j->p.src->s[j->at.byte++];
        if (c == '\n') {
            j->at.line++;
            j->at.col = 1;
        } else if ((c & 0xc0) != 0x80) {
            j->at.col++;
        }
    }
}

static void
json_skip_space(struct json *j)
{
    int c = json_cur(j);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        json_step(j, 1);
        c = json_cur(j);
    }
}

static struct hcl_range
range_from(const struct json *j, struct hcl_pos from)
{
    return (struct hcl_range){j->p.src, from, j->at};
}

static void *
json_bad(struct json *j, const char *what)
{
    struct hcl_range r = range_from(j, j->at);
    r.end.byte++;
    r.end.col++;
    parse_error(&j->p, &r, "Invalid JSON", what);
    return NULL;
}

static uint32_t
json_hex4(const struct json *j)
{
    uint32_t u = 0;
    for (size_t i = 0; i < 4; i++) {
        size_t at = (size_t)j->at.byte + i;
        int c = at < j->p.src->n ? j->p.src->s[at] : 0;
        uint32_t d = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                            : 16;
        if (d == 16)
            return UINT32_MAX;
        u = u << 4 | d;
    }
    return u;
}

/* After "\u": UTF-8 into out (room for 4), 0 after a diagnostic. */
static size_t
json_unicode(struct json *j, char *out)
{
    uint32_t u = json_hex4(j);
    if (u != UINT32_MAX)
        json_step(j, 4);
    if (u >= 0xd800 && u < 0xdc00 && json_cur(j) == '\\') {
        json_step(j, 2);
        uint32_t lo = json_hex4(j);
        if (lo >= 0xdc00 && lo < 0xe000) {
            json_step(j, 4);
            u = 0x10000 + ((u - 0xd800) << 10) + (lo - 0xdc00);
        }
    }
    if (u == 0 || u == UINT32_MAX || (u >= 0xd800 && u < 0xe000)) {
        json_bad(j, "This is not the escape of a character.");
        return 0;
    }
    size_t n = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, u >>= 6)
        out[i] = (char)(0x80 | (u & 0x3f));
    out[0] = (char)(n == 1 ? u : ((0xf00u >> n & 0xff) | u));
    return n;
}

/* At the opening quote. */
static char *
json_string(struct json *j, size_t *ret_n)
{
    size_t max = 0, from = j->at.byte + 1;
    while (from + max < j->p.src->n && j->p.src->s[from + max] != '"')
        max += j->p.src->s[from + max] == '\\' ? 2 : 1;
    if (from + max >= j->p.src->n)
        return json_bad(j, "No closing quote was found for this string.");
    char *out = mem_zalloc_array(j->p.ctx, 1, max + 1, "text");
    size_t n = 0;
    json_step(j, 1);
    while (json_cur(j) != '"') {
        int c = json_cur(j);
        if (c < 0x20)
            return json_bad(j, "Control characters in strings must be escaped.");
        if (c != '\\') {
            out[n++] = (char)c;
            json_step(j, 1);
            continue;
        }
        json_step(j, 1);
        static const char from_c[] = "\"\\/bfnrt", to_c[] = "\"\\/\b\f\n\r\t";
        c = json_cur(j);
        const char *f = c > 0 ? strchr(from_c, c) : NULL;
        if (f != NULL) {
            out[n++] = to_c[f - from_c];
            json_step(j, 1);
        } else if (c == 'u') {
            json_step(j, 1);
            size_t len = json_unicode(j, out + n);
            if (len == 0)
                return NULL;
            n += len;
        } else {
            return json_bad(j, "This escape is not known in JSON.");
        }
    }
    ASSERT(n <= max);
    json_step(j, 1);
    *ret_n = n;
    return out;
}

static struct expr *
json_literal(struct json *j, struct hcl_pos from, struct value *v)
{
    struct hcl_range r = range_from(j, from);
    struct expr *e = parse_node(&j->p, EX_LITERAL, &r);
    if (e != NULL) {
        e->value = v;
        e->quoted = v->kind == VALUE_STRING;
    }
    return e;
}

static bool
is_template(const char *s)
{
    return strstr(s, "${") != NULL || strstr(s, "%{") != NULL;
}

/* A text of JSON is a template without escapes of its own: so is a heredoc, whose last newline goes
 * again. */
static struct expr *
json_template(struct json *j, struct hcl_pos from, const char *s)
{
    static const char mark[] = "END_OF_JSON_TEXT";
    struct hcl_range r = range_from(j, from);
    if (strstr(s, mark) != NULL) {
        parse_error(&j->p, &r, "Invalid template", "The text holds END_OF_JSON_TEXT.");
        return NULL;
    }
    if ((j->p.nodes += 2 + strlen(s) / 2) > EXPR_NODES_MAX) { /* it is parsed by itself */
        parse_error(&j->p, &r, "File too large", "It holds more than 200000 expressions.");
        return NULL;
    }
    struct hcl_source *src = mem_new(j->p.ctx, struct hcl_source);
    src->name = j->p.src->name;
    src->s = mem_printf(j->p.ctx, "<<%s\n%s\n%s\n", mark, s, mark);
    src->n = strlen(src->s);
    struct expr *e = parse_expression(j->p.ctx, src, j->p.sink);
    struct expr *last = e != NULL && e->kind == EX_TEMPLATE && e->n > 0 ? e->list[e->n - 1] : e;
    if (last == NULL || last->kind != EX_LITERAL || last->value->kind != VALUE_STRING ||
        last->value->str.n == 0)
        return e;
    last->value = value_strn(j->p.ctx, last->value->str.s, last->value->str.n - 1);
    if (last != e && last->value->str.n == 0)
        e->n--;
    return e;
}

static struct expr *
json_number(struct json *j)
{
    struct hcl_pos from = j->at;
    size_t n = 0;
    while (json_cur(j) > 0 && strchr("+-.eE0123456789", json_cur(j)) != NULL) {
        json_step(j, 1);
        n++;
    }
    char *text = mem_strndup(j->p.ctx, j->p.src->s + from.byte, n);
    /* JSON has no sign but "-", no zeros before a digit, no empty part. */
    const char *digits = text + (*text == '-'), *point = strchr(text, '.');
    bool strict = *digits >= '0' && *digits <= '9' &&
                  (digits[0] != '0' || digits[1] < '0' || digits[1] > '9') &&
                  (point == NULL || (point[1] >= '0' && point[1] <= '9'));
    struct value *v = strict ? number_parse(j->p.ctx, text) : NULL;
    if (v != NULL)
        return json_literal(j, from, v);
    j->at = from;
    return json_bad(j, "This is not a number, or one that is out of range.");
}

static struct expr *
json_word(struct json *j)
{
    static const char *const words[] = {"true", "false", "null"};
    struct hcl_pos from = j->at;
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if (j->p.src->n - j->at.byte < n || memcmp(j->p.src->s + j->at.byte, words[i], n) != 0)
            continue;
        json_step(j, n);
        return json_literal(j, from, i == 2 ? value_null(j->p.ctx) : value_bool(j->p.ctx, i == 0));
    }
    return json_bad(j, "A value was expected here.");
}

/* At "[" or "{". */
static struct expr *
json_collection(struct json *j)
{
    bool object = json_cur(j) == '{';
    int end = object ? '}' : ']';
    struct hcl_pos from = j->at;
    struct hcl_range open = range_from(j, from);
    struct expr *e = parse_node(&j->p, object ? EX_OBJECT : EX_TUPLE, &open);
    if (e == NULL || !parse_enter(&j->p))
        return NULL;
    json_step(j, 1);
    json_skip_space(j);
    while (json_cur(j) != end || e->n > 0) {
        if (object) {
            struct hcl_pos at = j->at;
            size_t n = 0;
            if (json_cur(j) != '"')
                return json_bad(j, "A name in quotes was expected here.");
            char *name = json_string(j, &n);
            struct expr *k =
                name != NULL ? json_literal(j, at, value_strn(j->p.ctx, name, n)) : NULL;
            if (k == NULL)
                return NULL;
            parse_push(&j->p, e, k);
            json_skip_space(j);
            if (json_cur(j) != ':')
                return json_bad(j, "A colon was expected after the name.");
            json_step(j, 1);
        }
        struct expr *v = json_value(j);
        if (v == NULL)
            return NULL;
        parse_push(&j->p, e, v);
        json_skip_space(j);
        if (json_cur(j) == end)
            break;
        if (json_cur(j) != ',')
            return json_bad(j, object ? "A comma or \"}\" was expected here."
                                      : "A comma or \"]\" was expected here.");
        json_step(j, 1);
        json_skip_space(j);
    }
    json_step(j, 1);
    parse_leave(&j->p);
    e->r = range_from(j, from);
    return parse_done(&j->p, e);
}

static struct expr *
json_value(struct json *j)
{
    json_skip_space(j);
    int c = json_cur(j);
    if (c == '{' || c == '[')
        return json_collection(j);
    if (c == '"') {
        struct hcl_pos from = j->at;
        size_t n = 0;
        char *s = json_string(j, &n);
        if (s != NULL && (j->p.flags & HCL_TEMPLATES) != 0 && is_template(s))
            return json_template(j, from, s);
        return s != NULL ? json_literal(j, from, value_strn(j->p.ctx, s, n)) : NULL;
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return json_number(j);
    return json_word(j);
}

static bool
json_init(struct json *j, const void *ctx, const struct hcl_source *src, struct hcl_sink *sink)
{
    memset(j, 0, sizeof(*j));
    j->p.ctx = ctx;
    j->p.src = src;
    j->p.sink = sink;
    j->at = (struct hcl_pos){0, 1, 1};
    if (!lex_init(&j->p.lx, src, 0, sink))
        return false;
    json_skip_space(j);
    return true;
}

static struct expr *
json_whole(struct json *j)
{
    struct expr *e = json_value(j);
    if (e == NULL)
        return NULL;
    json_skip_space(j);
    return json_cur(j) >= 0 ? json_bad(j, "Nothing may follow the value.") : e;
}

struct expr *
parse_json_value(const void *ctx, const struct hcl_source *src, struct hcl_sink *sink)
{
    struct json j;
    return json_init(&j, ctx, src, sink) ? json_whole(&j) : NULL;
}

struct hcl_body *
parse_json_file(const void *ctx, const struct hcl_source *src, unsigned flags,
                struct hcl_sink *sink)
{
    struct json j;
    if (!json_init(&j, ctx, src, sink))
        return NULL;
    j.p.flags = flags;
    if (json_cur(&j) != '{')
        return json_bad(&j, "The file must hold one object, in braces.");
    const struct expr *e = json_whole(&j);
    return e != NULL ? body_of_object(ctx, e, sink) : NULL;
}

/* --- objects as bodies --- */

struct hcl_body *
body_of_object(const void *ctx, const struct expr *e, struct hcl_sink *sink)
{
    struct hcl_body *body = mem_new(ctx, struct hcl_body);
    body->r = e->r;
    body->n_attrs = 0;
    body->attrs = mem_array(ctx, struct attr *, e->n / 2);
    for (size_t i = 0; i + 1 < e->n; i += 2) {
        const struct expr *k = e->list[i];
        if (k->kind != EX_LITERAL || k->value->kind != VALUE_STRING) {
            diag_error(sink, &k->r, "Invalid key", "A name is needed here.");
            return NULL;
        }
        struct attr *a = mem_new(ctx, struct attr);
        a->name = k->value->str.s;
        a->name_r = k->r;
        a->expr = e->list[i + 1];
        body->attrs[body->n_attrs++] = a;
    }
    return body;
}
