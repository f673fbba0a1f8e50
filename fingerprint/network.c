/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's address: of the configured interface, else of the default route's, else lo.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "fingerprint/fingerprint.h"
#include "fingerprint/links.h"

static const char *
read_word(const void *ctx, const char *path)
{
    char *text = NULL;
    if (file_read(ctx, AT_FDCWD, path, 256, &text, NULL) < 0)
        return NULL;
    text[strcspn(text, "\n")] = 0;
    return text;
}

static void
network_collect(struct node_network_resource *net, const struct links *l, const struct link *device)
{
    static const int families[] = {AF_INET, AF_INET6};
    for (size_t f = 0; f < ARRAY_LEN(families); f++)
        for (size_t i = 0; device && i < l->n_addresses; i++) {
            const struct link_address *at = &l->addresses[i];
            if (at->index != device->index || at->family != families[f] || at->link_local)
                continue;
            struct node_network_address *a = mem_new(net, struct node_network_address);
            a->family = at->family == AF_INET ? "ipv4" : "ipv6";
            a->alias = "default";
            a->address = mem_strdup(a, at->text);
            list_add(net, net->addresses, a);
        }
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
pick_device(const struct fingerprint_config *cfg, const struct links *l)
{
    if (!str_empty(cfg->network_interface) && !strchr(cfg->network_interface, '/'))
        return cfg->network_interface;
    const struct link *by_route = l->route.index ? links_by_index(l, l->route.index) : NULL;
    return by_route && !cfg->loopback ? by_route->name : "lo";
}

void
fingerprint_network(struct node *node, const struct fingerprint_config *cfg)
{
    auto_mem void *tmp = mem_ctx("network");
    struct node_resources *res = node->node_resources;
    struct links l = {0};
    struct err e = ERR_INIT;
    if (links_read(tmp, LINKS_LINKS | LINKS_ADDRESSES | LINKS_ROUTE, &l, &e) < 0)
        log_warn("fingerprint", "the node has no address", "error", e.text, NULL);
    const char *device = pick_device(cfg, &l);
    const struct link *link = links_by_name(&l, device);
    struct node_network_resource *net = mem_new(res, struct node_network_resource);
    net->mode = "host";
    net->device = mem_strdup(net, device);
    net->mac_address = mem_strdup(net, link ? link->mac : "");
    net->speed = speed_of(tmp, cfg, device);
    network_collect(net, &l, link);
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
