/* SPDX-License-Identifier: Apache-2.0
 *
 * Text functions of consul-template: the subject comes last, as through a pipe. The table at the
 * end names them.
 */
#include <string.h>

#include "common/mem.h"
#include "template/fmt.h"
#include "template/func/hash.h"
#include "template/func/regexp.h"
#include "template/func/strs.h"
#include "template/funcs.h"
#include "template/strconv.h"

/* --- whether it is in there --- */

static bool
same_basic(struct run *r, struct gv a, struct gv b)
{
    if (gv_kind(a) == GV_STRING && gv_none(b))
        run_fail(r, "reflect: call of reflect.Value.Type on zero Value");
    if (gv_kind(a) != gv_kind(b))
        return false;
    switch (gv_kind(a)) {
    case GV_INT:
        return a.i == b.i;
    case GV_FLOAT:
        return a.f == b.f;
    case GV_STRING:
        return a.t == b.t && a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
    default:
        return false;
    }
}

static bool
holds_value(struct run *r, struct gv list, struct gv v)
{
    if (gv_kind(list) == GV_STRING && gv_none(v))
        run_fail(r, "reflect: call of reflect.Value.Type on zero Value");
    if (gv_kind(list) == GV_STRING)
        return gv_kind(v) == GV_STRING && strs_index(list, v) != SIZE_MAX;
    if (gv_kind(list) != GV_LIST)
        return false;
    run_step(r, gv_len(list) / 16);
    for (size_t i = 0; i < gv_len(list); i++)
        if (same_basic(r, list.list->v[i], v))
            return true;
    return false;
}

static struct gv
fn_in(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return GV_TRUE(holds_value(r, a[0], a[1]));
}

static struct gv
fn_contains(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return GV_TRUE(holds_value(r, a[1], a[0]));
}

/* `all`: what is true where no value decides; a value decides by being in there, or by not being.
 */
static struct gv
contains_some(struct run *r, struct gv *a, bool all, bool invert)
{
    for (size_t i = 0; i < gv_len(a[0]); i++)
        if (holds_value(r, a[1], a[0].list->v[i]) != invert)
            return GV_TRUE(!all);
    return GV_TRUE(all);
}

static struct gv
fn_contains_all(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return contains_some(r, a, true, true);
}

static struct gv
fn_contains_any(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return contains_some(r, a, false, false);
}

static struct gv
fn_contains_none(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return contains_some(r, a, true, false);
}

static struct gv
fn_contains_not_all(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return contains_some(r, a, false, true);
}

/* --- text to text --- */

static struct gv
fn_indent(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    struct gv s = a[1];
    bool first = true;
    (void)n;
    if (a[0].i < 0)
        run_fail(r, "indent value must be a positive integer");
    for (size_t i = 0; i < s.n; i++) {
        if (first && s.s[i] != '\n')
            text_fill(r, &t, ' ', a[0].u);
        text_putc(r, &t, s.s[i]);
        first = s.s[i] == '\n';
    }
    return text_gv(&t);
}

static struct gv
fn_join(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return strs_join(r, a[1], a[0]);
}

static struct gv
fn_trim(struct run *r, struct gv *a, size_t n)
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
fn_trim_space(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return strs_trim_space(a[0]);
}

static struct gv
fn_replace_all(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return strs_replace(r, a[2], a[0], a[1], -1);
}

static struct gv
fn_to_lower(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return strs_case(r, a[0], RUNE_LOWER);
}

static struct gv
fn_to_upper(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return strs_case(r, a[0], RUNE_UPPER);
}

/* Letters, digits, and what stands between two letters without parting them. */
static bool
in_word(struct gv s, size_t i, uint32_t c, bool inside)
{
    uint32_t next = 0;
    if (rune_letter(c) || rune_digit(c) || c == '_')
        return true;
    if (!inside || !(c == '.' || c == ':' || c == '\'' || c == 0x2019) || i >= s.n)
        return false;
    rune_take(s.s + i, s.n - i, &next);
    return rune_letter(next);
}

