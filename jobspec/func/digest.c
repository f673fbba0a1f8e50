/* SPDX-License-Identifier: Apache-2.0
 *
 * Digests, in hexadecimal, and UUIDs made from them.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "jobspec/func/func.h"

static bool
digest(struct call *c, const EVP_MD *md, const void *p, size_t n, uint8_t out[EVP_MAX_MD_SIZE],
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
hex(struct call *c, const EVP_MD *md)
{
    uint8_t raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    char out[2 * EVP_MAX_MD_SIZE + 1];
    if (!digest(c, md, arg_str(c, 0), arg_len(c, 0), raw, &n))
        return NULL;
    for (unsigned i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", raw[i]);
    return ret_str(c, out);
}

static struct value *
fn_md5(struct call *c)
{
    return hex(c, EVP_md5());
}

static struct value *
fn_sha1(struct call *c)
{
    return hex(c, EVP_sha1());
}

static struct value *
fn_sha256(struct call *c)
{
    return hex(c, EVP_sha256());
}

static struct value *
fn_sha512(struct call *c)
{
    return hex(c, EVP_sha512());
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
    if (!digest(c, EVP_sha1(), in, n + 16, raw, &got))
        return NULL;
    raw[6] = (uint8_t)((raw[6] & 0x0f) | 0x50);
    raw[8] = (uint8_t)((raw[8] & 0x3f) | 0x80);
    char out[UUID_TEXT];
    char *p = out;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        p += snprintf(p, 3, "%02x", raw[i]);
    }
    return ret_str(c, out);
}

const struct func func_digest[] = {
    {"md5", 1, 1, fn_md5, false},       {"sha1", 1, 1, fn_sha1, false},
    {"sha256", 1, 1, fn_sha256, false}, {"sha512", 1, 1, fn_sha512, false},
    {"uuidv5", 2, 2, fn_uuidv5, false}, {NULL, 0, 0, NULL, false}};
