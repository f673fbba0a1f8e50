/* SPDX-License-Identifier: Apache-2.0
 *
 * The emitter. Numbers are cut into ranges of equal verdict; a balanced tree of "number >= k" jumps
 * finds the range; its leaf is a return, or a block that looks at arguments and returns. BPF jumps
 * go forward only and conditional ones reach 255 instructions. A program that fits has its four
 * returns once, at the end, and jumps there (the cost of loading a filter is in its instructions:
 * the kernel compiles it for every task); in a larger one each leaf returns, and far jumps take two
 * steps.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "isolation/confine/seccomp.h"

enum {
    X32_BIT = 0x40000000,
    JUMP_MAX = 255,
    RANGES_MAX = 2 * SECCOMP_RULES_MAX + 8, /* with the mark behind the last */
    BLOCK_MAX = JUMP_MAX,                   /* instructions of one argument check */
    ISLANDS_MAX = 3,                        /* in one range */
    NUMBERS = 480,                          /* about as many calls as there are */
};

/* One number with another verdict: a comparison, where two ranges more would take two jumps. */
struct island {
    uint32_t nr;
    enum seccomp_verdict verdict;
};

struct range {
    uint32_t start;
    enum seccomp_verdict verdict;
    const struct seccomp_rule *rule; /* with conditions; else NULL */
    size_t n_islands;
    struct island islands[ISLANDS_MAX];
};

struct numbered {
    uint32_t nr;
    const struct seccomp_rule *rule;
};

struct emitter {
    const struct range *ranges;
    enum seccomp_denied denied;
    struct sock_filter *out;
    size_t n;
};

static uint32_t
seccomp_compile_action(const struct emitter *m, enum seccomp_verdict v)
{
    switch (v) {
    case SECCOMP_V_ALLOW:
        return SECCOMP_RET_ALLOW;
    case SECCOMP_V_ENOSYS:
        return SECCOMP_RET_ERRNO | ENOSYS;
    case SECCOMP_V_KILL:
        return SECCOMP_RET_KILL_PROCESS;
    case SECCOMP_V_EPERM:
        break;
    }
    return m->denied == SECCOMP_D_LOG      ? SECCOMP_RET_LOG
           : m->denied == SECCOMP_D_NOTIFY ? SECCOMP_RET_USER_NOTIF
                                           : SECCOMP_RET_ERRNO | EPERM;
}

static void
seccomp_compile_put(struct emitter *m, struct sock_filter f)
{
    if (m->out != NULL) {
        ASSERT(m->n < SECCOMP_INSNS_MAX);
        m->out[m->n] = f;
    }
    m->n++;
}

/* Instructions of one comparison: load, mask where it is not all ones, jump. */
static size_t
half_size(uint32_t mask)
{
    return mask == 0 ? 0 : mask == UINT32_MAX ? 2 : 3;
}

static size_t
cond_size(const struct seccomp_cond *c)
{
    return half_size((uint32_t)c->mask) + (c->low32 ? 0 : half_size((uint32_t)(c->mask >> 32)));
}

