/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/num.h"

enum { LOG_LINE_MAX = 16 << 10 };

static const char *const names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF"};
static _Atomic int level_now = LOG_INFO;
static _Atomic bool json_now = false;
static _Atomic int fd_now = STDERR_FILENO;
static struct {
    void (*_Atomic fn)(void *, const char *);
    void *_Atomic arg;
    _Atomic int level;
} tap = {.level = LOG_OFF}; /* clang 14 takes no initialiser for an atomic pointer */

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
}

void
log_set_level(enum log_level level)
{
    level_now = (int)level;
}

bool
log_enabled(enum log_level level)
{
    return (int)level >= level_now || (int)level >= tap.level;
}

void
log_set_tap(void (*fn)(void *arg, const char *line), void *arg, enum log_level level)
{
    tap.level = LOG_OFF;
    tap.arg = arg;
    tap.fn = fn;
    if (fn)
        tap.level = (int)level;
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

/* A log line is one line whatever a task or peer put into a value. */
static void
put_escaped(struct buf *b, const char *s, bool json)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c == '\n')
            buf_puts(b, "\\n");
        else if (c < 0x20 || c == 0x7f)
            buf_printf(b, json ? "\\u%04x" : "\\x%02x", c);
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
    put_escaped(b, v, false);
    if (quote)
        buf_putc(b, '"');
}

static void
format(struct buf *b, bool json, enum log_level level, const char *room, const char *msg, va_list ap)
{
    char when[TIME_TEXT];
    time_format(clock_wall_ns(), when);
    if (json) {
        buf_printf(b, "{\"@timestamp\":\"%s\",\"@level\":\"", when);
        for (const char *p = names[level]; *p; p++)
            buf_putc(b, (char)(*p | 0x20));
        buf_printf(b, "\",\"@module\":\"%s\",\"@message\":\"", room);
        put_escaped(b, msg, true);
        buf_putc(b, '"');
    } else {
        buf_printf(b, "%.23sZ [%s]%s %s: ", when, names[level], strlen(names[level]) == 4 ? " " : "",
                   room);
        put_escaped(b, msg, false);
    }
    for (const char *k = va_arg(ap, const char *); k; k = va_arg(ap, const char *)) {
        const char *v = va_arg(ap, const char *);
        if (json) {
            buf_printf(b, ",\"%s\":\"", k);
            put_escaped(b, v ? v : "", true);
            buf_putc(b, '"');
        } else {
            buf_printf(b, " %s=", k);
            put_text_value(b, v ? v : "");
        }
    }
    if (json)
        buf_putc(b, '}');
}

void
log_write(enum log_level level, const char *room, const char *msg, ...)
{
    if (!log_enabled(level))
        return;
    auto_buf struct buf b = BUF_INIT(LOG_LINE_MAX);
    va_list ap;
    va_start(ap, msg);
    format(&b, json_now, level, room, msg, ap);
    va_end(ap);
    b.error = 0; /* a line that is too long is cut */
    void (*fn)(void *, const char *) = tap.fn;
    if (fn && (int)level >= tap.level)
        fn(tap.arg, buf_str(&b));
    if ((int)level < level_now)
        return;
    if (b.len == b.max)
        b.len--;
    buf_putc(&b, '\n');
    ssize_t r = write(fd_now, b.data, b.len); /* a full disk must not stop the agent */
    (void)r;
}
