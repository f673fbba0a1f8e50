/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens of others: any bytes as a token; any bytes as the claims of one that is signed; and any
 * bytes as the name and parts of its header. Oracles: nothing passes that the key has not signed, a
 * token that it has signed does, and one byte less of its claims does not.
 */
#include <stdint.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include "api/acl/method.h"
#include "codec/base64.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/jwt/key.h"
#include "server/jwt/login.h"
#include "server/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { NOW_S = 1000000000 };

static EVP_PKEY *pair;
static struct jwt_keys *keys;

static void
begin(void)
{
    struct err e = ERR_INIT;
    BIO *b = BIO_new(BIO_s_mem());
    char *pem;

    pair = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    ASSERT(pair != NULL && b != NULL && PEM_write_bio_PUBKEY(b, pair) == 1);
    long n = BIO_get_mem_data(b, &pem);
    auto_mem char *text = mem_strndup(NULL, pem, (size_t)n);
    keys = jwt_keys_new();
    ASSERT(jwt_keys_add_pem(keys, text, &e) == 0);
    BIO_free(b);
}

/* Does with claims as a login does. */
static void
use_claims(const void *ctx, struct slice payload)
{
    struct acl_auth_method_config c = {.jwks_url = "https://x"};
    struct acl_auth_method m = {
        .name = "m", .type = "JWT", .token_name_format = "${value.a}-${value.p}"};
    struct acl_binding_rule r = {.id = "r",
                                 .bind_type = ACL_BIND_POLICY,
                                 .bind_name = "x${value.a}",
                                 .selector = "value.p != \"x\" and \"y\" in list.l"};
    struct login_rights rights = {.management = false};
    struct value *claims = NULL;
    struct err e = ERR_INIT;

    str_map_set(ctx, &c.claim_mappings, "a", "a");
    str_map_set(ctx, &c.claim_mappings, "/b/0/c~1d~0", "p");
    str_map_set(ctx, &c.list_claim_mappings, "l", "l");
    if (json_decode_value(ctx, payload, BUDGET(1 << 20), &claims, &e) < 0)
        return;
    if (login_check(&c, claims, NOW_S * NS_PER_S, &e) < 0)
        ASSERT(e.code == -ERR_FORBIDDEN);
    err_clear(&e);
    struct acl_login_claims *l = login_claims(ctx, &c, claims, &e);
    if (l == NULL) {
        ASSERT(e.code == -ERR_FORBIDDEN);
        return;
    }
    (void)login_token_name(ctx, &m, l, &e);
    err_clear(&e);
    if (login_bind(ctx, &r, l, &rights, &e) == 0 && rights.policies.n > 0)
        ASSERT(rights.policies.n == 1 && rights.policies.v[0][0] == 'x' &&
               strlen(rights.policies.v[0]) <= 128);
    ASSERT(!rights.management && rights.roles.n == 0);
}

static bool
passes(const void *ctx, const char *token, struct jwt_token *t)
{
    struct err e = ERR_INIT;

    return jwt_read(ctx, token, JWT_LOGIN_MAX, t, &e) == 0 &&
           jwt_keys_verify(keys, t, NULL, &e) == 0;
}

static void
open_signed(const void *ctx, const char *head, const uint8_t *payload, size_t n, bool good)
{
    auto_buf struct buf b = BUF_INIT(1 << 20);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    uint8_t sig[64];
    size_t len = sizeof(sig);
    struct jwt_token t;

    base64url_encode(&b, head, strlen(head));
    buf_putc(&b, '.');
    base64url_encode(&b, payload, n);
    ASSERT(EVP_DigestSignInit(md, NULL, NULL, NULL, pair) == 1);
    ASSERT(EVP_DigestSign(md, sig, &len, b.data, b.len) == 1);
    EVP_MD_CTX_free(md);
    buf_putc(&b, '.');
    base64url_encode(&b, sig, len);
    bool passed = passes(ctx, buf_str(&b), &t);
    if (!good || b.len > JWT_LOGIN_MAX)
        return; /* the header may be a good one by chance */
    ASSERT(passed && t.payload.n == n && memcmp(t.payload.p, payload, n) == 0);
    use_claims(ctx, t.payload);
    char *other = mem_strdup(ctx, buf_str(&b)), *dot = strchr(other, '.');
    dot[1] = dot[1] == 'A' ? 'B' : 'A';
    ASSERT(!passes(ctx, other, &t));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct jwt_token t;

    if (keys == NULL)
        begin();
    if (n < 2 || n > 40000)
        return 0;
    auto_mem void *ctx = mem_ctx("fuzz");
    char *text = mem_strndup(ctx, (const char *)data + 1, n - 1);
    if (data[0] % 3 == 0)
        ASSERT(!passes(ctx, text, &t));
    else if (data[0] % 3 == 1)
        open_signed(ctx, "{\"alg\":\"EdDSA\"}", data + 1, n - 1, true);
    else
        open_signed(ctx, text, (const uint8_t *)"{}", 2, false);
    return 0;
}
