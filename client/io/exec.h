/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that run in tasks.
 */
#ifndef PADDOCK_CLIENT_IO_EXEC_H
#define PADDOCK_CLIENT_IO_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"

struct allocs;
struct execs; /* all that are not freed */

/* A session: a process that joins a running task, with the task's user, confinement and
 * environment. */
struct client_exec;

/* Copied. */
struct client_exec_request {
    const char *task;        /* NULL or "": the only one that runs */
    struct str_list command; /* at least one; looked for as a task's command is */
    bool tty;                /* a terminal of its own: everything it writes is stream 1 */
    int64_t rows, columns;   /* of the terminal; 0: not known */
};

/* `exited` or `failed` is the last one, once; `failed` may be the only one. Events come on the
 * loop, never from inside a call of the owner's. */
struct client_exec_events {
    /* At most CLIENT_EXEC_CHUNK bytes of stream 1 (standard output) or 2; not while paused. */
    void (*output)(void *arg, int stream, const void *data, size_t n);
    void (*closed)(void *arg, int stream); /* the end of that stream */
    void (*writable)(void *arg);           /* after client_exec_write() returned -EAGAIN */
    void (*exited)(void *arg, int code, int signal); /* everything it wrote has been delivered */
    void (*failed)(void *arg, const struct err *e);
};

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

struct execs *execs_new(struct allocs *allocs);
/* Does what client_exec_open() says. */
struct client_exec *execs_open(struct execs *all, const char *alloc_id,
                               const struct client_exec_request *req,
                               const struct client_exec_events *events, void *arg);
void execs_stop(struct execs *all); /* all fail; their owners still free them */

#endif
