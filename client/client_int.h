/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of client/: the objects that its files share. Everything lives on the loop thread.
 *
 *   struct client          one
 *   struct alloc_runner    one per allocation known here, in a hash by id
 *   struct task_runner     one per task of it, an array in the alloc runner
 *
 * Whoever starts something asynchronous for an alloc runner calls alloc_runner_hold, and
 * alloc_runner_release in the completion; a runner is freed when it is doomed and nobody holds it.
 */
#ifndef PADDOCK_CLIENT_CLIENT_INT_H
#define PADDOCK_CLIENT_CLIENT_INT_H

#include "client/limits.h"
#include "common/hash.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/alloc/alloc_sm.h"
#include "client/client.h"
#include "client/local.h"
#include "common/num.h"
#include "drivers/driver.h"
#include "isolation/bpf/read.h"
#include "isolation/launch/client.h"
#include "net/loop.h"
#include "net/rpc.h"

enum {
    CLIENT_BATCH_NS = 200 * 1000 * 1000, /* reports without a new status wait so long */
    CLIENT_LINK_RETRY_MS = 50,           /* to the warden: doubled */
    CLIENT_LINK_RETRY_MAX_MS = 1000,
    CLIENT_GC_RETRY_MS = 2000,   /* an allocation's directory was not removed */
    CLIENT_AGAIN_MS = 20,        /* the warden is busy with a task */
    CLIENT_LINK_FIRST_MS = 2000, /* registration waits so long for the warden */
    CLIENT_RETRY_MIN_MS = 500,   /* calls to servers: doubled, jittered */
    CLIENT_RETRY_MAX_MS = 15 * 1000
};

struct alloc_runner;

struct cpu_sample {
    int64_t wall_ns;
    int64_t user_us;
    int64_t system_us;
    double user_pct; /* of the last interval that was long enough */
    double system_pct;
};

struct task_runner {
    struct alloc_runner *ar;
    const struct task *task;     /* in ar->rec->alloc->job */
    const struct driver *driver; /* NULL: not in this build */
    struct task_sm sm;
    struct timer *timer;
    struct timer *again; /* the warden is busy with the task: ask soon */
    struct watch *watch; /* of `ended` */
    int ended;
    int cgroup;
    int record;
    bool clean;             /* the warden has no record of an earlier launch */
    bool launching;         /* the launch chain is under way */
    bool persisted;         /* its intent is durable */
    bool asked;             /* a request that decides the launch is out */
    bool want_adopt;        /* the warden could not be asked: do it when it is back */
    bool want_kill;         /* ... nor told to signal or kill */
    bool want_clean;        /* ... nor to forget what has ended */
    bool want_resize;       /* ... nor told of new limits */
    bool limits_new;        /* an update changed them: say so */
    char *limits_told;      /* which of them do not hold: the last event of that; NULL: none */
    struct driver_sim *sim; /* mock driver: instead of a process */
    struct timer *sim_timer;
    bool sim_killed;
    struct cpu_sample cpu;
    struct pressure_watch *pressure; /* task/limits.c: three, where the job wants to know; else NULL */
    struct timer *denied_timer; /* task/limits.c: looks for system calls that were denied */
    int64_t denied;             /* how many an event told of, in this run */
    int64_t denied_ns;          /* ... and when; 0: never */
    uint64_t cgroup_id; /* of its leaf; 0: not read yet */
    size_t counters_at; /* bpf_read_net */
    size_t runs_at;     /* bpf_read_run */
    size_t blocks_at;   /* bpf_read_block */
};

enum dirs_state { DIRS_NONE, DIRS_ASKED, DIRS_READY, DIRS_FAILED };

