//! `POST /v1/tokens`. The secret is drawn here and told once; a resend makes another token.

use hyper::StatusCode;
use ikada_api::convert::{FieldError, parse_name};
use ikada_api::state::limits::{TOKEN_NAMESPACES_MAX, TOKEN_TTL_MS_MAX};
use ikada_api::state::{
    AddToken, Command, Digest, Namespace, Order, PrincipalName, Role, SecretDigest,
};
use ikada_api::v1::{NewToken, TokenMade};

use crate::auth::{CERTIFICATE_NAME, S3_NAME, TokenText, digest, draw_s3_key, s3_secret};
use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};
use crate::http::tasks::{Item, write};

/// Life of a token whose maker does not say.
const TTL_MS_DEFAULT: u64 = 30 * 24 * 60 * 60 * 1000;

pub(in crate::http) async fn create<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let wanted: NewToken = read_document(context, body)?;
    let token = TokenText::draw().map_err(|error| {
        tracing::error!(%error, "no randomness for a token");
        problems::internal()
    })?;
    let mut add = read_order(&wanted, &token).map_err(|error| problems::bad_field(&error))?;
    let mut text = token.reveal().reveal().to_owned();
    if let Some(certificate) = &wanted.certificate {
        add.digest = read_digest(certificate).map_err(|error| problems::bad_field(&error))?;
        text = String::new();
    }
    if wanted.s3 {
        add.digest = draw_s3_key().map_err(|_| problems::internal())?;
        text = s3_secret(&add.digest);
    }
    let id = token.id.to_string();
    context.subject.is(|| format!("{id} {} {}", add.role.as_str(), add.name));
    let order =
        Order { namespace: Namespace::default(), request: None, command: Command::AddToken(add) };
    let item = Item { id: id.clone(), order: Ok(order) };
    let written = write(app, context, vec![item], None).await?;
    let (_, positions) = written.only()?;
    app.refresh_tokens().await;
    let made = TokenMade { token: text, id };
    let mut response = show_document(context, StatusCode::CREATED, &made)?;
    add_positions(&mut response, &positions);
    Ok(response)
}

/// The digest of a certificate.
fn read_digest(text: &str) -> Result<SecretDigest, FieldError> {
    let rule = "must be the digest of a certificate: 64 hex digits in lower case";
    let digest = Digest::parse(text).ok_or_else(|| FieldError::bad_value("certificate", rule))?;
    Ok(SecretDigest(digest.0))
}

fn read_order(wanted: &NewToken, token: &TokenText) -> Result<AddToken, FieldError> {
    let role = Role::parse(&wanted.role).ok_or_else(|| {
        let names: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
        FieldError::bad_value("role", format!("must be one of {}", names.join(", ")))
    })?;
    if wanted.namespaces.len() > TOKEN_NAMESPACES_MAX {
        let detail = format!("must name at most {TOKEN_NAMESPACES_MAX} namespaces");
        return Err(FieldError::bad_value("namespaces", detail));
    }
    let ttl_ms = wanted.ttl_ms.unwrap_or(TTL_MS_DEFAULT);
    if ttl_ms > TOKEN_TTL_MS_MAX {
        return Err(FieldError::bad_value("ttl_ms", format!("must be at most {TOKEN_TTL_MS_MAX}")));
    }
    let mut namespaces = Vec::new();
    for (position, text) in wanted.namespaces.iter().enumerate() {
        namespaces.push(parse_name(&format!("namespaces[{position}]"), text, Namespace::parse)?);
    }
    // None of its calls can say which one it means.
    if wanted.s3 && namespaces.len() > 1 {
        let detail = "a key of the S3 door works in one namespace; make a key for each";
        return Err(FieldError::bad_value("namespaces", detail));
    }
    let name = match (wanted.s3, &wanted.certificate) {
        (true, Some(_)) => {
            let detail = "a certificate is no key of the S3 door; make one of the two";
            return Err(FieldError::bad_value("certificate", detail));
        }
        (true, None) => format!("{S3_NAME}{}", wanted.name),
        (false, Some(_)) => format!("{CERTIFICATE_NAME}{}", wanted.name),
        (false, None) => wanted.name.clone(),
    };
    let plain = !wanted.s3 && wanted.certificate.is_none();
    if plain && (name.starts_with(S3_NAME) || name.starts_with(CERTIFICATE_NAME)) {
        let detail = format!(
            "names that begin with {S3_NAME} or {CERTIFICATE_NAME} are those of S3 keys and certificates"
        );
        return Err(FieldError::bad_value("name", detail));
    }
    Ok(AddToken {
        id: token.id.clone(),
        name: parse_name("name", &name, PrincipalName::parse)?,
        digest: digest(&token.secret),
        role,
        namespaces,
        ttl_ms,
        first: false,
    })
}
