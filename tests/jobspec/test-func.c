/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function, good and bad arguments.
 */
#include <string.h>

#include "jobspec/func/func.h"
#include "tests/jobspec/help.h"

static const struct help_row numeric[] = {
    {"abs(-5)", "5"},
    {"abs(-1.5)", "1.5"},
    {"ceil(1.2)", "2"},
    {"floor(-1.2)", "-2"},
    {"log(8, 2)", "3"},
    {"log(0, 2)", "!Invalid function argument; log: the result is out of range"},
    {"max(1, 3, 2)", "3"},
    {"max([1, 5]...)", "5"},
    {"min(4, \"2\", 3)", "2"},
    {"max()", "!Not enough function arguments"},
    {"parseint(\"ff\", 16)", "255"},
    {"parseint(\"-101\", 2)", "-5"},
    {"parseint(\"12\", 2)", "!Invalid function argument; parseint: cannot parse \"12\" as a base 2 integer"},
    {"parseint(\"1\", 99)", "!Invalid function argument"},
    {"parseint(\"9999999999999999999\", 10)", "9999999999999999999"},
    {"parseint(\"zZ\", 62)", "2231"},
    {"parseint(\"\", 10)", "!Invalid function argument"},
    {"ceil(100 * 1.1)", "110"},
    {"pow(10, 20)", "100000000000000000000"},
    {"pow(2, 0.5)", "1.4142135623730951"},
    {"pow(10, 400)", "!Invalid function argument"},
    {"length([1]) / length([1, 2, 3])", "0.33333333333333333334"},
    {"jsondecode(\"[0.1, 1e2]\")[0] + 0.2", "0.3"},
    {"format(\"%.30f %d %g %x\", 1 / 3, 18446744073709551616, 1e6, 255)",
     "\"0.333333333333333333333333333333 18446744073709551616 1e+06 ff\""},
    {"pow(2, 10)", "1024"},
    {"signum(-3)", "-1"},
    {"signum(0)", "0"},
    {"abs(\"x\")", "!Invalid function argument; abs: a number is needed"},
    {"abs(1, 2)", "!Too many function arguments"},
    {"nope()", "!Call to unknown function"},
    {"uppr(1)", "!Call to unknown function; There is no function named \"uppr\". Did you mean"},
    {"bcrypt(\"x\", 1)", "!Function not supported yet"},
    {"abs([1]...)", "1"},
    {"abs(1...)", "!Invalid function argument"},
};

