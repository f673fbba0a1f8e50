/* SPDX-License-Identifier: Apache-2.0
 *
 * Identities of tasks (see jwt.h). A token that is read is a stranger's until its signature is
 * good: of it are looked at its length, its three parts, and of the header the algorithm, which is
 * RS256 and no other, and the name of the key. The claims are read behind that.
 */
#include "server/keys/jwt.h"

#include <inttypes.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "codec/base64.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/state/state.h"

enum { SKEW_S = 5 /* of the clocks of servers */ };

/* --- base64url, without padding --- */

/* Decodes strictly; n 0: it is none. Owned by ctx. */
static struct slice
get_base64url(const void *ctx, const char *s, size_t n)
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

/* --- signing --- */

static void
put_text(struct buf *b, const char *name, const char *text)
{
    if (str_empty(text))
        return;
    buf_printf(b, ",\"%s\":", name);
    json_put_string(b, text, strlen(text));
}

static void
put_audience(struct buf *b, const struct str_list *l)
{
    buf_puts(b, l->n == 1 ? "{\"aud\":" : "{\"aud\":[");
    for (size_t i = 0; i < l->n; i++) {
        buf_puts(b, i > 0 ? "," : "");
        json_put_string(b, str_or(l->v[i], ""), strlen(str_or(l->v[i], "")));
    }
    buf_puts(b, l->n == 1 ? "" : "]");
}

static void
put_claims(const void *ctx, struct buf *b, const struct jwt_claims *c)
{
    put_audience(b, &c->audience);
    if (c->expires != 0)
        buf_printf(b, ",\"exp\":%" PRId64, c->expires);
    buf_printf(b, ",\"iat\":%" PRId64 ",\"nbf\":%" PRId64, c->issued, c->issued);
    put_text(b, "jti", c->id);
    put_text(b, "iss", c->issuer);
    put_text(b, "sub",
             mem_printf(ctx, "%s:%s:%s:%s:%s:%s", c->region, c->namespace, c->job, c->group,
                        c->task, c->identity));
    put_text(b, "nomad_namespace", c->namespace);
    put_text(b, "nomad_job_id", c->job);
    put_text(b, "nomad_allocation_id", c->alloc);
    put_text(b, "nomad_task", c->task);
    for (size_t i = 0; c->extra != NULL && i < c->extra->n; i++) {
        buf_puts(b, i == 0 ? ",\"extra_claims\":{" : ",");
        json_put_string(b, c->extra->v[i].k, strlen(c->extra->v[i].k));
        buf_putc(b, ':');
        json_put_string(b, str_or(c->extra->v[i].v, ""), strlen(str_or(c->extra->v[i].v, "")));
        buf_puts(b, i + 1 == c->extra->n ? "}" : "");
    }
    buf_putc(b, '}');
}

static void
put_signature(struct buf *b, EVP_PKEY *rsa)
{
    uint8_t sig[512];
    size_t n = sizeof(sig);
    EVP_MD_CTX *md = EVP_MD_CTX_new();

    ASSERT(md != NULL && EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, rsa) == 1);
    ASSERT(EVP_DigestSign(md, sig, &n, b->data, b->len) == 1);
    EVP_MD_CTX_free(md);
    buf_putc(b, '.');
    base64url_encode(b, sig, n);
}

char *
jwt_sign(const void *ctx, const struct key *k, const struct jwt_claims *c)
{
    auto_mem void *tmp = mem_ctx("jwt");
    auto_buf struct buf b = BUF_INIT(JWT_MAX), part = BUF_INIT(JWT_MAX);

    buf_printf(&part, "{\"alg\":\"RS256\",\"kid\":\"%s\",\"typ\":\"JWT\"}", k->id);
    base64url_encode(&b, part.data, part.len);
    buf_putc(&b, '.');
    part.len = 0;
    put_claims(tmp, &part, c);
    base64url_encode(&b, part.data, part.len);
    put_signature(&b, k->rsa);
    char *token = buf_error(&b) == 0 && buf_error(&part) == 0
                      ? mem_strndup(ctx, (const char *)b.data, b.len)
                      : NULL;
    seal_wipe(b.data, b.len);
    return token;
}

void
jwt_signed(void)
{
    OPENSSL_thread_stop();
}

/* --- reading --- */

