/* SPDX-License-Identifier: Apache-2.0
 *
 * Sprig's functions of text: cutting, quoting, lists of texts, encodings, digests, regular
 * expressions and paths. Positions are of bytes, as there.
 */
#include <string.h>

#include "template/fmt.h"
#include "template/func/cast.h"
#include "template/func/hash.h"
#include "template/func/regexp.h"
#include "template/func/strs.h"
#include "template/funcs.h"

/* --- cutting --- */

static struct gv
fn_trim(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return strs_trim_space(a[0]);
}

static struct gv
fn_trim_all(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return strs_trim(r, a[1], a[0], STRS_LEFT | STRS_RIGHT);
}

static struct gv
fn_trim_prefix(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return strs_has_prefix(a[1], a[0]) ? GV_TEXT(a[1].s + a[0].n, a[1].n - a[0].n) : a[1];
}

static struct gv
fn_trim_suffix(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return strs_has_suffix(a[1], a[0]) ? GV_TEXT(a[1].s, a[1].n - a[0].n) : a[1];
}

static struct gv
fn_trunc(struct run *r, struct gv *a, size_t n)
{
    int64_t c = a[0].i, len = (int64_t)a[1].n;
    (void)r, (void)n;
    if (c < 0 && len + c > 0)
        return GV_TEXT(a[1].s + len + c, (size_t)-c);
    return c >= 0 && len > c ? GV_TEXT(a[1].s, (size_t)c) : a[1];
}

static struct gv
fn_substr(struct run *r, struct gv *a, size_t n)
{
    int64_t from = a[0].i, to = a[1].i, len = (int64_t)a[2].n;
    (void)n;
    if (from < 0) {
        if (to < 0)
            run_fail(r, "runtime error: slice bounds out of range [:%lld]", (long long)to);
        if (to > len)
            run_fail(r, "runtime error: slice bounds out of range [:%lld] with length %lld",
                     (long long)to, (long long)len);
        return GV_TEXT(a[2].s, (size_t)to);
    }
    if (to < 0 || to > len)
        to = len;
    if (from > to)
        run_fail(r, "runtime error: slice bounds out of range [%lld:%lld]", (long long)from,
                 (long long)to);
    return GV_TEXT(a[2].s + from, (size_t)(to - from));
}

static struct gv
abbreviate_text(struct run *r, struct gv s, int64_t offset, int64_t width)
{
    struct text t = {NULL, 0, 0};
    int64_t len = (int64_t)s.n;
    if (len == 0 || width < 4)
        return GV_LIT("");
    if (len <= width)
        return s;
    offset = offset > len ? len : offset;
    if (len - offset < width - 3)
        offset = len - (width - 3);
    if (offset <= 4) {
        text_put(r, &t, s.s, (size_t)width - 3);
        text_puts(r, &t, "...");
        return text_gv(&t);
    }
    if (width < 7)
        return GV_LIT("");
    text_puts(r, &t, "...");
    struct gv rest = GV_TEXT(s.s + len - (width - 3), (size_t)width - 3);
    if (offset + width - 3 < len)
        rest = abbreviate_text(r, GV_TEXT(s.s + offset, (size_t)(len - offset)), 0, width - 3);
    text_put(r, &t, rest.s, rest.n);
    return text_gv(&t);
}

static struct gv
fn_abbrev(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return a[0].i < 4 ? a[1] : abbreviate_text(r, a[1], 0, a[0].i);
}

static struct gv
fn_abbrev_both(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    if (a[1].i < 4 || (a[0].i > 0 && a[1].i < 7))
        return a[2];
    return abbreviate_text(r, a[2], a[0].i, a[1].i);
}

/* --- joining and quoting --- */

static struct gv
fn_cat(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    for (size_t i = 0, k = 0; i < n; i++)
        if (!gv_none(a[i])) {
            text_puts(r, &t, k++ ? " " : "");
            fmt_put(r, &t, a[i]);
        }
    return text_gv(&t);
}

