/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"

enum { TAIL = 4096 };

struct running {
    pid_t pid;
    int out, err; /* -1: it has closed it */
    char *text;   /* of `out` */
    size_t n, size;
    char tail[TAIL + 1]; /* the last bytes of `err` */
    size_t tail_n;
};

static int
program_start(const struct program *p, struct running *run, struct err *e)
{
    int out[2], errors[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_errno(e, errno, "make a pipe");
    run->out = out[0];
    auto_fd int out_w = out[1];
    if (pipe2(errors, O_CLOEXEC) < 0)
        return err_errno(e, errno, "make a pipe");
    run->err = errors[0];
    auto_fd int err_w = errors[1];
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    (void)posix_spawn_file_actions_init(&fa);
    (void)posix_spawnattr_init(&attr);
    /* a group of its own: who is left of it is found by that */
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    (void)posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&fa, out_w, STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&fa, err_w, STDERR_FILENO);
    (void)posix_spawn_file_actions_addfchdir_np(&fa, p->dir);
    int rc = posix_spawnp(&run->pid, p->argv[0], &fa, &attr, (char *const *)(uintptr_t)p->argv,
                          (char *const *)(uintptr_t)p->env);
    (void)posix_spawn_file_actions_destroy(&fa);
    (void)posix_spawnattr_destroy(&attr);
    if (rc == ENOENT)
        return err_set(e, -ERR_NOT_FOUND, "the program \"%s\" is not installed on this client",
                       p->argv[0]);
    return rc != 0 ? err_errno(e, rc, "start \"%s\"", p->argv[0]) : 0;
}

static void
keep_tail(struct running *run, const char *p, size_t n)
{
    if (n > TAIL) {
        p += n - TAIL;
        n = TAIL;
    }
    size_t over = run->tail_n + n > TAIL ? run->tail_n + n - TAIL : 0;
    memmove(run->tail, run->tail + over, run->tail_n - over);
    run->tail_n -= over;
    memcpy(run->tail + run->tail_n, p, n);
    run->tail_n += n;
    run->tail[run->tail_n] = '\0';
}

/* False: there will be no more. */
static bool
take_output(struct running *run, bool errors)
{
    char block[TAIL];
    ssize_t n = read(errors ? run->err : run->out, block, sizeof(block));
    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0)
        return false;
    size_t k = (size_t)n;
    if (errors) {
        keep_tail(run, block, k);
    } else if (run->text != NULL) {
        size_t room = run->size - 1 - run->n;
        k = k < room ? k : room;
        memcpy(run->text + run->n, block, k);
        run->n += k;
    }
    return true;
}

/* False: its time is over. */
static bool
program_follow(struct running *run, int64_t deadline_ns)
{
    while (run->out >= 0 || run->err >= 0) {
        struct pollfd v[2] = {{.fd = run->out, .events = POLLIN},
                              {.fd = run->err, .events = POLLIN}};
        int64_t left = (deadline_ns - clock_mono_ns()) / NS_PER_MS;
        if (left <= 0)
            return false;
        if (poll(v, 2, (int)(left < INT32_MAX ? left : INT32_MAX)) < 0 && errno != EINTR)
            return false;
        if (v[0].revents != 0 && !take_output(run, false))
            fd_close(&run->out);
        if (v[1].revents != 0 && !take_output(run, true))
            fd_close(&run->err);
    }
    return true;
}

/* The last line that begins with a word for an error, or else the last one. Git's line about ssh
 * says less than the words of ssh before it. */
static const char *
last_words(char *tail)
{
    static const char *const begins[] = {"fatal:", "error:", "abort:", "ERROR:"};
    const char *last = "", *error = "", *before = "";
    for (char *p = tail; *p != '\0';) {
        size_t n = strcspn(p, "\r\n");
        bool end = p[n] == '\0';
        p[n] = '\0';
        for (size_t i = 0; i < ARRAY_LEN(begins); i++)
            if (str_prefix(p, begins[i])) {
                error = p;
                before = last;
            }
        last = n > 0 ? p : last;
        p += end ? n : n + 1;
    }
    if (str_suffix(error, "Could not read from remote repository."))
        error = str_or(before, error);
    return str_or(error, last);
}

int
program_run(const struct program *p, char *out, size_t size, struct err *e)
{
    struct running run = {.out = -1, .err = -1, .text = out, .size = size};
    int status = 0;
    int r = program_start(p, &run, e);
    if (r == 0) {
        siginfo_t info;
        bool ended = program_follow(&run, p->deadline_ns);
        if (ended) /* it has let go of its output, so it ends now */
            (void)waitid(P_PID, (id_t)run.pid, &info, WEXITED | WNOWAIT);
        (void)kill(-run.pid, SIGKILL);
        (void)waitpid(run.pid, &status, 0);
        if (!ended) {
            r = err_set(e, -ERR_TIMEOUT, "it took too long");
        } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            r = err_set(e, -ERR_UNAVAILABLE, "%.300s", str_or(last_words(run.tail), "it failed"));
        }
    }
    fd_close(&run.out);
    fd_close(&run.err);
    if (out != NULL) {
        while (run.n > 0 && out[run.n - 1] == '\n')
            run.n--;
        out[run.n] = '\0';
    }
    return r;
}
