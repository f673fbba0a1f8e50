/* SPDX-License-Identifier: Apache-2.0
 *
 * The fleet simulator (see fleet.h): options, the order of start, the end. Exits 1 when a node that
 * was kept alive was ever down.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/fleet/fleet.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/opt.h"
#include "common/str.h"

enum { CHECK_MS = 60000, NODES_MAX = 1000000, SHARE_MAX = 1000 };

/* --- start --- */

static void
start_more(void *arg)
{
    struct fleet *f = arg;

    while (f->next < (size_t)f->opt.nodes && f->starting < (size_t)f->opt.starting &&
           !f->stopping) {
        struct sim *s = &f->sims[f->next++];
        s->starting = true;
        f->starting++;
        facts_tell(s);
        sim_start(s);
    }
}

void
fleet_joined(struct fleet *f)
{
    f->starting--;
    if (f->stopping)
        return;
    if (f->next < (size_t)f->opt.nodes) {
        loop_post(f->loop, start_more, f);
    } else if (f->starting == 0 && f->joined_ns == 0) {
        f->joined_ns = clock_mono_ns();
        f->rss_joined_kb = rss_kb();
        fprintf(stderr, "fleet: %lld nodes joined in %.2f s\n", (long long)f->opt.nodes,
                (double)(f->joined_ns - f->start_ns) / 1e9);
    }
}

/* --- whom the servers call down --- */

struct check {
    struct fleet *fleet;
    int64_t asked_ms;
    loop_fn *done;
    void *arg;
};

static void
on_down_list(void *arg, const struct err *e, const void *resp)
{
    struct check *c = arg;
    const struct node_list_response *r = resp;
    struct fleet *f = c->fleet;
    uint64_t n;

    if (e != NULL && e->code != -ERR_CANCELED)
        fprintf(stderr, "fleet: check: %s\n", e->text);
    for (size_t i = 0; e == NULL && i < r->nodes.n; i++) {
        const char *name = str_or(r->nodes.v[i]->name, "");
        if (!str_prefix(name, "sim-") || num_parse_u64(name + 4, &n) < 0 ||
            n >= (uint64_t)f->opt.nodes)
            continue;
        struct sim *s = &f->sims[n];
        if (s->state == SIM_ON && s->joined_ms != 0 && s->joined_ms < c->asked_ms)
            stats_wrong_down(s, "the list of nodes");
    }
    c->done(c->arg);
    talloc_free(c);
}

void
fleet_check(struct fleet *f, loop_fn *done, void *arg)
{
    struct list_request req = {0};
    struct list_options list = {.filter = "Status == \"down\" or Status == \"disconnected\""};
    struct rpc_request r = {.id = RPC_NODE_LIST, .req = &req, .timeout_ms = CHECK_MS};
    struct check *c = mem_new(NULL, struct check);

    *c = (struct check){f, loop_now_ms(f->loop), done, arg};
    req.list = &list;
    rpc_send(f->own, &r, on_down_list, c);
}

/* --- the end --- */

static void
ended(void *arg)
{
    struct fleet *f = arg;
    f->quit = true;
    loop_stop(f->loop);
}

void
fleet_quit(struct fleet *f)
{
    if (f->stopping)
        return;
    f->stopping = true;
    timer_stop(TAKE(f->end));
    fleet_check(f, ended, f);
}

static void
on_time(void *arg)
{
    struct fleet *f = arg;
    f->end = NULL;
    fleet_quit(f);
}

static void
on_signal(void *arg, int sig)
{
    (void)sig;
    fleet_quit(arg);
}

static void
fleet_free(struct fleet *f)
{
    rpc_client_close(f->own);
    control_close(f);
    for (int64_t i = 0; i < f->opt.nodes; i++)
        if (f->sims[i].state != SIM_OFF)
            sim_stop(&f->sims[i]);
    for (int64_t i = 0; i < (f->opt.nodes + f->opt.share - 1) / f->opt.share; i++)
        rpc_client_close(f->conns[i]);
    loop_free(f->loop);
    tls_unref(f->tls);
    driver_done(f);
    talloc_free(f);
}

/* --- options --- */

