/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources of artifacts, their places, sizes and checksums: api/artifact.
 */
#include <string.h>

#include "api/artifact/artifact.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/test.h"

static struct str_map
options(const void *ctx, const char *k, const char *v)
{
    struct str_map m = {0};
    if (k != NULL)
        str_map_set(ctx, &m, k, v);
    return m;
}

START_TEST(a_source_is_taken_apart)
{
    static const struct {
        const char *source, *k, *v;
        const char *url, *subdir, *archive, *filename, *checksum;
    } rows[] = {
        {"https://x/a/b.tar.gz", NULL, NULL, "https://x/a/b.tar.gz", "", "", "b.tar.gz", ""},
        {"http::https://x/b", NULL, NULL, "https://x/b", "", "", "b", ""},
        {"https://x/a.zip//d/e?k=1", NULL, NULL, "https://x/a.zip?k=1", "d/e", "", "a.zip", ""},
        {"https://x/a?archive=zip&k=%20&filename=n", NULL, NULL, "https://x/a?k=%20", "", "zip", "n",
         ""},
        {"https://x/a?k=1&l=2", "k", "a b&c", "https://x/a?l=2&k=a%20b%26c", "", "", "a", ""},
        {"https://x/a%20b#frag", NULL, NULL, "https://x/a%20b", "", "", "a b", ""},
        {"https://x/a?archive=tar", "archive", "false", "https://x/a", "", "false", "a", ""},
        {"https://x/d/", NULL, NULL, "https://x/d/", "", "", "", ""},
        {"https://x?k", NULL, NULL, "https://x?k", "", "", "", ""},
        {"https://x/a?checksum=file:https://x/sums", NULL, NULL, "https://x/a", "", "", "a",
         "file:https://x/sums"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct artifact_source s;
        struct err e = ERR_INIT;
        struct str_map m = options(ctx, rows[i].k, rows[i].v);
        ck_assert_msg(artifact_parse(ctx, rows[i].source, &m, &s, &e) == 0, "%s", e.text);
        ck_assert_int_eq(s.kind, ARTIFACT_HTTP);
        ck_assert_int_eq(artifact_supported(&s, &e), 0);
        ck_assert_str_eq(s.url, rows[i].url);
        ck_assert_str_eq(s.subdir, rows[i].subdir);
        ck_assert_str_eq(s.archive, rows[i].archive);
        ck_assert_str_eq(s.filename, rows[i].filename);
        ck_assert_str_eq(s.checksum, rows[i].checksum);
    }
}
END_TEST

START_TEST(repositories_are_taken_apart)
{
    static const struct {
        const char *source, *k, *v;
        enum artifact_kind kind;
        const char *url, *subdir, *ref;
        int depth;
    } rows[] = {
        {"github.com/u/r", NULL, NULL, ARTIFACT_GIT, "https://github.com/u/r.git", "", "", 0},
        {"github.com/u/r/a/b?ref=v1&x=y", NULL, NULL, ARTIFACT_GIT,
         "https://github.com/u/r.git?x=y", "a/b", "v1", 0},
        {"gitlab.com/u/r.git//sub", NULL, NULL, ARTIFACT_GIT, "https://gitlab.com/u/r.git", "sub",
         "", 0},
        {"bitbucket.org/u/r/", "depth", "3", ARTIFACT_GIT, "https://bitbucket.org/u/r.git", "", "",
         3},
        {"git@example.org:u/r.git?ref=a/b", "sshkey", "a2V5", ARTIFACT_GIT,
         "ssh://git@example.org/u/r.git", "", "a/b", 0},
        {"git::me@example.org:/u/r", "sshkey", "a2V5", ARTIFACT_GIT, "ssh://me@example.org/u/r", "",
         "", 0},
        {"git::https://x/r.git//d/e?ref=v1&depth=1", NULL, NULL, ARTIFACT_GIT, "https://x/r.git",
         "d/e", "v1", 1},
        {"git::http://x:1/r", "ref", "0123abcd", ARTIFACT_GIT, "http://x:1/r", "", "0123abcd", 0},
        {"ssh://git@x:22/r?sshkey=a2V5", NULL, NULL, ARTIFACT_GIT, "ssh://git@x:22/r", "", "", 0},
        {"hg::http://x/r?rev=tip&ref=x", NULL, NULL, ARTIFACT_HG, "http://x/r?ref=x", "", "tip", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct artifact_source s;
        struct err e = ERR_INIT;
        struct str_map m = options(ctx, rows[i].k, rows[i].v);
        ck_assert_msg(artifact_parse(ctx, rows[i].source, &m, &s, &e) == 0, "%s", e.text);
        ck_assert_int_eq(artifact_supported(&s, &e), 0);
        ck_assert_int_eq(s.kind, rows[i].kind);
        ck_assert_str_eq(s.url, rows[i].url);
        ck_assert_str_eq(s.subdir, rows[i].subdir);
        ck_assert_str_eq(s.ref, rows[i].ref);
        ck_assert_int_eq(s.depth, rows[i].depth);
        ck_assert_str_eq(s.sshkey, str_prefix(s.url, "ssh:") ? "a2V5" : "");
    }
}
END_TEST

START_TEST(objects_are_taken_apart)
{
    static const struct {
        const char *source, *k, *v;
        enum artifact_kind kind;
        const char *url, *list, *key, *region, *filename;
    } rows[] = {
        {"bucket.s3.amazonaws.com/a/key", NULL, NULL, ARTIFACT_S3,
         "https://bucket.s3.us-east-1.amazonaws.com/a/key",
         "https://bucket.s3.us-east-1.amazonaws.com/", "a/key", "us-east-1", "key"},
        {"s3::https://s3-eu-west-1.amazonaws.com/bucket/k%20+:k", NULL, NULL, ARTIFACT_S3,
         "https://bucket.s3.eu-west-1.amazonaws.com/k%20%2B%3Ak",
         "https://bucket.s3.eu-west-1.amazonaws.com/", "k +:k", "eu-west-1", "k +:k"},
        {"s3::https://s3.eu-west-1.amazonaws.com/a.b/k", NULL, NULL, ARTIFACT_S3,
         "https://s3.eu-west-1.amazonaws.com/a.b/k", "https://s3.eu-west-1.amazonaws.com/a.b/", "k",
         "eu-west-1", "k"},
        {"s3::https://my.bucket.s3.eu-west-1.amazonaws.com/d/", NULL, NULL, ARTIFACT_S3,
         "https://s3.eu-west-1.amazonaws.com/my.bucket/d/",
         "https://s3.eu-west-1.amazonaws.com/my.bucket/", "d/", "eu-west-1", ""},
        {"s3::http://minio:9000/b/k?region=here&version=1", NULL, NULL, ARTIFACT_S3,
         "http://minio:9000/b/k?versionId=1", "http://minio:9000/b/", "k", "here", "k"},
        {"s3::http://minio:9000/b", "region", "there", ARTIFACT_S3, "http://minio:9000/b/",
         "http://minio:9000/b/", "", "there", "b"},
        {"www.googleapis.com/storage/v1/b/o/p#12", NULL, NULL, ARTIFACT_GCS,
         "https://storage.googleapis.com/b/o/p?generation=12", "https://storage.googleapis.com/b/",
         "o/p", "", "p"},
        {"gcs::http://fake:1/storage/v1/b/o", NULL, NULL, ARTIFACT_GCS, "http://fake:1/b/o",
         "http://fake:1/b/", "o", "", "o"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct artifact_source s;
        struct err e = ERR_INIT;
        struct str_map m = options(ctx, rows[i].k, rows[i].v);
        ck_assert_msg(artifact_parse(ctx, rows[i].source, &m, &s, &e) == 0, "%s", e.text);
        ck_assert_int_eq(artifact_supported(&s, &e), 0);
        ck_assert_int_eq(s.kind, rows[i].kind);
        ck_assert_str_eq(s.url, rows[i].url);
        ck_assert_str_eq(s.object.list, rows[i].list);
        ck_assert_str_eq(s.object.key, rows[i].key);
        ck_assert_str_eq(s.object.region, rows[i].region);
        ck_assert_str_eq(s.filename, rows[i].filename);
    }
}
END_TEST

START_TEST(what_fetches_it_is_found)
{
    static const struct {
        const char *source;
        enum artifact_kind kind;
        const char *why;
    } rows[] = {
        {"./here", ARTIFACT_FILE, "scheme 'file'"},
        {"file:///etc/passwd", ARTIFACT_FILE, "scheme 'file'"},
        {"file::/etc/passwd", ARTIFACT_FILE, "scheme 'file'"},
        {"ftp://x/y", ARTIFACT_OTHER, "no scheme"},
        {"rar::https://x/y", ARTIFACT_OTHER, "no scheme"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct artifact_source s;
        struct err e = ERR_INIT;
        ck_assert_msg(artifact_parse(ctx, rows[i].source, NULL, &s, &e) == 0, "%s", e.text);
        ck_assert_msg(s.kind == rows[i].kind, "%s: %d", rows[i].source, s.kind);
        ck_assert_int_lt(artifact_supported(&s, &e), 0);
        ck_assert_msg(strstr(e.text, rows[i].why) != NULL, "%s", e.text);
    }
}
END_TEST

START_TEST(bad_sources_are_refused)
{
    static const char *const rows[] = {
        "",
        "http://",
        "https:///x",
        "https://x/a b",
        "https://x/\n",
        "http::x/y",
        "https://x/a%2fb",
        "https://x/..",
        "https://x/%00",
        "https://x/%4",
        "https://x/a.tar//../b",
        "https://x/a.tar//*",
        "https://x/a?archive=rar",
        "https://x/a?checksum=md5:0",
        "https://x/a?checksum=file:/etc/passwd",
        "http::file:///x",
        "https://x/a?filename=b/c",
        "https://x/a?filename=%01",
        "git::file:///x",
        "github.com/u",
        "github.com/",
        "git::/x",
        "git::git://x/y",
        "git::ext::sh",
        "git@x:r",
        "ssh://git@x/r",
        "git::https://-x/r",
        "git::https://x/r?ref=-x",
        "git::https://x/r?ref=a:b",
        "git::https://x/r?depth=-1",
        "git::https://x/r?depth=x",
        "git::https://x/r?sshkey=a2V5",
        "git::ssh://x/r?sshkey=!",
        "git::https://x/r?checksum=md5:0",
        "git::https://x/r//../y",
        "hg::ssh://x/y",
        "s3::https://s3.amazonaws.com/",
        "s3::https://x.amazonaws.com/b/k",
        "s3::ftp://x/b/k",
        "s3::http://x/b/k?region=A%20B",
        "s3::http://x/b/k?aws_access_key_id=x",
        "s3::http://x/b/k?aws_access_token=x",
        "s3::http://x/b/k?aws_profile=x",
        "gcs::https://www.googleapis.com/b/o",
        "gcs::https://x/storage/v1/",
        "s3::http://x/b/%zz",
    };
    for (size_t i = 1; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct artifact_source s;
        struct err e = ERR_INIT;
        ck_assert_msg(artifact_parse(ctx, rows[i], NULL, &s, &e) < 0, "%s", rows[i]);
        ck_assert_msg(str_prefix(e.text, "failed to parse source URL \""), "%s", e.text);
    }
}
END_TEST

START_TEST(a_destination_is_in_the_allocation)
{
    static const struct artifact_dirs inside = {"/alloc", "/local", "/secrets"};
    static const struct artifact_dirs outside = {"/d/alloc/ID/alloc", "/d/alloc/ID/t/local",
                                                 "/d/alloc/ID/t/secrets"};
    static const struct {
        const struct artifact_dirs *dirs;
        const char *path, *want; /* NULL: refused */
        bool shared;
    } rows[] = {
        {&inside, "local/", "local", false},
        {&inside, "", "", false},
        {&inside, "/local/x/./y/../z", "local/x/z", false},
        {&inside, "/alloc/data", "data", true},
        {&inside, "../alloc/data", "data", true},
        {&inside, "/x", "x", false},
        {&inside, "../alloc/../../x", NULL, false},
        {&inside, "../other/x", NULL, false},
        {&inside, "..", NULL, false},
        {&inside, "../..", NULL, false},
        {&inside, "/alloc/../x", NULL, false},
        {&inside, "/secrets/x", NULL, false},
        {&inside, "secrets", NULL, false},
        {&inside, "/alloc/logs/x", NULL, false},
        {&inside, "/localx", "localx", false},
        {&inside, "a\nb", NULL, false},
        {&outside, "/d/alloc/ID/t/local/x", "local/x", false},
        {&outside, "/d/alloc/ID/alloc/data", "data", true},
        {&outside, "/d/alloc/ID/t/local/../../../x", NULL, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct err e = ERR_INIT;
        const char *got = NULL;
        bool shared = false;
        int r = artifact_place(ctx, rows[i].path, rows[i].dirs, &shared, &got, &e);
        ck_assert_msg((r == 0) == (rows[i].want != NULL), "%s: %s", rows[i].path, str_or(got, ""));
        if (r < 0)
            continue;
        ck_assert_str_eq(got, rows[i].want);
        ck_assert_int_eq(shared, rows[i].shared);
    }
}
END_TEST

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define MD5 "0123456789abcdef0123456789abcdef"

START_TEST(sums_are_found)
{
    static const struct {
        const char *text;
        int hash; /* -1: none */
    } rows[] = {
        {SHA "  f\n", ARTIFACT_SHA256},
        {"x y\n\n" SHA " *f\r\n", ARTIFACT_SHA256},
        {MD5 "  ./f", ARTIFACT_MD5},
        {MD5 "  /abs/f", ARTIFACT_MD5},
        {"SHA256 (f) = " SHA "\n", ARTIFACT_SHA256},
        {"MD5 (d/f) = " MD5, ARTIFACT_MD5},
        {SHA "\n", ARTIFACT_SHA256},
        {SHA "  g\n", -1},
        {"MD5 (f) = " SHA "\n", -1},
        {"SHA256 (g) = " SHA "\n", -1},
        {"", -1},
        {"(f) = ", -1},
        {"SHA256 (", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct artifact_checksum c;
        struct err e = ERR_INIT;
        int r = artifact_find_sum(rows[i].text, "f", &c, &e);
        ck_assert_msg((r == 0) == (rows[i].hash >= 0), "%s", rows[i].text);
        ck_assert(r < 0 || (int)c.hash == rows[i].hash);
        ck_assert(r < 0 || str_eq(c.hex, rows[i].hash == ARTIFACT_MD5 ? MD5 : SHA));
    }
}
END_TEST

START_TEST(sizes_are_read)
{
    static const struct {
        const char *text;
        int64_t want; /* -1: refused */
    } rows[] = {{"100GB", 100000000000}, {"512 MiB", 512 << 20}, {"7", 7},    {"0", INT64_MAX},
                {"1k", 1000},            {"2KiB", 2048},         {"", -1},    {"GB", -1},
                {"1XB", -1},             {"-1", -1},             {"1GBx", -1}, {"9999999999TB", -1}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = ERR_INIT;
        int64_t got = -1;
        int r = artifact_size(rows[i].text, &got, &e);
        ck_assert_msg((r == 0) == (rows[i].want >= 0) && got == rows[i].want, "\"%s\": %lld",
                      rows[i].text, (long long)got);
    }
}
END_TEST

START_TEST(suffixes_are_of_archives)
{
    ck_assert_str_eq(artifact_suffix("a.tar.gz"), "tar.gz");
    ck_assert_str_eq(artifact_suffix("a.tgz"), "tgz");
    ck_assert_str_eq(artifact_suffix("a.gz"), "gz");
    ck_assert_ptr_null(artifact_suffix("a.rar"));
    ck_assert_ptr_null(artifact_suffix(".gz"));
    ck_assert_ptr_null(artifact_suffix("targz"));
    ck_assert(artifact_single("xz") && !artifact_single("txz"));
}
END_TEST

TEST_SUITE("artifact", a_source_is_taken_apart, repositories_are_taken_apart,
           objects_are_taken_apart, what_fetches_it_is_found, bad_sources_are_refused,
           a_destination_is_in_the_allocation, sums_are_found, sizes_are_read,
           suffixes_are_of_archives)
