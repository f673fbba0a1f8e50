/* SPDX-License-Identifier: Apache-2.0
 *
 * The user of a task: from a name or a uid in plain decimal, looked up in the account files (no NSS
 * modules in a root process), refused when the policy denies it, however it is spelled.
 */
#ifndef PADDOCK_ISOLATION_CONFINE_USERS_H
#define PADDOCK_ISOLATION_CONFINE_USERS_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "isolation/limits.h"

struct user {
    uint32_t uid;
    uint32_t gid;
    uint32_t n_groups;
    uint32_t groups[USERS_GROUPS_MAX]; /* supplementary, with the primary one */
    char name[USERS_NAME_MAX + 1];
    char home[256];
};

/* The paths of the account files: for tests; NULL means /etc. */
struct users_files {
    const char *passwd;
    const char *group;
};

/* `denied`: names or uids. A user is denied if its uid is that of a denied entry; where uid 0 is
 * denied (by "root" or "0"), so are gid 0 and groups that are as good as root (disk, docker, kmem,
 * shadow, lxd, libvirt). -ERR_NOT_FOUND, -ERR_INVALID (spelling), -ERR_POLICY. */
/* Needs no privilege; without `denied` the account alone is looked up. */
int users_resolve(const char *spec, const char *const *denied, size_t n_denied,
                  const struct users_files *files, struct user *ret, struct err *e);

#endif