struct alloc_runner {
    UT_hash_handle hh;
    struct client *c;
    char id[UUID_TEXT];
    struct client_alloc *rec; /* a talloc context of its own */
    const struct task_group *tg;
    struct task_runner *tasks;
    size_t n;
    enum dirs_state dirs;
    char dirs_error[256];
    bool dirs_again; /* may succeed when it is tried again */
    struct timer *dirs_timer; /* the warden was busy: they are asked for again */
    int64_t dirs_backoff_ms;
    bool stepping;
    bool again;
    bool removed;    /* the server does not know it any more */
    bool collecting; /* its directory is being removed */
    bool doomed;
    bool stopped; /* the agent goes down: no more callbacks act */
    unsigned held;
    /* reports */
    const char *status;
    const char *description;
    bool dirty;
    bool in_flight;
    uint64_t sent;    /* hash of the report that is in flight */
    const char *told; /* status of the last report; a constant */
    int64_t ended_ns; /* when it became terminal; for gc */
    client_done *gc_done;
    void *gc_arg;
    struct alloc_runner *gc_next; /* in the queue of those to destroy */
    bool gc_queued;
    /* network.c */
    bool network_waiting; /* for ports that another allocation has, which is about to end */
    bool network_removing;
    bool network_gone;
    struct timer *network_timer;
};

struct gone { /* collected here, still listed by the server */
    UT_hash_handle hh;
    char id[UUID_TEXT];
    uint64_t index;
    int64_t list_sent_ns;
    uint64_t listed; /* allocations in the last list, plus one; 0: none yet */
};

struct client {
    struct loop *loop;
    struct client_config cfg; /* strings owned */
    struct rpc_client *rpc;
    struct warden_client *warden;
    struct state *state;
    char node_id[UUID_TEXT];
    char secret[UUID_TEXT];
    struct node *node;           /* talloc context of its own */
    struct alloc_runner *allocs; /* hash */
    struct gone *gone;           /* hash */
    bool stopping;
    bool quitting; /* dev: tasks are being ended */
    struct timer *quit_timer;
    void (*stop_done)(void *arg);
    void *stop_arg;
    bool stop_posted;
    unsigned held; /* operations without an alloc runner */
    /* link.c */
    struct watch *link_watch;
    struct timer *link_timer;
    int64_t link_retry_ms;
    bool link_up;
    int64_t link_since_ns; /* monotonic */
    bool link_info;       /* the warden's info was asked for and came */
    int64_t link_refused; /* the version of its protocol that was complained of */
    bool sweeping;
    struct timer *gc_retry_timer;
    bool warden_root;
    bool warden_raw_exec; /* its policy allows it */
    char *warden_missing;
    char *warden_cgroup;
    char *warden_bridge; /* of network mode bridge; where the fact "bridge" is true */
    struct str_map *warden_facts; /* what works here, and why not; a context of its own */
    struct bpf_read counters;     /* what tasks send and receive, their processes and disks do */
    int keep[WARDEN_KEEP];        /* kept open for the warden: isolation/bpf/rows.h; -1 */
    /* register.c */
    bool started;
    bool registered;
    bool registering;
    struct timer *register_timer;
    struct timer *heartbeat_timer;
    uint64_t register_call;
    uint64_t heartbeat_call;
    int64_t ttl_ns;
    int64_t last_heartbeat_ns; /* monotonic; 0: none */
    int64_t backoff_ms;
    char *known_servers;
    bool beat_after_report;
    bool fingerprint_changed;
    /* sync.c */
    bool syncing;
    uint64_t list_call;
    uint64_t get_call;
    struct fetch *fetch; /* what the list said is new, NULL: nothing */
    uint64_t refuse_call;
    uint64_t update_call;
    uint64_t index;
    int64_t list_sent_ns;
    uint64_t listed; /* allocations in the last list, plus one; 0: none yet */
    struct timer *list_timer;
    struct timer *update_timer;
    bool update_posted;
    int64_t update_backoff_ms;
    int64_t list_backoff_ms;
    size_t adopting;          /* tasks whose fate at restart is not known yet */
    struct client_meta *meta; /* meta.c: NULL while nothing was set at run time */
    bool meta_busy;
    struct node_drain *drain;      /* drain.c: NULL but during one */
    struct host_cpus *host_cpus;   /* stats.c */
    struct client_stream *streams; /* stream.c: all open ones */
    size_t n_streams;
    struct client_exec *execs; /* exec.c: all that are not freed */
    size_t n_execs;
    /* gc.c */
    struct alloc_runner *gc_first, **gc_last; /* waiting to be destroyed */
    int64_t gc_running;
    size_t gc_waiting; /* length of that queue */
    bool gc_behind;    /* it was too long: what is new waits for its directories */
    struct timer *gc_timer;
    bool gc_looking; /* a worker measures the disk */
    bool gc_full;    /* it was too full: measure again after the next one is gone */
};

