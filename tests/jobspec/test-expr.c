/* SPDX-License-Identifier: Apache-2.0
 *
 * Expressions: literals, operators, collections, templates, references, errors.
 */
#include "tests/jobspec/help.h"

static const struct help_row literals[] = {
    {"1", "1"},
    {"-7", "-7"},
    {"1.5", "1.5"},
    {"1e3", "1000"},
    {"2.50e-1", "0.25"},
    {"9223372036854775807", "9223372036854775807"},
    {"9223372036854775808", "9223372036854775808"},
    {"1e99999", "!Invalid number"},
    {"1e-99999", "!Invalid number"},
    {"true", "true"},
    {"null", "null"},
    {"\"\"", "\"\""},
    {"\"a\\n\\t\\r\\\"\\\\\"", "\"a\\n\\t\\r\\\"\\\\\""},
    {"\"\\u00e9\\U0001F600\"", "\"é😀\""},
    {"\"\\u0000\"", "!Invalid escape sequence"},
    {"\"\\ud800\"", "!Invalid escape sequence"},
    {"\"\\q\"", "!Invalid escape sequence"},
    {"\"a$b %c $ %\"", "\"a$b %c $ %\""},
    {"\"$${x} %%{y}\"", "\"${x} %{y}\""},
    {"\"$$${1}\"", "\"$${1}\""},
    {"[]", "[]"},
    {"[1, 2,]", "[1,2]"},
    {"[\n1,\n2\n]", "[1,2]"},
    {"{}", "{}"},
    {"{ a = 1, \"b c\" : 2 }", "{\"a\":1,\"b c\":2}"},
    {"{\n a = 1\n b = [\n2]\n\n}", "{\"a\":1,\"b\":[2]}"},
    {"{ (var.s) = 1, \"${var.s}2\" = 2 }", "{\"text\":1,\"text2\":2}"},
    {"{ b = 1, a = 2, b = 3 }", "{\"a\":2,\"b\":3}"},
    {"{ a = 1 b = 2 }", "!Invalid object"},
    {"[1 2]", "!Unclosed bracket"},
    {"1 /* c */ + 2 // d", "3"},
    {"( 1\n+ 2 )", "3"},
};

static const struct help_row operators[] = {
    {"1 + 2 * 3", "7"},
    {"(1 + 2) * 3", "9"},
    {"7 / 2", "3.5"},
    {"6 / 2", "3"},
    {"7 % 3", "1"},
    {"-7 % 3", "-1"},
    {"7.5 % 2", "1.5"},
    {"1 - 2 - 3", "-4"},
    {"-2 - -3", "1"},
    {"0.1 + 0.2", "0.3"},
    {"100 * 1.1", "110"},
    {"7 % 4", "3"},
    {"1 / 3 * 3 == 1", "true"},
    {"-0", "-0"},
    {"\"${1 / 8}\" == \"0.125\"", "false"},
    {"0.1 == \"0.1\"", "false"},
    {"\"2\" * 3", "6"},
    {"1 / 0", "!Division by zero"},
    {"9223372036854775807 + 1", "9223372036854775808"},
    {"1e19000 * 1e19000", "!Number too large"},
    {"-9223372036854775807 - 2", "-9223372036854775809"},
    {"1 < 2", "true"},
    {"2 <= 2", "true"},
    {"3 > 4 || 4 >= 4", "true"},
    {"1 == 1.0", "true"},
    {"\"a\" == \"a\"", "true"},
    {"[1, 2] == [1, 2]", "true"},
    {"{ a = 1 } != { a = 2 }", "true"},
    {"null == null", "true"},
    {"true && !false", "true"},
    {"true && false || true", "true"},
    {"false && var.nope", "!Unknown variable"},
    {"true || var.nope", "!Unknown variable"},
    {"[for k, v in convert([\"a\"], set(string)) : k]", "[\"a\"]"},
    {"1 && true", "!Invalid operand"},
    {"\"a\" < \"b\"", "!Invalid operand"},
    {"-\"x\"", "!Invalid operand"},
    {"!5", "!Invalid operand"},
    {"true ? 1 : 2", "1"},
    {"false ? 1 : true ? 2 : 3", "2"},
    {"1 + 1 == 2 ? \"y\" : \"n\"", "\"y\""},
    {"[] ? 1 : 2", "!Invalid operand"},
    {"1 +", "!Invalid expression"},
    {"1 2", "!Extra text"},
    {"a ? b", "!Invalid conditional"},
};