/* `skip`: instructions from the end of this half to the next alternative. */
static void
put_half(struct emitter *m, uint32_t offset, uint32_t mask, uint32_t value, size_t skip)
{
    if (mask == 0)
        return;
    seccomp_compile_put(m, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
    if (mask != UINT32_MAX)
        seccomp_compile_put(m, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    ASSERT(skip <= JUMP_MAX);
    seccomp_compile_put(
        m, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, (uint8_t)skip));
}

static void
put_cond(struct emitter *m, const struct seccomp_cond *c, size_t skip)
{
    uint32_t at = (uint32_t)(offsetof(struct seccomp_data, args) + 8u * c->arg);
    bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    uint32_t low = at + (big ? 4u : 0u), high = at + (big ? 0u : 4u);
    size_t n_low = half_size((uint32_t)c->mask);
    if (!c->low32)
        put_half(m, high, (uint32_t)(c->mask >> 32), (uint32_t)(c->value >> 32), n_low + skip);
    put_half(m, low, (uint32_t)c->mask, (uint32_t)c->value, skip);
}

/* Each conjunction ends in a return of the hit; behind the last one is the return of the miss. */
static void
put_block(struct emitter *m, const struct seccomp_rule *r)
{
    uint32_t hit = seccomp_compile_action(m, r->invert ? SECCOMP_V_EPERM : r->verdict);
    uint32_t miss = seccomp_compile_action(m, r->invert ? r->verdict : SECCOMP_V_EPERM);
    for (size_t i = 0; i < r->n_conds;) {
        size_t end = i, left = 1; /* the return */
        while (end + 1 < r->n_conds && r->conds[end].more)
            end++;
        for (size_t k = i; k <= end; k++)
            left += cond_size(&r->conds[k]);
        for (; i <= end; i++) {
            left -= cond_size(&r->conds[i]);
            put_cond(m, &r->conds[i], left);
        }
        seccomp_compile_put(m, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, hit));
    }
    seccomp_compile_put(m, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, miss));
}

static void
put_return(struct emitter *m, enum seccomp_verdict v)
{
    seccomp_compile_put(
        m, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, seccomp_compile_action(m, v)));
}

static uint32_t
start_of(const struct range *r)
{
    return r->start < NUMBERS ? r->start : NUMBERS;
}

/* Returns where a subtree is cut: half of the numbers on each side, not half of the ranges. The
 * kernel runs a new filter once for every number, so a wide range near the top is what makes it
 * load fast. There is a range `hi`: behind the last one is a mark. */
static size_t
seccomp_compile_middle(const struct range *ranges, size_t lo, size_t hi)
{
    uint32_t sum = start_of(&ranges[lo]) + start_of(&ranges[hi]);
    size_t mid = lo + 1;
    while (mid + 1 < hi && 2 * start_of(&ranges[mid + 1]) <= sum)
        mid++;
    return mid;
}

/* Every leaf returns by itself. Depth is the logarithm of RANGES_MAX, here and below. */
static void
put_tree(struct emitter *m, size_t lo, size_t hi)
{
    const struct range *r = &m->ranges[lo];
    if (hi - lo == 1) {
        if (r->rule != NULL) {
            put_block(m, r->rule);
            return;
        }
        for (size_t i = 0; i < r->n_islands; i++) {
            seccomp_compile_put(
                m, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->islands[i].nr, 0, 1));
            put_return(m, r->islands[i].verdict);
        }
        put_return(m, r->verdict);
        return;
    }
    size_t mid = seccomp_compile_middle(m->ranges, lo, hi);
    struct emitter left = {.ranges = m->ranges};
    put_tree(&left, lo, mid); /* counts only */
    uint32_t k = m->ranges[mid].start;
    if (left.n <= JUMP_MAX) {
        seccomp_compile_put(
            m, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, k, (uint8_t)left.n, 0));
    } else {
        seccomp_compile_put(m, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, k, 0, 1));
        seccomp_compile_put(m, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)left.n));
    }
    put_tree(m, lo, mid);
    put_tree(m, mid, hi);
}

/* Instructions of a subtree whose plain leaves are jumps to the shared returns. */
static size_t
shared_size(const struct range *ranges, size_t lo, size_t hi)
{
    if (hi - lo == 1) {
        struct emitter block = {.ranges = ranges};
        if (ranges[lo].rule == NULL)
            return ranges[lo].n_islands;
        put_block(&block, ranges[lo].rule);
        return block.n;
    }
    size_t mid = seccomp_compile_middle(ranges, lo, hi);
    return 1 + shared_size(ranges, lo, mid) + shared_size(ranges, mid, hi);
}

/* The last comparison decides between two returns, the ones before fall through. */
static void
put_islands(struct emitter *m, const struct range *r, size_t returns)
{
    for (size_t i = 0; i < r->n_islands; i++) {
        size_t next = m->n + 1;
        bool last = i + 1 == r->n_islands;
        size_t hit = returns + r->islands[i].verdict - next;
        size_t miss = last ? returns + r->verdict - next : 0;
        ASSERT(hit <= JUMP_MAX && miss <= JUMP_MAX);
        seccomp_compile_put(m, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                            r->islands[i].nr, (uint8_t)hit,
                                                            (uint8_t)miss));
    }
}

