/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of a template. The lexer is asked for one token after the other and has two states,
 * outside and inside of delimiters. A function lex_X() sets the token and returns true, or returns
 * false when there is none yet. A mistake is a token, too, whose text is in words; the end follows.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "template/node.h"
#include "template/run.h"
#include "template/rune.h"

void
lexer_init(struct lexer *l, const char *text, size_t n, const char *left, const char *right)
{
    l->in = text;
    l->n = n;
    l->left = left && *left ? left : "{{";
    l->right = right && *right ? right : "}}";
    l->n_left = strlen(l->left);
    l->n_right = strlen(l->right);
    l->line = l->start_line = 1;
}

/* --- characters --- */

enum { AT_END = UINT32_MAX };

static uint32_t
lex_peek(const struct lexer *l, size_t *len)
{
    uint32_t c;
    if (l->pos >= l->n) {
        *len = 0;
        return (uint32_t)AT_END;
    }
    *len = rune_take(l->in + l->pos, l->n - l->pos, &c);
    return c;
}

static uint32_t
lex_take(struct lexer *l)
{
    size_t len;
    uint32_t c = lex_peek(l, &len);
    l->pos += len;
    if (c == '\n')
        l->line++;
    return c;
}

static bool
is_blank(uint32_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool
is_word(uint32_t c)
{
    return c != (uint32_t)AT_END && (c == '_' || rune_letter(c) || rune_digit(c));
}

static bool
lex_at(const struct lexer *l, size_t pos, const char *s, size_t n)
{
    return pos <= l->n && l->n - pos >= n && memcmp(l->in + pos, s, n) == 0;
}

/* "- " at the left, " -" at the right. */
static bool
left_trims(const struct lexer *l, size_t pos)
{
    return pos + 1 < l->n && l->in[pos] == '-' && is_blank((uint8_t)l->in[pos + 1]);
}

static bool
right_trims(const struct lexer *l, size_t pos)
{
    return pos + 1 < l->n && is_blank((uint8_t)l->in[pos]) && l->in[pos + 1] == '-';
}

static bool
lex_at_right(const struct lexer *l, bool *trim)
{
    *trim = right_trims(l, l->pos) && lex_at(l, l->pos + 2, l->right, l->n_right);
    return *trim || lex_at(l, l->pos, l->right, l->n_right);
}

static bool
at_terminator(const struct lexer *l)
{
    size_t len;
    uint32_t c = lex_peek(l, &len);
    if (c == (uint32_t)AT_END || is_blank(c))
        return true;
    return (c < 0x80 && strchr(".,|:)(", (int)c)) || lex_at(l, l->pos, l->right, l->n_right);
}

/* --- tokens --- */

static void
count_lines(struct lexer *l, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        l->line += l->in[i] == '\n';
}

static void
lex_ignore(struct lexer *l)
{
    count_lines(l, l->start, l->pos);
    l->start = l->pos;
    l->start_line = l->line;
}

/* Sets the token from start to pos, and goes on behind it. */
static bool
lex_emit(struct lexer *l, enum token_kind kind)
{
    l->item = (struct token){kind, l->start, {l->in + l->start, l->pos - l->start}, l->start_line};
    l->start = l->pos;
    l->start_line = l->line;
    return true;
}

static bool
lex_error(struct lexer *l, const char *words)
{
    l->item = (struct token){TOKEN_ERROR, l->start, {words, strlen(words)}, l->start_line};
    l->start = l->pos = l->n = 0;
    return true;
}

static bool
error_at_char(struct lexer *l, const char *what, uint32_t c)
{
    struct text t = {NULL, 0, 0};
    text_printf(l->r, &t, "%s U+%04X", what, c);
    if (rune_print(c)) {
        text_puts(l->r, &t, " '");
        text_rune(l->r, &t, c);
        text_putc(l->r, &t, '\'');
    }
    return lex_error(l, text_str(l->r, &t));
}

static size_t
find_text(const struct lexer *l, size_t from, const char *s, size_t n)
{
    const char *p = memmem(l->in + from, l->n - from, s, n);
    return p ? (size_t)(p - l->in) : SIZE_MAX;
}

static void
skip_blanks(struct lexer *l)
{
    while (l->pos < l->n && is_blank((uint8_t)l->in[l->pos]))
        l->pos++;
}

static bool
lex_comment(struct lexer *l)
{
    bool trim;
    size_t end = find_text(l, l->pos + 2, "*/", 2);
    if (end == SIZE_MAX)
        return lex_error(l, "unclosed comment");
    l->pos = end + 2;
    if (!lex_at_right(l, &trim))
        return lex_error(l, "comment ends before closing delimiter");
    l->pos += (trim ? 2 : 0) + l->n_right;
    if (trim)
        skip_blanks(l);
    lex_ignore(l);
    return false;
}

static bool
lex_left(struct lexer *l)
{
    l->pos += l->n_left;
    size_t marker = left_trims(l, l->pos) ? 2 : 0;
    if (lex_at(l, l->pos + marker, "/*", 2)) {
        l->pos += marker;
        lex_ignore(l);
        return lex_comment(l);
    }
    struct token item = {
        TOKEN_LEFT, l->start, {l->in + l->start, l->pos - l->start}, l->start_line};
    l->start = l->pos;
    l->inside = true;
    l->pos += marker;
    lex_ignore(l);
    l->parens = 0;
    l->item = item;
    return true;
}

/* Text up to the next delimiter, without the blanks in front of one that trims. */
static bool
lex_text(struct lexer *l)
{
    size_t end = find_text(l, l->pos, l->left, l->n_left);
    if (end == SIZE_MAX) {
        count_lines(l, l->pos, l->n);
        l->pos = l->n;
        return lex_emit(l, l->pos > l->start ? TOKEN_TEXT : TOKEN_EOF);
    }
    if (end == l->pos)
        return lex_left(l);
    l->pos = end;
    if (left_trims(l, end + l->n_left))
        while (l->pos > l->start && is_blank((uint8_t)l->in[l->pos - 1]))
            l->pos--;
    count_lines(l, l->start, l->pos);
    bool some = l->pos > l->start;
    if (some)
        lex_emit(l, TOKEN_TEXT);
    l->pos = end;
    lex_ignore(l);
    return some || lex_left(l);
}

static bool
lex_right(struct lexer *l)
{
    bool trim;
    lex_at_right(l, &trim);
    if (trim) {
        l->pos += 2;
        lex_ignore(l);
    }
    l->pos += l->n_right;
    lex_emit(l, TOKEN_RIGHT);
    if (trim) {
        skip_blanks(l);
        lex_ignore(l);
    }
    l->inside = false;
    return true;
}

static bool
lex_blanks(struct lexer *l)
{
    size_t n = 0;
    for (; l->pos < l->n && is_blank((uint8_t)l->in[l->pos]); n++)
        lex_take(l);
    if (right_trims(l, l->pos - 1) && lex_at(l, l->pos + 1, l->right, l->n_right)) {
        l->pos--;
        if (l->in[l->pos] == '\n')
            l->line--;
        if (n == 1)
            return lex_right(l);
    }
    return lex_emit(l, TOKEN_SPACE);
}

static enum token_kind
word_kind(const char *s, size_t n)
{
    static const struct {
        const char *word;
        enum token_kind kind;
    } words[] = {{"block", TOKEN_BLOCK},
                 {"break", TOKEN_BREAK},
                 {"continue", TOKEN_CONTINUE},
                 {"define", TOKEN_DEFINE},
                 {"else", TOKEN_ELSE},
                 {"end", TOKEN_END},
                 {"if", TOKEN_IF},
                 {"nil", TOKEN_NIL},
                 {"range", TOKEN_RANGE},
                 {"template", TOKEN_TEMPLATE},
                 {"with", TOKEN_WITH},
                 {"true", TOKEN_BOOL},
                 {"false", TOKEN_BOOL}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strlen(words[i].word) == n && memcmp(words[i].word, s, n) == 0)
            return words[i].kind;
    return TOKEN_IDENT;
}

static void
skip_word(struct lexer *l)
{
    size_t len;
    while (is_word(lex_peek(l, &len)))
        l->pos += len;
}

static bool
lex_word(struct lexer *l)
{
    size_t len;
    skip_word(l);
    if (!at_terminator(l))
        return error_at_char(l, "bad character", lex_peek(l, &len));
    return lex_emit(l, word_kind(l->in + l->start, l->pos - l->start));
}

/* .name or $name, of which the first character is taken. */
static bool
lex_name(struct lexer *l, enum token_kind kind)
{
    size_t len;
    if (at_terminator(l))
        return lex_emit(l, kind == TOKEN_FIELD ? TOKEN_DOT : kind);
    skip_word(l);
    if (!at_terminator(l))
        return error_at_char(l, "bad character", lex_peek(l, &len));
    return lex_emit(l, kind);
}

/* To the closing quote of a string or a character constant. */
static bool
lex_quoted(struct lexer *l, char quote, enum token_kind kind, const char *words)
{
    for (;;) {
        uint32_t c = lex_take(l);
        if (c == (uint8_t)quote)
            return lex_emit(l, kind);
        if (c == '\\' && quote != '`')
            c = lex_take(l);
        if (c == (uint32_t)AT_END || (c == '\n' && quote != '`'))
            return lex_error(l, words);
    }
}

static bool
lex_accept(struct lexer *l, const char *set)
{
    if (l->pos < l->n && l->in[l->pos] && strchr(set, l->in[l->pos])) {
        l->pos++;
        return true;
    }
    return false;
}

static bool
scan_number(struct lexer *l)
{
    const char *digits = "0123456789_";
    size_t len;
    lex_accept(l, "+-");
    if (lex_accept(l, "0"))
        digits = lex_accept(l, "xX")   ? "0123456789abcdefABCDEF_"
                 : lex_accept(l, "oO") ? "01234567_"
                 : lex_accept(l, "bB") ? "01_"
                                       : digits;
    while (lex_accept(l, digits))
        ;
    if (lex_accept(l, "."))
        while (lex_accept(l, digits))
            ;
    if (lex_accept(l, strlen(digits) == 11 ? "eE" : strlen(digits) == 23 ? "pP" : "")) {
        lex_accept(l, "+-");
        while (lex_accept(l, "0123456789_"))
            ;
    }
    lex_accept(l, "i");
    if (!is_word(lex_peek(l, &len)))
        return true;
    l->pos += len;
    return false;
}

static bool
lex_number(struct lexer *l)
{
    bool complex = false, ok = scan_number(l);
    if (ok && l->pos < l->n && (l->in[l->pos] == '+' || l->in[l->pos] == '-')) {
        complex = true;
        ok = scan_number(l) && l->in[l->pos - 1] == 'i';
    }
    if (ok)
        return lex_emit(l, complex ? TOKEN_COMPLEX : TOKEN_NUMBER);
    struct text t = {NULL, 0, 0};
    text_puts(l->r, &t, "bad number syntax: ");
    text_quote(l->r, &t, l->in + l->start, l->pos - l->start);
    return lex_error(l, text_str(l->r, &t));
}

static bool
lex_paren(struct lexer *l, bool open)
{
    l->parens += open ? 1 : -1;
    if (l->parens < 0)
        return lex_error(l, "unexpected right paren");
    return lex_emit(l, open ? TOKEN_LEFT_PAREN : TOKEN_RIGHT_PAREN);
}

static bool
lex_inside(struct lexer *l)
{
    bool trim;
    size_t len;
    if (lex_at_right(l, &trim))
        return l->parens ? lex_error(l, "unclosed left paren") : lex_right(l);
    uint32_t c = lex_peek(l, &len);
    if (c == (uint32_t)AT_END)
        return lex_error(l, "unclosed action");
    if (is_blank(c))
        return lex_blanks(l);
    bool number =
        c == '+' || c == '-' || (c >= '0' && c <= '9') ||
        (c == '.' && l->pos + 1 < l->n && l->in[l->pos + 1] >= '0' && l->in[l->pos + 1] <= '9');
    if (number || (c == '.' && l->pos + 1 == l->n))
        return lex_number(l);
    if (is_word(c))
        return lex_word(l);
    l->pos += len;
    switch (c) {
    case '=':
        return lex_emit(l, TOKEN_ASSIGN);
    case ':':
        return lex_take(l) == '=' ? lex_emit(l, TOKEN_DECLARE) : lex_error(l, "expected :=");
    case '|':
        return lex_emit(l, TOKEN_PIPE);
    case '"':
        return lex_quoted(l, '"', TOKEN_STRING, "unterminated quoted string");
    case '`':
        return lex_quoted(l, '`', TOKEN_RAW, "unterminated raw quoted string");
    case '\'':
        return lex_quoted(l, '\'', TOKEN_RUNE, "unterminated character constant");
    case '$':
        return lex_name(l, TOKEN_VARIABLE);
    case '.':
        return lex_name(l, TOKEN_FIELD);
    case '(':
    case ')':
        return lex_paren(l, c == '(');
    default:
        if (c < 0x80 && rune_print(c))
            return lex_emit(l, TOKEN_CHAR);
        return error_at_char(l, "unrecognized character in action:", c);
    }
}

struct token
lexer_next(struct lexer *l)
{
    l->item = (struct token){TOKEN_EOF, l->pos, {"EOF", 3}, l->start_line};
    while (!(l->inside ? lex_inside(l) : lex_text(l)))
        ;
    return l->item;
}
