/* SPDX-License-Identifier: Apache-2.0
 *
 * Making the object, and its contexts of OpenSSL: see tls.h.
 */
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/cert/cert.h"
#include "net/tls/tls_int.h"

/* --- ciphers --- */

/* The ciphers of TLS 1.2 that are allowed, in the order of our preference. Of TLS 1.3 all are. */
static const struct {
    const char *nomad, *openssl;
} ciphers[] = {
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"},
};

static int
add_cipher(struct buf *b, const char *name, size_t n, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(ciphers); i++)
        if (n == 0 || (strlen(ciphers[i].nomad) == n && memcmp(ciphers[i].nomad, name, n) == 0)) {
            buf_printf(b, "%s%s", b->len > 0 ? ":" : "", ciphers[i].openssl);
            if (n > 0)
                return 0;
        }
    return n == 0 ? 0
                  : err_set(e, -ERR_INVALID,
                            "tls_cipher_suites: \"%.*s\" is unknown or weak: take those with ECDHE "
                            "and GCM or CHACHA20 (%s, ...)",
                            (int)(n < 60 ? n : 60), name, ciphers[0].nomad);
}

static int
set_ciphers(SSL_CTX *ctx, const char *list, struct err *e)
{
    auto_buf struct buf b = BUF_INIT(16 << 10);
    int rc = str_empty(list) ? add_cipher(&b, "", 0, e) : 0;

    for (const char *p = str_or(list, ""); rc == 0 && *p;) {
        p += strspn(p, ", ");
        size_t n = strcspn(p, ", ");
        if (n > 0)
            rc = add_cipher(&b, p, n, e);
        p += n;
    }
    if (rc == 0 && (buf_error(&b) || SSL_CTX_set_cipher_list(ctx, buf_str(&b)) != 1))
        rc = err_set(e, -ERR_INVALID, "tls_cipher_suites: OpenSSL refuses the list");
    return rc;
}

static int
set_version(SSL_CTX *ctx, const char *min, struct err *e)
{
    int v = str_eq(str_or(min, "tls12"), "tls12") ? TLS1_2_VERSION
            : str_eq(min, "tls13")                ? TLS1_3_VERSION
                                                  : 0;
    if (v != 0 && SSL_CTX_set_min_proto_version(ctx, v) == 1)
        return 0;
    return err_set(e, -ERR_INVALID,
                   "tls_min_version \"%.20s\" is not supported: \"tls12\" and \"tls13\" are", min);
}

/* --- texts --- */

static int
read_cas(const void *ctx, const char *text, SSL_CTX *to, struct cert_list *ret, struct err *e)
{
    X509_STORE *store = SSL_CTX_get_cert_store(to);

    if (str_empty(text))
        return SSL_CTX_set_default_verify_paths(to) == 1
                   ? 0
                   : err_set(e, -ERR_NOT_FOUND, "this machine has no CAs: name a ca_file");
    if (cert_read(ctx, text, strlen(text), ret, e) < 0)
        return err_prefix(e, "ca_file");
    for (size_t i = 0; i < ret->n; i++)
        if (X509_STORE_add_cert(store, ret->v[i]->x509) != 1)
            return err_set(e, -ERR_INVALID, "ca_file: certificate \"%s\" cannot be used",
                           ret->v[i]->name);
    return 0;
}

static int
tls_judge(const void *ctx, const struct cert_set *s, struct err *e)
{
    struct str_list errors = {0}, warnings = {0};

    cert_judge(ctx, s, (int64_t)time(NULL), &errors, &warnings);
    return errors.n == 0 ? 0 : err_set(e, -ERR_INVALID, "cert_file: %s", errors.v[0]);
}

static int
read_crls(const struct tls_config *cfg, const struct cert_list *cas, struct tls_set *to,
          struct err *e)
{
    if (str_empty(cfg->crl))
        return 0;
    if (str_empty(cfg->ca))
        return err_set(e, -ERR_INVALID, "crl_file needs a ca_file, whose CAs sign its lists");
    return cert_read_crls(to, cfg->crl, strlen(cfg->crl), cas, &to->crls, e) < 0
               ? err_prefix(e, "crl_file")
               : 0;
}

static int
set_own(const void *ctx, const struct tls_config *cfg, const struct cert_list *cas,
        struct tls_set *set, struct err *e)
{
    SSL_CTX *to = set->ctx;
    struct cert_set s = {.cas = *cas};
    struct cert_key *key;

