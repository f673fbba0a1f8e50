/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the agent how far a download is: after two seconds first, then ever more seldom.
 */
#ifndef PADDOCK_FETCH_PROGRESS_H
#define PADDOCK_FETCH_PROGRESS_H

#include <stdint.h>

/* `total` 0: not known. Called for each piece that comes, by one thread at a time. */
void progress_tell(int64_t bytes, int64_t total);

#endif
