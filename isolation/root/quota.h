/* SPDX-License-Identifier: Apache-2.0
 *
 * A limit on what an allocation has on disk: its directory is a project of the file system
 * (project quotas of ext4 and XFS; ioctl_fsgetxattr(2), quotactl(2)), and all that is made below it
 * belongs to the same. The file system keeps which project a directory is of, and what a project
 * may have and has; so nothing is written down here, and a warden that starts anew, or a second
 * warden on the same file system, sees which projects are taken: a project without an inode is
 * nobody's, whatever limit it may have been left with.
 *
 * Who owns a file may move it to another project, but for processes in a user namespace of their
 * own, which the kernel refuses, and for those whose filter does (seccomp_profile.c).
 */
#ifndef PADDOCK_ISOLATION_ROOT_QUOTA_H
#define PADDOCK_ISOLATION_ROOT_QUOTA_H

#include <stdint.h>

#include "common/err.h"
#include "isolation/limits.h"

/* The projects that are ours: 1879048192 and above, where no file like /etc/projid goes. */
#define QUOTA_BASE 0x70000000u

struct quota_size {
    uint64_t bytes;  /* a multiple of 1024 */
    uint64_t inodes; /* 0: no limit, since the file system has none either */
};

/* Returns the quota for `mb` MiB (0 to QUOTA_MB_MAX) of a file system: as large a part of its
 * inodes as of its bytes, QUOTA_INODES_MIN at least. Pure. */
struct quota_size quota_size(int64_t mb, uint64_t fs_bytes, uint64_t fs_inodes);

/* Does the file system of the directory `dir` take such limits? Tried with a directory of our own,
 * which is gone afterwards. -ERR_UNSUPPORTED, and why not. */
int quota_probe(int dir, struct err *e);
/* The limit of the directory `fd` and of all that will be made in it. The directory becomes a
 * project unless it is one of ours already, and must be empty then: -ERR_CONFLICT, since what is
 * there would not count. `next` is where the search for a free project begins and where the next
 * one shall. */
int quota_set(int fd, int64_t mb, uint32_t *next, struct err *e);
/* Lifts the limit of the directory's project, when it is one of ours: before the directory is
 * removed. */
int quota_lift(int fd);
/* Gives the tree `name` of the directory `dir` to the project of `to`, a directory: it counts there
 * and may be renamed into it. Nobody may change the tree meanwhile. Symbolic links and the like,
 * which no call reaches, keep their inode in the old project. -ENAMETOOLONG: it is deeper than
 * QUOTA_DEPTH_MAX. */
int quota_give(int dir, const char *name, int to);
/* The same of a file. */
int quota_give_file(int fd, int to);
/* 0: none of ours. */
uint32_t quota_project(int fd);

#endif
