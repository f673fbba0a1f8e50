/* SPDX-License-Identifier: Apache-2.0
 *
 * Searching by parts of names.
 */
#include "tests/lib/test.h"

#include "codec/codec.h"
#include "tests/server/served.h"
#include "tests/server/util.h"

/* Names, and the last of their scopes: "name@scope name@scope". */
static const char *
matches(struct world *w, const struct fuzzy_match_list *l)
{
    const char *ret = "";

    for (size_t i = 0; i < l->n; i++) {
        const struct fuzzy_match *m = l->v[i];
        ret = mem_printf(w, "%s%s%s%s%s", ret, *ret ? " " : "", m->id, m->scope.n > 0 ? "@" : "",
                         m->scope.n > 0 ? m->scope.v[m->scope.n - 1] : "");
    }
    return ret;
}

static const struct fuzzy_matches *
fuzzy(struct world *w, const char *text, const char *context)
{
    const struct fuzzy_search_request req = {.text = text, .context = context};
    const struct fuzzy_search_response *r =
        CALL(w, RPC_SEARCH_FUZZY_SEARCH, fuzzy_search_response, &req);

    return r->matches;
}

START_TEST(a_fuzzy_search_finds_parts_of_names)
{
    struct world *w = world_open(tmp_dir());
    static const char *const ids[] = {"my-web", "WebShop", "web", "a-web", "other"};

    node_up(w);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct job *j = the_job(w, ids[i], i == 2);
        j->task_groups.v[0]->name = "front";
        await_eval(w, run_job(w, j)->eval_id);
    }
    const struct fuzzy_matches *m = fuzzy(w, "WEB", "jobs");
    ck_assert_str_eq(matches(w, &m->jobs), "web@web WebShop@WebShop a-web@a-web my-web@my-web");
    ck_assert_str_eq(matches(w, &m->tasks), "");
    m = fuzzy(w, "ron", "all");
    ck_assert_str_eq(matches(w, &m->jobs), "");
    ck_assert_uint_eq(m->groups.n, 5);
    ck_assert_uint_eq(m->groups.v[0]->scope.n, 2);
    ck_assert_str_eq(m->groups.v[0]->scope.v[0], "default");
    ck_assert_uint_eq(m->allocs.n, 1);
    ck_assert_str_eq(m->allocs.v[0]->id, "web.front[0]");
    m = fuzzy(w, "bin/t", "all");
    ck_assert_uint_eq(m->commands.n, 5);
    ck_assert_str_eq(m->commands.v[4]->id, "/bin/true");
    ck_assert_uint_eq(m->commands.v[4]->scope.n, 4);
    ck_assert_uint_eq(fuzzy(w, "serve", "tasks")->tasks.n, 5);
    ck_assert_str_eq(matches(w, &fuzzy(w, "def", "all")->namespaces), "default");
    const struct fuzzy_search_request shorter = {.text = "w", .context = "all"},
                                      odd = {.text = "web", .context = "x"};
    ck_assert_ptr_null(call(w, RPC_SEARCH_FUZZY_SEARCH, &shorter));
    ck_assert_str_eq(w->err.text, "fuzzy search query must be at least 2 characters, got 1");
    ck_assert_ptr_null(call(w, RPC_SEARCH_FUZZY_SEARCH, &odd));
    ck_assert_str_eq(w->err.text, "there is no context \"x\"");
    world_close(w);
}
END_TEST

START_TEST(a_fuzzy_search_gives_the_best)
{
    enum { JOBS = 130 };
    struct world *w = world_open(tmp_dir());

    for (int i = 0; i < JOBS; i++)
        run_job(w, the_job(w, mem_printf(w, "%s%03d-app", i % 2 ? "xx" : "", i), 0));
    const struct fuzzy_search_request req = {.text = "app", .context = "jobs"};
    const struct fuzzy_search_response *r =
        CALL(w, RPC_SEARCH_FUZZY_SEARCH, fuzzy_search_response, &req);
    ck_assert_uint_eq(r->matches->jobs.n, 100);
    ck_assert(map_get(r->truncations, "jobs")->v);
    for (size_t i = 0; i < 65; i++)
        ck_assert_str_eq(r->matches->jobs.v[i]->id, mem_printf(w, "%03zu-app", 2 * i));
    ck_assert_str_eq(r->matches->jobs.v[65]->id, "xx001-app");
    world_close(w);
}
END_TEST

/* "id id", and the token of the next page if there is one. */
static const char *
statuses(struct world *w, const struct job_statuses_request *req)
{
    const struct job_statuses_response *r = CALL(w, RPC_JOB_STATUSES, job_statuses_response, req);
    const char *ret = "";

    for (size_t i = 0; i < r->jobs.n; i++)
        ret = mem_printf(w, "%s%s%s", ret, i > 0 ? " " : "", r->jobs.v[i]->id);
    if (r->meta->next_token != NULL)
        ((struct list_options *)(uintptr_t)req->list)->next_token =
            mem_strdup(w, r->meta->next_token);
    return ret;
}

START_TEST(statuses_of_jobs_come_newest_first)
{
    struct world *w = world_open(tmp_dir());
    struct list_options list = {.per_page = 0};
    struct job_statuses_request req = {.list = &list};

    node_up(w);
    ck_assert_str_eq(statuses(w, &req), "");
    for (int i = 0; i < 5; i++) /* to their end, so that none changes any more */
        await_eval(w, run_job(w, the_job(w, mem_printf(w, "j%d", i), i == 3))->eval_id);
    ck_assert_str_eq(statuses(w, &req), "j4 j3 j2 j1 j0");
    list.reverse = true;
    ck_assert_str_eq(statuses(w, &req), "j0 j1 j2 j3 j4");
    list = (struct list_options){.per_page = 2};
    ck_assert_str_eq(statuses(w, &req), "j4 j3");
    ck_assert_str_eq(statuses(w, &req), "j2 j1");
    ck_assert_str_eq(statuses(w, &req), "j0");
    list = (struct list_options){.filter = "ID == \"j1\" or ID == \"j3\""};
    ck_assert_str_eq(statuses(w, &req), "j3 j1");
    list = (struct list_options){.filter = "Nope == 1"};
    ck_assert_ptr_null(call(w, RPC_JOB_STATUSES, &req));
    struct job_ref ref = {"default", "j3"}, *refs[] = {&ref};
    list = (struct list_options){.per_page = 0};
    req.jobs = (struct job_ref_list){refs, 1};
    const struct job_statuses_job *s =
        CALL(w, RPC_JOB_STATUSES, job_statuses_response, &req)->jobs.v[0];
    ck_assert_str_eq(s->id, "j3");
    ck_assert_int_eq(s->group_count_sum, 1);
    ck_assert_uint_eq(s->allocs.n, 1);
    ck_assert_str_eq(s->allocs.v[0]->group, "web");
    ck_assert_str_eq(s->allocs.v[0]->node_id, node_id);
    ck_assert_uint_eq(s->allocs.v[0]->job_version, 0);
    world_close(w);
}
END_TEST

TEST_SUITE_TIMEOUT("search", 60, statuses_of_jobs_come_newest_first,
                   a_fuzzy_search_finds_parts_of_names, a_fuzzy_search_gives_the_best)
