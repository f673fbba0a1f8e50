/* SPDX-License-Identifier: Apache-2.0
 *
 * Identities of tasks (see jwt.h). A token that is read is a stranger's until its signature is good
 * (server/jwt), by RS256 and no other algorithm. The claims are read behind that.
 */
#include "server/keys/jwt.h"

#include <inttypes.h>
#include <string.h>

#include <openssl/evp.h>

#include "codec/base64.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/jwt/key.h"
#include "server/state/state.h"

enum { SKEW_S = 5 /* of the clocks of servers */ };

/* --- signing --- */

static void
put_text(struct buf *b, const char *name, const char *text)
{
    if (str_empty(text))
        return;
    buf_printf(b, ",\"%s\":", name);
    json_put_string(b, text, strlen(text));
}

static void
put_audience(struct buf *b, const struct str_list *l)
{
    buf_puts(b, l->n == 1 ? "{\"aud\":" : "{\"aud\":[");
    for (size_t i = 0; i < l->n; i++) {
        buf_puts(b, i > 0 ? "," : "");
        json_put_string(b, str_or(l->v[i], ""), strlen(str_or(l->v[i], "")));
    }
    buf_puts(b, l->n == 1 ? "" : "]");
}

static void
put_claims(const void *ctx, struct buf *b, const struct jwt_claims *c)
{
    put_audience(b, &c->audience);
    if (c->expires != 0)
        buf_printf(b, ",\"exp\":%" PRId64, c->expires);
    buf_printf(b, ",\"iat\":%" PRId64 ",\"nbf\":%" PRId64, c->issued, c->issued);
    put_text(b, "jti", c->id);
    put_text(b, "iss", c->issuer);
    put_text(b, "sub",
             c->subject != NULL ? c->subject
                                : mem_printf(ctx, "%s:%s:%s:%s:%s:%s", c->region, c->namespace,
                                             c->job, c->group, c->task, c->identity));
    put_text(b, "nomad_namespace", c->namespace);
    put_text(b, "nomad_job_id", c->job);
    put_text(b, "nomad_allocation_id", c->alloc);
    put_text(b, "nomad_task", c->task);
    put_text(b, "nomad_node_id", c->node);
    put_text(b, "nomad_node_class", c->node_class);
    put_text(b, "nomad_node_datacenter", c->node_datacenter);
    put_text(b, "nomad_node_name", c->node_name);
    put_text(b, "nomad_node_pool", c->node_pool);
    for (size_t i = 0; c->extra != NULL && i < c->extra->n; i++) {
        buf_puts(b, i == 0 ? ",\"extra_claims\":{" : ",");
        json_put_string(b, c->extra->v[i].k, strlen(c->extra->v[i].k));
        buf_putc(b, ':');
        json_put_string(b, str_or(c->extra->v[i].v, ""), strlen(str_or(c->extra->v[i].v, "")));
        buf_puts(b, i + 1 == c->extra->n ? "}" : "");
    }
    buf_putc(b, '}');
}

static void
put_signature(struct buf *b, EVP_PKEY *rsa)
{
    uint8_t sig[512];
    size_t n = sizeof(sig);
    EVP_MD_CTX *md = EVP_MD_CTX_new();

    ASSERT(md != NULL && EVP_DigestSignInit(md, NULL, EVP_sha256(), NULL, rsa) == 1);
    ASSERT(EVP_DigestSign(md, sig, &n, b->data, b->len) == 1);
    EVP_MD_CTX_free(md);
    buf_putc(b, '.');
    base64url_encode(b, sig, n);
}

char *
jwt_sign(const void *ctx, const struct key *k, const struct jwt_claims *c)
{
    auto_mem void *tmp = mem_ctx("jwt");
    auto_buf struct buf b = BUF_INIT(JWT_MAX), part = BUF_INIT(JWT_MAX);

    buf_printf(&part, "{\"alg\":\"RS256\",\"kid\":\"%s\",\"typ\":\"JWT\"}", k->id);
    base64url_encode(&b, part.data, part.len);
    buf_putc(&b, '.');
    part.len = 0;
    put_claims(tmp, &part, c);
    base64url_encode(&b, part.data, part.len);
    put_signature(&b, k->rsa);
    char *token = buf_error(&b) == 0 && buf_error(&part) == 0
                      ? mem_strndup(ctx, (const char *)b.data, b.len)
                      : NULL;
    seal_wipe(b.data, b.len);
    return token;
}

void
jwt_signed(void)
{
    OPENSSL_thread_stop();
}

/* --- reading --- */

/* The claims of a token whose header and signature are good; NULL. */
static const struct jwt_payload *
jwt_verified(const void *ctx, struct state_txn *t, const char *token)
{
    static const char *const rs256 = "RS256";
    const struct str_list algorithms = {(const char **)(uintptr_t)&rs256, 1};
    struct jwt_token parts;
    struct err e = ERR_INIT;
    void *obj = NULL;

    if (jwt_read(ctx, token, JWT_MAX, &parts, &e) < 0 || str_empty(parts.kid))
        return NULL;
    const struct root_key *row = state_root_key(t, ctx, parts.kid);
    if (row == NULL)
        return NULL;
    struct jwt_keys *keys = jwt_keys_new();
    bool good = jwt_keys_add_rsa(keys, parts.kid, row->public_n, row->public_e, &e) == 0 &&
                jwt_keys_verify(keys, &parts, &algorithms, &e) == 0;
    jwt_keys_unref(keys);
    return good && json_decode(ctx, &type_jwt_payload, parts.payload, BUDGET(64 << 10), &obj, &e) ==
                       0
               ? obj
               : NULL;
}

/* A list of it, or itself. */
static bool
is_for_us(const struct value *aud)
{
    if (aud == NULL)
        return false;
    if (aud->kind == VALUE_STRING)
        return str_eq(aud->str.s, JWT_AUDIENCE);
    for (size_t i = 0; aud->kind == VALUE_LIST && i < aud->list.n; i++)
        if (aud->list.v[i]->kind == VALUE_STRING && str_eq(aud->list.v[i]->str.s, JWT_AUDIENCE))
            return true;
    return false;
}

int
jwt_open(const void *ctx, struct state_txn *t, const char *token, int64_t now_s,
         struct jwt_claims *ret)
{
    const struct jwt_payload *p = jwt_verified(ctx, t, token);

    if (p == NULL || !is_for_us(p->aud) || p->nbf > now_s + SKEW_S ||
        (p->exp != 0 && p->exp <= now_s))
        return -ERR_FORBIDDEN;
    *ret = (struct jwt_claims){.expires = p->exp,
                               .issued = p->iat,
                               .namespace = p->nomad_namespace,
                               .job = p->nomad_job_id,
                               .task = p->nomad_task,
                               .alloc = p->nomad_allocation_id,
                               .subject = p->sub,
                               .node_name = p->nomad_node_name,
                               .node_pool = p->nomad_node_pool};
    return 0;
}
