/* SPDX-License-Identifier: Apache-2.0
 *
 * The pure half: mount plans, capability sets, cgroup limits and the parsers of cgroup files.
 */
#include <errno.h>
#include <string.h>

#include "common/mem.h"
#include "isolation/caps.h"
#include "isolation/cgroup.h"
#include "isolation/mounts.h"
#include "isolation/mounts_apply.h"
#include "tests/lib/test.h"

static const struct mounts_root roots[] = {
    {.path = "/bin", .kind = 'l', .link = "usr/bin"},
    {.path = "/lib32", .kind = '-'},
    {.path = "/usr", .kind = 'd'},
    {.path = "/etc", .kind = 'd'},
    {.path = "/opt/tool", .kind = 'f'},
};

static struct mounts_spec
spec(void)
{
    return (struct mounts_spec){.task_dir = "/var/a/1/web",
                                .alloc_dir = "/var/a/1/alloc",
                                .roots = roots,
                                .n_roots = ARRAY_LEN(roots),
                                .uid = 7,
                                .gid = 8};
}

static bool
has(const void *ctx, const struct mounts_plan *p, const char *line)
{
    for (uint32_t i = 0; i < p->n_ops; i++)
        if (strcmp(mounts_describe(ctx, p, i), line) == 0)
            return true;
    return false;
}

START_TEST(plan_of_a_plain_task)
{
    auto_mem void *ctx = mem_ctx("t");
    struct mounts_spec s = spec();
    struct mounts_plan *p;
    struct err e = ERR_INIT;
    ck_assert_msg(mounts_plan(ctx, &s, &p, &e) == 0, "%s", e.text);
    static const char *const lines[] = {
        "link bin <- usr/bin",
        "bind usr <- /usr ro,rec,template",
        "bind etc <- /etc ro,rec,template",
        "bind opt/tool <- /opt/tool ro,file,template",
        "proc proc",
        "mask proc/kcore <- /dev/null file,optional",
        "mask proc/acpi <- /.empty optional",
        "readonly proc/sys ro,optional",
        "bind sys <- /sys ro,rec,template",
        "bind dev <- /dev ro,rec,dev,template",
        "devpts dev/pts",
        "tmpfs dev/shm noexec",
        "bind alloc <- /var/a/1/alloc",
        "tmpfs secrets noexec,noswap",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        ck_assert_msg(has(ctx, p, lines[i]), "%s", lines[i]);
    ck_assert_str_eq(mounts_describe(ctx, p, 0), "root <- /var/a/1/web");
    ck_assert_uint_eq(p->ops[p->n_ops - 1].kind, MOUNTS_ENTER);
    ck_assert_int_eq(mounts_check(p, p->bytes), 0);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct mounts_op *op = &p->ops[i];
        if (op->kind == MOUNTS_TMPFS && strcmp(mounts_str(p, op->target), "secrets") == 0) {
            ck_assert_uint_eq(op->mode, 0700);
            ck_assert_uint_eq(op->uid, 7);
            ck_assert_uint_eq(op->gid, 8);
            ck_assert_uint_eq(op->size, 1024 * 1024);
        }
        /* nothing of the host is mounted writable but the two directories of the allocation */
        if (op->kind == MOUNTS_BIND && !(op->flags & MOUNTS_F_READONLY))
            ck_assert_str_eq(mounts_str(p, op->target), "alloc");
    }
}
END_TEST

