/* SPDX-License-Identifier: Apache-2.0
 *
 * isolate run: one launch spec through a warden and shim of its own, without any server; root.
 *
 * In this order: waiting for answers of the warden on a loop; the spec, from a file or from
 * options; a warden of our own, with a policy made for this run and a directory that goes at the
 * end, whatever happens between; and the task, from its launch to its exit code, with its logs
 * copied to ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/drivers.h"
#include "api/isolation.h"
#include "cli/command.h"
#include "codec/codec.h"
#include "common/fd.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/launch/client.h"
#include "isolation/launch/policy.h"
#include "isolation/launch/record.h"
#include "isolation/proc.h"
#include "isolation/supervisor.h"

#define RUN_ALLOC "00000000-0000-0000-0000-000000000000"
#define RUN_TASK "task"
enum {
    SPEC_BYTES_MAX = 1 << 20,
    SPEC_BUDGET = 8 << 20,
    CONNECT_MS = 10000,
    REMOVE_MS = 5000,
    TICK_MS = 50,
    WARDEN_END = SIGUSR1 /* it ends what is left of the task, then itself */
};

struct run {
    struct cmd *c;
    const char *network; /* mode */
    char dir[64];
    struct policy policy;
    struct launch_spec *spec;
    struct warden_client *client;
    pid_t warden;
    struct err err; /* of the last request */
    int ended;
    int record;
    struct {
        int fd;
        unsigned index;
    } logs[2];
};

static volatile sig_atomic_t run_interrupted;

static void
on_signal(int sig)
{
    run_interrupted = sig;
}

static void
isolate_answered(void *arg, const struct err *e, struct warden_reply *r)
{
    struct run *x = arg;
    x->err = e ? *e : (struct err)ERR_INIT;
    if (r && r->ended >= 0)
        x->ended = TAKE_FD(r->ended);
    if (r && r->record >= 0)
        x->record = TAKE_FD(r->record);
}

/* 0, or the code in x->err. */
static int
isolate_await(struct run *x)
{
    int r = warden_client_drain(x->client, CONNECT_MS);
    return r < 0 ? err_set(&x->err, r, "the warden does not answer") : x->err.code;
}

/* --- the spec --- */

static int
read_spec(struct cmd *c, const char *path, struct launch_spec **ret, struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    void *s = NULL;
    int r = file_read(c, AT_FDCWD, path, SPEC_BYTES_MAX, &text, &n);
    if (r < 0)
        return err_errno(e, -r, "read \"%s\"", path);
    r = json_decode_strict(c, &type_launch_spec, SLICE(text, n), BUDGET(SPEC_BUDGET), &s, e);
    if (r < 0) {
        err_prefix(e, "\"%s\"", path);
        return r;
    }
    *ret = s;
    return 0;
}

static int
make_spec(struct cmd *c, bool command, struct launch_spec **ret, struct err *e)
{
    struct launch_spec *s = NULL;
    if (command) {
        s = type_new(c, &type_launch_spec);
        s->command = c->args[0];
        for (size_t i = 1; i < c->n_args; i++)
            list_add(c, s->args, c->args[i]);
        list_add(c, s->env, "PATH=/usr/local/bin:/usr/bin:/bin");
    } else {
        int r = read_spec(c, c->args[0], &s, e);
        if (r < 0)
            return r;
    }
    s->alloc_id = RUN_ALLOC;
    s->task_name = RUN_TASK;
    if (str_empty(s->driver))
        s->driver = drivers_can[DRIVER_exec].name;
    s->isolated = !driver_unboxed(s->driver);
    *ret = s;
    return 0;
}

/* --- a warden of our own --- */

