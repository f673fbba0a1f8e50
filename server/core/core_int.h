/* SPDX-License-Identifier: Apache-2.0
 *
 * The core in two halves, each a thread with data of its own and an inbox that others fill. A half
 * takes all of its inbox at once, works for a bounded turn (core_step, apply_step) and looks again.
 *
 *   raft half   core.c: consensus, log, entries that are in the log and not handed over. Larger
 *               entries make no turn of it longer, but for the log's copy of them.
 *   apply half  apply.c, snapshot.c: the state, what was handed over and is not applied, the
 *               listeners (controllers, live tables), local snapshots.
 *
 * To the raft half, in core_input:
 *   proposals   of any thread, admitted at the door (queue.c), proposed in order, a bounded part
 *               per turn. While the state waits for space (`short_of`) they stay in the inbox.
 *   durable     from the log's writer.
 *   snapshot    from the apply half: it is stored, the log may be cut.
 *   messages    of other servers, decoded, in their order; a bounded amount, what is beyond is
 *               lost.
 *   gone        servers whose process has ended.
 * From it to other servers, by core_net: messages, behind what an update made durable or gave to
 * the log. To the apply half, in apply_input:
 *   entries     committed and durable here, in order of the log, each once, with the proposal that
 *               waits for it. They are never taken back: what cannot be applied for want of space
 *               stays with the apply half, which tries again. A configuration is told to consensus
 *               when it is handed over; that needs no state. `begins` marks the barrier of our own
 *               leadership: once applied, listeners hear on_leader. An entry that is replaced
 *               takes its mark with it.
 *   lost        before all else: listeners hear on_lose, and no entry that is not applied has a
 *               proposal or a mark any more (the raft half clears those of its list and of the
 *               inbox), so nothing of the old leadership begins or completes after it. `leader` is
 *               false from the loss on; it becomes true under the inbox's lock, and only when no
 *               loss is waiting there.
 *   calls       core_post(): in order, between two batches; not while the state waits for space.
 * Both read, without asking: `unapplied`, bytes in the log, which the raft half adds, and the apply
 * half takes off behind the commit that makes `used` grow (who admits reads them in the other
 * order, so that bytes on their way are counted at least once); `reserve`, `disk_short`.
 *
 * Bounds: proposals by number and bytes at the door, until they are applied or failed, wherever
 * they are. Stop: the door closes; the raft half proposes what it has and ends; the apply half
 * applies what was handed over, runs its calls and ends; the log becomes durable; what is left
 * completes with -ERR_CANCELED.
 *
 * Locks: an inbox's own, for moments; the apply half's before the raft half's.
 */
#ifndef PADDOCK_SERVER_CORE_CORE_INT_H
#define PADDOCK_SERVER_CORE_CORE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/buf.h"
#include "server/core/core.h"
#include "server/raft/consensus.h"
#include "server/raft/log.h"
#include "server/raft/recent.h"
#include "server/raft/wire.h"

enum {
    /* the bounds of one turn */
    CORE_PROPOSE_N = 256,
    CORE_PROPOSE_BYTES = 1 << 20,
    CORE_APPLY_BATCH = 1024,
    CORE_LISTENERS = 4,
    CORE_APPLY_BYTES = 1 << 20,
    CORE_APPLY_CALLS = 16,
    CORE_QUEUE_BYTES_MAX = 256 << 20, /* at the door */
    CORE_MSGS_BYTES_MAX = 64 << 20,   /* messages of other servers that wait */
    CORE_SEND_BYTES = 1 << 20,        /* of entries in one message, or one entry */
    CORE_READ_N = 1024,               /* older entries that are read for one message */
    CORE_TRAILING = 10240,            /* entries kept behind a snapshot, for servers that lag */
    CORE_GONE_MS = 150,               /* a server whose leader has ended stands within that */
    /* A snapshot for want of space frees so much of the log and of the one before it, or is not
       tried. */
    CORE_SPACE_RETRY_MS = 100,
    CORE_SHORT_GAIN = 8 << 20,
};

struct proposal {
    struct proposal *next;
    enum home home;
    propose_fn *done;
    void *arg;
    struct buf data;
    size_t bytes;
    enum intent_room room;
};

struct call {
    struct call *next;
    void (*fn)(void *arg);
    void *arg;
};

