/* SPDX-License-Identifier: Apache-2.0
 *
 * The other end of a connection: asking for its certificate, judging that, making an identity of
 * it, and words for an operator where something is wrong.
 */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "net/cert/cert.h"
#include "net/tls/tls_int.h"

#define ROLE_DOMAIN ".nomad"
#define RAFT "paddock-raft"

enum { OWN_NAMES_BYTES = 4096 }; /* they go along with each call of a node */

/* --- asking --- */

static bool
is_address(const char *name)
{
    uint8_t a[16];
    return inet_pton(AF_INET, name, a) == 1 || inet_pton(AF_INET6, name, a) == 1;
}

static void
ask_for_name(SSL *ssl, const struct tls_peer *p)
{
    uint8_t alpn[64];
    size_t n = strlen(p->protocol);

    ASSERT(n < sizeof(alpn));
    alpn[0] = (uint8_t)n;
    memcpy(alpn + 1, p->protocol, n);
    (void)SSL_set_alpn_protos(ssl, alpn, (unsigned)n + 1);
    if (p->name != NULL && !is_address(p->name) && strchr(p->name, '*') == NULL)
        (void)SSL_set_tlsext_host_name(ssl, p->name);
}

void
tls_peer_ask(SSL *ssl, struct tls_peer *p)
{
    bool wanted = !p->accepted || p->use == TLS_RPC || p->set->verify_https_client;

    SSL_set_app_data(ssl, p);
    SSL_set_verify(
        ssl, wanted ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_NONE, NULL);
    if (p->use == TLS_RPC || !p->accepted)
        (void)SSL_set_options(ssl, SSL_OP_NO_TICKET);
    if (p->accepted) {
        (void)SSL_set_num_tickets(ssl, p->use == TLS_HTTP ? 1 : 0);
        SSL_set_accept_state(ssl);
    } else {
        SSL_set_connect_state(ssl);
        ask_for_name(ssl, p);
    }
}

int
tls_choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n, const unsigned char *in,
                    unsigned in_n, void *arg)
{
    const struct tls_peer *p = SSL_get_app_data(ssl);
    size_t want = strlen(p->protocol);

    (void)arg;
    for (unsigned i = 0; i < in_n; i += 1u + in[i])
        if (in[i] == want && in_n - i > want && memcmp(in + i + 1, p->protocol, want) == 0) {
            *out = in + i + 1;
            *n = (unsigned char)want;
            return SSL_TLSEXT_ERR_OK;
        }
    return p->use == TLS_RPC ? SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_NOACK;
}

/* --- names of a certificate --- */

static const char *
text_of_name(const void *ctx, const X509_NAME *name)
{
    char text[256] = "";

    if (X509_NAME_get_text_by_NID(name, NID_commonName, text, sizeof(text)) < 0 || !text[0])
        return "";
    str_tame(text, false);
    return mem_strdup(ctx, text);
}

static const char *
common_name(const void *ctx, const X509 *x)
{
    return text_of_name(ctx, X509_get_subject_name(x));
}

static struct str_list
dns_names(const void *ctx, const X509 *x)
{
    struct str_list l = {0};
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);

    for (int i = 0; i < sk_GENERAL_NAME_num(names) && i < CERT_NAMES_MAX; i++) {
        const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
        if (g->type != GEN_DNS)
            continue;
        const char *p = (const char *)ASN1_STRING_get0_data(g->d.dNSName);
        size_t n = (size_t)ASN1_STRING_length(g->d.dNSName);
        if (n == 0 || n > 255 || memchr(p, 0, n) != NULL)
            continue;
        char *name = mem_strndup(ctx, p, n);
        str_tame(name, false);
        list_add(ctx, l, name);
    }
    GENERAL_NAMES_free(names);
    return l;
}

/* Returns the region of "<role>.<region>.nomad"; NULL: it is no such name. */
static const char *
role_region(const void *ctx, const char *name, const char *role)
{
    size_t n = strlen(name), r = strlen(role), d = strlen(ROLE_DOMAIN);

    if (n <= r + 1 + d || memcmp(name, role, r) != 0 || name[r] != '.' ||
        memcmp(name + n - d, ROLE_DOMAIN, d) != 0 || strchr(name, '*') != NULL)
        return NULL;
    return mem_strndup(ctx, name + r + 1, n - r - 1 - d);
}

/* "server.global.nomad"; with "*" for the region, any server. */
static bool
bears_role(const struct str_list *names, const char *wanted)
{
    auto_mem void *tmp = mem_ctx("role");
    bool any = str_eq(wanted, "server.*" ROLE_DOMAIN);

    for (size_t i = 0; i < names->n; i++)
        if (any ? role_region(tmp, names->v[i], "server") != NULL : str_eq(names->v[i], wanted))
            return true;
    return false;
}

