/* SPDX-License-Identifier: Apache-2.0
 *
 * Talking to the agent: see api.h. In this order: targets, with what the global options add to
 * them; requests and answers, reading (api_get() and those by it) and changing; and identifiers,
 * from the prefix of a user to the object meant.
 *
 * Where a function says that it fails, the text is the agent's own answer with its status. What
 * ends a command is said here; what a command can go on without comes back as a struct err.
 */
#include "cli/api.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "codec/base64.h"
#include "codec/codec.h"
#include "common/num.h"

/* --- targets --- */

static void
add_query(struct buf *b, const char *k, const char *v)
{
    if (!v)
        return;
    buf_putc(b, memchr(b->data, '?', b->len) ? '&' : '?');
    buf_puts(b, k);
    buf_putc(b, '=');
    http_escape(b, v, false);
}

char *
api_target(struct cmd *c, const char *path, ...)
{
    auto_buf struct buf b = BUF_INIT(1 << 20);
    va_list ap;
    va_start(ap, path);
    for (const char *p = path; *p; p++) {
        if (*p == '%')
            http_escape(&b, va_arg(ap, const char *), false);
        else
            buf_putc(&b, *p);
    }
    for (const char *k; (k = va_arg(ap, const char *));)
        add_query(&b, k, va_arg(ap, const char *));
    va_end(ap);
    add_query(&b, "region", c->region);
    add_query(&b, "namespace", c->namespace);
    return mem_strdup(c, buf_str(&b));
}

char *
api_raw_target(struct cmd *c, const char *target, const char *filter)
{
    auto_buf struct buf b = BUF_INIT(1 << 20);
    buf_puts(&b, target);
    add_query(&b, "filter", filter);
    add_query(&b, "region", c->region);
    add_query(&b, "namespace", c->namespace);
    return mem_strdup(c, buf_str(&b));
}

/* --- requests --- */

struct http_ask *
api_ask(struct cmd *c, const char *method, const char *target)
{
    struct http_ask *ask = mem_new(c, struct http_ask);
    struct http_pair *h = mem_array(c, struct http_pair, 2);
    size_t n = 0;
    if (c->token)
        h[n++] = (struct http_pair){"X-Nomad-Token", c->token};
    if (c->http_auth) {
        auto_buf struct buf b = BUF_INIT(64 << 10);
        buf_puts(&b, "Basic ");
        base64_encode(&b, c->http_auth, strlen(c->http_auth));
        h[n++] = (struct http_pair){"Authorization", mem_strdup(c, buf_str(&b))};
    }
    ask->method = method;
    ask->target = target;
    ask->headers = h;
    ask->n_headers = n;
    ask->dialer = c->dialer;
    return ask;
}

const char *
api_hint(const struct http_resp *r)
{
    return r->status == 400 && strstr(r->body, "to an HTTPS server")
               ? "\nThe agent speaks TLS: say https:// in -address or NOMAD_ADDR, and -ca-cert"
               : "";
}

static int
api_fetch(struct cmd *c, const struct http_ask *ask, struct http_resp **ret, struct err *e)
{
    int rc = c->fetch(c, c->address, ask, ret, e);
    if (rc == -ECONNREFUSED || rc == -ENOENT)
        err_prefix(e, "no agent answers at %s (is one running? see -address and NOMAD_ADDR)",
                   c->address);
    if (rc < 0)
        return rc;
    const struct http_resp *r = *ret;
    if (r->status >= 200 && r->status < 300)
        return 0;
    size_t n = r->body_len;
    while (n && (r->body[n - 1] == '\n' || r->body[n - 1] == ' '))
        n--;
    return err_set(e,
                   r->status == 404   ? -ERR_NOT_FOUND
                   : r->status == 409 ? -ERR_CONFLICT
                                      : -ERR_INVALID,
                   "Unexpected response code: %d (%.*s)%s", r->status, (int)(n < 900 ? n : 900),
                   r->body, api_hint(r));
}

static void
read_meta(const struct http_resp *r, struct cmd *c, struct api_meta *meta)
{
    if (!meta)
        return;
    const char *index = http_resp_header(r, "x-nomad-index");
    if (!index || num_parse_u64(index, &meta->index))
        meta->index = 0;
    meta->next_token = mem_strdup(c, http_resp_header(r, "x-nomad-nexttoken"));
}

