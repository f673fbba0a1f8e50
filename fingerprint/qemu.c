/* SPDX-License-Identifier: Apache-2.0
 *
 * The QEMU of this host. The agent starts no programs: the version is the text that `--version`
 * would print, found in the program's file.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "fingerprint/fingerprint.h"

#define SAYS "QEMU emulator version "
enum {
    CHUNK = 256 << 10,
    FILE_MAX_BYTES = 64 << 20,
    VERSION_MAX = 32,
    EMULATORS_MAX = 64,
};

/* The digits and dots behind `SAYS`; false: it is not in these bytes. */
static bool
find_version(const char *bytes, size_t n, char ret[VERSION_MAX])
{
    const char *at = memmem(bytes, n, SAYS, strlen(SAYS));
    if (!at)
        return false;
    at += strlen(SAYS);
    size_t k = 0;
    for (; k + 1 < VERSION_MAX && at < bytes + n && *at && strchr("0123456789.", *at); at++)
        ret[k++] = *at;
    ret[k] = 0;
    return k > 0 && (at < bytes + n || n < CHUNK); /* cut off: the next bytes have it whole */
}

static bool
read_version(const char *program, char ret[VERSION_MAX])
{
    auto_mem void *tmp = mem_ctx("qemu");
    auto_fd int fd = open(program, O_RDONLY | O_CLOEXEC);
    enum { OVERLAP = sizeof(SAYS) + VERSION_MAX };
    char *chunk = mem_array(tmp, char, CHUNK);
    ssize_t n;
    for (off_t at = 0; fd >= 0 && at < FILE_MAX_BYTES; at += CHUNK - OVERLAP) {
        n = pread(fd, chunk, CHUNK, at);
        if (n <= 0)
            return false;
        if (find_version(chunk, (size_t)n, ret))
            return true;
    }
    return false;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* `program` is what all emulators begin with: "/usr/bin/qemu-system-". */
bool
fingerprint_qemu(const void *ctx, const char *program, struct str_map *ret)
{
    auto_mem void *tmp = mem_ctx("qemu");
    const char *names[EMULATORS_MAX], *base = strrchr(program, '/') + 1;
    size_t n = 0;
    const char *dir = mem_strndup(tmp, program, (size_t)(base - program));
    DIR *d = opendir(dir);
    struct dirent *de;
    while (d && n < EMULATORS_MAX && (de = readdir(d)) != NULL)
        if (strncmp(de->d_name, base, strlen(base)) == 0 && de->d_name[strlen(base)] &&
            faccessat(dirfd(d), de->d_name, X_OK, AT_EACCESS) == 0)
            names[n++] = mem_strdup(tmp, de->d_name + strlen(base));
    if (d)
        (void)closedir(d);
    if (n == 0)
        return false;
    qsort(names, n, sizeof(*names), by_name);
    const char *all = names[0];
    char version[VERSION_MAX] = "";
    for (size_t i = 1; i < n; i++)
        all = mem_printf(tmp, "%s,%s", all, names[i]);
    for (size_t i = 0; i < n && !*version;
         i++) /* one of them may be a script that starts another */
        (void)read_version(mem_printf(tmp, "%s%s", program, names[i]), version);
    str_map_set(ctx, ret, "driver.qemu.emulators", all);
    if (*version)
        str_map_set(ctx, ret, "driver.qemu.version", version);
    return true;
}
