/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of events: lines of what the simulator decided, by the seed. Their digest does not
 * depend on their order, in which servers have a say; the file has them sorted.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fleet/fleet.h"
#include "common/hash.h"
#include "common/mem.h"
#include "common/str.h"

struct events {
    bool kept;
    const char **v;
    size_t n;
    uint64_t digest;
};

void
events_add(struct fleet *f, const char *fmt, ...)
{
    char line[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (f->events == NULL) {
        f->events = mem_new(NULL, struct events);
        f->events->kept = f->opt.events != NULL;
    }
    struct events *e = f->events;
    e->digest += mix(hash_text(HASH_START, line), 1);
    if (e->kept) {
        if ((e->n & (e->n - 1)) == 0)
            mem_resize(e, e->v, const char *, e->n ? e->n * 2 : 1);
        e->v[e->n] = mem_strdup(e, line);
    }
    e->n++;
}

void
events_digest(const struct fleet *f, uint64_t *ret_n, uint64_t *ret_digest)
{
    *ret_n = f->events != NULL ? f->events->n : 0;
    *ret_digest = f->events != NULL ? f->events->digest : 0;
}

int
events_write(struct fleet *f, const char *path)
{
    struct events *e = TAKE(f->events);
    FILE *out = path != NULL ? fopen(path, "we") : NULL;
    int r = path != NULL && out == NULL ? -errno : 0;

    if (out != NULL && e != NULL) {
        qsort(e->v, e->n, sizeof(e->v[0]), str_cmp_qsort);
        for (size_t i = 0; i < e->n; i++)
            fprintf(out, "%s\n", e->v[i]);
    }
    if (out != NULL && (ferror(out) | fclose(out)) != 0)
        r = -EIO;
    mem_free(e);
    return r;
}
