/* SPDX-License-Identifier: Apache-2.0
 *
 * "CONNECT host:port" becomes a tunnel. A request with a whole URL becomes one of the server's own,
 * with "Connection: close": the next one, to whom it may be, comes over another connection.
 */
#include "fetch/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/base64.h"
#include "common/buf.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/random.h"
#include "common/str.h"
#include "fetch/progress.h"
#include "fetch/reach.h"

enum { HEAD_MAX = 64 * 1024, BLOCK = 64 * 1024, CONNECTIONS_MAX = 16, WORD = 32 };

struct relay {
    int fd;
    int64_t bytes_max, idle_ms;
    char url[96];
    const char *word; /* what Proxy-Authorization is to say */
    const struct artifact_policy *policy;
    bool has_proxy; /* the operator's, which all goes through */
    struct reach_proxy proxy;
    const char *proxy_word; /* what that is told; NULL: nothing */
    pthread_mutex_t lock;
    int64_t bytes;
    int connections;
    struct err why; /* the first refusal */
};

struct conn {
    struct relay *relay;
    int client, server;
    char head[HEAD_MAX + 1];
    size_t n; /* bytes in head */
    char host[REACH_HOST_MAX + 1], port[6];
    const char *path; /* of a request that is no CONNECT */
};

static void
relay_note(struct relay *r, const struct err *why)
{
    (void)pthread_mutex_lock(&r->lock);
    (void)err_set(&r->why, why->code, "%s", why->text);
    (void)pthread_mutex_unlock(&r->lock);
}

/* Says whether these bytes may come, too. */
static bool
relay_count(struct relay *r, size_t n)
{
    struct err e = ERR_INIT;
    (void)pthread_mutex_lock(&r->lock);
    bool fits = (int64_t)n <= r->bytes_max - r->bytes;
    r->bytes += fits ? (int64_t)n : 0;
    progress_tell(r->bytes, 0);
    (void)pthread_mutex_unlock(&r->lock);
    if (!fits) {
        (void)err_set(&e, -ERR_LIMIT,
                      "the repository is larger than the limit of %lld bytes (http_max_size)",
                      (long long)r->bytes_max);
        relay_note(r, &e);
    }
    return fits;
}

static bool
conn_wait(const struct conn *c, int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, (int)c->relay->idle_ms) > 0;
}

static bool
conn_send(const struct conn *c, int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EAGAIN && conn_wait(c, fd, POLLOUT))
            continue;
        if (k < 0 && errno != EINTR)
            return false;
        p += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return true;
}

static void
conn_answer(struct conn *c, const char *status)
{
    char text[160];
    int n = snprintf(
        text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n%s\r\n",
        status, str_prefix(status, "407") ? "Proxy-Authenticate: Basic realm=\"paddock\"\r\n" : "");
    (void)conn_send(c, c->client, text, (size_t)n);
}

/* The end of the head in what has come. NULL: there is none. */
static char *
conn_read_head(struct conn *c)
{
    while (c->n < HEAD_MAX) {
        if (!conn_wait(c, c->client, POLLIN))
            return NULL;
        ssize_t k = recv(c->client, c->head + c->n, HEAD_MAX - c->n, 0);
        if (k <= 0)
            return NULL;
        c->n += (size_t)k;
        c->head[c->n] = '\0';
        char *end = strstr(c->head, "\r\n\r\n");
        if (end != NULL)
            return end + 2;
        if (strlen(c->head) != c->n)
            return NULL;
    }
    return NULL;
}

/* The value of a header of the head, which ends at `end`; its length in *n. */
static const char *
find_header(const char *head, const char *end, const char *name, size_t *n)
{
    for (const char *p = strstr(head, "\r\n"); p != NULL && p + 2 < end; p = strstr(p, "\r\n")) {
        p += 2;
        size_t k = strlen(name);
        if (strncasecmp(p, name, k) != 0 || p[k] != ':')
            continue;
        p += k + 1;
        p += strspn(p, " \t");
        *n = strcspn(p, "\r\n");
        return p;
    }
    return NULL;
}

