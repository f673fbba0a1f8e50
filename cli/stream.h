/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of files and logs that the agent streams: printed as they come, or from their last lines
 * on.
 */
#ifndef PADDOCK_CLI_STREAM_H
#define PADDOCK_CLI_STREAM_H

#include "cli/command.h"

/* The place where bytes go. With `cut`, the bytes there at the start (at least `begin` of them
 * come) are held back until all have come, and only the last `lines` lines are printed; what comes
 * then goes through. */
struct sink {
    struct cmd *c;
    FILE *to;
    bool cut;
    bool whole; /* the kept bytes are the whole of it: its first line is not a piece of one */
    int64_t lines;
    size_t begin;
    struct buf kept;
    bool failed; /* to write */
};

/* For http_ask.on_body. */
bool sink_body(void *sink, const struct http_resp *r, const void *p, size_t n);
/* At the end of the stream: prints what was still held back. */
void sink_end(struct sink *s);

/* One stream into a sink, to its end; the exit code. `what`: "reading logs". */
int stream_get(struct cmd *c, const char *what, char *target, struct sink *s);
int stream_bad_status(struct cmd *c, const char *what, const struct http_resp *r);

/* Finds the beginning of the last `lines` lines of p; false: there are fewer. */
bool tail_start(const uint8_t *p, size_t n, int64_t lines, size_t *ret);
/* Reads ever larger windows of the end, until the last `lines` lines begin in the second half of a
 * window (the rest is for bytes that are written meanwhile), or a window is the whole file.
 * `target(arg, window)` names the end of so many bytes. Fills s->kept, s->whole and *ret_window;
 * the exit code. With `may_miss` a 404 is an empty end. */
struct tail {
    char *(*target)(void *arg, int64_t window);
    void *arg;
    bool may_miss;
};
int tail_read(struct cmd *c, const char *what, const struct tail *t, struct sink *s,
              int64_t *ret_window);

/* An interrupt is how one stops following: it ends the command with 0. */
void follow_until_interrupt(void);

#endif
