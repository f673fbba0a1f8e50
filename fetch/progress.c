/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/progress.h"

#include <sys/socket.h>

#include "api/api.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/duration.h"
#include "isolation/launch/helper.h"

enum { FIRST_MS = 2000, SELDOM_MS = 32000, PIECE = 4096 };

static struct {
    int64_t next_ns, wait_ms;
} progress;

void
progress_tell(int64_t bytes, int64_t total)
{
    int64_t now = clock_mono_ns();
    if (progress.wait_ms == 0) {
        progress.wait_ms = FIRST_MS;
        progress.next_ns = now + FIRST_MS * NS_PER_MS;
    }
    if (now < progress.next_ns)
        return;
    const struct fetch_report r = {.progress = true, .bytes = bytes, .total = total};
    auto_buf struct buf b = BUF_INIT(PIECE);
    mp_encode(&b, &type_fetch_report, &r);
    /* an agent that does not take it has lost nothing */
    (void)send(HELPER_FD_TALK, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    progress.wait_ms = progress.wait_ms < SELDOM_MS ? 2 * progress.wait_ms : SELDOM_MS;
    progress.next_ns = now + progress.wait_ms * NS_PER_MS;
}
