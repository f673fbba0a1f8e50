/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/gone.h"

#include "common/mem.h"
#include "common/str.h"

static struct gone *
find(const struct gone_set *s, const char *id)
{
    struct gone *g = NULL;
    HASH_FIND_STR(s->all, id, g);
    return g;
}

void
gone_note(struct gone_set *s, const char *id, uint64_t index)
{
    struct gone *g = find(s, id);
    if (!g) {
        g = mem_new(NULL, struct gone);
        str_copy(g->id, sizeof(g->id), id);
        HASH_ADD_STR(s->all, id, g);
    }
    g->index = index;
}

bool
gone_has(const struct gone_set *s, const char *id, uint64_t index)
{
    const struct gone *g = find(s, id);
    return g && index <= g->index;
}

void
gone_forget(struct gone_set *s, struct gone *g)
{
    HASH_DEL(s->all, g);
    talloc_free(g);
}

void
gone_free(struct gone_set *s)
{
    struct gone *g, *next;
    HASH_ITER(hh, s->all, g, next)
    gone_forget(s, g);
}
