/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of commands.
 */
#include "cli/command.h"

#define PATH_HELP \
    "The path names a job file in HCL (or in JSON with -json); \"-\" reads standard input. "

const struct command commands[] = {
#define COMMON(name, args, brief, help, fn) {name, args, brief, help, cmd_##fn, NULL, true},
#define COMMAND(name, args, brief, help, fn) {name, args, brief, help, cmd_##fn, NULL, false},
#define PARENT(name, brief, common) {name, "", brief, NULL, NULL, NULL, common},
#define AGENT(name, args, brief) {name, args, brief, NULL, NULL, NULL, true},
#define ALIAS(name, args, brief, fn, of, common) {name, args, brief, NULL, cmd_##fn, of, common},
#include "cli/command.def"
};
const size_t commands_n = ARRAY_LEN(commands);
