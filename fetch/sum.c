/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/sum.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"

enum { BLOCK = 256 * 1024 };

static int
sum_file(int fd, EVP_MD_CTX *md, struct err *e)
{
    auto_mem void *ctx = mem_ctx("sum");
    unsigned char *block = mem_array(ctx, unsigned char, BLOCK);
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_errno(e, errno, "read the file");
    for (;;) {
        ssize_t n = fd_read_full(fd, block, BLOCK);
        if (n < 0)
            return err_errno(e, (int)-n, "read the file");
        if (n == 0)
            return 0;
        if (EVP_DigestUpdate(md, block, (size_t)n) != 1)
            return err_set(e, -ERR_INTERNAL, "the checksum cannot be computed");
    }
}

int
sum_check(int fd, const struct artifact_checksum *want, const char *name, struct err *e)
{
    unsigned char got[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    char hex[2 * EVP_MAX_MD_SIZE + 1] = "";
    const EVP_MD *kind = EVP_get_digestbyname(artifact_hash_name(want->hash));
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    int r = md == NULL || kind == NULL || EVP_DigestInit_ex(md, kind, NULL) != 1
                ? err_set(e, -ERR_UNSUPPORTED, "this machine's OpenSSL has no %s",
                          artifact_hash_name(want->hash))
                : sum_file(fd, md, e);
    if (r == 0 && EVP_DigestFinal_ex(md, got, &n) != 1)
        r = err_set(e, -ERR_INTERNAL, "the checksum cannot be computed");
    EVP_MD_CTX_free(md);
    for (unsigned i = 0; i < n; i++)
        (void)snprintf(hex + 2 * (size_t)i, 3, "%02x", got[i]);
    if (r < 0 || str_eq(hex, want->hex))
        return r;
    return err_set(e, -ERR_CORRUPT, "Checksums did not match for %.255s. Expected: %s Got: %s",
                   name, want->hex, hex);
}
