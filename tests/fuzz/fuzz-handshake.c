/* SPDX-License-Identifier: Apache-2.0
 *
 * The first words of a server to another one, over a real socket. By its first byte the input is what
 * comes behind the protocol byte, or the body of a frame behind a right length and checksum, or changes
 * to the hello of a server that is welcome: pairs of a place and a byte. Oracle:
 * each whole answer is a frame that decodes; only a hello of this cluster, for this server and from
 * another one is welcome; all else is refused with words, or closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/crc.h"
#include "common/err.h"
#include "common/fd.h"
#include "common/mem.h"
#include "net/loop.h"
#include "server/core/core.h"
#include "server/peer/peers.h"
#include "server/raft/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { ANSWER_MAX = 4096, OURS = 2 };

static struct peers *peers;

/* A context without bytes of its own is pointed to behind its end, where nobody looks for it. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#define KEPT_BEGIN() __lsan_disable()
#define KEPT_END() __lsan_enable()
#endif
#endif
#ifndef KEPT_BEGIN
#define KEPT_BEGIN() (void)0
#define KEPT_END() (void)0
#endif

static bool
no_send(void *arg, uint64_t to, const char *addr, struct buf *body)
{
    (void)arg;
    (void)to;
    (void)addr;
    (void)body;
    return false;
}

static void
nothing(void *arg)
{
    (void)arg;
}

static void
open_peers(void)
{
    static const struct core_net net = {no_send, nothing, NULL};
    static struct env env;
    static char dir[] = "/tmp/fuzz-handshake-XXXXXX";
    struct err e = ERR_INIT;
    struct core *core = NULL;
    KEPT_BEGIN();
    env_of_loop(&env, loop_new());
    ASSERT(mkdtemp(dir) != NULL);
    struct core_opts o = {.dir = dir,
                          .addr = "127.0.0.1:1",
                          .boot_id = "boot",
                          .id = OURS,
                          .expect = 3,
                          .state_max = 16 << 20,
                          .segment_bytes = 64 << 10,
                          .snapshot_entries = 1000,
                          .snapshot_bytes = 1 << 20,
                          .net = &net,
                          .env = &env};
    ASSERT(core_open(&o, &core, &e) == 0);
    (void)dir_remove(AT_FDCWD, dir, NULL); /* what is open stays; nothing is written */
    struct peers_opts po = {OURS, o.addr, core};
    peers = peers_start(&po, &e);
    ASSERT(peers != NULL);
    peers_set_cluster(peers, "the cluster");
    KEPT_END();
}

/* Says whether the bytes are a welcome. */
static bool
is_welcome(const uint8_t *p, size_t n)
{
    auto_mem void *tmp = mem_ctx("fuzz");
    struct err e = ERR_INIT;
    struct wire w;
    if (n < 4 || big_endian(p, 4) > n - 4)
        return false;
    return wire_get(tmp, p + 4, big_endian(p, 4), &w, &e) == 0 && w.kind == WIRE_HELLO &&
           strcmp(w.cluster, "the cluster") == 0 && w.to == OURS && w.from != OURS && w.from != 0;
}

static void
check_answer(const uint8_t *answer, size_t n, bool welcome)
{
    auto_mem void *tmp = mem_ctx("fuzz");
    struct err e = ERR_INIT;
    struct wire said;
    if (n == 0)
        return;
    ASSERT(n >= 4 && n >= 4 + big_endian(answer, 4));
    ASSERT(wire_get(tmp, answer + 4, big_endian(answer, 4), &said, &e) == 0);
    ASSERT(said.kind == (welcome ? WIRE_WELCOME : WIRE_REFUSED));
    ASSERT(welcome || strlen(said.why) > 0);
}

static void
one(const uint8_t *p, size_t n)
{
    int fd[2];
    uint8_t answer[ANSWER_MAX];
    size_t got = 0;
    ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) == 0);
    ASSERT(send(fd[1], p, n, MSG_NOSIGNAL) == (ssize_t)n);
    ASSERT(shutdown(fd[1], SHUT_WR) == 0);
    peers_take(peers, fd[0], false, NULL, 0);
    for (;;) {
        struct pollfd f = {.fd = fd[1], .events = POLLIN};
        int ready;
        while ((ready = poll(&f, 1, 20000)) < 0 && errno == EINTR)
            ; /* the fuzzer's own timer, every eleven seconds */
        ASSERT(ready == 1); /* it is answered or closed */
        ssize_t k = recv(fd[1], answer + got, sizeof(answer) - got, 0);
        if (k <= 0)
            break;
        got += (size_t)k;
    }
    close(fd[1]);
    check_answer(answer, got, is_welcome(p, n));
}

/* `body` without its checksum, as a frame. */
static void
framed(const uint8_t *body, size_t n)
{
    auto_mem uint8_t *p = mem_array(NULL, uint8_t, n + 8);
    uint32_t head[2] = {(uint32_t)(n + 4), crc32c(0, body, n)};
    for (size_t i = 0; i < 8; i++)
        p[i] = (uint8_t)(head[i / 4] >> (24 - 8 * (i % 4)));
    if (n > 0)
        memcpy(p + 8, body, n);
    one(p, n + 8);
}

static void
hello(const uint8_t *changes, size_t n)
{
    struct buf b = BUF_INIT(WIRE_BODY_MAX);
    wire_put(&b, &(struct wire){.kind = WIRE_HELLO,
                                .from = 1,
                                .to = OURS,
                                .cluster = "the cluster",
                                .addr = "a:1"});
    for (size_t i = 0; i + 1 < n; i += 2)
        b.data[4 + changes[i] % (b.len - 4)] = changes[i + 1];
    framed(b.data + 4, b.len - 4);
    buf_done(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (peers == NULL)
        open_peers();
    if (n == 0)
        return 0;
    static void (*const ways[])(const uint8_t *p, size_t n) = {one, framed, hello};
    ways[data[0] % 3](data + 1, n - 1);
    return 0;
}
