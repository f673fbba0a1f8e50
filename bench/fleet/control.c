/* SPDX-License-Identifier: Apache-2.0
 *
 * The control socket: a line in, a line out.
 *
 *   kill|pause|cut|rejoin WHICH   -> "ok N", how many nodes it hit
 *   mark                          measurements begin anew
 *   identities                    asks for one of each running allocation -> "ok N", how many
 *   stats                         -> an object of JSON
 *   check                         asks a server whom it calls down -> "ok N", wrong ones until now
 *   wait joined|running|idle N    -> "ok N" once N have answered heartbeats, N allocations are told
 *                                 to run, at most N are
 *   quit
 *
 * WHICH: "all", "N", "P%", "rack=R", "class=C", "dc=D" or "node=A-B", of those that it can hit.
 * Which ones a number or a share means comes from the seed and how many commands there were.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/fleet/fleet.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

enum { CONTROL_LINE = 256, CONTROL_WAIT_MS = 10 };

struct peer {
    struct fleet *fleet;
    int fd;
    struct watch *watch;
    char line[CONTROL_LINE];
    size_t len;
    const char *waits_for; /* NULL: nothing */
    uint64_t at_least;
    struct timer *timer;
    bool checking, gone;
    struct peer *next;
};

struct control {
    int fd;
    struct watch *watch;
    struct peer *peers;
    char *path;
};

static void
peer_free(struct peer *p)
{
    struct peer **at = &p->fleet->control->peers;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    talloc_free(p);
}

static void
peer_close(struct peer *p)
{
    if (!p->gone) {
        watch_stop(TAKE(p->watch));
        timer_stop(TAKE(p->timer));
        close(p->fd);
        p->gone = true;
    }
    if (!p->checking)
        peer_free(p);
}

static void __attribute__((format(printf, 2, 3))) say(struct peer *p, const char *fmt, ...)
{
    va_list ap;

    if (p->gone)
        return;
    va_start(ap, fmt);
    (void)vdprintf(p->fd, fmt, ap); /* lines are shorter than a socket's buffer */
    va_end(ap);
}

/* --- which nodes --- */

struct chosen {
    uint64_t rank;
    struct sim *node;
};

static int
by_rank(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

struct which {
    char key[16], value[64];
    int64_t from, to; /* of node=A-B */
    int64_t count;
    bool percent;
};

static bool
number(const char *s, int64_t *ret)
{
    return num_parse_i64(s, ret) == 0 && *ret >= 0;
}

static bool
which_parse(const char *s, struct which *w)
{
    const char *eq = strchr(s, '=');
    size_t n = strlen(s);
    char text[64];

    *w = (struct which){.count = -1};
    if (strcmp(s, "all") == 0)
        return true;
    if (eq == NULL) {
        w->percent = n > 1 && s[n - 1] == '%';
        return n < sizeof(text) && str_copy(text, n + !w->percent, s) | w->percent &&
               number(text, &w->count);
    }
    if ((size_t)(eq - s) >= sizeof(w->key) || !str_copy(w->value, sizeof(w->value), eq + 1))
        return false;
    memcpy(w->key, s, (size_t)(eq - s));
    if (strcmp(w->key, "node") != 0)
        return strcmp(w->key, "rack") == 0 || strcmp(w->key, "class") == 0 ||
               strcmp(w->key, "dc") == 0;
    char *dash = strchr(w->value, '-');
    if (dash != NULL)
        *dash = '\0';
    return number(w->value, &w->from) && number(dash != NULL ? dash + 1 : w->value, &w->to);
}

static bool
which_has(const struct which *w, const struct sim *s)
{
    char text[32];

    if (w->key[0] == '\0')
        return true;
    if (strcmp(w->key, "node") == 0)
        return s->number >= w->from && s->number <= w->to;
    return strcmp(w->value, strcmp(w->key, "rack") == 0    ? sim_rack(s, text)
                            : strcmp(w->key, "class") == 0 ? sim_class(s, text)
                                                           : sim_datacenter(s, text)) == 0;
}

static void
hit(struct peer *p, const char *what, const char *arg)
{
    static const struct {
        const char *name;
        void (*fn)(struct sim *s);
        bool living;
    } verbs[] = {{"kill", sim_kill, true},
                 {"pause", sim_pause, true},
                 {"cut", sim_cut, true},
                 {"rejoin", sim_rejoin, false}};
    struct fleet *f = p->fleet;
    auto_mem void *ctx = mem_ctx("hit");
    struct chosen *v = mem_array(ctx, struct chosen, (size_t)f->opt.nodes);
    size_t n = 0, verb = 0;
    struct which w;

    while (strcmp(verbs[verb].name, what) != 0)
        verb++;
    if (!which_parse(arg, &w)) {
        say(p, "error: \"%s\": all, N, P%%, rack=R, class=C, dc=D or node=A-B\n", arg);
        return;
    }
    uint64_t chance = mix((uint64_t)f->opt.seed, 1000 + ++f->n_commands);
    for (int64_t i = 0; i < f->opt.nodes; i++) {
        struct sim *s = &f->sims[i];
        if (s->state != SIM_OFF && (s->state == SIM_ON) == verbs[verb].living && which_has(&w, s))
            v[n++] = (struct chosen){mix(chance, s->number), s};
    }
    qsort(v, n, sizeof(v[0]), by_rank);
    size_t want = w.count < 0 ? n
                  : w.percent ? (size_t)((w.count * f->opt.nodes + 99) / 100)
                              : (size_t)w.count;
    n = want < n ? want : n;
    for (size_t i = 0; i < n; i++) {
        events_add(f, "command %llu %s node %05u", (unsigned long long)f->n_commands, what,
                   v[i].node->number);
        verbs[verb].fn(v[i].node);
    }
    say(p, "ok %zu\n", n);
}

/* --- commands --- */

static void
wait_look(void *arg)
{
    struct peer *p = arg;
    const struct fleet *f = p->fleet;
    uint64_t now = strcmp(p->waits_for, "joined") == 0 ? f->n_joined : f->n_told;
    bool idle = strcmp(p->waits_for, "idle") == 0;

    p->timer = NULL;
    if (idle ? now <= p->at_least : now >= p->at_least) {
        p->waits_for = NULL;
        say(p, "ok %llu\n", (unsigned long long)now);
        return;
    }
    p->timer = timer_start(f->loop, CONTROL_WAIT_MS, wait_look, p);
}

static void
checked(void *arg)
{
    struct peer *p = arg;

    p->checking = false;
    if (p->gone)
        peer_free(p);
    else
        say(p, "ok %llu\n", (unsigned long long)p->fleet->stats.wrong_down);
}

static void
wait_for(struct peer *p, const char *what, const char *n)
{
    static const char *const names[] = {"joined", "running", "idle"};
    int64_t v;

    if (p->timer != NULL || n == NULL || !number(n, &v)) {
        say(p, "error: wait joined|running|idle N, one at a time\n");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], what) == 0)
            p->waits_for = names[i];
    if (p->waits_for == NULL) {
        say(p, "error: \"%s\": joined, running or idle\n", what);
        return;
    }
    p->at_least = (uint64_t)v;
    wait_look(p);
}

