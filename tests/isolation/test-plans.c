/* SPDX-License-Identifier: Apache-2.0
 *
 * The pure half: mount plans, capability sets, cgroup limits and the parsers of cgroup files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/confine/caps.h"
#include "isolation/root/mounts.h"
#include "isolation/root/mounts_apply.h"
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
                                .gid = 8,
                                .noswap = true};
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
    struct mounts_spec less = spec();
    struct mounts_plan *q;
    less.proc_pids = true;
    less.noswap = false; /* a kernel before 6.4 notes each launch that asks for it */
    ck_assert_int_eq(mounts_plan(ctx, &less, &q, &e), 0);
    ck_assert(has(ctx, q, "proc proc <- subset=pid"));
    ck_assert(has(ctx, q, "tmpfs secrets noexec"));
    unsigned acpi = 0;
    while (strcmp(mounts_proc_path(acpi), "/proc/acpi") != 0)
        acpi++;
    less.proc_absent = 1u << acpi;
    ck_assert_int_eq(mounts_plan(ctx, &less, &q, &e), 0);
    ck_assert(!has(ctx, q, "mask proc/acpi <- /.empty optional"));
    ck_assert_uint_eq(q->n_ops, p->n_ops - 1);
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
                              .zswap_max = -1,
                              .pids_max = 0};
    struct cgroup_plan p;
    struct cgroup_root root = {.controllers = CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS};
    cgroup_plan(&l, &root, &p);
    ck_assert_str_eq(value_of(&p, "cpu.weight"), "48");
    ck_assert_str_eq(value_of(&p, "cpu.max"), "50000 100000");
    ck_assert_str_eq(value_of(&p, "memory.max"), "268435456");
    ck_assert_str_eq(value_of(&p, "memory.high"), "209715200");
    ck_assert_str_eq(value_of(&p, "memory.swap.max"), "0");
    ck_assert_str_eq(value_of(&p, "memory.oom.group"), "1");
    ck_assert_str_eq(value_of(&p, "pids.max"), "4096");
    /* a controller that is not there gets nothing */
    root.controllers = CGROUP_PIDS;
    cgroup_plan(&l, &root, &p);
    for (size_t i = 0; i < p.n; i++)
        ck_assert_msg(p.files[i].absent == !str_prefix(p.files[i].name, "pids."), "%s",
                      p.files[i].name);
    l = (struct cgroup_limits){.memory_max = 1 << 20,
                               .memory_high = 2 << 20,
                               .swap_max = 4096,
                               .zswap_max = -1,
                               .cpu_max_us = 1,
                               .pids_max = 10};
    root.controllers = ~0u;
    cgroup_plan(&l, &root, &p);
    ck_assert_str_eq(value_of(&p, "memory.high"), "absent");
    ck_assert_str_eq(value_of(&p, "memory.swap.max"), "4096");
    ck_assert_str_eq(value_of(&p, "cpu.max"), "1000 100000");
    ck_assert_str_eq(value_of(&p, "cpu.weight"), "absent");
    ck_assert_str_eq(value_of(&p, "pids.max"), "10");
    /* swap is asked for by name, also without a limit on memory */
    l.memory_max = l.swap_max = 0;
    cgroup_plan(&l, &root, &p);
    ck_assert_str_eq(value_of(&p, "memory.max"), "absent");
    ck_assert_str_eq(value_of(&p, "memory.swap.max"), "0");
    ck_assert_int_eq(cgroup_weight_from_shares(1), 1);
    ck_assert_int_eq(cgroup_weight_from_shares(1024), 100);
    ck_assert_int_eq(cgroup_weight_from_shares(INT64_MAX), 10000);
    ck_assert_int_eq(cgroup_weight_from_shares(-5), 1);
}
END_TEST

static const struct cgroup_file *
file_of(const struct cgroup_plan *p, const char *name, bool above)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->files[i].name, name) == 0 && p->files[i].above == above)
            return &p->files[i];
    ck_abort_msg("%s%s is not in the plan", above ? "../" : "", name);
}

