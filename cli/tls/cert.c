/* SPDX-License-Identifier: Apache-2.0
 *
 * tls cert create and info: certificates of servers, of clients and of who uses the command line.
 */
#include <arpa/inet.h>
#include <inttypes.h>

#include "cli/format.h"
#include "cli/connect.h"
#include "cli/tls/files.h"
#include "cli/tls/issue.h"
#include "common/duration.h"

enum { CERT_DAYS = 365 };

struct cert_options {
    bool server, client, cli;
    const char *ca, *key, *domain, *region;
    struct opt_list dns, ips;
    int64_t days;
};

/* A certificate's role: in its name, and in the words that are printed. */
struct cert_role {
    const char *name, *kind, *key_kind;
};

static const struct cert_role *
choose_role(const struct cert_options *o)
{
    static const struct cert_role roles[] = {
        {"server", "Server Certificate", "Server Certificate key"},
        {"client", "Client Certificate", "Client Certificate key"},
        {"cli", "Cli Certificate", "CLI Certificate key"}};
    if (o->server + o->client + o->cli != 1)
        return NULL;
    return &roles[o->server ? 0 : o->client ? 1 : 2];
}

static bool
is_address(const char *s)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, s, bytes) == 1 || inet_pton(AF_INET6, s, bytes) == 1;
}

/* NULL: the options go together. */
static const char *
find_mistake(struct cmd *c, const struct cert_options *o)
{
    if (!choose_role(o))
        return "Say whose certificate it is: -server, -client or -cli";
    if (str_empty(o->ca) || str_empty(o->key))
        return "-ca and -key name the files of the CA";
    if (o->days < 1 || o->days > ISSUE_DAYS_MAX)
        return mem_printf(c, "-days is 1 to %d", ISSUE_DAYS_MAX);
    if (!tls_name_valid(o->domain))
        return mem_printf(c, "-domain \"%s\" is no name of DNS", o->domain);
    if (!tls_name_valid(o->region))
        return mem_printf(c, "-region \"%s\" is no name of DNS", o->region);
    for (size_t i = 0; i < o->dns.n; i++)
        if (!tls_name_valid(o->dns.v[i]))
            return mem_printf(c, "-additional-dnsname \"%s\" is no name of DNS", o->dns.v[i]);
    for (size_t i = 0; i < o->ips.n; i++)
        if (!is_address(o->ips.v[i]))
            return mem_printf(c, "-additional-ipaddress \"%s\" is no IP address", o->ips.v[i]);
    return NULL;
}

/* Puts the domain in place of "#DOMAIN#". */
static const char *
expand_domain(struct cmd *c, const char *path, const char *domain)
{
    static const char word[] = "#DOMAIN#";
    const char *at = strstr(path, word);
    return at ? mem_printf(c, "%.*s%s%s", (int)(at - path), path, domain, at + strlen(word)) : path;
}

/* Says what is wrong with what was just made, as others would. */
static bool
judge_made(struct cmd *c, const struct issue *i, const struct tls_pair *p)
{
    struct err e = ERR_INIT;
    struct cert *ca = i->ca;
    struct cert_set s = {.cas = {&ca, 1}};
    struct cert_key *key;
    struct str_list errors = {NULL, 0}, warnings = {NULL, 0};

    if (cert_read(c, p->cert, strlen(p->cert), &s.chain, &e) < 0 ||
        cert_read_key(c, p->key, strlen(p->key), &key, &e) < 0) {
        cmd_fail(c, "%s", e.text);
        return false;
    }
    s.key = key;
    cert_judge(c, &s, cmd_now(c) / NS_PER_S, &errors, &warnings);
    if (errors.n > 0)
        cmd_fail(c, "Not written, for nobody would take it: %s", errors.v[0]);
    return errors.n == 0;
}

