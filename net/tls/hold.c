/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting those who hold the object, and its texts of one time.
 */
#include "common/mem.h"
#include "net/tls/tls_int.h"

void
tls_set_unref(struct tls_set *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    SSL_CTX_free(s->ctx);
    talloc_free(s);
}

struct tls_set *
tls_set_now(struct tls *t)
{
    pthread_mutex_lock(&t->lock);
    struct tls_set *s = t->now;
    atomic_fetch_add(&s->refs, 1);
    pthread_mutex_unlock(&t->lock);
    return s;
}

struct tls *
tls_ref(struct tls *t)
{
    atomic_fetch_add(&t->refs, 1);
    return t;
}

void
tls_unref(struct tls *t)
{
    if (t == NULL || atomic_fetch_sub(&t->refs, 1) != 1)
        return;
    ASSERT(t->gates == NULL && t->lanes == NULL); /* a connection holds the object */
    tls_set_unref(t->now);
    pthread_mutex_destroy(&t->lock);
    talloc_free(t);
}
