/* SPDX-License-Identifier: Apache-2.0
 *
 * A name, and the image that it had then, are the hand's when the hand has pulled the image and the
 * name was not there before. Images that the hand has pulled are removed when no container has been
 * made of them for a while; those that somebody else brought are not touched. Which are ours is
 * noted in a file, before a task has any of it, so that they are known after kill -9 and after a
 * restart of the machine; one whose pull ends while the hand is killed is taken for somebody
 * else's, and stays. The engine is asked which have containers, once, when the last container of an
 * image has been gone for that while.
 */
#include <fcntl.h>
#include <string.h>

#include "api/plain.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"

enum { DELAY_DEFAULT_S = 180, FILE_MAX = 2 << 20, NAME_LEN = 1025 };

struct image {
    char id[HAND_ID_MAX];
    char *name;      /* of the list */
    int64_t used_ns; /* it was pulled, or its last container that we know of has gone */
    bool idle;       /* it may have none */
};

struct images {
    struct hand *h;
    int dir;
    const char *file;
    struct image *v;
    size_t n;
    struct timer *due;
    struct engine_call *call;
    size_t at; /* of a look at all of them */
};

static void on_due(void *arg);

static int64_t
delay_ns(const struct images *m)
{
    int64_t own = m->h->engine->image_delay;
    return own > 0 ? own : DELAY_DEFAULT_S * NS_PER_S;
}

static struct image *
images_find(struct images *m, const char *name, const char *id)
{
    for (size_t i = 0; i < m->n; i++)
        if (str_eq(m->v[i].id, id) && str_eq(m->v[i].name, name))
            return &m->v[i];
    return NULL;
}

static void
images_save(const struct images *m)
{
    struct buf b = BUF_INIT(FILE_MAX);
    for (size_t i = 0; i < m->n; i++)
        buf_printf(&b, "%s %s\n", m->v[i].id, m->v[i].name);
    int r = buf_error(&b)
                ? buf_error(&b)
                : file_write_atomic(m->dir, m->file, b.data ? b.data : (uint8_t *)"", b.len, 0600);
    if (r < 0)
        log_warn("hand", "the list of pulled images is not written", "error", err_name(r), NULL);
    buf_done(&b);
}

static bool
is_id(const char *id)
{
    return *id && strlen(id) < HAND_ID_MAX &&
           id[strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789:")] == 0;
}

static struct image *
images_add(struct images *m, const char *name, const char *id)
{
    if (!is_id(id) || !plain_word(name) || strlen(name) >= NAME_LEN || m->n == HAND_IMAGES_MAX)
        return NULL;
    mem_resize(m, m->v, struct image, m->n + 1);
    struct image *i = &m->v[m->n++];
    *i = (struct image){.name = mem_strdup(m, name), .used_ns = clock_mono_ns(), .idle = true};
    (void)str_copy(i->id, sizeof(i->id), id);
    return i;
}

/* For when the first of those that may be idle has been so for long enough. */
static void
images_arm(struct images *m)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < m->n; i++)
        if (m->v[i].idle && m->v[i].used_ns < first)
            first = m->v[i].used_ns;
    if (first == INT64_MAX || m->due || m->call || m->h->engine->keep_images)
        return;
    int64_t wait = first + delay_ns(m) - clock_mono_ns();
    m->due = timer_start(m->h->loop, wait > 0 ? wait / NS_PER_MS + 1 : 1, on_due, m);
}

/* Podman leaves the kind of digest away in its lists. */
static const char *
images_bare(const char *id)
{
    const char *colon = strchr(id, ':');
    return colon ? colon + 1 : id;
}

/* --- the removal --- */

static void
images_drop(struct images *m, size_t i)
{
    mem_free(m->v[i].name);
    m->v[i] = m->v[--m->n];
    images_save(m);
}

static void remove_next(struct images *m);

