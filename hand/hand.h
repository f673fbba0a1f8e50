/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine hand: its parts see each other here. One thread, the loop's.
 *
 * A container is of one task: named TASK-ALLOC, with the label of this hand (`owner`: the directory
 * of allocations, which no other agent on the machine has). The hand follows each that runs: it
 * waits for its end, and writes its output into the files of the task's logs. All of that is found
 * again after a restart of the hand, of the agent, or of the engine.
 */
#ifndef PADDOCK_HAND_HAND_H
#define PADDOCK_HAND_HAND_H

#include "api/api.h"
#include "codec/value.h"
#include "common/err.h"
#include "hand/limits.h"
#include "net/http/http.h"
#include "net/loop.h"

#define HAND_LABEL_OWNER "paddock.owner"
#define HAND_LABEL_ALLOC "com.hashicorp.nomad.alloc_id" /* what tools of Nomad's users look for */
#define HAND_LABEL_TASK "paddock.task"
#define HAND_LABEL_NETWORK "paddock.network" /* in place of a task: the network of a group */
/* The image of a group's network. Another program in it gets another number: podman knows no tag of
 * what it is sent. */
#define NETWORK_IMAGE_REPO "localhost/paddock-pause-1"
#define NETWORK_IMAGE NETWORK_IMAGE_REPO ":latest"
#define HAND_LABEL_BOOT "paddock.boot" /* of the machine, when it was started */
#define HAND_LABEL_LOGS "paddock.logs" /* FILES:BYTES[:tty|:off] */

struct images;

struct hand { /* for one engine */
    struct loop *loop;
    const struct policy *policy;
    const struct engine_policy *engine;
    int allocs;              /* fd of the directory of allocations */
    char boot[40];           /* of the machine; "": not known */
    struct container *first; /* those that are followed */
    struct order *orders;    /* starts and removals of tasks: serve.c */
    struct images *images;
    struct credentials *credentials; /* NULL: the operator has given none */
    struct transfer *transfers;      /* images on their way */
    struct engine_call *witness;     /* NULL: none is there */
    uint64_t ends;                   /* how often the engine went away under its witness */
    int pause_tar;                   /* image of a group's network, pause_len bytes */
    size_t pause_len;
};

struct hands { /* for all that are on */
    struct hand *v;
    size_t n;
};

/* --- allow.c: pure --- */
/* Judges a task by policy and good sense: -ERR_POLICY, -ERR_INVALID, -ERR_UNSUPPORTED. */
int allow_task(const struct hand *h, const char *alloc, const char *task, const struct hand_task *t,
               struct err *e);

/* May a task have it, with or without a prefix "CAP_"? */
bool allow_cap(const struct hand *h, const char *cap);

int allow_network(const struct hand *h, const struct hand_network *n, struct err *e);

/* --- places.c --- */
/* "local/a/../b" is "local/b"; NULL: it is none of the task's own, *e says. */
const char *places_path(const void *ctx, const char *path, struct err *e);
/* The source of each mount of an allowed task, as its engine is to be told; directories that are to
 * be made are. `dir` is the task's, "ALLOC/TASK". -ERR_POLICY, -ERR_INVALID. */
int places_find(const void *ctx, const struct hand *h, const char *dir, const struct hand_task *t,
                struct str_list *ret, struct err *e);

/* --- document.c: pure --- */
/* "web-0123..." */
const char *document_name(const void *ctx, const char *alloc, const char *task);
/* Makes the document that the engine is asked with for an allowed task. */
struct value *document_make(const void *ctx, const struct hand *h, const char *alloc,
                            const char *task, const struct hand_task *t,
                            const struct str_list *sources);
/* ... of a container that runs, to have the limits of an allowed task. */
struct value *document_limits(const void *ctx, const struct hand *h, const struct hand_task *t);
/* ... of the network of a group. */
struct value *document_network(const void *ctx, const struct hand *h, const char *alloc,
                               const struct hand_network *n);
/* Reads the inspection of a network's container; false: it is not this hand's. */
bool document_network_state(const void *ctx, const struct hand *h, const char *alloc,
                            const struct value *doc, struct hand_network_state *ret,
                            bool *ret_running);
