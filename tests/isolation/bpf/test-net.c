/* SPDX-License-Identifier: Apache-2.0
 *
 * Network accounting and policy, with real sockets of real tasks.
 * Each case on the network has a namespace of its own, whose loopback it alone uses.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/bpf/net.h"
#include "isolation/bpf/read.h"
#include "isolation/bpf/sys.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/launch/policy.h"
#include "isolation/launch/record.h"
#include "isolation/limits.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

struct lo {
    unsigned long long bytes, packets;
};

/* Returns the packets and bytes that lo has carried. */
static struct lo
lo_count(void)
{
    auto_mem void *ctx = mem_ctx("lo");
    char *text = NULL;
    struct lo r;
    ck_assert_int_eq(file_read(ctx, AT_FDCWD, "/proc/self/net/dev", 65536, &text, NULL), 0);
    const char *at = strstr(text, "lo:");
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(at, "lo: %llu %llu", &r.bytes, &r.packets), 2);
    return r;
}

static void
open_counters(struct rig *r, struct bpf_read *ret)
{
    struct got g = {0};
    warden_info(r->client, rig_got, &g);
    rig_wait(r, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    ck_assert_int_ge(g.counters, 0);
    ck_assert_int_eq(bpf_read_open(ret, g.counters), 0);
    got_free(&g);
}

static const char *
lines(struct rig *r, struct launch_spec *s)
{
    struct got g, d = {0};
    rig_launch(r, s, &g);
    struct task_record *t = rig_end(r, &g);
    char *err = rig_file(r, rig_id, mem_printf(r->ctx, "alloc/logs/%s.stderr.0", s->task_name));
    ck_assert_msg(t->exit_code == 0 && t->signal == 0, "exit code %d: %s", (int)t->exit_code, err);
    got_free(&g);
    warden_destroy(r->client, rig_id, s->task_name, rig_got, &d);
    rig_wait(r, &d);
    got_free(&d);
    return rig_file(r, rig_id, mem_printf(r->ctx, "alloc/logs/%s.stdout.0", s->task_name));
}

/* Sends 32 MiB by TCP and 1,000 datagrams to a process outside. */
static const char sender[] =
    "import socket,sys\n"
    "s=socket.create_connection(('127.0.0.1',7001))\n"
    "b=b'x'*65536\n"
    "for i in range(512): s.sendall(b)\n"
    "s.shutdown(socket.SHUT_WR)\n"
    "s.recv(1)\n"
    "u=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM)\n"
    "for i in range(1000): u.sendto(b'y'*1000,('::1',7002))\n"
    "print('sent',flush=True)\n"
    "sys.stdin.read()\n"
    "import time\n"
    "time.sleep(1000)\n";

/* A process outside of any task, in our network; it says "up" when it listens, and dies with us. */
static pid_t
outside(const char *code)
{
    int p[2];
    char text[1];
    pid_t parent = getpid();
    ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(p[1], 1);
        if (getppid() == parent)
            execlp("python3", "python3", "-c", code, (char *)NULL);
        _exit(1);
    }
    close(p[1]);
    ck_assert_int_eq(read(p[0], text, 1), 1);
    close(p[0]);
    return pid;
}

static const char sink[] = "import socket,os\n"
                           "u=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM)\n"
                           "u.bind(('::1',7002))\n"
                           "l=socket.create_server(('127.0.0.1',7001))\n"
                           "os.write(1,b'u')\n"
                           "c,_=l.accept()\n"
                           "while c.recv(1<<20): pass\n"
                           "c.close()\n"
                           "while True: u.recv(2000)\n";

static const char listeners[] =
    "import socket,os,time\n"
    "L=[socket.create_server((a,p)) for a in ('127.0.0.1','127.0.0.2') for p in (7001,7003)]\n"
    "L.append(socket.create_server(('::1',7001),family=socket.AF_INET6))\n"
    "os.write(1,b'u')\n"
    "time.sleep(1000)\n";

