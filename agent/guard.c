/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/guard.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/str.h"

enum {
    NAME_SIZE = 256,           /* of a host name (RFC 1035, 2.3.4) and its NUL */
    HOST_SIZE = NAME_SIZE + 8, /* with brackets and a port */
};

/* The name in "name", "name:port" or "[address]:port", without the dot that may end it. False: it
 * is none. */
static bool
name_of(const char *authority, char name[NAME_SIZE])
{
    const char *from = authority;
    size_t n = strcspn(from, ":");

    if (*from == '[') {
        from++;
        n = strcspn(from, "]");
        if (from[n] != ']')
            return false;
    }
    if (n > 0 && from[n - 1] == '.')
        n--;
    if (n == 0 || n >= NAME_SIZE)
        return false;
    memcpy(name, from, n);
    name[n] = '\0';
    return true;
}

static bool
is_address(const char *name)
{
    unsigned char raw[16];
    return inet_pton(AF_INET, name, raw) == 1 || inet_pton(AF_INET6, name, raw) == 1;
}

/* "*.example.com" is every name below example.com. */
static bool
guard_listed(const struct str_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *want = l->v[i];
        if (strcasecmp(want, name) == 0)
            return true;
        size_t tail = strlen(want) - 1, n = strlen(name);
        if (*want == '*' && n > tail && strcasecmp(want + 1, name + n - tail) == 0)
            return true;
    }
    return false;
}

/* Whom the request is for: of an absolute target its authority, whatever its Host is (RFC
 * 9112, 3.2.2). One that is too long is nobody's name. */
static const char *
host_of(const struct http_req *req, char room[HOST_SIZE])
{
    const char *at = req->target + strlen("http://");

    if (strncasecmp(req->target, "http://", strlen("http://")) != 0)
        return http_header(req, "host");
    size_t n = strcspn(at, "/?#");
    snprintf(room, HOST_SIZE, "%.*s", n < HOST_SIZE ? (int)n : 1, n < HOST_SIZE ? at : "?");
    return room;
}

bool
guard_host(const struct guard *g, struct http_req *req)
{
    char name[NAME_SIZE], room[HOST_SIZE];
    const char *host = host_of(req, room);

    /* no browser speaks HTTP/1.0 without Host, or over a unix socket */
    if (!host || strcmp(req->peer, "unix") == 0)
        return true;
    if (name_of(host, name) && (is_address(name) || strcasecmp(name, "localhost") == 0 ||
                                guard_listed(&g->own, name) || guard_listed(&g->hosts, name)))
        return true;
    http_fail(req, 403,
              "\"%s\" is not known as a name of this agent: ask it by address, or list the "
              "name in http_api_hosts of its configuration",
              host);
    return false;
}

/* A page from here: it names us as the request does, or by a name that the operator listed. */
static bool
origin_ours(const struct guard *g, const struct http_req *req, const char *origin)
{
    char name[NAME_SIZE], room[HOST_SIZE];
    const char *host = host_of(req, room), *at = strstr(origin, "://");

    if (!at)
        return false; /* "null": a sandboxed page, a file */
    at += strlen("://");
    return (host && strcasecmp(at, host) == 0) ||
           (name_of(at, name) && guard_listed(&g->hosts, name));
}

bool
guard_origin(const struct guard *g, struct http_req *req)
{
    bool told = false;

    for (size_t i = 0; i < req->n_headers; i++) {
        if (strcmp(req->headers[i].k, "origin") != 0)
            continue;
        told = true;
        if (!origin_ours(g, req, req->headers[i].v)) {
            http_fail(req, 403,
                      "a page of another origin (\"%s\") may not do this: if it is meant to, "
                      "list its host in http_api_hosts of the agent's configuration",
                      req->headers[i].v);
            return false;
        }
    }
    const char *site = http_header(req, "sec-fetch-site");
    if (told || !site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0)
        return true;
    http_fail(req, 403, "a page of another origin may not do this (Sec-Fetch-Site: %s)", site);
    return false;
}

bool
guard_name_ok(const char *name)
{
    char text[NAME_SIZE];

    if (str_prefix(name, "*."))
        name += strlen("*.");
    return !strpbrk(name, "*/[]: ") && name_of(name, text) && strcmp(name, text) == 0;
}
