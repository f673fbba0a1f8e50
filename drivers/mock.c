/* SPDX-License-Identifier: Apache-2.0
 *
 * mock_driver: no process, only timers; for tests. Not part of the table: a test (or an agent built
 * for tests) adds it with driver_add(&driver_mock). Pure.
 */
#include "drivers/mock.h"

#include <signal.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

static const struct driver_option options[] = {
    {"run_for", DRIVER_DURATION},
    {"exit_code", DRIVER_INT},
    {"exit_signal", DRIVER_INT},
    {"exit_err_msg", DRIVER_STRING},
    {"start_error", DRIVER_STRING},
    {"start_error_recoverable", DRIVER_BOOL},
    {"start_block_for", DRIVER_DURATION},
    {"kill_after", DRIVER_DURATION},
};

static void
fingerprint(const void *ctx, const struct driver_host *host, struct driver_info *ret)
{
    (void)ctx;
    (void)host;
    ret->detected = ret->healthy = true;
    ret->health_description = "Healthy";
}

static int
simulate(const void *ctx, const struct driver_input *in, struct driver_sim *ret, struct err *e)
{
    (void)e;
    const char *start_error = driver_string(in->config, "start_error", "");
    const char *exit_error = driver_string(in->config, "exit_err_msg", "");
    *ret = (struct driver_sim){
        .run_for_ns = driver_duration(in->config, "run_for", 0),
        .start_delay_ns = driver_duration(in->config, "start_block_for", 0),
        .kill_after_ns = driver_duration(in->config, "kill_after", 0),
        .exit_code = (int)driver_int(in->config, "exit_code", 0),
        .exit_signal = (int)driver_int(in->config, "exit_signal", 0),
        .start_error = *start_error ? mem_strdup(ctx, start_error) : NULL,
        .start_recoverable = driver_bool(in->config, "start_error_recoverable", false),
        .exit_error = *exit_error ? mem_strdup(ctx, exit_error) : NULL,
    };
    return 0;
}

const struct driver driver_mock = {
    .can = &(const struct driver_can){.name = "mock_driver"},
    .options = options,
    .n_options = ARRAY_LEN(options),
    .kill_signal = SIGINT,
    .fingerprint = fingerprint,
    .simulate = simulate,
};
