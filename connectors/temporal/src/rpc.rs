//! The table of RPCs: one row for each that is served.
//!
//! The services, the labels of metrics, the admission of calls and their routing among the nodes are made from it; docs/api.md
//! is compared with it. To add an RPC, write a row here and a handler in `handlers/`. An RPC without a row answers
//! UNIMPLEMENTED.

use everlog_auth::Access;
use everlog_temporal_api::operatorservice::operator_service_server;
use everlog_temporal_api::workflowservice::workflow_service_server;

/// Calls the macro of this name with the table. The columns:
///
/// * the RPC, as the API names it: its messages are `NameRequest` and `NameResponse`;
/// * the handler, below `crate::handlers`;
/// * how the request names its namespace: `none`, by `name`, or by a task `token` and usually by name as well; `about` one
///   where it names a namespace and does not act in it;
/// * what the caller needs, an [`Access`]: the table of Temporal's own methods, with a worker that works and does nothing else;
/// * the [`RoutingKey`]: which field says where the call is answered;
/// * whether the call is a long poll: `never`, `always`, or where this field of the request is set;
/// * `repeatable` where a node may send the call a second time by itself, because it changes nothing or what it took is
///   given back; else `once`.
macro_rules! rpcs {
    ($callback:ident) => {
        $callback! {
            // RPC                                    handler                                     scope  needs         routing key     long poll       sent again
            WorkflowService {
                RegisterNamespace                  = cluster_info::register_namespace,           about, admin,        Registry,       never,          once;
                DescribeNamespace                  = cluster_info::describe_namespace,           about, read_or_work, AnyNode,        never,          repeatable;
                ListNamespaces                     = cluster_info::list_namespaces,              none,  read_somewhere,AnyNode,        never,          repeatable;
                UpdateNamespace                    = cluster_info::update_namespace,             about, admin,        Registry,       never,          once;
                DeprecateNamespace                 = cluster_info::deprecate_namespace,          about, admin,        Registry,       never,          repeatable;
                StartWorkflowExecution             = start::start,                               name,  write,        WorkflowId,     never,          once;
                ExecuteMultiOperation              = multi_operation::execute,                   name,  write,        FirstOperation, always,         once;
                GetWorkflowExecutionHistory        = history::get,                               name,  read_or_work, Execution,      wait_new_event, repeatable;
                GetWorkflowExecutionHistoryReverse = history::get_reverse,                       name,  read,         Execution,      never,          repeatable;
                PollWorkflowTaskQueue              = workflow_task::poll,                        name,  work,         WorkflowPoll,   always,         repeatable;
                RespondWorkflowTaskCompleted       = workflow_task_completed::complete,          token, work,         TaskToken,      never,          once;
                RespondWorkflowTaskFailed          = workflow_task_completed::fail,              token, work,         TaskToken,      never,          once;
                PollActivityTaskQueue              = activity::poll,                             name,  work,         ActivityPoll,   always,         repeatable;
                RecordActivityTaskHeartbeat        = activity::heartbeat,                        token, work,         TaskToken,      never,          once;
                RecordActivityTaskHeartbeatById    = activity::heartbeat_by_id,                  name,  work,         WorkflowId,     never,          once;
                RespondActivityTaskCompleted       = activity::complete,                         token, work,         TaskToken,      never,          once;
                RespondActivityTaskCompletedById   = activity::complete_by_id,                   name,  work,         WorkflowId,     never,          once;
                RespondActivityTaskFailed          = activity::fail,                             token, work,         TaskToken,      never,          once;
                RespondActivityTaskFailedById      = activity::fail_by_id,                       name,  work,         WorkflowId,     never,          once;
                RespondActivityTaskCanceled        = activity::cancel,                           token, work,         TaskToken,      never,          once;
                RespondActivityTaskCanceledById    = activity::cancel_by_id,                     name,  work,         WorkflowId,     never,          once;
                RequestCancelWorkflowExecution     = signal::request_cancel,                     name,  write,        Execution,      never,          once;
                SignalWorkflowExecution            = signal::signal,                             name,  write,        Execution,      never,          once;
                SignalWithStartWorkflowExecution   = start::signal_with_start,                   name,  write,        WorkflowId,     never,          once;
                ResetWorkflowExecution             = reset::reset,                               name,  write,        Execution,      never,          once;
                TerminateWorkflowExecution         = signal::terminate,                          name,  write,        Execution,      never,          once;
                DeleteWorkflowExecution            = signal::delete,                             name,  write,        Execution,      never,          once;
                ListOpenWorkflowExecutions         = visibility::list_open,                      name,  read,         AnyNode,        never,          repeatable;
                ListClosedWorkflowExecutions       = visibility::list_closed,                    name,  read,         AnyNode,        never,          repeatable;
                ListWorkflowExecutions             = visibility::list,                           name,  read,         AnyNode,        never,          repeatable;
                ListArchivedWorkflowExecutions     = visibility::list_archived,                  name,  read,         AnyNode,        never,          repeatable;
                ScanWorkflowExecutions             = visibility::scan,                           name,  read,         AnyNode,        never,          repeatable;
                CountWorkflowExecutions            = visibility::count,                          name,  read,         AnyNode,        never,          repeatable;
                GetSearchAttributes                = operator::everywhere,                       none,  system_read,  AnyNode,        never,          repeatable;
                RespondQueryTaskCompleted          = query::respond,                             token, work,         TaskToken,      never,          once;
                ResetStickyTaskQueue               = task_queue::reset_sticky,                   name,  work,         Execution,      never,          once;
                ShutdownWorker                     = task_queue::shut_down_worker,               name,  work,         EveryNode,      never,          repeatable;
                QueryWorkflow                      = query::ask,                                 name,  read,         Execution,      never,          once;
                DescribeWorkflowExecution          = describe::describe,                         name,  read,         Execution,      never,          repeatable;
                DescribeTaskQueue                  = task_queue::describe,                       name,  read,         TaskQueue,      never,          repeatable;
                GetClusterInfo                     = cluster_info::cluster,                      none,  known,        AnyNode,        never,          repeatable;
                GetSystemInfo                      = cluster_info::info,                         none,  open,         AnyNode,        never,          repeatable;
                ListTaskQueuePartitions            = task_queue::list_partitions,                name,  read,         AnyNode,        never,          repeatable;
                UpdateTaskQueueConfig              = task_queue_config::update,                  name,  write,        Registry,       never,          once;
                UpdateWorkerBuildIdCompatibility   = build_ids::update,                          name,  write,        Registry,       never,          once;
                GetWorkerBuildIdCompatibility      = build_ids::get,                             name,  read,         Registry,       never,          repeatable;
                GetWorkerTaskReachability          = build_ids::reachability,                    name,  read,         Registry,       never,          repeatable;
                CreateSchedule                     = schedule::create,                           name,  write,        ScheduleId,     never,          once;
                DescribeSchedule                   = schedule::describe,                         name,  read,         ScheduleId,     never,          repeatable;
                UpdateSchedule                     = schedule::update,                           name,  write,        ScheduleId,     never,          once;
                PatchSchedule                      = schedule::patch,                            name,  write,        ScheduleId,     never,          once;
                ListScheduleMatchingTimes          = schedule::list_matching_times,              name,  read,         ScheduleId,     never,          repeatable;
                DeleteSchedule                     = schedule::delete,                           name,  write,        ScheduleId,     never,          once;
                ListSchedules                      = schedule::list,                             name,  read,         AnyNode,        never,          repeatable;
                CountSchedules                     = schedule::count,                            name,  read,         AnyNode,        never,          repeatable;
                UpdateWorkflowExecution            = update::update,                             name,  write,        Execution,      always,         once;
                PollWorkflowExecutionUpdate        = update::poll,                               name,  read,         UpdateRef,      always,         repeatable;
                RecordWorkerHeartbeat              = worker_registry::record,                    name,  work,         EveryNode,      never,          repeatable;
                ListWorkers                        = worker_registry::list,                      name,  read,         AnyNode,        never,          repeatable;
                StartBatchOperation                = batch::start,                               name,  write,        BatchJob,       never,          once;
                StopBatchOperation                 = batch::stop,                                name,  write,        WorkflowId,     never,          once;
                ListBatchOperations                = batch::list,                                name,  read,         AnyNode,        never,          repeatable;
                DescribeBatchOperation             = batch::describe,                            name,  read,         WorkflowId,     never,          repeatable;
                CountWorkers                       = worker_registry::count,                     name,  read,         AnyNode,        never,          repeatable;
                DescribeWorker                     = worker_registry::describe,                  name,  read,         AnyNode,        never,          repeatable;
                UpdateActivityOptions              = activity_control::update_options,           name,  write,        Execution,      never,          once;
                PauseActivity                      = activity_control::pause,                    name,  write,        Execution,      never,          once;
                UnpauseActivity                    = activity_control::unpause,                  name,  write,        Execution,      never,          once;
                ResetActivity                      = activity_control::reset,                    name,  write,        Execution,      never,          once;
                PauseActivityExecution             = activity_control::pause_execution,          name,  write,        WorkflowId,     never,          once;
                UnpauseActivityExecution           = activity_control::unpause_execution,        name,  write,        WorkflowId,     never,          once;
                ResetActivityExecution             = activity_control::reset_execution,          name,  write,        WorkflowId,     never,          once;
                UpdateActivityExecutionOptions     = activity_control::update_execution_options, name,  write,        WorkflowId,     never,          once;
                UpdateWorkflowExecutionOptions     = run_control::update_options,                name,  write,        Execution,      never,          once;
                PauseWorkflowExecution             = run_control::pause,                         name,  write,        WorkflowId,     never,          once;
                UnpauseWorkflowExecution           = run_control::unpause,                       name,  write,        WorkflowId,     never,          once;
            }
            OperatorService {
                AddSearchAttributes                = operator::add_search_attributes,            about, admin,        Registry,       never,          once;
                RemoveSearchAttributes             = operator::remove_search_attributes,         about, admin,        Registry,       never,          once;
                ListSearchAttributes               = operator::list_search_attributes,           about, read,         AnyNode,        never,          repeatable;
                DeleteNamespace                    = operator::delete_namespace,                 about, admin,        Registry,       never,          once;
                ListClusters                       = cluster_info::list_clusters,                none,  system_admin, AnyNode,        never,          repeatable;
            }
        }
    };
}
pub(crate) use rpcs;

