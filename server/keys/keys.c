/* SPDX-License-Identifier: Apache-2.0
 *
 * The key ring (see keys.h): the wrapping key and its file; root keys, unwrapped once and kept; and
 * new ones. Variables: keys_items.c.
 */
#include "server/keys/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#include "api/vars/vars.h"
#include "codec/base64.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/keys/transit.h"
#include "server/limits.h"
#include "server/state/state.h"

enum { RSA_BITS = 2048, DER_MAX = 4096, FILE_BYTES_MAX = 1024 };

struct keys {
    char *path, *plain;
    bool given; /* the file is the operator's */
    const struct agent_keyring *transit;
    pthread_mutex_t storing; /* the file; may be held for as long as a server takes to answer */
    pthread_mutex_t lock;    /* of what follows */
    uint8_t *wrapping;    /* NULL: it is not here */
    char name[KEYS_WRAPPING_NAME];
    struct key *known[KEYS_KNOWN_MAX]; /* in clear, the newest first */
    size_t n;
};

/* --- the wrapping key --- */

/* The beginning of a hash, which tells nothing of the key. */
static void
name_wrapping(const uint8_t key[SEAL_KEY], char name[KEYS_WRAPPING_NAME])
{
    static const char about[] = "paddock wrapping key", hex[] = "0123456789abcdef";
    uint8_t text[sizeof(about) + SEAL_KEY], hash[EVP_MAX_MD_SIZE];

    memcpy(text, about, sizeof(about));
    memcpy(text + sizeof(about), key, SEAL_KEY);
    ASSERT(EVP_Digest(text, sizeof(text), hash, NULL, EVP_sha256(), NULL) == 1);
    for (size_t i = 0; i < (KEYS_WRAPPING_NAME - 1) / 2; i++) {
        name[2 * i] = hex[hash[i] >> 4];
        name[2 * i + 1] = hex[hash[i] & 15];
    }
    name[KEYS_WRAPPING_NAME - 1] = '\0';
    seal_wipe(text, sizeof(text));
}

static void
set_wrapping(struct keys *k, const uint8_t key[SEAL_KEY])
{
    if (k->wrapping == NULL)
        k->wrapping = seal_alloc(SEAL_KEY);
    memcpy(k->wrapping, key, SEAL_KEY);
    name_wrapping(key, k->name);
}

/* Reads a file without the ends of its lines. -ENOENT: it is not there. */
static int
read_file(const void *ctx, const char *path, char **ret, size_t *ret_n, struct err *e)
{
    int rc = file_read(ctx, AT_FDCWD, path, FILE_BYTES_MAX, ret, ret_n);

    if (rc < 0)
        return err_set(e, rc, "read the wrapping key \"%s\": %s", path, err_name(rc));
    while (*ret_n > 0 && strchr("\r\n ", (*ret)[*ret_n - 1]) != NULL)
        (*ret)[--*ret_n] = '\0';
    return 0;
}

/* -ENOENT: it is not there. */
static int
read_plain(const char *path, uint8_t ret[SEAL_KEY], struct err *e)
{
    auto_mem void *tmp = mem_ctx("wrapping");
    char *text = NULL;
    size_t n = 0, got = 0;
    uint8_t key[BASE64_DECODED(FILE_BYTES_MAX)] = {0};

    if (read_file(tmp, path, &text, &n, e) < 0)
        return e->code;
    if (base64_decode(text, n, key, &got) < 0 || got != SEAL_KEY)
        err_set(e, -ERR_INVALID,
                "the wrapping key \"%s\" is not %d bytes in base64: restore it, or copy that of "
                "another server of this region",
                path, SEAL_KEY);
    else
        memcpy(ret, key, SEAL_KEY);
    seal_wipe(key, sizeof(key));
    seal_wipe(text, n);
    return e->code;
}

/* -ENOENT: it is not there. */
static int
read_sealed(const struct keys *k, uint8_t ret[SEAL_KEY], struct err *e)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "+/=:-_.";
    auto_mem void *tmp = mem_ctx("wrapping");
    char *text = NULL;
    size_t n = 0;

    if (read_file(tmp, k->path, &text, &n, e) < 0)
        return e->code;
    if (n == 0 || strspn(text, letters) != n)
        return err_set(e, -ERR_INVALID, "\"%s\" is nothing that keyring \"transit\" has sealed",
                       k->path);
    return transit_open(k->transit, text, ret, e);
}

