/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens of others: which keys are taken, which signatures and claims are, and what rules make of
 * these.
 */
#include "tests/lib/test.h"

#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include "api/acl/method.h"
#include "codec/base64.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/addr.h"
#include "server/jwt/key.h"
#include "server/jwt/login.h"

#define NOW INT64_C(1000000000)

static void *ctx;

static void
setup(void)
{
    ctx = mem_ctx("jwt");
}

static void
teardown(void)
{
    talloc_free(ctx);
}

static const char *
pem_of(EVP_PKEY *pair)
{
    BIO *b = BIO_new(BIO_s_mem());
    char *text;
    ck_assert_int_eq(PEM_write_bio_PUBKEY(b, pair), 1);
    long n = BIO_get_mem_data(b, &text);
    char *pem = mem_strndup(ctx, text, (size_t)n);
    BIO_free(b);
    return pem;
}

static struct jwt_keys *
keys_of(EVP_PKEY *pair)
{
    struct jwt_keys *k = jwt_keys_new();
    struct err e = ERR_INIT;
    ck_assert_msg(jwt_keys_add_pem(k, pem_of(pair), &e) == 0, "%s", e.text);
    return k;
}

/* A token of Ed25519. */
static const char *
token_of(EVP_PKEY *pair, const char *head, const char *claims)
{
    auto_buf struct buf b = BUF_INIT(1 << 20);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    uint8_t sig[64];
    size_t n = sizeof(sig);
    base64url_encode(&b, head, strlen(head));
    buf_putc(&b, '.');
    base64url_encode(&b, claims, strlen(claims));
    ck_assert_int_eq(EVP_DigestSignInit(md, NULL, NULL, NULL, pair), 1);
    ck_assert_int_eq(EVP_DigestSign(md, sig, &n, b.data, b.len), 1);
    EVP_MD_CTX_free(md);
    buf_putc(&b, '.');
    base64url_encode(&b, sig, n);
    return mem_strdup(ctx, buf_str(&b));
}

/* The words by which the token is refused; "": it is taken. */
static const char *
verdict(const struct jwt_keys *k, const char *token, const struct str_list *algorithms)
{
    struct err e = ERR_INIT;
    struct jwt_token t;
    if (jwt_read(ctx, token, 4096, &t, &e) == 0)
        (void)jwt_keys_verify(k, &t, algorithms, &e);
    ck_assert(e.code == 0 || e.code == -ERR_FORBIDDEN);
    return mem_strdup(ctx, e.text);
}

START_TEST(signatures)
{
    EVP_PKEY *pair = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"),
             *other = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    struct jwt_keys *k = keys_of(pair);
    const char *rs = "RS256", *good = token_of(pair, "{\"alg\":\"EdDSA\",\"kid\":\"any\"}", "{}");
    const struct str_list only = {&rs, 1};
    ck_assert_str_eq(verdict(k, good, NULL), "");
    ck_assert_str_eq(verdict(k, good, &only), "its algorithm \"EdDSA\" is none that is taken");
    ck_assert_str_eq(verdict(k, token_of(other, "{\"alg\":\"EdDSA\"}", "{}"), NULL),
                     "its signature is not that of a known key");
    static const char *const heads[][2] = {
        {"{\"alg\":\"none\"}", "its algorithm \"none\" is none that is taken"},
        {"{\"alg\":\"HS256\"}", "its algorithm \"HS256\" is none that is taken"},
        {"{\"alg\":\"eddsa\"}", "its algorithm \"eddsa\" is none that is taken"},
        {"{\"ALG\":\"EdDSA\"}", "its header names no algorithm"},
        {"{\"alg\":\"EdDSA\",\"alg\":\"none\"}", "its header is no JSON"},
        {"{\"alg\":\"EdDSA\",\"crit\":[]}", "its header has \"crit\", which is not understood"},
        {"{\"alg\":\"RS256\"}", "no key is known with id \"\" for RS256"},
        {"{\"alg\":\"ES256\",\"kid\":\"x\"}", "no key is known with id \"x\" for ES256"},
        {"[]", "its header is no JSON"}};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        ck_assert_str_eq(verdict(k, token_of(pair, heads[i][0], "{}"), NULL), heads[i][1]);
    char *cut = mem_strdup(ctx, good);
    cut[strlen(cut) - 2] ^= 1;
    ck_assert_str_ne(verdict(k, cut, NULL), "");
    ck_assert_str_eq(verdict(k, mem_printf(ctx, "%s.x", good), NULL),
                     "it is no signed JSON Web Token of three parts");
    ck_assert_str_eq(verdict(k, mem_printf(ctx, "%s%4096d", good, 1), NULL),
                     "it has more than 4096 bytes");
    jwt_keys_unref(k);
    EVP_PKEY_free(pair);
    EVP_PKEY_free(other);
}
END_TEST

