/* SPDX-License-Identifier: Apache-2.0
 *
 * The one place where evaluations are made. Pure: the maker of an evaluation gives its id and its
 * time, from the environment of a server, from the stamp of the leader on an entry, or from the
 * seed of a scheduler.
 */
#ifndef PADDOCK_API_EVAL_H
#define PADDOCK_API_EVAL_H

#include "api/api.h"

struct eval_args {
    const char *id;
    const struct job *job;          /* either: what is evaluated, */
    const struct evaluation *after; /* or the evaluation of the same job before this one */
    const char *trigger;
    int64_t now; /* wall clock, ns; 0: stamped later */
};

/* A pending one. The strings are borrowed from what is given. */
struct evaluation *eval_new(const void *ctx, const struct eval_args *x);

#endif
