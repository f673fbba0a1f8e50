/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/journal.h"
#include "common/limits.h"

static const char *const priorities[] = {"7", "7", "6", "4", "3"}; /* syslog(3) */

static const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"};
static _Atomic int level_now = LOG_INFO;
static _Atomic bool json_now = false;
static _Atomic int fd_now = STDERR_FILENO;

static log_written_fn *_Atomic written_now;

static _Atomic int tap_level = LOG_OFF; /* the lowest of all taps */
static struct log_tap *taps;
static pthread_mutex_t taps_lock = PTHREAD_MUTEX_INITIALIZER;

enum log_level
log_level_parse(const char *s)
{
    for (int i = 0; i <= LOG_OFF; i++)
        if (strcasecmp(s, names[i]) == 0)
            return (enum log_level)i;
    if (strcasecmp(s, "err") == 0)
        return LOG_ERROR;
    return LOG_LEVEL_INVALID;
}

void
log_setup(enum log_level level, bool json, int fd)
{
    level_now = (int)level;
    json_now = json;
    fd_now = fd;
    (void)journal_open(json ? -1 : fd, JOURNAL_SOCKET); /* who asks for JSON wants lines */
}

void
log_set_level(enum log_level level)
{
    level_now = (int)level;
}

void
log_on_written(log_written_fn *fn)
{
    written_now = fn;
}

bool
log_wants(enum log_level level)
{
    return (int)level >= level_now || (int)level >= tap_level;
}

const char *
log_u64(char out[LOG_NUM], uint64_t v)
{
    (void)snprintf(out, LOG_NUM, "%llu", (unsigned long long)v);
    return out;
}

const char *
log_i64(char out[LOG_NUM], int64_t v)
{
    (void)snprintf(out, LOG_NUM, "%lld", (long long)v);
    return out;
}

const char *
log_dur(char out[LOG_NUM], int64_t ns)
{
    char tmp[DURATION_TEXT];
    (void)snprintf(out, LOG_NUM, "%s", duration_format(ns, tmp));
    return out;
}

enum quoting { PLAIN, QUOTED, JSON };

/* A log line is one line whatever a task or peer put into a value. */
static void
put_escaped(struct buf *b, const char *s, enum quoting how)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (how != PLAIN && (c == '"' || c == '\\'))
            buf_printf(b, "\\%c", c);
        else if (c == '\n')
            buf_puts(b, "\\n");
        else if (c < 0x20 || c == 0x7f)
            buf_printf(b, how == JSON ? "\\u%04x" : "\\x%02x", c);
        else
            buf_putc(b, (char)c);
    }
}

static void
put_text_value(struct buf *b, const char *v)
{
    bool quote = !*v || strpbrk(v, " \t\r\n\"\\=") != NULL;
    if (quote)
        buf_putc(b, '"');
    put_escaped(b, v, quote ? QUOTED : PLAIN);
    if (quote)
        buf_putc(b, '"');
}

/* The line as people read it, after time and level. */
static void
put_text(struct buf *b, const char *room, const char *msg, va_list ap)
{
    buf_printf(b, "%s: ", room);
    put_escaped(b, msg, PLAIN);
    for (const char *k = va_arg(ap, const char *); k; k = va_arg(ap, const char *)) {
        const char *v = va_arg(ap, const char *);
        buf_printf(b, " %s=", k);
        put_text_value(b, v ? v : "");
    }
}

/* False: nobody took it. */
static bool
to_journal(enum log_level level, const char *room, const char *msg, va_list ap)
{
    auto_buf struct buf text = BUF_INIT(LOG_LINE_MAX), b = BUF_INIT(JOURNAL_BYTES_MAX);
    va_list again;
    va_copy(again, ap);
    put_text(&text, room, msg, again);
    va_end(again);
    text.error = 0; /* a line that is too long is cut */
    if (text.len == text.max)
        text.len--;
    journal_field(&b, "", "MESSAGE", buf_str(&text));
    journal_field(&b, "", "PRIORITY", priorities[level]);
    journal_field(&b, "", "SYSLOG_IDENTIFIER", program_invocation_short_name);
    journal_field(&b, "PADDOCK_", "ROOM", room);
    for (const char *k = va_arg(ap, const char *); k; k = va_arg(ap, const char *)) {
        const char *v = va_arg(ap, const char *);
        journal_field(&b, "PADDOCK_", k, v ? v : "");
    }
    return journal_send(&b);
}

