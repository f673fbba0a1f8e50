/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the agent itself listens, as rules of what no task may send to. Its API may be open to
 * whoever reaches it, and a task reaches the host's loopback.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <string.h>

#include "agent/policy.h"
#include "api/limits.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/policy.h"

struct ports {
    int64_t lo, hi;
};

static void
policy_addr_deny(struct policy *p, const char *address, struct ports t)
{
    const char *rule = mem_printf(p, strchr(address, ':') ? "[%s]:%" PRId64 "-%" PRId64 "/tcp"
                                                          : "%s:%" PRId64 "-%" PRId64 "/tcp",
                                  address, t.lo, t.hi);
    if (!str_list_has(&p->agent_denied, rule))
        list_add(p, p->agent_denied, rule);
}

/* Denies the ports at the addresses that the machine has now, and those that the bridge is going to
 * have. */
static void
deny_everywhere(struct policy *p, struct ports t)
{
    struct ifaddrs *all = NULL;
    policy_addr_deny(p, "127.0.0.0/8", t);
    policy_addr_deny(p, "::1", t);
    policy_addr_deny(p, str_or(p->bridge_subnet, POLICY_BRIDGE_SUBNET), t);
    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        char text[INET6_ADDRSTRLEN] = "";
        struct sockaddr_in a;
        struct sockaddr_in6 b;
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET) {
            memcpy(&a, i->ifa_addr, sizeof(a));
            (void)inet_ntop(AF_INET, &a.sin_addr, text, sizeof(text));
        } else if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6) {
            memcpy(&b, i->ifa_addr, sizeof(b));
            (void)inet_ntop(AF_INET6, &b.sin6_addr, text, sizeof(text));
        }
        if (text[0] != '\0' && !str_prefix(text, "127.") && !str_eq(text, "::1"))
            policy_addr_deny(p, text, t);
    }
    freeifaddrs(all);
}

static void
deny_at(struct policy *p, const char *host, struct ports t)
{
    if (str_eq(host, "0.0.0.0") || str_eq(host, "::"))
        deny_everywhere(p, t);
    else
        policy_addr_deny(p, host, t);
}

void
policy_deny_agent(struct policy *p, const struct agent_config *c)
{
    const char *http = str_or(c->addresses->http, c->bind_addr);
    const char *rpc = str_or(c->addresses->rpc, c->bind_addr);
    struct ports h = {c->ports->http, c->ports->http}, r = {c->ports->rpc, c->ports->rpc};
    bool server = c->server && c->server->enabled; /* else nobody listens there */
    if (server && str_eq(http, rpc) && r.lo == h.lo + 1) {
        h.hi = r.hi; /* one rule for both: a list of them is bounded */
        server = false;
    }
    deny_at(p, http, h);
    if (server)
        deny_at(p, rpc, r);
    if (p->agent_denied.n > JOB_NET_RULES_MAX) {
        /* a machine of many addresses: these ports of all */
        p->agent_denied.n = 0;
        policy_addr_deny(p, "*", h);
        if (server)
            policy_addr_deny(p, "*", r);
    }
}
