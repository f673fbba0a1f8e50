/* SPDX-License-Identifier: Apache-2.0 */
#include "common/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "common/limits.h"
#include "common/mem.h"

enum { REPEAT_MAX = 1000 }; /* RE2's */

struct regex {
    pcre2_code *code;
    pcre2_match_context *limits;
    pcre2_match_data *found; /* NULL: nothing was looked for; keeps the memory of a match */
    struct slice text;       /* that was searched, from byte `at` on */
    size_t at;
};

/* Past a bracket expression that starts at `s`. */
static const char *
class_end(const char *s)
{
    s++;
    if (*s == '^')
        s++;
    if (*s == ']')
        s++;
    while (*s != '\0' && *s != ']') {
        if (*s == '\\' && s[1] != '\0') {
            s += 2;
        } else if (s[0] == '[' && s[1] == ':' && strstr(s + 2, ":]") != NULL) {
            s = strstr(s + 2, ":]") + 2;
        } else {
            s++;
        }
    }
    return *s == ']' ? s + 1 : s;
}

/* Says whether the text behind "(?" is one that RE2 knows: ":", "P<name>", "<name>", flags. */
static bool
group_is_plain(const char *s)
{
    if (*s == 'P')
        return s[1] == '<';
    if (*s == '<')
        return s[1] != '=' && s[1] != '!';
    size_t n = strspn(s, "imsU-");
    return s[n] == ':' || (n > 0 && s[n] == ')');
}

/* Past a quantifier at `s` ("*", "{2,}"), lazy or not; NULL where RE2 has no such: possessive ones,
 * counts over 1000. */
static const char *
repeat_end(const char *s)
{
    if (*s == '{') {
        const char *end = s + 1 + strspn(s + 1, "0123456789,");
        if (*end != '}' || end == s + 1)
            return s + 1; /* a brace like any character */
        for (const char *p = s + 1; p < end; p++) {
            unsigned n = 0;
            for (; *p >= '0' && *p <= '9' && n <= REPEAT_MAX; p++)
                n = n * 10 + (unsigned)(*p - '0');
            if (n > REPEAT_MAX)
                return NULL;
        }
        s = end;
    }
    return s[1] == '+' ? NULL : s[1] == '?' ? s + 2 : s + 1;
}

/* Only what RE2 has too: anything else could need exponential time or means something else. */
static bool
pattern_is_plain(const char *s)
{
    static const char escapes[] = "aftnrvxQEAzbBdDsSwWpP0";
    while (s && *s != '\0') {
        if (s[0] == '\\' && s[1] == 'Q') {
            const char *e = strstr(s + 2, "\\E");
            if (e == NULL)
                return true;
            s = e + 2;
        } else if (s[0] == '\\' && s[1] != '\0') {
            bool word =
                (s[1] >= '0' && s[1] <= '9') || ((s[1] | 0x20) >= 'a' && (s[1] | 0x20) <= 'z');
            if (word && strchr(escapes, s[1]) == NULL)
                return false;
            s += 2;
        } else if (*s == '[') {
            s = class_end(s);
        } else if (s[0] == '(' && (s[1] == '*' || (s[1] == '?' && !group_is_plain(s + 2)))) {
            return false;
        } else if (s[0] == '(' && s[1] == '?') {
            s += 2;
        } else if (strchr("*+?{", *s) != NULL) {
            s = repeat_end(s);
        } else {
            s++;
        }
    }
    return s != NULL;
}

static int
regex_done(struct regex *rx)
{
    pcre2_match_data_free(rx->found);
    pcre2_match_context_free(rx->limits);
    pcre2_code_free(rx->code);
    return 0;
}

static int
regex_failed(int code, struct err *e)
{
    PCRE2_UCHAR why[160];
    pcre2_get_error_message(code, why, sizeof(why));
    return err_set(e, -ERR_INVALID, "%s", (const char *)why);
}

static pcre2_code *
regex_compile(const char *pattern, struct err *e)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    uint32_t backref = 0, behind = 0;

    if (!pattern_is_plain(pattern)) {
        err_set(e, -ERR_INVALID,
                "regexp '%.200s' uses a back-reference, lookaround or another construct that RE2 "
                "does not have",
                pattern);
        return NULL;
    }
    pcre2_code *re =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
    if (re == NULL) {
        regex_failed(code, e);
        err_prefix(e, "regexp '%.200s' at offset %zu", pattern, (size_t)at);
        return NULL;
    }
    pcre2_pattern_info(re, PCRE2_INFO_BACKREFMAX, &backref);
    pcre2_pattern_info(re, PCRE2_INFO_MAXLOOKBEHIND, &behind);
    /* \b counts as a lookbehind of one */
    if (backref > 0 || behind > 1) {
        pcre2_code_free(re);
        err_set(e, -ERR_INVALID, "regexp '%.200s' uses a back-reference or lookbehind", pattern);
        return NULL;
    }
    return re;
}

