/* SPDX-License-Identifier: Apache-2.0
 *
 * The scanner of HCL. See lex.h. In this order: characters and identifiers; tokens of every mode;
 * quoted templates; heredocs; normal text; lex_next(), which asks the mode on top of the stack; and
 * lex_init(), which refuses a text that is not valid UTF-8 before anything is scanned.
 */
#include "jobspec/lex.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

static const char *const token_names[] = {
    [TOK_EOF] = "the end of the file",
    [TOK_ERROR] = "an error",
    [TOK_NEWLINE] = "the end of the line",
    [TOK_IDENT] = "a name",
    [TOK_NUMBER] = "a number",
    [TOK_OQUOTE] = "a quoted string",
    [TOK_CQUOTE] = "a closing quote",
    [TOK_STRING] = "text",
    [TOK_INTERP] = "\"${\"",
    [TOK_CONTROL] = "\"%{\"",
    [TOK_TEND] = "a closing brace",
    [TOK_OHEREDOC] = "a heredoc",
    [TOK_CHEREDOC] = "the end of the heredoc",
    [TOK_LBRACE] = "\"{\"",
    [TOK_RBRACE] = "\"}\"",
    [TOK_LBRACK] = "\"[\"",
    [TOK_RBRACK] = "\"]\"",
    [TOK_LPAREN] = "\"(\"",
    [TOK_RPAREN] = "\")\"",
    [TOK_COMMA] = "a comma",
    [TOK_DOT] = "\".\"",
    [TOK_ELLIPSIS] = "\"...\"",
    [TOK_ASSIGN] = "\"=\"",
    [TOK_ARROW] = "\"=>\"",
    [TOK_COLON] = "\":\"",
    [TOK_QUESTION] = "\"?\"",
    [TOK_PLUS] = "\"+\"",
    [TOK_MINUS] = "\"-\"",
    [TOK_STAR] = "\"*\"",
    [TOK_SLASH] = "\"/\"",
    [TOK_PERCENT] = "\"%\"",
    [TOK_EQ] = "\"==\"",
    [TOK_NE] = "\"!=\"",
    [TOK_LT] = "\"<\"",
    [TOK_GT] = "\">\"",
    [TOK_LE] = "\"<=\"",
    [TOK_GE] = "\">=\"",
    [TOK_AND] = "\"&&\"",
    [TOK_OR] = "\"||\"",
    [TOK_NOT] = "\"!\"",
};

const char *
lex_token_name(enum tok_type t)
{
    return token_names[t];
}

/* --- characters --- */

static int
lex_peek(const struct lexer *lx, size_t ahead)
{
    size_t at = (size_t)lx->p.byte + ahead;
    return at < lx->src->n ? (unsigned char)lx->src->s[at] : -1;
}

static void
lex_advance(struct lexer *lx, size_t n)
{
    for (size_t i = 0; i < n && lx->p.byte < lx->src->n; i++) {
        unsigned char c = (unsigned char)lx->src->s[lx->p.byte++];
        if (c == '\n') {
            lx->p.line++;
            lx->p.col = 1;
        } else if ((c & 0xc0) != 0x80) {
            lx->p.col++;
        }
    }
}

static bool
is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* Length of the non-ASCII identifier character at s, 0 when it is none. Instead of the tables of
 * Unicode: everything but the blocks of spaces, punctuation, symbols and private use. */
