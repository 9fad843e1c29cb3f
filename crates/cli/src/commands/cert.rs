//! `ikada auth cert create|list|revoke`. The key is made here and leaves this machine by nobody but its owner; the cluster
//! learns a digest of the certificate.

use std::time::{Duration, SystemTime};

use ikada_api::Client;
use ikada_api::state::{Digest, PrincipalName, Role};
use ikada_api::v1::NewToken;
use ikada_node::auth::CERTIFICATE_NAME;
use ikada_node::tls::{ClientName, ClientPapers};

use super::join_token::{failed, open_authority};
use crate::args::{CertCommand, CertCreateArgs};
use crate::failure::Failure;
use crate::render::{ClientCertificate, Screen};

const DAY_S: u64 = 24 * 60 * 60;

pub(super) async fn cert(
    client: &Client,
    command: CertCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    match command {
        CertCommand::Create(args) => screen.show(&create(client, args).await?),
        CertCommand::List => {
            let mut page = client.tokens().await?;
            page.tokens.retain(|token| token.name.starts_with(CERTIFICATE_NAME));
            screen.show(&page)
        }
        CertCommand::Revoke(args) => {
            let name = format!("{CERTIFICATE_NAME}{}", args.name);
            let mut page = client.tokens().await?;
            page.tokens.retain(|token| token.name == name);
            if page.tokens.is_empty() {
                let message = format!("there is no certificate of {:?}", args.name);
                return Err(Failure::Refused { message, next: None });
            }
            for token in &page.tokens {
                client.revoke_token(&token.id).await?;
            }
            screen.show(&page)
        }
    }
}

async fn create(client: &Client, args: CertCreateArgs) -> Result<ClientCertificate, Failure> {
    let (papers, authority) = open_authority(&args.authority.data)?;
    let role = Role::parse(&args.role).ok_or_else(|| {
        Failure::usage("--role must be admin, operator, submitter, worker or viewer")
    })?;
    let name = PrincipalName::parse(&args.name)
        .map_err(|error| Failure::usage(format!("--name: {error}")))?;
    let cluster = authority.cluster();
    let life = Duration::from_secs(args.days * DAY_S);
    let name = ClientName { cluster, role, name };
    let made = ClientPapers::make(&authority, &name, SystemTime::now() + life).map_err(failed)?;
    // Recorded before it is written: a file that nobody knows would only puzzle its owner.
    let wanted = NewToken {
        name: args.name.clone(),
        role: args.role,
        namespaces: args.namespaces,
        ttl_ms: Some(args.days * DAY_S * 1000),
        s3: false,
        certificate: Some(Digest(made.digest.0).to_string()),
    };
    let recorded = client.create_token(&wanted).await?;
    let (certificate, key) = made.store(&args.out, &args.name, &papers).map_err(failed)?;
    Ok(ClientCertificate {
        id: recorded.id,
        name: name.to_string(),
        certificate: certificate.display().to_string(),
        key: key.display().to_string(),
    })
}
