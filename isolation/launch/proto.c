/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of what comes over the warden's socket: see proto.h. A request is decoded within a
 * budget, its fields are held against the row of ops.def and the phase, then each value on its own
 * (identifiers, mounts, numbers, io, ports, sealed files, the box, the environment), and the whole
 * spec.
 *
 * Nothing behind this file looks at form again; whether what is well-formed is allowed is
 * policy.c's.
 */
#include "isolation/launch/proto.h"

#include <arpa/inet.h>
#include <string.h>

#include "api/isolation.h"
#include "api/limits.h"
#include "api/plain.h"
#include "codec/codec.h"
#include "common/digest.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/uuid.h"
#include "isolation/cgroup/cgroup.h"

/* The packet holds whatever registration accepts, and beside it the client's additions to the
 * environment (of the allocation, its user and the host), resolv.conf and the fixed fields. */
_Static_assert(JOB_LAUNCH_MAX + 16 * 1024 <= PROTO_PACKET_MAX, "a registered task can be sent");
_Static_assert(JOB_ENV_MAX + 96 <= PLAN_ARGS_MAX, "a registered task's environment can be planned");

enum { DEVICE_MAX = 1 << 20 }; /* of both numbers */

/* Which fields of a request a row knows, and when one is there. */
#define FIELDS(X)                                                                                  \
    X(ALLOC, alloc_id != NULL)                                                                     \
    X(TASK, task_name != NULL)                                                                     \
    X(PATH, path != NULL)                                                                          \
    X(SPEC, spec != NULL)                                                                          \
    X(SIGNAL, signal != 0)                                                                         \
    X(OFFSET, offset != 0)                                                                         \
    X(DATA, data.n != 0)                                                                           \
    X(MODE, mode != 0)                                                                             \
    X(TASKS, tasks.n != 0)                                                                         \
    X(OWNER, owner != NULL)                                                                        \
    X(NETWORK, network != NULL)                                                                    \
    X(LIMITS, limits != NULL)                                                                      \
    X(DISK, disk_mb != 0)                                                                          \
    X(EXEC, exec != NULL)                                                                          \
    X(HELPER, helper != NULL)                                                                      \
    X(ISOLATION, isolation != NULL)                                                                \
    X(UNTIL, until != 0)                                                                           \
    X(FROM, from != NULL)                                                                          \
    X(VOLUME, volume != NULL)

enum {
#define BIT(name, there) BIT_##name,
    FIELDS(BIT)
#undef BIT
};
enum {
#define MASK(name, there) R_##name = 1 << BIT_##name,
    FIELDS(MASK)
#undef MASK
};

enum { ANY_TIME = PROTO_READY | PROTO_STOPPING };

