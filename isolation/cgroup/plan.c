/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits as cgroup files, and the parsers of what cgroup files say: pure.
 *
 * First the plan: for each controller what a task's resources become, in the order of the writes,
 * and which entries fall away with a controller that is not there. Then statistics: flat files,
 * pressure, io.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"

enum {
    WEIGHT_MIN = 1,
    WEIGHT_DEFAULT = 100,
    SHARES_DEFAULT = 1024,
    CPU_PERIOD_US = 100000,
    CPU_QUOTA_MIN_US = 1000,
};

const struct cgroup_controller cgroup_controllers[CGROUP_CONTROLLERS_N] = {
    {CGROUP_CPU, "cpu"}, {CGROUP_MEMORY, "memory"}, {CGROUP_PIDS, "pids"},
    {CGROUP_IO, "io"},   {CGROUP_CPUSET, "cpuset"}, {CGROUP_HUGETLB, "hugetlb"},
};

uint32_t
cgroup_parse_controllers(const char *text)
{
    uint32_t mask = 0;
    for (const char *p = text; *p != 0;) {
        size_t n = strcspn(p, " \n");
        for (size_t i = 0; i < CGROUP_CONTROLLERS_N; i++)
            if (strlen(cgroup_controllers[i].name) == n &&
                strncmp(p, cgroup_controllers[i].name, n) == 0)
                mask |= cgroup_controllers[i].bit;
        p += n;
        p += strspn(p, " \n");
    }
    return mask;
}

const char *
cgroup_controllers_text(const void *ctx, uint32_t mask)
{
    char *s = mem_strdup(ctx, "");
    for (size_t i = 0; i < CGROUP_CONTROLLERS_N; i++)
        if (mask & cgroup_controllers[i].bit)
            s = mem_printf(ctx, "%s%s%s", s, *s ? " " : "", cgroup_controllers[i].name);
    return s;
}

/* Linear, so that two tasks share a busy machine in the ratio of what they asked for. */
int64_t
cgroup_weight_from_shares(int64_t shares)
{
    if (shares > INT64_C(1) << 40)
        return CGROUP_WEIGHT_MAX;
    int64_t w = shares * WEIGHT_DEFAULT / SHARES_DEFAULT;
    return w < WEIGHT_MIN ? WEIGHT_MIN : w > CGROUP_WEIGHT_MAX ? CGROUP_WEIGHT_MAX : w;
}

static struct cgroup_file *
add_text(struct cgroup_plan *p, const char *name, enum cgroup_need need, const char *value)
{
    ASSERT(p->n < CGROUP_FILES_MAX);
    struct cgroup_file *f = &p->files[p->n++];
    *f = (struct cgroup_file){.need = need};
    (void)str_copy(f->name, sizeof(f->name), name);
    (void)str_copy(f->value, sizeof(f->value), value);
    return f;
}

static struct cgroup_file *
plan_add(struct cgroup_plan *p, const char *name, enum cgroup_need need, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)value);
    return add_text(p, name, need, text);
}

static void
plan_cpu(const struct cgroup_limits *l, struct cgroup_plan *p)
{
    if (l->cpu_idle)
        plan_add(p, "cpu.idle", CGROUP_ASKED, 1)->above = true;
    else if (l->cpu_shares > 0)
        plan_add(p, "cpu.weight", CGROUP_BASE, cgroup_weight_from_shares(l->cpu_shares))->above =
            true;
    if (l->cpu_max_us <= 0)
        return;
    int64_t quota = l->cpu_max_us < CPU_QUOTA_MIN_US ? CPU_QUOTA_MIN_US : l->cpu_max_us;
    char text[48];
    (void)snprintf(text, sizeof(text), "%lld %d", (long long)quota, CPU_PERIOD_US);
    (void)add_text(p, "cpu.max", CGROUP_ASKED, text);
    if (l->cpu_burst_us > 0)
        (void)plan_add(p, "cpu.max.burst", CGROUP_ASKED,
                       l->cpu_burst_us < quota ? l->cpu_burst_us : quota);
}

/* A child is protected as far as its parent is. */
static void
plan_protect(struct cgroup_plan *p, const char *name, enum cgroup_need need, int64_t value)
{
    if (value <= 0)
        return;
    (void)plan_add(p, name, need, value);
    plan_add(p, name, need, value)->above = true;
    p->keeps_memory = true;
}

static void
plan_memory(const struct cgroup_limits *l, struct cgroup_plan *p)
{
    if (l->memory_max > 0) {
        (void)plan_add(p, "memory.max", CGROUP_BASE, l->memory_max);
        (void)plan_add(p, "memory.oom.group", CGROUP_BASE, 1);
    }
    (void)plan_add(p, "memory.swap.max", l->swap_max > 0 ? CGROUP_ASKED : CGROUP_HINT,
                   l->swap_max > 0 ? l->swap_max : 0);
    if (l->memory_high > 0 && (l->memory_max <= 0 || l->memory_high < l->memory_max))
        (void)plan_add(p, "memory.high", CGROUP_ASKED, l->memory_high);
    if (l->zswap_max >= 0)
        (void)plan_add(p, "memory.zswap.max", CGROUP_ASKED, l->zswap_max);
    plan_protect(p, "memory.low", CGROUP_ASKED, l->memory_low);
    plan_protect(p, "memory.min", CGROUP_ASKED, l->memory_min);
}

static void
io_number(char *text, size_t size, const char *key, int64_t v)
{
    size_t n = strlen(text);
    if (v > 0)
        (void)snprintf(text + n, size - n, " %s=%lld", key, (long long)v);
    else
        (void)snprintf(text + n, size - n, " %s=max", key);
}

