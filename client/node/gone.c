/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/gone.h"

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"

static struct gone *
gone_find(const struct gone_set *s, const char *id)
{
    struct gone *g = NULL;
    HASH_FIND_STR(s->all, id, g);
    return g;
}

static struct gone *
gone_note_one(struct gone_set *s, const char *id, uint64_t index)
{
    struct gone *g = gone_find(s, id);
    if (!g) {
        g = mem_new(NULL, struct gone);
        str_copy(g->id, sizeof(g->id), id);
        HASH_ADD_STR(s->all, id, g);
    }
    g->index = index;
    return g;
}

void
gone_note(struct gone_set *s, const char *id, uint64_t index)
{
    (void)gone_note_one(s, id, index);
}

void
gone_collected(struct gone_set *s, const char *id, uint64_t index, const char *why)
{
    struct gone *g = gone_note_one(s, id, index);
    g->collected_ns = clock_civil_ns();
    mem_free(g->why);
    g->why = mem_strdup(g, why);
}

char *
gone_words(const struct gone_set *s, const void *ctx, const char *id, const char *node)
{
    const struct gone *g = gone_find(s, id);
    char at[TIME_TEXT];
    if (!g || g->collected_ns == 0)
        return mem_printf(ctx,
                          "node \"%s\" has no files of it: they were collected before its agent "
                          "started, or it never ran there",
                          node);
    return mem_printf(ctx, "its files were collected on node \"%s\" at %s (%s)", node,
                      time_format(g->collected_ns / NS_PER_S * NS_PER_S, at), g->why);
}

bool
gone_has(const struct gone_set *s, const char *id, uint64_t index)
{
    const struct gone *g = gone_find(s, id);
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
