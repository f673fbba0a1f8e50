/* SPDX-License-Identifier: Apache-2.0
 *
 * The struct tls of an agent, made of the tls block of its configuration, and the end of its
 * certificate.
 */
#ifndef PADDOCK_AGENT_TLS_H
#define PADDOCK_AGENT_TLS_H

#include "api/api.h"
#include "common/err.h"

struct loop;
struct tls;

/* NULL in *ret: neither http nor rpc is encrypted. Errors name the key, the file and the cure. */
int agent_tls_new(const struct agent_config *c, struct tls **ret, struct err *e);
/* For connections to come; < 0: nothing changes. */
int agent_tls_renew(struct tls *t, const struct agent_config *c, struct err *e);

/* Seconds since the epoch at which the certificate of the configuration ends, or the last of its
 * CAs, if that is sooner; 0: there is none. */
int64_t agent_tls_end(const struct agent_config *c);
/* Says in the log when that is near. */
void agent_tls_warn(const struct agent_config *c);
/* Does so now and once a day. The configuration is borrowed. */
struct tls_watch *tls_watch_start(const void *ctx, struct loop *loop, const struct agent_config *c);
void tls_watch_stop(struct tls_watch *w); /* NULL is fine */

#endif
