/* SPDX-License-Identifier: Apache-2.0
 *
 * See helper.h. The report waits in the socket until the exit socket tells the end: then nothing of
 * the program is left, and what it has made is whole or not there.
 */
#include "client/task/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "client/task/launch.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/helper.h"
#include "isolation/packet.h"

enum { AGAIN_MS = 500 };

struct helper { /* a talloc context */
    struct task_runner *tr;
    struct ground *g;
    struct helper_request *request;
    uint8_t *packet;
    size_t n;
    helper_done *done;
    void *arg;
    int talk, exit; /* -1 */
    helper_note *note; /* NULL: nobody wants to know */
    uint8_t *last;     /* packet of the program's */
    size_t n_last;
    struct watch *watch; /* of exit */
    struct watch *talk_watch;
    struct timer *again;
    struct helper *next; /* of those that wait for their turn */
    bool waiting;        /* ... it is one of them */
    bool asking;         /* the warden's answer is to come */
    bool cancelled;
};

static void helper_ask(struct helper *h);

static void
helper_close(struct helper *h)
{
    watch_stop(TAKE(h->watch));
    watch_stop(TAKE(h->talk_watch));
    fd_close(&h->talk);
    fd_close(&h->exit);
}

/* The warden takes so many at once, and one that ends makes room for the next. */
static void
helper_next(struct ground *g)
{
    struct helper *h = g->helpers.waiting;
    if (h == NULL || g->stopping || g->helpers.running >= WARDEN_HELPERS_MAX)
        return;
    g->helpers.waiting = TAKE(h->next);
    h->waiting = false;
    g->helpers.running++;
    helper_ask(h);
}

static void
helper_free(struct helper *h)
{
    struct ground *g = h->g;
    struct helper **at = &g->helpers.waiting;
    helper_close(h);
    timer_stop(TAKE(h->again));
    while (h->waiting && *at != h)
        at = &(*at)->next;
    if (h->waiting)
        *at = h->next;
    else
        g->helpers.running--;
    talloc_free(h);
    helper_next(g);
    hold_release(&g->hold);
}

static void
helper_tell(struct helper *h, const struct err *e, const void *p, size_t n)
{
    helper_done *done = h->done;
    void *arg = h->arg;
    helper_close(h);
    done(arg, e, p, n);
    helper_free(h);
}

static void
on_again(void *arg)
{
    struct helper *h = arg;
    h->again = NULL;
    helper_ask(h);
}

static void
ask_again(struct helper *h)
{
    helper_close(h);
    h->again = timer_start(h->g->loop, AGAIN_MS, on_again, h);
}

static void
helper_explain(const struct helper_end *x, const struct helper_request *q, struct err *e)
{
    if (x->cause == HELPER_DEADLINE)
        err_set(e, -ERR_TIMEOUT, "it took longer than %lld s", (long long)(q->deadline_ms / 1000));
    else if (x->cause == HELPER_MEMORY)
        err_set(e, -ERR_LIMIT, "it needed more than %lld MiB of memory",
                (long long)(q->memory_max >> 20));
    else if (x->cause == HELPER_NOT_RUN)
        err_errno(e, x->error, "the helper \"%s\" did not start: %.47s", q->program, x->step);
    else if (x->signal != 0)
        err_set(e, -ERR_INTERNAL, "the helper \"%s\" was ended by signal %d", q->program,
                x->signal);
    else
        err_set(e, -ERR_INTERNAL, "the helper \"%s\" ended with status %d and said nothing",
                q->program, x->code);
}

/* Keeps the next packet. False: there is none now. */
static bool
take_packet(struct helper *h)
{
    auto_mem void *tmp = mem_ctx("packet");
    uint8_t *p = mem_array(tmp, uint8_t, HELPER_REPORT_MAX);
    ssize_t n = recv(h->talk, p, HELPER_REPORT_MAX, MSG_DONTWAIT);
    if (n <= 0)
        return false;
    mem_free(h->last);
    h->last = mem_dup(h, p, (size_t)n);
    h->n_last = (size_t)n;
    return true;
}

static void
on_talk(void *arg, int fd, unsigned events)
{
    struct helper *h = arg;
    (void)fd, (void)events;
    if (take_packet(h))
        h->note(h->arg, h->last, h->n_last);
    else /* it has closed its end; spurious readiness is no loss */
        watch_stop(TAKE(h->talk_watch));
}

