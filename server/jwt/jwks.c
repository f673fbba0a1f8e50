/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of keys at addresses (see jwks.h): the sets and who waits for them; then the way to one,
 * which has two requests where an issuer's document comes first, and redirections.
 */
#include "server/jwt/jwks.h"

#include <string.h>

#include "api/acl/method.h"
#include "api/api.h"
#include "common/buf.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/http/http.h"
#include "net/tls/tls.h"
#include "server/env.h"
#include "server/jwt/key.h"
#include "server/limits.h"

struct waiter {
    jwks_done *done;
    void *arg;
    struct waiter *next;
};

/* The set of an address. */
struct set {
    struct jwks *all;
    struct set *next;
    char *url, *ca; /* of its source; ca "": none */
    bool issuer;
    struct jwt_keys *keys; /* NULL: there are none yet */
    struct err err;        /* of the last request that failed, and nothing came after */
    int64_t asked_ms, got_ms, used_ms;
    struct waiter *waiters;
    struct timer *answering;
    /* a request that runs */
    struct http_client *http;
    struct tls *tls;
    char *at;      /* the URL that is asked */
    bool document; /* which is that of the issuer's document */
    int redirects;
    struct buf body;
};

struct jwks {
    struct loop *loop;
    const struct env *env;
    struct set *sets;
    size_t n_sets, n_waiters;
};

static void set_ask(struct set *s, const char *url);

struct jwks *
jwks_new(struct loop *l, const struct env *env)
{
    struct jwks *j = mem_new(NULL, struct jwks);

    j->loop = l;
    j->env = env;
    return j;
}

/* --- who waits --- */

static void
set_answer(struct set *s, const struct err *e)
{
    struct waiter *all = TAKE(s->waiters);
    struct jwt_keys *keys = e == NULL ? jwt_keys_ref(s->keys) : NULL;

    while (all != NULL) {
        struct waiter *w = all;
        all = w->next;
        s->all->n_waiters--;
        w->done(w->arg, keys, e);
        mem_free(w);
    }
    jwt_keys_unref(keys);
}

static void
set_answer_now(void *arg)
{
    struct set *s = arg;

    s->answering = NULL;
    set_answer(s, s->keys != NULL ? NULL : &s->err);
}

static void
set_stop_asking(struct set *s)
{
    http_client_close(TAKE(s->http));
    tls_unref(TAKE(s->tls));
    buf_done(&s->body);
    mem_free(s->at);
}

static void
set_free(struct set *s)
{
    env_timer_stop(s->all->env, TAKE(s->answering));
    set_stop_asking(s);
    jwt_keys_unref(s->keys);
    s->all->n_sets--;
    talloc_free(s);
}

void
jwks_close(struct jwks *j)
{
    struct err e = ERR_INIT;

    if (j == NULL)
        return;
    err_set(&e, -ERR_CANCELED, "the server is stopping");
    while (j->sets != NULL) {
        struct set *s = j->sets;
        j->sets = s->next;
        s->asked_ms = INT64_MAX; /* what is closed answers nobody */
        set_answer(s, &e);
        set_free(s);
    }
    talloc_free(j);
}

/* --- sets --- */

/* Drops the set that nobody has used for the longest time, of those that nobody waits for. */
static void
drop_oldest(struct jwks *j)
{
    struct set **oldest = NULL;

    for (struct set **at = &j->sets; *at != NULL; at = &(*at)->next)
        if ((*at)->waiters == NULL && (*at)->http == NULL &&
            (oldest == NULL || (*at)->used_ms < (*oldest)->used_ms))
            oldest = at;
    if (oldest == NULL)
        return;
    struct set *s = *oldest;
    *oldest = s->next;
    set_free(s);
}

static struct set *
set_of(struct jwks *j, const struct jwks_source *src)
{
    for (struct set *s = j->sets; s != NULL; s = s->next)
        if (str_eq(s->url, src->url) && str_eq(s->ca, str_or(src->ca, "")) &&
            s->issuer == src->issuer)
            return s;
    if (j->n_sets >= JWKS_SETS_MAX)
        drop_oldest(j);
    if (j->n_sets >= JWKS_SETS_MAX)
        return NULL;
    struct set *s = mem_new(NULL, struct set);
    *s = (struct set){.all = j,
                      .next = j->sets,
                      .url = mem_strdup(s, src->url),
                      .ca = mem_strdup(s, str_or(src->ca, "")),
                      .issuer = src->issuer,
                      .asked_ms = -JWKS_AGAIN_MS,
                      .body = BUF_INIT(JWKS_BYTES_MAX)};
    j->sets = s;
    j->n_sets++;
    return s;
}

