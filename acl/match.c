/* SPDX-License-Identifier: Apache-2.0
 *
 * match_new() sorts, unites and files the rows; match_find() asks the files. `rows` has the plain
 * labels first and then the patterns in the order in which they count, so that of two patterns the
 * one with the lower number wins. A hash is that of a polynomial, so that the hash of any part of a
 * name is a difference of two sums; rows that it finds are compared as well.
 */
#include "acl/match.h"

#include <stdlib.h>
#include <string.h>

#include "acl/caps.h"
#include "common/mem.h"

enum {
    NAME_MAX = 264,  /* bytes of a name that is looked up by hash: two of 128 and more */
    CROWD = 16,      /* patterns that may share a beginning or end before another part is used */
    CROWD_MAX = 256, /* larger crowds are alike */
};
#define BASE UINT64_C(0x9e3779b97f4a7c15)

enum part { PART_START, PART_END, PART_INSIDE, PARTS };

/* A length of parts, and BASE to its power. */
struct length {
    size_t n;
    uint64_t power;
};

/* The patterns that have the part of that hash: numbers of rows from `first` on, ascending. */
struct file {
    uint64_t key; /* 0: empty */
    uint32_t first, n;
};

struct match {
    struct match_row *rows;
    size_t n, n_plain;
    uint64_t caps;
    uint32_t *plain; /* number of a row + 1 by hash */
    uint64_t plain_mask;
    struct file *files; /* by key */
    uint64_t files_mask;
    uint32_t *filed;
    struct length *lengths[PARTS];
    size_t n_lengths[PARTS];
    uint32_t all; /* the pattern of stars alone that counts; n: none */
};

/* --- labels --- */

bool
match_is_pattern(const char *label, size_t n)
{
    return memchr(label, '*', n) != NULL;
}

/* Goes back to the last star only, which is enough: the work is pn * n at most. */
bool
match_pattern(const char *pattern, size_t pn, const char *name, size_t n)
{
    size_t p = 0, i = 0, star = SIZE_MAX, from = 0;
    while (i < n) {
        if (p < pn && pattern[p] == '*') {
            star = ++p;
            from = i;
        } else if (p < pn && pattern[p] == name[i]) {
            p++;
            i++;
        } else if (star != SIZE_MAX) {
            p = star;
            i = ++from;
        } else {
            return false;
        }
    }
    while (p < pn && pattern[p] == '*')
        p++;
    return p == pn;
}

static int
compare_labels(const struct match_row *a, const struct match_row *b)
{
    int c = memcmp(a->label, b->label, a->n < b->n ? a->n : b->n);
    return c != 0 ? c : (a->n > b->n) - (a->n < b->n);
}

static size_t
count_literals(const struct match_row *row)
{
    size_t n = 0;
    for (size_t i = 0; i < row->n; i++)
        n += row->label[i] != '*';
    return n;
}

int
match_closer(const struct match_row *a, const struct match_row *b)
{
    size_t la = count_literals(a), lb = count_literals(b);
    return la != lb ? (la < lb) - (la > lb) : compare_labels(a, b);
}

static int
compare_by_label(const void *a, const void *b)
{
    return compare_labels(a, b);
}

/* Plain ones in byte order, then patterns as they count. */
static int
compare_by_place(const void *pa, const void *pb)
{
    const struct match_row *a = pa, *b = pb;
    bool ga = match_is_pattern(a->label, a->n), gb = match_is_pattern(b->label, b->n);
    if (ga != gb)
        return ga - gb;
    return ga ? match_closer(a, b) : compare_labels(a, b);
}

/* --- hashes and parts --- */

static uint64_t
hash_step(uint64_t h, char c)
{
    return h * BASE + (uint8_t)c + 1;
}

static uint64_t
hash_all(const char *p, size_t n)
{
    uint64_t h = 0;
    for (size_t i = 0; i < n; i++)
        h = hash_step(h, p[i]);
    return h;
}

/* Never 0, which is the empty place. */
static uint64_t
key_of(enum part part, size_t n, uint64_t hash)
{
    uint64_t k = (hash ^ (uint64_t)n << 8 ^ part) * UINT64_C(0xff51afd7ed558ccd);
    return (k ^ k >> 32) | 1;
}

/* The parts of a pattern that it can be filed by; length 0: it has none of that kind. */
struct parts {
    const char *p[PARTS];
    size_t n[PARTS];
};

static void
find_parts(const struct match_row *row, struct parts *ret)
{
    const char *end = row->label + row->n, *start = row->label;
    *ret = (struct parts){0};
    while (start < end) {
        const char *star = memchr(start, '*', (size_t)(end - start));
        size_t n = (size_t)((star ? star : end) - start);
        enum part part = start == row->label ? PART_START : star ? PART_INSIDE : PART_END;
        if (n > ret->n[part]) {
            ret->p[part] = start;
            ret->n[part] = n;
        }
        start += n + 1;
    }
}

