/* SPDX-License-Identifier: Apache-2.0
 *
 * Task drivers. A driver turns a task and its (interpolated) configuration into a launch spec,
 * pure, no I/O; or it has an engine that runs tasks. What it must know of the host comes in as
 * `struct driver_host` and `struct driver_input`.
 *
 * Adding one: a row of api/drivers.h, a file here with its `const struct driver`, its options in
 * paddock-drivers(7).
 */
#ifndef PADDOCK_DRIVERS_DRIVER_H
#define PADDOCK_DRIVERS_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "api/drivers.h"
#include "common/err.h"

struct cgroup_stats;
struct loop;

enum {
    DRIVER_RESOLV_MAX = 4096, /* bytes of a task's resolv.conf */
};

enum driver_option_kind {
    DRIVER_STRING,
    DRIVER_STRINGS, /* list of strings */
    DRIVER_WORDS,   /* a string, or a list of strings */
    DRIVER_INT,
    DRIVER_BOOL,
    DRIVER_DURATION, /* "5s" or ns */
    DRIVER_MAP,      /* names and texts, numbers or booleans; in job files also a block of them */
    DRIVER_BLOCKS    /* any number of blocks, or a list of maps; `keys` names what may be in each */
};

struct driver_option {
    const char *name;
    enum driver_option_kind kind;
    bool required;
    bool later;              /* known, no effect yet: refused by name */
    const char *why;         /* refused by name, because of this; NULL: it is not */
    const char *const
        *keys; /* of DRIVER_BLOCKS, and of a DRIVER_MAP that is bounded; ends with NULL */
};

/* Facts that decide whether a driver can work here. */
struct driver_host {
    bool root;      /* the warden runs as root */
    bool warden;    /* there is a warden */
    bool cgroup2;   /* a cgroup2 mount is there */
    bool raw_exec;  /* the operator allows it */
    const char *missing; /* what the warden's probe lacks for exec; NULL: nothing */
    bool kvm;            /* tasks can have /dev/kvm */
    bool engine_on;      /* the driver's engine is turned on */
    const struct hand_info *engine; /* what it said; NULL: nothing yet */
    const struct str_map
        *runtime; /* attributes of the program that the driver runs; NULL: not here */
};

struct driver_port { /* of the group, or of the task's own network */
    const char *label;
    const char *host_ip; /* "": every address of the host */
    int value;           /* on the host */
    int to;              /* inside of a network of the allocation's; 0: the same */
    bool own;            /* of the task's own network */
};

struct driver_volume { /* of the client's, where the task has it */
    const char *name, *source, *target;
    bool read_only;
};

struct driver_input {
    const char *alloc_id;
    const struct task *task;          /* names, limits, user; not interpolated */
    const struct value *config;       /* interpolated */
    const char *user;                 /* interpolated; may be empty */
    const struct str_list *env;       /* NAME=value, complete */
    const struct allocated_task_resources *resources; /* may be NULL */
    const struct net_policy *egress;  /* NULL: none but the client's */
    const struct net_policy *bind;
    const struct str_map *names; /* of job, group, node, as labels call them; NULL: none */
    const struct value *plugin;  /* options of the client's plugin block; NULL: none */
    const struct driver_port *ports;
    size_t n_ports;
    const struct driver_volume *volumes;
    size_t n_volumes;
    struct str_list devices; /* paths of devices that servers gave to the task */
    bool kvm;         /* this node has /dev/kvm for tasks */
    bool own_network; /* not the host's: that of the allocation */
    const char *hostname; /* of the group's network, interpolated; may be empty */
    const char *resolv;   /* text of the task's resolv.conf; NULL: the host's */
    double core_mhz;                  /* of one processor of this node; 0: not known */
};

/* How a driver that launches nothing runs tasks: by an engine, such as a daemon with an API of its
 * own. All on the loop's thread; nothing is told from inside a call, but what is told may end in
 * close. */
struct engine_task; /* the driver's: what stands behind one task */

struct engine_place { /* where a task is to be, or is */
    struct loop *loop;
    const char *hand; /* address of the engine hand; NULL: the engine is not turned on */
    const char *driver, *alloc_id, *task;
    int64_t started_ns; /* of the run that is to be adopted or forgotten; 0: none is known to have
                           begun */
};