static const struct row {
    const char *name;
    unsigned must;   /* fields that have to be there */
    unsigned may;    /* others that can be */
    unsigned phases; /* enum proto_phase */
} rows[] = {
#define OP(nr, ID, name, must, may, phases, handler, stub, params, request)                        \
    [WARDEN_##ID] = {name, must, may, phases},
#include "isolation/launch/ops.def"
};
/* Numbers are given out without a gap, so no request finds an empty row but 0. */
#define OP(nr, ID, name, must, may, phases, handler, stub, params, request) +1
_Static_assert(WARDEN_OP_END == 1
#include "isolation/launch/ops.def"
               , "each operation has the next number");

const char *
proto_op_name(uint64_t op)
{
    return op > 0 && op < WARDEN_OP_END ? rows[op].name : "?";
}

bool
proto_suspect(uint64_t op)
{
    return op > 0 && op < WARDEN_OP_END && (rows[op].phases & PROTO_SUSPECT) != 0;
}

static unsigned
proto_fields(const struct warden_request *r)
{
    unsigned f = 0;
#define THERE(name, there) f |= r->there ? R_##name : 0u;
    FIELDS(THERE)
#undef THERE
    return f;
}

int
proto_check_alloc_id(const char *s)
{
    return s != NULL && uuid_valid(s) ? 0 : -ERR_INVALID;
}

static int
check_mounts(const struct launch_spec *s, struct err *e)
{
    for (size_t i = 0; i < s->mounts.n; i++) {
        const struct launch_mount *m = s->mounts.v[i];
        if (m == NULL || str_empty(m->source) || m->source[0] != '/' || str_empty(m->target) ||
            !plain_path(m->source + 1))
            return err_set(e, -ERR_INVALID, "mount %zu needs a plain absolute source and a target",
                           i);
    }
    return 0;
}

bool
proto_parse_device(const char *s, unsigned *major, unsigned *minor)
{
    uint64_t v[2];
    char text[2][12];
    const char *colon = s != NULL ? strchr(s, ':') : NULL;
    if (colon == NULL || (size_t)(colon - s) >= sizeof(text[0]) ||
        strlen(colon + 1) >= sizeof(text[1]))
        return false;
    memcpy(text[0], s, (size_t)(colon - s));
    text[0][colon - s] = '\0';
    (void)str_copy(text[1], sizeof(text[1]), colon + 1);
    for (int i = 0; i < 2; i++)
        if (num_parse_u64(text[i], &v[i]) < 0 || v[i] > DEVICE_MAX)
            return false;
    *major = (unsigned)v[0];
    *minor = (unsigned)v[1];
    return true;
}

/* NULL: none. */
static int
check_limits(const struct launch_limits *l, struct err *e)
{
    if (l == NULL)
        return 0;
    const int64_t v[] = {l->cpu_shares, l->cpu_max, l->memory_max, l->memory_low};
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        if (v[i] < 0)
            return err_set(e, -ERR_INVALID, "launch: a limit is negative");
    for (size_t i = 0; i < l->cores.n; i++)
        if (l->cores.v[i] < 0 || l->cores.v[i] >= CGROUP_CPUS_MAX)
            return err_set(e, -ERR_INVALID, "launch: core %lld is not below %d",
                           (long long)l->cores.v[i], CGROUP_CPUS_MAX);
    return 0;
}

static int
check_io(const struct task_isolation *iso, struct err *e)
{
    unsigned major, minor;
    if (iso->io.n > JOB_DISKS_MAX)
        return err_set(e, -ERR_INVALID, "launch: more than %d disks", JOB_DISKS_MAX);
    for (size_t i = 0; i < iso->io.n; i++) {
        const struct task_io *o = iso->io.v[i];
        if (o == NULL || !proto_parse_device(o->device, &major, &minor))
            return err_set(e, -ERR_INVALID, "launch: disk %zu is not MAJOR:MINOR", i);
        if (o->read_bps < 0 || o->write_bps < 0 || o->read_iops < 0 || o->write_iops < 0)
            return err_set(e, -ERR_INVALID, "launch: a limit of disk %zu is negative", i);
    }
    return 0;
}

static int
check_numbers(const struct task_isolation *i, struct err *e)
{
    const struct {
        const char *name;
        int64_t v, max;
    } numbers[] = {
        {"pids_max", i->pids_max, JOB_PIDS_MAX},
        {"nofile", i->nofile, JOB_NOFILE_MAX},
        {"memory_high", i->memory_high, JOB_MEMORY_MIB_MAX},
        {"memory_low", i->memory_low, JOB_MEMORY_MIB_MAX},
        {"memory_min", i->memory_min, JOB_MEMORY_MIB_MAX},
        {"swap", i->swap, JOB_MEMORY_MIB_MAX},
        {"zswap", i->zswap.v, JOB_MEMORY_MIB_MAX},
        {"hugetlb", i->hugetlb, JOB_MEMORY_MIB_MAX},
        {"cpu_burst", i->cpu_burst, INT64_MAX},
        {"io_weight", i->io_weight, CGROUP_WEIGHT_MAX},
    };
    for (size_t k = 0; k < ARRAY_LEN(numbers); k++)
        if (numbers[k].v < 0 || numbers[k].v > numbers[k].max)
            return err_set(e, -ERR_INVALID, "launch: %s is not between 0 and %lld", numbers[k].name,
                           (long long)numbers[k].max);
    const struct task_pressure *p = i->pressure;
    if (p != NULL && (p->cpu < 0 || p->cpu > NS_PER_S || p->memory < 0 || p->memory > NS_PER_S ||
                      p->io < 0 || p->io > NS_PER_S))
        return err_set(e, -ERR_INVALID, "launch: a pressure is not within a second");
    return 0;
}

static bool
ports_ok(const struct i64_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i] < 0 || l->v[i] > UINT16_MAX)
            return false;
    return l->n <= CONFINE_PORTS_MAX;
}

