/* SPDX-License-Identifier: Apache-2.0 */
#include "common/host/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/limits.h"
#include "common/num.h"
#include "common/str.h"

bool
notify_active(void)
{
    return !str_empty(getenv("NOTIFY_SOCKET"));
}

/* With `passed` the service manager gets a copy of that descriptor. */
static int
send_with(const char *text, int passed)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (str_empty(path))
        return 0;
    size_t n = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || n >= sizeof(a.sun_path))
        return -EINVAL;
    memcpy(a.sun_path, path, n);
    if (path[0] == '@') /* the abstract namespace */
        a.sun_path[0] = '\0';
    auto_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    union {
        struct cmsghdr h;
        char room[CMSG_SPACE(sizeof(int))];
    } c = {.h = {.cmsg_len = CMSG_LEN(sizeof(int)),
                 .cmsg_level = SOL_SOCKET,
                 .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&c.h), &passed, sizeof(int));
    struct iovec v = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
    struct msghdr m = {.msg_name = &a,
                       .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n),
                       .msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = passed >= 0 ? &c : NULL,
                       .msg_controllen = passed >= 0 ? sizeof(c) : 0};
    return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int
notify_send(const char *text)
{
    return send_with(text, -1);
}

/* --- starts that fail --- */

enum { FIRST_LISTEN_FD = 3 };
#define STORED "paddock-starts"

static struct starts {
    uint32_t n; /* without success, this one too */
    char why[400];
} starts;
static int starts_fd = -1;

/* The one that the service manager kept, or -1. */
static int
kept_fd(void)
{
    uint64_t pid, n;
    const char *whose = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS"),
               *names = getenv("LISTEN_FDNAMES");
    bool ours = !str_empty(whose) && num_parse_u64(whose, &pid) == 0 && pid == (uint64_t)getpid() &&
                !str_empty(fds) && num_parse_u64(fds, &n) == 0 && n == 1 && names != NULL &&
                str_eq(names, STORED);
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    return ours && fcntl(FIRST_LISTEN_FD, F_SETFD, FD_CLOEXEC) == 0 ? FIRST_LISTEN_FD : -1;
}

static void
starts_write(void)
{
    if (starts_fd >= 0)
        (void)fd_pwrite_full(starts_fd, &starts, sizeof(starts), 0);
}

/* False: told to end. Someone who mended the cause and restarts the unit waits no longer: what
 * counted goes. */
static bool
pause_s(unsigned s)
{
    char text[600];
    sigset_t set, old;
    struct timespec t = {.tv_sec = s};
    (void)snprintf(
        text, sizeof(text),
        "STATUS=Waits %u s after %u starts that failed: %s\nEXTEND_TIMEOUT_USEC=%u000000", s,
        starts.n, str_or(starts.why, "it ended without a word"), s + START_PAUSE_MAX_S);
    (void)notify_send(text);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, &old);
    int sig = sigtimedwait(&set, NULL, &t);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    if (sig < 0)
        return true;
    (void)notify_send("FDSTOREREMOVE=1\nFDNAME=" STORED);
    return false;
}

bool
notify_begin(unsigned max_s)
{
    if (!notify_active())
        return true;
    starts_fd = kept_fd();
    bool kept = starts_fd >= 0;
    if (kept && pread(starts_fd, &starts, sizeof(starts), 0) != sizeof(starts))
        starts.n = 0;
    starts.why[sizeof(starts.why) - 1] = '\0';
    if (!kept)
        starts_fd = memfd_create(STORED, MFD_CLOEXEC);
    unsigned s = 1; /* which is the unit's own (RestartSec=) */
    for (uint32_t n = START_TRIES; n < starts.n && s < max_s; n++)
        s = 2 * s < max_s ? 2 * s : max_s;
    if (s > 1 && !pause_s(s - 1))
        return false;
    starts.n++;
    starts.why[0] = '\0';
    starts_write();
    if (!kept && starts_fd >= 0)
        (void)send_with("FDSTORE=1\nFDNAME=" STORED, starts_fd);
    return true;
}

void
notify_ready(const char *status)
{
    char text[200];
    (void)snprintf(text, sizeof(text), "READY=1\nSTATUS=%s\nFDSTOREREMOVE=1\nFDNAME=" STORED,
                   status);
    (void)notify_send(text);
    fd_close(&starts_fd);
}

void
notify_status_failed(const char *text)
{
    char status[512];
    (void)snprintf(status, sizeof(status), "STATUS=Not started: %s", text);
    status[strcspn(status, "\n")] = '\0'; /* more lines would be more messages */
    (void)notify_send(status);
    (void)str_copy(starts.why, sizeof(starts.why), status + strlen("STATUS=Not started: "));
    starts_write();
}

void
notify_failure(const char *text)
{
    const char *priority = str_empty(getenv("JOURNAL_STREAM")) ? "" : "<3>";
    for (const char *p = text, *end; *p != '\0'; p = *end == '\0' ? end : end + 1) {
        end = p + strcspn(p, "\n");
        fprintf(stderr, "%s%.*s\n", priority, (int)(end - p), p);
    }
    notify_status_failed(text);
}

int64_t
notify_watchdog_ns(void)
{
    uint64_t us, pid;
    const char *every = getenv("WATCHDOG_USEC"), *whose = getenv("WATCHDOG_PID");
    if (str_empty(every) || num_parse_u64(every, &us) < 0 || us == 0 || us > INT64_MAX / 1000)
        return 0;
    if (!str_empty(whose) && (num_parse_u64(whose, &pid) < 0 || pid != (uint64_t)getpid()))
        return 0;
    return (int64_t)us * 1000;
}
