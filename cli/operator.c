/* SPDX-License-Identifier: Apache-2.0
 *
 * operator api, metrics, scheduler get-config and set-config, gossip keyring, in this order. The
 * first one makes a request of its own, streamed to the output as it comes, or printed for curl(1);
 * the others are a request and a table. A change of the scheduler's configuration is its whole,
 * read before, and accepted only if it is still the same then.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "cli/api.h"
#include "cli/format.h"
#include "codec/base64.h"
#include "common/num.h"
#include "common/random.h"

/* --- api --- */

struct api_opts {
    bool dry_run, verbose, fail;
    const char *filter, *method;
    struct opt_list headers;
};

static bool
given_header(const struct api_opts *o, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < o->headers.n; i++)
        if (strncasecmp(o->headers.v[i], name, n) == 0 && o->headers.v[i][n] == ':')
            return true;
    return false;
}

/* Adds the headers that were given to those that every request has; -1: said. */
static int
add_headers(struct cmd *c, const struct api_opts *o, struct http_ask *ask)
{
    struct http_pair *h = mem_array(c, struct http_pair, ask->n_headers + o->headers.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < ask->n_headers; i++)
        if (!given_header(o, ask->headers[i].k))
            h[n++] = ask->headers[i];
    for (size_t i = 0; i < o->headers.n; i++) {
        const char *colon = strchr(o->headers.v[i], ':');
        if (!colon || colon == o->headers.v[i]) {
            cmd_fail(c, "Header \"%s\" is not <name>: <value>", o->headers.v[i]);
            return -1;
        }
        h[n].k = mem_strndup(c, o->headers.v[i], (size_t)(colon - o->headers.v[i]));
        h[n++].v = colon + 1 + strspn(colon + 1, " ");
    }
    ask->headers = h;
    ask->n_headers = n;
    return 0;
}

/* Reads the body that is piped in: 1, 0 without one, -1: said. */
static int
read_body(struct cmd *c, struct http_ask *ask)
{
    struct stat st;
    if (c->in == stdin && (fstat(STDIN_FILENO, &st) < 0 || S_ISCHR(st.st_mode)))
        return 0;
    char *p = mem_array(c, char, HTTP_BODY_MAX + 1);
    ask->body_len = fread(p, 1, HTTP_BODY_MAX + 1, c->in);
    ask->body = p;
    if (ask->body_len > HTTP_BODY_MAX) {
        cmd_fail(c, "Error reading stdin: the body is larger than %d bytes", HTTP_BODY_MAX);
        return -1;
    }
    return 1;
}

static bool
on_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct cmd *c = arg;
    (void)r;
    return fwrite(p, 1, n, c->out) == n && fflush(c->out) == 0;
}

static void
print_curl(struct cmd *c, const struct http_ask *ask)
{
    cmd_put(c, "curl \\\n  -X %s \\\n", ask->method);
    for (size_t i = 0; i < ask->n_headers; i++)
        if (str_eq(ask->headers[i].k, "X-Nomad-Token"))
            cmd_put(c, "  -H \"X-Nomad-Token: ${NOMAD_TOKEN}\" \\\n");
        else if (str_eq(ask->headers[i].k, "Authorization"))
            cmd_put(c, "  -u \"${NOMAD_HTTP_AUTH}\" \\\n");
        else
            cmd_put(c, "  -H '%s: %s' \\\n", ask->headers[i].k, ask->headers[i].v);
    if (str_prefix(c->address, "unix://"))
        cmd_say(c, "  --unix-socket '%s' \\\n  'http://localhost%s'", c->address + 7, ask->target);
    else
        cmd_say(c, "  '%s%s'", c->address, ask->target);
}

/* "/v1/jobs", "http://host:port/v1/jobs", "host:port/v1/jobs": where it goes is c->address. */
static const char *
split_url(struct cmd *c, const char *url)
{
    const char *host = strstr(url, "://"), *path = strchr(host ? host + 3 : url, '/');
    if (url[0] == '/')
        return url;
    c->address = path ? mem_strndup(c, url, (size_t)(path - url)) : url;
    return path ? path : "/";
}

