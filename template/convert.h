/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of JSON as values of Go.
 */
#ifndef PADDOCK_TEMPLATE_CONVERT_H
#define PADDOCK_TEMPLATE_CONVERT_H

#include "codec/value.h"
#include "template/collect.h"

enum convert {
    CONVERT_API, /* whole numbers stay whole */
    CONVERT_CLI  /* likewise; null is an empty list or map, of which nobody knows the type */
};

/* NULL is no value. */
struct gv convert_value(struct run *r, const struct value *v, enum convert how);

#endif
