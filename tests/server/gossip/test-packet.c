/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets of gossip as bytes, sealed or not, and which of them are new.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/gossip/domain.h"
#include "server/gossip/guard.h"
#include "server/gossip/keys.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

static const uint8_t nonce[PACKET_NONCE] = "123456789ab";
static const struct gossip_keys none;

static const struct server_hello hello = {.id = 7,
                                          .name = "a.global",
                                          .region = "global",
                                          .addr = "10.0.0.1:4647",
                                          .serf = "10.0.0.1:4648",
                                          .expect = 3};
static const struct statement said[] = {
    {MEMBER_ALIVE, 7, 7, 12, &hello},
    {MEMBER_FAILED, 8, 9, 4, NULL},
};
static const struct packet some = {.kind = PACKET_ASK,
                                   .from = 1,
                                   .to = 2,
                                   .session = 3,
                                   .seq = 4,
                                   .cookie = 5,
                                   .token = 6,
                                   .target = 7,
                                   .more = true,
                                   .addr = "10.0.0.1:4648",
                                   .says = {(struct statement *)(uintptr_t)said, 2}};

static struct gossip_keys
ring(size_t n_bytes, uint8_t first, size_t n)
{
    struct gossip_keys k = {.n = n};
    for (size_t i = 0; i < n; i++) {
        k.v[i].n = n_bytes;
        memset(k.v[i].v, (int)(first + i), n_bytes);
    }
    return k;
}

static void
round_trip(const struct gossip_keys *put, const struct gossip_keys *get)
{
    auto_mem void *tmp = mem_ctx("test");
    auto_buf struct buf b = BUF_INIT(GOSSIP_PACKET_MAX);
    struct packet p;
    packet_put(&b, &some, put, nonce);
    ck_assert_int_eq(buf_error(&b), 0);
    ck_assert_int_eq(packet_get(tmp, b.data, b.len, get, &p), PACKET_FINE);
    ck_assert(p.kind == some.kind && p.from == 1 && p.to == 2 && p.session == 3 && p.seq == 4);
    ck_assert(p.cookie == 5 && p.token == 6 && p.target == 7 && p.more && p.says.n == 2);
    ck_assert_str_eq(p.addr, some.addr);
    ck_assert(codec_equal(&type_server_hello, p.says.v[0].about, &hello, 0));
    ck_assert(p.says.v[1].state == MEMBER_FAILED && p.says.v[1].about == NULL && p.says.v[1].by == 9);
    for (size_t n = 0; n < b.len; n++) /* cut short */
        ck_assert_int_ne(packet_get(tmp, b.data, n, get, &p), PACKET_FINE);
    for (size_t i = 0; i < 8 * b.len; i++) { /* one bit is another */
        b.data[i / 8] ^= (uint8_t)(1 << i % 8);
        ck_assert_int_ne(packet_get(tmp, b.data, b.len, get, &p), PACKET_FINE);
        b.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
}

START_TEST(packets_round_trip)
{
    round_trip(&none, &none);
    for (size_t n = 16; n <= 32; n += 8) {
        struct gossip_keys k = ring(n, 1, 3);
        round_trip(&k, &k);
    }
}
END_TEST

START_TEST(a_ring_opens_by_all_its_keys)
{
    struct gossip_keys old = ring(32, 1, 1), both = ring(32, 0, 2);
    round_trip(&old, &both);
    auto_mem void *tmp = mem_ctx("test");
    auto_buf struct buf b = BUF_INIT(GOSSIP_PACKET_MAX);
    struct packet p;
    packet_put(&b, &some, &both, nonce); /* by its first one */
    ck_assert_int_eq(packet_get(tmp, b.data, b.len, &old, &p), PACKET_FORGED);
    ck_assert_int_eq(packet_get(tmp, b.data, b.len, &none, &p), PACKET_NO_KEY);
    ck_assert(memmem(b.data, b.len, "10.0.0.1", 8) == NULL);
    buf_reset(&b);
    packet_put(&b, &some, &none, nonce);
    ck_assert_int_eq(packet_get(tmp, b.data, b.len, &both, &p), PACKET_OPEN);
    b.data[0]++;
    ck_assert_int_eq(packet_get(tmp, b.data, b.len, &none, &p), PACKET_VERSION_OTHER);
    for (int i = 0; i < PACKET_FAULTS; i++)
        ck_assert(!str_empty(packet_fault_text((enum packet_fault)i)));
}
END_TEST

/* Words about a member that nobody could reach, or show. */
START_TEST(members_without_an_address_are_refused)
{
    auto_mem void *tmp = mem_ctx("test");
    struct server_hello bad[] = {hello, hello, hello, hello, hello};
    char longer[GOSSIP_ADDR_MAX + 2];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    bad[0].serf = "";
    bad[1].name = "two\nlines";
    bad[2].id = 8;
    bad[3].addr = longer;
    bad[4].cluster = "\x1b[2J";
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_buf struct buf b = BUF_INIT(GOSSIP_PACKET_MAX);
        struct statement st = {MEMBER_ALIVE, 7, 7, 1, &bad[i]};
        struct packet p = {.kind = PACKET_TELL, .from = 1, .session = 1, .says = {&st, 1}};
        packet_put(&b, &p, &none, nonce);
        ck_assert_int_eq(packet_get(tmp, b.data, b.len, &none, &p), PACKET_BAD);
    }
    char much[GOSSIP_ABOUT_MAX + 1];
    memset(much, 'x', sizeof(much) - 1);
    much[sizeof(much) - 1] = '\0';
    bad[0] = hello;
    bad[0].build = much;
    ck_assert_uint_eq(packet_about_size(&bad[0]), 0);
    ck_assert_uint_gt(packet_about_size(&hello), 20);
}
END_TEST

