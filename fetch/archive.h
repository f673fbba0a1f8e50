/* SPDX-License-Identifier: Apache-2.0
 *
 * Archives of strangers. Entries are made below a directory by descriptors: no name with "..", no
 * device, no link that leads out; files and bytes are counted while they come.
 */
#ifndef PADDOCK_FETCH_ARCHIVE_H
#define PADDOCK_FETCH_ARCHIVE_H

#include <stdint.h>

#include "common/err.h"

struct archive_limits {
    int64_t files; /* entries */
    int64_t bytes; /* of all of them */
};

/* Unpacks `fd`, an archive of the kind `suffix` (artifact_suffix()), into the empty directory
 * `dir`; a single compressed file becomes `name` there. */
int archive_unpack(int fd, const char *suffix, int dir, const char *name,
                   const struct archive_limits *l, struct err *e);

#endif
