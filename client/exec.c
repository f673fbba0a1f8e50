/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that run in tasks: sessions that join a running one.
 */
#include "client/client.h"

#include "client/internal.h"
#include "common/mem.h"

struct client_exec { /* a talloc context */
    struct client *c;
    const struct client_exec_events *events;
    void *arg;
    struct err e;
    bool posted; /* freed in the posted call */
    bool freed;
};

static void
exec_free(struct client_exec *x)
{
    struct client *c = x->c;
    talloc_free(x);
    client_release(c);
}

static void
exec_posted(void *arg)
{
    struct client_exec *x = arg;
    if (!x->freed)
        x->events->failed(x->arg, &x->e);
    x->posted = false;
    if (x->freed)
        exec_free(x);
}

struct client_exec *
client_exec_open(struct client *c, const char *alloc_id, const struct client_exec_request *req,
                 const struct client_exec_events *events, void *arg)
{
    (void)req;
    struct client_exec *x = mem_new(NULL, struct client_exec);
    *x = (struct client_exec){.c = c, .events = events, .arg = arg, .posted = true};
    client_hold(c);
    err_set(&x->e, -ERR_UNSUPPORTED, "no command can run in allocation \"%.40s\" yet", alloc_id);
    loop_post(c->loop, exec_posted, x);
    return x;
}

int
client_exec_write(struct client_exec *x, const void *data, size_t n)
{
    (void)x, (void)data, (void)n;
    return 0;
}

void
client_exec_close_input(struct client_exec *x)
{
    (void)x;
}

void
client_exec_resize(struct client_exec *x, int64_t rows, int64_t columns)
{
    (void)x, (void)rows, (void)columns;
}

void
client_exec_pause(struct client_exec *x, bool on)
{
    (void)x, (void)on;
}

void
client_exec_free(struct client_exec *x)
{
    x->freed = true;
    if (!x->posted)
        exec_free(x);
}
