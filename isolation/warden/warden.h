/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden: all of its knowledge, in one struct. Reading order: main.c (start), loop.h (turns,
 * connections, answers), table.h (requests), launch.h and pad.h, task.h and adopt.h, then the
 * others. Each header is a module's contract.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_WARDEN_H
#define PADDOCK_ISOLATION_WARDEN_WARDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "api/api.h"
#include "api/limits.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/uuid.h"
#include "isolation/bpf/net.h"
#include "isolation/bpf/rows.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/confine/seccomp.h"
#include "isolation/confine/users.h"
#include "isolation/launch/helper.h"
#include "isolation/launch/plan.h"
#include "isolation/launch/proto.h"
#include "isolation/launch/record.h"
#include "isolation/limits.h"
#include "isolation/probe.h"
#include "isolation/root/base.h"

struct warden;

/* An fd in the epoll set; embedded in what it belongs to. */
struct watch {
    int fd;
    void (*fn)(struct warden *w, struct watch *self, uint32_t events);
};
#define WATCH_OWNER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* The request that waits for an answer; its connection may be gone by then. */
struct waiter {
    uint64_t conn;
    uint64_t seq;
};

struct out {
    struct out *next;
    size_t n;
    size_t n_fds;
    int fds[PACKET_FDS_MAX];
    uint8_t data[];
};

struct conn {
    struct watch watch;
    uint64_t id;
    enum proto_phase phase;
    struct out *out;
    struct out **out_tail;
    size_t out_bytes;
    bool broken; /* closed at the end of the turn */
};

enum wtask_state { TASK_LAUNCHING, TASK_RUNNING, TASK_FINISHED };

struct wtask {
    char alloc[UUID_TEXT];
    char name[JOB_TASK_NAME_MAX + 1];
    uint64_t hash;
    struct wtask *same_bucket;
    size_t at; /* in warden.tasks */
    enum wtask_state state;
    struct watch shim;         /* pidfd of the shim; -1 when it has ended */
    struct watch status;       /* launching: where the shim reports */
    int payload;               /* pidfd of the payload; -1 */
    int record;                /* read-write */
    uint32_t id_base;          /* of its user namespace; 0: the host's */
    struct cgroup_task cgroup; /* fds -1 when rootless */
    pid_t shim_pid;
    pid_t pid;         /* of the payload; 0: not known */
    void *plan;        /* launching: to explain a failure; owned */
    char *resolv;      /* launching: a file, until it is mounted; NULL: none; owned */
    int64_t requested_ns;  /* when the pad was asked for the shim */
    int64_t launch_ns; /* from there to the shim's report that the payload runs; 0: adopted */
    struct waiter launch;
    struct waiter destroy;
    bool destroying;
    bool forgotten;      /* unknown to requests; being removed */
    bool gone;           /* removed: freed at the end of the turn */
    char *warning;       /* limits that it was to have; NULL: none; owned */
    struct err *failure; /* of the launch; told when everything is removed; owned */
    unsigned retries;
    int64_t deadline_ns;              /* launching, destroying or being removed; 0: none */
    struct wtask *due_next, **due_at; /* of those that have one */
    int64_t launch_by_ns;             /* of a launch that an earlier warden began */
    int64_t fence_ms; /* until when it may run, clock_boot_ns(); 0: as long as it likes */
};

/* A child that does blocking work. */
struct wjob {
    struct watch watch; /* pidfd */
    struct waiter waiter;
    void (*done)(struct warden *w, const struct err *e); /* may be NULL */
    char what[128];
    bool used;
};

/* A command in a running task: until it has started, and as long as its joiner lives. */
struct wexec {
    bool used;
    bool tty;
    char alloc[UUID_TEXT];
    char task[JOB_TASK_NAME_MAX + 1];
    struct watch joiner; /* pidfd */
    struct watch status; /* starting: where the joiner reports; then the agent's */
    struct waiter to;
    void *plan;          /* starting: to explain a failure; owned */
    int64_t deadline_ns; /* of the start; 0: none */
};

/* A program of ours that works for a task (helper.c). */
struct whelper {
    bool used;
    char alloc[UUID_TEXT];
    char name[32]; /* of its cgroup and its directory */
    char cache[WARDEN_CACHE_KEY + 1]; /* the key of what it downloads; empty: it has none */
    pid_t pid;
    struct watch process; /* pidfd; -1: it has ended */
    struct watch exit;    /* the agent has the other end; -1: closed */
    int status;           /* tells why it does not run; -1 */
    struct cgroup_task cgroup;
    int64_t deadline_ns;  /* of the process, or of the next try to remove what is left; 0: none */
    struct helper_end end;
};

