/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths that an operator names, without the links in them.
 */
#ifndef PADDOCK_COMMON_HOST_PATH_H
#define PADDOCK_COMMON_HOST_PATH_H

#include <limits.h>

/* Resolves as realpath(3), but follows no link that others could have put there: its directory must
 * be root's or the caller's and written by nobody else, or have the sticky bit, and the link the
 * same owner. 0 or -errno, -ELOOP for such a link. Whoever opens `ret` follows none at all. */
int path_real(const char *path, char ret[PATH_MAX]);

#endif
