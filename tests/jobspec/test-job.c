/* SPDX-License-Identifier: Apache-2.0
 *
 * Job files: every construct that is special to them, errors with their positions, variables.
 */
#include <stdlib.h>
#include <string.h>

#include "api/validate.h"
#include "common/str.h"
#include "tests/jobspec/help.h"

static const char whole[] =
    "job \"web\" {\n"
    "  datacenters = [\"dc1\", \"dc2\"]\n"
    "  type = \"service\"\n"
    "  priority = 70\n"
    "  meta { owner = \"me\"\n n = 5\n on = true }\n"
    "  constraint {\n attribute = \"${attr.kernel.name}\"\n value = \"linux\" }\n"
    "  constraint {\n attribute = \"${attr.v}\"\n operator = \"version\"\n value = \">= 1\" }\n"
    "  constraint {\n attribute = \"${attr.v}\"\n regexp = \"^a\" }\n"
    "  constraint { distinct_hosts = true }\n"
    "  constraint {\n distinct_property = \"${meta.rack}\"\n value = 2 }\n"
    "  reschedule {\n attempts = 3\n unlimited = false }\n"
    "  group \"app\" {\n"
    "    count = \"2\"\n"
    "    restart {\n attempts = 1\n delay = \"5s\"\n interval = 60000000000 }\n"
    "    reschedule { delay = \"7s\" }\n"
    "    network {\n mode = \"host\"\n"
    "      port \"http\" { to = 8080 }\n"
    "      port \"admin\" {\n static = 9000\n host_network = \"private\" }\n"
    "    }\n"
    "    ephemeral_disk { size = 500 }\n"
    "    task \"server\" {\n"
    "      driver = \"exec\"\n"
    "      user = \"nobody\"\n"
    "      leader = true\n"
    "      kill_timeout = \"1m30s\"\n"
    "      kill_signal = \"SIGTERM\"\n"
    "      env = { A = 1, B = \"${NOMAD_PORT_http}\" }\n"
    "      config {\n"
    "        command = \"/bin/x\"\n"
    "        args = [\"-p\", \"${NOMAD_PORT_http}\", 5]\n"
    "        opt = { deep = [true, null] }\n"
    "        mount {\n type = \"bind\"\n }\n"
    "        mount {\n type = \"tmpfs\"\n opts {\n n = 1 }\n }\n"
    "        named \"x\" { y = 1 }\n"
    "      }\n"
    "      resources {\n cpu = 200\n memory = \"64\"\n memory_max = 128 }\n"
    "      logs {\n max_files = 3\n enabled = false }\n"
    "      lifecycle {\n hook = \"prestart\"\n sidecar = true }\n"
    "    }\n"
    "  }\n"
    "  task \"lone\" { driver = \"raw_exec\" }\n"
    "}\n";

START_TEST(whole_job)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = help_job(ctx, whole, NULL);
    ck_assert_str_eq(j->id, "web");
    ck_assert_uint_eq(j->datacenters.n, 2);
    ck_assert_int_eq(j->priority.v, 70);
    ck_assert_str_eq(str_map_get(&j->meta, "n"), "5");
    ck_assert_str_eq(str_map_get(&j->meta, "on"), "true");
    ck_assert_uint_eq(j->constraints.n, 5);
    ck_assert_str_eq(j->constraints.v[0]->l_target, "${attr.kernel.name}");
    ck_assert_str_eq(j->constraints.v[0]->operand, "="); /* as Nomad's -output */
    ck_assert_str_eq(j->constraints.v[1]->operand, "version");
    ck_assert_str_eq(j->constraints.v[2]->operand, "regexp");
    ck_assert_str_eq(j->constraints.v[2]->r_target, "^a");
    ck_assert_str_eq(j->constraints.v[3]->operand, "distinct_hosts");
    ck_assert_str_eq(j->constraints.v[4]->operand, "distinct_property");
    ck_assert_str_eq(j->constraints.v[4]->l_target, "${meta.rack}");
    ck_assert_str_eq(j->constraints.v[4]->r_target, "2");
    ck_assert_uint_eq(j->task_groups.n, 2);
    ck_assert_str_eq(j->task_groups.v[0]->name, "lone"); /* before the groups, as in Nomad */
    ck_assert_str_eq(j->task_groups.v[0]->tasks.v[0]->name, "lone");
    ck_assert_int_eq(j->reschedule->attempts.v, 3);
}
END_TEST

