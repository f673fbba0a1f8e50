/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeds that are text: written here in the grammar of each parser, or derived from our own examples
 * and encoders.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "common/fd.h"
#include "jobspec/jobspec.h"
#include "tests/fuzz/corpus.h"

#define HOST "Host: a\r\n"

static const char *const http[] = {
    "GET /v1/jobs?prefix=a%2Fb&index=1&wait=1s HTTP/1.1\r\n" HOST
    "Accept-Encoding: gzip;q=0.5, br\r\n\r\n",
    "PUT /v1/jobs HTTP/1.1\r\n" HOST
    "Content-Length: 12\r\nExpect: 100-continue\r\n\r\n{\"Job\":null}",
    "POST /v1/jobs HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n"
    "A: b\r\n\r\n",
    "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.1\r\n" HOST "\r\nGET /a HTTP/1.1\r\n" HOST "\r\nHEAD /b HTTP/1.1\r\n" HOST
    "Connection: close\r\n\r\n",
    "\r\n\r\nOPTIONS * HTTP/1.1\r\n" HOST "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n"
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "GET http://h/p?q HTTP/1.1\r\nhost:\th \r\nA: b\r\n folded\r\n\r\n",
    "DELETE /%2e%2e/%00 HTTP/1.1\r\n" HOST "Host: b\r\nContent-Length: +1\r\n"
    "Content-Length: 01\r\n\r\nx",
    "GET / HTTP/1.1\n" HOST "\n",
    NULL};

static const char *const filters[] = {"ID == \"web\"",
                                      "Status != dead and Priority == 50 or not (Type == `batch`)",
                                      "\"b\" in Meta",
                                      "Meta contains a",
                                      "Meta.a is not empty",
                                      "Datacenters is empty",
                                      "ID matches \"^w.*b$\"",
                                      "\"dc1\" not in Datacenters",
                                      "Update.MaxParallel == 2",
                                      "TaskGroups[\"x\"] is empty",
                                      "((ID == a))",
                                      "not not ID not matches `(a+)+$`",
                                      "ParameterizedJob is not nil or Update is nil",
                                      "any TaskGroups as g { g.Name == g and g.Tasks is empty }",
                                      "all Meta as k, v { k == a and v != b }",
                                      "any Datacenters as i, _ { i == 0 } or TaskGroups.0.Name == g",
                                      NULL};
static const char *const node_filters[] = {"Attributes[\"kernel.name\"] == linux",
                                           "Drivers.exec.Detected == true", "Links is empty",
                                           "NodeResources.Cpu.CpuShares == 9",
                                           "any Drivers as _, d { d.Healthy == true }", NULL};

/* operator, left NUL right */
static const struct {
    int op;
    const char *sides;
} constraints[] = {{0, "linux\1linux"},
                   {1, "a\1b"},
                   {2, "2\1010"},
                   {3, "a\1a"},
                   {4, "1.5\1-3e2"},
                   {5, "\1"},
                   {6, "abc\1^a.(c|d)+$"},
                   {7, "1.2.3-beta1+b\1>= 1.2, < 2.0, != 1.9, ~> 1.2.0"},
                   {8, "1.7.0-rc.1\1>= 1.6.0"},
                   {9, "a,b, c\1a,c"},
                   {10, "x,y\1z,y"},
                   {11, "v\1"},
                   {0, "${node.unique.id}\1${attr.kernel.name}"},
                   {0, "1000-1005,22,80\00180,443,8000-9000"}};

/* The text, then the names that are asked for. */
static const char *const acl_policies[] = {
    "namespace \"prod-*\" { policy = \"write\" } namespace \"prod-a*\" { policy = \"deny\" }\1prod-api\1x/1",
    "namespace \"a\" {\n  policy = \"read\" # why\n  capabilities = [\"submit-job\", "
        "\"host-volume-write\",]\n"
    "  variables {\n    path \"x/*\" { capabilities = [\"read\"] }\n    path \"*y*\" { capabilities = "
    "[\"deny\"] }\n  }\n}\n\1a\1x/y",
    "node_pool \"gpu_*\" { policy = \"scale\" } host_volume \"d\" { capabilities = [\"mount-readonly\"] "
        "}\1gpu_1",
    "agent { policy = \"read\" } node = { policy = <<E\nwrite\nE\n} quota { policy = <<-E\n  deny\n  E\n}",
    "operator { policy = \"read\" capabilities = [\"snapshot-save\"] } sentinel { policy = \"write\" }\n"
    "plugin { policy = \"list\" } /* \\ */ other { a = 1.5 b = [] c \"\\u00e9\\x41\\101\\n\" {} }",
    "{\"namespace\":{\"*\":{\"policy\":\"read\",\"variables\":{\"path\":{\"*\":{\"capabilities\":[\"list\"]}}"
    "}}},"
    "\"agent\":[{\"policy\":\"read\"}],\"node_pool\":[{\"a\":{\"policy\":\"deny\"}},{\"b\":[{}]}]}\1*",
    NULL};