struct entry {
    uint64_t key;
    uint32_t row;
};

static int
compare_entries(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* How many of the sorted entries have that key; no more than CROWD_MAX are counted. */
static size_t
count_key(const struct entry *v, size_t n, uint64_t key)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (v[mid].key < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (hi = lo; hi < n && hi - lo < CROWD_MAX && v[hi].key == key; hi++)
        ;
    return hi - lo;
}

static uint64_t
part_key(const struct parts *p, enum part part)
{
    return key_of(part, p->n[part], hash_all(p->p[part], p->n[part]));
}

/* Chooses the part that fewest patterns share, between stars only when the others are crowded. */
static enum part
choose_part(const struct parts *p, const struct entry *all, size_t n)
{
    enum part best = PARTS;
    size_t least = 0;
    for (enum part i = PART_START; i < PARTS; i++) {
        if (p->n[i] == 0)
            continue;
        size_t crowd = count_key(all, n, part_key(p, i));
        bool better = best == PARTS || crowd < least || (crowd == least && p->n[i] > p->n[best]);
        if (i == PART_INSIDE && best != PARTS)
            better = least > CROWD && crowd < least / 4;
        if (better) {
            best = i;
            least = crowd;
        }
    }
    return best;
}

static void
note_length(struct match *m, enum part part, size_t n)
{
    struct length *v = m->lengths[part];
    size_t i = 0, count = m->n_lengths[part];
    while (i < count && v[i].n < n)
        i++;
    if (i < count && v[i].n == n)
        return;
    mem_resize(m, v, struct length, count + 1);
    memmove(v + i + 1, v + i, (count - i) * sizeof(*v));
    v[i] = (struct length){.n = n, .power = 1};
    for (size_t k = 0; k < n; k++)
        v[i].power *= BASE;
    m->lengths[part] = v;
    m->n_lengths[part]++;
}

/* --- building --- */

static uint64_t
mask_for(size_t n)
{
    uint64_t size = 4;
    while (size < 2 * n)
        size *= 2;
    return size - 1;
}

static void
file_entries(struct match *m, struct entry *v, size_t n)
{
    qsort(v, n, sizeof(*v), compare_entries);
    m->files_mask = mask_for(n);
    m->files = mem_array(m, struct file, m->files_mask + 1);
    m->filed = mem_array(m, uint32_t, n);
    for (size_t i = 0; i < n; i++) {
        m->filed[i] = v[i].row;
        uint64_t at = v[i].key >> 8 & m->files_mask;
        while (m->files[at].n > 0 && m->files[at].key != v[i].key)
            at = (at + 1) & m->files_mask;
        if (m->files[at].n++ == 0) {
            m->files[at].key = v[i].key;
            m->files[at].first = (uint32_t)i;
        }
    }
}

static void
file_patterns(struct match *m)
{
    auto_mem void *tmp = mem_ctx("file");
    size_t n = m->n - m->n_plain, n_all = 0, n_entries = 0;
    struct parts *parts = mem_array(tmp, struct parts, n);
    struct entry *all = mem_array(tmp, struct entry, n * PARTS);
    struct entry *entries = mem_array(tmp, struct entry, n);
    for (size_t i = 0; i < n; i++) {
        find_parts(&m->rows[m->n_plain + i], &parts[i]);
        for (enum part p = PART_START; p < PARTS; p++)
            if (parts[i].n[p] > 0)
                all[n_all++] = (struct entry){part_key(&parts[i], p), (uint32_t)i};
    }
    qsort(all, n_all, sizeof(*all), compare_entries);
    for (size_t i = 0; i < n; i++) {
        enum part p = choose_part(&parts[i], all, n_all);
        uint32_t row = (uint32_t)(m->n_plain + i);
        if (p == PARTS && m->all == m->n)
            m->all = row;
        if (p == PARTS || parts[i].n[p] > NAME_MAX) /* which no name of that length matches */
            continue;
        entries[n_entries++] = (struct entry){part_key(&parts[i], p), row};
        note_length(m, p, parts[i].n[p]);
    }
    file_entries(m, entries, n_entries);
}

static uint64_t
plain_place(const struct match *m, uint64_t hash)
{
    return key_of(PARTS, 0, hash) >> 8 & m->plain_mask;
}

static void
file_plain(struct match *m)
{
    m->plain_mask = mask_for(m->n_plain);
    m->plain = mem_array(m, uint32_t, m->plain_mask + 1);
    for (size_t i = 0; i < m->n_plain; i++) {
        uint64_t at = plain_place(m, hash_all(m->rows[i].label, m->rows[i].n));
        while (m->plain[at] != 0)
            at = (at + 1) & m->plain_mask;
        m->plain[at] = (uint32_t)i + 1;
    }
}

struct match *
match_new(const void *ctx, const struct match_row *v, size_t n)
{
    struct match *m = mem_new(ctx, struct match);
    m->rows = mem_array(m, struct match_row, n);
    if (n > 0)
        memcpy(m->rows, v, n * sizeof(*v));
    qsort(m->rows, n, sizeof(*v), compare_by_label);
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (m->n > 0 && compare_labels(&m->rows[m->n - 1], &m->rows[i]) == 0) {
            m->rows[m->n - 1].caps |= m->rows[i].caps;
            continue;
        }
        bytes += m->rows[i].n;
        m->rows[m->n++] = m->rows[i];
    }
    char *text = mem_array(m, char, bytes);
    for (size_t i = 0; i < m->n; i++) {
        struct match_row *row = &m->rows[i];
        memcpy(text, row->label, row->n);
        row->label = text;
        text += row->n;
        if (row->caps & ACL_DENY)
            row->caps = ACL_DENY;
        else
            m->caps |= row->caps;
        m->n_plain += !match_is_pattern(row->label, row->n);
    }
    qsort(m->rows, m->n, sizeof(*v), compare_by_place);
    m->all = (uint32_t)m->n;
    file_plain(m);
    if (m->n > m->n_plain)
        file_patterns(m);
    return m;
}

