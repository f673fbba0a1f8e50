/* SPDX-License-Identifier: Apache-2.0
 *
 * Registrations of services: a set is written as it is, ends with its allocation in the same entry
 * whatever ends that, and is not shown while its node is away.
 */
#include <string.h>

#include "api/service/service.h"
#include "common/str.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

/* A running allocation "a1" of job "web" on node "n1". */
static struct fx *
world_new(bool patient)
{
    struct fx *f = fx_new();
    make_pools(f);
    ready_node(f, "n1");
    ready_node(f, "n2");
    struct job *j = patient ? patient_job(f, "web") : make_job(f, "web", 1);
    ck_assert_int_eq(put_job(f, j, NULL)->err.code, 0);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    report(f, "n1", "a1", ALLOC_RUNNING);
    return f;
}

static struct fsm_result *
set(struct fx *f, const char *node, const char *alloc, const char *names)
{
    struct intent *in = intent_new(f, 0);
    in->services_set = type_new(in, &type_intent_services_set);
    in->services_set->node_id = node;
    in->services_set->alloc_id = alloc;
    for (const char *n = names; *n != '\0'; n++) {
        struct service_registration *s = type_new(in, &type_service_registration);
        s->id = mem_printf(s, "_nomad-task-%s-%c", alloc, *n);
        s->service_name = mem_printf(s, "s%c", *n);
        s->address = "127.0.0.1";
        s->port = 80;
        list_add(in, in->services_set->services, s);
    }
    return apply(f, in);
}

/* Returns the last letters of the ids, of those that are shown. */
static const char *
shown(struct fx *f)
{
    struct state_txn *t = state_read_begin(f->s, f->ctx);
    struct state_iter *it = state_services_by_alloc(t, f->ctx, "a1");
    const char *ret = "";
    for (struct service_registration *s; (s = state_next(it, f->ctx)) != NULL;)
        if (!s->away)
            ret = mem_printf(f->ctx, "%s%c", ret, s->id[strlen(s->id) - 1]);
    state_read_end(t);
    return ret;
}

START_TEST(a_set_replaces_what_was_there)
{
    struct fx *f = world_new(false);
    ck_assert(set(f, "n1", "a1", "abc")->changed);
    ck_assert_str_eq(shown(f), "abc");
    uint64_t index = table_index(f, STATE_SERVICES);
    ck_assert(!set(f, "n1", "a1", "cba")->changed);
    ck_assert_uint_eq(table_index(f, STATE_SERVICES), index);
    ck_assert(set(f, "n1", "a1", "bd")->changed);
    ck_assert_str_eq(shown(f), "bd");
    const struct service_registration *s =
        READ(f, struct service_registration *, state_get(rt, f->ctx, SERVICES, "_nomad-task-a1-b"));
    ck_assert_str_eq(s->node_id, "n1");
    ck_assert_str_eq(s->job_id, "web");
    ck_assert_str_eq(s->namespace, "default");
    ck_assert_uint_lt(s->modify_index, f->index); /* it did not change */
    ck_assert_int_eq(set(f, "n2", "a1", "x")->err.code, -ERR_NOT_FOUND);
    ck_assert_int_eq(set(f, "n1", "a9", "x")->err.code, -ERR_NOT_FOUND);
    set(f, "n1", "a1", "");
    ck_assert_str_eq(shown(f), "");
    fx_free(f);
}
END_TEST

START_TEST(they_end_with_their_allocation)
{
    static const char *const ends[] = {ALLOC_COMPLETE, ALLOC_FAILED};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct fx *f = world_new(false);
        set(f, "n1", "a1", "ab");
        struct fsm_result *r = report(f, "n1", "a1", ends[i]);
        ck_assert_ptr_nonnull(ROW(r, SERVICES, DELETED, 1));
        ck_assert_str_eq(shown(f), "");
        ck_assert_int_eq(set(f, "n1", "a1", "a")->err.code, -ERR_CONFLICT); /* a late one */
        ck_assert_int_eq(set(f, "n1", "a1", "")->err.code, 0);
        fx_free(f);
    }
}
END_TEST

