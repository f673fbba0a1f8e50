/* SPDX-License-Identifier: Apache-2.0
 *
 * Constraint operators (see constraint.h). Every match of a regular expression has a step limit.
 */
#include "server/sched/compare/constraint.h"

#include <string.h>

#include "api/operators.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/regex.h"
#include "common/str.h"
#include "server/sched/compare/class.h"
#include "server/sched/compare/version.h"

struct regexes {
    size_t n;
    struct {
        const char *pattern;
        struct regex *rx; /* NULL: refused */
    } v[REGEX_CACHE_MAX];
};

struct regexes *
regexes_new(const void *ctx)
{
    return mem_new(ctx, struct regexes);
}

static bool
pattern_matches(struct regexes *cache, const char *pattern, const char *subject)
{
    for (size_t i = 0; i < cache->n; i++)
        if (strcmp(cache->v[i].pattern, pattern) == 0)
            return regex_matches(cache->v[i].rx, subject);
    struct regex *rx = regex_new(cache, pattern, strlen(pattern), REGEX_MATCH_LIMIT, NULL);
    bool hit = regex_matches(rx, subject);
    if (cache->n < REGEX_CACHE_MAX) {
        cache->v[cache->n].pattern = mem_strdup(cache, pattern);
        cache->v[cache->n++].rx = rx;
    } else {
        mem_free(rx);
    }
    return hit;
}

/* The next element of a comma list, trimmed; false at the end. */
static bool
set_next(const char **s, const char **elem, size_t *len)
{
    if (*s == NULL)
        return false;
    const char *b = *s, *comma = strchr(b, ',');
    const char *e = comma ? comma : b + strlen(b);
    *s = comma ? comma + 1 : NULL;
    while (b < e && (*b == ' ' || *b == '\t'))
        b++;
    while (e > b && (e[-1] == ' ' || e[-1] == '\t'))
        e--;
    *elem = b;
    *len = (size_t)(e - b);
    return true;
}

static bool
set_has(const char *set, const char *elem, size_t len)
{
    const char *s = set, *x;
    size_t n;

    while (set_next(&s, &x, &n))
        if (n == len && memcmp(x, elem, len) == 0)
            return true;
    return false;
}

static bool
set_contains(const char *left, const char *right, bool any)
{
    const char *s = right, *x;
    size_t n;

    while (set_next(&s, &x, &n))
        if (set_has(left, x, n) == any)
            return any;
    return !any;
}

/* -1, 0, 1: as integers when both are, else as floats, else as text. */
static int
constraint_order(const char *l, const char *r)
{
    int64_t li, ri;
    double lf, rf;

    if (num_parse_i64(l, &li) == 0 && num_parse_i64(r, &ri) == 0)
        return li < ri ? -1 : li > ri;
    if (num_parse_f64(l, &lf) == 0 && num_parse_f64(r, &rf) == 0)
        return lf < rf ? -1 : lf > rf;
    int c = strcmp(l, r);
    return c < 0 ? -1 : c > 0;
}

bool
constraint_compare(struct regexes *rx, const char *op_text, const char *l, const char *r)
{
    enum operator_code op = operator_code(op_text);

    switch (op) {
    case OP_NE:
        return l == NULL || r == NULL ? l != r : strcmp(l, r) != 0;
    case OP_IS_SET:
        return l != NULL;
    case OP_IS_NOT_SET:
        return l == NULL;
    case OP_DISTINCT_HOSTS:
    case OP_DISTINCT_PROPERTY:
        return true;
    case OP_UNKNOWN:
        return false;
    default:
        break;
    }
    if (l == NULL || r == NULL)
        return false;
    switch (op) {
    case OP_EQ: return strcmp(l, r) == 0;
    case OP_LT:
        return constraint_order(l, r) < 0;
    case OP_LE:
        return constraint_order(l, r) <= 0;
    case OP_GT:
        return constraint_order(l, r) > 0;
    case OP_GE:
        return constraint_order(l, r) >= 0;
    case OP_REGEXP: return pattern_matches(rx, r, l);
    case OP_VERSION: return version_matches(l, r);
    case OP_SEMVER: return semver_matches(l, r);
    case OP_SET_ALL: return set_contains(l, r, false);
    case OP_SET_ANY: return set_contains(l, r, true);
    default: return false;
    }
}

bool
constraint_is_distinct(const struct constraint *c)
{
    enum operator_code op = operator_code(c->operand);

    return op == OP_DISTINCT_HOSTS || op == OP_DISTINCT_PROPERTY;
}

bool
constraint_escapes(const struct constraint *c)
{
    return !constraint_is_distinct(c) &&
           (target_escapes(c->l_target) || target_escapes(c->r_target));
}

bool
constraint_holds(struct regexes *rx, const struct node *n, const struct constraint *c)
{
    const char *l = NULL, *r = NULL;

    if (!target_resolve(n, c->l_target, &l))
        l = NULL;
    if (!target_resolve(n, c->r_target, &r))
        r = NULL;
    return constraint_compare(rx, c->operand, l, r);
}

const char *
constraint_text(const void *ctx, const struct constraint *c)
{
    const char *op = str_or(c->operand, "=");

    if (operator_code(op) == OP_DISTINCT_HOSTS)
        return "distinct_hosts";
    if (str_empty(c->r_target))
        return mem_printf(ctx, "%s %s", str_or(c->l_target, ""), op);
    return mem_printf(ctx, "%s %s %s", str_or(c->l_target, ""), op, c->r_target);
}

int
constraint_check(const struct constraint *c, struct err *e)
{
    switch (operator_code(c->operand)) {
    case OP_UNKNOWN:
        return err_set(e, -ERR_INVALID, "unknown constraint operator '%.64s'", c->operand);
    case OP_REGEXP: {
        auto_mem void *tmp = mem_ctx("pattern");
        const char *pattern = str_or(c->r_target, "");
        return regex_new(tmp, pattern, strlen(pattern), 0, e) ? 0 : -ERR_INVALID;
    }
    case OP_VERSION:
        if (!version_constraint_valid(c->r_target))
            return err_set(e, -ERR_INVALID,
                           "'%.200s' is not a version constraint such as '>= 1.2, < 2'",
                           str_or(c->r_target, ""));
        return 0;
    case OP_SEMVER:
        if (!semver_constraint_valid(c->r_target))
            return err_set(e, -ERR_INVALID,
                           "'%.200s' is not a semver constraint such as '>= 1.2.0'",
                           str_or(c->r_target, ""));
        return 0;
    default:
        return 0;
    }
}
