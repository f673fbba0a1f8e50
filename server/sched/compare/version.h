/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions and version constraints, in the two dialects of the constraint operators:
 *
 *   version  lenient: "v1", "1.2", "1.3.0-beta1+ent", any number of segments; constraint list of
 *            = != < <= > >= ~>, comma is "and". A pre-release matches only a constraint that names
 *            a pre-release of the same numbers; metadata is ignored.
 *   semver   a pre-release behind "-" only; = != < <= > >=; precedence of SemVer 2.0, section 11.
 */
#ifndef PADDOCK_SERVER_SCHED_COMPARE_VERSION_H
#define PADDOCK_SERVER_SCHED_COMPARE_VERSION_H

#include <stdbool.h>

/* False when either side does not parse. */
bool version_matches(const char *version, const char *constraints);
bool semver_matches(const char *version, const char *constraints);
/* Whether a constraint list parses. */
bool version_constraint_valid(const char *constraints);
bool semver_constraint_valid(const char *constraints);

#endif
