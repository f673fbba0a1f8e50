/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "tests/attempts/watch.h"
#include "tests/lib/test.h"

/* The child's side: stdin and stdout are the pipes. */
static _Noreturn void
run(const char *canary, const int *in, const int *out)
{
    const char *top = getenv("top_builddir");
    char path[512], warden[512], shim[512];
    top = top != NULL ? top : ".";
    snprintf(path, sizeof(path), "%s/tests/attempts/watch", top);
    snprintf(warden, sizeof(warden), "%s/paddock-warden", top);
    snprintf(shim, sizeof(shim), "%s/paddock-shim", top);
    if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0)
        _exit(126);
    execl(path, "watch", canary, warden, shim, "/bin/sh", "/usr/bin/env", "/etc/passwd",
          "/etc/shadow", (char *)NULL);
    perror(path);
    _exit(127);
}

void
watch_begin(struct watch *w, const char *dir)
{
    int in[2], out[2];
    char line[64] = "";
    size_t n = 0;
    *w = (struct watch){0};
    ck_assert_int_lt(snprintf(w->canary, sizeof(w->canary), "%s/canary", dir),
                     (int)sizeof(w->canary));
    ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    w->pid = fork();
    ck_assert_int_ge(w->pid, 0);
    if (w->pid == 0)
        run(w->canary, in, out);
    close(in[0]);
    close(out[1]);
    w->in = in[1];
    w->out = out[0];
    while (n < sizeof(line) - 1 && read(w->out, line + n, 1) == 1 && line[n] != '\n')
        n++;
    ck_assert_msg(sscanf(line, "ready %32s", w->secret) == 1, "the watch does not start: \"%s\"",
                  line);
}

void
watch_end(struct watch *w, const char *output)
{
    char text[8192] = "";
    int st = 0;
    fd_close(&w->in);
    ssize_t n = fd_read_full(w->out, text, sizeof(text) - 1);
    fd_close(&w->out);
    (void)kill(w->pid, n < 0 ? SIGKILL : 0);
    ck_assert_int_eq(waitpid(w->pid, &st, 0), w->pid);
    ck_assert_msg(WIFEXITED(st) && WEXITSTATUS(st) == 0, "what must not change did:\n%s", text);
    ck_assert_msg(output == NULL || strstr(output, w->secret) == NULL, "the canary was read: %s",
                  output);
}
