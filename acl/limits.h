/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of acl/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_ACL_LIMITS_H
#define PADDOCK_ACL_LIMITS_H

enum {
    /* --- policies --- */
    ACL_TEXT_MAX = 1 << 20, /* bytes of the text of one */
    ACL_SUM_MAX = 2 << 20,  /* bytes of the texts of all policies of a token; more: no right */
    ACL_RULES_MAX = 10000,  /* rules with a label of one; each path of variables is one */
    ACL_NAME_MAX = 128,     /* bytes of a label */
    ACL_DEPTH_MAX = 8,      /* blocks in blocks */
    ACL_LIST_MAX = 256,     /* texts of a list */
    ACL_NODES_MAX = 60000,  /* blocks, texts and lists of one */
};

#endif
