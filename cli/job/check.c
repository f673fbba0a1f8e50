/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals of job run, job plan and job validate -strict before they ask the servers, which refuse
 * the same fields by the same function.
 */
#include "api/canonical.h"
#include "api/drivers.h"
#include "api/validate.h"
#include "cli/api.h"
#include "cli/job/job.h"
#include "drivers/driver.h"

/* Drivers are built in: one that is not here is on no node. */
static const char *
no_such_driver(struct cmd *c, const char *name)
{
    const char *near = driver_nearest(name);
    return mem_printf(c, "driver \"%s\" is not in this release: no node will take the job%s%s%s",
                      name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static void
check_driver(struct cmd *c, const struct task_group *g, const struct task *t,
             struct job_findings *f)
{
    const struct driver *d = driver_find(str_or(t->driver, ""));
    const char *where =
        mem_printf(c, "task group \"%s\": task \"%s\": ", str_or(g->name, ""), str_or(t->name, ""));
    struct err e = ERR_INIT;
    if (d == NULL && !str_empty(t->driver))
        list_add(c, f->drivers, mem_printf(c, "%s%s", where, no_such_driver(c, t->driver)));
    else if (d != NULL && !driver_refers(t->config) && driver_check(d, t->config, &e) < 0 &&
             !str_list_has(&f->errors, mem_printf(c, "%s%s", where, e.text))) /* servers say it */
        list_add(c, f->errors, mem_printf(c, "%s%s", where, e.text));
}

void
job_check(struct cmd *c, const struct job *job, struct job_findings *ret)
{
    struct job *j = codec_clone(c, &type_job, job);
    job_canonicalize(c, j);
    for (size_t g = 0; g < j->task_groups.n; g++)
        for (size_t t = 0; t < j->task_groups.v[g]->tasks.n; t++)
            check_driver(c, j->task_groups.v[g], j->task_groups.v[g]->tasks.v[t], ret);
    job_unsupported(c, j, &ret->later);
}

/* The findings of the servers, so that nobody has to come again for them; none where they do not
 * answer. */
static struct str_list
errors_of_servers(struct cmd *c, const struct job *job)
{
    struct job_register_request req = {.job = codec_clone(c, &type_job, job)};
    const struct change ch = {.target = api_target(c, "/v1/validate/job", NULL),
                              .body_type = &type_job_register_request,
                              .body = &req,
                              .answer = &type_job_validate_response};
    void *answer = NULL;
    struct err e = ERR_INIT;
    if (api_send(c, &ch, &answer, &e) < 0 || answer == NULL)
        return (struct str_list){0};
    return ((const struct job_validate_response *)answer)->validation_errors;
}

bool
job_refuse(struct cmd *c, const struct job *job, const struct job_findings *f)
{
    struct job_findings all = *f;
    if (job != NULL && f->errors.n + f->drivers.n + f->later.n > 0) {
        all = (struct job_findings){.errors = errors_of_servers(c, job)};
        job_check(c, job, &all);
    }
    const struct str_list *lists[] = {&all.errors, &all.drivers, &all.later};
    bool any = false;
    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        for (size_t i = 0; i < lists[k]->n; i++) {
            cmd_warn(c, "%s  * %s", any ? "" : "Job validation errors:\n", lists[k]->v[i]);
            any = true;
        }
    return any;
}