static bool
conn_allowed(const struct conn *c, const char *end)
{
    auto_mem void *tmp = mem_ctx("word");
    size_t n = 0;
    const char *given = find_header(c->head, end, "Proxy-Authorization", &n);
    return given != NULL && str_same_secret(mem_strndup(tmp, given, n), c->relay->word);
}

/* "host:port", "[::1]:port" or "host". */
static bool
take_host(struct conn *c, const char *s, size_t n, const char *port)
{
    bool bracket = n > 0 && s[0] == '[';
    const char *end = bracket ? memchr(s, ']', n) : memchr(s, ':', n);
    if (bracket && end == NULL)
        return false;
    size_t from = bracket ? 1 : 0, k = end != NULL ? (size_t)(end - s) - from : n;
    size_t rest = from + k + (bracket ? 1 : 0);
    if (k == 0 || k > REACH_HOST_MAX)
        return false;
    memcpy(c->host, s + from, k);
    c->host[k] = '\0';
    if (rest == n)
        return str_copy(c->port, sizeof(c->port), port);
    size_t digits = n - rest - 1;
    if (s[rest] != ':' || digits == 0 || digits >= sizeof(c->port))
        return false;
    memcpy(c->port, s + rest + 1, digits);
    c->port[digits] = '\0';
    return strspn(c->port, "0123456789") == digits;
}

/* "CONNECT host:443 HTTP/1.1", "GET http://host/path HTTP/1.1". */
static bool
conn_parse(struct conn *c)
{
    char *target = strchr(c->head, ' ');
    size_t n = target != NULL ? strcspn(target + 1, " \r\n") : 0;
    if (target == NULL || n == 0 || target[1 + n] != ' ')
        return false;
    target++;
    if (str_prefix(c->head, "CONNECT "))
        return take_host(c, target, n, "443");
    if (n < 8 || strncasecmp(target, "http://", 7) != 0)
        return false;
    size_t host = strcspn(target + 7, "/? \r\n");
    const char *at = memchr(target + 7, '@', host);
    const char *from = at != NULL ? at + 1 : target + 7;
    c->path = target + 7 + host;
    return take_host(c, from, (size_t)(target + 7 + host - from), "80");
}

static void
put_proxy_word(const struct conn *c, struct buf *b)
{
    if (c->relay->proxy_word == NULL)
        return;
    buf_put(b, "Proxy-Authorization: ", strlen("Proxy-Authorization: "));
    buf_put(b, c->relay->proxy_word, strlen(c->relay->proxy_word));
    buf_put(b, "\r\n", 2);
}

/* Asks the operator's proxy for the tunnel, whose answer is the program's. */
static bool
conn_ask_proxy(struct conn *c)
{
    char text[2 * REACH_HOST_MAX + 64];
    bool six = strchr(c->host, ':') != NULL;
    int n = snprintf(text, sizeof(text), "CONNECT %s%s%s:%s HTTP/1.1\r\nHost: %s%s%s:%s\r\n",
                     six ? "[" : "", c->host, six ? "]" : "", c->port, six ? "[" : "", c->host,
                     six ? "]" : "", c->port);
    auto_buf struct buf b = BUF_INIT(8192);
    buf_put(&b, text, (size_t)n);
    put_proxy_word(c, &b);
    buf_put(&b, "\r\n", 2);
    return buf_error(&b) == 0 && conn_send(c, c->server, (const char *)b.data, b.len);
}

/* Connects to where the program wants to. */
static int
conn_connect(struct conn *c, struct err *e)
{
    const struct relay *r = c->relay;
    int rc = reach_scheme(r->policy, c->path != NULL ? "http" : "https", e);
    if (rc < 0 || !r->has_proxy)
        return rc < 0 ? rc : reach_connect(r->policy, c->host, c->port, e);
    rc = reach_host(r->policy, c->host, e);
    return rc < 0 ? rc : reach_connect_proxy(&r->proxy, e);
}

