/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/meta.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "client/limits.h"
#include "common/buf.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

static const char meta_file[] = "meta";

struct meta {
    struct ground *g;
    void (*changed)(void *arg);
    void *arg;
    struct client_meta *dynamic; /* NULL while nothing was set at run time */
    bool busy;
};

/* --- what holds --- */

void
meta_fill(const void *ctx, const struct meta *m, struct str_map *ret)
{
    const struct client_meta *d = m->dynamic;

    *ret = (struct str_map){0};
    for (size_t i = 0; i < m->g->cfg.agent->meta.n; i++)
        if (!d || !str_list_has(&d->unset, m->g->cfg.agent->meta.v[i].k))
            str_map_set(ctx, ret, m->g->cfg.agent->meta.v[i].k, m->g->cfg.agent->meta.v[i].v);
    for (size_t i = 0; d && i < d->set.n; i++)
        str_map_set(ctx, ret, d->set.v[i].k, d->set.v[i].v);
}

struct node_meta_response *
meta_response(const struct meta *m, const void *ctx)
{
    struct node_meta_response *r = mem_new(ctx, struct node_meta_response);

    meta_fill(r, m, &r->meta);
    for (size_t i = 0; i < m->g->cfg.agent->meta.n; i++)
        str_map_set(r, &r->static_, m->g->cfg.agent->meta.v[i].k, m->g->cfg.agent->meta.v[i].v);
    r->dynamic = value_map(r);
    for (size_t i = 0; m->dynamic && i < m->dynamic->set.n; i++)
        value_map_set(r->dynamic, m->dynamic->set.v[i].k, value_str(r, m->dynamic->set.v[i].v));
    for (size_t i = 0; m->dynamic && i < m->dynamic->unset.n; i++)
        value_map_set(r->dynamic, m->dynamic->unset.v[i], value_null(r));
    return r;
}

/* --- at start --- */

static int
meta_load(struct meta *m, struct err *e)
{
    auto_mem void *tmp = mem_ctx("meta");
    auto_fd int dir = open(m->g->cfg.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *text = NULL;
    size_t n = 0;
    void *ret = NULL;

    int r = dir < 0 ? -errno : file_read(tmp, dir, meta_file, CLIENT_META_BYTES_MAX, &text, &n);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return err_errno(e, -r, "read \"%s/%s\"", m->g->cfg.state_dir, meta_file);
    r = mp_decode(m, &type_client_meta, SLICE(text, n), BUDGET(4 << 20), &ret, e);
    if (r < 0)
        return err_prefix(e,
                          "\"%s/%s\" is damaged: remove it to forget the node's dynamic metadata",
                          m->g->cfg.state_dir, meta_file);
    m->dynamic = ret;
    return 0;
}

struct meta *
meta_new(struct ground *g, void (*changed)(void *arg), void *arg, struct err *e)
{
    struct meta *m = mem_new(g, struct meta);

    *m = (struct meta){.g = g, .changed = changed, .arg = arg};
    return meta_load(m, e) < 0 ? NULL : m;
}

/* --- a change --- */

struct change { /* a talloc context */
    struct meta *m;
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
    if (str_empty(k) || strlen(k) > CLIENT_META_KEY_MAX || strpbrk(k, " {}$\"\n") ||
        *k == '.' || k[strlen(k) - 1] == '.' || strstr(k, "..") != NULL)
        return err_set(e, -ERR_INVALID,
                       "\"%.64s\" is not a key of metadata: 1 to %d bytes that may stand in "
                       "\"${meta.…}\"",
                       k, CLIENT_META_KEY_MAX);
    return 0;
}

static void
meta_drop(struct str_list *l, const char *s)
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
            return err_set(e, -ERR_INVALID,
                           "metadata \"%s\": %zu bytes are more than the %d allowed", k, v->str.n,
                           CLIENT_META_VALUE_MAX);
        meta_drop(&m->unset, k);
        str_map_set(m, &m->set, k, v->str.s);
        return 0;
    }
    if (v != NULL && v->kind != VALUE_NULL)
        return err_set(e, -ERR_INVALID, "metadata \"%s\" must be a string or null, not a %s", k,
                       value_kind_name(v->kind));
    drop_pair(&m->set, k);
    if (str_map_get(&x->m->g->cfg.agent->meta, k) != NULL && !str_list_has(&m->unset, k))
        list_add(m, m->unset, mem_strdup(m, k));
    return 0;
}

static int
change_make(struct change *x, const struct value *meta, struct err *e)
{
    int r = 0;

    if (meta == NULL || meta->kind != VALUE_MAP || meta->map.n == 0)
        return err_set(e, -ERR_INVALID, "Meta must hold at least one key");
    x->now = x->m->dynamic ? codec_clone(x, &type_client_meta, x->m->dynamic)
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
    struct meta *m = x->m;

    if (x->now != NULL)
        m->busy = false;
    if (x->e.code == 0 && x->code < 0)
        err_errno(&x->e, -x->code, "write \"%s/%s\"", x->dir, meta_file);
    if (x->e.code == 0) {
        mem_free(m->dynamic);
        m->dynamic = talloc_steal(m, x->now);
        log_info("client", "metadata of the node changed", NULL);
        if (!m->g->stopping && m->g->started)
            m->changed(m->arg);
    }
    x->done(x->arg, x->e.code != 0 ? &x->e : NULL);
    buf_done(&x->data);
    talloc_free(x);
    hold_release(&m->g->hold);
}

void
meta_apply(struct meta *m, const struct value *change, client_done *done, void *arg)
{
    struct change *x = mem_new(NULL, struct change);

    *x = (struct change){.m = m, .done = done, .arg = arg};
    x->data = (struct buf)BUF_INIT(CLIENT_META_BYTES_MAX);
    x->dir = mem_strdup(x, m->g->cfg.state_dir);
    hold_take(&m->g->hold);
    if (m->busy) {
        err_set(&x->e, -ERR_BUSY, "another change of the metadata is under way: retry");
    } else if (change_make(x, change, &x->e) == 0) {
        mp_encode(&x->data, &type_client_meta, x->now);
        if (buf_error(&x->data) < 0)
            err_set(&x->e, -ERR_INVALID, "the dynamic metadata is larger than %d bytes",
                    CLIENT_META_BYTES_MAX);
    }
    if (x->e.code != 0) {
        mem_free(x->now);
        x->now = NULL;
        loop_post(m->g->loop, change_end, x);
        return;
    }
    m->busy = true;
    loop_work(m->g->loop, write_work, change_end, x);
}
