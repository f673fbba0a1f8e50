/* SPDX-License-Identifier: Apache-2.0
 *
 * The programs that the warden starts for tasks (WARDEN_HELPER): which they are, the descriptors
 * that they begin with, and what is told of their end.
 *
 * Input of a stranger is parsed in them: each runs as the task's user without any capability, in a
 * pid namespace and a cgroup of its own, sees (Landlock) the directories that it is given and the
 * host's libraries, certificates and resolver, has no socket but those of the internet, makes no
 * process, and is killed at its deadline, when the agent closes the exit socket, and with the
 * warden. A helper that clones a repository starts the host's git, hg and ssh in the same box:
 * nothing of what they bring can be executed. Their scratch directory is /tmp, too.
 */
#ifndef PADDOCK_ISOLATION_LAUNCH_HELPER_H
#define PADDOCK_ISOLATION_LAUNCH_HELPER_H

#include <stdint.h>

/* PROGRAM(name in a request, file beside the warden, whether it has a scratch directory, whether it
 * starts programs of the host) */
#define HELPER_PROGRAMS(PROGRAM)                                                                   \
    PROGRAM("fetch", "paddock-fetch", true, false)                                                 \
    PROGRAM("clone", "paddock-fetch", true, true)                                                  \
    PROGRAM("render", "paddock-render", false, false)

enum {
    HELPER_PACKET_MAX = 128 * 1024, /* a longer request comes in a file */
    HELPER_REQUEST_MAX = 16 << 20,  /* bytes of it */
    HELPER_REPORT_MAX = 128 * 1024,
};

#define HELPER_NAME ".helper-" /* begins the name of a helper's cgroup and scratch directory */

enum helper_fd {
    HELPER_FD_TALK = 3,    /* SOCK_SEQPACKET: the agent (helper_talk.h) */
    HELPER_FD_TASK = 4,    /* directory of the task */
    HELPER_FD_SHARED = 5,  /* directory that the allocation's tasks share */
    HELPER_FD_SCRATCH = 6, /* directory of its own on their file system, removed after it; without
                             * one that of the task */
    HELPER_FD_CACHE = 7, /* what this node has of the download that is asked for; O_PATH: nothing */
    HELPER_FD_END = 8
};

#define WARDEN_CACHE_NAME "cache" /* of the scratch directory: what is to be kept */
enum { WARDEN_CACHE_KEY = 64 };   /* digits */

/* When a file that is there already stands in for a template. */
enum render_keep { RENDER_KEEP_NEVER, RENDER_KEEP_WAITING, RENDER_KEEP_ALWAYS };

enum helper_cause {
    HELPER_ENDED,    /* by itself: code or signal */
    HELPER_DEADLINE, /* killed */
    HELPER_MEMORY,   /* killed for want of memory within its limit */
    HELPER_NOT_RUN,  /* `step` failed with `error`: the program did not begin */
};

struct helper_end {
    int32_t cause;
    int32_t code;
    int32_t signal; /* 0: it exited */
    int32_t error;  /* positive errno */
    char step[48];
};

#endif
