//! Labels: what a task wants of its worker, and what a worker says of itself. Kept sorted by name,
//! each name once, so that equal sets are equal values.

use std::sync::Arc;

use minicbor::decode::{Decode, Decoder, Error as DecodeError};
use minicbor::encode::{Encode, Encoder, Error as EncodeError, Write};

use super::Label;

/// A set of labels. The empty set, by far the most common, owns nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(Option<Arc<Vec<(Label, Label)>>>);

impl Labels {
    /// A set from pairs of name and value in any order; none if a name comes twice.
    pub fn new(mut pairs: Vec<(Label, Label)>) -> Option<Labels> {
        pairs.sort();
        let unique = pairs.windows(2).all(|pair| pair[0].0 < pair[1].0);
        unique.then(|| Labels((!pairs.is_empty()).then(|| Arc::new(pairs))))
    }

    /// Pairs of name and value by name.
    pub fn pairs(&self) -> &[(Label, Label)] {
        self.0.as_ref().map_or(&[], |pairs| pairs.as_slice())
    }

    /// Number of labels.
    pub fn len(&self) -> usize {
        self.pairs().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether every label of `wanted` is here with the same value.
    pub fn satisfy(&self, wanted: &Labels) -> bool {
        let held = self.pairs();
        wanted.pairs().iter().all(|pair| held.binary_search(pair).is_ok())
    }
}

impl<C> Encode<C> for Labels {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.array(2 * self.len() as u64)?;
        for (name, value) in self.pairs() {
            encoder.str(name.as_str())?.str(value.as_str())?;
        }
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for Labels {
    fn decode(decoder: &mut Decoder<'b>, context: &mut C) -> Result<Self, DecodeError> {
        let texts: Vec<Label> = Vec::decode(decoder, context)?;
        if !texts.len().is_multiple_of(2) {
            return Err(DecodeError::message("a label has a name and a value"));
        }
        let pairs = texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        let pairs: Vec<(Label, Label)> = pairs.collect();
        let sorted = pairs.windows(2).all(|pair| pair[0].0 < pair[1].0);
        match Labels::new(pairs) {
            Some(labels) if sorted => Ok(labels),
            _ => Err(DecodeError::message("labels are sorted, each name once")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Option<Labels> {
        let label = |text: &str| Label::parse(text).unwrap();
        Labels::new(pairs.iter().map(|(name, value)| (label(name), label(value))).collect())
    }

    #[test]
    fn a_set_is_satisfied_by_equal_values_only() {
        let wanted = labels(&[("gpu", "a100"), ("zone", "b")]).unwrap();
        let held = labels(&[("zone", "b"), ("gpu", "a100"), ("disk", "ssd")]).unwrap();
        assert!(held.satisfy(&wanted) && held.satisfy(&Labels::default()));
        assert!(!wanted.satisfy(&held) && !Labels::default().satisfy(&wanted));
        let other = labels(&[("gpu", "h100"), ("zone", "b")]).unwrap();
        assert!(!other.satisfy(&wanted));
        assert_eq!(labels(&[("a", "1"), ("a", "2")]), None);
    }

    #[test]
    fn only_the_sorted_form_decodes() {
        let set = labels(&[("b", "1"), ("a", "2")]).unwrap();
        let bytes = minicbor::to_vec(&set).unwrap();
        assert_eq!(minicbor::decode::<Labels>(&bytes).unwrap(), set);
        for bad in [vec!["b", "1", "a", "2"], vec!["a", "1", "a", "1"], vec!["a"], vec!["a", "/"]] {
            assert!(minicbor::decode::<Labels>(&minicbor::to_vec(&bad).unwrap()).is_err());
        }
        let empty = minicbor::to_vec(Labels::default()).unwrap();
        assert_eq!(minicbor::decode::<Labels>(&empty).unwrap(), Labels::default());
    }
}
