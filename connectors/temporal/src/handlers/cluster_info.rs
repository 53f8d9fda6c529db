//! GetSystemInfo, GetClusterInfo and the RPCs about namespaces.

use std::collections::BTreeMap;

use everlog_temporal_api::enums::{ArchivalState, NamespaceState, ReplicationState};
use everlog_temporal_api::namespace::namespace_info::{Capabilities as NamespaceCapabilities, Limits};
use everlog_temporal_api::namespace::{NamespaceConfig, NamespaceInfo};
use everlog_temporal_api::operatorservice::{ClusterMetadata, ListClustersRequest, ListClustersResponse};
use everlog_temporal_api::replication::{ClusterReplicationConfig, NamespaceReplicationConfig};
use everlog_temporal_api::version::{ReleaseInfo, VersionInfo};
use everlog_temporal_api::workflowservice::get_system_info_response::Capabilities;
use everlog_temporal_api::workflowservice::{
    DeprecateNamespaceRequest, DeprecateNamespaceResponse, DescribeNamespaceRequest,
    DescribeNamespaceResponse, GetClusterInfoRequest, GetClusterInfoResponse, GetSystemInfoRequest,
    GetSystemInfoResponse, ListNamespacesRequest, ListNamespacesResponse, RegisterNamespaceRequest,
    RegisterNamespaceResponse, UpdateNamespaceRequest, UpdateNamespaceResponse,
};
use prost::Message;
use tonic::Status;

use crate::About;
use crate::codec::status::{invalid, namespace_not_found};
use crate::codec::validation::{not_yet, span_ms};
use crate::codec::{proto_time, random_ids};
use crate::namespaces::namespace::{self, Namespace, NamespaceRecord};
use crate::server::call::Call;
use crate::server::client_version;
use crate::tasks::token::Purpose;

/// Namespaces on a page if the request sets no size.
const PAGE_DEFAULT: usize = 200;
const DAY_MS: i64 = 86_400_000;

pub(crate) async fn info(
    call: &Call<'_>,
    _request: GetSystemInfoRequest,
) -> Result<GetSystemInfoResponse, Status> {
    // Only what works is announced, because each capability turns on a feature of the SDKs.
    let capabilities = Capabilities {
        signal_and_query_header: true,
        internal_error_differentiation: true,
        activity_failure_include_heartbeat: true,
        encoded_failure_attributes: true,
        upsert_memo: true,
        eager_workflow_start: true,
        sdk_metadata: true,
        supports_schedules: true,
        build_id_based_versioning: true,
        count_group_by_execution_status: true,
        nexus: false,
        server_scaled_deployments: false,
        server_scaled_provider_cloud_run: false,
    };
    let server_version = call.gateway.about.server_version.clone();
    Ok(GetSystemInfoResponse { server_version, capabilities: Some(capabilities) })
}

pub(crate) async fn cluster(
    call: &Call<'_>,
    _request: GetClusterInfoRequest,
) -> Result<GetClusterInfoResponse, Status> {
    let about = &call.gateway.about;
    let clients = client_version::KNOWN
        .iter()
        .map(|(name, below)| ((*name).to_owned(), client_version::supported(*below)));
    let release = ReleaseInfo { version: about.server_version.clone(), ..ReleaseInfo::default() };
    Ok(GetClusterInfoResponse {
        supported_clients: clients.collect(),
        server_version: about.server_version.clone(),
        cluster_id: about.cluster_id.clone(),
        version_info: Some(VersionInfo { current: Some(release), ..VersionInfo::default() }),
        cluster_name: about.cluster_name.clone(),
        history_shard_count: i32::try_from(about.partitions).unwrap_or(i32::MAX),
        persistence_store: about.persistence_store.clone(),
        visibility_store: about.visibility_store.clone(),
        initial_failover_version: 1,
        failover_version_increment: 10,
    })
}

/// This cluster: it knows no other one.
pub(crate) async fn list_clusters(
    call: &Call<'_>,
    _request: ListClustersRequest,
) -> Result<ListClustersResponse, Status> {
    let about = &call.gateway.about;
    let cluster = ClusterMetadata {
        cluster_name: about.cluster_name.clone(),
        cluster_id: about.cluster_id.clone(),
        address: about.address.clone(),
        initial_failover_version: 1,
        history_shard_count: i32::try_from(about.partitions).unwrap_or(i32::MAX),
        is_connection_enabled: true,
        ..ClusterMetadata::default()
    };
    Ok(ListClustersResponse { clusters: vec![cluster], ..ListClustersResponse::default() })
}

pub(crate) async fn describe_namespace(
    call: &Call<'_>,
    request: DescribeNamespaceRequest,
) -> Result<DescribeNamespaceResponse, Status> {
    let namespaces = &call.gateway.namespaces;
    let namespace = match (request.namespace.as_str(), request.id.as_str()) {
        ("", id) if !id.is_empty() => {
            call.checks().length("Namespace", id)?;
            namespaces.find_id(id).map_err(|_unknown| namespace_not_found(id))?
        }
        (name, _) => namespaces.find_any(name, call.gateway.id_bytes_max())?,
    };
    Ok(description(call, &namespace))
}

