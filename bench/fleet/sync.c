/* SPDX-License-Identifier: Apache-2.0
 *
 * What a simulated client is to run, and what it reports, as client/node/{sync,fetch}.c do: a
 * blocking list of ids and indexes, the changed ones in full, reports of new statuses at the end of
 * the turn.
 */
#include <stdlib.h>
#include <string.h>

#include "api/terms.h"
#include "bench/fleet/fleet.h"
#include "client/limits.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"

#define LIST_WAIT_NS (300 * NS_PER_S)

struct fetch {
    struct sim *node;
    struct wanted {
        char id[UUID_TEXT];
        uint64_t index;
    } * v;
    size_t n, next;
    bool plain;
};

static void list_send(struct sim *s);
static void get_part(struct sim *s);
static void update_send(struct sim *s);

/* --- allocations by id --- */

static int
hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
parse_id(const char *text, uint8_t id[16])
{
    size_t n = 0;

    if (!uuid_valid(text))
        return false;
    for (const char *p = text; *p != '\0'; p++)
        if (*p != '-') {
            id[n / 2] = (uint8_t)(id[n / 2] << 4 | hex(*p));
            n++;
        }
    return true;
}

void
alloc_uuid(const struct sim_alloc *a, char out[UUID_TEXT])
{
    const uint8_t *p = a->id;
    snprintf(out, UUID_TEXT, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13],
             p[14], p[15]);
}

