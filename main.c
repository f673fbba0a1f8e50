/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock: the agent, or a command.
 */
#include <string.h>

#include "agent/agent.h"
#include "cli/cli.h"
#include "common/mem.h"

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer sees neither openat(2) nor that libuv closes by system call: it takes a file that
 * a worker writes, reads and closes for the connection that had the descriptor before. */
const char *__tsan_default_suppressions(void);
const char *
__tsan_default_suppressions(void)
{
    return "race:snapshot_write\n"
           "race:file_write_atomic\n"
           "race:fd_close\n";
}
#endif

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "agent") == 0)
        return agent_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "policy") == 0)
        return policy_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "-complete") == 0) {
        auto_mem void *ctx = mem_ctx("options");
        return cli_complete(agent_options(ctx));
    }
    return cli_main(argc, argv);
}
