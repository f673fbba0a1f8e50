/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding and starting a command; help.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/complete.h"
#include "common/num.h"

enum { EXIT_UNKNOWN = 127, NAMES_MAX = 128, WORDS_MAX = 3 };

const char *
cmd_env(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

int64_t
cmd_now(const struct cmd *c)
{
    return c->now_ns ? c->now_ns : clock_wall_ns();
}

/* Names and messages come from jobs and tasks: they must not drive the terminal. */
static void __attribute__((format(printf, 3, 0)))
print(struct cmd *c, FILE *f, const char *fmt, va_list ap)
{
    char *text = mem_vprintf(c, fmt, ap);
    str_tame(text, true);
    fputs(text, f);
    talloc_free(text);
}

void
cmd_say(struct cmd *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print(c, c->out, fmt, ap);
    va_end(ap);
    fputc('\n', c->out);
}

void
cmd_put(struct cmd *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    print(c, c->out, fmt, ap);
    va_end(ap);
}

void
cmd_warn(struct cmd *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fflush(c->out);
    print(c, c->err, fmt, ap);
    va_end(ap);
    fputc('\n', c->err);
}

int
cmd_fail(struct cmd *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fflush(c->out);
    print(c, c->err, fmt, ap);
    va_end(ap);
    fputc('\n', c->err);
    return 1;
}

void
cmd_heading(struct cmd *c, const char *title)
{
    fputs(c->color ? "\n\033[1m" : "\n", c->out);
    cmd_put(c, "%s", title);
    fputs(c->color ? "\033[0m\n" : "\n", c->out);
}

bool
cmd_confirm(struct cmd *c, const char *question)
{
    char line[64] = "";
    if (!isatty(STDIN_FILENO) && c->in == stdin)
        return true;
    cmd_put(c, "%s [y/N] ", question);
    fflush(c->out);
    if (!fgets(line, sizeof(line), c->in))
        return false;
    return line[0] == 'y' && (line[1] == '\n' || str_prefix(line, "yes"));
}

/* --- options --- */

static const struct opt *
client_opts(struct cmd *c)
{
    const struct opt opts[] = {
        {"address", OPT_STRING, &c->address, "<addr>",
         "Address of the agent, http://host:port or unix:///path (NOMAD_ADDR; default "
         "http://127.0.0.1:4646)."},
        {"region", OPT_STRING, &c->region, "<region>",
         "Region to forward to (NOMAD_REGION; default the agent's)."},
        {"namespace", OPT_STRING, &c->namespace, "<namespace>",
         "Namespace to work in, \"*\" for all where lists allow it (NOMAD_NAMESPACE)."},
        {"token", OPT_STRING, &c->token, "<token>", "Access token to send (NOMAD_TOKEN)."},
        {"no-color", OPT_BOOL, &c->no_color, NULL, "Never colour the output (NOMAD_CLI_NO_COLOR)."},
        {"force-color", OPT_BOOL, &c->force_color, NULL,
         "Colour the output also when it is not a terminal (NOMAD_CLI_FORCE_COLOR)."},
        {"ca-cert", OPT_STRING, &c->tls_file, "<path>", "Refused: TLS comes in a later release."},
        {"ca-path", OPT_STRING, &c->tls_file, "<path>", "Refused: TLS comes in a later release."},
        {"client-cert", OPT_STRING, &c->tls_file, "<path>",
         "Refused: TLS comes in a later release."},
        {"client-key", OPT_STRING, &c->tls_file, "<path>",
         "Refused: TLS comes in a later release."},
        {"tls-server-name", OPT_STRING, &c->tls_name, "<name>", "Without effect until TLS comes."},
        {"tls-skip-verify", OPT_BOOL, &c->tls_skip, NULL, "Without effect until TLS comes."},
        {0}};
    return mem_dup(c, opts, sizeof(opts));
}

void
cmd_client_defaults(struct cmd *c)
{
    c->address = str_or(c->address, str_or(cmd_env("NOMAD_ADDR"), "http://127.0.0.1:4646"));
    c->region = str_or(c->region, cmd_env("NOMAD_REGION"));
    c->namespace = str_or(c->namespace, cmd_env("NOMAD_NAMESPACE"));
    c->token = str_or(c->token, cmd_env("NOMAD_TOKEN"));
    c->http_auth = cmd_env("NOMAD_HTTP_AUTH");
}

static void
set_color(struct cmd *c)
{
    bool off = c->no_color || cmd_env("NOMAD_CLI_NO_COLOR") || cmd_env("NO_COLOR");
    bool on = c->force_color || cmd_env("NOMAD_CLI_FORCE_COLOR");
    c->color = on || (!off && c->out == stdout && isatty(STDOUT_FILENO));
}

static void
print_wrapped(FILE *f, const char *text, int indent)
{
    int col = 0;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " \n");
        if (col == 0)
            col = fprintf(f, "%*s%.*s", indent, "", (int)n, p);
        else if (col + 1 + (int)n > 78)
            col = fprintf(f, "\n%*s%.*s", indent, "", (int)n, p) - 1;
        else
            col += fprintf(f, " %.*s", (int)n, p);
        p += n;
        if (*p == '\n') {
            fputc('\n', f);
            col = 0;
            p++;
        }
        while (*p == ' ')
            p++;
    }
    if (col)
        fputc('\n', f);
}

/* Nodes, servers and agents have no namespace: the option is taken, as Nomad's is, and not offered.
 */
static bool
of_the_fleet(const struct command *m)
{
    static const char *const first[] = {"node ", "server ", "operator ", "system ", "agent-info"};
    for (size_t i = 0; i < ARRAY_LEN(first); i++)
        if (str_prefix(m->name, first[i]))
            return true;
    return false;
}

