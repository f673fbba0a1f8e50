/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/isolation/rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/launch/policy.h"
#include "isolation/launch/record.h"
#include "tests/lib/test.h"

const char rig_id[] = "01234567-89ab-cdef-0123-456789abcdef";

long
rig_fds(pid_t pid)
{
    char path[40];
    long n = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    ck_assert_ptr_nonnull(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

void
rig_pause(int ms)
{
    (void)poll(NULL, 0, ms);
}

/* In the child. */
static void
deny_calls(const struct rig *r)
{
    struct sock_filter f[2 * ARRAY_LEN(r->denied) + 2];
    unsigned short n = 0;
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < r->n_denied; i++) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)r->denied[i].nr,
                                              0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                              SECCOMP_RET_ERRNO | (unsigned)r->denied[i].error);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog p = {.len = n, .filter = f};
    if (r->n_denied > 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p) < 0)
        _exit(125);
}

void
rig_own_network(void)
{
    ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
    struct ifreq q = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &q), 0);
}

void
rig_spawn(struct rig *r)
{
    const char *top = getenv("top_builddir");
    char *exe = mem_printf(r->ctx, "%s/paddock-warden", top != NULL ? top : ".");
    const char *level = getenv("RIG_LOG");
    pid_t parent = getpid();
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        if (r->uid != geteuid() &&
            (setgroups(0, NULL) < 0 || setgid(r->uid) < 0 || setuid(r->uid) < 0))
            _exit(1);
        deny_calls(r);
        execl(exe, "paddock-warden", "-policy", r->policy_path, "-log-level",
              level != NULL ? level : "error", (char *)NULL);
        perror(exe);
        _exit(127);
    }
    r->warden = pid;
}

void
rig_kill(struct rig *r, int sig)
{
    int status;
    kill(r->warden, sig);
    ck_assert_int_eq(waitpid(r->warden, &status, 0), r->warden);
    if (getenv("RIG_LOG") != NULL)
        fprintf(stderr, "warden status %x\n", (unsigned)status);
    r->warden = 0;
}

/* Returns how long to wait: as long as check gives a test more time: an emulated machine is some 25
 * times slower. */
static int
patience_ms(void)
{
    const char *times = getenv("CK_TIMEOUT_MULTIPLIER");
    uint64_t n = 1;
    if (times != NULL && num_parse_u64(times, &n) < 0)
        n = 1;
    return 10000 * (int)(n < 100 ? n : 100);
}

/* A child that a killed warden had just forked has its listening socket for a moment longer, and
 * who connects to that one is thrown out again. */
