/* SPDX-License-Identifier: Apache-2.0
 *
 * The fleet simulator: many clients in one process and on one loop, which speak to servers as
 * unmodified agents do (Node.Register, UpdateStatus, GetClientAllocs, UpdateAlloc, Alloc.GetAllocs)
 * and run nothing.
 *
 *   main.c     options, the order of start, the end
 *   facts.c    what a node registers, by seed and number
 *   client.c   a client: registration, heartbeats
 *   sync.c     ... what it is to run, and its reports
 *   spec.c     what is kept of a job
 *   driver.c   the mock driver: when a task runs, how it ends
 *   control.c  the control socket
 *   stats.c    what is measured, and printed
 *   events.c   the list of what the simulator decided
 *
 * What is decided (a node's facts and address, its first delay, latency, life and end of the n-th
 * run of an allocation's name, which nodes a command hits) comes from the seed alone, whatever the
 * servers answer when. What is simulated no further: the tasks of an allocation start and end
 * together, a task that fails fails its allocation (no restarts), checks always pass, and nobody
 * can be asked for logs or files.
 */
#ifndef PADDOCK_BENCH_FLEET_FLEET_H
#define PADDOCK_BENCH_FLEET_FLEET_H

#include <stdio.h>

#include "api/api.h"
#include "common/hash.h"
#include "common/uuid.h"
#include "net/rpc.h"
#include "net/tls/tls.h"

struct range {
    int64_t min, max;
};

struct options {
    const char *servers; /* "host:port", with commas between */
    int64_t nodes, share, seed, starting;
    int64_t cpu, memory, disk, vary;     /* MHz, MB, MB, percent */
    int64_t racks, classes, datacenters; /* 0: none, none, one */
    int64_t cores, numa, devices;        /* of each node */
    const char *drivers, *pool;
    struct range start_ms, life_ms, stop_ms; /* of tasks; life 0: for ever */
    int64_t fail, start_fail;                /* percent of runs */
    const char *control, *events;
    const char *pki; /* directory of nomad-agent-ca.pem and global-client-nomad.pem; NULL: plain */
    int64_t run_ns; /* 0: until told */
    bool json;
};

enum sim_state {
    SIM_OFF,    /* not started yet */
    SIM_ON,     /* kept alive */
    SIM_KILLED, /* the machine is off, tasks and all */
    SIM_PAUSED, /* the agent is stopped: its connection stays, its tasks go on */
    SIM_CUT     /* no network: the agent tries in vain, its tasks go on */
};

enum run_state { RUN_PENDING, RUN_RUNNING, RUN_KILLING, RUN_COMPLETE, RUN_FAILED };

/* The part that is kept of one version of a job; shared by its allocations. */
struct spec {
    char *key; /* namespace, id, index */
    const char *ns, *id;
    uint64_t job_modify_index;
    bool per_node; /* system, sysbatch: each node has an allocation of the same name */
    struct spec_group {
        const char *name;
        struct str_list tasks;
        int64_t min_healthy_ms; /* < 0: no deployments */
        bool mock;              /* its first task says how it runs: */
        int64_t run_ms, block_ms, exit_code;
        const char *start_error;
    } * groups;
    size_t n_groups, refs;
    UT_hash_handle hh;
};

struct sim_alloc {
    uint8_t id[16];
    struct sim *node;
    struct spec *spec;
    const struct spec_group *group;
    struct timer *timer; /* start, end of life, end of the kill, health */
    uint64_t server_index;
    int64_t created_ns, started_ns, finished_ns; /* wall */
    uint8_t state, told;                         /* enum run_state */
    bool counted;                                /* in n_told */
    bool dirty, in_flight, deployment, healthy, unhealthy, measured, start_fails;
    uint8_t exit_code;
    int64_t life_ms, stop_ms;
    int64_t ends_ms; /* of the loop; 0: never */
};

struct sim {
    struct fleet *fleet;
    struct timer *beat_timer, *list_timer, *update_timer;
    uint64_t beat_call, register_call, list_call, update_call, fetch_call;
    uint64_t index; /* of the last list */
    int64_t list_sent_ms;
    int64_t listed; /* allocations in it, plus one; 0: none yet */
    int64_t beat_sent_ns, ttl_ms, on_wall_ns;
    int64_t due_ms;      /* of the heartbeat's timer */
    int64_t answered_ms; /* the last heartbeat; of the loop, as joined_ms: the first one; 0: none */
    int64_t joined_ms;
    uint64_t node_index;   /* the node's, as the last heartbeat was told */
    uint64_t joined_index; /* what it missed before that is forgiven */
    struct fetch *fetch;
    struct sim_alloc **allocs; /* by id */
    uint32_t n_allocs, number;
    uint8_t state;
    bool starting, registered, update_posted, beat_after_report, was_down;
    uint16_t backoff_ms;
};

