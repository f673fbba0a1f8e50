/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables and services, as consul-template gives them to a template: with fields and methods.
 */
#ifndef PADDOCK_TEMPLATE_FUNC_NOMAD_H
#define PADDOCK_TEMPLATE_FUNC_NOMAD_H

#include "codec/value.h"
#include "template/collect.h"

extern const struct gv_type nomad_items, nomad_metas, nomad_services, nomad_snippets;

/* From the answers of the API; NULL: nil. */
struct gv nomad_make_items(struct run *r, const struct value *variable);
struct gv nomad_make_metas(struct run *r, const struct value *list);
/* Those with the tag, if it is not "". */
struct gv nomad_make_services(struct run *r, const struct value *list, const char *tag);
/* Leaves the `count` instances that the key takes: the same for the same key, as long as they are
 * there. */
void nomad_choose(struct run *r, struct gv services, int64_t count, const char *key);
struct gv nomad_make_snippets(struct run *r, const struct value *list);
/* The name, tags and port of a service; an empty list and 0 of another thing. */
struct gv nomad_tags(struct gv service);
struct gv nomad_port(struct gv service);

#endif
