/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of the crash tests: a program (a function in a child) works under a rule of faults.h until
 * it ends or its k-th call is hit, telling what it has acknowledged; then the same directory is opened
 * again without faults and must hold all of that. For k = 1, 2, ... until a run is not hit any more.
 */
#ifndef PADDOCK_TESTS_CRASH_H
#define PADDOCK_TESTS_CRASH_H

#include <stdbool.h>
#include <stdint.h>

struct crash {
    const char *classes; /* of faults.h */
    const char *pattern; /* below the directory: "raft/log-*" */
    const char *action;  /* "fail EIO", "tear EIO", "exit", "cut" (a seed is added) */
    unsigned seeds;      /* of `cut`; 0: one */
    unsigned step;       /* 0: every k */
    /* In a child, with faults on: works in dir; acknowledged(n) after each thing that is done. An
     * error ends it by its own means, or it returns. */
    void (*work)(const char *dir);
    /* In another child, without faults: all up to `n` is there. `power`: the machine restarted too. */
    void (*check)(const char *dir, uint64_t n, bool power);
    int fatal; /* exit status with which `work` may end itself; 0: none */
};

/* From within work(). */
void acknowledged(uint64_t n);
/* Fails the test with k and seed in the message. Returns the number of runs that were hit. */
unsigned crash_run(const struct crash *c);
/* True when PADDOCK_LONG is set: every k, many seeds. */
bool crash_long(void);

#endif