static const struct help_row strings[] = {
    {"chomp(\"a\\n\\r\\n\")", "\"a\""},
    {"format(\"%s-%d-%05.1f-%v\", \"x\", 3, 1.25, true)", "\"x-3-001.2-true\""},
    {"format(\"%5s|%-5s|%q|%%\", \"é\", \"b\", \"c\\\"\")", "\"    é|b    |\\\"c\\\\\\\"\\\"|%\""},
    {"format(\"%x %X %o %b %t\", 255, 255, 8, 5, false)", "\"ff FF 10 101 false\""},
    {"format(\"%v %#v\", [1], \"s\")", "\"[1] \\\"s\\\"\""},
    {"format(\"%.2s\", \"abc\")", "\"ab\""},
    {"format(\"%d\", 1.5)", "!Invalid function argument"},
    {"format(\"%d\")", "!Invalid function argument; format: not enough arguments"},
    {"format(\"x\", 1)", "!Invalid function argument; format: too many arguments; only 0 used"},
    {"format(\"%y\", 1)", "!Invalid function argument; format: unsupported format verb \"%y\""},
    {"format(\"%99999d\", 1)", "!Invalid function argument"},
    {"format(\"%n\", 1)", "!Invalid function argument"},
    {"format(\"%s\", [1])", "!Invalid function argument"},
    {"formatlist(\"%s=%s\", [\"a\", \"b\"], \"x\")", "[\"a=x\",\"b=x\"]"},
    {"formatlist(\"%s\", [\"a\"], [\"b\", \"c\"])", "!Invalid function argument"},
    {"indent(2, \"a\\nb\\n\")", "\"a\\n  b\\n  \""},
    {"join(\"-\", [\"a\", \"b\"], [3])", "\"a-b-3\""},
    {"join(\"-\", [])", "\"\""},
    {"join(\"-\", [[1]])", "!Invalid function argument"},
    {"lower(\"ABÉΩЖ\")", "\"abéωж\""},
    {"upper(\"abéωж\")", "\"ABÉΩЖ\""},
    {"title(\"hello world\")", "\"Hello World\""},
    {"replace(\"a.b.c\", \".\", \"-\")", "\"a-b-c\""},
    {"replace(\"abc\", \"/[ab]/\", \"x\")", "\"abc\""},
    {"replace(\"ab\", \"\", \"-\")", "\"-a-b-\""},
    {"regex_replace(\"abc\", \"(b)\", \"<$1x|$2|$${1}>\")", "\"a\\u003c||b\\u003ec\""},
    {"format(\"%[2]s %[1]s %s\", 1, \"b\")", "\"b 1 b\""},
    {"format(\"%v %q %5s|%-5s|%05d\", 1000000, \"<\", \"é\", \"e\", 7)",
     "\"1e+06 \\\"\\\\u003c\\\"     é|e    |00007\""},
    {"format(\"%s\", null)", "!Invalid function argument"},
    {"strlen(\"e\\u0301\\U0001F468\\u200d\\U0001F469\\r\\n\")", "3"},
    {"strrev(\"ae\\u0301\\r\\n\")", "\"\\r\\ne\xcc\x81" "a\""},
    {"substr(\"ae\\u0301z\", 1, 1)", "\"e\xcc\x81\""},
    {"title(\"a-b c_d\")", "\"A-B C_d\""},
    {"regex_replace(\"v1.2\", \"v(\\\\d)\\\\.(\\\\d)\", \"$2-$1\")", "\"2-1\""},
    {"regex_replace(\"abc\", \"\", \"-\")", "\"-a-b-c-\""},
    {"regex_replace(\"baaac\", \"a*\", \"x\")", "\"xbxcx\""},
    {"regex_replace(\"é€\", \"x*\", \"-\")", "\"-é-€-\""},
    {"regex_replace(\"key=val\", \"(?P<k>\\\\w+)=(\\\\w+)\", \"${k}:$2\")", "\"key:val\""},
    {"regex_replace(\"key=val\", \"(?P<k>\\\\w+)=(\\\\w+)\", \"$${k}:$2\")", "\"key:val\""},
    {"regex_replace(\"aXbX\", \"(a)?X\", \"[$1]\")", "\"[a]b[]\""},
    {"strlen(regex_replace(join(\"\", [for i in range(1000) : \"ab\"]), \"a\", \"ccccc\"))",
     "6000"},
    {"regex_replace(\"a\", \"(\", \"x\")",
     "!Invalid function argument; regex_replace: regexp '(' at offset 1"},
    {"regex_replace(\"ab\", \"(?=b)\", \"x\")",
     "!Invalid function argument; regex_replace: regexp '(?=b)' uses a back-reference, lookaround"},
    {"regex_replace(\"aa\", \"(a)\\\\1\", \"x\")",
     "!Invalid function argument; regex_replace: regexp '(a)\\1' uses a back-reference, "
     "lookaround"},
    {"regex_replace(\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\", \"^(a+)+$\", \"x\")",
     "!Invalid function argument"},
    {"reverse(\"abc\")", "\"cba\""},
    {"strrev(\"aé\")", "\"éa\""},
    {"split(\",\", \"a,b,,c\")", "[\"a\",\"b\",\"\",\"c\"]"},
    {"split(\",\", \"\")", "[\"\"]"},
    {"split(\"\", \"aé\")", "[\"a\",\"é\"]"},
    {"split(\",\", \"a,\")", "[\"a\",\"\"]"},
    {"strlen(\"aé😀\")", "3"},
    {"substr(\"hello\", 1, 3)", "\"ell\""},
    {"substr(\"hello\", -3, -1)", "\"llo\""},
    {"substr(\"hé!\", 1, 1)", "\"é\""},
    {"substr(\"x\", 5, 1)", "\"\""},
    {"substr(\"x\", 0, -2)", "\"x\""},
    {"trim(\"??a?!\", \"?!\")", "\"a\""},
    {"trim(\"éaé\", \"é\")", "\"a\""},
    {"trimprefix(\"foobar\", \"foo\")", "\"bar\""},
    {"trimsuffix(\"foobar\", \"bar\")", "\"foo\""},
    {"trimspace(\" \\t a \\n\")", "\"a\""},
    {"upper(5)", "\"5\""},
    {"upper([])", "!Invalid function argument; upper: a string is needed, this is a list"},
    {"upper(null)", "!Invalid function argument"},
};