static struct gv
fn_quote(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    for (size_t i = 0, k = 0; i < n; i++)
        if (!gv_none(a[i])) {
            struct gv s = cast_text(r, a[i]);
            text_puts(r, &t, k++ ? " " : "");
            text_quote(r, &t, s.s, s.n);
        }
    return text_gv(&t);
}

static struct gv
fn_squote(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    for (size_t i = 0, k = 0; i < n; i++)
        if (!gv_none(a[i])) {
            text_puts(r, &t, k++ ? " '" : "'");
            fmt_put(r, &t, a[i]);
            text_putc(r, &t, '\'');
        }
    return text_gv(&t);
}

static struct gv
indent_text(struct run *r, struct gv *a, const char *first)
{
    struct text t = {NULL, 0, 0};
    if (a[0].i < 0)
        run_fail(r, "strings: negative Repeat count");
    text_puts(r, &t, first);
    text_fill(r, &t, ' ', a[0].u);
    for (size_t i = 0; i < a[1].n; i++) {
        text_putc(r, &t, a[1].s[i]);
        if (a[1].s[i] == '\n')
            text_fill(r, &t, ' ', a[0].u);
    }
    return text_gv(&t);
}

static struct gv
fn_indent(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return indent_text(r, a, "");
}

static struct gv
fn_nindent(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return indent_text(r, a, "\n");
}

static struct gv
fn_replace(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return strs_replace(r, a[2], a[0], a[1], -1);
}

static struct gv
fn_repeat(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    if (a[0].i < 0)
        run_fail(r, "strings: negative Repeat count");
    return strs_repeat(r, a[1], a[0].i);
}

static struct gv
fn_plural(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return a[2].i == 1 ? a[0] : a[1];
}

static struct gv
fn_contains(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_TRUE(strs_index(a[1], a[0]) != SIZE_MAX);
}

static struct gv
fn_has_prefix(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_TRUE(strs_has_prefix(a[1], a[0]));
}

static struct gv
fn_has_suffix(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_TRUE(strs_has_suffix(a[1], a[0]));
}

static struct gv
fn_to_string(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return cast_text(r, a[0]);
}

static struct gv
fn_to_strings(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return a[0].t == &gv_strings ? a[0] : cast_texts(r, a[0]);
}

static struct gv
fn_join(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return strs_join(r, cast_texts(r, a[1]), a[0]);
}

static struct gv
fn_split_list(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return strs_split(r, a[1], a[0], -1);
}

/* {"_0": first, "_1": second} */
static struct gv
number_parts(struct run *r, struct gv list)
{
    struct gv map = gv_map_new(r, &gv_map_string);
    for (size_t i = 0; i < gv_len(list); i++) {
        struct text k = {NULL, 0, 0};
        text_printf(r, &k, "_%zu", i);
        gv_map_put(r, map.map, text_gv(&k), list.list->v[i]);
    }
    return map;
}

static struct gv
fn_split(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return number_parts(r, strs_split(r, a[1], a[0], -1));
}

static struct gv
fn_splitn(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return number_parts(r, strs_split(r, a[2], a[0], a[1].i));
}

static struct gv
fn_wrap_with(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    struct gv sep = n == 3 && a[1].n ? a[1] : GV_LIT("\n"), s = a[n - 1];
    size_t width = a[0].i < 1 ? 1 : a[0].u, at = 0;
    bool cut = n == 3;
    while (at < s.n && s.n - at > width) {
        run_step(r, 1);
        if (s.s[at] == ' ') {
            at++;
            continue;
        }
        size_t end = strs_last_index(GV_TEXT(s.s + at, width + 1), GV_LIT(" ")), skip = 1;
        if (end == SIZE_MAX && cut) {
            end = width;
            skip = 0;
        } else if (end == SIZE_MAX) {
            end = strs_index(GV_TEXT(s.s + at + width, s.n - at - width), GV_LIT(" "));
            if (end == SIZE_MAX)
                break;
            end += width;
        }
        text_put(r, &t, s.s + at, end);
        text_put(r, &t, sep.s, sep.n);
        at += end + skip;
    }
    text_put(r, &t, s.s + at, s.n - at);
    return text_gv(&t);
}

