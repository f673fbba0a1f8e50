/* SPDX-License-Identifier: Apache-2.0
 *
 * Public keys (see key.h): how they are made of PEM and of JSON, which algorithms each can, and
 * then signatures.
 */
#include "server/jwt/key.h"

#include <stdatomic.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "api/api.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/limits.h"

enum { RSA_BITS_MIN = 2048, RSA_BITS_MAX = 8192, EXPONENT_BITS_MAX = 64, SET_BUDGET = 4 << 20 };

enum kind { KIND_NONE, KIND_RSA, KIND_EC, KIND_ED25519 };

struct jwt_key {
    const char *kid, *alg; /* "": it says none */
    enum kind kind;
    int bits;
    EVP_PKEY *key;
};

struct jwt_keys {
    atomic_size_t refs;
    struct jwt_key *v;
    size_t n;
};

struct jwt_keys *
jwt_keys_new(void)
{
    struct jwt_keys *k = mem_new(NULL, struct jwt_keys);

    atomic_init(&k->refs, 1);
    return k;
}

struct jwt_keys *
jwt_keys_ref(struct jwt_keys *k)
{
    atomic_fetch_add(&k->refs, 1);
    return k;
}

void
jwt_keys_unref(struct jwt_keys *k)
{
    if (k == NULL || atomic_fetch_sub(&k->refs, 1) != 1)
        return;
    for (size_t i = 0; i < k->n; i++)
        EVP_PKEY_free(k->v[i].key);
    talloc_free(k);
}

/* --- keys --- */

static int
rsa_is_fine(const EVP_PKEY *key, struct err *e)
{
    BIGNUM *exponent = NULL;
    int bits = EVP_PKEY_get_bits(key);

    if (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX)
        return err_set(e, -ERR_INVALID, "an RSA key has %d to %d bits, this one %d", RSA_BITS_MIN,
                       RSA_BITS_MAX, bits);
    bool odd = EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent) == 1 &&
               BN_is_odd(exponent) && !BN_is_one(exponent) &&
               BN_num_bits(exponent) <= EXPONENT_BITS_MAX;
    BN_free(exponent);
    return odd ? 0 : err_set(e, -ERR_INVALID, "the exponent of the RSA key is out of range");
}

static enum kind
kind_of(const EVP_PKEY *key, struct err *e)
{
    char group[32] = "";

    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
        return rsa_is_fine(key, e) == 0 ? KIND_RSA : KIND_NONE;
    case EVP_PKEY_ED25519:
        return KIND_ED25519;
    case EVP_PKEY_EC:
        if (EVP_PKEY_get_group_name(key, group, sizeof(group), NULL) == 1 &&
            (str_eq(group, "prime256v1") || str_eq(group, "P-256") || str_eq(group, "secp384r1") ||
             str_eq(group, "P-384") || str_eq(group, "secp521r1") || str_eq(group, "P-521")))
            return KIND_EC;
        err_set(e, -ERR_INVALID, "the curve of the key is not P-256, P-384 or P-521");
        return KIND_NONE;
    default:
        err_set(e, -ERR_INVALID, "the key is not RSA, EC or Ed25519");
        return KIND_NONE;
    }
}

/* Takes `key`, also when it fails. */
static int
add_key(struct jwt_keys *k, EVP_PKEY *key, const char *kid, const char *alg, struct err *e)
{
    enum kind kind = kind_of(key, e);

    if (kind != KIND_NONE && k->n >= JWT_KEYS_MAX) {
        err_set(e, -ERR_INVALID, "there are more than %d keys", JWT_KEYS_MAX);
        kind = KIND_NONE;
    }
    if (kind == KIND_NONE) {
        EVP_PKEY_free(key);
        return -ERR_INVALID;
    }
    const struct jwt_key made = {.kid = mem_strdup(k, str_or(kid, "")),
                                 .alg = mem_strdup(k, str_or(alg, "")),
                                 .kind = kind,
                                 .bits = EVP_PKEY_get_bits(key),
                                 .key = key};
    list_add(k, *k, made);
    return 0;
}