static const struct help_row collections[] = {
    {"chunklist([1, 2, 3], 2)", "[[1,2],[3]]"},
    {"chunklist([], 2)", "[]"},
    {"chunklist([1], 0)", "[[1]]"},
    {"coalesce(null, \"\", \"a\", \"b\")", "\"\""},
    {"coalesce(1, \"a\")", "\"1\""},
    {"coalesce(1, [])", "!Invalid function argument; coalesce: all arguments must have"},
    {"distinct([1, \"1\", 2])", "[\"1\",\"2\"]"},
    {"setunion([1, 3], [\"2\"])", "[\"1\",\"2\",\"3\"]"},
    {"setunion([1], [[]])", "!Invalid function argument"},
    {"element([\"a\", \"b\", \"c\"], -1)", "\"c\""},
    {"element(convert([\"a\"], set(string)), 0)", "!Invalid function argument"},
    {"index({ a = 1 }, \"a\")", "!Invalid function argument; index: collection must be"},
    {"index(convert({ a = 1 }, map(number)), \"a\")", "1"},
    {"contains([\"1\"], 1)", "false"},
    {"compact([1, \"\", null])", "[\"1\"]"},
    {"concat([1], convert([2], set(number)))", "!Invalid function argument"},
    {"csvdecode(\"a,a\\n1,2\")", "!Invalid function argument; csvdecode: duplicate column"},
    {"jsonencode({ a = \"<&>\" })", "\"{\\\"a\\\":\\\"\\\\u003c\\\\u0026\\\\u003e\\\"}\""},
    {"true ? 1 : \"x\"", "\"1\""},
    {"true ? [1] : [\"a\", \"b\"]", "[\"1\"]"},
    {"true ? 1 : []", "!Inconsistent conditional result types"},
    {"true ? 1 : [][5]", "1"},
    {"\"x${convert([1], list(string))}\"", "!Invalid template interpolation value"},
    {"coalesce(null)", "!Invalid function argument"},
    {"coalescelist([], [1])", "[1]"},
    {"compact([\"a\", \"\", null, \"b\"])", "[\"a\",\"b\"]"},
    {"concat([1], [], [2, 3])", "[1,2,3]"},
    {"contains([\"a\", \"b\"], \"b\")", "true"},
    {"contains([1], 2)", "false"},
    {"distinct([2, 1, 2, 1, 3])", "[2,1,3]"},
    {"element([\"a\", \"b\"], 3)", "\"b\""},
    {"element([], 0)", "!Invalid function argument"},
    {"flatten(\"x\")", "!Invalid function argument"},
    {"setintersection([\"a\"], \"xxxxxxxx\")", "!Invalid function argument"},
    {"setproduct([\"a\"], \"x\")", "!Invalid function argument"},
    {"flatten([[1, [2]], 3, []])", "[1,2,3]"},
    {"index([\"a\", \"b\"], 1)", "\"b\""},
    {"keys({ b = 1, a = 2 })", "[\"a\",\"b\"]"},
    {"values({ b = 1, a = 2 })", "[2,1]"},
    {"length([1, 2])", "2"},
    {"length({ a = 1 })", "!Invalid function argument; length: collection must be a list"},
    {"length(\"abc\")", "!Invalid function argument"},
    {"lookup({ a = 1 }, \"a\", 9)", "1"},
    {"lookup({ a = 1 }, \"b\", 9)", "9"},
    {"lookup({ a = 1 }, \"b\")", "!Not enough function arguments"},
    {"merge({ a = 1, b = 1 }, { b = 2 }, null)", "{\"a\":1,\"b\":2}"},
    {"merge([1])", "!Invalid function argument"},
    {"range(3)", "[0,1,2]"},
    {"range(1, 4)", "[1,2,3]"},
    {"range(1, 8, 3)", "[1,4,7]"},
    {"range(3, 0)", "[3,2,1]"},
    {"range(0, 10, -1)", "!Invalid function argument"},
    {"range(100000)", "!Invalid function argument"},
    {"slice([1, 2, 3, 4], 1, 3)", "[2,3]"},
    {"slice([1], 0, 2)", "!Invalid function argument"},
    {"sort([\"c\", \"a\", \"b\"])", "[\"a\",\"b\",\"c\"]"},
    {"zipmap([\"a\", \"b\"], [1, 2])", "{\"a\":1,\"b\":2}"},
    {"zipmap([\"a\"], [])", "!Invalid function argument"},
    {"setunion([\"b\", \"a\"], [\"a\", \"c\"])", "[\"a\",\"b\",\"c\"]"},
    {"setintersection([\"b\", \"a\"], [\"a\", \"c\"])", "[\"a\"]"},
    {"setproduct([1, 2], [\"a\", \"b\"])", "[[1,\"a\"],[1,\"b\"],[2,\"a\"],[2,\"b\"]]"},
    {"setproduct([1], [])", "[]"},
};

