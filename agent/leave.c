/* SPDX-License-Identifier: Apache-2.0
 *
 * A server that leaves its cluster before it stops (leave_on_interrupt, leave_on_terminate).
 */
#include <inttypes.h>

#include "agent/roles.h"
#include "api/api.h"
#include "common/log.h"
#include "common/mem.h"
#include "net/loop.h"
#include "net/rpc.h"
#include "server/server.h"

enum { LEAVE_MS = 5000, LEAVE_RETRY_MS = 100 };

struct leaving {
    struct roles *r;
    void (*done)(void *arg);
    void *arg;
    uint64_t id; /* ours */
    int64_t until_ms;
};

static void leave_try(void *arg);

static void
leave_over(struct leaving *l, const char *why)
{
    if (why != NULL)
        log_warn("agent", "this server stops without having left its cluster", "error", why, NULL);
    else
        log_info("agent", "this server has left its cluster", NULL);
    l->done(l->arg);
    mem_free(l);
}

static void
leave_again(struct leaving *l, const char *why)
{
    if (loop_now_ms(l->r->rc.loop) >= l->until_ms)
        leave_over(l, why);
    else
        (void)timer_start(l->r->rc.loop, LEAVE_RETRY_MS, leave_try, l);
}

static void
leave_answered(void *arg, const struct err *e, const void *resp)
{
    (void)resp;
    if (e == NULL)
        leave_over(arg, NULL);
    else
        leave_again(arg, e->text);
}

static void
leave_try(void *arg)
{
    struct leaving *l = arg;
    if (server_hand_over(l->r->server)) {
        leave_again(l, "no other server took the leadership over");
        return;
    }
    auto_mem void *tmp = mem_ctx("leave");
    struct raft_peer_request p = {.id = mem_printf(tmp, "%" PRIu64, l->id), .left = true};
    struct rpc_request q = {RPC_SERVER_LEAVE, &p, NULL, LEAVE_MS};
    rpc_send(l->r->servers, &q, leave_answered, l);
}

void
roles_leave(struct roles *r, void (*done)(void *arg), void *arg)
{
    uint64_t id = r->server != NULL ? server_leaves(r->server) : 0;
    if (id == 0) {
        loop_post(r->rc.loop, done, arg);
        return;
    }
    struct leaving *l = mem_new(NULL, struct leaving);
    *l = (struct leaving){r, done, arg, id, loop_now_ms(r->rc.loop) + LEAVE_MS};
    leave_try(l);
}
