/* SPDX-License-Identifier: Apache-2.0
 *
 * `paddock agent`: flags, configuration, supervisor, banner, signals, the end. What the roles
 * consist of is in roles.c.
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config/config.h"
#include "agent/logfile.h"
#include "agent/logind.h"
#include "agent/pause.h"
#include "agent/policy.h"
#include "agent/reload.h"
#include "agent/roles.h"
#include "agent/selfbox.h"
#include "agent/syslog.h"
#include "agent/tls.h"
#include "api/terms.h"
#include "client/client.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/host/notify.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/slice.h"
#include "isolation/launch/policy.h"
#include "isolation/supervisor.h"
#include "net/tls/tls.h"

enum { STOP_MS = 15 * 1000, CGROUP_PATH_MAX = 4096 };

static const char usage[] =
    "Usage: paddock agent [options]\n\n"
    "  Starts the Paddock agent and runs until an interrupt is received. It may be a client\n"
    "  and/or a server; -dev is both, with nothing to configure.\n\nOptions:\n";

/* The part that the command lines of `agent` and `policy` have in common. */
struct command {
    void *ctx;
    struct config_flags flags;
    const char *supervised; /* RUNDIR: started by the supervisor, or by systemd beside a warden */
    const char *out;        /* `policy` only */
    const char *dev_dir;    /* -dev: the data directory, gone at the end */
};

static void
print_options(const struct opt *t)
{
    for (; t->name; t++)
        if (t->help)
            printf("  -%s%s%s\n      %s\n", t->name, t->arg ? "=" : "", t->arg ? t->arg : "",
                   t->help);
}

/* 0: go on; 1: help was printed; < 0: an error was. */
static int
parse_command(struct command *c, int argc, char **argv, const char *text)
{
    const struct opt own[] = {
        {"supervised", OPT_STRING, &c->supervised, "dir", NULL},
        {"out", OPT_STRING, &c->out, "file", NULL},
        {0},
    };
    const struct opt *config = config_options(c->ctx, &c->flags);
    const struct opt *const tables[] = {config, own, NULL};
    struct opt_list args;
    struct err e = ERR_INIT;

    int r = opt_parse(c->ctx, tables, argc, argv, &args, &e);
    if (r == 0 && args.n > 0)
        r = err_set(&e, -ERR_INVALID, "unexpected argument '%s'", args.v[0]);
    if (r < 0)
        fprintf(stderr, "paddock %s: %s\n", argv[0], e.text);
    if (r > 0) {
        fputs(text, stdout);
        print_options(config);
    }
    return r;
}

const struct opt *
agent_options(const void *ctx)
{
    static struct config_flags unused;
    return config_options(ctx, &unused);
}

static int
load_config(struct command *c, struct agent_config **cfg)
{
    struct err e = ERR_INIT;
    struct str_list warnings = {0};
    const char *detail = NULL;

    int r = config_load(c->ctx, &c->flags, cfg, &warnings, &detail, &e);
    if (r < 0) {
        notify_failure(mem_printf(c->ctx, "==> Failed to load the configuration:\n%s",
                                  str_or(detail, e.text)));
        return r;
    }
    for (size_t i = 0; i < warnings.n; i++)
        fprintf(stderr, "==> WARNING: %s\n", warnings.v[i]);
    return 0;
}

/* --- the supervisor's side: everything here runs before any thread --- */

static int
load_policy(void *arg, const void *ctx, struct policy **ret, struct err *e)
{
    struct command *c = arg;
    struct agent_config *cfg;

    int r = load_config(c, &cfg);
    if (r < 0)
        return r; /* what is wrong was told */
    return agent_policy(ctx, cfg, c->dev_dir, ret, e);
}

/* Does what load_policy does, in the supervisor's child; and on a machine with systemd the tasks of
 * a client get a unit of their own, unless the operator says where they are to live. */
