//! Pages of items.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::super::sampling::check_range;
use crate::{Error, json};

/// Which items of a list are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Those after the item with this id, in the order asked for.
    after: Option<String>,
    limit: usize,
    is_oldest_first: bool,
}

/// Some items of a list.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = responses::ItemList)]
pub struct ItemList {
    object: ListObject,
    data: Vec<Value>,
    /// Empty when there are no items.
    first_id: String,
    last_id: String,
    /// True if there are items after the last of these.
    has_more: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = responses::ListObject)]
enum ListObject {
    List,
}

impl Page {
    /// Reads the query; `field` gives a field's value. Newest first unless told otherwise.
    pub fn read(field: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        // A name without a value is left out.
        let field = |name| field(name).filter(|text| !text.is_empty());
        let limit = match field("limit") {
            None => 20,
            Some(text) => {
                let limit: i64 = json::query_value("limit", &text)?;
                check_range("limit", Some(limit), 1..=100)?.unwrap_or(limit)
            }
        };
        let is_oldest_first = match field("order").as_deref() {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(other) => {
                let message = format!("order is asc or desc, not `{other}`");
                return Err(Error::invalid("order", message));
            }
        };
        Ok(Self {
            after: field("after"),
            limit: usize::try_from(limit).unwrap_or(1),
            is_oldest_first,
        })
    }

    /// The page of `items`, which are the oldest first.
    pub fn of<'a>(
        &self,
        items: impl DoubleEndedIterator<Item = &'a Value>,
    ) -> Result<ItemList, Error> {
        let ordered: Vec<&Value> = if self.is_oldest_first {
            items.collect()
        } else {
            items.rev().collect()
        };
        let start = match &self.after {
            None => 0,
            Some(after) => {
                let found = ordered.iter().position(|item| id(item) == after);
                found.map(|place| place + 1).ok_or_else(|| Error::NotKept {
                    kind: "item",
                    id: after.clone(),
                    param: Some("after".into()),
                })?
            }
        };
        let rest = &ordered[start..];
        let data: Vec<Value> = rest
            .iter()
            .take(self.limit)
            .map(|&item| item.clone())
            .collect();
        Ok(ItemList {
            has_more: rest.len() > data.len(),
            ..ItemList::whole(data)
        })
    }
}

impl ItemList {
    /// All there is.
    pub fn whole(data: Vec<Value>) -> Self {
        let id_of = |item: Option<&Value>| item.map(id).unwrap_or_default().to_owned();
        Self {
            object: ListObject::List,
            first_id: id_of(data.first()),
            last_id: id_of(data.last()),
            has_more: false,
            data,
        }
    }
}

fn id(item: &Value) -> &str {
    item.get("id").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(query: &[(&str, &str)]) -> Result<Page, Error> {
        Page::read(|name| {
            let found = query.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn ids(query: &[(&str, &str)]) -> (Vec<String>, bool) {
        let items: Vec<Value> = ["a", "b", "c", "d"].map(|id| json!({"id": id})).into();
        let list = page(query).unwrap().of(items.iter()).unwrap();
        let ids: Vec<String> = list.data.iter().map(|item| id(item).to_owned()).collect();
        assert_eq!(list.first_id, ids.first().cloned().unwrap_or_default());
        assert_eq!(list.last_id, ids.last().cloned().unwrap_or_default());
        (ids, list.has_more)
    }

    #[test]
    fn pages_follow_each_other_in_both_orders() {
        let owned = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect::<Vec<_>>();
        for (order, first, second) in [
            ("asc", ["a", "b", "c"], "d"),
            ("desc", ["d", "c", "b"], "a"),
        ] {
            let page = ids(&[("order", order), ("limit", "3")]);
            assert_eq!(page, (owned(&first), true));
            let page = ids(&[("order", order), ("after", first[2])]);
            assert_eq!(page, (owned(&[second]), false));
        }
        assert_eq!(ids(&[]).0, ["d", "c", "b", "a"]);
        assert_eq!(ids(&[("after", "a")]), (vec![], false));
    }

    #[test]
    fn a_query_is_read_as_clients_write_it() {
        assert_eq!(page(&[("limit", "3.0")]), page(&[("limit", "3")]));
        assert_eq!(page(&[("limit", ""), ("order", "")]), page(&[]));
    }

    #[test]
    fn nonsense_is_named() {
        for (name, value) in [
            ("limit", "0"),
            ("limit", "101"),
            ("limit", "-1"),
            ("limit", "many"),
            ("order", "random"),
        ] {
            let error = page(&[(name, value)]).unwrap_err();
            assert!(
                matches!(&error, Error::Invalid { param: Some(param), .. } if param == name),
                "{error:?}"
            );
        }
        let items = [json!({"id": "a"})];
        let error = page(&[("after", "z")])
            .unwrap()
            .of(items.iter())
            .unwrap_err();
        assert!(matches!(error, Error::NotKept { id, .. } if id == "z"));
    }
}
