/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists and maps that grow in the memory of a run.
 */
#ifndef PADDOCK_TEMPLATE_COLLECT_H
#define PADDOCK_TEMPLATE_COLLECT_H

#include "template/run.h"

void gv_map_put(struct run *r, struct gv_map *m, struct gv k, struct gv v);
struct gv gv_map_new(struct run *r, const struct gv_type *t);
struct gv gv_list_new(struct run *r, const struct gv_type *t, size_t cap);
void gv_list_add(struct run *r, struct gv_list *l, struct gv v);
/* reflect.DeepEqual. */
bool gv_equal(struct run *r, struct gv a, struct gv b);
/* Copied once, without what is in it: a change of the copy is not seen by others. */
struct gv gv_list_copy(struct run *r, struct gv list);
struct gv gv_map_copy(struct run *r, struct gv map);
/* mergo.Map: what src has and dst does not, in maps of maps too; `over`: what both have is src's,
 * unless it is empty there. */
void collect_merge(struct run *r, struct gv *dst, struct gv src, bool over);

#endif
