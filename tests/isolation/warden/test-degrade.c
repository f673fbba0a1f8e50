/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel that lacks things: user namespaces that cannot be had, Landlock absent, BPF refused,
 * controllers missing, in all sixteen combinations. Each starts or refuses exactly as the policy
 * says, and the facts of the node say why. What is missing is missing for this warden alone: its
 * file system takes no id-mapped mounts (ramfs in a mount namespace of the test), its calls are
 * refused by a filter, its cgroup has no controllers.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/launch/policy.h"
#include "isolation/probe.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

enum { NO_USERNS = 1, NO_LANDLOCK = 2, NO_BPF = 4, NO_CONTROLLERS = 8, ALL = 16 };

/* Returns what this machine lacks by itself. */
static unsigned
lacks(void)
{
    struct probe p;
    probe_run(&p, NULL);
    return (p.facts[PROBE_USERNS].ok ? 0 : NO_USERNS) |
           (p.facts[PROBE_LANDLOCK].ok ? 0 : NO_LANDLOCK) |
           (p.facts[PROBE_CGROUP_MEMORY].ok ? 0 : NO_CONTROLLERS);
}

static pid_t occupant;

static void
occupy(const char *procs)
{
    pid_t parent = getpid();
    occupant = fork();
    ck_assert_int_ge(occupant, 0);
    if (occupant == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent)
            (void)pause();
        _exit(0);
    }
    char pid[16];
    (void)snprintf(pid, sizeof(pid), "%d", (int)occupant);
    ck_assert_int_eq(file_put(AT_FDCWD, procs, pid), 0);
}

static void
start(struct rig *r, unsigned without, const char *userns, const char *limits)
{
    struct err e = ERR_INIT;
    rig_start(r, 0);
    rig_kill(r, SIGUSR1);
    if (without & NO_USERNS)
        ck_assert_int_eq(mount("none", r->policy.data_dir, "ramfs", 0, NULL), 0);
    if (without & NO_LANDLOCK)
        r->denied[r->n_denied++] = (struct rig_denied){SYS_landlock_create_ruleset, ENOSYS};
    if (without & NO_BPF)
        r->denied[r->n_denied++] = (struct rig_denied){SYS_bpf, EPERM};
    if (without & NO_CONTROLLERS) { /* none is handed down by a cgroup that has a process itself */
        ck_assert_int_eq(mkdir(r->policy.cgroup_root, 0755), 0);
        occupy(mem_printf(r->ctx, "%s/cgroup.procs", r->policy.cgroup_root));
        r->policy.cgroup_root = mem_printf(r->ctx, "%s/below", r->policy.cgroup_root);
    }
    r->policy.userns = userns;
    r->policy.limits = limits;
    ck_assert_msg(policy_compile(&r->policy, r->policy_path, &e) == 0, "%s", e.text);
    rig_spawn(r);
    warden_client_free(r->client);
    r->client = warden_client_new(r->ctx, r->socket);
    rig_connect(r);
    rig_alloc(r, rig_id, "web", "exec");
}

static void
stop(struct rig *r, unsigned without)
{
    char *above = NULL;
    if (without & NO_CONTROLLERS) {
        above = mem_strdup(NULL, r->policy.cgroup_root);
        *strrchr(above, '/') = '\0';
    }
    rig_kill(r, SIGUSR1);
    if (without & NO_USERNS)
        ck_assert_int_eq(umount2(r->policy.data_dir, MNT_DETACH), 0);
    rig_stop(r);
    if (above != NULL) {
        ck_assert_int_eq(kill(occupant, SIGKILL), 0);
        ck_assert_int_eq(waitpid(occupant, NULL, 0), occupant);
        ck_assert_int_eq(rmdir(above), 0);
    }
    mem_free(above);
}

/* The task's view of itself; NULL with the words of the refusal. */
static char *
launch(struct rig *r, const struct launch_spec *s, char *words, size_t size)
{
    struct got g, d = {0};
    rig_launch(r, s, &g);
    if (g.err.code != 0) {
        ck_assert(str_copy(words, size, g.err.text));
        got_free(&g);
        return NULL;
    }
    struct task_record *t = rig_end(r, &g);
    ck_assert_int_eq(t->exit_code, 0);
    got_free(&g);
    char *out = rig_file(r, rig_id, "alloc/logs/web.stdout.0");
    warden_destroy(r->client, rig_id, "web", rig_got, &d);
    rig_wait(r, &d);
    got_free(&d);
    return out;
}

static struct launch_spec *
spec(struct rig *r)
{
    return rig_spec(
        r, rig_id, "web", true,
        "grep -E '^(Seccomp|NoNewPrivs|CapEff):' /proc/self/status; cat /proc/self/uid_map;"
        "mount -t tmpfs x /tmp 2>/dev/null || echo no mount");
}

/* Asserts what holds whatever is missing, and that the user namespace is there exactly where it can
 * be. */
static void
check_task(const char *out, unsigned without)
{
    ck_assert_ptr_nonnull(strstr(out, "CapEff:\t0000000000000000\n"));
    ck_assert_ptr_nonnull(strstr(out, "NoNewPrivs:\t1\n"));
    ck_assert_ptr_nonnull(strstr(out, "Seccomp:\t2\n"));
    ck_assert_ptr_nonnull(strstr(out, "no mount\n"));
    ck_assert_int_eq(strstr(out, "4294967295") != NULL, (without & NO_USERNS) != 0);
}

