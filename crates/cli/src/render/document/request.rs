//! Requests and what became of them.

use ikada_api::v1::RequestInfo;

use super::{Document, Grid, or_dash, pretty};
use crate::render::time::moment;

impl Document for RequestInfo {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let outcome = self.outcome.and_then(|outcome| serde_json::to_value(outcome).ok());
        let outcome = outcome.as_ref().and_then(|word| word.as_str()).map(str::to_owned);
        let facts = [
            ("request", self.request.clone()),
            ("item", self.item.to_string()),
            ("status", self.status.as_str().to_owned()),
            ("outcome", or_dash(outcome)),
            ("tasks changed", or_dash(self.count)),
            ("applied", or_dash(self.applied_ms.map(moment))),
            ("voided", or_dash(self.voided_ms.map(moment))),
            ("problem", or_dash(self.problem.as_ref())),
        ];
        let rows = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        vec![Grid { headings: &["field", "value"], rows }]
    }

    fn names(&self) -> Vec<String> {
        vec![self.status.as_str().to_owned()]
    }
}