static size_t
ident_char(const char *s, size_t n)
{
    unsigned char c = (unsigned char)s[0];
    size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || len > n)
        return 0;
    uint32_t u = c & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++)
        u = (u << 6) | ((unsigned char)s[i] & 0x3f);
    static const uint32_t not [][2] = {
        {0x80, 0xa9},       {0xab, 0xb4},       {0xb6, 0xb6},     {0xb8, 0xb9},
        {0xbb, 0xbf},       {0xd7, 0xd7},       {0xf7, 0xf7},     {0x2000, 0x203e},
        {0x2041, 0x2053},   {0x2055, 0x2070},   {0x2190, 0x2bff}, {0x3000, 0x3004},
        {0x3008, 0x3020},   {0xe000, 0xf8ff},   {0xfe10, 0xfe1f}, {0xfe30, 0xfe32},
        {0xfe50, 0xfe6f},   {0xfeff, 0xfeff},   {0xff00, 0xff0f}, {0xfff0, 0xffff},
        {0x1f000, 0x1fbff}, {0xe0000, 0x10ffff}};
    for (size_t i = 0; i < ARRAY_LEN(not ); i++)
        if (u >= not [i][0] && u <= not [i][1])
            return 0;
    return len;
}

/* Length of the identifier at the position, 0 when there is none. */
static size_t
ident_len(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        int c = (unsigned char)s[i];
        if (is_letter(c) || (i > 0 && (is_digit(c) || c == '-'))) {
            i++;
            continue;
        }
        size_t len = c >= 0x80 ? ident_char(s + i, n - i) : 0;
        if (len == 0)
            break;
        i += len;
    }
    return i;
}

bool
lex_is_ident(const char *s, size_t n)
{
    return n > 0 && ident_len(s, n) == n;
}

/* --- tokens --- */

static void
lex_fail(struct lexer *lx, struct token *t, struct hcl_pos from, const char *summary,
         const char *detail)
{
    t->type = TOK_ERROR;
    t->r = (struct hcl_range){lx->src, from, lx->p};
    if (!lx->failed)
        diag_error(lx->sink, &t->r, summary, "%s", detail);
    lx->failed = true;
}

static bool
lex_push(struct lexer *lx, struct token *t, struct lex_level level)
{
    if (lx->level + 1 >= HCL_DEPTH_MAX) {
        lex_fail(lx, t, lx->p, "Nested too deeply",
                 "Templates are nested more than 100 levels deep.");
        return false;
    }
    lx->stack[++lx->level] = level;
    return true;
}

static void
lex_finish(struct lexer *lx, struct token *t, enum tok_type type, size_t n)
{
    t->type = type;
    t->r.src = lx->src;
    t->r.start = lx->p;
    lex_advance(lx, n);
    t->r.end = lx->p;
}

/* "${" or "%{", with its "~". */
static void
open_template(struct lexer *lx, struct token *t)
{
    enum tok_type type = lex_peek(lx, 0) == '$' ? TOK_INTERP : TOK_CONTROL;
    struct hcl_pos at = lx->p;
    bool trim = lex_peek(lx, 2) == '~';
    if (!lex_push(lx, t, (struct lex_level){.mode = LEX_NORMAL, .interp = true, .at = at}))
        return;
    lex_finish(lx, t, type, trim ? 3 : 2);
    t->trim = trim;
}

static bool
at_template(const struct lexer *lx)
{
    return !lx->literal && (lex_peek(lx, 0) == '$' || lex_peek(lx, 0) == '%') &&
           lex_peek(lx, 1) == '{';
}

/* "$${" and "%%{" stand for themselves without one sign. */
static bool
at_escape(const struct lexer *lx)
{
    int c = lex_peek(lx, 0);
    return !lx->literal && (c == '$' || c == '%') && lex_peek(lx, 1) == c && lex_peek(lx, 2) == '{';
}

