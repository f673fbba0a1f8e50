/* SPDX-License-Identifier: Apache-2.0
 *
 * What commands say, and their options.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/connect.h"
#include "common/clock.h"

enum { EXIT_UNKNOWN = 127, NAMES_MAX = 128, WORDS_MAX = 3 };

int64_t
cmd_now(const struct cmd *c)
{
    return c->now_ns ? c->now_ns : clock_wall_ns();
}

/* Names and messages come from jobs and tasks: they must not drive the terminal. */
static void __attribute__((format(printf, 3, 0)))
cli_print(struct cmd *c, FILE *f, const char *fmt, va_list ap)
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
    cli_print(c, c->out, fmt, ap);
    va_end(ap);
    fputc('\n', c->out);
}

void
cmd_put(struct cmd *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cli_print(c, c->out, fmt, ap);
    va_end(ap);
}

void
cmd_warn(struct cmd *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fflush(c->out);
    cli_print(c, c->err, fmt, ap);
    va_end(ap);
    fputc('\n', c->err);
}

int
cmd_fail(struct cmd *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fflush(c->out);
    cli_print(c, c->err, fmt, ap);
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
         "Address of the agent, http:// or https://host:port, or unix:///path (NOMAD_ADDR; default "
         "http://127.0.0.1:4646)."},
        {"region", OPT_STRING, &c->region, "<region>",
         "Region to forward to (NOMAD_REGION; default the agent's)."},
        {"namespace", OPT_STRING, &c->namespace, "<namespace>",
         "Namespace to work in, \"*\" for all where lists allow it (NOMAD_NAMESPACE)."},
        {"token", OPT_STRING, &c->token, "<token>", "Access token to send (NOMAD_TOKEN)."},
        {"no-color", OPT_BOOL, &c->no_color, NULL, "Never colour the output (NOMAD_CLI_NO_COLOR)."},
        {"force-color", OPT_BOOL, &c->force_color, NULL,
         "Colour the output also when it is not a terminal (NOMAD_CLI_FORCE_COLOR)."},
        {"ca-cert", OPT_STRING, &c->tls.ca_cert, "<path>",
         "CAs that may have signed the agent's certificate, for https:// (NOMAD_CACERT; default "
         "those of this machine)."},
        {"ca-path", OPT_STRING, &c->tls.ca_path, "<path>",
         "A directory of files of CAs, where -ca-cert names none (NOMAD_CAPATH)."},
        {"client-cert", OPT_STRING, &c->tls.cert, "<path>",
         "Certificate to show to the agent (NOMAD_CLIENT_CERT)."},
        {"client-key", OPT_STRING, &c->tls.key, "<path>", "Its key (NOMAD_CLIENT_KEY)."},
        {"tls-server-name", OPT_STRING, &c->tls.name, "<name>",
         "Name that the agent's certificate must bear (NOMAD_TLS_SERVER_NAME; default the host of "
         "the address)."},
        {"tls-skip-verify", OPT_BOOL, &c->tls.skip_verify, NULL,
         "Take any certificate of the agent, and so of anybody (NOMAD_SKIP_VERIFY)."},
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
            return !str_eq(m->name, "node pool jobs");
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
cli_usage(struct cmd *c, const struct cmd_args *want, const char *what)
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
    const struct opt *tables[] = {opts ? opts : client, opts ? client : NULL, NULL};
    opt_parse_fn *parse = want->verbatim ? opt_parse_leading : opt_parse;
    struct opt_list args = {NULL, 0};
    if (c->complete) {
        c->complete(c, tables, want->verbatim);
        *ret_code = 0;
        return false;
    }
    int rc = parse(c, tables, c->argc, c->argv, &args, &e);
    c->args = args.v;
    c->n_args = args.n;
    if (rc > 0) {
        print_help(c, c->out, opts, client);
        *ret_code = 0;
        return false;
    }
    if (rc < 0) {
        *ret_code = cli_usage(c, want, e.text);
        return false;
    }
    if (c->n_args < want->min || c->n_args > want->max) {
        *ret_code = cli_usage(c, want, count_mistake(c, want));
        return false;
    }
    if (want->client)
        cmd_client_defaults(c);
    set_color(c);
    if (want->client && connect_prepare(c, &e) < 0) {
        *ret_code = cmd_fail(c, "%s", e.text);
        return false;
    }
    return true;
}
