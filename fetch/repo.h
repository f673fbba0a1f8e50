/* SPDX-License-Identifier: Apache-2.0
 *
 * A repository of git or hg, checked out by the host's programs. They go out through a relay
 * (relay.h), read no configuration of the host or of its users, run no hook, and ask nobody for a
 * password. Over ssh the server's key must be in /etc/ssh/ssh_known_hosts.
 */
#ifndef PADDOCK_FETCH_REPO_H
#define PADDOCK_FETCH_REPO_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "api/artifact/artifact.h"
#include "common/err.h"

struct repo_wish {
    enum artifact_kind kind; /* ARTIFACT_GIT or ARTIFACT_HG */
    const char *url;
    const char *ref; /* "": the default branch */
    int64_t depth;   /* 0: all */
    const char *sshkey;
    bool insecure;
    const struct artifact_policy *policy; /* NULL: none */
    int64_t bytes_max;                    /* of what comes */
    int64_t idle_ms;
    int64_t total_ms; /* for all of it */
};

/* Makes "tree" of the directory `dir`. *final: no use in trying again. */
int repo_clone(const struct repo_wish *w, int dir, int64_t *ret_bytes, bool *final, struct err *e);

#endif
