/* SPDX-License-Identifier: Apache-2.0
 *
 * The mount table, /proc/PID/mounts (proc(5)). Pure. Names are whatever somebody called a
 * directory, with blanks, tabs, newlines and backslashes escaped in octal. Ours and not
 * getmntent_r(3), which cuts lines that are longer than its buffer: root takes mounts apart by what
 * is read here.
 */
#ifndef PADDOCK_COMMON_HOST_MOUNTS_H
#define PADDOCK_COMMON_HOST_MOUNTS_H

#include <stdbool.h>

#define MOUNTS_FILE "/proc/self/mounts" /* in the order in which they were mounted */

struct mount_line {
    const char *device, *point, *type; /* within the text, escapes undone */
};

/* The next line at *text, which is changed and moved on; lines that are too short are passed over.
 */
bool mounts_next(char **text, struct mount_line *ret);

#endif
