/* SPDX-License-Identifier: Apache-2.0 */
#include "api/validate_isolation.h"

#include <stdarg.h>
#include <string.h>

#include "api/drivers.h"
#include "api/isolation.h"
#include "api/limits.h"
#include "codec/codec.h"
#include "common/digest.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"

#define CPU_PERIOD_NS (100 * NS_PER_MS) /* of cpu.max */

struct check {
    const void *ctx;
    const struct task *task;
    const struct task_isolation *iso;
    struct str_list *errors;
};

__attribute__((format(printf, 2, 3))) static void
validate_isolation_complain(struct check *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = mem_vprintf(c->ctx, fmt, ap);
    va_end(ap);
    list_add(c->ctx, *c->errors, mem_printf(c->ctx, "isolation: %s", text));
}

static void
validate_isolation_ranges(struct check *c)
{
    const struct task_isolation *i = c->iso;
    const struct {
        const char *name;
        int64_t v, max;
    } rows[] = {
        {"pids_max", i->pids_max, JOB_PIDS_MAX},
        {"nofile", i->nofile, JOB_NOFILE_MAX},
        {"memory_high", i->memory_high, JOB_MEMORY_MIB_MAX},
        {"memory_low", i->memory_low, JOB_MEMORY_MIB_MAX},
        {"memory_min", i->memory_min, JOB_MEMORY_MIB_MAX},
        {"swap", i->swap, JOB_MEMORY_MIB_MAX},
        {"zswap", i->zswap.set ? i->zswap.v : 0, JOB_MEMORY_MIB_MAX},
        {"hugetlb", i->hugetlb, JOB_MEMORY_MIB_MAX},
        {"io_weight", i->io_weight, JOB_IO_WEIGHT_MAX},
    };
    for (size_t k = 0; k < ARRAY_LEN(rows); k++)
        if (rows[k].v < 0 || rows[k].v > rows[k].max)
            validate_isolation_complain(c, "%s must be between 0 and %lld", rows[k].name,
                                        (long long)rows[k].max);
}

static void
validate_isolation_memory(struct check *c)
{
    const struct task_isolation *i = c->iso;
    const struct resources *r = c->task->resources;
    if (!r)
        return;
    int64_t limit = r->memory_max_mb > r->memory_mb.v ? r->memory_max_mb : r->memory_mb.v;
    if (r->memory_max_mb >= 0 && i->memory_high >= limit)
        validate_isolation_complain(
            c, "memory_high of %lld MiB is without effect: the task has %lld at most",
            (long long)i->memory_high, (long long)limit);
    if (i->memory_low > r->memory_mb.v)
        validate_isolation_complain(c, "memory_low may be resources.memory at most, %lld MiB",
                                    (long long)r->memory_mb.v);
    if (i->memory_min > r->memory_mb.v)
        validate_isolation_complain(c, "memory_min may be resources.memory at most, %lld MiB",
                                    (long long)r->memory_mb.v);
    if (i->zswap.set && i->zswap.v > 0 && i->swap == 0)
        validate_isolation_complain(c, "zswap is without effect: the task has no swap");
}

static void
validate_isolation_cpu(struct check *c)
{
    const struct task_isolation *i = c->iso;
    const struct value *hard = value_get(c->task->config, "cpu_hard_limit");
    bool limited = hard && ((hard->kind == VALUE_BOOL && hard->b) || hard->kind == VALUE_STRING);
    if (i->cpu_burst < 0 || i->cpu_burst > JOB_CORES_MAX * CPU_PERIOD_NS)
        validate_isolation_complain(c, "cpu_burst must be between 0 and %d s", JOB_CORES_MAX / 10);
    else if (i->cpu_burst > 0 && i->cpu_burst < NS_PER_MS)
        validate_isolation_complain(c, "cpu_burst is shorter than 1ms");
    if (i->cpu_burst > 0 && !limited)
        validate_isolation_complain(c,
                                    "cpu_burst is without effect: the task has no cpu_hard_limit");
    if (i->cpu_idle && c->task->resources && c->task->resources->cores.v > 0)
        validate_isolation_complain(c, "cpu_idle is against the cores that the task reserves");
}

