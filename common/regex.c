/* SPDX-License-Identifier: Apache-2.0 */
#include "common/regex.h"

#include <string.h>

#include "common/limits.h"
#include "common/mem.h"

enum { REPEAT_MAX = 1000 }; /* RE2's */

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

/* What may follow "(?" in RE2: ":", "P<name>", "<name>", flags. */
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
            bool word = (s[1] >= '0' && s[1] <= '9') || ((s[1] | 0x20) >= 'a' && (s[1] | 0x20) <= 'z');
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

pcre2_code *
regex_compile(const char *text, size_t n, struct err *e)
{
    auto_mem void *tmp = mem_ctx("regex");
    int code = 0;
    PCRE2_SIZE at = 0;
    uint32_t backref = 0, behind = 0;

    if (n > REGEX_PATTERN_MAX) {
        err_set(e, -ERR_INVALID, "regexp of %zu bytes: at most %d are allowed", n,
                REGEX_PATTERN_MAX);
        return NULL;
    }
    const char *pattern = mem_strndup(tmp, text, n);
    if (!pattern_is_plain(pattern)) {
        err_set(e, -ERR_INVALID,
                "regexp '%.200s' uses a back-reference, lookaround or another construct that RE2 "
                "does not have",
                pattern);
        return NULL;
    }
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C,
                                   &code, &at, NULL);
    if (re == NULL) {
        PCRE2_UCHAR why[160];
        pcre2_get_error_message(code, why, sizeof(why));
        err_set(e, -ERR_INVALID, "regexp '%.200s' at offset %zu: %s", pattern, (size_t)at,
                (const char *)why);
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
