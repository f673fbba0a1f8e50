/* SPDX-License-Identifier: Apache-2.0
 *
 * What a container binds, looked at before its engine does, which is root and follows any link. A
 * path that another task may change between the two looks is not for containers, whatever it is
 * now:
 *
 *   - in the allocation, what is in the task's own local/ and secrets/, where nothing else writes
 *     while its container is made; the shared directory is /alloc anyway
 *   - of the host, the paths of the policy, and not what is below them
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"
#include "isolation/launch/policy.h"

enum { DIR_MODE = 0755, PARTS_MAX = 64 };

static const char *
own_path(const void *ctx, const char *path)
{
    const char *part[PARTS_MAX];
    size_t n = 0;
    char *save = NULL;
    for (char *p = strtok_r(mem_strdup(ctx, path), "/", &save); p; p = strtok_r(NULL, "/", &save)) {
        if (str_eq(p, "."))
            continue;
        if (n == (str_eq(p, "..") ? 0 : PARTS_MAX))
            return NULL;
        if (str_eq(p, ".."))
            n--;
        else
            part[n++] = p;
    }
    if (n == 0 || (!str_eq(part[0], "local") && !str_eq(part[0], "secrets")))
        return NULL;
    const char *all = part[0];
    for (size_t i = 1; i < n; i++)
        all = mem_printf(ctx, "%s/%s", all, part[i]);
    return all;
}

const char *
places_path(const void *ctx, const char *path, struct err *e)
{
    const char *own = own_path(ctx, path);
    if (!own)
        err_set(
            e, -ERR_POLICY,
            "mount of \"%.128s\": a container mounts what is in the task's local/ and secrets/; "
            "the shared directory is /alloc in it",
            path);
    return own;
}

static int
open_place(int dir, const char *path)
{
    return fd_open_beneath(dir, path, O_PATH, 0, false);
}

/* Opens the source, made if it is not there, as engines do. */
static int
open_made(int dir, const char *path)
{
    auto_mem void *tmp = mem_ctx("place");
    int r = open_place(dir, path);
    for (const char *slash = path; r == -ENOENT && slash;) {
        slash = strchr(slash + 1, '/');
        const char *part = slash ? mem_strndup(tmp, path, (size_t)(slash - path)) : path;
        const char *name = strrchr(part, '/');
        auto_fd int above = name ? open_place(dir, mem_strndup(tmp, part, (size_t)(name - part)))
                                 : open_place(dir, ".");
        if (above < 0)
            return above;
        if (mkdirat(above, name ? name + 1 : part, DIR_MODE) < 0 && errno != EEXIST)
            return -errno;
        if (!slash)
            r = open_place(dir, path);
    }
    return r;
}

static int
find_own(const void *ctx, const struct hand *h, const char *dir, const struct hand_mount *m,
         const char **ret, struct err *e)
{
    const char *path = places_path(ctx, m->source, e);
    if (!path)
        return e->code;
    auto_fd int top = fd_open_beneath(h->allocs, dir, O_PATH | O_DIRECTORY, 0, false);
    auto_fd int fd = top < 0 ? top : m->make ? open_made(top, path) : open_place(top, path);
    if (fd < 0)
        return err_set(e, -ERR_INVALID, "mount of \"%.128s\": %s", m->source,
                       fd == -ELOOP ? "a symbolic link is on its way" : strerror(-fd));
    *ret = mem_printf(ctx, "%s/%s/%s", h->policy->alloc_dir, dir, path);
    return 0;
}

int
places_find(const void *ctx, const struct hand *h, const char *dir, const struct hand_task *t,
            struct str_list *ret, struct err *e)
{
    int r = 0;
    *ret = (struct str_list){0};
    for (size_t i = 0; i < t->mounts.n && r == 0; i++) {
        const struct hand_mount *m = t->mounts.v[i];
        const char *volume =
            str_empty(m->host_volume) ? NULL : policy_volume_path(ctx, h->policy, m->host_volume);
        const char *source = str_or(volume, str_or(m->source, ""));
        if (str_eq(m->type, "bind") && *source != '/')
            r = find_own(ctx, h, dir, m, &source, e);
        if (r == 0)
            list_add(ctx, *ret, source);
    }
    return r;
}