static const struct help_row others[] = {
    {"base64encode(\"héllo\")", "\"aMOpbGxv\""},
    {"base64decode(\"aMOpbGxv\")", "\"héllo\""},
    {"base64decode(\"???\")", "!Invalid function argument"},
    {"base64decode(\"AAA=\")",
     "!Invalid function argument; base64decode: the decoded bytes are no"},
    {"jsonencode({ b = [1, null], a = \"x\" })", "\"{\\\"a\\\":\\\"x\\\",\\\"b\\\":[1,null]}\""},
    {"jsondecode(\"{\\\"b\\\": 1, \\\"a\\\": [true]}\")", "{\"a\":[true],\"b\":1}"},
    {"jsondecode(\"{\\\"b\\\": 1, \\\"a\\\": [true]}\").b", "1"},
    {"jsondecode(\"{\")", "!Invalid function argument"},
    {"csvdecode(\"a,b\\n1,\\\"x,\\\"\\\"y\\\"\\n\\n2,z\")",
     "[{\"a\":\"1\",\"b\":\"x,\\\"y\"},{\"a\":\"2\",\"b\":\"z\"}]"},
    {"csvdecode(\"a,b\\n1\")", "!Invalid function argument"},
    {"csvdecode(\"\")", "!Invalid function argument"},
    {"csvdecode(\"a\\n\\\"x\")", "!Invalid function argument"},
    {"urlencode(\"a b&c/é\")", "\"a+b%26c%2F%C3%A9\""},
    {"formatdate(\"YYYY-MM-DD'T'hh:mm:ssZ\", \"2026-01-02T03:04:05Z\")",
     "\"2026-01-02T03:04:05Z\""},
    {"formatdate(\"EEE, D MMM YY HH AA\", \"2026-01-02T13:04:05Z\")", "\"Fri, 2 Jan 26 01 PM\""},
    {"formatdate(\"hh ZZZZZ\", \"2026-01-02T13:04:05+02:00\")", "\"13 +02:00\""},
    {"formatdate(\"QQ\", \"2026-01-02T13:04:05Z\")", "!Invalid function argument"},
    {"formatdate(\"'x\", \"2026-01-02T13:04:05Z\")", "!Invalid function argument"},
    {"timeadd(\"2026-01-02T03:04:05Z\", \"25h\")", "\"2026-01-03T04:04:05Z\""},
    {"timeadd(\"yesterday\", \"1h\")", "!Invalid function argument"},
    {"md5(\"hello\")", "\"5d41402abc4b2a76b9719d911017c592\""},
    {"sha1(\"hello\")", "\"aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d\""},
    {"sha256(\"hello\")", "\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\""},
    {"strlen(sha512(\"hello\"))", "128"},
    {"uuidv5(\"dns\", \"www.example.com\")", "\"2ed6657d-e927-568b-95e1-2665a8aea6a2\""},
    {"uuidv5(\"nope\", \"x\")", "!Invalid function argument"},
    {"cidrhost(\"10.0.0.0/8\", 258)", "\"10.0.1.2\""},
    {"cidrhost(\"10.0.0.0/24\", -1)", "\"10.0.0.255\""},
    {"cidrhost(\"10.0.0.0/24\", -256)", "\"10.0.0.0\""},
    {"cidrhost(\"10.0.0.0/24\", 256)", "!Invalid function argument"},
    {"cidrhost(\"fd00::/64\", 16)", "\"fd00::10\""},
    {"cidrhost(\"nope\", 1)", "!Invalid function argument"},
    {"cidrnetmask(\"10.0.0.0/12\")", "\"255.240.0.0\""},
    {"cidrsubnet(\"10.0.0.0/8\", 8, 2)", "\"10.2.0.0/16\""},
    {"cidrsubnet(\"fd00::/48\", 16, 162)", "\"fd00:0:0:a2::/64\""},
    {"cidrsubnet(\"10.0.0.0/24\", 2, 4)", "!Invalid function argument"},
    {"cidrsubnets(\"10.1.0.0/16\", 4, 4, 8, 4)",
     "[\"10.1.0.0/20\",\"10.1.16.0/20\",\"10.1.32.0/24\",\"10.1.48.0/20\"]"},
    {"cidrsubnets(\"10.1.0.0/16\", 1, 1, 1)", "!Invalid function argument"},
    {"can(var.nope)", "false"},
    {"can(var.s)", "true"},
    {"try(var.nope, local.bad, 7)", "7"},
    {"try(var.nope)", "!Unknown variable"},
    {"convert(\"5\", number)", "5"},
    {"convert([\"b\", \"a\", \"b\"], set(string))", "[\"a\",\"b\"]"},
    {"convert({ a = \"1\", c = 2 }, object({ a = number, b = optional(string) }))",
     "{\"a\":1,\"b\":null}"},
    {"convert([1, \"x\"], tuple([string, string]))", "[\"1\",\"x\"]"},
    {"convert({ a = [\"x\"] }, map(list(number)))",
     "!Invalid function argument; convert: a: element 0: a number is needed, this is a string"},
    {"convert(1, strin)", "!Invalid type"},
    {"convert(1, list(string, string))", "!Invalid type"},
    {"convert({}, object({ a = string }))", "!Invalid function argument"},
    {"convert(true, string)", "\"true\""},
    {"convert(\"yes\", bool)", "!Invalid function argument"},
    {"file(\"/etc/passwd\")", "!Invalid function argument; file: files cannot be read here"},
    {"basename(\"/a/b.txt\")", "\"b.txt\""},
    {"basename(\"/\")", "\"/\""},
    {"dirname(\"/a/b.txt\")", "\"/a\""},
    {"dirname(\"b\")", "\".\""},
};

