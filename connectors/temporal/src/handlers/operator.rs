//! OperatorService: search attributes, and the deletion of a namespace.

use everlog_temporal_api::enums::IndexedValueType as Type;
use everlog_temporal_api::operatorservice::{
    AddSearchAttributesRequest, AddSearchAttributesResponse, DeleteNamespaceRequest, DeleteNamespaceResponse,
    ListSearchAttributesRequest, ListSearchAttributesResponse, RemoveSearchAttributesRequest,
    RemoveSearchAttributesResponse,
};
use everlog_temporal_api::workflowservice::{GetSearchAttributesRequest, GetSearchAttributesResponse};
use tonic::Status;

use crate::codec::status::invalid;
use crate::namespaces::namespace::NamespaceRecord;
use crate::namespaces::search_attributes::{self, OF_A_TYPE_MAX, type_name};
use crate::server::call::Call;

/// The namespace takes no calls when this returns, on this node, and a moment later on all nodes. The partitions delete its runs one
/// after another.
pub(crate) async fn delete_namespace(
    call: &Call<'_>,
    request: DeleteNamespaceRequest,
) -> Result<DeleteNamespaceResponse, Status> {
    let gateway = call.gateway;
    let namespace = match (request.namespace.as_str(), request.namespace_id.as_str()) {
        (name, "") => gateway.namespaces.find_any(name, gateway.id_bytes_max())?,
        ("", id) => {
            call.checks().length("Namespace", id)?;
            gateway.namespaces.find_id(id)?
        }
        _both => return Err(invalid("Only one of namespace name or Id should be set on request.")),
    };
    let deleted_namespace = gateway.namespaces.delete(&namespace.record.id).await?;
    gateway.task_queues.remove_namespace(&namespace.record.id).await?;
    Ok(DeleteNamespaceResponse { deleted_namespace })
}

/// The namespace has them when this returns, on this node, and a moment later on all nodes. Existing ones keep their types.
pub(crate) async fn add_search_attributes(
    call: &Call<'_>,
    request: AddSearchAttributesRequest,
) -> Result<AddSearchAttributesResponse, Status> {
    is_named(&request.namespace)?;
    if request.search_attributes.is_empty() {
        return Err(invalid("SearchAttributes are not set on request."));
    }
    let mut wanted = Vec::new();
    for (name, number) in request.search_attributes {
        call.checks().id("SearchAttribute", &name)?;
        if search_attributes::is_reserved(&name) {
            return Err(invalid(format!("Search attribute {name} is reserved by system.")));
        }
        let r#type = Type::try_from(number).ok().filter(|r#type| *r#type != Type::Unspecified);
        let unknown = || invalid(format!("Unknown search attribute type: {number}."));
        wanted.push((name, r#type.ok_or_else(unknown)?));
    }
    let change = |record: &mut NamespaceRecord| {
        wanted.into_iter().try_for_each(|(name, r#type)| keep(record, name, r#type))
    };
    let gateway = call.gateway;
    gateway.namespaces.try_update(&request.namespace, gateway.id_bytes_max(), change).await?;
    Ok(AddSearchAttributesResponse::default())
}

fn keep(record: &mut NamespaceRecord, name: String, r#type: Type) -> Result<(), Status> {
    let number = i32::from(r#type);
    let others = record.search_attributes.values().filter(|other| **other == number).count();
    if !record.search_attributes.contains_key(&name) && others >= OF_A_TYPE_MAX {
        return Err(invalid(format!(
            "Unable to create search attributes: cannot have more than {OF_A_TYPE_MAX} search attribute of type {}.",
            type_name(r#type)
        )));
    }
    record.search_attributes.entry(name).or_insert(number);
    Ok(())
}

/// Runs keep their values.
pub(crate) async fn remove_search_attributes(
    call: &Call<'_>,
    request: RemoveSearchAttributesRequest,
) -> Result<RemoveSearchAttributesResponse, Status> {
    is_named(&request.namespace)?;
    if request.search_attributes.is_empty() {
        return Err(invalid("SearchAttributes are not set on request."));
    }
    if let Some(name) = request.search_attributes.iter().find(|name| search_attributes::is_there_always(name))
    {
        return Err(invalid(format!("Unable to remove non-custom search attributes: {name}.")));
    }
    let change = |record: &mut NamespaceRecord| {
        for name in &request.search_attributes {
            record.search_attributes.remove(name);
        }
    };
    let gateway = call.gateway;
    gateway.namespaces.update(&request.namespace, gateway.id_bytes_max(), change).await?;
    Ok(RemoveSearchAttributesResponse::default())
}

pub(crate) async fn list_search_attributes(
    call: &Call<'_>,
    request: ListSearchAttributesRequest,
) -> Result<ListSearchAttributesResponse, Status> {
    is_named(&request.namespace)?;
    let gateway = call.gateway;
    let namespace = gateway.namespaces.find(&request.namespace, gateway.id_bytes_max())?;
    Ok(ListSearchAttributesResponse {
        custom_attributes: namespace.record.search_attributes.clone(),
        system_attributes: search_attributes::everywhere().collect(),
        ..ListSearchAttributesResponse::default()
    })
}

/// The attributes of every namespace, because the request names none.
pub(crate) async fn everywhere(
    _call: &Call<'_>,
    _request: GetSearchAttributesRequest,
) -> Result<GetSearchAttributesResponse, Status> {
    Ok(GetSearchAttributesResponse { keys: search_attributes::everywhere().collect() })
}

fn is_named(namespace: &str) -> Result<(), Status> {
    if namespace.is_empty() {
        return Err(invalid("Namespace is not set on request."));
    }
    Ok(())
}
