/* SPDX-License-Identifier: Apache-2.0
 *
 * A warden of its own for a test: temporary directories, a policy, the program started and
 * connected. Dies with the test. The cgroups are a child of the cgroup2 mount that is removed at
 * the end.
 */
#ifndef PADDOCK_TESTS_ISOLATION_RIG_H
#define PADDOCK_TESTS_ISOLATION_RIG_H

#include <stdbool.h>
#include <sys/types.h>

#include "api/api.h"
#include "isolation/launch/client.h"

/* A call that a warden, and all that it starts, does not have. */
struct rig_denied {
    int nr;
    int error;
};

struct rig {
    void *ctx;
    char dir[64];
    char policy_path[128];
    char socket[128];
    struct policy policy;
    pid_t warden;
    uid_t uid; /* of the warden; 0: root */
    struct rig_denied denied[4];
    size_t n_denied; /* from the next start on */
    struct warden_client *client;
};

/* The outcome of a completed request. */
struct got {
    bool done;
    struct err err;
    int ended, cgroup, record, file, counters, runs, blocks, keep[WARDEN_KEEP];
    int exec[3], exit, helper;
    struct task_record *rec, *last; /* the first and the last one */
    size_t n_records;
    struct warden_info *info;
    struct alloc_file_info_list files;
    int64_t next;
    struct alloc_network_status *network;
    void *ctx;
};

/* The test goes to a network namespace of its own, with nothing but lo, up. */
void rig_own_network(void);
/* `uid` other than 0: everything as that user (rootless). */
void rig_start(struct rig *r, uid_t uid);
void rig_spawn(struct rig *r);         /* the warden only */
void rig_kill(struct rig *r, int sig); /* and waits */
void rig_connect(struct rig *r);
void rig_change_policy(struct rig *r); /* the same warden with r->policy as it is now */
long rig_fds(pid_t pid);               /* how many descriptors it has, and two */
void rig_pause(int ms);                /* between looks at a condition that has no fd */
void rig_stop(struct rig *r);          /* ends tasks, checks that no cgroup is left */
/* A request's callback: rig_got as `done`, a struct got as `arg`; then rig_wait. */
void rig_got(void *arg, const struct err *e, struct warden_reply *r);
void rig_wait(struct rig *r, struct got *g);
void got_free(struct got *g);
/* Asserts that it went well (`why` NULL), or failed with these words, frees it and returns the code. */
int got_expect(struct got *g, const char *why);
/* Has a volume made or removed, and waits for the answer. */
void rig_volume(struct rig *r, bool make, const struct warden_volume *v, struct got *g);
void rig_alloc(struct rig *r, const char *id, const char *task, const char *driver);
void rig_alloc_as(struct rig *r, const char *id, const char *task, const char *driver,
                  const char *user);
struct launch_spec *rig_spec(struct rig *r, const char *id, const char *task, bool isolated,
                             const char *script); /* /bin/sh -c script */
void rig_launch(struct rig *r, const struct launch_spec *s, struct got *g);
/* Until its descriptor says that the task has ended (10 s, by CK_TIMEOUT_MULTIPLIER), then its record.
 */
struct task_record *rig_end(struct rig *r, struct got *g);
/* The whole file below the allocation's directory; fails the test if it is not there. */
char *rig_file(struct rig *r, const char *id, const char *path);

extern const char rig_id[]; /* an allocation id */
/* A fact of the warden, "" if it is not told; with rig_has a skip says why it is not "true". */
const char *rig_fact(struct rig *r, const char *name);
bool rig_has(struct rig *r, const char *name);
/* A task that executes `text` in Python. */
struct launch_spec *rig_python(struct rig *r, const char *task, bool isolated, const char *text);
/* Copies a program of tests/attempts into local/ of the task "web", as `name`. */
void rig_plant(const struct rig *r, const char *program, const char *name, mode_t mode);
/* Until the task has written `text`. */
void rig_await(struct rig *r, const char *task, const char *text);
uint64_t rig_leaf(struct got *g); /* id of the cgroup of the task that was launched */
/* Within one percent. */
void rig_near(uint64_t got, uint64_t want, const char *what);

#endif
