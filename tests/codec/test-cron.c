/* SPDX-License-Identifier: Apache-2.0
 *
 * When periodic jobs are due: cron expressions and time zones. Times were checked against Nomad's library.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "api/cron.h"
#include "common/duration.h"
#include "common/host/zone.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/test.h"

/* A file of TZif without a table: version 2, one type, and the rule. */
static size_t
tzif(uint8_t *out, const char *rule, int32_t off)
{
    uint8_t *p = out;
    for (int i = 0; i < 2; i++) {
        memset(p, 0, 44);
        memcpy(p, "TZif2", 5);
        p[39] = 1; /* typecnt */
        p[43] = 4; /* charcnt */
        p += 44;
        const uint8_t type[6] = {(uint8_t)((uint32_t)off >> 24), (uint8_t)((uint32_t)off >> 16),
                                 (uint8_t)((uint32_t)off >> 8), (uint8_t)off};
        memcpy(p, type, 6);
        memcpy(p + 6, "LMT", 4);
        p += 10;
    }
    return (size_t)(p - out) + (size_t)snprintf((char *)p, 256, "\n%s\n", rule);
}

static struct zone *
zone_of(const void *ctx, const char *rule)
{
    uint8_t file[512];
    struct zone *z = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(zone_parse(ctx, file, tzif(file, rule, 0), &z, &e), 0);
    return z;
}

#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"
#define NEW_YORK "EST5EDT,M3.2.0,M11.1.0"
#define LORD_HOWE "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"
#define KOLKATA "IST-5:30"

static int64_t
at(const char *text)
{
    int64_t ns;
    ck_assert_int_eq(time_parse(text, strlen(text), &ns), 0);
    return ns / NS_PER_S;
}

