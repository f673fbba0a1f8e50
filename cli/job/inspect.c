/* SPDX-License-Identifier: Apache-2.0
 *
 * job inspect, job history, job allocs: what the servers have of a job.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/api.h"
#include "cli/format.h"
#include "cli/job/job.h"
#include "cli/views.h"
#include "common/num.h"

/* --- inspect --- */

/* The job of a version; NULL: not found or failed, which was said. */
static struct job *
job_version(struct cmd *c, const char *id, const char *version)
{
    uint64_t want;
    if (num_parse_u64(version, &want)) {
        cmd_fail(c, "Error parsing version \"%s\": want a number", version);
        return NULL;
    }
    const struct job_versions_response *r =
        api_read(c, api_target(c, "/v1/job/%/versions", id, NULL), &type_job_versions_response,
                 "Error inspecting job");
    if (!r)
        return NULL;
    for (size_t i = 0; i < r->versions.n; i++)
        if (r->versions.v[i]->version == want)
            return r->versions.v[i];
    cmd_fail(c, "Error inspecting job: there is no version %s", version);
    return NULL;
}

/* " -var 'x'", as a shell takes it. */
static void
put_var(struct buf *b, const char *s, size_t n)
{
    buf_puts(b, " -var '");
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\'')
            buf_puts(b, "'\\'");
        buf_putc(b, s[i]);
    }
    buf_putc(b, '\'');
}

/* The values that the source was given, as they are given to job run. */
static void
print_vars(struct cmd *c, const struct job_submission *s)
{
    auto_buf struct buf args = BUF_INIT(64 << 20);
    for (size_t i = 0; i < s->variable_flags.n; i++) {
        const char *v = mem_printf(c, "%s=%s", s->variable_flags.v[i].k, s->variable_flags.v[i].v);
        put_var(&args, v, strlen(v));
    }
    for (const char *p = str_or(s->variables, ""); *p != '\0';) {
        size_t n = strcspn(p, "\n");
        if (strspn(p, " \t\r") < n)
            put_var(&args, p, n);
        p += n + (p[n] == '\n');
    }
    cmd_warn(c,
             "\nTo run this job as originally submitted:\n\n"
             "paddock job inspect -hcl %s | paddock job run%s -\n",
             s->job_id, buf_str(&args));
}

static int
print_source(struct cmd *c, const char *id, const char *version, bool with_vars)
{
    if (version == NULL) {
        const struct job *j =
            api_read(c, api_target(c, "/v1/job/%", id, NULL), &type_job, "Error inspecting job");
        if (j == NULL)
            return 1;
        version = fmt_u64(c, j->version);
    }
    const struct job_submission *s =
        api_read(c, api_target(c, "/v1/job/%/submission", id, "version", version, NULL),
                 &type_job_submission, "Error inspecting job");
    if (s == NULL)
        return 1;
    cmd_say(c, "%s", str_or(s->source, ""));
    if (with_vars)
        print_vars(c, s);
    return 0;
}

int
cmd_job_inspect(struct cmd *c)
{
    struct output out = {false, NULL};
    const char *version = NULL;
    bool hcl = false, with_vars = false;
    const struct opt opts[] = {
        {"version", OPT_STRING, &version, "<version>", "Show this version (default the latest)."},
        {"hcl", OPT_BOOL, &hcl, NULL, "Show the source that was submitted."},
        {"with-vars", OPT_BOOL, &with_vars, NULL,
         "With -hcl: say which values of variables it was submitted with."},
        OUTPUT_OPTS(out),
        {0}};
    struct err e = ERR_INIT;
    int rc;
    const char *id = api_job_arg(c, opts, &rc);
    if (!id)
        return rc;
    if (hcl && (out.json || out.tmpl))
        return cmd_fail(c, "can only use one of -hcl, -json and -t");
    if (with_vars && !hcl)
        return cmd_fail(c, "can only use -with-vars with -hcl");
    if (hcl)
        return print_source(c, id, version, with_vars);
    void *ret = version ? job_version(c, id, version)
                        : api_read(c, api_target(c, "/v1/job/%", id, NULL), &type_job,
                                   "Error inspecting job");
    if (!ret)
        return 1;
    if (output_object(c, &out, &type_job, ret, &rc))
        return rc;
    auto_buf struct buf b = BUF_INIT(64 << 20);
    buf_puts(&b, "{\"Job\":");
    json_encode(&b, &type_job, ret, 0);
    buf_putc(&b, '}');
    struct value *v = NULL;
    if (json_decode_value(c, SLICE(buf_str(&b), b.len), BUDGET(256 << 20), &v, &e))
        return cmd_fail(c, "Error converting job: %s", e.text);
    output_value(c, &(struct output){.json = true}, v, &rc);
    return rc;
}

/* --- history --- */

struct history_opts {
    bool diff, full;
    const char *version, *diff_version, *diff_tag;
    struct output out;
};

