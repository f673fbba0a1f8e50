/* SPDX-License-Identifier: Apache-2.0
 *
 * Configurations of the cluster and the data of the log entries that carry them. The bytes are
 * libraft's own format (it decodes the entries it is given), written and read here because its
 * decoder trusts its input:
 *
 *   u8 1 | u64 number of servers | per server: u64 id, address, NUL, u8 role | zeros to a multiple
 *   of 8 (little-endian; roles: 0 standby, 1 voter, 2 spare)
 */
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "server/raft/consensus.h"

void
consensus_conf_copy(const void *ctx, const struct peer_list *from, struct peer_list *ret)
{
    struct peer_list l = {.v = mem_array(ctx, struct peer, from->n), .n = from->n};
    for (size_t i = 0; i < from->n; i++) {
        l.v[i] = from->v[i];
        l.v[i].addr = mem_strdup(l.v, from->v[i].addr);
    }
    *ret = l;
}

bool
consensus_conf_valid(const struct peer_list *l)
{
    if (l->n == 0 || l->n > CONSENSUS_PEERS_MAX)
        return false;
    bool voter = false;
    for (size_t i = 0; i < l->n; i++) {
        const struct peer *p = &l->v[i];
        if (p->id == 0 || p->addr == NULL || strlen(p->addr) > CONSENSUS_ADDR_MAX ||
            p->role > PEER_SPARE)
            return false;
        voter |= p->role == PEER_VOTER;
        for (size_t j = 0; j < i; j++) {
            if (l->v[j].id == p->id)
                return false;
        }
    }
    return voter;
}

static void
put_le64(struct buf *b, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        buf_put_u8(b, (uint8_t)(v >> (8 * i)));
}

static uint64_t
get_le64(const uint8_t *p)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < 8; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

int
consensus_conf_encode(const void *ctx, const struct peer_list *conf, void **ret, size_t *ret_n)
{
    if (!consensus_conf_valid(conf))
        return -ERR_INVALID;
    struct buf b = BUF_INIT(64 << 10);
    buf_put_u8(&b, 1);
    put_le64(&b, conf->n);
    for (size_t i = 0; i < conf->n; i++) {
        put_le64(&b, conf->v[i].id);
        buf_put(&b, conf->v[i].addr, strlen(conf->v[i].addr) + 1);
        buf_put_u8(&b, (uint8_t)conf->v[i].role);
    }
    while (b.len % 8 != 0 && buf_error(&b) == 0)
        buf_put_u8(&b, 0);
    ASSERT(buf_error(&b) == 0);
    *ret = mem_dup(ctx, b.data, b.len);
    *ret_n = b.len;
    buf_done(&b);
    return 0;
}

/* One server at *at; false when it is not whole. */
static bool
get_peer(const void *ctx, const uint8_t *p, size_t n, size_t *at, struct peer *ret)
{
    if (n - *at < 8 + 1 + 1)
        return false;
    ret->id = get_le64(p + *at);
    const uint8_t *addr = p + *at + 8;
    const uint8_t *nul = memchr(addr, 0, n - *at - 8);
    if (nul == NULL || (size_t)(nul - addr) > CONSENSUS_ADDR_MAX)
        return false;
    *at = (size_t)(nul - p) + 1;
    if (*at >= n || p[*at] > PEER_SPARE)
        return false;
    ret->addr = mem_strndup(ctx, (const char *)addr, (size_t)(nul - addr));
    ret->role = p[(*at)++];
    return true;
}

int
consensus_conf_decode(const void *ctx, const void *data, size_t n, struct peer_list *ret)
{
    const uint8_t *p = data;
    if (n < 9 || p[0] != 1)
        return -ERR_CORRUPT;
    uint64_t count = get_le64(p + 1);
    if (count == 0 || count > CONSENSUS_PEERS_MAX)
        return -ERR_CORRUPT;
    struct peer_list l = {.v = mem_array(ctx, struct peer, (size_t)count), .n = (size_t)count};
    size_t at = 9;
    bool ok = true;
    for (size_t i = 0; ok && i < l.n; i++)
        ok = get_peer(l.v, p, n, &at, &l.v[i]);
    if (!ok || n - at >= 8 || !consensus_conf_valid(&l)) {
        mem_free(l.v);
        return -ERR_CORRUPT;
    }
    *ret = l;
    return 0;
}

size_t
consensus_conf_changes(const struct peer_list *from, const struct peer_list *to)
{
    size_t changed = 0, same_ids = 0;
    for (size_t i = 0; i < to->n; i++) {
        const struct peer *a = &to->v[i], *b = NULL;
        for (size_t k = 0; k < from->n; k++)
            if (from->v[k].id == a->id)
                b = &from->v[k];
        changed += b == NULL || b->role != a->role || strcmp(b->addr, a->addr) != 0;
        same_ids += b != NULL;
    }
    return changed + from->n - same_ids;
}

bool
consensus_sole_voter(const struct consensus_start *s, uint64_t id)
{
    auto_mem void *tmp = mem_ctx("sole voter");
    struct peer_list conf = s->snapshot != NULL ? s->snapshot->conf : (struct peer_list){NULL, 0};
    size_t voters = 0;
    bool self = false;
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].type == RECORD_CONFIG)
            consensus_conf_decode(tmp, s->entries[i].data, s->entries[i].n, &conf);
    for (size_t i = 0; i < conf.n; i++) {
        voters += conf.v[i].role == PEER_VOTER;
        self |= conf.v[i].role == PEER_VOTER && conf.v[i].id == id;
    }
    return voters == 1 && self;
}