/* The last users that were looked up; good as long as the account files are the same. */
struct user_cache {
    struct {
        char spec[USERS_NAME_MAX + 1];
        bool inside; /* of a user namespace */
        struct user user;
    } v[8];
    size_t n;
    struct timespec stamp[2]; /* of passwd and group */
};

/* A filter of jobs that change the default filter, by what they change. */
struct filter_set {
    char *key; /* owns the program; NULL: free */
    struct seccomp_program program;
};

/* The user namespace of an allocation. */
struct userns {
    char alloc[UUID_TEXT];
    uint32_t base; /* its id 0 on the host */
    int fd;
};

struct warden {
    struct policy *policy;
    const char *policy_path; /* read again at SIGHUP */
    struct user_cache users;
    bool root;
    int epoll;
    int alloc_dir; /* directory fds */
    int records;
    int shim_exe;
    const char *helpers_dir; /* has our other programs */
    int pad;       /* socket of the launch pad */
    pid_t pad_pid; /* 0: none */
    struct wtask *unsettled; /* whose shim the pad has been asked for, and has not answered yet */
    struct warden_nets *nets;
    int64_t alive_ns; /* when the service manager is told next that we live; 0: nobody asks */
    int64_t nets_ns; /* when to call net_tick(); 0: not */
    struct userns *userns;
    size_t n_userns;
    uint32_t userns_next;
    uint32_t quota_next;      /* for quota_set() */
    int host_mnt;             /* the mount namespace of the host; -1 when rootless */
    int lock, data_lock;
    char boot_id[40];
    struct base base;
    struct cgroup_root cgroup; /* fd -1: none */
    int pause;                 /* pidfd of the process that holds the cgroup; -1: nobody does */
    struct bpf_net net;        /* counts and polices what tasks send */
    struct task_rules {
        const struct netrules *egress, *bind; /* NULL: none */
    } *rules; /* of a task that has none of its own; owned by the policy; NULL: not compiled yet */
    struct bpf_rows run;       /* waits, executions, ends */
    struct bpf_rows block;     /* requests to disks */
    struct probe probe;
    struct {
        struct fact exec;   /* the driver */
        struct fact userns; /* user namespaces of allocations */
        struct fact quota;  /* limits on disk */
        struct fact verity; /* files of tasks that are sealed */
        struct fact netns, bridge;
        struct fact kvm; /* for tasks */
        struct fact bpf_net, bpf_run, bpf_block;
    } can; /* known once all have started */
    struct seccomp_program task_filter;
    struct filter_set filters[WARDEN_FILTERS_MAX];
    size_t filter_next; /* to be replaced */
    struct seccomp_program shim_filter;
    struct seccomp_program audit_filter; /* of a shim that answers what its task is denied */
    struct seccomp_program join_filter;
    struct seccomp_program helper_filters[2]; /* n 0: not made yet; [1]: it starts programs */
    int helper_slots;   /* the first of the numbers that descriptors of helpers have */
    int helper_nothing; /* O_PATH; stands where a helper's descriptors are not */
    int helper_net;     /* network namespace without a network, for all helpers; -1: none yet */
    struct watch listener;
    /* takes a request: table_serve() */
    bool (*serve)(struct warden *w, uint64_t conn, enum proto_phase *phase, size_t n);
    struct watch signals;
    struct watch fence; /* timer of the watchdog */
    struct conn *conns[WARDEN_CONNS_MAX];
    uint64_t conn_last;
    struct wtask **tasks;
    size_t n_tasks;
    struct wtask **buckets; /* the same by alloc and name; as many as tasks has room for */
    size_t n_buckets;       /* a power of two */
    struct wtask *due;      /* those with a deadline */
    struct wjob jobs[WARDEN_JOBS_MAX];
    struct wexec execs[WARDEN_EXECS_MAX];
    size_t n_exec_deadlines;
    struct whelper helpers[WARDEN_HELPERS_MAX];
    uint32_t helper_stamp; /* of the names of their directories; those of earlier wardens differ */
    int64_t trash_pause_ms;
    int64_t trash_ns; /* when to empty the trash again; 0: not */
    bool sweep;       /* something is to be freed at the end of the turn */
    bool stop;        /* leave the loop; tasks run on */
    bool stop_tasks;  /* end all tasks, then leave */
    uint8_t *in;      /* PROTO_PACKET_MAX */
};

#endif
