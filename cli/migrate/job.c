/* SPDX-License-Identifier: Apache-2.0
 *
 * One job: what the server would refuse, with its own words.
 */
#include "api/canonical.h"
#include "api/terms.h"
#include "api/validate.h"
#include "api/validate_blocks.h"
#include "api/validate_secret.h"
#include "api/validate_service.h"
#include "cli/migrate/migrate.h"
#include "drivers/driver.h"
#include "server/sched/compare/constraint.h"

/* The name in quotes behind `word`: of `task group "web": task "x": ...` by "group" or "task";
 * NULL. */
static const char *
job_named(struct cmd *c, const char *text, const char *word)
{
    const char *key = mem_printf(c, "%s \"", word), *p = strstr(text, key);

    if (!p)
        return NULL;
    p += strlen(key);
    return mem_strndup(c, p, strcspn(p, "\""));
}

/* The first word behind the last name: a block or an argument, perhaps. */
static const char *
last_word(struct cmd *c, const char *text)
{
    const char *p = text, *found = text;

    while ((p = strstr(p, "\": ")) != NULL)
        found = p += 3;
    size_t n = strspn(found, "abcdefghijklmnopqrstuvwxyz_");
    return n > 0 ? mem_strndup(c, found, n) : NULL;
}

static void
job_refuse_line(struct cmd *c, struct checked *k, const char *text, const char *fix)
{
    const char *where = checked_place(c, k, job_named(c, text, "group"), job_named(c, text, "task"),
                                      last_word(c, text));

    checked_add(c, k, MIGRATE_REFUSED, where, text, fix);
}

static void
check_drivers(struct cmd *c, struct checked *k, const struct task_group *tg)
{
    for (size_t i = 0; i < tg->tasks.n; i++) {
        const struct task *t = tg->tasks.v[i];
        const struct driver *d = driver_find(str_or(t->driver, ""));
        const char *where = checked_place(c, k, tg->name, t->name, "driver");
        struct err e = ERR_INIT;

        const char *near = !d && t->driver ? driver_nearest(t->driver) : NULL;
        if (near)
            checked_add(c, k, MIGRATE_REFUSED, where,
                        mem_printf(c,
                                   "group \"%s\": task \"%s\": driver \"%s\" is not in this "
                                   "release: no node takes the job",
                                   tg->name, t->name, t->driver),
                        mem_printf(c, "did you mean \"%s\"?", near));
        else if (!d && !str_empty(t->driver))
            checked_add(
                c, k, MIGRATE_REFUSED, where,
                mem_printf(
                    c,
                    "group \"%s\": task \"%s\": driver \"%s\" is not in this release: no node "
                    "takes the job",
                    tg->name, t->name, t->driver),
                "use exec or raw_exec, or wait for the release that has it");
        else if (d && driver_check(d, t->config, &e) < 0)
            checked_add(c, k, MIGRATE_REFUSED, checked_place(c, k, tg->name, t->name, "config"),
                        mem_printf(c, "group \"%s\": task \"%s\": %s", tg->name, t->name, e.text),
                        "change the config of the task");
    }
}

static void
check_constraints(struct cmd *c, struct checked *k, const char *who,
                  const struct constraint_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        struct err e = ERR_INIT;
        if (constraint_check(l->v[i], &e) < 0)
            job_refuse_line(c, k, mem_printf(c, "%sconstraint: %s", who, e.text),
                            "change it as it says");
    }
}

static void
check_group(struct cmd *c, struct checked *k, const struct task_group *tg)
{
    const char *who = mem_printf(c, "group \"%s\": ", str_or(tg->name, ""));

    check_drivers(c, k, tg);
    check_constraints(c, k, who, &tg->constraints);
    for (size_t i = 0; i < tg->tasks.n; i++)
        check_constraints(c, k,
                          mem_printf(c, "%stask \"%s\": ", who, str_or(tg->tasks.v[i]->name, "")),
                          &tg->tasks.v[i]->constraints);
}

/* `group "g": service, volume`: a finding for each, as each has a place. */
static void
refuse_later(struct cmd *c, struct checked *k, const char *line)
{
    const char *names = line;

    for (const char *p = line; (p = strstr(p, ": ")) != NULL;)
        names = p += 2;
    for (const char *p = names; *p;) {
        size_t n = strcspn(p, ",");
        job_refuse_line(c, k,
                        mem_printf(c, "%.*s%.*s: known, but without effect in this release",
                                   (int)(names - line), line, (int)n, p),
                        "remove it, or wait for the release that has it");
        p += n + strspn(p + n, ", ");
    }
}

/* Names services of providers that are not here, where they stand. */
static void
refuse_services(struct cmd *c, struct checked *k, const struct job *job)
{
    struct str_list found = {0};

    service_unsupported(c, job, &found);
    for (size_t i = 0; i < found.n; i++)
        checked_add(c, k, MIGRATE_REFUSED,
                    checked_place(c, k, job_named(c, found.v[i], "group"),
                                  job_named(c, found.v[i], "task"), "service"),
                    found.v[i], "it is found by the servers themselves then: paddock-service(1)");
}

/* Names parts of other blocks that are not here. */
static void
refuse_blocks(struct cmd *c, struct checked *k, const struct job *job)
{
    struct str_list found = {0};

    secret_unsupported(c, job, &found);
    volume_unsupported(c, job, &found);
    for (size_t i = 0; i < found.n; i++)
        job_refuse_line(c, k, found.v[i], "change it as it says");
}

void
check_job(struct cmd *c, struct checked *k, struct job *job)
{
    struct str_list errors = {0}, warnings = {0}, later = {0};
    struct err e = ERR_INIT;

    k->name = str_or(job->id, k->name);
    job_canonicalize(c, job);
    job_imply_constraints(c, job);
    codec_list_later(c, &type_job, job, &later);
    for (size_t i = 0; i < later.n; i++)
        refuse_later(c, k, later.v[i]);
    refuse_services(c, k, job);
    refuse_blocks(c, k, job);
    if (codec_check(&type_job, job, &e) < 0)
        job_refuse_line(c, k, mem_strdup(c, e.text), "change it as it says");
    job_validate(c, job, NULL, &errors, &warnings);
    for (size_t i = 0; i < errors.n; i++)
        job_refuse_line(c, k, errors.v[i], "change it as it says");
    check_constraints(c, k, "", &job->constraints);
    for (size_t i = 0; i < job->task_groups.n; i++)
        check_group(c, k, job->task_groups.v[i]);
    for (size_t i = 0; i < warnings.n; i++)
        checked_add(c, k, MIGRATE_DIFFERS,
                    checked_place(c, k, job_named(c, warnings.v[i], "group"),
                                  job_named(c, warnings.v[i], "task"), NULL),
                    warnings.v[i], "the job runs; change it as the warning says");
    check_differences(c, k, job);
}