static int
send_raw(struct cmd *c, const struct api_opts *o, const struct http_ask *ask)
{
    struct err e = ERR_INIT;
    struct http_resp *r = NULL;
    if (o->verbose) {
        cmd_warn(c, "> %s %s", ask->method, ask->target);
        for (size_t i = 0; i < ask->n_headers; i++)
            cmd_warn(c, "> %s: %s", ask->headers[i].k, ask->headers[i].v);
    }
    if (c->fetch(c, c->address, ask, &r, &e) < 0)
        return cmd_fail(c, "Error performing request: %s", e.text);
    if (o->verbose) {
        cmd_warn(c, "< %d", r->status);
        for (size_t i = 0; i < r->n_headers; i++)
            cmd_warn(c, "< %s: %s", r->headers[i].k, r->headers[i].v);
    }
    if (r->status >= 300 && o->fail)
        return cmd_fail(c, "%d: %.*s", r->status, (int)r->body_len, r->body);
    if (r->status >= 300) /* not streamed */
        fwrite(r->body, 1, r->body_len, c->out);
    return 0;
}

int
cmd_operator_api(struct cmd *c)
{
    struct api_opts o = {.filter = NULL};
    const struct opt opts[] = {
        {"X", OPT_STRING, &o.method, "<method>", "Method (default GET; POST with a body)."},
        {"H", OPT_LIST, &o.headers, "<name: value>", "A header; may be repeated."},
        {"filter", OPT_STRING, &o.filter, "<expression>", "Only what matches, of a list."},
        {"fail", OPT_BOOL, &o.fail, NULL,
         "An answer from 300 on is an error: to standard error, exit code 1."},
        {"dryrun", OPT_BOOL, &o.dry_run, NULL, "Print the same request for curl(1), send nothing."},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show request and headers on standard error."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const char *path = split_url(c, c->args[0]);
    struct http_ask *ask = api_ask(c, NULL, api_raw_target(c, path, o.filter));
    int body = o.dry_run ? 0 : read_body(c, ask);
    if (body < 0 || add_headers(c, &o, ask))
        return 1;
    ask->method = str_or(o.method, body ? "POST" : "GET");
    ask->on_body = on_body;
    ask->arg = c;
    if (!o.dry_run)
        return send_raw(c, &o, ask);
    print_curl(c, ask);
    return 0;
}

/* --- metrics --- */

int
cmd_operator_metrics(struct cmd *c)
{
    bool pretty = false;
    const char *format = NULL;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"format", OPT_STRING, &format, "<format>", "Another format: prometheus."},
        {"pretty", OPT_BOOL, &pretty, NULL, "Indent the JSON."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    struct err e = ERR_INIT;
    struct value *v = NULL;
    struct http_resp *r = NULL;
    if (pretty || out.json || out.tmpl) {
        if (api_get_value(c, api_target(c, "/v1/metrics", NULL), &v, &e))
            return cmd_fail(c, "Error querying metrics: %s", e.text);
        out.json = out.json || (pretty && !out.tmpl);
        output_value(c, &out, v, &rc);
        return rc;
    }
    struct http_ask *ask = api_ask(c, "GET", api_target(c, "/v1/metrics", "format", format, NULL));
    if (c->fetch(c, c->address, ask, &r, &e) < 0)
        return cmd_fail(c, "Error getting metrics: %s", e.text);
    if (r->status >= 300)
        return cmd_fail(c, "Error getting metrics: Unexpected response code: %d (%.900s)",
                        r->status, r->body);
    fwrite(r->body, 1, r->body_len, c->out);
    fputc('\n', c->out);
    return 0;
}

/* --- scheduler --- */

#define SCHEDULER "/v1/operator/scheduler/configuration"

static struct scheduler_configuration_response *
scheduler_config(struct cmd *c)
{
    struct scheduler_configuration_response *r =
        api_read(c, api_target(c, SCHEDULER, NULL), &type_scheduler_configuration_response,
                 "Error querying scheduler configuration");
    if (!r)
        return NULL;
    if (r->scheduler_config)
        return r;
    cmd_fail(c, "Error querying scheduler configuration: the agent answered without one");
    return NULL;
}

int
cmd_operator_scheduler_get(struct cmd *c)
{
    struct output out = {false, NULL};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    const struct scheduler_configuration_response *r = scheduler_config(c);
    if (!r)
        return 1;
    if (output_object(c, &out, &type_scheduler_configuration_response, r, &rc))
        return rc;
    const struct scheduler_configuration *s = r->scheduler_config;
    static const struct preemption_config none;
    const struct preemption_config *p = s->preemption_config ? s->preemption_config : &none;
    struct table t;
    table_init(&t, c, 2);
    table_row(&t, "Scheduler Algorithm", s->scheduler_algorithm);
    table_row(&t, "Memory Oversubscription", fmt_bool(s->memory_oversubscription_enabled));
    table_row(&t, "Reject Job Registration", fmt_bool(s->reject_job_registration));
    table_row(&t, "Pause Eval Broker", fmt_bool(s->pause_eval_broker));
    table_row(&t, "Preemption System Scheduler", fmt_bool(p->system_scheduler_enabled));
    table_row(&t, "Preemption Service Scheduler", fmt_bool(p->service_scheduler_enabled));
    table_row(&t, "Preemption Batch Scheduler", fmt_bool(p->batch_scheduler_enabled));
    table_row(&t, "Preemption SysBatch Scheduler", fmt_bool(p->sys_batch_scheduler_enabled));
    table_row(&t, "Node Limit For Feasibility Checks",
              fmt_u64(c, s->node_limit_for_feasibility_checks));
    table_row(&t, "Modify Index", fmt_u64(c, s->modify_index));
    table_print_kv(&t);
    return 0;
}

/* An option that is true, false or not given. */
struct choice {
    const char *name, *text;
    bool *dst;
};

static int
operator_choose(struct cmd *c, const struct choice *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].text && num_parse_bool(v[i].text, v[i].dst))
            return cmd_fail(c, "-%s is true or false, not \"%s\"", v[i].name, v[i].text);
    return 0;
}