    if (str_empty(cfg->cert) || str_empty(cfg->key))
        return str_empty(cfg->cert) && str_empty(cfg->key)
                   ? 0
                   : err_set(e, -ERR_INVALID, "cert_file and key_file go together");
    if (cert_read(ctx, cfg->cert, strlen(cfg->cert), &s.chain, e) < 0)
        return err_prefix(e, "cert_file");
    if (cert_read_key(ctx, cfg->key, strlen(cfg->key), &key, e) < 0)
        return err_prefix(e, "key_file");
    s.key = key;
    if (tls_judge(ctx, &s, e) < 0)
        return e->code;
    if (!str_empty(cfg->own_name) && !cert_has_name(s.chain.v[0], cfg->own_name))
        return err_set(e, -ERR_INVALID,
                       "cert_file: certificate \"%s\" is not for %s, as which others would refuse "
                       "this agent: make one (paddock tls cert create)",
                       s.chain.v[0]->name, cfg->own_name);
    if (cert_revoked_s(&set->crls, s.chain.v[0]->x509) > 0)
        return err_set(e, -ERR_INVALID,
                       "cert_file: certificate \"%s\" is revoked by crl_file: make a new one",
                       s.chain.v[0]->name);
    bool ok = SSL_CTX_use_certificate(to, s.chain.v[0]->x509) == 1 &&
              SSL_CTX_use_PrivateKey(to, key->key) == 1;
    for (size_t i = 1; ok && i < s.chain.n; i++)
        ok = SSL_CTX_add1_chain_cert(to, s.chain.v[i]->x509) == 1;
    return ok ? 0
              : err_set(e, -ERR_INVALID,
                        "cert_file: OpenSSL does not take certificate \"%s\": its key is too weak",
                        s.chain.v[0]->name);
}

/* --- sets --- */

static void
set_rules(SSL_CTX *ctx, const struct tls_config *cfg)
{
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    if (!cfg->prefer_own_ciphers)
        SSL_CTX_clear_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_num_tickets(ctx, 0); /* where there are any: tls_peer_ask() */
    (void)SSL_CTX_set_timeout(ctx, TLS_TICKET_S);
    (void)SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"http", 4);
    (void)SSL_CTX_set1_groups_list(ctx, "X25519:P-256:P-384"); /* none that takes long */
    SSL_CTX_set_max_cert_list(ctx, TLS_CHAIN_BYTES);
    SSL_CTX_set_verify_depth(ctx, CERT_CHAIN_MAX);
    (void)X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_cert_verify_callback(ctx, tls_verify, NULL);
    SSL_CTX_set_alpn_select_cb(ctx, tls_choose_protocol, NULL);
}

static struct tls_set *
tls_set_new(const struct tls_config *cfg, struct err *e)
{
    auto_mem void *tmp = mem_ctx("tls");
    struct cert_list cas = {NULL, 0};
    struct tls_set *s = mem_new(NULL, struct tls_set);

    atomic_init(&s->refs, 1);
    s->ctx = SSL_CTX_new(TLS_method());
    ASSERT(s->ctx != NULL);
    s->region = mem_strdup(s, str_or(cfg->region, "global"));
    s->verify_server_hostname = cfg->verify_server_hostname;
    s->verify_https_client = cfg->verify_https_client;
    s->skip_verify = cfg->skip_verify;
    s->quiet = cfg->quiet;
    s->has_cert = !str_empty(cfg->cert);
    set_rules(s->ctx, cfg);
    int rc = set_version(s->ctx, cfg->min_version, e);
    if (rc == 0)
        rc = set_ciphers(s->ctx, cfg->ciphers, e);
    if (rc == 0)
        rc = read_cas(tmp, cfg->ca, s->ctx, &cas, e);
    if (rc == 0)
        rc = read_crls(cfg, &cas, s, e);
    if (rc == 0)
        rc = set_own(tmp, cfg, &cas, s, e);
    ERR_clear_error();
    if (rc == 0)
        return s;
    tls_set_unref(s);
    return NULL;
}

/* --- the object --- */

struct tls *
tls_new(const struct tls_config *cfg, struct err *e)
{
    struct tls_set *s = tls_set_new(cfg, e);

    if (s == NULL)
        return NULL;
    struct tls *t = mem_new(NULL, struct tls);
    atomic_init(&t->refs, 1);
    ASSERT(pthread_mutex_init(&t->lock, NULL) == 0);
    t->now = s;
    t->rpc = (struct tls_end){t, TLS_RPC, {tls_wrap, &t->rpc}};
    t->http = (struct tls_end){t, TLS_HTTP, {tls_wrap, &t->http}};
    return t;
}

int
tls_renew(struct tls *t, const struct tls_config *cfg, struct err *e)
{
    struct tls_set *s = tls_set_new(cfg, e);

    if (s == NULL)
        return e->code;
    pthread_mutex_lock(&t->lock);
    struct tls_set *old = t->now;
    t->now = s;
    pthread_mutex_unlock(&t->lock);
    tls_set_unref(old);
    if (!str_empty(cfg->crl))
        tls_lanes_judge(t);
    return 0;
}

const struct filter *
tls_rpc(struct tls *t)
{
    return t != NULL ? &t->rpc.filter : NULL;
}

const struct filter *
tls_http(struct tls *t)
{
    return t != NULL ? &t->http.filter : NULL;
}
