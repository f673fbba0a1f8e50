/* SPDX-License-Identifier: Apache-2.0
 *
 * Links between servers that tests make worse (server/hook.h): in a build with
 * --enable-fault-injection. In any other nothing happens to a message.
 */
#ifndef PADDOCK_SERVER_PEER_LOSSY_H
#define PADDOCK_SERVER_PEER_LOSSY_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "server/env.h"

/* The fate of a Raft message to another server. */
struct test_way {
    bool lost, twice;
    int64_t delay_ms;
};

#ifdef FAULT_INJECTION

/* One that leaves now, by the address of its receiver; true: one of that server is lost. Any
 * thread. */
struct test_way test_hook_out(const char *addr, const struct env *env);
bool test_hook_in(const char *addr);
/* The link to that server is as the body of /v1/test/link says from now on. */
void test_hook_lossy(const char *addr, const struct value *body);

#else

static inline struct test_way
test_hook_out(const char *addr, const struct env *env)
{
    (void)addr;
    (void)env;
    return (struct test_way){0};
}

static inline bool
test_hook_in(const char *addr)
{
    (void)addr;
    return false;
}

#endif

#endif
