/* SPDX-License-Identifier: Apache-2.0
 *
 * What bash asks for at a press of the tab key (`complete -C`, contrib/bash-completion): commands
 * from the table, options from the option table that the command itself parses with, identifiers
 * from the agent. Silence is the answer to everything else; bash then offers file names.
 */
#include "cli/complete.h"

#include <stdlib.h>

#include "cli/api.h"
#include "cli/connect.h"
#include "cli/limits.h"
#include "common/num.h"

struct complete {
    const char *word;    /* what is there of the word; may be empty */
    const char **before; /* words of the command before it; [0] is the command */
    size_t n_before;
};

/* The values that a placeholder of a command's `args` stands for. */
static const struct kind {
    const char *name, *path, *key;
    bool uuid;
    bool any; /* "id" stands for it too */
} kinds[] = {
    {"job", "/v1/jobs", "ID", false, true},
    {"allocation", "/v1/allocations", "ID", true, true},
    {"node", "/v1/nodes", "ID", true, true},
    {"evaluation", "/v1/evaluations", "ID", true, true},
    {"node-pool", "/v1/node/pools", "Name", false, true},
    {"policy", "/v1/acl/policies", "Name", false, false},
    {"role-id", "/v1/acl/roles", "ID", true, false},
    {"accessor", "/v1/acl/tokens", "AccessorID", true, false},
};

static void
complete_offer(struct cmd *c, const char *word, const char *candidate)
{
    if (!str_prefix(candidate, word))
        return;
    for (const char *p = candidate; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f) /* a name of a job is somebody else's text */
            return;
    fprintf(c->out, "%s\n", candidate);
}

/* --- options --- */

static const struct opt *
complete_option(const struct opt *const *tables, const char *word)
{
    if (word[0] != '-' || strchr(word, '='))
        return NULL;
    word += word[1] == '-' ? 2 : 1;
    for (; *tables; tables++)
        for (const struct opt *o = *tables; o->name; o++)
            if (strcmp(o->name, word) == 0)
                return o;
    return NULL;
}

static void
offer_options(struct cmd *c, const char *word, const struct opt *const *tables)
{
    const char *dashes = word[1] == '-' ? "--" : "-";
    for (; *tables; tables++)
        for (const struct opt *o = *tables; o->name; o++)
            if (o->help)
                complete_offer(c, word, mem_printf(c, "%s%s", dashes, o->name));
    complete_offer(c, word, mem_printf(c, "%shelp", dashes));
}

/* --- identifiers --- */

/* "[options] <job> [task]", 1: "task". Of "<job>..." every one is "job". NULL: there is no such
 * one. */
static const char *
complete_placeholder(struct cmd *c, size_t at)
{
    char *save = NULL, *last = NULL;
    for (char *w = strtok_r(mem_strdup(c, c->command->args), " ", &save); w;
         w = strtok_r(NULL, " ", &save)) {
        if (strcmp(w, "[options]") == 0)
            continue;
        bool many = str_suffix(w, "...");
        w[strcspn(w, ">].")] = '\0';
        last = w + 1;
        if (many || at-- == 0)
            return last;
    }
    return NULL;
}

static void
offer_ids(struct cmd *c, const char *word, const struct kind *k)
{
    struct value *v = NULL;
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;
    /* the API takes an even number of digits of a UUID */
    const char *prefix = k->uuid ? mem_strndup(c, word, strlen(word) & ~(size_t)1) : word;
    struct http_ask *ask =
        api_ask(c, "GET",
                api_target(c, k->path, "prefix", *prefix ? prefix : NULL, "per_page",
                           mem_printf(c, "%d", COMPLETE_IDS_MAX), NULL));
    ask->timeout_ms = COMPLETE_MS;
    if (c->fetch(c, c->address, ask, &r, &e) < 0 || r->status != 200 ||
        json_decode_value(c, SLICE(r->body, r->body_len), BUDGET(CLI_ANSWER_MAX), &v, &e) < 0 ||
        v->kind != VALUE_LIST)
        return;
    for (size_t i = 0; i < v->list.n; i++) {
        const struct value *id = value_get(v->list.v[i], k->key);
        if (id && id->kind == VALUE_STRING)
            complete_offer(c, word, id->str.s);
    }
}

static void
offer_argument(struct cmd *c, const char *word, size_t at)
{
    const char *what = complete_placeholder(c, at);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_eq(what, kinds[i].name) || (kinds[i].any && str_eq(what, "id")))
            offer_ids(c, word, &kinds[i]);
}