static void
log_format(struct buf *b, bool json, enum log_level level, const char *room, const char *msg,
           va_list ap)
{
    char when[TIME_TEXT];
    time_format(clock_wall_ns(), when);
    if (json) {
        buf_printf(b, "{\"@timestamp\":\"%s\",\"@level\":\"", when);
        for (const char *p = names[level]; *p; p++)
            buf_putc(b, (char)(*p | 0x20));
        buf_printf(b, "\",\"@module\":\"%s\",\"@message\":\"", room);
        put_escaped(b, msg, JSON);
        buf_putc(b, '"');
    } else {
        buf_printf(b, "%.23sZ [%s]%s ", when, names[level], strlen(names[level]) == 4 ? " " : "");
        put_text(b, room, msg, ap);
        return;
    }
    for (const char *k = va_arg(ap, const char *); k; k = va_arg(ap, const char *)) {
        const char *v = va_arg(ap, const char *);
        buf_printf(b, ",\"%s\":\"", k);
        put_escaped(b, v ? v : "", JSON);
        buf_putc(b, '"');
    }
    buf_putc(b, '}');
}

static void
log_line(struct buf *b, bool json, enum log_level level, const char *room, const char *msg,
         va_list ap)
{
    log_format(b, json, level, room, msg, ap);
    b->error = 0; /* a line that is too long is cut */
    if (b->len == b->max)
        b->len--;
    buf_putc(b, '\n');
}

static void
to_lines(enum log_level level, const char *room, const char *msg, va_list ap)
{
    auto_buf struct buf b = BUF_INIT(LOG_LINE_MAX);
    log_line(&b, json_now, level, room, msg, ap);
    ssize_t r = write(fd_now, b.data, b.len); /* a full disk must not stop the agent */
    log_written_fn *fn = written_now;
    if (r > 0 && fn != NULL)
        fn((size_t)r);
}

/* --- taps --- */

static void
taps_measure(void)
{
    int lowest = LOG_OFF;

    for (const struct log_tap *t = taps; t; t = t->next)
        if ((int)t->level < lowest)
            lowest = (int)t->level;
    tap_level = lowest;
}

void
log_tap_add(struct log_tap *t)
{
    pthread_mutex_lock(&taps_lock);
    t->next = taps;
    taps = t;
    taps_measure();
    pthread_mutex_unlock(&taps_lock);
}

void
log_tap_remove(struct log_tap *t)
{
    pthread_mutex_lock(&taps_lock);
    for (struct log_tap **at = &taps; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            break;
        }
    taps_measure();
    pthread_mutex_unlock(&taps_lock);
}

static void
to_taps(enum log_level level, const char *room, const char *msg, va_list ap)
{
    pthread_mutex_lock(&taps_lock);
    for (struct log_tap *t = taps; t; t = t->next) {
        auto_buf struct buf b = BUF_INIT(LOG_LINE_MAX);
        va_list again;
        if (level < t->level)
            continue;
        va_copy(again, ap);
        log_line(&b, t->json, level, room, msg, again);
        va_end(again);
        t->fn(t->arg, (const char *)b.data, b.len);
    }
    pthread_mutex_unlock(&taps_lock);
}

void
log_write(enum log_level level, const char *room, const char *msg, ...)
{
    va_list ap;
    if ((int)level >= tap_level) {
        va_start(ap, msg);
        to_taps(level, room, msg, ap);
        va_end(ap);
    }
    if ((int)level < level_now)
        return;
    va_start(ap, msg);
    bool taken = journal_active() && to_journal(level, room, msg, ap);
    va_end(ap);
    if (taken)
        return;
    va_start(ap, msg);
    to_lines(level, room, msg, ap);
    va_end(ap);
}

void
log_fatal_exit(void)
{
    _exit(LOG_FATAL_STATUS);
}
