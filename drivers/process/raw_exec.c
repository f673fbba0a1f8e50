/* SPDX-License-Identifier: Apache-2.0
 *
 * raw_exec: a program of the host without a sandbox, in a process group (and cgroup) of its own.
 * Off unless the operator enables it. Pure.
 */
#include <signal.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "drivers/process/process.h"

static const struct driver_option options[] = {
    {"command", DRIVER_STRING, .required = true},
    {"args", DRIVER_STRINGS},
    {"work_dir", DRIVER_STRING},
    {"denied_envvars", DRIVER_STRINGS},
    {"oom_score_adj", DRIVER_INT, .later = true},
    {"cgroup_v2_override", DRIVER_STRING, .later = true},
    {"cgroup_v1_override", DRIVER_STRING, .later = true},
};

static void
raw_exec_fingerprint(const void *ctx, const struct driver_host *host, struct driver_info *ret)
{
    (void)ctx;
    ret->detected = host->warden && host->raw_exec;
    ret->healthy = ret->detected;
    if (ret->detected)
        ret->health_description = "Healthy";
    else if (!host->warden)
        ret->health_description = "the warden is not running";
    else
        ret->health_description = "disabled";
}

static bool
raw_exec_denied(const struct str_list *globs, const char *var)
{
    const char *eq = strchr(var, '=');
    auto_mem void *tmp = mem_ctx("deny");
    const char *name = mem_strndup(tmp, var, eq ? (size_t)(eq - var) : strlen(var));
    for (size_t i = 0; i < globs->n; i++)
        if (str_glob(globs->v[i], name))
            return true;
    return false;
}

static int
raw_exec_spec(const void *ctx, const struct driver_input *in, struct launch_spec **ret,
              struct err *e)
{
    struct launch_spec *s = NULL;
    int r = process_spec(ctx, &driver_raw_exec, in, &s, e);
    if (r < 0)
        return r;
    struct str_list globs, all; /* the job's, the client's */
    driver_strings(s, in->config, "denied_envvars", &globs);
    driver_strings(s, in->plugin, "denied_envvars", &all);
    size_t kept = 0;
    for (size_t i = 0; i < s->env.n; i++)
        if (!raw_exec_denied(&globs, s->env.v[i]) && !raw_exec_denied(&all, s->env.v[i]))
            s->env.v[kept++] = s->env.v[i];
    s->env.n = kept;
    *ret = s;
    return 0;
}

const struct driver driver_raw_exec = {
    .can = &drivers_can[DRIVER_raw_exec],
    .options = options,
    .n_options = ARRAY_LEN(options),
    .kill_signal = SIGINT,
    .fingerprint = raw_exec_fingerprint,
    .spec = raw_exec_spec,
};
