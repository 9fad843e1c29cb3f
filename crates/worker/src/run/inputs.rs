//! What a function reads of its task's inputs.
//!
//! Leaves out: addresses. They are opened for programs alone, below what the operator of a worker allows.

use ikada_api::Client;
use ikada_api::client::GetOptions;

use super::{Claimed, TaskError};

impl Claimed {
    /// Names of the task's inputs, in order.
    pub fn input_names(&self) -> Vec<&str> {
        let inputs = self.work.iter().flat_map(|work| &work.inputs);
        inputs.map(|input| input.name.as_str()).collect()
    }

    /// A setting of the task's program.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.work.as_ref()?.settings.get(name).map(String::as_str)
    }

    /// The bytes of one of the task's inputs; an error if there are more than so many.
    pub async fn read_input(
        &self,
        client: &Client,
        name: &str,
        bytes_max: usize,
    ) -> Result<Vec<u8>, TaskError> {
        let mut inputs = self.work.iter().flat_map(|work| &work.inputs);
        let input = inputs.find(|input| input.name == name);
        let input =
            input.ok_or_else(|| TaskError::give_up(format!("there is no input {name:?}")))?;
        let too_large =
            || TaskError::give_up(format!("input {name:?} has more than {bytes_max} bytes"));
        if let Some(text) = &input.text {
            return match text.len() <= bytes_max {
                true => Ok(text.clone().into_bytes()),
                false => Err(too_large()),
            };
        }
        let (Some(bucket), Some(key)) = (&input.bucket, &input.key) else {
            let why = format!("input {name:?} is an address, which functions do not open");
            return Err(TaskError::give_up(why));
        };
        let options = GetOptions {
            version: input.version.map(|version| version.0),
            from: input.offset.unwrap_or(0),
            if_match: input.digest.clone(),
            ..GetOptions::default()
        };
        let mut left = input.length.unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        if left == 0 {
            return Ok(bytes);
        }
        let mut reader = client.get_object(bucket, key, &options).await?;
        while left > 0
            && let Some(some) = reader.next().await?
        {
            let taken = some.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            left -= taken as u64;
            bytes.extend_from_slice(&some[..taken]);
            if bytes.len() > bytes_max {
                return Err(too_large());
            }
        }
        Ok(bytes)
    }
}
