/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit log (audit.h). First the file, with the room that is taken ahead of its lines and its
 * rotation to audit.log.1, .2 and so on; then journald; then lines.
 */
#include "agent/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "acl/match.h"
#include "agent/limits.h"
#include "codec/codec.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/journal.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

enum { FIELD_MAX = 512 }; /* bytes of a text of a line, before it is escaped */

struct audit {
    const struct agent_audit *block;
    const struct agent_audit_sink *sink;
    const char *path;    /* NULL: journald */
    const char *journal; /* its socket */
    mode_t mode;
    int fd;
    off_t size, room; /* of the file: bytes of lines, and up to where it has disk */
    int64_t begun_ns; /* when the file was made */
    size_t owed;      /* lines whose answer is not out yet */
    bool enforced, failing, stuck;
};

static int
audit_done(struct audit *x)
{
    fd_close(&x->fd);
    return 0;
}

/* Says it once until it works again. */
static int
audit_fail(struct audit *x, const char *doing, int errnum, struct err *e)
{
    const char *where = x->path != NULL ? x->path : x->journal;

    if (!x->failing)
        log_error("audit", x->enforced ? "no line can be written: requests are refused"
                                       : "no line can be written: lines are lost",
                  "sink", where, "call", doing, "error", strerror(errnum), NULL);
    x->failing = true;
    return err_set(e, -ERR_UNAVAILABLE,
                   "the audit log \"%.256s\" cannot be written (%s: %s), and audit is enforced: "
                   "make room there, or see the agent's log",
                   where, doing, strerror(errnum));
}

/* --- the file --- */

static int
file_open(const char *path, mode_t mode, int64_t *begun_ns, off_t *size)
{
    static const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    struct statx st;
    auto_fd int fd = open(path, flags, mode);

    if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
        return -errno;
    if (!S_ISREG(st.stx_mode))
        return -EINVAL;
    if (fchmod(fd, mode) < 0)
        return -errno;
    *size = (off_t)st.stx_size;
    *begun_ns = (st.stx_mask & STATX_BTIME) && st.stx_size > 0
                    ? st.stx_btime.tv_sec * NS_PER_S + st.stx_btime.tv_nsec
                    : clock_wall_ns();
    return TAKE_FD(fd);
}

/* Takes disk for `bytes` behind `size`; a file system that cannot do that is none the worse. */
static int
take_room(int fd, off_t size, off_t bytes, off_t *room)
{
    if (size + bytes <= *room)
        return 0;
    bytes = bytes < AUDIT_ROOM ? AUDIT_ROOM : bytes;
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, size, bytes) < 0 && errno != EOPNOTSUPP)
        return -errno;
    *room = size + bytes;
    return 0;
}

static off_t
room_owed(const struct audit *x)
{
    return (off_t)(x->owed + 1) * AUDIT_LINE_MAX;
}

static bool
file_is_over(const struct audit *x)
{
    int64_t age = clock_wall_ns() - x->begun_ns;

    return x->size > 0 && (x->size >= x->sink->rotate_bytes ||
                           (x->sink->rotate_duration > 0 && age >= x->sink->rotate_duration));
}

/* Moves audit.log.1 to audit.log.2 and so on; the last one goes. */
static int
file_shift(const struct audit *x)
{
    for (int64_t i = x->sink->rotate_max_files; i > 0; i--) {
        char to[4096], from[4096];
        snprintf(to, sizeof(to), "%s.%d", x->path, (int)i);
        snprintf(from, sizeof(from), i > 1 ? "%s.%d" : "%s", x->path, (int)i - 1);
        if (rename(from, to) < 0 && errno != ENOENT)
            return -errno;
    }
    return 0;
}

/* Begins a new file when it is time. Where there is no room for one the old one goes on. */
static void
file_rotate(struct audit *x)
{
    int64_t begun_ns = 0;
    off_t size = 0, room = 0;
    char beside[4096];

    if (!file_is_over(x))
        return;
    snprintf(beside, sizeof(beside), "%s.new", x->path);
    auto_fd int fd = file_open(beside, x->mode, &begun_ns, &size);
    int rc = fd < 0 ? fd : x->enforced ? take_room(fd, size, room_owed(x), &room) : 0;
    if (rc == 0)
        rc = file_shift(x);
    if (rc == 0 && rename(beside, x->path) < 0)
        rc = -errno;
    if (rc < 0) {
        if (!x->stuck)
            log_error("audit", "the file is not rotated and goes on", "path", x->path, "error",
                      strerror(-rc), NULL);
        x->stuck = true;
        (void)unlink(beside);
        return;
    }
    x->stuck = false;
    int ignored = ftruncate(x->fd, x->size); /* gives back what was taken ahead */
    (void)ignored;
    fd_close(&x->fd);
    x->fd = TAKE_FD(fd);
    x->size = size;
    x->room = room;
    x->begun_ns = begun_ns;
}

static int
file_write(struct audit *x, const struct buf *b)
{
    file_rotate(x);
    ssize_t n = write(x->fd, b->data, b->len);
    int rc = n < 0 ? -errno : (size_t)n < b->len ? -ENOSPC : 0;

    if (rc == 0)
        x->size += n;
    else if (ftruncate(x->fd, x->size) < 0) /* half a line is none */
        log_error("audit", "half a line may be in it", "path", x->path, "error", strerror(errno),
                  NULL);
    if (rc < 0)
        x->room = 0;
    return rc;
}

