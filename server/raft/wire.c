/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes between servers: see wire.h.
 */
#include "server/raft/wire.h"

#include <string.h>

#include "common/crc.h"
#include "common/mem.h"

enum { DISRUPT = 1, PRE_VOTE = 2, GRANTED = 4, QUIET = 8, CRC = 4 };

static void
put_text(struct buf *out, const char *s, size_t max)
{
    size_t n = s != NULL ? strlen(s) : 0;
    n = n < max ? n : max;
    if (max > UINT8_MAX)
        buf_put_u16(out, (uint16_t)n);
    else
        buf_put_u8(out, (uint8_t)n);
    buf_put(out, s, n);
}

static void
put_msg(struct buf *out, const struct peer_msg *m)
{
    buf_put_u8(out, (uint8_t)m->type);
    buf_put_u8(out, (uint8_t)((m->disrupt ? DISRUPT : 0) | (m->pre_vote ? PRE_VOTE : 0) |
                              (m->granted ? GRANTED : 0) | (m->quiet ? QUIET : 0)));
    const uint64_t v[] = {m->term,     m->index, m->log_term, m->commit,
                          m->rejected, m->last,  m->stamp};
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        buf_put_u64(out, v[i]);
    buf_put_u32(out, (uint32_t)m->n);
    for (size_t i = 0; i < m->n; i++) {
        const struct record *r = &m->entries[i];
        buf_put_u64(out, r->term);
        buf_put_u8(out, (uint8_t)r->type);
        buf_put_u32(out, (uint32_t)r->n);
        if (r->n > 0)
            buf_put(out, r->data, r->n);
    }
}

size_t
wire_entry_size(const struct record *r)
{
    return WIRE_ENTRY_MIN + r->n;
}

void
wire_put(struct buf *out, const struct wire *w)
{
    size_t at = out->len;
    buf_put_u32(out, 0);
    buf_put_u8(out, (uint8_t)w->kind);
    buf_put_u8(out, WIRE_VERSION);
    switch (w->kind) {
    case WIRE_HELLO:
        buf_put_u64(out, w->from);
        buf_put_u64(out, w->to);
        put_text(out, w->cluster, WIRE_CLUSTER_MAX);
        put_text(out, w->addr, CONSENSUS_ADDR_MAX);
        break;
    case WIRE_WELCOME:
        break;
    case WIRE_REFUSED:
        put_text(out, w->why, ERR_TEXT_MAX);
        break;
    case WIRE_MSG:
        put_msg(out, &w->msg);
        break;
    case WIRE_PIECE:
    case WIRE_PIECE_TAKEN:
        buf_put_u64(out, w->piece.index);
        buf_put_u64(out, w->piece.size);
        buf_put_u64(out, w->piece.offset);
        buf_put_u32(out, (uint32_t)w->piece.n);
        if (w->piece.n > 0)
            buf_put(out, w->piece.data, w->piece.n);
        break;
    }
    if (buf_error(out) != 0)
        return;
    uint32_t crc = crc32c(0, out->data + at + CRC, out->len - at - CRC);
    for (size_t i = 0; i < CRC; i++)
        out->data[at + i] = (uint8_t)(crc >> (24 - 8 * i));
}

/* --- reading --- */

/* NULL when it is too long, or holds what a text cannot. */
static const char *
wire_text(struct unpack *r, const void *ctx, size_t max)
{
    size_t n = (size_t)unpack_number(r, max > UINT8_MAX ? 2 : 1);
    const uint8_t *p = n <= max ? unpack_take(r, n) : NULL;
    if (p == NULL || memchr(p, 0, n) != NULL) {
        r->bad = true;
        return NULL;
    }
    return mem_strndup(ctx, (const char *)p, n);
}

static void
get_msg(struct unpack *r, const void *ctx, struct peer_msg *m)
{
    m->type = (enum peer_msg_type)unpack_number(r, 1);
    uint64_t flags = unpack_number(r, 1);
    m->disrupt = flags & DISRUPT;
    m->pre_vote = flags & PRE_VOTE;
    m->granted = flags & GRANTED;
    m->quiet = flags & QUIET;
    uint64_t *const v[] = {&m->term,     &m->index, &m->log_term, &m->commit,
                           &m->rejected, &m->last,  &m->stamp};
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        *v[i] = unpack_number(r, 8);
    m->n = (size_t)unpack_number(r, 4);
    if (m->type < MSG_APPEND || m->type > MSG_TIMEOUT_NOW ||
        flags > (DISRUPT | PRE_VOTE | GRANTED | QUIET) || m->n > CONSENSUS_INFLIGHT_MAX ||
        m->n > r->n / WIRE_ENTRY_MIN || (m->n > 0 && m->type != MSG_APPEND)) {
        r->bad = true;
        return;
    }
    struct record *e = m->n > 0 ? mem_array(ctx, struct record, m->n) : NULL;
    for (size_t i = 0; i < m->n; i++) {
        e[i].term = unpack_number(r, 8);
        e[i].type = (enum record_type)unpack_number(r, 1);
        e[i].n = (size_t)unpack_number(r, 4);
        e[i].data = unpack_take(r, e[i].n);
        if (e[i].type < RECORD_COMMAND || e[i].type > RECORD_CONFIG)
            r->bad = true;
    }
    m->entries = e;
}

static void
get_piece(struct unpack *r, struct wire_piece *p)
{
    p->index = unpack_number(r, 8);
    p->size = unpack_number(r, 8);
    p->offset = unpack_number(r, 8);
    p->n = (size_t)unpack_number(r, 4);
    p->data = unpack_take(r, p->n);
    r->bad |= p->index == 0 || p->offset > p->size || p->n > p->size - p->offset;
}

int
wire_get(const void *ctx, const uint8_t *p, size_t n, struct wire *ret, struct err *e)
{
    struct unpack r = {p, n, false};
    uint32_t crc = (uint32_t)unpack_number(&r, CRC);
    if (r.bad || crc != crc32c(0, r.p, r.n))
        return err_set(e, -ERR_INVALID, "a frame between servers whose checksum is wrong");
    struct wire w = {.kind = (enum wire_kind)unpack_number(&r, 1)};
    unsigned version = (unsigned)unpack_number(&r, 1);
    if (!r.bad && version != WIRE_VERSION)
        return err_set(
            e, -ERR_UNSUPPORTED,
            "it speaks version %u of the protocol between servers, this one version %d: run "
            "the same release on both",
            version, WIRE_VERSION);
    switch (w.kind) {
    case WIRE_HELLO:
        w.from = unpack_number(&r, 8);
        w.to = unpack_number(&r, 8);
        w.cluster = wire_text(&r, ctx, WIRE_CLUSTER_MAX);
        w.addr = wire_text(&r, ctx, CONSENSUS_ADDR_MAX);
        break;
    case WIRE_WELCOME:
        break;
    case WIRE_REFUSED:
        w.why = wire_text(&r, ctx, ERR_TEXT_MAX);
        break;
    case WIRE_MSG:
        get_msg(&r, ctx, &w.msg);
        break;
    case WIRE_PIECE:
    case WIRE_PIECE_TAKEN:
        get_piece(&r, &w.piece);
        break;
    default:
        r.bad = true;
    }
    if (r.bad || r.n > 0)
        return err_set(e, -ERR_INVALID, "a frame between servers that does not decode");
    *ret = w;
    return 0;
}
