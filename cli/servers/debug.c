/* SPDX-License-Identifier: Apache-2.0
 *
 * operator debug: an archive of what a cluster says of itself, for whoever is to find out what is
 * wrong. Read from cmd_operator_debug(): what is the same all the time is asked once, the logs of
 * servers and nodes are followed by a process each, and the state is taken each interval. Answers
 * are written as they come; one that fails is in its file, as {"Error": ...}.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/api.h"
#include "cli/format.h"
#include "codec/codec.h"
#include "codec/value.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/num.h"

enum {
    DEBUG_NODES = 10, /* whose logs are followed, unless -max-nodes says otherwise */
    DEBUG_NODES_MAX = 50,
    DEBUG_FOLLOWED_MAX = 64, /* nodes, servers and events */
    DEBUG_INTERVALS_MAX = 1000,
};

struct debug {
    struct cmd *c;
    const char *dir;  /* of all files; absolute */
    const char *name; /* its last part */
    struct str_list files;
    pid_t follows[DEBUG_FOLLOWED_MAX];
    size_t n_follows;
    int64_t duration, interval, max_nodes, index;
    const char *log_level, *nodes, *servers, *class, *output, *topic;
    bool stale;
    size_t failed; /* answers */
};

static volatile sig_atomic_t debug_stop;

static void
debug_on_signal(int sig)
{
    (void)sig;
    debug_stop = 1;
}

/* --- files --- */

/* Returns a name without what would be a way in a path. */
static const char *
debug_part(struct debug *d, const char *s)
{
    char *p = mem_strdup(d->c, str_empty(s) ? "_" : s);

    for (char *x = p; *x != '\0'; x++)
        if (!(*x == '-' || *x == '_' || (*x == '.' && x > p) || (*x >= '0' && *x <= '9') ||
              (*x >= 'a' && *x <= 'z') || (*x >= 'A' && *x <= 'Z')))
            *x = '_';
    return p;
}

/* Makes a file below the directory, and the folders on its way; NULL: said. */
static FILE *
debug_create(struct debug *d, const char *file)
{
    char *path = mem_printf(d->c, "%s/%s", d->dir, file);

    for (char *p = path + strlen(d->dir) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST) {
            cmd_fail(d->c, "Error making %s: %s", path, err_name(-errno));
            return NULL;
        }
    }
    FILE *f = fopen(path, "we");
    if (f == NULL)
        cmd_fail(d->c, "Error writing %s: %s", path, err_name(-errno));
    return f;
}

static void
debug_put(FILE *f, const struct value *v)
{
    auto_buf struct buf b = BUF_INIT(HTTP_BODY_MAX);

    json_encode_value(&b, v, 0);
    fwrite(b.data, 1, b.len, f);
    fputc('\n', f);
}

static bool
debug_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    (void)r;
    return fwrite(p, 1, n, arg) == n && fflush(arg) == 0;
}

/* Writes an answer to a file, and says in it why there is none. */
static void
debug_write(struct debug *d, FILE *f, const char *target)
{
    struct http_ask *ask = api_ask(d->c, "GET", target);
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;

    ask->on_body = debug_body;
    ask->arg = f;
    int rc = d->c->fetch(d->c, d->c->address, ask, &r, &e);
    if (rc == 0 && r->status < 300)
        return;
    struct value *v = value_map(d->c);
    value_map_set(v, "Error",
                  value_str(d->c, rc < 0 ? e.text
                                         : mem_printf(d->c, "%d: %.*s", r->status, (int)r->body_len,
                                                      r->body)));
    debug_put(f, v);
    d->failed++;
}

static void
debug_take(struct debug *d, const char *file, const char *path)
{
    FILE *f = debug_create(d, file);

    if (f == NULL) {
        d->failed++;
        return;
    }
    list_add(d->c, d->files, file);
    debug_write(d, f, api_target(d->c, path, "stale", d->stale ? "" : NULL, NULL));
    if (fclose(f) != 0)
        d->failed++;
}