static void
command(struct peer *p, char *line)
{
    char *save = NULL, *what = strtok_r(line, " ", &save), *arg = strtok_r(NULL, " ", &save);

    if (what == NULL) {
        say(p, "error: an empty line\n");
    } else if (arg != NULL && (strcmp(what, "kill") == 0 || strcmp(what, "pause") == 0 ||
                               strcmp(what, "cut") == 0 || strcmp(what, "rejoin") == 0)) {
        hit(p, what, arg);
    } else if (strcmp(what, "wait") == 0 && arg != NULL) {
        wait_for(p, arg, strtok_r(NULL, " ", &save));
    } else if (strcmp(what, "mark") == 0) {
        stats_mark(p->fleet);
        say(p, "ok 0\n");
    } else if (strcmp(what, "identities") == 0) {
        say(p, "ok %zu\n", fleet_identities(p->fleet));
    } else if (strcmp(what, "stats") == 0) {
        char *text = NULL;
        size_t n = 0;
        FILE *out = open_memstream(&text, &n);
        ASSERT(out != NULL);
        stats_print(p->fleet, out, true);
        fclose(out);
        say(p, "%s", text);
        free(text);
    } else if (strcmp(what, "check") == 0 && !p->checking) {
        p->checking = true;
        fleet_check(p->fleet, checked, p);
    } else if (strcmp(what, "quit") == 0) {
        say(p, "ok 0\n");
        fleet_quit(p->fleet);
    } else {
        say(p,
            "error: \"%s\": kill, pause, cut, rejoin, mark, identities, stats, check, wait, quit\n",
            what);
    }
}

static void
on_readable(void *arg, int fd, unsigned events)
{
    struct peer *p = arg;
    char *end;

    (void)events;
    ssize_t n = read(fd, p->line + p->len, sizeof(p->line) - 1 - p->len);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            peer_close(p);
        return;
    }
    p->len += (size_t)n;
    p->line[p->len] = '\0';
    while ((end = strchr(p->line, '\n')) != NULL) {
        *end = '\0';
        command(p, p->line);
        p->len -= (size_t)(end + 1 - p->line);
        memmove(p->line, end + 1, p->len + 1);
    }
    if (p->len == sizeof(p->line) - 1)
        peer_close(p);
}

static void
on_connection(void *arg, int fd, unsigned events)
{
    struct fleet *f = arg;
    int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)events;
    if (conn < 0)
        return;
    struct peer *p = mem_new(NULL, struct peer);
    p->fleet = f;
    p->fd = conn;
    p->next = f->control->peers;
    f->control->peers = p;
    p->watch = watch_fd(f->loop, conn, WATCH_READ, on_readable, p);
}

int
control_open(struct fleet *f, const char *path, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (!str_copy(a.sun_path, sizeof(a.sun_path), path))
        return err_set(e, -ERR_INVALID, "the path of the control socket is too long");
    unlink(path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 16) < 0)
        return err_errno(e, errno, "control socket \"%s\"", path);
    f->control = mem_new(NULL, struct control);
    f->control->path = mem_strdup(f->control, path);
    f->control->fd = TAKE_FD(fd);
    f->control->watch = watch_fd(f->loop, f->control->fd, WATCH_READ, on_connection, f);
    return 0;
}

void
control_close(struct fleet *f)
{
    struct control *c = f->control;

    if (c == NULL)
        return;
    while (c->peers != NULL) {
        c->peers->checking = false;
        peer_close(c->peers);
    }
    watch_stop(c->watch);
    close(c->fd);
    unlink(c->path);
    mem_free(f->control);
}
