/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/known.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "client/limits.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"

static const char known_file[] = "servers";

struct known {
    struct ground *g;
    char *text;
    bool writing, again; /* another list came meanwhile */
};

struct writing { /* a talloc context */
    struct known *k;
    const char *dir, *text;
    int code;
};

static void
write_work(void *arg)
{
    struct writing *w = arg;
    auto_fd int dir = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->code = dir < 0 ? -errno : file_write_atomic(dir, known_file, w->text, strlen(w->text), 0600);
}

static void known_save(struct known *k);

/* Without the file, an agent starts with the servers of its configuration. */
static void
write_done(void *arg)
{
    struct writing *w = arg;
    struct known *k = w->k;
    if (w->code < 0)
        log_warn("client", "the servers that are known could not be written", "dir", w->dir,
                 "error", err_name(w->code), NULL);
    talloc_free(w);
    k->writing = false;
    if (k->again && !k->g->stopping)
        known_save(k);
    hold_release(&k->g->hold);
}

static void
known_save(struct known *k)
{
    k->again = k->writing;
    if (k->writing)
        return;
    struct writing *w = mem_new(NULL, struct writing);
    *w = (struct writing){k, mem_strdup(w, k->g->cfg.state_dir), mem_strdup(w, k->text), 0};
    k->writing = true;
    hold_take(&k->g->hold);
    loop_work(k->g->loop, write_work, write_done, w);
}

/* 1: they are new. */
static int
known_tell(struct known *k, const struct str_list *servers, struct err *e)
{
    const struct client_config *c = &k->g->cfg;
    return c->servers != NULL ? c->servers(c->servers_arg, servers, e) : 0;
}

static void
known_load(struct known *k)
{
    auto_mem void *tmp = mem_ctx("servers");
    auto_fd int dir = open(k->g->cfg.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct str_list l = {0};
    struct err e = ERR_INIT;
    char *text = NULL;

    int r =
        dir < 0 ? -errno : file_read(tmp, dir, known_file, CLIENT_SERVERS_BYTES_MAX, &text, NULL);
    if (r == -ENOENT)
        return;
    for (const char *p = r == 0 ? text : ""; *p != 0; p += strcspn(p, ",\n"), p += *p != 0)
        if (strcspn(p, ",\n") > 0)
            list_add(tmp, l, mem_strndup(tmp, p, strcspn(p, ",\n")));
    if (r == 0 && known_set(k, &l, &e) >= 0)
        return;
    log_warn("client",
             "the file of servers that were known is not read: the configuration's are asked",
             "dir", k->g->cfg.state_dir, "error", r < 0 ? err_name(r) : e.text, NULL);
}

struct known *
known_new(struct ground *g)
{
    struct known *k = mem_new(g, struct known);
    *k = (struct known){.g = g, .text = mem_strdup(k, "")};
    if (g->cfg.servers != NULL)
        known_load(k);
    return k;
}

int
known_set(struct known *k, const struct str_list *servers, struct err *e)
{
    int r = known_tell(k, servers, e);
    if (r < 0)
        return r;
    char *text = mem_strdup(k, "");
    for (size_t i = 0; i < servers->n && i < RPC_SERVERS_MAX; i++) {
        char *more = mem_printf(k, "%s%s%s", text, i > 0 ? "," : "", servers->v[i]);
        mem_free(text);
        text = more;
    }
    mem_free(k->text);
    k->text = text;
    if (r > 0 && k->g->started)
        known_save(k);
    return 0;
}

bool
known_others(const struct known *k)
{
    return strchr(k->text, ',') != NULL;
}

const char *
known_text(const struct known *k)
{
    return k->text;
}
