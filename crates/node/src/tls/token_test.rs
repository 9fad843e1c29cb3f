//! Tokens that are made, spent and revoked, and ids that belong to their keys (X3).

use super::*;
use crate::tls::Authority;

fn opened(folder: &Path) -> (JoinTokens, String) {
    let (_, pem, _) = Authority::make(7).unwrap();
    (JoinTokens::open(folder).unwrap(), pem)
}

#[test]
fn x_3_a_token_is_spent_revoked_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (mut tokens, pem) = opened(folder.path());
    let token = tokens.create(&pem, JoinRole::Node, 1, Some(1_000), None).unwrap();
    let now_ms = wall_ms();
    let mut spend = |token: &JoinToken, node, key: &[u8], now_ms| {
        tokens.spend(&token.id, &token.secret, node, key, now_ms).unwrap().is_ok()
    };
    let forged = JoinToken { secret: Secret::draw().unwrap(), ..token.clone() };
    assert!(!spend(&forged, 2, b"k", now_ms), "wrong secret");
    assert!(!spend(&token, 2, b"k", now_ms + 10_000), "ended");
    assert!(spend(&token, 2, b"k", now_ms));
    assert!(spend(&token, 2, b"k", now_ms), "a lost answer is asked for again");
    assert!(!spend(&token, 2, b"other", now_ms), "the id is taken");
    assert!(!spend(&token, 3, b"k3", now_ms), "used up");
    let second = tokens.create(&pem, JoinRole::Node, 5, None, None).unwrap();
    assert!(tokens.revoke(&second.id).unwrap() && !tokens.revoke(&second.id).unwrap());
    assert!(tokens.spend(&second.id, &second.secret, 9, b"k9", now_ms).unwrap().is_err());
}

// Which wish was refused is told to whoever runs the cluster, and why.
#[test]
fn x_3_every_refusal_has_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (mut tokens, pem) = opened(folder.path());
    let any = tokens.create(&pem, JoinRole::Node, 1, Some(1_000), None).unwrap();
    let own = tokens.create(&pem, JoinRole::Node, 1, None, Some(4)).unwrap();
    let forged = JoinToken { secret: Secret::draw().unwrap(), ..any.clone() };
    let gone = JoinToken { id: "gone".to_owned(), ..any.clone() };
    let now_ms = wall_ms();
    let mut spend = |token: &JoinToken, node, key: &[u8], now_ms| {
        tokens.spend(&token.id, &token.secret, node, key, now_ms).unwrap()
    };
    assert_eq!(spend(&gone, 2, b"k", now_ms), Err(Unfit::Unknown));
    assert_eq!(spend(&forged, 2, b"k", now_ms), Err(Unfit::WrongSecret));
    assert_eq!(spend(&own, 2, b"k", now_ms), Err(Unfit::ForOther(4)));
    assert_eq!(spend(&any, 2, b"k", now_ms + 10_000), Err(Unfit::Expired));
    assert!(spend(&any, 2, b"k", now_ms).is_ok());
    assert_eq!(spend(&any, 2, b"other", now_ms), Err(Unfit::Taken));
    assert_eq!(spend(&any, 3, b"k3", now_ms), Err(Unfit::UsedUp));
    assert_eq!(tokens.renew(2, b"thief", b"thief", now_ms).unwrap(), Err(Unfit::Replaced));
}

#[test]
fn x_3_a_lost_key_is_replaced_by_a_token_for_this_node_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (mut tokens, pem) = opened(folder.path());
    let first = tokens.create(&pem, JoinRole::Node, 5, None, None).unwrap();
    let spend = |tokens: &mut JoinTokens, token: &JoinToken, node, key: &[u8]| {
        tokens.spend(&token.id, &token.secret, node, key, wall_ms()).unwrap().is_ok()
    };
    let early = tokens.create(&pem, JoinRole::Node, 1, None, Some(2)).unwrap();
    assert!(spend(&mut tokens, &first, 2, b"old") && spend(&mut tokens, &first, 3, b"k3"));
    assert!(!spend(&mut tokens, &first, 2, b"new"), "whoever knows the token is not node 2");
    assert!(!spend(&mut tokens, &early, 2, b"new"), "made before the id was given");
    let newer = tokens.create(&pem, JoinRole::Node, 5, None, None).unwrap();
    assert!(!spend(&mut tokens, &newer, 2, b"new"), "nor is whoever knows a newer one");
    let second = tokens.create(&pem, JoinRole::Node, 2, None, Some(2)).unwrap();
    drop(tokens);
    let mut tokens = JoinTokens::open(folder.path()).unwrap();
    assert!(!spend(&mut tokens, &second, 3, b"k33") && !spend(&mut tokens, &second, 4, b"k4"));
    assert!(spend(&mut tokens, &second, 2, b"new"));
    assert!(spend(&mut tokens, &second, 2, b"new"), "a lost answer is asked for again");
    assert!(!spend(&mut tokens, &second, 2, b"third"), "and the id is taken again");
    assert!(!spend(&mut tokens, &first, 2, b"old"), "the old key is not node 2 any more");
    assert!(spend(&mut tokens, &newer, 4, b"k4"));
}

