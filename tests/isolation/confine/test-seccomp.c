/* SPDX-License-Identifier: Apache-2.0
 *
 * The filter compiler against libseccomp as oracle: both programs are interpreted here over all
 * system call numbers and samples of arguments, and must agree. Then the profile's own promises, by
 * name.
 */
#include "isolation/confine/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/api.h"
#include "codec/codec.h"
#include "common/mem.h"
#include "tests/lib/test.h"

#define EPERM_RET (SECCOMP_RET_ERRNO | EPERM)
#define ENOSYS_RET (SECCOMP_RET_ERRNO | ENOSYS)

/* The part of classic BPF that seccomp programs use. */
static uint32_t
run(const struct sock_filter *f, size_t n, const struct seccomp_data *d)
{
    uint32_t a = 0, x = 0;
    for (size_t pc = 0; pc < n; pc++) {
        const struct sock_filter *i = &f[pc];
        bool hit = false;
        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            ck_assert_uint_le(i->k + 4, sizeof(*d));
            memcpy(&a, (const char *)d + i->k, 4);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= i->k;
            continue;
        case BPF_MISC | BPF_TAX:
            x = a;
            continue;
        case BPF_MISC | BPF_TXA:
            a = x;
            continue;
        case BPF_RET | BPF_K:
            return i->k;
        case BPF_JMP | BPF_JA:
            pc += i->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            hit = a == i->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            hit = a >= i->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            hit = a > i->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            hit = (a & i->k) != 0;
            break;
        default:
            ck_abort_msg("instruction %zu has code %#x", pc, i->code);
        }
        pc += hit ? i->jt : i->jf;
    }
    ck_abort_msg("the program ran off its end");
    return 0;
}

static struct seccomp_program
compile(const void *ctx, const struct seccomp_profile *p)
{
    struct seccomp_program prog = {0};
    struct err e = ERR_INIT;
    ck_assert_msg(seccomp_compile(ctx, p, &prog, &e) == 0, "%s", e.text);
    ck_assert_uint_gt(prog.n, 4);
    return prog;
}

static uint32_t
verdict_action(enum seccomp_verdict v)
{
    return v == SECCOMP_V_ALLOW    ? SCMP_ACT_ALLOW
           : v == SECCOMP_V_ENOSYS ? SCMP_ACT_ERRNO(ENOSYS)
           : v == SECCOMP_V_KILL   ? SCMP_ACT_KILL_PROCESS
                                   : SCMP_ACT_ERRNO(EPERM);
}

static struct scmp_arg_cmp
compare(const struct seccomp_cond *c)
{
    uint64_t mask = c->low32 ? c->mask & UINT32_MAX : c->mask;
    return (struct scmp_arg_cmp){
        .arg = c->arg, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = c->value & mask};
}

/* The same profile said in libseccomp's words. An inverted rule allows what is unequal to all: its
 * conditions must be on one argument, whole ints, so that "greater than the last, between, less
 * than the first" can be said. */
static void
oracle_rule(scmp_filter_ctx f, const struct seccomp_rule *r, int nr)
{
    uint32_t act = verdict_action(r->verdict);
    if (r->n_conds == 0) {
        ck_assert_int_eq(seccomp_rule_add_exact_array(f, act, nr, 0, NULL), 0);
        return;
    }
    if (r->invert) {
        struct scmp_arg_cmp all[8];
        ck_assert_uint_le(r->n_conds, 8);
        for (size_t i = 0; i < r->n_conds; i++) {
            all[i] = compare(&r->conds[i]);
            ck_assert_int_eq(
                seccomp_rule_add_exact_array(f, SCMP_ACT_ERRNO(EACCES), nr, 1, &all[i]), 0);
        }
        return; /* finished by expected_inverted() */
    }
    for (size_t i = 0; i < r->n_conds; i++) {
        struct scmp_arg_cmp all[8];
        unsigned n = 0;
        all[n++] = compare(&r->conds[i]);
        while (r->conds[i].more)
            all[n++] = compare(&r->conds[++i]);
        ck_assert_int_eq(seccomp_rule_add_exact_array(f, act, nr, n, all), 0);
    }
}

