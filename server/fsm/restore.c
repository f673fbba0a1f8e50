/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: pieces of a backup, which are kept until their end is told. The core then puts
 * what they hold in the place of the state (server/core/restore.c).
 */
#include "api/limits.h"
#include "server/fsm/fsm_int.h"

static const struct restore_piece *
piece_at(struct apply *a, uint64_t offset)
{
    return state_get(a->t, a->tmp, RESTORE, .n = offset);
}

int
intent_restore_piece(struct apply *a, const struct restore_piece *in)
{
    const struct restore_piece *before = NULL;

    if (in->data.n == 0 || in->data.n > RESTORE_PIECE || in->offset % RESTORE_PIECE != 0)
        return entry_refuse(a, -ERR_INVALID,
                            "a piece of a backup is of 1 to %d bytes, at a multiple of that",
                            RESTORE_PIECE);
    if (in->offset > 0)
        before = piece_at(a, in->offset - RESTORE_PIECE);
    if (in->offset > 0 &&
        (before == NULL || !str_eq(before->id, in->id) || before->data.n != RESTORE_PIECE))
        return entry_refuse(a, -ERR_CONFLICT,
                            "another restore has begun meanwhile, or a piece of this one is "
                            "missing: begin again");
    if (in->offset == 0)
        state_wipe_table(a->t, STATE_RESTORE);
    state_put(a->t, 0, RESTORE, in);
    return 0;
}

int
intent_restore_end(struct apply *a, const struct intent_restore_end *in)
{
    const struct restore_piece *first = piece_at(a, 0);

    if (first == NULL || !str_eq(first->id, in->id))
        return entry_refuse(a, -ERR_CONFLICT, "another restore has begun meanwhile: begin again");
    a->res->restore = in;
    return 0;
}
