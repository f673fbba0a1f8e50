/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of client/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_CLIENT_LIMITS_H
#define PADDOCK_CLIENT_LIMITS_H

enum {
    /* --- client: volumes --- */
    CLIENT_VOLUMES_BYTES_MAX = 4 << 20, /* bytes of the file that remembers those of a node */

    /* --- client: files and logs of tasks --- */
    CLIENT_STREAMS_MAX = 512,          /* logs and files that are read at the same time */
    CLIENT_FRAME_MAX = 48 << 10,       /* bytes of a frame of a followed file */
    CLIENT_STREAM_OUT_MAX = 256 << 10, /* bytes kept of a stream whose reader is slow */
    LOG_INDEX_FILES_MAX = 4096,        /* rotated files of one log that are looked at */
    FS_PATH_MAX = 4096,                /* bytes of a path */
    FS_FILES_MAX = 16384,              /* entries of a directory that is listed */

    /* --- client: commands in tasks --- */
    CLIENT_EXECS_MAX = 64,             /* commands that run in tasks at the same time */
    CLIENT_EXEC_CHUNK = 32 << 10,      /* bytes of their output that are passed on at once */
    CLIENT_EXEC_INPUT_MAX = 256 << 10, /* bytes of their input that wait to be read by them */

    /* --- client: tasks --- */
    ENV_VALUE_MAX = 128 << 10, /* bytes of an interpolated text */
    ENV_DEPTH_MAX = 64,        /* nesting of what ${...} looks at */
    ENV_MISSING_MAX = 32,      /* references without a value that a task's failure names */
    CLIENT_STATE_GIB = 16,     /* GiB of the local state; each allocation has a copy of its job */
    CLIENT_ROW_MAX = 32 << 20, /* bytes of a row of the local state */
    CLIENT_KEY_MAX = 400,      /* bytes of its key */
    CLIENT_RESERVE = 1 << 20,  /* bytes reserved for the local state, to go on with a full disk */
    CLIENT_REMOVALS_MAX = 64,  /* ended allocations that wait to be removed before new ones wait */
    CLIENT_UPDATE_MAX = 256,   /* allocations in one report to the servers */
    CLIENT_FETCH_MAX = 1024,   /* allocations asked of the servers at once */
    CLIENT_KNOWN_MAX = 64,     /* jobs named to them as known */
    RESOLV_MAX = 64 << 10, /* bytes of the host's resolv.conf; of a larger one nothing is taken */
    STATS_PIDS_MAX = 256,  /* processes that the statistics of a task name */
    CLIENT_META_MAX = 256, /* keys of dynamic metadata of the node */
    CLIENT_META_KEY_MAX = 128,           /* bytes of a key of it */
    CLIENT_META_VALUE_MAX = 4096,        /* bytes of a value */
    CLIENT_META_BYTES_MAX = 256 << 10,   /* bytes of all of it */
    CLIENT_SERVERS_BYTES_MAX = 16 << 10, /* bytes of the file of servers that are known */
    STATS_CPUS_MAX = 4096,               /* processors of the host statistics */
};

#endif
