/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS of an agent: see tls.h.
 */
#include "agent/tls.h"

#include <string.h>

#include "agent/config/config.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/cert/cert.h"
#include "net/loop.h"
#include "net/tls/tls.h"

enum { DAY_MS = 24 * 60 * 60 * 1000, DAY_S = 24 * 60 * 60 };

/* A server whose certificate is another's would be refused by all others. */
static const char *
tls_own_name(const void *ctx, const struct agent_config *c)
{
    const struct agent_tls *t = c->tls_config;
    bool server = c->server != NULL && c->server->enabled;
    return server && t->enable_rpc && t->verify_server_hostname
               ? mem_printf(ctx, "server.%s.nomad", str_or(c->region, "global"))
               : NULL;
}

static struct tls_config
tls_config_of(const void *ctx, const struct agent_config *c)
{
    const struct agent_tls *t = c->tls_config;
    return (struct tls_config){
        .own_name = tls_own_name(ctx, c),
        .ca = config_tls_text(c, t->ca_file),
        .cert = config_tls_text(c, t->cert_file),
        .key = config_tls_text(c, t->key_file),
        .crl = config_tls_text(c, t->crl_file),
        .min_version = t->tls_min_version,
        .ciphers = t->tls_cipher_suites,
        .region = c->region,
        .prefer_own_ciphers = t->tls_prefer_server_cipher_suites,
        .verify_server_hostname = t->verify_server_hostname,
        .verify_https_client = t->verify_https_client,
    };
}

int
agent_tls_new(const struct agent_config *c, struct tls **ret, struct err *e)
{
    *ret = NULL;
    if (!c->tls_config || !(c->tls_config->enable_http || c->tls_config->enable_rpc))
        return 0;
    auto_mem void *tmp = mem_ctx("tls");
    struct tls_config tc = tls_config_of(tmp, c);
    *ret = tls_new(&tc, e);
    return *ret ? 0 : err_prefix(e, "tls");
}

int
agent_tls_renew(struct tls *t, const struct agent_config *c, struct err *e)
{
    auto_mem void *tmp = mem_ctx("tls");
    struct tls_config tc = tls_config_of(tmp, c);
    return tls_renew(t, &tc, e);
}

static bool
tls_read(const void *ctx, const struct agent_config *c, const char *path, struct cert_list *ret)
{
    const char *text = config_tls_text(c, path);
    return text && cert_read(ctx, text, strlen(text), ret, NULL) == 0;
}

int64_t
agent_tls_end(const struct agent_config *c)
{
    auto_mem void *tmp = mem_ctx("tls");
    struct cert_list own = {NULL, 0}, cas = {NULL, 0};
    int64_t end = INT64_MAX, last = 0;

    if (!c->tls_config || !tls_read(tmp, c, c->tls_config->cert_file, &own))
        return 0;
    for (size_t i = 0; i < own.n; i++)
        end = own.v[i]->until_s < end ? own.v[i]->until_s : end;
    if (!tls_read(tmp, c, c->tls_config->ca_file, &cas))
        return end;
    for (size_t i = 0; i < cas.n; i++)
        last = cas.v[i]->until_s > last ? cas.v[i]->until_s : last;
    return last < end ? last : end;
}

/* A list that is older than it should be holds on, but may lack whom its CA has revoked since. */
static void
tls_warn_crls(const void *ctx, const struct agent_config *c)
{
    const char *text = c->tls_config ? config_tls_text(c, c->tls_config->crl_file) : NULL;
    const char *ca = c->tls_config ? config_tls_text(c, c->tls_config->ca_file) : NULL;
    struct cert_list cas;
    struct cert_crl_list crls = {NULL, 0};

    if (!text || !ca || cert_read(ctx, ca, strlen(ca), &cas, NULL) < 0 ||
        cert_read_crls(ctx, text, strlen(text), &cas, &crls, NULL) < 0)
        return;
    for (size_t i = 0; i < crls.n; i++)
        if (crls.v[i]->next_s != 0 && crls.v[i]->next_s < clock_wall_ns() / NS_PER_S)
            log_warn("agent", "a list of crl_file is older than its CA wants: put a new one there",
                     "ca", crls.v[i]->issuer, "due", cert_time(ctx, crls.v[i]->next_s), NULL);
}

void
agent_tls_warn(const struct agent_config *c)
{
    auto_mem void *tmp = mem_ctx("tls");
    int64_t end = agent_tls_end(c), left = end - clock_wall_ns() / NS_PER_S;

    if (end > 0 && left < (int64_t)CERT_WARN_DAYS * DAY_S)
        log_warn("agent",
                 left < 0 ? "the certificate of the tls block, or its CA, has expired"
                          : "the certificate of the tls block, or its CA, expires soon",
                 "expires", cert_time(tmp, end), "days", LOG_I64(left / DAY_S), NULL);
    tls_warn_crls(tmp, c);
}

/* --- the watch --- */

struct tls_watch {
    struct loop *loop;
    const struct agent_config *c;
    struct timer *timer;
};

static void
on_day(void *arg)
{
    struct tls_watch *w = arg;

    w->timer = timer_start(w->loop, DAY_MS, on_day, w);
    agent_tls_warn(w->c);
}

struct tls_watch *
tls_watch_start(const void *ctx, struct loop *loop, const struct agent_config *c)
{
    struct tls_watch *w = mem_new(ctx, struct tls_watch);
    *w = (struct tls_watch){.loop = loop, .c = c};
    on_day(w);
    return w;
}

void
tls_watch_stop(struct tls_watch *w)
{
    if (w)
        timer_stop(TAKE(w->timer));
}