enum { HIST_STEPS = 16, HIST_BUCKETS = 44 * HIST_STEPS };

/* Microseconds, to 6 percent. */
struct histogram {
    uint64_t v[HIST_BUCKETS];
    uint64_t n, max;
};

struct stats {
    struct histogram beat, beat_own, placed, report, signing;
    uint64_t beats, beats_failed, misses, wrong_down, registered, runs, ended, failed, reports,
        lists, received, signed_, unsigned_;
    int64_t mark_ns, first_created_ns, last_created_ns, last_running_ns; /* wall, since the mark */
};

struct fleet {
    struct loop *loop;
    struct options opt;
    struct str_list servers;
    struct tls *tls; /* NULL: plain; owned */
    struct rpc_client **conns, *own;
    struct sim *sims;
    struct spec *specs;
    struct run_count *runs;
    struct events *events;
    struct control *control;
    struct stats stats;
    size_t next, starting; /* to be started; under way */
    size_t n_joined, n_on, n_running, n_allocs;
    size_t n_told; /* running, and a server knows */
    struct timer *end;
    uint64_t n_commands;
    int64_t rss_before_kb, rss_joined_kb, start_ns, joined_ns;
    bool quit, stopping;
};

/* --- facts.c --- */
uint64_t mix(uint64_t a, uint64_t b);
/* Picks a number of [min, max]. */
int64_t pick(const struct range *r, uint64_t chance);
void sim_id(const struct sim *s, char out[UUID_TEXT]);
void sim_secret(const struct sim *s, char out[UUID_TEXT]);
void sim_address(const struct sim *s, char out[16]);
const char *sim_rack(const struct sim *s, char out[32]); /* "": none */
const char *sim_class(const struct sim *s, char out[32]);
const char *sim_datacenter(const struct sim *s, char out[32]);
struct node *facts_of(const void *ctx, const struct sim *s);
void facts_tell(const struct sim *s); /* to the list of events */

/* --- client.c --- */
void sim_start(struct sim *s);
void sim_kill(struct sim *s);
void sim_pause(struct sim *s);
void sim_cut(struct sim *s);
void sim_rejoin(struct sim *s);
void sim_stop(struct sim *s); /* for good; nothing of it is left on the loop */
void sim_beat_in(struct sim *s, int64_t ms);
struct rpc_client *sim_conn(struct sim *s);
/* How servers are dialled, from that address; NULL: any. */
struct dialer fleet_dialer(const struct fleet *f, const char *from);
int64_t sim_backoff(struct sim *s);

void fleet_joined(struct fleet *f); /* main.c: one more is under way no longer */
void fleet_quit(struct fleet *f);
/* Asks a server for all nodes that it calls down: those kept alive are wrong. */
void fleet_check(struct fleet *f, loop_fn *done, void *arg);

/* --- sync.c --- */
void sync_go(
    struct sim *s); /* asks for the list, tells what is to be told; from the first heartbeat on */
void sync_stop(struct sim *s);
void sync_dirty(struct sim_alloc *a);
bool sync_all_dirty(struct sim *s); /* false: there is nothing to report */
void sync_drop_all(struct sim *s);
void alloc_uuid(const struct sim_alloc *a, char out[UUID_TEXT]);

/* --- identity.c --- */
/* Asks for an identity of each allocation that runs; returns how many those are. */
size_t fleet_identities(struct fleet *f);

/* --- spec.c --- */
struct spec *spec_of_job(struct fleet *f, const struct job *j);
struct spec *spec_find(struct fleet *f, const char *ns, const char *id, uint64_t index);
void spec_unref(struct fleet *f, struct spec *s);

/* --- driver.c --- */
void driver_start(struct sim_alloc *a, const char *name); /* calls sync_dirty() at each change */
void driver_look(struct sim_alloc *a);                    /* it may belong to a deployment now */
void driver_kill(struct sim_alloc *a);
void driver_drop(struct sim_alloc *a); /* it is forgotten */
void driver_done(struct fleet *f);

/* --- control.c --- */
int control_open(struct fleet *f, const char *path, struct err *e);
void control_close(struct fleet *f);

/* --- stats.c --- */
void hist_add(struct histogram *h, int64_t us);
int64_t hist_at(const struct histogram *h, double share); /* us */
void stats_mark(struct fleet *f);
int64_t rss_kb(void);
void stats_print(struct fleet *f, FILE *out, bool json);
void stats_wrong_down(struct sim *s, const char *how);

/* --- events.c --- */
void events_add(struct fleet *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void events_digest(const struct fleet *f, uint64_t *ret_n, uint64_t *ret_digest);
int events_write(struct fleet *f, const char *path); /* and forgets them */

#endif
