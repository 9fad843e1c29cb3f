//! Tokens: bounded, unique, gone when revoked, and the same after a snapshot (X17).

mod common;
use common::*;
use ikada_state::limits::TOKENS_MAX;
use ikada_state::*;

fn id(text: &str) -> TokenId {
    TokenId::parse(text).unwrap()
}

fn add(token: &str, role: Role) -> AddToken {
    AddToken {
        id: id(token),
        name: PrincipalName::parse("ops").unwrap(),
        digest: SecretDigest([7; 32]),
        role,
        namespaces: Vec::new(),
        ttl_ms: 0,
        first: false,
    }
}

fn revoke(token: &str) -> Command {
    Command::RevokeToken(RevokeToken { id: id(token), lasting: Some(true) })
}

/// As older versions write it.
fn revoke_older(token: &str) -> Command {
    Command::RevokeToken(RevokeToken { id: id(token), lasting: None })
}

fn ids(world: &World) -> Vec<String> {
    world.shard.tokens().map(|token| token.id.to_string()).collect()
}

// X17, X19
#[test]
fn x_19_the_first_token_is_made_once() {
    let mut world = World::new();
    let first = |token| Command::AddToken(AddToken { first: true, ..add(token, Role::Admin) });
    assert_eq!(world.run(first("a")), Reply::TokenAdded { fresh: true });
    assert_eq!(world.run(first("a")), Reply::TokenAdded { fresh: false }, "a resend");
    assert_eq!(world.run(first("b")), refused(RefusalCode::TokensExist));
    assert_eq!(ids(&world), ["a"]);
}

#[test]
fn x_17_a_revoked_token_is_gone_and_the_last_admin_stays() {
    let mut world = World::new();
    world.run(Command::AddToken(add("a", Role::Admin)));
    let bound = vec![Namespace::parse("n").unwrap()];
    let local = AddToken { namespaces: bound, ..add("local", Role::Admin) };
    world.run(Command::AddToken(local));
    world.run(Command::AddToken(add("w", Role::Worker)));
    assert_eq!(
        world.run(revoke("a")),
        refused(RefusalCode::LastAdmin),
        "a bound one is not enough"
    );
    assert_eq!(world.run(revoke("w")), Reply::TokenRevoked);
    assert_eq!(world.run(revoke("w")), refused(RefusalCode::TokenNotFound));
    world.run(Command::AddToken(add("b", Role::Admin)));
    assert_eq!(world.run(revoke("a")), Reply::TokenRevoked);
    assert_eq!(ids(&world), ["b", "local"]);
}

#[test]
fn x_17_the_admin_who_stays_can_make_others_for_as_long() {
    let mut world = World::new();
    let key = PrincipalName::parse("s3-backup").unwrap();
    world.run(Command::AddToken(add("a", Role::Admin)));
    world.run(Command::AddToken(AddToken { name: key, ..add("key", Role::Admin) }));
    assert_eq!(world.run(revoke("a")), refused(RefusalCode::LastAdmin), "a key makes no tokens");
    let month = AddToken { ttl_ms: 1_000_000, ..add("month", Role::Admin) };
    world.run(Command::AddToken(month.clone()));
    assert_eq!(world.run(revoke("a")), refused(RefusalCode::LastAdmin), "it would end, and all");
    assert_eq!(world.run(revoke("key")), Reply::TokenRevoked, "nobody needs it");
    world.tick(10);
    world.run(Command::AddToken(AddToken { id: id("later"), ..month }));
    assert_eq!(world.run(revoke("later")), Reply::TokenRevoked, "others last longer");
    world.run(Command::AddToken(add("b", Role::Admin)));
    assert_eq!(world.run(revoke("a")), Reply::TokenRevoked);
    assert_eq!(world.run(revoke("month")), Reply::TokenRevoked);
    assert_eq!(ids(&world), ["b"]);
}

// An entry means what it meant when it was written.
#[test]
fn x_17_what_older_versions_wrote_is_judged_by_their_rule() {
    let mut world = World::new();
    world.run(Command::AddToken(add("a", Role::Admin)));
    world.run(Command::AddToken(AddToken { ttl_ms: 1_000, ..add("brief", Role::Admin) }));
    let (before, now) = (revoke_older("a"), revoke("a"));
    assert_eq!((before.level(), now.level()), (0, 1));
    assert_eq!(world.run(now), refused(RefusalCode::LastAdmin));
    assert_eq!(world.run(before), Reply::TokenRevoked);
}

#[test]
fn x_17_an_id_is_not_given_twice_and_ended_tokens_make_room() {
    let mut world = World::new();
    world.run(Command::AddToken(add("a", Role::Admin)));
    let forged = AddToken { digest: SecretDigest([8; 32]), ..add("a", Role::Admin) };
    assert_eq!(world.run(Command::AddToken(forged)), refused(RefusalCode::Conflict));
    for number in 1..TOKENS_MAX {
        let short = AddToken { ttl_ms: 1_000, ..add(&format!("t{number}"), Role::Viewer) };
        assert_eq!(world.run(Command::AddToken(short)), Reply::TokenAdded { fresh: true });
    }
    let one_more = Command::AddToken(add("more", Role::Viewer));
    assert_eq!(world.run(one_more.clone()), refused(RefusalCode::TooManyTokens));
    world.tick(10_000_000);
    assert_eq!(world.run(one_more), Reply::TokenAdded { fresh: true });
    assert_eq!(ids(&world), ["a", "more"]);
}

// TQ-26
#[test]
fn x_17_tokens_survive_a_snapshot_and_never_show_their_digest() {
    let mut world = World::new();
    let bound = vec![Namespace::parse("b").unwrap(), Namespace::parse("a").unwrap()];
    let token = AddToken { namespaces: bound, ttl_ms: 5, ..add("a", Role::Operator) };
    world.run(Command::AddToken(token));
    let restored = Shard::restore(world.shard.clone().freeze().chunks()).unwrap();
    assert_eq!(restored.hash(), world.shard.hash());
    let token = restored.tokens().next().unwrap();
    assert_eq!(token.namespaces[0].as_str(), "a", "sorted");
    assert!(token.is_over(token.created_ms + 5) && !token.is_over(token.created_ms + 4));
    assert!(!format!("{token:?}").contains("7, 7"));
}