static const struct help_row references[] = {
    {"var.s", "\"text\""},
    {"var.l[1]", "\"b\""},
    {"var.l.1", "\"b\""},
    {"var[\"s\"]", "\"text\""},
    {"var.m[\"b\"]", "2"},
    {"var.m.b", "2"},
    {"local.one + var.n", "4"},
    {"local[\"one\"]", "!Circular reference"},
    {"[[1, 2], [3]][0][1]", "2"},
    {"[[1, 2], [3]].0.1", "2"},
    {"{ a = { b = [5] } }.a.b[0]", "5"},
    {"var.l[3]", "!Invalid index"},
    {"var.l[-1]", "!Invalid index"},
    {"var.l[\"x\"]", "!Invalid index"},
    {"var.m[\"c\"]", "!Invalid index"},
    {"var.m.c", "!Unsupported attribute"},
    {"var.nope", "!Unknown variable; No variable named \"nope\""},
    {"var.ss", "!Unknown variable; No variable named \"ss\" is declared. Did you mean \"s\"?"},
    {"local.onne", "!Unknown local; No local named \"onne\" is declared. Did you mean \"one\"?"},
    {"local.loop", "!Circular reference"},
    {"nope", "!Unknown variable"},
    {"attr.cpu.arch", "!Known at run time only"},
    {"null.a", "!Attempt to get attribute from null"},
    {"var.l.a", "!Unsupported attribute"},
    {"[{ a = 1 }, { a = 2 }][*].a", "[1,2]"},
    {"[{ a = 1 }, { a = 2 }].*.a", "[1,2]"},
    {"[{ a = [1, 2] }, { a = [3] }][*].a[0]", "[1,3]"},
    {"[{ a = [1, 2] }, { a = [3] }].*.a[0]", "[1,2]"},
    {"[[{ x = 1 }], [{ x = 2 }]][*][*].x", "[[1],[2]]"},
    {"null[*]", "[]"},
    {"{ a = 1 }[*].a", "[1]"},
    {"[1, 2][*]", "[1,2]"},
    {"var.l.*", "[\"a\",\"b\",\"c\"]"},
};

static const struct help_row loops[] = {
    {"[for x in var.l : upper(x)]", "[\"A\",\"B\",\"C\"]"},
    {"[for i, x in var.l : \"${i}${x}\"]", "[\"0a\",\"1b\",\"2c\"]"},
    {"[for x in [1, 2, 3, 4] : x * 2 if x % 2 == 0]", "[4,8]"},
    {"[for k, v in var.m : \"${k}=${v}\"]", "[\"a=1\",\"b=2\"]"},
    {"{for k, v in var.m : v => k}", "{\"1\":\"a\",\"2\":\"b\"}"},
    {"{for x in [\"aa\", \"ab\", \"b\"] : substr(x, 0, 1) => x...}",
     "{\"a\":[\"aa\",\"ab\"],\"b\":[\"b\"]}"},
    {"{for x in [1, 1] : \"k\" => x}", "!Duplicate object key"},
    {"{\nfor x in [1]\n:\nx\n=>\nx\n}", "{\"1\":1}"},
    {"[for x in [[1, 2], [3]] : [for y in x : y + 1]]", "[[2,3],[4]]"},
    {"[for x in 5 : x]", "!Iteration over non-iterable value"},
    {"[for x in [1] : x if 7]", "!Invalid operand"},
    {"[for x in [1] y]", "!Invalid 'for'"},
    {"[for 1 in [1] : y]", "!Invalid 'for'"},
    {"{for x in [1] : x}", "!Invalid 'for'"},
    {"[for x in [1] : x][0]", "1"},
    {"x", "!Unknown variable"},
};