/* link.c: the connection to the warden. */
void link_start(struct client *c);
void link_stop(struct client *c);
void link_drop(struct client *c); /* what is kept open for the warden */

/* register.c */
void register_start(struct client *c); /* idempotent; also after a change of the fingerprint */
void register_stop(struct client *c);
void register_beat_now(struct client *c);

/* sync.c */
void sync_start(struct client *c);
void sync_stop(struct client *c);
void sync_dirty(struct client *c, struct alloc_runner *ar);
void sync_all_dirty(struct client *c); /* a full report */
int64_t client_backoff(int64_t *backoff_ms);
void sync_fetched(struct client *c, const struct err *e); /* e NULL: all is here */

/* fetch.c: one at a time; sync_fetched() comes at its end. */
struct fetch *fetch_new(struct client *c);
void fetch_add(struct fetch *f, const char *id, uint64_t index);
void fetch_start(struct fetch *f);

/* alloc_runner.c */
struct alloc_runner *alloc_runner_find(const struct client *c, const char *id);
/* A new allocation from the server; cloned. */
void alloc_runner_add(struct client *c, const struct allocation *a);
/* From the local state, before anything else runs: steals. */
void alloc_runner_restore(struct client *c, struct client_alloc *rec, struct client_task **tasks,
                          size_t n);
void alloc_runner_resume(struct alloc_runner *ar); /* adopt, start, kill */
void alloc_runner_update(struct alloc_runner *ar, const struct allocation *a);
/* The server purged it: end it, then forget it. */
void alloc_runner_remove(struct alloc_runner *ar);
void alloc_runner_stop(struct alloc_runner *ar);
void alloc_runner_changed(struct alloc_runner *ar); /* a task's state changed: take a step */
bool alloc_runner_terminal(const struct alloc_runner *ar);
/* Removes directory and state of a terminal allocation: gc.c alone, which counts; gc_ended() comes.
 */
void alloc_runner_destroy(struct alloc_runner *ar);
void alloc_runner_hold(struct alloc_runner *ar);
void alloc_runner_release(struct alloc_runner *ar);
void alloc_runner_detach(struct alloc_runner *ar); /* agent goes down: stop timers and watches */
void alloc_runner_link_up(struct alloc_runner *ar);
/* What the server is told; owned by ctx, borrows from the runner. */
struct allocation *alloc_runner_report(const void *ctx, const struct alloc_runner *ar);
struct task_runner *alloc_runner_task(struct alloc_runner *ar, const char *task);
void alloc_runner_need_dirs(struct alloc_runner *ar);

/* Directories, and the network if it has one of its own, are there (`e` NULL) or not. */
void alloc_runner_dirs_done(struct alloc_runner *ar, const struct err *e);

/* network.c */
bool network_own(const struct alloc_runner *ar); /* its group asks for one of its own */
void network_make(struct alloc_runner *ar);      /* alloc_runner_dirs_done() follows */
void network_remove(struct alloc_runner *ar);    /* if it is terminal and not done yet */
void network_stop(struct alloc_runner *ar);

/* task_runner.c */
void task_runner_init(struct task_runner *tr, struct alloc_runner *ar, const struct task *task,
                      struct client_task *record);
