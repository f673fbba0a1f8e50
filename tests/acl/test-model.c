/* SPDX-License-Identifier: Apache-2.0
 *
 * Random policies and questions beside an obvious model of the rules, which looks at every rule for every
 * question. ACL_SEED=N replays one case.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "acl/caps.h"
#include "common/mem.h"
#include "common/num.h"
#include "tests/lib/test.h"

enum { RULES_MAX = 400, POLICIES = 4, LABEL = 12, QUESTIONS = 60 };

static uint64_t chance;

static unsigned
below(unsigned n)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (unsigned)((chance >> 11) % n);
}

/* --- the model --- */

struct rule {
    unsigned policy;
    enum acl_kind kind; /* ACL_NAMESPACE, _NODE_POOL, _HOST_VOLUME, _VARIABLE */
    char space[LABEL], path[LABEL];
    uint64_t caps;
};

struct world {
    struct rule rules[RULES_MAX];
    size_t n;
    unsigned levels[POLICIES][5]; /* 0: none, then list, read, write, deny */
    uint64_t operator_caps[POLICIES];
};

/* A variable's names are put together by a byte that the alphabet has not. */
static void
whole_name(char *out, size_t size, const char *space, const char *path)
{
    snprintf(out, size, path ? "%s\1%s" : "%s", space, path);
}

static bool
glob(const char *p, const char *s)
{
    if (*p == '\0')
        return *s == '\0';
    if (*p == '*')
        return glob(p + 1, s) || (*s && glob(p, s + 1));
    return *p == *s && glob(p + 1, s + 1);
}

static size_t
stars(const char *p)
{
    size_t n = 0;
    for (; *p; p++)
        n += *p == '*';
    return n;
}

/* Whether `label` counts before `other` for the name. */
static bool
is_closer(const char *label, const char *other, const char *name)
{
    long a = (long)strlen(name) - (long)strlen(label) + (long)stars(label);
    long b = (long)strlen(name) - (long)strlen(other) + (long)stars(other);
    return a != b ? a < b : strcmp(label, other) < 0;
}

/* The label that counts, and what it holds over all policies; false: none matches. */
static bool
model_find(const struct world *w, enum acl_kind kind, const char *name, uint64_t *caps)
{
    char best[2 * LABEL + 2] = "", label[2 * LABEL + 2];
    bool found = false, plain = false;
    for (size_t i = 0; i < w->n; i++) {
        const struct rule *r = &w->rules[i];
        bool named = r->kind == kind || (kind == ACL_NAMESPACE && r->kind == ACL_VARIABLE);
        whole_name(label, sizeof(label), r->space, kind == ACL_VARIABLE ? r->path : NULL);
        if (!named || (strchr(label, '*') ? plain || !glob(label, name) : strcmp(label, name) != 0))
            continue;
        bool is_plain = !strchr(label, '*');
        if (!found || (is_plain && !plain) || (!is_plain && is_closer(label, best, name)))
            strcpy(best, label);
        plain = plain || is_plain;
        found = true;
    }
    *caps = 0;
    for (size_t i = 0; i < w->n && found; i++) {
        whole_name(label, sizeof(label), w->rules[i].space, kind == ACL_VARIABLE ? w->rules[i].path : NULL);
        if (w->rules[i].kind == kind && strcmp(label, best) == 0)
            *caps |= w->rules[i].caps;
    }
    return found;
}

static bool
model_meets(uint64_t have, uint64_t need)
{
    return !(have & 1) && (need ? have & need : have);
}

/* Whether any label has it that no policy denies; of a kind, and of variables in that namespace. */
static bool
model_any(const struct world *w, enum acl_kind kind, const char *space, uint64_t need)
{
    uint64_t all = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct rule *r = &w->rules[i];
        uint64_t caps = 0;
        if (r->kind != kind || (space && !glob(r->space, space)))
            continue;
        for (size_t k = 0; k < w->n; k++)
            if (w->rules[k].kind == kind && strcmp(w->rules[k].space, r->space) == 0 &&
                (kind != ACL_VARIABLE || strcmp(w->rules[k].path, r->path) == 0))
                caps |= w->rules[k].caps;
        all |= caps & 1 ? 0 : caps;
    }
    return model_meets(all, need);
}

static unsigned
model_level(const struct world *w, unsigned kind)
{
    unsigned most = 0;
    for (unsigned i = 0; i < POLICIES; i++)
        most = w->levels[i][kind] > most ? w->levels[i][kind] : most;
    return most;
}

