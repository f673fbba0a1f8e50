/* SPDX-License-Identifier: Apache-2.0
 *
 * The window of recent entries, a ring by index, and the runs of terms: see recent.h.
 */
#include "server/raft/recent.h"

#include <string.h>

#include "common/mem.h"

struct run {
    uint64_t first; /* index */
    uint64_t term;
};

struct recent {
    struct record *v;  /* RECENT_ENTRIES, by index modulo that; data owned; NULL: none yet */
    uint64_t from, to; /* in the window: from <= index < to; equal: none */
    size_t bytes;
    struct run *runs;
    size_t n_runs;
    uint64_t first, end; /* of the log: first <= index < end; equal: none */
};

static struct record *
recent_slot(struct recent *r, uint64_t index)
{
    return &r->v[index % RECENT_ENTRIES];
}

static void
recent_forget(struct recent *r, uint64_t index)
{
    struct record *x = recent_slot(r, index);
    ASSERT(x->index == index && r->bytes >= x->n);
    r->bytes -= x->n;
    talloc_free((void *)(uintptr_t)x->data);
    *x = (struct record){0};
}

struct recent *
recent_new(const void *ctx)
{
    return mem_new(ctx, struct recent);
}

void
recent_term_add(struct recent *r, uint64_t index, uint64_t term)
{
    ASSERT(r->first == r->end || index == r->end);
    if (r->first == r->end) {
        r->first = index;
        r->n_runs = 0;
    }
    if (r->n_runs == 0 || r->runs[r->n_runs - 1].term != term) {
        mem_resize(r, r->runs, struct run, r->n_runs + 1);
        r->runs[r->n_runs++] = (struct run){index, term};
    }
    r->end = index + 1;
}

void
recent_add(struct recent *r, const struct record *rec)
{
    recent_term_add(r, rec->index, rec->term);
    if (r->v == NULL)
        r->v = mem_array(r, struct record, RECENT_ENTRIES);
    if (r->from == r->to || r->to != rec->index) { /* empty, or entries without data came between */
        while (r->from < r->to)
            recent_forget(r, r->from++);
        r->from = r->to = rec->index;
    }
    while (r->from < r->to &&
           (r->to - r->from == RECENT_ENTRIES || r->bytes + rec->n > RECENT_BYTES))
        recent_forget(r, r->from++);
    struct record *x = recent_slot(r, rec->index);
    *x = *rec;
    x->data = rec->n > 0 ? mem_dup(r, rec->data, rec->n) : NULL;
    r->bytes += rec->n;
    r->to = rec->index + 1;
    ASSERT(r->to == r->end && r->to - r->from <= RECENT_ENTRIES);
}

void
recent_cut(struct recent *r, uint64_t index)
{
    while (r->from < r->to && r->to > index)
        recent_forget(r, --r->to);
    while (r->n_runs > 0 && r->runs[r->n_runs - 1].first >= index)
        r->n_runs--;
    if (r->end > index)
        r->end = index;
    if (r->first > r->end)
        r->first = r->end;
    ASSERT(r->from == r->to || r->to <= r->end);
    ASSERT((r->n_runs == 0) == (r->first == r->end));
}

void
recent_drop(struct recent *r, uint64_t first)
{
    size_t gone = 0;
    if (first > r->end)
        first = r->end;
    if (first <= r->first)
        return;
    while (r->from < r->to && r->from < first)
        recent_forget(r, r->from++);
    r->first = first;
    while (gone + 1 < r->n_runs && r->runs[gone + 1].first <= first)
        gone++;
    r->n_runs -= gone;
    ASSERT(r->n_runs > 0 && r->runs[gone].first <= r->first);
    memmove(r->runs, r->runs + gone, r->n_runs * sizeof(*r->runs));
}

uint64_t
recent_term(const struct recent *r, uint64_t index)
{
    if (index < r->first || index >= r->end)
        return 0;
    size_t i = r->n_runs;
    while (i > 0 && r->runs[i - 1].first > index)
        i--;
    return i > 0 ? r->runs[i - 1].term : 0;
}

const struct record *
recent_get(const struct recent *r, uint64_t index)
{
    return index >= r->from && index < r->to ? &r->v[index % RECENT_ENTRIES] : NULL;
}
