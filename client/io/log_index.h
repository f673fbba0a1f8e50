/* SPDX-License-Identifier: Apache-2.0
 *
 * The rotated log files of a task as one stream: names "<task>.<stdout|stderr>.<n>", n rising, gaps
 * where old ones were removed. Pure.
 */
#ifndef PADDOCK_CLIENT_IO_LOG_INDEX_H
#define PADDOCK_CLIENT_IO_LOG_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/limits.h"

struct log_file {
    uint64_t index;
    int64_t size;
};

struct log_set {
    struct log_file *v; /* sorted by index */
    size_t n;
};

/* The index in a file name of this task and type; false: another file. */
bool log_index_parse(const char *name, const char *task, const char *type, uint64_t *ret);
/* Keeps the set sorted; a known index gets the new size. `v` is owned by ctx. */
void log_index_add(const void *ctx, struct log_set *s, uint64_t index, int64_t size);
/* Forgets a file that was rotated away; an unknown index is no error. */
void log_index_remove(struct log_set *s, uint64_t index);
/* Finds the place to begin: `offset` bytes from the start of the oldest file, or back from the end
 * of the newest (0: all of the newest, as in Nomad); beyond either end: that end. False when the
 * set is empty. */
bool log_index_seek(const struct log_set *s, int64_t offset, bool from_end, uint64_t *ret_index,
                    int64_t *ret_pos);
/* The smallest index above `index`; false: there is none. */
bool log_index_next(const struct log_set *s, uint64_t index, uint64_t *ret);

#endif