/* --- what is new --- */

static const uint64_t key[2] = {1, 2};

static enum guard_says
take(struct guard *g, uint64_t session, uint64_t seq, uint64_t *cookie)
{
    struct packet p = {.kind = PACKET_TELL, .from = 9, .session = session, .seq = seq, .cookie = *cookie};
    return guard_take(g, &p, false, cookie);
}

START_TEST(a_packet_is_taken_once)
{
    struct guard *g = guard_new(NULL, key);
    uint64_t cookie = 0;
    ck_assert_int_eq(take(g, 5, 100, &cookie), GUARD_WHO);
    ck_assert_uint_ne(cookie, 0);
    ck_assert_int_eq(take(g, 5, 101, &cookie), GUARD_FRESH);
    ck_assert_int_eq(take(g, 5, 101, &cookie), GUARD_AGAIN);
    ck_assert_int_eq(take(g, 5, 100, &cookie), GUARD_FRESH); /* they overtake each other */
    ck_assert_int_eq(take(g, 5, 100, &cookie), GUARD_AGAIN);
    ck_assert_int_eq(take(g, 5, 165, &cookie), GUARD_FRESH);
    ck_assert_int_eq(take(g, 5, 101, &cookie), GUARD_AGAIN); /* too old to tell */
    ck_assert_int_eq(take(g, 5, 102, &cookie), GUARD_FRESH);
    ck_assert_int_eq(take(g, 5, 102, &cookie), GUARD_AGAIN);
    ck_assert_int_eq(take(g, 5, 1000, &cookie), GUARD_FRESH);
    ck_assert_int_eq(take(g, 5, 999, &cookie), GUARD_FRESH);
    mem_free(g);
}
END_TEST

START_TEST(an_old_session_does_not_come_back)
{
    struct guard *g = guard_new(NULL, key);
    uint64_t first = 0, second = 0, again = 0;
    ck_assert_int_eq(take(g, 5, 1, &first), GUARD_WHO);
    ck_assert_int_eq(take(g, 5, 2, &first), GUARD_FRESH);
    uint64_t wrong = first;
    ck_assert_int_eq(take(g, 6, 1, &wrong), GUARD_WHO);
    ck_assert_int_eq(take(g, 6, 1, &second), GUARD_WHO);
    ck_assert_int_eq(take(g, 6, 2, &second), GUARD_FRESH);
    again = first; /* what was recorded in the first one, with its cookie */
    ck_assert_int_eq(take(g, 5, 2, &again), GUARD_WHO);
    ck_assert_uint_ne(again, first);
    ck_assert_int_eq(take(g, 6, 3, &second), GUARD_FRESH); /* and it has not ended the new one */
    guard_forget(g, 9);
    again = second;
    ck_assert_int_eq(take(g, 6, 4, &again), GUARD_WHO);
    mem_free(g);
}
END_TEST

