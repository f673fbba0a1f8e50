/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a task's root file system: see mounts.h. Pure. First the block of operations and
 * strings; then targets that a job asks for, which may neither cover nor lie in what the plan
 * mounts itself; then the plan in the order in which the shim executes it: roots of the host, the
 * kernel's file systems with their masks, the directories of the allocation, the job's own.
 * mounts_describe() is for tests and logs.
 */
#include "isolation/root/mounts.h"

#include <string.h>

#include "common/mem.h"

enum {
    SECRETS_DEFAULT_BYTES = 1024 * 1024,
    SHM_DEFAULT_BYTES = 64 * 1024 * 1024,
    TTY_GID = 5,
};

/* The parts of procfs that are hidden or made read-only. */
static const struct {
    const char *path;
    enum { HIDE_FILE, HIDE_DIR, READ_ONLY } how;
} of_proc[] = {
    {"/proc/kcore", HIDE_FILE},
    {"/proc/keys", HIDE_FILE},
    {"/proc/latency_stats", HIDE_FILE},
    {"/proc/timer_list", HIDE_FILE},
    {"/proc/timer_stats", HIDE_FILE},
    {"/proc/sched_debug", HIDE_FILE},
    {"/proc/interrupts", HIDE_FILE},
    {"/proc/kmsg", HIDE_FILE},
    {"/proc/acpi", HIDE_DIR},
    {"/proc/scsi", HIDE_DIR},
    {"/proc/asound", HIDE_DIR},
    {"/proc/bus", READ_ONLY},
    {"/proc/dynamic_debug", READ_ONLY},
    {"/proc/fs", READ_ONLY},
    {"/proc/irq", READ_ONLY},
    {"/proc/sys", READ_ONLY},
    {"/proc/sysrq-trigger", READ_ONLY},
};
_Static_assert(ARRAY_LEN(of_proc) <= 32, "mounts_spec.proc_absent has a bit for each");

/* The places of the root at, in and above which a job's own mounts may not go. Below /alloc, /local
 * and the rest of the root they may. */
static const char *const reserved[] = {"proc", "sys", "dev", "etc", "secrets", "alloc"};

struct builder {
    const void *ctx;
    struct mounts_op *ops;
    uint32_t n;
    char *strings;
    size_t used;
    size_t size;
    struct err *e;
    int code; /* first failure */
};

static uint32_t
add_string(struct builder *b, const char *s)
{
    size_t n = strlen(s) + 1;
    if (b->used + n > MOUNTS_BYTES_MAX / 2) {
        if (b->code == 0)
            b->code = err_set(b->e, -ERR_LIMIT, "the mounts of a task have too much text");
        return 0;
    }
    if (b->used + n > b->size) {
        b->size = (b->used + n) * 2;
        mem_resize(b->ctx, b->strings, char, b->size);
    }
    ASSERT(b->used + n <= b->size);
    memcpy(b->strings + b->used, s, n);
    b->used += n;
    return (uint32_t)(b->used - n);
}

/* Strings are offsets into b->strings plus one until mounts_finish() knows where they start; 0 is
 * none. */
static struct mounts_op *
mounts_add(struct builder *b, uint16_t kind, const char *source, const char *target, uint16_t flags)
{
    static struct mounts_op nowhere;
    if (b->n == MOUNTS_OPS_MAX) {
        if (b->code == 0)
            b->code = err_set(b->e, -ERR_LIMIT, "a task has more than %d mounts", MOUNTS_OPS_MAX);
        return &nowhere;
    }
    struct mounts_op *op = &b->ops[b->n++];
    *op = (struct mounts_op){.kind = kind, .flags = flags};
    if (source != NULL)
        op->source = add_string(b, source) + 1;
    if (target != NULL)
        op->target = add_string(b, target) + 1;
    return op;
}

