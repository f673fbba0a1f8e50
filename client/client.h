/* SPDX-License-Identifier: Apache-2.0
 *
 * The client role of an agent: registers the node, keeps it alive with heartbeats, runs the
 * allocations that the servers assign to it, and answers questions about their files, logs and use of
 * resources. It reaches servers only through a struct rpc_client and starts processes only through a
 * struct warden_client.
 *
 * Thread: everything here is called on the loop's thread, and every callback comes on it, exactly
 * once and never from inside the call that asked for it. Strings and objects handed to a callback are
 * valid during the call only. All sizes in bytes, all times in nanoseconds.
 *
 * Survives: `kill -9` at any instant. What is to be done is written to the local state before it is
 * done, launches are idempotent by allocation and task, and running tasks are adopted at start.
 */
#ifndef PADDOCK_CLIENT_CLIENT_H
#define PADDOCK_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/api.h"
#include "client/limits.h"
#include "common/err.h"

struct loop;
struct rpc_client;
struct warden_client;
struct client;

/* Copied by client_new. NULL strings and zeros take the default in brackets. */
struct client_config {
    const char *state_dir;  /* node id, secret and the state database; made 0700; required */
    const char *alloc_dir;  /* host path of the allocation directories (the warden's); required */
    const char *name;       /* node name [host name] */
    const char *region;     /* [global] */
    const char *datacenter; /* [dc1] */
    const char *node_class;
    const char *node_pool;  /* [default] */
    const char *http_addr;  /* advertised "ip:port" of this agent's HTTP API */
    struct str_map meta;
    struct str_map options; /* client.options of the agent configuration */
    const char *network_interface;     /* [interface of the default route; lo with `dev`] */
    int64_t network_speed;             /* Mbit/s [detected or 1000] */
    int64_t cpu_total_compute;         /* MHz [detected] */
    int64_t memory_total_mb;           /* [detected] */
    int64_t disk_total_mb;             /* [detected] */
    int64_t min_dynamic_port;          /* [20000] */
    int64_t max_dynamic_port;          /* [32000] */
    struct node_reserved_resources *reserved;
    int64_t max_kill_timeout_ns;       /* [30 s] */
    int64_t gc_max_allocs;             /* beyond so many the oldest that ended goes [50] */
    int64_t gc_interval_ns;            /* how soon after an end to look at that and the disk [1 min] */
    int64_t gc_parallel_destroys;      /* [2] */
    double gc_disk_usage_threshold;    /* percent of the file system of alloc_dir [80] */
    double gc_inode_usage_threshold;   /* [70] */
    int64_t node_max_allocs;           /* 0: unlimited */
    bool dev;              /* loopback fingerprint */
    bool stop_tasks;       /* client_stop ends all tasks and removes their directories (-dev) */
    bool default_ineligible;
    const char *version;   /* our own version, e.g. "0.1.0" */
};

/* Opens the local state, makes or reads the node's id. `servers` and `warden` are borrowed and must
 * outlive the client; `warden` NULL: no task can start (drivers are reported as not detected). */
struct client *client_new(struct loop *loop, const struct client_config *cfg,
                          struct rpc_client *servers, struct warden_client *warden, struct err *e);
/* Restores allocations, adopts living tasks, registers. Returns at once; trouble with servers is
 * retried for ever and logged. */
int client_start(struct client *c, struct err *e);
/* Stops talking to servers; tasks keep running unless cfg.stop_tasks. `done` comes when nothing of the
 * client is left on the loop; then client_free. */
void client_stop(struct client *c, void (*done)(void *arg), void *arg);
void client_free(struct client *c);
/* The warden has another policy: what the node says of drivers and isolation follows it. */
void client_reload(struct client *c);

/* Asks the servers to drain this node, again until one agrees, and waits until the drain is over: every
 * allocation has ended (of system jobs too, unless ignored). Deadlines of the spec: > 0: what is left
 * then is ended; 0: none; < 0: at once. `done` with an error when a server refused, when it took longer
 * than the deadline and the time that tasks have to end, or when the client is stopped; the node stays
 * draining then. One at a time. e NULL: done. */
typedef void client_done(void *arg, const struct err *e);
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
    bool registered;
};
void client_info(const struct client *c, struct client_info *ret);

/* --- dynamic metadata ------------------------------------------------------------------------- */
/* What holds, what was set at run time, and what the configuration says; owned by ctx. */
struct node_meta_response *client_meta(const struct client *c, const void *ctx);

bool client_has_alloc(const struct client *c, const char *alloc_id);
bool client_has_task(const struct client *c, const char *alloc_id, const char *task);

/* --- operations on allocations: `e` NULL means done. ------------------------------------------- */
/* `task` NULL or "": every running main task; `all_tasks`: also those that are dead already. */
void client_alloc_restart(struct client *c, const char *alloc_id, const char *task, bool all_tasks,
                          client_done *done, void *arg);
/* `signal`: "SIGUSR1", "USR1" (any case) or a number. `task` NULL or "": all running tasks. */
void client_alloc_signal(struct client *c, const char *alloc_id, const char *task, const char *signal,
                         client_done *done, void *arg);
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

/* --- statistics: quick reads of /proc and cgroup files, answered at once ----------------------- */
/* `task` NULL or "": all tasks. What the kernel does not tell is absent from `Measured`. */
int client_alloc_stats(struct client *c, const void *ctx, const char *alloc_id, const char *task,
                       struct alloc_resource_usage **ret, struct err *e);