fn description(call: &Call<'_>, namespace: &Namespace) -> DescribeNamespaceResponse {
    let record = &namespace.record;
    DescribeNamespaceResponse {
        namespace_info: Some(namespace_info(call, namespace)),
        config: Some(config(record)),
        replication_config: Some(replication(&call.gateway.about)),
        ..DescribeNamespaceResponse::default()
    }
}

fn namespace_info(call: &Call<'_>, namespace: &Namespace) -> NamespaceInfo {
    let (settings, record) = (&call.gateway.settings, &namespace.record);
    // What is not named here is not served. ShutdownWorker does end polls.
    let capabilities = NamespaceCapabilities {
        eager_workflow_start: true,
        sync_update: true,
        async_update: true,
        worker_poll_complete_on_shutdown: true,
        worker_heartbeats: true,
        reported_problems_search_attribute: true,
        workflow_pause: true,
        ..NamespaceCapabilities::default()
    };
    let limits = Limits {
        blob_size_limit_error: settings.blob_bytes_max,
        memo_size_limit_error: settings.memo_bytes_max,
        ..Limits::default()
    };
    NamespaceInfo {
        name: record.name.clone(),
        state: namespace.state().into(),
        description: record.description.clone(),
        owner_email: record.owner_email.clone(),
        data: record.data.clone(),
        id: record.id.clone(),
        capabilities: Some(capabilities),
        limits: Some(limits),
        supports_schedules: true,
    }
}

fn config(record: &NamespaceRecord) -> NamespaceConfig {
    NamespaceConfig {
        workflow_execution_retention_ttl: Some(proto_time::duration(record.retention_ms)),
        history_archival_state: ArchivalState::Disabled.into(),
        visibility_archival_state: ArchivalState::Disabled.into(),
        ..NamespaceConfig::default()
    }
}

fn replication(about: &About) -> NamespaceReplicationConfig {
    let cluster = ClusterReplicationConfig { cluster_name: about.cluster_name.clone(), ..Default::default() };
    NamespaceReplicationConfig {
        active_cluster_name: about.cluster_name.clone(),
        clusters: vec![cluster],
        state: ReplicationState::Normal.into(),
    }
}

/// The body of the page token of ListNamespaces.
#[derive(Clone, PartialEq, Message)]
struct NamespacesPageToken {
    /// The last name of the previous page.
    #[prost(string, tag = "1")]
    after: String,
}

pub(crate) async fn list_namespaces(
    call: &Call<'_>,
    request: ListNamespacesRequest,
) -> Result<ListNamespacesResponse, Status> {
    let token_signer = &call.gateway.token_signer;
    let after = match request.next_page_token.is_empty() {
        true => String::new(),
        false => {
            let mark: Option<NamespacesPageToken> =
                token_signer.open(Purpose::Namespaces, &[], &request.next_page_token);
            mark.ok_or_else(|| invalid("Invalid NextPageToken."))?.after
        }
    };
    let most = call.gateway.limits.namespace_page_max;
    let count = match usize::try_from(request.page_size) {
        Ok(0) | Err(_) => PAGE_DEFAULT.min(most),
        Ok(count) => count.min(most),
    };
    let (page, more) = call.gateway.namespaces.after(&after, count, |name| call.may_read(name));
    let next_page_token = match page.last() {
        Some(last) if more => token_signer.seal(
            Purpose::Namespaces,
            &[],
            &NamespacesPageToken { after: last.record.name.clone() },
        ),
        Some(_) | None => bytes::Bytes::new(),
    };
    let namespaces = page.iter().map(|namespace| description(call, namespace)).collect();
    Ok(ListNamespacesResponse { namespaces, next_page_token })
}

pub(crate) async fn register_namespace(
    call: &Call<'_>,
    request: RegisterNamespaceRequest,
) -> Result<RegisterNamespaceResponse, Status> {
    let id_bytes_max = call.gateway.id_bytes_max();
    if request.namespace.is_empty() {
        return Err(invalid("Namespace not set on request."));
    }
    if request.namespace.len() > id_bytes_max {
        return Err(invalid("Namespace length exceeds limit."));
    }
    namespace::check_new_name(&request.namespace)?;
    if request.namespace.eq_ignore_ascii_case(everlog_auth::SYSTEM) {
        return Err(invalid("The name stands for the cluster in grants of roles."));
    }
    let least_ms = if request.is_global_namespace { DAY_MS } else { 0 };
    let retention_ms = retention(call, request.workflow_execution_retention_period, least_ms)?;
    not_yet("is_global_namespace", request.is_global_namespace)?;
    not_yet("history_archival_state", is_archived(request.history_archival_state))?;
    not_yet("visibility_archival_state", is_archived(request.visibility_archival_state))?;
    let own = &call.gateway.about.cluster_name;
    let foreign = |name: &str| !name.is_empty() && name != own;
    not_yet("active_cluster_name of another cluster", foreign(&request.active_cluster_name))?;
    let elsewhere = request.clusters.iter().any(|cluster| foreign(&cluster.cluster_name));
    not_yet("clusters beyond this one", elsewhere)?;
    check_texts(call, &request.description, &request.owner_email, &request.data)?;
    let record = NamespaceRecord {
        id: random_ids::id(),
        name: request.namespace,
        description: request.description,
        owner_email: request.owner_email,
        data: request.data,
        retention_ms,
        search_attributes: BTreeMap::new(),
        is_deprecated: false,
    };
    call.gateway.namespaces.add(record).await?;
    Ok(RegisterNamespaceResponse::default())
}