static int
load_and_hold(void *arg, const void *ctx, struct policy **ret, struct err *e)
{
    struct command *c = arg;
    struct agent_config *cfg;
    struct err why = ERR_INIT;

    int r = load_config(c, &cfg);
    if (r < 0)
        return r; /* what is wrong was told */
    r = agent_policy(ctx, cfg, c->dev_dir, ret, e);
    if (r < 0 || geteuid() != 0 || access("/run/systemd/system", F_OK) < 0 ||
        !str_empty((*ret)->cgroup_root) || !cfg->client || !cfg->client->enabled)
        return r;
    if (pause_start(*ret, (*ret)->run_dir, &(*ret)->cgroup_root, &why) < 0)
        log_warn("agent",
                 "no unit holds the tasks: they live in a cgroup that systemd does not know",
                 "error", why.text, NULL);
    return 0;
}

static int
install_config(void *arg, const struct policy *p, struct err *e)
{
    struct command *c = arg;
    return config_files_install(&c->flags, p, e);
}

static void
release_pause(void *arg, const struct policy *p)
{
    struct err e = ERR_INIT;
    (void)arg;
    if (strstr(str_or(p->cgroup_root, ""), "/paddock-tasks") && pause_stop(p->run_dir, &e) < 0)
        log_warn("agent", "the unit that held the tasks is left behind", "error", e.text, NULL);
}

/* For -dev, where the configuration names no data_dir. Open to the agent's user, who walks through.
 */
static int
make_dev_dir(struct command *c)
{
    char *dir = mem_strdup(c->ctx, "/tmp/paddock-dev-XXXXXX");

    if (!mkdtemp(dir) || chmod(dir, 0755) < 0) {
        fprintf(stderr, "==> cannot make a directory '%s': %s\n", dir, strerror(errno));
        return -1;
    }
    c->dev_dir = dir;
    return 0;
}

static int
agent_supervise(struct command *c, int argc, char **argv)
{
    /* descriptors of whoever starts it are of no use to us or to tasks */
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    if (c->flags.dev && str_empty(c->flags.data_dir) && make_dev_dir(c) < 0)
        return 1;
    const struct supervisor s = {
        .load = load_and_hold,
        .before_agent = install_config,
        .ended = release_pause,
        .arg = c,
        .argc = argc,
        .argv = argv,
        .stop_tasks = c->flags.dev,
    };
    int r = supervisor_main(&s);
    struct err e = ERR_INIT;
    if (c->dev_dir && dir_remove(AT_FDCWD, c->dev_dir, &e) < 0)
        fprintf(stderr, "==> '%s' is left behind: %s\n", c->dev_dir, e.text);
    return r;
}

/* Under a service manager: its units name the run directory, and paddock-holder left word there of
 * the cgroup that was delegated to it. */
static int
install_policy(const struct command *c, struct policy *p, struct err *e)
{
    char *text;
    size_t n;

    p->run_dir = c->supervised;
    const char *file = mem_printf(c->ctx, "%s/" POLICY_CGROUP, p->run_dir);
    if (str_empty(p->cgroup_root) &&
        file_read(c->ctx, AT_FDCWD, file, CGROUP_PATH_MAX, &text, &n) == 0)
        p->cgroup_root = text;
    int r = policy_install(p, NULL, e);
    return r < 0 ? r : config_files_install(&c->flags, p, e);
}

int
policy_main(int argc, char **argv)
{
    struct command c = {.ctx = mem_ctx("policy")};
    struct policy *p;
    struct err e = ERR_INIT;

    int r = parse_command(&c, argc, argv,
                          "Usage: paddock policy [-config path] [-out file | -supervised dir]\n\n");
    if (r == 0) {
        r = load_policy(&c, c.ctx, &p, &e);
        if (r == 0 && !str_empty(c.supervised))
            r = install_policy(&c, p, &e);
        else if (r == 0)
            r = policy_compile(p, str_or(c.out, mem_printf(c.ctx, "%s/" POLICY_FILE, p->run_dir)),
                               &e);
        if (r < 0)
            notify_failure(mem_printf(c.ctx, "paddock policy: %s",
                                      str_or(e.text, "the configuration is not valid")));
    }
    talloc_free(c.ctx);
    return r < 0 ? 1 : 0;
}

