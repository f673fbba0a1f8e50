/* SPDX-License-Identifier: Apache-2.0
 *
 * All families in turn, and what they share.
 */
#include "fingerprint/fingerprint.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

void
fingerprint_set(struct node *node, const char *name, const char *value)
{
    struct str_map *m = &node->attributes;
    if (!str_empty(value)) {
        str_map_set(node, m, name, value);
        return;
    }
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->v[i].k, name) == 0) {
            memmove(&m->v[i], &m->v[i + 1], (m->n - i - 1) * sizeof(*m->v));
            m->n--;
            return;
        }
}

void
fingerprint_set_int(struct node *node, const char *name, int64_t value)
{
    auto_mem void *tmp = mem_ctx("attr");
    fingerprint_set(node, name, mem_printf(tmp, "%lld", (long long)value));
}

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