struct engine_exit {
    int code, sig;
    bool oom_killed;
    const char *error; /* NULL: none */
    bool taken;        /* the machine or the engine took it along */
};

struct engine_events {
    void (*started)(void *arg, int64_t started_ns);
    /* The task did not start; `why` NULL: since it was stopped before. */
    void (*failed)(void *arg, const char *why, bool recoverable);
    void (*exited)(void *arg, const struct engine_exit *x);
    void (*adopted)(void *arg, int64_t started_ns, bool over); /* `over`: `exited` follows */
    void (*said)(void *arg, const char *text); /* an event of the task */
    void (*absent)(void *arg); /* there is nothing to adopt, or it vanished while it ran */
};

typedef void engine_done(void *arg, const struct err *e); /* e NULL: done */

/* e NULL: it is there; `s` is gone afterwards. */
typedef void engine_net_made(void *arg, const struct err *e, const struct hand_network_state *s);

/* A command in a task that runs. Events come on the loop, never from inside a call; `ended` is the
 * last one, once, unless the command is closed before. */
struct task_exec {
    const struct task_exec_verbs *verbs;
};

struct task_exec_events {
    void (*opened)(void *arg); /* it runs: bytes may be written */
    void (*output)(void *arg, int stream, const void *p, size_t n); /* stream 1 or 2 */
    void (*closed)(void *arg, int stream); /* its end; need not come before `ended` */
    void (*drained)(void *arg);            /* less is queued */
    void (*ended)(void *arg, int code, int sig, const struct err *e); /* e NULL: by itself */
};

struct task_exec_verbs {
    void (*write)(struct task_exec *x, const void *p, size_t n); /* to its input */
    size_t (*queued)(const struct task_exec *x);
    void (*end_input)(struct task_exec *x);
    void (*resize)(struct task_exec *x, uint16_t rows, uint16_t columns);
    void (*read)(struct task_exec *x, bool on); /* off: no output comes */
    void (*close)(struct task_exec *x);         /* also from inside an event */
};

/* The engine's words on itself. */
struct engine_watch;
typedef void engine_told(void *arg, const struct hand_info *info); /* gone afterwards */

struct engine {
    /* The engine is behind the engine hand: nothing is asked of it where that is not turned on. */
    bool hand;
    /* Tells the state of the engine as soon as it is known, and each other one, until unwatch.
     * Silence is told when the engine had the time to start. The place has no allocation. NULL
     * members: it is always there. */
    struct engine_watch *(*watch)(const struct engine_place *p, engine_told *told, void *arg);
    void (*unwatch)(struct engine_watch *w);
    /* `in` is gone afterwards. NULL: *e says why not. */
    struct engine_task *(*start)(const struct engine_place *p, const struct driver_input *in,
                                 const struct engine_events *up, void *arg, struct err *e);
    /* Takes over a task that an earlier agent started. `in` is gone afterwards; NULL: it cannot be
     * made any more. NULL member: what it runs outlives no agent. */
    struct engine_task *(*adopt)(const struct engine_place *p, const struct driver_input *in,
                                 const struct engine_events *up, void *arg);
    void (*signal)(struct engine_task *t, int sig, engine_done *done, void *arg); /* NULL: cannot */
    /* Makes the task's processes stand still, or go on; also when they do already. NULL: cannot. */
    void (*pause)(struct engine_task *t, bool on, engine_done *done, void *arg);
    /* Changes the task's limits, while it runs. -errno: *e says why, and `done` does not come.
     * NULL: cannot. */
    int (*resize)(struct engine_task *t, const struct driver_input *in, engine_done *done,
                  void *arg, struct err *e);
    void (*stop)(struct engine_task *t, int sig); /* politely; 0: as it wants */
    void (*kill)(struct engine_task *t);
    /* Removes what has ended; until close. NULL member: nothing is left. */
    struct engine_task *(*forget)(const struct engine_place *p);
    /* Reads the task's use of resources; what is not known stays -1. *ret_dir: a cgroup, whose
     * processes are the task's, for the caller to close; or as it is. False: nothing is known. NULL
     * member: never. */
    bool (*stats)(const struct engine_task *t, struct cgroup_stats *ret, int *ret_dir);
    /* Reads output that an engine keeps itself: what of stream 1 or 2 begins at `at`; 0: no more by
     * now. `p` NULL: how much there is. NULL member: output is in files of the allocation. */
    int64_t (*logs)(const struct engine_task *t, int stream, int64_t at, void *p, size_t n);
    /* A command in it; strings of `x` are gone afterwards. NULL: cannot. */
    struct task_exec *(*exec)(struct engine_task *t, const struct hand_exec *x,
                              const struct task_exec_events *up, void *arg);
    /* The network of a group whose tasks are all of this engine: to be there, also where it is
     * already; to go. The place has no task. Once, never from inside; -ERR_CONFLICT: a port is
     * taken; -ERR_BUSY: the engine, later. NULL members: the warden makes them. */
    void (*net_make)(const struct engine_place *p, const struct hand_network *n,
                     engine_net_made *done, void *arg);
    void (*net_remove)(const struct engine_place *p, engine_done *done, void *arg);
    void (*close)(struct engine_task *t); /* it has ended, or the agent goes down: frees */
};