struct oracle {
    struct sock_filter insns[8192];
    size_t n;
};

static void
make_oracle(const struct seccomp_profile *p, struct oracle *o)
{
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), 0);
    for (size_t i = 0; i < p->n_rules; i++) {
        int nr = seccomp_syscall_resolve_name(p->rules[i].name);
        if (nr >= 0)
            oracle_rule(f, &p->rules[i], nr);
    }
    int fd = memfd_create("oracle", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(seccomp_export_bpf(f, fd), 0);
    ssize_t bytes = pread(fd, o->insns, sizeof(o->insns), 0);
    ck_assert_int_gt(bytes, 0);
    ck_assert_uint_lt((size_t)bytes, sizeof(o->insns));
    o->n = (size_t)bytes / sizeof(o->insns[0]);
    (void)close(fd);
    seccomp_release(f);
}

/* In the oracle an inverted rule is "EACCES for the refused values, and (default) EPERM for the
 * rest". */
static uint32_t
expected(const struct seccomp_profile *p, const struct oracle *o, const struct seccomp_data *d)
{
    uint32_t r = run(o->insns, o->n, d);
    for (size_t i = 0; i < p->n_rules; i++)
        if (p->rules[i].invert && seccomp_syscall_resolve_name(p->rules[i].name) == d->nr)
            return r == (SECCOMP_RET_ERRNO | EACCES) ? EPERM_RET : SECCOMP_RET_ALLOW;
    return r;
}

static const uint64_t samples[] = {
    0,
    1,
    2,
    3,
    8,
    10,
    16,
    17,
    38,
    40,
    0x80,
    0x540b,
    0x5412,
    0x541c,
    0x5423,
    0x8000,
    010000,
    0100000,
    020644,
    060644,
    0140777,
    0020000,
    0x20000,
    0x20008,
    0x40000,
    0x02000000,
    0x10000000,
    0x20000000,
    0x40000000,
    0x7e020000,
    0x7d0f00,
    0x1200011,
    0x400000,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    0x100000001,
    0x1000054120,
    0x500005412,
    0xffffffff00000000,
    0xffffffffffffffff,
};

static void
agree(const struct seccomp_profile *p)
{
    auto_mem void *ctx = mem_ctx("agree");
    struct seccomp_program prog = compile(ctx, p);
    struct oracle *o = mem_new(ctx, struct oracle);
    make_oracle(p, o);
    unsigned long compared = 0;
    uint32_t allowed = 0;
    for (int nr = 0; nr < 450; nr++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
        bool known = name != NULL;
        free(name);
        if (!known && nr > 330)
            continue; /* beyond what this libseccomp knows: ENOSYS, tested apart */
        for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
            for (size_t k = 0; k < ARRAY_LEN(samples); k++) {
                struct seccomp_data d = {.nr = nr,
                                         .arch = seccomp_arch_native(),
                                         .args = {samples[i], samples[k], samples[i]}};
                if (k % 2)
                    d.args[2] = samples[k / 2];
                uint32_t ours = run(prog.insns, prog.n, &d), theirs = expected(p, o, &d);
                if (ours != theirs) /* an assertion that holds costs a write, half a million times */
                    ck_abort_msg("nr %d args %#llx %#llx %#llx: %#x, oracle %#x", nr,
                                 (unsigned long long)d.args[0], (unsigned long long)d.args[1],
                                 (unsigned long long)d.args[2], ours, theirs);
                compared++;
                allowed += ours == SECCOMP_RET_ALLOW;
            }
        }
    }
    ck_assert_uint_gt(compared, 500000);
    ck_assert_uint_gt(allowed, 10000);
}

START_TEST(default_profile_agrees_with_libseccomp)
{
    agree(seccomp_profile_default());
}
END_TEST