/* Nobody is asked for a password. */
static int
no_password(char *buf, int size, int writing, void *arg)
{
    (void)buf;
    (void)size;
    (void)writing;
    (void)arg;
    return -1;
}

int
jwt_keys_add_pem(struct jwt_keys *k, const char *pem, struct err *e)
{
    size_t n = strlen(pem);

    if (n > JWT_PEM_MAX)
        return err_set(e, -ERR_INVALID, "a public key has more than %d bytes", JWT_PEM_MAX);
    BIO *b = BIO_new_mem_buf(pem, (int)n);
    ASSERT(b != NULL);
    EVP_PKEY *key = PEM_read_bio_PUBKEY(b, NULL, no_password, NULL);
    if (key == NULL && BIO_reset(b) == 1) {
        X509 *cert = PEM_read_bio_X509(b, NULL, no_password, NULL);
        key = cert != NULL ? X509_get_pubkey(cert) : NULL;
        X509_free(cert);
    }
    BIO_free(b);
    if (key != NULL)
        return add_key(k, key, NULL, NULL, e);
    return err_set(
        e, -ERR_INVALID,
        "it is no PEM text of a public key or a certificate (-----BEGIN PUBLIC KEY-----)");
}

/* --- JSON Web Keys --- */

static EVP_PKEY *
key_of_params(const char *type, OSSL_PARAM_BLD *pb)
{
    EVP_PKEY_CTX *pc = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(pb);
    EVP_PKEY *key = NULL;

    if (pc == NULL || params == NULL || EVP_PKEY_fromdata_init(pc) != 1 ||
        EVP_PKEY_fromdata(pc, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    OSSL_PARAM_free(params);
    EVP_PKEY_CTX_free(pc);
    return key;
}

static BIGNUM *
number_of(const void *ctx, const char *text)
{
    size_t n = strlen(str_or(text, ""));
    struct slice s = n <= RSA_BITS_MAX / 4 ? jwt_base64url(ctx, str_or(text, ""), n) : SLICE("", 0);

    return s.n > 0 ? BN_bin2bn(s.p, (int)s.n, NULL) : NULL;
}

int
jwt_keys_add_rsa(struct jwt_keys *k, const char *kid, const char *n, const char *exponent,
                 struct err *e)
{
    auto_mem void *tmp = mem_ctx("rsa");
    BIGNUM *modulus = number_of(tmp, n), *exp = number_of(tmp, exponent);
    OSSL_PARAM_BLD *pb = OSSL_PARAM_BLD_new();
    EVP_PKEY *key = NULL;

    ASSERT(pb != NULL);
    if (modulus != NULL && exp != NULL && BN_num_bits(modulus) <= RSA_BITS_MAX &&
        OSSL_PARAM_BLD_push_BN(pb, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(pb, OSSL_PKEY_PARAM_RSA_E, exp) == 1)
        key = key_of_params("RSA", pb);
    OSSL_PARAM_BLD_free(pb);
    BN_free(modulus);
    BN_free(exp);
    if (key == NULL)
        return err_set(e, -ERR_INVALID, "the numbers of the RSA key are none");
    return add_key(k, key, kid, NULL, e);
}

static EVP_PKEY *
key_of_curve(const void *ctx, const struct jwk *j)
{
    static const struct {
        const char *crv, *group;
        size_t n;
    } rows[] = {
        {"P-256", "prime256v1", 32}, {"P-384", "secp384r1", 48}, {"P-521", "secp521r1", 66}};
    EVP_PKEY *key = NULL;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!str_eq(rows[i].crv, j->crv))
            continue;
        struct slice x = jwt_base64url(ctx, str_or(j->x, ""), strlen(str_or(j->x, "")));
        struct slice y = jwt_base64url(ctx, str_or(j->y, ""), strlen(str_or(j->y, "")));
        uint8_t point[1 + 2 * 66] = {POINT_CONVERSION_UNCOMPRESSED};
        if (x.n != rows[i].n || y.n != rows[i].n)
            return NULL;
        memcpy(point + 1, x.p, x.n);
        memcpy(point + 1 + x.n, y.p, y.n);
        OSSL_PARAM_BLD *pb = OSSL_PARAM_BLD_new();
        if (OSSL_PARAM_BLD_push_utf8_string(pb, OSSL_PKEY_PARAM_GROUP_NAME, rows[i].group, 0) ==
                1 &&
            OSSL_PARAM_BLD_push_octet_string(pb, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * x.n) == 1)
            key = key_of_params("EC", pb);
        OSSL_PARAM_BLD_free(pb);
    }
    return key;
}

static EVP_PKEY *
key_of_ed25519(const void *ctx, const struct jwk *j)
{
    struct slice x = jwt_base64url(ctx, str_or(j->x, ""), strlen(str_or(j->x, "")));

    return str_eq(j->crv, "Ed25519") && x.n == 32
               ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x.p, x.n)
               : NULL;
}