fn retention(call: &Call<'_>, given: Option<prost_types::Duration>, least_ms: i64) -> Result<i64, Status> {
    let least_ms = least_ms.max(call.gateway.limits.retention_min_ms);
    let retention_ms = span_ms("retention", given).unwrap_or(0);
    if retention_ms < least_ms {
        return Err(invalid("A valid retention period is not set on request."));
    }
    Ok(retention_ms)
}

fn is_archived(state: i32) -> bool {
    state == i32::from(ArchivalState::Enabled)
}

fn check_texts(
    call: &Call<'_>,
    description: &str,
    owner_email: &str,
    data: &BTreeMap<String, String>,
) -> Result<(), Status> {
    let bytes = data.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    let bytes = bytes + description.len() + owner_email.len();
    if i64::try_from(bytes).is_ok_and(|bytes| bytes > call.gateway.settings.blob_bytes_max) {
        return Err(invalid("Blob data size exceeds limit."));
    }
    Ok(())
}

pub(crate) async fn update_namespace(
    call: &Call<'_>,
    request: UpdateNamespaceRequest,
) -> Result<UpdateNamespaceResponse, Status> {
    not_yet("promote_namespace", request.promote_namespace)?;
    not_yet("delete_bad_binary", !request.delete_bad_binary.is_empty())?;
    let own = &call.gateway.about.cluster_name;
    let foreign = |name: &str| !name.is_empty() && name != own;
    if let Some(replication) = &request.replication_config {
        let moves = foreign(&replication.active_cluster_name);
        let spreads = replication.clusters.iter().any(|cluster| foreign(&cluster.cluster_name));
        not_yet("replication_config beyond this cluster", moves || spreads)?;
    }
    let given = request.config.unwrap_or_default();
    not_yet("config.bad_binaries", given.bad_binaries.as_ref().is_some_and(|bad| !bad.binaries.is_empty()))?;
    not_yet("config.history_archival_state", is_archived(given.history_archival_state))?;
    not_yet("config.visibility_archival_state", is_archived(given.visibility_archival_state))?;
    not_yet("config.custom_search_attribute_aliases", !given.custom_search_attribute_aliases.is_empty())?;
    let retention_ms = match given.workflow_execution_retention_ttl {
        Some(given) => Some(retention(call, Some(given), 0)?),
        None => None,
    };
    let update = request.update_info.unwrap_or_default();
    let state = NamespaceState::try_from(update.state)
        .map_err(|_unknown| invalid("Invalid namespace state update."))?;
    not_yet("update_info.state DELETED", state == NamespaceState::Deleted)?;
    check_texts(call, &update.description, &update.owner_email, &update.data)?;
    let change = |record: &mut NamespaceRecord| {
        record.retention_ms = retention_ms.unwrap_or(record.retention_ms);
        if !update.description.is_empty() {
            record.description = update.description;
        }
        if !update.owner_email.is_empty() {
            record.owner_email = update.owner_email;
        }
        record.data.extend(update.data);
        if state == NamespaceState::Registered && record.is_deprecated {
            return Err(invalid("Invalid namespace state update."));
        }
        record.is_deprecated |= state == NamespaceState::Deprecated;
        Ok(())
    };
    let namespace =
        call.gateway.namespaces.try_update(&request.namespace, call.gateway.id_bytes_max(), change).await?;
    Ok(UpdateNamespaceResponse {
        namespace_info: Some(namespace_info(call, &namespace)),
        config: Some(config(&namespace.record)),
        replication_config: Some(replication(&call.gateway.about)),
        ..UpdateNamespaceResponse::default()
    })
}

/// Workflows that run in the namespace go on, and children and schedules start new ones.
pub(crate) async fn deprecate_namespace(
    call: &Call<'_>,
    request: DeprecateNamespaceRequest,
) -> Result<DeprecateNamespaceResponse, Status> {
    let change = |record: &mut NamespaceRecord| record.is_deprecated = true;
    call.gateway.namespaces.update(&request.namespace, call.gateway.id_bytes_max(), change).await?;
    Ok(DeprecateNamespaceResponse::default())
}
