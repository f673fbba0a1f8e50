/* SPDX-License-Identifier: Apache-2.0
 *
 * The artifacts of a task, one after the other before its first start: each is a helper's
 * (paddock-fetch), which puts it into its place whole. Once: what the task makes of them stays over
 * its restarts. An agent that starts again fetches what was not all there, again.
 *
 * The artifacts of the group come before: the task that is there first fetches them, the others
 * wait for it. When it is stopped the next one goes on in its place; when it fails they fail, too,
 * and each is tried again by its own restart policy.
 */
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "api/artifact/artifact.h"
#include "client/local.h"
#include "client/task/env.h"
#include "client/task/handle.h"
#include "client/task/helper.h"
#include "client/task/launch.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/launch/helper.h"

enum {
    FETCH_MEMORY = 256 << 20,
    FETCH_THREADS = 16,
    CLONE_MEMORY = 512 << 20, /* of git or hg, too */
    CLONE_THREADS = 128,
    FETCH_REQUEST_MAX = 200 * 1024,
    FETCH_LEAST_MS = 1800000, /* until one is given up, or the time without a byte, */
    FETCH_MORE_MS = 60000,    /* and this */
};

struct artifact_hook {
    struct task_runner *tr;
    struct helper *helper; /* at work */
    size_t at;             /* which one, those of the group first: a new attempt goes on with it */
    bool busy;
    struct artifact_hook *next; /* of those that wait for the group's */
    bool waits;                 /* it is one of them */
    bool fails;                 /* ... and is to be told that they did not come */
};

static void artifact_next(struct artifact_hook *h);

static const struct task_artifact_list *
group_artifacts(const struct task_runner *tr)
{
    static const struct task_artifact_list none;
    return tr->ar->tg != NULL ? &tr->ar->tg->artifacts : &none;
}

static const struct task_artifact *
artifact_at(const struct artifact_hook *h)
{
    const struct task_artifact_list *group = group_artifacts(h->tr);
    return h->at < group->n ? group->v[h->at] : h->tr->task->artifacts.v[h->at - group->n];
}

static bool
group_is_there(const struct task_runner *tr)
{
    const struct task_artifact_list *group = group_artifacts(tr);
    return group->n == 0 || tr->ar->rec->artifacts == task_blocks_key(&type_task_artifact, group);
}

static bool
own_are_there(const struct task_runner *tr)
{
    return tr->task->artifacts.n == 0 ||
           tr->sm.t->artifacts == task_blocks_key(&type_task_artifact, &tr->task->artifacts);
}

/* --- those that wait for the group's --- */

static void
artifact_note(struct artifact_hook *h, const char *text)
{
    struct task_runner *tr = h->tr;
    h->busy = true; /* what the event is told may ask again */
    tr->act(tr, task_sm_note(&tr->sm, clock_civil_ns(), TASK_EVENT_ARTIFACTS, text));
    h->busy = false;
}

static void
artifact_wait(struct artifact_hook *h)
{
    struct alloc_core *ar = h->tr->ar;
    auto_mem void *tmp = mem_ctx("wait");
    struct artifact_hook **last = &ar->group.waiting;
    while (*last != NULL)
        last = &(*last)->next;
    *last = h;
    h->waits = true;
    artifact_note(h, mem_printf(tmp,
                                "Client waits for artifacts of the group, which task \"%s\" "
                                "downloads",
                                ar->group.fetcher->tr->sm.t->name));
}

static void
artifact_unwait(struct artifact_hook *h)
{
    struct artifact_hook **at = &h->tr->ar->group.waiting;
    if (!h->waits)
        return;
    while (*at != h)
        at = &(*at)->next;
    *at = TAKE(h->next);
    h->waits = h->fails = false;
}

/* Has all of them, or one, ask again. */
static void
artifact_wake(struct alloc_core *ar, bool all)
{
    struct artifact_hook *h;
    do {
        h = ar->group.waiting;
        if (h != NULL) {
            artifact_unwait(h);
            h->tr->up->go_on(h->tr);
        }
    } while (all && h != NULL);
}

/* Tells those that wait now; one that waits again meanwhile waits for the next attempt. */
static void
artifact_fail_waiting(struct alloc_core *ar, const char *text, bool recoverable)
{
    struct artifact_hook *h;
    for (h = ar->group.waiting; h != NULL; h = h->next)
        h->fails = true;
    do {
        for (h = ar->group.waiting; h != NULL && !h->fails; h = h->next)
            ;
        if (h != NULL) {
            artifact_unwait(h);
            h->tr->up->failed(h->tr, TASK_EVENT_ARTIFACT_FAILURE, text, recoverable);
        }
    } while (h != NULL);
}

