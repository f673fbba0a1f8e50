/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands for `paddock agent` in tests of the supervisor: `paddock-fake-agent DIR USER [drain]`.
 * Without -supervised it is the supervisor; with it, the agent: it writes what it is to
 * DIR/agent/PID, asks the warden for its info, and waits for SIGTERM; with "drain", it then makes
 * DIR/agent/draining and waits for another.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/launch/client.h"
#include "isolation/supervisor.h"

struct args {
    const char *dir;
    const char *user;
};

static int
load(void *arg, const void *ctx, struct policy **ret, struct err *e)
{
    const struct args *a = arg;
    if (str_eq(a->user, "bad-config"))
        return err_set(e, -ERR_INVALID, "the configuration is bad");
    struct policy *p = type_new(ctx, &type_policy);
    p->data_dir = mem_printf(p, "%s/data", a->dir);
    p->alloc_dir = mem_printf(p, "%s/data/alloc", a->dir);
    p->run_dir = mem_printf(p, "%s/run", a->dir);
    p->agent_user = mem_strdup(p, a->user);
    p->raw_exec = true;
    p->seccomp = true;
    list_add(p, p->drivers, "raw_exec");
    struct cgroup_info info;
    if (geteuid() == 0 && cgroup_find(p, &info, NULL) == 0)
        p->cgroup_root = mem_printf(p, "%s/paddock-sup-%d", info.mount, (int)getppid());
    *ret = p;
    return 0;
}

static void
got_info(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    *(bool *)arg = e == NULL;
}

static int
agent(const char *run_dir, const char *dir, bool drain)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    auto_mem void *ctx = mem_ctx("agent");
    struct warden_client *c = warden_client_new(ctx, mem_printf(ctx, "%s/warden.sock", run_dir));
    struct err e = ERR_INIT;
    bool ok = false;
    if (warden_client_connect(c, &e) == 0) {
        warden_info(c, got_info, &ok);
        (void)warden_client_drain(c, 5000);
    }
    char *status = NULL;
    (void)file_read(ctx, AT_FDCWD, "/proc/self/status", 65536, &status, NULL);
    const char *caps = status != NULL ? strstr(status, "CapBnd:") : NULL;
    const char *nnp = status != NULL ? strstr(status, "NoNewPrivs:") : NULL;
    char *text =
        mem_printf(ctx, "uid %d gid %d warden %d bnd %.16s nnp %c", (int)getuid(), (int)getgid(),
                   ok, caps != NULL ? caps + 8 : "?", nnp != NULL ? nnp[12] : '?');
    char *path = mem_printf(ctx, "%s/agent/%d", dir, (int)getpid());
    int r = file_write_atomic(AT_FDCWD, path, text, strlen(text), 0644);
    if (r < 0) {
        fprintf(stderr, "%s: %s\n", path, err_name(r));
        return 1;
    }
    int sig;
    (void)sigwait(&set, &sig);
    if (!drain)
        return 0;
    path = mem_printf(ctx, "%s/agent/draining", dir);
    if (file_write_atomic(AT_FDCWD, path, "", 0, 0644) < 0)
        return 1;
    (void)sigwait(&set, &sig);
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc >= 6 && str_eq(argv[2], "-supervised")) /* paddock agent -supervised RUNDIR ... */
        return agent(argv[3], argv[4], argc > 6 && str_eq(argv[6], "drain"));
    if (argc < 3)
        return 2;
    struct args a = {argv[1], argv[2]};
    struct supervisor s = {.load = load, .arg = &a, .argc = argc, .argv = argv, .stop_tasks = true};
    return supervisor_main(&s);
}
