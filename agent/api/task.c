/* SPDX-License-Identifier: Apache-2.0
 *
 * The API at the socket of a task (secrets/api.sock): the same routes, but nobody is anybody there.
 * A request bears an identity, or a token of access control, that is good, also where there is no
 * access control.
 */
#include <string.h>

#include "agent/api/api.h"
#include "common/str.h"

static void
task_refuse(struct request *a)
{
    reply_fail(a, 403, "Forbidden");
}

static void
task_gone(struct request *a)
{
    rights_forget(a->api->rights, a);
    reply_fail(a, 499, "client gone");
}

static void
task_known(void *arg, const struct err *e, const struct acl *acl, const char *accessor)
{
    struct request *a = arg;

    (void)acl;
    a->gone = NULL;
    record_accessor(a, accessor);
    if (e == NULL)
        a->then(a);
    else if (e->code == -ERR_FORBIDDEN)
        task_refuse(a);
    else
        reply_error(a, e);
}

static void
task_checked(struct request *a, const void *resp)
{
    const struct acl_rights_response *r = resp;

    a->on_error = NULL;
    record_accessor(a, r->accessor_id);
    a->then(a);
}

static bool
task_not_checked(struct request *a, const struct err *e)
{
    if (e->code != -ERR_FORBIDDEN)
        return false;
    task_refuse(a);
    return true;
}

void
task_admit(struct request *a, void (*then)(struct request *a))
{
    static const struct empty none;
    const char *token = request_token(a->req);

    a->then = then;
    if (str_empty(token)) {
        reply_fail(a, 401, "Unauthorized");
    } else if (a->api->rights != NULL) {
        a->gone = task_gone;
        rights_ask(a->api->rights, token, task_known, a);
    } else {
        a->env = (struct rpc_envelope){.region = a->api->region, .auth_token = token};
        a->on_error = task_not_checked;
        call_server(a, RPC_KEYRING_CHECK_IDENTITY, &none, task_checked);
    }
}