/* In the log, not applied yet. */
struct entry {
    struct entry *next;
    uint64_t index;
    uint64_t term;
    enum record_type type;
    bool begins;      /* our leadership, once it is applied */
    const void *data; /* owned, or the proposal's */
    size_t n;
    struct buf given; /* the proposal's data, which outlives it */
    struct proposal *proposal; /* ours, waiting; NULL: from the log or a peer */
    struct err *refused; /* its rows cannot be stored: it has no effect. NULL: not known yet */
};

/* A message of another server. */
struct core_msg {
    struct core_msg *next;
    struct peer_msg m; /* all of it is memory of this */
    size_t bytes;
    uint64_t gone; /* not a message: that server's process has ended; */
    bool transfer; /* or we are to hand over the leadership, */
    uint64_t to;   /* to that server; 0: to the best; */
    struct feed_read *read; /* or that was read (owned); */
    struct peer_list change; /* or these are to be the servers (owned); */
    struct wire_piece piece; /* or this was sent, or taken when it has no size */
};

/* First in, first out; *last is where the next one goes. */
#define FIFO(T)     \
    struct {        \
        T *first;   \
        T **last;   \
    }
#define fifo_init(l) ((l)->first = NULL, (l)->last = &(l)->first)
#define fifo_add(l, x) (*(l)->last = (x), (l)->last = &(x)->next)
/* The first one, which is there. */
#define fifo_take(l)                            \
    ({                                          \
        __typeof__((l)->first) _x = (l)->first; \
        if (((l)->first = _x->next) == NULL)    \
            (l)->last = &(l)->first;            \
        _x->next = NULL;                        \
        _x;                                     \
    })
/* All of `from` behind what is in `l`. */
#define fifo_join(l, from)                \
    do {                                  \
        if ((from)->first != NULL) {      \
            *(l)->last = (from)->first;   \
            (l)->last = (from)->last;     \
        }                                 \
        fifo_init(from);                  \
    } while (0)

typedef FIFO(struct proposal) proposals;
typedef FIFO(struct call) calls;
typedef FIFO(struct entry) entries;
typedef FIFO(struct core_msg) core_msgs;
struct completion;
typedef FIFO(struct completion) completions;

/* An order to the thread that reads. */
struct feed_read {
    struct feed_read *next;
    enum { FEED_ENTRIES, FEED_PIECE, FEED_KEEP } what;
    uint64_t peer;
    uint64_t term; /* in which we led: terms of entries are of then */
    const char *addr;
    /* entries for a follower that are not in the window: of given index and term */
    struct record *v;
    size_t n, found;
    /* a piece of our snapshot for it (index 0: the newest one); or, to keep, one of the leader's */
    struct wire_piece piece;
    struct consensus_snapshot *whole; /* kept: it was the last one, and the snapshot is good */
};

/* The entries or the snapshot that a follower is being sent (feed.c). */
struct feed {
    uint64_t id; /* 0: nobody */
    const char *addr;
    uint64_t term;      /* in which we lead */
    uint64_t next, end; /* entries next <= index < end have not left */
    uint64_t prev_term; /* of the one before */
    bool reading;       /* one feed_read is under way */
    bool quiet;         /* peer_msg.quiet, as consensus said last */
    uint64_t snapshot;  /* index of the snapshot under way to it; 0: not known yet, or none */
    int64_t piece_ms;   /* when a piece of it was asked for or taken last; 0: none is sent */
};

/* Until when this server surely leads: see lease.c. */
struct lease {
    uint64_t term; /* of all that follows */
    struct {
        uint64_t id;
        uint64_t stamp;
    } acked[CONSENSUS_PEERS_MAX]; /* of a leader: the newest append that each has answered */
    uint64_t leader, heard; /* of a follower: whose, the newest append that it took */
};

struct raft_half {
    uint64_t id;
    struct lease lease;
    struct raft_log *log;
    struct consensus *consensus;
    struct recent *recent;
    bool conf_new; /* the configuration changed since it was published */
    bool alone;    /* the configuration has no other server */
    bool is_new; /* no log, no configuration */
    /* the state that consensus starts from; dropped after core_begin() */
    struct consensus_start start;
    void *start_ctx;
    int64_t now_ms;
    enum consensus_role role;
    uint64_t term;
    bool role_new;  /* became leader: propose a barrier */
    bool beginning; /* it is being proposed */
    uint64_t commit;
    uint64_t stored; /* durable here */
    uint64_t handed; /* over to the apply half */
    uint64_t installed; /* the state that a leader sent: no snapshot of ours before it counts */
    int64_t timeout_ms;
    proposals todo;
    entries tail; /* in the log, not handed over */
    struct proposal *batch[CORE_PROPOSE_N];
    size_t batch_n;
    struct feed feeds[CONSENSUS_PEERS_MAX];
};

