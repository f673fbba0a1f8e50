/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of syslog (see syslog.h). Lines come as the log's text, one at a time.
 */
#include "agent/syslog.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/str.h"

enum { MESSAGE_BYTES = 8 << 10, TIME_LEVEL = 25 /* where the level stands in a line */ };

static struct sockaddr_un to = {.sun_family = AF_UNIX};
static int sock = -1, facility_now;
static int64_t tried_ns; /* to connect, last */

static const char *const facilities[] = {"KERN", "USER", "MAIL", "DAEMON", "AUTH",     "SYSLOG",
                                         "LPR",  "NEWS", "UUCP", "CRON",   "AUTHPRIV", "FTP"};
enum { LOCAL0 = 16, LOCALS = 8 };

/* Returns the number of a facility; -1: there is no such. */
static int
syslog_facility(const char *name)
{
    for (size_t i = 0; i < sizeof(facilities) / sizeof(facilities[0]); i++)
        if (strcasecmp(name, facilities[i]) == 0)
            return (int)i;
    if (strncasecmp(name, "LOCAL", 5) == 0 && name[5] >= '0' && name[5] < '0' + LOCALS &&
        name[6] == '\0')
        return LOCAL0 + name[5] - '0';
    return -1;
}

static int
syslog_connect(void)
{
    auto_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    tried_ns = clock_mono_ns();
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
        return -errno;
    fd_close(&sock);
    sock = TAKE_FD(fd);
    return 0;
}

/* Returns the severity of a line, and where its text begins. */
static int
syslog_severity(const char *line, size_t n, size_t *ret_at)
{
    static const char letters[] = "TDIWE";
    static const int severities[] = {7, 7, 6, 4, 3};
    const char *end = n > TIME_LEVEL + 2 ? memchr(line, ']', n) : NULL;
    const char *hit =
        end != NULL && line[TIME_LEVEL] == '[' ? strchr(letters, line[TIME_LEVEL + 1]) : NULL;

    *ret_at = 0;
    if (hit == NULL || *hit == '\0')
        return 6;
    for (*ret_at = (size_t)(end - line) + 1; *ret_at < n && line[*ret_at] == ' ';)
        ++*ret_at;
    return severities[hit - letters];
}

static void
syslog_line(void *arg, const char *line, size_t n)
{
    char message[MESSAGE_BYTES], when[32] = "";
    time_t now = (time_t)(clock_wall_ns() / NS_PER_S);
    struct tm tm;
    size_t at;
    int severity = syslog_severity(line, n, &at);

    (void)arg;
    while (n > at && line[n - 1] == '\n')
        n--;
    if (localtime_r(&now, &tm) != NULL)
        (void)strftime(when, sizeof(when), "%b %e %H:%M:%S", &tm);
    int len = snprintf(message, sizeof(message), "<%d>%s paddock[%d]: %.*s",
                       facility_now * 8 + severity, when, (int)getpid(), (int)(n - at), line + at);
    size_t bytes = len < 0 ? 0 : (size_t)len >= sizeof(message) ? sizeof(message) - 1 : (size_t)len;
    if (send(sock, message, bytes, MSG_NOSIGNAL) >= 0 || errno == EAGAIN)
        return;
    /* the daemon was started again: its socket is another one */
    if (clock_mono_ns() - tried_ns >= NS_PER_S && syslog_connect() == 0)
        (void)!send(sock, message, bytes, MSG_NOSIGNAL);
}

static struct log_tap tap = {.fn = syslog_line};

int
syslog_open(const char *socket, const char *facility, enum log_level level, struct err *e)
{
    facility_now = syslog_facility(facility);
    if (facility_now < 0)
        return err_set(e, -ERR_INVALID,
                       "syslog_facility \"%.64s\" is not LOCAL0 to LOCAL7, USER or DAEMON",
                       facility);
    if (!str_copy(to.sun_path, sizeof(to.sun_path), socket))
        return err_set(e, -ENAMETOOLONG, "enable_syslog: \"%s\" is too long", socket);
    int rc = syslog_connect();
    if (rc < 0)
        return err_set(e, rc,
                       "enable_syslog: connect to %s: %s: start a syslog daemon, or remove it",
                       socket, strerror(-rc));
    tap.level = level;
    log_tap_add(&tap);
    return 0;
}