static bool
model_allows(const struct world *w, const struct acl_need *need, const char *name, const char *path)
{
    uint64_t caps = 0, of = 0;
    unsigned level;
    char whole[2 * LABEL + 2];
    switch ((enum acl_kind)need->kind) {
    case ACL_NAMESPACE:
    case ACL_NODE_POOL:
    case ACL_HOST_VOLUME:
        if (need->kind != ACL_HOST_VOLUME && strcmp(name, "*") == 0)
            return model_any(w, need->kind, NULL, need->caps);
        return model_find(w, need->kind, name, &caps) && model_meets(caps, need->caps);
    case ACL_VARIABLE:
        if (!path && strcmp(name, "*") == 0)
            return model_any(w, ACL_VARIABLE, NULL, need->caps);
        if (model_find(w, ACL_NAMESPACE, name, &caps) && caps & 1)
            return false;
        if (!path)
            return model_any(w, ACL_VARIABLE, name, need->caps);
        whole_name(whole, sizeof(whole), name, path);
        return model_find(w, ACL_VARIABLE, whole, &caps) && model_meets(caps, need->caps);
    case ACL_OPERATOR_CAP:
        level = model_level(w, ACL_OPERATOR - ACL_AGENT);
        for (unsigned i = 0; i < POLICIES; i++)
            of |= w->operator_caps[i];
        return level != 4 && (level == 3 || model_meets(of, need->caps));
    default:
        level = model_level(w, need->kind - ACL_AGENT);
        return level != 4 && level >= need->level;
    }
}

/* --- worlds --- */

/* Few letters, so that labels meet; some share a long beginning, so that they are told apart elsewhere. */
static void
make_label(char *out, bool pattern, bool crowded)
{
    static const char letters[] = "aab-";
    size_t n = 0;
    if (crowded && below(4))
        n = (size_t)snprintf(out, LABEL, below(2) ? "aaaa" : "b-b-");
    for (unsigned len = below(5) + (n == 0); len > 0; len--)
        out[n++] = pattern && below(3) == 0 ? '*' : letters[below(4)];
    out[n] = '\0';
}

static const unsigned n_caps[] = {[ACL_NAMESPACE] = 45, [ACL_NODE_POOL] = 4, [ACL_HOST_VOLUME] = 3,
    [ACL_VARIABLE] = 5};

static void
make_world(struct world *w)
{
    bool crowded = below(4) == 0;
    w->n = below(crowded ? RULES_MAX : 30);
    for (size_t i = 0; i < w->n; i++) {
        struct rule *r = &w->rules[i];
        *r = (struct rule){.policy = below(POLICIES), .kind = ACL_NAMESPACE + below(4)};
        make_label(r->space, below(2), crowded);
        if (r->kind == ACL_VARIABLE)
            make_label(r->path, below(2), crowded);
        for (unsigned k = below(4); k > 0; k--)
            r->caps |= UINT64_C(1) << (1 + below(n_caps[r->kind] - 1));
        if (below(12) == 0)
            r->caps |= 1;
    }
    memset(w->levels, 0, sizeof(w->levels));
    memset(w->operator_caps, 0, sizeof(w->operator_caps));
    for (unsigned i = 0; i < POLICIES; i++)
        for (unsigned k = 0; k < 5; k++) {
            unsigned level = below(3) ? 0 : 1 + below(3) + (below(6) == 0);
            w->levels[i][k] = level == 1 && k + ACL_AGENT != ACL_PLUGIN ? 2 : level;
        }
}

/* A capability of a namespace may hold others: told here as the page has it, not as acl/ does. */
static void
spread(enum acl_kind kind, uint64_t *caps)
{
    if (kind == ACL_NAMESPACE && *caps & ACL_CAP(NS_HOST_VOLUME_WRITE))
        *caps |= ACL_CAP(NS_HOST_VOLUME_REGISTER) | ACL_CAP(NS_HOST_VOLUME_CREATE) |
                 ACL_CAP(NS_HOST_VOLUME_DELETE) |
                 ACL_CAP(NS_HOST_VOLUME_READ);
    if (kind == ACL_NAMESPACE && *caps & ACL_CAP(NS_HOST_VOLUME_REGISTER))
        *caps |= ACL_CAP(NS_HOST_VOLUME_CREATE) | ACL_CAP(NS_HOST_VOLUME_READ);
    if (kind == ACL_NAMESPACE && *caps & ACL_CAP(NS_HOST_VOLUME_CREATE))
        *caps |= ACL_CAP(NS_HOST_VOLUME_READ);
    if (kind == ACL_VARIABLE && *caps & ACL_CAP(VAR_READ))
        *caps |= ACL_CAP(VAR_LIST);
}

static void
put_caps(struct buf *b, enum acl_caps_kind kind, uint64_t caps)
{
    buf_puts(b, "capabilities = [");
    for (unsigned i = 0; i < 64; i++)
        if (caps >> i & 1)
            buf_printf(b, "\"%s\", ", acl_cap_name(kind, i));
    buf_puts(b, "]");
}