static int
set_config(struct cmd *c, const struct scheduler_configuration *s)
{
    char *target = api_target(c, SCHEDULER, "cas", fmt_u64(c, s->modify_index), NULL);
    const struct scheduler_set_configuration_response *r =
        api_change(c, &(struct change){NULL, target, &type_scheduler_configuration, s,
                                       &type_scheduler_set_configuration_response,
                                       "Error setting scheduler configuration"});
    if (!r)
        return 1;
    if (!r->updated)
        return cmd_fail(
            c, "Scheduler configuration could not be atomically updated, please try again");
    cmd_say(c, "Scheduler configuration updated!");
    return 0;
}

int
cmd_operator_scheduler_set(struct cmd *c)
{
    const char *index = NULL, *algorithm = NULL, *oversub = NULL, *reject = NULL, *pause = NULL;
    const char *batch = NULL, *service = NULL, *sysbatch = NULL, *system = NULL;
    int64_t limit = -1;
    const struct opt opts[] = {
        {"check-index", OPT_STRING, &index, "<index>", "Only if the modify index is this one."},
        {"scheduler-algorithm", OPT_STRING, &algorithm, "<binpack|spread>",
         "Fill nodes one after another, or all alike."},
        {"memory-oversubscription", OPT_STRING, &oversub, "<bool>",
         "Whether memory_max of a task has an effect."},
        {"reject-job-registration", OPT_STRING, &reject, "<bool>", "Refuse every job."},
        {"pause-eval-broker", OPT_STRING, &pause, "<bool>", "Leave evaluations waiting."},
        {"preempt-batch-scheduler", OPT_STRING, &batch, "<bool>", "Preemption for batch jobs."},
        {"preempt-service-scheduler", OPT_STRING, &service, "<bool>", "... for service jobs."},
        {"preempt-sysbatch-scheduler", OPT_STRING, &sysbatch, "<bool>", "... for sysbatch jobs."},
        {"preempt-system-scheduler", OPT_STRING, &system, "<bool>", "... for system jobs."},
        {"node-limit-for-feasibility-checks", OPT_INT, &limit, "<n>",
         "Nodes to weigh for a job with spreads or affinities."},
        {0}};
    int rc;
    uint64_t want = 0;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (index && num_parse_u64(index, &want))
        return cmd_fail(c, "Error parsing check-index value \"%s\": want a number", index);
    struct scheduler_configuration_response *r = scheduler_config(c);
    if (!r)
        return 1;
    struct scheduler_configuration *s = r->scheduler_config;
    if (want && want != s->modify_index)
        return cmd_fail(
            c,
            "Error performing check index set: check-index %llu does not match current state "
            "value %llu",
            (unsigned long long)want, (unsigned long long)s->modify_index);
    s->scheduler_algorithm = str_or(algorithm, s->scheduler_algorithm);
    if (limit >= 0)
        s->node_limit_for_feasibility_checks = (uint64_t)limit;
    bool preempts = batch || service || sysbatch || system;
    if (preempts && !s->preemption_config)
        s->preemption_config = mem_new(c, struct preemption_config);
    struct preemption_config none, *p = preempts ? s->preemption_config : &none;
    const struct choice choices[] = {
        {"memory-oversubscription", oversub, &s->memory_oversubscription_enabled},
        {"reject-job-registration", reject, &s->reject_job_registration},
        {"pause-eval-broker", pause, &s->pause_eval_broker},
        {"preempt-batch-scheduler", batch, &p->batch_scheduler_enabled},
        {"preempt-service-scheduler", service, &p->service_scheduler_enabled},
        {"preempt-sysbatch-scheduler", sysbatch, &p->sys_batch_scheduler_enabled},
        {"preempt-system-scheduler", system, &p->system_scheduler_enabled},
    };
    return operator_choose(c, choices, ARRAY_LEN(choices)) ? 1 : set_config(c, s);
}