/* --- the agent proper --- */

struct run {
    struct command *cmd;
    struct agent_config *cfg;
    struct loop *loop;
    struct roles *roles;
    struct reload *reload;
    struct tls *tls; /* NULL: all is plain */
    struct tls_watch *tls_watch;
    struct logind *logind; /* where tasks are to be drained before the machine goes down */
    bool stopping, leaves;
    struct timer *deadline; /* of stopping */
    struct timer *watchdog; /* where a service manager wants to hear of us */
    int status;
};

static int
open_log(const struct agent_config *cfg)
{
    enum log_level level = log_level_parse(str_or(cfg->log_level, "INFO"));
    int fd = STDERR_FILENO;

    if (!str_empty(cfg->log_file)) {
        fd = logfile_open(cfg);
        if (fd < 0) {
            fprintf(stderr, "==> cannot open log_file '%s': %s\n", cfg->log_file, strerror(-fd));
            return -1;
        }
    }
    if (level == LOG_LEVEL_INVALID)
        level = LOG_INFO;
    log_setup(level, cfg->log_json, fd);
    struct err e = ERR_INIT;
    if (cfg->enable_syslog && syslog_open(SYSLOG_SOCKET, cfg->syslog_facility, level, &e) < 0) {
        fprintf(stderr, "==> %s\n", e.text);
        return -1;
    }
    return 0;
}

static void
raise_fd_limit(void)
{
    struct rlimit rl;
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
        rl.rlim_cur = rl.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &rl) < 0)
            log_warn("agent", "cannot raise the limit of open files", NULL);
    }
}

static void
on_stopped(void *arg)
{
    struct run *run = arg;
    loop_stop(run->loop);
}

static void
on_stop_deadline(void *arg)
{
    (void)arg;
    log_error("agent", "shutdown takes too long: leaving", NULL);
    _exit(1);
}

static void
agent_stop(struct run *run, int status)
{
    run->stopping = true;
    run->status = status;
    (void)notify_send("STOPPING=1\nSTATUS=Stopping");
    run->deadline = timer_start(run->loop, STOP_MS, on_stop_deadline, NULL);
    reload_stop(run->reload);
    roles_stop(run->roles, on_stopped, run);
}

static void
agent_left(void *arg)
{
    struct run *run = arg;
    agent_stop(run, run->status);
}

static void
agent_drained(void *arg)
{
    struct run *run = arg;
    if (run->leaves)
        roles_leave(run->roles, agent_left, run);
    else
        agent_left(run);
}

/* Goes for long: what runs here moves first, if so configured. */
static void
agent_leave(struct run *run)
{
    int64_t most_ns = roles_drain_ns(run->roles);
    auto_mem void *ctx = mem_ctx("leave");

    run->stopping = true;
    if (most_ns > 0) {
        /* the service manager allows for the stop itself */
        (void)notify_send(mem_printf(ctx,
                                     "STOPPING=1\nSTATUS=Draining\nEXTEND_TIMEOUT_USEC=%" PRId64,
                                     most_ns / NS_PER_US + STOP_MS * 1000));
    }
    roles_drain(run->roles, agent_drained, run);
}

static void
on_term(void *arg, int sig)
{
    struct run *run = arg;
    bool leaves = sig == SIGINT ? run->cfg->leave_on_int : run->cfg->leave_on_term;

    if (run->stopping) {
        log_warn("agent", "second signal: leaving at once", NULL);
        _exit(1);
    }
    printf("==> Caught signal: %s\n", sig == SIGINT ? "interrupt" : "terminated");
    fflush(stdout);
    log_info("agent", "shutting down", "signal", strsignal(sig), NULL);
    run->leaves = leaves;
    /* to systemd an end that it asked for is clean */
    run->status = leaves || notify_active() ? 0 : 1;
    if (leaves || run->roles->draining)
        agent_leave(run);
    else
        agent_stop(run, run->status);
}

