/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of paddock-warden: one thread, one epoll set, no libuv. Everything here is called on that
 * thread. Reading order: warden/main.c (start), warden.c (loop, connections, the table's dispatch),
 * warden/launch.c, warden/task.c (tasks, records), warden/adopt.c, warden/files.c.
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
#include "common/num.h"
#include "isolation/bpf/net.h"
#include "isolation/bpf/rows.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/confine/seccomp.h"
#include "isolation/confine/users.h"
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

/* Who waits for an answer; the connection may be gone by then. */
struct warden_waiter {
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
    int64_t asked_ns;  /* when the pad was asked for the shim */
    int64_t launch_ns; /* from there to the shim's report that the payload runs; 0: adopted */
    struct warden_waiter launch;
    struct warden_waiter destroy;
    bool destroying;
    bool forgotten;      /* unknown to requests; being removed */
    bool gone;           /* removed: freed at the end of the turn */
    char *warning;       /* limits that it was to have; NULL: none; owned */
    struct err *failure; /* of the launch; told when everything is removed; owned */
    unsigned retries;
    int64_t deadline_ns;              /* launching, destroying or being removed; 0: none */
    struct wtask *due_next, **due_at; /* of those that have one */
    int64_t launch_by_ns;             /* of a launch that an earlier warden began */
};

/* A child that does blocking work. */
struct wjob {
    struct watch watch; /* pidfd */
    struct warden_waiter waiter;
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
    struct warden_waiter to;
    void *plan;          /* starting: to explain a failure; owned */
    int64_t deadline_ns; /* of the start; 0: none */
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

/* A filter of jobs that change the default one, by what they change. */
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
    int pad;       /* socket of the launch pad */
    pid_t pad_pid; /* 0: none */
    struct wtask *unsettled; /* whose shim the pad has been asked for, and has not answered yet */
    struct warden_nets *nets;
    int64_t nets_ns; /* when to call net_tick(); 0: not */
    struct userns *userns;
    size_t n_userns;
    uint32_t userns_next;
    char userns_missing[192]; /* "" when they work */
    uint32_t quota_next;      /* for quota_set() */
    char verity_missing[192]; /* "" when files of tasks can be sealed */
    char quota_missing[192];  /* "" when allocations can have a limit on disk */
    int host_mnt;             /* the mount namespace of the host; -1 when rootless */
    int lock, data_lock;
    char boot_id[40];
    struct base base;
    struct cgroup_root cgroup; /* fd -1: none */
    struct bpf_net net;        /* counts and polices what tasks send */
    struct task_rules {
        const struct netrules *egress, *bind; /* NULL: none */
    } *rules; /* of a task that has none of its own; owned by the policy; NULL: not compiled yet */
    struct bpf_rows run;       /* waits, executions, ends */
    struct bpf_rows block;     /* requests to disks */
    char run_missing[192];
    char block_missing[192];
    char net_missing[192]; /* "" when it works */
    struct probe probe;
    char exec_missing[192]; /* "" when exec works */
    struct seccomp_program task_filter;
    struct filter_set filters[WARDEN_FILTERS_MAX];
    size_t filter_next; /* to be replaced */
    struct seccomp_program shim_filter;
    struct seccomp_program audit_filter; /* of a shim that answers what its task is denied */
    struct seccomp_program join_filter;
    struct watch listener;
    struct watch signals;
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
    int64_t trash_pause_ms;
    int64_t trash_ns; /* when to empty the trash again; 0: not */
    bool sweep;       /* something is to be freed at the end of the turn */
    bool stop;        /* leave the loop; tasks run on */
    bool stop_tasks;  /* end all tasks, then leave */
    uint8_t *in;      /* PROTO_PACKET_MAX */
};

/* --- warden.c --- */
int warden_watch(struct warden *w, struct watch *watch, uint32_t events);
void warden_unwatch(struct warden *w, struct watch *watch); /* and closes the fd */
int warden_signals(struct warden *w, struct err *e); /* before anybody can know that we are there */
int warden_listen(struct warden *w, struct err *e);
int warden_loop(struct warden *w, struct err *e);
void warden_done_free(struct warden *w);
/* Answers; `fds` are borrowed. */
struct warden_answer {
    struct warden_response msg;
    int fds[PACKET_FDS_MAX];
    size_t n_fds;
};
void answer_fd(const void *ctx, struct warden_answer *a, enum warden_fd kind, int fd);
void warden_reply(struct warden *w, struct warden_waiter to, struct warden_answer *a);
void warden_reply_err(struct warden *w, struct warden_waiter to, const struct err *e);
bool warden_can_fork(const struct warden *w); /* fewer than WARDEN_JOBS_MAX children */
/* Runs `fn` in a child, which has no descriptor but alloc_dir; the waiter gets 0 or the error that
 * it returned. */
int warden_fork(struct warden *w, struct warden_waiter to, const char *what,
                int (*fn)(struct warden *w, void *arg), void *arg, struct err *e);

/* --- warden/launch.c --- */
/* At the start of each turn: takes the pad's answer to the last launch. False: that failed. */
bool launch_settle(struct warden *w);
void warden_launch_task(struct warden *w, struct warden_waiter to, const struct launch_spec *s);
/* May it run, as whom and with what? Of all that does not depend on its files and network. `inside`:
 * what it joins is in a user namespace; NULL: decided here, as make_userns() does. */
int warden_authorise(struct warden *w, const struct launch_spec *s, const bool *inside,
                     struct user *user, uint64_t *caps, struct err *e);
/* Its system call filter; NULL: none. Good until the next call. */
int warden_filter(struct warden *w, const struct launch_spec *s, bool no_setuid,
                  const struct seccomp_program **ret, struct err *e);

/* --- warden/exec.c --- */
/* What a record has behind struct record: what this launch is confined by. */
void exec_record_tail(struct buf *out, const struct policy *p, const struct launch_spec *s, bool userns);
void task_exec(struct warden *w, struct warden_waiter to, const struct warden_request *q);
int64_t exec_deadline(const struct warden *w); /* the next one; 0: none */
void exec_deadlines(struct warden *w, int64_t now);

/* --- warden/limits.c --- */
void warden_plan_limits(const struct warden *w, const struct launch_limits *l,
                        const struct task_isolation *iso, struct cgroup_plan *ret);
/* What of the plan could not be had, for the answer. */
void warden_limits_warn(struct wtask *t, const struct cgroup_plan *plan);
void task_resize(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void task_pause(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void task_watch(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void task_resume(struct warden *w, struct warden_waiter to, const struct warden_request *q);

/* --- warden/pad.c --- */
int pad_start(struct warden *w, struct err *e);
/* The status socket: pair[0] is ours. */
int pad_socket(int pair[2], struct err *e);
/* An isolated shim will be asked for. */
void pad_wake(struct warden *w);
/* A shim or joiner is to be made. `status` is its end of the status socket; `leaf` -1: without
 * cgroups. */
int pad_ask(struct warden *w, const struct pad_request *q, int status, int leaf, struct err *e);
/* Its pid, or the error; once after each pad_ask() that did not fail, before the next. */
int pad_take(struct warden *w, int *ret_pidfd, struct err *e);
/* What it works with, over our end of that socket: `fds` (borrowed) by enum shim_fd. */
int pad_work(int status, const int fds[SHIM_FD_END], const int *trees, uint32_t n_trees,
             struct err *e);

/* What a shim or joiner (`who`) reports: false, nothing yet; else `e` says why its program does not
 * run, or it does, and `fds` (owned by the caller in either case) are the `want` of the report. */
bool pad_report(int socket, const char *who, const void *plan, size_t want, int fds[PACKET_FDS_MAX],
                size_t *n_fds, struct err *e);

/* --- warden/userns.c --- */
void userns_probe(struct warden *w);
/* Allowed by the policy, and possible. */
bool userns_wanted(const struct warden *w);
/* Makes it where it is not there yet. Good until the next call for another allocation. */
int userns_get(struct warden *w, const char *alloc, const struct userns **ret, struct err *e);
void userns_drop(struct warden *w, const char *alloc);
/* The range that a user of the host is in; 0: none of ours. */
uint32_t userns_range_of(const struct warden *w, uint32_t uid);

/* policy_user() with a cache. */
int warden_user(struct warden *w, const struct launch_spec *s, bool inside, struct user *ret,
                struct err *e);

/* --- warden/net.c --- */
struct warden_nets;
int net_start(struct warden *w, struct err *e);   /* probes */
int net_recover(struct warden *w, struct err *e); /* when living tasks are known; starts the worker */
void net_make(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void net_remove(struct warden *w, struct warden_waiter to, const struct warden_request *q);
/* The allocation goes: so does its network. ERR_BUSY: not now. */
int net_forget(struct warden *w, const char *alloc, struct err *e);
/* The fd of its namespace, borrowed, for a launch. */
int net_of(struct warden *w, const char *alloc, struct err *e);
void net_tick(struct warden *w);
void net_info(struct warden *w, const void *ctx, struct warden_info *info);
/* At the end: where nothing uses them, or all tasks were ended, bridge and rules go too. */
void net_clear(struct warden *w);

/* --- warden/bpf.c --- */
void warden_bpf_start(struct warden *w);
/* Before the first process of a task. Fails when somebody asked for a policy that cannot be
 * enforced. */
int warden_bpf_add(struct warden *w, const struct wtask *t, const struct launch_spec *s,
                   struct err *e);
/* A living task that an earlier warden launched. */
void warden_bpf_adopt(struct warden *w, const struct wtask *t);
/* Everything of it is gone. */
void warden_bpf_remove(struct warden *w, const struct wtask *t);
/* Facts and fds for the agent. */
void warden_bpf_info(struct warden *w, const void *ctx, struct warden_info *info,
                     struct warden_answer *a);
/* May this task have its network policed? Its user and capabilities must not lead around it. */
int warden_bpf_check(struct warden *w, const struct launch_spec *s, const struct user *u,
                     struct err *e);

/* --- warden/task.c --- */
struct wtask *task_find(struct warden *w, const char *alloc, const char *name);
/* As it is now: for requests. */
struct wtask *task_find_now(struct warden *w, const char *alloc, const char *name);
/* Whether its record is complete: its shim is gone, or about to be. */
bool task_ended(const struct wtask *t);
struct wtask *task_add(struct warden *w, const char *alloc, const char *name);
void task_forget(struct warden *w, struct wtask *t); /* record and cgroup too */
void task_free(struct warden *w, struct wtask *t);
bool task_alloc_busy(struct warden *w, const char *alloc);
void task_shim_event(struct warden *w, struct watch *watch, uint32_t events);
#define RECORD_DOOMED '-' /* first character of the file name of a record whose task is removed */
void task_record_name(char out[256], const char *alloc, const char *name);
void task_answer(struct warden *w, struct warden_waiter to, struct wtask *t);
void task_unknown(struct warden *w, struct warden_waiter to, const char *alloc, const char *name);
void task_deadline(struct warden *w, struct wtask *t, int64_t at_ns);
/* The shim is gone: the end of the task; `why` are flags of the record beside RECORD_LOST. */
void task_settle(struct warden *w, struct wtask *t, uint32_t why);
void task_signal(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void task_kill(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void task_destroy(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void task_adopt(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void task_list(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void task_kill_all(struct warden *w);
void task_deadlines(struct warden *w, int64_t now);
int task_timeout(struct warden *w, int64_t now);
void task_sweep(struct warden *w);
bool task_remains(struct warden *w, const char *alloc, const char *name);
void task_kill_now(struct warden *w, struct wtask *t);

/* --- warden/adopt.c --- */
/* Reads all records, takes over living tasks, settles dead ones, removes what is nobody's. */
int task_recover(struct warden *w, struct err *e);
void task_find_payload(struct wtask *t);
bool task_launched(const struct wtask *t); /* the record says that the payload ran */
/* A launch of an earlier warden: looks whether it is over; false when it is none, or overdue. */
bool task_await_launch(struct warden *w, struct wtask *t, int64_t now);
void task_decided(struct warden *w, struct wtask *t, bool launched);

/* --- warden/files.c --- */
void files_probe(struct warden *w); /* the file system of alloc_dir */
void files_alloc_make(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void files_alloc_remove(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void files_open(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void files_stat(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void files_readdir(struct warden *w, struct warden_waiter to, const struct warden_request *q);
void files_put(struct warden *w, struct warden_waiter to, const struct warden_request *q);
/* Log directory and where to go on, for a launch. */
int files_logs(struct warden *w, const struct launch_spec *s, int *ret_dir, uint32_t index[2],
               uint32_t first[2], struct err *e);
/* Removes what earlier wardens, or a helper that was killed, did not get to. */
void files_empty_trash(struct warden *w);
void files_trash_later(struct warden *w);

#endif
