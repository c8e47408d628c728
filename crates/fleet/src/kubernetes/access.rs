//! What a pool needs to be allowed to do: exactly the verbs that are used, asked for before the Job is created.

use serde_json::{Deserializer, Value, json};

use crate::protocol::Trouble;

/// A verb on a resource of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NeededAccess {
    pub group: &'static str,
    pub resource: &'static str,
    pub subresource: &'static str,
    pub verb: &'static str,
}

/// Everything that is used. `exec` over WebSocket is a GET that 1.35 and later check as `create`, too; before that, SPDY used POST.
pub(crate) const NEEDED: &[NeededAccess] = &[
    access("batch", "jobs", "", "create"),
    access("batch", "jobs", "", "delete"),
    access("", "pods", "", "get"),
    access("", "pods", "", "list"),
    access("", "pods", "exec", "create"),
    access("", "pods", "exec", "get"),
    access("", "events", "", "list"),
];

/// What a monitor of pods lists. Without the second one there are events only, or usage of the kubelets, whose verb allows far more.
pub(crate) const NEEDED_FOR_PODS: &[NeededAccess] =
    &[access("", "pods", "", "list"), access("metrics.k8s.io", "pods", "", "list")];

/// What a monitor of nodes lists.
pub(crate) const NEEDED_FOR_NODES: &[NeededAccess] = &[access("metrics.k8s.io", "nodes", "", "list")];

const fn access(
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    verb: &'static str,
) -> NeededAccess {
    NeededAccess { group, resource, subresource, verb }
}

impl NeededAccess {
    /// The resource as Roles name it.
    pub(crate) fn full_resource(self) -> String {
        match self.subresource {
            "" => self.resource.to_owned(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }
}

/// A list of questions, for `kubectl create`.
pub(crate) fn questions(namespace: &str) -> Value {
    let question = |access: &NeededAccess| {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "namespace": namespace,
                "group": access.group,
                "resource": access.resource,
                "subresource": access.subresource,
                "verb": access.verb,
            } },
        })
    };
    json!({ "apiVersion": "v1", "kind": "List", "items": NEEDED.iter().map(question).collect::<Vec<_>>() })
}

/// What is not allowed, of the answers that `kubectl create -o json` prints.
pub(crate) fn denied(answers: &[u8]) -> Vec<NeededAccess> {
    let objects = Deserializer::from_slice(answers).into_iter::<Value>().map_while(Result::ok);
    let reviews: Vec<Value> = objects
        .flat_map(|object| match object.get("items").and_then(Value::as_array) {
            Some(items) => items.clone(),
            None => vec![object],
        })
        .collect();
    let is_allowed = |access: &&NeededAccess| {
        reviews.iter().any(|review| {
            let asked = &review["spec"]["resourceAttributes"];
            let is = |name: &str, value: &str| asked[name].as_str().unwrap_or_default() == value;
            is("group", access.group)
                && is("resource", access.resource)
                && is("subresource", access.subresource)
                && is("verb", access.verb)
                && review["status"]["allowed"].as_bool() == Some(true)
        })
    };
    NEEDED.iter().filter(|access| !is_allowed(access)).copied().collect()
}

/// Names all that is missing.
pub(crate) fn trouble(denied: &[NeededAccess], namespace: &str) -> Trouble {
    let names: Vec<String> =
        denied.iter().map(|access| format!("`{} {}`", access.verb, access.full_resource())).collect();
    Trouble::new(
        format!("in namespace `{namespace}` this user may not {}", names.join(", ")),
        "`squall plan manifests PLAN` prints the Role that is needed: have it created and bound to this user",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(denied: Option<&NeededAccess>) -> String {
        let mut list = questions("load");
        let items = list["items"].as_array_mut().unwrap();
        for (item, access) in items.iter_mut().zip(NEEDED) {
            item["status"] = json!({ "allowed": denied != Some(access) });
            // The API server leaves empty fields out.
            let asked = item["spec"]["resourceAttributes"].as_object_mut().unwrap();
            asked.retain(|_, value| value != "");
        }
        items.iter().map(|item| format!("{item:#}\n")).collect()
    }

    #[test]
    fn the_verb_that_is_missing_is_named() {
        assert_eq!(denied(answers(None).as_bytes()), []);
        for access in NEEDED {
            assert_eq!(denied(answers(Some(access)).as_bytes()), [*access]);
        }
        assert_eq!(denied(b"no json").len(), NEEDED.len());
        let trouble = trouble(&[NEEDED[4]], "load");
        assert!(trouble.message.contains("`create pods/exec`"), "{trouble:?}");
    }
}