START_TEST(an_answer_proves_itself)
{
    struct guard *g = guard_new(NULL, key);
    uint64_t cookie = 0;
    struct packet p = {.kind = PACKET_ACK, .from = 9, .session = 3, .seq = 1};
    ck_assert_int_eq(guard_take(g, &p, true, &cookie), GUARD_FRESH);
    ck_assert_int_eq(guard_take(g, &p, true, &cookie), GUARD_AGAIN);
    ck_assert_int_eq(take(g, 3, 2, &cookie), GUARD_FRESH);
    mem_free(g);
}
END_TEST

START_TEST(senders_are_bounded)
{
    struct guard *g = guard_new(NULL, key);
    uint64_t cookie = 0;
    for (uint64_t id = 1; id <= 3 * GOSSIP_MEMBERS_MAX; id++) {
        struct packet p = {.kind = PACKET_ACK, .from = id, .session = 3, .seq = 1};
        ck_assert_int_eq(guard_take(g, &p, true, &cookie), GUARD_FRESH);
    }
    struct packet last = {.kind = PACKET_TELL, .from = 3 * GOSSIP_MEMBERS_MAX, .session = 3, .seq = 1};
    ck_assert_int_eq(guard_take(g, &last, false, &cookie), GUARD_AGAIN);
    struct packet first = {.kind = PACKET_TELL, .from = 1, .session = 3, .seq = 1};
    ck_assert_int_eq(guard_take(g, &first, false, &cookie), GUARD_WHO);
    mem_free(g);
}
END_TEST

/* --- key rings --- */

static const char first_key[] = "AAAAAAAAAAAAAAAAAAAAAA==",
                  other_key[] = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

START_TEST(a_ring_changes_by_steps)
{
    struct gossip_keys r = {0};
    struct gossip_key a, b;
    struct err e = ERR_INIT;
    ck_assert_int_eq(keys_parse(first_key, &a, &e), 0);
    ck_assert_int_eq(keys_parse(other_key, &b, &e), 0);
    ck_assert(a.n == 16 && b.n == 32 && b.v[31] == 31);
    ck_assert_int_eq(keys_change(&r, KEYS_INSTALL, &a, &e), -ERR_CONFLICT); /* nothing is encrypted */
    r = (struct gossip_keys){.v = {a}, .n = 1};
    ck_assert_int_eq(keys_change(&r, KEYS_USE, &b, NULL), -ERR_NOT_FOUND);
    ck_assert_int_eq(keys_change(&r, KEYS_REMOVE, &a, NULL), -ERR_CONFLICT);
    ck_assert_int_eq(keys_change(&r, KEYS_INSTALL, &b, NULL), 0);
    ck_assert_int_eq(keys_change(&r, KEYS_INSTALL, &b, NULL), 0);
    ck_assert(r.n == 2 && r.v[0].n == 16);
    ck_assert_int_eq(keys_change(&r, KEYS_USE, &b, NULL), 0);
    ck_assert(r.n == 2 && r.v[0].n == 32 && r.v[1].n == 16 && r.v[1].n == 16);
    ck_assert_int_eq(keys_change(&r, KEYS_REMOVE, &a, NULL), 0);
    ck_assert_int_eq(keys_change(&r, KEYS_REMOVE, &a, NULL), 0);
    ck_assert(r.n == 1 && r.v[0].n == 32);
    for (uint8_t i = 0; r.n < GOSSIP_KEYS_MAX; i++) {
        a.v[0] = i;
        ck_assert_int_eq(keys_change(&r, KEYS_INSTALL, &a, NULL), 0);
    }
    a.v[0]++;
    ck_assert_int_eq(keys_change(&r, KEYS_INSTALL, &a, NULL), -ERR_LIMIT);
    static const char *const bad[] = {"", "AAAA", "no base64 at all",
                                      "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISI="};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_int_eq(keys_parse(bad[i], &a, NULL), -ERR_INVALID);
}
END_TEST

