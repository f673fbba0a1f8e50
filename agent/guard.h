/* SPDX-License-Identifier: Apache-2.0
 *
 * Browsers. The API has no access control of its own, so who reaches it is whoever the machine and
 * its network let in; a page that somebody there looks at is not meant by that, though its requests
 * come from there. Two rules keep it out:
 *
 * - A request names this agent: its Host is an address, localhost or a name that is known to be
 *   ours. A page whose own name was made to resolve to this machine (DNS rebinding) is of the same
 *   origin for the browser, but cannot hide that name.
 * - What changes something, or runs a command, does not come from a page of another origin:
 *   browsers say so in Origin (Fetch standard, 3.2) or Sec-Fetch-Site (Fetch Metadata, 2.4), which
 *   pages cannot set. Reads need no such rule: without Access-Control-Allow-Origin no other page
 *   sees the answer.
 */
#ifndef PADDOCK_AGENT_GUARD_H
#define PADDOCK_AGENT_GUARD_H

#include <stdbool.h>

#include "codec/codec.h"
#include "net/http/http.h"

struct guard {
    struct str_list own;   /* names of this machine and agent */
    struct str_list
        hosts; /* http_api_hosts: "name" or "*.name"; pages of these may change things */
};

/* False: answered, 403. */
bool guard_host(const struct guard *g, struct http_req *req);
bool guard_origin(const struct guard *g, struct http_req *req);
/* May it stand in http_api_hosts? */
bool guard_name_ok(const char *name);

#endif