/* Returns the place where it is, or would be. */
static uint32_t
place_of(const struct sim *s, const uint8_t id[16])
{
    uint32_t low = 0, high = s->n_allocs;

    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (memcmp(s->allocs[mid]->id, id, 16) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct sim_alloc *
find(const struct sim *s, const uint8_t id[16])
{
    uint32_t at = place_of(s, id);
    return at < s->n_allocs && memcmp(s->allocs[at]->id, id, 16) == 0 ? s->allocs[at] : NULL;
}

static struct sim_alloc *
add(struct sim *s, const uint8_t id[16])
{
    struct sim_alloc *a = calloc(1, sizeof(*a));
    uint32_t at = place_of(s, id);

    ASSERT(a != NULL);
    memcpy(a->id, id, 16);
    a->node = s;
    if ((s->n_allocs & (s->n_allocs - 1)) == 0) {
        s->allocs =
            realloc(s->allocs, sizeof(struct sim_alloc *) * (s->n_allocs ? s->n_allocs * 2u : 1u));
        ASSERT(s->allocs != NULL);
    }
    memmove(&s->allocs[at + 1], &s->allocs[at], sizeof(struct sim_alloc *) * (s->n_allocs - at));
    s->allocs[at] = a;
    s->n_allocs++;
    s->fleet->n_allocs++;
    return a;
}

static void
drop(struct sim_alloc *a)
{
    struct fleet *f = a->node->fleet;

    driver_drop(a);
    spec_unref(f, a->spec);
    f->n_allocs--;
    f->n_told -= a->counted;
    free(a);
}

void
sync_drop_all(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_allocs; i++)
        drop(s->allocs[i]);
    free(s->allocs);
    s->allocs = NULL;
    s->n_allocs = 0;
}

/* --- down: the list --- */

static void
on_list_timer(void *arg)
{
    struct sim *s = arg;
    s->list_timer = NULL;
    list_send(s);
}

static void
list_retry(struct sim *s)
{
    timer_stop(s->list_timer);
    s->list_timer = timer_start(s->fleet->loop, sim_backoff(s), on_list_timer, s);
}

static void
drop_unlisted(struct sim *s, const struct node_client_allocs_response *r)
{
    uint32_t left = 0;
    char id[UUID_TEXT];

    for (uint32_t i = 0; i < s->n_allocs; i++) {
        alloc_uuid(s->allocs[i], id);
        if (map_get(r->allocs, id) != NULL)
            s->allocs[left++] = s->allocs[i];
        else
            drop(s->allocs[i]);
    }
    s->n_allocs = left;
    /* the next one to add finds its room by the count */
    size_t room = 1;
    while (room < left)
        room *= 2;
    s->allocs = realloc(s->allocs, sizeof(struct sim_alloc *) * room);
    ASSERT(s->allocs != NULL);
}

static void
want(struct sim *s, const char *id, uint64_t index)
{
    struct fetch *f = s->fetch;

    if (f == NULL) {
        f = s->fetch = mem_new(NULL, struct fetch);
        f->node = s;
    }
    if ((f->n & (f->n - 1)) == 0)
        mem_resize(f, f->v, struct wanted, f->n ? f->n * 2 : 1);
    str_copy(f->v[f->n].id, UUID_TEXT, id);
    f->v[f->n++].index = index;
}

static void
take_list(struct sim *s, const struct node_client_allocs_response *r)
{
    uint64_t index = r->meta != NULL ? r->meta->index : 0;
    bool early = index <= s->index && s->listed == (int64_t)r->allocs.n + 1 &&
                 loop_now_ms(s->fleet->loop) - s->list_sent_ms < 1000;
    uint8_t id[16];

    if (index >= s->index) {
        drop_unlisted(s, r);
        s->listed = (int64_t)r->allocs.n + 1;
    }
    s->index = index > s->index ? index : s->index;
    for (size_t i = 0; i < r->allocs.n; i++) {
        uint64_t at = (uint64_t)r->allocs.v[i].v;
        if (!parse_id(r->allocs.v[i].k, id))
            continue;
        const struct sim_alloc *a = find(s, id);
        if (a == NULL || at > a->server_index)
            want(s, r->allocs.v[i].k, at);
    }
    if (s->fetch != NULL)
        get_part(s);
    else if (early) /* a server that does not block must not make us spin */
        s->list_timer = timer_start(s->fleet->loop, 1000, on_list_timer, s);
    else
        list_send(s);
}

static void
on_list(void *arg, const struct err *e, const void *resp)
{
    struct sim *s = arg;

    if (e != NULL && e->code == -ERR_CANCELED)
        return;
    s->list_call = 0;
    if (s->state != SIM_ON)
        return;
    if (e == NULL) {
        s->fleet->stats.lists++;
        take_list(s, resp);
        return;
    }
    if (e->code == -ERR_NOT_FOUND || e->code == -ERR_FORBIDDEN)
        sim_beat_in(s, 0); /* its answer decides about registering again */
    list_retry(s);
}

static void
list_send(struct sim *s)
{
    char id[UUID_TEXT], secret[UUID_TEXT];
    struct rpc_envelope env = {.min_index = s->index,
                               .wait = LIST_WAIT_NS,
                               .stale = s->index != 0,
                               .node_id = id,
                               .node_secret = secret};
    struct node_client_allocs_request req = {.known = s->index != 0 ? (uint64_t)s->listed : 0};
    struct rpc_request r = {.id = RPC_NODE_GET_CLIENT_ALLOCS,
                            .req = &req,
                            .env = &env,
                            .timeout_ms = (LIST_WAIT_NS + LIST_WAIT_NS / 16) / NS_PER_MS + 10000};

    if (s->state != SIM_ON || s->list_call != 0 || s->fetch != NULL || s->list_timer != NULL)
        return;
    sim_id(s, id);
    sim_secret(s, secret);
    s->list_sent_ms = loop_now_ms(s->fleet->loop);
    s->list_call = rpc_send(sim_conn(s), &r, on_list, s);
}

/* --- down: allocations --- */

static void
begin(struct sim *s, struct sim_alloc *a, const struct allocation *from, struct spec *spec)
{
    a->spec = spec;
    spec->refs++;
    for (size_t i = 0; i < spec->n_groups; i++)
        if (str_eq(spec->groups[i].name, from->task_group))
            a->group = &spec->groups[i];
    a->created_ns = from->create_time;
    a->measured =
        from->create_time > s->on_wall_ns; /* not one that a machine finds when it is back */
    a->deployment = !str_empty(from->deployment_id);
    s->fleet->stats.received++;
    if (a->group == NULL || str_eq(from->client_status, ALLOC_COMPLETE) ||
        str_eq(from->client_status, ALLOC_FAILED) || str_eq(from->client_status, ALLOC_LOST) ||
        !str_eq(from->desired_status, ALLOC_DESIRED_RUN)) {
        a->state = a->told = RUN_COMPLETE;
        return;
    }
    driver_start(a, from->name);
}

static void
take_alloc(struct sim *s, const struct allocation *from, struct spec *spec)
{
    uint8_t id[16];

    if (spec == NULL || !parse_id(str_or(from->id, ""), id))
        return;
    struct sim_alloc *a = find(s, id);
    if (a == NULL) {
        a = add(s, id);
        begin(s, a, from, spec);
    } else {
        spec->refs++; /* updated in place, perhaps: the group stays, of the newer job */
        for (size_t i = 0; i < spec->n_groups; i++)
            if (str_eq(spec->groups[i].name, from->task_group))
                a->group = &spec->groups[i];
        spec_unref(s->fleet, a->spec);
        a->spec = spec;
        a->deployment = !str_empty(from->deployment_id);
    }
    a->server_index = from->alloc_modify_index;
    if (!str_eq(from->desired_status, ALLOC_DESIRED_RUN))
        driver_kill(a);
    else
        driver_look(a);
}

/* False: a job is missing. */
static bool
take_part(struct sim *s, const struct alloc_get_allocs_response *r)
{
    struct fleet *f = s->fleet;
    auto_mem void *tmp = mem_ctx("specs");
    struct spec **specs = mem_array(tmp, struct spec *, r->jobs.n);
    bool all = true;

    for (size_t i = 0; i < r->jobs.n; i++) {
        specs[i] = spec_of_job(f, r->jobs.v[i]);
        specs[i]->refs++;
    }
    for (size_t i = 0; i < r->allocs.n; i++) {
        const struct sent_alloc *a = r->allocs.v[i];
        struct spec *spec =
            spec_find(f, a->alloc->namespace, a->alloc->job_id, a->job_modify_index);
        all = all && spec != NULL;
        take_alloc(s, a->alloc, spec);
    }
    for (size_t i = 0; i < r->jobs.n; i++)
        spec_unref(f, specs[i]);
    return all;
}

static void
on_part(void *arg, const struct err *e, const void *resp)
{
    struct sim *s = arg;
    const struct alloc_get_allocs_response *r = resp;

    if (e != NULL && e->code == -ERR_CANCELED)
        return;
    struct fetch *f = s->fetch;
    s->fetch_call = 0;
    if (e != NULL || s->state != SIM_ON) {
        mem_free(s->fetch);
        s->index = 0;
        if (s->state == SIM_ON)
            list_retry(s);
        return;
    }
    if (!take_part(s, r) && !f->plain)
        f->plain = true;
    else
        f->next += r->handled > 0 ? r->handled : f->n;
    get_part(s);
}

static bool
has_job(const struct alloc_get_allocs_request *req, const struct spec *s)
{
    for (size_t i = 0; i < req->known.n; i++)
        if (req->known.v[i]->job_modify_index == s->job_modify_index)
            return true;
    return false;
}

static void
name_known(const void *ctx, const struct sim *s, struct alloc_get_allocs_request *req)
{
    for (uint32_t i = 0; i < s->n_allocs && req->known.n < CLIENT_KNOWN_MAX; i++) {
        const struct spec *spec = s->allocs[i]->spec;
        if (has_job(req, spec))
            continue;
        struct known_job *k = mem_new(ctx, struct known_job);
        *k = (struct known_job){spec->ns, spec->id, spec->job_modify_index};
        list_add(ctx, req->known, k);
    }
}

static void
get_part(struct sim *s)
{
    struct fetch *f = s->fetch;
    auto_mem void *ctx = mem_ctx("fetch");
    char id[UUID_TEXT], secret[UUID_TEXT];
    struct rpc_envelope env = {.stale = true, .node_id = id, .node_secret = secret};
    struct alloc_get_allocs_request req = {0};
    struct rpc_request r = {.id = RPC_ALLOC_GET_ALLOCS, .req = &req, .env = &env};

    if (f->next >= f->n) {
        mem_free(s->fetch);
        list_send(s);
        return;
    }
    for (size_t i = f->next; i < f->n && i - f->next < CLIENT_FETCH_MAX; i++)
        list_add(ctx, req.alloc_ids, f->v[i].id);
    if (!f->plain)
        name_known(ctx, s, &req);
    sim_id(s, id);
    sim_secret(s, secret);
    s->fetch_call = rpc_send(sim_conn(s), &r, on_part, s);
}

/* --- up --- */

static const char *const statuses[] = {[RUN_PENDING] = ALLOC_PENDING,
                                       [RUN_RUNNING] = ALLOC_RUNNING,
                                       [RUN_KILLING] = ALLOC_RUNNING,
                                       [RUN_COMPLETE] = ALLOC_COMPLETE,
                                       [RUN_FAILED] = ALLOC_FAILED};
static const char *const descriptions[] = {[RUN_PENDING] = "No tasks have started",
                                           [RUN_RUNNING] = "Tasks are running",
                                           [RUN_KILLING] = "Tasks are running",
                                           [RUN_COMPLETE] = "All tasks have completed",
                                           [RUN_FAILED] = "Failed tasks"};

static void
add_event(const void *ctx, struct task_state *t, const char *type, const char *text, int64_t at)
{
    struct task_event *ev = mem_new(ctx, struct task_event);

    ev->type = type;
    ev->time = at;
    ev->display_message = text;
    list_add(ctx, t->events, ev);
}

static struct task_state *
task_state(const void *ctx, const struct sim_alloc *a)
{
    struct task_state *t = mem_new(ctx, struct task_state);
    bool over = a->state >= RUN_COMPLETE;

    t->state = over ? "dead" : a->state == RUN_PENDING ? "pending" : "running";
    t->failed = a->state == RUN_FAILED;
    t->started_at = a->started_ns;
    t->finished_at = a->finished_ns;
    add_event(ctx, t, "Received", "Task received by client", a->created_ns);
    add_event(ctx, t, "Task Setup", "Building Task Directory", a->created_ns);
    if (a->started_ns > 0)
        add_event(ctx, t, "Started", "Task started by client", a->started_ns);
    if (over && a->started_ns > 0) {
        add_event(ctx, t, "Terminated", mem_printf(ctx, "Exit Code: %u", a->exit_code),
                  a->finished_ns);
        t->events.v[t->events.n - 1]->exit_code = a->exit_code;
        t->events.v[t->events.n - 1]->fails_task = t->failed;
    } else if (t->failed) {
        add_event(ctx, t, "Driver Failure", "the simulator failed its start", a->finished_ns);
        t->events.v[t->events.n - 1]->fails_task = true;
    }
    return t;
}

static struct allocation *
report_of(const void *ctx, const struct sim_alloc *a, const char *node_id)
{
    struct allocation *r = mem_new(ctx, struct allocation);
    char id[UUID_TEXT];

    alloc_uuid(a, id);
    r->id = mem_strdup(ctx, id);
    r->namespace = a->spec->ns;
    r->node_id = node_id;
    r->job_id = a->spec->id;
    r->task_group = a->group != NULL ? a->group->name : "";
    r->client_status = statuses[a->state];
    r->client_description = descriptions[a->state];
    for (size_t i = 0; a->group != NULL && i < a->group->tasks.n; i++)
        map_put(ctx, r->task_states, a->group->tasks.v[i])->v = task_state(ctx, a);
    if (a->healthy || a->unhealthy) {
        r->deployment_status = mem_new(ctx, struct alloc_deployment_status);
        r->deployment_status->healthy = (struct opt_bool){true, a->healthy};
        r->deployment_status->timestamp = clock_wall_ns();
    }
    return r;
}

static void
on_update_timer(void *arg)
{
    struct sim *s = arg;
    s->update_timer = NULL;
    update_send(s);
}

static void
on_update_posted(void *arg)
{
    struct sim *s = arg;
    s->update_posted = false;
    if (s->update_timer == NULL)
        update_send(s);
}

/* At the end of this turn: what changes in one turn is told together. */
static void
update_schedule(struct sim *s)
{
    if (s->state != SIM_ON || !s->registered || s->joined_ms == 0 || s->update_call != 0 ||
        s->update_posted || s->update_timer != NULL)
        return;
    s->update_posted = true;
    loop_post(s->fleet->loop, on_update_posted, s);
}

void
sync_dirty(struct sim_alloc *a)
{
    a->dirty = true;
    update_schedule(a->node);
}

bool
sync_all_dirty(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_allocs; i++)
        sync_dirty(s->allocs[i]);
    return s->n_allocs > 0;
}