/* --- a download --- */

/* Leaves out the query, which may hold a secret. */
static const char *
shown_source(const void *ctx, const struct task_artifact *a)
{
    const char *s = str_or(a->getter_source, "");
    return mem_strndup(ctx, s, strcspn(s, "?"));
}

static void
artifact_failed(struct artifact_hook *h, const char *why, bool recoverable)
{
    auto_mem void *tmp = mem_ctx("artifact");
    struct task_runner *tr = h->tr;
    struct alloc_core *ar = tr->ar;
    const struct task_artifact *a = artifact_at(h);
    bool of_all = ar->group.fetcher == h;
    char *text = mem_printf(tmp, "failed to download artifact \"%.300s\": %s",
                            shown_source(tmp, a), why);
    str_tame(text, false);
    if (of_all)
        ar->group.fetcher = NULL;
    tr->up->failed(tr, TASK_EVENT_ARTIFACT_FAILURE, text, recoverable);
    if (of_all)
        artifact_fail_waiting(ar, text, recoverable);
}

static void
on_fetched(void *arg, const struct err *e, const void *p, size_t n)
{
    struct artifact_hook *h = arg;
    auto_mem void *tmp = mem_ctx("fetched");
    struct err own = ERR_INIT;
    void *v = NULL;
    h->helper = NULL;
    if (e == NULL &&
        mp_decode(tmp, &type_fetch_report, SLICE(p, n), BUDGET(FETCH_REQUEST_MAX), &v, &own) < 0)
        e = &own;
    if (e != NULL) {
        artifact_failed(h, e->text, true);
        return;
    }
    const struct fetch_report *report = v;
    if (!str_empty(report->error)) {
        artifact_failed(h, report->error, !report->final);
        return;
    }
    log_info("client", "artifact fetched", "alloc_id", h->tr->ar->id, "task", h->tr->sm.t->name,
             "bytes", LOG_I64(report->bytes), "kept_here", report->kept ? "yes" : "no", NULL);
    h->at++;
    artifact_next(h);
}

/* "Downloading x: 1.2 GiB of 3 GiB", in the event that told of the beginning. */
static void
on_progress(void *arg, const void *p, size_t n)
{
    struct artifact_hook *h = arg;
    struct task_runner *tr = h->tr;
    auto_mem void *tmp = mem_ctx("progress");
    char got[SIZE_TEXT], all[SIZE_TEXT];
    void *v = NULL;
    if (mp_decode(tmp, &type_fetch_report, SLICE(p, n), BUDGET(FETCH_REQUEST_MAX), &v, NULL) < 0)
        return;
    const struct fetch_report *report = v;
    if (!report->progress || report->bytes < 0)
        return;
    bool known = report->total >= report->bytes;
    char *text =
        mem_printf(tmp, "Client is downloading artifacts: \"%.300s\": %s%s%s",
                   shown_source(tmp, artifact_at(h)), size_format((uint64_t)report->bytes, got),
                   known ? " of " : "", known ? size_format((uint64_t)report->total, all) : "");
    str_tame(text, false);
    h->busy = true;
    tr->act(tr, task_sm_note_again(&tr->sm, TASK_EVENT_ARTIFACTS, text));
    h->busy = false;
}

