/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: the line that a request leaves in the audit log, and the one in the agent's own log
 * for who reads its level DEBUG. Secrets are in headers, bodies and parameters, and none of these
 * comes into either.
 */
#include "agent/api/api.h"
#include "api/terms.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

static bool
record_answer(void *arg, int status, struct err *e)
{
    struct request *a = arg;
    struct audit_entry *line = a->line;

    if (a->told_path != NULL)
        log_debug("http", "request answered", "method", http_method_name(a->req->method), "path",
                  a->told_path, "status", LOG_I64(status), "took",
                  LOG_DUR(clock_mono_ns() - a->began_ns), NULL);
    if (line == NULL)
        return true;
    line->time = clock_wall_ns();
    line->status = status;
    if (str_empty(line->object))
        line->object = a->id;
    return audit_write(a->api->audit, line, e) == 0;
}

bool
record_begin(struct request *a)
{
    const char *method = http_method_name(a->req->method);
    struct err e = ERR_INIT;

    if (log_wants(LOG_DEBUG)) {
        a->told_path = mem_strdup(a, a->req->path); /* http_forget() */
        a->began_ns = clock_mono_ns();
        a->req->on_answer = record_answer;
        a->req->on_answer_arg = a;
    }
    if (a->api->audit == NULL || !audit_takes(a->api->audit, method, a->req->path))
        return true;
    if (audit_begin(a->api->audit, &e) < 0) {
        http_fail(a->req, 503, "%s", e.text);
        return false;
    }
    a->line = type_new(a, &type_audit_entry);
    a->line->type = "request";
    a->line->accessor = a->api->rights != NULL ? "" : "acls-disabled";
    a->line->method = method;
    a->line->path = mem_strdup(a, a->req->path); /* http_forget() */
    a->line->peer = mem_strdup(a, a->req->peer);
    a->line->passed_on = a->passed_on;
    a->req->on_answer = record_answer;
    a->req->on_answer_arg = a;
    return true;
}

void
record_target(struct request *a)
{
    if (a->line == NULL)
        return;
    a->line->namespace = mem_strdup(a, str_or(a->env.namespace, ""));
    if (!request_is_for_our_region(a))
        a->line->region = mem_strdup(a, str_or(a->env.region, ""));
}

void
record_accessor(struct request *a, const char *accessor)
{
    if (a->line != NULL)
        a->line->accessor = mem_strdup(a, str_or(accessor, ""));
}

void
record_object(struct request *a, const char *name, const char *ns)
{
    if (a->line == NULL)
        return;
    a->line->object = mem_strdup(a, str_or(name, ""));
    if (ns != NULL)
        a->line->namespace = mem_strdup(a, ns);
}

int
record_command(struct api *api, const struct audit_entry *line, struct err *e)
{
    struct audit_entry now = *line;

    if (api->audit == NULL)
        return 0;
    if (audit_begin(api->audit, e) < 0)
        return e->code;
    now.time = clock_wall_ns();
    now.type = "command";
    return audit_write(api->audit, &now, e);
}