static void
plan_io(const struct cgroup_limits *l, struct cgroup_plan *p)
{
    if (l->io_weight > 0)
        plan_add(p, "io.weight", CGROUP_ASKED, l->io_weight)->above = true;
    for (size_t i = 0; i < l->n_io; i++) {
        const struct cgroup_io *o = &l->io[i];
        char text[112];
        (void)snprintf(text, sizeof(text), "%u:%u", o->major, o->minor);
        io_number(text, sizeof(text), "rbps", o->rbps);
        io_number(text, sizeof(text), "wbps", o->wbps);
        io_number(text, sizeof(text), "riops", o->riops);
        io_number(text, sizeof(text), "wiops", o->wiops);
        (void)add_text(p, "io.max", CGROUP_ASKED, text);
    }
}

/* Also what is only reserved: a mapping is refused, instead of a page of it ending the task. */
static void
plan_hugetlb(const struct cgroup_limits *l, const struct cgroup_huge *huge, struct cgroup_plan *p)
{
    enum cgroup_need need = l->hugetlb_max > 0 ? CGROUP_ASKED : CGROUP_HINT;
    for (size_t i = 0; i < huge->n; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "hugetlb.%s.max", huge->size[i]);
        (void)plan_add(p, name, need, l->hugetlb_max);
        (void)snprintf(name, sizeof(name), "hugetlb.%s.rsvd.max", huge->size[i]);
        (void)plan_add(p, name, CGROUP_HINT, l->hugetlb_max);
    }
    if (huge->n == 0 && l->hugetlb_max > 0)
        plan_add(p, "hugetlb.max", CGROUP_ASKED, l->hugetlb_max)->absent = true;
}

/* The entries from `first` on are of a controller that is not there. */
static void
plan_without(struct cgroup_plan *p, size_t first)
{
    for (size_t i = first; i < p->n; i++)
        p->files[i].absent = true;
}

void
cgroup_plan(const struct cgroup_limits *l, const struct cgroup_root *r, struct cgroup_plan *ret)
{
    struct cgroup_plan p = {0};
    size_t first = p.n;
    plan_cpu(l, &p);
    if (!(r->controllers & CGROUP_CPU))
        plan_without(&p, first);
    first = p.n;
    plan_memory(l, &p);
    if (!(r->controllers & CGROUP_MEMORY)) {
        plan_without(&p, first);
        p.keeps_memory = false;
    }
    first = p.n;
    (void)plan_add(&p, "pids.max", CGROUP_BASE,
                   l->pids_max > 0 ? l->pids_max : CGROUP_PIDS_DEFAULT);
    if (!(r->controllers & CGROUP_PIDS))
        plan_without(&p, first);
    first = p.n;
    plan_io(l, &p);
    if (!(r->controllers & CGROUP_IO))
        plan_without(&p, first);
    plan_hugetlb(l, &r->huge, &p);
    p.cores = l->cores;
    p.has_cores = cgroup_cpus_count(&l->cores);
    if (p.has_cores && !(r->controllers & CGROUP_CPUSET)) {
        add_text(&p, "cpuset.cpus", CGROUP_ASKED, "")->absent = true;
        p.has_cores = false;
    }
    *ret = p;
}

const char *
cgroup_plan_missing(const void *ctx, const struct cgroup_plan *p)
{
    const char *out = "";
    for (size_t i = 0; i < p->n; i++) {
        const struct cgroup_file *f = &p->files[i];
        bool again = i > 0 && str_eq(p->files[i - 1].name, f->name);
        if (f->absent && f->need == CGROUP_ASKED && !again)
            out = mem_printf(ctx, "%s%s%s", out, *out ? ", " : "", f->name);
    }
    return mem_strdup(ctx, out);
}

/* Each controller once, in the order of the plan; "pids" where it is not our default. */
const char *
cgroup_plan_unheld(const void *ctx, const struct cgroup_plan *p)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct cgroup_file *f = &p->files[i];
        char name[sizeof(f->name)], usual[24];
        (void)snprintf(usual, sizeof(usual), "%d", CGROUP_PIDS_DEFAULT);
        (void)str_copy(name, sizeof(name), f->name);
        name[strcspn(name, ".")] = '\0';
        if (f->absent && f->need == CGROUP_BASE &&
            !(str_eq(f->name, "pids.max") && str_eq(f->value, usual)))
            mask |= cgroup_parse_controllers(name);
    }
    return cgroup_controllers_text(ctx, mask);
}

/* --- statistics --- */

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

/* "253:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0", a line for each disk. */
void
cgroup_parse_io(const char *text, struct cgroup_stats *ret)
{
    const struct {
        const char *key;
        int64_t *sum;
    } rows[] = {{" rbytes=", &ret->io_rbytes},
                {" wbytes=", &ret->io_wbytes},
                {" rios=", &ret->io_rios},
                {" wios=", &ret->io_wios}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        *rows[i].sum = 0;
        for (const char *p = text; (p = strstr(p, rows[i].key)) != NULL;) {
            char digits[24];
            int64_t v;
            p += strlen(rows[i].key);
            size_t n = strspn(p, "0123456789");
            if (n == 0 || n >= sizeof(digits))
                continue;
            memcpy(digits, p, n);
            digits[n] = 0;
            if (num_parse_i64(digits, &v) == 0 && v <= INT64_MAX - *rows[i].sum)
                *rows[i].sum += v;
        }
    }
}
