/* SPDX-License-Identifier: Apache-2.0 */
#include "render/digest.h"

#include <dlfcn.h>
#include <string.h>

#include <openssl/evp.h>

#define TEXT(x) #x
#define NAME(version) "libcrypto.so." TEXT(version)
#define LIBRARY NAME(OPENSSL_SHLIB_VERSION)

typedef int evp_digest(const void *p, size_t n, unsigned char *out, unsigned *len, const EVP_MD *md,
                       ENGINE *e);
typedef const EVP_MD *evp_by_name(const char *name);

static evp_digest *digest;
static evp_by_name *by_name;

static void
load(void)
{
    void *so = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    void *d = so != NULL ? dlsym(so, "EVP_Digest") : NULL;
    void *b = so != NULL ? dlsym(so, "EVP_get_digestbyname") : NULL;
    if (d == NULL || b == NULL)
        return;
    memcpy(&digest, &d, sizeof(d)); /* ISO C knows no cast to a function */
    memcpy(&by_name, &b, sizeof(b));
}

unsigned
render_digest(enum template_digest which, const void *p, size_t n, uint8_t out[TEMPLATE_DIGEST_MAX])
{
    static const char *const names[] = {[TEMPLATE_MD5] = "MD5",
                                        [TEMPLATE_SHA1] = "SHA1",
                                        [TEMPLATE_SHA256] = "SHA256",
                                        [TEMPLATE_SHA512] = "SHA512"};
    unsigned len = 0;
    if (digest == NULL)
        load();
    const EVP_MD *md = digest != NULL ? by_name(names[which]) : NULL;
    return md != NULL && digest(p, n, out, &len, md, NULL) == 1 ? len : 0;
}
