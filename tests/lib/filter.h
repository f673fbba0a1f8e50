/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters for tests of whatever speaks over a stream: the same cases run once plain, and once over
 * one that turns each byte over, delays each tenth read and cuts each hundredth in two. A program
 * is built twice for that (tests/net/Makefile.inc.am), the second time with TEST_FILTERED; some
 * once more for TLS, with TEST_OVER_TLS.
 */
#ifndef PADDOCK_TESTS_FILTER_H
#define PADDOCK_TESTS_FILTER_H

#include <sys/socket.h>
#include <sys/types.h>

#include "net/filter.h"

extern const struct filter filter_turning;

/* send() and recv() of a test that speaks for itself to a listener with that filter. */
ssize_t filter_turned_send(int fd, const void *p, size_t n, int flags);
ssize_t filter_turned_recv(int fd, void *p, size_t n, int flags);
void filter_turn_text(char *text);

#if defined(TEST_OVER_TLS)
#include "tests/lib/tls.h"
#define TEST_FILTER tls_rpc(test_tls())
#elif defined(TEST_FILTERED)
#define TEST_FILTER (&filter_turning)
#define TEST_SCHEME "https://"
#define TEST_SEND filter_turned_send
#define TEST_RECV filter_turned_recv
#define TEST_IN_CLEAR(text) filter_turn_text(text) /* received before the filter went on */
#endif
#ifndef TEST_FILTERED
#ifndef TEST_FILTER
#define TEST_FILTER NULL
#endif
#define TEST_SCHEME "http://"
#define TEST_SEND send
#define TEST_RECV recv
#define TEST_IN_CLEAR(text) ((void)(text))
#endif

#endif
