/* SPDX-License-Identifier: Apache-2.0
 *
 * A directory of job files and configurations of agents. What a file is, its text tells: a block
 * `job`, the API's JSON of a job, or arguments that only an agent knows.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config/config.h"
#include "cli/migrate/migrate.h"
#include "common/fd.h"
#include "jobspec/jobspec.h"

/* --- what a text is --- */

/* A line that begins with `word` as a block or an argument. */
static bool
has_line(const char *s, const char *word)
{
    size_t n = strlen(word);

    for (; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL) {
        s += strspn(s, " \t");
        if (strncmp(s, word, n) == 0 && s[n] != '\0' && strchr(" \t\"{=", s[n]))
            return true;
    }
    return false;
}

static bool
is_agent_text(const char *s)
{
    static const char *const words[] = {"data_dir",   "bind_addr", "server",    "client",
                                        "plugin_dir", "advertise", "ports",     "telemetry",
                                        "acl",        "tls",       "datacenter"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (has_line(s, words[i]))
            return true;
    return false;
}

/* --- positions --- */

/* The label of the block `job`, also of a file that cannot be read as one. */
static const char *
name_of(struct cmd *c, const char *s, const char *otherwise)
{
    const char *p = checked_line(s, s + strlen(s), "job", NULL);

    p = p ? p + strlen("job") : "";
    p += strspn(p, " \t");
    size_t n = *p == '"'
                   ? strcspn(p + 1, "\"\n")
                   : strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return n > 0 ? mem_strndup(c, p + (*p == '"'), n) : otherwise;
}

/* "web.hcl:3,5-12: Summary; Detail." as "web.hcl:3" and the rest of its first line. */
static void
add_diags(struct cmd *c, struct checked *k, const struct hcl_diags *d)
{
    size_t n = strlen(k->where);

    for (size_t i = 0; i < d->n; i++) {
        const char *text = mem_strndup(c, d->v[i].text, strcspn(d->v[i].text, "\n")),
                   *where = k->where;
        if (strncmp(text, k->where, n) == 0 && text[n] == ':') {
            where = mem_strndup(c, text, n + 1 + strspn(text + n + 1, "0123456789"));
            const char *rest = strstr(text + n, ": ");
            text = rest ? rest + 2 : text;
        }
        const char *fix = "change it as it says", *end = strstr(text, ": remove it");
        if (end) {
            fix = end + 2;
            text = mem_strndup(c, text, (size_t)(end - text));
        }
        checked_add(c, k, d->v[i].warning ? MIGRATE_DIFFERS : MIGRATE_REFUSED, where, text, fix);
    }
    if (d->errors > 0 && k->verdict != MIGRATE_REFUSED)
        checked_add(c, k, MIGRATE_REFUSED, NULL, "it cannot be read",
                    "change it as nomad fmt would");
}

/* --- files --- */

/* The key that a complaint begins with: "client.options: ..." has `options`, "plugin \"x\": ..."
 * the plugin's block. */
static const char *
key_of(struct cmd *c, const char *text)
{
    const char *s = mem_strndup(c, text, strcspn(text, " :=")), *dot = strrchr(s, '.');
    return dot ? dot + 1 : s;
}

static void
check_agent(struct cmd *c, struct checked *k, const char *s, size_t n, unsigned flags)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_body *body;
    struct str_list errors = {0}, notes = {0};
    void *config = NULL;

    k->src = s;
    int r = hcl_parse(c, k->where, SLICE(s, n), flags, &body, &d);
    if (r == 0)
        r = hcl_decode(c, body, &type_agent_config, flags, &config, &d);
    add_diags(c, k, &d);
    if (r < 0)
        return;
    config_judge(c, config, &errors, &notes);
    for (size_t i = 0; i < errors.n; i++)
        checked_add(c, k, MIGRATE_REFUSED, checked_place(c, k, NULL, NULL, key_of(c, errors.v[i])),
                    errors.v[i], "change it as it says");
    for (size_t i = 0; i < notes.n; i++)
        checked_add(c, k, MIGRATE_DIFFERS, checked_place(c, k, NULL, NULL, key_of(c, notes.v[i])),
                    notes.v[i], "nothing, if that is what you want");
}

