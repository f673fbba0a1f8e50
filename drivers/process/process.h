/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of drivers/: the drivers of this build and what process drivers share.
 */
#ifndef PADDOCK_DRIVERS_PROCESS_PROCESS_H
#define PADDOCK_DRIVERS_PROCESS_PROCESS_H

#include "drivers/driver.h"

extern const struct driver driver_exec;
extern const struct driver driver_raw_exec;

/* work_dir and kill_signal. */
int driver_check_process(const struct driver_input *in, const char *driver, struct err *e);

#endif