/* --- encodings and digests --- */

static struct gv
fn_b64enc(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return hash_base64(r, a[0], false);
}

static struct gv
fn_b64dec(struct run *r, struct gv *a, size_t n)
{
    struct gv ret;
    struct text t = {NULL, 0, 0};
    (void)n;
    size_t bad = hash_base64_decode(r, a[0], false, &ret);
    if (bad == SIZE_MAX)
        return ret;
    text_printf(r, &t, "illegal base64 data at input byte %zu", bad);
    return text_gv(&t);
}

static struct gv
fn_b32enc(struct run *r, struct gv *a, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    static const uint8_t used[] = {0, 2, 4, 5, 7, 8};
    struct text t = {NULL, 0, 0};
    (void)n;
    for (size_t i = 0; i < a[0].n; i += 5) {
        uint64_t v = 0;
        size_t left = a[0].n - i < 5 ? a[0].n - i : 5;
        for (size_t k = 0; k < 5; k++)
            v = v << 8 | (k < left ? (uint8_t)a[0].s[i + k] : 0);
        for (size_t k = 0; k < 8; k++)
            text_putc(r, &t, k < used[left] ? digits[v >> (35 - 5 * k) & 31] : '=');
    }
    return text_gv(&t);
}

/* The digits of up to eight characters from i on, and how many; what is wrong, or SIZE_MAX. */
static size_t
take_base32(struct gv s, size_t i, uint64_t *v, size_t *have)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    *v = 0;
    for (*have = 0; *have < 8; (*have)++) {
        size_t at = i + *have, left = at < s.n ? s.n - at - 1 : 0;
        if (at >= s.n)
            return i;
        const char *d = s.s[at] ? strchr(digits, s.s[at]) : NULL;
        if (d) {
            *v |= (uint64_t)(d - digits) << (35 - 5 * *have);
            continue;
        }
        if (s.s[at] != '=' || *have < 2 || left >= 8)
            return at;
        if (left + *have < 7)
            return s.n;
        for (size_t k = 0; k < 7 - *have; k++)
            if (s.s[at + 1 + k] != '=')
                return at + k;
        return *have == 3 || *have == 6 ? at : SIZE_MAX;
    }
    return SIZE_MAX;
}

static size_t
decode_base32(struct run *r, struct gv s, struct text *t)
{
    for (size_t i = 0, have = 8; i < s.n && have == 8; i += 8) {
        uint64_t v;
        size_t bad = take_base32(s, i, &v, &have);
        if (bad != SIZE_MAX)
            return bad;
        for (size_t k = 0; k < have * 5 / 8; k++)
            text_putc(r, t, (char)(v >> (32 - 8 * k)));
    }
    return SIZE_MAX;
}

static struct gv
fn_b32dec(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    (void)n;
    size_t bad = decode_base32(r, strs_replace(r, a[0], GV_LIT("\n"), GV_LIT(""), -1), &t);
    if (bad == SIZE_MAX)
        return text_gv(&t);
    t.n = 0;
    text_printf(r, &t, "illegal base32 data at input byte %zu", bad);
    return text_gv(&t);
}

static struct gv
fn_sha1(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return hash_hex(r, TEMPLATE_SHA1, a[0]);
}

static struct gv
fn_sha256(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return hash_hex(r, TEMPLATE_SHA256, a[0]);
}

static struct gv
fn_sha512(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return hash_hex(r, TEMPLATE_SHA512, a[0]);
}