/* The first letter of each word; the rest stays. */
static struct gv
fn_to_title(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    bool inside = false, done = false;
    uint32_t c;
    (void)n;
    run_step(r, a[0].n / 16);
    for (size_t i = 0; i < a[0].n;) {
        i += rune_take(a[0].s + i, a[0].n - i, &c);
        bool word = in_word(a[0], i, c, inside && done);
        done = done && word;
        inside = word;
        if (inside && !done && c == 0xdf) {
            text_putc(r, &t, 'S');
            c = 's';
            done = true;
        } else if (inside && !done && rune_letter(c)) {
            c = rune_to(RUNE_TITLE, c);
            done = true;
        }
        text_rune(r, &t, c);
    }
    return text_gv(&t);
}

static struct gv
fn_split(struct run *r, struct gv *a, size_t n)
{
    struct gv s = strs_trim_space(a[1]);
    (void)n;
    return s.n ? strs_split(r, s, a[0], -1) : gv_list_new(r, &gv_strings, 0);
}

static struct gv
fn_split_to_map(struct run *r, struct gv *a, size_t n)
{
    struct gv map = gv_map_new(r, &gv_map_string), s = strs_trim_space(a[2]);
    (void)n;
    if (s.n == 0)
        return map;
    struct gv parts = strs_split(r, s, a[0], -1);
    for (size_t i = 0; i < gv_len(parts); i++) {
        struct gv p = parts.list->v[i];
        size_t at = strs_index(p, a[1]);
        if (at != SIZE_MAX)
            gv_map_put(r, map.map, GV_TEXT(p.s, at), GV_TEXT(p.s + at + a[1].n, p.n - at - a[1].n));
    }
    return map;
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
fn_regex_replace_all(struct run *r, struct gv *a, size_t n)
{
    struct regexp x;
    (void)n;
    regexp_open(r, &x, a[0]);
    struct gv s = regexp_replace(&x, a[2], a[1], false);
    regexp_close(&x);
    return s;
}

/* --- digests and base64 --- */

static struct gv
fn_sha256(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return hash_hex(r, TEMPLATE_SHA256, a[0]);
}

static struct gv
fn_md5(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return hash_hex(r, TEMPLATE_MD5, a[0]);
}

static struct gv
fn_hmac(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return hash_hmac_hex(r, TEMPLATE_SHA256, a[0], a[1]);
}

static struct gv
fn_base64_encode(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return hash_base64(r, a[0], false);
}

static struct gv
fn_base64_url_encode(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return hash_base64(r, a[0], true);
}

static struct gv
decode_base64(struct run *r, struct gv s, bool url)
{
    struct gv ret;
    size_t bad = hash_base64_decode(r, s, url, &ret);
    if (bad != SIZE_MAX)
        run_fail(r, "%s: illegal base64 data at input byte %zu",
                 url ? "base64URLDecode" : "base64Decode", bad);
    return ret;
}

static struct gv
fn_base64_decode(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return decode_base64(r, a[0], false);
}

static struct gv
fn_base64_url_decode(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return decode_base64(r, a[0], true);
}

/* --- text to numbers --- */

static _Noreturn void
parse_failed(struct run *r, const char *fn, const char *go, struct gv s, enum strconv why)
{
    struct text t = {NULL, 0, 0};
    text_quote(r, &t, s.s, s.n);
    run_fail(r, "%s: strconv.%s: parsing %s: %s", fn, go, text_str(r, &t), strconv_words(why));
}

static struct gv
fn_parse_int(struct run *r, struct gv *a, size_t n)
{
    int64_t v = 0;
    (void)n;
    enum strconv rc = a[0].n ? strconv_int(a[0].s, a[0].n, 10, &v) : STRCONV_OK;
    if (rc)
        parse_failed(r, "parseInt", "ParseInt", a[0], rc);
    return GV_LONG(v);
}

static struct gv
fn_parse_uint(struct run *r, struct gv *a, size_t n)
{
    uint64_t v = 0;
    (void)n;
    enum strconv rc = a[0].n ? strconv_uint(a[0].s, a[0].n, 10, &v) : STRCONV_OK;
    if (rc)
        parse_failed(r, "parseUint", "ParseUint", a[0], rc);
    return (struct gv){.t = &gv_uint64, .u = v};
}

static struct gv
fn_parse_float(struct run *r, struct gv *a, size_t n)
{
    double v = 0;
    (void)n;
    enum strconv rc = a[0].n ? strconv_float(a[0].s, a[0].n, &v) : STRCONV_OK;
    if (rc)
        parse_failed(r, "parseFloat", "ParseFloat", a[0], rc);
    return GV_REAL(v);
}

static struct gv
fn_parse_bool(struct run *r, struct gv *a, size_t n)
{
    static const char *const words[] = {"",  "0", "f", "F",    "FALSE", "false", "False",
                                        "1", "t", "T", "TRUE", "true",  "True"};
    (void)n;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strlen(words[i]) == a[0].n && memcmp(words[i], a[0].s, a[0].n) == 0)
            return GV_TRUE(i > 6);
    parse_failed(r, "parseBool", "ParseBool", a[0], STRCONV_SYNTAX);
}