/// Which field of a request says what node answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoutingKey {
    /// None: any node answers.
    AnyNode,
    /// None: every node takes note of it.
    EveryNode,
    /// None: one node makes all changes of namespaces and of settings of task queues.
    Registry,
    /// Namespace and Workflow Id.
    WorkflowId,
    /// Namespace and the id of a batch job, which is a Workflow Id.
    BatchJob,
    /// Namespace and the id of a schedule.
    ScheduleId,
    /// Namespace and an execution.
    Execution,
    /// Namespace and an update of an execution.
    UpdateRef,
    /// Namespace and operations, of which the first is the start of a Workflow Id.
    FirstOperation,
    /// A task token.
    TaskToken,
    /// Namespace and the task queue of a poll for workflow tasks.
    WorkflowPoll,
    /// Namespace and the task queue of a poll for activity tasks.
    ActivityPoll,
    /// Namespace and a task queue.
    TaskQueue,
}

impl RoutingKey {
    /// A worker waits for a task.
    pub(crate) fn is_poll(self) -> bool {
        matches!(self, Self::WorkflowPoll | Self::ActivityPoll)
    }
}

struct Row {
    name: &'static str,
    service: &'static str,
    access: Access,
    routing_key: RoutingKey,
    is_repeatable: bool,
}