/* Joins the names of a certificate that are not those of many: "web-1,web-1.example.org". */
static const char *
own_names(const void *ctx, const struct str_list *names)
{
    auto_mem void *tmp = mem_ctx("names");
    auto_buf struct buf b = BUF_INIT(OWN_NAMES_BYTES);

    for (size_t i = 0; i < names->n; i++) {
        const char *s = names->v[i];
        bool role = role_region(tmp, s, "client") != NULL || role_region(tmp, s, "cli") != NULL;
        if (strpbrk(s, ",*") == NULL && !str_eq(s, "localhost") && !role &&
            b.len + strlen(s) + 2 < OWN_NAMES_BYTES)
            buf_printf(&b, "%s%s", b.len > 0 ? "," : "", s);
    }
    return mem_strdup(ctx, buf_str(&b));
}

static struct peer_identity
peer_identify(const void *ctx, const X509 *x)
{
    struct peer_identity who = {PEER_OTHER, common_name(ctx, x), "", ""};
    struct str_list names = dns_names(ctx, x);

    for (size_t i = 0; i < names.n && who.kind != PEER_SERVER; i++) {
        const char *server = role_region(ctx, names.v[i], "server");
        const char *client = role_region(ctx, names.v[i], "client");
        if (server != NULL)
            who = (struct peer_identity){PEER_SERVER, who.name, server, ""};
        else if (client != NULL && who.kind == PEER_OTHER)
            who = (struct peer_identity){PEER_NODE, who.name, client, own_names(ctx, &names)};
    }
    return who;
}

/* --- judging --- */

/* Returns the name that the certificate must bear; NULL: none. */
static const char *
wanted_name(const void *ctx, const struct tls_peer *p)
{
    if (p->use == TLS_HTTP)
        return p->accepted ? NULL : p->name;
    if (!p->set->verify_server_hostname)
        return NULL;
    if (!p->accepted)
        return p->name;
    return str_eq(p->protocol, RAFT) ? mem_printf(ctx, "server.%s" ROLE_DOMAIN, p->set->region)
                                     : NULL;
}

static bool
bears_name(const struct tls_peer *p, X509 *x, const struct str_list *names, const char *wanted)
{
    if (p->use == TLS_RPC)
        return bears_role(names, wanted);
    if (is_address(wanted))
        return X509_check_ip_asc(x, wanted, 0) == 1;
    unsigned flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
    return X509_check_host(x, wanted, 0, flags, NULL) == 1;
}

static const char *
list_text(const void *ctx, const struct str_list *l)
{
    char *all = mem_strdup(ctx, l->n > 0 ? "" : "nobody");

    for (size_t i = 0; i < l->n && i < 4; i++)
        all = mem_printf(ctx, "%s%s%s", all, i > 0 ? ", " : "", l->v[i]);
    return l->n > 4 ? mem_printf(ctx, "%s, ...", all) : all;
}

static void
say_date(struct tls_peer *p, const void *ctx, const X509 *x, const char *called, bool over)
{
    struct tm tm;
    const ASN1_TIME *t = over ? X509_get0_notAfter(x) : X509_get0_notBefore(x);
    const char *when = ASN1_TIME_to_tm(t, &tm) ? cert_time(ctx, (int64_t)timegm(&tm)) : "?";

    if (over)
        snprintf(p->why, sizeof(p->why),
                 "certificate \"%s\" of %s has expired at %s: make a new one", called, p->address,
                 when);
    else
        snprintf(p->why, sizeof(p->why),
                 "certificate \"%s\" of %s is not valid before %s: wait, or set the clocks right",
                 called, p->address, when);
}

static void
say_refusal(struct tls_peer *p, X509_STORE_CTX *x)
{
    auto_mem void *tmp = mem_ctx("tls");
    const X509 *at = X509_STORE_CTX_get_current_cert(x), *own = X509_STORE_CTX_get0_cert(x);
    int code = X509_STORE_CTX_get_error(x);
    const char *called = common_name(tmp, at != NULL ? at : own);

    switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        say_date(p, tmp, at != NULL ? at : own, called, code == X509_V_ERR_CERT_HAS_EXPIRED);
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        snprintf(p->why, sizeof(p->why),
                 "certificate \"%s\" of %s is signed by \"%s\", which is not among the CAs here: "
                 "give both sides one ca_file",
                 common_name(tmp, own), p->address,
                 text_of_name(tmp, X509_get_issuer_name(own)));
        break;
    default:
        snprintf(p->why, sizeof(p->why), "certificate \"%s\" of %s: %s", called, p->address,
                 X509_verify_cert_error_string(code));
    }
}

/* Says which certificate of a chain is revoked; false: none is. */
static bool
say_revoked(struct tls_peer *p, const struct cert_crl_list *l, const STACK_OF(X509) *chain)
{
    for (int i = 0; l->n > 0 && i < sk_X509_num(chain); i++) {
        const X509 *x = sk_X509_value(chain, i);
        int64_t at_s = cert_revoked_s(l, x);
        if (at_s == 0)
            continue;
        auto_mem void *tmp = mem_ctx("tls");
        snprintf(p->why, sizeof(p->why),
                 "certificate \"%s\" of %s is revoked since %s: make a new one",
                 common_name(tmp, x), p->address, cert_time(tmp, at_s));
        return true;
    }
    return false;
}