START_TEST(group_and_task)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = help_job(ctx, whole, NULL);
    const struct task_group *g = j->task_groups.v[1];
    ck_assert_int_eq(g->count.v, 2);
    ck_assert_int_eq(g->restart_policy->delay.v, INT64_C(5000000000));
    ck_assert_int_eq(g->restart_policy->interval.v, INT64_C(60000000000));
    ck_assert_int_eq(g->reschedule_policy->delay.v, INT64_C(7000000000));
    const struct network_resource *n = g->networks.v[0];
    ck_assert_uint_eq(n->dynamic_ports.n, 1);
    ck_assert_int_eq(n->dynamic_ports.v[0]->to, 8080);
    ck_assert_int_eq(n->reserved_ports.v[0]->value, 9000);
    ck_assert_str_eq(n->reserved_ports.v[0]->host_network, "private");
    const struct task *t = g->tasks.v[0];
    ck_assert(t->leader);
    ck_assert_int_eq(t->kill_timeout.v, INT64_C(90000000000));
    ck_assert_str_eq(str_map_get(&t->env, "A"), "1");
    ck_assert_str_eq(str_map_get(&t->env, "B"), "${NOMAD_PORT_http}");
    auto_buf struct buf b = BUF_INIT(1 << 16);
    json_encode_value(&b, t->config, 0);
    ck_assert_str_eq(buf_str(&b),
                     "{\"command\":\"/bin/x\",\"args\":[\"-p\",\"${NOMAD_PORT_http}\",5],"
                     "\"opt\":{\"deep\":[true,null]},"
                     "\"mount\":[{\"type\":\"bind\"},{\"type\":\"tmpfs\",\"opts\":[{\"n\":1}]}],"
                     "\"named\":[{\"x\":[{\"y\":1}]}]}");
    ck_assert_int_eq(t->resources->memory_mb.v, 64);
    ck_assert(t->log_config->disabled);
    ck_assert(t->lifecycle->sidecar);
}
END_TEST

static const char blocks[] =
    "job \"web\" {\n"
    "  id = \"site\"\n"
    "  vault { role = \"of-job\" }\n"
    "  secret \"all\" { provider = \"nomad\" }\n"
    "  periodic { crons = [\"@daily\"] }\n"
    "  group \"app\" {\n"
    "    scaling {\n max = 4\n policy { check \"c\" { source = \"x\" } }\n }\n"
    "    volume \"data\" {\n type = \"csi\"\n source = \"d\"\n mount_options { fs_type = \"ext4\" "
    "}\n }\n"
    "    service {\n"
    "      name = \"s\"\n"
    "      check {\n type = \"http\"\n interval = \"10s\"\n header { Accept = [\"a\", \"b\"] }\n "
    "}\n"
    "      connect { sidecar_service { proxy { upstreams { local_bind_port = 80 } } } }\n"
    "    }\n"
    "    task \"t\" {\n"
    "      identity { env = true }\n"
    "      identity {\n name = \"x\"\n aud = [\"a\"]\n ttl = \"1h\"\n }\n"
    "      secret \"own\" { provider = \"vault\" }\n"
    "      scaling \"cpu\" { max = 9 }\n"
    "      template {\n data = \"d\"\n change_script { command = \"c\" }\n }\n"
    "    }\n"
    "    task \"u\" {\n vault { role = \"own\" }\n }\n"
    "  }\n"
    "}\n";

/* The blocks' words are in Nomad's places, with what Nomad's parser adds. */
START_TEST(blocks_without_effect)
{
    static const char *const has[] = {
        "\"ID\":\"site\"",
        "\"SpecType\":\"cron\"",
        "\"Type\":\"horizontal\",\"Target\":null,\"Policy\":{\"check\":[{\"c\":[{\"source\":\"x\"}]"
        "}]}",
        "\"Volumes\":{\"data\":{\"Name\":\"data\",\"Type\":\"csi\",\"Source\":\"d\"",
        "\"MountOptions\":{\"FSType\":\"ext4\"",
        "\"Header\":{\"Accept\":[\"a\",\"b\"]}",
        "\"LocalBindPort\":80",
        "\"Type\":\"vertical_cpu\"",
        "\"ChangeMode\":\"restart\",\"ChangeSignal\":\"\",\"ChangeScript\":{\"Command\":\"c\","
        "\"Args\":[],"
        "\"Timeout\":5000000000,\"FailOnError\":false,\"RunOnFirstRender\":false}",
        "\"Perms\":\"0644\"",
        "\"TTL\":3600000000000"};
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = help_job(ctx, blocks, NULL);
    ck_assert_ptr_nonnull(j);
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode(&b, &type_job, j, 0);
    for (size_t i = 0; i < ARRAY_LEN(has); i++)
        ck_assert_msg(strstr(buf_str(&b), has[i]) != NULL, "no %s in %s", has[i], buf_str(&b));
    const struct task *t = j->task_groups.v[0]->tasks.v[0], *u = j->task_groups.v[0]->tasks.v[1];
    ck_assert_str_eq(t->vault->role, "of-job");
    ck_assert(t->vault->env.v);
    ck_assert_str_eq(u->vault->role, "own");
    ck_assert_uint_eq(t->secrets.n, 2);
    ck_assert_str_eq(u->secrets.v[0]->name, "all");
    ck_assert(t->identity->env);
    ck_assert_uint_eq(t->identities.n, 1);
    struct str_list found = {NULL, 0};
    job_unsupported(ctx, j, &found);
    const char *all = job_errors_text(ctx, &found);
    ck_assert_msg(strstr(all, "group \"app\": task \"t\": ") && !strstr(all, "template") &&
                      strstr(all, "secret \"own\": provider \"vault\" is not in this release") &&
                      strstr(all, "group \"app\": scaling") == NULL &&
                      strstr(all, "volume \"data\": type \"csi\" is not in this release") &&
                      strstr(all, "service \"s\": provider \"consul\"") &&
                      strstr(all, "task \"u\": vault"),
                  "%s", all);
}
END_TEST

