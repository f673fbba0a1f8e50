/* SPDX-License-Identifier: Apache-2.0
 *
 * Sprig's functions of the case of letters: upper and lower, titles, and names in snake_case,
 * kebab-case and CamelCase, for which a text is taken apart into words.
 */
#include <string.h>

#include "template/func/strs.h"
#include "template/funcs.h"

static struct gv
fn_upper(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return strs_case(r, a[0], RUNE_UPPER);
}

static struct gv
fn_lower(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return strs_case(r, a[0], RUNE_LOWER);
}

static bool
parts_words(uint32_t c)
{
    if (c < 0x80)
        return !rune_letter(c) && !rune_digit(c) && c != '_';
    return !rune_letter(c) && !rune_digit(c) && rune_space(c);
}

static struct gv
fn_title(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    uint32_t c, last = ' ';
    (void)n;
    for (size_t i = 0; i < a[0].n; last = c) {
        i += rune_take(a[0].s + i, a[0].n - i, &c);
        text_rune(r, &t, parts_words(last) ? rune_to(RUNE_TITLE, c) : c);
    }
    return text_gv(&t);
}

static struct gv
fn_untitle(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    bool first = true;
    uint32_t c;
    (void)n;
    for (size_t i = 0; i < a[0].n;) {
        i += rune_take(a[0].s + i, a[0].n - i, &c);
        bool space = rune_space(c);
        text_rune(r, &t, first && !space ? rune_to(RUNE_LOWER, c) : c);
        first = space;
    }
    return text_gv(&t);
}

static struct gv
fn_swapcase(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    bool space = true;
    uint32_t c;
    (void)n;
    for (size_t i = 0; i < a[0].n;) {
        i += rune_take(a[0].s + i, a[0].n - i, &c);
        uint32_t lower = rune_to(RUNE_LOWER, c), upper = rune_to(RUNE_UPPER, c);
        if (lower != c)
            text_rune(r, &t, lower);
        else
            text_rune(r, &t, space ? rune_to(RUNE_TITLE, c) : upper);
        space = lower == c && upper == c && rune_space(c);
    }
    return text_gv(&t);
}

/* Go through bytes as if each were a character: so do these two in sprig. */
static struct gv
fn_nospace(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    size_t kept = 0;
    (void)n;
    for (size_t i = 0; i < a[0].n; i++)
        if (!rune_space((uint8_t)a[0].s[i])) {
            text_rune(r, &t, (uint8_t)a[0].s[i]);
            kept++;
        }
    return kept == a[0].n ? a[0] : text_gv(&t);
}

static struct gv
fn_initials(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    bool gap = true;
    (void)n;
    for (size_t i = 0; i < a[0].n; i++) {
        uint8_t c = (uint8_t)a[0].s[i];
        if (gap && !rune_space(c))
            text_rune(r, &t, c);
        gap = rune_space(c);
    }
    return text_gv(&t);
}

/* --- words of a name --- */

enum word {
    WORD_NONE,
    WORD_NUMBER,
    WORD_UPPER,
    WORD_LETTERS,
    WORD_CONNECTOR,
    WORD_PUNCT,
    WORD_OTHER
};

static bool
is_connector(uint32_t c)
{
    return c == '-' || c == '_' || rune_space(c);
}

static bool
is_upper(uint32_t c)
{
    return rune_letter(c) && rune_to(RUNE_LOWER, c) != c;
}

/* A letter that has a case. */
static bool
is_cased(uint32_t c)
{
    return rune_letter(c) &&
           (rune_to(RUNE_LOWER, c) != c || rune_to(RUNE_UPPER, c) != c || c < 0x250);
}

static bool
is_punct(uint32_t c)
{
    return c < 0x80 && c > ' ' && c != 0x7f && !rune_letter(c) && !rune_digit(c) &&
           !strchr("$+<=>^`|~", (int)c);
}

static enum word
word_of(uint32_t c)
{
    return is_connector(c) ? WORD_CONNECTOR
           : is_punct(c)   ? WORD_PUNCT
           : is_upper(c)   ? WORD_UPPER
           : is_cased(c)   ? WORD_LETTERS
           : rune_digit(c) ? WORD_NUMBER
                           : WORD_OTHER;
}

struct words {
    struct gv rest, word;
    enum word kind;
};

static uint32_t
char_at(struct gv s, size_t i, size_t *len)
{
    uint32_t c = 0;
    *len = i < s.n ? rune_take(s.s + i, s.n - i, &c) : 0;
    return c;
}

/* "HTTPServer" is HTTP and Server: the last of several capitals belongs to what follows. */
static size_t
upper_length(struct gv s, size_t i)
{
    size_t len, last = 0;
    uint32_t c = char_at(s, i, &len);
    if (len == 0 || !is_cased(c))
        return i;
    if (!is_upper(c)) {
        while (len && is_cased(c) && !is_upper(c)) {
            i += len;
            c = char_at(s, i, &len);
        }
        return i;
    }
    while (len && is_upper(c)) {
        last = len;
        i += len;
        c = char_at(s, i, &len);
    }
    return len && is_cased(c) ? i - last : i;
}