static void
validate_isolation_io(struct check *c)
{
    const struct task_isolation *i = c->iso;
    if (i->io.n > JOB_DISKS_MAX)
        validate_isolation_complain(c, "more than %d io blocks", JOB_DISKS_MAX);
    for (size_t k = 0; k < i->io.n; k++) {
        const struct task_io *o = i->io.v[k];
        const int64_t v[] = {o->read_bps, o->write_bps, o->read_iops, o->write_iops};
        int64_t sum = 0;
        for (size_t n = 0; n < ARRAY_LEN(v); n++) {
            if (v[n] < 0)
                validate_isolation_complain(c, "io: a limit is negative");
            sum |= v[n];
        }
        if (sum == 0)
            validate_isolation_complain(
                c, "io: a block limits nothing: set read_bps, write_bps, read_iops or write_iops");
        if (!str_empty(o->device) && (!str_prefix(o->device, "/dev/") || strstr(o->device, "..")))
            validate_isolation_complain(c, "io: device \"%s\" is not below /dev", o->device);
        for (size_t n = 0; n < k; n++)
            if (str_eq(str_or(i->io.v[n]->device, ""), str_or(o->device, "")))
                validate_isolation_complain(c, "io: device \"%s\" has two blocks",
                                            str_or(o->device, ""));
    }
}

static void
validate_isolation_pressure(struct check *c)
{
    const struct task_pressure *p = c->iso->pressure;
    if (!p)
        return;
    const struct {
        const char *name;
        int64_t v;
    } rows[] = {{"cpu", p->cpu}, {"memory", p->memory}, {"io", p->io}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].v != 0 && (rows[i].v < NS_PER_MS || rows[i].v > NS_PER_S))
            validate_isolation_complain(
                c, "pressure: %s must be between 1ms and 1s: it is a part of each second",
                rows[i].name);
}

static void
tcp_ports(struct check *c, const char *name, const struct i64_list *l)
{
    if (l->n > JOB_TCP_PORTS_MAX)
        validate_isolation_complain(c, "landlock: %s has more than %d ports", name,
                                    JOB_TCP_PORTS_MAX);
    for (size_t i = 0; i < l->n && i < JOB_TCP_PORTS_MAX; i++)
        if (l->v[i] < 0 || l->v[i] > UINT16_MAX)
            validate_isolation_complain(c, "landlock: %s: %lld is no port", name,
                                        (long long)l->v[i]);
}

/* A container has the limits of its engine, which knows not all of ours. */
static void
validate_isolation_container(struct check *c)
{
    const struct task_isolation *i = c->iso;
    const struct {
        const char *name;
        bool given;
    } rows[] = {{"memory_high", i->memory_high != 0}, {"memory_min", i->memory_min != 0},
                {"zswap", i->zswap.set},              {"hugetlb", i->hugetlb != 0},
                {"cpu_burst", i->cpu_burst != 0},     {"cpu_idle", i->cpu_idle},
                {"io", i->io.n > 0},                  {"pressure", i->pressure != NULL}};
    for (size_t k = 0; driver_engine(c->task->driver) && k < ARRAY_LEN(rows); k++)
        if (rows[k].given)
            validate_isolation_complain(
                c, "%s is without effect: the engine of driver \"%s\" has no such limit",
                rows[k].name, c->task->driver);
}

static void
validate_isolation_box(struct check *c)
{
    validate_isolation_container(c);
    const struct task_isolation *i = c->iso;
    size_t at = driver_unboxed(c->task->driver) || driver_engine(c->task->driver)
                    ? 0
                    : type_task_isolation.n_fields;
    for (const char *name; (name = isolation_box(i, &at)) != NULL;)
        validate_isolation_complain(c, "%s is without effect: driver \"%s\" does not isolate", name,
                                    c->task->driver);
    if (!str_empty(i->userns) && !str_eq(i->userns, "host"))
        validate_isolation_complain(c, "userns \"%s\" is not \"host\"", i->userns);
    if (i->landlock) {
        tcp_ports(c, "bind", &i->landlock->bind);
        tcp_ports(c, "connect", &i->landlock->connect);
    }
    if (!str_empty(i->proc) && !str_eq(i->proc, "pid"))
        validate_isolation_complain(c, "proc \"%s\" is not \"pid\"", i->proc);
}