START_TEST(they_end_when_it_is_lost_or_its_node_purged)
{
    struct fx *f = world_new(false);
    set(f, "n1", "a1", "a");
    node_status(f, "n1", NODE_DOWN);
    ck_assert_str_eq(shown(f), "");
    place(f, make_alloc(f, get_job(f, "web"), "a2", "n2"),
          row_of(f, "a1", "n1", ALLOC_RUNNING, ALLOC_LOST));
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_LOST);
    ck_assert(!READ(f, bool, state_any(rt, STATE_SERVICES_BY_NAME, "default", "sa")));
    fx_free(f);

    f = world_new(false);
    set(f, "n1", "a1", "a");
    struct intent *in = intent_new(f, 0);
    in->node_purge = type_new(in, &type_intent_node_purge);
    in->node_purge->node_ids = strs(in, "n1", NULL);
    ck_assert_int_eq(apply(f, in)->err.code, 0);
    ck_assert(!READ(f, bool, state_any(rt, STATE_SERVICES_BY_NAME, "default", "sa")));
    fx_free(f);
}
END_TEST

START_TEST(they_wait_while_their_node_is_away)
{
    struct fx *f = world_new(true);
    set(f, "n1", "a1", "ab");
    node_status(f, "n1", NODE_DOWN);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_DISCONNECTED);
    ck_assert_str_eq(shown(f), "");
    uint64_t index = table_index(f, STATE_SERVICES);
    ck_assert_uint_eq(index, f->index); /* who waits is told */
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(shown(f), ""); /* it has not said what runs */
    report(f, "n1", "a1", ALLOC_RUNNING);
    set(f, "n1", "a1", "abc");
    ck_assert_str_eq(shown(f), "");
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_READY);
    ck_assert_str_eq(shown(f), "abc");
    fx_free(f);
}
END_TEST

static struct fsm_result *delete (struct fx *f, const char *ns, const char *name, const char *id)
{
    struct intent *in = intent_new(f, 0);
    in->service_delete = type_new(in, &type_intent_service_delete);
    *in->service_delete = (struct intent_service_delete){ns, name, id};
    return apply(f, in);
}

START_TEST(one_is_deleted_by_name_and_id)
{
    struct fx *f = world_new(false);
    set(f, "n1", "a1", "ab");
    ck_assert_int_eq(delete (f, "other", "sa", "_nomad-task-a1-a")->err.code, -ERR_NOT_FOUND);
    ck_assert_int_eq(delete (f, "default", "sb", "_nomad-task-a1-a")->err.code, -ERR_NOT_FOUND);
    ck_assert_int_eq(delete (f, "default", "sa", "_nomad-task-a1-a")->err.code, 0);
    ck_assert_str_eq(shown(f), "b");
    fx_free(f);
}
END_TEST

START_TEST(names_and_ids)
{
    char longest[SERVICE_NAME_MAX + 2];
    memset(longest, 'a', sizeof(longest));
    longest[SERVICE_NAME_MAX] = '\0';
    ck_assert(service_name_valid("a") && service_name_valid("Web-1") &&
              service_name_valid(longest));
    longest[SERVICE_NAME_MAX] = 'a';
    longest[SERVICE_NAME_MAX + 1] = '\0';
    static const char *const wrong[] = {"", "-a", "a-", "a_b", "a.b", "a b", "\xc3\xa4"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        ck_assert_msg(!service_name_valid(wrong[i]), "%s", wrong[i]);
    ck_assert(!service_name_valid(longest) && !service_name_valid(NULL));
    ck_assert(service_id_is_of("_nomad-task-a1-t-web-", "a1"));
    ck_assert(!service_id_is_of("_nomad-task-a12-t-web-", "a1") &&
              !service_id_is_of("_nomad-task-a1-", "a1"));
    ck_assert(!service_id_is_of("_nomad-task-a1-x", "") && !service_id_is_of(NULL, "a1"));
}
END_TEST

TEST_SUITE("service", a_set_replaces_what_was_there, they_end_with_their_allocation,
           they_end_when_it_is_lost_or_its_node_purged, they_wait_while_their_node_is_away,
           one_is_deleted_by_name_and_id, names_and_ids)