static int
agent_load(void *arg, const void *ctx, struct agent_config **ret, struct err *e)
{
    struct run *run = arg;
    struct tls *probe = NULL;

    if (config_load(ctx, &run->cmd->flags, ret, NULL, NULL, e) == 0 &&
        agent_tls_new(*ret, &probe, e) == 0)
        tls_unref(probe);
    return e->code;
}

static void
on_hup(void *arg, int sig)
{
    struct run *run = arg;
    (void)sig;
    printf("==> Caught signal: hangup\n==> Reloading configuration...\n");
    fflush(stdout);
    (void)notify_send("RELOADING=1");
    reload_now(run->reload);
    (void)notify_send("READY=1");
}

/* From the I/O loop: what hangs there is what clients would notice. */
static void
on_watchdog(void *arg)
{
    struct run *run = arg;
    int64_t every_ns = notify_watchdog_ns();

    run->watchdog = NULL;
    if (every_ns == 0)
        return;
    (void)notify_send("WATCHDOG=1");
    run->watchdog = timer_start(run->loop, every_ns / NS_PER_MS / 2, on_watchdog, run);
}

/* --- the machine goes down --- */

static void
on_drained(void *arg)
{
    struct run *run = arg;
    logind_release(run->logind);
}

static void
on_going_down(void *arg)
{
    struct run *run = arg;
    (void)notify_send("STATUS=Draining: the machine goes down");
    roles_drain(run->roles, on_drained, run);
}

static void
watch_shutdown(struct run *run)
{
    int64_t longest = roles_drain_ns(run->roles);
    if (longest > 0)
        run->logind = logind_start(run->cmd->ctx, run->loop, longest, on_going_down, run);
}

static void
agent_row(const char *name, const char *value)
{
    printf("%21s: %s\n", name, value);
}

static void
agent_banner(const struct run *run)
{
    const struct agent_config *c = run->cfg;
    const struct roles *r = run->roles;
    auto_mem void *ctx = mem_ctx("banner");

    if (c->files.n == 0) {
        printf("==> No configuration files loaded\n");
    } else {
        printf("==> Loaded configuration from ");
        for (size_t i = 0; i < c->files.n; i++)
            printf("%s%s", i ? ", " : "", c->files.v[i]);
        printf("\n");
    }
    printf("==> Starting Paddock agent...\n==> Paddock agent configuration:\n\n");
    agent_row("Advertise Addrs",
              mem_printf(ctx, "HTTP: %s%s%s", r->http_advertise, r->server ? "; RPC: " : "",
                         r->server ? r->rpc_advertise : ""));
    agent_row("Bind Addrs", mem_printf(ctx, "HTTP: [%s]%s%s", r->http_bind,
                                       r->server ? "; RPC: " : "", r->server ? r->rpc_bind : ""));
    agent_row("Client", r->client ? "true" : "false");
    agent_row("Log Level", str_or(c->log_level, "INFO"));
    if (r->client)
        agent_row("Node Id", r->node_id);
    agent_row("Region", mem_printf(ctx, "%s (DC: %s)", r->region, r->datacenter));
    agent_row("Server", r->server ? "true" : "false");
    agent_row("Version", PACKAGE_VERSION " (API " NOMAD_VERSION ")");
    printf("\n==> Paddock agent started! Log data will stream in below:\n\n");
    fflush(stdout);
}

/* Eight threads that mostly sleep: an arena for each would keep what its thread took at its
 * busiest. Big blocks go back when they are freed: a threshold that is set does not grow. Answers
 * of lists are smaller: pages that come and go with each cost more than the answer; what a burst
 * leaves goes back when it is over (net/loop_quiet.c). */
static void
tune_allocator(void)
{
    (void)mallopt(M_ARENA_MAX, 2);
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 2 << 20);
}

