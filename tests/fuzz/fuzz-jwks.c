/* SPDX-License-Identifier: Apache-2.0
 *
 * Public keys of others: any bytes as a JSON Web Key Set, and as PEM. Oracles: a set that is taken
 * has a key, and a signature of zeros is good by none of its keys.
 */
#include <stdint.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "server/jwt/key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check_zeros(const struct jwt_keys *k)
{
    static const char *const algorithms[] = {"RS256", "PS512", "ES256", "ES384", "ES512", "EdDSA"};
    static const size_t lengths[] = {256, 256, 64, 96, 132, 64};
    static const uint8_t zeros[256];
    struct err e = ERR_INIT;

    for (size_t i = 0; i < ARRAY_LEN(algorithms); i++) {
        const struct jwt_token t = {algorithms[i], "", SLICE("a.b", 3), SLICE(zeros, lengths[i]),
                                    SLICE("{}", 2)};
        ASSERT(jwt_keys_verify(k, &t, NULL, &e) == -ERR_FORBIDDEN);
        err_clear(&e);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct err e = ERR_INIT;

    if (n == 0 || n > 40000)
        return 0;
    auto_mem void *ctx = mem_ctx("fuzz");
    struct jwt_keys *k = jwt_keys_new();
    char *text = mem_strndup(ctx, (const char *)data + 1, n - 1);
    if (data[0] % 2 == 0) {
        if (jwt_keys_add_set(k, SLICE(text, strlen(text)), &e) == 0)
            ASSERT(jwt_keys_has(k, ""));
        else
            ASSERT(e.code == -ERR_INVALID);
    } else if (jwt_keys_add_pem(k, text, &e) < 0) {
        ASSERT(e.code == -ERR_INVALID && !jwt_keys_has(k, ""));
    }
    check_zeros(k);
    jwt_keys_unref(k);
    return 0;
}
