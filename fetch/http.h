/* SPDX-License-Identifier: Apache-2.0
 *
 * A download over HTTP or HTTPS. Redirects are followed within these two, at most ten; headers go
 * to the host of the first URL alone. No URL and no address is asked that reach.h refuses. A cut
 * connection is made again for the rest, if an ETag or a date names the file, and each brings some.
 */
#ifndef PADDOCK_FETCH_HTTP_H
#define PADDOCK_FETCH_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/codec.h"
#include "common/err.h"

struct http_wish {
    const char *url;
    const struct str_map *headers; /* NULL: none */
    bool insecure;                 /* any certificate will do */
    int64_t bytes_max;
    int64_t idle_ms;                      /* without a byte: given up */
    int64_t total_ms;                     /* of the whole; 0: any time */
    const struct artifact_policy *policy; /* NULL: none */
    /* Signs it for s3; NULL or "": does not. Then nothing is followed: it would go unsigned. */
    const char *key_id, *key_secret, *key_token, *region;
};

/* Into `fd`, from its offset on. *final (may be NULL): no use in trying again. -ERR_NOT_FOUND: the
 * server says so. */
int http_get(const struct http_wish *w, int fd, int64_t *ret_bytes, bool *final, struct err *e);

#endif
