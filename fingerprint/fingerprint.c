/* SPDX-License-Identifier: Apache-2.0
 *
 * All families in turn.
 */
#include "fingerprint/fingerprint.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

const struct str_map *
fingerprint_runtime(const void *ctx, const char *driver)
{
    static const struct {
        const char *driver, *program;
        bool (*find)(const void *ctx, const char *program, struct str_map *ret);
    } rows[] = {
        {"java", "/usr/bin/java", fingerprint_java},
        {"qemu", "/usr/bin/qemu-system-", fingerprint_qemu},
    };
    struct str_map *found = mem_new(ctx, struct str_map);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (str_eq(rows[i].driver, driver) && rows[i].find(found, rows[i].program, found))
            return found;
    return NULL;
}

static void
fingerprint_nomad(struct node *node, const struct fingerprint_config *cfg)
{
    fingerprint_set(node, "nomad.version", NOMAD_VERSION);
    fingerprint_set(node, "paddock.version", cfg->version);
    fingerprint_set(node, "unique.advertise.address", cfg->http_addr);
    fingerprint_set(node, "os.signals", cfg->signals);
    fingerprint_set(node, "nomad.service_discovery", cfg->no_services ? "false" : "true");
}

void
fingerprint_run(struct node *node, const struct fingerprint_config *cfg)
{
    if (!node->node_resources)
        node->node_resources = mem_new(node, struct node_resources);
    fingerprint_cpu(node, cfg);
    fingerprint_memory(node, cfg);
    fingerprint_storage(node, cfg);
    fingerprint_network(node, cfg);
    fingerprint_host(node, cfg);
    fingerprint_cgroup(node, cfg);
    fingerprint_nomad(node, cfg);
}
