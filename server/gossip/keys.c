/* SPDX-License-Identifier: Apache-2.0
 *
 * The key ring of gossip: see keys.h.
 */
#include "server/gossip/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "codec/base64.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

enum { FILE_MAX = 64 << 10, KEY_TEXT_MAX = 44 /* of 32 bytes */ };

/* --- keys --- */

enum keys_op
keys_op_of(const char *name)
{
    static const char *const names[] = {[KEYS_LIST] = "list",
                                        [KEYS_INSTALL] = "install",
                                        [KEYS_USE] = "use",
                                        [KEYS_REMOVE] = "remove"};
    for (unsigned i = KEYS_LIST; i <= KEYS_OPS; i++)
        if (str_eq(names[i], name))
            return (enum keys_op)i;
    return 0;
}

int
keys_parse(const char *text, struct gossip_key *ret, struct err *e)
{
    uint8_t bytes[BASE64_DECODED(KEY_TEXT_MAX)];
    size_t n = 0, len = strlen(str_or(text, ""));
    struct gossip_key k = {0};
    if (len == 0 || len > KEY_TEXT_MAX || base64_decode(text, len, bytes, &n) < 0 ||
        (n != 16 && n != 24 && n != 32))
        return err_set(
            e, -ERR_INVALID,
            "a key of gossip is 16, 24 or 32 bytes in base64; paddock operator gossip keyring "
            "generate makes one");
    memcpy(k.v, bytes, n);
    k.n = n;
    *ret = k;
    return 0;
}

const char *
keys_text(const void *ctx, const struct gossip_key *k)
{
    auto_buf struct buf b = BUF_INIT(2 * KEY_TEXT_MAX);
    base64_encode(&b, k->v, k->n);
    return mem_strdup(ctx, buf_str(&b));
}

/* Returns the key's place; n: it is not there. */
static size_t
keys_place(const struct gossip_keys *ring, const struct gossip_key *k)
{
    size_t i = 0;
    while (i < ring->n && (ring->v[i].n != k->n || memcmp(ring->v[i].v, k->v, k->n) != 0))
        i++;
    return i;
}

static bool
keys_have(const struct gossip_keys *ring, const struct gossip_key *k)
{
    return keys_place(ring, k) < ring->n;
}

int
keys_change(struct gossip_keys *ring, enum keys_op op, const struct gossip_key *k, struct err *e)
{
    if (ring->n == 0)
        return err_set(e, -ERR_CONFLICT,
                       "gossip is not encrypted: set server.encrypt on all servers");
    if (op == KEYS_LIST)
        return 0;
    size_t i = keys_place(ring, k);
    if (op == KEYS_INSTALL) {
        if (i < ring->n)
            return 0;
        if (ring->n == GOSSIP_KEYS_MAX)
            return err_set(e, -ERR_LIMIT, "there are %d keys already: remove old ones",
                           GOSSIP_KEYS_MAX);
        ring->v[ring->n++] = *k;
        return 0;
    }
    if (i == ring->n && op == KEYS_REMOVE)
        return 0;
    if (i == ring->n)
        return err_set(e, -ERR_NOT_FOUND, "the key is not installed: install it first");
    if (op == KEYS_REMOVE) {
        if (i == 0)
            return err_set(e, -ERR_CONFLICT, "the key is in use: use another one first");
        memmove(&ring->v[i], &ring->v[i + 1], (ring->n - i - 1) * sizeof(*k));
        ring->n--;
        return 0;
    }
    struct gossip_key first = ring->v[i];
    memmove(&ring->v[1], &ring->v[0], i * sizeof(first));
    ring->v[0] = first;
    return 0;
}

/* --- the file --- */

int
keys_save(const char *path, const struct gossip_keys *ring, struct err *e)
{
    auto_mem void *tmp = mem_ctx("keys");
    auto_buf struct buf b = BUF_INIT(FILE_MAX);
    for (size_t i = 0; i < ring->n; i++)
        buf_printf(&b, "%s\"%s\"", i > 0 ? "," : "[", keys_text(tmp, &ring->v[i]));
    buf_puts(&b, "]\n");
    int rc = file_write_atomic(AT_FDCWD, path, b.data, b.len, 0600);
    return rc < 0 ? err_errno(e, -rc, "write '%s'", path) : 0;
}

static int
read_file(const char *path, struct gossip_keys *ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("keys");
    char *text = NULL;
    size_t n = 0;
    struct value *v = NULL;
    int rc = file_read(tmp, AT_FDCWD, path, FILE_MAX, &text, &n);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return err_errno(e, -rc, "read '%s'", path);
    rc = json_decode_value(tmp, SLICE(text, n), BUDGET(16 * FILE_MAX), &v, NULL);
    bool fit = rc == 0 && v->kind == VALUE_LIST && v->list.n > 0 && v->list.n <= GOSSIP_KEYS_MAX;
    for (size_t i = 0; fit && i < v->list.n; i++) {
        const struct value *k = v->list.v[i];
        fit = k->kind == VALUE_STRING && keys_parse(k->str.s, &ret->v[ret->n++], NULL) == 0;
    }
    if (!fit)
        return err_set(e, -ERR_CORRUPT,
                       "'%s' is no list of keys of gossip: restore it, or remove it to begin with "
                       "server.encrypt",
                       path);
    return 0;
}

int
keys_load(const char *path, const char *configured, struct gossip_keys *ret, struct err *e)
{
    struct gossip_key k;
    struct gossip_keys ring = {0};
    if (!str_empty(configured) && keys_parse(configured, &k, e) < 0)
        return err_prefix(e, "server.encrypt");
    int rc = read_file(path, &ring, e);
    if (rc < 0)
        return rc;
    if (ring.n == 0 && !str_empty(configured)) {
        ring.v[ring.n++] = k;
        rc = keys_save(path, &ring, e);
    } else if (!str_empty(configured) && !keys_have(&ring, &k)) {
        log_warn("serf", "server.encrypt is not in the key ring, which counts", "file", path, NULL);
    }
    *ret = ring;
    return rc;
}
