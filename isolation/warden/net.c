/* SPDX-License-Identifier: Apache-2.0
 *
 * The network of an allocation: a namespace that its tasks share and, in mode bridge, an address
 * and ports of the host that lead there. The agent names mode and ports; the address is ours. What
 * waits for the kernel is done by the network worker (worker.h).
 *
 * A record file per network, made before anything else of it and removed last, says what there is.
 * The namespace itself is held by an fd here and by the tasks in it: a warden that starts takes it
 * from a living task, or makes another with the same address.
 */
#include "isolation/warden/net.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "isolation/launch/policy.h"
#include "isolation/launch/record.h"
#include "isolation/network/netns.h"
#include "isolation/network/worker.h"
#include "isolation/packet.h"
#include "isolation/proc.h"
#include "isolation/warden/handlers.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/net_check.h"
#include "isolation/warden/task.h"

#define ROOM "warden"
#define RECORD_TEMP ".new"
enum {
    NET_MAGIC = 0x4e4b4450,
    NET_VERSION = 1,
    NET_JOINED = 2, /* version of one whose namespace is that of a container */
    WORKER_BUFFER = 1 << 20
};

enum net_state { NET_MAKING, NET_READY, NET_REMOVING };

struct wnet {
    char alloc[UUID_TEXT];
    enum net_state state;
    int ns;            /* -1: none */
    uint32_t seq;      /* of the request to the worker whose answer is waited for */
    struct wnet *next; /* whose request waits to be sent after this one's */
    struct waiter waiter;
    struct net_record rec;
};

struct warden_nets {
    struct net_conf conf;
    int dir;  /* of the records */
    int home; /* our own network namespace */
    struct watch worker;
    uint32_t seq;
    size_t requested;   /* requests that the worker has not answered */
    struct wnet *first; /* whose request waits until it has answered some */
    struct wnet **last;
    struct wnet **v;
    size_t n;
    int spares[NET_SPARES_MAX];
    size_t n_spares;
    size_t spares_requested;
};

/* --- records --- */

static struct wnet *
net_find(struct warden *w, const char *alloc)
{
    for (size_t i = 0; i < w->nets->n; i++)
        if (str_eq(w->nets->v[i]->alloc, alloc))
            return w->nets->v[i];
    return NULL;
}

static struct wnet *
net_add(struct warden *w, const char *alloc)
{
    struct warden_nets *nets = w->nets;
    struct wnet *n = mem_new(nets, struct wnet);
    str_copy(n->alloc, sizeof(n->alloc), alloc);
    n->ns = -1;
    n->rec.magic = NET_MAGIC;
    n->rec.version = NET_VERSION;
    if ((nets->n & (nets->n - 1)) == 0)
        mem_resize(nets, nets->v, struct wnet *, nets->n > 0 ? nets->n * 2 : 1);
    nets->v[nets->n++] = n;
    return n;
}

/* Forgotten; its record as well. */
static void
net_drop(struct warden *w, struct wnet *n)
{
    struct warden_nets *nets = w->nets;
    (void)unlinkat(nets->dir, n->alloc, 0);
    fd_close(&n->ns);
    for (size_t i = 0; i < nets->n; i++)
        if (nets->v[i] == n)
            nets->v[i] = nets->v[--nets->n];
    mem_free(n);
}