static const struct {
    const char *text, *want;
} errors[] = {
    {"", "j.hcl:1,1: No job; The file has no block job \"name\" { ... }."},
    {"x = 1", "j.hcl:1,1-2: Unsupported argument; An argument named \"x\" is not expected here."},
    {"jobb \"x\" {}",
     "j.hcl:1,1-5: Unsupported block type; Blocks of type \"jobb\" are not expected "
     "here. Did you mean \"job\"?"},
    {"job {}", "j.hcl:1,1-4: Missing label; A block \"job\" needs a name: job \"name\" { ... }."},
    {"job \"a\" \"b\" {}", "j.hcl:1,9-12: Extraneous label; A block \"job\" takes 1 label(s)."},
    {"job \"a\" {}\njob \"b\" {}",
     "j.hcl:2,1-8: Duplicate job; A file holds one job; the first is at "
     "line 1."},
    {"job \"a\" {\n  tpye = \"service\"\n}",
     "j.hcl:2,3-7: Unsupported argument; An argument named "
     "\"tpye\" is not expected here. Did you mean \"type\"?"},
    {"job \"a\" {\n  type = \"service\"\n  type = \"batch\"\n}",
     "j.hcl:3,3-7: Attribute redefined; The argument \"type\" was already set at line 2. Each "
     "argument "
     "may be set only once."},
    {"job \"a\" { priority = \"high\" }",
     "j.hcl:1,22-28: Incorrect value type; Inappropriate value for "
     "\"priority\": a whole number is required."},
    {"job \"a\" { priority = 1.5 }", "j.hcl:1,22-25: Incorrect value type; Inappropriate value for "
                                     "\"priority\": a whole number is required."},
    {"job \"a\" { datacenters = \"dc1\" }",
     "j.hcl:1,25-30: Incorrect value type; Inappropriate value "
     "for \"datacenters\": a list is required."},
    {"job \"a\" { datacenters = [null] }",
     "j.hcl:1,25-31: Unsuitable value type; Unsuitable value: element 0 of \"datacenters\": null "
     "value is not allowed."},
    {"job \"a\" { group = 1 }", "j.hcl:1,11-16: Unsupported argument; \"group\" is a block, not an "
                                "argument: write group { ... } without \"=\"."},
    {"job \"a\" {\n type {}\n}",
     "j.hcl:2,2-6: Unsupported block type; \"type\" is an argument, not a "
     "block: write type = value."},
    {"job \"a\" {\n update {}\n update {}\n}",
     "j.hcl:3,2-8: Duplicate block; Only one \"update\" block "
     "is allowed here."},
    {"job \"a\" {\n group \"g\" {\n task \"t\" {\n lifecycle {}\n }\n }\n}",
     "j.hcl:4,2-11: Missing required argument; The argument \"hook\" is required, but it is not "
     "set."},
    {"job \"a\" {\n group \"g\" {\n scaling {}\n }\n}",
     "j.hcl:3,2-9: Missing required argument; The argument \"max\" is required, but it is not "
     "set."},
    {"job \"a\" {\n task \"t\" {\n scaling \"disk\" {}\n }\n}",
     "j.hcl:3,10-16: Invalid scaling policy name; scaling policy name must be \"cpu\" or \"mem\""},
    {"job \"a\" {\n task \"t\" {\n driver = \"x\"\n kill_timeout = \"soon\"\n }\n}",
     "j.hcl:4,17-23: Invalid duration; \"kill_timeout\" needs a duration such as \"30s\", \"5m\" "
     "or "
     "\"1h30m\", not \"soon\"."},
    {"job \"a\" {\n task \"t\" {\n driver = \"x\"\n template {\n dest = \"x\"\n }\n }\n}",
     "j.hcl:5,2-6: Unsupported argument; An argument named \"dest\" is not expected here."},
    {"job \"a\" {\n vault {}\n vault {}\n}",
     "j.hcl:3,2-7: Duplicate vault block; Only one \"vault\" block is allowed here."},
    {"job \"a\" { meta { x = [1] } }",
     "j.hcl:1,22-25: Incorrect value type; Inappropriate value for "
     "\"meta\": a string is required."},
    {"job \"a\" {\n meta {\n b {}\n }\n}",
     "j.hcl:3,2-3: Unexpected block; \"meta\" holds only arguments: name = value."},
    {"job \"a\" {\n group \"g\" {\n network {\n prot \"x\" {}\n }\n }\n}",
     "j.hcl:4,2-6: Unsupported block type; Blocks of type \"prot\" are not expected here. Did you "
     "mean "
     "\"port\"?"},
    {"job \"a\" {\n constraint { distinct_hosts = \"maybe\" }\n}",
     "j.hcl:2,32-39: Incorrect value type; \"distinct_hosts\" needs true or false."},
    {"job \"a\" {\n dynamic \"group\" {\n labels = [\"x\"]\n content {}\n }\n}",
     "j.hcl:2,2-17: Invalid dynamic block; A dynamic block needs for_each and a content block."},
    {"job \"a\" {\n type = \"a\", }", "j.hcl:2,12-13: Unexpected comma; Arguments of a block are "
                                      "separated by new lines, not by commas."},
    {"job \"a\" { type = \"a\" region = \"b\" }",
     "j.hcl:1,22-28: Missing new line; Expected a new line "
     "after an argument or block, but found a name."},
    {"job \"a\" {", "j.hcl:1,9-10: Unclosed block; No closing brace was found for this block."},
    {"job \"a\" {}\n}", "j.hcl:2,1-2: Unexpected closing brace; No block is open here."},
    {"job \"${x}\" {}", "j.hcl:1,5-6: Invalid name; Templates cannot be used in names and labels."},
    {"job \"a\" {\n\ttype = 'x'\n}",
     "j.hcl:2,9-10: Invalid character; Single quotes are not valid here; "
     "use double quotes for strings."},
    {"/* never", "j.hcl:1,1-3: Unterminated comment; No \"*/\" was found for this comment."},
    {"job \"é\" {\n  # ünï\n  ñame = 1\n}", "j.hcl:3,3-7: Unsupported argument; An argument named "
                                            "\"ñame\" is not expected here. Did you mean "
                                            "\"name\"?"},
};

