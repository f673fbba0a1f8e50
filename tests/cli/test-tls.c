/* SPDX-License-Identifier: Apache-2.0
 *
 * tls ca and tls cert: what they write, say and refuse; and the reader of PEM below them, with texts
 * that somebody damaged. Each case has an empty directory for itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/tls/issue.h"
#include "common/fd.h"
#include "net/cert/pem.h"
#include "tests/cli/fake.h"
#include "tests/lib/test.h"

#define CA "nomad-agent-ca.pem"
#define CA_KEY "nomad-agent-ca-key.pem"
#define NOW_S INT64_C(1795262400) /* of fake_run() */
#define DAY_S INT64_C(86400)

static char dir[] = "/tmp/test-tls-XXXXXX";

static void
enter_dir(void)
{
    umask(022);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
}

static void
leave_dir(void)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, &e), 0);
}

static mode_t
mode_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static char *
slurp(const void *ctx, const char *path, size_t *ret_n)
{
    char *text;
    ck_assert_int_eq(file_read(ctx, AT_FDCWD, path, PEM_TEXT_MAX, &text, ret_n), 0);
    return text;
}

static struct cert *
first_cert(const void *ctx, const char *path)
{
    struct err e = ERR_INIT;
    struct cert_list l;
    size_t n;
    char *text = slurp(ctx, path, &n);
    ck_assert_msg(cert_read(ctx, text, n, &l, &e) == 0, "%s", e.text);
    return l.v[0];
}

static void
check_out_has(const char *line, int code, const char *want)
{
    ck_assert_int_eq(fake_run(line), code);
    ck_assert_msg(strstr(fake_out(), want) != NULL, "%s: \"%s\" is not in:\n%s%s", line, want,
                  fake_out(), fake_err());
}

static void
check_err_has(const char *line, const char *want)
{
    ck_assert_int_eq(fake_run(line), 1);
    ck_assert_msg(strstr(fake_err(), want) != NULL, "%s: \"%s\" is not in:\n%s%s", line, want,
                  fake_out(), fake_err());
}

START_TEST(ca_and_certificates_are_made)
{
    auto_mem void *ctx = mem_ctx("test");
    check_out("tls ca create", 0,
              "==> CA certificate saved to: " CA "\n"
              "==> CA certificate key saved to: " CA_KEY "\n");
    ck_assert_int_eq(mode_of(CA), 0644);
    ck_assert_int_eq(mode_of(CA_KEY), 0600);
    const struct cert *ca = first_cert(ctx, CA);
    ck_assert(ca->ca);
    ck_assert(str_prefix(ca->name, "Nomad Agent CA ") && str_suffix(ca->name, ca->serial));
    ck_assert_int_eq(ca->until_s, NOW_S + 1825 * DAY_S);

    check_out("tls cert create -server", 0,
              "==> Using CA file " CA " and CA key " CA_KEY "\n"
              "==> Server Certificate saved to global-server-nomad.pem\n"
              "==> Server Certificate key saved to global-server-nomad-key.pem\n");
    ck_assert_ptr_nonnull(strstr(fake_err(), "WARNING"));
    ck_assert_int_eq(mode_of("global-server-nomad-key.pem"), 0600);
    const struct cert *x = first_cert(ctx, "global-server-nomad.pem");
    ck_assert(!x->ca);
    ck_assert_str_eq(x->subject, "CN=server.global.nomad");
    ck_assert_str_eq(x->issuer_name, ca->name);
    ck_assert_int_eq(x->from_s, NOW_S);
    ck_assert_int_eq(x->until_s, NOW_S + 365 * DAY_S);
    ck_assert(cert_has_name(x, "server.global.nomad") && cert_has_name(x, "localhost"));
    ck_assert(!cert_has_name(x, "client.global.nomad"));

    check_out("tls cert create -client -region eu -days 3", 0,
              "==> Using CA file " CA " and CA key " CA_KEY "\n"
              "==> Client Certificate saved to eu-client-nomad.pem\n"
              "==> Client Certificate key saved to eu-client-nomad-key.pem\n");
    check_out_has("tls cert create -cli -additional-dnsname *.x.org -additional-ipaddress ::1 "
                  "-additional-ipaddress 10.0.0.7",
                  0, "==> CLI Certificate key saved to global-cli-nomad-key.pem\n");
    check_out_has("tls cert info global-cli-nomad.pem", 0,
                  "\nExpiry Date    2027-11-21 12:00:00 +0000 UTC\n"
                  "DNS Names      [*.x.org cli.global.nomad localhost]\n"
                  "IP Addresses   [::1 10.0.0.7]\n");
    check_out_has("tls ca info " CA, 0, "\nPermitted DNS Domains  []\n");
}
END_TEST

