/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads YAML: the first document of a text. Blocks go by the columns of their first characters.
 * Read from the end: read_node() finds out whether a block is a list, a map or a scalar;
 * read_flow() is the style with brackets. Whoever finds a mistake sets `bad`, and all that follows
 * does nothing.
 */
#include <string.h>

#include "template/func/strs.h"
#include "template/func/yaml.h"
#include "template/limits.h"
#include "template/rune.h"
#include "template/strconv.h"

struct anchor {
    struct gv name, v;
    struct anchor *next;
};

struct yaml {
    struct run *r;
    const char *s;
    size_t n, i;
    const char *bad;
    struct anchor *anchors;
};

/* The properties in front of a node. */
struct props {
    struct gv anchor, tag;
};

static struct gv read_node(struct yaml *y, long min, bool in_map);
static struct gv read_flow(struct yaml *y);

/* --- characters --- */

static struct gv
yaml_bad(struct yaml *y, const char *words)
{
    struct text t = {NULL, 0, 0};
    size_t line = 0;
    for (size_t i = 0; i < y->i && i < y->n; i++)
        line += y->s[i] == '\n';
    if (!y->bad) {
        /* The library counts lines of its parser from 0, those of its scanner from 1. */
        bool parser =
            strncmp(words, "did not find expected", 21) == 0 && !strstr(words, "line break");
        line += parser && y->i >= y->n;
        if (line > 0)
            text_printf(y->r, &t, "yaml: line %zu: %s", line + !parser, words);
        else
            text_printf(y->r, &t, "yaml: %s", words);
        y->bad = text_str(y->r, &t);
    }
    y->i = y->n;
    return GV_NULL;
}

static char
yaml_at(const struct yaml *y, size_t i)
{
    return i < y->n ? y->s[i] : 0;
}

static bool
blank_or_end(const struct yaml *y, size_t i)
{
    return i >= y->n || y->s[i] == ' ' || y->s[i] == '\t' || y->s[i] == '\n' || y->s[i] == '\r';
}

static long
column_of(const struct yaml *y, size_t i)
{
    size_t from = i;
    while (from > 0 && y->s[from - 1] != '\n')
        from--;
    return (long)(i - from);
}

static void
skip_blanks(struct yaml *y)
{
    while (yaml_at(y, y->i) == ' ' || yaml_at(y, y->i) == '\t')
        y->i++;
}

static void
skip_comment(struct yaml *y)
{
    if (yaml_at(y, y->i) == '#' && (y->i == 0 || blank_or_end(y, y->i - 1)))
        while (y->i < y->n && y->s[y->i] != '\n')
            y->i++;
}

static bool
at_line_end(const struct yaml *y)
{
    char c = yaml_at(y, y->i);
    return y->i >= y->n || c == '\n' || c == '\r';
}

/* To the next character that is no blank, line end or comment. */
static void
skip_lines(struct yaml *y)
{
    for (;;) {
        run_step(y->r, 1);
        skip_blanks(y);
        skip_comment(y);
        if (y->i >= y->n || !at_line_end(y))
            return;
        y->i++;
    }
}

/* "---" or "..." at the beginning of a line. */
static bool
at_document_mark(const struct yaml *y)
{
    return y->n - y->i >= 3 && column_of(y, y->i) == 0 && blank_or_end(y, y->i + 3) &&
           (memcmp(y->s + y->i, "---", 3) == 0 || memcmp(y->s + y->i, "...", 3) == 0);
}

/* --- quoted scalars --- */

/* Line ends within quotes: one is a blank, more are one fewer. */
static void
fold_lines(struct yaml *y, struct text *t)
{
    size_t lines = 0;
    while (t->n > 0 && (t->s[t->n - 1] == ' ' || t->s[t->n - 1] == '\t'))
        t->n--;
    while (y->i < y->n && blank_or_end(y, y->i)) {
        lines += y->s[y->i] == '\n';
        y->i++;
    }
    if (lines == 1)
        text_putc(y->r, t, ' ');
    else
        text_fill(y->r, t, '\n', lines - 1);
}