/* `returns`: where the four returns start, in the order of the verdicts. */
static void
put_shared(struct emitter *m, size_t lo, size_t hi, size_t returns)
{
    if (hi - lo == 1) {
        if (m->ranges[lo].rule != NULL)
            put_block(m, m->ranges[lo].rule);
        else
            put_islands(m, &m->ranges[lo], returns);
        return;
    }
    size_t mid = seccomp_compile_middle(m->ranges, lo, hi);
    size_t n_left = shared_size(m->ranges, lo, mid), n_right = shared_size(m->ranges, mid, hi);
    size_t next = m->n + 1; /* jumps count from here */
    size_t left = n_left ? 0 : returns + m->ranges[lo].verdict - next;
    size_t right = n_right ? n_left : returns + m->ranges[mid].verdict - next;
    ASSERT(left <= JUMP_MAX && right <= JUMP_MAX);
    seccomp_compile_put(m, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K,
                                                        m->ranges[mid].start, (uint8_t)right,
                                                        (uint8_t)left));
    put_shared(m, lo, mid, returns);
    put_shared(m, mid, hi, returns);
}

static void
put_program(struct emitter *m, size_t n_ranges)
{
    seccomp_compile_put(m, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                        offsetof(struct seccomp_data, arch)));
    seccomp_compile_put(
        m, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 1, 0));
    put_return(m, SECCOMP_V_KILL);
    seccomp_compile_put(m, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                        offsetof(struct seccomp_data, nr)));
    size_t returns = m->n + shared_size(m->ranges, 0, n_ranges);
    if (n_ranges == 1 || returns + SECCOMP_V_KILL >= JUMP_MAX) {
        put_tree(m, 0, n_ranges);
        return;
    }
    put_shared(m, 0, n_ranges, returns);
    for (int v = SECCOMP_V_EPERM; v <= SECCOMP_V_KILL; v++)
        put_return(m, (enum seccomp_verdict)v);
}

static int
by_number(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    return x->nr < y->nr ? -1 : x->nr > y->nr;
}

/* The highest number that has a name: what is above did not exist when this libseccomp was made,
 * and a newer libc takes ENOSYS as the answer of an older kernel. */
static uint32_t
highest_known(void)
{
    uint32_t top = 0;
    for (int nr = 0; nr < 1024; nr++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
        if (name != NULL)
            top = (uint32_t)nr;
        free(name);
    }
    return top;
}

static void
add_range(struct range *ranges, size_t *n, struct range r)
{
    struct range *last = *n ? &ranges[*n - 1] : NULL;
    if (last && last->start == r.start)
        *last = r;
    else if (last && !last->rule && !r.rule && last->verdict == r.verdict)
        return;
    else
        ranges[(*n)++] = r;
}

static size_t
cut_ranges(const struct numbered *rules, size_t n_rules, struct range *ranges)
{
    uint32_t top = highest_known();
    size_t n = 0;
    add_range(ranges, &n, (struct range){.start = 0, .verdict = SECCOMP_V_EPERM});
    for (size_t i = 0; i < n_rules; i++) {
        const struct seccomp_rule *r = rules[i].rule;
        struct range range = {.start = rules[i].nr, .verdict = r->verdict};
        if (r->n_conds > 0)
            range.rule = r;
        /* an equal neighbour goes on; otherwise what lies between was closed below */
        add_range(ranges, &n, range);
        if (i + 1 == n_rules || rules[i + 1].nr != rules[i].nr + 1)
            add_range(ranges, &n,
                      (struct range){.start = rules[i].nr + 1, .verdict = SECCOMP_V_EPERM});
    }
    add_range(ranges, &n, (struct range){.start = top + 1, .verdict = SECCOMP_V_ENOSYS});
    if (seccomp_arch_native() == SCMP_ARCH_X86_64) {
        add_range(ranges, &n, (struct range){.start = X32_BIT, .verdict = SECCOMP_V_KILL});
        add_range(ranges, &n, (struct range){.start = UINT32_MAX, .verdict = SECCOMP_V_ENOSYS});
    }
    return n;
}

