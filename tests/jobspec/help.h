/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the job language share.
 */
#ifndef PADDOCK_TESTS_JOBSPEC_HELP_H
#define PADDOCK_TESTS_JOBSPEC_HELP_H

#include "jobspec/eval.h"
#include "jobspec/jobspec.h"
#include "jobspec/parse.h"
#include "tests/lib/test.h"

/* An expression to its value as JSON, or the first diagnostic without source lines. The names that
 * it may use: var.s = "text", var.n = 3, var.l = ["a", "b", "c"], var.m = {a = 1, b = 2},
 * local.one = 1. */
const char *help_eval(const void *ctx, const char *expr);

struct help_row {
    const char *expr;
    const char *want; /* JSON; or "!" and what the diagnostic starts with after the position */
};

void help_check(const struct help_row *rows, size_t n);

/* A job file; NULL with the diagnostics in *ret_text. */
struct job *help_job(const void *ctx, const char *text, const char **ret_text);
/* The first line of the diagnostics, "" when the file is good. */
const char *help_error(const void *ctx, const char *text);

#endif
