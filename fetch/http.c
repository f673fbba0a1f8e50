/* SPDX-License-Identifier: Apache-2.0
 *
 * From the socket up: answers to libcurl while a response comes (the address, the body's place, the
 * headers), words for an error, a request, and in http_get() the loop over redirects and parts.
 */
#include "fetch/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "fetch/progress.h"
#include "fetch/reach.h"

enum { REDIRECTS_MAX = 10, RESUMES_MAX = 16, HEADERS_MAX = 1 << 20, VALIDATOR_MAX = 256 };

struct http_get {
    const struct http_wish *wish;
    int fd;
    int64_t bytes;
    int64_t header_bytes;
    bool too_large;
    struct err refused; /* why an address was, last */
    bool final;       /* no use in trying again */
    const char *next; /* where it is to be asked instead; owned by ctx; NULL: nowhere */
    int error;        /* of writing; positive errno */
    CURL *c;
    int64_t from;  /* first byte that was asked for; 0: all */
    int64_t range; /* first byte that comes, as its headers say; -1: they do not */
    bool begun;    /* the body of this response */
    bool astray;   /* it is not the part that was asked for */
    bool cut;      /* the rest may be asked for */
    char told[VALIDATOR_MAX], validator[VALIDATOR_MAX]; /* of this response, of the file; or "" */
    int64_t until_ns; /* with wish->total_ms: the end of its time */
};

static curl_socket_t
open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct http_get *g = arg;
    (void)purpose;
    struct reach_name name;
    struct err e = ERR_INIT;
    bool proxy = g->wish->policy != NULL && !str_empty(g->wish->policy->proxy);
    if (!proxy && reach_address(g->wish->policy, &a->addr, &name, &e) < 0) {
        g->refused = e;
        return CURL_SOCKET_BAD;
    }
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* Says where the body goes: behind what has come, or, where it is all of the file, in its place. */
static bool
begin_body(struct http_get *g)
{
    long status = 0;
    (void)curl_easy_getinfo(g->c, CURLINFO_RESPONSE_CODE, &status);
    g->begun = true;
    if (status == 206 && g->range == g->from)
        return true;
    if (status == 206) {
        g->astray = true;
        return false;
    }
    memcpy(g->validator, g->told, sizeof(g->validator));
    g->bytes = 0;
    g->error = ftruncate(g->fd, 0) < 0 || lseek(g->fd, 0, SEEK_SET) < 0 ? errno : 0;
    return g->error == 0;
}

static size_t
take_body(char *p, size_t size, size_t n, void *arg)
{
    struct http_get *g = arg;
    n *= size;
    if (!g->begun && !begin_body(g))
        return 0;
    if ((int64_t)n > g->wish->bytes_max - g->bytes) {
        g->too_large = true;
        return 0;
    }
    int r = fd_write_full(g->fd, p, n);
    if (r < 0) {
        g->error = -r;
        return 0;
    }
    g->bytes += (int64_t)n;
    curl_off_t rest = 0;
    (void)curl_easy_getinfo(g->c, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &rest);
    progress_tell(g->bytes, rest > 0 ? g->from + rest : 0);
    return n;
}

static bool
header_is(const char *p, size_t n, const char *begin)
{
    return n > strlen(begin) && strncasecmp(p, begin, strlen(begin)) == 0;
}

/* Lines that libcurl gives end with a newline. */
static size_t
take_header(char *p, size_t size, size_t n, void *arg)
{
    struct http_get *g = arg;
    n *= size;
    g->header_bytes += (int64_t)n;
    if (header_is(p, n, "HTTP/")) {
        g->told[0] = '\0';
        g->range = -1;
    } else if (header_is(p, n, "etag: \"") ||
               (g->told[0] == '\0' && header_is(p, n, "last-modified: "))) {
        const char *v = memchr(p, ' ', n);
        size_t k = strcspn(v + 1, "\r\n");
        if (k < VALIDATOR_MAX) {
            memcpy(g->told, v + 1, k);
            g->told[k] = '\0';
        }
    } else if (header_is(p, n, "content-range: bytes ")) {
        char digits[24] = "";
        const char *v = p + strlen("content-range: bytes ");
        size_t k = strspn(v, "0123456789");
        memcpy(digits, v, k < sizeof(digits) ? k : 0);
        if (num_parse_i64(digits, &g->range) < 0)
            g->range = -1;
    }
    return g->header_bytes > HEADERS_MAX ? 0 : n;
}

