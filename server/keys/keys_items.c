/* SPDX-License-Identifier: Apache-2.0
 *
 * The key ring: sealing variables (see keys.h). A text is about its key, namespace and path: a row
 * that is copied to another path, or to another server's state, does not open.
 */
#include <string.h>

#include "api/vars/vars.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/keys/keys.h"

enum { HEAD_BYTES = 5 /* of a key or value, at most */, ITEMS_BUDGET = 4 << 20 };

static struct slice
about_variable(const void *ctx, const char *key_id, const struct sealed_variable *v)
{
    const char *const parts[] = {key_id, v->namespace, v->path};
    size_t n = 0, at = 0;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        n += strlen(str_or(parts[i], "")) + 1;
    char *text = mem_array(ctx, char, n);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        size_t len = strlen(str_or(parts[i], "")) + 1;
        memcpy(text + at, str_or(parts[i], ""), len);
        at += len;
    }
    return SLICE(text, n);
}

static void
seal_text(const void *ctx, const struct key *k, struct slice text, struct sealed_variable *v)
{
    uint8_t *out = mem_array(ctx, uint8_t, text.n + SEAL_EXTRA);

    v->key_id = mem_strdup(ctx, k->id);
    seal(k->aes, about_variable(ctx, k->id, v), text, out);
    v->sealed = (struct bytes){out, text.n + SEAL_EXTRA};
}

void
keys_seal_items(const void *ctx, const struct key *k, const struct str_map *items,
                struct sealed_variable *v)
{
    const struct variable_items all = {.items = *items};
    size_t most = 4 * HEAD_BYTES;

    for (size_t i = 0; i < items->n; i++)
        most += strlen(items->v[i].k) + strlen(str_or(items->v[i].v, "")) + 2 * HEAD_BYTES;
    struct buf b = BUF_INIT(most);
    buf_reserve(&b, most); /* so that no copy is left when it grows */
    mp_encode(&b, &type_variable_items, &all);
    ASSERT(buf_error(&b) == 0);
    seal_text(ctx, k, SLICE(b.data, b.len), v);
    seal_wipe(b.data, b.len);
    buf_done(&b);
}

static int
open_text(const struct key *k, const struct sealed_variable *v, uint8_t *text, struct err *e)
{
    auto_mem void *tmp = mem_ctx("about");

    struct slice sealed = SLICE(v->sealed.v, v->sealed.n);
    int rc = seal_open(k->aes, about_variable(tmp, k->id, v), sealed, text);

    return rc == 0 ? 0
                   : err_set(e, rc, "variable \"%s\" in namespace \"%s\" is damaged",
                             str_or(v->path, ""), str_or(v->namespace, ""));
}

int
keys_open_items(const void *ctx, const struct key *k, const struct sealed_variable *v,
                struct variable_items **ret, struct err *e)
{
    size_t n = v->sealed.n > SEAL_EXTRA ? v->sealed.n - SEAL_EXTRA : 0;
    auto_mem uint8_t *text = mem_array(NULL, uint8_t, n + 1);
    struct err bad = ERR_INIT;
    void *obj = NULL;
    int rc = open_text(k, v, text, e);

    if (rc == 0 && mp_decode(ctx, &type_variable_items, SLICE(text, n), BUDGET(ITEMS_BUDGET), &obj,
                             &bad) < 0)
        rc = err_set(e, -ERR_CORRUPT, "variable \"%s\" in namespace \"%s\" is damaged",
                     str_or(v->path, ""), str_or(v->namespace, ""));
    seal_wipe(text, n);
    if (rc == 0)
        *ret = obj;
    return rc;
}

int
keys_reseal(const void *ctx, const struct key *from, const struct key *to,
            struct sealed_variable *v, struct err *e)
{
    size_t n = v->sealed.n > SEAL_EXTRA ? v->sealed.n - SEAL_EXTRA : 0;
    auto_mem uint8_t *text = mem_array(NULL, uint8_t, n + 1);
    int rc = open_text(from, v, text, e);

    if (rc == 0)
        seal_text(ctx, to, SLICE(text, n), v);
    seal_wipe(text, n);
    return rc;
}

void
keys_wipe_items(struct str_map *items)
{
    for (size_t i = 0; i < items->n; i++)
        if (items->v[i].v != NULL)
            seal_wipe((char *)(uintptr_t)items->v[i].v, strlen(items->v[i].v));
}
