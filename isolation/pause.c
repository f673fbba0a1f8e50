/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock-holder: the one process of paddock-tasks.service, whose delegated cgroup is the parent of
 * all tasks. It moves itself into the leaf holder/ (controllers are handed down only where no
 * process is), writes where that parent is to RUNDIR/cgroup for `paddock policy`, and then only
 * waits: agent and warden may be restarted and upgraded under it, tasks stay.
 *
 * It reads nothing but its own place in /proc/self and takes one argument, RUNDIR. With -clear
 * before it, removes the rest of an earlier cgroup of tasks and ends: the kernel lets no process
 * into a cgroup that hands controllers down, so a unit with a left subtree cannot start
 * (219/CGROUP). With -ending, the unit's ExecStop, the shims of all tasks are told: the next
 * signals are the machine's, or the unit's. Program and leaf keep their names of before, since
 * units that run over an upgrade name them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/host/notify.h"
#include "common/limits.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/launch/policy.h"
#include "isolation/limits.h"

/* The path of our own cgroup below the cgroup2 mount: the line "0::/path". */
static int
own_cgroup(const void *ctx, const char **ret, struct err *e)
{
    struct cgroup_info info;
    char *text, *save = NULL;
    int r = cgroup_find(ctx, &info, e);
    if (r < 0)
        return r;
    r = file_read(ctx, AT_FDCWD, "/proc/self/cgroup", 64 << 10, &text, NULL);
    if (r < 0)
        return err_errno(e, -r, "read /proc/self/cgroup");
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (!str_prefix(line, "0::/"))
            continue;
        if (str_suffix(line, "/" PAUSE_LEAF)) /* started again by hand */
            line[strlen(line) - strlen("/" PAUSE_LEAF)] = '\0';
        if (strcmp(line, "0::/") == 0)
            break;
        *ret = mem_printf(ctx, "%s%s", info.mount, line + 3);
        return 0;
    }
    return err_set(e, -ERR_INVALID,
                   "this process is in no cgroup of its own: start it by paddock-tasks.service");
}

static int
pause_hold(const void *ctx, const char *run_dir, struct err *e)
{
    const char *root = NULL;
    int r = own_cgroup(ctx, &root, e);
    if (r < 0)
        return r;
    const char *leaf = mem_printf(ctx, "%s/" PAUSE_LEAF, root);
    if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
        return err_errno(e, errno, "make the cgroup \"%s\"", leaf);
    r = file_put(AT_FDCWD, mem_printf(ctx, "%s/cgroup.procs", leaf), "0");
    if (r < 0)
        return err_errno(e, -r, "move to the cgroup \"%s\"", leaf);
    r = dir_make(AT_FDCWD, run_dir, 0755);
    const char *file = mem_printf(ctx, "%s/" POLICY_CGROUP, run_dir);
    if (r == 0)
        r = file_write_atomic(AT_FDCWD, file, root, strlen(root), 0644);
    return r < 0 ? err_errno(e, -r, "write \"%s\"", file) : 0;
}

int
main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    void *ctx = mem_ctx("pause");
    sigset_t set;
    int sig;
    bool clear = argc == 3 && str_eq(argv[1], "-clear");
    bool ending = argc == 3 && str_eq(argv[1], "-ending");
    if ((argc != 2 && !clear && !ending) || argv[argc - 1][0] != '/') {
        fprintf(stderr, "usage: paddock-holder [-clear | -ending] RUNDIR\n"
                        "Started by systemd, not by hand.\n");
        return 1;
    }
    if (clear || ending) {
        int r = clear ? cgroup_clear(argv[2], PAUSE_CLEAR_MS, &e)
                      : cgroup_tell_ending(argv[2], &e);
        if (r == -ERR_CONFLICT) /* a start of what runs: there is nothing to clear away */
            printf("paddock-holder: %s\n", e.text);
        else if (r < 0)
            notify_failure(mem_printf(ctx, "paddock-holder: %s", e.text));
        talloc_free(ctx);
        return r == 0 || r == -ERR_CONFLICT ? 0 : 1;
    }
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (!notify_begin(START_PAUSE_FIRST_MAX_S)) {
        talloc_free(ctx);
        return 0;
    }
    if (pause_hold(ctx, argv[1], &e) < 0) {
        notify_failure(mem_printf(ctx, "paddock-holder: %s", e.text));
        talloc_free(ctx);
        return 1;
    }
    talloc_free(ctx);
    notify_ready("Holding the tasks' cgroup");
    while (sigwait(&set, &sig) != 0)
        ;
    return 0;
}
