/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's address: of the configured interface, else of the default route's, else lo.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "fingerprint/fingerprint.h"

/* The n-th (0..) blank-separated word of a line. */
static bool
word(const char *line, const char *end, size_t n, char *ret, size_t size)
{
    const char *p = line;
    for (size_t i = 0;; i++) {
        while (p < end && isspace((unsigned char)*p))
            p++;
        const char *w = p;
        while (p < end && !isspace((unsigned char)*p))
            p++;
        if (w == p)
            return false;
        if (i < n)
            continue;
        size_t len = (size_t)(p - w);
        if (len >= size)
            return false;
        memcpy(ret, w, len);
        ret[len] = 0;
        return true;
    }
}

bool
fingerprint_parse_route(const char *text, char *ret, size_t size)
{
    int64_t best = INT64_MAX;
    for (const char *line = text; *line;) {
        const char *end = strchrnul(line, '\n');
        char name[IF_NAMESIZE], dest[16], mask[16], metric[16];
        int64_t m;
        if (word(line, end, 0, name, sizeof(name)) && word(line, end, 1, dest, sizeof(dest)) &&
            word(line, end, 6, metric, sizeof(metric)) && word(line, end, 7, mask, sizeof(mask)) &&
            strcmp(dest, "00000000") == 0 && strcmp(mask, "00000000") == 0 &&
            num_parse_i64(metric, &m) == 0 && m < best && str_copy(ret, size, name))
            best = m;
        line = *end ? end + 1 : end;
    }
    return best != INT64_MAX;
}

static const char *
read_word(const void *ctx, const char *path)
{
    char *text = NULL;
    if (file_read(ctx, AT_FDCWD, path, 256, &text, NULL) < 0)
        return NULL;
    text[strcspn(text, "\n")] = 0;
    return text;
}

static bool
address_text(const struct sockaddr *sa, char out[INET6_ADDRSTRLEN], const char **family)
{
    if (sa && sa->sa_family == AF_INET) {
        *family = "ipv4";
        const struct sockaddr_in *in = (const void *)sa;
        return inet_ntop(AF_INET, &in->sin_addr, out, INET6_ADDRSTRLEN) != NULL;
    }
    if (sa && sa->sa_family == AF_INET6) {
        *family = "ipv6";
        const struct sockaddr_in6 *in6 = (const void *)sa;
        if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
            return false;
        return inet_ntop(AF_INET6, &in6->sin6_addr, out, INET6_ADDRSTRLEN) != NULL;
    }
    return false;
}

static void
collect(struct node_network_resource *net, const char *device)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) < 0)
        return;
    for (int pass = 0; pass < 2; pass++) /* IPv4 first */
        for (struct ifaddrs *i = all; i; i = i->ifa_next) {
            char text[INET6_ADDRSTRLEN];
            const char *family;
            if (strcmp(i->ifa_name, device) != 0 || !address_text(i->ifa_addr, text, &family))
                continue;
            if ((strcmp(family, "ipv4") == 0) != (pass == 0))
                continue;
            struct node_network_address *a = mem_new(net, struct node_network_address);
            a->family = family;
            a->alias = "default";
            a->address = mem_strdup(a, text);
            list_add(net, net->addresses, a);
        }
    freeifaddrs(all);
}

static int64_t
speed_of(const void *ctx, const struct fingerprint_config *cfg, const char *device)
{
    int64_t mbit;
    if (cfg->network_speed > 0)
        return cfg->network_speed;
    const char *s = read_word(ctx, mem_printf(ctx, "/sys/class/net/%s/speed", device));
    return s && num_parse_i64(s, &mbit) == 0 && mbit > 0 ? mbit : 1000;
}

static const char *
pick_device(const void *ctx, const struct fingerprint_config *cfg)
{
    if (!str_empty(cfg->network_interface) && !strchr(cfg->network_interface, '/'))
        return cfg->network_interface;
    char name[IF_NAMESIZE];
    char *text = NULL;
    if (!cfg->loopback && file_read(ctx, AT_FDCWD, "/proc/net/route", 1 << 20, &text, NULL) == 0 &&
        fingerprint_parse_route(text, name, sizeof(name)))
        return mem_strdup(ctx, name);
    return "lo";
}

void
fingerprint_network(struct node *node, const struct fingerprint_config *cfg)
{
    auto_mem void *tmp = mem_ctx("network");
    struct node_resources *res = node->node_resources;
    const char *device = pick_device(tmp, cfg);
    struct node_network_resource *net = mem_new(res, struct node_network_resource);
    net->mode = "host";
    net->device = mem_strdup(net, device);
    const char *mac = read_word(tmp, mem_printf(tmp, "/sys/class/net/%s/address", device));
    net->mac_address = mem_strdup(net, str_or(mac, ""));
    net->speed = speed_of(tmp, cfg, device);
    collect(net, device);
    res->node_networks = (struct node_network_resource_list){0};
    res->networks = (struct network_resource_list){0};
    if (net->addresses.n == 0)
        return;
    list_add(res, res->node_networks, net);
    fingerprint_set(node, "unique.network.ip-address", net->addresses.v[0]->address);
    for (size_t i = 0; i < net->addresses.n; i++) {
        const struct node_network_address *a = net->addresses.v[i];
        struct network_resource *n = mem_new(res, struct network_resource);
        n->mode = "host";
        n->device = net->device;
        n->ip = a->address;
        n->cidr = mem_printf(n, "%s/%d", a->address, strcmp(a->family, "ipv4") == 0 ? 32 : 128);
        n->mbits = net->speed;
        list_add(res, res->networks, n);
    }
}