static void
set_begin(struct set *s)
{
    auto_mem void *tmp = mem_ctx("issuer");
    size_t n = strlen(s->url);

    s->asked_ms = env_mono_ms(s->all->env);
    s->redirects = 0;
    s->document = s->issuer;
    set_ask(s, s->issuer ? mem_printf(tmp, "%.*s/.well-known/openid-configuration",
                                      (int)(s->url[n - 1] == '/' ? n - 1 : n), s->url)
                         : s->url);
}

/* Says whether the set is to be asked for before who needs that key is answered. A failure is
 * answered for a while as well. */
static bool
set_is_stale(const struct set *s, const char *kid, int64_t now)
{
    bool rested = now - s->asked_ms >= JWKS_AGAIN_MS;

    return s->keys == NULL                    ? rested
           : now - s->got_ms >= JWKS_FRESH_MS ? true
                                              : rested && !jwt_keys_has(s->keys, kid);
}

struct refusal {
    jwks_done *done;
    void *arg;
};

static void
refuse_now(void *arg)
{
    struct refusal *r = arg;
    struct err e = ERR_INIT;

    err_set(&e, -ERR_BUSY, "too many logins wait for keys: try again");
    r->done(r->arg, NULL, &e);
    mem_free(r);
}

void
jwks_get(struct jwks *j, const struct jwks_source *src, const char *kid, jwks_done *done, void *arg)
{
    struct set *s = j->n_waiters < JWKS_WAITERS_MAX ? set_of(j, src) : NULL;

    if (s == NULL) {
        struct refusal *r = mem_new(NULL, struct refusal);
        *r = (struct refusal){done, arg};
        env_post(j->env, refuse_now, r);
        return;
    }
    struct waiter *w = mem_new(NULL, struct waiter);
    *w = (struct waiter){done, arg, s->waiters};
    s->waiters = w;
    j->n_waiters++;
    s->used_ms = env_mono_ms(j->env);
    if (s->http != NULL)
        return; /* it is being asked for */
    if (s->answering == NULL && set_is_stale(s, kid, s->used_ms))
        set_begin(s);
    if (s->http == NULL && s->answering == NULL)
        s->answering = env_timer(j->env, 0, set_answer_now, s);
}

/* --- the way to a set --- */

/* The end of a request that failed: keys that there are go on. */
static void
set_failed(struct set *s, int code, const char *why)
{
    auto_mem char *at = mem_strdup(NULL, str_or(s->at, s->url));

    set_stop_asking(s);
    err_clear(&s->err);
    err_set(&s->err, code == -ERR_CANCELED ? -ERR_UNAVAILABLE : code,
            "the keys at \"%.200s\" cannot be had: %.400s", at, why);
    log_warn("login", "the keys of a method cannot be had", "url", at, "error", why, NULL);
    if (s->answering == NULL)
        s->answering = env_timer(s->all->env, 0, set_answer_now, s);
}

static void
set_got_keys(struct set *s)
{
    struct jwt_keys *keys = jwt_keys_new();
    struct err e = ERR_INIT;

    if (jwt_keys_add_set(keys, SLICE(s->body.data, s->body.len), &e) < 0) {
        jwt_keys_unref(keys);
        set_failed(s, -ERR_UNAVAILABLE, e.text);
        return;
    }
    set_stop_asking(s);
    jwt_keys_unref(s->keys);
    s->keys = keys;
    s->got_ms = env_mono_ms(s->all->env);
    if (s->answering == NULL)
        s->answering = env_timer(s->all->env, 0, set_answer_now, s);
}

static bool
is_secure(const char *url)
{
    return str_prefix(url, "https://");
}

static void
set_got_document(struct set *s)
{
    auto_mem void *tmp = mem_ctx("document");
    struct err e = ERR_INIT;
    void *obj = NULL;

    if (json_decode(tmp, &type_oidc_discovery, SLICE(s->body.data, s->body.len),
                    BUDGET(4 * JWKS_BYTES_MAX), &obj, &e) < 0) {
        set_failed(s, -ERR_UNAVAILABLE, e.text);
        return;
    }
    const struct oidc_discovery *d = obj;
    size_t n = strlen(s->url) - (s->url[strlen(s->url) - 1] == '/' ? 1 : 0);
    const char *issuer = str_or(d->issuer, "");
    bool same = strncmp(issuer, s->url, n) == 0 && (issuer[n] == '\0' || str_eq(issuer + n, "/"));
    if (!same)
        set_failed(s, -ERR_UNAVAILABLE,
                   mem_printf(tmp, "its issuer is \"%.100s\", and not OIDCDiscoveryURL", issuer));
    else if (acl_url_check("jwks_uri", d->jwks_uri, &e) < 0 || str_empty(d->jwks_uri))
        set_failed(s, -ERR_UNAVAILABLE, e.code != 0 ? e.text : "it names no jwks_uri");
    else if (is_secure(s->url) && !is_secure(d->jwks_uri))
        set_failed(s, -ERR_UNAVAILABLE, "its jwks_uri is not https");
    else {
        s->document = false;
        set_ask(s, d->jwks_uri);
    }
}

