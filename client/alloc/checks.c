/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/checks.h"

#include <openssl/evp.h>
#include <string.h>

#include "api/service/service.h"
#include "common/buf.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"

#define CHECK_BYTES_MAX (4 << 20)
#define GRACE_NS NS_PER_S /* where the block says nothing */

/* Hashes all parts, each with its length. */
static const char *
checks_id(const void *ctx, const struct services_in *in, const struct service *s,
          const struct service_check *c)
{
    const char *const parts[] = {in->alloc->id, in->task ? "task" : "group",
                                 in->task ? in->task->name : in->group->name, s->name,
                                 s->port_label, s->address, s->address_mode, s->on_update};
    auto_buf struct buf b = BUF_INIT(CHECK_BYTES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        buf_printf(&b, "%zu:%s", strlen(str_or(parts[i], "")), str_or(parts[i], ""));
    mp_encode(&b, &type_service_check, c);
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    ASSERT(EVP_Digest(b.data, b.len, sum, &n, EVP_sha256(), NULL) == 1);
    char *text = mem_array(ctx, char, 2 * n + 1);
    for (unsigned i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", sum[i]);
    return text;
}

static void
checks_place(struct check_plan *p, const struct services_in *in, const struct service *s)
{
    const struct service_check *c = p->check;
    struct err e = ERR_INIT;
    const struct services_place place = {
        str_or(c->address_mode, str_empty(s->address) ? "host" : "auto"),
        str_or(c->port_label, s->port_label), s->address};
    const struct services_place host = {place.mode, place.label, NULL};
    bool custom = str_eq(place.mode, "auto");
    if (str_eq(c->type, "script"))
        return;
    if (services_place(p, in, custom ? &place : &host, &p->address, &p->port, &e) < 0)
        p->error = mem_strdup(p, e.text);
}

void
checks_add(const void *ctx, const struct services_in *in, const struct service_made *s,
           struct check_plans *ret)
{
    for (size_t i = 0; i < s->block->checks.n; i++) {
        struct check_plan *p = mem_new(ctx, struct check_plan);
        struct service_check *c = codec_clone(p, &type_service_check, s->block->checks.v[i]);
        p->check = c;
        p->id = checks_id(p, in, s->block, c);
        p->registration = mem_strdup(p, s->registration->id);
        p->group = mem_strdup(p, in->alloc->name);
        p->task = in->task ? mem_strdup(p, in->task->name) : NULL;
        const char *named = str_or(c->task_name, s->block->task_name);
        p->restarts = p->task ? p->task : str_empty(named) ? NULL : mem_strdup(p, named);
        if (str_eq(c->type, "script"))
            p->runs = p->restarts;
        p->service = mem_strdup(p, s->registration->service_name);
        p->name = str_empty(c->name) ? mem_printf(p, "service: \"%s\" check", p->service)
                                     : mem_strdup(p, c->name);
        p->readiness = str_eq(str_or(c->on_update, s->block->on_update), "ignore");
        if (!c->check_restart && s->block->check_restart)
            c->check_restart = codec_clone(p, &type_check_restart, s->block->check_restart);
        p->restart = c->check_restart && c->check_restart->limit > 0 ? c->check_restart : NULL;
        checks_place(p, in, s->block);
        list_add(ctx, *ret, p);
    }
}

struct check_result *
checks_waiting(const void *ctx, const struct check_plan *p, int64_t now_ns)
{
    struct check_result *r = mem_new(ctx, struct check_result);
    r->id = mem_strdup(r, p->id);
    r->mode = p->readiness ? CHECK_READINESS : CHECK_HEALTHINESS;
    r->status = CHECK_PENDING;
    r->output = CHECK_WAITS;
    r->timestamp = now_ns / NS_PER_S;
    r->group = mem_strdup(r, p->group);
    r->task = mem_strdup(r, p->task);
    r->service = mem_strdup(r, p->service);
    r->check = mem_strdup(r, p->name);
    return r;
}

const char *
checks_health(const struct check_result *const *v, size_t n)
{
    const char *worst = "";
    for (size_t i = 0; i < n; i++) {
        if (str_eq(v[i]->mode, CHECK_READINESS))
            continue;
        if (str_eq(v[i]->status, CHECK_FAILURE))
            return SERVICE_FAILING;
        if (!str_eq(v[i]->status, CHECK_SUCCESS))
            worst = SERVICE_PENDING;
        else if (!str_eq(worst, SERVICE_PENDING))
            worst = SERVICE_PASSING;
    }
    return worst;
}

/* Adds without running over. */
static int64_t
checks_later(int64_t at, int64_t by, int64_t times)
{
    int64_t span = 0, sum = 0;
    if (by <= 0 || times <= 0)
        return at;
    if (__builtin_mul_overflow(by, times, &span) || __builtin_add_overflow(at, span, &sum))
        return INT64_MAX;
    return sum;
}

bool
checks_restarts(const struct check_plan *p, int64_t bad_ns, int64_t now_ns)
{
    return p->restart && now_ns >= checks_later(bad_ns, p->check->interval, p->restart->limit - 1);
}

bool
checks_counts(const struct check_plan *p, int64_t started_ns, int64_t now_ns)
{
    int64_t grace = p->restart && p->restart->grace.set ? p->restart->grace.v : GRACE_NS;
    return started_ns > now_ns || now_ns >= checks_later(started_ns, grace, 1);
}
