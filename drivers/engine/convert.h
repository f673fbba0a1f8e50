/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a job file that drivers of engines have in common. The config is checked; `t` owns what
 * is added to it. 0 or *e with what is wrong: -ERR_INVALID, -ERR_UNSUPPORTED.
 */
#ifndef PADDOCK_DRIVERS_ENGINE_CONVERT_H
#define PADDOCK_DRIVERS_ENGINE_CONVERT_H

#include <stddef.h>

#include "drivers/driver.h"

/* An option that goes as it is: to the member of struct hand_task at `to`, by its kind. */
struct convert_row {
    const char *name;
    enum driver_option_kind kind;
    size_t to;
};
#define ROW(name, kind, member) {(name), DRIVER_##kind, offsetof(struct hand_task, member)}
void convert_rows(struct hand_task *t, const struct value *config, const struct convert_row *rows,
                  size_t n);
/* The image, without the scheme that may be before its name. */
void convert_image(struct hand_task *t, const struct value *config, const char *scheme);
void convert_fingerprint(const void *ctx, const struct driver_host *host, const char *driver,
                         struct driver_info *ret);
/* The network: its group's, where that has one and the task says nothing else; what then is not the
 * task's, and rules of ours, which no container has, are refused. After all else of the task. */
int convert_network(struct hand_task *t, const struct driver_input *in, const char *driver,
                    struct err *e);
/* command, args, entrypoint and environment; user and log files; auth and image_pull_timeout. */
void convert_common(struct hand_task *t, const struct driver_input *in);
/* ports, port_map. */
int convert_ports(struct hand_task *t, const struct driver_input *in, struct err *e);
/* Sets the limits from resources, memory_hard_limit, cpu_hard_limit. */
int convert_limits(struct hand_task *t, const struct driver_input *in, struct err *e);
/* Sets the options of an isolation block that an engine has as well (api/validate_isolation.c
 * refuses the rest). */
void convert_isolation(struct hand_task *t, const struct driver_input *in);
/* Names and texts; NULL: none. */
void convert_map(struct hand_task *t, struct str_map *to, const struct value *map);
/* volumes; `driver` not empty: they are that driver's, and their sources names. */
int convert_volumes(struct hand_task *t, const struct value *config, const char *driver,
                    struct err *e);
int convert_device(struct hand_task *t, const char *host, const char *path, const char *rights,
                   struct err *e);
int convert_ulimits(struct hand_task *t, const struct value *map, struct err *e);

#endif