START_TEST(shim_profile_agrees_with_libseccomp)
{
    agree(seccomp_profile_shim());
    agree(seccomp_profile_join());
    agree(seccomp_profile_audit());
}
END_TEST

START_TEST(foreign_architectures_are_killed)
{
    auto_mem void *ctx = mem_ctx("t");
    struct seccomp_program p = compile(ctx, seccomp_profile_default());
    struct seccomp_data d = {.nr = 20, .arch = AUDIT_ARCH_I386};
    ck_assert_uint_eq(run(p.insns, p.n, &d), SECCOMP_RET_KILL_PROCESS);
    d.arch = AUDIT_ARCH_ARM;
    ck_assert_uint_eq(run(p.insns, p.n, &d), SECCOMP_RET_KILL_PROCESS);
#ifdef __x86_64__
    d.arch = AUDIT_ARCH_X86_64;
    for (int nr = 0; nr < 600; nr++) {
        d.nr = nr | 0x40000000;
        ck_assert_uint_eq(run(p.insns, p.n, &d), SECCOMP_RET_KILL_PROCESS);
    }
#endif
}
END_TEST

START_TEST(numbers_of_the_future_are_enosys)
{
    auto_mem void *ctx = mem_ctx("t");
    struct seccomp_program p = compile(ctx, seccomp_profile_default());
    for (int nr = 500; nr < 2000; nr++) {
        struct seccomp_data d = {.nr = nr, .arch = seccomp_arch_native()};
        ck_assert_uint_eq(run(p.insns, p.n, &d), ENOSYS_RET);
    }
}
END_TEST

static uint32_t
ask(const struct seccomp_program *p, const char *name, uint64_t a0, uint64_t a1, uint64_t a2)
{
    struct seccomp_data d = {.nr = seccomp_syscall_resolve_name(name),
                             .arch = seccomp_arch_native(),
                             .args = {a0, a1, a2}};
    ck_assert_msg(d.nr >= 0, "%s", name);
    return run(p->insns, p->n, &d);
}

START_TEST(dangerous_calls_are_refused)
{
    static const char *const refused[] = {
        "unshare",
        "setns",
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "keyctl",
        "add_key",
        "request_key",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "open_by_handle_at",
        "name_to_handle_at",
        "kexec_load",
        "kexec_file_load",
        "init_module",
        "finit_module",
        "delete_module",
        "reboot",
        "swapon",
        "swapoff",
        "acct",
        "quotactl",
        "settimeofday",
        "clock_settime",
        "sethostname",
        "setdomainname",
        "kcmp",
        "pidfd_getfd",
        "lookup_dcookie",
        "syslog",
        "iopl",
        "ioperm",
        "fsopen",
        "fsmount",
        "fsconfig",
        "move_mount",
        "open_tree",
        "mount_setattr",
        "vhangup",
        "fanotify_init",
        "move_pages",
        "mbind",
        "modify_ldt",
    };
    auto_mem void *ctx = mem_ctx("t");
    struct seccomp_program p = compile(ctx, seccomp_profile_default());
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        ck_assert_msg(ask(&p, refused[i], 0, 0, 0) == EPERM_RET, "%s", refused[i]);
    ck_assert_uint_eq(ask(&p, "clone3", 0, 0, 0), ENOSYS_RET);
}
END_TEST