START_TEST(what_exists_is_left_alone)
{
    auto_mem void *ctx = mem_ctx("test");
    size_t n, m;
    ck_assert_int_eq(fake_run("tls ca create"), 0);
    char *before = slurp(ctx, CA_KEY, &n);
    check_err_has("tls ca create", "\"" CA "\" already exists");
    ck_assert_int_eq(unlink(CA), 0);
    check_err_has("tls ca create", "\"" CA_KEY "\" already exists");
    ck_assert_str_eq(slurp(ctx, CA_KEY, &m), before);
    /* a link that leads nowhere is no invitation either */
    ck_assert_int_eq(fake_run("tls ca create -domain x -name-constraint"), 0);
    ck_assert_int_eq(symlink("elsewhere", "global-cli-x.pem"), 0);
    check_err_has("tls cert create -cli -domain x", "\"global-cli-x.pem\" already exists");
    ck_assert_int_eq(access("elsewhere", F_OK), -1);
}
END_TEST

START_TEST(subject_and_domains_of_a_ca)
{
    check_err_has("tls ca create -common-name X", "needs -country");
    check_err_has("tls ca create -locality X", "needs -common-name");
    check_err_has("tls ca create -common-name X -country DE", "needs -organization");
    check_err_has("tls ca create -common-name X -country DE -organization O",
                  "needs -organizational-unit");
    check_err_has("tls ca create -common-name X -country Norway -organization O "
                  "-organizational-unit U",
                  "two letters");
    check_err_has("tls ca create -domain foo.com", "-domain needs -name-constraint");
    check_err_has("tls ca create -name-constraint", "needs the -domain");
    check_err_has("tls ca create -domain ../x -name-constraint", "no name of DNS");
    check_err_has("tls ca create -days 0", "-days is 1 to 36500");
    check_err_has("tls ca create -days 36501", "-days is 1 to 36500");
    ck_assert_int_eq(fake_run("tls ca create -common-name A,B=c -country DE -organization O "
                              "-organizational-unit U -province P -locality L -postal-code 1 "
                              "-street-address S -domain foo.com -name-constraint "
                              "-additional-domain bar.org"),
                     0);
    check_out_has("tls ca info foo.com-agent-ca.pem", 0, "  CN=A\\,B=c ");
    check_out_has("tls ca info foo.com-agent-ca.pem", 0,
                  ",OU=U,O=O,POSTALCODE=1,STREET=S,L=L,"
                  "ST=P,C=DE\n");
    check_out_has("tls ca info foo.com-agent-ca.pem", 0,
                  "Permitted DNS Domains  [foo.com localhost nomad bar.org]\n");
    check_err_has("tls cert create -server -domain foo.com -additional-dnsname evil.net",
                  "a name that its CA may not sign for");
    ck_assert_int_eq(access("global-server-foo.com.pem", F_OK), -1);
    check_out_has("tls cert create -server -domain foo.com -additional-dnsname a.bar.org", 0,
                  "saved to global-server-foo.com.pem");
}
END_TEST

START_TEST(wrong_wishes_are_refused)
{
    check_err_has("tls cert create -server", "\"" CA "\": No such file");
    ck_assert_int_eq(fake_run("tls ca create"), 0);
    check_err_has("tls cert create", "-server, -client or -cli");
    check_err_has("tls cert create -server -cli", "-server, -client or -cli");
    check_err_has("tls cert create -cli -additional-ipaddress 10.0.0.300", "no IP address");
    check_err_has("tls cert create -cli -additional-dnsname a,IP:1.2.3.4", "no name of DNS");
    check_err_has("tls cert create -cli -region a/b", "no name of DNS");
    check_err_has("tls cert create -cli -ca " CA_KEY, "no certificate in PEM");
    check_err_has("tls cert create -cli -key " CA, "no private key in PEM");
    ck_assert_int_eq(fake_run("tls cert create -cli"), 0);
    check_err_has("tls cert create -client -ca global-cli-nomad.pem", "holds no CA");
    check_err_has("tls cert create -client -key global-cli-nomad-key.pem", "not the key of the CA");
    check_err_has("tls cert info /dev/zero", "larger than any such file");
    check_err_has("tls cert info .", "Is a directory");
}
END_TEST

