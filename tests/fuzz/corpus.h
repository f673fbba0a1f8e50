/* SPDX-License-Identifier: Apache-2.0
 *
 * make-corpus: writes the seeds of every fuzzer from our own tables and encoders. One function per
 * family; each seed is a file CORPUS/FUZZER/NAME in the format that the fuzzer's first lines tell.
 */
#ifndef PADDOCK_TESTS_FUZZ_CORPUS_H
#define PADDOCK_TESTS_FUZZ_CORPUS_H

#include <stdarg.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/mem.h"

extern const char *source_dir; /* of the project: examples are read there */

void seed(const char *fuzzer, const char *name, const void *p, size_t n);
/* `first` in front of a text; -1: nothing. NUL bytes in the text are written as \1. */
void seed_text(const char *fuzzer, const char *name, int first, const char *text);
/* NULL-terminated list of texts, named by number. */
void seed_texts(const char *fuzzer, int first, const char *const *texts);

/* corpus_codec.c: json, msgpack, rpc, warden, log, disk */
void corpus_codec(void);
/* corpus_isolation.c: of fuzz-isolation what is no text */
void corpus_isolation(void);
/* corpus_text.c: everything that is text */
void corpus_text(void);

#endif