static int
check_verity(const struct task_isolation *iso, struct err *e)
{
    uint8_t digest[DIGEST_BYTES];
    if (iso->verity.n > JOB_VERITY_MAX)
        return err_set(e, -ERR_INVALID, "launch: verity: more than %d files", JOB_VERITY_MAX);
    for (size_t i = 0; i < iso->verity.n; i++) {
        const struct task_verity *v = iso->verity.v[i];
        if (v == NULL || str_empty(v->path) || !plain_path(v->path))
            return err_set(e, -ERR_INVALID,
                           "launch: verity: \"%s\" is no plain path below the task's root",
                           v != NULL ? str_or(v->path, "") : "");
        if (!str_empty(v->digest) && digest_parse(v->digest, digest) < 0)
            return err_set(e, -ERR_INVALID,
                           "launch: verity: the digest of \"%s\" is not sha256:HEX", v->path);
    }
    return 0;
}

/* NULL: none. */
static int
check_isolation(const struct task_isolation *iso, struct err *e)
{
    if (iso == NULL)
        return 0;
    if (iso->landlock != NULL &&
        (!ports_ok(&iso->landlock->bind) || !ports_ok(&iso->landlock->connect)))
        return err_set(e, -ERR_INVALID, "launch: more than %d ports, or one that is none",
                       CONFINE_PORTS_MAX);
    if (!str_empty(iso->proc) && !str_eq(iso->proc, "pid"))
        return err_set(e, -ERR_INVALID, "launch: proc \"%s\" is not \"pid\"", iso->proc);
    int r = check_numbers(iso, e);
    if (r == 0)
        r = check_io(iso, e);
    return r == 0 ? check_verity(iso, e) : r;
}

static int
check_box(const struct launch_spec *s, struct err *e)
{
    size_t at = 0;
    const char *name = s->isolated ? NULL : isolation_box(isolation_of(s->isolation), &at);
    if (name != NULL)
        return err_set(e, -ERR_INVALID, "launch: %s is of isolated tasks", name);
    return check_isolation(s->isolation, e);
}

static int
check_env(const struct str_list *env, struct err *e)
{
    for (size_t i = 0; i < env->n; i++) {
        const char *eq = env->v[i] != NULL ? strchr(env->v[i], '=') : NULL;
        if (eq == NULL || !plain_env_name(env->v[i], (size_t)(eq - env->v[i])))
            return err_set(e, -ERR_INVALID, "environment entry %zu is not NAME=value", i);
    }
    return 0;
}

int
proto_check_spec(const struct launch_spec *s, struct err *e)
{
    if (proto_check_alloc_id(s->alloc_id) < 0)
        return err_set(e, -ERR_INVALID, "launch: the allocation id is not a UUID");
    if (!plain_task_name(s->task_name))
        return err_set(e, -ERR_INVALID, "launch: the task name is not allowed");
    if (str_empty(s->driver))
        return err_set(e, -ERR_INVALID, "launch: no driver");
    if (str_empty(s->command))
        return err_set(e, -ERR_INVALID, "launch: no command");
    for (size_t i = 0; i < s->args.n; i++)
        if (s->args.v[i] == NULL)
            return err_set(e, -ERR_INVALID, "launch: argument %zu is null", i);
    if (check_env(&s->env, e) < 0)
        return -ERR_INVALID;
    for (size_t i = 0; i < s->cap_add.n; i++)
        if (str_empty(s->cap_add.v[i]))
            return err_set(e, -ERR_INVALID, "launch: capability %zu has no name", i);
    if (check_limits(s->limits, e) < 0)
        return -ERR_INVALID;
    if (check_box(s, e) < 0)
        return -ERR_INVALID;
    const struct launch_logs *g = s->logs;
    if (g != NULL && (g->max_files < 0 || g->max_files > JOB_LOG_FILES_MAX ||
                      g->max_file_bytes < 0 || !plain_path(g->dir)))
        return err_set(e, -ERR_INVALID, "launch: the log settings are out of range");
    if (s->secrets_mb < 0 || s->secrets_mb > JOB_SECRETS_MIB_MAX || s->kill_signal < 0 ||
        s->kill_signal > 64)
        return err_set(e, -ERR_INVALID, "launch: a number is out of range");
    return check_mounts(s, e);
}

