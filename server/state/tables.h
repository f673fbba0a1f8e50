/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of the state, a row each, and their indexes. Put, delete, loading from a snapshot,
 * dump and the lists work by these rows (tables.c, write.c, read.c): a new table is a row here and
 * a struct in api/schema, and is used by state_put(), state_get() and state_del().
 *
 *   ROW(NAME, id, type, name, key, watches, gone)
 *     id       in snapshots: permanent, never reused; STATE_ID_META is taken
 *     key      of the row, from its object: strings but for a last number
 *     watches  what a blocking query may wait for: its kind (state.h, where who waits names it,
 *              too), and its subject
 *     gone     called when a row was removed: removes what belongs to it; or NULL
 *   INDEX(NAME, TABLE, name, key, holds)
 *     derived: what it says is the key of the row; holds(object) false: not in it; NULL: every row
 *     is
 *
 * Objects with a name have their rows from the lines `object` of api/schema.
 *
 * A change of a key or an index is a new STATE_FORMAT (state_int.h).
 */
#ifndef PADDOCK_SERVER_STATE_TABLES_H
#define PADDOCK_SERVER_STATE_TABLES_H

#define STATE_ROWS(ROW)                                                                            \
    ROW(JOBS, 0, job, "jobs", KEY(STR(job, namespace), STR(job, id)),                              \
        WATCHES(ABOUT(WATCH_JOB, STR(job, namespace), STR(job, id))), job_gone)                    \
    ROW(JOB_VERSIONS, 1, job, "job_versions",                                                      \
        KEY(STR(job, namespace), STR(job, id), NEWEST(job, job_modify_index)),                     \
        WATCHES(ABOUT(WATCH_JOB, STR(job, namespace), STR(job, id))), NULL)                        \
    ROW(SUBMISSIONS, 2, job_submission, "job_submissions",                                         \
        KEY(STR(job_submission, namespace), STR(job_submission, job_id),                           \
            NEWEST(job_submission, version)),                                                      \
        WATCHES(ABOUT(WATCH_JOB, STR(job_submission, namespace), STR(job_submission, job_id))),    \
        NULL)                                                                                      \
    ROW(SUMMARIES, 3, job_summary, "job_summaries",                                                \
        KEY(STR(job_summary, namespace), STR(job_summary, job_id)),                                \
        WATCHES(ABOUT(WATCH_JOB, STR(job_summary, namespace), STR(job_summary, job_id))), NULL)    \
    ROW(NODES, 4, node, "nodes", KEY(STR(node, id)), WATCHES(ABOUT(WATCH_NODE, STR(node, id))),    \
        NULL)                                                                                      \
    ROW(ALLOCS, 5, allocation, "allocs", KEY(STR(allocation, id)),                                 \
        WATCHES(ABOUT(WATCH_ALLOC, STR(allocation, id)),                                           \
                ABOUT(WATCH_JOB_ALLOCS, STR(allocation, namespace), STR(allocation, job_id)),      \
                ABOUT(WATCH_NODE_ALLOCS, STR(allocation, node_id)),                                \
                ABOUT(WATCH_EVAL_ALLOCS, STR(allocation, eval_id)),                                \
                ABOUT(WATCH_DEPLOYMENT_ALLOCS, STR(allocation, deployment_id))),                   \
        alloc_gone)                                                                                \
    ROW(EVALS, 6, evaluation, "evals", KEY(STR(evaluation, id)),                                   \
        WATCHES(ABOUT(WATCH_EVAL, STR(evaluation, id)),                                            \
                ABOUT(WATCH_JOB_EVALS, STR(evaluation, namespace), STR(evaluation, job_id))),      \
        NULL)                                                                                      \
    ROW(DEPLOYMENTS, 14, deployment, "deployments", KEY(STR(deployment, id)),                      \
        WATCHES(                                                                                   \
            ABOUT(WATCH_DEPLOYMENT, STR(deployment, id)),                                          \
            ABOUT(WATCH_JOB_DEPLOYMENTS, STR(deployment, namespace), STR(deployment, job_id))),    \
        NULL)                                                                                      \
    ROW(SCHEDULER_CONFIG, 7, scheduler_configuration, "scheduler_config", KEY(WORD("config")),     \
        WATCHES({0}), NULL)                                                                        \
    ROW(AUTOPILOT, 42, autopilot_configuration, "autopilot", KEY(WORD("config")), WATCHES({0}),    \
        NULL)                                                                                      \
    ROW(PERIODIC_LAUNCHES, 11, periodic_launch, "periodic_launches",                               \
        KEY(STR(periodic_launch, namespace), STR(periodic_launch, id)), WATCHES({0}), NULL)        \
    ROW(CLUSTER, 15, cluster_metadata, "cluster_metadata", KEY(WORD("cluster")), WATCHES({0}),     \
        NULL)                                                                                      \
    ROW(ACL_BOOTSTRAPPED, 22, acl_bootstrapped, "acl_bootstrapped", KEY(WORD("bootstrap")),        \
        WATCHES({0}), NULL)                                                                        \
    ROW(ACL_ONE_TIME_TOKENS, 23, acl_one_time_token, "acl_one_time_tokens",                        \
        KEY(STR(acl_one_time_token, accessor_id)), WATCHES({0}), NULL)                             \
    /* gone with their allocation, whose end ends them */                                          \
    ROW(SERVICES, 24, service_registration, "services", KEY(STR(service_registration, id)),        \
        WATCHES(ABOUT(WATCH_SERVICE, STR(service_registration, namespace),                         \
                      STR(service_registration, service_name)),                                    \
                ABOUT(WATCH_JOB_SERVICES, STR(service_registration, namespace),                    \
                      STR(service_registration, job_id)),                                          \
                ABOUT(WATCH_ALLOC_SERVICES, STR(service_registration, alloc_id))),                 \
        NULL)                                                                                      \
    ROW(HOST_VOLUMES, 45, host_volume, "host_volumes", KEY(STR(host_volume, id)),                  \
        WATCHES(ABOUT(WATCH_HOST_VOLUME, STR(host_volume, id)),                                    \
                ABOUT(WATCH_NODE_ALLOCS, STR(host_volume, node_id))),                              \
        NULL)                                                                                      \
    ROW(ROOT_KEYS, 26, root_key, "root_keys", KEY(STR(root_key, key_id)), WATCHES({0}), NULL)      \
    ROW(VARIABLES, 27, sealed_variable, "variables",                                               \
        KEY(STR(sealed_variable, namespace), STR(sealed_variable, path)),                          \
        WATCHES(                                                                                   \
            ABOUT(WATCH_VARIABLE, STR(sealed_variable, namespace), STR(sealed_variable, path))),   \
        NULL)                                                                                      \
    /* pieces of a backup, until it is restored or another one is sent */                          \
    ROW(RESTORE, 55, restore_piece, "restore", KEY(OLDEST(restore_piece, offset)), WATCHES({0}),   \
        NULL)                                                                                      \
    ROW(SCALING_POLICIES, 40, job_scaling_policy, "scaling_policies",                              \
        KEY(STR(job_scaling_policy, id)), WATCHES({0}), NULL)                                      \
    ROW(SCALING_EVENTS, 41, group_scaling_events, "scaling_events",                                \
        KEY(STR(group_scaling_events, namespace), STR(group_scaling_events, job_id),               \
            STR(group_scaling_events, group)),                                                     \
        WATCHES({0}), NULL)                                                                        \
    API_OBJECTS(OBJECT_ROW)

