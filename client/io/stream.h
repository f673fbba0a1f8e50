/* SPDX-License-Identifier: Apache-2.0
 *
 * Files and logs of allocations as streams of bytes. The warden opens every file.
 */
#ifndef PADDOCK_CLIENT_IO_STREAM_H
#define PADDOCK_CLIENT_IO_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

struct allocs;
struct streams; /* all open ones */

/* A byte stream for an HTTP body, pulled: the reader asks until -EAGAIN, and is told by `ready`,
 * once per -EAGAIN, that asking again makes sense. */
struct client_stream;

enum client_stream_kind {
    CLIENT_STREAM_FILE,   /* cat, readat: raw bytes of one file, ends at its end or after `limit` */
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
    bool follow; /* FRAMES, LOGS: wait for more; ends when the task is dead and all is read */
    bool plain;  /* LOGS: raw bytes instead of frames */
};

/* `s` is owned by the receiver, who closes it. */
typedef void client_stream_opened(void *arg, const struct err *e, struct client_stream *s);
/* > 0: that many bytes; 0: the end; -EAGAIN: nothing now, `ready` will be called once; else -error.
 */
ssize_t client_stream_read(struct client_stream *s, void *buf, size_t n, void (*ready)(void *arg),
                           void *arg);
/* Any time, also with a `ready` outstanding (it will not come any more). */
void client_stream_close(struct client_stream *s);

struct streams *streams_new(struct allocs *allocs);
void streams_open(struct streams *all, const struct client_stream_request *req,
                  client_stream_opened *opened, void *arg);
/* A task's state changed: streams that follow its files look again. */
void streams_wake(struct streams *all, const char *alloc_id);
void streams_stop(struct streams *all); /* ends all; their readers still close them */

#endif
