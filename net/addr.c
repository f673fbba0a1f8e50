/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses as people write them.
 */
#include "net/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "common/num.h"
#include "common/str.h"

bool
addr_is_of_link(const char *host)
{
    static const uint8_t metadata[16] = {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54};
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint8_t v6[16], *v4 = v6 + 12;

    if (inet_pton(AF_INET, host, v4) == 1)
        memcpy(v6, mapped, sizeof(mapped));
    else if (inet_pton(AF_INET6, host, v6) != 1)
        return false;
    if (memcmp(v6, mapped, sizeof(mapped)) != 0)
        return (v6[0] == 0xfe && (v6[1] & 0xc0) == 0x80) ||
               memcmp(v6, metadata, sizeof(metadata)) == 0;
    return (v4[0] == 169 && v4[1] == 254) || memcmp(v4, "\144\144\144\310", 4) == 0 ||
           memcmp(v4, "\250\077\201\020", 4) == 0;
}

static int
parse_unix(const char *path, struct addr *ret, struct err *e)
{
    if (path[0] != '/')
        return err_set(e, -ERR_INVALID, "socket path '%s' is not absolute", path);
    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return err_set(e, -ERR_INVALID, "socket path '%s' is too long", path);
    ret->is_unix = true;
    ret->port = 0;
    (void)str_copy(ret->host, sizeof(ret->host), path);
    return 0;
}

static int
parse_port(const char *text, const char *whole, uint16_t *ret, struct err *e)
{
    uint64_t v;
    if (num_parse_u64(text, &v) < 0 || v > UINT16_MAX)
        return err_set(e, -ERR_INVALID, "address '%s' has no valid port", whole);
    *ret = (uint16_t)v;
    return 0;
}

/* Copies the host and returns the text of the port, NULL when there is none. */
static int
addr_split(const char *s, const char *whole, struct addr *ret, const char **port, struct err *e)
{
    const char *end;
    *port = NULL;
    if (*s == '[') {
        s++;
        end = strchr(s, ']');
        if (!end || (end[1] && end[1] != ':'))
            return err_set(e, -ERR_INVALID, "address '%s' has unbalanced brackets", whole);
        if (end[1])
            *port = end + 2;
    } else {
        end = strchr(s, ':');
        if (end && strchr(end + 1, ':')) {
            end = s + strlen(s); /* a bare IPv6 address */
        } else if (end) {
            *port = end + 1;
        } else {
            end = s + strlen(s);
        }
    }
    size_t n = (size_t)(end - s);
    if (n == 0 || n >= sizeof(ret->host))
        return err_set(e, -ERR_INVALID, "address '%s' has no valid host", whole);
    memcpy(ret->host, s, n);
    ret->host[n] = 0;
    for (const char *p = ret->host; *p; p++)
        if ((unsigned char)*p <= ' ' || strchr("/@[]", *p))
            return err_set(e, -ERR_INVALID, "address '%s' has no valid host", whole);
    return 0;
}

int
addr_parse(const char *s, uint16_t port_dflt, struct addr *ret, struct err *e)
{
    struct addr a = {0};
    const char *port;
    char text[sizeof(a.host) + 16];

    if (str_prefix(s, "unix://")) {
        int r = parse_unix(s + strlen("unix://"), &a, e);
        if (r == 0)
            *ret = a;
        return r;
    }
    if (str_prefix(s, "https://"))
        return err_set(e, -ERR_UNSUPPORTED, "address '%s': https is not supported yet", s);
    const char *p = str_prefix(s, "http://") ? s + strlen("http://") : s;
    if (!str_copy(text, sizeof(text), p))
        return err_set(e, -ERR_INVALID, "address is longer than %zu bytes", sizeof(text) - 1);
    size_t n = strlen(text);
    if (p != s && n > 0 && text[n - 1] == '/')
        text[n - 1] = 0;
    int r = addr_split(text, s, &a, &port, e);
    if (r < 0)
        return r;
    if (port) {
        r = parse_port(port, s, &a.port, e);
        if (r < 0)
            return r;
    } else if (port_dflt == 0) {
        return err_set(e, -ERR_INVALID, "address '%s' has no port", s);
    } else {
        a.port = port_dflt;
    }
    *ret = a;
    return 0;
}

bool
addr_is_numeric(const struct addr *a)
{
    uint8_t out[sizeof(struct in6_addr)];

    return a->is_unix || inet_pton(AF_INET, a->host, out) == 1 ||
           inet_pton(AF_INET6, a->host, out) == 1;
}

const char *
addr_format(const struct addr *a, char out[ADDR_TEXT])
{
    if (a->is_unix)
        snprintf(out, ADDR_TEXT, "unix://%s", a->host);
    else
        snprintf(out, ADDR_TEXT, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, a->port);
    return out;
}
