/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's network worker: a child of the warden, without a program of its own, that does what
 * may wait for locks of the kernel's network code: it makes network namespaces (some ahead of
 * time), puts allocations on the bridge and takes them off. It serves one request after the other
 * and ends with the warden's end of the socket. Both sides are one program, so structs cross as
 * they are.
 */
#ifndef PADDOCK_ISOLATION_NETWORK_WORKER_H
#define PADDOCK_ISOLATION_NETWORK_WORKER_H

#include <stdint.h>

#include "isolation/network/network.h"

enum work_op {
    WORK_SPARE = 1, /* a namespace for later */
    WORK_MAKE,      /* one for `net`: with the fd that came along, or a new one */
    WORK_REMOVE, /* what WORK_MAKE made but the namespace, which goes with its last process and fd
                  */
    WORK_RESET,  /* the bridge and all maps anew, from the records in the memfd that came along */
    WORK_CLEAR,  /* nothing of ours stays */
};

struct work_request {
    uint32_t op;
    uint32_t seq;
    struct net_record net;
};

/* With an fd: the namespace, of WORK_SPARE and WORK_MAKE. */
struct work_answer {
    uint32_t op;
    uint32_t seq;
    int32_t code;   /* 0 or -errno */
    char what[124]; /* the step that failed */
};

/* In the child: serves `socket` until its end. `lock` (a file) is held meanwhile: the worker of a
 * killed warden finishes what it does before another begins. */
_Noreturn void worker_run(const struct net_conf *conf, int socket, int lock);

/* Tries everything in a namespace of its own, which is then gone. 0, or why bridges cannot work. */
int worker_probe(const struct net_conf *conf, struct work_answer *ret);

#endif