START_TEST(counts_what_the_interface_counts)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    rig_own_network();
    struct rig r;
    struct bpf_read read = {0};
    rig_start(&r, 0);
    if (rig_has(&r, "bpf_net")) {
        pid_t peer = outside(sink);
        struct lo before = lo_count();
        struct got g;
        rig_alloc(&r, rig_id, "web", "exec");
        rig_launch(&r, rig_python(&r, "web", true, sender), &g);
        ck_assert_msg(g.err.code == 0, "%s", g.err.text);
        rig_await(&r, "web", "sent");
        struct lo after = lo_count();
        struct bpf_net_counts c = {0}, again;
        size_t hint = 0;
        open_counters(&r, &read);
        ck_assert(bpf_read_net(&read, rig_leaf(&g), &hint, &c));
        /* on lo both directions of the task are all there is */
        rig_near(c.tx_bytes + c.rx_bytes, after.bytes - before.bytes, "bytes");
        rig_near(c.tx_packets + c.rx_packets, after.packets - before.packets, "packets");
        ck_assert_uint_ge(c.tx_bytes, (32 << 20) + 1000 * 1048);
        ck_assert_uint_gt(c.rx_bytes, 0);
        ck_assert_uint_lt(c.rx_bytes, c.tx_bytes);
        /* a new warden goes on counting where the old one was */
        rig_kill(&r, SIGKILL);
        ck_assert_int_eq(warden_client_ready(r.client), -ERR_CLOSED);
        rig_spawn(&r);
        rig_connect(&r);
        open_counters(&r, &read);
        ck_assert(bpf_read_net(&read, rig_leaf(&g), &hint, &again));
        ck_assert_uint_eq(again.tx_bytes, c.tx_bytes);
        ck_assert_uint_eq(again.rx_packets, c.rx_packets);
        uint64_t id = rig_leaf(&g);
        struct got d = {0};
        warden_destroy(r.client, rig_id, "web", rig_got, &d);
        rig_wait(&r, &d);
        got_free(&d);
        ck_assert_msg(!bpf_read_net(&read, id, &hint, &c), "counted after its end");
        got_free(&g);
        kill(peer, SIGKILL);
    }
    bpf_read_close(&read);
    rig_stop(&r);
}
END_TEST

/* Prints a line per attempt: its name and "ok" or the error. */
static const char attempts[] =
    "import socket,errno,struct\n"
    "S=socket\n"
    "def t(n,f):\n"
    "  try: f(); print(n,'ok')\n"
    "  except OSError as e: print(n,errno.errorcode.get(e.errno,e.errno))\n"
    "def tcp(a,p,fam=S.AF_INET,proto=0):\n"
    "  s=S.socket(fam,S.SOCK_STREAM,proto); s.settimeout(3); s.connect((a,p)); s.close()\n"
    "def udp(a,p,fam=S.AF_INET):\n"
    "  S.socket(fam,S.SOCK_DGRAM).sendto(b'x',(a,p))\n"
    "def udpc(a,p,fam=S.AF_INET):\n"
    "  s=S.socket(fam,S.SOCK_DGRAM); s.connect((a,p)); s.send(b'x')\n"
    "def bind(a,p,fam=S.AF_INET,ty=S.SOCK_STREAM):\n"
    "  S.socket(fam,ty).bind((a,p))\n"
    "t('tcp-allowed',lambda:tcp('127.0.0.1',7001))\n"
    "t('tcp-port',lambda:tcp('127.0.0.1',7003))\n"
    "t('tcp-addr',lambda:tcp('127.0.0.2',7001))\n"
    "t('tcp-mapped',lambda:tcp('::ffff:127.0.0.2',7001,S.AF_INET6))\n"
    "t('tcp-mapped-allowed',lambda:tcp('::ffff:127.0.0.1',7001,S.AF_INET6))\n"
    "t('tcp6',lambda:tcp('::1',7001,S.AF_INET6))\n"
    "t('mptcp',lambda:tcp('127.0.0.2',7001,proto=262))\n"
    "t('udp-allowed',lambda:udp('127.0.0.1',7002))\n"
    "t('udp-port',lambda:udp('127.0.0.1',7001))\n"
    "t('udp-connected',lambda:udpc('127.0.0.2',7002))\n"
    "t('udp-mapped',lambda:udp('::ffff:127.0.0.2',7002,S.AF_INET6))\n"
    "t('udp6',lambda:udp('::1',7002,S.AF_INET6))\n"
    "t('bind-allowed',lambda:bind('127.0.0.1',8001))\n"
    "t('bind-port',lambda:bind('127.0.0.1',8002))\n"
    "t('bind6',lambda:bind('::1',8001,S.AF_INET6))\n"
    "t('bind-mapped',lambda:bind('::ffff:127.0.0.1',8002,S.AF_INET6))\n"
    "t('bind-any',lambda:bind('0.0.0.0',8001))\n"
    "t('bind-udp',lambda:bind('127.0.0.1',8002,ty=S.SOCK_DGRAM))\n"
    "t('bind-0',lambda:bind('127.0.0.1',0))\n";