macro_rules! service_name {
    (WorkflowService) => {
        workflow_service_server::SERVICE_NAME
    };
    (OperatorService) => {
        operator_service_server::SERVICE_NAME
    };
}

macro_rules! is_repeatable {
    (repeatable) => {
        true
    };
    (once) => {
        false
    };
}

macro_rules! access {
    (open) => {
        Access::Open
    };
    (known) => {
        Access::Known
    };
    (read_somewhere) => {
        Access::READ_SOMEWHERE
    };
    (system_read) => {
        Access::SYSTEM_READ
    };
    (read) => {
        Access::READ
    };
    (read_or_work) => {
        Access::READ_OR_WORK
    };
    (work) => {
        Access::WORK
    };
    (write) => {
        Access::WRITE
    };
    (admin) => {
        Access::ADMIN
    };
    (system_admin) => {
        Access::SYSTEM_ADMIN
    };
}

macro_rules! rows {
    ($($service:ident { $(
        $rpc:ident = $($handler:ident)::+, $namespace:ident, $needs:ident, $key:ident, $long_poll:ident, $again:ident;
    )* })*) => {
        /// An RPC that is served.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Rpc { $($($rpc,)*)* }

        impl Rpc {
            const ALL: &[Self] = &[$($(Self::$rpc,)*)*];
        }

        /// By [`Rpc`].
        const ROWS: &[Row] = &[$($(Row {
            name: stringify!($rpc),
            service: service_name!($service),
            access: access!($needs),
            routing_key: RoutingKey::$key,
            is_repeatable: is_repeatable!($again),
        },)*)*];
    };
}
rpcs!(rows);