static const char *
policy_text(const void *ctx, struct world *w, unsigned policy)
{
    static const char *const blocks[] = {"agent", "node", "operator", "quota", "plugin"};
    static const char *const levels[] = {"", "list", "read", "write", "deny"};
    auto_buf struct buf b = BUF_INIT(1 << 20);
    for (size_t i = 0; i < w->n; i++) {
        struct rule *r = &w->rules[i];
        if (r->policy != policy)
            continue;
        const char *block = r->kind == ACL_NODE_POOL ? "node_pool"
            : r->kind == ACL_HOST_VOLUME ? "host_volume" : "namespace";
        buf_printf(&b, "%s \"%s\" { ", block, r->space);
        if (r->kind == ACL_VARIABLE)
            buf_printf(&b, "variables { path \"%s\" { ", r->path);
        put_caps(&b, r->kind == ACL_NAMESPACE     ? ACL_CAPS_NAMESPACE
                     : r->kind == ACL_NODE_POOL   ? ACL_CAPS_NODE_POOL
                     : r->kind == ACL_HOST_VOLUME ? ACL_CAPS_HOST_VOLUME
                                                  : ACL_CAPS_VARIABLE,
                 r->caps);
        buf_puts(&b, r->kind == ACL_VARIABLE ? " } } }\n" : " }\n");
    }
    for (unsigned k = 0; k < 5; k++)
        if (w->levels[policy][k])
            buf_printf(&b, "%s { policy = \"%s\" }\n", blocks[k], levels[w->levels[policy][k]]);
    return mem_strdup(ctx, buf_str(&b));
}

/* Adds what `operator { policy = "read" }` holds, and capabilities that hold others. */
static void
finish_world(struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        spread(w->rules[i].kind, &w->rules[i].caps);
    for (unsigned i = 0; i < POLICIES; i++)
        if (w->levels[i][ACL_OPERATOR - ACL_AGENT] == 2)
            w->operator_caps[i] = ACL_CAP(OPERATOR_LICENSE_READ) | ACL_CAP(OPERATOR_KEYRING_READ);
}

static void
make_question(const struct world *w, struct acl_need *need, char *name, const char **path)
{
    static char path_text[LABEL];
    *need = (struct acl_need){.kind = (uint8_t)(ACL_NAMESPACE + below(ACL_MANAGEMENT - ACL_NAMESPACE))};
    *path = NULL;
    make_label(name, false, below(2));
    if (w->n > 0 && below(3) == 0)
        strcpy(name, w->rules[below((unsigned)w->n)].space); /* perhaps with stars, as a name */
    if (below(8) == 0)
        strcpy(name, "*");
    if (need->kind <= ACL_VARIABLE) {
        for (unsigned k = below(3); k > 0; k--)
            need->caps |= UINT64_C(1) << (1 + below(n_caps[need->kind] - 1));
    } else if (need->kind == ACL_OPERATOR_CAP) {
        need->caps = UINT64_C(1) << (1 + below(5));
    } else {
        need->level = (uint8_t)(need->kind == ACL_PLUGIN ? 1 + below(3) : 2 + below(2));
    }
    if (need->kind == ACL_VARIABLE && below(5)) {
        make_label(path_text, false, below(2));
        *path = path_text;
    }
}

static size_t
parse_world(const void *ctx, struct world *w, struct acl_source *v)
{
    for (unsigned i = 0; i < POLICIES; i++) {
        struct acl_rules *r = NULL;
        struct err e = ERR_INIT;
        const char *text = policy_text(ctx, w, i);
        int code = acl_rules_parse(ctx, text, strlen(text), ACL_STRICT, &r, &e);
        ck_assert_msg(code == 0, "%s\n%s", e.text, text);
        v[i] = (struct acl_source){"p", r};
    }
    return POLICIES;
}

static bool
why_allows(const char *why)
{
    return strncmp(why, "policy \"", 8) == 0 && !strstr(why, " is denied") && !strstr(why,
        " counts and has not: ");
}

static void
run_case(uint64_t seed)
{
    auto_mem void *ctx = mem_ctx("case");
    struct world *w = mem_new(ctx, struct world);
    struct acl_source v[2 * POLICIES];
    chance = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    make_world(w);
    size_t n = parse_world(ctx, w, v);
    finish_world(w);
    struct acl *a = acl_compile(v, n);
    /* the same policies the other way round, and one of them twice */
    struct acl_source back[POLICIES + 1] = {v[3], v[2], v[1], v[0], v[below(POLICIES)]};
    struct acl *b = acl_compile(back, POLICIES + 1);
    for (unsigned q = 0; q < QUESTIONS; q++) {
        struct acl_need need;
        char name[LABEL];
        const char *path;
        make_question(w, &need, name, &path);
        bool got = acl_allows(a, &need, name, path), want = model_allows(w, &need, name, path);
        ck_assert_msg(got == want, "seed %llu question %u: kind %u caps %llx of \"%s\" \"%s\": %d",
            (unsigned long long)seed,
                      q, need.kind, (unsigned long long)need.caps, name, path ? path : "-", got);
        ck_assert_msg(acl_allows(b, &need, name, path) == want, "seed %llu: order counts",
            (unsigned long long)seed);
        const char *why = acl_why(ctx, v, n, &need, name, path);
        ck_assert_msg(why_allows(why) == want, "seed %llu question %u: %s: %d", (unsigned long long)seed, q,
            why, want);
    }
    acl_unref(a);
    acl_unref(b);
}

