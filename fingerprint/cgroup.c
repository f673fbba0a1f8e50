/* SPDX-License-Identifier: Apache-2.0
 *
 * Control groups: which version, and where.
 */
#include <fcntl.h>
#include <string.h>

#include "common/fd.h"
#include "common/host/mounts.h"
#include "common/mem.h"
#include "common/str.h"
#include "fingerprint/fingerprint.h"

void
fingerprint_parse_mounts(char *text, struct fingerprint_mounts *ret)
{
    *ret = (struct fingerprint_mounts){0};
    for (struct mount_line m; mounts_next(&text, &m);) {
        if (strcmp(m.type, "cgroup2") == 0 && !ret->cgroup2[0])
            str_copy(ret->cgroup2, sizeof(ret->cgroup2), m.point);
        const char *slash = strrchr(m.point, '/');
        if (strcmp(m.type, "cgroup") == 0 && !ret->cgroup1[0] && slash && slash != m.point &&
            (size_t)(slash - m.point) < sizeof(ret->cgroup1))
            memcpy(ret->cgroup1, m.point, (size_t)(slash - m.point));
    }
}

void
fingerprint_cgroup(struct node *node, const struct fingerprint_config *cfg)
{
    (void)cfg;
    auto_mem void *tmp = mem_ctx("cgroup");
    char *text = NULL;
    struct fingerprint_mounts m;
    if (file_read(tmp, AT_FDCWD, MOUNTS_FILE, MOUNT_TABLE_MAX, &text, NULL) < 0)
        return;
    fingerprint_parse_mounts(text, &m);
    if (!m.cgroup2[0] && !m.cgroup1[0])
        return;
    /* Version 2 is used wherever it is mounted, but where version 1 is mounted beside it the
     * controllers may be there: who asks for version 2 wants its limits. */
    fingerprint_set(node, "os.cgroups.version", m.cgroup1[0] ? "1" : "2");
    fingerprint_set(node, "unique.cgroup.version", m.cgroup2[0] ? "v2" : "v1");
    fingerprint_set(node, "unique.cgroup.mountpoint", m.cgroup2[0] ? m.cgroup2 : m.cgroup1);
    /* the limits of tasks that this hierarchy can enforce */
    char *controllers = NULL;
    char *path = mem_printf(tmp, "%s/cgroup.controllers", m.cgroup2);
    if (m.cgroup2[0] && file_read(tmp, AT_FDCWD, path, 4096, &controllers, NULL) == 0) {
        controllers[strcspn(controllers, "\n")] = 0;
        fingerprint_set(node, "unique.cgroup.controllers", controllers);
    }
}
