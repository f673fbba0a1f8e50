/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of artifact.h, in this order: suffixes; the source (its kind, the part of
 * an archive, the query with the options that are ours, the name of the file, repositories); sizes;
 * places; checksums. Nothing is looked up or opened: registration, the client and the helper that
 * fetches read a source alike.
 */
#include "api/artifact/artifact.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "codec/base64.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

/* --- words --- */

static const char *const suffixes[] = {"tar.bz2", "tar.zst", "tar.gz", "tar.xz", "tbz2",
                                       "tzst",    "tgz",     "txz",    "tar",    "zip",
                                       "bz2",     "zst",     "gz",     "xz"};

const char *
artifact_suffix(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        size_t k = strlen(suffixes[i]);
        if (n > k + 1 && name[n - k - 1] == '.' && str_eq(name + n - k, suffixes[i]))
            return suffixes[i];
    }
    return NULL;
}

bool
artifact_single(const char *suffix)
{
    return str_eq(suffix, "gz") || str_eq(suffix, "bz2") || str_eq(suffix, "xz") ||
           str_eq(suffix, "zst");
}

static bool
known_suffix(const char *s)
{
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (str_eq(s, suffixes[i]))
            return true;
    return false;
}

static void
put_escaped(struct buf *b, const char *s)
{
    auto_mem void *tmp = mem_ctx("escaped");
    const char *text = artifact_escape(tmp, s, "/:");
    buf_put(b, text, strlen(text));
}

/* --- the source --- */

static enum artifact_kind
kind_of(const char *name)
{
    static const struct {
        const char *name;
        enum artifact_kind kind;
    } rows[] = {{"http", ARTIFACT_HTTP}, {"https", ARTIFACT_HTTP}, {"git", ARTIFACT_GIT},
                {"ssh", ARTIFACT_GIT},   {"hg", ARTIFACT_HG},      {"s3", ARTIFACT_S3},
                {"gcs", ARTIFACT_GCS},   {"file", ARTIFACT_FILE}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcasecmp(rows[i].name, name) == 0)
            return rows[i].kind;
    return ARTIFACT_OTHER;
}

/* A source without a scheme. */
static enum artifact_kind
detect_kind(const char *s)
{
    const char *colon = strchr(s, ':'), *slash = strchr(s, '/');
    if (str_prefix(s, "github.com/") || str_prefix(s, "gitlab.com/") ||
        str_prefix(s, "bitbucket.org/"))
        return ARTIFACT_GIT;
    if (str_prefix(s, "git@") && colon != NULL && (slash == NULL || colon < slash))
        return ARTIFACT_GIT;
    if (strstr(s, ".amazonaws.com/") != NULL)
        return ARTIFACT_S3;
    return strstr(s, ".googleapis.com/") != NULL ? ARTIFACT_GCS : ARTIFACT_FILE;
}

static size_t
word_length(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || (n > 0 && strchr("+-.", s[n]) != NULL && s[n] != '\0'))
        n++;
    return n;
}

/* Cuts "//subdir" off the path, which begins behind the host. */
static int
cut_subdir(const void *ctx, char *rest, struct artifact_source *ret, struct err *e)
{
    char *path = strchr(rest, '/'), *cut = path != NULL ? strstr(path, "//") : NULL;
    ret->subdir = "";
    if (cut == NULL)
        return 0;
    *cut = '\0';
    const char *sub = artifact_unescape(ctx, cut + 2, strlen(cut + 2), false);
    if (sub == NULL)
        return err_set(e, -ERR_INVALID, "the part behind // is not well escaped");
    unsigned depth = 0;
    for (const char *p = sub; *p != '\0';) {
        size_t n = strcspn(p, "/");
        if (n == 2 && memcmp(p, "..", 2) == 0)
            return err_set(e, -ERR_INVALID, "the part behind // has \"..\"");
        if (++depth > ARTIFACT_DEPTH_MAX)
            return err_set(e, -ERR_INVALID, "the part behind // is deeper than %d",
                           ARTIFACT_DEPTH_MAX);
        p += n;
        p += strspn(p, "/");
    }
    if (strpbrk(sub, "*?[") != NULL)
        return err_set(e, -ERR_INVALID, "patterns behind // are not known here: name the part");
    ret->subdir = sub;
    return 0;
}