START_TEST(positions)
{
    unsigned bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        auto_mem void *ctx = mem_ctx("row");
        const char *got = help_error(ctx, errors[i].text);
        if (strcmp(got, errors[i].want) != 0) {
            fprintf(stderr, "%s\n  got  %s\n  want %s\n", errors[i].text, got, errors[i].want);
            bad++;
        }
    }
    ck_assert_uint_eq(bad, 0);
}
END_TEST

START_TEST(source_and_caret)
{
    auto_mem void *ctx = mem_ctx("test");
    const char *text;
    ck_assert_ptr_null(help_job(ctx, "job \"a\" {\n\ttpye = 1\n  region = [1]\n}\n", &text));
    ck_assert_str_eq(text,
                     "j.hcl:2,2-6: Unsupported argument; An argument named \"tpye\" is not "
                     "expected here. Did you mean \"type\"?\n\n"
                     "  2:  tpye = 1\n"
                     "      ^~~~\n\n"
                     "j.hcl:3,12-15: Incorrect value type; Inappropriate value for \"region\": a "
                     "string is required.\n\n"
                     "  3:   region = [1]\n"
                     "                ^~~");
}
END_TEST

START_TEST(many_errors_are_bounded)
{
    auto_mem void *ctx = mem_ctx("test");
    auto_buf struct buf b = BUF_INIT(1 << 20);
    buf_puts(&b, "job \"a\" {\n");
    for (int i = 0; i < 50; i++)
        buf_printf(&b, "zzzzz%d = 1\n", i);
    buf_puts(&b, "}\n");
    const char *text;
    ck_assert_ptr_null(help_job(ctx, buf_str(&b), &text));
    ck_assert_ptr_nonnull(strstr(text, "zzzzz9"));
    ck_assert_ptr_null(strstr(text, "zzzzz10"));
    ck_assert(str_suffix(text, "and 40 more errors"));
}
END_TEST

START_TEST(dynamic_blocks)
{
    static const char text[] = "locals { ports = { a = 80, b = 0 }\n groups = [\"x\", \"y\"] }\n"
                               "job \"j\" {\n"
                               "  dynamic \"group\" {\n"
                               "    for_each = local.groups\n"
                               "    iterator = g\n"
                               "    labels = [\"${g.value}-${g.key}\"]\n"
                               "    content {\n"
                               "      count = g.key\n"
                               "      network {\n"
                               "        dynamic \"port\" {\n"
                               "          for_each = local.ports\n"
                               "          labels = [port.key]\n"
                               "          content { static = port.value }\n"
                               "        }\n"
                               "      }\n"
                               "      task \"t\" {\n driver = \"exec\"\n"
                               "        config {\n dynamic \"mount\" {\n for_each = [1, 2]\n "
                               "content { n = mount.value }\n }\n }\n"
                               "      }\n"
                               "    }\n"
                               "  }\n"
                               "}\n";
    auto_mem void *ctx = mem_ctx("test");
    struct job *j = help_job(ctx, text, NULL);
    ck_assert_uint_eq(j->task_groups.n, 2);
    ck_assert_str_eq(j->task_groups.v[1]->name, "y-1");
    ck_assert_int_eq(j->task_groups.v[1]->count.v, 1);
    ck_assert_str_eq(j->task_groups.v[1]->networks.v[0]->reserved_ports.v[0]->label, "a");
    ck_assert_str_eq(j->task_groups.v[1]->networks.v[0]->dynamic_ports.v[0]->label, "b");
    auto_buf struct buf b = BUF_INIT(1 << 16);
    json_encode_value(&b, j->task_groups.v[0]->tasks.v[0]->config, 0);
    ck_assert_str_eq(buf_str(&b), "{\"mount\":[{\"n\":1},{\"n\":2}]}");
}
END_TEST

