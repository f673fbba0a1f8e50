/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of template/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_TEMPLATE_LIMITS_H
#define PADDOCK_TEMPLATE_LIMITS_H

enum {
    /* --- a template --- */
    TEMPLATE_DEPTH_MAX = 32, /* nesting of a template */
    TEMPLATE_ARGS_MAX = 16,  /* arguments of a function in it */
    TEMPLATE_VARS_MAX = 64,  /* variables of it that hold at once */
};

#endif
