/* SPDX-License-Identifier: Apache-2.0
 *
 * Sealing (see seal.h).
 */
#include "common/seal.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "common/mem.h"
#include "common/random.h"

enum {
    BLOCK = 16,
    HALF = SEAL_NONCE / 2,  /* derives the key; the other half is GCM's */
    SECRET_ROOM = 512 << 10 /* a power of two */
};

/* --- memory --- */

static void
seal_begin(void)
{
    (void)CRYPTO_secure_malloc_init(SECRET_ROOM, 32); /* 2: it could not be locked */
}

void *
seal_alloc(size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, seal_begin);
    void *p = OPENSSL_secure_zalloc(n);
    ASSERT(p != NULL);
    return p;
}

void
seal_free(void *p, size_t n)
{
    OPENSSL_secure_clear_free(p, n);
}

void
seal_wipe(void *p, size_t n)
{
    OPENSSL_cleanse(p, n);
}

/* --- the cipher --- */

/* Doubles in GF(2^128), as CMAC does. */
static void
block_double(uint8_t b[BLOCK])
{
    uint8_t carry = (uint8_t)(b[0] >> 7);

    for (int i = 0; i < BLOCK - 1; i++)
        b[i] = (uint8_t)(b[i] << 1 | b[i + 1] >> 7);
    b[BLOCK - 1] = (uint8_t)(b[BLOCK - 1] << 1 ^ (0x87 & -carry));
}

/* The key of a message: the CMAC of two blocks that name its nonce. */
static void
derive_key(const uint8_t key[SEAL_KEY], const uint8_t *nonce, uint8_t ret[SEAL_KEY])
{
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    uint8_t k1[BLOCK] = {0}, m[SEAL_KEY];
    int len = 0;

    ASSERT(c != NULL && EVP_EncryptInit_ex(c, EVP_aes_256_ecb(), NULL, key, NULL) == 1);
    ASSERT(EVP_CIPHER_CTX_set_padding(c, 0) == 1);
    ASSERT(EVP_EncryptUpdate(c, k1, &len, k1, BLOCK) == 1 && len == BLOCK);
    block_double(k1);
    for (int half = 0; half < 2; half++) {
        uint8_t *b = m + half * BLOCK;
        memcpy(b, (const uint8_t[]){0, (uint8_t)(half + 1), 'X', 0}, 4);
        memcpy(b + 4, nonce, HALF);
        for (int i = 0; i < BLOCK; i++)
            b[i] ^= k1[i];
    }
    ASSERT(EVP_EncryptUpdate(c, ret, &len, m, sizeof(m)) == 1 && len == (int)sizeof(m));
    EVP_CIPHER_CTX_free(c);
    seal_wipe(k1, sizeof(k1));
    seal_wipe(m, sizeof(m));
}

static EVP_CIPHER_CTX *
cipher_new(const uint8_t key[SEAL_KEY], const uint8_t *nonce, struct slice about, bool encrypts)
{
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    uint8_t k[SEAL_KEY];
    int len = 0;

    derive_key(key, nonce, k);
    ASSERT(c != NULL && about.n <= INT_MAX);
    ASSERT(EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, k, nonce + HALF, encrypts) == 1);
    ASSERT(about.n == 0 || EVP_CipherUpdate(c, NULL, &len, about.p, (int)about.n) == 1);
    seal_wipe(k, sizeof(k));
    return c;
}

void
seal(const uint8_t key[SEAL_KEY], struct slice about, struct slice text, uint8_t *ret)
{
    uint8_t *out = ret + SEAL_NONCE;
    int len = 0;

    ASSERT(text.n <= INT_MAX);
    rand_bytes(ret, SEAL_NONCE);
    EVP_CIPHER_CTX *c = cipher_new(key, ret, about, true);
    ASSERT(text.n == 0 || EVP_EncryptUpdate(c, out, &len, text.p, (int)text.n) == 1);
    ASSERT((size_t)len == text.n && EVP_EncryptFinal_ex(c, out + len, &len) == 1 && len == 0);
    ASSERT(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG, out + text.n) == 1);
    EVP_CIPHER_CTX_free(c);
}

int
seal_open(const uint8_t key[SEAL_KEY], struct slice about, struct slice sealed, uint8_t *ret)
{
    const uint8_t *in = sealed.p;

    if (sealed.n < SEAL_EXTRA || sealed.n > INT_MAX)
        return -ERR_CORRUPT;
    size_t n = sealed.n - SEAL_EXTRA;
    uint8_t tag[SEAL_TAG];
    EVP_CIPHER_CTX *c = cipher_new(key, in, about, false);
    int len = 0;
    memcpy(tag, in + SEAL_NONCE + n, sizeof(tag));
    ASSERT(n == 0 || EVP_DecryptUpdate(c, ret, &len, in + SEAL_NONCE, (int)n) == 1);
    ASSERT(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG, tag) == 1);
    bool ok = EVP_DecryptFinal_ex(c, ret + len, &len) == 1;
    EVP_CIPHER_CTX_free(c);
    if (!ok)
        seal_wipe(ret, n);
    return ok ? 0 : -ERR_CORRUPT;
}
