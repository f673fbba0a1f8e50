/* SPDX-License-Identifier: Apache-2.0
 *
 * Volumes of this node, see volumes.h. In this order: the file; one row after the other; the words
 * of others.
 */
#include "client/node/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "api/volume/volume.h"
#include "client/limits.h"
#include "client/warden_link.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

#define FILE_NAME "volumes.json"
#define MKDIR_VERSION "0.0.1"

struct volumes {
    struct ground *g;
    void (*changed)(void *arg);
    void *arg;
    struct host_volume_list rows; /* the clone that holds them is `all` */
    struct node_client_allocs_response *all;
    const struct host_volume *at; /* is being made or removed, or reported; NULL: none */
    struct node_volume result;    /* of that one */
    char *done;                   /* a byte for each row: the servers know */
    struct timer *timer;
    int64_t backoff_ms;
    uint64_t call;
    bool heard; /* the servers said in this run what they want */
    struct node_client_allocs_response *next;
};

static void volumes_work(struct volumes *v);

static bool
is_there(const struct host_volume *row)
{
    return !str_empty(row->host_path) && STR_ONE_OF(row->state, VOLUME_READY, VOLUME_UNAVAILABLE);
}

/* --- remembered --- */

static const char *
file_of(const void *ctx, const struct volumes *v)
{
    return mem_printf(ctx, "%s/" FILE_NAME, v->g->cfg.state_dir);
}

static void
volumes_save(const struct volumes *v)
{
    auto_mem void *tmp = mem_ctx("volumes");
    auto_buf struct buf b = BUF_INIT(CLIENT_VOLUMES_BYTES_MAX);
    json_encode(&b, &type_node_client_allocs_response, v->all, 0);
    int r = file_write_atomic(AT_FDCWD, file_of(tmp, v), b.data, b.len, 0600);
    if (r < 0)
        log_warn("client", "the list of volumes was not written", "error", err_name(r), NULL);
}

static void
volumes_recall(struct volumes *v)
{
    auto_mem void *tmp = mem_ctx("volumes");
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t len = 0;
    void *said = NULL;
    if (file_read(tmp, AT_FDCWD, file_of(tmp, v), CLIENT_VOLUMES_BYTES_MAX, &text, &len) < 0)
        return;
    if (json_decode(v, &type_node_client_allocs_response, SLICE(text, len),
                    BUDGET(CLIENT_VOLUMES_BYTES_MAX), &said, &e) < 0) {
        log_warn("client", "the list of volumes cannot be read: servers will tell it", "error",
                 e.text, NULL);
        return;
    }
    v->all = said;
    v->rows = v->all->volumes;
    v->done = mem_array(v->all, char, v->rows.n + 1);
}

/* --- one after the other --- */

static void
on_again(void *arg)
{
    struct volumes *v = arg;
    v->timer = NULL;
    volumes_work(v);
}

static void
volumes_later(struct volumes *v)
{
    timer_stop(v->timer);
    v->timer = timer_start(v->g->loop, backoff_next(&v->backoff_ms), on_again, v);
}

static void
volumes_swap(struct volumes *v)
{
    struct node_client_allocs_response *old = v->all;
    struct host_volume_list was = v->rows;
    const char *done = v->done;
    v->all = TAKE(v->next);
    v->rows = v->all->volumes;
    v->done = mem_array(v->all, char, v->rows.n + 1);
    for (size_t i = 0; i < v->rows.n; i++)
        for (size_t k = 0; k < was.n; k++)
            if (str_eq(was.v[k]->id, v->rows.v[i]->id) &&
                was.v[k]->modify_index == v->rows.v[i]->modify_index)
                v->done[i] = done[k];
    mem_free(old);
    volumes_save(v);
    v->changed(v->arg);
}

static void
on_told(void *arg, const struct err *e, const void *resp)
{
    struct volumes *v = arg;
    (void)resp;
    v->call = 0;
    const struct host_volume *row = TAKE(v->at);
    if (!v->g->stopping && e) {
        log_warn("client", "the servers were not told of a volume", "volume", row->id, "error",
                 e->text, NULL);
        volumes_later(v);
    } else if (!v->g->stopping) {
        v->backoff_ms = 0;
        for (size_t i = 0; i < v->rows.n; i++)
            if (v->rows.v[i] == row)
                v->done[i] = 1;
        volumes_work(v);
    }
    hold_release(&v->g->hold);
}

static void
volumes_tell(struct volumes *v)
{
    const struct rpc_envelope env = ground_proof(v->g);
    struct node_volume *one = &v->result;
    struct node_volumes_request req = {.volumes = {&one, 1}};
    struct rpc_request r = {RPC_NODE_UPDATE_VOLUMES, &req, &env, 0};
    hold_take(&v->g->hold);
    v->call = rpc_send(v->g->rpc, &r, on_told, v);
}

static void
volumes_finish(struct volumes *v, const struct err *e)
{
    const struct host_volume *row = v->at;
    if (e)
        log_warn("client", "a volume could not be made or removed", "volume", row->id, "error",
                 e->text, NULL);
    v->result.error = e ? mem_strdup(v->all, e->text) : NULL;
    volumes_tell(v);
}

