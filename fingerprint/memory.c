/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: memory.totalbytes.
 */
#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "common/fd.h"
#include "common/mem.h"
#include "fingerprint/fingerprint.h"

int64_t
fingerprint_parse_meminfo(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = text; *line;) {
        const char *end = strchrnul(line, '\n');
        if (strncmp(line, key, n) == 0 && line[n] == ':') {
            const char *p = line + n + 1;
            while (*p == ' ' || *p == '\t')
                p++;
            int64_t kb = 0;
            if (!isdigit((unsigned char)*p))
                return 0;
            for (; isdigit((unsigned char)*p); p++) {
                kb = kb * 10 + (*p - '0');
                if (kb > INT64_C(1) << 50)
                    return 0;
            }
            return kb * 1024;
        }
        line = *end ? end + 1 : end;
    }
    return 0;
}

void
fingerprint_memory(struct node *node, const struct fingerprint_config *cfg)
{
    auto_mem void *tmp = mem_ctx("memory");
    char *text = NULL;
    int64_t total = cfg->memory_total_mb * (INT64_C(1) << 20);
    if (total <= 0 && file_read(tmp, AT_FDCWD, "/proc/meminfo", 64 << 10, &text, NULL) == 0)
        total = fingerprint_parse_meminfo(text, "MemTotal");
    if (total <= 0)
        return;
    fingerprint_set_int(node, "memory.totalbytes", total);
    struct node_memory_resources *r = mem_new(node->node_resources, struct node_memory_resources);
    r->memory_mb = total >> 20;
    node->node_resources->memory = r;
}
