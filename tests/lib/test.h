/* SPDX-License-Identifier: Apache-2.0
 *
 * Unit tests: libcheck with TAP output for Automake. A test file defines one suite:
 *
 *   START_TEST(parses_minutes) { ... ck_assert_int_eq(...); } END_TEST
 *   TEST_SUITE("duration", parses_minutes, ...)
 *
 * Each case runs in a child with a timeout. A test that needs something of the machine calls
 * test_need("root") first: where it is missing the case is reported as skipped, with the reason.
 */
#ifndef PADDOCK_TESTS_TEST_H
#define PADDOCK_TESTS_TEST_H

#include <check.h>
#include <stdbool.h>

/* Prints 'SKIP <need>: <why>' for the lane's count and returns false when the need is not met.
 * Needs: root, userns, cgroup2, cgroup2:memory, cgroup2:cpu, cgroup2:pids. */
bool test_need(const char *need);
#define TEST_NEED(need)       \
    do {                      \
        if (!test_need(need)) \
            return;           \
    } while (0)

/* The functions that run before and after each case, in its child; NULL: nothing. */
struct test_fixture {
    void (*setup)(void), (*teardown)(void);
};
int test_main(const char *name, const struct test_fixture *f, const TTest *const *tests, unsigned n,
              double timeout_s);

#define TEST_SUITE_FIXTURE(name, seconds, before, after, ...)                                      \
    int main(void)                                                                             \
    {                                                                                          \
        const TTest *const tests[] = {__VA_ARGS__};                                            \
        const struct test_fixture fixture = {before, after};                                   \
        return test_main(name, &fixture, tests, sizeof(tests) / sizeof(tests[0]), (seconds));  \
    }
#define TEST_SUITE_TIMEOUT(name, seconds, ...) TEST_SUITE_FIXTURE(name, seconds, NULL, NULL, __VA_ARGS__)
#define TEST_SUITE(name, ...) TEST_SUITE_TIMEOUT(name, 20, __VA_ARGS__)

#endif
