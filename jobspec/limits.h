/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of jobspec/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_JOBSPEC_LIMITS_H
#define PADDOCK_JOBSPEC_LIMITS_H

enum {
    /* --- a file in HCL or JSON --- */
    HCL_SOURCE_MAX = 4 << 20, /* bytes of a file */
    HCL_DEPTH_MAX = 100,      /* nesting of blocks, brackets and templates */
    HCL_BLOCKS_MAX = 100000,  /* blocks after the expansion of dynamic ones */
    HCL_LABELS_MAX = 8,       /* labels of a block */
    HCL_VARIABLES_MAX = 1000, /* variables and locals of a file */
    EXPR_DEPTH_MAX = 300,     /* depth of an expression; long chains of operators count too */
    EXPR_NODES_MAX = 200000,  /* nodes of all expressions of a file */
    HCL_DIAGS_MAX = 10,       /* messages that are shown */

    /* --- its evaluation --- */
    HCL_STEPS_MAX = 2000000,     /* steps */
    HCL_BYTES_MAX = 64 << 20,    /* bytes that it may make */
    EVAL_DEPTH_MAX = 800,        /* nested expressions and values together */
    VALUE_DEPTH_MAX = 200,       /* nesting of a value */
    NUMBER_EXP2_MAX = 65536,     /* powers of two that a number may have, and its inverse */
    NUMBER_DIGITS_MAX = 10000,   /* digits that parseint() reads */
    HCL_RANGE_MAX = 1024,        /* elements that range() makes */
    HCL_REGEX_STEPS_MAX = 10000, /* steps of one match of a regular expression */
};

#endif