struct apply_half {
    struct {
        const struct log_listener *ops;
        void *arg;
    } listeners[CORE_LISTENERS];
    size_t n_listeners;
    int64_t now_ms;
    int64_t space_ms; /* the state waits for space until then; 0: it does not */
    bool opened;      /* listeners were told */
    bool leading;     /* listeners were told */
    uint64_t applied;
    uint64_t applied_term;
    struct peer_list conf; /* as of `applied` */
    uint64_t conf_index;
    entries todo;
    calls calls;
    /* local snapshots */
    uint64_t since_snapshot;       /* entries, */
    uint64_t bytes_since_snapshot; /* and their bytes, since one was begun */
    size_t began_used;             /* what the state used then */
    bool snapshotting;
    pthread_t snapshot_thread;
};

struct core {
    struct core_opts o; /* strings owned */
    const struct env *env;
    struct state *state; /* written, and replaced, by the apply half; others: state_lock */
    pthread_mutex_t state_lock;
    struct raft_half raft;
    struct apply_half apply;
    /* both */
    atomic_bool leader;
    atomic_bool stopping;
    atomic_bool quiet; /* of a leader: all that it wrote is everywhere (struct consensus_status) */
    atomic_bool
        short_of; /* space: committed entries wait. Written with the lock of `raft_in` held */
    atomic_bool disk_short; /* work is refused, the disk is nearly full: a snapshot may make room */
    atomic_size_t unapplied;
    atomic_size_t used;
    atomic_bool reserve;
    atomic_int_fast64_t turn_ns[2]; /* the longest */
    atomic_int_fast64_t newest_ns; /* time of the newest entry applied: no entry of ours is older */
    atomic_int_fast64_t heard_ms;   /* the leader; INT64_MAX: we lead; 0: never */
    atomic_int_fast64_t sure_ms;    /* env_boot_ms(): surely led; INT64_MAX: alone; 0: never */
    struct {
        pthread_mutex_t mutex;
        struct core_status v; /* conf: of a context of its own */
        char leader_addr[CONSENSUS_ADDR_MAX + 1];
    } status;
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t wake;
        proposals proposals;
        uint64_t durable;
        bool durable_news;
        core_msgs msgs;
        size_t msgs_bytes;
        struct consensus_snapshot *snapshot;
        struct core_heard {
            uint64_t id;
            int64_t ms;
        } heard[CONSENSUS_PEERS_MAX]; /* when each other server last sent something; 0: nobody */
        size_t n_proposals; /* admitted, and neither applied nor failed */
        size_t proposal_bytes;
    } raft_in;
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t wake;
        entries entries;
        calls calls;
        bool lost;
        bool look; /* disk_short is new */
        struct consensus_snapshot *install; /* before all entries; NULL: none */
        bool last; /* nothing comes any more */
        completions late; /* came nevertheless: for completions_last() */
    } apply_in;
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t wake;
        FIFO(struct feed_read) wanted;
        bool end;
        /* the reading thread's: what is kept of a snapshot that the leader sends */
        int fd;
        uint64_t index, size, at;
    } reads;
    pthread_t threads[3];
    bool started[3];
};

/* The input that has come since the last step. */
struct core_input {
    proposals proposals;                 /* the step takes them, */
    struct consensus_snapshot *snapshot; /* and this */
    core_msgs msgs;                      /* and these */
    uint64_t durable;                    /* 0: nothing new */
};
struct apply_input {
    entries entries; /* the step takes them, */
    calls calls;     /* and these, */
    struct consensus_snapshot *install; /* and this, which goes before them */
    bool lost;
};

/* Rebuilds a state from that snapshot, which is on disk. */
int core_load(struct core *c, struct state *s, uint64_t index, struct err *e);
/* Before the first step: starts consensus from what was loaded. */
void core_begin(struct core *c, int64_t now_ms);
/* A turn of each half: it does not wait; the caller is the only one inside. */
void core_step(struct core *c, int64_t now_ms, struct core_input *in);
void apply_step(struct core *c, int64_t now_ms, struct apply_input *in);
/* Waits until there is something to step for; false when the half is to end. */
bool core_wait(struct core *c, struct core_input *ret);
bool apply_wait(struct core *c, struct apply_input *ret);

