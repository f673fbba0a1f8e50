/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds the output of attempt.c against a table.
 */
#ifndef PADDOCK_TESTS_ATTEMPTS_CHECK_H
#define PADDOCK_TESTS_ATTEMPTS_CHECK_H

#include <stdio.h>
#include <string.h>

#include "tests/attempts/expect.h"

/* The result of `name` in the output, or NULL. `buf` has 64 bytes. */
static const char *
attempt_result(const char *output, const char *name, char *buf)
{
    size_t n = strlen(name);
    for (const char *p = output; p != NULL && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
        if (strncmp(p, name, n) != 0 || p[n] != ' ')
            continue;
        size_t len = strcspn(p + n + 1, "\n");
        len = len < 63 ? len : 63;
        memcpy(buf, p + n + 1, len);
        buf[len] = 0;
        return buf;
    }
    return NULL;
}

static inline int
attempt_ok(const char *output, const struct attempt_expect *t)
{
    char buf[64];
    const char *got = attempt_result(output, t->name, buf);
    int ok = 0;
    size_t len = got ? strlen(got) : 0;
    for (const char *p = t->result; got && *p; p += strcspn(p, "|"), p += *p == '|')
        ok |= strcspn(p, "|") == len && strncmp(p, got, len) == 0;
    if (!ok)
        printf("# attempt %s: %s, must be %s\n", t->name, got ? got : "no result", t->result);
    fflush(stdout); /* a test that fails takes what is buffered along */
    return ok;
}

/* How many of `t` came out otherwise; each is printed as a TAP comment. */
static inline int
attempt_check(const char *output, const struct attempt_expect *t, size_t n)
{
    int bad = 0;
    for (size_t i = 0; i < n; i++)
        bad += !attempt_ok(output, &t[i]);
    return bad;
}

/* The same, with a line for each number: "# A24 as expected (3 of 3)". */
static inline int
attempt_table(const char *output, const struct attempt_expect *t, size_t n)
{
    int bad = 0;
    for (size_t i = 0; i < n; i++) {
        int all = 0, good = 0, seen = 0;
        for (size_t k = 0; k < i; k++)
            seen |= strcmp(t[k].number, t[i].number) == 0;
        for (size_t k = i; k < n && !seen; k++)
            if (strcmp(t[k].number, t[i].number) == 0) {
                all++;
                good += attempt_ok(output, &t[k]);
            }
        if (!seen)
            printf("# %s as expected (%d of %d)\n", t[i].number, good, all);
        bad += all - good;
    }
    return bad;
}

#endif