/* --- what is followed --- */

/* Has a process of its own write a stream to a file until debug_end(). */
static void
debug_follow(struct debug *d, const char *file, const char *target)
{
    if (d->n_follows == DEBUG_FOLLOWED_MAX)
        return;
    FILE *f = debug_create(d, file);
    if (f == NULL)
        return;
    list_add(d->c, d->files, file);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_IGN); /* which is the other's to answer */
        debug_write(d, f, target);
        fclose(f);
        _exit(0);
    }
    fclose(f);
    if (pid > 0)
        d->follows[d->n_follows++] = pid;
}

static void
debug_end(struct debug *d)
{
    for (size_t i = 0; i < d->n_follows; i++)
        (void)kill(d->follows[i], SIGTERM);
    for (size_t i = 0; i < d->n_follows; i++)
        while (waitpid(d->follows[i], NULL, 0) < 0 && errno == EINTR)
            ;
}

static void
debug_log(struct debug *d, const char *kind, const char *key, const char *id)
{
    debug_follow(d, mem_printf(d->c, "%s/%s/monitor.log", kind, debug_part(d, id)),
                 api_target(d->c, "/v1/agent/monitor", key, id, "log_level", d->log_level, "plain",
                            "true", NULL));
}

/* Says whether an id or name begins with one of "a,b", or that is "all". */
static bool
debug_chosen(const char *list, const char *id, const char *name)
{
    for (const char *p = list; !str_eq(list, "all") && *p != '\0';) {
        size_t n = strcspn(p, ",");
        if (n > 0 && (strncmp(p, id, n) == 0 || strncmp(p, name, n) == 0))
            return true;
        p += n + (p[n] == ',');
    }
    return str_eq(list, "all");
}

/* Follows the logs of the servers that are alive, and returns how many. */
static size_t
debug_servers(struct debug *d, const struct value *members)
{
    const struct value *l = value_get(members, "Members");
    size_t n = 0;

    for (size_t i = 0; l != NULL && l->kind == VALUE_LIST && i < l->list.n; i++) {
        const char *name = value_get_str(l->list.v[i], "Name");
        if (!str_eq(value_get_str(l->list.v[i], "Status"), "alive") ||
            !debug_chosen(d->servers, name, name))
            continue;
        debug_log(d, "server", "server_id", name);
        n++;
    }
    return n;
}

/* Follows the logs of nodes that are ready. */
static size_t
debug_nodes(struct debug *d)
{
    struct value *l = NULL;
    struct err e = ERR_INIT;
    size_t n = 0;

    if (api_get_value(d->c, api_target(d->c, "/v1/nodes", "stale", d->stale ? "" : NULL, NULL), &l,
                      &e) < 0 ||
        l->kind != VALUE_LIST)
        return 0;
    for (size_t i = 0; i < l->list.n && (int64_t)n < d->max_nodes; i++) {
        const struct value *v = l->list.v[i];
        if (!str_eq(value_get_str(v, "Status"), "ready") ||
            !debug_chosen(d->nodes, value_get_str(v, "ID"), value_get_str(v, "Name")) ||
            (d->class != NULL && !str_eq(d->class, value_get_str(v, "NodeClass"))))
            continue;
        debug_log(d, "client", "node_id", value_get_str(v, "ID"));
        n++;
    }
    return n;
}

/* --- what is taken --- */

struct debug_file {
    const char *file, *path;
};

static void
debug_cluster(struct debug *d)
{
    static const struct debug_file once[] = {
        {"agent-self", "/v1/agent/self"}, {"members", "/v1/agent/members"},
        {"leader", "/v1/status/leader"},  {"namespaces", "/v1/namespaces"},
        {"regions", "/v1/regions"},       {"nodes", "/v1/nodes"}};

    for (size_t i = 0; i < ARRAY_LEN(once); i++)
        debug_take(d, mem_printf(d->c, "cluster/%s.json", once[i].file), once[i].path);
    if (d->topic != NULL)
        debug_follow(d, "cluster/eventstream.json",
                     api_target(d->c, "/v1/event/stream", "topic", d->topic, "index",
                                d->index > 0 ? fmt_i64(d->c, d->index) : NULL, NULL));
}

