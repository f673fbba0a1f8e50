/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch plan (see plan.h), made from a launch spec that proto.c has checked and policy.c has
 * allowed. First the block: strings and lists at offsets behind a header. Then what goes into it:
 * where the command is looked for, files to be sealed, limits, confinement, logs; plan_make() puts
 * them together; and plan_explain(), the words for a step that failed in the shim.
 */
#include "isolation/launch/plan.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "api/isolation.h"
#include "common/buf.h"
#include "common/digest.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/root/mounts.h"

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
enum {
    NOFILE_DEFAULT = 65536,
    MEMLOCK_DEFAULT = 8 << 20,
    MSGQUEUE_DEFAULT = 819200,
    SIGPENDING_DEFAULT = 8192,
    LOG_FILES_DEFAULT = 10,
    LOG_BYTES_DEFAULT = 10 << 20,
};

/* The block being made; its errors stick in the buffer. */
struct block {
    struct buf b;
};

static uint32_t
plan_put(struct block *k, const void *p, size_t n, size_t align)
{
    static const uint8_t zeros[8];
    if (k->b.len % align != 0)
        buf_put(&k->b, zeros, align - k->b.len % align);
    uint32_t at = (uint32_t)k->b.len;
    buf_put(&k->b, p, n);
    return at;
}

static uint32_t
put_str(struct block *k, const char *s)
{
    return plan_put(k, s, strlen(s) + 1, 1);
}

static struct plan_strs
put_strs(struct block *k, const void *ctx, const char *first, const struct str_list *rest)
{
    size_t n = rest->n + (first != NULL);
    uint64_t *v = mem_array(ctx, uint64_t, n + 1);
    size_t i = 0;
    if (first != NULL)
        v[i++] = put_str(k, first);
    for (size_t j = 0; j < rest->n; j++)
        v[i++] = put_str(k, rest->v[j]);
    v[i] = 0;
    return (struct plan_strs){plan_put(k, v, (n + 1) * sizeof(*v), 8), (uint32_t)n};
}

static const char *
env_path(const struct launch_spec *s)
{
    for (size_t i = 0; i < s->env.n; i++)
        if (str_prefix(s->env.v[i], "PATH="))
            return s->env.v[i] + 5;
    return PATH_DEFAULT;
}

/* Lists the places where the command is looked for: absolute as it is; "local/run" below the
 * task's directory; a bare name in the task's local/, the task's directory, then PATH, as Nomad
 * does it. */
static void
plan_candidates(const void *ctx, const struct launch_spec *s, const char *base,
                struct str_list *out)
{
    if (s->command[0] == '/') {
        list_add(ctx, *out, s->command);
        return;
    }
    if (strchr(s->command, '/') == NULL)
        list_add(ctx, *out, mem_printf(ctx, "%s/local/%s", base, s->command));
    list_add(ctx, *out, mem_printf(ctx, "%s/%s", base, s->command));
    if (strchr(s->command, '/') != NULL)
        return;
    for (const char *p = env_path(s); *p != '\0' && out->n < PLAN_PATHS_MAX;) {
        size_t n = strcspn(p, ":");
        if (n > 0 && p[0] == '/')
            list_add(ctx, *out, mem_printf(ctx, "%.*s/%s", (int)n, p, s->command));
        p += n + (p[n] == ':');
    }
}

/* Is the absolute path the file `clean` of the root, which has plain components only? */
static bool
plan_names(const char *path, const char *clean)
{
    for (const char *p = path + strspn(path, "/"); *p != '\0'; p += strspn(p, "/")) {
        size_t n = strcspn(p, "/");
        if (n == 1 && p[0] == '.') {
            p += n;
            continue;
        }
        if (strncmp(p, clean, n) != 0 || (clean[n] != '/' && clean[n] != '\0'))
            return false;
        p += n;
        clean += n + (clean[n] == '/');
    }
    return *clean == '\0';
}

static bool
goes_up(const char *path)
{
    for (const char *p = strstr(path, "/.."); p != NULL; p = strstr(p + 1, "/.."))
        if (p[3] == '/' || p[3] == '\0')
            return true;
    return false;
}

/* Writes down which paths are sealed, and whether the program is among them: by its name alone,
 * which ".." would hide. */