static int
read_wrapping(struct keys *k, struct err *e)
{
    uint8_t key[SEAL_KEY] = {0};
    struct stat st;

    if (k->given && stat(k->path, &st) == 0 && (st.st_mode & S_IRWXO) != 0)
        return err_set(e, -ERR_POLICY, "everybody may read the wrapping key \"%s\": chmod o= it",
                       k->path);
    int rc = read_plain(k->path, key, e);
    if (rc == -ENOENT && !k->given) {
        err_clear(e);
        return 0;
    }
    if (rc == -ENOENT) {
        err_clear(e);
        return err_set(e, rc,
                       "the wrapping key \"%s\" of keyring \"aead\" is not there: make it once for "
                       "all servers of the region, head -c 32 /dev/urandom | base64",
                       k->path);
    }
    if (rc == 0)
        set_wrapping(k, key);
    seal_wipe(key, sizeof(key));
    return rc;
}

static int
write_wrapping(const struct keys *k, const uint8_t key[SEAL_KEY], struct err *e)
{
    struct buf b = BUF_INIT(FILE_BYTES_MAX);
    auto_mem void *tmp = mem_ctx("dir");
    const char *slash = strrchr(k->path, '/');
    int rc = 0;

    buf_reserve(&b, FILE_BYTES_MAX / 2); /* so that no copy is left when it grows */
    if (k->transit != NULL)
        rc = transit_seal(k->transit, key, &b, e);
    else
        base64_encode(&b, key, SEAL_KEY);
    buf_putc(&b, '\n');
    if (rc == 0) {
        rc = buf_error(&b);
        if (rc == 0)
            rc = dir_make(AT_FDCWD, mem_strndup(tmp, k->path, (size_t)(slash - k->path)), 0700);
        if (rc == 0)
            rc = file_write_atomic(AT_FDCWD, k->path, b.data, b.len, 0600);
        if (rc < 0)
            err_set(e, rc, "write the wrapping key \"%s\": %s", k->path, err_name(rc));
    }
    seal_wipe(b.data, b.len);
    buf_done(&b);
    return rc;
}

/* Seals the key that lay there in clear, which goes. -ENOENT: none did. */
static int
seal_plain(const struct keys *k, uint8_t ret[SEAL_KEY], struct err *e)
{
    int rc = read_plain(k->plain, ret, e);

    if (rc == 0)
        rc = write_wrapping(k, ret, e);
    if (rc < 0)
        return rc;
    if (unlink(k->plain) < 0)
        return err_errno(e, errno, "remove \"%s\"", k->plain);
    log_info("keys", "the key that wraps the key ring is sealed now, and no longer in clear",
             "path", k->path, "removed", k->plain, NULL);
    return 0;
}

/* Removes the same key in clear, which a power cut left when it had just been sealed. */
static void
drop_plain(const struct keys *k, const uint8_t key[SEAL_KEY])
{
    uint8_t *left = seal_alloc(SEAL_KEY);
    struct err e = ERR_INIT;

    if (read_plain(k->plain, left, &e) == 0 && memcmp(left, key, SEAL_KEY) == 0 &&
        unlink(k->plain) < 0)
        log_warn("keys", "the wrapping key is there in clear, too: remove the file", "path",
                 k->plain, "error", strerror(errno), NULL);
    seal_free(left, SEAL_KEY);
}

int
keys_unseal(struct keys *k, struct err *e)
{
    uint8_t *key = seal_alloc(SEAL_KEY);

    pthread_mutex_lock(&k->storing);
    int rc = read_sealed(k, key, e);
    if (rc == 0)
        drop_plain(k, key);
    if (rc == -ENOENT) {
        err_clear(e);
        rc = seal_plain(k, key, e);
    }
    if (rc == 0) {
        pthread_mutex_lock(&k->lock);
        set_wrapping(k, key);
        pthread_mutex_unlock(&k->lock);
    } else if (rc == -ENOENT) {
        err_clear(e);
        rc = 0;
    }
    pthread_mutex_unlock(&k->storing);
    seal_free(key, SEAL_KEY);
    return rc;
}

static int
keys_free(struct keys *k)
{
    for (size_t i = 0; i < k->n; i++)
        key_unref(k->known[i]);
    seal_free(k->wrapping, SEAL_KEY);
    pthread_mutex_destroy(&k->lock);
    pthread_mutex_destroy(&k->storing);
    return 0;
}

int
keys_open(const void *ctx, const struct keys_place *at, struct keys **ret, struct err *e)
{
    struct keys *k = mem_new(ctx, struct keys);

    k->path = mem_strdup(k, at->path);
    k->plain = mem_strdup(k, at->plain);
    k->given = at->given;
    k->transit = at->transit;
    pthread_mutex_init(&k->lock, NULL);
    pthread_mutex_init(&k->storing, NULL);
    talloc_set_destructor(k, keys_free);
    int rc = k->transit == NULL ? read_wrapping(k, e) : 0;
    if (rc < 0)
        talloc_free(k);
    else
        *ret = k;
    return rc;
}

