/* SPDX-License-Identifier: Apache-2.0
 *
 * The rights to what this agent answers itself: its own words, files, logs, commands in tasks.
 * Servers decide on what they answer. The rights of a token are asked of a server, and kept until a
 * server says that something of access control has changed; while none can be asked, for
 * acl.token_ttl. Loop thread.
 */
#ifndef PADDOCK_AGENT_RIGHTS_H
#define PADDOCK_AGENT_RIGHTS_H

#include "acl/acl.h"
#include "net/loop.h"
#include "net/rpc.h"

struct rights;

struct rights_config {
    struct loop *loop;
    struct rpc_client *servers;
    int64_t ttl_ms; /* acl.token_ttl */
    /* Some rights may have ended: what is open is to be asked for again. */
    void (*changed)(void *arg);
    void *arg;
};

struct rights *rights_new(const void *ctx, const struct rights_config *cfg);
void rights_free(struct rights *x); /* NULL is fine; who waits is told -ERR_UNAVAILABLE */

/* Asks for the rights of a token, NULL: of who has none. done() comes once, perhaps from inside;
 * `a` is borrowed for its time. -ERR_FORBIDDEN: there is no such token. */
typedef void rights_done(void *arg, const struct err *e, const struct acl *a, const char *accessor);
void rights_ask(struct rights *x, const char *token, rights_done *done, void *arg);
/* The one who asked is gone. */
void rights_forget(struct rights *x, void *arg);

#endif
