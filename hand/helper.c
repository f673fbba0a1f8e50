/* SPDX-License-Identifier: Apache-2.0
 *
 * The process beside the hand that reads the operator's file of credentials, and starts credential
 * helpers (docker-credential-NAME): what the hand itself cannot do any more once it is confined. It
 * is forked before, from a single thread, and ends with the hand's end of its socket. The process
 * looks into nothing that it carries: a request is a kind and texts, an answer what a file or a
 * program says.
 *
 *   "c"                 the file's bytes
 *   "h" NAME 0 SERVER   what docker-credential-NAME says of the server
 *
 * An answer begins with '+', or with '-' and the reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "hand/hand.h"
#include "isolation/proc.h"

enum { STDERR_MAX = 512, SOCK = 3 /* of the process, which has no other descriptor */ };

#define NOT_FOUND "credentials not found" /* how helpers say that they know nothing of a server */

/* In place of what the hand was started with: a helper is found here and nowhere else. */
static const char *const folders[] = {"/usr/local/bin", "/usr/bin", "/bin"};

static bool
helper_name(const char *s)
{
    return *s && strlen(s) <= HAND_HELPER_NAME_MAX &&
           s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")] == 0;
}

static void
helper_reply(int sock, char kind, const void *p, size_t n)
{
    auto_buf struct buf b = BUF_INIT(HAND_CREDENTIALS_MAX + 1);
    buf_putc(&b, kind);
    buf_put(&b, p, n);
    if (buf_error(&b)) {
        static const char large[] = "-it is too long";
        (void)send(sock, large, strlen(large), MSG_NOSIGNAL);
    } else {
        (void)send(sock, b.data, b.len, MSG_NOSIGNAL);
    }
}

static void
helper_refuse(int sock, const char *why)
{
    helper_reply(sock, '-', why, strlen(why));
}

static void
read_config(int sock, const char *path)
{
    auto_mem void *tmp = mem_ctx("config");
    char *text = NULL;
    size_t n = 0;
    int r = file_read(tmp, AT_FDCWD, path, HAND_CREDENTIALS_MAX - 1, &text, &n);
    if (r < 0)
        helper_refuse(sock, mem_printf(tmp, "read \"%s\": %s", path, err_name(r)));
    else
        helper_reply(sock, '+', text, n);
}

/* --- a helper --- */

static _Noreturn void
helper_become(const char *name, int in, int out, int err)
{
    auto_mem void *tmp = mem_ctx("helper");
    char *argv[] = {mem_printf(tmp, "docker-credential-%s", name), mem_strdup(tmp, "get"), NULL};
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setenv("HOME", "/root", 0);
    (void)setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(127);
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        (void)execv(mem_printf(tmp, "%s/%s", folders[i], argv[0]), argv);
    static const char lack[] = "there is no such program in /usr/local/bin, /usr/bin or /bin";
    (void)fd_write_full(2, lack, strlen(lack));
    _exit(127);
}

/* Until both are at their end. -ERR_TIMEOUT, -ERR_LIMIT. */
static int
helper_collect(const int fds[2], struct buf *const to[2])
{
    struct pollfd p[2] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
    int64_t end = clock_mono_ns() + HAND_HELPER_MS * NS_PER_MS;
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        char piece[4096];
        int64_t left = (end - clock_mono_ns()) / NS_PER_MS;
        if (left <= 0)
            return -ERR_TIMEOUT;
        if (poll(p, 2, (int)left) < 0 && errno != EINTR)
            return -errno;
        for (size_t i = 0; i < 2; i++) {
            if (p[i].fd < 0 || p[i].revents == 0)
                continue;
            ssize_t n = read(p[i].fd, piece, sizeof(piece));
            if (n <= 0)
                p[i].fd = -1;
            else
                buf_put(to[i], piece, (size_t)n);
            p[i].revents = 0;
            if (buf_error(to[0]))
                return -ERR_LIMIT;
        }
    }
    return 0;
}

