/* SPDX-License-Identifier: Apache-2.0
 *
 * An attribute of a node, below all that find some.
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