static bool
read_ca(struct cmd *c, const struct cert_options *o, struct issue *i)
{
    const char *ca = expand_domain(c, o->ca, o->domain), *key = expand_domain(c, o->key, o->domain);
    struct cert_list l;

    if (!tls_read_certs(c, "CA", ca, &l) || !(i->ca_key = tls_read_key(c, "CA key", key)))
        return false;
    i->ca = l.v[0];
    if (!i->ca->ca)
        return !cmd_fail(c, "\"%s\" holds no CA, but a certificate of another kind", ca);
    if (!cert_fits_key(i->ca, i->ca_key))
        return !cmd_fail(c, "\"%s\" is not the key of the CA in \"%s\"", key, ca);
    if (o->server)
        cmd_warn(c, "==> WARNING: A server's certificate lets its holder become a server, which "
                    "reads and\n    writes all state. Keep it on servers, as safe as the key of "
                    "the CA.");
    cmd_say(c, "==> Using CA file %s and CA key %s", ca, key);
    return true;
}

static int
cert_create(struct cmd *c, const struct cert_options *o)
{
    struct err e = ERR_INIT;
    const struct cert_role *role = choose_role(o);
    const char *prefix = mem_printf(c, "%s-%s-%s", o->region, role->name, o->domain);
    struct tls_pair p = {.kind = role->kind,
                         .key_kind = role->key_kind,
                         .colon = "",
                         .cert_path = mem_printf(c, "%s.pem", prefix),
                         .key_path = mem_printf(c, "%s-key.pem", prefix)};
    struct issue i = {.now_s = cmd_now(c) / NS_PER_S, .days = o->days};

    i.subject.name = mem_printf(c, "%s.%s.%s", role->name, o->region, o->domain);
    if (!tls_pair_free(c, &p) || !read_ca(c, o, &i))
        return 1;
    for (size_t k = 0; k < o->dns.n; k++)
        list_add(c, i.dns, o->dns.v[k]);
    list_add(c, i.dns, i.subject.name);
    list_add(c, i.dns, "localhost");
    for (size_t k = 0; k < o->ips.n; k++)
        list_add(c, i.ips, o->ips.v[k]);
    if (!o->cli)
        list_add(c, i.ips, "127.0.0.1");
    if (issue_make(c, &i, &p.cert, &p.key, &e) < 0)
        return cmd_fail(c, "%s", e.text);
    return judge_made(c, &i, &p) && tls_pair_write(c, &p) ? 0 : 1;
}

int
cmd_tls_cert_create(struct cmd *c)
{
    struct cert_options o = {.domain = "nomad",
                             .ca = "#DOMAIN#-agent-ca.pem",
                             .key = "#DOMAIN#-agent-ca-key.pem",
                             .days = CERT_DAYS};
    const struct opt opts[] = {
        {"additional-dnsname", OPT_LIST, &o.dns, "<name>",
         "One more DNS name of the holder, beside localhost; repeatable."},
        {"additional-ipaddress", OPT_LIST, &o.ips, "<address>",
         "One more IP address of the holder, beside 127.0.0.1; repeatable."},
        {"ca", OPT_STRING, &o.ca, "<path>",
         "Certificate of the CA (default #DOMAIN#-agent-ca.pem)."},
        {"cli", OPT_BOOL, &o.cli, NULL, "Make one for the command line."},
        {"client", OPT_BOOL, &o.client, NULL, "Make one for clients."},
        {"days", OPT_INT, &o.days, "<n>", "Days for which it is valid (default 365)."},
        {"domain", OPT_STRING, &o.domain, "<domain>",
         "End of its name (default \"nomad\", which is what agents look for)."},
        {"key", OPT_STRING, &o.key, "<path>", "Key of the CA (default #DOMAIN#-agent-ca-key.pem)."},
        {"region", OPT_STRING, &o.region, "<region>",
         "Region in its name (NOMAD_REGION; default \"global\")."},
        {"server", OPT_BOOL, &o.server, NULL, "Make one for servers."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.max = 0}, &rc))
        return rc;
    o.region = str_or(o.region, str_or(cmd_env("NOMAD_REGION"), "global"));
    const char *mistake = find_mistake(c, &o);
    return mistake ? cmd_fail(c, "%s", mistake) : cert_create(c, &o);
}

int
cmd_tls_cert_info(struct cmd *c)
{
    return tls_info(c, "certificate file", false);
}