static bool
connected(struct rig *r, struct err *e)
{
    struct ucred peer = {0};
    socklen_t n = sizeof(peer);
    if (warden_client_connect(r->client, e) < 0)
        return false;
    if (getsockopt(warden_client_fd(r->client), SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
        peer.pid == r->warden)
        return true;
    warden_client_free(r->client);
    r->client = warden_client_new(r->ctx, r->socket);
    err_set(e, -ERR_CLOSED, "only one that was killed");
    return false;
}

void
rig_connect(struct rig *r)
{
    struct err e = ERR_INIT;
    int64_t end = clock_mono_ns() + patience_ms() * NS_PER_MS;
    while (!connected(r, &e)) {
        ck_assert_msg(clock_mono_ns() < end, "no warden: %s", e.text);
        ck_assert_msg(waitpid(r->warden, NULL, WNOHANG) == 0, "the warden ended");
        err_clear(&e);
        rig_pause(5);
    }
}

void
rig_change_policy(struct rig *r)
{
    struct err e = ERR_INIT;
    rig_kill(r, SIGUSR1);
    ck_assert_msg(policy_compile(&r->policy, r->policy_path, &e) == 0, "%s", e.text);
    rig_spawn(r);
    warden_client_free(r->client);
    r->client = warden_client_new(r->ctx, r->socket);
    rig_connect(r);
}

void
rig_start(struct rig *r, uid_t uid)
{
    static const char *drivers[] = {"raw_exec", "exec"};
    static const char *denied[] = {"root"};
    struct err e = ERR_INIT;
    memset(r, 0, sizeof(*r));
    r->ctx = mem_ctx("rig");
    r->uid = uid;
    snprintf(r->dir, sizeof(r->dir), "/tmp/rig-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(r->dir));
    ck_assert_int_eq(chmod(r->dir, 0755), 0);
    snprintf(r->policy_path, sizeof(r->policy_path), "%s/run/policy", r->dir);
    snprintf(r->socket, sizeof(r->socket), "%s/run/warden.sock", r->dir);
    r->policy = (struct policy){
        .drivers = {drivers, 2},
        .denied_users = {denied, 1},
        .data_dir = mem_printf(r->ctx, "%s/data", r->dir),
        .alloc_dir = mem_printf(r->ctx, "%s/data/alloc", r->dir),
        .run_dir = mem_printf(r->ctx, "%s/run", r->dir),
        .agent_user = "nobody",
        .agent_uid = geteuid(),
        .agent_gid = getegid(),
        .raw_exec = true,
        .seccomp = true,
    };
    ck_assert_int_eq(mkdir(r->policy.data_dir, 0755), 0);
    ck_assert_int_eq(mkdir(r->policy.run_dir, 0755), 0);
    struct cgroup_info info;
    if (uid == 0 && cgroup_find(r->ctx, &info, NULL) == 0)
        r->policy.cgroup_root = /* not of a pid: one that a killed test left may be in it */
            mem_printf(r->ctx, "%s/paddock-%s", info.mount, r->dir + strlen("/tmp/"));
    ck_assert_msg(policy_compile(&r->policy, r->policy_path, &e) == 0, "%s", e.text);
    if (uid != 0) {
        ck_assert_int_eq(chown(r->policy.data_dir, uid, uid), 0);
        ck_assert_int_eq(chown(r->policy.run_dir, uid, uid), 0);
        ck_assert_int_eq(chmod(r->policy_path, 0644), 0);
    }
    rig_spawn(r);
    r->client = warden_client_new(r->ctx, r->socket);
    rig_connect(r);
}

void
rig_stop(struct rig *r)
{
    if (r->warden != 0)
        rig_kill(r, SIGUSR1);
    warden_client_free(r->client);
    if (r->policy.cgroup_root != NULL)
        ck_assert_msg(access(r->policy.cgroup_root, F_OK) != 0, "%s is left",
                      r->policy.cgroup_root);
    ck_assert_int_eq(dir_remove(AT_FDCWD, r->dir, NULL), 0);
    talloc_free(r->ctx);
}

void
rig_got(void *arg, const struct err *e, struct warden_reply *r)
{
    struct got *g = arg;
    ck_assert(!g->done);
    g->done = true;
    g->ctx = mem_ctx("got");
    if (e != NULL) {
        g->err = *e;
        return;
    }
    g->ended = TAKE_FD(r->ended);
    g->cgroup = TAKE_FD(r->cgroup);
    g->record = TAKE_FD(r->record);
    g->file = TAKE_FD(r->file);
    g->counters = TAKE_FD(r->counters);
    g->runs = TAKE_FD(r->runs);
    g->blocks = TAKE_FD(r->blocks);
    g->exit = TAKE_FD(r->exit);
    g->helper = TAKE_FD(r->helper);
    for (int i = 0; i < 3; i++)
        g->exec[i] = TAKE_FD(r->exec[i]);
    for (size_t i = 0; i < ARRAY_LEN(r->keep); i++)
        g->keep[i] = TAKE_FD(r->keep[i]);
    g->keep[WARDEN_KEEP - 1] = TAKE_FD(r->keep_block);
    struct warden_response *m = codec_clone(g->ctx, &type_warden_response, r->msg);
    g->n_records = m->records.n;
    g->rec = m->records.n > 0 ? m->records.v[0] : NULL;
    g->last = m->records.n > 0 ? m->records.v[m->records.n - 1] : NULL;
    g->info = m->info;
    g->files = m->files;
    g->next = m->next;
    g->network = m->network;
}

void
rig_wait(struct rig *r, struct got *g)
{
    ck_assert_int_eq(warden_client_drain(r->client, 15000), 0);
    ck_assert(g->done);
}

int
got_expect(struct got *g, const char *why)
{
    int code = g->err.code;
    ck_assert_msg(why == NULL ? code == 0 : code != 0 && strstr(g->err.text, why) != NULL, "%s",
                  g->err.text);
    got_free(g);
    return code;
}

void
rig_volume(struct rig *r, bool make, const struct warden_volume *v, struct got *g)
{
    if (make)
        warden_volume_make(r->client, v, rig_got, g);
    else
        warden_volume_remove(r->client, v, rig_got, g);
    rig_wait(r, g);
}

void
got_free(struct got *g)
{
    if (g->err.code == 0) {
        fd_close(&g->ended);
        fd_close(&g->cgroup);
        fd_close(&g->record);
        fd_close(&g->file);
        fd_close(&g->counters);
        fd_close(&g->runs);
        fd_close(&g->blocks);
        fd_close(&g->exit);
        fd_close(&g->helper);
        for (int i = 0; i < 3; i++)
            fd_close(&g->exec[i]);
        for (int i = 0; i < WARDEN_KEEP; i++)
            fd_close(&g->keep[i]);
    }
    talloc_free(g->ctx);
}

void
rig_alloc(struct rig *r, const char *id, const char *task, const char *driver)
{
    rig_alloc_as(r, id, task, driver, NULL);
}

void
rig_alloc_as(struct rig *r, const char *id, const char *task, const char *driver, const char *user)
{
    struct warden_task t = {.name = task, .driver = driver, .user = user};
    const struct warden_task *v[] = {&t};
    struct got g = {0};
    warden_alloc_make(r->client, &(struct warden_alloc){.id = id, .tasks = v, .n = 1}, rig_got, &g);
    rig_wait(r, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    got_free(&g);
}

struct launch_spec *
rig_spec(struct rig *r, const char *id, const char *task, bool isolated, const char *script)
{
    struct launch_spec *s = type_new(r->ctx, &type_launch_spec);
    s->alloc_id = mem_strdup(s, id);
    s->task_name = mem_strdup(s, task);
    s->driver = isolated ? "exec" : "raw_exec";
    s->isolated = isolated;
    s->isolation = type_new(s, &type_task_isolation);
    s->share_net = true;
    s->command = "/bin/sh";
    list_add(s, s->args, "-c");
    list_add(s, s->args, mem_strdup(s, script));
    list_add(s, s->env, "PATH=/usr/bin:/bin");
    return s;
}

void
rig_launch(struct rig *r, const struct launch_spec *s, struct got *g)
{
    memset(g, 0, sizeof(*g));
    warden_launch(r->client, s, rig_got, g);
    rig_wait(r, g);
}

struct task_record *
rig_end(struct rig *r, struct got *g)
{
    ck_assert_msg(g->err.code == 0, "%s", g->err.text);
    struct pollfd p = {.fd = g->ended, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, patience_ms()), 1);
    struct task_record *t = NULL;
    ck_assert_int_eq(record_read(r->ctx, g->record, &t), 0);
    return t;
}

char *
rig_file(struct rig *r, const char *id, const char *path)
{
    char *text = NULL;
    char *full = mem_printf(r->ctx, "%s/%s/%s", r->policy.alloc_dir, id, path);
    int rc = file_read(r->ctx, AT_FDCWD, full, 16 << 20, &text, NULL);
    ck_assert_msg(rc == 0, "%s: %s", full, err_name(rc));
    return text;
}

const char *
rig_fact(struct rig *r, const char *name)
{
    struct got g = {0};
    warden_info(r->client, rig_got, &g);
    rig_wait(r, &g);
    const char *v = mem_strdup(r->ctx, str_or(str_map_get(&g.info->facts, name), ""));
    got_free(&g);
    return v;
}

bool
rig_has(struct rig *r, const char *name)
{
    const char *v = rig_fact(r, name);
    if (str_eq(v, "true"))
        return true;
    printf("# SKIP %s: %s\n", name, v);
    return false;
}

struct launch_spec *
rig_python(struct rig *r, const char *task, bool isolated, const char *text)
{
    struct launch_spec *s = rig_spec(r, rig_id, task, isolated, "exec python3 -c \"$CODE\"");
    list_add(s, s->env, mem_printf(s, "CODE=%s", text));
    return s;
}

void
rig_await(struct rig *r, const char *task, const char *text)
{
    int64_t end = clock_mono_ns() + 30 * NS_PER_S;
    const char *path =
        mem_printf(r->ctx, "%s/%s/alloc/logs/%s.stdout.0", r->policy.alloc_dir, rig_id, task);
    for (;;) {
        char *t = NULL;
        if (file_read(r->ctx, AT_FDCWD, path, 65536, &t, NULL) == 0 && strstr(t, text) != NULL)
            return;
        ck_assert_msg(clock_mono_ns() < end, "the task does not say \"%s\"", text);
        rig_pause(10);
    }
}

uint64_t
rig_leaf(struct got *g)
{
    struct record rec;
    ck_assert_int_eq(record_read_raw(g->record, &rec), 0);
    return rec.cgroup_id;
}

void
rig_near(uint64_t got, uint64_t want, const char *what)
{
    double off = want > 0 ? ((double)got - (double)want) / (double)want : 1;
    ck_assert_msg(off < 0.01 && off > -0.01, "%s: counted %llu, not %llu", what,
                  (unsigned long long)got, (unsigned long long)want);
}

void
rig_plant(const struct rig *r, const char *program, const char *name, mode_t mode)
{
    const char *build = getenv("top_builddir");
    char *text;
    size_t n;
    const char *from = mem_printf(r->ctx, "%s/tests/attempts/%s", build ? build : ".", program);
    const char *to = mem_printf(r->ctx, "%s/%s/web/local/%s", r->policy.alloc_dir, rig_id, name);
    ck_assert_int_eq(file_read(r->ctx, AT_FDCWD, from, 16 << 20, &text, &n), 0);
    auto_fd int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fd_write_full(fd, text, n), 0);
    ck_assert_int_eq(fchmod(fd, mode), 0);
}
