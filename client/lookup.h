/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions of tasks to the servers, whose answers are followed: one blocking query each, however
 * many tasks ask it. It is asked in the name of an allocation, and goes on when a server cannot be
 * reached: the last answer stays until there is another.
 */
#ifndef PADDOCK_CLIENT_LOOKUP_H
#define PADDOCK_CLIENT_LOOKUP_H

#include "client/ground.h"
#include "codec/value.h"

struct lookups;
struct lookup;

enum lookup_kind { LOOKUP_SERVICE, LOOKUP_SERVICES, LOOKUP_VARIABLE, LOOKUP_VARIABLES };

/* A question; ns and region "": those of the allocation. */
struct lookup_key {
    enum lookup_kind kind;
    const char *task; /* that asks, whose rights count */
    const char *ns;
    const char *region;
    const char *key;
};

/* A new answer is there. Never from inside lookup_begin(). */
typedef void lookup_told(void *arg);

struct lookups *lookups_new(struct ground *g);
/* Ends all queries; uses stay valid, and are told nothing more. */
void lookups_stop(struct lookups *f);

/* The key is copied, the allocation outlives the use. An answer that is there already is told
 * by lookup_value() alone. */
struct lookup *lookup_begin(struct lookups *f, const struct alloc_core *a,
                            const struct lookup_key *k, lookup_told *told, void *arg);
void lookup_end(struct lookup *u); /* NULL: nothing */
/* NULL: not known yet. A null value: it does not exist. Valid until the next turn of the loop. */
const struct value *lookup_value(const struct lookup *u);
/* Why the servers refuse an answer; NULL: they do not. */
const char *lookup_refusal(const struct lookup *u);

#endif
