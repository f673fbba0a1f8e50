/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of drivers/engine/: tasks of an engine behind the engine hand (hand/), which drivers of
 * engines share. The members of `struct engine`, as they are there.
 */
#ifndef PADDOCK_DRIVERS_ENGINE_HAND_CLIENT_H
#define PADDOCK_DRIVERS_ENGINE_HAND_CLIENT_H

#include "drivers/driver.h"

struct engine_task *hand_start(const struct engine_place *p, const struct hand_task *t,
                               const struct engine_events *up, void *arg);
struct engine_task *hand_adopt(const struct engine_place *p, const struct driver_input *in,
                               const struct engine_events *up, void *arg);
struct engine_watch *hand_watch(const struct engine_place *p, engine_told *told, void *arg);
void hand_unwatch(struct engine_watch *w);
void hand_expect(const struct engine_place *p); /* something waits for the hand; all: info.c */
void hand_signal(struct engine_task *t, int sig, engine_done *done, void *arg);
void hand_pause(struct engine_task *t, bool on, engine_done *done, void *arg);
void hand_resize(struct engine_task *t, const struct hand_task *limits, engine_done *done,
                 void *arg);
void hand_stop(struct engine_task *t, int sig);
void hand_kill(struct engine_task *t);
struct engine_task *hand_forget(const struct engine_place *p);
bool hand_stats(const struct engine_task *t, struct cgroup_stats *ret, int *ret_dir);
void hand_close(struct engine_task *t);
void hand_net_make(const struct engine_place *p, const struct hand_network *n,
                   engine_net_made *done, void *arg); /* network.c */
void hand_net_remove(const struct engine_place *p, engine_done *done, void *arg);
struct http_client *hand_client(const struct engine_place *p); /* info.c */
/* The target of a request about a task. */
void hand_target(struct buf *b, const struct engine_place *p, const char *verb);
const struct engine_place *hand_place(const struct engine_task *t);
struct task_exec *hand_exec(struct engine_task *t, const struct hand_exec *spec,
                            const struct task_exec_events *up, void *arg); /* exec.c */

/* A driver whose containers the hand keeps converts a task's configuration by a function of its
 * own, of which start and resize are made, and has HAND_ENGINE in its row. */
#define HAND_VERBS(task_of)                                                                        \
    static struct engine_task *start(const struct engine_place *p, const struct driver_input *in,  \
                                     const struct engine_events *up, void *arg, struct err *e)     \
    {                                                                                              \
        auto_mem void *tmp = mem_ctx("start");                                                     \
        struct hand_task *t = NULL;                                                                \
        return task_of(tmp, in, &t, e) < 0 ? NULL : hand_start(p, t, up, arg);                     \
    }                                                                                              \
    static int resize(struct engine_task *task, const struct driver_input *in, engine_done *done,  \
                      void *arg, struct err *e)                                                    \
    {                                                                                              \
        auto_mem void *tmp = mem_ctx("resize");                                                    \
        struct hand_task *t = NULL;                                                                \
        int r = task_of(tmp, in, &t, e);                                                           \
        if (r == 0)                                                                                \
            hand_resize(task, t, done, arg);                                                       \
        return r;                                                                                  \
    }
#define HAND_ENGINE                                                                                \
    &(const struct engine)                                                                         \
    {                                                                                              \
        .hand = true, .watch = hand_watch, .unwatch = hand_unwatch, .start = start,                \
        .resize = resize, .adopt = hand_adopt, .signal = hand_signal, .pause = hand_pause,         \
        .stop = hand_stop, .kill = hand_kill, .forget = hand_forget, .stats = hand_stats,          \
        .exec = hand_exec, .net_make = hand_net_make, .net_remove = hand_net_remove,               \
        .close = hand_close                                                                        \
    }

#endif