/* `r`: 0, the helper ended well; 1, it failed; or why it was given up. */
static void
helper_tell(int sock, const char *name, const char *server, int r, const struct buf *out,
            const struct buf *err)
{
    auto_mem void *tmp = mem_ctx("told");
    size_t n = err->len < STDERR_MAX ? err->len : STDERR_MAX;
    const char *said = err->len > 0   ? mem_strndup(tmp, (const char *)err->data, n)
                       : out->len > 0 ? mem_strndup(tmp, (const char *)out->data,
                                                    out->len < STDERR_MAX ? out->len : STDERR_MAX)
                                      : "";
    if (r > 0 && strncmp(said, NOT_FOUND, strlen(NOT_FOUND)) == 0)
        helper_reply(sock, '+', "{}", 2);
    else if (r == 0)
        helper_reply(sock, '+', out->data ? (const char *)out->data : "", out->len);
    else if (r < 0)
        helper_refuse(sock,
                      mem_printf(tmp, "docker-credential-%s with input \"%s\" %s", name, server,
                                 r == -ERR_TIMEOUT ? "did not end in time" : "said too much"));
    else
        helper_refuse(
            sock, mem_printf(tmp, "docker-credential-%s with input \"%s\" failed with stderr: %s",
                             name, server, said));
}

static void
run_helper(int sock, const char *name, const char *server)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, status = 0;
    auto_buf struct buf said = BUF_INIT(HAND_CREDENTIALS_MAX),
                        errors = BUF_INIT(HAND_CREDENTIALS_MAX);
    if (!helper_name(name)) {
        helper_refuse(sock, "that is no name of a credential helper");
        return;
    }
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
        helper_refuse(sock, "there are no more file descriptors");
    else {
        pid_t pid = proc_fork(NULL);
        if (pid == 0)
            helper_become(name, in[0], out[1], err[1]);
        fd_close(&in[0]);
        fd_close(&out[1]);
        fd_close(&err[1]);
        /* a server's name has room in a pipe that nobody reads yet */
        (void)fd_write_full(in[1], server, strlen(server));
        fd_close(&in[1]);
        const int from[2] = {out[0], err[0]};
        struct buf *const to[2] = {&said, &errors};
        int r = pid < 0 ? pid : helper_collect(from, to);
        if (pid > 0) {
            if (r < 0)
                (void)kill(pid, SIGKILL);
            while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
            if (r == 0)
                r = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        }
        helper_tell(sock, name, server, r, &said, &errors);
    }
    int *const all[] = {&in[0], &in[1], &out[0], &out[1], &err[0], &err[1]};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        fd_close(all[i]);
}

/* --- the process --- */

static _Noreturn void
helper_serve(int sock, const char *config)
{
    char request[HAND_HELPER_NAME_MAX + HAND_SERVER_MAX + 4];
    (void)prctl(PR_SET_NAME, "paddock-helper", 0, 0, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    for (;;) {
        ssize_t n = recv(sock, request, sizeof(request) - 1, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(0);
        request[n] = 0;
        const char *name = request + 1, *server = memchr(request, 0, (size_t)n);
        if (request[0] == 'c')
            read_config(sock, config);
        else if (request[0] == 'h' && server)
            run_helper(sock, name, server + 1);
        else
            helper_refuse(sock, "that is no request");
    }
}

int
helper_start(const char *config, struct err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, errno, "make a socket for credential helpers");
    pid_t pid = proc_fork(NULL);
    if (pid == 0) {
        if (pair[1] != SOCK && dup3(pair[1], SOCK, O_CLOEXEC) < 0)
            _exit(1);
        (void)close_range(SOCK + 1, ~0U, 0);
        helper_serve(SOCK, config);
    }
    fd_close(&pair[1]);
    if (pid < 0) {
        fd_close(&pair[0]);
        return err_errno(e, -pid, "start the process that asks credential helpers");
    }
    if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0)
        return err_errno(e, errno, "set up a socket");
    return pair[0];
}