/* The row of a kind of objects with a name; ROW is a macro of who asks for the rows. */
#define OBJECT_ROW(TABLE, id, type, TYPE, table, words, key, member)                               \
    ROW(TABLE, id, type, table, KEY(STR(type, member)),                                            \
        WATCHES(ABOUT(WATCH_##TYPE, STR(type, member))), NULL)

#define STATE_INDEXES(INDEX)                                                                       \
    INDEX(JOBS_BY_TYPE, JOBS, "jobs_by_type",                                                      \
          KEY(STR(job, type), STR(job, namespace), STR(job, id)), NULL)                            \
    INDEX(JOBS_BY_POOL, JOBS, "jobs_by_pool",                                                      \
          KEY(STR(job, node_pool), STR(job, namespace), STR(job, id)), NULL)                       \
    /* children, of their parent; by token those of a dispatch that has one */                     \
    INDEX(JOBS_BY_PARENT, JOBS, "jobs_by_parent",                                                  \
          KEY(STR(job, namespace), STR(job, parent_id), HASH(job, dispatch_idempotency_token),     \
              STR(job, id)),                                                                       \
          job_is_child)                                                                            \
    INDEX(ALLOCS_BY_JOB, ALLOCS, "allocs_by_job",                                                  \
          KEY(STR(allocation, namespace), STR(allocation, job_id), STR(allocation, id)), NULL)     \
    INDEX(NODES_BY_POOL, NODES, "nodes_by_pool", KEY(STR(node, node_pool), STR(node, id)), NULL)   \
    INDEX(ALLOCS_BY_NODE, ALLOCS, "allocs_by_node",                                                \
          KEY(STR(allocation, node_id), STR(allocation, id)), NULL)                                \
    INDEX(ALLOCS_BY_EVAL, ALLOCS, "allocs_by_eval",                                                \
          KEY(STR(allocation, eval_id), STR(allocation, id)), NULL)                                \
    INDEX(ALLOCS_BY_CREATE, ALLOCS, "allocs_by_create",                                            \
          KEY(OLDEST(allocation, create_index), STR(allocation, id)), NULL)                        \
    /* those that are terminal on neither side, of a job, by name and node */                      \
    INDEX(LIVE_ALLOCS, ALLOCS, "live_allocs",                                                      \
          KEY(STR(allocation, namespace), STR(allocation, job_id), HASH(allocation, name),         \
              HASH(allocation, node_id), STR(allocation, id)),                                     \
          alloc_lives)                                                                             \
    INDEX(EVALS_BY_CREATE, EVALS, "evals_by_create",                                               \
          KEY(OLDEST(evaluation, create_index), STR(evaluation, id)), NULL)                        \
    INDEX(EVALS_BY_JOB, EVALS, "evals_by_job",                                                     \
          KEY(STR(evaluation, namespace), STR(evaluation, job_id), STR(evaluation, id)), NULL)     \
    /* pending and blocked ones, of a job */                                                       \
    INDEX(OPEN_EVALS, EVALS, "open_evals",                                                         \
          KEY(STR(evaluation, namespace), STR(evaluation, job_id), STR(evaluation, status),        \
              STR(evaluation, id)),                                                                \
          eval_open)                                                                               \
    INDEX(ALLOCS_BY_DEPLOYMENT, ALLOCS, "allocs_by_deployment",                                    \
          KEY(STR(allocation, deployment_id), STR(allocation, id)), alloc_deployed)                \
    /* the newest first */                                                                         \
    INDEX(DEPLOYMENTS_BY_JOB, DEPLOYMENTS, "deployments_by_job",                                   \
          KEY(STR(deployment, namespace), STR(deployment, job_id),                                 \
              NEWEST(deployment, create_index), STR(deployment, id)),                              \
          NULL)                                                                                    \
    INDEX(DEPLOYMENTS_BY_CREATE, DEPLOYMENTS, "deployments_by_create",                             \
          KEY(OLDEST(deployment, create_index), STR(deployment, id)), NULL)                        \
    INDEX(ACTIVE_DEPLOYMENTS, DEPLOYMENTS, "active_deployments",                                   \
          KEY(STR(deployment, namespace), STR(deployment, job_id), STR(deployment, id)),           \
          deployment_active_row)                                                                   \
    INDEX(ACL_TOKENS_BY_SECRET, ACL_TOKENS, "acl_tokens_by_secret",                                \
          KEY(HASH(acl_token, secret_id), STR(acl_token, accessor_id)), NULL)                      \
    INDEX(ACL_ONE_TIME_BY_SECRET, ACL_ONE_TIME_TOKENS, "acl_one_time_by_secret",                   \
          KEY(HASH(acl_one_time_token, one_time_secret_id), STR(acl_one_time_token, accessor_id)), \
          NULL)                                                                                    \
    INDEX(ACL_ROLES_BY_NAME, ACL_ROLES, "acl_roles_by_name",                                       \
          KEY(STR(acl_role, name), STR(acl_role, id)), NULL)                                       \
    INDEX(SERVICES_BY_NAME, SERVICES, "services_by_name",                                          \
          KEY(STR(service_registration, namespace), STR(service_registration, service_name),       \
              STR(service_registration, id)),                                                      \
          NULL)                                                                                    \
    INDEX(SERVICES_BY_JOB, SERVICES, "services_by_job",                                            \
          KEY(STR(service_registration, namespace), STR(service_registration, job_id),             \
              STR(service_registration, id)),                                                      \
          NULL)                                                                                    \
    INDEX(SERVICES_BY_ALLOC, SERVICES, "services_by_alloc",                                        \
          KEY(STR(service_registration, alloc_id), STR(service_registration, id)), NULL)           \
    INDEX(SERVICES_BY_NODE, SERVICES, "services_by_node",                                          \
          KEY(STR(service_registration, node_id), STR(service_registration, id)), NULL)            \
    INDEX(HOST_VOLUMES_BY_NODE, HOST_VOLUMES, "host_volumes_by_node",                              \
          KEY(STR(host_volume, node_id), STR(host_volume, id)), NULL)                              \
    INDEX(VARIABLES_BY_KEY, VARIABLES, "variables_by_key",                                         \
          KEY(STR(sealed_variable, key_id), STR(sealed_variable, namespace),                       \
              STR(sealed_variable, path)),                                                         \
          NULL)                                                                                    \
    INDEX(SCALING_BY_JOB, SCALING_POLICIES, "scaling_by_job",                                      \
          KEY(STR(job_scaling_policy, namespace), STR(job_scaling_policy, job_id),                 \
              STR(job_scaling_policy, id)),                                                        \
          NULL)                                                                                    \
    INDEX(LOCKED_VARIABLES, VARIABLES, "locked_variables",                                         \
          KEY(STR(sealed_variable, namespace), STR(sealed_variable, path)), variable_locked)

#endif
