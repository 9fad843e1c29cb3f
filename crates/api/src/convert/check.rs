//! Bounds of single values, so that a refusal can name the field. The state checks again.

use std::collections::BTreeMap;

use ikada_state::limits::{KEY_LIMIT_MAX, TIMEOUT_MS_MAX};
use ikada_state::{Backoff, Label, Labels, Limits};
use serde_json::value::RawValue;

use super::field::{FieldError, parse_name};
use crate::v1::{BackoffBody, Body, RawBytes};

/// The last moment that a task may name: the end of the year 2199.
const MOMENT_MS_MAX: u64 = 7_258_118_400_000 - 1;

pub(super) fn read_body(
    field: &str,
    json: Option<&RawValue>,
    base64: Option<&str>,
    bytes: Option<&RawBytes>,
) -> Result<Vec<u8>, FieldError> {
    Body::bytes(json, base64, bytes)
        .map_err(|error| FieldError::bad_value(format!("{field}_base64"), error.to_string()))
}

/// The field by which a body was given.
pub(super) fn given_as(field: &str, json: Option<&RawValue>, base64: Option<&str>) -> String {
    match (json, base64) {
        (Some(_), _) => field.to_owned(),
        (None, Some(_)) => format!("{field}_base64"),
        (None, None) => format!("{field}_bytes"),
    }
}

pub(super) fn check_size(field: &str, bytes: usize, bytes_max: u32) -> Result<(), FieldError> {
    if bytes > bytes_max as usize {
        let detail = format!("has {bytes} bytes, at most {bytes_max} are allowed");
        return Err(FieldError::too_large(field, detail));
    }
    Ok(())
}

pub(super) fn check_delay(delay_ms: Option<u64>, limits: &Limits) -> Result<(), FieldError> {
    match delay_ms {
        Some(delay_ms) if delay_ms > limits.delay_ms_max => Err(FieldError::bad_value(
            "delay_ms",
            format!("must be at most {}", limits.delay_ms_max),
        )),
        _ => Ok(()),
    }
}

/// A moment, in ms since 1970. What lies further off than [`MOMENT_MS_MAX`] is another unit, or a mistake: such a task would
/// wait for ever.
pub(super) fn check_moment(field: &str, at_ms: Option<u64>) -> Result<(), FieldError> {
    match at_ms {
        Some(at_ms) if at_ms > MOMENT_MS_MAX => {
            let detail = format!("is in ms since 1970 and must be at most {MOMENT_MS_MAX}");
            Err(FieldError::bad_value(field, detail))
        }
        _ => Ok(()),
    }
}

pub(super) fn check_retention(
    field: &str,
    retention_ms: Option<u64>,
    limits: &Limits,
) -> Result<(), FieldError> {
    match retention_ms {
        Some(retention_ms) if retention_ms > limits.delay_ms_max => {
            let detail = format!("must be at most {}", limits.delay_ms_max);
            Err(FieldError::bad_value(field, detail))
        }
        _ => Ok(()),
    }
}

pub(super) fn check_attempts(max_attempts: Option<u16>, limits: &Limits) -> Result<(), FieldError> {
    match max_attempts {
        Some(count) if !(1..=limits.attempts_max).contains(&count) => Err(FieldError::bad_value(
            "max_attempts",
            format!("must be 1 to {}", limits.attempts_max),
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_ttl(ttl_ms: Option<u32>, limits: &Limits) -> Result<(), FieldError> {
    match ttl_ms {
        Some(ttl_ms) if !(limits.ttl_ms_min..=limits.ttl_ms_max).contains(&ttl_ms) => {
            let detail = format!("must be {} to {}", limits.ttl_ms_min, limits.ttl_ms_max);
            Err(FieldError::bad_value("ttl_ms", detail))
        }
        _ => Ok(()),
    }
}

pub(super) fn read_backoff(backoff: BackoffBody) -> Result<Backoff, FieldError> {
    if backoff.base_ms > backoff.cap_ms {
        return Err(FieldError::bad_value("backoff.cap_ms", "must not be less than base_ms"));
    }
    Ok(Backoff { base_ms: backoff.base_ms, cap_ms: backoff.cap_ms })
}

pub(super) fn check_at_most(
    field: &str,
    value: Option<u32>,
    value_max: u32,
) -> Result<(), FieldError> {
    match value {
        Some(value) if value > value_max => {
            Err(FieldError::bad_value(field, format!("must be at most {value_max}")))
        }
        _ => Ok(()),
    }
}

pub(super) fn check_timeout(timeout_ms: Option<u32>) -> Result<(), FieldError> {
    match timeout_ms {
        Some(timeout_ms) if timeout_ms > TIMEOUT_MS_MAX => {
            let detail = format!("must be at most {TIMEOUT_MS_MAX}");
            Err(FieldError::bad_value("timeout_ms", detail))
        }
        _ => Ok(()),
    }
}

pub(super) fn check_deadline_in(
    deadline_in_ms: Option<u64>,
    limits: &Limits,
) -> Result<(), FieldError> {
    match deadline_in_ms {
        Some(in_ms) if in_ms > limits.delay_ms_max => {
            let detail = format!("must be at most {}", limits.delay_ms_max);
            Err(FieldError::bad_value("deadline_in_ms", detail))
        }
        _ => Ok(()),
    }
}

pub(super) fn check_key_limit(key_limit: Option<u16>) -> Result<(), FieldError> {
    match key_limit {
        Some(limit) if limit > KEY_LIMIT_MAX => {
            let detail = format!("must be at most {KEY_LIMIT_MAX}; 0 is no limit");
            Err(FieldError::bad_value("key_limit", detail))
        }
        _ => Ok(()),
    }
}

pub(super) fn read_labels(
    labels: &BTreeMap<String, String>,
    count_max: usize,
) -> Result<Labels, FieldError> {
    if labels.len() > count_max {
        let detail = format!("has {} labels, at most {count_max} are allowed", labels.len());
        return Err(FieldError::too_large("labels", detail));
    }
    let mut pairs = Vec::with_capacity(labels.len());
    for (name, value) in labels {
        let field = format!("labels.{}", name.chars().take(64).collect::<String>());
        let name = parse_name(&field, name, Label::parse)?;
        pairs.push((name, parse_name(&field, value, Label::parse)?));
    }
    Labels::new(pairs).ok_or_else(|| FieldError::bad_value("labels", "a label is named twice"))
}