static int
check_network(const struct net_request *q, struct err *e)
{
    bool bridge = str_eq(q->mode, "bridge");
    if (!bridge && !str_eq(q->mode, "none"))
        return err_set(e, -ERR_INVALID, "network mode \"%s\" is not none or bridge",
                       str_or(q->mode, ""));
    if (q->pid < 0 || q->pid > INT32_MAX || (q->pid > 0 && q->ports.n > 0))
        return err_set(e, -ERR_INVALID, "the process of a network is none, or has ports");
    if (q->ports.n > (bridge ? NET_PORTS_MAX : 0))
        return err_set(e, -ERR_INVALID, "%zu ports in network mode %s", q->ports.n, q->mode);
    for (size_t i = 0; i < q->ports.n; i++) {
        const struct net_request_port *p = q->ports.v[i];
        struct in_addr a;
        if (p == NULL || p->host_port < 1 || p->host_port > UINT16_MAX || p->to < 0 ||
            p->to > UINT16_MAX)
            return err_set(e, -ERR_INVALID, "port %zu is out of range", i);
        if (str_empty(p->host_ip) || inet_pton(AF_INET, p->host_ip, &a) != 1)
            return err_set(e, -ERR_INVALID, "the host address of port %zu is not an IPv4 address",
                           i);
    }
    return 0;
}

static int
check_exec(const struct exec_request *x, struct err *e)
{
    if (x->command.n == 0 || str_empty(x->command.v[0]))
        return err_set(e, -ERR_INVALID, "no command");
    for (size_t i = 0; i < x->command.n; i++)
        if (x->command.v[i] == NULL)
            return err_set(e, -ERR_INVALID, "argument %zu is null", i);
    if (x->rows < 0 || x->rows > UINT16_MAX || x->columns < 0 || x->columns > UINT16_MAX)
        return err_set(e, -ERR_INVALID, "the size of the terminal is out of range");
    return check_env(&x->env, e);
}

