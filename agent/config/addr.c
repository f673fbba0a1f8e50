/* SPDX-License-Identifier: Apache-2.0
 *
 * Address templates of the configuration: "{{ GetPrivateIP }}", "{{ GetPublicIP }}" and
 * "{{ GetInterfaceIP \"eth0\" }}", alone or with a port behind. Other functions of go-sockaddr are
 * refused by name.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

#include "agent/config/config_int.h"
#include "common/fd.h"
#include "common/str.h"

enum { ROUTES_MAX = 1 << 20 };

/* RFC 1918 and the shared space of RFC 6598; loopback and link-local are neither. */
static bool
is_private(uint32_t ip)
{
    return ip >> 24 == 10 || ip >> 20 == 0xac1 || ip >> 16 == 0xc0a8 || ip >> 22 == 0x191;
}

static bool
is_public(uint32_t ip)
{
    return !is_private(ip) && ip >> 24 != 127 && ip >> 16 != 0xa9fe && ip >> 28 < 14 &&
           ip >> 24 != 0;
}

/* The interface of the default route, "" when there is none. */
static void
default_interface(const void *ctx, char name[IF_NAMESIZE])
{
    char *text;
    name[0] = '\0';
    if (file_read(ctx, AT_FDCWD, "/proc/net/route", ROUTES_MAX, &text, NULL) < 0)
        return;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        char *tab = strchr(line, '\t');
        if (tab == NULL || strncmp(tab + 1, "00000000\t", 9) != 0)
            continue;
        *tab = '\0';
        (void)str_copy(name, IF_NAMESIZE, line);
        return;
    }
}

/* The first IPv4 address that fits: on `name` (any when empty), of the wanted kind. */
static const char *
find_address(const void *ctx, const char *name, bool (*fits)(uint32_t ip))
{
    struct ifaddrs *all, *i;
    char text[INET_ADDRSTRLEN] = "";
    if (getifaddrs(&all) < 0)
        return NULL;
    for (i = all; i != NULL && text[0] == '\0'; i = i->ifa_next) {
        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET ||
            (i->ifa_flags & IFF_UP) == 0)
            continue;
        struct sockaddr_in a;
        memcpy(&a, i->ifa_addr, sizeof(a));
        if ((str_empty(name) || strcmp(name, i->ifa_name) == 0) &&
            (fits == NULL || fits(ntohl(a.sin_addr.s_addr))))
            inet_ntop(AF_INET, &a.sin_addr, text, sizeof(text));
    }
    freeifaddrs(all);
    return text[0] != '\0' ? mem_strdup(ctx, text) : NULL;
}

static const char *
addr_evaluate(const void *ctx, const char *key, const char *expr, struct err *e)
{
    static const char word[] = "GetInterfaceIP";
    char name[IF_NAMESIZE];
    if (strcmp(expr, "GetPrivateIP") == 0 || strcmp(expr, "GetPublicIP") == 0) {
        bool (*fits)(uint32_t) = expr[4] == 'r' ? is_private : is_public;
        default_interface(ctx, name);
        const char *ip = find_address(ctx, name, fits);
        if (ip == NULL)
            err_set(e, -ERR_NOT_FOUND, "%s: {{ %s }}: this machine has no such address", key, expr);
        return ip;
    }
    if (strncmp(expr, word, sizeof(word) - 1) == 0) {
        const char *arg = expr + sizeof(word) - 1;
        size_t blank = strspn(arg, " "), n = strlen(arg);
        if (blank > 0 && n - blank > 2 && n - blank < IF_NAMESIZE + 2 && arg[blank] == '"' &&
            arg[n - 1] == '"') {
            memcpy(name, arg + blank + 1, n - blank - 2);
            name[n - blank - 2] = '\0';
            const char *ip = find_address(ctx, name, NULL);
            if (ip == NULL)
                err_set(e, -ERR_NOT_FOUND, "%s: interface \"%s\" has no IPv4 address", key, name);
            return ip;
        }
    }
    err_set(e, -ERR_UNSUPPORTED,
            "%s: {{ %s }} is not supported: GetPrivateIP, GetPublicIP and "
            "GetInterfaceIP \"NAME\" are",
            key, expr);
    return NULL;
}

int
config_expand_addr(const void *ctx, const char *key, const char **addr, struct err *e)
{
    const char *open = str_empty(*addr) ? NULL : strstr(*addr, "{{");
    if (open == NULL)
        return 0;
    const char *from = open + 2, *close = strstr(from, "}}");
    if (close == NULL || close - from > 200 || strstr(close + 2, "{{") != NULL)
        return err_set(e, -ERR_INVALID, "%s \"%s\" is not an address template", key, *addr);
    const char *end = close;
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    const char *ip = addr_evaluate(ctx, key, mem_strndup(ctx, from, (size_t)(end - from)), e);
    if (ip == NULL)
        return e->code;
    *addr = mem_printf(ctx, "%.*s%s%s", (int)(open - *addr), *addr, ip, close + 2);
    return 0;
}
