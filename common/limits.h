/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of common/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_COMMON_LIMITS_H
#define PADDOCK_COMMON_LIMITS_H

enum {
    /* --- texts and logs --- */
    ERR_TEXT_MAX = 1024,     /* bytes of an error; the rest is cut */
    LOG_LINE_MAX = 16 << 10, /* bytes of a line of the log; the rest is cut */
    JOURNAL_BYTES_MAX =
        64 << 10,          /* bytes of its fields in the journal; what does not fit is left out */
    JOURNAL_WAIT_MS = 500, /* a journal that takes no line; lines are lost then, and counted */

    /* --- starts of services that fail --- */
    START_TRIES = 3,              /* starts one after the other before pauses begin */
    START_PAUSE_MAX_S = 60,       /* between two tries of agent or hand */
    START_PAUSE_FIRST_MAX_S = 8,  /* of holder or warden, for which the agent's start waits */

    /* --- tables (server state, client state) --- */
    TABLE_KEY_MAX = 511,      /* bytes of a key */
    TABLE_READERS_MAX = 1024, /* reads at the same time */
    TABLE_TABLES_MAX = 64,    /* tables of a file */

    /* --- the mount table --- */
    MOUNT_TABLE_MAX = 16 * 1024 * 1024, /* bytes of it */

    /* --- regular expressions --- */
    REGEX_PATTERN_MAX = 4096, /* bytes of one */
    REGEX_DEPTH_MAX = 5000,   /* nesting of one match */
    REGEX_HEAP_KIB = 4096,    /* KiB of memory of one match */

    /* --- time zones --- */
    ZONE_BYTES_MAX = 64 << 10, /* bytes of the file of one */
    ZONE_NAME_MAX = 128,       /* bytes of the name of one */

    /* --- removal of directories --- */
    REMOVE_LEVELS = 64,          /* directories open at once while a tree is removed */
    REMOVE_PASSES_MAX = 1 << 16, /* times a directory is read again while it is removed */
};

#endif