static const struct {
    const char *cron, *zone, *from, *next; /* next NULL: never */
} times[] = {
    {"* * * * *", NULL, "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
    {"* * * * * * *", NULL, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"},
    {"*/20 * * * * * *", NULL, "2026-01-01T00:00:41Z", "2026-01-01T00:01:00Z"},
    {"@daily", NULL, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
    {"@hourly", NULL, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"},
    {"@weekly", NULL, "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
    {"@monthly", NULL, "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"},
    {"@yearly", NULL, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
    {"0 3 1 1 * 2030", NULL, "2026-01-01T00:00:00Z", "2030-01-01T03:00:00Z"},
    {"0 3 1 1 * 2020", NULL, "2026-01-01T00:00:00Z", NULL},
    {"0 0 30 2 *", NULL, "2026-01-01T00:00:00Z", NULL},
    {"0 0 29 2 *", NULL, "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
    {"59 23 31 12 * 2099", NULL, "2026-01-01T00:00:00Z", "2099-12-31T23:59:00Z"},
    {"5/20 * * * *", NULL, "2026-01-01T00:46:00Z", "2026-01-01T01:05:00Z"},
    {"10-30/10,55 * * * *", NULL, "2026-01-01T00:31:00Z", "2026-01-01T00:55:00Z"},
    {"0 0 L * ?", NULL, "2026-02-01T00:00:00Z", "2026-02-28T00:00:00Z"},
    {"0 0 LW * *", NULL, "2026-01-31T12:00:00Z", "2026-02-27T00:00:00Z"}, /* the 28th is a Saturday */
    {"0 0 1W 8 *", NULL, "2026-01-01T00:00:00Z", "2026-08-03T00:00:00Z"}, /* the month is not left */
    {"0 0 15W 2 *", NULL, "2026-01-01T00:00:00Z", "2026-02-16T00:00:00Z"},
    {"0 0 * * 5L", NULL, "2026-02-01T00:00:00Z", "2026-02-27T00:00:00Z"},
    {"0 0 * * FriL", NULL, "2026-02-01T00:00:00Z", "2026-02-27T00:00:00Z"},
    {"0 0 * * 1#3", NULL, "2026-02-01T00:00:00Z", "2026-02-16T00:00:00Z"},
    {"0 0 * * 7", NULL, "2026-02-02T00:00:00Z", "2026-02-08T00:00:00Z"},
    {"0 0 13 * fri", NULL, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"}, /* either day */
    {"0 0 * JUN-august MON", NULL, "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"},
    {"0 12 * * *", BERLIN, "2026-01-01T00:00:00Z", "2026-01-01T11:00:00Z"},
    {"0 12 * * *", BERLIN, "2026-07-01T00:00:00Z", "2026-07-01T10:00:00Z"},
    {"30 5 * * *", KOLKATA, "2026-07-01T00:00:00Z", "2026-07-02T00:00:00Z"},
    /* forward: 2:00 to 2:59 is not there on 29 March */
    {"30 2 * * *", BERLIN, "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
    {"0 3 * * *", BERLIN, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
    {"*/30 * * * *", BERLIN, "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"},
    {"30 2 * * *", NEW_YORK, "2026-03-07T12:00:00Z", "2026-03-09T06:30:00Z"},
    /* back: 2:00 to 2:59 is there twice on 25 October */
    {"30 2 * * *", BERLIN, "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
    {"30 2 * * *", BERLIN, "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
    {"30 2 * * *", BERLIN, "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
    {"30 1 * * *", NEW_YORK, "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"},
    /* by half an hour */
    {"31 1 * * *", LORD_HOWE, "2019-04-06T12:00:00Z", "2019-04-06T14:31:00Z"},
    {"31 1 * * *", LORD_HOWE, "2019-04-06T14:31:00Z", "2019-04-06T15:01:00Z"},
    {"3 2 * * *", LORD_HOWE, "2019-10-05T12:00:00Z", "2019-10-06T15:03:00Z"},
};

START_TEST(times_that_are_due)
{
    auto_mem void *ctx = mem_ctx("test");
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        struct err e = ERR_INIT;
        struct periodic_config p = {.spec = times[i].cron};
        const struct zone *z = times[i].zone ? zone_of(ctx, times[i].zone) : NULL;
        struct cron_set s;
        ck_assert_msg(cron_set_parse(ctx, &p, z, &s, &e) == 0, "%s: %s", times[i].cron, e.text);
        int64_t got = cron_set_next(&s, at(times[i].from));
        int64_t want = times[i].next ? at(times[i].next) : CRON_NEVER;
        ck_assert_msg(got == want, "%s from %s: %lld, want %lld", times[i].cron, times[i].from,
                      (long long)got, (long long)want);
    }
}
END_TEST

static const struct {
    const char *cron, *text;
} wrong[] = {
    {"", "missing field(s)"},
    {"* * * *", "missing field(s)"},
    {"60 * * * *", "syntax error in minute field: '60'"},
    {"* 24 * * *", "syntax error in hour field: '24'"},
    {"* * 0 * *", "syntax error in day-of-month field: '0'"},
    {"* * 32 * *", "syntax error in day-of-month field: '32'"},
    {"* * * foo *", "syntax error in month field: 'foo'"},
    {"* * * * 8", "syntax error in day-of-week field: '8'"},
    {"* * * * 1#6", "syntax error in day-of-week field: '1#6'"},
    {"* * * * * 1969", "syntax error in year field: '1969'"},
    {"61 * * * * * *", "syntax error in second field: '61'"},
    {"*/0 * * * *", "invalid interval */0"},
    {"* */24 * * *", "invalid interval */24"},
    {", * * * *", "minute field: missing directive"},
    {"* 22-4 * * *", "nothing matches the hour field: a range begins behind its end"},
    {"* * * * -", "syntax error in day-of-week field: '-'"},
};

START_TEST(expressions_that_are_none)
{
    auto_mem void *ctx = mem_ctx("test");
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err e = ERR_INIT;
        const char *spec = wrong[i].cron;
        struct periodic_config p = {.specs = {&spec, 1}};
        struct cron_set s;
        ck_assert_int_lt(cron_set_parse(ctx, &p, NULL, &s, &e), 0);
        ck_assert_str_eq(e.text, wrong[i].text);
    }
}
END_TEST

START_TEST(the_last_of_several_missed_times)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    const char *specs[] = {"0 3 * * *", "30 * * * *"};
    struct periodic_config p = {.specs = {specs, 2}, .spec_type = "cron"};
    struct cron_set s;
    int64_t now = at("2026-05-05T03:10:00Z");
    ck_assert_int_eq(cron_set_parse(ctx, &p, NULL, &s, &e), 0);
    ck_assert_int_eq(cron_set_next(&s, now), at("2026-05-05T03:30:00Z"));
    ck_assert_int_eq(cron_set_last(&s, at("2026-01-01T00:00:00Z"), now), at("2026-05-05T03:00:00Z"));
    ck_assert_int_eq(cron_set_last(&s, at("2026-05-05T03:00:00Z"), now), CRON_NEVER);
    ck_assert_int_eq(cron_set_last(&s, now - 600, now - 600), CRON_NEVER);
    ck_assert_int_eq(cron_set_last(&s, now - 601, now - 600), now - 600);
}
END_TEST

START_TEST(a_block_says_all_that_is_wrong_with_it)
{
    auto_mem void *ctx = mem_ctx("test");
    struct str_list l = {0};
    const char *specs[] = {"x * * * *", "1 2 3"};
    struct periodic_config both = {.spec = "@daily", .specs = {specs, 2}, .spec_type = "cron"};
    cron_validate(ctx, &both, &l);
    ck_assert_uint_eq(l.n, 1);
    ck_assert_str_eq(l.v[0], "Only cron or crons may be used");
    l.n = 0;
    cron_validate(ctx, &(struct periodic_config){.specs = {specs, 2}, .spec_type = "cron"}, &l);
    ck_assert_uint_eq(l.n, 2);
    ck_assert_str_eq(l.v[0], "Invalid cron spec \"x * * * *\": syntax error in minute field: 'x'");
    ck_assert_str_eq(l.v[1], "Invalid cron spec \"1 2 3\": missing field(s)");
    l.n = 0;
    cron_validate(ctx, &(struct periodic_config){.spec_type = "moon"}, &l);
    ck_assert_str_eq(l.v[0], "Must specify a spec");
    ck_assert_str_eq(l.v[1], "Unknown periodic specification type \"moon\"");
}
END_TEST

START_TEST(zones)
{
    auto_mem void *ctx = mem_ctx("test");
    struct zone *z = zone_of(ctx, BERLIN);
    int64_t until;
    ck_assert_int_eq(zone_at(z, at("2026-07-01T00:00:00Z"), &until), 7200);
    ck_assert_int_eq(until, at("2026-10-25T01:00:00Z"));
    ck_assert_int_eq(zone_at(z, at("2026-03-29T00:59:59Z"), &until), 3600);
    ck_assert_int_eq(until, at("2026-03-29T01:00:00Z"));
    ck_assert_int_eq(zone_at(NULL, 5, &until), 0);
    ck_assert(until == INT64_MAX);
    ck_assert_int_eq(zone_at(zone_of(ctx, "<-03>3"), 5, &until), -10800);
    ck_assert(until == INT64_MAX);
    /* south of the equator it begins late in the year; days are told in other ways, too */
    z = zone_of(ctx, "AAA-1BBB,J60/0,300/24:30:15");
    ck_assert_int_eq(zone_at(z, at("2028-02-29T22:59:59Z"), &until), 3600);
    ck_assert_int_eq(until, at("2028-02-29T23:00:00Z"));
    const struct zone *found;
    struct err e = ERR_INIT;
    ck_assert_int_eq(zone_find("UTC", &found, &e), 0);
    ck_assert_ptr_null(found);
    ck_assert_int_lt(zone_find("../../etc/passwd", &found, &e), 0);
    ck_assert_str_eq(e.text, "time: invalid location name");
    err_clear(&e);
    ck_assert_int_lt(zone_find("Atlantis/Capital", &found, &e), 0);
    ck_assert_str_eq(e.text, "unknown time zone Atlantis/Capital");
}
END_TEST

/* A server without the package tzdata says so, and needs none for its own zone. */
START_TEST(a_server_without_zones_says_so)
{
    TEST_NEED("root");
    const struct zone *found;
    struct err e = ERR_INIT;
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    ck_assert_int_eq(mount("none", "/usr/share/zoneinfo", "tmpfs", 0, NULL), 0);
    ck_assert_int_lt(zone_find("America/Los_Angeles", &found, &e), 0);
    ck_assert_str_eq(e.text, "time zone America/Los_Angeles: this server has no time zone database "
                             "(package tzdata)");
    /* a link into the database that is not there, as Debian has it, or no file */
    ck_assert_int_eq(mount("none", "/etc", "tmpfs", 0, NULL), 0);
    ck_assert_int_eq(symlink("/usr/share/zoneinfo/Etc/UTC", "/etc/localtime"), 0);
    err_clear(&e);
    ck_assert_int_eq(zone_find("Local", &found, &e), 0);
    ck_assert_ptr_null(found);
}
END_TEST

/* Whatever a file holds: refused, or times that can be asked for. */
START_TEST(damaged_zone_files)
{
    uint8_t file[512];
    size_t n = tzif(file, BERLIN, 3600);
    for (size_t i = 0; i < n; i++)
        for (unsigned bit = 0; bit < 16; bit++) {
            uint8_t copy[512];
            struct zone *z = NULL;
            int64_t until;
            memcpy(copy, file, n);
            copy[i] ^= (uint8_t)(bit < 8 ? 1U << bit : 0);
            if (zone_parse(NULL, copy, bit < 8 ? n : i, &z, NULL) == 0) {
                (void)zone_at(z, at("2026-07-01T00:00:00Z"), &until);
                talloc_free(z);
            }
        }
}
END_TEST

TEST_SUITE("cron", times_that_are_due, expressions_that_are_none, the_last_of_several_missed_times,
           a_block_says_all_that_is_wrong_with_it, zones, a_server_without_zones_says_so,
           damaged_zone_files)
