/* SPDX-License-Identifier: Apache-2.0
 *
 * Operating system, kernel, host name.
 */
#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "fingerprint/fingerprint.h"

bool
fingerprint_parse_os_release(const char *text, const char *key, char *ret, size_t size)
{
    size_t klen = strlen(key);
    for (const char *line = text; *line;) {
        const char *end = strchrnul(line, '\n');
        if (strncmp(line, key, klen) == 0 && line[klen] == '=') {
            const char *v = line + klen + 1;
            const char *vend = end;
            if (vend - v >= 2 && (*v == '"' || *v == '\'') && vend[-1] == *v) {
                v++;
                vend--;
            }
            size_t n = 0;
            for (; v < vend && n + 1 < size; v++)
                ret[n++] = isprint((unsigned char)*v) ? *v : '?';
            ret[n] = 0;
            return n > 0;
        }
        line = *end ? end + 1 : end;
    }
    return false;
}

/* Debian's point release is in no field of os-release. */
static bool
debian_version(const void *tmp, char *ret, size_t size)
{
    char *text = NULL;
    if (file_read(tmp, AT_FDCWD, "/etc/debian_version", 256, &text, NULL) < 0)
        return false;
    text[strcspn(text, "\n")] = 0;
    return isdigit((unsigned char)text[0]) && str_copy(ret, size, text);
}

static void
host_landlock(struct node *node)
{
#ifdef SYS_landlock_create_ruleset
    long abi =
        syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
    if (abi > 0) {
        auto_mem void *tmp = mem_ctx("landlock");
        fingerprint_set(node, "kernel.landlock", mem_printf(tmp, "v%ld", abi));
    }
#else
    (void)node;
#endif
}

void
fingerprint_host(struct node *node, const struct fingerprint_config *cfg)
{
    (void)cfg;
    auto_mem void *tmp = mem_ctx("host");
    char *text = NULL;
    char value[128];
    if (file_read(tmp, AT_FDCWD, "/etc/os-release", 64 << 10, &text, NULL) == 0) {
        bool debian = false;
        if (fingerprint_parse_os_release(text, "ID", value, sizeof(value))) {
            fingerprint_set(node, "os.name", value);
            debian = str_eq(value, "debian");
        }
        if ((debian && debian_version(tmp, value, sizeof(value))) ||
            fingerprint_parse_os_release(text, "VERSION_ID", value, sizeof(value)))
            fingerprint_set(node, "os.version", value);
    }
    struct utsname u;
    if (uname(&u) < 0)
        return;
    fingerprint_set(node, "kernel.name", "linux");
    fingerprint_set(node, "kernel.version", u.release);
    fingerprint_set(node, "kernel.arch", u.machine);
    fingerprint_set(node, "unique.hostname", u.nodename);
    host_landlock(node);
}
