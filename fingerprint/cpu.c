/* SPDX-License-Identifier: Apache-2.0
 *
 * Processors: model, cores, frequency, compute (cores x MHz).
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/fd.h"
#include "common/mem.h"
#include "fingerprint/fingerprint.h"
#include "fingerprint/limits.h"
#include "isolation/cgroup/numa.h"

/* Digits at the start; 0 when there is none. Saturates. */
static int64_t
leading_int(const char *s)
{
    int64_t v = 0;
    for (; isdigit((unsigned char)*s); s++)
        if (v < (INT64_C(1) << 40))
            v = v * 10 + (*s - '0');
    return v;
}

/* "key\t: value" -> value, or NULL when the line has another key. `line` is not terminated there.
 */
static const char *
value_of(const char *line, const char *end, const char *key)
{
    size_t n = strlen(key);
    if ((size_t)(end - line) <= n || strncmp(line, key, n) != 0)
        return NULL;
    const char *p = line + n;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (p == end || *p != ':')
        return NULL;
    for (p++; p < end && *p == ' ';)
        p++;
    return p;
}

static void
copy_text(char *dst, size_t size, const char *p, const char *end)
{
    size_t n = 0;
    for (; p < end && n + 1 < size; p++)
        dst[n++] = isprint((unsigned char)*p) ? *p : '?';
    while (n > 0 && dst[n - 1] == ' ')
        n--;
    dst[n] = 0;
}

void
fingerprint_parse_cpuinfo(const char *text, struct fingerprint_cpuinfo *ret)
{
    *ret = (struct fingerprint_cpuinfo){0};
    for (const char *line = text; *line;) {
        const char *end = strchrnul(line, '\n');
        const char *v;
        if (value_of(line, end, "processor") && ret->cores < CPUS_MAX)
            ret->cores++;
        else if ((v = value_of(line, end, "model name")) && !ret->model[0])
            copy_text(ret->model, sizeof(ret->model), v, end);
        else if ((v = value_of(line, end, "cpu MHz")) && leading_int(v) > ret->mhz &&
                 leading_int(v) < 1000000)
            ret->mhz = leading_int(v);
        line = *end ? end + 1 : end;
    }
}

static const char *
go_arch(const char *machine)
{
    static const char *const names[][2] = {
        {"x86_64", "amd64"},  {"aarch64", "arm64"},   {"i686", "386"},      {"i386", "386"},
        {"armv7l", "arm"},    {"ppc64le", "ppc64le"}, {"s390x", "s390x"},   {"riscv64", "riscv64"},
};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(machine, names[i][0]) == 0)
            return names[i][1];
    return machine;
}

static int64_t
read_khz(const void *ctx, const char *path)
{
    char *text = NULL;
    if (file_read(ctx, AT_FDCWD, path, 64, &text, NULL) < 0)
        return 0;
    return leading_int(text);
}

static int64_t
detect_mhz(const void *ctx, const struct fingerprint_cpuinfo *info)
{
    int64_t khz = read_khz(ctx, "/sys/devices/system/cpu/cpu0/cpufreq/base_frequency");
    if (khz == 0)
        khz = read_khz(ctx, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    if (khz > 0)
        return khz / 1000;
    return info->mhz > 0 ? info->mhz : 1000;
}

void
fingerprint_numa(struct node *node, const char *dir)
{
    struct numa_nodes all;
    char name[32], text[CGROUP_CPUS_TEXT_MAX];
    numa_read(dir, &all);
    if (all.n > 0)
        fingerprint_set_int(node, "numa.node.count", (int64_t)all.n);
    for (size_t i = 0; i < all.n; i++) {
        (void)snprintf(name, sizeof(name), "numa.node%u.cores", all.nodes[i].id);
        fingerprint_set(node, name, cgroup_cpus_text(&all.nodes[i].cpus, text));
    }
}

void
fingerprint_cpu(struct node *node, const struct fingerprint_config *cfg)
{
    auto_mem void *tmp = mem_ctx("cpu");
    struct fingerprint_cpuinfo info = {0};
    char *text = NULL;
    if (file_read(tmp, AT_FDCWD, "/proc/cpuinfo", CPUINFO_MAX, &text, NULL) == 0)
        fingerprint_parse_cpuinfo(text, &info);
    int64_t cores = info.cores;
    struct cgroup_cpus online;
    if (file_read(tmp, AT_FDCWD, "/sys/devices/system/cpu/online", 4096, &text, NULL) == 0 &&
        cgroup_cpus_parse(text, &online) && cgroup_cpus_count(&online) > 0)
        cores = (int64_t)cgroup_cpus_count(&online);
    if (cores < 1)
        cores = 1;
    int64_t mhz = detect_mhz(tmp, &info);
    int64_t total = cfg->cpu_total_compute > 0 ? cfg->cpu_total_compute : cores * mhz;
    struct utsname u;
    if (uname(&u) == 0)
        fingerprint_set(node, "cpu.arch", go_arch(u.machine));
    fingerprint_set(node, "cpu.modelname", info.model);
    fingerprint_set_int(node, "cpu.numcores", cores);
    fingerprint_set_int(node, "cpu.reservablecores", cores);
    fingerprint_numa(node, NUMA_DIR);
    fingerprint_set_int(node, "cpu.frequency", mhz);
    fingerprint_set_int(node, "cpu.totalcompute", total);
    int64_t reserved = node->reserved_resources && node->reserved_resources->cpu
                           ? node->reserved_resources->cpu->cpu_shares
                           : 0;
    fingerprint_set_int(node, "cpu.usablecompute", total > reserved ? total - reserved : 0);
    struct node_cpu_resources *r = mem_new(node->node_resources, struct node_cpu_resources);
    r->cpu_shares = total;
    r->total_cpu_cores = cores;
    for (int64_t i = 0; i < cores; i++)
        list_add(r, r->reservable_cpu_cores, i);
    node->node_resources->cpu = r;
}