static void
next_quoted(struct lexer *lx, struct token *t)
{
    struct lex_level *lv = &lx->stack[lx->level];
    if (lex_peek(lx, 0) == '"') {
        ASSERT(lx->level > 0);
        lx->level--;
        lex_finish(lx, t, TOK_CQUOTE, 1);
        return;
    }
    if (at_template(lx)) {
        open_template(lx, t);
        return;
    }
    struct hcl_pos from = lx->p;
    for (;;) {
        int c = lex_peek(lx, 0);
        if (c < 0) {
            lx->p = lv->at;
            lex_advance(lx, 1);
            lex_fail(lx, t, lv->at, "Unterminated string",
                     "No closing quote was found for this string.");
            return;
        }
        if (c == '\n' || c == '\r') {
            lex_fail(
                lx, t, lv->at, "Invalid multi-line string",
                "A quoted string must end on the line it starts on; use a heredoc (<<EOT) for text "
                "of several lines.");
            return;
        }
        if (c == '"' || at_template(lx))
            break;
        bool quoting = c == '\\' && lex_peek(lx, 1) != '\n' && lex_peek(lx, 1) != '\r';
        lex_advance(lx, at_escape(lx) ? 3 : quoting ? 2 : 1);
    }
    t->type = TOK_STRING;
    t->r = (struct hcl_range){lx->src, from, lx->p};
}

/* Length of the line at the position when it is the end marker of the heredoc, else 0. */
static size_t
heredoc_end(const struct lexer *lx, const struct lex_level *lv)
{
    const char *s = lx->src->s + lx->p.byte, *end = lx->src->s + lx->src->n;
    const char *q = s;
    while (q < end && (*q == ' ' || *q == '\t'))
        q++;
    if ((size_t)(end - q) < lv->marker_n || memcmp(q, lv->marker, lv->marker_n) != 0)
        return 0;
    q += lv->marker_n;
    size_t len = (size_t)(q - s);
    while (q < end && (*q == ' ' || *q == '\t' || *q == '\r'))
        q++;
    return q == end || *q == '\n' ? len : 0;
}

static void
next_heredoc(struct lexer *lx, struct token *t)
{
    struct lex_level *lv = &lx->stack[lx->level];
    size_t len = lv->bol ? heredoc_end(lx, lv) : 0;
    if (len > 0) {
        ASSERT(lx->level > 0);
        lx->level--;
        lex_finish(lx, t, TOK_CHEREDOC, len);
        return;
    }
    if (at_template(lx)) {
        lv->bol = false;
        open_template(lx, t);
        return;
    }
    struct hcl_pos from = lx->p;
    t->bol = lv->bol;
    lv->bol = false;
    for (;;) {
        int c = lex_peek(lx, 0);
        if (c < 0) {
            lx->p = lv->at;
            lex_advance(lx, 2 + lv->marker_n);
            lex_fail(lx, t, lv->at, "Unterminated heredoc",
                     "No line with only the end marker of this heredoc was found.");
            return;
        }
        if (at_template(lx))
            break;
        lex_advance(lx, at_escape(lx) ? 3 : 1);
        if (c == '\n') {
            lv->bol = true;
            break;
        }
    }
    t->type = TOK_STRING;
    t->r = (struct hcl_range){lx->src, from, lx->p};
}

static void
open_heredoc(struct lexer *lx, struct token *t)
{
    const char *s = lx->src->s + lx->p.byte;
    size_t left = lx->src->n - lx->p.byte;
    bool indent = left > 2 && s[2] == '-';
    size_t at = indent ? 3 : 2;
    size_t n = ident_len(s + at, left - at);
    size_t end = at + n;
    if (end < left && s[end] == '\r')
        end++;
    if (n == 0 || end >= left || s[end] != '\n') {
        struct hcl_pos from = lx->p;
        lex_advance(lx, at + n);
        lex_fail(lx, t, from, "Invalid heredoc",
                 "A heredoc starts with << or <<-, a name, and the end of the line.");
        return;
    }
    struct lex_level lv = {
        .mode = LEX_HEREDOC, .bol = true, .at = lx->p, .marker = s + at, .marker_n = n};
    if (!lex_push(lx, t, lv))
        return;
    lex_finish(lx, t, TOK_OHEREDOC, end + 1);
    t->indent = indent;
}

