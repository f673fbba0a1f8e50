/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of template/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_TEMPLATE_LIMITS_H
#define PADDOCK_TEMPLATE_LIMITS_H

enum {
    /* --- a template --- */
    TEMPLATE_TEXT_MAX = 16 << 20,    /* bytes of a template */
    TEMPLATE_NEST_MAX = 500,         /* blocks and parentheses of a template in each other */
    TEMPLATE_NAMES_MAX = 4096,       /* templates that a template defines */
    TEMPLATE_CALLS_MAX = 4000,       /* steps of a template that wait for each other */
    TEMPLATE_DEPTH_MAX = 1000,       /* templates that call each other */
    TEMPLATE_VALUE_DEPTH_MAX = 500,  /* lists and maps in each other, in a value of a template */
    TEMPLATE_STEPS_MAX = 10 << 20,   /* steps of a template; a big function is many */
    TEMPLATE_OUTPUT_MAX = 64 << 20,  /* bytes that a template gives */
    TEMPLATE_MEMORY_MAX = 256 << 20, /* bytes of values of a template while it runs */
    TEMPLATE_WIDTH_MAX = 1000000,    /* width and precision in a format of printf */
    TEMPLATE_ASKS_MAX = 4096,        /* things that a template asks for */
    TEMPLATE_REGEX_STEPS_MAX = 1000000, /* steps of one match of a template's regular expression */
};

#endif
