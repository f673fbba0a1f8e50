/* SPDX-License-Identifier: Apache-2.0
 *
 * The page at /ui/, which the agent serves itself: the files of agent/web/page, embedded by
 * build-aux/gen-web. They are everybody's, as they hold no data: that comes from /v1/, by the token
 * of the reader.
 */
#ifndef PADDOCK_AGENT_WEB_WEB_H
#define PADDOCK_AGENT_WEB_WEB_H

#include <stddef.h>

struct web_file {
    const char *name; /* below /ui/; NULL ends the table */
    const char *type;
    const char *etag;
    const unsigned char *plain;
    size_t plain_len;
    const unsigned char *packed; /* by gzip */
    size_t packed_len;
};

extern const struct web_file web_files[];

#endif
