/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on the key rings of all servers: see gossip.h. Before a key is used, each server is
 * asked whether the key is there, so that none is left that cannot read the others.
 */
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/gossip/gossip_int.h"

struct keyring {
    struct gossip *g;
    enum keys_op op, now; /* what is wanted, and asked at the moment */
    char *key;
    size_t open; /* answers that are to come */
    struct gossip_keys_response resp;
    int64_t failed;
    gossip_keyring_fn *done;
    void *arg;
    struct err e; /* nothing was changed */
};

int
keyring_here(struct gossip *g, enum keys_op op, const char *key, struct err *e)
{
    static const char *const words[] = {[KEYS_INSTALL] = "a key was installed",
                                        [KEYS_USE] = "another key is used",
                                        [KEYS_REMOVE] = "a key was removed"};
    struct gossip_keys ring = g->keys;
    struct gossip_key k = {0};
    if (op != KEYS_LIST && keys_parse(key, &k, e) < 0)
        return e->code;
    int rc = keys_change(&ring, op, &k, e);
    if (rc < 0 || op == KEYS_LIST)
        return rc;
    rc = keys_save(g->keys_path, &ring, e);
    if (rc < 0)
        return rc;
    g->keys = ring;
    log_info("serf", words[op], "keys", LOG_U64(ring.n), NULL);
    return 0;
}

static void
keyring_over(void *arg)
{
    struct keyring *k = arg;
    if (!k->g->closing)
        k->g->keyring = NULL;
    k->done(k->arg, k->e.code != 0 ? &k->e : NULL, &k->resp);
    mem_free(k);
}

static void
keyring_fail(struct keyring *k, const char *name, const char *why)
{
    k->failed++;
    str_map_set(k, &k->resp.messages, name, mem_strdup(k, why));
}

static void keyring_ask(struct keyring *k, enum keys_op op);

static void
keyring_next(struct keyring *k)
{
    struct gossip *g = k->g;
    if (k->now != k->op && k->failed == 0 && !g->closing) {
        keyring_ask(k, k->op);
        return;
    }
    if (k->now != k->op)
        err_set(&k->e, -ERR_CONFLICT, "no server uses the key: %s: %s", k->resp.messages.v[0].k,
                k->resp.messages.v[0].v);
    env_post(g->o.env, keyring_over, k);
}

void
keyring_told(struct gossip *g, const char *name, const struct str_list *keys, const struct err *e)
{
    struct keyring *k = g->keyring;
    ASSERT(k != NULL && k->open > 0);
    if (e != NULL)
        keyring_fail(k, name, e->text);
    else if (k->now != k->op && !str_list_has(keys, k->key))
        keyring_fail(k, name, "the key is not installed: install it first");
    for (size_t i = 0; i < keys->n && k->now == k->op; i++)
        map_put(k, k->resp.keys, keys->v[i])->v++;
    if (--k->open == 0)
        keyring_next(k);
}

/* This server first: what it refuses, others are not asked for. */
static void
keyring_ask(struct keyring *k, enum keys_op op)
{
    struct gossip *g = k->g;
    auto_mem void *tmp = mem_ctx("members");
    size_t n = 0;
    struct swim_member *v = swim_members(g->swim, tmp, &n);
    k->now = op;
    k->open = 1;
    k->resp.num_nodes = 1;
    if (keyring_here(g, op, k->key, &k->e) < 0) {
        env_post(g->o.env, keyring_over, k);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        struct err e = ERR_INIT;
        if (v[i].state > MEMBER_SUSPECT)
            continue;
        k->resp.num_nodes++;
        k->open++;
        if (!exchange_keys(g, v[i].about, op, k->key, &e)) {
            k->open--;
            keyring_fail(k, v[i].about->name, e.text);
        }
    }
    struct str_list ours = {0};
    for (size_t i = 0; i < g->keys.n; i++)
        list_add(k, ours, keys_text(k, &g->keys.v[i]));
    keyring_told(g, v[0].about->name, &ours, NULL);
}

void
gossip_keyring(struct gossip *g, enum keys_op op, const char *key, gossip_keyring_fn *done,
               void *arg)
{
    struct keyring *k = mem_new(NULL, struct keyring);
    struct gossip_key parsed;
    *k = (struct keyring){.g = g, .op = op, .done = done, .arg = arg};
    k->key = mem_strdup(k, str_or(key, ""));
    if (g->keyring != NULL)
        err_set(&k->e, -ERR_BUSY, "the key ring is being changed: try again");
    else if (op != KEYS_LIST && keys_parse(key, &parsed, &k->e) == 0)
        k->key = mem_strdup(k, keys_text(k, &parsed)); /* as it is written everywhere */
    if (k->e.code != 0) {
        done(arg, &k->e, NULL);
        mem_free(k);
        return;
    }
    g->keyring = k;
    keyring_ask(k, op == KEYS_USE ? KEYS_LIST : op);
}
