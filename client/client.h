/* SPDX-License-Identifier: Apache-2.0
 *
 * The client role of an agent: registers the node, keeps it alive with heartbeats, runs the
 * allocations assigned to it, and answers questions about their files, logs and use of resources.
 * It reaches servers only through a struct rpc_client and starts processes only through a struct
 * warden_client.
 *
 * Thread: everything here is called on the loop's thread, and every callback comes there, exactly
 * once and never from inside the call that asked for it. Strings and objects handed to a callback
 * are valid during the call only. All sizes in bytes, all times in nanoseconds.
 *
 * Survives: `kill -9` at any instant. What is to be done is written to the local state before it is
 * done, launches are idempotent by allocation and task, and running tasks are adopted at start.
 */
#ifndef PADDOCK_CLIENT_CLIENT_H
#define PADDOCK_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/api.h"
#include "client/config.h"
#include "client/io/exec.h"
#include "client/io/fs.h"
#include "client/io/stats.h"
#include "client/io/stream.h"
#include "client/limits.h"
#include "common/err.h"

struct loop;
struct rpc_client;
struct warden_client;
struct client;

/* Opens the local state, makes or reads the node's id. `servers` and `warden` are borrowed and must
 * outlive the client; `warden` NULL: no task can start (drivers are reported as not detected). */
struct client *client_new(struct loop *loop, const struct client_config *cfg,
                          struct rpc_client *servers, struct warden_client *warden, struct err *e);
/* Restores allocations, adopts living tasks, registers. Returns at once; trouble with servers is
 * retried for ever and logged. */
int client_start(struct client *c, struct err *e);
/* Stops talking to servers; tasks keep running unless cfg.stop_tasks. `done` comes when nothing of
 * the client is left on the loop; then client_free. */
void client_stop(struct client *c, void (*done)(void *arg), void *arg);
void client_free(struct client *c);
/* The warden has another policy: what the node says of drivers and isolation follows it. */
void client_reload(struct client *c);
/* Takes metadata and reserved resources from `agent`, and the blocks that drivers read from
 * `plugins`, both copied; NULL: they stay. What the node says follows. */
void client_configure(struct client *c, const struct agent_client *agent,
                      const struct agent_config *plugins);

/* Asks the servers to drain this node, again until one agrees, and waits until the drain is over:
 * every allocation has ended (of system jobs too, unless ignored). Deadlines of the spec: > 0: what
 * is left then is ended; 0: none; < 0: at once. `done` with an error when a server refused, when it
 * took longer than the deadline and the time that tasks have to end, or when the client is stopped;
 * the node stays draining then. One at a time. e NULL: done. */
void client_drain(struct client *c, const struct drain_spec *spec, client_done *done, void *arg);

const char *client_node_id(const struct client *c);
/* The node as it was last registered; owned by the client, valid until the next loop turn. */
const struct node *client_node(const struct client *c);

/* For agent-info, agent/self and metrics. */
struct client_info {
    const char *node_id;
    const char *known_servers; /* comma list as the servers told it, "" before */
    int64_t heartbeat_ttl_ns;  /* 0 before registration */
    int64_t last_heartbeat_ns; /* since the last successful heartbeat; -1: none yet */
    uint64_t allocs;           /* all known allocations */
    uint64_t allocs_running;
    uint64_t allocs_pending;
    uint64_t allocs_terminal;
    uint64_t tasks_running; /* of all known allocations */
    uint64_t tasks_pending;
    uint64_t tasks_dead;
    bool registered;
};
void client_info(const struct client *c, struct client_info *ret);

/* The servers to ask, "ip:port" each, until the servers tell others. -ERR_INVALID: one is no
 * address; nothing changed. */
int client_set_servers(struct client *c, const struct str_list *servers, struct err *e);

/* --- dynamic metadata --- */
/* The metadata that holds, the part set at run time, and that of the configuration; owned by ctx.
 */
struct node_meta_response *client_meta(const struct client *c, const void *ctx);

/* Tells the identity of the node, as servers have signed it; renew: anew. */
void client_identity(struct client *c, bool renew, client_identity_done *done, void *arg);

