/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways to nodes (see ways.h).
 */
#include "server/call/ways.h"

#include <string.h>
#include <utlist.h>

#include "common/mem.h"
#include "server/call/method.h"

struct ways {
    struct way *by_node;
};

struct ways *
ways_new(const void *ctx)
{
    return mem_new(ctx, struct ways);
}

struct way *
way_find(struct server *s, const char *node_id)
{
    struct way *w = NULL;
    HASH_FIND_STR(server_ways(s)->by_node, node_id, w);
    return w;
}

static int
way_gone(struct way *w)
{
    struct relay *r;

    DL_FOREACH(w->reads, r)
        r->way = NULL;
    HASH_DEL(w->ways->by_node, w);
    return 0;
}

void
way_note(struct server *s, struct rpc_call *call, const char *node_id)
{
    struct rpc_link *link = rpc_call_link(call);
    struct way *w = way_find(s, node_id);

    if (link == NULL || (w != NULL && w->link == link))
        return;
    talloc_free(w);
    w = mem_new(rpc_link_ctx(link), struct way);
    w->ways = server_ways(s);
    w->link = link;
    w->node_id = mem_strdup(w, node_id);
    HASH_ADD_KEYPTR(hh, w->ways->by_node, w->node_id, strlen(w->node_id), w);
    talloc_set_destructor(w, way_gone);
}
