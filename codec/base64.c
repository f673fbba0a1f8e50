/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 (RFC 4648), strict when decoding.
 */
#include "codec/base64.h"

#include <errno.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
base64_encode(struct buf *out, const void *data, size_t n)
{
    const uint8_t *p = data;
    uint8_t *w = buf_reserve(out, (n + 2) / 3 * 4);
    if (!w)
        return;
    uint8_t *start = w;
    for (; n > 0; p += 3) {
        uint32_t v = (uint32_t)p[0] << 16;
        if (n > 1)
            v |= (uint32_t)p[1] << 8;
        if (n > 2)
            v |= p[2];
        *w++ = (uint8_t)alphabet[v >> 18];
        *w++ = (uint8_t)alphabet[(v >> 12) & 63];
        *w++ = n > 1 ? (uint8_t)alphabet[(v >> 6) & 63] : '=';
        *w++ = n > 2 ? (uint8_t)alphabet[v & 63] : '=';
        n = n > 3 ? n - 3 : 0;
    }
    out->len += (size_t)(w - start);
}

void
base64url_encode(struct buf *out, const void *p, size_t n)
{
    size_t from = out->len;
    base64_encode(out, p, n);
    while (out->len > from && out->data[out->len - 1] == '=')
        out->len--;
    for (size_t i = from; i < out->len; i++)
        out->data[i] = out->data[i] == '+'   ? (uint8_t)'-'
                       : out->data[i] == '/' ? (uint8_t)'_'
                                             : out->data[i];
}

static int
base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int
base64_decode(const char *s, size_t n, uint8_t *out, size_t *ret_len)
{
    if (n % 4)
        return -EINVAL;
    size_t len = 0;
    for (size_t i = 0; i < n; i += 4) {
        size_t pad = 0;
        uint32_t v = 0;
        for (size_t j = 0; j < 4; j++) {
            int d = base64_digit(s[i + j]);
            if (s[i + j] == '=' && i + 4 == n && j >= 2) {
                pad++;
                d = 0;
            } else if (d < 0 || pad) {
                return -EINVAL;
            }
            v = v << 6 | (uint32_t)d;
        }
        if ((pad == 1 && (v & 0xff)) || (pad == 2 && (v & 0xffff)))
            return -EINVAL;
        out[len++] = (uint8_t)(v >> 16);
        if (pad < 2)
            out[len++] = (uint8_t)(v >> 8);
        if (pad < 1)
            out[len++] = (uint8_t)v;
    }
    *ret_len = len;
    return 0;
}