static const struct help_row templates[] = {
    {"\"a${1 + 1}b\"", "\"a2b\""},
    {"\"${var.n}\"", "3"},
    {"\"${var.l}\"", "[\"a\",\"b\",\"c\"]"},
    {"\"${true}x${1.5}\"", "\"truex1.5\""},
    {"\"x${var.l}\"", "!Invalid template interpolation value"},
    {"\"x${null}\"", "!Invalid template interpolation value"},
    {"\"a ${~ 1 ~} b\"", "\"a1b\""},
    {"\"${ \"in ${\"deep\"}\" }!\"", "\"in deep!\""},
    {"\"${ { a = 1 }.a }-\"", "\"1-\""},
    {"\"%{ if var.n > 2 }big%{ else }small%{ endif }\"", "\"big\""},
    {"\"%{ if false }x%{ endif }\"", "\"\""},
    {"\"%{ for x in var.l }[${x}]%{ endfor }\"", "\"[a][b][c]\""},
    {"\"%{ for i, x in var.l ~} ${i}${x} %{~ endfor }\"", "\"0a1b2c\""},
    {"\"%{ for x in [1, 2] }%{ if x == 1 }one%{ else }${x}%{ endif }%{ endfor }\"", "\"one2\""},
    {"\"%{ if true }x\"", "!Unclosed template directive"},
    {"\"x%{ endif }\"", "!Unexpected template directive"},
    {"\"%{ if true }%{ endfor }\"", "!Unclosed template directive"},
    {"\"%{ what }\"", "!Invalid template directive"},
    {"\"${1\"", "!Unclosed template"},
    {"\"${A:-x}\"", "!Unclosed template; Expected \"}\" after the expression (write $${ for a literal ${)"},
    {"\"abc", "!Unterminated string"},
    {"\"abc\n\"", "!Invalid multi-line string"},
    {"<<EOT\nline ${1 + 1}\n  two\nEOT\n", "\"line 2\\n  two\\n\""},
    {"<<-EOT\n    a\n      b\n\n    c\n    EOT\n", "\"a\\n  b\\n\\nc\\n\""},
    {"<<-EOT\n\t${1}\n\t  x\n\tEOT\n", "\"1\\n  x\\n\""},
    {"<<EOT\nno \\n escape \"q\" $${x}\nEOT\n", "\"no \\\\n escape \\\"q\\\" ${x}\\n\""},
    {"<<EOT\nEOT\n", "\"\""},
    {"<<EOT\na\r\nEOT\n", "\"a\\n\""},
    {"<<EOT\nEOTX\n EOT \n", "\"EOTX\\n\""},
    {"<<EOT\nabc", "!Unterminated heredoc"},
    {"<< EOT\nabc\nEOT\n", "!Invalid heredoc"},
    {"[<<A\nx\nA\n, 2]", "[\"x\\n\",2]"},
};

/* The values that are known at run time only; they stay as they are written. */
static const struct help_row runtime[] = {
    {"\"${attr.kernel.name}\"", "\"${attr.kernel.name}\""},
    {"\"${NOMAD_PORT_db}:${var.n}\"", "\"${NOMAD_PORT_db}:3\""},
    {"\"${meta.foo-bar}/${node.unique.name}\"", "\"${meta.foo-bar}/${node.unique.name}\""},
    {"\"${env[\"HOME\"]}\"", "\"${env[\\\"HOME\\\"]}\""},
    {"\"${~ attr.x ~} y\"", "\"${ attr.x }y\""},
    {"\"${attr.driver.docker.0}\"", "\"${attr.driver.docker.0}\""},
    {"upper(\"${attr.x}\")", "\"${ATTR.X}\""},
    {"\"${upper(attr.x)}\"", "\"${upper(attr.x)}\""},
    {"\"${[for x in [1] : x + y]}\"", "\"${[for x in [1] : x + y]}\""},
    {"\"%{ if attr.x }a%{ endif }\"", "!Known at run time only"},
    {"<<E\n${NOMAD_TASK_DIR}/x\nE\n", "\"${NOMAD_TASK_DIR}/x\\n\""},
};

START_TEST(test_literals)
{
    help_check(literals, ARRAY_LEN(literals));
}
END_TEST
START_TEST(test_operators)
{
    help_check(operators, ARRAY_LEN(operators));
}
END_TEST
START_TEST(test_references)
{
    help_check(references, ARRAY_LEN(references));
}
END_TEST
START_TEST(test_loops)
{
    help_check(loops, ARRAY_LEN(loops));
}
END_TEST
START_TEST(test_templates)
{
    help_check(templates, ARRAY_LEN(templates));
}
END_TEST
START_TEST(test_runtime)
{
    help_check(runtime, ARRAY_LEN(runtime));
}
END_TEST

TEST_SUITE("expressions", test_literals, test_operators, test_references, test_loops,
           test_templates, test_runtime)
