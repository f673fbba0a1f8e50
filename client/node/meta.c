/* SPDX-License-Identifier: Apache-2.0
 *
 * Dynamic metadata of the node: set and unset at run time over what the configuration says, kept in the
 * file "meta" of the state directory, registered with the node. A change counts when it is on the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "client/client_int.h"
#include "client/limits.h"
#include "common/buf.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

static const char meta_file[] = "meta";

/* --- what holds --- */

void
meta_fill(const void *ctx, const struct client *c, struct str_map *ret)
{
    const struct client_meta *m = c->meta;

    *ret = (struct str_map){0};
    for (size_t i = 0; i < c->cfg.meta.n; i++)
        if (!m || !str_list_has(&m->unset, c->cfg.meta.v[i].k))
            str_map_set(ctx, ret, c->cfg.meta.v[i].k, c->cfg.meta.v[i].v);
    for (size_t i = 0; m && i < m->set.n; i++)
        str_map_set(ctx, ret, m->set.v[i].k, m->set.v[i].v);
}

struct node_meta_response *
client_meta(const struct client *c, const void *ctx)
{
    struct node_meta_response *r = mem_new(ctx, struct node_meta_response);

    meta_fill(r, c, &r->meta);
    for (size_t i = 0; i < c->cfg.meta.n; i++)
        str_map_set(r, &r->static_, c->cfg.meta.v[i].k, c->cfg.meta.v[i].v);
    r->dynamic = value_map(r);
    for (size_t i = 0; c->meta && i < c->meta->set.n; i++)
        value_map_set(r->dynamic, c->meta->set.v[i].k, value_str(r, c->meta->set.v[i].v));
    for (size_t i = 0; c->meta && i < c->meta->unset.n; i++)
        value_map_set(r->dynamic, c->meta->unset.v[i], value_null(r));
    return r;
}

/* --- at start --- */

int
meta_load(struct client *c, struct err *e)
{
    auto_mem void *tmp = mem_ctx("meta");
    auto_fd int dir = open(c->cfg.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *text = NULL;
    size_t n = 0;
    void *ret = NULL;

    int r = dir < 0 ? -errno : file_read(tmp, dir, meta_file, CLIENT_META_BYTES_MAX, &text, &n);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return err_errno(e, -r, "read \"%s/%s\"", c->cfg.state_dir, meta_file);
    r = mp_decode(c, &type_client_meta, (const uint8_t *)text, n, BUDGET(4 << 20), &ret, e);
    if (r < 0)
        return err_prefix(e, "\"%s/%s\" is damaged: remove it to forget the node's dynamic metadata",
                          c->cfg.state_dir, meta_file);
    c->meta = ret;
    return 0;
}

/* --- a change --- */

struct change { /* a talloc context */
    struct client *c;
    struct client_meta *now;
    const char *dir;
    struct buf data;
    int code;
    struct err e;
    client_done *done;
    void *arg;
};

static int
check_key(const char *k, struct err *e)
{
    if (str_empty(k) || strlen(k) > CLIENT_META_KEY_MAX || strpbrk(k, " {}$\"\n"))
        return err_set(e, -ERR_INVALID,
                       "\"%.64s\" is not a key of metadata: 1 to %d bytes that may stand in "
                       "\"${meta.…}\"",
                       k, CLIENT_META_KEY_MAX);
    return 0;
}

static void
drop(struct str_list *l, const char *s)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        if (!str_eq(l->v[i], s))
            l->v[n++] = l->v[i];
    l->n = n;
}

static void
drop_pair(struct str_map *m, const char *k)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        if (!str_eq(m->v[i].k, k))
            m->v[n++] = m->v[i];
    m->n = n;
}

/* One key: a text sets it, null takes it away, also from the configuration's. */
static int
change_key(struct change *x, const char *k, const struct value *v, struct err *e)
{
    struct client_meta *m = x->now;
    int r = check_key(k, e);

    if (r < 0)
        return r;
    if (v != NULL && v->kind == VALUE_STRING) {
        if (v->str.n > CLIENT_META_VALUE_MAX)
            return err_set(e, -ERR_INVALID, "metadata \"%s\": %zu bytes are more than the %d allowed", k,
                           v->str.n, CLIENT_META_VALUE_MAX);
        drop(&m->unset, k);
        str_map_set(m, &m->set, k, v->str.s);
        return 0;
    }
    if (v != NULL && v->kind != VALUE_NULL)
        return err_set(e, -ERR_INVALID, "metadata \"%s\" must be a string or null, not a %s", k,
                       value_kind_name(v->kind));
    drop_pair(&m->set, k);
    if (str_map_get(&x->c->cfg.meta, k) != NULL && !str_list_has(&m->unset, k))
        list_add(m, m->unset, mem_strdup(m, k));
    return 0;
}

static int
change_make(struct change *x, const struct value *meta, struct err *e)
{
    int r = 0;

    if (meta == NULL || meta->kind != VALUE_MAP || meta->map.n == 0)
        return err_set(e, -ERR_INVALID, "Meta must hold at least one key");
    x->now = x->c->meta ? codec_clone(x, &type_client_meta, x->c->meta)
                        : mem_new(x, struct client_meta);
    for (size_t i = 0; r == 0 && i < meta->map.n; i++)
        r = change_key(x, meta->map.v[i].k, meta->map.v[i].v, e);
    if (r == 0 && x->now->set.n + x->now->unset.n > CLIENT_META_MAX)
        r = err_set(e, -ERR_INVALID, "more than %d keys of dynamic metadata", CLIENT_META_MAX);
    return r;
}

static void
write_work(void *arg)
{
    struct change *x = arg;
    auto_fd int dir = open(x->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    x->code = dir < 0 ? -errno
                      : file_write_atomic(dir, meta_file, x->data.data, x->data.len, 0600);
}

static void
change_end(void *arg)
{
    struct change *x = arg;
    struct client *c = x->c;

    if (x->now != NULL)
        c->meta_busy = false;
    if (x->e.code == 0 && x->code < 0)
        err_errno(&x->e, -x->code, "write \"%s/%s\"", x->dir, meta_file);
    if (x->e.code == 0) {
        mem_free(c->meta);
        c->meta = talloc_steal(c, x->now);
        log_info("client", "metadata of the node changed", NULL);
        if (!c->stopping && c->started)
            register_start(c);
    }
    x->done(x->arg, x->e.code != 0 ? &x->e : NULL);
    buf_done(&x->data);
    talloc_free(x);
    client_release(c);
}

void
client_meta_apply(struct client *c, const struct value *meta, client_done *done, void *arg)
{
    struct change *x = mem_new(NULL, struct change);

    *x = (struct change){.c = c, .done = done, .arg = arg};
    x->data = (struct buf)BUF_INIT(CLIENT_META_BYTES_MAX);
    x->dir = mem_strdup(x, c->cfg.state_dir);
    client_hold(c);
    if (c->meta_busy) {
        err_set(&x->e, -ERR_BUSY, "another change of the metadata is under way: retry");
    } else if (change_make(x, meta, &x->e) == 0) {
        mp_encode(&x->data, &type_client_meta, x->now);
        if (buf_error(&x->data) < 0)
            err_set(&x->e, -ERR_INVALID, "the dynamic metadata is larger than %d bytes",
                    CLIENT_META_BYTES_MAX);
    }
    if (x->e.code != 0) {
        mem_free(x->now);
        x->now = NULL;
        loop_post(c->loop, change_end, x);
        return;
    }
    c->meta_busy = true;
    loop_work(c->loop, write_work, change_end, x);
}
