/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaling: policies follow the groups of the newest version, a group is scaled within its policy by
 * a version of its own, and the newest events are kept.
 */
#include <string.h>

#include "common/str.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

static struct job *
scaled_job(struct fx *f, int64_t count, int64_t min, int64_t max)
{
    struct job *j = make_job(f, "web", count);
    struct scaling_policy *s = type_new(j, &type_scaling_policy);

    s->type = "horizontal";
    s->min = (struct opt_i64){true, min};
    s->max = (struct opt_i64){true, max};
    s->enabled = (struct opt_bool){true, true};
    j->task_groups.v[0]->scaling = s;
    return j;
}

static struct fsm_result *
scale(struct fx *f, const char *group, int64_t count, uint64_t index)
{
    struct scaling_event *ev = type_new(f->ctx, &type_scaling_event);
    struct intent_job_scale *in = type_new(f->ctx, &type_intent_job_scale);
    struct intent *i = intent_new(f, 0);

    ev->count = (struct opt_i64){count >= -1, count};
    ev->message = "why";
    *in = (struct intent_job_scale){.namespace = "default",
                                    .job_id = "web",
                                    .group = group,
                                    .job_modify_index = index,
                                    .event = ev};
    i->job_scale = in;
    return apply(f, i);
}

/* The only policy; NULL: there is none. */
static struct job_scaling_policy *
policy(struct fx *f)
{
    struct state_txn *t = state_read_begin(f->s, f->ctx);
    struct state_iter *it = state_ids(t, f->ctx, STATE_SCALING_POLICIES, NULL);
    struct job_scaling_policy *p = state_next(it, f->ctx);

    ck_assert(p == NULL || state_next(it, f->ctx) == NULL);
    state_read_end(t);
    return p;
}

START_TEST(policies_follow_the_job)
{
    struct fx *f = fx_new();

    ck_assert_int_eq(put_job(f, scaled_job(f, 1, 1, 5), NULL)->err.code, 0);
    struct job_scaling_policy *p = policy(f);
    ck_assert_uint_eq(strlen(p->id), 36);
    ck_assert_str_eq(str_map_get(&p->target, "Job"), "web");
    ck_assert_str_eq(str_map_get(&p->target, "Namespace"), "default");
    ck_assert_str_eq(str_map_get(&p->target, "Group"), p->group);
    ck_assert_int_eq(p->max, 5);
    ck_assert_uint_eq(p->create_index, f->index);
    /* another count changes nothing of it, another maximum does */
    put_job(f, scaled_job(f, 2, 1, 5), NULL);
    ck_assert_uint_eq(policy(f)->modify_index, p->modify_index);
    put_job(f, scaled_job(f, 2, 1, 6), NULL);
    struct job_scaling_policy *q = policy(f);
    ck_assert_str_eq(q->id, p->id);
    ck_assert_uint_eq(q->create_index, p->create_index);
    ck_assert_uint_eq(q->modify_index, f->index);
    /* a job that is stopped keeps it */
    stop_job(f, "web", false, NULL);
    ck_assert_ptr_nonnull(policy(f));
    put_job(f, make_job(f, "web", 2), NULL);
    ck_assert_ptr_null(policy(f));
    put_job(f, scaled_job(f, 2, 1, 6), NULL);
    ck_assert_str_ne(policy(f)->id, p->id);
    ck_assert_int_eq(scale(f, "g", 3, 0)->err.code, 0);
    stop_job(f, "web", true, NULL);
    ck_assert_ptr_null(policy(f));
    ck_assert(!READ(f, bool, state_any_row(rt, STATE_SCALING_EVENTS)));
    fx_free(f);
}
END_TEST

START_TEST(a_group_is_scaled_within_its_policy)
{
    struct fx *f = fx_new();

    ck_assert_int_eq(scale(f, "g", 1, 0)->err.code, -ERR_NOT_FOUND);
    put_job(f, scaled_job(f, 1, 1, 5), NULL);
    uint64_t at = f->index;
    ck_assert_int_eq(scale(f, "x", 1, 0)->err.code, -ERR_UNSUPPORTED);
    struct fsm_result *r = scale(f, "g", 6, 0);
    ck_assert_str_eq(r->err.text, "group count was greater than scaling policy maximum: 6 > 5");
    r = scale(f, "g", 0, 0);
    ck_assert_str_eq(r->err.text, "group count was less than scaling policy minimum: 0 < 1");
    ck_assert_int_eq(scale(f, "g", -1, 0)->err.code, -ERR_UNSUPPORTED);
    ck_assert_int_eq(scale(f, "g", 2, at + 1)->err.code, -ERR_CONFLICT);
    ck_assert_uint_eq(get_job(f, "web")->version, 0);
    r = scale(f, "g", 4, at);
    ck_assert_int_eq(r->err.code, 0);
    ck_assert(r->job_changed);
    ck_assert_int_eq(get_job(f, "web")->task_groups.v[0]->count.v, 4);
    ck_assert_uint_eq(get_job(f, "web")->version, 1);
    r = scale(f, "g", 4, 0); /* it is told, and no version */
    ck_assert_int_eq(r->err.code, 0);
    ck_assert_uint_eq(get_job(f, "web")->version, 1);
    struct job *s = make_job(f, "web", 1);
    s->type = JOB_SYSTEM;
    stop_job(f, "web", true, NULL);
    put_job(f, s, NULL);
    r = scale(f, "g", 2, 0);
    ck_assert_str_eq(r->err.text, "jobs of type \"system\" can only be scaled between 0 and 1");
    fx_free(f);
}
END_TEST

START_TEST(the_newest_events_are_kept)
{
    struct fx *f = fx_new();

    put_job(f, scaled_job(f, 1, 0, 100), NULL);
    for (int i = 1; i <= 25; i++)
        ck_assert_int_eq(scale(f, "g", i, 0)->err.code, 0);
    scale(f, "g", -2, 0); /* without a count */
    struct group_scaling_events *row =
        READ(f, struct group_scaling_events *,
             state_get(rt, f->ctx, SCALING_EVENTS, "default", "web", .c = "g"));
    ck_assert_uint_eq(row->events.n, 20);
    ck_assert(!row->events.v[0]->count.set);
    ck_assert_int_eq(row->events.v[0]->previous_count, 25);
    ck_assert_str_eq(row->events.v[0]->message, "why");
    for (size_t i = 1; i < 20; i++) {
        ck_assert_int_eq(row->events.v[i]->count.v, (int64_t)(26 - i));
        ck_assert_int_eq(row->events.v[i]->previous_count, i == 19 ? 6 : (int64_t)(25 - i));
    }
    ck_assert_uint_eq(row->events.v[0]->create_index, f->index);
    fx_free(f);
}
END_TEST

TEST_SUITE("scale", policies_follow_the_job, a_group_is_scaled_within_its_policy,
           the_newest_events_are_kept)
