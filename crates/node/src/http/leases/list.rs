//! `GET /v1/leases`.

use ikada_api::convert::{parse_name, show_lease};
use ikada_api::state::LeaseName;
use ikada_api::v1::LeasePage;
use ikada_replica::call::{Query, View};

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

/// Most leases on a page.
const LIMIT_MAX: usize = 1_000;
/// Leases on a page when the caller does not say.
const LIMIT_DEFAULT: usize = 100;

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let rule = "must be 1 to 1000";
    let limit: usize = context.query_as("limit", rule)?.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        let error = ikada_api::convert::FieldError::bad_value("limit", rule);
        return Err(problems::bad_field(&error).into());
    }
    let after = context.query("after").map(|text| parse_name("after", text, LeaseName::parse));
    let after = after.transpose().map_err(|error| problems::bad_field(&error))?;
    // One more tells whether there is another page.
    let query = Query::Leases { namespace: context.namespace.clone(), after, limit: limit + 1 };
    let seen = read(app, context, query).await?;
    let View::Leases(all) = &seen.view else {
        return Err(mismatch("list leases"));
    };
    let leases: Vec<_> =
        all.iter().take(limit).map(|lease| show_lease(lease.name.as_str(), Some(lease))).collect();
    let next = if all.len() > limit { leases.last().map(|lease| lease.name.clone()) } else { None };
    show_view(context, &seen, &LeasePage { leases, next })
}