static void
debug_state(struct debug *d, int64_t n)
{
    static const struct debug_file each[] = {
        {"jobs", "/v1/jobs"},
        {"allocations", "/v1/allocations"},
        {"evaluations", "/v1/evaluations"},
        {"deployments", "/v1/deployments"},
        {"nodes", "/v1/nodes"},
        {"volumes", "/v1/volumes?type=host"},
        {"metrics", "/v1/metrics"},
        {"operator-raft", "/v1/operator/raft/configuration"},
        {"operator-scheduler", "/v1/operator/scheduler/configuration"},
        {"operator-autopilot-health", "/v1/operator/autopilot/health"}};

    cmd_say(d->c, "    Capture interval %04lld", (long long)n);
    fflush(d->c->out);
    for (size_t i = 0; i < ARRAY_LEN(each) && !debug_stop; i++)
        debug_take(d, mem_printf(d->c, "interval/%04lld/%s.json", (long long)n, each[i].file),
                   each[i].path);
}

static void
debug_wait(int64_t until_ns)
{
    for (int64_t left; !debug_stop && (left = until_ns - clock_mono_ns()) > 0;)
        (void)poll(NULL, 0, (int)(left / NS_PER_MS < 1000 ? left / NS_PER_MS + 1 : 1000));
}

static void
debug_intervals(struct debug *d)
{
    int64_t begin = clock_mono_ns(), end = begin + d->duration;

    for (int64_t n = 0; !debug_stop && n < DEBUG_INTERVALS_MAX; n++) {
        int64_t next = begin + (n + 1) * d->interval;
        debug_state(d, n);
        debug_wait(next < end ? next : end);
        if (clock_mono_ns() >= end)
            return;
    }
}

/* --- the archive --- */

static void
debug_index(struct debug *d)
{
    FILE *f = debug_create(d, "index.json");
    struct value *l = value_list(d->c);

    for (size_t i = 0; i < d->files.n; i++)
        value_list_add(l, value_str(d->c, d->files.v[i]));
    if (f == NULL)
        return;
    debug_put(f, l);
    fclose(f);
}

/* Packs the directory by tar(1) and removes it; the exit code. */
static int
debug_pack(struct debug *d)
{
    const char *to = mem_printf(d->c, "%s.tar.gz", d->name);
    const char *parent = mem_strndup(d->c, d->dir, strlen(d->dir) - strlen(d->name) - 1);
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        execlp("tar", "tar", "-C", parent, "-czf", to, d->name, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || status != 0)
        return cmd_fail(d->c, "Error creating archive %s: tar(1) failed; the files are in %s", to,
                        d->dir);
    (void)dir_remove(AT_FDCWD, parent, NULL);
    cmd_say(d->c, "Created debug archive: %s", to);
    return 0;
}

/* Makes the directory, below -output or in one that goes with the packing. False: said. */
static bool
debug_make_dir(struct debug *d)
{
    char stamp[64];
    time_t now = (time_t)(cmd_now(d->c) / NS_PER_S);
    struct tm tm;

    (void)strftime(stamp, sizeof(stamp), "%Y-%m-%d-%H%M%SZ", gmtime_r(&now, &tm));
    d->name = mem_printf(d->c, "nomad-debug-%s", stamp);
    char *in = d->output != NULL ? realpath(d->output, NULL)
                                 : mkdtemp(mem_printf(d->c, "%s/paddock-debug-XXXXXX",
                                                      str_or(getenv("TMPDIR"), "/tmp")));
    if (in != NULL)
        d->dir = mem_printf(d->c, "%s/%s", in, d->name);
    bool made = in != NULL && mkdir(d->dir, 0700) == 0;
    if (!made)
        cmd_fail(d->c, "Error creating output directory: %s: %s",
                 in != NULL ? d->dir : str_or(d->output, "TMPDIR"), err_name(-errno));
    if (d->output != NULL)
        free(in);
    return made;
}

