/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources of s3 and gcs. Both have the same requests for an object and for a list of them: those
 * that gcs calls its XML API.
 */
#include <string.h>

#include "api/artifact/artifact.h"
#include "common/mem.h"
#include "common/str.h"

/* "bucket.s3.region", "bucket.s3-region" and the like: the host of a URL without its domain. The
 * bucket is "" where it is in the path. */
static bool
aws_host(const void *ctx, const char *s, size_t n, const char **bucket, const char **region)
{
    const char *last = s + n, *before;
    while (last > s && last[-1] != '.')
        last--;
    size_t k = (size_t)(s + n - last);
    if (k == 2 && memcmp(last, "s3", 2) == 0) {
        *region = str_or(*region, "us-east-1");
        before = last;
    } else if (k > 3 && memcmp(last, "s3-", 3) == 0) {
        *region = mem_strndup(ctx, last + 3, k - 3);
        before = last;
    } else if (last - s == 3 || (last - s > 3 && last[-4] == '.')) {
        before = last - 3;
        if (memcmp(before, "s3.", 3) != 0)
            return false;
        *region = mem_strndup(ctx, last, k);
    } else {
        return false;
    }
    *bucket = before > s ? mem_strndup(ctx, s, (size_t)(before - s) - 1) : "";
    return true;
}

/* Cuts the first part off a path: "a/b" is "a" and "b". */
static const char *
first_part(const void *ctx, const char *path, const char **rest)
{
    size_t n = strcspn(path, "/");
    *rest = path + n + (path[n] == '/');
    return mem_strndup(ctx, path, n);
}

/* The URL of the bucket, with "/" at the end, and the rest of the path: the object's name. */
static const char *
s3_bucket(const void *ctx, const char *scheme, const char *rest, struct artifact_source *ret,
          const char **key, struct err *e)
{
    struct artifact_object *o = &ret->object;
    static const char *const domains[] = {".amazonaws.com", ".amazonaws.com.cn"};
    size_t n = strcspn(rest, "/");
    const char *path = rest + n + (rest[n] == '/');
    for (size_t i = 0; i < ARRAY_LEN(domains); i++) {
        size_t k = strlen(domains[i]);
        const char *bucket = "";
        if (n <= k || memcmp(rest + n - k, domains[i], k) != 0)
            continue;
        if (!aws_host(ctx, rest, n - k, &bucket, &o->region)) {
            (void)err_set(e, -ERR_INVALID, "its host is none of s3: write s3.REGION.amazonaws.com");
            return NULL;
        }
        *key = path;
        if (str_empty(bucket))
            bucket = first_part(ctx, path, key);
        if (str_empty(bucket))
            return "";
        /* a certificate is for one label */
        return strchr(bucket, '.') == NULL
                   ? mem_printf(ctx, "%s://%s.s3.%s%s/", scheme, bucket, o->region, domains[i])
                   : mem_printf(ctx, "%s://s3.%s%s/%s/", scheme, o->region, domains[i], bucket);
    }
    o->region = str_or(o->region, "us-east-1");
    const char *bucket = first_part(ctx, path, key);
    return str_empty(bucket) ? "" : mem_printf(ctx, "%s://%.*s/%s/", scheme, (int)n, rest, bucket);
}

/* "host/storage/v1/bucket/object" */
static const char *
gcs_bucket(const void *ctx, const char *scheme, const char *rest, const char **key, struct err *e)
{
    const char *path, *ignored;
    const char *host = first_part(ctx, rest, &path);
    const char *storage = first_part(ctx, path, &path);
    ignored = first_part(ctx, path, &path);
    if (!str_eq(storage, "storage") || str_empty(ignored)) {
        (void)err_set(e, -ERR_INVALID, "it is not .../storage/v1/BUCKET/OBJECT");
        return NULL;
    }
    const char *bucket = first_part(ctx, path, key);
    if (str_suffix(host, ".googleapis.com"))
        host = "storage.googleapis.com";
    return str_empty(bucket) ? "" : mem_printf(ctx, "%s://%s/%s/", scheme, host, bucket);
}

int
artifact_object(const void *ctx, const char *scheme, const char *rest, struct artifact_source *ret,
                struct err *e)
{
    struct artifact_object *o = &ret->object;
    const char *key = "";
    bool s3 = ret->kind == ARTIFACT_S3;
    const char *list =
        s3 ? s3_bucket(ctx, scheme, rest, ret, &key, e) : gcs_bucket(ctx, scheme, rest, &key, e);
    if (list == NULL)
        return e != NULL && e->code != 0 ? e->code : -ERR_INVALID;
    if (str_empty(list))
        return err_set(e, -ERR_INVALID, "it names no bucket");
    if (!str_empty(o->profile))
        return err_set(e, -ERR_INVALID,
                       "aws_profile: profiles of the node are not read: use "
                       "aws_access_key_id and aws_access_key_secret");
    if (str_empty(o->id) != str_empty(o->secret) || (str_empty(o->id) && !str_empty(o->token)))
        return err_set(e, -ERR_INVALID, "aws_access_key_id and aws_access_key_secret go together");
    for (const char *p = o->region; *p != '\0'; p++)
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789-", *p) == NULL)
            return err_set(e, -ERR_INVALID, "\"%.64s\" is no region", o->region);
    o->list = list;
    o->key = artifact_unescape(ctx, key, strlen(key), false);
    if (o->key == NULL)
        return err_set(e, -ERR_INVALID, "its path is not well escaped");
    const char *version = str_empty(o->version) ? "" : artifact_escape(ctx, o->version, "");
    ret->url = mem_printf(ctx, "%s%s%s%s", list, artifact_escape(ctx, o->key, "/"),
                          str_empty(version) ? ""
                          : s3               ? "?versionId="
                                             : "?generation=",
                          version);
    return 0;
}