START_TEST(test_numeric)
{
    help_check(numeric, ARRAY_LEN(numeric));
}
END_TEST
START_TEST(test_strings)
{
    help_check(strings, ARRAY_LEN(strings));
}
END_TEST
START_TEST(test_collections)
{
    help_check(collections, ARRAY_LEN(collections));
}
END_TEST
START_TEST(test_others)
{
    help_check(others, ARRAY_LEN(others));
}
END_TEST

/* Each function that the language has is called by a row above. */
/* A key of 768 bits, made for this test, and "hello" for it. */
#define KEY                                                                                        \
    "-----BEGIN RSA PRIVATE KEY-----\\nMIIBzQIBAAJhANjyv2AGvEOuHEgwiM2SF9i6cBsgTtazvAwGaO"         \
    "2g+h+yVJ5SNQ8N\\nbIHApSCfGxOCSYUx7g2ih1WPHNrR8U9QrL/syKDgnqdfziLahzBRuUCRFq1IVLoZ\\n"         \
    "ryYofxGnKuytfwIDAQABAmEAopbqzjC+D4sBLykQneALdyXitrGz5Dy3hduX799h\\nFTg1KqI5mZpZ47RZD"         \
    "OWxCSHuTmG5n77b/D9d97TKyNy0xWCiKYAkPNX9ZbSLS/CM\\nXx5b1/rMd5f+w6txPnq51bmhAjEA7MXSVw"         \
    "n/MUBLrocUmaiBESq9BK/3mbSW6AZ0\\n4u3LodKsjtODrXqYfWwb9oyn6P9rAjEA6pDNQJcYOy6i2i0eenM"         \
    "U4l8vBVFK2xQX\\n6rJ1VKV+1RT2ZaP5S6T0nXdU8I09cLM9AjEAoD8Gq9fdOjUcw6MyowhzSe4V/Y0m\\n0"         \
    "4VwuNpd05RDRGN0XDn1Hb0iZYh8qHHr1nq/AjEA1oIXgjLrEOxEN5u9XKOzfJUp\\nLga6mwCUIqiSzhcOlx"         \
    "S1hBvhVoECxqIjhlzTzCXNAjEA1+3wC/YCcvLf8Kj/mPl6\\nfcS2rnFPHRHefEd1IN+OenSxns/Km6lJsOU"         \
    "NrzzYkWoL\\n-----END RSA PRIVATE KEY-----\\n"