/* --- variables --- */

static const char vars_text[] =
    "variable \"s\" {\n type = string\n default = \"d\"\n}\n"
    "variable \"n\" {\n type = number\n default = 1\n"
    " validation {\n condition = var.n < 100\n"
    "  error_message = \"n is too large\"\n }\n}\n"
    "variable \"l\" {\n type = list(string)\n default = []\n}\n"
    "variable \"u\" { default = true }\n"
    "variables { short = \"x\" }\n"
    "locals { both = \"${var.s}${var.n}\" }\n"
    "job \"j\" { meta {\n s = var.s\n n = var.n\n l = join(\",\", var.l)\n"
    " u = \"${var.u}\"\n short = var.short\n both = local.both\n } }\n";

struct given {
    const char *env_s, *env_res, *file, *json, *arg, *arg2;
    bool lenient;
};

/* "s=… n=… …" of the job's meta, or the first line of the diagnostics. */
static const char *
with_vars(const void *ctx, const char *text, struct given g)
{
    struct str_map env = {NULL, 0};
    struct str_list args = {NULL, 0};
    struct jobspec_file files[2];
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct jobspec_input in = {.name = "j.hcl",
                               .s = text,
                               .n = strlen(text),
                               .env_vars = &env,
                               .vars = &args,
                               .var_files = files,
                               .lenient = g.lenient};
    if (g.env_s != NULL)
        str_map_set(ctx, &env, "s", g.env_s);
    if (g.env_res != NULL)
        str_map_set(ctx, &env, "res", g.env_res);
    str_map_set(ctx, &env, "unused", "x");
    if (g.file != NULL)
        files[in.n_var_files++] = (struct jobspec_file){"f.hcl", g.file, strlen(g.file)};
    if (g.json != NULL)
        files[in.n_var_files++] = (struct jobspec_file){"f.json", g.json, strlen(g.json)};
    if (g.arg != NULL)
        list_add(ctx, args, g.arg);
    if (g.arg2 != NULL)
        list_add(ctx, args, g.arg2);
    struct job *j = NULL;
    if (jobspec_parse(ctx, &in, &j, &d) < 0) {
        const char *t = hcl_diags_text(ctx, &d, false);
        return mem_strndup(ctx, t, strcspn(t, "\n"));
    }
    auto_buf struct buf b = BUF_INIT(1 << 16);
    for (size_t i = 0; i < j->meta.n; i++)
        buf_printf(&b, "%s%s=%s", i > 0 ? " " : "", j->meta.v[i].k, j->meta.v[i].v);
    return mem_strdup(ctx, buf_str(&b));
}

START_TEST(variables)
{
    static const struct {
        struct given g;
        const char *want;
    } rows[] = {
        {{0}, "both=d1 l= n=1 s=d short=x u=true"},
        {{.env_s = "e"}, "both=e1 l= n=1 s=e short=x u=true"},
        {{.env_s = "e", .file = "s = \"f\"\nn = 2\n"}, "both=f2 l= n=2 s=f short=x u=true"},
        {{.file = "s = \"f\"", .json = "{\"s\": \"j\", \"l\": [\"p\", \"q\"]}"},
         "both=j1 l=p,q n=1 s=j short=x u=true"},
        {{.file = "s = \"f\"", .arg = "s=a b\"c", .arg2 = "n=42"},
         "both=a b\"c42 l= n=42 s=a b\"c short=x u=true"},
        {{.arg = "l=[\"x\", \"y\"]", .arg2 = "u=false"}, "both=d1 l=x,y n=1 s=d short=x u=false"},
        {{.arg = "l=[upper(\"y\")]"}, "<-var l>:1,2-7: Function calls not allowed"},
        {{.arg = "u=maybe"}, "<-var u>:1,1-6: Unquoted text"},
        {{.arg = "u=\"x\""}, "<-var? "},
        {{.arg = "s=${NOMAD_X}"}, "both=${NOMAD_X}1 l= n=1 s=${NOMAD_X} short=x u=true"},
        {{.arg = "n=abc"}, "<-var? "},
        {{.arg = "n=1000"}, "j.hcl:5,10-13: Invalid value for variable; n is too large"},
        {{.arg = "nope=1"},
         "Undeclared variable; -var sets \"nope\", but the job file has no variable "
         "\"nope\"."},
        {{.arg = "shrt=1"},
         "Undeclared variable; -var sets \"shrt\", but the job file has no variable "
         "\"shrt\". Did you mean \"short\"?"},
        {{.arg = "nope=1", .lenient = true}, "both=d1 l= n=1 s=d short=x u=true"},
        {{.arg = "junk"}, "Invalid -var; \"junk\" is not of the form name=value."},
        {{.arg = "l=[1"}, "<"},
        {{.file = "nope = 1"},
         "f.hcl:1,1-5: Undeclared variable; The variable file sets \"nope\", but the "
         "job file has no variable \"nope\"."},
        {{.file = "s = var.n"}, "f.hcl:1,5-8: Unquoted text; References are not possible here"},
        {{.file = "s {}"},
         "f.hcl:1,1-2: Unexpected block; \"s\": a variable file holds only name = "
         "value."},
        {{.json = "{\"s\": }"}, "f.json:1,7-8: Invalid JSON; A value was expected here."},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("row");
        const char *got = with_vars(ctx, vars_text, rows[i].g);
        if (rows[i].want[0] == '<')
            ck_assert_msg(got[0] == '<' && strstr(got, "-var ") != NULL, "row %zu: %s", i, got);
        else
            ck_assert_msg(str_prefix(got, rows[i].want), "row %zu: %s", i, got);
    }
}
END_TEST