static struct gv
read_single(struct yaml *y)
{
    struct text t = {NULL, 0, 0};
    for (y->i++;; y->i++) {
        char c = yaml_at(y, y->i);
        if (y->i >= y->n)
            return yaml_bad(y, "found unexpected end of stream");
        if (c == '\'' && yaml_at(y, y->i + 1) != '\'') {
            y->i++;
            return text_gv(&t);
        }
        if (c == '\n') {
            fold_lines(y, &t);
            y->i--;
            continue;
        }
        text_putc(y->r, &t, c);
        y->i += c == '\'';
    }
}

static bool
read_code(struct yaml *y, struct text *t, size_t digits)
{
    uint64_t c;
    if (y->n - y->i <= digits || strconv_uint(y->s + y->i + 1, digits, 16, &c) != STRCONV_OK)
        return false;
    text_rune(y->r, t, (uint32_t)c);
    y->i += digits;
    return true;
}

/* Behind a backslash, at its letter. */
static void
read_escape(struct yaml *y, struct text *t)
{
    static const char from[] = "0abtnvfre \"/\\", to[] = "\0\a\b\t\n\v\f\r\x1b \"/\\";
    char c = yaml_at(y, y->i);
    const char *k = c ? strchr(from, c) : NULL;
    if (k)
        text_putc(y->r, t, to[k - from]);
    else if (c == 'N' || c == '_' || c == 'L' || c == 'P')
        text_rune(y->r, t, c == 'N' ? 0x85 : c == '_' ? 0xa0 : c == 'L' ? 0x2028 : 0x2029);
    else if (c == '\n')
        while (blank_or_end(y, y->i + 1) && y->i + 1 < y->n)
            y->i++;
    else if (!(c == 'x' && read_code(y, t, 2)) && !(c == 'u' && read_code(y, t, 4)) &&
             !(c == 'U' && read_code(y, t, 8)))
        yaml_bad(y, "found unknown escape character");
}

static struct gv
read_double(struct yaml *y)
{
    struct text t = {NULL, 0, 0};
    for (y->i++;; y->i++) {
        char c = yaml_at(y, y->i);
        if (y->i >= y->n)
            return yaml_bad(y, "found unexpected end of stream");
        if (c == '"') {
            y->i++;
            return text_gv(&t);
        }
        if (c == '\n') {
            fold_lines(y, &t);
            y->i--;
        } else if (c == '\\') {
            y->i++;
            read_escape(y, &t);
        } else
            text_putc(y->r, &t, c);
    }
}

/* --- plain scalars --- */

/* The end of a plain scalar on its line: at ": ", " #", or in brackets at one of ,[]{}. */
static size_t
plain_end(const struct yaml *y, bool flow)
{
    size_t i = y->i;
    for (; i < y->n && y->s[i] != '\n'; i++) {
        char c = y->s[i];
        if (c == ':' && (blank_or_end(y, i + 1) || (flow && strchr(",[]{}", yaml_at(y, i + 1)))))
            break;
        if (c == '#' && i > y->i && blank_or_end(y, i - 1))
            break;
        if (flow && strchr(",[]{}", c))
            break;
    }
    while (i > y->i && blank_or_end(y, i - 1))
        i--;
    return i;
}

/* Further lines of a scalar are deeper than `min`, and joined by blanks. */
static struct gv
read_plain(struct yaml *y, long min, bool flow)
{
    struct text t = {NULL, 0, 0};
    for (;;) {
        size_t end = plain_end(y, flow), back = y->i, lines = 0;
        text_put(y->r, &t, y->s + y->i, end - y->i);
        bool some = end > back;
        y->i = back = end;
        skip_blanks(y);
        if (!some || !at_line_end(y) || y->i >= y->n)
            break;
        while (y->i < y->n && blank_or_end(y, y->i)) {
            lines += y->s[y->i] == '\n';
            y->i++;
        }
        size_t next = plain_end(y, flow);
        bool key = !flow && yaml_at(y, next) == ':' && blank_or_end(y, next + 1);
        if (y->i >= y->n || column_of(y, y->i) < min || yaml_at(y, y->i) == '#' ||
            at_document_mark(y) || next == y->i) {
            y->i = back;
            break;
        }
        if (key)
            return yaml_bad(y, "mapping values are not allowed in this context");
        lines == 1 ? text_putc(y->r, &t, ' ') : text_fill(y->r, &t, '\n', lines - 1);
    }
    return text_gv(&t);
}

