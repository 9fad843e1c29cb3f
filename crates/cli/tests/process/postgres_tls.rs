//! A database that takes connections by TLS alone: nodes start over it, and are refused without it (X20).

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::cluster::Cluster;
use crate::fresh::{ikada, refusal};
use crate::server::Server;
use crate::work::{check_all_there, write_all};

/// Makes an authority, has it sign the server's certificate, and lets nodes in by TLS alone. Gives the authority's file.
fn protect(server: &mut Server) -> PathBuf {
    let mut params = CertificateParams::new(Vec::new()).expect("names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let pem = params.self_signed(&key).expect("signed").pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("names");
    let certificate = params.signed_by(&key, &issuer).expect("signed");
    let data = PathBuf::from(server.sql("SHOW data_directory"));
    let owner = std::fs::metadata(&data).expect("the folder");
    let doors = "host all ikada 127.0.0.1/32 trust\nhostssl all node 127.0.0.1/32 trust\n";
    for (name, text) in [
        ("server.crt", certificate.pem()),
        ("server.key", key.serialize_pem()),
        ("pg_hba.conf", doors.to_owned()),
    ] {
        let path = data.join(name);
        std::fs::write(&path, text).expect("written");
        chown(&path, Some(owner.uid()), Some(owner.gid())).expect("its owner");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    }
    server.sql("CREATE ROLE node LOGIN SUPERUSER");
    server.sql("ALTER SYSTEM SET ssl = on");
    server.stop();
    server.resume();
    let file = server.folder().join("authority.pem");
    std::fs::write(&file, pem).expect("written");
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_20_nodes_start_over_tls_where_the_database_demands_it() {
    let Some(mut cluster) = Cluster::prepare_in_postgres(2) else { return };
    let server = cluster.database.as_mut().expect("a database");
    let file = protect(server);
    let plain = server.url().replace("ikada@", "node@");
    let by_name = plain.replace("127.0.0.1", "localhost");
    let url = format!("{by_name}?sslmode=verify-full&sslrootcert={}", file.display());
    cluster.log_urls = (1..=3).map(|id| (id, plain.clone())).collect();
    let said = refusal(&mut cluster.command(1, ikada()));
    assert!(said.contains("no encryption") || said.contains("pg_hba"), "{said}");
    cluster.log_urls = (1..=3).map(|id| (id, url.clone())).collect();
    for id in 1..=3 {
        cluster.launch(id);
    }
    cluster.settle().await;
    let acked = write_all(&cluster.client(), "guarded", 10).await;
    let open = "SELECT count(*) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)
        WHERE application_name = 'ikada' AND NOT ssl";
    let server = cluster.database.as_ref().expect("a database");
    assert_eq!(server.sql(open), "0", "nothing goes in the open");
    check_all_there(&cluster.client(), &acked).await;
}