static void
ask_image(struct images *m, const char *method, const char *what, const char *verb,
          void (*done)(void *arg, int status, const struct value *doc, const struct err *e))
{
    struct buf target = BUF_INIT(4096);
    buf_puts(&target, "/images/");
    http_escape(&target, what, true);
    buf_puts(&target, verb);
    m->call = engine_ask(m->h, &(struct engine_ask){.method = method,
                                                    .target = buf_str(&target),
                                                    .timeout_ms = HAND_ASK_MS,
                                                    .done = done,
                                                    .arg = m});
    buf_done(&target);
}

static void
on_removed(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct images *m = arg;
    (void)doc;
    m->call = NULL;
    if (!e && (status == 200 || status == 404)) {
        images_drop(m, m->at);
    } else if (!e && status == 409) { /* somebody has given it another name, or uses it */
        m->v[m->at++].idle = false;
    } else {
        m->v[m->at++].used_ns = clock_mono_ns();
    }
    remove_next(m);
}

/* The name goes if it still is that image's; an image without its name goes as it is. */
static void
on_named(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct images *m = arg;
    const struct image *i = &m->v[m->at];
    m->call = NULL;
    bool same = !e && status == 200 && str_eq(document_text(doc, "Id"), i->id);
    if (e || (status != 200 && status != 404))
        on_removed(m, status, doc, e);
    else
        ask_image(m, "DELETE", same ? i->name : i->id, "", on_removed);
}

static void
remove_next(struct images *m)
{
    int64_t old = clock_mono_ns() - delay_ns(m);
    while (m->at < m->n && !(m->v[m->at].idle && m->v[m->at].used_ns <= old))
        m->at++;
    if (m->at == m->n) {
        images_arm(m);
        return;
    }
    ask_image(m, "GET", m->v[m->at].name, "/json", on_named);
}

static void
on_containers(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct images *m = arg;
    m->call = NULL;
    if (e || status != 200 || !doc || doc->kind != VALUE_LIST) { /* later, when it answers */
        for (size_t i = 0; i < m->n; i++)
            if (m->v[i].idle)
                m->v[i].used_ns = clock_mono_ns();
        images_arm(m);
        return;
    }
    for (size_t i = 0; i < doc->list.n; i++) {
        const char *used = document_text(doc->list.v[i], "ImageID");
        for (size_t k = 0; k < m->n; k++)
            if (str_eq(images_bare(m->v[k].id), images_bare(used)))
                m->v[k].idle = false;
    }
    m->at = 0;
    remove_next(m);
}

static void
on_due(void *arg)
{
    struct images *m = arg;
    m->due = NULL;
    m->call = engine_ask(m->h, &(struct engine_ask){.method = "GET",
                                                    .target = engine_list(m->h),
                                                    .timeout_ms = HAND_ASK_MS,
                                                    .done = on_containers,
                                                    .arg = m});
}

/* --- for those above --- */

struct images *
images_new(const void *ctx, struct hand *h, int dir)
{
    struct images *m = mem_new(ctx, struct images);
    auto_mem void *tmp = mem_ctx("images");
    char *text = NULL, *save_at = NULL;
    m->h = h;
    m->dir = dir;
    m->file = mem_printf(m, "images.%s", h->engine->name);
    if (file_read(tmp, dir, m->file, FILE_MAX, &text, NULL) == 0)
        for (char *id = strtok_r(text, "\n", &save_at); id; id = strtok_r(NULL, "\n", &save_at)) {
            char *name = strchr(id, ' ');
            if (name)
                *name++ = 0;
            (void)images_add(m, str_or(name, ""), id);
        }
    images_arm(m);
    return m;
}

void
images_pulled(struct images *m, const char *name, const char *before, const char *id)
{
    bool ours = str_empty(before) || images_find(m, name, before);
    if (ours && !images_find(m, name, id) && images_add(m, name, id))
        images_save(m);
    images_unused(m, id);
}

void
images_unused(struct images *m, const char *id)
{
    for (size_t i = 0; i < m->n; i++)
        if (str_eq(m->v[i].id, id)) {
            m->v[i].used_ns = clock_mono_ns();
            m->v[i].idle = true;
        }
    images_arm(m);
}