static void
acknowledged(struct fleet *f, struct sim_alloc *a)
{
    int64_t now = clock_wall_ns();

    if (a->counted != (a->told == RUN_RUNNING)) {
        a->counted = !a->counted;
        f->n_told += a->counted ? 1 : (size_t)-1;
    }
    if (!a->measured || a->told != RUN_RUNNING)
        return;
    a->measured = false;
    if (a->created_ns < f->stats.mark_ns)
        return;
    hist_add(&f->stats.placed, (now - a->created_ns) / NS_PER_US);
    if (f->stats.first_created_ns == 0 || a->created_ns < f->stats.first_created_ns)
        f->stats.first_created_ns = a->created_ns;
    if (a->created_ns > f->stats.last_created_ns)
        f->stats.last_created_ns = a->created_ns;
    f->stats.last_running_ns = now;
}

static void
on_update(void *arg, const struct err *e, const void *resp)
{
    struct sim *s = arg;
    bool more = false;

    (void)resp;
    if (e != NULL && e->code == -ERR_CANCELED)
        return;
    s->update_call = 0;
    for (uint32_t i = 0; i < s->n_allocs; i++) {
        struct sim_alloc *a = s->allocs[i];
        if (a->in_flight && e != NULL)
            a->dirty = true;
        else if (a->in_flight)
            acknowledged(s->fleet, a);
        a->in_flight = false;
        more |= a->dirty;
    }
    if (e != NULL) {
        if (e->code == -ERR_NOT_FOUND || e->code == -ERR_FORBIDDEN)
            sim_beat_in(s, 0);
        if (s->state == SIM_ON)
            s->update_timer = timer_start(s->fleet->loop, sim_backoff(s), on_update_timer, s);
        return;
    }
    if (more) {
        update_schedule(s);
    } else if (s->beat_after_report) {
        s->beat_after_report = false;
        sim_beat_in(s, 0);
    }
}