static bool
range_parse(const char *text, int64_t unit_ns, struct range *ret)
{
    char low[64];
    const char *dash;

    if (text == NULL)
        return true;
    dash = strchr(text, '-');
    if (dash != NULL && (size_t)(dash - text) >= sizeof(low))
        return false;
    (void)str_copy(low, dash != NULL ? (size_t)(dash - text) + 1 : sizeof(low), text);
    if (duration_parse(low, &ret->min) < 0 ||
        duration_parse(dash != NULL ? dash + 1 : low, &ret->max) < 0 || ret->min > ret->max)
        return false;
    ret->min /= unit_ns;
    ret->max /= unit_ns;
    return true;
}

static int
options_parse(struct fleet *f, int argc, char **argv, struct err *e)
{
    struct options *o = &f->opt;
    const char *start = NULL, *life = NULL, *stop = NULL;
    const struct opt table[] = {
        {"servers", OPT_STRING, &o->servers, "ADDRS",
         "Servers' RPC addresses, with commas between.", NULL},
        {"nodes", OPT_INT, &o->nodes, "N", "Clients.", NULL},
        {"share", OPT_INT, &o->share, "N", "Clients on each connection.", NULL},
        {"seed", OPT_INT, &o->seed, "N", "What all decisions come from.", NULL},
        {"starting", OPT_INT, &o->starting, "N", "Registrations under way at a time.", NULL},
        {"cpu", OPT_INT, &o->cpu, "MHZ", "Of each node.", NULL},
        {"memory", OPT_INT, &o->memory, "MB", "Of each node.", NULL},
        {"disk", OPT_INT, &o->disk, "MB", "Of each node.", NULL},
        {"vary", OPT_INT, &o->vary, "PERCENT", "More or less cpu and memory, by seed.", NULL},
        {"racks", OPT_INT, &o->racks, "N", "Values of meta.rack: r0 and on.", NULL},
        {"classes", OPT_INT, &o->classes, "N", "Node classes: c0 and on.", NULL},
        {"datacenters", OPT_INT, &o->datacenters, "N", "Datacenters: dc1 and on.", NULL},
        {"cores", OPT_INT, &o->cores, "N", "Cores to reserve on each node, of 2,500 MHz.", NULL},
        {"numa", OPT_INT, &o->numa, "N", "Parts that these cores are in.", NULL},
        {"devices", OPT_INT, &o->devices, "N", "Devices sim/gpu/large or small on each node.",
         NULL},
        {"drivers", OPT_STRING, &o->drivers, "NAMES", "Drivers that nodes say they have.", NULL},
        {"pool", OPT_STRING, &o->pool, "NAME", "Node pool.", NULL},
        {"start", OPT_STRING, &start, "MIN-MAX", "How long tasks take to start.", NULL},
        {"life", OPT_STRING, &life, "MIN-MAX", "How long they run; 0s: for ever.", NULL},
        {"stop", OPT_STRING, &stop, "MIN-MAX", "How long they take to stop.", NULL},
        {"fail", OPT_INT, &o->fail, "PERCENT", "Runs that end with 1.", NULL},
        {"start-fail", OPT_INT, &o->start_fail, "PERCENT", "Runs that cannot start.", NULL},
        {"control", OPT_STRING, &o->control, "PATH", "The control socket.", NULL},
        {"events", OPT_STRING, &o->events, "FILE", "Where to write what was decided, at the end.",
         NULL},
        {"pki", OPT_STRING, &o->pki, "DIRECTORY",
         "Speak TLS, as a client of region global with the files of `paddock tls` there.", NULL},
        {"for", OPT_DURATION, &o->run_ns, "TIME", "How long to run; 0: until told.", NULL},
        {"json", OPT_BOOL, &o->json, NULL, "Print JSON.", NULL},
        {0}};
    const struct opt *tables[] = {table, NULL};
    struct opt_list args;

    int r = opt_parse(f, tables, argc, argv, &args, e);
    if (r == 1)
        for (const struct opt *t = table; t->name != NULL; t++)
            printf("  -%-12s %-8s %s\n", t->name, t->arg != NULL ? t->arg : "", t->help);
    if (r != 0)
        return r;
    if (args.n != 0 || o->nodes < 1 || o->nodes > NODES_MAX || o->share < 1 ||
        o->share > SHARE_MAX || o->starting < 1 || o->vary < 0 || o->vary > 100 || o->numa < 1)
        return err_set(e, -ERR_INVALID,
                       "1 to %d nodes, 1 to %d on a connection, and no arguments; see -help",
                       NODES_MAX, SHARE_MAX);
    if (!range_parse(start, NS_PER_MS, &o->start_ms) ||
        !range_parse(life, NS_PER_MS, &o->life_ms) || !range_parse(stop, NS_PER_MS, &o->stop_ms))
        return err_set(e, -ERR_INVALID, "-start, -life and -stop take durations such as 5ms-50ms");
    return 0;
}

