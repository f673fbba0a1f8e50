/* SPDX-License-Identifier: Apache-2.0
 *
 * Handshakes of one address: TLS_HANDSHAKES at once, the others wait in order. So an address that
 * begins handshakes by the thousand keeps out itself alone.
 */
#include "common/hash.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "net/tls/tls_int.h"

struct tls_gate {
    struct {
        struct loop *loop; /* begin() is called on the loop of who waits */
        char host[64];
    } key;
    size_t running;
    struct tls_turn *waiting, **last;
    UT_hash_handle hh;
};

static struct tls_gate *
gate_of(struct tls *t, struct loop *l, const char *address)
{
    struct tls_gate *g, want = {0};
    const char *port = strrchr(address, ':');
    size_t n = port != NULL ? (size_t)(port - address) : strlen(address);

    want.key.loop = l;
    memcpy(want.key.host, address, n < sizeof(want.key.host) ? n : sizeof(want.key.host) - 1);
    HASH_FIND(hh, t->gates, &want.key, sizeof(want.key), g);
    if (g == NULL) {
        g = mem_new(NULL, struct tls_gate);
        g->key = want.key;
        g->last = &g->waiting;
        HASH_ADD(hh, t->gates, key, sizeof(g->key), g);
    }
    return g;
}

bool
tls_gate_enter(struct tls *t, struct loop *l, const char *address, struct tls_turn *turn)
{
    pthread_mutex_lock(&t->lock);
    struct tls_gate *g = gate_of(t, l, address);
    turn->gate = g;
    turn->waits = g->running >= TLS_HANDSHAKES;
    if (turn->waits) {
        turn->next = NULL;
        turn->at = g->last;
        *g->last = turn;
        g->last = &turn->next;
    } else {
        g->running++;
    }
    pthread_mutex_unlock(&t->lock);
    return !turn->waits;
}

/* Takes one out of those that wait. */
static void
gate_out(struct tls_gate *g, struct tls_turn *turn)
{
    *turn->at = turn->next;
    if (turn->next != NULL)
        turn->next->at = turn->at;
    else
        g->last = turn->at;
    turn->waits = false;
}

void
tls_gate_leave(struct tls *t, struct tls_turn *turn)
{
    struct tls_gate *g = turn->gate;
    struct tls_turn *next = NULL;

    if (g == NULL)
        return;
    turn->gate = NULL;
    pthread_mutex_lock(&t->lock);
    if (turn->waits) {
        gate_out(g, turn);
    } else if ((next = g->waiting) != NULL) {
        gate_out(g, next); /* takes over the place */
    } else {
        g->running--;
    }
    if (g->running == 0) {
        HASH_DEL(t->gates, g);
        talloc_free(g);
    }
    pthread_mutex_unlock(&t->lock);
    if (next != NULL)
        next->begin(next->arg);
}