static int
check_hcl(struct cmd *c, const struct jobfile_opts *o, const char *path, const char *s, size_t n,
          struct checked_list *l)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct job *job = NULL;

    if (has_line(s, "job")) {
        struct checked *k = checked_new(c, l, "job", path);
        k->src = s;
        k->name = name_of(c, s, path);
        if (jobfile_parse(c, o, path, SLICE(s, n), &job, &d))
            return -1;
        add_diags(c, k, &d);
        if (job)
            check_job(c, k, job);
    } else if (is_agent_text(s)) {
        check_agent(c, checked_new(c, l, "agent", path), s, n, HCL_LITERAL | HCL_LOOSE);
    } else {
        l->skipped++;
    }
    return 0;
}

static bool
is_map(const struct value *v)
{
    return v && v->kind == VALUE_MAP;
}

static void
check_json(struct cmd *c, const char *path, const char *s, size_t n, struct checked_list *l)
{
    struct err e = ERR_INIT;
    struct value *v = NULL;
    struct job *job = NULL;

    if (json_decode_value(c, SLICE(s, n), BUDGET(256 << 20), &v, &e) < 0 || v->kind != VALUE_MAP) {
        l->skipped++;
    } else if (value_get(v, "Job") || value_get(v, "TaskGroups")) {
        struct checked *k = checked_new(c, l, "job", path);
        if (jobspec_parse_json(c, s, n, &job, &e))
            checked_add(c, k, MIGRATE_REFUSED, NULL, mem_strdup(c, e.text), "change it as it says");
        else
            check_job(c, k, job);
    } else if (is_map(value_get(v, "server")) || is_map(value_get(v, "client")) ||
               value_get(v, "data_dir")) {
        check_agent(c, checked_new(c, l, "agent", path), s, n, HCL_LITERAL | HCL_JSON);
    } else {
        l->skipped++;
    }
}

static int
check_file(struct cmd *c, const struct jobfile_opts *o, const char *path, struct checked_list *l)
{
    char *s = NULL;
    size_t n = 0;
    int rc = file_read(c, AT_FDCWD, path, JOBFILE_MAX, &s, &n);

    if (rc == -ERR_LIMIT) {
        checked_add(c, checked_new(c, l, "job", path), MIGRATE_REFUSED, NULL,
                    mem_printf(c, "larger than %d bytes", JOBFILE_MAX), "split it");
        return 0;
    }
    if (rc < 0)
        return cmd_fail(c, "Error reading \"%s\": %s", path, strerror(-rc)) ? -1 : 0;
    if (str_suffix(path, ".json")) {
        check_json(c, path, s, n, l);
        return 0;
    }
    return check_hcl(c, o, path, s, n, l);
}

static bool
files_wanted(const char *name)
{
    return str_suffix(name, ".nomad") || str_suffix(name, ".hcl") || str_suffix(name, ".json");
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int
check_dir(struct cmd *c, const struct jobfile_opts *o, const char *path, int depth,
          struct checked_list *l)
{
    struct dirent **v;
    struct stat st;
    int n = depth <= JOBFILE_GLOB_DEPTH_MAX ? scandir(path, &v, NULL, by_name) : 0, rc = 0;

    if (n < 0)
        return cmd_fail(c, "Error reading \"%s\": %s", path, strerror(errno)) ? -1 : 0;
    for (int i = 0; i < n; i++) {
        const char *at =
            mem_printf(c, "%s%s%s", path, str_suffix(path, "/") ? "" : "/", v[i]->d_name);
        if (!rc && v[i]->d_name[0] != '.' && lstat(at, &st) == 0) {
            if (S_ISDIR(st.st_mode))
                rc = check_dir(c, o, at, depth + 1, l);
            else if (S_ISREG(st.st_mode) && files_wanted(at) &&
                     l->n + l->skipped >= JOBFILE_GLOB_MAX)
                rc = cmd_fail(c, "Error: more than %d files below the directory", JOBFILE_GLOB_MAX)
                         ? -1
                         : 0;
            else if (S_ISREG(st.st_mode) && files_wanted(at))
                rc = check_file(c, o, at, l);
        }
        free(v[i]);
    }
    if (depth <= JOBFILE_GLOB_DEPTH_MAX)
        free(v);
    return rc;
}

int
check_files(struct cmd *c, const struct jobfile_opts *o, const char *path, struct checked_list *l)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return cmd_fail(c, "Error reading \"%s\": %s", path, strerror(errno)) ? -1 : 0;
    return S_ISDIR(st.st_mode) ? check_dir(c, o, path, 0, l) : check_file(c, o, path, l);
}
