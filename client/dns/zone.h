/* SPDX-License-Identifier: Apache-2.0
 *
 * The zone "paddock": where services are, as records. Pure. Names:
 *
 *   NAME.NAMESPACE.service.paddock           A, AAAA, SRV of all instances
 *   _NAME._tcp.NAMESPACE.service.paddock     SRV alone (RFC 2782); _udp as well
 *   7f000001.addr.paddock                    the A, or AAAA, of targets of SRV
 *
 * Names are in small letters, however they are asked for. Whatever is not in the zone is refused:
 * nothing is asked for elsewhere. All has a TTL of 0. An instance whose address is a name has an
 * SRV alone.
 */
#ifndef PADDOCK_CLIENT_DNS_ZONE_H
#define PADDOCK_CLIENT_DNS_ZONE_H

#include "api/api.h"
#include "client/dns/message.h"

enum { ZONE_INSTANCES_MAX = 256 /* of a service; the others are not told */ };

struct zone_address {
    uint8_t n; /* 4 or 16; 0: none */
    uint8_t bytes[16];
};

struct zone_instance {
    struct zone_address address;
    uint16_t srv_n;
    uint8_t srv[6 + DNS_NAME_MAX]; /* the data of its record */
};

/* Instances of a service, as they are told; a talloc context. */
struct zone_set {
    struct zone_address *addresses; /* each once */
    size_t n_addresses;
    struct zone_instance *instances;
    size_t n;
};

/* Makes it of what the servers say; owned by ctx. */
struct zone_set *zone_set_new(const void *ctx, const struct service_registration_list *l);

struct zone_service { /* who is asked for */
    char name[DNS_LABEL_MAX + 1];
    char namespace[DNS_LABEL_MAX + 1];
    bool srv_only;
};

/* Says whether the question is for a service, of which the set is needed for an answer. */
bool zone_asks(const struct dns_question *q, struct zone_service *ret);
/* Writes the answer to a question with DNS_OK; `b` is empty. `set` NULL: no service is asked for,
 * or nothing is known of it, which is DNS_SERVFAIL. `turn`: which instance comes first. */
void zone_answer(const struct dns_question *q, const struct zone_set *set, size_t turn, size_t max,
                 struct buf *b);
/* Writes the answer that has a code alone. */
void zone_refuse(const struct dns_question *q, enum dns_code code, struct buf *b);

#endif
