/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages, see message.h. Sections are of RFC 1035, where nothing else is said.
 */
#include "client/dns/message.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

enum {
    HEAD = 12,
    FIXED = 10,     /* of a record behind its name: type, class, TTL, length */
    OPT_BYTES = 11, /* RFC 6891, 6.1.2 */
    CLASS_IN = 1,
    CLASS_ANY = 255,
    POINTER = 0xc000
};

enum { /* 4.1.1 */
    FLAG_QR = 0x8000,
    FLAG_OPCODE = 0x7800,
    FLAG_AA = 0x0400,
    FLAG_TC = 0x0200,
    FLAG_RD = 0x0100
};

/* --- questions --- */

/* Takes a name without compression. `out` NULL, or of DNS_NAME_MAX + 1 bytes. */
static void
take_name(struct unpack *u, char *out)
{
    size_t n = 0;
    bool odd = false;
    for (size_t bytes = 1;;) {
        size_t label = (size_t)unpack_number(u, 1);
        bytes += label + 1;
        if (u->bad || label > DNS_LABEL_MAX || bytes > DNS_NAME_MAX) {
            u->bad = true;
            return;
        }
        if (label == 0)
            break;
        const uint8_t *p = unpack_take(u, label);
        out[n] = '.';
        n += n > 0;
        for (size_t i = 0; p && i < label; i++) {
            bool letter = (p[i] >= 'A' && p[i] <= 'Z') || (p[i] >= 'a' && p[i] <= 'z');
            odd = odd || !(letter || (p[i] >= '0' && p[i] <= '9') || p[i] == '-' || p[i] == '_');
            out[n++] = (char)(letter ? p[i] | 0x20 : p[i]);
        }
    }
    out[odd ? 0 : n] = 0;
}

/* Skips a name, with a pointer at its end or without. */
static void
skip_name(struct unpack *u)
{
    for (;;) {
        uint64_t label = unpack_number(u, 1);
        if (u->bad || label == 0)
            return;
        if (label >= 0xc0) {
            (void)unpack_take(u, 1);
            return;
        }
        if (label > DNS_LABEL_MAX)
            u->bad = true;
        (void)unpack_take(u, (size_t)label);
    }
}

/* Takes a record, of which OPT alone says something (RFC 6891, 6.1). The code. */
static enum dns_code
take_record(struct unpack *u, struct dns_question *q)
{
    bool root = u->n > 0 && u->p[0] == 0;
    skip_name(u);
    uint64_t type = unpack_number(u, 2), size = unpack_number(u, 2), ttl = unpack_number(u, 4);
    (void)unpack_take(u, (size_t)unpack_number(u, 2));
    if (u->bad || type != DNS_OPT)
        return u->bad ? DNS_FORMERR : DNS_OK;
    if (q->edns || !root)
        return DNS_FORMERR;
    q->edns = true;
    q->size = size < DNS_UDP_MIN ? DNS_UDP_MIN : size > DNS_UDP_MAX ? DNS_UDP_MAX : (size_t)size;
    return (ttl >> 16 & 0xff) != 0 ? DNS_BADVERS : DNS_OK;
}

int
dns_parse(const uint8_t *p, size_t n, struct dns_question *ret)
{
    struct unpack u = {p, n, false};
    uint64_t id = unpack_number(&u, 2), flags = unpack_number(&u, 2), count[4];
    for (size_t i = 0; i < 4; i++)
        count[i] = unpack_number(&u, 2);
    if (u.bad || (flags & FLAG_QR))
        return -1; /* answering answers would go on for ever */
    *ret = (struct dns_question){
        .id = (uint16_t)id, .flags = (uint16_t)flags, .size = DNS_UDP_MIN};
    if (flags & FLAG_OPCODE)
        return DNS_NOTIMP;
    if (count[0] != 1)
        return DNS_FORMERR;
    const uint8_t *raw = u.p;
    take_name(&u, ret->name);
    ret->type = (uint16_t)unpack_number(&u, 2);
    ret->class = (uint16_t)unpack_number(&u, 2);
    if (u.bad)
        return DNS_FORMERR;
    ret->raw = raw;
    ret->raw_n = (size_t)(u.p - raw);
    uint64_t records = count[1] + count[2] + count[3];
    for (uint64_t i = 0; i < records; i++) {
        enum dns_code code = take_record(&u, ret);
        if (code != DNS_OK)
            return (int)code;
    }
    return ret->class == CLASS_IN || ret->class == CLASS_ANY ? DNS_OK : DNS_REFUSED;
}

/* --- answers --- */

size_t
dns_put_name(uint8_t ret[DNS_NAME_MAX], const char *name)
{
    size_t n = 0;
    while (*name) {
        size_t label = strcspn(name, ".");
        if (label == 0 || label > DNS_LABEL_MAX || n + label + 2 > DNS_NAME_MAX)
            return 0;
        ret[n++] = (uint8_t)label;
        memcpy(ret + n, name, label);
        n += label;
        name += label + (name[label] == '.');
    }
    ret[n++] = 0;
    return n;
}

void
dns_begin(struct dns_answer *a, const struct dns_question *q, size_t max, struct buf *b)
{
    static const uint8_t head[HEAD];
    ASSERT(b->len == 0 && max >= DNS_UDP_MIN);
    *a = (struct dns_answer){.b = b, .q = q, .max = max - (q->edns ? OPT_BYTES : 0)};
    buf_put(b, head, HEAD);
    buf_put(b, q->raw, q->raw_n);
}

bool
dns_add(struct dns_answer *a, enum dns_section s, size_t at, enum dns_type type,
        struct slice data, size_t *ret_at)
{
    if (a->cut || a->b->len + 2 + FIXED + data.n > a->max) {
        a->cut = a->cut || s != DNS_OTHER;
        return false;
    }
    buf_put_u16(a->b, (uint16_t)(POINTER | at));
    buf_put_u16(a->b, (uint16_t)type);
    buf_put_u16(a->b, CLASS_IN);
    buf_put_u32(a->b, 0);
    buf_put_u16(a->b, (uint16_t)data.n);
    if (ret_at)
        *ret_at = a->b->len;
    buf_put(a->b, data.p, data.n);
    a->n[s]++;
    return true;
}

static void
put_at(struct buf *b, size_t at, unsigned v)
{
    b->data[at] = (uint8_t)(v >> 8);
    b->data[at + 1] = (uint8_t)v;
}

void
dns_end(struct dns_answer *a, enum dns_code code)
{
    const struct dns_question *q = a->q;
    struct buf *b = a->b;
    if (q->edns) {
        buf_put_u8(b, 0);
        buf_put_u16(b, DNS_OPT);
        buf_put_u16(b, DNS_UDP_MAX);
        buf_put_u32(b, (uint32_t)code >> 4 << 24);
        buf_put_u16(b, 0);
    }
    if (buf_error(b))
        return;
    bool ours = code == DNS_OK || code == DNS_NXDOMAIN;
    put_at(b, 0, q->id);
    put_at(b, 2, FLAG_QR | (q->flags & (FLAG_OPCODE | FLAG_RD)) | (ours ? FLAG_AA : 0) |
                     (a->cut ? FLAG_TC : 0) | ((unsigned)code & 15));
    put_at(b, 4, q->raw_n > 0);
    put_at(b, 6, a->n[DNS_ANSWER]);
    put_at(b, 8, a->n[DNS_AUTHORITY]);
    put_at(b, 10, a->n[DNS_OTHER] + q->edns);
}
