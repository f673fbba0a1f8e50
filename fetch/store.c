/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists are XML of a stranger, of which two elements are wanted. Names come as in a URL, so nothing
 * in them is markup.
 */
#include "fetch/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api/artifact/artifact.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "fetch/place.h"

enum { LIST_MAX = 8 << 20 };

struct store {
    const struct store_wish *w;
    int tree;
    int64_t files, bytes;
    bool *final;
};

/* The text of the next element `name` behind *p, which moves behind it. NULL: there is none. */
static char *
next_element(const void *ctx, const char **p, const char *name)
{
    const char *open = mem_printf(ctx, "<%s>", name), *close = mem_printf(ctx, "</%s>", name);
    const char *from = strstr(*p, open), *to = from != NULL ? strstr(from, close) : NULL;
    if (to == NULL)
        return NULL;
    from += strlen(open);
    *p = to + strlen(close);
    return mem_strndup(ctx, from, (size_t)(to - from));
}

static int
get_object(struct store *s, const char *key, struct err *e)
{
    auto_mem void *ctx = mem_ctx("object");
    const char *path = NULL, *name = NULL;
    if (!str_prefix(key, s->w->prefix))
        return err_set(e, -ERR_CORRUPT, "the list has \"%.200s\", which was not asked for", key);
    if (str_empty(key) || str_suffix(key, "/")) /* stands for a directory */
        return 0;
    int r = place_name(ctx, key + strlen(s->w->prefix), &path, e);
    if (r < 0 || str_empty(path))
        return r;
    if (++s->files > s->w->files_max)
        return err_set(e, -ERR_LIMIT, "too many files: more than %lld", (long long)s->w->files_max);
    auto_fd int at = place_parents(s->tree, path, true, &name, e);
    if (at < 0)
        return at;
    (void)unlinkat(at, name, 0);
    auto_fd int fd = openat(at, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_errno(e, errno, "make \"%.200s\"", path);
    struct http_wish one = *s->w->http;
    int64_t bytes = 0;
    one.url = mem_printf(ctx, "%s%s", s->w->list, artifact_escape(ctx, key, "/"));
    one.bytes_max -= s->bytes;
    r = http_get(&one, fd, &bytes, s->final, e);
    s->bytes += bytes;
    return r < 0 ? err_prefix(e, "\"%.200s\"", path) : 0;
}

/* Gets what is on one page of the list. *next: where the following one begins; NULL: it was the
 * last. */
static int
get_page(const void *ctx, struct store *s, const char **next, struct err *e)
{
    struct http_wish one = *s->w->http;
    char *text = NULL;
    int64_t bytes = 0;
    const char *token = *next;
    /* in the order of the alphabet, as it is signed */
    one.url = mem_printf(ctx, "%s?%s%s%sencoding-type=url&list-type=2&max-keys=1000&prefix=%s",
                         s->w->list, token != NULL ? "continuation-token=" : "",
                         token != NULL ? artifact_escape(ctx, token, "") : "",
                         token != NULL ? "&" : "", artifact_escape(ctx, s->w->prefix, ""));
    one.bytes_max = LIST_MAX;
    auto_fd int fd = openat(s->w->scratch, "list", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, errno, "make a file");
    int r = http_get(&one, fd, &bytes, s->final, e);
    if (r < 0)
        return err_prefix(e, "the list of the bucket");
    r = file_read(ctx, s->w->scratch, "list", LIST_MAX, &text, NULL);
    if (r < 0)
        return err_errno(e, -r, "read the list of the bucket");
    const char *p = text;
    *next = next_element(ctx, &p, "NextContinuationToken");
    p = text;
    for (const char *key; r == 0 && (key = next_element(ctx, &p, "Key")) != NULL;) {
        key = artifact_unescape(ctx, key, strlen(key), true);
        r = key == NULL ? err_set(e, -ERR_CORRUPT, "the list has a malformed name")
                        : get_object(s, key, e);
    }
    return r;
}

int
store_get(const struct store_wish *w, int tree, int64_t *ret_files, int64_t *ret_bytes, bool *final,
          struct err *e)
{
    struct store s = {.w = w, .tree = tree, .final = final};
    auto_mem char *token = NULL;
    const char *next = NULL;
    int r = 0;
    do {
        auto_mem void *ctx = mem_ctx("list");
        int64_t before = s.files;
        next = token;
        r = get_page(ctx, &s, &next, e);
        mem_free(token);
        token = next != NULL ? mem_strdup(NULL, next) : NULL;
        if (r == 0 && token != NULL && s.files == before)
            r = err_set(e, -ERR_CORRUPT, "the list of the bucket does not end");
    } while (r == 0 && token != NULL);
    *ret_files = s.files;
    *ret_bytes = s.bytes;
    return r;
}
