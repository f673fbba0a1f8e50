/* SPDX-License-Identifier: Apache-2.0 */
#include "api/children.h"

#include <string.h>

#include "api/cron.h"
#include "api/limits.h"
#include "api/plain.h"
#include "api/terms.h"
#include "common/mem.h"

char *
children_payload_path(const void *ctx, const char *task, const char *file)
{
    const char *parts[JOB_PATH_DEPTH_MAX + 2] = {task, "local"};
    size_t n = 2;
    char *save = NULL, *rest = mem_strdup(ctx, file);

    if (strlen(file) > JOB_PATH_MAX)
        return NULL;
    for (char *p = strtok_r(rest, "/", &save); p != NULL; p = strtok_r(NULL, "/", &save)) {
        if (str_eq(p, "."))
            continue;
        if (!str_eq(p, "..")) {
            if (n == ARRAY_LEN(parts))
                return NULL;
            parts[n++] = p;
        } else if (n-- == 0) {
            return NULL;
        }
    }
    if (n < 2)
        return NULL;
    char *path = mem_strdup(ctx, parts[0]);
    for (size_t i = 1; i < n; i++)
        path = mem_printf(ctx, "%s/%s", path, parts[i]);
    return plain_path(path) ? path : NULL;
}

size_t
children_id_max(const struct job *j)
{
    enum { DIGITS = 20 }; /* of a time */
    size_t max = job_parameterized(j) ? JOB_DISPATCH_ID_MAX : JOB_ID_MAX;

    return j->periodic != NULL ? max - strlen(PERIODIC_INFIX) - DIGITS : max;
}

int
children_may_become(const struct job *old, const struct job *job, struct err *e)
{
    if (old == NULL)
        return 0;
    if (!old->stop && !str_eq(old->type, job->type))
        return err_set(e, -ERR_INVALID,
                       "cannot update job type from \"%s\" to \"%s\"; stop and purge the "
                       "job first",
                       str_or(old->type, ""), str_or(job->type, ""));
    if (old->periodic != NULL && job->periodic == NULL)
        return err_set(e, -ERR_INTERNAL, "cannot update periodic job to being non-periodic");
    if (old->periodic == NULL && job->periodic != NULL)
        return err_set(e, -ERR_INTERNAL, "cannot update non-periodic job to being periodic");
    if (job_parameterized(old) && !job_parameterized(job))
        return err_set(e, -ERR_INTERNAL,
                       "cannot update parameterized job to being non-parameterized");
    if (!job_parameterized(old) && job_parameterized(job))
        return err_set(e, -ERR_INTERNAL,
                       "cannot update non-parameterized job to being parameterized");
    return 0;
}

static bool
runs_to_an_end(const struct job *j)
{
    return str_eq(j->type, JOB_BATCH) || str_eq(j->type, JOB_SYSBATCH);
}

static void
check_parameterized(const void *ctx, const struct job *j, struct str_list *errors)
{
    const struct parameterized_job_config *p = j->parameterized_job;
    const char *both = "";

    if (!runs_to_an_end(j))
        list_add(ctx, *errors,
                 mem_strdup(ctx, "Parameterized job can only be used with \"batch\" or "
                                 "\"sysbatch\" scheduler"));
    if (!str_eq(p->payload, "optional") && !str_eq(p->payload, "required") &&
        !str_eq(p->payload, "forbidden"))
        list_add(ctx, *errors,
                 mem_printf(ctx, "Unknown payload requirement: \"%.64s\"", str_or(p->payload, "")));
    for (size_t i = 0; i < p->meta_required.n; i++)
        if (str_list_has(&p->meta_optional, p->meta_required.v[i]))
            both = mem_printf(ctx, "%s%s%s", both, *both ? " " : "", p->meta_required.v[i]);
    if (*both)
        list_add(
            ctx, *errors,
            mem_printf(ctx,
                       "Required and optional meta keys should be disjoint. Following keys exist "
                       "in both: [%s]",
                       both));
}

void
children_validate(const void *ctx, const struct job *j, struct str_list *errors,
                  struct str_list *warnings)
{
    if (j->periodic != NULL && !str_empty(j->periodic->spec))
        list_add(ctx, *warnings,
                 mem_strdup(ctx,
                            "cron is deprecated and may be removed in a future release. Use crons "
                            "instead"));
    if (j->periodic != NULL && (!j->periodic->enabled.set || j->periodic->enabled.v)) {
        if (!runs_to_an_end(j))
            list_add(
                ctx, *errors,
                mem_strdup(ctx,
                           "Periodic can only be used with \"batch\" or \"sysbatch\" scheduler"));
        cron_validate(ctx, j->periodic, errors);
    }
    if (job_parameterized(j))
        check_parameterized(ctx, j, errors);
    if (j->payload.n > 0)
        list_add(ctx, *errors,
                 mem_strdup(ctx, "job can't be submitted with a payload, only dispatched"));
    for (size_t g = 0; g < j->task_groups.n; g++) {
        const struct task_group *tg = j->task_groups.v[g];
        for (size_t i = 0; i < tg->tasks.n; i++) {
            const struct task *t = tg->tasks.v[i];
            if (errors->n < JOB_ERRORS_MAX && t->dispatch_payload != NULL &&
                !str_empty(t->dispatch_payload->file) &&
                children_payload_path(ctx, str_or(t->name, ""), t->dispatch_payload->file) == NULL)
                list_add(ctx, *errors,
                         mem_printf(ctx,
                                    "task group \"%s\": task \"%s\": Dispatch Payload validation "
                                    "failed: destination escapes allocation directory",
                                    str_or(tg->name, ""), str_or(t->name, "")));
        }
    }
}