static int
http_explain(struct http_get *g, CURLcode code, const char *text, struct err *e)
{
    g->final = g->too_large || g->refused.code != 0 || code == CURLE_UNSUPPORTED_PROTOCOL ||
               code == CURLE_URL_MALFORMAT;
    if (g->too_large)
        return err_set(e, -ERR_LIMIT,
                       "the body is larger than the limit of %lld bytes "
                       "(http_max_size)",
                       (long long)g->wish->bytes_max);
    if (g->astray)
        return err_set(e, -ERR_CORRUPT, "the server sent another part than was asked for");
    if (g->error != 0)
        return err_errno(e, g->error, "write what comes");
    if (g->refused.code != 0)
        return err_set(e, g->refused.code, "%s", g->refused.text);
    if (code == CURLE_UNSUPPORTED_PROTOCOL)
        return err_set(e, -ERR_POLICY, "it leads to another scheme than http or https");
    if (code == CURLE_PARTIAL_FILE)
        return err_set(e, -ERR_CLOSED, "short write: the connection ended after %lld bytes",
                       (long long)g->bytes);
    if (code == CURLE_OPERATION_TIMEDOUT && g->wish->total_ms > 0 && clock_mono_ns() >= g->until_ns)
        return err_set(e, -ERR_TIMEOUT, "it took longer than %lld s",
                       (long long)(g->wish->total_ms / 1000));
    if (code == CURLE_OPERATION_TIMEDOUT)
        return err_set(e, -ERR_TIMEOUT,
                       "nothing came for %lld s (http_read_timeout), or no "
                       "connection within %d s",
                       (long long)(g->wish->idle_ms / 1000), REACH_CONNECT_MS / 1000);
    return err_set(e, -ERR_UNAVAILABLE, "%.300s",
                   str_empty(text) ? curl_easy_strerror(code) : text);
}

/* Scheme, host and port. */
static bool
same_host(const char *a, const char *b)
{
    const char *x = strstr(a, "://"), *y = strstr(b, "://");
    size_t n = x != NULL ? (size_t)(x - a) + 3 + strcspn(x + 3, "/?#") : 0;
    size_t k = y != NULL ? (size_t)(y - b) + 3 + strcspn(y + 3, "/?#") : 0;
    return n > 0 && n == k && strncasecmp(a, b, n) == 0;
}

static void
set_options(CURL *c, struct http_get *g, const char *url, char *text)
{
    const struct http_wish *w = g->wish;
    long idle_s = (long)(w->idle_ms / 1000);
    (void)curl_easy_setopt(c, CURLOPT_URL, url);
    (void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c, CURLOPT_PROXY, w->policy != NULL ? str_or(w->policy->proxy, "") : "");
    (void)curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    (void)curl_easy_setopt(c, CURLOPT_USERAGENT, "paddock/" PACKAGE_VERSION);
    (void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)REACH_CONNECT_MS);
    (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, idle_s > 0 ? idle_s : 1L);
    (void)curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
    if (w->total_ms > 0) {
        int64_t left = (g->until_ns - clock_mono_ns()) / NS_PER_MS;
        (void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, left > 0 ? (long)left : 1L);
    }
    (void)curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, w->insecure ? 0L : 1L);
    (void)curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, w->insecure ? 0L : 2L);
    (void)curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    (void)curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, g);
    (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
    (void)curl_easy_setopt(c, CURLOPT_WRITEDATA, g);
    (void)curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
    (void)curl_easy_setopt(c, CURLOPT_HEADERDATA, g);
    (void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, text);
    (void)curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 262144L);
}

static struct curl_slist *
make_headers(const struct http_wish *w)
{
    const struct str_map *h = w->headers;
    struct curl_slist *l = NULL;
    auto_mem void *tmp = mem_ctx("headers");
    if (!str_empty(w->key_token))
        l = curl_slist_append(l, mem_printf(tmp, "x-amz-security-token: %s", w->key_token));
    /* "Name;" sends a header without a value */
    for (size_t i = 0; h != NULL && i < h->n; i++)
        l = curl_slist_append(l, str_empty(h->v[i].v)
                                     ? mem_printf(tmp, "%s;", h->v[i].k)
                                     : mem_printf(tmp, "%s: %s", h->v[i].k, h->v[i].v));
    return l;
}

static void
sign_request(CURL *c, const struct http_wish *w)
{
    auto_mem void *tmp = mem_ctx("sign");
    (void)curl_easy_setopt(c, CURLOPT_AWS_SIGV4, mem_printf(tmp, "aws:amz:%s:s3", w->region));
    (void)curl_easy_setopt(c, CURLOPT_USERNAME, w->key_id);
    (void)curl_easy_setopt(c, CURLOPT_PASSWORD, w->key_secret);
}

/* Says what a store has against it: "<Code>AccessDenied</Code>" of its answer. */
static void
find_code(int fd, char *out, size_t size)
{
    char text[2048];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    const char *p = strstr(text, "<Code>"), *end = p != NULL ? strstr(p, "</Code>") : NULL;
    out[0] = '\0';
    if (end != NULL)
        (void)snprintf(out, size, " (%.*s)", (int)(end - p - 6 < 64 ? end - p - 6 : 64), p + 6);
}

