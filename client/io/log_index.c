/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotated log files; see log_index.h. Pure.
 */
#include "client/io/log_index.h"

#include <ctype.h>
#include <string.h>

#include "common/mem.h"
#include "common/num.h"

bool
log_index_parse(const char *name, const char *task, const char *type, uint64_t *ret)
{
    size_t nt = strlen(task), ny = strlen(type);
    if (strncmp(name, task, nt) != 0 || name[nt] != '.' || strncmp(name + nt + 1, type, ny) != 0 ||
        name[nt + 1 + ny] != '.')
        return false;
    const char *digits = name + nt + 1 + ny + 1;
    return isdigit((unsigned char)*digits) && num_parse_u64(digits, ret) == 0;
}

void
log_index_add(const void *ctx, struct log_set *s, uint64_t index, int64_t size)
{
    size_t at = s->n;
    while (at > 0 && s->v[at - 1].index >= index)
        at--;
    if (at < s->n && s->v[at].index == index) {
        s->v[at].size = size;
        return;
    }
    if (s->n >= LOG_INDEX_FILES_MAX)
        return;
    mem_resize(ctx, s->v, struct log_file, s->n + 1);
    memmove(&s->v[at + 1], &s->v[at], (s->n - at) * sizeof(*s->v));
    s->v[at] = (struct log_file){index, size};
    s->n++;
}

void
log_index_remove(struct log_set *s, uint64_t index)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].index == index) {
            s->n--;
            memmove(&s->v[i], &s->v[i + 1], (s->n - i) * sizeof(*s->v));
            return;
        }
}

bool
log_index_seek(const struct log_set *s, int64_t offset, bool from_end, uint64_t *ret_index,
               int64_t *ret_pos)
{
    if (s->n == 0)
        return false;
    if (offset < 0)
        offset = 0;
    int64_t asked = offset;
    size_t i = from_end ? s->n - 1 : 0;
    while (from_end && offset > s->v[i].size && i > 0)
        offset -= s->v[i--].size;
    while (!from_end && offset > s->v[i].size && i + 1 < s->n)
        offset -= s->v[i++].size;
    if (offset > s->v[i].size)
        offset = s->v[i].size;
    *ret_index = s->v[i].index;
    *ret_pos = from_end && asked > 0 ? s->v[i].size - offset : offset;
    return true;
}

bool
log_index_next(const struct log_set *s, uint64_t index, uint64_t *ret)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].index > index) {
            *ret = s->v[i].index;
            return true;
        }
    return false;
}
