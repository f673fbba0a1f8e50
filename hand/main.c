/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock-hand: starts, confines itself, serves the agent. See hand.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/duration.h"
#include "common/fd.h"
#include "common/host/notify.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/opt.h"
#include "common/str.h"
#include "hand/hand.h"
#include "isolation/confine/sandbox.h"
#include "isolation/launch/policy.h"
#include "isolation/proc.h"

#define ROOM "hand"
#define STATE_DIR "hand" /* in the data directory */

/* Root without a capability is the owner of root's files, and no more: what is left of that,
 * Landlock takes. */
static int
give_up_caps(struct err *e)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return err_errno(e, errno, "give up a capability");
    return syscall(SYS_capset, &head, none) < 0 ? err_errno(e, errno, "give up capabilities") : 0;
}

static int
main_confine(const struct hand *h, struct err *e)
{
    auto_mem void *tmp = mem_ctx("confine");
    /* the engine's and our own socket are no matter of Landlock's, which has no rule for connecting
     */
    const struct sandbox_path paths[] = {
        {h->policy->alloc_dir, true},
        {mem_printf(tmp, "%s/" STATE_DIR, h->policy->data_dir), true}};
    struct err lack = ERR_INIT;
    int r = geteuid() == 0 ? give_up_caps(e) : 0;
#ifndef INSTRUMENTED /* the runtime of a sanitizer writes where it likes */
    if (r == 0 && sandbox_files(paths, ARRAY_LEN(paths), &lack) < 0)
        log_warn(ROOM, "goes without a part of its own confinement", "error", lack.text, NULL);
    err_clear(&lack);
    if (r == 0 && sandbox_calls(&lack) < 0)
        log_warn(ROOM, "goes without a part of its own confinement", "error", lack.text, NULL);
#else
    (void)paths;
    (void)lack;
#endif
    return r;
}

/* Opens the place where the hand notes what it has pulled: a directory of its own, in one that is
 * root's. */
static int
open_state(const struct policy *p, struct err *e)
{
    struct stat st;
    auto_mem void *tmp = mem_ctx("state");
    const char *path = mem_printf(tmp, "%s/" STATE_DIR, p->data_dir);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_errno(e, errno, "make \"%s\"", path);
    auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, errno, "open \"%s\"", path);
    if (st.st_uid != geteuid())
        return err_set(e, -ERR_FORBIDDEN, "\"%s\" belongs to somebody else", path);
    return TAKE_FD(fd);
}

/* The socket is the agent's to use, and nobody else's. */
static int
listen_for_agent(struct hands *all, struct err *e)
{
    auto_mem void *tmp = mem_ctx("listen");
    const struct hand *h = &all->v[0];
    const char *path = mem_printf(tmp, "%s/" POLICY_HAND_SOCKET, h->policy->run_dir);
    struct http_server_config cfg = {
        .handler = hand_serve, .arg = all, .conns_max = HAND_CONNS_MAX, .conns_per_peer = SIZE_MAX};
    struct http_server *server = http_server_new(h->loop, &cfg);
    int r = http_server_listen(server, mem_printf(tmp, "unix://%s", path), 0, e);
    if (r == 0 && geteuid() == 0 &&
        chown(path, (uid_t)h->policy->agent_uid, (gid_t)h->policy->agent_gid) < 0)
        r = err_errno(e, errno, "give the agent access to \"%s\"", path);
    return r;
}

/* Beside this program's own file. */
static int
load_pause(int *ret_fd, size_t *ret_len, struct err *e)
{
    char path[PATH_MAX];
    auto_mem void *tmp = mem_ctx("pause");
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n < 0)
        return err_errno(e, errno, "find out where this program is");
    path[n] = 0;
    *strrchr(path, '/') = 0;
    *ret_fd = network_image(mem_printf(tmp, "%s/paddock-pause", path), ret_len, e);
    return *ret_fd < 0 ? e->code : 0;
}