static int
fill_verity(struct block *k, struct plan_header *h, const struct launch_spec *s,
            const struct str_list *paths, struct err *e)
{
    auto_mem void *ctx = mem_ctx("verity");
    const struct task_verity_list *verity = &isolation_of(s->isolation)->verity;
    struct plan_verity *v = mem_array(ctx, struct plan_verity, verity->n);
    for (size_t i = 0; i < verity->n; i++) {
        const struct task_verity *f = verity->v[i];
        v[i].path = put_str(k, f->path);
        v[i].has_digest = digest_parse(str_or(f->digest, ""), v[i].digest) == 0;
    }
    if (verity->n > 0)
        h->verity =
            (struct plan_verities){plan_put(k, v, verity->n * sizeof(*v), 8), (uint32_t)verity->n};
    for (size_t j = 0; j < paths->n && h->program == 0; j++) {
        if (verity->n > 0 && goes_up(paths->v[j]))
            return err_set(
                e, -ERR_INVALID,
                "verity: the command \"%.256s\" has \"..\": name it as its verity block does",
                paths->v[j]);
        for (size_t i = 0; i < verity->n && h->program == 0; i++)
            if (plan_names(paths->v[j], verity->v[i]->path))
                h->program = (uint32_t)i + 1;
    }
    return 0;
}

static void
plan_limit(struct confine *c, unsigned resource, uint64_t v)
{
    ASSERT(c->n_rlimits < CONFINE_RLIMITS_MAX);
    c->rlimits[c->n_rlimits++] =
        (struct confine_rlimit){.resource = resource, .soft = v, .hard = v};
}

static uint64_t
plan_nproc(const struct launch_spec *s)
{
    int64_t n = isolation_of(s->isolation)->pids_max;
    return n > CGROUP_PIDS_DEFAULT ? (uint64_t)n : CGROUP_PIDS_DEFAULT;
}

static uint32_t
plan_ports(uint16_t to[CONFINE_PORTS_MAX], const struct i64_list *from)
{
    uint32_t n = 0;
    for (size_t i = 0; i < from->n && n < CONFINE_PORTS_MAX; i++)
        to[n++] = (uint16_t)from->v[i];
    return n;
}

static bool
is_isolated(const struct plan_input *in)
{
    return in->join != NULL ? in->spec->isolated : in->mounts != NULL;
}

static void
fill_ports(struct confine *c, const struct task_landlock *l)
{
    if (l == NULL)
        return;
    c->flags |= l->bind.n > 0 ? CONFINE_BIND : 0;
    c->flags |= l->connect.n > 0 ? CONFINE_CONNECT : 0;
    c->n_bind = plan_ports(c->bind, &l->bind);
    c->n_connect = plan_ports(c->connect, &l->connect);
}

static void
fill_confine(struct confine *c, const struct plan_input *in)
{
    const struct launch_spec *s = in->spec;
    bool isolated = is_isolated(in);
    if (in->user != NULL) {
        c->flags |= CONFINE_IDS;
        c->uid = in->user->uid;
        c->gid = in->user->gid;
        c->n_groups =
            in->user->n_groups < CONFINE_GROUPS_MAX ? in->user->n_groups : CONFINE_GROUPS_MAX;
        memcpy(c->groups, in->user->groups, c->n_groups * sizeof(c->groups[0]));
    }
    const struct task_isolation *iso = isolation_of(s->isolation);
    int64_t nofile = iso->nofile;
    if (isolated) {
        c->flags |= CONFINE_ISOLATED | CONFINE_NO_NEW_PRIVS;
        if (in->join != NULL)
            c->flags |= CONFINE_JOINS;
        else if (!str_empty(s->hostname)) /* else its namespace has the host's */
            c->flags |= CONFINE_HOSTNAME;
        c->flags |= in->userns ? CONFINE_USERNS : 0;
        c->flags |= in->own_filter ? 0 : CONFINE_FILTER_FIRST;
        c->landlock_abi = in->landlock_abi > 0 ? (uint32_t)in->landlock_abi : 0;
        c->caps = in->caps;
        str_copy(c->hostname, sizeof(c->hostname), str_or(s->hostname, ""));
        c->flags |= iso->core_sched ? CONFINE_CORE_SCHED : 0;
        fill_ports(c, iso->landlock);
        /* behind pids.max, and where that controller is missing; the tasks of an allocation count
         * together, and without a user namespace those of all others of the same user would */
        if (in->userns)
            plan_limit(c, RLIMIT_NPROC, plan_nproc(s));
        plan_limit(c, RLIMIT_CORE, 0);
        plan_limit(c, RLIMIT_MEMLOCK, MEMLOCK_DEFAULT);
        plan_limit(c, RLIMIT_MSGQUEUE, MSGQUEUE_DEFAULT);
        plan_limit(c, RLIMIT_SIGPENDING, SIGPENDING_DEFAULT);
        if (nofile == 0)
            nofile = NOFILE_DEFAULT;
    }
    if (nofile > 0)
        plan_limit(c, RLIMIT_NOFILE, (uint64_t)nofile);
    if (iso->nofile > 0)
        c->rlimits[c->n_rlimits - 1].exact = true;
}

