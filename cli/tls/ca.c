/* SPDX-License-Identifier: Apache-2.0
 *
 * tls ca create and info: the authority that signs the certificates of a fleet.
 */
#include "cli/format.h"
#include "cli/tls/files.h"
#include "cli/tls/issue.h"
#include "common/duration.h"

enum { CA_DAYS = 5 * 365 };

struct ca_options {
    struct issue_subject subject;
    const char *domain;
    bool constraint;
    struct opt_list more; /* domains */
    int64_t days;
};

/* Whoever names a part of the subject names those without which it says nothing. */
static const char *
find_missing(const struct issue_subject *s)
{
    const struct {
        const char *option, *value;
        bool needed;
    } parts[] = {{"common-name", s->name, true},          {"country", s->country, true},
                 {"organization", s->organization, true}, {"organizational-unit", s->unit, true},
                 {"province", s->province, false},        {"locality", s->locality, false},
                 {"street-address", s->street, false},    {"postal-code", s->postal_code, false}};
    bool custom = false;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        custom |= !str_empty(parts[i].value);
    for (size_t i = 0; custom && i < ARRAY_LEN(parts); i++)
        if (parts[i].needed && str_empty(parts[i].value))
            return parts[i].option;
    return NULL;
}

/* NULL: the options go together. */
static const char *
find_mistake(struct cmd *c, const struct ca_options *o)
{
    const char *missing = find_missing(&o->subject);
    bool usual = str_eq(o->domain, "nomad");

    if (missing)
        return mem_printf(c, "A CA with a subject of its own needs -%s", missing);
    if (!usual && !o->constraint)
        return "-domain needs -name-constraint: it is what the CA is held to";
    if (usual && o->constraint)
        return "-name-constraint needs the -domain that the CA is held to";
    if (o->days < 1 || o->days > ISSUE_DAYS_MAX)
        return mem_printf(c, "-days is 1 to %d", ISSUE_DAYS_MAX);
    if (o->more.n > 0 && !o->constraint)
        return "-additional-domain needs -name-constraint";
    if (!tls_name_valid(o->domain))
        return mem_printf(c, "-domain \"%s\" is no name of DNS", o->domain);
    for (size_t i = 0; i < o->more.n; i++)
        if (!tls_name_valid(o->more.v[i]))
            return mem_printf(c, "-additional-domain \"%s\" is no name of DNS", o->more.v[i]);
    return NULL;
}

static int
ca_create(struct cmd *c, struct ca_options *o)
{
    struct err e = ERR_INIT;
    struct tls_pair p = {
        .kind = "CA certificate",
        .key_kind = "CA certificate key",
        .colon = ":",
        .cert_path = mem_printf(c, "%s-agent-ca.pem", o->domain),
        .key_path = mem_printf(c, "%s-agent-ca-key.pem", o->domain),
    };
    struct issue i = {
        .subject = o->subject, .number = true, .now_s = cmd_now(c) / NS_PER_S, .days = o->days};

    if (!tls_pair_free(c, &p))
        return 1;
    if (str_empty(i.subject.name)) {
        i.subject.name = "Nomad Agent CA";
        i.subject.organization = "Paddock";
    }
    if (o->constraint) {
        /* agents look for names below "nomad", whatever the domain */
        list_add(c, i.permitted, o->domain);
        list_add(c, i.permitted, "localhost");
        list_add(c, i.permitted, "nomad");
        for (size_t k = 0; k < o->more.n; k++)
            list_add(c, i.permitted, o->more.v[k]);
    }
    if (issue_make(c, &i, &p.cert, &p.key, &e) < 0)
        return cmd_fail(c, "%s", e.text);
    return tls_pair_write(c, &p) ? 0 : 1;
}

int
cmd_tls_ca_create(struct cmd *c)
{
    struct ca_options o = {.domain = "nomad", .days = CA_DAYS};
    const struct opt opts[] = {
        {"additional-domain", OPT_LIST, &o.more, "<domain>",
         "One more domain that the CA may sign for, with -name-constraint; repeatable."},
        {"common-name", OPT_STRING, &o.subject.name, "<name>",
         "Name of the CA, which its serial number follows (default \"Nomad Agent CA\")."},
        {"country", OPT_STRING, &o.subject.country, "<code>", "Country of the CA, two letters."},
        {"days", OPT_INT, &o.days, "<n>", "Days for which it is valid (default 1825)."},
        {"domain", OPT_STRING, &o.domain, "<domain>",
         "Domain that the CA may sign for, with -name-constraint (default \"nomad\")."},
        {"locality", OPT_STRING, &o.subject.locality, "<name>", "Place of the CA."},
        {"name-constraint", OPT_BOOL, &o.constraint, NULL,
         "Hold the CA to names below -domain, localhost, nomad and each -additional-domain."},
        {"organization", OPT_STRING, &o.subject.organization, "<name>", "Organization of the CA."},
        {"organizational-unit", OPT_STRING, &o.subject.unit, "<name>",
         "Organizational unit of the CA."},
        {"postal-code", OPT_STRING, &o.subject.postal_code, "<code>", "Postal code of the CA."},
        {"province", OPT_STRING, &o.subject.province, "<name>", "Province of the CA."},
        {"street-address", OPT_STRING, &o.subject.street, "<address>", "Street of the CA."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.max = 0}, &rc))
        return rc;
    const char *mistake = find_mistake(c, &o);
    return mistake ? cmd_fail(c, "%s", mistake) : ca_create(c, &o);
}

int
cmd_tls_ca_info(struct cmd *c)
{
    return tls_info(c, "CA file", true);
}
