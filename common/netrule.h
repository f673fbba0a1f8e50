/* SPDX-License-Identifier: Apache-2.0
 *
 * One rule of a network policy, as job files and configuration write it:
 *
 *     ADDRESS[:PORTS][/PROTOCOL]     "10.0.0.0/8:5432", "192.0.2.7:8000-8100/tcp",
 *                                    "[2001:db8::/32]:443", "2001:db8::1", "*:53/udp", "*"
 *
 * An address without /BITS is one host; * is every address of both families; without ports every
 * port, without protocol tcp, udp and everything else. Pure.
 */
#ifndef PADDOCK_COMMON_NETRULE_H
#define PADDOCK_COMMON_NETRULE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

enum { NETRULE_TCP = 1, NETRULE_UDP = 2, NETRULE_OTHER = 4, NETRULE_ANY = 7 };
enum { NETRULE_TEXT_MAX = 96 };

struct netrule {
    bool v4; /* of which families; both: every address */
    bool v6;
    uint8_t protos;
    uint8_t bits; /* of the prefix */
    uint8_t addr[16];
    uint16_t lo; /* ports, inclusive; 0-65535: all, packets without ports as well */
    uint16_t hi;
};

/* -ERR_INVALID with the reason. */
int netrule_parse(const char *text, struct netrule *ret, struct err *e);

#endif