static const char *
read_pem(struct fleet *f, const char *name, struct err *e)
{
    char *path = mem_printf(f, "%s/%s", f->opt.pki, name), *text = NULL;
    size_t n;
    int r = file_read(f, AT_FDCWD, path, 1 << 20, &text, &n);

    if (r < 0)
        err_set(e, r, "%s: %s", path, err_name(r));
    return text;
}

static int
tls_open(struct fleet *f, struct err *e)
{
    const struct tls_config cfg = {
        .ca = read_pem(f, "nomad-agent-ca.pem", e),
        .cert = read_pem(f, "global-client-nomad.pem", e),
        .key = read_pem(f, "global-client-nomad-key.pem", e),
        .verify_server_hostname = true,
    };
    if (e->code == 0)
        f->tls = tls_new(&cfg, e);
    return e->code;
}

static int
fleet_open(struct fleet *f, struct err *e)
{
    char *list = mem_strdup(f, f->opt.servers), *save = NULL;
    struct rlimit limit;

    for (char *s = strtok_r(list, ",", &save); s != NULL; s = strtok_r(NULL, ",", &save))
        list_add(f, f->servers, s);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    f->sims = mem_array(f, struct sim, (size_t)f->opt.nodes);
    f->conns = mem_array(f, struct rpc_client *, (size_t)f->opt.nodes);
    for (int64_t i = 0; i < f->opt.nodes; i++)
        f->sims[i] = (struct sim){.fleet = f, .number = (uint32_t)i};
    if (f->opt.pki != NULL && tls_open(f, e) < 0)
        return e->code;
    const struct dialer own = fleet_dialer(f, NULL);
    f->own = rpc_dial(&own, &f->servers, e);
    if (e->code == 0 && f->opt.control != NULL)
        control_open(f, f->opt.control, e);
    return e->code;
}

int
main(int argc, char **argv)
{
    struct fleet *f = mem_new(NULL, struct fleet);
    struct err e = ERR_INIT;

    log_set_level(LOG_ERROR);
    f->opt = (struct options){.servers = "127.0.0.1:4647",
                              .nodes = 1000,
                              .share = 1,
                              .seed = 1,
                              .starting = 256,
                              .cpu = 16000,
                              .memory = 65536,
                              .disk = 1 << 20,
                              .numa = 1,
                              .pool = "default",
                              .drivers = "exec,raw_exec,docker,java,mock_driver"};
    int r = options_parse(f, argc, argv, &e);
    if (r != 0) {
        if (r < 0)
            fprintf(stderr, "fleet: %s\n", e.text);
        talloc_free(f);
        return r < 0 ? 2 : 0;
    }
    f->loop = loop_new();
    if (fleet_open(f, &e) < 0) {
        fprintf(stderr, "fleet: %s\n", e.text);
        fleet_free(f);
        return 2;
    }
    loop_on_signal(f->loop, SIGINT, on_signal, f);
    loop_on_signal(f->loop, SIGTERM, on_signal, f);
    if (f->opt.run_ns > 0)
        f->end = timer_start(f->loop, f->opt.run_ns / NS_PER_MS, on_time, f);
    f->start_ns = clock_mono_ns();
    f->rss_before_kb = rss_kb();
    stats_mark(f);
    loop_post(f->loop, start_more, f);
    while (!f->quit)
        loop_run(f->loop);
    stats_print(f, stdout, f->opt.json);
    int bad = f->stats.wrong_down > 0;
    if (events_write(f, f->opt.events) < 0) {
        fprintf(stderr, "fleet: cannot write \"%s\"\n", f->opt.events);
        bad = 2;
    }
    fleet_free(f);
    return bad;
}