bool client_has_alloc(const struct client *c, const char *alloc_id);
/* Borrowed; NULL: it is not here. */
const char *client_alloc_namespace(const struct client *c, const char *alloc_id);
/* Says why an allocation is not here, in words that follow a colon; owned by ctx. */
char *client_gone_words(const struct client *c, const void *ctx, const char *alloc_id);
/* Borrowed; NULL: the task, or its allocation, is not here. */
const char *client_task_driver(const struct client *c, const char *alloc_id, const char *task);
bool client_has_task(const struct client *c, const char *alloc_id, const char *task);
/* Returns an action of a task of the job; borrowed. NULL: the job, the task or the action is not
 * what the allocation has. */
const struct action *client_task_action(const struct client *c, const char *alloc_id,
                                        const char *job, const char *task, const char *action);

/* --- operations on allocations: `e` NULL means done. --- */
/* `task` NULL or "": every running main task; `all_tasks`: also those that are dead already. */
void client_alloc_restart(struct client *c, const char *alloc_id, const char *task, bool all_tasks,
                          client_done *done, void *arg);
/* `signal`: "SIGUSR1", "USR1" (any case) or a number. `task` NULL or "": all running tasks. */
void client_alloc_signal(struct client *c, const char *alloc_id, const char *task,
                         const char *signal, client_done *done, void *arg);
/* Stops the processes of a task where they are, or lets them go on. As client_alloc_signal(). */
void client_alloc_pause(struct client *c, const char *alloc_id, const char *task, bool on,
                        client_done *done, void *arg);
/* Removes one terminal allocation's directory and state; ERR_CONFLICT when it is not terminal. */
void client_alloc_gc(struct client *c, const char *alloc_id, client_done *done, void *arg);
/* All terminal allocations of the node. */
void client_gc(struct client *c, client_done *done, void *arg);

/* `meta`: a map of strings, which set, and nulls, which unset. Done when it is durable; the node is
 * registered again. */
void client_meta_apply(struct client *c, const struct value *meta, client_done *done, void *arg);

/* Returns the results of the checks of an allocation's services, valid until the next turn of the
 * loop; NULL: it is not here. */
const struct check_result_list *client_alloc_checks(const struct client *c, const char *alloc_id);

/* --- statistics: quick reads of /proc and cgroup files, answered at once --- */
/* `task` NULL or "": all tasks. What the kernel does not tell is absent from `Measured`. */
int client_alloc_stats(struct client *c, const void *ctx, const char *alloc_id, const char *task,
                       struct alloc_resource_usage **ret, struct err *e);
/* Every allocation that has not ended. */
typedef void client_alloc_fn(void *arg, const struct allocation *a);
void client_each_live(struct client *c, client_alloc_fn *fn, void *arg);
/* ... with the number of its services' registrations that are to be known to the servers. */
typedef void client_services_fn(void *arg, const struct allocation *a, size_t registered,
                                const struct check_result_list *checks);
void client_each_services(struct client *c, client_services_fn *fn, void *arg);
/* Every task that runs here; without the statistics of its single processes. */
void client_each_usage(struct client *c, client_usage_fn *fn, void *arg);
struct host_stats *client_host_stats(struct client *c, const void *ctx);

/* --- files --- */
/* Paths are relative to the allocation's directory ("alloc/logs", "web/local/x"); a leading '/' is
 * taken off; the secrets and private directories answer ERR_FORBIDDEN. The warden opens beneath. */
/* A directory's entries, or (`stat`) one element. */
void client_fs(struct client *c, const char *alloc_id, const char *path, bool stat,
               client_files_done *done, void *arg);

void client_stream_open(struct client *c, const struct client_stream_request *req,
                        client_stream_opened *opened, void *arg);
/* --- commands in running tasks --- */
/* Never NULL: what is wrong comes as `failed`. `events` is borrowed, until client_exec_free(). The
 * owner frees it, any time, also in an event and after the last one; a process running then is
 * killed with all of its session. Before client_stop() is done, all are freed: they fail when the
 * client stops. */
struct client_exec *client_exec_open(struct client *c, const char *alloc_id,
                                     const struct client_exec_request *req,
                                     const struct client_exec_events *events, void *arg);

#endif