/* --- literal and folded scalars --- */

struct block {
    bool fold;
    char chomp; /* '-', '+' or 0 */
    long indent;
};

/* The deepest of blank lines counts only if nothing else does. */
static long
find_indent(const struct yaml *y, long min)
{
    size_t i = y->i;
    while (i < y->n) {
        size_t from = i;
        while (yaml_at(y, i) == ' ')
            i++;
        if (i < y->n && y->s[i] != '\n' && y->s[i] != '\r')
            return (long)(i - from) < min ? min : (long)(i - from);
        while (i < y->n && y->s[i] != '\n')
            i++;
        i++;
    }
    return min;
}

/* The number of line ends between two lines of a block. */
static void
join_block(struct yaml *y, struct text *t, const struct block *b, size_t lines, bool more)
{
    if (t->n == 0 && lines > 0 && !more)
        text_fill(y->r, t, '\n', lines);
    else if (b->fold && !more && lines == 1)
        text_putc(y->r, t, ' ');
    else
        text_fill(y->r, t, '\n', b->fold && !more ? lines - 1 : lines);
}

static struct gv
read_block_lines(struct yaml *y, const struct block *b)
{
    struct text t = {NULL, 0, 0};
    size_t lines = 0;
    bool deeper = false, first = true;
    while (y->i < y->n) {
        size_t from = y->i, k = 0;
        run_step(y->r, 1);
        while (yaml_at(y, from + k) == ' ' && (long)k < b->indent)
            k++;
        bool blank = from + k >= y->n || y->s[from + k] == '\n' || (y->s[from + k] == '\r');
        if (!blank && (long)k < b->indent)
            break;
        size_t end = from + k;
        while (end < y->n && y->s[end] != '\n')
            end++;
        if (!blank) {
            bool more = yaml_at(y, from + k) == ' ' || yaml_at(y, from + k) == '\t';
            if (first)
                text_fill(y->r, &t, '\n', lines);
            else
                join_block(y, &t, b, lines, more || deeper);
            text_put(y->r, &t, y->s + from + k, end - from - k);
            lines = 0;
            deeper = more;
            first = false;
        }
        lines += end < y->n;
        y->i = end < y->n ? end + 1 : end;
    }
    if (b->chomp != '-' && lines > 0 && (!first || b->chomp == '+'))
        text_fill(y->r, &t, '\n', b->chomp == '+' ? lines : 1);
    if (y->i > 0 && y->s[y->i - 1] == '\n')
        y->i--; /* the line end belongs to who asks for the next line */
    return text_gv(&t);
}

static struct gv
read_block(struct yaml *y, long min)
{
    struct block b = {.fold = yaml_at(y, y->i) == '>'};
    long hint = 0;
    for (y->i++; !blank_or_end(y, y->i); y->i++) {
        char c = yaml_at(y, y->i);
        if (c == '-' || c == '+')
            b.chomp = c;
        else if (c >= '1' && c <= '9')
            hint = c - '0';
        else
            return yaml_bad(y, "did not find expected comment or line break");
    }
    skip_blanks(y);
    skip_comment(y);
    if (!at_line_end(y))
        return yaml_bad(y, "did not find expected comment or line break");
    while (y->i < y->n && y->s[y->i] != '\n')
        y->i++;
    y->i += y->i < y->n;
    b.indent = hint ? (min > 0 ? min - 1 : 0) + hint : find_indent(y, min > 0 ? min : 0);
    return read_block_lines(y, &b);
}

/* --- brackets --- */

static void
flow_space(struct yaml *y)
{
    skip_lines(y);
}

static struct gv
read_flow_scalar(struct yaml *y)
{
    char c = yaml_at(y, y->i);
    if (c == '\'')
        return read_single(y);
    if (c == '"')
        return read_double(y);
    return yaml_resolve(y->r, read_plain(y, -1, true));
}

