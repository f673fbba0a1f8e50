/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds of a launch plan; runs in the shim before anything of the plan is believed.
 */
#include "isolation/launch/plan.h"

#include "isolation/confine/confine.h"

static int
plan_check_inside(const struct plan_header *h, uint64_t at, uint64_t n, uint64_t align)
{
    if (at == 0 && n == 0)
        return 1;
    return at >= sizeof(*h) && at % align == 0 && at <= h->bytes && n <= h->bytes - at;
}

static int
strs_ok(const struct plan_header *h, struct plan_strs s, uint32_t max)
{
    if (s.n > max || s.at == 0 || !plan_check_inside(h, s.at, ((uint64_t)s.n + 1) * 8, 8))
        return 0;
    const uint64_t *v = (const uint64_t *)(const void *)((const char *)h + s.at);
    for (uint32_t i = 0; i < s.n; i++)
        if (v[i] < sizeof(*h) || v[i] >= h->bytes)
            return 0;
    return v[s.n] == 0;
}

static int
verity_ok(const struct plan_header *h)
{
    struct plan_verities l = h->verity;
    if (l.n > VERITY_FILES_MAX || h->program > l.n ||
        !plan_check_inside(h, l.at, l.n * sizeof(struct plan_verity), 8))
        return 0;
    const struct plan_verity *v = (const void *)((const char *)h + l.at);
    for (uint32_t i = 0; i < l.n; i++)
        if (v[i].path < sizeof(*h) || v[i].path >= h->bytes)
            return 0;
    return 1;
}

int
plan_check(const void *plan, uint64_t bytes)
{
    const struct plan_header *h = plan;
    if (bytes < sizeof(*h) || bytes > PLAN_BYTES_MAX || h->magic != PLAN_MAGIC)
        return -22;
    if (h->version != SHIM_VERSION)
        return -71;
    if (h->bytes != bytes)
        return -22;
    if (((const char *)plan)[bytes - 1] != 0)
        return -22; /* so every string that starts inside ends inside */
    int ok = plan_check_inside(h, h->mounts, h->mounts_bytes, 8) && h->confine != 0 &&
             plan_check_inside(h, h->confine, sizeof(struct confine), 8) &&
             plan_check_inside(h, h->task_filter.at, (uint64_t)h->task_filter.n * 8, 8) &&
             plan_check_inside(h, h->shim_filter.at, (uint64_t)h->shim_filter.n * 8, 8) &&
             h->task_filter.n <= UINT16_MAX && h->shim_filter.n <= UINT16_MAX &&
             plan_check_inside(h, h->work_dir, 1, 1) && h->work_dir != 0 &&
             (h->apparmor == 0 || plan_check_inside(h, h->apparmor, 1, 1)) && h->log_files >= 1 &&
             h->log_bytes >= 1 &&
             (!(h->flags & PLAN_AUDIT) || (h->task_filter.n > 0 && !(h->flags & PLAN_JOIN)));
    for (int i = 0; i < 2; i++)
        ok = ok && h->logs[i].name != 0 && plan_check_inside(h, h->logs[i].name, 1, 1);
    ok = ok && strs_ok(h, h->paths, PLAN_PATHS_MAX) && h->paths.n > 0 &&
         strs_ok(h, h->args, PLAN_ARGS_MAX + 1) && h->args.n > 0 &&
         strs_ok(h, h->env, PLAN_ARGS_MAX) && verity_ok(h);
    return ok ? 0 : -22;
}
