/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of agent/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_AGENT_LIMITS_H
#define PADDOCK_AGENT_LIMITS_H

enum {
    /* --- HTTP API --- */
    API_RESTORE_MS = 600 * 1000,     /* what making or taking up a backup may take beyond that */
    API_CALL_MS = 60 * 1000,         /* a request that does not block */
    API_VOLUME_WAIT_MS = 20 * 1000,  /* until an answer without the node whose volume it is */
    API_BODY_FACTOR = 24,            /* times its size that a JSON body may take in memory */
    API_BODY_LARGE = 64 << 10,       /* bytes of a body that is not decoded on the loop */
    API_BODY_MEMORY_MAX = 128 << 20, /* bytes of memory of any JSON body */
    API_BODY_EXTRA = 1 << 20,        /* bytes on top of that */
    API_ANSWER_MAX = 60 << 20,       /* bytes of an answer; ask for pages */
    API_LIST_WHOLE = 1 << 20,        /* bytes of a list from which on it is streamed */
    API_EVENT_BEAT_MS = 10 * 1000,   /* an event stream says nothing, before a heartbeat */
    API_EVENT_RETRY_MS = 500,        /* an event stream that no server answers asks again */
    API_EVENT_SILENT_MS = 60 * 1000, /* an event stream that no server answers ends */
    MONITOR_LINES_MAX = 512 << 10,   /* bytes of the log that wait for a reader */
    AGENT_TASK_CONNS_MAX = 32,       /* connections to the API at the socket of a task */
    AGENT_TASKS_CONNS_MAX = 1024,    /* of all tasks of a node */
    API_PARSES_MAX = 2,              /* job files that are parsed at the same time (429) */

    /* --- audit log --- */
    AUDIT_LINE_MAX = 4 << 10, /* bytes of a line; a path or id that is longer is cut off */
    AUDIT_ROOM = 1 << 20,     /* bytes of disk that are taken at a time, ahead of the lines */
    AUDIT_FILES_MAX = 100,    /* rotated files (rotate_max_files) */
    AUDIT_FILTERS_MAX = 64,   /* blocks filter */

    /* --- configuration --- */
    CONFIG_FILES_MAX = 1024,     /* files of a configuration directory */
    CONFIG_BYTES_MAX = 16 << 20, /* bytes of all files of the configuration together */
    CONFIG_NAMED_MAX = 1 << 20,  /* bytes of a file of certificates or of a key */
    RELOAD_WAIT_MS = 60 * 1000,  /* a request to reload, for the files to be read anew (504) */
    RELOAD_RING_MS = 2 * 1000,   /* such a request that nobody answers, until it is made again */
};

#endif
