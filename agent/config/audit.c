/* SPDX-License-Identifier: Apache-2.0
 *
 * The block audit: Nomad's, of which one sink is taken, that is a file or (ours) the journal.
 */
#include <stdio.h>
#include <string.h>

#include "agent/config/config_int.h"
#include "agent/limits.h"
#include "common/str.h"

enum { BYTES_MIN = 4096 };

static int
check_word(const char *key, const char *word, const char *const *known, struct err *e)
{
    char text[128] = "";

    for (size_t i = 0; known[i] != NULL; i++) {
        if (str_eq(word, known[i]))
            return 0;
        size_t n = strlen(text);
        snprintf(text + n, sizeof(text) - n, "%s\"%s\"", i > 0 ? ", " : "", known[i]);
    }
    return err_set(e, -ERR_UNSUPPORTED, "audit: %s \"%.64s\" is not supported: %s", key,
                   str_or(word, ""), text);
}

static int
check_sink(const struct agent_audit_sink *s, struct err *e)
{
    static const char *const types[] = {"file", "journal", NULL}, *const formats[] = {"json", NULL},
                      *const modes[] = {"0600", "0640", NULL},
                      *const guarantees[] = {"enforced", "best-effort", NULL};

    if (check_word("type", s->type, types, e) < 0 ||
        check_word("format", s->format, formats, e) < 0 ||
        check_word("mode", s->mode, modes, e) < 0 ||
        check_word("delivery_guarantee", s->delivery_guarantee, guarantees, e) < 0)
        return e->code;
    if (!str_empty(s->path) && (s->path[0] != '/' || str_eq(s->type, "journal")))
        return err_set(e, -ERR_INVALID, "audit: path \"%.256s\" %s", s->path,
                       s->path[0] != '/' ? "is not absolute" : "goes with no \"journal\"");
    if (s->rotate_bytes < BYTES_MIN)
        return err_set(e, -ERR_INVALID, "audit: rotate_bytes must be %d or more", BYTES_MIN);
    if (s->rotate_max_files < 1 || s->rotate_max_files > AUDIT_FILES_MAX)
        return err_set(e, -ERR_INVALID, "audit: rotate_max_files must be 1 to %d", AUDIT_FILES_MAX);
    if (s->rotate_duration < 0)
        return err_set(e, -ERR_INVALID, "audit: rotate_duration must not be negative");
    return 0;
}

static int
check_filter(const struct agent_audit_filter *f, struct err *e)
{
    static const char *const types[] = {"HTTPEvent", NULL};
    static const char *const stages[] = {"*", "OperationReceived", "OperationComplete", NULL};
    static const char *const verbs[] = {"*", "GET", "HEAD", "POST", "PUT", "DELETE", NULL};

    if (check_word("type of a filter", f->type, types, e) < 0)
        return e->code;
    for (size_t i = 0; i < f->stages.n; i++)
        if (check_word("stages", f->stages.v[i], stages, e) < 0)
            return e->code;
    for (size_t i = 0; i < f->operations.n; i++)
        if (check_word("operations", f->operations.v[i], verbs, e) < 0)
            return e->code;
    for (size_t i = 0; i < f->endpoints.n; i++)
        if (f->endpoints.v[i][0] != '/' && !str_eq(f->endpoints.v[i], "*"))
            return err_set(e, -ERR_INVALID, "audit: endpoints \"%.128s\" does not begin with /",
                           f->endpoints.v[i]);
    return 0;
}

int
config_audit_check(const struct agent_audit *a, struct err *e)
{
    if (a == NULL)
        return 0;
    if (a->sinks.n > 1)
        return err_set(e, -ERR_UNSUPPORTED, "audit: one sink is supported: leave out \"%s\"",
                       str_or(a->sinks.v[1]->name, ""));
    if (a->filters.n > AUDIT_FILTERS_MAX)
        return err_set(e, -ERR_INVALID, "audit: more than %d blocks filter", AUDIT_FILTERS_MAX);
    if (a->sinks.n > 0 && check_sink(a->sinks.v[0], e) < 0)
        return e->code;
    for (size_t i = 0; i < a->filters.n; i++)
        if (check_filter(a->filters.v[i], e) < 0)
            return e->code;
    return 0;
}
