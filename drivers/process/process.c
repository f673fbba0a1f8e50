/* SPDX-License-Identifier: Apache-2.0
 *
 * What the drivers of processes have in common: ids, arguments, environment, limits, logs. Pure.
 */
#include "drivers/process/process.h"

#include "common/mem.h"
#include "common/str.h"

#define MB (INT64_C(1) << 20)

static int64_t
process_mib(int64_t n)
{
    return n > 0 && n < INT64_MAX / MB ? n * MB : 0;
}

static struct launch_limits *
limits_of(const void *ctx, const struct allocated_task_resources *r,
          const struct task_isolation *iso)
{
    struct launch_limits *l = mem_new(ctx, struct launch_limits);
    l->memory_low = iso ? process_mib(iso->memory_low) : 0;
    if (r && r->cpu) {
        l->cpu_shares = r->cpu->cpu_shares;
        for (size_t i = 0; i < r->cpu->reserved_cores.n; i++)
            list_add(l, l->cores, r->cpu->reserved_cores.v[i]);
    }
    if (r && r->memory) {
        int64_t max = r->memory->memory_max_mb;
        int64_t mb = max > r->memory->memory_mb ? max : r->memory->memory_mb;
        if (max >= 0 && mb > 0 && mb < INT64_MAX / MB)
            l->memory_max = mb * MB;
        /* the memory of its placement is kept for the task, the rest only lent */
        if (l->memory_low == 0 && mb > r->memory->memory_mb)
            l->memory_low = process_mib(r->memory->memory_mb);
    }
    return l;
}

static struct launch_logs *
logs_of(const void *ctx, const struct log_config *c)
{
    struct launch_logs *l = mem_new(ctx, struct launch_logs);
    l->dir = "alloc/logs";
    l->max_files = c && c->max_files.set ? c->max_files.v : 10;
    int64_t mb = c && c->max_file_size_mb.set ? c->max_file_size_mb.v : 10;
    l->max_file_bytes = mb > 0 && mb < INT64_MAX / MB ? mb * MB : 10 * MB;
    l->disabled = c && c->disabled;
    return l;
}

static int
process_check(const struct driver *d, const struct driver_input *in, struct err *e)
{
    const char *dir = driver_string(in->config, "work_dir", "");
    if (*dir && *dir != '/')
        return err_set(e, -ERR_INVALID, "work_dir \"%.200s\" of driver \"%s\" must be absolute",
                       dir, d->can->name);
    if (!str_empty(in->task->kill_signal) && signal_parse(in->task->kill_signal) < 0)
        return err_set(e, -ERR_INVALID, "kill_signal \"%.32s\" is not a signal",
                       in->task->kill_signal);
    return 0;
}

int
process_spec(const void *ctx, const struct driver *d, const struct driver_input *in,
             struct launch_spec **ret, struct err *e)
{
    int r = process_check(d, in, e);
    if (r < 0)
        return r;
    struct launch_spec *s = mem_new(ctx, struct launch_spec);
    s->alloc_id = mem_strdup(s, in->alloc_id);
    s->task_name = mem_strdup(s, in->task->name);
    s->driver = d->can->name;
    s->isolated = d->can->isolation;
    s->user = mem_strdup(s, str_or(in->user, ""));
    s->command = mem_strdup(s, driver_string(in->config, "command", ""));
    driver_strings(s, in->config, "args", &s->args);
    s->env.v = mem_array(s, const char *, in->env->n);
    for (size_t i = 0; i < in->env->n; i++)
        s->env.v[s->env.n++] = mem_strdup(s->env.v, in->env->v[i]);
    s->work_dir = mem_strdup(s, driver_string(in->config, "work_dir", ""));
    s->isolation =
        in->task->isolation ? codec_clone(s, &type_task_isolation, in->task->isolation) : NULL;
    s->limits = limits_of(s, in->resources, in->task->isolation);
    s->logs = logs_of(s, in->task->log_config);
    s->secrets_mb = in->task->resources ? in->task->resources->secrets_mb : 0;
    int sig = str_empty(in->task->kill_signal) ? 0 : signal_parse(in->task->kill_signal);
    s->kill_signal = sig > 0 ? sig : 0;
    s->share_net = !in->own_network;
    s->egress = in->egress ? codec_clone(s, &type_net_policy, in->egress) : NULL;
    s->bind = in->bind ? codec_clone(s, &type_net_policy, in->bind) : NULL;
    *ret = s;
    return 0;
}