static int
api_decode(struct cmd *c, const struct http_resp *r, const struct type *t, void **ret,
           struct err *e)
{
    *ret = NULL;
    if (str_eq(r->body, "null"))
        return 0;
    return json_decode(c, t, SLICE(r->body, r->body_len), BUDGET(CLI_ANSWER_MAX), ret, e);
}

int
api_get(struct cmd *c, const char *target, const struct type *t, void **ret, struct api_meta *meta,
        struct err *e)
{
    struct http_resp *r = NULL;
    int rc = api_fetch(c, api_ask(c, "GET", target), &r, e);
    if (rc)
        return rc;
    read_meta(r, c, meta);
    rc = api_decode(c, r, t, ret, e);
    if (!rc && !*ret)
        rc = err_set(e, -ERR_NOT_FOUND, "the agent answered null");
    return rc;
}

int
api_list(struct cmd *c, const char *target, const struct type *t, void *ret_list,
         struct api_meta *meta, struct err *e)
{
    struct http_resp *r = NULL;
    struct object_list l;
    int rc = api_fetch(c, api_ask(c, "GET", target), &r, e);
    if (rc)
        return rc;
    read_meta(r, c, meta);
    rc = json_decode_list(c, t, SLICE(r->body, r->body_len), BUDGET(CLI_ANSWER_MAX), &l, e);
    if (!rc)
        memcpy(ret_list, &l, sizeof(l));
    return rc;
}

void *
api_read(struct cmd *c, const char *target, const struct type *t, const char *failed)
{
    struct err e = ERR_INIT;
    void *ret = NULL;
    if (api_get(c, target, t, &ret, NULL, &e))
        cmd_fail(c, "%s: %s", failed, e.text);
    return ret;
}

bool
api_read_list(struct cmd *c, const char *target, const struct type *t, void *ret_list,
              const char *failed)
{
    struct err e = ERR_INIT;
    int rc = api_list(c, target, t, ret_list, NULL, &e);
    if (rc)
        cmd_fail(c, "%s: %s", failed, e.text);
    return rc == 0;
}

int
api_get_value(struct cmd *c, const char *target, struct value **ret, struct err *e)
{
    struct http_resp *r = NULL;
    int rc = api_fetch(c, api_ask(c, "GET", target), &r, e);
    return rc ? rc
              : json_decode_value(c, SLICE(r->body, r->body_len), BUDGET(CLI_ANSWER_MAX), ret, e);
}

int
api_send(struct cmd *c, const struct change *ch, void **ret, struct err *e)
{
    auto_buf struct buf b = BUF_INIT(HTTP_BODY_MAX);
    struct http_resp *r = NULL;
    struct http_ask *ask = api_ask(c, str_or(ch->method, "PUT"), ch->target);
    if (ch->body_type) {
        json_encode(&b, ch->body_type, ch->body, 0);
        if (buf_error(&b))
            return err_set(e, buf_error(&b), "the request is larger than %d bytes", HTTP_BODY_MAX);
        ask->body = b.data;
        ask->body_len = b.len;
        ask->content_type = "application/json";
    }
    int rc = api_fetch(c, ask, &r, e);
    struct err ignored = ERR_INIT;
    if (rc == -ERR_CONFLICT && ch->answer)
        (void)api_decode(c, r, ch->answer, ret, &ignored);
    if (rc || !ch->answer || r->body_len == 0)
        return rc;
    return api_decode(c, r, ch->answer, ret, e);
}

const void *
api_change(struct cmd *c, const struct change *ch)
{
    struct err e = ERR_INIT;
    void *ret = NULL;
    int rc = api_send(c, ch, &ret, &e);
    if (rc == 0 && ch->answer && !ret)
        rc = err_set(&e, -ERR_NOT_FOUND, "the agent answered null");
    if (rc == 0)
        return ch->answer ? ret : ch;
    cmd_fail(c, "%s: %s", ch->failed, e.text);
    return NULL;
}

/* --- identifiers --- */