/* --- gossip keyring --- */

enum { KEY_BYTES = 32 };

int
cmd_keyring_generate(struct cmd *c)
{
    const struct opt opts[] = {{0}};
    uint8_t key[KEY_BYTES];
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){0}, &rc))
        return rc;
    auto_buf struct buf b = BUF_INIT(4 * KEY_BYTES);
    rand_bytes(key, sizeof(key));
    base64_encode(&b, key, sizeof(key));
    cmd_say(c, "%s", buf_str(&b));
    return 0;
}

int
cmd_keyring_list(struct cmd *c)
{
    const struct opt opts[] = {{0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    cmd_say(c, "Gathering installed encryption keys...");
    const struct gossip_keys_response *r = api_read(
        c, api_target(c, "/v1/agent/keyring/list", NULL), &type_gossip_keys_response, "error");
    if (!r)
        return 1;
    cmd_say(c, "Key");
    for (size_t i = 0; i < r->keys.n; i++)
        cmd_say(c, "%s", r->keys.v[i].k);
    return 0;
}

/* One key, of which all servers are told: install, use, remove. */
int
cmd_keyring_change(struct cmd *c)
{
    static const struct {
        const char *verb, *doing;
    } rows[] = {{"install", "Installing new gossip encryption key..."},
                {"use", "Changing primary gossip encryption key..."},
                {"remove", "Removing gossip encryption key..."}};
    const struct opt opts[] = {{0}};
    size_t i = 0;
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    while (!str_suffix(c->command->name, rows[i].verb))
        i++;
    const struct gossip_keys_request r = {.key = c->args[0]};
    cmd_say(c, "%s", rows[i].doing);
    const struct change ch = {
        NULL,
        api_target(c, mem_printf(c, "/v1/agent/keyring/%s", rows[i].verb), NULL),
        &type_gossip_keys_request,
        &r,
        NULL,
        "error"};
    return api_change(c, &ch) ? 0 : 1;
}