/* Every allocation that has not ended. */
typedef void client_alloc_fn(void *arg, const struct allocation *a);
void client_each_live(struct client *c, client_alloc_fn *fn, void *arg);
/* Every task that runs here; without the statistics of its single processes. */
typedef void client_usage_fn(void *arg, const struct allocation *a, const char *task,
                             const struct resource_usage *u);
void client_each_usage(struct client *c, client_usage_fn *fn, void *arg);
int client_host_stats(struct client *c, const void *ctx, struct host_stats **ret, struct err *e);

/* --- files -------------------------------------------------------------------------------------- */
/* Paths are relative to the allocation's directory ("alloc/logs", "web/local/x"); a leading '/' is
 * taken off; the secrets and private directories answer ERR_FORBIDDEN. The warden opens beneath. */
typedef void client_files_done(void *arg, const struct err *e, const struct alloc_files *files);
void client_fs_ls(struct client *c, const char *alloc_id, const char *path, client_files_done *done,
                  void *arg);
/* One element. */
void client_fs_stat(struct client *c, const char *alloc_id, const char *path, client_files_done *done,
                    void *arg);

/* A byte stream for an HTTP body, pulled: the reader asks until -EAGAIN, and is told by `ready`, once
 * per -EAGAIN, that asking again makes sense. */
struct client_stream;

enum client_stream_kind {
    CLIENT_STREAM_FILE, /* cat, readat: raw bytes of one file, ends at its end or after `limit` */
    CLIENT_STREAM_FRAMES, /* fs/stream: frames {Offset, Data, File, FileEvent} of one file */
    CLIENT_STREAM_LOGS    /* fs/logs: all rotated files of a task's stdout or stderr, in order */
};

struct client_stream_request {
    enum client_stream_kind kind;
    const char *alloc_id;
    const char *path;     /* FILE, FRAMES */
    const char *task;     /* LOGS */
    const char *log_type; /* LOGS: "stdout" or "stderr" */
    int64_t offset;       /* from `origin`; from the end it counts backwards */
    bool from_end;        /* origin=end */
    int64_t limit;        /* FILE: at most this many bytes, 0: all; FRAMES: 0: all */
    bool follow;          /* FRAMES, LOGS: wait for more; ends when the task is dead and all is read */
    bool plain;           /* LOGS: raw bytes instead of frames */
};

/* `s` is owned by the receiver, who closes it. */
typedef void client_stream_opened(void *arg, const struct err *e, struct client_stream *s);
void client_stream_open(struct client *c, const struct client_stream_request *req,
                        client_stream_opened *opened, void *arg);
/* > 0: that many bytes; 0: the end; -EAGAIN: nothing now, `ready` will be called once; else -error. */
ssize_t client_stream_read(struct client_stream *s, void *buf, size_t n,
                           void (*ready)(void *arg), void *arg);
/* Any time, also with a `ready` outstanding (it will not come any more). */
void client_stream_close(struct client_stream *s);

/* --- commands in running tasks ----------------------------------------------------------------- */
/* A session: a process that joins a running task, with the task's user, confinement and environment. */
struct client_exec;

/* Copied. */
struct client_exec_request {
    const char *task;        /* NULL or "": the only one that runs */
    struct str_list command; /* at least one; looked for as a task's command is */
    bool tty;                /* a terminal of its own: everything it writes is stream 1 */
    int64_t rows, columns;   /* of the terminal; 0: not known */
};

/* `exited` or `failed` is the last one, once; `failed` may be the only one. Events come on the loop,
 * never from inside a call of the owner's. */
struct client_exec_events {
    /* At most CLIENT_EXEC_CHUNK bytes of stream 1 (standard output) or 2; not while paused. */
    void (*output)(void *arg, int stream, const void *data, size_t n);
    void (*closed)(void *arg, int stream); /* the end of that stream */
    void (*writable)(void *arg);           /* after client_exec_write() returned -EAGAIN */
    void (*exited)(void *arg, int code, int signal); /* everything it wrote has been delivered */
    void (*failed)(void *arg, const struct err *e);
};

/* Never NULL: what is wrong comes as `failed`. `events` is borrowed, until client_exec_free(). The
 * owner frees it, any time, also in an event and after the last one; a process that runs then is
 * killed with what it started in its session. Before client_stop() is done, all are freed: they fail
 * when the client stops. */
struct client_exec *client_exec_open(struct client *c, const char *alloc_id,
                                     const struct client_exec_request *req,
                                     const struct client_exec_events *events, void *arg);
/* To its standard input; may be called before it has started. 0: go on; -EAGAIN: taken, but stop
 * until `writable`; -ERR_LIMIT: not taken, since CLIENT_EXEC_INPUT_MAX bytes wait already. What the
 * process does not want to read any more is dropped. */
int client_exec_write(struct client_exec *x, const void *data, size_t n);
/* The end of its input, after what was written. With a terminal: its end-of-file character. */
void client_exec_close_input(struct client_exec *x);
void client_exec_resize(struct client_exec *x, int64_t rows, int64_t columns);
/* No `output` while on: the process waits once its pipe is full. */
void client_exec_pause(struct client_exec *x, bool on);
void client_exec_free(struct client_exec *x);

#endif
