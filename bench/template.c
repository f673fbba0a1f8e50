/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of the engine of templates: a configuration of a kibibyte, as a task has one, parsed and
 * carried out as paddock-render does it for each change; processor time, the best of the rounds.
 * The bar is 50 us.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "codec/codec.h"
#include "common/duration.h"
#include "common/mem.h"
#include "template/digest.h"
#include "template/template.h"

enum { ROUNDS = 15, TIMES = 500, BAR_US = 50 };

static const char part[] = "[{{ env \"NAME\" }}]\n"
                           "{{ with nomadVar \"nomad/jobs/web\" }}user = {{ .user | toJSON }}\n"
                           "password = {{ .password | toJSON }}\n{{ end -}}\n"
                           "{{ range $i, $s := nomadService \"db\" -}}\n"
                           "server.{{ $i }} = {{ $s.Address }}:{{ $s.Port }}\n{{ end }}\n";

static struct value *variable, *services, *name;

static enum template_answer
answer(void *data, const struct template_ask *a, const struct value **ret, struct err *e)
{
    (void)data, (void)e;
    *ret = a->kind == TEMPLATE_VARIABLE ? variable : a->kind == TEMPLATE_ENV ? name : services;
    return TEMPLATE_VALUE;
}

static void
make_answers(const void *ctx)
{
    struct value *items = value_map(ctx);
    value_map_set(items, "user", value_str(items, "ada"));
    value_map_set(items, "password", value_str(items, "a \"quoted\" one"));
    variable = value_map(ctx);
    value_map_set(variable, "Items", items);
    services = value_list(ctx);
    for (int i = 0; i < 3; i++) {
        struct value *s = value_map(services);
        value_map_set(s, "Address", value_str(s, "10.0.0.7"));
        value_map_set(s, "Port", value_int(s, 5432 + i));
        value_list_add(services, s);
    }
    name = value_str(ctx, "web");
}

static size_t
carry_out(const char *text, size_t n)
{
    static const struct template_grammar g = {.name = "", .table = TEMPLATE_TASK};
    static const struct template_env env = {.ask = answer, .digest = template_digest};
    auto_mem void *ctx = mem_ctx("template");
    auto_buf struct buf out = BUF_INIT(1 << 20);
    struct template_tree *tree;
    struct template_result res;
    struct err e = ERR_INIT;
    if (template_parse(ctx, &g, SLICE(text, n), &tree, &e) < 0 ||
        template_exec(ctx, &(struct template_input){tree, NULL, &env, NULL}, &out, &res, &e) < 0) {
        fprintf(stderr, "template: %s\n", e.text);
        return 0;
    }
    return out.len;
}

static int64_t
cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int
main(void)
{
    auto_mem void *ctx = mem_ctx("bench");
    char text[1024] = "";
    size_t n = 0, out = 0;
    int64_t best = INT64_MAX;
    make_answers(ctx);
    while (n + sizeof(part) <= sizeof(text)) {
        memcpy(text + n, part, sizeof(part) - 1);
        n += sizeof(part) - 1;
    }
    memset(text + n, '#', sizeof(text) - n);
    for (int r = 0; r < ROUNDS; r++) {
        int64_t t = cpu_ns();
        for (int i = 0; i < TIMES; i++)
            out = carry_out(text, sizeof(text));
        t = (cpu_ns() - t) / TIMES;
        best = t < best ? t : best;
    }
    printf("a template of %zu bytes, %zu of text: %.1f us, bar %d us: %s\n", sizeof(text), out,
           (double)best / 1000, BAR_US, best <= BAR_US * 1000 ? "met" : "MISSED");
    return out == 0 || best > BAR_US * 1000;
}
