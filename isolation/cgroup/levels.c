/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/cgroup/levels_int.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/cgroup/dir.h"

/* "100", "default 100", "max" (as much as there is). */
static bool
read_value(int dirfd, const char *name, int64_t *ret)
{
    char text[64];
    if (cgroup_read(dirfd, name, text, sizeof(text)) < 0)
        return false;
    text[strcspn(text, "\n")] = 0;
    const char *p = str_prefix(text, "default ") ? text + 8 : text;
    if (str_eq(p, "max")) {
        *ret = INT64_MAX;
        return true;
    }
    return num_parse_i64(p, ret) == 0 && *ret >= 0;
}

/* Adds up the number in `file` of each directory in `dirs`; -1: none has the file. */
static int64_t
levels_sum(int dirfd, const struct str_list *dirs, const char *file)
{
    int64_t all = -1;
    for (size_t i = 0; i < dirs->n; i++) {
        char name[NAME_MAX + 32];
        int64_t v;
        (void)snprintf(name, sizeof(name), "%s/%s", dirs->v[i], file);
        if (!read_value(dirfd, name, &v))
            continue;
        all = all < 0 ? 0 : all;
        all = v > INT64_MAX - all ? INT64_MAX : all + v;
    }
    return all;
}

static void
levels_put(int dirfd, const char *name, int64_t v)
{
    char text[24];
    if (v == INT64_MAX)
        (void)str_copy(text, sizeof(text), "max");
    else
        (void)snprintf(text, sizeof(text), "%lld", (long long)v);
    (void)file_put(dirfd, name, text);
}

static int64_t
levels_weight(int64_t v)
{
    return v < CGROUP_WEIGHT_MAX ? v : CGROUP_WEIGHT_MAX;
}

/* Gives the allocation the weight of all its tasks, so that it gets as much of a busy machine as
 * they may. An idle task has no weight; one that has none but idle tasks is idle itself. */
static void
sum_weights(const struct cgroup_root *r, int allocfd, const struct str_list *tasks)
{
    int64_t v;
    if (r->controllers & CGROUP_CPU) {
        v = levels_sum(allocfd, tasks, "cpu.weight");
        (void)file_put(allocfd, "cpu.idle", v == 0 ? "1" : "0");
        if (v > 0)
            levels_put(allocfd, "cpu.weight", levels_weight(v));
    }
    if ((r->controllers & CGROUP_IO) && (v = levels_sum(allocfd, tasks, "io.weight")) > 0)
        levels_put(allocfd, "io.weight", levels_weight(v));
}

static void
sum_memory(int dirfd, const struct str_list *children)
{
    static const char *const files[] = {"memory.low", "memory.min"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int64_t v = levels_sum(dirfd, children, files[i]);
        if (v >= 0)
            levels_put(dirfd, files[i], v);
    }
}

static bool
keeps_memory(int dirfd)
{
    int64_t low = 0, min = 0;
    (void)read_value(dirfd, "memory.low", &low);
    (void)read_value(dirfd, "memory.min", &min);
    return low > 0 || min > 0;
}

void
levels_update(const struct cgroup_root *r, int allocfd, bool kept)
{
    auto_mem void *tmp = mem_ctx("levels");
    struct str_list tasks = {0}, allocs = {0};
    if (!(r->controllers & (CGROUP_CPU | CGROUP_IO | CGROUP_MEMORY)))
        return;
    if (allocfd >= 0) {
        cgroup_dirs(tmp, allocfd, &tasks);
        sum_weights(r, allocfd, &tasks);
    }
    if (!(r->controllers & CGROUP_MEMORY))
        return;
    if (allocfd >= 0 && (kept || keeps_memory(allocfd)))
        sum_memory(allocfd, &tasks);
    if (!kept && !keeps_memory(r->fd))
        return;
    if (!r->top) /* how much this may keep is up to whoever made it: systemd's MemoryLow= */
        return;
    cgroup_dirs(tmp, r->fd, &allocs);
    sum_memory(r->fd, &allocs);
}

/* --- cores --- */

static bool
read_cores(int taskfd, struct cgroup_cpus *ret)
{
    char text[CGROUP_CPUS_TEXT_MAX];
    return cgroup_read(taskfd, "task/cpuset.cpus", text, sizeof(text)) == 0 &&
           cgroup_cpus_parse(text, ret) && cgroup_cpus_count(ret);
}

bool
levels_has_cores(int taskfd)
{
    struct cgroup_cpus s;
    return read_cores(taskfd, &s);
}

static void
each_task(const struct cgroup_root *r, void (*fn)(void *arg, int taskfd), void *arg)
{
    auto_mem void *tmp = mem_ctx("levels");
    struct str_list allocs = {0};
    cgroup_dirs(tmp, r->fd, &allocs);
    for (size_t i = 0; i < allocs.n; i++) {
        auto_fd int afd = cgroup_open_dir(r->fd, allocs.v[i]);
        struct str_list tasks = {0};
        if (afd >= 0)
            cgroup_dirs(tmp, afd, &tasks);
        for (size_t k = 0; k < tasks.n; k++) {
            auto_fd int tfd = cgroup_open_dir(afd, tasks.v[k]);
            if (tfd >= 0)
                fn(arg, tfd);
        }
    }
}

static void
add_cores(void *arg, int taskfd)
{
    struct cgroup_cpus *all = arg, s;
    if (!read_cores(taskfd, &s))
        return;
    for (size_t i = 0; i < ARRAY_LEN(all->bits); i++)
        all->bits[i] |= s.bits[i];
}

static void
give_shared(void *arg, int taskfd)
{
    if (!levels_has_cores(taskfd))
        (void)file_put(taskfd, "cpuset.cpus", arg);
}

void
levels_share_cores(struct cgroup_root *r)
{
    char text[CGROUP_CPUS_TEXT_MAX];
    struct cgroup_cpus reserved = {0}, all = {0};
    bool before = r->cores;
    if (!(r->controllers & CGROUP_CPUSET))
        return;
    each_task(r, add_cores, &reserved);
    if (cgroup_read(r->fd, "cpuset.cpus.effective", text, sizeof(text)) < 0 ||
        !cgroup_cpus_parse(text, &all))
        return;
    r->cores = cgroup_cpus_count(&reserved);
    for (size_t i = 0; i < ARRAY_LEN(all.bits); i++)
        r->shared.bits[i] = all.bits[i] & ~reserved.bits[i];
    if (cgroup_cpus_count(&r->shared) == 0) /* nothing is left: they run beside the others */
        r->shared = all;
    if (!before && !r->cores)
        return;
    /* all, by name, when nothing is reserved any more: a cgroup with processes may not become empty
     */
    each_task(r, give_shared, (char *)(uintptr_t)cgroup_cpus_text(&r->shared, text));
}
