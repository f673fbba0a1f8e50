/* SPDX-License-Identifier: Apache-2.0
 *
 * Access control: the text of a policy becomes rules, the rules of several policies become rights,
 * and rights say whether a need is met. Tokens, requests and the state are others' business. Pure.
 *
 *   acl_rules_parse(ctx, text, n, ACL_STRICT, &rules, e)
 *   struct acl *a = acl_compile(sources, n);
 *   if (acl_allows(a, &need, "prod", NULL)) ...
 *
 * A rule whose label is exactly the name counts, alone; else the glob that is closest: the
 * smallest difference of the name's length and the pattern's, plus its stars; of equals the first
 * in byte order. Policies that have a rule of the same label are united, and deny wins.
 */
#ifndef PADDOCK_ACL_ACL_H
#define PADDOCK_ACL_ACL_H

#include <stdbool.h>
#include <stddef.h>

#include "acl/limits.h"
#include "api/api.h"
#include "common/err.h"

/* The right that a caller must have. `name` and `path` below are those of acl_allows(). */
enum acl_kind {
    ACL_OPEN,         /* nothing: anybody, whatever the credential */
    ACL_ANY,          /* a credential that is valid, or none: the anonymous token's rights */
    ACL_NAMESPACE,    /* one of `caps` in namespace `name`; "*": in any of them */
    ACL_NODE_POOL,    /* one of `caps` in that pool */
    ACL_HOST_VOLUME,  /* one of `caps` of that volume */
    ACL_VARIABLE,     /* one of `caps` of the variable `path` in namespace `name` */
    ACL_OPERATOR_CAP, /* one of `caps`, or operator write */
    ACL_AGENT,        /* `level`, here and below */
    ACL_NODE,
    ACL_OPERATOR,
    ACL_QUOTA,
    ACL_PLUGIN,
    ACL_MANAGEMENT,
    ACL_CLIENT, /* proved by a node's secret, and by no token */
    ACL_SERVER, /* proved by a certificate, and by no token */
};

enum acl_level { ACL_LEVEL_LIST = 1, ACL_LEVEL_READ, ACL_LEVEL_WRITE };

struct acl_need {
    uint8_t kind;  /* enum acl_kind */
    uint8_t level; /* enum acl_level */
    uint64_t caps; /* a bit each, by the order of acl/caps.def; 0: any, unless it is denied */
};

/* Reads a word of cap= in api/schema/rpc.schema: "none", "any", "management", "client", "server";
 * capabilities of namespaces with "|" between them, or "namespace:any"; "agent:read" and the other
 * levels; "node-pool:", "host-volume:", "operator-cap:", "variable:" with capabilities.
 * -ERR_INVALID. */
int acl_need_parse(const char *word, struct acl_need *ret, struct err *e);

enum acl_parse_flags {
    ACL_STRICT = 1, /* for writing: refuses keys that are not known, as well */
};

/* Reads HCL (of the first version, as Nomad does) or JSON. An empty text has no rules. *ret is
 * ctx's, with shorthands expanded: the RulesJSON of Nomad. -ERR_INVALID with words that name the
 * rule. */
int acl_rules_parse(const void *ctx, const char *text, size_t n, unsigned flags,
                    struct acl_rules **ret, struct err *e);

/* Rights: immutable, counted, for any thread. */
struct acl;

struct acl_source {
    const char *policy; /* its name, for acl_why() */
    const struct acl_rules *rules;
};

/* Everything is copied. */
struct acl *acl_compile(const struct acl_source *v, size_t n);
/* Returns the rights of all these policies. A text that is not understood may have denied
 * something: then they grant nothing. */
struct acl *acl_of_policies(const struct acl_policy_list *l);
/* Returns their rules, l->n of them owned by ctx, for acl_why(). NULL: *bad (which may be NULL) is
 * the name of one whose text is not understood. */
struct acl_source *acl_sources(const void *ctx, const struct acl_policy_list *l, const char **bad);
/* Returns the rights of a management token: all but what ACL_CLIENT and ACL_SERVER want. */
struct acl *acl_management(void);
struct acl *acl_ref(struct acl *a);
void acl_unref(struct acl *a); /* NULL is fine */

bool acl_is_management(const struct acl *a);
/* `name` and `path` NULL: the need has none. */
bool acl_allows(const struct acl *a, const struct acl_need *need, const char *name,
                const char *path);

/* Says in words, owned by ctx, which rule of which policy allows or denies, or which would allow:
 * "policy \"ops\": namespace \"prod-*\" has submit-job". */
const char *acl_why(const void *ctx, const struct acl_source *v, size_t n,
                    const struct acl_need *need, const char *name, const char *path);

#endif