#define SECRET                                                                                     \
    "MFTbUEI67fQtha4GQ/cCbLnBR8z3dr2H2kMcgf0b6DyALSjipZmocNLmh0amSu+Ym+fZxdOQK8n34u20VzSh"         \
    "jKFOtnip7sRSd4x9SGBxzDlREBRRA4RmJNkd5AvqUjwo"

/* The texts are those that Nomad 2.0 writes. */
static const struct help_row yaml[] = {
    {"yamlencode({b = [1, \"two\", true, null, 1.5], a = {e = {f = []}}, g = {}})",
     "\"\\\"a\\\":\\n  \\\"e\\\":\\n    \\\"f\\\": []\\n\\\"b\\\":\\n- 1\\n- \\\"two\\\"\\n- "
     "true\\n- null\\n- 1.5\\n"
     "\\\"g\\\": {}\\n\""},
    {"yamlencode([[1, 2], {a = 1, b = 2}])",
     "\"- - 1\\n  - 2\\n- \\\"a\\\": 1\\n  \\\"b\\\": 2\\n\""},
    {"yamlencode(\"a\\nb\")", "\"|-\\n  a\\n  b\\n\""},
    {"yamlencode({k = \"\\na\\n\\n\"})", "\"\\\"k\\\": |2+\\n\\n  a\\n\\n\""},
    {"yamlencode([\"a \\nb\", \"\\u0007\\t\"])",
     "\"- \\\"a \\\\nb\\\"\\n- \\\"\\\\a\\\\t\\\"\\n\""},
    {"yamlencode(null)", "\"null\\n...\\n\""},
    {"yamlencode(1e30)", "\"1000000000000000000000000000000\\n...\\n\""},
    {"yamlencode(0.0000001)", "\"0.0000001\\n...\\n\""},
    {"yamlencode(join(\" \", [for i in range(40) : \"${i}\"]))",
     "\"\\\"0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30\\n  "
     "31 32 33 34 35 36 "
     "37 38 39\\\"\\n\""},
    {"rsadecrypt(\"" SECRET "\", \"" KEY "\")", "\"hello\""},
    {"rsadecrypt(\"AAAA\", \"" KEY "\")", "!Invalid function argument"},
    {"rsadecrypt(\"" SECRET "\", \"none\")",
     "!Invalid function argument; rsadecrypt: this is no private RSA key"},
    {"uuidv4()", "!Function not available"},
};

START_TEST(test_yaml_and_keys)
{
    help_check(yaml, ARRAY_LEN(yaml));
}
END_TEST