START_TEST(check_says_what_would_be_refused)
{
    ck_assert_int_eq(fake_run("tls ca create"), 0);
    ck_assert_int_eq(fake_run("tls cert create -server"), 0);
    ck_assert_int_eq(fake_run("tls cert create -client -region eu -days 20"), 0);
    check_out_has("tls cert check " CA " " CA_KEY
                  " global-server-nomad.pem global-server-nomad-key.pem",
                  0, "global-server-nomad.pem: good\n");
    check_out_has("tls cert check " CA " eu-client-nomad.pem", 0, "client of region \"eu\"");
    check_out_has("tls cert check " CA " eu-client-nomad.pem", 0, "in 20 days");
    check_out_has("tls cert check " CA " global-server-nomad.pem eu-client-nomad-key.pem", 1,
                  "eu-client-nomad-key.pem: REFUSED");
    check_out_has("tls cert check global-server-nomad.pem", 0, "no CA is among the files");
    /* signed by another CA */
    ck_assert_int_eq(rename(CA, "old"), 0);
    ck_assert_int_eq(rename(CA_KEY, "old-key"), 0);
    ck_assert_int_eq(fake_run("tls ca create"), 0);
    check_out_has("tls cert check " CA " global-server-nomad.pem", 1, "not among the CAs");
    check_out_has("tls cert check " CA " old global-server-nomad.pem", 0, "pem: good\n");
    check_err_has("tls cert check /dev/null", "neither a certificate nor a key");
}
END_TEST

/* --- judging at another time --- */

static void
issue_set(const void *ctx, const struct issue *i, struct cert_set *s)
{
    struct err e = ERR_INIT;
    const char *cert, *key;
    struct cert_key *k;
    ck_assert_msg(issue_make(ctx, i, &cert, &key, &e) == 0, "%s", e.text);
    ck_assert_int_eq(cert_read(ctx, cert, strlen(cert), &s->chain, &e), 0);
    ck_assert_int_eq(cert_read_key(ctx, key, strlen(key), &k, &e), 0);
    s->key = k;
}

static void
check_judged(const void *ctx, const struct cert_set *s, int64_t now_s, const char *error,
             const char *warning)
{
    struct str_list errors = {NULL, 0}, warnings = {NULL, 0};
    cert_judge(ctx, s, now_s, &errors, &warnings);
    ck_assert_msg(error ? errors.n == 1 && strstr(errors.v[0], error) : errors.n == 0,
                  "want \"%s\", %zu errors, the first \"%s\"", error, errors.n,
                  errors.n ? errors.v[0] : "");
    ck_assert_msg(warning ? warnings.n > 0 && strstr(warnings.v[0], warning) : warnings.n == 0,
                  "want \"%s\", have \"%s\"", warning, warnings.n ? warnings.v[0] : "");
}

START_TEST(dates_keys_and_chains_are_judged)
{
    auto_mem void *ctx = mem_ctx("test");
    struct cert_set ca = {.key = NULL}, other = {.key = NULL}, leaf = {.key = NULL};
    struct issue i = {.subject.name = "CA", .now_s = NOW_S, .days = 100};

    issue_set(ctx, &i, &ca);
    issue_set(ctx, &i, &other); /* the same name, another key */
    i.ca = ca.chain.v[0];
    i.ca_key = ca.key;
    i.subject.name = "server.global.nomad";
    list_add(ctx, i.dns, i.subject.name);
    i.days = 200;
    issue_set(ctx, &i, &leaf);
    leaf.cas = ca.chain;
    check_judged(ctx, &leaf, NOW_S, NULL, NULL);
    check_judged(ctx, &leaf, NOW_S - 1, "not valid before 2026-11-21 12:00:00", NULL);
    check_judged(ctx, &leaf, NOW_S + 200 * DAY_S + 1, "has expired at 2027-06-09", NULL);
    check_judged(ctx, &leaf, NOW_S + 101 * DAY_S, "certificate \"CA\"", NULL); /* its CA has */
    leaf.cas = other.chain;
    check_judged(ctx, &leaf, NOW_S, "certificate \"server.global.nomad\"", NULL);
    leaf.cas = (struct cert_list){NULL, 0};
    check_judged(ctx, &leaf, NOW_S + 180 * DAY_S, NULL, "in 20 days");
    leaf.key = other.key;
    check_judged(ctx, &leaf, NOW_S, "the key is not that of", NULL);
}
END_TEST

/* --- hostile texts --- */

static void
check_refused(const char *text, const char *cert, const char *key)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT, k = ERR_INIT;
    struct cert_list l;
    struct cert_key *got;
    ck_assert_int_lt(cert_read(ctx, text, strlen(text), &l, &e), 0);
    ck_assert_msg(strstr(e.text, cert) != NULL, "want \"%s\": \"%s\"", cert, e.text);
    ck_assert_int_lt(cert_read_key(ctx, text, strlen(text), &got, &k), 0);
    ck_assert_msg(strstr(k.text, key) != NULL, "want \"%s\": \"%s\"", key, k.text);
}

