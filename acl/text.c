/* SPDX-License-Identifier: Apache-2.0
 *
 * Two readers make the same tree. The reader of HCL (scan_block() and below) goes over the bytes
 * once; the other (take_item() and below) over values that the codec made of JSON. Both count depth
 * and nodes. The text is UTF-8 without zero bytes before either looks at it.
 */
#include "acl/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/str.h"

struct scan {
    const void *ctx;
    const char *p, *end;
    unsigned line, depth;
    size_t nodes;
    struct err *e;
};

__attribute__((format(printf, 2, 3))) static int
scan_fail(struct scan *s, const char *fmt, ...)
{
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    if (s->line == 0)
        return err_set(s->e, -ERR_INVALID, "Failed to parse ACL Policy: %s", why);
    return err_set(s->e, -ERR_INVALID, "Failed to parse ACL Policy: line %u: %s", s->line, why);
}

/* Appends a node at *tail, which then is where the next one goes; NULL: too many. */
static struct text_node *
node_add(struct scan *s, const char *key, struct text_node ***tail)
{
    if (++s->nodes > ACL_NODES_MAX) {
        scan_fail(s, "more than %d blocks and values", ACL_NODES_MAX);
        return NULL;
    }
    struct text_node *node = mem_new(s->ctx, struct text_node);
    node->key = key;
    node->line = s->line;
    **tail = node;
    *tail = &node->next;
    return node;
}

static int
list_append(struct scan *s, struct text_node *node, const char *text)
{
    if (node->list.n == ACL_LIST_MAX)
        return scan_fail(s, "%.64s: more than %d texts in a list", node->key, ACL_LIST_MAX);
    list_add(s->ctx, node->list, text);
    return 0;
}

/* --- HCL: blanks, keys, texts --- */

static bool
scan_at(const struct scan *s, const char *what)
{
    size_t n = strlen(what);
    return (size_t)(s->end - s->p) >= n && memcmp(s->p, what, n) == 0;
}

static bool
scan_char(const struct scan *s, char c)
{
    return s->p < s->end && *s->p == c;
}

static int
skip_comment(struct scan *s)
{
    const char *close = memmem(s->p + 2, (size_t)(s->end - s->p - 2), "*/", 2);
    if (!close)
        return scan_fail(s, "a comment is not closed");
    for (; s->p < close; s->p++)
        s->line += *s->p == '\n';
    s->p = close + 2;
    return 0;
}

static int
skip_blank(struct scan *s)
{
    while (s->p < s->end) {
        if (*s->p == '#' || scan_at(s, "//")) {
            const char *eol = memchr(s->p, '\n', (size_t)(s->end - s->p));
            s->p = eol ? eol : s->end;
        } else if (scan_at(s, "/*")) {
            int r = skip_comment(s);
            if (r < 0)
                return r;
        } else if (*s->p == '\n' || *s->p == ' ' || *s->p == '\t' || *s->p == '\r') {
            s->line += *s->p++ == '\n';
        } else {
            break;
        }
    }
    return 0;
}

