/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns of tasks that are to restart, at the leader, and not written (server/leader/vars/turns.c).
 */
#include "api/terms.h"
#include "common/mem.h"
#include "server/call/method.h"
#include "server/leader/leader.h"

static int
prepare_turn(struct write *w, struct state_txn *t, struct err *e)
{
    const struct alloc_turn_request *q = w->req;
    struct allocation *a = state_alloc(t, w->ctx, str_or(q->alloc_id, ""));
    struct alloc_turn_response *resp = mem_new(w->ctx, struct alloc_turn_response);

    if (codec_check(&type_alloc_turn_request, q, e) < 0)
        return e->code;
    if (a == NULL || !str_eq(a->node_id, w->node->id))
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    if (state_alloc_job(t, a) == NULL ||
        group_task(job_group(a->job, a->task_group), str_or(q->task, "")) == NULL)
        return err_set(e, -ERR_NOT_FOUND, "allocation \"%s\" has no such task", a->id);
    resp->granted = leader_turn(server_leader(w->s), t, a, q);
    w->resp = resp;
    return 0;
}

const struct write_row write_alloc_take_turn = {.prepare = prepare_turn, .here = true};
