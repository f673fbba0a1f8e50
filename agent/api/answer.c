/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: answers: JSON, errors, the index headers. Lists: answer_list.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/api/api.h"
#include "agent/limits.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"

static const char json_type[] = "application/json";

static void
fail_with(struct request *a, int status, const char *text)
{
    if (a->fail)
        a->fail(a, status, text);
    else
        http_fail(a->req, status, "%s", text);
}

void
reply_fail(struct request *a, int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = mem_vprintf(a, fmt, ap);
    va_end(ap);
    fail_with(a, status, text);
}

void
reply_refuse(struct request *a, int status, const struct err *e)
{
    if (status == 429 || status == 503)
        http_header_add(a->req, "Retry-After", "1");
    fail_with(a, status, str_or(e->text, err_name(e->code)));
}

/* Answers an error of an RPC method. The cases are those which Nomad answers in another way than
 * common/err.h (paddock-nomad(7)). */
void
reply_error(struct request *a, const struct err *e)
{
    switch (-e->code) {
    case ERR_NO_LEADER:
    case ERR_NOT_LEADER:
        reply_fail(a, 500, "No cluster leader");
        return;
    case ERR_INVALID:
    case ERR_CONFLICT:
    case ERR_METHOD:
    case ERR_CANCELED:
    case ERR_CLOSED:
        reply_refuse(a, 500, e);
        return;
    case ERR_UNSUPPORTED:
        reply_refuse(a, 400, e);
        return;
    default:
        reply_refuse(a, err_http_status(e->code), e);
    }
}

static unsigned
flags_of(const struct request *a)
{
    return (a->secrets ? 0 : JSON_HIDE_SECRETS) | (a->pretty ? JSON_PRETTY : 0) |
           (a->unsaid ? JSON_UNSAID : 0);
}

void
reply_text(struct request *a, struct buf *b, const char *content_type)
{
    http_reply_buf(a->req, 200, content_type, b);
}

static void
send_json(struct request *a, struct buf *b)
{
    if (buf_error(b) != 0) {
        buf_done(b);
        reply_fail(a, 413,
                   "the answer is larger than %d MiB: ask for pages (per_page) or less (prefix)",
                   API_ANSWER_MAX >> 20);
        return;
    }
    if (a->pretty)
        buf_putc(b, '\n');
    reply_text(a, b, json_type);
}

void
reply_json(struct request *a, const struct type *t, const void *obj)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);
    if (obj)
        json_encode(&b, t, obj, flags_of(a));
    else
        buf_puts(&b, "null");
    send_json(a, &b);
}

void
reply_rows(struct request *a, const struct type *t, const void *list)
{
    const struct object_list *l = list;
    struct buf b = BUF_INIT(API_ANSWER_MAX);

    buf_putc(&b, '[');
    for (size_t i = 0; i < l->n; i++) {
        if (i > 0)
            buf_putc(&b, ',');
        json_encode(&b, t, l->v[i], flags_of(a));
    }
    buf_putc(&b, ']');
    send_json(a, &b);
}

void
reply_value(struct request *a, const struct value *v)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);
    json_encode_value(&b, v, a->pretty ? JSON_PRETTY : 0);
    send_json(a, &b);
}

void
reply_index(struct request *a, uint64_t index)
{
    char t[24];
    /* the first entry writes no table: 1 is what nobody has written yet, which servers wait by;
     * Nomad tells it of access control, and of nothing else */
    bool told = index > 1 || str_prefix(a->req->path, "/v1/acl/");
    snprintf(t, sizeof(t), "%" PRIu64, told ? index : 0);
    http_header_add(a->req, "X-Nomad-Index", t);
}

void
reply_meta(struct request *a, const struct query_meta *m)
{
    char t[24];

    reply_index(a, m ? m->index : 0);
    snprintf(t, sizeof(t), "%" PRId64, m ? m->last_contact / NS_PER_MS : 0);
    http_header_add(a->req, "X-Nomad-LastContact", t);
    http_header_add(a->req, "X-Nomad-KnownLeader", m && m->known_leader ? "true" : "false");
    if (m && !str_empty(m->next_token))
        http_header_add(a->req, "X-Nomad-NextToken", m->next_token);
}

void
reply_object(struct request *a, const struct type *t, const void *obj, const struct query_meta *m,
             const char *missing)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);

    reply_meta(a, m);
    if (m && m->rows.n > 0) {
        buf_put(&b, m->rows.v, m->rows.n);
    } else if (obj) { /* as JSON it is too large for a frame */
        json_encode(&b, t, obj, flags_of(a));
    } else {
        reply_fail(a, 404, "%s", missing);
        return;
    }
    send_json(a, &b);
}