static struct net_policy *
rules(struct rig *r, const char *const *allow, size_t n)
{
    struct net_policy *p = mem_new(r->ctx, struct net_policy);
    for (size_t i = 0; i < n; i++)
        list_add(p, p->allow, allow[i]);
    return p;
}
#define RULES(r, ...)                                   \
    rules((r), (const char *const[]){__VA_ARGS__},      \
          sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void
expect_lines(const char *out, const char *want)
{
    ck_assert_msg(strcmp(out, want) == 0, "expected\n%s\ngot\n%s", want, out);
}

/* The log goes on where the task before ended. */
static void
expect_end(const char *out, const char *want)
{
    ck_assert_msg(str_suffix(out, want), "expected at the end\n%s\ngot\n%s", want, out);
}

START_TEST(enforces_a_policy)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    rig_own_network();
    struct rig r;
    rig_start(&r, 0);
    if (rig_has(&r, "bpf_net")) {
        pid_t peer = outside(listeners);
        rig_alloc(&r, rig_id, "web", "exec");
        struct launch_spec *s = rig_python(&r, "web", true, attempts);
        s->egress = RULES(&r, "127.0.0.1:7001/tcp", "127.0.0.1:7002/udp");
        s->bind = RULES(&r, "127.0.0.1:8001");
        expect_lines(lines(&r, s), "tcp-allowed ok\n"
                                   "tcp-port EPERM\n"
                                   "tcp-addr EPERM\n"
                                   "tcp-mapped EPERM\n"
                                   "tcp-mapped-allowed ok\n"
                                   "tcp6 EPERM\n"
                                   "mptcp EPERM\n"
                                   "udp-allowed ok\n"
                                   "udp-port EPERM\n"
                                   "udp-connected EPERM\n"
                                   "udp-mapped EPERM\n"
                                   "udp6 EPERM\n"
                                   "bind-allowed ok\n"
                                   "bind-port EPERM\n"
                                   "bind6 EPERM\n"
                                   "bind-mapped EPERM\n"
                                   "bind-any EPERM\n"
                                   "bind-udp EPERM\n"
                                   "bind-0 ok\n");
        kill(peer, SIGKILL);
    }
    rig_stop(&r);
}
END_TEST

/* With another policy of the operator. */
static void
restart(struct rig *r)
{
    struct err e = ERR_INIT;
    ck_assert_msg(policy_compile(&r->policy, r->policy_path, &e) == 0, "%s", e.text);
    rig_kill(r, SIGKILL);
    ck_assert_int_eq(warden_client_ready(r->client), -ERR_CLOSED);
    rig_spawn(r);
    rig_connect(r);
}

