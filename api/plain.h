/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of tasks and of files that everything on their way takes: the validation of a job, the
 * client and the warden, which closes the connection of an agent that sends others. Pure.
 */
#ifndef PADDOCK_API_PLAIN_H
#define PADDOCK_API_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

/* 1 to JOB_TASK_NAME_MAX bytes, no slash, no control character; a directory and a cgroup of that
 * name hold nothing else: no '.' in front, not "alloc", not "cgroup.*". `s` may be NULL. */
bool plain_task_name(const char *s);
/* Relative, no empty, "." or ".." component, no control characters, bounded; "" and NULL: the top.
 */
bool plain_path(const char *s);
/* The first `n` bytes of `s` can name a variable of an environment: a line break would forge one
 * wherever lines are read. */
bool plain_env_name(const char *s, size_t n);
/* A DNS name of 1 to JOB_HOSTNAME_MAX bytes. */
bool plain_hostname(const char *s);
/* A word of resolv.conf(5): not empty, no blank, no control character. */
bool plain_word(const char *s);
/* A name that lists and logs show as it is, of 1 to `max` bytes: no control character. */
bool plain_text(const char *s, size_t max);
/* The id of a job: such a name of at most JOB_ID_MAX bytes, without blanks. */
bool plain_job_id(const char *s);
/* Says whether the text is an address of IPv4 or IPv6. */
bool plain_address(const char *s);

#endif