/* --- peer.c --- */
/* A message of consensus to another server, with its entries. */
void core_send(struct core *c, const struct peer_msg *m);
/* Takes them. */
void core_take_msgs(struct core *c, core_msgs *l);
/* Tells other threads what consensus says now. */
void core_publish(struct core *c);
void core_msgs_free(core_msgs *l);

/* False: it did not leave. */
bool core_send_wire(struct core *c, uint64_t to, const char *addr, const struct wire *w);
bool core_send_one(struct core *c, const struct peer_msg *m);
/* To the raft half; any thread. */
void core_put_msg(struct core *c, struct core_msg m);

/* --- lease.c --- */
/* A message leaves; a message has come, before consensus sees it. */
void lease_stamp(struct core *c, struct peer_msg *m);
void lease_take(struct core *c, const struct peer_msg *m);
void lease_publish(struct core *c, const struct peer_list *conf);

/* --- feed.c --- */
/* An append to a follower: what is in the window leaves now, older entries as they are read. */
void feed_append(struct core *c, const struct peer_msg *m);
void feed_take(struct core *c, struct feed_read *x);
/* The snapshot for a follower; its pieces, as they come and as they are taken (install.c). */
void install_give(struct core *c, const struct peer_msg *m);
void install_piece(struct core *c, const struct core_msg *x);
void install_read(struct core *c, struct feed_read *x); /* of the thread that reads */
void install_done(struct core *c, struct feed_read *x);
/* Puts a snapshot that was kept whole in the place of the log, before anything of it is read. */
int install_open(struct core *c, const char *raft_dir, struct err *e);
/* The feed of that follower; NULL: it has none yet. */
struct feed *feed_of(struct core *c, uint64_t id);
struct feed *feed_new(struct core *c, uint64_t id);
void feed_ask(struct core *c, struct feed_read *x);
/* Returns the next order, on the thread that reads; without waiting NULL when there is none; in the
 * end NULL. */
struct feed_read *feed_wanted(struct core *c, bool wait);
/* Reads, and gives the raft half what it found. */
void feed_do(struct core *c, struct feed_read *x);
/* Nothing is wanted any more. */
void feed_end(struct core *c);

/* --- queue.c --- */
/* Frees the proposal; without `res` it failed. */
void completions_add(struct core *c, completions *l, struct proposal *p, int code, const char *why,
                     struct fsm_result *res);
/* Each is called at its home. */
void completions_post(struct core *c, completions *l);
/* After the end of the threads: what could not be called at home before is called, or posted, now.
 */
void completions_last(struct core *c, completions *l);
void core_fail(struct core *c, struct proposal *p, int code, const char *why);
/* Completes what was proposed here and is in the list; nothing in it begins a leadership any
 * more. */
void core_disown(struct core *c, entries *l, completions *done, int code, const char *why);
struct entry *entry_new(const struct record *r, struct proposal *p);
void entries_free(entries *l);
/* Drops entries that nobody waits for: the state gets what is in them by another way, or never. */
void entries_drop(struct core *c, entries *l);
/* Between the halves. */
void core_hand_over(struct core *c, entries *l);
void core_lose(struct core *c, completions *done, const char *why);
void core_hand_install(struct core *c, struct consensus_snapshot *s); /* takes it */
/* A leader's state cannot take the place of ours while the process runs. */
void core_begin_again(struct core *c, const struct err *e);
void core_snapshot_stored(struct core *c, struct consensus_snapshot *s);
/* `leader` becomes true, unless this leadership is lost already. */
void core_lead(struct core *c);
/* The end: first nothing more is admitted, then nothing more is handed over. */
void core_close_door(struct core *c);
void core_nothing_comes(struct core *c);
void core_short_of(struct core *c, bool yes);
void core_look(struct core *c);
/* raft_log_opts.on_durable */
void core_durable(void *arg, uint64_t index);

/* consensus' on_update */
void core_update(void *arg, const struct consensus_update *u);
/* Measures what the state uses, for who admits writes. */
void apply_measure(struct core *c);
void core_maybe_snapshot(struct core *c);
/* Does what the result of an entry asks for: res->restore is NULL afterwards where it was refused,
 * with res->err. */
void core_restore(struct state_txn *t, const struct entry *en, int64_t now, struct fsm_result *res);
void core_join_snapshot(struct core *c);

#endif
