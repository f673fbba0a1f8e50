/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands for paddock-fetch in tests of helpers: it does what the packet says that it gets first.
 * Most of that is what a helper must not be able to do for long.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/str.h"
#include "isolation/launch/helper.h"

enum { SPINNERS = 4 };

#ifdef INSTRUMENTED
const char *__asan_default_options(void); /* it looks at other processes, and may not */
const char *
__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

static void
tell(const char *text)
{
    if (send(HELPER_FD_TALK, text, strlen(text), MSG_NOSIGNAL) < 0)
        _exit(9);
}

static const char *
outcome(int r)
{
    return r >= 0 ? "yes" : errno == EACCES ? "EACCES" : errno == EPERM ? "EPERM" : strerror(errno);
}

static int
forks(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid;
}

/* With leave to, a file without anything in it is no program: "Exec format error". */
static int
executes(void)
{
    char *none[] = {NULL};
    int fd = openat(HELPER_FD_SCRATCH, "program", O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
    if (fd >= 0)
        (void)close(fd);
    return (int)syscall(SYS_execveat, HELPER_FD_SCRATCH, "program", none, none, 0);
}

/* Tells in a line for each thing whether it can be had. */
static void
look(void)
{
    char text[2048];
    struct stat st;
    int n = snprintf(text, sizeof(text), "uid %u\n", (unsigned)geteuid());
#define TRY(name, expr)                                                                            \
    n += snprintf(text + n, sizeof(text) - (size_t)n, "%s %s\n", name, outcome(expr))
    TRY("free descriptor", fcntl(HELPER_FD_END, F_GETFD));
    TRY("task", openat(HELPER_FD_TASK, "local/made", O_CREAT | O_WRONLY, 0644));
    TRY("shared", openat(HELPER_FD_SHARED, "made", O_CREAT | O_WRONLY, 0644));
    TRY("scratch", openat(HELPER_FD_SCRATCH, "made", O_CREAT | O_WRONLY, 0644));
    TRY("move", renameat(HELPER_FD_SCRATCH, "made", HELPER_FD_TASK, "local/moved"));
    TRY("above", openat(HELPER_FD_TASK, "..", O_RDONLY | O_DIRECTORY));
    TRY("certificates", open("/etc/ssl", O_RDONLY));
    TRY("passwd", open("/etc/passwd", O_RDONLY));
    TRY("proc", open("/proc/1/cmdline", O_RDONLY));
    TRY("tmp", open("/tmp", O_RDONLY));
    TRY("internet", socket(AF_INET, SOCK_STREAM, 0));
    TRY("unix", socket(AF_UNIX, SOCK_STREAM, 0));
    TRY("fork", forks());
    TRY("execute", executes());
    TRY("device", mknodat(HELPER_FD_SCRATCH, "device", S_IFCHR | 0666, 0x103));
#undef TRY
    n += snprintf(text + n, sizeof(text) - (size_t)n, "links %d\n",
                  fstat(HELPER_FD_SCRATCH, &st) == 0 ? (int)(st.st_mode & 0777) : -1);
    tell(text);
}

static void
ignore_signals(void)
{
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal(sig, SIG_IGN);
}

static void *
spin(void *arg)
{
    for (volatile unsigned long n = 0;; n = n + 1)
        ;
    return arg;
}

/* Process 1 of a namespace gets no SIGXFSZ. */
static void
fill(bool one_file)
{
    static char block[65536];
    char name[32];
    for (unsigned i = 0;; i++) {
        (void)snprintf(name, sizeof(name), one_file ? "full" : "full-%u", i);
        int fd = openat(HELPER_FD_SCRATCH, name, O_CREAT | O_WRONLY | O_APPEND, 0600);
        if (fd >= 0 && write(fd, block, sizeof(block)) < 0 && errno == EFBIG)
            _exit(8);
        if (fd >= 0)
            (void)close(fd);
        if (i == 8)
            tell("filling");
    }
}

static void
eat(void)
{
    for (size_t n = 0;; n += 1 << 20) {
        char *p = malloc(1 << 20);
        if (p != NULL)
            memset(p, (int)n | 1, 1 << 20);
    }
}

int
main(void)
{
    char order[64] = "";
    ssize_t n = recv(HELPER_FD_TALK, order, sizeof(order) - 1, 0);
    pthread_t t;
    if (n <= 0)
        return 3;
    if (str_eq(order, "look"))
        look();
    else if (str_eq(order, "fail"))
        return 7;
    else if (str_eq(order, "crash"))
        __builtin_trap(); /* a signal that process 1 cannot ignore */
    else if (str_eq(order, "fill"))
        fill(false);
    else if (str_eq(order, "fill one"))
        fill(true);
    else if (str_eq(order, "eat"))
        eat();
    else if (str_eq(order, "spin")) {
        ignore_signals();
        for (int i = 0; i < SPINNERS && pthread_create(&t, NULL, spin, NULL) == 0; i++)
            ;
        (void)snprintf(order, sizeof(order), "%d", (int)getpid());
        tell(order);
        (void)spin(NULL);
    }
    return 0;
}