const char *
api_uuid_prefix(struct cmd *c, const char *id)
{
    size_t n = strlen(id), digits = 0;
    if (n < 2) {
        cmd_fail(c, "Identifier must contain at least two characters.");
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        digits += id[i] != '-';
    return digits % 2 ? mem_strndup(c, id, n - 1) : id;
}

static const char *
id_of(const struct type *t, const void *obj)
{
    const struct field *f = type_field(t, "ID", 2);
    return *(const char *const *)(const void *)((const char *)obj + f->offset);
}

static bool
uuid_digits(const char *s)
{
    return s[strspn(s, "0123456789abcdefABCDEF-")] == '\0';
}

/* Asks for those whose id begins so: `even` of it, which the servers take. */
static int
list_by_prefix(struct cmd *c, const struct api_kind *k, const char *prefix, const char *even,
               struct object_list *l, struct err *e)
{
    size_t n = 0;
    *l = (struct object_list){NULL, 0};
    if (uuid_digits(prefix) &&
        api_list(c, api_target(c, k->path, "prefix", even, NULL), k->t, l, NULL, e))
        return e->code;
    for (size_t i = 0; i < l->n; i++)
        if (str_prefix(str_or(id_of(k->t, l->v[i]), ""), prefix))
            l->v[n++] = l->v[i];
    l->n = n;
    return 0;
}

/* Looks in all namespaces for an object outside the default namespace, unless the caller named
 * another one. */
static void
list_everywhere(struct cmd *c, const struct api_kind *k, const char *prefix, const char *even,
                struct object_list *l)
{
    struct err e = ERR_INIT;
    if (!str_empty(c->namespace) || !type_field(k->t, "Namespace", strlen("Namespace")))
        return;
    c->namespace = "*";
    if (list_by_prefix(c, k, prefix, even, l, &e))
        l->n = 0;
    c->namespace = NULL;
}

const char *
api_find(struct cmd *c, const struct api_kind *k, const char *prefix)
{
    struct err e = ERR_INIT;
    struct object_list l;
    const char *even = api_uuid_prefix(c, prefix);
    if (!even)
        return NULL;
    if (list_by_prefix(c, k, prefix, even, &l, &e)) {
        cmd_fail(c, "Error querying %s: %s", k->name, e.text);
        return NULL;
    }
    if (l.n == 0)
        list_everywhere(c, k, prefix, even, &l);
    size_t n = l.n;
    if (n == 1)
        return id_of(k->t, l.v[0]);
    if (n == 0) {
        cmd_fail(c, "No %s(s) with prefix or id \"%s\" found", k->name, prefix);
        return NULL;
    }
    cmd_say(c, "Prefix matched multiple %ss\n", k->name);
    k->show(c, &l);
    return NULL;
}

struct job_list_stub *
api_find_job(struct cmd *c, const char *prefix)
{
    return api_find_job_of(c, prefix, NULL, "");
}

struct job_list_stub *
api_find_job_of(struct cmd *c, const char *prefix, const char *filter, const char *kind)
{
    struct err e = ERR_INIT;
    struct job_list_stub_list l;
    if (str_empty(prefix)) { /* what a script's unset variable leaves */
        cmd_fail(c, "The job's id is empty.");
        return NULL;
    }
    if (api_list(c, api_target(c, "/v1/jobs", "prefix", prefix, "filter", filter, NULL),
                 &type_job_list_stub, &l, NULL, &e)) {
        cmd_fail(c, "Error querying job prefix \"%s\": %s", prefix, e.text);
        return NULL;
    }
    for (size_t i = 0; i < l.n; i++) {
        if (l.n == 1 || str_eq(l.v[i]->id, prefix)) {
            c->namespace = str_or(l.v[i]->namespace, c->namespace);
            return l.v[i];
        }
    }
    if (l.n == 0) {
        cmd_fail(c, "No %sjob(s) with prefix or ID \"%s\" found", kind, prefix);
        return NULL;
    }
    cmd_warn(c, "Prefix matched multiple jobs\n");
    for (size_t i = 0; i < l.n; i++)
        cmd_warn(c, "%s  %s  %s", l.v[i]->id, l.v[i]->type, l.v[i]->status);
    return NULL;
}

const char *
api_job_arg(struct cmd *c, const struct opt *opts, int *ret_code)
{
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, ret_code))
        return NULL;
    const struct job_list_stub *stub = api_find_job(c, c->args[0]);
    *ret_code = 1;
    return stub ? stub->id : NULL;
}