static struct mounts_plan *
mounts_finish(struct builder *b)
{
    size_t head = sizeof(struct mounts_plan) + b->n * sizeof(struct mounts_op);
    size_t bytes = head + b->used;
    struct mounts_plan *p = mem_zalloc(b->ctx, bytes, "struct mounts_plan");
    p->bytes = (uint32_t)bytes;
    p->n_ops = b->n;
    for (uint32_t i = 0; i < b->n; i++) {
        p->ops[i] = b->ops[i];
        if (p->ops[i].source != 0)
            p->ops[i].source += (uint32_t)head - 1;
        if (p->ops[i].target != 0)
            p->ops[i].target += (uint32_t)head - 1;
    }
    memcpy((char *)p + head, b->strings, b->used);
    return p;
}

/* --- a job's own targets --- */
/* Relative form without empty, "." and ".." components; NULL if there is none. */
static const char *
clean_target(const void *ctx, const char *target)
{
    size_t n = strlen(target), used = 0;
    unsigned depth = 0;
    if (n == 0 || n >= MOUNTS_PATH_MAX)
        return NULL;
    char *out = mem_array(ctx, char, n + 1);
    for (const char *p = target; *p != 0;) {
        size_t part = strcspn(p, "/");
        if (part > 255 || (part == 2 && p[0] == '.' && p[1] == '.'))
            return NULL;
        if (part > 0 && !(part == 1 && p[0] == '.')) {
            if (++depth > MOUNTS_DEPTH_MAX)
                return NULL;
            if (used > 0)
                out[used++] = '/';
            memcpy(out + used, p, part);
            used += part;
        }
        p += part;
        if (*p == '/')
            p++;
    }
    return used > 0 ? out : NULL;
}

