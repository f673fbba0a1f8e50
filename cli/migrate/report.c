/* SPDX-License-Identifier: Apache-2.0
 *
 * What is found of a job or a file.
 */
#include <string.h>

#include "cli/migrate/migrate.h"

struct checked *
checked_new(struct cmd *c, struct checked_list *l, const char *kind, const char *where)
{
    struct checked *k = mem_new(c, struct checked);

    k->kind = kind;
    k->name = k->where = where;
    list_add(c, *l, k);
    return k;
}

void
checked_add(struct cmd *c, struct checked *k, enum verdict verdict, const char *where,
            const char *text, const char *fix)
{
    list_add(c, *k, ((struct finding){verdict, where ? where : k->where, text, fix}));
    k->verdict = verdict > k->verdict ? verdict : k->verdict;
}

const char *
checked_line(const char *from, const char *to, const char *word, const char *name)
{
    size_t n = strlen(word), m = name ? strlen(name) : 0;

    for (const char *s = from; s && s < to;
         s = memchr(s, '\n', (size_t)(to - s)), s = s ? s + 1 : NULL) {
        const char *p = s + strspn(s, " \t");
        if (p + n >= to || strncmp(p, word, n) != 0 || !strchr(" \t\"{=", p[n]))
            continue;
        if (!name)
            return p;
        p += n + strspn(p + n, " \t\"");
        if (strncmp(p, name, m) == 0 && strchr("\" \t{", p[m]))
            return p;
    }
    return NULL;
}

const char *
checked_place(struct cmd *c, const struct checked *k, const char *group, const char *task,
              const char *word)
{
    if (!k->src)
        return k->where;
    const char *at = k->src, *end = at + strlen(at), *found = checked_line(at, end, "job", NULL);
    const struct {
        const char *word, *name;
    } steps[] = {{"group", group}, {"task", task}};

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        const char *p = steps[i].name ? checked_line(at, end, steps[i].word, steps[i].name) : NULL;
        if (!p)
            continue;
        found = at = p;
        const char *next = strchr(p, '\n');
        next = next ? checked_line(next, end, steps[i].word, NULL) : NULL;
        end = next ? next : end;
    }
    const char *p = word ? checked_line(at, end, word, NULL) : NULL;
    found = p ? p : found;
    unsigned line = 1;
    for (const char *s = k->src; found && s < found; s++)
        line += *s == '\n';
    return found ? mem_printf(c, "%s:%u", k->where, line) : k->where;
}