START_TEST(arguments_decide)
{
    auto_mem void *ctx = mem_ctx("t");
    struct seccomp_program p = compile(ctx, seccomp_profile_default());
    /* threads and fork */
    ck_assert_uint_eq(ask(&p, "clone", 0x3d0f00, 0, 0), SECCOMP_RET_ALLOW);
    ck_assert_uint_eq(ask(&p, "clone", 0x1200011, 0, 0), SECCOMP_RET_ALLOW);
    static const uint64_t spaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                      CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
        ck_assert_uint_eq(ask(&p, "clone", spaces[i] | 17, 0, 0), EPERM_RET);
    for (int af = 0; af < 46; af++) {
        bool ok = af == AF_UNIX || af == AF_INET || af == AF_INET6 || af == AF_NETLINK;
        ck_assert_msg(ask(&p, "socket", (uint64_t)af, SOCK_RAW, 0) ==
                          (ok ? SECCOMP_RET_ALLOW : EPERM_RET),
                      "family %d", af);
    }
    ck_assert_uint_eq(ask(&p, "socket", AF_NETLINK, SOCK_RAW, 12), EPERM_RET);
    /* the kernel looks at 32 bits: so must the filter */
    ck_assert_uint_eq(ask(&p, "socket", (UINT64_C(7) << 32) | AF_VSOCK, SOCK_STREAM, 0), EPERM_RET);
    ck_assert_uint_eq(ask(&p, "ioctl", 0, (UINT64_C(1) << 32) | TIOCSTI, 0), EPERM_RET);
    ck_assert_uint_eq(ask(&p, "ioctl", 0, TIOCLINUX, 0), EPERM_RET);
    ck_assert_uint_eq(ask(&p, "ioctl", 0, FS_IOC_FSSETXATTR, 0), EPERM_RET);
    ck_assert_uint_eq(ask(&p, "ioctl", 0, (UINT64_C(1) << 32) | FS_IOC_SETFLAGS, 0), EPERM_RET);
    ck_assert_uint_eq(ask(&p, "ioctl", 0, FS_IOC_FSGETXATTR, 0), SECCOMP_RET_ALLOW);
    ck_assert_uint_eq(ask(&p, "ioctl", 0, TIOCGWINSZ, 0), SECCOMP_RET_ALLOW);
    ck_assert_uint_eq(ask(&p, "personality", 0xffffffff, 0, 0), SECCOMP_RET_ALLOW);
    ck_assert_uint_eq(ask(&p, "personality", 0x400000, 0, 0), EPERM_RET);
    ck_assert_uint_eq(ask(&p, "mknodat", 0, 0, S_IFIFO | 0600), SECCOMP_RET_ALLOW);
    ck_assert_uint_eq(ask(&p, "mknodat", 0, 0, S_IFCHR | 0600), EPERM_RET);
    ck_assert_uint_eq(ask(&p, "mknod", 0, S_IFBLK | 0600, 0), EPERM_RET);
}
END_TEST

/* The kernel takes the program and does what the interpreter said. */
/* The calls that a default task may make load no module of the kernel: each other family, type and
 * protocol is denied, by either call. */
START_TEST(no_family_or_protocol_loads_a_module)
{
    auto_mem void *ctx = mem_ctx("t");
    struct seccomp_program p = compile(ctx, seccomp_profile_default());
    static const uint64_t families[] = {AF_INET, AF_INET6, (UINT64_C(1) << 32) | AF_INET};
    for (uint64_t af = 0; af < 64; af++)
        ck_assert_msg(ask(&p, "socketpair", af, SOCK_STREAM, 0) ==
                          (af == AF_UNIX ? SECCOMP_RET_ALLOW : EPERM_RET),
                      "pair of family %d", (int)af);
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        for (uint64_t type = 0; type < 16; type++) {
            for (uint64_t proto = 0; proto < 600; proto++) {
                bool plain = proto == IPPROTO_IP || proto == IPPROTO_ICMP ||
                             proto == IPPROTO_TCP || proto == IPPROTO_UDP ||
                             proto == IPPROTO_ICMPV6 || proto == IPPROTO_UDPLITE ||
                             proto == IPPROTO_MPTCP;
                bool ok = type == SOCK_RAW || (type < SOCK_RAW && plain);
                ck_assert_msg(ask(&p, "socket", families[i], type | SOCK_CLOEXEC, proto) ==
                                  (ok ? SECCOMP_RET_ALLOW : EPERM_RET),
                              "family %d, type %d, protocol %d", (int)families[i], (int)type,
                              (int)proto);
            }
        }
    }
    ck_assert_uint_eq(ask(&p, "io_setup", 1, 0, 0), EPERM_RET); /* slots that the machine shares */
    ck_assert_uint_eq(ask(&p, "io_submit", 1, 0, 0), EPERM_RET);
}
END_TEST