/* Says whether the parameter is one of ours, which is then in its place. */
static bool
take_option(struct artifact_source *ret, const char *key, const char *value)
{
    enum { ANY = -1 };
    const struct {
        const char *name;
        int kind;
        const char **place;
    } rows[] = {{"archive", ANY, &ret->archive},
                {"checksum", ANY, &ret->checksum},
                {"filename", ANY, &ret->filename},
                {"ref", ARTIFACT_GIT, &ret->ref},
                {"rev", ARTIFACT_HG, &ret->ref},
                {"sshkey", ARTIFACT_GIT, &ret->sshkey},
                {"depth", ARTIFACT_GIT, &ret->depth_text},
                {"region", ARTIFACT_S3, &ret->object.region},
                {"version", ARTIFACT_S3, &ret->object.version},
                {"aws_access_key_id", ARTIFACT_S3, &ret->object.id},
                {"aws_access_key_secret", ARTIFACT_S3, &ret->object.secret},
                {"aws_access_token", ARTIFACT_S3, &ret->object.token},
                {"aws_profile", ARTIFACT_S3, &ret->object.profile}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (str_eq(rows[i].name, key) && (rows[i].kind == ANY || rows[i].kind == (int)ret->kind)) {
            *rows[i].place = value;
            return true;
        }
    return false;
}

static int
merge_query(const void *ctx, const char *query, const struct str_map *options, struct buf *out,
            struct artifact_source *ret, struct err *e)
{
    bool any = false;
    for (const char *p = query; *p != '\0';) {
        size_t n = strcspn(p, "&"), k = 0;
        while (k < n && p[k] != '=')
            k++;
        const char *key = artifact_unescape(ctx, p, k, true);
        const char *value = k < n ? artifact_unescape(ctx, p + k + 1, n - k - 1, true) : "";
        if (key == NULL || value == NULL)
            return err_set(e, -ERR_INVALID, "the query is not well escaped");
        bool replaced = options != NULL && str_map_get(options, key) != NULL;
        if (n > 0 && !replaced && !take_option(ret, key, value)) {
            buf_put(out, any ? "&" : "?", 1);
            buf_put(out, p, n);
            any = true;
        }
        p += n;
        p += *p == '&';
    }
    for (size_t i = 0; options != NULL && i < options->n; i++) {
        const struct str_pair *o = &options->v[i];
        if (take_option(ret, o->k, str_or(o->v, "")))
            continue;
        buf_put(out, any ? "&" : "?", 1);
        put_escaped(out, o->k);
        buf_put(out, "=", 1);
        put_escaped(out, str_or(o->v, ""));
        any = true;
    }
    return 0;
}

static int
find_filename(const void *ctx, const char *rest, struct artifact_source *ret, struct err *e)
{
    if (ret->filename == NULL) {
        const char *path = strchr(rest, '/'), *last = path != NULL ? strrchr(path, '/') + 1 : "";
        ret->filename = artifact_unescape(ctx, last, strcspn(last, "#"), false);
    }
    const char *f = ret->filename;
    if (f == NULL || strlen(f) > ARTIFACT_NAME_MAX || strchr(f, '/') != NULL || str_eq(f, ".") ||
        str_eq(f, ".."))
        return err_set(e, -ERR_INVALID, "no file can have its name: set the option \"filename\"");
    for (const char *p = f; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return err_set(e, -ERR_INVALID, "the file's name has control characters");
    return 0;
}

static bool
starts_with_colon_path(const char *s)
{
    size_t n = strcspn(s, ":/?");
    return s[n] == ':' && memchr(s, '@', n) != NULL;
}

/* Writes a repository's short name as the URL that it stands for: "github.com/a/b/sub" and
 * "git@host:path". NULL: it is neither. Bitbucket has no hg any more, so it is not asked which. */
static const char *
repository_url(const void *ctx, const char *s, const char *force)
{
    static const char *const hosts[] = {"github.com/", "gitlab.com/", "bitbucket.org/"};
    for (size_t i = 0; i < ARRAY_LEN(hosts) && force == NULL; i++) {
        if (!str_prefix(s, hosts[i]))
            continue;
        size_t user = strlen(hosts[i]), path = strcspn(s, "?#");
        size_t name = user + strcspn(s + user, "/?#");
        if (s[name] != '/' || name == user)
            return NULL;
        size_t end = name + 1 + strcspn(s + name + 1, "/?#");
        const char *dot = end > 4 && memcmp(s + end - 4, ".git", 4) == 0 ? "" : ".git";
        const char *sub = s + end + strspn(s + end, "/");
        size_t sub_n = sub < s + path ? (size_t)(s + path - sub) : 0;
        return end == name + 1 ? NULL
                               : mem_printf(ctx, "https://%.*s%s%s%.*s%s", (int)end, s, dot,
                                            sub_n > 0 ? "//" : "", (int)sub_n, sub, s + path);
    }
    if (!starts_with_colon_path(s) || (force == NULL && !str_prefix(s, "git@")))
        return NULL;
    size_t host = strcspn(s, ":");
    return mem_printf(ctx, "ssh://%.*s/%s", (int)host, s, s + host + 1 + (s[host + 1] == '/'));
}

/* Says whether git takes it for a name and not for an option, a pattern or a pair of names. */
static bool
plain_ref(const char *ref)
{
    for (const char *p = ref; *p != '\0'; p++)
        if ((unsigned char)*p <= ' ' || strchr(":*?[\\\177", *p) != NULL)
            return false;
    return ref[0] != '-' && ref[0] != '+' && strlen(ref) <= ARTIFACT_NAME_MAX;
}

static int
check_repository(struct artifact_source *s, struct err *e)
{
    enum { DEPTH_MAX = 1000000000 };
    uint64_t depth = 0;
    bool ssh = str_prefix(s->url, "ssh://");
    if (!plain_ref(s->ref))
        return err_set(e, -ERR_INVALID, "\"%.100s\" is no name of a branch, tag or revision",
                       s->ref);
    if (!str_empty(s->depth_text) &&
        (num_parse_u64(s->depth_text, &depth) < 0 || depth > DEPTH_MAX))
        return err_set(e, -ERR_INVALID, "depth \"%.32s\" is no number of commits", s->depth_text);
    s->depth = (int64_t)depth;
    if (!str_empty(s->checksum))
        return err_set(e, -ERR_INVALID,
                       "checksum cannot be specified for directory download: name a commit");
    if (ssh && str_empty(s->sshkey))
        return err_set(e, -ERR_INVALID,
                       "a repository over ssh needs the option sshkey: keys of "
                       "the node are not used");
    if (!ssh && !str_empty(s->sshkey))
        return err_set(e, -ERR_INVALID, "the option sshkey is for ssh:// alone");
    auto_mem void *tmp = mem_ctx("key");
    size_t n = strlen(s->sshkey), k = 0;
    uint8_t *key = mem_array(tmp, uint8_t, n + 3);
    if (n > 0 && base64_decode(s->sshkey, n, key, &k) < 0)
        return err_set(e, -ERR_INVALID, "the option sshkey is no base64");
    return 0;
}

/* Ours are said to be wrong at registration, not at the node. */
static int
check_options(struct artifact_source *s, struct err *e)
{
    struct artifact_checksum sum;
    if (s->kind == ARTIFACT_GIT || s->kind == ARTIFACT_HG)
        return check_repository(s, e);
    if (!str_empty(s->archive) && !str_eq(s->archive, "false") && !known_suffix(s->archive))
        return err_set(e, -ERR_INVALID, "archive \"%.32s\" is none of tar, tar.gz, tar.bz2, "
                                        "tar.xz, tar.zst, zip, gz, bz2, xz, zst, false",
                       s->archive);
    auto_mem void *tmp = mem_ctx("checksum");
    return str_empty(s->checksum) ? 0 : artifact_checksum(tmp, s->checksum, &sum, e);
}

/* The schemes that a kind is fetched over. */
static int
check_scheme(const char *scheme, const struct artifact_source *s, struct err *e)
{
    static const char *const names[] = {
        [ARTIFACT_HG] = "hg", [ARTIFACT_S3] = "s3", [ARTIFACT_GCS] = "gcs"};
    bool http = kind_of(scheme) == ARTIFACT_HTTP;
    switch (s->kind) {
    case ARTIFACT_HTTP:
        return http ? 0
                    : err_set(e, -ERR_INVALID, "its scheme \"%.16s\" is not http or https", scheme);
    case ARTIFACT_GIT:
        return http || str_eq(scheme, "ssh")
                   ? 0
                   : err_set(e, -ERR_INVALID,
                             "git is spoken over https, http and ssh, not over \"%.16s\"", scheme);
    default:
        return http ? 0
                    : err_set(e, -ERR_INVALID,
                              "%s is spoken over https and http, not over \"%.16s\"",
                              names[s->kind], scheme);
    }
}

static int
parse_url(const void *ctx, const char *s, const char *force, const struct str_map *options,
          struct artifact_source *ret, struct err *e)
{
    const char *written =
        force == NULL || str_eq(force, "git") ? repository_url(ctx, s, force) : NULL;
    ret->kind = written != NULL ? ARTIFACT_GIT : force != NULL ? kind_of(force) : ARTIFACT_OTHER;
    s = written != NULL ? written : s;
    size_t n = word_length(s);
    enum artifact_kind store = force != NULL ? kind_of(force) : detect_kind(s);
    if (!str_prefix(s + n, "://") && (store == ARTIFACT_S3 || store == ARTIFACT_GCS)) {
        s = mem_printf(ctx, "https://%s", s);
        force = store == ARTIFACT_S3 ? "s3" : "gcs";
        n = strlen("https");
    }
    if (!str_prefix(s + n, "://")) {
        ret->kind = force != NULL ? kind_of(force) : detect_kind(s);
        ret->url = s;
        if (ret->kind == ARTIFACT_GIT && force == NULL)
            return err_set(e, -ERR_INVALID, "it names no repository: write host/user/repository");
        return ret->kind <= ARTIFACT_HG ? err_set(e, -ERR_INVALID, "it has no http:// or https://")
                                        : 0;
    }
    const char *scheme = mem_strndup(ctx, s, n);
    if (written == NULL)
        ret->kind = kind_of(force != NULL ? force : scheme);
    ret->url = s;
    if (ret->kind > ARTIFACT_GCS)
        return 0;
    int r = check_scheme(scheme, ret, e);
    char *rest = mem_strdup(ctx, s + n + 3);
    char *fragment = rest + strcspn(rest, "#");
    if (*fragment != '\0' && ret->kind == ARTIFACT_GCS)
        ret->object.version = mem_strdup(ctx, fragment + 1);
    *fragment = '\0';
    char *query = strchr(rest, '?');
    if (query != NULL)
        *query++ = '\0';
    if (r == 0 && (rest[0] == '\0' || rest[0] == '/' || rest[0] == '-'))
        return err_set(e, -ERR_INVALID, "it names no host");
    if (r == 0)
        r = cut_subdir(ctx, rest, ret, e);
    auto_buf struct buf out = BUF_INIT(2 * ARTIFACT_SOURCE_MAX);
    ret->filename = NULL;
    if (r == 0)
        r = merge_query(ctx, str_or(query, ""), options, &out, ret, e);
    bool repository = ret->kind == ARTIFACT_GIT || ret->kind == ARTIFACT_HG;
    if (r == 0 && !repository)
        r = find_filename(ctx, rest, ret, e);
    if (r == 0 && buf_error(&out) < 0)
        r = err_set(e, -ERR_INVALID, "its query is too long");
    if (r < 0)
        return r;
    ret->filename = str_or(ret->filename, "");
    ret->url = mem_printf(ctx, "%s://%s%.*s", scheme, rest, (int)out.len, (const char *)out.data);
    if (ret->kind == ARTIFACT_S3 || ret->kind == ARTIFACT_GCS)
        r = artifact_object(ctx, scheme, rest, ret, e);
    return r < 0 ? r : check_options(ret, e);
}

int
artifact_parse(const void *ctx, const char *source, const struct str_map *options,
               struct artifact_source *ret, struct err *e)
{
    *ret = (struct artifact_source){.url = "", .subdir = "", .archive = "", .checksum = ""};
    ret->filename = ret->ref = ret->sshkey = ret->depth_text = "";
    ret->object = (struct artifact_object){"", "", "", "", "", "", "", ""};
    int r = 0;
    for (const char *p = source; *p != '\0' && r == 0; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            r = err_set(e, -ERR_INVALID, "it has blanks or control characters: write %%20");
    if (r == 0 && strlen(source) > ARTIFACT_SOURCE_MAX)
        r = err_set(e, -ERR_INVALID, "it is longer than %d bytes", ARTIFACT_SOURCE_MAX);
    size_t n = word_length(source);
    const char *force = NULL;
    if (r == 0 && n > 0 && str_prefix(source + n, "::")) {
        force = mem_strndup(ctx, source, n);
        source += n + 2;
    }
    if (r == 0)
        r = parse_url(ctx, source, force, options, ret, e);
    if (r < 0)
        err_prefix(e, "failed to parse source URL \"%.200s\"", source);
    return r;
}

int
artifact_supported(const struct artifact_source *s, struct err *e)
{
    switch (s->kind) {
    case ARTIFACT_FILE:
        return err_set(e, -ERR_INVALID,
                       "download not supported for scheme 'file': \"%.200s\" needs http:// or "
                       "https://",
                       s->url);
    case ARTIFACT_OTHER:
        return err_set(e, -ERR_INVALID, "\"%.200s\" has no scheme that is known: use http:// or "
                                        "https://",
                       s->url);
    default:
        return 0;
    }
}

int
artifact_size(const char *text, int64_t *ret, struct err *e)
{
    int64_t v = 0;

    if (num_parse_size(text, &v) < 0)
        return err_set(e, -ERR_INVALID, "\"%.32s\" is no size such as 100GB or 512MiB", text);
    *ret = v > 0 ? v : INT64_MAX;
    return 0;
}

/* --- places --- */

/* Returns what follows `dir` in `path`; NULL: it is not below it. */
static const char *
place_below(const char *path, const char *dir)
{
    size_t n = dir != NULL ? strlen(dir) : 0;
    while (n > 1 && dir[n - 1] == '/')
        n--;
    return n > 1 && strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n
                                                                                      : NULL;
}

/* "TASK/a/b" from the task's directory: ".." at its top is that of the allocation. */
static int
place_normalize(const void *ctx, const char *path, bool *shared, const char **ret)
{
    const char *parts[ARTIFACT_DEPTH_MAX + 2];
    size_t n = 0;
    bool above = false; /* in the allocation's directory */
    for (const char *p = path; *p != '\0';) {
        size_t k = strcspn(p, "/");
        bool up = k == 2 && memcmp(p, "..", 2) == 0;
        if (up && n > 0) {
            n--;
        } else if (up && !*shared && !above) {
            above = true;
        } else if (up && *shared) {
            *shared = false;
            above = true;
        } else if (up) {
            return -ERR_INVALID;
        } else if (above && k > 0 && !(k == 1 && *p == '.')) {
            if (k != 5 || memcmp(p, "alloc", 5) != 0)
                return -ERR_INVALID;
            *shared = true;
            above = false;
        } else if (k > 0 && !(k == 1 && *p == '.')) {
            if (n == ARTIFACT_DEPTH_MAX || k > ARTIFACT_NAME_MAX)
                return -ERR_INVALID;
            parts[n++] = mem_strndup(ctx, p, k);
        }
        p += k;
        p += *p == '/';
    }
    if (above)
        return -ERR_INVALID;
    const char *out = "";
    for (size_t i = 0; i < n; i++)
        out = mem_printf(ctx, "%s%s%s", out, i > 0 ? "/" : "", parts[i]);
    *ret = out;
    return 0;
}

int
artifact_path(const void *ctx, const char *path, const struct artifact_dirs *dirs,
              struct artifact_place *ret, struct err *e)
{
    const char *task = place_below(path, dirs->task), *alloc = place_below(path, dirs->alloc),
               *secrets = place_below(path, dirs->secrets);
    ret->shared = alloc != NULL;
    ret->named = alloc != NULL || task != NULL || secrets != NULL || path[0] != '/';
    const char *from = alloc != NULL     ? alloc
                       : task != NULL    ? mem_printf(ctx, "local%s", task)
                       : secrets != NULL ? mem_printf(ctx, "secrets%s", secrets)
                                         : path;
    for (const char *p = from; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return err_set(e, -ERR_INVALID, "has control characters");
    if (place_normalize(ctx, from, &ret->shared, &ret->path) < 0)
        return err_set(e, -ERR_INVALID, "path escapes alloc directory");
    return 0;
}

int
artifact_prefix(struct err *e, const char *what)
{
    if (e == NULL)
        return -ERR_INVALID;
    struct err why = *e;
    err_clear(e);
    return err_set(e, why.code, "%s %s", what, why.text);
}

int
artifact_place(const void *ctx, const char *path, const struct artifact_dirs *dirs, bool *shared,
               const char **ret, struct err *e)
{
    struct artifact_place at;
    if (artifact_path(ctx, path, dirs, &at, e) < 0)
        return artifact_prefix(e, "artifact destination");
    *shared = at.shared;
    *ret = at.path;
    if (!*shared && (str_eq(*ret, "secrets") || str_prefix(*ret, "secrets/")))
        return err_set(e, -ERR_INVALID, "artifact destination is in secrets/, which is memory that "
                                        "is made when the task starts: use local/");
    if (*shared && (str_eq(*ret, "logs") || str_prefix(*ret, "logs/")))
        return err_set(e, -ERR_INVALID,
                       "artifact destination is in alloc/logs, where only logs go");
    return 0;
}

/* --- checksums --- */

static const struct {
    const char *name;
    size_t digits;
} hashes[] = {[ARTIFACT_MD5] = {"md5", 32},
              [ARTIFACT_SHA1] = {"sha1", 40},
              [ARTIFACT_SHA256] = {"sha256", 64},
              [ARTIFACT_SHA512] = {"sha512", 128}};

const char *
artifact_hash_name(enum artifact_hash h)
{
    return hashes[h].name;
}

/* `type` NULL: by the length. */
static bool
parse_sum(const char *type, size_t type_n, const char *hex, size_t n, struct artifact_checksum *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(hashes); i++) {
        if (hashes[i].digits != n ||
            (type != NULL && (strlen(hashes[i].name) != type_n ||
                              strncasecmp(type, hashes[i].name, type_n) != 0)))
            continue;
        for (size_t k = 0; k < n; k++) {
            if (!isxdigit((unsigned char)hex[k]))
                return false;
            ret->hex[k] = (char)tolower((unsigned char)hex[k]);
        }
        ret->hex[n] = '\0';
        ret->hash = (enum artifact_hash)i;
        return true;
    }
    return false;
}

int
artifact_checksum(const void *ctx, const char *text, struct artifact_checksum *ret, struct err *e)
{
    *ret = (struct artifact_checksum){.hex = ""};
    if (str_prefix(text, "file:")) {
        ret->file = mem_strdup(ctx, text + strlen("file:"));
        if (!str_prefix(ret->file, "http://") && !str_prefix(ret->file, "https://"))
            return err_set(e, -ERR_INVALID, "checksum \"%.100s\": a file of checksums is named by "
                                            "file:https://...",
                           text);
        return 0;
    }
    const char *colon = strchr(text, ':');
    const char *hex = colon != NULL ? colon + 1 : text;
    if (!parse_sum(colon != NULL ? text : NULL, colon != NULL ? (size_t)(colon - text) : 0, hex,
                   strlen(hex), ret))
        return err_set(e, -ERR_INVALID,
                       "checksum \"%.150s\" is not TYPE:DIGITS with md5, sha1, sha256 or sha512 "
                       "and as many hexadecimal digits as that has",
                       text);
    return 0;
}

static bool
same_file(const char *s, size_t n, const char *name)
{
    if (n > 0 && *s == '*') {
        s++;
        n--;
    }
    for (size_t i = n; i > 0; i--)
        if (s[i - 1] == '/') {
            s += i;
            n -= i;
            break;
        }
    return n == strlen(name) && memcmp(s, name, n) == 0;
}

/* Reads a line, whose end is left out. */
static bool
line_sum(const char *s, size_t n, const char *name, struct artifact_checksum *ret)
{
    size_t k = 0;
    while (k < n && s[k] != ' ' && s[k] != '\t')
        k++;
    if (k == n)
        return parse_sum(NULL, 0, s, n, ret);
    size_t rest = k;
    while (rest < n && (s[rest] == ' ' || s[rest] == '\t'))
        rest++;
    if (s[rest] != '(' || rest == n)
        return same_file(s + rest, n - rest, name) && parse_sum(NULL, 0, s, k, ret);
    size_t close = n;
    while (close > rest && s[close - 1] != ')')
        close--;
    if (close <= rest + 1 || n - close < 3 || memcmp(s + close, " = ", 3) != 0)
        return false;
    return same_file(s + rest + 1, close - rest - 2, name) &&
           parse_sum(s, k, s + close + 3, n - close - 3, ret);
}

int
artifact_find_sum(const char *text, const char *name, struct artifact_checksum *ret, struct err *e)
{
    *ret = (struct artifact_checksum){.hex = ""};
    for (const char *p = text; *p != '\0';) {
        size_t n = strcspn(p, "\n"), k = n;
        while (k > 0 && (p[k - 1] == '\r' || p[k - 1] == ' '))
            k--;
        if (k > 0 && line_sum(p, k, name, ret))
            return 0;
        p += n;
        p += *p == '\n';
    }
    return err_set(e, -ERR_NOT_FOUND, "no checksum found in checksum file for \"%.255s\"", name);
}
