/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults under all file I/O, in test builds only: faults.c overrides the calls of libc by which
 * anything here, LMDB and libuv included, reaches files and sockets, and passes them on unless a rule
 * says otherwise. Linked into a unit test (FAULT_LIBS), or as tests/lib/faults.so in LD_PRELOAD of a
 * whole program; there the environment variable PADDOCK_FAULTS names a file of rules, which is read
 * again whenever it was replaced (rename), so that a test can switch faults on and off.
 *
 * Rules are lines of words:
 *
 *   CLASSES PATTERN K ACTION
 *       CLASSES  comma-separated: write sync rename trunc open unlink mkdir accept socket, or all
 *                (of files: the first seven). `open` is an open that may make a file.
 *                write: write pwrite writev pwritev; trunc: ftruncate and fallocate
 *       PATTERN  fnmatch(3) of the path, `*` crosses slashes; `-` for things without one; of the
 *                sync of a directory: DIR/.
 *       K        the K-th call that matches, from 1; `K+`: that one and all after; `0`: counts only
 *       ACTION   fail ERRNO        nothing happens and errno is set (EIO, ENOSPC, EMFILE, ...)
 *                short ERRNO       half of a write happens and is answered so; the next one fails
 *                tear ERRNO        half of a write happens, but it is answered by ERRNO
 *                exit              nothing happens, and the process is gone
 *                wait              nothing happens until the rules are replaced
 *                cut SEED          the machine loses power, now; see `disk`
 *   disk DIR
 *       What happens below DIR is remembered until a sync makes it durable, or other rules are about
 *       another DIR. At a power cut each write since the last fsync of its file may be lost, whole or
 *       in sectors of 512 bytes; a name that was made, renamed or removed since the last fsync of its
 *       directory may be as before, in the order in which that was done: what the file systems we
 *       know promise, and no more. With SEED 0 all of that is lost. Then the process exits with
 *       FAULTS_EXIT; with PADDOCK_FAULTS it is killed, and finds another boot id when it begins again.
 *
 * The first rule that matches decides. Threads are fine; do not fork while others do I/O.
 */
#ifndef PADDOCK_TESTS_FAULTS_H
#define PADDOCK_TESTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAULTS_EXIT = 99 };

/* Replaces all rules and forgets all counts; NULL: none. Aborts on a rule that it does not
 * understand. */
void faults_set(const char *rules);
/* Calls that matched rule `i` (from 0) and faults made by any rule, since faults_set(). */
uint64_t faults_calls(size_t i);
uint64_t faults_made(void);
/* The machine loses power, now, in the middle of whatever other threads do. Returns, with false, only
 * when the rules have no `disk`. */
bool faults_cut(uint64_t seed);

#endif
