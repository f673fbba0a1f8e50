/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP: the page. A path below /ui/ that is no file is one of the page's own addresses ("/ui/jobs/
 * web@default", as Nomad's): it is answered with index.html, which looks at the address itself.
 */
#include <string.h>

#include "agent/api/api.h"
#include "agent/config/config.h"
#include "agent/web/web.h"
#include "common/mem.h"
#include "common/str.h"

/* Nothing but files of this agent is loaded, no other page has this one in a frame, no text becomes
 * markup (Trusted Types), and no form goes anywhere. */
static const struct csp_rule {
    const char *name, *value;
} csp_rules[] = {
    {"default-src", "'none'"},     {"script-src", "'self'"}, {"style-src", "'self'"},
    {"connect-src", "'self'"},     {"img-src", "'self'"},    {"form-action", "'none'"},
    {"frame-ancestors", "'none'"},
};
#define CSP_ALWAYS "base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

static const struct str_list *
csp_given(const struct agent_csp *c, size_t rule)
{
    const struct str_list *const lists[] = {&c->default_src,    &c->script_src, &c->style_src,
                                            &c->connect_src,    &c->img_src,    &c->form_action,
                                            &c->frame_ancestors};
    ASSERT(ARRAY_LEN(lists) == ARRAY_LEN(csp_rules));
    return lists[rule];
}

static const char *
csp_text(struct request *a)
{
    const struct agent_ui *ui = a->api->cfg != NULL ? a->api->cfg->ui : NULL;
    char *text = mem_strdup(a, "");

    for (size_t i = 0; i < ARRAY_LEN(csp_rules); i++) {
        const struct str_list *l =
            ui && ui->content_security_policy ? csp_given(ui->content_security_policy, i) : NULL;
        text = mem_printf(a, "%s%s", text, csp_rules[i].name);
        for (size_t k = 0; l != NULL && k < l->n; k++)
            text = mem_printf(a, "%s %s", text, l->v[k]);
        text = l != NULL && l->n > 0 ? mem_printf(a, "%s; ", text)
                                     : mem_printf(a, "%s %s; ", text, csp_rules[i].value);
    }
    return mem_printf(a, "%s%s", text, CSP_ALWAYS);
}

static bool
web_enabled(const struct api *api)
{
    const struct agent_ui *ui = api->cfg != NULL ? api->cfg->ui : NULL;
    return ui == NULL || !ui->enabled.set || ui->enabled.v;
}

static const struct web_file *
web_find(const char *name)
{
    const struct web_file *index = NULL;

    for (const struct web_file *f = web_files; f->name != NULL; f++) {
        if (strcmp(f->name, name) == 0)
            return f;
        if (strcmp(f->name, "index.html") == 0)
            index = f;
    }
    return index;
}

/* Says whether a list of a header names it: exact enough for what browsers send. */
static bool
header_names(const struct request *a, const char *header, const char *what)
{
    const char *v = http_header(a->req, header);
    return v != NULL && strstr(v, what) != NULL;
}

static void
web_get(struct request *a)
{
    if (!web_enabled(a->api)) {
        http_fail(a->req, 404,
                  "there is no page here: this agent's configuration has ui { enabled "
                  "= false }");
        return;
    }
    const struct web_file *f = web_find(str_or(a->id, ""));
    ASSERT(f != NULL);
    http_header_add(a->req, "Content-Security-Policy", csp_text(a));
    http_header_add(a->req, "X-Content-Type-Options", "nosniff");
    http_header_add(a->req, "Referrer-Policy", "no-referrer");
    http_header_add(a->req, "Cross-Origin-Opener-Policy", "same-origin");
    http_header_add(a->req, "Cross-Origin-Resource-Policy", "same-origin");
    http_header_add(a->req, "Cache-Control", "no-cache");
    http_header_add(a->req, "Vary", "Accept-Encoding");
    http_header_add(a->req, "ETag", f->etag);
    if (header_names(a, "if-none-match", f->etag)) {
        http_reply(a->req, 304, NULL, "", 0);
    } else if (header_names(a, "accept-encoding", "gzip")) {
        http_header_add(a->req, "Content-Encoding", "gzip");
        http_reply(a->req, 200, f->type, f->packed, f->packed_len);
    } else {
        http_reply(a->req, 200, f->type, f->plain, f->plain_len);
    }
}

static void
web_redirect(struct request *a)
{
    if (!web_enabled(a->api)) {
        http_fail(a->req, 404, "there is no endpoint \"%s\"", a->req->path);
        return;
    }
    http_header_add(a->req, "Location", "/ui/");
    http_reply(a->req, 307, NULL, "", 0);
}

const struct route routes_web[] = {
    {VERB_GET, "/", NULL, web_redirect, 0, "none"},
    {VERB_GET, "/ui", NULL, web_redirect, 0, "none"},
    {VERB_GET, "/ui/", "", web_get, 0, "none"},
    ROUTES_END,
};
