/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding and starting a command; the overview.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"

enum { EXIT_UNKNOWN = 127, NAMES_MAX = 128, WORDS_MAX = 4 };

/* Returns the name of a command in a list below a title: the words of the name that the title does
 * not say. NULL: it is not of it. */
static const char *
main_listed(const struct command *m, const char *parent, bool common)
{
    size_t n = parent ? strlen(parent) : 0;
    if (parent)
        return strncmp(m->name, parent, n) == 0 && m->name[n] == ' ' ? m->name + n + 1 : NULL;
    return m->common == common && !strchr(m->name, ' ') && m->brief ? m->name : NULL;
}

static void
print_group(FILE *f, const char *title, const char *parent, bool common)
{
    int width = 15;
    for (size_t i = 0; i < commands_n; i++) {
        const char *name = main_listed(&commands[i], parent, common);
        int n = name ? (int)strlen(name) : 0;
        width = n > width ? n : width;
    }
    fprintf(f, "%s:\n", title);
    for (size_t i = 0; i < commands_n; i++) {
        const char *name = main_listed(&commands[i], parent, common);
        if (name)
            fprintf(f, "    %-*s %s\n", width, name, commands[i].brief);
    }
}

static void
print_overview(FILE *f)
{
    fprintf(f, "Usage: paddock [-version] [-help] <command> [args]\n\n");
    print_group(f, "Common commands", NULL, true);
    fputc('\n', f);
    print_group(f, "Other commands", NULL, false);
}

static bool
is_parent(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < commands_n; i++)
        if (strncmp(commands[i].name, name, n) == 0 && commands[i].name[n] == ' ')
            return true;
    return false;
}

static const struct command *
main_find(const char *name)
{
    for (size_t i = 0; i < commands_n; i++)
        if (strcmp(commands[i].name, name) == 0 && commands[i].run)
            return &commands[i];
    return NULL;
}

static bool
is_help(const char *s)
{
    return str_eq(s, "-h") || str_eq(s, "-help") || str_eq(s, "--help") || str_eq(s, "help");
}

/* Commands of Nomad that come in a later release or not at all: whoever types one has not mistyped.
 * A parent stands for all below it. */
static bool
of_nomad(const char *name)
{
    static const char *const names[] = {"acl",
                                        "check",
                                        "client-config",
                                        "license",
                                        "namespace",
                                        "node pool",
                                        "operator client-state",
                                        "operator gossip",
                                        "operator raft info",
                                        "operator raft logs",
                                        "operator raft state",
                                        "operator utilization",
                                        "plugin",
                                        "recommendation",
                                        "sentinel",
                                        "service",
                                        "setup",
                                        "system reconcile",
                                        "volume claim",
                                        "volume deregister",
                                        "volume detach",
                                        "volume snapshot"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        if (strncmp(name, names[i], n) == 0 && (name[n] == '\0' || name[n] == ' '))
            return true;
    }
    return false;
}

static int
main_unknown(const char *name)
{
    if (name[0] == '-') {
        fprintf(
            stderr,
            "paddock: options go after the command: paddock <command> %s ...; \"paddock -help\" "
            "lists the commands\n",
            name);
        return EXIT_UNKNOWN;
    }
    if (of_nomad(name)) {
        fprintf(stderr, "paddock: \"%s\" is a command of Nomad that is not in Paddock %s\n", name,
                PACKAGE_VERSION);
        return EXIT_UNKNOWN;
    }
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < commands_n && n < NAMES_MAX; i++)
        names[n++] = commands[i].name;
    const char *near = str_nearest(name, names, n);
    fprintf(stderr, "paddock: there is no command \"%s\"", name);
    if (near)
        fprintf(stderr, ", did you mean \"%s\"?\n", near);
    else
        fprintf(stderr, "; \"paddock -help\" lists them\n");
    return EXIT_UNKNOWN;
}

static int
parent_help(const char *parent, bool asked)
{
    FILE *f = asked ? stdout : stderr;
    fprintf(f, "Usage: paddock %s <subcommand> [options] [args]\n\n", parent);
    print_group(f, "Subcommands", parent, false);
    fprintf(f, "\nFor the options of one: paddock %s <subcommand> -help\n", parent);
    return asked ? 0 : 1;
}

static int
main_run(const struct command *m, int argc, char **argv)
{
    auto_mem void *ctx = mem_ctx("command");
    struct cmd *c = mem_new(ctx, struct cmd);
    if (m->alias_of)
        m = main_find(m->alias_of);
    c->command = m;
    c->argc = argc;
    c->argv = argv;
    c->out = stdout;
    c->err = stderr;
    c->in = stdin;
    c->fetch = http_fetch;
    int code = m->run(c);
    /* whoever read our output has had enough: no news */
    if ((fflush(stdout) != 0 || ferror(stdout)) && errno != EPIPE)
        return code ? code : cmd_fail(c, "writing to standard output failed");
    return code;
}

/* The first `words` of the command line; false when there are not so many before an option. */
static bool
main_join(char *out, size_t size, int argc, char **argv, int words)
{
    size_t n = 0;
    if (argc <= words)
        return false;
    for (int i = 1; i <= words; i++) {
        if (argv[i][0] == '-')
            return false;
        int k = snprintf(out + n, size - n, "%s%s", i > 1 ? " " : "", argv[i]);
        n += (size_t)k;
        if (n >= size)
            return false;
    }
    return true;
}

int
cli_main(int argc, char **argv)
{
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_UNKNOWN;
    }
    const char *first = argv[1];
    if (is_help(first)) {
        print_overview(stdout);
        return 0;
    }
    if (str_eq(first, "-version") || str_eq(first, "--version") || str_eq(first, "-v"))
        return main_run(main_find("version"), 1, argv + 1);
    char name[64];
    for (int words = WORDS_MAX; words > 1; words--) {
        if (!main_join(name, sizeof(name), argc, argv, words))
            continue;
        const struct command *m = main_find(name);
        if (m)
            return main_run(m, argc - words, argv + words);
        if (is_parent(name))
            return parent_help(name, argc > words + 1 && is_help(argv[words + 1]));
    }
    const struct command *m = main_find(first);
    if (m)
        return main_run(m, argc - 1, argv + 1);
    if (!is_parent(first))
        return main_unknown(first);
    if (argc > 2 && !is_help(argv[2]) && argv[2][0] != '-') {
        snprintf(name, sizeof(name), "%s %s", first, argv[2]);
        return main_unknown(name);
    }
    return parent_help(first, argc > 2);
}
