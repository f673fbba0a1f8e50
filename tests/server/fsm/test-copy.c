/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: two machines that are one node, since one is a copy of the other.
 */
#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

static struct fsm_result *
registers(struct fx *f, const char *run)
{
    struct node *n = make_node(f, "n1");
    n->agent_run = run;
    return register_node(f, n);
}

START_TEST(a_machine_that_begins_again_is_registered_at_once)
{
    struct fx *f = fx_new();
    char run[8];
    ck_assert_int_eq(registers(f, "r0")->err.code, 0);
    node_status(f, "n1", NODE_READY);
    uint64_t index = get_node(f, "n1")->modify_index;
    for (int i = 1; i < 20; i++) { /* heard a moment ago, or silent */
        snprintf(run, sizeof(run), "r%d", i);
        ck_assert_int_eq(registers(f, mem_strdup(f, run))->err.code, 0);
        ck_assert_str_eq(get_node(f, "n1")->agent_run, run);
        ck_assert_uint_le(get_node(f, "n1")->runs_before.n, 8);
    }
    ck_assert_uint_eq(get_node(f, "n1")->modify_index, index); /* nothing else is new */
    ck_assert_int_eq(registers(f, NULL)->err.code, 0);         /* one that does not say */
    ck_assert_str_eq(get_node(f, "n1")->agent_run, "r19");
    fx_free(f);
}
END_TEST

START_TEST(a_copy_is_refused_while_the_first_is_heard)
{
    struct fx *f = fx_new();
    registers(f, "first");
    node_status(f, "n1", NODE_READY);
    ck_assert_int_eq(registers(f, "copy")->err.code, 0); /* as if it had begun again */
    ck_assert_int_eq(registers(f, "first")->err.code, 0); /* it has not: it is still there */
    const struct node *n = get_node(f, "n1");
    ck_assert_str_eq(n->agent_run, "first");
    ck_assert_str_eq(n->events.v[n->events.n - 1]->message,
                     "Two machines are this node, with one id and secret: the later is refused");
    for (int i = 0; i < 3; i++) {
        struct fsm_result *r = registers(f, "copy");
        ck_assert_int_eq(r->err.code, -ERR_CONFLICT);
        ck_assert_ptr_nonnull(strstr(r->err.text, "heard from another machine"));
    }
    ck_assert_str_eq(get_node(f, "n1")->agent_run, "first");
    ck_assert_int_eq(registers(f, "first again")->err.code, 0);
    ck_assert_int_eq(registers(f, "copy")->err.code, -ERR_CONFLICT);
    node_status(f, "n1", NODE_DOWN); /* who is alone may be it */
    ck_assert_int_eq(registers(f, "copy")->err.code, 0);
    ck_assert_str_eq(get_node(f, "n1")->agent_run, "copy");
    fx_free(f);
}
END_TEST

/* The registration that was sent before the agent began again comes late: whoever speaks on is
 * it. */
START_TEST(a_registration_that_comes_late_settles_itself)
{
    struct fx *f = fx_new();
    registers(f, "r1");
    node_status(f, "n1", NODE_READY);
    registers(f, "r3");
    ck_assert_int_eq(registers(f, "r2")->err.code, 0); /* of a run in between */
    ck_assert_int_eq(registers(f, "r3")->err.code, 0);
    ck_assert_str_eq(get_node(f, "n1")->agent_run, "r3");
    fx_free(f);
}
END_TEST

TEST_SUITE("fsm-copy", a_machine_that_begins_again_is_registered_at_once,
           a_copy_is_refused_while_the_first_is_heard, a_registration_that_comes_late_settles_itself)
