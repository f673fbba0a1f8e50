/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a JSON Web Token (see token.h).
 */
#include "server/jwt/token.h"

#include <string.h>

#include "codec/base64.h"
#include "common/mem.h"
#include "common/str.h"

enum { HEADER_MAX = 4096, HEADER_BUDGET = 64 << 10 };

struct slice
jwt_base64url(const void *ctx, const char *s, size_t n)
{
    size_t whole = (n + 3) / 4 * 4, len = 0;
    char *text = mem_array(ctx, char, whole + 1);
    uint8_t *out = mem_array(ctx, uint8_t, BASE64_DECODED(whole) + 1);

    for (size_t i = 0; i < whole; i++) {
        char c = i < n ? s[i] : '=';
        if (i < n && (c == '+' || c == '/' || c == '='))
            return SLICE(out, 0);
        text[i] = c == '-' ? '+' : c == '_' ? '/' : c;
    }
    return base64_decode(text, whole, out, &len) == 0 ? SLICE(out, len) : SLICE(out, 0);
}

static const char *
header_text(const struct value *header, const char *name)
{
    const struct value *v = value_get(header, name);

    return v != NULL && v->kind == VALUE_STRING ? v->str.s : "";
}

static int
read_header(const void *ctx, struct slice text, struct jwt_token *ret, struct err *e)
{
    struct value *header = NULL;
    struct err why = ERR_INIT;

    if (text.n == 0 || text.n > HEADER_MAX ||
        json_decode_value(ctx, text, BUDGET(HEADER_BUDGET), &header, &why) < 0 ||
        header->kind != VALUE_MAP)
        return err_set(e, -ERR_FORBIDDEN, "its header is no JSON");
    if (value_get(header, "crit") != NULL)
        return err_set(e, -ERR_FORBIDDEN, "its header has \"crit\", which is not understood");
    ret->alg = header_text(header, "alg");
    ret->kid = header_text(header, "kid");
    return str_empty(ret->alg) ? err_set(e, -ERR_FORBIDDEN, "its header names no algorithm") : 0;
}

int
jwt_read(const void *ctx, const char *token, size_t max, struct jwt_token *ret, struct err *e)
{
    size_t n = strnlen(token, max + 1);

    if (n > max)
        return err_set(e, -ERR_FORBIDDEN, "it has more than %zu bytes", max);
    const char *dot = strchr(token, '.'), *last = strrchr(token, '.');
    if (dot == NULL || dot == last || memchr(dot + 1, '.', (size_t)(last - dot - 1)) != NULL)
        return err_set(e, -ERR_FORBIDDEN, "it is no signed JSON Web Token of three parts");
    struct jwt_token t = {.text = SLICE(token, (size_t)(last - token))};
    if (read_header(ctx, jwt_base64url(ctx, token, (size_t)(dot - token)), &t, e) < 0)
        return e != NULL && e->code != 0 ? e->code : -ERR_FORBIDDEN;
    t.payload = jwt_base64url(ctx, dot + 1, (size_t)(last - dot - 1));
    t.sig = jwt_base64url(ctx, last + 1, strlen(last + 1));
    if (t.payload.n == 0 || t.sig.n == 0)
        return err_set(e, -ERR_FORBIDDEN, "its %s is no base64url",
                       t.payload.n == 0 ? "payload" : "signature");
    *ret = t;
    return 0;
}
