/* SPDX-License-Identifier: Apache-2.0
 *
 * A task that lies in wait for whoever joins it (A1, A5): it tries to trace, read, write and
 * replace every new process of its pid namespace, from the moment that its number is there, until
 * SIGTERM; then it prints what it got. And what joins it there and in A7. Static program, no rooms
 * of ours.
 *
 *   stalk          lies in wait
 *   stalk nothing  is to be caught
 *   stalk inject   types into its own terminal
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

enum { AHEAD = 6, FDS = 12, KCMP_FILE = 0, DOTS = 2 * 24 };

static volatile sig_atomic_t over;
static unsigned long seen, tries, stolen;

static void
on_term(int sig)
{
    (void)sig;
    over = 1;
}

/* Says whether the process has ended: then nothing is to be got of it, whatever the kernel
 * answers. */
static int
has_ended(int pid)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *name_end = strrchr(text, ')');
    return name_end == NULL || strchr("ZX", name_end[2]) != NULL;
}

static void
got(const char *what, int pid, long r)
{
    tries++;
    if (r < 0 || has_ended(pid))
        return;
    if (stolen++ < 20)
        printf("STOLEN %s of %d\n", what, pid);
}

/* Some open and then give nothing, which is no success: map_files of a process whose memory is gone
 * already has two entries, itself and the one above. */
static long
reads(int fd, int flags)
{
    char text[512];
    if (flags & O_DIRECTORY)
        return syscall(SYS_getdents64, fd, text, sizeof(text)) > DOTS ? 0 : -1;
    return read(fd, text, 1) == 1 ? 0 : -1;
}

static void
try_open(int pid, const char *name, int flags, int read_it)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    got(name, pid, fd < 0 ? -1 : read_it ? reads(fd, flags) : 0);
    if (fd >= 0)
        close(fd);
}

static void
attack(int pid, int pidfd)
{
    static const struct {
        const char *name;
        int flags, read_it;
    } files[] = {{"exe", O_WRONLY, 0},
                 {"exe", O_RDONLY, 0},
                 {"mem", O_RDWR, 0},
                 {"mem", O_RDONLY, 0},
                 {"environ", O_RDONLY, 1},
                 {"maps", O_RDONLY, 1},
                 {"syscall", O_RDONLY, 1},
                 {"ns/mnt", O_RDONLY, 0},
                 {"root", O_RDONLY | O_DIRECTORY, 1},
                 {"map_files", O_RDONLY | O_DIRECTORY, 1}};
    char byte, name[32], link[64];
    struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
    got("ptrace seize", pid, ptrace(PTRACE_SEIZE, pid, 0, 0));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        try_open(pid, files[i].name, files[i].flags, files[i].read_it);
    for (int fd = 0; fd < FDS; fd++) {
        snprintf(name, sizeof(name), "fd/%d", fd);
        try_open(pid, name, O_RDONLY, 0);
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
        got("link of fd", pid, readlink(path, link, sizeof(link)));
        got("pidfd_getfd", pid, syscall(SYS_pidfd_getfd, pidfd, fd, 0));
    }
    got("process_vm_readv", pid, process_vm_readv(pid, &here, 1, &there, 1, 0));
    got("kcmp", pid, syscall(SYS_kcmp, getpid(), pid, KCMP_FILE, 0, 0));
}

static void
lie_in_wait(void)
{
    int last = getpid();
    signal(SIGTERM, on_term);
    printf("waiting\n");
    fflush(stdout);
    while (!over)
        for (int pid = last + 1; pid <= last + AHEAD && !over; pid++) {
            int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
            if (pidfd < 0)
                continue;
            last = pid;
            seen++;
            do
                attack(pid, pidfd);
            while (!over && !has_ended(pid));
            close(pidfd);
        }
    printf("seen %lu tries %lu stolen %lu\n", seen, tries, stolen);
}

static void
ioctl_on(const char *what, int fd, unsigned long request, void *arg)
{
    errno = 0;
    long r = ioctl(fd, request, arg);
    printf("%s %s\n", what, r == 0 ? "INJECTED" : errno == EPERM ? "EPERM" : strerror(errno));
}

static void
inject(void)
{
    char c, text[] = "x", select[] = {2}, paste[] = {3};
    int discipline = 0, tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) {
        ioctl_on("TIOCSTI", fd, TIOCSTI, text);
        ioctl_on("TIOCLINUX", fd, TIOCLINUX, select);
        ioctl_on("TIOCLINUX", fd, TIOCLINUX, paste);
        ioctl_on("TIOCSETD", fd, TIOCSETD, &discipline);
    }
    ioctl_on("TIOCSTI", tty, TIOCSTI, text);
    ioctl_on("64 bits", 0, TIOCSTI | 1ul << 40, text);
    printf("own session: %s\n", getsid(0) == getpid() && tcgetsid(0) == getpid() ? "yes" : "NO");
    (void)fcntl(0, F_SETFL, O_NONBLOCK);
    printf("waits: %s\n", read(0, &c, 1) < 0 && errno == EAGAIN ? "nothing" : "SOMETHING");
}

int
main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "nothing") == 0)
        return 0;
    if (strcmp(what, "inject") == 0)
        inject();
    else
        lie_in_wait();
    return 0;
}