static int
make_policy(struct run *x, char **ret_path, struct err *e)
{
    struct cmd *c = x->c;
    struct cgroup_info info = {0};
    int r = cgroup_find(c, &info, e);
    if (r < 0)
        return r;
    x->policy = (struct policy){
        .data_dir = mem_printf(c, "%s/data", x->dir),
        .alloc_dir = mem_printf(c, "%s/data/alloc", x->dir),
        .run_dir = mem_printf(c, "%s/run", x->dir),
        .agent_user = "root",
        .cgroup_root = mem_printf(c, "%s/paddock-isolate-%d", info.mount, (int)getpid()),
        .raw_exec = true,
        .seccomp = true,
        .userns_host = true,
    };
    for (size_t i = 0; i < DRIVERS_N; i++)
        list_add(c, x->policy.drivers, drivers_can[i].name);
    /* the caller is root: the operator allows what the spec asks for */
    list_add(c, x->policy.allowed_caps, "all");
    for (size_t i = 0; i < x->spec->devices.n; i++)
        list_add(c, x->policy.allowed_devices, x->spec->devices.v[i]);
    const char *apparmor = isolation_of(x->spec->isolation)->apparmor;
    if (!str_empty(apparmor))
        list_add(c, x->policy.apparmor_allowed, apparmor);
    for (size_t i = 0; i < x->spec->mounts.n; i++)
        list_add(c, x->policy.bind_allowed, x->spec->mounts.v[i]->source);
    if (dir_make(AT_FDCWD, x->policy.data_dir, 0755) < 0 ||
        dir_make(AT_FDCWD, x->policy.run_dir, 0755) < 0)
        return err_errno(e, errno, "make directories in \"%s\"", x->dir);
    *ret_path = mem_printf(c, "%s/policy", x->policy.run_dir);
    return policy_compile(&x->policy, *ret_path, e);
}

static int
start_warden(struct run *x, struct err *e)
{
    char helpers[4096], *policy = NULL;
    int r = make_policy(x, &policy, e);
    if (r == 0)
        r = supervisor_helpers(helpers, sizeof(helpers), e);
    if (r < 0)
        return r;
    const char *exe = mem_printf(x->c, "%s/paddock-warden", helpers);
    pid_t self = getpid();
    x->warden = proc_fork(NULL);
    if (x->warden == 0) {
        (void)setpgid(0, 0); /* what a terminal interrupts is the task, by us */
        (void)prctl(PR_SET_PDEATHSIG, WARDEN_END);
        if (getppid() != self)
            _exit(127);
        execl(exe, "paddock-warden", "-policy", policy, "-log-level", "error", (char *)NULL);
        _exit(127);
    }
    if (x->warden < 0)
        return err_errno(e, -x->warden, "start \"%s\"", exe);
    x->client = warden_client_new(x->c, mem_printf(x->c, "%s/warden.sock", x->policy.run_dir));
    struct err why = ERR_INIT;
    for (int i = 0; warden_client_connect(x->client, &why) < 0; i++) {
        int status;
        if (i > CONNECT_MS || waitpid(x->warden, &status, WNOHANG) == x->warden) {
            x->warden = i > CONNECT_MS ? x->warden : 0;
            return err_set(e, -ERR_UNAVAILABLE, "the warden does not start: %s", why.text);
        }
        err_clear(&why);
        (void)poll(NULL, 0, 1);
    }
    return 0;
}

/* False: it had died before. */
static bool
end_warden(struct run *x)
{
    int status = 0;
    (void)kill(x->warden, WARDEN_END);
    while (waitpid(x->warden, &status, 0) < 0 && errno == EINTR)
        ;
    warden_client_free(x->client);
    x->client = NULL;
    return status == 0;
}

/* There still when the warden did not come up, or when the second one died of the same as the
 * first. */
static void
remove_cgroup(const struct run *x)
{
    struct cgroup_root r = {.fd = -1, .lock = -1};
    struct err e = ERR_INIT;
    if (cgroup_root_open(&r, x->policy.cgroup_root, false, &e) == 0) {
        (void)cgroup_kill(r.fd);
        (void)cgroup_wait_empty(r.fd, REMOVE_MS);
        (void)cgroup_task_remove(&r, RUN_ALLOC, RUN_TASK, &e);
        cgroup_root_close(&r);
    }
    (void)rmdir(x->policy.cgroup_root);
}

static void
stop_warden(struct run *x)
{
    struct err e = ERR_INIT;
    bool died = x->warden > 0 && !end_warden(x);
    if (died && start_warden(x, &e) < 0) /* another removes what the first one made */
        cmd_warn(x->c, "what the task left is not removed: %s", e.text);
    if (died && x->warden > 0)
        (void)end_warden(x);
    warden_client_free(x->client);
    if (!str_empty(x->policy.cgroup_root))
        remove_cgroup(x);
    (void)dir_remove(AT_FDCWD, x->dir, NULL);
}

/* --- the task --- */