bool
keys_wrapping(struct keys *k, char name[KEYS_WRAPPING_NAME], uint8_t key[SEAL_KEY])
{
    pthread_mutex_lock(&k->lock);
    bool here = k->wrapping != NULL;
    if (here) {
        memcpy(name, k->name, KEYS_WRAPPING_NAME);
        memcpy(key, k->wrapping, SEAL_KEY);
    }
    pthread_mutex_unlock(&k->lock);
    return here;
}

static int
keys_store(struct keys *k, const uint8_t key[SEAL_KEY], struct err *e)
{
    pthread_mutex_lock(&k->storing);
    int rc = write_wrapping(k, key, e);
    if (rc == 0) {
        pthread_mutex_lock(&k->lock);
        set_wrapping(k, key);
        pthread_mutex_unlock(&k->lock);
    }
    pthread_mutex_unlock(&k->storing);
    return rc;
}

int
keys_take_wrapping(struct keys *k, const uint8_t key[SEAL_KEY], struct err *e)
{
    if (k->given)
        return err_set(e, -ERR_POLICY,
                       "the wrapping key is that of keyring \"aead\", \"%s\": give this server the "
                       "file that the others have",
                       k->path);
    return keys_store(k, key, e);
}

/* --- root keys in clear --- */

void
key_unref(struct key *k)
{
    if (k == NULL || atomic_fetch_sub(&k->refs, 1) > 1)
        return;
    EVP_PKEY_free(k->rsa);
    seal_free(k->aes, SEAL_KEY);
    mem_free(k);
}

static struct key *
key_ref(struct key *k)
{
    atomic_fetch_add(&k->refs, 1);
    return k;
}

/* Keeps the key, and lets the oldest go. */
static void
keep_key(struct keys *k, struct key *key)
{
    if (k->n == ARRAY_LEN(k->known))
        key_unref(k->known[--k->n]);
    memmove(k->known + 1, k->known, k->n * sizeof(*k->known));
    k->known[0] = key_ref(key);
    k->n++;
}

static struct key *
known_key(struct keys *k, const char *id)
{
    for (size_t i = 0; i < k->n; i++)
        if (str_eq(k->known[i]->id, id))
            return key_ref(k->known[i]);
    return NULL;
}

static struct key *
key_of(const struct root_key *row, const uint8_t *clear, size_t n)
{
    const uint8_t *der = clear + SEAL_KEY;
    EVP_PKEY *rsa = n > SEAL_KEY ? d2i_AutoPrivateKey(NULL, &der, (long)(n - SEAL_KEY)) : NULL;

    if (rsa == NULL || EVP_PKEY_get_base_id(rsa) != EVP_PKEY_RSA) {
        EVP_PKEY_free(rsa);
        return NULL;
    }
    struct key *key = mem_new(NULL, struct key);
    atomic_init(&key->refs, 1);
    str_copy(key->id, sizeof(key->id), row->key_id);
    key->aes = seal_alloc(SEAL_KEY);
    memcpy(key->aes, clear, SEAL_KEY);
    key->rsa = rsa;
    return key;
}

static struct slice
about_key(const char *id)
{
    return SLICE(id, strlen(str_or(id, "")));
}

/* -ERR_UNAVAILABLE: what `name` names is not here. */
static int
check_wrapping(const struct keys *k, const char *id, const char *name, struct err *e)
{
    if (k->wrapping != NULL && str_eq(k->name, name))
        return 0;
    if (k->wrapping == NULL && k->transit != NULL)
        return err_set(e, -ERR_UNAVAILABLE,
                       "root key %s is wrapped by key %s, which %s has not opened yet (keyring "
                       "\"transit\"; the log says why): retry",
                       id, str_or(name, ""), k->transit->address);
    return err_set(e, -ERR_UNAVAILABLE,
                   "root key %s is wrapped by key %s, and \"%s\" %s: copy that file of another "
                   "server of this region (0600), and start this one again",
                   id, str_or(name, ""), k->path,
                   k->wrapping == NULL ? "is not there" : "is another one");
}

static struct key *
keys_unwrap(const struct keys *k, const struct root_key *row, struct err *e)
{
    size_t n = row->sealed.n;

    if (check_wrapping(k, row->key_id, row->wrapping, e) < 0)
        return NULL;
    if (n < SEAL_EXTRA || n > DER_MAX) {
        err_set(e, -ERR_CORRUPT, "root key %s is damaged", row->key_id);
        return NULL;
    }
    uint8_t *clear = seal_alloc(n);
    struct key *key = NULL;
    if (seal_open(k->wrapping, about_key(row->key_id), SLICE(row->sealed.v, n), clear) == 0)
        key = key_of(row, clear, n - SEAL_EXTRA);
    seal_free(clear, n);
    if (key == NULL)
        err_set(e, -ERR_CORRUPT, "root key %s is damaged", row->key_id);
    return key;
}

