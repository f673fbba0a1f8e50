/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/network/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"

int
netns_enter(int ns)
{
    return setns(ns, CLONE_NEWNET) < 0 ? -errno : 0;
}

int
netns_sysctl(const char *name, const char *value)
{
    char path[128];
    if ((size_t)snprintf(path, sizeof(path), "/proc/sys/net/%s", name) >= sizeof(path))
        return -ENAMETOOLONG;
    return file_put(AT_FDCWD, path, value);
}

static int
lo_up(void)
{
    struct ifreq q = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    return ioctl(fd, SIOCSIFFLAGS, &q) < 0 ? -errno : 0;
}

/* In the new namespace. IPv6 may be off on this machine: then there is nothing to turn off. */
static int
netns_prepare(const char **what)
{
    *what = "lo";
    int r = lo_up();
    if (r == 0) {
        *what = "net.ipv4.ip_unprivileged_port_start";
        r = netns_sysctl("ipv4/ip_unprivileged_port_start", "0");
    }
    if (r == 0) {
        *what = "net.ipv4.conf.accept_redirects";
        r = netns_sysctl("ipv4/conf/all/accept_redirects", "0");
    }
    if (r == 0)
        r = netns_sysctl("ipv4/conf/default/accept_redirects", "0");
    if (r == 0) {
        *what = "net.ipv6.conf.default.disable_ipv6";
        r = netns_sysctl("ipv6/conf/default/disable_ipv6", "1");
        r = r == -ENOENT ? 0 : r;
    }
    return r;
}

int
netns_make(int home, const char **what)
{
    *what = "unshare (CLONE_NEWNET)";
    if (unshare(CLONE_NEWNET) < 0)
        return -errno;
    int r = netns_prepare(what);
    auto_fd int fd = -1;
    if (r == 0) {
        *what = "/proc/self/ns/net";
        fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        r = fd < 0 ? -errno : 0;
    }
    int back = netns_enter(home);
    if (back < 0) { /* nothing that follows would be done where it is meant to be */
        *what = "setns back";
        return back;
    }
    return r < 0 ? r : TAKE_FD(fd);
}
