/* SPDX-License-Identifier: Apache-2.0
 *
 * Sprig's urlParse and urlJoin: a URL as a dict of its parts, and back.
 */
#include <string.h>

#include "common/mem.h"
#include "template/func/cast.h"
#include "template/func/strs.h"
#include "template/funcs.h"
#include "template/strconv.h"

static _Noreturn void
bad_url(struct run *r, struct gv s, const char *words)
{
    struct text t = {NULL, 0, 0};
    text_quote(r, &t, s.s, s.n);
    run_fail(r, "unable to parse url: parse %s: %s", text_str(r, &t), words);
}

/* Up to the first mark, which is skipped; the rest is *rest. */
static struct gv
cut_text(struct gv s, const char *mark, struct gv *rest)
{
    size_t n = strlen(mark), at = strs_index(s, GV_TEXT(mark, n));
    *rest = at == SIZE_MAX ? GV_LIT("") : GV_TEXT(s.s + at + n, s.n - at - n);
    return at == SIZE_MAX ? s : GV_TEXT(s.s, at);
}

/* %XX become bytes. */
static struct gv
unescape_url(struct run *r, struct gv whole, struct gv s)
{
    struct text t = {NULL, 0, 0};
    for (size_t i = 0; i < s.n; i++) {
        uint64_t c = (uint8_t)s.s[i];
        if (c == '%') {
            if (s.n - i < 3 || strconv_uint(s.s + i + 1, 2, 16, &c) != STRCONV_OK) {
                struct text words = {NULL, 0, 0};
                text_puts(r, &words, "invalid URL escape ");
                text_quote(r, &words, s.s + i, s.n - i < 3 ? s.n - i : 3);
                bad_url(r, whole, text_str(r, &words));
            }
            i += 2;
        }
        text_putc(r, &t, (char)c);
    }
    return text_gv(&t);
}

/* "scheme:", taken off; nothing if it does not begin with one. */
static struct gv
take_scheme(struct run *r, struct gv whole, struct gv *s)
{
    for (size_t i = 0; i < s->n; i++) {
        uint8_t c = (uint8_t)s->s[i];
        bool letter = c < 0x80 && rune_letter(c);
        if (c == ':' && i == 0)
            bad_url(r, whole, "missing protocol scheme");
        if (c == ':') {
            struct gv scheme = strs_case(r, GV_TEXT(s->s, i), RUNE_LOWER);
            *s = GV_TEXT(s->s + i + 1, s->n - i - 1);
            return scheme;
        }
        if (!letter && (i == 0 || !(rune_digit(c) || c == '+' || c == '-' || c == '.')))
            break;
    }
    return GV_LIT("");
}

static void
put_part(struct run *r, struct gv map, const char *key, struct gv v)
{
    gv_map_put(r, map.map, GV_TEXT(key, strlen(key)), v);
}

static void
put_host(struct run *r, struct gv map, struct gv whole, struct gv host)
{
    size_t at = strs_last_index(host, GV_LIT("@"));
    struct gv name = host, port = GV_LIT("");
    if (at != SIZE_MAX) {
        put_part(r, map, "userinfo", GV_TEXT(host.s, at));
        name = host = GV_TEXT(host.s + at + 1, host.n - at - 1);
    }
    size_t bracket = strs_last_index(host, GV_LIT("]")), colon = strs_last_index(host, GV_LIT(":"));
    if (colon != SIZE_MAX && (bracket == SIZE_MAX || colon > bracket)) {
        name.n = colon;
        port = GV_TEXT(host.s + colon + 1, host.n - colon - 1);
    }
    for (size_t i = 0; i < port.n; i++)
        if (!rune_digit((uint8_t)port.s[i])) {
            struct text words = {NULL, 0, 0};
            text_puts(r, &words, "invalid port ");
            text_quote(r, &words, port.s - 1, port.n + 1);
            text_puts(r, &words, " after host");
            bad_url(r, whole, text_str(r, &words));
        }
    put_part(r, map, "host", host);
    if (name.n > 1 && name.s[0] == '[')
        name = GV_TEXT(name.s + 1, name.n - 2);
    put_part(r, map, "hostname", name);
}

