/* SPDX-License-Identifier: Apache-2.0 */
#include "common/host/mounts.h"

#include <string.h>

/* Undoes the octal escapes in place. */
static char *
mounts_unescape(char *s)
{
    char *out = s;
    for (char *p = s; *p; p++) {
        if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' &&
            p[3] >= '0' && p[3] <= '7') {
            *out++ = (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
            p += 3;
        } else {
            *out++ = *p;
        }
    }
    *out = 0;
    return s;
}

bool
mounts_next(char **text, struct mount_line *ret)
{
    for (char *line; (line = strsep(text, "\n")) != NULL;) {
        char *device = strsep(&line, " ");
        char *point = strsep(&line, " ");
        char *type = strsep(&line, " ");
        if (line == NULL || *point == 0)
            continue;
        *ret = (struct mount_line){mounts_unescape(device), mounts_unescape(point), type};
        return true;
    }
    return false;
}
