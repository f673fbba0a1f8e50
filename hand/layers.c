/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the pull of an image is, from what the engine tells of each of its layers. Pure.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"

struct layer {
    char id[32];
    int64_t current, total; /* bytes */
    bool pulling, done;
};

struct layers {
    struct layer v[HAND_PULL_LAYERS_MAX];
    size_t n;
};

struct layers *
layers_new(const void *ctx)
{
    return mem_new(ctx, struct layers);
}

static struct layer *
layer_of(struct layers *p, const char *id)
{
    for (size_t i = 0; i < p->n; i++)
        if (str_eq(p->v[i].id, id))
            return &p->v[i];
    if (!*id || strlen(id) >= sizeof(p->v->id) || p->n == HAND_PULL_LAYERS_MAX)
        return NULL;
    struct layer *l = &p->v[p->n++];
    (void)str_copy(l->id, sizeof(l->id), id);
    return l;
}

/* Returns 0 for a member that is no number of bytes. */
static int64_t
bytes_of(const struct value *detail, const char *name)
{
    const struct value *v = value_get(detail, name);
    return v && v->kind == VALUE_INT && v->i > 0 ? v->i : 0;
}

void
layers_take(struct layers *p, const struct value *doc)
{
    const char *status = document_text(doc, "status");
    const struct value *detail = value_get(doc, "progressDetail");
    bool known = str_eq(status, "Pulling fs layer") || str_eq(status, "Waiting");
    bool done = str_eq(status, "Pull complete") || str_eq(status, "Already exists");
    bool pulling = str_eq(status, "Downloading") || str_eq(status, "Extracting") ||
                   str_eq(status, "Verifying Checksum") || str_eq(status, "Download complete");
    struct layer *l = known || done || pulling ? layer_of(p, document_text(doc, "id")) : NULL;
    if (!l)
        return;
    l->done = done;
    l->pulling = pulling;
    if (str_eq(status, "Downloading")) {
        l->current = bytes_of(detail, "current");
        l->total = bytes_of(detail, "total");
    } else if (done || pulling) {
        l->current = l->total;
    }
}

const char *
layers_text(const void *ctx, const struct layers *p)
{
    size_t done = 0, pulling = 0;
    double current = 0, total = 0;
    for (size_t i = 0; i < p->n; i++) {
        done += p->v[i].done;
        pulling += p->v[i].pulling;
        current += (double)p->v[i].current;
        total += (double)p->v[i].total;
    }
    return mem_printf(
        ctx,
        "image pull progress: Pulled %zu/%zu (%.1f MB/%.1f MB) layers: %zu waiting/%zu "
        "pulling",
        done, p->n, current / 1e6, total / 1e6, p->n - done - pulling, pulling);
}
