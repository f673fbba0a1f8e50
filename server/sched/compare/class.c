/* SPDX-License-Identifier: Apache-2.0
 *
 * Targets and the computed node class (see class.h).
 */
#include "server/sched/compare/class.h"

#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "common/str.h"

static uint64_t
hash_str(uint64_t h, const char *s)
{
    return hash_item(h, str_or(s, ""));
}

/* Maps are sorted by key, so the order is the same on every server. */
static uint64_t
hash_map(uint64_t h, const struct str_map *m)
{
    for (size_t i = 0; i < m->n; i++) {
        if (str_prefix(m->v[i].k, "unique."))
            continue;
        h = hash_str(h, m->v[i].k);
        h = hash_str(h, m->v[i].v);
    }
    return hash_str(h, "");
}

uint64_t
class_hash(const struct node *n)
{
    uint64_t h = HASH_START;

    h = hash_str(h, n->datacenter);
    h = hash_str(h, n->node_class);
    h = hash_str(h, n->node_pool);
    h = hash_map(h, &n->attributes);
    h = hash_map(h, &n->meta);
    if (n->node_resources != NULL) {
        const struct node_device_resource_list *d = &n->node_resources->devices;
        for (size_t i = 0; i < d->n; i++) {
            h = hash_str(h, d->v[i]->vendor);
            h = hash_str(h, d->v[i]->type);
            h = hash_str(h, d->v[i]->name);
        }
    }
    return h;
}

const char *
class_name(const struct node *n, char out[CLASS_TEXT])
{
    snprintf(out, CLASS_TEXT, "v1:%llu", (unsigned long long)class_hash(n));
    return out;
}

/* Returns what stands between ${ and }, or NULL for a literal. */
static const char *
target_body(const char *t, size_t *ret_len)
{
    if (t == NULL || !str_prefix(t, "${"))
        return NULL;
    size_t n = strlen(t);
    if (t[n - 1] != '}') {
        *ret_len = 0;
        return t + 2;
    }
    *ret_len = n - 3;
    return t + 2;
}

static bool
body_is(const char *b, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(b, word, n) == 0;
}

static bool
body_after(const char *b, size_t n, const char *prefix, const char **key, size_t *key_len)
{
    size_t p = strlen(prefix);

    if (n <= p || memcmp(b, prefix, p) != 0)
        return false;
    *key = b + p;
    *key_len = n - p;
    return true;
}

static bool
map_find(const struct str_map *m, const char *key, size_t len, const char **ret)
{
    size_t lo = 0, hi = m->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = strncmp(m->v[mid].k, key, len);
        if (c == 0 && m->v[mid].k[len] != '\0')
            c = 1;
        if (c == 0) {
            *ret = str_or(m->v[mid].v, "");
            return true;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}

static bool
class_found(const char *s, const char **ret)
{
    *ret = str_or(s, "");
    return true;
}

bool
target_resolve(const struct node *n, const char *target, const char **ret)
{
    size_t len = 0, key_len;
    const char *key, *b = target_body(target, &len);

    if (b == NULL)
        return class_found(target, ret);
    if (body_is(b, len, "node.unique.id"))
        return class_found(n->id, ret);
    if (body_is(b, len, "node.datacenter"))
        return class_found(n->datacenter, ret);
    if (body_is(b, len, "node.unique.name"))
        return class_found(n->name, ret);
    if (body_is(b, len, "node.class"))
        return class_found(n->node_class, ret);
    if (body_is(b, len, "node.pool"))
        return class_found(n->node_pool, ret);
    if (body_after(b, len, "attr.", &key, &key_len))
        return map_find(&n->attributes, key, key_len, ret);
    if (body_after(b, len, "meta.", &key, &key_len))
        return map_find(&n->meta, key, key_len, ret);
    return false;
}

bool
target_escapes(const char *target)
{
    size_t len = 0, rest;
    const char *r, *b = target_body(target, &len);

    return b != NULL && (body_after(b, len, "node.unique.", &r, &rest) ||
                         body_after(b, len, "attr.unique.", &r, &rest) ||
                         body_after(b, len, "meta.unique.", &r, &rest));
}
