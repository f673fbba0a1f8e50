/* SPDX-License-Identifier: Apache-2.0
 *
 * Keyring.*: the root keys, of which nothing secret is told but to other servers.
 */
#include "api/vars/vars.h"
#include "common/duration.h"
#include "common/mem.h"
#include "server/call/method.h"
#include "server/keys/keys.h"

#define MAX_AGE_MIN_S (15 * 60)

/* --- reads --- */

const struct read_row read_keyring_list = {
    .tables = STATE_BIT(STATE_ROOT_KEYS), .run = read_list, .needs = "KeyID"};

static void
add_public(struct keyring_public_response *resp, const struct root_key *k)
{
    struct json_web_key *j = type_new(resp, &type_json_web_key);

    j->use = "sig";
    j->kty = "RSA";
    j->alg = "RS256";
    j->kid = mem_strdup(j, k->key_id);
    j->n = mem_strdup(j, k->public_n);
    j->e = mem_strdup(j, k->public_e);
    list_add(resp, resp->keys, j);
}

/* Half of the time until the next key is there, and something by chance, so that not all ask at
 * once. */
static int64_t
max_age(struct server *s, int64_t newest)
{
    const struct env *env = server_env(s);
    int64_t left = newest + server_cfg(s)->agent->root_key_rotation_threshold - env_wall_ns(env);
    int64_t age = left / 2 / NS_PER_S > MAX_AGE_MIN_S ? left / 2 / NS_PER_S : MAX_AGE_MIN_S;

    return age + (int64_t)(env_random(env) % (uint64_t)(age / 10));
}

static int
public_run(struct read *r, struct state_txn *t, struct err *e)
{
    struct keyring_public_response *resp = read_resp(r);
    struct state_iter *it = state_ids(t, r->ctx, STATE_ROOT_KEYS, NULL);
    int64_t newest = 0;

    (void)e;
    for (struct root_key *k; (k = state_next(it, r->ctx)) != NULL; talloc_free(k)) {
        newest = k->create_time > newest ? k->create_time : newest;
        add_public(resp, k);
    }
    resp->max_age = max_age(r->s, newest);
    r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_keyring_list_public = {.tables = STATE_BIT(STATE_ROOT_KEYS),
                                                  .run = public_run};

/* --- writes --- */

static int
prepare_rotate(struct write *w, struct state_txn *t, struct err *e)
{
    const struct keyring_rotate_request *req = w->req;
    struct intent_root_key_upsert *up = mem_new(w->ctx, struct intent_root_key_upsert);

    if (!str_empty(req->algorithm) && !str_eq(req->algorithm, KEY_ALGORITHM))
        return err_set(e, -ERR_INVALID, "algorithm \"%.40s\" is not " KEY_ALGORITHM,
                       req->algorithm);
    if (req->full && req->publish_time != 0)
        return err_set(e, -ERR_INVALID,
                       "full and publish_time do not go together: a key that is published before "
                       "it is used seals nothing anew");
    up->full = req->full;
    up->key = keys_make(w->ctx, server_keys(w->s), t, write_new_id(w), e);
    if (up->key == NULL)
        return e->code;
    if (req->publish_time != 0) {
        up->key->state = KEY_PREPUBLISHED;
        up->key->publish_time = req->publish_time;
    }
    w->memo = up->key->key_id;
    w->in.root_key_upsert = up;
    return 0;
}

static void
reply_rotate(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct keyring_rotate_response resp = {.index = index};
    const struct projection *p = projection_new(w->ctx, &type_root_key_meta, &type_root_key);

    FSM_EACH(res, ROOT_KEYS, STORED, k)
        if (str_eq(k->key_id, w->memo))
            resp.key = codec_project(w->ctx, p, k);
    rpc_reply(w->call, &resp);
}

const struct write_row write_keyring_rotate = {prepare_rotate, reply_rotate};

static int
prepare_delete(struct write *w, struct state_txn *t, struct err *e)
{
    const struct keyring_delete_request *req = w->req;
    struct intent_root_key_delete *in = mem_new(w->ctx, struct intent_root_key_delete);

    (void)t;
    (void)e;
    *in = (struct intent_root_key_delete){str_or(req->key_id, ""), req->force};
    w->in.root_key_delete = in;
    return 0;
}

const struct write_row write_keyring_delete = {prepare_delete, write_reply_index, .here = true};

/* --- between servers --- */

/* Tells the wrapping key where each server has proved to be one, and the connection is encrypted.
 */
void
call_keyring_wrapping(void *arg, struct rpc_call *call, const void *req)
{
    struct server *s = arg;
    char name[KEYS_WRAPPING_NAME];
    uint8_t *key;

    (void)req;
    if (!server_cfg(s)->verify_servers) {
        rpc_failf(call, -ERR_FORBIDDEN,
                  "the wrapping key is told to servers with certificates alone: set tls { rpc, "
                  "verify_server_hostname }, or copy its file");
        return;
    }
    key = seal_alloc(SEAL_KEY);
    if (keys_wrapping(server_keys(s), name, key)) {
        struct wrapping_key_response resp = {.name = name, .key = {key, SEAL_KEY}};
        rpc_reply(call, &resp);
    } else {
        rpc_failf(call, -ERR_NOT_FOUND, "this server has no wrapping key");
    }
    seal_free(key, SEAL_KEY);
}