impl Rpc {
    /// How many there are.
    pub(crate) const COUNT: usize = ROWS.len();

    /// The RPC of a request's path; none where it is not served.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let (service, name) = path.strip_prefix('/')?.split_once('/')?;
        Self::ALL.iter().copied().find(|rpc| rpc.name() == name && rpc.row().service == service)
    }

    /// The name that the API gives it.
    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    /// The full name of its service.
    pub(crate) fn service(self) -> &'static str {
        self.row().service
    }

    /// What its caller needs.
    pub(crate) fn access(self) -> Access {
        self.row().access
    }

    /// Which field of its request says what node answers it.
    pub(crate) fn routing_key(self) -> RoutingKey {
        self.row().routing_key
    }

    /// A node may send it a second time by itself.
    pub(crate) fn is_repeatable(self) -> bool {
        self.row().is_repeatable
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
}

/// True of the path of an RPC that is served: `/SERVICE/RPC`.
pub fn is_served(path: &str) -> bool {
    Rpc::of_path(path).is_some()
}

#[cfg(test)]
mod absent;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use everlog_temporal_api::DESCRIPTOR;
    use expect_test::expect_file;
    use prost::Message;
    use prost_types::{FileDescriptorSet, ServiceDescriptorProto};

    use super::absent::reason;
    use super::*;

    /// The services of the API, each with its full name.
    fn services() -> Vec<(String, ServiceDescriptorProto)> {
        let set = FileDescriptorSet::decode(DESCRIPTOR).expect("the API's descriptor");
        let services = |file: prost_types::FileDescriptorProto| {
            let package = file.package().to_owned();
            file.service.into_iter().map(move |service| (format!("{package}.{}", service.name()), service))
        };
        set.file.into_iter().flat_map(services).collect()
    }

    #[test]
    fn every_row_is_an_rpc_of_the_api() {
        let services = services();
        for rpc in Rpc::ALL {
            let Row { name, service, .. } = rpc.row();
            let (_, described) = services.iter().find(|(full_name, _)| full_name == service).expect(service);
            assert!(described.method.iter().any(|method| method.name() == *name), "{service} has no {name}");
            assert_eq!(Rpc::of_path(&format!("/{service}/{name}")), Some(*rpc));
        }
        assert_eq!(
            Rpc::of_path("/temporal.api.workflowservice.v1.WorkflowService/StartActivityExecution"),
            None
        );
        assert_eq!(Rpc::of_path("/temporal.api.workflowservice.v1.WorkflowService/DeleteNamespace"), None);
    }

    /// Written anew by `UPDATE_EXPECT=1 cargo test --workspace --lib the_page_of_the_api`.
    #[test]
    fn the_page_of_the_api_lists_every_rpc_as_the_table_has_it() {
        const HEAD: &str = "| method | served | why not |\n|---|---|---|\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
        let mut page = std::fs::read_to_string(&path).expect("the page is there");
        for (full_name, service) in services() {
            let heading = format!("## {}\n\n{HEAD}", service.name());
            let (before, rest) = page.split_once(&heading).expect(&heading);
            let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
            let row = |name: &str| match (is_served(&format!("/{full_name}/{name}")), reason(name)) {
                (true, None) => format!("| `{name}` | yes | |\n"),
                (false, Some(reason)) => format!("| `{name}` | no | {reason} |\n"),
                (true, Some(_)) => panic!("{name} is served: take it out of rpc/absent.rs"),
                (false, None) => panic!("{name} is not served: rpc/absent.rs has to say why"),
            };
            let rows: String = service.method.iter().map(|method| row(method.name())).collect();
            page = format!("{before}{heading}{rows}\n{after}");
        }
        expect_file![path].assert_eq(&page);
    }
}