void task_runner_configure(struct task_runner *tr, const struct task *task);
void task_runner_done(struct task_runner *tr);
void task_runner_act(struct task_runner *tr, unsigned acts);
void task_runner_resume(struct task_runner *tr);
void task_runner_link_up(struct task_runner *tr); /* what the warden could not be asked */
void task_runner_dirs(struct task_runner *tr);    /* directories are ready or failed */
void task_runner_signal(struct task_runner *tr, int sig, client_done *done, void *arg);

/* task/limits.c */
/* Limits that the warden could not set, as an event; empty: none. */
void task_limits_warn(struct task_runner *tr, const char *warning);
/* The limits of its job for the task that runs. */
void task_limits_resize(struct task_runner *tr);
/* Freezes (`on`), or lets go on, and notes it. */
void task_limits_pause(struct task_runner *tr, int on, client_done *done, void *arg);
/* Events of what it waits for, where its job wants them. */
void task_limits_watch(struct task_runner *tr);
void task_limits_unwatch(struct task_runner *tr);
/* An event, when the record counts more denied system calls than were told. */
void task_limits_denied(struct task_runner *tr, const struct task_record *rec);
/* Before a signal that the task is to obey. */
void task_limits_wake(struct task_runner *tr);
bool task_limits_differ(const struct task *a, const struct task *b);

/* launch.c */
/* The task's user, resolved; "" for the driver's default. */
const char *launch_user(const void *ctx, struct task_runner *tr);
struct launch_spec *launch_spec_build(const void *ctx, struct task_runner *tr, struct err *e);
int launch_simulation(const void *ctx, struct task_runner *tr, struct driver_sim *ret,
                      struct err *e);

/* stats.c: of the task's leaf; 0: none */
uint64_t task_cgroup_id(struct task_runner *tr);
/* The rates since the last sample, or since start_ns, from the sums of time used; wall clock. */
void cpu_sample_add(struct cpu_sample *s, int64_t now_ns, int64_t start_ns, int64_t user_us,
                    int64_t system_us);

/* client.c */
void client_maybe_stopped(struct client *c);
void client_hold(struct client *c);
void client_release(struct client *c);
int64_t client_now_ns(void); /* wall clock */

/* stream.c: a task's state changed; streams that follow its files look again. */
void streams_wake(struct client *c, const char *alloc_id);
void streams_stop(struct client *c); /* ends all; their readers still close them */
/* exec.c: all fail; their owners still free them. */
void execs_stop(struct client *c);
/* fs.c: 0, or an error with a message, for a path of the file API. *ret is the cleaned path. */
int fs_check_path(const void *ctx, const char *path, const char **ret, struct err *e);

/* node.c: fingerprint into c->node. */
void node_build(struct client *c);
/* Much more disk is free than the servers were told of: it was full when the agent started. */
bool node_disk_grew(const struct client *c);

/* meta.c */
int meta_load(struct client *c, struct err *e);
/* Of the configuration and set since, as it is registered. */
void meta_fill(const void *ctx, const struct client *c, struct str_map *ret);

/* drain.c */
void drain_stop(struct client *c);

/* sweep.c: tasks and directories that the warden has and no allocation here owns. */
void sweep_start(struct client *c);

/* gc.c */
void gc_wake(struct client *c);      /* an allocation has ended: look in gc_interval */
void gc_make_room(struct client *c); /* one was added: look now */
void gc_retry(struct client *c);     /* what the servers forgot could not be removed: soon again */
void gc_stop(struct client *c);
/* Destroys a terminal allocation when its turn comes (gc_parallel_destroys). */
void gc_collect(struct alloc_runner *ar, client_done *done, void *arg);
void gc_ended(struct alloc_runner *ar, const struct err *e); /* from alloc_runner_destroy */
void gc_dequeue(struct alloc_runner *ar);
/* More wait to be destroyed than CLIENT_REMOVALS_MAX: make no directory now. alloc_runner_link_up()
 * comes when half of them are gone. */
bool gc_behind(struct client *c);
bool gc_is_gone(const struct client *c, const char *id, uint64_t index);
void gc_note_gone(struct client *c, const char *id, uint64_t index);
void gc_forget(struct client *c, const char *id);

#endif