static void
on_worked(void *arg, const struct err *e, struct warden_reply *r)
{
    struct volumes *v = arg;
    (void)r;
    if (v->g->stopping) {
        v->at = NULL;
    } else if (e &&
               (e->code == -ERR_BUSY || e->code == -ERR_UNAVAILABLE || e->code == -ERR_CLOSED)) {
        v->at = NULL;
        volumes_later(v);
    } else {
        volumes_finish(v, e);
    }
    hold_release(&v->g->hold);
}

/* A path of somebody else's: that it is mounted is for the policy to allow. */
static void
volumes_look(struct volumes *v)
{
    struct err e = ERR_INIT;
    struct stat st;
    const char *path = v->at->host_path;
    if (stat(path, &st) == 0 ? !S_ISDIR(st.st_mode) : errno != EACCES)
        err_set(&e, -ERR_NOT_FOUND, "\"%.512s\" is no directory of this node", path);
    volumes_finish(v, e.code ? &e : NULL);
}

static void
volumes_begin(struct volumes *v, const struct host_volume *row)
{
    struct err e = ERR_INIT;
    struct volume_dir dir;
    v->at = row;
    v->result = (struct node_volume){
        .id = row->id,
        .removed = str_eq(row->state, VOLUME_DELETING),
        .host_path = mem_printf(v->all, "%s/%s", v->g->cfg.volumes_dir, row->id)};
    if (row->registered && v->result.removed) {
        volumes_finish(v, NULL);
        return;
    }
    if (row->registered) {
        volumes_look(v);
        return;
    }
    if (volume_dir_of(&row->parameters, &dir, &e) < 0) {
        volumes_finish(v, &e);
        return;
    }
    const struct warden_volume w = {
        .id = row->id, .mode = dir.mode, .uid = dir.uid, .gid = dir.gid, .size_mb = dir.size_mb};
    v->result.capacity_bytes = dir.size_mb << 20;
    hold_take(&v->g->hold);
    if (v->result.removed)
        warden_volume_remove(v->g->warden, &w, on_worked, v);
    else
        warden_volume_make(v->g->warden, &w, on_worked, v);
}

static void
volumes_work(struct volumes *v)
{
    if (v->at || v->timer || v->g->stopping)
        return;
    if (v->next)
        volumes_swap(v);
    if (!v->heard || !v->g->warden || !v->g->link->up)
        return;
    for (size_t i = 0; i < v->rows.n; i++)
        if (!v->done[i] && STR_ONE_OF(v->rows.v[i]->state, VOLUME_PENDING, VOLUME_DELETING)) {
            volumes_begin(v, v->rows.v[i]);
            return;
        }
}

/* --- for others --- */

static bool
is_same(const struct volumes *v, const struct host_volume_list *rows)
{
    const struct host_volume_list *has = v->next ? &v->next->volumes : &v->rows;
    bool same = has->n == rows->n;
    for (size_t i = 0; same && i < rows->n; i++)
        same = str_eq(has->v[i]->id, rows->v[i]->id) &&
               has->v[i]->modify_index == rows->v[i]->modify_index;
    return same;
}

void
volumes_take(struct volumes *v, const struct host_volume_list *rows)
{
    if (is_same(v, rows)) {
        bool first = !v->heard; /* what an earlier run was told may not be done */
        v->heard = true;
        if (first)
            volumes_work(v);
        return;
    }
    v->heard = true;
    mem_free(v->next);
    const struct node_client_allocs_response all = {.volumes = *rows};
    v->next = codec_clone(v, &type_node_client_allocs_response, &all);
    volumes_work(v);
}

void
volumes_link_up(struct volumes *v)
{
    volumes_work(v);
}

void
volumes_fill(const struct volumes *v, struct node *n)
{
    if (v->g->warden && v->g->link->informed)
        str_map_set(n, &n->attributes, VOLUME_PLUGIN_ATTR, MKDIR_VERSION);
    for (size_t i = 0; i < v->rows.n; i++) {
        const struct host_volume *row = v->rows.v[i];
        if (!is_there(row))
            continue;
        const struct client_host_volume_config made = {.name = row->name,
                                                       .path = row->host_path,
                                                       .id = row->id,
                                                       .namespace = row->namespace,
                                                       .capabilities = row->requested_capabilities};
        struct client_host_volume_config *c =
            codec_clone(n, &type_client_host_volume_config, &made);
        map_put(n, n->host_volumes, c->name)->v = c;
    }
}

void
volumes_stop(struct volumes *v)
{
    timer_stop(TAKE(v->timer));
    if (v->call)
        rpc_cancel(v->g->rpc, v->call);
}

struct volumes *
volumes_new(struct ground *g, void (*changed)(void *arg), void *arg)
{
    struct volumes *v = mem_new(g, struct volumes);
    *v = (struct volumes){.g = g, .changed = changed, .arg = arg};
    v->all = mem_new(v, struct node_client_allocs_response);
    v->done = mem_array(v->all, char, 1);
    volumes_recall(v);
    return v;
}
