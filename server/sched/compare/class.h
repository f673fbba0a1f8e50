/* SPDX-License-Identifier: Apache-2.0
 *
 * Targets (${node.class}, ${attr.cpu.arch}, ${meta.rack}, literals) and the computed node class: a
 * hash over everything of a node that is not unique to it. Nodes of one class are interchangeable
 * for every constraint that names no unique key; one that does escapes the class.
 */
#ifndef PADDOCK_SERVER_SCHED_CLASS_H
#define PADDOCK_SERVER_SCHED_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"

uint64_t class_hash(const struct node *n);
#define CLASS_TEXT 24
/* "v1:<number>", what the API shows as ComputedClass. Returns `out`. */
const char *class_name(const struct node *n, char out[CLASS_TEXT]);

/* A literal is itself; a ${…} that names nothing known, or a key the node lacks, is not found. */
bool target_resolve(const struct node *n, const char *target, const char **ret);
/* Names something unique to a node. */
bool target_escapes(const char *target);

#endif