static void
fill_logs(struct block *k, struct plan_header *h, const struct plan_input *in, const void *ctx)
{
    static const char *const streams[2] = {"stdout", "stderr"};
    const struct launch_logs *l = in->spec->logs;
    for (int i = 0; i < 2; i++)
        h->logs[i] = (struct plan_log){
            .name = put_str(k, mem_printf(ctx, "%s.%s.", in->spec->task_name, streams[i])),
            .index = in->log_index[i],
            .first = in->log_first[i],
        };
    h->log_files = l != NULL && l->max_files > 0 ? (uint32_t)l->max_files : LOG_FILES_DEFAULT;
    h->log_bytes =
        l != NULL && l->max_file_bytes > 0 ? (uint64_t)l->max_file_bytes : LOG_BYTES_DEFAULT;
    h->log_gid = in->log_gid;
    h->id_base = in->id_base;
}

static uint32_t
plan_flags(const struct plan_input *in)
{
    uint32_t f = is_isolated(in) ? PLAN_ISOLATED : PLAN_SUBREAPER;
    if (in->join != NULL)
        f |= in->join->tty ? PLAN_JOIN | PLAN_TERMINAL : PLAN_JOIN;
    f |= in->user != NULL ? PLAN_ROOT : 0;
    f |= in->cgroup ? PLAN_CGROUP : 0;
    f |= in->logs ? PLAN_LOGS : 0;
    f |= in->oom ? PLAN_OOM : 0;
    f |= in->userns ? PLAN_USERNS : 0;
    f |= in->audit ? PLAN_AUDIT : 0;
    return f;
}

int
plan_make(const void *ctx, const struct plan_input *in, void **ret, size_t *ret_n, struct err *e)
{
    auto_mem void *tmp = mem_ctx("plan");
    const struct launch_spec *s = in->spec;
    bool isolated = is_isolated(in);
    const char *base = isolated ? "" : in->task_dir;
    struct block k = {.b = BUF_INIT(PLAN_BYTES_MAX)};
    struct plan_header h = {.magic = PLAN_MAGIC, .version = SHIM_VERSION, .flags = plan_flags(in)};

    plan_put(&k, &h, sizeof(h), 8);
    struct confine c = {0};
    fill_confine(&c, in);
    h.confine = plan_put(&k, &c, sizeof(c), 8);
    if (in->join != NULL) {
        h.rows = (uint16_t)in->join->rows;
        h.columns = (uint16_t)in->join->columns;
    }
    if (in->mounts != NULL) {
        h.mounts = plan_put(&k, in->mounts, in->mounts->bytes, 8);
        h.mounts_bytes = in->mounts->bytes;
    }
    if (in->task_filter != NULL)
        h.task_filter =
            (struct plan_filter){plan_put(&k, in->task_filter->insns,
                                          in->task_filter->n * sizeof(struct sock_filter), 8),
                                 in->task_filter->n};
    if (in->shim_filter != NULL)
        h.shim_filter =
            (struct plan_filter){plan_put(&k, in->shim_filter->insns,
                                          in->shim_filter->n * sizeof(struct sock_filter), 8),
                                 in->shim_filter->n};
    const char *wd = str_or(s->work_dir, isolated ? "/" : base);
    h.work_dir = put_str(&k, wd[0] == '/' ? wd : mem_printf(tmp, "%s/%s", base, wd));
    if (!str_empty(in->apparmor))
        h.apparmor = put_str(&k, in->apparmor);
    struct str_list paths = {0};
    plan_candidates(tmp, s, base, &paths);
    h.paths = put_strs(&k, tmp, NULL, &paths);
    h.args = put_strs(&k, tmp, s->command, &s->args);
    h.env = put_strs(&k, tmp, NULL, &s->env);
    fill_logs(&k, &h, in, tmp);
    int r = fill_verity(&k, &h, s, &paths, e);
    buf_putc(&k.b, '\0');
    h.bytes = (uint32_t)k.b.len;
    if (r == 0)
        r = buf_error(&k.b);
    if (r == 0) {
        memcpy(k.b.data, &h, sizeof(h));
        r = plan_check(k.b.data, k.b.len);
    }
    if (r < 0) /* unless it is told already */
        err_set(e, r == -EINVAL ? -ERR_INVALID : -ERR_LIMIT,
                "task \"%s\": its command, arguments and environment are more than %d KiB",
                s->task_name, PLAN_BYTES_MAX / 1024);
    if (r == 0) {
        *ret = mem_dup(ctx, k.b.data, k.b.len);
        *ret_n = k.b.len;
    }
    buf_done(&k.b);
    return r;
}