static int
main_prepare(struct loop *l, struct hands *all, const char *policy, struct err *e)
{
    struct policy *p = NULL;
    int r = policy_load(l, policy, &p, e);
    if (r < 0)
        return r;
    if (p->engines.n == 0)
        return err_set(e, -ERR_POLICY, "no engine is turned on");
    int allocs = open(p->alloc_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (allocs < 0)
        return err_errno(e, errno, "open \"%s\"", p->alloc_dir);
    int state = open_state(p, e), pause = -1;
    size_t pause_len = 0;
    if (state < 0 || load_pause(&pause, &pause_len, e) < 0)
        return e->code;
    all->v = mem_array(l, struct hand, p->engines.n);
    for (size_t i = 0; i < p->engines.n; i++) {
        const struct engine_policy *engine = p->engines.v[i];
        if (strncmp(str_or(engine->endpoint, ""), "unix:///", 8) != 0)
            return err_set(e, -ERR_POLICY, "the endpoint of \"%s\" is no unix:///PATH",
                           engine->name);
        all->v[all->n++] =
            (struct hand){.loop = l, .policy = p, .engine = engine, .allocs = allocs};
        if (proc_boot_id(all->v[i].boot) < 0)
            all->v[i].boot[0] = '\0';
        all->v[i].pause_tar = pause;
        all->v[i].pause_len = pause_len;
        all->v[i].images = images_new(l, &all->v[i], state);
        if (!str_empty(engine->auth_config) || !str_empty(engine->auth_helper)) {
            all->v[i].credentials = credentials_new(l, &all->v[i], e);
            if (!all->v[i].credentials)
                return e->code;
        }
    }
    r = listen_for_agent(all, e);
    return r < 0 ? r : main_confine(&all->v[0], e);
}

static void
on_signal(void *arg, int sig)
{
    (void)sig;
    loop_stop(arg);
}

static void
on_watchdog(void *arg)
{
    (void)notify_send("WATCHDOG=1");
    (void)timer_start(arg, notify_watchdog_ns() / 2 / NS_PER_MS, on_watchdog, arg);
}

int
main(int argc, char **argv)
{
    const char *policy = NULL, *level = "info";
    bool json = false;
    const struct opt table[] = {
        {"policy", OPT_STRING, &policy, "FILE", "The compiled policy (paddock policy)."},
        {"log-level", OPT_STRING, &level, "LEVEL", "trace, debug, info, warn or error."},
        {"log-json", OPT_BOOL, &json, NULL, "Log as JSON."},
        {0}};
    const struct opt *const tables[] = {table, NULL};
    struct err e = ERR_INIT;
    auto_mem void *ctx = mem_ctx("args");
    struct opt_list args;
    int r = opt_parse(ctx, tables, argc, argv, &args, &e);
    if (r != 0 || args.n > 0 || policy == NULL) {
        fprintf(stderr,
                "%s%susage: paddock-hand -policy FILE [-log-level LEVEL] [-log-json]\n"
                "Started by systemd or by `paddock agent`, not by hand.\n",
                e.text, e.text[0] != '\0' ? "\n" : "");
        return r == 1 ? 0 : 1;
    }
    if (!notify_begin(START_PAUSE_MAX_S))
        return 0;
    (void)umask(022);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    enum log_level l = log_level_parse(level);
    log_setup(l == LOG_LEVEL_INVALID ? LOG_INFO : l, json, STDERR_FILENO);
#ifndef INSTRUMENTED /* see confine() */
    struct err lack = ERR_INIT;
    if (sandbox_rings(&lack) < 0)
        log_warn(ROOM, "goes without a part of its own confinement", "error", lack.text, NULL);
#endif
    struct loop *loop = loop_new();
    struct hands all = {0};
    r = main_prepare(loop, &all, policy, &e);
    if (r < 0) {
        notify_failure(mem_printf(ctx, "paddock-hand: %s", e.text));
        return 1;
    }
    loop_on_signal(loop, SIGTERM, on_signal, loop);
    loop_on_signal(loop, SIGINT, on_signal, loop);
    for (size_t i = 0; i < all.n; i++) {
        containers_find(&all.v[i]);
        log_info(ROOM, "ready", "driver", all.v[i].engine->name, "engine",
                 all.v[i].engine->endpoint, NULL);
    }
    notify_ready("Minding containers");
    if (notify_watchdog_ns() > 0)
        on_watchdog(loop);
    loop_run(loop);
    return 0; /* what was followed is found again by the next hand */
}