/* --- counting --- */

static int64_t
loop_bound(struct run *r, struct gv v)
{
    if (gv_kind(v) == GV_INT || gv_kind(v) == GV_UINT)
        return v.i;
    if (gv_kind(v) == GV_STRING)
        return fn_parse_int(r, &v, 1).i;
    run_fail(r, "loop: bad argument type: %s", gv_none(v) ? "<nil>" : gv_type_name(v));
}

static struct gv
fn_loop(struct run *r, struct gv *a, size_t n)
{
    if (n != 1 && n != 2)
        run_fail(r, "loop: wrong number of arguments, expected 1 or 2, but got %zu", n);
    int64_t from = n == 2 ? loop_bound(r, a[0]) : 0;
    return (struct gv){.t = &gv_chan, .from = from, .to = loop_bound(r, a[n - 1])};
}

const struct function functions_text[] = {
    {"in", fn_in, "aa", FUNCTION_PLAIN},
    {"contains", fn_contains, "aa", FUNCTION_PLAIN},
    {"containsAll", fn_contains_all, "la", FUNCTION_PLAIN},
    {"containsAny", fn_contains_any, "la", FUNCTION_PLAIN},
    {"containsNone", fn_contains_none, "la", FUNCTION_PLAIN},
    {"containsNotAll", fn_contains_not_all, "la", FUNCTION_PLAIN},
    {"indent", fn_indent, "is", FUNCTION_PLAIN},
    {"join", fn_join, "sS", FUNCTION_PLAIN},
    {"trim", fn_trim, "ss", FUNCTION_PLAIN},
    {"trimPrefix", fn_trim_prefix, "ss", FUNCTION_PLAIN},
    {"trimSuffix", fn_trim_suffix, "ss", FUNCTION_PLAIN},
    {"trimSpace", fn_trim_space, "s", FUNCTION_PLAIN},
    {"replaceAll", fn_replace_all, "sss", FUNCTION_PLAIN},
    {"toLower", fn_to_lower, "s", FUNCTION_PLAIN},
    {"toUpper", fn_to_upper, "s", FUNCTION_PLAIN},
    {"toTitle", fn_to_title, "s", FUNCTION_PLAIN},
    {"split", fn_split, "ss", FUNCTION_PLAIN},
    {"splitToMap", fn_split_to_map, "sss", FUNCTION_PLAIN},
    {"regexMatch", fn_regex_match, "ss", FUNCTION_PLAIN},
    {"regexReplaceAll", fn_regex_replace_all, "sss", FUNCTION_PLAIN},
    {"sha256Hex", fn_sha256, "s", FUNCTION_PLAIN},
    {"md5sum", fn_md5, "s", FUNCTION_PLAIN},
    {"hmacSHA256Hex", fn_hmac, "ss", FUNCTION_PLAIN},
    {"base64Encode", fn_base64_encode, "s", FUNCTION_PLAIN},
    {"base64Decode", fn_base64_decode, "s", FUNCTION_PLAIN},
    {"base64URLEncode", fn_base64_url_encode, "s", FUNCTION_PLAIN},
    {"base64URLDecode", fn_base64_url_decode, "s", FUNCTION_PLAIN},
    {"parseInt", fn_parse_int, "s", FUNCTION_PLAIN},
    {"parseUint", fn_parse_uint, "s", FUNCTION_PLAIN},
    {"parseFloat", fn_parse_float, "s", FUNCTION_PLAIN},
    {"parseBool", fn_parse_bool, "s", FUNCTION_PLAIN},
    {"loop", fn_loop, "a.", FUNCTION_PLAIN},
    {NULL, NULL, NULL, FUNCTION_PLAIN},
};