/* Is `path` the same as `dir` or below it? Both clean and relative. */
static bool
mounts_within(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/* A target may not cover, nor lie in, what the plan itself mounts: nothing can be made in a
 * read-only tree, and covering a mask would lift it. Below /alloc is the task's own. */
static bool
mounts_collides(const char *target, const char *own)
{
    if (strcmp(own, "alloc") == 0)
        return strcmp(target, own) == 0;
    return mounts_within(target, own) || mounts_within(own, target);
}

static int
check_target(const struct mounts_spec *s, size_t i, const char *const *targets, struct err *e)
{
    const char *t = targets[i];
    const char *why = NULL;
    if (t == NULL)
        return err_set(e, -ERR_INVALID,
                       "mount target \"%.256s\" is not a path below the task's root without \"..\"",
                       s->binds[i].target);
    for (size_t k = 0; k < ARRAY_LEN(reserved) && why == NULL; k++)
        if (mounts_collides(t, reserved[k]))
            why = reserved[k];
    for (size_t k = 0; k < s->n_roots && why == NULL; k++)
        if (s->roots[k].kind != '-' && mounts_collides(t, s->roots[k].path + 1))
            why = s->roots[k].path + 1;
    if (why != NULL)
        return err_set(e, -ERR_INVALID,
                       "mount target \"/%.256s\" collides with \"/%s\", which the sandbox mounts "
                       "itself: choose a path that holds no part of the base system",
                       t, why);
    for (size_t k = 0; k < i; k++)
        if (strcmp(targets[k], t) == 0)
            return err_set(e, -ERR_INVALID, "mount target \"/%.256s\" is given twice", t);
    if (s->binds[i].source[0] != '/')
        return err_set(e, -ERR_INVALID, "mount source \"%.256s\" is not an absolute path",
                       s->binds[i].source);
    return 0;
}

/* --- the plan --- */
static void
add_roots(struct builder *b, const struct mounts_spec *s)
{
    for (size_t i = 0; i < s->n_roots; i++) {
        const struct mounts_root *r = &s->roots[i];
        if (r->kind == 'd')
            mounts_add(b, MOUNTS_BIND, r->path, r->path + 1,
                       MOUNTS_F_READONLY | MOUNTS_F_RECURSIVE | MOUNTS_F_KEEP);
        else if (r->kind == 'f')
            mounts_add(b, MOUNTS_BIND, r->path, r->path + 1,
                       MOUNTS_F_READONLY | MOUNTS_F_FILE | MOUNTS_F_KEEP);
        else if (r->kind == 'l')
            mounts_add(b, MOUNTS_LINK, r->link, r->path + 1, 0);
    }
}

static void
add_kernel(struct builder *b, const struct mounts_spec *s)
{
    mounts_add(b, MOUNTS_PROC, s->proc_pids ? "subset=pid" : NULL, "proc", 0);
    for (size_t i = 0; i < ARRAY_LEN(of_proc); i++) {
        const char *target = of_proc[i].path + 1;
        if (s->proc_absent >> i & 1)
            continue;
        if (of_proc[i].how == HIDE_FILE)
            mounts_add(b, MOUNTS_MASK, "/dev/null", target, MOUNTS_F_OPTIONAL | MOUNTS_F_FILE);
        else if (of_proc[i].how == HIDE_DIR)
            mounts_add(b, MOUNTS_MASK, "/" MOUNTS_EMPTY, target, MOUNTS_F_OPTIONAL);
        else
            mounts_add(b, MOUNTS_READONLY, NULL, target, MOUNTS_F_OPTIONAL | MOUNTS_F_READONLY);
    }
    if (s->uid == 0 && s->id_base == 0) /* the shim's, which are root's: oom_score_adj, autogroup */
        mounts_add(b, MOUNTS_READONLY, NULL, "proc/1", MOUNTS_F_READONLY);
    mounts_add(b, MOUNTS_BIND, "/sys", "sys",
               MOUNTS_F_READONLY | MOUNTS_F_RECURSIVE | MOUNTS_F_KEEP);
    /* after the masks, whose source is in it */
    mounts_add(b, MOUNTS_BIND, "/dev", "dev",
               MOUNTS_F_READONLY | MOUNTS_F_RECURSIVE | MOUNTS_F_KEEP | MOUNTS_F_DEVICES);
    mounts_add(b, MOUNTS_DEVPTS, NULL, "dev/pts", 0)->gid = s->id_base + TTY_GID;
    if (s->kvm != NULL)
        mounts_add(b, MOUNTS_BIND, s->kvm, "dev/kvm",
                   MOUNTS_F_FILE | MOUNTS_F_DEVICES | MOUNTS_F_NOEXEC);
    for (size_t i = 0; i < s->n_devices; i++)
        mounts_add(b, MOUNTS_BIND, s->devices[i].source, s->devices[i].target + 1,
                   MOUNTS_F_FILE | MOUNTS_F_DEVICES | MOUNTS_F_NOEXEC);
    if (s->host_ipc) {
        mounts_add(b, MOUNTS_BIND, "/dev/shm", "dev/shm", 0);
        return;
    }
    struct mounts_op *op = mounts_add(b, MOUNTS_TMPFS, NULL, "dev/shm", MOUNTS_F_NOEXEC);
    op->size = s->shm_bytes ? s->shm_bytes : SHM_DEFAULT_BYTES;
    op->mode = 01777;
}

static void
add_secrets(struct builder *b, const struct mounts_spec *s, uint16_t own)
{
    if (s->secrets != NULL) {
        mounts_add(b, MOUNTS_BIND, s->secrets, "secrets", (uint16_t)(own | MOUNTS_F_NOEXEC));
        return;
    }
    struct mounts_op *op = mounts_add(b, MOUNTS_TMPFS, NULL, "secrets",
                                      MOUNTS_F_NOEXEC | (s->noswap ? MOUNTS_F_NOSWAP : 0));
    op->size = s->secrets_bytes ? s->secrets_bytes : SECRETS_DEFAULT_BYTES;
    op->mode = 0700;
    op->uid = s->id_base + s->uid;
    op->gid = s->id_base + s->gid;
    /* the agent cannot put files into this tmpfs: the socket of its API is in the task's root */
    mounts_add(b, MOUNTS_LINK, "../private/api.sock", "secrets/api.sock", 0);
}

const char *
mounts_proc_path(unsigned i)
{
    return i < ARRAY_LEN(of_proc) ? of_proc[i].path : NULL;
}

int
mounts_plan(const void *ctx, const struct mounts_spec *s, struct mounts_plan **ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("mounts_plan");
    if (s->n_binds > MOUNTS_TREES_MAX - 4)
        return err_set(e, -ERR_LIMIT, "a task has more than %d mounts of its own",
                       MOUNTS_TREES_MAX - 4);
    const char **targets = mem_array(tmp, const char *, s->n_binds);
    for (size_t i = 0; i < s->n_binds; i++) {
        targets[i] = clean_target(tmp, s->binds[i].target);
        int r = check_target(s, i, targets, e);
        if (r < 0)
            return r;
    }
    struct builder b = {.ctx = tmp, .e = e};
    b.ops = mem_array(tmp, struct mounts_op, MOUNTS_OPS_MAX);
    uint16_t own = s->id_base != 0 ? MOUNTS_F_IDMAP : 0;
    mounts_add(&b, MOUNTS_ROOT, s->task_dir, NULL, own);
    add_roots(&b, s);
    if (s->resolv != NULL)
        mounts_add(&b, MOUNTS_BIND, s->resolv, "etc/resolv.conf",
                   MOUNTS_F_READONLY | MOUNTS_F_FILE | MOUNTS_F_NOEXEC);
    add_kernel(&b, s);
    mounts_add(&b, MOUNTS_BIND, s->alloc_dir, "alloc", own);
    add_secrets(&b, s, own);
    for (size_t i = 0; i < s->n_binds; i++) {
        unsigned flags = own | (s->binds[i].read_only ? MOUNTS_F_READONLY : 0u);
        flags |= s->binds[i].file ? MOUNTS_F_FILE : MOUNTS_F_RECURSIVE;
        mounts_add(&b, MOUNTS_BIND, s->binds[i].source, targets[i], (uint16_t)flags);
    }
    mounts_add(&b, MOUNTS_ENTER, NULL, NULL, 0);
    if (b.code < 0)
        return b.code;
    *ret = talloc_steal(ctx, mounts_finish(&b));
    return 0;
}

const char *
mounts_describe(const void *ctx, const struct mounts_plan *p, uint32_t op)
{
    static const char *const kinds[] = {
        [MOUNTS_ROOT] = "root", [MOUNTS_BIND] = "bind",         [MOUNTS_TMPFS] = "tmpfs",
        [MOUNTS_PROC] = "proc", [MOUNTS_DEVPTS] = "devpts",     [MOUNTS_LINK] = "link",
        [MOUNTS_MASK] = "mask", [MOUNTS_READONLY] = "readonly", [MOUNTS_ENTER] = "enter",
    };
    static const struct {
        unsigned bit;
        const char *name;
    } flags[] = {
        {MOUNTS_F_READONLY, "ro"},       {MOUNTS_F_RECURSIVE, "rec"}, {MOUNTS_F_FILE, "file"},
        {MOUNTS_F_OPTIONAL, "optional"}, {MOUNTS_F_NOEXEC, "noexec"}, {MOUNTS_F_DEVICES, "dev"},
        {MOUNTS_F_NOSWAP, "noswap"},     {MOUNTS_F_KEEP, "template"}, {MOUNTS_F_IDMAP, "idmap"},
    };
    if (op >= p->n_ops)
        return "no such operation";
    const struct mounts_op *o = &p->ops[op];
    char *s =
        mem_printf(ctx, "%s", o->kind < ARRAY_LEN(kinds) && kinds[o->kind] ? kinds[o->kind] : "?");
    if (o->target)
        s = mem_printf(ctx, "%s %s", s, mounts_str(p, o->target));
    if (o->source)
        s = mem_printf(ctx, "%s <- %s", s, mounts_str(p, o->source));
    const char *sep = " ";
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (!(o->flags & flags[i].bit))
            continue;
        s = mem_printf(ctx, "%s%s%s", s, sep, flags[i].name);
        sep = ",";
    }
    return s;
}
