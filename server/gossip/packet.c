/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets of gossip: see packet.h. Order to read: writing, sealing, reading.
 */
#include "server/gossip/packet.h"

#include <string.h>

#include <openssl/evp.h>

#include "common/crc.h"
#include "common/mem.h"
#include "common/str.h"

enum { CRC = 4, ABOUT_BUDGET = 8 * GOSSIP_ABOUT_MAX };

const char *
packet_fault_text(enum packet_fault f)
{
    static const char *const text[] = {
        [PACKET_FINE] = "fine",
        [PACKET_CUT] = "cut short or damaged",
        [PACKET_VERSION_OTHER] =
            "of another version of gossip: run the same release on all servers",
        [PACKET_OPEN] = "not encrypted: set server.encrypt on all servers",
        [PACKET_NO_KEY] =
            "encrypted, and this server has no key: set server.encrypt on all servers",
        [PACKET_FORGED] =
            "not encrypted by a key of this server: install the same keys on all servers",
        [PACKET_BAD] = "holds what does not decode",
    };
    ASSERT(f < PACKET_FAULTS);
    return text[f];
}

/* --- writing --- */

static void
put_about(struct buf *out, const struct server_hello *about)
{
    struct buf b = BUF_INIT(GOSSIP_ABOUT_MAX);
    if (about != NULL)
        mp_encode(&b, &type_server_hello, about);
    if (buf_error(&b) != 0)
        out->error = buf_error(&b);
    buf_put_u16(out, (uint16_t)b.len);
    buf_put(out, b.data, b.len);
    buf_done(&b);
}

/* A member has a name, a region and addresses, short and without control characters; what else it
 * says may be missing. */
static bool
about_is_fit(const struct server_hello *h, uint64_t id)
{
    const char *const must[] = {h->name, h->region, h->addr, h->serf};
    const char *const may[] = {h->node, h->datacenter, h->build, h->cluster, h->zone};
    if (h->id != id)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(must); i++)
        if (str_empty(must[i]) || strlen(must[i]) > GOSSIP_ADDR_MAX)
            return false;
    for (size_t i = 0; i < ARRAY_LEN(must) + ARRAY_LEN(may); i++) {
        const char *s = i < ARRAY_LEN(must) ? must[i] : may[i - ARRAY_LEN(must)];
        for (; s != NULL && *s != '\0'; s++)
            if ((unsigned char)*s < ' ' || *s == 0x7f)
                return false;
    }
    return true;
}

size_t
packet_about_size(const struct server_hello *about)
{
    struct buf b = BUF_INIT(GOSSIP_ABOUT_MAX);
    mp_encode(&b, &type_server_hello, about);
    size_t n = buf_error(&b) == 0 && about_is_fit(about, about->id) ? b.len : 0;
    buf_done(&b);
    return n;
}

static void
put_inner(struct buf *out, const struct packet *p)
{
    const char *addr = str_or(p->addr, "");
    size_t n = strlen(addr);
    ASSERT(p->kind >= PACKET_PING && p->kind <= PACKET_KINDS);
    ASSERT(n <= GOSSIP_ADDR_MAX && p->says.n <= GOSSIP_MEMBERS_MAX);
    buf_put_u8(out, (uint8_t)p->kind);
    const uint64_t v[] = {p->from, p->to, p->session, p->seq, p->cookie, p->token, p->target};
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        buf_put_u64(out, v[i]);
    buf_put_u8(out, p->more);
    buf_put_u8(out, (uint8_t)n);
    buf_put(out, addr, n);
    buf_put_u16(out, (uint16_t)p->says.n);
    for (size_t i = 0; i < p->says.n; i++) {
        const struct statement *s = &p->says.v[i];
        ASSERT(s->state >= MEMBER_ALIVE && s->state <= MEMBER_PRUNED);
        buf_put_u8(out, (uint8_t)s->state);
        buf_put_u64(out, s->id);
        buf_put_u32(out, s->incarnation);
        buf_put_u64(out, s->by);
        put_about(out, s->about);
    }
}

/* --- sealing --- */

static const EVP_CIPHER *
packet_cipher(const struct gossip_key *k)
{
    ASSERT(k->n == 16 || k->n == 24 || k->n == 32);
    return k->n == 16 ? EVP_aes_128_gcm() : k->n == 24 ? EVP_aes_192_gcm() : EVP_aes_256_gcm();
}

/* `head` is covered, and not hidden. */
static void
packet_seal(const struct gossip_key *k, const uint8_t head[2], const uint8_t *nonce, uint8_t *p,
            size_t n, uint8_t *tag)
{
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    int len = 0;
    ASSERT(c != NULL && EVP_EncryptInit_ex(c, packet_cipher(k), NULL, k->v, nonce) == 1);
    ASSERT(EVP_EncryptUpdate(c, NULL, &len, head, 2) == 1);
    ASSERT(EVP_EncryptUpdate(c, p, &len, p, (int)n) == 1 && (size_t)len == n);
    ASSERT(EVP_EncryptFinal_ex(c, p + n, &len) == 1 && len == 0);
    ASSERT(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, PACKET_TAG, tag) == 1);
    EVP_CIPHER_CTX_free(c);
}

