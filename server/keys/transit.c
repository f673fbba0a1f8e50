/* SPDX-License-Identifier: Apache-2.0
 *
 * See transit.h. The two requests are those of the HTTP API of Vault's transit engine:
 * PUT /v1/MOUNT/encrypt/NAME and .../decrypt/NAME.
 */
#include "server/keys/transit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "codec/base64.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/http/http.h"
#include "net/tls/tls.h"
#include "server/limits.h"

enum { CA_BYTES_MAX = 1 << 20, BODY_MAX = 4096 };

/* A request under way. */
struct transit {
    const struct agent_keyring *t;
    void *ctx;
    const char *verb; /* encrypt, decrypt */
    struct buf body;
    struct buf answer;
    struct tls *tls; /* NULL: plain */
};

static const char *
target_of(const struct transit *x)
{
    const char *mount = str_or(x->t->mount_path, "transit");
    struct buf b = BUF_INIT(BODY_MAX);
    size_t n = strlen(mount);

    while (n > 0 && mount[n - 1] == '/')
        n--;
    buf_puts(&b, "/v1/");
    http_escape(&b, mem_strndup(x->ctx, mount, n), true);
    buf_printf(&b, "/%s/", x->verb);
    http_escape(&b, x->t->key_name, false);
    const char *target = mem_strdup(x->ctx, buf_str(&b));
    buf_done(&b);
    return target;
}

static bool
on_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct transit *x = arg;

    (void)r;
    buf_put(&x->answer, p, n);
    return buf_error(&x->answer) == 0;
}

static int
open_tls(struct transit *x, struct err *e)
{
    const char *ca = x->t->tls_ca_cert;
    char *pem = NULL;
    size_t n = 0;

    if (!str_prefix(x->t->address, "https://"))
        return 0;
    int rc = str_empty(ca) ? 0 : file_read(x->ctx, AT_FDCWD, ca, CA_BYTES_MAX, &pem, &n);
    if (rc < 0)
        return err_errno(e, -rc, "read tls_ca_cert \"%.200s\"", ca);
    x->tls = tls_new(&(struct tls_config){.ca = pem}, e);
    return x->tls != NULL ? 0 : e->code;
}

/* Refuses an answer that is no success, in the server's own words where it has some. */
static int
check_answer(const struct transit *x, const struct http_resp *r, const struct transit_answer **ret,
             struct err *e)
{
    void *obj = NULL;
    struct err own = ERR_INIT;
    const struct slice text = r->status < 300 ? SLICE(x->answer.data, x->answer.len)
                                              : SLICE(r->body, r->body_len); /* see on_body */
    int rc = json_decode(x->ctx, &type_transit_answer, text, BUDGET(64 << 10), &obj, &own);
    const struct transit_answer *a = rc == 0 ? obj : NULL;

    if (r->status == 200 && a != NULL && a->data != NULL) {
        *ret = a;
        return 0;
    }
    return err_set(e, -ERR_UNAVAILABLE, "keyring \"transit\": %s answers %d%s%.200s", x->t->address,
                   r->status, a != NULL && a->errors.n > 0 ? ": " : "",
                   a != NULL && a->errors.n > 0 ? a->errors.v[0] : "");
}

static int
transit_ask(struct transit *x, const struct transit_answer **ret, struct err *e)
{
    const char *token = str_or(x->t->token, getenv("VAULT_TOKEN"));
    const struct http_pair headers[] = {{"X-Vault-Token", (char *)(uintptr_t)str_or(token, "")},
                                        {"X-Vault-Namespace", x->t->namespace}};
    const struct dialer d = {.filter = x->tls != NULL ? tls_http(x->tls) : NULL};
    const struct http_ask ask = {.method = "PUT",
                                 .target = target_of(x),
                                 .headers = headers,
                                 .n_headers = str_empty(x->t->namespace) ? 1 : 2,
                                 .body = x->body.data,
                                 .body_len = x->body.len,
                                 .content_type = "application/json",
                                 .timeout_ms = TRANSIT_MS,
                                 .dialer = &d,
                                 .on_body = on_body,
                                 .arg = x};
    struct http_resp *r = NULL;

    if (http_fetch(x->ctx, x->t->address, &ask, &r, e) < 0) {
        e->code = -ERR_UNAVAILABLE;
        return err_prefix(e, "keyring \"transit\": ask %s", x->t->address);
    }
    return check_answer(x, r, ret, e);
}

static void
transit_done(struct transit *x)
{
    seal_wipe(x->body.data, x->body.len);
    seal_wipe(x->answer.data, x->answer.len);
    buf_done(&x->body);
    buf_done(&x->answer);
    tls_unref(x->tls);
    talloc_free(x->ctx);
}

static struct transit
transit_begin(const struct agent_keyring *t, const char *verb)
{
    struct transit x = {.t = t,
                        .ctx = mem_ctx("transit"),
                        .verb = verb,
                        .body = BUF_INIT(BODY_MAX),
                        .answer = BUF_INIT(BODY_MAX)};

    buf_reserve(&x.body, BODY_MAX / 2); /* so that no copy is left when they grow */
    buf_reserve(&x.answer, BODY_MAX / 2);
    return x;
}

int
transit_seal(const struct agent_keyring *t, const uint8_t key[SEAL_KEY], struct buf *out,
             struct err *e)
{
    struct transit x = transit_begin(t, "encrypt");
    const struct transit_answer *a = NULL;

    buf_puts(&x.body, "{\"plaintext\":\"");
    base64_encode(&x.body, key, SEAL_KEY);
    buf_puts(&x.body, "\"}");
    int rc = open_tls(&x, e);
    if (rc == 0)
        rc = transit_ask(&x, &a, e);
    if (rc == 0 && str_empty(a->data->ciphertext))
        rc = err_set(e, -ERR_UNAVAILABLE, "keyring \"transit\": %s answers without a ciphertext",
                     t->address);
    if (rc == 0)
        buf_puts(out, a->data->ciphertext);
    transit_done(&x);
    return rc;
}

static int
take_plaintext(const struct transit_data *d, uint8_t key[SEAL_KEY], struct err *e)
{
    char *text = (char *)(uintptr_t)str_or(d->plaintext, "");
    uint8_t *clear = seal_alloc(BASE64_DECODED(BODY_MAX));
    size_t n = strlen(text), got = 0;
    bool good = n <= BODY_MAX && base64_decode(text, n, clear, &got) == 0 && got == SEAL_KEY;

    if (good)
        memcpy(key, clear, SEAL_KEY);
    seal_wipe(text, n);
    seal_free(clear, BASE64_DECODED(BODY_MAX));
    return good ? 0
                : err_set(e, -ERR_INVALID,
                          "keyring \"transit\": what was opened is no key of %d bytes", SEAL_KEY);
}

int
transit_open(const struct agent_keyring *t, const char *text, uint8_t key[SEAL_KEY], struct err *e)
{
    struct transit x = transit_begin(t, "decrypt");
    const struct transit_answer *a = NULL;

    buf_puts(&x.body, "{\"ciphertext\":\"");
    buf_puts(&x.body, text); /* of letters that JSON leaves alone: read_sealed() */
    buf_puts(&x.body, "\"}");
    int rc = open_tls(&x, e);
    if (rc == 0)
        rc = transit_ask(&x, &a, e);
    if (rc == 0)
        rc = take_plaintext(a->data, key, e);
    transit_done(&x);
    return rc;
}