static void
complete_command(struct cmd *c, const struct opt *const *tables, bool verbatim)
{
    const struct complete *k = c->line;
    struct err e = ERR_INIT;
    const struct opt *o =
        k->n_before > 1 ? complete_option(tables, k->before[k->n_before - 1]) : NULL;
    if (o && o->kind != OPT_BOOL)
        return; /* its value */
    opt_parse_fn *parse = verbatim ? opt_parse_leading : opt_parse;
    struct opt_list args = {NULL, 0};
    bool parsed = parse(c, tables, (int)k->n_before, (char **)(uintptr_t)k->before, &args, &e) == 0;
    if (verbatim && parsed && args.n > 0)
        return; /* another's command line */
    if (k->word[0] == '-') {
        offer_options(c, k->word, tables);
        return;
    }
    if (c->command && parsed) {
        cmd_client_defaults(c);
        if (connect_prepare(c, &e) < 0)
            return;
        offer_argument(c, k->word, args.n);
    }
}

/* --- commands --- */

static const struct command *
complete_find(const char *name)
{
    for (size_t i = 0; i < commands_n; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].alias_of ? complete_find(commands[i].alias_of) : &commands[i];
    return NULL;
}

/* First words, or the next word behind `parent`: each once. */
static void
offer_commands(struct cmd *c, const char *word, const char *parent)
{
    size_t n = parent ? strlen(parent) + 1 : 0;
    struct str_map seen = {NULL, 0};
    for (size_t i = 0; i < commands_n; i++) {
        const char *name = commands[i].name;
        if (!commands[i].brief ||
            (parent && (strncmp(name, parent, n - 1) != 0 || name[n - 1] != ' ')))
            continue;
        const char *next = mem_strndup(c, name + n, strcspn(name + n, " "));
        if ((!parent && strchr(name, ' ')) || str_map_get(&seen, next))
            continue;
        str_map_set(c, &seen, next, "");
        complete_offer(c, word, next);
    }
    if (!parent && word[0] == '-') {
        complete_offer(c, word, "-help");
        complete_offer(c, word, "-version");
    }
}

static size_t
complete_split(struct cmd *c, const char *line, size_t n, const char **words)
{
    size_t count = 0;
    const char *end = line + n;
    for (const char *p = line; count < COMPLETE_WORDS_MAX; p++) {
        const char *from = p;
        while (p < end && *p != ' ' && *p != '\t')
            p++;
        if (p > from || p == end)
            words[count++] = mem_strndup(c, from, (size_t)(p - from));
        if (p == end)
            break;
    }
    return count;
}

static void
complete_words(struct cmd *c, const char **words, size_t n, const struct opt *agent)
{
    const char *word = words[n - 1];
    struct complete *k = mem_new(c, struct complete);
    k->word = word;
    c->complete = complete_command;
    c->line = k;
    if (n == 2) {
        offer_commands(c, word, NULL);
        return;
    }
    size_t used = 1;
    if (n > 4 &&
        (c->command = complete_find(mem_printf(c, "%s %s %s", words[1], words[2], words[3]))))
        used += 2;
    if (!c->command && n > 3 &&
        (c->command = complete_find(mem_printf(c, "%s %s", words[1], words[2]))))
        used += 1;
    if (!c->command)
        c->command = complete_find(words[1]);
    k->before = words + used;
    k->n_before = n - 1 - used;
    if (c->command && c->command->run) {
        c->argc = (int)k->n_before;
        c->argv = (char **)(uintptr_t)k->before;
        (void)c->command->run(c); /* its cmd_parse() calls complete_command() */
    } else if (strcmp(words[1], "agent") == 0) {
        c->command = NULL;
        complete_command(c, (const struct opt *[]){agent, NULL}, false);
    } else if (n <= 4) {
        offer_commands(c, word, n == 3 ? words[1] : mem_printf(c, "%s %s", words[1], words[2]));
    }
}

int
cli_complete(const struct opt *agent)
{
    const char *line = cmd_env("COMP_LINE"), *point = cmd_env("COMP_POINT");
    uint64_t at;
    if (!line || !point || num_parse_u64(point, &at) < 0 || strlen(line) > COMPLETE_LINE_MAX) {
        fprintf(stderr,
                "paddock -complete is called by bash: see bash-completion/completions/paddock\n");
        return 1;
    }
    auto_mem void *ctx = mem_ctx("complete");
    struct cmd *c = mem_new(ctx, struct cmd);
    const char **words = mem_array(c, const char *, COMPLETE_WORDS_MAX);
    size_t len = strlen(line), n = complete_split(c, line, at < len ? at : len, words);
    c->out = stdout;
    c->err = stderr;
    c->fetch = http_fetch;
    if (n >= 2 && n < COMPLETE_WORDS_MAX)
        complete_words(c, words, n, agent);
    return 0;
}
