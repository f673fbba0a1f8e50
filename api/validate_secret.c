/* SPDX-License-Identifier: Apache-2.0
 *
 * Secret blocks (see validate_secret.h).
 */
#include "api/validate_secret.h"

#include <string.h>

#include "api/limits.h"
#include "api/terms.h"
#include "api/var_path.h"
#include "common/mem.h"
#include "common/str.h"

#define PROVIDER "nomad"

static bool
secret_name_is_good(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= JOB_IDENTITY_NAME_MAX &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

/* The namespace alone, or nothing. */
static bool
secret_config_is_good(const struct value *v)
{
    if (v == NULL || v->kind == VALUE_NULL || (v->kind == VALUE_MAP && v->map.n == 0))
        return true;
    const struct value *ns = v->kind == VALUE_MAP ? value_get(v, "namespace") : NULL;
    return ns != NULL && v->map.n == 1 && ns->kind == VALUE_STRING && ns->str.n > 0 &&
           !str_eq(ns->str.s, NS_ALL);
}

/* Returns the first thing that is wrong with it; NULL: nothing. */
static const char *
secret_mistake(const void *ctx, const struct secret *s)
{
    const char *path = str_or(s->path, "");
    struct err e = ERR_INIT;
    if (!secret_name_is_good(str_or(s->name, "")))
        return mem_printf(ctx, "a name is 1 to %d letters, digits and \"_\"",
                          JOB_IDENTITY_NAME_MAX);
    if (str_empty(s->provider) || str_empty(path))
        return "provider and path are needed";
    if (!str_eq(s->provider, PROVIDER)) /* secret_unsupported() */
        return NULL;
    if (vars_check_path(path + strspn(path, "/"), &e) < 0)
        return mem_strdup(ctx, e.text);
    if (s->env.n > 0)
        return "env is for plugins: remove it";
    return secret_config_is_good(s->config)
               ? NULL
               : "config has the namespace of the variable, and nothing else";
}

static void
secret_add(const void *ctx, const struct secret *s, const char *text, struct str_list *errors)
{
    if (errors->n < JOB_ERRORS_MAX)
        list_add(ctx, *errors, mem_printf(ctx, "secret \"%.140s\": %s", str_or(s->name, ""), text));
}

void
secret_validate(const void *ctx, const struct task *t, struct str_list *errors)
{
    const struct secret_list *all = &t->secrets;
    if (all->n > JOB_SECRETS_MAX) {
        list_add(ctx, *errors, mem_printf(ctx, "a task has at most %d secrets", JOB_SECRETS_MAX));
        return;
    }
    for (size_t i = 0; i < all->n; i++) {
        const char *text = secret_mistake(ctx, all->v[i]);
        for (size_t k = 0; k < i && text == NULL; k++)
            if (str_eq(all->v[k]->name, all->v[i]->name))
                text = "another one is called so too";
        if (text != NULL)
            secret_add(ctx, all->v[i], text, errors);
    }
}

void
secret_unsupported(const void *ctx, const struct job *job, struct str_list *errors)
{
    for (size_t g = 0; g < job->task_groups.n; g++)
        for (size_t i = 0; i < job->task_groups.v[g]->tasks.n; i++) {
            const struct secret_list *all = &job->task_groups.v[g]->tasks.v[i]->secrets;
            for (size_t k = 0; k < all->n; k++)
                if (!str_empty(all->v[k]->provider) && !str_eq(all->v[k]->provider, PROVIDER))
                    secret_add(ctx, all->v[k],
                               mem_printf(ctx,
                                          "provider \"%.64s\" is not in this release: put the "
                                          "values into a variable (var put), and write provider = "
                                          "\"" PROVIDER "\"",
                                          all->v[k]->provider),
                               errors);
        }
}