static bool
is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
is_word(char c)
{
    return is_alpha(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

static size_t
put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(first[n] | c);
    return n;
}

static int
digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* Reads `n` digits of that base, 0: there are not so many, or a number beyond Unicode. */
static uint32_t
scan_digits(struct scan *s, unsigned n, int base)
{
    uint32_t c = 0;
    for (; n > 0; n--, s->p++) {
        if (s->p == s->end || digit_of(*s->p) >= base || c > 0x10ffff)
            return 0;
        c = c * (uint32_t)base + (uint32_t)digit_of(*s->p);
    }
    return c > 0x10ffff ? 0 : c;
}

/* Reads what stands behind a backslash; returns how much it wrote, 0: nothing that is known. */
static size_t
scan_escape(struct scan *s, char *out)
{
    static const char from[] = "abfnrtv\\\"", to[] = "\a\b\f\n\r\t\v\\\"";
    const char *known = s->p < s->end ? strchr(from, *s->p) : NULL;
    uint32_t c = 0;
    if (known) {
        *out = to[known - from];
        s->p++;
        return 1;
    }
    switch (s->p < s->end ? *s->p++ : '\0') {
    case 'x':
        c = scan_digits(s, 2, 16);
        break;
    case 'u':
        c = scan_digits(s, 4, 16);
        break;
    case 'U':
        c = scan_digits(s, 8, 16);
        break;
    case '0' ... '7':
        s->p--;
        c = scan_digits(s, 3, 8);
        break;
    default:
        break;
    }
    return c == 0 ? 0 : put_utf8(out, c);
}

static int
scan_string(struct scan *s, const char **ret)
{
    const char *close = ++s->p;
    while (close < s->end && *close != '"' && *close != '\n')
        close += *close == '\\' && s->end - close > 1 ? 2 : 1;
    if (close >= s->end || *close != '"')
        return scan_fail(s, "a text is not closed on its line");
    char *out = mem_array(s->ctx, char, (size_t)(close - s->p) + 1);
    size_t n = 0;
    while (s->p < close) {
        if (*s->p != '\\') {
            out[n++] = *s->p++;
            continue;
        }
        s->p++;
        size_t wrote = scan_escape(s, out + n);
        if (wrote == 0 || s->p > close)
            return scan_fail(s, "a text has an escape that is not known");
        n += wrote;
    }
    s->p = close + 1;
    if (!utf8_valid(out, n))
        return scan_fail(s, "a text is no UTF-8");
    *ret = out;
    return 0;
}

static int
scan_key(struct scan *s, const char **ret)
{
    if (scan_char(s, '"'))
        return scan_string(s, ret);
    const char *start = s->p;
    if (s->p == s->end || !is_alpha(*s->p))
        return scan_fail(s, "a key is expected");
    while (s->p < s->end && is_word(*s->p))
        s->p++;
    *ret = mem_strndup(s->ctx, start, (size_t)(s->p - start));
    return 0;
}

/* Takes the indentation of the last line from all lines, unless one has less of it. */
static void
take_indent(char *text, const char *indent, size_t n)
{
    for (const char *l = text; *l; l = strchr(l, '\n') + 1)
        if (strncmp(l, indent, n) != 0)
            return;
    char *out = text;
    for (const char *l = text; *l;) {
        size_t len = strcspn(l, "\n") + 1;
        memmove(out, l + n, len - n);
        out += len - n;
        l += len;
    }
    *out = '\0';
}

/* <<EOF, lines, EOF; <<-EOF: without the indentation of the last. */
static int
scan_heredoc(struct scan *s, const char **ret)
{
    s->p += 2;
    bool indented = scan_char(s, '-');
    s->p += indented;
    const char *mark = s->p;
    while (s->p < s->end && is_word(*s->p))
        s->p++;
    size_t n = (size_t)(s->p - mark);
    s->p += scan_char(s, '\r');
    if (n == 0 || !scan_char(s, '\n'))
        return scan_fail(s, "<< is followed by a word and the end of the line");
    const char *body = ++s->p;
    s->line++;
    while (s->p < s->end) {
        const char *eol = memchr(s->p, '\n', (size_t)(s->end - s->p));
        const char *stop = eol ? eol : s->end, *word = s->p;
        while (word < stop && (*word == ' ' || *word == '\t'))
            word++;
        const char *last = stop > word && stop[-1] == '\r' ? stop - 1 : stop;
        if ((size_t)(last - word) == n && memcmp(word, mark, n) == 0) {
            char *text = mem_strndup(s->ctx, body, (size_t)(s->p - body));
            if (indented)
                take_indent(text, s->p, (size_t)(word - s->p));
            *ret = text;
            s->p = stop;
            return 0;
        }
        if (!eol)
            break;
        s->p = eol + 1;
        s->line++;
    }
    return scan_fail(s, "the text that begins with << does not end: a line with \"%.*s\" does it",
                     (int)(n < 64 ? n : 64), mark);
}

/* --- HCL: items --- */

static int
scan_list(struct scan *s, struct text_node *node)
{
    node->kind = TEXT_LIST;
    for (s->p++;; s->p++) {
        int r = skip_blank(s);
        const char *text = NULL;
        if (r == 0 && scan_char(s, '"'))
            r = scan_string(s, &text);
        else if (r == 0 && scan_at(s, "<<"))
            r = scan_heredoc(s, &text);
        else if (r == 0 && !scan_char(s, ']'))
            r = scan_fail(s, "%.64s: a text in quotes or \"]\" is expected", node->key);
        if (r == 0 && text)
            r = list_append(s, node, text);
        if (r == 0)
            r = skip_blank(s);
        if (r < 0)
            return r;
        if (scan_char(s, ']')) {
            s->p++;
            return 0;
        }
        if (!scan_char(s, ','))
            return scan_fail(s, "%.64s: \",\" or \"]\" is expected", node->key);
    }
}

static int
scan_value(struct scan *s, struct text_node *node)
{
    node->kind = TEXT_STRING;
    if (scan_char(s, '"'))
        return scan_string(s, &node->string);
    if (scan_at(s, "<<"))
        return scan_heredoc(s, &node->string);
    if (scan_char(s, '['))
        return scan_list(s, node);
    const char *start = s->p;
    while (s->p < s->end && (is_word(*s->p) || *s->p == '+'))
        s->p++;
    if (s->p == start)
        return scan_fail(s, "%.64s: a value is expected", node->key);
    node->kind = TEXT_OTHER;
    node->string = mem_strndup(s->ctx, start, (size_t)(s->p - start));
    return 0;
}

static int scan_block(struct scan *s, struct text_node *node);

/* Reads from behind the key: label, "=", value or block. */
static int
scan_rest(struct scan *s, struct text_node *node)
{
    int r = skip_blank(s);
    if (r == 0 && s->p < s->end && (*s->p == '"' || is_alpha(*s->p))) {
        r = scan_key(s, &node->label);
        if (r == 0)
            r = skip_blank(s);
    }
    bool equals = r == 0 && scan_char(s, '=');
    if (equals) {
        s->p++;
        r = skip_blank(s);
    }
    if (r < 0)
        return r;
    if (scan_char(s, '{'))
        return scan_block(s, node);
    if (node->label)
        return scan_fail(s, "\"{\" is expected after %.64s \"%.128s\"", node->key, node->label);
    if (!equals)
        return scan_fail(s, "\"=\" or \"{\" is expected after %.64s", node->key);
    return scan_value(s, node);
}

/* Reads items up to the end of the block, or of the text in depth 0. */
static int
scan_items(struct scan *s, struct text_node *block)
{
    struct text_node **tail = &block->first;
    for (;;) {
        const char *key = NULL;
        int r = skip_blank(s);
        if (r < 0)
            return r;
        if (s->p == s->end && s->depth == 0)
            return 0;
        if (s->p == s->end)
            return scan_fail(s, "%.64s of line %u is not closed", block->key, block->line);
        if (*s->p == '}' && s->depth > 0)
            return 0;
        r = scan_key(s, &key);
        struct text_node *node = r == 0 ? node_add(s, key, &tail) : NULL;
        if (!node || (r = scan_rest(s, node)) < 0 || (r = skip_blank(s)) < 0)
            return -ERR_INVALID;
        s->p += scan_char(s, ',');
    }
}

static int
scan_block(struct scan *s, struct text_node *node)
{
    node->kind = TEXT_BLOCK;
    if (++s->depth > ACL_DEPTH_MAX)
        return scan_fail(s, "blocks are more than %d deep", ACL_DEPTH_MAX);
    s->p++;
    int r = scan_items(s, node);
    if (r < 0)
        return r;
    s->p++;
    s->depth--;
    return 0;
}

/* --- JSON --- */

static int take_item(struct scan *s, const char *key, const struct value *v,
                     struct text_node ***tail);

static int
take_block(struct scan *s, struct text_node *node, const struct value *map)
{
    node->kind = TEXT_BLOCK;
    if (++s->depth > ACL_DEPTH_MAX)
        return scan_fail(s, "objects are more than %d deep", ACL_DEPTH_MAX);
    struct text_node **tail = &node->first;
    for (size_t i = 0; i < map->map.n; i++) {
        int r = take_item(s, map->map.v[i].k, map->map.v[i].v, &tail);
        if (r < 0)
            return r;
    }
    s->depth--;
    return 0;
}

/* An object is one block, a list of objects are several. */
static int
take_blocks(struct scan *s, const char *key, const char *label, const struct value *v,
            struct text_node ***tail)
{
    bool several = v->kind == VALUE_LIST;
    for (size_t i = 0; i < (several ? v->list.n : 1); i++) {
        const struct value *map = several ? v->list.v[i] : v;
        if (map->kind != VALUE_MAP)
            return scan_fail(s, "%.64s%s%.128s: an object is expected", key, label ? " " : "",
                             str_or(label, ""));
        struct text_node *node = node_add(s, key, tail);
        if (!node)
            return -ERR_INVALID;
        node->label = label;
        int r = take_block(s, node, map);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The labels are keys of an object, or of several in a list. */
static int
take_labels(struct scan *s, const char *key, const struct value *v, struct text_node ***tail)
{
    bool several = v->kind == VALUE_LIST;
    for (size_t i = 0; i < (several ? v->list.n : 1); i++) {
        const struct value *map = several ? v->list.v[i] : v;
        if (map->kind != VALUE_MAP)
            return scan_fail(s, "%.64s: an object whose keys are the labels is expected", key);
        for (size_t k = 0; k < map->map.n; k++) {
            int r = take_blocks(s, key, map->map.v[k].k, map->map.v[k].v, tail);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static int
take_texts(struct scan *s, struct text_node *node, const struct value *v)
{
    node->kind = TEXT_LIST;
    for (size_t i = 0; i < v->list.n; i++) {
        if (v->list.v[i]->kind != VALUE_STRING)
            return scan_fail(s, "%.64s: a list of texts is expected", node->key);
        int r = list_append(s, node, v->list.v[i]->str.s);
        if (r < 0)
            return r;
    }
    return 0;
}

static int
take_item(struct scan *s, const char *key, const struct value *v, struct text_node ***tail)
{
    static const char *const labelled[] = {"namespace", "node_pool", "host_volume", "path"};
    for (size_t i = 0; i < ARRAY_LEN(labelled); i++)
        if (strcmp(key, labelled[i]) == 0)
            return take_labels(s, key, v, tail);
    if (v->kind == VALUE_MAP ||
        (v->kind == VALUE_LIST && v->list.n > 0 && v->list.v[0]->kind == VALUE_MAP))
        return take_blocks(s, key, NULL, v, tail);
    struct text_node *node = node_add(s, key, tail);
    if (!node)
        return -ERR_INVALID;
    if (v->kind == VALUE_LIST)
        return take_texts(s, node, v);
    node->kind = v->kind == VALUE_STRING ? TEXT_STRING : TEXT_OTHER;
    node->string = v->kind == VALUE_STRING ? v->str.s : value_kind_name(v->kind);
    return 0;
}

static int
parse_json(struct scan *s, struct text_node *root)
{
    struct value *v = NULL;
    struct slice text = SLICE(s->p, (size_t)(s->end - s->p));
    int r = json_decode_value(s->ctx, text, BUDGET(64 << 20), &v, s->e);
    if (r < 0) {
        err_prefix(s->e, "Failed to parse ACL Policy");
        return -ERR_INVALID;
    }
    s->line = 0;
    struct text_node **tail = &root->first;
    for (size_t i = 0; i < v->map.n; i++)
        if ((r = take_item(s, v->map.v[i].k, v->map.v[i].v, &tail)) < 0)
            return r;
    return 0;
}

int
text_parse(const void *ctx, const char *text, size_t n, struct text_node **ret, struct err *e)
{
    struct err mine = ERR_INIT;
    struct scan s = {.ctx = ctx, .p = text, .end = text + n, .line = 1, .e = e ? e : &mine};
    if (!utf8_valid(text, n) || memchr(text, 0, n))
        return err_set(e, -ERR_INVALID,
                       "Failed to parse ACL Policy: it is no UTF-8, or has a zero byte");
    struct text_node *root = mem_new(ctx, struct text_node);
    root->kind = TEXT_BLOCK;
    size_t blank = 0;
    while (blank < n && strchr(" \t\r\n", text[blank]))
        blank++;
    int r = blank < n && text[blank] == '{' ? parse_json(&s, root) : scan_items(&s, root);
    if (r < 0)
        return r;
    *ret = root;
    return 0;
}