/* Ours is data_dir; the directories above it are somebody else's. */
static int
check_way(const char *dir, const char *user, struct err *e)
{
    char way[PATH_MAX];
    if (!str_copy(way, sizeof(way), dir))
        return err_set(e, -ERR_LIMIT, "data_dir is too long");
    for (char *p = way; *p != '\0'; p++) {
        char *slash = strchr(p + 1, '/');
        if (slash)
            *slash = '\0';
        if (access(way, X_OK) < 0)
            return err_set(e, -ERR_POLICY,
                           "user \"%s\", as whom the agent runs, cannot enter \"%s\" on the way to "
                           "data_dir \"%s\" (%s): chmod o+x it, or choose another data_dir",
                           user, way, dir, strerror(errno));
        if (!slash)
            break;
        *slash = '/';
        p = slash - 1;
    }
    return 0;
}

static int
run_agent(struct command *c)
{
    struct run run = {.cmd = c};
    struct policy *policy = NULL;
    struct err e = ERR_INIT;

    if (!notify_begin(START_PAUSE_MAX_S))
        return 0;
    c->flags.run_dir = c->supervised;
    if (load_config(c, &run.cfg) < 0 || open_log(run.cfg) < 0)
        return 1;
    const char *path = mem_printf(c->ctx, "%s/" POLICY_FILE, c->supervised);
    if (policy_load(c->ctx, path, &policy, &e) < 0 ||
        check_way(policy->data_dir, str_or(policy->agent_user, "?"), &e) < 0 ||
        agent_tls_new(run.cfg, &run.tls, &e) < 0) {
        notify_failure(mem_printf(c->ctx, "==> %s", e.text));
        return 1;
    }
    raise_fd_limit();
    tune_allocator();
    slice_set(SLICE_SHORT_NS);
    selfbox_files(run.cfg, policy, c->supervised);
    selfbox_rings();
    run.loop = loop_new();
    loop_give_back(run.loop);
    loop_on_signal(run.loop, SIGTERM, on_term, &run);
    loop_on_signal(run.loop, SIGINT, on_term, &run);
    loop_on_signal(run.loop, SIGHUP, on_hup, &run);
    run.reload = reload_new(c->ctx, &(struct reload_host){.loop = run.loop,
                                                          .run_dir = c->supervised,
                                                          .cfg = run.cfg,
                                                          .roles = &run.roles,
                                                          .tls = run.tls,
                                                          .load = agent_load,
                                                          .arg = &run});
    const struct roles_config rc = {
        .loop = run.loop,
        .cfg = run.cfg,
        .policy = policy,
        .reload = reload_ask,
        .reload_forget = reload_forget,
        .reload_arg = run.reload,
        .tls = run.tls,
    };
    run.roles = roles_start(c->ctx, &rc, &e);
    if (run.roles) {
        agent_banner(&run);
        notify_ready("Running");
        on_watchdog(&run);
        watch_shutdown(&run);
        run.tls_watch = tls_watch_start(c->ctx, run.loop, run.cfg);
        selfbox_calls();
        loop_run(run.loop);
        tls_watch_stop(run.tls_watch);
        logind_stop(run.logind);
        timer_stop(run.deadline);
        timer_stop(run.watchdog);
    } else {
        fflush(stdout);
        notify_failure(mem_printf(c->ctx, "==> Error starting agent: %s", e.text));
        if (!str_empty(run.cfg->log_file)) /* else it would be said twice in one place */
            log_error("agent", "cannot start", "error", e.text, NULL);
        run.status = 1;
    }
    loop_free(run.loop);
    tls_unref(run.tls);
    return run.status;
}

int
agent_main(int argc, char **argv)
{
    struct command c = {.ctx = mem_ctx("agent")};

    int r = parse_command(&c, argc, argv, usage);
    if (r > 0)
        r = 0;
    else if (r < 0)
        r = 1;
    else
        r = str_empty(c.supervised) ? agent_supervise(&c, argc, argv) : run_agent(&c);
    talloc_free(c.ctx);
    return r;
}
