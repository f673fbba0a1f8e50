/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of the domain name system (RFC 1035; EDNS, RFC 6891): questions are parsed, answers
 * written. Pure. Questions come from anybody and are hostile: bounded by their own bytes, without
 * compression in the name that is asked for.
 *
 * An answer is written record by record, as far as they fit. Answers that are left out set TC, by
 * which a resolver comes again over TCP.
 */
#ifndef PADDOCK_CLIENT_DNS_MESSAGE_H
#define PADDOCK_CLIENT_DNS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

enum {
    DNS_NAME_MAX = 255, /* 2.3.4 */
    DNS_LABEL_MAX = 63,
    DNS_UDP_MIN = 512,  /* takes whoever says nothing of EDNS */
    DNS_UDP_MAX = 1232, /* goes through all networks in one piece */
    DNS_TCP_MAX = 32 << 10
};

enum dns_code {
    DNS_OK = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5,
    DNS_BADVERS = 16
};

enum dns_type {
    DNS_A = 1,
    DNS_NS = 2,
    DNS_SOA = 6,
    DNS_AAAA = 28,
    DNS_SRV = 33,
    DNS_OPT = 41,
    DNS_ANY = 255
};

struct dns_question {
    uint16_t id, flags;
    uint16_t type, class;
    /* "web.default.service.paddock", in small letters. "": the root, or one with bytes that no name
     * of ours has */
    char name[DNS_NAME_MAX + 1];
    const uint8_t *raw; /* as it came: of the parsed bytes */
    size_t raw_n;
    bool edns;
    size_t size; /* of an answer by UDP */
};

/* Parses a message. The code of an answer without records, DNS_OK: it is to be looked up; -1: it is
 * not to be answered at all. *ret is good for dns_begin() unless it is -1. */
int dns_parse(const uint8_t *p, size_t n, struct dns_question *ret);

struct dns_answer {
    struct buf *b;
    const struct dns_question *q;
    size_t max;
    enum dns_code code;
    uint16_t n[3]; /* records: answers, authorities, others */
    bool cut;
};

enum dns_section { DNS_ANSWER, DNS_AUTHORITY, DNS_OTHER };

/* `b` is empty, and has room for `max` bytes. */
void dns_begin(struct dns_answer *a, const struct dns_question *q, size_t max, struct buf *b);
/* A record of class IN with TTL 0; `at` is where its owner's name is in the message. False: it does
 * not fit. *ret_at: where its data is; NULL is fine. */
bool dns_add(struct dns_answer *a, enum dns_section s, size_t at, enum dns_type type,
             struct slice data, size_t *ret_at);
/* The name that was asked for. */
enum { DNS_ASKED = 12 };
void dns_end(struct dns_answer *a, enum dns_code code);

/* Writes a name ("a.b") as labels; the number of bytes, at most DNS_NAME_MAX. 0: it is none. */
size_t dns_put_name(uint8_t ret[DNS_NAME_MAX], const char *name);

#endif