static struct gv
fn_adler32(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    uint32_t low = 1, high = 0;
    (void)n;
    for (size_t i = 0; i < a[0].n; i++) {
        low = (low + (uint8_t)a[0].s[i]) % 65521;
        high = (high + low) % 65521;
    }
    text_printf(r, &t, "%u", high << 16 | low);
    return text_gv(&t);
}

/* --- regular expressions --- */

static struct gv
fn_regex_match(struct run *r, struct gv *a, size_t n)
{
    struct regexp x;
    size_t from, to;
    (void)n;
    regexp_open(r, &x, a[0]);
    bool found = regexp_find(&x, a[1], 0, &from, &to);
    regexp_close(&x);
    return GV_TRUE(found);
}

static struct gv
fn_regex_find(struct run *r, struct gv *a, size_t n)
{
    struct regexp x;
    size_t from, to;
    (void)n;
    regexp_open(r, &x, a[0]);
    bool found = regexp_find(&x, a[1], 0, &from, &to);
    regexp_close(&x);
    return found ? GV_TEXT(a[1].s + from, to - from) : GV_LIT("");
}

static struct gv
fn_regex_find_all(struct run *r, struct gv *a, size_t n)
{
    struct regexp x;
    size_t(*m)[2];
    (void)n;
    regexp_open(r, &x, a[0]);
    size_t count = regexp_find_all(&x, a[1], a[2].i < 0 ? -1 : a[2].i, &m);
    regexp_close(&x);
    if (count == 0)
        return gv_zero(&gv_strings);
    struct gv list = gv_list_new(r, &gv_strings, count);
    for (size_t i = 0; i < count; i++)
        gv_list_add(r, list.list, GV_TEXT(a[1].s + m[i][0], m[i][1] - m[i][0]));
    return list;
}

static struct gv
replace_regex(struct run *r, struct gv *a, bool literal)
{
    struct regexp x;
    regexp_open(r, &x, a[0]);
    struct gv s = regexp_replace(&x, a[1], a[2], literal);
    regexp_close(&x);
    return s;
}

static struct gv
fn_regex_replace_all(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return replace_regex(r, a, false);
}

static struct gv
fn_regex_replace_literal(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return replace_regex(r, a, true);
}

static struct gv
fn_regex_split(struct run *r, struct gv *a, size_t n)
{
    struct regexp x;
    struct gv list = gv_list_new(r, &gv_strings, 0), s = a[1];
    size_t(*m)[2], from = 0, end = 0;
    int64_t limit = a[2].i;
    (void)n;
    if (limit == 0)
        return gv_zero(&gv_strings);
    if (a[0].n > 0 && s.n == 0) {
        gv_list_add(r, list.list, s);
        return list;
    }
    regexp_open(r, &x, a[0]);
    size_t count = regexp_find_all(&x, s, limit, &m);
    regexp_close(&x);
    for (size_t i = 0; i < count; i++) {
        if (limit > 0 && (int64_t)list.list->n == limit - 1)
            break;
        end = m[i][0];
        if (m[i][1] != 0)
            gv_list_add(r, list.list, GV_TEXT(s.s + from, end - from));
        from = m[i][1];
    }
    if (end != s.n)
        gv_list_add(r, list.list, GV_TEXT(s.s + from, s.n - from));
    return list;
}

static struct gv
fn_regex_quote(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    (void)n;
    for (size_t i = 0; i < a[0].n; i++) {
        if (a[0].s[i] && strchr("\\.+*?()|[]{}^$", a[0].s[i]))
            text_putc(r, &t, '\\');
        text_putc(r, &t, a[0].s[i]);
    }
    return text_gv(&t);
}

/* --- paths --- */

