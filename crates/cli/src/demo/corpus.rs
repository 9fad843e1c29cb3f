//! Texts to count, drawn from a seed, and their plain count: what the job's result is held against.

use ikada_api::Client;
use ikada_api::client::{ObjectSource, PutOptions};
use ikada_api::v1::WorkInput;
use ikada_worker::builtin::Counts;

use super::BUCKET;
use crate::failure::Failure;

/// Words of one text.
const WORDS: usize = 20_000;
/// Different words in all texts.
const VOCABULARY: u64 = 5_000;

/// Draws text number `number`: small words are frequent, as in any language.
pub(crate) fn text(number: u32) -> Vec<u8> {
    let mut state = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = Vec::with_capacity(WORDS * 6);
    for place in 1..=WORDS {
        let word = draw() % (draw() % VOCABULARY + 1);
        text.extend_from_slice(spell(word).as_bytes());
        text.push(if place % 12 == 0 { b'\n' } else { b' ' });
    }
    text
}

/// A word for a number.
fn spell(mut number: u64) -> String {
    const SYLLABLES: [&str; 10] = ["ka", "ra", "mi", "to", "su", "ne", "ho", "yu", "ri", "no"];
    let mut word = String::new();
    loop {
        word.push_str(SYLLABLES[(number % 10) as usize]);
        number /= 10;
        if number == 0 {
            return word;
        }
    }
}

/// What was uploaded, and what a plain count of it gives.
pub(super) struct Corpus {
    pub(super) inputs: Vec<WorkInput>,
    pub(super) counted: Vec<u8>,
    pub(super) bytes: u64,
    pub(super) words: u64,
}

/// Draws, counts and uploads.
pub(super) async fn upload(client: &Client, texts: u32) -> Result<Corpus, Failure> {
    let (mut inputs, mut counts, mut bytes) = (Vec::new(), Counts::new(false), 0);
    for number in 0..texts {
        let text = text(number);
        counts.feed(&text);
        counts.end();
        bytes += text.len() as u64;
        let name = format!("{number:05}.txt");
        let source = ObjectSource::Bytes(text.into());
        let stored = client.put_object(BUCKET, &name, &source, &PutOptions::default()).await?;
        inputs.push(WorkInput {
            name: name.clone(),
            bucket: Some(BUCKET.to_owned()),
            key: Some(name),
            version: Some(stored.version),
            digest: Some(stored.digest),
            ..WorkInput::default()
        });
    }
    let words = counts.sorted().iter().map(|(_, count)| count).sum();
    Ok(Corpus { inputs, counted: counts.lines(), bytes, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_same_each_time_and_differ_from_each_other() {
        assert_eq!(text(3), text(3));
        assert_ne!(text(3), text(4));
        assert_eq!(text(1).split(|byte| b" \n".contains(byte)).count(), WORDS + 1);
        assert_eq!(spell(0), "ka");
        assert_eq!(spell(12), "mira");
    }
}
