/* SPDX-License-Identifier: Apache-2.0
 *
 * What -help prints: one column of texts in each list, filled lines, no option that means nothing.
 */
#include <stdlib.h>

#include "cli/cli.h"
#include "tests/cli/fake.h"
#include "tests/lib/test.h"

enum { WIDTH = 78 };

/* No line of a paragraph is longer than it may be, or has room for the next line's first word. */
static void
check_flow(const char *name, const char *help)
{
    size_t width = 0, indent = 0;
    for (const char *l = help, *end; *l != '\0'; l = *end != '\0' ? end + 1 : end) {
        end = strchrnul(l, '\n');
        size_t n = (size_t)(end - l), in = strspn(l, " ");
        bool text = n > in && in > 0 && l[in] != '-';
        if (text && n > WIDTH)
            ck_abort_msg("%s: a line of %zu: %.*s", name, n, (int)n, l);
        if (text && width > 0 && in == indent && width + 1 + strcspn(l + in, " \n") <= WIDTH)
            ck_abort_msg("%s: this could stand on the line before: %.*s", name, (int)n, l);
        width = text && end[-1] != ':' ? n : 0;
        indent = in;
    }
}

START_TEST(help_of_a_command_is_filled)
{
    for (size_t i = 0; i < commands_n; i++) {
        char line[64];
        if (commands[i].alias_of || !commands[i].run)
            continue;
        snprintf(line, sizeof(line), "%s -help", commands[i].name);
        ck_assert_int_eq(fake_run(line), 0);
        check_flow(commands[i].name, fake_out());
        ck_assert_ptr_null(strstr(fake_out(), "Paddock's own"));
    }
}
END_TEST

/* Nodes, servers and agents have none; the jobs of a node pool do. */
START_TEST(a_namespace_is_offered_where_it_means_something)
{
    static const char *const fleet[] = {"node ", "server ", "operator ", "system ", "agent-info"};
    size_t with = 0;
    for (size_t i = 0; i < commands_n; i++) {
        char line[64];
        bool none = false;
        if (commands[i].alias_of || !commands[i].run)
            continue;
        for (size_t k = 0; k < ARRAY_LEN(fleet); k++)
            none = none || str_prefix(commands[i].name, fleet[k]);
        none = none && !str_eq(commands[i].name, "node pool jobs");
        snprintf(line, sizeof(line), "%s -help", commands[i].name);
        fake_run(line);
        bool asks = strstr(fake_out(), "\n  -address=") != NULL;
        bool offered = strstr(fake_out(), "\n  -namespace=") != NULL;
        ck_assert_msg(offered == (asks && !none), "%s", commands[i].name);
        with += offered;
    }
    ck_assert_uint_gt(with, 20);
}
END_TEST

/* Returns where the text of `m` begins in its line of the list; 0: it is not there. */
static size_t
column(const char *list, const struct command *m, const char *name)
{
    char want[80];
    snprintf(want, sizeof(want), "\n    %s ", name);
    const char *l = strstr(list, want);
    const char *text = l != NULL ? strstr(l, m->brief) : NULL;
    return text != NULL ? (size_t)(text - l) : 0;
}

START_TEST(a_list_of_commands_is_aligned)
{
    size_t lists = 0;
    for (size_t i = 0; i < commands_n; i++) {
        const char *parent = commands[i].name;
        size_t n = strlen(parent), size, at = 0;
        char *text = NULL;
        if (commands[i].run || strchr(parent, ' ') || str_eq(parent, "agent"))
            continue;
        FILE *before = stdout;
        char *argv[] = {(char[]){"paddock"}, (char *)(uintptr_t)parent, (char[]){"-h"}, NULL};
        stdout = open_memstream(&text, &size);
        int code = cli_main(3, argv);
        fclose(stdout);
        stdout = before;
        ck_assert_int_eq(code, 0);
        for (size_t k = 0; k < commands_n; k++) {
            const struct command *m = &commands[k];
            if (strncmp(m->name, parent, n) != 0 || m->name[n] != ' ' || !m->brief)
                continue;
            size_t c = column(text, m, m->name + n + 1);
            ck_assert_msg(c > 0 && (at == 0 || c == at), "%s: %s", m->name, text);
            at = c;
        }
        lists += at > 0;
        free(text);
    }
    ck_assert_uint_gt(lists, 8);
}
END_TEST

TEST_SUITE("cli help", help_of_a_command_is_filled, a_namespace_is_offered_where_it_means_something,
           a_list_of_commands_is_aligned)