/* Defaults of optional() at every depth, whatever the value came by. */
static const char typed_text[] =
    "variable \"res\" {\n"
    "  type = object({\n"
    "    cpu = optional(number, 500), on = optional(bool, \"1\"), no = optional(string),\n"
    "    in = optional(object({a = optional(string, \"x\"), b = optional(number, 7)}), {b = "
    "\"8\"}),\n"
    "    list = optional(list(object({n = optional(number, 3)})), [{}]),\n"
    "    map = optional(map(tuple([object({s = optional(string, \"t\")})])), {k = [{}]})\n"
    "  })\n"
    "  default = {}\n"
    "}\n"
    "job \"j\" {\n meta {\n v = jsonencode(var.res)\n }\n"
    " group \"g\" {\n task \"t\" {\n driver = \"exec\"\n }\n }\n}\n";

START_TEST(defaults_of_optional_attributes_hold)
{
#define WANT(cpu, in, list, map)                                                                   \
    "v={\"cpu\":" cpu ",\"in\":" in ",\"list\":" list ",\"map\":" map ",\"no\":null,\"on\":true}"
#define IN "{\"a\":\"x\",\"b\":8}"
#define MAP "{\"k\":[{\"s\":\"t\"}]}"
    static const struct {
        struct given g;
        const char *want;
    } rows[] = {
        {{0}, WANT("500", IN, "[{\"n\":3}]", MAP)},
        {{.arg = "res={cpu = null, in = {}}"},
         WANT("500", "{\"a\":\"x\",\"b\":7}", "[{\"n\":3}]", MAP)},
        {{.file = "res = {\n in = {a = null}\n list = [{n = \"4\"}, {}]\n}"},
         WANT("500", "{\"a\":\"x\",\"b\":7}", "[{\"n\":4},{\"n\":3}]", MAP)},
        {{.json = "{\"res\": {\"cpu\": \"1.5\", \"map\": {\"a\": [{}], \"b\": [{\"s\": 1}]}}}"},
         WANT("1.5", IN, "[{\"n\":3}]", "{\"a\":[{\"s\":\"t\"}],\"b\":[{\"s\":\"1\"}]}")},
        {{.env_res = "{map = {}, more = 1}"}, WANT("500", IN, "[{\"n\":3}]", "{}")},
        {{.arg = "res={list = [null]}"}, WANT("500", IN, "[null]", MAP)},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("row");
        ck_assert_str_eq(with_vars(ctx, typed_text, rows[i].g), rows[i].want);
    }
}
END_TEST

START_TEST(links_have_the_name_that_nomad_gives_them)
{
    auto_mem void *ctx = mem_ctx("test");
    struct job *j =
        help_job(ctx, "job \"j\" {\n ui {\n link {\n label = \"l\"\n url = \"u\"\n }\n }\n}", NULL);
    ck_assert_ptr_nonnull(j);
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode(&b, &type_job, j, 0);
    ck_assert_ptr_nonnull(strstr(buf_str(&b), "{\"Label\":\"l\",\"URL\":\"u\"}"));
}
END_TEST

START_TEST(null_is_no_value_of_a_map)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"meta {\n a = null\n}", "\"a\" of \"meta\": null"},
        {"meta = {\n a = null\n}", "\"a\" of \"meta\": null"},
        {"group \"g\" {\n task \"t\" {\n env {\n X = null\n }\n }\n }", "\"X\" of \"env\": null"},
        {"group \"g\" {\n task \"t\" {\n env = { X = null }\n }\n }", "\"X\" of \"env\": null"},
        {"datacenters = [\"a\", null]", "element 1 of \"datacenters\": null"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("row");
        const char *got = help_error(ctx, mem_printf(ctx, "job \"j\" {\n%s\n}", rows[i].text));
        ck_assert_msg(strstr(got, rows[i].want) != NULL && strstr(got, "is not allowed") != NULL,
                      "row %zu: %s", i, got);
    }
}
END_TEST

