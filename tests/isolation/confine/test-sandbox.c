/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent does to itself (isolation/confine/sandbox.h), tried in a child that does it and then
 * misbehaves.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "isolation/confine/landlock.h"
#include "isolation/confine/sandbox.h"
#include "isolation/probe.h"
#include "tests/lib/test.h"

#ifdef INSTRUMENTED
static const bool off = true;
#else
static const bool off;
#endif
static char dir[64], own[80], other[80];

static long
res(long r)
{
    return r == -1 ? -errno : r;
}

static long
opened(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static const char *
in(const char *top, const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", top, name);
    return path;
}

static void *
asleep(void *arg)
{
    while (__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE) == 0)
        (void)sched_yield();
    return (void *)res(mount("x", "/tmp", "tmpfs", 0, NULL));
}

static void *
nothing(void *arg)
{
    return arg;
}

/* In the child: how many things came out otherwise. */
static int bad;
static void
want(const char *what, long got, long must)
{
    if (got == must)
        return;
    fprintf(stderr, "%s: %ld, must be %ld\n", what, got, must);
    bad++;
}

static void
calls_denied(void)
{
    char *argv[] = {(char *)"true", NULL};
    want("execve", res(execve("/bin/true", argv, argv + 1)), -EPERM);
#ifdef SYS_fork /* arm64 has clone alone */
    want("fork", res(syscall(SYS_fork)), -EPERM);
#endif
    want("vfork", res(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)), -EPERM);
    want("clone3", res(syscall(SYS_clone3, NULL, 0)), -ENOSYS);
    want("ptrace", res(ptrace(PTRACE_TRACEME, 0, 0, 0)), -EPERM);
    want("mount", res(mount("x", "/tmp", "tmpfs", 0, NULL)), -EPERM);
    want("unshare", res(unshare(CLONE_NEWUSER)), -EPERM);
    want("setuid", res(setresuid(0, 0, 0)), -EPERM);
    want("kill", res(kill(getppid(), 0)), -EPERM);
    want("bpf", res(syscall(SYS_bpf, 0, NULL, 0)), -EPERM);
    want("io_uring", res(syscall(SYS_io_uring_setup, 1, NULL)), -EPERM);
    want("raw socket", res(socket(AF_PACKET, SOCK_RAW, 0)), -EPERM);
    want("shm", res(shmget(IPC_PRIVATE, 1, 0600)), -EPERM);
    want("mknod", res(mknod(in(own, "n"), S_IFCHR | 0600, 0)), -EPERM);
    want("chroot", res(chroot("/tmp")), -EPERM);
}

static void
calls_that_work(void)
{
    pthread_t t;
    struct addrinfo *a = NULL;
    want("thread", pthread_create(&t, NULL, nothing, NULL), 0);
    want("join", pthread_join(t, NULL), 0);
    want("names", getaddrinfo("localhost", "80", NULL, &a), 0);
    if (a)
        freeaddrinfo(a);
    void *lib = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    want("dlopen", lib != NULL, 1);
    if (lib)
        (void)dlclose(lib);
    want("socket", res(socket(AF_INET6, SOCK_STREAM, 0)) >= 0, 1);
    want("own file", opened(in(own, "f"), O_RDWR | O_CREAT), 0);
    want("rename", res(rename(in(own, "f"), "/tmp/../tmp/x")) < 0, 1);
}

static int
misbehave(bool landlock)
{
    const struct sandbox_path v[] = {{own, true},       {"/usr", false}, {"/lib", false},
                                     {"/lib64", false}, {"/etc", false}, {"/proc", false},
                                     {"/nowhere", true}};
    struct err e = ERR_INIT;
    pthread_t early;
    void *late = NULL;
    int go = 0;
    int r = sandbox_files(v, ARRAY_LEN(v), &e);
    want("sandbox_files", r == 0, landlock);
    err_clear(&e);
    want("sandbox_rings", sandbox_rings(&e), 0);
    want("a ring, for a loop", res(syscall(SYS_io_uring_setup, 1, NULL)), -ENOSYS);
    want("thread", pthread_create(&early, NULL, asleep, &go), 0);
    if (sandbox_calls(&e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        return 100;
    }
    __atomic_store_n(&go, 1,
                     __ATOMIC_RELEASE); /* the filter is on threads that were there before */
    want("join", pthread_join(early, &late), 0);
    want("mount in an older thread", (long)late, -EPERM);
    calls_that_work();
    calls_denied();
    if (landlock) {
        want("another's file", opened(in(other, "f"), O_RDONLY), -EACCES);
        want("another's new file", opened(in(other, "g"), O_WRONLY | O_CREAT), -EACCES);
        want("a file that may be read", opened("/etc/passwd", O_RDONLY), 0);
        want("... not written", opened("/etc/passwd", O_WRONLY), -EACCES);
        want("a list of /", opened("/", O_RDONLY | O_DIRECTORY), -EACCES);
    }
    return bad;
}

START_TEST(nothing_beyond)
{
    if (off) {
        printf("SKIP sanitizer: its runtime does what the sandbox denies\n");
        return;
    }
    struct probe p;
    probe_run(&p, NULL);
    snprintf(dir, sizeof(dir), "/tmp/sandbox-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(own, sizeof(own), "%s/own", dir);
    snprintf(other, sizeof(other), "%s/other", dir);
    ck_assert_int_eq(mkdir(own, 0700), 0);
    ck_assert_int_eq(mkdir(other, 0700), 0);
    ck_assert_int_eq(opened(in(other, "f"), O_WRONLY | O_CREAT), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(misbehave(p.landlock_abi >= LANDLOCK_ABI_REFER));
    int st;
    ck_assert_int_eq(waitpid(pid, &st, 0), pid);
    ck_assert_msg(WIFEXITED(st) && WEXITSTATUS(st) == 0, "%d things, status %x", WEXITSTATUS(st),
                  (unsigned)st);
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}
END_TEST

TEST_SUITE("sandbox", nothing_beyond)