/* The limits that a job may ask for become files, each at the level where it counts. */
START_TEST(asked_limits_become_files)
{
    auto_mem void *ctx = mem_ctx("t");
    struct cgroup_limits l = {
        .cpu_shares = 100,
        .cpu_max_us = 50000,
        .cpu_burst_us = 20000,
        .cpu_idle = true,
        .memory_low = 4096,
        .memory_min = 8192,
        .zswap_max = 0,
        .hugetlb_max = 4 << 20,
        .io_weight = 200,
        .io = {{.major = 253, .minor = 16, .rbps = 1048576, .wiops = 100}, {.major = 8}},
        .n_io = 2};
    cgroup_cpus_add(&l.cores, 1);
    static const struct {
        const char *name, *value;
        bool above;
    } want[] = {
        {"cpu.idle", "1", true},
        {"cpu.max", "50000 100000", false},
        {"cpu.max.burst", "20000", false},
        {"memory.low", "4096", false},
        {"memory.low", "4096", true},
        {"memory.min", "8192", true},
        {"memory.zswap.max", "0", false},
        {"io.weight", "200", true},
        {"io.max", "253:16 rbps=1048576 wbps=max riops=max wiops=100", false},
        {"hugetlb.2MB.max", "4194304", false},
        {"hugetlb.1GB.rsvd.max", "4194304", false},
    };
    struct cgroup_root root = {.controllers = ~0u, .huge = {.size = {"2MB", "1GB"}, .n = 2}};
    struct cgroup_plan p;
    cgroup_plan(&l, &root, &p);
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        ck_assert_str_eq(file_of(&p, want[i].name, want[i].above)->value, want[i].value);
    ck_assert_str_eq(value_of(&p, "cpu.weight"), "absent"); /* an idle group has none */
    ck_assert(p.has_cores && p.keeps_memory);
    ck_assert_str_eq(cgroup_plan_missing(ctx, &p), "");
    /* nothing is dropped in silence */
    root = (struct cgroup_root){.controllers = 0};
    cgroup_plan(&l, &root, &p);
    ck_assert(!p.has_cores && !p.keeps_memory);
    ck_assert_str_eq(cgroup_plan_missing(ctx, &p),
                     "cpu.idle, cpu.max, cpu.max.burst, memory.zswap.max, memory.low, memory.min, "
                     "io.weight, io.max, hugetlb.max, cpuset.cpus");
    /* but what nobody asked for is not mentioned; huge pages are refused where there are some */
    l = (struct cgroup_limits){.cpu_shares = 100, .memory_max = 1 << 20, .zswap_max = -1};
    cgroup_plan(&l, &root, &p);
    ck_assert_str_eq(cgroup_plan_missing(ctx, &p), "");
    /* nor is what every task has dropped in silence: a hybrid machine has none of these */
    ck_assert_str_eq(cgroup_plan_unheld(ctx, &p), "cpu memory");
    l.pids_max = 100;
    root.controllers = CGROUP_CPU;
    cgroup_plan(&l, &root, &p);
    ck_assert_str_eq(cgroup_plan_unheld(ctx, &p), "memory pids");
    root.controllers = ~0u;
    cgroup_plan(&l, &root, &p);
    ck_assert_str_eq(cgroup_plan_unheld(ctx, &p), "");
    root = (struct cgroup_root){.controllers = ~0u, .huge = {.size = {"2MB"}, .n = 1}};
    cgroup_plan(&l, &root, &p);
    ck_assert_str_eq(value_of(&p, "hugetlb.2MB.max"), "0");
}
END_TEST