/* Follows a redirection, to a URL or to a path at the same host. */
static void
set_redirected(struct set *s, const char *to)
{
    auto_mem void *tmp = mem_ctx("redirect");
    struct err e = ERR_INIT;
    const char *host = strstr(s->at, "://") + 3;

    if (to != NULL && to[0] == '/' && to[1] != '/')
        to = mem_printf(tmp, "%.*s%s", (int)(host - s->at + (ptrdiff_t)strcspn(host, "/?")), s->at,
                        to);
    if (to == NULL || acl_url_check("the redirection", to, &e) < 0)
        set_failed(s, -ERR_UNAVAILABLE, to == NULL ? "a redirection leads nowhere" : e.text);
    else if (++s->redirects > JWKS_REDIRECTS_MAX)
        set_failed(s, -ERR_UNAVAILABLE, "there are too many redirections");
    else if (is_secure(s->at) && !is_secure(to))
        set_failed(s, -ERR_UNAVAILABLE, "a redirection leads from https to http");
    else
        set_ask(s, to);
}

static bool
on_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct set *s = arg;

    (void)r;
    buf_put(&s->body, p, n);
    return buf_error(&s->body) == 0;
}

static void
on_done(void *arg, const struct err *e, const struct http_resp *r)
{
    struct set *s = arg;
    auto_mem void *tmp = mem_ctx("answer");

    if (s->asked_ms == INT64_MAX)
        return; /* it is being closed */
    if (buf_error(&s->body) != 0)
        set_failed(s, -ERR_UNAVAILABLE,
                   mem_printf(tmp, "the answer has more than %d bytes", JWKS_BYTES_MAX));
    else if (e != NULL && e->code == -ERR_POLICY)
        set_failed(s, -ERR_POLICY, "it is an address of a metadata service, or of one link");
    else if (e != NULL)
        set_failed(s, -ERR_UNAVAILABLE, mem_strdup(tmp, e->text));
    else if (r->status == 301 || r->status == 302 || r->status == 303 || r->status == 307 ||
             r->status == 308)
        set_redirected(s, http_resp_header(r, "location") != NULL
                              ? mem_strdup(tmp, http_resp_header(r, "location"))
                              : NULL);
    else if (r->status != 200)
        set_failed(s, -ERR_UNAVAILABLE, mem_printf(tmp, "the answer is %d", r->status));
    else if (s->document)
        set_got_document(s);
    else
        set_got_keys(s);
}

/* Asks for a URL that was checked. */
static void
set_ask(struct set *s, const char *url)
{
    auto_mem void *tmp = mem_ctx("ask");
    struct err e = ERR_INIT;
    bool secure = is_secure(url);
    const char *host = strstr(url, "://") + 3;
    size_t n = strcspn(host, "/?");
    const char *name = mem_strndup(tmp, host, n), *colon = strrchr(name, ':');
    bool port = colon != NULL && strchr(colon, ']') == NULL;
    const char *addr = mem_printf(tmp, "%s%s%s", secure ? "https://" : "http://", name,
                                  port     ? ""
                                  : secure ? ":443"
                                           : ":80");
    char *at = mem_strdup(s, url);

    set_stop_asking(s);
    s->at = at;
    s->body = (struct buf)BUF_INIT(JWKS_BYTES_MAX);
    if (secure)
        s->tls = tls_new(&(struct tls_config){.ca = str_empty(s->ca) ? NULL : s->ca}, &e);
    const struct dialer d = {
        .loop = s->all->loop, .filter = s->tls != NULL ? tls_http(s->tls) : NULL, .outside = true};
    if (n > 0 && (!secure || s->tls != NULL))
        s->http = http_client_new(&d, addr, &e);
    if (s->http == NULL) {
        set_failed(s, -ERR_UNAVAILABLE, e.code != 0 ? e.text : "it names no host");
        return;
    }
    http_send(s->http, &(struct http_ask){
                           .method = "GET",
                           .target = host[n] == '/' ? host + n : mem_printf(tmp, "/%s", host + n),
                           .host = name,
                           .timeout_ms = JWKS_ANSWER_MS,
                           .on_body = on_body,
                           .done = on_done,
                           .arg = s});
}

int
jwks_check_ca(const char *name, const char *pem, struct err *e)
{
    struct err why = ERR_INIT;

    if (str_empty(pem))
        return 0;
    struct tls *t = tls_new(&(struct tls_config){.ca = pem, .quiet = true}, &why);
    tls_unref(t);
    return t != NULL
               ? 0
               : err_set(e, -ERR_INVALID, "%s has no certificates in PEM: %.300s", name, why.text);
}
