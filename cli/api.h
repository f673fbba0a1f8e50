/* SPDX-License-Identifier: Apache-2.0
 *
 * Talking to the agent: targets, requests, decoding, identifiers.
 */
#ifndef PADDOCK_CLI_API_H
#define PADDOCK_CLI_API_H

#include "cli/command.h"
#include "cli/limits.h"

/* "/v1/job/%/plan": each % is replaced by the next argument, escaped; then pairs of query name and
 * value up to NULL (a NULL value leaves the pair out). Region and namespace are added. */
char *api_target(struct cmd *c, const char *path, ...) __attribute__((sentinel));

/* A target that is written out already, with what the global flags add. `filter` may be NULL. */
char *api_raw_target(struct cmd *c, const char *target, const char *filter);

struct api_meta {
    uint64_t index;
    const char *next_token;
};

/* All return 0 or a negative code with the text in e (status and body of the answer). `ret` is
 * owned by ctx (normally c). `meta` may be NULL. */
int api_get(struct cmd *c, const char *target, const struct type *t, void **ret,
            struct api_meta *meta, struct err *e);
int api_list(struct cmd *c, const char *target, const struct type *t, void *ret_list,
             struct api_meta *meta, struct err *e);
int api_get_value(struct cmd *c, const char *target, struct value **ret, struct err *e);
/* Sends `body` (of type bt, NULL: none) and decodes the answer (NULL: ignored). */
int api_send(struct cmd *c, const char *method, const char *target, const struct type *bt,
             const void *body, const struct type *t, void **ret, struct err *e);
/* The ask that carries our headers, for streams. Owned by c. */
struct http_ask *api_ask(struct cmd *c, const char *method, const char *target);

/* --- identifiers --- */

/* Checks length and rounds down to an even number of digits; NULL and said when it is too short. */
const char *api_uuid_prefix(struct cmd *c, const char *id);

enum api_found { API_ONE, API_NONE, API_MANY, API_FAILED };

/* The job from an id or prefix: exact match wins, and the command goes on in its namespace. Says
 * what is wrong, unless API_ONE. */
enum api_found api_find_job(struct cmd *c, const char *prefix, struct job_list_stub **ret);
/* The same among those that `filter` leaves; `kind` says which these are: "periodic ". */
enum api_found api_find_job_of(struct cmd *c, const char *prefix, const char *filter,
                               const char *kind, struct job_list_stub **ret);
/* Full ids from a prefix, for `path` lists ("/v1/nodes"); says what is wrong unless API_ONE. On
 * API_MANY *ret_list holds all candidates (structs of type t whose field "ID" matches). */
enum api_found api_find(struct cmd *c, const char *what, const char *path, const struct type *t,
                        const char *prefix, struct object_list *ret_list);

#endif
