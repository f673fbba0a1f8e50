/* SPDX-License-Identifier: Apache-2.0
 *
 * Landlock by version, where the kernel's headers may be older than the kernel. Free-standing.
 */
#ifndef PADDOCK_ISOLATION_CONFINE_LANDLOCK_H
#define PADDOCK_ISOLATION_CONFINE_LANDLOCK_H

#include <linux/landlock.h>
#include <stdint.h>

/* struct landlock_ruleset_attr up to version 6; older kernels know only the first members. */
struct landlock_rules {
    uint64_t fs;
    uint64_t net;
    uint64_t scoped;
};

enum {
    LANDLOCK_ABI_REFER = 2, /* without it no file could be moved to another directory */
    LANDLOCK_ABI_TRUNCATE = 3,
    LANDLOCK_ABI_NET = 4,
    LANDLOCK_ABI_IOCTL = 5,
    LANDLOCK_ABI_SCOPE = 6,
    LANDLOCK_FS_UP_TO_REFER = (1 << 14) - 1,
    LANDLOCK_FS_TRUNCATE = 1 << 14,
    LANDLOCK_FS_IOCTL = 1 << 15,
    LANDLOCK_NET_BIND = 1, /* TCP */
    LANDLOCK_NET_CONNECT = 2,
    LANDLOCK_NET_PORT = 2, /* kind of a rule */
    LANDLOCK_SCOPE_SIGNALS = 1 << 1,
    LANDLOCK_SCOPES = 3, /* abstract sockets and signals: only to whom has the same rules */
};

/* Returns the rights over files that Landlock of version `abi` can restrict. */
static inline uint64_t
landlock_fs(uint32_t abi)
{
    uint64_t fs = LANDLOCK_FS_UP_TO_REFER;
    fs |= abi >= LANDLOCK_ABI_TRUNCATE ? LANDLOCK_FS_TRUNCATE : 0;
    fs |= abi >= LANDLOCK_ABI_IOCTL ? LANDLOCK_FS_IOCTL : 0;
    return fs;
}

static inline uint64_t
landlock_size(uint32_t abi)
{
    return abi >= LANDLOCK_ABI_SCOPE ? sizeof(struct landlock_rules)
           : abi >= LANDLOCK_ABI_NET ? 2 * sizeof(uint64_t)
                                     : sizeof(uint64_t);
}

#endif
