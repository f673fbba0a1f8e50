/* SPDX-License-Identifier: Apache-2.0
 *
 * Beside every run of attempts, on the host and outside of every sandbox: what must not change does
 * not.
 *
 *   watch CANARY FILE...
 *
 * makes CANARY, a file that only root may read, a process of nobody's, and a snapshot: sysctls,
 * names of the host, mounts, kernel modules, and the content of each FILE (programs of ours and the
 * host's). Prints "ready SECRET", the secret being the text of the canary, and waits for the end of
 * its input. Then it prints a line for each thing that is not as it was, and ends with 1 if there
 * was one: a canary that was so much as opened, and a process that ended, was stopped or is traced,
 * are such things.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, LINES = 16384, SECRET = 32 };

/* Sysctls that change by themselves, or with what others on the machine do. */
static const char *const restless[] = {
    "/proc/sys/kernel/random/",
    "/proc/sys/fs/inode-",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/dentry-",
    "/proc/sys/fs/aio-nr",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/pty/nr",
    "/proc/sys/fs/quota/",
    "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/sys/net/ipv4/conf/",
    "/proc/sys/net/ipv6/conf/",
    "/proc/sys/net/ipv4/neigh/",
    "/proc/sys/net/ipv6/neigh/",
    "/proc/sys/kernel/perf_event_max_sample_rate",
    "/proc/sys/kernel/perf_cpu_time_max_percent",
};

struct snapshot {
    char *v[LINES]; /* sorted */
    size_t n;
};
static struct snapshot *into; /* nftw has no argument */

static void
die(const char *what)
{
    fprintf(stderr, "watch: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void __attribute__((format(printf, 1, 2))) add(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (into->n == LINES || vasprintf(&into->v[into->n++], fmt, ap) < 0) {
        fprintf(stderr, "watch: too much to watch\n");
        exit(2);
    }
    va_end(ap);
}

/* FNV-1a: nobody chooses these bytes to collide who may not write the file anyway. */
static void
add_file(const char *kind, const char *path)
{
    unsigned long long h = 14695981039346656037ull;
    char b[65536];
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd >= 0 && (n = read(fd, b, sizeof(b))) > 0)
        for (ssize_t i = 0; i < n; i++)
            h = (h ^ (unsigned char)b[i]) * 1099511628211ull;
    add("%s %s %s %016llx", kind, path, fd < 0 || n < 0 ? strerrorname_np(errno) : "is", h);
    if (fd >= 0)
        close(fd);
}

static int
sysctl_at(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    if (type != FTW_F || !(st->st_mode & 0444))
        return 0;
    for (size_t i = 0; i < sizeof(restless) / sizeof(restless[0]); i++)
        if (strncmp(path, restless[i], strlen(restless[i])) == 0)
            return 0;
    add_file("sysctl", path);
    return 0;
}

static void
add_lines(const char *kind, const char *path, int words)
{
    FILE *f = fopen(path, "re");
    char line[8192];
    while (f && fgets(line, sizeof(line), f)) {
        if (strstr(line, "/secrets ") && strstr(line, "/data/alloc/") && strstr(line, " tmpfs "))
            continue; /* memory that the warden gave an allocation */
        size_t n = words ? strcspn(line, " \n") : strcspn(line, "\n");
        add("%s %.*s", kind, (int)n, line);
    }
    if (f)
        fclose(f);
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
take(struct snapshot *s, char **files)
{
    char name[65] = "";
    into = s;
    if (gethostname(name, sizeof(name) - 1) < 0)
        die("gethostname");
    add("hostname %s", name);
    if (getdomainname(name, sizeof(name) - 1) < 0)
        die("getdomainname");
    add("domain name %s", name);
    add_lines("mount", "/proc/self/mountinfo", 0);
    add_lines("module", "/proc/modules", 1);
    add_lines("swap", "/proc/swaps", 1);
    if (nftw("/proc/sys", sysctl_at, 32, FTW_PHYS) < 0)
        die("/proc/sys");
    for (; *files; files++)
        add_file("file", *files);
    qsort(s->v, s->n, sizeof(s->v[0]), by_text);
}

static int
differences(const struct snapshot *a, const struct snapshot *b)
{
    int bad = 0;
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
        int c = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->v[i], b->v[k]);
        if (c != 0) {
            printf("%s: %s\n", c < 0 ? "was" : "is now", c < 0 ? a->v[i] : b->v[k]);
            bad++;
        }
        i += c <= 0;
        k += c >= 0;
    }
    return bad;
}

/* --- the canary and the bystander --- */

static void
make_canary(const char *path, char *secret)
{
    unsigned char r[SECRET / 2];
    if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
        die("getrandom");
    for (size_t i = 0; i < sizeof(r); i++)
        snprintf(secret + 2 * i, 3, "%02x", r[i]);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, secret, SECRET) != SECRET)
        die(path);
    close(fd);
}

static int
check_canary(const char *path, const char *secret, int events)
{
    char b[4096], text[SECRET + 2] = "";
    int bad = 0;
    if (read(events, b, sizeof(b)) > 0) {
        const struct inotify_event *e = (const void *)b;
        printf("the canary was touched: events %x\n", (unsigned)e->mask);
        bad++;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) != SECRET || strcmp(text, secret) != 0) {
        printf("the canary is not what it was\n");
        bad++;
    }
    return bad;
}

static pid_t
bystander(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        /* nobody's own process: what a task of nobody's outside of its box could signal */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
            setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    if (pid < 0)
        die("fork");
    return pid;
}

static int
check_bystander(pid_t pid)
{
    int st, bad = 0;
    pid_t r = waitpid(pid, &st, WNOHANG | WUNTRACED | WCONTINUED);
    if (r != 0) {
        printf("the process of nobody's ended, stopped or continued\n");
        bad++;
    }
    char path[64], line[256];
    int traced = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "TracerPid: %d", &traced) == 1 && traced != 0) {
            printf("the process of nobody's is traced\n");
            bad++;
        }
    if (f)
        fclose(f);
    kill(pid, SIGKILL);
    return bad;
}

int
main(int argc, char **argv)
{
    static struct snapshot before, after;
    char secret[SECRET + 1] = "", c;
    if (argc < 2) {
        fprintf(stderr, "usage: watch CANARY FILE...\n");
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    make_canary(argv[1], secret);
    pid_t other = bystander();
    int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (events < 0 || inotify_add_watch(events, argv[1], IN_ALL_EVENTS) < 0)
        die("inotify");
    take(&before, argv + 2);
    printf("ready %s\n", secret);
    fflush(stdout);
    ssize_t n;
    while ((n = read(0, &c, 1)) > 0 || (n < 0 && errno == EINTR))
        ;
    int bad = check_canary(argv[1], secret, events) + check_bystander(other);
    take(&after, argv + 2);
    bad += differences(&before, &after);
    fflush(stdout);
    (void)unlink(argv[1]);
    return bad > 0;
}
