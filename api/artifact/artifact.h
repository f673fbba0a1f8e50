/* SPDX-License-Identifier: Apache-2.0
 *
 * The source of an artifact, `[force::]url[//subdir][?query]` with its options, as go-getter reads
 * it: how it is fetched, and the parameters that are ours and not the server's. Pure.
 */
#ifndef PADDOCK_API_ARTIFACT_ARTIFACT_H
#define PADDOCK_API_ARTIFACT_ARTIFACT_H

#include "codec/codec.h"
#include "common/err.h"

enum artifact_kind {
    ARTIFACT_HTTP, /* https too */
    ARTIFACT_GIT,
    ARTIFACT_HG,
    ARTIFACT_S3,
    ARTIFACT_GCS,
    ARTIFACT_FILE,
    ARTIFACT_OTHER, /* no scheme that is known */
};

enum { ARTIFACT_SOURCE_MAX = 8192, ARTIFACT_DEPTH_MAX = 64, ARTIFACT_NAME_MAX = 255 };

/* An object of s3 or gcs, or all below its name. Texts are never NULL. */
struct artifact_object {
    const char *list; /* URL of its bucket, which tells what is in it */
    const char *key;  /* its name there; "" or with "/" at the end: only what is below */
    const char *region;
    const char *id, *secret, *token; /* to sign with; id "": it is not signed */
    const char *version;             /* or generation; "": the last */
    const char *profile;
};

struct artifact_source { /* owned by the ctx of the call; texts are never NULL */
    enum artifact_kind kind;
    const char *url;      /* as it is sent: without force, subdir and our parameters */
    const char *subdir;   /* of what is fetched; "": all */
    const char *archive;  /* one of artifact_suffixes; "": by the name; "false": none */
    const char *checksum; /* "": none */
    const char *filename; /* asked for, else the last part of the path; "": a directory's path */
    const char *ref;      /* of a repository: branch, tag or revision; "": its default */
    const char *sshkey;   /* private, as base64; "": none */
    const char *depth_text;
    int64_t depth; /* of a clone; 0: all of it */
    struct artifact_object object;
};

/* `options` NULL: none. -ERR_INVALID. */
int artifact_parse(const void *ctx, const char *source, const struct str_map *options,
                   struct artifact_source *ret, struct err *e);
/* Undoes %XX, and + where `plus`. NULL: it is malformed, or hides a byte 0. */
char *artifact_unescape(const void *ctx, const char *s, size_t n, bool plus);
/* Writes all as %XX but letters, digits, "-._~" and what is in `kept`. */
char *artifact_escape(const void *ctx, const char *s, const char *kept);
/* Makes the URLs of an object's source: `scheme`://`rest`, which has neither query nor fragment. */
int artifact_object(const void *ctx, const char *scheme, const char *rest,
                    struct artifact_source *ret, struct err *e);
/* Refuses, by name and with what helps, a source that is not fetched here. */
int artifact_supported(const struct artifact_source *s, struct err *e);
/* Reads "100GB", "512 MiB", "1000" as bytes; 0 is no limit (INT64_MAX). -ERR_INVALID. */
int artifact_size(const char *text, int64_t *ret, struct err *e);
/* Returns the longest suffix of an archive that `name` has, without the dot; NULL: it is none. */
const char *artifact_suffix(const char *name);
/* Says whether the suffix is of a single compressed file, not of a tree. */
bool artifact_single(const char *suffix);

struct artifact_dirs {
    const char *alloc, *task, *secrets; /* NOMAD_ALLOC_DIR and so on, as the task sees them */
};
struct artifact_place {
    bool named;       /* it begins with one of the directories, or is relative */
    bool shared;      /* below the directory of all tasks, else below the task's */
    const char *path; /* of plain components, "" for the directory itself */
};
/* Finds a path below the directories of an allocation: `path` as a job has it, with variables
 * replaced. -ERR_INVALID: it leads elsewhere, in words for artifact_prefix(). */
int artifact_path(const void *ctx, const char *path, const struct artifact_dirs *dirs,
                  struct artifact_place *ret, struct err *e);
/* Puts a name before the words, without a colon, as Nomad has them. */
int artifact_prefix(struct err *e, const char *what);
/* The same of a destination, where nothing may go to secrets/ and to alloc/logs. */
int artifact_place(const void *ctx, const char *path, const struct artifact_dirs *dirs,
                   bool *shared, const char **ret, struct err *e);

enum artifact_hash { ARTIFACT_MD5, ARTIFACT_SHA1, ARTIFACT_SHA256, ARTIFACT_SHA512 };
struct artifact_checksum {
    enum artifact_hash hash;
    char hex[129];    /* lower case */
    const char *file; /* the sums are in the file at this URL, and `hex` is empty; NULL */
};
/* "TYPE:HEX", "HEX", "file:URL". */
int artifact_checksum(const void *ctx, const char *text, struct artifact_checksum *ret,
                      struct err *e);
/* Finds the sum of the file `name` in a text of lines `HASH  NAME`, `HASH *NAME`,
 * `TYPE (NAME) = HASH` or a bare hash. -ERR_NOT_FOUND. */
int artifact_find_sum(const char *text, const char *name, struct artifact_checksum *ret,
                      struct err *e);
const char *artifact_hash_name(enum artifact_hash h); /* "sha256", as OpenSSL has it too */

#endif