static const char *
fact(const struct got *g, const char *name)
{
    const char *v = str_map_get(&g->info->facts, name);
    ck_assert_msg(v != NULL, "no fact \"%s\"", name);
    return v;
}

/* Asserts the facts as `node status -verbose` shows them: "true", or a reason in words. */
static void
check_facts(struct rig *r, unsigned without)
{
    static const struct {
        unsigned bit;
        const char *name, *words;
    } facts[] = {{NO_USERNS, "userns", "id-mapped"},
                 {NO_LANDLOCK, "landlock", "Function not implemented"},
                 {NO_BPF, "bpf_net", "not permitted"},
                 {NO_BPF, "bpf_run", "not permitted"}};
    struct got g = {0};
    warden_info(r->client, rig_got, &g);
    rig_wait(r, &g);
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        const char *v = fact(&g, facts[i].name);
        if (without & facts[i].bit)
            ck_assert_msg(strstr(v, facts[i].words) != NULL, "%u: %s = %s", without, facts[i].name,
                          v);
        else
            ck_assert_msg(str_eq(v, "true"), "%u: %s = %s", without, facts[i].name, v);
    }
    const char *block = without & NO_CONTROLLERS ? "controller io"
                        : without & NO_BPF       ? "not permitted"
                                                 : "true";
    const char *told = fact(&g, "bpf_block");
    ck_assert_msg(strstr(told, block) != NULL, "%u: bpf_block = %s", without, told);
    bool memory = false;
    for (size_t i = 0; i < g.info->controllers.n; i++)
        memory = memory || str_eq(g.info->controllers.v[i], "memory");
    ck_assert_int_eq(memory, (without & NO_CONTROLLERS) == 0);
    ck_assert_uint_eq(g.info->missing.n, 0); /* exec works in all of them */
    got_free(&g);
}

static void
expect(struct rig *r, const struct launch_spec *s, const char *refusal, unsigned without)
{
    char words[512] = "";
    char *out = launch(r, s, words, sizeof(words));
    if (refusal == NULL) {
        ck_assert_msg(out != NULL, "%u: refused: %s", without, words);
        check_task(out, without);
    } else {
        ck_assert_msg(out == NULL, "%u: started, must be refused with \"%s\"", without, refusal);
        ck_assert_msg(strstr(words, refusal) != NULL, "%u: \"%s\" is not in: %s", without, refusal,
                      words);
    }
}

static void
combination(unsigned without)
{
    struct rig r;
    start(&r, without, "auto", "best-effort"); /* whatever is missing is gone without, and told */
    check_facts(&r, without);
    struct launch_spec *s = spec(&r);
    expect(&r, s, NULL, without);
    s->limits = type_new(s, &type_launch_limits);
    s->limits->memory_max = 64 << 20;
    expect(&r, s, NULL, without);
    s->egress =
        type_new(s, &type_net_policy); /* but never a network policy that somebody asked for */
    list_add(s, s->egress->allow, "127.0.0.1");
    expect(&r, s, without & NO_BPF ? "cannot be enforced here" : NULL, without);
    stop(&r, without);

    start(&r, without, "required", "required");
    expect(&r, spec(&r),
           without & NO_USERNS ? "requires user namespaces"
           : without & NO_CONTROLLERS
               ? "requires limits" /* the number of processes always has one */
               : NULL,
           without);
    stop(&r, without);
}

/* A host denies the calls as container hosts do: the driver must not look healthy and fail each
 * task. */
START_TEST(a_host_that_denies_setns_or_keyctl_says_so)
{
    TEST_NEED("root");
    const struct rig_denied calls[] = {{SYS_setns, EPERM}, {SYS_keyctl, EPERM}};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        struct rig r;
        struct got g = {0};
        rig_start(&r, 0);
        rig_kill(&r, SIGUSR1);
        r.denied[r.n_denied++] = calls[i];
        rig_spawn(&r);
        warden_client_free(r.client);
        r.client = warden_client_new(r.ctx, r.socket);
        rig_connect(&r);
        warden_info(r.client, rig_got, &g);
        rig_wait(&r, &g);
        ck_assert_uint_eq(g.info->missing.n, 1);
        ck_assert_msg(strstr(g.info->missing.v[0], i == 0 ? "setns" : "keyring") != NULL, "%s",
                      g.info->missing.v[0]);
        got_free(&g);
        rig_stop(&r);
    }
}
END_TEST

START_TEST(sixteen_combinations)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    unsigned always = lacks();
    size_t tried = 0;
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    for (unsigned without = 0; without < ALL; without++)
        if ((without & always) == always) {
            combination(without);
            tried++;
        }
    printf("# %zu of %d combinations, since this machine lacks %s%s%s%s\n", tried, ALL,
           always & NO_USERNS ? "user namespaces " : "", always & NO_LANDLOCK ? "Landlock " : "",
           always & NO_CONTROLLERS ? "controllers " : "", always == 0 ? "nothing" : "by itself");
    ck_assert_uint_gt(tried, 0);
}
END_TEST

TEST_SUITE_TIMEOUT("degrade", 60, a_host_that_denies_setns_or_keyctl_says_so,
                   sixteen_combinations)
