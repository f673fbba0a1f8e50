/* SPDX-License-Identifier: Apache-2.0
 *
 * Logging: one line per event to stderr or a file, as text or JSON, or to journald with each pair
 * as a field. Library code returns errors; only rooms that own a decision log. Thread-safe: a line
 * is one write(2).
 *
 *   log_info("client", "alloc started", "alloc_id", id, "node", name, NULL);
 *
 * After the message come pairs of key and value, both strings, ended by NULL; a NULL value prints
 * as "". Use LOG_U64()/LOG_I64()/LOG_DUR() for numbers.
 */
#ifndef PADDOCK_COMMON_LOG_H
#define PADDOCK_COMMON_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
    LOG_TRACE,
    LOG_DEBUG,
    LOG_INFO,
    LOG_WARN,
    LOG_ERROR,
    LOG_OFF,
    LOG_LEVEL_INVALID = -1
};

enum log_level log_level_parse(const char *s); /* case-insensitive; LOG_LEVEL_INVALID */
void log_setup(enum log_level level, bool json, int fd);
/* log_setup: fd is borrowed. Where it is a stream of journald's, lines go to journald as fields
 * (MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, PADDOCK_ROOM, and PADDOCK_<KEY> per pair:
 * PADDOCK_ALLOC_ID), unless JSON is asked for. Without log_setup: text of level info to stderr. */
void log_set_level(enum log_level level);
/* Says whether a line of the level is taken by anybody now. */
bool log_wants(enum log_level level);

/* Tells of each line that was written to the descriptor, with its bytes; NULL: nobody. fn() comes
 * on any thread, and logs nothing. */
typedef void log_written_fn(size_t n);
void log_on_written(log_written_fn *fn);

/* Somebody else who gets lines, each whole and with its line break, of its own level and form
 * whatever the others have. fn() comes on any thread, within the log: it must be short, and log
 * nothing. */
typedef void log_tap_fn(void *arg, const char *line, size_t n);
struct log_tap {
    enum log_level level;
    bool json;
    log_tap_fn *fn;
    void *arg;
    struct log_tap *next; /* the log's own */
};
void log_tap_add(struct log_tap *t);
/* After it fn() does not come any more. */
void log_tap_remove(struct log_tap *t);

void log_write(enum log_level level, const char *room, const char *msg, ...)
    __attribute__((sentinel));

/* After a log_error() that says why: this process cannot go on, a new one may (the supervisor or
 * the service manager starts it). Ends at once, with a status of its own, no destructors, no core
 * file. */
enum { LOG_FATAL_STATUS = 74 };
_Noreturn void log_fatal_exit(void);

#define log_trace(room, ...) log_write(LOG_TRACE, room, __VA_ARGS__)
#define log_debug(room, ...) log_write(LOG_DEBUG, room, __VA_ARGS__)
#define log_info(room, ...) log_write(LOG_INFO, room, __VA_ARGS__)
#define log_warn(room, ...) log_write(LOG_WARN, room, __VA_ARGS__)
#define log_error(room, ...) log_write(LOG_ERROR, room, __VA_ARGS__)

#define LOG_NUM 24
const char *log_u64(char out[LOG_NUM], uint64_t v);
const char *log_i64(char out[LOG_NUM], int64_t v);
const char *log_dur(char out[LOG_NUM], int64_t ns);
#define LOG_U64(v) log_u64((char[LOG_NUM]){0}, (v))
#define LOG_I64(v) log_i64((char[LOG_NUM]){0}, (v))
#define LOG_DUR(v) log_dur((char[LOG_NUM]){0}, (v))

#endif