/* Whole or not at all, for a warden that is killed; a machine that crashes has no networks left. */
static int
write_record(struct warden *w, const struct wnet *n)
{
    char temp[UUID_TEXT + sizeof(RECORD_TEMP)];
    (void)snprintf(temp, sizeof(temp), "%s" RECORD_TEMP, n->alloc);
    auto_fd int fd =
        openat(w->nets->dir, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fd_write_full(fd, &n->rec, NET_RECORD_BYTES(n->rec.n_ports));
    if (r == 0 && renameat(w->nets->dir, temp, w->nets->dir, n->alloc) < 0)
        r = -errno;
    return r;
}

static bool
read_record(struct warden *w, const char *file, struct net_record *rec)
{
    auto_fd int fd = openat(w->nets->dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, rec, sizeof(*rec));
    const struct net_conf *c = &w->nets->conf;
    uint32_t last = c->subnet | UINT32_MAX >> c->bits; /* broadcast */
    return n >= (ssize_t)NET_RECORD_BYTES(0) && rec->magic == NET_MAGIC &&
           (rec->version == NET_VERSION || rec->version == NET_JOINED) &&
           rec->n_ports <= NET_PORTS_MAX && n == (ssize_t)NET_RECORD_BYTES(rec->n_ports) &&
           (rec->addr == 0 || (rec->addr > net_gateway(c) && rec->addr < last));
}

/* --- the network worker --- */

static int
net_request_work(struct warden *w, enum work_op op, const struct net_record *rec, int fd,
                 uint32_t *ret_seq)
{
    if (w->nets->requested >= NET_ASKED_MAX)
        return -EAGAIN;
    struct work_request q = {.op = op, .seq = ++w->nets->seq};
    if (rec != NULL)
        q.net = *rec;
    int r = packet_send(w->nets->worker.fd, &q, sizeof(q), &fd, fd >= 0);
    if (r == 0 && ret_seq != NULL)
        *ret_seq = q.seq;
    w->nets->requested += r == 0;
    return r;
}

static void
request_spares(struct warden *w)
{
    struct warden_nets *nets = w->nets;
    while (nets->n_spares + nets->spares_requested < NET_SPARES_MAX &&
           net_request_work(w, WORK_SPARE, NULL, -1, NULL) == 0)
        nets->spares_requested++;
}

/* Not while the launch that took one goes on, but before there is none. */
static void
net_refill(struct warden *w)
{
    if (w->nets->n_spares <= NET_SPARES_MAX / 2)
        request_spares(w);
    else if (w->nets_ns == 0)
        w->nets_ns = clock_mono_ns() + NET_REFILL_MS * NS_PER_MS;
}

void
net_tick(struct warden *w)
{
    w->nets_ns = 0;
    request_spares(w);
}

static uint64_t
net_inode(int ns)
{
    struct stat st;
    return fstat(ns, &st) == 0 ? st.st_ino : 0;
}

static void
net_answer(struct warden *w, struct wnet *n)
{
    struct answer a = {0};
    struct alloc_network_status s = {0};
    char text[INET_ADDRSTRLEN];
    if (n->rec.addr != 0) {
        struct in_addr in = {htonl(n->rec.addr)};
        s.interface_name = NET_IFACE;
        s.address = inet_ntop(AF_INET, &in, text, sizeof(text));
    }
    a.msg.network = &s;
    loop_answer(w, n->waiter, &a);
    n->waiter = (struct waiter){0};
}

static void
net_made(struct warden *w, struct wnet *n, int *ns)
{
    uint64_t known = n->rec.ns_ino;
    n->ns = TAKE_FD(*ns);
    n->rec.ns_ino = net_inode(n->ns);
    n->state = NET_READY;
    int r = n->rec.ns_ino != known ? write_record(w, n) : 0;
    if (r < 0)
        log_warn(ROOM, "a network's record cannot be written: it would not survive this warden",
                 "alloc_id", n->alloc, "error", strerror(-r), NULL);
    log_debug(ROOM, "network made", "alloc_id", n->alloc, NULL);
    net_answer(w, n);
}

static void
net_failed(struct warden *w, struct wnet *n, const char *what, const struct work_answer *a)
{
    struct err e = ERR_INIT;
    err_errno(&e, -a->code, "%s the network of allocation \"%s\": %s", what, n->alloc, a->what);
    log_warn(ROOM, e.text, NULL);
    struct waiter to = n->waiter;
    n->waiter = (struct waiter){0};
    if (n->state == NET_MAKING) /* first: whoever hears of it may look */
        net_drop(w, n);
    else
        n->state = NET_READY; /* asked for again with the directory, or by the next warden */
    loop_refuse(w, to, &e);
}

/* A whole answer of the worker; `fd` is taken or left to be closed. */
static void
worker_answered(struct warden *w, const struct work_answer *a, int *fd)
{
    struct warden_nets *nets = w->nets;
    if (a->op == WORK_SPARE) {
        nets->spares_requested--;
        if (*fd >= 0 && nets->n_spares < NET_SPARES_MAX)
            nets->spares[nets->n_spares++] = TAKE_FD(*fd);
        return;
    }
    struct wnet *n = NULL;
    for (size_t i = 0; i < nets->n; i++)
        if (nets->v[i]->seq == a->seq)
            n = nets->v[i];
    if (n == NULL || n->state == NET_READY)
        return;
    if (n->state == NET_MAKING && a->code == 0 && *fd >= 0) {
        net_made(w, n, fd);
    } else if (n->state == NET_MAKING) {
        net_failed(w, n, "make", a);
    } else if (a->code == 0) {
        struct answer done = {0};
        struct waiter to = n->waiter;
        net_drop(w, n);
        loop_answer(w, to, &done);
    } else {
        net_failed(w, n, "remove", a);
    }
}

/* One answer. -EAGAIN: none is there. */
static int
worker_receive(struct warden *w)
{
    struct work_answer a;
    int fds[PACKET_FDS_MAX];
    size_t n_fds = 0;
    long n = packet_recv(w->nets->worker.fd, &a, sizeof(a), fds, &n_fds);
    if (n == -EAGAIN)
        return -EAGAIN;
    if (n != (long)sizeof(a)) {
        /* nobody knows what it did last: a start looks, and makes everything as it should be */
        log_error(ROOM, "the network worker is gone: the warden has to start again", NULL);
        _exit(1);
    }
    w->nets->requested--;
    a.what[sizeof(a.what) - 1] = '\0';
    int fd = n_fds > 0 ? fds[0] : -1;
    worker_answered(w, &a, &fd);
    fd_close(&fd);
    for (size_t i = 1; i < n_fds; i++)
        fd_close(&fds[i]);
    return 0;
}

/* Sends what waits, as far as the worker takes it; its next answer goes on. */
static void
request_waiting(struct warden *w)
{
    struct warden_nets *nets = w->nets;
    for (struct wnet *n; (n = nets->first) != NULL;) {
        bool making = n->state == NET_MAKING;
        int r = net_request_work(w, making ? WORK_MAKE : WORK_REMOVE, &n->rec, making ? n->ns : -1,
                                 &n->seq);
        if (r == -EAGAIN && nets->requested > 0)
            return;
        nets->first = n->next;
        if (nets->first == NULL)
            nets->last = &nets->first;
        fd_close(&n->ns);
        if (r < 0)
            net_failed(w, n, making ? "make" : "remove",
                       &(struct work_answer){.code = r, .what = "ask the network worker"});
    }
}

/* In the order of the requests: what is made may have the ports of what was removed before. */
static void
request_in_turn(struct warden *w, struct wnet *n)
{
    ASSERT(n->state != NET_READY);
    n->next = NULL;
    *w->nets->last = n;
    w->nets->last = &n->next;
    request_waiting(w);
}

static void
worker_event(struct warden *w, struct watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
    (void)worker_receive(w);
    request_waiting(w);
}

static int
worker_start(struct warden *w, struct err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, errno, "make the network worker's socket");
    int size = WORKER_BUFFER;
    (void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
    auto_mem void *ctx = mem_ctx("worker");
    const char *path = mem_printf(ctx, "%s/network.lock", w->policy->run_dir);
    auto_fd int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    pid_t pid = lock < 0 ? -errno : proc_fork(NULL);
    if (pid == 0)
        worker_run(&w->nets->conf, pair[1], lock);
    fd_close(&pair[1]);
    if (pid < 0) {
        fd_close(&pair[0]);
        return err_errno(e, -pid, "make the network worker");
    }
    w->nets->worker = (struct watch){pair[0], worker_event};
    int r = loop_watch(w, &w->nets->worker, EPOLLIN);
    return r < 0 ? err_errno(e, -r, "watch the network worker") : 0;
}

/* --- start --- */

static int
open_records(struct warden *w, struct err *e)
{
    auto_mem void *ctx = mem_ctx("networks");
    const char *path = mem_printf(ctx, "%s/networks", w->policy->data_dir);
    struct stat st;
    int r = dir_make(AT_FDCWD, path, 0700);
    if (r < 0)
        return err_errno(e, -r, "make \"%s\"", path);
    w->nets->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (w->nets->dir < 0)
        return err_errno(e, errno, "open \"%s\"", path);
    if (fstat(w->nets->dir, &st) < 0 || st.st_uid != 0 || (st.st_mode & 077) != 0)
        return err_set(e, -ERR_FORBIDDEN, "\"%s\" must be root's, mode 0700", path);
    return 0;
}

int
net_start(struct warden *w, struct err *e)
{
    struct warden_nets *nets = w->nets = mem_new(w, struct warden_nets);
    const char *what = "";
    nets->dir = nets->home = nets->worker.fd = -1;
    nets->last = &nets->first;
    if (!w->root) {
        fact_no(&w->can.netns, "paddock runs without root");
        w->can.bridge = w->can.netns;
        return 0;
    }
    policy_bridge(w->policy, &nets->conf);
    nets->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (nets->home < 0)
        return err_errno(e, errno, "open /proc/self/ns/net");
    auto_fd int ns = netns_make(nets->home, &what);
    struct work_answer a = {0};
    fact_yes(&w->can.netns);
    fact_yes(&w->can.bridge);
    if (ns < 0)
        fact_no(&w->can.netns, "%s: %s", what, strerror(-ns));
    if (worker_probe(&nets->conf, &a) < 0)
        fact_no(&w->can.bridge, "%s: %s", a.what, strerror(-a.code));
    return open_records(w, e);
}

/* A living task is in the allocation's namespace, if the record knows that namespace. */
static int
ns_of_tasks(struct warden *w, const struct wnet *n)
{
    for (size_t i = 0; i < w->n_tasks; i++) {
        const struct wtask *t = w->tasks[i];
        char path[64];
        if (t->shim.fd < 0 || t->shim_pid <= 0 || !str_eq(t->alloc, n->alloc))
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)t->shim_pid);
        auto_fd int ns = open(path, O_RDONLY | O_CLOEXEC);
        if (ns >= 0 && pidfd_signal(t->shim.fd, 0) == 0 && net_inode(ns) == n->rec.ns_ino)
            return TAKE_FD(ns);
    }
    return -1;
}