struct key *
keys_get(struct keys *k, struct state_txn *t, const char *id, struct err *e)
{
    auto_mem void *tmp = mem_ctx("key");

    pthread_mutex_lock(&k->lock);
    struct key *key = known_key(k, id);
    if (key == NULL) {
        const struct root_key *row = state_root_key(t, tmp, str_or(id, ""));
        key = row != NULL ? keys_unwrap(k, row, e) : NULL;
        if (key != NULL)
            keep_key(k, key);
        else if (row == NULL)
            err_set(e, -ERR_NOT_FOUND, "root key not found");
    }
    pthread_mutex_unlock(&k->lock);
    return key;
}

struct key *
keys_active(struct keys *k, struct state_txn *t, struct err *e)
{
    auto_mem void *tmp = mem_ctx("active");
    const struct root_key *row = state_active_key(t, tmp);

    if (row != NULL)
        return keys_get(k, t, row->key_id, e);
    err_set(e, -ERR_UNAVAILABLE, "no root key yet: the leader makes it, retry");
    return NULL;
}

/* --- new ones --- */

static const char *
text_of_number(const void *ctx, const EVP_PKEY *rsa, const char *param)
{
    BIGNUM *n = NULL;
    uint8_t bytes[RSA_BITS / 8];
    struct buf b = BUF_INIT(RSA_BITS);

    ASSERT(EVP_PKEY_get_bn_param(rsa, param, &n) == 1 && BN_num_bytes(n) <= (int)sizeof(bytes));
    base64_encode(&b, bytes, (size_t)BN_bn2bin(n, bytes));
    BN_free(n);
    size_t len = 0;
    for (uint8_t *c = b.data; len < b.len && c[len] != '='; len++)
        c[len] = c[len] == '+' ? (uint8_t)'-' : c[len] == '/' ? (uint8_t)'_' : c[len];
    const char *text = mem_strndup(ctx, (const char *)b.data, len);
    buf_done(&b);
    return text;
}

/* Seals both keys, in the order in which key_of() reads them. */
static void
seal_pair(const struct keys *k, const EVP_PKEY *rsa, struct root_key *row)
{
    uint8_t *der = NULL;
    int n = i2d_PrivateKey(rsa, &der);

    ASSERT(n > 0 && n < DER_MAX - SEAL_KEY);
    size_t len = SEAL_KEY + (size_t)n;
    uint8_t *clear = seal_alloc(len), *out = mem_array(row, uint8_t, len + SEAL_EXTRA);
    ASSERT(RAND_priv_bytes(clear, SEAL_KEY) == 1);
    memcpy(clear + SEAL_KEY, der, (size_t)n);
    OPENSSL_clear_free(der, (size_t)n);
    seal(k->wrapping, about_key(row->key_id), SLICE(clear, len), out);
    seal_free(clear, len);
    row->sealed = (struct bytes){out, len + SEAL_EXTRA};
}

/* Makes the first wrapping key, where there is none: also none that is sealed. */
static int
make_wrapping(struct keys *k, struct err *e)
{
    uint8_t *key = seal_alloc(SEAL_KEY);
    char name[KEYS_WRAPPING_NAME];
    int rc = 0;

    if (k->transit != NULL) /* after a restart there may be one that was not opened yet */
        rc = keys_unseal(k, e);
    if (rc == 0 && !keys_wrapping(k, name, key)) {
        ASSERT(RAND_priv_bytes(key, SEAL_KEY) == 1);
        rc = keys_store(k, key, e);
        if (rc == 0)
            log_info("keys", "made the key that wraps the key ring", "path", k->path, NULL);
    }
    seal_free(key, SEAL_KEY);
    return rc;
}

struct root_key *
keys_make(const void *ctx, struct keys *k, struct state_txn *t, const char *id, struct err *e)
{
    const struct root_key *active = state_active_key(t, ctx);
    EVP_PKEY *rsa = EVP_RSA_gen(RSA_BITS);
    struct root_key *row = type_new(ctx, &type_root_key);

    ASSERT(rsa != NULL);
    row->key_id = mem_strdup(row, id);
    row->algorithm = KEY_ALGORITHM;
    row->state = KEY_ACTIVE;
    row->public_n = text_of_number(row, rsa, OSSL_PKEY_PARAM_RSA_N);
    row->public_e = text_of_number(row, rsa, OSSL_PKEY_PARAM_RSA_E);
    int rc = active == NULL ? make_wrapping(k, e) : 0;
    pthread_mutex_lock(&k->lock);
    if (active != NULL)
        rc = check_wrapping(k, active->key_id, active->wrapping, e);
    if (rc == 0) {
        row->wrapping = mem_strdup(row, k->name);
        seal_pair(k, rsa, row);
    }
    pthread_mutex_unlock(&k->lock);
    EVP_PKEY_free(rsa);
    OPENSSL_thread_stop(); /* threads of workers never end */
    if (rc < 0)
        mem_free(row);
    return row;
}
