/* SPDX-License-Identifier: Apache-2.0
 *
 * var lock: runs a command while it holds the lock of a variable. Who cannot have the lock waits
 * for it; who loses it ends the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/vars/vars.h"
#include "cli/format.h"
#include "cli/var/var.h"
#include "common/duration.h"
#include "common/fd.h"

extern char **environ;

enum { RETRY_MS = 1000, END_MS = 5000 /* of a command that lost its lock */ };

struct locker {
    struct cmd *c;
    struct variable_spec *spec;
    struct variable_lock lock;
    const char *ttl, *delay, *backoff;
    bool verbose, early, shell;
    int64_t retries, ttl_ms, backoff_ms;
};

static int
lock_send(const struct locker *l, const char *param, const struct variable *v, void **ret,
          struct err *e)
{
    const struct change ch = {.target = var_target(l->c, l->spec, param, "true"),
                              .body_type = &type_variable,
                              .body = v,
                              .answer = &type_variable};

    return api_send(l->c, &ch, ret, e);
}

static void
lock_tell(const struct locker *l, const char *text)
{
    if (l->verbose)
        cmd_warn(l->c, "%s", text);
}

/* Waits until the variable changes, or the back-off is over. */
static void
lock_wait(const struct locker *l)
{
    const char *wait = mem_printf(l->c, "%lldms", (long long)l->backoff_ms);
    struct api_meta meta = {0};
    struct err e = ERR_INIT;
    void *got;

    lock_tell(l, "The lock is held by another: waiting");
    if (api_get(l->c, var_target(l->c, l->spec, NULL, NULL), &type_variable, &got, &meta, &e) == 0)
        (void)api_get(l->c,
                      api_raw_target(l->c,
                                     mem_printf(l->c, "/v1/var/%s?wait=%s&index=%llu",
                                                l->spec->path, wait,
                                                (unsigned long long)meta.index),
                                     NULL),
                      &type_variable, &got, NULL, &e);
    else
        (void)poll(NULL, 0, (int)l->backoff_ms); /* it may not be read */
}

/* Keeps the items of the variable, unless the specification has some. */
static void
keep_items(const struct locker *l)
{
    struct err e = ERR_INIT;
    void *got = NULL;

    if (l->spec->items.n == 0 && api_get(l->c, var_target(l->c, l->spec, NULL, NULL),
                                         &type_variable, &got, NULL, &e) == 0)
        l->spec->items = ((const struct variable *)got)->items;
}

static int
lock_acquire(struct locker *l)
{
    lock_tell(l, "Attempting to acquire lock");
    for (;;) {
        struct variable_lock want = {.ttl = l->ttl, .lock_delay = l->delay};
        struct err e = ERR_INIT;
        void *got = NULL;
        keep_items(l);
        const struct variable v = {.path = l->spec->path, .items = l->spec->items, .lock = &want};
        int rc = lock_send(l, VAR_LOCK_ACQUIRE, &v, &got, &e);
        const struct variable *now = got;
        if (rc == 0 && now && now->lock) {
            l->lock = *now->lock;
            return 0;
        }
        if (rc != -ERR_CONFLICT)
            return cmd_fail(l->c, "Lock error: %s", rc < 0 ? e.text : "the agent answered no lock");
        if (l->early)
            return cmd_fail(l->c, "Lock error: the lock is held by another");
        lock_wait(l);
    }
}

/* 0, or what has become of the lock: -ERR_CONFLICT, when it is lost. */
static int
lock_renew(struct locker *l, struct err *e)
{
    const struct variable v = {.path = l->spec->path, .lock = &l->lock};
    void *got = NULL;
    int rc = -ERR_INVALID;

    for (int64_t i = 0; i <= l->retries && rc < 0 && rc != -ERR_CONFLICT; i++) {
        if (i > 0)
            (void)poll(NULL, 0, RETRY_MS);
        *e = (struct err)ERR_INIT;
        rc = lock_send(l, "lock-renew", &v, &got, e);
        if (rc == -ERR_NOT_FOUND)
            rc = -ERR_CONFLICT;
    }
    return rc;
}

/* --- the command --- */

static int
child_start(struct locker *l, pid_t *ret)
{
    struct cmd *c = l->c;
    const char *shell = str_or(getenv("SHELL"), "/bin/sh");
    struct str_list argv = {NULL, 0}, words = {(const char **)c->args + 1, c->n_args - 1};
    posix_spawnattr_t attr;
    sigset_t none;

    if (l->shell) {
        list_add(c, argv, shell);
        list_add(c, argv, "-c");
        list_add(c, argv, fmt_join(c, &words, " "));
    } else {
        for (size_t i = 0; i < words.n; i++)
            list_add(c, argv, words.v[i]);
    }
    const char *name = argv.v[0];
    list_add(c, argv, NULL);
    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    int rc = posix_spawnp(ret, name, NULL, &attr, (char *const *)(uintptr_t)argv.v, environ);
    posix_spawnattr_destroy(&attr);
    return rc == 0 ? 0 : cmd_fail(c, "Lock error: run \"%s\": %s", name, err_name(-rc));
}

