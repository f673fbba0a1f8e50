/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/warden/net_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/uuid.h"
#include "isolation/launch/record.h"
#include "isolation/proc.h"

/* A port of the host that a program of the host listens on stays its own, and who else has an
 * address keeps it. EACCES and EPERM are about us (a security module, a program of our cgroup). A
 * broadcast address can be bound, but without SO_BROADCAST not connected to. */
int
net_check_free(const struct net_port *p, struct err *e)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons(p->port), .sin_addr = {htonl(p->host_ip)}};
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM};
    char text[INET_ADDRSTRLEN] = "";
    (void)inet_ntop(AF_INET, &sa.sin_addr, text, sizeof(text));
    if (IN_MULTICAST(p->host_ip) || p->host_ip == INADDR_BROADCAST)
        return err_set(e, -ERR_INVALID, "%s is not an address that a host has", text);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        auto_fd int fd = socket(AF_INET, types[i] | SOCK_CLOEXEC, 0);
        int on = types[i] == SOCK_STREAM;
        if (fd < 0)
            return err_errno(e, errno, "look at port %d", p->port);
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        int r = bind(fd, (const void *)&sa, sizeof(sa)) < 0 ? errno : 0;
        if (r == EADDRINUSE)
            return err_set(e, -ERR_CONFLICT,
                           "port %d of the host is in use by a program of the host", p->port);
        if (r == EADDRNOTAVAIL)
            return err_set(e, -ERR_INVALID, "%s is not an address of this host", text);
        if (r != 0 && r != EACCES && r != EPERM)
            return err_errno(e, r, "look at port %d of %s", p->port, text);
        if (types[i] == SOCK_DGRAM && connect(fd, (const void *)&sa, sizeof(sa)) < 0 &&
            errno == EACCES)
            return err_set(e, -ERR_INVALID, "%s is a broadcast address", text);
    }
    return 0;
}

/* The same directory, whatever it is called. Links are not followed: they would lead out of the
 * process's root. */
static bool
sees_alloc(const struct warden *w, const char *alloc, int64_t pid)
{
    char path[64], own[UUID_TEXT + 8];
    struct stat a, b;
    (void)snprintf(path, sizeof(path), "/proc/%lld/root/alloc", (long long)pid);
    (void)snprintf(own, sizeof(own), "%s/alloc", alloc);
    return fstatat(AT_FDCWD, path, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(w->alloc_dir, own, &b, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(a.st_mode) &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int
net_check_container(const struct warden *w, const char *alloc, int64_t pid, struct err *e)
{
    char path[64];
    struct stat ns, host;
    (void)snprintf(path, sizeof(path), "/proc/%lld/ns/net", (long long)pid);
    auto_fd int process = pidfd_open_pid((pid_t)pid);
    auto_fd int fd = process < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    bool sees = fd >= 0 && sees_alloc(w, alloc, pid);
    /* a process that has ended by now may have had another's number */
    if (fd < 0 || pidfd_signal(process, 0) < 0)
        return err_set(e, -ERR_BUSY,
                       "the container with the network of allocation \"%s\" has ended", alloc);
    if (!sees || fstat(fd, &ns) < 0 || stat("/proc/self/ns/net", &host) < 0 ||
        (ns.st_dev == host.st_dev && ns.st_ino == host.st_ino))
        return err_set(e, -ERR_POLICY,
                       "process %lld is none of a container of allocation \"%s\" with a network of "
                       "its own",
                       (long long)pid, alloc);
    return TAKE_FD(fd);
}