START_TEST(the_kernel_agrees)
{
    auto_mem void *ctx = mem_ctx("t");
    struct seccomp_program p = compile(ctx, seccomp_profile_default());
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct sock_fprog prog = {.len = p.n, .filter = p.insns};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
            _exit(1);
        if (syscall(SYS_keyctl, 0, 0, 0, 0, 0) != -1 || errno != EPERM)
            _exit(2);
        if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
            _exit(3);
        if (socket(AF_VSOCK, SOCK_STREAM, 0) != -1 || errno != EPERM)
            _exit(4);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd < 0 || syscall(600) != -1 || errno != ENOSYS)
            _exit(5);
        (void)syscall(SYS_getpid | 0x40000000);
        _exit(6);
    }
    int st;
    ck_assert_int_eq(waitpid(pid, &st, 0), pid);
    ck_assert_msg(WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS, "status %#x", st);
}
END_TEST

/* Programs of any size: far jumps, one rule, no rule, and refusal of nonsense. */
START_TEST(far_jumps_are_right)
{
    auto_mem void *ctx = mem_ctx("t");
    struct seccomp_rule rules[SECCOMP_RULES_MAX];
    static const struct seccomp_cond three[] = {
        {.arg = 0, .mask = UINT64_MAX, .value = 1},
        {.arg = 1, .mask = 0xffff0000ffff0000, .value = 0x1234000056780000, .more = true},
        {.arg = 2, .low32 = true, .mask = 0xf0, .value = 0x20},
    };
    size_t n = 0;
    for (int nr = 0; nr < 440; nr++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
        if (name == NULL)
            continue;
        rules[n] = (struct seccomp_rule){.name = mem_strdup(ctx, name), .verdict = SECCOMP_V_ALLOW};
        if (nr % 2)
            rules[n].conds = three, rules[n].n_conds = 3;
        n++;
        free(name);
    }
    struct seccomp_profile p = {.name = "big", .rules = rules, .n_rules = n};
    struct seccomp_program prog = compile(ctx, &p);
    ck_assert_uint_gt(prog.n, 2000);
    for (size_t i = 0; i < n; i++) {
        bool plain = rules[i].n_conds == 0;
        const char *name = rules[i].name;
        ck_assert_uint_eq(ask(&prog, name, 1, 9, 9), SECCOMP_RET_ALLOW);
        ck_assert_uint_eq(ask(&prog, name, 5, 0x1234abcd56780000, 0x2f), SECCOMP_RET_ALLOW);
        ck_assert_uint_eq(ask(&prog, name, 5, 0x1234abcd56780000, 0x3f),
                          plain ? SECCOMP_RET_ALLOW : EPERM_RET);
        ck_assert_uint_eq(ask(&prog, name, 0x100000001, 0, 0),
                          plain ? SECCOMP_RET_ALLOW : EPERM_RET);
    }
    struct err e = ERR_INIT;
    struct seccomp_rule twice[] = {rules[0], rules[0]};
    struct seccomp_profile bad = {.name = "bad", .rules = twice, .n_rules = 2};
    ck_assert_int_eq(seccomp_compile(ctx, &bad, &prog, &e), -ERR_INVALID);
    struct seccomp_rule odd = {.name = "no_such_call_at_all", .verdict = SECCOMP_V_ALLOW};
    struct seccomp_profile one = {.name = "odd", .rules = &odd, .n_rules = 1};
    prog = compile(ctx, &one);
    ck_assert_uint_eq(prog.unknown, 1);
    ck_assert_uint_eq(ask(&prog, "read", 0, 0, 0), EPERM_RET);
}
END_TEST

