/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/reach.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/netrule.h"
#include "common/str.h"

/* --- names --- */

int
reach_scheme(const struct artifact_policy *p, const char *scheme, struct err *e)
{
    if (p == NULL || p->schemes.n == 0 || str_list_has(&p->schemes, scheme))
        return 0;
    return err_set(e, -ERR_POLICY,
                   "\"%.32s\" is not among the schemes that this client's operator allows "
                   "(client.artifact.policy)",
                   scheme);
}

static bool
host_matches(const struct str_list *globs, const char *host)
{
    auto_mem void *tmp = mem_ctx("host");
    char *lower = mem_strdup(tmp, host);
    size_t n = strlen(lower);
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)tolower((unsigned char)lower[i]);
    if (n > 1 && lower[n - 1] == '.')
        lower[n - 1] = '\0';
    for (size_t i = 0; i < globs->n; i++)
        if (str_glob(globs->v[i], lower))
            return true;
    return false;
}

/* An address in a URL is judged before anybody is asked to connect to it. */
static int
reach_digits(const struct artifact_policy *p, const char *host, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *all = NULL;
    struct reach_name name;
    if (getaddrinfo(host, NULL, &hints, &all) != 0)
        return 0;
    int r = reach_address(p, all->ai_addr, &name, e);
    freeaddrinfo(all);
    return r;
}

int
reach_host(const struct artifact_policy *p, const char *host, struct err *e)
{
    if (p != NULL && !str_empty(p->proxy) && reach_digits(p, host, e) < 0)
        return -ERR_POLICY;
    if (p == NULL || (!host_matches(&p->deny_hosts, host) &&
                      (p->allow_hosts.n == 0 || host_matches(&p->allow_hosts, host))))
        return 0;
    return err_set(e, -ERR_POLICY,
                   "this client's operator allows no artifacts from the host \"%.255s\" "
                   "(client.artifact.policy)",
                   host);
}

/* --- addresses --- */

struct address {
    bool v4;
    uint8_t bytes[16]; /* 4 of them with v4 */
    uint16_t port;
};

static bool
address_of(const struct sockaddr *sa, struct address *ret)
{
    const struct sockaddr_in6 *s6 = (const void *)sa;
    const struct sockaddr_in *s4 = (const void *)sa;
    *ret = (struct address){.v4 = sa->sa_family == AF_INET};
    if (ret->v4) {
        memcpy(ret->bytes, &s4->sin_addr, 4);
        ret->port = ntohs(s4->sin_port);
        return true;
    }
    if (sa->sa_family != AF_INET6)
        return false;
    static const uint8_t nat64[12] = {0, 0x64, 0xff, 0x9b};
    ret->port = ntohs(s6->sin6_port);
    ret->v4 = IN6_IS_ADDR_V4MAPPED(&s6->sin6_addr) ||
              memcmp(s6->sin6_addr.s6_addr, nat64, sizeof(nat64)) == 0;
    memcpy(ret->bytes, s6->sin6_addr.s6_addr + (ret->v4 ? 12 : 0), ret->v4 ? 4 : 16);
    return true;
}

static bool
rule_matches(const char *text, const struct address *a)
{
    struct netrule r;
    if (netrule_parse(text, &r, NULL) < 0 || (r.protos & NETRULE_TCP) == 0 ||
        !(a->v4 ? r.v4 : r.v6))
        return false;
    /* without a port only the address is known yet */
    if (a->port != 0 && (a->port < r.lo || a->port > r.hi))
        return false;
    if (r.v4 && r.v6)
        return true;
    unsigned whole = r.bits / 8, rest = r.bits % 8;
    if (memcmp(r.addr, a->bytes, whole) != 0)
        return false;
    unsigned mask = rest > 0 ? 0xffu << (8 - rest) & 0xff : 0;
    return rest == 0 || ((r.addr[whole] ^ a->bytes[whole]) & mask) == 0;
}

static bool
rules_match(const struct str_list *rules, const struct address *a)
{
    for (size_t i = 0; i < rules->n; i++)
        if (rule_matches(rules->v[i], a))
            return true;
    return false;
}

static bool
rules_match_any(const char *const *v, size_t n, const struct address *a)
{
    return rules_match(&(const struct str_list){(const char **)(uintptr_t)v, n}, a);
}

