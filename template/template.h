/* SPDX-License-Identifier: Apache-2.0
 *
 * Go's text/template, with the functions of the command line's -t or of a task's template block.
 * Pure: no files, no clock, no environment. What a template needs from outside, it asks its caller
 * for; a template that is hostile ends at a limit, with words.
 *
 *   template_parse()  text -> tree. Unknown and refused functions are found here.
 *   template_exec()   tree, limits, answers -> text, or what it waits for, or a mistake
 */
#ifndef PADDOCK_TEMPLATE_TEMPLATE_H
#define PADDOCK_TEMPLATE_TEMPLATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "codec/value.h"
#include "common/buf.h"
#include "common/err.h"

/* Which functions a text may call. */
enum template_table {
    TEMPLATE_CLI, /* -t: Go's own */
    TEMPLATE_TASK /* a task's: Go's, consul-template's without Consul and Vault, sprig's */
};

struct template_grammar {
    const char *name;         /* in front of errors; NULL: "" */
    const char *left, *right; /* delimiters; NULL or "": {{ and }} */
    enum template_table table;
    const char *const *denied; /* names of functions, with * and ?; NULL at the end, NULL: none */
};

/* A parsed text. It does not change: may be carried out many times, by one thread at a time. */
struct template_tree;

/* The tree is owned by ctx and needs neither `text` nor `g` any more. 0, or -ERR_INVALID with Go's
 * words: "template: NAME:LINE: MESSAGE"; -ERR_UNSUPPORTED: a function is called that is not here,
 * since Consul, Vault or a program is asked, with the one to use instead. */
int template_parse(const void *ctx, const struct template_grammar *g, struct slice text,
                   struct template_tree **ret, struct err *e);

/* --- what it asks for --- */

enum template_kind {
    TEMPLATE_ENV,             /* key: a name. A string; missing: "" and no dependency */
    TEMPLATE_FILE,            /* key: a path. A string */
    TEMPLATE_VARIABLE,        /* key: a path. An object as GET /v1/var/PATH answers */
    TEMPLATE_VARIABLE_EXISTS, /* key: a path. A bool */
    TEMPLATE_VARIABLES,       /* key: a prefix. A list as GET /v1/vars answers */
    TEMPLATE_SERVICE,         /* key: a name. A list as GET /v1/service/NAME answers */
    TEMPLATE_SERVICES,        /* key: "". The list Services of the namespace's of /v1/services */
    TEMPLATE_KINDS
};

struct template_ask {
    enum template_kind kind;
    const char *key;
    const char *ns, *region; /* "": the task's; ns of variables may be "*" with a prefix */
    const char *tag;         /* of services; "": any. We look through the tags: for information */
    int64_t count;           /* of services: as many, chosen by `hash`; 0: all of them */
    const char *hash;
    const char *name; /* as Nomad calls it: "nomad.var.block(a/b@default.global)". Never NULL */
};

enum template_answer {
    TEMPLATE_VALUE,   /* *ret is set. It lives until template_exec returns */
    TEMPLATE_MISSING, /* not there yet: the text goes on with nothing in its place, and waits */
    TEMPLATE_ERROR    /* with words, which become those of the template */
};

enum template_digest { TEMPLATE_MD5, TEMPLATE_SHA1, TEMPLATE_SHA256, TEMPLATE_SHA512 };
enum { TEMPLATE_DIGEST_MAX = 64 };

/* Returns the length of the digest; 0: it cannot be computed. */
typedef unsigned template_digest_fn(enum template_digest which, const void *p, size_t n,
                                    uint8_t out[TEMPLATE_DIGEST_MAX]);

/* The caller's side. `ask` is called in the order of the text, again for the same thing when the
 * text asks twice. */
struct template_env {
    enum template_answer (*ask)(void *data, const struct template_ask *a, const struct value **ret,
                                struct err *e);
    void *data;
    template_digest_fn *digest; /* template_digest (template/digest.h), or one's own; NULL: none */
    int64_t now_ns;     /* since 1970; `timestamp` */
    const char *ns;     /* the task's namespace; NULL: "default" */
    const char *region; /* NULL: "global" */
    bool error_on_missing_key;
};

/* 0 stands for the limit of template/limits.h. */
struct template_limits {
    uint64_t steps;
    size_t output;           /* bytes */
    size_t memory;           /* bytes of values while it runs */
    unsigned depth;          /* of {{template}} in {{template}} */
    const atomic_bool *stop; /* ends it soon after it becomes true, as of the caller's timer */
};

/* Questions, each once, in the order of the text. */
struct template_asks {
    struct template_ask *v;
    size_t n;
};

struct template_result {
    struct template_asks missing; /* n == 0: `out` is the whole text, and may be written */
    struct template_asks used;    /* all questions but ENV, missing or not */
};

struct template_input {
    const struct template_tree *tree;
    const struct value *data;             /* NULL: nil, as of a task's template */
    const struct template_env *env;       /* NULL: all is missing */
    const struct template_limits *limits; /* NULL: the usual ones */
};

/* 0: carried out, and res says whether it waits; -ERR_INVALID with Go's words and position (res
 * tells all the same what was missing until then: such a mistake may be one of waiting);
 * -ERR_LIMIT: a limit, which is named. `out` holds then the text before it. The members of res are
 * owned by ctx. */
int template_exec(const void *ctx, const struct template_input *in, struct buf *out,
                  struct template_result *res, struct err *e);

/* Appends the text of a template of -t, applied to `v`. 0, or -ERR_INVALID with words; `out` then
 * holds what came before the mistake. */
int template_render(struct buf *out, const char *text, const struct value *v, struct err *e);

#endif
