/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON as Go's encoding/json reads and writes it, with its words for what is wrong.
 */
#ifndef PADDOCK_TEMPLATE_FUNC_JSON_H
#define PADDOCK_TEMPLATE_FUNC_JSON_H

#include "template/collect.h"

/* Numbers are floats, maps map[string]interface{}. NULL, or words. */
const char *json_text_read(struct run *r, struct gv s, struct gv *ret);

struct json_style {
    bool escape;        /* < > & as \u003c \u003e \u0026 */
    const char *indent; /* NULL: all in one line */
};

/* NULL, or words. */
const char *json_text_write(struct run *r, struct text *out, struct gv v,
                            const struct json_style *style);

#endif