static void
print_opts(FILE *f, const char *title, const struct opt *o, const char *without)
{
    if (!o || !o->name)
        return;
    fprintf(f, "\n%s:\n", title);
    for (; o->name; o++) {
        if (str_eq(o->name, without))
            continue;
        if (o->arg)
            fprintf(f, "\n  -%s=%s\n", o->name, o->arg);
        else
            fprintf(f, "\n  -%s\n", o->name);
        print_wrapped(f, o->help, 4);
    }
}

static void
print_help(struct cmd *c, FILE *f, const struct opt *opts, const struct opt *client)
{
    const struct command *m = c->command;
    fprintf(f, "Usage: paddock %s %s\n\n", m->name, m->args);
    print_wrapped(f, m->help, 2);
    print_opts(f, "General options", client, of_the_fleet(m) ? "namespace" : NULL);
    print_opts(f, "Options", opts, NULL);
}

static int
usage(struct cmd *c, const struct cmd_args *want, const char *what)
{
    cmd_fail(c, "%s\nUsage: paddock %s %s\nFor help: paddock %s -help", what, c->command->name,
             c->command->args, c->command->name);
    return want->usage_code ? want->usage_code : 1;
}

static const char *
count_mistake(struct cmd *c, const struct cmd_args *want)
{
    if (c->n_args < want->min)
        return want->min == 1 && want->max == 1 ? "This command takes one argument"
                                                : "An argument is missing";
    return want->max == 0 ? "This command takes no arguments" : "Too many arguments";
}

bool
cmd_parse(struct cmd *c, const struct opt *opts, const struct cmd_args *want, int *ret_code)
{
    struct err e = ERR_INIT;
    const struct opt *client = want->client ? client_opts(c) : NULL;
    const struct opt *tables[2] = {opts, client};
    opt_parse_fn *parse = want->verbatim ? opt_parse_leading : opt_parse;
    if (c->complete) {
        complete_command(c, tables, client ? 2 : 1, want->verbatim);
        *ret_code = 0;
        return false;
    }
    int rc = parse(c, tables, client ? 2 : 1, c->argc, c->argv, &c->args, &c->n_args, &e);
    if (rc > 0) {
        print_help(c, c->out, opts, client);
        *ret_code = 0;
        return false;
    }
    if (rc < 0) {
        *ret_code = usage(c, want, e.text);
        return false;
    }
    if (c->n_args < want->min || c->n_args > want->max) {
        *ret_code = usage(c, want, count_mistake(c, want));
        return false;
    }
    if (want->client)
        cmd_client_defaults(c);
    set_color(c);
    if (c->tls_file) {
        *ret_code = cmd_fail(c, "TLS comes in a later release: leave out the certificate flags and "
                                "use an http:// address");
        return false;
    }
    return true;
}

/* --- overview --- */

/* What stands in a list below the title: the words of the name that the title does not say. NULL:
 * it is not of it. */
static const char *
listed(const struct command *m, const char *parent, bool common)
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
        const char *name = listed(&commands[i], parent, common);
        int n = name ? (int)strlen(name) : 0;
        width = n > width ? n : width;
    }
    fprintf(f, "%s:\n", title);
    for (size_t i = 0; i < commands_n; i++) {
        const char *name = listed(&commands[i], parent, common);
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
find(const char *name)
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

/* Commands of Nomad that come in a later release or not at all: whoever types one has not mistyped. A
 * parent stands for all below it. */
static bool
of_nomad(const char *name)
{
    static const char *const names[] = {"acl",
                                        "action",
                                        "check",
                                        "client-config",
                                        "config",
                                        "debug",
                                        "job action",
                                        "job scale",
                                        "job scaling-events",
                                        "license",
                                        "login",
                                        "monitor",
                                        "namespace",
                                        "node identity",
                                        "node intro",
                                        "node pool",
                                        "operator autopilot",
                                        "operator client-state",
                                        "operator debug",
                                        "operator gossip",
                                        "operator raft info",
                                        "operator raft logs",
                                        "operator raft state",
                                        "operator root",
                                        "operator snapshot",
                                        "operator utilization",
                                        "plugin",
                                        "quota",
                                        "recommendation",
                                        "scaling",
                                        "sentinel",
                                        "service",
                                        "setup",
                                        "system reconcile",
                                        "tls",
                                        "var",
                                        "volume"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        if (strncmp(name, names[i], n) == 0 && (name[n] == '\0' || name[n] == ' '))
            return true;
    }
    return false;
}

static int
unknown(const char *name)
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
run(const struct command *m, int argc, char **argv)
{
    auto_mem void *ctx = mem_ctx("command");
    struct cmd *c = mem_new(ctx, struct cmd);
    if (m->alias_of)
        m = find(m->alias_of);
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
join(char *out, size_t size, int argc, char **argv, int words)
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
        return run(find("version"), 1, argv + 1);
    char name[64];
    for (int words = WORDS_MAX; words > 1; words--) {
        if (!join(name, sizeof(name), argc, argv, words))
            continue;
        const struct command *m = find(name);
        if (m)
            return run(m, argc - words, argv + words);
        if (is_parent(name))
            return parent_help(name, argc > words + 1 && is_help(argv[words + 1]));
    }
    const struct command *m = find(first);
    if (m)
        return run(m, argc - 1, argv + 1);
    if (!is_parent(first))
        return unknown(first);
    if (argc > 2 && !is_help(argv[2]) && argv[2][0] != '-') {
        snprintf(name, sizeof(name), "%s %s", first, argv[2]);
        return unknown(name);
    }
    return parent_help(first, argc > 2);
}
