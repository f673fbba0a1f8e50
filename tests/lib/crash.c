/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/crash.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/faults.h"
#include "tests/lib/test.h"

enum { CALLS_MAX = 20000, SLOW_S = 60 };

/* Between the child and us; outlives any end of it. */
static struct {
    uint64_t acknowledged;
    uint64_t faults;
    uint64_t calls;
} *told;

void
acknowledged(uint64_t n)
{
    told->acknowledged = n;
    told->faults = faults_made();
}

bool
crash_long(void)
{
    return getenv("PADDOCK_LONG") != NULL;
}

static void
run(const struct crash *c, const char *dir, const char *rules)
{
    faults_set(rules);
    c->work(dir);
    told->faults = faults_made();
    told->calls = faults_calls(0);
    faults_set(NULL);
}

static int
child(const struct crash *c, const char *dir, const char *rules, bool power)
{
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)signal(SIGALRM, SIG_DFL); /* check's own would kill the whole test, without a word */
        alarm(SLOW_S);
        if (rules != NULL)
            run(c, dir, rules);
        else
            c->check(dir, told->acknowledged, power);
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

/* True when the fault was met. */
static bool
one(const struct crash *c, uint64_t k, uint64_t seed)
{
    char base[] = "/dev/shm/paddock-crash-XXXXXX", dir[64], rules[512], where[600];
    ck_assert_ptr_nonnull(mkdtemp(base));
    snprintf(dir, sizeof(dir), "%s/d", base);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    bool cut = strcmp(c->action, "cut") == 0;
    char number[24] = "";
    if (cut)
        snprintf(number, sizeof(number), " %llu", (unsigned long long)(seed * 100003 + k));
    snprintf(rules, sizeof(rules), "%s %s/%s %llu %s%s\n%s%s", c->classes, dir, c->pattern,
             (unsigned long long)k, c->action, number, cut ? "disk " : "", cut ? dir : "");
    snprintf(where, sizeof(where), "under: %s", rules);
    memset(told, 0, sizeof(*told));
    int status = child(c, dir, rules, false);
    bool exited = WIFEXITED(status);
    bool hit = told->faults > 0 || (exited && WEXITSTATUS(status) == FAULTS_EXIT) ||
               (c->fatal != 0 && exited && WEXITSTATUS(status) == c->fatal);
    bool fine = exited && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == FAULTS_EXIT ||
                           (c->fatal != 0 && WEXITSTATUS(status) == c->fatal));
    ck_assert_msg(fine, "status %x %s", (unsigned)status, where);
    int after = child(c, dir, NULL, cut);
    ck_assert_msg(after == 0, "status %x of the check that %llu are there, %s (left in %s)",
                  (unsigned)after, (unsigned long long)told->acknowledged, where, base);
    ck_assert_int_eq(dir_remove(AT_FDCWD, base, NULL), 0);
    return hit;
}

unsigned
crash_run(const struct crash *c)
{
    unsigned n = 0, step = c->step > 0 && !crash_long() ? c->step : 1;
    unsigned seeds = c->seeds > 0 ? c->seeds : 1;
    told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(told, MAP_FAILED);
    bool hit = true;
    for (uint64_t k = 1; hit; k += step) {
        ck_assert_uint_lt(k, CALLS_MAX);
        hit = false;
        for (unsigned s = 0; s < seeds; s++)
            hit |= one(c, k, s);
        n += hit;
    }
    munmap(told, sizeof(*told));
    return n;
}