static int
make_request(const void *ctx, const struct artifact_hook *h, struct fetch_request *ret,
             struct err *e)
{
    struct task_runner *tr = h->tr;
    const struct task_artifact *a = artifact_at(h);
    struct artifact_source s;
    struct str_map options = {0};
    struct artifact_dirs dirs;
    struct env *env = launch_env(ctx, tr, &dirs, e);
    if (env == NULL)
        return e->code;
    for (size_t i = 0; i < a->getter_options.n; i++)
        str_map_set(ctx, &options, env_interpolate(ctx, env, a->getter_options.v[i].k),
                    env_interpolate(ctx, env, str_or(a->getter_options.v[i].v, "")));
    for (size_t i = 0; i < a->getter_headers.n; i++)
        str_map_set(ctx, &ret->headers, env_interpolate(ctx, env, a->getter_headers.v[i].k),
                    env_interpolate(ctx, env, str_or(a->getter_headers.v[i].v, "")));
    int r = artifact_parse(ctx, env_interpolate(ctx, env, str_or(a->getter_source, "")), &options,
                           &s, e);
    if (r == 0)
        r = artifact_supported(&s, e);
    bool of_group = h->at < group_artifacts(tr)->n;
    const char *to = env_interpolate(ctx, env, str_or(a->relative_dest, "local/"));
    if (of_group && to[0] != '/')
        to = mem_printf(ctx, "../alloc/%s", to);
    if (r == 0)
        r = artifact_place(ctx, to, &dirs, &ret->shared, &ret->path, e);
    if (r == 0 && of_group && !ret->shared)
        r = err_set(e, -ERR_INVALID,
                    "artifact destination of a group is not in the directory that its tasks share: "
                    "use one in NOMAD_ALLOC_DIR");
    if (r == 0)
        r = env_check(env, e);
    ret->source = s.url;
    ret->archive = s.archive;
    ret->checksum = s.checksum;
    ret->filename = s.filename;
    ret->subdir = s.subdir;
    ret->mode = str_or(a->getter_mode, "any");
    ret->insecure = a->getter_insecure.v;
    ret->kind = (int64_t)s.kind;
    ret->ref = s.ref;
    ret->depth = s.depth;
    ret->ssh_key = s.sshkey;
    ret->list = s.object.list;
    ret->key = s.object.key;
    ret->region = s.object.region;
    ret->key_id = s.object.id;
    ret->key_secret = s.object.secret;
    ret->key_token = s.object.token;
    return r;
}

/* Makes the key under which a download is kept, of all that is sent for it: whoever sends the same
 * has the same right to it. "": no sum proves it, so nothing is kept. */