#define EC_JWK(more) "{\"kty\":\"EC\",\"crv\":\"P-256\"," more "}"
#define P256_X "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY"
#define P256_Y "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"

START_TEST(sets_of_keys)
{
    static const struct {
        const char *keys, *why;
    } rows[] = {
        {EC_JWK("\"x\":\"" P256_X "\",\"y\":\"" P256_Y "\""), NULL},
        {EC_JWK("\"x\":\"" P256_X "\",\"y\":\"" P256_Y "\",\"use\":\"enc\""),
         "a key is for \"enc\""},
        {EC_JWK("\"x\":\"" P256_X "\",\"y\":\"" P256_X "\""), "of kind \"EC\" cannot be used"},
        {EC_JWK("\"x\":\"" P256_X "\""), "of kind \"EC\" cannot be used"},
        {"{\"kty\":\"oct\",\"k\":\"AAAA\"}", "of kind \"oct\" cannot be used"},
        {"{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}", "an RSA key has 2048 to 8192 bits"},
        {"{\"kty\":\"RSA\",\"n\":\"-_*\",\"e\":\"AQAB\"}", "the numbers of the RSA key are none"},
        {"{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"" P256_X "\"}", "of kind \"OKP\" cannot"},
        {"", "it has none at all"},
        {"1", "it is no JSON Web Key Set"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct jwt_keys *k = jwt_keys_new();
        struct err e = ERR_INIT;
        const char *text = mem_printf(ctx, "{\"keys\":[%s]}", rows[i].keys);
        int rc = jwt_keys_add_set(k, SLICE(text, strlen(text)), &e);
        ck_assert_msg((rc == 0) == (rows[i].why == NULL), "%zu: %s", i, e.text);
        ck_assert_msg(rc == 0 || strstr(e.text, rows[i].why) != NULL, "%zu: %s", i, e.text);
        ck_assert(jwt_keys_has(k, "x") == (rc == 0));
        jwt_keys_unref(k);
    }
}
END_TEST

START_TEST(texts_of_keys)
{
    static const char *const bad[] = {
        "", "x", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n"
        "-----END PUBLIC KEY-----\n"};
    struct jwt_keys *k = jwt_keys_new();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = ERR_INIT;
        ck_assert_int_eq(jwt_keys_add_pem(k, bad[i], &e), -ERR_INVALID);
    }
    static const char *const curves[] = {"P-256", "P-384", "P-521", "secp256k1"};
    for (size_t i = 0; i < ARRAY_LEN(curves); i++) {
        struct err e = ERR_INIT;
        EVP_PKEY *pair = EVP_PKEY_Q_keygen(NULL, NULL, "EC", curves[i]);
        ck_assert_int_eq(jwt_keys_add_pem(k, pem_of(pair), &e), i < 3 ? 0 : -ERR_INVALID);
        EVP_PKEY_free(pair);
    }
    jwt_keys_unref(k);
}
END_TEST

/* The words by which the claims are refused; "": they are taken. */
static const char *
check(const struct acl_auth_method_config *c, const char *claims)
{
    struct value *v = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(json_decode_value(ctx, SLICE(claims, strlen(claims)), BUDGET(1 << 20), &v, &e),
                     0);
    (void)login_check(c, v, NOW * NS_PER_S, &e);
    return mem_strdup(ctx, e.text);
}