/* Sockets that no address hook sees: only the packet hook stands in their way. */
static const char raw_attempts[] =
    "import socket,errno,struct\n"
    "S=socket\n"
    "def t(n,f):\n"
    "  try: f(); print(n,'ok')\n"
    "  except OSError as e: print(n,errno.errorcode.get(e.errno,e.errno))\n"
    "def raw(a,proto,data,fam=S.AF_INET):\n"
    "  S.socket(fam,S.SOCK_RAW,proto).sendto(data,(a,0))\n"
    "syn=struct.pack('!HHIIBBHHH',9,7001,1,0,0x50,2,100,0,0)\n"
    "ack=struct.pack('!HHIIBBHHH',9,7001,1,0,0x50,16,100,0,0)\n"
    "t('icmp',lambda:raw('127.0.0.1',1,b'\\x08\\x00'+bytes(6)))\n"
    "t('icmp6',lambda:raw('::1',58,b'\\x80\\x00'+bytes(6),S.AF_INET6))\n"
    "t('syn-denied',lambda:raw('127.0.0.2',6,syn))\n"
    "t('ack-denied',lambda:raw('127.0.0.2',6,ack))\n"
    "t('syn-allowed',lambda:raw('127.0.0.1',6,syn))\n"
    "t('own-header',lambda:raw('127.0.0.2',255,struct.pack('!BBHHHBBH4s4s',0x45,0,0,0,0,64,17,0,"
    "S.inet_aton('127.0.0.1'),S.inet_aton('127.0.0.2'))+struct.pack('!HHHH',9,7001,8,0)))\n"
    "t('fragment',lambda:raw('127.0.0.1',255,struct.pack('!BBHHHBBH4s4s',0x45,0,0,0,9,64,6,0,"
    "S.inet_aton('127.0.0.1'),S.inet_aton('127.0.0.1'))+syn))\n"
    "t('packet',lambda:S.socket(S.AF_PACKET,S.SOCK_RAW,0))\n";

/* Ports that are not to be seen, and a protocol that binds by itself. */
static const char raw_others[] =
    "import socket,errno\n"
    "S=socket\n"
    "def t(n,a,proto,data,fam):\n"
    "  try: S.socket(fam,S.SOCK_RAW,proto).sendto(data,(a,0)); print(n,'ok')\n"
    "  except OSError as e: print(n,errno.errorcode.get(e.errno,e.errno))\n"
    "t('icmp6','::1',58,b'\\x80\\x00'+bytes(6),S.AF_INET6)\n"
    "t('fragment6','::1',44,b'\\x06\\x00'+bytes(6)+bytes(20),S.AF_INET6)\n"
    "t('sctp','127.0.0.1',132,bytes(12),S.AF_INET)\n";

START_TEST(raw_sockets_do_not_lead_around)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    rig_own_network();
    struct rig r;
    rig_start(&r, 0);
    if (rig_has(&r, "bpf_net")) {
        static const char *caps[] = {"net_raw"};
        r.policy.allowed_caps = (struct str_list){caps, 1};
        restart(&r);
        rig_alloc(&r, rig_id, "web", "exec");
        struct launch_spec *s = rig_python(&r, "web", true, raw_attempts);
        s->egress = RULES(&r, "127.0.0.1:7001/tcp");
        list_add(s, s->cap_add, "net_raw");
        expect_lines(lines(&r, s), "icmp EPERM\n"
                                   "icmp6 EPERM\n"
                                   "syn-denied EPERM\n"
                                   "ack-denied EPERM\n"
                                   "syn-allowed ok\n"
                                   "own-header EPERM\n"
                                   "fragment EPERM\n"
                                   "packet EPERM\n");
        s = rig_python(&r, "web", true, raw_others);
        list_add(s, s->cap_add, "net_raw");
        s->egress = mem_new(s, struct net_policy);
        list_add(s->egress, s->egress->deny, "[::1]:7001");
        expect_end(lines(&r, s), "icmp6 ok\nfragment6 EPERM\nsctp ok\n");
        s = rig_python(&r, "web", true, raw_others);
        list_add(s, s->cap_add, "net_raw");
        s->bind = RULES(&r, "127.0.0.1:8001");
        expect_end(lines(&r, s), "icmp6 ok\nfragment6 EPERM\nsctp EPERM\n");
    }
    rig_stop(&r);
}
END_TEST

