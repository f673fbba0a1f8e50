/* SPDX-License-Identifier: Apache-2.0
 *
 * Mode "audit" of a task's filter: what it denies comes here, is answered as the plain filter would
 * have answered, and counted. No call is ever let through: without us the kernel answers ENOSYS.
 */
#include <linux/errno.h>
#include <linux/poll.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <time.h>

#include "isolation/confine/raw.h"
#include "isolation/shim/parts.h"

int
shim_audit_receive(int sock)
{
    char byte;
    int fd = -1;
    size_t n = 0;
    long r = shim_recv(sock, &byte, 1, &fd, 1, &n);
    return r < 0 ? (int)r : r == 1 && n == 1 ? fd : -EPIPE;
}

void
shim_audit_send(int sock, int listener)
{
    shim_send(sock, "", 1, &listener, 1);
}

static void
audit_count(struct record_run *run, uint32_t nr)
{
    for (unsigned i = 0; i < RECORD_CALLS_MAX; i++) {
        struct record_call *d = &run->denied[i];
        if (d->times > 0 && d->nr != nr)
            continue;
        d->nr = nr;
        d->times++;
        return;
    }
    run->denied_more++;
}

static void
stop_listening(struct shim_audit *a)
{
    raw_close(a->listener);
    a->listener = -1;
}

/* One call. Does not wait: poll(2) has told of it, and nobody else takes it. */
static void
audit_answer(struct shim_audit *a, struct record_run *run)
{
    struct seccomp_notif call = {0};
    long r = RAW(SYS_ioctl, a->listener, SECCOMP_IOCTL_NOTIF_RECV, &call);
    if (r == -ENOENT || r == -EINTR) /* who made it was killed, or interrupted */
        return;
    if (r < 0) {
        stop_listening(a);
        return;
    }
    const struct seccomp_notif_resp denied = {.id = call.id, .error = -EPERM};
    (void)RAW(SYS_ioctl, a->listener, SECCOMP_IOCTL_NOTIF_SEND, &denied);
    audit_count(run, (uint32_t)call.data.nr);
    a->unwritten = true;
}

bool
shim_audit_turn(struct shim_audit *a, int revents, struct record_run *run)
{
    if (a->listener < 0)
        return false;
    if (revents & POLLIN)
        audit_answer(a, run);
    else if (revents != 0) /* nobody has the filter any more, or it cannot be watched */
        stop_listening(a);
    if (!a->unwritten)
        return false;
    struct timespec t = {0};
    (void)RAW(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    int64_t now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    if (now < a->write_ns)
        return false;
    a->unwritten = false;
    a->write_ns = now + (int64_t)SHIM_AUDIT_PAUSE_MS * 1000000;
    return true;
}
