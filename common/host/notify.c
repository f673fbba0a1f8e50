/* SPDX-License-Identifier: Apache-2.0 */
#include "common/host/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/num.h"
#include "common/str.h"

bool
notify_active(void)
{
    return !str_empty(getenv("NOTIFY_SOCKET"));
}

int
notify_send(const char *text)
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
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (const void *)&a, len) < 0)
        return -errno;
    return 0;
}

void
notify_failure(const char *text)
{
    char status[512];
    const char *priority = str_empty(getenv("JOURNAL_STREAM")) ? "" : "<3>";
    for (const char *p = text, *end; *p != '\0'; p = *end == '\0' ? end : end + 1) {
        end = p + strcspn(p, "\n");
        fprintf(stderr, "%s%.*s\n", priority, (int)(end - p), p);
    }
    (void)snprintf(status, sizeof(status), "STATUS=Not started: %s", text);
    status[strcspn(status, "\n")] = '\0'; /* more lines would be more messages */
    (void)notify_send(status);
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
