/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool
controller_present(const char *name)
{
    static const char *const roots[] = {"/sys/fs/cgroup/cgroup.controllers",
                                        "/sys/fs/cgroup/unified/cgroup.controllers"};
    for (unsigned i = 0; i < 2; i++) {
        FILE *f = fopen(roots[i], "re");
        if (!f)
            continue;
        char line[512] = "";
        if (!fgets(line, sizeof(line), f))
            line[0] = 0;
        fclose(f);
        if (!*name)
            return true;
        char *save = NULL;
        for (char *w = strtok_r(line, " \n", &save); w; w = strtok_r(NULL, " \n", &save))
            if (strcmp(w, name) == 0)
                return true;
    }
    return false;
}

bool
test_need(const char *need)
{
    const char *why = NULL;
    if (strcmp(need, "root") == 0)
        why = geteuid() == 0 ? NULL : "not running as root";
    else if (strcmp(need, "cgroup2") == 0)
        why = controller_present("") ? NULL : "no cgroup2 mount";
    else if (strncmp(need, "cgroup2:", 8) == 0)
        why = controller_present(need + 8) ? NULL : "controller is not on the cgroup2 hierarchy";
    else if (strcmp(need, "userns") == 0)
        why = access("/proc/self/ns/user", F_OK) == 0 ? NULL : "kernel without user namespaces";
    else
        why = "unknown need";
    if (!why)
        return true;
    fprintf(stderr, "SKIP %s: %s\n", need, why);
    return false;
}

int
test_main(const char *name, const struct test_fixture *f, const TTest *const *tests, unsigned n,
          double timeout_s)
{
    Suite *s = suite_create(name);
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, timeout_s);
    tcase_add_checked_fixture(tc, f->setup, f->teardown);
    for (unsigned i = 0; i < n; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    /* Automake reads TAP from standard output. */
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