static const char *const templates[] = {
    "{{.ID}}\1{\"ID\":\"a\"}",
    "{{range .}}{{.Name}} {{end}}\1[{\"Name\":\"a\"},{\"Name\":null}]",
    "{{if eq .A 1}}yes{{else if .B}}b{{else}}no{{end}}\1{\"A\":1,\"B\":[]}",
    "{{with .A}}{{.B | printf \"%v %s %d %q\" 1 \"x\" 2}}{{end}}\1{\"A\":{\"B\":[1.5,true]}}",
    "{{- len .A -}} {{index .A 0}} {{index .M \"k\"}} {{/* c */}}\1{\"A\":[1],\"M\":{\"k\":2}}",
    "{{$x := .A}}{{range $i, $e := .L}}{{$i}}={{$e}}{{end}}{{$x}}\1{\"A\":1,\"L\":[1,2]}",
    "{{and .A .B | or .C | not}}{{json .}}{{`raw`}}\1{\"A\":true,\"B\":0,\"C\":\"\"}",
    NULL};

/* Templates of a task, with the answers that they get, by name. */
static const char *const task_templates[] = {
    "{{with nomadVar \"a\"}}{{.x}}{{range .Tuples}}{{.K}}{{end}}{{end}}\1"
    "{\"nomad.var.block(a@default.global)\":{\"Items\":{\"x\":\"y\"}}}",
    "{{range nomadService \"t.w@r\" | byTag}}{{len .}}{{end}}{{env \"E\"}}"
    "\1{\"E\":\"v\",\"nomad.service(t.w@r)\":"
    "[{\"ServiceName\":\"w\",\"Port\":1,\"Tags\":[\"t\"]}]}",
    "{{parseJSON `{\"a\":[1,null,\"\\u00e9\"]}` | toYAML}}"
    "{{parseYAML \"a: [1, {b: c}]\\nd: |-\\n  x\\n\" | toTOML}}\1{}",
    "{{define \"d\"}}{{.}}{{end}}{{executeTemplate \"d\" (sprig_dict \"a\" 1)}}"
    "{{scratch.Set \"k\" 2}}{{scratch.Get \"k\"}}\1{}",
    "{{sprig_splitList \",\" \"a,b\" | sprig_join \"-\" | sprig_title}}"
    "{{sprig_semverCompare \"^1.2 || <1\" \"1.3\"}}"
    "{{sprig_urlParse \"http://u@h:1/p?q#f\"}}\1{}",
    "{{regexReplaceAll \"(a)(b)?\" \"ab\" \"$2${1}\"}}"
    "{{timestamp \"Jan _2 2006 15:04:05.000 MST\"}}{{loop 1 3 | len}}\1{}",
    "{{printf \"%-5.2f|%+q|%#v|%[1]*d|%x\" 3.14159 \"\\u00e9\" (sprig_list 1 nil) 7}}"
    "{{9 | divide 2 | add 1.5}}\1{}",
    NULL};

static const char *const numbers[] = {"-9223372036854775808",
                                      "18446744073709551615",
                                      "1e-3",
                                      "true",
                                      "12345678-aaaa-4bbb-8ccc-0123456789ab",
                                      NULL};
static const char *const amounts[] = {"1h2m3.5s",
                                      "-1.5us",
                                      "90000000000ns",
                                      "10 MiB",
                                      "1.5g",
                                      "0",
                                      "2026-11-22T01:02:03.123456789+02:00",
                                      "2024-02-29T23:59:60Z",
                                      NULL};
static const char *const targets[] = {"/v1/job/a%2Fb/plan?a=b&c&=d&e=%C3%A4+x",
                                      "http://h:1/p?x=1",
                                      "*",
                                      "//v1///jobs?&&",
                                      "/%ff",
                                      "/a?%zz=1",
                                      "/#x",
                                      NULL};
