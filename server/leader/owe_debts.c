/* SPDX-License-Identifier: Apache-2.0
 *
 * The debts of the apply thread to the log (debts.h lives on the loop).
 */
#include "common/mem.h"
#include "server/leader/leader_int.h"

struct put {
    struct leader *l;
    struct intent *in;
};

static void
put_loop(void *arg)
{
    struct put *p = arg;

    debts_add(p->l->debts, p->in, NULL, NULL, NULL);
    talloc_free(p);
}

void
leader_owe(struct leader *l, const struct intent *in)
{
    struct put *p = mem_new(NULL, struct put);

    *p = (struct put){l, codec_clone(p, &type_intent, in)};
    env_post(l->env, put_loop, p);
}

struct debts_write {
    struct server *s;
    struct intent *in; /* of the debt, which waits for done() */
    propose_fn *done;
    void *done_arg;
};

static void
propose_now(void *arg)
{
    struct debts_write *w = arg;

    server_propose(w->s, w->in, HOME_LOOP, w->done, w->done_arg);
    talloc_free(w);
}

static void
owe_debts_propose(void *arg, struct intent *in, propose_fn *done, void *done_arg)
{
    struct debts_write *w = mem_new(NULL, struct debts_write);
    const struct test_go go = {arg, false, propose_now, w};

    *w = (struct debts_write){arg, in, done, done_arg};
    if (in->node_status == NULL ||
        !test_hook_hold("Node.UpdateStatus", "propose", &type_intent, in, &go))
        propose_now(w);
}

static void
debts_init(struct leader *l)
{
    l->debts = debts_new(l, l->env, owe_debts_propose, l->s);
}

static void
debts_begin(struct leader *l)
{
    debts_start(l->debts);
}

static void
debts_end(struct leader *l)
{
    debts_stop(l->debts);
}

/* Owes what the state does not have yet: the id of a cluster of several servers, so that no server
 * starts with the log of one and the consent to another (server/peer/found.h); and the built-in
 * objects. */
static void
debts_on_leader(struct leader *l, struct state_txn *t)
{
    auto_mem void *tmp = mem_ctx("debts");
    const char *id = server_cluster(l->s);
    struct cluster_metadata m = {.cluster_id = id};

    if (id[0] != '\0' && state_cluster(t, tmp) == NULL)
        leader_owe(l, &(struct intent){.cluster_metadata = &m});
    if (!state_has_built_ins(t))
        leader_owe(l, &(struct intent){.objects_init = &(struct empty){0}});
}

const struct controller debts_row = {
    .init = debts_init, .on_leader = debts_on_leader, .begin = debts_begin, .end = debts_end};