START_TEST(targets_of_a_job)
{
    static const struct {
        const char *target;
        const char *clean; /* NULL: refused */
    } cases[] = {
        {"/data", "data"},
        {"data/x/../y", NULL},
        {"data//x/./y", "data/x/y"},
        {"/", NULL},
        {"", NULL},
        {"..", NULL},
        {"/proc", NULL},
        {"/proc/sys", NULL},
        {"proc/x", NULL},
        {"/sys/fs", NULL},
        {"/dev/null", NULL},
        {"/etc/passwd", NULL},
        {"/etc", NULL},
        {"/usr/lib", NULL},
        {"/usr", NULL},
        {"/usrlocal", "usrlocal"},
        {"/bin", NULL},
        {"/opt", NULL},
        {"/opt/tool", NULL},
        {"/opt/other", "opt/other"},
        {"/lib32", "lib32"},
        {"/secrets/x", NULL},
        {"/alloc", NULL},
        {"/alloc/data/v", "alloc/data/v"},
        {"/local/in", "local/in"},
        {"/procfs", "procfs"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_mem void *ctx = mem_ctx("t");
        struct mounts_spec s = spec();
        struct mounts_bind b = {.source = "/srv/x", .target = cases[i].target, .read_only = true};
        struct mounts_plan *p;
        struct err e = ERR_INIT;
        s.binds = &b;
        s.n_binds = 1;
        int r = mounts_plan(ctx, &s, &p, &e);
        if (cases[i].clean == NULL) {
            ck_assert_msg(r == -ERR_INVALID, "%s: %d", cases[i].target, r);
            ck_assert_msg(e.text[0] != 0, "%s", cases[i].target);
            continue;
        }
        ck_assert_msg(r == 0, "%s: %s", cases[i].target, e.text);
        ck_assert_msg(has(ctx, p, mem_printf(ctx, "bind %s <- /srv/x ro,rec", cases[i].clean)),
                      "%s", cases[i].target);
        ck_assert_uint_eq(p->ops[p->n_ops - 1].kind, MOUNTS_ENTER);
    }
}
END_TEST

START_TEST(too_much_is_refused)
{
    auto_mem void *ctx = mem_ctx("t");
    struct mounts_spec s = spec();
    struct mounts_plan *p;
    struct err e = ERR_INIT;
    struct mounts_bind *b = mem_array(ctx, struct mounts_bind, 500);
    for (size_t i = 0; i < 500; i++)
        b[i] = (struct mounts_bind){.source = "/srv", .target = mem_printf(ctx, "/d/%zu", i)};
    s.binds = b;
    s.n_binds = 500;
    ck_assert_int_eq(mounts_plan(ctx, &s, &p, &e), -ERR_LIMIT);
    err_clear(&e);
    b[1].target = b[0].target;
    s.n_binds = 2;
    ck_assert_int_eq(mounts_plan(ctx, &s, &p, &e), -ERR_INVALID);
    err_clear(&e);
    b[0].source = "srv";
    s.n_binds = 1;
    ck_assert_int_eq(mounts_plan(ctx, &s, &p, &e), -ERR_INVALID);
    err_clear(&e);
    char *deep = mem_strdup(ctx, "");
    for (int i = 0; i < 40; i++)
        deep = mem_printf(ctx, "%s/d", deep);
    b[0] = (struct mounts_bind){.source = "/srv", .target = deep};
    ck_assert_int_eq(mounts_plan(ctx, &s, &p, &e), -ERR_INVALID);
}
END_TEST

/* Bytes that are no plan are refused before anything is done with them. */
START_TEST(broken_plans_are_refused)
{
    auto_mem void *ctx = mem_ctx("t");
    struct mounts_spec s = spec();
    struct mounts_plan *p;
    struct err e = ERR_INIT;
    ck_assert_int_eq(mounts_plan(ctx, &s, &p, &e), 0);
    ck_assert_int_eq(mounts_check(p, p->bytes - 1), -EINVAL);
    ck_assert_int_eq(mounts_check(p, 4), -EINVAL);
    struct mounts_plan *q = mem_dup(ctx, p, p->bytes);
    q->n_ops = MOUNTS_OPS_MAX + 1;
    ck_assert_int_eq(mounts_check(q, q->bytes), -EINVAL);
    q->n_ops = p->n_ops;
    q->ops[0].source = q->bytes;
    ck_assert_int_eq(mounts_check(q, q->bytes), -EINVAL);
    q->ops[0].source = sizeof(*q); /* inside the operations */
    ck_assert_int_eq(mounts_check(q, q->bytes), -EINVAL);
    q->ops[0].source = p->ops[0].source;
    ck_assert_int_eq(mounts_check(q, q->bytes), 0);
    ((char *)q)[q->bytes - 1] = 'x';
    ck_assert_int_eq(mounts_check(q, q->bytes), -EINVAL);
}
END_TEST

START_TEST(capabilities)
{
    static const char *const allowed[] = {"NET_BIND_SERVICE", "cap_chown"};
    static const char *const all[] = {"all"};
    uint64_t set = 77;
    struct err e = ERR_INIT;
    ck_assert_int_eq(caps_plan(NULL, 0, allowed, 2, &set, &e), 0);
    ck_assert_uint_eq(set, 0);
    const char *one[] = {"Cap_Net_Bind_Service", "chown"};
    ck_assert_int_eq(caps_plan(one, 2, allowed, 2, &set, &e), 0);
    ck_assert_uint_eq(set, 1u << 10 | 1u);
    const char *more[] = {"sys_admin"};
    ck_assert_int_eq(caps_plan(more, 1, allowed, 2, &set, &e), -ERR_POLICY);
    ck_assert_uint_eq(set, 1u << 10 | 1u);
    err_clear(&e);
    ck_assert_int_eq(caps_plan(more, 1, all, 1, &set, &e), 0);
    const char *bad[] = {"net_bind_servce"};
    ck_assert_int_eq(caps_plan(bad, 1, all, 1, &set, &e), -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "net_bind_service"));
    err_clear(&e);
    ck_assert_int_eq(caps_plan(all, 1, all, 1, &set, &e), -ERR_POLICY);
    for (unsigned i = 0; caps_name(i); i++)
        ck_assert_int_eq(caps_from_name(caps_name(i)), (int)i);
}
END_TEST

