/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: a backup of the servers' state. Saving has a server make one, and reads it piece by
 * piece. Restoring sends pieces, then their end; a backup that is larger than a body may be comes
 * in several requests, which name the restore.
 */
#include "agent/api/api.h"
#include "agent/limits.h"
#include "api/limits.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "common/uuid.h"

/* --- saving --- */

struct save {
    struct parts parts; /* first: its memory is this */
    struct snapshot_read_request req;
};

static struct save *
save_of(struct request *a)
{
    return (struct save *)(void *)a->parts;
}

static void
save_piece(struct request *a, const void *resp)
{
    const struct snapshot_read_response *r = resp;
    struct save *x = save_of(a);

    if (r->data.n == 0) {
        parts_end(a);
        return;
    }
    buf_put(&x->parts.held, r->data.v, r->data.n);
    x->req.offset += r->data.n;
    parts_more(a);
}

static void
save_ask(struct request *a)
{
    call_server(a, RPC_OPERATOR_SNAPSHOT_READ, &save_of(a)->req, save_piece);
}

static void
save_made(struct request *a, const void *resp)
{
    const struct snapshot_save_response *r = resp;
    struct save *x = mem_new(a, struct save);

    *x = (struct save){.parts = {.meta = *r->meta, .ask = save_ask},
                       .req = {.snapshot = r->snapshot}};
    http_header_add(a->req, "Digest", mem_printf(a, "sha-256=%s", r->digest));
    a->stream_type = "application/octet-stream";
    parts_begin(a, &x->parts);
}

static void
snapshot_save(struct request *a)
{
    static const struct empty none;

    a->env.min_index = 0;
    a->env.wait = API_RESTORE_MS * NS_PER_MS; /* a large state takes its time */
    call_server(a, RPC_OPERATOR_SNAPSHOT_SAVE, &none, save_made);
}

/* --- restoring --- */

struct restore {
    struct snapshot_restore_request req;
    struct restore_piece piece;
    struct intent_restore_end end;
    size_t at;      /* of the body */
    uint64_t begin; /* of the body, in the backup */
    bool more;      /* another request has what follows */
};

static void restore_next(struct request *a);

static void
restore_done(struct request *a, const void *resp)
{
    const struct write_response *r = resp;

    reply_index(a, r->index);
    http_reply(a->req, 200, NULL, "", 0);
}

static void
piece_sent(struct request *a, const void *resp)
{
    (void)resp;
    restore_next(a);
}

static void
restore_next(struct request *a)
{
    struct restore *x = a->user;
    size_t left = a->req->body_len - x->at;

    x->req = (struct snapshot_restore_request){0};
    if (left > 0) {
        x->piece.offset = x->begin + x->at;
        x->piece.data.v = (uint8_t *)(uintptr_t)a->req->body + x->at;
        x->piece.data.n = left < RESTORE_PIECE ? left : RESTORE_PIECE;
        x->at += x->piece.data.n;
        x->req.piece = &x->piece;
        call_server(a, RPC_OPERATOR_SNAPSHOT_RESTORE, &x->req,
                    x->at == a->req->body_len && x->more ? restore_done : piece_sent);
        return;
    }
    x->end.size = x->begin + a->req->body_len;
    x->req.end = &x->end;
    a->env.wait = API_RESTORE_MS * NS_PER_MS;
    call_server(a, RPC_OPERATOR_SNAPSHOT_RESTORE, &x->req, restore_done);
}

static void
snapshot_restore(struct request *a)
{
    char text[UUID_TEXT];
    struct restore *x = mem_new(a, struct restore);
    const char *id = http_query(a->req, "restore");
    int64_t begin = 0;

    if (!param_int(a, "offset", &begin) || !param_bool(a, "more", &x->more) ||
        !param_bool(a, "force", &x->end.force))
        return;
    bool whole = a->req->body_len % RESTORE_PIECE == 0;
    if (begin < 0 || begin % RESTORE_PIECE != 0 || (x->more && !whole) ||
        ((x->more || begin > 0) && !uuid_valid(id)) || a->req->body_len == 0) {
        reply_fail(a, 400,
                   "a part of a backup has the query restore=<UUID>&offset=<bytes>, and but for "
                   "the last one &more=true and a body of a multiple of %d bytes",
                   RESTORE_PIECE);
        return;
    }
    x->begin = (uint64_t)begin;
    x->piece.id = x->end.id = mem_strdup(x, id != NULL ? id : uuid_make(text));
    a->user = x;
    a->env.min_index = 0;
    restore_next(a);
}

const struct route routes_backup[] = {
    {VERB_GET, "/v1/operator/snapshot", NULL, snapshot_save, RPC_OPERATOR_SNAPSHOT_SAVE, BY_SERVER},
    {VERB_WRITE, "/v1/operator/snapshot", NULL, snapshot_restore, RPC_OPERATOR_SNAPSHOT_RESTORE,
     BY_SERVER},
    ROUTES_END,
};