/* Reads an engine's inspection of a task; false: it is not this hand's container of the task, or is
 * not to be understood. */
bool document_state(const void *ctx, const struct hand *h, const char *alloc, const char *task,
                    const struct value *doc, struct hand_state *ret);
struct log_shape { /* 0: the default */
    int64_t files, file_bytes;
    bool tty; /* one stream, which the engine does not frame */
    bool off; /* none is taken */
};
/* Reads the label of logs; zeros where there is none. */
void document_logs(const struct value *labels, struct log_shape *ret);
/* A text of an engine's document; what is none is "". */
const char *document_text(const struct value *doc, const char *name);
bool document_bool(const struct value *doc, const char *name);

/* --- engine.c --- */
struct engine_call;
struct engine_ask {
    const char *method, *target;
    const struct value *body; /* NULL: none */
    int file;                 /* the body, instead: so many bytes of it, when they are not 0 */
    size_t file_len;
    const char *auth;         /* X-Registry-Auth; NULL: none */
    int64_t timeout_ms;       /* 0: no limit */
    bool (*on_body)(void *arg, const struct http_resp *r, const void *p,
                    size_t n); /* NULL: a document */
    /* Given: the connection is to become a tunnel; it has, what comes is on_body's, and `done` has
     * status 101 at its end. False stops it. */
    bool (*on_tunnel)(void *arg);
    void (*on_drain)(void *arg); /* of a tunnel: little is queued again */
    /* Once, never from inside. `e`: there was no answer. `doc` may be NULL; it goes with the call.
     */
    void (*done)(void *arg, int status, const struct value *doc, const struct err *e);
    void *arg;
};
struct engine_call *engine_ask(struct hand *h, const struct engine_ask *ask);
void engine_cancel(struct engine_call *c); /* `done` does not come; NULL is fine */
void engine_read(struct engine_call *c, bool on);
/* Work on a tunnel: send bytes to the engine; how many wait; that no more come. */
void engine_write(struct engine_call *c, const void *p, size_t n);
size_t engine_queued(const struct engine_call *c);
void engine_end(struct engine_call *c);
bool engine_is_podman(const struct hand *h);
/* The target of a list of containers, those that do not run too. */
const char *engine_list(const struct hand *h);
/* Returns the engine's words on what went wrong. */
const char *engine_said(const struct value *doc);

/* --- images.c --- */
/* Makes the list of an engine's images; `dir` stays the caller's. */
struct images *images_new(const void *ctx, struct hand *h, int dir);
/* The hand has pulled it; `before` is the id that the name had, NULL: none. */
void images_pulled(struct images *m, const char *name, const char *before, const char *id);
void images_unused(struct images *m, const char *id); /* a container of it has gone */

/* --- layers.c: pure --- */
struct layers;
struct layers *layers_new(const void *ctx);
/* A line of a pull; what is of no use is left out. */
void layers_take(struct layers *p, const struct value *doc);
const char *layers_text(const void *ctx, const struct layers *p); /* for an event */

/* --- helper.c --- */
/* Starts the process that reads `config` and asks credential helpers; its socket, or *e. */
int helper_start(const char *config, struct err *e);

/* --- credentials.c --- */
struct credentials;
struct credentials_ask;
/* `auth` NULL: there is none; `why`: it could not be found out. Both are gone afterwards. */
typedef void credentials_done(void *arg, const struct hand_auth *auth, const char *why);
/* Before the hand confines itself. NULL: *e says why. */
struct credentials *credentials_new(const void *ctx, struct hand *h, struct err *e);
/* Looks for the credentials of an image's registry; `done` comes once, never from inside. */
struct credentials_ask *credentials_find(struct credentials *c, const char *image,
                                         credentials_done *done, void *arg);
void credentials_cancel(struct credentials_ask *a); /* `done` does not come; NULL is fine */

/* --- registry.c: pure --- */
/* The registry's name as docker's file has it; what the file, or a helper's answer, says of it.
 * NULL: nothing; *ret_helper is then who may know, "" being nobody. */
const char *registry_name(const void *ctx, const char *image);
const struct hand_auth *registry_in_file(const void *ctx, const struct value *doc,
                                            const char *server, const char **ret_helper);
