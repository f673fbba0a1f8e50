/* SPDX-License-Identifier: Apache-2.0 */
#include "template/func/hash.h"

#include <string.h>

static struct gv
hex_text(struct run *r, const uint8_t *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char *s = run_bytes(r, 2 * n);
    for (size_t i = 0; i < n; i++) {
        s[2 * i] = digits[p[i] >> 4];
        s[2 * i + 1] = digits[p[i] & 15];
    }
    return GV_TEXT(s, 2 * n);
}

static unsigned
digest_bytes(struct run *r, enum template_digest which, const void *p, size_t n,
             uint8_t out[TEMPLATE_DIGEST_MAX])
{
    template_digest_fn *digest = r->env != NULL ? r->env->digest : NULL;
    run_step(r, n / 64);
    unsigned len = digest != NULL ? digest(which, p, n, out) : 0;
    if (len == 0)
        run_fail(r, "the digest cannot be computed here");
    return len;
}

struct gv
hash_hex(struct run *r, enum template_digest which, struct gv s)
{
    uint8_t out[TEMPLATE_DIGEST_MAX];
    return hex_text(r, out, digest_bytes(r, which, s.s, s.n, out));
}

/* RFC 2104, with blocks of 64 bytes (SHA-1, SHA-256). */
struct gv
hash_hmac_hex(struct run *r, enum template_digest which, struct gv message, struct gv key)
{
    enum { BLOCK = 64 };
    uint8_t k[TEMPLATE_DIGEST_MAX + BLOCK] = {0}, out[TEMPLATE_DIGEST_MAX];
    uint8_t *inner = run_bytes(r, BLOCK + message.n), outer[BLOCK + TEMPLATE_DIGEST_MAX];
    if (key.n > BLOCK)
        digest_bytes(r, which, key.s, key.n, k);
    else
        memcpy(k, key.s, key.n);
    for (size_t i = 0; i < BLOCK; i++) {
        inner[i] = k[i] ^ 0x36;
        outer[i] = k[i] ^ 0x5c;
    }
    memcpy(inner + BLOCK, message.s, message.n);
    unsigned n = digest_bytes(r, which, inner, BLOCK + message.n, outer + BLOCK);
    return hex_text(r, out, digest_bytes(r, which, outer, BLOCK + n, out));
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

struct gv
hash_base64(struct run *r, struct gv s, bool url)
{
    char digits[65], *out = run_bytes(r, (s.n + 2) / 3 * 4);
    size_t k = 0;
    memcpy(digits, alphabet, 62);
    memcpy(digits + 62, url ? "-_" : "+/", 3);
    run_step(r, s.n / 64);
    for (size_t i = 0; i < s.n; i += 3) {
        size_t left = s.n - i;
        uint32_t v = (uint32_t)(uint8_t)s.s[i] << 16;
        v |= left > 1 ? (uint32_t)(uint8_t)s.s[i + 1] << 8 : 0;
        v |= left > 2 ? (uint32_t)(uint8_t)s.s[i + 2] : 0;
        out[k++] = digits[v >> 18];
        out[k++] = digits[v >> 12 & 63];
        out[k++] = left > 1 ? digits[v >> 6 & 63] : '=';
        out[k++] = left > 2 ? digits[v & 63] : '=';
    }
    return GV_TEXT(out, k);
}

static int
digit_value(char c, bool url)
{
    const char *p = c ? strchr(alphabet, c) : NULL;
    if (p)
        return (int)(p - alphabet);
    return c == (url ? '-' : '+') ? 62 : c == (url ? '_' : '/') ? 63 : -1;
}

static bool
is_break(char c)
{
    return c == '\n' || c == '\r';
}

/* The padding at s[i], behind `have` digits of four; what is wrong, or SIZE_MAX. */
static size_t
check_padding(struct gv s, size_t i, size_t have)
{
    if (have < 2)
        return i;
    if (have == 2) {
        for (i++; i < s.n && is_break(s.s[i]);)
            i++;
        if (i == s.n)
            return s.n;
        if (s.s[i] != '=')
            return i - 1;
    }
    for (i++; i < s.n && is_break(s.s[i]);)
        i++;
    return i < s.n ? i : SIZE_MAX;
}

size_t
hash_base64_decode(struct run *r, struct gv s, bool url, struct gv *ret)
{
    char *out = run_bytes(r, s.n);
    size_t k = 0, have = 0;
    uint32_t v = 0;
    run_step(r, s.n / 64);
    for (size_t i = 0; i < s.n; i++) {
        if (is_break(s.s[i]))
            continue;
        if (s.s[i] == '=') {
            size_t bad = check_padding(s, i, have);
            if (bad != SIZE_MAX)
                return bad;
            out[k++] = (char)(have == 2 ? v >> 4 : v >> 10);
            if (have == 3)
                out[k++] = (char)(v >> 2);
            have = 0;
            break;
        }
        int d = digit_value(s.s[i], url);
        if (d < 0)
            return i;
        v = v << 6 | (uint32_t)d;
        if (++have == 4) {
            out[k++] = (char)(v >> 16);
            out[k++] = (char)(v >> 8);
            out[k++] = (char)v;
            have = 0;
        }
    }
    *ret = GV_TEXT(out, k);
    return have ? s.n - have : SIZE_MAX;
}