START_TEST(variable_errors)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"variable \"a\" {}\njob \"j\" {}", "j.hcl:1,10-13: Unset variable"},
        {"variable \"a\" {}\nvariable \"a\" {}\njob \"j\" {}", "j.hcl:2,10-13: Duplicate variable"},
        {"variable \"a\" { type = strng }\njob \"j\" {}", "j.hcl:1,23-28: Invalid type"},
        {"variable \"a\" {\n type = number\n default = \"x\"\n}\njob \"j\" {}",
         "j.hcl:3,12-15: Invalid value for variable; The value of \"a\" is not suitable: a number "
         "is "
         "needed, this is a string."},
        {"variable \"a\" {\n type = object({ n = optional(number, \"x\") })\n}\njob \"j\" {}",
         "j.hcl:2,39-42: Invalid default value for optional attribute"},
        {"variable \"a\" {\n type = object({ n = optional(number, 1, 2) })\n}\njob \"j\" {}",
         "j.hcl:2,22-44: Invalid type"},
        {"variable \"a\" {\n type = any\n}\njob \"j\" {}",
         "j.hcl:2,9-12: Invalid type; The keyword \"any\" cannot be used"},
        {"variable \"a\" {\n type = map(any)\n}\njob \"j\" {}", "j.hcl:2,13-16: Invalid type"},
        {"variable \"a\" {\n type = list\n}\njob \"j\" {}", "j.hcl:2,9-13: Invalid type"},
        {"variable \"a\" {\n type = \"string\"\n}\njob \"j\" {}", "j.hcl:2,9-17: Invalid type"},
        {"variable \"a\" {\n default = 1\n sensitive = true\n}\njob \"j\" {}",
         "j.hcl:3,2-11: Unsupported argument"},
        {"job \"j\" {\n meta {\n a = 1\n }\n meta {\n b = 1\n }\n}",
         "j.hcl:5,2-6: Duplicate block"},
        {"job \"j\" {\n meta = { a = 1 }\n meta {\n b = 1\n }\n}", "j.hcl:3,2-6: Duplicate block"},
        {"job \"j\" {\n group \"g\" {\n task \"t\" {\n env {}\n env {}\n }\n }\n}",
         "j.hcl:5,2-5: Duplicate block"},
        {"job \"j\" {\n \"type\" = \"batch\"\n}",
         "j.hcl:2,2-8: Invalid argument name; Argument names must not be quoted."},
        {"variable \"a b\" {}\njob \"j\" {}", "j.hcl:1,1-15: Invalid variable"},
        {"variable \"a\" { defalt = 1 }\njob \"j\" {}", "j.hcl:1,16-22: Unsupported argument"},
        {"variable \"a\" {\n default = 1\n validation {}\n}\njob \"j\" {}",
         "j.hcl:3,2-12: Invalid validation"},
        {"variable \"a\" { default = var.a }\njob \"j\" {}", "j.hcl:1,26-29: Unknown variable"},
        {"locals {\n a = local.b\n b = local.a\n}\njob \"j\" { meta { x = local.a } }",
         "j.hcl:3,6-13: Circular reference"},
        {"locals {\n a = 1\n}\nlocals {\n a = 2\n}\njob \"j\" {}", "j.hcl:5,2-3: Duplicate local"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("row");
        const char *got = help_error(ctx, rows[i].text);
        ck_assert_msg(str_prefix(got, rows[i].want), "row %zu: %s", i, got);
    }
}
END_TEST

START_TEST(json_jobs)
{
    static const char *const good[] = {
        "{\"Job\": {\"ID\": \"x\", \"TaskGroups\": [{\"Name\": \"g\"}]}}",
        "{\"id\": \"x\", \"taskgroups\": [{\"name\": \"g\"}], \"Unknown\": 1}"};
    static const char *const bad[] = {"",  "[]", "{\"Job\": {}}", "{\"ID\": 5}", "{\"ID\": \"x\"",
                                      "{}"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        auto_mem void *ctx = mem_ctx("row");
        struct err e = ERR_INIT;
        struct job *j;
        ck_assert_msg(jobspec_parse_json(ctx, good[i], strlen(good[i]), &j, &e) == 0, "%s", e.text);
        ck_assert_str_eq(j->id, "x");
        ck_assert_str_eq(j->task_groups.v[0]->name, "g");
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_mem void *ctx = mem_ctx("row");
        struct err e = ERR_INIT;
        struct job *j = NULL;
        ck_assert_int_lt(jobspec_parse_json(ctx, bad[i], strlen(bad[i]), &j, &e), 0);
        ck_assert_ptr_null(j);
        ck_assert(e.text[0] != '\0');
    }
}
END_TEST