static struct gv
fn_url_parse(struct run *r, struct gv *a, size_t n)
{
    static const char *const keys[] = {"fragment", "host",  "hostname", "opaque",
                                       "path",     "query", "scheme",   "userinfo"};
    struct gv map = gv_map_new(r, &gv_map_any), fragment, query, s = cut_text(a[0], "#", &fragment);
    (void)n;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        put_part(r, map, keys[i], GV_LIT(""));
    for (size_t i = 0; i < a[0].n; i++)
        if ((uint8_t)a[0].s[i] < ' ' || a[0].s[i] == 0x7f)
            bad_url(r, a[0], "net/url: invalid control character in URL");
    put_part(r, map, "fragment", unescape_url(r, a[0], fragment));
    struct gv scheme = take_scheme(r, s, &s);
    put_part(r, map, "scheme", scheme);
    struct gv path = cut_text(s, "?", &query);
    put_part(r, map, "query", query);
    if (scheme.n && path.n && path.s[0] != '/') {
        put_part(r, map, "opaque", path);
        return map;
    }
    size_t colon = strs_index(path, GV_LIT(":")), slash = strs_index(path, GV_LIT("/"));
    if (!scheme.n && colon != SIZE_MAX && colon < slash)
        bad_url(r, s, "first path segment in URL cannot contain colon");
    if (path.n >= 2 && memcmp(path.s, "//", 2) == 0 &&
        !(path.n > 2 && path.s[2] == '/' && !scheme.n)) {
        struct gv host = GV_TEXT(path.s + 2, path.n - 2);
        size_t at = strs_index(host, GV_LIT("/"));
        path = at == SIZE_MAX ? GV_LIT("") : GV_TEXT(host.s + at, host.n - at);
        host.n = at == SIZE_MAX ? host.n : at;
        put_host(r, map, a[0], host);
    }
    put_part(r, map, "path", unescape_url(r, a[0], path));
    return map;
}

static struct gv
part_text(struct run *r, struct gv map, const char *key)
{
    struct gv *v = gv_map_text(map, key);
    if (!v)
        return GV_LIT("");
    if (gv_none(*v))
        run_fail(r, "runtime error: invalid memory address or nil pointer dereference");
    if (gv_kind(*v) != GV_STRING)
        run_fail(r, "unable to parse %s key, must be of type string, but %s found", key,
                 cast_kind(*v));
    return *v;
}

static void
put_escaped(struct run *r, struct text *t, struct gv s, const char *plain)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.s[i];
        bool word = c < 0x80 && (rune_letter(c) || rune_digit(c));
        if (word || (c && strchr(plain, c)))
            text_putc(r, t, (char)c);
        else
            text_printf(r, t, "%%%02X", c);
    }
}

static struct gv
fn_url_join(struct run *r, struct gv *a, size_t n)
{
    static const char path_plain[] = "-_.~$&+,/:;=@!'()*";
    struct text t = {NULL, 0, 0};
    struct gv scheme = part_text(r, a[0], "scheme"), host = part_text(r, a[0], "host"),
              path = part_text(r, a[0], "path");
    struct gv query = part_text(r, a[0], "query"), opaque = part_text(r, a[0], "opaque");
    struct gv fragment = part_text(r, a[0], "fragment"), user = part_text(r, a[0], "userinfo");
    (void)n;
    if (scheme.n) {
        text_put(r, &t, scheme.s, scheme.n);
        text_putc(r, &t, ':');
    }
    if (opaque.n)
        text_put(r, &t, opaque.s, opaque.n);
    else {
        if (scheme.n || host.n || user.n) {
            if (host.n || path.n || user.n)
                text_puts(r, &t, "//");
            text_put(r, &t, user.s, user.n);
            text_puts(r, &t, user.n ? "@" : "");
            text_put(r, &t, host.s, host.n);
        }
        if (path.n && path.s[0] != '/' && host.n)
            text_putc(r, &t, '/');
        size_t colon = strs_index(path, GV_LIT(":"));
        if (t.n == 0 && colon != SIZE_MAX && colon < strs_index(path, GV_LIT("/")))
            text_puts(r, &t, "./");
        put_escaped(r, &t, path, path_plain);
    }
    if (query.n) {
        text_putc(r, &t, '?');
        text_put(r, &t, query.s, query.n);
    }
    if (fragment.n) {
        text_putc(r, &t, '#');
        put_escaped(r, &t, fragment, "-_.~$&+,/:;=?@!()*'");
    }
    return text_gv(&t);
}

const struct function functions_url[] = {
    {"sprig_urlParse", fn_url_parse, "s", FUNCTION_PLAIN},
    {"sprig_urlJoin", fn_url_join, "m", FUNCTION_PLAIN},
    {NULL, NULL, NULL, FUNCTION_PLAIN},
};
