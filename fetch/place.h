/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of plain components ("a/b/c", no "." or "..") below a directory, walked without following a
 * link; and what was made in one tree, brought into another.
 */
#ifndef PADDOCK_FETCH_PLACE_H
#define PADDOCK_FETCH_PLACE_H

#include <stdbool.h>

#include "common/err.h"

/* Writes a stranger's name of a file as such a path, owned by ctx: without empty components and "."
 * and the first "/"; one with ".." is refused. "": nothing is left of it. */
int place_name(const void *ctx, const char *name, const char **ret, struct err *e);
/* Opens the directory `path`, "" for `dir` itself; made where it is not there. The fd, or < 0. */
int place_directory(int dir, const char *path, struct err *e);
/* Opens the directory that holds `path`, whose last component is *name; with `make` as above. */
int place_parents(int dir, const char *path, bool make, const char **name, struct err *e);
/* Moves the file `name` of `from` to `path` below `to`, in place of a file that is there. */
int place_file(int from, const char *name, int to, const char *path, struct err *e);
/* Finds the only thing in `dir`, which must be a file. *name is owned by ctx. */
int place_only(const void *ctx, int dir, const char **name, struct err *e);
/* Removes `name` of the directory `path`, if both are there. */
int place_remove(int dir, const char *path, const char *name, struct err *e);
/* Moves all that is below the directory `from` below `to`: directories are merged, files
 * replaced. */
int place_tree(int from, int to, struct err *e);

#endif
