/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP: any bytes to a server over a unix socket. Oracles: nothing crashes or leaks; a request that
 * reaches the handler has one Host (1.1), one framing and a clean path; every connection ends once its
 * bytes are read. The first byte chooses how the rest is cut into writes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/str.h"
#include "net/http/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct loop *loop;
static struct http_server *server;
static struct sockaddr_un where = {.sun_family = AF_UNIX};

static void
handler(void *arg, struct http_req *r)
{
    unsigned lengths = 0, codings = 0, hosts = 0;
    (void)arg;
    for (size_t i = 0; i < r->n_headers; i++) {
        lengths += strcmp(r->headers[i].k, "content-length") == 0;
        codings += strcmp(r->headers[i].k, "transfer-encoding") == 0;
        hosts += strcmp(r->headers[i].k, "host") == 0;
        ASSERT(strpbrk(r->headers[i].v, "\r\n") == NULL);
        ASSERT(strpbrk(r->headers[i].k, " \t\r\n:") == NULL);
    }
    ASSERT(lengths + codings <= 1 && hosts <= 1);
    ASSERT(r->path[0] == '/' && utf8_valid(r->path, strlen(r->path)));
    ASSERT(strlen(r->body) <= r->body_len && r->body_len <= 4096);
    http_reply(r, 200, "text/plain", r->path, strlen(r->path));
}

static size_t
body_max(void *arg, enum http_method m, const char *path)
{
    (void)arg;
    (void)m;
    (void)path;
    return 4096;
}

static void
start(void)
{
    static char dir[] = "/tmp/paddock-fuzz-XXXXXX";
    struct http_server_config cfg = {.handler = handler, .body_max = body_max};
    struct err e = ERR_INIT;
    char addr[128];

    loop = loop_new();
    server = http_server_new(loop, &cfg);
    ASSERT(mkdtemp(dir) != NULL);
    snprintf(where.sun_path, sizeof(where.sun_path), "%s/s", dir);
    snprintf(addr, sizeof(addr), "unix://%s", where.sun_path);
    ASSERT(http_server_listen(server, addr, 0, &e) == 0);
}

static void
turn(void)
{
    bool never = false;
    loop_run_until(loop, &never, 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char sink[4096];

    if (n == 0 || n > 64 << 10)
        return 0;
    if (!loop)
        start();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ASSERT(fd >= 0 && connect(fd, (struct sockaddr *)&where, sizeof(where)) == 0);
    size_t step = data[0] ? data[0] * 3u : n, stuck = 0;
    for (size_t at = 1; at < n && stuck < 50;) {
        size_t want = n - at < step ? n - at : step;
        ssize_t w = send(fd, data + at, want, MSG_NOSIGNAL);
        at += w > 0 ? (size_t)w : 0;
        stuck = w > 0 ? 0 : stuck + 1;
        turn();
        while (recv(fd, sink, sizeof(sink), 0) > 0)
            ;
    }
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 10000 && http_server_conns(server) > 0; i++) {
        turn();
        if (recv(fd, sink, sizeof(sink), 0) == 0 && fd >= 0) {
            close(fd);
            fd = -1;
        }
    }
    ASSERT(http_server_conns(server) == 0);
    if (fd >= 0)
        close(fd);
    return 0;
}