static void
on_exit_told(void *arg, int fd, unsigned events)
{
    struct helper *h = arg;
    struct helper_end x = {0};
    struct err e = ERR_INIT;
    (void)events;
    ssize_t n = recv(fd, &x, sizeof(x), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != sizeof(x)) { /* the warden is gone, and the program with it */
        ask_again(h);
        return;
    }
    x.step[sizeof(x.step) - 1] = '\0';
    while (take_packet(h)) /* the report is the last one */
        ;
    if (x.cause == HELPER_ENDED && x.signal == 0 && x.code == 0 && h->n_last > 0) {
        helper_tell(h, NULL, h->last, h->n_last);
        return;
    }
    helper_explain(&x, h->request, &e);
    helper_tell(h, &e, NULL, 0);
}

static int
helper_send_large(struct helper *h)
{
    auto_fd int fd = memfd_create("request", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : fd_write_full(fd, h->packet, h->n);
    return r < 0 ? r : packet_send(h->talk, "", 1, &fd, 1);
}

static int
helper_begin(struct helper *h, struct warden_reply *r, struct err *e)
{
    h->talk = TAKE_FD(r->helper);
    h->exit = TAKE_FD(r->exit);
    if (h->talk < 0 || h->exit < 0)
        return err_set(e, -ERR_INTERNAL, "the warden sent no descriptors of the helper's");
    (void)fcntl(h->talk, F_SETFL, O_NONBLOCK);
    (void)fcntl(h->exit, F_SETFL, O_NONBLOCK);
    int sent = h->n > HELPER_PACKET_MAX ? helper_send_large(h)
                                        : packet_send(h->talk, h->packet, h->n, NULL, 0);
    if (sent < 0 && sent != -EPIPE)
        return err_errno(e, -sent, "send the helper its request");
    mem_free(h->last); /* of an attempt that the warden's end cut off */
    h->n_last = 0;
    h->watch = watch_fd(h->g->loop, h->exit, WATCH_READ, on_exit_told, h);
    if (h->note != NULL)
        h->talk_watch = watch_fd(h->g->loop, h->talk, WATCH_READ, on_talk, h);
    return h->watch == NULL ? err_set(e, -ERR_INTERNAL, "the helper cannot be watched") : 0;
}

static void
on_helper(void *arg, const struct err *e, struct warden_reply *r)
{
    struct helper *h = arg;
    struct err own = ERR_INIT;
    h->asking = false;
    if (h->cancelled) {
        helper_free(h); /* the reply's descriptors are closed, which ends the program */
        return;
    }
    if (e != NULL &&
        (e->code == -ERR_UNAVAILABLE || e->code == -ERR_CLOSED || e->code == -ERR_BUSY))
        ask_again(h);
    else if (e != NULL)
        helper_tell(h, e, NULL, 0);
    else if (helper_begin(h, r, &own) < 0)
        helper_tell(h, &own, NULL, 0);
}

static void
helper_ask(struct helper *h)
{
    struct task_runner *tr = h->tr;
    auto_mem void *tmp = mem_ctx("helper");
    const struct warden_task task = {
        tr->sm.t->name, (char *)(uintptr_t)launch_user(tmp, tr), tr->task->driver};
    h->asking = true;
    warden_helper(h->g->warden, tr->ar->id, &task, h->request, on_helper, h);
}

struct helper *
helper_run(struct task_runner *tr, const struct helper_request *q, const void *p, size_t n,
           helper_done *done, void *arg)
{
    struct helper *h = mem_new(NULL, struct helper);
    ASSERT(n > 0 && tr->ar->g->warden != NULL);
    *h = (struct helper){.tr = tr, .g = tr->ar->g, .n = n, .done = done, .arg = arg};
    h->talk = h->exit = -1;
    h->request = codec_clone(h, &type_helper_request, q);
    h->packet = mem_dup(h, p, n);
    hold_take(&h->g->hold);
    struct helper **last = &h->g->helpers.waiting;
    while (*last != NULL)
        last = &(*last)->next;
    *last = h;
    h->waiting = true;
    helper_next(h->g);
    return h;
}

void
helper_follow(struct helper *h, helper_note *note)
{
    h->note = note;
}

void
helper_cancel(struct helper *h)
{
    if (h == NULL)
        return;
    h->cancelled = true;
    helper_close(h);
    timer_stop(TAKE(h->again));
    if (!h->asking)
        helper_free(h);
}