void
plan_explain(const void *plan, const struct shim_status *st, struct err *e)
{
    static const char *const stages[SHIM_STAGE_END] = {
        [SHIM_PLAN] = "read the plan",
        [SHIM_LOGS] = "open the log files",
        [SHIM_MOUNTS] = "build the root",
        [SHIM_BEGIN] = "confine the task",
        [SHIM_CLONE] = "clone the task",
        [SHIM_TASK] = "confine the task",
        [SHIM_EXEC] = "execute",
        [SHIM_JOIN] = "join the task",
        [SHIM_TERMINAL] = "make its input and output",
        [SHIM_VERITY] = "seal its files",
    };
    const struct plan_header *h = plan;
    auto_mem void *tmp = mem_ctx("explain");
    int stage = st->stage > SHIM_RUNS && st->stage < SHIM_STAGE_END ? st->stage : SHIM_PLAN;
    int error = st->error > 0 && st->error < 4096 ? st->error : EINVAL;
    char what[sizeof(st->what)];
    memcpy(what, st->what, sizeof(what));
    what[sizeof(what) - 1] = '\0';
    if (stage == SHIM_PLAN && error == EPROTO) {
        err_set(e, -ERR_UNSUPPORTED, "paddock-shim is of another version than paddock-warden: "
                                     "restart the warden once both are installed");
        return;
    }
    if (stage == SHIM_VERITY && st->op >= 0 && (uint32_t)st->op < h->verity.n) {
        const struct plan_verity *v = (const void *)((const char *)plan + h->verity.at);
        verity_explain((const char *)plan + v[st->op].path, what, error, st->digest, e);
        return;
    }
    if (stage == SHIM_EXEC) {
        const uint64_t *args = (const uint64_t *)(const void *)((const char *)plan + h->args.at);
        const char *cmd = (const char *)plan + args[0];
        const char *hint = "";
        if (error == ENOENT && h->program != 0)
            hint = " (the interpreter or loader that it names is missing)";
        else if (error == ENOENT && (h->flags & PLAN_ISOLATED) != 0)
            hint = " (not found in the task's directory or its PATH; of the host it sees /usr, "
                   "/bin, /lib and what else isolation.bind_roots names)";
        else if (error == ENOENT)
            hint = " (not found in the task's directory or its PATH)";
        else if (error == EPERM && h->program != 0)
            hint = " (sealed, so by its descriptor: seccomp must allow execveat)";
        err_errno(e, error, "execute \"%s\"%s", cmd, hint);
        if (h->apparmor != 0 && (error == EACCES || error == EPERM))
            err_prefix(e, "AppArmor profile \"%s\"", (const char *)plan + h->apparmor);
        return;
    }
    if (stage == SHIM_TASK && h->apparmor != 0 && str_eq(what, CONFINE_APPARMOR_STEP)) {
        err_errno(e, error, CONFINE_APPARMOR_STEP " \"%s\"%s", (const char *)plan + h->apparmor,
                  error == ENOENT ? " is not loaded (apparmor_parser -r FILE)" : "");
        return;
    }
    if (stage == SHIM_TASK && error == EPERM && str_eq(what, CONFINE_RLIMIT_STEP)) {
        err_errno(e, error,
                  "isolation.nofile is above this client's hard limit of open files "
                  "(LimitNOFILE of paddock-warden.service, fs.nr_open): lower it, or raise that");
        return;
    }
    if (stage == SHIM_TASK && str_eq(what, "working directory")) {
        err_errno(e, error, "enter the working directory \"%s\"", (const char *)plan + h->work_dir);
        return;
    }
    const char *op = "";
    if (stage == SHIM_MOUNTS && h->mounts != 0) {
        const struct mounts_plan *m = (const void *)((const char *)plan + h->mounts);
        if (st->op >= 0 && (uint32_t)st->op < m->n_ops)
            op = mounts_describe(tmp, m, (uint32_t)st->op);
    }
    err_errno(e, error, "%s%s%s%s%s", stages[stage], op[0] != '\0' ? ": " : "", op,
              what[0] != '\0' ? ": " : "", what);
}
