/* SPDX-License-Identifier: Apache-2.0
 *
 * Digests, in hexadecimal, UUIDs, and what was encrypted with RSA.
 */
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <string.h>

#include "codec/base64.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "jobspec/func/func.h"

enum { RSA_BYTES_MAX = 2048, RSA_TEXT_MAX = 16384 };

static bool
digest_text(struct call *c, const EVP_MD *md, const void *p, size_t n, uint8_t out[EVP_MAX_MD_SIZE],
            unsigned *ret_n)
{
    if (!call_charge(c, 1 + n / 256, 0))
        return false;
    if (EVP_Digest(p, n, out, ret_n, md, NULL) == 1)
        return true;
    arg_error(c, 0, "this digest is not available on this system");
    return false;
}

static struct value *
digest_hex(struct call *c, const EVP_MD *md)
{
    uint8_t raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    char out[2 * EVP_MAX_MD_SIZE + 1];
    if (!digest_text(c, md, arg_str(c, 0), arg_len(c, 0), raw, &n))
        return NULL;
    for (unsigned i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", raw[i]);
    return ret_str(c, out);
}

static struct value *
fn_md5(struct call *c)
{
    return digest_hex(c, EVP_md5());
}

static struct value *
fn_sha1(struct call *c)
{
    return digest_hex(c, EVP_sha1());
}

static struct value *
fn_sha256(struct call *c)
{
    return digest_hex(c, EVP_sha256());
}

static struct value *
fn_sha512(struct call *c)
{
    return digest_hex(c, EVP_sha512());
}

static void
uuid_bytes(const char *s, uint8_t out[16])
{
    for (size_t i = 0; *s != '\0' && i < 32; s++) {
        if (*s == '-')
            continue;
        uint8_t d = (uint8_t)(*s <= '9' ? *s - '0' : (*s | 0x20) - 'a' + 10);
        out[i / 2] = (uint8_t)(i % 2 == 0 ? d << 4 : out[i / 2] | d);
        i++;
    }
}

/* Prints a digest as text; 16 bytes of raw become a UUID of that version. */
static struct value *
digest_uuid(struct call *c, uint8_t *raw, unsigned version)
{
    char out[UUID_TEXT];
    char *p = out;
    raw[6] = (uint8_t)((raw[6] & 0x0f) | version << 4);
    raw[8] = (uint8_t)((raw[8] & 0x3f) | 0x80);
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        p += snprintf(p, 3, "%02x", raw[i]);
    }
    return ret_str(c, out);
}

/* RFC 4122 version 5: SHA-1 of a namespace and a name. */
static struct value *
fn_uuidv5(struct call *c)
{
    static const struct {
        const char *name, *uuid;
    } spaces[] = {{"dns", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
                  {"url", "6ba7b811-9dad-11d1-80b4-00c04fd430c8"},
                  {"oid", "6ba7b812-9dad-11d1-80b4-00c04fd430c8"},
                  {"x500", "6ba7b814-9dad-11d1-80b4-00c04fd430c8"}};
    const char *ns = arg_str(c, 0), *name = arg_str(c, 1);
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
        if (strcmp(spaces[i].name, ns) == 0)
            ns = spaces[i].uuid;
    if (!uuid_valid(ns))
        return arg_error(c, 0, "the namespace is dns, url, oid, x500 or a UUID");
    size_t n = strlen(name);
    uint8_t raw[EVP_MAX_MD_SIZE];
    unsigned got = 0;
    if (!call_charge(c, 1, n + 16))
        return NULL;
    uint8_t *in = mem_zalloc_array(c->ev->ctx, 1, n + 16, "bytes");
    uuid_bytes(ns, in);
    memcpy(in + 16, name, n);
    if (!digest_text(c, EVP_sha1(), in, n + 16, raw, &got))
        return NULL;
    return digest_uuid(c, raw, 5);
}

static struct value *
fn_uuidv4(struct call *c)
{
    uint8_t raw[16];
    if (c->ev->random == NULL) {
        diag_error(c->ev->sink, &c->e->name_r, "Function not available",
                   "\"uuidv4\" needs randomness, which is not at hand here.");
        return NULL;
    }
    c->ev->random(raw, sizeof(raw));
    return digest_uuid(c, raw, 4);
}

/* --- RSA --- */

static EVP_PKEY *
private_key(const char *pem, size_t n)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)n);
    /* a key with a password is refused, not asked for */
    EVP_PKEY *key =
        bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(uintptr_t) "") : NULL;
    BIO_free(bio);
    return key;
}

static bool
digest_decrypt(EVP_PKEY *key, const uint8_t *in, size_t n, uint8_t *out, size_t *ret_n)
{
    EVP_PKEY_CTX *x = EVP_PKEY_CTX_new(key, NULL);
    bool ok = x != NULL && EVP_PKEY_decrypt_init(x) == 1 &&
              EVP_PKEY_CTX_set_rsa_padding(x, RSA_PKCS1_PADDING) == 1 &&
              EVP_PKEY_decrypt(x, out, ret_n, in, n) == 1;
    EVP_PKEY_CTX_free(x);
    return ok;
}

/* rsadecrypt(base64 of what was encrypted with PKCS #1 v1.5, the private key as PEM) */
static struct value *
fn_rsadecrypt(struct call *c)
{
    const char *s = arg_str(c, 0), *pem = arg_str(c, 1);
    size_t n = arg_len(c, 0), got = 0;
    if (!call_charge(c, 10000, n + RSA_BYTES_MAX))
        return NULL;
    if (n > RSA_TEXT_MAX || arg_len(c, 1) > RSA_TEXT_MAX)
        return arg_error(c, 0, "text and key may have %d bytes", RSA_TEXT_MAX);
    uint8_t *in = mem_zalloc_array(c->ev->ctx, 1, BASE64_DECODED(n), "bytes"),
            out[RSA_BYTES_MAX + 1];
    size_t room = RSA_BYTES_MAX;
    if (base64_decode(s, n, in, &got) != 0)
        return arg_error(c, 0, "this is not base64");
    EVP_PKEY *key = private_key(pem, arg_len(c, 1));
    if (key == NULL || EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA ||
        EVP_PKEY_get_size(key) > RSA_BYTES_MAX) {
        EVP_PKEY_free(key);
        return arg_error(c, 1, "this is no private RSA key as PEM without a password");
    }
    bool ok = digest_decrypt(key, in, got, out, &room);
    EVP_PKEY_free(key);
    out[ok ? room : 0] = 0;
    if (!ok || !utf8_valid((char *)out, room) || memchr(out, 0, room) != NULL)
        return arg_error(c, 0, "it was not encrypted for this key, or is no text");
    return ret_strn(c, (char *)out, room);
}

const struct func func_digest[] = {{"md5", 1, 1, fn_md5, false},
                                   {"sha1", 1, 1, fn_sha1, false},
                                   {"sha256", 1, 1, fn_sha256, false},
                                   {"sha512", 1, 1, fn_sha512, false},
                                   {"uuidv4", 0, 0, fn_uuidv4, false},
                                   {"uuidv5", 2, 2, fn_uuidv5, false},
                                   {"rsadecrypt", 2, 2, fn_rsadecrypt, false},
                                   {NULL, 0, 0, NULL, false}};