/* A connection to who is allowed, whose packets then have the destination that a routing header says: two
 * segments, of which the second is next. It takes no capability. */
static const char source_route[] =
    "import socket,struct,time\n"
    "s=socket.create_connection(('::1',7001))\n"
    "s.send(b'x')\n"
    "h=struct.pack('!BBBBBBH',0,4,4,1,1,0,0)+bytes(16)+socket.inet_pton(socket.AF_INET6,'::1')\n"
    "s.setsockopt(41,57,h)\n" /* IPV6_RTHDR */
    "s.send(b'x')\n"
    "print('sent',flush=True)\n"
    "time.sleep(1000)\n";

START_TEST(source_routes_do_not_lead_around)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    rig_own_network();
    struct rig r;
    struct bpf_read read = {0};
    rig_start(&r, 0);
    if (rig_has(&r, "bpf_net")) {
        pid_t peer = outside(listeners);
        struct got g;
        rig_alloc(&r, rig_id, "web", "exec");
        struct launch_spec *s = rig_python(&r, "web", true, source_route);
        s->egress = RULES(&r, "[::1]:7001/tcp");
        rig_launch(&r, s, &g);
        ck_assert_msg(g.err.code == 0, "%s", g.err.text);
        rig_await(&r, "web", "sent");
        struct bpf_net_counts c = {0};
        size_t hint = 0;
        open_counters(&r, &read);
        ck_assert(bpf_read_net(&read, rig_leaf(&g), &hint, &c));
        ck_assert_uint_gt(c.tx_denied, 0);
        got_free(&g);
        kill(peer, SIGKILL);
    }
    bpf_read_close(&read);
    rig_stop(&r);
}
END_TEST

/* Tries what it may not whenever somebody calls. */
static const char tries[] =
    "import socket\n"
    "l=socket.create_server(('127.0.0.1',7005))\n"
    "print('up',flush=True)\n"
    "for i in range(9):\n"
    "  l.accept()[0].close()\n"
    "  try: socket.create_connection(('127.0.0.2',7001),2); print('open',i,flush=True)\n"
    "  except PermissionError: print('denied',i,flush=True)\n"
    "  except OSError: print('open',i,flush=True)\n";

static void
call_it(void)
{
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(7005)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (void *)&a, sizeof(a)), 0);
}

/* The agent has the counters' map and can write to it; anybody can lock the cgroup's directory. */
START_TEST(others_do_not_undo_a_policy)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    rig_own_network();
    struct rig r;
    rig_start(&r, 0);
    if (rig_has(&r, "bpf_net")) {
        auto_fd int held = open(r.policy.cgroup_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ck_assert_int_eq(flock(held, LOCK_EX), 0);
        struct got g, i = {0};
        rig_alloc(&r, rig_id, "web", "raw_exec");
        struct launch_spec *s = rig_python(&r, "web", false, tries);
        s->egress = RULES(&r, "192.0.2.0/24");
        rig_launch(&r, s, &g);
        ck_assert_msg(g.err.code == 0, "%s", g.err.text);
        rig_await(&r, "web", "up");
        call_it();
        rig_await(&r, "web", "denied 0");
        warden_info(r.client, rig_got, &i);
        rig_wait(&r, &i);
        struct bpf_net_header *h =
            mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE, MAP_SHARED, i.counters, 0);
        ck_assert_ptr_ne(h, MAP_FAILED);
        memset(h, 0, sizeof(*h));
        h->shards = UINT64_MAX;
        rig_kill(&r, SIGKILL);
        ck_assert_int_eq(warden_client_ready(r.client), -ERR_CLOSED);
        rig_spawn(&r);
        rig_connect(&r);
        call_it();
        rig_await(&r, "web", "denied 1");
        ck_assert_uint_eq(h->magic, BPF_NET_MAGIC);
        ck_assert_uint_le(h->shards, BPF_SHARDS_MAX);
        (void)munmap(h, sizeof(*h));
        got_free(&i);
        got_free(&g);
    }
    rig_stop(&r);
}
END_TEST

