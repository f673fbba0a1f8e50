/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP reads of several agents in turn, beside a floor: a process that sends the first agent's
 * answers from memory. The client spends as little as it can, since it shares the processors with
 * who is measured: one thread, requests that are made once, answers that are counted and not
 * parsed; their length is learned first.
 *
 * usage: httpread [-c connections] [-s seconds] [-r rounds] NAME=PORT:PID...
 *        httpread register PORT COUNT     nodes like that on standard input, as the API shows it,
 * by RPC
 *
 * Standard input has a line per case: label, then a path for each agent. For each: requests per
 * second (median of the rounds) and microseconds of processor per request of all its threads; then
 * what the first agent has of each other one, by rate and by processor.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "api/api.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"
#include "net/rpc.h"

enum {
    TARGETS_MAX = 6,
    CONNS_MAX = 512,
    ROUNDS_MAX = 32,
    HEAD = 4096,
    ANSWER_MAX = 64 << 20,
    NODE_MAX = 1 << 20,
    TRIES = 5
};

struct target {
    char name[32];
    uint16_t port;
    int pid;
    char path[512];
    double rate[ROUNDS_MAX], cpu_us[ROUNDS_MAX];
};

struct conn {
    int fd;
    size_t left; /* bytes of the answer */
};

static unsigned conns = 32, rounds = 3;
static double seconds = 2;
static struct target targets[TARGETS_MAX];
static unsigned n_targets;
static char *answer; /* of the first target, as it came */
static size_t answer_len;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    _exit(1);
}