START_TEST(all_are_tested)
{
    static const struct func *const tables[] = {
        func_numeric, func_string, func_regex,   func_collection, func_set, func_encoding,
        func_date,    func_digest, func_network, func_type,       func_yaml};
    static const struct {
        const struct help_row *v;
        size_t n;
    } rows[] = {{numeric, ARRAY_LEN(numeric)},
                {strings, ARRAY_LEN(strings)},
                {collections, ARRAY_LEN(collections)},
                {others, ARRAY_LEN(others)},
                {yaml, ARRAY_LEN(yaml)}};
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (const struct func *f = tables[t]; f->name != NULL; f++) {
            char call[40];
            bool found = false;
            snprintf(call, sizeof(call), "%s(", f->name);
            for (size_t r = 0; r < ARRAY_LEN(rows); r++)
                for (size_t i = 0; i < rows[r].n; i++)
                    found = found || strstr(rows[r].v[i].expr, call) != NULL;
            ck_assert_msg(found, "%s has no test", f->name);
        }
}
END_TEST

static int
fake_read(void *arg, const void *ctx, const char *path, char **ret, size_t *ret_n, struct err *e)
{
    (void)arg;
    if (strcmp(path, "ok") != 0 && strcmp(path, "bin") != 0)
        return err_set(e, -ERR_NOT_FOUND, "read \"%s\": no such file", path);
    *ret_n = 3;
    *ret = mem_dup(ctx, path[0] == 'o' ? "abc" : "a\0\xff", 3);
    return 0;
}

static bool
fake_exists(void *arg, const char *path)
{
    (void)arg;
    return strcmp(path, "ok") == 0;
}

static int
fake_glob(void *arg, const void *ctx, const char *dir, const char *pattern, struct str_list *ret,
          struct err *e)
{
    (void)arg;
    (void)e;
    list_add(ctx, *ret, mem_printf(ctx, "%s/%s", dir, pattern));
    return 0;
}

START_TEST(files)
{
    static const struct jobspec_fs fs = {NULL, "/w", "/home/me", fake_read, fake_exists, fake_glob};
    static const char text[] = "job \"x\" { meta {\n"
                               "a = file(\"ok\")\n"
                               "b = filebase64(\"bin\")\n"
                               "c = \"${fileexists(\"ok\")} ${fileexists(\"no\")}\"\n"
                               "d = join(\",\", fileset(\"d\", \"*.x\"))\n"
                               "e = abspath(\"../x/./y//z\")\n"
                               "f = pathexpand(\"~/k\")\n"
                               "g = try(file(\"bin\"), \"refused\")\n"
                               "h = try(file(\"none\"), \"none\")\n"
                               "i = abspath(\"/../../a/..\")\n"
                               "} }";
    static const char *const want[] = {"abc",        "YQD/",    "true false", "d/*.x", "/x/y/z",
                                       "/home/me/k", "refused", "none",       "/"};
    auto_mem void *ctx = mem_ctx("test");
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct jobspec_input in = {.name = "j", .s = text, .n = sizeof(text) - 1, .fs = &fs};
    struct job *job;
    ck_assert_msg(jobspec_parse(ctx, &in, &job, &d) == 0, "%s", hcl_diags_text(ctx, &d, true));
    ck_assert_uint_eq(job->meta.n, ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        ck_assert_str_eq(job->meta.v[i].v, want[i]);
}
END_TEST

static void
seven(void *p, size_t n)
{
    memset(p, 7, n);
}

START_TEST(chance_is_the_callers)
{
    static const char lines[] = "job \"j\" {\n meta { u = uuidv4() }\n}";
    auto_mem void *ctx = mem_ctx("test");
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct jobspec_input in = {.name = "j", .s = lines, .n = sizeof(lines) - 1, .random = seven};
    struct job *job;
    ck_assert_msg(jobspec_parse(ctx, &in, &job, &d) == 0, "%s", hcl_diags_text(ctx, &d, true));
    ck_assert_str_eq(job->meta.v[0].v, "07070707-0707-4707-8707-070707070707");
}
END_TEST

TEST_SUITE("functions", test_numeric, test_strings, test_collections, test_others,
           test_yaml_and_keys, chance_is_the_callers, all_are_tested, files)