static void
flow_pair(struct yaml *y, struct gv map, struct gv key)
{
    struct gv v = GV_NULL;
    flow_space(y);
    if (yaml_at(y, y->i) == ':') {
        y->i++;
        flow_space(y);
        if (yaml_at(y, y->i) != ',' && yaml_at(y, y->i) != '}' && yaml_at(y, y->i) != ']')
            v = read_flow(y);
    }
    gv_map_put(y->r, map.map, key, v);
}

static struct gv
read_flow_map(struct yaml *y)
{
    struct gv map = gv_map_new(y->r, &gv_map_mixed);
    for (y->i++;;) {
        flow_space(y);
        if (yaml_at(y, y->i) == '}') {
            y->i++;
            return map;
        }
        if (y->i >= y->n)
            return yaml_bad(y, "did not find expected ',' or '}'");
        flow_pair(y, map, read_flow(y));
        flow_space(y);
        if (yaml_at(y, y->i) == ',')
            y->i++;
        else if (yaml_at(y, y->i) != '}')
            return yaml_bad(y, "did not find expected ',' or '}'");
    }
}

static struct gv
read_flow_list(struct yaml *y)
{
    struct gv list = gv_list_new(y->r, &gv_anys, 0);
    for (y->i++;;) {
        flow_space(y);
        if (yaml_at(y, y->i) == ']') {
            y->i++;
            return list;
        }
        if (y->i >= y->n)
            return yaml_bad(y, "did not find expected ',' or ']'");
        struct gv v = read_flow(y);
        flow_space(y);
        if (yaml_at(y, y->i) == ':') {
            struct gv map = gv_map_new(y->r, &gv_map_mixed);
            flow_pair(y, map, v);
            v = map;
        }
        gv_list_add(y->r, list.list, v);
        flow_space(y);
        if (yaml_at(y, y->i) == ',')
            y->i++;
        else if (yaml_at(y, y->i) != ']')
            return yaml_bad(y, "did not find expected ',' or ']'");
    }
}

/* --- properties --- */

static struct gv
take_word(struct yaml *y)
{
    size_t from = y->i;
    while (!blank_or_end(y, y->i) && !strchr(",[]{}", y->s[y->i]))
        y->i++;
    return GV_TEXT(y->s + from, y->i - from);
}

static struct props
read_props(struct yaml *y)
{
    struct props p = {GV_LIT(""), GV_LIT("")};
    for (;;) {
        char c = yaml_at(y, y->i);
        if (c != '&' && c != '!')
            return p;
        struct gv word = take_word(y);
        if (c == '&')
            p.anchor = GV_TEXT(word.s + 1, word.n - 1);
        else
            p.tag = word;
        skip_blanks(y);
    }
}

static struct gv
read_alias(struct yaml *y)
{
    struct text t = {NULL, 0, 0};
    y->i++;
    struct gv name = take_word(y);
    for (struct anchor *a = y->anchors; a; a = a->next)
        if (gv_key_compare(a->name, name) == 0)
            return a->v;
    text_printf(y->r, &t, "yaml: unknown anchor '%.*s' referenced", (int)name.n, name.s);
    y->bad = y->bad ? y->bad : text_str(y->r, &t);
    y->i = y->n;
    return GV_NULL;
}

/* A scalar as its tag says, if it has one. */
static struct gv
apply_props(struct yaml *y, const struct props *p, struct gv text, struct gv v)
{
    bool str = p->tag.n == 5 && memcmp(p->tag.s, "!!str", 5) == 0;
    if ((str || (p->tag.n == 1 && *p->tag.s == '!')) && gv_kind(text) == GV_STRING)
        v = text;
    if (p->tag.n == 7 && memcmp(p->tag.s, "!!float", 7) == 0 && gv_kind(v) == GV_INT)
        v = GV_REAL((double)v.i);
    if (p->anchor.n > 0) {
        struct anchor *a = run_alloc(y->r, sizeof(*a));
        *a = (struct anchor){p->anchor, v, y->anchors};
        y->anchors = a;
    }
    return v;
}