START_TEST(damaged_texts_are_refused)
{
    static const char no_cert[] = "no certificate in PEM", no_key[] = "no private key in PEM";
    check_refused("", no_cert, no_key);
    check_refused("hello\n-----BEGIN\n-----END X-----\n", no_cert, no_key);
    check_refused("-----BEGIN X-----\nAA==\n-----END X-----", no_cert, no_key);
    check_refused("a\n-----BEGIN X-----\nAA==\n", "line 2: \"X\" has no end", "has no end");
    check_refused("-----BEGIN X-----\n-----BEGIN X-----\n", "has no end", "has no end");
    check_refused("-----BEGIN X-----\nAA==\n-----END Y-----\n", "line 3: \"X\" ends as \"Y\"",
                  "ends as");
    check_refused("-----BEGIN X-----\nAA=\n-----END X-----\n", "not base64", "not base64");
    check_refused("-----BEGIN X-----\nA;==\n-----END X-----\n", "not base64", "not base64");
    check_refused("\r\n-----BEGIN CERTIFICATE-----\r\nMAA=\r\n-----END CERTIFICATE-----\r\n",
                  "line 2: the certificate is damaged", no_key);
    check_refused("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n", no_cert,
                  "line 1: the key is damaged");
    check_refused("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n"
                  "-----END ENCRYPTED PRIVATE KEY-----\n",
                  no_cert, "the key is encrypted");
    check_refused("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMAA=\n"
                  "-----END RSA PRIVATE KEY-----\n",
                  no_cert, "the key is encrypted");
}
END_TEST

/* Every truncation of a good text, and every byte of it changed, is read or refused: never worse. */
START_TEST(any_damage_to_a_good_text_is_survived)
{
    auto_mem void *ctx = mem_ctx("test");
    struct issue i = {.subject.name = "CA", .now_s = NOW_S, .days = 100};
    struct err e = ERR_INIT;
    const char *cert, *key;
    ck_assert_int_eq(issue_make(ctx, &i, &cert, &key, &e), 0);
    char *both = mem_printf(ctx, "%s%s", cert, key);
    size_t n = strlen(both), read = 0;
    for (size_t k = 0; k < 2 * n; k++) {
        auto_mem void *tmp = mem_ctx("damaged");
        struct err e1 = ERR_INIT, e2 = ERR_INIT;
        struct cert_list l;
        struct cert_key *got;
        char *text = mem_strdup(tmp, both);
        size_t len = k < n ? k : n;
        if (k >= n)
            text[k - n] ^= 1;
        read += cert_read(tmp, text, len, &l, &e1) == 0;
        read += cert_read_key(tmp, text, len, &got, &e2) == 0;
    }
    ck_assert_uint_gt(read, n / 2); /* damage to one is none to the other */
    ck_assert_uint_lt(read, 4 * n);
}
END_TEST

START_TEST(sizes_are_bounded)
{
    auto_mem void *ctx = mem_ctx("test");
    auto_buf struct buf b = BUF_INIT(4 << 20);
    struct err e = ERR_INIT;
    struct cert_list l;
    buf_puts(&b, "-----BEGIN X-----\n");
    while (b.len < 200 << 10)
        buf_puts(&b, "AAAA\n");
    buf_puts(&b, "-----END X-----\n");
    ck_assert_int_eq(cert_read(ctx, buf_str(&b), b.len, &l, &e), -ERR_LIMIT);
    buf_reset(&b);
    err_clear(&e);
    for (int i = 0; i <= PEM_BLOCKS_MAX; i++)
        buf_puts(&b, "-----BEGIN X-----\n-----END X-----\n");
    ck_assert_int_eq(cert_read(ctx, buf_str(&b), b.len, &l, &e), -ERR_LIMIT);
    buf_reset(&b);
    err_clear(&e);
    while (b.len <= PEM_TEXT_MAX)
        buf_puts(&b, "text\n");
    ck_assert_int_eq(cert_read(ctx, buf_str(&b), b.len, &l, &e), -ERR_LIMIT);
    err_clear(&e);
    ck_assert_int_eq(cert_read(ctx, "a\0b", 3, &l, &e), -ERR_INVALID);
}
END_TEST

TEST_SUITE_FIXTURE("cli tls", 60, enter_dir, leave_dir, ca_and_certificates_are_made,
                   what_exists_is_left_alone, subject_and_domains_of_a_ca, wrong_wishes_are_refused,
                   check_says_what_would_be_refused, dates_keys_and_chains_are_judged,
                   damaged_texts_are_refused, any_damage_to_a_good_text_is_survived,
                   sizes_are_bounded)
