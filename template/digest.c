/* SPDX-License-Identifier: Apache-2.0 */
#include "template/digest.h"

#include <openssl/evp.h>

unsigned
template_digest(enum template_digest which, const void *p, size_t n,
                uint8_t out[TEMPLATE_DIGEST_MAX])
{
    const EVP_MD *md = which == TEMPLATE_MD5      ? EVP_md5()
                       : which == TEMPLATE_SHA1   ? EVP_sha1()
                       : which == TEMPLATE_SHA256 ? EVP_sha256()
                                                  : EVP_sha512();
    unsigned len = 0;
    return EVP_Digest(p, n, out, &len, md, NULL) == 1 ? len : 0;
}
