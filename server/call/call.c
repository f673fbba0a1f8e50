/* SPDX-License-Identifier: Apache-2.0
 *
 * What the states of a call have in common (see call_int.h): how one follows another, and the end.
 */
#include "server/call/call_int.h"

#include "common/mem.h"

void
call_enter(struct call *c, enum call_state to)
{
#define FROM(state) (1U << CALL_##state)
    static const unsigned from[CALL_STATES] = {
        [CALL_PLACING] = FROM(PLACING) | FROM(WAITING) | FROM(WORKING) | FROM(PARKED) | FROM(HELD),
        [CALL_WAITING] = FROM(PLACING) | FROM(WAITING) | FROM(FORWARDED),
        [CALL_FORWARDED] = FROM(PLACING) | FROM(WAITING),
        [CALL_ABROAD] = FROM(PLACING),
        [CALL_AT_NODE] = FROM(PLACING),
        [CALL_WORKING] = FROM(PLACING) | FROM(PARKED) | FROM(PROPOSED),
        [CALL_PARKED] = FROM(WORKING),
        [CALL_HELD] = FROM(WORKING),
        [CALL_PROPOSED] = FROM(WORKING),
    };
#undef FROM
    ASSERT(from[to] & (1U << c->state));
    c->state = to;
}

void
call_again(struct call *c)
{
    call_enter(c, CALL_PLACING);
    (void)rpc_call_handle(c->rpc, c->place, c, c->req);
}

struct rpc_call *
call_leave(struct call *c)
{
    gate_unref(c->gate);
    caller_unref(TAKE(c->caller));
    rpc_call_on_cancel(c->rpc, NULL, NULL);
    return c->rpc;
}

void
call_fail(struct call *c, const struct err *e)
{
    rpc_fail(call_leave(c), e);
}

void
call_failf(struct call *c, int code, const char *why)
{
    rpc_failf(call_leave(c), code, "%s", why);
}