START_TEST(times)
{
    static const struct {
        const char *claims, *expiration, *skew, *why;
    } rows[] = {
        {"{\"exp\":1000000001}", NULL, NULL, ""},
        {"{\"exp\":999999940}", NULL, NULL, ""}, /* within 60 s */
        {"{\"exp\":999999939}", NULL, NULL, "it has expired 61 s ago"},
        {"{\"exp\":999999999}", NULL, "-1s", "it has expired 1 s ago"},
        {"{\"exp\":999999990}", NULL, "10s", ""},
        {"{\"exp\":1000000001.5}", NULL, NULL, ""},
        {"{\"iat\":999999790}", NULL, NULL, ""}, /* 150 s and 60 s */
        {"{\"iat\":999999789}", NULL, NULL, "it has expired 61 s ago"},
        {"{\"iat\":999999789}", "1h", NULL, ""},
        {"{\"iat\":999999939}", "-1s", NULL, "it has expired 61 s ago"},
        {"{\"nbf\":1000000061,\"exp\":1000000100}", NULL, NULL, "it is not valid for another 61 s"},
        {"{\"iat\":1000000061,\"nbf\":1,\"exp\":1000000100}", NULL, NULL,
         "it was issued 61 s in the future"},
        {"{\"exp\":9223372036854775807}", NULL, NULL, "its claim \"exp\" is no time"},
        {"{\"exp\":1e300}", NULL, NULL, "its claim \"exp\" is no time"},
        {"{}", NULL, NULL, "it has none of exp, nbf and iat"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct acl_auth_method_config c = {.expiration_leeway = rows[i].expiration,
                                                 .clock_skew_leeway = rows[i].skew};
        const char *why = check(&c, rows[i].claims);
        ck_assert_msg(str_eq(why, rows[i].why), "%s: %s", rows[i].claims, why);
    }
}
END_TEST

START_TEST(rules)
{
    static const char claims[] =
        "{\"team\":\"Web\",\"n\":7.9,\"b\":true,\"l\":[\"x\",2],\"g\":\"one\","
        "\"deep\":{\"a/b\":[{\"~\":\"found\"}]},\"o\":{},\"null\":null}";
    struct acl_auth_method_config c = {.jwks_url = NULL};
    struct value *v = NULL;
    struct err e = ERR_INIT;
    static const char *const values[] = {"team", "n", "b", "l", "null", "absent"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        str_map_set(ctx, &c.claim_mappings, values[i], values[i]);
    str_map_set(ctx, &c.claim_mappings, "/deep/a~1b/0/~0", "deep");
    str_map_set(ctx, &c.claim_mappings, "/deep/a~1b/1/~0", "none");
    str_map_set(ctx, &c.list_claim_mappings, "l", "l");
    str_map_set(ctx, &c.list_claim_mappings, "g", "g");
    ck_assert_int_eq(json_decode_value(ctx, SLICE(claims, strlen(claims)), BUDGET(1 << 20), &v, &e),
                     0);
    const struct acl_login_claims *l = login_claims(ctx, &c, v, &e);
    ck_assert_msg(l != NULL, "%s", e.text);
    static const char *const want[][2] = {
        {"team", "Web"}, {"n", "7"}, {"b", "true"}, {"l", "[\"x\",2]"}, {"deep", "found"}};
    ck_assert_uint_eq(l->value.n, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        ck_assert_str_eq(str_map_get(&l->value, want[i][0]), want[i][1]);

    static const struct {
        const char *selector, *name, *got;
    } binds[] = {{NULL, "a", "a"},
                 {"value.team == \"Web\"", "x-${value.team}", "x-web"},
                 {"value.team == \"web\"", "x", NULL},
                 {"value.absent == \"\"", "x", NULL},
                 {"\"2\" in list.l and \"one\" in list.g", "x${ value.absent }", "x"},
                 {"\"3\" in list.l", "x", NULL},
                 {"value.deep matches \"^f\"", "$${value.team}", "refused"},
                 {NULL, "${value.l}", "refused"},
                 {NULL, "${value.absent}", "refused"}};
    for (size_t i = 0; i < ARRAY_LEN(binds); i++) {
        struct login_rights r = {.management = false};
        const struct acl_binding_rule rule = {.id = "r",
                                              .bind_type = ACL_BIND_ROLE,
                                              .bind_name = binds[i].name,
                                              .selector = binds[i].selector};
        struct err why = ERR_INIT;
        int rc = login_bind(ctx, &rule, l, &r, &why);
        const char *got = rc < 0 ? "refused" : r.roles.n > 0 ? r.roles.v[0] : NULL;
        ck_assert_msg(str_eq(str_or(got, ""), str_or(binds[i].got, "")), "%zu: %s %s", i,
                      str_or(got, ""), why.text);
        ck_assert(r.policies.n == 0 && !r.management);
    }
    str_map_set(ctx, &c.claim_mappings, "o", "o");
    ck_assert_ptr_null(login_claims(ctx, &c, v, &e));
}
END_TEST

START_TEST(addresses)
{
    static const char *const links[] = {"169.254.169.254",       "169.254.0.1",     "fe80::1",
                                        "fd00:ec2::254",         "100.100.100.200", "168.63.129.16",
                                        "::ffff:169.254.169.254"};
    static const char *const others[] = {"127.0.0.1",   "10.0.0.1",    "::1",
                                         "2001:db8::1", "169.253.0.1", "name"};
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        ck_assert_msg(addr_is_of_link(links[i]), "%s", links[i]);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        ck_assert_msg(!addr_is_of_link(others[i]), "%s", others[i]);
}
END_TEST

TEST_SUITE_FIXTURE("jwt", 20, setup, teardown, signatures, sets_of_keys, texts_of_keys, times,
                   rules, addresses)
