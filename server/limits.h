/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of server/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_SERVER_LIMITS_H
#define PADDOCK_SERVER_LIMITS_H

enum {
    /* --- server: requests --- */
    SERVER_INTENT_MAX = 16 << 20, /* bytes of a write */
    SERVER_PROPOSALS_MAX = 65536, /* writes that are queued and not yet applied */
    SERVER_WATCHES_MAX = 65536,   /* blocking queries */
    SERVER_HOPS_MAX = 3,          /* servers that pass a call on */
    FORWARD_WAIT_MS = 1000,       /* a call to wait for a leader */
    QUERY_TIME_MAX_MS = 600000,   /* a blocking query */
    JOB_SOURCE_MAX = 1000000, /* bytes of the source of a job, with its variables, that are kept */
    UPDATE_ALLOCS_MAX = 4096, /* allocations in one report of a client */
    GET_ALLOCS_MAX = 4096,    /* allocations that a client asks for at once */
    GET_ALLOCS_BYTES = 4 << 20, /* bytes of those sent to it at once; it asks for the others then */
    GET_ALLOCS_KNOWN_MAX = 256, /* jobs that it names as known */
    SEARCH_MATCHES_MAX = 20,    /* ids of a kind that a search names */
    FUZZY_MATCHES_MAX = 100,    /* names of a kind that a fuzzy search gives */
    FUZZY_ROWS_MAX = 65536,     /* rows of a kind that a fuzzy search looks at */
    FUZZY_TEXT_MIN = 2,         /* bytes of a text that is searched for in names; not fewer */
    SCALE_COUNT_MAX = 50000,    /* allocations of a job that is scaled */
    SCALE_META_MAX = 4 << 10,   /* bytes of Meta of a scaling event */
    LIST_PART_BYTES = 64 << 10, /* bytes of JSON at which a part of a list ends */
    READ_HERE_BYTES =
        16 << 10,       /* bytes of an object that is read where it is asked for, not by a worker */
    READ_HERE_MAX = 32, /* objects read so before others have a turn */
    LIST_PART_ROWS = 4096,           /* rows that are looked at for a part of a list */
    LIST_PART_NS = 10 * 1000 * 1000, /* ns of work for a part of a list */

    EVENTS_KEPT_MAX = 4096,        /* entries of the log whose events are kept for readers */
    EVENTS_KEPT_BYTES = 32 << 20,  /* bytes of memory of these, about */
    EVENTS_PART_BYTES = 256 << 10, /* bytes of events at which an answer to a reader ends */
    EVENTS_PART_ENTRIES = 256,     /* entries that are looked at for one */
    EVENTS_LINE_MAX = 8 << 20, /* bytes of the events of an entry; without Payload if it has more */

    DISPATCH_PAYLOAD_MAX = 16 << 10, /* bytes of the payload of a dispatch */

    /* --- server: logins --- */
    JWT_LOGIN_MAX = 64 << 10,   /* bytes of a token that is shown to log in */
    JWT_KEYS_MAX = 100,         /* public keys of a method of login */
    JWT_PEM_MAX = 64 << 10,     /* bytes of one in PEM */
    JWKS_BYTES_MAX = 256 << 10, /* bytes of a set of keys, or of the document that names it */
    JWKS_SETS_MAX = 64,         /* sets of keys that are kept */
    JWKS_WAITERS_MAX = 1024,    /* logins that wait for a set of keys */
    JWKS_REDIRECTS_MAX = 3,     /* redirections on the way to one */
    JWKS_FRESH_MS = 300000,     /* a set of keys is used before it is asked for anew */
    JWKS_AGAIN_MS = 5000,       /* from one request for a set to the next, for a key not in it */
    JWKS_ANSWER_MS = 10000,     /* an answer on the way to a set of keys */
    LOGIN_CLAIM_MAX = 16 << 10, /* bytes of a claim that a method maps */
    LOGIN_LIST_MAX = 1024,      /* texts of a list of them */

    /* --- server: scheduling --- */
    PERIODIC_LATE_MAX_S =
        60, /* seconds; of times missed before them a periodic job makes up for the last */
    PERIODIC_TURN = 64,        /* launches before others have their turn */
    WORKERS_MAX = 64,          /* scheduling threads */
    WORKERS_QUEUE_MAX = 256,   /* evaluations that wait for one */
    PLAN_CORES_MAX = 1024,     /* cores of a node */
    PLAN_PART_MAX = 1000,      /* changes of a plan that are one entry of the log */
    SIMULATE_NODES_MAX = 1000, /* nodes of a simulated drain */
    PLAN_STEP = 1000, /* changes of a plan that are checked before others have their turn */

    /* --- server: state, Raft log and snapshots --- */
    STATE_JOB_VERSIONS_KEPT = 6, /* versions of a job */
    STATE_NODE_EVENTS_KEPT = 10, /* events of a node */
    ROW_MAX = 64 << 20,          /* bytes of a row */
    ROW_BUDGET = 256 << 20,      /* bytes of memory of a decoded row */
    ROW_SURE_BYTES =
        64 << 10, /* bytes of a row that needs less memory than ROW_BUDGET whatever it holds */
    RECORD_DATA_MAX = 32 << 20,  /* bytes of a record of the log */
    SEGMENT_BYTES_MAX = 1 << 30, /* bytes of a file of the log */
    LOG_QUEUE_MAX = 1 << 30,     /* bytes that wait to be written to the log */
    DISK_ROOM_MIN = 80 << 20, /* bytes free on the disk of data_dir, less and new work is refused */
    DISK_LOG_ROOM =
        24 << 20,           /* bytes of that on the disk itself; the rest may be within the state */
    DISK_RESERVE = 8 << 20, /* bytes reserved for the state, to stop jobs on a full disk */
    SNAPSHOT_ROW_MAX = 64 << 20,   /* bytes of a row of a snapshot */
    SNAPSHOT_CONF_MAX = 64 << 10,  /* bytes of the members in a snapshot */
    CONSENSUS_PEERS_MAX = 64,      /* servers */
    SERVERS_GONE_MAX = 64,         /* servers that are members no more, of which that is known */
    CONSENSUS_ADDR_MAX = 255,      /* bytes of the address of a server */
    CONSENSUS_INFLIGHT_MAX = 8192, /* entries on their way through Raft */

    KEYS_KNOWN_MAX = 32, /* root keys that a server keeps in clear; others are unwrapped anew */
    TRANSIT_MS = 10000,  /* a server that seals and opens the wrapping key answers in this time */

    /* --- server: gossip --- */
    GOSSIP_MEMBERS_MAX = 1000,    /* servers of all regions that know of each other */
    GOSSIP_PACKET_MAX = 64 << 10, /* bytes of a packet */
    GOSSIP_DATAGRAM_MAX = 1400,   /* bytes of one that is sent by UDP */
    GOSSIP_ABOUT_MAX = 1024,      /* bytes of what a server says of itself */
    GOSSIP_ADDR_MAX = 255,        /* bytes of its name, its region and each of its addresses */
    GOSSIP_KEYS_MAX = 16,         /* keys of a ring */
};

#endif