static const char *const addresses[] = {"127.0.0.1:80",
                                        "[::1]:4646",
                                        "[fe80::1%eth0]",
                                        "unix:///run/x.sock",
                                        "http://host",
                                        "host:99999",
                                        "::1",
                                        "a:b:c",
                                        NULL};
static const char *const tames[] = {"a\033[31mb\r\n",
                                    "\xc2\x9b"
                                    "1m\xe2\x80\xae",
                                    "\xff\xc3",
                                    "gzip;q=0, *;q=1.0",
                                    "a*?\\*b",
                                    NULL};

static const char *const cgroup_files[] = {"cpu io memory pids\n",
                                           "oom 1\noom_kill 2\noom_group_kill 0\n",
                                           "usage_usec 123\nnr_throttled 9\n",
                                           "some avg10=0.12 avg60=1.00 avg300=99.99 total=123456\n"
                                           "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
                                           "max\n",
                                           "8:16 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n",
                                           NULL};
static const char *const proc_files[] = {
    "12 (a) b) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 9 10\n",
    "Name:\ta\\nb\nState:\tS (sleeping)\nNSpid:\t120\t7\t1\nThreads:\t1\n", "1 () R 0", NULL};
static const char *const mount_tables[] = {
    "22 1 0:20 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
    "36 22 8:1 /a /mnt/b\\040c\\134d rw master:1 - ext4 /dev/x rw\n",
    "1 2 3 4\n1 2 3 4 \n1 2 3:4 / /\\012\\377\\9 x\n", NULL};
static const char *const accounts[] = {
    "nobody\1root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534:n:/none:/x\n\1nogroup:x:65534:\n"
    "users:x:100:a,nobody\n",
    "100\1root:x:0:0::/:\na:x:100:100:::\n\1a:x:100:a\ndisk:x:6:a\nb:x:7:a,a,a\n",
    "daemon\1daemon:x:1:1::/:\nevil:x:00:1:/\nlong:x:99999999999:1::/\n\1\n", NULL};
static const char *const environments[] = {"20000000", "-1", "18446744073709551616", NULL};

static const char *const kernel_files[] = {
    "processor\t: 0\nmodel name\t: AMD EPYC 7B13\ncpu MHz\t\t: 2450.0\nphysical id\t: 0\n"
    "core id\t\t: 0\n\n"
    "processor\t: 1\nphysical id\t: 0\ncore id\t\t: 1\nflags\t\t: fpu avx2\n",
    "0-3,8,10-11\n",
    "MemTotal:       16316412 kB\nMemAvailable:\t1 kB\n",
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
    "eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\n",
    "ID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME='x y'\n",
    "/dev/sda1 / ext4 rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
    "tmpfs /data\\040x tmpfs rw 0 0\n",
    NULL};
static const char *const interpolations[] = {"${node.unique.id}-${attr.kernel.name}",
                                             "${env[\"A\"]} ${meta.x} $${y} ${NOMAD_TASK_NAME}",
                                             "${${a}}", NULL};
static const char *const task_configs[] = {"{\"command\":\"/bin/sh\",\"args\":[\"-c\",\"exit 0\"]}",
                                           "{\"command\":\"a\",\"cap_add\":[\"net_admin\"],"
                                           "\"mounts\":[{\"source\":\"/srv\",\"target\":\"x\"}]}",
                                           "{\"command\":1,\"unknown\":{}}", NULL};
static const char *const log_names[] = {"web.stdout.0",
                                        "web.stdout.18446744073709551615",
                                        "web.stdout.",
                                        "SIGTERM",
                                        "sigrtmin+3",
                                        "15",
                                        NULL};

static const char *const variables[] = {"a = \"x\"\nl = [{ n = 1 }, { m = 2.5 }]\n",
                                        "a = 1\n"
                                        "b = null\n",
                                        NULL};
static const char *const configs[] = {
    "data_dir = \"/d\"\nserver { enabled = true }\nclient {\n  enabled = true\n"
    "  meta { \"k\" = \"v\" }\n}\n"
    "plugin \"raw_exec\" {\n  config { enabled = true }\n}\nports = { http = 1 }\n",
    "isolation { denied_users = [\"root\"] bind_allowed = [\"/srv\"] }\n"
    "limits { http_max_conns_per_client = 3 }\n",
    NULL};