START_TEST(processors_are_lists)
{
    static const struct {
        const char *in, *out; /* NULL: refused */
    } cases[] = {
        {"0-3,7", "0-3,7"}, {"7,0,1\n", "0-1,7"},  {"", ""},       {"\n", ""},
        {"3-1", ""},        {"1023", "1023"},      {"1024", NULL}, {"0-1024", NULL},
        {"x", NULL},        {"1-", NULL},          {"1 2", NULL},  {"-1", NULL},
        {"0,,1", NULL},     {"99999999999", NULL},
    };
    char text[CGROUP_CPUS_TEXT_MAX];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cgroup_cpus s = {0};
        bool ok = cgroup_cpus_parse(cases[i].in, &s);
        ck_assert_msg(ok == (cases[i].out != NULL), "\"%s\"", cases[i].in);
        if (ok)
            ck_assert_str_eq(cgroup_cpus_text(&s, text), cases[i].out);
    }
    struct cgroup_cpus odd = {0};
    for (unsigned i = 1; i < CGROUP_CPUS_MAX; i += 2)
        cgroup_cpus_add(&odd, i);
    struct cgroup_cpus again;
    ck_assert(cgroup_cpus_parse(cgroup_cpus_text(&odd, text), &again)); /* the longest fits */
    ck_assert(memcmp(&odd, &again, sizeof(odd)) == 0);
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
    struct cgroup_stats io;
    cgroup_parse_io("253:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n8:0 rbytes=5 wbytes=x\n",
                    &io);
    ck_assert_int_eq(io.io_rbytes, 15);
    ck_assert_int_eq(io.io_wbytes, 20);
    ck_assert_int_eq(io.io_rios, 1);
    ck_assert_int_eq(io.io_wios, 2);
    cgroup_parse_psi("garbage", &psi);
    ck_assert(!psi.present);
    cgroup_parse_psi("some avg10=", &psi);
    ck_assert(psi.present);
}
END_TEST

/* Plain files stand for a task's cgroup, and a directory for a file that the kernel refuses. */
static void
put(int dirfd, const char *name, const char *text)
{
    ck_assert_int_eq(file_write_atomic(dirfd, name, text, strlen(text), 0644), 0);
}

static void
check_file(int dirfd, const char *name, const char *want)
{
    auto_mem void *tmp = mem_ctx("t");
    char *text = NULL;
    ck_assert_int_eq(file_read(tmp, dirfd, name, 4096, &text, NULL), 0);
    ck_assert_msg(strncmp(text, want, strlen(want)) == 0, "%s: %s", name, text);
}

static const struct cgroup_limits resized = {.cpu_max_us = 50000,
                                             .memory_max = 1 << 20,
                                             .zswap_max = -1,
                                             .pids_max = 10,
                                             .io = {{.major = 8, .rbps = 77}},
                                             .n_io = 1};

static int
resize(const char *dir, bool strict, struct err *e)
{
    auto_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct cgroup_root root = {.fd = fd,
                               .controllers = CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS | CGROUP_IO};
    struct cgroup_plan plan;
    cgroup_plan(&resized, &root, &plan);
    plan.strict = strict;
    return cgroup_task_resize(&root, "a", "t", &plan, e);
}

START_TEST(resize_that_fails)
{
    char dir[] = "/tmp/plans-XXXXXX";
    struct err e = ERR_INIT;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    auto_fd int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(dir_make(top, "a/t/task", 0755), 0);
    auto_fd int leaf = openat(top, "a/t/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(leaf, "cpu.max", "20000 100000");
    put(leaf, "memory.max", "4096   ");
    put(leaf, "memory.oom.group", "1");
    put(leaf, "pids.max", "99");
    /* strict, and there is no io.max: all is as it was */
    ck_assert_int_eq(resize(dir, true, &e), -ERR_POLICY);
    ck_assert_msg(strstr(e.text, "\"io.max\"") && !strstr(e.text, "in part"), "%s", e.text);
    check_file(leaf, "cpu.max", "20000 100000");
    check_file(leaf, "memory.max", "4096");
    /* one that is refused does not cost the others, and is what is told */
    ck_assert_int_eq(unlinkat(leaf, "memory.max", 0), 0);
    ck_assert_int_eq(dir_make(leaf, "memory.max", 0755), 0);
    put(leaf, "io.max", "");
    err_clear(&e);
    ck_assert_int_eq(resize(dir, true, &e), -EISDIR);
    ck_assert_msg(strstr(e.text, "\"memory.max\"") && strstr(e.text, "in part"), "%s", e.text);
    check_file(leaf, "cpu.max", "50000 100000");
    check_file(leaf, "pids.max", "10");
    check_file(leaf, "io.max", "8:0 rbps=77");
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}
END_TEST

TEST_SUITE("plans", plan_of_a_plain_task, targets_of_a_job, too_much_is_refused,
           broken_plans_are_refused, capabilities, limits_become_files, asked_limits_become_files,
           processors_are_lists, cgroup_files_are_parsed, resize_that_fails)