/* Sends the server the head as if there were no proxy, and what came behind it. */
static bool
conn_forward_head(struct conn *c, const char *end)
{
    static const char *const own[] = {"Proxy-", "Connection:", "Keep-Alive:"};
    auto_buf struct buf b = BUF_INIT((size_t)2 * HEAD_MAX);
    if (c->relay->has_proxy) { /* which is told the whole URL, as we are */
        buf_put(&b, c->head, strcspn(c->head, "\r\n"));
    } else {
        buf_put(&b, c->head, strcspn(c->head, " ") + 1);
        if (*c->path != '/')
            buf_putc(&b, '/');
        buf_put(&b, c->path, strcspn(c->path, "\r\n"));
    }
    buf_put(&b, "\r\n", 2);
    put_proxy_word(c, &b);
    for (const char *p = strstr(c->head, "\r\n") + 2; p < end;) {
        size_t n = strcspn(p, "\r\n");
        bool ours = false;
        for (size_t i = 0; i < ARRAY_LEN(own); i++)
            ours = ours || strncasecmp(p, own[i], strlen(own[i])) == 0;
        if (!ours && n > 0) {
            buf_put(&b, p, n);
            buf_put(&b, "\r\n", 2);
        }
        p += n;
        p += strspn(p, "\r\n") > 2 ? 2 : strspn(p, "\r\n");
    }
    static const char last[] = "Connection: close\r\n\r\n";
    buf_put(&b, last, sizeof(last) - 1);
    buf_put(&b, end + 2, c->n - (size_t)(end + 2 - c->head));
    return buf_error(&b) == 0 && conn_send(c, c->server, (const char *)b.data, b.len);
}

/* Brings what one side has to the other. False: it has ended. */
static bool
conn_pass(struct conn *c, bool down)
{
    int from = down ? c->server : c->client, to = down ? c->client : c->server;
    ssize_t n = recv(from, c->head, BLOCK, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0) {
        (void)shutdown(to, SHUT_WR);
        return false;
    }
    return (!down || relay_count(c->relay, (size_t)n)) && conn_send(c, to, c->head, (size_t)n);
}

static void
conn_tunnel(struct conn *c)
{
    struct pollfd p[2] = {{.fd = c->client, .events = POLLIN}, {.fd = c->server, .events = POLLIN}};
    while (p[1].fd >= 0) {
        int r = poll(p, 2, (int)c->relay->idle_ms);
        if (r == 0) {
            struct err e = ERR_INIT;
            (void)err_set(&e, -ERR_TIMEOUT, "nothing came for %lld s (http_read_timeout)",
                          (long long)(c->relay->idle_ms / 1000));
            relay_note(c->relay, &e);
            return;
        }
        if (r < 0 && errno != EINTR)
            return;
        if (p[0].revents != 0 && !conn_pass(c, false))
            p[0].fd = -1;
        if (p[1].revents != 0 && !conn_pass(c, true))
            p[1].fd = -1;
    }
}

static void
conn_serve(struct conn *c)
{
    struct err e = ERR_INIT;
    const char *end = conn_read_head(c);
    if (end == NULL)
        return;
    if (!conn_allowed(c, end)) {
        conn_answer(c, "407 Proxy Authentication Required");
        return;
    }
    if (!conn_parse(c)) {
        conn_answer(c, "400 Bad Request");
        return;
    }
    c->server = conn_connect(c, &e);
    if (c->server < 0) {
        relay_note(c->relay, &e);
        conn_answer(c, e.code == -ERR_POLICY ? "403 Forbidden" : "502 Bad Gateway");
        return;
    }
    static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    if (c->path != NULL ? conn_forward_head(c, end)
        : c->relay->has_proxy
            ? conn_ask_proxy(c)
            : conn_send(c, c->client, yes, sizeof(yes) - 1) &&
                  conn_send(c, c->server, end + 2, c->n - (size_t)(end + 2 - c->head)))
        conn_tunnel(c);
}

