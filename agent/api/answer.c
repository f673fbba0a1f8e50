/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: answers: JSON, errors, the index headers. Lists: answer_list.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
#include <string.h>

#include "agent/api/api.h"
#include "agent/limits.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

static const char json_type[] = "application/json";

void
ask_fail(struct ask *a, int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = mem_vprintf(a, fmt, ap);
    va_end(ap);
    http_fail(a->req, status, "%s", text);
}

/* The status that answers an error of an RPC method: 500 unless it is coded (paddock-nomad(7)). */
static int
status_of(const struct err *e)
{
    switch (-e->code) {
    case ERR_NOT_FOUND: return 404;
    case ERR_FORBIDDEN:
    case ERR_POLICY: return 403;
    case ERR_LIMIT: return 413;
    case ERR_BUSY: return 429;
    case ERR_UNAVAILABLE: return 503;
    case ERR_UNSUPPORTED: return 400;
    case ERR_TIMEOUT: return 504;
    case ENOSPC: return 507;
    default: return 500;
    }
}

void
ask_error(struct ask *a, const struct err *e)
{
    int status = status_of(e);

    if (e->code == -ERR_NO_LEADER || e->code == -ERR_NOT_LEADER) {
        http_fail(a->req, 500, "No cluster leader");
        return;
    }
    if (status == 429 || status == 503)
        http_header_add(a->req, "Retry-After", "1");
    http_fail(a->req, status, "%s", str_or(e->text, err_name(e->code)));
}

static unsigned
flags_of(const struct ask *a)
{
    return JSON_HIDE_SECRETS | (a->pretty ? JSON_PRETTY : 0);
}

void
ask_text(struct ask *a, struct buf *b, const char *content_type)
{
    http_reply_buf(a->req, 200, content_type, b);
}

static void
send_json(struct ask *a, struct buf *b)
{
    if (buf_error(b) != 0) {
        buf_done(b);
        ask_fail(a, 413, "the answer is larger than %d MiB: ask for pages (per_page) or less (prefix)",
                 API_ANSWER_MAX >> 20);
        return;
    }
    if (a->pretty)
        buf_putc(b, '\n');
    ask_text(a, b, json_type);
}

void
ask_json(struct ask *a, const struct type *t, const void *obj)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);
    if (obj)
        json_encode(&b, t, obj, flags_of(a));
    else
        buf_puts(&b, "null");
    send_json(a, &b);
}

void
ask_value(struct ask *a, const struct value *v)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);
    json_encode_value(&b, v, a->pretty ? JSON_PRETTY : 0);
    send_json(a, &b);
}

void
ask_index(struct ask *a, uint64_t index)
{
    char t[24];
    snprintf(t, sizeof(t), "%" PRIu64, index);
    http_header_add(a->req, "X-Nomad-Index", t);
}

void
ask_meta(struct ask *a, const struct query_meta *m)
{
    char t[24];

    ask_index(a, m ? m->index : 0);
    snprintf(t, sizeof(t), "%" PRId64, m ? m->last_contact / NS_PER_MS : 0);
    http_header_add(a->req, "X-Nomad-LastContact", t);
    http_header_add(a->req, "X-Nomad-KnownLeader", m && m->known_leader ? "true" : "false");
    if (m && !str_empty(m->next_token))
        http_header_add(a->req, "X-Nomad-NextToken", m->next_token);
}

void
ask_object(struct ask *a, const struct type *t, const void *obj, const struct query_meta *m,
           const char *missing)
{
    ask_object_more(a, t, obj, m, missing, NULL);
}

void
ask_object_more(struct ask *a, const struct type *t, const void *obj, const struct query_meta *m,
                const char *missing, const char *more)
{
    struct buf b = BUF_INIT(API_ANSWER_MAX);

    ask_meta(a, m);
    if (!obj) {
        ask_fail(a, 404, "%s", missing);
        return;
    }
    json_encode(&b, t, obj, flags_of(a));
    if (more && !buf_error(&b)) { /* before the last brace; no object of ours is empty */
        b.len--;
        if (b.data[b.len - 1] == '\n')
            b.len--;
        buf_printf(&b, a->pretty ? ",\n    %s\n}" : ",%s}", more);
    }
    send_json(a, &b);
}
