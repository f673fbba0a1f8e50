/* SPDX-License-Identifier: Apache-2.0
 *
 * Sealing: vectors of the cipher's specification (C2SP), texts of all lengths and back, each bit
 * that is changed, and memory that is wiped.
 */
#include <stdio.h>
#include <string.h>

#include "common/seal.h"
#include "tests/lib/test.h"

#define TEXT(s) SLICE(s, strlen(s))

static uint8_t key[SEAL_KEY];

static void
fill_key(uint8_t byte)
{
    memset(key, byte, sizeof(key));
}

static struct slice
from_hex(const char *nonce, const char *hex, uint8_t *to)
{
    size_t n = strlen(hex) / 2;

    memcpy(to, nonce, SEAL_NONCE);
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
        to[SEAL_NONCE + i] = (uint8_t)byte;
    }
    return SLICE(to, SEAL_NONCE + n);
}

START_TEST(vectors)
{
    static const struct {
        uint8_t key;
        const char *about, *sealed;
    } rows[] = {
        {1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
        {3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"}};
    uint8_t sealed[128], text[128];

    for (int i = 0; i < 2; i++) {
        fill_key(rows[i].key);
        struct slice s = from_hex("ABCDEFGHIJKLMNOPQRSTUVWX", rows[i].sealed, sealed);
        ck_assert_int_eq(seal_open(key, TEXT(rows[i].about), s, text), 0);
        ck_assert_int_eq(s.n - SEAL_EXTRA, 12);
        ck_assert_mem_eq(text, "XAES-256-GCM", 12);
    }
}
END_TEST

START_TEST(there_and_back)
{
    uint8_t text[300], sealed[300 + SEAL_EXTRA], again[300 + SEAL_EXTRA], out[300];

    fill_key(7);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 31);
    for (size_t n = 0; n <= sizeof(text); n++) {
        seal(key, TEXT("about"), SLICE(text, n), sealed);
        seal(key, TEXT("about"), SLICE(text, n), again);
        ck_assert_mem_ne(sealed, again, n + SEAL_EXTRA);
        ck_assert_int_eq(seal_open(key, TEXT("about"), SLICE(sealed, n + SEAL_EXTRA), out), 0);
        ck_assert_mem_eq(out, text, n);
    }
}
END_TEST

/* Whatever is not as it was sealed is refused, and nothing of the text is left. */
START_TEST(changed)
{
    uint8_t sealed[5 + SEAL_EXTRA], out[5 + SEAL_EXTRA];
    static const uint8_t nothing[5];

    fill_key(7);
    seal(key, TEXT("about"), TEXT("hello"), sealed);
    for (size_t bit = 0; bit < 8 * sizeof(sealed); bit++) {
        sealed[bit / 8] ^= (uint8_t)(1U << bit % 8);
        ck_assert_int_eq(seal_open(key, TEXT("about"), SLICE(sealed, sizeof(sealed)), out),
                         -ERR_CORRUPT);
        ck_assert_mem_eq(out, nothing, 5);
        sealed[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    for (size_t n = 0; n < sizeof(sealed); n++)
        ck_assert_int_eq(seal_open(key, TEXT("about"), SLICE(sealed, n), out), -ERR_CORRUPT);
    ck_assert_int_eq(seal_open(key, TEXT("other"), SLICE(sealed, sizeof(sealed)), out),
                     -ERR_CORRUPT);
    fill_key(8);
    ck_assert_int_eq(seal_open(key, TEXT("about"), SLICE(sealed, sizeof(sealed)), out),
                     -ERR_CORRUPT);
}
END_TEST

START_TEST(wiped)
{
    static const char nothing[32];
    char *p = seal_alloc(32);

    ck_assert_mem_eq(p, nothing, 32);
    memset(p, 'x', 32);
    seal_free(p, 32);
    char *q = seal_alloc(32); /* of the same size: the same place */
    ck_assert_ptr_eq(p, q);
    ck_assert_mem_eq(q, nothing, 32);
    seal_free(q, 32);
}
END_TEST

TEST_SUITE("seal", vectors, there_and_back, changed, wiped)