static bool
packet_unseal(const struct gossip_key *k, const uint8_t *p, size_t n, uint8_t *out)
{
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    uint8_t tag[PACKET_TAG];
    int len = 0;
    const uint8_t *nonce = p + 2, *in = nonce + PACKET_NONCE;
    size_t n_in = n - 2 - PACKET_NONCE - PACKET_TAG;
    memcpy(tag, in + n_in, PACKET_TAG);
    ASSERT(c != NULL && EVP_DecryptInit_ex(c, packet_cipher(k), NULL, k->v, nonce) == 1);
    ASSERT(EVP_DecryptUpdate(c, NULL, &len, p, 2) == 1);
    ASSERT(EVP_DecryptUpdate(c, out, &len, in, (int)n_in) == 1);
    ASSERT(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, PACKET_TAG, tag) == 1);
    bool ok = EVP_DecryptFinal_ex(c, out + n_in, &len) == 1;
    EVP_CIPHER_CTX_free(c);
    return ok;
}

void
packet_put(struct buf *out, const struct packet *p, const struct gossip_keys *keys,
           const uint8_t nonce[PACKET_NONCE])
{
    size_t at = out->len;
    bool sealed = keys->n > 0;
    buf_put_u8(out, PACKET_VERSION);
    buf_put_u8(out, sealed);
    if (sealed)
        buf_put(out, nonce, PACKET_NONCE);
    size_t inner = out->len;
    put_inner(out, p);
    uint8_t *tag = buf_reserve(out, PACKET_TAG);
    if (tag == NULL)
        return;
    if (sealed) {
        packet_seal(&keys->v[0], out->data + at, out->data + at + 2, out->data + inner,
                    out->len - inner, tag);
        out->len += PACKET_TAG;
    } else {
        buf_put_u32(out, crc32c(0, out->data + at, out->len - at));
    }
}

/* --- reading --- */

static const struct server_hello *
get_about(struct unpack *r, const void *ctx)
{
    size_t n = (size_t)unpack_number(r, 2);
    const uint8_t *p = n <= GOSSIP_ABOUT_MAX ? unpack_take(r, n) : NULL;
    void *about = NULL;
    if (n == 0)
        return NULL;
    if (p == NULL ||
        mp_decode(ctx, &type_server_hello, SLICE(p, n), BUDGET(ABOUT_BUDGET), &about, NULL) < 0)
        r->bad = true;
    return r->bad ? NULL : about;
}

static void
get_statements(struct unpack *r, const void *ctx, struct packet *p)
{
    size_t n = (size_t)unpack_number(r, 2);
    if (n > GOSSIP_MEMBERS_MAX || n > r->n / STATEMENT_HEAD)
        r->bad = true;
    if (r->bad || n == 0)
        return;
    p->says.v = mem_array(ctx, struct statement, n);
    for (size_t i = 0; i < n && !r->bad; i++) {
        struct statement *s = &p->says.v[i];
        s->state = (enum member_state)unpack_number(r, 1);
        s->id = unpack_number(r, 8);
        s->incarnation = (uint32_t)unpack_number(r, 4);
        s->by = unpack_number(r, 8);
        s->about = get_about(r, ctx);
        if (s->state < MEMBER_ALIVE || s->state > MEMBER_PRUNED || s->id == 0 ||
            (s->about != NULL && !about_is_fit(s->about, s->id)))
            r->bad = true;
    }
    p->says.n = n;
}

static bool
get_inner(const void *ctx, const uint8_t *in, size_t n, struct packet *ret)
{
    struct unpack r = {in, n, false};
    struct packet p = {.kind = (enum packet_kind)unpack_number(&r, 1)};
    uint64_t *const v[] = {&p.from, &p.to, &p.session, &p.seq, &p.cookie, &p.token, &p.target};
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        *v[i] = unpack_number(&r, 8);
    uint64_t more = unpack_number(&r, 1);
    size_t len = (size_t)unpack_number(&r, 1);
    const uint8_t *addr = unpack_take(&r, len);
    if (r.bad || p.kind < PACKET_PING || p.kind > PACKET_KINDS || p.from == 0 || p.session == 0 ||
        more > 1 || len > GOSSIP_ADDR_MAX || memchr(addr, 0, len) != NULL)
        return false;
    p.more = more;
    p.addr = mem_strndup(ctx, (const char *)addr, len);
    get_statements(&r, ctx, &p);
    if (r.bad || r.n > 0)
        return false;
    *ret = p;
    return true;
}

enum packet_fault
packet_get(const void *ctx, const uint8_t *p, size_t n, const struct gossip_keys *keys,
           struct packet *ret)
{
    if (n < 2 + CRC || n > GOSSIP_PACKET_MAX || p[1] > 1)
        return PACKET_CUT;
    if (p[0] != PACKET_VERSION)
        return PACKET_VERSION_OTHER;
    if (p[1] == 0) {
        if (keys->n > 0)
            return PACKET_OPEN;
        if (big_endian(p + n - CRC, CRC) != crc32c(0, p, n - CRC))
            return PACKET_CUT;
        return get_inner(ctx, p + 2, n - 2 - CRC, ret) ? PACKET_FINE : PACKET_BAD;
    }
    if (keys->n == 0)
        return PACKET_NO_KEY;
    if (n < 2 + PACKET_NONCE + PACKET_TAG)
        return PACKET_CUT;
    size_t n_in = n - 2 - PACKET_NONCE - PACKET_TAG;
    auto_mem uint8_t *inner = mem_array(NULL, uint8_t, n_in + PACKET_TAG);
    for (size_t i = 0; i < keys->n; i++)
        if (packet_unseal(&keys->v[i], p, n, inner))
            return get_inner(ctx, inner, n_in, ret) ? PACKET_FINE : PACKET_BAD;
    return PACKET_FORGED;
}
