/* SPDX-License-Identifier: Apache-2.0
 *
 * The wrapping key of the other servers: asked for as long as this one cannot unwrap the root keys
 * of the state, where servers prove to each other who they are. It takes the place of a key that
 * wraps none of them: one who began to lead may have made it in vain. Loop thread.
 */
#ifndef PADDOCK_SERVER_KEYS_FETCH_H
#define PADDOCK_SERVER_KEYS_FETCH_H

struct keys_fetch;
struct loop;
struct server;

struct keys_fetch *keys_fetch_start(struct server *s, struct loop *l);
/* NULL is fine. */
void keys_fetch_stop(struct keys_fetch *f);

#endif
