/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/errno.h>
#include <linux/fsverity.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "isolation/confine/raw.h"
#include "isolation/root/verity.h"

#define SHARED "alloc/"
enum { DIGEST_MAX = 64, PAUSE_MS = 20 };

long
verity_measure(long fd, uint8_t ret[VERITY_DIGEST_BYTES])
{
    union {
        struct fsverity_digest head;
        uint8_t bytes[sizeof(struct fsverity_digest) + DIGEST_MAX];
    } d = {.head = {.digest_size = DIGEST_MAX}};
    long r = RAW(SYS_ioctl, fd, FS_IOC_MEASURE_VERITY, &d);
    if (r < 0)
        return r;
    if (d.head.digest_algorithm != FS_VERITY_HASH_ALG_SHA256 ||
        d.head.digest_size != VERITY_DIGEST_BYTES)
        return -EBADMSG;
    memcpy(ret, d.bytes + sizeof(d.head), VERITY_DIGEST_BYTES);
    return 0;
}

/* In the root of the task, or in the directory that its allocation shares, and on no other mount:
 * what of the host or of a volume is seen there is not ours to seal. Nothing is waited for: a FIFO
 * has no writer, a lease is not broken. */
static long
open_file(const char *path)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    size_t shared = sizeof(SHARED) - 1;
    bool is_shared = strnlen(path, shared) == shared && memcmp(path, SHARED, shared) == 0;
    long top = RAW(SYS_openat2, AT_FDCWD, is_shared ? "/" SHARED : "/", &how, sizeof(how));
    if (top < 0)
        return top;
    how.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    how.resolve |= RESOLVE_BENEATH | RESOLVE_NO_XDEV;
    long fd = RAW(SYS_openat2, top, is_shared ? path + shared : path, &how, sizeof(how));
    raw_close(top);
    return fd;
}

static long
check_kind(long fd)
{
    struct statx st;
    long r = RAW(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_NLINK, &st);
    if (r < 0)
        return r;
    if (!S_ISREG(st.stx_mode))
        return S_ISDIR(st.stx_mode) ? -EISDIR : -EINVAL;
    return st.stx_nlink == 1 ? 0 : -EMLINK; /* another name of it may be the host's */
}

/* Two tasks of an allocation may want the same file: one of them is told EBUSY, and EEXIST a moment
 * before the kernel can measure. */
static long
verity_seal_enable(long fd, uint8_t ret[VERITY_DIGEST_BYTES], const char **what)
{
    const struct fsverity_enable_arg a = {.version = 1,
                                          .hash_algorithm = FS_VERITY_HASH_ALG_SHA256,
                                          .block_size = VERITY_BLOCK_BYTES};
    long r = -EBUSY;
    for (int i = 0; i < WARDEN_SEAL_MS / PAUSE_MS; i++) {
        struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000}; /* the kernel changes it */
        *what = VERITY_SEAL;
        r = RAW(SYS_ioctl, fd, FS_IOC_ENABLE_VERITY, &a);
        if (r == 0 || r == -EEXIST) {
            *what = VERITY_MEASURE;
            r = verity_measure(fd, ret);
        }
        if (r != -EBUSY && r != -ENODATA)
            return r;
        (void)RAW(SYS_ppoll, NULL, 0, &pause, NULL, 0);
    }
    return r;
}

long
verity_seal(const char *path, uint8_t ret[VERITY_DIGEST_BYTES], const char **what)
{
    *what = VERITY_OPEN;
    long fd = open_file(path);
    if (fd < 0)
        return fd;
    *what = VERITY_KIND;
    long r = check_kind(fd);
    if (r == 0) {
        *what = VERITY_MEASURE;
        r = verity_measure(fd, ret);
    }
    if (r == -ENODATA)
        r = verity_seal_enable(fd, ret, what);
    if (r == 0)
        return fd;
    raw_close(fd);
    return r;
}
