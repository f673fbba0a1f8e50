/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of the host and of tasks, read when somebody asks. Rates are over the time since they
 * were last asked for (since start, the first time). What the kernel does not tell is left out of
 * Measured.
 */
#ifndef PADDOCK_CLIENT_IO_STATS_H
#define PADDOCK_CLIENT_IO_STATS_H

#include "api/api.h"
#include "common/err.h"

struct allocs;
struct cpu_sample;
struct ground;
struct host_cpus; /* processor times at the last question */

typedef void client_usage_fn(void *arg, const struct allocation *a, const char *task,
                             const struct resource_usage *u);
/* Do what client_alloc_stats(), client_each_usage() and client_host_stats() say. */
int stats_alloc(struct allocs *allocs, const void *ctx, const char *alloc_id, const char *task,
                struct alloc_resource_usage **ret, struct err *e);
void stats_each_usage(struct allocs *allocs, client_usage_fn *fn, void *arg);
struct host_stats *stats_host(struct ground *g, struct host_cpus **last, const void *ctx);

/* The rates since the last sample, or since start_ns, from the sums of time used; wall clock. */
void cpu_sample_add(struct cpu_sample *s, int64_t now_ns, int64_t start_ns, int64_t user_us,
                    int64_t system_us);

#endif
