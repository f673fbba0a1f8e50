/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole server on the loop of a test, its one node, and calls that are waited for.
 */
#ifndef PADDOCK_TESTS_SERVER_SERVED_H
#define PADDOCK_TESTS_SERVER_SERVED_H

#include "api/terms.h"
#include "common/mem.h"
#include "net/rpc.h"
#include "server/fsm/fsm.h"
#include "server/server.h"
#include "server/state/state.h"

struct world {
    struct loop *loop;
    struct server *server;
    struct rpc_client *rpc;
    struct err err;
};

struct answer {
    struct world *w;
    bool done;
    struct err err;
    const void *resp;
};

extern const char node_id[], node_secret[];
extern const struct rpc_envelope as_node; /* proves to be that node */

/* Whether a caller may, at a server that is opened next; NULL: everybody. */
extern bool (*world_may)(const struct rpc_envelope *env, const char *ns);
extern bool world_verify_servers, world_bind_names, world_acl, world_makes_keys;
struct world *world_open_with(const char *dir, int64_t heartbeat_ms);
struct world *world_open(const char *dir);
void world_close(struct world *w);
void answered(void *arg, const struct err *e, const void *resp);
/* Calls and waits; NULL with w->err set on failure. */
const void *call(struct world *w, enum rpc_id id, const void *req);
const void *call_with(struct world *w, enum rpc_id id, const void *req, const struct rpc_envelope *env);
struct node *the_node(void *ctx);
void node_up(struct world *w);
struct job *the_job(void *ctx, const char *id, int64_t count);
/* So many bytes of specification and a few more, in groups of which there is none. */
void job_ballast(struct job *j, size_t bytes, char c);
const struct job_register_response *run_job(struct world *w, struct job *j);
/* The evaluation once it is not pending any more: a blocking query, as `job run` does. */
const struct evaluation *await_eval(struct world *w, const char *id);
const struct alloc_list_response *allocs_of(struct world *w, const char *job);
void report(struct world *w, const char *alloc_id, const char *status);

#define CALL(w, id, type, req) CALL_WITH(w, id, type, req, NULL)
#define NODE_CALL(w, id, type, req) CALL_WITH(w, id, type, req, &as_node)
#define CALL_WITH(w, id, type, req, env)                                         \
    ({                                                                 \
        const struct type *_r = call_with((w), (id), (req), (env));                \
        ck_assert_msg(_r != NULL, "%s: %s", #id, (w)->err.text);       \
        _r;                                                            \
    })

#endif