/* A server answers a peer that its egress rules do not name; a datagram to it is egress. */
static const char server[] = "import socket,os\n"
                             "l=socket.create_server(('127.0.0.1',7005))\n"
                             "print('up',flush=True)\n"
                             "c,_=l.accept()\n"
                             "c.sendall(b'z'*300000)\n"
                             "c.shutdown(socket.SHUT_WR)\n"
                             "c.recv(1)\n"
                             "u=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
                             "try: u.sendto(b'x',('127.0.0.1',9))\n"
                             "except PermissionError: print('denied',flush=True)\n";

START_TEST(answers_are_not_egress)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    rig_own_network();
    struct rig r;
    rig_start(&r, 0);
    if (rig_has(&r, "bpf_net")) {
        struct got g;
        static char buf[4096];
        rig_alloc(&r, rig_id, "web", "raw_exec");
        struct launch_spec *s = rig_python(&r, "web", false, server);
        s->egress = RULES(&r, "192.0.2.0/24");
        rig_launch(&r, s, &g);
        rig_await(&r, "web", "up");
        rig_kill(&r, SIGKILL); /* nobody is needed for rules to hold */
        auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(7005)};
        a.sin_addr.s_addr = htonl(0x7f000001);
        ck_assert_int_eq(connect(fd, (void *)&a, sizeof(a)), 0);
        ssize_t n, sum = 0;
        while ((n = read(fd, buf, sizeof(buf))) > 0)
            sum += n;
        ck_assert_int_eq(sum, 300000);
        fd_close(&fd);
        rig_await(&r, "web", "denied");
        got_free(&g);
        ck_assert_int_eq(warden_client_ready(r.client), -ERR_CLOSED);
        rig_spawn(&r);
        rig_connect(&r);
    }
    rig_stop(&r);
}
END_TEST

static const char bounds[] =
    "import socket,errno,sys\n"
    "def t(a,p):\n"
    "  try: socket.create_connection((a,p),2); print(a,p,'ok',flush=True)\n"
    "  except OSError as e: print(a,p,errno.errorcode.get(e.errno,e.errno),flush=True)\n"
    "t('127.0.0.1',7001)\n"
    "t('127.0.0.2',7001)\n"
    "t('169.254.169.254',80)\n"
    "t('fd00:ec2::254',80)\n"
    "t('64:ff9b::a9fe:a9fe',80)\n";

START_TEST(the_operator_bounds)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    rig_own_network();
    struct rig r;
    rig_start(&r, 0);
    if (rig_has(&r, "bpf_net")) {
        pid_t peer = outside(listeners);
        rig_alloc(&r, rig_id, "web", "exec");
        /* by default only metadata services are out of reach; what has no route says so */
        expect_lines(lines(&r, rig_python(&r, "web", true, bounds)), "127.0.0.1 7001 ok\n"
                                                                 "127.0.0.2 7001 ok\n"
                                                                 "169.254.169.254 80 EPERM\n"
                                                                 "fd00:ec2::254 80 EPERM\n"
                                                                 "64:ff9b::a9fe:a9fe 80 EPERM\n");
        r.policy.metadata = true;
        r.policy.egress = RULES(&r, "127.0.0.0/8", "169.254.0.0/16");
        list_add(r.ctx, r.policy.egress->deny, "127.0.0.2");
        restart(&r);
        rig_alloc(&r, rig_id, "two", "exec");
        struct launch_spec *s = rig_python(&r, "two", true, bounds);
        s->egress = RULES(&r, "*"); /* widens nothing */
        expect_lines(lines(&r, s), "127.0.0.1 7001 ok\n"
                                   "127.0.0.2 7001 EPERM\n"
                                   "169.254.169.254 80 ENETUNREACH\n"
                                   "fd00:ec2::254 80 EPERM\n"
                                   "64:ff9b::a9fe:a9fe 80 EPERM\n");
        kill(peer, SIGKILL);
    }
    rig_stop(&r);
}
END_TEST

static int
try_open(const char *path)
{
    auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? errno : 0;
}

