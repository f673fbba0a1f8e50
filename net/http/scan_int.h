/* SPDX-License-Identifier: Apache-2.0
 *
 * The strict check of HTTP header bytes that comes before llhttp, which takes some malformed lines
 * (a lone CR, folded lines, blanks before the colon). Pure. Private to net/.
 */
#ifndef PADDOCK_NET_HTTP_SCAN_INT_H
#define PADDOCK_NET_HTTP_SCAN_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http/http.h"

/* Why a message is refused: the status that answers it and a static text. */
struct http_bad {
    int status;
    const char *why;
    char text[80]; /* where `why` is made */
};

int http_bad_set(struct http_bad *bad, int status, const char *why); /* returns -1 */

/* Looks for the empty line that ends the head, from *pos on (the part scanned before). 1: found,
 * *pos is just behind it; 0: more bytes are needed; -1: bad. `n` may go over HTTP_HEADER_BYTES_MAX.
 */
int http_head_find(const uint8_t *p, size_t n, size_t *pos, struct http_bad *bad);

/* Cuts a complete head (NUL-terminated, `n` bytes) in place: first line, then pairs with lower-case
 * names and trimmed values. At most HTTP_HEADERS_MAX. */
int http_head_split(char *p, size_t n, const char **line, struct http_pair *pairs, size_t *n_pairs,
                    struct http_bad *bad);

bool http_token(const char *s, size_t n); /* RFC 9110, 5.6.2: a method, the name of a header */
/* Why a request line that ends in neither "HTTP/1.0" nor "HTTP/1.1" is refused. Returns -1. */
int http_line_refuse(const char *line, struct http_bad *bad);

/* Framing and routing rules over a cut request head: one Host (1.1), at most one Content-Length,
 * never with Transfer-Encoding, which may only be "chunked" and not in 1.0, a known Expect. */
struct http_framing {
    bool chunked, expect_continue;
    bool has_length;
    uint64_t length;
};
int http_head_check(const struct http_pair *pairs, size_t n, bool http10, struct http_framing *ret,
                    struct http_bad *bad);

/* Parameters that a query of these bytes has at most. */
size_t http_query_max(const char *p, size_t n);
/* Splits and decodes the request target into path and query. `text` has room for two bytes more
 * than the target, r->query for min(http_query_max() of it, HTTP_QUERY_PARAMS_MAX) pairs. */
int http_target_parse(struct http_req *r, char *text, struct http_bad *bad);
/* True when `list` (a header like Accept-Encoding) holds `token` with a weight over 0. */
bool http_list_has(const char *list, const char *token);

#endif
