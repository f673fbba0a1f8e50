/* SPDX-License-Identifier: Apache-2.0
 *
 * fs-verity (Documentation/filesystems/fsverity.rst): a file that is sealed keeps its contents for
 * good, root's writes included, since each page is checked against a tree of hashes when it is
 * read. It may be renamed and removed. Its digest is that of the root of the tree, with its size;
 * SHA-256 over blocks of 4096 bytes, without salt, is what fsverity(1) computes by default.
 *
 * The shim seals, in the task's root and before anything of the task runs (verity_seal.c, which is
 * free-standing): to hash a file may take long, and a name there means what the task will see. What
 * is executed stays open, and is executed by this descriptor: whoever may write its directory can
 * give the name to another file meanwhile.
 */
#ifndef PADDOCK_ISOLATION_ROOT_VERITY_H
#define PADDOCK_ISOLATION_ROOT_VERITY_H

#include <stdint.h>

#include "isolation/limits.h"

enum { VERITY_BLOCK_BYTES = 4096, VERITY_DIGEST_BYTES = 32 };

/* Steps, of struct shim_status.what. */
#define VERITY_OPEN "open"
#define VERITY_KIND "kind"
#define VERITY_SEAL "seal"
#define VERITY_MEASURE "measure"
#define VERITY_DIGEST "digest"

/* Reads the digest of a sealed file; -ENODATA: it is none. -EBADMSG: it was sealed with another
 * hash. */
long verity_measure(long fd, uint8_t ret[VERITY_DIGEST_BYTES]);
/* Opens the regular file `path` of the task's root (no "..", no leading slash), which must be the
 * process's, seals it unless sealed, and measures it. The open file, or -errno with *what. No
 * symbolic link is followed, and only what is in the directory of the task or its allocation is
 * taken: -EXDEV. */
long verity_seal(const char *path, uint8_t ret[VERITY_DIGEST_BYTES], const char **what);

#ifndef PADDOCK_FREESTANDING
#include "common/err.h"

/* Can files below the directory `dir` be sealed? -ERR_UNSUPPORTED, and why not. */
int verity_probe(int dir, struct err *e);
/* A failure at `step` with the positive errno `error`, in words that name the file and the fix.
 * `digest`: what was measured, for VERITY_DIGEST. */
void verity_explain(const char *path, const char *step, int error,
                    const uint8_t digest[VERITY_DIGEST_BYTES], struct err *e);
#endif

#endif
