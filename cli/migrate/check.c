/* SPDX-License-Identifier: Apache-2.0
 *
 * migrate check: the command, and how it tells what was found.
 */
#include <unistd.h>

#include "cli/connect.h"
#include "cli/migrate/migrate.h"

enum { EXIT_UNREADABLE = 255 };

static const char *const words[] = {[MIGRATE_UNCHANGED] = "unchanged",
                                    [MIGRATE_DIFFERS] = "differs",
                                    [MIGRATE_REFUSED] = "refused"};

/* --- telling --- */

static const char *
word_of(const struct finding *f)
{
    return f->verdict == MIGRATE_UNCHANGED ? "note" : words[f->verdict];
}

static void
print_text(struct cmd *c, const struct checked_list *l, const size_t *n)
{
    size_t agents = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct checked *k = l->v[i];
        agents += str_eq(k->kind, "agent");
        cmd_say(c, "%s \"%s\": %s%s%s", k->kind, k->name, words[k->verdict],
                str_eq(k->name, k->where) || k->where[0] == 'j' ? "" : "  ",
                str_eq(k->name, k->where) || k->where[0] == 'j' ? "" : k->where);
        for (size_t f = 0; f < k->n; f++) {
            cmd_say(c, "  %s: %s: %s", k->v[f].where, word_of(&k->v[f]), k->v[f].text);
            cmd_say(c, "    fix: %s", k->v[f].fix);
        }
    }
    cmd_say(c, "%s%zu jobs: %zu unchanged, %zu differ, %zu refused", l->n ? "\n" : "",
            n[MIGRATE_UNCHANGED] + n[MIGRATE_DIFFERS] + n[MIGRATE_REFUSED], n[MIGRATE_UNCHANGED],
            n[MIGRATE_DIFFERS], n[MIGRATE_REFUSED]);
    if (agents > 0)
        cmd_say(c, "%zu configurations of agents read", agents);
    if (l->skipped > 0)
        cmd_say(c, "%zu files are neither a job nor an agent's configuration", l->skipped);
}

static struct value *
as_value(struct cmd *c, const struct checked *k)
{
    struct value *v = value_map(c), *findings = value_list(c);

    value_map_set(v, "Kind", value_str(c, k->kind));
    value_map_set(v, "Name", value_str(c, k->name));
    value_map_set(v, "Where", value_str(c, k->where));
    value_map_set(v, "Verdict", value_str(c, words[k->verdict]));
    for (size_t i = 0; i < k->n; i++) {
        struct value *f = value_map(c);
        value_map_set(f, "Verdict", value_str(c, word_of(&k->v[i])));
        value_map_set(f, "Where", value_str(c, k->v[i].where));
        value_map_set(f, "Text", value_str(c, k->v[i].text));
        value_map_set(f, "Fix", value_str(c, k->v[i].fix));
        value_list_add(findings, f);
    }
    value_map_set(v, "Findings", findings);
    return v;
}

static void
print_json(struct cmd *c, const struct checked_list *l, const size_t *n)
{
    auto_buf struct buf out = BUF_INIT(CLI_OUT_MAX);
    struct value *v = value_map(c), *all = value_list(c), *jobs = value_map(c);

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        value_map_set(jobs, words[i], value_int(c, (int64_t)n[i]));
    for (size_t i = 0; i < l->n; i++)
        value_list_add(all, as_value(c, l->v[i]));
    value_map_set(v, "Jobs", jobs);
    value_map_set(v, "Skipped", value_int(c, (int64_t)l->skipped));
    value_map_set(v, "Checked", all);
    json_encode_value(&out, v, JSON_PRETTY);
    cmd_say(c, "%s", buf_str(&out));
}

/* --- the command --- */

/* Checks a source: a file if it exists, all else is an agent. */
static int
check_source(struct cmd *c, const struct jobfile_opts *o, const char *source,
             struct checked_list *l)
{
    struct err e = ERR_INIT;

    if (access(source, F_OK) == 0)
        return check_files(c, o, source, l);
    if (!strchr(source, ':')) {
        cmd_fail(c, "\"%s\" is no file, no directory and no address (http:// or https://host:port)",
                 source);
        return -1;
    }
    c->address = strstr(source, "://") ? source : mem_printf(c, "http://%s", source);
    if (connect_prepare(c, &e) < 0) {
        cmd_fail(c, "%s", e.text);
        return -1;
    }
    return check_cluster(c, l);
}

int
cmd_migrate_check(struct cmd *c)
{
    struct jobfile_opts o = JOBFILE_OPTS_INIT;
    bool json = false;
    const struct opt opts[] = {
        {"json", OPT_BOOL, &json, NULL, "Print JSON."},
        {"var", OPT_LIST, &o.vars, "<name=value>",
         "Value of an input variable of all job files; may be repeated (also NOMAD_VAR_<name>)."},
        {"var-file", OPT_LIST, &o.var_files, "<path>",
         "File with values of input variables; may be repeated."},
        {0}};
    struct checked_list l = {0};
    size_t n[ARRAY_LEN(words)] = {0};
    enum verdict worst = MIGRATE_UNCHANGED;
    int rc;

    if (!cmd_parse(c, opts,
                   &(struct cmd_args){
                       .client = true, .min = 1, .max = SIZE_MAX, .usage_code = EXIT_UNREADABLE},
                   &rc))
        return rc;
    o.strict = false; /* a variable is not of every file */
    for (size_t i = 0; i < c->n_args; i++)
        if (check_source(c, &o, c->args[i], &l))
            return EXIT_UNREADABLE;
    for (size_t i = 0; i < l.n; i++) {
        n[l.v[i]->verdict] += str_eq(l.v[i]->kind, "job");
        worst = l.v[i]->verdict > worst ? l.v[i]->verdict : worst;
    }
    if (json)
        print_json(c, &l, n);
    else
        print_text(c, &l, n);
    return (int)worst;
}