static int
check_helper(const struct warden_request *r, struct err *e)
{
    const struct helper_request *h = r->helper;
    if (r->tasks.n != 1)
        return err_set(e, -ERR_INVALID, "a helper is for one task, not for %zu", r->tasks.n);
    if (str_empty(h->program))
        return err_set(e, -ERR_INVALID, "no program");
    const struct {
        const char *name;
        int64_t v, max;
    } numbers[] = {
        {"deadline", h->deadline_ms, WARDEN_HELPER_MS_MAX},
        {"memory", h->memory_max, WARDEN_HELPER_BYTES_MAX},
        {"number of threads", h->pids_max, WARDEN_HELPER_PIDS_MAX},
        {"file size", h->file_max, INT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (numbers[i].v < 1 || numbers[i].v > numbers[i].max)
            return err_set(e, -ERR_INVALID, "the %s of a helper is not between 1 and %lld",
                           numbers[i].name, (long long)numbers[i].max);
    return 0;
}

static int
check_volume(const struct warden_volume *v, struct err *e)
{
    if (v->id == NULL || !uuid_valid(v->id))
        return err_set(e, -ERR_INVALID, "the id of the volume is not a UUID");
    if (v->mode < 0 || (v->mode & ~0777) != 0 || v->uid < 0 || v->uid >= INT32_MAX || v->gid < 0 ||
        v->gid >= INT32_MAX)
        return err_set(e, -ERR_INVALID, "mode or owner of a volume are out of range");
    if (v->size_mb < 0 || v->size_mb > QUOTA_MB_MAX)
        return err_set(e, -ERR_INVALID, "the size of a volume is out of range");
    return 0;
}

static int
check_values(const struct warden_request *r, struct err *e)
{
    if (r->alloc_id != NULL && proto_check_alloc_id(r->alloc_id) < 0)
        return err_set(e, -ERR_INVALID, "the allocation id is not a UUID");
    if (r->from != NULL && (proto_check_alloc_id(r->from) < 0 || str_eq(r->from, r->alloc_id)))
        return err_set(e, -ERR_INVALID, "the allocation before is not another one's UUID");
    if (r->task_name != NULL && !plain_task_name(r->task_name))
        return err_set(e, -ERR_INVALID, "the task name is not allowed");
    if (!plain_path(r->path) || (r->path != NULL && r->alloc_id == NULL))
        return err_set(e, -ERR_INVALID, "the path is not a plain one of an allocation");
    if (r->signal < 0 || r->signal > 64)
        return err_set(e, -ERR_INVALID, "%lld is not a signal", (long long)r->signal);
    /* the offset in a directory is the file system's cookie, any number */
    if (r->offset < 0 || (r->op != WARDEN_READDIR && r->offset > INT64_C(1) << 40))
        return err_set(e, -ERR_INVALID, "the offset is out of range");
    if (r->disk_mb < 0 || r->disk_mb > QUOTA_MB_MAX)
        return err_set(e, -ERR_INVALID, "a disk limit of %lld MiB is out of range",
                       (long long)r->disk_mb);
    if (r->mode < 0 || (r->mode & ~0777) != 0)
        return err_set(e, -ERR_INVALID, "the mode is not within 0777");
    for (size_t i = 0; i < r->tasks.n; i++) {
        const struct warden_task *t = r->tasks.v[i];
        if (t == NULL || !plain_task_name(t->name))
            return err_set(e, -ERR_INVALID, "the name of task %zu is not allowed", i);
        if (t->secrets_mb < 0 || t->secrets_mb > JOB_SECRETS_MIB_MAX)
            return err_set(e, -ERR_INVALID, "the secrets of task %zu are out of range", i);
    }
    if (r->network != NULL && check_network(r->network, e) < 0)
        return -ERR_INVALID;
    if (check_limits(r->limits, e) < 0 || check_isolation(r->isolation, e) < 0)
        return -ERR_INVALID;
    if (r->exec != NULL && check_exec(r->exec, e) < 0)
        return -ERR_INVALID;
    if (r->helper != NULL && check_helper(r, e) < 0)
        return -ERR_INVALID;
    if (r->volume != NULL && check_volume(r->volume, e) < 0)
        return -ERR_INVALID;
    return r->spec != NULL ? proto_check_spec(r->spec, e) : 0;
}

int
proto_check(const struct warden_request *r, enum proto_phase phase, struct err *e)
{
    if (r->op == 0 || r->op >= WARDEN_OP_END)
        return err_set(e, -ERR_INVALID, "unknown request %llu", (unsigned long long)r->op);
    const struct row *row = &rows[r->op];
    ASSERT(row->name != NULL); /* a gap in the numbers of ops.def */
    if ((row->phases & phase) == 0)
        return err_set(e, -ERR_INVALID, "%s is not allowed now", row->name);
    unsigned f = proto_fields(r);
    if ((f & row->must) != row->must || (f & ~(row->must | row->may)) != 0)
        return err_set(e, -ERR_INVALID, "%s: fields 0x%x, must have 0x%x, may have 0x%x", row->name,
                       f, row->must, row->may);
    int rc = codec_check(&type_warden_request, r, e);
    if (rc == 0)
        rc = check_values(r, e);
    if (rc < 0)
        err_prefix(e, "%s", row->name);
    return rc < 0 ? -ERR_INVALID : 0;
}

int
proto_decode(const void *ctx, const void *p, size_t n, enum proto_phase phase,
             struct warden_request **ret, struct err *e)
{
    void *r = NULL;
    int rc = mp_decode(ctx, &type_warden_request, SLICE(p, n), BUDGET(PROTO_DECODE_MAX), &r, e);
    if (rc < 0)
        return rc;
    rc = proto_check(r, phase, e);
    if (rc < 0) {
        mem_free(r);
        return rc;
    }
    *ret = r;
    return 0;
}
