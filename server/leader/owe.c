/* SPDX-License-Identifier: Apache-2.0
 *
 * What the apply thread owes the log (owed.h lives on the loop).
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

    owed_add(p->l->owed, p->in, NULL, NULL, NULL);
    talloc_free(p);
}

void
leader_owe(struct leader *l, const struct intent *in)
{
    struct put *p = mem_new(NULL, struct put);

    *p = (struct put){l, codec_clone(p, &type_intent, in)};
    env_post(l->env, put_loop, p);
}

struct owed_write {
    struct server *s;
    struct intent *in; /* of the debt, which waits for done() */
    propose_fn *done;
    void *done_arg;
};

static void
propose_now(void *arg)
{
    struct owed_write *w = arg;

    server_propose(w->s, w->in, HOME_LOOP, w->done, w->done_arg);
    talloc_free(w);
}

static void
propose(void *arg, struct intent *in, propose_fn *done, void *done_arg)
{
    struct owed_write *w = mem_new(NULL, struct owed_write);
    const struct test_go go = {arg, false, propose_now, w};

    *w = (struct owed_write){arg, in, done, done_arg};
    if (in->node_status == NULL ||
        !test_hook_hold("Node.UpdateStatus", "propose", &type_intent, in, &go))
        propose_now(w);
}

static void
owed_init(struct leader *l)
{
    l->owed = owed_new(l, l->env, propose, l->s);
}

static void
owed_begin(struct leader *l)
{
    owed_start(l->owed);
}

static void
owed_end(struct leader *l)
{
    owed_stop(l->owed);
}

const struct controller owed_row = {.init = owed_init, .begin = owed_begin, .end = owed_end};
