/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits as cgroup files, and the parsers of what cgroup files say: pure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/cgroup.h"

enum {
    WEIGHT_MIN = 1,
    WEIGHT_DEFAULT = 100,
    SHARES_DEFAULT = 1024,
    PIDS_DEFAULT = 4096,
    CPU_PERIOD_US = 100000,
    CPU_QUOTA_MIN_US = 1000,
};

/* Linear, so that two tasks share a busy machine in the ratio of what they asked for. */
int64_t
cgroup_weight_from_shares(int64_t shares)
{
    if (shares > INT64_C(1) << 40)
        return CGROUP_WEIGHT_MAX;
    int64_t w = shares * WEIGHT_DEFAULT / SHARES_DEFAULT;
    return w < WEIGHT_MIN ? WEIGHT_MIN : w > CGROUP_WEIGHT_MAX ? CGROUP_WEIGHT_MAX : w;
}

static void
add(struct cgroup_plan *p, const char *name, bool required, int64_t value)
{
    ASSERT(p->n < CGROUP_FILES_MAX);
    struct cgroup_file *f = &p->files[p->n++];
    *f = (struct cgroup_file){.name = name, .required = required};
    (void)snprintf(f->value, sizeof(f->value), "%lld", (long long)value);
}

void
cgroup_plan(const struct cgroup_limits *l, uint32_t controllers, struct cgroup_plan *ret)
{
    struct cgroup_plan p = {0};
    if ((controllers & CGROUP_CPU) && l->cpu_shares > 0) {
        add(&p, "cpu.weight", true, cgroup_weight_from_shares(l->cpu_shares));
        p.files[p.n - 1].above = true;
    }
    if ((controllers & CGROUP_CPU) && l->cpu_max_us > 0) {
        int64_t quota = l->cpu_max_us < CPU_QUOTA_MIN_US ? CPU_QUOTA_MIN_US : l->cpu_max_us;
        add(&p, "cpu.max", true, quota);
        char *v = p.files[p.n - 1].value;
        size_t n = strlen(v);
        (void)snprintf(v + n, sizeof(p.files[0].value) - n, " %d", CPU_PERIOD_US);
    }
    if ((controllers & CGROUP_MEMORY) && l->memory_max > 0) {
        add(&p, "memory.max", true, l->memory_max);
        if (l->memory_high > 0 && l->memory_high < l->memory_max)
            add(&p, "memory.high", true, l->memory_high);
        add(&p, "memory.swap.max", false, l->swap_max > 0 ? l->swap_max : 0);
        add(&p, "memory.oom.group", true, 1);
    }
    if (controllers & CGROUP_PIDS)
        add(&p, "pids.max", true, l->pids_max > 0 ? l->pids_max : PIDS_DEFAULT);
    *ret = p;
}

bool
cgroup_parse_flat(const char *text, const char *key, int64_t *ret)
{
    size_t n = strlen(key);
    for (const char *p = text; p != NULL && *p != 0;) {
        if (strncmp(p, key, n) == 0 && p[n] == ' ') {
            char digits[24];
            size_t k = strcspn(p + n + 1, "\n");
            if (k >= sizeof(digits))
                return false;
            memcpy(digits, p + n + 1, k);
            digits[k] = 0;
            return num_parse_i64(digits, ret) == 0;
        }
        p = strchr(p, '\n');
        p = p ? p + 1 : NULL;
    }
    return false;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" */
static void
parse_psi_line(const char *line, size_t n, double *avg10, uint64_t *total)
{
    char text[160], *save = NULL;
    if (n >= sizeof(text))
        return;
    memcpy(text, line, n);
    text[n] = 0;
    for (char *p = strtok_r(text, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
        double d;
        uint64_t u;
        if (str_prefix(p, "avg10=") && num_parse_f64(p + 6, &d) == 0)
            *avg10 = d;
        else if (str_prefix(p, "total=") && num_parse_u64(p + 6, &u) == 0)
            *total = u;
    }
}

void
cgroup_parse_psi(const char *text, struct cgroup_psi *ret)
{
    struct cgroup_psi v = {0};
    for (const char *p = text; *p != 0;) {
        size_t n = strcspn(p, "\n");
        if (str_prefix(p, "some ")) {
            v.present = true;
            parse_psi_line(p, n, &v.some_avg10, &v.some_total_us);
        } else if (str_prefix(p, "full ")) {
            parse_psi_line(p, n, &v.full_avg10, &v.full_total_us);
        }
        p += n;
        p += *p == '\n';
    }
    *ret = v;
}