static struct gv
read_flow(struct yaml *y)
{
    struct gv v, text = GV_NONE;
    run_enter(y->r);
    struct props p = read_props(y);
    char c = yaml_at(y, y->i);
    if (c == '{')
        v = read_flow_map(y);
    else if (c == '[')
        v = read_flow_list(y);
    else if (c == '*')
        v = read_alias(y);
    else {
        size_t from = y->i;
        v = read_flow_scalar(y);
        text = GV_TEXT(y->s + from, y->i - from);
        if (y->i == from && !y->bad)
            yaml_bad(y, "did not find expected node content");
    }
    run_leave(y->r);
    return apply_props(y, &p, text, v);
}

/* --- blocks --- */

/* The end of a key of one line, at its colon; SIZE_MAX: it is none. */
static size_t
key_end(struct yaml *y)
{
    size_t i = y->i, back = y->i;
    char c = yaml_at(y, i);
    if (c == '"' || c == '\'') {
        const char *bad = y->bad;
        c == '"' ? read_double(y) : read_single(y);
        i = y->bad == bad ? y->i : SIZE_MAX;
        y->bad = bad;
        y->i = back;
        if (i == SIZE_MAX || memchr(y->s + back, '\n', i - back))
            return SIZE_MAX;
    } else if (c == '[' || c == '{' || c == '|' || c == '>' || c == '%' || c == '@' || c == '`')
        return SIZE_MAX;
    else
        i = plain_end(y, false);
    while (yaml_at(y, i) == ' ' || yaml_at(y, i) == '\t')
        i++;
    return yaml_at(y, i) == ':' && blank_or_end(y, i + 1) ? i : SIZE_MAX;
}

static struct gv
read_key(struct yaml *y, size_t end)
{
    struct gv k, text = GV_NONE;
    struct props p = read_props(y);
    char c = yaml_at(y, y->i);
    if (c == '"')
        k = read_double(y);
    else if (c == '\'')
        k = read_single(y);
    else if (c == '*')
        k = read_alias(y);
    else {
        size_t stop = plain_end(y, false);
        text = GV_TEXT(y->s + y->i, stop > y->i ? stop - y->i : 0);
        k = yaml_resolve(y->r, text);
    }
    if (!y->bad)
        y->i = end + 1;
    return apply_props(y, &p, text, k);
}

/* Takes over what "<<" stands for: members that the map does not have itself. */
static void
merge_members(struct yaml *y, struct gv map, struct gv from)
{
    run_enter(y->r);
    for (size_t i = 0; gv_kind(from) == GV_LIST && i < gv_len(from); i++)
        merge_members(y, map, from.list->v[i]);
    for (size_t i = 0; gv_kind(from) == GV_MAP && i < gv_len(from); i++)
        if (!gv_map_find(map.map, from.map->v[i].k))
            gv_map_put(y->r, map.map, from.map->v[i].k, from.map->v[i].v);
    run_leave(y->r);
}

static struct gv
read_map(struct yaml *y, long column)
{
    struct gv map = gv_map_new(y->r, &gv_map_mixed), merged = GV_NONE;
    for (;;) {
        size_t end = key_end(y);
        if (end == SIZE_MAX)
            return yaml_bad(y, "could not find expected ':'");
        struct gv k = read_key(y, end);
        struct gv v = read_node(y, column + 1, true);
        if (y->bad)
            return map;
        if (gv_kind(k) == GV_STRING && k.n == 2 && memcmp(k.s, "<<", 2) == 0)
            merged = v;
        else if (gv_kind(k) == GV_LIST || gv_kind(k) == GV_MAP)
            return yaml_bad(y, "invalid map key");
        else
            gv_map_put(y->r, map.map, k, v);
        skip_lines(y);
        if (y->i >= y->n || column_of(y, y->i) < column || at_document_mark(y))
            break;
        if (column_of(y, y->i) > column)
            return yaml_bad(y, "did not find expected key");
        if (yaml_at(y, y->i) == '-' && blank_or_end(y, y->i + 1))
            return yaml_bad(y, "did not find expected key");
    }
    merge_members(y, map, merged);
    return map;
}

