/* SPDX-License-Identifier: Apache-2.0
 *
 * YAML as consul-template's parseYAML reads it and toYAML writes it.
 */
#ifndef PADDOCK_TEMPLATE_FUNC_YAML_H
#define PADDOCK_TEMPLATE_FUNC_YAML_H

#include "template/collect.h"

/* Maps are map[interface{}]interface{}. NULL, or words. */
const char *yaml_text_read(struct run *r, struct gv s, struct gv *ret);
void yaml_text_write(struct run *r, struct text *out, struct gv v);
/* The value that a plain scalar stands for: a bool, a number, nothing, or the text. */
struct gv yaml_resolve(struct run *r, struct gv s);

#endif
