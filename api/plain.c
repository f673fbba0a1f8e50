/* SPDX-License-Identifier: Apache-2.0 */
#include "api/plain.h"

#include <arpa/inet.h>
#include <string.h>

#include "api/limits.h"
#include "common/str.h"

enum { COMPONENT_MAX = 255 }; /* NAME_MAX of every file system */

static bool
component_ok(const char *s, size_t n)
{
    if (n == 0 || n > COMPONENT_MAX || (n == 1 && s[0] == '.') ||
        (n == 2 && s[0] == '.' && s[1] == '.'))
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return false;
    return true;
}

bool
plain_task_name(const char *s)
{
    size_t n = s != NULL ? strlen(s) : 0;
    return n <= JOB_TASK_NAME_MAX && component_ok(s, n) && strchr(s, '/') == NULL && s[0] != '.' &&
           !str_eq(s, "alloc") && !str_prefix(s, "cgroup.");
}

bool
plain_path(const char *s)
{
    if (s == NULL || s[0] == '\0')
        return true;
    if (strlen(s) > JOB_PATH_MAX)
        return false;
    unsigned depth = 0;
    for (const char *p = s; *p != '\0';) {
        size_t n = strcspn(p, "/");
        if (!component_ok(p, n) || ++depth > JOB_PATH_DEPTH_MAX)
            return false;
        p += n;
        if (*p == '/' && *++p == '\0')
            return false; /* a trailing slash */
    }
    return true;
}

bool
plain_env_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] <= 0x20 || s[i] == 0x7f || s[i] == '=')
            return false;
    return n > 0;
}

bool
plain_hostname(const char *s)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = strlen(s);
    return n > 0 && n <= JOB_HOSTNAME_MAX && strspn(s, allowed) == n && *s != '.' && *s != '-' &&
           strstr(s, "..") == NULL;
}

bool
plain_word(const char *s)
{
    for (const char *p = s; *p != '\0'; p++)
        if ((unsigned char)*p <= 0x20 || *p == 0x7f)
            return false;
    return *s != '\0';
}

bool
plain_text(const char *s, size_t max)
{
    size_t n = s != NULL ? strlen(s) : 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return false;
    return n > 0 && n <= max;
}

bool
plain_job_id(const char *s)
{
    return plain_text(s, JOB_ID_MAX) && strchr(s, ' ') == NULL;
}

bool
plain_address(const char *s)
{
    unsigned char address[16];
    return inet_pton(AF_INET, s, address) == 1 || inet_pton(AF_INET6, s, address) == 1;
}
