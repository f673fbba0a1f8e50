/* SPDX-License-Identifier: Apache-2.0
 *
 * Recorded answers instead of an agent. Time stands still at 2026-11-21T12:00:00Z.
 */
#include "tests/cli/fake.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/lib/test.h"

static const struct answer *answers;
static char *out, *err, *body;
static struct buf asked = BUF_INIT(1 << 20);

static int
fetch(const void *ctx, const char *addr, const struct http_ask *ask, struct http_resp **ret,
      struct err *e)
{
    char line[1024];
    snprintf(line, sizeof(line), "%s %s", ask->method, ask->target);
    buf_printf(&asked, "%s\n", line);
    if (ask->body_len) {
        free(body);
        body = strndup(ask->body, ask->body_len);
    }
    struct http_resp *r = mem_new(ctx, struct http_resp);
    r->status = 404;
    r->body = "not recorded";
    for (const struct answer *a = answers; a && a->target; a++) {
        if (strncmp(line, a->target, strlen(a->target)) != 0)
            continue;
        r->status = a->status;
        r->body = a->body;
        break;
    }
    if (!r->status)
        return err_errno(e, ECONNREFUSED, "connecting to %s", addr);
    r->body_len = strlen(r->body);
    if (ask->on_body && r->status < 300)
        /* in two pieces, as a network may */
        (void)(ask->on_body(ask->arg, r, r->body, r->body_len / 2) &&
               ask->on_body(ask->arg, r, r->body + r->body_len / 2, r->body_len - r->body_len / 2));
    *ret = r;
    return 0;
}

static const struct command *
find(const char *name)
{
    for (size_t i = 0; i < commands_n; i++)
        if (commands[i].run && strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

void
fake_answers(const struct answer *a)
{
    answers = a;
}

int
fake_run(const char *line)
{
    auto_mem void *ctx = mem_ctx("fake");
    setenv("TZ", "UTC", 1);
    static const char *const unset[] = {"NOMAD_ADDR",   "NOMAD_TOKEN",     "NOMAD_NAMESPACE",
                                        "NOMAD_REGION", "NOMAD_HTTP_AUTH", "NOMAD_CLI_FORCE_COLOR"};
    for (size_t i = 0; i < ARRAY_LEN(unset); i++)
        unsetenv(unset[i]);
    char *argv[32], *copy = mem_strdup(ctx, line), *save = NULL;
    int argc = 0;
    for (char *w = strtok_r(copy, " ", &save); w && argc < 31; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    argv[argc] = NULL;
    struct cmd *c = mem_new(ctx, struct cmd);
    int words = 4;
    if (argc > 3)
        c->command = find(mem_printf(ctx, "%s %s %s %s", argv[0], argv[1], argv[2], argv[3]));
    if (!c->command && argc > 2) {
        c->command = find(mem_printf(ctx, "%s %s %s", argv[0], argv[1], argv[2]));
        words = 3;
    }
    if (!c->command && argc > 1) {
        c->command = find(mem_printf(ctx, "%s %s", argv[0], argv[1]));
        words = 2;
    }
    if (!c->command) {
        c->command = find(argv[0]);
        words = 1;
    }
    ASSERT(c->command);
    free(out);
    free(err);
    size_t n;
    c->argc = argc - words + 1;
    c->argv = argv + words - 1;
    c->out = open_memstream(&out, &n);
    c->err = open_memstream(&err, &n);
    ASSERT(freopen("/dev/null", "r", stdin));
    c->in = stdin;
    c->fetch = fetch;
    c->now_ns = INT64_C(1795262400) * 1000000000;
    buf_reset(&asked);
    int code = c->command->run(c);
    fclose(c->out);
    fclose(c->err);
    return code;
}

const char *
fake_out(void)
{
    return out;
}

const char *
fake_err(void)
{
    return err;
}

const char *
fake_asked(void)
{
    return buf_str(&asked);
}

const char *
fake_body(void)
{
    return body ? body : "";
}

void
check_out(const char *line, int code, const char *want)
{
    int got = fake_run(line);
    ck_assert_str_eq(fake_out(), want);
    ck_assert_msg(got == code, "%s: exit code %d, want %d; %s", line, got, code, fake_err());
}

void
check_err(const char *line, int code, const char *want)
{
    int got = fake_run(line);
    ck_assert_str_eq(fake_err(), want);
    ck_assert_int_eq(got, code);
}
