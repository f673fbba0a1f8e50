/* SPDX-License-Identifier: Apache-2.0
 *
 * All objects of a bucket of s3 or gcs whose names begin alike, as files of a tree.
 */
#ifndef PADDOCK_FETCH_STORE_H
#define PADDOCK_FETCH_STORE_H

#include "fetch/http.h"

struct store_wish {
    const struct http_wish *http; /* `url` NULL; bytes_max is of all together */
    const char *list;             /* URL of the bucket, with "/" at the end */
    const char *prefix;           /* "" or with "/" at the end */
    int64_t files_max;
    int scratch; /* directory where lists are put on the way */
};

/* Into the directory `tree`. *ret_files may be 0. */
int store_get(const struct store_wish *w, int tree, int64_t *ret_files, int64_t *ret_bytes,
              bool *final, struct err *e);

#endif