static bool
debug_check(struct debug *d)
{
    if (d->interval < NS_PER_S || d->duration < d->interval)
        cmd_fail(d->c, "Error parsing interval: it is a second or more, and not longer than the "
                       "duration");
    else if (d->duration / d->interval > DEBUG_INTERVALS_MAX)
        cmd_fail(d->c, "Error parsing interval: %d of them at most", DEBUG_INTERVALS_MAX);
    else if (d->max_nodes < 0 || d->max_nodes > DEBUG_NODES_MAX || d->index < 0)
        cmd_fail(d->c, "Error parsing options: -max-nodes is 0 to %d, -event-index not negative",
                 DEBUG_NODES_MAX);
    else
        return true;
    return false;
}

int
cmd_operator_debug(struct cmd *c)
{
    struct debug d = {.c = c,
                      .duration = 5 * 60 * NS_PER_S,
                      .interval = 30 * NS_PER_S,
                      .max_nodes = DEBUG_NODES,
                      .log_level = "DEBUG",
                      .nodes = "all",
                      .servers = "all"};
    const struct opt opts[] = {
        {"duration", OPT_DURATION, &d.duration, "<duration>", "How long (default 5m)."},
        {"interval", OPT_DURATION, &d.interval, "<duration>",
         "Take the state so often (default 30s)."},
        {"log-level", OPT_STRING, &d.log_level, "<level>", "Lines of logs (default DEBUG)."},
        {"max-nodes", OPT_INT, &d.max_nodes, "<n>", "Follow so many nodes' logs (default 10)."},
        {"node-class", OPT_STRING, &d.class, "<class>", "Only nodes of that class."},
        {"node-id", OPT_STRING, &d.nodes, "<ids>",
         "Nodes, by the beginnings of ids or names, with commas (default all)."},
        {"server-id", OPT_STRING, &d.servers, "<names>",
         "Servers, by the beginnings of names, with commas (default all)."},
        {"event-topic", OPT_STRING, &d.topic, "<topic>", "Follow events of that topic, too."},
        {"event-index", OPT_INT, &d.index, "<n>", "Events from that index on."},
        {"output", OPT_STRING, &d.output, "<dir>",
         "Leave the files in a directory below that one, and make no archive."},
        {"stale", OPT_BOOL, &d.stale, NULL, "Take answers of servers that do not lead."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    struct value *members = NULL;
    struct err e = ERR_INIT;
    (void)umask(077);
    if (!debug_check(&d))
        return 1;
    if (api_get_value(c, api_target(c, "/v1/agent/members", NULL), &members, &e) < 0)
        return cmd_fail(c, "Error querying the servers: %s", e.text);
    c->namespace = "*"; /* of all lists */
    if (!debug_make_dir(&d))
        return 1;
    struct sigaction sa = {.sa_handler = debug_on_signal};
    (void)sigaction(SIGINT, &sa, NULL);
    (void)sigaction(SIGTERM, &sa, NULL);
    debug_cluster(&d);
    size_t servers = debug_servers(&d, members), nodes = debug_nodes(&d);
    char text[DURATION_TEXT];
    cmd_say(c, "Starting debugger: %zu servers, %zu clients, %s", servers, nodes,
            duration_format(d.duration, text));
    debug_intervals(&d);
    debug_end(&d);
    debug_index(&d);
    if (d.failed > 0)
        cmd_warn(c, "%zu answers are missing; their files say why", d.failed);
    if (d.output == NULL)
        return debug_pack(&d);
    cmd_say(c, "Created debug directory: %s", d.dir);
    return 0;
}
