/* SPDX-License-Identifier: Apache-2.0
 *
 * Identities: any bytes as a token; any bytes as the claims of a token that is signed; and claims of
 * any texts. Oracles: a token that nobody signed is refused; of a token that was made of claims the
 * same are read again. And paths of variables: none that is a task's own is outside of nomad/jobs.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "api/vars/vars.h"
#include "codec/base64.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/keys/jwt.h"
#include "server/state/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { NOW = 1000000 };

static struct state *state;
static struct keys *keys;
static struct key *key;

static void
begin(void)
{
    char dir[] = "/tmp/paddock-fuzz-XXXXXX";
    auto_mem void *ctx = mem_ctx("begin");
    struct err e = ERR_INIT;
    bool fresh;

    ASSERT(mkdtemp(dir) != NULL && state_open(dir, "boot", 64 << 20, &state, &fresh, &e) == 0);
    const struct keys_place at = {.path = mem_printf(ctx, "%s/keyring/key", dir)};
    ASSERT(keys_open(NULL, &at, &keys, &e) == 0);
    struct state_txn *t = state_read_begin(state, ctx);
    struct root_key *row = keys_make(ctx, keys, t, "k1", &e);
    state_read_end(t);
    t = state_write_begin(state, ctx);
    state_put(t, 1, ROOT_KEYS, row);
    state_set_applied(t, 1, 1);
    ASSERT(state_commit(t) == 0);
    t = state_read_begin(state, ctx);
    key = keys_get(keys, t, "k1", &e);
    ASSERT(key != NULL);
    state_read_end(t);
}

static void
open_signed(const void *ctx, struct state_txn *t, const char *payload, size_t n)
{
    static const char head[] = "{\"alg\":\"RS256\",\"kid\":\"k1\"}";
    auto_buf struct buf b = BUF_INIT(64 << 10);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    struct jwt_claims c;
    uint8_t sig[512];
    size_t len = sizeof(sig);

    base64url_encode(&b, head, strlen(head));
    buf_putc(&b, '.');
    base64url_encode(&b, payload, n);
    ASSERT(EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, key->rsa) == 1);
    ASSERT(EVP_DigestSign(md, sig, &len, b.data, b.len) == 1);
    EVP_MD_CTX_free(md);
    buf_putc(&b, '.');
    base64url_encode(&b, sig, len);
    (void)jwt_open(ctx, t, buf_str(&b), NOW, &c);
}

/* Texts of JSON have characters alone. */
static void
open_made(const void *ctx, struct state_txn *t, char *text, size_t n)
{
    const char *us = JWT_AUDIENCE;
    struct jwt_claims c = {.audience = {&us, 1}, .issued = NOW, .region = "r", .group = "g",
                           .identity = "i", .id = "j"}, again;

    for (size_t i = 0; i < n; i++)
        text[i] = (char)(text[i] & 0x7f) < ' ' ? '"' : (char)(text[i] & 0x7f);
    c.namespace = mem_strndup(ctx, text, n / 4);
    c.job = mem_strndup(ctx, text + n / 4, n / 4);
    c.task = mem_strndup(ctx, text + n / 4 * 2, n / 4);
    c.alloc = mem_strndup(ctx, text + n / 4 * 3, n / 4);
    const char *token = jwt_sign(ctx, key, &c);
    if (token == NULL)
        return;
    ASSERT(jwt_open(ctx, t, token, NOW, &again) == 0);
    ASSERT(str_eq(str_or(again.namespace, ""), c.namespace) &&
           str_eq(str_or(again.job, ""), c.job) && str_eq(str_or(again.task, ""), c.task) &&
           str_eq(str_or(again.alloc, ""), c.alloc));
    ASSERT(!vars_is_own(c.task, c.job, c.namespace, c.alloc) || str_prefix(c.task, "nomad/jobs"));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (state == NULL)
        begin();
    if (n == 0 || n > JWT_MAX)
        return 0;
    auto_mem void *ctx = mem_ctx("fuzz");
    struct state_txn *t = state_read_begin(state, ctx);
    char *text = mem_strndup(ctx, (const char *)data + 1, n - 1);
    struct jwt_claims c;
    if (data[0] % 3 == 0)
        ASSERT(jwt_open(ctx, t, text, NOW, &c) == -ERR_FORBIDDEN);
    else if (data[0] % 3 == 1)
        open_signed(ctx, t, text, strlen(text));
    else
        open_made(ctx, t, text, strlen(text));
    state_read_end(t);
    return 0;
}
