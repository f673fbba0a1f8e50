/* SPDX-License-Identifier: Apache-2.0 */
#include "common/uuid.h"

#include "common/random.h"

const char *
uuid_make(char out[UUID_TEXT])
{
    static const char hex[] = "0123456789abcdef";
    uint8_t b[16];
    rand_bytes(b, sizeof(b));
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    char *p = out;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = hex[b[i] >> 4];
        *p++ = hex[b[i] & 15];
    }
    *p = 0;
    return out;
}

bool
uuid_valid(const char *s)
{
    for (size_t i = 0; i < UUID_TEXT - 1; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool hex = (s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f');
        if (dash ? s[i] != '-' : !hex)
            return false;
    }
    return s[UUID_TEXT - 1] == 0;
}
