/* SPDX-License-Identifier: Apache-2.0
 *
 * What faults.c (rules, overridden calls) and faults_disk.c (what a power cut leaves) share. All with
 * the lock of faults.c held, and by raw calls only.
 */
#ifndef PADDOCK_TESTS_FAULTS_INT_H
#define PADDOCK_TESTS_FAULTS_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Starts to remember below `dir`, or goes on with it; NULL: forgets all. */
void disk_model(const char *dir);
bool disk_covers(const char *path);
bool disk_is_modelled(void);
/* Before `n` bytes at `at` are written, or the size becomes `at` (n == 0). */
void disk_before_write(int fd, size_t n, off_t at);
/* After a sync of a file or a directory. */
void disk_synced(int fd);
/* After a name was made; before one is renamed or removed. */
void disk_made(const char *path, bool dir);
void disk_before_rename(const char *from, const char *to);
void disk_before_unlink(const char *path);
/* Stops all other threads for good, and loses what the seed says (0: all). */
void disk_cut(uint64_t seed);

/* The calls themselves. */
ssize_t real_pread(int fd, void *p, size_t n, off_t at);
ssize_t real_pwrite(int fd, const void *p, size_t n, off_t at);

#endif
