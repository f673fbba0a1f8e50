/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists and facts of files below an allocation's directory. The warden opens and reads; this checks
 * the path first, so that a bad one gets a clear error.
 */
#ifndef PADDOCK_CLIENT_IO_FS_H
#define PADDOCK_CLIENT_IO_FS_H

#include "api/api.h"
#include "common/err.h"

struct allocs;

typedef void client_files_done(void *arg, const struct err *e, const struct alloc_files *files);
/* A directory's entries, or (`stat`) one element. */
void fs_list(struct allocs *allocs, const char *alloc_id, const char *path, bool stat,
             client_files_done *done, void *arg);
/* 0, or an error with a message, for a path of the file API. *ret is the cleaned path. */
int fs_check_path(const void *ctx, const char *path, const char **ret, struct err *e);

#endif