const struct hand_auth *registry_of_helper(const void *ctx, const struct value *doc,
                                              const char *server);

/* --- pull.c --- */
struct pull;
/* Does a start of it ask the registry first? Its job says so, or its tag is that which moves. */
bool pull_first(const struct hand_task *t);
struct pull_events {
    void (*said)(void *arg, const char *text); /* now and then: how it goes */
    /* Once, never from inside: NULL when the image is there, else why not; `moment`: the next try
     * may do better. */
    void (*done)(void *arg, const char *why, bool moment);
};
struct pull *pull_start(struct hand *h, const char *alloc, const char *task,
                        const struct hand_task *t, const struct pull_events *up, void *arg);
void pull_cancel(struct pull *p); /* `done` does not come; NULL is fine */

/* --- log.c --- */
struct hand_log;
/* The files of a task, as they are; NULL: *e says why. Owned by ctx. */
struct hand_log *log_open(const void *ctx, struct hand *h, const char *alloc, const char *task,
                          struct err *e);
void log_shape(struct hand_log *l, const struct log_shape *s);
/* Names the container whose output comes from now on; what is written of it is known from its
 * notes. -errno. */
int log_of(struct hand_log *l, const char *container);
/* Returns where the engine is to begin: "SECONDS.NANOSECONDS". Forgets the rest of a message. */
const char *log_since(struct hand_log *l, char ret[48]);
int64_t log_fresh(const struct hand_log *l); /* new bytes since log_since() */
/* From now on what comes must be no older than that, or log_feed() fails: -ERR_BUSY, and nothing of
 * it is taken. 0: it may be. */
void log_behind(struct hand_log *l, int64_t ns);
/* Bytes of the engine's stream with timestamps. -ERR_CORRUPT; -errno of a write: what is not
 * written comes again after log_since(). */
int log_feed(struct hand_log *l, const void *p, size_t n);
/* The engine has sent all. As log_feed(). */
int log_end(struct hand_log *l);
void log_close(struct hand_log *l); /* NULL is fine */

/* --- leftover.c --- */
bool leftover_owned(const struct hand *h, const char *alloc); /* the allocation is there */
/* Removes a container, whatever it does, as soon as its engine answers: now, or when its allocation
 * has gone. */
void leftover_drop(struct hand *h, const char *id);
void leftover_watch(struct hand *h, const char *id, const char *alloc);

/* --- witness.c --- */
/* Sees to it that the engine's end is noticed: h->ends counts them. Idempotent. */
void witness_keep(struct hand *h);

/* --- container.c --- */
struct container;
struct container_wait; /* who waits for its end */
/* NULL: there is none any more; it still runs: its engine has gone, and the wait is over. */
typedef void container_ended(void *arg, const struct hand_state *s);
/* Follows it from now on, or does already. */
struct container *container_follow(struct hand *h, const char *alloc, const char *task,
                                   const char *id, const struct log_shape *logs);
struct container *container_find(struct hand *h, const char *alloc, const char *task);
bool container_is(const struct container *c, const char *id);
bool container_waited(const struct container *c); /* somebody waits for its end */
/* NULL: it has not ended, or not all of its output is written. */
const struct hand_state *container_over(const struct container *c);
struct container_wait *container_wait(struct container *c, container_ended *fn, void *arg);
void container_unwait(struct container_wait *w);
void container_forget(struct container *c); /* it is removed: who waits is told so */
/* Finds the containers of before, after a start. */
void containers_find(struct hand *h);

/* --- network.c --- */
/* The image that it runs, as an archive in memory, from the program; its descriptor, or *e. */
int network_image(const char *program, size_t *ret_len, struct err *e);
const char *network_name(const void *ctx, const char *alloc); /* of its container */
/* Answers the request: the network of the allocation's group is to be there, or to go. */
void network_serve(struct hand *h, struct http_req *req, const char *alloc);

/* --- exec.c --- */
/* Answers the request: a command in the container of the task. */
void exec_serve(struct hand *h, struct http_req *req, const char *alloc, const char *task);

/* --- serve.c --- */
void hand_serve(void *arg, struct http_req *req); /* the handler; arg is struct hands */

#endif
