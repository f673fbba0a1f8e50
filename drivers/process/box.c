/* SPDX-License-Identifier: Apache-2.0
 *
 * What the drivers have in common whose tasks run in the full sandbox: when a node can have them,
 * and the options pid_mode, ipc_mode, cap_add, cap_drop, cpu_hard_limit, work_dir. Pure.
 */
#include <string.h>
#include <strings.h>

#include "api/isolation.h"
#include "api/limits.h"
#include "api/plain.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "drivers/caps_text.h"
#include "drivers/process/process.h"
#include "isolation/confine/seccomp.h"

enum { PERIOD_US = 100000 }; /* of launch_limits.cpu_max */

void
box_fingerprint(const struct driver_host *host, struct driver_info *ret)
{
    ret->detected = host->warden && host->root && host->cgroup2 && !host->missing;
    ret->healthy = ret->detected;
    if (ret->detected)
        ret->health_description = "Healthy";
    else if (!host->warden)
        ret->health_description = "the warden is not running";
    else if (!host->root)
        ret->health_description = "the sandbox needs root: the agent was started without it";
    else if (!host->cgroup2)
        ret->health_description = "the sandbox needs a cgroup2 mount";
    else
        ret->health_description = host->missing;
}

static int
box_mode(const struct driver *d, const struct value *config, const char *option, bool *ret_host,
         struct err *e)
{
    const char *m = driver_string(config, option, "private");
    if (!str_eq(m, "private") && !str_eq(m, "host"))
        return err_set(e, -ERR_INVALID,
                       "%s of driver \"%s\" is \"%.64s\", it must be "
                       "\"private\" or \"host\"",
                       option, d->can->name, m);
    *ret_host = str_eq(m, "host");
    return 0;
}

/* Not only a weight against others: never more than what resources.cpu asks for. */
static int
limit_cpu(const struct driver_input *in, struct launch_limits *l, int64_t burst_us, bool hard,
          struct err *e)
{
    if (!hard || l->cores.n > 0 || l->cpu_shares <= 0)
        return 0; /* reserved cores are a limit themselves */
    if (in->core_mhz <= 0)
        return err_set(e, -ERR_UNSUPPORTED,
                       "cpu_hard_limit: the frequency of this node's processors is "
                       "not known: set client.cpu_total_compute");
    l->cpu_max = (int64_t)((double)l->cpu_shares / in->core_mhz * PERIOD_US + 0.5);
    if (burst_us > l->cpu_max)
        return err_set(e, -ERR_INVALID,
                       "isolation: cpu_burst of %lld us is more than the hard limit of this task, "
                       "%lld us in %d",
                       (long long)burst_us, (long long)l->cpu_max, PERIOD_US);
    return 0;
}

static int
box_names(struct launch_spec *s, const struct driver_input *in, struct err *e)
{
    if (!str_empty(in->hostname) && !plain_hostname(in->hostname))
        return err_set(e, -ERR_INVALID, "hostname \"%.80s\" is not a DNS name of up to %d bytes",
                       in->hostname, JOB_HOSTNAME_MAX);
    if (strlen(str_or(in->resolv, "")) > DRIVER_RESOLV_MAX)
        return err_set(e, -ERR_INVALID, "dns: more than %d bytes of resolv.conf",
                       DRIVER_RESOLV_MAX);
    s->hostname = str_empty(in->hostname) ? NULL : mem_strdup(s, in->hostname);
    s->resolv = in->resolv ? mem_strdup(s, in->resolv) : NULL;
    return 0;
}

/* A task has none but those of cap_add, which wins over cap_drop in Nomad too: only names can be
 * wrong. */
static int
check_dropped(const struct value *config, struct err *e)
{
    auto_mem void *tmp = mem_ctx("caps");
    struct str_list drop;
    driver_strings(tmp, config, "cap_drop", &drop);
    for (size_t i = 0; i < drop.n; i++)
        if (strcasecmp(drop.v[i], "all") != 0 && !caps_text_known(drop.v[i]))
            return err_set(e, -ERR_INVALID, "cap_drop: there is no capability \"%.64s\"",
                           drop.v[i]);
    return 0;
}

int
box_spec(const void *ctx, const struct driver *d, const struct driver_input *in,
         struct launch_spec **ret, struct err *e)
{
    bool host_pid, host_ipc;
    int r = box_mode(d, in->config, "pid_mode", &host_pid, e);
    if (r == 0)
        r = box_mode(d, in->config, "ipc_mode", &host_ipc, e);
    if (r == 0)
        r = check_dropped(in->config, e);
    struct launch_spec *s = NULL;
    if (r == 0)
        r = process_spec(ctx, d, in, &s, e);
    if (r < 0)
        return r;
    const struct task_isolation *iso = isolation_of(s->isolation);
    r = iso->seccomp ? seccomp_check_task(iso->seccomp, e) : 0;
    s->host_pid = host_pid;
    s->host_ipc = host_ipc;
    driver_strings(s, in->config, "cap_add", &s->cap_add);
    if (r == 0)
        r = box_names(s, in, e);
    if (r == 0)
        r = limit_cpu(in, s->limits, iso->cpu_burst / NS_PER_US,
                      driver_bool(in->config, "cpu_hard_limit", d == &driver_exec2), e);
    if (r < 0) {
        talloc_free(s);
        return r;
    }
    *ret = s;
    return 0;
}
