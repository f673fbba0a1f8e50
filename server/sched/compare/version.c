/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions and version constraints (see version.h). Source: semver.org 2.0.0 and the operator table
 * of the reference.
 */
#include "server/sched/compare/version.h"

#include <stdint.h>
#include <string.h>

#include "common/str.h"

#define SEGMENTS_MAX 8
#define DIGITS_MAX 18

struct version {
    int64_t seg[SEGMENTS_MAX];
    int n;              /* segments written */
    const char *pre;    /* pre-release, "" when there is none */
    size_t pre_len;
};

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
is_ident(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

/* Dot-separated identifiers; returns its end, or NULL when it is empty or has an empty part. */
static const char *
idents_end(const char *s, const char *end)
{
    for (;;) {
        const char *p = s;
        while (p < end && is_ident(*p))
            p++;
        if (p == s)
            return NULL;
        if (p == end || *p != '.')
            return p;
        s = p + 1;
    }
}

static bool
segments_parse(const char **ps, const char *end, struct version *v)
{
    const char *s = *ps;

    for (v->n = 0;; s++) {
        int64_t x = 0;
        const char *start = s;
        while (s < end && is_digit(*s) && s - start < DIGITS_MAX)
            x = x * 10 + (*s++ - '0');
        if (s == start || (s < end && is_digit(*s)) || v->n == SEGMENTS_MAX)
            return false;
        v->seg[v->n++] = x;
        if (s == end || *s != '.')
            break;
    }
    *ps = s;
    return true;
}

static bool
version_parse(const char *s, size_t len, bool strict, struct version *v)
{
    const char *end = s + len;

    *v = (struct version){.pre = ""};
    while (s < end && *s == ' ')
        s++;
    while (end > s && end[-1] == ' ')
        end--;
    if (s < end && *s == 'v')
        s++;
    if (!segments_parse(&s, end, v))
        return false;
    if (s < end && (*s == '-' || (!strict && is_ident(*s)))) {
        if (*s == '-')
            s++;
        const char *e = idents_end(s, end);
        if (e == NULL)
            return false;
        v->pre = s;
        v->pre_len = (size_t)(e - s);
        s = e;
    }
    if (s < end && *s == '+') {
        s = idents_end(s + 1, end);
        if (s == NULL)
            return false;
    }
    return s == end;
}

static int
ident_cmp(const char *a, size_t an, const char *b, size_t bn)
{
    bool a_num = strspn(a, "0123456789") >= an, b_num = strspn(b, "0123456789") >= bn;

    if (a_num != b_num)
        return a_num ? -1 : 1;
    if (a_num) {
        for (; an > 1 && *a == '0'; an--)
            a++;
        for (; bn > 1 && *b == '0'; bn--)
            b++;
        if (an != bn)
            return an < bn ? -1 : 1;
    }
    int c = memcmp(a, b, an < bn ? an : bn);
    if (c != 0)
        return c;
    return an == bn ? 0 : an < bn ? -1 : 1;
}

/* SemVer 2.0 section 11: a version without a pre-release is the higher one. */
static int
pre_cmp(const struct version *a, const struct version *b)
{
    const char *p = a->pre, *q = b->pre;
    size_t pn = a->pre_len, qn = b->pre_len;

    if (pn == 0 || qn == 0)
        return pn == qn ? 0 : pn == 0 ? 1 : -1;
    for (;;) {
        const char *pd = memchr(p, '.', pn), *qd = memchr(q, '.', qn);
        size_t pl = pd ? (size_t)(pd - p) : pn, ql = qd ? (size_t)(qd - q) : qn;
        int c = ident_cmp(p, pl, q, ql);
        if (c != 0)
            return c;
        if (pd == NULL || qd == NULL)
            return pd == qd ? 0 : pd == NULL ? -1 : 1;
        pn -= pl + 1;
        qn -= ql + 1;
        p = pd + 1;
        q = qd + 1;
    }
}

static int
segments_cmp(const struct version *a, const struct version *b)
{
    for (int i = 0; i < SEGMENTS_MAX; i++)
        if (a->seg[i] != b->seg[i])
            return a->seg[i] < b->seg[i] ? -1 : 1;
    return 0;
}

static int
version_cmp(const struct version *a, const struct version *b)
{
    int c = segments_cmp(a, b);

    return c != 0 ? c : pre_cmp(a, b);
}

enum op { OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE, OP_TWIDDLE };

static const struct {
    const char *text;
    enum op op;
} ops[] = {
    {"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE}, {"~>", OP_TWIDDLE},
    {"=", OP_EQ},  {"<", OP_LT},  {">", OP_GT},
};

/* "~> 1.2.3": at least that, and equal in all but the last segment that was written. */
static bool
version_twiddle(const struct version *v, const struct version *c)
{
    if (version_cmp(v, c) < 0)
        return false;
    for (int i = 0; i + 1 < c->n; i++)
        if (v->seg[i] != c->seg[i])
            return false;
    return c->n > 1 || v->seg[0] >= c->seg[0];
}

static bool
op_holds(enum op op, const struct version *v, const struct version *c, bool strict)
{
    bool v_pre = v->pre_len > 0, c_pre = c->pre_len > 0;
    int d = version_cmp(v, c);

    if (!strict && op != OP_EQ && op != OP_NE) {
        /* a pre-release is asked for by name or not at all */
        if (v_pre && (!c_pre || segments_cmp(v, c) != 0))
            return false;
    }
    switch (op) {
    case OP_EQ: return d == 0;
    case OP_NE: return d != 0;
    case OP_LT: return d < 0;
    case OP_LE: return d <= 0;
    case OP_GT: return d > 0;
    case OP_GE: return d >= 0;
    case OP_TWIDDLE:
        return version_twiddle(v, c);
    }
    return false;
}

/* One "op version" term; false when it does not parse. */
static bool
term_parse(const char *s, size_t len, bool strict, enum op *op, struct version *c)
{
    while (len > 0 && *s == ' ') {
        s++;
        len--;
    }
    *op = OP_EQ;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        size_t n = strlen(ops[i].text);
        if (len < n || memcmp(s, ops[i].text, n) != 0)
            continue;
        if (strict && ops[i].op == OP_TWIDDLE)
            return false;
        *op = ops[i].op;
        s += n;
        len -= n;
        break;
    }
    return version_parse(s, len, strict, c);
}

/* v NULL: only checks the syntax. */
static bool
list_holds(const struct version *v, const char *list, bool strict)
{
    if (str_empty(list))
        return false;
    bool ok = true;
    for (;;) {
        const char *comma = strchr(list, ',');
        size_t len = comma ? (size_t)(comma - list) : strlen(list);
        struct version c;
        enum op op;
        if (!term_parse(list, len, strict, &op, &c))
            return false;
        if (v != NULL && !op_holds(op, v, &c, strict))
            ok = false;
        if (comma == NULL)
            return ok;
        list = comma + 1;
    }
}

static bool
version_matches_text(const char *version, const char *constraints, bool strict)
{
    struct version v;

    /* the left side may be "1.7" in both dialects: fingerprints write what they find */
    return version != NULL && version_parse(version, strlen(version), false, &v) &&
           list_holds(&v, constraints, strict);
}

bool
version_matches(const char *version, const char *constraints)
{
    return version_matches_text(version, constraints, false);
}

bool
semver_matches(const char *version, const char *constraints)
{
    return version_matches_text(version, constraints, true);
}

bool
version_constraint_valid(const char *constraints)
{
    return list_holds(NULL, constraints, false);
}

bool
semver_constraint_valid(const char *constraints)
{
    return list_holds(NULL, constraints, true);
}