/* nodev keeps tasks from a node anyway: a process of the host, moved into the task's cgroup, meets the
 * filter alone. */
START_TEST(devices_are_filtered)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    rig_start(&r, 0);
    if (rig_has(&r, "bpf_net")) {
        struct got g;
        rig_alloc(&r, rig_id, "web", "exec");
        rig_launch(&r, rig_spec(&r, rig_id, "web", true, "sleep 1000"), &g);
        ck_assert_msg(g.err.code == 0, "%s", g.err.text);
        char *node = mem_printf(r.ctx, "%s/mem", r.dir);
        ck_assert_int_eq(mknod(node, S_IFCHR | 0600, makedev(1, 11)), 0); /* kmsg */
        pid_t pid = fork();
        if (pid == 0) {
            bool before = try_open(node) == 0;
            if (file_put(g.cgroup, "cgroup.procs", "0") < 0)
                _exit(2);
            bool good = before && try_open(node) == EPERM && try_open("/dev/null") == 0 &&
                        try_open("/dev/urandom") == 0 &&
                        mknod(mem_printf(r.ctx, "%s/x", r.dir), S_IFCHR | 0600, makedev(1, 3)) < 0;
            _exit(good ? 0 : 1);
        }
        int status;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        got_free(&g);
    }
    rig_stop(&r);
}
END_TEST

/* Two that do not exist say so, unless the filter speaks first. */
static void
expect_given(struct rig *r, const char *task, const char *path, bool given)
{
    struct got g, d = {0};
    rig_alloc(r, rig_id, task, "exec");
    struct launch_spec *s = rig_spec(r, rig_id, task, true, "sleep 1000");
    if (given)
        list_add(s, s->devices, path);
    rig_launch(r, s, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    pid_t pid = fork();
    if (pid == 0) {
        const struct {
            const char *name;
            mode_t type;
            dev_t number;
        } others[] = {{"other", S_IFCHR, makedev(1, 77)}, {"block", S_IFBLK, makedev(1, 11)}};
        const char *copy = mem_printf(r->ctx, "%s/kmsg-%s", r->dir, task);
        bool good = mknod(copy, S_IFCHR | 0600, makedev(1, 11)) == 0 && try_open(copy) == 0;
        for (size_t i = 0; i < ARRAY_LEN(others); i++) {
            const char *x = mem_printf(r->ctx, "%s/%s-%s", r->dir, others[i].name, task);
            good = good && mknod(x, others[i].type | 0600, others[i].number) == 0 &&
                   try_open(x) != EPERM;
        }
        if (file_put(g.cgroup, "cgroup.procs", "0") < 0)
            _exit(2);
        good = good && try_open(copy) == (given ? 0 : EPERM) && try_open("/dev/null") == 0;
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
            good = good &&
                   try_open(mem_printf(r->ctx, "%s/%s-%s", r->dir, others[i].name, task)) == EPERM;
        good = good && mknod(mem_printf(r->ctx, "%s/m-%s", r->dir, task), S_IFCHR | 0600,
                             makedev(1, 11)) < 0;
        _exit(good ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0, "%s: %d", task, status);
    got_free(&g);
    warden_destroy(r->client, rig_id, task, rig_got, &d);
    rig_wait(r, &d);
    got_free(&d);
}

/* A task may open the device that it is given and no other, nor may a neighbour; nothing is left. */
START_TEST(a_device_that_is_given_is_the_only_one)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    rig_start(&r, 0);
    if (rig_has(&r, "bpf_net")) {
        const char *path = mem_printf(r.ctx, "/dev/paddock-test-%d", (int)getpid());
        ck_assert_int_eq(mknod(path, S_IFCHR | 0600, makedev(1, 11)), 0);
        list_add(r.ctx, r.policy.device_paths, path);
        restart(&r);
        expect_given(&r, "has", path, true);
        expect_given(&r, "not", path, false);
        expect_given(&r, "again", path, true);
        ck_assert_int_eq(unlink(path), 0);
    }
    rig_stop(&r);
}
END_TEST

/* Makes the warden's calls fail as they do where the kernel or a container refuses. */
static void
refuse_bpf(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {ARRAY_LEN(code), code};
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

static void
refused(struct rig *r, const struct launch_spec *s)
{
    struct got g = {0};
    warden_launch(r->client, s, rig_got, &g);
    rig_wait(r, &g);
    ck_assert_msg(g.err.code == -ERR_UNSUPPORTED && strstr(g.err.text, "cannot be enforced") != NULL,
                  "%d %s", g.err.code, g.err.text);
    got_free(&g);
}

START_TEST(without_bpf_numbers_are_absent_and_policies_refused)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g = {0};
    refuse_bpf();
    rig_start(&r, 0);
    ck_assert_ptr_nonnull(strstr(rig_fact(&r, "bpf_net"), err_name(-EPERM)));
    warden_info(r.client, rig_got, &g);
    rig_wait(&r, &g);
    ck_assert_int_lt(g.counters, 0);
    got_free(&g);
    rig_alloc(&r, rig_id, "web", "exec");
    expect_lines(lines(&r, rig_spec(&r, rig_id, "web", true, "echo runs")), "runs\n");
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, "echo runs");
    s->egress = RULES(&r, "127.0.0.1");
    refused(&r, s);
    s->egress = NULL;
    s->bind = RULES(&r, "127.0.0.1");
    refused(&r, s);
    r.policy.egress = RULES(&r, "127.0.0.1");
    restart(&r);
    refused(&r, rig_spec(&r, rig_id, "web", true, "echo runs"));
    rig_stop(&r);
}
END_TEST