START_TEST(a_ring_is_kept)
{
    auto_mem void *tmp = mem_ctx("test");
    const char *path = mem_printf(tmp, "%s/serf.keyring", tmp_dir());
    struct gossip_keys r, again;
    struct gossip_key b;
    struct err e = ERR_INIT;
    struct stat st;
    ck_assert_int_eq(keys_load(path, NULL, &r, &e), 0);
    ck_assert_uint_eq(r.n, 0);
    ck_assert_int_eq(keys_load(path, first_key, &r, &e), 0);
    ck_assert_uint_eq(r.n, 1);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_int_eq(keys_parse(other_key, &b, &e), 0);
    ck_assert_int_eq(keys_change(&r, KEYS_INSTALL, &b, &e), 0);
    ck_assert_int_eq(keys_save(path, &r, &e), 0);
    ck_assert_int_eq(keys_load(path, NULL, &again, &e), 0);
    ck_assert(again.n == 2 && memcmp(&r, &again, sizeof(r)) == 0);
    ck_assert_str_eq(keys_text(tmp, &again.v[1]), other_key);
    ck_assert_int_eq(keys_load(path, "no key", &again, &e), -ERR_INVALID);
    static const char *const bad[] = {"", "[]", "{}",
                                      "[\"AAAA\"]", "[1]", "[\"AAAAAAAAAAAAAAAAAAAAAA==\""};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err_clear(&e);
        ck_assert_int_eq(file_write_atomic(AT_FDCWD, path, bad[i], strlen(bad[i]), 0600), 0);
        ck_assert_int_eq(keys_load(path, first_key, &again, &e), -ERR_CORRUPT);
    }
}
END_TEST

/* --- failure domains --- */

START_TEST(a_rack_is_one_event)
{
    auto_mem void *tmp = mem_ctx("test");
    struct domains *d = domains_new(tmp);
    struct server_hello a = hello, b = hello, c = hello, other = hello;
    struct domain_event e;
    a.zone = b.zone = c.zone = other.zone = "r1";
    b.name = "b.global";
    other.region = "eu";
    ck_assert_int_eq(domains_due(d), INT64_MAX);
    ck_assert(domains_add(d, 1000, &a) && domains_add(d, 2500, &b) && domains_add(d, 2600, &other));
    c.zone = "r2";
    ck_assert(domains_add(d, 2600, &c));
    ck_assert_int_eq(domains_due(d), 1000 + DOMAIN_MS);
    ck_assert(!domains_take(d, tmp, 1000 + DOMAIN_MS - 1, &e));
    domains_wait(d, 1000 + DOMAIN_MS, &b); /* one more is suspected: it is not whole yet */
    ck_assert(!domains_take(d, tmp, 1000 + DOMAIN_MS, &e));
    ck_assert_int_eq(domains_due(d), 1000 + DOMAIN_MS + DOMAIN_WAIT_MS);
    ck_assert(domains_take(d, tmp, 1000 + DOMAIN_MS + DOMAIN_WAIT_MS, &e));
    ck_assert(e.servers.n == 2 && strcmp(e.zone, "r1") == 0 && strcmp(e.servers.v[1]->name, "b.global") == 0);
    ck_assert(domains_take(d, tmp, 2600 + DOMAIN_MS, &e) && e.servers.n == 1 && strcmp(e.region, "eu") == 0);
    ck_assert(domains_take(d, tmp, 2600 + DOMAIN_MS, &e) && e.servers.n == 1 && strcmp(e.zone, "r2") == 0);
    ck_assert_int_eq(domains_due(d), INT64_MAX);
    ck_assert(domains_add(d, 0, &a)); /* not for ever */
    domains_wait(d, DOMAIN_MOST_MS - 1, &b);
    ck_assert_int_eq(domains_due(d), DOMAIN_MOST_MS);
    ck_assert(domains_take(d, tmp, DOMAIN_MOST_MS, &e));
}
END_TEST

TEST_SUITE("gossip packets", a_rack_is_one_event, a_ring_changes_by_steps,
           a_ring_is_kept,
           packets_round_trip, a_ring_opens_by_all_its_keys,
           members_without_an_address_are_refused, a_packet_is_taken_once,
           an_old_session_does_not_come_back, an_answer_proves_itself, senders_are_bounded)