static void
copy_logs(struct run *x)
{
    static const char *const names[2] = {"stdout", "stderr"};
    for (int i = 0; i < 2; i++) {
        char buf[65536];
        for (;;) {
            if (x->logs[i].fd < 0) {
                const char *path =
                    mem_printf(x->c, "%s/" RUN_ALLOC "/alloc/logs/" RUN_TASK ".%s.%u",
                               x->policy.alloc_dir, names[i], x->logs[i].index);
                x->logs[i].fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
            }
            ssize_t n = x->logs[i].fd < 0 ? 0 : read(x->logs[i].fd, buf, sizeof(buf));
            if (n > 0) {
                (void)fd_write_full(i + 1, buf, (size_t)n);
                continue;
            }
            const char *next = mem_printf(x->c, "%s/" RUN_ALLOC "/alloc/logs/" RUN_TASK ".%s.%u",
                                          x->policy.alloc_dir, names[i], x->logs[i].index + 1);
            if (x->logs[i].fd < 0 || access(next, F_OK) < 0)
                break;
            fd_close(&x->logs[i].fd);
            x->logs[i].index++;
        }
    }
}

/* The exit code of the task, as a shell has it. */
static int
isolate_watch(struct run *x)
{
    bool killed = false;
    struct pollfd p = {.fd = x->ended, .events = POLLIN};
    while (poll(&p, 1, TICK_MS) != 1) {
        copy_logs(x);
        if (run_interrupted != 0 && !killed) {
            killed = true;
            warden_kill(x->client, RUN_ALLOC, RUN_TASK, isolate_answered, x);
            (void)isolate_await(x);
        }
    }
    copy_logs(x);
    struct task_record *t = NULL;
    if (record_read(x->c, x->record, &t) < 0)
        return cmd_fail(x->c, "Error: the task's record cannot be read");
    if (t->finished_at == 0)
        return cmd_fail(x->c, "Error: the task's shim was killed, and the task with it");
    if (t->oom_killed)
        cmd_warn(x->c, "out of memory");
    if (t->denied.n > 0)
        cmd_warn(x->c, "denied system calls: %s", record_denied(x->c, t));
    return t->signal > 0 ? 128 + (int)t->signal : (int)t->exit_code;
}

static int
run_task(struct run *x)
{
    struct err e = ERR_INIT;
    int r = start_warden(x, &e);
    if (r < 0)
        return cmd_fail(x->c, "Error: %s", e.text);
    const struct warden_task t = {
        .name = RUN_TASK, .user = x->spec->user, .driver = x->spec->driver};
    const struct warden_task *v[] = {&t};
    warden_alloc_make(x->client, &(struct warden_alloc){.id = RUN_ALLOC, .tasks = v, .n = 1},
                      isolate_answered, x);
    r = isolate_await(x);
    x->spec->share_net = str_eq(x->network, "host");
    if (r == 0 && !x->spec->share_net) {
        warden_net_make(x->client, RUN_ALLOC, &(struct net_request){.mode = x->network},
                        isolate_answered, x);
        r = isolate_await(x);
    }
    if (r == 0) {
        warden_launch(x->client, x->spec, isolate_answered, x);
        (void)isolate_await(x);
    }
    return x->err.code != 0 ? cmd_fail(x->c, "Error: %s", x->err.text) : isolate_watch(x);
}

int
cmd_isolate_run(struct cmd *c)
{
    bool command = false;
    for (int i = 1; i < c->argc; i++)
        command = command || str_eq(c->argv[i], "--");
    const char *network = "host";
    const struct opt opts[] = {
        {"network", OPT_STRING, &network, "<mode>",
         "\"host\", the default, or \"none\": a loopback of its own and nothing else."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.min = 1, .max = command ? 4096 : 1}, &rc))
        return rc;
    if (!str_eq(network, "host") && !str_eq(network, "none"))
        return cmd_fail(c, "Error: -network=\"%s\": it is host or none", network);
    if (geteuid() != 0)
        return cmd_fail(c, "Error: isolate run needs root: it starts a warden of its own");
    struct run x = {
        .c = c, .network = network, .ended = -1, .record = -1, .logs = {{.fd = -1}, {.fd = -1}}};
    struct err e = ERR_INIT;
    if (make_spec(c, command, &x.spec, &e) < 0)
        return cmd_fail(c, "Error: %s", e.text);
    str_copy(x.dir, sizeof(x.dir), "/tmp/paddock-isolate-XXXXXX");
    if (mkdtemp(x.dir) == NULL || chmod(x.dir, 0711) < 0)
        return cmd_fail(c, "Error: make a directory in /tmp: %s", strerror(errno));
    static const int ends[] = {SIGHUP, SIGINT, SIGTERM};
    const struct sigaction act = {.sa_handler = on_signal};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        (void)sigaction(ends[i], &act, NULL);
    rc = run_task(&x);
    stop_warden(&x);
    for (int i = 0; i < 2; i++)
        fd_close(&x.logs[i].fd);
    fd_close(&x.ended);
    fd_close(&x.record);
    return rc;
}
