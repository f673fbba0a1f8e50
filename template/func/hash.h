/* SPDX-License-Identifier: Apache-2.0
 *
 * Digests and base64 as text.
 */
#ifndef PADDOCK_TEMPLATE_FUNC_HASH_H
#define PADDOCK_TEMPLATE_FUNC_HASH_H

#include "template/run.h"

struct gv hash_hex(struct run *r, enum template_digest which, struct gv s);
struct gv hash_hmac_hex(struct run *r, enum template_digest which, struct gv message,
                        struct gv key);
struct gv hash_base64(struct run *r, struct gv s, bool url);
/* SIZE_MAX: decoded; else the byte at which it is wrong, as Go counts. */
size_t hash_base64_decode(struct run *r, struct gv s, bool url, struct gv *ret);

#endif