// X3: the founder's id is in no token's gift, from the first token on.
#[test]
fn x_3_no_token_takes_the_founders_id() {
    let folder = tempfile::tempdir().unwrap();
    let name = crate::tls::Name { cluster: 7, node: 1 };
    let papers = crate::tls::Papers::found(folder.path(), name, &[], 2).unwrap();
    let text = std::fs::read_to_string(folder.path().join("join-token")).unwrap();
    let first = JoinToken::parse(&text).unwrap();
    let mut tokens = JoinTokens::open(&papers.folder).unwrap();
    let later = tokens.create(&papers.authority_pem, JoinRole::Node, 5, None, None).unwrap();
    for token in [&first, &later] {
        let given = tokens.spend(&token.id, &token.secret, 1, b"thief", wall_ms()).unwrap();
        assert_eq!(given, Err(Unfit::Taken));
    }
    assert!(tokens.spend(&first.id, &first.secret, 2, b"k2", wall_ms()).unwrap().is_ok());
}

#[test]
fn x_2_a_renewal_is_for_the_key_that_the_id_was_last_given_to() {
    let folder = tempfile::tempdir().unwrap();
    let (mut tokens, pem) = opened(folder.path());
    let token = tokens.create(&pem, JoinRole::Node, 1, None, None).unwrap();
    let first = tokens.spend(&token.id, &token.secret, 2, b"a", 1_000).unwrap();
    let mut serials = vec![first.unwrap()];
    let mut renew = |tokens: &mut JoinTokens, shown: &[u8], key: &[u8]| {
        let serial = tokens.renew(2, shown, key, 1_000).unwrap();
        serials.extend(serial.ok());
        serial.is_ok()
    };
    assert!(!renew(&mut tokens, b"thief", b"thief"));
    assert!(renew(&mut tokens, b"a", b"b"));
    assert!(renew(&mut tokens, b"a", b"b"), "a lost answer is asked for again");
    assert!(!renew(&mut tokens, b"a", b"thief"), "but for no other key");
    assert!(renew(&mut tokens, b"b", b"c"));
    assert!(!renew(&mut tokens, b"a", b"b") && !renew(&mut tokens, b"a", b"c"));
    // The id goes to a new key: whoever has the old one has nothing.
    let freed = tokens.create(&pem, JoinRole::Node, 1, None, Some(2)).unwrap();
    assert!(tokens.spend(&freed.id, &freed.secret, 2, b"new", 1_000).unwrap().is_ok());
    drop(tokens);
    let mut tokens = JoinTokens::open(folder.path()).unwrap();
    assert!(!renew(&mut tokens, b"c", b"d") && renew(&mut tokens, b"new", b"newer"));
    assert!(serials.is_sorted_by(|one, next| one < next), "each is larger: {serials:?}");
}

#[test]
fn x_3_no_id_is_forgotten_to_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let (mut tokens, pem) = opened(folder.path());
    tokens.hold(1, b"founder").unwrap();
    let fill = (2..=ISSUED_MAX as u64).map(|node| Issued {
        node,
        key: print_of(b"k"),
        made: 0,
        before: None,
        sure: true,
    });
    tokens.content.issued.extend(fill);
    let token = tokens.create(&pem, JoinRole::Node, 5, None, None).unwrap();
    let mut spend =
        |node| tokens.spend(&token.id, &token.secret, node, b"x", wall_ms()).unwrap().is_ok();
    assert!(!spend(ISSUED_MAX as u64 + 1) && !spend(1));
}

#[test]
fn x_3_a_file_of_an_older_version_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let key = print_of(b"joined");
    let text = format!("{{\"tokens\":[],\"issued\":[{{\"node\":2,\"key\":\"{key}\"}}]}}");
    std::fs::write(folder.path().join(FILE), text).unwrap();
    let (mut tokens, pem) = opened(folder.path());
    let token = tokens.create(&pem, JoinRole::Node, 1, None, None).unwrap();
    assert!(tokens.spend(&token.id, &token.secret, 2, b"new", wall_ms()).unwrap().is_err());
    // Renewals were not noted then: the first one that is seen counts.
    assert!(tokens.renew(2, b"renewed since", b"b", wall_ms()).unwrap().is_ok());
    assert!(tokens.renew(2, b"renewed since", b"c", wall_ms()).unwrap().is_err());
    let token = tokens.create(&pem, JoinRole::Node, 1, None, Some(2)).unwrap();
    assert!(tokens.spend(&token.id, &token.secret, 2, b"new", wall_ms()).unwrap().is_ok());
}

#[test]
fn x_15_what_operators_did_waits_for_the_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let (mut tokens, pem) = opened(folder.path());
    let (_, looked) = JoinTokens::changed(folder.path(), None);
    let token = tokens.create(&pem, JoinRole::Node, 1, None, None).unwrap();
    assert!(JoinTokens::changed(folder.path(), looked).0);
    tokens.revoke(&token.id).unwrap();
    tokens.revoke("nothing").unwrap();
    drop(tokens);
    let mut tokens = JoinTokens::open(folder.path()).unwrap();
    let deeds = tokens.take_deeds().unwrap();
    let told: Vec<_> = deeds.iter().map(|deed| (deed.made, deed.id.as_str())).collect();
    assert_eq!(told, [(true, token.id.as_str()), (false, token.id.as_str())]);
    assert!(tokens.take_deeds().unwrap().is_empty());
}

#[test]
fn x_3_a_token_is_stored_hashed_and_returns_from_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let (mut tokens, pem) = opened(folder.path());
    let token = tokens.create(&pem, JoinRole::Node, 1, None, None).unwrap();
    let stored = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
    assert!(!stored.contains(token.secret.reveal()));
    let text = token.reveal();
    let again = JoinToken::parse(text.reveal()).unwrap();
    assert_eq!((again.authority, &again.id), (token.authority, &token.id));
    assert!(JoinToken::parse("ikada-join_00_node_a_b").is_none());
    assert!(JoinToken::parse(&text.reveal().replace("_node_", "_worker_")).is_none());
    assert!(!format!("{token:?}").contains(token.secret.reveal()));
}