/* A single number between two ranges of one verdict becomes an island of the first. */
static size_t
fold_islands(struct range *ranges, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        struct range *last = out > 0 ? &ranges[out - 1] : NULL;
        if (last != NULL && i + 1 < n && !last->rule && !ranges[i].rule && !ranges[i + 1].rule &&
            ranges[i + 1].start == ranges[i].start + 1 && ranges[i + 1].verdict == last->verdict &&
            last->n_islands < ISLANDS_MAX) {
            last->islands[last->n_islands++] = (struct island){ranges[i].start, ranges[i].verdict};
            i++; /* and the range behind it is the first one going on */
            continue;
        }
        ranges[out++] = ranges[i];
    }
    return out;
}

static int
seccomp_compile_resolve(const struct seccomp_profile *p, struct numbered *out, size_t *ret_n,
                        size_t *unknown, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct seccomp_rule *r = &p->rules[i];
        int nr = seccomp_syscall_resolve_name(r->name);
        if (nr == __NR_SCMP_ERROR)
            (*unknown)++;
        if (nr < 0)
            continue; /* unknown, or not a call of this architecture */
        size_t size = 1;
        for (size_t k = 0; k < r->n_conds; k++) {
            size += cond_size(&r->conds[k]) + 1;
            if (r->conds[k].arg > 5)
                return err_set(e, -ERR_INVALID, "seccomp profile \"%s\": \"%s\" has no argument %d",
                               p->name, r->name, r->conds[k].arg);
        }
        if (size > BLOCK_MAX)
            return err_set(e, -ERR_LIMIT, "seccomp profile \"%s\": too many conditions on \"%s\"",
                           p->name, r->name);
        out[n++] = (struct numbered){.nr = (uint32_t)nr, .rule = r};
    }
    qsort(out, n, sizeof(*out), by_number);
    for (size_t i = 1; i < n; i++)
        if (out[i].nr == out[i - 1].nr)
            return err_set(e, -ERR_INVALID, "seccomp profile \"%s\" has two rules for \"%s\"",
                           p->name, out[i].rule->name);
    *ret_n = n;
    return 0;
}

int
seccomp_compile(const void *ctx, const struct seccomp_profile *p, struct seccomp_program *ret,
                struct err *e)
{
    if (p->n_rules > SECCOMP_RULES_MAX)
        return err_set(e, -ERR_LIMIT, "seccomp profile \"%s\" has more than %d rules", p->name,
                       SECCOMP_RULES_MAX);
    auto_mem void *tmp = mem_ctx("seccomp_compile");
    struct numbered *rules = mem_array(tmp, struct numbered, p->n_rules);
    size_t n_rules = 0, unknown = 0;
    int r = seccomp_compile_resolve(p, rules, &n_rules, &unknown, e);
    if (r < 0)
        return r;
    struct range *ranges = mem_array(tmp, struct range, RANGES_MAX);
    size_t n = fold_islands(ranges, cut_ranges(rules, n_rules, ranges));
    ranges[n] = (struct range){.start = UINT32_MAX};
    struct emitter count = {.ranges = ranges, .denied = p->denied};
    put_program(&count, n);
    if (count.n > SECCOMP_INSNS_MAX)
        return err_set(e, -ERR_LIMIT,
                       "seccomp profile \"%s\" makes %zu instructions, at most %d fit", p->name,
                       count.n, SECCOMP_INSNS_MAX);
    struct emitter m = {
        .ranges = ranges, .denied = p->denied, .out = mem_array(ctx, struct sock_filter, count.n)};
    put_program(&m, n);
    *ret = (struct seccomp_program){.insns = m.out, .n = (uint16_t)m.n, .unknown = unknown};
    return 0;
}