struct driver {
    const struct driver_can *can;
    const struct driver_option *options;
    size_t n_options;
    int kill_signal; /* default of kill_signal; 0: what its engine knows */
    /* Checks what the table of options cannot say; NULL: nothing. `config` may be NULL. */
    int (*check)(const struct value *config, struct err *e);
    /* Fills Detected, Healthy, HealthDescription and Attributes of `ret`; ctx owns what it adds. */
    void (*fingerprint)(const void *ctx, const struct driver_host *host, struct driver_info *ret);
    /* One of them. The launch spec, owned by ctx: */
    int (*spec)(const void *ctx, const struct driver_input *in, struct launch_spec **ret,
                struct err *e);
    const struct engine *engine;
    /* ... behind the engine hand: what it is asked for; owned by ctx. */
    int (*ask)(const void *ctx, const struct driver_input *in, struct hand_task **ret,
               struct err *e);
};

/* NULL when there is no such driver in this build. */
const struct driver *driver_find(const char *name);
extern const struct driver *const drivers[DRIVERS_N];
#define X(id, ...) extern const struct driver driver_##id;
DRIVERS(X)
#undef X
/* One more, for tests; before any client starts. */
void driver_add(const struct driver *d);
const struct driver *driver_extra(void); /* NULL: none */

/* Checks a task's config against the driver's options: unknown keys are refused by name with the
 * nearest known one, wrong types and missing required ones as well. `config` may be NULL. */
int driver_check(const struct driver *d, const struct value *config, struct err *e);

/* Does it hold references, "${...}", which only a client resolves? Keys are none. NULL: no. */
bool driver_refers(const struct value *config);

/* The end of a fingerprint whose driver runs a program of the host: its attributes, or that it is
 * not here. */
void driver_found(const void *ctx, const struct driver_host *host, const char *missing,
                  struct driver_info *ret);

/* Readers of a checked config; the default when absent. */
const char *driver_string(const struct value *config, const char *name, const char *dflt);
const struct driver_port *driver_find_port(const struct driver_input *in, const char *label);
int64_t driver_int(const struct value *config, const char *name, int64_t dflt);
bool driver_bool(const struct value *config, const char *name, bool dflt);
int64_t driver_duration(const struct value *config, const char *name, int64_t dflt);
/* The names and values; NULL: none are given. */
const struct value *driver_map(const struct value *config, const char *name);
/* The i-th block of DRIVER_BLOCKS; NULL: there are no more. */
const struct value *driver_block(const struct value *config, const char *name, size_t i);
void driver_strings(const void *ctx, const struct value *config, const char *name,
                    struct str_list *ret);

/* "SIGUSR1", "usr1", "10" -> 10; -EINVAL. */
int signal_parse(const char *s);
/* "SIGUSR1"; "SIG42" for what has no name. */
const char *signal_name(int sig, char out[16]);
/* Comma list of all names, sorted, as os.signals. */
const char *signal_names(void);

#endif