/* --- finding --- */

static bool
row_matches(const struct match_row *row, const char *name, size_t n)
{
    return match_is_pattern(row->label, row->n) ? match_pattern(row->label, row->n, name, n)
                                                : row->n == n && memcmp(row->label, name, n) == 0;
}

static const struct match_row *
find_slowly(const struct match *m, const char *name, size_t n)
{
    for (size_t i = 0; i < m->n; i++)
        if (row_matches(&m->rows[i], name, n))
            return &m->rows[i];
    return NULL;
}

/* The number of the first pattern filed under `key` that matches, if it is below `best`. */
static uint32_t
ask_file(const struct match *m, uint64_t key, const char *name, size_t n, uint32_t best)
{
    uint64_t at = key >> 8 & m->files_mask;
    while (m->files[at].n > 0 && m->files[at].key != key)
        at = (at + 1) & m->files_mask;
    const uint32_t *v = m->filed + m->files[at].first;
    for (uint32_t i = 0; i < m->files[at].n && v[i] < best; i++)
        if (match_pattern(m->rows[v[i]].label, m->rows[v[i]].n, name, n))
            return v[i];
    return best;
}

static const struct match_row *
find_pattern(const struct match *m, const char *name, size_t n, const uint64_t *h)
{
    uint32_t best = m->all;
    for (size_t i = 0; i < m->n_lengths[PART_START] && m->lengths[PART_START][i].n <= n; i++) {
        size_t len = m->lengths[PART_START][i].n;
        best = ask_file(m, key_of(PART_START, len, h[len]), name, n, best);
    }
    for (size_t i = 0; i < m->n_lengths[PART_END] && m->lengths[PART_END][i].n <= n; i++) {
        const struct length *l = &m->lengths[PART_END][i];
        uint64_t hash = h[n] - h[n - l->n] * l->power;
        best = ask_file(m, key_of(PART_END, l->n, hash), name, n, best);
    }
    for (size_t i = 0; i < m->n_lengths[PART_INSIDE] && m->lengths[PART_INSIDE][i].n <= n; i++) {
        const struct length *l = &m->lengths[PART_INSIDE][i];
        for (size_t at = 0; at + l->n <= n; at++) {
            uint64_t hash = h[at + l->n] - h[at] * l->power;
            best = ask_file(m, key_of(PART_INSIDE, l->n, hash), name, n, best);
        }
    }
    return best < m->n ? &m->rows[best] : NULL;
}

const struct match_row *
match_find(const struct match *m, const char *name, size_t n)
{
    uint64_t h[NAME_MAX + 1] __attribute__((uninitialized));
    if (m->n == 0)
        return NULL;
    if (n > NAME_MAX)
        return find_slowly(m, name, n);
    h[0] = 0;
    for (size_t i = 0; i < n; i++)
        h[i + 1] = hash_step(h[i], name[i]);
    for (uint64_t at = plain_place(m, h[n]); m->plain[at] != 0; at = (at + 1) & m->plain_mask) {
        const struct match_row *row = &m->rows[m->plain[at] - 1];
        if (row->n == n && memcmp(row->label, name, n) == 0)
            return row;
    }
    return m->n > m->n_plain ? find_pattern(m, name, n, h) : NULL;
}

uint64_t
match_caps(const struct match *m)
{
    return m->caps;
}

uint64_t
match_caps_of(const struct match *m, const char *name, size_t n)
{
    uint64_t caps = 0;
    for (size_t i = 0; i < m->n; i++)
        if (!(m->rows[i].caps & ACL_DENY) && row_matches(&m->rows[i], name, n))
            caps |= m->rows[i].caps;
    return caps;
}

size_t
match_rows(const struct match *m, const struct match_row **ret)
{
    *ret = m->rows;
    return m->n;
}