static int
dial(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        die("port %u: %s", port, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

/* --- the length of an answer --- */

static size_t
whole_length(const char *p, size_t n)
{
    const char *end = memmem(p, n, "\r\n\r\n", 4);
    if (end == NULL)
        return 0;
    size_t head = (size_t)(end - p) + 4;
    const char *len = memmem(p, head, "Content-Length: ", 16);
    if (len != NULL)
        return head + (size_t)strtod(len + 16, NULL);
    if (memmem(p, head, "Transfer-Encoding: chunked", 26) == NULL)
        return head;
    for (size_t at = head;;) {
        const char *eol = memmem(p + at, n - at, "\r\n", 2);
        if (eol == NULL)
            return 0;
        unsigned size = 0;
        if (sscanf(p + at, "%x", &size) != 1)
            return 0;
        at = (size_t)(eol - p) + 2 + size + 2;
        if (size == 0)
            return at;
        if (at > n)
            return 0;
    }
}

/* One answer, whole; its length. */
static size_t
fetch(int fd, const char *req, char *buf)
{
    size_t n = 0, want = 0;

    if (send(fd, req, strlen(req), 0) < 0)
        die("send: %s", strerror(errno));
    while (want == 0 || n < want) {
        ssize_t r = recv(fd, buf + n, ANSWER_MAX - n, 0);
        if (r <= 0)
            die("the connection ended after %zu bytes", n);
        n += (size_t)r;
        buf[n] = 0;
        want = whole_length(buf, n);
    }
    if (strncmp(buf, "HTTP/1.1 200", 12) != 0)
        die("%.*s...: %.200s", (int)strcspn(req, "\r"), req, buf);
    return n;
}

static size_t
learn(const struct target *t, const char *req, char *buf)
{
    int fd = dial(t->port);
    size_t n = fetch(fd, req, buf);

    for (int i = 0; i < TRIES; i++)
        if (fetch(fd, req, buf) != n)
            die("%s: the length of %s varies", t->name, t->path);
    close(fd);
    return n;
}

/* --- the load --- */

static void
ask(struct conn *c, const char *req, size_t req_len, size_t want)
{
    if (send(c->fd, req, req_len, 0) != (ssize_t)req_len)
        die("send: %s", strerror(errno));
    c->left = want;
}

/* True: the answer is whole. */
static bool
take(struct conn *c, size_t want)
{
    char head[HEAD];
    bool first = c->left == want;
    ssize_t r = first ? recv(c->fd, head, c->left < HEAD ? c->left : HEAD, 0)
                      : recv(c->fd, NULL, c->left, MSG_TRUNC); /* not copied */

    if (r <= 0)
        die("the connection ended: %s", r < 0 ? strerror(errno) : "early");
    if (first && (r < 12 || memcmp(head, "HTTP/1.1 200", 12) != 0))
        die("refused under load: %.*s", (int)r, head);
    c->left -= (size_t)r;
    return c->left == 0;
}

static double
cpu_s(int pid)
{
    char path[64], text[64];
    double ns = 0;
    struct dirent *d;

    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    while (dir != NULL && (d = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "/proc/%d/task/%.16s/schedstat", pid, d->d_name);
        FILE *f = d->d_name[0] != '.' ? fopen(path, "re") : NULL;
        if (f != NULL && fgets(text, sizeof(text), f) != NULL)
            ns += strtod(text, NULL);
        if (f != NULL)
            fclose(f);
    }
    if (dir != NULL)
        closedir(dir);
    return ns / 1e9;
}

static void
measure(struct target *t, unsigned round, const char *req, size_t want)
{
    struct conn c[CONNS_MAX];
    struct epoll_event ev[CONNS_MAX];
    size_t req_len = strlen(req), done = 0;
    int ep = epoll_create1(EPOLL_CLOEXEC);

    for (unsigned i = 0; i < conns; i++) {
        c[i].fd = dial(t->port);
        ev[0] = (struct epoll_event){.events = EPOLLIN, .data.ptr = &c[i]};
        epoll_ctl(ep, EPOLL_CTL_ADD, c[i].fd, &ev[0]);
        ask(&c[i], req, req_len, want);
    }
    int64_t begin = clock_mono_ns(), now = begin, end = begin + (int64_t)(seconds * 1e9);
    double cpu = cpu_s(t->pid);
    while (now < end) {
        int n = epoll_wait(ep, ev, CONNS_MAX, 5000);
        if (n <= 0)
            die("%s: no answer for 5 s", t->name);
        for (int i = 0; i < n; i++) {
            struct conn *one = ev[i].data.ptr;
            if (take(one, want)) {
                done++;
                ask(one, req, req_len, want);
            }
        }
        now = clock_mono_ns();
    }
    t->cpu_us[round] = (cpu_s(t->pid) - cpu) * 1e6 / (double)done;
    t->rate[round] = (double)done / ((double)(now - begin) / 1e9);
    for (unsigned i = 0; i < conns; i++)
        close(c[i].fd);
    close(ep);
}

/* --- the floor: what was read of the first target, for each request --- */

static void
floor_send(struct conn *c)
{
    while (c->left > 0) {
        ssize_t r =
            send(c->fd, answer + answer_len - c->left, c->left, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (r < 0)
            return;
        c->left -= (size_t)r;
    }
}

static void __attribute__((noreturn)) floor_serve(int ls)
{
    static struct conn c[65536];
    struct epoll_event ev[CONNS_MAX], e = {.events = EPOLLIN, .data.ptr = NULL};
    char in[HEAD];
    int ep = epoll_create1(EPOLL_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    epoll_ctl(ep, EPOLL_CTL_ADD, ls, &e);
    for (;;) {
        int n = epoll_wait(ep, ev, CONNS_MAX, -1);
        for (int i = 0; i < n; i++) {
            struct conn *one = ev[i].data.ptr;
            if (one == NULL) {
                int fd = accept4(ls, NULL, NULL, SOCK_CLOEXEC);
                one = &c[fd];
                *one = (struct conn){.fd = fd};
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
                e = (struct epoll_event){.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = one};
                epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
                continue;
            }
            if (ev[i].events & EPOLLIN) {
                ssize_t r = recv(one->fd, in, sizeof(in), MSG_DONTWAIT);
                if (r == 0 || (r < 0 && errno != EAGAIN)) {
                    close(one->fd);
                    continue;
                }
                if (r > 0)
                    one->left = answer_len;
            }
            floor_send(one);
        }
    }
}

static struct target
floor_start(void)
{
    struct target t = {.name = "floor"};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int ls = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(ls, (struct sockaddr *)&a, len) < 0 || listen(ls, CONNS_MAX) < 0 ||
        getsockname(ls, (struct sockaddr *)&a, &len) < 0)
        die("floor: %s", strerror(errno));
    t.port = ntohs(a.sin_port);
    t.pid = fork();
    if (t.pid == 0)
        floor_serve(ls);
    close(ls);
    return t;
}

/* --- cases --- */

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double
median(double *v)
{
    qsort(v, rounds, sizeof(v[0]), by_value);
    return v[rounds / 2];
}

static void
report(const char *label, const size_t *bytes)
{
    double rate[TARGETS_MAX], cpu[TARGETS_MAX];

    for (unsigned i = 0; i < n_targets; i++) {
        rate[i] = median(targets[i].rate);
        cpu[i] = median(targets[i].cpu_us);
        printf("%-24s %-10s %9.0f /s %9.1f us of processor %9zu B\n", label, targets[i].name,
               rate[i], cpu[i], bytes[i]);
    }
    for (unsigned i = 1; i < n_targets; i++)
        printf("%-24s %s is %.2f of %s by rate, %.2f by processor\n", label, targets[0].name,
               rate[0] / rate[i], targets[i].name, cpu[i] / cpu[0]);
    fflush(stdout);
}

static void
run_case(char *line)
{
    static char req[TARGETS_MAX][1024];
    size_t bytes[TARGETS_MAX];
    char *save, *label = strtok_r(line, " \t\n", &save), *buf = malloc(ANSWER_MAX + 1);

    if (label == NULL || buf == NULL)
        return;
    for (unsigned i = 0; i + 1 < n_targets; i++) {
        const char *path = strtok_r(NULL, " \t\n", &save);
        if (path == NULL)
            die("%s: a path for each agent", label);
        snprintf(targets[i].path, sizeof(targets[i].path), "%s", path);
        snprintf(req[i], sizeof(req[i]), "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", path,
                 targets[i].port);
        bytes[i] = learn(&targets[i], req[i], buf);
        if (i == 0)
            answer = memcpy(malloc(bytes[0]), buf, answer_len = bytes[0]);
    }
    unsigned last = n_targets - 1;
    targets[last] = floor_start();
    bytes[last] = answer_len;
    memcpy(req[last], req[0], sizeof(req[0]));
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned i = 0; i < n_targets; i++)
            measure(&targets[i], r, req[i], bytes[i]);
    kill(targets[last].pid, SIGKILL);
    report(label, bytes);
    free(answer);
    free(buf);
}

/* --- nodes by RPC --- */

struct registering {
    int open;
    bool over;
};

static void
registered(void *arg, const struct err *e, const void *resp)
{
    struct registering *g = arg;

    (void)resp;
    if (e != NULL)
        die("register: %s", e->text);
    g->over = --g->open == 0;
}

static int
register_nodes(uint16_t port, int count)
{
    struct err e = ERR_INIT;
    struct budget b = {.left = 64 << 20};
    struct loop *l = loop_new();
    void *ctx = mem_ctx("httpread");
    const char *server = mem_printf(ctx, "127.0.0.1:%u", port);
    const struct str_list servers = {&server, 1};
    struct registering g = {.open = count};
    struct node *node;
    char *text = mem_array(ctx, char, NODE_MAX);
    ssize_t n = fd_read_full(STDIN_FILENO, text, NODE_MAX);

    if (n < 0 || json_decode(ctx, &type_node, SLICE(text, (size_t)n), &b, (void **)&node, &e) < 0)
        die("node: %s", e.text);
    struct rpc_client *c = rpc_dial(&(struct dialer){.loop = l}, &servers, &e);
    for (int i = 0; i < count; i++) {
        struct node_register_request req = {.node = node};
        struct rpc_envelope env = {.region = "global"};
        struct rpc_request r = {RPC_NODE_REGISTER, &req, &env, 10000};
        node->id =
            mem_printf(ctx, "%08x-0000-4000-8000-%012x", 0xabc00000u + (unsigned)i * 7919u, i);
        env.node_id = node->id;
        env.node_secret = mem_printf(ctx, "%08x-1111-4000-8000-%012x", (unsigned)i, i);
        node->name = mem_printf(ctx, "node-%03d", i);
        rpc_send(c, &r, registered, &g);
    }
    loop_run_until(l, &g.over, 30000);
    rpc_client_close(c);
    loop_free(l);
    talloc_free(ctx);
    return g.over ? 0 : 1;
}

int
main(int argc, char **argv)
{
    char line[4096];
    int opt;

    signal(SIGPIPE, SIG_IGN);
    if (argc == 4 && strcmp(argv[1], "register") == 0)
        return register_nodes((uint16_t)strtod(argv[2], NULL), (int)strtod(argv[3], NULL));
    while ((opt = getopt(argc, argv, "c:s:r:")) != -1)
        if (opt == 'c')
            conns = (unsigned)strtod(optarg, NULL);
        else if (opt == 's')
            seconds = strtod(optarg, NULL);
        else if (opt == 'r')
            rounds = (unsigned)strtod(optarg, NULL);
        else
            return 1;
    if (conns - 1 >= CONNS_MAX || rounds - 1 >= ROUNDS_MAX)
        die("at most %d connections and %d rounds", CONNS_MAX, ROUNDS_MAX);
    for (; optind < argc && n_targets + 1 < TARGETS_MAX; n_targets++) {
        struct target *t = &targets[n_targets];
        if (sscanf(argv[optind++], "%31[^=]=%hu:%d", t->name, &t->port, &t->pid) != 3)
            die("usage: httpread [-c connections] [-s seconds] [-r rounds] NAME=PORT:PID...");
    }
    n_targets++; /* the floor */
    while (fgets(line, sizeof(line), stdin) != NULL)
        run_case(line);
    return 0;
}
