//! Programs: push, list, show, remove.

use hyper::Method;

use super::send::Ask;
use super::url::{escape, unique_key};
use super::{Client, Error};
use crate::v1::{NewProgram, ProgramInfo, ProgramPage, ProgramRemoved};

impl Client {
    /// Keeps a program under its name. Its file, if it has one, was uploaded before (`upload`).
    pub async fn push_program(&self, program: &NewProgram) -> Result<ProgramInfo, Error> {
        let path = "/v1/programs".to_owned();
        self.ask(&Ask::json(Method::POST, path, program, Some(unique_key()))?).await
    }

    /// All programs of the namespace.
    pub async fn programs(&self) -> Result<ProgramPage, Error> {
        self.ask(&Ask::get("/v1/programs".to_owned())).await
    }

    /// One program with its manifest.
    pub async fn program(&self, name: &str) -> Result<ProgramInfo, Error> {
        self.ask(&Ask::get(program_path(name))).await
    }

    /// Removes a program's name; tasks that were submitted for it keep it.
    pub async fn delete_program(&self, name: &str) -> Result<ProgramRemoved, Error> {
        self.ask(&Ask::act(Method::DELETE, program_path(name), Some(unique_key()))).await
    }
}

fn program_path(name: &str) -> String {
    format!("/v1/programs/{}", escape(name))
}
