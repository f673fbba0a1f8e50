/* SPDX-License-Identifier: Apache-2.0
 *
 * Help for the tests of server/: a temporary directory, a core driven from the test's own thread.
 */
#ifndef PADDOCK_TESTS_SERVER_UTIL_H
#define PADDOCK_TESTS_SERVER_UTIL_H

#include "api/terms.h"
#include "common/mem.h"
#include "server/core/core.h"

/* A directory that is removed at exit of the test process. */
const char *tmp_dir(void);

/* A core whose posted functions run when the test waits for them. */
struct bench {
    struct core *core;
    struct core_opts opts;
    void *impl;
};

/* Opens and starts in `dir` with small segments; waits until it leads. */
struct bench *bench_open(const char *dir, const char *boot_id);
/* The same with options set by the caller (env is filled in). */
struct bench *bench_open_opts(struct core_opts o);
void bench_close(struct bench *b);
/* Proposes and waits; the result is owned by ctx, e is cleared first. */
struct fsm_result *bench_apply(struct bench *b, const void *ctx, struct intent *in, struct err *e);
/* Proposes without waiting; bench_wait() until all have completed. Counts those without error. */
void bench_send(struct bench *b, struct intent *in);
uint64_t bench_wait(struct bench *b);

/* --- things to put into intents, owned by ctx --- */
struct job *make_job(const void *ctx, const char *id, int64_t count);
struct node *make_node(const void *ctx, const char *id);
struct allocation *make_alloc(const void *ctx, const struct job *j, const char *id,
                              const char *node_id);
struct evaluation *make_eval(const void *ctx, const struct job *j, const char *id);
struct intent *intent_new(const void *ctx, int64_t time);
/* One string list element. */
struct str_list strs(const void *ctx, const char *a, const char *b);

#endif
