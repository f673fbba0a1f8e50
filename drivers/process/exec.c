/* SPDX-License-Identifier: Apache-2.0
 *
 * exec: a program of the host in the full sandbox. The warden looks a bare command up: the task's
 * local/, its root, then /usr/local/bin, /usr/bin and /bin, all inside the box. Pure.
 */
#include <signal.h>

#include "common/mem.h"
#include "drivers/process/process.h"

static const struct driver_option options[] = {
    {"command", DRIVER_STRING, .required = true},
    {"args", DRIVER_STRINGS},
    {"work_dir", DRIVER_STRING},
    {"pid_mode", DRIVER_STRING},
    {"ipc_mode", DRIVER_STRING},
    {"cap_add", DRIVER_STRINGS},
    {"cap_drop", DRIVER_STRINGS},
    {"cpu_hard_limit", DRIVER_BOOL},
};

static void
exec_fingerprint(const void *ctx, const struct driver_host *host, struct driver_info *ret)
{
    (void)ctx;
    box_fingerprint(host, ret);
}

static int
exec_spec(const void *ctx, const struct driver_input *in, struct launch_spec **ret, struct err *e)
{
    return box_spec(ctx, &driver_exec, in, ret, e);
}

const struct driver driver_exec = {
    .can = &drivers_can[DRIVER_exec],
    .options = options,
    .n_options = ARRAY_LEN(options),
    .kill_signal = SIGINT,
    .fingerprint = exec_fingerprint,
    .spec = exec_spec,
};