/* Without the empty line that a plan has below. */
static void
print_change(struct cmd *c, const struct job_diff *d)
{
    FILE *out = c->out;
    char *text = NULL;
    size_t n = 0;
    c->out = open_memstream(&text, &n);
    ASSERT(c->out);
    job_print_diff(c, d, false);
    fclose(c->out);
    c->out = out;
    while (n > 0 && text[n - 1] == '\n')
        n--;
    fprintf(out, "Diff        = \n%.*s\n", (int)n, text);
    free(text);
}

/* `d`: from the version before it; NULL: not told. */
static void
print_version(struct cmd *c, const struct job *j, const struct job_diff *d, bool full)
{
    struct table t;
    table_init(&t, c, 2);
    table_row(&t, "Version", fmt_u64(c, j->version));
    table_row(&t, "Stable", fmt_bool(j->stable));
    table_row(&t, "Submit Date", fmt_time(c, j->submit_time));
    if (j->version_tag && !str_empty(j->version_tag->name))
        table_row(&t, "Tag Name", j->version_tag->name);
    if (j->version_tag && !str_empty(j->version_tag->description))
        table_row(&t, "Tag Description", j->version_tag->description);
    table_print_kv(&t);
    if (d && !str_eq(d->type, "None"))
        print_change(c, d);
    if (full) {
        int rc;
        cmd_say(c, "Full        = JSON Job:");
        output_object(c, &(struct output){.json = true}, &type_job, j, &rc);
    }
}

static int
print_versions(struct cmd *c, const struct history_opts *o, const struct job_versions_response *r)
{
    int64_t want = -1;
    bool found = false;
    int rc;
    if (o->version && (num_parse_i64(o->version, &want) || want < 0))
        return cmd_fail(c, "Error parsing version value \"%s\": want a number", o->version);
    if (want < 0 && output_list(c, &o->out, &type_job, &r->versions, &rc))
        return rc;
    for (size_t i = 0; i < r->versions.n; i++) {
        const struct job *j = r->versions.v[i];
        if (want >= 0 && j->version != (uint64_t)want)
            continue;
        if (want >= 0 && output_object(c, &o->out, &type_job, j, &rc))
            return rc;
        if (found)
            cmd_say(c, "%s", "");
        found = true;
        print_version(c, j, i < r->diffs.n ? r->diffs.v[i] : NULL, o->full);
    }
    return found ? 0
                 : cmd_fail(c, "Error printing job history for non-existing job or job version");
}

int
cmd_job_history(struct cmd *c)
{
    struct history_opts o = {.diff = false};
    const struct opt opts[] = {
        {"p", OPT_BOOL, &o.diff, NULL, "Show what each version changed."},
        {"full", OPT_BOOL, &o.full, NULL, "Show each version in full, as JSON."},
        {"version", OPT_STRING, &o.version, "<version>", "Show this version only."},
        {"diff-tag", OPT_STRING, &o.diff_tag, "<tag>",
         "With -p: the difference to the version with this tag."},
        {"diff-version", OPT_STRING, &o.diff_version, "<version>",
         "With -p: the difference to this version."},
        OUTPUT_OPTS(o.out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if ((o.out.json || o.out.tmpl) && (o.diff || o.full))
        return cmd_fail(c, "-json and -t are exclusive with -p and -full");
    if ((o.diff_tag || o.diff_version) && !o.diff)
        return cmd_fail(c, "-diff-tag and -diff-version can only be used with -p");
    if (o.diff_tag && o.diff_version)
        return cmd_fail(c, "-diff-tag and -diff-version are mutually exclusive");
    if (o.diff_tag || o.diff_version)
        return cmd_fail(c, "The servers compare a version with the one before it only: leave out "
                           "-diff-tag and -diff-version");
    const struct job_list_stub *stub = api_find_job(c, c->args[0]);
    if (!stub)
        return 1;
    char *target =
        api_target(c, "/v1/job/%/versions", stub->id, "diffs", o.diff ? "true" : NULL, NULL);
    const struct job_versions_response *r =
        api_read(c, target, &type_job_versions_response, "Error retrieving job versions");
    if (!r)
        return 1;
    if (o.diff && r->diffs.n == 0 && r->versions.n > 1)
        return cmd_fail(c, "The servers told no differences between versions: leave out -p, and "
                           "compare what -version=<version> -full shows");
    return print_versions(c, &o, r);
}

/* --- allocs --- */

int
cmd_job_allocs(struct cmd *c)
{
    bool all = false, verbose = false;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"all", OPT_BOOL, &all, NULL, "Allocations of an earlier job of this id too."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids and more."},
        OUTPUT_OPTS(out),
        {0}};
    struct alloc_list_stub_list l;
    int rc;
    const char *id = api_job_arg(c, opts, &rc);
    if (!id)
        return rc;
    if (!api_read_list(c,
                       api_target(c, "/v1/job/%/allocations", id, "all", all ? "true" : NULL, NULL),
                       &type_alloc_list_stub, &l, "Error retrieving allocations"))
        return 1;
    if (output_list(c, &out, &type_alloc_list_stub, &l, &rc))
        return rc;
    if (l.n == 0)
        cmd_say(c, "No allocations placed");
    else
        view_allocs(c, &l, verbose);
    return 0;
}
