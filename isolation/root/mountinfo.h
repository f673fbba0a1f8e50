/* SPDX-License-Identifier: Apache-2.0
 *
 * /proc/PID/mountinfo (proc(5)): where something is mounted. Pure. Names are whatever somebody called a
 * directory, with blanks, tabs, newlines and backslashes escaped in octal.
 */
#ifndef PADDOCK_ISOLATION_ROOT_MOUNTINFO_H
#define PADDOCK_ISOLATION_ROOT_MOUNTINFO_H

#include <stddef.h>

/* The mount points in `text`, which is changed, in its order. Owned by ctx; lines that are too short are
 * left out. */
size_t mountinfo_points(const void *ctx, char *text, const char ***ret);

#endif
