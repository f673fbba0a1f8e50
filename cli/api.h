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
/* The same for commands that end where they fail: the answer, or NULL and "`failed`: why" was said.
 */
void *api_read(struct cmd *c, const char *target, const struct type *t, const char *failed);
bool api_read_list(struct cmd *c, const char *target, const struct type *t, void *ret_list,
                   const char *failed);
int api_get_value(struct cmd *c, const char *target, struct value **ret, struct err *e);

/* A request that changes something, mostly. */
struct change {
    const char *method; /* NULL: PUT */
    const char *target;
    const struct type *body_type; /* NULL: there is no body */
    const void *body;
    const struct type *answer; /* NULL: it is not read */
    const char *failed;        /* "Error stopping job", as errors of api_change() begin */
};
/* *ret stays NULL where no answer is read, or it is null. -ERR_CONFLICT: *ret is what is there,
 * where the agent says that. */
int api_send(struct cmd *c, const struct change *ch, void **ret, struct err *e);
/* The answer, or something where none is read; NULL: it failed, which was said. */
const void *api_change(struct cmd *c, const struct change *ch);
/* Returns a line of help for an answer, after a line break; "": there is none. */
const char *api_hint(const struct http_resp *r);
/* The ask that carries our headers, for streams. Owned by c. */
struct http_ask *api_ask(struct cmd *c, const char *method, const char *target);

/* --- identifiers --- */

/* Checks length and rounds down to an even number of digits; NULL and said when it is too short. */
const char *api_uuid_prefix(struct cmd *c, const char *id);

/* The job of an id or prefix: an exact match wins, and the command goes on in its namespace. NULL:
 * what is wrong was said. */
struct job_list_stub *api_find_job(struct cmd *c, const char *prefix);
/* The same among those that `filter` leaves; `kind` says which these are: "periodic ". */
struct job_list_stub *api_find_job_of(struct cmd *c, const char *prefix, const char *filter,
                                      const char *kind);
/* Reads the options of a command whose one argument is a job, and returns the job's id. NULL:
 * return *ret_code, all is said. */
const char *api_job_arg(struct cmd *c, const struct opt *opts, int *ret_code);

/* The kinds of object that are found by a prefix of their id. */
struct api_kind {
    const char *name, *path;                                        /* "node", "/v1/nodes" */
    const struct type *t;                                           /* of the list; with an ID */
    void (*show)(struct cmd *c, const struct object_list *matches); /* where several match */
};
/* The full id; NULL: what is wrong was said. */
const char *api_find(struct cmd *c, const struct api_kind *k, const char *prefix);

#endif
