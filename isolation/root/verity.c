/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/root/verity.h"

#include <errno.h>
#include <string.h>

#include "common/digest.h"
#include "common/str.h"

_Static_assert((int)VERITY_DIGEST_BYTES == DIGEST_BYTES, "SHA-256");

/* A directory is no sealed file; a file system that knows of none says so first. */
int
verity_probe(int dir, struct err *e)
{
    uint8_t digest[VERITY_DIGEST_BYTES];
    long r = verity_measure(dir, digest);
    if (r == -ENODATA)
        return 0;
    if (r == -EOPNOTSUPP || r == -ENOTTY)
        return err_set(e, -ERR_UNSUPPORTED,
                       "the file system of alloc_dir, or the kernel, has no fs-verity (ext4: "
                       "tune2fs -O verity)");
    return err_set(e, -ERR_UNSUPPORTED, "FS_IOC_MEASURE_VERITY: %s",
                   r == 0 ? "measures a directory" : strerror((int)-r));
}

static const char *
verity_why(const char *step, int error)
{
    if (str_eq(step, VERITY_KIND))
        return error == EISDIR   ? "is a directory: name each file in it"
               : error == EMLINK ? "has another name (a hard link): copy it"
                                 : "is not a regular file";
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return "does not exist: it must be there before the task starts";
    case ELOOP:
        return "goes through a symbolic link: name the file itself";
    case EXDEV:
        return "is not in the directory of the task or its allocation: nothing of the host, of a "
               "volume or of /secrets can be sealed";
    case ETXTBSY:
        return "is open for writing: whoever writes it must have closed it before the task starts";
    case EBADMSG:
        return "was sealed with another hash than SHA-256: put a new file in its place";
    case ENOSPC:
    case EDQUOT:
        return "cannot be sealed: there is no room for its hashes, a 127th part of its size";
    case EOPNOTSUPP:
    case ENOTTY:
        return "is on a file system without fs-verity";
    default:
        return NULL;
    }
}

/* The restart policy may try again what may have passed by then. */
static int
verity_code(int error)
{
    return error == ETXTBSY                     ? -ETXTBSY
           : error == ENOSPC || error == EDQUOT ? -ENOSPC
                                                : -ERR_POLICY;
}

void
verity_explain(const char *path, const char *step, int error,
               const uint8_t digest[VERITY_DIGEST_BYTES], struct err *e)
{
    char text[DIGEST_TEXT];
    const char *words = verity_why(step, error);
    if (str_eq(step, VERITY_DIGEST))
        err_set(e, -ERR_POLICY,
                "verity: \"%s\" is not the file that the job names by its digest: it has %s", path,
                digest_format(digest, text));
    else if (words != NULL)
        err_set(e, verity_code(error), "verity: \"%s\" %s", path, words);
    else
        err_errno(e, error, "verity: %s \"%s\"", step, path);
}