static bool
has_directory(struct warden *w, const char *alloc)
{
    struct stat st;
    return fstatat(w->alloc_dir, alloc, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static void
read_records(struct warden *w, DIR *d)
{
    for (struct dirent *de; (de = readdir(d)) != NULL && w->nets->n < WARDEN_NETS_MAX;) {
        struct net_record rec;
        if (de->d_name[0] == '.')
            continue;
        if (proto_check_alloc_id(de->d_name) < 0 || !has_directory(w, de->d_name) ||
            !read_record(w, de->d_name, &rec)) {
            (void)unlinkat(w->nets->dir, de->d_name, 0);
            continue;
        }
        struct wnet *n = net_add(w, de->d_name);
        n->rec = rec;
        n->ns = ns_of_tasks(w, n);
        n->state = n->ns >= 0 ? NET_READY : NET_MAKING;
        if (n->ns < 0 && rec.version == NET_JOINED) /* the agent asks for it before a launch */
            net_drop(w, n);
    }
}

/* Writes the records of all networks, one after the other, into a file for the worker. */
static int
records_memfd(struct warden *w)
{
    auto_fd int fd = memfd_create("networks", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : 0;
    for (size_t i = 0; i < w->nets->n && r == 0; i++) {
        const struct net_record *rec = &w->nets->v[i]->rec;
        if (rec->addr != 0)
            r = fd_write_full(fd, rec, NET_RECORD_BYTES(rec->n_ports));
    }
    return r < 0 ? r : TAKE_FD(fd);
}

static bool
anything_made(const struct warden *w)
{
    for (size_t i = 0; i < w->nets->n; i++)
        if (w->nets->v[i]->state == NET_MAKING)
            return true;
    return false;
}

int
net_recover(struct warden *w, struct err *e)
{
    struct warden_nets *nets = w->nets;
    if (!w->root)
        return 0;
    int fd = openat(nets->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL)
        return err_errno(e, errno, "read the records of networks");
    read_records(w, d);
    closedir(d);
    int r = worker_start(w, e);
    auto_fd int all = r < 0 ? -1 : records_memfd(w);
    if (r == 0)
        r = all < 0 ? all : net_request_work(w, WORK_RESET, NULL, all, NULL);
    /* a missing one is there before the first launch */
    for (size_t i = 0; i < nets->n && r == 0; i++) {
        struct wnet *n = nets->v[i];
        if (n->state != NET_MAKING)
            continue;
        struct pollfd p = {.fd = nets->worker.fd, .events = POLLIN};
        while ((r = net_request_work(w, WORK_MAKE, &n->rec, -1, &n->seq)) == -EAGAIN &&
               poll(&p, 1, NET_WORKER_MS) > 0)
            (void)worker_receive(w);
    }
    while (r == 0 && anything_made(w)) {
        struct pollfd p = {.fd = nets->worker.fd, .events = POLLIN};
        if (poll(&p, 1, NET_WORKER_MS) <= 0)
            r = -ETIMEDOUT;
        else
            (void)worker_receive(w);
    }
    if (r < 0)
        return e->code != 0 ? r : err_errno(e, -r, "restore the networks of allocations");
    request_spares(w);
    return 0;
}

/* --- requests --- */

/* The next address that nobody has, from a place that the allocation's id decides: the same again
 * should everything be lost, and another one's only after long. 0: none is left. */
static uint32_t
net_choose(const struct warden *w, const char *alloc)
{
    const struct warden_nets *nets = w->nets;
    uint32_t hosts = (1u << (32 - nets->conf.bits)) - 3; /* net, gateway, broadcast */
    uint32_t h = 2166136261u;
    for (const char *p = alloc; *p != '\0'; p++)
        h = (h ^ (uint8_t)*p) * 16777619u;
    for (uint32_t i = 0; i < hosts; i++) {
        uint32_t addr = nets->conf.subnet + 2 + (h % hosts + i) % hosts;
        bool taken = false;
        for (size_t k = 0; k < nets->n && !taken; k++)
            taken = nets->v[k]->rec.addr == addr;
        if (!taken)
            return addr;
    }
    return 0;
}

/* Checked by proto_check(). */
static void
net_parse(const struct net_request *q, struct net_record *ret)
{
    *ret = (struct net_record){.magic = NET_MAGIC, .version = NET_VERSION};
    ret->addr = str_eq(q->mode, "bridge"); /* to be chosen */
    for (size_t i = 0; i < q->ports.n && i < NET_PORTS_MAX; i++) {
        const struct net_request_port *p = q->ports.v[i];
        struct in_addr in = {0};
        (void)inet_pton(AF_INET, p->host_ip, &in);
        ret->ports[ret->n_ports++] = (struct net_port){
            .host_ip = ntohl(in.s_addr),
            .port = (uint16_t)p->host_port,
            .to = (uint16_t)(p->to > 0 ? p->to : p->host_port),
        };
    }
}

/* Nobody has any of them: no other allocation, no program of the host, and none is there twice. */
static int
check_ports(struct warden *w, const struct net_record *rec, struct err *e)
{
    for (uint32_t i = 0; i < rec->n_ports; i++) {
        const struct net_port *p = &rec->ports[i];
        for (uint32_t k = 0; k < i; k++)
            if (rec->ports[k].port == p->port && rec->ports[k].host_ip == p->host_ip)
                return err_set(e, -ERR_INVALID, "port %d is mapped twice", p->port);
        for (size_t k = 0; k < w->nets->n; k++) {
            const struct net_record *o = &w->nets->v[k]->rec;
            if (w->nets->v[k]->state == NET_REMOVING) /* the worker has that before this */
                continue;
            for (uint32_t m = 0; m < o->n_ports; m++)
                if (o->ports[m].port == p->port && o->ports[m].host_ip == p->host_ip)
                    return err_set(e, -ERR_CONFLICT,
                                   "port %d of the host leads to allocation \"%s\"", p->port,
                                   w->nets->v[k]->alloc);
        }
        int r = net_check_free(p, e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The code of "no more": whether the end of what is being removed makes room. */
static int
net_full(const struct warden *w)
{
    for (size_t i = 0; i < w->nets->n; i++)
        if (w->nets->v[i]->state == NET_REMOVING)
            return -ERR_BUSY;
    return -ERR_LIMIT;
}

static int
net_authorise(struct warden *w, const struct warden_request *q, struct err *e)
{
    const char *mode = q->network->mode;
    bool bridge = str_eq(mode, "bridge");
    const struct fact *can = bridge && q->network->pid == 0 ? &w->can.bridge : &w->can.netns;
    if (!policy_network(w->policy, mode))
        return err_set(e, -ERR_POLICY, "network mode \"%s\" is not allowed on this client", mode);
    if (!can->ok)
        return err_set(e, -ERR_UNSUPPORTED, "network mode \"%s\" cannot work here: %s", mode,
                       can->why);
    if (!has_directory(w, q->alloc_id))
        return err_set(e, -ERR_NOT_FOUND, "allocation \"%s\" has no directory here", q->alloc_id);
    if (w->nets->n >= WARDEN_NETS_MAX)
        return err_set(e, net_full(w), "%d networks are here already", WARDEN_NETS_MAX);
    return 0;
}

static bool
net_same(const struct net_record *a, const struct net_record *b)
{
    return (a->addr != 0) == (b->addr != 0) && a->n_ports == b->n_ports &&
           memcmp(a->ports, b->ports, a->n_ports * sizeof(a->ports[0])) == 0;
}

/* Answers for a network that is there, or is being made: for an agent that was restarted. */
static int
net_again(struct warden *w, struct wnet *n, struct waiter to, const struct net_record *want,
          struct err *e)
{
    if (!net_same(&n->rec, want))
        return err_set(e, -ERR_CONFLICT, "allocation \"%s\" has another network already", n->alloc);
    if (n->state == NET_REMOVING || n->waiter.conn == to.conn)
        return err_set(e, -ERR_BUSY, "the network of allocation \"%s\" is being %s", n->alloc,
                       n->state == NET_REMOVING ? "removed" : "made");
    n->waiter = to;
    if (n->state == NET_READY)
        net_answer(w, n);
    return 0;
}

static int
make_new(struct warden *w, const struct warden_request *q, struct waiter to,
         const struct net_record *want, struct err *e)
{
    struct warden_nets *nets = w->nets;
    int r = net_authorise(w, q, e);
    if (r == 0)
        r = check_ports(w, want, e);
    uint32_t addr = r == 0 && want->addr != 0 ? net_choose(w, q->alloc_id) : 0;
    if (r == 0 && want->addr != 0 && addr == 0)
        r = err_set(e, net_full(w), "no address of the bridge network is left");
    if (r < 0)
        return r;
    struct wnet *n = net_add(w, q->alloc_id);
    n->waiter = to;
    n->rec = *want;
    n->rec.addr = addr;
    n->ns = nets->n_spares > 0 ? nets->spares[--nets->n_spares] : -1;
    if (n->ns >= 0)
        n->rec.ns_ino = net_inode(n->ns);
    net_refill(w);
    r = write_record(w, n);
    if (r < 0) {
        net_drop(w, n);
        return err_errno(e, -r, "write the record of the network of allocation \"%s\"",
                         q->alloc_id);
    }
    if (n->ns >= 0 && addr == 0)
        net_made(w, n, &n->ns);
    else
        request_in_turn(w, n);
    return 0;
}

/* The namespace of the allocation's container. After another container has taken its place, tasks
 * that run stay in the old namespace. */
static int
net_join(struct warden *w, const struct warden_request *q, struct waiter to, struct err *e)
{
    struct wnet *n = net_find(w, q->alloc_id);
    int r = n != NULL ? 0 : net_authorise(w, q, e);
    if (n != NULL && n->rec.version != NET_JOINED)
        return err_set(e, -ERR_CONFLICT, "allocation \"%s\" has another network already", n->alloc);
    auto_fd int ns = r < 0 ? -1 : net_check_container(w, q->alloc_id, q->network->pid, e);
    if (ns < 0)
        return e->code;
    for (size_t i = 0; i < w->nets->n; i++)
        if (w->nets->v[i] != n && w->nets->v[i]->rec.ns_ino == net_inode(ns))
            return err_set(e, -ERR_POLICY, "that network is of allocation \"%s\"",
                           w->nets->v[i]->alloc);
    n = n != NULL ? n : net_add(w, q->alloc_id);
    n->rec.version = NET_JOINED;
    n->waiter = to;
    fd_close(&n->ns);
    net_made(w, n, &ns);
    return 0;
}

void
net_make(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    struct net_record want;
    net_parse(q->network, &want);
    struct wnet *n = net_find(w, q->alloc_id);
    int r = q->network->pid > 0 ? net_join(w, q, to, &e)
            : n != NULL         ? net_again(w, n, to, &want, &e)
                                : make_new(w, q, to, &want, &e);
    if (r < 0)
        loop_refuse(w, to, &e);
}

/* Removes a network whose last process is gone. `to` (conn 0: nobody) hears when everything of it
 * is. */
static int
remove_net(struct warden *w, struct wnet *n, struct waiter to, struct err *e)
{
    struct answer done = {0};
    if (n->state != NET_READY)
        return err_set(e, -ERR_BUSY, "the network of allocation \"%s\" is being %s", n->alloc,
                       n->state == NET_MAKING ? "made" : "removed");
    if (n->rec.addr == 0) {
        net_drop(w, n);
        loop_answer(w, to, &done);
        return 0;
    }
    n->state = NET_REMOVING;
    n->waiter = to;
    request_in_turn(w, n);
    return 0;
}

/* Whether it has ended may be known to the agent before it is to us: a shim's end has its own
 * event. */
static bool
net_lives(const struct warden *w, const char *alloc)
{
    for (size_t i = 0; i < w->n_tasks; i++) {
        const struct wtask *t = w->tasks[i];
        struct pollfd p = {.fd = t->shim.fd, .events = POLLIN};
        if (str_eq(t->alloc, alloc) && !task_ended(t) && (p.fd < 0 || poll(&p, 1, 0) != 1))
            return true;
    }
    return false;
}

void
net_remove(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    struct answer done = {0};
    struct wnet *n = w->root ? net_find(w, q->alloc_id) : NULL;
    if (n == NULL)
        loop_answer(w, to, &done);
    else if (net_lives(w, q->alloc_id))
        err_set(&e, -ERR_BUSY, "a task of allocation \"%s\" still runs", q->alloc_id);
    else
        (void)remove_net(w, n, to, &e);
    if (e.code != 0)
        loop_refuse(w, to, &e);
}

int
net_forget(struct warden *w, const char *alloc, struct err *e)
{
    struct wnet *n = w->root ? net_find(w, alloc) : NULL;
    return n == NULL || n->state == NET_REMOVING ? 0
                                                 : remove_net(w, n, (struct waiter){0}, e);
}

int
net_of(struct warden *w, const char *alloc, struct err *e)
{
    const struct wnet *n = w->root ? net_find(w, alloc) : NULL;
    if (n == NULL || n->state != NET_READY || n->ns < 0)
        return err_set(e, -ERR_NOT_FOUND, "allocation \"%s\" has no network: it was not made",
                       alloc);
    return n->ns;
}

const char *
net_bridge(const struct warden *w)
{
    return w->root ? w->nets->conf.bridge : NULL;
}

void
net_clear(struct warden *w)
{
    if (!w->root || w->nets->worker.fd < 0 || (w->nets->n > 0 && !w->stop_tasks))
        return;
    struct pollfd p = {.fd = w->nets->worker.fd, .events = POLLIN};
    uint32_t seq;
    int r;
    while ((r = net_request_work(w, WORK_CLEAR, NULL, -1, &seq)) == -EAGAIN &&
           poll(&p, 1, NET_WORKER_MS) > 0)
        (void)worker_receive(w);
    for (struct work_answer a = {0}; r == 0 && a.op != WORK_CLEAR;) {
        if (poll(&p, 1, NET_WORKER_MS) <= 0 || read(p.fd, &a, sizeof(a)) != (ssize_t)sizeof(a))
            return;
    }
    while (r == 0 && w->nets->n > 0)
        net_drop(w, w->nets->v[0]);
}