static void
add_jwk(struct jwt_keys *k, const struct jwk *j, struct err *why)
{
    auto_mem void *tmp = mem_ctx("jwk");
    size_t before = k->n;
    EVP_PKEY *key = NULL;

    if (!str_empty(j->use) && !str_eq(j->use, "sig")) {
        err_set(why, -ERR_INVALID, "a key is for \"%.20s\"", j->use);
    } else if (str_eq(j->kty, "RSA")) {
        if (jwt_keys_add_rsa(k, j->kid, j->n, j->e, why) == 0)
            k->v[before].alg = mem_strdup(k, str_or(j->alg, ""));
    } else {
        key = str_eq(j->kty, "EC")    ? key_of_curve(tmp, j)
              : str_eq(j->kty, "OKP") ? key_of_ed25519(tmp, j)
                                      : NULL;
        if (key == NULL)
            err_set(why, -ERR_INVALID, "a key of kind \"%.20s\" cannot be used",
                    str_or(j->kty, ""));
        else
            (void)add_key(k, key, j->kid, j->alg, why);
    }
}

int
jwt_keys_add_set(struct jwt_keys *k, struct slice json, struct err *e)
{
    auto_mem void *tmp = mem_ctx("jwks");
    struct err why = ERR_INIT;
    void *obj = NULL;

    if (json_decode(tmp, &type_jwk_set, json, BUDGET(SET_BUDGET), &obj, &why) < 0)
        return err_set(e, -ERR_INVALID, "it is no JSON Web Key Set: %.300s", why.text);
    const struct jwk_set *set = obj;
    if (set->keys.n > JWT_KEYS_MAX)
        return err_set(e, -ERR_INVALID, "there are more than %d keys", JWT_KEYS_MAX);
    for (size_t i = 0; i < set->keys.n; i++)
        add_jwk(k, set->keys.v[i], &why);
    if (k->n > 0)
        return 0;
    return err_set(e, -ERR_INVALID, "it has no key that can be used: %.300s",
                   why.code != 0 ? why.text : "it has none at all");
}

bool
jwt_keys_has(const struct jwt_keys *k, const char *kid)
{
    for (size_t i = 0; i < k->n; i++)
        if (str_empty(kid) || str_empty(k->v[i].kid) || str_eq(k->v[i].kid, kid))
            return true;
    return false;
}

/* --- signatures --- */

struct algorithm {
    const char *name;
    enum kind kind;
    int bits; /* of the curve; 0: any */
    bool pss;
    const EVP_MD *(*md)(void);
};

static const struct algorithm algorithms[] = {
    {"RS256", KIND_RSA, 0, false, EVP_sha256},  {"RS384", KIND_RSA, 0, false, EVP_sha384},
    {"RS512", KIND_RSA, 0, false, EVP_sha512},  {"PS256", KIND_RSA, 0, true, EVP_sha256},
    {"PS384", KIND_RSA, 0, true, EVP_sha384},   {"PS512", KIND_RSA, 0, true, EVP_sha512},
    {"ES256", KIND_EC, 256, false, EVP_sha256}, {"ES384", KIND_EC, 384, false, EVP_sha384},
    {"ES512", KIND_EC, 521, false, EVP_sha512}, {"EdDSA", KIND_ED25519, 0, false, NULL},
};