static void
next_word(struct words *w)
{
    size_t len, i;
    uint32_t c = char_at(w->rest, 0, &len);
    w->kind = len ? word_of(c) : WORD_NONE;
    w->word = GV_LIT("");
    if (!len)
        return;
    i = len;
    if (w->kind == WORD_UPPER)
        i = upper_length(w->rest, i);
    else
        for (; (c = char_at(w->rest, i, &len)), len && word_of(c) == w->kind;)
            i += len;
    w->word = GV_TEXT(w->rest.s, i);
    w->rest = GV_TEXT(w->rest.s + i, w->rest.n - i);
}

static void
put_lower(struct run *r, struct text *t, const struct words *w, char connector)
{
    uint32_t c;
    bool change = w->kind == WORD_UPPER || w->kind == WORD_CONNECTOR;
    for (size_t i = 0; i < w->word.n;) {
        i += rune_take(w->word.s + i, w->word.n - i, &c);
        text_rune(r, t,
                  !change           ? c
                  : is_connector(c) ? (uint32_t)connector
                                    : rune_to(RUNE_LOWER, c));
    }
}

/* Letters and numbers in a row are one word: those from here on, and what goes between the next. */
static void
put_run(struct run *r, struct text *t, struct words *w, char connector)
{
    while (w->kind == WORD_LETTERS || w->kind == WORD_NUMBER) {
        put_lower(r, t, w, connector);
        next_word(w);
    }
    if (w->kind != WORD_NONE && w->kind != WORD_PUNCT && w->kind != WORD_CONNECTOR)
        text_putc(r, t, connector);
}

/* A number behind letters: belongs to them, unless letters follow it. */
static void
put_number_behind(struct run *r, struct text *t, struct words *w, char connector)
{
    struct words number = *w;
    if (w->rest.n == 0)
        return;
    next_word(w);
    if (w->kind != WORD_LETTERS) {
        put_lower(r, t, &number, connector);
        if (w->kind != WORD_CONNECTOR && w->kind != WORD_PUNCT)
            text_putc(r, t, connector);
        return;
    }
    text_putc(r, t, connector);
    put_lower(r, t, &number, connector);
    put_run(r, t, w, connector);
}

static struct gv
join_words(struct run *r, struct gv s, char connector)
{
    struct words w = {.rest = s};
    struct text t = {NULL, 0, 0};
    next_word(&w);
    while (w.rest.n > 0) {
        struct words last = w;
        run_step(r, 1);
        if (w.kind != WORD_CONNECTOR)
            put_lower(r, &t, &w, connector);
        next_word(&w);
        if (last.kind == WORD_NUMBER)
            put_run(r, &t, &w, connector);
        else if (last.kind == WORD_CONNECTOR)
            put_lower(r, &t, &last, connector);
        else if (last.kind != WORD_PUNCT && w.kind == WORD_NUMBER)
            put_number_behind(r, &t, &w, connector);
        else if (last.kind != WORD_PUNCT && w.kind != WORD_CONNECTOR && w.kind != WORD_PUNCT)
            text_putc(r, &t, connector);
    }
    put_lower(r, &t, &w, connector);
    return text_gv(&t);
}

static struct gv
fn_snakecase(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return join_words(r, a[0], '_');
}

static struct gv
fn_kebabcase(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return join_words(r, a[0], '-');
}

static struct gv
fn_camelcase(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    struct gv s = a[0];
    uint32_t c = 0, last;
    size_t i = 0;
    bool upper = false, started = false;
    (void)n;
    while (i < s.n && !started) {
        i += rune_take(s.s + i, s.n - i, &c);
        started = !is_connector(c);
        if (!started)
            text_rune(r, &t, c);
    }
    if (started) {
        upper = is_upper(c);
        c = rune_to(RUNE_UPPER, c);
    }
    for (; i < s.n;) {
        last = c;
        i += rune_take(s.s + i, s.n - i, &c);
        if (is_connector(c) && is_connector(last)) {
            text_rune(r, &t, last);
            continue;
        }
        if (is_connector(last)) {
            upper = is_upper(c);
            c = rune_to(RUNE_UPPER, c);
            continue;
        }
        if (upper && is_upper(c))
            c = rune_to(RUNE_LOWER, c);
        else
            upper = false;
        text_rune(r, &t, last);
    }
    if (s.n > 0)
        text_rune(r, &t, c);
    return text_gv(&t);
}

const struct function functions_sprig_case[] = {
    {"sprig_upper", fn_upper, "s", FUNCTION_PLAIN},
    {"sprig_lower", fn_lower, "s", FUNCTION_PLAIN},
    {"sprig_title", fn_title, "s", FUNCTION_PLAIN},
    {"sprig_untitle", fn_untitle, "s", FUNCTION_PLAIN},
    {"sprig_swapcase", fn_swapcase, "s", FUNCTION_PLAIN},
    {"sprig_nospace", fn_nospace, "s", FUNCTION_PLAIN},
    {"sprig_initials", fn_initials, "s", FUNCTION_PLAIN},
    {"sprig_snakecase", fn_snakecase, "s", FUNCTION_PLAIN},
    {"sprig_kebabcase", fn_kebabcase, "s", FUNCTION_PLAIN},
    {"sprig_camelcase", fn_camelcase, "s", FUNCTION_PLAIN},
    {NULL, NULL, NULL, FUNCTION_PLAIN},
};
