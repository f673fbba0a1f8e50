/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock-fetch: one request (struct fetch_request) comes, one report (struct fetch_report) goes.
 * The file is downloaded to "body" of the scratch directory, checked, unpacked to "tree" there, and
 * put into its place; a repository is cloned to "tree".
 */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "api/artifact/artifact.h"
#include "api/plain.h"
#include "common/buf.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "fetch/archive.h"
#include "fetch/http.h"
#include "fetch/place.h"
#include "fetch/reach.h"
#include "fetch/repo.h"
#include "fetch/store.h"
#include "fetch/sum.h"
#include "isolation/launch/helper.h"
#include "isolation/launch/helper_talk.h"

enum { SUMS_MAX = 1 << 20 };

struct fetch {
    void *ctx;
    const struct fetch_request *q;
    struct artifact_checksum sum;
    bool has_sum;
    const char *suffix; /* of an archive; NULL: none */
    const char *path;   /* of the file, where it is one */
    int to;             /* directory that `path` begins in */
    int body;
    int64_t bytes;
    bool final;
    bool kept;        /* it was here */
    const char *name; /* of the file; "" where its address names none */
};

static int
open_scratch(const char *name, struct err *e)
{
    int fd =
        openat(HELPER_FD_SCRATCH, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    return fd < 0 ? err_errno(e, errno, "make a file") : fd;
}

static struct http_wish
base_wish(const struct fetch *f)
{
    const struct fetch_request *q = f->q;
    return (struct http_wish){.headers = &q->headers,
                              .insecure = q->insecure,
                              .bytes_max = q->bytes_max,
                              .idle_ms = q->idle_ms,
                              .total_ms = q->total_ms,
                              .policy = q->policy,
                              .key_id = q->key_id,
                              .key_secret = q->key_secret,
                              .key_token = q->key_token,
                              .region = q->region};
}

static int
fetch_download(struct fetch *f, const char *url, int64_t max, int fd, struct err *e)
{
    struct http_wish w = base_wish(f);
    w.url = url;
    w.bytes_max = max;
    if (url != f->q->source) /* the file of checksums is elsewhere */
        w.key_id = NULL;
    return http_get(&w, fd, &f->bytes, &f->final, e);
}

/* The sums of "file:URL" are looked up before anything else is fetched. */
static int
find_sum(struct fetch *f, struct err *e)
{
    char *text = NULL;
    if (str_empty(f->q->checksum))
        return 0;
    f->has_sum = true;
    int r = artifact_checksum(f->ctx, f->q->checksum, &f->sum, e);
    if (r < 0 || f->sum.file == NULL) {
        f->final = r < 0;
        return r;
    }
    auto_fd int fd = open_scratch("sums", e);
    r = fd < 0 ? fd : fetch_download(f, f->sum.file, SUMS_MAX, fd, e);
    if (r < 0)
        return err_prefix(e, "the file of checksums");
    r = file_read(f->ctx, HELPER_FD_SCRATCH, "sums", SUMS_MAX, &text, NULL);
    if (r < 0)
        return err_errno(e, -r, "read the file of checksums");
    return artifact_find_sum(text, f->name, &f->sum, e);
}

/* Says whether an address ends with its host. Such a file has no name of its own: as in Nomad, the
 * destination is its name. */
static bool
has_no_path(const char *url)
{
    const char *host = strstr(url, "://");
    return host != NULL && host[3 + strcspn(host + 3, "/")] == '\0';
}

static int
choose_place(struct fetch *f, struct err *e)
{
    const struct fetch_request *q = f->q;
    bool dir = str_eq(q->mode, "dir");
    bool file = str_eq(q->mode, "file") ||
                (!dir && str_empty(f->name) && has_no_path(str_or(q->source, "")));
    f->final = true;
    f->to = q->shared ? HELPER_FD_SHARED : HELPER_FD_TASK;
    f->suffix = str_eq(q->archive, "false") ? NULL
                : !str_empty(q->archive)    ? q->archive
                                            : artifact_suffix(f->name);
    if (!plain_path(q->path))
        return err_set(e, -ERR_INVALID, "the destination is no plain path");
    if (str_empty(f->name) && !file)
        return err_set(e, -ERR_INVALID, "a directory cannot be downloaded over http: name a file");
    if (f->suffix != NULL && artifact_single(f->suffix) && !file)
        return err_set(e, -ERR_INVALID,
                       "%s-compressed files can only unarchive to a single file: "
                       "set mode = \"file\", or archive = false",
                       f->suffix);
    if (f->suffix == NULL && dir)
        return err_set(e, -ERR_INVALID,
                       "mode \"dir\" needs an archive, and \"%.255s\" has no "
                       "suffix of one: set the option \"archive\"",
                       f->name);
    if (!str_empty(q->subdir) && f->suffix == NULL)
        return err_set(e, -ERR_INVALID,
                       "the part behind // is one of an archive, and \"%.255s\" "
                       "is none",
                       f->name);
    f->path = str_or(q->path, "");
    if (!file && f->suffix == NULL)
        f->path = mem_printf(f->ctx, "%s%s%s", f->path, str_empty(f->path) ? "" : "/", f->name);
    if (file && str_empty(f->path))
        return err_set(e, -ERR_INVALID, "mode \"file\" needs a destination that names the file");
    f->final = false;
    return 0;
}

/* Says whether the file is there already, with the right sum. */
static bool
is_there(struct fetch *f)
{
    const char *name = NULL;
    struct stat st;
    struct err e = ERR_INIT;
    if (!f->has_sum || f->suffix != NULL)
        return false;
    auto_fd int dir = place_parents(f->to, f->path, false, &name, &e);
    auto_fd int fd =
        dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           sum_check(fd, &f->sum, name, &e) == 0;
}

/* --- what this node keeps --- */

/* Copies the file from where both are, without reading it where the file system can. */
static int
copy_file(int from, int to, int64_t n)
{
    char part[65536];
    ssize_t k = 1;
    while (n > 0 && (k = copy_file_range(from, NULL, to, NULL, (size_t)n, 0)) > 0)
        n -= k;
    while (n > 0 && k != 0) {
        k = read(from, part, sizeof(part));
        if (k < 0 || (k > 0 && fd_write_full(to, part, (size_t)k) < 0))
            return -EIO;
        n -= k;
    }
    return n == 0 ? 0 : -EIO;
}

/* Takes what is kept in place of a download. Nothing of it is believed: the copy has the right sum,
 * or is none. */
static bool
take_kept(struct fetch *f)
{
    struct stat st;
    struct err e = ERR_INIT;
    if (!f->has_sum || fstat(HELPER_FD_CACHE, &st) < 0 || !S_ISREG(st.st_mode) ||
        st.st_size > f->q->bytes_max)
        return false;
    f->kept = copy_file(HELPER_FD_CACHE, f->body, st.st_size) == 0 &&
              lseek(f->body, 0, SEEK_SET) == 0 && sum_check(f->body, &f->sum, f->name, &e) == 0;
    if (!f->kept && ftruncate(f->body, 0) < 0)
        return false;
    (void)lseek(f->body, 0, SEEK_SET);
    return f->kept;
}

/* Leaves a copy for others, which no task has: of an archive the file itself, which is unpacked. An
 * artifact is as good without. */
static void
leave_kept(struct fetch *f)
{
    struct stat st;
    struct err e = ERR_INIT;
    if (f->kept || !f->has_sum || fstat(f->body, &st) < 0 || st.st_size > f->q->keep_max)
        return;
    if (f->suffix != NULL) {
        (void)renameat(HELPER_FD_SCRATCH, "body", HELPER_FD_SCRATCH, WARDEN_CACHE_NAME);
        return;
    }
    auto_fd int fd = open_scratch(WARDEN_CACHE_NAME, &e);
    if (fd < 0 || lseek(f->body, 0, SEEK_SET) < 0 || copy_file(f->body, fd, st.st_size) < 0)
        (void)unlinkat(HELPER_FD_SCRATCH, WARDEN_CACHE_NAME, 0);
}

/* The part of the tree that is wanted: *part, which is -1 for all of it. */
static int
open_part(const struct fetch *f, int tree, const char *what, int *part, struct err *e)
{
    *part = -1;
    if (str_empty(f->q->subdir))
        return 0;
    *part = fd_open_beneath(tree, f->q->subdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, false);
    return *part < 0 ? err_errno(e, -*part, "open \"%.200s\" of the %s", f->q->subdir, what) : 0;
}

/* The only file of a tree. */
static int
take_single(struct fetch *f, int tree, struct err *e)
{
    auto_mem void *ctx = mem_ctx("single");
    const char *name = NULL;
    int r = place_only(ctx, tree, &name, e);
    return r < 0 ? r : place_file(tree, name, f->to, f->path, e);
}

static int
fetch_unpack(struct fetch *f, struct err *e)
{
    const struct archive_limits l = {.files = f->q->files_max, .bytes = f->q->unpacked_max};
    auto_fd int tree = place_directory(HELPER_FD_SCRATCH, "tree", e);
    if (tree < 0)
        return tree;
    f->final = true; /* it would be the same again */
    int r = archive_unpack(f->body, f->suffix, tree, "file", &l, e);
    if (r < 0)
        return r;
    f->final = false;
    leave_kept(f);
    (void)unlinkat(HELPER_FD_SCRATCH, "body", 0);
    auto_fd int part = -1;
    r = open_part(f, tree, "archive", &part, e);
    if (r < 0)
        return r;
    int from = part >= 0 ? part : tree;
    if (str_eq(f->q->mode, "file"))
        return take_single(f, from, e);
    auto_fd int to = place_directory(f->to, f->path, e);
    return to < 0 ? to : place_tree(from, to, e);
}

static int
fetch_place(struct fetch *f, struct err *e)
{
    if (f->suffix != NULL)
        return fetch_unpack(f, e);
    leave_kept(f);
    return place_file(HELPER_FD_SCRATCH, "body", f->to, f->path, e);
}

static bool
is_store(const struct fetch_request *q)
{
    return q->kind == ARTIFACT_S3 || q->kind == ARTIFACT_GCS;
}

/* A repository comes as a directory, with its history. */
static int
fetch_repository(struct fetch *f, struct err *e)
{
    const struct fetch_request *q = f->q;
    const struct repo_wish w = {.kind = (enum artifact_kind)q->kind,
                                .url = q->source,
                                .ref = str_or(q->ref, ""),
                                .depth = q->depth,
                                .sshkey = str_or(q->ssh_key, ""),
                                .insecure = q->insecure,
                                .policy = q->policy,
                                .bytes_max = q->bytes_max,
                                .idle_ms = q->idle_ms,
                                .total_ms = q->total_ms};
    f->final = true;
    f->to = q->shared ? HELPER_FD_SHARED : HELPER_FD_TASK;
    f->path = str_or(q->path, "");
    if (!plain_path(q->path))
        return err_set(e, -ERR_INVALID, "the destination is no plain path");
    if (str_eq(q->mode, "file"))
        return err_set(e, -ERR_INVALID, "a repository is no file: leave mode \"file\" out");
    int r = repo_clone(&w, HELPER_FD_SCRATCH, &f->bytes, &f->final, e);
    auto_fd int tree = r < 0 ? -1 : place_directory(HELPER_FD_SCRATCH, "tree", e);
    auto_fd int part = -1;
    r = r == 0 && tree < 0 ? tree : r;
    if (r == 0)
        r = open_part(f, tree, "repository", &part, e);
    if (r == 0 && part < 0) /* the history of another would be mixed with it */
        r = place_remove(f->to, f->path, w.kind == ARTIFACT_GIT ? ".git" : ".hg", e);
    if (r < 0)
        return r;
    auto_fd int to = place_directory(f->to, f->path, e);
    return to < 0 ? to : place_tree(part >= 0 ? part : tree, to, e);
}

/* Brings all objects whose names begin with `prefix` to the destination. -ERR_NOT_FOUND: there is
 * none. */
static int
fetch_below(struct fetch *f, const char *prefix, struct err *e)
{
    const struct http_wish http = base_wish(f);
    const struct store_wish w = {.http = &http,
                                 .list = f->q->list,
                                 .prefix = prefix,
                                 .files_max = f->q->files_max,
                                 .scratch = HELPER_FD_SCRATCH};
    int64_t files = 0;
    f->final = true;
    f->to = f->q->shared ? HELPER_FD_SHARED : HELPER_FD_TASK;
    if (!plain_path(f->q->path))
        return err_set(e, -ERR_INVALID, "the destination is no plain path");
    if (!str_empty(f->q->checksum))
        return err_set(e, -ERR_INVALID, "checksum cannot be specified for directory download");
    f->final = false;
    auto_fd int tree = place_directory(HELPER_FD_SCRATCH, "tree", e);
    if (tree < 0)
        return tree;
    int r = store_get(&w, tree, &files, &f->bytes, &f->final, e);
    if (r == 0 && files == 0)
        r = err_set(e, -ERR_NOT_FOUND, "there is no object below \"%.200s\"", prefix);
    auto_fd int part = -1;
    if (r == 0)
        r = open_part(f, tree, "bucket", &part, e);
    if (r < 0)
        return r;
    auto_fd int to = place_directory(f->to, str_or(f->q->path, ""), e);
    return to < 0 ? to : place_tree(part >= 0 ? part : tree, to, e);
}

/* Says whether an object's source is a directory without a question. */
static bool
is_below(const struct fetch_request *q)
{
    bool archive = !str_eq(q->archive, "false") &&
                   (!str_empty(q->archive) || artifact_suffix(str_or(q->filename, "")) != NULL);
    return is_store(q) && !str_eq(q->mode, "file") && !archive &&
           (str_empty(q->key) || str_suffix(q->key, "/") || str_eq(q->mode, "dir"));
}

/* The kind of the source, and what it is fetched over. */
static int
check_policy(struct fetch *f, struct err *e)
{
    static const char *const kinds[] = {
        [ARTIFACT_GIT] = "git", [ARTIFACT_HG] = "hg", [ARTIFACT_S3] = "s3", [ARTIFACT_GCS] = "gcs"};
    const struct fetch_request *q = f->q;
    size_t kind = (size_t)q->kind, n = strcspn(str_or(q->source, ""), ":");
    const char *own = kind < ARRAY_LEN(kinds) ? kinds[kind] : NULL;
    int r = own != NULL ? reach_scheme(q->policy, own, e) : 0;
    if (r == 0)
        r = reach_scheme(q->policy, mem_strndup(f->ctx, str_or(q->source, ""), n), e);
    f->final = r < 0;
    return r;
}

static int
fetch_run(struct fetch *f, struct err *e)
{
    const char *key = str_or(f->q->key, "");
    const char *below =
        mem_printf(f->ctx, "%s%s", key, str_empty(key) || str_suffix(key, "/") ? "" : "/");
    f->name = str_or(f->q->filename, "");
    if (check_policy(f, e) < 0)
        return e->code;
    if (f->q->kind == ARTIFACT_GIT || f->q->kind == ARTIFACT_HG)
        return fetch_repository(f, e);
    if (is_below(f->q))
        return fetch_below(f, below, e);
    int r = choose_place(f, e);
    if (r == 0)
        r = find_sum(f, e);
    if (r < 0 || is_there(f))
        return r;
    f->body = open_scratch("body", e);
    if (f->body >= 0 && take_kept(f))
        return fetch_place(f, e);
    r = f->body < 0 ? f->body : fetch_download(f, f->q->source, f->q->bytes_max, f->body, e);
    if (r == -ERR_NOT_FOUND && is_store(f->q) && str_eq(f->q->mode, "any") && f->suffix == NULL) {
        struct err none = ERR_INIT;
        int all = fetch_below(f, below, &none);
        if (all != -ERR_NOT_FOUND) /* else it is the object that is missing */
            *e = none;
        return all != -ERR_NOT_FOUND ? all : r;
    }
    if (r == 0 && f->has_sum)
        r = sum_check(f->body, &f->sum, f->name, e);
    return r < 0 ? r : fetch_place(f, e);
}

static int
fetch_report(const struct fetch *f, const struct err *e)
{
    struct fetch_report report = {.error = e->code != 0 ? e->text : NULL,
                                  .final = e->code != 0 && f->final,
                                  .bytes = f->bytes,
                                  .kept = f->kept};
    auto_buf struct buf b = BUF_INIT(HELPER_REPORT_MAX);
    mp_encode(&b, &type_fetch_report, &report);
    return helper_report(&b);
}

int
main(void)
{
    auto_mem void *ctx = mem_ctx("fetch");
    struct err e = ERR_INIT;
    void *q = NULL;
    struct fetch f = {.ctx = ctx, .body = -1};
    int r = helper_receive(ctx, &type_fetch_request, &q, &e);
    if (r == -ERR_CLOSED) {
        fprintf(stderr, "paddock-fetch is started by paddock-warden, not by hand\n");
        return 1;
    }
    (void)umask(022);
    (void)prctl(PR_SET_DUMPABLE, 0); /* keys are in it, and others have its user */
    for (int fd = HELPER_FD_TALK; fd < HELPER_FD_END; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (r == 0 && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        r = err_set(&e, -ERR_INTERNAL, "libcurl does not start");
    f.q = q;
    if (r == 0)
        (void)fetch_run(&f, &e);
    return fetch_report(&f, &e);
}
