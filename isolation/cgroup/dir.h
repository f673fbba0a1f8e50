/* SPDX-License-Identifier: Apache-2.0
 *
 * Directories of cgroups and their files, whatever they are of.
 */
#ifndef PADDOCK_ISOLATION_CGROUP_DIR_H
#define PADDOCK_ISOLATION_CGROUP_DIR_H

#include <stddef.h>

#include "codec/codec.h"

/* Text of a small file, terminated; 0 or -errno. */
int cgroup_read(int dirfd, const char *name, char *buf, size_t size);
/* Names of the directories in `dirfd`, read before anything changes there; owned by ctx. */
void cgroup_dirs(const void *ctx, int dirfd, struct str_list *ret);
/* A directory below, not through links; or -errno. */
int cgroup_open_dir(int dirfd, const char *name);

#endif