/* Rules outlive their tasks: those of the gone make room for others, those of the living stay. */
START_TEST(rules_of_the_gone_make_room)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    enum { SET = 256, SETS = BPF_RULES_MAX / SET + 8 };
    auto_mem void *ctx = mem_ctx("rules");
    struct netrules_entry *v = mem_array(ctx, struct netrules_entry, SET);
    struct netrules set = {v, SET};
    struct cgroup_info info;
    struct err e = ERR_INIT;
    ck_assert_int_eq(cgroup_find(ctx, &info, &e), 0);
    const char *dir = mem_printf(ctx, "%s/paddock-rules-%d", info.mount, (int)getpid());
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    auto_fd int cgroup = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct bpf_net b;
    ck_assert_msg(bpf_net_open(&b, cgroup, &e) == 0, "%s", e.text);
    for (int i = 0; i < SETS; i++) {
        for (int k = 1; k < SET; k++)
            v[k] = (struct netrules_entry){
                .bits = 32, .addr = {(uint8_t)(i >> 8), (uint8_t)i, 0, (uint8_t)k}};
        int r = bpf_net_add(&b, (uint64_t)i + 1, &set, NULL, NULL, &e);
        ck_assert_msg(r == 0, "set %d of %d: %s", i, SETS, e.text);
        if (i > 0) /* the first stays */
            bpf_net_remove(&b, (uint64_t)i + 1);
    }
    struct bpf_leaf first;
    uint64_t id = 1;
    ck_assert_int_eq(bpf_map_get(b.leaf, &id, &first), 0);
    struct bpf_rule rule;
    for (int k = 1; k < SET; k++) {
        struct bpf_rule_key key = {.prefixlen = BPF_RULE_FIXED_BITS + 32, .id = first.rules};
        key.addr[3] = (uint8_t)k;
        ck_assert_int_eq(bpf_map_get(b.rules, &key, &rule), 0);
    }
    bpf_net_close(&b);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

TEST_SUITE_TIMEOUT("net", 60, counts_what_the_interface_counts, enforces_a_policy,
                   raw_sockets_do_not_lead_around, source_routes_do_not_lead_around,
                   others_do_not_undo_a_policy, answers_are_not_egress, the_operator_bounds,
                   devices_are_filtered, a_device_that_is_given_is_the_only_one,
                   without_bpf_numbers_are_absent_and_policies_refused, rules_of_the_gone_make_room)