/* NULL, or what is wrong with the name of a file of the task's root. */
static const char *
bad_path(const char *path)
{
    if (path[0] == '/')
        return "is not relative to the task's root: local/... of its own, or alloc/... of its "
               "allocation's directory";
    for (const char *p = path;; p++) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return "has \"..\": the directory of the allocation is alloc/... in the task";
        if (n == 0 || (n == 1 && p[0] == '.'))
            return "is not the plain name of a file";
        p += n;
        if (*p == '\0')
            return NULL;
    }
}

static void
validate_isolation_verity(struct check *c)
{
    const struct task_isolation *i = c->iso;
    uint8_t digest[DIGEST_BYTES];
    if (i->verity.n > 0 && !driver_can(c->task->driver))
        validate_isolation_complain(c,
                                    "verity is without effect: driver \"%s\" does not seal files",
                                    str_or(c->task->driver, ""));
    if (i->verity.n > JOB_VERITY_MAX)
        validate_isolation_complain(c, "more than %d verity blocks", JOB_VERITY_MAX);
    for (size_t k = 0; k < i->verity.n && k < JOB_VERITY_MAX; k++) {
        const struct task_verity *v = i->verity.v[k];
        const char *path = str_or(v->path, "");
        const char *why = bad_path(path);
        if (why)
            validate_isolation_complain(c, "verity: path \"%.256s\" %s", path, why);
        if (!str_empty(v->digest) && digest_parse(v->digest, digest) < 0)
            validate_isolation_complain(
                c,
                "verity: the digest of \"%.256s\" is not \"sha256:\" and 64 hexadecimal digits, "
                "as \"fsverity digest FILE\" prints it",
                path);
        for (size_t n = 0; n < k; n++)
            if (str_eq(str_or(i->verity.v[n]->path, ""), path))
                validate_isolation_complain(c, "verity: \"%.256s\" has two blocks", path);
    }
}

static bool
is_call(const char *s)
{
    static const char set[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return !str_empty(s) && strlen(s) < 64 && strspn(s, set) == strlen(s);
}

static void
validate_isolation_calls(struct check *c, const char *name, const struct str_list *l)
{
    if (l->n > JOB_CALLS_MAX)
        validate_isolation_complain(c, "seccomp: %s has more than %d names", name, JOB_CALLS_MAX);
    for (size_t i = 0; i < l->n && i < JOB_CALLS_MAX; i++)
        if (!is_call(l->v[i]))
            validate_isolation_complain(c, "seccomp: %s: \"%.64s\" is no name of a system call",
                                        name, str_or(l->v[i], ""));
}

const char *const audit_cannot_deny[] = {"sendmsg", "execveat", "exit", NULL};

static void
validate_isolation_seccomp(struct check *c)
{
    const struct task_seccomp *s = c->iso->seccomp;
    if (!s)
        return;
    bool audit = str_eq(s->mode, "audit");
    if (!str_empty(s->mode) && !str_eq(s->mode, "enforce") && !str_eq(s->mode, "log") && !audit)
        validate_isolation_complain(c, "seccomp: mode \"%.16s\" is none of enforce, audit, log",
                                    s->mode);
    for (const char *const *call = audit_cannot_deny; audit && *call != NULL; call++)
        if (str_list_has(&s->deny, *call))
            validate_isolation_complain(
                c, "seccomp: mode \"audit\" cannot deny \"%s\", which the start of the task needs",
                *call);
    validate_isolation_calls(c, "allow", &s->allow);
    validate_isolation_calls(c, "deny", &s->deny);
    for (size_t i = 0; i < s->allow.n && i < JOB_CALLS_MAX; i++)
        for (size_t k = 0; k < s->deny.n && k < JOB_CALLS_MAX; k++)
            if (str_eq(s->allow.v[i], s->deny.v[k]))
                validate_isolation_complain(c, "seccomp: \"%s\" is both allowed and denied",
                                            s->allow.v[i]);
}

void
validate_isolation(const void *ctx, const struct task *t, struct str_list *errors)
{
    struct check c = {.ctx = ctx, .task = t, .iso = t->isolation, .errors = errors};
    if (!t->isolation)
        return;
    validate_isolation_ranges(&c);
    validate_isolation_memory(&c);
    validate_isolation_cpu(&c);
    validate_isolation_io(&c);
    validate_isolation_seccomp(&c);
    validate_isolation_pressure(&c);
    validate_isolation_box(&c);
    validate_isolation_verity(&c);
}
