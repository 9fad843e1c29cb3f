//! URLs that were typed as flags: a password in one is read by every user of the machine, in the list of processes.

use crate::failure::Failure;

/// Refuses a database's URL that brings a password. The words never repeat it.
pub(crate) fn without_password(flag: &str, url: &str, elsewhere: &str) -> Result<(), Failure> {
    if !tells_password(url) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{flag} tells a password, which everybody on this machine can read in the list of processes: leave it out of the \
         URL and put it into the variable PGPASSWORD{elsewhere}; and change it, since it was shown"
    )))
}

/// Whether there is one, however the URL is broken otherwise.
fn tells_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let in_user = rest.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let named = query.split('&').any(|pair| {
        pair.split_once('=').is_some_and(|(name, _)| name.eq_ignore_ascii_case("password"))
    });
    in_user || named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_20_a_password_in_a_typed_url_is_refused_in_words_without_it() {
        for url in [
            "postgres://ann:CANARY@db/jobs",
            "postgres://ann:CANARY@db:5432/jobs?sslmode=disable",
            "postgres://ann:CAN@ARY@db/jobs",
            "postgres://ann:CAN?ARY@db/jobs",
            "postgres://ann:@db/jobs",
            "postgres://ann@db/jobs?password=CANARY",
            "postgres://db/jobs?user=ann&Password=CANARY",
            "ann:CANARY@db",
        ] {
            let refused = without_password("--log", url, "").expect_err(url);
            let said = format!("{refused:?}");
            assert!(said.contains("PGPASSWORD") && !said.contains("CAN"), "{said}");
        }
        for url in [
            "postgres://ann@db/jobs",
            "postgres://ann@db:5432,other:5433/jobs?sslmode=disable",
            "postgres://db:5432/jobs?options=-csearch_path%3Dfresh",
            "postgres://ann@[::1]:5432/jobs",
        ] {
            without_password("--log", url, "").expect(url);
        }
    }
}