int
reach_address(const struct artifact_policy *p, const struct sockaddr *sa, struct reach_name *name,
              struct err *e)
{
    /* and what else is link-local or multicast */
    static const char *const never[] = {"169.254.0.0/16",  "224.0.0.0/3",    "fe80::/10",
                                        "ff00::/8",        "fd00:ec2::/112", "fd20:ce::/112",
                                        "100.100.100.200", "168.63.129.16"};
    /* the host itself, and its networks */
    static const char *const private[] = {"127.0.0.0/8",    "10.0.0.0/8",     "172.16.0.0/12",
                                          "192.168.0.0/16", "100.64.0.0/10",  "198.18.0.0/15",
                                          "0.0.0.0/8",      "192.0.0.0/24",   "::/96",
                                          "fc00::/7",       "64:ff9b:1::/48", "fec0::/10"};
    struct address a;
    name->text[0] = '\0';
    if (!address_of(sa, &a))
        return err_set(e, -ERR_POLICY, "the host has no address of the internet");
    (void)inet_ntop(a.v4 ? AF_INET : AF_INET6, a.bytes, name->text, sizeof(name->text));
    if (rules_match_any(never, ARRAY_LEN(never), &a))
        return err_set(e, -ERR_POLICY,
                       "the address %s is not for artifacts: it is that of a "
                       "metadata service, or link-local",
                       name->text);
    if ((p == NULL || p->allow.n == 0) && rules_match_any(private, ARRAY_LEN(private), &a))
        return err_set(e, -ERR_POLICY,
                       "the address %s is of this host or of a private network: where its operator "
                       "lets artifacts come from there, client.artifact.policy.allow has it",
                       name->text);
    if (p == NULL ||
        (!rules_match(&p->deny, &a) && (p->allow.n == 0 || rules_match(&p->allow, &a))))
        return 0;
    return err_set(e, -ERR_POLICY,
                   "this client's operator allows no artifacts from the address %s port %u "
                   "(client.artifact.policy)",
                   name->text, (unsigned)a.port);
}

/* --- connections --- */

static int
reach_find(const char *host, const char *port, struct addrinfo **ret, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    int r = getaddrinfo(host, port, &hints, ret);
    return r == 0 ? 0
                  : err_set(e, -ERR_UNAVAILABLE, "find the address of \"%.255s\": %s", host,
                            r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
}

int
reach_lookup(const struct artifact_policy *p, const char *host, const char *port,
             struct reach_name *ret, struct err *e)
{
    struct addrinfo *all = NULL;
    int r = reach_host(p, host, e);
    if (r == 0)
        r = reach_find(host, port, &all, e);
    if (r < 0)
        return r;
    r = -ERR_POLICY;
    for (struct addrinfo *a = all; a != NULL && r < 0; a = a->ai_next) {
        err_clear(e);
        r = reach_address(p, a->ai_addr, ret, e);
    }
    freeaddrinfo(all);
    return r;
}

static int
connect_one(const struct addrinfo *a)
{
    int error = 0;
    socklen_t n = sizeof(error);
    auto_fd int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
        return TAKE_FD(fd);
    if (errno != EINPROGRESS)
        return -errno;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (poll(&p, 1, REACH_CONNECT_MS) <= 0)
        return -ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 || error != 0)
        return -(error != 0 ? error : errno);
    return TAKE_FD(fd);
}

/* With `judge` to those alone that `p` lets. */
static int
connect_first(const struct artifact_policy *p, bool judge, const char *host, const char *port,
              struct err *e)
{
    struct addrinfo *all = NULL;
    struct reach_name name;
    int r = reach_find(host, port, &all, e), fd = -1;
    if (r < 0)
        return r;
    for (struct addrinfo *a = all; a != NULL && fd < 0; a = a->ai_next) {
        err_clear(e);
        r = judge ? reach_address(p, a->ai_addr, &name, e) : 0;
        fd = r < 0 ? -1 : connect_one(a);
        if (r == 0 && fd < 0)
            r = err_errno(e, -fd, "connect to \"%.255s\" port %s", host, port);
    }
    freeaddrinfo(all);
    return fd >= 0 ? fd : r;
}

int
reach_connect(const struct artifact_policy *p, const char *host, const char *port, struct err *e)
{
    int r = reach_host(p, host, e);
    return r < 0 ? r : connect_first(p, true, host, port, e);
}

bool
reach_proxy(const void *ctx, const struct artifact_policy *p, struct reach_proxy *ret)
{
    *ret = (struct reach_proxy){.port = "80"};
    if (p == NULL || str_empty(p->proxy))
        return false;
    const char *s = p->proxy + strlen("http://");
    size_t n = strcspn(s, "/?#");
    const char *at = memrchr(s, '@', n);
    if (at != NULL) {
        ret->user = mem_strndup(ctx, s, (size_t)(at - s));
        n -= (size_t)(at + 1 - s);
        s = at + 1;
    }
    const char *colon = memrchr(s, ':', n);
    bool bracket = n > 0 && s[n - 1] == ']'; /* "[::1]" */
    if (colon != NULL && !bracket) {
        (void)snprintf(ret->port, sizeof(ret->port), "%.*s", (int)(s + n - colon - 1), colon + 1);
        n = (size_t)(colon - s);
    }
    bool in = n > 1 && s[0] == '[' && s[n - 1] == ']';
    (void)snprintf(ret->host, sizeof(ret->host), "%.*s", (int)(in ? n - 2 : n), s + (in ? 1 : 0));
    return true;
}

int
reach_connect_proxy(const struct reach_proxy *x, struct err *e)
{
    int r = connect_first(NULL, false, x->host, x->port, e);
    return r < 0 ? err_prefix(e, "the proxy of client.artifact.policy") : r;
}
