/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of drivers/process/: what the drivers share that the warden starts processes for.
 */
#ifndef PADDOCK_DRIVERS_PROCESS_PROCESS_H
#define PADDOCK_DRIVERS_PROCESS_PROCESS_H

#include "drivers/driver.h"

/* Checks work_dir and kill_signal; then ids, arguments, environment, limits and logs. */
int process_spec(const void *ctx, const struct driver *d, const struct driver_input *in,
                 struct launch_spec **ret, struct err *e);

/* --- of the drivers with the full sandbox (box.c) --- */
void box_fingerprint(const struct driver_host *host, struct driver_info *ret);
/* Makes a spec as process_spec does, with the options that they share. */
int box_spec(const void *ctx, const struct driver *d, const struct driver_input *in,
             struct launch_spec **ret, struct err *e);

#endif