static const char in_hcl[] =
    "variable \"n\" {\n type = number\n default = 2\n validation {\n condition = var.n < 5\n"
    " error_message = \"too many\"\n }\n}\n"
    "locals {\n who = \"x${var.n}\"\n}\n"
    "job \"web\" {\n datacenters = [\"dc1\"]\n meta {\n a = local.who\n }\n"
    " constraint {\n attribute = \"${attr.kernel.name}\"\n value = \"linux\"\n }\n"
    " constraint {\n distinct_hosts = true\n }\n"
    " group \"app\" {\n count = var.n\n"
    "  network {\n port \"http\" {\n to = 8080\n }\n port \"admin\" {\n static = 9000\n }\n }\n"
    "  task \"t\" {\n driver = \"exec\"\n"
    "   env {\n P = \"${NOMAD_PORT_http}\"\n Q = \"\\\"$${x}\\n\"\n }\n"
    "   config {\n args = [\"-p\", \"${NOMAD_PORT_http}\", 0.5]\n command = \"/bin/x\"\n }\n"
    "   vault {\n role = \"r\"\n }\n scaling \"cpu\" {\n max = 5\n }\n }\n }\n}\n";

static const char in_json[] =
    "{\"variable\": {\"n\": {\"type\": \"number\", \"default\": 2, \"validation\":"
    " {\"condition\": \"${var.n < 5}\", \"error_message\": \"too many\"}}},\n"
    " \"locals\": {\"who\": \"x${var.n}\"},\n"
    " \"job\": {\"web\": {\"datacenters\": [\"dc1\"], \"meta\": {\"a\": \"${local.who}\"},\n"
    "  \"constraint\": [{\"attribute\": \"${attr.kernel.name}\", \"value\": \"linux\"},"
    " {\"distinct_hosts\": true}],\n"
    "  \"group\": [{\"app\": {\"count\": \"${var.n}\","
    " \"network\": {\"port\": {\"http\": {\"to\": 8080}, \"admin\": {\"static\": 9000}}},\n"
    "   \"task\": {\"t\": {\"driver\": \"exec\", \"env\": {\"P\": \"${NOMAD_PORT_http}\","
    " \"Q\": \"\\\"$${x}\\n\"},\n"
    "    \"config\": {\"command\": \"/bin/x\", \"args\": [\"-p\", \"${NOMAD_PORT_http}\", 0.5]},\n"
    "    \"vault\": {\"role\": \"r\"}, \"scaling\": {\"cpu\": {\"max\": 5}}}}}}]}}}\n";

static const char *
as_json(const void *ctx, const char *text)
{
    const char *why = NULL;
    struct job *j = help_job(ctx, text, &why);
    ck_assert_msg(j != NULL, "%s", why);
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_encode(&b, &type_job, j, 0);
    return mem_strdup(ctx, buf_str(&b));
}

/* HCL, HCL in JSON, and the API's JSON of the same job. */
START_TEST(a_job_is_the_same_in_each_form)
{
    auto_mem void *ctx = mem_ctx("test");
    const char *want = as_json(ctx, in_hcl);
    ck_assert(str_eq(as_json(ctx, in_json), want)); /* too long for a message */
    ck_assert(str_eq(as_json(ctx, want), want));
    ck_assert(str_eq(as_json(ctx, mem_printf(ctx, "{\"Job\": %s}", want)), want));
    static const char *const bad[] = {"{\"job\": 5}",
                                      "{\"job\": {\"a\": 5}}",
                                      "{\"jobs\": {}}",
                                      "{\"job\": {\"a\": {\"nope\": {}}}}",
                                      "{",
                                      "{\"job\": {\"a\": {\"meta\": {\"x\": \"${\"}}}}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(help_error(ctx, bad[i])[0] != '\0', "row %zu", i);
}
END_TEST

/* A text has no end mark: nothing behind its length is read. ASan tells. */
START_TEST(a_text_of_blanks_ends_where_it_says)
{
    auto_mem void *ctx = mem_ctx("test");
    for (size_t n = 0; n < 3; n++) {
        char *s = malloc(n + 1);
        ck_assert_ptr_nonnull(s);
        memset(s, ' ', n);
        s[n] = '{';
        struct hcl_diags d = HCL_DIAGS_INIT;
        struct jobspec_input in = {.name = "x", .s = s, .n = n};
        struct job *j = NULL;
        ck_assert_int_lt(jobspec_parse(ctx, &in, &j, &d), 0);
        ck_assert_msg(strstr(d.v[0].text, "No job") != NULL, "%s", d.v[0].text);
        free(s);
    }
}
END_TEST

TEST_SUITE("jobs", whole_job, group_and_task, blocks_without_effect, positions, source_and_caret,
           many_errors_are_bounded, dynamic_blocks, variables, defaults_of_optional_attributes_hold,
           null_is_no_value_of_a_map, links_have_the_name_that_nomad_gives_them, variable_errors,
           json_jobs, a_job_is_the_same_in_each_form, a_text_of_blanks_ends_where_it_says)
