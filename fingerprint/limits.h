/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of fingerprint/, named. `make check-docs` holds paddock-limits(7) against this file:
 * the comment of each is its text there.
 */
#ifndef PADDOCK_FINGERPRINT_LIMITS_H
#define PADDOCK_FINGERPRINT_LIMITS_H

enum {
    /* --- fingerprint --- */
    CPUINFO_MAX = 4 << 20, /* bytes of /proc/cpuinfo */
    CPUS_MAX = 65536,      /* processors */
    FINGERPRINT_LINKS_MAX = 65536, /* links, addresses and neighbours of the machine, each */
};

#endif