static const struct algorithm *
algorithm_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
        if (str_eq(algorithms[i].name, name))
            return &algorithms[i];
    return NULL;
}

/* Two numbers of equal length (RFC 7518 section 3.4) in DER; n 0: they are none. */
static struct slice
der_of(const void *ctx, struct slice sig, int bits)
{
    size_t half = (size_t)(bits + 7) / 8;
    uint8_t *der = NULL;

    if (sig.n != 2 * half)
        return SLICE("", 0);
    ECDSA_SIG *s = ECDSA_SIG_new();
    const uint8_t *p = sig.p;
    BIGNUM *r = BN_bin2bn(p, (int)half, NULL), *t = BN_bin2bn(p + half, (int)half, NULL);
    ASSERT(s != NULL && r != NULL && t != NULL && ECDSA_SIG_set0(s, r, t) == 1);
    int n = i2d_ECDSA_SIG(s, &der);
    ECDSA_SIG_free(s);
    struct slice out = n > 0 ? SLICE(mem_dup(ctx, der, (size_t)n), (size_t)n) : SLICE("", 0);
    OPENSSL_free(der);
    return out;
}

static bool
signature_is_good(const void *ctx, const struct jwt_key *key, const struct algorithm *a,
                  const struct jwt_token *t)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    EVP_PKEY_CTX *pc = NULL;
    struct slice sig = a->kind == KIND_EC ? der_of(ctx, t->sig, key->bits) : t->sig;

    ASSERT(md != NULL);
    bool good =
        sig.n > 0 &&
        EVP_DigestVerifyInit(md, &pc, a->md != NULL ? a->md() : NULL, NULL, key->key) == 1 &&
        (!a->pss || (EVP_PKEY_CTX_set_rsa_padding(pc, RSA_PKCS1_PSS_PADDING) == 1 &&
                     EVP_PKEY_CTX_set_rsa_pss_saltlen(pc, RSA_PSS_SALTLEN_DIGEST) == 1)) &&
        EVP_DigestVerify(md, sig.p, sig.n, t->text.p, t->text.n) == 1;
    EVP_MD_CTX_free(md);
    return good;
}

static bool
key_fits(const struct jwt_key *key, const struct algorithm *a, const char *kid)
{
    return key->kind == a->kind && (a->bits == 0 || a->bits == key->bits) &&
           (str_empty(key->alg) || str_eq(key->alg, a->name)) &&
           (str_empty(kid) || str_empty(key->kid) || str_eq(key->kid, kid));
}

int
jwt_keys_verify(const struct jwt_keys *k, const struct jwt_token *t, const struct str_list *allowed,
                struct err *e)
{
    auto_mem void *tmp = mem_ctx("verify");
    const struct algorithm *a = algorithm_named(t->alg);
    bool allows = allowed == NULL || allowed->n == 0, tried = false;

    for (size_t i = 0; allowed != NULL && i < allowed->n; i++)
        allows |= str_eq(allowed->v[i], t->alg);
    if (a == NULL || !allows)
        return err_set(e, -ERR_FORBIDDEN, "its algorithm \"%.20s\" is none that is taken", t->alg);
    for (size_t i = 0; i < k->n; i++) {
        if (!key_fits(&k->v[i], a, t->kid))
            continue;
        if (signature_is_good(tmp, &k->v[i], a, t))
            return 0;
        tried = true;
    }
    if (tried)
        return err_set(e, -ERR_FORBIDDEN, "its signature is not that of a known key");
    return err_set(e, -ERR_FORBIDDEN, "no key is known with id \"%.64s\" for %s", t->kid, t->alg);
}