/* False when a comment does not end. */
static bool
skip_space(struct lexer *lx, struct token *t)
{
    for (;;) {
        int c = lex_peek(lx, 0);
        if (c == ' ' || c == '\t' || (c == '\r' && lex_peek(lx, 1) == '\n')) {
            lex_advance(lx, 1);
        } else if (c == '#' || (c == '/' && lex_peek(lx, 1) == '/')) {
            while (lex_peek(lx, 0) >= 0 && lex_peek(lx, 0) != '\n')
                lex_advance(lx, 1);
        } else if (c == '/' && lex_peek(lx, 1) == '*') {
            struct hcl_pos from = lx->p;
            lex_advance(lx, 2);
            while (lex_peek(lx, 0) >= 0 && !(lex_peek(lx, 0) == '*' && lex_peek(lx, 1) == '/'))
                lex_advance(lx, 1);
            if (lex_peek(lx, 0) < 0) {
                lx->p = from;
                lex_advance(lx, 2);
                lex_fail(lx, t, from, "Unterminated comment",
                         "No \"*/\" was found for this comment.");
                return false;
            }
            lex_advance(lx, 2);
        } else {
            return true;
        }
    }
}

static size_t
number_len(const struct lexer *lx)
{
    size_t n = 0;
    while (is_digit(lex_peek(lx, n)))
        n++;
    if (lex_peek(lx, n) == '.' && is_digit(lex_peek(lx, n + 1))) {
        n++;
        while (is_digit(lex_peek(lx, n)))
            n++;
    }
    if (lex_peek(lx, n) == 'e' || lex_peek(lx, n) == 'E') {
        size_t e = n + 1;
        if (lex_peek(lx, e) == '+' || lex_peek(lx, e) == '-')
            e++;
        if (is_digit(lex_peek(lx, e))) {
            while (is_digit(lex_peek(lx, e)))
                e++;
            n = e;
        }
    }
    return n;
}

static const struct {
    char s[4];
    enum tok_type type;
} operators[] = {
    {"...", TOK_ELLIPSIS}, {"==", TOK_EQ},     {"=>", TOK_ARROW}, {"!=", TOK_NE},
    {"<=", TOK_LE},        {">=", TOK_GE},     {"&&", TOK_AND},   {"||", TOK_OR},
    {"[", TOK_LBRACK},     {"]", TOK_RBRACK},  {"(", TOK_LPAREN}, {")", TOK_RPAREN},
    {",", TOK_COMMA},      {".", TOK_DOT},     {"=", TOK_ASSIGN}, {":", TOK_COLON},
    {"?", TOK_QUESTION},   {"+", TOK_PLUS},    {"-", TOK_MINUS},  {"*", TOK_STAR},
    {"/", TOK_SLASH},      {"%", TOK_PERCENT}, {"<", TOK_LT},     {">", TOK_GT},
    {"!", TOK_NOT},
};

static void
unknown_char(struct lexer *lx, struct token *t)
{
    struct hcl_pos from = lx->p;
    int c = lex_peek(lx, 0);
    lex_advance(lx, 1);
    while (lex_peek(lx, 0) >= 0 && (lex_peek(lx, 0) & 0xc0) == 0x80)
        lex_advance(lx, 1);
    if (c == '\'')
        lex_fail(lx, t, from, "Invalid character",
                 "Single quotes are not valid here; use double quotes for strings.");
    else if (c == ';')
        lex_fail(lx, t, from, "Invalid character",
                 "Semicolons are not used; put each argument on a line of its own.");
    else
        lex_fail(lx, t, from, "Invalid character",
                 "This character does not belong to the language.");
}