static void
artifact_key(const struct fetch_request *q, int64_t max, char ret[WARDEN_CACHE_KEY + 1])
{
    const char *sum = str_or(q->checksum, "");
    auto_buf struct buf b = BUF_INIT(FETCH_REQUEST_MAX);
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    ret[0] = '\0';
    if (max <= 0 ||
        (q->kind != ARTIFACT_HTTP && q->kind != ARTIFACT_S3 && q->kind != ARTIFACT_GCS) ||
        (!str_prefix(sum, "sha256:") && !str_prefix(sum, "sha512:")))
        return;
    const struct fetch_request of = {.source = q->source,
                                     .checksum = sum,
                                     .headers = q->headers,
                                     .insecure = q->insecure,
                                     .kind = q->kind,
                                     .region = q->region,
                                     .key = q->key,
                                     .key_id = q->key_id,
                                     .key_secret = q->key_secret,
                                     .key_token = q->key_token};
    mp_encode(&b, &type_fetch_request, &of);
    if (buf_error(&b) < 0 || EVP_Digest(b.data, b.len, digest, &n, EVP_sha256(), NULL) != 1)
        return;
    for (unsigned i = 0; i < n && 2 * i < WARDEN_CACHE_KEY; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

/* Fills in the operator's limits, or Nomad's defaults. */
static int
put_limits(const struct task_runner *tr, struct fetch_request *q, struct err *e)
{
    static const struct agent_artifact none;
    const struct agent_client *c = tr->ar->g->cfg.agent;
    const struct agent_artifact *a = c != NULL && c->artifact != NULL ? c->artifact : &none;
    q->policy = a->policy;
    q->files_max = a->decompression_file_count_limit.set ? a->decompression_file_count_limit.v
                                                         : 4096;
    q->files_max = q->files_max > 0 ? q->files_max : INT64_MAX;
    q->idle_ms = (a->http_read_timeout > 0 ? a->http_read_timeout : 30 * 60 * NS_PER_S) / NS_PER_MS;
    const int64_t totals[] = {[ARTIFACT_GIT] = a->git_timeout,
                              [ARTIFACT_HG] = a->hg_timeout,
                              [ARTIFACT_S3] = a->s3_timeout,
                              [ARTIFACT_GCS] = a->gcs_timeout};
    int64_t total = q->kind < (int64_t)ARRAY_LEN(totals) ? totals[q->kind] : 0;
    q->total_ms =
        q->kind == ARTIFACT_HTTP ? 0 : (total > 0 ? total : FETCH_LEAST_MS * NS_PER_MS) / NS_PER_MS;
    int r = artifact_size(str_or(a->http_max_size, "100GB"), &q->bytes_max, e);
    if (r == 0)
        r = artifact_size(str_or(a->decompression_size_limit, "100GB"), &q->unpacked_max, e);
    return r == 0 ? artifact_size(str_or(a->cache_size, "0"), &q->keep_max, e) : r;
}

static void
group_fetched(struct alloc_core *ar)
{
    ar->group.fetcher = NULL;
    ar->rec->artifacts = task_blocks_key(&type_task_artifact, &ar->tg->artifacts);
    local_put_alloc(ar->g->local, ar->rec);
    artifact_wake(ar, true);
}

static void
artifact_next(struct artifact_hook *h)
{
    struct task_runner *tr = h->tr;
    auto_mem void *tmp = mem_ctx("fetch");
    struct fetch_request q = {0};
    struct err e = ERR_INIT;
    const struct task_artifact_list *group = group_artifacts(tr);
    if (tr->ar->group.fetcher == h && h->at >= group->n)
        group_fetched(tr->ar);
    if (!tr->launching) /* one that waited failed, and all end */
        return;
    if (h->at >= group->n && own_are_there(tr))
        h->at = group->n + tr->task->artifacts.n;
    if (h->at == group->n + tr->task->artifacts.n) {
        tr->sm.t->artifacts = task_blocks_key(
            &type_task_artifact, &tr->task->artifacts); /* durable with the next change */
        tr->up->go_on(tr);
        return;
    }
    int r = make_request(tmp, h, &q, &e);
    if (r == 0)
        r = put_limits(tr, &q, &e);
    char key[WARDEN_CACHE_KEY + 1];
    artifact_key(&q, r == 0 ? q.keep_max : 0, key);
    q.keep_max = key[0] != '\0' ? q.keep_max : 0;
    auto_buf struct buf b = BUF_INIT(FETCH_REQUEST_MAX);
    mp_encode(&b, &type_fetch_request, &q);
    if (r == 0 && buf_error(&b) < 0)
        r = err_set(&e, -ERR_LIMIT, "its source, options and headers are too long");
    if (r < 0) {
        artifact_failed(h, e.text, false);
        return;
    }
    bool clone = q.kind == ARTIFACT_GIT || q.kind == ARTIFACT_HG;
    int64_t most = q.idle_ms > FETCH_LEAST_MS ? q.idle_ms : FETCH_LEAST_MS;
    most = most > q.total_ms ? most : q.total_ms;
    int64_t file = q.bytes_max > q.unpacked_max ? q.bytes_max : q.unpacked_max;
    const struct helper_request run = {.program = clone ? "clone" : "fetch",
                                       .network = true,
                                       .memory_max = clone ? CLONE_MEMORY : FETCH_MEMORY,
                                       .pids_max = clone ? CLONE_THREADS : FETCH_THREADS,
                                       .file_max = file,
                                       .cache = key,
                                       .deadline_ms = most + FETCH_MORE_MS < WARDEN_HELPER_MS_MAX
                                                          ? most + FETCH_MORE_MS
                                                          : WARDEN_HELPER_MS_MAX};
    h->helper = helper_run(tr, &run, b.data, b.len, on_fetched, h);
    helper_follow(h->helper, on_progress);
}

static bool
hook_artifact_prestart(struct task_runner *tr)
{
    struct artifact_hook *h = tr->hook.artifact;
    size_t n = group_artifacts(tr)->n;
    bool group = group_is_there(tr);
    if (group && own_are_there(tr))
        return true;
    if (h == NULL) {
        h = tr->hook.artifact = mem_new(tr->ar->rec, struct artifact_hook);
        h->tr = tr;
    }
    if (h->helper != NULL || h->busy || h->waits)
        return false;
    if (tr->ar->g->warden == NULL) {
        tr->up->failed(tr, TASK_EVENT_ARTIFACT_FAILURE,
                       "the warden is not running: nothing is downloaded", false);
        return false;
    }
    if (!group && tr->ar->group.fetcher != NULL) {
        artifact_wait(h);
        return false;
    }
    if (!group)
        tr->ar->group.fetcher = h;
    h->at = h->at < n + tr->task->artifacts.n ? h->at : 0; /* a job may have been updated */
    if (group ? h->at < n : h->at >= n)
        h->at = group ? n : 0;
    artifact_note(h, "Client is downloading artifacts");
    if (tr->launching)
        artifact_next(h);
    return false;
}

static void
hook_artifact_stop(struct task_runner *tr)
{
    struct artifact_hook *h = tr->hook.artifact;
    if (h == NULL)
        return;
    helper_cancel(TAKE(h->helper));
    artifact_unwait(h);
    if (tr->ar->group.fetcher != h)
        return;
    tr->ar->group.fetcher = NULL;
    artifact_wake(tr->ar, false); /* the next one fetches them */
}

const struct task_hook task_hook_artifact = {.prestart = hook_artifact_prestart,
                                             .stop = hook_artifact_stop};