static struct gv
fn_base(struct run *r, struct gv *a, size_t n)
{
    struct gv s = a[0];
    (void)r, (void)n;
    if (s.n == 0)
        return GV_LIT(".");
    while (s.n > 0 && s.s[s.n - 1] == '/')
        s.n--;
    size_t at = strs_last_index(s, GV_LIT("/"));
    if (at != SIZE_MAX)
        s = GV_TEXT(s.s + at + 1, s.n - at - 1);
    return s.n ? s : GV_LIT("/");
}

static struct gv
clean_path(struct run *r, struct gv s)
{
    struct text t = {NULL, 0, 0};
    bool rooted = s.n > 0 && s.s[0] == '/';
    size_t keep = rooted;
    text_puts(r, &t, rooted ? "/" : "");
    struct gv parts = strs_split(r, s, GV_LIT("/"), -1);
    for (size_t i = 0; i < gv_len(parts); i++) {
        struct gv p = parts.list->v[i];
        bool up = p.n == 2 && memcmp(p.s, "..", 2) == 0;
        if (p.n == 0 || (p.n == 1 && *p.s == '.'))
            continue;
        if (up && t.n > keep) {
            while (t.n > keep && t.s[t.n - 1] != '/')
                t.n--;
            t.n -= t.n > keep;
            continue;
        }
        if (up && rooted)
            continue;
        if (t.n > rooted)
            text_putc(r, &t, '/');
        text_put(r, &t, p.s, p.n);
        if (up)
            keep = t.n;
    }
    return t.n ? text_gv(&t) : GV_LIT(".");
}

static struct gv
fn_clean(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return clean_path(r, a[0]);
}

static struct gv
fn_dir(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    size_t at = strs_last_index(a[0], GV_LIT("/"));
    return clean_path(r, at == SIZE_MAX ? GV_LIT("") : GV_TEXT(a[0].s, at + 1));
}

static struct gv
fn_ext(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    for (size_t i = a[0].n; i > 0 && a[0].s[i - 1] != '/'; i--)
        if (a[0].s[i - 1] == '.')
            return GV_TEXT(a[0].s + i - 1, a[0].n - i + 1);
    return GV_LIT("");
}

static struct gv
fn_is_abs(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_TRUE(a[0].n > 0 && a[0].s[0] == '/');
}