static bool
at_item(const struct yaml *y)
{
    return yaml_at(y, y->i) == '-' && blank_or_end(y, y->i + 1) && !at_document_mark(y);
}

static struct gv
read_list(struct yaml *y, long column)
{
    struct gv list = gv_list_new(y->r, &gv_anys, 0);
    for (;;) {
        y->i++;
        gv_list_add(y->r, list.list, read_node(y, column + 1, false));
        if (y->bad)
            return list;
        skip_lines(y);
        if (y->i >= y->n || column_of(y, y->i) < column || !at_item(y)) {
            if (y->i < y->n && column_of(y, y->i) > column)
                return yaml_bad(y, "did not find expected '-' indicator");
            return list;
        }
        if (column_of(y, y->i) > column)
            return yaml_bad(y, "did not find expected '-' indicator");
    }
}

/* Reads what begins at y->i, on a line of its own or behind "key:" or "-" (`inside`). */
static struct gv
read_content(struct yaml *y, long min, bool inside, struct gv *text)
{
    char c = yaml_at(y, y->i);
    if (at_item(y)) {
        if (inside)
            return yaml_bad(y, "block sequence entries are not allowed in this context");
        return read_list(y, column_of(y, y->i));
    }
    if (!inside && key_end(y) != SIZE_MAX)
        return read_map(y, column_of(y, y->i));
    if (c == '|' || c == '>')
        return read_block(y, min);
    if (c == '*')
        return read_alias(y);
    if (c == '[' || c == '{')
        return read_flow(y);
    if (c == '"')
        return read_double(y);
    if (c == '\'')
        return read_single(y);
    if (c == '%' || c == '@' || c == '`' || c == ',' || c == ']' || c == '}')
        return yaml_bad(y, "found character that cannot start any token");
    *text = read_plain(y, min < 0 ? 0 : min, false);
    return yaml_resolve(y->r, *text);
}

/* A node that is deeper than min: behind "key:" (in_map), behind "-", or the document. */
static struct gv
read_node(struct yaml *y, long min, bool in_map)
{
    struct gv v = GV_NULL, text = GV_NONE;
    size_t from = y->i;
    run_enter(y->r);
    skip_blanks(y);
    struct props p = read_props(y);
    skip_blanks(y);
    skip_comment(y);
    bool fresh = at_line_end(y);
    if (fresh) {
        skip_lines(y);
        if (p.anchor.n == 0 && p.tag.n == 0 && y->i < y->n && column_of(y, y->i) >= min)
            p = read_props(y);
    }
    long column = y->i < y->n ? column_of(y, y->i) : -1;
    bool deep = y->i < y->n && !at_document_mark(y) &&
                (column >= min || (in_map && column == min - 1 && at_item(y) && fresh));
    if (y->bad || (fresh && !deep)) {
        if (y->i < y->n)
            y->i = fresh ? y->i : from;
    } else if (y->i < y->n)
        v = read_content(y, min, in_map && !fresh, &text);
    if (!y->bad && !fresh && gv_kind(v) != GV_MAP && gv_kind(v) != GV_LIST) {
        skip_blanks(y);
        skip_comment(y);
        if (!at_line_end(y) && y->i < y->n)
            yaml_bad(y, yaml_at(y, y->i) == ':' ? "mapping values are not allowed in this context"
                                                : "did not find expected key");
    }
    run_leave(y->r);
    return apply_props(y, &p, text, v);
}

const char *
yaml_text_read(struct run *r, struct gv s, struct gv *ret)
{
    struct yaml y = {.r = r, .s = s.s, .n = s.n};
    skip_lines(&y);
    if (y.i < y.n && at_document_mark(&y) && y.s[y.i] == '-')
        y.i += 3;
    *ret = read_node(&y, 0, false);
    if (!y.bad) {
        skip_lines(&y);
        if (y.i < y.n && !at_document_mark(&y))
            yaml_bad(&y, "did not find expected <document start>");
    }
    return y.bad;
}