static void
next_normal(struct lexer *lx, struct token *t)
{
    if (!skip_space(lx, t))
        return;
    struct lex_level *lv = &lx->stack[lx->level];
    int c = lex_peek(lx, 0);
    if (c < 0) {
        if (lv->interp) {
            lx->p = lv->at;
            lex_advance(lx, 2);
            lex_fail(lx, t, lv->at, "Unclosed template",
                     "No closing brace was found for this; write $${ for a literal ${.");
            return;
        }
        lex_finish(lx, t, TOK_EOF, 0);
        return;
    }
    if (lv->interp && lv->braces == 0 && (c == '}' || (c == '~' && lex_peek(lx, 1) == '}'))) {
        ASSERT(lx->level > 0);
        lx->level--;
        lex_finish(lx, t, TOK_TEND, c == '}' ? 1 : 2);
        t->trim = c == '~';
        return;
    }
    if (c == '\n') {
        lex_finish(lx, t, TOK_NEWLINE, 1);
        return;
    }
    size_t n = ident_len(lx->src->s + lx->p.byte, lx->src->n - lx->p.byte);
    if (n > 0) {
        lex_finish(lx, t, TOK_IDENT, n);
    } else if (is_digit(c)) {
        lex_finish(lx, t, TOK_NUMBER, number_len(lx));
    } else if (c == '"') {
        if (lex_push(lx, t, (struct lex_level){.mode = LEX_QUOTED, .at = lx->p}))
            lex_finish(lx, t, TOK_OQUOTE, 1);
    } else if (c == '<' && lex_peek(lx, 1) == '<') {
        open_heredoc(lx, t);
    } else if (c == '{' || c == '}') {
        if (c == '{')
            lv->braces++;
        else if (lv->braces > 0)
            lv->braces--;
        lex_finish(lx, t, c == '{' ? TOK_LBRACE : TOK_RBRACE, 1);
    } else {
        for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
            size_t len = strlen(operators[i].s);
            if (lx->src->n - lx->p.byte >= len &&
                memcmp(lx->src->s + lx->p.byte, operators[i].s, len) == 0) {
                lex_finish(lx, t, operators[i].type, len);
                return;
            }
        }
        unknown_char(lx, t);
    }
}

void
lex_next(struct lexer *lx, struct token *t)
{
    *t = (struct token){.type = TOK_ERROR, .r = {lx->src, lx->p, lx->p}};
    if (lx->failed)
        return;
    switch (lx->stack[lx->level].mode) {
    case LEX_NORMAL:
        next_normal(lx, t);
        break;
    case LEX_QUOTED:
        next_quoted(lx, t);
        break;
    case LEX_HEREDOC:
        next_heredoc(lx, t);
        break;
    }
}

/* Length of the longest prefix that is valid UTF-8 without NUL. */
static size_t
valid_prefix(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        unsigned char c = (unsigned char)s[i];
        size_t len = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
        if (c == 0 || len > n - i || (len > 1 && !utf8_valid(s + i, len)))
            break;
        i += len;
    }
    return i;
}

bool
lex_init(struct lexer *lx, const struct hcl_source *src, unsigned flags, struct hcl_sink *sink)
{
    memset(lx, 0, sizeof(*lx));
    lx->src = src;
    lx->sink = sink;
    lx->literal = (flags & HCL_LITERAL) != 0;
    lx->p = (struct hcl_pos){0, 1, 1};
    struct hcl_range r = {src, lx->p, lx->p};
    if (src->n > HCL_SOURCE_MAX) {
        struct hcl_source head = {src->name, "", 0};
        r.src = &head;
        diag_error(sink, &r, "File too large", "It has %zu bytes; the limit is %d.", src->n,
                   HCL_SOURCE_MAX);
        return false;
    }
    size_t n = valid_prefix(src->s, src->n);
    if (n == src->n)
        return true;
    lex_advance(lx, n);
    r.start = r.end = lx->p;
    unsigned char c = (unsigned char)src->s[n];
    char what[64];
    snprintf(what, sizeof(what), "byte 0x%02x at offset %zu", c, n);
    /* The line may hold anything: it is shown up to the bad byte only. */
    struct hcl_source head = {src->name, src->s, n};
    r.src = &head;
    diag_error(sink, &r, "Not a text file", "The file is not valid UTF-8: %s.", what);
    return false;
}
