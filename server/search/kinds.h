/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of objects that are searched, and who may find them: what both searches have in common.
 * Worker thread.
 */
#ifndef PADDOCK_SERVER_SEARCH_KINDS_H
#define PADDOCK_SERVER_SEARCH_KINDS_H

#include "acl/acl.h"
#include "server/call/method.h"

/* Nomad's kinds of objects. `type` NULL: there are none. Rights to objects that are in no namespace
 * are asked for by name. */
struct search_kind {
    const char *name;
    const struct type *type;
    enum state_table table;
    bool hex;         /* ids of hex digits */
    const char *need; /* NULL: that of its object */
};
extern const struct search_kind search_kinds[];
extern const size_t search_kinds_n;

struct acl_need search_need(const struct search_kind *k);
/* Says whether anything of that kind can be found. */
bool search_may(const struct read *r, const struct search_kind *k, const struct acl_need *need);
/* The same of a row; `ns` NULL: it is in none. */
bool search_may_row(const struct read *r, const struct acl_need *need, const char *ns,
                    const char *id);

/* Returns the part of a prefix of hex digits by which rows are found: whole bytes. NULL: no id
 * begins so. */
const char *search_bytes(const struct read *r, const char *prefix);
struct state_iter *search_rows(const struct read *r, struct state_txn *t,
                               const struct search_kind *k, const char *key);
/* NULL: objects of the type have no such member. */
const char *search_text(const struct type *t, const void *obj, const char *wire);
const char *search_id(const struct search_kind *k, const void *obj);

/* Adds what has an id that begins so, SEARCH_MATCHES_MAX at most; returns whether there is more. */
bool search_prefix(const struct read *r, struct state_txn *t, const struct search_kind *k,
                   const char *prefix, struct str_list *found);

/* The tables in which things are found. */
#define SEARCH_OBJECT(TABLE, ...) | STATE_BIT(STATE_##TABLE)
#define SEARCH_TABLES                                                                              \
    (STATE_BIT(STATE_JOBS) | STATE_BIT(STATE_ALLOCS) | STATE_BIT(STATE_EVALS) |                    \
     STATE_BIT(STATE_NODES) | STATE_BIT(STATE_DEPLOYMENTS) | STATE_BIT(STATE_VARIABLES) |          \
     STATE_BIT(STATE_SCALING_POLICIES) API_COMMON_OBJECTS(SEARCH_OBJECT))

#endif