bool
tls_peer_revoked(const SSL *ssl, const struct tls_set *set, struct tls_peer *p)
{
    STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
    X509 *x = SSL_get0_peer_certificate(ssl);

    if (chain != NULL || x == NULL)
        return say_revoked(p, &set->crls, chain);
    /* the session was resumed, which keeps the certificate alone */
    chain = sk_X509_new_null();
    bool revoked = chain != NULL && sk_X509_push(chain, x) > 0 && say_revoked(p, &set->crls, chain);
    sk_X509_free(chain);
    return revoked;
}

int
tls_verify(X509_STORE_CTX *x, void *arg)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(x, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_peer *p = SSL_get_app_data(ssl);
    auto_mem void *tmp = mem_ctx("tls");

    (void)arg;
    if (!p->accepted && p->set->skip_verify)
        return 1;
    if (X509_verify_cert(x) != 1) {
        say_refusal(p, x);
        return 0;
    }
    if (say_revoked(p, &p->set->crls, X509_STORE_CTX_get0_chain(x))) {
        X509_STORE_CTX_set_error(x, X509_V_ERR_CERT_REVOKED);
        return 0;
    }
    X509 *own = X509_STORE_CTX_get0_cert(x);
    const char *wanted = wanted_name(tmp, p);
    struct str_list names = dns_names(tmp, own);
    if (wanted == NULL || bears_name(p, own, &names, wanted))
        return 1;
    X509_STORE_CTX_set_error(x, X509_V_ERR_HOSTNAME_MISMATCH);
    snprintf(p->why, sizeof(p->why), "certificate \"%s\" of %s is for %s, a %s was wanted",
             common_name(tmp, own), p->address, list_text(tmp, &names), wanted);
    return 0;
}

bool
tls_peer_check(SSL *ssl, const void *ctx, struct tls_peer *p)
{
    const unsigned char *protocol = NULL;
    unsigned n = 0;
    const X509 *x = SSL_get0_peer_certificate(ssl);

    if (SSL_session_reused(ssl) && x != NULL && X509_cmp_current_time(X509_get0_notAfter(x)) < 0) {
        auto_mem void *tmp = mem_ctx("tls");
        say_date(p, tmp, x, common_name(tmp, x), true);
        return false;
    }
    p->is = (struct peer_identity){PEER_OTHER, "", "", ""};
    if (x != NULL && (p->accepted || !p->set->skip_verify))
        p->is = peer_identify(ctx, x);
    SSL_get0_alpn_selected(ssl, &protocol, &n);
    if (p->use == TLS_HTTP || (n == strlen(p->protocol) && memcmp(protocol, p->protocol, n) == 0))
        return true;
    snprintf(p->why, sizeof(p->why), "%s speaks another protocol: is it an agent of this version?",
             p->address);
    return false;
}

/* --- words --- */

#define NO_TLS "does not speak TLS"

static const struct {
    int reason;
    const char *text;
} reasons[] = {
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE,
     "presents no certificate: give it cert_file and key_file"},
    {SSL_R_HTTP_REQUEST, NO_TLS},
    {SSL_R_HTTPS_PROXY_REQUEST, NO_TLS},
    {SSL_R_WRONG_VERSION_NUMBER, NO_TLS},
    {SSL_R_UNSUPPORTED_PROTOCOL, "speaks no version of TLS that is allowed here"},
    {SSL_R_VERSION_TOO_LOW, "speaks no version of TLS that is allowed here"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "allows no version of TLS that is spoken here"},
    {SSL_R_NO_SHARED_CIPHER, "knows no cipher that is allowed here"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, "does not know the CA of this certificate"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "refuses this certificate: its log says why"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "finds this certificate expired"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, "finds this certificate revoked: make a new one"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "refuses this certificate: its log says why"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED,
     "wants a certificate: set cert_file and key_file (-client-cert, -client-key)"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, "refuses to speak: its log says why"},
    {SSL_R_EXCESSIVE_MESSAGE_SIZE, "sends a chain of certificates that is too long"},
};

/* Returns what mends it, "": nothing that is known here. */
static const char *
find_cure(const struct tls_peer *p, const char *text)
{
    bool none = str_eq(text, NO_TLS);

    if (p->use == TLS_HTTP)
        return !none         ? ""
               : p->accepted ? ": say https://"
                             : ": is http:// its address?";
    return p->accepted || (text != NULL && !none) ? "" : ": has it tls { rpc = true }?";
}

void
tls_peer_why(struct tls_peer *p, const SSL *ssl, bool shaking)
{
    unsigned long code = ERR_peek_error();
    const char *text = code != 0 ? ERR_reason_error_string(code) : NULL;

    (void)ssl;
    for (size_t i = 0; code != 0 && ERR_GET_LIB(code) == ERR_LIB_SSL && i < ARRAY_LEN(reasons); i++)
        if (reasons[i].reason == ERR_GET_REASON(code))
            text = reasons[i].text;
    if (p->why[0] == '\0')
        snprintf(p->why, sizeof(p->why), "%s %s%s", p->address,
                 text != NULL ? text
                 : shaking    ? "ended the connection during the handshake"
                              : "ended the connection in the middle",
                 shaking ? find_cure(p, text) : "");
    ERR_clear_error();
}