static struct regex *
regex_of(const void *ctx, pcre2_code *code, size_t steps)
{
    struct regex *rx = mem_new(ctx, struct regex);
    rx->code = code;
    rx->limits = pcre2_match_context_create(NULL);
    ASSERT(rx->limits != NULL);
    pcre2_set_match_limit(rx->limits, steps > UINT32_MAX ? UINT32_MAX : (uint32_t)steps);
    pcre2_set_depth_limit(rx->limits, REGEX_DEPTH_MAX);
    pcre2_set_heap_limit(rx->limits, REGEX_HEAP_KIB);
    talloc_set_destructor(rx, regex_done);
    return rx;
}

struct regex *
regex_new(const void *ctx, const char *text, size_t n, size_t steps, struct err *e)
{
    auto_mem void *tmp = mem_ctx("regex");

    if (n > REGEX_PATTERN_MAX) {
        err_set(e, -ERR_INVALID, "regexp of %zu bytes: at most %d are allowed", n,
                REGEX_PATTERN_MAX);
        return NULL;
    }
    pcre2_code *code = regex_compile(mem_strndup(tmp, text, n), e);
    return code != NULL ? regex_of(ctx, code, steps) : NULL;
}

int
regex_find(struct regex *rx, struct slice text, size_t at, size_t *from, size_t *to, struct err *e)
{
    if (rx->found == NULL)
        rx->found = pcre2_match_data_create_from_pattern(rx->code, NULL);
    ASSERT(rx->found != NULL);
    rx->text = text;
    rx->at = at;
    int code = pcre2_match(rx->code, text.p, text.n, at, 0, rx->found, rx->limits);
    if (code == PCRE2_ERROR_NOMATCH)
        return 0;
    if (code < 0)
        return regex_failed(code, e);
    const PCRE2_SIZE *o = pcre2_get_ovector_pointer(rx->found);
    *from = o[0];
    *to = o[1];
    return 1;
}

bool
regex_matches(struct regex *rx, const char *s)
{
    size_t from, to;
    bool hit = rx != NULL && regex_find(rx, SLICE(s, strlen(s)), 0, &from, &to, NULL) > 0;
    if (rx != NULL)
        pcre2_match_data_free(TAKE(rx->found));
    return hit;
}

int
regex_expand(struct regex *rx, const char *with, struct buf *out, struct err *e)
{
    PCRE2_SIZE len = strlen(with) + 256;
    int code = 0;

    for (int pass = 0; pass < 2; pass++) {
        uint8_t *room = buf_reserve(out, len);
        if (room == NULL)
            return err_set(e, -ERR_LIMIT, "the result is too large");
        code = pcre2_substitute(rx->code, rx->text.p, rx->text.n, rx->at,
                                PCRE2_SUBSTITUTE_MATCHED | PCRE2_SUBSTITUTE_REPLACEMENT_ONLY |
                                    PCRE2_SUBSTITUTE_UNSET_EMPTY | PCRE2_SUBSTITUTE_UNKNOWN_UNSET |
                                    PCRE2_SUBSTITUTE_OVERFLOW_LENGTH,
                                rx->found, rx->limits, (PCRE2_SPTR)with, strlen(with), room, &len);
        if (code >= 0) {
            out->len += len;
            return 0;
        }
        if (code != PCRE2_ERROR_NOMEMORY)
            break;
    }
    return regex_failed(code, e);
}

struct regex *
regex_new_clusters(const void *ctx)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR) "\\X", 2, PCRE2_UTF, &code, &at, NULL);

    ASSERT(re != NULL);
    struct regex *rx = regex_of(ctx, re, UINT32_MAX);
    rx->found = pcre2_match_data_create_from_pattern(re, NULL);
    ASSERT(rx->found != NULL);
    return rx;
}

size_t
regex_cluster(struct regex *clusters, const char *s, size_t n)
{
    int code = pcre2_match(clusters->code, (PCRE2_SPTR)s, n, 0, PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK,
                           clusters->found, clusters->limits);

    return code > 0 ? pcre2_get_ovector_pointer(clusters->found)[1] : 1;
}