/* Renews while the command runs, and hands signals on to it. 0: it ended by itself. */
static int
child_watch(struct locker *l, pid_t pid, int signals)
{
    auto_fd int end = pidfd_open_pid(pid);
    struct pollfd fds[] = {{end, POLLIN, 0}, {signals, POLLIN, 0}};
    struct err e = ERR_INIT;
    struct signalfd_siginfo si;

    for (;;) {
        int n = poll(fds, 2, (int)(l->ttl_ms / 2));
        if (n > 0 && (fds[0].revents & POLLIN))
            return 0;
        if (n > 0 && read(signals, &si, sizeof(si)) == (ssize_t)sizeof(si))
            (void)pidfd_signal(end, (int)si.ssi_signo);
        if (n != 0)
            continue;
        if (lock_renew(l, &e) < 0)
            break;
    }
    cmd_warn(l->c, "Lock error: the lock is lost, ending the command: %s", e.text);
    (void)pidfd_signal(end, SIGTERM);
    if (poll(fds, 1, END_MS) <= 0)
        (void)pidfd_signal(end, SIGKILL);
    return -1;
}

static int
lock_run(struct locker *l)
{
    sigset_t ours;
    int status = 0;
    pid_t pid;

    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &ours, NULL);
    auto_fd int signals = signalfd(-1, &ours, SFD_CLOEXEC);
    if (child_start(l, &pid) != 0)
        return 1;
    int rc = child_watch(l, pid, signals);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (rc < 0)
        return 1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return WIFEXITED(status)
               ? cmd_fail(l->c, "Lock error: the command ended with exit status %d",
                          WEXITSTATUS(status))
               : cmd_fail(l->c, "Lock error: the command was ended by signal %d", WTERMSIG(status));
}

static int
lock_release(const struct locker *l)
{
    struct variable_lock lock = {.id = l->lock.id};
    const struct variable v = {.path = l->spec->path, .lock = &lock};
    struct err e = ERR_INIT;
    void *got = NULL;

    return lock_send(l, VAR_LOCK_RELEASE, &v, &got, &e) < 0
               ? cmd_fail(l->c, "Lock error: the lock is not released: %s", e.text)
               : 0;
}

static bool
lock_times(struct locker *l)
{
    int64_t ttl = VAR_LOCK_DEFAULT * NS_PER_S, backoff = 0;

    if (l->ttl && duration_parse(l->ttl, &ttl) < 0)
        cmd_fail(l->c, "Invalid TTL: \"%s\"", l->ttl);
    else if (l->backoff && duration_parse(l->backoff, &backoff) < 0)
        cmd_fail(l->c, "Invalid -backoff: \"%s\"", l->backoff);
    else if (ttl < VAR_LOCK_TTL_MIN * NS_PER_S || ttl > VAR_LOCK_TTL_MAX * NS_PER_S)
        cmd_fail(l->c, "Invalid TTL: from %ds to %dh", VAR_LOCK_TTL_MIN, VAR_LOCK_TTL_MAX / 3600);
    else {
        l->ttl_ms = ttl / NS_PER_MS;
        l->backoff_ms = backoff > 0 ? backoff / NS_PER_MS : l->ttl_ms * 11 / 10;
        return true;
    }
    return false;
}

int
cmd_var_lock(struct cmd *c)
{
    struct locker l = {.c = c, .shell = true, .retries = 5};
    const struct opt opts[] = {
        {"backoff", OPT_STRING, &l.backoff, "<duration>",
         "The time between two attempts to get the lock (default: 1.1 times its TTL)."},
        {"delay", OPT_STRING, &l.delay, "<duration>",
         "The time for which nobody gets a lock that was not renewed (default 15s)."},
        {"early-return", OPT_BOOL, &l.early, NULL, "End when the lock is held by another."},
        {"max-retry", OPT_INT, &l.retries, "<n>",
         "Try so often to renew the lock when no server answers (default 5)."},
        {"shell", OPT_BOOL, &l.shell, NULL, "Run the command by $SHELL (default true)."},
        {"ttl", OPT_STRING, &l.ttl, "<duration>",
         "The lock is renewed twice in that time, and dead after twice that time (default 15s)."},
        {"verbose", OPT_BOOL, &l.verbose, NULL, "Say on standard error what is done."},
        {0}};
    int rc;

    if (!cmd_parse(c, opts,
                   &(struct cmd_args){.client = true, .min = 2, .max = SIZE_MAX, .verbatim = true},
                   &rc))
        return rc;
    if (!lock_times(&l) || !(l.spec = var_spec_read(c, NULL, 1)))
        return 1;
    if (lock_acquire(&l) != 0)
        return 1;
    lock_tell(&l, "Variable locked, running the command");
    rc = lock_run(&l);
    int released = lock_release(&l);
    return rc != 0 ? rc : released;
}