START_TEST(random_policies_answer_as_the_model_does)
{
    uint64_t one = 0;
    const char *seed = getenv("ACL_SEED");
    if (seed && num_parse_u64(seed, &one) == 0) {
        run_case(one);
        return;
    }
    for (uint64_t i = 0; i < 800; i++)
        run_case(i);
}
END_TEST

/* A policy that is added takes no deny of a plain label back, and none of a level. */
START_TEST(more_policies_take_no_deny_back)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        auto_mem void *ctx = mem_ctx("case");
        struct world *w = mem_new(ctx, struct world), *more = mem_new(ctx, struct world);
        struct acl_source v[2 * POLICIES];
        chance = seed * UINT64_C(0xff51afd7ed558ccd) + 1;
        make_world(w);
        parse_world(ctx, w, v);
        make_world(more);
        parse_world(ctx, more, v + POLICIES);
        struct acl *a = acl_compile(v, POLICIES), *b = acl_compile(v, 2 * POLICIES);
        for (size_t i = 0; i < w->n; i++) {
            const struct rule *r = &w->rules[i];
            struct acl_need need = {.kind = (uint8_t)r->kind};
            if (!(r->caps & 1) || strchr(r->space, '*') || strchr(r->path, '*'))
                continue;
            ck_assert(!acl_allows(a, &need, r->space, r->path));
            ck_assert(!acl_allows(b, &need, r->space, r->path));
            need.kind = ACL_VARIABLE;
            ck_assert(r->kind != ACL_NAMESPACE || !acl_allows(b, &need, r->space, "a"));
        }
        for (unsigned k = 0; k < 5; k++) {
            struct acl_need need = {.kind = (uint8_t)(ACL_AGENT + k), .level = ACL_LEVEL_READ};
            ck_assert(model_level(w, k) != 4 || !acl_allows(b, &need, NULL, NULL));
        }
        acl_unref(a);
        acl_unref(b);
    }
}
END_TEST

/* Long names take the way without hashes; patterns that go back and forth end. */
START_TEST(long_names_and_hard_patterns_end)
{
    auto_mem void *ctx = mem_ctx("test");
    struct acl_rules *r = NULL;
    struct err e = ERR_INIT;
    auto_buf struct buf b = BUF_INIT(4 << 20);
    for (int i = 0; i < 2000; i++) {
        buf_puts(&b, "namespace \"");
        for (int k = 0; k < 60; k++)
            buf_puts(&b, "a*");
        buf_printf(&b, "b%d\" { policy = \"read\" variables { path \"", i);
        for (int k = 0; k < 60; k++)
            buf_puts(&b, "*a");
        buf_printf(&b, "*%d\" { capabilities = [\"read\"] } } }\n", i);
    }
    ck_assert_msg(acl_rules_parse(ctx, buf_str(&b), b.len, ACL_STRICT, &r, &e) == 0, "%s", e.text);
    struct acl_source v = {"p", r};
    struct acl *a = acl_compile(&v, 1);
    struct acl_need read = {.kind = ACL_NAMESPACE, .caps = ACL_CAP(NS_READ_JOB)};
    struct acl_need var = {.kind = ACL_VARIABLE, .caps = ACL_CAP(VAR_READ)};
    char as[129], end[140], path[1000];
    memset(as, 'a', 128);
    as[128] = '\0';
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    snprintf(end, sizeof(end), "%sb7", as);
    for (int i = 0; i < 20; i++) {
        ck_assert(!acl_allows(a, &read, as, NULL));
        ck_assert(acl_allows(a, &read, end, NULL));
        ck_assert(!acl_allows(a, &var, as, path));
    }
    memcpy(path + sizeof(path) - 5, "1999", 4);
    snprintf(end, sizeof(end), "%sb1999", as);
    ck_assert(acl_allows(a, &var, end, path));
    acl_unref(a);
}
END_TEST

TEST_SUITE_TIMEOUT("model", 120, random_policies_answer_as_the_model_does, more_policies_take_no_deny_back,
                   long_names_and_hard_patterns_end)