static const char *const json_configs[] = {
    "{\"data_dir\":\"/"
    "d\",\"server\":{\"enabled\":true},\"client\":[{\"enabled\":true,\"meta\":{\"k\":\"v\"}}]}",
    NULL};
static const char *const jobs[] = {
    "job \"a\" {\n  dynamic \"group\" {\n    for_each = [for i in range(2) : i]\n"
    "    labels = [\"g${group.value}\"]\n"
    "    content {\n      task \"t\" {\n        driver = \"exec\"\n"
    "        config { command = \"x\" }\n      }\n    }\n  }\n}\n",
    "variable \"n\" {\n  type = number\n  default = 2\n}\n"
    "locals { s = \"%{ for x in [1,2] ~}${x}%{ endfor }\" }\n"
    "job \"b\" {\n  meta {\n    a = local.s\n    b = format(\"%05d %-3s|%q\", var.n, \"x\", "
    "\"y\")\n"
    "    c = <<-EOT\n      text ${upper(\"u\")}\n    EOT\n  }\n}\n",
    "job \"c\" { meta { a = regex_replace(\"aaa\", \"(a+)+$\", \"b\") b = jsonencode({x = [1, "
    "null, true]}) "
    "d = sha256(base64encode(\"x\")) e = cidrsubnet(\"10.0.0.0/8\", 8, 1) f = formatdate(\"YYYY\", "
    "\"2020-01-01T00:00:00Z\") } }\n",
    " \n",
    NULL};

static void
examples(void)
{
    static const char *const files[] = {"compress",   "flaky", "hello", "http",
                                        "impossible", "many",  "redis"};
    char name[40];
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        auto_mem void *ctx = mem_ctx("example");
        char *text = NULL;
        const char *path = mem_printf(ctx, "%s/contrib/examples/%s.hcl", source_dir, files[i]);
        if (file_read(ctx, AT_FDCWD, path, 1 << 16, &text, NULL) < 0)
            continue;
        snprintf(name, sizeof(name), "example-%s", files[i]);
        seed_text("fuzz-hcl", name, 4, text);
        struct jobspec_input in = {.name = path, .s = text, .n = strlen(text), .lenient = true};
        struct hcl_diags d = HCL_DIAGS_INIT;
        struct job *job = NULL;
        if (jobspec_parse(ctx, &in, &job, &d) < 0)
            continue;
        auto_buf struct buf b = BUF_INIT(1 << 16);
        json_encode(&b, &type_job, job, 0);
        snprintf(name, sizeof(name), "json-%s", files[i]);
        seed_text("fuzz-hcl", name, 3, buf_str(&b));
    }
}

void
corpus_text(void)
{
    seed_texts("fuzz-http", 7, http);
    seed_text("fuzz-http", "whole", 0, http[2]);
    seed_texts("fuzz-filter", 0, filters);
    seed_texts("fuzz-filter", 1, node_filters);
    char name[24];
    for (size_t i = 0; i < ARRAY_LEN(constraints); i++) {
        snprintf(name, sizeof(name), "%zu-op%d", i, constraints[i].op);
        seed_text("fuzz-constraint", name, constraints[i].op, constraints[i].sides);
    }
    seed_texts("fuzz-template", 0, task_templates);
    seed_texts("fuzz-template", 1, templates);
    seed_texts("fuzz-acl", -1, acl_policies);
    static const char *const *const text[] = {numbers, amounts, targets, addresses, tames};
    for (int i = 0; i < (int)ARRAY_LEN(text); i++)
        seed_texts("fuzz-text", i, text[i]);
    static const char *const *const isolation[] = {cgroup_files, proc_files, mount_tables,
                                                   accounts};
    for (int i = 0; i < (int)ARRAY_LEN(isolation); i++)
        seed_texts("fuzz-isolation", i, isolation[i]);
    corpus_isolation();
    seed_texts("fuzz-isolation", 6, environments);
    static const char *const *const client[] = {kernel_files, interpolations, task_configs,
                                                log_names};
    for (int i = 0; i < (int)ARRAY_LEN(client); i++)
        seed_texts("fuzz-client", i, client[i]);
    seed_texts("fuzz-hcl", 0, configs);
    seed_texts("fuzz-hcl", 1, json_configs);
    seed_texts("fuzz-hcl", 2, variables);
    seed_texts("fuzz-hcl", 4, jobs);
    examples();
}
