/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses as people write them: "host:port", "[::1]:port", "http://host:port", "unix:///path".
 */
#ifndef PADDOCK_NET_ADDR_H
#define PADDOCK_NET_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct addr {
    bool is_unix;
    uint16_t port;
    char host[256]; /* name or numeric address; the path of a unix socket */
    bool outside;   /* no address of a link or of a metadata service is connected to */
    char from[48]; /* to connect from: a numeric address of this machine; "": the kernel chooses one
                    */
};

/* `port_dflt` where the text has none (0: a port is required). */
int addr_parse(const char *s, uint16_t port_dflt, struct addr *ret, struct err *e);
/* "host:port" with brackets for IPv6, or "unix:///path"; truncates. Returns out. */
#define ADDR_TEXT 280
const char *addr_format(const struct addr *a, char out[ADDR_TEXT]);
/* Says whether a numeric address is link-local, or one that metadata services of clouds have. */
bool addr_is_of_link(const char *host);
/* Says whether the host is no name that is looked up. */
bool addr_is_numeric(const struct addr *a);

#endif
