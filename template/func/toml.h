/* SPDX-License-Identifier: Apache-2.0
 *
 * TOML as consul-template's toTOML writes it.
 */
#ifndef PADDOCK_TEMPLATE_FUNC_TOML_H
#define PADDOCK_TEMPLATE_FUNC_TOML_H

#include "template/collect.h"

/* NULL, or words. */
const char *toml_text_write(struct run *r, struct text *out, struct gv v);

#endif