const struct function functions_sprig_text[] = {
    {"sprig_trim", fn_trim, "s", FUNCTION_PLAIN},
    {"sprig_trimAll", fn_trim_all, "ss", FUNCTION_PLAIN},
    {"sprig_trimall", fn_trim_all, "ss", FUNCTION_PLAIN},
    {"sprig_trimPrefix", fn_trim_prefix, "ss", FUNCTION_PLAIN},
    {"sprig_trimSuffix", fn_trim_suffix, "ss", FUNCTION_PLAIN},
    {"sprig_trunc", fn_trunc, "is", FUNCTION_PLAIN},
    {"sprig_substr", fn_substr, "iis", FUNCTION_PLAIN},
    {"sprig_abbrev", fn_abbrev, "is", FUNCTION_PLAIN},
    {"sprig_abbrevboth", fn_abbrev_both, "iis", FUNCTION_PLAIN},
    {"sprig_cat", fn_cat, "a.", FUNCTION_PLAIN},
    {"sprig_quote", fn_quote, "a.", FUNCTION_PLAIN},
    {"sprig_squote", fn_squote, "a.", FUNCTION_PLAIN},
    {"sprig_indent", fn_indent, "is", FUNCTION_PLAIN},
    {"sprig_nindent", fn_nindent, "is", FUNCTION_PLAIN},
    {"sprig_replace", fn_replace, "sss", FUNCTION_PLAIN},
    {"sprig_repeat", fn_repeat, "is", FUNCTION_PLAIN},
    {"sprig_plural", fn_plural, "ssi", FUNCTION_PLAIN},
    {"sprig_contains", fn_contains, "ss", FUNCTION_PLAIN},
    {"sprig_hasPrefix", fn_has_prefix, "ss", FUNCTION_PLAIN},
    {"sprig_hasSuffix", fn_has_suffix, "ss", FUNCTION_PLAIN},
    {"sprig_toString", fn_to_string, "a", FUNCTION_PLAIN},
    {"sprig_toStrings", fn_to_strings, "a", FUNCTION_PLAIN},
    {"sprig_join", fn_join, "sa", FUNCTION_PLAIN},
    {"sprig_splitList", fn_split_list, "ss", FUNCTION_PLAIN},
    {"sprig_split", fn_split, "ss", FUNCTION_PLAIN},
    {"sprig_splitn", fn_splitn, "sis", FUNCTION_PLAIN},
    {"sprig_wrap", fn_wrap_with, "is", FUNCTION_PLAIN},
    {"sprig_wrapWith", fn_wrap_with, "iss", FUNCTION_PLAIN},
    {"sprig_b64enc", fn_b64enc, "s", FUNCTION_PLAIN},
    {"sprig_b64dec", fn_b64dec, "s", FUNCTION_PLAIN},
    {"sprig_b32enc", fn_b32enc, "s", FUNCTION_PLAIN},
    {"sprig_b32dec", fn_b32dec, "s", FUNCTION_PLAIN},
    {"sprig_sha1sum", fn_sha1, "s", FUNCTION_PLAIN},
    {"sprig_sha256sum", fn_sha256, "s", FUNCTION_PLAIN},
    {"sprig_sha512sum", fn_sha512, "s", FUNCTION_PLAIN},
    {"sprig_adler32sum", fn_adler32, "s", FUNCTION_PLAIN},
    {"sprig_regexMatch", fn_regex_match, "ss", FUNCTION_PLAIN},
    {"sprig_mustRegexMatch", fn_regex_match, "ss", FUNCTION_PLAIN},
    {"sprig_regexFind", fn_regex_find, "ss", FUNCTION_PLAIN},
    {"sprig_mustRegexFind", fn_regex_find, "ss", FUNCTION_PLAIN},
    {"sprig_regexFindAll", fn_regex_find_all, "ssi", FUNCTION_PLAIN},
    {"sprig_mustRegexFindAll", fn_regex_find_all, "ssi", FUNCTION_PLAIN},
    {"sprig_regexReplaceAll", fn_regex_replace_all, "sss", FUNCTION_PLAIN},
    {"sprig_mustRegexReplaceAll", fn_regex_replace_all, "sss", FUNCTION_PLAIN},
    {"sprig_regexReplaceAllLiteral", fn_regex_replace_literal, "sss", FUNCTION_PLAIN},
    {"sprig_mustRegexReplaceAllLiteral", fn_regex_replace_literal, "sss", FUNCTION_PLAIN},
    {"sprig_regexSplit", fn_regex_split, "ssi", FUNCTION_PLAIN},
    {"sprig_mustRegexSplit", fn_regex_split, "ssi", FUNCTION_PLAIN},
    {"sprig_regexQuoteMeta", fn_regex_quote, "s", FUNCTION_PLAIN},
    {"sprig_base", fn_base, "s", FUNCTION_PLAIN},
    {"sprig_osBase", fn_base, "s", FUNCTION_PLAIN},
    {"sprig_dir", fn_dir, "s", FUNCTION_PLAIN},
    {"sprig_osDir", fn_dir, "s", FUNCTION_PLAIN},
    {"sprig_clean", fn_clean, "s", FUNCTION_PLAIN},
    {"sprig_osClean", fn_clean, "s", FUNCTION_PLAIN},
    {"sprig_ext", fn_ext, "s", FUNCTION_PLAIN},
    {"sprig_osExt", fn_ext, "s", FUNCTION_PLAIN},
    {"sprig_isAbs", fn_is_abs, "s", FUNCTION_PLAIN},
    {"sprig_osIsAbs", fn_is_abs, "s", FUNCTION_PLAIN},
    {NULL, NULL, NULL, FUNCTION_PLAIN},
};
