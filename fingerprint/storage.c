/* SPDX-License-Identifier: Apache-2.0
 *
 * Disk of the allocation directory: unique.storage.*.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/fd.h"
#include "common/host/mounts.h"
#include "common/mem.h"
#include "common/str.h"
#include "fingerprint/fingerprint.h"

static bool
storage_holds(const char *mount, const char *path)
{
    size_t n = strlen(mount);
    if (strcmp(mount, "/") == 0)
        return true;
    return strncmp(path, mount, n) == 0 && (path[n] == 0 || path[n] == '/');
}

bool
fingerprint_parse_volume(char *text, const char *path, char *ret, size_t size)
{
    size_t best = 0;
    for (struct mount_line m; mounts_next(&text, &m);)
        if (storage_holds(m.point, path) && strlen(m.point) >= best &&
            str_copy(ret, size, m.device))
            best = strlen(m.point);
    return best > 0;
}

void
fingerprint_storage(struct node *node, const struct fingerprint_config *cfg)
{
    auto_mem void *tmp = mem_ctx("storage");
    const char *dir = str_or(cfg->alloc_dir, "/");
    struct statvfs vfs;
    /* The directory may not exist yet: what will hold it. */
    char *probe = mem_strdup(tmp, dir);
    while (statvfs(probe, &vfs) < 0) {
        char *slash = strrchr(probe, '/');
        if (!slash || slash == probe) {
            if (statvfs("/", &vfs) < 0)
                return;
            break;
        }
        *slash = 0;
    }
    char *text = NULL;
    char volume[512];
    if (file_read(tmp, AT_FDCWD, MOUNTS_FILE, MOUNT_TABLE_MAX, &text, NULL) == 0 &&
        fingerprint_parse_volume(text, dir, volume, sizeof(volume)))
        fingerprint_set(node, "unique.storage.volume", volume);
    int64_t block = (int64_t)vfs.f_frsize;
    int64_t total = (int64_t)vfs.f_blocks * block;
    if (cfg->disk_total_mb > 0)
        total = cfg->disk_total_mb * (INT64_C(1) << 20);
    fingerprint_set_int(node, "unique.storage.bytestotal", total);
    struct node_disk_resources *r = mem_new(node->node_resources, struct node_disk_resources);
    r->disk_mb = total >> 20; /* what else lies there is the operator's to reserve, as in Nomad */
    node->node_resources->disk = r;
}
