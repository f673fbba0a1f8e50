/* SPDX-License-Identifier: Apache-2.0
 *
 * The watch (watch.c) around a run of attempts in a test in C.
 */
#ifndef PADDOCK_TESTS_ATTEMPTS_WATCH_H
#define PADDOCK_TESTS_ATTEMPTS_WATCH_H

#include <sys/types.h>

enum { WATCH_SECRET = 32, WATCH_PATH_MAX = 128 };

struct watch {
    pid_t pid;
    int in, out;
    char canary[WATCH_PATH_MAX];
    char secret[WATCH_SECRET + 1]; /* text of the canary */
};

/* The canary is made in `dir`. Fails the test when the watch does not start. */
void watch_begin(struct watch *w, const char *dir);
/* Fails the test with the watch's words when something changed, or when `output` (may be NULL)
 * holds the secret. */
void watch_end(struct watch *w, const char *output);

#endif
