//! The guide shows no other code than the example that is compiled and run.

const GUIDE: &str = include_str!("../../../docs/client.md");
const EXAMPLE: &str = include_str!("../examples/mail.rs");

/// Lines without indentation, so that a block may be cut out of a function.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn every_block_of_the_guide_is_part_of_the_example() {
    let example = lines(EXAMPLE);
    let mut blocks = 0;
    for block in GUIDE.split("```rust\n").skip(1) {
        let block = lines(block.split("```").next().unwrap_or(""));
        let found = example.windows(block.len()).any(|part| part == block);
        assert!(found, "not in the example, or not in this order:\n{}", block.join("\n"));
        blocks += 1;
    }
    assert_eq!(blocks, 5);
}
