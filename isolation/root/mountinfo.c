/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/root/mountinfo.h"

#include <string.h>

#include "common/mem.h"

/* Undoes the octal escapes in place. */
static void
unescape(char *s)
{
    char *out = s;
    for (; *s; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
            s[3] >= '0' && s[3] <= '7') {
            *out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
            s += 3;
        } else {
            *out++ = *s;
        }
    }
    *out = 0;
}

size_t
mountinfo_points(const void *ctx, char *text, const char ***ret)
{
    const char **points = NULL;
    size_t n = 0, cap = 0;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *p = line;
        for (int field = 0; field < 4 && p; field++) {
            p = strchr(p, ' ');
            p = p ? p + 1 : NULL;
        }
        if (p == NULL)
            continue;
        p[strcspn(p, " ")] = 0;
        unescape(p);
        if (n == cap) {
            cap = cap ? cap * 2 : 64;
            mem_resize(ctx, points, const char *, cap);
        }
        points[n++] = p;
    }
    *ret = points;
    return n;
}