static const char *
value_of(const struct cgroup_plan *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->files[i].name, name) == 0)
            return p->files[i].value;
    return "absent";
}

START_TEST(limits_become_files)
{
    struct cgroup_limits l = {.cpu_shares = 500,
                              .cpu_max_us = 50000,
                              .memory_max = 256 << 20,
                              .memory_high = 200 << 20,
                              .pids_max = 0};
    struct cgroup_plan p;
    cgroup_plan(&l, CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS, &p);
    ck_assert_str_eq(value_of(&p, "cpu.weight"), "48");
    ck_assert_str_eq(value_of(&p, "cpu.max"), "50000 100000");
    ck_assert_str_eq(value_of(&p, "memory.max"), "268435456");
    ck_assert_str_eq(value_of(&p, "memory.high"), "209715200");
    ck_assert_str_eq(value_of(&p, "memory.swap.max"), "0");
    ck_assert_str_eq(value_of(&p, "memory.oom.group"), "1");
    ck_assert_str_eq(value_of(&p, "pids.max"), "4096");
    /* a controller that is not there gets nothing */
    cgroup_plan(&l, CGROUP_PIDS, &p);
    ck_assert_uint_eq(p.n, 1);
    cgroup_plan(&l, 0, &p);
    ck_assert_uint_eq(p.n, 0);
    l = (struct cgroup_limits){.memory_max = 1 << 20,
                               .memory_high = 2 << 20,
                               .swap_max = 4096,
                               .cpu_max_us = 1,
                               .pids_max = 10};
    cgroup_plan(&l, ~0u, &p);
    ck_assert_str_eq(value_of(&p, "memory.high"), "absent");
    ck_assert_str_eq(value_of(&p, "memory.swap.max"), "4096");
    ck_assert_str_eq(value_of(&p, "cpu.max"), "1000 100000");
    ck_assert_str_eq(value_of(&p, "cpu.weight"), "absent");
    ck_assert_str_eq(value_of(&p, "pids.max"), "10");
    ck_assert_int_eq(cgroup_weight_from_shares(1), 1);
    ck_assert_int_eq(cgroup_weight_from_shares(1024), 100);
    ck_assert_int_eq(cgroup_weight_from_shares(INT64_MAX), 10000);
    ck_assert_int_eq(cgroup_weight_from_shares(-5), 1);
}
END_TEST

START_TEST(cgroup_files_are_parsed)
{
    auto_mem void *ctx = mem_ctx("t");
    int64_t v = -7;
    ck_assert(cgroup_parse_flat("populated 1\nfrozen 0\n", "frozen", &v));
    ck_assert_int_eq(v, 0);
    ck_assert(!cgroup_parse_flat("populatedx 1\n", "populated", &v));
    ck_assert(!cgroup_parse_flat("", "populated", &v));
    ck_assert(!cgroup_parse_flat("a 99999999999999999999999999\n", "a", &v));
    ck_assert(!cgroup_parse_flat("a x\n", "a", &v));
    ck_assert(cgroup_parse_flat("oom 3\noom_kill 2\n", "oom_kill", &v));
    ck_assert_int_eq(v, 2);
    ck_assert_uint_eq(cgroup_parse_controllers("cpuset cpu io memory hugetlb pids rdma misc\n"),
                      CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS | CGROUP_IO | CGROUP_CPUSET |
                          CGROUP_HUGETLB);
    ck_assert_uint_eq(cgroup_parse_controllers("cpuacct memoryx"), 0);
    ck_assert_str_eq(cgroup_controllers_text(ctx, CGROUP_PIDS | CGROUP_CPU), "cpu pids");
    struct cgroup_psi psi;
    cgroup_parse_psi("some avg10=1.25 avg60=0.00 avg300=0.00 total=12345\n"
                     "full avg10=0.50 avg60=0.00 avg300=0.00 total=99\n",
                     &psi);
    ck_assert(psi.present);
    ck_assert(psi.some_avg10 > 1.24 && psi.some_avg10 < 1.26);
    ck_assert_uint_eq(psi.some_total_us, 12345);
    ck_assert_uint_eq(psi.full_total_us, 99);
    cgroup_parse_psi("garbage", &psi);
    ck_assert(!psi.present);
    cgroup_parse_psi("some avg10=", &psi);
    ck_assert(psi.present);
}
END_TEST

TEST_SUITE("plans", plan_of_a_plain_task, targets_of_a_job, too_much_is_refused,
           broken_plans_are_refused, capabilities, limits_become_files, cgroup_files_are_parsed)
