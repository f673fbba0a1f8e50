/* SPDX-License-Identifier: Apache-2.0
 *
 * Control groups: which version, and where.
 */
#include <fcntl.h>
#include <string.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "fingerprint/fingerprint.h"

/* "device mount type ..." -> mount and type of a line. */
static bool
fields(const char *line, const char *end, char *mount, char *type, size_t size)
{
    const char *m = memchr(line, ' ', (size_t)(end - line));
    const char *t = m ? memchr(m + 1, ' ', (size_t)(end - m - 1)) : NULL;
    const char *o = t ? memchr(t + 1, ' ', (size_t)(end - t - 1)) : NULL;
    if (!o || (size_t)(t - m) > size || (size_t)(o - t) > size)
        return false;
    memcpy(mount, m + 1, (size_t)(t - m - 1));
    mount[t - m - 1] = 0;
    memcpy(type, t + 1, (size_t)(o - t - 1));
    type[o - t - 1] = 0;
    return true;
}

void
fingerprint_parse_mounts(const char *text, struct fingerprint_mounts *ret)
{
    *ret = (struct fingerprint_mounts){0};
    for (const char *line = text; *line;) {
        const char *end = strchrnul(line, '\n');
        char mount[256], type[256];
        if (fields(line, end, mount, type, sizeof(mount))) {
            if (strcmp(type, "cgroup2") == 0 && !ret->cgroup2[0])
                str_copy(ret->cgroup2, sizeof(ret->cgroup2), mount);
            char *slash = strrchr(mount, '/');
            if (strcmp(type, "cgroup") == 0 && !ret->cgroup1[0] && slash && slash != mount) {
                *slash = 0;
                str_copy(ret->cgroup1, sizeof(ret->cgroup1), mount);
            }
        }
        line = *end ? end + 1 : end;
    }
}

void
fingerprint_cgroup(struct node *node, const struct fingerprint_config *cfg)
{
    (void)cfg;
    auto_mem void *tmp = mem_ctx("cgroup");
    char *text = NULL;
    struct fingerprint_mounts m;
    if (file_read(tmp, AT_FDCWD, "/proc/self/mounts", 1 << 20, &text, NULL) < 0)
        return;
    fingerprint_parse_mounts(text, &m);
    if (!m.cgroup2[0] && !m.cgroup1[0])
        return;
    /* Version 2 is used wherever it is mounted, but where version 1 is mounted beside it the
     * controllers may be there: who asks for version 2 wants its limits. */
    fingerprint_set(node, "os.cgroups.version", m.cgroup1[0] ? "1" : "2");
    fingerprint_set(node, "unique.cgroup.version", m.cgroup2[0] ? "v2" : "v1");
    fingerprint_set(node, "unique.cgroup.mountpoint", m.cgroup2[0] ? m.cgroup2 : m.cgroup1);
    /* What limits of tasks this hierarchy can enforce. */
    char *controllers = NULL;
    char *path = mem_printf(tmp, "%s/cgroup.controllers", m.cgroup2);
    if (m.cgroup2[0] && file_read(tmp, AT_FDCWD, path, 4096, &controllers, NULL) == 0) {
        controllers[strcspn(controllers, "\n")] = 0;
        fingerprint_set(node, "unique.cgroup.controllers", controllers);
    }
}
