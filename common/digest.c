/* SPDX-License-Identifier: Apache-2.0 */
#include "common/digest.h"

#include <string.h>

#include "common/err.h"
#include "common/str.h"

#define PREFIX "sha256:"
static const char digits[] = "0123456789abcdef";

static int
digest_digit(char c)
{
    const char *at = strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    return c != '\0' && at != NULL ? (int)(at - digits) : -1;
}

int
digest_parse(const char *text, uint8_t ret[DIGEST_BYTES])
{
    uint8_t out[DIGEST_BYTES];
    if (!str_prefix(text, PREFIX) || strlen(text) != DIGEST_TEXT - 1)
        return -ERR_INVALID;
    const char *p = text + strlen(PREFIX);
    for (int i = 0; i < DIGEST_BYTES; i++, p += 2) {
        int high = digest_digit(p[0]), low = digest_digit(p[1]);
        if (high < 0 || low < 0)
            return -ERR_INVALID;
        out[i] = (uint8_t)(high << 4 | low);
    }
    memcpy(ret, out, sizeof(out));
    return 0;
}

const char *
digest_format(const uint8_t digest[DIGEST_BYTES], char to[DIGEST_TEXT])
{
    char *p = to + strlen(PREFIX);
    memcpy(to, PREFIX, strlen(PREFIX));
    for (int i = 0; i < DIGEST_BYTES; i++) {
        *p++ = digits[digest[i] >> 4];
        *p++ = digits[digest[i] & 15];
    }
    *p = '\0';
    return to;
}