/* The default filter, for which every launch pays, stays small. */
START_TEST(default_filter_is_small)
{
    auto_mem void *ctx = mem_ctx("t");
    struct seccomp_program p = compile(ctx, seccomp_profile_default());
    printf("# default filter: %u instructions, %zu names unknown to libseccomp\n", p.n, p.unknown);
    ck_assert_uint_lt(p.n, 260);
}
END_TEST

static struct str_list
words(const void *ctx, const char *const *v)
{
    struct str_list l = {0};
    for (size_t i = 0; v[i] != NULL; i++)
        list_add(ctx, l, v[i]);
    return l;
}

/* The calls that a job adds have no conditions left, those that it denies go before, and nothing
 * else changes. */
START_TEST(a_job_changes_what_it_names)
{
    auto_mem void *ctx = mem_ctx("t");
    const struct seccomp_profile *p = seccomp_profile_default();
    struct task_seccomp t = {
        .allow = words(ctx, (const char *[]){"ptrace", "clone", "read", "ptrace", NULL}),
        .deny = words(ctx, (const char *[]){"symlink", "bpf", NULL})};
    struct err e = ERR_INIT;
    struct seccomp_program own, plain = compile(ctx, p);
    ck_assert_msg(seccomp_compile_task(ctx, p, &t, false, &own, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(ask(&own, "ptrace", 0, 0, 0), SECCOMP_RET_ALLOW);
    ck_assert_uint_eq(ask(&own, "clone", CLONE_NEWUSER, 0, 0), SECCOMP_RET_ALLOW);
    ck_assert_uint_eq(ask(&own, "symlink", 0, 0, 0), EPERM_RET);
    for (int nr = 0; nr < 600; nr++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
        bool changed =
            name && (!strcmp(name, "ptrace") || !strcmp(name, "clone") || !strcmp(name, "symlink"));
        struct seccomp_data d = {.nr = nr, .arch = seccomp_arch_native()};
        if (!changed)
            ck_assert_msg(run(own.insns, own.n, &d) == run(plain.insns, plain.n, &d), "%s",
                          name ? name : "?");
        free(name);
    }
    ck_assert(seccomp_allows(p, "read") && !seccomp_allows(p, "clone") &&
              !seccomp_allows(p, "bpf"));
}
END_TEST

START_TEST(log_mode_denies_nothing_of_ours)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_seccomp t = {.mode = "log"};
    struct seccomp_program own;
    struct err e = ERR_INIT;
    ck_assert_int_eq(seccomp_compile_task(ctx, seccomp_profile_default(), &t, false, &own, &e), 0);
    ck_assert_uint_eq(ask(&own, "bpf", 0, 0, 0), SECCOMP_RET_LOG);
    ck_assert_uint_eq(ask(&own, "socket", AF_PACKET, 0, 0), SECCOMP_RET_LOG);
    ck_assert_uint_eq(ask(&own, "read", 0, 0, 0), SECCOMP_RET_ALLOW);
    struct seccomp_data d = {.nr = 3, .arch = AUDIT_ARCH_I386};
    ck_assert_uint_eq(run(own.insns, own.n, &d), SECCOMP_RET_KILL_PROCESS);
}
END_TEST

/* A call that would be EPERM is told, and only that; no listener beside ours, whatever the job
 * allows. */
START_TEST(audit_mode_tells_and_lets_nothing_through)
{
    auto_mem void *ctx = mem_ctx("t");
    const struct str_list all = words(ctx, (const char *[]){"seccomp", "ptrace", NULL});
    struct seccomp_program own, plain = compile(ctx, seccomp_profile_default());
    struct err e = ERR_INIT;
    for (int i = 0; i < 2; i++) {
        struct task_seccomp t = {.mode = "audit", .allow = i == 0 ? (struct str_list){0} : all};
        ck_assert_int_eq(seccomp_compile_task(ctx, seccomp_profile_default(), &t, false, &own, &e), 0);
        ck_assert_uint_eq(ask(&own, "bpf", 0, 0, 0), SECCOMP_RET_USER_NOTIF);
        ck_assert_uint_eq(ask(&own, "socket", AF_PACKET, 0, 0), SECCOMP_RET_USER_NOTIF);
        ck_assert_uint_eq(ask(&own, "clone3", 0, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
        ck_assert_uint_eq(ask(&own, "seccomp", 1, 0, 0), SECCOMP_RET_ALLOW);
        for (unsigned f = 0; f < 64; f++)
            ck_assert_uint_eq(ask(&own, "seccomp", 1, f, 0), f & SECCOMP_FILTER_FLAG_NEW_LISTENER
                                                                 ? SECCOMP_RET_USER_NOTIF
                                                                 : SECCOMP_RET_ALLOW);
        ck_assert_uint_eq(
            ask(&own, "seccomp", 1, (1ull << 32) | SECCOMP_FILTER_FLAG_NEW_LISTENER, 0),
            SECCOMP_RET_USER_NOTIF);
        struct seccomp_data d = {.nr = 3, .arch = AUDIT_ARCH_I386};
        ck_assert_uint_eq(run(own.insns, own.n, &d), SECCOMP_RET_KILL_PROCESS);
        for (int nr = 0; i == 0 && nr < 600; nr++) {
            d = (struct seccomp_data){.nr = nr, .arch = seccomp_arch_native()};
            uint32_t a = run(plain.insns, plain.n, &d), b = run(own.insns, own.n, &d);
            ck_assert_msg(b == (a == EPERM_RET ? SECCOMP_RET_USER_NOTIF : a), "%d", nr);
        }
    }
    struct task_seccomp t = {.mode = "audit",
                             .deny = words(ctx, (const char *[]){"seccomp", NULL})};
    ck_assert_int_eq(seccomp_compile_task(ctx, seccomp_profile_default(), &t, false, &own, &e), 0);
    ck_assert_uint_eq(ask(&own, "seccomp", 1, 0, 0), SECCOMP_RET_USER_NOTIF);
    t.deny = words(ctx, (const char *[]){"sendmsg", NULL});
    ck_assert_int_eq(seccomp_check_task(&t, &e), -ERR_INVALID);
    ck_assert_msg(strstr(e.text, "audit") && strstr(e.text, "sendmsg"), "%s", e.text);
    t.mode = "enforce";
    ck_assert_int_eq(seccomp_check_task(&t, &e), 0);
}
END_TEST

START_TEST(names_of_calls_are_checked)
{
    static const struct {
        const char *name, *text;
    } rows[] = {{"ptrase", "did you mean \"ptrace\""},
                {"", "no system call \"\""},
                {"not_a_call_at_all_whatever", "no system call"}};
    auto_mem void *ctx = mem_ctx("t");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = ERR_INIT;
        struct task_seccomp t = {.deny = words(ctx, (const char *[]){rows[i].name, NULL})};
        ck_assert_int_eq(seccomp_check_task(&t, &e), -ERR_INVALID);
        ck_assert_msg(strstr(e.text, rows[i].text) != NULL, "%s", e.text);
    }
    struct err e = ERR_INIT;
    struct task_seccomp t = {.deny = words(ctx, (const char *[]){"execve", NULL})};
    ck_assert_int_eq(seccomp_check_task(&t, &e), -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "no task can start"));
}
END_TEST

TEST_SUITE("seccomp", a_job_changes_what_it_names, log_mode_denies_nothing_of_ours,
           audit_mode_tells_and_lets_nothing_through, names_of_calls_are_checked,
           default_profile_agrees_with_libseccomp, shim_profile_agrees_with_libseccomp,
           foreign_architectures_are_killed, numbers_of_the_future_are_enosys,
           dangerous_calls_are_refused, arguments_decide,
           no_family_or_protocol_loads_a_module, the_kernel_agrees, far_jumps_are_right,
           default_filter_is_small)
