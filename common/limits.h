/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of the common room, named. Documented in paddock-agent(8).
 */
#ifndef PADDOCK_COMMON_LIMITS_H
#define PADDOCK_COMMON_LIMITS_H

enum {
    ERR_TEXT_MAX = 1024,        /* bytes of an error's text; what is longer is cut */
    REMOVE_LEVELS = 64,         /* directories open at once while a tree is removed */
    REMOVE_PASSES_MAX = 1 << 16 /* times a directory is read again while it is removed */
};

#endif