static void
update_send(struct sim *s)
{
    auto_mem void *ctx = mem_ctx("report");
    char id[UUID_TEXT], secret[UUID_TEXT];
    struct rpc_envelope env = {.node_id = id, .node_secret = secret};
    struct node_update_alloc_request req = {0};
    struct rpc_request r = {.id = RPC_NODE_UPDATE_ALLOC, .req = &req, .env = &env};

    if (s->state != SIM_ON || s->update_call != 0)
        return;
    sim_id(s, id);
    sim_secret(s, secret);
    for (uint32_t i = 0; i < s->n_allocs && req.allocs.n < CLIENT_UPDATE_MAX; i++) {
        struct sim_alloc *a = s->allocs[i];
        if (!a->dirty)
            continue;
        a->dirty = false;
        a->in_flight = true;
        a->told = a->state;
        list_add(ctx, req.allocs, report_of(ctx, a, id));
    }
    if (req.allocs.n == 0)
        return;
    s->fleet->stats.reports++;
    s->update_call = rpc_send(sim_conn(s), &r, on_update, s);
}

/* --- both --- */

void
sync_go(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_allocs; i++)
        if (s->allocs[i]->dirty)
            update_schedule(s);
    list_send(s);
}

void
sync_stop(struct sim *s)
{
    uint64_t *calls[] = {&s->list_call, &s->update_call, &s->fetch_call};

    timer_stop(TAKE(s->list_timer));
    timer_stop(TAKE(s->update_timer));
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (*calls[i] != 0)
            rpc_cancel(sim_conn(s), *calls[i]);
        *calls[i] = 0;
    }
    if (s->fetch != NULL)
        s->index = 0;
    mem_free(s->fetch);
    for (uint32_t i = 0; i < s->n_allocs; i++) {
        s->allocs[i]->dirty |= s->allocs[i]->in_flight;
        s->allocs[i]->in_flight = false;
    }
}