static BIGNUM *
number_of(const void *ctx, const char *text)
{
    struct slice s = get_base64url(ctx, str_or(text, ""), strlen(str_or(text, "")));

    return s.n > 0 ? BN_bin2bn(s.p, (int)s.n, NULL) : NULL;
}

static EVP_PKEY *
public_key(const void *ctx, const struct root_key *row)
{
    BIGNUM *n = number_of(ctx, row->public_n), *e = number_of(ctx, row->public_e);
    EVP_PKEY_CTX *pc = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    OSSL_PARAM_BLD *pb = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;
    OSSL_PARAM *params = NULL;

    if (n != NULL && e != NULL && OSSL_PARAM_BLD_push_BN(pb, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
        OSSL_PARAM_BLD_push_BN(pb, OSSL_PKEY_PARAM_RSA_E, e) == 1)
        params = OSSL_PARAM_BLD_to_param(pb);
    if (params != NULL && EVP_PKEY_fromdata_init(pc) == 1)
        (void)EVP_PKEY_fromdata(pc, &key, EVP_PKEY_PUBLIC_KEY, params);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(pb);
    EVP_PKEY_CTX_free(pc);
    BN_free(n);
    BN_free(e);
    return key;
}

static bool
signature_is_good(EVP_PKEY *key, struct slice text, struct slice sig)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();

    ASSERT(md != NULL);
    bool good = key != NULL && EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestVerify(md, sig.p, sig.n, text.p, text.n) == 1;
    EVP_MD_CTX_free(md);
    return good;
}

static void *
json_part(const void *ctx, const struct type *t, struct slice text)
{
    struct err e = ERR_INIT;
    void *obj = NULL;

    return text.n > 0 && json_decode(ctx, t, text, BUDGET(64 << 10), &obj, &e) == 0 ? obj : NULL;
}

/* The claims of a token whose header and signature are good; NULL. */
static const struct jwt_payload *
jwt_verified(const void *ctx, struct state_txn *t, const char *token)
{
    const char *dot = strchr(token, '.'), *last = strrchr(token, '.');

    if (dot == NULL || dot == last || memchr(dot + 1, '.', (size_t)(last - dot - 1)) != NULL)
        return NULL;
    const struct jwt_header *h =
        json_part(ctx, &type_jwt_header, get_base64url(ctx, token, (size_t)(dot - token)));
    if (h == NULL || !str_eq(h->alg, "RS256") || str_empty(h->kid))
        return NULL;
    const struct root_key *row = state_root_key(t, ctx, h->kid);
    struct slice sig = get_base64url(ctx, last + 1, strlen(last + 1));
    if (row == NULL || sig.n == 0)
        return NULL;
    EVP_PKEY *key = public_key(ctx, row);
    bool good = signature_is_good(key, SLICE(token, (size_t)(last - token)), sig);
    EVP_PKEY_free(key);
    return good ? json_part(ctx, &type_jwt_payload,
                            get_base64url(ctx, dot + 1, (size_t)(last - dot - 1)))
                : NULL;
}

/* A list of it, or itself. */
static bool
is_for_us(const struct value *aud)
{
    if (aud == NULL)
        return false;
    if (aud->kind == VALUE_STRING)
        return str_eq(aud->str.s, JWT_AUDIENCE);
    for (size_t i = 0; aud->kind == VALUE_LIST && i < aud->list.n; i++)
        if (aud->list.v[i]->kind == VALUE_STRING && str_eq(aud->list.v[i]->str.s, JWT_AUDIENCE))
            return true;
    return false;
}

int
jwt_open(const void *ctx, struct state_txn *t, const char *token, int64_t now_s,
         struct jwt_claims *ret)
{
    const struct jwt_payload *p =
        strnlen(token, JWT_MAX + 1) <= JWT_MAX ? jwt_verified(ctx, t, token) : NULL;

    if (p == NULL || !is_for_us(p->aud) || p->nbf > now_s + SKEW_S ||
        (p->exp != 0 && p->exp <= now_s))
        return -ERR_FORBIDDEN;
    *ret = (struct jwt_claims){.expires = p->exp,
                               .issued = p->iat,
                               .namespace = p->nomad_namespace,
                               .job = p->nomad_job_id,
                               .task = p->nomad_task,
                               .alloc = p->nomad_allocation_id};
    return 0;
}