static int
file_begin(struct audit *x, const char *dir, struct err *e)
{
    int rc = str_empty(x->sink->path) ? dir_make(AT_FDCWD, dir, 0700) : 0;

    if (rc < 0)
        return err_set(e, -ERR_INVALID, "audit: cannot make \"%s\": %s", dir, strerror(-rc));
    x->fd = file_open(x->path, x->mode, &x->begun_ns, &x->size);
    if (x->fd < 0)
        return err_set(e, -ERR_INVALID, "audit: cannot open \"%s\" to append to it: %s", x->path,
                       strerror(-x->fd));
    return 0;
}

/* --- journald --- */

static int
journal_connect(struct audit *x)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    auto_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", x->journal);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        return -errno;
    fd_close(&x->fd);
    x->fd = TAKE_FD(fd);
    return 0;
}

static int
journal_begin(struct audit *x, struct err *e)
{
    int rc = journal_connect(x);

    return rc == 0 ? 0
                   : err_set(e, -ERR_INVALID, "audit: cannot reach journald at \"%s\": %s",
                             x->journal, strerror(-rc));
}

static int
journal_write(struct audit *x, const struct buf *line)
{
    struct buf b = BUF_INIT(4 * AUDIT_LINE_MAX);
    char *text = mem_strndup(x, (const char *)line->data, line->len - 1);
    int rc = 0;

    journal_field(&b, "", "MESSAGE", text);
    journal_field(&b, "", "PRIORITY", "6");
    journal_field(&b, "", "SYSLOG_IDENTIFIER", "paddock-audit");
    for (int i = 0; i < 2; i++) { /* journald may have been started again meanwhile */
        rc = send(x->fd, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len ? 0 : -errno;
        if (rc == 0 || (rc != -ECONNREFUSED && rc != -ENOTCONN) || journal_connect(x) < 0)
            break;
    }
    buf_done(&b);
    mem_free(text);
    return rc;
}

/* --- lines --- */

static bool
list_fits(const struct str_list *patterns, const char *text)
{
    for (size_t i = 0; i < patterns->n; i++)
        if (match_pattern(patterns->v[i], strlen(patterns->v[i]), text, strlen(text)))
            return true;
    return false;
}

bool
audit_takes(const struct audit *x, const char *method, const char *path)
{
    for (size_t i = 0; i < x->block->filters.n; i++) {
        const struct agent_audit_filter *f = x->block->filters.v[i];
        if (list_fits(&f->stages, "OperationComplete") && list_fits(&f->operations, method) &&
            list_fits(&f->endpoints, path))
            return false;
    }
    return true;
}

int
audit_begin(struct audit *x, struct err *e)
{
    int rc = x->enforced && x->path != NULL ? take_room(x->fd, x->size, room_owed(x), &x->room) : 0;

    if (rc < 0)
        return audit_fail(x, "fallocate", -rc, e);
    x->owed++;
    return 0;
}

/* Cuts a text so that the whole line fits. */
static const char *
cut_text(const void *ctx, const char *text)
{
    return strlen(str_or(text, "")) <= FIELD_MAX
               ? text
               : mem_printf(ctx, "%.*s...", FIELD_MAX - 3, text);
}

int
audit_write(struct audit *x, const struct audit_entry *line, struct err *e)
{
    auto_mem void *tmp = mem_ctx("audit");
    struct audit_entry short_line = *line;
    struct buf b = BUF_INIT(AUDIT_LINE_MAX);

    ASSERT(x->owed > 0);
    x->owed--;
    short_line.path = cut_text(tmp, line->path);
    short_line.object = cut_text(tmp, line->object);
    short_line.program = cut_text(tmp, line->program);
    json_encode(&b, &type_audit_entry, &short_line, 0);
    if (buf_error(&b)) { /* all of it is control characters */
        buf_done(&b);
        short_line.path = short_line.object = short_line.program = "...";
        json_encode(&b, &type_audit_entry, &short_line, 0);
    }
    buf_puts(&b, "\n");
    int rc = buf_error(&b) ? -EMSGSIZE : x->path != NULL ? file_write(x, &b) : journal_write(x, &b);
    buf_done(&b);
    if (rc < 0) {
        (void)audit_fail(x, x->path != NULL ? "write" : "send", -rc, e);
        return x->enforced ? -ERR_UNAVAILABLE : 0;
    }
    if (x->failing)
        log_info("audit", "lines are written again", NULL);
    x->failing = false;
    return 0;
}

struct audit *
audit_open(const void *ctx, const struct audit_config *cfg, struct err *e)
{
    static const struct agent_audit_sink plain = {.type = "file",
                                                  .delivery_guarantee = "enforced",
                                                  .rotate_bytes = 64 << 20,
                                                  .rotate_duration = 24 * 3600 * NS_PER_S,
                                                  .rotate_max_files = 10,
                                                  .mode = "0600"};
    struct audit *x = mem_new(ctx, struct audit);

    x->block = cfg->block;
    x->sink = cfg->block->sinks.n > 0 ? cfg->block->sinks.v[0] : &plain;
    x->journal = mem_strdup(x, cfg->journal);
    x->enforced = !str_eq(x->sink->delivery_guarantee, "best-effort");
    x->fd = -1;
    talloc_set_destructor(x, audit_done);
    x->mode = str_eq(x->sink->mode, "0640") ? 0640 : 0600;
    if (!str_eq(x->sink->type, "journal"))
        x->path =
            str_empty(x->sink->path) ? mem_printf(x, "%s/audit.log", cfg->dir) : x->sink->path;
    if ((x->path != NULL ? file_begin(x, cfg->dir, e) : journal_begin(x, e)) == 0)
        return x;
    talloc_free(x);
    return NULL;
}