static void *
conn_run(void *arg)
{
    struct conn *c = arg;
    struct relay *r = c->relay;
    conn_serve(c);
    fd_close(&c->client);
    fd_close(&c->server);
    talloc_free(c);
    (void)pthread_mutex_lock(&r->lock);
    r->connections--;
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

static bool
relay_has_room(struct relay *r)
{
    (void)pthread_mutex_lock(&r->lock);
    bool room = r->connections < CONNECTIONS_MAX;
    r->connections += room ? 1 : 0;
    (void)pthread_mutex_unlock(&r->lock);
    return room;
}

static void *
relay_run(void *arg)
{
    struct relay *r = arg;
    for (;;) {
        pthread_t t;
        auto_fd int fd = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
            return NULL;
        if (fd < 0 || !relay_has_room(r))
            continue;
        struct conn *c = mem_new(NULL, struct conn);
        *c = (struct conn){.relay = r, .client = TAKE_FD(fd), .server = -1};
        if (pthread_create(&t, NULL, conn_run, c) == 0)
            (void)pthread_detach(t);
        else
            (void)conn_run(c);
    }
}

static const char *
basic_word(const void *ctx, const char *pair)
{
    auto_buf struct buf b = BUF_INIT(4096);
    base64_encode(&b, pair, strlen(pair));
    return mem_printf(ctx, "Basic %.*s", (int)b.len, (const char *)b.data);
}

static void
choose_word(struct relay *r, unsigned port)
{
    uint8_t random[WORD / 2];
    char hex[WORD + 1] = "", pair[64];
    rand_bytes(random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", random[i]);
    (void)snprintf(pair, sizeof(pair), "paddock:%s", hex);
    r->word = basic_word(r, pair);
    (void)snprintf(r->url, sizeof(r->url), "http://%s@127.0.0.1:%u", pair, port);
}

struct relay *
relay_start(const void *ctx, const struct artifact_policy *p, int64_t bytes_max, int64_t idle_ms,
            struct err *e)
{
    struct relay *r = mem_new(ctx, struct relay);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    pthread_t t;
    r->policy = p;
    r->has_proxy = reach_proxy(r, p, &r->proxy);
    if (r->has_proxy && r->proxy.user != NULL)
        r->proxy_word = basic_word(r, r->proxy.user);
    r->bytes_max = bytes_max;
    r->idle_ms = idle_ms < INT32_MAX ? idle_ms : INT32_MAX;
    (void)pthread_mutex_init(&r->lock, NULL);
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (r->fd < 0 || bind(r->fd, (const struct sockaddr *)&a, n) < 0 ||
        listen(r->fd, CONNECTIONS_MAX) < 0 || getsockname(r->fd, (struct sockaddr *)&a, &n) < 0) {
        err_errno(e, errno, "listen on loopback for the program that fetches");
        return NULL;
    }
    choose_word(r, ntohs(a.sin_port));
    int rc = pthread_create(&t, NULL, relay_run, r);
    if (rc != 0) {
        err_errno(e, rc, "make a thread");
        return NULL;
    }
    (void)pthread_detach(t);
    return r;
}

const char *
relay_url(const struct relay *r)
{
    return r->url;
}

int64_t
relay_bytes(struct relay *r)
{
    (void)pthread_mutex_lock(&r->lock);
    int64_t n = r->bytes;
    (void)pthread_mutex_unlock(&r->lock);
    return n;
}

int
relay_explain(struct relay *r, struct err *e)
{
    (void)pthread_mutex_lock(&r->lock);
    *e = r->why.code != 0 ? r->why : *e;
    int code = r->why.code;
    (void)pthread_mutex_unlock(&r->lock);
    return code;
}