/* Holds a URL to the operator's policy. What is none, or of another scheme, libcurl refuses. */
static int
judge_url(struct http_get *g, const char *url, struct err *e)
{
    CURLU *u = curl_url();
    char *scheme = NULL, *host = NULL;
    int r = 0;
    if (u != NULL && curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK && host[0] != '\0') {
        size_t n = strlen(host);
        bool bracket = host[0] == '[' && host[n - 1] == ']';
        if (bracket)
            host[n - 1] = '\0';
        if (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0)
            r = reach_scheme(g->wish->policy, scheme, e);
        if (r == 0)
            r = reach_host(g->wish->policy, host + (bracket ? 1 : 0), e);
    }
    g->final = r < 0;
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(u);
    return r;
}

/* Makes a request, and follows nothing. */
static int
get_once(const void *ctx, CURL *c, struct http_get *g, const char *url, bool with_headers,
         struct err *e)
{
    char text[CURL_ERROR_SIZE] = "";
    long status = 0;
    const char *next = NULL;
    struct curl_slist *headers = with_headers ? make_headers(g->wish) : NULL;
    g->from = g->cut ? g->bytes : 0;
    g->range = -1;
    g->begun = g->cut = false;
    g->header_bytes = 0;
    curl_easy_reset(c);
    set_options(c, g, url, text);
    if (g->from > 0) {
        (void)curl_easy_setopt(c, CURLOPT_RANGE, mem_printf(ctx, "%lld-", (long long)g->from));
        headers = curl_slist_append(headers, mem_printf(ctx, "If-Range: %s", g->validator));
    }
    (void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    if (!str_empty(g->wish->key_id))
        sign_request(c, g->wish);
    CURLcode code = curl_easy_perform(c);
    (void)curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(c, CURLINFO_REDIRECT_URL, &next);
    g->next = next != NULL && code == CURLE_OK ? mem_strdup(ctx, next) : NULL;
    curl_slist_free_all(headers);
    g->cut =
        (code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_HTTP2_STREAM) &&
        g->bytes > g->from && g->validator[0] != '\0';
    if (code == CURLE_OK && !g->begun && (status == 200 || status == 206) && !begin_body(g))
        code = CURLE_WRITE_ERROR; /* the body is empty */
    if (code != CURLE_OK)
        return http_explain(g, code, text, e);
    if (g->next != NULL && !str_empty(g->wish->key_id)) {
        g->final = true;
        return err_set(e, -ERR_UNAVAILABLE,
                       "bad response code: %ld: the bucket is elsewhere: set the option region",
                       status);
    }
    if (g->next != NULL)
        return 0;
    g->final = status >= 400 && status < 500 && status != 408 && status != 425 && status != 429 &&
               status != 404 && status != 403;
    char code_text[80];
    find_code(g->fd, code_text, sizeof(code_text));
    if (status != 200 && status != 206)
        return err_set(e, status == 404 ? -ERR_NOT_FOUND : -ERR_UNAVAILABLE,
                       "bad response code: %ld%s", status, code_text);
    g->final = false;
    return 0;
}

int
http_get(const struct http_wish *w, int fd, int64_t *ret_bytes, bool *final, struct err *e)
{
    auto_mem void *ctx = mem_ctx("get");
    struct http_get g = {.wish = w, .fd = fd};
    g.until_ns = clock_mono_ns() + w->total_ms * NS_PER_MS;
    const char *url = w->url;
    CURL *c = curl_easy_init();
    if (c == NULL)
        return err_set(e, -ERR_INTERNAL, "libcurl does not start");
    int r = 0, resumes = 0;
    g.c = c;
    for (int i = 0; r == 0; i++) {
        if (i > REDIRECTS_MAX) {
            r = err_set(e, -ERR_LIMIT, "more than %d redirects", REDIRECTS_MAX);
            break;
        }
        r = judge_url(&g, url, e);
        if (r == 0)
            r = get_once(ctx, c, &g, url, same_host(url, w->url), e);
        if (r < 0 && i > 0)
            err_prefix(e, "redirected to \"%.200s\"", url);
        if (r < 0 && g.cut && resumes++ < RESUMES_MAX) {
            err_clear(e);
            r = 0;
            i--;
            continue;
        }
        if (r < 0 || g.next == NULL)
            break;
        url = g.next;
    }
    curl_easy_cleanup(c);
    if (final != NULL)
        *final = r < 0 && g.final;
    if (r == 0)
        *ret_bytes = g.bytes;
    return r;
}
